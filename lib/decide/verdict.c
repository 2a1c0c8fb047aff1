/* verdict.c - verdicts: filled, named, printed as JSON, freed. */
#include "decide/decide.h"

#include <math.h>
#include <stdlib.h>

/* ---- filling ---- */

void doppel_verdict_free(doppel_verdict *verdict) {
    if (!verdict)
        return;
    free(verdict->memory);
    *verdict = (doppel_verdict){0};
}

/* Copies an id to `at`, if there is one; returns where it ends. */
static char *copy_id(char *at, doppel_slice id, doppel_slice *copy) {
    *copy = (doppel_slice){NULL, 0};
    if (!id.data)
        return at;
    if (id.length)
        memcpy(at, id.data, id.length);
    *copy = (doppel_slice){at, id.length};
    return at + id.length;
}

doppel_status dp_verdict_name(doppel_verdict *verdict, const doppel_slice ids[2]) {
    verdict->id = verdict->original_id = (doppel_slice){NULL, 0};
    /* One byte more, so that an empty id has a place, too. */
    if (!dp_reserve(&verdict->memory, &verdict->memory_size, ids[0].length + ids[1].length + 1, 1))
        return DOPPEL_ERROR_MEMORY;
    copy_id(copy_id(verdict->memory, ids[0], &verdict->id), ids[1], &verdict->original_id);
    return DOPPEL_OK;
}

doppel_status dp_verdict_set(doppel_verdict *verdict, const dp_rules *rules, doppel_reason reason,
                             const doppel_evidence *evidence, const doppel_slice ids[2]) {
    verdict->is_duplicate = reason != DOPPEL_REASON_NONE;
    verdict->known = verdict->replaced = verdict->id_known = false;
    verdict->reason = reason;
    verdict->evidence = evidence ? *evidence : dp_evidence_none();
    verdict->confidence = dp_decide_confidence(rules, reason, &verdict->evidence);
    doppel_slice original = reason != DOPPEL_REASON_NONE ? ids[1] : (doppel_slice){NULL, 0};
    return dp_verdict_name(verdict, (doppel_slice[]){ids[0], original});
}

/* ---- printing ---- */

static void put_share(dp_json_writer *w, const char *name, double share) {
    dp_json_key(w, name);
    dp_json_share(w, share);
}

static void put_bool(dp_json_writer *w, const char *name, bool value) {
    dp_json_key(w, name);
    dp_json_bool(w, value);
}

static void put_string(dp_json_writer *w, const char *name, doppel_slice value) {
    dp_json_key(w, name);
    dp_json_string(w, value);
}

static void put_evidence(dp_json_writer *w, const doppel_evidence *e) {
    dp_json_key(w, "evidence");
    dp_json_text(w, "{");
    put_share(w, "distance", e->distance >= 0 ? (double)e->distance : NAN);
    put_share(w, "similarity", e->similarity);
    put_share(w, "containment", e->containment);
    put_share(w, "titleSimilarity", e->title_similarity);
    put_bool(w, "sameUrl", e->same_url);
    put_bool(w, "sameDigest", e->same_digest);
    put_bool(w, "verified", e->verified);
    dp_json_text(w, "}");
}

size_t doppel_verdict_json(const doppel_verdict *verdict, bool lead, char *to, size_t room) {
    dp_json_writer w = {.to = to, .room = room ? room - 1 : 0};
    dp_json_text(&w, "{");
    if (lead)
        put_string(&w, "id", verdict->id);
    put_bool(&w, "isDuplicate", verdict->is_duplicate);
    if (verdict->known)
        put_bool(&w, "known", true);
    if (verdict->replaced)
        put_bool(&w, "replaced", true);
    if (verdict->id_known)
        put_bool(&w, "idKnown", true);
    put_share(&w, "confidence", verdict->confidence);
    put_string(&w, "reason", doppel_slice_of(doppel_reason_name(verdict->reason)));
    put_string(&w, "originalId", verdict->original_id);
    put_evidence(&w, &verdict->evidence);
    dp_json_text(&w, "}");
    if (room)
        to[w.length < w.room ? w.length : w.room] = 0;
    return w.length;
}

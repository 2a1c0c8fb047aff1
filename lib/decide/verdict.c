/* verdict.c - verdicts: filled, named, printed as JSON, freed. */
#include "decide/decide.h"
#include "input/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- filling ---- */

void doppel_verdict_free(doppel_verdict *verdict) {
    if (!verdict)
        return;
    free(verdict->held);
    *verdict = (doppel_verdict){0};
}

/* Copies an id to `at`, if there is one; gives where it ends. */
static char *hold(char *at, doppel_slice id, doppel_slice *held) {
    *held = (doppel_slice){NULL, 0};
    if (!id.data)
        return at;
    if (id.length)
        memcpy(at, id.data, id.length);
    *held = (doppel_slice){at, id.length};
    return at + id.length;
}

doppel_status dp_verdict_name(doppel_verdict *verdict, const doppel_slice ids[2]) {
    verdict->id = verdict->original_id = (doppel_slice){NULL, 0};
    /* One byte more, so that an empty id has a place, too. */
    if (!dp_reserve(&verdict->held, &verdict->held_room, ids[0].length + ids[1].length + 1, 1))
        return DOPPEL_ERROR_MEMORY;
    hold(hold(verdict->held, ids[0], &verdict->id), ids[1], &verdict->original_id);
    return DOPPEL_OK;
}

doppel_status dp_verdict_set(doppel_verdict *verdict, const dp_rules *rules, dp_reason reason,
                             const doppel_evidence *evidence, const doppel_slice ids[2]) {
    verdict->is_duplicate = reason != DP_UNIQUE;
    verdict->known = verdict->replaced = false;
    verdict->reason = dp_reason_name(reason);
    verdict->evidence = evidence ? *evidence : dp_evidence_none();
    verdict->confidence = dp_decide_confidence(rules, reason, &verdict->evidence);
    doppel_slice original = reason != DP_UNIQUE ? ids[1] : (doppel_slice){NULL, 0};
    return dp_verdict_name(verdict, (doppel_slice[]){ids[0], original});
}

/* ---- printing ---- */

/* Bytes that are written as far as there is room, and counted. */
typedef struct sink {
    char *to;
    size_t room, length;
} sink;

static void put(sink *s, const char *bytes, size_t length) {
    if (s->length < s->room) {
        size_t left = s->room - s->length;
        memcpy(s->to + s->length, bytes, length < left ? length : left);
    }
    s->length += length;
}

static void put_text(sink *s, const char *text) {
    put(s, text, strlen(text));
}

static void put_string(sink *s, doppel_slice text) {
    char escape[DP_JSON_ESCAPE];
    if (!text.data) {
        put_text(s, "null");
        return;
    }
    put_text(s, "\"");
    for (const char *p = text.data, *end = p + text.length; p < end;) {
        doppel_slice piece = dp_json_piece(&p, end, escape);
        put(s, piece.data, piece.length);
    }
    put_text(s, "\"");
}

static void put_bool(sink *s, const char *name, bool value) {
    put_text(s, name);
    put_text(s, value ? "true" : "false");
}

/* A share with six digits, and a point whatever the locale has. */
static void put_share(sink *s, const char *name, double share) {
    char text[32];
    put_text(s, name);
    if (isnan(share)) {
        put_text(s, "null");
        return;
    }
    snprintf(text, sizeof text, "%.6g", share);
    size_t digits = strspn(text, "-0123456789e");
    put(s, text, digits);
    if (text[digits]) {
        put_text(s, ".");
        put_text(s, text + digits + strcspn(text + digits, "0123456789"));
    }
}

static void put_evidence(sink *s, const doppel_evidence *e) {
    char distance[16] = "null";
    if (e->distance >= 0)
        snprintf(distance, sizeof distance, "%d", e->distance);
    put_text(s, ",\"evidence\":{\"distance\":");
    put_text(s, distance);
    put_share(s, ",\"similarity\":", e->similarity);
    put_share(s, ",\"containment\":", e->containment);
    put_share(s, ",\"titleSimilarity\":", e->title_similarity);
    put_bool(s, ",\"sameUrl\":", e->same_url);
    put_bool(s, ",\"sameDigest\":", e->same_digest);
    put_bool(s, ",\"verified\":", e->verified);
    put_text(s, "}");
}

size_t doppel_verdict_json(const doppel_verdict *verdict, bool lead, char *to, size_t room) {
    sink s = {to, room ? room - 1 : 0, 0};
    put_text(&s, "{");
    if (lead) {
        put_text(&s, "\"id\":");
        put_string(&s, verdict->id);
        put_text(&s, ",");
    }
    put_bool(&s, "\"isDuplicate\":", verdict->is_duplicate);
    if (verdict->known)
        put_bool(&s, ",\"known\":", true);
    if (verdict->replaced)
        put_bool(&s, ",\"replaced\":", true);
    put_share(&s, ",\"confidence\":", verdict->confidence);
    put_text(&s, ",\"reason\":");
    put_string(&s, (doppel_slice){verdict->reason, verdict->reason ? strlen(verdict->reason) : 0});
    put_text(&s, ",\"originalId\":");
    put_string(&s, verdict->original_id);
    put_evidence(&s, &verdict->evidence);
    put_text(&s, "}");
    if (room)
        to[s.length < s.room ? s.length : s.room] = 0;
    return s.length;
}

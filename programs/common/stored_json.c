/* stored_json.c - verdicts, comparisons, and what an index remembers and counts, as JSON. */
#include "common/stored_json.h"

#include <math.h>

void text_verdict(text_buffer *out, const doppel_verdict *verdict, bool with_id) {
    size_t guess = 320;
    for (int i = 0; i < 2 && text_reserve(out, guess + 1); i++) {
        size_t length = doppel_verdict_json(verdict, with_id, out->data + out->length, guess + 1);
        if (length <= guess) {
            out->length += length;
            return;
        }
        guess = length;
    }
}

static void write_aliases(text_buffer *out, const doppel_stored *stored) {
    text_member(out, "aliases");
    text_put(out, "[");
    for (size_t i = 0; i < stored->alias_count; i++) {
        text_put(out, i ? "," : "");
        text_string(out, stored->aliases[i]);
    }
    text_put(out, "]");
}

void text_evidence(text_buffer *out, const doppel_stored *stored, bool exact) {
    const doppel_evidence *e = &stored->evidence;
    void (*put)(text_buffer * out, const char *name, double value) = exact ? text_member_number : text_member_share;
    text_member_string(out, "reason", doppel_slice_of(stored->reason ? doppel_reason_name(stored->reason) : ""));
    text_member(out, "evidence");
    text_put(out, "{");
    text_member_distance(out, "distance", e->distance);
    put(out, "similarity", e->similarity);
    put(out, "containment", e->containment);
    put(out, "titleSimilarity", e->title_similarity);
    text_member_bool(out, "sameUrl", e->same_url);
    text_member_bool(out, "sameDigest", e->same_digest);
    text_member_bool(out, "verified", e->verified);
    text_put(out, "}");
}

void text_by_reason(text_buffer *out, const uint64_t by[DOPPEL_REASONS], bool unique) {
    static const char *const names[] = {[DOPPEL_REASON_NONE] = "unique",
                                        [DOPPEL_REASON_URL] = "url",
                                        [DOPPEL_REASON_CONTENT] = "content",
                                        [DOPPEL_REASON_TITLE] = "title"};
    _Static_assert(sizeof names / sizeof *names == DOPPEL_REASONS, "every reason has a name");
    text_put(out, "{");
    for (int i = unique ? DOPPEL_REASON_NONE : DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++)
        text_member_count(out, names[i], by[i]);
    text_put(out, "}");
}

static void write_duplicates(text_buffer *out, const doppel_stored *stored) {
    text_member_count(out, "duplicates", stored->duplicates);
    text_member(out, "duplicatesBy");
    text_by_reason(out, stored->duplicates_by, false);
    text_member_time(out, "lastDuplicate", stored->last_duplicate);
    text_member_count(out, "copies", stored->copies);
    write_aliases(out, stored);
}

/* The id of the document that represents its group: of a copy its original, else the document itself. */
static doppel_slice group_of(const doppel_stored *stored) {
    return stored->original_id.data ? stored->original_id : stored->id;
}

void text_stored(text_buffer *out, const doppel_stored *stored, int bits) {
    text_put(out, "{");
    text_member_string(out, "id", stored->id);
    text_member_count(out, "number", stored->number);
    text_member_string(out, "url", stored->url);
    text_member_string(out, "canonicalUrl", stored->canonical);
    text_member_string(out, "title", stored->title);
    text_member(out, "fields");
    text_add(out, stored->fields.data ? stored->fields.data : "{}", stored->fields.data ? stored->fields.length : 2);
    text_member_string(out, "canonical", group_of(stored));
    text_member_string(out, "originalId", stored->original_id);
    if (stored->original_id.data)
        text_evidence(out, stored, false);
    text_member_time(out, "added", stored->added);
    text_member_time(out, "expires", stored->expires);
    text_member_count(out, "words", stored->words);
    text_member_fingerprint(out, "fingerprint", stored->fingerprint, bits);
    text_member_digest(out, "digest", stored->digest);
    text_member_distance(out, "shingles", stored->set_count ? (int64_t)stored->set_count : -1);
    write_duplicates(out, stored);
    text_member_string(out, "text", stored->text);
    text_put(out, "}");
}

void text_similar(text_buffer *out, const doppel_stored *stored) {
    text_put(out, "{");
    text_member_string(out, "id", stored->id);
    text_member_share(out, "similarity", stored->similarity);
    text_member_distance(out, "distance", stored->distance);
    text_member_share(out, "containment", stored->containment);
    text_member_string(out, "url", stored->url);
    text_member_string(out, "title", stored->title);
    text_member_string(out, "canonical", group_of(stored));
    if (stored->number) {
        text_member_count(out, "duplicates", stored->duplicates);
        text_member_count(out, "copies", stored->copies);
    }
    write_aliases(out, stored);
    text_put(out, "}");
}

void text_engine_counters(text_buffer *out, const doppel_engine_stats *stats) {
    text_member_count(out, "checks", stats->checks);
    text_member_count(out, "adds", stats->adds);
    text_member_count(out, "removes", stats->removes);
    text_member_count(out, "expired", stats->expired);
    text_member_count(out, "damaged", stats->damaged);
    text_member_count(out, "commits", stats->commits);
    text_member_count(out, "failedCommits", stats->failed_commits);
}

void text_compared_side(text_buffer *out, const doppel_comparison *m, bool is_b) {
    static const uint8_t no_digest[32];
    uint64_t words = is_b ? m->words_b : m->words_a;
    text_member_count(out, is_b ? "wordsB" : "wordsA", words);
    text_member_count(out, is_b ? "shinglesB" : "shinglesA", is_b ? m->shingles_b : m->shingles_a);
    text_member_fingerprint(out, is_b ? "fingerprintB" : "fingerprintA", is_b ? m->fingerprint_b : m->fingerprint_a,
                            m->bits);
    text_member_digest(out, is_b ? "digestB" : "digestA", !words ? no_digest : is_b ? m->digest_b : m->digest_a);
}

void text_measures(text_buffer *out, const doppel_comparison *m) {
    text_member_distance(out, "bits", m->bits);
    text_member_distance(out, "distance", m->distance);
    text_member_count(out, "shinglesShared", m->shingles_shared);
    text_member_number(out, "similarity", m->similarity);
    text_member_number(out, "containmentAB", m->containment_ab);
    text_member_number(out, "containmentBA", m->containment_ba);
    text_member_number(out, "signatureSimilarity", m->signature_similarity);
    text_member_number(out, "cosine", m->cosine);
    text_member_number(out, "angle", m->angle);
    text_member_number(out, "euclidean", m->euclidean);
    text_member_distance(out, "editDistance", m->edit_distance);
    text_member_distance(out, "indelDistance", m->indel_distance);
    text_member_number(out, "editSimilarity", m->edit_distance < 0 ? NAN : m->edit_similarity);
    text_member_bool(out, "sameDigest", m->same_digest);
}

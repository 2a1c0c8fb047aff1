/* overlap_hits.c - who shares hashes: the sorted hashes are gone through, and each that stands in several documents
 * hits their pairs.
 *
 * A hash of a run makes a candidate by itself, as the same words do. Hashes for containment are counted, where they are
 * keys of one of the two documents: of the x keys of a document whose containment is c, a number near c * x is shared
 * (overlap_verify.c). A hash that stands in more than DP_OVERLAP_CROWD documents hits only the pairs of each with the
 * first; it is counted, apart, so that those it does not hit can be given the benefit of the doubt. */
#include "batch/overlap.h"

#include <stdlib.h>

static doppel_status hit(dp_overlap_work *work, uint64_t a, uint64_t b, unsigned counts, doppel_error *error) {
    uint64_t record = a << 33 | b << 2 | counts;
    return dp_sorter_add(&work->hits, &record, error);
}

/* ---- the same words ---- */

/* With two sides, a document of `against` stands for those of its side with the same words, and all of the other side
 * are paired with it; else the first stands for all. */
static doppel_status pair_copy(dp_overlap_work *work, uint32_t first, uint32_t document, doppel_error *error) {
    bool other_side = dp_overlap_two_sides(work) && document >= work->against;
    work->counts.copies++;
    if (!other_side)
        work->first[document] = first;
    if (!dp_overlap_two_sides(work))
        return hit(work, first, document, DP_OVERLAP_SURE, error);
    return other_side && first < work->against ? hit(work, document, first, DP_OVERLAP_SURE, error) : DOPPEL_OK;
}

static doppel_status find_copies(dp_overlap_work *work, doppel_error *error) {
    uint64_t digest[2] = {0, 0};
    uint32_t first = 0;
    const uint64_t *record;
    doppel_status status = dp_sorter_finish(&work->digests, error);
    while (status == DOPPEL_OK && (status = dp_sorter_next(&work->digests, &record, error)) == DOPPEL_OK && record) {
        if (record[0] == digest[0] && record[1] == digest[1]) {
            status = pair_copy(work, first, (uint32_t)record[2], error);
        } else {
            digest[0] = record[0];
            digest[1] = record[1];
            first = (uint32_t)record[2];
        }
    }
    return status;
}

/* ---- the same hashes ---- */

/* A document with the hash. */
typedef struct member {
    uint32_t document;
    bool key; /* the hash is one of its keys */
} member;

/* The documents with one hash: the first of them, of the side that is held. */
typedef struct crowd {
    uint64_t hash;
    member held[DP_OVERLAP_CROWD];
    size_t count;
    bool frequent; /* there are more, and only the first counts */
} crowd;

static void count_key(dp_overlap_work *work, const crowd *c, member m) {
    uint32_t *counter = c->frequent ? work->frequent : work->live;
    counter[m.document] += m.key;
}

static doppel_status pair_up(dp_overlap_work *work, const crowd *c, member a, member b, doppel_error *error) {
    if (dp_overlap_of_run(c->hash))
        return hit(work, a.document, b.document, DP_OVERLAP_SURE, error);
    unsigned counts = (a.key ? DP_OVERLAP_KEY_A : 0) | (b.key ? DP_OVERLAP_KEY_B : 0);
    return counts ? hit(work, a.document, b.document, counts, error) : DOPPEL_OK;
}

/* A document of the side that is not held: it is paired with all that are held. */
static doppel_status pair_other(dp_overlap_work *work, const crowd *c, member m, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    count_key(work, c, m);
    for (size_t i = 0; i < (c->frequent ? 1 : c->count) && status == DOPPEL_OK; i++)
        status = pair_up(work, c, m, c->held[i], error);
    return status;
}

/* One more than are held, or many more. */
static doppel_status add_frequent(dp_overlap_work *work, crowd *c, member m, doppel_error *error) {
    bool one_side = !dp_overlap_two_sides(work);
    doppel_status status = DOPPEL_OK;
    for (size_t i = 1; i < c->count && one_side && !c->frequent && status == DOPPEL_OK; i++)
        status = pair_up(work, c, c->held[0], c->held[i], error);
    work->counts.frequent += !c->frequent;
    c->frequent = true;
    count_key(work, c, m);
    return status == DOPPEL_OK && one_side ? pair_up(work, c, c->held[0], m, error) : status;
}

static doppel_status add_document(dp_overlap_work *work, crowd *c, member m, doppel_error *error) {
    if (work->first[m.document] != m.document)
        return DOPPEL_OK;
    if (dp_overlap_two_sides(work) && m.document >= work->against)
        return pair_other(work, c, m, error);
    if (c->count == DP_OVERLAP_CROWD)
        return add_frequent(work, c, m, error);
    c->held[c->count++] = m;
    return DOPPEL_OK;
}

/* All documents with the hash have come. */
static doppel_status end_crowd(dp_overlap_work *work, crowd *c, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    bool all_pairs = !dp_overlap_two_sides(work) && !c->frequent;
    for (size_t i = 0; i < c->count; i++) {
        count_key(work, c, c->held[i]);
        for (size_t j = i + 1; j < c->count && all_pairs && status == DOPPEL_OK; j++)
            status = pair_up(work, c, c->held[i], c->held[j], error);
    }
    c->count = 0;
    c->frequent = false;
    return status;
}

static doppel_status find_shared(dp_overlap_work *work, doppel_error *error) {
    crowd c = {.count = 0};
    const uint64_t *record;
    doppel_status status = dp_sorter_finish(&work->samples, error);
    while (status == DOPPEL_OK && (status = dp_sorter_next(&work->samples, &record, error)) == DOPPEL_OK && record) {
        if (record[0] != c.hash) {
            status = end_crowd(work, &c, error);
            c.hash = record[0];
        }
        if (status == DOPPEL_OK)
            status = add_document(work, &c, (member){(uint32_t)(record[1] >> 1), record[1] & 1}, error);
    }
    return status == DOPPEL_OK ? end_crowd(work, &c, error) : status;
}

doppel_status dp_overlap_find_hits(dp_overlap_work *work, doppel_error *error) {
    work->first = malloc((work->count + 1) * sizeof *work->first);
    work->live = calloc(work->count + 1, sizeof *work->live);
    work->frequent = calloc(work->count + 1, sizeof *work->frequent);
    if (!work->first || !work->live || !work->frequent)
        return dp_no_memory(error);
    for (size_t i = 0; i < work->count; i++)
        work->first[i] = (uint32_t)i;
    doppel_status status = find_copies(work, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->digests);
    dp_sorter_free(&work->digests);
    if (status == DOPPEL_OK)
        status = find_shared(work, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->samples);
    dp_sorter_free(&work->samples);
    return status == DOPPEL_OK ? dp_sorter_finish(&work->hits, error) : status;
}

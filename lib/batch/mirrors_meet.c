/* mirrors_meet.c - which prefixes have a page in common: pages whose paths end alike and whose content is near meet.
 *
 * Each page stands under a few keys, of the last segment of its path and one band of its signature each; pages under
 * one key meet. How far two paths agree from their ends says which prefixes they speak for: a page of each below a
 * mirror and its original has the same two prefixes as all others, so these are counted. Where more than
 * DP_MIRROR_CROWD pages have a key, only those meet whose last but one segments agree too; where these still are more,
 * each meets the first. */
#include "batch/mirrors.h"
#include "kernel/kernel.h"

/* Pages under one key, or of those, with one last but one segment. */
typedef struct crowd {
    uint64_t key;
    uint64_t held[DP_MIRROR_CROWD], parent[DP_MIRROR_CROWD];
    size_t count;
    bool split; /* there were too many: those held have one parent */
    bool star;  /* there still were: each meets the first */
} crowd;

/* ---- two pages ---- */

static uint64_t hash_prefix(const dp_mirror_page *page, unsigned depth) {
    uint64_t hash = dp_hash_mix(page->host + depth);
    for (unsigned i = 0; i < depth; i++)
        hash = dp_hash_mix(hash ^ page->segment[i]) + i;
    return hash;
}

/* How many segments agree from the end. */
static unsigned common_end(const dp_mirror_page *a, const dp_mirror_page *b) {
    unsigned common = 0;
    while (common < a->depth && common < b->depth &&
           a->segment[a->depth - 1 - common] == b->segment[b->depth - 1 - common])
        common++;
    return common;
}

/* Whether one prefix is below the other. */
static bool nested(const dp_mirror_page *a, unsigned a_depth, const dp_mirror_page *b, unsigned b_depth) {
    unsigned least = a_depth < b_depth ? a_depth : b_depth;
    return a->host == b->host && !memcmp(a->segment, b->segment, least * sizeof *a->segment);
}

static doppel_status meet(dp_mirrors_work *work, uint64_t x, uint64_t y, doppel_error *error) {
    const dp_mirror_page *a = &work->table[x], *b = &work->table[y];
    if (!dp_mirror_near(work, a, b))
        return DOPPEL_OK;
    unsigned common = common_end(a, b), a_depth = (unsigned)a->depth - common, b_depth = (unsigned)b->depth - common;
    if (nested(a, a_depth, b, b_depth))
        return DOPPEL_OK;
    uint64_t a_prefix = hash_prefix(a, a_depth), b_prefix = hash_prefix(b, b_depth);
    uint64_t hit[4] = {a_prefix, b_prefix, x << 4 | a_depth, y << 4 | b_depth};
    if (a_prefix > b_prefix) {
        uint64_t turned[4] = {b_prefix, a_prefix, hit[3], hit[2]};
        memcpy(hit, turned, sizeof hit);
    }
    return dp_sorter_add(&work->hits, hit, error);
}

/* ---- crowds ---- */

/* Those held from `from` on meet each other. */
static doppel_status meet_all(dp_mirrors_work *work, const crowd *c, size_t from, size_t end, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = from; i < end; i++)
        for (size_t j = i + 1; j < end && status == DOPPEL_OK; j++)
            status = meet(work, c->held[i], c->held[j], error);
    return status;
}

/* Ends those that are held. */
static doppel_status end_held(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = c->star ? DOPPEL_OK : meet_all(work, c, 0, c->count, error);
    c->count = 0;
    c->star = false;
    return status;
}

/* From here on only pages with one parent meet; those with the last parent stay held. */
static doppel_status split(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    size_t from = 0, end = 0;
    for (; end < c->count && status == DOPPEL_OK; end++)
        if (c->parent[end] != c->parent[from]) {
            status = meet_all(work, c, from, end, error);
            from = end;
        }
    memmove(c->held, c->held + from, (c->count - from) * sizeof *c->held);
    memmove(c->parent, c->parent + from, (c->count - from) * sizeof *c->parent);
    c->count -= from;
    c->split = true;
    work->counts.frequent++;
    return status;
}

/* From here on each meets the first. */
static doppel_status make_star(dp_mirrors_work *work, crowd *c, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 1; i < c->count && status == DOPPEL_OK; i++)
        status = meet(work, c->held[0], c->held[i], error);
    c->star = true;
    return status;
}

static doppel_status add_page(dp_mirrors_work *work, crowd *c, uint64_t parent, uint64_t page, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (c->count == DP_MIRROR_CROWD && !c->split)
        status = split(work, c, error);
    if (status == DOPPEL_OK && c->split && c->count && c->parent[0] != parent)
        status = end_held(work, c, error);
    if (status != DOPPEL_OK)
        return status;
    if (c->count < DP_MIRROR_CROWD) {
        c->held[c->count] = page;
        c->parent[c->count++] = parent;
        return DOPPEL_OK;
    }
    if (!c->star)
        status = make_star(work, c, error);
    return status == DOPPEL_OK ? meet(work, c->held[0], page, error) : status;
}

/* ---- keys ---- */

static doppel_status add_keys(dp_mirrors_work *work, dp_sorter *keys, uint64_t number, doppel_error *error) {
    const dp_mirror_page *page = &work->table[number];
    doppel_status status = DOPPEL_OK;
    uint64_t last = page->depth ? page->segment[page->depth - 1] : 0;
    uint64_t parent = page->depth > 1 ? page->segment[page->depth - 2] : 0;
    for (size_t band = 0; band < DP_MIRROR_BANDS && status == DOPPEL_OK; band++) {
        uint64_t slots = dp_load_tail(page->slot + band * DP_MIRROR_ROWS, DP_MIRROR_ROWS);
        uint64_t record[3] = {dp_hash_mix(dp_hash_mix(last) ^ (slots << 8 | band)), parent, number};
        status = dp_sorter_add(keys, record, error);
    }
    return status;
}

static doppel_status meet_by_key(dp_mirrors_work *work, dp_sorter *keys, doppel_error *error) {
    crowd c = {.count = 0};
    const uint64_t *record;
    doppel_status status = dp_sorter_finish(keys, error);
    while (status == DOPPEL_OK && (status = dp_sorter_next(keys, &record, error)) == DOPPEL_OK && record) {
        if (record[0] != c.key) {
            status = end_held(work, &c, error);
            c.split = false;
            c.key = record[0];
        }
        if (status == DOPPEL_OK)
            status = add_page(work, &c, record[1], record[2], error);
    }
    return status == DOPPEL_OK ? end_held(work, &c, error) : status;
}

doppel_status dp_mirrors_meet(dp_mirrors_work *work, doppel_error *error) {
    dp_sorter keys;
    dp_sorter_options options = {
        .words = 3, .keys = 2, .memory = work->memory / 2, .tmp = work->options.tmp, .stop = work->input.stop};
    doppel_status status = DOPPEL_OK;
    dp_sorter_init(&keys, &options);
    options.words = options.keys = 4;
    dp_sorter_init(&work->hits, &options);
    for (uint64_t i = 0; i < work->count && status == DOPPEL_OK; i++)
        status = add_keys(work, &keys, i, error);
    if (status == DOPPEL_OK)
        status = meet_by_key(work, &keys, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&keys);
    dp_sorter_free(&keys);
    return status == DOPPEL_OK ? dp_sorter_finish(&work->hits, error) : status;
}

/* overlap.c - documents that contain much of one another: reading; pairs that share hashes; what they share
 * (compare.c).
 *
 * Threads sketch and compress; what they write for a document (its head, id, packed text, hashes) is processed in input
 * order: the text goes to a file, the hashes and the digest to be sorted. Then each sorted hash that occurs in several
 * documents hits their pairs.
 *
 * A hash of a run makes a candidate by itself, as the same words do. Hashes for containment are counted, where they are
 * keys of one of the two documents: of the x keys of a document whose containment is c, a number near c * x is shared
 * (compare.c). A hash that stands in more than MOST_MEMBERS documents hits only the pairs of each with the first; it is
 * counted, apart, so that those it does not hit can be given the benefit of the doubt. */
#include "overlap/overlap.h"

#include <stdlib.h>
#include <zstd.h>

/* Fast: compression should cost less than sketching. */
#define PACK_LEVEL 1

/* Digests of earlier documents kept to recognise copies at once: 1 MiB. */
#define SEEN ((size_t)1 << 16)

/* A hash makes at most half this many pairs per document. */
enum { MOST_MEMBERS = 128 };

/* Whether documents are on two sides: those of `against` and the others. */
static bool has_two_sides(const dp_overlap_work *work) {
    return work->options.against_count;
}

/* ---- reading, on threads ---- */

typedef struct overlap_reader {
    dp_overlap_work *work;
    dp_text_sketcher text;
    ZSTD_CCtx *packer;
    dp_buffer packed;
    dp_overlap_samples samples;
} overlap_reader;

static void end_reader(void *user, void *state) {
    overlap_reader *r = state;
    (void)user;
    dp_text_sketcher_free(&r->text);
    ZSTD_freeCCtx(r->packer);
    dp_buffer_free(&r->packed);
    free(r->samples.hash);
    free(r->samples.chosen);
    free(r);
}

static doppel_status begin_reader(void *user, void **state) {
    dp_overlap_work *work = user;
    overlap_reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->work = work;
    r->packer = ZSTD_createCCtx();
    doppel_status status =
        dp_text_sketcher_init(&r->text, work->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_FEATURES, work->options.content);
    if (status == DOPPEL_OK && !r->packer)
        status = DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_reader(user, r);
    return status;
}

static doppel_status pack(overlap_reader *r, const doppel_page *page) {
    if (!dp_reserve(&r->packed.data, &r->packed.capacity, ZSTD_compressBound(page->text.length), 1))
        return DOPPEL_ERROR_MEMORY;
    r->packed.size = ZSTD_compressCCtx(r->packer, r->packed.data, r->packed.capacity, page->text.data,
                                       page->text.length, PACK_LEVEL);
    return ZSTD_isError(r->packed.size) ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* doppel_work.document */
static doppel_status read_document(void *state, const doppel_document *document, doppel_output *output) {
    overlap_reader *r = state;
    doppel_page page;
    doppel_sketch sketch;
    DP_TRY(dp_text_sketcher_run(&r->text, document, &page, &sketch));
    DP_TRY(pack(r, &page));
    size_t features = sketch.words ? (size_t)sketch.features : 0;
    if (!dp_overlap_sample(&r->work->plan, sketch.feature_hashes, features, &r->samples))
        return DOPPEL_ERROR_MEMORY;
    const dp_overlap_head head = {document->id.length,
                                  page.text.length,
                                  r->packed.size,
                                  r->samples.count,
                                  {dp_load64(sketch.digest), dp_load64(sketch.digest + 8)}};
    DP_TRY(doppel_output_write(output, dp_bytes(&head, sizeof head)));
    DP_TRY(doppel_output_write(output, document->id));
    DP_TRY(doppel_output_write(output, (doppel_slice){r->packed.data, r->packed.size}));
    return doppel_output_write(output, dp_bytes(r->samples.hash, r->samples.count * sizeof(uint64_t)));
}

/* ---- reading, in input order ---- */

/* Whether a document with these words came before, as far as it is remembered; those of the side that is paired with
 * all are never copies. */
static bool is_known_copy(dp_overlap_work *work, const uint64_t digest[2]) {
    if (has_two_sides(work) && work->against != SIZE_MAX)
        return false;
    dp_overlap_seen *seen = &work->seen[digest[0] % SEEN];
    if (seen->digest[0] == digest[0] && seen->digest[1] == digest[1])
        return true;
    *seen = (dp_overlap_seen){{digest[0], digest[1]}};
    return false;
}

static doppel_status sort_hashes(dp_overlap_work *work, const dp_overlap_head *head, const char *hashes) {
    const uint64_t *digest = head->digest;
    size_t keys = 0;
    if (!digest[0] && !digest[1])
        return DOPPEL_OK;
    DP_TRY(dp_sorter_add(&work->digests, (uint64_t[3]){digest[0], digest[1], work->count}, &work->error));
    if (is_known_copy(work, digest))
        return DOPPEL_OK;
    for (size_t i = 0; i < head->sample_count; i++) {
        uint64_t record[2] = {0, (uint64_t)work->count << 1};
        memcpy(record, hashes + 8 * i, 8);
        record[1] |= !dp_overlap_of_run(record[0]) && keys++ < work->plan.keys;
        DP_TRY(dp_sorter_add(&work->samples, record, &work->error));
    }
    work->counts.samples += head->sample_count;
    return DOPPEL_OK;
}

static doppel_status take_document(dp_overlap_work *work, const dp_overlap_head *head, const char *bytes) {
    size_t kept = sizeof *head + (size_t)(head->id_length + head->packed_length);
    if (work->count == DP_OVERLAP_MOST_DOCUMENTS)
        return dp_fail(&work->error, DOPPEL_ERROR_INPUT, "there are more than %llu documents",
                       (unsigned long long)DP_OVERLAP_MOST_DOCUMENTS);
    if (!dp_reserve(&work->at, &work->room, work->count + 1, sizeof *work->at))
        return dp_no_memory(&work->error);
    DP_TRY(sort_hashes(work, head, bytes + kept));
    work->at[work->count++] = dp_append_file_size(&work->texts);
    return dp_append_file_add(&work->texts, bytes, kept, &work->error);
}

/* doppel_work.emit: whole documents, but where there was no memory to write one: that ends the run. */
static doppel_status take_documents(void *user, doppel_slice bytes) {
    dp_overlap_head head;
    for (size_t taken; bytes.length >= sizeof head; bytes.data += taken, bytes.length -= taken) {
        memcpy(&head, bytes.data, sizeof head);
        taken = sizeof head + (size_t)(head.id_length + head.packed_length + head.sample_count * sizeof(uint64_t));
        if (taken > bytes.length)
            break;
        DP_TRY(take_document(user, &head, bytes.data));
    }
    return DOPPEL_OK;
}

static doppel_status read_paths(dp_overlap_work *work, const char *const *paths, size_t count,
                                const doppel_input_options *input, doppel_input_counts *counts, doppel_error *error) {
    const doppel_work reading = {
        .user = work, .begin = begin_reader, .document = read_document, .end = end_reader, .emit = take_documents};
    doppel_status status = doppel_input_run(paths, count, input, &reading, counts, error);
    if (status != DOPPEL_OK && status == work->error.code && error)
        *error = work->error;
    return status;
}

/* Whether a path that others are to be compared with has texts. */
static doppel_status check_against(const char *path, doppel_error *error) {
    char file[4096];
    if (dp_is_index(path))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "is an index, and overlaps are found in texts: give the documents, or, if it keeps texts, "
                          "what doppel export --index DIR -o FILE writes");
    if (dp_is_journal(path) || dp_is_work(path, file))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "holds sketches, and overlaps are found in texts: give the documents");
    return DOPPEL_OK;
}

static doppel_status read_against(dp_overlap_work *work, doppel_error *error) {
    const doppel_overlap_options *o = &work->options;
    doppel_input_options input = work->input;
    if (o->against_input)
        dp_copy_options(&input, o->against_input, sizeof input);
    input.size = sizeof input;
    for (size_t i = 0; i < o->against_count; i++)
        DP_TRY(check_against(o->against[i], error));
    DP_TRY(read_paths(work, o->against, o->against_count, &input, &work->counts.against, error));
    if (!input.refuse_bad)
        return DOPPEL_OK;
    return dp_check_compared(o->against, o->against_count, &work->counts.against, false, error);
}

static doppel_status read_all(dp_overlap_work *work, const char *const *paths, size_t path_count, doppel_error *error) {
    work->against = SIZE_MAX;
    if (!(work->seen = calloc(SEEN, sizeof *work->seen)))
        return dp_no_memory(error);
    if (has_two_sides(work))
        DP_TRY(read_against(work, error));
    work->against = work->count;
    return read_paths(work, paths, path_count, &work->input, &work->counts.input, error);
}

/* ---- the same words ---- */

static doppel_status hit(dp_overlap_work *work, uint64_t a, uint64_t b, unsigned counts, doppel_error *error) {
    uint64_t record = a << 33 | b << 2 | counts;
    return dp_sorter_add(&work->hits, &record, error);
}

/* With two sides, a document of `against` stands for those of its side with the same words, and all of the other side
 * are paired with it; else the first stands for all. */
static doppel_status pair_copy(dp_overlap_work *work, uint32_t first, uint32_t document, doppel_error *error) {
    bool other_side = has_two_sides(work) && document >= work->against;
    work->counts.copies++;
    if (!other_side)
        work->first[document] = first;
    if (!has_two_sides(work))
        return hit(work, first, document, DP_OVERLAP_SURE, error);
    return other_side && first < work->against ? hit(work, document, first, DP_OVERLAP_SURE, error) : DOPPEL_OK;
}

static doppel_status find_copies(dp_overlap_work *work, doppel_error *error) {
    uint64_t digest[2] = {0, 0};
    uint32_t first = 0;
    const uint64_t *record;
    DP_TRY(dp_sorter_finish(&work->digests, error));
    for (;;) {
        DP_TRY(dp_sorter_next(&work->digests, &record, error));
        if (!record)
            return DOPPEL_OK;
        if (record[0] == digest[0] && record[1] == digest[1]) {
            DP_TRY(pair_copy(work, first, (uint32_t)record[2], error));
        } else {
            digest[0] = record[0];
            digest[1] = record[1];
            first = (uint32_t)record[2];
        }
    }
}

/* ---- the same hashes ---- */

/* A document with the hash. */
typedef struct hash_member {
    uint32_t document;
    bool key; /* the hash is one of its keys */
} hash_member;

/* The documents with one hash: the first of them, with two sides of `against` alone. */
typedef struct hash_members {
    uint64_t hash;
    hash_member member[MOST_MEMBERS];
    size_t count;
    bool frequent; /* there are more, and only the first counts */
} hash_members;

static void count_key(dp_overlap_work *work, const hash_members *h, hash_member m) {
    uint32_t *counter = h->frequent ? work->frequent : work->live;
    counter[m.document] += m.key;
}

static doppel_status pair_up(dp_overlap_work *work, const hash_members *h, hash_member a, hash_member b,
                             doppel_error *error) {
    if (dp_overlap_of_run(h->hash))
        return hit(work, a.document, b.document, DP_OVERLAP_SURE, error);
    unsigned counts = (a.key ? DP_OVERLAP_KEY_A : 0) | (b.key ? DP_OVERLAP_KEY_B : 0);
    return counts ? hit(work, a.document, b.document, counts, error) : DOPPEL_OK;
}

/* A document of the other side than `against`: it is paired with all members. */
static doppel_status pair_other(dp_overlap_work *work, const hash_members *h, hash_member m, doppel_error *error) {
    count_key(work, h, m);
    for (size_t i = 0; i < (h->frequent ? 1 : h->count); i++)
        DP_TRY(pair_up(work, h, m, h->member[i], error));
    return DOPPEL_OK;
}

/* One more document than there is room for, or many more. */
static doppel_status add_frequent(dp_overlap_work *work, hash_members *h, hash_member m, doppel_error *error) {
    bool one_side = !has_two_sides(work);
    for (size_t i = 1; i < h->count && one_side && !h->frequent; i++)
        DP_TRY(pair_up(work, h, h->member[0], h->member[i], error));
    work->counts.frequent += !h->frequent;
    h->frequent = true;
    count_key(work, h, m);
    return one_side ? pair_up(work, h, h->member[0], m, error) : DOPPEL_OK;
}

static doppel_status add_member(dp_overlap_work *work, hash_members *h, hash_member m, doppel_error *error) {
    if (work->first[m.document] != m.document)
        return DOPPEL_OK;
    if (has_two_sides(work) && m.document >= work->against)
        return pair_other(work, h, m, error);
    if (h->count == MOST_MEMBERS)
        return add_frequent(work, h, m, error);
    h->member[h->count++] = m;
    return DOPPEL_OK;
}

/* After the last document with the hash. */
static doppel_status end_hash(dp_overlap_work *work, hash_members *h, doppel_error *error) {
    bool all_pairs = !has_two_sides(work) && !h->frequent;
    for (size_t i = 0; i < h->count; i++) {
        count_key(work, h, h->member[i]);
        for (size_t j = i + 1; j < h->count && all_pairs; j++)
            DP_TRY(pair_up(work, h, h->member[i], h->member[j], error));
    }
    h->count = 0;
    h->frequent = false;
    return DOPPEL_OK;
}

static doppel_status find_shared(dp_overlap_work *work, doppel_error *error) {
    hash_members h = {.count = 0};
    const uint64_t *record;
    DP_TRY(dp_sorter_finish(&work->samples, error));
    for (;;) {
        DP_TRY(dp_sorter_next(&work->samples, &record, error));
        if (!record)
            return end_hash(work, &h, error);
        if (record[0] != h.hash) {
            DP_TRY(end_hash(work, &h, error));
            h.hash = record[0];
        }
        DP_TRY(add_member(work, &h, (hash_member){(uint32_t)(record[1] >> 1), record[1] & 1}, error));
    }
}

/* Fills work->hits. */
static doppel_status find_hits(dp_overlap_work *work, doppel_error *error) {
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
    DP_THEN(status, find_shared(work, error));
    work->counts.spilled_bytes += dp_sorter_spilled(&work->samples);
    dp_sorter_free(&work->samples);
    DP_THEN(status, dp_sorter_finish(&work->hits, error));
    return status;
}

/* ---- the call ---- */

/* Hashes take most of the memory while documents are read, hits while hashes are scanned; digests are few. The hashes'
 * sorter then holds parts of its runs, within its own share. */
static void init_sorters(dp_overlap_work *work) {
    dp_sorter_options options = {.tmp = work->options.tmp, .stop = work->input.stop};
    options.words = 3, options.keys = 2, options.memory = work->memory / 8;
    dp_sorter_init(&work->digests, &options);
    options.words = 2, options.keys = 1, options.memory = work->memory / 2;
    dp_sorter_init(&work->samples, &options);
    /* If hits are not counted, one per pair is enough. */
    options.words = 1, options.unique = !work->plan.sample, options.memory = work->memory / 8 * 3;
    dp_sorter_init(&work->hits, &options);
}

static doppel_status prepare(dp_overlap_work *work, const doppel_overlap_options *given, doppel_error *error) {
    doppel_overlap_options *o = &work->options;
    if (given)
        dp_copy_options(o, given, sizeof *o);
    if (o->input)
        dp_copy_options(&work->input, o->input, sizeof work->input);
    work->input.size = sizeof work->input;
    work->recipe = o->recipe ? o->recipe : dp_recipe_default();
    work->threads = dp_threads_within(dp_thread_count(work->input.threads), o->memory);
    work->input.threads = (int)work->threads;
    work->memory = o->memory ? o->memory : dp_memory_default();
    DP_TRY(dp_overlap_plan_make(o, work->recipe, &work->plan, error));
    init_sorters(work);
    return dp_append_file_open(&work->texts, NULL, NULL, o->tmp, error);
}

doppel_status doppel_overlap_find(const char *const *paths, size_t path_count, const doppel_overlap_options *options,
                                  doppel_overlap_counts *counts, doppel_error *error) {
    dp_overlap_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    DP_THEN(status, read_all(&work, paths, path_count, error));
    DP_THEN(status, find_hits(&work, error));
    DP_THEN(status, dp_overlap_compare(&work, error));
    if (counts)
        *counts = work.counts;
    dp_append_file_close(&work.texts);
    dp_sorter_free(&work.digests);
    dp_sorter_free(&work.samples);
    dp_sorter_free(&work.hits);
    free(work.at);
    free(work.seen);
    free(work.first);
    free(work.live);
    free(work.frequent);
    return status;
}

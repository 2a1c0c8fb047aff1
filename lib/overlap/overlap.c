/* overlap.c - documents that contain much of one another: read, who shares hashes, what do they share. */
#include "overlap/overlap.h"
#include "input/input.h"
#include "sketch/sketch.h"

#include <stdlib.h>
#include <zstd.h>

/* ---- documents are read: each text goes to a file, packed; its hashes and its digest to be sorted.
 *
 * Threads sketch and pack; what they write for a document (its head, id, packed text, hashes) is taken apart in input
 * order. */

/* Fast: packing is to cost less than sketching. */
#define PACK_LEVEL 1

/* Digests of earlier documents that are kept to tell copies at once: 1 MiB. */
#define SEEN ((size_t)1 << 16)

typedef struct reader {
    dp_overlap_work *work;
    doppel_sketcher *sketcher;
    doppel_page_reader *pages;
    ZSTD_CCtx *packer;
    dp_buffer packed;
    dp_overlap_samples samples;
} reader;

/* ---- on many threads ---- */

static void end_reader(void *user, void *state) {
    (void)user;
    reader *r = state;
    doppel_sketcher_free(r->sketcher);
    doppel_page_reader_free(r->pages);
    ZSTD_freeCCtx(r->packer);
    dp_buffer_free(&r->packed);
    free(r->samples.hash);
    free(r);
}

static doppel_status begin_reader(void *user, void **state) {
    dp_overlap_work *work = user;
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->work = work;
    r->packer = ZSTD_createCCtx();
    doppel_status status =
        doppel_sketcher_create(work->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_FEATURES, &r->sketcher, NULL);
    if (status == DOPPEL_OK)
        status = doppel_page_reader_create(&r->pages);
    if (status == DOPPEL_OK && !r->packer)
        status = DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_reader(user, r);
    return status;
}

static doppel_status pack(reader *r, const doppel_page *page) {
    size_t room = ZSTD_compressBound(page->text.length);
    if (!dp_reserve(&r->packed.data, &r->packed.capacity, room, 1))
        return DOPPEL_ERROR_MEMORY;
    size_t size = ZSTD_compressCCtx(r->packer, r->packed.data, r->packed.capacity, page->text.data, page->text.length,
                                    PACK_LEVEL);
    if (ZSTD_isError(size))
        return DOPPEL_ERROR_MEMORY;
    r->packed.size = size;
    return DOPPEL_OK;
}

static doppel_status write_document(reader *r, const doppel_document *document, const dp_overlap_head *head,
                                    doppel_output *output) {
    doppel_status status = doppel_output_write(output, dp_bytes(head, sizeof *head));
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, document->id);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, (doppel_slice){r->packed.data, r->packed.size});
    return status == DOPPEL_OK
               ? doppel_output_write(output, dp_bytes(r->samples.hash, r->samples.count * sizeof(uint64_t)))
               : status;
}

static doppel_status read_document(void *state, const doppel_document *document, doppel_output *output) {
    reader *r = state;
    doppel_page page;
    doppel_sketch sketch;
    doppel_status status = doppel_document_text(r->pages, document, r->work->options.content, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(r->sketcher, page.text, &sketch);
    if (status == DOPPEL_OK)
        status = pack(r, &page);
    if (status != DOPPEL_OK)
        return status;
    if (!dp_overlap_sample(&r->work->plan, sketch.feature_hashes, sketch.words ? (size_t)sketch.features : 0,
                           &r->samples))
        return DOPPEL_ERROR_MEMORY;
    dp_overlap_head head = {document->id.length,
                            page.text.length,
                            r->packed.size,
                            r->samples.count,
                            {dp_load64(sketch.digest), dp_load64(sketch.digest + 8)}};
    return write_document(r, document, &head, output);
}

/* ---- in input order ---- */

/* Whether a document with these words came before, as far as it is remembered; those of the side that is paired with
 * all are never copies. */
static bool is_known_copy(dp_overlap_work *work, const dp_overlap_head *head) {
    if (dp_overlap_two_sides(work) && work->against != SIZE_MAX)
        return false;
    dp_overlap_seen *seen = &work->seen[head->digest[0] % SEEN];
    if (seen->digest[0] == head->digest[0] && seen->digest[1] == head->digest[1])
        return true;
    *seen = (dp_overlap_seen){{head->digest[0], head->digest[1]}};
    return false;
}

static doppel_status sort_hashes(dp_overlap_work *work, const dp_overlap_head *head, const char *hashes) {
    if (!head->digest[0] && !head->digest[1])
        return DOPPEL_OK;
    doppel_status status =
        dp_sorter_add(&work->digests, (uint64_t[3]){head->digest[0], head->digest[1], work->count}, &work->error);
    if (status != DOPPEL_OK || is_known_copy(work, head))
        return status;
    size_t keys = 0;
    for (size_t i = 0; i < head->sample_count && status == DOPPEL_OK; i++) {
        uint64_t record[2] = {0, (uint64_t)work->count << 1};
        memcpy(record, hashes + 8 * i, 8);
        record[1] |= !dp_overlap_of_run(record[0]) && keys++ < work->plan.keys;
        status = dp_sorter_add(&work->samples, record, &work->error);
    }
    work->counts.samples += head->sample_count;
    return status;
}

static doppel_status take_document(dp_overlap_work *work, const dp_overlap_head *head, const char *bytes) {
    size_t kept = sizeof *head + (size_t)(head->id_length + head->packed_length);
    if (work->count == DP_OVERLAP_MOST_DOCUMENTS)
        return dp_fail(&work->error, DOPPEL_ERROR_INPUT, "there are more than %llu documents",
                       (unsigned long long)DP_OVERLAP_MOST_DOCUMENTS);
    if (!dp_reserve(&work->at, &work->room, work->count + 1, sizeof *work->at))
        return dp_no_memory(&work->error);
    doppel_status status = sort_hashes(work, head, bytes + kept);
    work->at[work->count] = dp_spill_size(&work->texts);
    if (status == DOPPEL_OK)
        status = dp_spill_add(&work->texts, bytes, kept, &work->error);
    work->count++;
    return status;
}

/* doppel_work.emit: whole documents, but where there was no memory to write one: that ends the run. */
static doppel_status take_documents(void *user, doppel_slice bytes) {
    doppel_status status = DOPPEL_OK;
    dp_overlap_head head;
    for (size_t taken; bytes.length >= sizeof head && status == DOPPEL_OK; bytes.data += taken, bytes.length -= taken) {
        memcpy(&head, bytes.data, sizeof head);
        taken = sizeof head + (size_t)(head.id_length + head.packed_length + head.sample_count * sizeof(uint64_t));
        if (taken > bytes.length)
            break;
        status = take_document(user, &head, bytes.data);
    }
    return status;
}

/* overlap_read.c: reads documents. */
static doppel_status overlap_read(dp_overlap_work *work, const char *const *paths, size_t count,
                                  const doppel_input_options *input, doppel_input_counts *counts, doppel_error *error) {
    doppel_work reading = {
        .user = work, .begin = begin_reader, .document = read_document, .end = end_reader, .emit = take_documents};
    if (!work->seen && !(work->seen = calloc(SEEN, sizeof *work->seen)))
        return dp_no_memory(error);
    doppel_status status = doppel_input_run(paths, count, input, &reading, counts, error);
    if (status != DOPPEL_OK && status == work->error.code && error)
        *error = work->error;
    return status;
}

/* ---- who shares hashes: the sorted hashes are gone through, and each that stands in several documents
 * hits their pairs.
 *
 * A hash of a run makes a candidate by itself, as the same words do. Hashes for containment are counted, where they are
 * keys of one of the two documents: of the x keys of a document whose containment is c, a number near c * x is shared
 * (compare.c). A hash that stands in more than DP_OVERLAP_CROWD documents hits only the pairs of each with the
 * first; it is counted, apart, so that those it does not hit can be given the benefit of the doubt. */

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

/* overlap_hits.c: fills work->hits. */
static doppel_status overlap_find_hits(dp_overlap_work *work, doppel_error *error) {
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

/* Hashes take most of the memory while documents are read, hits while hashes are gone through; digests are few. The
 * hashes' sorter then holds parts of its runs, within its own share. */
static void init_sorters(dp_overlap_work *work) {
    dp_sorter_options options = {.tmp = work->options.tmp, .stop = work->input.stop};
    options.words = 3, options.keys = 2, options.memory = work->memory / 8;
    dp_sorter_init(&work->digests, &options);
    options.words = 2, options.keys = 1, options.memory = work->memory / 2;
    dp_sorter_init(&work->samples, &options);
    /* Where hits are not counted, one of each pair is enough. */
    options.words = 1, options.unique = !work->plan.sample, options.memory = work->memory / 8 * 3;
    dp_sorter_init(&work->hits, &options);
}

static doppel_status prepare(dp_overlap_work *work, const doppel_overlap_options *options, doppel_error *error) {
    if (options)
        dp_copy_options(&work->options, options, sizeof work->options);
    if (work->options.input)
        dp_copy_options(&work->input, work->options.input, sizeof work->input);
    work->input.size = sizeof work->input;
    work->recipe = work->options.recipe ? work->options.recipe : dp_recipe_default();
    work->threads = dp_thread_count(work->input.threads);
    work->memory = work->options.memory ? work->options.memory : dp_memory_default();
    doppel_status status = dp_overlap_plan_make(&work->options, work->recipe, &work->plan, error);
    init_sorters(work);
    return status == DOPPEL_OK ? dp_spill_open(&work->texts, NULL, NULL, work->options.tmp, error) : status;
}

/* Whether there are texts to compare with. */
static doppel_status check_against(const char *path, bool refuse, doppel_error *error) {
    char file[4096];
    if (dp_is_index(path))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "is an index, and overlaps are found in texts: give the documents, or, if it keeps texts, "
                          "what doppel export --index DIR -o FILE writes");
    if (dp_is_journal(path) || dp_is_work(path, file))
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "holds sketches, and overlaps are found in texts: give the documents");
    if (refuse && dp_input_is_empty_folder(path))
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, path, 0, "is an empty folder: there is nothing to compare with");
    return DOPPEL_OK;
}

static doppel_status read_against(dp_overlap_work *work, doppel_error *error) {
    const doppel_overlap_options *options = &work->options;
    doppel_input_options input = work->input;
    doppel_status status = DOPPEL_OK;
    if (options->against_input)
        dp_copy_options(&input, options->against_input, sizeof input);
    input.size = sizeof input;
    for (size_t i = 0; i < options->against_count && status == DOPPEL_OK; i++)
        status = check_against(options->against[i], input.refuse_bad, error);
    if (status == DOPPEL_OK)
        status = overlap_read(work, options->against, options->against_count, &input, &work->counts.against, error);
    if (status == DOPPEL_OK && input.refuse_bad && work->counts.against.unopened)
        status = dp_fail(error, DOPPEL_ERROR_INPUT,
                         "not all that is to be compared with could be read; --allow-bad goes on without it");
    if (status == DOPPEL_OK && input.refuse_bad && !work->counts.against.documents && work->counts.against.bytes)
        status = dp_fail_at(error, DOPPEL_ERROR_INPUT, options->against[0], 0,
                            "has no document: there is nothing to compare with");
    return status;
}

static doppel_status read_all(dp_overlap_work *work, const char *const *paths, size_t path_count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    work->against = SIZE_MAX;
    if (work->options.against_count)
        status = read_against(work, error);
    work->against = work->count;
    return status == DOPPEL_OK ? overlap_read(work, paths, path_count, &work->input, &work->counts.input, error)
                               : status;
}

static void free_work(dp_overlap_work *work) {
    dp_spill_close(&work->texts);
    dp_sorter_free(&work->digests);
    dp_sorter_free(&work->samples);
    dp_sorter_free(&work->hits);
    free(work->at);
    free(work->seen);
    free(work->first);
    free(work->live);
    free(work->frequent);
}

doppel_status doppel_overlap_find(const char *const *paths, size_t path_count, const doppel_overlap_options *options,
                                  doppel_overlap_counts *counts, doppel_error *error) {
    dp_overlap_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    if (status == DOPPEL_OK)
        status = read_all(&work, paths, path_count, error);
    if (status == DOPPEL_OK)
        status = overlap_find_hits(&work, error);
    if (status == DOPPEL_OK)
        status = dp_overlap_verify(&work, error);
    if (counts)
        *counts = work.counts;
    free_work(&work);
    return status;
}

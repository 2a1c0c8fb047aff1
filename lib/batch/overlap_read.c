/* overlap_read.c - documents are read: each text goes to a file, packed; its hashes and its digest to be sorted.
 *
 * Threads sketch and pack; what they write for a document (its head, id, packed text, hashes) is taken apart in input
 * order. */
#include "batch/overlap.h"
#include "sketch/sketch.h"

#include <stdlib.h>
#include <zstd.h>

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
    size_t room = ZSTD_compressBound(page->text_length);
    if (!dp_reserve(&r->packed.data, &r->packed.capacity, room, 1))
        return DOPPEL_ERROR_MEMORY;
    size_t size =
        ZSTD_compressCCtx(r->packer, r->packed.data, r->packed.capacity, page->text, page->text_length, PACK_LEVEL);
    if (ZSTD_isError(size))
        return DOPPEL_ERROR_MEMORY;
    r->packed.size = size;
    return DOPPEL_OK;
}

static doppel_status write_document(reader *r, const doppel_document *document, const dp_overlap_head *head,
                                    doppel_output *output) {
    doppel_status status = doppel_output_write(output, head, sizeof *head);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, document->id, document->id_length);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, r->packed.data, r->packed.size);
    return status == DOPPEL_OK ? doppel_output_write(output, r->samples.hash, r->samples.count * sizeof(uint64_t))
                               : status;
}

static doppel_status read_document(void *state, const doppel_document *document, doppel_output *output) {
    reader *r = state;
    doppel_page page;
    doppel_sketch sketch;
    doppel_status status = doppel_document_text(r->pages, document, r->work->options.content, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(r->sketcher, page.text, page.text_length, &sketch);
    if (status == DOPPEL_OK)
        status = pack(r, &page);
    if (status != DOPPEL_OK)
        return status;
    if (!dp_overlap_sample(&r->work->plan, sketch.feature_hashes, sketch.words ? (size_t)sketch.features : 0,
                           &r->samples))
        return DOPPEL_ERROR_MEMORY;
    dp_overlap_head head = {document->id_length,
                            page.text_length,
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
static doppel_status take_documents(void *user, const char *bytes, size_t length) {
    doppel_status status = DOPPEL_OK;
    dp_overlap_head head;
    for (size_t taken; length >= sizeof head && status == DOPPEL_OK; bytes += taken, length -= taken) {
        memcpy(&head, bytes, sizeof head);
        taken = sizeof head + (size_t)(head.id_length + head.packed_length + head.sample_count * sizeof(uint64_t));
        if (taken > length)
            break;
        status = take_document(user, &head, bytes);
    }
    return status;
}

doppel_status dp_overlap_read(dp_overlap_work *work, const char *const *paths, size_t count,
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

/* mirrors_read.c - pages are read: address, digest and a small signature of each go into a table, sorted by address.
 *
 * Pages without words or without an http address are left out; of pages with one address the first stays. The table is
 * a file of `tmp` that is mapped. */
#include "batch/mirrors.h"
#include "sketch/sketch.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct reader {
    dp_mirrors_work *work;
    doppel_sketcher *sketcher;
    doppel_page_reader *pages;
    dp_buffer canonical;
} reader;

/* ---- on many threads ---- */

static void end_reader(void *user, void *state) {
    (void)user;
    reader *r = state;
    doppel_sketcher_free(r->sketcher);
    doppel_page_reader_free(r->pages);
    dp_buffer_free(&r->canonical);
    free(r);
}

static doppel_status begin_reader(void *user, void **state) {
    dp_mirrors_work *work = user;
    reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->work = work;
    doppel_status status =
        doppel_sketcher_create(work->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, &r->sketcher, NULL);
    if (status == DOPPEL_OK)
        status = doppel_page_reader_create(&r->pages);
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_reader(user, r);
    return status;
}

static doppel_status sign(const doppel_sketch *sketch, dp_mirror_page *page) {
    uint32_t signature[DP_MIRROR_SLOTS];
    doppel_status status = doppel_minhash(sketch->set, sketch->set_count, DP_MIRROR_SLOTS, signature);
    for (size_t i = 0; i < DP_MIRROR_SLOTS && status == DOPPEL_OK; i++)
        page->slot[i] = (uint8_t)signature[i];
    page->digest = dp_load64(sketch->digest);
    return status;
}

static doppel_status read_page(void *state, const doppel_document *document, doppel_output *output) {
    reader *r = state;
    const doppel_mirrors_options *options = &r->work->options;
    dp_mirror_page page;
    doppel_page content;
    doppel_sketch sketch;
    bool found = false;
    if (!document->url_length || document->alias)
        return DOPPEL_OK;
    doppel_status status = dp_mirror_locate(&page, (doppel_slice){document->url, document->url_length},
                                            options->url_without, &r->canonical, &found);
    if (status != DOPPEL_OK || !found)
        return status;
    status = doppel_document_text(r->pages, document, options->content, &content);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(r->sketcher, content.text, content.text_length, &sketch);
    if (status != DOPPEL_OK || !sketch.words)
        return status;
    page.url_length = document->url_length;
    status = sign(&sketch, &page);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, &page, sizeof page);
    return status == DOPPEL_OK ? doppel_output_write(output, document->url, document->url_length) : status;
}

/* ---- in input order ---- */

/* doppel_work.emit: whole pages, each with its URL, but where there was no memory to write one: that ends the run. */
static doppel_status take_pages(void *user, const char *bytes, size_t length) {
    dp_mirrors_work *work = user;
    doppel_status status = DOPPEL_OK;
    while (length >= sizeof(dp_mirror_page) && status == DOPPEL_OK) {
        union {
            dp_mirror_page page;
            uint64_t words[sizeof(dp_mirror_page) / 8];
        } taken;
        memcpy(&taken.page, bytes, sizeof taken.page);
        size_t url_length = (size_t)taken.page.url_length;
        if (sizeof taken.page + url_length > length)
            break;
        taken.page.url_at = dp_spill_size(&work->urls);
        status = dp_spill_add(&work->urls, bytes + sizeof taken.page, url_length, &work->error);
        if (status == DOPPEL_OK)
            status = dp_sorter_add(&work->pages, taken.words, &work->error);
        bytes += sizeof taken.page + url_length;
        length -= sizeof taken.page + url_length;
    }
    return status;
}

doppel_status dp_mirrors_read(dp_mirrors_work *work, const char *const *paths, size_t count, doppel_error *error) {
    doppel_work reading = {
        .user = work, .begin = begin_reader, .document = read_page, .end = end_reader, .emit = take_pages};
    doppel_status status = doppel_input_run(paths, count, &work->input, &reading, &work->counts.input, error);
    if (status != DOPPEL_OK && status == work->error.code && error)
        *error = work->error;
    return status == DOPPEL_OK ? dp_spill_flush(&work->urls, error) : status;
}

/* ---- the table ---- */

static doppel_status write_table(dp_mirrors_work *work, doppel_error *error) {
    uint64_t last[DP_MIRROR_KEYS] = {0};
    const uint64_t *page;
    doppel_status status = dp_sorter_finish(&work->pages, error);
    while (status == DOPPEL_OK && (status = dp_sorter_next(&work->pages, &page, error)) == DOPPEL_OK && page) {
        if (work->count && !memcmp(page, last, sizeof last))
            continue;
        memcpy(last, page, sizeof last);
        work->count++;
        status = dp_spill_add(&work->file, page, sizeof(dp_mirror_page), error);
    }
    return status == DOPPEL_OK ? dp_spill_flush(&work->file, error) : status;
}

doppel_status dp_mirrors_make_table(dp_mirrors_work *work, doppel_error *error) {
    doppel_status status = dp_spill_open(&work->file, NULL, NULL, work->options.tmp, error);
    if (status == DOPPEL_OK)
        status = write_table(work, error);
    work->counts.spilled_bytes +=
        dp_sorter_spilled(&work->pages) + dp_spill_size(&work->urls) + dp_spill_size(&work->file);
    work->counts.pages = work->count;
    dp_sorter_free(&work->pages);
    if (status != DOPPEL_OK || !work->count)
        return status;
    void *mapped = mmap(NULL, work->count * sizeof(dp_mirror_page), PROT_READ, MAP_SHARED, work->file.file.fd, 0);
    if (mapped == MAP_FAILED)
        return dp_fail(error, errno == ENOMEM ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_IO,
                       "the table of pages cannot be mapped: %s", strerror(errno));
    work->table = mapped;
    return DOPPEL_OK;
}

void dp_mirrors_free_table(dp_mirrors_work *work) {
    if (work->table)
        munmap((void *)(uintptr_t)work->table, work->count * sizeof(dp_mirror_page));
    dp_spill_close(&work->file);
    dp_spill_close(&work->urls);
}

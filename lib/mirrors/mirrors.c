/* mirrors.c - hosts and prefixes that mirror each other: read, meet, compare, and give in order of their names. */
#include "mirrors/mirrors.h"
#include "sketch/sketch.h"
#include "text/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- addresses of pages: cut into host and segments, and named again ---- */

/* An address in canonical form, cut. */
typedef struct address {
    doppel_slice host; /* with its port */
    const char *path;  /* behind its first slash */
    const char *end;
} address;

static bool cut(const dp_buffer *canonical, address *cut) {
    doppel_url_parts parts;
    doppel_url_split((doppel_slice){canonical->data, canonical->size}, &parts);
    const char *end = canonical->data + canonical->size, *colon = memchr(canonical->data, ':', canonical->size);
    if (!parts.host.length || !colon || end - colon < 3)
        return false;
    const char *host = colon + 3, *at = host;
    while (at < end && *at != '/' && *at != '?' && *at != '#')
        at++;
    *cut = (address){{host, (size_t)(at - host)}, at + (at < end && *at == '/'), end};
    return true;
}

/* The end of the segment that starts at `from`; the query, slashes and all, belongs to the last one. */
static const char *segment_end(const char *from, const char *end) {
    const char *slash = memchr(from, '/', (size_t)(end - from)), *query = memchr(from, '?', (size_t)(end - from));
    return slash && (!query || slash < query) ? slash : end;
}

static uint64_t hash_of(const char *from, const char *end) {
    uint64_t hash = dp_murmur3(from, (size_t)(end - from), 0);
    return hash ? hash : 1;
}

/* Fills host, segments and depth; `canonical` is memory to use again. *found: it is an http address. */
static doppel_status mirror_locate(dp_mirror_page *page, doppel_slice url, unsigned without, dp_buffer *canonical,
                                   bool *found) {
    address where;
    memset(page, 0, sizeof *page);
    *found = false;
    doppel_status status = dp_url_make(url, NULL, without, canonical);
    if (status != DOPPEL_OK || !cut(canonical, &where))
        return status;
    page->host = hash_of(where.host.data, where.host.data + where.host.length);
    for (const char *from = where.path; from < where.end && page->depth < DP_MIRROR_SEGMENTS;) {
        const char *end = page->depth + 1 < DP_MIRROR_SEGMENTS ? segment_end(from, where.end) : where.end;
        page->segment[page->depth++] = hash_of(from, end);
        from = end + (end < where.end);
    }
    *found = true;
    return DOPPEL_OK;
}

/* The URL of a page as it was read. */
static doppel_status mirror_url(const dp_mirrors_work *work, const dp_mirror_page *page, dp_buffer *url,
                                doppel_error *error) {
    if (!dp_reserve(&url->data, &url->capacity, (size_t)page->url_length + 1, 1))
        return dp_no_memory(error);
    url->size = (size_t)page->url_length;
    url->data[url->size] = 0;
    return dp_spill_read(&work->urls, page->url_at, url->data, url->size, error);
}

/* "host/prefix" of a page, with a NUL. */
static doppel_status mirror_name(const dp_mirrors_work *work, const dp_mirror_page *page, unsigned depth,
                                 dp_buffer *name, doppel_error *error) {
    dp_buffer url = {0}, canonical = {0};
    address where;
    doppel_status status = mirror_url(work, page, &url, error);
    if (status == DOPPEL_OK)
        status = dp_url_make((doppel_slice){url.data, url.size}, NULL, work->options.url_without, &canonical);
    name->size = 0;
    if (status == DOPPEL_OK && cut(&canonical, &where)) {
        const char *end = where.host.data + where.host.length, *from = where.path;
        for (unsigned i = 0; i < depth; i++) {
            end = segment_end(from, where.end);
            from = end + (end < where.end);
        }
        if (!dp_buffer_add(name, where.host.data, (size_t)(end - where.host.data)) || !dp_buffer_add(name, "", 1))
            status = dp_no_memory(error);
    }
    dp_buffer_free(&url);
    dp_buffer_free(&canonical);
    return status;
}

/* ---- pages are read: address, digest and a small signature of each go into a table, sorted by address.
 *
 * Pages without words or without an http address are left out; of pages with one address the first stays. The table is
 * a file of `tmp` that is mapped. */

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
    if (!document->url.length || document->alias.data)
        return DOPPEL_OK;
    doppel_status status = mirror_locate(&page, document->url, options->url_without, &r->canonical, &found);
    if (status != DOPPEL_OK || !found)
        return status;
    status = doppel_document_text(r->pages, document, options->content, &content);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(r->sketcher, content.text, &sketch);
    if (status != DOPPEL_OK || !sketch.words)
        return status;
    page.url_length = document->url.length;
    status = sign(&sketch, &page);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, dp_bytes(&page, sizeof page));
    return status == DOPPEL_OK ? doppel_output_write(output, document->url) : status;
}

/* ---- in input order ---- */

/* doppel_work.emit: whole pages, each with its URL, but where there was no memory to write one: that ends the run. */
static doppel_status take_pages(void *user, doppel_slice bytes) {
    dp_mirrors_work *work = user;
    doppel_status status = DOPPEL_OK;
    while (bytes.length >= sizeof(dp_mirror_page) && status == DOPPEL_OK) {
        union {
            dp_mirror_page page;
            uint64_t words[sizeof(dp_mirror_page) / 8];
        } taken;
        memcpy(&taken.page, bytes.data, sizeof taken.page);
        size_t url_length = (size_t)taken.page.url_length;
        if (sizeof taken.page + url_length > bytes.length)
            break;
        taken.page.url_at = dp_spill_size(&work->urls);
        status = dp_spill_add(&work->urls, bytes.data + sizeof taken.page, url_length, &work->error);
        if (status == DOPPEL_OK)
            status = dp_sorter_add(&work->pages, taken.words, &work->error);
        bytes.data += sizeof taken.page + url_length;
        bytes.length -= sizeof taken.page + url_length;
    }
    return status;
}

static doppel_status mirrors_read(dp_mirrors_work *work, const char *const *paths, size_t count, doppel_error *error) {
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

static doppel_status mirrors_make_table(dp_mirrors_work *work, doppel_error *error) {
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

static void mirrors_free_table(dp_mirrors_work *work) {
    if (work->table)
        munmap((void *)(uintptr_t)work->table, work->count * sizeof(dp_mirror_page));
    dp_spill_close(&work->file);
    dp_spill_close(&work->urls);
}

#define USUAL_PATHS 3
#define USUAL_SCORE 0.5
#define USUAL_SIMILARITY 0.8

/* A mirror with its names. */
typedef struct named {
    dp_mirror_pair pair;
    dp_buffer a, b;
} named;

static bool is_share(double share) {
    return share > 0 && share <= 1;
}

static doppel_status find_page(dp_mirrors_work *work, doppel_error *error) {
    dp_buffer canonical = {0};
    bool found = false;
    doppel_slice url = {work->options.page, strlen(work->options.page)};
    doppel_status status = mirror_locate(&work->page, url, work->options.url_without, &canonical, &found);
    dp_buffer_free(&canonical);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    return found ? DOPPEL_OK : dp_fail(error, DOPPEL_ERROR_USAGE, "%s is no http URL", url.data);
}

static doppel_status prepare(dp_mirrors_work *work, const doppel_mirrors_options *given, doppel_error *error) {
    doppel_mirrors_options *options = &work->options;
    if (given)
        dp_copy_options(options, given, sizeof *options);
    if (options->input)
        dp_copy_options(&work->input, options->input, sizeof work->input);
    work->input.size = sizeof work->input;
    options->min_paths = options->min_paths ? options->min_paths : USUAL_PATHS;
    options->min_score = options->min_score == 0 ? USUAL_SCORE : options->min_score;
    options->similarity = options->similarity == 0 ? USUAL_SIMILARITY : options->similarity;
    if (!is_share(options->min_score) || !is_share(options->similarity))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the score and the similarity are above 0 and at most 1");
    work->recipe = options->recipe ? options->recipe : dp_recipe_default();
    work->memory = options->memory ? options->memory : dp_memory_default();
    work->least_slots = (unsigned)ceil(options->similarity * DP_MIRROR_SLOTS);
    dp_sorter_init(&work->pages, &(dp_sorter_options){.words = sizeof(dp_mirror_page) / 8,
                                                      .keys = DP_MIRROR_KEYS,
                                                      .memory = work->memory,
                                                      .tmp = options->tmp,
                                                      .stop = work->input.stop});
    doppel_status status = dp_spill_open(&work->urls, NULL, NULL, options->tmp, error);
    return status == DOPPEL_OK && options->page ? find_page(work, error) : status;
}

/* ---- giving ---- */

static int by_name(const void *x, const void *y) {
    const named *a = x, *b = y;
    int order = strcmp(a->a.data, b->a.data);
    return order ? order : strcmp(a->b.data, b->b.data);
}

static void turn(named *mirror) {
    dp_mirror_pair *pair = &mirror->pair;
    dp_buffer name = mirror->a;
    mirror->a = mirror->b;
    mirror->b = name;
    *pair = (dp_mirror_pair){pair->b, pair->a, pair->b_depth, pair->a_depth, pair->shared, pair->matching};
}

static doppel_status name_all(const dp_mirrors_work *work, named *mirrors, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++) {
        named *mirror = &mirrors[i];
        mirror->pair = work->pairs[i];
        status = mirror_name(work, &work->table[mirror->pair.a], mirror->pair.a_depth, &mirror->a, error);
        if (status == DOPPEL_OK)
            status = mirror_name(work, &work->table[mirror->pair.b], mirror->pair.b_depth, &mirror->b, error);
        if (status == DOPPEL_OK && strcmp(mirror->a.data, mirror->b.data) > 0)
            turn(mirror);
    }
    if (status == DOPPEL_OK)
        qsort(mirrors, work->pair_count, sizeof *mirrors, by_name);
    return status;
}

static doppel_status give(dp_mirrors_work *work, const named *mirror, const char *page, doppel_error *error) {
    const dp_mirror_pair *pair = &mirror->pair;
    doppel_mirror given = {.a = mirror->a.data,
                           .b = mirror->b.data,
                           .shared = pair->shared,
                           .matching = pair->matching,
                           .score = (double)pair->matching / (double)pair->shared,
                           .page = page};
    work->counts.mirrors++;
    doppel_status status = work->options.mirror ? work->options.mirror(&given, work->options.user) : DOPPEL_OK;
    return status == DOPPEL_OK ? status : dp_fail(error, status, "%s", doppel_status_name(status));
}

/* Gives the mirror if the page is below A, with the same page of B. */
static doppel_status give_page(dp_mirrors_work *work, const named *mirror, doppel_error *error) {
    const dp_mirror_pair *pair = &mirror->pair;
    const dp_mirror_page *a = &work->table[pair->a], *page = &work->page;
    dp_buffer url = {0};
    if (page->host != a->host || memcmp(page->segment, a->segment, pair->a_depth * sizeof *page->segment) != 0)
        return DOPPEL_OK;
    dp_mirror_range range = dp_mirror_below(work, &work->table[pair->b], pair->b_depth);
    size_t at = dp_mirror_seek(work, range, pair->b_depth, page, pair->a_depth);
    bool there = at < range.end && !dp_mirror_order(&work->table[at], pair->b_depth, page, pair->a_depth);
    doppel_status status = there ? mirror_url(work, &work->table[at], &url, error) : DOPPEL_OK;
    if (status == DOPPEL_OK)
        status = give(work, mirror, there ? url.data : NULL, error);
    dp_buffer_free(&url);
    return status;
}

static doppel_status give_page_all(dp_mirrors_work *work, named *mirrors, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++) {
        status = give_page(work, &mirrors[i], error);
        turn(&mirrors[i]);
        if (status == DOPPEL_OK)
            status = give_page(work, &mirrors[i], error);
    }
    return status;
}

static doppel_status give_all(dp_mirrors_work *work, doppel_error *error) {
    named *mirrors = calloc(work->pair_count + 1, sizeof *mirrors);
    doppel_status status = mirrors ? name_all(work, mirrors, error) : dp_no_memory(error);
    if (status == DOPPEL_OK && work->options.page)
        status = give_page_all(work, mirrors, error);
    else
        for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++)
            status = give(work, &mirrors[i], NULL, error);
    for (size_t i = 0; mirrors && i < work->pair_count; i++) {
        dp_buffer_free(&mirrors[i].a);
        dp_buffer_free(&mirrors[i].b);
    }
    free(mirrors);
    return status;
}

/* ---- the call ---- */

static void free_work(dp_mirrors_work *work) {
    mirrors_free_table(work);
    dp_sorter_free(&work->pages);
    dp_sorter_free(&work->hits);
    free(work->pairs);
}

doppel_status doppel_mirrors_find(const char *const *paths, size_t path_count, const doppel_mirrors_options *options,
                                  doppel_mirrors_counts *counts, doppel_error *error) {
    dp_mirrors_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    if (status == DOPPEL_OK)
        status = mirrors_read(&work, paths, path_count, error);
    if (status == DOPPEL_OK)
        status = mirrors_make_table(&work, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_meet(&work, error);
    if (status == DOPPEL_OK)
        status = dp_mirrors_compare(&work, error);
    if (status == DOPPEL_OK)
        status = give_all(&work, error);
    if (counts)
        *counts = work.counts;
    free_work(&work);
    return status;
}

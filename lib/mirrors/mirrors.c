/* mirrors.c - hosts and prefixes that mirror each other: pages are read into a table; prefixes with pages in common are
 * found, and the paths below them compared; the mirrors are given in order of their names.
 *
 * An address is a host and the segments of its path, each as a hash of 64 bits; the query belongs to the last one.
 * Address, digest and a small signature of each page go into the table, sorted by address, which is a mapped file of
 * `tmp`: pages below a prefix are adjacent in it. Pages without words or without an http address are left out; of pages
 * with the same address the first is kept.
 *
 * Pages with the same path end and near content are paired: each page has a few keys, each of the last segment of its
 * path and one band of its signature, and pages with the same key are paired. How far two paths agree from their ends
 * gives two prefixes: every pair of pages of a mirror and its original gives the same two, so these are counted. If
 * more than MOST_PAGES pages have a key, only those with the same second-to-last segment are paired; if these are still
 * more, each is paired with the first.
 *
 * Then the pages below two prefixes are compared. They are adjacent in the table, in order of what follows the prefix.
 * Each page of the smaller side is searched on the other side from where the last one was, in growing steps: so a small
 * mirror of a huge host costs little. */
#include "batch/batch.h"
#include "kernel/kernel.h"
#include "text/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    SEGMENTS = 12, /* the last one covers the rest of longer paths */
    SLOTS = 64,    /* of a signature, 8 bits each: different ones are equal by chance once in 256 */
    /* Pages with the same slots in one band are paired: at similarity s, 1 - (1 - s^6)^10 of them: 0.95 at 0.8. */
    BANDS = 10,
    ROWS = 6
};

/* A line of the table. */
typedef struct mirror_page {
    uint64_t host;               /* a hash */
    uint64_t segment[SEGMENTS];  /* hashes, none of them 0; 0 after the last */
    uint64_t depth;              /* segments */
    uint64_t url_at, url_length; /* in work->urls */
    uint64_t digest;
    uint8_t slot[SLOTS];
} mirror_page;

/* What pages are sorted by. */
enum { KEYS = 1 + SEGMENTS };

/* Two prefixes: the first `depth` segments of a page each. */
typedef struct mirror_pair {
    uint64_t a, b; /* pages, by their number in the table */
    unsigned a_depth, b_depth;
    uint64_t shared, matching;
} mirror_pair;

typedef struct mirrors_work {
    doppel_mirrors_options options;
    doppel_input_options input;
    const doppel_recipe *recipe;
    uint64_t memory;
    mirror_page page;     /* the page of options.page */
    unsigned least_slots; /* equal slots of near-identical pages */
    dp_append_file urls;
    dp_sorter pages;     /* mirror_page */
    dp_append_file file; /* the table */
    const mirror_page *table;
    size_t count;
    dp_sorter hits; /* prefix, prefix, page << 4 | depth of each */
    mirror_pair *pairs;
    size_t pair_count, pair_room;
    doppel_mirrors_counts counts;
    doppel_error error; /* of a callback */
} mirrors_work;

/* ---- two pages compared ---- */

/* Whether two pages are near-identical. */
static bool are_near(const mirrors_work *work, const mirror_page *a, const mirror_page *b) {
    unsigned equal = 0;
    for (size_t i = 0; i < SLOTS; i++)
        equal += a->slot[i] == b->slot[i];
    return a->digest == b->digest || equal >= work->least_slots;
}

/* Which of two pages comes first by what follows their prefixes: below 0, 0 or above. */
static int order_paths(const mirror_page *a, size_t a_depth, const mirror_page *b, size_t b_depth) {
    for (; a_depth < SEGMENTS || b_depth < SEGMENTS; a_depth++, b_depth++) {
        uint64_t x = a_depth < SEGMENTS ? a->segment[a_depth] : 0;
        uint64_t y = b_depth < SEGMENTS ? b->segment[b_depth] : 0;
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

/* ---- addresses of pages: cut into host and segments, and named again ---- */

/* An address in canonical form, cut. */
typedef struct address {
    doppel_slice host; /* with its port */
    const char *path;  /* after its first slash */
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
static doppel_status locate(mirror_page *page, doppel_slice url, unsigned without, dp_buffer *canonical, bool *found) {
    address where;
    memset(page, 0, sizeof *page);
    *found = false;
    doppel_status status = dp_url_make(url, NULL, without, canonical);
    if (status != DOPPEL_OK || !cut(canonical, &where))
        return status;
    page->host = hash_of(where.host.data, where.host.data + where.host.length);
    for (const char *from = where.path; from < where.end && page->depth < SEGMENTS;) {
        const char *end = page->depth + 1 < SEGMENTS ? segment_end(from, where.end) : where.end;
        page->segment[page->depth++] = hash_of(from, end);
        from = end + (end < where.end);
    }
    *found = true;
    return DOPPEL_OK;
}

/* The URL of a page as it was read. */
static doppel_status read_url(const mirrors_work *work, const mirror_page *page, dp_buffer *url, doppel_error *error) {
    if (!dp_reserve(&url->data, &url->capacity, (size_t)page->url_length + 1, 1))
        return dp_no_memory(error);
    url->size = (size_t)page->url_length;
    url->data[url->size] = 0;
    return dp_append_file_read(&work->urls, page->url_at, url->data, url->size, error);
}

/* "host/prefix" of a page, with a NUL. */
static doppel_status name_prefix(const mirrors_work *work, const mirror_page *page, unsigned depth, dp_buffer *name,
                                 doppel_error *error) {
    dp_buffer url = {0}, canonical = {0};
    address where;
    doppel_status status = read_url(work, page, &url, error);
    DP_THEN(status, dp_url_make((doppel_slice){url.data, url.size}, NULL, work->options.url_without, &canonical));
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

/* ---- reading, on threads ---- */

typedef struct mirror_reader {
    mirrors_work *work;
    dp_text_sketcher text;
    dp_buffer canonical;
} mirror_reader;

static void end_reader(void *user, void *state) {
    mirror_reader *r = state;
    (void)user;
    dp_text_sketcher_free(&r->text);
    dp_buffer_free(&r->canonical);
    free(r);
}

static doppel_status begin_reader(void *user, void **state) {
    mirrors_work *work = user;
    mirror_reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->work = work;
    doppel_status status =
        dp_text_sketcher_init(&r->text, work->recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, work->options.content);
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_reader(user, r);
    return status;
}

static doppel_status sign(const doppel_sketch *sketch, mirror_page *page) {
    uint32_t signature[SLOTS];
    DP_TRY(doppel_minhash(sketch->set, sketch->set_count, SLOTS, signature));
    for (size_t i = 0; i < SLOTS; i++)
        page->slot[i] = (uint8_t)signature[i];
    page->digest = dp_load64(sketch->digest);
    return DOPPEL_OK;
}

/* doppel_work.document */
static doppel_status read_page(void *state, const doppel_document *document, doppel_output *output) {
    mirror_reader *r = state;
    mirror_page page;
    doppel_page content;
    doppel_sketch sketch;
    bool found = false;
    if (!document->url.length || document->alias.data)
        return DOPPEL_OK;
    DP_TRY(locate(&page, document->url, r->work->options.url_without, &r->canonical, &found));
    if (!found)
        return DOPPEL_OK;
    DP_TRY(dp_text_sketcher_run(&r->text, document, &content, &sketch));
    if (!sketch.words)
        return DOPPEL_OK;
    page.url_length = document->url.length;
    DP_TRY(sign(&sketch, &page));
    DP_TRY(doppel_output_write(output, dp_bytes(&page, sizeof page)));
    return doppel_output_write(output, document->url);
}

/* ---- reading, in input order ---- */

/* doppel_work.emit: whole pages, each with its URL, but where there was no memory to write one: that ends the run. */
static doppel_status take_pages(void *user, doppel_slice given) {
    mirrors_work *work = user;
    const char *bytes = given.data;
    for (size_t length = given.length; length >= sizeof(mirror_page);) {
        union {
            mirror_page page;
            uint64_t words[sizeof(mirror_page) / 8];
        } taken;
        memcpy(&taken.page, bytes, sizeof taken.page);
        size_t url_length = (size_t)taken.page.url_length, whole = sizeof taken.page + url_length;
        if (whole > length)
            break;
        taken.page.url_at = dp_append_file_size(&work->urls);
        DP_TRY(dp_append_file_add(&work->urls, bytes + sizeof taken.page, url_length, &work->error));
        DP_TRY(dp_sorter_add(&work->pages, taken.words, &work->error));
        bytes += whole;
        length -= whole;
    }
    return DOPPEL_OK;
}

static doppel_status read_pages(mirrors_work *work, const char *const *paths, size_t count, doppel_error *error) {
    doppel_work reading = {
        .user = work, .begin = begin_reader, .document = read_page, .end = end_reader, .emit = take_pages};
    doppel_status status = doppel_input_run(paths, count, &work->input, &reading, &work->counts.input, error);
    if (status != DOPPEL_OK && status == work->error.code && error)
        *error = work->error;
    return status == DOPPEL_OK ? dp_append_file_flush(&work->urls, error) : status;
}

/* ---- the table ---- */

static doppel_status write_table(mirrors_work *work, doppel_error *error) {
    uint64_t last[KEYS] = {0};
    const uint64_t *page;
    DP_TRY(dp_sorter_finish(&work->pages, error));
    for (;;) {
        DP_TRY(dp_sorter_next(&work->pages, &page, error));
        if (!page)
            return dp_append_file_flush(&work->file, error);
        if (work->count && !memcmp(page, last, sizeof last))
            continue;
        memcpy(last, page, sizeof last);
        work->count++;
        DP_TRY(dp_append_file_add(&work->file, page, sizeof(mirror_page), error));
    }
}

static doppel_status make_table(mirrors_work *work, doppel_error *error) {
    doppel_status status = dp_append_file_open(&work->file, NULL, NULL, work->options.tmp, error);
    DP_THEN(status, write_table(work, error));
    work->counts.spilled_bytes +=
        dp_sorter_spilled(&work->pages) + dp_append_file_size(&work->urls) + dp_append_file_size(&work->file);
    work->counts.pages = work->count;
    dp_sorter_free(&work->pages);
    if (status != DOPPEL_OK || !work->count)
        return status;
    void *mapped = mmap(NULL, work->count * sizeof(mirror_page), PROT_READ, MAP_SHARED, work->file.scratch.fd, 0);
    if (mapped == MAP_FAILED)
        return dp_fail(error, errno == ENOMEM ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_IO,
                       "the table of pages cannot be mapped: %s", strerror(errno));
    work->table = mapped;
    return DOPPEL_OK;
}

static void free_table(mirrors_work *work) {
    if (work->table)
        munmap((void *)(uintptr_t)work->table, work->count * sizeof(mirror_page));
    dp_append_file_close(&work->file);
    dp_append_file_close(&work->urls);
}

/* Pages that are all paired with each other, at most. */
enum { MOST_PAGES = 64 };

/* Pages with the same key, or also the same second-to-last segment. */
typedef struct key_pages {
    uint64_t key;
    uint64_t page[MOST_PAGES], parent[MOST_PAGES];
    size_t count;
    bool split; /* there were too many: these have the same parent */
    bool star;  /* still too many: each is paired with the first */
} key_pages;

/* ---- a pair of pages ---- */

static uint64_t hash_prefix(const mirror_page *page, unsigned depth) {
    uint64_t hash = dp_hash_mix(page->host + depth);
    for (unsigned i = 0; i < depth; i++)
        hash = dp_hash_mix(hash ^ page->segment[i]) + i;
    return hash;
}

/* How many segments agree from the end. */
static unsigned common_end(const mirror_page *a, const mirror_page *b) {
    unsigned common = 0;
    while (common < a->depth && common < b->depth &&
           a->segment[a->depth - 1 - common] == b->segment[b->depth - 1 - common])
        common++;
    return common;
}

/* Whether one prefix is below the other. */
static bool nested(const mirror_page *a, unsigned a_depth, const mirror_page *b, unsigned b_depth) {
    unsigned least = a_depth < b_depth ? a_depth : b_depth;
    return a->host == b->host && !memcmp(a->segment, b->segment, least * sizeof *a->segment);
}

static doppel_status meet(mirrors_work *work, uint64_t x, uint64_t y, doppel_error *error) {
    const mirror_page *a = &work->table[x], *b = &work->table[y];
    if (!are_near(work, a, b))
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

/* ---- pages under one key ---- */

/* Pairs those from `from` to before `end` with each other. */
static doppel_status pair_all(mirrors_work *work, const key_pages *k, size_t from, size_t end, doppel_error *error) {
    for (size_t i = from; i < end; i++)
        for (size_t j = i + 1; j < end; j++)
            DP_TRY(meet(work, k->page[i], k->page[j], error));
    return DOPPEL_OK;
}

/* After the last page with the same key, or parent. */
static doppel_status end_pages(mirrors_work *work, key_pages *k, doppel_error *error) {
    if (!k->star)
        DP_TRY(pair_all(work, k, 0, k->count, error));
    k->count = 0;
    k->star = false;
    return DOPPEL_OK;
}

/* From here on only pages with the same parent are paired; those with the last parent are kept. */
static doppel_status split(mirrors_work *work, key_pages *k, doppel_error *error) {
    size_t from = 0;
    for (size_t end = 0; end < k->count; end++)
        if (k->parent[end] != k->parent[from]) {
            DP_TRY(pair_all(work, k, from, end, error));
            from = end;
        }
    memmove(k->page, k->page + from, (k->count - from) * sizeof *k->page);
    memmove(k->parent, k->parent + from, (k->count - from) * sizeof *k->parent);
    k->count -= from;
    k->split = true;
    work->counts.frequent++;
    return DOPPEL_OK;
}

/* From here on each is paired with the first. */
static doppel_status make_star(mirrors_work *work, key_pages *k, doppel_error *error) {
    for (size_t i = 1; i < k->count; i++)
        DP_TRY(meet(work, k->page[0], k->page[i], error));
    k->star = true;
    return DOPPEL_OK;
}

static doppel_status add_page(mirrors_work *work, key_pages *k, uint64_t parent, uint64_t page, doppel_error *error) {
    if (k->count == MOST_PAGES && !k->split)
        DP_TRY(split(work, k, error));
    if (k->split && k->count && k->parent[0] != parent)
        DP_TRY(end_pages(work, k, error));
    if (k->count < MOST_PAGES) {
        k->page[k->count] = page;
        k->parent[k->count++] = parent;
        return DOPPEL_OK;
    }
    if (!k->star)
        DP_TRY(make_star(work, k, error));
    return meet(work, k->page[0], page, error);
}

/* ---- keys ---- */

static doppel_status add_keys(mirrors_work *work, dp_sorter *keys, uint64_t number, doppel_error *error) {
    const mirror_page *page = &work->table[number];
    uint64_t last = page->depth ? page->segment[page->depth - 1] : 0;
    uint64_t parent = page->depth > 1 ? page->segment[page->depth - 2] : 0;
    for (size_t band = 0; band < BANDS; band++) {
        uint64_t slots = dp_load_tail(page->slot + band * ROWS, ROWS);
        uint64_t record[3] = {dp_hash_mix(dp_hash_mix(last) ^ (slots << 8 | band)), parent, number};
        DP_TRY(dp_sorter_add(keys, record, error));
    }
    return DOPPEL_OK;
}

static doppel_status meet_by_key(mirrors_work *work, dp_sorter *keys, doppel_error *error) {
    key_pages k = {.count = 0};
    const uint64_t *record;
    for (uint64_t i = 0; i < work->count; i++)
        DP_TRY(add_keys(work, keys, i, error));
    DP_TRY(dp_sorter_finish(keys, error));
    for (;;) {
        DP_TRY(dp_sorter_next(keys, &record, error));
        if (!record)
            return end_pages(work, &k, error);
        if (record[0] != k.key) {
            DP_TRY(end_pages(work, &k, error));
            k.split = false;
            k.key = record[0];
        }
        DP_TRY(add_page(work, &k, record[1], record[2], error));
    }
}

/* Fills work->hits, ready to be read. */
static doppel_status find_hits(mirrors_work *work, doppel_error *error) {
    dp_sorter keys;
    dp_sorter_options options = {
        .words = 3, .keys = 2, .memory = work->memory / 2, .tmp = work->options.tmp, .stop = work->input.stop};
    dp_sorter_init(&keys, &options);
    options.words = options.keys = 4;
    dp_sorter_init(&work->hits, &options);
    doppel_status status = meet_by_key(work, &keys, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&keys);
    dp_sorter_free(&keys);
    DP_THEN(status, dp_sorter_finish(&work->hits, error));
    return status;
}

/* ---- pages below a prefix ---- */

/* The pages below a prefix: from `start` to before `end` in the table. */
typedef struct page_range {
    size_t start, end;
} page_range;

static int order_prefix(const mirror_page *page, const mirror_page *prefix, unsigned depth) {
    if (page->host != prefix->host)
        return page->host < prefix->host ? -1 : 1;
    for (unsigned i = 0; i < depth; i++)
        if (page->segment[i] != prefix->segment[i])
            return page->segment[i] < prefix->segment[i] ? -1 : 1;
    return 0;
}

/* The first page that is not before the prefix or, with `after`, that is after all below it. */
static size_t edge_of(const mirrors_work *work, const mirror_page *prefix, unsigned depth, bool after) {
    size_t low = 0, high = work->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_prefix(&work->table[middle], prefix, depth) < (after ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static page_range pages_below(const mirrors_work *work, const mirror_page *page, unsigned depth) {
    return (page_range){edge_of(work, page, depth, false), edge_of(work, page, depth, true)};
}

/* The place in a range of the first page whose path after `depth` is not before that of `page` after page_depth. */
static size_t seek_page(const mirrors_work *work, page_range range, unsigned depth, const mirror_page *page,
                        unsigned page_depth) {
    size_t low = range.start, high = range.end, step = 1;
    while (range.end - low > step && order_paths(&work->table[low + step], depth, page, page_depth) < 0) {
        low += step;
        step *= 2;
    }
    if (range.end - low > step)
        high = low + step + 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_paths(&work->table[middle], depth, page, page_depth) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- the shared paths of two prefixes, as a tree: where the mirror begins.
 *
 * init, add each shared path in order, end. Only the nodes from the root to the last path are held. When a node is
 * left, its result is settled: if all matching paths are below one child, the child's result holds, and moves up to the
 * node if the child holds all pages of both sides anyway; else the node is a mirror if it shares and matches enough,
 * instead of what was found below it; else what was found below it holds. */

/* A node of the tree of the shared paths of two prefixes. */
typedef struct mirror_node {
    uint64_t shared, matching;
    uint64_t a, b;    /* a page below it */
    size_t parts;     /* children with matching paths, and 1 if its own page matches */
    bool own;         /* its own page matches */
    size_t found_at;  /* pairs found below it start here in work->pairs */
    uint64_t child_a; /* pages below the last child with matching paths */
    uint64_t child_b;
} mirror_node;

typedef struct mirror_tree {
    mirrors_work *work;
    unsigned a_depth, b_depth; /* of the prefixes */
    unsigned depth;            /* of the last path */
    uint64_t last;             /* the page of A that came last; UINT64_MAX: none */
    mirror_node node[SEGMENTS + 1];
} mirror_tree;

static void init_tree(mirror_tree *tree, mirrors_work *work, unsigned a_depth, unsigned b_depth) {
    *tree = (mirror_tree){.work = work, .a_depth = a_depth, .b_depth = b_depth, .last = UINT64_MAX};
    tree->node[0].found_at = work->pair_count;
}

static bool is_mirror(const mirror_tree *tree, const mirror_node *node) {
    const doppel_mirrors_options *options = &tree->work->options;
    return node->shared >= options->min_paths && (double)node->matching >= options->min_score * (double)node->shared;
}

/* Whether the child with all matching paths has every page of both sides that the node has. */
static bool child_is_all(const mirror_tree *tree, const mirror_node *node, unsigned depth) {
    const uint64_t page[2] = {node->child_a, node->child_b};
    const unsigned above[2] = {tree->a_depth + depth, tree->b_depth + depth};
    for (int i = 0; i < 2; i++) {
        const mirror_page *below = &tree->work->table[page[i]];
        page_range all = pages_below(tree->work, below, above[i]);
        page_range part = pages_below(tree->work, below, above[i] + 1);
        if (all.start != part.start || all.end != part.end)
            return false;
    }
    return true;
}

static bool push(mirror_tree *tree, const mirror_node *node, unsigned depth) {
    mirrors_work *work = tree->work;
    if (!dp_reserve(&work->pairs, &work->pair_room, work->pair_count + 1, sizeof *work->pairs))
        return false;
    work->pairs[work->pair_count++] = (mirror_pair){.a = node->a,
                                                    .b = node->b,
                                                    .a_depth = tree->a_depth + depth,
                                                    .b_depth = tree->b_depth + depth,
                                                    .shared = node->shared,
                                                    .matching = node->matching};
    return true;
}

/* All matching paths are below one child. */
static bool settle_by_child(mirror_tree *tree, const mirror_node *node, unsigned depth) {
    mirrors_work *work = tree->work;
    size_t found = work->pair_count - node->found_at;
    mirror_pair *pair = found ? &work->pairs[node->found_at] : NULL;
    if (!found)
        return !is_mirror(tree, node) || push(tree, node, depth);
    if (found == 1 && pair->a_depth == tree->a_depth + depth + 1 && child_is_all(tree, node, depth)) {
        pair->a_depth--;
        pair->b_depth--;
    }
    return true;
}

/* Settles the result of a node that is left. */
static bool settle(mirror_tree *tree, unsigned depth) {
    const mirror_node *node = &tree->node[depth];
    if (node->parts == 1 && !node->own)
        return settle_by_child(tree, node, depth);
    if (!node->parts || !is_mirror(tree, node))
        return true;
    tree->work->pair_count = node->found_at;
    return push(tree, node, depth);
}

/* Leaves all nodes deeper than `depth`. */
static bool leave(mirror_tree *tree, unsigned depth) {
    for (; tree->depth > depth; tree->depth--) {
        const mirror_node *node = &tree->node[tree->depth];
        mirror_node *above = &tree->node[tree->depth - 1];
        if (!settle(tree, tree->depth))
            return false;
        above->shared += node->shared;
        above->matching += node->matching;
        if (node->matching) {
            above->parts++;
            above->child_a = node->a;
            above->child_b = node->b;
        }
    }
    return true;
}

/* How many segments after the prefix a page has in common with the last one. */
static unsigned common_start(const mirror_tree *tree, const mirror_page *page, unsigned depth) {
    const mirror_page *last = &tree->work->table[tree->last];
    unsigned common = 0;
    while (common < depth && common < tree->depth &&
           page->segment[tree->a_depth + common] == last->segment[tree->a_depth + common])
        common++;
    return common;
}

/* A path that both have, in order. False: no memory. */
static bool add_path(mirror_tree *tree, uint64_t a, uint64_t b, bool matches) {
    const mirror_page *page = &tree->work->table[a];
    unsigned depth = (unsigned)page->depth - tree->a_depth;
    if (tree->last == UINT64_MAX)
        tree->node[0].a = a, tree->node[0].b = b;
    else if (!leave(tree, common_start(tree, page, depth)))
        return false;
    for (; tree->depth < depth; tree->depth++)
        tree->node[tree->depth + 1] = (mirror_node){.a = a, .b = b, .found_at = tree->work->pair_count};
    mirror_node *node = &tree->node[depth];
    node->shared++;
    node->matching += matches;
    node->parts += matches;
    node->own |= matches;
    tree->last = a;
    return true;
}

/* Adds the mirrors to work->pairs. */
static bool end_tree(mirror_tree *tree) {
    return leave(tree, 0) && settle(tree, 0);
}

/* ---- two prefixes ---- */

static doppel_status compare(mirrors_work *work, const uint64_t *hit, doppel_error *error) {
    unsigned depth[2] = {hit[2] & 15, hit[3] & 15};
    page_range range[2];
    mirror_tree tree;
    for (int i = 0; i < 2; i++)
        range[i] = pages_below(work, &work->table[hit[2 + i] >> 4], depth[i]);
    int small = range[0].end - range[0].start <= range[1].end - range[1].start ? 0 : 1, large = !small;
    init_tree(&tree, work, depth[0], depth[1]);
    bool done = true;
    for (size_t i = range[small].start; i < range[small].end && done; i++) {
        const mirror_page *page = &work->table[i];
        size_t at = range[large].start = seek_page(work, range[large], depth[large], page, depth[small]);
        if (at == range[large].end)
            break;
        if (order_paths(&work->table[at], depth[large], page, depth[small]) == 0)
            done = add_path(&tree, small ? at : i, small ? i : at, are_near(work, page, &work->table[at]));
    }
    return done && end_tree(&tree) ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- all prefixes with pages in common ---- */

/* Hits that make two prefixes worth comparing: as many as must match, but no more than 2, as some pages that match do
 * not meet. */
static uint64_t least_hits(const doppel_mirrors_options *options) {
    return ceil(options->min_score * (double)options->min_paths) > 1 ? 2 : 1;
}

static doppel_status end_hits(mirrors_work *work, const uint64_t *hit, uint64_t count, doppel_error *error) {
    if (count < least_hits(&work->options))
        return DOPPEL_OK;
    if (dp_stopped(work->input.stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    work->counts.candidates++;
    return compare(work, hit, error);
}

static doppel_status compare_hits(mirrors_work *work, doppel_error *error) {
    uint64_t last[4] = {0}, count = 0;
    const uint64_t *hit;
    for (;;) {
        DP_TRY(dp_sorter_next(&work->hits, &hit, error));
        if (!hit)
            return end_hits(work, last, count, error);
        bool same_prefixes = count && hit[0] == last[0] && hit[1] == last[1];
        if (same_prefixes && hit[2] == last[2] && hit[3] == last[3])
            continue;
        if (!same_prefixes) {
            DP_TRY(end_hits(work, last, count, error));
            count = 0;
        }
        memcpy(last, hit, sizeof last);
        count++;
    }
}

/* Fills work->pairs. */
static doppel_status compare_prefixes(mirrors_work *work, doppel_error *error) {
    DP_TRY(find_hits(work, error));
    doppel_status status = compare_hits(work, error);
    work->counts.spilled_bytes += dp_sorter_spilled(&work->hits);
    return status;
}

/* ---- giving ---- */

/* A mirror with its names. */
typedef struct named_mirror {
    mirror_pair pair;
    dp_buffer a, b;
} named_mirror;

static int by_name(const void *x, const void *y) {
    const named_mirror *a = x, *b = y;
    int order = strcmp(a->a.data, b->a.data);
    return order ? order : strcmp(a->b.data, b->b.data);
}

static void turn(named_mirror *mirror) {
    mirror_pair *pair = &mirror->pair;
    dp_buffer name = mirror->a;
    mirror->a = mirror->b;
    mirror->b = name;
    *pair = (mirror_pair){pair->b, pair->a, pair->b_depth, pair->a_depth, pair->shared, pair->matching};
}

static doppel_status name_all(const mirrors_work *work, named_mirror *mirrors, doppel_error *error) {
    for (size_t i = 0; i < work->pair_count; i++) {
        named_mirror *mirror = &mirrors[i];
        const mirror_pair *pair = &work->pairs[i];
        mirror->pair = *pair;
        DP_TRY(name_prefix(work, &work->table[pair->a], pair->a_depth, &mirror->a, error));
        DP_TRY(name_prefix(work, &work->table[pair->b], pair->b_depth, &mirror->b, error));
        if (strcmp(mirror->a.data, mirror->b.data) > 0)
            turn(mirror);
    }
    qsort(mirrors, work->pair_count, sizeof *mirrors, by_name);
    return DOPPEL_OK;
}

static doppel_status give(mirrors_work *work, const named_mirror *mirror, const char *page, doppel_error *error) {
    const mirror_pair *pair = &mirror->pair;
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
static doppel_status give_page(mirrors_work *work, const named_mirror *mirror, doppel_error *error) {
    const mirror_pair *pair = &mirror->pair;
    const mirror_page *a = &work->table[pair->a], *page = &work->page;
    dp_buffer url = {0};
    if (page->host != a->host || memcmp(page->segment, a->segment, pair->a_depth * sizeof *page->segment) != 0)
        return DOPPEL_OK;
    page_range range = pages_below(work, &work->table[pair->b], pair->b_depth);
    size_t at = seek_page(work, range, pair->b_depth, page, pair->a_depth);
    bool there = at < range.end && !order_paths(&work->table[at], pair->b_depth, page, pair->a_depth);
    doppel_status status = there ? read_url(work, &work->table[at], &url, error) : DOPPEL_OK;
    DP_THEN(status, give(work, mirror, there ? url.data : NULL, error));
    dp_buffer_free(&url);
    return status;
}

static doppel_status give_all(mirrors_work *work, doppel_error *error) {
    named_mirror *mirrors = calloc(work->pair_count + 1, sizeof *mirrors);
    doppel_status status = mirrors ? name_all(work, mirrors, error) : dp_no_memory(error);
    for (size_t i = 0; i < work->pair_count && status == DOPPEL_OK; i++) {
        if (!work->options.page) {
            status = give(work, &mirrors[i], NULL, error);
            continue;
        }
        status = give_page(work, &mirrors[i], error);
        turn(&mirrors[i]);
        DP_THEN(status, give_page(work, &mirrors[i], error));
    }
    for (size_t i = 0; mirrors && i < work->pair_count; i++) {
        dp_buffer_free(&mirrors[i].a);
        dp_buffer_free(&mirrors[i].b);
    }
    free(mirrors);
    return status;
}

/* ---- the call ---- */

#define DEFAULT_PATHS 3
#define DEFAULT_SCORE 0.5
#define DEFAULT_SIMILARITY 0.8

static bool is_share(double share) {
    return share > 0 && share <= 1;
}

static doppel_status find_page(mirrors_work *work, doppel_error *error) {
    dp_buffer canonical = {0};
    bool found = false;
    doppel_slice url = {work->options.page, strlen(work->options.page)};
    doppel_status status = locate(&work->page, url, work->options.url_without, &canonical, &found);
    dp_buffer_free(&canonical);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "%s", doppel_status_name(status));
    return found ? DOPPEL_OK : dp_fail(error, DOPPEL_ERROR_USAGE, "%s is no http URL", url.data);
}

static doppel_status prepare(mirrors_work *work, const doppel_mirrors_options *given, doppel_error *error) {
    doppel_mirrors_options *options = &work->options;
    if (given)
        dp_copy_options(options, given, sizeof *options);
    if (options->input)
        dp_copy_options(&work->input, options->input, sizeof work->input);
    work->input.size = sizeof work->input;
    options->min_paths = options->min_paths ? options->min_paths : DEFAULT_PATHS;
    options->min_score = options->min_score == 0 ? DEFAULT_SCORE : options->min_score;
    options->similarity = options->similarity == 0 ? DEFAULT_SIMILARITY : options->similarity;
    if (!is_share(options->min_score) || !is_share(options->similarity))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the score and the similarity are above 0 and at most 1");
    work->recipe = options->recipe ? options->recipe : dp_recipe_default();
    work->memory = options->memory ? options->memory : dp_memory_default();
    work->input.threads = (int)dp_threads_within(dp_thread_count(work->input.threads), options->memory);
    work->least_slots = (unsigned)ceil(options->similarity * SLOTS);
    dp_sorter_init(&work->pages, &(dp_sorter_options){.words = sizeof(mirror_page) / 8,
                                                      .keys = KEYS,
                                                      .memory = work->memory,
                                                      .tmp = options->tmp,
                                                      .stop = work->input.stop});
    DP_TRY(dp_append_file_open(&work->urls, NULL, NULL, options->tmp, error));
    return options->page ? find_page(work, error) : DOPPEL_OK;
}

doppel_status doppel_mirrors_find(const char *const *paths, size_t path_count, const doppel_mirrors_options *options,
                                  doppel_mirrors_counts *counts, doppel_error *error) {
    mirrors_work work = {.count = 0};
    doppel_status status = prepare(&work, options, error);
    DP_THEN(status, read_pages(&work, paths, path_count, error));
    DP_THEN(status, make_table(&work, error));
    DP_THEN(status, compare_prefixes(&work, error));
    DP_THEN(status, give_all(&work, error));
    if (counts)
        *counts = work.counts;
    free_table(&work);
    dp_sorter_free(&work.pages);
    dp_sorter_free(&work.hits);
    free(work.pairs);
    return status;
}

/* mirrors_page.c - addresses of pages: cut into host and segments, and named again. */
#include "batch/mirrors.h"
#include "text/text.h"

/* An address in canonical form, cut. */
typedef struct address {
    doppel_slice host; /* with its port */
    const char *path;  /* behind its first slash */
    const char *end;
} address;

static bool cut(const dp_buffer *canonical, address *cut) {
    doppel_url_parts parts;
    doppel_url_split(canonical->data, canonical->size, &parts);
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

doppel_status dp_mirror_locate(dp_mirror_page *page, doppel_slice url, unsigned without, dp_buffer *canonical,
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

doppel_status dp_mirror_url(const dp_mirrors_work *work, const dp_mirror_page *page, dp_buffer *url,
                            doppel_error *error) {
    if (!dp_reserve(&url->data, &url->capacity, (size_t)page->url_length + 1, 1))
        return dp_no_memory(error);
    url->size = (size_t)page->url_length;
    url->data[url->size] = 0;
    return dp_spill_read(&work->urls, page->url_at, url->data, url->size, error);
}

doppel_status dp_mirror_name(const dp_mirrors_work *work, const dp_mirror_page *page, unsigned depth, dp_buffer *name,
                             doppel_error *error) {
    dp_buffer url = {0}, canonical = {0};
    address where;
    doppel_status status = dp_mirror_url(work, page, &url, error);
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

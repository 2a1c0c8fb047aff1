/* url_path.c - the path of an address: escapes, dot segments, names of index pages, slashes at the end. */
#include "text/url.h"

#include <strings.h>

/* Resolves `.` and `..` in place (RFC 3986, 5.2.4); gives the new length. The path starts with a slash. */
static size_t remove_dots(char *path, size_t length) {
    size_t kept = 0;
    for (size_t at = 0, end; at < length; at = end) {
        const char *slash = memchr(path + at + 1, '/', length - at - 1);
        end = slash ? (size_t)(slash - path) : length;
        size_t size = end - at - 1;
        bool one = size == 1 && path[at + 1] == '.', two = size == 2 && path[at + 1] == '.' && path[at + 2] == '.';
        if (!one && !two) {
            memmove(path + kept, path + at, end - at);
            kept += end - at;
            continue;
        }
        while (two && kept && path[--kept] != '/')
            continue;
        if (end == length)
            path[kept++] = '/';
    }
    if (!kept)
        path[kept++] = '/';
    return kept;
}

/* The names that servers give for the folder they stand in. */
static bool is_index(const char *name, size_t length) {
    static const char *const stems[] = {"index.", "default."};
    static const char *const ends[] = {"html", "htm", "shtml", "xhtml", "php", "asp", "aspx", "jsp", "cgi", "cfm"};
    for (size_t s = 0; s < sizeof stems / sizeof *stems; s++) {
        size_t stem = strlen(stems[s]);
        if (length <= stem || strncasecmp(name, stems[s], stem))
            continue;
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
            if (length - stem == strlen(ends[e]) && !strncasecmp(name + stem, ends[e], length - stem))
                return true;
    }
    return false;
}

/* Drops slashes and index pages at the end until there are none: dropping one can bring the other up. */
static size_t trim_end(const char *path, size_t length, unsigned without) {
    for (size_t before = 0; before != length;) {
        before = length;
        while (!(without & DOPPEL_URL_SLASH) && length > 1 && path[length - 1] == '/')
            length--;
        const char *slash = memrchr(path, '/', length);
        size_t name = (size_t)(slash - path) + 1;
        if (!(without & DOPPEL_URL_INDEX) && is_index(path + name, length - name))
            length = name;
    }
    return length;
}

void dp_url_put_path(dp_url_out *out, const dp_url *url) {
    size_t start = out->size;
    char *path = out->data + start;
    if (!url->folder.length && !url->path.length)
        dp_url_put(out, "/", 1);
    dp_url_put_escaped(out, url->folder, DP_URL_PATH);
    dp_url_put_escaped(out, url->path, DP_URL_PATH);
    size_t length = out->size - start;
    if ((url->resolved || !(out->without & DOPPEL_URL_DOTS)) && memmem(path, length, "/.", 2))
        length = remove_dots(path, length);
    out->size = start + trim_end(path, length, out->without);
}

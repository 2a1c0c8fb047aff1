/* url_parse.c - a reference into its parts, and relative ones into absolute ones, as RFC 3986 has it. */
#include "text/url.h"

/* The length of the scheme at the front, without its colon; 0: there is none. */
static size_t scheme_length(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = dp_url_lower(text[i]);
        bool letter = c >= 'a' && c <= 'z', other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (c == ':')
            return i;
        if (!letter && !(other && i))
            return 0;
    }
    return 0;
}

/* Cuts `rest` at the first `mark`: gives what follows it, data NULL when there is none. */
static doppel_slice cut(doppel_slice *rest, char mark) {
    const char *at = rest->length ? memchr(rest->data, mark, rest->length) : NULL;
    if (!at)
        return (doppel_slice){NULL, 0};
    size_t before = (size_t)(at - rest->data);
    doppel_slice after = {at + 1, rest->length - before - 1};
    rest->length = before;
    return after;
}

void dp_url_parse(const char *text, size_t length, dp_url *url) {
    *url = (dp_url){0};
    doppel_slice rest = {text, length};
    size_t scheme = scheme_length(text, length);
    if (scheme) {
        url->scheme = (doppel_slice){text, scheme};
        rest = (doppel_slice){text + scheme + 1, length - scheme - 1};
    }
    url->fragment = cut(&rest, '#');
    url->query = cut(&rest, '?');
    if (rest.length >= 2 && rest.data[0] == '/' && rest.data[1] == '/') {
        rest = (doppel_slice){rest.data + 2, rest.length - 2};
        const char *slash = rest.length ? memchr(rest.data, '/', rest.length) : NULL;
        size_t end = slash ? (size_t)(slash - rest.data) : rest.length;
        url->authority = (doppel_slice){rest.data, end};
        rest = (doppel_slice){rest.data + end, rest.length - end};
    }
    url->path = rest;
}

/* The path up to its last slash. */
static doppel_slice folder_of(doppel_slice path) {
    while (path.length && path.data[path.length - 1] != '/')
        path.length--;
    return path.length ? path : (doppel_slice){"/", 1};
}

void dp_url_resolve(const dp_url *base, dp_url *reference) {
    reference->resolved = true;
    reference->scheme = base->scheme;
    if (reference->authority.data)
        return;
    reference->authority = base->authority;
    if (!reference->path.length) {
        reference->path = base->path;
        if (!reference->query.data)
            reference->query = base->query;
    } else if (reference->path.data[0] != '/') {
        reference->folder = folder_of(base->path);
    }
}

/* url.c - addresses in canonical form: doppel_url_canonical().
 *
 * Every rule is a function of one part, and every part of the result is a fixed point of its rules, so that the
 * canonical form of a canonical form is itself, whichever rules are switched off. What is not an absolute http or https
 * URL with a host is given as it is: it is its own canonical form. */
#include "text/url.h"

#include <stdlib.h>
#include <strings.h>

/* What a result can be longer than three times its input: a scheme, and the ASCII form of a host (url_host.c). */
enum { SLACK = 64, LOCAL = 4096 };

static bool is_web(doppel_slice scheme) {
    return (scheme.length == 4 || scheme.length == 5) && !strncasecmp(scheme.data, "https", scheme.length);
}

/* Writes all parts; *valid is false when it is no URL after all. */
static doppel_status put_parts(dp_url_out *out, const dp_url *url, bool *valid) {
    bool secure = url->scheme.length == 5;
    const char *scheme = secure || !(out->without & DOPPEL_URL_SCHEME) ? "https://" : "http://";
    dp_url_put(out, scheme, strlen(scheme));
    doppel_status status = dp_url_put_authority(out, url->authority, secure, valid);
    if (status || !*valid)
        return status;
    dp_url_put_path(out, url);
    if (url->query.data && (status = dp_url_put_query(out, url->query)))
        return status;
    bool names_a_page = url->fragment.length && url->fragment.data[0] == '!';
    if (url->fragment.data && (names_a_page || out->without & DOPPEL_URL_FRAGMENT)) {
        dp_url_put(out, "#", 1);
        dp_url_put_escaped(out, url->fragment, DP_URL_QUERY);
    }
    return DOPPEL_OK;
}

static doppel_status put_url(dp_url_out *out, doppel_slice text, doppel_slice base) {
    dp_url url, from;
    bool valid = false;
    doppel_status status = DOPPEL_OK;
    dp_url_parse(text.data, text.length, &url);
    dp_url_parse(base.data, base.length, &from);
    if (!url.scheme.data && is_web(from.scheme) && from.authority.data)
        dp_url_resolve(&from, &url);
    if (is_web(url.scheme) && url.authority.data)
        status = put_parts(out, &url, &valid);
    if (!status && !valid) {
        out->size = 0;
        dp_url_put(out, text.data, text.length);
    }
    return status;
}

/* Without the spaces and control bytes at both ends. */
static doppel_slice trim(const char *text, size_t length) {
    if (!length)
        return (doppel_slice){"", 0};
    while (length && (uint8_t)text[length - 1] <= ' ')
        length--;
    while (length && (uint8_t)*text <= ' ') {
        text++;
        length--;
    }
    return (doppel_slice){text, length};
}

doppel_status doppel_url_canonical(const char *url, size_t length, const doppel_slice *base, unsigned without, char *to,
                                   size_t room, size_t *written) {
    doppel_slice text = trim(url, length), from = base ? trim(base->data, base->length) : (doppel_slice){"", 0};
    *written = 0;
    if (text.length > SIZE_MAX / 8 || from.length > SIZE_MAX / 8)
        return DOPPEL_ERROR_USAGE;
    size_t most = 3 * (text.length + from.length) + SLACK;
    char local[LOCAL], *work = room >= most ? to : most <= LOCAL ? local : malloc(most);
    if (!work)
        return DOPPEL_ERROR_MEMORY;
    dp_url_out out = {.data = work, .without = without};
    doppel_status status = put_url(&out, text, from);
    if (!status) {
        *written = out.size;
        if (out.size > room)
            status = DOPPEL_ERROR_USAGE;
        else if (work != to && out.size)
            memcpy(to, work, out.size);
    }
    if (work != to && work != local)
        free(work);
    return status;
}

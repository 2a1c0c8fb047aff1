/* url_split.c - host, registered domain and path of a canonical address: doppel_url_split().
 *
 * The registered domain is found in the public suffix list that is built into libpsl, which needs no set-up and is only
 * read. A host that is an address, a public suffix, or a name without dots is its own domain. */
#include "text/url.h"

#include <libpsl.h>

/* A host name has at most 253 characters. */
enum { LONGEST_NAME = 1023 };

static bool is_address(doppel_slice host) {
    if (host.length && host.data[0] == '[')
        return true;
    int numbers = 0, digits = 0;
    for (size_t i = 0; i <= host.length; i++) {
        char c = i < host.length ? host.data[i] : '.';
        if (c >= '0' && c <= '9' && digits < 3)
            digits++;
        else if (c == '.' && digits && numbers++ < 4)
            digits = 0;
        else
            return false;
    }
    return numbers == 4;
}

static doppel_slice domain_of(doppel_slice host) {
    char name[LONGEST_NAME + 1];
    if (!host.length || host.length > LONGEST_NAME || is_address(host) || memchr(host.data, 0, host.length))
        return host;
    memcpy(name, host.data, host.length);
    name[host.length] = 0;
    const char *domain = psl_registrable_domain(psl_builtin(), name);
    if (!domain)
        return host;
    size_t before = (size_t)(domain - name);
    return (doppel_slice){host.data + before, host.length - before};
}

/* The host of an authority without user information, which canonical ones are. */
static doppel_slice host_of(doppel_slice authority) {
    const char *colon = authority.length ? memrchr(authority.data, ':', authority.length) : NULL;
    if (!colon || memchr(colon, ']', (size_t)(authority.data + authority.length - colon)))
        return authority;
    return (doppel_slice){authority.data, (size_t)(colon - authority.data)};
}

static bool starts_with(const char *text, size_t length, const char *start) {
    size_t size = strlen(start);
    return length >= size && !memcmp(text, start, size);
}

void doppel_url_split(const char *canonical, size_t length, doppel_url_parts *parts) {
    const doppel_slice none = {"", 0};
    *parts = (doppel_url_parts){none, none, none};
    if (!starts_with(canonical, length, "https://") && !starts_with(canonical, length, "http://"))
        return;
    dp_url url;
    dp_url_parse(canonical, length, &url);
    parts->host = host_of(url.authority);
    parts->domain = domain_of(parts->host);
    const char *end = url.fragment.data ? url.fragment.data - 1 : canonical + length;
    parts->path = (doppel_slice){url.path.data, (size_t)(end - url.path.data)};
}

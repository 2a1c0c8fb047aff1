/* address.c - operands that are addresses of the web, or look like one. */
#include "shared/address.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* HOST.TLD/PATH, where HOST.TLD is no folder. */
const char *address_hint(const char *given) {
    char host[256];
    size_t length = strcspn(given, "/:@?*[ ");
    const char *dot = memrchr(given, '.', length);
    if (given[length] != '/' || length >= sizeof host || !dot || dot == given)
        return "";
    size_t last = (size_t)(given + length - dot - 1);
    memcpy(host, given, length);
    host[length] = 0;
    for (size_t i = 1; i <= last; i++)
        if (!isalpha((unsigned char)dot[i]))
            return "";
    return last < 2 || !access(host, F_OK) ? "" : "; an address begins with https://";
}

static char *canonical_url(doppel_slice url) {
    size_t room = 3 * url.length + 64, length;
    char *canonical = malloc(room + 1);
    if (canonical && doppel_url_canonical(url, NULL, 0, canonical, room, &length) == DOPPEL_OK) {
        canonical[length] = 0;
        return canonical;
    }
    free(canonical);
    return NULL;
}

char *canonical_address(const char *given) {
    return strstr(given, "://") ? canonical_url(doppel_slice_of(given)) : NULL;
}

bool has_address(const doppel_document *document, const char *canonical) {
    if (!canonical || !document->url.length)
        return false;
    char *url = canonical_url(document->url);
    bool same = url && !strcmp(url, canonical);
    free(url);
    return same;
}

/* url.h - the parts of addresses, and what each becomes in its canonical form (docs/FORMAT.md, "Canonical URLs").
 *
 * dp_url_parse cuts a reference into its parts, dp_url_resolve joins them with those of a base; then dp_url_put_* write
 * the parts one after the other. Nothing is longer than three times what it came from, plus a few bytes, so that who
 * gives room for that needs no check below. */
#ifndef DP_URL_H
#define DP_URL_H

#include "base/base.h"

/* The parts as RFC 3986, appendix B, cuts them. data NULL: not there (which is not the same as empty). */
typedef struct dp_url {
    doppel_slice scheme, authority, path, query, fragment;
    doppel_slice folder; /* goes before the path: the part of the base that a relative path starts from */
    bool resolved;       /* was relative: dot segments go in any case */
} dp_url;

void dp_url_parse(const char *text, size_t length, dp_url *url);

/* Puts a reference in place against a base (RFC 3986, 5.2.2), which is an absolute one. */
void dp_url_resolve(const dp_url *base, dp_url *reference);

/* Where the canonical form grows. */
typedef struct dp_url_out {
    char *data;
    size_t size;
    unsigned without; /* DOPPEL_URL_*: rules that are not applied */
} dp_url_out;

static inline void dp_url_put(dp_url_out *out, const char *bytes, size_t length) {
    if (length)
        memcpy(out->data + out->size, bytes, length);
    out->size += length;
}

/* Which bytes may stand as they are: bits of dp_url_class. */
enum {
    DP_URL_PLAIN = 1,   /* never escaped */
    DP_URL_PATH = 2,    /* in a path */
    DP_URL_QUERY = 4,   /* in a query or fragment */
    DP_URL_HOST = 8,    /* in a host */
    DP_URL_VISIBLE = 16 /* anything but white space and control bytes: when escapes are left alone */
};
extern const uint8_t dp_url_class[256];

/* 0 to 15, or -1. */
static inline int dp_url_hex(char digit) {
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    int letter = (digit | 32) - 'a';
    return letter >= 0 && letter < 6 ? letter + 10 : -1;
}

static inline char dp_url_lower(char byte) {
    return (char)(byte >= 'A' && byte <= 'Z' ? byte | 32 : byte);
}

/* Writes a part whose bytes of class `may` stand as they are, with the rule for escapes. */
void dp_url_put_escaped(dp_url_out *out, doppel_slice part, uint8_t may);

/* The host and port. *valid is false when there is no host or none can be called so. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_url_put_authority(dp_url_out *out, doppel_slice authority, bool secure, bool *valid);
void dp_url_put_path(dp_url_out *out, const dp_url *url);
/* With its question mark. Errors: DOPPEL_ERROR_MEMORY. */
doppel_status dp_url_put_query(dp_url_out *out, doppel_slice query);

/* Whether a parameter of a query, by its name, only tracks: tracking.c. */
bool dp_url_is_tracking(const char *name, size_t length);

#endif

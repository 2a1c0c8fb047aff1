/* url_escape.c - percent-encoding as short as can be: unreserved bytes (RFC 3986, 2.3) are decoded, other escapes get
 * capitals, and what may not stand in its part is escaped. A percent sign that starts no escape becomes %25. */
#include "text/url.h"

enum {
    _ = 0,
    V = DP_URL_VISIBLE,
    Q = V | DP_URL_QUERY,
    I = Q | DP_URL_PATH,
    D = I | DP_URL_HOST,  /* sub-delims */
    U = D | DP_URL_PLAIN, /* unreserved */
};

/* clang-format off */
const uint8_t dp_url_class[256] = {
    _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _,
    _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _,
    _, D, V, V, D, V, D, D, D, D, D, D, D, U, U, I,
    U, U, U, U, U, U, U, U, U, U, I, D, V, D, V, Q,
    I, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U,
    U, U, U, U, U, U, U, U, U, U, U, V, V, V, V, U,
    V, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U,
    U, U, U, U, U, U, U, U, U, U, U, V, V, V, U, _,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
    V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V,
};
/* clang-format on */

static void put_escape(dp_url_out *out, uint8_t byte) {
    static const char digits[] = "0123456789ABCDEF";
    const char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
    dp_url_put(out, escape, 3);
}

/* The byte that the escape at `at` stands for, or -1. */
static int escaped_byte(const char *at, const char *end) {
    if (end - at < 3 || *at != '%')
        return -1;
    int high = dp_url_hex(at[1]), low = dp_url_hex(at[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

void dp_url_put_escaped(dp_url_out *out, doppel_slice part, uint8_t may) {
    if (out->without & DOPPEL_URL_ESCAPES)
        may = DP_URL_VISIBLE;
    const char *at = part.data, *end = part.length ? at + part.length : at;
    while (at != end) {
        uint8_t byte = (uint8_t)*at;
        if (dp_url_class[byte] & may) {
            out->data[out->size++] = *at++;
            continue;
        }
        int escaped = escaped_byte(at, end);
        if (escaped >= 0 && dp_url_class[escaped] & DP_URL_PLAIN)
            out->data[out->size++] = (char)escaped;
        else
            put_escape(out, escaped >= 0 ? (uint8_t)escaped : byte);
        at += escaped >= 0 ? 3 : 1;
    }
}

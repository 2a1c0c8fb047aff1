/* url_host.c - the host and port of an address.
 *
 * User information is dropped. A host name is decoded, in small letters, without dots at its end and without `www.`,
 * and in its ASCII form (IDNA 2008, mapped by UTS 46, not transitional). A name that has no such form keeps its bytes.
 * An IPv6 address is written as RFC 5952 has it. */
#include "text/url.h"

#include <arpa/inet.h>
#include <idn2.h>

/* A name of 253 characters, the most there can be, has at most 4 bytes each before it is mapped. */
enum { LONGEST_NAME = 1024, IDN_SLACK = 32 };

/* ---- ports ---- */

/* -1: no port, -2: not a port */
static int read_port(doppel_slice digits) {
    int port = digits.length ? 0 : -1;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return -2;
        port = port * 10 + digits.data[i] - '0';
        if (port > 65535)
            return -2;
    }
    return port;
}

/* Where http and https are one, so are their ports. */
static bool is_own_port(int port, bool secure, unsigned without) {
    if (without & DOPPEL_URL_PORT)
        return false;
    if (without & DOPPEL_URL_SCHEME)
        return port == (secure ? 443 : 80);
    return port == 443 || port == 80;
}

static void put_port(dp_url_out *out, int port) {
    char digits[6];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + port % 10);
    while (port /= 10);
    digits[--at] = ':';
    dp_url_put(out, digits + at, sizeof digits - at);
}

/* ---- names ---- */

/* Decodes a name into small letters; false when it holds what no name can hold. */
static bool put_name(dp_url_out *out, doppel_slice name, bool *ascii) {
    *ascii = true;
    for (size_t i = 0; i < name.length; i++) {
        char byte = name.data[i];
        if (byte == '%') {
            int high = name.length - i > 2 ? dp_url_hex(name.data[i + 1]) : -1;
            int low = high >= 0 ? dp_url_hex(name.data[i + 2]) : -1;
            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if ((uint8_t)byte >= 0x80)
            *ascii = false;
        else if (!(dp_url_class[(uint8_t)byte] & DP_URL_HOST))
            return false;
        out->data[out->size++] = dp_url_lower(byte);
    }
    return true;
}

/* Drops the dots at the end and every `www.` before a name that has a dot itself. */
static void trim_name(dp_url_out *out, size_t start) {
    char *name = out->data + start;
    size_t length = out->size - start, front = 0;
    while (length && name[length - 1] == '.')
        length--;
    while (!(out->without & DOPPEL_URL_WWW) && length - front > 4 && !memcmp(name + front, "www.", 4) &&
           memchr(name + front + 4, '.', length - front - 4))
        front += 4;
    if (front)
        memmove(name, name + front, length - front);
    out->size = start + length - front;
}

/* Whether a name that was mapped is one: mapping can make a slash of something else. */
static bool is_name(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (!(dp_url_class[(uint8_t)name[i]] & DP_URL_HOST) || (uint8_t)name[i] >= 0x80)
            return false;
    return length > 0;
}

/* Puts the ASCII form in place of the name from `start` on, if it has one. */
static doppel_status name_to_ascii(dp_url_out *out, size_t start) {
    char name[LONGEST_NAME + 1];
    size_t length = out->size - start;
    if (length > LONGEST_NAME || memchr(out->data + start, 0, length))
        return DOPPEL_OK;
    memcpy(name, out->data + start, length);
    name[length] = 0;
    uint8_t *mapped = NULL;
    int result = idn2_lookup_u8((const uint8_t *)name, &mapped, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
    if (result == IDN2_MALLOC)
        return DOPPEL_ERROR_MEMORY;
    if (result == IDN2_OK) {
        size_t found = strlen((char *)mapped);
        if (found <= 3 * length + IDN_SLACK && is_name((char *)mapped, found)) {
            out->size = start;
            for (size_t i = 0; i < found; i++)
                out->data[out->size++] = dp_url_lower((char)mapped[i]);
        }
    }
    idn2_free(mapped);
    return DOPPEL_OK;
}

static doppel_status put_host_name(dp_url_out *out, doppel_slice name, bool *valid) {
    size_t start = out->size;
    bool ascii;
    *valid = put_name(out, name, &ascii);
    if (!*valid)
        return DOPPEL_OK;
    trim_name(out, start);
    doppel_status status = DOPPEL_OK;
    if (!ascii && !(out->without & DOPPEL_URL_IDN)) {
        status = name_to_ascii(out, start);
        trim_name(out, start);
    }
    *valid = out->size > start;
    return status;
}

/* ---- addresses ---- */

/* `host` is what stands between the brackets. */
static bool put_address(dp_url_out *out, doppel_slice host) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.length >= sizeof text || !host.length || memchr(host.data, 0, host.length))
        return false;
    memcpy(text, host.data, host.length);
    text[host.length] = 0;
    if (inet_pton(AF_INET6, text, &address) != 1 || !inet_ntop(AF_INET6, &address, text, sizeof text))
        return false;
    dp_url_put(out, "[", 1);
    dp_url_put(out, text, strlen(text));
    dp_url_put(out, "]", 1);
    return true;
}

/* What stands behind the last `mark`, data NULL when there is none; `whole` keeps what stands before. */
static doppel_slice cut_last(doppel_slice *whole, char mark) {
    const char *at = whole->length ? memrchr(whole->data, mark, whole->length) : NULL;
    if (!at)
        return (doppel_slice){NULL, 0};
    size_t before = (size_t)(at - whole->data);
    doppel_slice behind = {at + 1, whole->length - before - 1};
    whole->length = before;
    return behind;
}

doppel_status dp_url_put_authority(dp_url_out *out, doppel_slice authority, bool secure, bool *valid) {
    doppel_slice host = authority, rest = cut_last(&host, '@'), port = {"", 0};
    host = rest.data ? rest : authority;
    doppel_status status = DOPPEL_OK;
    if (host.length && host.data[0] == '[') {
        doppel_slice behind = cut_last(&host, ']');
        if (behind.length)
            port = (doppel_slice){behind.data + 1, behind.length - 1};
        *valid = behind.data && (!behind.length || behind.data[0] == ':') &&
                 put_address(out, (doppel_slice){host.data + 1, host.length - 1});
    } else {
        doppel_slice digits = cut_last(&host, ':');
        port = digits.data ? digits : port;
        status = put_host_name(out, host, valid);
    }
    int number = *valid && !status ? read_port(port) : -1;
    *valid = *valid && number != -2;
    if (number >= 0 && !is_own_port(number, secure, out->without))
        put_port(out, number);
    return status;
}

/* url.c - addresses: doppel_url_canonical, doppel_url_split, and the address of a document (docs/FORMAT.md, "Canonical
 * URLs").
 *
 * A reference is cut into its parts (RFC 3986), joined with those of a base, and then each part is written one after
 * the other. Every rule is a function of one part, and every part of the result is a fixed point of its rules, so that
 * the canonical form of a canonical form is itself, whichever rules are switched off. What is not an absolute http or
 * https URL with a host is given as it is: it is its own canonical form.
 *
 * Nothing is longer than three times what it came from, plus SLACK bytes, so that a caller who gives room for that
 * needs no check below. */
#include "text/text.h"

#include <arpa/inet.h>
#include <idn2.h>
#include <libpsl.h>
#include <stdlib.h>
#include <strings.h>

/* The parts as RFC 3986, appendix B, cuts them. data NULL: not there (which is not the same as empty). */
typedef struct url_reference {
    doppel_slice scheme, authority, path, query, fragment;
    doppel_slice folder; /* goes before the path: the part of the base that a relative path starts from */
    bool resolved;       /* was relative: dot segments go in any case */
} url_reference;

/* Where the canonical form grows. */
typedef struct url_out {
    char *data;
    size_t size;
    unsigned without; /* DOPPEL_URL_*: rules that are not applied */
} url_out;

static void put(url_out *out, const char *bytes, size_t length) {
    if (length)
        memcpy(out->data + out->size, bytes, length);
    out->size += length;
}

/* Which bytes need no escape: bits of byte_class. */
enum {
    IN_PLAIN = 1,   /* never escaped */
    IN_PATH = 2,    /* in a path */
    IN_QUERY = 4,   /* in a query or fragment */
    IN_HOST = 8,    /* in a host */
    IN_VISIBLE = 16 /* anything but white space and control bytes: when escapes are left alone */
};

static char lower_case(char byte) {
    return (char)(byte >= 'A' && byte <= 'Z' ? byte | 32 : byte);
}

/* ---- a reference and its parts ---- */

/* The length of the scheme at the front, without its colon; 0: there is none. */
static size_t scheme_length(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = lower_case(text[i]);
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

static void parse(const char *text, size_t length, url_reference *url) {
    *url = (url_reference){0};
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

/* Puts a reference in place against a base (RFC 3986, 5.2.2), which is an absolute one. */
static void resolve(const url_reference *base, url_reference *reference) {
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

/* ---- escapes ----
 *
 * Minimal percent-encoding: unreserved bytes (RFC 3986, 2.3) are decoded, other escapes get capitals, and bytes not
 * allowed in their part are escaped. A percent sign that starts no escape becomes %25. */

enum {
    _ = 0,
    V = IN_VISIBLE,
    Q = V | IN_QUERY,
    I = Q | IN_PATH,
    D = I | IN_HOST,  /* sub-delims */
    U = D | IN_PLAIN, /* unreserved */
};

/* clang-format off */
static const uint8_t byte_class[256] = {
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

static void put_escape(url_out *out, uint8_t byte) {
    static const char digits[] = "0123456789ABCDEF";
    const char escape[3] = {'%', digits[byte >> 4], digits[byte & 15]};
    put(out, escape, 3);
}

/* The byte that the escape at `at` stands for, or -1. */
static int escaped_byte(const char *at, const char *end) {
    if (end - at < 3 || *at != '%')
        return -1;
    int high = dp_hex_digit(at[1]), low = dp_hex_digit(at[2]);
    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

/* Writes a part whose bytes of class `may` need no escape, with the rule for escapes. */
static void put_escaped(url_out *out, doppel_slice part, uint8_t may) {
    if (out->without & DOPPEL_URL_ESCAPES)
        may = IN_VISIBLE;
    const char *at = part.data, *end = part.length ? at + part.length : at;
    while (at != end) {
        uint8_t byte = (uint8_t)*at;
        if (byte_class[byte] & may) {
            out->data[out->size++] = *at++;
            continue;
        }
        int escaped = escaped_byte(at, end);
        if (escaped >= 0 && byte_class[escaped] & IN_PLAIN)
            out->data[out->size++] = (char)escaped;
        else
            put_escape(out, escaped >= 0 ? (uint8_t)escaped : byte);
        at += escaped >= 0 ? 3 : 1;
    }
}

/* ---- host and port ----
 *
 * User information is dropped. A host name is decoded, in small letters, without dots at its end and without `www.`,
 * and in its ASCII form (IDNA 2008, mapped by UTS 46, not transitional). A name that has no such form keeps its bytes.
 * An IPv6 address is written as RFC 5952 has it. */

/* A name of 253 characters, the most there can be, has at most 4 bytes each before it is mapped. */
enum { LONGEST_NAME = 1024, IDN_SLACK = 32 };

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

static void put_port(url_out *out, int port) {
    char digits[6];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + port % 10);
    while (port /= 10);
    digits[--at] = ':';
    put(out, digits + at, sizeof digits - at);
}

/* Decodes a name into small letters; false when it holds what no name can hold. */
static bool put_name(url_out *out, doppel_slice name, bool *ascii) {
    *ascii = true;
    for (size_t i = 0; i < name.length; i++) {
        char byte = name.data[i];
        if (byte == '%') {
            int high = name.length - i > 2 ? dp_hex_digit(name.data[i + 1]) : -1;
            int low = high >= 0 ? dp_hex_digit(name.data[i + 2]) : -1;
            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if ((uint8_t)byte >= 0x80)
            *ascii = false;
        else if (!(byte_class[(uint8_t)byte] & IN_HOST))
            return false;
        out->data[out->size++] = lower_case(byte);
    }
    return true;
}

/* Drops the dots at the end and every `www.` before a name that has a dot itself. */
static void trim_name(url_out *out, size_t start) {
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
        if (!(byte_class[(uint8_t)name[i]] & IN_HOST) || (uint8_t)name[i] >= 0x80)
            return false;
    return length > 0;
}

/* Puts the ASCII form instead of the name from `start` on, if it has one. */
static doppel_status name_to_ascii(url_out *out, size_t start) {
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
                out->data[out->size++] = lower_case((char)mapped[i]);
        }
    }
    idn2_free(mapped);
    return DOPPEL_OK;
}

static doppel_status put_host_name(url_out *out, doppel_slice name, bool *valid) {
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

/* `host` is the text between the brackets. */
static bool put_address(url_out *out, doppel_slice host) {
    char text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    if (host.length >= sizeof text || !host.length || memchr(host.data, 0, host.length))
        return false;
    memcpy(text, host.data, host.length);
    text[host.length] = 0;
    if (inet_pton(AF_INET6, text, &address) != 1 || !inet_ntop(AF_INET6, &address, text, sizeof text))
        return false;
    put(out, "[", 1);
    put(out, text, strlen(text));
    put(out, "]", 1);
    return true;
}

/* The text after the last `mark`, data NULL if there is none; `whole` keeps the text before it. */
static doppel_slice cut_last(doppel_slice *whole, char mark) {
    const char *at = whole->length ? memrchr(whole->data, mark, whole->length) : NULL;
    if (!at)
        return (doppel_slice){NULL, 0};
    size_t before = (size_t)(at - whole->data);
    doppel_slice after = {at + 1, whole->length - before - 1};
    whole->length = before;
    return after;
}

/* The host and port. *valid is false when there is no host or none can be called so. Errors: DOPPEL_ERROR_MEMORY. */
static doppel_status put_authority(url_out *out, doppel_slice authority, bool secure, bool *valid) {
    doppel_slice host = authority, rest = cut_last(&host, '@'), port = {"", 0};
    host = rest.data ? rest : authority;
    doppel_status status = DOPPEL_OK;
    if (host.length && host.data[0] == '[') {
        doppel_slice after = cut_last(&host, ']');
        if (after.length)
            port = (doppel_slice){after.data + 1, after.length - 1};
        *valid = after.data && (!after.length || after.data[0] == ':') &&
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

/* ---- path: escapes, dot segments, names of index pages, slashes at the end ---- */

/* Resolves `.` and `..` in place (RFC 3986, 5.2.4); returns the new length. The path starts with a slash. */
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

/* Index file names that servers return for their folder. */
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

static void put_path(url_out *out, const url_reference *url) {
    size_t start = out->size;
    char *path = out->data + start;
    if (!url->folder.length && !url->path.length)
        put(out, "/", 1);
    put_escaped(out, url->folder, IN_PATH);
    put_escaped(out, url->path, IN_PATH);
    size_t length = out->size - start;
    if ((url->resolved || !(out->without & DOPPEL_URL_DOTS)) && memmem(path, length, "/.", 2))
        length = remove_dots(path, length);
    out->size = start + trim_end(path, length, out->without);
}

/* ---- parameters that only track ----
 *
 * The parameters of queries that tell where a visitor came from, and nothing about the page.
 *
 * The names are those that the makers of the tools document for links they mark or open:
 * - campaigns: utm_* (Google Analytics, and most others since), ga_*, mtm_*, matomo_*, piwik_*, pk_* (Matomo), itm_*,
 *   xtor (AT Internet), wt_mc and wt.mc_id (Webtrends), hsa_* (HubSpot), bsft_* (Blueshift);
 * - clicks on advertisements: gclid, gclsrc, gbraid, wbraid, dclid, gad_*, srsltid (Google), msclkid (Microsoft),
 *   fbclid (Facebook), igsh, igshid (Instagram), twclid (Twitter), ttclid (TikTok), li_fat_id (LinkedIn), epik
 *   (Pinterest), rdt_cid (Reddit), sccid (Snapchat), yclid, ymclid, ysclid, _openstat (Yandex), ef_id, s_kwcid
 *   (Adobe), mkwid, pcrid (Marin), tblci (Taboola), dicbo (Outbrain), irclickid, irgwc (Impact), cjevent (CJ), zanpid
 *   (Awin), rb_clickid;
 * - links in mail: mc_cid, mc_eid (Mailchimp), _hsenc, _hsmi, __hs*, hsctatracking (HubSpot), mkt_tok (Marketo), _kx
 *   (Klaviyo), __s (Drip), dm_i (Dotdigital), ml_* (MailerLite), oly_* (Omeda), vero_* (Vero), wicked* (Wicked
 *   Reports);
 * - passed on between a site's own pages: _ga, _gac, _gl (Google), gucc*, guce_* (Yahoo), fb_* (Facebook);
 * - sessions kept in the address: jsessionid (Java), phpsessid (PHP).
 *
 * A new one is a word in its place in the table. It belongs here when no page shows anything else without it: `ref`,
 * `source`, `id` and the like do not. */

/* Whatever starts so. */
static const char *const tracking_starts[] = {"utm_", "mtm_", "hsa_", "bsft_"};

/* In order of their bytes, small letters: looked up by halving. */
/* clang-format off */
static const char *const tracking_names[] = {
    "__hsfp", "__hssc", "__hstc", "__s", "_ga", "_gac", "_gl", "_hsenc", "_hsmi", "_kx", "_openstat", "cjevent",
    "dclid", "dicbo", "dm_i", "ef_id", "epik", "fb_action_ids", "fb_action_types", "fb_ref", "fb_source", "fbclid",
    "ga_campaign", "ga_content", "ga_medium", "ga_place", "ga_source", "ga_term", "gad_campaignid", "gad_source",
    "gbraid", "gclid", "gclsrc", "guccounter", "guce_referrer", "guce_referrer_sig", "hsctatracking", "igsh", "igshid",
    "irclickid", "irgwc", "itm_campaign", "itm_content", "itm_medium", "itm_source", "itm_term", "jsessionid",
    "li_fat_id", "matomo_campaign", "matomo_keyword", "mc_cid", "mc_eid", "mkt_tok", "mkwid", "ml_subscriber",
    "ml_subscriber_hash", "msclkid", "oly_anon_id", "oly_enc_id", "pcrid", "phpsessid", "piwik_campaign",
    "piwik_keyword", "piwik_kwd", "pk_campaign", "pk_cid", "pk_content", "pk_keyword", "pk_kwd", "pk_medium",
    "pk_source", "rb_clickid", "rdt_cid", "s_kwcid", "sccid", "srsltid", "tblci", "ttclid", "twclid", "vero_conv",
    "vero_id", "wbraid", "wickedid", "wickedsource", "wt.mc_id", "wt_mc", "xtor", "yclid", "ymclid", "ysclid", "zanpid"
};
/* clang-format on */

/* As strcasecmp, for a name that ends at `length`. */
static int compare(const char *name, size_t length, const char *entry) {
    for (size_t i = 0; i < length; i++) {
        int order = (uint8_t)lower_case(name[i]) - (uint8_t)entry[i];
        if (order)
            return order;
        if (!entry[i])
            return 1;
    }
    return entry[length] ? -1 : 0;
}

static bool is_tracking(const char *name, size_t length) {
    for (size_t i = 0; i < sizeof tracking_starts / sizeof *tracking_starts; i++) {
        size_t start = strlen(tracking_starts[i]);
        if (length > start && !strncasecmp(name, tracking_starts[i], start))
            return true;
    }
    size_t low = 0, high = sizeof tracking_names / sizeof *tracking_names;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = compare(name, length, tracking_names[middle]);
        if (!order)
            return true;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return false;
}

/* ---- query: its parts without those that only track, sorted ----
 *
 * The order is by name, then by value, byte for byte, a part without `=` before one with an empty value: no two
 * different parts are equal in it, so that equal sets of parts always give equal queries. */

enum { LOCAL_PARTS = 64, LOCAL_BYTES = 2048 };

static size_t name_length(doppel_slice part) {
    const char *equals = part.length ? memchr(part.data, '=', part.length) : NULL;
    return equals ? (size_t)(equals - part.data) : part.length;
}

/* The part that starts at `at` in a text that ends at `end`. */
static doppel_slice part_at(const char *at, const char *end) {
    const char *mark = at != end ? memchr(at, '&', (size_t)(end - at)) : NULL;
    return (doppel_slice){at, (size_t)((mark ? mark : end) - at)};
}

static int compare_bytes(doppel_slice a, doppel_slice b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare_parts(const void *first, const void *second) {
    const doppel_slice *a = first, *b = second;
    size_t a_name = name_length(*a), b_name = name_length(*b);
    int order = compare_bytes((doppel_slice){a->data, a_name}, (doppel_slice){b->data, b_name});
    return order ? order
                 : compare_bytes((doppel_slice){a->data + a_name, a->length - a_name},
                                 (doppel_slice){b->data + b_name, b->length - b_name});
}

/* Keeps the parts that the rules keep, in place: gives the end, *parts how many, *sorted whether they are in order. */
static char *filter(char *query, char *end, unsigned without, size_t *parts, bool *sorted) {
    char *kept = query;
    doppel_slice before = {query, 0};
    *parts = 0;
    *sorted = true;
    for (char *at = query;;) {
        doppel_slice part = part_at(at, end);
        char *after = at + part.length;
        bool empty = !part.length && !(without & DOPPEL_URL_QUERY);
        if (!empty && ((without & DOPPEL_URL_TRACKING) || !is_tracking(part.data, name_length(part)))) {
            if ((*parts)++)
                *kept++ = '&';
            memmove(kept, at, part.length);
            part.data = kept;
            kept += part.length;
            *sorted = *sorted && (*parts == 1 || compare_parts(&before, &part) <= 0);
            before = part;
        }
        if (after == end)
            return kept;
        at = after + 1;
    }
}

/* Few parts, as most queries have, without a call to the sorting of the C library, which allocates. */
static void sort_parts(doppel_slice *parts, size_t count) {
    if (count > LOCAL_PARTS) {
        qsort(parts, count, sizeof *parts, compare_parts);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        doppel_slice part = parts[i];
        size_t at = i;
        for (; at && compare_parts(&parts[at - 1], &part) > 0; at--)
            parts[at] = parts[at - 1];
        parts[at] = part;
    }
}

/* Sorts in `parts` and `copy`, which have the room. */
static void rewrite(char *query, size_t length, doppel_slice *parts, char *copy) {
    size_t count = 0;
    memcpy(copy, query, length);
    for (const char *at = copy, *end = copy + length;; at++) {
        parts[count] = part_at(at, end);
        at += parts[count++].length;
        if (at == end)
            break;
    }
    sort_parts(parts, count);
    for (size_t i = 0; i < count; i++) {
        if (i)
            *query++ = '&';
        memcpy(query, parts[i].data, parts[i].length);
        query += parts[i].length;
    }
}

static doppel_status sort_query(char *query, size_t length, size_t count) {
    doppel_slice parts[LOCAL_PARTS];
    char copy[LOCAL_BYTES];
    if (count <= LOCAL_PARTS && length <= LOCAL_BYTES) {
        rewrite(query, length, parts, copy);
        return DOPPEL_OK;
    }
    doppel_slice *room = malloc(count * sizeof *room + length);
    if (!room)
        return DOPPEL_ERROR_MEMORY;
    rewrite(query, length, room, (char *)(room + count));
    free(room);
    return DOPPEL_OK;
}

/* With its question mark. Errors: DOPPEL_ERROR_MEMORY. */
static doppel_status put_query(url_out *out, doppel_slice query) {
    size_t start = out->size, parts;
    put(out, "?", 1);
    put_escaped(out, query, IN_QUERY);
    if ((out->without & DOPPEL_URL_QUERY) && (out->without & DOPPEL_URL_TRACKING))
        return DOPPEL_OK;
    char *from = out->data + start + 1;
    bool sorted;
    out->size = (size_t)(filter(from, out->data + out->size, out->without, &parts, &sorted) - out->data);
    if (!parts)
        out->size = start;
    if (sorted || !parts || out->without & DOPPEL_URL_QUERY)
        return DOPPEL_OK;
    return sort_query(from, out->size - start - 1, parts);
}

/* ---- the canonical form ---- */

/* What a result can be longer than three times its input: a scheme, and the ASCII form of a host. */
enum { SLACK = 64, LOCAL = 4096 };

static bool is_web(doppel_slice scheme) {
    return (scheme.length == 4 || scheme.length == 5) && !strncasecmp(scheme.data, "https", scheme.length);
}

/* Writes all parts; *valid is false when it is no URL after all. */
static doppel_status put_parts(url_out *out, const url_reference *url, bool *valid) {
    bool secure = url->scheme.length == 5;
    const char *scheme = secure || !(out->without & DOPPEL_URL_SCHEME) ? "https://" : "http://";
    put(out, scheme, strlen(scheme));
    DP_TRY(put_authority(out, url->authority, secure, valid));
    if (!*valid)
        return DOPPEL_OK;
    put_path(out, url);
    if (url->query.data)
        DP_TRY(put_query(out, url->query));
    bool names_a_page = url->fragment.length && url->fragment.data[0] == '!';
    if (url->fragment.data && (names_a_page || out->without & DOPPEL_URL_FRAGMENT)) {
        put(out, "#", 1);
        put_escaped(out, url->fragment, IN_QUERY);
    }
    return DOPPEL_OK;
}

static doppel_status put_url(url_out *out, doppel_slice text, doppel_slice base) {
    url_reference url, from;
    bool valid = false;
    parse(text.data, text.length, &url);
    parse(base.data, base.length, &from);
    if (!url.scheme.data && is_web(from.scheme) && from.authority.data)
        resolve(&from, &url);
    if (is_web(url.scheme) && url.authority.data)
        DP_TRY(put_parts(out, &url, &valid));
    if (!valid) {
        out->size = 0;
        put(out, text.data, text.length);
    }
    return DOPPEL_OK;
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

doppel_status doppel_url_canonical(doppel_slice url, const doppel_slice *base, unsigned without, char *to, size_t room,
                                   size_t *written) {
    doppel_slice text = trim(url.data, url.length),
                 from = base ? trim(base->data, base->length) : (doppel_slice){"", 0};
    *written = 0;
    if (text.length > SIZE_MAX / 8 || from.length > SIZE_MAX / 8)
        return DOPPEL_ERROR_USAGE;
    size_t most = 3 * (text.length + from.length) + SLACK;
    char local[LOCAL], *work = room >= most ? to : most <= LOCAL ? local : malloc(most);
    if (!work)
        return DOPPEL_ERROR_MEMORY;
    url_out out = {.data = work, .without = without};
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

/* ---- host, registered domain and path of a canonical address ----
 *
 * The registered domain is found in the public suffix list that is built into libpsl, which needs no set-up and is only
 * read. A host that is an address, a public suffix, or a name without dots is its own domain. */

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
    if (!host.length || host.length >= LONGEST_NAME || is_address(host) || memchr(host.data, 0, host.length))
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

void doppel_url_split(doppel_slice canonical, doppel_url_parts *parts) {
    const doppel_slice none = {"", 0};
    *parts = (doppel_url_parts){none, none, none};
    if (!starts_with(canonical.data, canonical.length, "https://") &&
        !starts_with(canonical.data, canonical.length, "http://"))
        return;
    url_reference url;
    parse(canonical.data, canonical.length, &url);
    parts->host = host_of(url.authority);
    parts->domain = domain_of(parts->host);
    const char *end = url.fragment.data ? url.fragment.data - 1 : canonical.data + canonical.length;
    parts->path = (doppel_slice){url.path.data, (size_t)(end - url.path.data)};
}

/* ---- the address of a document ---- */

doppel_status dp_url_make(doppel_slice url, const doppel_slice *base, unsigned without, dp_buffer *to) {
    size_t base_length = base ? base->length : 0, most = SIZE_MAX / 8;
    to->size = 0;
    if (url.length > most || base_length > most ||
        !dp_reserve(&to->data, &to->capacity, 3 * (url.length + base_length) + 64, 1))
        return DOPPEL_ERROR_MEMORY;
    if (!url.data || !url.length)
        return DOPPEL_OK;
    return doppel_url_canonical(url, base, without, to->data, to->capacity, &to->size);
}

doppel_status dp_document_address(const doppel_document *document, const doppel_page *page, unsigned without,
                                  dp_buffer *to) {
    doppel_slice url = {document->url.data, document->url.length}, *base = document->url.data ? &url : NULL;
    if (document->alias.data)
        return dp_url_make(document->alias, base, without, to);
    if (page->canonical.length)
        return dp_url_make(page->canonical, base, without, to);
    return dp_url_make(url, NULL, without, to);
}

/* record.c - JSON records, edited in place: members left out, parts of a string cut. All other bytes are unchanged.
 *
 * Records were read before, so they are valid JSON. */
#include "input/input.h"
#include "input/json.h"

/* ---- members ---- */

/* The place after the string or bracket at p. */
static const char *pass(const char *p, const char *end) {
    size_t depth = 0;
    do {
        if (*p == '"')
            for (p++; p < end && *p != '"'; p++)
                p += *p == '\\';
        else
            depth += (size_t)(*p == '{' || *p == '[') - (size_t)(*p == '}' || *p == ']');
        p++;
    } while (depth && p < end);
    return p < end ? p : end;
}

/* Whether a key, still escaped and with its quotes, is one of the names. A longer one with escapes is none. */
static bool is_named(doppel_slice key, const char *const *names, size_t count) {
    enum { LONGEST = 1024 };
    char unescaped[LONGEST];
    bool repaired;
    doppel_slice name = {key.data + 1, key.length - 2};
    if (name.length <= LONGEST && memchr(name.data, '\\', name.length))
        name = (doppel_slice){unescaped, dp_json_unescape(name.data, name.length, unescaped, &repaired)};
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == name.length && !memcmp(names[i], name.data, name.length))
            return true;
    return false;
}

static const char *pass_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
        p++;
    return p;
}

size_t doppel_record_strip(doppel_slice record, const char *const *names, size_t count, char *to, bool *had) {
    const char *end = record.data + record.length, *p = memchr(record.data, '{', record.length);
    size_t length = (size_t)((p = p ? p + 1 : end) - record.data);
    bool found = false, empty = true;
    memcpy(to, record.data, length);
    while (p < end && *p != '}') {
        const char *member = p, *key = pass_space(p, end);
        if (key == end || *key == '}')
            break;
        const char *after = pass(key, end);
        for (p = after; p < end && *p != ',' && *p != '}';)
            p = pass(p, end);
        bool named = is_named((doppel_slice){key, (size_t)(after - key)}, names, count);
        found = found || named;
        if (!named) {
            to[length] = ',';
            length += !empty;
            memcpy(to + length, member, (size_t)(p - member));
            length += (size_t)(p - member);
            empty = false;
        }
        p += p < end && *p == ',';
    }
    if (had)
        *had = found;
    return length;
}

/* ---- strings ---- */

static uint32_t hex4(const char *p) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value * 16 + (uint32_t)dp_hex_digit(p[i]);
    return value;
}

/* How many bytes of text the escape at p makes; *raw is its length. Half a pair is U+FFFD. */
static size_t escape_length(const char *p, const char *end, size_t *raw) {
    *raw = p[1] == 'u' && end - p >= 6 ? 6 : 2;
    if (*raw == 2)
        return 1;
    uint32_t c = hex4(p + 2);
    if (c >= 0xD800 && c < 0xDC00 && end - p >= 12 && p[6] == '\\' && p[7] == 'u' && hex4(p + 8) - 0xDC00 < 0x400) {
        *raw = 12;
        return 4;
    }
    return c < 0x80 ? 1 : c < 0x800 ? 2 : 3;
}

/* Moves *p from byte `at` of the text to byte `to`, or to the end; gives where it is then. */
static uint64_t pass_text(const char **p, const char *end, uint64_t at, uint64_t to) {
    while (*p < end && at < to) {
        size_t plain = (size_t)(end - *p), length;
        plain = to - at < plain ? (size_t)(to - at) : plain;
        const char *escape = memchr(*p, '\\', plain);
        plain = escape ? (size_t)(escape - *p) : plain;
        *p += plain;
        at += plain;
        if (escape) {
            at += escape_length(*p, end, &length);
            *p += length;
        }
    }
    return at;
}

/* Whether the second half of a pair stands at p. */
static bool is_low_half(const char *p, const char *end) {
    return end - p >= 6 && p[0] == '\\' && p[1] == 'u' && hex4(p + 2) - 0xDC00 < 0x400;
}

bool dp_json_string_cut(doppel_slice raw, const doppel_range *cuts, size_t count, dp_buffer *to) {
    const char *p = raw.data, *end = p + raw.length;
    uint64_t at = 0;
    for (size_t i = 0; i <= count; i++) {
        uint64_t start = i < count ? cuts[i].start : UINT64_MAX;
        /* Half a pair, after a cut: it must not join another half before the cut. */
        if (i && at < start && is_low_half(p, end)) {
            if (!dp_buffer_add(to, "\\ufffd", 6))
                return false;
            p += 6;
            at += 3;
        }
        const char *from = p;
        at = pass_text(&p, end, at, start);
        if (!dp_buffer_add(to, from, (size_t)(p - from)))
            return false;
        if (i < count)
            at = pass_text(&p, end, at, cuts[i].end);
    }
    return true;
}

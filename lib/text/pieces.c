/* pieces.c - a text cut into lines, sentences or paragraphs: dp_piece_end gives where the next one ends. docs/FORMAT.md
 * section 15 defines them. */
#include "text/text.h"
#include "text/unicode.h"

#include <utf8proc.h>

/* ---- code points ---- */

/* Sentence_Terminal of PropList.txt, Unicode 15.0. All are of category Po. */
static const struct {
    int32_t first, last;
} terminals[] = {
    {0x0021, 0x0021},   {0x002E, 0x002E},   {0x003F, 0x003F},   {0x0589, 0x0589},   {0x061D, 0x061F},
    {0x06D4, 0x06D4},   {0x0700, 0x0702},   {0x07F9, 0x07F9},   {0x0837, 0x0837},   {0x0839, 0x0839},
    {0x083D, 0x083E},   {0x0964, 0x0965},   {0x104A, 0x104B},   {0x1362, 0x1362},   {0x1367, 0x1368},
    {0x166E, 0x166E},   {0x1735, 0x1736},   {0x1803, 0x1803},   {0x1809, 0x1809},   {0x1944, 0x1945},
    {0x1AA8, 0x1AAB},   {0x1B5A, 0x1B5B},   {0x1B5E, 0x1B5F},   {0x1B7D, 0x1B7E},   {0x1C3B, 0x1C3C},
    {0x1C7E, 0x1C7F},   {0x203C, 0x203D},   {0x2047, 0x2049},   {0x2E2E, 0x2E2E},   {0x2E3C, 0x2E3C},
    {0x2E53, 0x2E54},   {0x3002, 0x3002},   {0xA4FF, 0xA4FF},   {0xA60E, 0xA60F},   {0xA6F3, 0xA6F3},
    {0xA6F7, 0xA6F7},   {0xA876, 0xA877},   {0xA8CE, 0xA8CF},   {0xA92F, 0xA92F},   {0xA9C8, 0xA9C9},
    {0xAA5D, 0xAA5F},   {0xAAF0, 0xAAF1},   {0xABEB, 0xABEB},   {0xFE52, 0xFE52},   {0xFE56, 0xFE57},
    {0xFF01, 0xFF01},   {0xFF0E, 0xFF0E},   {0xFF1F, 0xFF1F},   {0xFF61, 0xFF61},   {0x10A56, 0x10A57},
    {0x10F55, 0x10F59}, {0x10F86, 0x10F89}, {0x11047, 0x11048}, {0x110BE, 0x110C1}, {0x11141, 0x11143},
    {0x111C5, 0x111C6}, {0x111CD, 0x111CD}, {0x111DE, 0x111DF}, {0x11238, 0x11239}, {0x1123B, 0x1123C},
    {0x112A9, 0x112A9}, {0x1144B, 0x1144C}, {0x115C2, 0x115C3}, {0x115C9, 0x115D7}, {0x11641, 0x11642},
    {0x1173C, 0x1173E}, {0x11944, 0x11944}, {0x11946, 0x11946}, {0x11A42, 0x11A43}, {0x11A9B, 0x11A9C},
    {0x11C41, 0x11C42}, {0x11EF7, 0x11EF8}, {0x11F43, 0x11F44}, {0x16A6E, 0x16A6F}, {0x16AF5, 0x16AF5},
    {0x16B37, 0x16B38}, {0x16B44, 0x16B44}, {0x16E98, 0x16E98}, {0x1BC9F, 0x1BC9F}, {0x1DA88, 0x1DA88},
};

static bool is_terminal(int32_t c) {
    size_t low = 0, high = sizeof terminals / sizeof *terminals;
    if (c < 0x80)
        return c == '.' || c == '!' || c == '?';
    if (utf8proc_category(c) != UTF8PROC_CATEGORY_PO)
        return false;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c > terminals[middle].last)
            low = middle + 1;
        else
            high = middle;
    }
    return low < sizeof terminals / sizeof *terminals && c >= terminals[low].first;
}

/* After these no white space is needed. */
static bool is_wide(int32_t c) {
    return c == 0x3002 || c == 0xFF01 || c == 0xFF0E || c == 0xFF1F || c == 0xFF61;
}

bool dp_code_point_is_mark(int32_t c) {
    utf8proc_category_t category = c < 0x300 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

static bool is_closing(int32_t c) {
    if (c == '"' || c == '\'')
        return true;
    utf8proc_category_t category = c < 0 ? UTF8PROC_CATEGORY_CN : utf8proc_category(c);
    return category == UTF8PROC_CATEGORY_PE || category == UTF8PROC_CATEGORY_PF || category == UTF8PROC_CATEGORY_PI ||
           dp_code_point_is_mark(c);
}

/* White_Space: what separates words, but for the separators of Tibetan and Ethiopic, which are punctuation. */
static bool is_white_space(int32_t c) {
    return c >= 0 && dp_code_point_class(c) == DP_CLASS_SPACE && c != 0x0F0B && c != 0x0F0C && c != 0x1361;
}

/* ---- ends ---- */

/* Bytes at which a line or a sentence may end: those of ASCII, and the first bytes of others. */
enum { LINE = 1, SENTENCE = 2 };
static const uint8_t ends[256] = {
    ['\n'] = LINE | SENTENCE, ['\r'] = LINE | SENTENCE, ['.'] = SENTENCE,           ['!'] = SENTENCE,
    ['?'] = SENTENCE,         [0xE2] = LINE | SENTENCE, [0xC2 ... 0xE1] = SENTENCE, [0xE3 ... 0xF4] = SENTENCE,
};

/* The end of the line whose terminator is at `at`; 0: there is none. */
static size_t after_terminator(const uint8_t *text, size_t length, size_t at) {
    if (text[at] == '\n')
        return at + 1;
    if (text[at] == '\r')
        return at + 1 + (at + 1 < length && text[at + 1] == '\n');
    bool separator = length - at >= 3 && text[at] == 0xE2 && text[at + 1] == 0x80;
    return separator && (text[at + 2] == 0xA8 || text[at + 2] == 0xA9) ? at + 3 : 0;
}

static size_t line_end(const uint8_t *text, size_t length, size_t at) {
    for (size_t end;; at++) {
        while (at < length && !(ends[text[at]] & LINE))
            at++;
        if (at == length)
            return length;
        if ((end = after_terminator(text, length, at)))
            return end;
    }
}

static bool is_blank(const uint8_t *text, size_t from, size_t end) {
    int32_t c = ' ';
    while (from < end && is_white_space(c))
        from += dp_utf8_decode(text + from, text + end, &c);
    return is_white_space(c);
}

static size_t paragraph_end(const uint8_t *text, size_t length, size_t at) {
    size_t end = line_end(text, length, at), next;
    if (is_blank(text, at, end))
        return end;
    for (; end < length; end = next)
        if (is_blank(text, end, next = line_end(text, length, end)))
            break;
    return end;
}

/* The white space after a terminal, up to the end of the line or before one with combining marks, which stay with
 * it. */
static size_t pass_space(const uint8_t *text, size_t length, size_t at) {
    int32_t c, next = -1;
    size_t end, bytes;
    for (; at < length; at += bytes) {
        if ((end = after_terminator(text, length, at)))
            return end;
        bytes = dp_utf8_decode(text + at, text + length, &c);
        if (!is_white_space(c))
            break;
        if (at + bytes < length)
            dp_utf8_decode(text + at + bytes, text + length, &next);
        if (dp_code_point_is_mark(next))
            break;
    }
    return at;
}

/* The end of the sentence whose terminal begins at `at`, or 0; *next is where to continue. */
static size_t after_terminal(const uint8_t *text, size_t length, size_t at, size_t *next) {
    int32_t c;
    bool wide = false;
    size_t bytes = dp_utf8_decode(text + at, text + length, &c);
    *next = at + bytes;
    if (!is_terminal(c))
        return 0;
    for (bool terminal = true; terminal || is_closing(c); terminal = is_terminal(c)) {
        wide = wide || (terminal && is_wide(c));
        at += bytes;
        if (at == length)
            return length;
        bytes = dp_utf8_decode(text + at, text + length, &c);
    }
    *next = at;
    return wide || is_white_space(c) ? pass_space(text, length, at) : 0;
}

static size_t sentence_end(const uint8_t *text, size_t length, size_t at) {
    for (size_t end, next;; at = next) {
        while (at < length && !(ends[text[at]] & SENTENCE))
            at++;
        if (at == length)
            return length;
        if ((end = after_terminator(text, length, at)) || (end = after_terminal(text, length, at, &next)))
            return end;
    }
}

size_t dp_piece_end(dp_piece_kind kind, doppel_slice text, size_t at) {
    const uint8_t *bytes = (const uint8_t *)text.data;
    switch (kind) {
    case DP_PIECE_SENTENCE: return sentence_end(bytes, text.length, at);
    case DP_PIECE_PARAGRAPH: return paragraph_end(bytes, text.length, at);
    default: return line_end(bytes, text.length, at);
    }
}

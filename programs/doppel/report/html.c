/* html.c - markup and escaped text, and the pieces that pages are made of. */
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static void put_bytes(html *page, const char *bytes, size_t length) {
    if (page->status == DOPPEL_OK)
        page->status = writer_add(page->out, bytes, length);
    page->written += length;
}

void html_put(html *page, const char *markup) {
    put_bytes(page, markup, strlen(markup));
}

void html_format(html *page, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || (size_t)length >= sizeof text)
        page->status = page->status == DOPPEL_OK ? DOPPEL_ERROR_MEMORY : page->status;
    else
        put_bytes(page, text, (size_t)length);
}

/* ---- characters ---- */

/* The code point at p, and in *length its bytes; UINT32_MAX for a sequence that is not UTF-8. */
static uint32_t decode(const unsigned char *p, size_t left, size_t *length) {
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t wanted = *p < 0x80 ? 1 : *p >= 0xC2 && *p < 0xE0 ? 2 : (*p & 0xF0) == 0xE0 ? 3 : (*p & 0xF8) == 0xF0 ? 4 : 0;
    uint32_t point = wanted == 1 ? *p : wanted ? *p & (0x7FU >> wanted) : 0;
    *length = 1;
    if (!wanted || wanted > left)
        return UINT32_MAX;
    for (; *length < wanted; ++*length) {
        if ((p[*length] & 0xC0) != 0x80)
            return UINT32_MAX;
        point = point << 6 | (p[*length] & 0x3FU);
    }
    bool valid = point >= least[wanted] && point <= 0x10FFFF && (point < 0xD800 || point > 0xDFFF);
    return valid ? point : UINT32_MAX;
}

/* Characters that are shown by their number: control characters, and those that change the direction of writing. */
static bool is_control(uint32_t point) {
    if (point == '\t' || point == '\n' || point == '\r')
        return false;
    return point < 0x20 || (point >= 0x7F && point < 0xA0) || (point >= 0x202A && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || (point >= 0xFFF9 && point <= 0xFFFB) ||
           (point >= 0xE0000 && point <= 0xE007F);
}

static bool is_character(uint32_t point) {
    return point != UINT32_MAX && (point & 0xFFFE) != 0xFFFE && (point < 0xFDD0 || point > 0xFDEF);
}

/* What is written for a character that needs an escape; NULL: it does not. */
static const char *escape_of(uint32_t point, char buffer[16]) {
    switch (point) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&#39;";
    default: break;
    }
    if (!is_character(point))
        return "\xEF\xBF\xBD";
    if (!is_control(point))
        return NULL;
    snprintf(buffer, 16, "[U+%04X]", point);
    return buffer;
}

void html_text(html *page, const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text;
    size_t from = 0;
    for (size_t i = 0, taken; i < length; i += taken) {
        char buffer[16];
        const char *other = escape_of(decode(p + i, length - i, &taken), buffer);
        if (!other)
            continue;
        put_bytes(page, text + from, i - from);
        html_put(page, other);
        from = i + taken;
    }
    put_bytes(page, text + from, length - from);
}

void html_string(html *page, const char *text) {
    html_text(page, text, strlen(text));
}

/* ---- addresses ---- */

/* Whether an address is one of the web, of characters that addresses have: then it can stand in an attribute. */
static bool is_web_address(const char *url, size_t length) {
    static const char *const schemes[] = {"http://", "https://"};
    bool web = false;
    for (size_t i = 0; i < 2; i++)
        web = web || (length > strlen(schemes[i]) && !strncasecmp(url, schemes[i], strlen(schemes[i])));
    for (size_t i = 0; i < length && web; i++)
        web = url[i] > ' ' && url[i] < 0x7F && !strchr("\"'<>`\\", url[i]);
    return web;
}

void html_link(html *page, const char *url, size_t length) {
    bool web = is_web_address(url, length);
    if (web) {
        html_put(page, "<a rel=\"noopener noreferrer\" href=\"");
        html_text(page, url, length);
        html_put(page, "\">");
    }
    html_put(page, "<bdi>");
    html_text(page, url, length);
    html_put(page, web ? "</bdi></a>" : "</bdi>");
}

/* ---- numbers ---- */

void html_number(html *page, uint64_t number) {
    char digits[24], text[32];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
    size_t used = 0;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            text[used++] = ',';
        text[used++] = digits[i];
    }
    put_bytes(page, text, used);
}

void html_bytes(html *page, uint64_t bytes) {
    static const char *const units[] = {"KB", "MB", "GB", "TB", "PB"};
    double size = (double)bytes / 1000;
    size_t unit = 0;
    if (bytes < 1000) {
        html_count(page, bytes, "byte", "bytes");
        return;
    }
    for (; size >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        size /= 1000;
    html_format(page, size < 10 ? "%.1f %s" : "%.0f %s", size, units[unit]);
}

void html_count(html *page, uint64_t number, const char *one, const char *many) {
    html_number(page, number);
    html_put(page, " ");
    html_put(page, number == 1 ? one : many);
}

/* ---- tables of two columns ---- */

void html_table_begin(html *page, const char *caption) {
    html_format(page, "<div class=\"card\"><table class=\"rows\"><caption>%s</caption><tbody>", caption);
}

void html_table_end(html *page) {
    html_put(page, "</tbody></table></div>");
}

void html_row_begin(html *page, const char *name) {
    html_put(page, "<tr><th scope=\"row\">");
    html_put(page, name);
    html_put(page, "</th><td>");
}

void html_row_end(html *page) {
    html_put(page, "</td></tr>");
}

void html_row_text(html *page, const char *name, const char *text) {
    if (!text)
        return;
    html_row_begin(page, name);
    html_put(page, "<code>");
    html_string(page, text);
    html_put(page, "</code>");
    html_row_end(page);
}

void html_row_count(html *page, const char *name, uint64_t count) {
    if (!count)
        return;
    html_row_begin(page, name);
    html_number(page, count);
    html_row_end(page);
}

void html_row_bytes(html *page, const char *name, uint64_t bytes) {
    html_row_begin(page, name);
    html_bytes(page, bytes);
    html_row_end(page);
}

void html_timings(html *page, const timing *part, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = part[i].seconds > most ? part[i].seconds : most;
    html_table_begin(page, "Time, measured while this page was made");
    for (size_t i = 0; i < count; i++) {
        html_row_begin(page, part[i].name);
        html_format(page, part[i].seconds < 10 ? "%.3f s" : "%.1f s", part[i].seconds);
        picture_share(page, most > 0 ? part[i].seconds / most : 0);
        html_row_end(page);
    }
    html_row_begin(page, "Measured with");
    html_format(page, "doppel %s, CPU level %s, Unicode %s", doppel_version(), doppel_cpu_level(),
                doppel_unicode_version());
    html_row_end(page);
    html_table_end(page);
}

/* ---- inputs ---- */

static void write_paths(html *page, const char *const *paths, size_t count) {
    for (size_t i = 0; i < count && i < SHOWN_PATHS; i++) {
        html_put(page, i ? "<br><bdi>" : "<bdi>");
        html_string(page, strcmp(paths[i], "-") != 0 ? paths[i] : "standard input");
        html_put(page, "</bdi>");
    }
    if (count > SHOWN_PATHS) {
        html_put(page, "<br>and ");
        html_number(page, count - SHOWN_PATHS);
        html_put(page, " more");
    }
}

void html_reading(html *page, const char *caption, const char *const *paths, size_t path_count,
                  const doppel_input_counts *counts) {
    html_table_begin(page, caption);
    html_row_begin(page, "From");
    write_paths(page, paths, path_count);
    html_row_end(page);
    html_row_begin(page, "Documents");
    html_number(page, counts->documents);
    if (counts->bytes) {
        html_put(page, " in ");
        html_bytes(page, counts->bytes);
        html_put(page, " of input, uncompressed");
    }
    html_row_end(page);
    html_row_count(page, "Bad records, left out", counts->bad);
    html_row_count(page, "Records repaired", counts->repaired);
    html_row_count(page, "Files not read completely", counts->unopened);
    html_table_end(page);
}

/* ---- tiles, figures, texts ---- */

void html_tile_begin(html *page, uint64_t number) {
    html_put(page, "<div class=\"card tile\"><b>");
    html_number(page, number);
    html_put(page, "</b><span>");
}

void html_tile_end(html *page) {
    html_put(page, "</span></div>");
}

void html_figure_begin(html *page, const char *title) {
    html_format(page, "<figure class=\"card\"><h3>%s</h3>", title);
}

void html_figure_end(html *page, const char *caption) {
    html_format(page, "<figcaption>%s</figcaption></figure>", caption);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

void html_id(html *page, const char *id, size_t length, size_t most) {
    size_t shown = whole_characters(id, length, most);
    html_put(page, "<bdi>");
    html_text(page, id, shown);
    html_put(page, shown < length ? "\xE2\x80\xA6</bdi>" : "</bdi>");
}

/* ---- words, and what is folded ---- */

/* Where the words [first, end) of a text are, with what is after them. */
static doppel_range bytes_of(const diff_text *t, size_t first, size_t end) {
    return (doppel_range){first ? t->ranges.range[first].start : 0,
                          end < t->words ? t->ranges.range[end].start : t->length};
}

/* Bytes of a text, white space at their end after the closing tag. Those after the first `most` are folded. */
static void put_piece(html *page, const char *text, size_t length, const char *const tags[2], size_t most) {
    static const fold letters = {"cut", "more letter", "more letters"};
    size_t last = length, shown, left = 0;
    while (last && is_space(text[last - 1]))
        last--;
    shown = whole_characters(text, last, most);
    html_put(page, tags[0]);
    html_text(page, text, shown);
    html_put(page, tags[1]);
    for (size_t i = shown; i < last; i++)
        left += ((unsigned char)text[i] & 0xC0) != 0x80;
    if (left && html_fold_begin(page, &letters, left, last - shown)) {
        html_put(page, tags[0]);
        html_text(page, text + shown, last - shown);
        html_put(page, tags[1]);
        html_fold_end(page);
    }
    if (last < length)
        html_put(page, " ");
}

/* Far more than the words have that are shown in a row, unless they are no words of a language. */
enum { MOST_LETTERS = 4000 };

void html_words(html *page, const diff_text *t, size_t first, size_t end, const char *const tags[2]) {
    doppel_range piece = bytes_of(t, first, end);
    if (first < end)
        put_piece(page, t->text + piece.start, piece.end - piece.start, tags, MOST_LETTERS);
}

static void put_note(html *page, const char *before, uint64_t number, const char *noun, const char *after) {
    html_put(page, before);
    html_put(page, "[\xE2\x80\xA6 ");
    html_number(page, number);
    html_put(page, " ");
    html_put(page, noun);
    html_put(page, " \xE2\x80\xA6]");
    html_put(page, after);
}

bool html_fold_begin(html *page, const fold *kind, uint64_t number, uint64_t bytes) {
    const char *noun = number == 1 ? kind->one : kind->many;
    if (page->written + bytes > MOST_FOLDED) {
        page->full = true;
        html_skip(page, number, kind->one, kind->many);
        return false;
    }
    html_format(page, "<details class=\"%s\">", kind->class);
    put_note(page, "<summary>", number, noun, "</summary> ");
    return true;
}

void html_fold_end(html *page) {
    html_put(page, "</details> ");
}

void html_fold_words(html *page, const diff_text *t, size_t first, size_t end, const char *const tags[2],
                     const fold *kind) {
    doppel_range piece = bytes_of(t, first, end);
    if (!html_fold_begin(page, kind, end - first, piece.end - piece.start))
        return;
    put_piece(page, t->text + piece.start, piece.end - piece.start, tags, SIZE_MAX);
    html_fold_end(page);
}

void html_skip(html *page, uint64_t number, const char *one, const char *many) {
    put_note(page, "<span class=\"skip\">", number, number == 1 ? one : many, "</span> ");
}

/* whole.c - formats of files that are one document each: HTML, and plain text, which is what no other format claims. */
#include "input/format.h"

#include "input/reader.h"

#include <stdio.h>
#include <strings.h>

/* A NUL in the first bytes of a text says that it is not text. */
#define BINARY_LOOK ((size_t)8 << 10)

/* The file at hand. */
static dp_place place_of(const dp_unit *unit, const char *file) {
    return (dp_place){.file = file, .bytes = unit->block.data, .length = unit->block.size};
}

/* ---- HTML ---- */

static const char *const html_endings[] = {".html", ".htm", ".xhtml", NULL};

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* Where `ending` ends behind p; NULL: it is not there. */
static const char *behind(const char *p, const char *end, const char *ending) {
    const char *found = memmem(p, (size_t)(end - p), ending, strlen(ending));
    return found ? found + strlen(ending) : NULL;
}

/* Whether `word` stands at p, in letters of any case, and no letter behind it. */
static bool at_word(const char *p, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - p) > length && !strncasecmp(p, word, length) && (is_space(p[length]) || p[length] == '>');
}

/* White space, comments and processing instructions may stand ahead of a page. */
bool dp_html_tells(const char *head, size_t length) {
    for (const char *p = head, *end = p + length; p && p < end;) {
        if (is_space(*p))
            p++;
        else if (end - p >= 4 && !memcmp(p, "<!--", 4))
            p = behind(p, end, "-->");
        else if (end - p >= 2 && !memcmp(p, "<?", 2))
            p = behind(p, end, "?>");
        else
            return at_word(p, end, "<!doctype html") || at_word(p, end, "<html");
    }
    return false;
}

static void html_read(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_place at = place_of(unit, file);
    doppel_document document = dp_reader_document(reader, &at);
    document.html = at.bytes;
    document.html_length = at.length;
    dp_reader_give(reader, unit, &document);
}

const dp_format dp_format_html = {.endings = html_endings, .tells = dp_html_tells, .read = html_read};

/* ---- plain ---- */

bool dp_reader_is_binary(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[80];
    size_t look = at->length < BINARY_LOOK ? at->length : BINARY_LOOK;
    const char *nul = memchr(at->bytes, 0, look);
    if (dp_is_utf16(at->bytes, at->length))
        snprintf(why, sizeof why, "%s", DP_WHY_UTF16);
    else if (nul)
        snprintf(why, sizeof why, "binary, not text: byte %zu is NUL", (size_t)(nul - at->bytes) + 1);
    else
        return false;
    dp_reader_bad_record(reader, unit, at, why);
    return true;
}

static void plain_read(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_place at = place_of(unit, file);
    if (dp_reader_is_binary(reader, unit, &at))
        return;
    doppel_document document = dp_reader_document(reader, &at);
    dp_reader_plain_text(unit, &at, &document);
    dp_reader_give(reader, unit, &document);
}

const dp_format dp_format_plain = {.read = plain_read};

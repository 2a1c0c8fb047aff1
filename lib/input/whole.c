/* whole.c - formats of files that are one document each: HTML, and plain text, which is what no other format claims. */
#include "input/format.h"

#include "input/reader.h"

#include <strings.h>

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

/* A byte-order mark, white space, comments and processing instructions may stand ahead of a page. */
bool dp_html_tells(const char *head, size_t length) {
    if (length >= 3 && !memcmp(head, "\xEF\xBB\xBF", 3)) {
        head += 3;
        length -= 3;
    }
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

static void plain_read(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_place at = place_of(unit, file);
    if (dp_reader_is_binary(reader, unit, &at))
        return;
    doppel_document document = dp_reader_document(reader, &at);
    dp_reader_plain_text(unit, &at, &document);
    dp_reader_give(reader, unit, &document);
}

const dp_format dp_format_plain = {.read = plain_read};

/* mime_words.c - the text of a field: encoded words (RFC 2047), white space.
 *
 * Words in a row with one charset are converted together, as some mailers cut characters in two. */
#include "input/mime.h"

#include <strings.h>

/* The text of an encoded word is not longer: RFC 5322 allows 998 bytes a line. Looking no farther keeps a field of many
 * words without an end from costing more than it should. */
#define LONGEST_WORD ((size_t)1000)

/* The field that is being read. */
typedef struct words {
    dp_buffer *out;
    size_t start;     /* where the field begins in `out` */
    dp_buffer bytes;  /* of the encoded words at hand, not converted yet */
    char charset[64]; /* theirs */
    bool after_word;  /* an encoded word was the last thing */
} words;

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Converts the encoded words at hand. */
static bool flush(words *w) {
    doppel_slice bytes = {w->bytes.data, w->bytes.size};
    w->bytes.size = 0;
    return !bytes.length || dp_mime_utf8(bytes, w->charset, w->out) != DP_MIME_NO_MEMORY;
}

static bool add_space(words *w) {
    return w->out->size == w->start || dp_buffer_add(w->out, " ", 1);
}

/* The parts of an encoded word: =?charset*language?encoding?text?= */
typedef struct encoded {
    char charset[64];
    char encoding;
    doppel_slice text;
    const char *end;
} encoded;

static bool parse_word(const char *p, const char *end, encoded *word) {
    const char *charset = p + 2;
    if (end - p < 8 || p[0] != '=' || p[1] != '?')
        return false;
    const char *mark = memchr(charset, '?', (size_t)(end - charset));
    if (!mark || end - mark < 5 || mark[2] != '?' || !memchr("BbQq", mark[1], 4))
        return false;
    const char *language = memchr(charset, '*', (size_t)(mark - charset));
    size_t length = (size_t)((language ? language : mark) - charset);
    if (!length || length >= sizeof word->charset)
        return false;
    const char *text = mark + 3;
    size_t left = (size_t)(end - text);
    const char *stop = memmem(text, left < LONGEST_WORD ? left : LONGEST_WORD, "?=", 2);
    if (!stop || memchr(text, '\n', (size_t)(stop - text)))
        return false;
    memcpy(word->charset, charset, length);
    word->charset[length] = 0;
    word->encoding = mark[1];
    word->text = (doppel_slice){text, (size_t)(stop - text)};
    word->end = stop + 2;
    return true;
}

/* White space between encoded words is not part of the text. */
static bool take_word(words *w, const encoded *word, bool space) {
    if (space && !w->after_word && !add_space(w))
        return false;
    if (w->bytes.size && strcasecmp(w->charset, word->charset) != 0 && !flush(w))
        return false;
    memcpy(w->charset, word->charset, sizeof w->charset);
    w->after_word = true;
    return dp_mime_word(word->text, word->encoding, &w->bytes);
}

/* Text up to the next white space, or what may be an encoded word; gives where it ends, NULL when there is no memory.
 */
static const char *take_plain(words *w, const char *p, const char *end, bool space) {
    const char *stop = p + 1;
    while (stop < end && !is_space(*stop) && !(*stop == '=' && end - stop >= 2 && stop[1] == '?'))
        stop++;
    if (!flush(w) || (space && !add_space(w)))
        return NULL;
    w->after_word = false;
    doppel_slice text = {p, (size_t)(stop - p)};
    return dp_mime_utf8(text, "", w->out) != DP_MIME_NO_MEMORY ? stop : NULL;
}

bool dp_mime_words(doppel_slice value, dp_buffer *out) {
    words w = {.out = out, .start = out->size};
    const char *p = value.data, *end = p + value.length;
    while (p && p < end) {
        encoded word;
        bool space = false;
        for (; p < end && is_space(*p); p++)
            space = true;
        if (p == end)
            break;
        if (parse_word(p, end, &word))
            p = take_word(&w, &word, space) ? word.end : NULL;
        else
            p = take_plain(&w, p, end, space);
    }
    bool done = (p || !value.length) && flush(&w);
    dp_buffer_free(&w.bytes);
    return done;
}

/* charset.c - the charset of a page, and its bytes as clean UTF-8: dp_charset_of, then dp_decoder_run.
 *
 * The declaration of the page or its container counts, else a guess from its bytes. Most pages are clean UTF-8 already:
 * one pass detects that, and they are used in place. */
#include "text/charset.h"

#include "input/input.h"

#include <errno.h>
#include <stdlib.h>
#include <strings.h>
#include <uchardet.h>

/* ---- labels ---- */

/* Labels mean what they mean to browsers, which is not always what they say: ISO-8859-1 is read as windows-1252, GB2312
 * as GB18030, and so on. */
static const dp_charset charsets[] = {
    {"UTF-8", NULL, 1, "utf8 unicode-1-1-utf-8 unicode11utf8 x-unicode20utf8"},
    {"UTF-16LE", "UTF-16LE", 2, "utf-16 utf16 unicode ucs-2 iso-10646-ucs-2"},
    {"UTF-16BE", "UTF-16BE", 2, ""},
    {"windows-1252", "CP1252", 1,
     "iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 ascii us-ascii ansi_x3.4-1968 cp1252 "
     "x-cp1252 cp819 ibm819 x-user-defined"},
    {"windows-1250", "CP1250", 1, "cp1250 x-cp1250"},
    {"windows-1251", "CP1251", 1, "cp1251 x-cp1251"},
    {"windows-1253", "CP1253", 1, "cp1253 x-cp1253"},
    {"windows-1254", "CP1254", 1, "cp1254 x-cp1254 iso-8859-9 iso8859-9 iso_8859-9 latin5"},
    {"windows-1255", "CP1255", 1, "cp1255"},
    {"windows-1256", "CP1256", 1, "cp1256"},
    {"windows-1257", "CP1257", 1, "cp1257"},
    {"windows-1258", "CP1258", 1, "cp1258"},
    {"windows-874", "CP874", 1, "tis-620 iso-8859-11 iso8859-11 dos-874"},
    {"ISO-8859-2", "ISO-8859-2", 1, "iso8859-2 iso_8859-2 latin2"},
    {"ISO-8859-3", "ISO-8859-3", 1, "iso8859-3 latin3"},
    {"ISO-8859-4", "ISO-8859-4", 1, "iso8859-4 latin4"},
    {"ISO-8859-5", "ISO-8859-5", 1, "iso8859-5 cyrillic"},
    {"ISO-8859-6", "ISO-8859-6", 1, "iso8859-6 arabic"},
    {"ISO-8859-7", "ISO-8859-7", 1, "iso8859-7 greek"},
    {"ISO-8859-8", "ISO-8859-8", 1, "iso8859-8 iso-8859-8-i visual logical hebrew"},
    {"ISO-8859-10", "ISO-8859-10", 1, "iso8859-10 latin6"},
    {"ISO-8859-13", "ISO-8859-13", 1, "iso8859-13"},
    {"ISO-8859-14", "ISO-8859-14", 1, "iso8859-14"},
    {"ISO-8859-15", "ISO-8859-15", 1, "iso8859-15 latin9 l9"},
    {"ISO-8859-16", "ISO-8859-16", 1, ""},
    {"KOI8-R", "KOI8-R", 1, "koi8 koi koi8_r"},
    {"KOI8-U", "KOI8-U", 1, "koi8-ru"},
    {"macintosh", "MACINTOSH", 1, "mac x-mac-roman"},
    {"x-mac-cyrillic", "MAC-CYRILLIC", 1, "x-mac-ukrainian mac-cyrillic"},
    {"IBM866", "CP866", 1, "cp866 866"},
    {"gb18030", "GB18030", 1, "gb2312 gbk x-gbk gb_2312-80 chinese csgb2312 iso-ir-58 hz-gb-2312 euc-cn"},
    {"Big5", "BIG5-HKSCS", 1, "big5-hkscs cn-big5 x-x-big5 csbig5"},
    {"Shift_JIS", "CP932", 1, "sjis shift-jis x-sjis ms_kanji windows-31j cp932 ms932"},
    {"EUC-JP", "EUC-JP-MS", 1, "x-euc-jp cseucpkdfmtjapanese"},
    {"ISO-2022-JP", "ISO-2022-JP", 1, "csiso2022jp"},
    {"EUC-KR", "CP949", 1, "ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 korean windows-949 uhc cp949"},
};

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Whether a space-separated list contains this word, ignoring case. */
static bool is_listed(const char *words, const char *word, size_t length) {
    for (size_t size; *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        if (size == length && !strncasecmp(words, word, length))
            return true;
    }
    return false;
}

static const dp_charset *by_label(const char *label, size_t length) {
    for (; length && is_space(*label); label++)
        length--;
    while (length && is_space(label[length - 1]))
        length--;
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (is_listed(charsets[i].name, label, length) || is_listed(charsets[i].labels, label, length))
            return &charsets[i];
    return NULL;
}

/* ---- which charset ---- */

/* A conforming page declares its charset in its first 1024 bytes; some do not conform. */
#define DECLARED_WITHIN 4096
/* Bytes used for the guess: enough for its statistics. */
#define GUESSED_FROM 65536

/* A charset that exists. */
static const dp_charset *named(const char *name) {
    return by_label(name, strlen(name));
}

/* The first occurrence of `word`, ignoring case; NULL: none. */
static const char *find(const char *p, const char *end, const char *word) {
    size_t length = strlen(word);
    for (; (size_t)(end - p) >= length; p++)
        if (!strncasecmp(p, word, length))
            return p;
    return NULL;
}

/* The label after the first `word` in a tag, `=` and an optional quote; charset="..." and content="...; charset=..."
 * alike. */
static const dp_charset *label_in(const char *p, const char *end, const char *word) {
    while ((p = find(p, end, word))) {
        for (p += strlen(word); p < end && is_space(*p);)
            p++;
        if (p == end || *p != '=')
            continue;
        for (p++; p < end && (is_space(*p) || *p == '"' || *p == '\'');)
            p++;
        const char *label = p;
        while (p < end && !is_space(*p) && !strchr("\"';>/?", *p))
            p++;
        return by_label(label, (size_t)(p - label));
    }
    return NULL;
}

/* A declaration that can be read as ASCII is not UTF-16, whatever it says. */
static const dp_charset *believed(const dp_charset *said) {
    return said && said->unit > 1 ? named("utf-8") : said;
}

/* A tag ends at the first `>`: no charset contains one. */
static const char *tag_end(const char *p, const char *end) {
    const char *close = memchr(p, '>', (size_t)(end - p));
    return close ? close : end;
}

/* What the page itself declares in its XML declaration or meta; NULL: none, or unknown. */
static const dp_charset *declared(const char *bytes, size_t length) {
    const char *p = bytes, *end = bytes + (length < DECLARED_WITHIN ? length : DECLARED_WITHIN);
    const dp_charset *said = NULL;
    if (end - p > 5 && !memcmp(p, "<?xml", 5))
        said = label_in(p, tag_end(p, end), "encoding");
    while (!said && (p = memchr(p, '<', (size_t)(end - p)))) {
        size_t left = (size_t)(end - p);
        if (left > 4 && !memcmp(p, "<!--", 4)) {
            const char *close = memmem(p + 2, left - 2, "-->", 3);
            if (!close)
                break;
            p = close;
        } else if (left > 6 && !strncasecmp(p, "<meta", 5) && (is_space(p[5]) || p[5] == '/')) {
            said = label_in(p, tag_end(p, end), "charset");
        }
        p++;
    }
    return believed(said);
}

static const dp_charset *by_mark(const char *bytes, size_t length, size_t *mark) {
    static const struct {
        const char *mark;
        size_t length;
        const char *charset;
    } marks[] = {{"\xEF\xBB\xBF", 3, "utf-8"}, {"\xFF\xFE", 2, "utf-16le"}, {"\xFE\xFF", 2, "utf-16be"}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (length >= marks[i].length && !memcmp(bytes, marks[i].mark, marks[i].length)) {
            *mark = marks[i].length;
            return named(marks[i].charset);
        }
    return NULL;
}

static bool valid_utf8(const char *bytes, size_t length) {
    const uint8_t *p = (const uint8_t *)bytes, *end = p + length;
    while (p < end) {
        bool whole;
        while (end - p >= 8 && !(dp_load64(p) & 0x8080808080808080u))
            p += 8;
        if (p < end) {
            p += dp_utf8_extent(p, (size_t)(end - p), &whole);
            if (!whole)
                return false;
        }
    }
    return true;
}

/* NULL: out of memory. */
static const dp_charset *guess(const char *bytes, size_t length) {
    uchardet_t detector = uchardet_new();
    const dp_charset *guessed = NULL;
    if (!detector)
        return NULL;
    if (!uchardet_handle_data(detector, bytes, length < GUESSED_FROM ? length : GUESSED_FROM)) {
        uchardet_data_end(detector);
        const char *name = uchardet_get_charset(detector);
        guessed = believed(by_label(name, strlen(name)));
        if (!guessed || guessed == named("utf-8"))
            guessed = named("windows-1252");
    }
    uchardet_delete(detector);
    return guessed;
}

const dp_charset *dp_charset_of(const char *bytes, size_t length, const char *carrier, size_t *mark) {
    *mark = 0;
    const dp_charset *charset = by_mark(bytes, length, mark);
    if (!charset && carrier)
        charset = by_label(carrier, strlen(carrier));
    if (!charset)
        charset = declared(bytes, length);
    if (!charset && valid_utf8(bytes, length))
        charset = named("utf-8");
    return charset ? charset : guess(bytes, length);
}

/* ---- bytes to clean UTF-8 ---- */

static const char replacement[] = "\xEF\xBF\xBD"; /* U+FFFD */

/* Control characters without meaning in a page; tab, line feed and carriage return have one. */
static inline bool is_control(uint8_t c) {
    return c < 0x20 && c != '\t' && c != '\n' && c != '\r';
}

typedef struct kinds {
    uint8_t high, control; /* not 0: there are bytes above 127; control characters */
} kinds;

/* One loop without branches, which compilers turn into vectors. */
static kinds kinds_of(const char *bytes, size_t length) {
    const uint8_t *p = (const uint8_t *)bytes;
    kinds found = {0, 0};
    for (size_t i = 0; i < length; i++) {
        found.high |= p[i] & 0x80;
        found.control |=
            (uint8_t)(p[i] < 0x20) & (uint8_t)(p[i] != '\t') & (uint8_t)(p[i] != '\n') & (uint8_t)(p[i] != '\r');
    }
    return found;
}

/* Appends the text for a byte or sequence at p to `out`. */
static bool add_sequence(dp_buffer *out, const uint8_t *p, size_t length, bool whole) {
    if (!whole)
        return dp_buffer_add(out, replacement, 3);
    if (length > 1 || !is_control(*p))
        return dp_buffer_add(out, p, length);
    return *p == '\f' || *p == '\v' ? dp_buffer_add(out, " ", 1) : true;
}

/* The first place from p on that has to change; `end`: none. Without control characters ASCII is skipped in blocks. */
static const uint8_t *clean_until(const uint8_t *p, const uint8_t *end, bool controls) {
    while (p < end) {
        if (!controls && end - p >= 8 && !(dp_load64(p) & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        bool whole = !is_control(*p);
        size_t length = 1;
        if (*p >= 0x80)
            length = dp_utf8_extent(p, (size_t)(end - p), &whole);
        if (!whole)
            return p;
        p += length;
    }
    return end;
}

/* `text` cleaned into `out`; or unchanged, if it was clean. */
static doppel_status clean(dp_buffer *out, doppel_slice *text) {
    const uint8_t *p = (const uint8_t *)text->data, *end = p + text->length, *dirty;
    kinds found = kinds_of(text->data, text->length);
    out->size = 0;
    if (!found.high && !found.control)
        return DOPPEL_OK;
    if ((dirty = clean_until(p, end, found.control)) == end)
        return DOPPEL_OK;
    while (p < end) {
        bool whole = true;
        if (!dp_buffer_add(out, p, (size_t)(dirty - p)))
            return DOPPEL_ERROR_MEMORY;
        p = dirty;
        if (p < end) {
            size_t length = dp_utf8_extent(p, (size_t)(end - p), &whole);
            if (!add_sequence(out, p, length, whole))
                return DOPPEL_ERROR_MEMORY;
            p += length;
        }
        dirty = clean_until(p, end, found.control);
    }
    *text = (doppel_slice){out->size ? out->data : "", out->size};
    return DOPPEL_OK;
}

static doppel_status open_converter(dp_decoder *decoder, const dp_charset *charset) {
    if (decoder->charset == charset) {
        iconv(decoder->converter, NULL, NULL, NULL, NULL);
        return DOPPEL_OK;
    }
    iconv_t made = iconv_open("UTF-8", charset->converter);
    if (made == (iconv_t)-1)
        return errno == ENOMEM ? DOPPEL_ERROR_MEMORY : DOPPEL_ERROR_INPUT;
    if (decoder->charset)
        iconv_close(decoder->converter);
    decoder->charset = charset;
    decoder->converter = made;
    return DOPPEL_OK;
}

/* Control characters out of valid UTF-8, in place. */
static void drop_controls(dp_buffer *text) {
    size_t kept = 0;
    for (size_t i = 0; i < text->size; i++) {
        char c = text->data[i];
        text->data[kept] = c == '\f' || c == '\v' ? ' ' : c;
        kept += !is_control((uint8_t)c) || c == '\f' || c == '\v';
    }
    text->size = kept;
}

doppel_status dp_decoder_run(dp_decoder *decoder, const dp_charset *charset, const char *bytes, size_t length,
                             doppel_slice *text) {
    dp_buffer *out = &decoder->text;
    bool lost = false;
    *text = (doppel_slice){bytes, length};
    if (!charset->converter)
        return clean(out, text);
    out->size = 0;
    DP_TRY(open_converter(decoder, charset));
    DP_TRY(dp_iconv_utf8(decoder->converter, charset->unit, *text, out, &lost));
    if (kinds_of(out->data, out->size).control)
        drop_controls(out);
    *text = (doppel_slice){out->data, out->size};
    return DOPPEL_OK;
}

void dp_decoder_close(dp_decoder *decoder) {
    if (decoder->charset)
        iconv_close(decoder->converter);
    dp_buffer_free(&decoder->text);
    *decoder = (dp_decoder){0};
}

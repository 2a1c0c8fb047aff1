/* plain_text.c - the text of a document that is no page: as it stands, repaired, or out of the charset that it is said
 * to be in. */
#include "input/reader.h"

#include <errno.h>
#include <iconv.h>
#include <stdio.h>
#include <strings.h>

/* What stands for bytes that cannot be read. */
#define REPLACEMENT "\xEF\xBF\xBD"

bool dp_utf8_repair(const char *text, size_t length, dp_buffer *out) {
    const char *p = text, *end = text + length, *start = text;
    while (p < end) {
        bool whole;
        size_t size = dp_utf8_extent((const uint8_t *)p, (size_t)(end - p), &whole);
        if (!whole) {
            if (!dp_buffer_add(out, start, (size_t)(p - start)) || !dp_buffer_add(out, REPLACEMENT, 3))
                return false;
            start = p + size;
        }
        p += size;
    }
    return dp_buffer_add(out, start, (size_t)(end - start));
}

/* ---- out of a charset ---- */

/* What iconv calls a charset that mail is written in, and the names it goes by there, in small letters. Where mail says
 * one charset and means a larger one that contains it, as Latin-1 for windows-1252, it is the larger. */
static const struct {
    const char *converter, *names;
} charsets[] = {
    {"UTF-8", "utf-8 utf8 unicode-1-1-utf-8"},
    {"WINDOWS-1252",
     "us-ascii ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 cp1252 windows-1252"},
    {"WINDOWS-1250", "cp1250 windows-1250"},
    {"WINDOWS-1251", "cp1251 x-cp1251 windows-1251"},
    {"WINDOWS-1253", "cp1253 windows-1253"},
    {"WINDOWS-1254", "cp1254 iso-8859-9 latin5 windows-1254"},
    {"WINDOWS-1255", "cp1255 windows-1255"},
    {"WINDOWS-1256", "cp1256 windows-1256"},
    {"WINDOWS-1257", "cp1257 windows-1257"},
    {"WINDOWS-1258", "cp1258 windows-1258"},
    {"ISO-8859-2", "latin2 iso8859-2 iso-8859-2"},
    {"ISO-8859-15", "latin9 iso8859-15 iso-8859-15"},
    {"ISO-8859-8", "iso-8859-8-i iso-8859-8"},
    {"KOI8-R", "koi8-r"},
    {"KOI8-U", "koi8-u"},
    {"GB18030", "gb2312 gbk x-gbk cp936 eucgb2312_cn gb18030"},
    {"BIG5-HKSCS", "big5 big5-hkscs"},
    {"EUC-JP", "euc-jp"},
    {"CP932", "shift_jis shift-jis sjis x-sjis cp932 windows-31j"},
    {"ISO-2022-JP", "iso-2022-jp"},
    {"CP949", "euc-kr ks_c_5601-1987 cp949"},
    {"ISO-2022-KR", "iso-2022-kr"},
    {"WINDOWS-874", "tis-620 iso-8859-11 windows-874"},
    {"UTF-7", "utf-7 unicode-1-1-utf-7"},
    {"UTF-16", "utf-16"},
    {"UTF-16LE", "utf-16le"},
    {"UTF-16BE", "utf-16be"},
    {"MACINTOSH", "macintosh"},
    {"CP850", "cp850 ibm850"},
    {"CP437", "cp437 ibm437"},
    {"CP866", "cp866 ibm866"},
    {"ISO-8859-3", "iso-8859-3"},
    {"ISO-8859-4", "iso-8859-4"},
    {"ISO-8859-5", "iso-8859-5"},
    {"ISO-8859-6", "iso-8859-6"},
    {"ISO-8859-7", "iso-8859-7"},
    {"ISO-8859-10", "iso-8859-10"},
    {"ISO-8859-13", "iso-8859-13"},
    {"ISO-8859-14", "iso-8859-14"},
    {"ISO-8859-16", "iso-8859-16"},
};

/* Whether one of the words in a list with a space between them is this one, in any case. */
static bool is_listed(const char *words, const char *word) {
    for (size_t size, length = strlen(word); *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        if (size == length && !strncasecmp(words, word, length))
            return true;
    }
    return false;
}

/* What iconv calls a charset; NULL for one that is not known. Only names of this list reach iconv. */
static const char *converter_of(const char *name) {
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (is_listed(charsets[i].names, name))
            return charsets[i].converter;
    return NULL;
}

bool dp_text_needs_converter(const char *charset) {
    const char *converter = converter_of(charset);
    return converter && strcmp(converter, "UTF-8") != 0;
}

/* Goes over what iconv stopped at; false when there is no memory. */
static bool step_over(char **in, size_t *left, int reason, dp_buffer *out) {
    if (reason == E2BIG)
        return dp_reserve(&out->data, &out->capacity, out->size + *left + 64, 1);
    *in += 1;
    *left = reason == EINVAL ? 0 : *left - 1; /* a character that breaks off at the end */
    return dp_buffer_add(out, REPLACEMENT, 3);
}

static dp_text_result convert(doppel_slice text, const char *charset, dp_buffer *out) {
    iconv_t converter = iconv_open("UTF-8", charset);
    char *in = (char *)(uintptr_t)text.data;
    size_t left = text.length;
    dp_text_result result = DP_TEXT_CLEAN;
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? DP_TEXT_NO_MEMORY : DP_TEXT_UNKNOWN;
    if (!dp_reserve(&out->data, &out->capacity, out->size + left + left / 2 + 64, 1))
        result = DP_TEXT_NO_MEMORY;
    for (bool done = result == DP_TEXT_NO_MEMORY; !done;) {
        char *to = out->data + out->size;
        size_t room = out->capacity - out->size;
        bool last = !left; /* what the converter still holds */
        size_t failed = iconv(converter, last ? NULL : &in, last ? NULL : &left, &to, &room);
        int reason = failed == (size_t)-1 ? errno : 0;
        out->size = (size_t)(to - out->data);
        done = last && reason != E2BIG;
        if (reason && reason != E2BIG)
            result = DP_TEXT_LOST;
        if (reason && !done && !step_over(&in, &left, reason, out)) {
            result = DP_TEXT_NO_MEMORY;
            done = true;
        }
    }
    iconv_close(converter);
    return result;
}

dp_text_result dp_text_convert(doppel_slice text, const char *charset, dp_buffer *out) {
    const char *known = *charset ? converter_of(charset) : "WINDOWS-1252";
    bool utf8 = known && !strcmp(known, "UTF-8"), ascii = known && !strcmp(known, "WINDOWS-1252");
    if ((utf8 || ascii || !known) && dp_json_is_utf8(text.data, text.length))
        return dp_buffer_add(out, text.data, text.length) ? known ? DP_TEXT_CLEAN : DP_TEXT_UNKNOWN : DP_TEXT_NO_MEMORY;
    if (utf8)
        return dp_utf8_repair(text.data, text.length, out) ? DP_TEXT_LOST : DP_TEXT_NO_MEMORY;
    dp_text_result result = convert(text, known ? known : "WINDOWS-1252", out);
    if (result != DP_TEXT_UNKNOWN)
        return known || result == DP_TEXT_NO_MEMORY ? result : DP_TEXT_UNKNOWN;
    /* iconv of this system does not have it. */
    return dp_utf8_repair(text.data, text.length, out) ? DP_TEXT_UNKNOWN : DP_TEXT_NO_MEMORY;
}

/* ---- the text of a document ---- */

/* A NUL in the first bytes of a text says that it is not text. */
#define BINARY_LOOK ((size_t)8 << 10)

bool dp_reader_is_binary(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    char why[160];
    size_t look = at->length < BINARY_LOOK ? at->length : BINARY_LOOK;
    const char *nul = memchr(at->bytes, 0, look);
    if (dp_is_parquet(at->bytes, at->length)) {
        snprintf(why, sizeof why, "%s", DP_WHY_PARQUET);
        dp_unit_counts(unit)->records = true;
    } else if (dp_is_utf16(at->bytes, at->length))
        snprintf(why, sizeof why, "%s", DP_WHY_UTF16);
    else if (nul)
        snprintf(why, sizeof why, "binary, not text: byte %zu is NUL", (size_t)(nul - at->bytes) + 1);
    else
        return false;
    dp_reader_bad_record(reader, unit, at, why);
    return true;
}

void dp_reader_plain_text(dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    document->text = (doppel_slice){at->bytes, at->length};
    if (dp_json_is_utf8(at->bytes, at->length))
        return;
    unit->counts.repaired++;
    dp_unit_report(unit, DOPPEL_OK, at->file, at->line,
                   "invalid UTF-8 separates words; is it Latin-1? iconv -f latin1 -t utf8");
}

bool dp_reader_charset_text(dp_unit *unit, const dp_raw_record *at, const char *charset, dp_buffer *out,
                            doppel_document *document) {
    out->size = 0;
    dp_text_result result = dp_text_convert((doppel_slice){at->bytes, at->length}, charset, out);
    if (result == DP_TEXT_NO_MEMORY)
        return dp_unit_no_memory(unit);
    document->text = (doppel_slice){out->data ? out->data : "", out->size};
    if (result == DP_TEXT_CLEAN)
        return true;
    unit->counts.repaired++;
    if (result == DP_TEXT_UNKNOWN)
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line,
                       "charset \"%s\" is not known; read as UTF-8, or else windows-1252", charset);
    else
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line, "bytes that are not %s became U+FFFD",
                       *charset ? charset : "windows-1252");
    return true;
}

/* charset.c - which charset a page is written in.
 *
 * Labels mean what browsers take them for, which is not always what they say: pages that call themselves ISO-8859-1 use
 * windows-1252, GB2312 is read as GB18030, and so on. */
#include "text/charset.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <strings.h>
#include <uchardet.h>

/* A page says its charset in its first 1024 bytes if it keeps to the standard; some do not. */
#define DECLARED_WITHIN 4096
/* What the guess is made from: enough for its statistics to settle. */
#define GUESSED_FROM 65536

enum {
    UTF_8,
    UTF_16LE,
    UTF_16BE,
    WINDOWS_1252,
    WINDOWS_1250,
    WINDOWS_1251,
    WINDOWS_1253,
    WINDOWS_1254,
    WINDOWS_1255,
    WINDOWS_1256,
    WINDOWS_1257,
    WINDOWS_1258,
    WINDOWS_874,
    ISO_2,
    ISO_3,
    ISO_4,
    ISO_5,
    ISO_6,
    ISO_7,
    ISO_8,
    ISO_10,
    ISO_13,
    ISO_14,
    ISO_15,
    ISO_16,
    KOI8_R,
    KOI8_U,
    MACINTOSH,
    MAC_CYRILLIC,
    IBM866,
    GB18030,
    BIG5,
    SHIFT_JIS,
    EUC_JP,
    ISO_2022_JP,
    EUC_KR
};

static const dp_charset charsets[] = {
    [UTF_8] = {"UTF-8", NULL, 1},
    [UTF_16LE] = {"UTF-16LE", "UTF-16LE", 2},
    [UTF_16BE] = {"UTF-16BE", "UTF-16BE", 2},
    [WINDOWS_1252] = {"windows-1252", "CP1252", 1},
    [WINDOWS_1250] = {"windows-1250", "CP1250", 1},
    [WINDOWS_1251] = {"windows-1251", "CP1251", 1},
    [WINDOWS_1253] = {"windows-1253", "CP1253", 1},
    [WINDOWS_1254] = {"windows-1254", "CP1254", 1},
    [WINDOWS_1255] = {"windows-1255", "CP1255", 1},
    [WINDOWS_1256] = {"windows-1256", "CP1256", 1},
    [WINDOWS_1257] = {"windows-1257", "CP1257", 1},
    [WINDOWS_1258] = {"windows-1258", "CP1258", 1},
    [WINDOWS_874] = {"windows-874", "CP874", 1},
    [ISO_2] = {"ISO-8859-2", "ISO-8859-2", 1},
    [ISO_3] = {"ISO-8859-3", "ISO-8859-3", 1},
    [ISO_4] = {"ISO-8859-4", "ISO-8859-4", 1},
    [ISO_5] = {"ISO-8859-5", "ISO-8859-5", 1},
    [ISO_6] = {"ISO-8859-6", "ISO-8859-6", 1},
    [ISO_7] = {"ISO-8859-7", "ISO-8859-7", 1},
    [ISO_8] = {"ISO-8859-8", "ISO-8859-8", 1},
    [ISO_10] = {"ISO-8859-10", "ISO-8859-10", 1},
    [ISO_13] = {"ISO-8859-13", "ISO-8859-13", 1},
    [ISO_14] = {"ISO-8859-14", "ISO-8859-14", 1},
    [ISO_15] = {"ISO-8859-15", "ISO-8859-15", 1},
    [ISO_16] = {"ISO-8859-16", "ISO-8859-16", 1},
    [KOI8_R] = {"KOI8-R", "KOI8-R", 1},
    [KOI8_U] = {"KOI8-U", "KOI8-U", 1},
    [MACINTOSH] = {"macintosh", "MACINTOSH", 1},
    [MAC_CYRILLIC] = {"x-mac-cyrillic", "MAC-CYRILLIC", 1},
    [IBM866] = {"IBM866", "CP866", 1},
    [GB18030] = {"gb18030", "GB18030", 1},
    [BIG5] = {"Big5", "BIG5-HKSCS", 1},
    [SHIFT_JIS] = {"Shift_JIS", "CP932", 1},
    [EUC_JP] = {"EUC-JP", "EUC-JP-MS", 1},
    [ISO_2022_JP] = {"ISO-2022-JP", "ISO-2022-JP", 1},
    [EUC_KR] = {"EUC-KR", "CP949", 1},
};

/* Labels other than the names above. */
static const struct {
    const char *label;
    int charset;
} labels[] = {
    {"utf8", UTF_8},
    {"unicode-1-1-utf-8", UTF_8},
    {"unicode11utf8", UTF_8},
    {"x-unicode20utf8", UTF_8},
    {"utf-16", UTF_16LE},
    {"utf16", UTF_16LE},
    {"unicode", UTF_16LE},
    {"ucs-2", UTF_16LE},
    {"iso-10646-ucs-2", UTF_16LE},
    {"iso-8859-1", WINDOWS_1252},
    {"iso8859-1", WINDOWS_1252},
    {"iso88591", WINDOWS_1252},
    {"iso_8859-1", WINDOWS_1252},
    {"latin1", WINDOWS_1252},
    {"latin-1", WINDOWS_1252},
    {"l1", WINDOWS_1252},
    {"ascii", WINDOWS_1252},
    {"us-ascii", WINDOWS_1252},
    {"ansi_x3.4-1968", WINDOWS_1252},
    {"cp1252", WINDOWS_1252},
    {"x-cp1252", WINDOWS_1252},
    {"cp819", WINDOWS_1252},
    {"ibm819", WINDOWS_1252},
    {"x-user-defined", WINDOWS_1252},
    {"cp1250", WINDOWS_1250},
    {"x-cp1250", WINDOWS_1250},
    {"cp1251", WINDOWS_1251},
    {"x-cp1251", WINDOWS_1251},
    {"cp1253", WINDOWS_1253},
    {"x-cp1253", WINDOWS_1253},
    {"cp1254", WINDOWS_1254},
    {"x-cp1254", WINDOWS_1254},
    {"iso-8859-9", WINDOWS_1254},
    {"iso8859-9", WINDOWS_1254},
    {"iso_8859-9", WINDOWS_1254},
    {"latin5", WINDOWS_1254},
    {"cp1255", WINDOWS_1255},
    {"cp1256", WINDOWS_1256},
    {"cp1257", WINDOWS_1257},
    {"cp1258", WINDOWS_1258},
    {"tis-620", WINDOWS_874},
    {"iso-8859-11", WINDOWS_874},
    {"iso8859-11", WINDOWS_874},
    {"dos-874", WINDOWS_874},
    {"iso8859-2", ISO_2},
    {"iso_8859-2", ISO_2},
    {"latin2", ISO_2},
    {"iso8859-3", ISO_3},
    {"latin3", ISO_3},
    {"iso8859-4", ISO_4},
    {"latin4", ISO_4},
    {"iso8859-5", ISO_5},
    {"cyrillic", ISO_5},
    {"iso8859-6", ISO_6},
    {"arabic", ISO_6},
    {"iso8859-7", ISO_7},
    {"greek", ISO_7},
    {"iso8859-8", ISO_8},
    {"iso-8859-8-i", ISO_8},
    {"visual", ISO_8},
    {"logical", ISO_8},
    {"hebrew", ISO_8},
    {"iso8859-10", ISO_10},
    {"latin6", ISO_10},
    {"iso8859-13", ISO_13},
    {"iso8859-14", ISO_14},
    {"iso8859-15", ISO_15},
    {"latin9", ISO_15},
    {"l9", ISO_15},
    {"koi8", KOI8_R},
    {"koi", KOI8_R},
    {"koi8_r", KOI8_R},
    {"koi8-ru", KOI8_U},
    {"mac", MACINTOSH},
    {"x-mac-roman", MACINTOSH},
    {"x-mac-ukrainian", MAC_CYRILLIC},
    {"mac-cyrillic", MAC_CYRILLIC},
    {"cp866", IBM866},
    {"866", IBM866},
    {"gb2312", GB18030},
    {"gbk", GB18030},
    {"x-gbk", GB18030},
    {"gb_2312-80", GB18030},
    {"chinese", GB18030},
    {"csgb2312", GB18030},
    {"iso-ir-58", GB18030},
    {"hz-gb-2312", GB18030},
    {"euc-cn", GB18030},
    {"big5-hkscs", BIG5},
    {"cn-big5", BIG5},
    {"x-x-big5", BIG5},
    {"csbig5", BIG5},
    {"sjis", SHIFT_JIS},
    {"shift-jis", SHIFT_JIS},
    {"x-sjis", SHIFT_JIS},
    {"ms_kanji", SHIFT_JIS},
    {"windows-31j", SHIFT_JIS},
    {"cp932", SHIFT_JIS},
    {"ms932", SHIFT_JIS},
    {"x-euc-jp", EUC_JP},
    {"cseucpkdfmtjapanese", EUC_JP},
    {"csiso2022jp", ISO_2022_JP},
    {"ks_c_5601-1987", EUC_KR},
    {"ks_c_5601-1989", EUC_KR},
    {"ksc5601", EUC_KR},
    {"ksc_5601", EUC_KR},
    {"korean", EUC_KR},
    {"windows-949", EUC_KR},
    {"uhc", EUC_KR},
    {"cp949", EUC_KR},
};

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool same(const char *label, size_t length, const char *name) {
    return strlen(name) == length && !strncasecmp(label, name, length);
}

const dp_charset *dp_charset_by_label(const char *label, size_t length) {
    for (; length && is_space(*label); label++)
        length--;
    while (length && is_space(label[length - 1]))
        length--;
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (same(label, length, charsets[i].name))
            return &charsets[i];
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++)
        if (same(label, length, labels[i].label))
            return &charsets[labels[i].charset];
    return NULL;
}

/* ---- what the page says ---- */

/* Where `word` stands, in any case; NULL: nowhere. */
static const char *find(const char *p, const char *end, const char *word) {
    size_t length = strlen(word);
    for (; (size_t)(end - p) >= length; p++)
        if (!strncasecmp(p, word, length))
            return p;
    return NULL;
}

/* The label behind the first `word` in a tag, `=` and an optional quote; charset="..." and content="...; charset=..."
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
        return dp_charset_by_label(label, (size_t)(p - label));
    }
    return NULL;
}

/* A declaration that can be read as ASCII is not UTF-16, whatever it says. */
static const dp_charset *believed(const dp_charset *said) {
    return said && said->unit > 1 ? &charsets[UTF_8] : said;
}

/* A tag ends at its `>`, wherever that stands: no charset has one. */
static const char *tag_end(const char *p, const char *end) {
    const char *close = memchr(p, '>', (size_t)(end - p));
    return close ? close : end;
}

const dp_charset *dp_charset_declared(const char *bytes, size_t length) {
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

/* ---- all together ---- */

static const dp_charset *by_mark(const char *bytes, size_t length, size_t *mark) {
    static const struct {
        const char *mark;
        size_t length;
        int charset;
    } marks[] = {{"\xEF\xBB\xBF", 3, UTF_8}, {"\xFF\xFE", 2, UTF_16LE}, {"\xFE\xFF", 2, UTF_16BE}};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (length >= marks[i].length && !memcmp(bytes, marks[i].mark, marks[i].length)) {
            *mark = marks[i].length;
            return &charsets[marks[i].charset];
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

/* NULL: no memory. */
static const dp_charset *guess(const char *bytes, size_t length) {
    uchardet_t detector = uchardet_new();
    const dp_charset *guessed = NULL;
    if (!detector)
        return NULL;
    if (!uchardet_handle_data(detector, bytes, length < GUESSED_FROM ? length : GUESSED_FROM)) {
        uchardet_data_end(detector);
        const char *name = uchardet_get_charset(detector);
        guessed = believed(dp_charset_by_label(name, strlen(name)));
        if (!guessed || guessed == &charsets[UTF_8])
            guessed = &charsets[WINDOWS_1252];
    }
    uchardet_delete(detector);
    return guessed;
}

const dp_charset *dp_charset_of(const char *bytes, size_t length, const char *carrier, size_t *mark) {
    *mark = 0;
    const dp_charset *charset = by_mark(bytes, length, mark);
    if (!charset && carrier)
        charset = dp_charset_by_label(carrier, strlen(carrier));
    if (!charset)
        charset = dp_charset_declared(bytes, length);
    if (!charset && valid_utf8(bytes, length))
        charset = &charsets[UTF_8];
    return charset ? charset : guess(bytes, length);
}

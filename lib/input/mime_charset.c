/* mime_charset.c - charsets that mail is written in, and what iconv calls them.
 *
 * Where mail says one charset and means a larger one that contains it, as Latin-1 for windows-1252, it is the larger.
 */
#include "input/mime.h"

#include <strings.h>

typedef struct alias {
    const char *name, *converter;
} alias;

static const alias aliases[] = {
    {"utf-8", "UTF-8"},
    {"utf8", "UTF-8"},
    {"unicode-1-1-utf-8", "UTF-8"},
    {"us-ascii", "WINDOWS-1252"},
    {"ascii", "WINDOWS-1252"},
    {"ansi_x3.4-1968", "WINDOWS-1252"},
    {"iso-8859-1", "WINDOWS-1252"},
    {"iso8859-1", "WINDOWS-1252"},
    {"iso_8859-1", "WINDOWS-1252"},
    {"latin1", "WINDOWS-1252"},
    {"latin-1", "WINDOWS-1252"},
    {"cp1252", "WINDOWS-1252"},
    {"cp1250", "WINDOWS-1250"},
    {"cp1251", "WINDOWS-1251"},
    {"x-cp1251", "WINDOWS-1251"},
    {"cp1253", "WINDOWS-1253"},
    {"cp1254", "WINDOWS-1254"},
    {"cp1255", "WINDOWS-1255"},
    {"cp1256", "WINDOWS-1256"},
    {"cp1257", "WINDOWS-1257"},
    {"cp1258", "WINDOWS-1258"},
    {"latin2", "ISO-8859-2"},
    {"iso8859-2", "ISO-8859-2"},
    {"latin9", "ISO-8859-15"},
    {"iso8859-15", "ISO-8859-15"},
    {"iso-8859-9", "WINDOWS-1254"},
    {"latin5", "WINDOWS-1254"},
    {"iso-8859-8-i", "ISO-8859-8"},
    {"koi8-r", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"x-gbk", "GB18030"},
    {"cp936", "GB18030"},
    {"eucgb2312_cn", "GB18030"},
    {"gb18030", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"big5-hkscs", "BIG5-HKSCS"},
    {"euc-jp", "EUC-JP"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"cp932", "CP932"},
    {"windows-31j", "CP932"},
    {"iso-2022-jp", "ISO-2022-JP"},
    {"euc-kr", "CP949"},
    {"ks_c_5601-1987", "CP949"},
    {"cp949", "CP949"},
    {"iso-2022-kr", "ISO-2022-KR"},
    {"tis-620", "WINDOWS-874"},
    {"iso-8859-11", "WINDOWS-874"},
    {"windows-874", "WINDOWS-874"},
    {"utf-7", "UTF-7"},
    {"unicode-1-1-utf-7", "UTF-7"},
    {"utf-16", "UTF-16"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
    {"macintosh", "MACINTOSH"},
    {"cp850", "CP850"},
    {"ibm850", "CP850"},
    {"cp437", "CP437"},
    {"ibm437", "CP437"},
    {"cp866", "CP866"},
    {"ibm866", "CP866"},
};

/* Names that iconv has too. */
static const char *numbered(const char *name) {
    static const char *const names[] = {
        "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",   "ISO-8859-5",   "ISO-8859-6",   "ISO-8859-7",   "ISO-8859-8",
        "ISO-8859-10",  "ISO-8859-13",  "ISO-8859-14",  "ISO-8859-15",  "ISO-8859-16",  "WINDOWS-1250", "WINDOWS-1251",
        "WINDOWS-1252", "WINDOWS-1253", "WINDOWS-1254", "WINDOWS-1255", "WINDOWS-1256", "WINDOWS-1257", "WINDOWS-1258"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcasecmp(name, names[i]))
            return names[i];
    return NULL;
}

const char *dp_mime_charset(const char *name) {
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (!strcasecmp(name, aliases[i].name))
            return aliases[i].converter;
    return numbered(name);
}

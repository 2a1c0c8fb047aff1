/* test_charset.c - the charset of a page: labels, what comes first, conversion, what is invalid. */
#include "support.h"

#include "text/charset.h"

#include <stdio.h>

static const char *name_of(const char *bytes, size_t length, const char *carrier) {
    size_t mark;
    const dp_charset *charset = dp_charset_of(bytes, length, carrier, &mark);
    assert_non_null(charset);
    return charset->name;
}

#define NAME_OF(bytes, carrier) name_of(bytes, sizeof(bytes) - 1, carrier)

static const dp_charset *by_label(const char *label) {
    size_t mark;
    return dp_charset_of("", 0, label, &mark);
}

/* ---- labels ---- */

static void labels_mean_what_browsers_take_them_for(void **state) {
    (void)state;
    static const struct {
        const char *label, *name;
    } known[] = {{"utf-8", "UTF-8"},
                 {"UTF8", "UTF-8"},
                 {" iso-8859-1\n", "windows-1252"},
                 {"latin1", "windows-1252"},
                 {"US-ASCII", "windows-1252"},
                 {"ISO-8859-9", "windows-1254"},
                 {"gb2312", "gb18030"},
                 {"GBK", "gb18030"},
                 {"shift_jis", "Shift_JIS"},
                 {"x-sjis", "Shift_JIS"},
                 {"euc-kr", "EUC-KR"},
                 {"ks_c_5601-1987", "EUC-KR"},
                 {"big5-hkscs", "Big5"},
                 {"windows-1251", "windows-1251"},
                 {"koi8-r", "KOI8-R"},
                 {"utf-16", "UTF-16LE"},
                 {"tis-620", "windows-874"},
                 {"iso-8859-2", "ISO-8859-2"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const dp_charset *charset = by_label(known[i].label);
        assert_non_null(charset);
        assert_string_equal(charset->name, known[i].name);
    }
    assert_string_equal(NAME_OF("<meta charset=koi8-r>", "nothing"), "KOI8-R");
    assert_string_equal(NAME_OF("<meta charset=koi8-r>", ""), "KOI8-R");
}

/* Every label has a converter in this C library. */
static void every_charset_can_be_converted(void **state) {
    (void)state;
    static const char *const names[] = {
        "UTF-16LE",     "UTF-16BE",     "windows-1252", "windows-1250",   "windows-1251", "windows-1253",
        "windows-1254", "windows-1255", "windows-1256", "windows-1257",   "windows-1258", "windows-874",
        "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",   "ISO-8859-5",     "ISO-8859-6",   "ISO-8859-7",
        "ISO-8859-8",   "ISO-8859-10",  "ISO-8859-13",  "ISO-8859-14",    "ISO-8859-15",  "ISO-8859-16",
        "KOI8-R",       "KOI8-U",       "macintosh",    "x-mac-cyrillic", "IBM866",       "gb18030",
        "Big5",         "Shift_JIS",    "EUC-JP",       "ISO-2022-JP",    "EUC-KR"};
    dp_decoder decoder = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        doppel_slice text;
        const dp_charset *charset = by_label(names[i]);
        assert_non_null(charset);
        const char *bytes = charset->unit == 1 ? "ab" : i ? "\0a\0b" : "a\0b\0";
        assert_int_equal(dp_decoder_run(&decoder, charset, bytes, 2 * charset->unit, &text), DOPPEL_OK);
        assert_true(text.length == 2 && !memcmp(text.data, "ab", 2));
    }
    dp_decoder_close(&decoder);
}

/* ---- what comes first ---- */

static void the_mark_comes_first(void **state) {
    (void)state;
    assert_string_equal(NAME_OF("\xEF\xBB\xBF<meta charset=latin1>", "koi8-r"), "UTF-8");
    assert_string_equal(NAME_OF("\xFF\xFE<\0", "koi8-r"), "UTF-16LE");
    assert_string_equal(NAME_OF("\xFE\xFF\0<", NULL), "UTF-16BE");
}

static void then_the_carrier_then_the_page(void **state) {
    (void)state;
    assert_string_equal(NAME_OF("<meta charset=latin1>", "koi8-r"), "KOI8-R");
    assert_string_equal(NAME_OF("<meta charset=latin1>", "nothing"), "windows-1252");
    assert_string_equal(NAME_OF("<meta charset=latin1>", NULL), "windows-1252");
    assert_string_equal(NAME_OF("<META Charset = \"EUC-JP\" >", NULL), "EUC-JP");
    assert_string_equal(NAME_OF("<meta http-equiv=content-type content='text/html; charset=euc-kr'>", NULL), "EUC-KR");
    assert_string_equal(NAME_OF("<?xml version='1.0' encoding='iso-8859-2'?>", NULL), "ISO-8859-2");
    assert_string_equal(NAME_OF("<!-- <meta charset=euc-kr> --><meta charset=euc-jp>", NULL), "EUC-JP");
    assert_string_equal(NAME_OF("<meta charset=utf-16>", NULL), "UTF-8");
    assert_string_equal(NAME_OF("<meta name=charset><p charset=euc-jp>", NULL), "UTF-8");
    assert_string_equal(NAME_OF("<metadata charset=euc-jp>", NULL), "UTF-8");
}

static void then_valid_utf8_then_a_guess(void **state) {
    (void)state;
    assert_string_equal(NAME_OF("", NULL), "UTF-8");
    assert_string_equal(NAME_OF("caf\xC3\xA9", NULL), "UTF-8");
    assert_string_equal(NAME_OF("\xFF", NULL), "windows-1252");
    /* "This is Japanese text in EUC-JP", in words that are that. */
    static const char japanese[] =
        "\xA4\xB3\xA4\xEC\xA4\xCF\xC6\xFC\xCB\xDC\xB8\xEC\xA4\xCE\xA5\xC6\xA5\xAD\xA5\xB9\xA5\xC8"
        "\xA4\xC7\xA4\xB9\xA1\xA3\xCA\xB8\xBB\xFA\xA4\xCE\xC9\xE4\xB9\xE6\xB2\xBD\xA4\xF2"
        "\xBF\xE4\xC2\xAC\xA4\xB7\xA4\xDE\xA4\xB9\xA1\xA3";
    assert_string_equal(NAME_OF(japanese, NULL), "EUC-JP");
}

static void a_declaration_that_comes_too_late(void **state) {
    (void)state;
    char page[5000];
    memset(page, ' ', sizeof page);
    memcpy(page + 4000, "<meta charset=euc-jp>", 21);
    assert_string_equal(name_of(page, sizeof page, NULL), "EUC-JP");
    memset(page, ' ', sizeof page);
    memcpy(page + 4090, "<meta charset=euc-jp>", 21);
    assert_string_equal(name_of(page, sizeof page, NULL), "UTF-8");
}

/* A declaration may be cut off anywhere. */
static void cut_declarations(void **state) {
    (void)state;
    static const char *const pages[] = {"<meta charset='latin1'>", "<!-- x --><meta charset=latin1>",
                                        "<?xml encoding='latin1'?>", "\xEF\xBB\xBFx"};
    for (size_t i = 0; i < 4; i++)
        for (size_t length = 0; length <= strlen(pages[i]); length++) {
            guarded memory = guarded_create(length + 1);
            assert_non_null(name_of(guarded_copy(memory, pages[i], length), length, NULL));
            guarded_free(memory);
        }
}

/* ---- conversion ---- */

static void check_text(const char *label, const char *bytes, size_t length, const char *expected) {
    dp_decoder decoder = {0};
    doppel_slice text;
    guarded memory = guarded_create(length + 1);
    const char *given = guarded_copy(memory, bytes, length);
    const dp_charset *charset = by_label(label);
    assert_int_equal(dp_decoder_run(&decoder, charset, given, length, &text), DOPPEL_OK);
    assert_int_equal(text.length, strlen(expected));
    assert_memory_equal(text.data, expected, text.length);
    dp_decoder_close(&decoder);
    guarded_free(memory);
}

#define TEXT(label, bytes, expected) check_text(label, bytes, sizeof(bytes) - 1, expected)

static void other_charsets_become_utf8(void **state) {
    (void)state;
    TEXT("latin1", "caf\xE9 \x80", "caf\xC3\xA9 \xE2\x82\xAC");
    TEXT("koi8-r", "\xCD\xC9\xD2", "\xD0\xBC\xD0\xB8\xD1\x80");
    TEXT("gb2312", "\xD6\xD0\xCE\xC4", "\xE4\xB8\xAD\xE6\x96\x87");
    TEXT("shift_jis", "\x93\xFA\x96\x7B", "\xE6\x97\xA5\xE6\x9C\xAC");
    TEXT("utf-16", "a\0\xE9\0\x3D\xD8\x00\xDE", "a\xC3\xA9\xF0\x9F\x98\x80");
    TEXT("windows-1255", "\xF9", "\xD7\xA9"); /* held by the converter: a mark may follow */
}

static void invalid_sequences_are_replaced(void **state) {
    (void)state;
    TEXT("utf-8",
         "a\xFF"
         "b\xC3",
         "a\xEF\xBF\xBD"
         "b\xEF\xBF\xBD");
    TEXT("utf-8",
         "\xE2\x82"
         "a\xED\xA0\x80",
         "\xEF\xBF\xBD"
         "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    TEXT("windows-1252",
         "a\x81"
         "b",
         "a\xEF\xBF\xBD"
         "b");
    TEXT("shift_jis", "a\x93", "a\xEF\xBF\xBD");
    TEXT("gb18030", "\x81<p>", "\xEF\xBF\xBD<p>");
    TEXT("utf-16",
         "a\0\x00\xD8"
         "b\0c",
         "a\xEF\xBF\xBD"
         "b\xEF\xBF\xBD");
}

static void control_characters_are_dropped(void **state) {
    (void)state;
    TEXT("utf-8", "a\0b\1\t\n\r\fc\vd\x1F\x7F", "ab\t\n\r c d\x7F");
    TEXT("latin1", "a\0\xE9\1\fc", "a\xC3\xA9 c");
}

static void clean_text_is_not_copied(void **state) {
    (void)state;
    dp_decoder decoder = {0};
    doppel_slice text;
    const char *clean = "plain, caf\xC3\xA9";
    assert_int_equal(dp_decoder_run(&decoder, by_label("utf-8"), clean, strlen(clean), &text), DOPPEL_OK);
    assert_ptr_equal(text.data, clean);
    dp_decoder_close(&decoder);
}

/* Text that grows three times as long, over the ends of the decoder's buffer. */
static void long_texts(void **state) {
    (void)state;
    size_t length = 100001;
    char *bytes = malloc(length);
    memset(bytes, 0x80, length); /* the euro sign */
    dp_decoder decoder = {0};
    for (size_t n = 0; n < length; n = n * 3 + 1) {
        doppel_slice text;
        assert_int_equal(dp_decoder_run(&decoder, by_label("latin1"), bytes, n, &text), DOPPEL_OK);
        assert_int_equal(text.length, 3 * n);
        for (size_t i = 0; i < n; i++)
            assert_memory_equal(text.data + 3 * i, "\xE2\x82\xAC", 3);
    }
    dp_decoder_close(&decoder);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_mean_what_browsers_take_them_for),
        cmocka_unit_test(every_charset_can_be_converted),
        cmocka_unit_test(the_mark_comes_first),
        cmocka_unit_test(then_the_carrier_then_the_page),
        cmocka_unit_test(then_valid_utf8_then_a_guess),
        cmocka_unit_test(a_declaration_that_comes_too_late),
        cmocka_unit_test(cut_declarations),
        cmocka_unit_test(other_charsets_become_utf8),
        cmocka_unit_test(invalid_sequences_are_replaced),
        cmocka_unit_test(control_characters_are_dropped),
        cmocka_unit_test(clean_text_is_not_copied),
        cmocka_unit_test(long_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

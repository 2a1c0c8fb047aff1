/* test_pieces.c - texts cut into lines, sentences and paragraphs: where each piece ends, for all code points that can
 * end one, and that pieces are whole and apart in any bytes. */
#include "support.h"

#include "base/base.h"
#include "text/text.h"

#include <stdio.h>
#include <utf8proc.h>

/* ---- pieces as text ---- */

/* Pieces, one after the other, with a | between them. */
static dp_buffer cut(dp_piece_kind kind, doppel_slice text) {
    dp_buffer pieces = {0};
    guarded memory = guarded_create(text.length + 1);
    const char *at_guard = guarded_copy(memory, text.data, text.length);
    for (size_t at = 0, end; at < text.length; at = end) {
        end = dp_piece_end(kind, (doppel_slice){at_guard, text.length}, at);
        assert_true(end > at && end <= text.length);
        assert_true(!at || dp_buffer_add(&pieces, "|", 1));
        assert_true(dp_buffer_add(&pieces, text.data + at, end - at));
    }
    assert_true(dp_buffer_add(&pieces, "", 1));
    guarded_free(memory);
    return pieces;
}

static void check(dp_piece_kind kind, const char *text, const char *expected) {
    dp_buffer pieces = cut(kind, doppel_slice_of(text));
    assert_string_equal(pieces.data, expected);
    dp_buffer_free(&pieces);
}

static void lines(const char *text, const char *expected) {
    check(DP_PIECE_LINE, text, expected);
}

static void sentences(const char *text, const char *expected) {
    check(DP_PIECE_SENTENCE, text, expected);
}

static void paragraphs(const char *text, const char *expected) {
    check(DP_PIECE_PARAGRAPH, text, expected);
}

#define LS "\xE2\x80\xA8" /* U+2028 */
#define PS "\xE2\x80\xA9" /* U+2029 */
#define ACUTE "\xCC\x81"  /* U+0301, category Mn */

/* ---- lines ---- */

static void lines_end_after_each_terminator(void **state) {
    (void)state;
    lines("a\nb\rc\r\nd" LS "e" PS "f", "a\n|b\r|c\r\n|d" LS "|e" PS "|f");
}

static void cr_lf_is_one_terminator_and_lf_cr_two(void **state) {
    (void)state;
    lines("a\r\n\r\nb", "a\r\n|\r\n|b");
    lines("a\n\rb", "a\n|\r|b");
    lines("a\r\rb", "a\r|\r|b");
}

static void a_terminator_at_the_end_makes_no_empty_line(void **state) {
    (void)state;
    lines("a\n", "a\n");
    lines("a\r", "a\r");
    lines("\n\n", "\n|\n");
    lines("a" LS, "a" LS);
    lines("", "");
}

static void other_white_space_ends_no_line(void **state) {
    (void)state;
    lines("a\v\f\t\xC2\x85\xC2\xA0\xE2\x80\xAF\xE2\x80\xA7z", "a\v\f\t\xC2\x85\xC2\xA0\xE2\x80\xAF\xE2\x80\xA7z");
}

static void a_separator_that_breaks_off_ends_no_line(void **state) {
    (void)state;
    lines("a\xE2\x80", "a\xE2\x80");
    lines("a\xE2\xE2\x80\xA8z", "a\xE2\xE2\x80\xA8|z");
    lines("a\xE2\x80\nz", "a\xE2\x80\n|z");
    lines("a\x80\xA8z", "a\x80\xA8z");
}

/* ---- paragraphs ---- */

static void paragraphs_end_at_blank_lines(void **state) {
    (void)state;
    paragraphs("a\nb\n\nc\n", "a\nb\n|\n|c\n");
    paragraphs("a\r\n\r\nb", "a\r\n|\r\n|b");
    paragraphs("a" LS LS "b" PS PS "c", "a" LS "|" LS "|b" PS "|" PS "|c");
    paragraphs("a\nb", "a\nb");
}

static void each_blank_line_is_a_piece(void **state) {
    (void)state;
    paragraphs("\n\na\n\n\nb\n\n", "\n|\n|a\n|\n|\n|b\n|\n");
    paragraphs("\n", "\n");
    paragraphs("  ", "  ");
}

static void a_line_of_white_space_is_blank(void **state) {
    (void)state;
    paragraphs("a\n \t\xC2\xA0\xE3\x80\x80\v\f\xC2\x85\n b", "a\n| \t\xC2\xA0\xE3\x80\x80\v\f\xC2\x85\n| b");
}

/* U+0F0B and U+1361 separate words, and are punctuation; U+200B and U+FEFF are format characters. */
static void a_line_of_what_looks_like_white_space_is_not_blank(void **state) {
    (void)state;
    paragraphs("a\n\xE0\xBC\x8B\nb", "a\n\xE0\xBC\x8B\nb");
    paragraphs("a\n\xE1\x8D\xA1\nb", "a\n\xE1\x8D\xA1\nb");
    paragraphs("a\n\xE2\x80\x8B\nb", "a\n\xE2\x80\x8B\nb");
    paragraphs("a\n\xEF\xBB\xBF\nb", "a\n\xEF\xBB\xBF\nb");
    paragraphs("a\n\xFF\nb", "a\n\xFF\nb");
    paragraphs("a\n \xE2\x80\nb", "a\n \xE2\x80\nb");
}

/* ---- sentences ---- */

static void sentences_end_after_a_terminal_and_its_white_space(void **state) {
    (void)state;
    sentences("One. Two!  Three?\tFour", "One. |Two!  |Three?\t|Four");
    sentences("One.\xC2\xA0\xE2\x80\x83Two", "One.\xC2\xA0\xE2\x80\x83|Two");
    sentences("One.", "One.");
    sentences("One. ", "One. ");
    sentences("One, two; three: four", "One, two; three: four");
}

static void sentences_end_at_line_ends(void **state) {
    (void)state;
    sentences("A title\nOne. Two\r\nThree" LS "Four" PS "Five\rSix",
              "A title\n|One. |Two\r\n|Three" LS "|Four" PS "|Five\r|Six");
}

static void the_line_end_after_a_terminal_belongs_to_its_sentence(void **state) {
    (void)state;
    sentences("One.\nTwo. \r\n Three.\t" LS "Four", "One.\n|Two. \r\n| Three.\t" LS "|Four");
    sentences("One. \n\nTwo", "One. \n|\n|Two");
}

static void a_terminal_within_a_word_or_number_ends_nothing(void **state) {
    (void)state;
    sentences("Pi is 3.14, see www.example.com or a.b!c", "Pi is 3.14, see www.example.com or a.b!c");
    sentences("v1.2.3. Next", "v1.2.3. |Next");
}

/* No list of words is kept: an abbreviation ends a sentence, like all that has a full stop and a space. */
static void abbreviations_end_sentences(void **state) {
    (void)state;
    sentences("Mr. Smith, e.g. J. R. Ewing", "Mr. |Smith, e.g. |J. |R. |Ewing");
}

static void several_terminals_are_one(void **state) {
    (void)state;
    sentences("What?! Well... Yes", "What?! |Well... |Yes");
    sentences("a..b.. c", "a..b.. |c");
    sentences("One. . Two", "One. |. |Two");
}

static void closing_marks_belong_to_the_terminal(void **state) {
    (void)state;
    sentences("\"One.\" (Two.) [Three!] 'Four?' Five", "\"One.\" |(Two.) |[Three!] |'Four?' |Five");
    sentences("\xE2\x80\x9COne.\xE2\x80\x9D Two", "\xE2\x80\x9COne.\xE2\x80\x9D |Two"); /* Pf */
    sentences("\xC2\xBBOne.\xC2\xAB Two", "\xC2\xBBOne.\xC2\xAB |Two");                 /* Pi */
    sentences("One.\").\"' Two", "One.\").\"' |Two");
    sentences("One.(two) three", "One.(two) three"); /* Ps is none */
    sentences("One.)two three", "One.)two three");
}

static void combining_marks_belong_to_the_terminal(void **state) {
    (void)state;
    sentences("One." ACUTE ACUTE " Two", "One." ACUTE ACUTE " |Two");
    sentences("One?\xE2\x83\x9D Two", "One?\xE2\x83\x9D |Two"); /* U+20DD, Me */
    sentences("One!\xEF\xB8\x8F Two", "One!\xEF\xB8\x8F |Two"); /* U+FE0F */
    sentences("One.\xE0\xA4\xBE Two", "One.\xE0\xA4\xBE |Two"); /* U+093E, Mc */
    sentences("One. " ACUTE " Two", "One.| " ACUTE " Two");     /* a space with a mark */
    sentences("One. \t " ACUTE "Two", "One. \t| " ACUTE "Two");
    sentences("One.\n" ACUTE "Two", "One.\n|" ACUTE "Two");
    sentences("One. \n " ACUTE "Two", "One. \n| " ACUTE "Two");
}

static void full_width_terminals_need_no_white_space(void **state) {
    (void)state;
    static const char *const wide[] = {"\xE3\x80\x82", "\xEF\xBC\x81", "\xEF\xBC\x8E", "\xEF\xBC\x9F", "\xEF\xBD\xA1"};
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        char text[64], expected[64];
        snprintf(text, sizeof text, "One%sTwo%s Three", wide[i], wide[i]);
        snprintf(expected, sizeof expected, "One%s|Two%s |Three", wide[i], wide[i]);
        sentences(text, expected);
        /* One among others is enough, before them and after. */
        snprintf(text, sizeof text, "One!%s\"Two%s.)Three", wide[i], wide[i]);
        snprintf(expected, sizeof expected, "One!%s\"|Two%s.)|Three", wide[i], wide[i]);
        sentences(text, expected);
    }
}

static void closing_marks_of_full_width_texts_are_taken(void **state) {
    (void)state;
    sentences("\xE3\x80\x8C"
              "a\xE3\x80\x82\xE3\x80\x8D"
              "b\xEF\xBC\x81\xE3\x80\x80"
              "c",
              "\xE3\x80\x8C"
              "a\xE3\x80\x82\xE3\x80\x8D|b\xEF\xBC\x81\xE3\x80\x80|c");
}

static void invalid_bytes_are_no_white_space(void **state) {
    (void)state;
    sentences("One.\xFFTwo", "One.\xFFTwo");
    sentences("One. \xFF Two.\xC2", "One. |\xFF Two.\xC2");
    sentences("One.\xE2\x80 Two", "One.\xE2\x80 Two");
    sentences("\xE3\x80One. Two", "\xE3\x80One. |Two");
    sentences("One\xE3\x80\x82\xE3Two", "One\xE3\x80\x82|\xE3Two");
    sentences("One.\xED\xA0\x80 Two. Three", "One.\xED\xA0\x80 Two. |Three");
}

/* ---- all code points ---- */

static bool is_line_end(int32_t c) {
    return c == '\n' || c == '\r' || c == 0x2028 || c == 0x2029;
}

/* White_Space of PropList.txt. */
static bool is_white_space(int32_t c) {
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* Where the first sentence of before + c + after ends. */
static size_t end_around(const char *before, int32_t c, const char *after) {
    char text[64];
    size_t length = strlen(before);
    memcpy(text, before, length);
    length += dp_utf8_encode((uint32_t)c, (uint8_t *)text + length);
    memcpy(text + length, after, strlen(after));
    return dp_piece_end(DP_PIECE_SENTENCE, (doppel_slice){text, length + strlen(after)}, 0);
}

static size_t size_of(int32_t c) {
    uint8_t bytes[4];
    return dp_utf8_encode((uint32_t)c, bytes);
}

static bool is_code_point(int32_t c) {
    return c < 0xD800 || c > 0xDFFF;
}

/* There are 154 of them in PropList.txt of Unicode 15.0, and each must pass the test of its category. */
static void every_terminal_is_other_punctuation(void **state) {
    (void)state;
    size_t terminals = 0;
    for (int32_t c = 1; c < 0x110000; c++) {
        if (!is_code_point(c) || is_line_end(c) || end_around("x", c, " y") != size_of(c) + 2)
            continue;
        terminals++;
        assert_int_equal(utf8proc_category(c), UTF8PROC_CATEGORY_PO);
    }
    assert_int_equal(terminals, 154);
}

static void five_terminals_are_full_width(void **state) {
    (void)state;
    size_t wide = 0;
    for (int32_t c = 1; c < 0x110000; c++)
        wide += is_code_point(c) && !is_line_end(c) && end_around("x", c, "y") == size_of(c) + 1;
    assert_int_equal(wide, 5);
}

/* After a terminal: what is neither closing nor White_Space undoes it, and white space is taken. */
static void white_space_is_that_of_unicode(void **state) {
    (void)state;
    for (int32_t c = 1; c < 0x110000; c++) {
        size_t all = 2 + size_of(c) + 1;
        bool is_wide = c == 0x3002 || c == 0xFF01 || c == 0xFF0E || c == 0xFF1F || c == 0xFF61;
        if (is_code_point(c))
            assert_int_equal(end_around("x.", c, "y"), is_white_space(c) || is_wide ? all - 1 : all);
    }
}

static bool is_closing(int32_t c) {
    utf8proc_category_t category = utf8proc_category(c);
    return c == '"' || c == '\'' || category == UTF8PROC_CATEGORY_PE || category == UTF8PROC_CATEGORY_PF ||
           category == UTF8PROC_CATEGORY_PI || category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

static void closing_is_by_category(void **state) {
    (void)state;
    for (int32_t c = 1; c < 0x110000; c++) {
        size_t all = 2 + size_of(c) + 2;
        /* White space ends the sentence before it, and a terminal is one as well. */
        if (!is_code_point(c) || is_white_space(c) || end_around("x", c, " y") != all - 1)
            continue;
        assert_int_equal(end_around("x.", c, " y"), is_closing(c) ? all - 1 : all);
    }
}

static void marks_are_category_m(void **state) {
    (void)state;
    assert_false(dp_code_point_is_mark(-1));
    for (int32_t c = 0; c < 0x110000; c++) {
        utf8proc_category_t category = utf8proc_category(c);
        bool is_mark =
            category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
        assert_int_equal(dp_code_point_is_mark(c), is_mark);
    }
}

/* ---- any bytes ---- */

/* A text of what ends pieces, and of what breaks off. */
static size_t make_text(uint64_t *random, char *text, size_t most) {
    static const char *const parts[] = {"a",
                                        "b c",
                                        ".",
                                        "!",
                                        "\"",
                                        ")",
                                        " ",
                                        "\t",
                                        "\n",
                                        "\r",
                                        "\r\n",
                                        LS,
                                        PS,
                                        ACUTE,
                                        "\xE3\x80\x82",
                                        "\xEF\xBC\x8E",
                                        "\xE2\x80\x9D",
                                        "\xC2\xA0",
                                        "\xE3\x80\x80",
                                        "\xE2",
                                        "\x80",
                                        "\xE3\x80",
                                        "\xF0\x91",
                                        "\xFF"};
    size_t length = 0, count = random_below(random, 30);
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[random_below(random, sizeof parts / sizeof *parts)];
        if (length + strlen(part) > most)
            break;
        memcpy(text + length, part, strlen(part));
        length += strlen(part);
    }
    return length;
}

/* Whether a piece of the text ends at `place`. */
static bool ends_at(dp_piece_kind kind, doppel_slice text, size_t place) {
    size_t at = 0;
    while (at < text.length && at < place)
        at = dp_piece_end(kind, text, at);
    return at == place;
}

/* A sentence or a paragraph never ends within a line end, and sentences end wherever lines do. */
static void sentences_and_paragraphs_go_with_lines(void **state) {
    (void)state;
    uint64_t random = 3;
    for (size_t round = 0; round < 20000 / SMALLER; round++) {
        char text[200];
        doppel_slice slice = {text, make_text(&random, text, sizeof text)};
        for (size_t at = 0; at < slice.length;) {
            at = dp_piece_end(DP_PIECE_LINE, slice, at);
            assert_true(ends_at(DP_PIECE_SENTENCE, slice, at));
        }
        for (size_t at = 0; at < slice.length;) {
            at = dp_piece_end(DP_PIECE_PARAGRAPH, slice, at);
            assert_true(ends_at(DP_PIECE_LINE, slice, at));
        }
    }
}

/* Where a piece ends depends on the text from its start on, and on nothing before. */
static void pieces_stand_for_themselves(void **state) {
    (void)state;
    uint64_t random = 4;
    for (size_t round = 0; round < 20000 / SMALLER; round++) {
        char text[200];
        doppel_slice slice = {text, make_text(&random, text, sizeof text)};
        for (dp_piece_kind kind = DP_PIECE_LINE; kind <= DP_PIECE_PARAGRAPH; kind++)
            for (size_t at = 0, end; at < slice.length; at = end) {
                end = dp_piece_end(kind, slice, at);
                doppel_slice rest = {text + at, slice.length - at};
                assert_int_equal(dp_piece_end(kind, rest, 0), end - at);
            }
        dp_buffer pieces = cut(DP_PIECE_SENTENCE, slice);
        dp_buffer_free(&pieces);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_after_each_terminator),
        cmocka_unit_test(cr_lf_is_one_terminator_and_lf_cr_two),
        cmocka_unit_test(a_terminator_at_the_end_makes_no_empty_line),
        cmocka_unit_test(other_white_space_ends_no_line),
        cmocka_unit_test(a_separator_that_breaks_off_ends_no_line),
        cmocka_unit_test(paragraphs_end_at_blank_lines),
        cmocka_unit_test(each_blank_line_is_a_piece),
        cmocka_unit_test(a_line_of_white_space_is_blank),
        cmocka_unit_test(a_line_of_what_looks_like_white_space_is_not_blank),
        cmocka_unit_test(sentences_end_after_a_terminal_and_its_white_space),
        cmocka_unit_test(sentences_end_at_line_ends),
        cmocka_unit_test(the_line_end_after_a_terminal_belongs_to_its_sentence),
        cmocka_unit_test(a_terminal_within_a_word_or_number_ends_nothing),
        cmocka_unit_test(abbreviations_end_sentences),
        cmocka_unit_test(several_terminals_are_one),
        cmocka_unit_test(closing_marks_belong_to_the_terminal),
        cmocka_unit_test(combining_marks_belong_to_the_terminal),
        cmocka_unit_test(full_width_terminals_need_no_white_space),
        cmocka_unit_test(closing_marks_of_full_width_texts_are_taken),
        cmocka_unit_test(invalid_bytes_are_no_white_space),
        cmocka_unit_test(every_terminal_is_other_punctuation),
        cmocka_unit_test(five_terminals_are_full_width),
        cmocka_unit_test(white_space_is_that_of_unicode),
        cmocka_unit_test(closing_is_by_category),
        cmocka_unit_test(marks_are_category_m),
        cmocka_unit_test(sentences_and_paragraphs_go_with_lines),
        cmocka_unit_test(pieces_stand_for_themselves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_trim.c - what trim cuts of a few documents, worked out by hand: units and runs, passages, which one is kept,
 * scopes, against, and which documents are dropped. Each runs with one thread, with several, and with hardly any
 * memory. In what is expected, a document is a line: [start-end words original@start] for each span, what is left with
 * ~ for line feeds, and why it is dropped. */
#include "trims.h"

#include <math.h>

#define LINE_A "Accept all of our cookies"
#define LINE_B "Sign up for our letter"

/* ---- lines ---- */

static void the_first_of_equal_lines_stays(void **state) {
    (void)state;
    check_texts((doppel_trim_options){0}, (texts){{"one\n" LINE_A "\ntwo", LINE_A "\n", "x\n" LINE_A}},
                "one~" LINE_A "~two\n"
                "[0-26 5 a@4] !empty\n"
                "[2-27 5 a@4]x~\n");
}

static void a_line_is_compared_by_its_words(void **state) {
    (void)state;
    check_texts(
        (doppel_trim_options){0},
        (texts){{"Caf\u00e9 au lait, served here!", "CAFE\u0301 AU LAIT   served here", "cafe au lait served here"}},
        "Caf\u00e9 au lait, served here!\n"
        "[0-28 5 a@0] !empty\n"
        "cafe au lait served here\n");
}

static void a_line_ends_in_many_ways(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.min_words = 1}, (texts){{"a b\r\na b\ra b\u2028a b\u2029a b\na b\x0b", "a b"}},
                "[5-9 2 a@0][9-15 2 a@0][15-21 2 a@0][21-25 2 a@0][25-29 2 a@0]a b\r~\n"
                "[0-3 2 a@0] !empty\n");
}

/* What has no words goes with the unit before it; before the first it stays. */
static void lines_without_words_go_with_the_one_before(void **state) {
    (void)state;
    check_texts((doppel_trim_options){0},
                (texts){{LINE_A, "\n--\n" LINE_A "\n\n***\n\nrest of it", "!\n" LINE_A "\n?!"}},
                LINE_A "\n"
                       "[4-36 5 a@0]~--~rest of it\n"
                       "[2-30 5 a@0]!~ !empty\n");
}

static void lines_with_few_words_are_not_cut(void **state) {
    (void)state;
    static const texts given = {{"a b c d\na b c d e", "a b c d\na b c d e"}};
    check_texts((doppel_trim_options){0}, given, "a b c d~a b c d e\n[8-17 5 a@8]a b c d~\n");
    check_texts((doppel_trim_options){.min_words = 4}, given, "a b c d~a b c d e\n[0-17 9 a@0] !empty\n");
    check_texts((doppel_trim_options){.min_words = 6}, given, "a b c d~a b c d e\na b c d~a b c d e\n");
}

/* ---- runs ---- */

static void a_run_is_cut_as_a_whole(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.run = 3, .min_words = 1},
                (texts){{"x\na\nb\nc\nd\ny", "a\nb\nc\nd", "a\nb", "b\nc\nd\ne", "a\nb\nX"}},
                "x~a~b~c~d~y\n"
                "[0-7 4 a@2] !empty\n"
                "a~b\n"
                "[0-6 3 a@4]e\n"
                "a~b~X\n");
}

/* Units with few words are cut in a run with one that has enough. */
static void one_long_unit_is_enough_for_a_run(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.run = 2}, (texts){{"a\nb\n" LINE_A "\nc\nd", "a\nb\n" LINE_A "\nc\nd"}},
                "a~b~" LINE_A "~c~d\n"
                "[2-32 7 a@2]a~d\n");
}

static void a_run_longer_than_any_text(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.run = 4, .min_words = 1}, (texts){{"a\nb\nc", "a\nb\nc", ""}},
                "a~b~c\na~b~c\n\n");
    check_texts((doppel_trim_options){.run = 3, .min_words = 1}, (texts){{"a\nb\nc", "a\nb\nc", ""}},
                "a~b~c\n[0-5 3 a@0] !empty\n\n");
}

/* A run that overlaps the first in its own document is no repeat; one that adjoins it is. */
static void runs_of_one_document_must_not_overlap(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.run = 2, .min_words = 1}, (texts){{"a\na\na"}}, "a~a~a\n");
    check_texts((doppel_trim_options){.run = 2, .min_words = 1}, (texts){{"a\na\na\na"}}, "[4-7 2 a@0]a~a~\n");
    check_texts((doppel_trim_options){.run = 2, .min_words = 1}, (texts){{"a\na\na\na\na"}},
                "[4-8 2 a@0][6-9 2 a@0]a~a~\n");
}

/* ---- sentences and paragraphs ---- */

static void sentences(void **state) {
    (void)state;
    check_texts(
        (doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE},
        (texts){{"It was a sunny day. \"Did you see the cat?\" No", "So: it\nIt was a sunny DAY!\nDid you see the "
                                                                    "cat? Yes.It was a sunny day."}},
        "It was a sunny day. \"Did you see the cat?\" No\n"
        "[7-48 10 a@0]So: it~Yes.It was a sunny day.\n");
}

static void three_sentences_in_a_row(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE, .run = 3, .min_words = 3},
                (texts){{"One is here now. Two. Three. Four.", "Zero! One is here now! Two? Three...\nFour. Five."}},
                "One is here now. Two. Three. Four.\n"
                "[6-37 6 a@0]Zero! Four. Five.\n");
}

static void full_width_sentences(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE, .min_words = 1},
                (texts){{"\u4eca\u65e5\u3002\u660e\u65e5\u300d", "\u660e\u65e5\uff01\u300d\u4eca\u65e5"}},
                "\u4eca\u65e5\u3002\u660e\u65e5\u300d\n"
                "[0-12 2 a@9][12-18 2 a@0] !empty\n");
}

static void paragraphs_stand_between_blank_lines(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PARAGRAPH},
                (texts){{"This is free: copy\nit to all.\n \n\t\nThe end", "\nThis is FREE; copy it\nto all\n\n\nrest",
                         "This is free: "
                         "copy\nit to all.\nMore"}},
                "This is free: copy~it to all.~ ~\t~The end\n"
                "[1-32 7 a@0]~rest\n"
                "This is free: copy~it to all.~More\n");
}

/* In the text of a page, each line is a block. */
static void paragraphs_of_pages_are_blocks(void **state) {
    (void)state;
    static const char records[] =
        "{\"id\":\"a\",\"html\":\"<p>Accept all of our cookies</p><p>own words of a</p>\"}\n"
        "{\"id\":\"b\",\"html\":\"<div>Accept <b>all</b> of our cookies</div><p>more</p>\"}\n"
        "{\"id\":\"c\",\"text\":\"Accept all of our cookies\\nown words of a\"}\n"
        "{\"id\":\"d\",\"text\":\"Accept all of our cookies\\n\\nown\",\"html\":\"<p>not this\"}\n";
    const char *path = "pages.jsonl";
    spit(path, records, sizeof records - 1);
    check_paths(&path, 1, (doppel_trim_options){.unit = DOPPEL_UNIT_PARAGRAPH, .content = DOPPEL_CONTENT_ALL},
                LINE_A "~own words of a\n"
                       "[0-26 5 a@0]more\n" LINE_A "~own words of a\n"
                       "[0-27 5 a@0]own\n");
}

/* ---- passages ---- */

static void passages_begin_anywhere(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 4},
                (texts){{"x one two three four five y", "So: ONE, two...\nthree (four) five! six", "two three four",
                         "four five y z"}},
                "x one two three four five y\n"
                "[4-35 5 a@2]So: six\n"
                "two three four\n"
                "four five y z\n");
}

/* A passage takes all up to the next word. */
static void a_passage_ends_before_the_next_word(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 2},
                (texts){{"a b", "(a b), [c", "\"a, b.\"", "c a, b ..."}},
                "a b\n[1-8 2 a@0](c\n[1-7 2 a@0]\" !empty\n[2-10 2 a@0]c \n");
}

static void a_passage_has_fifty_words_unless_said(void **state) {
    (void)state;
    dp_buffer text = {0}, file = {0}, lines = {0};
    const char *path = "words.jsonl";
    for (int i = 0; i < 51; i++)
        assert_true(dp_buffer_printf(&text, "%sw%d", i ? " " : "", i));
    assert_true(dp_buffer_add(&text, "", 1));
    add_record(&file, "a", text.data, "");
    add_record(&file, "b", text.data, "");
    *strrchr(text.data, ' ') = 0;
    add_record(&file, "c", text.data, "");
    *strrchr(text.data, ' ') = 0;
    add_record(&file, "d", text.data, "");
    assert_true(dp_buffer_add(&text, "", 1));
    save_buffer(&file, path);
    assert_true(dp_buffer_printf(&lines, "%s w49 w50\n[0-193 51 a@0] !empty\n[0-189 50 a@0] !empty\n%s\n", text.data,
                                 text.data) &&
                dp_buffer_add(&lines, "", 1));
    check_paths(&path, 1, (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE}, lines.data);
    dp_buffer_free(&text);
    dp_buffer_free(&lines);
}

static void a_passage_that_repeats_itself(void **state) {
    (void)state;
    doppel_trim_options o = {.unit = DOPPEL_UNIT_PASSAGE, .words = 3};
    check_texts(o, (texts){{"ha ha ha ha ha"}}, "ha ha ha ha ha\n");
    check_texts(o, (texts){{"ha ha ha ha ha ha"}}, "[9-17 3 a@0]ha ha ha \n");
    check_texts(o, (texts){{"ha ha ha ha ha ha ha ha"}}, "[9-18 3 a@0][12-21 3 a@0][15-23 3 a@0]ha ha ha \n");
    o.cut_first = true;
    check_texts(o, (texts){{"ha ha ha ha", "ha ha ha"}}, "[0-9 3 b@0][3-11 3 b@0] !empty\n[0-8 3 a@0] !empty\n");
    check_texts(o, (texts){{"ha ha ha ha ha"}}, "ha ha ha ha ha\n");
    check_texts(o, (texts){{"ha ha ha ha ha ha ha ha"}}, "[0-15 5 a@9][9-18 3 a@0][12-21 3 a@0][15-23 3 a@0] !empty\n");
}

/* Spans of one original and one shift join, others do not; cuts do. */
static void spans_join_by_original_and_shift(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 2},
                (texts){{"a b c d", "c d e f", "a b c d e f", "a b x c d", "c d a b"}},
                "a b c d\n"
                "[0-4 2 a@4]e f\n"
                "[0-8 4 a@0][6-11 3 b@2] !empty\n"
                "[0-4 2 a@0][6-9 2 a@4]x \n"
                "[0-4 2 a@4][4-7 2 a@0] !empty\n");
}

/* Adjoining spans with the same shift are one. */
static void windows_that_adjoin_are_one_span(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.run = 2, .min_words = 3},
                (texts){{"a b c\nd\ne\nf g h", "a b c\nd\ne\nf g h", "a b c\nd\nX\ne\nf g h"}},
                "a b c~d~e~f g h\n"
                "[0-15 8 a@0] !empty\n"
                "[0-8 4 a@0][10-17 4 a@8]X~\n");
}

/* ---- which one stays ---- */

static void the_order_of_keeping(void **state) {
    (void)state;
    static const texts given = {{LINE_A "\na", LINE_A "\nb bb", LINE_A "\nc"}};
    check_texts((doppel_trim_options){.keep = "last"}, given, "[0-26 5 c@0]a\n[0-26 5 c@0]b bb\n" LINE_A "~c\n");
    check_texts((doppel_trim_options){.keep = "longest"}, given, "[0-26 5 b@0]a\n" LINE_A "~b bb\n[0-26 5 b@0]c\n");
    check_texts((doppel_trim_options){.keep = "shortest,last"}, given,
                "[0-26 5 c@0]a\n[0-26 5 c@0]b bb\n" LINE_A "~c\n");
    check_texts((doppel_trim_options){.keep = "last", .unit = DOPPEL_UNIT_PASSAGE, .words = 5}, given,
                "[0-26 5 c@0]a\n[0-26 5 c@0]b bb\n" LINE_A "~c\n");
}

/* The length of a page is that of its text. */
static void the_longest_of_pages(void **state) {
    (void)state;
    static const char records[] = "{\"id\":\"a\",\"html\":\"<p><b><i>Accept all of our cookies</i></b></p>\"}\n"
                                  "{\"id\":\"b\",\"html\":\"<p>Accept all of our cookies</p><p>more of it</p>\"}\n"
                                  "{\"id\":\"c\",\"text\":\"Accept all of our cookies\\nx\"}\n";
    const char *path = "pages.jsonl";
    spit(path, records, sizeof records - 1);
    check_paths(&path, 1, (doppel_trim_options){.keep = "longest", .content = DOPPEL_CONTENT_ALL},
                "[0-25 5 b@0] !empty\n" LINE_A "~more of it\n[0-26 5 b@0]x\n");
    check_paths(&path, 1, (doppel_trim_options){.keep = "shortest", .content = DOPPEL_CONTENT_ALL},
                LINE_A "\n[0-26 5 a@0]more of it\n[0-26 5 a@0]x\n");
}

static void least_counts(void **state) {
    (void)state;
    static const texts given = {{LINE_A "\n" LINE_B, LINE_A "\n" LINE_B, LINE_A}};
    check_texts((doppel_trim_options){.min_count = 3}, given,
                LINE_A "~" LINE_B "\n[0-26 5 a@0]" LINE_B "\n[0-25 5 a@0] !empty\n");
    check_texts((doppel_trim_options){.min_count = 4}, given,
                LINE_A "~" LINE_B "\n" LINE_A "~" LINE_B "\n" LINE_A "\n");
    check_texts((doppel_trim_options){.min_count = 3, .cut_first = true}, given,
                "[0-26 5 b@0]" LINE_B "\n[0-26 5 a@0]" LINE_B "\n[0-25 5 a@0] !empty\n");
}

/* Windows that overlap the last one that counted in their document do not count. */
static void windows_that_overlap_count_once(void **state) {
    (void)state;
    doppel_trim_options o = {.unit = DOPPEL_UNIT_PASSAGE, .words = 2, .min_count = 3};
    check_texts(o, (texts){{"a a a a a"}}, "a a a a a\n");
    check_texts(o, (texts){{"a a a a a a"}}, "[4-8 2 a@0][6-10 2 a@0][8-11 2 a@0]a a \n");
    check_texts(o, (texts){{"a a a a", "a a"}}, "[4-7 2 a@0]a a \n[0-3 2 a@0] !empty\n");
    check_texts(o, (texts){{"a a a", "a a a"}}, "a a a\na a a\n");
}

static void every_occurrence_is_cut(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.cut_first = true}, (texts){{"x\n" LINE_A, LINE_A, LINE_B, LINE_A "\n" LINE_A}},
                "[2-27 5 b@0]x~\n[0-25 5 a@2] !empty\n" LINE_B "\n[0-26 5 a@2][26-51 5 a@2] !empty\n");
}

/* ---- scopes ---- */

static const char scoped[] =
    "{\"id\":\"a\",\"url\":\"http://x.one.com/1\",\"lang\":\"en\",\"text\":\"a b c d e\\nf g h i j\"}\n"
    "{\"id\":\"b\",\"url\":\"http://y.one.com/1\",\"lang\":\"de\",\"text\":\"a b c d e\"}\n"
    "{\"id\":\"c\",\"url\":\"http://x.one.com/2\",\"lang\":\"de\",\"text\":\"a b c d e\\na b c d e\"}\n"
    "{\"id\":\"d\",\"text\":\"a b c d e\"}\n"
    "{\"id\":\"e\",\"text\":\"f g h i j\\na b c d e\"}\n";

static void check_scopes(doppel_trim_options options, const char *expected) {
    const char *path = "scoped.jsonl";
    spit(path, scoped, sizeof scoped - 1);
    check_paths(&path, 1, options, expected);
    options.unit = DOPPEL_UNIT_PASSAGE;
    options.words = 5;
    check_paths(&path, 1, options, expected);
}

static void repeats_within_a_scope(void **state) {
    (void)state;
    check_scopes(
        (doppel_trim_options){.within = "host"},
        "a b c d e~f g h i j\na b c d e\n[0-10 5 a@0][10-19 5 a@0] !empty\na b c d e\n[10-19 5 d@0]f g h i j~\n");
    check_scopes((doppel_trim_options){.within = "domain"},
                 "a b c d e~f g h i j\n[0-9 5 a@0] !empty\n[0-10 5 a@0][10-19 5 "
                 "a@0] !empty\na b c d e\n[10-19 5 d@0]f g h i j~\n");
    check_scopes((doppel_trim_options){.within = "lang"}, "a b c d e~f g h i j\na b c d e\n[0-10 5 b@0][10-19 5 b@0] "
                                                          "!empty\na b c d e\n[10-19 5 d@0]f g h i j~\n");
    check_scopes((doppel_trim_options){.within = "document"},
                 "a b c d e~f g h i j\na b c d e\n[10-19 5 c@0]a b c d e~\na b c d e\nf g h i j~a b c d e\n");
}

static void repeats_across_scopes(void **state) {
    (void)state;
    check_scopes((doppel_trim_options){.across = "host"},
                 "a b c d e~f g h i j\n[0-9 5 a@0] !empty\n[0-10 5 b@0][10-19 5 b@0] !empty\n[0-9 5 a@0] !empty\n"
                 "[0-10 5 a@10][10-19 5 a@0] !empty\n");
    check_scopes((doppel_trim_options){.across = "document"},
                 "a b c d e~f g h i j\n[0-9 5 a@0] !empty\n[0-10 5 a@0][10-19 5 a@0] !empty\n[0-9 5 a@0] !empty\n"
                 "[0-10 5 a@10][10-19 5 a@0] !empty\n");
    check_scopes((doppel_trim_options){.across = "lang", .keep = "last"},
                 "[0-10 5 e@10][10-19 5 e@0] !empty\n[0-9 5 e@10] !empty\n[0-10 5 e@10][10-19 5 e@10] !empty\n"
                 "a b c d e\nf g h i j~a b c d e\n");
}

/* With scopes, the number of occurrences is that of a scope, or of all. */
static void counts_in_scopes(void **state) {
    (void)state;
    check_scopes((doppel_trim_options){.within = "host", .min_count = 3},
                 "a b c d e~f g h i j\na b c d e\n[0-10 5 a@0][10-19 5 a@0] !empty\na b c d e\nf g h i j~a b c d e\n");
    check_scopes((doppel_trim_options){.within = "host", .cut_first = true},
                 "[0-10 5 c@0]f g h i j\na b c d e\n[0-10 5 a@0][10-19 5 a@0] !empty\n[0-9 5 e@10] !empty\n"
                 "[10-19 5 d@0]f g h i j~\n");
    check_scopes((doppel_trim_options){.across = "host", .cut_first = true, .min_count = 6},
                 "[0-10 5 b@0]f g h i j\n[0-9 5 a@0] !empty\n[0-10 5 b@0][10-19 5 b@0] !empty\n[0-9 5 a@0] !empty\n"
                 "[10-19 5 a@0]f g h i j~\n");
}

/* ---- against ---- */

static void check_against(doppel_trim_options options, texts against, texts given, const char *expected) {
    const char *path = "texts.jsonl", *other = "against.jsonl";
    save_texts(other, against, 'q');
    save_texts(path, given, 'a');
    options.against = &other;
    options.against_count = 1;
    check_paths(&path, 1, options, expected);
}

static void only_what_others_contain_is_cut(void **state) {
    (void)state;
    check_against((doppel_trim_options){0}, (texts){{LINE_A "\n" LINE_A, LINE_A}},
                  (texts){{LINE_B "\n" LINE_B, LINE_A "\n" LINE_B "\n" LINE_A}},
                  LINE_B "~" LINE_B "\n[0-26 5 q@0][49-74 5 q@0]" LINE_B "~\n");
    check_against((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 3}, (texts){{"x a b c d", "c d e"}},
                  (texts){{"a b c d e f", "a b c a b c", "f g h f g h"}},
                  "[0-8 4 q@2][4-10 3 r@0]f\n[0-6 3 q@2][6-11 3 q@2] !empty\nf g h f g h\n");
    check_against((doppel_trim_options){.drop = true}, (texts){{LINE_A}}, (texts){{LINE_A, LINE_B}},
                  "[0-25 5 q@0] !repeats\n" LINE_B "\n");
}

/* Texts with fewer words than a passage are looked for as a whole, if they have words enough. */
static void short_texts_are_matched_whole(void **state) {
    (void)state;
    static const texts against = {
        {"What is it?", "one two three four five six", "is it", "WHAT is, it", "of five one two three"}};
    static const texts given = {{"Hm. What\nIS it, now what is", "zero one two three four five six",
                                 "one two three four five",
                                 "is it "
                                 "of five one "
                                 "two three "
                                 "four five six"}};
    check_against((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 6, .min_words = 3}, against, given,
                  "[4-16 3 q@0]Hm. now what is\n"
                  "[5-32 6 r@0]zero \n"
                  "one two three four five\n"
                  "[6-28 5 u@0][14-41 6 r@0]is it \n");
    check_against((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 6, .min_words = 2}, against, given,
                  "[4-16 3 q@0][9-16 2 s@0]Hm. now what is\n"
                  "[5-32 6 r@0]zero \n"
                  "one two three four five\n"
                  "[0-6 2 s@0][6-28 5 u@0][14-41 6 r@0] !empty\n");
}

static void short_texts_that_are_ignored_are_counted(void **state) {
    (void)state;
    const char *path = "texts.jsonl", *other = "against.jsonl";
    doppel_trim_stats stats;
    save_texts(other, (texts){{"a b", "a b c", "a", "", "!", "a b c d e f g"}}, 'q');
    save_texts(path, (texts){{"a b c x"}}, 'a');
    doppel_trim *trim = find_repeats(
        &path, 1,
        (doppel_trim_options){
            .unit = DOPPEL_UNIT_PASSAGE, .words = 6, .min_words = 3, .against = &other, .against_count = 1});
    doppel_trim_get_stats(trim, &stats);
    assert_int_equal(stats.short_against, 2);
    assert_int_equal(stats.against.documents, 6);
    assert_int_equal(stats.repeated, 1);
    assert_int_equal(stats.words, 4);
    doppel_trim_free(trim);
}

/* What those texts repeat of each other is not counted. */
static void repeats_of_others_are_not_counted(void **state) {
    (void)state;
    const char *path = "texts.jsonl", *other = "against.jsonl";
    doppel_trim_stats stats;
    save_texts(other, (texts){{LINE_A "\n" LINE_A, LINE_A "\n" LINE_B, LINE_B}}, 'q');
    save_texts(path, (texts){{LINE_A "\nx"}}, 'a');
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){.against = &other, .against_count = 1});
    doppel_trim_get_stats(trim, &stats);
    assert_int_equal(stats.repeated, 1);
    assert_int_equal(stats.values, 1);
    assert_int_equal(stats.units, 2);
    doppel_trim_free(trim);
}

/* ---- documents that lost much ---- */

static void documents_that_are_dropped(void **state) {
    (void)state;
    static const texts given = {{"a b c d e", "a b c d e\nf g h", "a b c d e\nf g h i j", "f g", ""}};
    check_texts((doppel_trim_options){.drop_below = 3}, given,
                "a b c d e\n[0-10 5 a@0]f g h\n[0-10 5 a@0]f g h i j\nf g\n\n");
    check_texts((doppel_trim_options){.drop_below = 4}, given,
                "a b c d e\n[0-10 5 a@0]f g h !below\n[0-10 5 a@0]f g h i j\nf g\n\n");
    check_texts((doppel_trim_options){.drop_share = 0.5}, given,
                "a b c d e\n[0-10 5 a@0]f g h !share\n[0-10 5 a@0]f g h i j\nf g\n\n");
    check_texts((doppel_trim_options){.drop_share = 0.625}, given,
                "a b c d e\n[0-10 5 a@0]f g h\n[0-10 5 a@0]f g h i j\nf g\n\n");
    check_texts((doppel_trim_options){.drop_share = 0.4999, .drop_below = 4}, given,
                "a b c d e\n[0-10 5 a@0]f g h !below\n[0-10 5 a@0]f g h i j !share\nf g\n\n");
    check_texts((doppel_trim_options){.drop = true, .drop_below = 100}, given,
                "a b c d e\n[0-10 5 a@0]f g h !repeats\n[0-10 5 a@0]f g h i j !repeats\nf g\n\n");
    check_texts((doppel_trim_options){.drop_share = 1}, (texts){{"a b c d e", "a b c d e"}},
                "a b c d e\n[0-9 5 a@0] !empty\n");
    check_texts((doppel_trim_options){.drop_below = 1}, (texts){{"a b c d e", "a b c d e"}},
                "a b c d e\n[0-9 5 a@0] !below\n");
    /* 15 / 22. * 22 is less than 15. */
    check_texts((doppel_trim_options){.drop_share = 15 / 22.},
                (texts){{"a b c d e f g h i j k l m n o", "a b c d e f g h i j k l m n o\np q r s t u v"}},
                "a b c d e f g h i j k l m n o\n[0-30 15 a@0]p q r s t u v\n");
}

/* ---- boundaries ---- */

/* A passage begins and ends before what marks belong to. */
static void no_cut_between_a_letter_and_its_marks(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 2},
                (texts){{"a b", "a b !\u0301\u0323x", "e\u0301 a b \u093e\u093e c"}},
                "a b\n"
                "[0-4 2 a@0]!\u0301\u0323x\n"
                "[4-7 2 a@0]e\u0301  \u093e\u093e c\n");
}

/* A sentence does not take a space that has marks: they would join what stands before the cut. */
static void no_cut_between_a_space_and_its_marks(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_SENTENCE, .min_words = 1},
                (texts){{"One two.", "x. One two.  \u0301y"}}, "One two.\n[3-12 2 a@0]x.  \u0301y\n");
}

/* Words that come of one code point have one start. */
static void words_of_one_code_point(void **state) {
    (void)state;
    check_texts((doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 2}, (texts){{"\ufdfa", "x \ufdfa y"}},
                "\ufdfa\n[2-6 4 a@0]x y\n");
}

/* ---- figures ---- */

static void stats(void **state) {
    (void)state;
    const char *path = "texts.jsonl";
    doppel_trim_stats s;
    save_texts(path, (texts){{"x\n" LINE_A, LINE_A "\n" LINE_A, LINE_B, LINE_B "\nrest"}}, 'a');
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){.drop_share = 0.85});
    /* Twice: they do not add up. */
    for (int i = 0; i < 2; i++)
        write_trimmed(trim, 0, NULL, NULL);
    doppel_trim_get_stats(trim, &s);
    assert_int_equal(s.input.documents, 4);
    assert_int_equal(s.against.documents, 0);
    assert_int_equal(s.units, 7);
    assert_int_equal(s.words, 27);
    assert_int_equal(s.repeated, 3);
    assert_int_equal(s.values, 2);
    assert_int_equal(s.documents_cut, 2);
    assert_int_equal(s.spans, 3);
    assert_int_equal(s.words_cut, 15);
    assert_int_equal(s.bytes_cut, 26 + 25 + 23);
    assert_int_equal(s.dropped, 1);
    assert_int_equal(s.emptied, 0);
    doppel_trim_free(trim);
}

static void check_repeat(const doppel_repeat *r, uint64_t count, const char *id, uint64_t start, const char *text) {
    assert_int_equal(r->count, count);
    assert_int_equal(r->start, start);
    assert_int_equal(r->id.length, strlen(id));
    assert_memory_equal(r->id.data, id, strlen(id));
    assert_int_equal(r->text.length, strlen(text));
    assert_memory_equal(r->text.data, text, strlen(text));
}

static void the_most_repeated(void **state) {
    (void)state;
    const char *path = "texts.jsonl";
    const doppel_repeat *repeats, *again;
    size_t count;
    save_texts(path, (texts){{"x\n" LINE_A, LINE_B "\n" LINE_A "\n" LINE_A, LINE_B}}, 'a');
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){0});
    assert_int_equal(doppel_trim_get_repeats(trim, &repeats, &count, NULL), DOPPEL_OK);
    assert_int_equal(count, 2);
    check_repeat(&repeats[0], 3, "a", 2, LINE_A);
    check_repeat(&repeats[1], 2, "b", 0, LINE_B "\n");
    assert_int_equal(repeats[1].words, 5);
    assert_int_equal(doppel_trim_get_repeats(trim, &again, &count, NULL), DOPPEL_OK);
    assert_ptr_equal(again, repeats);
    doppel_trim_free(trim);
    /* Windows that overlap are given as one; its text is cut between code points. */
    dp_buffer text = {0};
    assert_true(dp_buffer_add(&text, "xx", 2));
    for (int i = 0; i < 40; i++)
        assert_true(dp_buffer_printf(&text, "\u4e2d%c\u00e9 ", 'a' + i % 26));
    assert_true(dp_buffer_add(&text, "", 1));
    save_texts(path, (texts){{text.data, text.data, LINE_A, LINE_B}}, 'a');
    trim = find_repeats(&path, 1, (doppel_trim_options){.unit = DOPPEL_UNIT_PASSAGE, .words = 60, .keep = "last"});
    assert_int_equal(doppel_trim_get_repeats(trim, &repeats, &count, NULL), DOPPEL_OK);
    assert_int_equal(count, 1);
    text.data[198] = 0;
    check_repeat(&repeats[0], 2, "b", 0, text.data);
    assert_int_equal(repeats[0].words, 81);
    doppel_trim_free(trim);
    dp_buffer_free(&text);
}

/* ---- options ---- */

static void options_that_are_refused(void **state) {
    (void)state;
    static const char *const path = "texts.jsonl";
    static const struct {
        doppel_trim_options options;
        const char *message;
    } refused[] = {
        {{.unit = (doppel_unit)4}, "unit is"},
        {{.unit = DOPPEL_UNIT_PASSAGE, .run = 1}, "run counts"},
        {{.words = 3}, "unit passage"},
        {{.run = 1u << 31}, "at most 2147483647"},
        {{.unit = DOPPEL_UNIT_PASSAGE, .words = 1u << 31}, "at most 2147483647"},
        {{.min_count = 1}, "2 is the least"},
        {{.drop_share = -0.1}, "a share from 0 to 1"},
        {{.drop_share = 1.1}, "a share from 0 to 1"},
        {{.drop_share = (double)NAN}, "a share from 0 to 1"},
        {{.within = "host", .across = "host"}, "together"},
        {{.keep = "best"}, "best"},
        {{.against = &path, .against_count = 1, .keep = "first"}, "against"},
        {{.against = &path, .against_count = 1, .min_count = 2}, "against"},
        {{.against = &path, .against_count = 1, .cut_first = true}, "against"},
        {{.against = &path, .against_count = 1, .within = "host"}, "against"},
        {{.against = &path, .against_count = 1, .across = "host"}, "against"},
    };
    save_texts(path, (texts){{"a"}}, 'a');
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        doppel_trim_options options = refused[i].options;
        doppel_trim *trim = NULL;
        doppel_error error = {0};
        options.size = sizeof options;
        assert_int_equal(doppel_trim_find(&path, 1, &options, &trim, &error), DOPPEL_ERROR_USAGE);
        if (trim || error.code != DOPPEL_ERROR_USAGE || !strstr(error.message, refused[i].message))
            fail_msg("%zu: %s", i, error.message);
    }
}

static void recipes(void **state) {
    (void)state;
    static const char *const refused[] = {"simhash64:chars=4", "simhash64:words=1:first=9"};
    const char *path = "texts.jsonl";
    doppel_recipe *recipe;
    doppel_error error;
    save_texts(path, (texts){{"a"}}, 'a');
    for (size_t i = 0; i < 2; i++) {
        doppel_trim_options options = {.size = sizeof options};
        doppel_trim *trim;
        assert_int_equal(doppel_recipe_parse(refused[i], NULL, &recipe, NULL), DOPPEL_OK);
        options.recipe = recipe;
        assert_int_equal(doppel_trim_find(&path, 1, &options, &trim, &error), DOPPEL_ERROR_USAGE);
        doppel_recipe_free(recipe);
    }
    assert_int_equal(doppel_recipe_parse("simhash64:words=3:case=keep", NULL, &recipe, NULL), DOPPEL_OK);
    check_texts((doppel_trim_options){.recipe = recipe}, (texts){{"a b c d e", "A b c d e", "a b, c d e"}},
                "a b c d e\nA b c d e\n[0-10 5 a@0] !empty\n");
    doppel_recipe_free(recipe);
}

static void defaults(void **state) {
    (void)state;
    const char *path = "texts.jsonl";
    doppel_trim *trim;
    save_texts(path, (texts){{"a"}}, 'a');
    /* No options at all. */
    assert_int_equal(doppel_trim_find(&path, 1, NULL, &trim, NULL), DOPPEL_OK);
    const doppel_trim_options *o = doppel_trim_get_options(trim);
    assert_int_equal(o->run, 1);
    assert_int_equal(o->words, 0);
    assert_int_equal(o->min_words, 5);
    assert_int_equal(o->min_count, 2);
    doppel_trim_free(trim);
    doppel_trim_free(NULL);
    assert_null(doppel_dropped_name(DOPPEL_DROPPED_NOT));
}

static void nothing_at_all(void **state) {
    (void)state;
    const char *path = "empty.jsonl";
    spit(path, "", 0);
    for (doppel_unit unit = DOPPEL_UNIT_LINE; unit <= DOPPEL_UNIT_PASSAGE; unit++) {
        check_paths(&path, 1, (doppel_trim_options){.unit = unit, .keep = "last"}, "");
        check_paths(&path, 0, (doppel_trim_options){.unit = unit, .within = "host"}, "");
        check_texts((doppel_trim_options){.unit = unit, .drop_below = 9}, (texts){{"", "!", " \n \n", "\u0301", ""}},
                    "\n!\n ~ ~\n\u0301\n\n");
        check_against((doppel_trim_options){.unit = unit, .min_words = 1}, (texts){{"", "!"}}, (texts){{"", "a", "!"}},
                      "\na\n!\n");
    }
}

/* What could not be read is in the counts. */
static void files_that_cannot_be_read(void **state) {
    (void)state;
    const char *const paths[] = {"missing.jsonl", "texts.jsonl"};
    doppel_trim_stats stats;
    save_texts(paths[1], (texts){{LINE_A, LINE_A}}, 'a');
    doppel_trim *trim = find_repeats(paths, 2, (doppel_trim_options){0});
    doppel_trim_get_stats(trim, &stats);
    assert_int_equal(stats.input.unopened, 1);
    assert_int_equal(stats.input.documents, 2);
    doppel_trim_free(trim);
    check_paths(paths, 2, (doppel_trim_options){0}, LINE_A "\n[0-25 5 a@0] !empty\n");
}

static doppel_status stop_at_second(const doppel_trimmed *d, void *user) {
    (void)d;
    return ++*(int *)user == 2 ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static void a_callback_ends_it(void **state) {
    (void)state;
    const char *path = "texts.jsonl";
    doppel_error error = {0};
    int seen = 0;
    save_texts(path, (texts){{LINE_A, LINE_A, LINE_A}}, 'a');
    doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){0});
    assert_int_equal(doppel_trim_write(trim, DOPPEL_TRIM_RECORDS, stop_at_second, &seen, &error), DOPPEL_ERROR_IO);
    assert_int_equal(seen, 2);
    /* It can be written again. */
    seen = 10;
    assert_int_equal(doppel_trim_write(trim, DOPPEL_TRIM_RECORDS, stop_at_second, &seen, &error), DOPPEL_OK);
    assert_int_equal(seen, 13);
    doppel_trim_free(trim);
}

/* Found, then read again: the same documents, other ones, more or fewer of them, or other bytes around them. */
static void an_input_that_changes(void **state) {
    (void)state;
    static const texts changed[] = {{{LINE_A, LINE_A "\nx", LINE_A, "y", "z", "y", "z", "y", "z", "y", "z"}},
                                    {{LINE_A, "Accept allof our cookies\nxx"}}, /* as many bytes, fewer words */
                                    {{"x", LINE_A}},
                                    {{LINE_A}},
                                    {{NULL}}};
    const char *path = "texts.jsonl";
    for (size_t way = 0; way <= sizeof changed / sizeof *changed; way++) {
        doppel_error error = {0};
        save_texts(path, (texts){{LINE_A, LINE_A "\nx"}}, 'a');
        dp_buffer file = slurp(path);
        doppel_trim *trim = find_repeats(&path, 1, (doppel_trim_options){0});
        if (way < sizeof changed / sizeof *changed)
            save_texts(path, changed[way], 'a');
        else
            assert_true(dp_buffer_add(&file, "\n", 1));
        if (way == sizeof changed / sizeof *changed)
            spit(path, file.data, file.size);
        assert_int_equal(doppel_trim_write(trim, way % 2 ? 0 : DOPPEL_TRIM_SPANS, NULL, NULL, &error),
                         DOPPEL_ERROR_INPUT);
        assert_non_null(strstr(error.message, "changed"));
        doppel_trim_free(trim);
        dp_buffer_free(&file);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_first_of_equal_lines_stays),
        TEST(a_line_is_compared_by_its_words),
        TEST(a_line_ends_in_many_ways),
        TEST(lines_without_words_go_with_the_one_before),
        TEST(lines_with_few_words_are_not_cut),
        TEST(a_run_is_cut_as_a_whole),
        TEST(one_long_unit_is_enough_for_a_run),
        TEST(a_run_longer_than_any_text),
        TEST(runs_of_one_document_must_not_overlap),
        TEST(sentences),
        TEST(three_sentences_in_a_row),
        TEST(full_width_sentences),
        TEST(paragraphs_stand_between_blank_lines),
        TEST(paragraphs_of_pages_are_blocks),
        TEST(passages_begin_anywhere),
        TEST(a_passage_ends_before_the_next_word),
        TEST(a_passage_has_fifty_words_unless_said),
        TEST(a_passage_that_repeats_itself),
        TEST(spans_join_by_original_and_shift),
        TEST(windows_that_adjoin_are_one_span),
        TEST(the_order_of_keeping),
        TEST(the_longest_of_pages),
        TEST(least_counts),
        TEST(windows_that_overlap_count_once),
        TEST(every_occurrence_is_cut),
        TEST(repeats_within_a_scope),
        TEST(repeats_across_scopes),
        TEST(counts_in_scopes),
        TEST(only_what_others_contain_is_cut),
        TEST(short_texts_are_matched_whole),
        TEST(short_texts_that_are_ignored_are_counted),
        TEST(repeats_of_others_are_not_counted),
        TEST(documents_that_are_dropped),
        TEST(no_cut_between_a_letter_and_its_marks),
        TEST(no_cut_between_a_space_and_its_marks),
        TEST(words_of_one_code_point),
        TEST(stats),
        TEST(the_most_repeated),
        TEST(options_that_are_refused),
        TEST(recipes),
        TEST(defaults),
        TEST(nothing_at_all),
        TEST(files_that_cannot_be_read),
        TEST(a_callback_ends_it),
        TEST(an_input_that_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_words.c - bytes to words (docs/FORMAT.md section 1): scripts, options, any cut, any length, places. */
#include "support.h"

#include "text/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- reading ---- */

/* What comes out of one document. */
typedef struct result {
    dp_buffer text;
    size_t units, batches, ends;
} result;

static doppel_status take(void *user, const dp_word_batch *batch) {
    result *r = user;
    for (size_t i = batch->seen; i < batch->count; i++) {
        uint32_t start = batch->starts[i], length = batch->starts[i + 1] - batch->gap - start;
        assert_true(length > 0);
        assert_true(!batch->gap || !r->units || dp_buffer_add(&r->text, " ", 1));
        assert_true(dp_buffer_add(&r->text, batch->text + start, length));
        r->units++;
    }
    r->batches++;
    r->ends += batch->last;
    return DOPPEL_OK;
}

static dp_words *open_words(const dp_words_options *options) {
    dp_words *words;
    assert_int_equal(dp_words_create(options, &words, NULL), DOPPEL_OK);
    return words;
}

/* Reads in pieces of `piece` bytes; 0: at once. */
static result read_pieces(dp_words *words, const char *text, size_t length, size_t piece) {
    result r = {{0}, 0, 0, 0};
    dp_words_reset(words);
    for (size_t at = 0, here; at < length; at += here) {
        here = piece && piece < length - at ? piece : length - at;
        assert_int_equal(dp_words_add(words, text + at, here, take, &r), DOPPEL_OK);
    }
    assert_int_equal(dp_words_finish(words, take, &r), DOPPEL_OK);
    assert_int_equal(r.ends, 1);
    return r;
}

static void same_text(const char *name, const dp_buffer *got, const char *want, size_t length) {
    if (got->size != length || (length && memcmp(got->data, want, length))) {
        print_error("%s: `%.*s`, not `%.*s`\n", name, (int)got->size, got->size ? got->data : "", (int)length, want);
        fail();
    }
}

static void check(const char *name, const dp_words_options *options, const char *text, size_t length,
                  const char *want) {
    dp_words *words = open_words(options);
    result r = read_pieces(words, text, length, 0);
    same_text(name, &r.text, want, strlen(want));
    dp_buffer_free(&r.text);
    dp_words_free(words);
}

/* ---- scripts ---- */

#define TEXT(literal) literal, sizeof(literal) - 1

static const struct row {
    const char *name, *text;
    size_t length;
    const char *words;
} rows[] = {
    {"ASCII", TEXT("The quick, brown fox."), "the quick brown fox"},
    {"white space of every kind",
     TEXT(" \x09"
          "a\x0A\x0B\x0C"
          "b\x0D c\xC2\x85"
          "d\xC2\xA0"
          "e\xE1\x9A\x80"
          "f\xE2\x80\x83g\xE2\x80\xA8h\xE2\x80\xA9i\xE2\x80\xAFj\xE2\x81\x9Fk\xE3\x80\x80l "),
     "a b c d e f g h i j k l"},
    {"controls that are no white space",
     TEXT("a\x1C"
          "b\x1F"
          "c\x7F"
          "d\x00"
          "e"),
     "abcde"},
    {"Arabic: marks in canonical order, comma, tatweel, digits",
     TEXT("\xD8\xB3\xD9\x91\xD9\x8E\xD9\x84\xD8\xA7\xD9\x85\xD8\x8C \xD9\x83\xD9\x80\xD8\xAA \xD9\xA1\xD9\xA2"),
     "\xD8\xB3\xD9\x8E\xD9\x91\xD9\x84\xD8\xA7\xD9\x85 \xD9\x83\xD9\x80\xD8\xAA \xD9\xA1\xD9\xA2"},
    {"Arabic: presentation forms", TEXT("\xEF\xBB\xBB \xEF\xBB\xA3\xEF\xBA\xAE"), "\xD9\x84\xD8\xA7 \xD9\x85\xD8\xB1"},
    {"Arabic: one code point of four words", TEXT("x\xEF\xB7\xBAy"),
     "x\xD8\xB5\xD9\x84\xD9\x89 \xD8\xA7\xD9\x84\xD9\x84\xD9\x87 \xD8\xB9\xD9\x84\xD9\x8A\xD9\x87 "
     "\xD9\x88\xD8\xB3\xD9\x84\xD9\x85y"},
    {"Hebrew with points and maqaf",
     TEXT("\xD7\xA9\xD7\x81\xD6\xB8\xD7\x9C\xD7\x95\xD6\xB9\xD7\x9D\xD6\xBE\xD7\xA2\xD7\x9C \xEF\xAC\xAA"),
     "\xD7\xA9\xD6\xB8\xD7\x81\xD7\x9C\xD7\x95\xD6\xB9\xD7\x9D\xD7\xA2\xD7\x9C \xD7\xA9\xD7\x81"},
    {"Devanagari with danda and nukta",
     TEXT("\xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8\xE0\xA5\x8D\xE0\xA4\xA6\xE0\xA5\x80 "
          "\xE0\xA4\xAD\xE0\xA4\xBE\xE0\xA4\xB7\xE0\xA4\xBE\xE0\xA5\xA4 \xE0\xA5\x98"),
     "\xE0\xA4\xB9\xE0\xA4\xBF\xE0\xA4\xA8\xE0\xA5\x8D\xE0\xA4\xA6\xE0\xA5\x80 "
     "\xE0\xA4\xAD\xE0\xA4\xBE\xE0\xA4\xB7\xE0\xA4\xBE \xE0\xA4\x95\xE0\xA4\xBC"},
    {"Thai: each letter with its marks",
     TEXT("\xE0\xB8\x81\xE0\xB9\x87\xE0\xB8\x94\xE0\xB8\xB5"
          "abc\xE0\xB8\x81"),
     "\xE0\xB8\x81\xE0\xB9\x87 \xE0\xB8\x94\xE0\xB8\xB5 abc \xE0\xB8\x81"},
    {"Thai: sara am", TEXT("\xE0\xB8\x99\xE0\xB9\x89\xE0\xB8\xB3"),
     "\xE0\xB8\x99\xE0\xB9\x89\xE0\xB9\x8D \xE0\xB8\xB2"},
    {"Lao, Khmer, Myanmar", TEXT("\xE0\xBA\x81\xE0\xBA\xA7 \xE1\x9E\x80\xE1\x9E\xB6 \xE1\x80\x80\xE1\x80\xAC"),
     "\xE0\xBA\x81 \xE0\xBA\xA7 \xE1\x9E\x80\xE1\x9E\xB6 \xE1\x80\x80\xE1\x80\xAC"},
    {"Han, also beyond the first plane and compatibility forms",
     TEXT("\xE6\x9D\xB1\xE4\xBA\xAC\xE9\x83\xBD"
          "A\xE3\x80\x85\xF0\xA0\x80\x80 \xEF\xA4\x80"),
     "\xE6\x9D\xB1 \xE4\xBA\xAC \xE9\x83\xBD a \xE3\x80\x85 \xF0\xA0\x80\x80 \xE8\xB1\x88"},
    {"Han with a mark and with punctuation", TEXT("\xE4\xB8\xAD\xCC\x81\xE3\x80\x81\xE6\x96\x87\xE3\x80\x82"),
     "\xE4\xB8\xAD\xCC\x81 \xE6\x96\x87"},
    {"Kana, half-width ones with their voice mark",
     TEXT("\xE3\x81\xB2\xE3\x82\x89 \xEF\xBD\xB6\xEF\xBE\x9E\xEF\xBD\xB0 \xE3\x81\x8B\xE3\x82\x99"),
     "\xE3\x81\xB2 \xE3\x82\x89 \xE3\x82\xAC \xE3\x83\xBC \xE3\x81\x8C"},
    {"Hangul syllables are spelt with spaces", TEXT("\xED\x95\x9C\xEA\xB5\xAD\xEC\x96\xB4 \xEB\xA7\x90"),
     "\xED\x95\x9C\xEA\xB5\xAD\xEC\x96\xB4 \xEB\xA7\x90"},
    {"Hangul jamo compose",
     TEXT("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8 \xEA\xB0\x80\xE1\x86\xA8 \xE1\x84\x80\xE1\x85\xA1"),
     "\xEA\xB0\x81 \xEA\xB0\x81 \xEA\xB0\x80"},
    {"Cyrillic", TEXT("\xD0\xA1\xD1\x8A\xD0\xB5\xD1\x88\xD1\x8C \xD0\x95\xD0\xA9\xD0\x81, \xD0\xB8\xCC\x86"),
     "\xD1\x81\xD1\x8A\xD0\xB5\xD1\x88\xD1\x8C \xD0\xB5\xD1\x89\xD1\x91 \xD0\xB9"},
    {"Greek: the sigmas are one", TEXT("\xCE\xA3\xCE\xAF\xCF\x83\xCF\x85\xCF\x86\xCE\xBF\xCF\x82"),
     "\xCF\x83\xCE\xAF\xCF\x83\xCF\x85\xCF\x86\xCE\xBF\xCF\x83"},
    {"case of Georgian, Cherokee, Deseret", TEXT("\xE1\xB2\x90 \xEA\xAD\xB0 \xF0\x90\x90\x80"),
     "\xE1\x83\x90 \xE1\x8E\xA0 \xF0\x90\x90\xA8"},
    {"case that makes more",
     TEXT("Stra\xC3\x9F"
          "e \xC4\xB0 \xC5\x89 \xE1\xBA\x9E \xEF\xAC\x83"),
     "strasse i\xCC\x87 \xCA\xBCn ss ffi"},
    {"emoji vanish with their joiners",
     TEXT("a\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7"
          "b \xF0\x9F\x98\x80"),
     "ab"},
    {"a variation selector is a mark, and stays", TEXT("I \xE2\x9D\xA4\xEF\xB8\x8F NY 1\xEF\xB8\x8F\xE2\x83\xA3"),
     "i \xEF\xB8\x8F ny 1\xEF\xB8\x8F\xE2\x83\xA3"},
    {"full-width forms",
     TEXT("\xEF\xBC\xA6\xEF\xBC\xB5\xEF\xBC\xAC\xEF\xBC\xAC\xE3\x80\x80\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x81"),
     "full 12"},
    {"ligatures, fractions, squares, numbers",
     TEXT("\xEF\xAC\x81ne \xC2\xBD \xE3\x8E\x8F \xE2\x85\xA7 x\xC2\xB2 \xE2\x84\xA2"), "fine 12 kg viii x2 tm"},
    {"mathematical letters", TEXT("\xF0\x9D\x90\x80\xF0\x9D\x95\xA9"), "ax"},
    {"combining marks in either order", TEXT("e\xCC\xA3\xCC\x82 e\xCC\x82\xCC\xA3 \xE1\xBB\x87 E\xCC\x82\xCC\xA3"),
     "\xE1\xBB\x87 \xE1\xBB\x87 \xE1\xBB\x87 \xE1\xBB\x87"},
    {"a mark without a letter",
     TEXT("\xCC\x81"
          "a \xCC\x81"),
     "\xCC\x81"
     "a \xCC\x81"},
    {"an accent by itself is a space and a mark", TEXT("x\xC2\xB4y"), "x \xCC\x81y"},
    {"a joiner parts a letter and its mark", TEXT("e\xE2\x80\x8D\xCC\x81"), "e\xCC\x81"},
    {"Tibetan tsheg and Ethiopic wordspace",
     TEXT("\xE0\xBD\x80\xE0\xBC\x8B\xE0\xBD\x81\xE0\xBC\x8C\xE0\xBD\x82 \xE1\x88\x80\xE1\x8D\xA1\xE1\x88\x81"),
     "\xE0\xBD\x80 \xE0\xBD\x81 \xE0\xBD\x82 \xE1\x88\x80 \xE1\x88\x81"},
    {"invisible: zero-width space, soft hyphen, direction marks",
     TEXT("a\xE2\x80\x8B"
          "b\xC2\xAD"
          "c\xE2\x80\x8F"
          "d"),
     "abcd"},
    {"private and unassigned code points",
     TEXT("a\xEE\x80\x80"
          "b\xCD\xB8"
          "c\xF4\x8F\xBF\xBF"
          "d"),
     "abcd"},
    {"a byte-order mark, at the start and later",
     TEXT("\xEF\xBB\xBF"
          "a\xEF\xBB\xBF"
          "b"),
     "ab"},
    {"half a byte-order mark",
     TEXT("\xEF\xBB"
          "a"),
     "a"},
    {"stray, overlong, surrogate and too large",
     TEXT("a\xFF"
          "b\x80"
          "c\xC0\xAF"
          "d\xED\xA0\x80"
          "e\xF4\x90\x80\x80"
          "f\xF5g"),
     "a b c d e f g"},
    {"cut sequences",
     TEXT("a\xE2\x82"
          "b\xF0\x9F\x98"
          "c\xC3"),
     "a b c"},
    {"a cut sequence that another one breaks",
     TEXT("a\xE2\xC3\xA9\xF0\x9F\xE2\x82\xAC"
          "b"),
     "a \xC3\xA9 b"},
    {"nothing composes across an invalid byte", TEXT("e\xFF\xCC\x81"), "e \xCC\x81"},
    {"nothing", TEXT(""), ""},
    {"nothing but space", TEXT(" \x0A\x09 "), ""},
    {"nothing but punctuation", TEXT("...!?"), ""},
    {"nothing but invalid bytes", TEXT("\xFF\xFE\x80"), ""},
};

enum { ROWS = sizeof rows / sizeof *rows };

static void scripts(void **state) {
    (void)state;
    const dp_words_options usual = {0};
    for (size_t i = 0; i < ROWS; i++)
        check(rows[i].name, &usual, rows[i].text, rows[i].length, rows[i].words);
}

static void a_run_of_marks_is_cut_after_32(void **state) {
    (void)state;
    /* Within a piece U+0323 would go ahead of the others. */
    char text[200] = "a", want[200] = "\xC3\xA1";
    for (int i = 0; i < 32; i++) {
        strcat(text, "\xCC\x81");
        strcat(want, i ? "\xCC\x81" : "");
    }
    const dp_words_options usual = {0};
    check("cut", &usual, strcat(text, "\xCC\xA3"), strlen(text) + 2, strcat(want, "\xCC\xA3"));
    check("not cut", &usual, "a\xCC\x81\xCC\xA3", 5, "\xE1\xBA\xA1\xCC\x81");
}

/* ---- options ---- */

static void case_can_stay(void **state) {
    (void)state;
    const dp_words_options options = {.keep_case = true};
    check("case", &options,
          TEXT("The \xC3\x89"
               "cole Stra\xC3\x9F"
               "e \xEF\xAC\x81n \xEF\xBC\xA1"),
          "The \xC3\x89"
          "cole Stra\xC3\x9F"
          "e fin A");
}

static void punctuation_can_stay(void **state) {
    (void)state;
    const dp_words_options options = {.keep_punct = true};
    check("punctuation", &options,
          TEXT("It's 3.14, a+b \xE2\x82\xAC"
               "5 \xE2\x80\x9Cq\xE2\x80\x9D \x01\xC2\xAD."),
          "it's 3.14, a+b \xE2\x82\xAC"
          "5 \xE2\x80\x9Cq\xE2\x80\x9D .");
    /* A word that stands alone ends before a mark of punctuation. */
    check("Han", &options, TEXT("\xE4\xB8\xAD,\xE6\x96\x87"), "\xE4\xB8\xAD , \xE6\x96\x87");
}

static void code_points_are_not_cut_by_script(void **state) {
    (void)state;
    const dp_words_options options = {.chars = true};
    check("chars", &options, TEXT(" A  \xE6\x9D\xB1\xE4\xBA\xAC, b. "), "a \xE6\x9D\xB1\xE4\xBA\xAC b");
    dp_words *words = open_words(&options);
    result r = read_pieces(words, TEXT("A \xE6\x9D\xB1\xE4\xBA\xAC"), 0);
    assert_int_equal(r.units, 4);
    dp_buffer_free(&r.text);
    dp_words_free(words);
}

static void spaces_can_go(void **state) {
    (void)state;
    const dp_words_options options = {.chars = true, .drop_space = true};
    check("no space", &options,
          TEXT(" A b\xFF"
               "c \xE6\x9D\xB1 "),
          "abc\xE6\x9D\xB1");
}

static void the_first_code_points_only(void **state) {
    (void)state;
    static const struct {
        uint64_t first;
        const char *words;
    } cases[] = {{1, "a"},
                 {2, "a"},
                 {3, "a \xC3\xA9"},
                 {4, "a \xC3\xA9"},
                 {5, "a \xC3\xA9 x"},
                 {6, "a \xC3\xA9 xy"},
                 {7, "a \xC3\xA9 xy"},
                 {100, "a \xC3\xA9 xy z"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        /* The byte-order mark does not count, an invalid sequence counts one. */
        const dp_words_options options = {.first = cases[i].first};
        check("first", &options,
              TEXT("\xEF\xBB\xBF"
                   "a \xC3\xA9\xE2\x82xy z"),
              cases[i].words);
    }
}

static void a_mark_behind_the_first_code_points_does_not_join(void **state) {
    (void)state;
    const dp_words_options options = {.first = 5};
    check("first", &options, TEXT("abcde\xCC\x81"), "abcde");
    char text[3000];
    memset(text, 'x', sizeof text);
    const dp_words_options many = {.first = 2999};
    dp_words *words = open_words(&many);
    result r = read_pieces(words, text, sizeof text, 7);
    assert_int_equal(r.text.size, 2999);
    dp_buffer_free(&r.text);
    dp_words_free(words);
}

static void stop_words_are_left_out(void **state) {
    (void)state;
    dp_words_options options = {.stop_words = "The  of\nAND \xE4\xB8\xAD the", .stop_words_length = 20};
    check("stop", &options, TEXT("The end of the world, and \xE4\xB8\xAD\xE6\x96\x87 others"),
          "end world \xE6\x96\x87 others");
    check("all", &options, TEXT("the of and THE"), "");
    check("none", &options, TEXT("then off andy"), "then off andy");
    dp_words *words = open_words(&options);
    const dp_buffer *list = dp_words_stop_list(words);
    same_text("list", list, TEXT("and of the \xE4\xB8\xAD"));
    dp_words_free(words);
}

static void a_stop_list_without_words_stops_nothing(void **state) {
    (void)state;
    const dp_words_options options = {.stop_words = " ... ", .stop_words_length = 5};
    check("blank list", &options, TEXT("the end"), "the end");
}

static void many_stop_words_in_a_long_text(void **state) {
    (void)state;
    dp_buffer list = {0}, text = {0}, want = {0};
    for (int i = 0; i < 3000; i++) {
        assert_true(i % 3 || dp_buffer_printf(&list, "W%d ", i));
        assert_true(dp_buffer_printf(&text, "w%d, ", i));
        assert_true(i % 3 == 0 || dp_buffer_printf(&want, "%sw%d", want.size ? " " : "", i));
    }
    const dp_words_options options = {.stop_words = list.data, .stop_words_length = list.size, .overlap = 3};
    dp_words *words = open_words(&options);
    for (size_t piece = 0; piece < 3000; piece += 701) {
        result r = read_pieces(words, text.data, text.size, piece);
        same_text("long", &r.text, want.data, want.size);
        assert_int_equal(r.units, 2000);
        dp_buffer_free(&r.text);
    }
    dp_words_free(words);
    dp_buffer_free(&list);
    dp_buffer_free(&text);
    dp_buffer_free(&want);
}

/* ---- cut anywhere ---- */

static const dp_words_options all_options[] = {
    {0},
    {.keep_case = true, .keep_punct = true, .overlap = 4},
    {.chars = true, .overlap = 2},
    {.chars = true, .drop_space = true},
    {.first = 9},
    {.stop_words = "a b the", .stop_words_length = 7, .overlap = 1},
};

enum { OPTIONS = sizeof all_options / sizeof *all_options };

static void check_cut(dp_words *words, const char *text, size_t length, size_t cut) {
    result whole = read_pieces(words, text, length, 0), r = {{0}, 0, 0, 0};
    dp_words_reset(words);
    assert_int_equal(dp_words_add(words, text, cut, take, &r), DOPPEL_OK);
    assert_int_equal(dp_words_add(words, text + cut, length - cut, take, &r), DOPPEL_OK);
    assert_int_equal(dp_words_finish(words, take, &r), DOPPEL_OK);
    same_text("cut", &r.text, whole.text.data, whole.text.size);
    assert_int_equal(r.units, whole.units);
    dp_buffer_free(&r.text);
    dp_buffer_free(&whole.text);
}

static void a_cut_at_any_byte_changes_nothing(void **state) {
    (void)state;
    for (size_t k = 0; k < OPTIONS; k++) {
        dp_words *words = open_words(&all_options[k]);
        for (size_t i = 0; i < ROWS; i++)
            for (size_t cut = 0; cut <= rows[i].length; cut++)
                check_cut(words, rows[i].text, rows[i].length, cut);
        dp_words_free(words);
    }
}

/* Rows in random order, with stretches of ASCII between them: longer than several batches. */
static dp_buffer long_text(uint64_t seed, size_t rounds) {
    dp_buffer text = {0};
    for (size_t i = 0; i < rounds; i++) {
        const struct row *row = &rows[random_below(&seed, ROWS)];
        assert_true(dp_buffer_add(&text, row->text, row->length));
        for (size_t n = random_below(&seed, 40); n--;)
            assert_true(dp_buffer_add(&text, &"aB, the\n"[random_below(&seed, 8)], 1));
    }
    return text;
}

static void a_long_text_in_pieces_of_any_size(void **state) {
    (void)state;
    static const size_t pieces[] = {1, 2, 3, 5, 7, 64, 100, 8191, 8192, 8193, 30000};
    dp_buffer text = long_text(1, 3000);
    for (size_t k = 0; k < OPTIONS; k++) {
        dp_words *words = open_words(&all_options[k]);
        result whole = read_pieces(words, text.data, text.size, 0);
        assert_true(whole.batches > 1 || all_options[k].first);
        for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
            result r = read_pieces(words, text.data, text.size, pieces[p]);
            same_text("pieces", &r.text, whole.text.data, whole.text.size);
            dp_buffer_free(&r.text);
        }
        dp_buffer_free(&whole.text);
        dp_words_free(words);
    }
    dp_buffer_free(&text);
}

/* Reads all at once, and compares with the list of words, which knows no batches. */
static void check_with_list(dp_words *words, const dp_words_options *options, const dp_buffer *text) {
    dp_word_list list;
    result r = read_pieces(words, text->data, text->size, 0);
    assert_int_equal(dp_word_list_make(options, text->data, text->size, &list), DOPPEL_OK);
    same_text("list", &r.text, list.text.data, list.text.size);
    assert_int_equal(r.units, list.count);
    dp_word_list_free(&list);
    dp_buffer_free(&r.text);
}

/* The first batch ends about 16 KiB into the text: somewhere here between a code point and the mark that joins it. */
static void a_mark_joins_what_stands_before_it_over_the_end_of_a_batch(void **state) {
    (void)state;
    const size_t batch[] = {16384, 16384, 16384, 16384 / 4 * 3}; /* a space stands behind each ideograph */
    static const char *const fills[] = {"x", "some words ", "\xD1\x8F ", "\xE4\xB8\xAD"};
    static const char *const ends[] = {"e\xCC\x81", " e\xCC\x81 x", "wore\xCC\x81", " <\xCC\xB8 x",
                                       "\xE4\xB8\xAD\xCC\x81"};
    static const dp_words_options each[] = {{0}, {.overlap = 4}, {.stop_words = "some", .stop_words_length = 4}};
    for (size_t o = 0; o < sizeof each / sizeof *each; o++) {
        dp_words *words = open_words(&each[o]);
        for (size_t f = 0; f < sizeof fills / sizeof *fills; f++)
            for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
                for (size_t size = batch[f] - 8; size < batch[f] + 8; size++) {
                    dp_buffer text = {0};
                    while (text.size + strlen(fills[f]) <= size)
                        assert_true(dp_buffer_add(&text, fills[f], strlen(fills[f])));
                    while (text.size < size)
                        assert_true(dp_buffer_add(&text, "y", 1));
                    assert_true(dp_buffer_add(&text, ends[e], strlen(ends[e])));
                    check_with_list(words, &each[o], &text);
                    dp_buffer_free(&text);
                }
        dp_words_free(words);
    }
}

static doppel_status refuse(void *user, const dp_word_batch *batch) {
    (void)user, (void)batch;
    return DOPPEL_ERROR_INTERRUPTED;
}

static void what_the_sink_says_is_passed_on(void **state) {
    (void)state;
    const dp_words_options usual = {0};
    dp_words *words = open_words(&usual);
    dp_buffer text = long_text(2, 3000);
    assert_int_equal(dp_words_add(words, text.data, text.size, refuse, NULL), DOPPEL_ERROR_INTERRUPTED);
    dp_words_reset(words);
    assert_int_equal(dp_words_finish(words, refuse, NULL), DOPPEL_ERROR_INTERRUPTED);
    /* And it works again. */
    result r = read_pieces(words, TEXT("One two"), 0);
    same_text("after", &r.text, TEXT("one two"));
    dp_buffer_free(&r.text);
    dp_buffer_free(&text);
    dp_words_free(words);
}

static doppel_status check_overlap(void *user, const dp_word_batch *batch) {
    dp_buffer *last = user;
    assert_true(batch->seen <= 3);
    if (batch->seen)
        assert_memory_equal(batch->text, last->data, batch->starts[batch->seen] - batch->gap);
    size_t kept = batch->count < 3 ? batch->count : 3;
    last->size = 0;
    if (kept) {
        uint32_t start = batch->starts[batch->count - kept];
        assert_true(dp_buffer_add(last, batch->text + start, batch->starts[batch->count] - start));
    }
    return DOPPEL_OK;
}

static void batches_begin_with_the_last_words_of_the_one_before(void **state) {
    (void)state;
    const dp_words_options options = {.overlap = 3};
    dp_words *words = open_words(&options);
    dp_buffer text = long_text(3, 5000), last = {0};
    assert_int_equal(dp_words_add(words, text.data, text.size, check_overlap, &last), DOPPEL_OK);
    assert_int_equal(dp_words_finish(words, check_overlap, &last), DOPPEL_OK);
    dp_buffer_free(&text);
    dp_buffer_free(&last);
    dp_words_free(words);
}

/* ---- length ---- */

static char *repeat(const char *unit, size_t size) {
    char *text = malloc(size);
    size_t length = strlen(unit);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++)
        text[i] = unit[i % length];
    return text;
}

static void a_word_of_ten_megabytes_is_one_word(void **state) {
    (void)state;
    enum { SIZE = 10000000 / SMALLER };
    const dp_words_options usual = {0};
    dp_words *words = open_words(&usual);
    char *text = repeat("Xy", SIZE);
    for (size_t piece = 0; piece <= 4096; piece += 4096) {
        result r = read_pieces(words, text, SIZE, piece);
        assert_int_equal(r.units, 1);
        assert_int_equal(r.text.size, SIZE);
        dp_buffer_free(&r.text);
    }
    free(text);
    dp_words_free(words);
}

/* Anything that looks twice at what it has read would take hours, not seconds. */
static void monotonous_text_takes_linear_time(void **state) {
    (void)state;
    enum { SIZE = 4 << 20 };
    static const char *const units[] = {
        "a",    " ",    ".",           "\xCC\x81", "a\xCC\x81\xCC\xA3", "\xFF", "\xE4\xB8\xAD", "\xE1\x85\xA1",
        "\xE2", "a b ", "\xE2\x80\x8D"};
    clock_t start = clock();
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        for (size_t o = 0; o < 3; o += 2) {
            dp_words *words = open_words(&all_options[o]);
            char *text = repeat(units[k], SIZE);
            result r = {{0}, 0, 0, 0};
            assert_int_equal(dp_words_add(words, text, SIZE, take, &r), DOPPEL_OK);
            assert_int_equal(dp_words_finish(words, take, &r), DOPPEL_OK);
            dp_buffer_free(&r.text);
            free(text);
            dp_words_free(words);
        }
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < 100);
}

/* ---- places ---- */

static dp_word_list list_of(const dp_words_options *options, const char *text, size_t length) {
    dp_word_list list;
    assert_int_equal(dp_word_list_make(options, text, length, &list), DOPPEL_OK);
    return list;
}

static void the_list_is_the_same_words(void **state) {
    (void)state;
    for (size_t k = 0; k < OPTIONS; k++) {
        if (all_options[k].chars)
            continue;
        dp_words *words = open_words(&all_options[k]);
        dp_buffer text = long_text(4, 600);
        result r = read_pieces(words, text.data, text.size, 0);
        dp_word_list list = list_of(&all_options[k], text.data, text.size);
        assert_int_equal(list.count, r.units);
        same_text("list", &list.text, r.text.data, r.text.size);
        for (size_t i = 0; i < list.count; i++) {
            const uint64_t *range = list.ranges + 2 * i;
            assert_true(range[0] < range[1] && range[1] <= text.size);
            assert_true(!i || (range[-2] <= range[0] && range[-1] <= range[1]));
        }
        dp_word_list_free(&list);
        dp_buffer_free(&r.text);
        dp_buffer_free(&text);
        dp_words_free(words);
    }
}

static void check_ranges(const dp_words_options *options, const char *text, size_t length, const char *const *want) {
    dp_word_list list = list_of(options, text, length);
    size_t count = 0;
    for (; want[count]; count++) {
        assert_true(count < list.count);
        const uint64_t *range = list.ranges + 2 * count;
        dp_buffer here = {(char *)(uintptr_t)text + range[0], range[1] - range[0], 0};
        same_text("range", &here, want[count], strlen(want[count]));
    }
    assert_int_equal(count, list.count);
    dp_word_list_free(&list);
}

static void ranges_are_where_the_words_stand(void **state) {
    (void)state;
    const dp_words_options usual = {0}, stop = {.stop_words = "the", .stop_words_length = 3};
    check_ranges(&usual, TEXT("\xEF\xBB\xBF The (quick)  FOX-trot!"),
                 (const char *const[]){"The", "quick", "FOX-trot", NULL});
    check_ranges(&usual,
                 TEXT("Stra\xC3\x9F"
                      "e e\xCC\x81t\xC3\xA9.\xE6\x9D\xB1\xE4\xBA\xAC"
                      "x"),
                 (const char *const[]){"Stra\xC3\x9F"
                                       "e",
                                       "e\xCC\x81t\xC3\xA9", "\xE6\x9D\xB1", "\xE4\xBA\xAC", "x", NULL});
    check_ranges(&usual,
                 TEXT("a\xFF\xFF"
                      "b"),
                 (const char *const[]){"a", "b", NULL});
    check_ranges(&stop, TEXT("The end of the world"), (const char *const[]){"end", "of", "world", NULL});
    check_ranges(&usual, TEXT(" ... "), (const char *const[]){NULL});
    /* One code point that becomes four words is the place of each. */
    check_ranges(&usual, TEXT("x \xEF\xB7\xBA"),
                 (const char *const[]){"x", "\xEF\xB7\xBA", "\xEF\xB7\xBA", "\xEF\xB7\xBA", "\xEF\xB7\xBA", NULL});
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scripts),
        cmocka_unit_test(a_run_of_marks_is_cut_after_32),
        cmocka_unit_test(case_can_stay),
        cmocka_unit_test(punctuation_can_stay),
        cmocka_unit_test(code_points_are_not_cut_by_script),
        cmocka_unit_test(spaces_can_go),
        cmocka_unit_test(the_first_code_points_only),
        cmocka_unit_test(a_mark_behind_the_first_code_points_does_not_join),
        cmocka_unit_test(stop_words_are_left_out),
        cmocka_unit_test(a_stop_list_without_words_stops_nothing),
        cmocka_unit_test(many_stop_words_in_a_long_text),
        cmocka_unit_test(a_cut_at_any_byte_changes_nothing),
        cmocka_unit_test(a_long_text_in_pieces_of_any_size),
        cmocka_unit_test(what_the_sink_says_is_passed_on),
        cmocka_unit_test(batches_begin_with_the_last_words_of_the_one_before),
        cmocka_unit_test(a_word_of_ten_megabytes_is_one_word),
        cmocka_unit_test(monotonous_text_takes_linear_time),
        cmocka_unit_test(the_list_is_the_same_words),
        cmocka_unit_test(ranges_are_where_the_words_stand),
        cmocka_unit_test(a_mark_joins_what_stands_before_it_over_the_end_of_a_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

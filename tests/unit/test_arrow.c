/* test_arrow.c - columns of Arrow arrays as text: every type, offsets, validity, dictionaries and views, and arrays
 * that are refused. */
#include "support.h"

#include "base/base.h"
#include "doppel.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>

/* ---- arrays made of literals ---- */

#define BUFFERS(...) ((const void *[]){__VA_ARGS__})
#define COUNT(...) (sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *))

/* An array of `rows` rows from `from` on; of buffers, the first has the validity. */
#define SLICE(from, rows, ...)                            \
    ((struct ArrowArray){.length = (rows),                \
                         .offset = (from),                \
                         .null_count = -1,                \
                         .n_buffers = COUNT(__VA_ARGS__), \
                         .buffers = BUFFERS(__VA_ARGS__)})
#define ARRAY(rows, ...) SLICE(0, rows, __VA_ARGS__)

#define BITS(...) ((const uint8_t[]){__VA_ARGS__})
#define OFFSETS(...) ((const int32_t[]){__VA_ARGS__})

static doppel_column init(const struct ArrowSchema *schema, const struct ArrowArray *array, const char *name) {
    doppel_column column;
    doppel_error error = {0};
    bool found = false;
    if (doppel_column_init(&column, schema, array, name, &found, &error) != DOPPEL_OK)
        fail_msg("%s", error.message);
    assert_true(found);
    return column;
}

/* Compares the rows, with a | after each. */
static void expect_rows(const doppel_column *column, int64_t rows, const char *expected) {
    dp_buffer got = {0};
    for (int64_t row = 0; row < rows; row++) {
        char room[DOPPEL_COLUMN_ROOM];
        doppel_slice value = doppel_column_get(column, (uint64_t)row, room);
        assert_true(value.data || !value.length);
        dp_buffer_printf(&got, "%.*s|", value.data ? (int)value.length : 6, value.data ? value.data : "(null)");
    }
    dp_buffer_add(&got, "", 1);
    assert_string_equal(got.data, expected);
    dp_buffer_free(&got);
}

/* The rows of an array of one type. */
static void expect(const char *format, struct ArrowArray array, const char *expected) {
    const struct ArrowSchema schema = {.format = format};
    doppel_column column = init(&schema, &array, NULL);
    expect_rows(&column, array.length, expected);
}

static void expect_schema(const struct ArrowSchema *schema, struct ArrowArray array, const char *expected) {
    doppel_column column = init(schema, &array, NULL);
    expect_rows(&column, array.length, expected);
}

static void refuse(const struct ArrowSchema *schema, struct ArrowArray array, const char *name, const char *why) {
    doppel_column column;
    doppel_error error = {0};
    bool found = false;
    assert_int_equal(doppel_column_init(&column, schema, &array, name, &found, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.message, why);
    assert_int_equal(error.code, DOPPEL_ERROR_INPUT);
    assert_int_equal(doppel_column_init(&column, schema, &array, name, &found, NULL), DOPPEL_ERROR_INPUT);
}

#define MALFORMED "is a malformed Arrow array"

static void refuse_array(const char *format, struct ArrowArray array) {
    refuse(&(struct ArrowSchema){.format = format}, array, NULL, MALFORMED);
}

/* ---- types ---- */

static void strings_and_bytes_have_two_widths_of_offsets(void **state) {
    (void)state;
    static const int64_t wide[] = {0, 1, 1, 4};
    static const int32_t narrow[] = {0, 1, 1, 4};
    static const char *const formats[] = {"u", "z"}, *const wide_formats[] = {"U", "Z"};
    for (int i = 0; i < 2; i++) {
        expect(formats[i], ARRAY(3, NULL, narrow, "abcd"), "a||bcd|");
        expect(wide_formats[i], ARRAY(3, NULL, wide, "abcd"), "a||bcd|");
    }
}

static void an_empty_string_is_not_null(void **state) {
    (void)state;
    const struct ArrowSchema schema = {.format = "u"};
    struct ArrowArray array = ARRAY(2, BITS(1), OFFSETS(0, 0, 0), NULL);
    doppel_column column = init(&schema, &array, NULL);
    char room[DOPPEL_COLUMN_ROOM];
    assert_non_null(doppel_column_get(&column, 0, room).data);
    assert_null(doppel_column_get(&column, 1, room).data);
}

static void integers_have_all_widths(void **state) {
    (void)state;
    expect("c", ARRAY(3, NULL, ((int8_t[]){INT8_MIN, 0, INT8_MAX})), "-128|0|127|");
    expect("C", ARRAY(2, NULL, ((uint8_t[]){0, UINT8_MAX})), "0|255|");
    expect("s", ARRAY(2, NULL, ((int16_t[]){INT16_MIN, INT16_MAX})), "-32768|32767|");
    expect("S", ARRAY(2, NULL, ((uint16_t[]){1, UINT16_MAX})), "1|65535|");
    expect("i", ARRAY(2, NULL, ((int32_t[]){INT32_MIN, INT32_MAX})), "-2147483648|2147483647|");
    expect("I", ARRAY(2, NULL, ((uint32_t[]){7, UINT32_MAX})), "7|4294967295|");
    expect("l", ARRAY(2, NULL, ((int64_t[]){INT64_MIN, INT64_MAX})), "-9223372036854775808|9223372036854775807|");
    expect("L", ARRAY(2, NULL, ((uint64_t[]){0, UINT64_MAX})), "0|18446744073709551615|");
}

static void fractions_can_be_read_back(void **state) {
    (void)state;
    expect("f", ARRAY(3, NULL, ((float[]){0, -1.5f, 1e30f})), "0|-1.5|1e+30|");
    expect("g", ARRAY(4, NULL, ((double[]){1, -0.5, 1e300, INFINITY})), "1|-0.5|1e+300|inf|");
    const double pi = 3.141592653589793;
    const struct ArrowSchema schema = {.format = "g"};
    struct ArrowArray array = ARRAY(1, NULL, &pi);
    doppel_column column = init(&schema, &array, NULL);
    char room[DOPPEL_COLUMN_ROOM], text[DOPPEL_COLUMN_ROOM + 1] = {0};
    doppel_slice value = doppel_column_get(&column, 0, room);
    memcpy(text, value.data, value.length);
    assert_true(strtod(text, NULL) == pi);
}

static void truth_values_are_bits(void **state) {
    (void)state;
    expect("b", ARRAY(10, NULL, BITS(0x05, 0x02)), "true|false|true|false|false|false|false|false|false|true|");
    expect("b", SLICE(2, 3, BITS(0x0C), BITS(0x14)), "true|false|(null)|");
}

static void the_type_of_nulls_has_only_those(void **state) {
    (void)state;
    expect("n", (struct ArrowArray){.length = 3, .null_count = 3}, "(null)|(null)|(null)|");
}

/* ---- dates and timestamps ---- */

static void days_are_written_as_dates(void **state) {
    (void)state;
    expect("tdD", ARRAY(5, NULL, ((int32_t[]){0, -1, 19723, -719162, 11016})),
           "1970-01-01|1969-12-31|2024-01-01|0001-01-01|2000-02-29|");
    expect("tdm", ARRAY(4, NULL, ((int64_t[]){0, -86400000, -1, 1704067200000})),
           "1970-01-01|1969-12-31|1969-12-31|2024-01-01|");
}

static void timestamps_are_written_with_what_they_have_of_a_second(void **state) {
    (void)state;
    expect("tss:", ARRAY(3, NULL, ((int64_t[]){0, -1, 1704067199})),
           "1970-01-01T00:00:00|1969-12-31T23:59:59|2023-12-31T23:59:59|");
    expect("tsm:", ARRAY(3, NULL, ((int64_t[]){1, -1, 2000})),
           "1970-01-01T00:00:00.001|1969-12-31T23:59:59.999|1970-01-01T00:00:02|");
    expect("tsu:", ARRAY(2, NULL, ((int64_t[]){1, -1})), "1970-01-01T00:00:00.000001|1969-12-31T23:59:59.999999|");
    expect("tsn:", ARRAY(3, NULL, ((int64_t[]){1, -1, -1000000000})),
           "1970-01-01T00:00:00.000000001|1969-12-31T23:59:59.999999999|1969-12-31T23:59:59|");
}

static void timestamps_of_a_zone_are_in_utc(void **state) {
    (void)state;
    expect("tss:UTC", ARRAY(1, NULL, ((int64_t[]){0})), "1970-01-01T00:00:00Z|");
    expect("tsm:Europe/Berlin", ARRAY(2, NULL, ((int64_t[]){-1, 1500})),
           "1969-12-31T23:59:59.999Z|1970-01-01T00:00:01.500Z|");
}

static void times_that_no_year_has_are_numbers(void **state) {
    (void)state;
    expect("tss:", ARRAY(2, NULL, ((int64_t[]){INT64_MIN, INT64_MAX})), "-9223372036854775808|9223372036854775807|");
    expect("tdD", ARRAY(2, NULL, ((int32_t[]){INT32_MIN, INT32_MAX})), "-5877641-06-23|5881580-07-11|");
    expect("tsn:UTC", ARRAY(2, NULL, ((int64_t[]){INT64_MIN, INT64_MAX})),
           "1677-09-21T00:12:43.145224192Z|2262-04-11T23:47:16.854775807Z|");
}

/* ---- offsets and validity ---- */

static void offsets_of_slices_are_heeded(void **state) {
    (void)state;
    expect("u", SLICE(2, 2, NULL, OFFSETS(0, 1, 2, 3, 5), "abcde"), "c|de|");
    expect("l", SLICE(1, 2, BITS(0x03), ((int64_t[]){9, 8, 7})), "8|(null)|");
    expect("u", SLICE(9, 1, BITS(0xFF, 0x02), OFFSETS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), "ab"), "ab|");
    expect("u", SLICE(9, 1, BITS(0xFF, 0x01), OFFSETS(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), "ab"), "(null)|");
}

static void validity_counts_unless_nothing_is_null(void **state) {
    (void)state;
    struct ArrowArray array = ARRAY(3, BITS(0x05), OFFSETS(0, 1, 2, 3), "abc");
    expect("u", array, "a|(null)|c|");
    array.null_count = 1;
    expect("u", array, "a|(null)|c|");
    array.null_count = 0;
    expect("u", array, "a|b|c|");
}

/* A struct of the columns a (strings) and b (numbers), rows of which are null themselves. */
static const struct ArrowSchema column_a = {.format = "u", .name = "a"}, column_b = {.format = "i", .name = "b"},
                                nameless = {.format = "i"};

static void a_column_of_a_struct_is_found_by_name(void **state) {
    (void)state;
    struct ArrowSchema *children[] = {(struct ArrowSchema *)&nameless, (struct ArrowSchema *)&column_a,
                                      (struct ArrowSchema *)&column_b};
    const struct ArrowSchema schema = {.format = "+s", .n_children = 3, .children = children};
    struct ArrowArray a = SLICE(1, 5, BITS(0x37), OFFSETS(0, 1, 2, 3, 4, 5, 6), "xabcde"),
                      b = ARRAY(5, NULL, ((int32_t[]){10, 11, 12, 13, 14})), none = b, *arrays[] = {&none, &a, &b};
    struct ArrowArray array = ARRAY(5, NULL);
    array.n_children = 3;
    array.children = arrays;
    doppel_column column = init(&schema, &array, "a");
    expect_rows(&column, 5, "a|b|(null)|d|e|");
    column = init(&schema, &array, "b");
    expect_rows(&column, 5, "10|11|12|13|14|");

    /* Its own offset counts on top of that of the column, and its own nulls. */
    array.offset = 1;
    array.length = 4;
    array.buffers = BUFFERS(BITS(0x17));
    column = init(&schema, &array, "a");
    expect_rows(&column, 4, "b|(null)|(null)|e|");
    column = init(&schema, &array, "b");
    expect_rows(&column, 4, "11|12|(null)|14|");
}

/* The column m of an array of structs: a struct with a, as above, and with "a.b", beside a column "m.b". */
static void a_path_leads_into_structs(void **state) {
    (void)state;
    const struct ArrowSchema literal = {.format = "u", .name = "a.b"}, beside = {.format = "u", .name = "m.b"};
    struct ArrowSchema *inner[] = {(struct ArrowSchema *)&column_a, (struct ArrowSchema *)&literal};
    const struct ArrowSchema m = {.format = "+s", .name = "m", .n_children = 2, .children = inner};
    struct ArrowSchema *outer[] = {(struct ArrowSchema *)&m, (struct ArrowSchema *)&beside};
    const struct ArrowSchema schema = {.format = "+s", .n_children = 2, .children = outer};
    struct ArrowArray a = SLICE(1, 5, BITS(0x3D), OFFSETS(0, 1, 2, 3, 4, 5, 6), "xabcde"),
                      ab = ARRAY(5, NULL, OFFSETS(0, 1, 2, 3, 4, 5), "VWXYZ"), *columns[] = {&a, &ab};
    struct ArrowArray own = ARRAY(4, BITS(0x1B)), b = ARRAY(4, NULL, OFFSETS(0, 1, 2, 3, 4), "klmn"),
                      *arrays[] = {&own, &b};
    own.offset = 1;
    own.n_children = 2;
    own.children = columns;
    struct ArrowArray array = ARRAY(3, BITS(0xB));
    array.offset = 1;
    array.n_children = 2;
    array.children = arrays;
    /* Rows 1 to 3 are 2 to 4 of the struct, of which 2 is null, and 3 to 5 of a. */
    doppel_column column = init(&schema, &array, "m.a");
    expect_rows(&column, 3, "(null)|(null)|e|");
    column = init(&schema, &array, "m.a.b");
    expect_rows(&column, 3, "(null)|(null)|Z|");
    column = init(&schema, &array, "m.b"); /* a column of that very name */
    expect_rows(&column, 3, "l|(null)|n|");
    const char *const missing[] = {"m.c", "m.a.c", "m.", ".a", "m..a", "n.a", "m.b.a"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        bool found = true;
        assert_int_equal(doppel_column_init(&column, &schema, &array, missing[i], &found, NULL), DOPPEL_OK);
        assert_false(found);
    }
    refuse(&schema, array, "m", "is of the Arrow type \"+s\", which is not text");
    struct ArrowSchema *same[] = {(struct ArrowSchema *)&m, (struct ArrowSchema *)&m};
    const struct ArrowSchema two = {.format = "+s", .n_children = 2, .children = same};
    refuse(&two, array, "m.a", "is there twice");
    own.length = 3; /* too short for the rows and the offset */
    refuse(&schema, array, "m.a", MALFORMED);
}

static void a_column_that_is_missing_is_no_error(void **state) {
    (void)state;
    struct ArrowSchema *children[] = {(struct ArrowSchema *)&nameless, (struct ArrowSchema *)&column_b};
    const struct ArrowSchema schema = {.format = "+s", .n_children = 2, .children = children};
    struct ArrowArray b = ARRAY(1, NULL, ((int32_t[]){1})), *arrays[] = {&b, &b};
    struct ArrowArray array = {.length = 1, .n_children = 2, .children = arrays};
    doppel_column column;
    doppel_error error = {0};
    bool found = true;
    assert_int_equal(doppel_column_init(&column, &schema, &array, "a", &found, NULL), DOPPEL_OK);
    assert_false(found);
    found = true;
    assert_int_equal(doppel_column_init(&column, &column_b, &b, "b", &found, NULL), DOPPEL_OK); /* no struct */
    assert_false(found);
    assert_int_equal(doppel_column_init(&column, &schema, &array, "a", NULL, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.message, "does not exist");
    assert_int_equal(doppel_column_init(&column, &schema, &array, "b", NULL, NULL), DOPPEL_OK);
}

/* ---- dictionaries ---- */

static const struct ArrowSchema strings = {.format = "u"};

static struct ArrowArray indexed(struct ArrowArray array, struct ArrowArray *dictionary) {
    array.dictionary = dictionary;
    return array;
}

static void an_index_stands_for_an_entry_of_the_dictionary(void **state) {
    (void)state;
    static const char *const formats[] = {"c", "C", "s", "S", "i", "I", "l", "L"};
    static const int8_t in1[] = {2, 0, 1, 0};
    static const int16_t in2[] = {2, 0, 1, 0};
    static const int32_t in4[] = {2, 0, 1, 0};
    static const int64_t in8[] = {2, 0, 1, 0};
    static const void *const indexes[] = {in1, in2, in4, in8};
    struct ArrowArray words = ARRAY(3, BITS(0x05), OFFSETS(0, 1, 2, 3), "abc");
    for (int i = 0; i < 8; i++) {
        const struct ArrowSchema schema = {.format = formats[i], .dictionary = (struct ArrowSchema *)&strings};
        expect_schema(&schema, indexed(ARRAY(4, NULL, indexes[i / 2]), &words), "c|a|(null)|a|");
        expect_schema(&schema, indexed(SLICE(1, 3, BITS(0x07), indexes[i / 2]), &words), "a|(null)|(null)|");
    }
}

static void a_dictionary_has_an_offset_of_its_own(void **state) {
    (void)state;
    const struct ArrowSchema schema = {.format = "i", .dictionary = (struct ArrowSchema *)&strings};
    struct ArrowArray words = SLICE(1, 2, BITS(0x0A), OFFSETS(0, 1, 2, 3, 4), "xaby");
    expect_schema(&schema, indexed(SLICE(1, 3, NULL, ((int32_t[]){9, 0, 1, 2})), &words), "a|(null)|(null)|");
}

static void indexes_out_of_bounds_are_null(void **state) {
    (void)state;
    struct ArrowArray words = SLICE(1, 2, NULL, OFFSETS(0, 1, 2, 3), "xab"), none = ARRAY(0, NULL, NULL, NULL);
    const struct ArrowSchema narrow = {.format = "c", .dictionary = (struct ArrowSchema *)&strings},
                             wide = {.format = "l", .dictionary = (struct ArrowSchema *)&strings},
                             positive = {.format = "L", .dictionary = (struct ArrowSchema *)&strings};
    expect_schema(&narrow, indexed(ARRAY(4, NULL, ((int8_t[]){-1, 2, 127, -128})), &words),
                  "(null)|(null)|(null)|(null)|");
    expect_schema(&wide, indexed(ARRAY(3, NULL, ((int64_t[]){INT64_MAX, INT64_MIN, 1})), &words), "(null)|(null)|b|");
    expect_schema(&positive, indexed(ARRAY(2, NULL, ((uint64_t[]){UINT64_MAX, 0})), &words), "(null)|a|");
    expect_schema(&narrow, indexed(ARRAY(1, NULL, ((int8_t[]){0})), &none), "(null)|");
}

static void a_dictionary_may_hold_other_values(void **state) {
    (void)state;
    const struct ArrowSchema moments = {.format = "tss:UTC"}, nothing = {.format = "n"};
    const struct ArrowSchema schema = {.format = "i", .dictionary = (struct ArrowSchema *)&moments},
                             nulls = {.format = "i", .dictionary = (struct ArrowSchema *)&nothing};
    struct ArrowArray values = ARRAY(2, NULL, ((int64_t[]){0, -1})), empty = {.length = 2};
    expect_schema(&schema, indexed(ARRAY(2, NULL, ((int32_t[]){1, 0})), &values),
                  "1969-12-31T23:59:59Z|1970-01-01T00:00:00Z|");
    expect_schema(&nulls, indexed(ARRAY(2, NULL, ((int32_t[]){1, 0})), &empty), "(null)|(null)|");
}

/* ---- views ---- */

typedef struct view {
    int32_t length;
    char head[4];
    int32_t buffer, at;
} view;

static view short_view(const char *text) {
    view v = {.length = (int32_t)strlen(text)};
    memcpy((char *)&v + offsetof(view, head), text, strlen(text)); /* to the end of the view, at most */
    return v;
}

static const char first[] = "a text of more than twelve bytes", second[] = "..and another one in a second buffer";
static const int64_t sizes[] = {sizeof first - 1, sizeof second - 1};

static void views_are_inline_or_in_a_buffer(void **state) {
    (void)state;
    const view views[] = {short_view(""),     short_view("ab"),   short_view("twelve bytes"),
                          {32, "a te", 0, 0}, {34, "and ", 1, 2}, {13, "more", 0, 10}};
    struct ArrowArray array = ARRAY(6, BITS(0x3D), views, first, second, sizes);
    static const char expected[] = "|(null)|twelve bytes|a text of more than twelve bytes|"
                                   "and another one in a second buffer|more than twe|";
    expect("vu", array, expected);
    expect("vz", array, expected);
    array.offset = 4;
    array.length = 2;
    expect("vu", array, "and another one in a second buffer|more than twe|");
    expect("vu", ARRAY(2, NULL, views, NULL), "|ab|"); /* no buffer at all, and no size of one */
}

static void views_that_lead_outside_are_null(void **state) {
    (void)state;
    const view views[] = {{13, "", -1, 0},       {13, "", 2, 0},         {13, "", 0, -1},       {13, "", 0, 20},
                          {INT32_MAX, "", 0, 0}, {13, "", 0, INT32_MAX}, {INT32_MIN, "", 0, 0}, {32, "a te", 0, 0}};
    expect("vu", ARRAY(8, NULL, views, first, second, sizes),
           "(null)|(null)|(null)|(null)|(null)|(null)||a text of more than twelve bytes|");
    expect("vu", ARRAY(1, NULL, views + 7, first, NULL), "(null)|");
    static const int64_t wrong[] = {-1, INT64_MIN};
    expect("vu", ARRAY(1, NULL, views + 7, first, second, wrong), "(null)|");
}

/* ---- memory that ends there ---- */

/* The array's buffers, each copied to the end of a page. */
static void expect_guarded(const char *format, int64_t rows, const void *values, size_t size, const char *expected) {
    guarded memory = guarded_create(size), valid = guarded_create(1);
    const uint8_t bits = 0xFF;
    struct ArrowArray array = ARRAY(rows, guarded_copy(valid, &bits, 1), guarded_copy(memory, values, size), "xyz");
    expect(format, array, expected);
    guarded_free(memory);
    guarded_free(valid);
}

static void nothing_after_the_last_row_is_read(void **state) {
    (void)state;
    expect_guarded("u", 2, OFFSETS(0, 1, 3), 3 * sizeof(int32_t), "x|yz|");
    expect_guarded("U", 2, ((int64_t[]){0, 1, 3}), 3 * sizeof(int64_t), "x|yz|");
    expect_guarded("c", 3, ((int8_t[]){1, 2, 3}), 3, "1|2|3|");
    expect_guarded("S", 2, ((uint16_t[]){1, 2}), 4, "1|2|");
    expect_guarded("i", 2, ((int32_t[]){1, 2}), 8, "1|2|");
    expect_guarded("g", 2, ((double[]){1, 2}), 16, "1|2|");
    expect_guarded("b", 8, BITS(0xFF), 1, "true|true|true|true|true|true|true|true|");
    expect_guarded("tsu:", 1, ((int64_t[]){0}), 8, "1970-01-01T00:00:00|");
}

/* ---- what is refused ---- */

static void empty_arrays_need_no_buffers(void **state) {
    (void)state;
    static const char *const formats[] = {"u", "U", "vu", "z", "Z", "vz", "b",   "c",   "C",    "s",   "S",
                                          "i", "I", "l",  "L", "f", "g",  "tdD", "tdm", "tss:", "tsn:"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        expect(formats[i], ARRAY(0, NULL, NULL, NULL), "");
    expect("n", (struct ArrowArray){0}, "");
}

static void strings_that_go_backwards_are_null(void **state) {
    (void)state;
    expect("u", ARRAY(3, NULL, OFFSETS(2, 1, 3, -1), "abc"), "(null)|bc|(null)|");
    expect("U", ARRAY(2, NULL, ((int64_t[]){INT64_MIN, 1, 2}), "abc"), "(null)|b|");
    expect("u", ARRAY(2, NULL, OFFSETS(0, 0, 3), NULL), "|(null)|"); /* and those without data */
}

static void types_that_are_no_text_are_named(void **state) {
    (void)state;
    static const char *const formats[] = {"+s",   "+l",  "w:16", "d:19,10", "e",  "tts", "tDs", "tiM",
                                          "tsx:", "tss", "ts",   "t",       "uu", "",    "+r"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char why[100];
        snprintf(why, sizeof why, "is of the Arrow type \"%s\", which is not text", formats[i]);
        refuse(&(struct ArrowSchema){.format = formats[i]}, ARRAY(0, NULL), NULL, why);
    }
    const struct ArrowSchema nested = {.format = "i", .dictionary = (struct ArrowSchema *)&strings},
                             twice = {.format = "i", .dictionary = (struct ArrowSchema *)&nested};
    struct ArrowArray words = ARRAY(0, NULL, NULL, NULL);
    refuse(&twice, indexed(ARRAY(0, NULL, NULL), &words), NULL, "is of the Arrow type \"i\", which is not text");
}

static void arrays_without_what_their_type_needs_are_refused(void **state) {
    (void)state;
    static const char *const numbers[] = {"b", "c", "L", "f", "g", "tdD", "tsm:"}, *const texts[] = {"u", "U", "vu"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        refuse_array(numbers[i], ARRAY(1, NULL));
        refuse_array(numbers[i], ARRAY(1, NULL, NULL));
        refuse_array(numbers[i], (struct ArrowArray){.length = 1, .n_buffers = 2});
        refuse_array(numbers[i], SLICE(-1, 1, NULL, "12345678"));
        refuse_array(numbers[i], ARRAY(-1, NULL, "12345678"));
    }
    refuse_array("n", (struct ArrowArray){.length = 1, .n_buffers = 1});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        refuse_array(texts[i], ARRAY(1, NULL, "1234567812345678"));
        refuse_array(texts[i], ARRAY(1, NULL, NULL, "1"));
        refuse_array(texts[i], (struct ArrowArray){.length = 1, .n_buffers = 3});
    }
}

static void malformed_dictionaries_are_refused(void **state) {
    (void)state;
    const struct ArrowSchema schema = {.format = "i", .dictionary = (struct ArrowSchema *)&strings},
                             fractions = {.format = "g", .dictionary = (struct ArrowSchema *)&strings},
                             unknown = {.format = "?", .dictionary = (struct ArrowSchema *)&strings};
    static const int32_t index[] = {0, 0};
    struct ArrowArray words = ARRAY(1, NULL, OFFSETS(0, 1), "a"), negative = ARRAY(-1, NULL, OFFSETS(0, 1), "a"),
                      before = SLICE(-1, 1, NULL, OFFSETS(0, 1), "a"), bare = ARRAY(1, NULL);
    refuse(&schema, ARRAY(1, NULL, index), NULL, MALFORMED);
    refuse(&schema, indexed(ARRAY(1, NULL), &words), NULL, MALFORMED);
    refuse(&schema, indexed(ARRAY(1, NULL, index), &negative), NULL, MALFORMED);
    refuse(&schema, indexed(ARRAY(1, NULL, index), &before), NULL, MALFORMED);
    refuse(&schema, indexed(ARRAY(1, NULL, index), &bare), NULL, MALFORMED);
    refuse(&fractions, indexed(ARRAY(1, NULL, index), &words), NULL, MALFORMED);
    refuse(&unknown, indexed(ARRAY(1, NULL, index), &words), NULL, MALFORMED);
}

static void structs_whose_columns_are_too_short_are_refused(void **state) {
    (void)state;
    struct ArrowSchema *children[] = {(struct ArrowSchema *)&column_a, (struct ArrowSchema *)&column_b};
    const struct ArrowSchema schema = {.format = "+s", .n_children = 2, .children = children};
    struct ArrowArray b = ARRAY(3, NULL, ((int32_t[]){1, 2, 3})), *arrays[] = {NULL, &b};
    struct ArrowArray array = {.length = 3, .n_children = 2, .children = arrays};
    doppel_column column = init(&schema, &array, "b");
    expect_rows(&column, 3, "1|2|3|");
    refuse(&schema, array, "a", MALFORMED); /* there is a schema of it alone */
    struct ArrowArray wrong = array;
    wrong.length = 4;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong = array;
    wrong.offset = 1;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong.offset = INT64_MAX;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong.offset = -1;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong = array;
    wrong.n_children = 1;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong.n_children = 2;
    wrong.children = NULL;
    refuse(&schema, wrong, "b", MALFORMED);
    wrong = array;
    wrong.n_buffers = 1;
    refuse(&schema, wrong, "b", MALFORMED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_and_bytes_have_two_widths_of_offsets),
        cmocka_unit_test(an_empty_string_is_not_null),
        cmocka_unit_test(integers_have_all_widths),
        cmocka_unit_test(fractions_can_be_read_back),
        cmocka_unit_test(truth_values_are_bits),
        cmocka_unit_test(the_type_of_nulls_has_only_those),
        cmocka_unit_test(days_are_written_as_dates),
        cmocka_unit_test(timestamps_are_written_with_what_they_have_of_a_second),
        cmocka_unit_test(timestamps_of_a_zone_are_in_utc),
        cmocka_unit_test(times_that_no_year_has_are_numbers),
        cmocka_unit_test(offsets_of_slices_are_heeded),
        cmocka_unit_test(validity_counts_unless_nothing_is_null),
        cmocka_unit_test(a_column_of_a_struct_is_found_by_name),
        cmocka_unit_test(a_path_leads_into_structs),
        cmocka_unit_test(a_column_that_is_missing_is_no_error),
        cmocka_unit_test(an_index_stands_for_an_entry_of_the_dictionary),
        cmocka_unit_test(a_dictionary_has_an_offset_of_its_own),
        cmocka_unit_test(indexes_out_of_bounds_are_null),
        cmocka_unit_test(a_dictionary_may_hold_other_values),
        cmocka_unit_test(views_are_inline_or_in_a_buffer),
        cmocka_unit_test(views_that_lead_outside_are_null),
        cmocka_unit_test(nothing_after_the_last_row_is_read),
        cmocka_unit_test(empty_arrays_need_no_buffers),
        cmocka_unit_test(strings_that_go_backwards_are_null),
        cmocka_unit_test(types_that_are_no_text_are_named),
        cmocka_unit_test(arrays_without_what_their_type_needs_are_refused),
        cmocka_unit_test(malformed_dictionaries_are_refused),
        cmocka_unit_test(structs_whose_columns_are_too_short_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_decode.c - bodies of HTTP without what wrapped them. */
#include "support.h"

#include "input/decode.h"

#include <zlib.h>
#include <zstd.h>

/* The value of a field, up to the end of its line. */
static doppel_slice value_of(const char *fields, const char *name) {
    const char *value = strstr(fields, name);
    value = value ? value + strlen(name) : NULL;
    return (doppel_slice){value, value ? strcspn(value, "\r\n") : 0};
}

/* Decodes a body with this field in its head. */
static dp_decoded decode(dp_body_decoder *decoder, const char *field, doppel_slice bytes, doppel_slice *body) {
    dp_encoded_body encoded = {bytes, value_of(field, "Content-Encoding:"), value_of(field, "Transfer-Encoding:")};
    return dp_body_decode(decoder, &encoded, body);
}

/* Whatever room there is when the last byte comes out. */
static void bodies_of_any_size_are_whole(void **state) {
    (void)state;
    char *text = calloc(1, 20000), *packed = malloc(30000);
    memset(text, 'x', 20000);
    for (size_t size = 4000; size < 9000; size++) {
        dp_body_decoder decoder = {.limit = 100000};
        doppel_slice body;
        size_t length = ZSTD_compress(packed, 30000, text, size, 1);
        assert_int_equal(decode(&decoder, "Content-Encoding: zstd\n", (doppel_slice){packed, length}, &body),
                         DP_DECODED_ALL);
        assert_int_equal(body.length, size);
        uLongf zlib_length = 30000;
        assert_int_equal(compress2((Bytef *)packed, &zlib_length, (Bytef *)text, (uLong)size, 1), Z_OK);
        assert_int_equal(decode(&decoder, "Content-Encoding: deflate\n", (doppel_slice){packed, zlib_length}, &body),
                         DP_DECODED_ALL);
        assert_int_equal(body.length, size);
        dp_body_decoder_free(&decoder);
    }
    free(text);
    free(packed);
}

static void check_kept(const char *field, const char *text) {
    dp_body_decoder decoder = {.limit = 100000};
    doppel_slice body;
    assert_int_equal(decode(&decoder, field, (doppel_slice){text, strlen(text)}, &body), DP_DECODED_ALL);
    assert_int_equal(body.length, strlen(text));
    assert_memory_equal(body.data, text, body.length);
    dp_body_decoder_free(&decoder);
}

/* As browsers and archives do. */
static void text_that_is_not_packed_stays(void **state) {
    (void)state;
    static const char *const texts[] = {"<!DOCTYPE html><html><head><title>a</title></head><body>b</body></html>",
                                        "<html><p>\x1B$B$\"\x1B(B</p></html>", "\n\n<html lang=en>\n<body>caf\xC3\xA9",
                                        "plain text, and more of it", "x"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_kept("Content-Encoding: br\n", texts[i]);
        check_kept("Content-Encoding: deflate\n", texts[i]);
        check_kept("Content-Encoding: gzip, zstd\n", texts[i]);
        check_kept("Content-Encoding: UTF-8\n", texts[i]);
        check_kept("Content-Encoding: none\nTransfer-Encoding: 8bit\n", texts[i]);
    }
}

static void what_is_packed_by_something_unknown_is_told(void **state) {
    (void)state;
    dp_body_decoder decoder = {.limit = 100000};
    doppel_slice body, packed = {"\x1F\x9D\x90zzz", 6};
    assert_int_equal(decode(&decoder, "Content-Encoding: compress\n", packed, &body), DP_DECODED_UNKNOWN);
    dp_body_decoder_free(&decoder);
}

static void chunks_that_break_off_give_what_they_have(void **state) {
    (void)state;
    dp_body_decoder decoder = {.limit = 100000};
    const char *chunks = "5 ; name=\"value\"\r\nabcde\r\nA\r\nfgh";
    doppel_slice body;
    assert_int_equal(decode(&decoder, "Transfer-Encoding: Chunked\r\n", (doppel_slice){chunks, strlen(chunks)}, &body),
                     DP_DECODED_PART);
    assert_int_equal(body.length, 8);
    assert_memory_equal(body.data, "abcdefgh", 8);
    dp_body_decoder_free(&decoder);
}

/* What stands after a whole frame has the magic number of an old format; the decoder says that it filled all the room.
 */
static void damaged_zstd_gives_what_comes_before(void **state) {
    (void)state;
    dp_body_decoder decoder = {.limit = 100000};
    char packed[100];
    doppel_slice body;
    size_t length = ZSTD_compress(packed, sizeof packed, "abcde", 5, 1);
    memset(packed + length, 0xFF, 30);
    memcpy(packed + length, "\x27\xB5\x2F\xFD", 4);
    assert_int_equal(decode(&decoder, "Content-Encoding: zstd\n", (doppel_slice){packed, length + 30}, &body),
                     DP_DECODED_PART);
    assert_int_equal(body.length, 5);
    assert_memory_equal(body.data, "abcde", 5);
    dp_body_decoder_free(&decoder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_of_any_size_are_whole),
        cmocka_unit_test(text_that_is_not_packed_stays),
        cmocka_unit_test(what_is_packed_by_something_unknown_is_told),
        cmocka_unit_test(chunks_that_break_off_give_what_they_have),
        cmocka_unit_test(damaged_zstd_gives_what_comes_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

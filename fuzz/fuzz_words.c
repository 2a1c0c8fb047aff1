/* fuzz_words.c - any bytes to words. The first two bytes choose the options and where the text is cut; the rest is
 * text.
 *
 * The result for the text in one piece is compared with: the text cut anywhere, the way through single code points
 * (word lists), and every variant of the kernels. Batches, ranges and the normalised text are checked against their
 * contracts. */
#include "fuzz.h"

#include "text/normalise.h"
#include "text/text.h"

#include <stdlib.h>

/* What came out of one reading. */
typedef struct reading {
    dp_buffer text, tail; /* all units; the last ones of the batch before, as they must be repeated */
    size_t units, overlap;
    bool ended;
} reading;

static void check_batch(const reading *r, const dp_word_batch *batch) {
    CHECK(!r->ended && batch->seen <= batch->count && batch->seen <= r->overlap);
    for (size_t i = 0; i < batch->count; i++)
        CHECK(batch->starts[i] + batch->gap < batch->starts[i + 1]);
    if (batch->seen) {
        size_t length = batch->starts[batch->seen] - batch->gap - batch->starts[0];
        CHECK(length == r->tail.size && !memcmp(batch->text + batch->starts[0], r->tail.data, length));
    }
}

/* The units that the next batch has to begin with. */
static void keep_tail(reading *r, const dp_word_batch *batch) {
    size_t kept = batch->count < r->overlap ? batch->count : r->overlap;
    r->tail.size = 0;
    if (kept) {
        uint32_t start = batch->starts[batch->count - kept];
        CHECK(dp_buffer_add(&r->tail, batch->text + start, batch->starts[batch->count] - batch->gap - start));
    }
}

static doppel_status take(void *user, const dp_word_batch *batch) {
    reading *r = user;
    check_batch(r, batch);
    for (size_t i = batch->seen; i < batch->count; i++) {
        CHECK(!r->units || !batch->gap || dp_buffer_add(&r->text, " ", 1));
        CHECK(dp_buffer_add(&r->text, batch->text + batch->starts[i],
                            batch->starts[i + 1] - batch->gap - batch->starts[i]));
        r->units++;
    }
    keep_tail(r, batch);
    r->ended = batch->last;
    return DOPPEL_OK;
}

static void reading_free(reading *r) {
    dp_buffer_free(&r->text);
    dp_buffer_free(&r->tail);
}

/* Reads the text in pieces of at most `most` bytes, by a generator of lengths (most = SIZE_MAX: at once). */
static reading read_text(const dp_words_options *options, const uint8_t *text, size_t length, size_t most) {
    reading r = {.overlap = options->overlap};
    dp_words *words;
    CHECK(!dp_words_create(options, &words, NULL));
    /* Twice, as a sketcher is used again. */
    for (int pass = 0; pass < 2; pass++) {
        r.text.size = r.tail.size = r.units = 0;
        r.ended = false;
        dp_words_reset(words);
        for (size_t at = 0, piece, turn = length; at < length; at += piece, turn = turn * 31 + 7) {
            piece = most == SIZE_MAX ? length : turn % (most + 1);
            piece = piece > length - at ? length - at : piece;
            CHECK(!dp_words_add(words, (const char *)text + at, piece, take, &r));
        }
        CHECK(!dp_words_finish(words, take, &r) && r.ended);
    }
    dp_words_free(words);
    return r;
}

static void check_text(const dp_words_options *options, const dp_buffer *text) {
    if (!text->size)
        return;
    const uint8_t *p = (const uint8_t *)text->data, *end = p + text->size;
    for (bool space = true; p < end;) {
        int32_t code_point;
        p += dp_utf8_decode(p, end, &code_point);
        CHECK(code_point >= 0);
        CHECK(code_point != ' ' || (!space && p < end && !options->drop_space));
        space = code_point == ' ';
    }
}

static void check_list(const dp_words_options *options, const uint8_t *text, size_t length, const reading *truth) {
    dp_word_list list;
    CHECK(!dp_word_list_make(options, (const char *)text, length, &list));
    CHECK(list.count == truth->units && list.text.size == truth->text.size);
    CHECK(!list.text.size || !memcmp(list.text.data, truth->text.data, list.text.size));
    for (size_t i = 0; i < list.count; i++) {
        const uint64_t *range = list.ranges + 2 * i;
        CHECK(range[0] < range[1] && range[1] <= length);
        CHECK(!i || (range[0] >= range[-2] && range[1] >= range[-1]));
    }
    dp_word_list_free(&list);
}

/* The whole text by the normaliser alone, with one variant of each of its kernels. */
static void check_variant(const dp_words_options *options, dp_ascii_fn ascii, dp_unicode_fn plain,
                          const dp_buffer *text, const dp_buffer *truth) {
    dp_normaliser n;
    CHECK(!dp_normaliser_open(&n, options, false, NULL));
    n.ascii = ascii;
    n.plain = plain;
    const uint8_t *p = (const uint8_t *)text->data, *end = p + text->size;
    p += text->size >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (p < end)
        CHECK((p = dp_normaliser_read(&n, p, end)));
    CHECK(dp_normaliser_finish(&n));
    CHECK(n.size == truth->size && (!n.size || !memcmp(n.text, truth->data, n.size)));
    dp_normaliser_close(&n);
}

static void check_variants(const dp_words_options *options, const dp_buffer *text, const dp_buffer *truth) {
    for (const dp_ascii_variant *ascii = dp_ascii_variants;; ascii++) {
        for (const dp_unicode_variant *plain = dp_unicode_variants;; plain++) {
            if (ascii->needs <= dp_cpu_best() && plain->needs <= dp_cpu_best())
                check_variant(options, ascii->run, plain->run, text, truth);
            if (!plain->needs)
                break;
        }
        if (!ascii->needs)
            return;
    }
}

static dp_words_options choose(uint8_t byte, uint8_t cut) {
    dp_words_options options = {.keep_case = byte & 1, .keep_punct = byte & 2, .chars = byte & 4};
    options.drop_space = options.chars && byte & 8;
    options.overlap = byte >> 4 & 3;
    options.first = byte & 64 ? 1 + cut * 3u : 0;
    if (byte & 128 && !options.chars) {
        options.stop_words = "the A \xC3\xA9 \xE4\xB8\xAD x";
        options.stop_words_length = strlen(options.stop_words);
    }
    return options;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    dp_words_options options = choose(data[0], data[1]);
    const uint8_t *text = data + 2;
    size_t length = size - 2, most = data[1] % 16 ? data[1] % 16 : 5000;
    reading truth = read_text(&options, text, length, SIZE_MAX), cut = read_text(&options, text, length, most);
    CHECK(cut.units == truth.units && cut.text.size == truth.text.size);
    CHECK(!cut.text.size || !memcmp(cut.text.data, truth.text.data, cut.text.size));
    check_text(&options, &truth.text);
    if (!options.chars)
        check_list(&options, text, length, &truth);
    if (!options.first && !options.stop_words_length)
        check_variants(&options, &(dp_buffer){(char *)(uintptr_t)text, length, 0}, &truth.text);
    reading_free(&truth);
    reading_free(&cut);
    return 0;
}

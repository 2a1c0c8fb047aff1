/* units.c - a text becomes units: lines, sentences or paragraphs with the hashes of their words, or the words
 * themselves; and where each unit starts in the text as it was given. */
#include "kernel/kernel.h"
#include "trim/trim.h"

#include <stdlib.h>
#include <xxhash.h>

/* ---- what a thread reads with ---- */

doppel_status dp_trim_text_init(dp_trim_text *text, const dp_trim_settings *settings) {
    dp_words_options options = settings->recipe->text;
    options.overlap = 0;
    *text = (dp_trim_text){.settings = settings};
    DP_TRY(dp_words_create(&options, &text->words, NULL));
    if (settings->passages)
        DP_TRY(dp_words_create_ranged(&options, &text->ranged));
    return doppel_page_reader_create(&text->pages);
}

void dp_trim_text_free(dp_trim_text *text) {
    doppel_page_reader_free(text->pages);
    dp_words_free(text->words);
    dp_words_free(text->ranged);
    free(text->unit);
    free(text->hash);
    dp_buffer_free(&text->text);
    free(text->starts);
    free(text->hashes);
    free(text->bounds);
}

doppel_status dp_trim_text_of(dp_trim_text *text, const doppel_document *document, doppel_page *page, bool *is_page) {
    *is_page = document->html.data && !document->text.length;
    DP_TRY(doppel_document_text(text->pages, document, text->settings->options.content, page));
    return page->text.length < UINT32_MAX ? DOPPEL_OK : DOPPEL_ERROR_INPUT;
}

/* ---- words ---- */

/* dp_words_sink: appends words, a space after each, and counts them in text->count. */
static doppel_status take_words(void *user, const dp_word_batch *batch) {
    dp_trim_text *text = user;
    size_t size = batch->count ? batch->starts[batch->count] - 1 : 0;
    if (!dp_reserve(&text->text.data, &text->text.capacity, text->text.size + size + 1 + DP_TEXT_SLACK, 1))
        return DOPPEL_ERROR_MEMORY;
    text->count += batch->count;
    if (!batch->count)
        return DOPPEL_OK;
    memcpy(text->text.data + text->text.size, batch->text, size);
    text->text.data[text->text.size + size] = ' ';
    text->text.size += size + 1;
    return DOPPEL_OK;
}

/* The same, and notes where they start. */
static doppel_status take_starts(void *user, const dp_word_batch *batch) {
    dp_trim_text *text = user;
    uint64_t base = text->text.size, before = text->count;
    DP_TRY(take_words(user, batch));
    if (text->text.size > UINT32_MAX)
        return DOPPEL_ERROR_INPUT;
    if (!dp_reserve(&text->starts, &text->start_room, before + batch->count + 1, sizeof *text->starts))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < batch->count; i++)
        text->starts[before + i] = (uint32_t)base + batch->starts[i];
    text->starts[text->count] = (uint32_t)text->text.size;
    return DOPPEL_OK;
}

static doppel_status read_words(dp_trim_text *text, doppel_slice bytes, dp_words_sink sink) {
    dp_words_reset(text->words);
    DP_TRY(dp_words_add(text->words, bytes.data, bytes.length, sink, text));
    return dp_words_finish(text->words, sink, text);
}

static doppel_status read_passages(dp_trim_text *text, doppel_slice bytes) {
    text->count = text->text.size = 0;
    DP_TRY(read_words(text, bytes, take_starts));
    text->word_count = text->count;
    if (!dp_reserve(&text->hashes, &text->hash_room, text->count + 8, sizeof *text->hashes))
        return DOPPEL_ERROR_MEMORY;
    const dp_runs words = {(const uint8_t *)text->text.data, text->starts, text->count, 1, 1};
    if (text->count)
        dp_hash_words_kernel()(&words, text->hashes);
    return DOPPEL_OK;
}

/* ---- lines, sentences, paragraphs ---- */

static dp_piece_kind piece_kind(doppel_unit unit, bool is_page) {
    switch (unit) {
    case DOPPEL_UNIT_SENTENCE: return DP_PIECE_SENTENCE;
    /* Blocks of pages end with a line feed. */
    case DOPPEL_UNIT_PARAGRAPH: return is_page ? DP_PIECE_LINE : DP_PIECE_PARAGRAPH;
    default: return DP_PIECE_LINE;
    }
}

/* Reads the piece from `at` to `end`, which becomes a unit if it has words. */
static doppel_status read_piece(dp_trim_text *text, doppel_slice bytes, size_t at, size_t end) {
    uint64_t units = text->unit_count;
    text->count = text->text.size = 0;
    DP_TRY(read_words(text, (doppel_slice){bytes.data + at, end - at}, take_words));
    if (!text->count)
        return DOPPEL_OK;
    if (!dp_reserve(&text->unit, &text->unit_room, units + 1, sizeof *text->unit) ||
        !dp_reserve(&text->hash, &text->unit_hash_room, units + 1, sizeof *text->hash))
        return DOPPEL_ERROR_MEMORY;
    text->unit[units] = (dp_trim_unit){at, text->count};
    if (!text->bounds_only)
        dp_trim_hash(text->settings, text->text.data, text->text.size, text->hash[units]);
    text->unit_count++;
    text->word_count += text->count;
    return DOPPEL_OK;
}

static doppel_status read_pieces(dp_trim_text *text, doppel_slice bytes, bool is_page) {
    dp_piece_kind kind = piece_kind(text->settings->options.unit, is_page);
    text->unit_count = text->word_count = 0;
    for (size_t at = 0, end; at < bytes.length; at = end) {
        end = dp_piece_end(kind, bytes, at);
        DP_TRY(read_piece(text, bytes, at, end));
    }
    text->count = text->unit_count;
    return DOPPEL_OK;
}

void dp_trim_hash(const dp_trim_settings *settings, const void *bytes, size_t length, uint64_t hash[2]) {
    XXH128_hash_t h = XXH3_128bits_withSecret(bytes, length, settings->secret, sizeof settings->secret);
    hash[0] = h.high64;
    hash[1] = h.low64;
}

uint32_t dp_trim_text_check(doppel_slice bytes) {
    return (uint32_t)XXH3_64bits(bytes.data, bytes.length);
}

doppel_status dp_trim_text_read(dp_trim_text *text, doppel_slice bytes, bool is_page) {
    return text->settings->passages ? read_passages(text, bytes) : read_pieces(text, bytes, is_page);
}

/* ---- bounds ---- */

/* Where the code point, or the invalid sequence, before `at` begins. */
static uint64_t before(doppel_slice bytes, uint64_t at) {
    const uint8_t *text = (const uint8_t *)bytes.data;
    bool whole;
    for (uint64_t length = at < 4 ? at : 4; length > 1; length--) {
        const uint8_t *p = text + at - length;
        if (dp_utf8_length(*p) > 1 && dp_utf8_extent(p, (size_t)(text + bytes.length - p), &whole) == length)
            return at - length;
    }
    return at - 1;
}

static bool is_mark_at(doppel_slice bytes, uint64_t at) {
    int32_t c;
    const uint8_t *p = (const uint8_t *)bytes.data;
    dp_utf8_decode(p + at, p + bytes.length, &c);
    return dp_code_point_is_mark(c);
}

/* A bound is never before a mark: it moves to before the mark's base. */
static uint64_t before_marks(doppel_slice bytes, uint64_t at) {
    if (at < bytes.length && (unsigned char)bytes.data[at] >= 0x80 && is_mark_at(bytes, at))
        while (at && is_mark_at(bytes, at = before(bytes, at)))
            ;
    return at;
}

static doppel_status bound_words(dp_trim_text *text, doppel_slice bytes) {
    const uint64_t *ranges;
    size_t count;
    DP_TRY(dp_words_ranges(text->ranged, bytes.data, bytes.length, &ranges, &count));
    if (!dp_reserve(&text->bounds, &text->bound_room, count + 1, sizeof *text->bounds))
        return DOPPEL_ERROR_MEMORY;
    uint64_t last = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t bound = before_marks(bytes, ranges[2 * i]);
        text->bounds[i] = last = bound > last ? bound : last;
    }
    text->count = text->word_count = count;
    return DOPPEL_OK;
}

static doppel_status bound_units(dp_trim_text *text, doppel_slice bytes, bool is_page) {
    text->bounds_only = true;
    doppel_status status = read_pieces(text, bytes, is_page);
    text->bounds_only = false;
    DP_TRY(status);
    if (!dp_reserve(&text->bounds, &text->bound_room, text->count + 1, sizeof *text->bounds))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < text->count; i++)
        text->bounds[i] = text->unit[i].start;
    return DOPPEL_OK;
}

doppel_status dp_trim_text_bounds(dp_trim_text *text, doppel_slice bytes, bool is_page) {
    DP_TRY(text->settings->passages ? bound_words(text, bytes) : bound_units(text, bytes, is_page));
    text->bounds[text->count] = bytes.length;
    return DOPPEL_OK;
}

uint64_t dp_trim_text_words(const dp_trim_text *text, uint64_t from, uint64_t to) {
    uint64_t words = 0;
    if (text->settings->passages)
        return to - from;
    for (; from < to; from++)
        words += text->unit[from].words;
    return words;
}

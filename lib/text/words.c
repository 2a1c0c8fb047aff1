/* words.c - UTF-8 in, normalised words out, in batches: create, reset, add ..., finish.
 *
 * ASCII goes through a kernel, 64 bytes at a time. All other text goes code point by code point: a table tells what
 * each becomes, how it behaves in a word, and whether it may join what stands before it. A code point that joins
 * nothing ends the piece before it. Most pieces are one code point whose table entry says all; the others are
 * normalised by utf8proc (unicode.c).
 *
 * Why pieces may be normalised apart: a code point that is no mark and never the second half of a composition, itself
 * and when folded and decomposed, is a boundary for all of NFKC, folding, NFKC. All of ASCII is such; so is the end of
 * any ASCII run but for its last byte, which a mark may follow: that byte is taken back out of the output when that
 * happens.
 *
 * The output buffer holds at its head the words that are repeated for overlapping shingles, then the new text. A batch
 * ends at the last space, as the word behind it may go on. */
#include "kernel/kernel.h"
#include "text/stop.h"
#include "text/text.h"
#include "text/unicode.h"
#include "unicode_table.h"

#include <stdlib.h>

/* A batch is about this long: the text, its starts and hashes then stay in the first two caches. */
#define BATCH 8192

/* Room beyond the text: the longest normalised piece with a space, and what kernels read and write ahead. */
#define SLACK (DP_PIECE_NORMALISED * 4 + 64 + DP_TEXT_SLACK)

/* Starts are 32-bit. */
#define MAX_TEXT ((size_t)1 << 31)

/* A run of ASCII this long goes back to the kernel. */
#define ASCII_RUN 16

struct dp_words {
    dp_words_options options;
    const uint16_t *rows; /* the table for this case rule */
    dp_ascii_fn ascii;
    dp_spaces_fn spaces;
    dp_ascii_state state; /* its at_space says so for all of the text */

    uint8_t *text;
    size_t size, capacity;
    size_t seen; /* units at the head that were in the last batch */
    size_t full; /* give a batch at this size */
    uint32_t *starts;
    size_t starts_capacity;

    int32_t piece[DP_PIECE]; /* code points that may still be joined */
    size_t piece_count, piece_joins;
    int32_t piece_entry; /* of the first */
    uint8_t last_ascii;  /* the byte before this point, if it went through the kernel */
    bool alone;          /* the last word stands alone; only vanishing code points came since */
    bool begun;          /* something was read */
    uint8_t carry[4];    /* the beginning of a UTF-8 sequence */
    size_t carried;
    uint64_t left; /* code points that may still be used, with options.first */

    dp_stop *stop;

    bool ranged; /* note where words come from: everything goes code point by code point, in one batch */
    uint64_t *ranges;
    size_t range_count, ranges_capacity;
    uint64_t piece_start, piece_end; /* source bytes of the piece, when ranged */
    bool failed;                     /* no memory for a range */
};

/* ---- output ---- */

static bool reserve(dp_words *w, size_t more) {
    return dp_reserve(&w->text, &w->capacity, w->size + more + SLACK, 1);
}

static void note_range(dp_words *w, bool new_word) {
    if (new_word) {
        if (!dp_reserve(&w->ranges, &w->ranges_capacity, w->range_count + 2, sizeof *w->ranges)) {
            w->failed = true;
            return;
        }
        w->ranges[w->range_count] = w->piece_start;
        w->range_count += 2;
    }
    w->ranges[w->range_count - 1] = w->piece_end;
}

static inline void write_space(dp_words *w) {
    w->text[w->size++] = ' ';
    w->state.at_space = true;
}

static inline void write_code_point(dp_words *w, uint32_t code_point) {
    if (w->ranged)
        note_range(w, w->state.at_space);
    w->size += dp_encode(code_point, w->text + w->size);
    w->state.at_space = false;
}

/* One normalised code point takes its place in the words. */
static inline void put(dp_words *w, uint32_t code_point, int class) {
    switch (class) {
    case DP_CLASS_PUNCT:
        if (!w->options.keep_punct)
            return;
        __attribute__((fallthrough));
    case DP_CLASS_LETTER:
        if (w->alone)
            write_space(w);
        w->alone = false;
        write_code_point(w, code_point);
        return;
    case DP_CLASS_ALONE:
        if (!w->options.chars && !w->state.at_space)
            write_space(w);
        w->alone = !w->options.chars;
        write_code_point(w, code_point);
        return;
    case DP_CLASS_MARK: write_code_point(w, code_point); return;
    case DP_CLASS_SPACE:
        w->alone = false;
        if (!w->state.at_space && !w->options.drop_space)
            write_space(w);
        return;
    default: return;
    }
}

/* ---- pieces ---- */

static inline int32_t look_up(const dp_words *w, int32_t code_point) {
    return dp_table_entries[w->rows[code_point / DP_TABLE_BLOCK]][code_point % DP_TABLE_BLOCK];
}

static inline void put_entry(dp_words *w, int32_t code_point, int32_t entry) {
    put(w, (uint32_t)(code_point + (entry >> DP_ENTRY_SHIFT)), entry & DP_CLASS_PLAIN);
}

/* Whether the marks of the piece are in order and change nothing: by the quick check of Unicode annex 15 it is then
 * normalised as soon as its base is. */
static bool piece_is_plain(const dp_words *w) {
    int before = 0;
    for (size_t i = 0; i < w->piece_count; i++) {
        int32_t entry = look_up(w, w->piece[i]);
        if (entry & DP_ENTRY_SLOW || ((i || entry & DP_ENTRY_JOINS) && !(entry & DP_ENTRY_INERT)))
            return false;
        int class = entry & DP_ENTRY_JOINS ? dp_combining_class(w->piece[i]) : 0;
        if (class < before)
            return false;
        before = class;
    }
    return true;
}

static __attribute__((noinline)) void end_long_piece(dp_words *w) {
    if (piece_is_plain(w)) {
        for (size_t i = 0; i < w->piece_count; i++)
            put_entry(w, w->piece[i], look_up(w, w->piece[i]));
    } else {
        int32_t normalised[DP_PIECE_NORMALISED];
        size_t made = dp_normalise(w->piece, w->piece_count, w->options.keep_case, normalised);
        for (size_t i = 0; i < made; i++)
            put(w, (uint32_t)normalised[i], dp_code_point_class(normalised[i]));
    }
}

static inline void end_piece(dp_words *w) {
    if (w->piece_count == 1 && !(w->piece_entry & (DP_ENTRY_SLOW | DP_ENTRY_JOINS)))
        put_entry(w, w->piece[0], w->piece_entry);
    else if (w->piece_count)
        end_long_piece(w);
    w->piece_count = 0;
}

static inline void begin_piece(dp_words *w, int32_t code_point, int32_t entry) {
    w->piece[0] = code_point;
    w->piece_entry = entry;
    w->piece_count = 1;
    w->piece_joins = entry & DP_ENTRY_JOINS ? 1 : 0;
}

/* The last byte went through the kernel and is now joined: take it back, it is the base of a piece. */
static void take_back(dp_words *w) {
    uint8_t mapped = w->state.map[w->last_ascii];
    if (!mapped || mapped == ' ') {
        /* What vanished left nothing, and nothing composes with a space. */
        if (mapped == ' ')
            return;
    } else {
        w->size--;
        w->state.at_space = !w->size || w->text[w->size - 1] == ' ';
    }
    begin_piece(w, w->last_ascii, look_up(w, w->last_ascii));
}

static inline void join_piece(dp_words *w, int32_t code_point, int32_t entry) {
    if (!w->piece_count && w->last_ascii)
        take_back(w);
    if (w->piece_joins == DP_PIECE_JOINS)
        end_piece(w);
    if (!w->piece_count) {
        begin_piece(w, code_point, entry);
        w->piece_start = w->piece_end;
        return;
    }
    w->piece[w->piece_count++] = code_point;
    w->piece_joins++;
}

/* ---- input ---- */

/* Whether the bytes at p are ASCII for a while, or to the end. */
static inline bool ascii_ahead(const uint8_t *p, const uint8_t *end) {
    if (end - p >= ASCII_RUN)
        return !((dp_load64(p) | dp_load64(p + 8)) & 0x8080808080808080);
    while (p < end)
        if (*p++ >= 0x80)
            return false;
    return true;
}

static inline const uint8_t *decode(const uint8_t *p, const uint8_t *end, int32_t *code_point) {
    if (p[0] < 0x80) {
        *code_point = p[0];
        return p + 1;
    }
    /* Three bytes within U+1000 to U+CFFF, and two bytes, are most text; the general way does the rest. */
    if (p[0] >= 0xE1 && p[0] <= 0xEC && end - p >= 3 && (p[1] & 0xC0) == 0x80 && (p[2] & 0xC0) == 0x80) {
        *code_point = (p[0] & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return p + 3;
    }
    if (p[0] >= 0xC2 && p[0] <= 0xDF && end - p >= 2 && (p[1] & 0xC0) == 0x80) {
        *code_point = (p[0] & 0x1F) << 6 | (p[1] & 0x3F);
        return p + 2;
    }
    return p + dp_utf8_decode(p, end, code_point);
}

/* Code point by code point, until ASCII is ahead or a batch is full; gives where it stopped. */
static const uint8_t *read_code_points(dp_words *w, const uint8_t *p, const uint8_t *end) {
    const size_t full = w->size + BATCH;
    while (p < end && w->size < full) {
        if (*p < 0x80 && !w->ranged && ascii_ahead(p, end)) {
            end_piece(w);
            break;
        }
        int32_t code_point;
        const uint8_t *next = decode(p, end, &code_point);
        if (code_point < 0) {
            end_piece(w);
            put(w, ' ', DP_CLASS_SPACE);
        } else {
            int32_t entry = look_up(w, code_point);
            if (entry & DP_ENTRY_JOINS) {
                join_piece(w, code_point, entry);
            } else {
                end_piece(w);
                begin_piece(w, code_point, entry);
                w->piece_start = w->piece_end;
            }
        }
        w->piece_end += (uint64_t)(next - p);
        w->last_ascii = 0;
        p = next;
    }
    return p;
}

/* After a word that stands alone, the next letter starts a word: here the kernel must begin with a space. */
static const uint8_t *settle_alone(dp_words *w, const uint8_t *p, const uint8_t *end) {
    while (p < end && *p < 0x80 && !w->state.map[*p])
        w->last_ascii = *p++;
    if (p == end || *p >= 0x80)
        return p;
    write_space(w);
    w->alone = false;
    return p;
}

static const uint8_t *read_ascii(dp_words *w, const uint8_t *p, const uint8_t *end) {
    if (w->alone && (p = settle_alone(w, p, end)) == end)
        return p;
    size_t slice = (size_t)(end - p) < BATCH ? (size_t)(end - p) : BATCH;
    w->size += w->ascii(p, slice, w->text + w->size, &w->state);
    if (w->state.used)
        w->last_ascii = p[w->state.used - 1];
    return p + w->state.used;
}

/* ---- batches ---- */

/* Where each unit of text[0..size) starts, and behind the last one. The text ends with a whole unit, or a word's space.
 */
static bool find_starts(dp_words *w, size_t size, bool words, size_t *count) {
    if (!dp_reserve(&w->starts, &w->starts_capacity, (words ? size / 2 : size) + 64, sizeof *w->starts))
        return false;
    *count = 0;
    w->starts[0] = 0;
    if (words) {
        *count = w->spaces(w->text, size, 0, w->starts + 1);
        if (size && w->text[size - 1] != ' ')
            w->starts[++*count] = (uint32_t)size + 1;
        return true;
    }
    for (size_t i = 0; i < size; i++) {
        w->starts[*count] = (uint32_t)i;
        *count += (w->text[i] & 0xC0) != 0x80;
    }
    w->starts[*count] = (uint32_t)size;
    return true;
}

/* How much of the text is settled: up to the last space, or for code points up to the last one that may still be
 * joined. */
static size_t settled(const dp_words *w) {
    size_t size = w->size;
    if (!w->options.chars) {
        while (size && w->text[size - 1] != ' ')
            size--;
        return size;
    }
    if (size && w->text[size - 1] == ' ')
        size--;
    while (size && (w->text[--size] & 0xC0) == 0x80)
        ;
    return size;
}

/* Removes stop words among the new words; the text behind them moves up. */
static void drop_stop_words(dp_words *w, size_t *size, size_t *count) {
    uint32_t to = w->starts[w->seen];
    size_t kept = w->seen;
    for (size_t i = w->seen; i < *count; i++) {
        uint32_t from = w->starts[i], length = w->starts[i + 1] - from;
        if (dp_stop_has(w->stop, w->text + from, length - 1))
            continue;
        if (w->ranged)
            memcpy(w->ranges + 2 * kept, w->ranges + 2 * i, 2 * sizeof *w->ranges);
        memmove(w->text + to, w->text + from, length);
        w->starts[kept++] = to;
        to += length;
    }
    w->starts[kept] = to;
    memmove(w->text + to, w->text + *size, w->size - *size);
    w->size = w->size - *size + to;
    *size = to;
    *count = kept;
}

/* Keeps the overlap and what is not settled. */
static void keep_tail(dp_words *w, size_t size, size_t count) {
    w->seen = count < w->options.overlap ? count : w->options.overlap;
    size_t from = w->starts[count - w->seen];
    from = from < size ? from : size;
    memmove(w->text, w->text + from, w->size - from);
    w->size -= from;
    /* A word without end is looked at again only when it has doubled. */
    w->full = 2 * (w->size < BATCH ? BATCH : w->size);
}

static doppel_status give_batch(dp_words *w, bool last, dp_words_sink sink, void *user) {
    size_t count, size = last ? w->size : settled(w);
    if (w->failed || !find_starts(w, size, !w->options.chars, &count))
        return DOPPEL_ERROR_MEMORY;
    if (w->stop) {
        if (last && size && w->text[size - 1] != ' ')
            w->text[size++] = ' ', w->size++;
        drop_stop_words(w, &size, &count);
    }
    dp_word_batch batch = {w->text, w->starts, count, w->seen, w->options.chars ? 0 : 1, last};
    doppel_status status = count > w->seen || last ? sink(user, &batch) : DOPPEL_OK;
    keep_tail(w, size, count);
    return status;
}

/* ---- the public calls ---- */

/* Reads whole sequences, and sequences that nothing can complete. */
static doppel_status feed(dp_words *w, const uint8_t *p, const uint8_t *end, dp_words_sink sink, void *user) {
    while (p < end) {
        if (!reserve(w, 2 * BATCH))
            return DOPPEL_ERROR_MEMORY;
        if (w->size > MAX_TEXT)
            return DOPPEL_ERROR_INPUT;
        if (!w->piece_count && !w->ranged && *p < 0x80)
            p = read_ascii(w, p, end);
        if (p < end && (w->piece_count || w->ranged || *p >= 0x80))
            p = read_code_points(w, p, end);
        if (!w->ranged && w->size >= w->full) {
            doppel_status status = give_batch(w, false, sink, user);
            if (status)
                return status;
        }
    }
    return DOPPEL_OK;
}

/* The part of [p, end) within the first so many code points. */
static const uint8_t *limit(dp_words *w, const uint8_t *p, const uint8_t *end) {
    while (p < end && w->left) {
        if (w->left >= 8 && end - p >= 8 && !(dp_load64(p) & 0x8080808080808080)) {
            p += 8;
            w->left -= 8;
            continue;
        }
        bool whole;
        p += dp_utf8_extent(p, (size_t)(end - p), &whole);
        w->left--;
    }
    return p;
}

static doppel_status feed_limited(dp_words *w, const uint8_t *p, size_t length, dp_words_sink sink, void *user) {
    const uint8_t *end = p + length;
    if (!w->begun && length) {
        w->begun = true;
        if (length >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3)) {
            p += 3;
            w->piece_end = 3;
        }
    }
    if (w->options.first)
        end = limit(w, p, end);
    return feed(w, p, end, sink, user);
}

/* Completes the carried sequence with bytes from the piece; gives how many it took. A byte that does not belong to the
 * sequence stays in the piece. */
static size_t complete(dp_words *w, const uint8_t *p, size_t length) {
    size_t taken = 0;
    bool whole;
    while (taken < length && dp_utf8_incomplete(w->carry, w->carried)) {
        w->carry[w->carried] = p[taken];
        if (dp_utf8_extent(w->carry, w->carried + 1, &whole) == w->carried)
            break;
        w->carried++;
        taken++;
    }
    return taken;
}

doppel_status dp_words_add(dp_words *w, const char *piece, size_t length, dp_words_sink sink, void *user) {
    const uint8_t *p = (const uint8_t *)piece;
    if (w->carried) {
        size_t taken = complete(w, p, length);
        if (taken == length && dp_utf8_incomplete(w->carry, w->carried))
            return DOPPEL_OK;
        size_t carried = w->carried;
        w->carried = 0;
        doppel_status status = feed_limited(w, w->carry, carried, sink, user);
        if (status)
            return status;
        p += taken;
        length -= taken;
    }
    for (size_t tail = 1; tail <= 3 && tail <= length; tail++)
        if (dp_utf8_incomplete(p + length - tail, tail)) {
            memcpy(w->carry, p + length - tail, tail);
            w->carried = tail;
            length -= tail;
            break;
        }
    return length ? feed_limited(w, p, length, sink, user) : DOPPEL_OK;
}

doppel_status dp_words_finish(dp_words *w, dp_words_sink sink, void *user) {
    size_t carried = w->carried;
    w->carried = 0;
    doppel_status status = feed_limited(w, w->carry, carried, sink, user);
    if (status)
        return status;
    if (!reserve(w, 0))
        return DOPPEL_ERROR_MEMORY;
    end_piece(w);
    if (w->size && w->text[w->size - 1] == ' ')
        w->size--;
    return give_batch(w, true, sink, user);
}

void dp_words_reset(dp_words *w) {
    w->state.at_space = true;
    w->size = w->seen = w->piece_count = w->piece_joins = w->carried = w->range_count = 0;
    w->last_ascii = 0;
    w->alone = w->begun = w->failed = false;
    w->left = w->options.first;
    w->full = 2 * BATCH;
    w->piece_start = w->piece_end = 0;
}

static void fill_map(dp_words *w) {
    for (int32_t c = 0; c < 128; c++) {
        int32_t entry = look_up(w, c);
        int class = entry & DP_CLASS_PLAIN;
        bool stays = class == DP_CLASS_LETTER || (class == DP_CLASS_PUNCT && w->options.keep_punct);
        bool space = class == DP_CLASS_SPACE && !w->options.drop_space;
        w->state.map[c] = (uint8_t)(space ? ' ' : stays ? c + (entry >> DP_ENTRY_SHIFT) : 0);
    }
    dp_ascii_prepare(&w->state);
}

doppel_status dp_words_create(const dp_words_options *options, dp_words **words, doppel_error *error) {
    *words = NULL;
    if (strcmp(doppel_unicode_version(), DP_TABLE_UNICODE))
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "this library was built for Unicode %s, but the utf8proc it runs with has %s: build it again",
                       DP_TABLE_UNICODE, doppel_unicode_version());
    dp_words *w = calloc(1, sizeof *w);
    if (!w)
        return dp_no_memory(error);
    w->options = *options;
    w->options.stop_words = NULL;
    w->rows = dp_table_rows[options->keep_case];
    w->ascii = dp_ascii_kernel();
    w->spaces = dp_spaces_kernel();
    fill_map(w);
    dp_words_reset(w);
    if (options->stop_words_length && dp_stop_create(options, &w->stop)) {
        dp_words_free(w);
        return dp_no_memory(error);
    }
    *words = w;
    return DOPPEL_OK;
}

void dp_words_free(dp_words *w) {
    if (!w)
        return;
    dp_stop_free(w->stop);
    free(w->text);
    free(w->starts);
    free(w->ranges);
    free(w);
}

const dp_buffer *dp_words_stop_list(const dp_words *w) {
    static const dp_buffer none;
    return w->stop ? dp_stop_list(w->stop) : &none;
}

/* ---- words with their places ---- */

static doppel_status take_list(void *user, const dp_word_batch *batch) {
    dp_word_list *list = user;
    size_t size = batch->count ? batch->starts[batch->count] - 1 : 0;
    list->count = batch->count;
    if (!(list->starts = malloc((batch->count + 1) * sizeof *list->starts)) ||
        !dp_buffer_add(&list->text, batch->text, size))
        return DOPPEL_ERROR_MEMORY;
    memcpy(list->starts, batch->starts, (batch->count + 1) * sizeof *list->starts);
    return DOPPEL_OK;
}

doppel_status dp_word_list_make(const dp_words_options *options, const char *text, size_t length, dp_word_list *list) {
    dp_words *w;
    dp_words_options whole = *options;
    whole.overlap = 0;
    /* Code points are no words: then the words are what stands between spaces. */
    whole.chars = whole.drop_space = false;
    *list = (dp_word_list){0};
    doppel_status status = dp_words_create(&whole, &w, NULL);
    if (status)
        return status;
    w->ranged = true;
    status = dp_words_add(w, text, length, take_list, list);
    if (!status)
        status = dp_words_finish(w, take_list, list);
    if (!status) {
        list->ranges = w->ranges;
        w->ranges = NULL;
    } else {
        dp_word_list_free(list);
    }
    dp_words_free(w);
    return status;
}

void dp_word_list_free(dp_word_list *list) {
    dp_buffer_free(&list->text);
    free(list->starts);
    free(list->ranges);
    *list = (dp_word_list){0};
}

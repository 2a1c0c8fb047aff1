/* words.c - UTF-8 in, normalised words out, in batches: create, reset, add ..., finish.
 *
 * normalise.c makes the text; here it is cut into batches. The text buffer holds at its head the words that are
 * repeated for overlapping shingles, then the new text. A batch ends at the last space, as the word after it may go
 * on; a word as long as the buffer makes it grow. */
#include "kernel/kernel.h"
#include "text/normalise.h"

#include <stdlib.h>

/* ---- stop words: sorted, and found by their hashes ---- */

typedef struct stop_word {
    const char *bytes;
    size_t length;
} stop_word;

typedef struct stop_words {
    dp_buffer list;   /* the words, sorted by bytes, distinct, joined by one space */
    stop_word *words; /* point into the list */
    size_t count;
    dp_hashmap numbers; /* of the words, from 1, by their hash */
} stop_words;

static doppel_status take_words(void *user, const dp_word_batch *batch) {
    dp_buffer *text = user;
    for (size_t i = batch->seen; i < batch->count; i++) {
        uint32_t length = batch->starts[i + 1] - batch->gap - batch->starts[i];
        if (!dp_buffer_add(text, batch->text + batch->starts[i], length) || !dp_buffer_add(text, " ", 1))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

static doppel_status read_words(const dp_words_options *options, dp_buffer *text) {
    dp_words_options plain = *options;
    plain.stop_words_length = 0;
    plain.first = plain.overlap = 0;
    dp_words *words;
    DP_TRY(dp_words_create(&plain, &words, NULL));
    doppel_status status = dp_words_add(words, options->stop_words, options->stop_words_length, take_words, text);
    DP_THEN(status, dp_words_finish(words, take_words, text));
    dp_words_free(words);
    return status;
}

static int compare_words(const void *a, const void *b) {
    const stop_word *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* The words of a text in which each is followed by a space; NULL when out of memory. */
static stop_word *split(const dp_buffer *text, size_t *count) {
    *count = 0;
    stop_word *words = malloc((text->size / 2 + 1) * sizeof *words);
    for (size_t at = 0; words && at < text->size;) {
        const char *end = memchr(text->data + at, ' ', text->size - at);
        words[*count] = (stop_word){text->data + at, (size_t)(end - text->data) - at};
        at += words[(*count)++].length + 1;
    }
    return words;
}

/* Sorts the words into stop->list, each followed by a space, without repeats. */
static bool sort_list(stop_words *stop, const dp_buffer *text) {
    size_t count;
    stop_word *words = split(text, &count);
    if (!words)
        return false;
    qsort(words, count, sizeof *words, compare_words);
    bool done = true;
    for (size_t i = 0; i < count && done; i++)
        if (!i || compare_words(&words[i - 1], &words[i]))
            done = dp_buffer_add(&stop->list, words[i].bytes, words[i].length + 1);
    free(words);
    return done;
}

/* A word to look for. */
typedef struct wanted_word {
    const stop_words *stop;
    stop_word word;
} wanted_word;

static bool is_wanted(const void *user, uint64_t number) {
    const wanted_word *w = user;
    const stop_word *here = &w->stop->words[number - 1];
    return here->length == w->word.length && !memcmp(here->bytes, w->word.bytes, here->length);
}

static bool number_words(stop_words *stop) {
    if (!dp_hashmap_reserve(&stop->numbers, stop->count))
        return false;
    for (size_t i = 0; i < stop->count; i++) {
        const stop_word *w = &stop->words[i];
        uint64_t hash = dp_hash_word((const uint8_t *)w->bytes, w->length);
        *dp_hashmap_add_if(&stop->numbers, hash, is_wanted, &(wanted_word){stop, *w}) = i + 1;
    }
    return true;
}

static bool is_stop_word(const stop_words *stop, const uint8_t *bytes, size_t length) {
    const wanted_word w = {stop, {(const char *)bytes, length}};
    return dp_hashmap_find_if(&stop->numbers, dp_hash_word(bytes, length), is_wanted, &w) != 0;
}

static void free_stop_words(stop_words *stop) {
    if (!stop)
        return;
    dp_buffer_free(&stop->list);
    free(stop->words);
    dp_hashmap_free(&stop->numbers);
    free(stop);
}

/* Reads options->stop_words as words, by the same options. */
static doppel_status create_stop_words(const dp_words_options *options, stop_words **out) {
    dp_buffer text = {0};
    stop_words *stop = calloc(1, sizeof *stop);
    doppel_status status = stop ? read_words(options, &text) : DOPPEL_ERROR_MEMORY;
    if (!status &&
        (!sort_list(stop, &text) || !(stop->words = split(&stop->list, &stop->count)) || !number_words(stop)))
        status = DOPPEL_ERROR_MEMORY;
    if (!status && stop->list.size)
        stop->list.size--; /* the last space */
    dp_buffer_free(&text);
    if (status) {
        free_stop_words(stop);
        stop = NULL;
    }
    *out = stop;
    return status;
}

/* A batch is given once there is this much text. */
#define BATCH (2 * DP_READ)

/* Starts are 32-bit. */
#define MAX_TEXT ((size_t)1 << 31)

struct dp_words {
    dp_words_options options;
    dp_normaliser out;
    dp_spaces_fn spaces;
    stop_words *stop;
    uint32_t *starts;
    size_t starts_capacity;
    size_t seen;      /* units at the head that were in the last batch */
    size_t full;      /* give a batch at this size */
    bool begun;       /* something was read */
    uint8_t carry[4]; /* the beginning of a UTF-8 sequence */
    size_t carried;
    uint64_t left; /* code points that may still be used, with options.first */
};

/* ---- batches ---- */

/* Where each word of text[0..size) starts, and one past the last word and its space. */
static size_t find_words(dp_words *w, size_t size) {
    w->starts[0] = 0;
    size_t count = w->spaces(w->out.text, size, 0, w->starts + 1);
    if (size && w->out.text[size - 1] != ' ')
        w->starts[++count] = (uint32_t)size + 1;
    return count;
}

static size_t find_code_points(dp_words *w, size_t size) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) {
        w->starts[count] = (uint32_t)i;
        count += (w->out.text[i] & 0xC0) != 0x80;
    }
    w->starts[count] = (uint32_t)size;
    return count;
}

/* How much of the text is final: up to the last space, or all code points but the last, which may still be joined. */
static size_t settled(const dp_words *w) {
    const uint8_t *text = w->out.text;
    size_t size = w->out.size;
    if (!w->options.chars) {
        while (size && text[size - 1] != ' ')
            size--;
        return size;
    }
    if (size && text[size - 1] == ' ')
        size--;
    while (size && (text[--size] & 0xC0) == 0x80)
        ;
    return size;
}

/* Removes stop words among the new words, each of which has a space after it; the text after them moves up. */
static size_t drop_stop_words(dp_words *w, size_t *size, size_t count) {
    dp_normaliser *out = &w->out;
    uint32_t to = w->starts[w->seen];
    size_t kept = w->seen;
    for (size_t i = w->seen; i < count; i++) {
        uint32_t from = w->starts[i], length = w->starts[i + 1] - from;
        if (is_stop_word(w->stop, out->text + from, length - 1))
            continue;
        if (out->ranged)
            memcpy(out->ranges + 2 * kept, out->ranges + 2 * i, 2 * sizeof *out->ranges);
        memmove(out->text + to, out->text + from, length);
        w->starts[kept++] = to;
        to += length;
    }
    w->starts[kept] = to;
    memmove(out->text + to, out->text + *size, out->size - *size);
    out->size -= *size - to;
    if (out->last_size < *size)
        out->last = -1;
    out->last_size -= *size - to;
    *size = to;
    return kept;
}

/* The first `size` bytes of the text were used up. */
static void drop_text(dp_normaliser *n, size_t size) {
    n->size -= size;
    memmove(n->text, n->text + size, n->size);
    /* A word's last code point is never used up before the word; a space is, and nothing composes with it. */
    if (n->last_size < size)
        n->last = -1;
    n->last_size -= size;
}

/* Keeps the overlap and what is not settled. */
static void keep_tail(dp_words *w, size_t size, size_t count) {
    w->seen = count < w->options.overlap ? count : w->options.overlap;
    size_t from = w->starts[count - w->seen];
    drop_text(&w->out, from < size ? from : size);
    /* An unfinished word is examined again only when it has doubled. */
    w->full = w->out.size < BATCH / 2 ? BATCH : 2 * w->out.size;
}

static doppel_status give_batch(dp_words *w, bool last, dp_words_sink sink, void *user) {
    bool words = !w->options.chars;
    size_t size = last ? w->out.size : settled(w);
    if (!dp_reserve(&w->starts, &w->starts_capacity, (words ? size / 2 : size) + 64, sizeof *w->starts))
        return DOPPEL_ERROR_MEMORY;
    size_t count = words ? find_words(w, size) : find_code_points(w, size);
    if (w->stop && count) {
        if (last) {
            w->out.text[size++] = ' ';
            w->out.size = size;
        }
        count = drop_stop_words(w, &size, count);
    }
    dp_word_batch batch = {w->out.text, w->starts, count, w->seen, words, last};
    doppel_status status = count > w->seen || last ? sink(user, &batch) : DOPPEL_OK;
    if (!last)
        keep_tail(w, size, count);
    return status;
}

/* ---- input ---- */

/* Reads whole sequences, and sequences that nothing can complete. */
static doppel_status feed(dp_words *w, const uint8_t *p, const uint8_t *end, dp_words_sink sink, void *user) {
    while (p < end) {
        if (w->out.size > MAX_TEXT)
            return DOPPEL_ERROR_INPUT;
        if (!(p = dp_normaliser_read(&w->out, p, end)))
            return DOPPEL_ERROR_MEMORY;
        if (!w->out.ranged && w->out.size >= w->full)
            DP_TRY(give_batch(w, false, sink, user));
    }
    return DOPPEL_OK;
}

/* The end of the first w->left code points of [p, end). */
static const uint8_t *limit(dp_words *w, const uint8_t *p, const uint8_t *end) {
    while (p < end && w->left) {
        bool whole;
        size_t run = 1, bytes = 1;
        if (w->left >= 8 && end - p >= 8 && !(dp_load64(p) & 0x8080808080808080))
            run = bytes = 8;
        else
            bytes = dp_utf8_extent(p, (size_t)(end - p), &whole);
        p += bytes;
        w->left -= run;
    }
    return p;
}

static doppel_status feed_limited(dp_words *w, const uint8_t *p, size_t length, dp_words_sink sink, void *user) {
    const uint8_t *end = p + length;
    if (!w->begun && length) {
        w->begun = true;
        if (length >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3)) {
            p += 3;
            w->out.piece_end = 3;
        }
    }
    if (w->options.first)
        end = limit(w, p, end);
    return feed(w, p, end, sink, user);
}

/* Completes the carried sequence with bytes from the piece, as far as they go; returns how many it took. */
static size_t complete(dp_words *w, const uint8_t *p, size_t length) {
    size_t taken = 0;
    bool whole;
    while (taken < length && dp_utf8_incomplete(w->carry, w->carried))
        w->carry[w->carried++] = p[taken++];
    /* A byte that does not continue it may begin another. */
    if (dp_utf8_extent(w->carry, w->carried, &whole) < w->carried) {
        w->carried--;
        taken--;
    }
    return taken;
}

/* Keeps the beginning of a sequence at the end of the piece for the next one; returns how long it is. */
static size_t carry_tail(dp_words *w, const uint8_t *p, size_t length) {
    for (size_t tail = 1; tail <= 3 && tail <= length; tail++)
        if (dp_utf8_incomplete(p + length - tail, tail)) {
            memcpy(w->carry, p + length - tail, tail);
            return w->carried = tail;
        }
    return 0;
}

doppel_status dp_words_add(dp_words *w, const char *piece, size_t length, dp_words_sink sink, void *user) {
    const uint8_t *p = (const uint8_t *)piece;
    if (w->carried) {
        size_t taken = complete(w, p, length), carried = w->carried;
        if (taken == length && dp_utf8_incomplete(w->carry, carried))
            return DOPPEL_OK;
        w->carried = 0;
        DP_TRY(feed_limited(w, w->carry, carried, sink, user));
        p += taken;
        length -= taken;
    }
    length -= carry_tail(w, p, length);
    return length ? feed_limited(w, p, length, sink, user) : DOPPEL_OK;
}

doppel_status dp_words_finish(dp_words *w, dp_words_sink sink, void *user) {
    size_t carried = w->carried;
    w->carried = 0;
    DP_TRY(feed_limited(w, w->carry, carried, sink, user));
    return dp_normaliser_finish(&w->out) ? give_batch(w, true, sink, user) : DOPPEL_ERROR_MEMORY;
}

/* ---- the calls around it ---- */

void dp_words_reset(dp_words *w) {
    dp_normaliser_reset(&w->out);
    w->seen = w->carried = 0;
    w->begun = false;
    w->full = BATCH;
    w->left = w->options.first;
}

static doppel_status create(const dp_words_options *options, bool ranged, dp_words **words, doppel_error *error) {
    *words = NULL;
    dp_words *w = calloc(1, sizeof *w);
    if (!w)
        return dp_no_memory(error);
    w->options = *options;
    w->spaces = dp_spaces_kernel();
    doppel_status status = dp_normaliser_open(&w->out, options, ranged, error);
    if (!status && options->stop_words_length && (status = create_stop_words(options, &w->stop)))
        dp_no_memory(error);
    if (status) {
        dp_words_free(w);
        return status;
    }
    dp_words_reset(w);
    *words = w;
    return DOPPEL_OK;
}

doppel_status dp_words_create(const dp_words_options *options, dp_words **words, doppel_error *error) {
    return create(options, false, words, error);
}

void dp_words_free(dp_words *w) {
    if (!w)
        return;
    dp_normaliser_close(&w->out);
    free_stop_words(w->stop);
    free(w->starts);
    free(w);
}

const dp_buffer *dp_words_stop_list(const dp_words *w) {
    static const dp_buffer none;
    return w->stop ? &w->stop->list : &none;
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

doppel_status dp_words_create_ranged(const dp_words_options *options, dp_words **words) {
    dp_words_options whole = *options;
    whole.overlap = 0;
    /* Code points are not words: then the words are the runs between spaces. */
    whole.chars = whole.drop_space = false;
    return create(&whole, true, words, NULL);
}

/* Reads a whole text, whose words come in one batch. */
static doppel_status read_ranged(dp_words *w, const char *text, size_t length, dp_words_sink sink, void *user) {
    dp_words_reset(w);
    DP_TRY(dp_words_add(w, text, length, sink, user));
    return dp_words_finish(w, sink, user);
}

/* dp_words_sink */
static doppel_status count_words(void *user, const dp_word_batch *batch) {
    *(size_t *)user = batch->count;
    return DOPPEL_OK;
}

doppel_status dp_words_ranges(dp_words *w, const char *text, size_t length, const uint64_t **ranges, size_t *count) {
    doppel_status status = read_ranged(w, text, length, count_words, count);
    *ranges = w->out.ranges;
    return status;
}

doppel_status dp_word_list_make(const dp_words_options *options, const char *text, size_t length, dp_word_list *list) {
    dp_words *w;
    *list = (dp_word_list){0};
    DP_TRY(dp_words_create_ranged(options, &w));
    doppel_status status = read_ranged(w, text, length, take_list, list);
    if (status == DOPPEL_OK) {
        list->ranges = w->out.ranges;
        w->out.ranges = NULL;
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

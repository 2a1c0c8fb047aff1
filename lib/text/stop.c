/* stop.c - a list of words to leave out: sorted, and found through a table of hashes with open addressing. */
#include "text/stop.h"

#include "kernel/kernel.h"

#include <stdlib.h>

typedef struct word {
    const char *bytes;
    size_t length;
} word;

struct dp_stop {
    dp_buffer list;
    word *words; /* point into the list */
    size_t count;
    uint32_t *slots; /* number of a word + 1, 0 is free; a power of two of them, at most half full */
    size_t mask;
};

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
    doppel_status status = dp_words_create(&plain, &words, NULL);
    if (status)
        return status;
    status = dp_words_add(words, options->stop_words, options->stop_words_length, take_words, text);
    if (!status)
        status = dp_words_finish(words, take_words, text);
    dp_words_free(words);
    return status;
}

static int compare_words(const void *a, const void *b) {
    const word *x = a, *y = b;
    int order = memcmp(x->bytes, y->bytes, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* The words of a text in which each is followed by a space; NULL when there is no memory. */
static word *split(const dp_buffer *text, size_t *count) {
    *count = 0;
    word *words = malloc((text->size / 2 + 1) * sizeof *words);
    for (size_t at = 0; words && at < text->size;) {
        const char *end = memchr(text->data + at, ' ', text->size - at);
        words[*count] = (word){text->data + at, (size_t)(end - text->data) - at};
        at += words[(*count)++].length + 1;
    }
    return words;
}

/* Sorts the words into stop->list, each followed by a space, without repeats. */
static bool sort_list(dp_stop *stop, const dp_buffer *text) {
    size_t count;
    word *words = split(text, &count);
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

static bool fill_slots(dp_stop *stop) {
    size_t slots = 16;
    while (slots < 2 * stop->count)
        slots *= 2;
    stop->mask = slots - 1;
    if (!(stop->slots = calloc(slots, sizeof *stop->slots)))
        return false;
    for (size_t i = 0; i < stop->count; i++) {
        size_t at = dp_hash_mix(dp_hash_word((const uint8_t *)stop->words[i].bytes, stop->words[i].length));
        while (stop->slots[at & stop->mask])
            at++;
        stop->slots[at & stop->mask] = (uint32_t)i + 1;
    }
    return true;
}

doppel_status dp_stop_create(const dp_words_options *options, dp_stop **out) {
    dp_buffer text = {0};
    dp_stop *stop = calloc(1, sizeof *stop);
    doppel_status status = stop ? read_words(options, &text) : DOPPEL_ERROR_MEMORY;
    if (!status && (!sort_list(stop, &text) || !(stop->words = split(&stop->list, &stop->count)) || !fill_slots(stop)))
        status = DOPPEL_ERROR_MEMORY;
    if (!status && stop->list.size)
        stop->list.size--; /* the last space */
    dp_buffer_free(&text);
    if (status) {
        dp_stop_free(stop);
        stop = NULL;
    }
    *out = stop;
    return status;
}

void dp_stop_free(dp_stop *stop) {
    if (!stop)
        return;
    dp_buffer_free(&stop->list);
    free(stop->words);
    free(stop->slots);
    free(stop);
}

bool dp_stop_has(const dp_stop *stop, const uint8_t *bytes, size_t length) {
    for (size_t at = dp_hash_mix(dp_hash_word(bytes, length)); stop->slots[at & stop->mask]; at++) {
        const word *here = &stop->words[stop->slots[at & stop->mask] - 1];
        if (here->length == length && !memcmp(here->bytes, bytes, length))
            return true;
    }
    return false;
}

const dp_buffer *dp_stop_list(const dp_stop *stop) {
    return &stop->list;
}

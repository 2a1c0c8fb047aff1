/* windows.c - the windows that may repeat: dp_sampler_add and dp_filter_make first, for passages, then dp_windows_find.
 *
 * Lines, sentences, paragraphs: every window is a candidate. Its hash and its place are sorted.
 *
 * Passages: there is a window at every word, and most of them stand in one place alone. So of the grams of a window one
 * is chosen (lib/sketch/winnow.c), the same one wherever the window stands. While documents are read first, the chosen
 * grams are sorted; those that stand in several places go into a filter. When documents are read again, only windows
 * whose gram is in the filter are hashed and sorted. Where too many of them repeat, this is done in rounds, each for a
 * part of the grams, so that the windows of one round take a bounded room. All windows of a gram are in one round. */
#include "kernel/kernel.h"
#include "trim/trim.h"

#include <stdlib.h>

/* ---- samples ---- */

bool dp_sampler_init(dp_sampler *sampler, dp_trim_text *text, dp_trim_parts *samples) {
    *sampler = (dp_sampler){.text = text};
    return !samples || dp_trim_adder_init(&sampler->adder, samples);
}

void dp_sampler_free(dp_sampler *sampler) {
    dp_trim_adder_free(&sampler->adder);
    free(sampler->grams);
    free(sampler->chosen);
}

/* Chooses grams of the text that was read last. */
static doppel_status choose(dp_sampler *sampler, size_t *found) {
    const dp_trim_settings *s = sampler->text->settings;
    size_t count = (size_t)sampler->text->count, grams = count < s->n ? 0 : count - s->gram + 1;
    *found = 0;
    if (!grams)
        return DOPPEL_OK;
    if (!dp_reserve(&sampler->grams, &sampler->gram_room, grams, sizeof *sampler->grams) ||
        !dp_reserve(&sampler->chosen, &sampler->chosen_room, grams + 1, sizeof *sampler->chosen))
        return DOPPEL_ERROR_MEMORY;
    dp_grams_make(sampler->text->hashes, grams, s->gram, sampler->grams);
    *found = dp_winnow(sampler->grams, grams, s->window, sampler->chosen);
    sampler->chosen[*found].first = (uint32_t)(count - s->n + 1);
    return DOPPEL_OK;
}

/* A chosen gram as a sample, another one for each: chosen grams are small numbers, samples are spread evenly, over
 * parts and rounds. Odd, as grams are. */
static uint64_t sample_of(const dp_sampler *sampler, size_t chosen) {
    return sampler->grams[sampler->chosen[chosen].gram] * 0x9E3779B97F4A7C15u;
}

doppel_status dp_sampler_add(dp_sampler *sampler) {
    size_t found;
    DP_TRY(choose(sampler, &found));
    sampler->samples += found;
    sampler->windows += found ? sampler->chosen[found].first : 0;
    for (size_t i = 0; i < found; i++) {
        const uint64_t sample = sample_of(sampler, i);
        DP_TRY(dp_trim_adder_add(&sampler->adder, &sample));
    }
    return DOPPEL_OK;
}

/* ---- the filter ---- */

/* Bits a sample, where memory allows: with three bits set of a word of 64, one in a hundred others passes. */
#define FILTER_BITS 16

static uint64_t filter_bits(uint64_t sample) {
    return (uint64_t)1 << (sample >> 2 & 63) | (uint64_t)1 << (sample >> 8 & 63) | (uint64_t)1 << (sample >> 14 & 63);
}

static _Atomic uint64_t *filter_word(const dp_sample_filter *filter, uint64_t sample) {
    return &filter->word[sample >> 20 & filter->mask];
}

static bool filter_has(const dp_sample_filter *filter, uint64_t sample) {
    uint64_t bits = filter_bits(sample);
    return (atomic_load_explicit(filter_word(filter, sample), memory_order_relaxed) & bits) == bits;
}

static bool filter_open(dp_sample_filter *filter, uint64_t samples, uint64_t memory) {
    uint64_t words = 1024;
    while (words * 64 < samples * FILTER_BITS && words * 2 * sizeof *filter->word <= memory)
        words *= 2;
    filter->mask = words - 1;
    filter->word = calloc(words, sizeof *filter->word);
    return filter->word;
}

typedef struct filter_fill {
    doppel_trim *trim;
    uint64_t least; /* occurrences from which on a sample goes into the filter */
} filter_fill;

/* dp_trim_part_work */
static doppel_status fill_filter(void *user, dp_sorter *sorter, doppel_error *error) {
    const filter_fill *fill = user;
    dp_sample_filter *filter = &fill->trim->filter;
    const uint64_t *sample;
    uint64_t last = 0, count = 0, repeated = 0; /* samples are odd */
    for (;;) {
        DP_TRY(dp_sorter_next(sorter, &sample, error));
        if (!sample)
            break;
        count = *sample == last ? count + 1 : 1;
        last = *sample;
        if (count == fill->least)
            atomic_fetch_or_explicit(filter_word(filter, last), filter_bits(last), memory_order_relaxed);
        repeated += count == fill->least ? fill->least : count > fill->least;
    }
    pthread_mutex_lock(&fill->trim->lock);
    fill->trim->repeated_samples += repeated;
    pthread_mutex_unlock(&fill->trim->lock);
    return DOPPEL_OK;
}

doppel_status dp_filter_make(doppel_trim *trim, dp_trim_parts *samples, doppel_error *error) {
    const dp_trim_settings *s = &trim->settings;
    filter_fill fill = {trim, s->options.against_count ? 1 : 2};
    /* Of samples that repeat, at most half are different ones. */
    if (!filter_open(&trim->filter, trim->samples / fill.least, s->memory / 8))
        return dp_no_memory(error);
    return dp_trim_parts_run(trim, samples, "samples", fill_filter, &fill);
}

/* ---- short texts of `against` ---- */

enum { FIRST_BITS = 1 << 20 };

typedef struct wanted_text {
    const dp_short_texts *shorts;
    uint64_t hash[2];
    uint32_t words;
} wanted_text;

static bool is_wanted(const void *user, uint64_t number) {
    const wanted_text *w = user;
    const dp_short_text *t = &w->shorts->text[number - 1];
    return t->words == w->words && !memcmp(t->hash, w->hash, sizeof t->hash);
}

static bool *get_first(const dp_short_texts *shorts, uint64_t word_hash) {
    return &shorts->first[word_hash % FIRST_BITS];
}

/* The first document with this text counts; they come in any order. */
static bool add_short(dp_short_texts *shorts, const dp_short_text *text, uint64_t first_word) {
    const wanted_text wanted = {shorts, {text->hash[0], text->hash[1]}, text->words};
    if (!dp_reserve(&shorts->text, &shorts->room, shorts->count + 1, sizeof *shorts->text) ||
        (!shorts->first && !(shorts->first = calloc(FIRST_BITS, sizeof *shorts->first))) ||
        !dp_reserve(&shorts->has_length, &shorts->length_room, text->words + 1, sizeof *shorts->has_length))
        return false;
    uint64_t *number = dp_hashmap_add_if(&shorts->numbers, text->hash[0], is_wanted, &wanted);
    if (!number)
        return false;
    for (; shorts->lengths <= text->words; shorts->lengths++)
        shorts->has_length[shorts->lengths] = false;
    shorts->has_length[text->words] = *get_first(shorts, first_word) = true;
    if (!*number) {
        shorts->text[shorts->count++] = *text;
        *number = shorts->count;
    } else if (text->document < shorts->text[*number - 1].document) {
        shorts->text[*number - 1].document = text->document;
    }
    return true;
}

void dp_short_texts_free(dp_short_texts *shorts) {
    free(shorts->text);
    free(shorts->first);
    free(shorts->has_length);
    dp_hashmap_free(&shorts->numbers);
}

/* A text of `against` that has fewer words than a window is a window of its own length. */
static doppel_status keep_short(doppel_trim *trim, const dp_trim_text *text, uint64_t document) {
    dp_short_text kept = {.document = (uint32_t)document, .words = (uint32_t)text->count};
    bool counts = text->count >= trim->settings.options.min_words, added = true;
    if (counts)
        dp_trim_hash(&trim->settings, text->text.data, text->text.size, kept.hash);
    pthread_mutex_lock(&trim->lock);
    if (counts)
        added = add_short(&trim->shorts, &kept, text->hashes[0]);
    else
        trim->stats.short_against++;
    pthread_mutex_unlock(&trim->lock);
    return added ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* ---- windows of a document ---- */

/* What one thread finds windows with. */
typedef struct window_finder {
    doppel_trim *trim;
    dp_trim_text text;
    dp_sampler sampler;
    dp_trim_adder windows, marks;
    doppel_error error;
    const struct window_search *search;
    uint64_t first; /* the number of the first document of the reading */
    uint64_t units, words, shorts;
} window_finder;

typedef struct window_search {
    doppel_trim *trim;
    dp_trim_parts windows;
    uint64_t round, rounds;
    bool against; /* the documents at hand are those of `against` */
} window_search;

static doppel_status add_window(window_finder *f, const uint64_t hash[2], uint64_t document, uint64_t unit) {
    const dp_trim_documents *d = &f->trim->documents;
    uint64_t rank = d->rank ? d->rank[document] : document;
    uint64_t record[3] = {hash[0], hash[1], rank << 32 | unit};
    if (dp_trim_within(&f->trim->settings)) {
        const uint64_t scoped[3] = {hash[0], hash[1], dp_trim_scope(f->trim, (uint32_t)document)};
        dp_trim_hash(&f->trim->settings, scoped, sizeof scoped, record);
    }
    return dp_trim_adder_add(&f->windows, record);
}

/* Runs of n units, of which one has words enough. */
static doppel_status find_runs(window_finder *f, uint64_t document) {
    const dp_trim_settings *s = &f->trim->settings;
    const dp_trim_text *text = &f->text;
    uint64_t after_long = 0; /* the last unit with words enough, + 1 */
    for (uint64_t i = 0; i < text->count; i++) {
        uint64_t hash[2];
        if (text->unit[i].words >= s->options.min_words)
            after_long = i + 1;
        if (i + 1 < s->n || after_long + s->n < i + 2)
            continue;
        uint64_t first = i + 1 - s->n;
        if (s->n > 1)
            dp_trim_hash(s, text->hash[first], s->n * sizeof *text->hash, hash);
        DP_TRY(add_window(f, s->n > 1 ? hash : text->hash[first], document, first));
    }
    return DOPPEL_OK;
}

static doppel_status add_passage(window_finder *f, uint64_t document, uint64_t word) {
    const dp_trim_text *text = &f->text;
    uint32_t from = text->starts[word], to = text->starts[word + f->trim->settings.n];
    uint64_t hash[2];
    dp_trim_hash(&f->trim->settings, text->text.data + from, to - from, hash);
    return add_window(f, hash, document, word);
}

static doppel_status find_passages(window_finder *f, const window_search *search, uint64_t document) {
    size_t found;
    DP_TRY(choose(&f->sampler, &found));
    for (size_t i = 0; i < found; i++) {
        const dp_winnowed *chosen = &f->sampler.chosen[i];
        uint64_t sample = sample_of(&f->sampler, i);
        if ((sample >> 32) * search->rounds >> 32 != search->round || !filter_has(&f->trim->filter, sample))
            continue;
        for (uint64_t word = chosen->first; word < chosen[1].first; word++)
            DP_TRY(add_passage(f, document, word));
    }
    return DOPPEL_OK;
}

/* The longest short text that begins with a word, and shorter ones: each is cut. */
static doppel_status find_shorts_at(window_finder *f, uint64_t document, uint64_t word) {
    const dp_short_texts *shorts = &f->trim->shorts;
    const dp_trim_text *text = &f->text;
    for (uint32_t words = 1; words < shorts->lengths && word + words <= text->count; words++) {
        wanted_text wanted = {.shorts = shorts, .words = words};
        uint32_t from = text->starts[word], to = text->starts[word + words];
        if (!shorts->has_length[words])
            continue;
        dp_trim_hash(&f->trim->settings, text->text.data + from, to - from, wanted.hash);
        uint64_t number = dp_hashmap_find_if(&shorts->numbers, wanted.hash[0], is_wanted, &wanted);
        const uint64_t original = number ? (uint64_t)shorts->text[number - 1].document << 32 : 0;
        if (number)
            DP_TRY(dp_trim_adder_add(&f->marks, (uint64_t[2]){document << 32 | word, original}));
        f->shorts += number != 0;
    }
    return DOPPEL_OK;
}

static doppel_status find_shorts(window_finder *f, uint64_t document) {
    const dp_short_texts *shorts = &f->trim->shorts;
    for (uint64_t i = 0; shorts->count && i < f->text.count; i++)
        if (*get_first(shorts, f->text.hashes[i]))
            DP_TRY(find_shorts_at(f, document, i));
    return DOPPEL_OK;
}

/* ---- reading ---- */

static doppel_status find_windows(window_finder *f, const window_search *search, uint64_t number,
                                  const doppel_document *document) {
    doppel_trim *trim = f->trim;
    doppel_page page;
    bool is_page, first = !search->round;
    DP_TRY(dp_trim_text_of(&f->text, document, &page, &is_page));
    DP_TRY(dp_trim_text_read(&f->text, page.text, is_page));
    uint64_t words = f->text.word_count;
    trim->documents.words[number] = words < UINT32_MAX ? (uint32_t)words : UINT32_MAX;
    if (first && !search->against) {
        f->units += f->text.count;
        f->words += words;
    }
    if (!trim->settings.passages)
        return find_runs(f, number);
    if (search->against && first && words && words < trim->settings.n)
        DP_TRY(keep_short(trim, &f->text, number));
    if (!search->against && first)
        DP_TRY(find_shorts(f, number));
    return find_passages(f, search, number);
}

/* dp_input_numbered.document */
static doppel_status find_numbered(void *state, uint64_t number, const doppel_document *document,
                                   doppel_output *output) {
    window_finder *f = state;
    (void)output;
    doppel_status status = find_windows(f, f->search, number + f->first, document);
    if (status == DOPPEL_ERROR_INPUT)
        dp_trim_too_long(document, &f->error);
    dp_trim_fail(f->trim, status, &f->error);
    return status;
}

static void end_finder(void *user, void *state) {
    window_finder *f = state;
    doppel_trim *trim = f->trim;
    doppel_status status = DOPPEL_OK;
    (void)user;
    if (f->windows.records && f->marks.records) {
        DP_THEN(status, dp_trim_adder_flush(&f->windows));
        DP_THEN(status, dp_trim_adder_flush(&f->marks));
        dp_trim_fail(trim, status, &f->error);
    }
    pthread_mutex_lock(&trim->lock);
    trim->stats.units += f->units;
    trim->stats.words += f->words;
    trim->stats.repeated += f->shorts;
    pthread_mutex_unlock(&trim->lock);
    dp_trim_text_free(&f->text);
    dp_sampler_free(&f->sampler);
    dp_trim_adder_free(&f->windows);
    dp_trim_adder_free(&f->marks);
    free(f);
}

static doppel_status begin_finder(void *user, void **state) {
    window_search *search = user;
    doppel_trim *trim = search->trim;
    window_finder *f = calloc(1, sizeof *f);
    if (!f)
        return DOPPEL_ERROR_MEMORY;
    f->trim = trim;
    f->search = search;
    f->first = trim->reading[!search->against].first;
    doppel_status status = dp_trim_text_init(&f->text, &trim->settings);
    if (status == DOPPEL_OK &&
        (!dp_sampler_init(&f->sampler, &f->text, NULL) || !dp_trim_adder_init(&f->windows, &search->windows) ||
         !dp_trim_adder_init(&f->marks, &trim->marks)))
        status = DOPPEL_ERROR_MEMORY;
    f->windows.error = f->marks.error = &f->error;
    if (status == DOPPEL_OK)
        *state = f;
    else
        end_finder(NULL, f);
    return status;
}

static doppel_status read_windows(window_search *search, bool against, doppel_error *error) {
    doppel_trim *trim = search->trim;
    const dp_trim_reading *reading = &trim->reading[!against];
    const dp_input_numbered numbered = {.units = &reading->units, .document = find_numbered};
    const doppel_work work = {.user = search, .begin = begin_finder, .end = end_finder};
    search->against = against;
    if (against && !trim->settings.options.against_count)
        return DOPPEL_OK;
    return dp_trim_read_again(trim, reading, &numbered, &work, error);
}

/* ---- rounds ---- */

/* The windows of one round take at most this share of the bytes of the inputs, unless they fit into memory. */
#define ROUND_SHARE 0.4

/* How many rounds there have to be: the samples that repeat are those of so many windows, of 24 bytes each. */
static uint64_t count_rounds(const doppel_trim *trim) {
    const dp_trim_settings *s = &trim->settings;
    double a_sample = trim->samples ? (double)trim->sampled_windows / (double)trim->samples : 0;
    double bytes = 24 * a_sample * (double)trim->repeated_samples;
    double room = ROUND_SHARE * (double)trim->reading[1].counts.bytes, memory = (double)s->memory / 4;
    room = room > memory ? room : memory;
    return s->passages && bytes > room ? (uint64_t)(bytes / room) + 1 : 1;
}

static doppel_status find_round(window_search *search, doppel_error *error) {
    doppel_trim *trim = search->trim;
    const dp_trim_settings *s = &trim->settings;
    dp_trim_parts_open(&search->windows, trim, 3, 0x1p64, s->memory / 2);
    doppel_status status = read_windows(search, true, error);
    DP_THEN(status, read_windows(search, false, error));
    if (!s->passages) {
        DP_THEN(status, dp_repeats_mark(trim, &search->windows, &trim->marks));
    } else if (status == DOPPEL_OK) {
        dp_trim_parts marks = {.open = false};
        dp_trim_parts_open(&marks, trim, 2, dp_trim_marks_limit(trim), s->memory / 8);
        DP_THEN(status, dp_repeats_mark(trim, &search->windows, &marks));
        DP_THEN(status, dp_repeats_thin(trim, &marks));
        dp_trim_parts_close(&marks);
    }
    dp_trim_parts_close(&search->windows);
    return status;
}

doppel_status dp_windows_find(doppel_trim *trim, doppel_error *error) {
    const dp_trim_settings *s = &trim->settings;
    window_search search = {.trim = trim, .rounds = count_rounds(trim)};
    doppel_status status = DOPPEL_OK;
    dp_trim_parts_open(&trim->marks, trim, 2, dp_trim_marks_limit(trim), s->memory / 8);
    for (; search.round < search.rounds && status == DOPPEL_OK; search.round++)
        status = find_round(&search, error);
    return status;
}

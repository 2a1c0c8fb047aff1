/* windows.c - the windows that may repeat: dp_sampler_add and dp_filter_make first, for passages, then dp_windows_find.
 *
 * Lines, sentences, paragraphs: every window is a candidate. Its hash and its place are sorted.
 *
 * Passages: there is a window at every word, and most occur only once. So one of the grams of a window is chosen
 * (lib/sketch/winnow.c), the same one wherever the window occurs. While documents are read first, the chosen grams are
 * sorted; those that stand in several places go into a filter. When documents are read again, only windows whose gram
 * is in the filter are hashed and sorted. Where too many of them repeat, this is done in rounds, each for a part of the
 * grams, so that the windows of one round take a bounded room. All windows of a gram are in one round. */
#include "kernel/kernel.h"
#include "trim/trim.h"

#include <math.h>
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

/* A chosen gram as a sample, by a bijection: chosen grams are small numbers, samples are evenly distributed over parts
 * and rounds. Odd, as grams are. */
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

/* How many windows choose a gram. */
static uint32_t windows_of(const dp_sampler *sampler, size_t chosen) {
    return sampler->chosen[chosen + 1].first - sampler->chosen[chosen].first;
}

/* ---- the filter ---- */

/* Bits per sample, if memory allows: with three bits set of a word of 64, one in a hundred others passes. */
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

static void filter_add(dp_sample_filter *filter, uint64_t sample) {
    atomic_fetch_or_explicit(filter_word(filter, sample), filter_bits(sample), memory_order_relaxed);
}

static bool filter_open(dp_sample_filter *filter, uint64_t samples, uint64_t memory) {
    uint64_t words = 1024;
    while (words * 64 < samples * FILTER_BITS && words * 2 * sizeof *filter->word <= memory)
        words *= 2;
    filter->mask = words - 1;
    filter->word = calloc(words, sizeof *filter->word);
    return filter->word;
}

doppel_status dp_sampler_share(dp_sampler *sampler, const dp_sample_filter *filter, dp_sample_filter *shared) {
    size_t found;
    DP_TRY(choose(sampler, &found));
    for (size_t i = 0; i < found; i++) {
        uint64_t sample = sample_of(sampler, i);
        if (!filter_has(filter, sample))
            continue;
        filter_add(shared, sample);
        sampler->repeated += windows_of(sampler, i);
    }
    return DOPPEL_OK;
}

doppel_status dp_filter_begin_shared(doppel_trim *trim, doppel_error *error) {
    trim->shared.mask = trim->filter.mask;
    trim->shared.word = calloc(trim->shared.mask + 1, sizeof *trim->shared.word);
    return trim->shared.word ? DOPPEL_OK : dp_no_memory(error);
}

void dp_filter_end_shared(doppel_trim *trim) {
    free(trim->filter.word);
    trim->filter = trim->shared;
    trim->shared.word = NULL;
}

typedef struct filter_fill {
    doppel_trim *trim;
    uint64_t least; /* occurrences from which on a sample goes into the filter, */
    double hot;     /* and from which on it is kept in the list of frequent ones */
} filter_fill;

/* Keeps a sample that is frequent. */
static bool keep_hot(doppel_trim *trim, uint64_t sample) {
    pthread_mutex_lock(&trim->lock);
    bool kept = dp_reserve(&trim->hot, &trim->hot_room, trim->hot_count + 1, sizeof *trim->hot);
    if (kept)
        trim->hot[trim->hot_count++] = sample;
    pthread_mutex_unlock(&trim->lock);
    return kept;
}

/* dp_trim_part_work */
static doppel_status fill_filter(void *user, dp_sorter *sorter, doppel_error *error) {
    const filter_fill *fill = user;
    doppel_trim *trim = fill->trim;
    const uint64_t *sample;
    uint64_t last = 0, count = 0, repeated = 0; /* samples are odd */
    do {
        DP_TRY(dp_sorter_next(sorter, &sample, error));
        if (!sample || *sample != last) {
            repeated += count >= fill->least ? count : 0;
            if ((double)count >= fill->hot && !keep_hot(trim, last))
                return dp_no_memory(error);
            count = 0;
        }
        last = sample ? *sample : 0;
        if (sample && ++count == fill->least)
            filter_add(&trim->filter, last);
    } while (sample);
    pthread_mutex_lock(&trim->lock);
    trim->repeated_samples += repeated;
    pthread_mutex_unlock(&trim->lock);
    return DOPPEL_OK;
}

/* The bytes of a window that is sorted. */
enum { WINDOW_BYTES = 3 * sizeof(uint64_t) };

/* The windows of one round take at most this share of the bytes of the inputs, unless they fit into memory. */
#define ROUND_SHARE 0.4

/* Samples of which each takes this share of that are divided, too. */
#define HOT_SHARE 0.125

/* Fewer windows than this are never divided. */
#define LEAST_WINDOWS 4096

static double round_room(const doppel_trim *trim) {
    double bytes = (double)trim->reading[0].counts.bytes + (double)trim->reading[1].counts.bytes;
    double room = ROUND_SHARE * bytes, memory = (double)trim->settings.memory / 8;
    room = room > memory ? room : memory;
    return room > LEAST_WINDOWS * WINDOW_BYTES ? room : LEAST_WINDOWS * WINDOW_BYTES;
}

static double windows_a_sample(const doppel_trim *trim) {
    return trim->samples ? (double)trim->sampled_windows / (double)trim->samples : 1;
}

static int compare_samples(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

doppel_status dp_filter_make(doppel_trim *trim, dp_trim_parts *samples, doppel_error *error) {
    const dp_trim_settings *s = &trim->settings;
    bool against = s->options.against_count;
    double hot = HOT_SHARE * round_room(trim) / WINDOW_BYTES / windows_a_sample(trim);
    filter_fill fill = {trim, against ? 1 : 2, against ? INFINITY : hot > 2 ? hot : 2};
    /* Of samples that repeat, at most half are different ones. */
    if (!filter_open(&trim->filter, trim->samples / fill.least, s->memory / 8))
        return dp_no_memory(error);
    DP_TRY(dp_trim_parts_run(trim, samples, "samples", fill_filter, &fill));
    if (trim->hot_count)
        qsort(trim->hot, trim->hot_count, sizeof *trim->hot, compare_samples);
    return DOPPEL_OK;
}

/* ---- short texts of `against` ---- */

/* Texts of `against` that have fewer words than a window are windows of their own lengths. They have at least min_words
 * words, so they are found by the hash of the first min_words, their head; those with the same head are adjacent. */

static size_t head_words(const doppel_trim *trim) {
    return (size_t)trim->settings.options.min_words;
}

/* Keeps the text that was read last, if it counts. */
static doppel_status keep_short(doppel_trim *trim, const dp_trim_text *text, uint64_t document) {
    dp_short_texts *shorts = &trim->shorts;
    dp_short_text kept = {.document = (uint32_t)document, .words = (uint32_t)text->count};
    bool counts = text->count >= head_words(trim), added = true;
    if (counts) {
        dp_grams_make(text->hashes, 1, head_words(trim), &kept.head);
        dp_trim_hash(&trim->settings, text->text.data, text->text.size, kept.hash);
    }
    pthread_mutex_lock(&trim->lock);
    if (!counts)
        trim->stats.short_against++;
    else if ((added = dp_reserve(&shorts->text, &shorts->room, shorts->count + 1, sizeof *shorts->text)))
        shorts->text[shorts->count++] = kept;
    pthread_mutex_unlock(&trim->lock);
    return added ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static int compare_words(const dp_short_text *a, const dp_short_text *b) {
    if (a->head != b->head)
        return a->head < b->head ? -1 : 1;
    if (a->words != b->words)
        return a->words < b->words ? -1 : 1;
    return memcmp(a->hash, b->hash, sizeof a->hash);
}

/* By head, number of words, words, document. */
static int compare_shorts(const void *x, const void *y) {
    const dp_short_text *a = x, *b = y;
    int order = compare_words(a, b);
    return order ? order : (a->document > b->document) - (a->document < b->document);
}

typedef struct wanted_head {
    const dp_short_texts *shorts;
    uint64_t head;
} wanted_head;

static bool is_wanted(const void *user, uint64_t number) {
    const wanted_head *w = user;
    return w->shorts->text[number - 1].head == w->head;
}

/* After the last short text: of those with the same words the first is kept. */
static bool prepare_shorts(dp_short_texts *shorts, uint64_t memory) {
    size_t kept = 0;
    if (!shorts->count)
        return true;
    qsort(shorts->text, shorts->count, sizeof *shorts->text, compare_shorts);
    for (size_t i = 0; i < shorts->count; i++)
        if (!kept || compare_words(&shorts->text[kept - 1], &shorts->text[i]))
            shorts->text[kept++] = shorts->text[i];
    shorts->count = kept;
    if (!filter_open(&shorts->heads, kept, memory / 8))
        return false;
    for (size_t i = kept; i--;) {
        dp_short_text *text = &shorts->text[i], *next = text + 1;
        bool together = i + 1 < kept && next->head == text->head && next->words == text->words;
        text->end = together ? next->end : (uint32_t)(i + 1);
    }
    for (size_t i = 0; i < kept; i++) {
        const wanted_head wanted = {shorts, shorts->text[i].head};
        uint64_t *first = dp_hashmap_add_if(&shorts->first, wanted.head, is_wanted, &wanted);
        if (!first)
            return false;
        if (!*first)
            *first = i + 1;
        filter_add(&shorts->heads, wanted.head);
    }
    return true;
}

void dp_short_texts_free(dp_short_texts *shorts) {
    free(shorts->text);
    free(shorts->heads.word);
    dp_hashmap_free(&shorts->first);
}

/* The text of this length with these words, of those from `from` to before `end`; NULL: none. */
static const dp_short_text *find_short(const dp_short_texts *shorts, size_t from, size_t end, const uint64_t hash[2]) {
    while (from < end) {
        size_t middle = (from + end) / 2;
        int order = memcmp(shorts->text[middle].hash, hash, sizeof shorts->text[middle].hash);
        if (!order)
            return &shorts->text[middle];
        if (order < 0)
            from = middle + 1;
        else
            end = middle;
    }
    return NULL;
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
    uint64_t hashed; /* windows hashed, to check now and then whether to stop */
} window_finder;

typedef struct window_search {
    doppel_trim *trim;
    dp_trim_parts windows;
    uint64_t round, rounds;
    bool against; /* the current documents are those of `against` */
} window_search;

static doppel_status add_window(window_finder *f, const uint64_t hash[2], uint64_t document, uint64_t unit) {
    const dp_trim_documents *d = &f->trim->documents;
    uint64_t rank = d->rank ? d->rank[document] : document;
    if (!(++f->hashed % 4096) && dp_stopped(f->trim->settings.input.stop))
        return dp_fail(&f->error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    uint64_t record[3] = {hash[0], hash[1], rank << 32 | unit};
    if (dp_trim_within(&f->trim->settings)) {
        const uint64_t scoped[3] = {hash[0], hash[1], dp_trim_scope(f->trim, (uint32_t)document)};
        dp_trim_hash(&f->trim->settings, scoped, sizeof scoped, record);
    }
    return dp_trim_adder_add(&f->windows, record);
}

/* Runs of n units, one of which has enough words. */
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

/* Which of the rounds a number belongs to. */
static bool in_round(const window_search *search, uint64_t number) {
    return (number >> 32) * search->rounds >> 32 == search->round;
}

static bool is_hot(const doppel_trim *trim, uint64_t sample) {
    return trim->hot_count && bsearch(&sample, trim->hot, trim->hot_count, sizeof *trim->hot, compare_samples);
}

/* Adds the window at a word; of frequent samples, which are divided, only if it belongs to this round. */
static doppel_status add_passage(window_finder *f, uint64_t document, uint64_t word, bool divided) {
    const dp_trim_text *text = &f->text;
    uint32_t from = text->starts[word], to = text->starts[word + f->trim->settings.n];
    uint64_t hash[2];
    dp_trim_hash(&f->trim->settings, text->text.data + from, to - from, hash);
    return divided && !in_round(f->search, hash[1]) ? DOPPEL_OK : add_window(f, hash, document, word);
}

static doppel_status find_passages(window_finder *f, uint64_t document) {
    size_t found;
    DP_TRY(choose(&f->sampler, &found));
    for (size_t i = 0; i < found; i++) {
        const dp_winnowed *chosen = &f->sampler.chosen[i];
        uint64_t sample = sample_of(&f->sampler, i);
        if (!filter_has(&f->trim->filter, sample))
            continue;
        bool divided = f->search->rounds > 1 && is_hot(f->trim, sample);
        if (!divided && !in_round(f->search, sample))
            continue;
        for (uint64_t word = chosen->first; word < chosen[1].first; word++)
            DP_TRY(add_passage(f, document, word, divided));
    }
    return DOPPEL_OK;
}

/* Marks the short texts that occur at a word, where this head occurs. */
static doppel_status find_shorts_at(window_finder *f, uint64_t document, uint64_t word, uint64_t head) {
    const dp_short_texts *shorts = &f->trim->shorts;
    const dp_trim_text *text = &f->text;
    const wanted_head wanted = {shorts, head};
    uint64_t first = dp_hashmap_find_if(&shorts->first, head, is_wanted, &wanted);
    for (size_t i = first ? (size_t)first - 1 : shorts->count; i < shorts->count; i = shorts->text[i].end) {
        const dp_short_text *group = &shorts->text[i];
        if (group->head != head || word + group->words > text->count)
            break;
        uint32_t from = text->starts[word], to = text->starts[word + group->words];
        uint64_t hash[2];
        dp_trim_hash(&f->trim->settings, text->text.data + from, to - from, hash);
        const dp_short_text *found = find_short(shorts, i, group->end, hash);
        if (found)
            DP_TRY(dp_trim_adder_add(&f->marks, (uint64_t[2]){document << 32 | word, (uint64_t)found->document << 32}));
        f->shorts += found != NULL;
    }
    return DOPPEL_OK;
}

static doppel_status find_shorts(window_finder *f, uint64_t document) {
    const dp_short_texts *shorts = &f->trim->shorts;
    dp_sampler *sampler = &f->sampler;
    size_t head = head_words(f->trim), count = (size_t)f->text.count;
    if (!shorts->count || count < head)
        return DOPPEL_OK;
    size_t heads = count - head + 1;
    if (!dp_reserve(&sampler->grams, &sampler->gram_room, heads, sizeof *sampler->grams))
        return DOPPEL_ERROR_MEMORY;
    dp_grams_make(f->text.hashes, heads, head, sampler->grams);
    for (size_t i = 0; i < heads; i++)
        if (filter_has(&shorts->heads, sampler->grams[i]))
            DP_TRY(find_shorts_at(f, document, i, sampler->grams[i]));
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
    trim->documents.check[number] = dp_trim_text_check(page.text);
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
    return find_passages(f, number);
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

/* How many rounds there have to be. */
static uint64_t count_rounds(const doppel_trim *trim) {
    /* With `against`: those of the inputs, and as many of the others that they repeat. */
    double windows = 2 * (double)trim->repeated_windows, room = round_room(trim);
    if (!trim->settings.options.against_count)
        windows = windows_a_sample(trim) * (double)trim->repeated_samples;
    return trim->settings.passages && WINDOW_BYTES * windows > room ? (uint64_t)(WINDOW_BYTES * windows / room) + 1 : 1;
}

static doppel_status find_round(window_search *search, doppel_error *error) {
    doppel_trim *trim = search->trim;
    const dp_trim_settings *s = &trim->settings;
    dp_trim_parts_open(&search->windows, trim, 3, 0x1p64, s->memory / 2);
    doppel_status status = read_windows(search, true, error);
    if (status == DOPPEL_OK && !search->round && !prepare_shorts(&trim->shorts, s->memory))
        status = dp_no_memory(error);
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

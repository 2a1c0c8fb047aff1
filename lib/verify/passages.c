/* passages.c - the matching passages of two texts, for showing: common runs of words, the longest first.
 *
 * Of all common runs the longest is taken, of equal ones the first in A and then in B; its words are used up. A run
 * that has lost words to an earlier one is split into the remaining parts, which are queued again by their length
 * (greedy string tiling). So every passage is the longest one available at its turn. */
#include "kernel/kernel.h"
#include "sketch/sketch.h"
#include "verify/marks.h"
#include "verify/verify.h"

#include <stdlib.h>

/* ---- the words of two texts, numbered ---- */

/* Two texts as numbers: equal words, equal numbers. */
typedef struct word_ids {
    uint32_t *a, *b;
    size_t a_count, b_count;
} word_ids;

struct text_word {
    const uint8_t *bytes;
    uint32_t length;
};

struct numbering {
    dp_hashmap map;          /* from the hash of a word to its number + 1 */
    struct text_word *words; /* by number */
    uint32_t count;
};

/* What a word is compared with: those that have numbers. */
struct word_lookup {
    const struct text_word *words;
    struct text_word word;
};

static bool same_word(const void *user, uint64_t value) {
    const struct word_lookup *c = user;
    const struct text_word *other = &c->words[value - 1];
    return other->length == c->word.length && !memcmp(other->bytes, c->word.bytes, other->length);
}

/* There is room for all words. */
static uint32_t number_of(struct numbering *numbering, struct text_word word) {
    struct word_lookup c = {numbering->words, word};
    uint64_t *value = dp_hashmap_add_if(&numbering->map, dp_hash_word(word.bytes, word.length), same_word, &c);
    if (!*value) {
        numbering->words[numbering->count++] = word;
        *value = numbering->count;
    }
    return (uint32_t)*value - 1;
}

static void number_all(struct numbering *numbering, const dp_word_list *list, uint32_t *ids) {
    for (size_t i = 0; i < list->count; i++) {
        uint32_t start = list->starts[i], length = list->starts[i + 1] - 1 - start;
        ids[i] = number_of(numbering, (struct text_word){(const uint8_t *)list->text.data + start, length});
    }
}

static bool word_ids_init(word_ids *ids, const dp_word_list *a, const dp_word_list *b) {
    size_t all = a->count + b->count;
    struct numbering numbering = {.words = malloc((all + 1) * sizeof *numbering.words)};
    bool reserved = dp_hashmap_reserve(&numbering.map, all);
    *ids = (word_ids){.a_count = a->count, .b_count = b->count};
    ids->a = malloc((a->count + 1) * sizeof *ids->a);
    ids->b = malloc((b->count + 1) * sizeof *ids->b);
    bool done = reserved && numbering.words && ids->a && ids->b;
    if (done) {
        number_all(&numbering, a, ids->a);
        number_all(&numbering, b, ids->b);
    }
    dp_hashmap_free(&numbering.map);
    free(numbering.words);
    return done;
}

static void word_ids_free(word_ids *ids) {
    free(ids->a);
    free(ids->b);
}

/* ---- common runs of words, found through an index of the second text's runs of min_words words.
 *
 * Every run of min_words words has a hash, taken from prefix sums (Karp and Rabin), and a list of the places in B where
 * it stands. For each word of A the list of its run is walked; a place where the words before differ too is the
 * beginning of a run that cannot be made longer to the left, and halving finds its end. Lists are walked to CHAIN
 * places only, so that texts that repeat themselves cost no more than CHAIN steps a word. */

/* Places of one run that are looked at. A run of five words or more that occurs in a text more often is a table or a
 * list; with 16, a million equal words take a second or two. */
#define CHAIN 16

/* Runs that begin at one word and are kept. */
#define KEPT 4

/* Ends closer than this are found word by word, without hashes. */
#define NEAR 32

#define NONE UINT32_MAX

/* Hashes of runs are polynomials modulo the prime 2^61 - 1: products of two 61-bit numbers fit 128 bits, and the
 * remainder is two
 * folds. */
#define PRIME (((uint64_t)1 << 61) - 1)
#define BASE 0x12E15E35B500F16Eu

__extension__ typedef unsigned __int128 uint128;

static uint64_t times(uint64_t a, uint64_t b) {
    uint128 product = (uint128)a * b;
    uint64_t sum = (uint64_t)(product & PRIME) + (uint64_t)(product >> 61);
    return sum >= PRIME ? sum - PRIME : sum;
}

/* `length` words that are the same from word a of the one text and word b of the other on. */
typedef struct common_run {
    uint32_t length, a, b;
} common_run;

typedef struct common_runs {
    common_run *runs;
    size_t count, capacity;
} common_runs;

/* A run of min_words words of B: its last place, how many there are, and where a walk of the list begins. */
struct place {
    uint32_t last, count, begin;
};

struct finder {
    const word_ids *ids;
    size_t min_words;
    uint64_t *sums_a, *sums_b; /* of the words before each one */
    uint64_t *powers;          /* of BASE */
    dp_hashmap map;            /* from the hash of a run of min_words words of B to its number + 1 */
    struct place *places;      /* by number */
    uint32_t *next;            /* the next place in B with the same run */
};

static uint64_t *sum_words(const uint32_t *ids, size_t count) {
    uint64_t *sums = malloc((count + 1) * sizeof *sums);
    if (!sums)
        return NULL;
    sums[0] = 0;
    for (size_t i = 0; i < count; i++)
        sums[i + 1] = (times(sums[i], BASE % PRIME) + ids[i] + 1) % PRIME;
    return sums;
}

static uint64_t *raise_base(size_t count) {
    uint64_t *powers = malloc((count + 1) * sizeof *powers);
    if (!powers)
        return NULL;
    powers[0] = 1;
    for (size_t i = 0; i < count; i++)
        powers[i + 1] = times(powers[i], BASE % PRIME);
    return powers;
}

static uint64_t hash_run(const struct finder *finder, const uint64_t *sums, size_t at, size_t length) {
    uint64_t before = times(sums[at], finder->powers[length]);
    return sums[at + length] >= before ? sums[at + length] - before : sums[at + length] + PRIME - before;
}

/* How many words are the same from a and b on, or before them. */
static size_t common(const struct finder *finder, size_t a, size_t b, bool before) {
    const word_ids *ids = finder->ids;
    size_t left_a = before ? a : ids->a_count - a, left_b = before ? b : ids->b_count - b;
    size_t most = left_a < left_b ? left_a : left_b, low = 0;
    while (low < most && low < NEAR &&
           (before ? ids->a[a - low - 1] == ids->b[b - low - 1] : ids->a[a + low] == ids->b[b + low]))
        low++;
    if (low < NEAR || low == most)
        return low;
    for (size_t high = most; low < high;) {
        size_t middle = high - (high - low) / 2, back = before ? middle : 0;
        if (hash_run(finder, finder->sums_a, a - back, middle) == hash_run(finder, finder->sums_b, b - back, middle))
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Fills the map, which has room for all runs. */
static void index_b(struct finder *finder) {
    for (size_t b = 0; b + finder->min_words <= finder->ids->b_count; b++) {
        uint64_t *number = dp_hashmap_add(&finder->map, hash_run(finder, finder->sums_b, b, finder->min_words));
        bool is_new = !*number;
        if (is_new)
            *number = finder->map.count;
        struct place *place = &finder->places[*number - 1];
        finder->next[b] = NONE;
        if (is_new)
            *place = (struct place){.begin = (uint32_t)b};
        else
            finder->next[place->last] = (uint32_t)b;
        place->last = (uint32_t)b;
        place->count++;
    }
}

static bool finder_init(struct finder *finder) {
    size_t a_count = finder->ids->a_count, b_count = finder->ids->b_count;
    finder->sums_a = sum_words(finder->ids->a, a_count);
    finder->sums_b = sum_words(finder->ids->b, b_count);
    finder->powers = raise_base(a_count > b_count ? a_count : b_count);
    finder->places = malloc(b_count * sizeof *finder->places);
    finder->next = malloc(b_count * sizeof *finder->next);
    if (!finder->sums_a || !finder->sums_b || !finder->powers || !finder->places || !finder->next ||
        !dp_hashmap_reserve(&finder->map, b_count))
        return false;
    index_b(finder);
    return true;
}

static void finder_free(struct finder *finder) {
    free(finder->sums_a);
    free(finder->sums_b);
    free(finder->powers);
    dp_hashmap_free(&finder->map);
    free(finder->places);
    free(finder->next);
}

/* The longest runs that begin at one word, in the order they were found. */
struct best {
    common_run runs[KEPT];
    size_t count, most;
};

static void keep_best(struct best *best, common_run run) {
    size_t shortest = 0;
    if (best->count < best->most) {
        best->runs[best->count++] = run;
        return;
    }
    for (size_t i = 1; i < best->count; i++)
        if (best->runs[i].length <= best->runs[shortest].length)
            shortest = i;
    if (run.length <= best->runs[shortest].length)
        return;
    for (size_t i = shortest; i + 1 < best->count; i++)
        best->runs[i] = best->runs[i + 1];
    best->runs[best->count - 1] = run;
}

/* The runs that begin at word a. Where the words before are the same too, the run was found from there, unless that
 * word's list is long and not all of it was seen (*seen): then this one, if it is short, makes good for it. */
static struct best best_at(struct finder *finder, size_t a, bool *seen) {
    const word_ids *ids = finder->ids;
    uint64_t number = dp_hashmap_find(&finder->map, hash_run(finder, finder->sums_a, a, finder->min_words));
    struct place *place = number ? &finder->places[number - 1] : NULL;
    bool seen_before = *seen, all = *seen = !place || place->count <= CHAIN;
    struct best best = {.most = all ? KEPT : 1};
    uint32_t b = place ? place->begin : NONE;
    if (!all && finder->next[b] != NONE)
        place->begin = finder->next[b];
    for (size_t places = 0; b != NONE && places < CHAIN; b = finder->next[b], places++) {
        bool longer = a && b && ids->a[a - 1] == ids->b[b - 1];
        if (longer && (seen_before || !all))
            continue;
        size_t before = longer ? common(finder, a, b, true) : 0, length = common(finder, a, b, false) + before;
        if (length >= finder->min_words)
            keep_best(&best, (common_run){(uint32_t)length, (uint32_t)(a - before), (uint32_t)(b - before)});
    }
    return best;
}

/* The common runs of at least `min_words` words (1 or more), none of which can be made longer, in order of a and then b
 * (or nearly so, where texts repeat themselves); of those that begin at one word, the longest few. Whether runs longer
 * than a few words are the same is judged by their hash: compare before use. False when out of memory. */
static bool find_common_runs(const word_ids *ids, size_t min_words, common_runs *runs) {
    *runs = (common_runs){0};
    if (min_words > ids->a_count || min_words > ids->b_count)
        return true;
    struct finder finder = {.ids = ids, .min_words = min_words};
    bool done = finder_init(&finder), seen = true;
    for (size_t a = 0; done && a + min_words <= ids->a_count; a++) {
        struct best best = best_at(&finder, a, &seen);
        done = dp_reserve(&runs->runs, &runs->capacity, runs->count + best.count, sizeof *runs->runs);
        if (done && best.count)
            memcpy(runs->runs + runs->count, best.runs, best.count * sizeof *runs->runs);
        runs->count += done ? best.count : 0;
    }
    finder_free(&finder);
    return done;
}

/* ---- tiling: the longest runs first, each word once ---- */

/* The words of one text: which are spent, and which are not. */
struct tiled_words {
    dp_marks spent, left;
};

struct tiling {
    const word_ids *ids;
    size_t min_words, budget;
    struct tiled_words a, b;
    common_runs found; /* all of them */
    uint64_t *order;   /* of those found: length, longest first, and place */
    common_runs queue; /* of parts: a heap, the longest on top */
    common_runs taken;
};

static bool goes_first(const common_run *x, const common_run *y) {
    if (x->length != y->length)
        return x->length > y->length;
    return x->a != y->a ? x->a < y->a : x->b < y->b;
}

static void sift_down(common_runs *queue, size_t at) {
    for (;;) {
        size_t best = at, child = 2 * at + 1;
        for (size_t i = child; i < child + 2 && i < queue->count; i++)
            if (goes_first(&queue->runs[i], &queue->runs[best]))
                best = i;
        if (best == at)
            return;
        common_run swap = queue->runs[at];
        queue->runs[at] = queue->runs[best];
        queue->runs[best] = swap;
        at = best;
    }
}

static common_run pop(common_runs *queue) {
    common_run top = queue->runs[0];
    queue->runs[0] = queue->runs[--queue->count];
    sift_down(queue, 0);
    return top;
}

static bool append(common_runs *runs, common_run run) {
    if (!dp_reserve(&runs->runs, &runs->capacity, runs->count + 1, sizeof *runs->runs))
        return false;
    runs->runs[runs->count++] = run;
    return true;
}

static bool push(common_runs *queue, common_run run) {
    if (!append(queue, run))
        return false;
    for (size_t at = queue->count - 1; at;) {
        size_t parent = (at - 1) / 2;
        if (!goes_first(&queue->runs[at], &queue->runs[parent]))
            break;
        common_run swap = queue->runs[at];
        queue->runs[at] = queue->runs[parent];
        queue->runs[parent] = swap;
        at = parent;
    }
    return true;
}

/* The next part of a run, from its word *at on, that is left on both sides. False when there is none. */
static bool next_part(const struct tiling *tiling, common_run run, size_t *at, common_run *part) {
    size_t begin = *at, end;
    for (size_t from = SIZE_MAX; from != begin && begin < run.length;) {
        from = begin;
        begin = dp_marks_next(&tiling->a.left, run.a + begin) - run.a;
        begin = begin < run.length ? dp_marks_next(&tiling->b.left, run.b + begin) - run.b : begin;
    }
    if (begin >= run.length)
        return false;
    size_t end_a = dp_marks_next(&tiling->a.spent, run.a + begin) - run.a;
    size_t end_b = dp_marks_next(&tiling->b.spent, run.b + begin) - run.b;
    end = end_a < end_b ? end_a : end_b;
    end = end < run.length ? end : run.length;
    *part = (common_run){(uint32_t)(end - begin), run.a + (uint32_t)begin, run.b + (uint32_t)begin};
    *at = end;
    return true;
}

static void spend(struct tiled_words *side, size_t start, size_t count) {
    for (size_t i = start; i < start + count; i++) {
        dp_marks_add(&side->spent, i);
        dp_marks_remove(&side->left, i);
    }
}

/* The hashes said the words are the same; here they are compared. */
static uint32_t really_common(const word_ids *ids, common_run run) {
    uint32_t same = 0;
    while (same < run.length && ids->a[run.a + same] == ids->b[run.b + same])
        same++;
    return same;
}

static bool take(struct tiling *tiling, common_run run) {
    uint32_t same = really_common(tiling->ids, run);
    if (same < run.length) {
        run.length = same;
        return same < tiling->min_words || push(&tiling->queue, run);
    }
    spend(&tiling->a, run.a, run.length);
    spend(&tiling->b, run.b, run.length);
    return append(&tiling->taken, run);
}

/* Takes the run if it is whole, else queues its parts. Parts are looked for within a budget of steps, which only texts
 * made for it use up; then runs that are not whole are dropped. */
static bool take_or_split(struct tiling *tiling, common_run run) {
    size_t at = 0;
    common_run part;
    while (next_part(tiling, run, &at, &part)) {
        if (part.length == run.length)
            return take(tiling, run);
        if (!tiling->budget)
            return true;
        tiling->budget--;
        if (part.length >= tiling->min_words && !push(&tiling->queue, part))
            return false;
    }
    return true;
}

/* Sorts the runs that were found by length, equal ones as they were found. */
static bool order_runs(struct tiling *tiling) {
    size_t count = tiling->found.count;
    uint64_t *scratch = malloc((count + 1) * sizeof *scratch);
    tiling->order = malloc((count + 1) * sizeof *tiling->order);
    bool done = scratch && tiling->order && count <= UINT32_MAX;
    if (done) {
        for (size_t i = 0; i < count; i++)
            tiling->order[i] = (uint64_t)(UINT32_MAX - tiling->found.runs[i].length) << 32 | i;
        dp_sort64(tiling->order, count, scratch);
    }
    free(scratch);
    return done;
}

static bool tile(struct tiling *tiling) {
    size_t a_count = tiling->ids->a_count, b_count = tiling->ids->b_count, next = 0;
    if (!find_common_runs(tiling->ids, tiling->min_words, &tiling->found) || !order_runs(tiling) ||
        !dp_marks_init(&tiling->a.spent, a_count, false) || !dp_marks_init(&tiling->a.left, a_count, true) ||
        !dp_marks_init(&tiling->b.spent, b_count, false) || !dp_marks_init(&tiling->b.left, b_count, true))
        return false;
    tiling->budget = 16 * (a_count + b_count);
    while (next < tiling->found.count || tiling->queue.count) {
        const common_run *run = NULL, *part = tiling->queue.count ? tiling->queue.runs : NULL;
        if (next < tiling->found.count)
            run = &tiling->found.runs[(uint32_t)tiling->order[next]];
        bool take_part = !run || (part && goes_first(part, run));
        next += !take_part;
        if (!take_or_split(tiling, take_part ? pop(&tiling->queue) : *run))
            return false;
    }
    return true;
}

static void tiling_free(struct tiling *tiling) {
    dp_marks_free(&tiling->a.spent);
    dp_marks_free(&tiling->a.left);
    dp_marks_free(&tiling->b.spent);
    dp_marks_free(&tiling->b.left);
    free(tiling->found.runs);
    free(tiling->order);
    free(tiling->queue.runs);
    free(tiling->taken.runs);
}

/* ---- back to bytes ---- */

static int by_place_in_a(const void *x, const void *y) {
    const doppel_passage *a = x, *b = y;
    return a->a_start < b->a_start ? -1 : a->a_start > b->a_start;
}

static doppel_status give(const struct tiling *tiling, const uint64_t *ranges_a, const uint64_t *ranges_b,
                          doppel_passage **passages, size_t *count) {
    size_t taken = tiling->taken.count;
    if (!taken)
        return DOPPEL_OK;
    doppel_passage *list = malloc(taken * sizeof *list);
    if (!list)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < taken; i++) {
        common_run run = tiling->taken.runs[i];
        size_t last_a = (size_t)run.a + run.length - 1, last_b = (size_t)run.b + run.length - 1;
        list[i] = (doppel_passage){.a_start = ranges_a[2 * (size_t)run.a],
                                   .a_end = ranges_a[2 * last_a + 1],
                                   .b_start = ranges_b[2 * (size_t)run.b],
                                   .b_end = ranges_b[2 * last_b + 1],
                                   .words = run.length};
    }
    qsort(list, taken, sizeof *list, by_place_in_a);
    *passages = list;
    *count = taken;
    return DOPPEL_OK;
}

static doppel_status match(const dp_word_list *a, const dp_word_list *b, size_t min_words, doppel_passages *passages) {
    word_ids ids;
    struct tiling tiling = {.ids = &ids, .min_words = min_words};
    doppel_status status = DOPPEL_ERROR_MEMORY;
    if (word_ids_init(&ids, a, b) && tile(&tiling))
        status = give(&tiling, a->ranges, b->ranges, &passages->passage, &passages->count);
    tiling_free(&tiling);
    word_ids_free(&ids);
    return status;
}

void doppel_passages_free(doppel_passages *passages) {
    if (!passages)
        return;
    free(passages->passage);
    *passages = (doppel_passages){0};
}

doppel_status doppel_passages_find(const doppel_recipe *recipe, doppel_slice a, doppel_slice b, size_t min_words,
                                   doppel_passages *passages) {
    doppel_passages_free(passages);
    if (!min_words)
        return DOPPEL_ERROR_USAGE;
    /* Words, even where the recipe's features are code points: such is a list. */
    const dp_words_options *options = &(recipe ? recipe : dp_recipe_default())->text;
    dp_word_list words_a = {0}, words_b = {0};
    doppel_status status = dp_word_list_make(options, a.data, a.length, &words_a);
    DP_THEN(status, dp_word_list_make(options, b.data, b.length, &words_b));
    DP_THEN(status, match(&words_a, &words_b, min_words, passages));
    dp_word_list_free(&words_a);
    dp_word_list_free(&words_b);
    return status;
}

/* planted.c - invents documents with copies planted among them, and the truth about these.
 *
 *     planted COUNT GROUPED LOW SEED DOCUMENTS TRUTH
 *
 * Writes COUNT records `{"id","text"}` to DOCUMENTS. Of these, GROUPED stand in groups of four: a text and three edited
 * copies of it. The texts are invented words of several scripts, drawn by Zipf's law. Each copy has a similarity of its
 * own to reach, anywhere between LOW and 1, and is edited (words changed, left out, put in, sentences moved, text cut
 * off or added at an end) as long as the similarity of the real shingle sets stays at or above it. TRUTH gets `a b
 * shared union distance` for the six pairs of each group, measured on the sets that the library makes of the texts. All
 * other pairs share no more than a few common words.
 *
 * Everything is a function of SEED and of a document's number. Members of a group are far from each other in the file.
 */
#include "doppel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 4, MOST_WORDS = 1200, VOCABULARY = 40000, MOST_BYTES = MOST_WORDS * 40 };

static void fail(const char *what) {
    fprintf(stderr, "planted: %s\n", what);
    exit(2);
}

/* ---- random numbers ---- */

static uint64_t next(uint64_t *state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state) {
    return (double)(next(state) >> 11) * 0x1p-53;
}

static size_t below(uint64_t *state, size_t limit) {
    return (size_t)(uniform(state) * (double)limit);
}

/* ---- words ---- */

/* Scripts: where their letters begin, how many there are, and how long a word is at most. */
static const struct {
    uint32_t first, letters, longest;
} scripts[] = {{'a', 26, 10}, {'a', 26, 10}, {'a', 26, 10}, {0x430, 32, 10}, {0x5D0, 27, 6}, {0x4E00, 3000, 1}};

/* The rank of a word: Zipf's law with exponent 1, by its integral. */
static uint32_t draw_word(uint64_t *state) {
    return (uint32_t)exp(uniform(state) * log(VOCABULARY));
}

static size_t put_letter(char *to, uint32_t c) {
    if (c < 0x80)
        return to[0] = (char)c, 1;
    if (c < 0x800)
        return to[0] = (char)(0xC0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    to[0] = (char)(0xE0 | c >> 12);
    to[1] = (char)(0x80 | (c >> 6 & 63));
    to[2] = (char)(0x80 | (c & 63));
    return 3;
}

static size_t put_word(char *to, uint32_t word, size_t script) {
    uint64_t state = word * 977 + script;
    size_t length = 1 + below(&state, scripts[script].longest), at = 0;
    for (size_t i = 0; i < length; i++)
        at += put_letter(to + at, scripts[script].first + (uint32_t)below(&state, scripts[script].letters));
    return at;
}

/* ---- texts ---- */

typedef struct text {
    size_t script, count;
    uint32_t word[MOST_WORDS];
} text;

/* Between 40 and 400 words, short texts more often. */
static void draw_text(text *t, uint64_t *state) {
    t->script = below(state, sizeof scripts / sizeof *scripts);
    t->count = (size_t)(40 * exp(uniform(state) * log(10)));
    for (size_t i = 0; i < t->count; i++)
        t->word[i] = draw_word(state);
}

static size_t print_text(const text *t, char *to) {
    size_t at = 0;
    for (size_t i = 0; i < t->count; i++) {
        at += put_word(to + at, t->word[i], t->script);
        to[at++] = i % 17 == 16 ? '.' : ' ';
        if (i % 17 == 16)
            to[at++] = ' ';
    }
    return at;
}

static void put_in(text *t, size_t at, uint32_t word) {
    if (t->count == MOST_WORDS)
        return;
    memmove(t->word + at + 1, t->word + at, (t->count - at) * sizeof *t->word);
    t->word[at] = word;
    t->count++;
}

static void leave_out(text *t, size_t at, size_t count) {
    memmove(t->word + at, t->word + at + count, (t->count - at - count) * sizeof *t->word);
    t->count -= count;
}

/* Swaps a run of words with the one behind it. */
static void move_run(text *t, uint64_t *state) {
    size_t length = 4 + below(state, 12);
    if (t->count < 2 * length)
        return;
    size_t at = below(state, t->count - 2 * length + 1);
    for (size_t i = at; i < at + length; i++) {
        uint32_t word = t->word[i];
        t->word[i] = t->word[i + length];
        t->word[i + length] = word;
    }
}

/* One edit of a kind: 0 to 2 change, leave out, put in a word; 3 moves a run; 4 and 5 shorten and lengthen the end. */
static void edit(text *t, int kind, uint64_t *state) {
    size_t at = below(state, t->count);
    if (kind == 0)
        t->word[at] = draw_word(state);
    else if (kind == 1 && t->count > 10)
        leave_out(t, at, 1);
    else if (kind == 2)
        put_in(t, at, draw_word(state));
    else if (kind == 3)
        move_run(t, state);
    else if (kind == 4 && t->count > 10)
        leave_out(t, t->count - 1, 1);
    else if (kind == 5)
        put_in(t, t->count, draw_word(state));
}

/* ---- sets and groups ---- */

typedef struct sketched {
    uint64_t set[MOST_WORDS];
    size_t count;
    uint64_t fingerprint;
} sketched;

static doppel_sketcher *sketcher;
static char buffer[MOST_BYTES];

static void sketch(const text *t, sketched *out) {
    doppel_sketch made;
    if (doppel_sketcher_run(sketcher, (doppel_slice){buffer, print_text(t, buffer)}, &made) != DOPPEL_OK)
        fail("no memory");
    memcpy(out->set, made.set, made.set_count * sizeof *out->set);
    out->count = made.set_count;
    out->fingerprint = made.fingerprint[0];
}

static size_t shared_by(const sketched *a, const sketched *b) {
    size_t i = 0, j = 0, shared = 0;
    while (i < a->count && j < b->count) {
        uint64_t x = a->set[i], y = b->set[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

static double similarity(const sketched *a, const sketched *b) {
    double shared = (double)shared_by(a, b);
    return shared / ((double)(a->count + b->count) - shared);
}

/* Edits a copy for as long as it stays similar enough: by one kind of edit, or all kinds, and in the end by the words
 * at its end, which change the similarity least. */
static void make_copy(const text *original, text *copy, double low, uint64_t *state) {
    static text tried;
    static sketched first, now;
    double goal = low + (1 - low) * uniform(state);
    int kinds = (int)below(state, 7), end = 4 + (int)below(state, 2);
    *copy = *original;
    sketch(original, &first);
    for (int misses = 0; misses < 6;) {
        int kind = misses > 3 ? end : kinds == 6 ? (int)below(state, 6) : kinds;
        tried = *copy;
        edit(&tried, kind, state);
        sketch(&tried, &now);
        bool changed = tried.count != copy->count || memcmp(tried.word, copy->word, tried.count * sizeof *tried.word);
        if (changed && similarity(&first, &now) >= goal && tried.count < MOST_WORDS)
            *copy = tried;
        else
            misses++;
    }
}

typedef struct plan {
    uint64_t count, grouped, seed;
    double low;
    uint32_t **kept; /* of each member of a group: script, count, words */
} plan;

static void keep(const text *t, uint32_t **kept) {
    if (!(*kept = malloc((t->count + 2) * sizeof **kept)))
        fail("no memory");
    (*kept)[0] = (uint32_t)t->script;
    (*kept)[1] = (uint32_t)t->count;
    memcpy(*kept + 2, t->word, t->count * sizeof **kept);
}

static void get(const uint32_t *kept, text *t) {
    t->script = kept[0];
    t->count = kept[1];
    memcpy(t->word, kept + 2, t->count * sizeof *kept);
}

static void make_group(plan *p, uint64_t group) {
    static text original, copy;
    uint64_t state = p->seed * 0x9E3779B9u + group * 0xD1B54A32D192ED03u;
    draw_text(&original, &state);
    keep(&original, &p->kept[group * MEMBERS]);
    for (int m = 1; m < MEMBERS; m++) {
        make_copy(&original, &copy, p->low, &state);
        keep(&copy, &p->kept[group * MEMBERS + (unsigned)m]);
    }
}

/* ---- the files ---- */

static void write_document(FILE *file, const plan *p, uint64_t number) {
    static text t;
    uint64_t state = p->seed * 0x9E3779B9u + number * 0xA0761D6478BD642Fu + 1;
    if (number < p->grouped)
        get(p->kept[number], &t);
    else
        draw_text(&t, &state);
    size_t length = print_text(&t, buffer);
    fprintf(file, "{\"id\":\"%llu\",\"text\":\"", (unsigned long long)number);
    fwrite(buffer, 1, length, file);
    fputs("\"}\n", file);
}

static void write_truth(FILE *file, const plan *p, uint64_t first) {
    static text t;
    static sketched sets[MEMBERS];
    for (uint64_t m = 0; m < MEMBERS; m++) {
        get(p->kept[first + m], &t);
        sketch(&t, &sets[m]);
    }
    for (int a = 0; a < MEMBERS; a++)
        for (int b = a + 1; b < MEMBERS; b++) {
            size_t shared = shared_by(&sets[a], &sets[b]);
            fprintf(file, "%llu\t%llu\t%zu\t%zu\t%d\n", (unsigned long long)first + (unsigned)a,
                    (unsigned long long)first + (unsigned)b, shared, sets[a].count + sets[b].count - shared,
                    doppel_distance(sets[a].fingerprint, sets[b].fingerprint));
        }
}

static FILE *open_new(const char *path) {
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path);
    return file;
}

int main(int count, char **arguments) {
    if (count != 7)
        fail("usage: planted COUNT GROUPED LOW SEED DOCUMENTS TRUTH");
    plan p = {.count = strtoull(arguments[1], NULL, 10),
              .grouped = strtoull(arguments[2], NULL, 10) / MEMBERS * MEMBERS,
              .low = atof(arguments[3]),
              .seed = strtoull(arguments[4], NULL, 10)};
    doppel_recipe *recipe;
    if (p.grouped > p.count || !(p.kept = calloc(p.grouped + 1, sizeof *p.kept)) ||
        doppel_recipe_parse("page", NULL, &recipe, NULL) != DOPPEL_OK ||
        doppel_sketcher_create(recipe, DOPPEL_WANT_SET, &sketcher, NULL) != DOPPEL_OK)
        fail("GROUPED is more than COUNT, or no memory");
    FILE *documents = open_new(arguments[5]), *truth = open_new(arguments[6]);
    for (uint64_t group = 0; group < p.grouped / MEMBERS; group++)
        make_group(&p, group);
    /* A prime step visits every number once, and takes the members of a group apart. */
    for (uint64_t i = 0, number = 0; i < p.count; i++, number = (number + 982451653) % p.count)
        write_document(documents, &p, number);
    for (uint64_t first = 0; first < p.grouped; first += MEMBERS)
        write_truth(truth, &p, first);
    if (fclose(documents) || fclose(truth))
        fail("cannot write");
    for (uint64_t i = 0; i < p.grouped; i++)
        free(p.kept[i]);
    free(p.kept);
    doppel_sketcher_free(sketcher);
    doppel_recipe_free(recipe);
    return 0;
}

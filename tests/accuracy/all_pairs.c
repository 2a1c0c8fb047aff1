/* all_pairs.c - every pair of documents and their similarity, by comparing each with each: the truth that doppel's
 * methods are measured against.
 *
 *     all_pairs RECIPE CONTENT TEXT_KEY MIN SHARE NEAR INPUT...
 *
 * The documents and their shingles are those of the library (tests/reference checks them against another
 * implementation); what two sets share is counted here by a plain merge, without the library's kernels, bands or
 * buckets. CONTENT is main or all, TEXT_KEY the field with the text (one that no record has: the page is read), MIN the
 * least similarity that is printed. With SHARE above 0, shingles that more than max(8, SHARE * groups) groups have are
 * left out first; of each group the first document counts, which is one that is not NEAR any earlier such one.
 *
 * Prints, divided by tabs, `d words shingles fingerprint digest id` for each document, then `p i j shared union
 * distance` for each pair, i and j counting documents from 0. The id is a JSON string, the fingerprint and the first 8
 * bytes of the digest are in hexadecimal. */
#include "doppel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_WORDS = 5 };

typedef struct text {
    char *id; /* as JSON */
    uint64_t *set;
    size_t count, words;
    uint64_t fingerprint[2];
    uint8_t digest[32];
} text;

typedef struct corpus {
    doppel_content content;
    doppel_sketcher *sketcher;
    doppel_page_reader *reader;
    FILE *ids; /* while they are read */
    text *texts;
    size_t count, room;
} corpus;

static void fail(const char *what) {
    fprintf(stderr, "all_pairs: %s\n", what);
    exit(2);
}

static void *need(void *memory) {
    if (!memory)
        fail("no memory");
    return memory;
}

/* ---- reading ---- */

static doppel_status keep_sketch(corpus *c, const doppel_sketch *sketch) {
    if (c->count == c->room) {
        c->room = c->room ? 2 * c->room : 1024;
        c->texts = need(realloc(c->texts, c->room * sizeof *c->texts));
    }
    text *t = &c->texts[c->count++];
    memset(t, 0, sizeof *t);
    t->set = need(malloc((sketch->set_count + 1) * sizeof *t->set));
    if (sketch->set_count)
        memcpy(t->set, sketch->set, sketch->set_count * sizeof *t->set);
    t->count = sketch->set_count;
    t->words = sketch->words;
    memcpy(t->fingerprint, sketch->fingerprint, sizeof t->fingerprint);
    memcpy(t->digest, sketch->digest, sizeof t->digest);
    return DOPPEL_OK;
}

static doppel_status read_document(void *state, const doppel_document *document, doppel_output *output) {
    corpus *c = state;
    doppel_page page;
    doppel_sketch sketch;
    doppel_status status = doppel_document_text(c->reader, document, c->content, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(c->sketcher,
                                     (doppel_slice){page.text.data ? page.text.data : "", page.text.length}, &sketch);
    if (status == DOPPEL_OK)
        status = keep_sketch(c, &sketch);
    if (status == DOPPEL_OK)
        status = doppel_output_json(output, document->id);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("\n")) : status;
}

static doppel_status begin(void *user, void **state) {
    *state = user;
    return DOPPEL_OK;
}

/* The ids come in the order of the documents, a line each. */
static doppel_status take_ids(void *user, doppel_slice bytes) {
    corpus *c = user;
    return fwrite(bytes.data, 1, bytes.length, c->ids) == bytes.length ? DOPPEL_OK : DOPPEL_ERROR_IO;
}

static void read_corpus(corpus *c, const char *text_key, char **paths, int count) {
    doppel_error error = {0};
    doppel_input_counts counts;
    char *ids = NULL, *line;
    size_t length = 0;
    doppel_input_options options = {.size = sizeof options, .threads = 1, .strict = true, .text_key = text_key};
    doppel_work work = {.user = c, .begin = begin, .document = read_document, .emit = take_ids};
    c->ids = need(open_memstream(&ids, &length));
    if (doppel_input_run((const char *const *)paths, (size_t)count, &options, &work, &counts, &error) != DOPPEL_OK) {
        fprintf(stderr, "all_pairs: %s:%llu: %s\n", error.file, (unsigned long long)error.line, error.message);
        exit(2);
    }
    fclose(c->ids);
    line = strtok(ids, "\n");
    for (size_t i = 0; i < c->count; i++, line = strtok(NULL, "\n"))
        c->texts[i].id = need(line ? strdup(line) : NULL);
    free(ids);
}

/* ---- what is shared ---- */

static size_t shared_by(const text *a, const text *b) {
    size_t i = 0, j = 0, shared = 0;
    while (i < a->count && j < b->count) {
        uint64_t x = a->set[i], y = b->set[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

/* ---- boilerplate ---- */

static int compare_numbers(const void *x, const void *y) {
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

static bool is_near(const text *a, const text *b, double near) {
    if (a->words < MIN_WORDS || b->words < MIN_WORDS)
        return memcmp(a->digest, b->digest, sizeof a->digest) == 0;
    size_t shared = shared_by(a, b);
    return (double)shared >= near * (double)(a->count + b->count - shared);
}

/* The first documents of groups; gives how many there are. */
static size_t firsts_of_groups(const corpus *c, double near, const text **firsts) {
    size_t count = 0;
    for (size_t i = 0; i < c->count; i++) {
        bool first = c->texts[i].words >= MIN_WORDS;
        for (size_t k = 0; k < count && first; k++)
            first = !is_near(firsts[k], &c->texts[i], near);
        if (first)
            firsts[count++] = &c->texts[i];
    }
    return count;
}

/* All shingles of the groups, sorted: one that stands in k groups stands there k times. */
static uint64_t *all_shingles(const corpus *c, double near, size_t *count, size_t *groups) {
    const text **firsts = need(malloc((c->count + 1) * sizeof *firsts));
    size_t total = 0;
    *groups = firsts_of_groups(c, near, firsts);
    for (size_t i = 0; i < *groups; i++)
        total += firsts[i]->count;
    uint64_t *all = need(malloc((total + 1) * sizeof *all));
    *count = 0;
    for (size_t i = 0; i < *groups; i++) {
        memcpy(all + *count, firsts[i]->set, firsts[i]->count * sizeof *all);
        *count += firsts[i]->count;
    }
    free(firsts);
    qsort(all, *count, sizeof *all, compare_numbers);
    return all;
}

static void leave_out(text *t, const uint64_t *frequent, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < t->count; i++)
        if (!bsearch(&t->set[i], frequent, count, sizeof *frequent, compare_numbers))
            t->set[kept++] = t->set[i];
    t->count = kept;
}

static void leave_out_frequent(corpus *c, double share, double near) {
    size_t total, groups, frequent = 0;
    uint64_t *all = all_shingles(c, near, &total, &groups);
    double most = share * (double)groups < 8 ? 8 : share * (double)groups;
    for (size_t i = 0, next; i < total; i = next) {
        for (next = i + 1; next < total && all[next] == all[i];)
            next++;
        if ((double)(next - i) > most)
            all[frequent++] = all[i];
    }
    for (size_t i = 0; i < c->count; i++)
        leave_out(&c->texts[i], all, frequent);
    free(all);
}

/* ---- pairs ---- */

static void print_pair(const corpus *c, size_t i, size_t j, double min) {
    const text *a = &c->texts[i], *b = &c->texts[j];
    size_t less = a->count < b->count ? a->count : b->count, more = a->count + b->count - less;
    if (!less || (double)less < min * (double)more)
        return;
    size_t shared = shared_by(a, b), both = a->count + b->count - shared;
    int distance = __builtin_popcountll(a->fingerprint[0] ^ b->fingerprint[0]) +
                   __builtin_popcountll(a->fingerprint[1] ^ b->fingerprint[1]);
    if ((double)shared >= min * (double)both)
        printf("p\t%zu\t%zu\t%zu\t%zu\t%d\n", i, j, shared, both, distance);
}

static void print_all(const corpus *c, double min) {
    for (size_t i = 0; i < c->count; i++) {
        const text *t = &c->texts[i];
        printf("d\t%zu\t%zu\t%016" PRIx64 "%016" PRIx64 "\t", t->words, t->count, t->fingerprint[1], t->fingerprint[0]);
        for (size_t k = 0; k < 8; k++)
            printf("%02x", t->digest[k]);
        printf("\t%s\n", t->id);
    }
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = i + 1; j < c->count; j++)
            print_pair(c, i, j, min);
}

int main(int count, char **arguments) {
    corpus c = {0};
    doppel_error error = {0};
    doppel_recipe *recipe;
    if (count < 8 || (strcmp(arguments[2], "main") && strcmp(arguments[2], "all")))
        fail("usage: all_pairs RECIPE main|all TEXT_KEY MIN SHARE NEAR INPUT...");
    if (doppel_recipe_parse(arguments[1], NULL, &recipe, &error) != DOPPEL_OK)
        fail(error.message);
    if (doppel_sketcher_create(recipe, DOPPEL_WANT_SET | DOPPEL_WANT_DIGEST, &c.sketcher, &error) != DOPPEL_OK)
        fail(error.message);
    if (doppel_page_reader_create(&c.reader) != DOPPEL_OK)
        fail("no memory");
    c.content = strcmp(arguments[2], "all") == 0 ? DOPPEL_CONTENT_ALL : DOPPEL_CONTENT_MAIN;
    read_corpus(&c, arguments[3], arguments + 7, count - 7);
    if (atof(arguments[5]) > 0)
        leave_out_frequent(&c, atof(arguments[5]), atof(arguments[6]));
    print_all(&c, atof(arguments[4]));
    for (size_t i = 0; i < c.count; i++) {
        free(c.texts[i].id);
        free(c.texts[i].set);
    }
    free(c.texts);
    doppel_page_reader_free(c.reader);
    doppel_sketcher_free(c.sketcher);
    doppel_recipe_free(recipe);
    return 0;
}

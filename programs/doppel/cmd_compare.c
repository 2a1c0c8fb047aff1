/* cmd_compare.c - doppel compare A B: every measure on two documents, the passages they share, and how they differ.
 *
 * A and B are files, or the ids of documents of other files (--in) or of an index that keeps texts (--index). With a
 * list of removed documents (--removed), B is the one that A was removed for. */
#include "commands.h"
#include "common/message.h"
#include "common/stored_json.h"
#include "compared_pair.h"
#include "report/diff.h"
#include "report/pairs.h"
#include "shared/choices.h"
#include "shared/marked_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const cli_option compare_options[] = {
    {"in", 0, OPTION_FILES, "FILE", "A and B are ids or URLs of documents in this file or folder"},
    {"removed", 0, OPTION_FILE, "LIST",
     "with --in or --index and A alone: why was it removed? Compare it with its original, which this list names, "
     "written by doppel dedup --removed LIST"},
    {"index", 'i', OPTION_FILE, "DIR",
     "A and B are ids or URLs of documents in this index, which was made with --keep-text; they are measured by its "
     "recipe, unless --recipe names another"},
    STORE_OPTION,
    STORE_PASSWORD_OPTION,
    {"title-key", 0, OPTION_TEXT, "KEY",
     "with --removed: the field with a record's title (default title), shown where titles are the reason"},
    {"html", 0, OPTION_OUTPUT, "FILE",
     "also write an HTML page with the measures and the shared passages side by side; it needs no script and no "
     "network"},
    RECIPE_OPTIONS,
    {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"},
    CONTENT_OPTION,
    {"min-words", 0, OPTION_COUNT, "N", "show passages of at least N words (default 5)"},
    {"json", 0, OPTION_FLAG, NULL, "print one JSON object; passages are given by byte offsets"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* At most this many passages are shown, the longest. */
#define SHOWN 12

typedef struct comparison {
    compared_pair pair;
    loaded_recipe loaded;
    const doppel_recipe *recipe; /* of `loaded`, or of the index */
    doppel_comparison measures;
    doppel_passages passages;
    size_t min_words;
    writer html; /* with --html */
} comparison;

/* ---- lines for people ---- */

static void print_number(const char *name, double value, const char *unit) {
    if (isnan(value))
        printf("  %-13s       -\n", name);
    else
        printf("  %-13s %8.4f  %s\n", name, value, unit);
}

/* The id of a side, and its size. */
static void print_side(const comparison *c, bool is_b) {
    const char *units = strstr(doppel_recipe_text(c->recipe), ":chars=") ? "character" : "word";
    const compared_side *side = is_b ? &c->pair.b : &c->pair.a;
    uint64_t count = is_b ? c->measures.words_b : c->measures.words_a;
    uint64_t shingles = is_b ? c->measures.shingles_b : c->measures.shingles_a;
    printf("%c  ", is_b ? 'B' : 'A');
    print_safe(stdout, side->id, side->id_length);
    printf("\n   %llu %s%s, %llu distinct shingle%s\n", (unsigned long long)count, units, count == 1 ? "" : "s",
           (unsigned long long)shingles, shingles == 1 ? "" : "s");
}

/* A fingerprint is printed with as many digits as its width needs. */
static void print_fingerprint(const uint64_t fingerprint[2], int bits) {
    if (bits > 64)
        printf("%016llx", (unsigned long long)fingerprint[1]);
    printf("%0*llx", bits > 64 ? 16 : (bits + 3) / 4, (unsigned long long)fingerprint[0]);
}

static void print_fingerprints(const doppel_comparison *m) {
    printf("  fingerprints  ");
    print_fingerprint(m->fingerprint_a, m->bits);
    printf("\n                ");
    print_fingerprint(m->fingerprint_b, m->bits);
    if (m->distance < 0)
        printf("\n  distance            -\n");
    else
        printf("\n  distance      %8d  of %d bits differ\n", m->distance, m->bits);
}

static void print_edits(const doppel_comparison *m) {
    if (m->edit_distance < 0) {
        printf("  edit                -  not measured: the texts are too long and too different\n");
        return;
    }
    printf("  edit          %8.4f  %lld edit%s of characters; %lld without replacing\n", m->edit_similarity,
           (long long)m->edit_distance, m->edit_distance == 1 ? "" : "s", (long long)m->indel_distance);
}

static void print_measures(const doppel_comparison *m) {
    char shared[80];
    uint64_t all = m->shingles_a + m->shingles_b - m->shingles_shared;
    snprintf(shared, sizeof shared, "%llu of %llu distinct shingle%s %s in both",
             (unsigned long long)m->shingles_shared, (unsigned long long)all, all == 1 ? "" : "s",
             m->shingles_shared == 1 ? "is" : "are");
    print_fingerprints(m);
    print_number("similarity", m->similarity, shared);
    print_number("containment", m->containment_ab, "of A is in B");
    print_number("", m->containment_ba, "of B is in A");
    print_number("signature", m->signature_similarity, "similarity as estimated from 128 slots");
    print_number("cosine", m->cosine, "of the word counts");
    print_number("angle", m->angle, "degrees");
    print_number("euclidean", m->euclidean, "between the word counts");
    print_edits(m);
    printf("  digest        %s\n", m->same_digest             ? "same: the normalised words are equal"
                                   : m->words_a || m->words_b ? "differs"
                                                              : "none: there are no words");
}

static int by_words(const void *a, const void *b) {
    uint64_t left = ((const doppel_passage *)a)->words, right = ((const doppel_passage *)b)->words;
    return (left < right) - (left > right);
}

static int by_place(const void *a, const void *b) {
    uint64_t left = ((const doppel_passage *)a)->a_start, right = ((const doppel_passage *)b)->a_start;
    return (left > right) - (left < right);
}

/* Keeps the longest passages, in the order of A. */
static size_t keep_longest(doppel_passage *passages, size_t count) {
    qsort(passages, count, sizeof *passages, by_words);
    count = count < SHOWN ? count : SHOWN;
    qsort(passages, count, sizeof *passages, by_place);
    return count;
}

static void print_passages(const comparison *c) {
    bool colour = use_colour(stdout);
    uint64_t words = 0;
    for (size_t i = 0; i < c->passages.count; i++)
        words += c->passages.passage[i].words;
    const shared_pair pair = {.side = {{.words = c->measures.words_a}, {.words = c->measures.words_b}}, .words = words};
    printf("\n%zu shared passage%s of at least %zu word%s, %llu word%s in all", c->passages.count,
           c->passages.count == 1 ? "" : "s", c->min_words, c->min_words == 1 ? "" : "s", (unsigned long long)words,
           words == 1 ? "" : "s");
    if (c->passages.count) {
        char of_a[16], of_b[16];
        pair_percent(of_a, pair_share(&pair, 0));
        pair_percent(of_b, pair_share(&pair, 1));
        printf(": %s of A, %s of B%s", of_a, of_b, colour ? "; what is in none is in colour" : "");
    }
    printf("\n");
    if (!c->passages.count)
        return;
    size_t count = keep_longest(c->passages.passage, c->passages.count);
    if (count < c->passages.count)
        printf("(the longest %zu are marked below; --json lists all)\n", count);
    marked_text marked = {c->pair.a.text, c->pair.a.length, c->passages.passage, count, false};
    printf("\nA\n");
    marked_text_print(stdout, &marked, colour);
    marked = (marked_text){c->pair.b.text, c->pair.b.length, c->passages.passage, count, true};
    printf("\nB\n");
    marked_text_print(stdout, &marked, colour);
}

/* ---- how they differ ---- */

/* The text of a run of words, with what stands between them. */
static doppel_slice run_text(const diff_text *t, const diff_run *run) {
    size_t start = (size_t)t->ranges.range[run->first].start;
    return (doppel_slice){t->text + start, (size_t)t->ranges.range[run->first + run->count - 1].end - start};
}

static void print_run(const diff_text *t, const diff_run *run, bool colour) {
    doppel_slice text = run_text(t, run);
    bool is_new = run->kind == DIFF_ADDED;
    printf("%s  %c ", colour ? is_new ? "\033[32m" : "\033[31m" : "", is_new ? 'B' : 'A');
    marked_text_print_piece(stdout, text.data, text.length);
    printf("%s\n", colour ? "\033[0m" : "");
}

/* Says how many words only one of them has, and which, the first ones. */
static void print_runs(const diff_text *a, const diff_text *b, const diff *d) {
    size_t words[3] = {0}, shown = 0, all = 0;
    bool colour = use_colour(stdout);
    for (size_t i = 0; i < d->count; i++) {
        words[d->run[i].kind] += d->run[i].count;
        all += d->run[i].kind != DIFF_SAME;
    }
    if (!all || !words[DIFF_SAME])
        return;
    printf("\nDifferences: %zu word%s only in A, %zu only in B%s\n", words[DIFF_REMOVED],
           words[DIFF_REMOVED] == 1 ? "" : "s", words[DIFF_ADDED],
           d->unaligned ? "; the texts differ too much to show them" : "");
    for (size_t i = 0; i < d->count && shown < SHOWN && !d->unaligned; i++)
        if (d->run[i].kind != DIFF_SAME) {
            print_run(d->run[i].kind == DIFF_REMOVED ? a : b, &d->run[i], colour);
            shown++;
        }
    if (shown < all && !d->unaligned)
        printf("  and %zu more\n", all - shown);
}

static int print_differences(const comparison *c) {
    diff_text a = {0}, b = {0};
    diff d = {0};
    doppel_status status = diff_split(&a, c->pair.a.text, c->pair.a.length);
    if (status == DOPPEL_OK)
        status = diff_split(&b, c->pair.b.text, c->pair.b.length);
    if (status == DOPPEL_OK)
        status = diff_words(&a, &b, &d);
    if (status == DOPPEL_OK)
        print_runs(&a, &b, &d);
    else
        message("%s", doppel_status_name(status));
    diff_free(&d);
    diff_text_free(&a);
    diff_text_free(&b);
    return exit_code(status);
}

/* By which recipe an index measures, what decides there, and how these two are. */
static void print_basis(const comparison *c) {
    const doppel_engine_options *o = doppel_engine_get_options(c->pair.index.engine);
    const doppel_comparison *m = &c->measures;
    if (c->loaded.recipe) {
        printf("Measured by --recipe %s; %s measures by %s\n\n", doppel_recipe_text(c->recipe), c->pair.index.path,
               doppel_recipe_text(o->recipe));
        return;
    }
    printf("Measured by the recipe of %s, %s:\n", c->pair.index.path, doppel_recipe_text(c->recipe));
    if (m->same_digest)
        printf("the words are the same");
    else if (o->near == DOPPEL_NEAR_DISTANCE)
        printf("the fingerprints differ in %d bit%s; copies differ in at most %d", m->distance,
               m->distance == 1 ? "" : "s", o->distance);
    else
        printf("similarity %.4f; copies have at least %g%s", m->similarity, o->similarity,
               o->sample == DOPPEL_SAMPLE_ALL ? "" : ", which the index estimates");
    printf("\n\n");
}

/* "the titles are 100 % alike: "Storm at sea" / "Storm at sea!"; the texts are 51 % alike" */
static void put_reason(text_buffer *out, const comparison *c) {
    char alike[2][16];
    bool by_title = !strcmp(c->pair.reason, doppel_reason_name(DOPPEL_REASON_TITLE));
    bool by_url = !strcmp(c->pair.reason, doppel_reason_name(DOPPEL_REASON_URL));
    pair_percent(alike[0], c->pair.similarity);
    pair_percent(alike[1], c->measures.similarity);
    if (by_title) {
        text_format(out, "the titles are %s%salike", isnan(c->pair.similarity) ? "" : alike[0],
                    isnan(c->pair.similarity) ? "" : " ");
        for (size_t i = 0; i < 2 && c->pair.a.title && c->pair.b.title; i++) {
            const char *title = i ? c->pair.b.title : c->pair.a.title;
            text_put(out, i ? " / \"" : ": \"");
            text_safe(out, title, strlen(title));
            text_put(out, "\"");
        }
    } else if (by_url) {
        text_put(out, "the URLs are the same");
    } else if (strcmp(c->pair.reason, doppel_reason_name(DOPPEL_REASON_CONTENT)) != 0) {
        text_safe(out, c->pair.reason, strlen(c->pair.reason));
    } else if (c->measures.same_digest) {
        text_put(out, "the words are the same");
    } else {
        text_put(out, "similar content");
        if (!isnan(c->pair.similarity))
            text_format(out, ", similarity %.6g", c->pair.similarity);
    }
    if ((by_title || by_url) && !isnan(c->measures.similarity))
        text_format(out, "; the texts are %s alike", alike[1]);
}

static int print_lines(const comparison *c) {
    text_buffer reason = {0};
    if (c->pair.reason) {
        text_put(&reason, "A was removed for B: ");
        put_reason(&reason, c);
        text_put(&reason, "\n\n");
    }
    print_text(&reason, EXIT_DONE);
    if (c->pair.index.engine)
        print_basis(c);
    print_side(c, false);
    print_side(c, true);
    printf("\n");
    print_measures(&c->measures);
    print_passages(c);
    return print_differences(c);
}

/* ---- JSON ---- */

static void put_passages(text_buffer *out, const comparison *c) {
    text_member(out, "passages");
    text_put(out, "[");
    for (size_t i = 0; i < c->passages.count; i++) {
        const doppel_passage *p = &c->passages.passage[i];
        text_put(out, i ? ",{" : "{");
        text_member_count(out, "aStart", p->a_start);
        text_member_count(out, "aEnd", p->a_end);
        text_member_count(out, "bStart", p->b_start);
        text_member_count(out, "bEnd", p->b_end);
        text_member_count(out, "words", p->words);
        text_member_string(out, "text", (doppel_slice){c->pair.a.text + p->a_start, (size_t)(p->a_end - p->a_start)});
        text_put(out, "}");
    }
    text_put(out, "]");
}

static int print_object(const comparison *c) {
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "idA", (doppel_slice){c->pair.a.id, c->pair.a.id_length});
    text_compared_side(&out, &c->measures, false);
    text_member_string(&out, "idB", (doppel_slice){c->pair.b.id, c->pair.b.id_length});
    text_compared_side(&out, &c->measures, true);
    text_member_string(&out, "recipe", doppel_slice_of(doppel_recipe_text(c->recipe)));
    text_measures(&out, &c->measures);
    put_passages(&out, c);
    text_put(&out, "}\n");
    return finish_text(&out, EXIT_DONE);
}

/* ---- a page ---- */

static void write_measure(html *page, const char *name, double value) {
    if (isnan(value))
        return;
    html_row_begin(page, name);
    html_format(page, "%.4f", value);
    html_row_end(page);
}

static void write_words(html *page, const shared_side *side, uint64_t words) {
    html_put(page, "<tr><th scope=\"row\">Words of ");
    html_id(page, side->id, side->id_length, SHORT_ID);
    html_put(page, "</th><td>");
    html_number(page, words);
    html_row_end(page);
}

static void write_measures(html *page, const comparison *c, const shared_pair *pair) {
    const doppel_comparison *m = &c->measures;
    html_put(page, "<section><h2>Measures</h2>");
    html_table_begin(page,
                     "1 means equal, 0 nothing in common. Shingles are short pieces of a text, usually 5 words in "
                     "a row, and overlap each other");
    write_words(page, &pair->side[0], m->words_a);
    write_words(page, &pair->side[1], m->words_b);
    write_measure(page, "Similarity (Jaccard): shared shingles, of all shingles of both", m->similarity);
    write_measure(page, "Containment: shingles of the first that are in the second", m->containment_ab);
    write_measure(page, "Containment: shingles of the second that are in the first", m->containment_ba);
    write_measure(page, "Cosine of the word counts", m->cosine);
    write_measure(page, "Edit similarity of characters", m->edit_distance < 0 ? NAN : m->edit_similarity);
    if (m->distance >= 0) {
        html_row_begin(page, "Fingerprints");
        html_format(page, "%d of %d bits differ; of unrelated texts about half", m->distance, m->bits);
        html_row_end(page);
    }
    html_row_text(page, "Recipe", doppel_recipe_text(c->recipe));
    html_table_end(page);
    html_put(page, "</section>");
}

static shared_side page_side(const compared_side *side, uint64_t words) {
    return (shared_side){
        .id = side->id, .text = side->text, .id_length = side->id_length, .length = side->length, .words = words};
}

/* Where A and B come from, and the day. */
static void write_sources(html *page, const cli_args *args, const char *folder, size_t folder_length) {
    size_t count = 0;
    const char **in = args_text(args, "in") ? args_all(args, "in", &count) : NULL;
    const char *index = args_text(args, "index"); /* the address of a store may have a password */
    if (in)
        html_corpus(page, in[0], count);
    else
        html_corpus(page, index, index ? 1 : 0);
    if (folder_length) {
        html_put(page, ", both in <bdi>");
        html_text(page, folder, folder_length);
        html_put(page, "</bdi>");
    }
    free(in);
}

static int write_page(const cli_args *args, comparison *c) {
    html page = {.out = &c->html};
    shared_pair pair = {
        .side = {page_side(&c->pair.a, c->measures.words_a), page_side(&c->pair.b, c->measures.words_b)},
        .passages = c->passages.passage,
        .count = c->passages.count};
    pair_sum(&pair);
    size_t folder = pair_same_folder(&pair, c->pair.a.id, c->pair.a.id_length);
    pair_shorten_names(&pair, folder);
    pair_page_begin(&page);
    write_sources(&page, args, c->pair.a.id, folder);
    html_result(&page);
    pair_page_sentence(&page, &pair);
    html_format(&page, "</p><p class=\"soft\">Passages of at least %zu %s that both have are <mark>shaded</mark>.",
                c->min_words, c->min_words == 1 ? "word" : "words");
    html_contents(&page, NULL, 0);
    html_put(&page, "<h2>Shared passages</h2>");
    pair_page_pair(&page, &pair, 0);
    write_measures(&page, c, &pair);
    pair_page_end(&page, false);
    if (page.status != DOPPEL_OK)
        message("%s", doppel_status_name(page.status));
    return exit_code(page.status);
}

/* ---- the command ---- */

static int measure(comparison *c) {
    const doppel_recipe *recipe = c->recipe;
    doppel_status status = doppel_compare(recipe, (doppel_slice){c->pair.a.text, c->pair.a.length},
                                          (doppel_slice){c->pair.b.text, c->pair.b.length}, &c->measures);
    if (status == DOPPEL_OK)
        status = doppel_passages_find(recipe, (doppel_slice){c->pair.a.text, c->pair.a.length},
                                      (doppel_slice){c->pair.b.text, c->pair.b.length}, c->min_words, &c->passages);
    if (status != DOPPEL_OK)
        message("%s", doppel_status_name(status));
    return exit_code(status);
}

static int compare(const cli_args *args, comparison *c) {
    const char *path = args_text(args, "html");
    bool of_index = !args_text(args, "recipe") && (args_text(args, "index") || args_text(args, "store"));
    int code = of_index ? EXIT_DONE : load_recipe(args, args_text(args, "recipe"), &c->loaded);
    c->recipe = c->loaded.recipe;
    if (code == EXIT_DONE && path)
        code = writer_open(&c->html, path, output_threads(args));
    if (code == EXIT_DONE)
        code = compared_pair_read(args, &c->pair);
    if (code == EXIT_DONE && !c->recipe)
        c->recipe = doppel_engine_get_options(c->pair.index.engine)->recipe;
    if (code == EXIT_DONE)
        code = measure(c);
    if (code == EXIT_DONE && path)
        code = write_page(args, c);
    if (path)
        code = writer_close(&c->html, code);
    if (code != EXIT_DONE || (path && is_stdout(path)))
        return code;
    if (args_flag(args, "json"))
        return print_object(c);
    return finish_stdout(print_lines(c));
}

/* Prints a message and returns false unless A and B are given in one of the ways that cmd_compare accepts. */
static bool check_given(const cli_args *args) {
    bool from_index = args_text(args, "index") || args_text(args, "store"), in = args_text(args, "in");
    bool removed = args_text(args, "removed");
    if (in && from_index)
        message("give --in or --%s, not both", args_text(args, "index") ? "index" : "store");
    else if (removed && !in && !from_index)
        message("--removed needs --in FILE, the input that it was made of");
    else if (removed && args->operand_count != 1)
        message("compare with --removed takes one id, that of a removed document");
    else if (!removed && args->operand_count != 2)
        message("compare takes two documents, not 1; with --in FILE --removed LIST, the id of a removed one");
    else if (!in && !from_index && !strcmp(args->operands[0], "-") && !strcmp(args->operands[1], "-"))
        message("only one of the two can be stdin");
    else
        return true;
    return false;
}

int cmd_compare(const cli_args *args) {
    comparison c = {.pair = {.similarity = NAN}, .min_words = (size_t)args_number(args, "min-words", 5)};
    if (!c.min_words) {
        message("--min-words takes a number of at least 1");
        return EXIT_USAGE;
    }
    if (!check_given(args) || !check_outputs(args))
        return EXIT_USAGE;
    c.pair.given[0] = args->operands[0];
    if (args->operand_count == 2)
        c.pair.given[1] = args->operands[1];
    if (!content_option(args, &c.pair.a.content))
        return EXIT_USAGE;
    c.pair.b.content = c.pair.a.content;
    int code = compared_pair_free(&c.pair, compare(args, &c));
    free_recipe(&c.loaded);
    doppel_passages_free(&c.passages);
    return code;
}

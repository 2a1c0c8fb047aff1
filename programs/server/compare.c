/* compare.c - requests that need no index: two texts or pages, compared by every measure, with the passages they share;
 * search results, near-copies folded under the first of them. */
#include "common/stored_json.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

/* ---- two texts or pages ---- */

typedef struct side {
    doppel_slice text;
    bool page; /* it is the text of a page */
    doppel_page_reader *reader;
} side;

typedef struct comparison {
    side a, b;
    doppel_recipe *recipe;
    doppel_comparison measures;
    doppel_passages passages;
    size_t count, min_words;
} comparison;

static doppel_status take_side(request *r, const char *name, side *s) {
    const json_value *object = json_member(&r->json, r->json.values, name);
    const json_value *content = json_member(&r->json, object, "text"), *html = json_member(&r->json, object, "html");
    doppel_page page;
    s->text = (doppel_slice){"", 0};
    if (content && content->kind == JSON_STRING) {
        s->text = content->text;
        return DOPPEL_OK;
    }
    if (!html || html->kind != JSON_STRING)
        return DOPPEL_ERROR_INPUT;
    doppel_status status = doppel_page_reader_create(&s->reader);
    if (status == DOPPEL_OK)
        status = doppel_page_read(s->reader, html->text, "utf-8", DOPPEL_CONTENT_MAIN, &page);
    if (status == DOPPEL_OK && page.text.data)
        s->text = page.text;
    s->page = true;
    return status;
}

/* ---- the answer ---- */

/* Counts UTF-16 units up to a byte; places must be given in ascending order, or start again at 0. */
typedef struct units {
    const char *text;
    uint64_t bytes, units;
} units;

static uint64_t units_to(units *u, uint64_t bytes) {
    if (bytes < u->bytes)
        u->bytes = u->units = 0;
    for (; u->bytes < bytes; u->bytes++) {
        unsigned char c = (unsigned char)u->text[u->bytes];
        u->units += (c & 0xC0) != 0x80 ? (c >= 0xF0 ? 2 : 1) : 0;
    }
    return u->units;
}

static int by_b(const void *left, const void *right) {
    const doppel_passage *const *a = left, *const *b = right;
    return ((*a)->b_start > (*b)->b_start) - ((*a)->b_start < (*b)->b_start);
}

/* Where passages begin and end in B in UTF-16 units, two numbers each; in one pass, although they may cross. */
static uint64_t *units_of_b(const comparison *c) {
    const doppel_passage **order = calloc(c->passages.count + 1, sizeof *order);
    uint64_t *places = calloc(c->passages.count + 1, 2 * sizeof *places);
    units walk = {c->b.text.data, 0, 0};
    for (size_t i = 0; order && i < c->passages.count; i++)
        order[i] = &c->passages.passage[i];
    if (order && places) {
        qsort(order, c->passages.count, sizeof *order, by_b);
        for (size_t i = 0; i < c->passages.count; i++) {
            size_t number = (size_t)(order[i] - c->passages.passage);
            places[2 * number] = units_to(&walk, order[i]->b_start);
            places[2 * number + 1] = units_to(&walk, order[i]->b_end);
        }
    }
    free(order);
    return places;
}

static bool write_passages(text_buffer *out, const comparison *c) {
    uint64_t *b = units_of_b(c);
    units a = {c->a.text.data, 0, 0};
    text_member(out, "passages");
    text_put(out, "[");
    for (size_t i = 0; b && i < c->passages.count; i++) {
        const doppel_passage *p = &c->passages.passage[i];
        text_put(out, i ? ",{" : "{");
        text_member_count(out, "aStart", p->a_start);
        text_member_count(out, "aEnd", p->a_end);
        text_member_count(out, "bStart", p->b_start);
        text_member_count(out, "bEnd", p->b_end);
        text_member_count(out, "aFrom", units_to(&a, p->a_start));
        text_member_count(out, "aTo", units_to(&a, p->a_end));
        text_member_count(out, "bFrom", b[2 * i]);
        text_member_count(out, "bTo", b[2 * i + 1]);
        text_member_count(out, "words", p->words);
        text_put(out, "}");
    }
    text_put(out, "]");
    free(b);
    return b;
}

static void answer_comparison(request *r, const comparison *c) {
    text_buffer *out = &r->answer;
    text_put(out, "{");
    text_compared_side(out, &c->measures, false);
    text_compared_side(out, &c->measures, true);
    text_member_string(out, "recipe", doppel_slice_of(doppel_recipe_text(c->recipe)));
    text_measures(out, &c->measures);
    text_member_string(out, "textA", c->a.page ? c->a.text : (doppel_slice){NULL, 0});
    text_member_string(out, "textB", c->b.page ? c->b.text : (doppel_slice){NULL, 0});
    if (!write_passages(out, c))
        out->failed = true;
    text_put(out, "}");
    request_answer(r, 200);
}

/* ---- the work ---- */

static doppel_status take_recipe(request *r, comparison *c, doppel_error *error) {
    const json_value *recipe = json_member(&r->json, r->json.values, "recipe");
    char *name = recipe ? strndup(recipe->text.data, recipe->text.length) : strdup("page");
    doppel_status status = name ? doppel_recipe_parse(name, NULL, &c->recipe, error) : DOPPEL_ERROR_MEMORY;
    free(name);
    return status;
}

/* Edits cost the product of both lengths; longer texts would occupy a worker for seconds. */
enum { LONGEST = 4 << 20 };

static void compare(request *r, comparison *c) {
    doppel_error error = {0};
    const json_value *min_words = json_member(&r->json, r->json.values, "minWords");
    c->min_words = min_words ? (size_t)strtod(min_words->text.data, NULL) : 5;
    doppel_status status = take_recipe(r, c, &error);
    if (status != DOPPEL_OK) {
        request_error(r, status, &error);
        return;
    }
    doppel_status a = take_side(r, "a", &c->a), b = take_side(r, "b", &c->b);
    if (a == DOPPEL_ERROR_INPUT || b == DOPPEL_ERROR_INPUT) {
        request_problem(r, PROBLEM_WRONG_SHAPE, a ? "/a" : "/b", "text, or html that can be read, is required");
        return;
    }
    if (c->a.text.length + c->b.text.length > LONGEST) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "the two texts may have at most %d bytes together", LONGEST);
        return;
    }
    status = a ? a : b;
    if (status == DOPPEL_OK)
        status = doppel_compare(c->recipe, c->a.text, c->b.text, &c->measures);
    if (status == DOPPEL_OK)
        status = doppel_passages_find(c->recipe, c->a.text, c->b.text, c->min_words, &c->passages);
    if (status == DOPPEL_OK)
        answer_comparison(r, c);
    else
        request_error(r, status, &error);
}

void handle_compare(request *r) {
    comparison c = {0};
    if (!request_json(r))
        return;
    compare(r, &c);
    doppel_page_reader_free(c.a.reader);
    doppel_page_reader_free(c.b.reader);
    doppel_recipe_free(c.recipe);
    doppel_passages_free(&c.passages);
}

/* ---- search results ---- */

typedef struct folding {
    const json_value **given; /* the results, as in the body */
    doppel_item *items;
    size_t *fold;
    size_t count;
} folding;

static bool prepare(request *r, folding *f) {
    const json_value *list = json_member(&r->json, r->json.values, "results"), *value = json_first(list);
    doppel_slice *extra;
    f->count = list->count;
    f->given = calloc(f->count + 1, sizeof *f->given);
    f->items = calloc(f->count + 1, sizeof *f->items);
    f->fold = calloc(f->count + 1, sizeof *f->fold);
    if (!f->given || !f->items || !f->fold)
        return false;
    for (size_t i = 0; i < f->count; i++, value = json_next(&r->json, value)) {
        f->given[i] = value;
        item_make(&r->json, value, NULL, &f->items[i], &extra);
    }
    return true;
}

/* A result as it was given, without its closing brace. */
static void write_open(text_buffer *out, const json_value *given) {
    size_t length = given->text.length;
    text_add(out, given->text.data, length - 1);
}

static void write_folded(request *r, const folding *f, size_t shown) {
    bool first = true;
    const json_value *given = f->given[shown];
    write_open(&r->answer, given);
    text_put(&r->answer, given->count ? ",\"folded\":[" : "\"folded\":[");
    for (size_t i = shown + 1; i < f->count; i++)
        if (f->fold[i] == shown) {
            text_put(&r->answer, first ? "" : ",");
            text_add(&r->answer, f->given[i]->text.data, f->given[i]->text.length);
            first = false;
        }
    text_put(&r->answer, "]}");
}

static void answer_folded(request *r, const folding *f) {
    bool first = true;
    text_put(&r->answer, "{\"results\":[");
    for (size_t i = 0; i < f->count; i++)
        if (f->fold[i] == i) {
            text_put(&r->answer, first ? "" : ",");
            write_folded(r, f, i);
            first = false;
        }
    text_put(&r->answer, "]}");
    request_answer(r, 200);
}

/* A field named folded would appear twice. */
static bool check_names(request *r, const folding *f) {
    for (size_t i = 0; i < f->count; i++)
        if (json_member(&r->json, f->given[i], "folded")) {
            char pointer[64];
            snprintf(pointer, sizeof pointer, "/results/%zu/folded", i);
            request_problem(r, PROBLEM_WRONG_SHAPE, pointer, "the field \"folded\" is reserved for the answer");
            return false;
        }
    return true;
}

enum { MOST_RESULTS = 10000 };

void handle_dedupe(request *r) {
    folding f = {0};
    doppel_error error = {0};
    if (!request_json(r))
        return;
    doppel_engine_options options = {.size = sizeof options, .near = DOPPEL_NEAR_SIMILARITY, .threads = 1};
    options.similarity = request_number(r, "similarity");
    if (json_member(&r->json, r->json.values, "results")->count > MOST_RESULTS) {
        request_problem(r, PROBLEM_TOO_LARGE, "/results", "at most %d results are allowed", MOST_RESULTS);
    } else if (!prepare(r, &f)) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    } else if (check_names(r, &f)) {
        doppel_status status =
            f.count ? doppel_dedupe_results(f.items, f.count, &options, f.fold, NULL, &error) : DOPPEL_OK;
        if (status == DOPPEL_OK)
            answer_folded(r, &f);
        else
            request_error(r, status, &error);
    }
    free(f.given);
    free(f.items);
    free(f.fold);
}

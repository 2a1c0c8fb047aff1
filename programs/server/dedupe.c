/* dedupe.c - search results, near-copies folded under the first of them. */
#include "server/service.h"

#include <stdlib.h>

typedef struct folding {
    const json_value **given; /* the results, as they stand in the body */
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
static void write_open(text *out, const json_value *given) {
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

static void answer(request *r, const folding *f) {
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

/* A field named folded would stand there twice. */
static bool check_names(request *r, const folding *f) {
    for (size_t i = 0; i < f->count; i++)
        if (json_member(&r->json, f->given[i], "folded")) {
            char pointer[64];
            snprintf(pointer, sizeof pointer, "/results/%zu/folded", i);
            request_problem(r, PROBLEM_WRONG_SHAPE, pointer, "the field \"folded\" is for the answer");
            return false;
        }
    return true;
}

enum { MOST = 10000 };

void handle_dedupe(request *r) {
    folding f = {0};
    doppel_error error = {0};
    if (!request_json(r))
        return;
    doppel_engine_options options = {.size = sizeof options, .near = DOPPEL_NEAR_SIMILARITY, .threads = 1};
    options.similarity = request_number(r, "similarity");
    if (json_member(&r->json, r->json.values, "results")->count > MOST) {
        request_problem(r, PROBLEM_TOO_LARGE, "/results", "at most %d results", MOST);
    } else if (!prepare(r, &f)) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    } else if (check_names(r, &f)) {
        doppel_status status =
            f.count ? doppel_dedupe_results(f.items, f.count, &options, f.fold, NULL, &error) : DOPPEL_OK;
        if (status == DOPPEL_OK)
            answer(r, &f);
        else
            request_error(r, status, &error);
    }
    free(f.given);
    free(f.items);
    free(f.fold);
}

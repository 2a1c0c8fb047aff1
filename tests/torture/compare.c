/* compare.c - what an engine has against what may be there. */
#include "model.h"

#include <inttypes.h>

/* ---- documents that are there ---- */

typedef struct tt_comparison {
    tt_model *model;
    const model_check *check;
} tt_comparison;

static bool expired(const tt_outcome *outcome, uint64_t now) {
    return outcome->plant.ttl && outcome->plant.at + outcome->plant.ttl <= now;
}

/* Whether an outcome is what is stored; says why not. */
static const char *differs(const tt_outcome *outcome, const doppel_stored *stored) {
    uint64_t original = 0;
    bool copy = stored->original_id.data != NULL;
    if (outcome->presence == ABSENT)
        return "presence";
    if (copy && !plant_number(stored->original_id, &original))
        return "original";
    if (!outcome->pending && (outcome->copy != copy || (copy && outcome->original != original)))
        return "original";
    return plant_differs(&outcome->plant, stored);
}

/* The one outcome that is left. */
static void settle(tt_entry *entry, const tt_outcome *outcome, const doppel_stored *stored) {
    entry->outcome[0] = *outcome;
    entry->outcome[0].presence = stored ? PRESENT : ABSENT;
    entry->outcome[0].pending = false;
    entry->outcome[0].copy = stored && stored->original_id.data;
    if (entry->outcome[0].copy)
        plant_number(stored->original_id, &entry->outcome[0].original);
    entry->count = 1;
}

static bool one_document(const doppel_stored *stored, void *user) {
    tt_comparison *comparison = user;
    uint64_t number;
    tt_entry *entry = NULL;
    if (!plant_number(stored->id, &number) || !(entry = model_find(comparison->model, number)))
        wrong("\"%.*s\" is there and was never offered", (int)stored->id.length, stored->id.data);
    if (entry->seen)
        wrong("plant %" PRIu64 " is there twice", number);
    entry->seen = true;
    comparison->model->present++;
    const char *why = NULL;
    for (size_t i = entry->count; i-- > 0;) {
        const char *because = differs(&entry->outcome[i], stored);
        if (!because) {
            settle(entry, &entry->outcome[i], stored);
            return true;
        }
        why = why ? why : because;
    }
    wrong("plant %" PRIu64 " has another %s than all %zu that it may have", number, why, entry->count);
}

/* ---- documents that are not ---- */

/* A copy is there only as long as its original. */
static bool may_have_gone(const tt_comparison *comparison, const tt_outcome *outcome) {
    if (outcome->presence != PRESENT || expired(outcome, comparison->check->now))
        return true;
    if (!outcome->copy)
        return false;
    const tt_entry *original = model_find(comparison->model, outcome->original);
    return !original || original->changed || !original->seen;
}

static void one_absent(const tt_comparison *comparison, tt_entry *entry) {
    for (size_t i = 0; i < entry->count; i++)
        if (may_have_gone(comparison, &entry->outcome[i])) {
            settle(entry, &entry->outcome[entry->count - 1], NULL);
            return;
        }
    wrong("plant %" PRIu64 " (text %" PRIu64 ", change %" PRIu32 ") was acknowledged and is not there", entry->id,
          entry->outcome[0].plant.text, entry->outcome[0].plant.change);
}

/* ---- cliques: one original each ---- */

static int by_text(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void compare_cliques(const tt_model *model) {
    uint64_t *texts = malloc((model->count + 1) * sizeof *texts);
    size_t count = 0;
    if (!texts)
        wrong("no memory");
    for (size_t i = 0; i < model->room; i++) {
        const tt_entry *entry = &model->entries[i];
        if (entry->used && entry->clique && entry->seen && !entry->outcome[0].copy)
            texts[count++] = entry->outcome[0].plant.text;
    }
    qsort(texts, count, sizeof *texts, by_text);
    for (size_t i = 1; i < count; i++)
        if (texts[i] == texts[i - 1])
            wrong("the clique of text %" PRIu64 " has two originals", texts[i]);
    free(texts);
}

/* ---- asked one by one ---- */

static void ask_for_text(const tt_comparison *comparison, const tt_entry *entry, const char *id) {
    const tt_outcome *is = &entry->outcome[0];
    plant_room room;
    doppel_item item = plant_item(&is->plant, &room);
    item.document.id.data = item.document.url.data = item.document.title.data = NULL;
    item.document.id.length = item.document.url.length = item.document.title.length = 0;
    doppel_verdict verdict = {0};
    doppel_error error;
    must(doppel_engine_check(comparison->check->engine, &item, &verdict, &error), &error, "check");
    bool names_it = verdict.is_duplicate && verdict.original_id.length == strlen(id) &&
                    !memcmp(verdict.original_id.data, id, strlen(id));
    bool should = entry->seen && !is->copy && !expired(is, comparison->check->now);
    if (names_it != should)
        wrong("the text of %s, which is %s, is %s it", id, should ? "there" : "gone or a copy",
              names_it ? "called a copy of" : "not called a copy of");
    doppel_verdict_free(&verdict);
}

static void ask(const tt_comparison *comparison, const tt_entry *entry) {
    doppel_stored_list list = {0};
    doppel_error error;
    plant_room room;
    const tt_outcome *is = &entry->outcome[0];
    doppel_item item = plant_item(&is->plant, &room);
    must(doppel_engine_get(comparison->check->engine, item.document.id, &list, &error), &error, "get");
    bool there = list.count == 1;
    if (there && plant_differs(&is->plant, &list.stored[0]))
        wrong("%s as it is got has another %s", room.id, plant_differs(&is->plant, &list.stored[0]));
    if (there != entry->seen && !expired(is, comparison->check->now) && !is->copy)
        wrong("%s is %s when it is got", room.id, there ? "there" : "not there");
    doppel_stored_list_free(&list);
    ask_for_text(comparison, entry, room.id);
}

/* ---- all of it ---- */

void model_compare(tt_model *model, const model_check *check) {
    tt_comparison comparison = {model, check};
    uint64_t damaged = 0, state = check->seed;
    doppel_error error;
    model->present = 0;
    for (size_t i = 0; i < model->room; i++)
        model->entries[i].seen = false;
    must(doppel_engine_each(check->engine, one_document, &comparison, &damaged, &error), &error, "each");
    if (damaged)
        wrong("%" PRIu64 " records are damaged", damaged);
    for (size_t i = 0; i < model->room; i++)
        if (model->entries[i].used && !model->entries[i].seen)
            one_absent(&comparison, &model->entries[i]);
    compare_cliques(model);
    for (uint64_t i = 0; i < check->samples; i++) {
        const tt_entry *entry = &model->entries[below(&state, model->room)];
        if (entry->used)
            ask(&comparison, entry);
    }
}

static void tell(const char *what, void *user) {
    (void)user;
    fprintf(stderr, "verify: %s\n", what);
}

void folder_verify(const char *folder) {
    doppel_verified verified = {0};
    doppel_error error;
    must(doppel_engine_verify(folder, tell, NULL, &verified, &error), &error, "verify");
    if (verified.damaged)
        wrong("verify found %" PRIu64 " damaged documents", verified.damaged);
}

/* native.c - what bench_python.py measures beside the Python calls: the same work on the same bytes, asked for in C.
 *
 * bench_python.py compiles it against include/doppel.h and loads it by ctypes, which then passes numbers and pointers
 * only. Every call gives a doppel_status, or -1 when there is no memory. Slices point into the caller's Arrow buffers.
 */
#include "doppel.h"

#include <stdlib.h>

/* Sketches all texts on one thread. `signatures` may be NULL; it takes the slots of the recipe. */
int native_sketch(const char *text, const doppel_slice *texts, size_t count, uint64_t *fingerprints,
                  uint32_t *signatures) {
    doppel_recipe *recipe;
    doppel_status status = doppel_recipe_parse(text, NULL, &recipe, NULL);
    if (status != DOPPEL_OK)
        return (int)status;
    doppel_sketch_arrays to = {.size = sizeof to, .fingerprints = fingerprints, .signatures = signatures};
    status = doppel_sketch_batch(recipe, texts, count, 1, &to, NULL);
    doppel_recipe_free(recipe);
    return (int)status;
}

/* An engine in memory, with the defaults. */
int native_open(doppel_engine **engine) {
    return (int)doppel_engine_open(NULL, NULL, engine, NULL);
}

void native_close(doppel_engine *engine) {
    doppel_engine_close(engine);
}

static void set_item(doppel_item *item, const doppel_slice *id, const doppel_slice *text) {
    *item = (doppel_item){.size = sizeof *item};
    if (id)
        item->document.id = *id;
    item->document.text = *text;
}

/* Adds documents in batches of `batch`; *duplicates counts those that were seen. */
int native_add(doppel_engine *engine, const doppel_slice *ids, const doppel_slice *texts, size_t count, size_t batch,
               uint64_t *duplicates) {
    doppel_item *items = calloc(batch, sizeof *items);
    doppel_verdict *verdicts = calloc(batch, sizeof *verdicts);
    doppel_status status = DOPPEL_OK;
    *duplicates = 0;
    for (size_t first = 0; items && verdicts && status == DOPPEL_OK && first < count; first += batch) {
        size_t some = count - first < batch ? count - first : batch;
        for (size_t i = 0; i < some; i++)
            set_item(&items[i], &ids[first + i], &texts[first + i]);
        status = doppel_engine_add_batch(engine, items, some, verdicts, NULL, NULL);
        for (size_t i = 0; status == DOPPEL_OK && i < some; i++)
            *duplicates += verdicts[i].is_duplicate;
    }
    int result = items && verdicts ? (int)status : -1;
    for (size_t i = 0; verdicts && i < batch; i++)
        doppel_verdict_free(&verdicts[i]);
    free(verdicts);
    free(items);
    return result;
}

/* Checks documents one by one. */
int native_check(doppel_engine *engine, const doppel_slice *texts, size_t count, uint64_t *duplicates) {
    doppel_verdict verdict = {0};
    doppel_status status = DOPPEL_OK;
    *duplicates = 0;
    for (size_t i = 0; status == DOPPEL_OK && i < count; i++) {
        doppel_item item;
        set_item(&item, NULL, &texts[i]);
        status = doppel_engine_check(engine, &item, &verdict, NULL);
        *duplicates += status == DOPPEL_OK && verdict.is_duplicate;
    }
    doppel_verdict_free(&verdict);
    return (int)status;
}

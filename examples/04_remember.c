/* 04_remember.c - remembers texts in a folder, and says which were seen before.
 *
 * Build it with: cc 04_remember.c $(pkg-config --cflags --libs doppel)
 *
 * Its arguments are an index folder and texts; without any it uses a memory that ends with the program. */
#include <doppel.h>

#include <stdio.h>
#include <stdlib.h>

enum { MOST = 100 };

static const char *const texts[] = {
    "The committee will meet on Monday to discuss the budget for the coming year, the mayor said",
    "Rain is expected in the north, with strong winds along the coast by evening, forecasters say",
    "The COMMITTEE will meet on Monday, to discuss the budget for the coming year, the mayor said!",
};

/* Adds all texts in one call: one commit, and a verdict or an error for each. */
static doppel_status add(doppel_engine *engine, const char *const *given, size_t count, doppel_error *error) {
    static doppel_item items[MOST];
    static doppel_verdict verdicts[MOST];
    static doppel_error errors[MOST];
    for (size_t i = 0; i < count; i++)
        items[i] = (doppel_item){.size = sizeof items[i], .document = {.text = doppel_slice_of(given[i])}};
    doppel_status status = doppel_engine_add_batch(engine, items, count, verdicts, errors, error);
    for (size_t i = 0; i < count; i++) {
        const doppel_verdict *v = &verdicts[i];
        if (errors[i].code != DOPPEL_OK)
            printf("text %zu: %s\n", i + 1, errors[i].message);
        else if (v->is_duplicate)
            printf("text %zu: seen, as %.*s (%s, confidence %.2f)\n", i + 1, (int)v->original_id.length,
                   v->original_id.data, doppel_reason_name(v->reason), v->confidence);
        else
            printf("text %zu: new, remembered as %.*s\n", i + 1, (int)v->id.length, v->id.data);
        doppel_verdict_free(&verdicts[i]);
    }
    return status;
}

int main(int argc, char **argv) {
    doppel_engine *engine;
    doppel_error error;
    bool given = argc > 2;
    size_t count = given ? (size_t)argc - 2 : sizeof texts / sizeof *texts;
    doppel_status status = doppel_engine_open(given ? argv[1] : NULL, NULL, &engine, &error);
    if (status == DOPPEL_OK)
        status = add(engine, given ? (const char *const *)argv + 2 : texts, count < MOST ? count : MOST, &error);
    if (status != DOPPEL_OK)
        fprintf(stderr, "%s\n", error.message);
    doppel_engine_close(engine);
    return status == DOPPEL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

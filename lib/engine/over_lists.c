/* over_lists.c - documents of a shared store, as lists: one by its name, all of them, those with the most copies. */
#include "engine/over.h"

#include <stdlib.h>

/* ---- from one form to the other ---- */

static bool copy_aliases(const dp_shared_document *document, doppel_stored_list *list, doppel_stored *to) {
    if (!document->alias_count)
        return true;
    doppel_slice *aliases = dp_stored_take(list, document->alias_count * sizeof *aliases);
    if (!aliases)
        return false;
    to->aliases = aliases;
    for (size_t i = 0; i < document->alias_count; i++)
        if (document->aliases[i].length && !dp_stored_copy(list, document->aliases[i], &aliases[to->alias_count++]))
            return false;
    return true;
}

doppel_status dp_over_list(const dp_shared_document *document, bool text, doppel_stored_list *list,
                           doppel_error *error) {
    doppel_stored *to = dp_stored_next(list);
    if (!to)
        return dp_no_memory(error);
    *to = dp_stored_of(&document->trace, &document->record);
    to->original_gone = document->original_gone;
    dp_stored_count(&document->counts, to);
    if (!dp_stored_name(list, &document->record, to) || !copy_aliases(document, list, to))
        return dp_no_memory(error);
    if (text && document->text.data && document->record.text_length &&
        !dp_stored_unpack(list, document->text, document->record.text_length, &to->text))
        return dp_no_memory(error);
    list->count++;
    return DOPPEL_OK;
}

static doppel_status list_all(const dp_shared_documents *documents, doppel_stored_list *list, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < documents->count && status == DOPPEL_OK; i++)
        status = dp_over_list(&documents->document[i], true, list, error);
    return status;
}

/* ---- one ---- */

doppel_status dp_over_resolve(doppel_engine *engine, dp_worker *worker, doppel_slice name,
                              dp_shared_documents *documents, doppel_error *error) {
    doppel_slice url = {NULL, 0};
    doppel_status status = name.length ? dp_engine_canonical(engine, worker, name, &url, error) : DOPPEL_OK;
    return status == DOPPEL_OK ? dp_shared_get(engine->shared, name, url, dp_over_now(engine), documents, error)
                               : status;
}

doppel_status dp_over_get(doppel_engine *engine, doppel_slice name, doppel_stored_list *list, doppel_error *error) {
    dp_shared_documents found = {0};
    dp_worker *worker;
    dp_stored_list_clear(list);
    doppel_status status = dp_engine_enter(engine, &worker, error);
    if (status != DOPPEL_OK)
        return status;
    status = dp_over_resolve(engine, worker, name, &found, error);
    dp_engine_leave(engine, worker);
    if (status == DOPPEL_OK)
        status = list_all(&found, list, error);
    dp_shared_documents_free(&found);
    return status;
}

/* ---- all ---- */

doppel_status dp_over_each(doppel_engine *engine, bool (*document)(const doppel_stored *stored, void *user), void *user,
                           uint64_t *damaged, doppel_error *error) {
    doppel_stored_list list = {0};
    doppel_status status = DOPPEL_OK;
    uint64_t lost = 0;
    for (uint64_t from = 1; from && status == DOPPEL_OK;) {
        dp_shared_documents some = {0};
        dp_stored_list_clear(&list);
        status = dp_shared_each(engine->shared, &from, dp_over_now(engine), &some, error);
        if (status == DOPPEL_OK)
            status = list_all(&some, &list, error);
        lost += some.damaged;
        dp_shared_documents_free(&some);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++)
            if (!document(&list.stored[i], user))
                status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    doppel_stored_list_free(&list);
    atomic_fetch_add(&engine->counters.damaged, lost);
    if (damaged)
        *damaged = lost;
    return status;
}

/* ---- groups ---- */

static doppel_status find_largest(doppel_engine *engine, dp_largest *largest, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t from = 1; from && status == DOPPEL_OK;) {
        dp_shared_documents some = {0};
        status = dp_shared_each(engine->shared, &from, dp_over_now(engine), &some, error);
        for (size_t i = 0; i < some.count && status == DOPPEL_OK; i++) {
            const dp_counts *counts = &some.document[i].counts;
            if (counts->by[0] || counts->by[1] || counts->by[2])
                dp_largest_add(largest, some.document[i].trace.number, counts);
        }
        dp_shared_documents_free(&some);
    }
    return status;
}

static int compare_numbers(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_documents(const void *number, const void *document) {
    uint64_t x = *(const uint64_t *)number, y = ((const dp_shared_document *)document)->trace.number;
    return (x > y) - (x < y);
}

/* Lists the groups in their order: what is gone meanwhile is left out. */
static doppel_status list_largest(doppel_engine *engine, const dp_largest *largest, doppel_stored_list *list,
                                  doppel_error *error) {
    dp_shared_documents found = {0};
    uint64_t *numbers = malloc((largest->count + 1) * sizeof *numbers);
    if (!numbers)
        return dp_no_memory(error);
    for (size_t i = 0; i < largest->count; i++)
        numbers[i] = largest->group[i].number;
    qsort(numbers, largest->count, sizeof *numbers, compare_numbers);
    doppel_status status =
        dp_shared_get_numbers(engine->shared, numbers, largest->count, dp_over_now(engine), &found, error);
    for (size_t i = 0; i < largest->count && found.count && status == DOPPEL_OK; i++) {
        const dp_shared_document *document =
            bsearch(&largest->group[i].number, found.document, found.count, sizeof *found.document, compare_documents);
        if (document)
            status = dp_over_list(document, false, list, error);
    }
    dp_shared_documents_free(&found);
    free(numbers);
    return status;
}

doppel_status dp_over_groups(doppel_engine *engine, uint64_t limit, doppel_stored_list *list, doppel_error *error) {
    dp_largest largest;
    dp_stored_list_clear(list);
    if (!dp_largest_init(&largest, limit))
        return dp_no_memory(error);
    doppel_status status = find_largest(engine, &largest, error);
    dp_largest_sort(&largest);
    if (status == DOPPEL_OK && largest.count)
        status = list_largest(engine, &largest, list, error);
    dp_largest_free(&largest);
    return status;
}

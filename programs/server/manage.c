/* manage.c - indexes by the API: listed, made, dropped, backed up. */
#include "server/service.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void write_index(text *out, index_entry *index) {
    const doppel_engine_options *o = index->engine ? doppel_engine_get_options(index->engine) : NULL;
    doppel_engine_stats s;
    index_stats(index, &s);
    text_put(out, "{");
    text_member_string(out, "name", slice_of(index->name));
    text_member_count(out, "documents", s.documents);
    text_member_count(out, "copies", s.copies);
    text_member_string(out, "recipe", slice_of(o ? doppel_recipe_text(o->recipe) : ""));
    text_member_string(out, "preset", slice_of(o ? o->preset : ""));
    text_member_count(out, "diskBytes", s.disk_bytes);
    text_member_count(out, "memoryBytes", s.memory_bytes);
    text_member_bool(out, "available", !index->unavailable);
    text_put(out, "}");
}

void handle_list_indexes(request *r) {
    indexes *all = &r->service->indexes;
    index_entry *entry;
    text_put(&r->answer, "{\"indexes\":[");
    for (size_t i = 0; (entry = indexes_at(all, i)); i++) {
        text_put(&r->answer, i ? "," : "");
        write_index(&r->answer, entry);
        indexes_give(all, entry);
    }
    text_put(&r->answer, "]}");
    request_answer(r, 200);
}

static void show(request *r, int status) {
    doppel_slice name = {r->id, r->id_length};
    index_entry *entry = indexes_take(&r->service->indexes, name);
    if (!entry) {
        request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists what there is");
        return;
    }
    write_index(&r->answer, entry);
    request_answer(r, status);
    indexes_give(&r->service->indexes, entry);
}

void handle_show_index(request *r) {
    show(r, 200);
}

static void tell(request *r, index_result result, doppel_status status, const doppel_error *error) {
    switch (result) {
    case INDEX_NO_NAME:
        request_problem(r, PROBLEM_BAD_REQUEST, NULL,
                        "a name has 1 to 64 of a-z, 0-9, _ and -, and is not that of the default index");
        break;
    case INDEX_EXISTS: request_problem(r, PROBLEM_EXISTS, NULL, "drop it first, or choose another name"); break;
    case INDEX_ABSENT: request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists what there is"); break;
    case INDEX_OFF: request_problem(r, PROBLEM_OFF, NULL, "start it with --indexes DIR"); break;
    case INDEX_BUSY: request_problem(r, PROBLEM_IN_PROGRESS, NULL, "another index is being made or dropped"); break;
    default: request_error(r, status, error); break;
    }
}

/* Whether near content is asked for in one way: by a distance or by a similarity. */
static bool check_near(request *r) {
    const json_value *options = r->json.values, *near = json_member(&r->json, options, "near");
    bool similarity = json_member(&r->json, options, "similarity"),
         distance = json_member(&r->json, options, "distance");
    bool by_distance = near && near->text.length == strlen("distance"); /* its other value is longer */
    if (similarity && distance && !near)
        request_problem(r, PROBLEM_WRONG_SHAPE, "/distance",
                        "near content is of a similarity or within a distance: give one of them");
    else if (near && (by_distance ? similarity : distance))
        request_problem(r, PROBLEM_WRONG_SHAPE, by_distance ? "/similarity" : "/distance",
                        "with near %s, %s has no effect: leave it out", by_distance ? "distance" : "similarity",
                        by_distance ? "similarity" : "distance");
    return !r->done;
}

void handle_create_index(request *r) {
    doppel_status status = DOPPEL_OK;
    doppel_error error = {0};
    if (!request_json(r) || !check_near(r))
        return;
    index_result result = indexes_create(&r->service->indexes, (doppel_slice){r->id, r->id_length},
                                         r->json.values->text, &status, &error);
    if (result == INDEX_FINE) {
        snprintf(r->location, sizeof r->location, "/v1/indexes/%.*s", (int)r->id_length, r->id);
        show(r, 201);
    } else {
        tell(r, result, status, &error);
    }
}

void handle_drop_index(request *r) {
    doppel_status status = DOPPEL_OK;
    doppel_error error = {0};
    doppel_slice name = {r->id, r->id_length};
    index_result result = indexes_drop(&r->service->indexes, name, &status, &error);
    if (result != INDEX_FINE) {
        tell(r, result, status, &error);
        return;
    }
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "name", name);
    text_member_bool(&r->answer, "removed", true);
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* ---- backups ---- */

/* NAME-TIME, a number behind it if there was one in the same second. */
static void name_backup(const index_entry *index, char *to, size_t room) {
    static atomic_uint count;
    char when[32];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", &parts);
    snprintf(to, room, "%s-%s-%u", index->name, when, atomic_fetch_add(&count, 1) + 1);
}

void handle_backup(request *r) {
    const char *folder = r->service->options.backups;
    char name[INDEX_NAME + 64];
    char *path = NULL;
    doppel_error error = {0};
    doppel_engine_stats s;
    if (!request_json(r))
        return;
    if (!folder) {
        request_problem(r, PROBLEM_OFF, NULL, "start it with --backups DIR");
        return;
    }
    name_backup(r->index, name, sizeof name);
    doppel_status status = asprintf(&path, "%s/%s", folder, name) < 0 ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
    if (status == DOPPEL_OK) {
        status = doppel_engine_backup(r->index->engine, path, &error);
        free(path);
    }
    if (status != DOPPEL_OK) {
        request_refused(r, status, &error);
        return;
    }
    doppel_engine_get_stats(r->index->engine, &s);
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "name", slice_of(name));
    text_member_count(&r->answer, "bytes", s.disk_bytes - s.free_bytes);
    text_put(&r->answer, "}");
    request_answer(r, 201);
}

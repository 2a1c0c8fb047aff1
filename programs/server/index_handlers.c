/* index_handlers.c - requests about indexes: list, create, drop, back up; statistics, largest groups, maintenance;
 * the rights of the caller; health.
 */
#include "common/stored_json.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void write_index(text_buffer *out, index_entry *index) {
    const doppel_engine_options *o = index->engine ? doppel_engine_get_options(index->engine) : NULL;
    doppel_engine_stats s;
    index_stats(index, &s);
    text_put(out, "{");
    text_member_string(out, "name", doppel_slice_of(index->name));
    text_member_count(out, "documents", s.documents);
    text_member_count(out, "copies", s.copies);
    text_member_string(out, "recipe", doppel_slice_of(o ? doppel_recipe_text(o->recipe) : ""));
    text_member_string(out, "preset", doppel_slice_of(o ? o->preset : ""));
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
        indexes_release(all, entry);
    }
    text_put(&r->answer, "]}");
    request_answer(r, 200);
}

static void show(request *r, int status) {
    doppel_slice name = {r->id, r->id_length};
    index_entry *entry = indexes_acquire(&r->service->indexes, name);
    if (!entry) {
        request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists the indexes");
        return;
    }
    write_index(&r->answer, entry);
    request_answer(r, status);
    indexes_release(&r->service->indexes, entry);
}

void handle_show_index(request *r) {
    show(r, 200);
}

static void answer_result(request *r, index_result result, doppel_status status, const doppel_error *error) {
    switch (result) {
    case INDEX_NO_NAME:
        request_problem(r, PROBLEM_BAD_REQUEST, NULL, "a name has 1 to 64 characters of a-z, 0-9, _ and -");
        break;
    case INDEX_DEFAULT:
        request_problem(r, PROBLEM_DEFAULT_INDEX, NULL, "start the server with another one as --index");
        break;
    case INDEX_EXISTS: request_problem(r, PROBLEM_EXISTS, NULL, "drop it first, or choose another name"); break;
    case INDEX_FULL:
        request_problem(r, PROBLEM_FULL, NULL, "the server has %d indexes, and takes no more: drop one first",
                        INDEX_MOST);
        break;
    case INDEX_ABSENT: request_problem(r, PROBLEM_NO_INDEX, NULL, "GET /v1/indexes lists the indexes"); break;
    case INDEX_OFF: request_problem(r, PROBLEM_OFF, NULL, "start it with --indexes DIR"); break;
    case INDEX_BUSY: request_problem(r, PROBLEM_IN_PROGRESS, NULL, "another index is being created or dropped"); break;
    default: request_error(r, status, error); break;
    }
}

/* Whether near content is defined in one way: by a distance or by a similarity. */
static bool check_near(request *r) {
    const json_value *options = r->json.values, *near = json_member(&r->json, options, "near");
    bool similarity = json_member(&r->json, options, "similarity"),
         distance = json_member(&r->json, options, "distance");
    bool by_distance = near && near->text.length == strlen("distance"); /* its other value is longer */
    if (similarity && distance && !near)
        request_problem(r, PROBLEM_WRONG_SHAPE, "/distance",
                        "near content is defined by similarity or by distance: give one of them");
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
        answer_result(r, result, status, &error);
    }
}

void handle_drop_index(request *r) {
    doppel_status status = DOPPEL_OK;
    doppel_error error = {0};
    doppel_slice name = {r->id, r->id_length};
    index_result result = indexes_drop(&r->service->indexes, name, &status, &error);
    if (result != INDEX_FINE) {
        answer_result(r, result, status, &error);
        return;
    }
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "name", name);
    text_member_bool(&r->answer, "removed", true);
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* ---- backups ---- */

/* NAME-TIME-NUMBER: the number distinguishes backups of the same second. */
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
    text_member_string(&r->answer, "name", doppel_slice_of(name));
    text_member_count(&r->answer, "bytes", s.disk_bytes - s.free_bytes);
    text_put(&r->answer, "}");
    request_answer(r, 201);
}

/* ---- groups ---- */

void handle_groups(request *r) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    uint64_t limit = (uint64_t)request_number(r, "limit");
    doppel_status status = doppel_engine_groups(r->index->engine, limit, &list, &error);
    if (status == DOPPEL_OK)
        answer_list(r, "groups", &list, false);
    else
        request_error(r, status, &error);
    doppel_stored_list_free(&list);
}

/* ---- stats ---- */

static void write_histogram(text_buffer *out, const char *name, const doppel_histogram *h) {
    text_member(out, name);
    text_put(out, "{");
    text_member_count(out, "count", h->count);
    text_member_count(out, "sum", h->sum);
    text_member(out, "buckets");
    for (int i = 0; i < DOPPEL_BUCKETS; i++)
        text_format(out, "%s%llu", i ? "," : "[", (unsigned long long)h->bucket[i]);
    text_put(out, "]}");
}

static const char *one_of(const char *const *names, int number) {
    return names[number > 0 ? number - 1 : 0];
}

static void write_settings(text_buffer *out, const index_entry *index) {
    static const char *const near_names[] = {"distance", "similarity"},
                             *const duplicate_names[] = {"skip", "link", "store"},
                             *const url_names[] = {"duplicate", "refresh"},
                             *const durability_names[] = {"none", "batch", "each"};
    const doppel_engine_options *o = doppel_engine_get_options(index->engine);
    text_member_string(out, "index", doppel_slice_of(index->name));
    text_member_string(out, "recipe", doppel_slice_of(doppel_recipe_text(o->recipe)));
    text_member_string(out, "preset", doppel_slice_of(o->preset));
    text_member_string(out, "near", doppel_slice_of(one_of(near_names, (int)o->near)));
    text_member_number(out, "similarity", o->similarity);
    text_member(out, "sample");
    if (o->sample == DOPPEL_SAMPLE_ALL)
        text_put(out, "null");
    else
        text_format(out, "%llu", (unsigned long long)o->sample);
    text_member_count(out, "distance", (uint64_t)o->distance);
    text_member_count(out, "minWords", o->min_words);
    text_member_bool(out, "titles", o->titles == DOPPEL_SWITCH_ON);
    text_member_number(out, "titleSimilarity", o->title_similarity);
    text_member_bool(out, "titleVeto", o->title_veto == DOPPEL_SWITCH_ON);
    text_member_bool(out, "keepText", o->keep_text == DOPPEL_SWITCH_ON);
    text_member(out, "fields");
    text_put(out, "[");
    for (size_t i = 0; i < index->fields.count; i++) {
        text_put(out, i ? "," : "");
        text_string(out, doppel_slice_of(index->fields.names[i]));
    }
    text_put(out, "]");
    text_member_string(out, "onDuplicate", doppel_slice_of(one_of(duplicate_names, (int)o->on_duplicate)));
    text_member_string(out, "onSameUrl", doppel_slice_of(one_of(url_names, (int)o->on_same_url)));
    text_member(out, "ttl");
    if (!o->ttl || o->ttl == DOPPEL_NEVER)
        text_put(out, "null");
    else
        text_format(out, "%llu", (unsigned long long)o->ttl);
    text_member_string(out, "durability", doppel_slice_of(one_of(durability_names, (int)o->durability)));
}

static void write_contents(text_buffer *out, const doppel_engine_stats *s) {
    text_member_count(out, "documents", s->documents);
    text_member_count(out, "copies", s->copies);
    text_member_count(out, "titlesKnown", s->titles);
    text_member(out, "duplicatesBy");
    text_by_reason(out, s->duplicates_by, false);
    text_member_time(out, "oldest", s->oldest);
    text_member_time(out, "newest", s->newest);
    text_member_count(out, "diskBytes", s->disk_bytes);
    text_member_count(out, "freeBytes", s->free_bytes);
    text_member_count(out, "memoryBytes", s->memory_bytes);
    text_member_count(out, "keysBytes", s->keys_bytes);
    text_member_count(out, "nearBytes", s->near_bytes);
    text_member_count(out, "titleBytes", s->title_bytes);
    text_member_string(out, "plan", doppel_slice_of(s->plan));
    text_member_count(out, "last", s->last);
}

static void write_done(text_buffer *out, const doppel_engine_stats *s) {
    text_engine_counters(out, s);
    text_member(out, "verdictsBy");
    text_by_reason(out, s->verdicts_by, true);
    write_histogram(out, "checkTime", &s->check_time);
    write_histogram(out, "addTime", &s->add_time);
    write_histogram(out, "commitTime", &s->commit_time);
    write_histogram(out, "candidates", &s->candidates);
    write_histogram(out, "distances", &s->distances);
    text_member_number(out, "openSeconds", s->open_seconds);
}

void handle_stats(request *r) {
    doppel_engine_stats s;
    doppel_engine_get_stats(r->index->engine, &s);
    text_put(&r->answer, "{");
    write_settings(&r->answer, r->index);
    write_contents(&r->answer, &s);
    write_done(&r->answer, &s);
    text_member_number(&r->answer, "uptimeSeconds", (double)(now_microseconds() - r->service->metrics.started) * 1e-6);
    text_member_string(&r->answer, "version", doppel_slice_of(doppel_version()));
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* ---- the history ---- */

static void write_point(text_buffer *out, const history_minute *point) {
    uint64_t by[DOPPEL_REASONS];
    for (int i = 0; i < DOPPEL_REASONS; i++)
        by[i] = point->verdicts_by[i];
    text_put(out, out->length && out->data[out->length - 1] == '[' ? "{" : ",{");
    text_member_time(out, "time", 60ull * point->minute);
    text_member_count(out, "seconds", point->seconds);
    text_member_count(out, "checks", point->checks);
    text_member_count(out, "adds", point->adds);
    text_member(out, "verdictsBy");
    text_by_reason(out, by, true);
    text_member_count(out, "documents", point->documents);
    text_member_count(out, "copies", point->copies);
    text_put(out, "}");
}

void handle_history(request *r) {
    uint64_t step = (uint64_t)request_number(r, "step"), end = (uint64_t)time(NULL) / 60 + 1;
    uint64_t first = end - (uint64_t)request_number(r, "minutes");
    index_history_update(r->index, false);
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "index", doppel_slice_of(r->index->name));
    text_member_bool(&r->answer, "stored", r->index->history_folder);
    text_member_count(&r->answer, "step", step);
    text_member(&r->answer, "points");
    text_put(&r->answer, "[");
    /* Points begin at multiples of the step, so that a minute is always in the same one. */
    for (uint64_t from = first / step * step; from < end; from += step) {
        history_minute point;
        uint64_t to = from + step < end ? from + step : end;
        if (history_sum(r->index->history, from > first ? from : first, to, &point)) {
            point.minute = (uint32_t)from;
            write_point(&r->answer, &point);
        }
    }
    text_put(&r->answer, "]}");
    request_answer(r, 200);
}

/* ---- maintenance ---- */

void handle_expire(request *r) {
    uint64_t expired = 0;
    doppel_error error = {0};
    if (!request_json(r))
        return;
    doppel_status status = doppel_engine_expire(r->index->engine, &expired, &error);
    if (status != DOPPEL_OK) {
        request_error(r, status, &error);
        return;
    }
    text_format(&r->answer, "{\"expired\":%llu}", (unsigned long long)expired);
    request_answer(r, 200);
}

void handle_compact(request *r) {
    doppel_error error = {0};
    if (!request_json(r))
        return;
    doppel_status status = doppel_engine_compact(r->index->engine, &error);
    if (status != DOPPEL_OK) {
        request_refused(r, status, &error);
        return;
    }
    text_put(&r->answer, "{\"compacted\":true}");
    request_answer(r, 200);
}

/* ---- the caller ---- */

void handle_session(request *r) {
    bool named = r->token[0];
    text_put(&r->answer, "{");
    text_member_bool(&r->answer, "tokens", r->service->options.tokens);
    text_member_string(&r->answer, "name", doppel_slice_of(named ? r->token : NULL));
    text_member_string(&r->answer, "right", doppel_slice_of(right_names[r->right]));
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* ---- health ---- */

void handle_health(request *r) {
    text_put(&r->answer, "{\"status\":\"ok\"}");
    request_answer(r, 200);
}

void handle_ready(request *r) {
    indexes *all = &r->service->indexes;
    index_entry *first = indexes_at(all, 0);
    if (first && first->unavailable)
        request_unavailable(r);
    else if (first && index_is_away(first))
        request_away(r);
    if (first)
        indexes_release(all, first);
    if (r->done)
        return;
    bool stopping = atomic_load(&r->service->draining);
    text_format(&r->answer, "{\"status\":\"%s\"}", stopping ? "stopping" : "ready");
    request_answer(r, stopping ? 503 : 200);
}

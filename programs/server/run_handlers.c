/* run_handlers.c - the requests about runs: the list of them, a run as JSON, examples, groups and one document at a
 * threshold, another analysis, deletion. */
#include "server/runs.h"
#include "server/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const run_result no_result = {.from = RUN_STEPS, .kept = -1, .pairs = -1};

/* What was found of a run so far. */
static const run_result *result_of(const file_run *run) {
    return run->result ? run->result : &no_result;
}

/* The similarity of a request; by default the run's own. */
static double requested_similarity(const request *r, const file_run *run) {
    return request_choice(r, "similarity") ? request_number(r, "similarity") : run->similarity;
}

/* Whether the run's own similarity is below all others that are known. */
static bool own_leads(const run_result *result, double own) {
    return own * 100 < result->from - 1e-6;
}

/* ---- a run as JSON; the lock is held by the caller ---- */

/* A document that is in a group; where it cannot be read, there is no memory for an answer either, or no disk. */
static void write_document(text_buffer *out, const run_result *result, uint32_t position) {
    run_document d;
    out->failed = !run_document_read(result, position, false, &d) || out->failed;
    text_member_count(out, "number", position);
    text_member_string(out, "id", d.id);
    text_member_string(out, "title", d.title);
    run_document_free(&d);
}

static void begin_group(text_buffer *out, const run_result *result, uint32_t kept, uint32_t size) {
    text_put(out, "{");
    write_document(out, result, kept);
    text_member_count(out, "size", size);
    text_member(out, "copies");
    text_put(out, "[");
}

static void write_copy(text_buffer *out, const run_result *result, uint32_t position, float similarity, bool first) {
    text_put(out, first ? "{" : ",{");
    write_document(out, result, position);
    text_member_share(out, "similarity", (double)similarity);
    text_put(out, "}");
}

static void write_group(text_buffer *out, const run_result *result, const run_group *g) {
    begin_group(out, result, g->kept, g->size);
    for (int i = 0; i < g->members; i++)
        write_copy(out, result, g->member[i], g->similarity[i], !i);
    text_put(out, "]}");
}

static void write_step(text_buffer *out, const run_result *result, const run_step *step) {
    text_member_count(out, "kept", result->documents - step->removed);
    text_member_count(out, "removed", step->removed);
    text_member_count(out, "identical", step->identical);
    text_member_count(out, "groups", step->groups);
}

static void write_largest(text_buffer *out, const run_result *result, const run_step *step, int limit) {
    text_member(out, "largest");
    text_put(out, "[");
    for (int i = 0; i < step->largest_count && i < limit; i++) {
        text_put(out, i ? "," : "");
        write_group(out, result, &step->largest[i]);
    }
    text_put(out, "]");
}

static void write_threshold(text_buffer *out, double similarity, const run_step *step) {
    text_put(out, out->data[out->length - 1] == '[' ? "{" : ",{");
    text_member_number(out, "similarity", similarity);
    text_member_count(out, "removed", step->removed);
    text_put(out, "}");
}

/* The run's own similarity leads where the others begin above it. */
static void write_thresholds(text_buffer *out, const run_result *result, double own) {
    text_member(out, "thresholds");
    text_put(out, "[");
    if (out->failed)
        return;
    if (result != &no_result && own_leads(result, own))
        write_threshold(out, own, &result->own);
    for (int step = result->from; step < RUN_STEPS; step++)
        write_threshold(out, step / 100.0, &result->step[step]);
    text_put(out, "]");
}

static void write_result(text_buffer *out, const run_result *result, double similarity) {
    text_member_count(out, "documents", result->documents);
    text_member_count(out, "empty", result->empty);
    text_member_count(out, "bad", result->bad);
    text_member_bool(out, "whole", result->whole);
    write_step(out, result, &result->own);
    write_thresholds(out, result, similarity);
    write_largest(out, result, &result->own, RUN_GROUPS);
}

static void write_fields(text_buffer *out, const run_fields *fields) {
    const run_field *longest = run_fields_longest(fields);
    text_member(out, "fields");
    text_put(out, "[");
    for (size_t i = 0; i < fields->count; i++) {
        const run_field *f = &fields->list[i];
        text_put(out, i ? ",{" : "{");
        text_member_string(out, "name", doppel_slice_of(f->name));
        text_member_count(out, "meanBytes", fields->records ? f->bytes / fields->records : 0);
        text_put(out, "}");
    }
    text_put(out, "]");
    text_member_string(out, "longestField", doppel_slice_of(longest ? longest->name : NULL));
}

static const char *const states[] = {"receiving", "analysing", "done", "failed"};

static uint64_t expires(const file_run *r) {
    return r->began + r->all->service->options.run_ttl;
}

static void write_run(text_buffer *out, const file_run *r) {
    text_put(out, "{");
    text_member_string(out, "id", doppel_slice_of(r->id));
    text_member_string(out, "name", doppel_slice_of(r->name));
    text_member_string(out, "state", doppel_slice_of(states[r->state]));
    text_member_string(out, "why", doppel_slice_of(r->state == RUN_FAILED ? r->why : NULL));
    text_member_count(out, "version", r->version);
    text_member_count(out, "received", r->received);
    text_member_number(out, "similarity", r->similarity);
    text_member_string(out, "textKey", doppel_slice_of(r->text_key));
    text_member_string(out, "idKey", doppel_slice_of(r->id_key));
    write_fields(out, &r->fields);
    text_member_time(out, "expires", expires(r));
    write_result(out, result_of(r), r->similarity);
    text_put(out, "}");
}

void run_answer(request *r, const file_run *shown, int status) {
    write_run(&r->answer, shown);
    request_answer(r, status);
}

/* ---- a run ---- */

file_run *run_lock(request *r) {
    runs *all = &r->service->runs;
    pthread_mutex_lock(&all->lock);
    file_run *found = runs_find(all, r->id, r->id_length);
    if (found) {
        run_touch(found);
        return found;
    }
    pthread_mutex_unlock(&all->lock);
    request_problem(r, PROBLEM_NO_RUN, NULL, "it may have been deleted: runs are kept for %llu seconds",
                    (unsigned long long)r->service->options.run_ttl);
    return NULL;
}

void handle_show_run(request *r) {
    const file_run *found = run_lock(r);
    if (!found)
        return;
    run_answer(r, found, 200);
    pthread_mutex_unlock(&found->all->lock);
}

void handle_run_events(request *r) {
    handle_show_run(r);
}

void handle_delete_run(request *r) {
    file_run *found = run_lock(r);
    if (!found)
        return;
    run_delete(found);
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "id", doppel_slice_of(found->id));
    text_member_bool(&r->answer, "removed", true);
    text_put(&r->answer, "}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* Drops the result of a run, and analyses its file again; false: the run failed, as there are no threads. The lock is
 * held by the caller; the keys become the run's. */
static bool analyse_again(file_run *run, char *text_key, char *id_key, double similarity) {
    run_result *old = run->result;
    if (old && !--old->users) {
        run_result_free(old);
        free(old);
    }
    free(run->text_key);
    free(run->id_key);
    run->result = NULL;
    run->text_key = text_key;
    run->id_key = id_key;
    run->similarity = similarity;
    bool started = run_start(run);
    run->state = started ? RUN_ANALYSING : RUN_FAILED;
    snprintf(run->why, sizeof run->why, "%s", started ? "" : "the server cannot start a thread now");
    run_change(run);
    return started;
}

void handle_repeat_run(request *r) {
    file_run *found = run_lock(r);
    if (!found)
        return;
    const char *text = request_choice(r, "textKey"), *id = request_choice(r, "idKey");
    double similarity = requested_similarity(r, found);
    char *text_key = text ? strdup(text) : NULL, *id_key = id ? strdup(id) : NULL;
    bool memory = (!text || text_key) && (!id || id_key);
    bool idle = found->thread_ended && found->received_all && !found->users;
    if (memory && idle && analyse_again(found, text_key, id_key, similarity))
        run_answer(r, found, 200);
    else if (memory && idle)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "%s", found->why);
    else if (memory)
        request_problem(
            r, PROBLEM_IN_PROGRESS, NULL,
            "the file is being received or analysed, or its kept or removed documents are being written: try again "
            "afterwards");
    else
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    if (!memory || !idle) {
        free(text_key);
        free(id_key);
    }
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- groups at a threshold ---- */

/* What is removed at the similarity of a request. *similarity becomes that of the answer: the lowest that is known and
 * is not below it. */
static const run_step *step_of(const request *r, const file_run *run, const run_result *result, double *similarity) {
    *similarity = requested_similarity(r, run);
    int step = (int)ceil(*similarity * 100 - 1e-6);
    step = step > result->from ? step : result->from;
    if (*similarity == run->similarity || (*similarity < run->similarity && own_leads(result, run->similarity)) ||
        step == RUN_STEPS) {
        *similarity = run->similarity;
        return &result->own;
    }
    *similarity = step / 100.0;
    return &result->step[step];
}

static void begin_groups(text_buffer *out, const run_result *result, const run_step *step, double similarity) {
    text_put(out, "{");
    text_member_number(out, "similarity", similarity);
    text_member_count(out, "documents", result->documents);
    write_step(out, result, step);
}

static void end_groups(request *r, const run_step *step, uint64_t after) {
    text_member_distance(&r->answer, "next", after < step->groups ? (int64_t)after : -1);
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

static void write_listed(text_buffer *out, const run_result *result, const run_group_list *list, size_t number) {
    const run_listed_group *g = &list->group[number];
    begin_group(out, result, g->kept, g->size);
    for (size_t i = 0; i < g->members; i++)
        write_copy(out, result, list->member[g->first + i].position, list->member[g->first + i].similarity, !i);
    text_put(out, "]}");
}

/* Decides at a step of a result; false: a problem is the answer. */
static bool decide(request *r, const run_result *result, const run_step *step, run_decisions *to) {
    runs *all = &r->service->runs;
    int number = step == &result->own ? RUN_STEPS : (int)(step - result->step);
    pthread_mutex_lock(&all->decision);
    bool fine = run_decide(result, number, to);
    pthread_mutex_unlock(&all->decision);
    if (!fine)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return fine;
}

enum { GROUPS_BYTES = 16 << 20 }; /* after which a page of groups ends early: ids may have a KiB each */

/* Any groups: they are found again. The lock is not held. */
static void list_groups(request *r, const run_result *result, const run_step *step, double similarity) {
    const run_group_query query = {.only = RUN_ALL_GROUPS,
                                   .after = (uint64_t)request_number(r, "cursor"),
                                   .limit = (size_t)request_number(r, "limit"),
                                   .copies = (size_t)request_number(r, "copies")};
    run_decisions decisions;
    run_group_list list = {0};
    if (!decide(r, result, step, &decisions))
        return;
    if (run_list_groups(&decisions, &query, &list)) {
        begin_groups(&r->answer, result, step, similarity);
        text_member(&r->answer, "largest");
        size_t count = 0;
        for (; count < list.count && r->answer.length < GROUPS_BYTES; count++) {
            text_put(&r->answer, count ? "," : "[");
            write_listed(&r->answer, result, &list, count);
        }
        text_put(&r->answer, count ? "]" : "[]");
        end_groups(r, step, query.after + count);
    } else {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    }
    run_group_list_free(&list);
    run_decisions_free(&decisions);
}

void handle_run_groups(request *r) {
    const file_run *found = run_lock(r);
    double similarity;
    if (!found)
        return;
    runs *all = found->all;
    run_result *result = found->result; /* NULL: nothing is known yet */
    const run_step *step = step_of(r, found, result_of(found), &similarity);
    int limit = (int)request_number(r, "limit");
    bool largest =
        request_number(r, "cursor") == 0 && limit <= RUN_GROUPS && request_number(r, "copies") == RUN_MEMBERS;
    if (largest || !result) {
        begin_groups(&r->answer, result_of(found), step, similarity);
        write_largest(&r->answer, result_of(found), step, limit);
        end_groups(r, step, (uint64_t)limit);
        pthread_mutex_unlock(&all->lock);
        return;
    }
    result->users++;
    pthread_mutex_unlock(&all->lock);
    list_groups(r, result, step, similarity);
    run_result_release(all, result);
}

/* ---- one document at a threshold: is it removed, and why? ---- */

static void write_decision(text_buffer *out, const run_result *result, const run_decisions *d, uint32_t position) {
    uint32_t original = d->original[position];
    bool removed = original != position;
    run_document kept = {0};
    if (removed && !run_document_read(result, original, false, &kept))
        out->failed = true;
    text_member_bool(out, "kept", !removed);
    text_member_string(out, "originalId", kept.id);
    text_member_distance(out, "originalNumber", removed ? (int64_t)original : -1);
    text_member_string(out, "reason", doppel_slice_of(removed ? doppel_reason_name(DOPPEL_REASON_CONTENT) : NULL));
    if (removed)
        text_member_share(out, "originalSimilarity", (double)d->similarity[position]);
    else
        text_member_string(out, "originalSimilarity", (doppel_slice){NULL, 0});
    run_document_free(&kept);
}

static void show_document(request *r, const run_result *result, const run_decisions *d, double similarity) {
    doppel_slice id = doppel_slice_of(request_choice(r, "id"));
    text_buffer *out = &r->answer;
    uint64_t position = run_document_find(result, d, id);
    run_document shown;
    run_group_list list = {0};
    if (position == RUN_NO_DOCUMENT) {
        request_problem(r, PROBLEM_NO_DOCUMENT, NULL, "no document of the file has this id");
        return;
    }
    run_document_read(result, (uint32_t)position, false, &shown); /* or its title is null */
    const run_group_query query = {
        .only = d->original[position], .limit = 1, .copies = (size_t)request_number(r, "copies")};
    text_put(out, "{");
    text_member_number(out, "similarity", similarity);
    text_member_count(out, "number", position);
    text_member_string(out, "id", id);
    text_member_string(out, "title", shown.title);
    write_decision(out, result, d, (uint32_t)position);
    if (!run_list_groups(d, &query, &list))
        out->failed = true;
    if (list.count) {
        text_member(out, "group");
        write_listed(out, result, &list, 0);
    }
    text_put(out, "}");
    request_answer(r, 200);
    run_group_list_free(&list);
    run_document_free(&shown);
}

void handle_run_document(request *r) {
    const file_run *found = run_lock(r);
    run_decisions decisions;
    double similarity;
    if (!found)
        return;
    runs *all = found->all;
    run_result *result = found->result;
    const run_step *step = result ? step_of(r, found, result, &similarity) : NULL;
    if (result)
        result->users++;
    pthread_mutex_unlock(&all->lock);
    if (!result) {
        request_problem(r, PROBLEM_NO_DOCUMENT, NULL, "no document of the file has been analysed yet");
        return;
    }
    if (decide(r, result, step, &decisions)) {
        show_document(r, result, &decisions, similarity);
        run_decisions_free(&decisions);
    }
    run_result_release(all, result);
}

/* ---- the list of runs ---- */

static void write_listed_run(text_buffer *out, const file_run *r, bool first) {
    text_put(out, first ? "{" : ",{");
    text_member_string(out, "id", doppel_slice_of(r->id));
    text_member_string(out, "name", doppel_slice_of(r->name));
    text_member_string(out, "state", doppel_slice_of(states[r->state]));
    text_member_count(out, "received", r->received);
    text_member_count(out, "documents", r->result ? r->result->documents : 0);
    text_member_count(out, "removed", r->result ? r->result->own.removed : 0);
    text_member_time(out, "created", r->began);
    text_member_time(out, "expires", expires(r));
    text_put(out, "}");
}

void handle_list_runs(request *r) {
    runs *all = &r->service->runs;
    bool first = true;
    pthread_mutex_lock(&all->lock);
    text_put(&r->answer, "{\"runs\":[");
    for (const file_run *run = all->first; run; run = run->next)
        if (!run->deleted) {
            write_listed_run(&r->answer, run, first);
            first = false;
        }
    pthread_mutex_unlock(&all->lock);
    text_put(&r->answer, "]");
    text_member_count(&r->answer, "most", r->service->options.max_runs);
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* ---- two documents with their texts ---- */

static void write_side(text_buffer *out, const char *name, uint32_t position, const run_document *d) {
    text_member(out, name);
    text_put(out, "{");
    text_member_count(out, "number", position);
    text_member_string(out, "id", d->id);
    text_member_string(out, "title", d->title);
    text_member_string(out, "text", d->text);
    text_member_bool(out, "cut", d->cut);
    text_put(out, "}");
}

/* The members a and b; false: one of them has no text that can be shown. */
static bool write_both(text_buffer *out, const run_result *result, uint32_t a, uint32_t b) {
    run_document first, second = {0};
    bool both = run_document_read(result, a, true, &first) && run_document_read(result, b, true, &second);
    if (both) {
        write_side(out, "a", a, &first);
        write_side(out, "b", b, &second);
    }
    run_document_free(&first);
    run_document_free(&second);
    return both;
}

void handle_run_pair(request *r) {
    const file_run *found = run_lock(r);
    if (!found)
        return;
    const run_result *result = result_of(found);
    uint32_t a = (uint32_t)request_number(r, "a"), b = (uint32_t)request_number(r, "b");
    text_put(&r->answer, "{");
    if (write_both(&r->answer, result, a, b)) {
        text_put(&r->answer, "}");
        request_answer(r, 200);
    } else {
        request_problem(r, PROBLEM_NO_DOCUMENT, NULL,
                        "only documents of groups and examples can be shown, by their `number`");
    }
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- examples: pairs at a threshold ---- */

static void write_example(text_buffer *out, const run_result *result, const doppel_edge *e) {
    text_put(out, out->data[out->length - 1] == '[' ? "{" : ",{");
    text_member_share(out, "similarity", (double)e->similarity);
    out->failed = !write_both(out, result, e->a, e->b) || out->failed;
    text_put(out, "}");
}

static int compare_similarity(const void *left, const void *right) {
    float a = ((const doppel_edge *)left)->similarity, b = ((const doppel_edge *)right)->similarity;
    return a < b ? -1 : a > b;
}

/* The pairs nearest to a threshold, `limit` below it and `limit` from it on, the least similar first. */
static void write_examples(text_buffer *out, const run_result *result, float threshold, int limit) {
    doppel_edge all[RUN_STEPS * RUN_EXAMPLES];
    int count = 0, below = 0;
    for (int step = 0; step < RUN_STEPS; step++)
        for (int i = 0; i < result->examples[step]; i++)
            all[count++] = result->example[step][i];
    qsort(all, (size_t)count, sizeof *all, compare_similarity);
    while (below < count && all[below].similarity < threshold)
        below++;
    int from = below > limit ? below - limit : 0, to = below + limit < count ? below + limit : count;
    for (int i = from; i < to; i++)
        write_example(out, result, &all[i]);
}

void handle_run_examples(request *r) {
    const file_run *found = run_lock(r);
    if (!found)
        return;
    float threshold = (float)requested_similarity(r, found);
    text_put(&r->answer, "{\"examples\":[");
    if (!r->answer.failed)
        write_examples(&r->answer, result_of(found), threshold, (int)request_number(r, "limit"));
    text_put(&r->answer, "]}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- the files of kept and removed documents (run_files.c) ---- */

/* Takes the run of a request, which must be done, so that it is not freed while it is used; NULL: a problem is the
 * answer. */
static file_run *use_run(request *r) {
    file_run *found = run_lock(r);
    if (!found)
        return NULL;
    bool done = found->state == RUN_DONE;
    if (found->state == RUN_FAILED)
        request_problem(r, PROBLEM_RUN_FAILED, NULL, "%s", found->why);
    else if (!done)
        request_problem(r, PROBLEM_IN_PROGRESS, NULL, "the file is still being received or analysed");
    found->users += done;
    pthread_mutex_unlock(&found->all->lock);
    return done ? found : NULL;
}

static void answer_file(request *r, bool kept) {
    file_run *run = use_run(r);
    if (!run)
        return;
    run_answer_file(r, run, kept);
    pthread_mutex_lock(&run->all->lock);
    run->users--;
    run_touch(run);
    pthread_mutex_unlock(&run->all->lock);
}

void handle_run_kept(request *r) {
    answer_file(r, true);
}

void handle_run_removed(request *r) {
    answer_file(r, false);
}

/* run_handlers.c - the requests about one run: the run as JSON, examples and groups at a threshold, the files of kept
 * and removed documents, another analysis, deletion. */
#include "server/runs.h"
#include "server/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const doppel_slice empty = {"", 0};
static const run_result no_result = {.from = RUN_STEPS};

/* What was found of a run so far. */
static const run_result *result_of(const file_run *run) {
    return run->result ? run->result : &no_result;
}

/* The similarity that a request asks for; else the run's own. */
static double similarity_asked(const request *r, const file_run *run) {
    return request_choice(r, "similarity") ? request_number(r, "similarity") : run->similarity;
}

/* Whether the run's own similarity is below all others that are known. */
static bool own_leads(const run_result *result, double own) {
    return own * 100 < result->from - 1e-6;
}

/* ---- a run as JSON; the lock is held by the caller ---- */

static void write_document(text_buffer *out, const run_result *result, uint32_t position) {
    const run_document *d = run_result_document(result, position);
    text_member_count(out, "number", position);
    text_member_string(out, "id", d ? d->id : empty);
    text_member_string(out, "title", d ? d->title : empty);
}

static void write_group(text_buffer *out, const run_result *result, const run_group *g) {
    text_put(out, "{");
    write_document(out, result, g->kept);
    text_member_count(out, "size", g->size);
    text_member(out, "copies");
    text_put(out, "[");
    for (int i = 0; i < g->members; i++) {
        text_put(out, i ? ",{" : "{");
        write_document(out, result, g->member[i]);
        text_member_share(out, "similarity", (double)g->similarity[i]);
        text_put(out, "}");
    }
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

static void write_run(text_buffer *out, const file_run *r) {
    static const char *const states[] = {"receiving", "analysing", "done", "failed"};
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
    text_member_time(out, "expires", r->began + r->all->service->options.run_ttl);
    write_result(out, result_of(r), r->similarity);
    text_put(out, "}");
}

void run_answer(request *r, const file_run *shown, int status) {
    write_run(&r->answer, shown);
    request_answer(r, status);
}

/* ---- a run ---- */

/* The run of a request, with the lock held; NULL: a problem is the answer, and the lock is not held. */
static file_run *lock_run(request *r) {
    runs *all = &r->service->runs;
    pthread_mutex_lock(&all->lock);
    file_run *found = runs_find(all, r->id, r->id_length);
    if (found)
        return found;
    pthread_mutex_unlock(&all->lock);
    request_problem(r, PROBLEM_NO_RUN, NULL, "it may have been deleted: a run lasts for %llu seconds",
                    (unsigned long long)r->service->options.run_ttl);
    return NULL;
}

void handle_show_run(request *r) {
    const file_run *found = lock_run(r);
    if (!found)
        return;
    run_answer(r, found, 200);
    pthread_mutex_unlock(&found->all->lock);
}

void handle_run_events(request *r) {
    handle_show_run(r);
}

void handle_delete_run(request *r) {
    file_run *found = lock_run(r);
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
    run_result_free(run->result);
    free(run->result);
    free(run->text_key);
    free(run->id_key);
    run->result = NULL;
    run->text_key = text_key;
    run->id_key = id_key;
    run->similarity = similarity;
    bool started = run_start(run);
    run->state = started ? RUN_ANALYSING : RUN_FAILED;
    snprintf(run->why, sizeof run->why, "%s", started ? "" : "the server cannot start a thread for this now");
    run_change(run);
    return started;
}

void handle_repeat_run(request *r) {
    file_run *found = lock_run(r);
    if (!found)
        return;
    const char *text = request_choice(r, "textKey"), *id = request_choice(r, "idKey");
    double similarity = similarity_asked(r, found);
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
    *similarity = similarity_asked(r, run);
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

void handle_run_groups(request *r) {
    const file_run *found = lock_run(r);
    double similarity;
    if (!found)
        return;
    const run_result *result = result_of(found);
    const run_step *step = step_of(r, found, result, &similarity);
    text_put(&r->answer, "{");
    text_member_number(&r->answer, "similarity", similarity);
    text_member_count(&r->answer, "documents", result->documents);
    write_step(&r->answer, result, step);
    write_largest(&r->answer, result, step, (int)request_number(r, "limit"));
    text_put(&r->answer, "}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- two documents with their texts ---- */

static void write_side(text_buffer *out, const char *name, const run_result *result, uint32_t position) {
    const run_document *d = run_result_document(result, position);
    text_buffer text = {0};
    text_member(out, name);
    text_put(out, "{");
    write_document(out, result, position);
    if (d && !run_document_text(result, d, &text))
        out->failed = true;
    text_member_string(out, "text", text.length ? (doppel_slice){text.data, text.length} : empty);
    text_member_bool(out, "cut", d && d->cut);
    text_put(out, "}");
    text_free(&text);
}

void handle_run_pair(request *r) {
    const file_run *found = lock_run(r);
    if (!found)
        return;
    const run_result *result = result_of(found);
    uint32_t a = (uint32_t)request_number(r, "a"), b = (uint32_t)request_number(r, "b");
    if (run_result_document(result, a) && run_result_document(result, b)) {
        text_put(&r->answer, "{");
        write_side(&r->answer, "a", result, a);
        write_side(&r->answer, "b", result, b);
        text_put(&r->answer, "}");
        request_answer(r, 200);
    } else {
        request_problem(r, PROBLEM_NO_DOCUMENT, NULL,
                        "only the documents of the largest groups and of examples can be shown, by their `number`");
    }
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- examples: pairs at a threshold ---- */

static void write_example(text_buffer *out, const run_result *result, const doppel_edge *e) {
    text_put(out, out->data[out->length - 1] == '[' ? "{" : ",{");
    text_member_share(out, "similarity", (double)e->similarity);
    write_side(out, "a", result, e->a);
    write_side(out, "b", result, e->b);
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
    const file_run *found = lock_run(r);
    if (!found)
        return;
    float threshold = (float)similarity_asked(r, found);
    text_put(&r->answer, "{\"examples\":[");
    if (!r->answer.failed)
        write_examples(&r->answer, result_of(found), threshold, (int)request_number(r, "limit"));
    text_put(&r->answer, "]}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- the files of kept and removed documents, as `doppel dedup` writes them ---- */

/* A file that is written of a run that is done, at a threshold. */
typedef struct output_file {
    request *request;
    file_run *run;
    double similarity;
    text_buffer line, id, record;
    text_buffer path, name; /* of the run's file, as JSON strings */
    doppel_error error;
} output_file;

static doppel_slice without_quotes(const text_buffer *string) {
    return (doppel_slice){string->data + 1, string->length - 2};
}

/* Writes a record; where an id was made of the file's path on the server, its name replaces the path. */
static doppel_status put_record(output_file *o, doppel_slice record) {
    spool *to = o->request->spool;
    doppel_slice shown = run_replace_path(record, without_quotes(&o->path), without_quotes(&o->name), &o->record);
    if (o->record.failed)
        return DOPPEL_ERROR_MEMORY;
    spool_write(to, shown.data, shown.length);
    spool_write(to, "\n", 1);
    return to->failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static doppel_slice id_of(output_file *o, const doppel_batch *batch, uint64_t position) {
    size_t length = doppel_batch_id(batch, position, o->id.data, o->id.room);
    if (length > o->id.room && text_reserve(&o->id, length))
        doppel_batch_id(batch, position, o->id.data, o->id.room);
    return (doppel_slice){o->id.data ? o->id.data : "", o->id.failed ? 0 : length};
}

/* A line of --removed. */
static doppel_status write_removed(output_file *o, const doppel_batch *batch, const doppel_near *near) {
    text_buffer *line = &o->line;
    text_put(line, "{");
    text_member_string(line, "id", id_of(o, batch, near->b));
    text_member_string(line, "originalId", id_of(o, batch, near->a));
    text_member_string(line, "reason", doppel_slice_of(doppel_reason_name(near->reason)));
    text_member_share(line, "similarity", near->similarity);
    text_member_distance(line, "distance", near->distance);
    text_put(line, near->verified ? "}" : ",\"verified\":false}");
    if (line->failed || o->id.failed)
        return DOPPEL_ERROR_MEMORY;
    doppel_slice made = {line->data, line->length};
    line->length = 0;
    return put_record(o, made);
}

static doppel_status make_removed(output_file *o, const doppel_batch *batch) {
    uint64_t count = doppel_batch_count(batch);
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < count && status == DOPPEL_OK; i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        if (near.a != near.b)
            status = write_removed(o, batch, &near);
    }
    return status;
}

static doppel_status take_kept(doppel_slice record, const doppel_near *near, void *user) {
    return near->a == near->b ? put_record(user, record) : DOPPEL_OK;
}

static doppel_status make_file(output_file *o, bool kept) {
    file_run *run = o->run;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = o->request->service->options.threads,
                                        .text_key = run->text_key,
                                        .id_key = run->id_key,
                                        .stop = &run->stop};
    const doppel_batch_options options = {
        .size = sizeof options, .similarity = o->similarity, .tmp = run->folder, .memory = RUN_MEMORY, .input = &reads};
    const char *path = run->path;
    doppel_batch *batch = NULL;
    pthread_mutex_lock(&run->all->analysis);
    doppel_status status = doppel_batch_create(&options, &batch, &o->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &path, 1, false, NULL, &o->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, &o->error);
    if (status == DOPPEL_OK)
        status = kept ? doppel_batch_write(batch, take_kept, o, &o->error) : make_removed(o, batch);
    doppel_batch_free(batch);
    pthread_mutex_unlock(&run->all->analysis);
    return status;
}

/* Takes the run of a request, which must be done, so that it is not freed while it is used; NULL: a problem is the
 * answer. */
static file_run *use_run(request *r) {
    file_run *found = lock_run(r);
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

/* An empty spool for a file: it counts against --max-spooled. */
static spool *create_spool(request *r, const file_run *run) {
    spool *made = spool_create(run->folder);
    if (made) {
        made->total = &r->service->spooled;
        made->most = r->service->options.max_spooled;
    }
    return made;
}

static void output_free(output_file *o) {
    text_buffer *const texts[] = {&o->line, &o->id, &o->record, &o->path, &o->name};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text_free(texts[i]);
}

static void answer_file(request *r, bool kept) {
    output_file o = {.request = r, .run = use_run(r)};
    if (!o.run)
        return;
    o.similarity = similarity_asked(r, o.run);
    r->spool = create_spool(r, o.run);
    text_string(&o.path, doppel_slice_of(o.run->path));
    text_string(&o.name, doppel_slice_of(o.run->name));
    doppel_status status = r->spool && !o.path.failed && !o.name.failed ? make_file(&o, kept) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK) {
        request_answer(r, 200);
    } else if (run_is_stopped(o.run)) {
        request_problem(r, PROBLEM_NO_RUN, NULL, "the run has been deleted");
    } else if (r->spool && r->spool->full) {
        run_no_room(r, "answers take all the space that the server has for them (--max-spooled): try again later");
    } else if (status == DOPPEL_ERROR_IO) {
        run_no_room(r, "the server has no room on its disk for this file");
    } else {
        run_replace_path_in_error(o.run, &o.error);
        request_error(r, status, &o.error);
    }
    output_free(&o);
    pthread_mutex_lock(&o.run->all->lock);
    o.run->users--;
    pthread_mutex_unlock(&o.run->all->lock);
}

void handle_run_kept(request *r) {
    answer_file(r, true);
}

void handle_run_removed(request *r) {
    answer_file(r, false);
}

/* runs.c - the list of runs: adding one, the thread that analyses it, and the thread that deletes runs and answers the
 * requests that wait for them. */
#include "server/runs.h"

#include "server/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    GROWTH = 2,               /* each step takes that many times more: all steps together read about twice the file */
    FIRST_DOCUMENTS = 500,    /* in the first step */
    FIRST_BYTES = 1 << 17,    /* received before the first step */
    MAINTENANCE_STEP = 100,   /* milliseconds */
    WAIT_MOST = 20 * 1000000, /* microseconds that a request waits for a new version */
    RETRY_SECONDS = 30        /* until a client should try again */
};

/* ---- one run ---- */

static void free_result(run_result *result) {
    run_result_free(result);
    free(result);
}

void run_result_release(runs *all, run_result *result) {
    if (!result)
        return;
    pthread_mutex_lock(&all->lock);
    bool last = !--result->users;
    pthread_mutex_unlock(&all->lock);
    if (last)
        free_result(result);
}

static void run_free(file_run *r) {
    if (r->file >= 0)
        close(r->file);
    if (r->folder)
        run_folder_remove(r->folder);
    run_result_release(r->all, r->result); /* a request may still read it */
    run_fields_free(&r->fields);
    run_unread_free(&r->left_out);
    run_unread_free(&r->unread);
    for (size_t i = 0; i < r->input_count; i++)
        free(r->inputs[i]);
    free(r->inputs);
    free(r->fields_path);
    free(r->name);
    free(r->folder);
    free(r->path);
    free(r->text_key);
    free(r->id_key);
    free(r);
}

file_run *runs_find(runs *all, const char *id, size_t length) {
    for (file_run *r = all->first; r; r = r->next)
        if (!r->deleted && strlen(r->id) == length && !memcmp(r->id, id, length))
            return r;
    return NULL;
}

void run_change(file_run *r) {
    r->version++;
    r->received_before = r->received;
    r->changed = now_microseconds();
    pthread_cond_broadcast(&r->all->change);
}

static void stop_analysis(file_run *r) {
    __atomic_store_n(&r->stop, RUN_STOP, __ATOMIC_RELAXED);
}

void run_delete(file_run *r) {
    r->deleted = true;
    stop_analysis(r);
    run_change(r);
}

void run_touch(file_run *r) {
    r->used = (uint64_t)time(NULL);
}

/* The library reads it in the same way, without the lock. */
bool run_is_stopped(const file_run *r) {
    return __atomic_load_n(&r->stop, __ATOMIC_RELAXED) == RUN_STOP;
}

/* ---- messages of the library, as clients see them ---- */

doppel_slice run_replace_path(doppel_slice text, doppel_slice path, doppel_slice name, text_buffer *to) {
    const char *from = text.data, *end = text.data + text.length;
    const char *found = text.length ? memmem(from, text.length, path.data, path.length) : NULL;
    if (!found)
        return text;
    to->length = 0;
    for (; found; found = memmem(from, (size_t)(end - from), path.data, path.length)) {
        text_add(to, from, (size_t)(found - from));
        text_add(to, name.data, name.length);
        from = found + path.length;
    }
    text_add(to, from, (size_t)(end - from));
    return to->failed ? (doppel_slice){"", 0} : (doppel_slice){to->data, to->length};
}

const char *run_shown_path(const file_run *r) {
    return r->several ? "" : r->name;
}

void run_rewrite_error(doppel_error *error, const char *path, const char *name) {
    text_buffer replaced = {0};
    doppel_slice shown =
        run_replace_path(doppel_slice_of(error->message), doppel_slice_of(path), doppel_slice_of(name), &replaced);
    if (shown.data != error->message)
        snprintf(error->message, sizeof error->message, "%.*s", (int)shown.length, shown.data);
    text_free(&replaced);
    problem_words(error->message, sizeof error->message);
}

size_t run_max_record(uint64_t file_bytes, uint64_t max_ratio) {
    uint64_t most = body_most_unpacked(file_bytes, max_ratio);
    return most < RUN_RECORD ? (size_t)most : RUN_RECORD;
}

/* ---- the thread that analyses a run ---- */

/* Records why a run failed, without the server's folders, which messages about files name; of several files with the
 * one that is at fault. */
static void set_failure(file_run *r, doppel_status status, doppel_error *error) {
    const char *why = error->message[0] ? error->message : doppel_status_name(status);
    size_t folder = strlen(r->path);
    bool is_named = r->several && !strncmp(error->file, r->path, folder) && error->file[folder];
    run_rewrite_error(error, r->path, run_shown_path(r));
    if (status == DOPPEL_ERROR_IO)
        why = "the disk of the server is full or cannot be read";
    snprintf(r->why, sizeof r->why, "%s%s%s", is_named ? error->file + folder : "", is_named ? ": " : "", why);
}

/* Replaces the result of a run, or ends the run, which has none if it failed; returns whether it has ended. Then the
 * thread has, too: what it does afterwards needs neither the run nor the lock, so that a thread that holds the lock may
 * wait for it. */
static bool publish(file_run *r, run_result *result, doppel_status status, doppel_error *error) {
    runs *all = r->all;
    run_fields fields = {0}, old_fields;
    run_unread_list unread = {0};
    if (status != DOPPEL_OK && result) {
        unread = result->unread;
        result->unread = (run_unread_list){0};
        free_result(result);
        result = NULL;
    }
    run_fields_read(r->fields_path, &fields);
    pthread_mutex_lock(&all->lock);
    old_fields = r->fields;
    r->fields = fields;
    run_result *old = r->result;
    bool ended = !result || result->whole;
    r->result = result;
    run_unread_free(&r->unread);
    r->unread = unread;
    if (ended && status != DOPPEL_OK)
        set_failure(r, status, error);
    if (ended)
        r->state = status == DOPPEL_OK ? RUN_DONE : RUN_FAILED;
    r->thread_ended = ended;
    run_touch(r);
    run_change(r);
    bool unused = old && !--old->users; /* no request reads it */
    pthread_mutex_unlock(&all->lock);
    if (unused)
        free_result(old);
    run_fields_free(&old_fields);
    return ended;
}

/* Waits until this many bytes of the file, or all of it, have arrived; returns whether it is all. */
static bool wait_for_bytes(file_run *r, uint64_t bytes) {
    runs *all = r->all;
    pthread_mutex_lock(&all->lock);
    while (!run_is_stopped(r) && !r->received_all && r->received < bytes)
        pthread_cond_wait(&all->change, &all->lock);
    bool whole = r->received_all;
    pthread_mutex_unlock(&all->lock);
    return whole;
}

/* Whether all of several files have rows of the same columns, which then stay rows. */
static void find_rows(file_run *r) {
    const doppel_input_options reads = {
        .size = sizeof reads, .text_key = r->text_key, .id_key = r->id_key, .stop = &r->stop};
    const doppel_batch_options options = {
        .size = sizeof options, .tmp = r->folder, .memory = RUN_MEMORY, .input = &reads};
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    const char *rows = NULL, *format;
    if (doppel_batch_create(&options, &batch, &error) == DOPPEL_OK &&
        doppel_batch_plan_rows(batch, (const char *const *)r->inputs, r->input_count, &error) == DOPPEL_OK &&
        (format = doppel_batch_row_format(batch)))
        rows = !strcmp(format, "CSV") ? ".csv" : !strcmp(format, "TSV") ? ".tsv" : NULL;
    doppel_batch_free(batch);
    pthread_mutex_lock(&r->all->lock);
    r->rows = rows;
    pthread_mutex_unlock(&r->all->lock);
}

/* Analyses the first `limit` documents, 0: all of them, from a threshold on, which may become a higher one. NULL: no
 * memory, or the run was stopped. */
static run_result *analyse(file_run *r, uint64_t limit, int *from, doppel_status *status, doppel_error *error) {
    run_result *result = calloc(1, sizeof *result);
    const run_input input = {.inputs = (const char *const *)r->inputs,
                             .input_count = r->input_count,
                             .several = r->several,
                             .path = r->path,
                             .name = run_shown_path(r),
                             .tmp = r->folder,
                             .similarity = r->similarity,
                             .text_key = r->text_key,
                             .id_key = r->id_key,
                             .threads = r->all->service->options.threads,
                             .limit = limit,
                             .from = *from,
                             .stop = &r->stop};
    *status = DOPPEL_ERROR_MEMORY;
    pthread_mutex_lock(&r->all->analysis);
    if (result)
        *status = run_analyse(&input, result, error);
    if (*status == DOPPEL_OK && r->several && result->whole)
        find_rows(r);
    if (result)
        result->users = 1;
    if (*status == DOPPEL_OK)
        *from = result->from;
    pthread_mutex_unlock(&r->all->analysis);
    if (run_is_stopped(r)) {
        free_result(result);
        return NULL;
    }
    return result;
}

static void *analyse_in_steps(void *user) {
    file_run *r = user;
    uint64_t documents = FIRST_DOCUMENTS, bytes = FIRST_BYTES;
    int from = 0;
    bool to_the_end = false;
    for (; !run_is_stopped(r); documents *= GROWTH, bytes *= GROWTH) {
        doppel_error error = {0};
        doppel_status status;
        /* Several files are read in the order of their names, not in which they arrive: all are needed. */
        bool whole = wait_for_bytes(r, r->several ? UINT64_MAX : bytes);
        if (run_is_stopped(r))
            break;
        /* The last step reads to the end, so that an unusable file is refused. */
        uint64_t limit = to_the_end || (whole && r->received <= GROWTH * bytes) ? 0 : documents;
        run_result *result = analyse(r, limit, &from, &status, &error);
        if (run_is_stopped(r))
            break;
        /* With a limit, a file is not refused however many of its records are bad, or if its end is missing. */
        to_the_end = whole && limit && status == DOPPEL_OK && result->whole && (result->bad || result->cut);
        if (result && (!whole || to_the_end))
            result->whole = false;
        if (status != DOPPEL_OK && (limit || !whole)) { /* the beginning of a file may be unusable by itself */
            free_result(result);
        } else if (publish(r, result, status, &error)) {
            return NULL;
        }
    }
    pthread_mutex_lock(&r->all->lock);
    r->thread_ended = true;
    pthread_cond_broadcast(&r->all->change);
    pthread_mutex_unlock(&r->all->lock);
    return NULL;
}

bool run_start(file_run *r) {
    if (r->has_thread)
        pthread_join(r->thread, NULL);
    r->thread_ended = false;
    r->has_thread = !pthread_create(&r->thread, NULL, analyse_in_steps, r);
    r->thread_ended = !r->has_thread;
    return r->has_thread;
}

/* ---- the thread that deletes runs, and answers the requests that wait for them ---- */

static bool has_ended(const file_run *r) {
    return r->deleted || r->state == RUN_DONE || r->state == RUN_FAILED;
}

void runs_wait(request *r) {
    runs *all = &r->service->runs;
    pthread_mutex_lock(&all->lock);
    file_run *found = runs_find(all, r->id, r->id_length);
    bool waits = found && found->version <= (uint64_t)request_number(r, "after") && !has_ended(found) &&
                 !atomic_load(&r->service->draining);
    if (waits) {
        r->next = found->waiting;
        found->waiting = r;
    }
    pthread_mutex_unlock(&all->lock);
    if (!waits)
        work_on(&r, 1);
}

void runs_wait_for_end(file_run *run, request *r) {
    runs *all = run->all;
    pthread_mutex_lock(&all->lock);
    r->next = run->waiting;
    run->waiting = r;
    pthread_cond_broadcast(&all->change);
    pthread_mutex_unlock(&all->lock);
}

/* Whether a request that waits for a run still has to. */
static bool waits_on(const file_run *r, const request *one, uint64_t now) {
    if (one->waits)
        return !has_ended(r);
    return r->version <= (uint64_t)request_number(one, "after") && !has_ended(r) && now - one->began < WAIT_MOST;
}

/* Moves the requests that need not wait any longer from a run to a list. The lock is held by the caller. */
static void take_waiting(file_run *r, bool all_of_them, request **list) {
    uint64_t now = now_microseconds();
    for (request **at = &r->waiting; *at;) {
        request *one = *at;
        if (!all_of_them && waits_on(r, one, now)) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = *list;
        *list = one;
    }
}

static void answer_all(request *list) {
    while (list) {
        request *next = list->next;
        if (list->waits)
            workers_add(&list->service->makers, list);
        else
            work_on(&list, 1);
        list = next;
    }
}

/* Takes the runs that can be freed off the list. The lock is held by the caller. */
static file_run *take_deleted(runs *all) {
    file_run *taken = NULL;
    for (file_run **at = &all->first; *at;) {
        file_run *r = *at;
        if (!r->deleted || !r->thread_ended || r->users || r->waiting) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        all->count--;
        r->next = taken;
        taken = r;
    }
    return taken;
}

static void free_all(file_run *list) {
    while (list) {
        file_run *next = list->next;
        if (list->has_thread)
            pthread_join(list->thread, NULL);
        run_free(list);
        list = next;
    }
}

/* The run that is deleted where another one needs its place: of those that have ended and have not been requested for
 * --run-idle seconds, the least recently requested one; NULL: there is none. */
static file_run *find_idle(runs *all) {
    uint64_t now = (uint64_t)time(NULL), idle = all->service->options.run_idle;
    file_run *found = NULL;
    for (file_run *r = all->first; r; r = r->next)
        if (!r->deleted && has_ended(r) && r->thread_ended && !r->users && !r->waiting && now >= r->used + idle &&
            (!found || r->used <= found->used))
            found = r;
    return found;
}

static size_t count_live(const runs *all) {
    size_t count = 0;
    for (const file_run *r = all->first; r; r = r->next)
        count += !r->deleted;
    return count;
}

/* Whether another run may be added. A deleted run leaves its place at once, although its thread may take a while to
 * end; there are at most as many of those as live ones. */
static bool has_room(const runs *all) {
    uint64_t most = all->service->options.max_runs;
    return count_live(all) < most && all->count < 2 * most;
}

/* Makes room for another run. Gives the runs that have to be freed. The lock is held by the caller. */
static file_run *make_room(runs *all) {
    file_run *idle;
    if (has_room(all))
        return NULL;
    file_run *deleted = take_deleted(all);
    if (count_live(all) < all->service->options.max_runs || !(idle = find_idle(all)))
        return deleted;
    run_delete(idle);
    file_run *more = take_deleted(all);
    more->next = deleted; /* it is the only one */
    return more;
}

static void *do_maintenance(void *user) {
    runs *all = user;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        struct timespec until = milliseconds_from_now(MAINTENANCE_STEP);
        pthread_cond_timedwait(&all->change, &all->lock, &until);
        bool draining = atomic_load(&all->service->draining);
        uint64_t now = (uint64_t)time(NULL);
        request *waiting = NULL;
        for (file_run *r = all->first; r; r = r->next) {
            if (!r->deleted && now >= r->began + all->service->options.run_ttl)
                run_delete(r);
            /* Nobody gets its result any more, and the files of other runs, which are still sent, wait for it. */
            if (draining && r->state == RUN_ANALYSING)
                stop_analysis(r);
            if (r->received != r->received_before && now_microseconds() - r->changed >= MAINTENANCE_STEP * 1000)
                run_change(r);
            take_waiting(r, draining, &waiting);
        }
        file_run *deleted = take_deleted(all);
        pthread_mutex_unlock(&all->lock);
        answer_all(waiting);
        free_all(deleted);
        pthread_mutex_lock(&all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* Starts the thread with the first run. The lock is held by the caller. */
static bool start_maintenance(runs *all) {
    all->has_maintenance = all->has_maintenance || !pthread_create(&all->maintenance, NULL, do_maintenance, all);
    return all->has_maintenance;
}

/* ---- adding a run ---- */

/* Ids have characters that a file name may have. */
static bool id_allowed(const char *id) {
    size_t length = strlen(id);
    for (size_t i = 0; i < length; i++)
        if (!(id[i] >= 'a' && id[i] <= 'z') && !(id[i] >= '0' && id[i] <= '9') && id[i] != '-')
            return false;
    return length >= RUN_ID_LEAST && length <= RUN_ID;
}

static bool make_id(char id[RUN_ID + 1]) {
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(id + 2 * i, 3, "%02x", bytes[i]);
    return true;
}

/* Names of formats have one dot, so it is the last extension or the one before. */
void run_find_ending(const char *name, const char *type, char ending[RUN_ENDING]) {
    const char *last = name ? strrchr(name, '.') : NULL,
               *before = last ? memrchr(name, '.', (size_t)(last - name)) : NULL;
    for (int i = 0; i < 2; i++) {
        const char *from = i ? before : last;
        char path[RUN_ENDING + 5];
        size_t length = !from ? 0 : i ? (size_t)(last - from) : strlen(from);
        if (!length || length >= RUN_ENDING)
            continue;
        for (size_t k = 0; k < length; k++)
            ending[k] = (char)(from[k] >= 'A' && from[k] <= 'Z' ? from[k] + ('a' - 'A') : from[k]);
        ending[length] = 0;
        snprintf(path, sizeof path, "input%s", ending);
        if (doppel_input_format(path))
            return;
    }
    strcpy(ending, !strncasecmp(type, "text/csv", 8)                     ? ".csv"
                   : !strncasecmp(type, "text/tab-separated-values", 25) ? ".tsv"
                                                                         : "");
}

static bool copy_text(const char *from, char **to) {
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

void run_no_room(request *r, const char *what) {
    request_problem(r, PROBLEM_FULL, NULL, "%s", what);
    r->retry_after = RETRY_SECONDS;
}

/* Where the file of a run is; false: no memory. */
static bool set_file(const request *r, file_run *made) {
    char ending[RUN_ENDING];
    run_find_ending(request_choice(r, "name"), r->sent_type, ending);
    made->rows = !strcmp(ending, ".csv")   ? ".csv"
                 : !strcmp(ending, ".tsv") ? ".tsv"
                 : !strcmp(ending, ".tab") ? ".tab"
                                           : NULL;
    made->inputs = calloc(1, sizeof *made->inputs);
    if (!made->inputs || asprintf(&made->path, "%s/input%s", made->folder, ending) < 0 ||
        !copy_text(made->path, &made->inputs[0]))
        return false;
    made->input_count = 1;
    return copy_text(made->path, &made->fields_path);
}

/* The same for the folder of several files. */
static bool set_folder(file_run *made) {
    return asprintf(&made->path, "%s/input/", made->folder) >= 0;
}

/* Fills in a new run from the parameters of its request; false: a problem is the answer. The lock is held. */
static bool fill_in(runs *all, request *r, file_run *made) {
    const char *id = request_choice(r, "id"), *name = request_choice(r, "name");
    made->several = request_has_type(r->sent_type, "application/x-tar");
    made->all = all;
    made->similarity = request_number(r, "similarity");
    made->began = made->used = (uint64_t)time(NULL);
    made->file = -1;
    if (id && runs_find(all, id, strlen(id))) {
        request_problem(r, PROBLEM_IN_PROGRESS, NULL, "there is a run with this id: delete it first, or use another");
        return false;
    }
    snprintf(made->id, sizeof made->id, "%s", id ? id : "");
    if ((!id && !make_id(made->id)) || !copy_text(name ? name : "file", &made->name) ||
        !copy_text(request_choice(r, "textKey"), &made->text_key) ||
        !copy_text(request_choice(r, "idKey"), &made->id_key) ||
        asprintf(&made->folder, "%s/%llu", all->folder, ++all->folders) < 0 ||
        !(made->several ? set_folder(made) : set_file(r, made))) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    return true;
}

/* Makes the folder, the file and the thread of a run; false: a problem is the answer. */
static bool begin(request *r, file_run *made) {
    if (mkdir(made->folder, 0700) ||
        (made->several ? mkdir(made->path, 0700)
                       : (made->file = open(made->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0)) {
        run_no_room(r, "the server cannot create a temporary file");
        return false;
    }
    if (run_start(made))
        return true;
    request_problem(r, PROBLEM_NO_MEMORY, NULL, "the server cannot start a thread now");
    return false;
}

file_run *runs_add(runs *all, request *r) {
    file_run *made = NULL;
    const char *id = request_choice(r, "id");
    if (id && !id_allowed(id)) {
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "an id must have %d to %d characters of a-z, 0-9 and -",
                        RUN_ID_LEAST, RUN_ID);
        return NULL;
    }
    pthread_mutex_lock(&all->lock);
    file_run *deleted = make_room(all);
    if (!has_room(all)) {
        run_no_room(r,
                    "the server holds the maximum number of runs (--max-runs), and all are new or in use: delete one, "
                    "or try again later");
    } else if (!run_folders_make(all) || !start_maintenance(all)) {
        run_no_room(r, "the server cannot create a temporary folder");
    } else if (!(made = calloc(1, sizeof *made))) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    } else if (!fill_in(all, r, made) || !begin(r, made)) {
        run_free(made);
        made = NULL;
    } else {
        made->next = all->first;
        made->users = 1;
        all->first = made;
        all->count++;
    }
    pthread_mutex_unlock(&all->lock);
    free_all(deleted);
    return made;
}

char *run_folder_path(runs *all, request *r) {
    char *path = NULL;
    pthread_mutex_lock(&all->lock);
    if (!run_folders_make(all))
        run_no_room(r, "the server cannot create a temporary folder");
    else if (asprintf(&path, "%s/%llu", all->folder, ++all->folders) < 0)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    pthread_mutex_unlock(&all->lock);
    return r->done ? NULL : path;
}

/* ---- all runs ---- */

void runs_open(runs *all, service *s) {
    *all = (runs){.service = s, .folder_lock = -1};
    pthread_mutex_init(&all->lock, NULL);
    pthread_mutex_init(&all->analysis, NULL);
    pthread_mutex_init(&all->decision, NULL);
    pthread_cond_init(&all->change, NULL);
    if (s->options.tmp)
        run_folders_remove_old(s->options.tmp);
}

void runs_close(runs *all) {
    if (!all->service)
        return;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    for (file_run *r = all->first; r; r = r->next)
        run_delete(r);
    pthread_cond_broadcast(&all->change);
    pthread_mutex_unlock(&all->lock);
    if (all->has_maintenance)
        pthread_join(all->maintenance, NULL);
    free_all(all->first);
    if (all->folder_lock >= 0)
        close(all->folder_lock);
    if (all->folder)
        run_folder_remove(all->folder);
    free(all->folder);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->analysis);
    pthread_mutex_destroy(&all->decision);
    pthread_cond_destroy(&all->change);
    *all = (runs){0};
}

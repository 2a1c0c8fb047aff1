/* runs.c - files that are deduplicated for the caller: their folders, their uploads, the thread of each, and the
 * requests about them. */
#include "server/runs.h"

#include "common/message.h"
#include "server/service.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    ENOUGH = 1 << 18,         /* bytes that are enough to call a worker */
    FIRST_DOCUMENTS = 500,    /* that are analysed first; then four times as many, and so on */
    FIRST_BYTES = 1 << 17,    /* that must have come before; likewise */
    KEEPER_STEP = 100,        /* milliseconds */
    WAIT_MOST = 20 * 1000000, /* microseconds that a request waits for news */
    QUIET_MOST = 30,          /* seconds until a client should try again */
    FIRST = 10,               /* bytes of a file that say how it is packed */
};

/* ---- folders ---- */

static const char folder_prefix[] = "doppel-runs-";

/* Removes a folder with all that is in it; links are not followed. */
static void remove_tree(int parent, const char *name) {
    int here = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = here >= 0 ? fdopendir(here) : NULL;
    struct dirent *found;
    while (folder && (found = readdir(folder))) {
        if (!strcmp(found->d_name, ".") || !strcmp(found->d_name, ".."))
            continue;
        if (unlinkat(dirfd(folder), found->d_name, 0))
            remove_tree(dirfd(folder), found->d_name);
    }
    if (folder)
        closedir(folder);
    else if (here >= 0)
        close(here);
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Folders of servers that were killed: nobody holds their lock. */
static void remove_old_folders(const char *tmp) {
    DIR *folder = opendir(tmp);
    struct dirent *found;
    while (folder && (found = readdir(folder))) {
        char lock[512];
        if (strncmp(found->d_name, folder_prefix, sizeof folder_prefix - 1) != 0 ||
            snprintf(lock, sizeof lock, "%s/lock", found->d_name) >= (int)sizeof lock)
            continue;
        int file = openat(dirfd(folder), lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        if (file >= 0 && !flock(file, LOCK_EX | LOCK_NB))
            remove_tree(dirfd(folder), found->d_name);
        if (file >= 0)
            close(file);
    }
    if (folder)
        closedir(folder);
}

/* Makes the folder of all runs. The lock is held by the caller. */
static bool make_folder(runs *all) {
    const char *tmp = all->service->options.tmp;
    char *lock = NULL;
    if (all->folder)
        return true;
    if (!tmp || asprintf(&all->folder, "%s/%sXXXXXX", tmp, folder_prefix) < 0) {
        all->folder = NULL;
        return false;
    }
    remove_old_folders(tmp);
    if (mkdtemp(all->folder) && asprintf(&lock, "%s/lock", all->folder) >= 0) {
        all->locked = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        free(lock);
        if (all->locked >= 0 && !flock(all->locked, LOCK_EX | LOCK_NB))
            return true;
    }
    message("%s: cannot make a folder for runs: %s", all->folder, strerror(errno));
    free(all->folder);
    all->folder = NULL;
    return false;
}

/* ---- one run ---- */

static void run_free(file_run *r) {
    if (r->file >= 0)
        close(r->file);
    if (r->folder)
        remove_tree(AT_FDCWD, r->folder);
    run_result_free(r->result);
    free(r->result);
    free(r->name);
    free(r->folder);
    free(r->path);
    free(r->text_key);
    free(r->id_key);
    free(r);
}

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

/* What the library tells a format by, where a name has one of these endings. */
static const char *ending_of(const char *name) {
    static const char *const endings[] = {".jsonl", ".ndjson", ".json", ".csv",  ".tsv", ".tab",   ".warc",
                                          ".wet",   ".arc",    ".mbox", ".html", ".htm", ".xhtml", ".txt"};
    size_t length = name ? strlen(name) : 0;
    for (size_t i = 0; i < 2 && length; i++) {
        static const char *const packed[] = {".gz", ".zst"};
        size_t ending = strlen(packed[i]);
        length -= length > ending && !strncasecmp(name + length - ending, packed[i], ending) ? ending : 0;
    }
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i]);
        if (length >= ending && !strncasecmp(name + length - ending, endings[i], ending))
            return endings[i];
    }
    return "";
}

static bool copy_text(const char *from, char **to) {
    *to = from ? strdup(from) : NULL;
    return !from || *to;
}

static file_run *find_run(runs *all, const char *id, size_t length) {
    for (file_run *r = all->first; r; r = r->next)
        if (!r->dropped && strlen(r->id) == length && !memcmp(r->id, id, length))
            return r;
    return NULL;
}

/* Wakes the requests that wait for a change; the lock is held by the caller. */
static void has_changed(file_run *r) {
    r->version++;
    r->told = r->received;
    r->touched = now_microseconds();
    pthread_cond_broadcast(&r->all->change);
}

static void drop(file_run *r) {
    r->dropped = true;
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELAXED);
    has_changed(r);
}

/* The library reads it in the same way, without the lock. */
static bool is_stopped(const file_run *r) {
    return __atomic_load_n(&r->stop, __ATOMIC_RELAXED);
}

/* ---- the thread of a run ---- */

/* Says why a run failed. Clients must not see paths of the server. */
static void tell_failure(file_run *r, doppel_status status, const doppel_error *error) {
    const char *found = strstr(error->message, r->path);
    if (status == DOPPEL_ERROR_IO || !error->message[0])
        snprintf(r->why, sizeof r->why, "%s",
                 status == DOPPEL_ERROR_IO ? "the server has no room on its disk for this, or cannot read it back"
                                           : doppel_status_name(status));
    else if (found)
        snprintf(r->why, sizeof r->why, "%.*s%s%s", (int)(found - error->message), error->message, r->name,
                 found + strlen(r->path));
    else
        snprintf(r->why, sizeof r->why, "%s", error->message);
}

static void publish(file_run *r, run_result *result, doppel_status status, const doppel_error *error) {
    runs *all = r->all;
    pthread_mutex_lock(&all->lock);
    run_result *old = r->result;
    bool ended = r->received_all && (status != DOPPEL_OK || result->whole);
    if (status == DOPPEL_OK) {
        r->result = result;
        result = old;
    }
    if (ended && status != DOPPEL_OK)
        tell_failure(r, status, error);
    if (ended)
        r->state = status == DOPPEL_OK ? RUN_DONE : RUN_FAILED;
    has_changed(r);
    pthread_mutex_unlock(&all->lock);
    run_result_free(result);
    free(result);
}

/* Waits until enough of the file is here; whether it is all of it. */
static bool wait_for_bytes(file_run *r, uint64_t bytes) {
    runs *all = r->all;
    pthread_mutex_lock(&all->lock);
    while (!is_stopped(r) && !r->received_all && r->received < bytes)
        pthread_cond_wait(&all->change, &all->lock);
    bool whole = r->received_all;
    pthread_mutex_unlock(&all->lock);
    return whole;
}

static void *analyse(void *user) {
    file_run *r = user;
    runs *all = r->all;
    uint64_t documents = FIRST_DOCUMENTS, bytes = FIRST_BYTES;
    for (bool done = false; !done && !is_stopped(r); documents *= 4, bytes *= 4) {
        doppel_error error = {0};
        bool whole = wait_for_bytes(r, bytes);
        if (is_stopped(r))
            break;
        run_result *result = calloc(1, sizeof *result);
        pthread_mutex_lock(&all->analysing);
        /* The last step reads to the end, so that what cannot be used is refused. */
        uint64_t limit = whole && r->received <= 4 * bytes ? 0 : documents;
        const run_input input = {.path = r->path,
                                 .tmp = r->folder,
                                 .similarity = r->similarity,
                                 .text_key = r->text_key,
                                 .id_key = r->id_key,
                                 .threads = all->service->options.threads,
                                 .limit = limit,
                                 .stop = &r->stop};
        doppel_status status = result ? run_analyse(&input, result, &error) : DOPPEL_ERROR_MEMORY;
        pthread_mutex_unlock(&all->analysing);
        if (is_stopped(r)) {
            run_result_free(result);
            free(result);
            break;
        }
        if (result && !whole)
            result->whole = false;
        done = whole && (!limit || (status == DOPPEL_OK && result->whole));
        if (status != DOPPEL_OK && !done) { /* the beginning of a file need not be good for anything */
            run_result_free(result);
            free(result);
            continue;
        }
        publish(r, result, status, &error);
    }
    pthread_mutex_lock(&all->lock);
    r->thread_ended = true;
    pthread_cond_broadcast(&all->change);
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

/* ---- the keeper: deletes runs, and ends the waiting for news ---- */

/* Takes requests whose waiting is over off a run; the lock is held by the caller. */
static request *take_waiting(file_run *r, bool all_of_them) {
    uint64_t now = now_microseconds();
    request *taken = NULL;
    for (request **at = &r->waiting; *at;) {
        request *one = *at;
        bool news = r->version > (uint64_t)request_number(one, "after") || r->dropped;
        if (!news && !all_of_them && now - one->began < WAIT_MOST) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = taken;
        taken = one;
    }
    return taken;
}

static void end_waiting(request *list) {
    while (list) {
        request *next = list->next;
        work_on(&list, 1);
        list = next;
    }
}

/* Runs that can be freed, as a list. The lock is held by the caller. */
static file_run *take_ended(runs *all) {
    file_run *taken = NULL;
    for (file_run **at = &all->first; *at;) {
        file_run *r = *at;
        if (!r->dropped || !r->thread_ended || r->users || r->waiting) {
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
        pthread_join(list->thread, NULL);
        run_free(list);
        list = next;
    }
}

static void *keep(void *user) {
    runs *all = user;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        struct timespec until = milliseconds_from_now(KEEPER_STEP);
        pthread_cond_timedwait(&all->change, &all->lock, &until);
        bool draining = atomic_load(&all->service->draining);
        uint64_t now = (uint64_t)time(NULL);
        request *waiting = NULL;
        for (file_run *r = all->first; r; r = r->next) {
            if (!r->dropped && now >= r->began + all->service->options.run_ttl)
                drop(r);
            if (r->received != r->told && now_microseconds() - r->touched >= KEEPER_STEP * 1000)
                has_changed(r);
            request *taken = take_waiting(r, draining), **end = &taken;
            while (*end)
                end = &(*end)->next;
            *end = waiting;
            waiting = taken;
        }
        file_run *ended = take_ended(all);
        pthread_mutex_unlock(&all->lock);
        end_waiting(waiting);
        free_all(ended);
        pthread_mutex_lock(&all->lock);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

void runs_open(runs *all, service *s) {
    *all = (runs){.service = s, .locked = -1};
    pthread_mutex_init(&all->lock, NULL);
    pthread_mutex_init(&all->analysing, NULL);
    pthread_cond_init(&all->change, NULL);
}

void runs_close(runs *all) {
    if (!all->service)
        return;
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    for (file_run *r = all->first; r; r = r->next)
        drop(r);
    pthread_cond_broadcast(&all->change);
    pthread_mutex_unlock(&all->lock);
    if (all->keeper_runs)
        pthread_join(all->keeper, NULL);
    free_all(all->first);
    if (all->locked >= 0)
        close(all->locked);
    if (all->folder)
        remove_tree(AT_FDCWD, all->folder);
    free(all->folder);
    pthread_mutex_destroy(&all->lock);
    pthread_mutex_destroy(&all->analysing);
    pthread_cond_destroy(&all->change);
    *all = (runs){0};
}

/* ---- the file ---- */

typedef struct upload {
    file_run *run;
    text_buffer raw;   /* what came, packed or not */
    bool looked;       /* at its first bytes */
    char first[FIRST]; /* bytes that were unpacked */
    size_t first_count;
} upload;

static void no_room(request *r, const char *what) {
    request_problem(r, PROBLEM_FULL, NULL, "%s", what);
    r->retry_after = QUIET_MOST;
}

static void work(request *r);

/* Fills in a new run by the parameters of its request; false: a problem is the answer. The lock is held. */
static bool fill_in(runs *all, request *r, file_run *made) {
    const char *id = request_choice(r, "id"), *name = request_choice(r, "name");
    made->all = all;
    made->similarity = request_number(r, "similarity");
    made->began = (uint64_t)time(NULL);
    made->file = -1;
    if (id && !id_allowed(id)) {
        request_problem(r, PROBLEM_BAD_PARAMETER, NULL, "an id has %d to %d characters of a-z, 0-9 and -", RUN_ID_LEAST,
                        RUN_ID);
        return false;
    }
    if (id && find_run(all, id, strlen(id))) {
        request_problem(r, PROBLEM_IN_PROGRESS, NULL, "there is a run with this id: delete it first, or use another");
        return false;
    }
    snprintf(made->id, sizeof made->id, "%s", id ? id : "");
    if ((!id && !make_id(made->id)) || !copy_text(name ? name : "file", &made->name) ||
        !copy_text(request_choice(r, "textKey"), &made->text_key) ||
        !copy_text(request_choice(r, "idKey"), &made->id_key) ||
        asprintf(&made->folder, "%s/%llu", all->folder, ++all->folders) < 0 ||
        asprintf(&made->path, "%s/input%s", made->folder, ending_of(name)) < 0) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    return true;
}

/* Makes the folder, the file and the thread of a run; false: a problem is the answer. */
static bool start(request *r, file_run *made) {
    if (mkdir(made->folder, 0700) ||
        (made->file = open(made->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0) {
        no_room(r, "the server cannot write a file for this");
        return false;
    }
    if (!pthread_create(&made->thread, NULL, analyse, made))
        return true;
    request_problem(r, PROBLEM_NO_MEMORY, NULL, "no threads");
    return false;
}

/* Adds a run; NULL: a problem is the answer. */
static file_run *add_run(runs *all, request *r) {
    file_run *made = NULL;
    pthread_mutex_lock(&all->lock);
    if (all->count >= all->service->options.max_runs) {
        no_room(r, "the server holds as many runs as it may: delete one, or try again later");
    } else if (!make_folder(all) || (!all->keeper_runs && pthread_create(&all->keeper, NULL, keep, all))) {
        no_room(r, "the server cannot make a folder for this");
    } else {
        all->keeper_runs = true;
        made = calloc(1, sizeof *made);
        if (!made) {
            request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        } else if (!fill_in(all, r, made) || !start(r, made)) {
            run_free(made);
            made = NULL;
        } else {
            made->next = all->first;
            made->users = 1;
            all->first = made;
            all->count++;
        }
    }
    pthread_mutex_unlock(&all->lock);
    return made;
}

bool upload_begin(request *r) {
    r->upload = calloc(1, sizeof *r->upload);
    if (!r->upload) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    r->upload->run = add_run(&r->service->runs, r);
    r->work = work;
    return r->upload->run;
}

void upload_free(request *r) {
    upload *u = r->upload;
    if (!u)
        return;
    if (u->run) {
        runs *all = u->run->all;
        pthread_mutex_lock(&all->lock);
        u->run->users--;
        if (!u->run->received_all)
            drop(u->run);
        pthread_mutex_unlock(&all->lock);
    }
    text_free(&u->raw);
    free(u);
    r->upload = NULL;
}

bool upload_receive(request *r, const char *bytes, size_t length) {
    text_add(&r->upload->raw, bytes, length);
    return r->upload->raw.failed || r->upload->raw.length >= ENOUGH;
}

/* What the library tells a packed file by (dp_stream_open); CODING_UNKNOWN: bzip2 and xz, which are not unpacked here.
 */
static body_coding coding_of(const char *bytes, size_t length) {
    static const char skippable[] = "\x2a\x4d\x18"; /* after a byte of 0x50 to 0x5F */
    if (length >= 2 && !memcmp(bytes, "\x1f\x8b", 2))
        return CODING_GZIP;
    if (length >= 4 && (!memcmp(bytes, "\x28\xb5\x2f\xfd", 4) ||
                        (((unsigned char)*bytes & 0xF0) == 0x50 && !memcmp(bytes + 1, skippable, 3))))
        return CODING_ZSTD;
    if (length >= 6 && !memcmp(bytes, "\xfd\x37zXZ", 6))
        return CODING_UNKNOWN;
    bool bzip2 =
        length >= FIRST && !memcmp(bytes, "BZh", 3) &&
        (!memcmp(bytes + 4, "\x31\x41\x59\x26\x53\x59", 6) || !memcmp(bytes + 4, "\x17\x72\x45\x38\x50\x90", 6));
    return bzip2 ? CODING_UNKNOWN : CODING_PLAIN;
}

/* A packed file is unpacked here, where its size has limits, whatever its name is. */
static bool unpack(request *r) {
    upload *u = r->upload;
    if (u->looked || !u->raw.length)
        return true;
    u->looked = true;
    body_coding coding = coding_of(u->raw.data, u->raw.length);
    if (r->body.coding != CODING_PLAIN || (coding != CODING_GZIP && coding != CODING_ZSTD))
        return true;
    body_free(&r->body);
    bool fine = body_begin(&r->body, coding) == BODY_FINE;
    r->body.max_ratio = r->service->options.max_ratio;
    return fine;
}

/* What is still packed would be unpacked by the library, to any size. False: it is, and a problem is the answer. */
static bool is_unpacked(request *r, const char *bytes, size_t length) {
    upload *u = r->upload;
    while (u->first_count < sizeof u->first && length) {
        u->first[u->first_count++] = *bytes++;
        length--;
    }
    body_coding coding = coding_of(u->first, u->first_count);
    if (coding == CODING_UNKNOWN)
        request_problem(r, PROBLEM_TYPE, NULL, "bzip2 and xz are not unpacked here: send gzip, zstd or the plain file");
    else if (coding != CODING_PLAIN)
        request_problem(r, PROBLEM_TYPE, NULL, "the file is packed twice: unpack it once");
    return coding == CODING_PLAIN;
}

/* What was unpacked. */
static bool take(void *user, const char *bytes, size_t length) {
    request *r = user;
    upload *u = r->upload;
    uint64_t most = r->service->options.max_run;
    if (!is_unpacked(r, bytes, length))
        return false;
    if (length > most - u->run->received) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes, unpacked", (unsigned long long)most);
        return false;
    }
    for (size_t done = 0; done < length;) {
        ssize_t wrote = write(u->run->file, bytes + done, length - done);
        if (wrote < 0 && errno != EINTR) {
            no_room(r, "the server has no room on its disk for this file");
            return false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    pthread_mutex_lock(&u->run->all->lock);
    u->run->received += length;
    bool dropped = u->run->dropped;
    pthread_cond_broadcast(&u->run->all->change);
    pthread_mutex_unlock(&u->run->all->lock);
    if (dropped)
        request_problem(r, PROBLEM_NO_RUN, NULL, "the run was deleted while its file arrived");
    return !dropped;
}

static void work(request *r) {
    upload *u = r->upload;
    body_result result = BODY_NO_MEMORY;
    if (!u->raw.failed && unpack(r))
        result = body_add(&r->body, u->raw.data, u->raw.length, take, r);
    u->raw.length = 0;
    if (r->done)
        return;
    if (result == BODY_BROKEN)
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the file cannot be unpacked");
    else if (result == BODY_TOO_DENSE)
        request_problem(r, PROBLEM_TOO_LARGE, NULL,
                        "the file unpacks to more than %llu times its size: send it unpacked",
                        (unsigned long long)r->body.max_ratio);
    else if (result != BODY_FINE)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
}

/* ---- a run as JSON; the lock is held by the caller ---- */

static void write_document(text_buffer *out, const run_result *result, uint32_t position) {
    const run_document *d = run_result_document(result, position);
    text_member_string(out, "id", d ? d->id : (doppel_slice){"", 0});
    text_member_string(out, "title", d ? d->title : (doppel_slice){"", 0});
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

static void write_result(text_buffer *out, const file_run *r) {
    static const run_result nothing;
    const run_result *found = r->result ? r->result : &nothing;
    text_member_count(out, "documents", found->documents);
    text_member_count(out, "bad", found->bad);
    text_member_bool(out, "whole", found->whole);
    text_member_count(out, "kept", found->documents - found->removed);
    text_member_count(out, "removed", found->removed);
    text_member_count(out, "identical", found->identical);
    text_member_count(out, "groups", found->groups);
    text_member(out, "thresholds");
    text_put(out, "[");
    for (int step = found->from; r->result && step < RUN_STEPS; step++)
        text_format(out, "%s{\"similarity\":%.2f,\"removed\":%llu}", step > found->from ? "," : "", step / 100.0,
                    (unsigned long long)found->removed_at[step]);
    text_put(out, "]");
    text_member(out, "largest");
    text_put(out, "[");
    for (int i = 0; i < found->largest_count; i++) {
        text_put(out, i ? "," : "");
        write_group(out, found, &found->largest[i]);
    }
    text_put(out, "]");
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
    text_member_time(out, "expires", r->began + r->all->service->options.run_ttl);
    write_result(out, r);
    text_put(out, "}");
}

/* ---- requests ---- */

static void answer_run(request *r, const file_run *shown, int status) {
    write_run(&r->answer, shown);
    request_answer(r, status);
}

void handle_create_run(request *r) {
    file_run *made = r->upload->run;
    work(r);
    if (!r->done && !body_whole(&r->body))
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the packed file is truncated");
    if (r->done)
        return;
    close(made->file);
    made->file = -1;
    pthread_mutex_lock(&made->all->lock);
    made->received_all = true;
    made->state = made->state == RUN_RECEIVING ? RUN_ANALYSING : made->state;
    has_changed(made);
    snprintf(r->location, sizeof r->location, "/v1/runs/%s", made->id);
    answer_run(r, made, 201);
    pthread_mutex_unlock(&made->all->lock);
}

/* The run of a request, with the lock held; NULL: a problem is the answer, and the lock is not held. */
static file_run *lock_run(request *r) {
    runs *all = &r->service->runs;
    pthread_mutex_lock(&all->lock);
    file_run *found = find_run(all, r->id, r->id_length);
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
    answer_run(r, found, 200);
    pthread_mutex_unlock(&found->all->lock);
}

void handle_run_events(request *r) {
    handle_show_run(r);
}

void runs_wait(request *r) {
    runs *all = &r->service->runs;
    pthread_mutex_lock(&all->lock);
    file_run *found = find_run(all, r->id, r->id_length);
    bool waits = found && found->version <= (uint64_t)request_number(r, "after") && found->state != RUN_DONE &&
                 found->state != RUN_FAILED && !atomic_load(&r->service->draining);
    if (waits) {
        r->next = found->waiting;
        found->waiting = r;
    }
    pthread_mutex_unlock(&all->lock);
    if (!waits)
        work_on(&r, 1);
}

void handle_delete_run(request *r) {
    file_run *found = lock_run(r);
    if (!found)
        return;
    drop(found);
    text_put(&r->answer, "{");
    text_member_string(&r->answer, "id", doppel_slice_of(found->id));
    text_member_bool(&r->answer, "removed", true);
    text_put(&r->answer, "}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- examples: pairs at a threshold ---- */

static void write_side(text_buffer *out, const char *name, const run_result *result, uint32_t position) {
    const run_document *d = run_result_document(result, position);
    text_member(out, name);
    text_put(out, "{");
    write_document(out, result, position);
    text_member_string(out, "text", d ? d->text : (doppel_slice){"", 0});
    text_member_bool(out, "cut", d && d->cut);
    text_put(out, "}");
}

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
    static const run_result nothing;
    if (!found)
        return;
    double threshold = request_choice(r, "similarity") ? request_number(r, "similarity") : found->similarity;
    text_put(&r->answer, "{\"examples\":[");
    if (!r->answer.failed)
        write_examples(&r->answer, found->result ? found->result : &nothing, (float)threshold,
                       (int)request_number(r, "limit"));
    text_put(&r->answer, "]}");
    request_answer(r, 200);
    pthread_mutex_unlock(&found->all->lock);
}

/* ---- the files: what `doppel dedup` writes ---- */

/* What is made of a run that is done, at a threshold. */
typedef struct making {
    request *request;
    file_run *run;
    double similarity;
    text_buffer line, id;
    doppel_error error;
} making;

static doppel_slice id_of(making *m, const doppel_batch *batch, uint64_t position) {
    size_t length = doppel_batch_id(batch, position, m->id.data, m->id.room);
    if (length > m->id.room && text_reserve(&m->id, length))
        doppel_batch_id(batch, position, m->id.data, m->id.room);
    return (doppel_slice){m->id.data ? m->id.data : "", m->id.failed ? 0 : length};
}

/* A line of --removed. */
static void write_removed(making *m, const doppel_batch *batch, const doppel_near *near) {
    text_buffer *line = &m->line;
    text_put(line, "{");
    text_member_string(line, "id", id_of(m, batch, near->b));
    text_member_string(line, "originalId", id_of(m, batch, near->a));
    text_member_string(line, "reason", doppel_slice_of(doppel_reason_name(near->reason)));
    text_member_share(line, "similarity", near->similarity);
    text_member_distance(line, "distance", near->distance);
    text_put(line, near->verified ? "}\n" : ",\"verified\":false}\n");
    if (line->failed || m->id.failed)
        m->request->spool->failed = true;
    else
        spool_write(m->request->spool, line->data, line->length);
    line->length = 0;
}

static doppel_status make_removed(making *m, const doppel_batch *batch) {
    uint64_t count = doppel_batch_count(batch);
    for (uint64_t i = 0; i < count && !m->request->spool->failed; i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        if (near.a != near.b)
            write_removed(m, batch, &near);
    }
    return m->request->spool->failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static doppel_status take_kept(doppel_slice record, const doppel_near *near, void *user) {
    spool *to = user;
    if (near->a == near->b) {
        spool_write(to, record.data, record.length);
        spool_write(to, "\n", 1);
    }
    return to->failed ? DOPPEL_ERROR_IO : DOPPEL_OK;
}

static doppel_status make_file(making *m, bool kept) {
    file_run *r = m->run;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = m->request->service->options.threads,
                                        .text_key = r->text_key,
                                        .id_key = r->id_key,
                                        .stop = &r->stop};
    const doppel_batch_options options = {
        .size = sizeof options, .similarity = m->similarity, .tmp = r->folder, .memory = RUN_MEMORY, .input = &reads};
    const char *path = r->path;
    doppel_batch *batch = NULL;
    pthread_mutex_lock(&r->all->analysing);
    doppel_status status = doppel_batch_create(&options, &batch, &m->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, &path, 1, false, NULL, &m->error);
    if (status == DOPPEL_OK)
        status = doppel_batch_decide(batch, &m->error);
    if (status == DOPPEL_OK)
        status = kept ? doppel_batch_write(batch, take_kept, m->request->spool, &m->error) : make_removed(m, batch);
    doppel_batch_free(batch);
    pthread_mutex_unlock(&r->all->analysing);
    return status;
}

/* Takes the run of a request that is done, so that it stays while it is used; NULL: a problem is the answer. */
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

static void answer_file(request *r, bool kept) {
    making m = {.request = r, .run = use_run(r)};
    if (!m.run)
        return;
    m.similarity = request_choice(r, "similarity") ? request_number(r, "similarity") : m.run->similarity;
    r->spool = spool_create(m.run->folder);
    doppel_status status = r->spool ? make_file(&m, kept) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        request_answer(r, 200);
    else if (is_stopped(m.run))
        request_problem(r, PROBLEM_NO_RUN, NULL, "the run was deleted meanwhile");
    else if (status == DOPPEL_ERROR_IO)
        no_room(r, "the server has no room on its disk for this file");
    else
        request_error(r, status, &m.error);
    text_free(&m.line);
    text_free(&m.id);
    pthread_mutex_lock(&m.run->all->lock);
    m.run->users--;
    pthread_mutex_unlock(&m.run->all->lock);
}

void handle_run_kept(request *r) {
    answer_file(r, true);
}

void handle_run_removed(request *r) {
    answer_file(r, false);
}

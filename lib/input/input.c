/* input.c - doppel_input_run: threads take units of work, and what comes of them is emitted in input order.
 *
 * Each thread reads its next unit itself, one at a time under `reading`, while the others compute: there is read-ahead
 * without a thread for it. A unit has a number and a slot; there are twice as many slots as threads, so that one slow
 * unit does not stop the rest, and memory stays bounded. The thread that finishes a unit emits it and those after it
 * that are done, unless another thread is emitting. A unit that holds too much waits for its turn and emits what it
 * has.
 *
 * Lock order: `reading`, then `order`. Nothing is read, computed or emitted under `order`. */
#include "input/input.h"

#include "input/reader.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- the files behind a list of paths ----
 *
 * In order: each path itself, or all that is below a folder, by byte order of names. A path with *, ? or [ that is not
 * there stands for those that match it, in byte order.
 *
 * Below a folder, links to files are followed, links to folders are not (so there are no cycles); what is neither file
 * nor folder (devices, sockets, pipes, links that lead nowhere) is left out. A path that was given is taken as it is.
 *
 * A stack of folders, each with its names sorted; the top one gives the next name, and a name that is a folder becomes
 * the new top. Memory: the names of the folders that are open, one below the other. */

/* One folder on the way down: its names, sorted, and how far it is done. */
typedef struct walk_folder {
    char *names;   /* each: its type (see by_name), its bytes, a NUL */
    char **sorted; /* into names */
    size_t count, next;
    size_t path_length; /* of the folder's own path */
} walk_folder;

typedef struct path_walk {
    const char *const *paths;
    size_t path_count, next_path;
    glob_t matches; /* of the pattern at hand */
    size_t next_match;
    walk_folder *folders;
    size_t depth, capacity;
    dp_buffer path; /* of the file that was given last, NUL-ended */
    bool no_memory;
} path_walk;

typedef struct walk_file {
    const char *path; /* borrowed until the next call */
    bool regular;     /* its size is known */
    uint64_t size;
} walk_file;

static void init_walk(path_walk *walk, const char *const *paths, size_t path_count) {
    memset(walk, 0, sizeof *walk);
    walk->paths = paths;
    walk->path_count = path_count;
}

static void free_folder(walk_folder *folder) {
    free(folder->names);
    free(folder->sorted);
}

static void free_matches(path_walk *walk) {
    if (walk->matches.gl_pathv)
        globfree(&walk->matches);
    walk->matches = (glob_t){0};
    walk->next_match = 0;
}

static void free_walk(path_walk *walk) {
    free_matches(walk);
    while (walk->depth)
        free_folder(&walk->folders[--walk->depth]);
    free(walk->folders);
    dp_buffer_free(&walk->path);
}

/* The first byte of an entry is its d_type, so that most files need no stat to be told from folders. */
static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a + 1, *(char *const *)b + 1);
}

static bool add_name(dp_buffer *names, const struct dirent *entry) {
    char type = (char)entry->d_type;
    return dp_buffer_add(names, &type, 1) && dp_buffer_add(names, entry->d_name, strlen(entry->d_name) + 1);
}

/* Reads all names of a folder; gives how many, or -1 and errno. */
static int64_t read_names(const char *path, dp_buffer *names) {
    DIR *folder = opendir(path);
    if (!folder)
        return -1;
    int64_t count = 0;
    for (struct dirent *entry; errno = 0, (entry = readdir(folder));) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
            continue;
        if (!add_name(names, entry)) {
            errno = ENOMEM;
            break;
        }
        count++;
    }
    int trouble = errno;
    closedir(folder);
    errno = trouble;
    return trouble ? -1 : count;
}

static bool sort_names(walk_folder *folder, size_t count) {
    folder->count = count;
    folder->sorted = malloc((count ? count : 1) * sizeof *folder->sorted);
    if (!folder->sorted)
        return false;
    char *name = folder->names;
    for (size_t i = 0; i < count; i++) {
        folder->sorted[i] = name;
        name += 1 + strlen(name + 1) + 1;
    }
    qsort(folder->sorted, count, sizeof *folder->sorted, by_name);
    return true;
}

/* Makes the folder at walk->path the top of the stack; false when it cannot be read, or (no_memory) held. */
static bool enter(path_walk *walk) {
    dp_buffer names = {0};
    int64_t count = read_names(walk->path.data, &names);
    if (count < 0 && errno != ENOMEM) {
        dp_buffer_free(&names);
        return false;
    }
    walk_folder folder = {.names = names.data, .path_length = strlen(walk->path.data)};
    if (count < 0 || !sort_names(&folder, (size_t)count) ||
        !dp_reserve(&walk->folders, &walk->capacity, walk->depth + 1, sizeof *walk->folders)) {
        free_folder(&folder);
        walk->no_memory = true;
        return false;
    }
    walk->folders[walk->depth++] = folder;
    return true;
}

/* Sets walk->path to its first `length` bytes and then `name`. */
static bool set_path(path_walk *walk, size_t length, const char *name) {
    walk->path.size = length;
    if (length && walk->path.data[length - 1] != '/' && !dp_buffer_add(&walk->path, "/", 1))
        return false;
    return dp_buffer_add(&walk->path, name, strlen(name) + 1);
}

/* What a name below a folder is: a file to give_file, a folder to enter, or neither. */
static mode_t kind_of(const char *path, unsigned char type, struct stat *status) {
    if (type == DT_DIR)
        return S_IFDIR;
    if (type != DT_REG && type != DT_LNK && type != DT_UNKNOWN)
        return 0;
    if (stat(path, status))
        return type == DT_REG ? S_IFREG : 0;
    if (S_ISREG(status->st_mode))
        return S_IFREG;
    return S_ISDIR(status->st_mode) && type == DT_UNKNOWN && !lstat(path, status) ? status->st_mode & S_IFDIR : 0;
}

static bool give_file(path_walk *walk, walk_file *file, const struct stat *status) {
    file->path = walk->path.data;
    file->regular = S_ISREG(status->st_mode);
    file->size = file->regular ? (uint64_t)status->st_size : 0;
    return true;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Finds what matches a pattern; false when nothing does. */
static bool expand(path_walk *walk, const char *pattern) {
    free_matches(walk);
    int result = glob(pattern, GLOB_NOSORT, NULL, &walk->matches);
    walk->no_memory = result == GLOB_NOSPACE;
    if (result)
        return false;
    qsort(walk->matches.gl_pathv, walk->matches.gl_pathc, sizeof *walk->matches.gl_pathv, by_bytes);
    return true;
}

/* One path, given or matched: true when it is a file (or cannot be opened as anything else). */
static bool take_path(path_walk *walk, const char *path, walk_file *file) {
    struct stat status = {0};
    if (!set_path(walk, 0, path)) {
        walk->no_memory = true;
        return false;
    }
    bool is_stdin = !strcmp(path, "-");
    bool there = !is_stdin && !stat(path, &status);
    if (there && S_ISDIR(status.st_mode) && (enter(walk) || walk->no_memory))
        return false;
    return give_file(walk, file, &status);
}

/* The next given path, or the next that matches it. */
static bool next_path(path_walk *walk, walk_file *file) {
    struct stat status;
    if (walk->next_match < walk->matches.gl_pathc)
        return take_path(walk, walk->matches.gl_pathv[walk->next_match++], file);
    const char *path = walk->paths[walk->next_path++];
    if (strpbrk(path, "*?[") && lstat(path, &status) && (expand(walk, path) || walk->no_memory))
        return false;
    return take_path(walk, path, file);
}

/* The next name of the top folder: true when it is a file. */
static bool next_name(path_walk *walk, walk_file *file) {
    walk_folder *top = &walk->folders[walk->depth - 1];
    if (top->next == top->count) {
        free_folder(top);
        walk->depth--;
        return false;
    }
    const char *entry = top->sorted[top->next++];
    struct stat status = {0};
    if (!set_path(walk, top->path_length, entry + 1)) {
        walk->no_memory = true;
        return false;
    }
    mode_t kind = kind_of(walk->path.data, (unsigned char)entry[0], &status);
    if (kind == S_IFDIR && (enter(walk) || walk->no_memory))
        return false;
    return kind && give_file(walk, file, &status);
}

/* The next file; false at the end, or when there is no memory (`no_memory`). A folder that cannot be read is given like
 * a file, and opening it will tell why. */
static bool next_file(path_walk *walk, walk_file *file) {
    while (!walk->no_memory &&
           (walk->depth || walk->next_match < walk->matches.gl_pathc || walk->next_path < walk->path_count))
        if (walk->depth ? next_name(walk, file) : next_path(walk, file))
            return true;
    return false;
}

bool dp_input_is_empty_folder(const char *path) {
    struct stat there;
    path_walk walk;
    walk_file file;
    if (stat(path, &there) || !S_ISDIR(there.st_mode))
        return false;
    init_walk(&walk, &path, 1);
    bool empty = !next_file(&walk, &file) && !walk.no_memory;
    free_walk(&walk);
    return empty;
}

/* ---- the next unit of work ----
 *
 * What is done under the lock `reading`, so as little as can be: small files are only named; the thread that takes the
 * unit opens and reads them. A big file of records is read here, a block a unit; of a big file that is one document
 * only the start is read here. */

typedef struct unit_source {
    const doppel_input_options *options;
    const dp_input_sizes *sizes;
    path_walk walk;
    walk_file file;   /* the next one */
    bool has_file;    /* it was looked at, but not used yet */
    uint64_t files;   /* how many were looked at */
    dp_stream stream; /* the big file that is open */
    dp_cutter cutter;
    bool reading; /* blocks of `cutter` come next */
    dp_buffer name;
    int threads; /* that may decompress the open file */
} unit_source;

static void init_source(unit_source *source, const dp_input_job *job) {
    memset(source, 0, sizeof *source);
    source->options = job->options;
    source->sizes = job->sizes;
    init_walk(&source->walk, job->paths, job->path_count);
    dp_stream_init(&source->stream, job->options->stop);
    source->cutter.target = job->sizes->block;
    source->cutter.max_record = job->options->max_record;
}

static void free_source(unit_source *source) {
    free_walk(&source->walk);
    dp_stream_free(&source->stream);
    dp_cutter_free(&source->cutter);
    dp_buffer_free(&source->name);
}

/* Adds a file's name; false when there is no memory, and then the unit has failed. */
static bool add_file(dp_unit *unit, const char *path) {
    unit->files++;
    return dp_buffer_add(&unit->names, path, strlen(path) + 1) || dp_unit_no_memory(unit);
}

/* The next block of the open file. */
static bool next_block(unit_source *source, dp_unit *unit) {
    dp_cutter *cutter = &source->cutter;
    unit->kind = DP_UNIT_BLOCK;
    unit->format = cutter->format;
    if (!add_file(unit, source->name.data) || !dp_unit_next_block(unit, cutter))
        return false;
    unit->raw_bytes = unit->block.raw_bytes;
    if (cutter->ended) {
        if (source->stream.failed)
            memcpy(unit->failure, source->stream.failure, sizeof unit->failure);
        dp_stream_close(&source->stream);
        source->reading = false;
    }
    return true;
}

/* Hands the open file over to the unit, with what was read of it. */
static bool give_whole(unit_source *source, dp_unit *unit) {
    unit->kind = DP_UNIT_WHOLE;
    if (!dp_unit_set_block(unit, &source->cutter.rest))
        return false;
    dp_stream closed = unit->stream;
    unit->stream = source->stream;
    source->stream = closed;
    return true;
}

/* Opens a big file. One that cannot be opened goes the way of the small ones, where that is found out again. */
static bool open_big(unit_source *source, dp_unit *unit) {
    const char *path = source->file.path;
    source->has_file = false;
    source->name.size = 0;
    if (!add_file(unit, path))
        return false;
    if (!dp_buffer_add(&source->name, path, strlen(path) + 1))
        return dp_unit_no_memory(unit);
    source->stream.threads = source->threads;
    if (!dp_stream_open(&source->stream, path)) {
        dp_stream_close(&source->stream);
        return true;
    }
    unit->format = dp_format_read(&source->stream, path, &source->cutter.rest);
    if (!unit->format)
        return dp_unit_no_memory(unit);
    if (!unit->format->end)
        return give_whole(source, unit);
    dp_cutter_begin(&source->cutter, unit->format, &source->stream);
    source->reading = true;
    unit->names.size = unit->files = 0;
    return next_block(source, unit);
}

/* Whether the next file is there to look at; the walk is asked when it is not. */
static bool look(unit_source *source, dp_unit *unit) {
    if (!source->has_file && (source->has_file = next_file(&source->walk, &source->file)))
        source->files++;
    if (source->walk.no_memory)
        return dp_unit_no_memory(unit);
    return source->has_file;
}

static bool is_small(const unit_source *source) {
    return source->file.regular && source->file.size <= source->sizes->small_file;
}

/* Fills an empty unit; false at the end, or (unit->status) on failure. */
static bool next_unit(unit_source *source, dp_unit *unit) {
    uint64_t bytes = 0;
    unit->kind = DP_UNIT_FILES;
    unit->file_number = source->files;
    if (source->reading)
        return next_block(source, unit);
    if (look(source, unit) && !is_small(source)) {
        unit->file_number = source->files;
        return open_big(source, unit);
    }
    while (look(source, unit) && is_small(source) && unit->files < source->sizes->batch_files &&
           bytes < source->sizes->block) {
        if (!add_file(unit, source->file.path))
            return false;
        unit->file_number = source->files - unit->files + 1;
        bytes += source->file.size;
        source->has_file = false;
    }
    return unit->files && unit->status == DOPPEL_OK;
}

/* Beyond so many files their sizes are not asked for ahead of the work: that would take seconds. */
#define TOTAL_FILES 20000

/* The bytes of all files, or 0 when there is stdin, a pipe or very many files among them. */
static uint64_t total_bytes(const dp_input_job *job) {
    path_walk walk;
    walk_file file;
    uint64_t total = 0, files = 0;
    init_walk(&walk, job->paths, job->path_count);
    while (next_file(&walk, &file)) {
        if (!file.regular || ++files > TOTAL_FILES) {
            total = 0;
            break;
        }
        total += file.size;
    }
    free_walk(&walk);
    return total;
}

/* ---- the run ---- */

/* 1 MiB of lines is some 200 documents, so that locks cost nothing, and with the text taken out of it still fits into
 * the second-level cache. Files up to a quarter of that come several at a time. */
static const dp_input_sizes usual_sizes = {
    .block = (size_t)1 << 20, .small_file = (size_t)256 << 10, .batch_files = 128, .pending = (size_t)4 << 20};

#define USUAL_MAX_RECORD ((size_t)64 << 20)
/* Sums with it do not overflow. */
#define MOST_MAX_RECORD (SIZE_MAX / 4)

typedef struct input_run {
    dp_input_job job;
    doppel_input_options options;
    pthread_mutex_t reading, order;
    pthread_cond_t moved; /* something of what `order` guards has changed */
    unit_source source;
    bool source_ended; /* by `reading` */

    dp_unit *units; /* by number modulo their count */
    size_t unit_count;
    uint64_t next_read, next_emit; /* numbers of units; by `order` */
    bool emitting;                 /* by `order` */
    doppel_status status;          /* by `order`; not DOPPEL_OK: end */
    doppel_error error;            /* by `order` */

    doppel_input_counts counts; /* by whoever is emitting */
    dp_refusal refusal;         /* by whoever is emitting */
    dp_buffer held;             /* what is emitted once the first records were judged; by whoever is emitting */
    uint64_t seen;              /* of dp_reader, of all threads; by `order` */
    uint64_t raw_bytes, total;
} input_run;

static bool asked_to_stop(const input_run *r) {
    return dp_stop_asked(r->options.stop);
}

/* Notes the first failure. Called under `order`. */
static void set_status(input_run *r, doppel_status status, const doppel_error *error) {
    if (r->status != DOPPEL_OK)
        return;
    if (r->refusal.refused)
        error = &r->refusal.error;
    r->status = status;
    if (error)
        r->error = *error;
    else
        dp_fail(&r->error, status, "%s", doppel_status_name(status));
}

static void fail_run(input_run *r, doppel_status status) {
    pthread_mutex_lock(&r->order);
    set_status(r, status, NULL);
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->order);
}

/* ---- emitting ---- */

/* Adds what the unit counted to the whole and clears it. */
static void add_counts(input_run *r, dp_unit *unit) {
    r->counts.documents += unit->counts.documents;
    r->counts.bytes += unit->counts.bytes;
    r->counts.bad += unit->counts.bad;
    r->counts.repaired += unit->counts.repaired;
    r->counts.unopened += unit->counts.unopened;
    r->raw_bytes += unit->raw_bytes;
    unit->raw_bytes = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
}

/* Gives the caller what was written. */
static doppel_status give(input_run *r, dp_buffer *bytes) {
    doppel_status status = DOPPEL_OK;
    if (bytes->size && r->job.work->emit)
        status = r->job.work->emit(r->job.work->user, bytes->data, bytes->size);
    bytes->size = 0;
    return status;
}

/* Judges the first records, or all of them; what was held goes out if they are good. */
static doppel_status judge(input_run *r, bool all) {
    doppel_status status = all ? dp_refusal_end(&r->refusal) : dp_refusal_first(&r->refusal);
    return status == DOPPEL_OK ? give(r, &r->held) : status;
}

/* Gives what the unit has, or holds it until the first records are judged. */
static doppel_status give_unit(input_run *r, dp_unit *unit) {
    bool first = r->options.refuse_bad && r->options.judge_first && !r->refusal.first;
    dp_buffer *bytes = &unit->output.bytes;
    doppel_status status = DOPPEL_OK;
    if (!first || !r->options.judge_holds)
        status = give(r, bytes);
    else if (bytes->size && !dp_buffer_add(&r->held, bytes->data, bytes->size))
        status = DOPPEL_ERROR_MEMORY;
    bytes->size = 0;
    dp_refusal_take(&r->refusal, unit->file_counts, &unit->file_count, &unit->first);
    return status == DOPPEL_OK && first && dp_refusal_ready(&r->refusal, r->held.size) ? judge(r, false) : status;
}

/* Emits what the unit has; by the one thread that set `emitting`, without a lock. */
static doppel_status emit(input_run *r, dp_unit *unit) {
    doppel_status status = give_unit(r, unit);
    bool told = status == DOPPEL_OK || r->refusal.refused;
    for (size_t i = 0; i < unit->report_count && told && r->options.bad; i++)
        r->options.bad(&unit->reports[i], r->options.user);
    unit->report_count = 0;
    add_counts(r, unit);
    if (r->options.progress)
        r->options.progress(r->raw_bytes, r->total, r->counts.documents, r->options.user);
    return status;
}

/* A unit that is still being worked on emits what it has so far, in its turn. */
static void flush(void *user, dp_unit *unit) {
    input_run *r = user;
    pthread_mutex_lock(&r->order);
    while (r->status == DOPPEL_OK && (r->emitting || r->next_emit != unit->sequence))
        pthread_cond_wait(&r->moved, &r->order);
    bool mine = r->status == DOPPEL_OK;
    r->emitting = r->emitting || mine;
    pthread_mutex_unlock(&r->order);
    if (!mine) {
        dp_unit_fail(unit, DOPPEL_ERROR_INTERRUPTED, "", 0, "interrupted");
        return;
    }
    doppel_status status = emit(r, unit);
    if (status != DOPPEL_OK)
        dp_unit_fail(unit, status, "", 0, doppel_status_name(status));
    pthread_mutex_lock(&r->order);
    r->emitting = false;
    pthread_cond_broadcast(&r->moved);
    pthread_mutex_unlock(&r->order);
}

/* Emits one unit, `order` being held at the start and at the end. */
static void emit_next(input_run *r, dp_unit *unit) {
    pthread_mutex_unlock(&r->order);
    doppel_status status = emit(r, unit);
    pthread_mutex_lock(&r->order);
    if (status != DOPPEL_OK)
        set_status(r, status, NULL);
    if (unit->status != DOPPEL_OK)
        set_status(r, unit->status, &unit->error);
    unit->done = false;
    r->next_emit++;
    pthread_cond_broadcast(&r->moved);
}

/* The unit is done; emits all that can be. */
static void finish(input_run *r, dp_unit *unit) {
    pthread_mutex_lock(&r->order);
    unit->done = true;
    if (!r->emitting) {
        r->emitting = true;
        for (dp_unit *next; r->status == DOPPEL_OK; emit_next(r, next)) {
            next = &r->units[r->next_emit % r->unit_count];
            if (!next->done)
                break;
        }
        r->emitting = false;
        pthread_cond_broadcast(&r->moved);
    }
    pthread_mutex_unlock(&r->order);
}

/* ---- reading ---- */

/* Waits for a free slot; NULL when the input_run is over. */
static dp_unit *free_unit(input_run *r) {
    pthread_mutex_lock(&r->order);
    while (r->status == DOPPEL_OK && r->next_read - r->next_emit >= r->unit_count)
        pthread_cond_wait(&r->moved, &r->order);
    if (asked_to_stop(r))
        set_status(r, DOPPEL_ERROR_INTERRUPTED, NULL);
    dp_unit *unit = r->status == DOPPEL_OK ? &r->units[r->next_read % r->unit_count] : NULL;
    pthread_mutex_unlock(&r->order);
    return unit;
}

/* The next unit of work, read; NULL when there is none. */
static dp_unit *take(input_run *r) {
    pthread_mutex_lock(&r->reading);
    dp_unit *unit = r->source_ended ? NULL : free_unit(r);
    if (unit) {
        dp_unit_reset(unit, r->job.sizes->block);
        if (!next_unit(&r->source, unit))
            r->source_ended = true;
        if (r->source_ended && unit->status == DOPPEL_OK) {
            unit = NULL;
        } else {
            pthread_mutex_lock(&r->order);
            unit->sequence = r->next_read++;
            pthread_mutex_unlock(&r->order);
        }
    }
    pthread_mutex_unlock(&r->reading);
    return unit;
}

/* ---- threads ---- */

static void work(input_run *r, dp_reader *reader) {
    for (dp_unit *unit; (unit = take(r));) {
        if (unit->status == DOPPEL_OK)
            dp_reader_run(reader, unit);
        finish(r, unit);
    }
}

static void *thread_main(void *user) {
    input_run *r = user;
    const doppel_work *w = r->job.work;
    dp_reader reader = {.options = &r->options, .work = w, .sizes = r->job.sizes, .flush = flush, .run = r};
    doppel_status status = dp_reader_init(&reader) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    bool begun = false;
    if (status == DOPPEL_OK && w->begin) {
        status = w->begin(w->user, &reader.state);
        begun = status == DOPPEL_OK;
    } else {
        reader.state = w->user;
    }
    if (status == DOPPEL_OK)
        work(r, &reader);
    else
        fail_run(r, status);
    if (begun && w->end)
        w->end(w->user, reader.state);
    pthread_mutex_lock(&r->order);
    r->seen |= reader.seen;
    pthread_mutex_unlock(&r->order);
    dp_reader_free(&reader);
    return NULL;
}

/* Runs on `threads` threads, this one among them. Signals go to this one: the others block them. */
static void run_threads(input_run *r, size_t threads) {
    pthread_t *others = threads > 1 ? malloc((threads - 1) * sizeof *others) : NULL;
    size_t started = 0;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (others && started < threads - 1 && !pthread_create(&others[started], NULL, thread_main, r))
        started++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    thread_main(r);
    while (started)
        pthread_join(others[--started], NULL);
    free(others);
}

/* ---- the call ---- */

/* Copies as much of the options as the caller knows of, and sets defaults. */
static void set_options(input_run *r, const doppel_input_options *given) {
    if (given)
        dp_copy_options(&r->options, given, sizeof r->options);
    if (!r->options.max_record)
        r->options.max_record = USUAL_MAX_RECORD;
    if (r->options.max_record > MOST_MAX_RECORD)
        r->options.max_record = MOST_MAX_RECORD;
    r->job.options = &r->options;
    r->refusal.options = &r->options;
    if (!r->job.sizes)
        r->job.sizes = &usual_sizes;
}

static bool create_units(input_run *r, size_t threads) {
    r->unit_count = 2 * threads;
    r->units = calloc(r->unit_count, sizeof *r->units);
    for (size_t i = 0; r->units && i < r->unit_count; i++)
        dp_stream_init(&r->units[i].stream, r->options.stop);
    return r->units != NULL;
}

static void free_run(input_run *r) {
    for (size_t i = 0; r->units && i < r->unit_count; i++)
        dp_unit_free(&r->units[i]);
    free(r->units);
    free_source(&r->source);
    dp_refusal_free(&r->refusal);
    dp_buffer_free(&r->held);
    pthread_cond_destroy(&r->moved);
    pthread_mutex_destroy(&r->order);
    pthread_mutex_destroy(&r->reading);
}

/* Names the keys that were asked for and that no record has. */
static void tell_unseen(const input_run *r) {
    const doppel_input_options *o = &r->options;
    const char *keys[DP_FIELDS] = {o->id_key, o->url_key, o->title_key, o->text_key, o->html_key};
    if (!o->unseen || !(r->seen & DP_SEEN_RECORD))
        return;
    for (size_t i = 0; i < DP_FIELDS + o->extra_count; i++) {
        const char *key = i < DP_FIELDS ? keys[i] : o->extra_keys[i - DP_FIELDS];
        if (key && !(r->seen >> i & 1))
            o->unseen(key, o->user);
    }
}

doppel_status dp_input_run(const dp_input_job *job, doppel_input_counts *counts, doppel_error *error) {
    input_run r = {.job = *job};
    set_options(&r, job->options);
    pthread_mutex_init(&r.reading, NULL);
    pthread_mutex_init(&r.order, NULL);
    pthread_cond_init(&r.moved, NULL);
    init_source(&r.source, &r.job);
    size_t threads = dp_thread_count(r.options.threads);
    r.source.threads = (int)threads;
    if (r.options.progress)
        r.total = total_bytes(&r.job);
    if (r.options.extra_count > DP_EXTRA)
        r.status = dp_fail(&r.error, DOPPEL_ERROR_USAGE, "more than %d extra keys", DP_EXTRA);
    else if (create_units(&r, threads))
        run_threads(&r, threads);
    else
        set_status(&r, DOPPEL_ERROR_MEMORY, NULL);
    if (asked_to_stop(&r))
        set_status(&r, DOPPEL_ERROR_INTERRUPTED, NULL);
    doppel_status judged = r.status == DOPPEL_OK ? judge(&r, true) : DOPPEL_OK;
    if (judged != DOPPEL_OK)
        set_status(&r, judged, NULL);
    if (r.status == DOPPEL_OK)
        tell_unseen(&r);
    if (counts)
        *counts = r.counts;
    if (error && r.status != DOPPEL_OK)
        *error = r.error;
    free_run(&r);
    return r.status;
}

doppel_status doppel_input_run(const char *const *paths, size_t path_count, const doppel_input_options *options,
                               const doppel_work *work_to_do, doppel_input_counts *counts, doppel_error *error) {
    dp_input_job job = {.paths = paths, .path_count = path_count, .options = options, .work = work_to_do};
    return dp_input_run(&job, counts, error);
}

/* feed.c - documents of inputs on their way to an engine.
 *
 * From the thread that read it to the one that gives it to the engine, a document is bytes: a head with the length of
 * each string, then the strings, each with a NUL at its end.
 *
 * Batches are a ring. The thread that emits what was read fills them, hands them over and reports their results: those
 * of the oldest batch when it needs its place, and of all at the end. */
#include "engine/feed.h"

#include "common/message.h"
#include "common/progress.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- a document as bytes ---- */

enum { PACK_ID, PACK_URL, PACK_TITLE, PACK_TEXT, PACK_HTML, PACK_CHARSET, PACK_ALIAS, PACK_FILE, PACK_RECORD, PACKED };

/* The length of an absent string. */
#define NONE SIZE_MAX

typedef struct packed_head {
    uint64_t line;
    size_t length[PACKED + FEED_KEYS];
} packed_head;

/* Where packed bytes go. */
typedef doppel_status (*packed_fn)(void *to, doppel_slice bytes);

static doppel_status to_output(void *to, doppel_slice bytes) {
    return doppel_output_write(to, bytes);
}

static doppel_status to_text(void *to, doppel_slice bytes) {
    text_buffer *text = to;
    text_add(text, bytes.data, bytes.length);
    return text->failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

static doppel_status pack_to(const feed *f, const doppel_document *d, packed_fn put, void *to) {
    doppel_slice parts[PACKED + FEED_KEYS] = {[PACK_ID] = d->id,       [PACK_URL] = d->url,
                                              [PACK_TITLE] = d->title, [PACK_TEXT] = d->text,
                                              [PACK_HTML] = d->html,   [PACK_CHARSET] = doppel_slice_of(d->charset),
                                              [PACK_ALIAS] = d->alias, [PACK_FILE] = doppel_slice_of(d->file)};
    packed_head head = {.line = d->line};
    if (f->record)
        parts[PACK_RECORD] = d->record;
    for (size_t i = 0; i < f->key_count; i++)
        parts[PACKED + i] = d->extra[i];
    for (size_t i = 0; i < PACKED + f->key_count; i++)
        head.length[i] = parts[i].data ? parts[i].length : NONE;
    doppel_status status = put(to, (doppel_slice){(const char *)&head, sizeof head});
    for (size_t i = 0; i < PACKED + f->key_count && status == DOPPEL_OK; i++) {
        if (!parts[i].data)
            continue;
        status = put(to, parts[i]);
        if (status == DOPPEL_OK)
            status = put(to, (doppel_slice){"", 1});
    }
    return status;
}

doppel_status pack_document(const feed *f, const doppel_document *d, doppel_output *output) {
    return pack_to(f, d, to_output, output);
}

size_t unpack_document(const feed *f, const char *bytes, doppel_document *d, doppel_slice *extra) {
    packed_head head;
    doppel_slice parts[PACKED + FEED_KEYS] = {{0}};
    const char *p = bytes + sizeof head;
    memcpy(&head, bytes, sizeof head);
    for (size_t i = 0; i < PACKED + f->key_count; i++)
        if (head.length[i] != NONE) {
            parts[i] = (doppel_slice){p, head.length[i]};
            p += head.length[i] + 1;
        }
    for (size_t i = 0; i < f->key_count; i++)
        extra[i] = parts[PACKED + i];
    *d = (doppel_document){.id.data = parts[PACK_ID].data,
                           .id.length = parts[PACK_ID].length,
                           .url.data = parts[PACK_URL].data,
                           .url.length = parts[PACK_URL].length,
                           .title.data = parts[PACK_TITLE].data,
                           .title.length = parts[PACK_TITLE].length,
                           .text.data = parts[PACK_TEXT].data,
                           .text.length = parts[PACK_TEXT].length,
                           .html.data = parts[PACK_HTML].data,
                           .html.length = parts[PACK_HTML].length,
                           .charset = parts[PACK_CHARSET].data,
                           .alias.data = parts[PACK_ALIAS].data,
                           .alias.length = parts[PACK_ALIAS].length,
                           .file = parts[PACK_FILE].data,
                           .line = head.line,
                           .record.data = parts[PACK_RECORD].data,
                           .record.length = parts[PACK_RECORD].length,
                           .extra = extra};
    return (size_t)(p - bytes);
}

static size_t packed_size(const feed *f, const char *bytes) {
    packed_head head;
    size_t size = sizeof head;
    memcpy(&head, bytes, sizeof head);
    for (size_t i = 0; i < PACKED + f->key_count; i++)
        size += head.length[i] != NONE ? head.length[i] + 1 : 0;
    return size;
}

/* A batch with this many bytes of packed documents is full: when batches run one at a time, and when several do. */
#define MOST_WAITING ((size_t)32 << 20)
#define MOST_WAITING_EACH ((size_t)4 << 20)

/* Bad records are counted over this many records before any document goes to the engine. From a pipe, documents go as
 * they come: the process that writes to it may wait for the verdict. */
enum { JUDGED = 1000 };

/* ---- one batch ---- */

/* A failure is reported here, and not again when reading ends. */
static doppel_status fail(doppel_status status, const doppel_error *error) {
    if (status != DOPPEL_OK && status != DOPPEL_ERROR_INTERRUPTED && !failure_reported) {
        message_error(error);
        failure_reported = true;
    }
    return status;
}

/* Reports that a document is left out. */
static doppel_status leave_out(feed *f, const doppel_document *document, doppel_error *why) {
    size_t length = strlen(document->file), room = sizeof why->file - 1;
    bool cut = length > room;
    snprintf(why->file, sizeof why->file, "%s%s", cut ? "..." : "",
             cut ? document->file + length - (room - 3) : document->file);
    why->line = document->line;
    why->code = DOPPEL_ERROR_INPUT;
    f->bad++;
    f->on_bad(why, (void *)f->cli->args);
    return f->input.strict ? DOPPEL_ERROR_INPUT : DOPPEL_OK;
}

/* Reports the verdicts. What is in the engine is reported, even if --strict ends the command at an earlier item. */
static doppel_status report_verdicts(feed *f, feed_batch *b) {
    doppel_status status = DOPPEL_OK, reported = DOPPEL_OK;
    for (size_t i = 0; i < b->count && reported == DOPPEL_OK; i++) {
        doppel_error *why = &b->errors[i];
        bool bad = why->code == DOPPEL_ERROR_INPUT || why->code == DOPPEL_ERROR_USAGE;
        if (why->code == DOPPEL_OK)
            reported = f->on_verdict(f, &b->items[i], &b->verdicts[i]);
        else if (status == DOPPEL_OK && (bad || b->given == DOPPEL_OK))
            status = bad ? leave_out(f, &b->items[i].document, why) : fail(why->code, why);
    }
    return reported != DOPPEL_OK ? reported : status;
}

/* Reports the results of a batch, and empties it. */
static doppel_status report_batch(feed *f, feed_batch *b) {
    doppel_status status = report_verdicts(f, b), ended = f->on_batch_end ? f->on_batch_end(f) : DOPPEL_OK;
    fail(b->given, &b->error);
    b->count = b->documents = b->packed.length = 0;
    pthread_mutex_lock(&f->lock);
    b->state = BATCH_FILLING;
    pthread_mutex_unlock(&f->lock);
    return b->given != DOPPEL_OK ? b->given : status != DOPPEL_OK ? status : ended;
}

/* Makes the packed document at `bytes` the next item of the batch. */
static doppel_status take(feed *f, feed_batch *b, const char *bytes) {
    doppel_error why = {0};
    doppel_item *item = &b->items[b->count];
    doppel_document document;
    unpack_document(f, bytes, &document, b->extra + b->count * f->key_count);
    *item = (doppel_item){.size = sizeof *item, .document = document};
    if (!f->make_item) {
        b->count++;
        return DOPPEL_OK;
    }
    f->place = b->count;
    switch (f->make_item(f, &document, item, &why)) {
    case FEED_TAKE: b->count++; return DOPPEL_OK;
    case FEED_BAD: return leave_out(f, &document, &why);
    case FEED_END: failure_reported = true; return DOPPEL_ERROR_STORE;
    default: return DOPPEL_OK;
    }
}

static doppel_status make_items(feed *f, feed_batch *b) {
    doppel_status status = DOPPEL_OK;
    for (size_t at = 0; at < b->packed.length && status == DOPPEL_OK; at += packed_size(f, b->packed.data + at))
        status = take(f, b, b->packed.data + at);
    return status;
}

/* Gives a batch to the engine. */
static void run_batch(feed *f, feed_batch *b, const doppel_turn *turn) {
    b->given = DOPPEL_OK;
    b->error = (doppel_error){0};
    for (size_t i = 0; i < b->count; i++)
        b->errors[i] = (doppel_error){.code = DOPPEL_ERROR_STORE};
    if (f->check && b->count)
        b->given = doppel_engine_check_batch(f->cli->engine, b->items, b->count, b->verdicts, b->errors, &b->error);
    else if (b->count || turn)
        b->given =
            doppel_engine_add_in_turn(f->cli->engine, b->items, b->count, turn, b->verdicts, b->errors, &b->error);
}

/* ---- batches side by side ---- */

/* The turn of a batch to be decided. */
typedef struct batch_turn {
    feed *f;
    uint64_t number;
} batch_turn;

static void wait_turn(void *user) {
    const batch_turn *t = user;
    pthread_mutex_lock(&t->f->lock);
    while (t->f->decided != t->number)
        pthread_cond_wait(&t->f->changed, &t->f->lock);
    pthread_mutex_unlock(&t->f->lock);
}

static void pass_turn(void *user) {
    const batch_turn *t = user;
    pthread_mutex_lock(&t->f->lock);
    t->f->decided++;
    pthread_cond_broadcast(&t->f->changed);
    pthread_mutex_unlock(&t->f->lock);
}

/* The next batch that is ready, in their order; NULL: there will be none. The lock is held. */
static feed_batch *take_batch(feed *f, uint64_t *number) {
    for (; !f->stopped; pthread_cond_wait(&f->changed, &f->lock)) {
        feed_batch *b = &f->batches[f->taken % f->batch_count];
        if (b->state != BATCH_READY)
            continue;
        b->state = BATCH_RUNNING;
        *number = f->taken++;
        return b;
    }
    return NULL;
}

/* Without a make_item nothing goes wrong when items are made. */
static void *run_batches(void *user) {
    feed *f = user;
    batch_turn mine = {.f = f};
    const doppel_turn turn = {.size = sizeof turn, .wait = wait_turn, .pass = pass_turn, .user = &mine};
    feed_batch *b;
    pthread_mutex_lock(&f->lock);
    while ((b = take_batch(f, &mine.number))) {
        pthread_mutex_unlock(&f->lock);
        (void)make_items(f, b);
        run_batch(f, b, &turn);
        pthread_mutex_lock(&f->lock);
        b->state = BATCH_DONE;
        pthread_cond_broadcast(&f->changed);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

/* Reports the records that could not be read and come before the batch with this number. */
static void report_bad(feed *f, uint64_t batch) {
    size_t reported = 0;
    while (reported < f->noted_count && f->noted[reported].batches <= batch)
        f->on_bad(&f->noted[reported++].what, (void *)f->cli->args);
    f->noted_count -= reported;
    if (f->noted_count)
        memmove(f->noted, f->noted + reported, f->noted_count * sizeof *f->noted);
}

/* At most this many records wait to be reported; more are reported immediately. */
enum { MOST_NOTED = 4096 };

/* doppel_input_options.bad */
static void note_bad(const doppel_error *what, void *user) {
    feed *f = user;
    size_t room = f->noted_room ? 2 * f->noted_room : 16;
    noted_bad *more = NULL;
    bool waits = f->reported < f->filled && f->noted_count < MOST_NOTED;
    if (waits && f->noted_count == f->noted_room && (more = realloc(f->noted, room * sizeof *more))) {
        f->noted = more;
        f->noted_room = room;
    }
    if (waits && f->noted_count < f->noted_room) {
        f->noted[f->noted_count++] = (noted_bad){f->filled, *what};
        return;
    }
    report_bad(f, UINT64_MAX);
    f->on_bad(what, (void *)f->cli->args);
}

/* doppel_input_options.unseen */
static void note_unseen(const char *key, void *user) {
    const feed *f = user;
    warn_unseen_option(key, (void *)f->cli->args);
}

/* Reports on the oldest unreported batch once it is done; a batch that no thread has taken, or will take, is dropped.
 */
static doppel_status report_oldest(feed *f) {
    report_bad(f, f->reported);
    feed_batch *b = &f->batches[f->reported++ % f->batch_count];
    pthread_mutex_lock(&f->lock);
    while (b->state == BATCH_RUNNING || (b->state == BATCH_READY && !f->stopped))
        pthread_cond_wait(&f->changed, &f->lock);
    bool done = b->state == BATCH_DONE;
    pthread_mutex_unlock(&f->lock);
    return done ? report_batch(f, b) : DOPPEL_OK;
}

/* Hands over the batch that is being filled: it is run, and reported, now or later. */
static doppel_status hand_over(feed *f) {
    feed_batch *b = &f->batches[f->filled % f->batch_count];
    if (!f->thread_count) {
        doppel_status status = make_items(f, b);
        if (status != DOPPEL_OK)
            return status;
        run_batch(f, b, NULL);
        return report_batch(f, b);
    }
    pthread_mutex_lock(&f->lock);
    b->state = BATCH_READY;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    f->filled++;
    return f->filled - f->reported == f->batch_count ? report_oldest(f) : DOPPEL_OK;
}

/* Hands over what is waiting, and reports on all batches. */
static doppel_status drain(feed *f) {
    doppel_status status = f->batches[f->filled % f->batch_count].documents ? hand_over(f) : DOPPEL_OK;
    while (f->reported < f->filled && status == DOPPEL_OK)
        status = report_oldest(f);
    return status;
}

/* After a failure, documents that the engine has already added are reported, too. */
static void stop_batches(feed *f) {
    pthread_mutex_lock(&f->lock);
    f->stopped = true;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    for (size_t i = 0; i < f->thread_count; i++)
        pthread_join(f->threads[i], NULL);
    while (f->reported < f->filled && !f->check)
        (void)report_oldest(f);
    report_bad(f, UINT64_MAX);
}

/* ---- reading ---- */

static doppel_status pack(void *state, const doppel_document *document, doppel_output *output) {
    return pack_document(state, document, output);
}

/* doppel_work.emit: whole documents, in input order. */
static doppel_status gather(void *user, doppel_slice bytes) {
    feed *f = user;
    for (size_t at = 0, size; at < bytes.length; at += size) {
        feed_batch *b = &f->batches[f->filled % f->batch_count];
        size = packed_size(f, bytes.data + at);
        text_add(&b->packed, bytes.data + at, size);
        if (b->packed.failed)
            return DOPPEL_ERROR_MEMORY;
        doppel_status status = DOPPEL_OK;
        if (++b->documents == f->batch || b->packed.length >= f->most_waiting)
            status = hand_over(f);
        if (status != DOPPEL_OK)
            return status;
    }
    return f->from_pipe ? drain(f) : DOPPEL_OK;
}

/* Gathers a document for each operand, which is a URL. */
static doppel_status gather_addresses(feed *f) {
    const cli_args *args = f->cli->args;
    const doppel_slice none[FEED_KEYS] = {{0}};
    text_buffer packed = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < args->operand_count && status == DOPPEL_OK; i++) {
        doppel_document document = {.id.data = "", .text.data = "", .file = args->operands[i], .extra = none};
        document.url = doppel_slice_of(args->operands[i]);
        packed.length = 0;
        status = pack_to(f, &document, to_text, &packed);
        if (status == DOPPEL_OK)
            status = gather(f, (doppel_slice){packed.data, packed.length});
        f->counts.documents++;
        f->counts.bytes += document.url.length;
        if (status == DOPPEL_OK && stop_asked)
            status = DOPPEL_ERROR_INTERRUPTED;
    }
    text_free(&packed);
    return status;
}

/* Whether an input is a pipe or a device, which may be slow. */
static bool is_live(const cli_args *args) {
    struct stat there;
    for (size_t i = 0; i < args->operand_count; i++) {
        const char *path = args->operands[i];
        if (!strcmp(path, "-") ? fstat(0, &there) : stat(path, &there))
            continue;
        if (!S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode))
            return true;
    }
    return false;
}

/* ---- the run ---- */

static bool make_batch(const feed *f, feed_batch *b) {
    b->items = calloc(f->batch, sizeof *b->items);
    b->verdicts = calloc(f->batch, sizeof *b->verdicts);
    b->errors = calloc(f->batch, sizeof *b->errors);
    b->extra = calloc(f->batch * f->key_count + 1, sizeof *b->extra);
    return b->items && b->verdicts && b->errors && b->extra;
}

/* The number of threads that run batches; 0: batches run one after the other. Two more for adds, some of which wait for
 * the disk. */
static size_t threads_for(const feed *f) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t threads = f->input.threads > 0 ? (size_t)f->input.threads : cores > 0 ? (size_t)cores : 1;
    bool one = threads == 1 || f->make_item || f->from_pipe || f->input.strict || args_text(f->cli->args, "log");
    return one ? 0 : f->check ? threads : threads + 2;
}

/* The most documents of a batch when several run at a time. Batches that wait for the disk become durable in one
 * commit. The fewer documents are decided between the look-up of a document and its turn, the less has to be looked up
 * again. */
enum { MOST_EACH = 250 };

/* One batch for each thread, one that waits for a thread, and one that is being filled. */
static bool make_batches(feed *f, size_t threads) {
    f->batch = f->batch ? f->batch : 1;
    f->batch = threads && f->batch > MOST_EACH ? MOST_EACH : f->batch;
    f->batch_count = threads ? threads + 2 : 1;
    f->most_waiting = threads ? MOST_WAITING_EACH : MOST_WAITING;
    f->threads = calloc(threads + 1, sizeof *f->threads);
    f->batches = calloc(f->batch_count, sizeof *f->batches);
    bool made = f->threads && f->batches;
    for (size_t i = 0; i < f->batch_count && made; i++)
        made = make_batch(f, &f->batches[i]);
    return made;
}

/* These threads block all signals. If none can be started, batches are run as they are filled. */
static void start_threads(feed *f, size_t threads) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (f->thread_count < threads && !pthread_create(&f->threads[f->thread_count], NULL, run_batches, f))
        f->thread_count++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void set_options(feed *f) {
    const cli_args *args = f->cli->args;
    f->from_pipe = is_live(args);
    f->input = reading_options(args);
    f->input.no_made_ids = true;
    f->input.text_optional = f->text_optional;
    f->input.judge_first = JUDGED;
    f->input.judge_holds = !f->from_pipe;
    f->on_bad = f->input.bad;
    f->input.bad = note_bad;
    f->input.unseen = note_unseen;
    f->input.user = f;
    f->input.extra_keys = f->keys;
    f->input.extra_count = f->key_count;
}

static doppel_status read_all(feed *f, doppel_error *error) {
    const cli_args *args = f->cli->args;
    doppel_work work = {.user = f, .document = pack, .emit = gather};
    progress_begin("reading");
    doppel_status status =
        f->addresses ? gather_addresses(f)
                     : doppel_input_run(args->operands, args->operand_count, &f->input, &work, &f->counts, error);
    bool strict = status == DOPPEL_ERROR_INPUT && f->input.strict;
    if (status == DOPPEL_OK || (strict && !f->bad)) {
        doppel_status drained = drain(f);
        status = drained != DOPPEL_OK ? drained : status;
    }
    /* Batches that were handed over before the inputs were refused are still processed, taken by a thread or not. */
    for (doppel_status reported = DOPPEL_OK;
         status == DOPPEL_ERROR_INPUT && f->reported < f->filled && reported == DOPPEL_OK;)
        reported = report_oldest(f);
    return status;
}

int feed_run(feed *f) {
    doppel_error error = {0};
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    set_options(f);
    size_t threads = threads_for(f);
    if (!make_batches(f, threads)) {
        message("no memory");
        return EXIT_STORE;
    }
    start_threads(f, threads);
    doppel_status status = read_all(f, &error);
    stop_batches(f);
    f->counts.documents -= f->bad;
    f->counts.bad += f->bad;
    int code = reading_ended(status, &f->input, &error, &f->counts);
    if (code == EXIT_DONE && f->input.refuse_bad && f->counts.bad > f->counts.documents) {
        message("more than half of the records could not be used; --allow-bad accepts that");
        code = EXIT_INPUT;
    }
    return f->code ? f->code : code;
}

void feed_free(feed *f) {
    for (size_t i = 0; f->batches && i < f->batch_count; i++) {
        feed_batch *b = &f->batches[i];
        for (size_t k = 0; b->verdicts && k < f->batch; k++)
            doppel_verdict_free(&b->verdicts[k]);
        text_free(&b->packed);
        free(b->items);
        free(b->verdicts);
        free(b->errors);
        free(b->extra);
    }
    free(f->batches);
    free(f->noted);
    free(f->threads);
}

/* feed.c - documents of inputs on their way to an engine.
 *
 * From the thread that read it to the one that gives it to the engine, a document is bytes: a head with the length of
 * each string, then the strings, each with a NUL at its end. */
#include "engine/feed.h"

#include "common/message.h"
#include "common/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- a document as bytes ---- */

enum { PACK_ID, PACK_URL, PACK_TITLE, PACK_TEXT, PACK_HTML, PACK_CHARSET, PACK_ALIAS, PACK_FILE, PACK_RECORD, PACKED };

/* The length of an absent string. */
#define NONE SIZE_MAX

typedef struct packed_head {
    uint64_t line;
    size_t length[PACKED + FEED_KEYS];
} packed_head;

doppel_status pack_document(const feed *f, const doppel_document *d, doppel_output *output) {
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
    doppel_status status = doppel_output_write(output, (doppel_slice){(const char *)&head, sizeof head});
    for (size_t i = 0; i < PACKED + f->key_count && status == DOPPEL_OK; i++) {
        if (!parts[i].data)
            continue;
        status = doppel_output_write(output, parts[i]);
        if (status == DOPPEL_OK)
            status = doppel_output_write(output, (doppel_slice){"", 1});
    }
    return status;
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

/* Packed documents of this many bytes do not wait for more. */
#define MOST_WAITING ((size_t)32 << 20)

/* This many records are judged before any document goes to the engine. From a pipe, documents go as they come: the
 * process that writes to it may wait for the verdict. */
enum { JUDGED = 1000 };

/* ---- batches ---- */

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
    f->input.bad(why, f->input.user);
    return f->input.strict ? DOPPEL_ERROR_INPUT : DOPPEL_OK;
}

/* Reports the verdicts; `given` is how the batch went. What is in the engine is reported, even if --strict ends the
 * command at an earlier item. */
static doppel_status tell_all(feed *f, doppel_status given) {
    doppel_status status = DOPPEL_OK, told = DOPPEL_OK;
    for (size_t i = 0; i < f->count && told == DOPPEL_OK; i++) {
        doppel_error *why = &f->errors[i];
        bool bad = why->code == DOPPEL_ERROR_INPUT || why->code == DOPPEL_ERROR_USAGE;
        if (why->code == DOPPEL_OK)
            told = f->on_verdict(f, &f->items[i], &f->verdicts[i]);
        else if (status == DOPPEL_OK && (bad || given == DOPPEL_OK))
            status = bad ? leave_out(f, &f->items[i].document, why) : fail(why->code, why);
    }
    return told != DOPPEL_OK ? told : status;
}

/* Gives the batch to the engine, and reports the verdicts. */
static doppel_status send_batch(feed *f) {
    doppel_error error = {0};
    doppel_status given = DOPPEL_OK;
    for (size_t i = 0; i < f->count; i++)
        f->errors[i] = (doppel_error){.code = DOPPEL_ERROR_STORE};
    if (f->count && f->check)
        given = doppel_engine_check_batch(f->cli->engine, f->items, f->count, f->verdicts, f->errors, &error);
    else if (f->count)
        given = doppel_engine_add_batch(f->cli->engine, f->items, f->count, f->verdicts, f->errors, &error);
    doppel_status status = tell_all(f, given);
    f->count = 0;
    doppel_status over = f->on_batch_end ? f->on_batch_end(f) : DOPPEL_OK;
    fail(given, &error);
    return given != DOPPEL_OK ? given : status != DOPPEL_OK ? status : over;
}

/* Makes the packed document at `bytes` the next item of the batch. */
static doppel_status take(feed *f, const char *bytes) {
    doppel_error why = {0};
    doppel_item *item = &f->items[f->count];
    doppel_document document;
    unpack_document(f, bytes, &document, f->extra + f->count * f->key_count);
    *item = (doppel_item){.size = sizeof *item, .document = document};
    switch (f->make_item ? f->make_item(f, &document, item, &why) : FEED_TAKE) {
    case FEED_TAKE: f->count++; return DOPPEL_OK;
    case FEED_BAD: return leave_out(f, &document, &why);
    case FEED_END: failure_reported = true; return DOPPEL_ERROR_STORE;
    default: return DOPPEL_OK;
    }
}

/* Sends all that waits. */
static doppel_status drain(feed *f) {
    doppel_status status = DOPPEL_OK;
    doppel_slice extra[FEED_KEYS];
    doppel_document document;
    for (size_t at = 0; at < f->packed.length && status == DOPPEL_OK;) {
        const char *bytes = f->packed.data + at;
        at += unpack_document(f, bytes, &document, extra);
        status = take(f, bytes);
        if (status == DOPPEL_OK && f->count == f->batch)
            status = send_batch(f);
    }
    if (status == DOPPEL_OK)
        status = send_batch(f);
    f->packed.length = f->waiting = 0;
    return status;
}

/* ---- reading ---- */

static doppel_status pack(void *state, const doppel_document *document, doppel_output *output) {
    return pack_document(state, document, output);
}

/* doppel_work.emit: whole documents, in input order. */
static doppel_status gather(void *user, doppel_slice bytes) {
    feed *f = user;
    doppel_slice extra[FEED_KEYS];
    doppel_document document;
    text_add(&f->packed, bytes.data, bytes.length);
    if (f->packed.failed)
        return DOPPEL_ERROR_MEMORY;
    for (size_t at = 0; at < bytes.length; f->waiting++)
        at += unpack_document(f, bytes.data + at, &document, extra);
    return f->from_pipe || f->waiting >= f->batch || f->packed.length >= MOST_WAITING ? drain(f) : DOPPEL_OK;
}

/* Whether an input is a pipe or the like, which may be slow. */
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

static bool make_batch(feed *f) {
    f->batch = f->batch ? f->batch : 1;
    f->items = calloc(f->batch, sizeof *f->items);
    f->verdicts = calloc(f->batch, sizeof *f->verdicts);
    f->errors = calloc(f->batch, sizeof *f->errors);
    f->extra = calloc(f->batch * f->key_count + 1, sizeof *f->extra);
    return f->items && f->verdicts && f->errors && f->extra;
}

int feed_run(feed *f) {
    const cli_args *args = f->cli->args;
    doppel_error error = {0};
    doppel_work work = {.user = f, .document = pack, .emit = gather};
    f->from_pipe = is_live(args);
    f->input = reading_options(args);
    f->input.no_made_ids = true;
    f->input.judge_first = JUDGED;
    f->input.judge_holds = !f->from_pipe;
    f->input.unseen = warn_unseen_option;
    f->input.extra_keys = f->keys;
    f->input.extra_count = f->key_count;
    if (!make_batch(f)) {
        message("no memory");
        return EXIT_STORE;
    }
    progress_begin("reading");
    doppel_status status = doppel_input_run(args->operands, args->operand_count, &f->input, &work, &f->counts, &error);
    bool strict = status == DOPPEL_ERROR_INPUT && f->input.strict;
    if (status == DOPPEL_OK || (strict && !f->bad)) {
        doppel_status drained = drain(f);
        status = drained != DOPPEL_OK ? drained : status;
    }
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
    for (size_t i = 0; f->verdicts && i < f->batch; i++)
        doppel_verdict_free(&f->verdicts[i]);
    text_free(&f->packed);
    free(f->items);
    free(f->verdicts);
    free(f->errors);
    free(f->extra);
}

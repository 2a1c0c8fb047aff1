/* batch.c - many documents in one request, one per line (NDJSON).
 *
 * The body is buffered until there is enough for a worker (256 KiB), which decompresses it, cuts it into lines and
 * gives them to the engine, some hundreds at a time; their verdicts go to a spool, which is sent once the body has
 * ended. So a batch of any length takes the memory of a few hundred lines.
 *
 * What a client can make the server hold is bounded. Before lines go to the engine, the length of the spool is checked:
 * once it, or all spools together, are as long as allowed, the answer is cut: it ends with a problem that names the
 * first line that was not processed, and the rest of the body is read and dropped. So everything that was added is
 * answered. Lines that are not processed yet count against --max-buffered, and end the answer likewise. Bad lines cost
 * little to send and much to answer: after BAD_LINES of them, consecutive ones get one line.
 */
#include "common/stored_json.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

enum {
    WORK_BYTES = 1 << 18,  /* bytes received before a worker is called */
    LINES = 512,           /* lines that the engine gets at a time */
    LINES_BYTES = 1 << 20, /* or fewer, once they have this many bytes together */
    BAD_LINES = 1000,      /* that are answered one by one */
};

typedef struct line {
    size_t from, length; /* in `text` */
    uint64_t number;
    json json;
    doppel_slice *extra;
    bool asked; /* it is among the items */
    problem why;
} line;

/* Consecutive bad lines. */
typedef struct bad_range {
    uint64_t first, last; /* 0: there is none */
    problem_kind kind;
} bad_range;

typedef struct batch {
    bool add;
    bool broken;          /* the body cannot be decompressed, which was reported */
    bool cut;             /* the answer has ended, which was reported */
    bool skipping;        /* the line is too long, which was reported */
    text_buffer received; /* not processed yet, compressed or not */
    text_buffer text;     /* lines, each with a NUL at its end */
    size_t line_start;    /* where the last line begins, which is not complete yet */
    uint64_t number;      /* of lines so far */
    line lines[LINES];
    size_t count;
    doppel_item items[LINES];
    doppel_verdict verdicts[LINES];
    doppel_error errors[LINES];
    uint64_t bad; /* lines so far */
    bad_range bad_lines;
    text_buffer out;
} batch;

static void work(request *r);

static const char too_many_bodies[] =
    "too many bodies are being received: send this line and those after it again later";

bool batch_begin(request *r) {
    bool add = !strcmp(request_choice(r, "op"), "add");
    if (add && r->right < RIGHT_WRITE) {
        request_problem(r, PROBLEM_NO_RIGHT, NULL, "op=add needs a token with the right write");
        return false;
    }
    r->batch = calloc(1, sizeof *r->batch);
    r->spool = spool_create(r->service->options.tmp);
    if (!r->batch || !r->spool) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    if (!request_set_buffered(r, sizeof *r->batch)) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "too many bodies are being received; try again later");
        return false;
    }
    r->batch->add = add;
    r->spool->total = &r->service->spooled;
    r->work = work;
    return true;
}

void batch_free(batch *b) {
    if (!b)
        return;
    for (size_t i = 0; i < LINES; i++) {
        json_free(&b->lines[i].json);
        free(b->lines[i].extra);
        doppel_verdict_free(&b->verdicts[i]);
    }
    text_free(&b->received);
    text_free(&b->text);
    text_free(&b->out);
    free(b);
}

bool batch_receive(request *r, const char *bytes, size_t length) {
    if (r->batch->broken || r->batch->cut)
        return false;
    text_add(&r->batch->received, bytes, length);
    return r->batch->received.failed || r->batch->received.length >= WORK_BYTES;
}

/* ---- lines to items ---- */

static bool prepare(request *r, line *l, doppel_item *item) {
    batch *b = r->batch;
    l->why = (problem){.kind = PROBLEM_NOT_JSON};
    if (!json_read(&l->json, b->text.data + l->from, l->length)) {
        l->why.kind = l->json.no_memory ? PROBLEM_NO_MEMORY : PROBLEM_NOT_JSON;
        l->why.position = l->json.position + 1;
        snprintf(l->why.detail, sizeof l->why.detail, "%s", l->json.why);
        return false;
    }
    const json_value *object = l->json.values;
    if (!shape_check(&shape_record, &l->json, object, r->index, &l->why))
        return false;
    if (!item_has_content(&l->json, object)) {
        l->why.kind = PROBLEM_WRONG_SHAPE;
        snprintf(l->why.detail, sizeof l->why.detail, "a document needs at least one of url, title, text and html");
        return false;
    }
    free(l->extra);
    if (item_make(&l->json, object, r->index, item, &l->extra))
        return true;
    l->why.kind = PROBLEM_NO_MEMORY;
    snprintf(l->why.detail, sizeof l->why.detail, "no memory");
    return false;
}

/* ---- answers ---- */

static void write_problem(batch *b, problem *why, uint64_t number, uint64_t last) {
    why->line = number;
    text_format(&b->out, "{\"line\":%llu", (unsigned long long)number);
    if (last)
        text_member_count(&b->out, "lastLine", last);
    text_member(&b->out, "problem");
    problem_write(&b->out, why);
    text_put(&b->out, "}\n");
}

/* Answers the consecutive bad lines, if there are any. */
static void end_bad_lines(batch *b) {
    problem why = {.kind = b->bad_lines.kind};
    if (!b->bad_lines.first)
        return;
    snprintf(why.detail, sizeof why.detail, "the first %d bad lines of a batch are answered one by one", BAD_LINES);
    write_problem(b, &why, b->bad_lines.first, b->bad_lines.last);
    b->bad_lines.first = 0;
}

/* Whether the client is at fault: only then may problems of several kinds share a line, since a client sends what the
 * server failed at again. */
static bool is_of_client(problem_kind kind) {
    return problems[kind].status < 500;
}

static void answer_problem(batch *b, problem *why, uint64_t number) {
    bad_range *range = &b->bad_lines;
    if (++b->bad <= BAD_LINES) {
        write_problem(b, why, number, 0);
        return;
    }
    if (range->first && range->kind != why->kind && !(is_of_client(range->kind) && is_of_client(why->kind)))
        end_bad_lines(b);
    if (!range->first)
        *range = (bad_range){.first = number, .kind = why->kind};
    range->kind = range->kind == why->kind ? why->kind : PROBLEM_BAD_LINES;
    range->last = number;
}

static void answer_item(request *r, size_t i, doppel_status status, uint64_t number) {
    batch *b = r->batch;
    problem why;
    if (status == DOPPEL_OK) {
        end_bad_lines(b);
        text_verdict(&b->out, &b->verdicts[i], true);
        text_put(&b->out, "\n");
        return;
    }
    problem_of_error(&why, r->index, status, &b->errors[i]);
    answer_problem(b, &why, number);
}

static void write_out(request *r) {
    batch *b = r->batch;
    if (b->out.failed)
        r->spool->failed = true;
    else
        spool_write(r->spool, b->out.data, b->out.length);
    b->out.length = 0;
}

/* Frees the lines that are not processed yet. */
static void drop_text(request *r) {
    batch *b = r->batch;
    text_free(&b->text);
    b->line_start = 0;
    request_set_buffered(r, sizeof *b);
}

/* Ends the answer if it, or all answers together, are as long as allowed. */
static bool cut_if_full(request *r) {
    batch *b = r->batch;
    const service_options *o = &r->service->options;
    problem why = {.kind = PROBLEM_CUT};
    static const char next[] = "this line and those after it were not processed";
    if (o->max_answer && r->spool->length >= o->max_answer) {
        snprintf(why.detail, sizeof why.detail, "the answer has %llu bytes: %s; send them in another batch",
                 (unsigned long long)r->spool->length, next);
    } else if (o->max_spooled && atomic_load(&r->service->spooled) >= o->max_spooled) {
        why.kind = PROBLEM_NO_MEMORY;
        snprintf(why.detail, sizeof why.detail, "too many answers are being held: %s; send them again later", next);
    } else {
        return false;
    }
    end_bad_lines(b);
    write_problem(b, &why, b->lines[0].number, 0);
    write_out(r);
    b->cut = true;
    drop_text(r);
    return true;
}

/* Drops the lines that are answered; the incomplete one after them moves to the front. */
static void drop_lines(request *r) {
    batch *b = r->batch;
    for (size_t i = 0; i < b->count; i++)
        json_trim(&b->lines[i].json);
    b->count = 0;
    if (b->line_start)
        memmove(b->text.data, b->text.data + b->line_start, b->text.length - b->line_start);
    b->text.length -= b->line_start;
    b->line_start = 0;
    if (!b->text.length && b->text.room > 2 * LINES_BYTES)
        text_free(&b->text);
    request_set_buffered(r, sizeof *b + b->text.room);
}

/* Gives the lines to the engine, and their verdicts to the spool. */
static void flush(request *r) {
    batch *b = r->batch;
    if (b->cut || cut_if_full(r)) {
        b->count = 0;
        return;
    }
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    size_t asked = 0, item = 0;
    for (size_t i = 0; i < b->count; i++)
        asked += b->lines[i].asked = b->lines[i].length && prepare(r, &b->lines[i], &b->items[asked]);
    memset(b->errors, 0, sizeof b->errors);
    if (asked && index_is_away(r->index))
        status = DOPPEL_ERROR_AWAY;
    else if (asked)
        status = (b->add ? doppel_engine_add_batch : doppel_engine_check_batch)(r->index->engine, b->items, asked,
                                                                                b->verdicts, b->errors, &error);
    if (error.message[0])
        service_complain(status, &error);
    for (size_t i = 0; i < b->count; i++) {
        line *l = &b->lines[i];
        if (!l->asked) {
            answer_problem(b, &l->why, l->number);
            continue;
        }
        answer_item(r, item, b->errors[item].code != DOPPEL_OK ? b->errors[item].code : status, l->number);
        item++;
    }
    atomic_fetch_add(&r->service->metrics.lines, b->count);
    write_out(r);
    drop_lines(r);
}

/* ---- cutting ---- */

static bool is_blank(const char *bytes, size_t length) {
    while (length && (bytes[length - 1] == ' ' || bytes[length - 1] == '\t' || bytes[length - 1] == '\r'))
        length--;
    return !length;
}

/* A line that is answered without the engine: its `length` is 0. */
static void add_bad_line(request *r, problem_kind kind, const char *detail) {
    batch *b = r->batch;
    line *l = &b->lines[b->count++];
    l->from = b->line_start;
    l->length = 0;
    l->number = b->number + 1;
    l->why = (problem){.kind = kind};
    snprintf(l->why.detail, sizeof l->why.detail, "%s", detail);
    if (b->count == LINES)
        flush(r);
}

static void end_line(request *r) {
    batch *b = r->batch;
    size_t length = b->text.length - b->line_start;
    if (b->skipping || is_blank(b->text.data + b->line_start, length)) {
        b->text.length = b->line_start;
    } else {
        line *l = &b->lines[b->count++];
        l->from = b->line_start;
        l->length = length;
        l->number = b->number + 1;
        text_add(&b->text, "", 1);
        b->line_start = b->text.length;
    }
    b->skipping = false;
    b->number++;
    if (b->count == LINES || b->line_start >= LINES_BYTES)
        flush(r);
}

/* Ends the answer after the last whole line of the body; its own last line says why. */
static void end_early(request *r, problem_kind kind, const char *detail) {
    batch *b = r->batch;
    problem why = {.kind = kind};
    b->broken = true;
    b->text.length = b->line_start;
    if (b->count)
        flush(r);
    if (b->cut)
        return;
    drop_text(r);
    snprintf(why.detail, sizeof why.detail, "%s", detail);
    end_bad_lines(b);
    write_problem(b, &why, b->number + 1, 0);
    write_out(r);
}

/* Makes room for more bytes of a line; false: there is no memory, or the answer has ended as all bodies together hold
 * too much. */
static bool make_room(request *r, size_t bytes) {
    batch *b = r->batch;
    if (!text_reserve(&b->text, bytes))
        return false;
    if (request_set_buffered(r, sizeof *b + b->text.room))
        return true;
    end_early(r, PROBLEM_NO_MEMORY, too_many_bodies);
    return false;
}

/* Takes decompressed bytes. */
static bool take(void *user, const char *bytes, size_t length) {
    request *r = user;
    batch *b = r->batch;
    while (length && !b->cut) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        if (!b->skipping && b->text.length - b->line_start + part > r->service->options.max_body) {
            b->text.length = b->line_start;
            b->skipping = true;
            add_bad_line(r, PROBLEM_TOO_LARGE, "the line is too long");
        }
        if (!b->skipping && !make_room(r, part + 1)) /* and a NUL */
            return false;
        if (!b->skipping)
            text_add(&b->text, bytes, part);
        if (r->spool->failed)
            return false;
        if (end)
            end_line(r);
        bytes += end ? part + 1 : part;
        length -= end ? part + 1 : part;
    }
    return !b->cut;
}

/* ---- the work ---- */

static void work(request *r) {
    batch *b = r->batch;
    body_result result =
        b->broken || b->cut ? BODY_FINE : body_add(&r->body, b->received.data, b->received.length, take, r);
    bool no_memory = result == BODY_NO_MEMORY || b->received.failed || b->text.failed;
    b->received.length = 0;
    if (result == BODY_BROKEN)
        end_early(r, PROBLEM_BAD_ENCODING, "the body cannot be decompressed from here on");
    else if (result == BODY_TOO_DENSE)
        end_early(r, PROBLEM_TOO_LARGE,
                  "the body decompresses to more times its size than allowed: the rest was not read");
    else if (result == BODY_LARGE_WINDOW)
        end_early(r, PROBLEM_TYPE, "the body takes more memory to decompress than the server gives it");
    if (b->count)
        flush(r);
    if (no_memory)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory; documents sent so far may have been added");
    else if (r->spool->failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL,
                        "the answer cannot be stored; documents sent so far may have been added");
}

void handle_batch(request *r) {
    batch *b = r->batch;
    work(r);
    if (r->done)
        return;
    bool ended = b->broken || b->cut;
    if (!ended && !body_whole(&r->body)) {
        end_early(r, PROBLEM_BAD_ENCODING, "the compressed body is truncated");
    } else if (!ended && (b->text.length > b->line_start || b->skipping)) {
        end_line(r);
    }
    if (b->count)
        flush(r);
    end_bad_lines(b);
    write_out(r);
    if (r->spool->failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "the answer cannot be stored; the documents may have been added");
    else
        request_answer(r, 200);
    batch_free(b); /* now: the answer may take long to be sent */
    r->batch = NULL;
    request_set_buffered(r, 0);
}

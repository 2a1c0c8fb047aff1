/* batch.c - many documents in one request, a line each (NDJSON).
 *
 * What comes is kept until there is enough for a worker (256 KiB), which unpacks it, cuts it into lines and gives them
 * to the engine, some hundred at a time; their verdicts go to a spool, which is sent once the body has ended. So a
 * batch of any length takes the memory of a few hundred lines. */
#include "server/service.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENOUGH = 1 << 18,      /* bytes that a worker is called for */
    LINES = 512,           /* that the engine gets at a time */
    LINES_BYTES = 1 << 20, /* unless they are as long as this together */
};

typedef struct line {
    size_t from, length; /* in `held` */
    uint64_t number;
    json json;
    doppel_slice *extra;
    bool asked; /* it is among the items */
    problem why;
} line;

typedef struct batch {
    bool add;
    bool broken;     /* what comes cannot be unpacked, which has been told */
    bool skipping;   /* the line is too long, which has been told */
    text raw;        /* what came, packed or not */
    text held;       /* lines, a NUL behind each */
    size_t begun;    /* where the last one begins, which has no end yet */
    uint64_t number; /* of lines so far */
    line lines[LINES];
    size_t count;
    doppel_item items[LINES];
    doppel_verdict verdicts[LINES];
    doppel_status statuses[LINES];
    text out;
} batch;

static void work(request *r);

bool batch_begin(request *r) {
    bool add = !strcmp(request_choice(r, "op"), "add");
    if (add && r->right < RIGHT_WRITE) {
        request_problem(r, PROBLEM_NO_RIGHT, NULL, "op=add needs the right to write");
        return false;
    }
    r->batch = calloc(1, sizeof *r->batch);
    r->spool = spool_create(r->service->options.tmp);
    if (!r->batch || !r->spool) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    r->batch->add = add;
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
    text_free(&b->raw);
    text_free(&b->held);
    text_free(&b->out);
    free(b);
}

bool batch_receive(request *r, const char *bytes, size_t length) {
    text_add(&r->batch->raw, bytes, length);
    return r->batch->raw.failed || r->batch->raw.length >= ENOUGH;
}

/* ---- lines to items ---- */

static bool prepare(request *r, line *l, doppel_item *item) {
    batch *b = r->batch;
    l->why = (problem){.kind = PROBLEM_NOT_JSON};
    if (!json_read(&l->json, b->held.data + l->from, l->length)) {
        l->why.kind = l->json.no_memory ? PROBLEM_NO_MEMORY : PROBLEM_NOT_JSON;
        l->why.position = l->json.position + 1;
        snprintf(l->why.detail, sizeof l->why.detail, "%s", l->json.why);
        return false;
    }
    const json_value *object = l->json.values;
    if (!shape_check(&shape_document, &l->json, object, r->index, &l->why))
        return false;
    if (!item_says_something(&l->json, object)) {
        l->why.kind = PROBLEM_WRONG_SHAPE;
        snprintf(l->why.detail, sizeof l->why.detail, "a document needs one of url, title, text and html");
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

static void tell_problem(batch *b, problem *why, uint64_t number) {
    why->line = number;
    text_format(&b->out, "{\"line\":%llu,\"problem\":", (unsigned long long)number);
    problem_write(&b->out, why);
    text_put(&b->out, "}\n");
}

/* Why one of many failed: asked once more by itself. */
static doppel_status ask_alone(request *r, size_t i, doppel_error *error) {
    batch *b = r->batch;
    return b->add ? doppel_engine_add(r->index->engine, &b->items[i], &b->verdicts[i], error)
                  : doppel_engine_check(r->index->engine, &b->items[i], &b->verdicts[i], error);
}

static void tell_item(request *r, size_t i, doppel_status status, uint64_t number) {
    batch *b = r->batch;
    doppel_error error = {0};
    problem why;
    if (status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE)
        status = ask_alone(r, i, &error);
    if (status == DOPPEL_OK) {
        verdict_write(&b->out, &b->verdicts[i]);
        text_put(&b->out, "\n");
        return;
    }
    problem_of_error(&why, r->index, status, &error);
    tell_problem(b, &why, number);
}

/* Gives the lines to the engine, and their verdicts to the spool. */
static void flush(request *r) {
    batch *b = r->batch;
    doppel_error error = {0};
    doppel_status status = DOPPEL_OK;
    size_t asked = 0, item = 0;
    for (size_t i = 0; i < b->count; i++)
        asked += b->lines[i].asked = b->lines[i].length && prepare(r, &b->lines[i], &b->items[asked]);
    memset(b->statuses, 0, sizeof b->statuses);
    if (asked && index_is_away(r->index))
        status = DOPPEL_ERROR_IO;
    else if (asked)
        status = (b->add ? doppel_engine_add_batch : doppel_engine_check_batch)(r->index->engine, b->items, asked,
                                                                                b->verdicts, b->statuses, &error);
    if (error.message[0])
        service_complain(r->service, status, &error);
    for (size_t i = 0; i < b->count; i++) {
        line *l = &b->lines[i];
        if (!l->asked) {
            tell_problem(b, &l->why, l->number);
            continue;
        }
        tell_item(r, item, b->statuses[item] != DOPPEL_OK ? b->statuses[item] : status, l->number);
        item++;
    }
    atomic_fetch_add(&r->service->metrics.lines, b->count);
    if (b->out.failed)
        r->spool->failed = true;
    else
        spool_write(r->spool, b->out.data, b->out.length);
    b->out.length = 0;
    b->count = 0;
    /* What has no end yet moves to the front. */
    if (b->begun)
        memmove(b->held.data, b->held.data + b->begun, b->held.length - b->begun);
    b->held.length -= b->begun;
    b->begun = 0;
}

/* ---- cutting ---- */

static bool is_blank(const char *bytes, size_t length) {
    while (length && (bytes[length - 1] == ' ' || bytes[length - 1] == '\t' || bytes[length - 1] == '\r'))
        length--;
    return !length;
}

/* A line that is told as it is, without asking the engine: `length` 0. */
static void add_bad_line(request *r, problem_kind kind, const char *detail) {
    batch *b = r->batch;
    line *l = &b->lines[b->count++];
    l->from = b->begun;
    l->length = 0;
    l->number = b->number + 1;
    l->why = (problem){.kind = kind};
    snprintf(l->why.detail, sizeof l->why.detail, "%s", detail);
    if (b->count == LINES)
        flush(r);
}

static void end_line(request *r) {
    batch *b = r->batch;
    size_t length = b->held.length - b->begun;
    if (b->skipping || is_blank(b->held.data + b->begun, length)) {
        b->held.length = b->begun;
    } else {
        line *l = &b->lines[b->count++];
        l->from = b->begun;
        l->length = length;
        l->number = b->number + 1;
        text_add(&b->held, "", 1);
        b->begun = b->held.length;
    }
    b->skipping = false;
    b->number++;
    if (b->count == LINES || b->begun >= LINES_BYTES)
        flush(r);
}

/* What was unpacked. */
static bool take(void *user, const char *bytes, size_t length) {
    request *r = user;
    batch *b = r->batch;
    while (length) {
        const char *end = memchr(bytes, '\n', length);
        size_t part = end ? (size_t)(end - bytes) : length;
        if (!b->skipping && b->held.length - b->begun + part > r->service->options.max_body) {
            b->held.length = b->begun;
            b->skipping = true;
            add_bad_line(r, PROBLEM_TOO_LARGE, "the line is too long");
        }
        text_reserve(&b->held, part + 2);
        if (!b->skipping)
            text_add(&b->held, bytes, part);
        if (b->held.failed || r->spool->failed)
            return false;
        if (end)
            end_line(r);
        bytes += end ? part + 1 : part;
        length -= end ? part + 1 : part;
    }
    return true;
}

/* ---- the work ---- */

static void work(request *r) {
    batch *b = r->batch;
    body_result result = b->broken ? BODY_FINE : body_add(&r->body, b->raw.data, b->raw.length, take, r);
    bool no_memory = result == BODY_NO_MEMORY || b->raw.failed || b->held.failed;
    b->raw.length = 0;
    if (result == BODY_BROKEN) {
        b->broken = true;
        b->held.length = b->begun;
        add_bad_line(r, PROBLEM_BAD_ENCODING, "what came from here on cannot be unpacked");
    }
    if (b->count)
        flush(r);
    if (no_memory)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory; what was sent so far may have been added");
    else if (r->spool->failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL,
                        "the answer cannot be held; what was sent so far may have been added");
}

void handle_batch(request *r) {
    batch *b = r->batch;
    work(r);
    if (r->done)
        return;
    if (!b->broken && !body_whole(&r->body)) {
        b->held.length = b->begun;
        add_bad_line(r, PROBLEM_BAD_ENCODING, "the compressed body breaks off");
    } else if (b->held.length > b->begun || b->skipping) {
        end_line(r);
    }
    if (b->count)
        flush(r);
    if (r->spool->failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "the answer cannot be held; what was sent may have been added");
    else
        request_answer(r, 200);
}

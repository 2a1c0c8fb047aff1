/* request.c - the life of a request, from its head to its answer. */
#include "server/service.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t now_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

request *request_create(service *s, const request_head *head) {
    request *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    r->service = s;
    r->began = now_microseconds();
    snprintf(r->client, sizeof r->client, "%s", head->client ? head->client : "");
    atomic_fetch_add(&s->metrics.under_way, 1);
    r->target = strdup(head->target);
    if (r->target)
        request_take_head(r, head);
    else
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return r;
}

void request_free(request *r) {
    if (!r)
        return;
    service *s = r->service;
    uint64_t took = now_microseconds() - r->began;
    metrics_count(&s->metrics, r->route, r->status, took);
    atomic_fetch_add(&s->metrics.received, r->received);
    atomic_fetch_add(&s->metrics.sent, r->sent);
    atomic_fetch_sub(&s->metrics.under_way, 1);
    atomic_fetch_sub(&s->buffered, r->buffered);
    access_log_write(s, r, took);
    if (r->has_key)
        idempotency_end(&s->idempotency, &r->key, 0, NULL);
    if (r->index)
        indexes_give(&s->indexes, r->index);
    batch_free(r->batch);
    spool_free(r->spool);
    doppel_verdict_free(&r->verdict);
    free(r->extra);
    free(r->target);
    free(r->key_name);
    body_free(&r->body);
    json_free(&r->json);
    text_free(&r->content);
    text_free(&r->answer);
    free(r);
}

/* ---- the body ---- */

/* What was unpacked of a JSON body. */
static bool keep(void *user, const char *bytes, size_t length) {
    request *r = user;
    service *s = r->service;
    if (length > s->options.max_body - r->content.length) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "at most %llu bytes", (unsigned long long)s->options.max_body);
        return false;
    }
    if (atomic_fetch_add(&s->buffered, length) > s->options.max_buffered) {
        atomic_fetch_sub(&s->buffered, length);
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "too much is under way; try again later");
        return false;
    }
    r->buffered += length;
    text_reserve(&r->content, length + 1);
    text_add(&r->content, bytes, length);
    if (!r->content.failed)
        return true;
    request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return false;
}

bool request_receive(request *r, const char *bytes, size_t length) {
    r->received += length;
    if (r->received > DISCARD_MOST && (r->done || r->route->body == BODY_NONE))
        r->drop = true;
    if (r->done || r->route->body == BODY_NONE)
        return false;
    if (r->route->body == BODY_LINES)
        return batch_receive(r, bytes, length);
    body_result result = body_add(&r->body, bytes, length, keep, r);
    if (result == BODY_BROKEN)
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "what came cannot be unpacked");
    else if (result == BODY_TOO_DENSE)
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "it unpacks to more than %llu times its size: send it unpacked",
                        (unsigned long long)r->body.max_ratio);
    else if (result == BODY_NO_MEMORY)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return false;
}

run_kind request_received(request *r) {
    if (r->done)
        return RUN_QUICK;
    if (r->route->body != BODY_LINES && !body_whole(&r->body)) {
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the compressed body breaks off");
        return RUN_QUICK;
    }
    r->work = r->route->handle;
    bool waits = r->content.length > QUICK_BODY || (r->index && r->index->needs.connects);
    return r->route->run == RUN_QUICK && waits ? RUN_WORKER : r->route->run;
}

/* ---- the work ---- */

static void no_answer(request *r) {
    if (r->done && r->answer.failed)
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
}

void request_run(request *r) {
    r->work(r);
    if (r->adds) {
        request *list[] = {r};
        add_together(list, 1);
    }
    no_answer(r);
}

/* Whether its store went away while it stood in the queue. */
static bool is_too_late(request *r) {
    return r->index && !r->batch && index_is_away(r->index);
}

/* The work of a worker: all there is. */
void work_on(request **list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        request *r = list[i];
        if (is_too_late(r))
            request_away(r);
        else
            request_run(r);
        if (r->service->wake)
            r->service->wake(r);
    }
}

/* The work of an adder. */
void work_on_adds(request **list, size_t count) {
    bool away = count && is_too_late(list[0]); /* they are of one index */
    if (!away)
        add_together(list, count);
    for (size_t i = 0; i < count; i++) {
        if (away)
            request_away(list[i]);
        no_answer(list[i]);
        if (list[i]->service->wake)
            list[i]->service->wake(list[i]);
    }
}

void request_hand_over(request *r, run_kind run) {
    workers_add(run == RUN_ADD ? &r->service->adders : &r->service->workers, r);
}

/* ---- for handlers ---- */

void request_answer(request *r, int status) {
    r->status = status;
    r->type = r->route->type ? r->route->type : "application/json";
    r->done = true;
}

double request_number(const request *r, const char *name) {
    const char *value = request_choice(r, name);
    return value ? strtod(value, NULL) : 0;
}

const char *request_choice(const request *r, const char *name) {
    for (int i = 0; i < MAX_PARAMETERS && r->route->parameters[i].name; i++)
        if (!strcmp(r->route->parameters[i].name, name))
            return r->given[i] ? r->given[i] : r->route->parameters[i].otherwise;
    return NULL;
}

bool request_json(request *r) {
    problem p = {.kind = PROBLEM_NOT_JSON};
    if (!r->content.length && r->route->body == BODY_JSON_OPTIONAL)
        text_put(&r->content, "{}");
    text_reserve(&r->content, 1);
    if (r->content.failed) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    r->content.data[r->content.length] = 0;
    if (!json_read(&r->json, r->content.data, r->content.length)) {
        p.position = r->json.position + 1;
        p.kind = r->json.no_memory ? PROBLEM_NO_MEMORY : PROBLEM_NOT_JSON;
        snprintf(p.detail, sizeof p.detail, "%s", r->json.why);
        request_fail(r, &p);
        return false;
    }
    if (shape_check(r->route->takes, &r->json, r->json.values, r->index, &p))
        return true;
    request_fail(r, &p);
    return false;
}

/* problem.c - what went wrong, as application/problem+json (RFC 9457). */
#include "server/service.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const problem_info problems[PROBLEM_KINDS] = {
    [PROBLEM_NOT_JSON] = {"not-json", 400, "The body is not JSON"},
    [PROBLEM_WRONG_SHAPE] = {"wrong-shape", 400, "The body is JSON of another shape than this route takes"},
    [PROBLEM_BAD_DOCUMENT] = {"bad-document", 400, "The document cannot be used"},
    [PROBLEM_BAD_PARAMETER] = {"bad-parameter", 400, "A parameter is missing, unknown or has no such value"},
    [PROBLEM_BAD_REQUEST] = {"bad-request", 400, "The request makes no sense"},
    [PROBLEM_BAD_ENCODING] = {"bad-encoding", 400, "The compressed body is damaged"},
    [PROBLEM_BAD_LINES] = {"bad-lines", 400, "These lines of the batch cannot be used"},
    [PROBLEM_NO_TOKEN] = {"no-token", 401, "A token is needed"},
    [PROBLEM_WRONG_TOKEN] = {"wrong-token", 401, "The token is not known"},
    [PROBLEM_NO_RIGHT] = {"no-right", 403, "The token does not give this right"},
    [PROBLEM_CROSS_SITE] = {"cross-site", 403, "Pages of other sites may not use this server"},
    [PROBLEM_NO_ROUTE] = {"no-route", 404, "There is nothing at this path"},
    [PROBLEM_NO_DOCUMENT] = {"no-document", 404, "There is no such document"},
    [PROBLEM_NO_INDEX] = {"no-index", 404, "There is no such index"},
    [PROBLEM_METHOD] = {"method", 405, "This path does not take this method"},
    [PROBLEM_EXISTS] = {"exists", 409, "There is such an index already"},
    [PROBLEM_IN_PROGRESS] = {"in-progress", 409, "The same is under way already"},
    [PROBLEM_TOO_LARGE] = {"too-large", 413, "The body is too large"},
    [PROBLEM_CUT] = {"cut", 413, "The answer of the batch ends here"},
    [PROBLEM_TYPE] = {"type", 415, "A body of this type or encoding is not taken"},
    [PROBLEM_HOST] = {"host", 421, "This server is not called by that name"},
    [PROBLEM_KEY_REUSED] = {"key-reused", 422, "The Idempotency-Key was used with another body"},
    [PROBLEM_RATE] = {"rate", 429, "Too many requests"},
    [PROBLEM_FAILED] = {"failed", 500, "The server failed"},
    [PROBLEM_STORE] = {"store", 500, "The index cannot be read or written"},
    [PROBLEM_AWAY] = {"away", 503, "The store of the index does not answer, or takes nothing now"},
    [PROBLEM_UNAVAILABLE] = {"unavailable", 503, "The index is damaged or cannot be opened"},
    [PROBLEM_OFF] = {"off", 501, "The server was started without this, or the index does not take it"},
    [PROBLEM_NO_MEMORY] = {"no-memory", 503, "There is no memory for this now"},
};

void problem_write(text *out, const problem *p) {
    const problem_info *info = &problems[p->kind];
    text_format(out, "{\"type\":\"urn:doppel:problem:%s\",\"title\":\"%s\",\"status\":%d", info->name, info->title,
                info->status);
    text_member_string(out, "detail", slice_of(p->detail));
    if (p->pointer[0])
        text_member_string(out, "pointer", slice_of(p->pointer));
    if (p->line)
        text_member_count(out, "line", p->line);
    if (p->position)
        text_member_count(out, "position", p->position);
    text_put(out, "}");
}

static problem_kind kind_of(const index_entry *index, doppel_status status) {
    switch (status) {
    case DOPPEL_ERROR_USAGE:
    case DOPPEL_ERROR_INPUT: return PROBLEM_BAD_DOCUMENT;
    case DOPPEL_ERROR_MEMORY: return PROBLEM_NO_MEMORY;
    case DOPPEL_ERROR_AWAY: return PROBLEM_AWAY;
    case DOPPEL_ERROR_IO: return PROBLEM_STORE;
    case DOPPEL_ERROR_STORE: return index ? PROBLEM_UNAVAILABLE : PROBLEM_STORE;
    default: return PROBLEM_FAILED;
    }
}

enum { RETRY_AFTER = 1 }; /* seconds; a store that comes back is noticed sooner */

static const char try_again[] = "try again in a moment; what was to be added may have been, and is not added twice";

static const char see_log[] = "the server's log says what is wrong; other indexes are not affected";

void problem_of_error(problem *p, const index_entry *index, doppel_status status, const doppel_error *error) {
    *p = (problem){.kind = kind_of(index, status)};
    /* Paths of the machine are none of a client's business: of errors of the store the status is told alone. */
    bool tell = p->kind == PROBLEM_BAD_DOCUMENT && error && error->message[0];
    snprintf(p->detail, sizeof p->detail, "%s",
             tell                             ? error->message
             : p->kind == PROBLEM_AWAY        ? try_again
             : p->kind == PROBLEM_UNAVAILABLE ? see_log
                                              : doppel_status_name(status));
}

static void answer_problem(request *r, const problem *p) {
    const problem_info *info = &problems[p->kind];
    text_free(&r->answer);
    spool_free(r->spool);
    r->spool = NULL;
    problem_write(&r->answer, p);
    r->status = info->status;
    r->type = "application/problem+json";
    r->done = r->failed = true;
}

void request_problem(request *r, problem_kind kind, const char *pointer, const char *format, ...) {
    problem p = {.kind = kind};
    va_list list;
    va_start(list, format);
    vsnprintf(p.detail, sizeof p.detail, format, list);
    va_end(list);
    if (pointer)
        snprintf(p.pointer, sizeof p.pointer, "%s", pointer);
    answer_problem(r, &p);
}

void request_fail(request *r, const problem *p) {
    answer_problem(r, p);
}

void request_away(request *r) {
    request_problem(r, PROBLEM_AWAY, NULL, "nothing was done; try again in a moment");
    r->retry_after = RETRY_AFTER;
}

void request_unavailable(request *r) {
    request_problem(r, PROBLEM_UNAVAILABLE, NULL, "%s", see_log);
}

void request_error(request *r, doppel_status status, const doppel_error *error) {
    problem p;
    problem_of_error(&p, r->index, status, error);
    if (p.kind == PROBLEM_STORE || p.kind == PROBLEM_FAILED || p.kind == PROBLEM_AWAY || p.kind == PROBLEM_UNAVAILABLE)
        service_complain(r->service, status, error);
    if (p.kind == PROBLEM_AWAY)
        r->retry_after = RETRY_AFTER;
    answer_problem(r, &p);
}

void request_refused(request *r, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_USAGE)
        request_problem(r, PROBLEM_OFF, NULL, "%s", error->message);
    else
        request_error(r, status, error);
}

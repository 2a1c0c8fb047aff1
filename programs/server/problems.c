/* problems.c - errors as clients see them, application/problem+json (RFC 9457): the kinds, errors of the library in the
 * words of the API, and how a problem becomes the answer of a request. */
#include "server/service.h"

#include "doppel.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const problem_info problems[PROBLEM_KINDS] = {
    [PROBLEM_NOT_JSON] = {"not-json", 400, "The body is not JSON"},
    [PROBLEM_WRONG_SHAPE] = {"wrong-shape", 400, "The body does not have the shape that this route takes"},
    [PROBLEM_BAD_DOCUMENT] = {"bad-document", 400, "The document cannot be used"},
    [PROBLEM_BAD_PARAMETER] = {"bad-parameter", 400, "A parameter is missing, unknown or invalid"},
    [PROBLEM_BAD_REQUEST] = {"bad-request", 400, "The request is invalid"},
    [PROBLEM_BAD_ENCODING] = {"bad-encoding", 400, "The compressed body is damaged"},
    [PROBLEM_BAD_LINES] = {"bad-lines", 400, "These lines of the batch cannot be used"},
    [PROBLEM_NO_TOKEN] = {"no-token", 401, "A token is needed"},
    [PROBLEM_WRONG_TOKEN] = {"wrong-token", 401, "The token is not known"},
    [PROBLEM_NO_RIGHT] = {"no-right", 403, "The token does not give this right"},
    [PROBLEM_CROSS_SITE] = {"cross-site", 403, "Pages of other sites may not use this server"},
    [PROBLEM_NO_ROUTE] = {"no-route", 404, "There is nothing at this path"},
    [PROBLEM_NO_DOCUMENT] = {"no-document", 404, "There is no such document"},
    [PROBLEM_NO_INDEX] = {"no-index", 404, "There is no such index"},
    [PROBLEM_NO_RUN] = {"no-run", 404, "There is no such run"},
    [PROBLEM_METHOD] = {"method", 405, "This path does not support this method"},
    [PROBLEM_EXISTS] = {"exists", 409, "The index already exists"},
    [PROBLEM_IN_PROGRESS] = {"in-progress", 409, "The same operation is in progress"},
    [PROBLEM_RUN_FAILED] = {"run-failed", 409, "The run failed and has no result"},
    [PROBLEM_DEFAULT_INDEX] = {"default-index", 409, "The default index cannot be dropped"},
    [PROBLEM_TOO_LARGE] = {"too-large", 413, "The body is too large"},
    [PROBLEM_CUT] = {"cut", 413, "The answer of the batch ends here"},
    [PROBLEM_TYPE] = {"type", 415, "A body of this type or encoding is not accepted"},
    [PROBLEM_HOST] = {"host", 421, "This server does not answer to that host name"},
    [PROBLEM_KEY_REUSED] = {"key-reused", 422, "The Idempotency-Key was used with another body"},
    [PROBLEM_RATE] = {"rate", 429, "Too many requests"},
    [PROBLEM_FAILED] = {"failed", 500, "The server failed"},
    [PROBLEM_STORE] = {"store", 500, "The index cannot be read or written"},
    [PROBLEM_AWAY] = {"away", 503, "The store of the index does not answer, or refuses writes"},
    [PROBLEM_UNAVAILABLE] = {"unavailable", 503, "The index is damaged or cannot be opened"},
    [PROBLEM_FULL] = {"full", 503, "There is no room for this now"},
    [PROBLEM_OFF] = {"off", 501, "The server was started without this, or the index does not support it"},
    [PROBLEM_NO_MEMORY] = {"no-memory", 503, "There is not enough memory for this now"},
};

void problem_write(text_buffer *out, const problem *p) {
    const problem_info *info = &problems[p->kind];
    text_format(out, "{\"type\":\"urn:doppel:problem:%s\",\"title\":\"%s\",\"status\":%d", info->name, info->title,
                info->status);
    text_member_string(out, "detail", doppel_slice_of(p->detail));
    if (p->pointer[0])
        text_member_string(out, "pointer", doppel_slice_of(p->pointer));
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

enum { RETRY_AFTER = 1 }; /* seconds; a store that answers again is noticed sooner */

static const char try_again[] = "try again in a moment; documents may have been added, and are not added twice";

static const char see_log[] = "the server's log says what is wrong; other indexes are not affected";

void problem_words(char *message, size_t room) {
    static const struct {
        const char *option, *here;
    } words[] = {{"; --allow-bad continues without them", ""},
                 {"; --max-record sets it", ""},
                 {"--text-key ", "textKey="},
                 {"--html-key ", "textKey="},
                 {"--id-key ", "idKey="},
                 {": --format json reads it", ": give it a name that ends in .json"},
                 {": --format json", ": give it a name that ends in .json"},
                 {"; make one with `doppel df INPUT... -o TABLE` and give it with --df TABLE",
                  ", which the server does not take"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char *found = strstr(message, words[i].option);
        char *rest = found ? strdup(found + strlen(words[i].option)) : NULL;
        if (rest)
            snprintf(found, room - (size_t)(found - message), "%s%s", words[i].here, rest);
        free(rest);
    }
}

void problem_of_error(problem *p, const index_entry *index, doppel_status status, const doppel_error *error) {
    *p = (problem){.kind = kind_of(index, status)};
    /* Clients must not see paths of the machine: of an error of the store only the status is shown. */
    bool shown = p->kind == PROBLEM_BAD_DOCUMENT && error && error->message[0];
    snprintf(p->detail, sizeof p->detail, "%s",
             shown                            ? error->message
             : p->kind == PROBLEM_AWAY        ? try_again
             : p->kind == PROBLEM_UNAVAILABLE ? see_log
                                              : doppel_status_name(status));
    problem_words(p->detail, sizeof p->detail);
}

void request_fail(request *r, const problem *p) {
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
    request_fail(r, &p);
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
        service_complain(status, error);
    if (p.kind == PROBLEM_AWAY)
        r->retry_after = RETRY_AFTER;
    request_fail(r, &p);
}

void request_refused(request *r, doppel_status status, const doppel_error *error) {
    if (status == DOPPEL_ERROR_USAGE)
        request_problem(r, PROBLEM_OFF, NULL, "%s", error->message);
    else
        request_error(r, status, error);
}

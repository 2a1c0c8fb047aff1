/* test_server_faults.c - requests of every kind while the n-th allocation fails, for all n: each is answered, nothing
 * is lost, and the next one is served as if nothing had happened. */
#include "faults.h"

#include "server/service.h"

typedef struct sample {
    const char *method, *target, *type, *body;
    int status; /* when nothing fails; 201 is what was answered under the same Idempotency-Key before */
} sample;

#define JSON_TYPE "application/json"
#define LINES_TYPE "application/x-ndjson"
#define SOME "\"text\":\"some words that stand in a row, eleven of them at least\""

static const sample samples[] = {
    {"POST", "/v1/check", JSON_TYPE,
     "{\"id\":\"a\\u00e4\",\"url\":\"https://example.org/a\",\"source\":\"s\"," SOME "}", 200},
    {"POST", "/v1/documents", JSON_TYPE, "{\"id\":\"a\",\"title\":\"A title of its own\"," SOME "}", 200},
    {"POST", "/v1/documents", JSON_TYPE, "{\"id\":\"a\",\"title\":\"A title of its own\"," SOME "}", 201},
    {"GET", "/v1/documents/a", NULL, "", 200},
    {"GET", "/v1/documents?kind=originals&host=example.org", NULL, "", 200},
    {"GET", "/v1/documents?title=A+title+of+its+own", NULL, "", 200},
    {"GET", "/v1/documents/a/copies?limit=1", NULL, "", 200},
    {"GET", "/v1/runs/none", NULL, "", 404},
    {"GET", "/v1/runs/none/groups?similarity=0.9", NULL, "", 404},
    {"GET", "/v1/runs/none/pair?a=0&b=1", NULL, "", 404},
    {"GET", "/v1/runs/none/document?id=a", NULL, "", 404},
    {"GET", "/v1/runs", NULL, "", 200},
    {"GET", "/v1/session", NULL, "", 200},
    {"POST", "/v1/runs/none?textKey=body", NULL, "", 404},
    {"GET", "/v1/documents/a/similar?similarity=0.5", NULL, "", 200},
    {"POST", "/v1/similar?limit=2", JSON_TYPE, "{" SOME "}", 200},
    {"POST", "/v1/batch?op=add", LINES_TYPE, "{\"id\":\"a\"," SOME "}\n{\"url\":\"https://example.org/x\"}\nnonsense\n",
     200},
    {"POST", "/v1/dedupe", JSON_TYPE, "{\"results\":[{\"n\":1," SOME "},{" SOME "},{\"text\":\"other\"}]}", 200},
    {"POST", "/v1/compare", JSON_TYPE, "{\"a\":{" SOME "},\"b\":{\"html\":\"<p>some words that stand in a row\"}}",
     200},
    {"POST", "/v1/records?name=a.txt", "application/octet-stream", "some words that stand in a row", 200},
    {"POST", "/v1/records?name=a.jsonl&limit=1", "application/octet-stream", "{" SOME "}\n{" SOME "}\n", 200},
    {"POST", "/v1/records?name=a.jsonl", "application/octet-stream", "nonsense\n", 400},
    {"GET", "/v1/groups", NULL, "", 200},
    {"GET", "/v1/stats", NULL, "", 200},
    {"GET", "/v1/history?step=60", NULL, "", 200},
    {"GET", "/metrics", NULL, "", 200},
    {"GET", "/openapi.json", NULL, "", 200},
    {"GET", "/v1/indexes", NULL, "", 200},
    {"POST", "/v1/check", JSON_TYPE, "{\"nonsense\":1}", 400},
    {"GET", "/nowhere", NULL, "", 404},
};

static service served;

static const char *header(void *user, const char *name) {
    const sample *s = user;
    static char length[32];
    if (!strcmp(name, "Content-Type"))
        return s->type;
    if (!strcmp(name, "Idempotency-Key") && s->status == 201)
        return "key";
    if (strcmp(name, "Content-Length") != 0 || !s->type)
        return NULL;
    snprintf(length, sizeof length, "%zu", strlen(s->body));
    return length;
}

/* Gives the status; 0: there was no memory for the request itself. */
static int ask(const sample *s) {
    const request_head head = {s->method, s->target, "127.0.0.1", header, (void *)(uintptr_t)s};
    request *r = request_create(&served, &head);
    if (!r)
        return 0;
    if (s->type && request_receive(r, s->body, strlen(s->body)))
        r->work(r);
    request_received(r);
    if (!r->done)
        request_run(r);
    assert_true(r->done);
    int status = r->status;
    /* Where there is an answer it is whole: JSON, or the text that it says it is. */
    json j = {0};
    int kinds = pause_faults();
    if (strstr(r->type, "json") && r->answer.length && !r->answer.failed && !r->spool)
        assert_true(json_read(&j, r->answer.data, r->answer.length));
    json_free(&j);
    resume_faults(kinds);
    request_free(r);
    return status;
}

static void ask_without_memory(const sample *s, bool go_on) {
    for (size_t n = 1;; n += n > 50 && !full_suite() ? 50 : 1) {
        faults.calls = 0;
        faults.fail_at = n;
        faults.go_on = go_on;
        faults.kinds = MEMORY;
        int status = ask(s);
        faults.kinds = 0;
        bool met = faults.calls >= n;
        if (status != s->status && status != 503 && status != 0)
            fail_msg("%s %s: %d when allocation %zu fails", s->method, s->target, status, n);
        int after = ask(s);
        if (after != s->status)
            fail_msg("%s %s: %d after allocation %zu has failed", s->method, s->target, after, n);
        if (!met)
            return;
    }
}

static void each_request(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        ask_without_memory(&samples[i], false);
}

static void each_request_and_all_that_follows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        ask_without_memory(&samples[i], true);
}

static void opening(void **state) {
    (void)state;
    const service_options options = {.tmp = "/tmp", .max_body = 1 << 20, .max_buffered = 1 << 24, .threads = 2};
    for (size_t n = 1;; n += n > 50 && !full_suite() ? 50 : 1) {
        service s;
        faults.calls = 0;
        faults.fail_at = n;
        faults.go_on = false;
        faults.kinds = MEMORY | THREADS;
        int code = service_open(&s, &options);
        faults.kinds = 0;
        bool met = faults.calls >= n;
        service_close(&s);
        if (!met) {
            assert_int_equal(code, 0);
            return;
        }
    }
}

static int open_service(void **state) {
    (void)state;
    const service_options options = {.tmp = "/tmp", .max_body = 1 << 20, .max_buffered = 1 << 24, .threads = 2};
    const sample first = {"POST", "/v1/documents", JSON_TYPE,
                          "{\"id\":\"a\",\"title\":\"A title of its own\"," SOME "}", 201};
    int code = service_open(&served, &options);
    return code ? code : ask(&first) != 201;
}

static int close_service(void **state) {
    (void)state;
    service_close(&served);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_request),
        cmocka_unit_test(each_request_and_all_that_follows),
        cmocka_unit_test(opening),
    };
    return cmocka_run_group_tests(tests, open_service, close_service);
}

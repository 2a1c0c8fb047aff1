/* fuzz_request.c - any bytes as a request, without sockets: its first line is METHOD TARGET, then headers, an empty
 * line, and a body, which comes in pieces of as many bytes as the very first byte says. Every request gets an answer,
 * with a known status; an answer of type JSON is valid JSON. */
#include "fuzz.h"

#include "server/service.h"

#include <string.h>
#include <strings.h>

/* The index is created again after this many requests, so that it is small. */
enum { REQUESTS = 2000, HEADERS = 16 };

typedef struct head {
    char *lines[HEADERS];
    int count;
} head;

static const char *header(void *user, const char *name) {
    const head *h = user;
    size_t length = strlen(name);
    for (int i = 0; i < h->count; i++)
        if (!strncasecmp(h->lines[i], name, length) && h->lines[i][length] == ':')
            return h->lines[i] + length + 1;
    return NULL;
}

static service *open_service(void) {
    static service s;
    static int left;
    static const service_options options = {.tmp = "/tmp", .max_body = 1 << 20, .max_buffered = 1 << 24, .threads = 2};
    if (!left) {
        if (s.metrics.started)
            service_close(&s);
        CHECK(service_open(&s, &options) == 0);
        left = REQUESTS;
    }
    left--;
    return &s;
}

static void check_answer(request *r) {
    json j = {0};
    CHECK(r->done && r->status >= 200 && r->status < 600 && r->type);
    CHECK(r->spool || r->file || r->answer.length);
    if (r->answer.length && strstr(r->type, "json"))
        CHECK(json_read(&j, r->answer.data, r->answer.length));
    json_free(&j);
}

static void send_body(request *r, const char *bytes, size_t length, size_t piece) {
    while (length && !r->drop) {
        size_t now = length < piece ? length : piece;
        if (request_receive(r, bytes, now))
            r->work(r);
        bytes += now;
        length -= now;
    }
}

static void serve_one(char *text, const char *body, size_t length, size_t piece) {
    head h = {0};
    char *state, *line = strtok_r(text, "\n", &state), *target = line ? strchr(line, ' ') : NULL;
    if (!target)
        return;
    *target++ = 0;
    while (h.count < HEADERS && (h.lines[h.count] = strtok_r(NULL, "\n", &state)))
        h.count++;
    const request_head given = {line, target, "127.0.0.1", header, &h};
    request *r = request_create(open_service(), &given);
    CHECK(r);
    send_body(r, body, length, piece);
    request_received(r);
    if (!r->done)
        request_run(r);
    check_answer(r);
    request_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    size_t piece = data[0] ? data[0] : 65536;
    const char *text = (const char *)data + 1, *gap = memmem(text, size - 1, "\n\n", 2);
    size_t length = gap ? (size_t)(gap - text) : size - 1;
    char *copy = strndup(text, length);
    CHECK(copy);
    serve_one(copy, gap ? gap + 2 : "", gap ? size - 1 - length - 2 : 0, piece);
    free(copy);
    return 0;
}

/* respond.c - answers of requests as responses of libmicrohttpd. */
#include "server/respond.h"

#include "server/console.h"

#include <stdio.h>

static ssize_t read_spool(void *user, uint64_t from, char *to, size_t length) {
    long got = spool_read(user, from, to, length);
    return got > 0 ? got : got ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

static void free_spool(void *user) {
    spool_free(user);
}

/* What is sent belongs to the response from here on. */
static struct MHD_Response *make_response(request *r) {
    struct MHD_Response *response;
    if (r->file) {
        r->sent = r->file->length;
        return MHD_create_response_from_buffer(r->file->length, (void *)(uintptr_t)r->file->bytes,
                                               MHD_RESPMEM_PERSISTENT);
    }
    if (r->spool) {
        r->sent = r->spool->length;
        response = MHD_create_response_from_callback(r->spool->length, 1 << 16, read_spool, r->spool, free_spool);
        r->spool = response ? NULL : r->spool;
        return response;
    }
    r->sent = r->answer.length;
    response = MHD_create_response_from_buffer(r->answer.length, r->answer.data, MHD_RESPMEM_MUST_FREE);
    if (response)
        r->answer = (text){0};
    return response;
}

static void add_headers(struct MHD_Response *response, const request *r) {
    char seconds[16];
    MHD_add_response_header(response, "Content-Type", r->type);
    MHD_add_response_header(response, "Cache-Control", r->file ? "no-cache" : "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (r->file) {
        MHD_add_response_header(response, "Content-Security-Policy", CONSOLE_POLICY);
        MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
        MHD_add_response_header(response, "X-Frame-Options", "DENY");
        MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
    }
    if (r->status == 401)
        MHD_add_response_header(response, "WWW-Authenticate",
                                r->wrong_token ? "Bearer error=\"invalid_token\"" : "Bearer");
    if (r->allow[0])
        MHD_add_response_header(response, "Allow", r->allow);
    if (r->location[0])
        MHD_add_response_header(response, "Location", r->location);
    if (r->retry_after) {
        snprintf(seconds, sizeof seconds, "%u", r->retry_after);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    if (r->close || atomic_load(&r->service->draining))
        MHD_add_response_header(response, "Connection", "close");
}

enum MHD_Result respond(request *r, struct MHD_Connection *to) {
    struct MHD_Response *response = make_response(r);
    if (!response)
        return MHD_NO;
    add_headers(response, r);
    enum MHD_Result queued = MHD_queue_response(to, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return queued;
}

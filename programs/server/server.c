/* server.c - the service on its sockets, by libmicrohttpd: open connections and what each waits for, requests as they
 * arrive, answers as responses. */
#include "server/server.h"

#include "common/message.h"
#include "server/console.h"
#include "server/service.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- connections ---- */

/* Whether the other end has closed the connection, and nothing is left to read. libmicrohttpd may miss that when it
 * happens while a connection is suspended. */
static bool is_gone(const connection *c) {
    char byte;
    return recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static bool is_late(const connections *all, const connection *c, uint64_t now) {
    uint64_t waited = now - atomic_load(&c->since);
    switch (atomic_load(&c->phase)) {
    case PHASE_IDLE: return waited > all->idle * 1000000ull;
    case PHASE_HEAD: return waited > all->head * 1000000ull;
    case PHASE_BODY: return waited > all->body * 1000000ull;
    case PHASE_LINES: return waited > 1000000ull && is_gone(c);
    default: return false;
    }
}

/* Shuts down connections that are late; the thread of each sees its end, and closes it. */
static void shut_down_late(connections *all) {
    uint64_t now = now_microseconds();
    for (connection *c = all->first; c; c = c->next)
        if (atomic_load(&c->since) < now && is_late(all, c, now))
            shutdown(c->socket, SHUT_RDWR);
}

static void *watch(void *user) {
    connections *all = user;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        struct timespec until = milliseconds_from_now(1000);
        pthread_cond_timedwait(&all->end, &all->lock, &until);
        shut_down_late(all);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

static bool connections_open(connections *all, unsigned idle, unsigned head, unsigned whole) {
    *all = (connections){.idle = idle, .head = head, .body = whole};
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->end, NULL);
    all->running = !pthread_create(&all->watch, NULL, watch, all);
    return all->running;
}

static void connections_close(connections *all) {
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_signal(&all->end);
    pthread_mutex_unlock(&all->lock);
    if (all->running)
        pthread_join(all->watch, NULL);
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->end);
}

static void connection_is(connection *c, connection_phase phase) {
    if (!c)
        return;
    atomic_store(&c->since, now_microseconds());
    atomic_store(&c->phase, phase);
}

static connection *connection_add(connections *all, void *handle, int socket, const void *address, unsigned length) {
    connection *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->socket = socket;
    c->handle = handle;
    c->thread = pthread_self();
    if (!address || getnameinfo(address, length, c->client, sizeof c->client, NULL, 0, NI_NUMERICHOST))
        c->client[0] = 0;
    connection_is(c, PHASE_IDLE);
    pthread_mutex_lock(&all->lock);
    c->next = all->first;
    if (c->next)
        c->next->before = c;
    all->first = c;
    pthread_mutex_unlock(&all->lock);
    return c;
}

static void connection_remove(connections *all, connection *c) {
    if (!c)
        return;
    pthread_mutex_lock(&all->lock);
    if (c->before)
        c->before->next = c->next;
    else
        all->first = c->next;
    if (c->next)
        c->next->before = c->before;
    pthread_mutex_unlock(&all->lock);
    free(c);
}

/* ---- answers ---- */

static ssize_t read_spool(void *user, uint64_t from, char *to, size_t length) {
    long got = spool_read(user, from, to, length);
    return got > 0 ? got : got ? MHD_CONTENT_READER_END_WITH_ERROR : MHD_CONTENT_READER_END_OF_STREAM;
}

static void free_spool(void *user) {
    spool_free(user);
}

/* The response owns what is sent from here on. */
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
        r->answer = (text_buffer){0};
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
    if (r->disposition.length && !r->failed)
        MHD_add_response_header(response, "Content-Disposition", r->disposition.data);
    if (r->retry_after) {
        snprintf(seconds, sizeof seconds, "%u", r->retry_after);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    if (r->close || atomic_load(&r->service->draining))
        MHD_add_response_header(response, "Connection", "close");
}

static enum MHD_Result respond(request *r, struct MHD_Connection *to) {
    struct MHD_Response *response = make_response(r);
    if (!response)
        return MHD_NO;
    add_headers(response, r);
    enum MHD_Result queued = MHD_queue_response(to, (unsigned)r->status, response);
    MHD_destroy_response(response);
    return queued;
}

/* A request and its answer, from the first line on. */
typedef struct exchange {
    server *server;
    connection *connection;
    char *target;
    request *request;
    bool received; /* all of it */
} exchange;

/* ---- requests ---- */

static const char *header(void *user, const char *name) {
    return MHD_lookup_connection_value(user, MHD_HEADER_KIND, name);
}

/* Facts about a head that a proxy might read in another way than this server. */
typedef struct head_facts {
    int hosts;
    int lengths;  /* headers that say how long the body is */
    bool unclear; /* a name with a character that is not allowed, or a body whose length is not clear */
} head_facts;

static enum MHD_Result look_at_header(void *user, enum MHD_ValueKind kind, const char *name, const char *value) {
    head_facts *f = user;
    (void)kind;
    bool coding = !strcasecmp(name, "Transfer-Encoding");
    f->hosts += !strcasecmp(name, "Host");
    f->lengths += coding || !strcasecmp(name, "Content-Length");
    f->unclear = f->unclear || strpbrk(name, " \t\r\n") || (coding && strcasecmp(value, "chunked") != 0);
    return MHD_YES;
}

/* What is wrong with a head, whatever its route; NULL: nothing. */
static const char *wrong_with_head(const exchange *x, struct MHD_Connection *from, const char *version) {
    head_facts f = {0};
    bool names_host = !strncmp(version, "HTTP/1.", 7) && version[7] != '0';
    MHD_get_connection_values(from, MHD_HEADER_KIND, look_at_header, &f);
    return f.lengths > 1 || f.unclear      ? "the length of the body is ambiguous"
           : f.hosts > 1                   ? "there is more than one Host header"
           : !f.hosts && names_host        ? "HTTP/1.1 needs a Host header"
           : strpbrk(x->target, " \t\r\n") ? "the path contains a space: write it as %20"
                                           : NULL;
}

/* The head has arrived. */
static enum MHD_Result begin(exchange *x, struct MHD_Connection *from, const char *method, const char *version) {
    const request_head head = {method, x->target, x->connection ? x->connection->client : "", header, from};
    request *r = x->request = request_create(x->server->service, &head);
    if (!r)
        return MHD_NO;
    r->connection = from;
    const char *wrong = wrong_with_head(x, from, version);
    if (wrong) {
        r->close = true;
        request_problem(r, PROBLEM_BAD_REQUEST, NULL, "%s", wrong);
    }
    bool long_body = r->route && (r->route->body == BODY_LINES || r->route->body == BODY_FILE);
    connection_is(x->connection, long_body ? PHASE_LINES : PHASE_BODY);
    /* A body that is too large, or that waits for 100 Continue, is not read. */
    bool asks = header(from, "Expect");
    return r->done && (r->close || asks) ? respond(x->request, from) : MHD_YES;
}

static enum MHD_Result hand_over(exchange *x, struct MHD_Connection *from, dispatch_kind how) {
    MHD_suspend_connection(from);
    atomic_fetch_add(&x->server->service->handed_over, 1);
    request_hand_over(x->request, how);
    return MHD_YES;
}

/* The whole request has arrived. */
static enum MHD_Result work(exchange *x, struct MHD_Connection *from) {
    request *r = x->request;
    if (r->done)
        return respond(x->request, from);
    dispatch_kind how = request_received(r);
    x->received = true;
    connection_is(x->connection, PHASE_WORK);
    if (!r->done && how == DISPATCH_ADD && r->content.length <= QUICK_BODY) {
        r->work(r); /* prepares it */
        if (r->adds)
            return hand_over(x, from, DISPATCH_ADD);
    } else if (!r->done && how != DISPATCH_HERE) {
        return hand_over(x, from, how == DISPATCH_ADD ? DISPATCH_WORKER : how);
    } else if (!r->done) {
        request_run(r);
    }
    return respond(x->request, from);
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *from, const char *url, const char *method,
                                  const char *version, const char *bytes, size_t *length, void **state) {
    exchange *x = *state;
    (void)user;
    (void)url;
    if (!x)
        return MHD_NO;
    if (!x->request)
        return begin(x, from, method, version);
    if (!*length)
        return work(x, from);
    bool worker = request_receive(x->request, bytes, *length);
    *length = 0;
    if (x->request->drop)
        return MHD_NO;
    return worker ? hand_over(x, from, DISPATCH_WORKER) : MHD_YES;
}

static void wake(request *r) {
    service *s = r->service; /* the request may be freed after the next line */
    MHD_resume_connection(r->connection);
    atomic_fetch_sub(&s->handed_over, 1);
}

/* ---- connections ---- */

static connection *connection_of(struct MHD_Connection *from) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(from, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

/* The first line of a request has arrived: keeps its target unchanged. */
static void *on_target(void *user, const char *target, struct MHD_Connection *from) {
    exchange *x = calloc(1, sizeof *x);
    char *copy = strdup(target);
    if (!x || !copy) {
        free(x);
        free(copy);
        return NULL;
    }
    *x = (exchange){.server = user, .connection = connection_of(from), .target = copy};
    connection_is(x->connection, PHASE_HEAD);
    return x;
}

static void on_completed(void *user, struct MHD_Connection *from, void **state, enum MHD_RequestTerminationCode code) {
    exchange *x = *state;
    (void)user;
    (void)from;
    (void)code;
    if (!x)
        return;
    connection_is(x->connection, PHASE_IDLE);
    request_free(x->request);
    free(x->target);
    free(x);
    *state = NULL;
}

static void on_connection(void *user, struct MHD_Connection *from, void **state,
                          enum MHD_ConnectionNotificationCode code) {
    server *s = user;
    metrics *m = &s->service->metrics;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        atomic_fetch_sub(&m->connections, 1);
        connection_remove(&s->connections, *state);
        *state = NULL;
        return;
    }
    const union MHD_ConnectionInfo *socket = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CONNECTION_FD);
    const union MHD_ConnectionInfo *address = MHD_get_connection_info(from, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    atomic_fetch_add(&m->connections, 1);
    atomic_fetch_add(&m->connected, 1);
    *state = socket ? connection_add(&s->connections, from, socket->connect_fd, address ? address->client_addr : NULL,
                                     sizeof(struct sockaddr_storage))
                    : NULL;
}

/* Paths and queries stay percent-encoded: an id may hold a slash. */
static size_t leave_encoded(void *user, struct MHD_Connection *from, char *encoded) {
    (void)user;
    (void)from;
    return strlen(encoded);
}

/* ---- an invalid Content-Length ----
 *
 * libmicrohttpd answers it by itself, before any callback, and up to 0.9.75 it writes the head of that answer
 * twice. But it logs a message first: then the connection in question is the one of the same thread whose head has
 * arrived and whose request has not begun. It gets the right answer here, and its socket is shut down for any other. */

static void answer_bad_length(server *s, connection *c) {
    char head[320], date[64];
    struct tm parts;
    time_t now = time(NULL);
    const char *given = header(c->handle, "Content-Length");
    bool large = given && *given && !given[strspn(given, "0123456789")];
    request *r = request_create(s->service, &(request_head){"POST", "/", c->client, header, c->handle});
    if (!r)
        return;
    r->route = NULL;
    request_problem(r, large ? PROBLEM_TOO_LARGE : PROBLEM_BAD_REQUEST, NULL,
                    large ? "the Content-Length is too large" : "the Content-Length is not a number of bytes");
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&now, &parts));
    int length =
        snprintf(head, sizeof head,
                 "HTTP/1.1 %d %s\r\nDate: %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: "
                 "nosniff\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n",
                 r->status, MHD_get_reason_phrase_for((unsigned)r->status), date, r->type, r->answer.length);
    if (!r->answer.failed && send(c->socket, head, (size_t)length, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE) == length)
        send(c->socket, r->answer.data, r->answer.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    request_free(r);
}

/* Reads and drops what has arrived of the body: closing a socket with unread bytes would discard what was sent. */
static void shut_down(int socket) {
    enum { PIECE = 4096, MOST = 256 };
    char piece[PIECE];
    shutdown(socket, SHUT_WR);
    for (int i = 0; i < MOST && recv(socket, piece, sizeof piece, MSG_DONTWAIT) > 0; i++)
        ;
}

static bool is_past_its_head(const connection *c) {
    if (atomic_load(&c->phase) != PHASE_HEAD || !pthread_equal(c->thread, pthread_self()))
        return false;
    const union MHD_ConnectionInfo *size = MHD_get_connection_info(c->handle, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return size && size->header_size;
}

static void on_message(void *user, const char *format, va_list arguments) {
    server *s = user;
    connection *found = NULL;
    (void)arguments;
    if (!strstr(format, "Content-Length"))
        return;
    pthread_mutex_lock(&s->connections.lock);
    for (connection *c = s->connections.first; c && !found; c = c->next)
        found = is_past_its_head(c) ? c : NULL;
    pthread_mutex_unlock(&s->connections.lock);
    if (!found) /* only this thread could have removed it since */
        return;
    connection_is(found, PHASE_BODY);
    if (!s->options.certificate)
        answer_bad_length(s, found);
    shut_down(found->socket);
}

/* ---- start and stop ---- */

bool server_start(server *s, service *serves, const server_options *options) {
    unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    *s = (server){.service = serves, .options = *options};
    serves->wake = wake;
    if (!connections_open(&s->connections, 2 * options->timeout, options->timeout, options->receive_timeout)) {
        message("no threads");
        return false;
    }
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
                                   {MHD_OPTION_END, 0, NULL}};
    if (options->certificate)
        flags |= MHD_USE_TLS;
    else
        tls[0].option = MHD_OPTION_END;
    s->daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, s, MHD_OPTION_EXTERNAL_LOGGER, on_message, s, MHD_OPTION_LISTEN_SOCKET,
        options->socket, MHD_OPTION_THREAD_POOL_SIZE, options->threads, MHD_OPTION_CONNECTION_LIMIT,
        options->connections, MHD_OPTION_PER_IP_CONNECTION_LIMIT, options->per_client, MHD_OPTION_CONNECTION_TIMEOUT,
        options->timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->max_head, MHD_OPTION_UNESCAPE_CALLBACK,
        leave_encoded, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_target, s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
        MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!s->daemon)
        message("cannot start the server; does the certificate match the key?");
    return s->daemon;
}

/* Takes the connections that the system has already accepted. */
static void take_waiting(server *s, int listening) {
    struct sockaddr_storage address;
    for (;;) {
        socklen_t length = sizeof address;
        int made = accept4(listening, (struct sockaddr *)&address, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (made < 0)
            return;
        MHD_add_connection(s->daemon, made, (struct sockaddr *)&address, length);
    }
}

static bool is_busy(server *s) {
    bool busy = false;
    pthread_mutex_lock(&s->connections.lock);
    for (connection *c = s->connections.first; c && !busy; c = c->next)
        busy = atomic_load(&c->phase) != PHASE_IDLE;
    pthread_mutex_unlock(&s->connections.lock);
    return busy || atomic_load(&s->service->metrics.under_way);
}

void server_stop(server *s) {
    enum { STEP = 20000, QUIET = 10 };
    uint64_t until = now_microseconds() + s->options.stop_timeout * 1000000ull;
    atomic_store(&s->service->draining, true);
    if (s->daemon) {
        int listening = MHD_quiesce_daemon(s->daemon);
        if (listening >= 0) {
            take_waiting(s, listening);
            /* No connection is accepted any more; the descriptor stays in use while threads of the daemon may still
             * read it. */
            dup2(STDERR_FILENO, listening);
        }
        /* Requests may still be on their way: it waits until nothing has been in progress for a while. */
        for (int quiet = 0; quiet < QUIET && now_microseconds() < until; quiet = is_busy(s) ? 0 : quiet + 1)
            usleep(STEP);
        /* No connection may be suspended any more, however long its work takes. */
        while (atomic_load(&s->service->handed_over))
            usleep(STEP);
        MHD_stop_daemon(s->daemon);
        if (listening >= 0)
            close(listening);
    }
    connections_close(&s->connections);
}

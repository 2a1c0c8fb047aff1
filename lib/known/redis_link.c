/* redis_link.c - links to Redis: commands, bytes to and from a server, what its errors mean; finding the master,
 * greeting it, the pool of links; and commands in order, each executed once, over connections that break.
 *
 * Sockets do not block; waiting is poll(). Writing and reading take turns, so that a long pipeline cannot deadlock with
 * both sides' buffers full. A server that closes its end is an error of a call, never a signal (SIGPIPE).
 *
 * Errors are one table; the first that begins the error counts. ASK is waited out and not followed: it sends a command
 * to a node that has only some of the slot's keys. A function that reads several keys would miss those not yet moved,
 * and call known pages new. Until the whole slot has moved, functions that meet a missing key fail before they have
 * written anything, and are sent again.
 *
 * Greeting: HELLO gives the server's properties (version, mode, role, the connection's number) and is allowed for every
 * user. A user may lack the right to load functions (FUNCTION LOAD): then an administrator has loaded them
 * (dp_known_prepare). A user that may not even list them uses those that are loaded: users without the right to load
 * cannot have replaced them.
 *
 * Finding the master: one server: the URL names it. Sentinels: each is asked in turn, and the server it names must
 * itself report that it is the master. A Cluster: any node knows which node has which slots; if the master does not
 * answer, the others are asked until they have agreed on its successor.
 *
 * A call makes passes over the commands that have no answer yet. In a pass they are sent in order, a window at a time;
 * answers come in the same order, so the oldest in flight is always the one that is answered. A refusal (MOVED,
 * LOADING, ...) ends the sending: replies in flight are awaited, then the cause is handled. The next pass, like the
 * first on every connection, sends one command alone until one is answered, so that a server whose state changes in
 * between does not execute only the later ones of a window. When the connection breaks, what was sent may or may not
 * have been executed; it is sent again, and the function inside Redis recognises the request.
 *
 * With replicas an answer counts once a WAIT has confirmed it. If the connection is lost before, the server that gave
 * the answer may have been replaced by a master without it: all commands of the call are uncertain again. */
#include "known/redis_link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* ---- commands ---- */

/* A mark, a number and the end of the line. */
static bool put_size(dp_buffer *out, char mark, size_t size) {
    char line[24], *at = line + sizeof line;
    *--at = '\n';
    *--at = '\r';
    do
        *--at = (char)('0' + size % 10);
    while (size /= 10);
    *--at = mark;
    return dp_buffer_add(out, at, (size_t)(line + sizeof line - at));
}

static bool put_argument(dp_buffer *out, const void *bytes, size_t length) {
    return put_size(out, '$', length) && dp_buffer_add(out, length ? bytes : "", length) &&
           dp_buffer_add(out, "\r\n", 2);
}

void dp_redis_put(dp_redis_batch *batch, const void *bytes, size_t length) {
    if (batch->failed)
        return;
    dp_redis_command *command = &batch->command[batch->count - 1];
    batch->failed = !put_argument(&batch->bytes, bytes, length);
    command->arguments++;
    command->end = batch->bytes.size;
}

void dp_redis_put_text(dp_redis_batch *batch, const char *text) {
    dp_redis_put(batch, text, strlen(text));
}

void dp_redis_put_number(dp_redis_batch *batch, uint64_t number) {
    char digits[24];
    dp_redis_put(batch, digits, (size_t)snprintf(digits, sizeof digits, "%" PRIu64, number));
}

/* The prefix, a letter and a number, of which each may be empty. */
static void put_joined(dp_redis_batch *batch, doppel_slice prefix, char letter, uint64_t number, size_t bytes) {
    uint8_t key[DP_REDIS_LONGEST_PREFIX + 16], *at = key;
    if (prefix.length)
        memcpy(key, prefix.data, prefix.length);
    at += prefix.length;
    if (letter)
        *at++ = (uint8_t)letter;
    for (size_t i = bytes; i-- > 0; number >>= 8)
        at[i] = (uint8_t)number;
    dp_redis_put(batch, key, (size_t)(at - key) + bytes);
}

void dp_redis_put_bytes(dp_redis_batch *batch, char letter, uint64_t number, size_t bytes) {
    put_joined(batch, (doppel_slice){NULL, 0}, letter, number, bytes);
}

void dp_redis_put_key(dp_redis_batch *batch, char letter, uint64_t number, size_t bytes) {
    put_joined(batch, batch->prefix, letter, number, bytes);
}

void dp_redis_command_begin(dp_redis_batch *batch, const char *name) {
    if (batch->failed || !dp_reserve(&batch->command, &batch->room, batch->count + 1, sizeof *batch->command)) {
        batch->failed = true;
        return;
    }
    batch->command[batch->count++] = (dp_redis_command){.start = batch->bytes.size};
    dp_redis_put_text(batch, name);
}

void dp_redis_batch_free(dp_redis_batch *batch) {
    for (size_t i = 0; i < batch->count && batch->reply; i++)
        if (batch->reply[i])
            freeReplyObject(batch->reply[i]);
    free(batch->reply);
    free(batch->command);
    dp_buffer_free(&batch->bytes);
}

/* ---- a connection ----
 *
 *   wire_open, wire_put ..., wire_move and wire_reply in turn, wire_close */

/* Whether the process still waits for a server that does not answer. Once it does not, a server silent for GRACE
 * seconds is given up, whatever the timeout. */
typedef struct stop_state {
    _Atomic uint64_t since; /* when it was told to stop, in microseconds of dp_seconds; 0: it was not */
} stop_state;
#define GRACE 0.5

typedef struct wire_state {
    int fd; /* -1: closed */
    const stop_state *stop;
    redisReader *reader;
    dp_buffer out; /* bytes to send */
    size_t sent;   /* of `out` the system has these */
    char place[128];
} wire_state;

/* Bytes that were put and not sent yet. */
static inline size_t wire_unsent(const wire_state *wire) {
    return wire->out.size - wire->sent;
}

/* Bytes read at once: the reply reader moves the rest of its input each time it has used up 1 KB. */
enum { PIECE = 16 << 10 };

static doppel_status broken(const wire_state *wire, const char *reason, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: %s", wire->place, reason);
}

/* ---- a connection: opening ---- */

/* Waits until something of `events` can be done; 0 when it can, else an errno. Checks now and then whether the process
 * still wants to wait. */
static int wait_for(int fd, short events, double until, const stop_state *stop) {
    const double step = 0.1, began = dp_seconds();
    for (;;) {
        double since = (double)atomic_load_explicit(&stop->since, memory_order_relaxed) * 1e-6, end = until;
        if (since > 0 && (since > began ? since : began) + GRACE < end)
            end = (since > began ? since : began) + GRACE;
        double left = end - dp_seconds();
        struct pollfd what = {fd, events, 0};
        int ready = poll(&what, 1, left > step ? (int)(step * 1000) : left > 0 ? (int)(left * 1000) + 1 : 0);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
        if (!ready && dp_seconds() >= end)
            return ETIMEDOUT;
    }
}

/* Gives the connected socket, or -1 with errno. */
static int connect_socket(const struct sockaddr *address, socklen_t length, double until, const stop_state *stop) {
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int reason = connect(fd, address, length) ? errno : 0;
    if (reason == EINPROGRESS || reason == EINTR) {
        socklen_t size = sizeof reason;
        reason = wait_for(fd, POLLOUT, until, stop);
        if (!reason && getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size))
            reason = errno;
    }
    if (!reason)
        return fd;
    close(fd);
    errno = reason;
    return -1;
}

static int connect_local(const char *path, double until, const stop_state *stop) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    return connect_socket((struct sockaddr *)&address, sizeof address, until, stop);
}

static int connect_host(const dp_redis_address *to, double until, const stop_state *stop, const char **reason) {
    struct addrinfo wanted = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char port[16];
    snprintf(port, sizeof port, "%d", to->port);
    int problem = getaddrinfo(to->host, port, &wanted, &found);
    if (problem) {
        *reason = problem == EAI_SYSTEM ? NULL : gai_strerror(problem);
        return -1;
    }
    int fd = -1, on = 1;
    for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next)
        fd = connect_socket(at->ai_addr, at->ai_addrlen, until, stop);
    int kept = errno;
    freeaddrinfo(found);
    errno = kept;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static void wire_close(wire_state *wire) {
    if (wire->fd >= 0)
        close(wire->fd);
    if (wire->reader)
        redisReaderFree(wire->reader);
    dp_buffer_free(&wire->out);
    wire->fd = -1;
    wire->reader = NULL;
    wire->sent = 0;
}

/* Connects within `timeout` seconds, by each address of the host in turn. `stop` must outlive the wire. Errors:
 * DOPPEL_ERROR_AWAY, _MEMORY. */
static doppel_status wire_open(wire_state *wire, const dp_redis_address *to, double timeout, const stop_state *stop,
                               doppel_error *error) {
    bool local = !to->port;
    double until = dp_seconds() + timeout;
    const char *reason = NULL;
    *wire = (wire_state){.fd = -1, .stop = stop};
    if (local)
        snprintf(wire->place, sizeof wire->place, "%s", to->host);
    else
        snprintf(wire->place, sizeof wire->place, strchr(to->host, ':') ? "[%s]:%d" : "%s:%d", to->host, to->port);
    wire->fd = local ? connect_local(to->host, until, stop) : connect_host(to, until, stop, &reason);
    if (wire->fd < 0)
        return broken(wire, reason ? reason : strerror(errno), error);
    wire->reader = redisReaderCreate();
    if (wire->reader)
        return DOPPEL_OK;
    wire_close(wire);
    return dp_no_memory(error);
}

/* Whether nothing has arrived: unexpected bytes, or end of file, mean that it is unusable. */
static bool wire_is_quiet(const wire_state *wire) {
    char byte;
    return recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* Appends a command of a batch to what is to be sent. False: no memory, and nothing has changed. */
static bool wire_put(wire_state *wire, const dp_redis_batch *batch, size_t command) {
    const dp_redis_command *c = &batch->command[command];
    size_t before = wire->out.size;
    bool put = put_size(&wire->out, '*', c->arguments) &&
               dp_buffer_add(&wire->out, batch->bytes.data + c->start, c->end - c->start);
    if (!put)
        wire->out.size = before;
    return put;
}

/* ---- a connection: moving ---- */

static doppel_status send_some(wire_state *wire, doppel_error *error) {
    ssize_t sent = send(wire->fd, wire->out.data + wire->sent, wire_unsent(wire), MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DOPPEL_OK
                                                                         : broken(wire, strerror(errno), error);
    wire->sent += (size_t)sent;
    if (wire->sent == wire->out.size)
        wire->sent = wire->out.size = 0;
    return DOPPEL_OK;
}

static doppel_status receive_some(wire_state *wire, doppel_error *error) {
    char bytes[PIECE];
    ssize_t got = recv(wire->fd, bytes, sizeof bytes, 0);
    if (!got)
        return broken(wire, "the server closed the connection", error);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DOPPEL_OK
                                                                         : broken(wire, strerror(errno), error);
    return redisReaderFeed(wire->reader, bytes, (size_t)got) == REDIS_OK ? DOPPEL_OK : dp_no_memory(error);
}

/* Sends what can be sent and takes in what has come, once, waiting for either for up to `timeout` seconds. An error
 * means that the connection is unusable: DOPPEL_ERROR_AWAY, _MEMORY. */
static doppel_status wire_move(wire_state *wire, double timeout, doppel_error *error) {
    double until = dp_seconds() + timeout;
    struct pollfd what = {wire->fd, (short)(POLLIN | (wire_unsent(wire) ? POLLOUT : 0)), 0};
    int reason = wait_for(wire->fd, what.events, until, wire->stop);
    if (reason == ETIMEDOUT)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: silent for %.3g s", wire->place, timeout);
    if (reason)
        return broken(wire, strerror(reason), error);
    /* Replies first: those that arrived before the connection broke count. */
    doppel_status status = receive_some(wire, error);
    if (!status && wire_unsent(wire))
        status = send_some(wire, error);
    while (status == DOPPEL_ERROR_AWAY && !receive_some(wire, NULL) && !wait_for(wire->fd, POLLIN, until, wire->stop))
        continue;
    return status;
}

/* The next reply that has come whole; NULL: none yet. Errors as of move. */
static doppel_status wire_reply(wire_state *wire, redisReply **reply, doppel_error *error) {
    void *made = NULL;
    *reply = NULL;
    if (redisReaderGetReply(wire->reader, &made) != REDIS_OK)
        return wire->reader->err == REDIS_ERR_OOM ? dp_no_memory(error) : broken(wire, wire->reader->errstr, error);
    *reply = made;
    return DOPPEL_OK;
}

/* One command, words up to one without data, and its reply, which may be an error of Redis. Nothing else may be on its
 * way. Errors as of move. */
static doppel_status wire_ask(wire_state *wire, double timeout, const doppel_slice *words, redisReply **reply,
                              doppel_error *error) {
    double until = dp_seconds() + timeout;
    size_t count = 0;
    *reply = NULL;
    while (words[count].data)
        count++;
    bool put = put_size(&wire->out, '*', count);
    for (size_t i = 0; i < count && put; i++)
        put = put_argument(&wire->out, words[i].data, words[i].length);
    if (!put)
        return dp_no_memory(error);
    while (!*reply) {
        double left = until - dp_seconds();
        DP_TRY(wire_move(wire, left > 0 ? left : 0, error));
        DP_TRY(wire_reply(wire, reply, error));
    }
    return DOPPEL_OK;
}

/* ---- how to react to an error ---- */

typedef enum next_step {
    STEP_KEEP,  /* it is the command's own: returned to the caller */
    STEP_WAIT,  /* retry a little later */
    STEP_LOAD,  /* the functions are missing: load them and retry */
    STEP_FIND,  /* another server may be the master by now: find it and retry */
    STEP_MOVED, /* it names the master */
    STEP_FAIL   /* fatal: the operator has to act */
} next_step;

typedef struct meaning {
    const char *begins;
    next_step turn;
    doppel_status code;
    const char *words; /* NULL: the error's own text is enough */
} meaning;

static const char moving[] = "the slot of this index is being moved to another node of the Cluster, which takes longer "
                             "than retry= waits";

static const meaning meanings[] = {
    {"MOVED ", STEP_MOVED, DOPPEL_ERROR_AWAY, NULL},
    {"ASK ", STEP_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"TRYAGAIN", STEP_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"ERR Script attempted to access a non local key", STEP_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"LOADING", STEP_WAIT, DOPPEL_ERROR_AWAY, "it is still reading its data from disk"},
    {"BUSY ", STEP_WAIT, DOPPEL_ERROR_AWAY, "it is busy with a script"},
    {"NOREPLICAS", STEP_WAIT, DOPPEL_ERROR_AWAY, "it has fewer replicas than its min-replicas-to-write asks for"},
    {"ERR max number of clients", STEP_FIND, DOPPEL_ERROR_AWAY, "it has all the clients it takes (maxclients)"},
    {"CLUSTERDOWN", STEP_FIND, DOPPEL_ERROR_AWAY, "the Cluster is down: a master is gone and no replica took over"},
    {"MASTERDOWN", STEP_FIND, DOPPEL_ERROR_AWAY, "it is a replica that has lost its master"},
    {"READONLY", STEP_FIND, DOPPEL_ERROR_AWAY, "it is a replica, which takes no writes: name its master"},
    {"UNBLOCKED", STEP_FIND, DOPPEL_ERROR_AWAY, "it became a replica"},
    {"ERR Function not found", STEP_LOAD, DOPPEL_ERROR_AWAY, "doppel's functions vanish as soon as they are loaded"},
    {"OOM ", STEP_FAIL, DOPPEL_ERROR_AWAY,
     "it is full: raise its maxmemory, or let documents expire sooner (ttl), or remove some"},
    {"MISCONF", STEP_FAIL, DOPPEL_ERROR_AWAY,
     "it cannot save to its disk and takes no writes until it can: see its log and its disk"},
    {"NOAUTH", STEP_FAIL, DOPPEL_ERROR_STORE,
     "it asks for a password: give it with --store-password-file, in DOPPEL_REDIS_PASSWORD or in the URL "
     "(USER:PASSWORD@, or :PASSWORD@)"},
    {"WRONGPASS", STEP_FAIL, DOPPEL_ERROR_STORE, "the user name or the password is wrong, or the user is disabled"},
    {"NOPERM", STEP_FAIL, DOPPEL_ERROR_STORE, "its user lacks a right that docs/ENGINE.md lists (Rights)"},
    {"DENIED", STEP_FAIL, DOPPEL_ERROR_STORE, "it is in protected mode: give it a password (requirepass)"},
    {"ERR unknown command 'SENTINEL'", STEP_KEEP, DOPPEL_ERROR_STORE,
     "it is no Sentinel: name Sentinels, or give the server itself as redis://HOST:PORT"},
    {"ERR DB index is out of range", STEP_FAIL, DOPPEL_ERROR_STORE, "it does not have that db (databases)"},
    {"ERR SELECT is not allowed in cluster mode", STEP_FAIL, DOPPEL_ERROR_STORE,
     "it is a Cluster, which has db 0 only (prefix= tells indexes apart)"},
};

static const meaning *meaning_of(const redisReply *reply) {
    static const meaning other = {"", STEP_KEEP, DOPPEL_ERROR_STORE, NULL};
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!strncmp(reply->str, meanings[i].begins, strlen(meanings[i].begins)))
            return &meanings[i];
    return &other;
}

/* Each includes the ones before it. All but KEEP mean that the command was not executed. */
static next_step step_for(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR ? meaning_of(reply)->turn : STEP_KEEP;
}

doppel_status dp_redis_explain(const char *place, const redisReply *reply, doppel_error *error) {
    if (reply->type != REDIS_REPLY_ERROR)
        return dp_fail(error, DOPPEL_ERROR_STORE, "%s: it does not answer as Redis does", place);
    const meaning *found = meaning_of(reply);
    if (!found->words)
        return dp_fail(error, found->code, "%s: %.300s", place, reply->str);
    return dp_fail(error, found->code, "%s: %s (\"%.150s\")", place, found->words, reply->str);
}

/* ---- what links are made of ---- */

/* A command on its way. */
typedef struct sending_command {
    size_t bytes; /* in the wire's buffer */
    bool unknown; /* it was sent before, and may have been executed */
} sending_command;

struct dp_redis_link {
    dp_redis_pool *pool;
    dp_redis_link *next; /* in the pool's list */
    wire_state wire;
    bool ready;             /* connected, greeted, the functions are loaded */
    dp_redis_address where; /* host NULL: not known */
    bool cluster;           /* the server is a node of a Cluster */
    long long client;       /* the connection's number at the server */
    next_step refusal;      /* the reaction to the last error while connecting; STEP_KEEP: there was none */
    bool missing;           /* a call did not find the functions */
    bool wrote;             /* the server may remember requests of it */
    bool doubted;           /* a connection was dropped with requests that may still arrive */
    size_t turn;            /* the next to ask: an address of the URL, a known node */
    uint8_t name[8];
    uint64_t number;
    uint64_t chance; /* random state */
    sending_command *sending;
    size_t capacity; /* of `sending` */
};

struct dp_redis_pool {
    dp_redis_link_options options;
    dp_redis_counters counters;
    stop_state stop;
    pthread_mutex_t mutex;
    dp_redis_link *idle;
    /* Known nodes of the Cluster, the last master first. */
    dp_redis_address *node;
    size_t nodes, node_capacity;
    bool warned;
};

/* Whether the process no longer waits for servers that do not answer. */
static inline bool is_stopping(const dp_redis_pool *pool) {
    return atomic_load_explicit(&pool->stop.since, memory_order_relaxed) != 0;
}

__attribute__((format(printf, 4, 5))) static void log_line(dp_redis_pool *pool, doppel_log_level level,
                                                           const char *event, const char *format, ...) {
    if (!pool->options.log)
        return;
    char line[800];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pool->options.log(level, event, line, pool->options.user);
}

/* ---- links ---- */

/* A link without a connection. */
static dp_redis_link *link_create(dp_redis_pool *pool, doppel_error *error) {
    dp_redis_link *link = calloc(1, sizeof *link);
    if (!link) {
        dp_no_memory(error);
        return NULL;
    }
    link->pool = pool;
    link->wire.fd = -1;
    if (getrandom(link->name, sizeof link->name, 0) != sizeof link->name) {
        dp_fail(error, DOPPEL_ERROR_AWAY, "the system gives no random numbers: %s", strerror(errno));
        free(link);
        return NULL;
    }
    link->chance = dp_load64(link->name);
    return link;
}

static void link_free(dp_redis_link *link) {
    wire_close(&link->wire);
    free(link->where.host);
    free(link->sending);
    free(link);
}

const uint8_t *dp_redis_link_name(const dp_redis_link *link) {
    return link->name;
}

uint64_t dp_redis_link_next(dp_redis_link *link) {
    return ++link->number;
}

/* ---- greeting ---- */

enum { LEAST_VERSION = 7 };

static doppel_status ask(wire_state *wire, double timeout, const char *const *words, redisReply **reply,
                         doppel_error *error) {
    doppel_slice slices[16] = {{NULL, 0}};
    for (size_t i = 0; words[i]; i++)
        slices[i] = (doppel_slice){words[i], strlen(words[i])};
    return wire_ask(wire, timeout, slices, reply, error);
}
/* A command of words, and its reply: over a wire; over that of a link. */
#define ASK_WIRE(wire, timeout, reply, error, ...) \
    ask(wire, timeout, (const char *const[]){__VA_ARGS__, NULL}, reply, error)
#define ASK(link, reply, error, ...) \
    ASK_WIRE(&(link)->wire, (link)->pool->options.url->timeout, reply, error, __VA_ARGS__)

/* An error of Redis as an error of the call: sets `refusal`, frees the reply. */
static doppel_status refuse(dp_redis_link *link, redisReply *reply, doppel_error *error) {
    link->refusal = step_for(reply);
    doppel_status status = dp_redis_explain(link->wire.place, reply, error);
    freeReplyObject(reply);
    return status;
}

/* Sends a command whose reply must not be an error. */
static doppel_status demand(dp_redis_link *link, const char *const *words, doppel_error *error) {
    redisReply *reply;
    DP_TRY(ask(&link->wire, link->pool->options.url->timeout, words, &reply, error));
    if (reply->type == REDIS_REPLY_ERROR)
        return refuse(link, reply, error);
    freeReplyObject(reply);
    return DOPPEL_OK;
}

/* ---- server properties ---- */

/* In a list of alternating names and values, the value of a name; NULL: none. */
static const redisReply *value_of(const redisReply *pairs, const char *name) {
    for (size_t i = 0; i + 1 < pairs->elements; i += 2)
        if (pairs->element[i]->str && !strcmp(pairs->element[i]->str, name))
            return pairs->element[i + 1];
    return NULL;
}

static const char *text_of(const redisReply *pairs, const char *name) {
    const redisReply *value = value_of(pairs, name);
    return value && value->str ? value->str : "";
}

static doppel_status meet(dp_redis_link *link, const redisReply *hello, doppel_error *error) {
    const char *version = text_of(hello, "version");
    const redisReply *id = value_of(hello, "id");
    if (hello->type == REDIS_REPLY_ERROR && strncmp(hello->str, "ERR unknown command", 19))
        return dp_redis_explain(link->wire.place, hello, error);
    if (atoi(version) < LEAST_VERSION)
        return dp_fail(error, DOPPEL_ERROR_STORE, "%s: it is Redis %s; version 7 or later is needed (functions)",
                       link->wire.place, *version ? version : "below 6");
    link->cluster = !strcmp(text_of(hello, "mode"), "cluster");
    link->client = id ? id->integer : 0;
    if (link->pool->options.url->kind == DP_REDIS_SENTINEL && strcmp(text_of(hello, "role"), "master") != 0)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: the Sentinels name it as master, but it is a replica",
                       link->wire.place);
    return DOPPEL_OK;
}

static doppel_status say_hello(dp_redis_link *link, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    char name[32] = "doppel-";
    for (size_t i = 0; i < sizeof link->name; i++)
        snprintf(name + 7 + 2 * i, 3, "%02x", link->name[i]);
    const char *user = url->user ? url->user : "default";
    redisReply *hello;
    doppel_status status = url->password
                               ? ASK(link, &hello, error, "HELLO", "2", "AUTH", user, url->password, "SETNAME", name)
                               : ASK(link, &hello, error, "HELLO", "2", "SETNAME", name);
    DP_THEN(status, meet(link, hello, error));
    freeReplyObject(hello);
    return status;
}

/* Connects to `to` and makes the connection usable: password, name, version, db. Errors: DOPPEL_ERROR_AWAY (it may be
 * tried again), DOPPEL_ERROR_STORE, DOPPEL_ERROR_MEMORY; the wire is closed then. */
static doppel_status greet(dp_redis_link *link, const dp_redis_address *to, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    DP_TRY(wire_open(&link->wire, to, url->timeout, &link->pool->stop, error));
    char db[16];
    snprintf(db, sizeof db, "%d", url->db);
    doppel_status status = say_hello(link, error);
    if (!status && url->db)
        status = demand(link, (const char *const[]){"SELECT", db, NULL}, error);
    if (status)
        wire_close(&link->wire);
    return status;
}

/* ---- functions and settings ---- */

/* Which functions the server has under our name. */
typedef enum library_state { LIBRARY_ABSENT, LIBRARY_OURS, LIBRARY_OTHER, LIBRARY_HIDDEN } library_state;

static doppel_status look_at_library(dp_redis_link *link, library_state *state, doppel_error *error) {
    const dp_redis_link_options *o = &link->pool->options;
    redisReply *reply;
    DP_TRY(ASK(link, &reply, error, "FUNCTION", "LIST", "LIBRARYNAME", o->library_name, "WITHCODE"));
    if (reply->type == REDIS_REPLY_ERROR && step_for(reply) == STEP_WAIT)
        return refuse(link, reply, error);
    if (reply->type != REDIS_REPLY_ARRAY)
        *state = LIBRARY_HIDDEN;
    else if (!reply->elements)
        *state = LIBRARY_ABSENT;
    else
        *state = !strcmp(text_of(reply->element[0], "library_code"), o->library) ? LIBRARY_OURS : LIBRARY_OTHER;
    freeReplyObject(reply);
    return DOPPEL_OK;
}

/* *lost: another client was faster. */
static doppel_status load_library(dp_redis_link *link, bool replace, bool *lost, doppel_error *error) {
    const char *library = link->pool->options.library;
    redisReply *reply;
    doppel_status status = replace ? ASK(link, &reply, error, "FUNCTION", "LOAD", "REPLACE", library)
                                   : ASK(link, &reply, error, "FUNCTION", "LOAD", library);
    if (status)
        return status;
    *lost = reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "ERR Library", 11);
    if (reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "NOPERM", 6)) {
        freeReplyObject(reply);
        link->refusal = STEP_FAIL;
        return dp_fail(error, DOPPEL_ERROR_STORE,
                       "%s: it does not have doppel's functions (%s), and this user may not load them: an "
                       "administrator runs `doppel prepare --store URL` once",
                       link->wire.place, link->pool->options.library_name);
    }
    if (reply->type == REDIS_REPLY_ERROR && !*lost) {
        doppel_error refused;
        status = refuse(link, reply, &refused);
        return dp_fail(error, status, "doppel's functions cannot be loaded: %s", refused.message);
    }
    freeReplyObject(reply);
    return DOPPEL_OK;
}

static doppel_status refuse_library(dp_redis_link *link, doppel_error *error) {
    link->refusal = STEP_FAIL;
    return dp_fail(
        error, DOPPEL_ERROR_STORE,
        "%s: the functions %s on this server have other code than this doppel's, and are not called: an "
        "administrator runs `doppel prepare --store URL` to put them right, and looks who may load functions",
        link->wire.place, link->pool->options.library_name);
}

/* Loads the functions where they are missing and may be loaded. Other code under their name is refused, or replaced by
 * an administrator. *done: "present", "loaded" or "replaced". */
static doppel_status load_functions(dp_redis_link *link, const char **done, doppel_error *error) {
    enum { TRIES = 5 };
    bool administers = link->pool->options.administers, missing = link->missing;
    link->missing = false;
    *done = "present";
    for (int i = 0; i < TRIES; i++) {
        library_state state = LIBRARY_ABSENT;
        bool lost = false;
        doppel_status status = look_at_library(link, &state, error);
        if (status || state == LIBRARY_OURS)
            return status;
        if (state == LIBRARY_OTHER && !administers)
            return refuse_library(link, error);
        /* If they are hidden, the first call shows whether they exist. */
        if (state == LIBRARY_HIDDEN && !missing && !administers)
            return DOPPEL_OK;
        status = load_library(link, state == LIBRARY_OTHER, &lost, error);
        *done = state == LIBRARY_OTHER ? "replaced" : "loaded";
        if (status || !lost || state == LIBRARY_HIDDEN)
            return status;
        *done = "present";
    }
    return dp_fail(error, DOPPEL_ERROR_AWAY,
                   "%s: doppel's functions keep disappearing: does another program load or delete functions?",
                   link->wire.place);
}

/* Warns if keys may be evicted before they expire. A user without the right to query is not warned. */
static doppel_status warn_of_eviction(dp_redis_link *link, doppel_error *error) {
    redisReply *reply;
    DP_TRY(ASK(link, &reply, error, "CONFIG", "GET", "maxmemory*"));
    const char *policy = text_of(reply, "maxmemory-policy");
    if (strcmp(text_of(reply, "maxmemory"), "0") != 0 && *policy && strcmp(policy, "noeviction") != 0)
        log_line(link->pool, DOPPEL_LOG_WARNING, "REDIS_EVICTS",
                 "%s: maxmemory-policy is %s: when it is full it drops keys, and with them what doppel remembers, "
                 "without a word; set it to noeviction",
                 link->wire.place, policy);
    freeReplyObject(reply);
    return DOPPEL_OK;
}

/* Loads the functions if they are not there; warns once of what is wrong with the settings of the server. */
static doppel_status prepare(dp_redis_link *link, doppel_error *error) {
    const char *done;
    doppel_status status = link->pool->options.administers ? DOPPEL_OK : load_functions(link, &done, error);
    pthread_mutex_lock(&link->pool->mutex);
    bool warned = link->pool->warned;
    link->pool->warned = true;
    pthread_mutex_unlock(&link->pool->mutex);
    return status || warned ? status : warn_of_eviction(link, error);
}

/* ---- finding the master ---- */

enum { MOST_NODES = 1000 };

/* ---- addresses ---- */

static bool address_copy(dp_redis_address *to, const dp_redis_address *from) {
    char *host = strdup(from->host);
    if (!host)
        return false;
    free(to->host);
    *to = (dp_redis_address){host, from->port};
    return true;
}

static bool address_equal(const dp_redis_address *a, const dp_redis_address *b) {
    return a->host && b->host && a->port == b->port && !strcmp(a->host, b->host);
}

/* ---- one server, and Sentinels ---- */

static doppel_status connect_to(dp_redis_link *link, const dp_redis_address *to, doppel_error *error) {
    if (!address_copy(&link->where, to))
        return dp_no_memory(error);
    return greet(link, &link->where, error);
}

/* Reads the answer of a Sentinel. */
static doppel_status read_master(const wire_state *wire, const char *service, const redisReply *reply,
                                 dp_redis_address *master, doppel_error *error) {
    if (reply->type == REDIS_REPLY_ERROR)
        return dp_redis_explain(wire->place, reply, error);
    if (reply->type == REDIS_REPLY_NIL)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: this Sentinel knows no service %s", wire->place, service);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str || !reply->element[1]->str)
        return dp_redis_explain(wire->place, reply, error);
    dp_redis_address named = {reply->element[0]->str, atoi(reply->element[1]->str)};
    return address_copy(master, &named) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status ask_sentinel(const dp_redis_pool *pool, const dp_redis_address *sentinel, dp_redis_address *master,
                                  doppel_error *error) {
    const dp_redis_url *url = pool->options.url;
    wire_state wire;
    redisReply *reply = NULL;
    doppel_status status = wire_open(&wire, sentinel, url->timeout, &pool->stop, error);
    if (status)
        return status;
    if (url->sentinel_password) {
        status = ASK_WIRE(&wire, url->timeout, &reply, error, "AUTH", url->sentinel_password);
        if (!status && reply->type == REDIS_REPLY_ERROR)
            status = dp_redis_explain(wire.place, reply, error);
        freeReplyObject(reply);
        reply = NULL;
    }
    DP_THEN(status, ASK_WIRE(&wire, url->timeout, &reply, error, "SENTINEL", "get-master-addr-by-name", url->service));
    DP_THEN(status, read_master(&wire, url->service, reply, master, error));
    freeReplyObject(reply);
    wire_close(&wire);
    return status;
}

static doppel_status find_by_sentinels(dp_redis_link *link, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    doppel_status status = DOPPEL_ERROR_AWAY;
    for (size_t i = 0; i < url->addresses && status == DOPPEL_ERROR_AWAY && (!i || !is_stopping(link->pool)); i++) {
        dp_redis_address master = {0};
        status = ask_sentinel(link->pool, &url->address[link->turn % url->addresses], &master, error);
        DP_THEN(status, connect_to(link, &master, error));
        free(master.host);
        /* Another one may know. */
        if (status)
            link->turn++;
    }
    return status;
}

/* ---- the nodes of a Cluster ---- */

/* Remembers a node; false: out of memory. */
static bool remember(dp_redis_pool *pool, const dp_redis_address *node, bool in_charge) {
    pthread_mutex_lock(&pool->mutex);
    size_t i = 0;
    while (i < pool->nodes && !address_equal(&pool->node[i], node))
        i++;
    bool room = i < pool->nodes;
    if (!room && i < MOST_NODES && dp_reserve(&pool->node, &pool->node_capacity, i + 1, sizeof *pool->node)) {
        pool->node[i] = (dp_redis_address){0};
        room = address_copy(&pool->node[i], node);
        pool->nodes += room;
    }
    if (room && in_charge) {
        dp_redis_address first = pool->node[0];
        pool->node[0] = pool->node[i];
        pool->node[i] = first;
    }
    pthread_mutex_unlock(&pool->mutex);
    return room || i == MOST_NODES;
}

/* The n-th node to ask: known nodes, then those of the URL, and again from the start. */
static bool pick(dp_redis_link *link, size_t n, dp_redis_address *node) {
    const dp_redis_url *url = link->pool->options.url;
    pthread_mutex_lock(&link->pool->mutex);
    n %= link->pool->nodes + url->addresses;
    const dp_redis_address *at = n < link->pool->nodes ? &link->pool->node[n] : &url->address[n - link->pool->nodes];
    bool copied = address_copy(node, at);
    pthread_mutex_unlock(&link->pool->mutex);
    return copied;
}

static size_t count_places(dp_redis_link *link) {
    pthread_mutex_lock(&link->pool->mutex);
    size_t count = link->pool->nodes + link->pool->options.url->addresses;
    pthread_mutex_unlock(&link->pool->mutex);
    return count;
}

/* A node is named by its host, port and more; one that does not know its own host means the one that was asked. */
static bool read_node(const dp_redis_link *link, const redisReply *entry, dp_redis_address *node) {
    if (entry->type != REDIS_REPLY_ARRAY || entry->elements < 2 || entry->element[1]->type != REDIS_REPLY_INTEGER)
        return false;
    const char *host = entry->element[0]->str;
    static char here[] = "127.0.0.1";
    if (!host || !*host)
        host = link->where.port ? link->where.host : here;
    *node = (dp_redis_address){(char *)host, (int)entry->element[1]->integer};
    return strcmp(host, "?") != 0;
}

/* Reads CLUSTER SLOTS: ranges of slots, each with its first and last, its master and its replicas. */
static doppel_status read_slots(dp_redis_link *link, const redisReply *slots, long long slot, dp_redis_address *master,
                                doppel_error *error) {
    for (size_t i = 0; i < slots->elements; i++) {
        const redisReply *range = slots->element[i];
        if (range->type != REDIS_REPLY_ARRAY || range->elements < 3)
            return dp_redis_explain(link->wire.place, range, error);
        bool has = slot >= range->element[0]->integer && slot <= range->element[1]->integer;
        for (size_t n = 2; n < range->elements; n++) {
            dp_redis_address node;
            if (!read_node(link, range->element[n], &node))
                continue;
            if (!remember(link->pool, &node, has && n == 2))
                return dp_no_memory(error);
            if (has && n == 2 && !address_copy(master, &node))
                return dp_no_memory(error);
        }
    }
    return DOPPEL_OK;
}

/* Asks the current node which node has the index's slot; if none has, the host stays NULL. */
static doppel_status look_up(dp_redis_link *link, dp_redis_address *master, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    redisReply *slot = NULL, *slots = NULL;
    char key[128];
    snprintf(key, sizeof key, "{%s}m", url->prefix);
    doppel_status status = ASK(link, &slot, error, "CLUSTER", "KEYSLOT", key);
    DP_THEN(status, ASK(link, &slots, error, "CLUSTER", "SLOTS"));
    if (!status && (slot->type != REDIS_REPLY_INTEGER || slots->type != REDIS_REPLY_ARRAY))
        status = dp_redis_explain(link->wire.place, slot->type == REDIS_REPLY_INTEGER ? slots : slot, error);
    DP_THEN(status, read_slots(link, slots, slot->integer, master, error));
    freeReplyObject(slot);
    freeReplyObject(slots);
    return status;
}

/* Connects from the current node to the one that has the slot. `silent` is one that did not answer in this round. */
static doppel_status go_to_master(dp_redis_link *link, dp_redis_address *silent, doppel_error *error) {
    dp_redis_address master = {0};
    doppel_status status = look_up(link, &master, error);
    if (!status && master.host && !address_equal(&master, &link->where)) {
        wire_close(&link->wire);
        if (address_equal(&master, silent))
            status = dp_fail(error, DOPPEL_ERROR_AWAY, "%s:%d: the master of the index's slot does not answer",
                             master.host, master.port);
        else
            status = connect_to(link, &master, error);
        if (status == DOPPEL_ERROR_AWAY && !address_copy(silent, &master))
            status = dp_no_memory(error);
    }
    free(master.host);
    if (status)
        wire_close(&link->wire);
    return status;
}

static doppel_status find_in_cluster(dp_redis_link *link, doppel_error *error) {
    dp_redis_address node = {0}, silent = {0};
    doppel_status status = DOPPEL_ERROR_AWAY;
    size_t places = count_places(link);
    /* Where it was, or where MOVED pointed to, and then all the others. */
    for (size_t i = 0; i <= places && status == DOPPEL_ERROR_AWAY && (!i || !is_stopping(link->pool)); i++) {
        if (i ? !pick(link, link->turn++, &node) : link->where.host && !address_copy(&node, &link->where)) {
            status = dp_no_memory(error);
            break;
        }
        if (!node.host || (i && address_equal(&node, &silent)))
            continue;
        status = connect_to(link, &node, error);
        if (!status && link->cluster)
            status = go_to_master(link, &silent, error);
        else if (status == DOPPEL_ERROR_AWAY && !address_copy(&silent, &node))
            status = dp_no_memory(error);
    }
    free(node.host);
    free(silent.host);
    return status;
}

/* Follows "MOVED SLOT HOST:PORT": the next find goes there. */
static doppel_status follow_moved(dp_redis_link *link, const char *moved, doppel_error *error) {
    const char *space = strrchr(moved, ' '), *colon = strrchr(moved, ':');
    link->cluster = true;
    if (!space || !colon || colon < space || space[1] == '?')
        return DOPPEL_OK; /* it does not say where: all are asked */
    char *host = space + 1 == colon && link->where.host ? strdup(link->where.host)
                                                        : strndup(space + 1, (size_t)(colon - space - 1));
    if (!host)
        return dp_no_memory(error);
    free(link->where.host);
    link->where = (dp_redis_address){host, atoi(colon + 1)};
    return DOPPEL_OK;
}

/* Connects to the current master, in one round over the servers that may know it. Errors as of greet. */
static doppel_status find_server(dp_redis_link *link, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    bool cluster = url->kind == DP_REDIS_CLUSTER || link->cluster;
    doppel_status status;
    if (url->kind == DP_REDIS_SENTINEL)
        status = find_by_sentinels(link, error);
    else if (cluster)
        status = find_in_cluster(link, error);
    else
        status = connect_to(link, url->address, error);
    /* A server of its own that turns out to be a node of a Cluster. */
    if (!status && link->cluster && !cluster && url->kind != DP_REDIS_SENTINEL) {
        dp_redis_address silent = {0};
        status = go_to_master(link, &silent, error);
        free(silent.host);
    }
    DP_THEN(status, prepare(link, error));
    if (status)
        wire_close(&link->wire);
    link->ready = !status;
    return status;
}

/* ---- the pool ---- */

/* A server that answers but is still loading its data, or electing a master, is waited for; other failures are reported
 * at once. */
static bool may_pass(const dp_redis_link *link) {
    bool choosing = link->cluster || link->pool->options.url->kind == DP_REDIS_SENTINEL;
    return link->client && link->refusal != STEP_FAIL && (choosing || link->refusal == STEP_WAIT);
}

static doppel_status connect_first(dp_redis_pool *pool, doppel_error *error) {
    dp_redis_link *link = dp_redis_take(pool, error);
    if (!link)
        return error->code;
    double until = dp_seconds() + pool->options.url->retry;
    doppel_status status;
    for (;;) {
        link->client = 0;
        link->refusal = STEP_KEEP;
        status = find_server(link, error);
        if (status != DOPPEL_ERROR_AWAY || !may_pass(link) || dp_seconds() >= until)
            break;
        dp_sleep(0.1);
    }
    dp_redis_give(pool, link);
    return status;
}

doppel_status dp_redis_pool_create(const dp_redis_link_options *options, dp_redis_pool **pool, doppel_error *error) {
    dp_redis_pool *made = calloc(1, sizeof *made);
    *pool = NULL;
    if (!made)
        return dp_no_memory(error);
    made->options = *options;
    pthread_mutex_init(&made->mutex, NULL);
    doppel_error why = {0};
    doppel_status status = connect_first(made, &why);
    if (!status) {
        *pool = made;
        return DOPPEL_OK;
    }
    if (error)
        *error = why;
    dp_redis_pool_free(made);
    return status;
}

/* A server remembers the last request of a link for two minutes, so that it is known when it is sent again. The link
 * sends nothing more, so its record is deleted at once. If a request may still arrive from a dropped connection, or the
 * server is down, the record expires by itself. */
static void forget_requests(dp_redis_link *link) {
    const dp_redis_url *url = link->pool->options.url;
    size_t prefix = strlen(url->prefix), name = sizeof link->name;
    char key[160];
    const double patience = url->timeout < 1 ? url->timeout : 1;
    if (!link->wrote || link->doubted || !link->ready || !wire_is_quiet(&link->wire))
        return;
    snprintf(key, sizeof key, "{%s}r", url->prefix);
    memcpy(key + prefix + 3, link->name, name);
    redisReply *reply;
    (void)wire_ask(&link->wire, patience, (doppel_slice[]){{"DEL", 3}, {key, prefix + 3 + name}, {NULL, 0}}, &reply,
                   NULL);
    freeReplyObject(reply);
}

void dp_redis_pool_stop(dp_redis_pool *pool) {
    atomic_store(&pool->stop.since, (uint64_t)(dp_seconds() * 1e6));
}

void dp_redis_pool_free(dp_redis_pool *pool) {
    if (!pool)
        return;
    for (dp_redis_link *link = pool->idle, *next; link; link = next) {
        next = link->next;
        forget_requests(link);
        link_free(link);
    }
    for (size_t i = 0; i < pool->nodes; i++)
        free(pool->node[i].host);
    free(pool->node);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

dp_redis_link *dp_redis_take(dp_redis_pool *pool, doppel_error *error) {
    pthread_mutex_lock(&pool->mutex);
    dp_redis_link *link = pool->idle;
    if (link)
        pool->idle = link->next;
    pthread_mutex_unlock(&pool->mutex);
    return link ? link : link_create(pool, error);
}

void dp_redis_give(dp_redis_pool *pool, dp_redis_link *link) {
    pthread_mutex_lock(&pool->mutex);
    link->next = pool->idle;
    pool->idle = link;
    pthread_mutex_unlock(&pool->mutex);
}

const dp_redis_counters *dp_redis_get_counters(const dp_redis_pool *pool) {
    return &pool->counters;
}

/* ---- the functions, by an administrator ---- */

/* The callback that reports what was done on each server. */
typedef struct preparing {
    void (*server)(const char *server, const char *library, const char *state, void *user);
    void *user;
} preparing;

static doppel_status prepare_server(dp_redis_link *link, const preparing *p, doppel_error *error) {
    const char *state;
    DP_TRY(load_functions(link, &state, error));
    if (p->server)
        p->server(link->wire.place, link->pool->options.library_name, state, p->user);
    return DOPPEL_OK;
}

/* The masters that CLUSTER SLOTS names, each once. */
static doppel_status prepare_masters(dp_redis_link *link, const redisReply *slots, const preparing *p,
                                     doppel_error *error) {
    for (size_t i = 0; i < slots->elements; i++) {
        const redisReply *range = slots->element[i];
        if (range->type != REDIS_REPLY_ARRAY || range->elements < 3)
            return dp_redis_explain(link->wire.place, range, error);
        bool before = false;
        for (size_t k = 0; k < i && !before; k++) {
            const redisReply *other = slots->element[k]->element[2], *master = range->element[2];
            before = other->elements > 2 && master->elements > 2 && other->element[2]->str && master->element[2]->str &&
                     !strcmp(other->element[2]->str, master->element[2]->str);
        }
        dp_redis_address node;
        if (before || !read_node(link, range->element[2], &node))
            continue;
        wire_close(&link->wire);
        link->ready = false;
        doppel_status status = connect_to(link, &node, error);
        DP_THEN(status, prepare_server(link, p, error));
        if (status)
            return status;
    }
    return DOPPEL_OK;
}

static doppel_status prepare_all(dp_redis_link *link, const preparing *p, doppel_error *error) {
    if (!link->cluster)
        return prepare_server(link, p, error);
    redisReply *slots = NULL;
    doppel_status status = ASK(link, &slots, error, "CLUSTER", "SLOTS");
    if (!status && slots->type != REDIS_REPLY_ARRAY)
        status = dp_redis_explain(link->wire.place, slots, error);
    DP_THEN(status, prepare_masters(link, slots, p, error));
    freeReplyObject(slots);
    return status;
}

doppel_status dp_redis_pool_prepare(dp_redis_pool *pool,
                                    void (*server)(const char *server, const char *library, const char *state,
                                                   void *user),
                                    void *user, doppel_error *error) {
    const preparing p = {server, user};
    dp_redis_link *link = dp_redis_take(pool, error);
    if (!link)
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = prepare_all(link, &p, error);
    dp_redis_give(pool, link);
    return status;
}

/* ---- one pass over the commands that have no answer yet, on one connection ---- */

/* Commands in flight at most: what a server takes some milliseconds for. */
enum { WINDOW = 1000 };
#define FIRST_PAUSE 0.01

/* A call of dp_redis_call on its way. */
typedef struct calling {
    dp_redis_link *link;
    dp_redis_batch *batch;
    size_t count;
    bool safe;    /* with a WAIT */
    bool ordered; /* read-only, and no answer may be older than the one before it */
    redisReply **replies;
    size_t window;
    size_t oldest, next; /* of this pass: the first that is in flight, the first that is not sent */
    size_t flying;
    next_step turn; /* the reaction to its refusals */
    char moved[320];
    doppel_error refusal;
    bool broken;  /* a connection was dropped during this call */
    double heard; /* when the last answer came */
    double pause;
} calling;

/* Bytes prepared before the system takes them. */
enum { ROOM = 256 << 10 };

/* ---- leaving a connection ---- */

/* Drops the connection. */
static void disconnect(dp_redis_link *link) {
    wire_close(&link->wire);
    link->ready = false;
}

static void doubt(calling *call, size_t i) {
    call->link->sending[i].unknown = true;
    atomic_fetch_add_explicit(&call->link->pool->counters.resent, 1, memory_order_relaxed);
}

/* Drops the connection; `why` (may be NULL) is logged. Commands in flight that the system has may or may not have been
 * executed. */
static void drop_connection(calling *call, const doppel_error *why) {
    size_t unsent = wire_unsent(&call->link->wire), unknown = 0;
    for (size_t i = call->next; call->flying && i-- > call->oldest;) {
        if (call->replies[i])
            continue;
        size_t bytes = call->link->sending[i].bytes;
        if (!unsent) {
            doubt(call, i);
            unknown++;
        }
        unsent -= bytes < unsent ? bytes : unsent;
    }
    for (size_t i = 0; call->safe && i < call->count; i++)
        if (call->replies[i]) {
            freeReplyObject(call->replies[i]);
            call->replies[i] = NULL;
            doubt(call, i);
        }
    if (why)
        log_line(call->link->pool, DOPPEL_LOG_WARNING, "REDIS_LOST", "%s; %zu commands without an answer", why->message,
                 unknown);
    call->link->doubted = call->link->doubted || unknown;
    call->flying = 0;
    call->broken = true;
    disconnect(call->link);
}

/* ---- a pass ---- */

static doppel_status fill(calling *call, doppel_error *error) {
    wire_state *wire = &call->link->wire;
    while (call->turn == STEP_KEEP && call->flying < call->window && wire_unsent(wire) < ROOM) {
        while (call->next < call->count && call->replies[call->next])
            call->next++;
        if (call->next == call->count)
            return DOPPEL_OK;
        sending_command *sending = &call->link->sending[call->next];
        size_t before = wire->out.size;
        if (!wire_put(wire, call->batch, call->next))
            return dp_no_memory(error);
        sending->bytes = wire->out.size - before;
        call->next++;
        call->flying++;
    }
    return DOPPEL_OK;
}

static void settle(calling *call, redisReply *reply) {
    next_step turn = step_for(reply);
    while (call->replies[call->oldest])
        call->oldest++;
    size_t i = call->oldest++;
    call->flying--;
    if (turn == STEP_KEEP && call->turn != STEP_KEEP && call->ordered) {
        freeReplyObject(reply); /* it would be older than the reply before it: asked again */
        return;
    }
    if (turn == STEP_KEEP) {
        call->replies[i] = reply;
        call->heard = dp_seconds();
        call->pause = FIRST_PAUSE;
        call->window = WINDOW;
        return;
    }
    if (turn > call->turn) {
        call->turn = turn;
        dp_redis_explain(call->link->wire.place, reply, &call->refusal);
        snprintf(call->moved, sizeof call->moved, "%s", reply->str);
    }
    freeReplyObject(reply);
}

static doppel_status settle_all(calling *call, doppel_error *error) {
    for (;;) {
        redisReply *reply;
        doppel_status status = wire_reply(&call->link->wire, &reply, error);
        if (status || !reply)
            return status;
        if (!call->flying) {
            freeReplyObject(reply);
            return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: it sent a reply that no command waits for",
                           call->link->wire.place);
        }
        settle(call, reply);
    }
}

/* Sends all that have no answer, until a refusal, and takes the answers in. Errors: DOPPEL_ERROR_AWAY and _MEMORY; the
 * connection was given up then. */
static doppel_status pass(calling *call, doppel_error *error) {
    double timeout = call->link->pool->options.url->timeout;
    call->oldest = call->next = call->flying = 0;
    call->turn = STEP_KEEP;
    for (;;) {
        doppel_status status = fill(call, error);
        if (!status && !call->flying)
            return DOPPEL_OK;
        DP_THEN(status, wire_move(&call->link->wire, timeout, error));
        /* Replies that arrived before it broke count. */
        doppel_status settled = settle_all(call, status ? NULL : error);
        status = status ? status : settled;
        if (status) {
            drop_connection(call, error);
            return status;
        }
    }
}

/* Longest pause between two attempts; also used while a server answers but is not ready. */
#define LONGEST_PAUSE 1.0
#define LONGEST_WAIT 0.1

/* ---- replicas ---- */

/* WAIT counts from the last write of its own connection. After a broken one there may be none, so a key that expires at
 * once is written. */
static doppel_status write_mark(calling *call, doppel_error *error) {
    char key[128];
    snprintf(key, sizeof key, "{%s}z", call->link->pool->options.url->prefix);
    return demand(call->link, (const char *const[]){"SET", key, "", "PX", "1000", NULL}, error);
}

static doppel_status confirm(calling *call, doppel_error *error) {
    const dp_redis_url *url = call->link->pool->options.url;
    char replicas[16], milliseconds[16];
    redisReply *reply;
    snprintf(replicas, sizeof replicas, "%d", url->replicas);
    snprintf(milliseconds, sizeof milliseconds, "%d", (int)(url->timeout * 500) + 1);
    doppel_status status = call->broken ? write_mark(call, error) : DOPPEL_OK;
    DP_THEN(status, ASK_WIRE(&call->link->wire, 2 * url->timeout, &reply, error, "WAIT", replicas, milliseconds));
    if (status) {
        drop_connection(call, error);
        return status;
    }
    bool enough = reply->type == REDIS_REPLY_INTEGER && reply->integer >= url->replicas;
    if (reply->type == REDIS_REPLY_ERROR) {
        status = refuse(call->link, reply, error);
        drop_connection(call, error);
        return status == DOPPEL_ERROR_MEMORY ? status : DOPPEL_ERROR_AWAY;
    }
    if (!enough)
        status = dp_fail(error, DOPPEL_ERROR_AWAY,
                         "%s: %lld of the %d replicas that replicas= asks for have what was written",
                         call->link->wire.place, reply->integer, url->replicas);
    freeReplyObject(reply);
    return status;
}

/* ---- a call ---- */

/* Back-off: twice as long each time, half of it random, so that many clients do not return at the same moment. */
static void back_off(calling *call) {
    uint64_t *chance = &call->link->chance;
    *chance = *chance * 6364136223846793005u + 1442695040888963407u;
    double seconds = call->pause * (0.5 + (double)(*chance >> 33) / 4294967296.0);
    const double step = 0.05;
    for (; seconds > 0 && !is_stopping(call->link->pool); seconds -= step)
        dp_sleep(seconds < step ? seconds : step);
    double longest = call->turn == STEP_WAIT ? LONGEST_WAIT : LONGEST_PAUSE;
    call->pause = call->pause * 2 < longest ? call->pause * 2 : longest;
}

/* Reacts to the refusals of a pass. Functions are loaded after the pause, so that they are used before they can
 * disappear again. */
static doppel_status handle_refusals(calling *call, doppel_error *error) {
    dp_redis_link *link = call->link;
    doppel_status status = DOPPEL_OK;
    call->window = 1;
    if (call->turn == STEP_LOAD) {
        back_off(call);
        link->missing = true;
        const char *done;
        status = load_functions(link, &done, error);
        if (!status)
            log_line(link->pool, DOPPEL_LOG_WARNING, "REDIS_FUNCTIONS", "%s: the functions were gone: loaded again",
                     link->wire.place);
        else if (link->ready)
            drop_connection(call, NULL);
    }
    if (call->turn == STEP_FIND || call->turn == STEP_MOVED)
        drop_connection(call, NULL);
    if (call->turn == STEP_MOVED) {
        atomic_fetch_add_explicit(&link->pool->counters.moved, 1, memory_order_relaxed);
        status = follow_moved(link, call->moved, error);
    }
    if (status)
        return status;
    if (error)
        *error = call->refusal;
    return call->refusal.code;
}

static doppel_status connect_again(calling *call, doppel_error *error) {
    dp_redis_link *link = call->link;
    bool before = link->client != 0;
    doppel_status status = find_server(link, error);
    call->window = 1;
    if (status || !before)
        return status;
    atomic_fetch_add_explicit(&link->pool->counters.reconnects, 1, memory_order_relaxed);
    log_line(link->pool, DOPPEL_LOG_INFO, "REDIS_CONNECTED", "%s", link->wire.place);
    return DOPPEL_OK;
}

/* One attempt at all remaining commands. Errors: DOPPEL_ERROR_AWAY may be temporary, unless the refusal says
 * otherwise. */
static doppel_status attempt(calling *call, doppel_error *error) {
    call->turn = call->link->refusal = STEP_KEEP;
    if (!call->link->ready)
        DP_TRY(connect_again(call, error));
    DP_TRY(pass(call, error));
    if (call->turn != STEP_KEEP)
        return handle_refusals(call, error);
    return call->safe ? confirm(call, error) : DOPPEL_OK;
}

static doppel_status too_long(const calling *call, const doppel_error *why, doppel_error *error) {
    size_t unknown = 0;
    char when[48] = "as this process is stopping";
    for (size_t i = 0; i < call->count; i++)
        unknown += !call->replies[i] && call->link->sending[i].unknown;
    if (!is_stopping(call->link->pool))
        snprintf(when, sizeof when, "after %g s", call->link->pool->options.url->retry);
    if (unknown)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s; given up %s: what became of the last %zu commands is not known",
                       why->message, when, unknown);
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s; given up %s", why->message, when);
}

static doppel_status run(calling *call, doppel_error *error) {
    double retry = call->link->pool->options.url->retry;
    for (;;) {
        doppel_error why;
        doppel_status status = attempt(call, &why);
        if (!status)
            return DOPPEL_OK;
        bool hopeless = call->turn == STEP_FAIL || call->link->refusal == STEP_FAIL;
        if (status != DOPPEL_ERROR_AWAY || hopeless) {
            if (error)
                *error = why;
            return status;
        }
        bool stops = is_stopping(call->link->pool) && retry > GRACE;
        if (dp_seconds() - call->heard >= (stops ? GRACE : retry))
            return too_long(call, &why, error);
        if (call->turn != STEP_LOAD)
            back_off(call);
    }
}

doppel_status dp_redis_call(dp_redis_link *link, dp_redis_batch *batch, bool safe, doppel_error *error) {
    if (batch->failed || !dp_reserve(&link->sending, &link->capacity, batch->count, sizeof *link->sending) ||
        !(batch->reply = calloc(batch->count + 1, sizeof *batch->reply)))
        return dp_no_memory(error);
    if (!batch->count)
        return DOPPEL_OK;
    memset(link->sending, 0, batch->count * sizeof *link->sending);
    link->wrote = link->wrote || safe;
    if (link->ready && !wire_is_quiet(&link->wire))
        disconnect(link);
    calling call = {.link = link,
                    .batch = batch,
                    .count = batch->count,
                    .replies = batch->reply,
                    .ordered = !safe,
                    .safe = safe && link->pool->options.url->replicas > 0,
                    .window = WINDOW,
                    .heard = dp_seconds(),
                    .pause = FIRST_PAUSE};
    doppel_status status = run(&call, error);
    if (!status)
        return DOPPEL_OK;
    for (size_t i = 0; i < batch->count; i++)
        freeReplyObject(batch->reply[i]);
    free(batch->reply);
    batch->reply = NULL;
    return status;
}

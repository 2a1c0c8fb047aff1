/* redis_wire.c - bytes to and from one server of Redis; see redis_wire.h. Sockets do not block; waiting is poll(). */
#include "known/redis_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* What is read at once: the reader moves the rest of what it was fed each time it has used up 1 KB of it. */
enum { PIECE = 16 << 10 };

double dp_redis_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static doppel_status broken(const dp_redis_wire *wire, const char *reason, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: %s", wire->place, reason);
}

/* ---- opening ---- */

/* Waits until something of `events` can be done; 0 when it can, else an errno. It looks now and then whether the
 * process still wants to wait. */
static int wait_for(int fd, short events, double until, const dp_redis_stop *stop) {
    const double step = 0.1, began = dp_redis_clock();
    for (;;) {
        double since = (double)atomic_load_explicit(&stop->since, memory_order_relaxed) * 1e-6, end = until;
        if (since > 0 && (since > began ? since : began) + DP_REDIS_GRACE < end)
            end = (since > began ? since : began) + DP_REDIS_GRACE;
        double left = end - dp_redis_clock();
        struct pollfd what = {fd, events, 0};
        int ready = poll(&what, 1, left > step ? (int)(step * 1000) : left > 0 ? (int)(left * 1000) + 1 : 0);
        if (ready > 0)
            return 0;
        if (ready < 0 && errno != EINTR)
            return errno;
        if (!ready && dp_redis_clock() >= end)
            return ETIMEDOUT;
    }
}

/* Gives the connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr *address, socklen_t length, double until, const dp_redis_stop *stop) {
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

static int connect_local(const char *path, double until, const dp_redis_stop *stop) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path));
    return connect_to((struct sockaddr *)&address, sizeof address, until, stop);
}

static int connect_host(const dp_redis_address *to, double until, const dp_redis_stop *stop, const char **reason) {
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
        fd = connect_to(at->ai_addr, at->ai_addrlen, until, stop);
    int kept = errno;
    freeaddrinfo(found);
    errno = kept;
    if (fd >= 0)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

doppel_status dp_redis_wire_open(dp_redis_wire *wire, const dp_redis_address *to, double timeout,
                                 const dp_redis_stop *stop, doppel_error *error) {
    bool local = !to->port;
    double until = dp_redis_clock() + timeout;
    const char *reason = NULL;
    *wire = (dp_redis_wire){.fd = -1, .stop = stop};
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
    dp_redis_wire_close(wire);
    return dp_no_memory(error);
}

void dp_redis_wire_close(dp_redis_wire *wire) {
    if (wire->fd >= 0)
        close(wire->fd);
    if (wire->reader)
        redisReaderFree(wire->reader);
    dp_buffer_free(&wire->out);
    wire->fd = -1;
    wire->reader = NULL;
    wire->sent = 0;
}

bool dp_redis_wire_is_quiet(const dp_redis_wire *wire) {
    char byte;
    return recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

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

static bool put_argument(dp_buffer *out, const char *bytes, size_t length) {
    return put_size(out, '$', length) && dp_buffer_add(out, bytes, length) && dp_buffer_add(out, "\r\n", 2);
}

bool dp_redis_wire_put(dp_redis_wire *wire, const dp_redis_command *command, bool again) {
    size_t before = wire->out.size;
    bool put = put_size(&wire->out, '*', (size_t)command->argc);
    for (int i = 0; put && i < command->argc; i++) {
        bool flag = again && i > 0 && i == command->again;
        put = put_argument(&wire->out, flag ? "1" : command->argv[i], flag ? 1 : command->lengths[i]);
    }
    if (!put)
        wire->out.size = before;
    return put;
}

/* ---- moving ---- */

static doppel_status send_some(dp_redis_wire *wire, doppel_error *error) {
    ssize_t sent = send(wire->fd, wire->out.data + wire->sent, dp_redis_wire_unsent(wire), MSG_NOSIGNAL);
    if (sent < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DOPPEL_OK
                                                                         : broken(wire, strerror(errno), error);
    wire->sent += (size_t)sent;
    if (wire->sent == wire->out.size)
        wire->sent = wire->out.size = 0;
    return DOPPEL_OK;
}

static doppel_status receive_some(dp_redis_wire *wire, doppel_error *error) {
    char bytes[PIECE];
    ssize_t got = recv(wire->fd, bytes, sizeof bytes, 0);
    if (!got)
        return broken(wire, "the server closed the connection", error);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? DOPPEL_OK
                                                                         : broken(wire, strerror(errno), error);
    return redisReaderFeed(wire->reader, bytes, (size_t)got) == REDIS_OK ? DOPPEL_OK : dp_no_memory(error);
}

doppel_status dp_redis_wire_move(dp_redis_wire *wire, double timeout, doppel_error *error) {
    double until = dp_redis_clock() + timeout;
    struct pollfd what = {wire->fd, (short)(POLLIN | (dp_redis_wire_unsent(wire) ? POLLOUT : 0)), 0};
    int reason = wait_for(wire->fd, what.events, until, wire->stop);
    if (reason == ETIMEDOUT)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: silent for %.3g s", wire->place, timeout);
    if (reason)
        return broken(wire, strerror(reason), error);
    /* Replies first: what came before the connection broke is known. */
    doppel_status status = receive_some(wire, error);
    if (!status && dp_redis_wire_unsent(wire))
        status = send_some(wire, error);
    while (status == DOPPEL_ERROR_AWAY && !receive_some(wire, NULL) && !wait_for(wire->fd, POLLIN, until, wire->stop))
        continue;
    return status;
}

doppel_status dp_redis_wire_reply(dp_redis_wire *wire, redisReply **reply, doppel_error *error) {
    void *made = NULL;
    *reply = NULL;
    if (redisReaderGetReply(wire->reader, &made) != REDIS_OK)
        return wire->reader->err == REDIS_ERR_OOM ? dp_no_memory(error) : broken(wire, wire->reader->errstr, error);
    *reply = made;
    return DOPPEL_OK;
}

doppel_status dp_redis_wire_ask(dp_redis_wire *wire, double timeout, const char *const *words, redisReply **reply,
                                doppel_error *error) {
    enum { MOST = 16 };
    const char *argv[MOST];
    size_t lengths[MOST];
    dp_redis_command command = {0, argv, lengths, 0};
    for (; words[command.argc]; command.argc++) {
        argv[command.argc] = words[command.argc];
        lengths[command.argc] = strlen(words[command.argc]);
    }
    *reply = NULL;
    if (!dp_redis_wire_put(wire, &command, false))
        return dp_no_memory(error);
    doppel_status status = DOPPEL_OK;
    double until = dp_redis_clock() + timeout;
    while (!status && !*reply) {
        double left = until - dp_redis_clock();
        status = dp_redis_wire_move(wire, left > 0 ? left : 0, error);
        if (!status)
            status = dp_redis_wire_reply(wire, reply, error);
    }
    return status;
}

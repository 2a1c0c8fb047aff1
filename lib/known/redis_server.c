/* redis_server.c - a server of Redis: where it is (the URL), bytes to and from it, and what its errors mean.
 *
 * The URL, SCHEME://[USER:PASSWORD@]HOSTS[/REST][?NAME=VALUE&...], is cut at its marks first, and each part is
 * unescaped afterwards, so that an escaped mark is a letter as any other. No message repeats what may be a password.
 *
 * Sockets do not block; waiting is poll(). Writing and reading take turns, so that a long pipeline cannot stop with
 * both sides' buffers full. A server that closes its end is an error of a call, never a signal (SIGPIPE).
 *
 * Errors are one table; the first that begins the error counts. ASK is waited out and not followed: it sends a command
 * to a node that has a part of the slot's keys only. A function that reads several keys would not find there what is
 * still here, and call the known new. Until the slot has moved as a whole, functions that meet a key that is not here
 * fail before they have written anything, and are sent again. */
#include "known/redis_link.h"

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
#include <unistd.h>

/* ---- the URL: its pieces ---- */

/* DOPPEL_ERROR_USAGE, with what is wrong. */
static doppel_status no_sense(doppel_error *error, const char *what) {
    return dp_fail(error, DOPPEL_ERROR_USAGE, "this URL of Redis makes no sense: %s", what);
}

static int digit_of(char letter) {
    if (letter >= '0' && letter <= '9')
        return letter - '0';
    letter |= 0x20;
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* A copy with its escapes undone, in place of *copy. Control characters have no place in names and messages, and are an
 * error. */
static doppel_status copy_part(doppel_slice part, char **copy, doppel_error *error) {
    char *out = malloc(part.length + 1);
    if (!out)
        return dp_no_memory(error);
    free(*copy);
    *copy = out;
    for (size_t i = 0; i < part.length; i++, out++) {
        *out = part.data[i];
        if (*out == '%') {
            int high = i + 2 < part.length ? digit_of(part.data[i + 1]) : -1;
            int low = i + 2 < part.length ? digit_of(part.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return no_sense(error, "a % that is not followed by two hexadecimal digits (%25 is a %)");
            *out = (char)(high << 4 | low);
            i += 2;
        }
        if ((unsigned char)*out < 0x20 || *out == 0x7F)
            return no_sense(error, "a control character");
    }
    *out = 0;
    return DOPPEL_OK;
}

/* A decimal number without sign, blanks or anything after it; false: it is none, or above `most`. */
static bool read_number(doppel_slice text, uint64_t most, uint64_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9 || value > (most - digit) / 10)
            return false;
        value = value * 10 + digit;
    }
    *number = value;
    return text.length > 0;
}

/* Seconds: digits with a point, or none, among them. */
static bool read_seconds(doppel_slice text, double least, double most, double *seconds) {
    double value = 0, unit = 1;
    size_t digits = 0, points = 0;
    for (size_t i = 0; i < text.length; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (text.data[i] == '.' && !points++)
            continue;
        if (digit > 9 || ++digits > 15)
            return false;
        value = value * 10 + digit;
        unit = points ? unit * 10 : unit;
    }
    *seconds = value / unit;
    return digits && *seconds >= least && *seconds <= most;
}

/* Cuts `text` at the first `mark`: gives what stands before it and leaves what comes after it, or nothing. `found` may
 * be NULL. */
static doppel_slice cut(doppel_slice *text, char mark, bool *found) {
    const char *at = text->length ? memchr(text->data, mark, text->length) : NULL;
    doppel_slice before = {text->data, at ? (size_t)(at - text->data) : text->length};
    size_t skip = before.length + (at != NULL);
    *text = (doppel_slice){text->data + skip, text->length - skip};
    if (found)
        *found = at != NULL;
    return before;
}

enum { PORT = 6379, SENTINEL_PORT = 26379, MOST_ADDRESSES = 1000, LONGEST_PREFIX = 100 };

static bool is(doppel_slice text, const char *name) {
    return text.length == strlen(name) && !memcmp(text.data, name, text.length);
}

/* ---- the URL: hosts ---- */

static doppel_status split_host(doppel_slice text, doppel_slice *host, doppel_slice *port, doppel_error *error) {
    bool has_port = false;
    if (text.length && *text.data == '[') {
        text = (doppel_slice){text.data + 1, text.length - 1};
        bool closed;
        *host = cut(&text, ']', &closed);
        if (!closed || (text.length && *text.data != ':'))
            return no_sense(error, "an address in brackets that is not [ADDRESS] or [ADDRESS]:PORT");
        cut(&text, ':', &has_port);
    } else {
        *host = cut(&text, ':', &has_port);
        if (text.length && memchr(text.data, ':', text.length))
            return no_sense(error, "more than one colon in HOST:PORT (IPv6 addresses stand in brackets)");
    }
    *port = has_port ? text : (doppel_slice){NULL, 0};
    if (!host->length)
        return no_sense(error, "a host is missing");
    return has_port && !text.length ? no_sense(error, "a port is missing behind its colon") : DOPPEL_OK;
}

static doppel_status add_address(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    doppel_slice host = {0}, port = {0};
    doppel_status status = split_host(text, &host, &port, error);
    if (status)
        return status;
    uint64_t number = url->kind == DP_REDIS_SENTINEL ? SENTINEL_PORT : PORT;
    if (port.length && (!read_number(port, 65535, &number) || !number))
        return no_sense(error, "a port that is not a number from 1 to 65535");
    dp_redis_address *grown = realloc(url->address, (url->addresses + 1) * sizeof *grown);
    if (!grown)
        return dp_no_memory(error);
    url->address = grown;
    url->address[url->addresses] = (dp_redis_address){NULL, (int)number};
    return copy_part(host, &url->address[url->addresses++].host, error);
}

static doppel_status read_hosts(dp_redis_url *url, doppel_slice hosts, doppel_error *error) {
    bool more = true, many = url->kind == DP_REDIS_SENTINEL || url->kind == DP_REDIS_CLUSTER;
    while (more) {
        doppel_slice host = cut(&hosts, ',', &more);
        if (more && !many)
            return no_sense(error, "several hosts (that is redis+sentinel:// or redis+cluster://)");
        if (url->addresses == MOST_ADDRESSES)
            return no_sense(error, "over 1000 hosts");
        doppel_status status = add_address(url, host, error);
        if (status)
            return status;
    }
    return DOPPEL_OK;
}

/* USER:PASSWORD, :PASSWORD or USER. */
static doppel_status read_login(dp_redis_url *url, doppel_slice login, doppel_error *error) {
    bool has_password;
    doppel_slice user = cut(&login, ':', &has_password);
    doppel_status status = user.length ? copy_part(user, &url->user, error) : DOPPEL_OK;
    if (!status && has_password && login.length)
        status = copy_part(login, &url->password, error);
    return status;
}

/* ---- the URL: what follows the hosts ---- */

static doppel_status read_db(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    uint64_t db;
    if (!read_number(text, 1000000, &db))
        return no_sense(error, "a db that is not a number");
    if (db && url->kind == DP_REDIS_CLUSTER)
        return no_sense(error, "a Cluster has db 0 only (prefix=NAME tells indexes apart)");
    url->db = (int)db;
    return DOPPEL_OK;
}

/* /DB, of Sentinels /SERVICE[/DB], of a unix socket all of the path. */
static doppel_status read_path(dp_redis_url *url, doppel_slice path, doppel_error *error) {
    if (url->kind == DP_REDIS_UNIX) {
        url->address = calloc(1, sizeof *url->address);
        if (!url->address)
            return dp_no_memory(error);
        url->addresses = 1;
        return path.length < 2 ? no_sense(error, "the path of the socket is missing (redis+unix:///PATH)")
                               : copy_part(path, &url->address->host, error);
    }
    cut(&path, '/', NULL);
    if (url->kind == DP_REDIS_SENTINEL) {
        doppel_slice service = cut(&path, '/', NULL);
        if (!service.length)
            return no_sense(error, "the name of the service is missing (redis+sentinel://HOST/SERVICE)");
        doppel_status status = copy_part(service, &url->service, error);
        if (status)
            return status;
    }
    return path.length ? read_db(url, path, error) : DOPPEL_OK;
}

static doppel_status read_prefix(dp_redis_url *url, doppel_slice value, doppel_error *error) {
    doppel_status status = copy_part(value, &url->prefix, error);
    if (!status && (!*url->prefix || strlen(url->prefix) > LONGEST_PREFIX || strpbrk(url->prefix, "{}")))
        return no_sense(error, "prefix= takes 1 to 100 bytes without braces");
    return status;
}

static doppel_status read_option(dp_redis_url *url, doppel_slice name, doppel_slice value, doppel_error *error) {
    if (is(name, "prefix"))
        return read_prefix(url, value, error);
    if (is(name, "db"))
        return read_db(url, value, error);
    if (is(name, "sentinel_password"))
        return copy_part(value, &url->sentinel_password, error);
    bool sense;
    uint64_t replicas = 0;
    if (is(name, "replicas"))
        sense = read_number(value, 1000, &replicas);
    else if (is(name, "timeout"))
        sense = read_seconds(value, 0.01, 3600, &url->timeout);
    else if (is(name, "retry"))
        sense = read_seconds(value, 0, 1e6, &url->retry);
    else if (is(name, "count"))
        sense = read_number(value, UINT64_MAX, &url->count);
    else
        return no_sense(error,
                        "it has prefix, db, replicas, timeout, retry, count, sentinel_password and no other option");
    if (is(name, "replicas"))
        url->replicas = (int)replicas;
    return sense ? DOPPEL_OK
                 : no_sense(error, "replicas= takes 0 to 1000, timeout= 0.01 to 3600 (seconds), retry= 0 to 1000000 "
                                   "(seconds), count= a number");
}

static doppel_status read_options(dp_redis_url *url, doppel_slice options, doppel_error *error) {
    while (options.length) {
        doppel_slice value = cut(&options, '&', NULL), name = cut(&value, '=', NULL);
        doppel_status status = read_option(url, name, value, error);
        if (status)
            return status;
    }
    return DOPPEL_OK;
}

/* ---- the URL: all of it ---- */

static const char *const schemes[] = {"redis", "redis+unix", "redis+sentinel", "redis+cluster"};

/* The URL as messages have it: all but passwords and what changes no place. */
static bool make_name(dp_redis_url *url) {
    dp_buffer name = {0};
    bool made =
        dp_buffer_printf(&name, "%s://%s%s", schemes[url->kind], url->user ? url->user : "", url->user ? "@" : "");
    for (size_t i = 0; made && i < url->addresses; i++) {
        const dp_redis_address *at = &url->address[i];
        bool bare = !strchr(at->host, ':') || url->kind == DP_REDIS_UNIX;
        made = dp_buffer_printf(&name, bare ? "%s%s" : "%s[%s]", i ? "," : "", at->host) &&
               (url->kind == DP_REDIS_UNIX || dp_buffer_printf(&name, ":%d", at->port));
    }
    made = made && (!url->service || dp_buffer_printf(&name, "/%s", url->service)) &&
           (!url->db || dp_buffer_printf(&name, url->kind == DP_REDIS_UNIX ? "?db=%d" : "/%d", url->db)) &&
           dp_buffer_printf(&name, "%sprefix=%s", url->kind == DP_REDIS_UNIX && url->db ? "&" : "?", url->prefix) &&
           dp_buffer_add(&name, "", 1);
    url->name = name.data;
    return made;
}

static doppel_status complete(dp_redis_url *url, doppel_error *error) {
    const char *password = getenv("DOPPEL_REDIS_PASSWORD");
    if (!url->password && password && *password && !(url->password = strdup(password)))
        return dp_no_memory(error);
    if (url->user && !url->password)
        return no_sense(error, "a user without a password (USER:PASSWORD@HOST, or :PASSWORD@HOST)");
    if (!url->prefix && !(url->prefix = strdup("doppel")))
        return dp_no_memory(error);
    return make_name(url) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status read_parts(dp_redis_url *url, doppel_slice text, doppel_error *error) {
    doppel_slice options = text, path = cut(&options, '?', NULL);
    size_t length = 0;
    while (length < path.length && path.data[length] != '/')
        length++;
    doppel_slice hosts = {path.data, length};
    path = (doppel_slice){path.data + length, path.length - length};
    doppel_status status = DOPPEL_OK;
    const char *at = length ? memrchr(hosts.data, '@', length) : NULL;
    if (at) {
        status = read_login(url, (doppel_slice){hosts.data, (size_t)(at - hosts.data)}, error);
        hosts = (doppel_slice){at + 1, (size_t)(hosts.data + length - at - 1)};
    }
    if (!status && url->kind != DP_REDIS_UNIX)
        status = read_hosts(url, hosts, error);
    else if (!status && hosts.length)
        status = no_sense(error, "a host before the path of a socket (redis+unix:///PATH)");
    if (!status)
        status = read_path(url, path, error);
    return status ? status : read_options(url, options, error);
}

doppel_status dp_redis_url_parse(const char *text, dp_redis_url *url, doppel_error *error) {
    *url = (dp_redis_url){.timeout = 5, .retry = 30};
    size_t kind = 0, length = 0;
    for (; kind < sizeof schemes / sizeof *schemes; kind++) {
        length = strlen(schemes[kind]);
        if (!strncmp(text, schemes[kind], length) && !strncmp(text + length, "://", 3))
            break;
    }
    if (kind == sizeof schemes / sizeof *schemes)
        return no_sense(error, "it begins with redis://, redis+unix://, redis+sentinel:// or redis+cluster://");
    url->kind = (dp_redis_kind)kind;
    text += length + 3;
    doppel_status status = read_parts(url, (doppel_slice){text, strlen(text)}, error);
    if (!status)
        status = complete(url, error);
    if (status)
        dp_redis_url_free(url);
    return status;
}

void dp_redis_url_free(dp_redis_url *url) {
    for (size_t i = 0; i < url->addresses; i++)
        free(url->address[i].host);
    char *held[] = {url->user, url->password, url->sentinel_password, url->service, url->prefix, url->name};
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        free(held[i]);
    free(url->address);
    *url = (dp_redis_url){0};
}

/* ---- a connection ---- */

/* What is read at once: the reader moves the rest of what it was fed each time it has used up 1 KB of it. */
enum { PIECE = 16 << 10 };

static doppel_status broken(const dp_redis_wire *wire, const char *reason, doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: %s", wire->place, reason);
}

/* ---- a connection: opening ---- */

/* Waits until something of `events` can be done; 0 when it can, else an errno. It looks now and then whether the
 * process still wants to wait. */
static int wait_for(int fd, short events, double until, const dp_redis_stop *stop) {
    const double step = 0.1, began = dp_seconds();
    for (;;) {
        double since = (double)atomic_load_explicit(&stop->since, memory_order_relaxed) * 1e-6, end = until;
        if (since > 0 && (since > began ? since : began) + DP_REDIS_GRACE < end)
            end = (since > began ? since : began) + DP_REDIS_GRACE;
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
    double until = dp_seconds() + timeout;
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

/* ---- a connection: commands ---- */

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

/* ---- a connection: moving ---- */

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
    double until = dp_seconds() + timeout;
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
    double until = dp_seconds() + timeout;
    while (!status && !*reply) {
        double left = until - dp_seconds();
        status = dp_redis_wire_move(wire, left > 0 ? left : 0, error);
        if (!status)
            status = dp_redis_wire_reply(wire, reply, error);
    }
    return status;
}

/* ---- what an error asks for ---- */

typedef struct meaning {
    const char *begins;
    dp_redis_turn turn;
    doppel_status code;
    const char *words; /* NULL: the error as it is says enough */
} meaning;

static const char moving[] = "the slot of this index is being moved to another node of the Cluster, which takes longer "
                             "than retry= waits";

static const meaning meanings[] = {
    {"MOVED ", DP_REDIS_MOVED, DOPPEL_ERROR_AWAY, NULL},
    {"ASK ", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"TRYAGAIN", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"ERR Script attempted to access a non local key", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, moving},
    {"LOADING", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it is still reading its data from disk"},
    {"BUSY ", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it is busy with a script"},
    {"NOREPLICAS", DP_REDIS_WAIT, DOPPEL_ERROR_AWAY, "it has fewer replicas than its min-replicas-to-write asks for"},
    {"ERR max number of clients", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it has all the clients it takes (maxclients)"},
    {"CLUSTERDOWN", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "the Cluster is down: a master is gone and no replica took over"},
    {"MASTERDOWN", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it is a replica that has lost its master"},
    {"READONLY", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it is a replica, which takes no writes: name its master"},
    {"UNBLOCKED", DP_REDIS_FIND, DOPPEL_ERROR_AWAY, "it became a replica"},
    {"ERR Function not found", DP_REDIS_LOAD, DOPPEL_ERROR_AWAY,
     "doppel's functions vanish as soon as they are loaded"},
    {"OOM ", DP_REDIS_FAIL, DOPPEL_ERROR_AWAY,
     "it is full: raise its maxmemory, or let documents expire sooner (ttl), or remove some"},
    {"MISCONF", DP_REDIS_FAIL, DOPPEL_ERROR_AWAY,
     "it cannot save to its disk and takes no writes until it can: see its log and its disk"},
    {"NOAUTH", DP_REDIS_FAIL, DOPPEL_ERROR_STORE,
     "it asks for a password: give it with --store-password-file, in DOPPEL_REDIS_PASSWORD or in the URL "
     "(USER:PASSWORD@, or :PASSWORD@)"},
    {"WRONGPASS", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "the user name or the password is wrong, or the user is disabled"},
    {"NOPERM", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "its user lacks a right that docs/ENGINE.md lists (Rights)"},
    {"DENIED", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "it is in protected mode: give it a password (requirepass)"},
    {"ERR unknown command 'SENTINEL'", DP_REDIS_KEEP, DOPPEL_ERROR_STORE,
     "it is no Sentinel: name Sentinels, or give the server itself as redis://HOST:PORT"},
    {"ERR DB index is out of range", DP_REDIS_FAIL, DOPPEL_ERROR_STORE, "it does not have that db (databases)"},
    {"ERR SELECT is not allowed in cluster mode", DP_REDIS_FAIL, DOPPEL_ERROR_STORE,
     "it is a Cluster, which has db 0 only (prefix= tells indexes apart)"},
};

static const meaning *meaning_of(const redisReply *reply) {
    static const meaning other = {"", DP_REDIS_KEEP, DOPPEL_ERROR_STORE, NULL};
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (!strncmp(reply->str, meanings[i].begins, strlen(meanings[i].begins)))
            return &meanings[i];
    return &other;
}

dp_redis_turn dp_redis_turn_of(const redisReply *reply) {
    return reply->type == REDIS_REPLY_ERROR ? meaning_of(reply)->turn : DP_REDIS_KEEP;
}

doppel_status dp_redis_explain(const char *place, const redisReply *reply, doppel_error *error) {
    if (reply->type != REDIS_REPLY_ERROR)
        return dp_fail(error, DOPPEL_ERROR_STORE, "%s: it answers otherwise than Redis does", place);
    const meaning *found = meaning_of(reply);
    if (!found->words)
        return dp_fail(error, found->code, "%s: %.300s", place, reply->str);
    return dp_fail(error, found->code, "%s: %s (\"%.150s\")", place, found->words, reply->str);
}

/* redis_proxy.h - a proxy before a server that cuts a connection after a number of bytes, in either direction; the next
 * one passes. One connection at a time, served by a thread. */
#ifndef TESTS_REDIS_PROXY_H
#define TESTS_REDIS_PROXY_H

#include "redis_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/un.h>

typedef struct redis_proxy {
    const redis_server *server;
    int listener, port;
    pthread_t thread;
    _Atomic bool stop;
    /* Bytes that still pass towards the server, and from it; negative: all. One that falls to 0 cuts, and is -1 then.
     */
    _Atomic long up, down;
    _Atomic long cuts;
    /* Seconds after which the server gets what the client had sent before a cut, when the next connection is at work;
     * 0: at once. */
    double late;
    int held; /* that connection; -1: none */
    double held_until;
    char held_bytes[4096];
    size_t held_size;
} redis_proxy;

static inline double proxy_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Sends what was held when its time has come. */
static inline void proxy_deliver(redis_proxy *proxy, bool now) {
    if (proxy->held < 0 || (!now && proxy_clock() < proxy->held_until))
        return;
    (void)!send(proxy->held, proxy->held_bytes, proxy->held_size, MSG_NOSIGNAL);
    pause_for(0.01);
    close(proxy->held);
    proxy->held = -1;
}

static inline int proxy_connect(const redis_server *server) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, server->socket);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Passes on what is there; false: it ended, or is cut. */
static inline bool proxy_pass(redis_proxy *proxy, int from, int to, _Atomic long *left) {
    char bytes[4096];
    ssize_t got = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && errno == EAGAIN;
    long may = *left;
    bool cut = may >= 0 && got >= may;
    if (cut)
        *left = -1;
    else if (may >= 0)
        *left -= got;
    if (cut && proxy->late > 0 && left == &proxy->up) {
        proxy_deliver(proxy, true);
        proxy->held = dup(to);
        proxy->held_until = proxy_clock() + proxy->late;
        proxy->held_size = (size_t)may;
        memcpy(proxy->held_bytes, bytes, (size_t)may);
        may = 0;
    }
    ssize_t pass = cut ? may : got;
    for (ssize_t sent, done = 0; done < pass; done += sent)
        if ((sent = send(to, bytes + done, (size_t)(pass - done), MSG_NOSIGNAL)) <= 0)
            return false;
    proxy->cuts += cut;
    return !cut;
}

static inline void proxy_serve(redis_proxy *proxy, int client) {
    int server = proxy_connect(proxy->server);
    bool open = server >= 0;
    while (open && !proxy->stop) {
        struct pollfd ends[] = {{client, POLLIN, 0}, {server, POLLIN, 0}};
        int ready = poll(ends, 2, 5);
        proxy_deliver(proxy, false);
        if (ready <= 0)
            continue;
        open = proxy_pass(proxy, client, server, &proxy->up) && proxy_pass(proxy, server, client, &proxy->down);
    }
    close(client);
    if (server >= 0)
        close(server);
}

static inline void *proxy_run(void *given) {
    redis_proxy *proxy = given;
    while (!proxy->stop) {
        struct pollfd what = {proxy->listener, POLLIN, 0};
        if (poll(&what, 1, 20) <= 0)
            continue;
        int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
        if (client >= 0)
            proxy_serve(proxy, client);
    }
    return NULL;
}

static inline void proxy_start(redis_proxy *proxy, const redis_server *server) {
    memset(proxy, 0, sizeof *proxy);
    proxy->server = server;
    proxy->up = proxy->down = -1;
    proxy->held = -1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(proxy->listener >= 0 && !bind(proxy->listener, (struct sockaddr *)&address, size));
    assert_int_equal(listen(proxy->listener, 10), 0);
    assert_int_equal(getsockname(proxy->listener, (struct sockaddr *)&address, &size), 0);
    proxy->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&proxy->thread, NULL, proxy_run, proxy), 0);
}

static inline void proxy_stop(redis_proxy *proxy) {
    proxy->stop = true;
    pthread_join(proxy->thread, NULL);
    proxy_deliver(proxy, true);
    close(proxy->listener);
}

#endif

/* listen.c - where a server listens. */
#include "common/listen.h"

#include "common/args.h"
#include "common/message.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
    HANDED_OVER = 3, /* the first descriptor that systemd hands over */
    BACKLOG = 1024
};

static bool is_loopback(const struct sockaddr_storage *at) {
    if (at->ss_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)at)->sin_addr.s_addr) >> 24 == 127;
    if (at->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
    return at->ss_family == AF_UNIX;
}

/* Where the socket really is. */
static bool name_socket(listening *l) {
    struct sockaddr_storage at = {0};
    socklen_t length = sizeof at;
    char host[64] = "", port[16] = "";
    if (getsockname(l->socket, (struct sockaddr *)&at, &length))
        return false;
    l->local = is_loopback(&at);
    getnameinfo((struct sockaddr *)&at, length, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(l->where, sizeof l->where, at.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
    return true;
}

/* LISTEN_PID and LISTEN_FDS, as sd_listen_fds(3) has them. */
static bool handed_over(void) {
    const char *process = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
    return process && count && strtol(process, NULL, 10) == getpid() && strtol(count, NULL, 10) >= 1;
}

/* Takes HOST:PORT apart. */
static bool split(const char *address, char *host, size_t room, const char **port) {
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;
    if (!colon || length >= room || !colon[1])
        return false;
    memcpy(host, address, length);
    host[length] = 0;
    if (host[0] == '[' && host[length - 1] == ']') {
        memmove(host, host + 1, length - 2);
        host[length - 2] = 0;
    }
    *port = colon + 1;
    char *end;
    return strtoul(*port, &end, 10) <= UINT16_MAX && !*end;
}

static int bind_to(const struct addrinfo *at) {
    int one = 1, made = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, at->ai_protocol);
    if (made < 0)
        return -1;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (!bind(made, at->ai_addr, at->ai_addrlen) && !listen(made, BACKLOG))
        return made;
    int why = errno;
    close(made);
    errno = why;
    return -1;
}

static int take_handed_over(listening *l) {
    l->socket = HANDED_OVER;
    /* It need not have been opened this way, and a blocking accept would stop all other clients. */
    if (!fcntl(HANDED_OVER, F_SETFL, O_NONBLOCK) && !fcntl(HANDED_OVER, F_SETFD, FD_CLOEXEC) && name_socket(l))
        return EXIT_DONE;
    message("the socket that systemd passed cannot be used: %s", strerror(errno));
    return EXIT_STORE;
}

static void complain(const char *address) {
    if (errno == EADDRINUSE)
        message("cannot listen on %s: address already in use; stop what listens there, or choose another with "
                "--listen HOST:PORT",
                address);
    else
        message("cannot listen on %s: %s", address, strerror(errno));
}

int listen_open(listening *l, const char *address) {
    struct addrinfo want = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    char host[256];
    const char *port;
    *l = (listening){.socket = -1};
    if (handed_over())
        return take_handed_over(l);
    if (!split(address, host, sizeof host, &port)) {
        message("--listen takes HOST:PORT, such as 127.0.0.1:7700 or [::1]:7700, with a port up to 65535, not %s",
                address);
        return EXIT_USAGE;
    }
    int code = getaddrinfo(host[0] ? host : NULL, port, &want, &found);
    if (code) {
        message("--listen %s: %s", address, gai_strerror(code));
        return EXIT_USAGE;
    }
    for (struct addrinfo *at = found; at && l->socket < 0; at = at->ai_next)
        l->socket = bind_to(at);
    bool fine = l->socket >= 0 && name_socket(l);
    if (!fine)
        complain(address);
    freeaddrinfo(found);
    return fine ? EXIT_DONE : EXIT_STORE;
}

/* server.h - the service on its sockets, by libmicrohttpd.
 *
 * A few threads serve all connections, each with epoll. A quick request is processed in the thread that received it;
 * else its connection is suspended, and a worker does the work and resumes it. Timeouts that libmicrohttpd does not
 * have (for a head or a body that trickles in) are enforced by a thread that watches all connections. */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "server/service.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Open connections, and what each waits for; one that takes too long is shut down. */
typedef enum connection_phase {
    PHASE_IDLE,  /* for a request to begin */
    PHASE_HEAD,  /* for the rest of its head */
    PHASE_BODY,  /* for the rest of its body */
    PHASE_LINES, /* for more lines: as long as some come */
    PHASE_WORK   /* for the answer */
} connection_phase;

typedef struct connection {
    struct connection *next, *before;
    int socket;
    void *handle;     /* libmicrohttpd's */
    pthread_t thread; /* that serves it */
    atomic_int phase;
    atomic_uint_fast64_t since; /* microseconds */
    char client[64];
} connection;

typedef struct connections {
    pthread_mutex_t lock;
    pthread_cond_t end;
    connection *first;
    unsigned idle, head, body; /* seconds */
    bool running, stop;
    pthread_t watch;
} connections;

typedef struct server_options {
    int socket;
    unsigned threads, connections, per_client;
    unsigned timeout, receive_timeout, stop_timeout; /* seconds */
    size_t max_head;
    const char *certificate, *key; /* their texts, not their paths; NULL: no TLS */
} server_options;

typedef struct server {
    service *service;
    server_options options;
    struct MHD_Daemon *daemon;
    connections connections;
} server;

/* False, with a message: it cannot be started. */
bool server_start(server *s, service *serves, const server_options *options);

/* Accepts no more connections, finishes accepted requests, and ends. */
void server_stop(server *s);

#endif

/* server.h - the service on its sockets, by libmicrohttpd.
 *
 * A few threads serve all connections, each with epoll. A request is worked on where it came in if it is quick; else
 * its connection is suspended, a worker does the work, and resumes it. Timeouts that libmicrohttpd does not know (a
 * head or a body that drips in) are kept by a watch over all connections (connections.c). */
#ifndef SERVER_SERVER_H
#define SERVER_SERVER_H

#include "server/connections.h"
#include "server/service.h"

#include <microhttpd.h>

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

/* Takes no more connections, finishes what was accepted, and ends. */
void server_stop(server *s);

#endif

/* connections.h - every open connection, and what it waits for; one that takes too long is shut. */
#ifndef SERVER_CONNECTIONS_H
#define SERVER_CONNECTIONS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

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

/* Begins to watch; false: there are no threads. */
bool connections_open(connections *all, unsigned idle, unsigned head, unsigned whole);
void connections_close(connections *all);

/* To be called by the thread that serves the connection. NULL: no memory. */
connection *connection_add(connections *all, void *handle, int socket, const void *address, unsigned length);
void connection_remove(connections *all, connection *c);
void connection_is(connection *c, connection_phase phase);

#endif

/* listen.h - where a server listens. */
#ifndef COMMON_LISTEN_H
#define COMMON_LISTEN_H

#include <stdbool.h>
#include <stddef.h>

typedef struct listening {
    int socket; /* -1: none */
    bool local; /* reached from this machine only */
    char where[128];
} listening;

/* The socket that systemd hands over, if it does; else one of HOST:PORT ([::1]:7700, :7700 for every address; port 0:
 * any that is free). Prints a message and returns an exit code when it cannot: EXIT_USAGE when the address is invalid,
 * EXIT_STORE when the system refuses it. */
int listen_open(listening *l, const char *address);

#endif

/* connections.c - every open connection, and what it waits for. */
#include "server/connections.h"

#include "server/service.h"

#include <netdb.h>
#include <stdlib.h>
#include <sys/socket.h>

static bool is_late(const connections *all, const connection *c, uint64_t now) {
    uint64_t waited = now - atomic_load(&c->since);
    switch (atomic_load(&c->phase)) {
    case PHASE_IDLE: return waited > all->idle * 1000000ull;
    case PHASE_HEAD: return waited > all->head * 1000000ull;
    case PHASE_BODY: return waited > all->body * 1000000ull;
    default: return false;
    }
}

/* Shuts what is late; its thread finds it at its end, and closes it. */
static void look(connections *all) {
    uint64_t now = now_microseconds();
    for (connection *c = all->first; c; c = c->next)
        if (atomic_load(&c->since) < now && is_late(all, c, now))
            shutdown(c->socket, SHUT_RDWR);
}

static void *watch(void *user) {
    connections *all = user;
    pthread_mutex_lock(&all->lock);
    while (!all->stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        pthread_cond_timedwait(&all->end, &all->lock, &until);
        look(all);
    }
    pthread_mutex_unlock(&all->lock);
    return NULL;
}

bool connections_open(connections *all, unsigned idle, unsigned head, unsigned whole) {
    *all = (connections){.idle = idle, .head = head, .body = whole};
    pthread_mutex_init(&all->lock, NULL);
    pthread_cond_init(&all->end, NULL);
    all->running = !pthread_create(&all->watch, NULL, watch, all);
    return all->running;
}

void connections_close(connections *all) {
    pthread_mutex_lock(&all->lock);
    all->stop = true;
    pthread_cond_signal(&all->end);
    pthread_mutex_unlock(&all->lock);
    if (all->running)
        pthread_join(all->watch, NULL);
    pthread_mutex_destroy(&all->lock);
    pthread_cond_destroy(&all->end);
}

connection *connection_add(connections *all, void *handle, int socket, const void *address, unsigned length) {
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

void connection_remove(connections *all, connection *c) {
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

void connection_is(connection *c, connection_phase phase) {
    if (!c)
        return;
    atomic_store(&c->since, now_microseconds());
    atomic_store(&c->phase, phase);
}

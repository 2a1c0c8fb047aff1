/* redis_find.c - who is in charge now?
 *
 * One server: the URL says it. Sentinels: each is asked in turn, and whom it names must say itself that it is the
 * master. A Cluster: any node knows who has which slots and which other nodes there are; where the one in charge does
 * not answer, the others are asked until they have agreed on its successor. */
#include "known/redis_parts.h"

#include <stdio.h>
#include <stdlib.h>

enum { MOST_NODES = 1000 };

/* ---- addresses ---- */

bool dp_redis_address_copy(dp_redis_address *to, const dp_redis_address *from) {
    char *host = strdup(from->host);
    if (!host)
        return false;
    free(to->host);
    *to = (dp_redis_address){host, from->port};
    return true;
}

bool dp_redis_address_equal(const dp_redis_address *a, const dp_redis_address *b) {
    return a->host && b->host && a->port == b->port && !strcmp(a->host, b->host);
}

/* ---- one server, and Sentinels ---- */

static doppel_status connect_to(dp_redis_link *link, const dp_redis_address *to, doppel_error *error) {
    if (!dp_redis_address_copy(&link->where, to))
        return dp_no_memory(error);
    return dp_redis_greet(link, &link->where, error);
}

/* Reads the answer of a Sentinel. */
static doppel_status read_master(const dp_redis_wire *wire, const char *service, const redisReply *reply,
                                 dp_redis_address *master, doppel_error *error) {
    if (reply->type == REDIS_REPLY_ERROR)
        return dp_redis_explain(wire->place, reply, error);
    if (reply->type == REDIS_REPLY_NIL)
        return dp_fail(error, DOPPEL_ERROR_AWAY, "%s: this Sentinel knows no service %s", wire->place, service);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 || !reply->element[0]->str || !reply->element[1]->str)
        return dp_redis_explain(wire->place, reply, error);
    dp_redis_address named = {reply->element[0]->str, atoi(reply->element[1]->str)};
    return dp_redis_address_copy(master, &named) ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status ask_sentinel(const dp_redis_pool *pool, const dp_redis_address *sentinel, dp_redis_address *master,
                                  doppel_error *error) {
    const dp_redis_url *url = pool->options.url;
    dp_redis_wire wire;
    redisReply *reply = NULL;
    doppel_status status = dp_redis_wire_open(&wire, sentinel, url->timeout, &pool->stop, error);
    if (status)
        return status;
    if (url->sentinel_password) {
        status = DP_REDIS_ASK(&wire, url->timeout, &reply, error, "AUTH", url->sentinel_password);
        if (!status && reply->type == REDIS_REPLY_ERROR)
            status = dp_redis_explain(wire.place, reply, error);
        freeReplyObject(reply);
        reply = NULL;
    }
    if (!status)
        status = DP_REDIS_ASK(&wire, url->timeout, &reply, error, "SENTINEL", "get-master-addr-by-name", url->service);
    if (!status)
        status = read_master(&wire, url->service, reply, master, error);
    freeReplyObject(reply);
    dp_redis_wire_close(&wire);
    return status;
}

static doppel_status find_by_sentinels(dp_redis_link *link, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    doppel_status status = DOPPEL_ERROR_AWAY;
    for (size_t i = 0; i < url->addresses && status == DOPPEL_ERROR_AWAY && (!i || !dp_redis_stops(link->pool)); i++) {
        dp_redis_address master = {0};
        status = ask_sentinel(link->pool, &url->address[link->turn % url->addresses], &master, error);
        if (!status)
            status = connect_to(link, &master, error);
        free(master.host);
        /* Another one may know better. */
        if (status)
            link->turn++;
    }
    return status;
}

/* ---- the nodes of a Cluster ---- */

/* Remembers a node; false: no memory. */
static bool remember(dp_redis_pool *pool, const dp_redis_address *node, bool in_charge) {
    pthread_mutex_lock(&pool->mutex);
    size_t i = 0;
    while (i < pool->nodes && !dp_redis_address_equal(&pool->node[i], node))
        i++;
    bool room = i < pool->nodes;
    if (!room && i < MOST_NODES && dp_reserve(&pool->node, &pool->node_capacity, i + 1, sizeof *pool->node)) {
        pool->node[i] = (dp_redis_address){0};
        room = dp_redis_address_copy(&pool->node[i], node);
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

/* The n-th place to ask: nodes that are known, then those of the URL, and so on again. */
static bool pick(dp_redis_link *link, size_t n, dp_redis_address *node) {
    const dp_redis_url *url = link->pool->options.url;
    pthread_mutex_lock(&link->pool->mutex);
    n %= link->pool->nodes + url->addresses;
    const dp_redis_address *at = n < link->pool->nodes ? &link->pool->node[n] : &url->address[n - link->pool->nodes];
    bool copied = dp_redis_address_copy(node, at);
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
            if (has && n == 2 && !dp_redis_address_copy(master, &node))
                return dp_no_memory(error);
        }
    }
    return DOPPEL_OK;
}

/* Asks the node at hand which node has the index's slot; nobody has: the host stays NULL. */
static doppel_status look_up(dp_redis_link *link, dp_redis_address *master, doppel_error *error) {
    const dp_redis_url *url = link->pool->options.url;
    redisReply *slot = NULL, *slots = NULL;
    char key[128];
    snprintf(key, sizeof key, "{%s}m", url->prefix);
    doppel_status status = DP_REDIS_ASK(&link->wire, url->timeout, &slot, error, "CLUSTER", "KEYSLOT", key);
    if (!status)
        status = DP_REDIS_ASK(&link->wire, url->timeout, &slots, error, "CLUSTER", "SLOTS");
    if (!status && (slot->type != REDIS_REPLY_INTEGER || slots->type != REDIS_REPLY_ARRAY))
        status = dp_redis_explain(link->wire.place, slot->type == REDIS_REPLY_INTEGER ? slots : slot, error);
    if (!status)
        status = read_slots(link, slots, slot->integer, master, error);
    freeReplyObject(slot);
    freeReplyObject(slots);
    return status;
}

/* Goes on from the node at hand to the one that has the slot. `silent` is one that did not answer in this round. */
static doppel_status go_to_master(dp_redis_link *link, dp_redis_address *silent, doppel_error *error) {
    dp_redis_address master = {0};
    doppel_status status = look_up(link, &master, error);
    if (!status && master.host && !dp_redis_address_equal(&master, &link->where)) {
        dp_redis_wire_close(&link->wire);
        if (dp_redis_address_equal(&master, silent))
            status = dp_fail(error, DOPPEL_ERROR_AWAY, "%s:%d: the master of the index's slot does not answer",
                             master.host, master.port);
        else
            status = connect_to(link, &master, error);
        if (status == DOPPEL_ERROR_AWAY && !dp_redis_address_copy(silent, &master))
            status = dp_no_memory(error);
    }
    free(master.host);
    if (status)
        dp_redis_wire_close(&link->wire);
    return status;
}

static doppel_status find_in_cluster(dp_redis_link *link, doppel_error *error) {
    dp_redis_address node = {0}, silent = {0};
    doppel_status status = DOPPEL_ERROR_AWAY;
    size_t places = count_places(link);
    /* Where it was, or where MOVED pointed to, and then everybody. */
    for (size_t i = 0; i <= places && status == DOPPEL_ERROR_AWAY && (!i || !dp_redis_stops(link->pool)); i++) {
        if (i ? !pick(link, link->turn++, &node) : link->where.host && !dp_redis_address_copy(&node, &link->where)) {
            status = dp_no_memory(error);
            break;
        }
        if (!node.host || (i && dp_redis_address_equal(&node, &silent)))
            continue;
        status = connect_to(link, &node, error);
        if (!status && link->cluster)
            status = go_to_master(link, &silent, error);
        else if (status == DOPPEL_ERROR_AWAY && !dp_redis_address_copy(&silent, &node))
            status = dp_no_memory(error);
    }
    free(node.host);
    free(silent.host);
    return status;
}

/* The masters that CLUSTER SLOTS names, each once. */
static doppel_status visit_masters(dp_redis_link *link, const redisReply *slots,
                                   doppel_status (*visit)(dp_redis_link *link, void *user, doppel_error *error),
                                   void *user, doppel_error *error) {
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
        dp_redis_wire_close(&link->wire);
        link->ready = false;
        doppel_status status = connect_to(link, &node, error);
        if (!status)
            status = visit(link, user, error);
        if (status)
            return status;
    }
    return DOPPEL_OK;
}

doppel_status dp_redis_each_master(dp_redis_link *link,
                                   doppel_status (*visit)(dp_redis_link *link, void *user, doppel_error *error),
                                   void *user, doppel_error *error) {
    if (!link->cluster)
        return visit(link, user, error);
    redisReply *slots = NULL;
    doppel_status status =
        DP_REDIS_ASK(&link->wire, link->pool->options.url->timeout, &slots, error, "CLUSTER", "SLOTS");
    if (!status && slots->type != REDIS_REPLY_ARRAY)
        status = dp_redis_explain(link->wire.place, slots, error);
    if (!status)
        status = visit_masters(link, slots, visit, user, error);
    freeReplyObject(slots);
    return status;
}

doppel_status dp_redis_follow(dp_redis_link *link, const char *moved, doppel_error *error) {
    const char *space = strrchr(moved, ' '), *colon = strrchr(moved, ':');
    link->cluster = true;
    if (!space || !colon || colon < space || space[1] == '?')
        return DOPPEL_OK; /* it does not say where: they are all asked */
    char *host = space + 1 == colon && link->where.host ? strdup(link->where.host)
                                                        : strndup(space + 1, (size_t)(colon - space - 1));
    if (!host)
        return dp_no_memory(error);
    free(link->where.host);
    link->where = (dp_redis_address){host, atoi(colon + 1)};
    return DOPPEL_OK;
}

doppel_status dp_redis_find(dp_redis_link *link, doppel_error *error) {
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
    if (!status)
        status = dp_redis_prepare(link, error);
    if (status)
        dp_redis_wire_close(&link->wire);
    link->ready = !status;
    return status;
}

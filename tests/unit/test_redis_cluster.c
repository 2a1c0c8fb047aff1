/* A Cluster of six nodes, three masters with a replica each: the index's slot is found, moved under load, and found
 * again after its master was killed. */
#include "redis_links.h"

#include <stdatomic.h>

enum { NODES = 6, MASTERS = 3, SLOTS = 16384 };

static redis_server nodes[NODES];
static const char *settings[NODES][20];
static char bus_ports[NODES][16];
static char url[256];
static int slot;

/* ---- setting up ---- */

static void start_node(size_t i) {
    snprintf(bus_ports[i], sizeof *bus_ports, "%d", free_port());
    const char *words[] = {"--save",
                           "",
                           "--appendonly",
                           "no",
                           "--cluster-enabled",
                           "yes",
                           "--cluster-node-timeout",
                           "500",
                           "--cluster-port",
                           bus_ports[i],
                           "--repl-diskless-sync-delay",
                           "0",
                           "--repl-ping-replica-period",
                           "1",
                           NULL};
    memcpy(settings[i], words, sizeof words);
    nodes[i] = redis_start(settings[i]);
}

static void identify(const redis_server *node, char id[41]) {
    redisReply *reply = redis_say(node, "CLUSTER MYID");
    assert_true(reply && reply->len == 40);
    strcpy(id, reply->str);
    freeReplyObject(reply);
}

static void wait_until_all_tell(const char *command, const char *words) {
    for (int tries = 0;; tries++) {
        size_t telling = 0;
        for (size_t i = 0; i < NODES; i++)
            telling += !nodes[i].pid || redis_tells(&nodes[i], command, words);
        if (telling == NODES)
            return;
        if (tries == 1000)
            fail_msg("%s does not say %s", command, words);
        pause_for(0.02);
    }
}

/* Waits until every node is a replica with its master's data, or a master with a replica. */
static void wait_for_replicas(void) {
    for (int tries = 0; tries < 1000; tries++, pause_for(0.02)) {
        size_t whole = 0;
        for (size_t i = 0; i < NODES; i++)
            whole += redis_tells(&nodes[i], "INFO replication", "master_link_status:up") ||
                     redis_tells(&nodes[i], "INFO replication", "state=online");
        if (whole == NODES)
            return;
    }
    fail_msg("replicas do not follow");
}

static void join_nodes(void) {
    char words[128];
    for (size_t i = 0; i < MASTERS; i++) {
        snprintf(words, sizeof words, "CLUSTER ADDSLOTSRANGE %zu %zu", i * SLOTS / MASTERS,
                 (i + 1) * SLOTS / MASTERS - 1);
        redis_do(&nodes[i], words);
        snprintf(words, sizeof words, "CLUSTER SET-CONFIG-EPOCH %zu", i + 1);
        redis_do(&nodes[i], words);
    }
    for (size_t i = 1; i < NODES; i++) {
        snprintf(words, sizeof words, "CLUSTER MEET 127.0.0.1 %d %s", nodes[i].port, bus_ports[i]);
        redis_do(&nodes[0], words);
    }
    wait_until_all_tell("CLUSTER INFO", "cluster_known_nodes:6");
    for (size_t i = MASTERS; i < NODES; i++) {
        char id[41];
        identify(&nodes[i - MASTERS], id);
        snprintf(words, sizeof words, "CLUSTER REPLICATE %s", id);
        redis_do(&nodes[i], words);
    }
    wait_until_all_tell("CLUSTER INFO", "cluster_state:ok");
    wait_for_replicas();
}

static int start(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        start_node(i);
    join_nodes();
    slot = (int)redis_number(&nodes[0], "CLUSTER KEYSLOT {doppel}m");
    snprintf(url, sizeof url, "redis+cluster://%s,%s?retry=20", nodes[5].host, nodes[1].host);
    return 0;
}

static int stop(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++)
        redis_remove(&nodes[i]);
    return 0;
}

/* ---- who has the slot ---- */

static size_t owner(void) {
    for (int tries = 0; tries < 500; tries++, pause_for(0.02))
        for (size_t i = 0; i < NODES; i++)
            if (nodes[i].pid && redis_number(&nodes[i], "HLEN {doppel}m") >= 0)
                return i;
    fail_msg("nobody has the slot");
    return 0;
}

static long long counted(const char *field) {
    char words[64];
    snprintf(words, sizeof words, "HGET {doppel}m %s", field);
    return redis_number(&nodes[owner()], words);
}

static int empty(void **state) {
    (void)state;
    redis_do(&nodes[owner()], "FLUSHALL");
    return 0;
}

/* ---- a thread that counts ---- */

typedef struct counter {
    redis_links links;
    dp_redis_link *link;
    pthread_t thread;
    _Atomic bool stop;
    size_t batch, acknowledged;
    doppel_status status;
    doppel_error error;
} counter;

static void *count_on(void *given) {
    counter *it = given;
    while (!it->stop && !it->status) {
        count_batch made = make_batch(it->link, it->batch);
        it->status = dp_redis_call(it->link, &made.batch, true, &it->error);
        if (!it->status)
            it->acknowledged += made.batch.count;
        dp_redis_batch_free(&made.batch);
    }
    return NULL;
}

static void start_counting(counter *it, const char *where, size_t batch) {
    memset(it, 0, sizeof *it);
    links_open(&it->links, where);
    it->link = take_link(&it->links);
    it->batch = batch;
    assert_int_equal(pthread_create(&it->thread, NULL, count_on, it), 0);
}

static void stop_counting(counter *it) {
    it->stop = true;
    pthread_join(it->thread, NULL);
    if (it->status)
        fail_msg("%s", it->error.message);
    dp_redis_give(it->links.pool, it->link);
}

/* ---- moving the slot ---- */

static void move_keys(const redis_server *from, const redis_server *to) {
    char words[200];
    for (;;) {
        snprintf(words, sizeof words, "CLUSTER GETKEYSINSLOT %d 1", slot);
        redisReply *keys = redis_say(from, words);
        assert_true(keys && keys->type == REDIS_REPLY_ARRAY);
        size_t count = keys->elements;
        if (count) {
            redisReply *moved = redis_say(from, "MIGRATE 127.0.0.1 %d %s 0 5000", to->port, keys->element[0]->str);
            assert_true(moved && moved->type == REDIS_REPLY_STATUS);
            freeReplyObject(moved);
        }
        freeReplyObject(keys);
        if (!count)
            return;
    }
}

static void move_slot(size_t from, size_t to, double slowly) {
    char words[128], ids[2][41];
    identify(&nodes[from], ids[0]);
    identify(&nodes[to], ids[1]);
    snprintf(words, sizeof words, "CLUSTER SETSLOT %d IMPORTING %s", slot, ids[0]);
    redis_do(&nodes[to], words);
    snprintf(words, sizeof words, "CLUSTER SETSLOT %d MIGRATING %s", slot, ids[1]);
    redis_do(&nodes[from], words);
    pause_for(slowly);
    move_keys(&nodes[from], &nodes[to]);
    pause_for(slowly);
    snprintf(words, sizeof words, "CLUSTER SETSLOT %d NODE %s", slot, ids[1]);
    redis_do(&nodes[to], words);
    redis_do(&nodes[from], words);
}

/* ---- the tests ---- */

static void any_node_leads_to_the_one_in_charge(void **state) {
    (void)state;
    for (size_t i = 0; i < NODES; i++) {
        char where[2][96];
        snprintf(where[0], sizeof *where, "redis://%s", nodes[i].host);
        snprintf(where[1], sizeof *where, "%s", nodes[i].url);
        for (size_t n = 0; n < 2; n++) {
            redis_links links;
            links_open(&links, where[n]);
            dp_redis_link *link = take_link(&links);
            assert_int_equal(call_counts(link, 10, false), 0);
            dp_redis_give(links.pool, link);
            links_close(&links);
        }
    }
    assert_int_equal(counted("all"), NODES * 20);
}

static void seeds_that_are_gone_do_not_matter(void **state) {
    (void)state;
    char where[128];
    snprintf(where, sizeof where, "redis+cluster://127.0.0.1:%d,%s", free_port(), nodes[4].host);
    redis_links links;
    links_open(&links, where);
    links_close(&links);
    snprintf(where, sizeof where, "redis+cluster://127.0.0.1:%d", free_port());
    links_refuse(where, DOPPEL_ERROR_AWAY, "Connection refused");
    snprintf(where, sizeof where, "redis://%s/2", nodes[0].host);
    links_refuse(where, DOPPEL_ERROR_STORE, "which has db 0 only");
}

static void a_slot_is_moved_under_load(void **state) {
    (void)state;
    counter counters[3];
    for (size_t i = 0; i < 3; i++)
        start_counting(&counters[i], url, i == 2 ? 1 : 50);
    size_t rounds = full_suite() ? 20 : 2, at = owner(), first = at;
    for (size_t i = 0; i < rounds; i++) {
        size_t to = (at + 1) % MASTERS;
        move_slot(at, to, 0.1);
        at = to;
        pause_for(0.1);
    }
    while (at != first) {
        move_slot(at, (at + 1) % MASTERS, 0);
        at = (at + 1) % MASTERS;
    }
    long long acknowledged = 0;
    for (size_t i = 0; i < 3; i++) {
        stop_counting(&counters[i]);
        acknowledged += (long long)counters[i].acknowledged;
        assert_true(dp_redis_get_counters(counters[i].links.pool)->moved >= 1);
        links_close(&counters[i].links);
    }
    assert_int_equal(counted("all"), acknowledged);
    assert_int_equal(counted("disorder"), -1);
}

/* With replicas=1 nothing that was acknowledged is lost; without an answer it may have been counted. */
static void a_master_that_is_killed_is_followed(void **state) {
    (void)state;
    char where[300];
    snprintf(where, sizeof where, "%s&replicas=1&timeout=1", url);
    counter counters[2];
    for (size_t i = 0; i < 2; i++)
        start_counting(&counters[i], where, 20);
    pause_for(0.3);
    size_t dead = owner();
    redis_end(&nodes[dead], SIGKILL);
    size_t heir = owner();
    assert_int_not_equal(dead, heir);
    /* It has no replica before the dead one is back. */
    redis_again(&nodes[dead]);
    wait_for_replicas();
    pause_for(0.2);
    long long acknowledged = 0;
    for (size_t i = 0; i < 2; i++) {
        stop_counting(&counters[i]);
        acknowledged += (long long)counters[i].acknowledged;
        assert_true(dp_redis_get_counters(counters[i].links.pool)->reconnects >= 1);
        links_close(&counters[i].links);
    }
    assert_true(acknowledged > 0);
    assert_int_equal(counted("all"), acknowledged);
    assert_int_equal(counted("disorder"), -1);
}

static void every_node_gets_the_functions(void **state) {
    (void)state;
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    size_t at = owner(), to = at < MASTERS ? (at + 1) % MASTERS : 0;
    while (to == at || !redis_tells(&nodes[to], "INFO replication", "role:master"))
        to = (to + 1) % NODES;
    call_counts(link, 10, false);
    redis_do(&nodes[to], "FUNCTION FLUSH");
    move_slot(at, to, 0);
    call_counts(link, 10, false);
    redis_do(&nodes[to], "FUNCTION FLUSH");
    call_counts(link, 10, false);
    assert_int_equal(counted("all"), 30);
    dp_redis_give(links.pool, link);
    links_close(&links);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(any_node_leads_to_the_one_in_charge, empty),
        cmocka_unit_test_setup(seeds_that_are_gone_do_not_matter, empty),
        cmocka_unit_test_setup(a_slot_is_moved_under_load, empty),
        cmocka_unit_test_setup(a_master_that_is_killed_is_followed, empty),
        cmocka_unit_test_setup(every_node_gets_the_functions, empty),
    };
    return cmocka_run_group_tests(tests, start, stop);
}

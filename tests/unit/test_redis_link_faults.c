/* Every allocation of a link to Redis fails once: an error of its own kind, nothing is left behind, and the next call
 * is as if nothing had happened. */
#include "faults.h"
#include "redis_links.h"

static char where[128];

/* Connects, counts and leaves. */
static doppel_status count_some(uint64_t *result) {
    enum { COUNT = 20 };
    dp_redis_url url = {0};
    dp_redis_pool *pool = NULL;
    doppel_error error = {0};
    doppel_status status = dp_redis_url_parse(where, &url, &error);
    dp_redis_link_options options = {.url = &url, .library = test_library, .library_name = "doppel_test"};
    if (!status)
        status = dp_redis_pool_create(&options, &pool, &error);
    dp_redis_link *link = status ? NULL : dp_redis_take(pool, &error);
    if (!status && !link)
        status = error.code;
    if (link) {
        int kinds = pause_faults();
        count_batch made = make_batch(link, COUNT);
        resume_faults(kinds);
        status = dp_redis_call(link, &made.batch, true, &error);
        kinds = pause_faults();
        for (size_t i = 0; !status && i < COUNT; i++)
            *result = mixed(*result, (uint64_t)made.batch.reply[i]->element[0]->integer);
        dp_redis_batch_free(&made.batch);
        resume_faults(kinds);
        dp_redis_give(pool, link);
    }
    dp_redis_pool_free(pool);
    dp_redis_url_free(&url);
    return status;
}

static void run_at(const char *url) {
    snprintf(where, sizeof where, "%s", url);
    run_with(count_some, (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
    run_with(count_some, (fault_plan){.kinds = MEMORY, .go_on = true, .expected = DOPPEL_ERROR_MEMORY});
}

static void one_server(void **state) {
    (void)state;
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    redis_server server = redis_start(settings);
    run_at(server.url);
    char url[96];
    snprintf(url, sizeof url, "redis://default:any@%s/3?prefix=doppel", server.host);
    run_at(url);
    redis_remove(&server);
}

/* A Cluster of one node takes its time to begin. */
static void a_node_of_a_cluster(void **state) {
    (void)state;
    if (!full_suite())
        skip();
    static const char *const settings[] = {
        "--save", "", "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-port", NULL, NULL};
    const char *words[sizeof settings / sizeof *settings];
    char port[16];
    memcpy(words, settings, sizeof settings);
    snprintf(port, sizeof port, "%d", free_port());
    words[7] = port;
    redis_server server = redis_start(words);
    redis_do(&server, "CLUSTER ADDSLOTSRANGE 0 16383");
    for (int tries = 0; redis_number(&server, "HLEN {doppel}m") < 0; tries++, pause_for(0.02))
        assert_true(tries < 500);
    char url[96];
    snprintf(url, sizeof url, "redis+cluster://%s", server.host);
    run_at(url);
    snprintf(url, sizeof url, "redis://%s", server.host);
    run_at(url);
    redis_remove(&server);
}

int main(void) {
    if (!redis_installed())
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server),
        cmocka_unit_test(a_node_of_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

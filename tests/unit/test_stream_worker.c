/* test_stream_worker.c - the whole worker, over the mock cluster that librdkafka has: records of every kind, and
 * brokers that fail. The mock shows what was taken back, too, so that faults are judged by where records come out, not
 * how often.
 */
#include "support.h"

#include "stream/stream.h"
#include "stream/worker.h"

#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>

enum { PRODUCE = 0, ADD_OFFSETS = 25, END = 26, OFFSETS = 28 }; /* requests of Kafka's protocol */

static const char text_a[] = "the quick brown fox jumps over the lazy dog and runs away from it all day long";
static const char text_b[] = "an entirely other page about ships and the sea with words of its own to be found by";

typedef struct cluster {
    rd_kafka_t *client; /* a producer, and what the mock belongs to */
    rd_kafka_mock_cluster_t *mock;
    const char *brokers;
} cluster;

static const char *const topics[] = {"in", "unique", "duplicates", "dead"};

static int open_cluster(void **state) {
    cluster *c = calloc(1, sizeof *c);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char why[200];
    rd_kafka_conf_set(conf, "log_level", "0", NULL, 0);
    c->client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    c->mock = rd_kafka_mock_cluster_new(c->client, 1);
    for (size_t i = 0; i < sizeof topics / sizeof *topics; i++)
        rd_kafka_mock_topic_create(c->mock, topics[i], 1, 1);
    c->brokers = rd_kafka_mock_cluster_bootstraps(c->mock);
    rd_kafka_brokers_add(c->client, c->brokers);
    *state = c;
    return 0;
}

static int close_cluster(void **state) {
    cluster *c = *state;
    rd_kafka_mock_cluster_destroy(c->mock);
    rd_kafka_destroy(c->client);
    free(c);
    return 0;
}

static void send_record(cluster *c, const char *key, const char *value) {
    rd_kafka_resp_err_t code = rd_kafka_producev(
        c->client, RD_KAFKA_V_TOPIC("in"), RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_KEY(key, key ? strlen(key) : 0),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)value, value ? strlen(value) : 0), RD_KAFKA_V_HEADER("own", "1", 1),
        RD_KAFKA_V_TIMESTAMP(1234567890123), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    assert_int_equal(code, 0);
}

static void send_page(cluster *c, const char *key, const char *id, const char *words) {
    char value[400];
    snprintf(value, sizeof value, id ? "{\"id\":\"%s\",\"text\":\"%s\"}" : "{%s\"text\":\"%s\"}", id ? id : "", words);
    send_record(c, key, value);
}

/* ---- the worker ---- */

static const cli_option options[] = {
    {"brokers", 0, OPTION_TEXT, "B", ""},       {"in", 0, OPTION_TEXT, "T", ""},
    {"unique", 0, OPTION_TEXT, "T", ""},        {"duplicates", 0, OPTION_TEXT, "T", ""},
    {"dead-letter", 0, OPTION_TEXT, "T", ""},   {"batch", 0, OPTION_COUNT, "N", ""},
    {"until-end", 0, OPTION_FLAG, NULL, ""},    {"strict", 0, OPTION_FLAG, NULL, ""},
    {"properties", 0, OPTION_FILE, "FILE", ""}, {"property", 'X', OPTION_LIST, "KEY=VALUE", ""},
    {NULL, 0, OPTION_FLAG, NULL, NULL}};
static const cli_option common[] = {{"help", 'h', OPTION_FLAG, NULL, ""}, {NULL, 0, OPTION_FLAG, NULL, NULL}};
static const cli_command command = {.name = "stream", .arguments = "ARGUMENTS", .options = options};

/* Whether options are given with this name. */
static bool gives(const char *more, const char *name) {
    const char *at = strstr(more, name);
    return at && at[strlen(name)] == ' ';
}

/* Its exit code, with options besides the usual ones, or in their place. */
static int work(cluster *c, char *more) {
    char *usual[][2] = {{"--brokers", (char *)(uintptr_t)c->brokers},
                        {"--in", "in"},
                        {"--unique", "unique"},
                        {"--duplicates", "duplicates"}};
    char *words[32] = {"--until-end"};
    int count = 1;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (!gives(more, usual[i][0])) {
            words[count++] = usual[i][0];
            words[count++] = usual[i][1];
        }
    for (char *rest, *word = strtok_r(more, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    cli_args args;
    doppel_engine *engine;
    const doppel_engine_options with = {.size = sizeof with, .threads = 1};
    assert_true(args_parse(&args, &command, common, count, words));
    assert_int_equal(doppel_engine_open(NULL, &with, &engine, NULL), DOPPEL_OK);
    stream_job job = {.args = &args, .place = "memory", .input.size = sizeof job.input, .engine = engine};
    assert_int_equal(doppel_engine_get_needs(NULL, &job.needs, NULL), DOPPEL_OK);
    rd_kafka_flush(c->client, 10000);
    int code = stream_check(&args);
    if (code == EXIT_DONE)
        code = stream_run(&job);
    doppel_engine_close(engine);
    args_free(&args);
    return code;
}

/* ---- what came out ---- */

typedef struct topic {
    rd_kafka_message_t *records[64];
    size_t count;
    rd_kafka_t *reader;
} topic;

static topic read_topic(cluster *c, const char *name) {
    topic t = {0};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(1);
    rd_kafka_conf_set(conf, "bootstrap.servers", c->brokers, NULL, 0);
    rd_kafka_conf_set(conf, "group.id", "reader", NULL, 0);
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", NULL, 0);
    t.reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, NULL, 0);
    rd_kafka_topic_partition_list_add(all, name, 0)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_assign(t.reader, all);
    rd_kafka_topic_partition_list_destroy(all);
    for (bool end = false; !end;) {
        rd_kafka_message_t *m = rd_kafka_consumer_poll(t.reader, 10000);
        assert_non_null(m);
        end = m->err;
        if (end || t.count == 64)
            rd_kafka_message_destroy(m);
        else
            t.records[t.count++] = m;
    }
    return t;
}

static void free_topic(topic *t) {
    while (t->count)
        rd_kafka_message_destroy(t->records[--t->count]);
    rd_kafka_destroy_flags(t->reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

static bool has(const rd_kafka_message_t *m, const char *part) {
    return m->payload && memmem(m->payload, m->len, part, strlen(part));
}

static void check_header(const rd_kafka_message_t *m, const char *name, const char *value) {
    rd_kafka_headers_t *headers;
    const void *found;
    size_t length;
    assert_int_equal(rd_kafka_message_headers(m, &headers), 0);
    assert_int_equal(rd_kafka_header_get_last(headers, name, &found, &length), 0);
    assert_int_equal(length, strlen(value));
    assert_memory_equal(found, value, length);
}

/* ---- tests ---- */

static void test_each_record_goes_where_it_belongs(void **state) {
    cluster *c = *state;
    char more[] = "--dead-letter dead";
    send_page(c, "k", "a", text_a);
    send_page(c, NULL, "b", text_a);
    send_record(c, "bad", "no JSON");
    send_record(c, "a", NULL);
    send_page(c, "c", NULL, text_a);
    assert_int_equal(work(c, more), EXIT_DONE);
    topic unique = read_topic(c, "unique"), duplicates = read_topic(c, "duplicates"), dead = read_topic(c, "dead");
    assert_int_equal(unique.count, 3);
    assert_int_equal(duplicates.count, 1);
    assert_int_equal(dead.count, 1);
    assert_true(has(unique.records[0], "\"id\":\"a\"") && !has(unique.records[0], "verdict"));
    check_header(unique.records[0], "own", "1");
    assert_int_equal(rd_kafka_message_timestamp(unique.records[0], NULL), 1234567890123);
    assert_null(unique.records[1]->payload);
    assert_memory_equal(unique.records[2]->key, "c", 1);
    assert_true(has(duplicates.records[0], ",\"verdict\":{\"isDuplicate\":true") &&
                has(duplicates.records[0], "\"originalId\":\"a\""));
    check_header(duplicates.records[0], HEADER_ORIGINAL, "a");
    check_header(duplicates.records[0], "own", "1");
    check_header(dead.records[0], HEADER_TOPIC, "in");
    check_header(dead.records[0], HEADER_PARTITION, "0");
    check_header(dead.records[0], HEADER_OFFSET, "2");
    assert_memory_equal(dead.records[0]->payload, "no JSON", 7);
    free_topic(&unique);
    free_topic(&duplicates);
    free_topic(&dead);
}

/* How many records of a topic have this part. */
static size_t count_of(const topic *t, const char *part) {
    size_t count = 0;
    for (size_t i = 0; i < t->count; i++)
        count += has(t->records[i], part);
    return count;
}

/* Two pages and a copy of each. What fails once, the one after the other, does not change what they are: what the index
 * has added before is not a duplicate the next time. */
static void test_brokers_that_fail(void **state) {
    cluster *c = *state;
    char more[] = "--dead-letter dead";
    send_page(c, NULL, "a", text_a);
    send_page(c, NULL, "b", text_b);
    send_page(c, NULL, "c", text_a);
    send_page(c, NULL, "d", text_b);
    rd_kafka_flush(c->client, 10000);
    rd_kafka_mock_push_request_errors(c->mock, OFFSETS, 1, RD_KAFKA_RESP_ERR_ILLEGAL_GENERATION);
    rd_kafka_mock_push_request_errors(c->mock, ADD_OFFSETS, 1, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
    rd_kafka_mock_push_request_errors(c->mock, PRODUCE, 1, RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID);
    rd_kafka_mock_push_request_errors(c->mock, END, 1, RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH);
    assert_int_equal(work(c, more), EXIT_DONE);
    topic unique = read_topic(c, "unique"), duplicates = read_topic(c, "duplicates"), dead = read_topic(c, "dead");
    assert_true(count_of(&unique, "\"id\":\"a\"") && count_of(&unique, "\"id\":\"b\""));
    assert_true(count_of(&duplicates, "\"id\":\"c\"") && count_of(&duplicates, "\"id\":\"d\""));
    assert_int_equal(count_of(&duplicates, "\"id\":\"a\"") + count_of(&duplicates, "\"id\":\"b\""), 0);
    assert_int_equal(count_of(&unique, "\"id\":\"c\"") + count_of(&unique, "\"id\":\"d\""), 0);
    assert_int_equal(dead.count, 0);
    free_topic(&unique);
    free_topic(&duplicates);
    free_topic(&dead);
}

/* Moves a record of a topic to a batch. */
static void take_record(topic *t, size_t i, batch *b) {
    const reading how = {.input.size = sizeof how.input, .max_record = 1000};
    stream_batch_add(b, t->records[i], &how);
    t->records[i] = NULL;
}

static void free_rest(topic *t) {
    for (size_t i = 0; i < t->count; i++)
        if (t->records[i])
            rd_kafka_message_destroy(t->records[i]);
    t->count = 0;
    free_topic(t);
}

/* As librdkafka may deliver them after a partition was assigned again: first those of the assignment before. */
static void test_records_that_were_committed_are_dropped(void **state) {
    cluster *c = *state;
    enum { COMMITTED = 3, SENT = 6 };
    for (size_t i = 0; i < SENT; i++)
        send_page(c, NULL, NULL, text_a);
    rd_kafka_flush(c->client, 10000);
    reached at = {.topic = "in", .floor = COMMITTED, .next = COMMITTED};
    stream s = {.reached = &at, .reached_count = 1};
    batch *first = stream_batch_create(SENT), *second = stream_batch_create(SENT);
    topic old = read_topic(c, "in"), new = read_topic(c, "in");
    for (size_t i = 1; i < SENT - 1; i++)
        take_record(&old, i, first);
    for (size_t i = COMMITTED; i < SENT; i++)
        take_record(&new, i, second);
    assert_int_equal(drop_repeated(&s, first), OUTCOME_DONE);
    assert_int_equal(first->count, 2);
    assert_int_equal(first->records[0].message->offset, COMMITTED);
    assert_int_equal(first->records[1].message->offset, COMMITTED + 1);
    assert_string_equal(first->records[1].origin, "in/0/4");
    assert_int_equal(drop_repeated(&s, second), OUTCOME_DONE);
    assert_int_equal(second->count, 1);
    assert_int_equal(second->records[0].message->offset, SENT - 1);
    stream_batch_free(first);
    stream_batch_free(second);
    free_rest(&old);
    free_rest(&new);
}

static void test_strict_ends_at_what_is_no_page(void **state) {
    cluster *c = *state;
    char more[] = "--strict";
    send_page(c, NULL, "a", text_a);
    send_record(c, NULL, "[]");
    assert_int_equal(work(c, more), EXIT_INPUT);
    topic unique = read_topic(c, "unique");
    assert_int_equal(unique.count, 0);
    free_topic(&unique);
}

static void test_options_that_make_no_sense(void **state) {
    static const char *const wrong[] = {"--dead-letter in",
                                        "--dead-letter unique",
                                        "--batch 0",
                                        "--batch 1000000",
                                        "-X acks=1",
                                        "-X nothing",
                                        "-X no.such.thing=1",
                                        "-X linger.ms=a-number",
                                        "--in ,",
                                        "--properties /dev/null",
                                        "--properties /nowhere"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char more[64];
        snprintf(more, sizeof more, "%s", wrong[i]);
        assert_int_equal(work(*state, more), EXIT_USAGE);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_cluster, close_cluster)
    const struct CMUnitTest tests[] = {
        TEST(test_each_record_goes_where_it_belongs),
        TEST(test_brokers_that_fail),
        TEST(test_records_that_were_committed_are_dropped),
        TEST(test_strict_ends_at_what_is_no_page),
        TEST(test_options_that_make_no_sense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

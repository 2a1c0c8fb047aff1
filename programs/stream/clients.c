/* clients.c - the consumer and the producer of librdkafka. */
#include "stream/worker.h"

#include "common/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct setting {
    const char *name, *value;
} setting;

/* docs/STREAM.md says why. */
static const setting for_both[] = {{"client.id", "doppel"}, {NULL, NULL}};
static const setting for_consumer[] = {
    {"isolation.level", "read_committed"},
    {"enable.auto.commit", "false"},
    {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "earliest"},
    {"partition.assignment.strategy", "range"},
    {"session.timeout.ms", "10000"},
    {"heartbeat.interval.ms", "1000"},
    {"fetch.wait.max.ms", "20"},
    {"fetch.error.backoff.ms", "20"},
    {"queued.max.messages.kbytes", "32768"},
    {"receive.message.max.bytes", "1000000000"},
    {NULL, NULL},
};
static const setting for_producer[] = {
    {"enable.idempotence", "true"},
    {"transaction.timeout.ms", "10000"},
    {"delivery.report.only.error", "true"},
    {"message.max.bytes", "1000000000"},
    {"partitioner", "murmur2_random"},
    {"linger.ms", "2"},
    {NULL, NULL},
};

static bool set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[512];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK)
        return true;
    message("property %s: %s", name, why);
    return false;
}

static bool set_all(rd_kafka_conf_t *conf, const setting *settings) {
    bool good = true;
    for (; settings->name && good; settings++)
        good = set(conf, settings->name, settings->value);
    return good;
}

/* Failures are in the log, or returned by calls. */
static void on_client_error(rd_kafka_t *client, int code, const char *why, void *user) {
    (void)client, (void)code, (void)why, (void)user;
}

/* Ours, then those of -X. */
static rd_kafka_conf_t *configure(stream *s, bool consumer) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    const stream_settings *with = &s->settings;
    bool good = set_all(conf, for_both) && set_all(conf, consumer ? for_consumer : for_producer) &&
                set(conf, "bootstrap.servers", with->brokers);
    for (size_t i = 0; good && i < with->property_count; i++)
        if (consumer ? with->properties[i].consumer : with->properties[i].producer)
            good = set(conf, with->properties[i].name, with->properties[i].value);
    rd_kafka_conf_set_opaque(conf, s);
    rd_kafka_conf_set_log_cb(conf, on_kafka_log);
    rd_kafka_conf_set_error_cb(conf, on_client_error);
    if (good)
        return conf;
    rd_kafka_conf_destroy(conf);
    return NULL;
}

static rd_kafka_t *create(rd_kafka_type_t type, rd_kafka_conf_t *conf) {
    char why[512];
    rd_kafka_t *made = conf ? rd_kafka_new(type, conf, why, sizeof why) : NULL;
    if (conf && !made) {
        message("cannot create the %s: %s", type == RD_KAFKA_PRODUCER ? "producer" : "consumer", why);
        rd_kafka_conf_destroy(conf);
    }
    return made;
}

/* ---- the producer ---- */

/* A name that no other process has. */
static void name_uniquely(stream *s) {
    unsigned long long chance[2] = {(unsigned long long)getpid(), now_microseconds()};
    (void)!getrandom(chance, sizeof chance, 0);
    snprintf(s->transactional_id, sizeof s->transactional_id, "doppel/%s/%016llx%016llx", s->settings.group, chance[0],
             chance[1]);
}

/* Identifies a folder, on this machine or another, until a reboot: the machine's boot id, the device, the inode. */
static bool name_folder(const char *path, char *name, size_t room) {
    char boot[64] = "";
    struct stat is;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known = file && fgets(boot, sizeof boot, file) && !stat(path, &is);
    if (file)
        fclose(file);
    boot[strcspn(boot, "\n")] = 0;
    if (known)
        snprintf(name, room, "%s/%llx/%llx", boot, (unsigned long long)is.st_dev, (unsigned long long)is.st_ino);
    return known;
}

/* The generation of the consumer group decides who may read a partition and whose offsets count: a worker that was
 * replaced cannot commit, whatever its transactional id is. The id is there so that a restarted worker ends at once the
 * transaction it left open, instead of waiting for its timeout: it must be the same after a restart, where possible,
 * and must not be used by another process. It comes from --instance, or from the folder, which one process has open at
 * a time. Workers that share a store and have no names take random ones. */
static void name_transactions(stream *s) {
    const char *instance = s->settings.instance;
    char folder[128];
    if (instance)
        snprintf(s->transactional_id, sizeof s->transactional_id, "doppel/%s/%s", s->settings.group, instance);
    else if (s->job->needs.one_writer && name_folder(s->job->place, folder, sizeof folder))
        snprintf(s->transactional_id, sizeof s->transactional_id, "doppel/%s/%s", s->settings.group, folder);
    else
        name_uniquely(s);
}

static void on_delivered(rd_kafka_t *producer, const rd_kafka_message_t *m, void *user) {
    stream *s = user;
    (void)producer;
    if (m->err == RD_KAFKA_RESP_ERR__PURGE_QUEUE || m->err == RD_KAFKA_RESP_ERR__PURGE_INFLIGHT || !m->err)
        return;
    if (!s->undelivered)
        message("topic %s refuses a record of %zu bytes: %s", rd_kafka_topic_name(m->rkt), m->len,
                rd_kafka_err2str(m->err));
    s->undelivered = s->undelivered ? s->undelivered : m->err;
    note_refused(s, m);
}

/* Until the brokers answer, or it is stopped. */
static bool begin_transactions(stream *s) {
    enum { STEP = 1000, TOLD = 5 }; /* ms; one of this many tries is reported */
    for (unsigned tries = 1;; tries++) {
        rd_kafka_error_t *error = rd_kafka_init_transactions(s->producer, STEP);
        bool again = error && rd_kafka_error_is_retriable(error);
        if (error && !again)
            message("the brokers %s refuse transactions: %s", s->settings.brokers, rd_kafka_error_string(error));
        else if (error && tries % TOLD == 0)
            message("waiting for the brokers %s: %s", s->settings.brokers, rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
        if (!again || stream_stop)
            return !error;
    }
}

static bool open_topics(stream *s) {
    for (int i = 0; i < OUTPUTS; i++)
        if (s->settings.topics[i] && !(s->to[i] = rd_kafka_topic_new(s->producer, s->settings.topics[i], NULL))) {
            message("topic %s: %s", s->settings.topics[i], rd_kafka_err2str(rd_kafka_last_error()));
            return false;
        }
    return true;
}

bool producer_rename(stream *s) {
    producer_close(s);
    name_uniquely(s);
    return producer_open(s);
}

bool producer_open(stream *s) {
    rd_kafka_conf_t *conf = configure(s, false);
    if (conf && !set(conf, "transactional.id", s->transactional_id)) {
        rd_kafka_conf_destroy(conf);
        conf = NULL;
    }
    if (conf)
        rd_kafka_conf_set_dr_msg_cb(conf, on_delivered);
    s->producer = create(RD_KAFKA_PRODUCER, conf);
    return s->producer && open_topics(s) && begin_transactions(s);
}

void producer_close(stream *s) {
    for (int i = 0; i < OUTPUTS; i++) {
        if (s->to[i])
            rd_kafka_topic_destroy(s->to[i]);
        s->to[i] = NULL;
    }
    if (s->producer)
        rd_kafka_destroy(s->producer);
    s->producer = NULL;
}

/* ---- topics ---- */

static rd_kafka_resp_err_t ask_for_topic(stream *s, const char *name) {
    enum { PATIENCE = 10000 }; /* ms */
    const struct rd_kafka_metadata *found = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(s->producer, name, NULL);
    rd_kafka_resp_err_t code =
        topic ? rd_kafka_metadata(s->producer, 0, topic, &found, PATIENCE) : rd_kafka_last_error();
    if (found && found->topic_cnt)
        code = found->topics[0].err;
    if (found)
        rd_kafka_metadata_destroy(found);
    if (topic)
        rd_kafka_topic_destroy(topic);
    return code;
}

/* Whether the brokers have a topic. Where they create topics automatically, they begin when they are asked for one, and
 * do not know it until it exists: they are asked until `limit`, in microseconds. */
static bool has_topic(stream *s, const char *name, uint64_t limit) {
    enum { PAUSE = 50000 }; /* microseconds */
    rd_kafka_resp_err_t code = ask_for_topic(s, name);
    while (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && now_microseconds() < limit && !stream_stop) {
        usleep(PAUSE);
        code = ask_for_topic(s, name);
    }
    if (!code || code == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)
        return true;
    if (code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART)
        message("topic %s does not exist at %s and is not created automatically: create it first", name,
                s->settings.brokers);
    else
        message("topic %s at %s: %s", name, s->settings.brokers, rd_kafka_err2str(code));
    return false;
}

static bool has_topics(stream *s) {
    enum { MAKING = 5000000 }; /* microseconds that creating topics may take: it takes some tenths of a second */
    uint64_t limit = now_microseconds() + MAKING;
    bool good = true;
    for (size_t i = 0; i < s->settings.in_count; i++)
        good = (s->settings.in[i][0] == '^' || has_topic(s, s->settings.in[i], limit)) && good;
    for (int i = 0; i < OUTPUTS; i++)
        good = (!s->settings.topics[i] || has_topic(s, s->settings.topics[i], limit)) && good;
    return good;
}

/* ---- the consumer ---- */

static bool consumer_open(stream *s) {
    rd_kafka_conf_t *conf = configure(s, true);
    if (!conf)
        return false;
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    if (!set(conf, "group.id", s->settings.group) ||
        !set(conf, "enable.partition.eof", s->settings.until_end ? "true" : "false")) {
        rd_kafka_conf_destroy(conf);
        return false;
    }
    s->consumer = create(RD_KAFKA_CONSUMER, conf);
    if (s->consumer)
        rd_kafka_poll_set_consumer(s->consumer);
    return s->consumer;
}

static bool subscribe(stream *s) {
    rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new((int)s->settings.in_count);
    for (size_t i = 0; i < s->settings.in_count; i++)
        rd_kafka_topic_partition_list_add(topics, s->settings.in[i], RD_KAFKA_PARTITION_UA);
    rd_kafka_resp_err_t code = rd_kafka_subscribe(s->consumer, topics);
    rd_kafka_topic_partition_list_destroy(topics);
    if (code)
        message("cannot subscribe to %s: %s", s->settings.in[0], rd_kafka_err2str(code));
    return !code;
}

int clients_open(stream *s) {
    name_transactions(s);
    if (!consumer_open(s))
        return EXIT_USAGE;
    if (!producer_open(s))
        return !s->producer ? EXIT_USAGE : stream_stop ? EXIT_DONE : EXIT_STORE;
    return has_topics(s) && subscribe(s) ? EXIT_DONE : EXIT_STORE;
}

void clients_close(stream *s) {
    if (s->consumer)
        rd_kafka_consumer_close(s->consumer);
    producer_close(s);
    if (s->consumer)
        rd_kafka_destroy(s->consumer);
    s->consumer = NULL;
}

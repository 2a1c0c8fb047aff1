/* settings.c - the options of the command line: properties of librdkafka, and which of them would break the guarantees;
 * topics; numbers. */
#include "stream/settings.h"

#include "common/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- properties of librdkafka ---- */

/* Properties that doppel sets itself. */
static const struct {
    const char *name, *why;
} refused[] = {
    {"bootstrap.servers", "--brokers sets it"},
    {"metadata.broker.list", "--brokers sets it"},
    {"group.id", "--group sets it"},
    {"transactional.id",
     "it is made of --group and --instance, so that a restarted worker ends the transaction it left open"},
    {"enable.auto.commit", "offsets are committed with the output, in one transaction"},
    {"auto.commit.enable", "offsets are committed with the output, in one transaction"},
    {"auto.commit.interval.ms", "offsets are committed with the output, in one transaction"},
    {"enable.auto.offset.store", "offsets are committed with the output, in one transaction"},
    {"isolation.level", "pages of transactions that were aborted must not be read"},
    {"enable.idempotence", "without it pages could be written twice"},
    {"acks", "with fewer than all of them, pages could be lost"},
    {"request.required.acks", "with fewer than all of them, pages could be lost"},
    {"enable.partition.eof", "--until-end sets it"},
    {"delivery.report.only.error", "doppel needs its own setting"},
    {"partition.assignment.strategy",
     "all partitions are reassigned when workers come and go; incremental reassignment is not supported"},
};

/* Cuts a prefix off. */
static bool lead(const char **text, const char *prefix) {
    size_t length = strlen(prefix);
    if (strncmp(*text, prefix, length) != 0)
        return false;
    *text += length;
    return true;
}

bool property_read(property *p, const char *given, char *why, size_t room) {
    const char *name = given;
    *p = (property){.consumer = true, .producer = true};
    if (lead(&name, "consumer."))
        p->producer = false;
    else if (lead(&name, "producer."))
        p->consumer = false;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : 0;
    if (!length || length >= sizeof p->name) {
        snprintf(why, room, "a property is KEY=VALUE, e.g. security.protocol=ssl, not %.*s",
                 (int)strcspn(given, " \t:"), given); /* what follows may be a password */
        return false;
    }
    p->value = equals + 1;
    if (name[length - 1] == ' ') /* KEY = VALUE */
        p->value += strspn(p->value, " ");
    while (length && name[length - 1] == ' ')
        length--;
    memcpy(p->name, name, length);
    p->name[length] = 0;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (!strcmp(p->name, refused[i].name)) {
            snprintf(why, room, "property %s cannot be set: %s", p->name, refused[i].why);
            return false;
        }
    return true;
}

/* ---- the command line ---- */

enum {
    BATCH = 4000,         /* docs/STREAM.md has the measurements */
    WAIT = 5,             /* ms */
    MOST_WAIT = 60000,    /* ms */
    MAX_RECORD = 64 << 20 /* bytes */
};

static bool need(const cli_args *args, const char *name, const char **value) {
    *value = args_text(args, name);
    if (*value && **value)
        return true;
    message("stream needs --%s: doppel stream %s", name, args->command->arguments);
    return false;
}

static bool split_topics(stream_settings *s, const char *in) {
    char *rest = s->held = strdup(in);
    for (char *name; rest && (name = strsep(&rest, ","));) {
        if (s->in_count == MOST_TOPICS) {
            message("--in takes at most %d topics", MOST_TOPICS);
            return false;
        }
        if (*name)
            s->in[s->in_count++] = name;
    }
    if (!s->in_count)
        message("--in takes topics, separated by commas, not %s", in);
    return s->in_count;
}

/* What is written must not be read again, and each output has its own topic. */
static bool check_topics(const stream_settings *s) {
    static const char *const names[OUTPUTS] = {"unique", "duplicates", "dead-letter"};
    for (int i = 0; i < OUTPUTS; i++) {
        for (size_t k = 0; s->topics[i] && k < s->in_count; k++)
            if (!strcmp(s->topics[i], s->in[k])) {
                message("--%s %s is also a topic of --in: its records would be read again", names[i], s->in[k]);
                return false;
            }
        for (int k = 0; s->topics[i] && k < i; k++)
            if (s->topics[k] && !strcmp(s->topics[i], s->topics[k])) {
                message("--%s and --%s are both %s: each needs its own topic", names[k], names[i], s->topics[i]);
                return false;
            }
    }
    return true;
}

static bool add_property(stream_settings *s, const char *given, const char *file) {
    char why[400];
    property *grown = realloc(s->properties, (s->property_count + 1) * sizeof *grown);
    if (!grown) {
        message("no memory");
        return false;
    }
    s->properties = grown;
    if (property_read(&grown[s->property_count], given, why, sizeof why)) {
        s->property_count++;
        return true;
    }
    message("%s%s%s", file ? file : "", file ? ": " : "", why);
    return false;
}

/* The lines of a file: NAME=VALUE each; empty lines and those that begin with # are skipped. */
static bool read_property_file(stream_settings *s, const char *path) {
    FILE *file = fopen(path, "re");
    size_t room = 0, size = 0;
    if (!file || getdelim(&s->property_file, &room, 0, file) < 0) {
        message("%s: cannot read: %s", path, file && !ferror(file) ? "it is empty" : strerror(errno));
        if (file)
            fclose(file);
        return false;
    }
    fclose(file);
    bool good = true;
    for (char *rest = s->property_file, *line; good && (line = strsep(&rest, "\n"));) {
        line += strspn(line, " \t");
        size = strlen(line);
        while (size && strchr(" \t\r", line[size - 1]))
            line[--size] = 0;
        if (size && *line != '#')
            good = add_property(s, line, path);
    }
    return good;
}

static bool read_properties(stream_settings *s, const cli_args *args) {
    const char *path = args_text(args, "properties"), *given;
    if (path && !read_property_file(s, path))
        return false;
    for (size_t i = 0; (given = args_again(args, "property", i)); i++)
        if (!add_property(s, given, NULL))
            return false;
    return true;
}

static bool read_numbers(stream_settings *s, const cli_args *args) {
    uint64_t batch = args_number(args, "batch", BATCH), wait = args_number(args, "wait", WAIT);
    if (!batch || batch > MOST_BATCH) {
        message("--batch takes a number from 1 to %d", MOST_BATCH);
        return false;
    }
    if (wait > MOST_WAIT) {
        message("--wait takes milliseconds up to %d", MOST_WAIT);
        return false;
    }
    s->batch = (size_t)batch;
    s->wait = (unsigned)wait;
    s->max_record = (size_t)args_number(args, "max-record", MAX_RECORD);
    return true;
}

bool stream_settings_read(stream_settings *s, const cli_args *args) {
    const char *in;
    *s = (stream_settings){.group = args_text(args, "group"),
                           .instance = args_text(args, "instance"),
                           .verdict_key = args_text(args, "verdict-key"),
                           .listen = args_text(args, "listen"),
                           .until_end = args_flag(args, "until-end"),
                           .strict = args_flag(args, "strict"),
                           .json = args_flag(args, "json")};
    s->group = s->group ? s->group : "doppel";
    s->verdict_key = s->verdict_key ? s->verdict_key : "verdict";
    s->topics[TO_DEAD_LETTER] = args_text(args, "dead-letter");
    if (!need(args, "brokers", &s->brokers) || !need(args, "in", &in) || !need(args, "unique", &s->topics[TO_UNIQUE]) ||
        !need(args, "duplicates", &s->topics[TO_DUPLICATES]))
        return false;
    return split_topics(s, in) && check_topics(s) && read_properties(s, args) && read_numbers(s, args);
}

void stream_settings_free(stream_settings *s) {
    free(s->properties);
    free(s->property_file);
    free(s->held);
    *s = (stream_settings){0};
}

int stream_check(const cli_args *args) {
    stream_settings s;
    bool good = stream_settings_read(&s, args);
    stream_settings_free(&s);
    return good ? EXIT_DONE : EXIT_USAGE;
}

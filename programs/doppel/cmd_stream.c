/* cmd_stream.c - doppel stream: the Kafka worker over an index. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"
#include "engine/verdicts.h"
#include "stream/stream.h"

#include <stdlib.h>

const cli_option stream_options[] = {
    {"brokers", 'b', OPTION_NAMES, "HOST:PORT", "Kafka brokers, separated by commas"},
    {"in", 0, OPTION_NAMES, "TOPICS", "topics of pages, separated by commas; ^PATTERN: all whose names match"},
    {"unique", 'u', OPTION_TEXT, "TOPIC", "the topic for new pages, unchanged, and for tombstones"},
    {"duplicates", 0, OPTION_TEXT, "TOPIC", "the topic for duplicates, with their verdict"},
    {"dead-letter", 0, OPTION_TEXT, "TOPIC",
     "the topic for records that are not pages, or that hit a damaged part of the index: unchanged, with the reason in "
     "a header (default: the former are reported on stderr and left out, the latter end the worker)"},
    INDEX_OPTION,
    {"group", 'g', OPTION_TEXT, "NAME", "the consumer group of the workers that share the topics (default doppel)"},
    {"instance", 0, OPTION_TEXT, "NAME",
     "the name of this worker in its group, the same at each start, so that it can end at once a transaction it left "
     "open (default with --index: derived from the folder; with --store: none, and ending it takes 10 s)"},
    {"batch", 0, OPTION_COUNT, "N", "records per transaction, at most (default 4000)"},
    {"wait", 0, OPTION_COUNT, "MS", "how long a record waits for others when the worker is idle (default 5)"},
    {"verdict-key", 0, OPTION_TEXT, "KEY", "the member of a duplicate that has its verdict (default verdict)"},
    {"listen", 'l', OPTION_TEXT, "HOST:PORT", "serve /metrics, /healthz and /readyz there (default: not at all)"},
    {"until-end", 0, OPTION_FLAG, NULL, "stop at the offsets where the topics ended when the worker started"},
    {"property", 'X', OPTION_LIST, "KEY=VALUE",
     "a property of librdkafka, e.g. security.protocol=ssl; of one client alone: consumer.KEY or producer.KEY; may be "
     "given several times"},
    {"properties", 0, OPTION_FILE, "FILE",
     "more properties, one KEY=VALUE per line; use it for passwords, as all users of the machine can read a command "
     "line"},
    {"json", 0, OPTION_FLAG, NULL, "print a summary at the end, a JSON object"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    DUPLICATE_OPTION,
    DECIDE_OPTIONS,
    WRITE_OPTIONS,
    MAKE_OPTIONS,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static int run(engine_command *e, const cli_args *args) {
    name_list fields;
    if (!split_names(&fields, doppel_engine_get_options(e->engine)->fields)) {
        message("no memory");
        return EXIT_STORE;
    }
    stream_job job = {
        .args = args, .place = e->path, .needs = e->place.needs, .input = reading_options(args), .engine = e->engine};
    job.input.extra_keys = fields.names;
    job.input.extra_count = fields.count;
    int code = stream_run(&job);
    free(fields.text);
    return finish_stdout(code);
}

int cmd_stream(const cli_args *args) {
    engine_command e = {0};
    int code = stream_check(args);
    if (code == EXIT_DONE)
        code = engine_open(&e, args, ENGINE_MAKE);
    if (code == EXIT_DONE)
        code = run(&e, args);
    return engine_close(&e, code);
}

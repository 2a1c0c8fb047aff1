/* cmd_stream.c - doppel stream: the Kafka worker over an index. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"
#include "engine/verdicts.h"
#include "stream/stream.h"

#include <stdlib.h>

const cli_option stream_options[] = {
    {"brokers", 'b', OPTION_NAMES, "HOST:PORT", "brokers of Kafka, separated by commas"},
    {"in", 0, OPTION_NAMES, "TOPICS", "topics of pages, separated by commas; ^PATTERN: all whose names match"},
    {"unique", 'u', OPTION_TEXT, "TOPIC", "where pages go that are new, as they stand, and tombstones"},
    {"duplicates", 0, OPTION_TEXT, "TOPIC", "where pages go that are not, with their verdict"},
    {"dead-letter", 0, OPTION_TEXT, "TOPIC",
     "where records go that are no pages, or that meet a damaged place of the index, as they stand, with the reason in "
     "a "
     "header (default: the former are named here and left out, the latter end the worker)"},
    INDEX_OPTION,
    {"group", 'g', OPTION_TEXT, "NAME", "the group of workers that share the topics (default doppel)"},
    {"instance", 0, OPTION_TEXT, "NAME",
     "the name of this worker in its group, the same at each start, so that it can take over at once what it left open "
     "(default with --index: by the folder; with --store: none, and that takes 10 s)"},
    {"batch", 0, OPTION_COUNT, "N", "records of a transaction, at most (default 4000)"},
    {"wait", 0, OPTION_COUNT, "MS", "how long a record waits for others when nothing else is to be done (default 5)"},
    {"verdict-key", 0, OPTION_TEXT, "KEY", "the member of a duplicate that has its verdict (default verdict)"},
    {"listen", 'l', OPTION_TEXT, "HOST:PORT", "serve /metrics, /healthz and /readyz there (default: not at all)"},
    {"until-end", 0, OPTION_FLAG, NULL, "stop where the topics ended at the start"},
    {"property", 'X', OPTION_LIST, "KEY=VALUE",
     "a property of librdkafka, e.g. security.protocol=ssl; of one client alone: consumer.KEY or producer.KEY; may be "
     "given several times"},
    {"properties", 0, OPTION_FILE, "FILE",
     "more of them, KEY=VALUE a line; a place for passwords, which all users of the machine can read on a command "
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

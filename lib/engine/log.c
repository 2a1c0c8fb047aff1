/* log.c - lines for the operator: "[DeduplicationService] CHECK_START id="a" ..." or, with log_json, one object per
 * line. Values are JSON strings and numbers in both, so that no document can forge a line. */
#include "engine/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const levels[] = {"error", "warning", "info"};

bool dp_engine_logs(const doppel_engine *engine, doppel_log_level level) {
    return engine->options.log && level <= engine->options.log_level;
}

/* A line being built; `json` writes it. */
typedef struct line {
    const doppel_engine *engine;
    dp_buffer text;
    dp_json_writer json;
} line;

static void begin_line(line *l, const doppel_engine *engine, doppel_log_level level, const char *what,
                       const char *step) {
    *l = (line){.engine = engine, .json.buffer = &l->text};
    if (engine->options.log_json) {
        dp_json_text(&l->json, "{\"service\":\"DeduplicationService\",\"level\":\"");
        dp_json_text(&l->json, levels[level]);
        dp_json_text(&l->json, "\",\"event\":\"");
    } else {
        dp_json_text(&l->json, "[DeduplicationService] ");
    }
    dp_json_text(&l->json, what);
    dp_json_text(&l->json, step);
    if (engine->options.log_json)
        dp_json_text(&l->json, "\"");
}

static void add_name(line *l, const char *name) {
    if (l->engine->options.log_json) {
        dp_json_key(&l->json, name);
        return;
    }
    dp_json_text(&l->json, " ");
    dp_json_text(&l->json, name);
    dp_json_text(&l->json, "=");
}

static void add_string(line *l, const char *name, const char *data, size_t length) {
    add_name(l, name);
    dp_json_string(&l->json, (doppel_slice){data, length});
}

/* Emits the line, unless out of memory. */
static void end_line(line *l, doppel_log_level level) {
    if (l->engine->options.log_json)
        dp_json_text(&l->json, "}");
    dp_json_put(&l->json, "", 1);
    if (!l->json.failed)
        l->engine->options.log(level, l->text.data, l->engine->options.user);
    dp_buffer_free(&l->text);
}

void dp_log_begin(doppel_engine *engine, const char *what, const doppel_item *item) {
    if (!dp_engine_logs(engine, DOPPEL_LOG_INFO))
        return;
    const doppel_document *d = &item->document;
    line l;
    begin_line(&l, engine, DOPPEL_LOG_INFO, what, "_START");
    add_string(&l, "id", d->id.length ? d->id.data : NULL, d->id.length);
    add_string(&l, "url", d->url.data, d->url.length);
    add_string(&l, "title", d->title.data, d->title.length);
    end_line(&l, DOPPEL_LOG_INFO);
}

static void log_verdict(doppel_engine *engine, const char *what, const doppel_verdict *verdict, double began) {
    line l;
    begin_line(&l, engine, DOPPEL_LOG_INFO, what, "_SUCCESS");
    add_string(&l, "id", verdict->id.data, verdict->id.length);
    add_name(&l, "isDuplicate");
    dp_json_bool(&l.json, verdict->is_duplicate);
    add_name(&l, "confidence");
    dp_json_share(&l.json, verdict->confidence);
    const doppel_slice reason = doppel_slice_of(doppel_reason_name(verdict->reason));
    add_string(&l, "reason", reason.data, reason.length);
    add_string(&l, "originalId", verdict->original_id.data, verdict->original_id.length);
    if (began > 0) {
        add_name(&l, "microseconds");
        dp_json_count(&l.json, (uint64_t)((dp_seconds() - began) * 1e6));
    }
    end_line(&l, DOPPEL_LOG_INFO);
}

static void log_error(doppel_engine *engine, const char *what, const doppel_error *error) {
    if (!dp_engine_logs(engine, DOPPEL_LOG_ERROR))
        return;
    const char *message = error->message[0] ? error->message : doppel_status_name(error->code);
    line l;
    begin_line(&l, engine, DOPPEL_LOG_ERROR, what, "_ERROR");
    add_string(&l, "message", message, strlen(message));
    end_line(&l, DOPPEL_LOG_ERROR);
}

doppel_status dp_log_end(doppel_engine *engine, const char *what, doppel_status status, const doppel_error *why,
                         const doppel_verdict *verdict, double began, doppel_error *error) {
    if (status != DOPPEL_OK)
        log_error(engine, what, why);
    else if (dp_engine_logs(engine, DOPPEL_LOG_INFO))
        log_verdict(engine, what, verdict, began);
    if (status != DOPPEL_OK && error)
        *error = *why;
    return status;
}

void dp_log_line(doppel_engine *engine, doppel_log_level level, const char *what, const char *format, ...) {
    char message[512];
    va_list arguments;
    if (!dp_engine_logs(engine, level))
        return;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    line l;
    begin_line(&l, engine, level, what, "");
    add_string(&l, "message", message, strlen(message));
    end_line(&l, level);
}

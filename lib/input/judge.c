/* judge.c - whether inputs could be read, all in all, and what to say when they could not. */
#include "input/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Records whose fields are listed. */
enum { LISTED = 10 };

/* Documents that wait for a judgement hold no more memory than that. */
#define MOST_WAITING ((size_t)64 << 20)

/* ---- hints ---- */

static dp_hint *hint_of(dp_tally *tally) {
    if (!tally->hint)
        tally->hint = calloc(1, sizeof *tally->hint);
    return tally->hint;
}

void dp_tally_bad(dp_tally *tally, const doppel_error *why) {
    dp_hint *hint = hint_of(tally);
    tally->bad++;
    if (hint && hint->first.code == DOPPEL_OK)
        hint->first = *why;
}

/* Behind a string whose opening quote stands at p. */
static const char *pass_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end;
}

/* Behind a value. */
static const char *pass_value(const char *p, const char *end) {
    for (size_t depth = 0; p < end;) {
        if (*p == '"') {
            p = pass_string(p, end);
        } else {
            depth += *p == '{' || *p == '[';
            if (*p == '}' || *p == ']') {
                if (!depth)
                    return p;
                depth--;
            }
            if (*p == ',' && !depth)
                return p;
            p++;
        }
        if (!depth && p < end && (*p == ',' || *p == '}'))
            return p;
    }
    return end;
}

static bool is_listed(const char *names, doppel_slice name) {
    for (const char *p = names; *p;) {
        size_t length = strcspn(p, ",");
        if (length == name.length && !memcmp(p, name.data, length))
            return true;
        p += length;
        p += strspn(p, ", ");
    }
    return false;
}

static void list_field(dp_hint *hint, doppel_slice name) {
    size_t used = strlen(hint->fields), room = sizeof hint->fields - used;
    if (!name.length || is_listed(hint->fields, name) || name.length + 3 > room)
        return;
    snprintf(hint->fields + used, room, "%s%.*s", used ? ", " : "", (int)name.length, name.data);
}

/* A member of the record: its key, still escaped, and its value. */
static void note_member(dp_hint *hint, doppel_slice key, doppel_slice value) {
    list_field(hint, key);
    if (value.length > 2 && *value.data == '"' && value.length > hint->longest && key.length < sizeof hint->key) {
        hint->longest = value.length;
        snprintf(hint->key, sizeof hint->key, "%.*s", (int)key.length, key.data);
    }
}

void dp_tally_lacks_text(dp_tally *tally, const char *record, size_t length) {
    dp_hint *hint = hint_of(tally);
    const char *p = record, *end = p + length;
    if (!hint)
        return;
    hint->lacking++;
    if (hint->listed++ >= LISTED)
        return;
    while (p < end && (p = memchr(p, '"', (size_t)(end - p)))) {
        const char *behind = pass_string(p, end), *value = behind;
        while (value < end && strchr(" \t\r\n:", *value))
            value++;
        const char *stop = pass_value(value, end);
        note_member(hint, (doppel_slice){p + 1, (size_t)(behind - p) - 2},
                    (doppel_slice){value, (size_t)(stop - value)});
        p = stop;
    }
}

static void free_hint(dp_tally *tally) {
    free(tally->hint);
    tally->hint = NULL;
}

/* Adds what a hint says to that of a tally. */
static void add_hint(dp_tally *to, const dp_hint *from) {
    dp_hint *hint = hint_of(to);
    if (!hint)
        return;
    if (hint->first.code == DOPPEL_OK)
        hint->first = from->first;
    hint->lacking += from->lacking;
    if (from->longest > hint->longest) {
        hint->longest = from->longest;
        memcpy(hint->key, from->key, sizeof hint->key);
    }
    for (const char *p = from->fields; hint->listed < LISTED && *p;) {
        size_t length = strcspn(p, ",");
        list_field(hint, (doppel_slice){p, length});
        p += length;
        p += strspn(p, ", ");
    }
    hint->listed += from->listed;
}

/* ---- the message ---- */

static bool is_refused(const dp_tally *tally) {
    return tally->bad && tally->bad > tally->documents;
}

static const char *key_of(const char *given, const char *usual) {
    return given ? given : usual;
}

/* Whether a field is a page, going by its name. */
static bool names_page(const char *key) {
    return strcasestr(key, "html") != NULL;
}

/* Most of the bad records lack a text. */
static int say_lacking(const dp_judge *judge, const dp_tally *tally, char *to, size_t room) {
    const doppel_input_options *o = judge->options;
    const dp_hint *hint = tally->hint;
    const char *text = key_of(o->text_key, "text"), *html = key_of(o->html_key, "html");
    const char *prefix = o->option_prefix ? o->option_prefix : "";
    uint64_t lacking = hint->lacking < tally->bad ? hint->lacking : tally->bad;
    int used = tally->documents ? snprintf(to, room, "%llu of %llu records have", (unsigned long long)lacking,
                                           (unsigned long long)(tally->documents + tally->bad))
                                : snprintf(to, room, "no record has");
    used += snprintf(to + used, room - (size_t)used, "%s field \"%.60s\"", tally->documents ? " no" : " a", text);
    if (strcmp(text, html) != 0)
        used += snprintf(to + used, room - (size_t)used, " or \"%.60s\"", html);
    if (*hint->fields)
        used += snprintf(to + used, room - (size_t)used, "; %s: %s",
                         tally->documents ? "they have" : "the records have", hint->fields);
    if (*hint->key)
        used += snprintf(to + used, room - (size_t)used, ". Use --%s%s-key %s", prefix,
                         names_page(hint->key) ? "html" : "text", hint->key);
    return used;
}

static int say_bad(const dp_tally *tally, char *to, size_t room) {
    const doppel_error *first = &tally->hint->first;
    int used = tally->documents ? snprintf(to, room, "%llu of %llu records are bad", (unsigned long long)tally->bad,
                                           (unsigned long long)(tally->documents + tally->bad))
                                : snprintf(to, room, "no document could be read");
    if (first->line)
        used += snprintf(to + used, room - (size_t)used, "; the first bad one, line %llu: %.200s",
                         (unsigned long long)first->line, first->message);
    else
        used += snprintf(to + used, room - (size_t)used, ": %.200s", first->message);
    return used;
}

static void explain(dp_judge *judge, const dp_tally *tally) {
    char text[sizeof judge->error.message];
    const dp_hint *hint = tally->hint;
    size_t room = sizeof text;
    if (!hint) {
        dp_no_memory(&judge->error);
        return;
    }
    int used = hint->lacking && 2 * hint->lacking >= tally->bad ? say_lacking(judge, tally, text, room)
                                                                : say_bad(tally, text, room);
    snprintf(text + used, room - (size_t)used, "; --allow-bad goes on without them");
    dp_fail_at(&judge->error, DOPPEL_ERROR_INPUT, hint->first.file, 0, "%s", text);
}

/* ---- judging ---- */

static void end_file(dp_judge *judge) {
    if (judge->file.records && is_refused(&judge->file) && !judge->refused++)
        explain(judge, &judge->file);
    free_hint(&judge->file);
    judge->file = (dp_tally){0};
}

static void add_tally(dp_tally *to, const dp_tally *from) {
    to->documents += from->documents;
    to->bad += from->bad;
    to->records = to->records || from->records;
    if (from->hint)
        add_hint(to, from->hint);
}

/* Takes of the first records of a unit those that are still among the first of all. */
static void take_first(dp_judge *judge, dp_first *first) {
    for (size_t i = 0; i < first->count; i++) {
        if (judge->first_documents + judge->first_bad >= judge->options->judge_first)
            break;
        if (first->bad[i / 64] >> i % 64 & 1)
            judge->first_bad++;
        else
            judge->first_documents++;
    }
    first->count = 0;
}

void dp_judge_take(dp_judge *judge, dp_tally *tallies, size_t *count, dp_first *first) {
    take_first(judge, first);
    for (size_t i = 0; i < *count; i++) {
        dp_tally *tally = &tallies[i];
        if (tally->file != judge->file.file)
            end_file(judge);
        judge->file.file = tally->file;
        add_tally(&judge->file, tally);
        add_tally(&judge->all, tally);
        free_hint(tally);
        tally->documents = tally->bad = 0;
    }
    if (*count > 1) {
        tallies[0] = tallies[*count - 1];
        *count = 1;
    }
}

bool dp_judge_ready(const dp_judge *judge, size_t bytes) {
    return judge->first_documents + judge->first_bad >= judge->options->judge_first || bytes > MOST_WAITING;
}

doppel_status dp_judge_first(dp_judge *judge) {
    const dp_tally first = {.documents = judge->first_documents, .bad = judge->first_bad, .hint = judge->all.hint};
    judge->first = true;
    if (!judge->options->refuse_bad || !is_refused(&first))
        return DOPPEL_OK;
    explain(judge, &first);
    judge->against = true;
    return judge->error.code;
}

doppel_status dp_judge_end(dp_judge *judge) {
    end_file(judge);
    if (!judge->options->refuse_bad)
        return DOPPEL_OK;
    if (!judge->refused && is_refused(&judge->all)) {
        judge->refused = 1;
        explain(judge, &judge->all);
    }
    judge->against = judge->refused;
    if (!judge->refused)
        return DOPPEL_OK;
    if (judge->refused > 1) {
        size_t used = strlen(judge->error.message);
        snprintf(judge->error.message + used, sizeof judge->error.message - used, " (and %llu more file%s like it)",
                 (unsigned long long)(judge->refused - 1), judge->refused == 2 ? "" : "s");
    }
    return judge->error.code;
}

void dp_judge_free(dp_judge *judge) {
    free_hint(&judge->file);
    free_hint(&judge->all);
}

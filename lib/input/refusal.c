/* refusal.c - whether inputs are refused for their bad records, and what to say then. */
#include "input/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Records whose fields are listed. */
enum { LISTED = 10 };

/* Documents that wait for a judgement hold no more memory than that. */
#define MOST_WAITING ((size_t)64 << 20)

/* ---- hints ---- */

static dp_hint *hint_of(dp_file_counts *counts) {
    if (!counts->hint)
        counts->hint = calloc(1, sizeof *counts->hint);
    return counts->hint;
}

void dp_counts_bad(dp_file_counts *counts, const doppel_error *why) {
    dp_hint *hint = hint_of(counts);
    counts->bad++;
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

void dp_counts_lacks_text(dp_file_counts *counts, const char *record, size_t length) {
    dp_hint *hint = hint_of(counts);
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

static void free_hint(dp_file_counts *counts) {
    free(counts->hint);
    counts->hint = NULL;
}

/* Adds what a hint says to that of a counts. */
static void add_hint(dp_file_counts *to, const dp_hint *from) {
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

static bool is_refused(const dp_file_counts *counts) {
    return counts->bad && counts->bad > counts->documents;
}

static const char *key_of(const char *given, const char *usual) {
    return given ? given : usual;
}

/* Whether a field is a page, going by its name. */
static bool names_page(const char *key) {
    return strcasestr(key, "html") != NULL;
}

/* Most of the bad records lack a text. */
static int say_lacking(const dp_refusal *refusal, const dp_file_counts *counts, char *to, size_t room) {
    const doppel_input_options *o = refusal->options;
    const dp_hint *hint = counts->hint;
    const char *text = key_of(o->text_key, "text"), *html = key_of(o->html_key, "html");
    const char *prefix = o->option_prefix ? o->option_prefix : "";
    uint64_t lacking = hint->lacking < counts->bad ? hint->lacking : counts->bad;
    int used = counts->documents ? snprintf(to, room, "%llu of %llu records have", (unsigned long long)lacking,
                                            (unsigned long long)(counts->documents + counts->bad))
                                 : snprintf(to, room, "no record has");
    used += snprintf(to + used, room - (size_t)used, "%s field \"%.60s\"", counts->documents ? " no" : " a", text);
    if (strcmp(text, html) != 0)
        used += snprintf(to + used, room - (size_t)used, " or \"%.60s\"", html);
    if (*hint->fields)
        used += snprintf(to + used, room - (size_t)used, "; %s: %s",
                         counts->documents ? "they have" : "the records have", hint->fields);
    if (*hint->key)
        used += snprintf(to + used, room - (size_t)used, ". Use --%s%s-key %s", prefix,
                         names_page(hint->key) ? "html" : "text", hint->key);
    return used;
}

static int say_bad(const dp_file_counts *counts, char *to, size_t room) {
    const doppel_error *first = &counts->hint->first;
    int used = counts->documents ? snprintf(to, room, "%llu of %llu records are bad", (unsigned long long)counts->bad,
                                            (unsigned long long)(counts->documents + counts->bad))
                                 : snprintf(to, room, "no document could be read");
    if (first->line)
        used += snprintf(to + used, room - (size_t)used, "; the first bad one, line %llu: %.200s",
                         (unsigned long long)first->line, first->message);
    else
        used += snprintf(to + used, room - (size_t)used, ": %.200s", first->message);
    return used;
}

static void explain(dp_refusal *refusal, const dp_file_counts *counts) {
    char text[sizeof refusal->error.message];
    const dp_hint *hint = counts->hint;
    size_t room = sizeof text;
    if (!hint) {
        dp_no_memory(&refusal->error);
        return;
    }
    int used = hint->lacking && 2 * hint->lacking >= counts->bad ? say_lacking(refusal, counts, text, room)
                                                                 : say_bad(counts, text, room);
    snprintf(text + used, room - (size_t)used, "; --allow-bad goes on without them");
    dp_fail_at(&refusal->error, DOPPEL_ERROR_INPUT, hint->first.file, 0, "%s", text);
}

/* ---- judging ---- */

static void end_file(dp_refusal *refusal) {
    if (refusal->file.records && is_refused(&refusal->file) && !refusal->files++)
        explain(refusal, &refusal->file);
    free_hint(&refusal->file);
    refusal->file = (dp_file_counts){0};
}

static void add_counts(dp_file_counts *to, const dp_file_counts *from) {
    to->documents += from->documents;
    to->bad += from->bad;
    to->records = to->records || from->records;
    if (from->hint)
        add_hint(to, from->hint);
}

/* Takes of the first records of a unit those that are still among the first of all. */
static void take_first(dp_refusal *refusal, dp_first *first) {
    for (size_t i = 0; i < first->count; i++) {
        if (refusal->first_documents + refusal->first_bad >= refusal->options->judge_first)
            break;
        if (first->bad[i / 64] >> i % 64 & 1)
            refusal->first_bad++;
        else
            refusal->first_documents++;
    }
    first->count = 0;
}

void dp_refusal_take(dp_refusal *refusal, dp_file_counts *files, size_t *count, dp_first *first) {
    take_first(refusal, first);
    for (size_t i = 0; i < *count; i++) {
        dp_file_counts *counts = &files[i];
        if (counts->file != refusal->file.file)
            end_file(refusal);
        refusal->file.file = counts->file;
        add_counts(&refusal->file, counts);
        add_counts(&refusal->all, counts);
        free_hint(counts);
        counts->documents = counts->bad = 0;
    }
    if (*count > 1) {
        files[0] = files[*count - 1];
        *count = 1;
    }
}

bool dp_refusal_ready(const dp_refusal *refusal, size_t bytes) {
    return refusal->first_documents + refusal->first_bad >= refusal->options->judge_first || bytes > MOST_WAITING;
}

doppel_status dp_refusal_first(dp_refusal *refusal) {
    const dp_file_counts first = {
        .documents = refusal->first_documents, .bad = refusal->first_bad, .hint = refusal->all.hint};
    refusal->first = true;
    if (!refusal->options->refuse_bad || !is_refused(&first))
        return DOPPEL_OK;
    explain(refusal, &first);
    refusal->refused = true;
    return refusal->error.code;
}

doppel_status dp_refusal_end(dp_refusal *refusal) {
    end_file(refusal);
    if (!refusal->options->refuse_bad)
        return DOPPEL_OK;
    if (!refusal->files && is_refused(&refusal->all)) {
        refusal->files = 1;
        explain(refusal, &refusal->all);
    }
    refusal->refused = refusal->files;
    if (!refusal->files)
        return DOPPEL_OK;
    if (refusal->files > 1) {
        size_t used = strlen(refusal->error.message);
        snprintf(refusal->error.message + used, sizeof refusal->error.message - used, " (and %llu more file%s like it)",
                 (unsigned long long)(refusal->files - 1), refusal->files == 2 ? "" : "s");
    }
    return refusal->error.code;
}

void dp_refusal_free(dp_refusal *refusal) {
    free_hint(&refusal->file);
    free_hint(&refusal->all);
}

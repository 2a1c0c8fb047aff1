/* refusal.c - whether inputs are refused for their bad records, and the message that says why. */
#include "input/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* Records whose fields are listed. */
enum { LISTED = 10 };

/* ---- hints ---- */

static dp_hint *hint_of(dp_file_counts *counts) {
    if (!counts->hint)
        counts->hint = calloc(1, sizeof *counts->hint);
    return counts->hint;
}

void dp_counts_bad(dp_file_counts *counts, const doppel_error *why) {
    dp_hint *hint = hint_of(counts);
    counts->bad++;
    if (hint && hint->first.code == DOPPEL_OK) {
        hint->first = *why;
        hint->record = counts->record;
    }
}

void dp_counts_bad_file(dp_file_counts *counts, const char *file, const char *why, bool left_out) {
    doppel_error error = {0};
    dp_fail_at(&error, DOPPEL_ERROR_IO, file, 0, "%s", why);
    dp_counts_bad(counts, &error);
    if (counts->hint) {
        counts->hint->whole_file = true;
        counts->hint->left_out = counts->hint->left_out || left_out;
    }
}

/* After a string whose opening quote stands at p. */
static const char *pass_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : end;
}

/* After a value. */
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

/* Objects within each other that are searched for a text. */
enum { DEPTH = 4 };

static void note_members(dp_hint *hint, doppel_slice object, const char *path, unsigned depth);

/* A member of the record, or of an object in it, to which `path` leads: its key, still escaped, and its value. The
 * longest string is proposed as the text. */
static void note_member(dp_hint *hint, const char *path, unsigned depth, doppel_slice key, doppel_slice value) {
    char whole[sizeof hint->key];
    const char *dot = *path ? "." : "";
    if (!depth)
        list_field(hint, key);
    /* A comma would separate two keys. */
    if (!key.length || strlen(path) + strlen(dot) + key.length >= sizeof whole ||
        (depth && memchr(key.data, ',', key.length)))
        return;
    snprintf(whole, sizeof whole, "%s%s%.*s", path, dot, (int)key.length, key.data);
    if (value.length > 2 && *value.data == '"' && value.length > hint->longest) {
        hint->longest = value.length;
        memcpy(hint->key, whole, sizeof whole);
    }
    /* A path is cut at its dots, so none leads through a key that has one. */
    if (value.length > 2 && *value.data == '{' && depth < DEPTH && !memchr(key.data, '.', key.length) &&
        !memchr(key.data, ',', key.length))
        note_members(hint, value, whole, depth + 1);
}

static void note_members(dp_hint *hint, doppel_slice object, const char *path, unsigned depth) {
    const char *p = object.data + 1, *end = object.data + object.length;
    while (p < end && (p = memchr(p, '"', (size_t)(end - p)))) {
        const char *after = pass_string(p, end), *value = after;
        while (value < end && strchr(" \t\r\n:", *value))
            value++;
        const char *stop = pass_value(value, end);
        note_member(hint, path, depth, (doppel_slice){p + 1, (size_t)(after - p) - 2},
                    (doppel_slice){value, (size_t)(stop - value)});
        p = stop;
    }
}

void dp_counts_lacks_text(dp_file_counts *counts, const char *record, size_t length) {
    dp_hint *hint = hint_of(counts);
    if (!hint)
        return;
    hint->lacking++;
    if (hint->listed++ < LISTED && length)
        note_members(hint, (doppel_slice){record, length}, "", 0);
}

size_t dp_longest_string(const char *record, size_t length) {
    dp_hint hint = {.longest = 0};
    note_members(&hint, (doppel_slice){record, length}, "", 0);
    return hint.longest;
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
    if (hint->first.code == DOPPEL_OK) {
        hint->first = from->first;
        hint->record = from->record;
    }
    hint->lacking += from->lacking;
    hint->whole_file = hint->whole_file || from->whole_file;
    hint->left_out = hint->left_out || from->left_out;
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

/* Appends to a message, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void say(doppel_error *error, const char *format, ...) {
    size_t used = strlen(error->message);
    va_list args;
    va_start(args, format);
    vsnprintf(error->message + used, sizeof error->message - used, format, args);
    va_end(args);
}

/* "N of ALL records", or what is to be said where none was good. */
static void say_share(doppel_error *error, const dp_file_counts *counts, uint64_t count, const char *what,
                      const char *none) {
    if (counts->documents)
        say(error, "%llu of %llu records %s", (unsigned long long)count,
            (unsigned long long)(counts->documents + counts->bad), what);
    else
        say(error, "%s", none);
}

/* Most of the bad records lack a text. */
static void say_lacking(const doppel_input_options *o, const dp_file_counts *counts, doppel_error *error) {
    const dp_hint *hint = counts->hint;
    const char *text = key_of(o->text_key, "text"), *html = key_of(o->html_key, "html");
    say_share(error, counts, hint->lacking < counts->bad ? hint->lacking : counts->bad, "have no", "no record has a");
    say(error, " field \"%.60s\"", text);
    if (strcmp(text, html) != 0)
        say(error, " or \"%.60s\"", html);
    if (*hint->fields)
        say(error, "; %s: %s", counts->documents ? "they have" : "the records have", hint->fields);
    if (*hint->key)
        say(error, ". Use --%s%s-key %s", key_of(o->option_prefix, ""), names_page(hint->key) ? "html" : "text",
            hint->key);
}

/* Plain files, each a document; the error names the first. */
static void say_bad_files(const dp_file_counts *counts, doppel_error *error) {
    say(error, "this file and %llu more, of %llu, cannot be read: %.200s", (unsigned long long)(counts->bad - 1),
        (unsigned long long)(counts->documents + counts->bad), counts->hint->first.message);
}

static void say_bad(const dp_file_counts *counts, doppel_error *error) {
    const dp_hint *hint = counts->hint;
    const doppel_error *first = &hint->first;
    say_share(error, counts, counts->bad, "are bad", "no document could be read");
    if (first->line)
        say(error, "; the first bad one, %s %llu: %.200s", hint->record ? hint->record : "line",
            (unsigned long long)first->line, first->message);
    else
        say(error, ": %.200s", first->message);
}

static void explain(dp_refusal *refusal, const dp_file_counts *counts) {
    const dp_hint *hint = counts->hint;
    if (!hint) {
        dp_no_memory(&refusal->error);
        return;
    }
    dp_fail_at(&refusal->error, DOPPEL_ERROR_INPUT, hint->first.file, 0, "%s", "");
    if (hint->whole_file || (!hint->first.line && !counts->documents && counts->bad == 1)) {
        refusal->left_out = hint->left_out;
        say(&refusal->error, "%s", hint->first.message);
        return;
    }
    if (!counts->records)
        say_bad_files(counts, &refusal->error);
    else if (hint->lacking && 2 * hint->lacking >= counts->bad)
        say_lacking(refusal->options, counts, &refusal->error);
    else
        say_bad(counts, &refusal->error);
    say(&refusal->error, "; --allow-bad continues without them");
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

void dp_refusal_take(dp_refusal *refusal, dp_unit *unit) {
    take_first(refusal, &unit->first);
    for (size_t i = 0; i < unit->file_count; i++) {
        dp_file_counts *counts = &unit->file_counts[i];
        if (counts->file != refusal->file.file)
            end_file(refusal);
        refusal->file.file = counts->file;
        add_counts(&refusal->file, counts);
        add_counts(&refusal->all, counts);
        free_hint(counts);
        counts->documents = counts->bad = 0;
    }
    if (unit->file_count > 1) {
        unit->file_counts[0] = unit->file_counts[unit->file_count - 1];
        unit->file_count = 1;
    }
}

/* Refuses the first records alone, if they are bad. */
static void check_first(dp_refusal *refusal) {
    const dp_file_counts first = {.documents = refusal->first_documents,
                                  .bad = refusal->first_bad,
                                  .records = refusal->all.records,
                                  .hint = refusal->all.hint};
    refusal->refused = is_refused(&first);
    if (refusal->refused)
        explain(refusal, &first);
}

/* Refuses a file, or all of them together. */
static void check_all(dp_refusal *refusal) {
    if (!refusal->files && is_refused(&refusal->all)) {
        refusal->files = 1;
        explain(refusal, &refusal->all);
    }
    refusal->refused = refusal->files;
    if (refusal->files > 1)
        say(&refusal->error, " (and %llu more file%s like it)", (unsigned long long)(refusal->files - 1),
            refusal->files == 2 ? "" : "s");
    if (refusal->refused && refusal->left_out && refusal->all.documents)
        say(&refusal->error, "; --allow-bad continues without them");
}

doppel_status dp_refusal_check(dp_refusal *refusal, bool all) {
    refusal->first = true;
    if (all)
        end_file(refusal);
    if (refusal->options->refuse_bad)
        (all ? check_all : check_first)(refusal);
    return refusal->refused ? refusal->error.code : DOPPEL_OK;
}

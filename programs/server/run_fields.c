/* run_fields.c - the fields of the first records of a file, and the length of their values, from which a client can
 * choose if no field is named `text`. Only the first 256 KiB are read, and nothing is refused: what cannot be read as
 * JSON or as a table has no fields. */
#include "server/runs.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BEGINNING = 1 << 18, /* bytes that are read */
    LEAST_MEAN = 10      /* bytes of the values of a field that may have texts, on average */
};

/* ---- the list ---- */

/* The field of a name, which is added if it is new; NULL: there are too many, or its name is too long or has escapes.
 */
static run_field *field_of(run_fields *fields, doppel_slice name) {
    for (size_t i = 0; i < fields->count; i++)
        if (strlen(fields->list[i].name) == name.length && !memcmp(fields->list[i].name, name.data, name.length))
            return &fields->list[i];
    if (fields->count == RUN_FIELDS || !name.length || name.length > RUN_FIELD_NAME ||
        memchr(name.data, '\\', name.length) || memchr(name.data, '"', name.length) ||
        memchr(name.data, 0, name.length))
        return NULL;
    run_field *added = &fields->list[fields->count++];
    memcpy(added->name, name.data, name.length);
    return added;
}

void run_fields_free(run_fields *fields) {
    free(fields->list);
    *fields = (run_fields){0};
}

const run_field *run_fields_longest(const run_fields *fields) {
    const run_field *longest = NULL;
    for (size_t i = 0; i < fields->count; i++)
        if (!longest || fields->list[i].bytes > longest->bytes)
            longest = &fields->list[i];
    return longest && longest->bytes >= LEAST_MEAN * fields->records ? longest : NULL;
}

/* ---- JSON: objects one after the other, or in an array ---- */

/* After a string whose opening quote is at p; NULL: it does not end. */
static const char *pass_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        p += *p == '\\';
    return p < end ? p + 1 : NULL;
}

/* After a value; NULL: it does not end. */
static const char *pass_value(const char *p, const char *end) {
    for (size_t depth = 0; p && p < end;) {
        if (!depth && (*p == ',' || *p == '}' || *p == ']'))
            return p;
        if (*p == '"') {
            p = pass_string(p, end);
            continue;
        }
        if (*p == '{' || *p == '[')
            depth++;
        else if (*p == '}' || *p == ']')
            depth--;
        p++;
    }
    return NULL;
}

static const char *pass_space(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

/* Reads a record whose opening brace is at p; gives its end, NULL when it is not one or is cut. */
static const char *read_object(run_fields *fields, const char *p, const char *end) {
    p = pass_space(p + 1, end);
    while (p < end && *p == '"') {
        const char *name = p + 1, *after = pass_string(p, end);
        const char *value = after ? pass_space(after, end) : end;
        if (value >= end || *value != ':')
            return NULL;
        value = pass_space(value + 1, end);
        p = pass_value(value, end);
        if (!p)
            return NULL;
        run_field *field = field_of(fields, (doppel_slice){name, (size_t)(after - name) - 1});
        if (field && *value == '"')
            field->bytes += (uint64_t)(p - value) - 2;
        if (*p == ',')
            p = pass_space(p + 1, end);
    }
    return p < end && *p == '}' ? p + 1 : NULL;
}

static void read_objects(run_fields *fields, const char *p, const char *end) {
    while (p) {
        while (p < end && *p != '{')
            p++;
        p = p < end ? read_object(fields, p, end) : NULL;
        fields->records += p != NULL;
    }
}

/* ---- tables: a header that names the fields (lib/input/csv.c) ---- */

/* A cell; *p becomes what follows it: the delimiter, the end of the row or the end of the bytes. */
static doppel_slice read_cell(const char **p, const char *end, char delimiter) {
    bool quoted = *p < end && **p == '"';
    const char *from = *p + quoted, *at = from;
    if (quoted) {
        while (at < end && (*at != '"' || (at + 1 < end && at[1] == '"')))
            at += *at == '"' ? 2 : 1;
        at = at < end ? at : end;
        *p = at < end ? at + 1 : end;
        while (*p < end && **p != delimiter && **p != '\n')
            ++*p;
        return (doppel_slice){from, (size_t)(at - from)};
    }
    while (at < end && *at != delimiter && *at != '\n')
        at++;
    *p = at;
    bool carriage = at > from && at[-1] == '\r' && (at == end || *at == '\n');
    return (doppel_slice){from, (size_t)(at - from) - carriage};
}

static bool end_of_row(const char **p, const char *end) {
    bool ended = *p >= end || **p == '\n';
    *p += *p < end;
    return ended;
}

/* The end of the first row. Which character separates its cells is not known yet: a quote after any of those that may
 * do so begins a quoted cell. */
static const char *end_of_header(const char *p, const char *end) {
    bool quoted = false;
    for (char before = ','; p < end && (quoted || *p != '\n'); before = *p++)
        if (*p == '"')
            quoted = !quoted && before && strchr("\t,;|\"", before);
    return p;
}

static void read_table(run_fields *fields, const char *p, const char *end, bool is_tsv) {
    run_field *columns[RUN_FIELDS] = {0};
    size_t count = 0;
    const doppel_slice header = {p, (size_t)(end_of_header(p, end) - p)};
    char delimiter = is_tsv ? '\t' : doppel_csv_delimiter(header);
    for (bool ended = false; !ended; ended = end_of_row(&p, end)) {
        run_field *field = field_of(fields, read_cell(&p, end, delimiter));
        if (count < RUN_FIELDS)
            columns[count++] = field;
    }
    while (p < end) {
        size_t column = 0;
        for (bool ended = false; !ended; ended = end_of_row(&p, end), column++) {
            doppel_slice cell = read_cell(&p, end, delimiter);
            if (column < count && columns[column])
                columns[column]->bytes += cell.length;
        }
        fields->records++;
    }
}

void run_fields_read(const char *path, run_fields *fields) {
    *fields = (run_fields){0};
    if (!path)
        return;
    const char *format = doppel_input_format(path);
    bool is_tsv = format && !strcmp(format, "TSV"), is_table = is_tsv || (format && !strcmp(format, "CSV"));
    char *bytes = malloc(BEGINNING + 2); /* an escape at the end points beyond it */
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = bytes && file >= 0 ? read(file, bytes, BEGINNING) : 0;
    if (file >= 0)
        close(file);
    const char *p = bytes, *end = bytes && length > 0 ? bytes + length : bytes;
    if (end - p >= 3 && !memcmp(p, "\xEF\xBB\xBF", 3))
        p += 3;
    const char *first = bytes ? pass_space(p, end) : end;
    bool is_json = !is_table && first < end && (*first == '{' || *first == '[');
    if ((is_json || is_table) && first < end && (fields->list = calloc(RUN_FIELDS, sizeof *fields->list))) {
        if (is_json)
            read_objects(fields, first, end);
        else
            read_table(fields, p, end, is_tsv);
    }
    free(bytes);
}

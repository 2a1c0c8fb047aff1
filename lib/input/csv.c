/* csv.c - the formats CSV and TSV: a header that names the columns, then a document a row, as RFC 4180 has them and a
 * little beyond.
 *
 * A cell that begins with a quote ends at the next one that is not doubled; in between, delimiters and line ends are
 * text. Anywhere else quotes are text: those within a cell that does not begin with one, and what is between the
 * closing quote and the next delimiter. Rows end in \n or \r\n.
 *
 * The delimiter is a tab in .tsv files, else what doppel_csv_delimiter says of the header. Within the header of a .csv
 * file, each possible delimiter begins a cell when it stands before a quote. */
#include "input/reader.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- rows and cells ---- */

/* The position in a row. */
enum {
    AT_START, /* of a cell */
    IN_PLAIN, /* within a cell, outside of quotes */
    IN_QUOTES,
    AT_QUOTE /* after a quote within quotes, which is the closing one unless another follows */
};

/* Bytes searched at a time. */
#define LOOK 512

#define MARK "\xEF\xBB\xBF"

/* The possible delimiters, in the order of preference. Rows have one, four times. */
enum { DELIMITERS = 4 };
static const char any_delimiter[DELIMITERS] = {'\t', ',', ';', '|'};

static bool is_one_of(const char delimiters[DELIMITERS], char c) {
    return memchr(delimiters, c, DELIMITERS) != NULL;
}

/* Outside of quotes: goes past the next quote that opens a cell, or past the end of the row (*ended), or on a
 * little. It searches no farther than that, so that many quotes in a long row do not cost more. */
static const char *pass_plain(dp_mark *mark, const char *p, const char *end, const char delimiters[DELIMITERS],
                              bool *ended) {
    if (end - p > LOOK)
        end = p + LOOK;
    const char *line = memchr(p, '\n', (size_t)(end - p)), *stop = line ? line : end;
    for (const char *from = p, *quote; (quote = memchr(from, '"', (size_t)(stop - from))); from = quote + 1) {
        char before = quote > p ? quote[-1] : mark->state == AT_START ? delimiters[0] : 0;
        if (is_one_of(delimiters, before)) {
            mark->state = IN_QUOTES;
            return quote + 1;
        }
    }
    *ended = line != NULL;
    mark->state = is_one_of(delimiters, end[-1]) ? AT_START : IN_PLAIN;
    return line ? line + 1 : end;
}

/* How many bytes the row at `data` has with its line end, or 0, as dp_record_end says. A cell begins after any of
 * the delimiters; in the header also after a byte-order mark, which in other rows is text. */
static size_t row_end(dp_mark *mark, const char *data, size_t size, const char delimiters[DELIMITERS], bool header) {
    const char *p = data + mark->seen, *end = data + size;
    /* The rest of the mark may be still to come. */
    if (header && !mark->seen && mark->state == AT_START && size && !memcmp(data, MARK, size < 3 ? size : 3)) {
        if (size < 3)
            return 0;
        p += 3;
    }
    while (p < end) {
        bool ended = false;
        if (mark->state == IN_QUOTES) {
            const char *quote = memchr(p, '"', (size_t)(end - p));
            p = quote ? quote + 1 : end;
            mark->state = quote ? AT_QUOTE : IN_QUOTES;
        } else if (mark->state == AT_QUOTE) {
            mark->state = *p == '"' ? IN_QUOTES : IN_PLAIN;
            p += *p == '"';
        } else {
            p = pass_plain(mark, p, end, delimiters, &ended);
        }
        if (ended)
            return (size_t)(p - data);
    }
    mark->seen = size;
    return 0;
}

char doppel_csv_delimiter(doppel_slice header) {
    const char *p = header.data, *end = p + header.length;
    bool found[DELIMITERS] = {false};
    int state = AT_START;
    dp_skip_mark(&p, &header.length);
    for (; p < end; p++) {
        const char *delimiter = memchr(any_delimiter, *p, DELIMITERS);
        if (state == IN_QUOTES) {
            state = *p == '"' ? AT_QUOTE : IN_QUOTES;
        } else if (*p == '"' && (state == AT_START || state == AT_QUOTE)) {
            state = IN_QUOTES;
        } else {
            state = delimiter ? AT_START : IN_PLAIN;
            if (delimiter)
                found[delimiter - any_delimiter] = true;
        }
    }
    for (size_t i = 0; i < DELIMITERS; i++)
        if (found[i])
            return any_delimiter[i];
    return ',';
}

/* A row that is being read, without its line end. */
typedef struct csv_row {
    const char *p, *end; /* what is left; p NULL: nothing, not even an empty cell */
    char delimiter;
    dp_buffer *text;    /* unescaped cells; has room for the whole row, so that it does not move */
    const char *opened; /* the quote of the last cell that began with one */
} csv_row;

/* Adds to an unescaped cell. There is room. */
static void add(csv_row *row, const char *from, const char *to) {
    if (from == to)
        return; /* there may be no text at all */
    memcpy(row->text->data + row->text->size, from, (size_t)(to - from));
    row->text->size += (size_t)(to - from);
}

/* Where a cell ends that goes on outside of quotes. */
static const char *cell_end(const csv_row *row, const char *p) {
    const char *end = memchr(p, row->delimiter, (size_t)(row->end - p));
    return end ? end : row->end;
}

/* A cell that begins with a quote; gives where it ends. */
static const char *quoted_cell(csv_row *row, doppel_slice *cell) {
    const char *p = row->p + 1, *quote = memchr(p, '"', (size_t)(row->end - p));
    row->opened = row->p;
    const char *after = quote ? quote + 1 : row->end;
    if (after == row->end || *after == row->delimiter) { /* the usual case: nothing to unescape */
        *cell = (doppel_slice){p, (size_t)((quote ? quote : row->end) - p)};
        return after;
    }
    size_t start = row->text->size;
    while (quote && after < row->end && *after == '"') {
        add(row, p, after);
        p = after + 1;
        quote = memchr(p, '"', (size_t)(row->end - p));
        after = quote ? quote + 1 : row->end;
    }
    add(row, p, quote ? quote : row->end);
    const char *end = cell_end(row, after);
    add(row, after, end);
    *cell = (doppel_slice){row->text->data + start, row->text->size - start};
    return end;
}

/* The next cell; false when there is none. */
static bool next_cell(csv_row *row, doppel_slice *cell) {
    const char *end;
    if (!row->p)
        return false;
    if (row->p < row->end && *row->p == '"') {
        end = quoted_cell(row, cell);
    } else {
        end = cell_end(row, row->p);
        *cell = (doppel_slice){row->p, (size_t)(end - row->p)};
    }
    row->p = end < row->end ? end + 1 : NULL;
    return true;
}

/* ---- documents ---- */

/* The most columns that a file may have: what is kept of each must not cost more than a row of them. */
enum { MOST_COLUMNS = 65536 };

/* How a file is read: which column each field is in, from 1; 0: none. */
typedef struct columns {
    char delimiter;
    size_t count;
    size_t of[DP_FIELDS + DP_EXTRA + DP_NAMES];
    size_t id;   /* the one whose member of a record is called id, from 1; 0: none */
    bool others; /* some column is no field */
} columns;

/* Takes off the line end, and the byte-order mark at the start of a file. */
static dp_raw_record trim(dp_raw_record at) {
    if (at.length && at.bytes[at.length - 1] == '\n')
        at.length--;
    if (at.length && at.bytes[at.length - 1] == '\r')
        at.length--;
    if (at.line == 1)
        dp_skip_mark(&at.bytes, &at.length);
    return at;
}

/* Begins to read the cells of a row, unescaping them into `text`; false when there is no memory. */
static bool begin_row(dp_buffer *text, const dp_raw_record *at, char delimiter, csv_row *row) {
    text->size = 0;
    *row = (csv_row){.p = at->bytes, .end = at->bytes + at->length, .delimiter = delimiter, .text = text};
    return dp_reserve(&text->data, &text->capacity, at->length, 1);
}

static uint64_t count_lines(const char *p, const char *end) {
    uint64_t count = 0;
    for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        count++;
    return count;
}

/* ---- the header ---- */

static void take_column(const dp_reader *reader, doppel_slice name, columns *found) {
    bool wanted = false;
    found->count++;
    for (size_t i = 0; i < reader->field_count; i++) {
        const dp_json_field *field = &reader->fields[i];
        if (field->key_length == name.length && !memcmp(field->key, name.data, name.length)) {
            found->of[i] = found->count;
            wanted = true;
        }
    }
    found->others = found->others || !wanted;
}

/* Whether a field has a column, or its parts have some. */
static bool has_column(const dp_reader *reader, const columns *found, size_t field) {
    bool has = found->of[field];
    for (size_t i = 0; i < reader->part_count && !has; i++)
        has = reader->parts[i].field == field && found->of[reader->parts[i].name];
    return has;
}

/* Says what is wrong with a header, once for its file: where bad files are refused, the refusal says it. */
static bool bad_header(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const char *why) {
    if (!unit->block.first)
        return false;
    if (reader->options->refuse_bad && !reader->options->strict) {
        dp_counts_bad_file(dp_unit_counts(unit), at->file, why, true);
        return false;
    }
    dp_reader_bad_file(reader, unit, at->file, "%s", why);
    if (unit->report_count)
        dp_counts_bad(dp_unit_counts(unit), &unit->reports[unit->report_count - 1]);
    return false;
}

/* It counts as a row that is too long, too; one that was not held is reported as such with its block. */
static bool long_header(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    bad_header(reader, unit, at, "the first line, which names the columns, is longer than the limit");
    return at->length && unit->block.first && dp_reader_too_long(reader, unit, at);
}

/* The column whose name is most like that of a key, ignoring case or within two edits or so; length 0: none is. */
static doppel_slice similar_column(csv_row row, doppel_slice key) {
    doppel_slice name, best = {"", 0};
    size_t least = SIZE_MAX, distance;
    while (next_cell(&row, &name)) {
        name = dp_slice_trim(name);
        if (doppel_levenshtein(key, name, SIZE_MAX, &distance) != DOPPEL_OK)
            continue;
        if (name.length == key.length && !strncasecmp(name.data, key.data, key.length))
            distance = 0;
        if (distance < least && 4 * distance <= name.length + 1) {
            least = distance;
            best = name;
        }
    }
    return best;
}

/* The column with the longest cell of words in the first row, which may be the text; length 0: none has words, or the
 * row is not there, or too long. The first block has that row, whatever its size is. */
static doppel_slice longest_column(dp_reader *reader, const dp_unit *unit, csv_row header) {
    const char delimiters[DELIMITERS] = {header.delimiter, header.delimiter, header.delimiter, header.delimiter};
    dp_mark mark = {0};
    dp_raw_record at = {.line = 2, .bytes = unit->block.data};
    csv_row row;
    doppel_slice name, cell, best = {"", 0};
    size_t longest = 0;
    at.length = row_end(&mark, at.bytes, unit->block.size, delimiters, false);
    at.length = at.length ? at.length : unit->block.size;
    at = trim(at);
    if (at.length > reader->options->max_record)
        return best;
    dp_buffer text = {0};
    if (begin_row(&text, &at, header.delimiter, &row))
        while (next_cell(&header, &name) && next_cell(&row, &cell))
            if (cell.length > longest && memchr(cell.data, ' ', cell.length)) {
                longest = cell.length;
                best = dp_slice_trim(name);
            }
    dp_buffer_free(&text);
    return best;
}

/* The header lacks a column that a key asks for, by itself or as one of several: says which ones it has, and which may
 * be meant. */
static bool no_column(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, char delimiter, doppel_slice key) {
    csv_row row, header;
    doppel_slice name;
    char why[400];
    const dp_json_field *text = &reader->fields[DP_FIELD_TEXT], *html = &reader->fields[DP_FIELD_HTML];
    const char *prefix = reader->options->option_prefix ? reader->options->option_prefix : "";
    bool is_text = key.data == text->key && key.length == text->key_length;
    if (!begin_row(&reader->text, at, delimiter, &row))
        return dp_unit_no_memory(unit);
    header = row;
    size_t length = (size_t)snprintf(why, sizeof why, "the header has no column \"%.*s\"",
                                     (int)(key.length < 60 ? key.length : 60), key.data);
    if (is_text && !reader->options->text_key)
        length += (size_t)snprintf(why + length, sizeof why - length, " or \"%.60s\"", html->key);
    doppel_slice meant = similar_column(row, key);
    header.text->size = 0;
    if (meant.length)
        length += (size_t)snprintf(why + length, sizeof why - length, "; did you mean %.*s?",
                                   (int)(meant.length < 60 ? meant.length : 60), meant.data);
    length += (size_t)snprintf(why + length, sizeof why - length, meant.length ? " It has" : "; it has");
    for (const char *before = ": "; next_cell(&row, &name) && length < sizeof why - 80; before = ", ")
        length += (size_t)snprintf(why + length, sizeof why - length, "%s%.*s", before,
                                   (int)(name.length < 60 ? name.length : 60), name.data);
    header.text->size = 0;
    meant =
        is_text && !meant.length && unit->block.first ? longest_column(reader, unit, header) : (doppel_slice){"", 0};
    if (meant.length && length < sizeof why)
        snprintf(why + length, sizeof why - length, ". Use --%.20stext-key %.*s", prefix,
                 (int)(meant.length < 60 ? meant.length : 60), meant.data);
    return bad_header(reader, unit, at, why);
}

/* One of the columns that are joined for a field is not there: its name; length 0: all are. */
static doppel_slice missing_part(const dp_reader *reader, const columns *found, size_t field) {
    for (size_t i = 0; i < reader->part_count; i++) {
        const dp_json_field *name = &reader->fields[reader->parts[i].name];
        if (reader->parts[i].field == field && !found->of[field] && !found->of[reader->parts[i].name])
            return (doppel_slice){name->key, name->key_length};
    }
    return (doppel_slice){"", 0};
}

/* Whether the header has what the texts are made of. */
static bool check_columns(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const columns *found) {
    const dp_json_field *text = &reader->fields[DP_FIELD_TEXT];
    bool has_text = has_column(reader, found, DP_FIELD_TEXT), has_html = has_column(reader, found, DP_FIELD_HTML);
    doppel_slice missing = {text->key, text->key_length};
    if (!has_text && !has_html && reader->options->text_optional && !found->others &&
        (has_column(reader, found, DP_FIELD_URL) || has_column(reader, found, DP_FIELD_TITLE)))
        return true;
    if (has_text || has_html)
        missing = missing_part(reader, found, has_text ? DP_FIELD_TEXT : DP_FIELD_HTML);
    /* What is left of several is better than nothing where bad input is allowed; the rest is reported as unseen. */
    if (!missing.length || ((has_text || has_html) && !reader->options->refuse_bad))
        return true;
    return no_column(reader, unit, at, found->delimiter, missing);
}

static bool read_header(dp_reader *reader, dp_unit *unit, const char *file, columns *found) {
    dp_raw_record at = trim((dp_raw_record){file, 1, unit->header.data, unit->header.size});
    csv_row row;
    doppel_slice name;
    if (at.length > reader->options->max_record || (!at.length && unit->block.long_line))
        return long_header(reader, unit, &at);
    if (!unit->header.size)
        return false;
    if (!at.length)
        return bad_header(reader, unit, &at, "the first line, which names the columns, is empty");
    if (dp_is_utf16(at.bytes, at.length))
        return bad_header(reader, unit, &at, DP_WHY_UTF16);
    if (!found->delimiter)
        found->delimiter = doppel_csv_delimiter((doppel_slice){unit->header.data, unit->header.size});
    if (!begin_row(&reader->text, &at, found->delimiter, &row))
        return dp_unit_no_memory(unit);
    while (next_cell(&row, &name))
        take_column(reader, dp_slice_trim(name), found);
    if (found->count > MOST_COLUMNS)
        return bad_header(reader, unit, &at, "the first line names more than 65536 columns");
    reader->seen |= DP_SEEN_RECORD;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        reader->seen |= has_column(reader, found, i) ? (uint64_t)1 << i : 0;
    for (size_t i = 0; i < reader->part_count; i++)
        if (found->of[reader->parts[i].field] || found->of[reader->parts[i].name])
            reader->parts_seen |= (uint64_t)1 << i;
    return check_columns(reader, unit, &at, found);
}

/* Repairs the UTF-8 of a row; false when there is no memory. */
static bool repair(dp_reader *reader, dp_unit *unit, dp_raw_record *at) {
    if (dp_json_is_utf8(at->bytes, at->length))
        return true;
    reader->repaired.size = 0;
    if (!dp_utf8_repair(at->bytes, at->length, &reader->repaired))
        return dp_unit_no_memory(unit);
    at->bytes = reader->repaired.data;
    at->length = reader->repaired.size;
    reader->invalid_utf8 = true;
    return true;
}

/* ---- rows as records: options.row_records ----
 *
 * A member for each column, in their order: its name, and its cell as a string. Members of one record have different
 * names. Where columns have the same, the last has it, as in reading; those before it get _1, _2 and so on after it,
 * but for names that other columns have. A column without a name is column_N, N being its number; where another one is
 * called so, that has the name. */

/* Uses of reader->spare: the names of members as they are written, with quotes and colon, where each begins (size_t; of
 * one more where the last ends), and the current record. */
enum { MEMBERS, STARTS, RECORD };

typedef struct column_name {
    doppel_slice name;
    char made[32]; /* of a column that has none */
    size_t column;
    uint32_t suffix; /* 0: none */
} column_name;

static doppel_slice name_of(const column_name *column) {
    return column->made[0] ? doppel_slice_of(column->made) : column->name;
}

static int compare_slices(doppel_slice a, doppel_slice b) {
    size_t shorter = a.length < b.length ? a.length : b.length;
    int order = shorter ? memcmp(a.data, b.data, shorter) : 0;
    return order ? order : (a.length > b.length) - (a.length < b.length);
}

/* bsearch: by the name alone. */
static int find_name(const void *name, const void *column) {
    return compare_slices(*(const doppel_slice *)name, name_of(column));
}

/* qsort: of equal names the one that keeps it comes last. */
static int compare_names(const void *a, const void *b) {
    const column_name *x = a, *y = b;
    int order = compare_slices(name_of(x), name_of(y));
    if (!order)
        order = !x->made[0] - !y->made[0];
    return order ? order : (x->column > y->column) - (x->column < y->column);
}

static int compare_columns(const void *a, const void *b) {
    const column_name *x = a, *y = b;
    return (x->column > y->column) - (x->column < y->column);
}

/* Gives suffixes to all but the last of equal names, which are sorted. Names that are made of different ones differ, as
 * a suffix has no underscore. False: no memory. */
static bool set_suffixes(column_name *names, size_t count, dp_buffer *made) {
    uint32_t suffix = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        doppel_slice name = name_of(&names[i]), with_suffix;
        if (compare_slices(name, name_of(&names[i + 1])) != 0) {
            suffix = 0;
            continue;
        }
        do {
            made->size = 0;
            if (!dp_buffer_add(made, name.data, name.length) || !dp_buffer_printf(made, "_%u", (unsigned)++suffix))
                return false;
            with_suffix = (doppel_slice){made->data, made->size};
        } while (bsearch(&with_suffix, names, count, sizeof *names, find_name));
        names[i].suffix = suffix;
    }
    return true;
}

/* Writes the names of members, in the order of the columns; false: no memory. */
static bool write_members(dp_reader *reader, const column_name *names, columns *found, dp_buffer *made) {
    dp_buffer *members = &reader->spare[MEMBERS], *starts = &reader->spare[STARTS];
    bool written = true;
    members->size = starts->size = 0;
    for (size_t i = 0; i < found->count && written; i++) {
        doppel_slice name = name_of(&names[i]);
        made->size = 0;
        written = dp_buffer_add(made, name.data, name.length) &&
                  (!names[i].suffix || dp_buffer_printf(made, "_%u", (unsigned)names[i].suffix)) &&
                  dp_buffer_add(starts, &members->size, sizeof members->size) &&
                  dp_json_add(members, made->data, made->size) && dp_buffer_add(members, ":", 1);
        if (made->size == 2 && !memcmp(made->data, "id", 2))
            found->id = i + 1;
    }
    return written && dp_buffer_add(starts, &members->size, sizeof members->size);
}

/* Makes the names of members of the header; false: no memory. */
static bool name_members(dp_reader *reader, dp_unit *unit, columns *found) {
    dp_raw_record at = trim((dp_raw_record){"", 1, unit->header.data, unit->header.size});
    column_name *names = calloc(found->count, sizeof *names);
    dp_buffer made = {0};
    csv_row row;
    doppel_slice cell;
    size_t count = 0;
    bool done = names && repair(reader, unit, &at) && begin_row(&reader->text, &at, found->delimiter, &row);
    while (done && count < found->count && next_cell(&row, &cell)) {
        column_name *column = &names[count];
        *column = (column_name){.name = dp_slice_trim(cell), .column = count++};
        if (!column->name.length)
            snprintf(column->made, sizeof column->made, "column_%zu", count);
    }
    if (done) {
        qsort(names, count, sizeof *names, compare_names);
        done = set_suffixes(names, count, &made);
        qsort(names, count, sizeof *names, compare_columns);
    }
    done = done && write_members(reader, names, found, &made);
    free(names);
    dp_buffer_free(&made);
    return done || dp_unit_no_memory(unit);
}

/* Makes a record of a row whose cells have been read: reading them again does not change what was unescaped. A
 * row without an id has that of its document as `id`: before all others, or instead of an empty cell of this name.
 * False: no memory. */
static bool make_record(dp_reader *reader, const dp_raw_record *at, const columns *found, doppel_slice made_id,
                        doppel_document *document) {
    const char *members = reader->spare[MEMBERS].data;
    const size_t *starts = (const void *)reader->spare[STARTS].data;
    dp_buffer *record = &reader->spare[RECORD];
    dp_json_writer json = {.buffer = record};
    csv_row row;
    doppel_slice cell;
    record->size = 0;
    if (!begin_row(&reader->text, at, found->delimiter, &row))
        return false;
    dp_json_text(&json, "{");
    if (made_id.length && !found->id) {
        dp_json_key(&json, "id");
        dp_json_string(&json, made_id);
    }
    for (size_t i = 0; i < found->count && next_cell(&row, &cell); i++) {
        bool takes_id = i + 1 == found->id && !cell.length && made_id.length;
        if (json.last != '{')
            dp_json_text(&json, ",");
        dp_json_put(&json, members + starts[i], starts[i + 1] - starts[i]);
        dp_json_string(&json, takes_id ? made_id : cell);
    }
    dp_json_text(&json, "}\n");
    document->record = (doppel_slice){record->data, record->size - 1};
    return !json.failed;
}

/* The cells that the columns ask for; gives how many cells the row has. */
static size_t read_cells(csv_row *row, const columns *found, size_t fields, doppel_slice *cells) {
    doppel_slice cell;
    size_t count = 0;
    while (next_cell(row, &cell)) {
        count++;
        for (size_t i = 0; i < fields; i++)
            if (found->of[i] == count)
                cells[i] = cell;
    }
    return count;
}

/* Gives fields that have no cell those of their parts, joined; false when there is no memory. */
static bool join_cells(dp_reader *reader, doppel_slice *cells) {
    dp_buffer *joined = &reader->joined;
    size_t room = 0;
    for (size_t i = 0; i < reader->part_count; i++)
        room += cells[reader->parts[i].name].length + 1;
    joined->size = 0;
    if (!dp_reserve(&joined->data, &joined->capacity, room, 1)) /* it must not move once it is used */
        return false;
    for (size_t i = 0, end; i < reader->part_count; i = end) {
        doppel_slice own = cells[reader->parts[i].field], value = own;
        size_t start = joined->size;
        for (end = i; end < reader->part_count && reader->parts[end].field == reader->parts[i].field; end++) {
            doppel_slice cell = cells[reader->parts[end].name];
            if (cell.length && joined->size > start)
                dp_buffer_add(joined, "\n", 1);
            dp_buffer_add(joined, cell.data, cell.length);
            value.data = cell.data ? joined->data + start : value.data;
        }
        value.length = joined->size - start;
        cells[reader->parts[i].field] = own.data ? own : value;
    }
    return true;
}

/* A row without the \n at its end. */
static doppel_slice without_end(const char *bytes, size_t length) {
    return (doppel_slice){bytes, length - (length && bytes[length - 1] == '\n')};
}

/* Sets the fields of a document; an empty id, url or title is none. `row` is as in the file, `at` repaired.
 */
static bool set_fields(dp_reader *reader, dp_unit *unit, const dp_raw_record *row, const dp_raw_record *at,
                       const columns *found, const doppel_slice *cells) {
    doppel_document document = dp_reader_document(reader, unit, at);
    document.row = without_end(row->bytes, row->length);
    document.header = without_end(unit->header.data, unit->header.size);
    const doppel_slice *id = &cells[DP_FIELD_ID], *url = &cells[DP_FIELD_URL], *title = &cells[DP_FIELD_TITLE];
    const doppel_slice *text = &cells[DP_FIELD_TEXT], *html = &cells[DP_FIELD_HTML];
    if (!text->data && !html->data && !url->length && !title->length)
        return dp_reader_bad_record(reader, unit, at, "has no text, no URL and no title");
    document.id = *id;
    if (!id->length && !dp_reader_make_id(reader, unit, at, &document))
        return false;
    if (url->length)
        document.url = *url;
    if (title->length)
        document.title = *title;
    if (text->data)
        document.text = *text;
    if (html->length || !text->data) {
        document.html = *html;
        document.charset = DP_CHARSET_UTF8;
    }
    for (size_t i = 0; i < reader->options->extra_count; i++)
        reader->extra[i] = cells[DP_FIELDS + i];
    doppel_slice made_id = id->length ? (doppel_slice){"", 0} : document.id;
    if (reader->options->row_records && !make_record(reader, at, found, made_id, &document))
        return dp_unit_no_memory(unit);
    if (reader->invalid_utf8)
        dp_reader_repaired(unit, at, "invalid UTF-8 became U+FFFD");
    dp_reader_give(reader, unit, &document);
    return true;
}

static bool read_row(dp_reader *reader, dp_unit *unit, const dp_raw_record *row, const columns *found) {
    doppel_slice cells[DP_FIELDS + DP_EXTRA + DP_NAMES];
    dp_raw_record at = trim(*row);
    csv_row cursor;
    reader->invalid_utf8 = false;
    if (!at.length)
        return true;
    if (at.length > reader->options->max_record)
        return dp_reader_too_long(reader, unit, &at);
    if (!repair(reader, unit, &at))
        return false;
    if (!begin_row(&reader->text, &at, found->delimiter, &cursor))
        return dp_unit_no_memory(unit);
    memset(cells, 0, reader->field_count * sizeof *cells);
    size_t count = read_cells(&cursor, found, reader->field_count, cells);
    if (!join_cells(reader, cells))
        return dp_unit_no_memory(unit);
    if (count == found->count)
        return set_fields(reader, unit, row, &at, found, cells);
    return dp_reader_bad_record(reader, unit, &at, "has %zu column%s, where the header has %zu", count,
                                count == 1 ? "" : "s", found->count);
}

/* The last row of a file ends within quotes: says so at the line where they begin. */
static void bad_quotes(dp_reader *reader, dp_unit *unit, dp_raw_record at, char delimiter) {
    csv_row row;
    doppel_slice cell;
    if (!begin_row(&reader->text, &at, delimiter, &row)) {
        dp_unit_no_memory(unit);
        return;
    }
    while (next_cell(&row, &cell))
        ;
    at.line += count_lines(at.bytes, row.opened);
    dp_reader_bad_record(reader, unit, &at, "a quote that opens a field here is not closed before the end of the file");
}

/* Without columns no row is read, so none is reported as too long or truncated: only the header is, in line 1. */
static void forget_rows(dp_record_block *block) {
    if (block->long_line != 1)
        block->long_line = 0;
    if (block->cut_line != 1)
        block->cut_line = 0;
}

static void read_rows(dp_reader *reader, dp_unit *unit, const char *file, columns *found) {
    const char *p = unit->block.data, *end = p + unit->block.size;
    uint64_t line = unit->block.first_line;
    if (!read_header(reader, unit, file, found)) {
        forget_rows(&unit->block);
        return;
    }
    if (reader->options->row_records && !name_members(reader, unit, found))
        return;
    const char delimiters[DELIMITERS] = {found->delimiter, found->delimiter, found->delimiter, found->delimiter};
    while (p < end && !dp_reader_stopped(reader, unit)) {
        dp_mark mark = {0};
        size_t length = row_end(&mark, p, (size_t)(end - p), delimiters, false);
        dp_raw_record at = {file, line, p, length ? length : (size_t)(end - p)};
        if (!length && mark.state == IN_QUOTES)
            bad_quotes(reader, unit, at, found->delimiter);
        else
            read_row(reader, unit, &at, found);
        line += count_lines(p, p + at.length);
        p += at.length;
    }
}

/* ---- the formats ---- */

static const char *const csv_endings[] = {".csv", NULL};
static const char *const tsv_endings[] = {".tsv", ".tab", NULL};

/* Whether a cell is a word, as plain names of columns are. */
static bool is_word(doppel_slice cell) {
    for (size_t i = 0; i < cell.length; i++) {
        char c = cell.data[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'))
            return false;
    }
    return cell.length > 0;
}

static bool is_named(doppel_slice cell, const char *name) {
    return cell.length == strlen(name) && !memcmp(cell.data, name, cell.length);
}

/* A file whose name says nothing: its first line is two words or more, `text` or `html` among them. */
static bool matches(const char *head, size_t length) {
    const char *line = memchr(head, '\n', length);
    dp_raw_record at = trim((dp_raw_record){.bytes = head, .length = line ? (size_t)(line - head) : 0});
    csv_row row = {.p = at.bytes, .end = at.bytes + at.length};
    row.delimiter = doppel_csv_delimiter((doppel_slice){at.bytes, at.length});
    doppel_slice cell;
    size_t count = 0;
    bool found = false;
    if (memchr(at.bytes, '"', at.length))
        return false;
    for (; next_cell(&row, &cell); count++) {
        if (!is_word(cell))
            return false;
        found = found || is_named(cell, "text") || is_named(cell, "html");
    }
    return found && count > 1;
}

/* Whether a header names a column; the row is not changed. */
static bool has_named(csv_row row, doppel_slice name) {
    doppel_slice cell;
    row.text->size = 0;
    while (next_cell(&row, &cell)) {
        cell = dp_slice_trim(cell);
        if (cell.length == name.length && !memcmp(cell.data, name.data, name.length))
            return true;
    }
    return false;
}

/* Whether a header has a key as a column, or all of its parts. */
static bool has_key(const csv_row *row, const char *key) {
    if (!key || !*key)
        return false;
    if (has_named(*row, doppel_slice_of(key)))
        return true;
    while (*key) {
        doppel_slice part = dp_key_next_part(&key);
        if (part.length && !has_named(*row, part))
            return false;
    }
    return true;
}

bool dp_csv_has_keys(const char *head, size_t length, const doppel_input_options *options) {
    dp_mark mark = {0};
    dp_buffer text = {0};
    csv_row row;
    doppel_slice cell;
    size_t count = 0;
    dp_raw_record at = {.line = 1, .bytes = head};
    bool has = false;
    if ((!options->text_key && !options->html_key) || !(at.length = row_end(&mark, head, length, any_delimiter, true)))
        return false;
    at = trim(at);
    if (begin_row(&text, &at, doppel_csv_delimiter((doppel_slice){at.bytes, at.length}), &row)) {
        for (csv_row all = row; next_cell(&all, &cell);)
            count++;
        has = count > 1 && (has_key(&row, options->text_key) || has_key(&row, options->html_key));
    }
    dp_buffer_free(&text);
    return has;
}

/* The header, which is the first row, sets the delimiter of the others. */
static size_t csv_end(dp_mark *mark, const char *data, size_t size) {
    char delimiter = (char)mark->file;
    if (delimiter)
        return row_end(mark, data, size, (char[DELIMITERS]){delimiter, delimiter, delimiter, delimiter}, false);
    size_t length = row_end(mark, data, size, any_delimiter, true);
    if (length)
        mark->file = (unsigned char)doppel_csv_delimiter((doppel_slice){data, length});
    return length;
}

static size_t tsv_end(dp_mark *mark, const char *data, size_t size) {
    static const char tabs[DELIMITERS] = {'\t', '\t', '\t', '\t'};
    size_t length = row_end(mark, data, size, tabs, !mark->file);
    mark->file |= length > 0;
    return length;
}

static void csv_read(dp_reader *reader, dp_unit *unit, const char *file) {
    read_rows(reader, unit, file, &(columns){0});
}

static void tsv_read(dp_reader *reader, dp_unit *unit, const char *file) {
    read_rows(reader, unit, file, &(columns){.delimiter = '\t'});
}

const dp_format dp_format_csv = {.name = "CSV",
                                 .record = "row",
                                 .endings = csv_endings,
                                 .matches = matches,
                                 .end = csv_end,
                                 .by_lines = true,
                                 .headed = true,
                                 .read = csv_read};
const dp_format dp_format_tsv = {.name = "TSV",
                                 .record = "row",
                                 .endings = tsv_endings,
                                 .end = tsv_end,
                                 .by_lines = true,
                                 .headed = true,
                                 .read = tsv_read};

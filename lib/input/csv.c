/* csv.c - the formats CSV and TSV: a header that names the columns, then a document a row, as RFC 4180 has them and a
 * little beyond.
 *
 * A cell that begins with a quote ends at the next one that is not doubled; in between, delimiters and line ends are
 * text. Anywhere else quotes are text: those within a cell that does not begin with one, and what stands between the
 * closing quote and the next delimiter. Rows end in \n or \r\n.
 *
 * The delimiter is a tab in .tsv files and where the header has a tab outside of quotes, else a comma. The reading
 * side, which cuts a file into blocks of rows, does not know it: there, both are taken as delimiters when they stand
 * before a quote, but for .tsv files. */
#include "input/reader.h"

#include <stdio.h>

/* ---- rows and cells ---- */

/* Where in a row one stands. */
enum {
    AT_START, /* of a cell */
    IN_PLAIN, /* within a cell, outside of quotes */
    IN_QUOTES,
    AT_QUOTE /* after a quote within quotes, which is the closing one unless another follows */
};

/* How far is looked at a time. */
#define LOOK 512

#define MARK "\xEF\xBB\xBF"

/* Outside of quotes: goes past the next quote that opens a cell, or past the end of the row (*ended), or on a
 * little. It looks no farther than that, so that many quotes in a long row do not cost more. */
static const char *pass_plain(dp_mark *mark, const char *p, const char *end, const char delimiters[2], bool *ended) {
    if (end - p > LOOK)
        end = p + LOOK;
    const char *line = memchr(p, '\n', (size_t)(end - p)), *stop = line ? line : end;
    for (const char *from = p, *quote; (quote = memchr(from, '"', (size_t)(stop - from))); from = quote + 1) {
        char before = quote > p ? quote[-1] : mark->state == AT_START ? delimiters[0] : 0;
        if (before == delimiters[0] || before == delimiters[1]) {
            mark->state = IN_QUOTES;
            return quote + 1;
        }
    }
    *ended = line != NULL;
    mark->state = end[-1] == delimiters[0] || end[-1] == delimiters[1] ? AT_START : IN_PLAIN;
    return line ? line + 1 : end;
}

/* How many bytes the row at `data` has with its line end, or 0, as dp_record_end says. A cell begins after either of
 * the two delimiters. */
static size_t row_end(dp_mark *mark, const char *data, size_t size, const char delimiters[2]) {
    const char *p = data + mark->seen, *end = data + size;
    /* A byte-order mark before a quote; the rest of it may be still to come. */
    if (!mark->seen && mark->state == AT_START && size && !memcmp(data, MARK, size < 3 ? size : 3)) {
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

/* The delimiter of a file with this header: a tab, if it has one outside of quotes, else a comma. */
static char delimiter_of(const char *header, size_t length) {
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (header[i] == '"')
            quoted = !quoted;
        else if (header[i] == '\t' && !quoted)
            return '\t';
    }
    return ',';
}

/* A row that is being read, without its line end. */
typedef struct csv_row {
    const char *p, *end; /* what is left; p NULL: nothing, not even an empty cell */
    char delimiter;
    dp_buffer *text;    /* cells that are not as they stand; has room for the whole row, so that it does not move */
    const char *opened; /* the quote of the last cell that began with one */
} csv_row;

/* Adds to a cell that is not as it stands. There is room. */
static void add(csv_row *row, const char *from, const char *to) {
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
    if (after == row->end || *after == row->delimiter) { /* the usual: as it stands */
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

/* How a file is read: which column each field is in, from 1; 0: none. */
typedef struct columns {
    char delimiter;
    size_t count;
    size_t of[DP_FIELDS + DP_EXTRA + DP_NAMES];
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

/* Begins to read the cells of a row; false when there is no memory. */
static bool begin_row(dp_reader *reader, const dp_raw_record *at, char delimiter, csv_row *row) {
    reader->text.size = 0;
    *row = (csv_row){.p = at->bytes, .end = at->bytes + at->length, .delimiter = delimiter, .text = &reader->text};
    return dp_reserve(&reader->text.data, &reader->text.capacity, at->length, 1);
}

static uint64_t count_lines(const char *p, const char *end) {
    uint64_t count = 0;
    for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
        count++;
    return count;
}

/* ---- the header ---- */

static void take_column(const dp_reader *reader, doppel_slice name, columns *found) {
    found->count++;
    for (size_t i = 0; i < reader->field_count; i++) {
        const dp_json_field *field = &reader->fields[i];
        if (field->key_length == name.length && !memcmp(field->key, name.data, name.length))
            found->of[i] = found->count;
    }
}

/* Whether a field has a column, or its parts have some. */
static bool has_column(const dp_reader *reader, const columns *found, size_t field) {
    bool has = found->of[field];
    for (size_t i = 0; i < reader->part_count && !has; i++)
        has = reader->parts[i].field == field && found->of[reader->parts[i].name];
    return has;
}

/* Says what is wrong with a header, once for its file. */
static bool bad_header(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const char *why) {
    if (unit->block.first) {
        dp_reader_bad_file(reader, unit, at->file, "%s", why);
        if (unit->report_count)
            dp_counts_bad(dp_unit_counts(unit), &unit->reports[unit->report_count - 1]);
    }
    return false;
}

/* It counts as a row that is too long, too; one that was not held is reported as such with its block. */
static bool long_header(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    bad_header(reader, unit, at, "the first line, which names the columns, is longer than the limit");
    return at->length && unit->block.first && dp_reader_too_long(reader, unit, at);
}

static bool no_text_column(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, char delimiter) {
    csv_row row;
    doppel_slice name;
    char why[400];
    const char *prefix = reader->options->option_prefix ? reader->options->option_prefix : "";
    const char *text = reader->fields[DP_FIELD_TEXT].key, *html = reader->fields[DP_FIELD_HTML].key;
    if (!begin_row(reader, at, delimiter, &row))
        return dp_unit_no_memory(unit);
    int length =
        snprintf(why, sizeof why, "the header has no column \"%.60s\" or \"%.60s\"; --%.20stext-key names it. It has",
                 text, html, prefix);
    for (const char *before = ": "; next_cell(&row, &name) && (size_t)length < sizeof why; before = ", ")
        length += snprintf(why + length, sizeof why - (size_t)length, "%s%.*s", before,
                           (int)(name.length < 60 ? name.length : 60), name.data);
    return bad_header(reader, unit, at, why);
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
        found->delimiter = delimiter_of(unit->header.data, unit->header.size);
    if (!begin_row(reader, &at, found->delimiter, &row))
        return dp_unit_no_memory(unit);
    while (next_cell(&row, &name))
        take_column(reader, dp_slice_trim(name), found);
    reader->seen |= DP_SEEN_RECORD;
    for (size_t i = 0; i < DP_FIELDS + reader->options->extra_count; i++)
        reader->seen |= has_column(reader, found, i) ? (uint64_t)1 << i : 0;
    for (size_t i = 0; i < reader->part_count; i++)
        if (found->of[reader->parts[i].field] || found->of[reader->parts[i].name])
            reader->parts_seen |= (uint64_t)1 << i;
    if (!has_column(reader, found, DP_FIELD_TEXT) && !has_column(reader, found, DP_FIELD_HTML))
        return no_text_column(reader, unit, &at, found->delimiter);
    return true;
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

/* A row without the \n at its end. */
static doppel_slice without_end(const char *bytes, size_t length) {
    return (doppel_slice){bytes, length - (length && bytes[length - 1] == '\n')};
}

/* Sets the fields of a document; an empty id, url or title is none. `row` is as it stands in the file, `at` repaired.
 */
static bool set_fields(dp_reader *reader, dp_unit *unit, const dp_raw_record *row, const dp_raw_record *at,
                       const doppel_slice *cells) {
    doppel_document document = dp_reader_document(reader, at);
    document.row = without_end(row->bytes, row->length);
    document.header = without_end(unit->header.data, unit->header.size);
    const doppel_slice *id = &cells[DP_FIELD_ID], *url = &cells[DP_FIELD_URL], *title = &cells[DP_FIELD_TITLE];
    const doppel_slice *text = &cells[DP_FIELD_TEXT], *html = &cells[DP_FIELD_HTML];
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
    if (!begin_row(reader, &at, found->delimiter, &cursor))
        return dp_unit_no_memory(unit);
    memset(cells, 0, reader->field_count * sizeof *cells);
    size_t count = read_cells(&cursor, found, reader->field_count, cells);
    if (!join_cells(reader, cells))
        return dp_unit_no_memory(unit);
    if (count == found->count)
        return set_fields(reader, unit, row, &at, cells);
    return dp_reader_bad_record(reader, unit, &at, "has %zu column%s, where the header has %zu", count,
                                count == 1 ? "" : "s", found->count);
}

/* The last row of a file ends within quotes: says so at the line where they begin. */
static void bad_quotes(dp_reader *reader, dp_unit *unit, dp_raw_record at, char delimiter) {
    csv_row row;
    doppel_slice cell;
    if (!begin_row(reader, &at, delimiter, &row)) {
        dp_unit_no_memory(unit);
        return;
    }
    while (next_cell(&row, &cell))
        ;
    at.line += count_lines(at.bytes, row.opened);
    dp_reader_bad_record(reader, unit, &at, "a quote that opens a field here is not closed before the end of the file");
}

/* Without columns no row is read, so that none is too long or breaks off, whatever was passed over: only the header is,
 * in line 1. */
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
    const char delimiters[2] = {found->delimiter, found->delimiter};
    while (p < end && !dp_reader_stopped(reader, unit)) {
        dp_mark mark = {0};
        size_t length = row_end(&mark, p, (size_t)(end - p), delimiters);
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
    csv_row row = {.p = at.bytes, .end = at.bytes + at.length, .delimiter = delimiter_of(at.bytes, at.length)};
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

/* The header, which is the first row, sets the delimiter of the others. */
static size_t csv_end(dp_mark *mark, const char *data, size_t size) {
    if (mark->file)
        return row_end(mark, data, size, (char[]){(char)mark->file, (char)mark->file});
    size_t length = row_end(mark, data, size, ",\t");
    if (length)
        mark->file = (unsigned char)delimiter_of(data, length);
    return length;
}

static size_t tsv_end(dp_mark *mark, const char *data, size_t size) {
    return row_end(mark, data, size, "\t\t");
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

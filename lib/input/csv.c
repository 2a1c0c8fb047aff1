/* csv.c - rows and cells of CSV and TSV. */
#include "input/csv.h"

/* Where in a row one stands. */
enum {
    AT_START, /* of a cell */
    IN_PLAIN, /* within a cell, outside of quotes */
    IN_QUOTES,
    AT_QUOTE /* behind a quote within quotes, which is the closing one unless another follows */
};

/* How far is looked at a time. */
#define LOOK 512

#define MARK "\xEF\xBB\xBF"

bool dp_csv_within_quotes(const dp_mark *mark) {
    return mark->state == IN_QUOTES;
}

/* Outside of quotes: goes behind the next quote that opens a cell, or behind the end of the row (*ended), or on a
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

size_t dp_csv_row_end(dp_mark *mark, const char *data, size_t size, const char delimiters[2]) {
    const char *p = data + mark->seen, *end = data + size;
    /* A byte-order mark ahead of a quote; the rest of it may be still to come. */
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

char dp_csv_delimiter(const char *header, size_t length) {
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        if (header[i] == '"')
            quoted = !quoted;
        else if (header[i] == '\t' && !quoted)
            return '\t';
    }
    return ',';
}

/* ---- cells ---- */

/* Adds to a cell that is not as it stands. There is room. */
static void add(dp_csv_row *row, const char *from, const char *to) {
    memcpy(row->text->data + row->text->size, from, (size_t)(to - from));
    row->text->size += (size_t)(to - from);
}

/* Where a cell ends that goes on outside of quotes. */
static const char *cell_end(const dp_csv_row *row, const char *p) {
    const char *end = memchr(p, row->delimiter, (size_t)(row->end - p));
    return end ? end : row->end;
}

/* A cell that begins with a quote; gives where it ends. */
static const char *quoted_cell(dp_csv_row *row, doppel_slice *cell) {
    const char *p = row->p + 1, *quote = memchr(p, '"', (size_t)(row->end - p));
    row->opened = row->p;
    const char *behind = quote ? quote + 1 : row->end;
    if (behind == row->end || *behind == row->delimiter) { /* the usual: as it stands */
        *cell = (doppel_slice){p, (size_t)((quote ? quote : row->end) - p)};
        return behind;
    }
    size_t start = row->text->size;
    while (quote && behind < row->end && *behind == '"') {
        add(row, p, behind);
        p = behind + 1;
        quote = memchr(p, '"', (size_t)(row->end - p));
        behind = quote ? quote + 1 : row->end;
    }
    add(row, p, quote ? quote : row->end);
    const char *end = cell_end(row, behind);
    add(row, behind, end);
    *cell = (doppel_slice){row->text->data + start, row->text->size - start};
    return end;
}

bool dp_csv_cell(dp_csv_row *row, doppel_slice *cell) {
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

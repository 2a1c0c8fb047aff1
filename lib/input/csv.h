/* csv.h - rows and cells of CSV and TSV, as RFC 4180 has them and a little beyond.
 *
 * A cell that begins with a quote ends at the next one that is not doubled; in between, delimiters and line ends are
 * text. Anywhere else quotes are text: those within a cell that does not begin with one, and what stands between the
 * closing quote and the next delimiter. Rows end in \n or \r\n. */
#ifndef DP_CSV_H
#define DP_CSV_H

#include "input/cut.h"

/* How many bytes the row at `data` has with its line end, or 0, as dp_record_end says. A cell begins behind either of
 * the two delimiters. */
size_t dp_csv_row_end(dp_mark *mark, const char *data, size_t size, const char delimiters[2]);

/* Whether the row that was looked at, and had no end, stops within quotes. */
bool dp_csv_within_quotes(const dp_mark *mark);

/* The delimiter of a file with this header: a tab, if it has one outside of quotes, else a comma. */
char dp_csv_delimiter(const char *header, size_t length);

/* A row that is being read, without its line end. */
typedef struct dp_csv_row {
    const char *p, *end; /* what is left; p NULL: nothing, not even an empty cell */
    char delimiter;
    dp_buffer *text;    /* cells that are not as they stand; has room for the whole row, so that it does not move */
    const char *opened; /* the quote of the last cell that began with one */
} dp_csv_row;

/* The next cell; false when there is none. */
bool dp_csv_cell(dp_csv_row *row, doppel_slice *cell);

#endif

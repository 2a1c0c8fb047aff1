/* normalise.h - UTF-8 in, normalised words out, one space between them: open, reset, read ..., finish.
 *
 * The part of words.c that knows code points; words.c knows batches. */
#ifndef DP_NORMALISE_H
#define DP_NORMALISE_H

#include "kernel/kernel.h"
#include "text/text.h"
#include "text/unicode.h"

/* One call of dp_normaliser_read writes about this much, so that the text, its starts and hashes stay in the L1 and L2
 * caches. */
#define DP_READ 8192

/* Room beyond the text: the longest normalised piece with spaces, and what kernels read and write ahead. */
#define DP_TEXT_ROOM (DP_PIECE_NORMALISED * 5 + 64 + DP_TEXT_SLACK)

/* A piece of up to three code points (21 bits each, under a 1) and what it becomes. */
typedef struct dp_known_piece {
    uint64_t key;
    size_t count;
    int32_t text[4];
} dp_known_piece;
#define DP_KNOWN_PIECES 256

typedef struct dp_normaliser {
    bool keep_case, ranged;
    dp_ascii_fn ascii;
    dp_unicode_fn plain, plain_few; /* for long runs and for short ones */
    dp_ascii_state ascii_state;
    dp_unicode_state at; /* has the state for all of the text */

    uint8_t *text;
    size_t size, capacity;

    /* The last code point, already written, and the state of the text before it: a following mark removes it again. -1:
     * none. */
    int32_t last;
    size_t last_size;
    unsigned last_state;

    int32_t piece[DP_PIECE]; /* code points not yet written, as more may join them */
    size_t piece_count, piece_joins;

    dp_known_piece known[DP_KNOWN_PIECES];

    /* When ranged: the source bytes of each word, start and end, and of the piece. */
    uint64_t *ranges;
    size_t range_count, ranges_capacity;
    uint64_t piece_start, piece_end;
    bool failed; /* no memory for a range */
} dp_normaliser;

/* Fails when utf8proc is another version than the table. A ranged one reads ASCII byte by byte, and the rest code point
 * by code point. */
doppel_status dp_normaliser_open(dp_normaliser *n, const dp_words_options *options, bool ranged, doppel_error *error);
void dp_normaliser_close(dp_normaliser *n);
void dp_normaliser_reset(dp_normaliser *n);

/* Reads whole sequences (and invalid ones) until about DP_READ bytes are written; returns where it stopped, NULL when
 * out of memory. */
const uint8_t *dp_normaliser_read(dp_normaliser *n, const uint8_t *p, const uint8_t *end);

/* The document has ended: no more joins, and no space at the end. */
bool dp_normaliser_finish(dp_normaliser *n);

#endif

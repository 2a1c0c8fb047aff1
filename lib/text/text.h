/* text.h - bytes to words.
 *
 * create, then for each document: reset, add ..., finish. Words come out in batches, as normalised text with one space
 * between words and the place where each word starts; docs/FORMAT.md section 1 defines them. */
#ifndef DP_TEXT_H
#define DP_TEXT_H

#include "base/base.h"

typedef struct dp_words_options {
    bool keep_case, keep_punct;
    bool chars;      /* the units are code points, not words: no splitting by script, spaces are units too */
    bool drop_space; /* only with chars */
    uint64_t first;  /* use this many code points; 0: all */
    size_t overlap;  /* repeat this many of the last units at the head of the next batch */
    const char *stop_words;
    size_t stop_words_length;
} dp_words_options;

/* Unit i is the bytes from starts[i] to starts[i + 1] - gap; units i to j joined by spaces are those from starts[i] to
 * starts[j + 1] - gap. The text can be read DP_TEXT_SLACK bytes beyond. */
typedef struct dp_word_batch {
    const uint8_t *text;
    const uint32_t *starts; /* count + 1 */
    size_t count;
    size_t seen;  /* this many units at the head were in the last batch */
    uint32_t gap; /* 1 for words, 0 for code points */
    bool last;    /* the document ends here; set once per document, even without units */
} dp_word_batch;

typedef doppel_status (*dp_words_sink)(void *user, const dp_word_batch *batch);

typedef struct dp_words dp_words;

doppel_status dp_words_create(const dp_words_options *options, dp_words **words, doppel_error *error);
void dp_words_free(dp_words *words);
void dp_words_reset(dp_words *words);

/* A piece of the document, cut anywhere. Errors: DOPPEL_ERROR_MEMORY; DOPPEL_ERROR_INPUT for a word, or a run of words
 * that must be held together, of over 2 GiB; what the sink gives. */
doppel_status dp_words_add(dp_words *words, const char *piece, size_t length, dp_words_sink sink, void *user);
doppel_status dp_words_finish(dp_words *words, dp_words_sink sink, void *user);

/* The stop words as sorted, distinct words joined by one space: what a recipe names by its hash. Empty without stop
 * words. */
const dp_buffer *dp_words_stop_list(const dp_words *words);

/* All words of a text at once, and for each the byte range of the text it came from. A range holds whole pieces: a
 * letter with all its marks. Both arrays are malloc'ed. */
typedef struct dp_word_list {
    dp_buffer text;
    uint32_t *starts; /* count + 1 */
    uint64_t *ranges; /* 2 * count: start, end */
    size_t count;
} dp_word_list;

doppel_status dp_word_list_make(const dp_words_options *options, const char *text, size_t length, dp_word_list *list);
void dp_word_list_free(dp_word_list *list);

/* Only the ranges, for a sequence of texts: by dp_words created for it. *ranges is borrowed until the next call. */
doppel_status dp_words_create_ranged(const dp_words_options *options, dp_words **words);
doppel_status dp_words_ranges(dp_words *words, const char *text, size_t length, const uint64_t **ranges, size_t *count);

/* ---- lines, sentences and paragraphs: pieces.c ---- */

typedef enum dp_piece_kind { DP_PIECE_LINE, DP_PIECE_SENTENCE, DP_PIECE_PARAGRAPH } dp_piece_kind;

/* Where the piece that begins at `at`, which is before the end, ends in a text. */
size_t dp_piece_end(dp_piece_kind kind, doppel_slice text, size_t at);

/* Category M; -1, an invalid sequence, is none. */
bool dp_code_point_is_mark(int32_t code_point);

/* ---- addresses: url.c ---- */

/* The canonical form of a URL (doppel_url_canonical) instead of what `to` has; empty when there is none. Errors:
 * DOPPEL_ERROR_MEMORY. */
doppel_status dp_url_make(doppel_slice url, const doppel_slice *base, unsigned without, dp_buffer *to);

/* The address of a document: the target of a redirect, else the page's own canonical link, else its URL. */
doppel_status dp_document_address(const doppel_document *document, const doppel_page *page, unsigned without,
                                  dp_buffer *to);

#endif

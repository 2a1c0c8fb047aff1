/* archive.h - web archives: a head that tells a length, the content, and the next record. WARC and ARC differ in their
 * heads alone; here is what they have in common: where a record ends, what to do when a length is wrong, and how
 * content that came by HTTP becomes a document.
 *
 * A length is believed when a record (or the end of the file) follows the content. If not, the record is bad, and the
 * next line that starts a record with a good head, looked for from behind the bad one's head, is where reading goes on.
 */
#ifndef DP_ARCHIVE_H
#define DP_ARCHIVE_H

#include "input/reader.h"

/* A head longer than this is broken. */
#define DP_ARCHIVE_MAX_HEAD ((size_t)1 << 20)

typedef enum dp_answer { DP_NO, DP_YES, DP_UNSURE /* too few bytes to say */ } dp_answer;

typedef struct dp_archive {
    /* Whether a record starts at p. */
    dp_answer (*starts)(const char *p, size_t size);
    /* Reads the head of the record that starts at p: its bytes, with what separates it from the content, and the bytes
     * of the content. DP_NO: it is broken. */
    dp_answer (*head)(const char *p, size_t size, size_t *length, uint64_t *content);
    /* Makes a document of a whole record and gives it to the work, or leaves it out. */
    void (*give)(dp_reader *reader, dp_unit *unit, const dp_place *at, size_t head_length);
} dp_archive;

/* The `end` and `read` of a format. */
size_t dp_archive_end(const dp_archive *archive, dp_mark *mark, const char *data, size_t size);
void dp_archive_read(const dp_archive *archive, dp_reader *reader, dp_unit *unit, const char *file);

/* What a record says of its content. */
typedef struct dp_archived {
    doppel_slice bytes; /* with the head of HTTP, if it came with one */
    doppel_slice type;  /* where there is no such head */
    dp_answer http;     /* whether it has one; DP_UNSURE: if it begins so */
} dp_archived;

/* Gives the document if its content is text, a page or a redirect; content of other kinds and failures that the server
 * tells of are left out. `document` has an id and a URL. */
void dp_archive_content(dp_reader *reader, dp_unit *unit, const dp_archived *content, doppel_document *document);

#endif

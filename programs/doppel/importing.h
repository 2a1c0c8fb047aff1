/* importing.h - doppel import: from a line of an export to an item of the engine. */
#ifndef IMPORTING_H
#define IMPORTING_H

#include "exported.h"
#include "feeding.h"
#include "settings.h"
#include "verdicts.h"

/* What an item of the batch points to, until the batch is over. */
typedef struct import_held {
    doppel_document *fields;
    uint64_t fingerprint[2];
    uint8_t digest[32];
    uint64_t *set;
    char *sample;
    doppel_stored stored; /* what it was */
} import_held;

typedef struct import_job {
    feed feed; /* first: the feed's calls get it */
    engine_cli cli;
    settings settings; /* of the first export */
    name_list fields;  /* that the index keeps */
    import_held *held; /* feed.batch of them */
    bool fresh;        /* the index was empty */
    uint64_t now;
    uint64_t documents, copies; /* that came in */
    uint64_t known;             /* that were there with the same id and words */
    uint64_t duplicates;        /* of what the index had */
    uint64_t expired, orphans;  /* left out: too old; copies whose original is gone */
} import_job;

/* feed.turn once the engine is open: a document, or a copy, of an export, or a plain record. */
feed_answer import_item(import_job *job, const doppel_document *from, doppel_item *item, doppel_error *why);

/* feed.over */
doppel_status import_over(feed *f);

/* Whether the extra field is this text. */
bool export_is(const doppel_document *from, int which, const char *text);

#endif

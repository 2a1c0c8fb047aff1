/* export_format.h - the lines of an export, which doppel export writes and doppel import reads.
 *
 * The first line has the settings of the index: {"doppel":"index","version":1,"recipe":...,...}. Then come the
 * documents and the copies in the order they were added, so that an original comes before its copies; each is a JSONL
 * record like any other, with these additional members. */
#ifndef ENGINE_EXPORT_FORMAT_H
#define ENGINE_EXPORT_FORMAT_H

#define EXPORT_KIND "index"
#define EXPORT_VERSION "1"

/* Members besides id, url, title and text; a reader takes at most 32. The first line has EXPORT_VERSION as "version",
 * too. */
enum {
    EXPORT_DOPPEL,      /* first line: EXPORT_KIND */
    EXPORT_FIELDS,      /* an object */
    EXPORT_FINGERPRINT, /* hexadecimal digits, the high half first */
    EXPORT_DIGEST,      /* 64 of them; null: no words */
    EXPORT_WORDS,
    EXPORT_SET,        /* 16 of them for each feature hash, ascending */
    EXPORT_ADDED,      /* seconds since 1970 */
    EXPORT_EXPIRES,    /* the same; 0: never */
    EXPORT_CANONICAL,  /* the canonical URL, which may be one that the page gave */
    EXPORT_DUPLICATES, /* duplicates seen, an array: by URL, by content, by title */
    EXPORT_LAST,       /* when the last of them was seen */
    EXPORT_ORIGINAL,   /* of a copy: the id of its original */
    EXPORT_REASON,     /* of a copy */
    EXPORT_EVIDENCE,   /* of a copy: an object, as in a verdict */
    EXPORT_GONE,       /* earlier exports, of a copy: true when its original no longer existed */
    EXPORT_ORIGIN,     /* where it came from, if its origin was given */
    EXPORT_SAMPLE,     /* instead of `set`: two digits for each byte of doppel_stored.sample */
    EXPORT_COPIES,     /* of the duplicates seen, those that are copies in the export, an array, too */
    EXPORT_KEYS
};
#define EXPORT_NAMES                                                                                                 \
    {                                                                                                                \
        "doppel", "fields", "fingerprint", "digest", "words", "set", "added", "expires", "canonicalUrl",             \
            "duplicatesBy", "lastDuplicate", "originalId", "reason", "evidence", "originalGone", "origin", "sample", \
            "copiesBy"                                                                                               \
    }

#endif

/* reasons.h - why a document is a duplicate: the reasons of verdicts, by number. Counters by reason
 * (doppel_engine_stats.verdicts_by) are in this order; doppel_stored.duplicates_by and
 * doppel_engine_stats.duplicates_by begin with REASON_URL. */
#ifndef COMMON_REASONS_H
#define COMMON_REASONS_H

typedef enum reason_kind { REASON_NONE, REASON_URL, REASON_CONTENT, REASON_TITLE, REASON_KINDS } reason_kind;

/* As verdicts have them; that of REASON_NONE is NULL. */
extern const char *const reason_names[REASON_KINDS];

/* The reason of a name; REASON_NONE for NULL, and for a name that is none. */
reason_kind reason_of(const char *name);

#endif

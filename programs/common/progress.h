/* progress.h - how far the work is, on stderr when it is a terminal: documents, MB/s, time left. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <stdint.h>

/* Begins; `what` is done, e.g. "reading", comes first in the line. Without it the other calls do nothing. */
void progress_begin(const char *what);

/* Begins again as `what`, unless that is being done already. */
void progress_change(const char *what);

/* Shows the state, a few times a second at most. `total` 0: unknown. The shape of doppel_input_options.progress. */
void progress_show(uint64_t bytes, uint64_t total, uint64_t documents, void *user);

/* The same where work is counted in parts of the whole, or in fingerprints where `total` is 0. The shape of
 * doppel_join_options.progress. */
void progress_part(uint64_t done, uint64_t total, void *user);

/* Takes the line off the terminal, before something else is written there. */
void progress_clear(void);

/* Ends: the line is gone. */
void progress_end(void);

#endif

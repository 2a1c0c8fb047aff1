/* progress.h - how far the work is, on stderr: documents, MB/s, time left. On a terminal a line is redrawn in
 * place a few times a second; elsewhere a line is added every 30 s. With message_quiet (message.h) there is none. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <stdint.h>

/* Begins; `what` is done, e.g. "reading", comes first in the line. Without it the other calls do nothing. */
void progress_begin(const char *what);

/* The same for one of several steps, by its number from 1 on: the time left is that of this step. */
void progress_begin_step(const char *what, unsigned number, unsigned steps);

/* Begins again as `what`, unless that is being done already. */
void progress_change(const char *what);

/* No more than this many documents will be read, which ends the time left; 0: all. */
void progress_limit(uint64_t documents);

/* Shows the state, if it is time for a line. `total` 0: unknown. The shape of doppel_input_options.progress. */
void progress_show(uint64_t bytes, uint64_t total, uint64_t documents, void *user);

/* The same where work is counted in parts of the whole, or in fingerprints where `total` is 0. The shape of
 * doppel_join_options.progress. */
void progress_part(uint64_t done, uint64_t total, void *user);

/* Clears the line, before something else is written to the terminal. */
void progress_clear(void);

/* Clears the line and ends. */
void progress_end(void);

#endif

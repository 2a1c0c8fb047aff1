/* guard.h - sections in which a page that cannot be read is an error and not the end of the process.
 *
 * A mapped file that was cut short, or a disk that fails, raises SIGBUS where a page is touched; LMDB, where it finds
 * its own data wrong, calls a function and then abort(). Inside a section both lead back to its beginning:
 *
 *     dp_guard guard;
 *     if (DP_GUARD_ENTER(guard))
 *         return MDB_CORRUPTED;       (reached a second time, after a fault; the section has ended)
 *     ... reads pages, takes no locks and no memory that has to be given back ...
 *     dp_guard_leave(&guard);
 *
 * Locals that change inside a section are volatile, or not used after a fault. Sections nest. A SIGBUS outside of them
 * goes to whoever handled it before. */
#ifndef DP_STORE_GUARD_H
#define DP_STORE_GUARD_H

#include <setjmp.h>

typedef struct dp_guard {
    sigjmp_buf place;
    struct dp_guard *outer;
} dp_guard;

/* Before the first section, and again whenever the program may have set a handler of its own. */
void dp_guard_install(void);

void dp_guard_push(dp_guard *guard);
void dp_guard_leave(dp_guard *guard);

/* The signal is not blocked while it is handled, so there is no mask to be kept. */
#define DP_GUARD_ENTER(guard) (dp_guard_push(&(guard)), sigsetjmp((guard).place, 0))

/* Back to the beginning of the innermost section of this thread; returns when there is none. */
void dp_guard_raise(void);

#endif

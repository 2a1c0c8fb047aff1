/* pages.h - LMDB's data format (version 1), read without trusting a byte of it.
 *
 * LMDB itself trusts its pages: a flipped bit makes it follow a pointer out of the file, or silently end a walk early.
 * Here every page number, offset and length is checked against the file and the page before it is used, so that any
 * bytes give a result or MDB_CORRUPTED.
 *
 *     dp_map_open        a file, mapped to be read
 *     dp_pages_begin     one moment of it, by a copy of its meta page
 *     dp_btree_named     a database
 *     dp_btree_get       a value
 *     dp_cursor_seek     all values from a number on: dp_cursor_next
 *     dp_dups_each       the numbers of one key of `links`
 *     dp_btree_check     whether LMDB may change a key of a database
 *     dp_free_check      whether LMDB may take pages from its list of free ones
 *
 * A get looks at the nodes on its way alone, as fast as LMDB does: that a value is the right one shows by its checksum.
 * That a key is not there is believed only after all pages on the way to it have been checked. A cursor checks every
 * page as a whole: what it has, that keys ascend, and that they lie between those of the page above.
 *
 * The caller is inside a guarded section (dp_guard): a file that is truncated while it is
 * mapped, or a disk that fails, shows only when a page is touched. */
#ifndef DP_STORE_PAGES_H
#define DP_STORE_PAGES_H

#include "base/base.h"

#include <lmdb.h>
#include <setjmp.h>

/* DP_TRY for what LMDB and the system say: 0, or a reason. */
#define DP_TRY_REASON(expression)         \
    do {                                  \
        int dp_try_reason = (expression); \
        if (dp_try_reason)                \
            return dp_try_reason;         \
    } while (0)

/* ---- sections in which a page that cannot be read is an error and not the end of the process ---- */

/* A mapped file that was truncated, or a disk that fails, raises SIGBUS where a page is touched; LMDB, where it finds
 * its own data wrong, calls a function and then abort(). Inside a section both jump back to its beginning:
 *
 *     DP_GUARD(guard, MDB_CORRUPTED);     (returns that, after a fault; the section has ended)
 *     ... reads pages, takes no locks and no memory that has to be freed ...
 *     dp_guard_leave(&guard);
 *
 * Locals that change inside a section are volatile, or not used after a fault. Sections nest. A SIGBUS outside of them
 * goes to the previous handler. */
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
#define DP_GUARD(guard, otherwise) \
    dp_guard guard;                \
    if (DP_GUARD_ENTER(guard))     \
    return otherwise

/* Back to the beginning of the innermost section of this thread; returns when there is none. */
void dp_guard_raise(void);

/* ---- the file ---- */

typedef struct dp_map dp_map;

/* Maps an open file, which may grow and stays the caller's; returns an errno. */
int dp_map_open(dp_map **map, int file);
void dp_map_close(dp_map *map);

/* What is mapped: *bytes of them at the pointer, valid until the map is closed. `wanted` bytes of the file are covered,
 * if it has as many. NULL: no address space. */
const uint8_t *dp_map_cover(dp_map *map, uint64_t wanted, uint64_t *bytes);

/* Whether the file is as long as it was: nothing of LMDB's ever makes it shorter. */
bool dp_map_is_whole(dp_map *map);

/* ---- meta pages ---- */

/* A database: what LMDB keeps of it. */
typedef struct dp_btree {
    uint64_t root, entries;
    uint64_t branch_pages, leaf_pages, overflow_pages;
    unsigned depth, flags;
    uint32_t key_size; /* of pages that have keys alone, without nodes; 0: of others */
} dp_btree;

/* Bytes of a meta page that mean something, with the page's header. */
enum { DP_META_BYTES = 152 };

typedef struct dp_meta {
    uint32_t page_size;
    uint64_t transaction, last; /* the last page in use */
    dp_btree free, main;
    bool sound;        /* plausible for LMDB; after a failed commit the earlier of the two may not be */
    uint64_t checksum; /* XXH3 of the bytes */
} dp_meta;

/* False: it is none. */
bool dp_meta_decode(const uint8_t bytes[DP_META_BYTES], dp_meta *meta);

/* ---- one moment ---- */

typedef struct dp_pages {
    const uint8_t *map;
    uint64_t count; /* pages that can be read: in the file, and not above the last */
    uint32_t size;
    dp_meta meta;
} dp_pages;

/* 0, MDB_CORRUPTED or an errno. The pages stay what they are while a transaction of LMDB's holds that moment. */
int dp_pages_begin(dp_pages *pages, dp_map *map, const dp_meta *meta);

/* A database by its name, with the flags it must have; MDB_NOTFOUND, MDB_CORRUPTED. */
int dp_btree_named(const dp_pages *pages, const char *name, unsigned flags, dp_btree *tree);

/* A value, as it is in its page. */
typedef struct dp_page_value {
    MDB_val value;
    unsigned flags; /* of LMDB's nodes; for dp_dups_each */
    MDB_val key;    /* by a cursor, of a database by text */
} dp_page_value;

/* The value of a number, or of a text in a database that is not by number. 0, MDB_NOTFOUND, MDB_CORRUPTED. */
int dp_btree_get(const dp_pages *pages, const dp_btree *tree, uint64_t number, dp_page_value *found);
int dp_btree_get_text(const dp_pages *pages, const dp_btree *tree, const char *key, dp_page_value *found);

/* ---- all of a database ---- */

enum { DP_LEVELS = 32 };

typedef struct dp_cursor {
    const dp_pages *pages;
    dp_btree tree;
    int top; /* the current level; -1: it has ended */
    uint64_t from;
    struct {
        const uint8_t *page;
        unsigned next, count;
        uint64_t low, high; /* its keys lie between these, both included */
    } level[DP_LEVELS];
    uint64_t
        *used; /* a bit for each page, set when it is met; NULL: not wanted. A page that is met twice is damaged. */
} dp_cursor;

/* Before the first number that is not below `from`. */
void dp_cursor_seek(dp_cursor *cursor, const dp_pages *pages, const dp_btree *tree, uint64_t from);
/* The next number and its value (data NULL: that cannot be read). MDB_NOTFOUND at the end; MDB_CORRUPTED for a page
 * that is damaged: the next call continues after it. */
int dp_cursor_next(dp_cursor *cursor, uint64_t *number, dp_page_value *found);

/* Each number of a value of `links`, ascending, until `each` returns something other than 0, which is then returned. 0
 * or MDB_CORRUPTED. `used` as in dp_cursor. */
int dp_dups_each(const dp_pages *pages, const dp_page_value *found, int (*each)(uint64_t number, void *user),
                 void *user, uint64_t *used);

/* ---- what LMDB is about to change ---- */

/* Checks the pages on the way to a number and their neighbours on both sides, which LMDB may merge them with; of a
 * value with pages of its own, their head. `dup` of a database with several values for a key: the one that comes or
 * goes; 0: all. `checked` has the pages that were checked and are not changed before the transaction ends. 0,
 * MDB_CORRUPTED or ENOMEM. */
int dp_btree_check(const dp_pages *pages, const dp_btree *tree, uint64_t number, uint64_t dup, dp_hashmap *checked);
/* The same for all of a small database by text. */
int dp_btree_check_text(const dp_pages *pages, const dp_btree *tree);

/* The list of free pages: numbers in order and inside the file, none twice in one list. *checksum is of all of them, or
 * 0 when they are too many for that to be done with every commit; *free is how many they are. `used` as in
 * dp_cursor. */
int dp_free_check(const dp_pages *pages, uint64_t *checksum, uint64_t *free, uint64_t *used);

#endif

/* pages.c - LMDB's pages, read without trust, and the guarded sections they are read in.
 *
 * A file is pages of one size, two meta pages first. A page has a header of 16 bytes: its number (8), padding (2),
 * flags (2), and then where the offsets of its nodes end (2) and where the nodes begin (2), or, of a value that has
 * pages of its own, how many these are (4). The offsets, 2 bytes each, follow in the order of keys; the nodes fill the
 * page from its end, without gaps. A node has 8 bytes, then its key, then its value: in a branch the number of a page
 * (6) and the length of the key (2); in a leaf the length of the value (4), flags (2) and the length of the key (2).
 * The key of a branch's first node does not count. A database is 48 bytes: padding, or the length of keys in pages
 * without nodes (4), flags (2), levels (2), pages that are branches, leaves and values (8 each), entries (8) and the
 * root (8). */
#include "store/pages.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

enum { HEADER = 16, PAGE_FLAGS = 10, PAGE_LOWER = 12, PAGE_UPPER = 14, PAGE_SPAN = 12 };
enum { IS_BRANCH = 1, IS_LEAF = 2, IS_VALUE = 4, IS_META = 8, IS_DIRTY = 16, IS_KEYS = 32, IS_INSIDE = 64 };
enum { NODE = 8, NODE_ELSEWHERE = 1, NODE_DATABASE = 2, NODE_DUPS = 4 };
enum { DATABASE = 48, FIRST_PAGE = 2 };
#define NO_PAGE UINT64_MAX
#define MAGIC 0xBEEFC0DEu
#define VERSION 1

static unsigned load16(const uint8_t *at) {
    return (unsigned)(at[0] | at[1] << 8);
}

/* ---- guarded sections: a list for each thread, and one handler of SIGBUS for all ---- */

static _Thread_local dp_guard *volatile innermost;
static struct sigaction handler_before;
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;

/* A thread that blocks SIGBUS would be killed by it, handler or not. */
static void unblock(void) {
    sigset_t fault;
    sigemptyset(&fault);
    sigaddset(&fault, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &fault, NULL);
}

void dp_guard_push(dp_guard *guard) {
    static _Thread_local bool unblocked;
    if (!unblocked)
        unblock();
    unblocked = true;
    guard->outer = innermost;
    innermost = guard;
}

void dp_guard_leave(dp_guard *guard) {
    innermost = guard->outer;
}

void dp_guard_raise(void) {
    dp_guard *guard = innermost;
    if (!guard)
        return;
    innermost = guard->outer;
    siglongjmp(guard->place, 1);
}

/* A fault outside of all sections is handled as it would have been without this handler. With the default handler the
 * access is made again, and ends the process. A handler that was set after ours, and passes on to it, would come back
 * here. */
static void on_fault(int number, siginfo_t *info, void *context) {
    static _Thread_local volatile sig_atomic_t passing;
    dp_guard_raise();
    bool again = passing;
    passing = 1;
    if (again)
        signal(number, SIG_DFL);
    else if (handler_before.sa_flags & SA_SIGINFO)
        handler_before.sa_sigaction(number, info, context);
    else if (handler_before.sa_handler != SIG_DFL && handler_before.sa_handler != SIG_IGN)
        handler_before.sa_handler(number);
    else
        signal(number, SIG_DFL);
    passing = 0;
}

void dp_guard_install(void) {
    struct sigaction now, ours = {.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    ours.sa_sigaction = on_fault;
    sigemptyset(&ours.sa_mask);
    pthread_mutex_lock(&install_lock);
    if (!sigaction(SIGBUS, NULL, &now) && !(now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_fault)) {
        handler_before = now;
        sigaction(SIGBUS, &ours, NULL);
    }
    pthread_mutex_unlock(&install_lock);
}

/* ---- the file ---- */

/* A file that has outgrown its map gets another; earlier ones stay mapped, as values in them may be in use. */
typedef struct region {
    uint8_t *at;
    uint64_t length;
    struct region *before;
} region;

struct dp_map {
    int file;
    pthread_mutex_t lock;
    region *newest;
    uint64_t there; /* bytes of the file that are mapped */
};

int dp_map_open(dp_map **map, int file) {
    dp_map *made = calloc(1, sizeof *made);
    *map = NULL;
    if (!made)
        return ENOMEM;
    made->file = file;
    pthread_mutex_init(&made->lock, NULL);
    *map = made;
    uint64_t bytes;
    if (dp_map_cover(made, 1, &bytes))
        return 0;
    dp_map_close(made);
    *map = NULL;
    return ENOMEM;
}

void dp_map_close(dp_map *map) {
    if (!map)
        return;
    for (region *r = map->newest, *before; r; r = before) {
        before = r->before;
        munmap(r->at, r->length);
        free(r);
    }
    pthread_mutex_destroy(&map->lock);
    free(map);
}

/* Twice the size of the file, so that it may grow, or if that fails, its size. */
static bool add_region(dp_map *map, uint64_t size) {
    enum { LEAST = 1 << 20 };
    region *made = calloc(1, sizeof *made);
    if (!made)
        return false;
    void *at = MAP_FAILED;
    made->length = size < LEAST / 2 ? LEAST : 2 * size;
    for (int tries = 0; tries < 2 && at == MAP_FAILED; tries++) {
        if (tries)
            made->length = size ? size : 1;
        at = mmap(NULL, made->length, PROT_READ, MAP_SHARED, map->file, 0);
    }
    if (at == MAP_FAILED) {
        free(made);
        return false;
    }
    /* As LMDB does: pages are read one by one. */
    (void)madvise(at, made->length, MADV_RANDOM);
    made->at = at;
    made->before = map->newest;
    map->newest = made;
    return true;
}

const uint8_t *dp_map_cover(dp_map *map, uint64_t wanted, uint64_t *bytes) {
    struct stat known;
    bool good = true;
    pthread_mutex_lock(&map->lock);
    if (wanted > map->there || !map->newest) {
        uint64_t size = fstat(map->file, &known) ? 0 : (uint64_t)known.st_size;
        if (!map->newest || size > map->newest->length)
            good = add_region(map, size);
        if (good)
            map->there = size;
    }
    const uint8_t *at = good ? map->newest->at : NULL;
    *bytes = map->there;
    pthread_mutex_unlock(&map->lock);
    return at;
}

bool dp_map_is_whole(dp_map *map) {
    struct stat known;
    pthread_mutex_lock(&map->lock);
    bool whole = !fstat(map->file, &known) && (uint64_t)known.st_size >= map->there;
    if (whole)
        map->there = (uint64_t)known.st_size < map->newest->length ? (uint64_t)known.st_size : map->there;
    pthread_mutex_unlock(&map->lock);
    return whole;
}

/* ---- meta pages ---- */

static void decode_database(const uint8_t *at, dp_btree *tree) {
    *tree = (dp_btree){.key_size = dp_load32(at),
                       .flags = load16(at + 4),
                       .depth = load16(at + 6),
                       .branch_pages = dp_load64(at + 8),
                       .leaf_pages = dp_load64(at + 16),
                       .overflow_pages = dp_load64(at + 24),
                       .entries = dp_load64(at + 32),
                       .root = dp_load64(at + 40)};
}

/* A database is empty only if all its fields say so. No root is a meta page. */
static bool is_database(const dp_btree *tree, unsigned flags) {
    bool empty = tree->root == NO_PAGE;
    return tree->flags == flags && tree->depth <= DP_LEVELS && empty == !tree->depth && empty == !tree->entries &&
           empty == !tree->leaf_pages && tree->root >= FIRST_PAGE;
}

bool dp_meta_decode(const uint8_t bytes[DP_META_BYTES], dp_meta *meta) {
    const uint8_t *at = bytes + HEADER;
    *meta = (dp_meta){.checksum = XXH3_64bits(bytes, DP_META_BYTES)};
    if (!(load16(bytes + PAGE_FLAGS) & IS_META) || dp_load32(at) != MAGIC || dp_load32(at + 4) != VERSION)
        return false;
    /* The page size is where a database has its key size. */
    decode_database(at + 24, &meta->free);
    decode_database(at + 24 + DATABASE, &meta->main);
    meta->page_size = meta->free.key_size;
    meta->free.key_size = 0;
    meta->free.flags &= ~(unsigned)MDB_NOSUBDIR; /* of the environment it was made in */
    meta->last = dp_load64(at + 24 + 2 * DATABASE);
    meta->transaction = dp_load64(at + 24 + 2 * DATABASE + 8);
    uint32_t size = meta->page_size;
    if (size < 256 || size > 65536 || size & (size - 1))
        return false;
    meta->sound = meta->last >= 1 && meta->last < UINT64_MAX / size - 1 && is_database(&meta->free, MDB_INTEGERKEY) &&
                  is_database(&meta->main, 0) && !meta->main.key_size;
    return true;
}

int dp_pages_begin(dp_pages *pages, dp_map *map, const dp_meta *meta) {
    uint64_t bytes;
    *pages = (dp_pages){.meta = *meta, .size = meta->page_size};
    pages->map = dp_map_cover(map, (meta->last + 1) * meta->page_size, &bytes);
    pages->count = bytes / meta->page_size;
    if (pages->count > meta->last + 1)
        pages->count = meta->last + 1;
    return pages->map ? 0 : ENOMEM;
}

/* ---- pages ---- */

static const uint8_t *page_at(const dp_pages *p, uint64_t number) {
    if (number < FIRST_PAGE || number >= p->count)
        return NULL;
    const uint8_t *page = p->map + number * p->size;
    return dp_load64(page) == number ? page : NULL;
}

/* How many nodes a page has that a tree leads to; 0: it is damaged. */
static unsigned node_count(const dp_pages *p, const dp_btree *tree, const uint8_t *page, bool leaf) {
    unsigned flags = load16(page + PAGE_FLAGS), lower = load16(page + PAGE_LOWER), upper = load16(page + PAGE_UPPER);
    unsigned right = !leaf ? IS_BRANCH : tree->key_size ? IS_LEAF | IS_KEYS : IS_LEAF;
    /* Offsets end where nodes may begin: 65,536 does not fit 16 bits. */
    uint32_t end = upper ? upper : 65536;
    if (flags != right || lower <= HEADER || lower % 2 || lower > end || end > p->size)
        return 0;
    unsigned count = (lower - HEADER) / 2;
    if (leaf && tree->key_size && HEADER + (uint64_t)count * tree->key_size > p->size)
        return 0;
    return count;
}

typedef struct node {
    const uint8_t *key, *value;
    unsigned key_length, flags;
    uint64_t child; /* of a branch: a page; of a leaf: the value's length */
    uint32_t bytes; /* all of it, in the page */
} node;

/* A node of a page that node_count has looked at; false: it does not lie in the page. */
static bool node_at(const dp_pages *p, const uint8_t *page, bool leaf, unsigned i, node *n) {
    uint32_t at = load16(page + HEADER + 2 * i);
    if (at < load16(page + PAGE_UPPER) || at % 2 || at + NODE > p->size)
        return false;
    const uint8_t *from = page + at;
    *n = (node){.key = from + NODE, .key_length = load16(from + 6), .flags = load16(from + 4)};
    n->child = dp_load32(from);
    if (!leaf)
        n->child |= (uint64_t)n->flags << 32;
    n->value = n->key + n->key_length;
    uint64_t inside = !leaf ? 0 : n->flags & NODE_ELSEWHERE ? 8 : n->child, bytes = NODE + n->key_length + inside;
    if (at + bytes > p->size)
        return false;
    n->bytes = (uint32_t)(bytes + bytes % 2);
    return true;
}

/* The key of a node that is a number. */
static bool number_at(const dp_pages *p, const dp_btree *tree, const uint8_t *page, bool leaf, unsigned i,
                      uint64_t *number) {
    node n;
    if (leaf && tree->key_size) {
        *number = dp_load64(page + HEADER + (size_t)i * 8);
        return true;
    }
    if (!leaf && !i) {
        *number = 0;
        return true;
    }
    if (!node_at(p, page, leaf, i, &n) || n.key_length != 8)
        return false;
    *number = dp_load64(n.key);
    return true;
}

/* ---- values ---- */

static uint64_t span_of(const dp_pages *p, uint64_t length) {
    return (HEADER + length + p->size - 1) / p->size;
}

/* The head of a value with pages of its own. */
static const uint8_t *value_pages(const dp_pages *p, const node *n) {
    uint64_t first = dp_load64(n->value), span = span_of(p, n->child);
    const uint8_t *page = page_at(p, first);
    if (!page || load16(page + PAGE_FLAGS) != IS_VALUE || dp_load32(page + PAGE_SPAN) != span ||
        span > p->count - first)
        return NULL;
    return page + HEADER;
}

static bool value_at(const dp_pages *p, const node *n, dp_page_value *found) {
    const uint8_t *data = n->flags & NODE_ELSEWHERE ? value_pages(p, n) : n->value;
    *found = (dp_page_value){.value = {data ? (size_t)n->child : 0, (void *)(uintptr_t)data}, .flags = n->flags};
    return data != NULL;
}

/* Whether a node's flags are those of its database. */
static bool flags_fit(const dp_btree *tree, const node *n) {
    if (tree->flags & MDB_DUPSORT)
        return !n->flags ? n->child == 8
                         : n->flags == NODE_DUPS || (n->flags == (NODE_DUPS | NODE_DATABASE) && n->child == DATABASE);
    return !n->flags || n->flags == NODE_ELSEWHERE || (n->flags == NODE_DATABASE && n->child == DATABASE);
}

/* ---- a page as a whole ---- */

static int compare_texts(const node *a, const node *b) {
    unsigned both = a->key_length < b->key_length ? a->key_length : b->key_length;
    int order = memcmp(a->key, b->key, both);
    return order ? order : a->key_length < b->key_length ? -1 : a->key_length > b->key_length;
}

static bool keys_are_sound(const uint8_t *page, unsigned count, uint64_t low, uint64_t high) {
    for (unsigned i = 0; i < count; i++) {
        uint64_t number = dp_load64(page + HEADER + (size_t)i * 8);
        if (number < low || number > high || (i && number == low))
            return false;
        low = number;
    }
    return true;
}

/* Gives how many nodes it has; 0: it is damaged. By text: `low` and `high` do not count. */
static unsigned check_page(const dp_pages *p, const dp_btree *tree, const uint8_t *page, bool leaf, uint64_t low,
                           uint64_t high) {
    bool numbers = tree->flags & MDB_INTEGERKEY;
    unsigned count = node_count(p, tree, page, leaf);
    uint64_t bytes = 0;
    node n, before = {0};
    if (!count)
        return 0;
    if (leaf && tree->key_size)
        return keys_are_sound(page, count, low, high) ? count : 0;
    for (unsigned i = 0; i < count; i++) {
        if (!node_at(p, page, leaf, i, &n) || (leaf && !flags_fit(tree, &n)))
            return 0;
        bytes += n.bytes;
        if (!leaf && !i)
            continue;
        if (numbers) {
            uint64_t number = n.key_length == 8 ? dp_load64(n.key) : 0;
            bool first = i == (leaf ? 0 : 1);
            if (n.key_length != 8 || number < low || number > high || (!first && number == low))
                return 0;
            low = number;
        } else if (i > (leaf ? 0U : 1U) && compare_texts(&before, &n) >= 0) {
            return 0;
        }
        before = n;
    }
    return bytes == p->size - load16(page + PAGE_UPPER) ? count : 0;
}

/* ---- one value ---- */

/* How a key compares with that of a node: by number, or by text. False: the node is damaged. */
typedef struct wanted {
    uint64_t number;
    const char *text; /* NULL: by number */
    size_t length;
} wanted;

static bool compare_key(const dp_pages *p, const dp_btree *tree, const uint8_t *page, bool leaf, unsigned i,
                        const wanted *w, int *order) {
    node n;
    if (!w->text) {
        uint64_t number;
        if (!number_at(p, tree, page, leaf, i, &number))
            return false;
        *order = w->number < number ? -1 : w->number > number;
        return true;
    }
    if (!node_at(p, page, leaf, i, &n))
        return false;
    const node key = {.key = (const uint8_t *)w->text, .key_length = (unsigned)w->length};
    *order = !leaf && !i ? 1 : compare_texts(&key, &n);
    return true;
}

/* The last node that is not above a key; -1: all are, -2: the page is damaged. */
static int find_node(const dp_pages *p, const dp_btree *tree, const uint8_t *page, bool leaf, unsigned count,
                     const wanted *w, bool *equal) {
    unsigned low = 0, high = count;
    *equal = false;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        int order;
        if (!compare_key(p, tree, page, leaf, middle, w, &order))
            return -2;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
        *equal = *equal || !order;
    }
    return (int)low - 1;
}

/* A page on the way and its neighbours at the same level; 0: there is none. */
typedef struct beside {
    uint64_t left, middle, right;
} beside;

/* A child of a branch that was checked. */
static uint64_t child_of(const dp_pages *p, uint64_t branch, unsigned i) {
    node n;
    return node_at(p, p->map + branch * p->size, false, i, &n) ? n.child : 0;
}

static unsigned count_of(const dp_pages *p, uint64_t page) {
    return (load16(p->map + page * p->size + PAGE_LOWER) - HEADER) / 2;
}

/* The level below. */
static beside step_down(const dp_pages *p, const dp_btree *tree, const beside *b, uint64_t number) {
    bool equal;
    unsigned count = count_of(p, b->middle);
    int at = find_node(p, tree, p->map + b->middle * p->size, false, count, &(wanted){.number = number}, &equal);
    unsigned i = at < 0 ? 0 : (unsigned)at;
    beside below = {.middle = child_of(p, b->middle, i)};
    if (i)
        below.left = child_of(p, b->middle, i - 1);
    else if (b->left)
        below.left = child_of(p, b->left, count_of(p, b->left) - 1);
    if (i + 1 < count)
        below.right = child_of(p, b->middle, i + 1);
    else if (b->right)
        below.right = child_of(p, b->right, 0);
    return below;
}

/* `number` 0: there is none; `checked` NULL: nothing is remembered. A page that was checked as one of another kind is
 * checked again. */
static int check_one(const dp_pages *p, const dp_btree *tree, uint64_t number, bool leaf, dp_hashmap *checked) {
    uint64_t mark = number << 2 | (!leaf ? 0 : tree->key_size ? 1 : 2);
    if (!number || (checked && dp_hashmap_find(checked, mark)))
        return 0;
    const uint8_t *page = page_at(p, number);
    if (!page || !check_page(p, tree, page, leaf, 0, UINT64_MAX))
        return MDB_CORRUPTED;
    uint64_t *value = checked ? dp_hashmap_add(checked, mark) : &mark;
    if (!value)
        return ENOMEM;
    *value = 1;
    return 0;
}

/* Checks the pages on the way to a number and their neighbours; *b are the leaves at the end. The tree has levels. */
static int check_path(const dp_pages *p, const dp_btree *tree, uint64_t number, dp_hashmap *checked, beside *b) {
    *b = (beside){.middle = tree->root};
    for (unsigned level = 1;; level++) {
        bool leaf = level == tree->depth;
        DP_TRY_REASON(check_one(p, tree, b->middle, leaf, checked));
        DP_TRY_REASON(check_one(p, tree, b->left, leaf, checked));
        DP_TRY_REASON(check_one(p, tree, b->right, leaf, checked));
        if (leaf)
            return 0;
        *b = step_down(p, tree, b, number);
        if (!b->middle)
            return MDB_CORRUPTED;
    }
}

/* Proves that a number is absent: the pages on the path to it are sound, and so are their neighbours, the last number
 * of the one before is lower, also than those of its leaf, and the first of the one after is higher. So it is
 * nowhere. */
static int prove_absence(const dp_pages *p, const dp_btree *tree, uint64_t number) {
    beside b;
    if (!tree->depth)
        return MDB_NOTFOUND;
    DP_TRY_REASON(check_path(p, tree, number, NULL, &b));
    uint64_t first, last, below = 0, above = UINT64_MAX;
    const uint8_t *middle = p->map + b.middle * p->size;
    if (!number_at(p, tree, middle, true, 0, &first) ||
        !number_at(p, tree, middle, true, count_of(p, b.middle) - 1, &last) ||
        (b.left && !number_at(p, tree, p->map + b.left * p->size, true, count_of(p, b.left) - 1, &below)) ||
        (b.right && !number_at(p, tree, p->map + b.right * p->size, true, 0, &above)))
        return MDB_CORRUPTED;
    bool before = !b.left || (below < number && below < first), after = !b.right || (above > number && above > last);
    return before && after ? MDB_NOTFOUND : MDB_CORRUPTED;
}

/* For an absent text: whether the pages on the path to it can be trusted. */
static int check_absence(const dp_pages *p, const dp_btree *tree, const wanted *w) {
    uint64_t number = tree->root;
    for (unsigned level = 1; level <= tree->depth; level++) {
        const uint8_t *page = page_at(p, number);
        bool leaf = level == tree->depth, equal;
        unsigned count = page ? check_page(p, tree, page, leaf, 0, UINT64_MAX) : 0;
        int at = count && !leaf ? find_node(p, tree, page, leaf, count, w, &equal) : 0;
        node n;
        if (!count || at < 0)
            return MDB_CORRUPTED;
        if (leaf)
            break;
        if (!node_at(p, page, leaf, (unsigned)at, &n))
            return MDB_CORRUPTED;
        number = n.child;
    }
    return MDB_NOTFOUND;
}

static int get(const dp_pages *p, const dp_btree *tree, const wanted *w, dp_page_value *found) {
    uint64_t number = tree->root;
    for (unsigned level = 1; level <= tree->depth; level++) {
        const uint8_t *page = page_at(p, number);
        bool leaf = level == tree->depth, equal;
        unsigned count = page ? node_count(p, tree, page, leaf) : 0;
        int at = count ? find_node(p, tree, page, leaf, count, w, &equal) : -2;
        node n;
        if (at == -2)
            return MDB_CORRUPTED;
        if (leaf && !equal)
            break;
        if (at < 0 || !node_at(p, page, leaf, (unsigned)at, &n))
            return MDB_CORRUPTED;
        if (leaf)
            return flags_fit(tree, &n) && value_at(p, &n, found) ? 0 : MDB_CORRUPTED;
        number = n.child;
    }
    return w->text ? check_absence(p, tree, w) : prove_absence(p, tree, w->number);
}

int dp_btree_get(const dp_pages *pages, const dp_btree *tree, uint64_t number, dp_page_value *found) {
    return get(pages, tree, &(wanted){.number = number}, found);
}

int dp_btree_get_text(const dp_pages *pages, const dp_btree *tree, const char *key, dp_page_value *found) {
    return get(pages, tree, &(wanted){.text = key, .length = strlen(key)}, found);
}

int dp_btree_named(const dp_pages *pages, const char *name, unsigned flags, dp_btree *tree) {
    dp_page_value found;
    DP_TRY_REASON(dp_btree_get_text(pages, &pages->meta.main, name, &found));
    if (found.flags != NODE_DATABASE)
        return MDB_CORRUPTED;
    decode_database(found.value.mv_data, tree);
    /* Of one with dups it is their length, kept for databases below it. */
    tree->key_size = 0;
    return is_database(tree, flags) ? 0 : MDB_CORRUPTED;
}

/* ---- all of a database ---- */

/* Whether pages in a row are met for the first time. */
static bool take_pages(const dp_pages *p, uint64_t *used, uint64_t first, uint64_t count) {
    for (uint64_t i = first; used && i < first + count; i++) {
        if (i >= p->count || used[i / 64] >> i % 64 & 1)
            return false;
        used[i / 64] |= (uint64_t)1 << i % 64;
    }
    return true;
}

static bool open_page(dp_cursor *c, uint64_t number, int level, uint64_t low, uint64_t high) {
    const uint8_t *page = page_at(c->pages, number);
    bool leaf = level + 1 == (int)c->tree.depth, equal;
    unsigned count = page ? check_page(c->pages, &c->tree, page, leaf, low, high) : 0;
    if (!count || !take_pages(c->pages, c->used, number, 1))
        return false;
    unsigned next = 0;
    if (c->from) {
        int at = find_node(c->pages, &c->tree, page, leaf, count, &(wanted){.number = c->from}, &equal);
        next = at < 0 ? 0 : leaf && !equal ? (unsigned)at + 1 : (unsigned)at;
    }
    c->top = level;
    c->level[level].page = page;
    c->level[level].count = count;
    c->level[level].next = next;
    c->level[level].low = low;
    c->level[level].high = high;
    return true;
}

void dp_cursor_seek(dp_cursor *cursor, const dp_pages *pages, const dp_btree *tree, uint64_t from) {
    uint64_t *used = cursor->used;
    cursor->pages = pages;
    cursor->tree = *tree;
    cursor->from = from;
    cursor->used = used;
    /* The root is opened by the first step. */
    cursor->top = tree->depth ? DP_LEVELS : -1;
}

/* Opens the child that is next. */
static bool descend(dp_cursor *c) {
    int level = c->top;
    const uint8_t *page = c->level[level].page;
    unsigned i = c->level[level].next++, count = c->level[level].count;
    uint64_t low = c->level[level].low, high = c->level[level].high, above;
    node n;
    if (c->tree.flags & MDB_INTEGERKEY) {
        if (i && !number_at(c->pages, &c->tree, page, false, i, &low))
            return false;
        if (i + 1 < count) {
            if (!number_at(c->pages, &c->tree, page, false, i + 1, &above) || !above)
                return false;
            high = above - 1;
        }
    }
    return node_at(c->pages, page, false, i, &n) && open_page(c, n.child, level + 1, low, high);
}

static int give_node(dp_cursor *c, uint64_t *number, dp_page_value *found) {
    const uint8_t *page = c->level[c->top].page;
    unsigned i = c->level[c->top].next++;
    node n;
    c->from = 0;
    *found = (dp_page_value){0};
    if ((c->tree.flags & MDB_INTEGERKEY) && !number_at(c->pages, &c->tree, page, true, i, number))
        return MDB_CORRUPTED;
    if (c->tree.key_size)
        return 0;
    if (!node_at(c->pages, page, true, i, &n))
        return MDB_CORRUPTED;
    if (value_at(c->pages, &n, found) && n.flags & NODE_ELSEWHERE &&
        !take_pages(c->pages, c->used, dp_load64(n.value), span_of(c->pages, n.child)))
        *found = (dp_page_value){0};
    found->key = (MDB_val){n.key_length, (void *)(uintptr_t)n.key};
    return 0;
}

int dp_cursor_next(dp_cursor *cursor, uint64_t *number, dp_page_value *found) {
    if (cursor->top == DP_LEVELS) {
        cursor->top = -1;
        if (!open_page(cursor, cursor->tree.root, 0, 0, UINT64_MAX))
            return MDB_CORRUPTED;
    }
    while (cursor->top >= 0) {
        if (cursor->level[cursor->top].next >= cursor->level[cursor->top].count)
            cursor->top--;
        else if (cursor->top + 1 == (int)cursor->tree.depth)
            return give_node(cursor, number, found);
        else if (!descend(cursor))
            return MDB_CORRUPTED;
    }
    return MDB_NOTFOUND;
}

/* ---- several values of a key ---- */

/* Those that fit the page of their key: a page inside it, of keys alone. */
static bool dups_inside(const dp_page_value *found, unsigned *count) {
    const uint8_t *page = found->value.mv_data;
    size_t length = found->value.mv_size;
    if (length < HEADER || (load16(page + PAGE_FLAGS) & ~(unsigned)IS_DIRTY) != (IS_LEAF | IS_KEYS | IS_INSIDE) ||
        load16(page + 8) != 8)
        return false;
    unsigned lower = load16(page + PAGE_LOWER);
    if (lower <= HEADER || lower % 2)
        return false;
    *count = (lower - HEADER) / 2;
    return HEADER + (size_t)*count * 8 <= length && keys_are_sound(page, *count, 0, UINT64_MAX);
}

static bool dups_database(const dp_page_value *found, dp_btree *tree) {
    decode_database(found->value.mv_data, tree);
    return tree->key_size == 8 && is_database(tree, MDB_DUPFIXED | MDB_INTEGERKEY);
}

static int each_of_database(const dp_pages *pages, const dp_page_value *found, int (*each)(uint64_t, void *),
                            void *user, uint64_t *used) {
    dp_cursor cursor = {.used = used};
    dp_btree tree;
    dp_page_value none;
    uint64_t number, seen = 0;
    if (!dups_database(found, &tree))
        return MDB_CORRUPTED;
    dp_cursor_seek(&cursor, pages, &tree, 0);
    int reason, ended = 0;
    while (!(reason = dp_cursor_next(&cursor, &number, &none)) && !(ended = each(number, user)))
        seen++;
    if (ended)
        return ended;
    return reason == MDB_NOTFOUND && seen == tree.entries ? 0 : MDB_CORRUPTED;
}

int dp_dups_each(const dp_pages *pages, const dp_page_value *found, int (*each)(uint64_t number, void *user),
                 void *user, uint64_t *used) {
    const uint8_t *page = found->value.mv_data;
    unsigned count;
    int ended = 0;
    if (!page)
        return MDB_CORRUPTED;
    if (!found->flags)
        return each(dp_load64(page), user);
    if (found->flags & NODE_DATABASE)
        return each_of_database(pages, found, each, user, used);
    if (!dups_inside(found, &count))
        return MDB_CORRUPTED;
    for (unsigned i = 0; i < count && !ended; i++)
        ended = each(dp_load64(page + HEADER + (size_t)i * 8), user);
    return ended;
}

/* ---- what LMDB is about to change ---- */

static int take_any(uint64_t number, void *user) {
    (void)number, (void)user;
    return 0;
}

/* What the leaf has for the number, if it has it. */
static int check_value(const dp_pages *p, const dp_btree *tree, uint64_t leaf, uint64_t number, uint64_t dup,
                       dp_hashmap *checked) {
    const uint8_t *page = p->map + leaf * p->size;
    bool equal;
    node n;
    dp_page_value found;
    dp_btree below;
    unsigned count = count_of(p, leaf);
    int at = find_node(p, tree, page, true, count, &(wanted){.number = number}, &equal);
    if (at < 0 || !equal || tree->key_size)
        return 0;
    if (!node_at(p, page, true, (unsigned)at, &n) || !value_at(p, &n, &found))
        return MDB_CORRUPTED;
    if (n.flags == NODE_DUPS)
        return dups_inside(&found, &count) ? 0 : MDB_CORRUPTED;
    if (n.flags != (NODE_DUPS | NODE_DATABASE))
        return 0;
    if (!dups_database(&found, &below))
        return MDB_CORRUPTED;
    return dup ? dp_btree_check(p, &below, dup, 0, checked) : dp_dups_each(p, &found, take_any, NULL, NULL);
}

int dp_btree_check(const dp_pages *pages, const dp_btree *tree, uint64_t number, uint64_t dup, dp_hashmap *checked) {
    beside b;
    if (!tree->depth)
        return 0;
    DP_TRY_REASON(check_path(pages, tree, number, checked, &b));
    return check_value(pages, tree, b.middle, number, dup, checked);
}

int dp_btree_check_text(const dp_pages *pages, const dp_btree *tree) {
    dp_cursor cursor = {0};
    uint64_t number, seen = 0;
    dp_page_value found;
    int reason;
    dp_cursor_seek(&cursor, pages, tree, 0);
    while (!(reason = dp_cursor_next(&cursor, &number, &found)))
        if (seen++, !found.value.mv_data)
            return MDB_CORRUPTED;
    return reason == MDB_NOTFOUND && seen == tree->entries ? 0 : MDB_CORRUPTED;
}

/* ---- free pages ---- */

/* A list has its length, then numbers that fall. */
static bool check_list(const dp_pages *p, const dp_page_value *found, uint64_t *used) {
    const uint8_t *at = found->value.mv_data;
    uint64_t count = found->value.mv_size >= 8 ? dp_load64(at) : UINT64_MAX, before = p->meta.last + 1;
    if (found->value.mv_size < 8 || count > found->value.mv_size / 8 - 1)
        return false;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t page = dp_load64(at + 8 * i);
        if (page < FIRST_PAGE || page >= before || (used && page < p->count && !take_pages(p, used, page, 1)))
            return false;
        before = page;
    }
    return true;
}

/* Free pages whose numbers are summed with every commit, at most: it takes less than 100 us. */
enum { MOST_SUMMED = 1 << 16 };

int dp_free_check(const dp_pages *pages, uint64_t *checksum, uint64_t *free_pages, uint64_t *used) {
    dp_cursor cursor = {.used = used};
    dp_page_value found;
    uint64_t key, seen = 0, sum = 1;
    int reason;
    *checksum = *free_pages = 0;
    dp_cursor_seek(&cursor, pages, &pages->meta.free, 0);
    for (; !(reason = dp_cursor_next(&cursor, &key, &found)); seen++) {
        if (!found.value.mv_data || !check_list(pages, &found, used))
            return MDB_CORRUPTED;
        *free_pages += dp_load64(found.value.mv_data);
        if (*free_pages <= MOST_SUMMED)
            sum = XXH3_64bits_withSeed(found.value.mv_data, found.value.mv_size, sum ^ key);
    }
    if (reason != MDB_NOTFOUND || seen != pages->meta.free.entries)
        return MDB_CORRUPTED;
    *checksum = *free_pages <= MOST_SUMMED ? (sum ? sum : 1) : 0;
    return 0;
}

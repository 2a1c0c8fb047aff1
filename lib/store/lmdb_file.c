/* lmdb_file.c - whether a file is one of LMDB's, and whole: looked at with read calls alone, so that nothing is mapped
 * whose pages are not there.
 *
 * The file begins with two meta pages; the one of the later transaction says how many pages there are. A file may have
 * fewer without harm: pages that were taken and given back in one transaction are never written. Then each page that is
 * not there has to be in the tree of free pages, which is walked: its leaves hold lists of page numbers. */
#include "store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a page, and of the meta page behind its header. */
enum {
    PAGE_HEADER = 16,
    PAGE_FLAGS = 10,
    PAGE_LOWER = 12,
    META_MAGIC = PAGE_HEADER,
    META_VERSION = META_MAGIC + 4,
    META_PAGE_SIZE = META_MAGIC + 24,
    META_FREE_ROOT = META_MAGIC + 24 + 40,
    META_LAST = META_MAGIC + 120,
    META_TRANSACTION = META_MAGIC + 128,
    META_END = META_MAGIC + 136
};
enum { IS_BRANCH = 1, IS_LEAF = 2, IS_META = 8, NODE_HEADER = 8, NODE_ELSEWHERE = 1, MOST_LEVELS = 32 };
#define MAGIC 0xBEEFC0DEu
#define VERSION 1
#define NO_PAGE UINT64_MAX

typedef struct file {
    int number;
    uint64_t size, page_size, last, free_root;
    uint64_t absent; /* the first page that is not there */
    uint64_t found;  /* pages from there on that are free */
    uint64_t left;   /* bytes that the walk may read: pages of a damaged tree may lead to each other for ever */
    const char *path;
    doppel_error *error;
} file;

static uint16_t load16(const uint8_t *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static doppel_status cut_short(const file *f) {
    return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                      "is cut short: it has %" PRIu64 " bytes of %" PRIu64 "; put back a copy of the folder", f->size,
                      (f->last + 1) * f->page_size);
}

static doppel_status read_at(file *f, void *to, uint64_t length, uint64_t at) {
    if (length > f->left)
        return cut_short(f);
    f->left -= length;
    for (char *next = to; length;) {
        ssize_t done = pread(f->number, next, length, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return dp_env_fail(f->path, errno, f->error);
        if (!done)
            return cut_short(f);
        next += done;
        at += (uint64_t)done;
        length -= (uint64_t)done;
    }
    return DOPPEL_OK;
}

/* ---- pages that are free ---- */

/* A list of pages: how many, then each. */
static doppel_status count_list(file *f, const uint8_t *list, uint64_t length) {
    uint64_t count = length >= 8 ? dp_load64(list) : 0;
    if (length < 8 || count > length / 8 - 1)
        return cut_short(f);
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t page = dp_load64(list + 8 * i);
        f->found += page >= f->absent && page <= f->last;
    }
    return DOPPEL_OK;
}

/* A list that has pages of its own. */
static doppel_status count_elsewhere(file *f, const uint8_t *node, uint64_t length) {
    uint64_t page = dp_load64(node);
    if (page >= f->absent || length > f->size - page * f->page_size)
        return cut_short(f);
    uint8_t *list = malloc(length ? length : 1);
    if (!list)
        return dp_no_memory(f->error);
    doppel_status status = read_at(f, list, length, page * f->page_size + PAGE_HEADER);
    if (!status)
        status = count_list(f, list, length);
    free(list);
    return status;
}

static doppel_status walk_free(file *f, uint64_t page, int level);

static doppel_status walk_node(file *f, const uint8_t *page, uint64_t at, int level) {
    bool branch = load16(page + PAGE_FLAGS) & IS_BRANCH;
    if (at < PAGE_HEADER || at + NODE_HEADER > f->page_size)
        return cut_short(f);
    const uint8_t *node = page + at;
    uint64_t low = dp_load32(node), flags = load16(node + 4), data = at + NODE_HEADER + load16(node + 6);
    if (branch)
        return walk_free(f, low | flags << 32, level + 1);
    bool elsewhere = flags & NODE_ELSEWHERE;
    if (data + (elsewhere ? 8 : low) > f->page_size)
        return cut_short(f);
    return elsewhere ? count_elsewhere(f, page + data, low) : count_list(f, page + data, low);
}

static doppel_status walk_free(file *f, uint64_t page, int level) {
    if (page >= f->absent || level > MOST_LEVELS)
        return cut_short(f);
    uint8_t *bytes = malloc(f->page_size);
    if (!bytes)
        return dp_no_memory(f->error);
    doppel_status status = read_at(f, bytes, f->page_size, page * f->page_size);
    uint64_t lower = status ? 0 : load16(bytes + PAGE_LOWER);
    if (!status && (!(load16(bytes + PAGE_FLAGS) & (IS_BRANCH | IS_LEAF)) || lower > f->page_size))
        status = cut_short(f);
    for (uint64_t at = PAGE_HEADER; !status && at + 2 <= lower; at += 2)
        status = walk_node(f, bytes, load16(bytes + at), level);
    free(bytes);
    return status;
}

/* ---- meta pages ---- */

static doppel_status not_ours(const file *f) {
    return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                      "is not a file of LMDB, or its beginning is damaged; put back a copy of the folder");
}

static doppel_status read_meta(file *f, int number, uint64_t *transaction) {
    uint8_t meta[META_END];
    if (f->size < (uint64_t)number * f->page_size + sizeof meta)
        return not_ours(f);
    doppel_status status = read_at(f, meta, sizeof meta, (uint64_t)number * f->page_size);
    if (status)
        return status;
    if (!(load16(meta + PAGE_FLAGS) & IS_META) || dp_load32(meta + META_MAGIC) != MAGIC)
        return not_ours(f);
    if (dp_load32(meta + META_VERSION) != VERSION)
        return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                          "is of version %" PRIu32 " of LMDB's format; this program reads version %d",
                          dp_load32(meta + META_VERSION), VERSION);
    uint64_t page_size = dp_load32(meta + META_PAGE_SIZE), id = dp_load64(meta + META_TRANSACTION);
    if (page_size < 256 || page_size > 65536 || page_size & (page_size - 1))
        return not_ours(f);
    if (number && page_size != f->page_size)
        return not_ours(f);
    if (number && id <= *transaction)
        return DOPPEL_OK;
    f->page_size = page_size;
    f->last = dp_load64(meta + META_LAST);
    f->free_root = dp_load64(meta + META_FREE_ROOT);
    *transaction = id;
    return DOPPEL_OK;
}

/* The length is asked for behind the meta pages: meanwhile a file only grows. */
static doppel_status read_metas(file *f, uint64_t *transaction) {
    struct stat known;
    f->left = 2 * META_END;
    doppel_status status = read_meta(f, 0, transaction);
    if (!status)
        status = read_meta(f, 1, transaction);
    if (status)
        return status;
    if (fstat(f->number, &known))
        return dp_env_fail(f->path, errno, f->error);
    f->size = (uint64_t)known.st_size;
    f->absent = f->size / f->page_size;
    return f->last > UINT64_MAX / f->page_size - 1 ? not_ours(f) : DOPPEL_OK;
}

static doppel_status check_pages(file *f) {
    f->found = 0;
    f->left = f->size;
    if (f->absent > f->last)
        return DOPPEL_OK;
    doppel_status status = f->free_root == NO_PAGE ? DOPPEL_OK : walk_free(f, f->free_root, 0);
    return status || f->found >= f->last - f->absent + 1 ? status : cut_short(f);
}

/* While another process writes, pages may change under the walk: it counts only if nothing was written meanwhile. */
static doppel_status check_file(file *f) {
    uint64_t transaction = 0, before;
    doppel_status status = read_metas(f, &transaction), found;
    if (status)
        return status;
    do {
        before = transaction;
        found = check_pages(f);
        if (found && (status = read_metas(f, &transaction)))
            return status;
    } while (found && before != transaction);
    return found ? check_pages(f) : DOPPEL_OK;
}

doppel_status dp_file_check(const char *path, doppel_error *error) {
    struct stat known;
    file f = {.number = open(path, O_RDONLY | O_CLOEXEC), .path = path, .error = error};
    if (f.number < 0)
        return dp_env_fail(path, errno, error);
    doppel_status status = DOPPEL_OK;
    if (fstat(f.number, &known))
        status = dp_env_fail(path, errno, error);
    else if (!S_ISREG(known.st_mode))
        status = not_ours(&f);
    f.size = status ? 0 : (uint64_t)known.st_size;
    if (!status)
        status = check_file(&f);
    close(f.number);
    return status;
}

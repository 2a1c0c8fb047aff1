/* lmdb_file.c - whether a file is one of LMDB's, and whole: looked at with read calls alone, so that nothing is mapped
 * whose pages are not there.
 *
 * The file begins with two meta pages, written in turn: page 0 by transactions of even numbers, page 1 by odd ones, so
 * that their numbers differ by one. The later says how many pages there are. A file may have fewer without harm: pages
 * that were taken and given back in one transaction are never written. Then each page that is not there has to be in
 * the tree of free pages, which is walked: its leaves hold lists of page numbers.
 *
 * A flipped bit in the later meta page could make LMDB go back to the earlier one, and so to the commit before the
 * last. So a note of the last commit is kept beside the file: its number and checksums of what it left. It is written
 * without a sync, after the commit has been synced: it may be older than the file, never newer. */
#include "store/lmdb.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGE_HEADER = 16, PAGE_FLAGS = 10, PAGE_LOWER = 12, META_VERSION = PAGE_HEADER + 4, META_MAGIC = PAGE_HEADER };
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

static doppel_status read_meta(file *f, uint64_t at, dp_meta *meta) {
    uint8_t bytes[DP_META_BYTES];
    if (f->size < at + sizeof bytes)
        return not_ours(f);
    f->left = sizeof bytes;
    doppel_status status = read_at(f, bytes, sizeof bytes, at);
    if (status)
        return status;
    uint32_t version = dp_load32(bytes + META_VERSION);
    if (load16(bytes + PAGE_FLAGS) & IS_META && dp_load32(bytes + META_MAGIC) == MAGIC && version != VERSION)
        return dp_fail_at(f->error, DOPPEL_ERROR_STORE, f->path, 0,
                          "is of version %" PRIu32 " of LMDB's format; this program reads version %d", version,
                          VERSION);
    return dp_meta_decode(bytes, meta) ? DOPPEL_OK : not_ours(f);
}

/* Whether the two are what LMDB leaves: one transaction apart, each in its place, or those of a new file. */
static bool are_pair(const dp_meta meta[2]) {
    uint64_t even = meta[0].transaction, odd = meta[1].transaction;
    return meta[0].page_size == meta[1].page_size &&
           ((!even && !odd) || (!(even & 1) && odd & 1 && (even + 1 == odd || odd + 1 == even)));
}

static doppel_status read_pair(file *f, dp_meta meta[2]) {
    doppel_status status = read_meta(f, 0, &meta[0]);
    if (!status)
        status = read_meta(f, meta[0].page_size, &meta[1]);
    return status || are_pair(meta) ? status : not_ours(f);
}

/* A writer that commits meanwhile may be met at any moment; it is done in less than that. */
enum { TRIES = 200, PAUSE = 500 /* microseconds */ };

static doppel_status read_metas(file *f, dp_meta *meta) {
    struct stat known;
    dp_meta pair[2];
    dp_note note;
    /* The note first: it is never ahead of the file. */
    bool noted = dp_note_read(f->path, &note);
    doppel_status status = read_pair(f, pair);
    for (int tries = 0; status == DOPPEL_ERROR_STORE && tries < TRIES; tries++) {
        usleep(PAUSE);
        status = read_pair(f, pair);
    }
    if (status)
        return status;
    *meta = pair[pair[1].transaction > pair[0].transaction];
    if (!meta->sound)
        return not_ours(f);
    /* The length is asked for after the meta pages: meanwhile a file only grows. */
    if (fstat(f->number, &known))
        return dp_env_fail(f->path, errno, f->error);
    f->size = (uint64_t)known.st_size;
    f->absent = f->size / meta->page_size;
    f->page_size = meta->page_size;
    f->last = meta->last;
    f->free_root = meta->free.root;
    if (noted && meta->transaction < note.transaction)
        return dp_damaged(f->path, f->error,
                          "the last commit, number %" PRIu64 ", is gone, and the one found is %" PRIu64,
                          note.transaction, meta->transaction);
    /* Of an earlier commit it says nothing: LMDB leaves parts of a commit that failed in that one's page. */
    return noted && meta->transaction == note.transaction && meta->checksum != note.meta ? not_ours(f) : DOPPEL_OK;
}

/* ---- notes ---- */

enum { NOTE_BYTES = 32 };

static uint64_t note_checksum(const uint8_t *bytes) {
    return dp_value_checksum(0, DP_SEED_NOTE, bytes, NOTE_BYTES - 8);
}

static char *note_path(const char *path) {
    dp_buffer name = {0};
    if (dp_buffer_printf(&name, "%s-commit", path) && dp_buffer_add(&name, "", 1))
        return name.data;
    dp_buffer_free(&name);
    return NULL;
}

bool dp_note_read(const char *path, dp_note *note) {
    uint8_t bytes[NOTE_BYTES];
    char *name = note_path(path);
    int number = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    free(name);
    if (number < 0)
        return false;
    ssize_t length = pread(number, bytes, sizeof bytes, 0);
    close(number);
    *note = (dp_note){dp_load64(bytes), dp_load64(bytes + 8), dp_load64(bytes + 16)};
    return length == NOTE_BYTES && note_checksum(bytes) == dp_load64(bytes + 24);
}

void dp_note_write(const char *path, const dp_note *note) {
    uint8_t bytes[NOTE_BYTES];
    const uint64_t values[3] = {note->transaction, note->meta, note->free};
    char *name = note_path(path);
    int number = name ? open(name, O_WRONLY | O_CLOEXEC) : -1;
    /* Who may read the file may read what is noted of it. */
    if (name && number < 0 && (number = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0666)) >= 0)
        dp_access_like(path, name);
    free(name);
    if (number < 0)
        return;
    for (int i = 0; i < 24; i++)
        bytes[i] = (uint8_t)(values[i / 8] >> (8 * (i % 8)));
    uint64_t checksum = note_checksum(bytes);
    for (int i = 0; i < 8; i++)
        bytes[24 + i] = (uint8_t)(checksum >> (8 * i));
    (void)!pwrite(number, bytes, sizeof bytes, 0);
    close(number);
}

void dp_note_remove(const char *path) {
    char *name = note_path(path);
    if (name)
        unlink(name);
    free(name);
}

/* ---- the file ---- */

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
    dp_meta meta;
    uint64_t before;
    doppel_status status = read_metas(f, &meta), found;
    if (status)
        return status;
    do {
        before = meta.transaction;
        found = check_pages(f);
        if (found && (status = read_metas(f, &meta)))
            return status;
    } while (found && before != meta.transaction);
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

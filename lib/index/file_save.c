/* file_save.c - doppel_index_save: writes what one version holds.
 *
 * Every run goes out as it is, and the head as a small run of its own: nothing is merged, and only the directory, the
 * dead bits and a block are held. The writer of the index may go on meanwhile, and changes dead bits and times in
 * place. The dead bits are therefore copied first of all, and times number by number, before their checksum is taken:
 * what was alive then is saved with a time that it had then or later. The other way round, an entry that was removed,
 * and inserted again meanwhile, would be saved with the time it had before. */
#include "index/file.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- what is to be written ---- */

/* A run with its sections: where they lie in memory, and where they go. */
typedef struct saved_run {
    const dp_run *run;
    uint64_t *dead; /* a copy of its dead bits; NULL: none are */
    int count;
    dp_file_part parts[DP_FILE_MAX_SECTIONS];
    dp_file_section sections[DP_FILE_MAX_SECTIONS];
} saved_run;

typedef struct content {
    const doppel_index *index;
    saved_run *runs;
    int run_count;
    uint64_t data_size;
    char *directory; /* with the checksums, at first zeros */
    uint64_t directory_size;
    uint64_t *checks; /* inside the directory */
} content;

static void free_content(content *c) {
    for (int i = 0; i < c->run_count; i++)
        free(c->runs[i].dead);
    free(c->runs);
    free(c->directory);
}

static void place_sections(content *c, saved_run *saved) {
    for (int i = 0; i < saved->count; i++) {
        uint64_t length = saved->parts[i].length;
        saved->sections[i] = (dp_file_section){length ? c->data_size : 0, length};
        c->data_size = dp_file_align(c->data_size + length);
    }
}

static uint64_t count_lists(const dp_run *run) {
    uint64_t lists = 0;
    for (uint64_t i = 0; run->shared && i < (run->count + 63) / 64; i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    return lists;
}

static void write_directory(const content *c) {
    char *at = c->directory;
    for (int i = 0; i < c->run_count; i++) {
        const saved_run *saved = &c->runs[i];
        dp_file_run record = {.count = saved->run->count,
                              .list_count = saved->run->list_count,
                              .lists = count_lists(saved->run),
                              .sections = (uint64_t)saved->count};
        memcpy(record.layout, saved->run->layout.name, strlen(saved->run->layout.name));
        at = (char *)memcpy(at, &record, sizeof record) + sizeof record;
        size_t size = (size_t)saved->count * sizeof *saved->sections;
        at = (char *)memcpy(at, saved->sections, size) + size;
    }
}

/* Acquire: whoever sees that an entry was inserted again sees its new time. */
static bool copy_dead(saved_run *saved) {
    const _Atomic uint64_t *dead = atomic_load_explicit(&saved->run->dead, memory_order_acquire);
    uint64_t words = (dp_run_slots(saved->run) + 63) / 64;
    if (!dead)
        return true;
    if (!(saved->dead = malloc(words * sizeof *saved->dead)))
        return false;
    for (uint64_t i = 0; i < words; i++)
        saved->dead[i] = atomic_load_explicit(&dead[i], memory_order_acquire);
    return true;
}

/* The dead bits, then what else a run has. */
static doppel_status list_parts(saved_run *saved) {
    if (!copy_dead(saved))
        return DOPPEL_ERROR_MEMORY;
    uint64_t words = saved->dead ? (dp_run_slots(saved->run) + 63) / 64 : 0;
    saved->count = dp_file_parts(saved->run, saved->parts);
    saved->parts[saved->count - 1] = (dp_file_part){saved->dead, words * sizeof *saved->dead, false};
    return dp_run_touch(saved->run, saved->run->shared, dp_shared_bytes(saved->run));
}

/* Where everything goes. */
static doppel_status plan(content *c, const dp_version *version, const dp_run *head) {
    c->runs = calloc((size_t)version->runs + 1, sizeof *c->runs);
    if (!c->runs)
        return DOPPEL_ERROR_MEMORY;
    uint64_t records = 0;
    for (int i = 0; i < version->runs + (head != NULL); i++) {
        const dp_run *run = i < version->runs ? version->run[i] : head;
        if (!run->count)
            continue;
        saved_run *saved = &c->runs[c->run_count++];
        saved->run = run;
        doppel_status status = list_parts(saved);
        if (status)
            return status;
        place_sections(c, saved);
        records += sizeof(dp_file_run) + (uint64_t)saved->count * sizeof(dp_file_section);
    }
    c->directory_size = dp_file_align(records + dp_file_blocks(c->data_size) * sizeof(uint64_t));
    c->directory = calloc(1, c->directory_size + 1);
    if (!c->directory)
        return DOPPEL_ERROR_MEMORY;
    c->checks = (uint64_t *)(void *)(c->directory + records);
    write_directory(c);
    return DOPPEL_OK;
}

/* ---- writing ---- */

/* The data, a block at a time. */
typedef struct stream {
    int number;
    uint64_t at;      /* in the file, of the block in hand */
    uint64_t blocks;  /* written */
    uint64_t *checks; /* of the blocks */
    size_t used;
    char *block;
} stream;

static int write_at(int number, const char *bytes, size_t length, uint64_t at) {
    while (length) {
        ssize_t done = pwrite(number, bytes, length, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? errno : ENOSPC;
        bytes += done;
        length -= (size_t)done;
        at += (uint64_t)done;
    }
    return 0;
}

static int write_block(stream *s) {
    s->checks[s->blocks++] = XXH3_64bits(s->block, s->used);
    int reason = write_at(s->number, s->block, s->used, s->at);
    s->at += s->used;
    s->used = 0;
    return reason;
}

static void copy_numbers(char *to, const char *from, size_t length) {
    for (size_t i = 0; i < length; i += sizeof(uint64_t)) {
        const _Atomic uint64_t *number = (const void *)(from + i);
        uint64_t value = atomic_load_explicit(number, memory_order_relaxed);
        memcpy(to + i, &value, sizeof value);
    }
}

/* Zeros up to the alignment follow. */
static int write_part(stream *s, const dp_file_part *part) {
    uint64_t whole = dp_file_align(part->length);
    for (uint64_t done = 0; done < whole;) {
        size_t room = DP_FILE_BLOCK - s->used;
        size_t piece = whole - done < room ? (size_t)(whole - done) : room;
        size_t real = part->length <= done ? 0 : part->length - done < piece ? (size_t)(part->length - done) : piece;
        const char *from = (const char *)part->bytes + done;
        if (part->atomic)
            copy_numbers(s->block + s->used, from, real);
        else if (real)
            memcpy(s->block + s->used, from, real);
        memset(s->block + s->used + real, 0, piece - real);
        s->used += piece;
        done += piece;
        int reason = s->used == DP_FILE_BLOCK ? write_block(s) : 0;
        if (reason)
            return reason;
    }
    return 0;
}

static int write_header(const content *c, int number) {
    dp_file_header header = {.magic = DP_FILE_MAGIC,
                             .version = DP_FILE_VERSION,
                             .bits = (uint32_t)c->index->bits,
                             .distance = (uint32_t)c->index->distance,
                             .runs = (uint32_t)c->run_count,
                             .secret = c->index->secret,
                             .bytes_per_entry = c->index->bytes_per_entry,
                             .directory_size = c->directory_size,
                             .data_size = c->data_size,
                             .directory_check = XXH3_64bits(c->directory, c->directory_size)};
    memcpy(header.layout, c->index->layout_name, strlen(c->index->layout_name));
    header.header_check = XXH3_64bits(&header, sizeof header - sizeof header.header_check);
    int reason = write_at(number, (const char *)&header, sizeof header, 0);
    return reason ? reason : write_at(number, c->directory, c->directory_size, sizeof header);
}

/* Gives what the system said, or 0. A block of the file the index was opened from may be damaged: *status then says so.
 */
static int write_content(const content *c, int number, doppel_status *status) {
    stream s = {.number = number, .at = sizeof(dp_file_header) + c->directory_size, .checks = c->checks};
    s.block = malloc(DP_FILE_BLOCK);
    int reason = s.block ? 0 : ENOMEM;
    for (int i = 0; i < c->run_count; i++)
        for (int p = 0; p < c->runs[i].count && !reason; p++) {
            const dp_file_part *part = &c->runs[i].parts[p];
            *status = dp_run_touch(c->runs[i].run, part->bytes, part->length);
            reason = *status ? EIO : write_part(&s, part);
        }
    if (!reason && s.used)
        reason = write_block(&s);
    free(s.block);
    return reason ? reason : write_header(c, number);
}

/* ---- the public call ---- */

static doppel_status save_version(const doppel_index *index, const dp_version *version, const char *path,
                                  doppel_error *error) {
    dp_run *head = NULL;
    content c = {.index = index};
    dp_newfile file;
    doppel_status status = dp_head_run(version->head, &head), damage = DOPPEL_OK;
    if (!status && head)
        status = dp_index_build(index, head, NULL);
    if (!status)
        status = plan(&c, version, head);
    if (status)
        dp_version_explain(version, status, error);
    else if (!(status = dp_newfile_create(&file, path, error))) {
        status = dp_newfile_finish(&file, write_content(&c, file.number, &damage), error);
        status = damage ? dp_version_explain(version, damage, error) : status;
    }
    free_content(&c);
    dp_run_free(head);
    return status;
}

doppel_status doppel_index_save(const doppel_index *index, const char *path, doppel_error *error) {
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = save_version(index, pinned.version, path, error);
    dp_index_unpin(pinned);
    return status;
}

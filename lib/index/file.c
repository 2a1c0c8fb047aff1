/* file.c - an open file of an index: mapped, and its blocks checked when they are first touched.
 *
 * A block is right when its checksum is, and when the directories of tables in it ascend within their bounds: whoever
 * reads a bucket can then trust where it begins and ends, even in a file that was made to deceive. Two threads that
 * touch a block at once may both check it; they find the same. */
#include "index/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- sections ---- */

static dp_file_part plain_part(const void *bytes, uint64_t length) {
    return (dp_file_part){bytes, bytes ? length : 0, false};
}

static dp_file_part changing_part(_Atomic uint64_t *numbers, uint64_t count) {
    return (dp_file_part){numbers, numbers ? count * sizeof(uint64_t) : 0, true};
}

int dp_file_parts(const dp_run *run, dp_file_part parts[DP_FILE_MAX_SECTIONS]) {
    int count = 0;
    uint64_t slots = dp_run_slots(run);
    for (int t = 0; t < run->layout.tables; t++) {
        const dp_table *table = &run->table[t];
        parts[count++] = plain_part(table->directory, dp_directory_bytes(table));
        parts[count++] = plain_part(table->filter, dp_filter_bytes(run));
        parts[count++] = plain_part(table->rest, dp_rest_bytes(run, table));
    }
    dp_file_part *others = parts + count;
    others[DP_FILE_IDS] = plain_part(run->ids, run->count * sizeof(uint64_t));
    others[DP_FILE_LISTS] = plain_part(run->lists, run->list_count * sizeof(uint64_t));
    others[DP_FILE_SHARED] = plain_part(run->shared, dp_shared_bytes(run));
    others[DP_FILE_EXPIRES] = changing_part(atomic_load_explicit(&run->expires, memory_order_acquire), slots);
    others[DP_FILE_DEAD] = changing_part(atomic_load_explicit(&run->dead, memory_order_acquire), (slots + 63) / 64);
    return count + DP_FILE_OTHER_SECTIONS;
}

/* ---- blocks ---- */

/* Whether the numbers of a directory that lie in from..end (and the ones beside them) ascend within their bounds. */
static bool ascends(const dp_file_ascent *ascent, const uint8_t *from, const uint8_t *end) {
    const uint8_t *start = (const uint8_t *)ascent->numbers;
    uint64_t first = from > start ? (uint64_t)(from - start) / sizeof(uint32_t) : 0;
    uint64_t behind = end > start ? (uint64_t)(end - start) / sizeof(uint32_t) : 0;
    first -= first > 0;
    behind = behind < ascent->count ? behind + 1 : ascent->count;
    if (first >= behind)
        return true;
    uint32_t last = ascent->numbers[first];
    bool right = first || last == 0;
    for (uint64_t i = first + 1; i < behind; i++) {
        right &= ascent->numbers[i] >= last;
        last = ascent->numbers[i];
    }
    return right && last <= ascent->last && (behind < ascent->count || last == ascent->last);
}

static bool is_right(const dp_file *file, uint64_t block) {
    const uint8_t *from = file->map + file->data + block * DP_FILE_BLOCK;
    uint64_t left = file->size - file->data - block * DP_FILE_BLOCK;
    uint64_t length = left < DP_FILE_BLOCK ? left : DP_FILE_BLOCK;
    if (XXH3_64bits(from, length) != file->checks[block])
        return false;
    for (size_t i = 0; i < file->ascent_count; i++) {
        const dp_file_ascent *ascent = &file->ascents[i];
        if ((const uint8_t *)ascent->numbers < from + length &&
            (const uint8_t *)(ascent->numbers + ascent->count) > from)
            if (!ascends(ascent, from, from + length))
                return false;
    }
    return true;
}

static doppel_status check_block(dp_file *file, uint64_t block) {
    uint64_t bit = (uint64_t)1 << block % 64, none = 0;
    _Atomic uint64_t *word = &file->checked[block / 64];
    if (atomic_load_explicit(word, memory_order_relaxed) & bit)
        return DOPPEL_OK;
    if (!is_right(file, block)) {
        atomic_compare_exchange_strong(&file->damaged, &none, block + 1);
        return DOPPEL_ERROR_STORE;
    }
    atomic_fetch_or_explicit(word, bit, memory_order_relaxed);
    return DOPPEL_OK;
}

static doppel_status check_blocks(dp_file *file, uint64_t first, uint64_t last) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t block = first; block <= last && !status; block++)
        status = check_block(file, block);
    return status;
}

/* What is not in the file (columns made in memory since) needs no check. */
static doppel_status touch(dp_backing *backing, const void *from, size_t size) {
    dp_file *file = (dp_file *)backing;
    uint64_t offset = (uint64_t)((uintptr_t)from - (uintptr_t)(file->map + file->data));
    if (!size || offset >= file->size - file->data)
        return DOPPEL_OK;
    uint64_t end = size < file->size - file->data - offset ? offset + size : file->size - file->data;
    return check_blocks(file, offset / DP_FILE_BLOCK, (end - 1) / DP_FILE_BLOCK);
}

doppel_status dp_file_check_all(dp_file *file) {
    return file->blocks ? check_blocks(file, 0, file->blocks - 1) : DOPPEL_OK;
}

dp_file *dp_file_of(const dp_run *run) {
    return run->backing && run->backing->touch == touch ? (dp_file *)run->backing : NULL;
}

static doppel_status explain_block(const dp_file *file, uint64_t block, doppel_error *error) {
    uint64_t offset = file->data + (block - 1) * DP_FILE_BLOCK;
    return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0,
                      "was altered: block %" PRIu64 " of %" PRIu64 ", from byte %" PRIu64
                      ", is damaged; make the index again, or restore a copy",
                      block, file->blocks, offset);
}

doppel_status dp_version_explain(const dp_version *version, doppel_status status, doppel_error *error) {
    if (status == DOPPEL_ERROR_MEMORY)
        return dp_no_memory(error);
    if (status != DOPPEL_ERROR_STORE)
        return status;
    const char *path = "";
    for (int i = 0; i < version->runs; i++) {
        const dp_file *file = dp_file_of(version->run[i]);
        uint64_t block = file ? atomic_load(&file->damaged) : 0;
        if (block)
            return explain_block(file, block, error);
        path = file ? file->path : path;
    }
    /* The checksums are right, but what they stand for is not: it was made so. */
    return dp_fail_at(error, status, path, 0, "holds what makes no sense; make the index again, or restore a copy");
}

doppel_status dp_index_explain(const doppel_index *index, doppel_status status, doppel_error *error) {
    if (status == DOPPEL_OK)
        return status;
    dp_pinned pinned = dp_index_pin(index);
    dp_version_explain(pinned.version, status, error);
    dp_index_unpin(pinned);
    return status;
}

/* ---- opening and closing ---- */

static void release(dp_backing *backing) {
    dp_file_release((dp_file *)backing);
}

static doppel_status open_file(dp_file *file, doppel_error *error) {
    struct stat status;
    int number = open(file->path, O_RDONLY | O_CLOEXEC);
    if (number < 0 || fstat(number, &status)) {
        int reason = errno;
        if (number >= 0)
            close(number);
        return dp_fail_at(error, DOPPEL_ERROR_IO, file->path, 0, "cannot be opened: %s", strerror(reason));
    }
    if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size < sizeof(dp_file_header)) {
        close(number);
        return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0, "is not an index");
    }
    file->size = (uint64_t)status.st_size;
    void *map = mmap(NULL, file->size, PROT_READ, MAP_SHARED, number, 0);
    int reason = errno;
    close(number);
    if (map == MAP_FAILED)
        return dp_fail_at(error, DOPPEL_ERROR_IO, file->path, 0, "cannot be mapped: %s", strerror(reason));
    file->map = map;
    return DOPPEL_OK;
}

doppel_status dp_file_map(const char *path, dp_file **out, doppel_error *error) {
    *out = NULL;
    dp_file *file = calloc(1, sizeof *file);
    if (!file)
        return dp_no_memory(error);
    file->backing = (dp_backing){touch, release};
    file->references = 1;
    file->path = strdup(path);
    doppel_status status = file->path ? open_file(file, error) : dp_no_memory(error);
    if (status)
        dp_file_release(file);
    else
        *out = file;
    return status;
}

void dp_file_hold(dp_file *file) {
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

void dp_file_release(dp_file *file) {
    if (!file || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) > 1)
        return;
    if (file->map)
        munmap((void *)(uintptr_t)file->map, file->size);
    free(file->path);
    free((void *)file->checked);
    free(file->ascents);
    free(file);
}

/* file.c - an index in a file: doppel_index_save, doppel_index_open, and the checking of its blocks.
 *
 * The format is in docs/FORMAT.md, its records are in index.h. A file is mapped, and its blocks are checked when they
 * are first touched. A block is valid when its checksum is, and when the table directories in it ascend within their
 * bounds: a reader can then trust where a bucket begins and ends, even in a malicious file. Two threads that touch a
 * block at once may both check it, with the same result. */
#include "hamming/index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "DOPPELIX"
#define VERSION 1

static inline uint64_t align(uint64_t size) {
    return (size + DP_FILE_ALIGN - 1) / DP_FILE_ALIGN * DP_FILE_ALIGN;
}

/* A section as it lies in memory; `atomic`: it may be written to at the same time, and is read number by number. */
typedef struct file_part {
    const void *bytes;
    uint64_t length;
    bool atomic;
} file_part;

/* Numbers that must ascend, from 0 to `last`: the directory of a table. */
typedef struct file_ascent {
    const uint32_t *numbers;
    uint64_t count, last;
} file_ascent;

typedef struct index_file {
    dp_backing backing;
    _Atomic uint64_t references;
    char *path;
    const uint8_t *map;
    uint64_t size, data, blocks; /* data: where it begins */
    const uint64_t *checks;      /* one a block */
    _Atomic uint64_t *checked;   /* one bit per block found valid */
    _Atomic uint64_t damaged;    /* the first block found invalid, counted from 1 */
    file_ascent *ascents;        /* in the order of the file */
    size_t ascent_count, ascent_room;
} index_file;

/* ---- sections ---- */

static file_part plain_part(const void *bytes, uint64_t length) {
    return (file_part){bytes, bytes ? length : 0, false};
}

static file_part changing_part(_Atomic uint64_t *numbers, uint64_t count) {
    return (file_part){numbers, numbers ? count * sizeof(uint64_t) : 0, true};
}

/* The sections that a run has, in the order of the file; returns how many. Lengths follow from the run, its layout and
 * which of the three optional sections exist. */
static int file_parts(const dp_run *run, file_part parts[DP_FILE_MAX_SECTIONS]) {
    int count = 0;
    uint64_t slots = dp_run_slots(run);
    for (int t = 0; t < run->layout.tables; t++) {
        const dp_run_table *table = &run->table[t];
        parts[count++] = plain_part(table->directory, dp_directory_bytes(table));
        parts[count++] = plain_part(table->filter, dp_filter_bytes(run));
        parts[count++] = plain_part(table->rest, dp_rest_bytes(run, table));
    }
    file_part *others = parts + count;
    others[DP_FILE_IDS] = plain_part(run->ids, run->count * sizeof(uint64_t));
    others[DP_FILE_LISTS] = plain_part(run->lists, run->list_count * sizeof(uint64_t));
    others[DP_FILE_SHARED] = plain_part(run->shared, dp_shared_bytes(run));
    others[DP_FILE_EXPIRES] = changing_part(atomic_load_explicit(&run->expires, memory_order_acquire), slots);
    others[DP_FILE_DEAD] = changing_part(atomic_load_explicit(&run->dead, memory_order_acquire), (slots + 63) / 64);
    return count + DP_FILE_OTHER_SECTIONS;
}

/* ---- blocks ---- */

/* Whether the numbers of a directory that lie in from..end (and their neighbours) ascend within their bounds. */
static bool ascends(const file_ascent *ascent, const uint8_t *from, const uint8_t *end) {
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

static bool is_right(const index_file *file, uint64_t block) {
    const uint8_t *from = file->map + file->data + block * DP_FILE_BLOCK;
    uint64_t left = file->size - file->data - block * DP_FILE_BLOCK;
    uint64_t length = left < DP_FILE_BLOCK ? left : DP_FILE_BLOCK;
    if (XXH3_64bits(from, length) != file->checks[block])
        return false;
    for (size_t i = 0; i < file->ascent_count; i++) {
        const file_ascent *ascent = &file->ascents[i];
        if ((const uint8_t *)ascent->numbers < from + length &&
            (const uint8_t *)(ascent->numbers + ascent->count) > from)
            if (!ascends(ascent, from, from + length))
                return false;
    }
    return true;
}

static doppel_status check_block(index_file *file, uint64_t block) {
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

static doppel_status check_blocks(index_file *file, uint64_t first, uint64_t last) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t block = first; block <= last && !status; block++)
        status = check_block(file, block);
    return status;
}

/* Data that is not in the file (columns made in memory since) needs no check. */
static doppel_status touch(dp_backing *backing, const void *from, size_t size) {
    index_file *file = (index_file *)backing;
    uint64_t offset = (uint64_t)((uintptr_t)from - (uintptr_t)(file->map + file->data));
    if (!size || offset >= file->size - file->data)
        return DOPPEL_OK;
    uint64_t end = size < file->size - file->data - offset ? offset + size : file->size - file->data;
    return check_blocks(file, offset / DP_FILE_BLOCK, (end - 1) / DP_FILE_BLOCK);
}

/* The file a run lies in, or NULL. */
static index_file *file_of(const dp_run *run) {
    return run->backing && run->backing->touch == touch ? (index_file *)run->backing : NULL;
}

doppel_status dp_run_check_file(const dp_run *run) {
    index_file *file = file_of(run);
    return file && file->blocks ? check_blocks(file, 0, file->blocks - 1) : DOPPEL_OK;
}

static doppel_status explain_block(const index_file *file, uint64_t block, doppel_error *error) {
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
        const index_file *file = file_of(version->run[i]);
        uint64_t block = file ? atomic_load(&file->damaged) : 0;
        if (block)
            return explain_block(file, block, error);
        path = file ? file->path : path;
    }
    /* The checksums are valid, but the content is not: it was forged. */
    return dp_fail_at(error, status, path, 0, "has invalid content; rebuild the index, or restore a copy");
}

/* ---- mapping ---- */

/* Maps a file, which then has one reference. */
static void file_release(index_file *file) {
    if (!file || atomic_fetch_sub_explicit(&file->references, 1, memory_order_acq_rel) > 1)
        return;
    if (file->map)
        munmap((void *)(uintptr_t)file->map, file->size);
    free(file->path);
    free((void *)file->checked);
    free(file->ascents);
    free(file);
}

static void release(dp_backing *backing) {
    file_release((index_file *)backing);
}

static doppel_status open_file(index_file *file, doppel_error *error) {
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

/* Maps a file, which then has one reference. */
static doppel_status file_map(const char *path, index_file **out, doppel_error *error) {
    *out = NULL;
    index_file *file = calloc(1, sizeof *file);
    if (!file)
        return dp_no_memory(error);
    file->backing = (dp_backing){touch, release};
    file->references = 1;
    file->path = strdup(path);
    doppel_status status = file->path ? open_file(file, error) : dp_no_memory(error);
    if (status)
        file_release(file);
    else
        *out = file;
    return status;
}

static void file_hold(index_file *file) {
    atomic_fetch_add_explicit(&file->references, 1, memory_order_relaxed);
}

/* ---- opening ----
 *
 * The header and the directory are checked here: their checksums, and that every section lies in the file and has the
 * length that the layout and the counts ask for. The data are checked block by block when they are touched; only the
 * dead bits, which are kept in memory, and the bits of lists, which are counted, are read at once. */

static doppel_status refuse(const index_file *file, doppel_error *error, const char *reason) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0, "%s", reason);
}

static bool is_name(const char *name, size_t size) {
    size_t length = strnlen(name, size);
    for (size_t i = length; i < size; i++)
        if (name[i])
            return false;
    return length < size;
}

static bool options_make_sense(const dp_file_header *header) {
    return (header->bits == 128 || (header->bits >= 1 && header->bits <= 64)) && header->distance >= 1 &&
           header->distance <= header->bits && header->runs <= DP_MAX_RUNS && header->secret &&
           isfinite(header->bytes_per_entry) && header->bytes_per_entry >= 0 &&
           is_name(header->layout, sizeof header->layout);
}

static doppel_status check_header(index_file *file, doppel_error *error) {
    const dp_file_header *header = (const void *)file->map;
    if (memcmp(header->magic, MAGIC, sizeof header->magic))
        return refuse(file, error, "is not an index");
    if (header->version != VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0,
                          "has version %" PRIu32 ", this library reads version %d", header->version, VERSION);
    if (header->header_check != XXH3_64bits(header, sizeof *header - sizeof header->header_check))
        return refuse(file, error, "was altered: the checksum of its header is wrong");
    uint64_t left = file->size - sizeof *header;
    if (header->directory_size > left || header->data_size != left - header->directory_size)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0,
                          "is cut short or too long: %" PRIu64 " bytes, not %" PRIu64, file->size,
                          sizeof *header + header->directory_size + header->data_size);
    if (header->directory_check != XXH3_64bits(file->map + sizeof *header, header->directory_size))
        return refuse(file, error, "was altered: the checksum of its directory is wrong");
    if (header->directory_size % DP_FILE_ALIGN || !options_make_sense(header))
        return refuse(file, error, "has an invalid header");
    return DOPPEL_OK;
}

/* The read position in the directory. */
typedef struct file_reading {
    index_file *file;
    const dp_file_header *header;
    const char *at, *end;
    uint64_t lists[DP_MAX_RUNS];              /* of each run */
    const dp_file_section *dead[DP_MAX_RUNS]; /* the same */
} file_reading;

/* The next `size` bytes, or NULL. */
static const void *take(file_reading *r, uint64_t size) {
    const char *from = r->at;
    if (size > (uint64_t)(r->end - from))
        return NULL;
    r->at += size;
    return from;
}

/* Sets a pointer of a run to its section; false when it does not lie in the data. */
static bool place(const file_reading *r, const dp_file_section *section, const void *pointer) {
    uint64_t size = r->header->data_size;
    if (section->offset % DP_FILE_ALIGN || section->offset > size || section->length > size - section->offset)
        return false;
    const void *at = section->length ? r->file->map + r->file->data + section->offset : NULL;
    memcpy((void *)(uintptr_t)pointer, &at, sizeof at);
    return true;
}

/* Points the run into the file; false when a section lies outside it. */
static bool place_all(const file_reading *r, const dp_file_section *sections, dp_run *run) {
    bool good = true;
    const void *expires = NULL;
    for (int t = 0; t < run->layout.tables; t++, sections += DP_FILE_TABLE_SECTIONS) {
        good &= place(r, &sections[0], &run->table[t].directory);
        good &= place(r, &sections[1], &run->table[t].filter);
        good &= place(r, &sections[2], &run->table[t].rest);
    }
    good &= place(r, &sections[DP_FILE_IDS], &run->ids) && place(r, &sections[DP_FILE_LISTS], &run->lists);
    good &= place(r, &sections[DP_FILE_SHARED], &run->shared) && place(r, &sections[DP_FILE_EXPIRES], &expires);
    atomic_store_explicit(&run->expires, (_Atomic uint64_t *)(uintptr_t)expires, memory_order_relaxed);
    return good;
}

/* Whether each section has the length its run requires. The dead bits are checked separately. */
static bool lengths_fit(const dp_file_section *sections, const dp_run *run) {
    file_part parts[DP_FILE_MAX_SECTIONS];
    int count = file_parts(run, parts);
    bool there = run->ids && (run->lists || !run->list_count);
    for (int t = 0; t < run->layout.tables; t++)
        there &= run->table[t].directory && run->table[t].filter && (run->table[t].rest || !run->table[t].rest_bits);
    if (!there)
        return false;
    for (int i = 0; i < count - 1; i++)
        if (sections[i].length != parts[i].length)
            return false;
    const dp_file_section *dead = &sections[count - 1];
    return dead->length == 0 || dead->length == (dp_run_slots(run) + 63) / 64 * sizeof(uint64_t);
}

/* Whether the counts are possible; every list has a number and at least two owners. */
static bool counts_fit(const dp_file_run *record, const dp_run *run) {
    return record->count && record->count <= DP_RUN_MOST && record->list_count <= UINT64_MAX / 16 &&
           record->lists <= record->count && record->lists <= record->list_count / 3 &&
           (record->list_count > 0) == (record->lists > 0) && (run->shared != NULL) == (record->lists > 0);
}

/* The dead bits go into memory; returns how many there are. */
static uint64_t load_dead(const uint64_t *words, uint64_t count, dp_run *run) {
    _Atomic uint64_t *dead = atomic_load_explicit(&run->dead, memory_order_relaxed);
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        atomic_store_explicit(&dead[i], words[i], memory_order_relaxed);
        found += (uint64_t)__builtin_popcountll(words[i]);
    }
    atomic_store_explicit(&run->dead_count, found, memory_order_relaxed);
    return found;
}

/* What is read of the data at once: which numbers have lists, and the dead bits. */
static doppel_status read_bits(const file_reading *r, int number, dp_run *run, doppel_error *error) {
    const uint64_t *words = NULL;
    uint64_t lists = 0, dead = 0, length = r->dead[number]->length;
    if (!place(r, r->dead[number], &words))
        return refuse(r->file, error, "has a section outside the file");
    doppel_status status = run->shared ? dp_run_touch(run, run->shared, dp_shared_bytes(run)) : DOPPEL_OK;
    if (!status && words)
        status = dp_run_touch(run, words, length);
    if (!status && words)
        status = dp_run_prepare_dead(run);
    if (status)
        return dp_version_explain(&(dp_version){.runs = 1, .run = {run}}, status, error);
    for (uint64_t i = 0; run->shared && i < dp_shared_bytes(run) / sizeof(uint64_t); i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    if (words)
        dead = load_dead(words, length / sizeof *words, run);
    /* A list takes two slots that are not entries: its number's, and its count's. */
    if (lists != r->lists[number] || dead > dp_run_slots(run) - 2 * lists)
        return refuse(r->file, error, "has invalid counts");
    return DOPPEL_OK;
}

static doppel_status note_ascents(index_file *file, const dp_run *run, doppel_error *error) {
    size_t need = file->ascent_count + (size_t)run->layout.tables;
    if (!dp_reserve(&file->ascents, &file->ascent_room, need, sizeof *file->ascents))
        return dp_no_memory(error);
    for (int t = 0; t < run->layout.tables; t++)
        file->ascents[file->ascent_count++] =
            (file_ascent){run->table[t].directory, dp_directory_bytes(&run->table[t]) / sizeof(uint32_t), run->count};
    return DOPPEL_OK;
}

/* Everything except data: no block can be checked before every run is known. */
static doppel_status read_run(file_reading *r, int number, dp_run *run, doppel_error *error) {
    const dp_file_run *record = take(r, sizeof *record);
    dp_layout layout;
    if (!record || !is_name(record->layout, sizeof record->layout) ||
        dp_layout_parse(record->layout, run->bits, &layout, NULL))
        return refuse(r->file, error, "has an invalid layout");
    dp_run_set_layout(run, &layout);
    int tables = layout.tables;
    uint64_t count = (uint64_t)(DP_FILE_TABLE_SECTIONS * tables + DP_FILE_OTHER_SECTIONS);
    const dp_file_section *sections = record->sections == count ? take(r, count * sizeof *sections) : NULL;
    run->count = record->count;
    run->list_count = record->list_count;
    if (!sections || !place_all(r, sections, run))
        return refuse(r->file, error, "has a section outside the file");
    if (!counts_fit(record, run) || !lengths_fit(sections, run))
        return refuse(r->file, error, "has a section of the wrong length");
    r->lists[number] = record->lists;
    r->dead[number] = &sections[count - 1];
    return note_ascents(r->file, run, error);
}

static doppel_status read_runs(file_reading *r, dp_run **runs, doppel_error *error) {
    int count = (int)r->header->runs;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < count && !status; i++) {
        runs[i] = dp_run_create((int)r->header->bits);
        if (!runs[i])
            return dp_no_memory(error);
        runs[i]->backing = &r->file->backing;
        file_hold(r->file);
        status = read_run(r, i, runs[i], error);
    }
    for (int i = 0; i < count && !status; i++)
        status = read_bits(r, i, runs[i], error);
    return status;
}

/* The checksums of the blocks are found from the end, but before they can be used the runs have to be known: they are
 * what is left of the directory. */
static doppel_status find_checks(index_file *file, const dp_file_header *header, doppel_error *error) {
    uint64_t at = sizeof *header;
    for (uint32_t i = 0; i < header->runs; i++) {
        const dp_file_run *record = (const void *)(file->map + at);
        uint64_t left = sizeof *header + header->directory_size - at;
        if (left < sizeof *record || record->sections > (left - sizeof *record) / sizeof(dp_file_section))
            return refuse(file, error, "has an invalid directory");
        at += sizeof *record + record->sections * sizeof(dp_file_section);
    }
    file->data = sizeof *header + header->directory_size;
    file->blocks = dp_file_blocks(header->data_size);
    if (align(at - sizeof *header + file->blocks * sizeof(uint64_t)) != header->directory_size)
        return refuse(file, error, "has an invalid directory");
    file->checks = (const void *)(file->map + at);
    file->checked = calloc(file->blocks / 64 + 1, sizeof *file->checked);
    return file->checked ? DOPPEL_OK : dp_no_memory(error);
}

static doppel_status make_index(const dp_file_header *header, dp_run **runs, doppel_index **index) {
    doppel_index_options options = {.size = sizeof options,
                                    .bits = (int)header->bits,
                                    .distance = (int)header->distance,
                                    .layout = *header->layout ? header->layout : NULL,
                                    .secret = header->secret};
    doppel_status status = dp_index_create(&options, runs, (int)header->runs, index);
    if (!status)
        (*index)->bytes_per_entry = header->bytes_per_entry;
    return status;
}

static doppel_status open_index(index_file *file, dp_run **runs, doppel_index **index, doppel_error *error) {
    doppel_status status = check_header(file, error);
    if (status)
        return status;
    const dp_file_header *header = (const void *)file->map;
    dp_layout layout;
    if (*header->layout && dp_layout_parse(header->layout, (int)header->bits, &layout, NULL))
        return refuse(file, error, "has an invalid layout");
    DP_TRY(find_checks(file, header, error));
    const char *directory = (const char *)file->map + sizeof *header;
    file_reading r = {.file = file, .header = header, .at = directory, .end = directory + header->directory_size};
    DP_TRY(read_runs(&r, runs, error));
    status = make_index(header, runs, index);
    return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
}

doppel_status doppel_index_open(const char *path, doppel_index **index, doppel_error *error) {
    *index = NULL;
    index_file *file;
    dp_run *runs[DP_MAX_RUNS] = {NULL};
    DP_TRY(file_map(path, &file, error));
    doppel_status status = open_index(file, runs, index, error);
    for (int i = 0; status && i < DP_MAX_RUNS; i++)
        dp_run_free(runs[i]);
    file_release(file);
    return status;
}

/* ---- saving: what one version holds ----
 *
 * Every run is written as it is, and the newest entries, of the head and the levels, as one run: nothing else is
 * merged, and only the directory, the dead bits and a block are kept in memory. The writer of the index may continue,
 * and changes dead bits and times in place. The dead bits are therefore copied first, and times number by number,
 * before their checksum is computed: entries alive then are saved with a time they had then or later. In the other
 * order, an entry that was removed and inserted again would be saved with its old time. */

/* A run with its sections: where they lie in memory, and where they go. */
typedef struct saved_run {
    const dp_run *run;
    uint64_t *dead; /* a copy of its dead bits; NULL: none are */
    int count;
    file_part parts[DP_FILE_MAX_SECTIONS];
    dp_file_section sections[DP_FILE_MAX_SECTIONS];
} saved_run;

typedef struct saved_content {
    const doppel_index *index;
    saved_run *runs;
    int run_count;
    uint64_t data_size;
    char *directory; /* with the checksums, at first zeros */
    uint64_t directory_size;
    uint64_t *checks; /* inside the directory */
} saved_content;

static void free_content(saved_content *c) {
    for (int i = 0; i < c->run_count; i++)
        free(c->runs[i].dead);
    free(c->runs);
    free(c->directory);
}

static void place_sections(saved_content *c, saved_run *saved) {
    for (int i = 0; i < saved->count; i++) {
        uint64_t length = saved->parts[i].length;
        saved->sections[i] = (dp_file_section){length ? c->data_size : 0, length};
        c->data_size = align(c->data_size + length);
    }
}

static uint64_t count_lists(const dp_run *run) {
    uint64_t lists = 0;
    for (uint64_t i = 0; run->shared && i < (run->count + 63) / 64; i++)
        lists += (uint64_t)__builtin_popcountll(run->shared[i]);
    return lists;
}

static void write_directory(const saved_content *c) {
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

/* Acquire: a reader that sees an entry inserted again sees its new time. */
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
    saved->count = file_parts(saved->run, saved->parts);
    saved->parts[saved->count - 1] = (file_part){saved->dead, words * sizeof *saved->dead, false};
    return dp_run_touch(saved->run, saved->run->shared, dp_shared_bytes(saved->run));
}

/* Where everything goes. */
static doppel_status plan(saved_content *c, const dp_version *version, const dp_run *newest) {
    c->runs = calloc((size_t)version->runs + 1, sizeof *c->runs);
    if (!c->runs)
        return DOPPEL_ERROR_MEMORY;
    uint64_t records = 0;
    for (int i = 0; i < version->runs + (newest != NULL); i++) {
        const dp_run *run = i < version->runs ? version->run[i] : newest;
        if (!run->count)
            continue;
        saved_run *saved = &c->runs[c->run_count++];
        saved->run = run;
        DP_TRY(list_parts(saved));
        place_sections(c, saved);
        records += sizeof(dp_file_run) + (uint64_t)saved->count * sizeof(dp_file_section);
    }
    c->directory_size = align(records + dp_file_blocks(c->data_size) * sizeof(uint64_t));
    c->directory = calloc(1, c->directory_size + 1);
    if (!c->directory)
        return DOPPEL_ERROR_MEMORY;
    c->checks = (uint64_t *)(void *)(c->directory + records);
    write_directory(c);
    return DOPPEL_OK;
}

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
static int write_part(stream *s, const file_part *part) {
    uint64_t whole = align(part->length);
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

static int write_header(const saved_content *c, int number) {
    dp_file_header header = {.magic = MAGIC,
                             .version = VERSION,
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

/* Returns an errno or 0. A block of the file the index was opened from may be damaged: *status then says
 * so. */
static int write_content(const saved_content *c, int number, doppel_status *status) {
    stream s = {.number = number, .at = sizeof(dp_file_header) + c->directory_size, .checks = c->checks};
    s.block = malloc(DP_FILE_BLOCK);
    int reason = s.block ? 0 : ENOMEM;
    for (int i = 0; i < c->run_count; i++)
        for (int p = 0; p < c->runs[i].count && !reason; p++) {
            const file_part *part = &c->runs[i].parts[p];
            *status = dp_run_touch(c->runs[i].run, part->bytes, part->length);
            reason = *status ? EIO : write_part(&s, part);
        }
    if (!reason && s.used)
        reason = write_block(&s);
    free(s.block);
    return reason ? reason : write_header(c, number);
}

/* The head and the levels as one run with tables; NULL in *made when nothing is in them. */
static doppel_status make_newest(const doppel_index *index, const dp_version *version, dp_run **made) {
    dp_merging merging = {0};
    dp_run *run[3] = {NULL};
    *made = NULL;
    doppel_status status = dp_head_run(version->head, &run[0]);
    if (version->growing)
        DP_THEN(status, dp_growing_run(version->growing, &run[1]));
    if (version->full)
        DP_THEN(status, dp_growing_run(version->full, &run[2]));
    for (int i = 0; i < 3; i++)
        if (run[i])
            merging.run[merging.count++] = run[i];
    if (merging.count)
        DP_THEN(status, dp_run_merge(&merging, made));
    if (*made)
        DP_THEN(status, dp_index_build(index, *made, NULL));
    dp_merging_free(&merging);
    for (int i = 0; i < 3; i++)
        dp_run_free(run[i]);
    return status;
}

static doppel_status save_version(const doppel_index *index, const dp_version *version, const char *path,
                                  doppel_error *error) {
    dp_run *newest;
    saved_content c = {.index = index};
    dp_newfile file;
    doppel_status status = make_newest(index, version, &newest), damage = DOPPEL_OK;
    DP_THEN(status, plan(&c, version, newest));
    if (status)
        dp_version_explain(version, status, error);
    else if (!(status = dp_newfile_create(&file, path, error))) {
        status = dp_newfile_finish(&file, write_content(&c, file.number, &damage), error);
        status = damage ? dp_version_explain(version, damage, error) : status;
    }
    free_content(&c);
    dp_run_free(newest);
    return status;
}

doppel_status doppel_index_save(const doppel_index *index, const char *path, doppel_error *error) {
    dp_pinned pinned = dp_index_pin(index);
    doppel_status status = save_version(index, pinned.version, path, error);
    dp_index_unpin(pinned);
    return status;
}

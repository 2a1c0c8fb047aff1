/* file_open.c - doppel_index_open: maps a file and makes the runs that lie in it.
 *
 * The header and the directory are checked here: their checksums, and that every section lies in the file and has the
 * length that the layout and the counts ask for. The data are checked block by block when they are touched (file.c);
 * only the dead bits, which are kept in memory, and the bits of lists, which are counted, are read at once. */
#include "index/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

static doppel_status refuse(const dp_file *file, doppel_error *error, const char *reason) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0, "%s", reason);
}

/* ---- the header ---- */

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

static doppel_status check_header(dp_file *file, doppel_error *error) {
    const dp_file_header *header = (const void *)file->map;
    if (memcmp(header->magic, DP_FILE_MAGIC, sizeof header->magic))
        return refuse(file, error, "is not an index");
    if (header->version != DP_FILE_VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, file->path, 0,
                          "has version %" PRIu32 ", this library reads version %d", header->version, DP_FILE_VERSION);
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
        return refuse(file, error, "has a header that makes no sense");
    return DOPPEL_OK;
}

/* ---- the directory ---- */

/* Where in the directory one reads. */
typedef struct reading {
    dp_file *file;
    const dp_file_header *header;
    const char *at, *end;
    uint64_t lists[DP_MAX_RUNS];              /* of each run */
    const dp_file_section *dead[DP_MAX_RUNS]; /* the same */
} reading;

/* The next `size` bytes, or NULL. */
static const void *take(reading *r, uint64_t size) {
    const char *from = r->at;
    if (size > (uint64_t)(r->end - from))
        return NULL;
    r->at += size;
    return from;
}

/* Sets a pointer of a run to its section; false when it does not lie in the data. */
static bool place(const reading *r, const dp_file_section *section, const void *pointer) {
    uint64_t size = r->header->data_size;
    if (section->offset % DP_FILE_ALIGN || section->offset > size || section->length > size - section->offset)
        return false;
    const void *at = section->length ? r->file->map + r->file->data + section->offset : NULL;
    memcpy((void *)(uintptr_t)pointer, &at, sizeof at);
    return true;
}

/* Points the run into the file; false when a section lies outside it. */
static bool place_all(const reading *r, const dp_file_section *sections, dp_run *run) {
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

/* Whether each section is as long as the run that points to it asks for. The dead bits are looked at apart. */
static bool lengths_fit(const dp_file_section *sections, const dp_run *run) {
    dp_file_part parts[DP_FILE_MAX_SECTIONS];
    int count = dp_file_parts(run, parts);
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

/* Whether the counts can be; every list has a number and two owners at least. */
static bool counts_fit(const dp_file_run *record, const dp_run *run) {
    return record->count && record->count <= DP_RUN_MOST && record->list_count <= UINT64_MAX / 16 &&
           record->lists <= record->count && record->lists <= record->list_count / 3 &&
           (record->list_count > 0) == (record->lists > 0) && (run->shared != NULL) == (record->lists > 0);
}

/* The dead bits go into memory; gives how many there are. */
static uint64_t copy_dead(const uint64_t *words, uint64_t count, dp_run *run) {
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
static doppel_status read_bits(const reading *r, int number, dp_run *run, doppel_error *error) {
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
        dead = copy_dead(words, length / sizeof *words, run);
    /* A list takes two slots that are not entries: its number's, and its count's. */
    if (lists != r->lists[number] || dead > dp_run_slots(run) - 2 * lists)
        return refuse(r->file, error, "has counts that make no sense");
    return DOPPEL_OK;
}

static doppel_status note_ascents(dp_file *file, const dp_run *run, doppel_error *error) {
    size_t need = file->ascent_count + (size_t)run->layout.tables;
    if (!dp_reserve(&file->ascents, &file->ascent_room, need, sizeof *file->ascents))
        return dp_no_memory(error);
    for (int t = 0; t < run->layout.tables; t++)
        file->ascents[file->ascent_count++] = (dp_file_ascent){
            run->table[t].directory, dp_directory_bytes(&run->table[t]) / sizeof(uint32_t), run->count};
    return DOPPEL_OK;
}

/* All but what is read of the data: no block can be checked before every run is known. */
static doppel_status read_run(reading *r, int number, dp_run *run, doppel_error *error) {
    const dp_file_run *record = take(r, sizeof *record);
    dp_layout layout;
    if (!record || !is_name(record->layout, sizeof record->layout) ||
        dp_layout_parse(record->layout, run->bits, &layout, NULL))
        return refuse(r->file, error, "has a layout that makes no sense");
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

static doppel_status read_runs(reading *r, dp_run **runs, doppel_error *error) {
    int count = (int)r->header->runs;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < count && !status; i++) {
        runs[i] = dp_run_create((int)r->header->bits);
        if (!runs[i])
            return dp_no_memory(error);
        runs[i]->backing = &r->file->backing;
        dp_file_hold(r->file);
        status = read_run(r, i, runs[i], error);
    }
    for (int i = 0; i < count && !status; i++)
        status = read_bits(r, i, runs[i], error);
    return status;
}

/* The checksums of the blocks are found from the end, but before they can be used the runs have to be known: they are
 * what is left of the directory. */
static doppel_status find_checks(dp_file *file, const dp_file_header *header, doppel_error *error) {
    uint64_t at = sizeof *header;
    for (uint32_t i = 0; i < header->runs; i++) {
        const dp_file_run *record = (const void *)(file->map + at);
        uint64_t left = sizeof *header + header->directory_size - at;
        if (left < sizeof *record || record->sections > (left - sizeof *record) / sizeof(dp_file_section))
            return refuse(file, error, "has a directory that makes no sense");
        at += sizeof *record + record->sections * sizeof(dp_file_section);
    }
    file->data = sizeof *header + header->directory_size;
    file->blocks = dp_file_blocks(header->data_size);
    if (dp_file_align(at - sizeof *header + file->blocks * sizeof(uint64_t)) != header->directory_size)
        return refuse(file, error, "has a directory that makes no sense");
    file->checks = (const void *)(file->map + at);
    file->checked = calloc(file->blocks / 64 + 1, sizeof *file->checked);
    return file->checked ? DOPPEL_OK : dp_no_memory(error);
}

/* ---- the public call ---- */

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

static doppel_status open_index(dp_file *file, dp_run **runs, doppel_index **index, doppel_error *error) {
    doppel_status status = check_header(file, error);
    if (status)
        return status;
    const dp_file_header *header = (const void *)file->map;
    dp_layout layout;
    if (*header->layout && dp_layout_parse(header->layout, (int)header->bits, &layout, NULL))
        return refuse(file, error, "has a layout that makes no sense");
    if ((status = find_checks(file, header, error)))
        return status;
    const char *directory = (const char *)file->map + sizeof *header;
    reading r = {.file = file, .header = header, .at = directory, .end = directory + header->directory_size};
    if ((status = read_runs(&r, runs, error)))
        return status;
    status = make_index(header, runs, index);
    return status == DOPPEL_ERROR_MEMORY ? dp_no_memory(error) : status;
}

doppel_status doppel_index_open(const char *path, doppel_index **index, doppel_error *error) {
    *index = NULL;
    dp_file *file;
    dp_run *runs[DP_MAX_RUNS] = {NULL};
    doppel_status status = dp_file_map(path, &file, error);
    if (status)
        return status;
    status = open_index(file, runs, index, error);
    for (int i = 0; status && i < DP_MAX_RUNS; i++)
        dp_run_free(runs[i]);
    dp_file_release(file);
    return status;
}

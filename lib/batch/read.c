/* read.c - documents in: sketch.c makes entries of them, documents.c takes those in order.
 *
 * A run that was stopped goes on: a reading that the journal has to its end is not read again; of one that it has a
 * part of, the documents it has are passed over. */
#include "batch/batch.h"
#include "input/input.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what comes from stdin can be read but once, and a batch reads it twice: it is copied into a nameless file,
 * which then stands in its place. */

static bool has_stdin(const dp_reading *reading) {
    for (size_t i = 0; i < reading->count; i++)
        if (!strcmp(reading->paths[i], "-"))
            return true;
    return false;
}

static doppel_status copy_stdin(doppel_batch *batch, dp_scratch *to, doppel_error *error) {
    enum { PIECE = 1 << 20 };
    char *piece = malloc(PIECE);
    doppel_status status = piece ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK) {
        ssize_t got = read(STDIN_FILENO, piece, PIECE);
        if (dp_stopped(batch->input.stop))
            status = dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
        else if (got < 0 && errno != EINTR)
            status = dp_fail_at(error, DOPPEL_ERROR_INPUT, "-", 0, "cannot be read: %s", strerror(errno));
        else if (got > 0)
            status = dp_scratch_write(to, piece, (size_t)got, to->size, error);
        if (!got)
            break;
        to->size += status == DOPPEL_OK && got > 0 ? (uint64_t)got : 0;
    }
    free(piece);
    return status;
}

doppel_status dp_stdin_rewind(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    dp_scratch copy;
    if (!has_stdin(reading))
        return DOPPEL_OK;
    if (batch->options.work)
        return dp_fail(
            error, DOPPEL_ERROR_USAGE,
            "a run that reads stdin cannot be gone on with: write it to a file, or do without a work folder");
    if (batch->stdin_kept && lseek(STDIN_FILENO, batch->stdin_start, SEEK_SET) < 0)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, "-", 0, "cannot be read again: %s", strerror(errno));
    if (batch->stdin_kept)
        return DOPPEL_OK;
    batch->stdin_kept = true;
    /* A plain file can be read again as it is. */
    if ((batch->stdin_start = lseek(STDIN_FILENO, 0, SEEK_CUR)) >= 0)
        return DOPPEL_OK;
    batch->stdin_start = 0;
    doppel_status status = dp_scratch_open(&copy, batch->options.tmp, error);
    if (status != DOPPEL_OK)
        return status;
    status = copy_stdin(batch, &copy, error);
    if (status == DOPPEL_OK && (lseek(copy.fd, 0, SEEK_SET) < 0 || dup2(copy.fd, STDIN_FILENO) < 0))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, "-", 0, "its copy cannot be read: %s", strerror(errno));
    dp_scratch_close(&copy);
    return status;
}

/* ---- what a batch was made of: the inputs, in the order they were read ---- */

bool doppel_batch_get_reading(const doppel_batch *batch, size_t number, doppel_batch_reading *reading) {
    if (number >= batch->reading_count)
        return false;
    const dp_reading *r = &batch->readings[number];
    *reading = (doppel_batch_reading){.paths = (const char *const *)r->paths,
                                      .path_count = r->count,
                                      .known = r->known,
                                      .counts = r->counts,
                                      .indexes = r->indexes};
    return true;
}

/* ---- beginning ---- */

static dp_reading *add_reading(doppel_batch *batch, const char *const *paths, size_t count, bool known) {
    if (!dp_reserve(&batch->readings, &batch->reading_room, batch->reading_count + 1, sizeof *batch->readings))
        return NULL;
    dp_reading *reading = &batch->readings[batch->reading_count];
    *reading = (dp_reading){.paths = calloc(count + 1, sizeof *reading->paths), .known = known};
    if (!reading->paths)
        return NULL;
    batch->reading_count++;
    for (; reading->count < count; reading->count++) {
        if (!(reading->paths[reading->count] = strdup(paths[reading->count])))
            return NULL;
        reading->indexes += known && dp_is_index(paths[reading->count]);
    }
    return reading;
}

/* Notes in the journal what is read now. */
static doppel_status begin_reading(doppel_batch *batch, const char *const *paths, size_t count, bool known) {
    dp_buffer body = {0};
    const dp_reading *reading = add_reading(batch, paths, count, known);
    uint64_t flag = reading ? known | reading->indexes << 1 : 0;
    bool made = reading && dp_buffer_add(&body, &flag, sizeof flag);
    for (size_t i = 0; i < count && made; i++)
        made = dp_buffer_add(&body, paths[i], strlen(paths[i]) + 1);
    if (made && !count)
        made = dp_buffer_add(&body, "", 1);
    doppel_slice part = {body.data, body.size};
    doppel_status status = made ? dp_journal_add(batch, DP_ENTRY_READING, &part, 1) : dp_no_memory(batch->last_error);
    dp_buffer_free(&body);
    return status;
}

/* Whether a reading that the journal has is the one that is asked for. */
static doppel_status check_reading(const dp_reading *reading, const char *const *paths, size_t count, bool known,
                                   doppel_error *error) {
    bool same = reading->count == count && reading->known == known;
    for (size_t i = 0; i < count && same; i++)
        same = !strcmp(reading->paths[i], paths[i]);
    if (same)
        return DOPPEL_OK;
    return dp_fail(error, DOPPEL_ERROR_USAGE, "the run that was stopped read other inputs (%s%s): give the same",
                   reading->count ? reading->paths[0] : "none", reading->count > 1 ? ", ..." : "");
}

/* ---- files that a stopped run had seen ---- */

static size_t place_of(const dp_reading *reading, const char *name) {
    return (size_t)dp_murmur3(name, strlen(name), 0) & (reading->name_room - 1);
}

size_t dp_reading_find(const dp_reading *reading, const char *name) {
    if (!reading->name_room)
        return SIZE_MAX;
    size_t at = place_of(reading, name);
    for (; reading->by_name[at]; at = (at + 1) & (reading->name_room - 1))
        if (!strcmp(reading->seen[reading->by_name[at] - 1], name))
            return reading->by_name[at] - 1;
    return SIZE_MAX;
}

/* Goes on behind what the journal has. */
static bool resume(dp_reading *reading) {
    size_t room = 16;
    reading->resumed = reading->seen_count;
    reading->resumed_line = reading->last_line;
    while (room < 2 * reading->resumed)
        room *= 2;
    if (!(reading->by_name = calloc(room, sizeof *reading->by_name)))
        return false;
    reading->name_room = room;
    for (size_t i = 0; i < reading->resumed; i++) {
        size_t at = place_of(reading, reading->seen[i]);
        while (reading->by_name[at])
            at = (at + 1) & (room - 1);
        reading->by_name[at] = (uint32_t)i + 1;
    }
    return true;
}

/* ---- reading ---- */

static doppel_status end_reading(doppel_batch *batch, dp_reading *reading) {
    doppel_slice part = {(const char *)&reading->counts, sizeof reading->counts};
    reading->complete = true;
    return dp_journal_add(batch, DP_ENTRY_END, &part, 1);
}

/* Whether a path is the folder that this run itself is kept in. */
static bool is_own_folder(const doppel_batch *batch, const char *path) {
    struct stat theirs, own;
    return batch->options.work && !stat(path, &theirs) && !stat(batch->options.work, &own) &&
           theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

/* What is compared with nothing is a mistake, but for an empty file, which is what it is. */
static doppel_status check_known(const doppel_batch *batch, const dp_reading *reading, size_t taken,
                                 doppel_error *error) {
    if (!reading->known || !batch->known_input.refuse_bad)
        return DOPPEL_OK;
    if (reading->counts.unopened)
        return dp_fail(error, DOPPEL_ERROR_INPUT,
                       "not all that is to be compared with could be read; --allow-bad goes on without it");
    for (size_t i = 0; i < reading->count; i++)
        if (dp_input_is_empty_folder(reading->paths[i]))
            return dp_fail_at(error, DOPPEL_ERROR_INPUT, reading->paths[i], 0,
                              "is an empty folder: there is nothing to compare with");
    if (!taken && !reading->indexes && !reading->counts.documents && reading->counts.bytes)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, reading->paths[0], 0,
                          "has no document: there is nothing to compare with");
    return DOPPEL_OK;
}

/* Index folders are asked while others are read, files of sketches are taken as they are, all others are read. */
static doppel_status read_paths(doppel_batch *batch, dp_reading *reading, doppel_error *error) {
    const doppel_input_options *input = reading->known ? &batch->known_input : &batch->input;
    char file[4096];
    doppel_work work = dp_sketch_work(batch);
    doppel_status status = dp_against_open(batch, error);
    size_t others = 0;
    const char **paths = malloc((reading->count + 1) * sizeof *paths);
    if (!paths)
        return dp_no_memory(error);
    for (size_t i = 0; i < reading->count && status == DOPPEL_OK; i++) {
        if (reading->indexes && dp_is_index(reading->paths[i]))
            continue;
        if (reading->known && is_own_folder(batch, reading->paths[i]))
            status = dp_fail_at(error, DOPPEL_ERROR_USAGE, reading->paths[i], 0,
                                "is the folder of this run, which cannot be compared with itself");
        else if (reading->known && dp_is_journal(reading->paths[i]))
            status = dp_journal_take(batch, reading->paths[i], error);
        else if (reading->known && dp_is_work(reading->paths[i], file))
            status = dp_journal_take(batch, file, error);
        else
            paths[others++] = reading->paths[i];
    }
    if (status == DOPPEL_OK)
        status = dp_stdin_rewind(batch, reading, error);
    if (status == DOPPEL_OK && others)
        status = doppel_input_run(paths, others, input, &work, &reading->counts, error);
    if (status == DOPPEL_OK)
        status = check_known(batch, reading, reading->count - others, error);
    dp_against_end(batch, status, error);
    free(paths);
    return status;
}

/* What a reading has left to read. */
static doppel_status read_rest(doppel_batch *batch, dp_reading *reading, doppel_error *error) {
    if (reading->complete)
        return DOPPEL_OK;
    if (!resume(reading))
        return dp_no_memory(error);
    doppel_status status = read_paths(batch, reading, error);
    return status == DOPPEL_OK || batch->limit_reached ? end_reading(batch, reading) : status;
}

/* Begins a reading, or finds it in the journal; and reads. */
static doppel_status read_all(doppel_batch *batch, const char *const *paths, size_t count, bool known,
                              doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (batch->reading_at < batch->reading_count)
        status = check_reading(&batch->readings[batch->reading_at], paths, count, known, error);
    else
        status = begin_reading(batch, paths, count, known);
    if (status != DOPPEL_OK)
        return status;
    status = read_rest(batch, &batch->readings[batch->reading_at], error);
    batch->reading_at++;
    return status;
}

doppel_status doppel_batch_read(doppel_batch *batch, const char *const *paths, size_t path_count, bool known,
                                doppel_input_counts *counts, doppel_error *error) {
    doppel_error own = {0};
    double begun = dp_seconds();
    size_t number = batch->reading_at;
    if (batch->ended)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "documents cannot be read once pairs were asked for");
    if (known && number && !batch->readings[number - 1].known)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "known documents have to be read before all others");
    batch->last_error = &own;
    doppel_status status = read_all(batch, paths, path_count, known, error);
    if (own.code != DOPPEL_OK && status != DOPPEL_OK && error)
        *error = own;
    /* Behind a reading that the journal has stand the documents of the next one. */
    if (known && batch->reading_at == batch->reading_count)
        batch->known = batch->count;
    if (counts)
        *counts = number < batch->reading_at ? batch->readings[number].counts : (doppel_input_counts){0};
    /* What was read stays, whatever happens next. */
    doppel_status kept =
        batch->options.work ? dp_spill_flush(&batch->journal, status == DOPPEL_OK ? error : NULL) : DOPPEL_OK;
    batch->stats.seconds_read += dp_seconds() - begun;
    return status == DOPPEL_OK ? kept : status;
}

/* Counts documents whose id an earlier one has, known ones aside. Ids are told by 64 bits of their hash. */
static bool count_same_ids(doppel_batch *batch) {
    size_t count = batch->id_hash ? batch->count - batch->known : 0;
    uint64_t *scratch = malloc((count + 1) * sizeof *scratch);
    if (scratch && count) {
        uint64_t *hash = batch->id_hash + batch->known;
        dp_sort64(hash, count, scratch);
        batch->stats.same_ids = count - dp_unique64(hash, count);
    }
    free(scratch);
    free(batch->id_hash);
    batch->id_hash = NULL;
    return scratch;
}

doppel_status dp_batch_end_reading(doppel_batch *batch, doppel_error *error) {
    if (batch->ended)
        return DOPPEL_OK;
    free(batch->firsts);
    batch->firsts = NULL;
    batch->firsts_room = batch->firsts_count = 0;
    doppel_status status = dp_spill_flush(&batch->journal, error);
    if (status == DOPPEL_OK && batch->has_sets)
        status = dp_bands_flush(batch, error);
    if (status == DOPPEL_OK && !count_same_ids(batch))
        status = dp_no_memory(error);
    batch->ended = status == DOPPEL_OK;
    return status;
}

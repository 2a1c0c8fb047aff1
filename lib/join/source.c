/* source.c - reads a doppel_source of any of the three kinds, and checks the fingerprints.
 *
 * dp_fingerprints_open -> (dp_fingerprints_settle) -> dp_fingerprints_read, dp_fingerprints_next ->
 * dp_fingerprints_close. A callback or a pipe, which can be read once only, is kept by settle: in memory, or past its
 * part of the memory in an unnamed file. */
#include "join/join.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static doppel_status open_file(dp_fingerprints *source, doppel_error *error) {
    const char *path = source->given.path;
    struct stat about;
    source->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0 || fstat(source->fd, &about))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot open: %s", strerror(errno));
    if (S_ISDIR(about.st_mode))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "is a folder, not a file of fingerprints");
    source->pipe = !S_ISREG(about.st_mode);
    if (source->pipe)
        return DOPPEL_OK;
    uint64_t bytes = (uint64_t)about.st_size;
    if (bytes % dp_fingerprints_item(source))
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, path, 0,
                          "has %llu bytes, which is not a number of fingerprints of %zu bytes: it is cut short, or its "
                          "fingerprints have another width",
                          (unsigned long long)bytes, dp_fingerprints_item(source));
    posix_fadvise(source->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    source->count = bytes / dp_fingerprints_item(source);
    source->settled = true;
    return DOPPEL_OK;
}

static doppel_status check_kind(const doppel_source *source, doppel_error *error) {
    int kinds = (source->array || source->count) + (source->path != NULL) + (source->read != NULL);
    if (kinds > 1)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "a source of fingerprints is an array, a path or a callback: one of "
                       "them, not several");
    if (source->count && !source->array)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "a source of fingerprints has a count but no array");
    return DOPPEL_OK;
}

doppel_status dp_fingerprints_open(dp_fingerprints *source, const doppel_source *given, int bits, doppel_error *error) {
    *source = (dp_fingerprints){.fd = -1, .bits = bits ? bits : 64};
    if (!given)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "there is no source of fingerprints");
    dp_copy_options(&source->given, given, sizeof source->given);
    if (source->bits < 1 || (source->bits > 64 && source->bits != 128))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "fingerprints have 1 to 64 bits, or 128, not %d", bits);
    source->words = source->bits > 64 ? 2 : 1;
    doppel_status status = check_kind(&source->given, error);
    if (status == DOPPEL_OK && source->given.path)
        status = open_file(source, error);
    if (status != DOPPEL_OK) {
        dp_fingerprints_close(source);
        return status;
    }
    if (!source->given.path && !source->given.read) {
        source->count = source->given.count;
        source->settled = true;
    }
    return DOPPEL_OK;
}

void dp_fingerprints_close(dp_fingerprints *source) {
    if (source->fd >= 0)
        close(source->fd);
    source->fd = -1;
    free(source->kept);
    source->kept = NULL;
    dp_scratch_close(&source->spool);
}

/* ---- checking ---- */

/* The first fingerprint with bits beyond the width, from 0; there is one. */
static size_t first_wide(const uint64_t *numbers, uint64_t beyond) {
    size_t at = 0;
    while (!(numbers[at] & beyond))
        at++;
    return at;
}

/* Checks that no fingerprint has bits beyond the width. */
static doppel_status check_width(const dp_fingerprints *source, const uint64_t *numbers, dp_fingerprints_part part,
                                 doppel_error *error) {
    if (source->bits >= 64)
        return DOPPEL_OK;
    uint64_t any = 0, beyond = ~(uint64_t)0 << source->bits;
    for (size_t i = 0; i < part.count; i++)
        any |= numbers[i];
    if (!(any & beyond))
        return DOPPEL_OK;
    size_t at = first_wide(numbers, beyond);
    dp_fail_at(error, DOPPEL_ERROR_INPUT, source->given.path ? source->given.path : "", 0,
               "fingerprint %llu (from 0), %llx, has bits beyond the width of %d", (unsigned long long)(part.from + at),
               (unsigned long long)numbers[at], source->bits);
    if (error)
        error->position = part.from + at + 1;
    return DOPPEL_ERROR_INPUT;
}

/* Files are little-endian. */
static void from_little_endian(uint64_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        numbers[i] = dp_load64(&numbers[i]);
}

/* ---- reading anywhere ---- */

static doppel_status read_file(const dp_fingerprints *source, dp_fingerprints_part part, uint64_t *room,
                               doppel_error *error) {
    char *to = (char *)room;
    size_t left = part.count * dp_fingerprints_item(source);
    uint64_t at = part.from * dp_fingerprints_item(source);
    while (left) {
        ssize_t got = pread(source->fd, to, left, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, source->given.path, 0, "cannot read: %s",
                              got ? strerror(errno) : "it was truncated while it was read");
        to += got;
        at += (uint64_t)got;
        left -= (size_t)got;
    }
    from_little_endian(room, part.count * source->words);
    return DOPPEL_OK;
}

doppel_status dp_fingerprints_read(const dp_fingerprints *source, dp_fingerprints_part part, uint64_t *room,
                                   const uint64_t **got, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    *got = room;
    if (source->spool.open) /* was checked on its way in */
        return dp_scratch_read(&source->spool, room, part.count * dp_fingerprints_item(source),
                               part.from * dp_fingerprints_item(source), error);
    if (source->given.array)
        *got = source->given.array + part.from * source->words;
    else if (part.count)
        status = read_file(source, part, room, error);
    return status == DOPPEL_OK ? check_width(source, *got, part, error) : status;
}

/* ---- reading in turn ---- */

/* Reads until the room is full or the pipe ends; *bytes is how many. */
static doppel_status fill_from_pipe(dp_fingerprints *source, char *room, size_t *bytes, doppel_error *error) {
    size_t size = *bytes;
    *bytes = 0;
    while (*bytes < size) {
        ssize_t got = read(source->fd, room + *bytes, size - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, source->given.path, 0, "cannot read: %s", strerror(errno));
        if (!got)
            break;
        *bytes += (size_t)got;
    }
    return DOPPEL_OK;
}

static doppel_status next_from_pipe(dp_fingerprints *source, uint64_t *room, size_t *count, doppel_error *error) {
    size_t bytes = *count * dp_fingerprints_item(source), over;
    DP_TRY(fill_from_pipe(source, (char *)room, &bytes, error));
    over = bytes % dp_fingerprints_item(source);
    if (over)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, source->given.path, 0,
                          "ends %zu bytes into a fingerprint of %zu bytes: it is cut short, or its fingerprints have "
                          "another width",
                          over, dp_fingerprints_item(source));
    *count = bytes / dp_fingerprints_item(source);
    from_little_endian(room, *count * source->words);
    return DOPPEL_OK;
}

static doppel_status next_from_callback(dp_fingerprints *source, uint64_t *room, size_t *count, doppel_error *error) {
    size_t got = 0;
    doppel_status status = source->given.read(source->given.user, room, *count, &got);
    if (status != DOPPEL_OK)
        return dp_fail(error, status, "the callback that gives fingerprints says: %s", doppel_status_name(status));
    if (got > *count)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "the callback that gives fingerprints gave %zu where there was room "
                       "for %zu",
                       got, *count);
    *count = got;
    return DOPPEL_OK;
}

/* From what can be read once only. */
static doppel_status next_of_stream(dp_fingerprints *source, uint64_t *room, size_t *count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (source->ended)
        *count = 0;
    else if (source->pipe)
        status = next_from_pipe(source, room, count, error);
    else
        status = next_from_callback(source, room, count, error);
    if (status == DOPPEL_OK && !*count)
        source->ended = true;
    return status == DOPPEL_OK ? check_width(source, room, (dp_fingerprints_part){source->taken, *count}, error)
                               : status;
}

doppel_status dp_fingerprints_next(dp_fingerprints *source, uint64_t *room, size_t *count, const uint64_t **got,
                                   doppel_error *error) {
    doppel_status status;
    *got = room;
    if (source->settled) {
        if (*count > source->count - source->taken)
            *count = (size_t)(source->count - source->taken);
        status = dp_fingerprints_read(source, (dp_fingerprints_part){source->taken, *count}, room, got, error);
    } else {
        status = next_of_stream(source, room, count, error);
    }
    if (status == DOPPEL_OK)
        source->taken += *count;
    return status;
}

/* ---- keeping what can be read once only ---- */

/* The part of the memory for it. For the 8 bytes of a fingerprint a join has 17 of lines and pairs (29 for 16), so that
 * the rest still holds all lines at once; rotate copies it once, and has 24 for each thread. */
enum { KEPT_PART = 4 };

uint64_t dp_fingerprints_kept_bytes(const dp_fingerprints *source) {
    return source->kept ? source->count * dp_fingerprints_item(source) : 0;
}

/* The next batch, into `room`; *count is 0 at the end. */
static doppel_status take_batch(dp_fingerprints *source, const volatile int *stop, uint64_t *room, size_t *count,
                                doppel_error *error) {
    const uint64_t *got;
    *count = DP_FINGERPRINTS_BATCH;
    if (dp_stopped(stop))
        return dp_fail(error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    return dp_fingerprints_next(source, room, count, &got, error);
}

/* Reads into memory, up to its limit. */
static doppel_status keep(dp_fingerprints *source, const dp_fingerprints_keeping *keeping, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    while (status == DOPPEL_OK && !source->ended) {
        uint64_t need = source->taken + DP_FINGERPRINTS_BATCH;
        size_t count;
        if (need > keeping->memory / KEPT_PART / dp_fingerprints_item(source))
            return DOPPEL_OK;
        if (!dp_reserve(&source->kept, &source->kept_room, need, dp_fingerprints_item(source)))
            return dp_no_memory(error);
        status = take_batch(source, keeping->stop, source->kept + source->taken * source->words, &count, error);
    }
    return status;
}

static doppel_status write_on(dp_fingerprints *source, const uint64_t *fingerprints, uint64_t count,
                              doppel_error *error) {
    size_t bytes = (size_t)count * dp_fingerprints_item(source);
    doppel_status status = dp_scratch_write(&source->spool, fingerprints, bytes, source->spool.size, error);
    if (status == DOPPEL_OK)
        source->spool.size += bytes;
    return status;
}

doppel_status dp_fingerprints_spool(dp_fingerprints *source, const char *tmp, doppel_error *error) {
    uint64_t count = source->settled ? source->count : source->taken;
    doppel_status status = dp_scratch_open(&source->spool, tmp, error);
    if (status == DOPPEL_OK && source->kept)
        status = write_on(source, source->kept, count, error);
    source->given.array = NULL;
    free(source->kept);
    source->kept = NULL;
    return status;
}

/* Writes the rest to the file. */
static doppel_status spool_rest(dp_fingerprints *source, const dp_fingerprints_keeping *keeping, doppel_error *error) {
    uint64_t *room = malloc(DP_FINGERPRINTS_BATCH * dp_fingerprints_item(source));
    doppel_status status = room ? DOPPEL_OK : dp_no_memory(error);
    while (status == DOPPEL_OK && !source->ended) {
        size_t count;
        status = take_batch(source, keeping->stop, room, &count, error);
        DP_THEN(status, write_on(source, room, count, error));
    }
    free(room);
    return status;
}

doppel_status dp_fingerprints_settle(dp_fingerprints *source, const dp_fingerprints_keeping *keeping,
                                     doppel_error *error) {
    if (source->settled)
        return DOPPEL_OK;
    doppel_status status = keep(source, keeping, error);
    if (status == DOPPEL_OK && !source->ended) {
        status = dp_fingerprints_spool(source, keeping->tmp, error);
        DP_THEN(status, spool_rest(source, keeping, error));
    }
    if (status != DOPPEL_OK)
        return status;
    source->given.array = source->kept;
    source->count = source->taken;
    source->taken = 0;
    source->settled = true;
    return DOPPEL_OK;
}

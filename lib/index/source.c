/* source.c - reads a doppel_source, whichever of its three kinds it is, and checks what comes. */
#include "index/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- opening ---- */

static doppel_status open_file(dp_feed *feed, doppel_error *error) {
    const char *path = feed->source.path;
    struct stat about;
    feed->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (feed->fd < 0 || fstat(feed->fd, &about))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot open: %s", strerror(errno));
    if (S_ISDIR(about.st_mode))
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "is a folder, not a file of fingerprints");
    feed->pipe = !S_ISREG(about.st_mode);
    if (feed->pipe)
        return DOPPEL_OK;
    uint64_t bytes = (uint64_t)about.st_size;
    if (bytes % dp_feed_item(feed))
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, path, 0,
                          "has %llu bytes, which is not a number of fingerprints of %zu bytes: it is cut short, or its "
                          "fingerprints have another width",
                          (unsigned long long)bytes, dp_feed_item(feed));
    posix_fadvise(feed->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    feed->count = bytes / dp_feed_item(feed);
    feed->settled = true;
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

doppel_status dp_feed_open(dp_feed *feed, const doppel_source *source, int bits, doppel_error *error) {
    *feed = (dp_feed){.fd = -1, .bits = bits ? bits : 64};
    if (!source)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "there is no source of fingerprints");
    dp_copy_options(&feed->source, source, sizeof feed->source);
    if (feed->bits < 1 || (feed->bits > 64 && feed->bits != 128))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "fingerprints have 1 to 64 bits, or 128, not %d", bits);
    feed->words = feed->bits > 64 ? 2 : 1;
    doppel_status status = check_kind(&feed->source, error);
    if (status == DOPPEL_OK && feed->source.path)
        status = open_file(feed, error);
    if (status != DOPPEL_OK) {
        dp_feed_close(feed);
        return status;
    }
    if (!feed->source.path && !feed->source.read) {
        feed->count = feed->source.count;
        feed->settled = true;
    }
    return DOPPEL_OK;
}

void dp_feed_close(dp_feed *feed) {
    if (feed->fd >= 0)
        close(feed->fd);
    feed->fd = -1;
    free(feed->held);
    feed->held = NULL;
    dp_scratch_close(&feed->spool);
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
static doppel_status check_width(const dp_feed *feed, const uint64_t *numbers, dp_feed_part part, doppel_error *error) {
    if (feed->bits >= 64)
        return DOPPEL_OK;
    uint64_t any = 0, beyond = ~(uint64_t)0 << feed->bits;
    for (size_t i = 0; i < part.count; i++)
        any |= numbers[i];
    if (!(any & beyond))
        return DOPPEL_OK;
    size_t at = first_wide(numbers, beyond);
    dp_fail_at(error, DOPPEL_ERROR_INPUT, feed->source.path ? feed->source.path : "", 0,
               "fingerprint %llu (from 0), %llx, has bits beyond the width of %d", (unsigned long long)(part.from + at),
               (unsigned long long)numbers[at], feed->bits);
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

static doppel_status read_file(const dp_feed *feed, dp_feed_part part, uint64_t *room, doppel_error *error) {
    char *to = (char *)room;
    size_t left = part.count * dp_feed_item(feed);
    uint64_t at = part.from * dp_feed_item(feed);
    while (left) {
        ssize_t got = pread(feed->fd, to, left, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, feed->source.path, 0, "cannot read: %s",
                              got ? strerror(errno) : "it became shorter meanwhile");
        to += got;
        at += (uint64_t)got;
        left -= (size_t)got;
    }
    from_little_endian(room, part.count * feed->words);
    return DOPPEL_OK;
}

doppel_status dp_feed_read(const dp_feed *feed, dp_feed_part part, uint64_t *room, const uint64_t **got,
                           doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    *got = room;
    if (feed->spool.open) /* was checked on its way in */
        return dp_scratch_read(&feed->spool, room, part.count * dp_feed_item(feed), part.from * dp_feed_item(feed),
                               error);
    if (feed->source.array)
        *got = feed->source.array + part.from * feed->words;
    else if (part.count)
        status = read_file(feed, part, room, error);
    return status == DOPPEL_OK ? check_width(feed, *got, part, error) : status;
}

/* ---- reading in turn ---- */

/* Reads until the room is full or the pipe ends; *bytes is how many. */
static doppel_status fill_from_pipe(dp_feed *feed, char *room, size_t *bytes, doppel_error *error) {
    size_t size = *bytes;
    *bytes = 0;
    while (*bytes < size) {
        ssize_t got = read(feed->fd, room + *bytes, size - *bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail_at(error, DOPPEL_ERROR_IO, feed->source.path, 0, "cannot read: %s", strerror(errno));
        if (!got)
            break;
        *bytes += (size_t)got;
    }
    return DOPPEL_OK;
}

static doppel_status next_from_pipe(dp_feed *feed, uint64_t *room, size_t *count, doppel_error *error) {
    size_t bytes = *count * dp_feed_item(feed), over;
    doppel_status status = fill_from_pipe(feed, (char *)room, &bytes, error);
    if (status != DOPPEL_OK)
        return status;
    over = bytes % dp_feed_item(feed);
    if (over)
        return dp_fail_at(error, DOPPEL_ERROR_INPUT, feed->source.path, 0,
                          "ends %zu bytes into a fingerprint of %zu bytes: it is cut short, or its fingerprints have "
                          "another width",
                          over, dp_feed_item(feed));
    *count = bytes / dp_feed_item(feed);
    from_little_endian(room, *count * feed->words);
    return DOPPEL_OK;
}

static doppel_status next_from_callback(dp_feed *feed, uint64_t *room, size_t *count, doppel_error *error) {
    size_t got = 0;
    doppel_status status = feed->source.read(feed->source.user, room, *count, &got);
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
static doppel_status next_of_stream(dp_feed *feed, uint64_t *room, size_t *count, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    if (feed->ended)
        *count = 0;
    else if (feed->pipe)
        status = next_from_pipe(feed, room, count, error);
    else
        status = next_from_callback(feed, room, count, error);
    if (status == DOPPEL_OK && !*count)
        feed->ended = true;
    return status == DOPPEL_OK ? check_width(feed, room, (dp_feed_part){feed->taken, *count}, error) : status;
}

doppel_status dp_feed_next(dp_feed *feed, uint64_t *room, size_t *count, const uint64_t **got, doppel_error *error) {
    doppel_status status;
    *got = room;
    if (feed->settled) {
        if (*count > feed->count - feed->taken)
            *count = (size_t)(feed->count - feed->taken);
        status = dp_feed_read(feed, (dp_feed_part){feed->taken, *count}, room, got, error);
    } else {
        status = next_of_stream(feed, room, count, error);
    }
    if (status == DOPPEL_OK)
        feed->taken += *count;
    return status;
}

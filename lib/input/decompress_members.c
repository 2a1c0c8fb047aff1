/* decompress_members.c - the members of a piece of a file: finds where one may start, and decompresses from there.
 *
 * A place that looks like a start is one only if a whole member with its right checksum follows, and another start or
 * the end of the file behind that, as far as the piece goes. If not, the search goes on behind the place. */
#include "input/decompress.h"

#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* One read of the file. */
#define RAW ((size_t)128 << 10)

/* What is looked at to tell a start: the magic number of zstd; of gzip that, the method and the flags. */
#define START 4

/* So many places of a piece are tried. Data that was made to have many must not cost much. */
#define TRIES 16

/* Room for output grows by at least this. */
#define ROOM ((size_t)256 << 10)

/* Windows of 16 MiB, which is what one piece may become. Every decoder holds one, so that larger ones, up to 128 MiB,
 * would add up; frames that ask for them are left to the reader. */
#define WINDOW_LOG 24

#define NOWHERE UINT64_MAX

struct dp_members {
    dp_ahead_file file;
    uint64_t offset;   /* in the file, of raw[0] */
    size_t start, end; /* what of raw is unused */
    z_stream gzip;
    ZSTD_DCtx *decoder;
    uint8_t raw[RAW];
};

dp_members *dp_members_create(const dp_ahead_file *file) {
    dp_members *members = calloc(1, sizeof *members);
    if (!members)
        return NULL;
    members->file = *file;
    if (file->zstd && (members->decoder = ZSTD_createDCtx()))
        ZSTD_DCtx_setParameter(members->decoder, ZSTD_d_windowLogMax, WINDOW_LOG);
    /* 15: the largest window; 16: a gzip header and no other */
    if (file->zstd ? members->decoder != NULL : inflateInit2(&members->gzip, 15 + 16) == Z_OK)
        return members;
    free(members);
    return NULL;
}

void dp_members_free(dp_members *members) {
    if (!members)
        return;
    if (members->file.zstd)
        ZSTD_freeDCtx(members->decoder);
    else
        inflateEnd(&members->gzip);
    free(members);
}

/* ---- the file ---- */

static uint64_t place(const dp_members *members) {
    return members->offset + members->start;
}

static void go_to(dp_members *members, uint64_t to) {
    if (to >= members->offset && to <= members->offset + members->end) {
        members->start = (size_t)(to - members->offset);
        return;
    }
    members->offset = to;
    members->start = members->end = 0;
}

/* Makes at least `need` bytes stand in `raw`; false when the file has no more, or cannot be read. */
static bool fill(dp_members *members, size_t need) {
    size_t have = members->end - members->start;
    if (have >= need)
        return true;
    memmove(members->raw, members->raw + members->start, have);
    members->offset += members->start;
    members->start = 0;
    members->end = have;
    while (members->end < need) {
        off_t at = (off_t)(members->offset + members->end);
        ssize_t got = pread(members->file.fd, members->raw + members->end, RAW - members->end, at);
        if (got <= 0)
            return false;
        members->end += (size_t)got;
    }
    return true;
}

/* ---- where a member may start ---- */

static bool is_start(const dp_members *members, const uint8_t *p) {
    if (!members->file.zstd) /* deflate, and no flag that is not in use */
        return p[0] == 0x1F && p[1] == 0x8B && p[2] == 8 && !(p[3] & 0xE0);
    uint32_t magic = dp_load32(p);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/* The first place from `from` on, before `to`, that looks like a start. */
static uint64_t find_start(dp_members *members, uint64_t from, uint64_t to) {
    go_to(members, from);
    while (place(members) < to && fill(members, START)) {
        const uint8_t *p = members->raw + members->start, *last = members->raw + members->end - START;
        while (p <= last && !is_start(members, p))
            p++;
        members->start = (size_t)(p - members->raw);
        if (p <= last)
            return place(members) < to ? place(members) : NOWHERE;
    }
    return NOWHERE;
}

/* ---- one member ---- */

/* Room for output, within `most` bytes in all; 0: there is none. */
static size_t make_room(dp_buffer *out, size_t most) {
    size_t want = out->capacity;
    if (want < out->size + ROOM / 4)
        want = out->size + ROOM;
    if (want > most)
        want = most;
    return dp_reserve(&out->data, &out->capacity, want, 1) ? want - out->size : 0;
}

static bool read_gzip(dp_members *members, dp_buffer *out, size_t most) {
    z_stream *z = &members->gzip;
    int result = inflateReset(z);
    while (result == Z_OK || result == Z_BUF_ERROR) {
        size_t room = make_room(out, most);
        if (!fill(members, 1) || (!room && result == Z_BUF_ERROR))
            return false;
        z->next_in = members->raw + members->start;
        z->avail_in = (uInt)(members->end - members->start);
        z->next_out = (uint8_t *)out->data + out->size;
        z->avail_out = (uInt)room;
        result = inflate(z, Z_NO_FLUSH);
        members->start = members->end - z->avail_in;
        out->size += room - z->avail_out;
    }
    return result == Z_STREAM_END;
}

static bool read_zstd(dp_members *members, dp_buffer *out, size_t most) {
    size_t result = ZSTD_DCtx_reset(members->decoder, ZSTD_reset_session_only);
    bool moved = true;
    while (!ZSTD_isError(result) && moved) {
        size_t room = make_room(out, most);
        fill(members, 1); /* at the end of the file the decoder may still hold output */
        ZSTD_inBuffer in = {members->raw + members->start, members->end - members->start, 0};
        ZSTD_outBuffer to = {room ? out->data + out->size : NULL, room, 0};
        result = ZSTD_decompressStream(members->decoder, &to, &in);
        members->start += in.pos;
        out->size += to.pos;
        if (!result)
            return true;
        moved = in.pos || to.pos;
    }
    return false;
}

/* ---- the members of a piece ---- */

/* Reads members from `start` on while they start before `to`; those that do not fit are left out. False when something
 * else stands there. */
static bool read_chain(dp_members *members, uint64_t to, size_t most, dp_ahead_piece *piece) {
    while (place(members) < to && place(members) < members->file.size) {
        size_t before = piece->out.size;
        if (!fill(members, START) || !is_start(members, members->raw + members->start))
            return false;
        if (!(members->file.zstd ? read_zstd : read_gzip)(members, &piece->out, most)) {
            bool full = piece->out.size >= most;
            piece->out.size = before;
            return full;
        }
        piece->end = place(members);
    }
    return true;
}

void dp_members_read(dp_members *members, uint64_t from, uint64_t to, size_t most, dp_ahead_piece *piece) {
    for (int i = 0; i < TRIES; i++) {
        piece->out.size = 0;
        piece->start = piece->end = find_start(members, from, to);
        if (piece->start == NOWHERE)
            break;
        go_to(members, piece->start);
        if (read_chain(members, to, most, piece))
            return;
        from = piece->end > piece->start ? piece->end : piece->start + 1;
    }
    piece->out.size = 0;
    piece->start = piece->end = 0;
}

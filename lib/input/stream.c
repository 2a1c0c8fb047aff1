/* stream.c - the bytes of one file, decompressed.
 *
 * Plain files are read straight into the caller's memory, but for the first bytes, which were looked at to tell the
 * format. Compressed ones go through `raw`, and what comes after the first member of a big file through threads.
 *
 * Decompressing ahead: a file is cut into pieces of equal size from the place where the reader stands, which is the
 * start of a member. For each piece a thread looks for the first place that may be a start, and decompresses from there
 * all members that start in the piece. That is a guess: the reader takes the bytes only if it stands exactly where they
 * start, and every member before was decompressed to its end. Otherwise it does the work itself, in order. So the bytes
 * are the same as without threads, and so are the errors: threads keep whole members only, what is damaged is left to
 * the reader. Where there is one thread only, the reader does the pieces of gzip files itself, since whole members are
 * decompressed in less than half the time that a stream takes. */
#include "input/stream.h"

#include "input/input.h"

#include <bzlib.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <lzma.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

enum { STREAM_PLAIN, STREAM_GZIP, STREAM_ZSTD, STREAM_BZIP2, STREAM_XZ };

/* What is to be decompressed ahead. */
typedef struct ahead_file {
    int fd;        /* a regular file, read at places, so that its own position stays */
    bool zstd;     /* else gzip */
    uint64_t from; /* where a member starts */
    uint64_t size; /* of the file */
    int threads;
} ahead_file;

/* Whole members. */
typedef struct ahead_piece {
    uint64_t start, end; /* where they stand in the file; equal: none were found */
    dp_buffer out;
    int state;
} ahead_piece;

/* ---- the members of a piece: finds where one may start, and decompresses from there ----
 *
 * A member that stands in memory to its end is decompressed at once (libdeflate; zstd without its own window), any
 * other as a stream. How much is read for that, and the room for its output, go by the members before. A stream has the
 * last word: what could not be decompressed at once for whatever reason is tried as one.
 *
 * A place that looks like a start is one only if a whole member with its right checksum follows, and another start or
 * the end of the file after that, as far as the piece goes. If not, the search goes on after the place. */

/* One read of the file, at least. */
#define RAW ((size_t)128 << 10)

/* Bytes of a member that are read before it is decompressed at once: at first, enough for 1 MiB of text; at most. And
 * the bytes that it becomes, at first and at most. */
#define WHOLE_FIRST ((size_t)384 << 10)
#define WHOLE_MOST ((size_t)4 << 20)
#define OUTPUT_FIRST ((size_t)1 << 20)
#define OUTPUT_MOST ((size_t)8 << 20)

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

typedef struct member_reader {
    ahead_file file;
    uint64_t offset;   /* in the file, of raw[0] */
    size_t start, end; /* what of raw is unused */
    uint8_t *raw;
    size_t raw_room;
    size_t whole;  /* so many bytes are read to have a member to its end; 0: they are too long for that */
    size_t output; /* room for what it becomes */
    z_stream gzip;
    struct libdeflate_decompressor *at_once;
    ZSTD_DCtx *decoder;
} member_reader;

static void free_reader(member_reader *reader) {
    if (!reader)
        return;
    ZSTD_freeDCtx(reader->decoder);
    inflateEnd(&reader->gzip); /* one that was not begun is fine */
    if (reader->at_once)
        libdeflate_free_decompressor(reader->at_once);
    free(reader->raw);
    free(reader);
}

/* For one thread; NULL when there is no memory. */
static member_reader *create_reader(const ahead_file *file) {
    member_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return NULL;
    reader->file = *file;
    reader->whole = WHOLE_FIRST;
    reader->output = OUTPUT_FIRST;
    if (file->zstd && (reader->decoder = ZSTD_createDCtx()))
        ZSTD_DCtx_setParameter(reader->decoder, ZSTD_d_windowLogMax, WINDOW_LOG);
    else if (!file->zstd)
        reader->at_once = libdeflate_alloc_decompressor();
    /* 15: the largest window; 16: a gzip header and no other */
    if (file->zstd ? reader->decoder != NULL : reader->at_once && inflateInit2(&reader->gzip, 15 + 16) == Z_OK)
        return reader;
    free_reader(reader);
    return NULL;
}

static uint64_t place(const member_reader *reader) {
    return reader->offset + reader->start;
}

static void go_to(member_reader *reader, uint64_t to) {
    if (to >= reader->offset && to <= reader->offset + reader->end) {
        reader->start = (size_t)(to - reader->offset);
        return;
    }
    reader->offset = to;
    reader->start = reader->end = 0;
}

/* Makes at least `need` bytes stand in `raw`; false when the file has no more, or cannot be read or held. */
static bool fill_raw(member_reader *reader, size_t need) {
    size_t have = reader->end - reader->start, want = need < RAW ? RAW : need;
    if (have >= need)
        return true;
    if (!dp_reserve(&reader->raw, &reader->raw_room, want, 1))
        return false;
    memmove(reader->raw, reader->raw + reader->start, have);
    reader->offset += reader->start;
    reader->start = 0;
    reader->end = have;
    while (reader->end < need) {
        off_t at = (off_t)(reader->offset + reader->end);
        ssize_t got = pread(reader->file.fd, reader->raw + reader->end, want - reader->end, at);
        if (got <= 0)
            return false;
        reader->end += (size_t)got;
    }
    return true;
}

static bool is_start(const member_reader *reader, const uint8_t *p) {
    if (!reader->file.zstd) /* deflate, and no flag that is not in use */
        return p[0] == 0x1F && p[1] == 0x8B && p[2] == 8 && !(p[3] & 0xE0);
    uint32_t magic = dp_load32(p);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/* The first place from p on, up to `last`, that looks like a start and has this byte at this offset; or that after
 * `last`. Where members are long, most of the file is only searched: memchr is several times as fast as a loop. */
static const uint8_t *find_magic(const member_reader *reader, const uint8_t *p, const uint8_t *last, int byte,
                                 size_t offset) {
    while (p <= last && (p = memchr(p + offset, byte, (size_t)(last - p) + 1))) {
        p -= offset;
        if (is_start(reader, p))
            return p;
        p++;
    }
    return last + 1;
}

/* The same of any start. */
static const uint8_t *find_any_magic(const member_reader *reader, const uint8_t *p, const uint8_t *last) {
    if (!reader->file.zstd)
        return find_magic(reader, p, last, 0x1F, 0);
    const uint8_t *frame = find_magic(reader, p, last, ZSTD_MAGICNUMBER & 0xFF, 0);
    if (frame == p)
        return p;
    const uint8_t *skippable = find_magic(reader, p, frame - 1, ZSTD_MAGIC_SKIPPABLE_START >> 8 & 0xFF, 1);
    return skippable < frame ? skippable : frame;
}

/* The first place from `from` on, before `to`, that looks like a start. */
static uint64_t find_start(member_reader *reader, uint64_t from, uint64_t to) {
    go_to(reader, from);
    while (place(reader) < to && fill_raw(reader, START)) {
        const uint8_t *last = reader->raw + reader->end - START;
        const uint8_t *p = find_any_magic(reader, reader->raw + reader->start, last);
        reader->start = (size_t)(p - reader->raw);
        if (p <= last)
            return place(reader) < to ? place(reader) : NOWHERE;
    }
    return NOWHERE;
}

/* Room for output, within `most` bytes in all; 0: there is none. */
static size_t make_room(dp_buffer *out, size_t most) {
    size_t want = out->capacity;
    if (want < out->size + ROOM / 4)
        want = out->size + ROOM;
    if (want > most)
        want = most;
    return dp_reserve(&out->data, &out->capacity, want, 1) ? want - out->size : 0;
}

/* Room for output at its expected size; 0: there is none. */
static size_t make_whole_room(dp_buffer *out, size_t size, size_t most) {
    size_t left = most > out->size ? most - out->size : 0;
    if (size > left)
        size = left;
    return dp_reserve(&out->data, &out->capacity, out->size + size, 1) ? size : 0;
}

static bool read_gzip_at_once(member_reader *reader, dp_buffer *out, size_t most) {
    size_t taken, given, room = make_whole_room(out, reader->output, most);
    fill_raw(reader, reader->whole); /* or all that is left of the file */
    const uint8_t *p = reader->raw + reader->start;
    /* 2: a checksum of the header, which only a stream verifies */
    if (!room || reader->end - reader->start < START || (p[3] & 2))
        return false;
    if (libdeflate_gzip_decompress_ex(reader->at_once, p, reader->end - reader->start, out->data + out->size, room,
                                      &taken, &given) != LIBDEFLATE_SUCCESS)
        return false;
    reader->start += taken;
    out->size += given;
    return true;
}

static bool read_zstd_at_once(member_reader *reader, dp_buffer *out, size_t most) {
    fill_raw(reader, reader->whole);
    const uint8_t *p = reader->raw + reader->start;
    size_t have = reader->end - reader->start, length = ZSTD_findFrameCompressedSize(p, have);
    if (ZSTD_isError(length))
        return false;
    unsigned long long size = ZSTD_getFrameContentSize(p, have); /* what is not known or wrong is very large */
    if (size > most || (size && make_whole_room(out, (size_t)size, most) != size))
        return false;
    size_t given = ZSTD_decompressDCtx(reader->decoder, size ? out->data + out->size : NULL, (size_t)size, p, length);
    if (ZSTD_isError(given))
        return false;
    reader->start += length;
    out->size += given;
    return true;
}

/* A member of these lengths had to be read as a stream: the next one will be like it. */
static void learn_lengths(member_reader *reader, uint64_t length, uint64_t output) {
    length += length / 8;
    output += output / 8;
    if (length > WHOLE_MOST || output > OUTPUT_MOST) {
        reader->whole = 0;
        return;
    }
    if (reader->whole < WHOLE_FIRST)
        reader->whole = WHOLE_FIRST;
    if (reader->whole < length)
        reader->whole = (size_t)length;
    if (reader->output < output)
        reader->output = (size_t)output;
}

static bool stream_gzip_member(member_reader *reader, dp_buffer *out, size_t most) {
    z_stream *z = &reader->gzip;
    int result = inflateReset(z);
    while (result == Z_OK || result == Z_BUF_ERROR) {
        size_t room = make_room(out, most);
        if (!fill_raw(reader, 1) || (!room && result == Z_BUF_ERROR))
            return false;
        z->next_in = reader->raw + reader->start;
        z->avail_in = (uInt)(reader->end - reader->start);
        z->next_out = (uint8_t *)out->data + out->size;
        z->avail_out = (uInt)room;
        result = inflate(z, Z_NO_FLUSH);
        reader->start = reader->end - z->avail_in;
        out->size += room - z->avail_out;
    }
    return result == Z_STREAM_END;
}

static bool stream_zstd_frame(member_reader *reader, dp_buffer *out, size_t most) {
    size_t result = ZSTD_DCtx_reset(reader->decoder, ZSTD_reset_session_only);
    bool moved = true;
    while (!ZSTD_isError(result) && moved) {
        size_t room = make_room(out, most);
        fill_raw(reader, 1); /* at the end of the file the decoder may still hold output */
        ZSTD_inBuffer in = {reader->raw + reader->start, reader->end - reader->start, 0};
        ZSTD_outBuffer to = {room ? out->data + out->size : NULL, room, 0};
        result = ZSTD_decompressStream(reader->decoder, &to, &in);
        reader->start += in.pos;
        out->size += to.pos;
        if (!result)
            return true;
        moved = in.pos || to.pos;
    }
    return false;
}

static bool read_member(member_reader *reader, dp_buffer *out, size_t most) {
    bool zstd = reader->file.zstd;
    uint64_t from = place(reader);
    size_t before = out->size;
    if (reader->whole && (zstd ? read_zstd_at_once : read_gzip_at_once)(reader, out, most))
        return true;
    if (!(zstd ? stream_zstd_frame : stream_gzip_member)(reader, out, most))
        return false;
    learn_lengths(reader, place(reader) - from, out->size - before);
    return true;
}

/* Reads members from `start` on while they start before `to`; those that do not fit are left out. False when something
 * else stands there. */
static bool read_chain(member_reader *reader, uint64_t to, size_t most, ahead_piece *piece) {
    while (place(reader) < to && place(reader) < reader->file.size) {
        size_t before = piece->out.size;
        if (!fill_raw(reader, START) || !is_start(reader, reader->raw + reader->start))
            return false;
        if (!read_member(reader, &piece->out, most)) {
            bool full = piece->out.size >= most;
            piece->out.size = before;
            return full;
        }
        piece->end = place(reader);
    }
    return true;
}

/* Fills the piece with the members that start in the file from `from` up to, not including, `to`: with as many as fit
 * into `most` bytes. */
static void read_members(member_reader *reader, uint64_t from, uint64_t to, size_t most, ahead_piece *piece) {
    for (int i = 0; i < TRIES; i++) {
        piece->out.size = 0;
        piece->start = piece->end = find_start(reader, from, to);
        if (piece->start == NOWHERE)
            break;
        go_to(reader, piece->start);
        if (read_chain(reader, to, most, piece))
            return;
        from = piece->end > piece->start ? piece->end : piece->start + 1;
    }
    piece->out.size = 0;
    piece->start = piece->end = 0;
}

/* ---- threads that decompress pieces ahead of the reader ----
 *
 * Pieces are begun in order, within a window that starts at the reader's piece, and only while the finished ones hold
 * less than sizes.held bytes. What the reader waits for was begun before all that is held, or is begun next, as nothing
 * is held then: so there is always an end to its wait. Everything is guarded by `lock`, but for a piece that is busy
 * (its thread's) or done (the reader's). */

/* 256 KiB are some ms of work: enough that locks cost nothing, and what comes of them mostly stays in a cache. */
static const dp_ahead_sizes usual_ahead = {
    .piece = (size_t)256 << 10, .most = (size_t)16 << 20, .held = (size_t)4 << 20, .least = (size_t)1 << 20};

/* A member may span many pieces; those after its first one have no start, and cost only the search. 64 pieces reach
 * over members of 16 MiB, which is what one piece may become. */
#define WINDOW 64

/* More threads than these find no more to do than a reader can use. */
#define MOST_THREADS 8

/* So many wrong guesses in a row, and there is no use. */
#define MOST_WRONG 4

/* The memory of this many pieces is kept for the next ones, as far as it is no more than pieces may hold: fresh memory
 * costs as much as copying does. */
#define SPARES 16

enum { PIECE_FREE, PIECE_BUSY, PIECE_DONE };

typedef struct dp_ahead dp_ahead;

typedef struct ahead_worker {
    dp_ahead *ahead;
    member_reader *reader;
    pthread_t thread;
} ahead_worker;

struct dp_ahead {
    ahead_file file;
    dp_ahead_sizes sizes;
    pthread_mutex_t lock;
    pthread_cond_t moved; /* something of what `lock` guards has changed */
    bool ended;
    uint64_t first, next, count; /* pieces: the reader's, the next to be begun, all there are */
    size_t held;                 /* bytes of the pieces that are done */
    uint64_t wrong_piece;        /* the last that was guessed wrong, from 1; the reader's, as is `wrong` */
    int wrong;                   /* how many since a right guess */
    ahead_piece pieces[WINDOW];
    dp_buffer spares[SPARES];
    int spare_count;
    size_t spare_bytes;
    ahead_worker workers[MOST_THREADS];
    int worker_count;
    member_reader *own; /* the reader's, where there is no worker; else NULL */
};

static ahead_piece *piece_of(dp_ahead *ahead, uint64_t number) {
    return &ahead->pieces[number % WINDOW];
}

/* Takes the memory from a piece. */
static void keep_spare(dp_ahead *ahead, ahead_piece *piece) {
    if (piece->out.data && ahead->spare_count < SPARES &&
        ahead->spare_bytes + piece->out.capacity <= 2 * ahead->sizes.held) {
        ahead->spare_bytes += piece->out.capacity;
        ahead->spares[ahead->spare_count++] = piece->out;
    } else {
        dp_buffer_free(&piece->out);
    }
    piece->out = (dp_buffer){0};
}

/* Forgets a piece. */
static void release(dp_ahead *ahead, ahead_piece *piece) {
    ahead->held -= piece->out.size;
    keep_spare(ahead, piece);
    piece->state = PIECE_FREE;
}

/* Whether a piece can be begun now. */
static bool may_begin(dp_ahead *ahead) {
    return ahead->next < ahead->count && ahead->next < ahead->first + WINDOW && ahead->held < ahead->sizes.held &&
           piece_of(ahead, ahead->next)->state == PIECE_FREE;
}

/* Does one piece, the lock being held at the start and at the end. */
static void do_next(dp_ahead *ahead, member_reader *reader) {
    uint64_t number = ahead->next++, from = ahead->file.from + number * ahead->sizes.piece;
    ahead_piece *piece = piece_of(ahead, number);
    piece->state = PIECE_BUSY;
    if (ahead->spare_count) {
        piece->out = ahead->spares[--ahead->spare_count];
        ahead->spare_bytes -= piece->out.capacity;
    }
    pthread_mutex_unlock(&ahead->lock);
    read_members(reader, from, from + ahead->sizes.piece, ahead->sizes.most, piece);
    pthread_mutex_lock(&ahead->lock);
    piece->state = PIECE_DONE;
    ahead->held += piece->out.size;
    if (!piece->out.size) /* most pieces, where members are long */
        keep_spare(ahead, piece);
    if (number < ahead->first) /* the reader did not wait for it */
        release(ahead, piece);
    pthread_cond_broadcast(&ahead->moved);
}

static void *decompress_pieces(void *user) {
    const ahead_worker *w = user;
    dp_ahead *ahead = w->ahead;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->ended)
        if (may_begin(ahead))
            do_next(ahead, w->reader);
        else
            pthread_cond_wait(&ahead->moved, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
    return NULL;
}

static void start_threads(dp_ahead *ahead) {
    int threads = ahead->file.threads < MOST_THREADS ? ahead->file.threads : MOST_THREADS;
    ahead->sizes.held *= threads > 1 ? (size_t)threads : 1;
    for (int i = 0; i < threads && threads > 1; i++) {
        ahead_worker *w = &ahead->workers[i];
        *w = (ahead_worker){.ahead = ahead, .reader = create_reader(&ahead->file)};
        if (!w->reader || !dp_thread_start(&w->thread, decompress_pieces, w)) {
            free_reader(w->reader);
            break;
        }
        ahead->worker_count++;
    }
}

/* Ends the threads. NULL is fine. */
static void free_ahead(dp_ahead *ahead) {
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->ended = true;
    pthread_cond_broadcast(&ahead->moved);
    pthread_mutex_unlock(&ahead->lock);
    for (int i = 0; i < ahead->worker_count; i++) {
        pthread_join(ahead->workers[i].thread, NULL);
        free_reader(ahead->workers[i].reader);
    }
    free_reader(ahead->own);
    for (size_t i = 0; i < WINDOW; i++)
        dp_buffer_free(&ahead->pieces[i].out);
    while (ahead->spare_count)
        dp_buffer_free(&ahead->spares[--ahead->spare_count]);
    pthread_cond_destroy(&ahead->moved);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

/* Starts the threads; without any the reader does their work. NULL when there is no memory: then there is no help. */
static dp_ahead *create_ahead(const ahead_file *file, const dp_ahead_sizes *sizes) {
    dp_ahead *ahead = calloc(1, sizeof *ahead);
    if (!ahead)
        return NULL;
    ahead->file = *file;
    ahead->sizes = *sizes;
    ahead->count = (file->size - file->from + sizes->piece - 1) / sizes->piece;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->moved, NULL);
    start_threads(ahead);
    if (ahead->worker_count || (ahead->own = create_reader(file)))
        return ahead;
    free_ahead(ahead);
    return NULL;
}

/* The reader has come to this piece: those before it are forgotten. */
static void pass(dp_ahead *ahead, uint64_t number) {
    for (uint64_t i = ahead->first; i < number && i < ahead->next; i++)
        if (piece_of(ahead, i)->state == PIECE_DONE)
            release(ahead, piece_of(ahead, i));
    ahead->first = number;
    if (ahead->next < number)
        ahead->next = number;
    pthread_cond_broadcast(&ahead->moved);
}

/* The members from `at` on, or NULL when they are not known. They stay until the next call. `at` never goes back. */
static const ahead_piece *take_ahead(dp_ahead *ahead, uint64_t at) {
    uint64_t number = (at - ahead->file.from) / ahead->sizes.piece;
    if (number >= ahead->count)
        return NULL;
    ahead_piece *piece = piece_of(ahead, number);
    pthread_mutex_lock(&ahead->lock);
    if (number > ahead->first)
        pass(ahead, number);
    while (ahead->next <= number || piece->state == PIECE_BUSY)
        if (ahead->own)
            do_next(ahead, ahead->own);
        else
            pthread_cond_wait(&ahead->moved, &ahead->lock);
    pthread_mutex_unlock(&ahead->lock);
    if (piece->start == at && piece->end > at) {
        ahead->wrong = 0;
        return piece;
    }
    if (ahead->wrong_piece != number + 1)
        ahead->wrong++;
    ahead->wrong_piece = number + 1;
    return NULL;
}

/* Whether the guesses were wrong so often that there is no use in going on. */
static bool is_useless(const dp_ahead *ahead) {
    return ahead->wrong >= MOST_WRONG;
}

/* ---- the file ---- */

/* One read of compressed bytes: more than the 128 KiB that a zstd block can have. */
#define RAW_CAPACITY ((size_t)256 << 10)

/* How often a wait for a pipe looks at the stop flag. */
#define WAIT_MS 100

__attribute__((format(printf, 2, 3))) static void fail(dp_stream *stream, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(stream->failure, sizeof stream->failure, format, args);
    va_end(args);
    stream->failed = true;
}

/* Waits until a pipe has something; false when asked to stop. */
static bool wait_readable(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    while (!stream->regular && !dp_stopped(stream->stop)) {
        int ready = poll(&wait, 1, WAIT_MS);
        if (ready > 0 || (ready < 0 && errno != EINTR))
            return true;
    }
    return !dp_stopped(stream->stop);
}

/* Reads from the file itself; 0 at its end, and after a failure. */
static size_t read_raw(dp_stream *stream, void *to, size_t room) {
    while (!stream->failed && !stream->raw_done && wait_readable(stream)) {
        ssize_t got = read(stream->fd, to, room);
        if (got > 0) {
            stream->raw_bytes += (size_t)got;
            return (size_t)got;
        }
        if (got == 0)
            stream->raw_done = true;
        else if (errno != EINTR && errno != EAGAIN)
            fail(stream, "cannot read: %s", strerror(errno));
    }
    return 0;
}

/* Makes at least `need` bytes stand in `raw`; false when the file ends first. */
static bool fill(dp_stream *stream, size_t need) {
    size_t have = stream->raw_end - stream->raw_start;
    if (have >= need)
        return true;
    memmove(stream->raw, stream->raw + stream->raw_start, have);
    stream->raw_start = 0;
    stream->raw_end = have;
    while (stream->raw_end < need) {
        size_t got = read_raw(stream, stream->raw + stream->raw_end, RAW_CAPACITY - stream->raw_end);
        if (!got)
            return false;
        stream->raw_end += got;
    }
    return true;
}

/* ---- compressed data, in order ---- */

/* What every zstd frame begins with: the magic number and a byte that gives the length of its header. */
#define ZSTD_FRAME_START 5

static bool at_gzip(const dp_stream *stream) {
    const uint8_t *p = stream->raw + stream->raw_start;
    return stream->raw_end - stream->raw_start >= 2 && p[0] == 0x1F && p[1] == 0x8B;
}

/* A frame, or a frame to be skipped (0x184D2A50 to 0x184D2A5F). */
static bool at_zstd(const dp_stream *stream) {
    if (stream->raw_end - stream->raw_start < sizeof(uint32_t))
        return false;
    uint32_t magic = dp_load32(stream->raw + stream->raw_start);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

/* "BZh", the size of blocks, and then a block or the end of the data: text does not begin so. */
static bool at_bzip2(dp_stream *stream) {
    static const uint8_t block[] = {0x31, 0x41, 0x59, 0x26, 0x53, 0x59}, end[] = {0x17, 0x72, 0x45, 0x38, 0x50, 0x90};
    const uint8_t *p = stream->raw + stream->raw_start;
    if (stream->raw_end - stream->raw_start < 3 || memcmp(p, "BZh", 3) || !fill(stream, 4 + sizeof block))
        return false;
    p = stream->raw + stream->raw_start;
    return p[3] >= '1' && p[3] <= '9' && (!memcmp(p + 4, block, sizeof block) || !memcmp(p + 4, end, sizeof end));
}

static bool at_xz(dp_stream *stream) {
    static const uint8_t magic[] = {0xFD, '7', 'z', 'X', 'Z', 0};
    return stream->raw_end - stream->raw_start >= 4 && !memcmp(stream->raw + stream->raw_start, magic, 4) &&
           fill(stream, sizeof magic) && !memcmp(stream->raw + stream->raw_start, magic, sizeof magic);
}

static bool start_gzip(dp_stream *stream) {
    stream->format = STREAM_GZIP;
    if (stream->gzip)
        return inflateReset(stream->gzip) == Z_OK;
    /* 15: the largest window; 16: a gzip header and no other */
    stream->gzip = calloc(1, sizeof *stream->gzip);
    return stream->gzip && inflateInit2(stream->gzip, 15 + 16) == Z_OK;
}

static bool start_zstd(dp_stream *stream) {
    stream->format = STREAM_ZSTD;
    stream->zstd_hint = ZSTD_FRAME_START;
    if (!stream->zstd)
        stream->zstd = ZSTD_createDCtx();
    return stream->zstd && !ZSTD_isError(ZSTD_DCtx_reset(stream->zstd, ZSTD_reset_session_only));
}

static void free_bzip2(dp_stream *stream) {
    if (stream->bzip2)
        BZ2_bzDecompressEnd(stream->bzip2);
    free(stream->bzip2);
    stream->bzip2 = NULL;
}

/* Its decoder cannot be begun again: it is made anew. */
static bool start_bzip2(dp_stream *stream) {
    stream->format = STREAM_BZIP2;
    free_bzip2(stream);
    stream->bzip2 = calloc(1, sizeof(bz_stream));
    return stream->bzip2 && BZ2_bzDecompressInit(stream->bzip2, 0, 0) == BZ_OK;
}

/* Memory of the decoder: a dictionary of 128 MiB, as windows of zstd have it, and what comes with it. xz -9 needs half
 * of that; headers can ask for 4 GiB. */
#define XZ_MEMORY ((uint64_t)192 << 20)

static bool start_xz(dp_stream *stream) {
    stream->format = STREAM_XZ;
    if (!stream->xz && !(stream->xz = calloc(1, sizeof(lzma_stream))))
        return false;
    return lzma_stream_decoder(stream->xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK;
}

/* Tells the format by the first bytes and prepares for it; false when there is no memory. */
static bool start_codec(dp_stream *stream) {
    fill(stream, sizeof(uint32_t));
    stream->format = STREAM_PLAIN;
    stream->full = false;
    if (at_gzip(stream))
        return start_gzip(stream);
    if (at_zstd(stream))
        return start_zstd(stream);
    if (at_bzip2(stream))
        return start_bzip2(stream);
    return !at_xz(stream) || start_xz(stream);
}

static void free_codecs(dp_stream *stream) {
    if (stream->gzip)
        inflateEnd(stream->gzip);
    free(stream->gzip);
    stream->gzip = NULL;
    ZSTD_freeDCtx(stream->zstd);
    stream->zstd = NULL;
    free_bzip2(stream);
    if (stream->xz)
        lzma_end(stream->xz);
    free(stream->xz);
    stream->xz = NULL;
}

/* The data has ended: zeros may fill up the end of the file, nothing else may. */
static bool pass_zeros(dp_stream *stream, const char *format) {
    while (fill(stream, 1))
        if (stream->raw[stream->raw_start++]) {
            fail(stream, "there is something else after the %s data", format);
            break;
        }
    return false;
}

/* Between two members: true when another one starts. */
static bool next_gzip(dp_stream *stream) {
    fill(stream, 2);
    return at_gzip(stream) ? inflateReset(stream->gzip) == Z_OK : pass_zeros(stream, "gzip");
}

/* The same. The first one was begun when the file was opened. */
static bool next_bzip2(dp_stream *stream) {
    bz_stream *z = stream->bzip2;
    if (!z->total_in_lo32 && !z->total_in_hi32)
        return true;
    fill(stream, 3);
    if (!at_bzip2(stream))
        return pass_zeros(stream, "bzip2");
    if (!start_bzip2(stream))
        fail(stream, "no memory");
    return !stream->failed;
}

/* The end, which is too early within a member. */
static size_t end(dp_stream *stream, const char *format) {
    if (stream->inside && !stream->failed && !dp_stopped(stream->stop))
        fail(stream, "the %s data is cut short", format);
    stream->at_end = true;
    return 0;
}

/* One step: gives what it decompressed, which may be nothing though more is to come, unless `at_end` or `failed`. */
static size_t read_gzip(dp_stream *stream, char *to, size_t room) {
    z_stream *z = stream->gzip;
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    if (!stream->inside && !next_gzip(stream))
        return end(stream, "gzip");
    stream->inside = true;
    /* What the decoder still holds of its output comes without input. */
    if (!fill(stream, 1) && !stream->full)
        return end(stream, "gzip");
    z->next_in = stream->raw + stream->raw_start;
    z->avail_in = (uInt)(stream->raw_end - stream->raw_start);
    z->next_out = (uint8_t *)to;
    z->avail_out = (uInt)asked;
    int result = inflate(z, Z_NO_FLUSH);
    stream->raw_start = stream->raw_end - z->avail_in;
    stream->full = !z->avail_out;
    if (result == Z_STREAM_END)
        stream->inside = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        fail(stream, "the gzip data is damaged: %s", z->msg ? z->msg : zError(result));
    return asked - z->avail_out;
}

/* How much of the input the decoder gets: never more than the rest of a block. With more it would give nothing of a
 * whole block when what stands after it is damaged. What it asks for includes the header of the next block, 3 bytes.
 * Nothing, while it may hold output.
 */
static size_t zstd_share(const dp_stream *stream) {
    size_t have = stream->raw_end - stream->raw_start, hint = stream->zstd_hint;
    size_t share = stream->full ? 0 : hint > 3 ? hint - 3 : hint;
    return have < share ? have : share;
}

/* The decoder makes its own room, by what the head of a frame says and by what it has from frames before. A block that
 * does not fit is damaged, as is one that fits but is longer than its frame: which of the two is found must not matter.
 */
static const char *zstd_reason(size_t result) {
    bool no_room = ZSTD_getErrorCode(result) == ZSTD_error_dstSize_tooSmall;
    return ZSTD_getErrorString(no_room ? ZSTD_error_corruption_detected : ZSTD_getErrorCode(result));
}

/* The same. */
static size_t read_zstd(dp_stream *stream, char *to, size_t room) {
    ZSTD_outBuffer out = {to, room, 0};
    /* What the decoder still holds of its output comes without input. */
    if (!fill(stream, 1) && !stream->inside)
        return end(stream, "zstd");
    ZSTD_inBuffer in = {stream->raw + stream->raw_start, zstd_share(stream), 0};
    size_t result = ZSTD_decompressStream(stream->zstd, &out, &in);
    stream->raw_start += in.pos;
    bool was_full = stream->full;
    stream->full = out.pos == out.size;
    if (ZSTD_isError(result)) {
        fail(stream, "the zstd data is damaged: %s", zstd_reason(result));
        return out.pos;
    }
    stream->inside = result != 0;
    stream->zstd_hint = result ? result : ZSTD_FRAME_START;
    return out.pos || in.pos || !stream->inside || was_full ? out.pos : end(stream, "zstd");
}

static size_t read_bzip2(dp_stream *stream, char *to, size_t room) {
    size_t asked = room > UINT32_MAX ? UINT32_MAX : room;
    if (!stream->inside && !next_bzip2(stream))
        return end(stream, "bzip2");
    stream->inside = true;
    if (!fill(stream, 1) && !stream->full)
        return end(stream, "bzip2");
    bz_stream *z = stream->bzip2;
    z->next_in = (char *)stream->raw + stream->raw_start;
    z->avail_in = (unsigned)(stream->raw_end - stream->raw_start);
    z->next_out = to;
    z->avail_out = (unsigned)asked;
    int result = BZ2_bzDecompress(z);
    stream->raw_start = stream->raw_end - z->avail_in;
    stream->full = !z->avail_out;
    if (result == BZ_STREAM_END)
        stream->inside = false;
    else if (result == BZ_MEM_ERROR)
        fail(stream, "no memory");
    else if (result != BZ_OK)
        fail(stream, "the bzip2 data is damaged");
    return asked - z->avail_out;
}

static const char *xz_reason(lzma_ret result) {
    switch (result) {
    case LZMA_MEM_ERROR: return "no memory";
    case LZMA_MEMLIMIT_ERROR: return "the xz data needs more than 192 MiB of memory to be decompressed";
    case LZMA_OPTIONS_ERROR: return "the xz data uses a filter that is not supported";
    default: return "the xz data is damaged";
    }
}

/* The decoder itself goes on from stream to stream, and over the padding between them. */
static size_t read_xz(dp_stream *stream, char *to, size_t room) {
    lzma_stream *z = stream->xz;
    stream->inside = true;
    bool more = fill(stream, 1);
    if (stream->failed || dp_stopped(stream->stop))
        return end(stream, "xz");
    z->next_in = stream->raw + stream->raw_start;
    z->avail_in = stream->raw_end - stream->raw_start;
    z->next_out = (uint8_t *)to;
    z->avail_out = room;
    lzma_ret result = lzma_code(z, more ? LZMA_RUN : LZMA_FINISH);
    stream->raw_start = stream->raw_end - z->avail_in;
    if (result == LZMA_STREAM_END) {
        stream->inside = false;
        stream->at_end = true;
    } else if (result == LZMA_BUF_ERROR && !more) {
        end(stream, "xz");
    } else if (result != LZMA_OK && result != LZMA_BUF_ERROR) {
        fail(stream, "%s", xz_reason(result));
    }
    return room - z->avail_out;
}

/* ---- members from the threads ---- */

static void end_ahead(dp_stream *stream) {
    free_ahead(stream->ahead);
    stream->ahead = NULL;
    stream->piece = NULL;
}

/* At the start of a member: begins decompressing ahead, once, if what is left of the file is worth it. The first member
 * is always read alone: where it is the only one, there is nothing to gain. */
static void start_ahead(dp_stream *stream, uint64_t at) {
    const dp_ahead_sizes *sizes = stream->ahead_sizes ? stream->ahead_sizes : &usual_ahead;
    ahead_file file = {.fd = stream->fd,
                       .zstd = stream->format == STREAM_ZSTD,
                       .from = at,
                       .size = stream->size,
                       .threads = stream->threads};
    bool from_start = lseek(stream->fd, 0, SEEK_CUR) == (off_t)stream->raw_bytes;
    if (from_start && at < stream->size && stream->size - at >= sizes->least)
        stream->ahead = create_ahead(&file, sizes);
    stream->alone = !stream->ahead;
}

/* Takes the members that come next; the stream goes on after them. */
static bool take_piece(dp_stream *stream) {
    uint64_t at = stream->raw_bytes - (stream->raw_end - stream->raw_start);
    if (!at)
        return false;
    if (!stream->ahead)
        start_ahead(stream, at);
    stream->piece = stream->ahead ? take_ahead(stream->ahead, at) : NULL;
    if (!stream->piece) {
        stream->alone = stream->alone || is_useless(stream->ahead);
        if (stream->alone)
            end_ahead(stream);
        return false;
    }
    stream->piece_used = 0;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_done = false;
    stream->raw_bytes = stream->piece->end;
    if (lseek(stream->fd, (off_t)stream->raw_bytes, SEEK_SET) < 0)
        fail(stream, "cannot read: %s", strerror(errno));
    return !stream->failed;
}

/* Whether there is something to be had from reading whole members: with one thread for gzip alone. */
static bool may_read_ahead(const dp_stream *stream) {
    bool worth = stream->format == STREAM_GZIP || (stream->format == STREAM_ZSTD && stream->threads > 1);
    return stream->regular && worth && !stream->inside && !stream->alone;
}

/* Whole members from the threads, as long as they come; 0: go on alone. */
static size_t read_ahead(dp_stream *stream, char *to, size_t room) {
    while (stream->piece || take_piece(stream)) {
        const dp_buffer *out = &stream->piece->out;
        size_t got = out->size - stream->piece_used;
        if (got > room)
            got = room;
        if (got)
            memcpy(to, out->data + stream->piece_used, got);
        stream->piece_used += got;
        if (stream->piece_used == out->size)
            stream->piece = NULL;
        if (got)
            return got;
    }
    return 0;
}

/* ---- the calls ---- */

static bool open_file(dp_stream *stream, const char *path) {
    struct stat status;
    stream->fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC) : dup(STDIN_FILENO);
    if (stream->fd < 0 || fstat(stream->fd, &status)) {
        fail(stream, "cannot open: %s", strerror(errno));
        return false;
    }
    stream->regular = S_ISREG(status.st_mode);
    stream->size = stream->regular ? (uint64_t)status.st_size : 0;
    stream->changed = status.st_mtim.tv_sec * 1000000000LL + status.st_mtim.tv_nsec;
    if (!stream->raw && !(stream->raw = malloc(RAW_CAPACITY))) {
        fail(stream, "no memory");
        return false;
    }
    return true;
}

bool dp_stream_open(dp_stream *stream, const char *path) {
    stream->failed = stream->raw_done = stream->inside = stream->at_end = stream->alone = false;
    stream->raw_start = stream->raw_end = 0;
    stream->raw_bytes = 0;
    if (!open_file(stream, path))
        return false;
    if (!start_codec(stream))
        fail(stream, "no memory");
    return !stream->failed;
}

static size_t read_plain(dp_stream *stream, char *to, size_t room) {
    size_t have = stream->raw_end - stream->raw_start;
    if (!have)
        return read_raw(stream, to, room);
    if (have > room)
        have = room;
    memcpy(to, stream->raw + stream->raw_start, have);
    stream->raw_start += have;
    return have;
}

bool dp_stream_ready(const dp_stream *stream) {
    struct pollfd wait = {stream->fd, POLLIN, 0};
    return stream->regular || stream->raw_start < stream->raw_end || poll(&wait, 1, 0) > 0;
}

size_t dp_stream_read(dp_stream *stream, char *to, size_t room) {
    static size_t (*const steps[])(dp_stream *, char *, size_t) = {
        [STREAM_GZIP] = read_gzip, [STREAM_ZSTD] = read_zstd, [STREAM_BZIP2] = read_bzip2, [STREAM_XZ] = read_xz};
    size_t got = 0;
    if (stream->format == STREAM_PLAIN)
        return stream->failed ? 0 : read_plain(stream, to, room);
    while (!got && !stream->failed && !stream->at_end) {
        if (may_read_ahead(stream))
            got = read_ahead(stream, to, room);
        if (!got && !stream->failed)
            got = steps[stream->format](stream, to, room);
    }
    return got;
}

bool dp_stream_is_plain(const dp_stream *stream) {
    return stream->regular && stream->format == STREAM_PLAIN;
}

void dp_stream_close(dp_stream *stream) {
    end_ahead(stream);
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

void dp_stream_free(dp_stream *stream) {
    dp_stream_close(stream);
    free(stream->raw);
    stream->raw = NULL;
    free_codecs(stream);
}

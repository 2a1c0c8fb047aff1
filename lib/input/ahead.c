/* ahead.c - the members of a compressed file, decompressed ahead of the reader: dp_ahead_create, dp_ahead_take ...,
 * dp_ahead_free.
 *
 * A file is cut into pieces of equal size from the reader's position, which is the start of a member. For each piece a
 * thread looks for the first position that may be a start, and decompresses from there all members that start in the
 * piece. That is a guess: the reader takes the bytes only if it is exactly where they start, and every member before
 * was decompressed to its end. Otherwise it does the work itself, in order. So the bytes are the same as without
 * threads, and so are the errors: threads keep whole members only, damaged ones are left to the reader. (One kind of
 * damage is no error here: libdeflate accepts deflate data that declares more symbols than there are and does not use
 * them, zlib does not. The checksum is right then, and so are the bytes.) With only one thread, the reader does the
 * pieces of gzip files itself, since whole members are decompressed in less than half the time that a stream takes. */
#include "input/stream.h"

#include <libdeflate.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* ---- the members of a piece: finds where one may start, and decompresses from there ----
 *
 * A member that is in memory to its end is decompressed at once (libdeflate; zstd without its own window), any other as
 * a stream. How much is read for that, and the room for its output, depend on the members before. What could not be
 * decompressed at once, for whatever reason, is tried as a stream.
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

/* What a start is recognised by: the magic number of zstd; of gzip that, the method and the flags. */
#define START 4

/* At most this many positions of a piece are tried: data crafted to have many must not cost much. */
#define TRIES 16

/* Room for output grows by at least this. */
#define ROOM ((size_t)256 << 10)

/* Windows of 16 MiB, which is what one piece may become. Every decoder has one, so larger ones, up to 128 MiB, would
 * add up; frames that ask for them are left to the reader. */
#define WINDOW_LOG 24

#define NOWHERE UINT64_MAX

typedef struct member_reader {
    dp_ahead_file file;
    uint64_t offset;   /* in the file, of raw[0] */
    size_t start, end; /* what of raw is unused */
    uint8_t *raw;
    size_t raw_room;
    size_t whole;  /* bytes that are read to have a member to its end; 0: members are too long for that */
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
static member_reader *create_reader(const dp_ahead_file *file) {
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

static uint64_t file_position(const member_reader *reader) {
    return reader->offset + reader->start;
}

static void seek_to(member_reader *reader, uint64_t to) {
    if (to >= reader->offset && to <= reader->offset + reader->end) {
        reader->start = (size_t)(to - reader->offset);
        return;
    }
    reader->offset = to;
    reader->start = reader->end = 0;
}

/* Fills `raw` to at least `need` bytes; false when the file has no more, cannot be read, or there is no memory. */
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
    seek_to(reader, from);
    while (file_position(reader) < to && fill_raw(reader, START)) {
        const uint8_t *last = reader->raw + reader->end - START;
        const uint8_t *p = find_any_magic(reader, reader->raw + reader->start, last);
        reader->start = (size_t)(p - reader->raw);
        if (p <= last)
            return file_position(reader) < to ? file_position(reader) : NOWHERE;
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
        if (ZSTD_isError(result))
            return false;
        reader->start += in.pos;
        out->size += to.pos;
        if (!result)
            return true;
        moved = in.pos || to.pos;
    }
    return false;
}

/* Whether a frame asks for a window larger than WINDOW_LOG. A decoder that has the whole frame needs no window and does
 * not look; the reader, which has blocks, may refuse it. The fifth byte of a frame says whether it has one of its own,
 * the high bits of the sixth how large, from 1 KiB. */
static bool has_large_window(member_reader *reader) {
    enum { HEAD = 6, WINDOW_IS_CONTENT = 0x20 };
    const uint8_t *p = fill_raw(reader, HEAD) ? reader->raw + reader->start : NULL;
    return p && dp_load32(p) == ZSTD_MAGICNUMBER && !(p[4] & WINDOW_IS_CONTENT) && 10 + (p[5] >> 3) > WINDOW_LOG;
}

static bool read_member(member_reader *reader, dp_buffer *out, size_t most) {
    bool zstd = reader->file.zstd;
    uint64_t from = file_position(reader);
    size_t before = out->size;
    if (zstd && has_large_window(reader))
        return false;
    if (reader->whole && (zstd ? read_zstd_at_once : read_gzip_at_once)(reader, out, most))
        return true;
    if (!(zstd ? stream_zstd_frame : stream_gzip_member)(reader, out, most))
        return false;
    learn_lengths(reader, file_position(reader) - from, out->size - before);
    return true;
}

/* Reads members from `start` on while they start before `to`; those that do not fit are left out. False when something
 * else is there. */
static bool read_chain(member_reader *reader, uint64_t to, size_t most, dp_ahead_piece *piece) {
    while (file_position(reader) < to && file_position(reader) < reader->file.size) {
        size_t before = piece->out.size;
        if (!fill_raw(reader, START) || !is_start(reader, reader->raw + reader->start))
            return false;
        if (!read_member(reader, &piece->out, most)) {
            bool full = piece->out.size >= most;
            piece->out.size = before;
            return full;
        }
        piece->end = file_position(reader);
    }
    return true;
}

/* Fills the piece with the members that start in the file from `from` up to, not including, `to`: with as many as fit
 * into `most` bytes. */
static void read_members(member_reader *reader, uint64_t from, uint64_t to, size_t most, dp_ahead_piece *piece) {
    for (int i = 0; i < TRIES; i++) {
        piece->out.size = 0;
        piece->start = piece->end = find_start(reader, from, to);
        if (piece->start == NOWHERE)
            break;
        seek_to(reader, piece->start);
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
 * less than sizes.held bytes. What the reader waits for was begun before all finished pieces, or is begun next, as
 * there are none then: so its wait always ends. Everything is guarded by `lock`, but for a piece that is busy (its
 * thread's) or done (the reader's). */

/* 256 KiB are some ms of work: enough that locks cost nothing, and the output mostly fits in a cache. */
static const dp_ahead_sizes usual_sizes = {
    .piece = (size_t)256 << 10, .most = (size_t)16 << 20, .held = (size_t)4 << 20, .least = (size_t)1 << 20};

/* A member may span many pieces; those after its first one have no start, and cost only the search. 64 pieces reach
 * over members of 16 MiB, which is what one piece may become. */
#define WINDOW 64

/* More threads than these find no more to do than a reader can use. */
#define MOST_THREADS 8

/* After this many wrong guesses in a row, guessing stops. */
#define MOST_WRONG 4

/* The memory of this many pieces is kept for the next ones, as far as it is no more than pieces may hold: fresh memory
 * costs as much as copying does. */
#define SPARES 16

enum { PIECE_FREE, PIECE_BUSY, PIECE_DONE };

typedef struct ahead_worker {
    dp_ahead *ahead;
    member_reader *reader;
    pthread_t thread;
} ahead_worker;

struct dp_ahead {
    dp_ahead_file file;
    dp_ahead_sizes sizes;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* something of what `lock` guards has changed */
    bool ended;
    uint64_t first, next, count; /* pieces: the reader's, the next to be begun, all there are */
    size_t held;                 /* bytes of the pieces that are done */
    uint64_t wrong_piece;        /* the last that was guessed wrong, from 1; the reader's, as is `wrong` */
    int wrong;                   /* how many since a right guess */
    dp_ahead_piece pieces[WINDOW];
    dp_buffer spares[SPARES];
    int spare_count;
    size_t spare_bytes;
    ahead_worker workers[MOST_THREADS];
    int worker_count;
    member_reader *own; /* the reader's, where there is no worker; else NULL */
};

static dp_ahead_piece *piece_of(dp_ahead *ahead, uint64_t number) {
    return &ahead->pieces[number % WINDOW];
}

/* Takes the memory from a piece. */
static void keep_spare(dp_ahead *ahead, dp_ahead_piece *piece) {
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
static void drop_piece(dp_ahead *ahead, dp_ahead_piece *piece) {
    ahead->held -= piece->out.size;
    keep_spare(ahead, piece);
    piece->state = PIECE_FREE;
}

/* Whether a piece can be begun now. */
static bool may_begin(dp_ahead *ahead) {
    return ahead->next < ahead->count && ahead->next < ahead->first + WINDOW && ahead->held < ahead->sizes.held &&
           piece_of(ahead, ahead->next)->state == PIECE_FREE;
}

/* Decompresses one piece. The lock is held on entry and on return. */
static void do_next(dp_ahead *ahead, member_reader *reader) {
    uint64_t number = ahead->next++, from = ahead->file.from + number * ahead->sizes.piece;
    dp_ahead_piece *piece = piece_of(ahead, number);
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
        drop_piece(ahead, piece);
    pthread_cond_broadcast(&ahead->changed);
}

static void *decompress_pieces(void *user) {
    const ahead_worker *w = user;
    dp_ahead *ahead = w->ahead;
    pthread_mutex_lock(&ahead->lock);
    while (!ahead->ended)
        if (may_begin(ahead))
            do_next(ahead, w->reader);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
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

void dp_ahead_free(dp_ahead *ahead) {
    if (!ahead)
        return;
    pthread_mutex_lock(&ahead->lock);
    ahead->ended = true;
    pthread_cond_broadcast(&ahead->changed);
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
    pthread_cond_destroy(&ahead->changed);
    pthread_mutex_destroy(&ahead->lock);
    free(ahead);
}

dp_ahead *dp_ahead_create(const dp_ahead_file *file, const dp_ahead_sizes *sizes) {
    if (!sizes)
        sizes = &usual_sizes;
    bool worth = file->from < file->size && file->size - file->from >= sizes->least;
    dp_ahead *ahead = worth ? calloc(1, sizeof *ahead) : NULL;
    if (!ahead)
        return NULL;
    ahead->file = *file;
    ahead->sizes = *sizes;
    ahead->count = (file->size - file->from + sizes->piece - 1) / sizes->piece;
    pthread_mutex_init(&ahead->lock, NULL);
    pthread_cond_init(&ahead->changed, NULL);
    start_threads(ahead);
    if (ahead->worker_count || (ahead->own = create_reader(file)))
        return ahead;
    dp_ahead_free(ahead);
    return NULL;
}

/* The reader has come to this piece: those before it are forgotten. */
static void pass(dp_ahead *ahead, uint64_t number) {
    for (uint64_t i = ahead->first; i < number && i < ahead->next; i++)
        if (piece_of(ahead, i)->state == PIECE_DONE)
            drop_piece(ahead, piece_of(ahead, i));
    ahead->first = number;
    if (ahead->next < number)
        ahead->next = number;
    pthread_cond_broadcast(&ahead->changed);
}

const dp_ahead_piece *dp_ahead_take(dp_ahead *ahead, uint64_t at) {
    uint64_t number = (at - ahead->file.from) / ahead->sizes.piece;
    if (number >= ahead->count)
        return NULL;
    dp_ahead_piece *piece = piece_of(ahead, number);
    pthread_mutex_lock(&ahead->lock);
    if (number > ahead->first)
        pass(ahead, number);
    while (ahead->next <= number || piece->state == PIECE_BUSY)
        if (ahead->own)
            do_next(ahead, ahead->own);
        else
            pthread_cond_wait(&ahead->changed, &ahead->lock);
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

bool dp_ahead_is_useless(const dp_ahead *ahead) {
    return ahead->wrong >= MOST_WRONG;
}

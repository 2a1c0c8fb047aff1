/* test_decompress.c - decompressing ahead by threads gives the bytes and the failures of reading in order, whatever the
 * file is made of and wherever it is cut or damaged. */
#include "input_runs.h"

#include "input/stream.h"

#include <fcntl.h>

/* Small, so that a file of some KiB has many pieces. */
static const dp_ahead_sizes tiny = {.piece = 300, .most = 5000, .held = 8000, .least = 1};

/* Everything is read in order, as a stream. */
static const dp_ahead_sizes in_order = {.least = SIZE_MAX};

/* ---- files ---- */

/* Text that does not compress to nothing, and differs with `seed`. */
static char *make_text(uint64_t *seed, size_t size) {
    char *text = malloc(size + 1);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)('a' + random_below(seed, 6));
    text[size] = 0;
    return text;
}

typedef struct shape {
    bool zstd;
    int level;            /* 0: gzip stores what it gets */
    size_t members, most; /* how many, and the bytes of the longest */
} shape;

static void add_member(dp_buffer *file, const shape *what, const char *text, size_t size) {
    size_t room = ZSTD_compressBound(size) + compressBound(size) + 64;
    char *out = malloc(room);
    if (what->zstd) {
        size = ZSTD_compress(out, room, text, size, what->level);
    } else {
        z_stream z = {.next_in = (Bytef *)(uintptr_t)text, .avail_in = (uInt)size, .next_out = (Bytef *)out};
        z.avail_out = (uInt)room;
        assert_int_equal(deflateInit2(&z, what->level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        size = room - z.avail_out;
        deflateEnd(&z);
    }
    assert_true(dp_buffer_add(file, out, size));
    free(out);
}

/* Members of random length; every seventh is empty. */
static dp_buffer make_file(const shape *what) {
    dp_buffer file = {0};
    uint64_t seed = what->members;
    for (size_t i = 0; i < what->members; i++) {
        size_t size = i % 7 == 5 ? 0 : 1 + random_below(&seed, what->most);
        char *text = make_text(&seed, size);
        add_member(&file, what, text, size);
        free(text);
    }
    return file;
}

/* ---- reading ---- */

typedef struct contents {
    dp_buffer bytes;
    char failure[160];
    uint64_t raw_bytes;
    bool helped; /* threads had a part in it */
} contents;

static contents read_file(const char *path, int threads, const dp_ahead_sizes *sizes, size_t room) {
    contents c = {0};
    dp_stream stream;
    char *some = malloc(room);
    dp_stream_init(&stream, NULL);
    stream.threads = threads;
    stream.ahead_sizes = sizes;
    assert_true(dp_stream_open(&stream, path));
    for (size_t got; (got = dp_stream_read(&stream, some, room));) {
        assert_true(dp_buffer_add(&c.bytes, some, got));
        c.helped = c.helped || stream.piece;
    }
    if (stream.failed)
        strcpy(c.failure, stream.failure);
    c.raw_bytes = stream.raw_bytes;
    dp_stream_free(&stream);
    free(some);
    return c;
}

/* Reads a file in order, and by whole members with one thread and more; gives whether threads helped. */
static bool check_same(const char *bytes, size_t size, const dp_ahead_sizes *sizes) {
    static const size_t rooms[] = {1 << 16, 7, 1000, 1 << 16};
    bool helped = false;
    write_bytes("a", bytes, size);
    contents plain = read_file("a", 1, &in_order, 1 << 16);
    assert_false(plain.helped);
    for (int threads = 1; threads <= 4; threads++) {
        contents ahead = read_file("a", threads, sizes, rooms[threads - 1]);
        assert_int_equal(ahead.bytes.size, plain.bytes.size);
        assert_true(!plain.bytes.size || !memcmp(ahead.bytes.data, plain.bytes.data, plain.bytes.size));
        assert_string_equal(ahead.failure, plain.failure);
        if (!plain.failure[0])
            assert_int_equal(ahead.raw_bytes, plain.raw_bytes);
        helped = helped || ahead.helped;
        dp_buffer_free(&ahead.bytes);
    }
    dp_buffer_free(&plain.bytes);
    return helped;
}

static bool check_shape(shape what) {
    dp_buffer file = make_file(&what);
    bool helped = check_same(file.data, file.size, &tiny);
    dp_buffer_free(&file);
    return helped;
}

/* ---- tests ---- */

static void many_members_are_the_same_bytes(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++)
        for (int level = 0; level < 4; level += 3) {
            assert_true(check_shape((shape){zstd, level, 200, 400}));
            assert_true(check_shape((shape){zstd, level, 400, 10}));
            assert_true(check_shape((shape){zstd, level, 50, 3000}));
            check_shape((shape){zstd, level, 20, 20000}); /* longer than a piece may become */
            check_shape((shape){zstd, level, 2, 2000});
        }
}

static void one_member_is_read_without_threads(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++)
        for (size_t most = 1; most < 100000; most *= 9)
            assert_false(check_shape((shape){zstd, 3, 1, most}));
}

static void usual_sizes_are_the_same_bytes(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++) {
        dp_buffer file = make_file(&(shape){zstd, 1, 300, 60000});
        assert_true(check_same(file.data, file.size, NULL));
        dp_buffer_free(&file);
    }
}

/* Longer than what is read and made room for at first; some longer than what ever is. */
static void long_members_are_the_same_bytes(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++)
        for (size_t most = 2 << 20; most <= 16 << 20; most *= 8) {
            if (zstd && most > 2 << 20 && SMALLER > 1)
                continue; /* a sanitizer sees the same with gzip */
            dp_buffer file = make_file(&(shape){zstd, 1, 8, most});
            assert_true(check_same(file.data, file.size, NULL));
            dp_buffer_free(&file);
        }
}

/* bgzip: each member tells its own size in an extra field, and an empty one ends the file. */
static void add_block(dp_buffer *file, const char *text, size_t size) {
    dp_buffer member = {0};
    add_member(&member, &(shape){.level = 6}, text, size);
    size_t whole = member.size + 8 - 1;
    const char head[] = {0x1F,      (char)0x8B, 8, 4,   0,   0, 0, 0,           0,
                         (char)255, 6,          0, 'B', 'C', 2, 0, (char)whole, (char)(whole >> 8)};
    assert_true(dp_buffer_add(file, head, sizeof head));
    assert_true(dp_buffer_add(file, member.data + 10, member.size - 10));
    dp_buffer_free(&member);
}

static void bgzip_is_the_same_bytes(void **state) {
    (void)state;
    dp_buffer file = {0};
    uint64_t seed = 1;
    char *text = make_text(&seed, 60000);
    for (size_t i = 0; i < 60; i++)
        add_block(&file, text + i * 1000, 1000);
    add_block(&file, "", 0);
    assert_true(check_same(file.data, file.size, &tiny));
    free(text);
    dp_buffer_free(&file);
}

static void files_may_be_cut_anywhere(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++) {
        dp_buffer file = make_file(&(shape){zstd, 3, 40, 200});
        for (size_t length = 6; length < file.size; length += SMALLER * SMALLER * (1 + length % 13))
            check_same(file.data, length, &tiny);
        dp_buffer_free(&file);
    }
}

static void files_may_be_damaged_anywhere(void **state) {
    (void)state;
    uint64_t seed = 5;
    for (int zstd = 0; zstd < 2; zstd++) {
        dp_buffer file = make_file(&(shape){zstd, 3, 40, 200});
        for (size_t i = 0; i < 200 / SMALLER / SMALLER; i++) {
            size_t where = 6 + random_below(&seed, file.size - 6);
            char before = file.data[where];
            file.data[where] ^= (char)(1 << random_below(&seed, 8));
            check_same(file.data, file.size, &tiny);
            file.data[where] = before;
        }
        dp_buffer_free(&file);
    }
}

static void what_stands_behind_is_found(void **state) {
    (void)state;
    static const char zeros[2000];
    for (int zstd = 0; zstd < 2; zstd++) {
        dp_buffer file = make_file(&(shape){zstd, 3, 100, 200});
        size_t size = file.size;
        dp_buffer_add(&file, "garbage", 7);
        check_same(file.data, file.size, &tiny);
        file.size = size;
        dp_buffer_add(&file, zeros, sizeof zeros);
        check_same(file.data, file.size, &tiny);
        dp_buffer_add(&file, "x", 1);
        check_same(file.data, file.size, &tiny);
        dp_buffer_free(&file);
    }
}

/* Members that hold whole members, as they stand, and starts of some. */
static void members_within_members_are_not_taken(void **state) {
    (void)state;
    for (int zstd = 0; zstd < 2; zstd++) {
        dp_buffer file = {0};
        uint64_t seed = 9;
        for (size_t i = 0; i < 60; i++) {
            shape inner = {zstd, 3, 1 + random_below(&seed, 12), 300};
            dp_buffer held = make_file(&inner);
            dp_buffer_add(&held, zstd ? "\x28\xB5\x2F\xFD" : "\x1F\x8B\x08\0", 4);
            /* zstd stores what does not compress */
            add_member(&file, &(shape){zstd, zstd ? 1 : 0, 0, 0}, held.data, held.size - i % 3);
            dp_buffer_free(&held);
        }
        assert_true(check_same(file.data, file.size, &tiny));
        dp_buffer_free(&file);
    }
}

static void frames_to_skip_are_skipped(void **state) {
    (void)state;
    dp_buffer file = {0};
    uint64_t seed = 3;
    char *text = make_text(&seed, 50000);
    for (size_t i = 0; i < 50; i++) {
        assert_true(dp_buffer_add(&file, "\x50\x2A\x4D\x18\x04\0\0\0abcd", 12));
        add_member(&file, &(shape){.zstd = true, .level = 3}, text + i * 1000, 1000);
    }
    assert_true(check_same(file.data, file.size, &tiny));
    free(text);
    dp_buffer_free(&file);
}

/* Their decoders would take much memory, one for each thread. */
static void frames_of_large_windows_are_left_to_the_reader(void **state) {
    (void)state;
    for (int window = 24; window <= 25; window++) {
        dp_buffer file = {0};
        uint64_t seed = 2;
        char *text = make_text(&seed, 60000), out[10000];
        ZSTD_CCtx *packer = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(packer, ZSTD_c_windowLog, window);
        for (size_t i = 0; i < 60; i++) {
            ZSTD_inBuffer in = {text + i * 1000, 999, 0}, rest = {text + i * 1000 + 999, 1, 0};
            ZSTD_outBuffer to = {out, sizeof out, 0};
            ZSTD_compressStream2(packer, &to, &in, ZSTD_e_continue); /* so that its size is not known */
            assert_int_equal(ZSTD_compressStream2(packer, &to, &rest, ZSTD_e_end), 0);
            assert_true(dp_buffer_add(&file, out, to.pos));
        }
        assert_int_equal(check_same(file.data, file.size, &tiny), window == 24);
        ZSTD_freeCCtx(packer);
        free(text);
        dp_buffer_free(&file);
    }
}

/* Windows that a stream refuses, of frames that say how little they hold and so could be read without one. */
static void windows_that_are_too_large_are_refused_by_all(void **state) {
    (void)state;
    for (int window = 23; window <= 41; window++) {
        dp_buffer file = {0};
        /* its magic number, 4 bytes of length, the window; 5 bytes; a block as it stands, the last one */
        char frame[] = "\x28\xB5\x2F\xFD\x80\0\x05\0\0\0\x29\0\0hello";
        for (size_t i = 0; i < 20; i++) {
            frame[5] = (char)(i % 5 == 4 ? (window - 10) << 3 : 0);
            assert_true(dp_buffer_add(&file, frame, sizeof frame - 1));
        }
        check_same(file.data, file.size, &tiny);
        dp_buffer_free(&file);
    }
}

static void a_stream_is_used_again_and_closed_early(void **state) {
    (void)state;
    dp_stream stream;
    char some[100];
    dp_stream_init(&stream, NULL);
    stream.threads = 3;
    stream.ahead_sizes = &tiny;
    for (int i = 0; i < 40; i++) {
        dp_buffer file = make_file(&(shape){i & 1, 3, 100, 200});
        write_bytes("a", file.data, file.size);
        assert_true(dp_stream_open(&stream, "a"));
        for (int reads = 0; reads < i; reads++)
            assert_true(dp_stream_read(&stream, some, sizeof some));
        dp_stream_close(&stream);
        dp_buffer_free(&file);
    }
    dp_stream_free(&stream);
}

/* A redirected file need not be at its start. */
static void stdin_that_was_read_before_goes_on_where_it_is(void **state) {
    (void)state;
    dp_buffer file = {0}, plain = make_file(&(shape){false, 3, 100, 200});
    dp_buffer_add(&file, "first line\n", 11);
    dp_buffer_add(&file, plain.data, plain.size);
    write_bytes("plain", plain.data, plain.size);
    write_bytes("a", file.data, file.size);
    assert_non_null(freopen("a", "rb", stdin));
    assert_int_equal(lseek(STDIN_FILENO, 11, SEEK_SET), 11);
    contents expected = read_file("plain", 1, NULL, 100), found = read_file("-", 4, &tiny, 100);
    assert_false(found.helped);
    assert_string_equal(found.failure, "");
    assert_int_equal(found.bytes.size, expected.bytes.size);
    assert_memory_equal(found.bytes.data, expected.bytes.data, found.bytes.size);
    dp_buffer_free(&expected.bytes);
    dp_buffer_free(&found.bytes);
    dp_buffer_free(&file);
    dp_buffer_free(&plain);
}

/* Lines of JSON, over members that do not care for lines. */
static void runs_read_the_same_with_any_number_of_threads(void **state) {
    (void)state;
    dp_buffer lines = {0}, file = {0};
    uint64_t seed = 4;
    for (int i = 0; i < 4000; i++) {
        char *text = make_text(&seed, 1000);
        assert_true(dp_buffer_printf(&lines, "{\"id\":%d,\"text\":\"%s\"}\n", i, text));
        free(text);
    }
    for (size_t at = 0, size; at < lines.size; at += size) {
        size = 1 + random_below(&seed, 30000);
        if (size > lines.size - at)
            size = lines.size - at;
        add_member(&file, &(shape){.level = 1}, lines.data + at, size);
    }
    write_bytes("a.jsonl.gz", file.data, file.size);
    const char *path = "a.jsonl.gz";
    result one = run_paths(&path, 1, &(doppel_input_options){.threads = 1});
    result four = run_paths(&path, 1, &(doppel_input_options){.threads = 4});
    assert_int_equal(one.counts.documents, 4000);
    assert_string_equal(one.output.data, four.output.data);
    assert_string_equal(four.reports.data, "");
    free_result(&one);
    free_result(&four);
    dp_buffer_free(&file);
    dp_buffer_free(&lines);
}

/* ---- pieces of whole members, as the stream takes them ---- */

/* Takes all pieces of a file, from each to the next; a byte beside their starts there are none. */
static void check_pieces(const dp_ahead_file *file, const dp_buffer *expected) {
    dp_ahead *ahead = dp_ahead_create(file, &tiny);
    size_t given = 0;
    assert_non_null(ahead);
    for (uint64_t at = 0; at < file->size;) {
        const dp_ahead_piece *piece = dp_ahead_take(ahead, at);
        assert_non_null(piece);
        assert_int_equal(piece->start, at);
        assert_true(piece->end > at && given + piece->out.size <= expected->size);
        assert_memory_equal(piece->out.data, expected->data + given, piece->out.size);
        given += piece->out.size;
        at = piece->end;
    }
    assert_int_equal(given, expected->size);
    assert_null(dp_ahead_take(ahead, file->size + tiny.piece));
    assert_false(dp_ahead_is_useless(ahead));
    dp_ahead_free(ahead);

    ahead = dp_ahead_create(file, &tiny);
    for (uint64_t wrong = 0; wrong < 4; wrong++) {
        assert_false(dp_ahead_is_useless(ahead));
        assert_null(dp_ahead_take(ahead, wrong * tiny.piece + 1));
        assert_null(dp_ahead_take(ahead, wrong * tiny.piece + 2)); /* the same piece counts once */
    }
    assert_true(dp_ahead_is_useless(ahead));
    dp_ahead_free(ahead);
}

static void pieces_are_given_where_they_start_and_nowhere_else(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        dp_buffer bytes = make_file(&(shape){i & 1, 3, 60, 600});
        write_bytes("a", bytes.data, bytes.size);
        contents plain = read_file("a", 1, &in_order, 1 << 16);
        dp_ahead_file file = {.zstd = i & 1, .size = bytes.size, .threads = 1 + i};
        file.fd = open("a", O_RDONLY);
        check_pieces(&file, &plain.bytes);
        file.from = file.size;
        assert_null(dp_ahead_create(&file, &tiny));
        file.from = 0;
        assert_null(dp_ahead_create(&file, NULL)); /* less than is worth it */
        close(file.fd);
        dp_buffer_free(&plain.bytes);
        dp_buffer_free(&bytes);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(many_members_are_the_same_bytes),
        TEST(one_member_is_read_without_threads),
        TEST(usual_sizes_are_the_same_bytes),
        TEST(long_members_are_the_same_bytes),
        TEST(bgzip_is_the_same_bytes),
        TEST(files_may_be_cut_anywhere),
        TEST(files_may_be_damaged_anywhere),
        TEST(what_stands_behind_is_found),
        TEST(members_within_members_are_not_taken),
        TEST(frames_to_skip_are_skipped),
        TEST(frames_of_large_windows_are_left_to_the_reader),
        TEST(windows_that_are_too_large_are_refused_by_all),
        TEST(a_stream_is_used_again_and_closed_early),
        TEST(runs_read_the_same_with_any_number_of_threads),
        TEST(stdin_that_was_read_before_goes_on_where_it_is),
        TEST(pieces_are_given_where_they_start_and_nowhere_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

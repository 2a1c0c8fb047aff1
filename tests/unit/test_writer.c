/* test_writer.c - output files: compressed by name, the same bytes with any number of threads, whole or absent. */
#include "files.h"

#include "input/stream.h"

#include <pthread.h>
#include <signal.h>

/* What a file holds, decompressed. */
static dp_buffer read_back(const char *path) {
    dp_buffer all = {0};
    dp_stream stream;
    char some[5000];
    dp_stream_init(&stream, NULL);
    assert_true(dp_stream_open(&stream, path));
    for (size_t got; (got = dp_stream_read(&stream, some, sizeof some));)
        assert_true(dp_buffer_add(&all, some, got));
    assert_false(stream.failed);
    dp_stream_free(&stream);
    return all;
}

/* Lines of different lengths, `size` bytes at least. */
static dp_buffer make_lines(size_t size) {
    dp_buffer lines = {0};
    uint64_t seed = size;
    while (lines.size < size)
        assert_true(dp_buffer_printf(&lines, "{\"id\":%zu,\"text\":\"%llx\"}\n", lines.size,
                                     (unsigned long long)random_next(&seed)));
    return lines;
}

static void write_file(const char *path, const dp_buffer *lines, int threads) {
    doppel_writer *writer;
    doppel_error error;
    uint64_t seed = 7;
    assert_int_equal(doppel_writer_open(&writer, path, threads, &error), DOPPEL_OK);
    for (size_t at = 0; at < lines->size;) {
        size_t part = random_below(&seed, 2) ? random_below(&seed, 300) : random_below(&seed, 400000);
        if (part > lines->size - at)
            part = lines->size - at;
        assert_int_equal(doppel_writer_write(writer, (doppel_slice){lines->data + at, part}, &error), DOPPEL_OK);
        at += part;
    }
    assert_int_equal(doppel_writer_finish(writer, true, &error), DOPPEL_OK);
}

static const char *const names[] = {"a.jsonl", "a.jsonl.gz", "a.JSONL.ZST"};

static void what_was_written_is_read_back(void **state) {
    /* Also around the ends of blocks: 1 MiB for gzip, 4 MiB for zstd. */
    static const size_t sizes[] = {0,       1,       100000,        (1 << 20) - 1, 1 << 20,       (1 << 20) + 1,
                                   3 << 20, 2 << 20, (4 << 20) - 1, 4 << 20,       (4 << 20) + 1, 8 << 20,
                                   9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t name = 0; name < 3; name++) {
            dp_buffer lines = make_lines(sizes[i]);
            lines.size = sizes[i];
            write_file(in(state, names[name]), &lines, 2);
            dp_buffer back = read_back(in(state, names[name]));
            assert_int_equal(back.size, lines.size);
            assert_true(!back.size || !memcmp(back.data, lines.data, back.size));
            dp_buffer_free(&back);
            dp_buffer_free(&lines);
        }
    assert_int_equal(entries(*state, false), 3);
}

static void names_tell_the_compression(void **state) {
    dp_buffer lines = make_lines(1000);
    static const char *const magic[] = {"{\"id", "\x1F\x8B\x08", "\x28\xB5\x2F\xFD"};
    for (size_t name = 0; name < 3; name++) {
        write_file(in(state, names[name]), &lines, 1);
        dp_buffer bytes = slurp(in(state, names[name]));
        assert_memory_equal(bytes.data, magic[name], strlen(magic[name]));
        dp_buffer_free(&bytes);
    }
    dp_buffer_free(&lines);
}

static void threads_do_not_change_the_bytes(void **state) {
    static const char *const other[] = {"b", "b.gz", "b.zst"};
    dp_buffer lines = make_lines(9 << 20);
    for (size_t name = 0; name < 3; name++) {
        write_file(in(state, names[name]), &lines, 1);
        for (int threads = 0; threads < 6; threads += threads ? 3 : 2) {
            write_file(in(state, other[name]), &lines, threads);
            same_files(in(state, names[name]), in(state, other[name]));
        }
    }
    dp_buffer_free(&lines);
}

/* ---- pieces from many threads ---- */

enum { MOST_PIECES = 4096 };

typedef struct putting {
    doppel_writer *writer;
    const dp_buffer *lines;
    size_t start[MOST_PIECES + 1]; /* of piece i in `lines` */
    size_t count;
    pthread_mutex_t lock;
    size_t order[MOST_PIECES], taken; /* which piece is put next */
    doppel_status status;             /* the first that was not OK */
} putting;

/* Cuts the lines into pieces of many sizes, some of them empty. */
static void cut(putting *p) {
    uint64_t seed = p->lines->size;
    while (p->start[p->count] < p->lines->size && p->count < MOST_PIECES) {
        size_t left = p->lines->size - p->start[p->count], kind = random_below(&seed, 4);
        size_t part = kind ? random_below(&seed, kind == 1 ? 1000 : 600000) : 0;
        p->start[p->count + 1] = p->start[p->count] + (part < left ? part : left);
        p->count++;
    }
    assert_int_equal(p->start[p->count], p->lines->size);
}

/* The order in which they are put: as a few threads would, or (wild) any. */
static void shuffle(putting *p, bool wild) {
    uint64_t seed = 5;
    for (size_t i = 0; i < p->count; i++)
        p->order[i] = i;
    for (size_t i = 0; i + 1 < p->count; i++) {
        size_t other = i + random_below(&seed, wild ? p->count - i : 2), piece = p->order[i];
        p->order[i] = p->order[other];
        p->order[other] = piece;
    }
}

static void *put_pieces(void *user) {
    putting *p = user;
    for (;;) {
        pthread_mutex_lock(&p->lock);
        size_t i = p->taken < p->count && p->status == DOPPEL_OK ? p->order[p->taken++] : SIZE_MAX;
        pthread_mutex_unlock(&p->lock);
        if (i == SIZE_MAX)
            return NULL;
        doppel_slice bytes = {p->lines->data + p->start[i], p->start[i + 1] - p->start[i]};
        doppel_status status = doppel_writer_put(p->writer, i, bytes, NULL);
        pthread_mutex_lock(&p->lock);
        if (p->status == DOPPEL_OK)
            p->status = status;
        pthread_mutex_unlock(&p->lock);
    }
}

/* Puts the lines by this many threads; gives how that went. */
static doppel_status put_file(const char *path, const dp_buffer *lines, int threads, bool wild, doppel_error *error) {
    putting *p = calloc(1, sizeof *p);
    pthread_t others[8];
    assert_non_null(p);
    p->lines = lines;
    pthread_mutex_init(&p->lock, NULL);
    cut(p);
    shuffle(p, wild);
    assert_int_equal(doppel_writer_open(&p->writer, path, threads, error), DOPPEL_OK);
    for (int i = 0; i < threads; i++)
        assert_int_equal(pthread_create(&others[i], NULL, put_pieces, p), 0);
    for (int i = 0; i < threads; i++)
        pthread_join(others[i], NULL);
    doppel_status finished = doppel_writer_finish(p->writer, true, error), put = p->status;
    pthread_mutex_destroy(&p->lock);
    free(p);
    return put != DOPPEL_OK ? put : finished;
}

static void pieces_of_many_threads_make_the_same_file(void **state) {
    static const char *const other[] = {"b", "b.gz", "b.zst"};
    static const int threads[] = {1, 2, 3, 8};
    for (size_t name = 0; name < 3; name++)
        for (size_t size = 0; size <= 9 << 20; size += 9 << 20) {
            dp_buffer lines = make_lines(size);
            write_file(in(state, names[name]), &lines, 1);
            for (size_t i = 0; i < 8; i++) {
                assert_int_equal(put_file(in(state, other[name]), &lines, threads[i / 2], i % 2, NULL), DOPPEL_OK);
                same_files(in(state, names[name]), in(state, other[name]));
            }
            dp_buffer_free(&lines);
        }
}

static void a_failure_ends_all_threads_that_put_pieces(void **state) {
    dp_buffer lines = make_lines(20 << 20);
    doppel_error error;
    signal(SIGXFSZ, SIG_IGN);
    limit_files(100000);
    for (size_t name = 0; name < 3; name++) {
        assert_int_equal(put_file(in(state, names[name]), &lines, 4, false, &error), DOPPEL_ERROR_IO);
        assert_string_equal(error.message, "cannot be written: File too large");
    }
    limit_files(RLIM_INFINITY);
    assert_int_equal(entries(*state, false), 0);
    assert_int_equal(put_file("/dev/full", &lines, 4, false, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.message, "cannot be written: No space left on device");
    dp_buffer_free(&lines);
}

static void a_missing_or_doubled_piece_is_reported(void **state) {
    doppel_writer *writer;
    doppel_error error;
    for (size_t name = 0; name < 3; name++) {
        assert_int_equal(doppel_writer_open(&writer, in(state, names[name]), 2, &error), DOPPEL_OK);
        assert_int_equal(doppel_writer_put(writer, 0, doppel_slice_of("a"), &error), DOPPEL_OK);
        assert_int_equal(doppel_writer_put(writer, 0, doppel_slice_of("a"), &error), DOPPEL_ERROR_USAGE);
        assert_string_equal(error.message, "piece 0 was put twice");
        assert_int_equal(doppel_writer_put(writer, 100, doppel_slice_of("c"), &error), DOPPEL_OK);
        assert_int_equal(doppel_writer_finish(writer, true, &error), DOPPEL_ERROR_USAGE);
        assert_string_equal(error.message, "piece 1 was never put");
    }
    assert_int_equal(entries(*state, false), 0);
}

static void a_reader_of_stdout_that_has_gone_away_is_told_apart(void **state) {
    (void)state;
    dp_buffer lines = make_lines(3 << 20);
    int ends[2], before = dup(STDOUT_FILENO);
    doppel_error error;
    fflush(stdout);
    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    doppel_status status = put_file(NULL, &lines, 3, false, &error);
    dup2(before, STDOUT_FILENO);
    close(before);
    assert_int_equal(status, DOPPEL_ERROR_INTERRUPTED);
    dp_buffer_free(&lines);
}

static void a_file_that_is_given_up_is_not_there(void **state) {
    dp_buffer lines = make_lines(6 << 20);
    spit(in(state, "a.gz"), "old", 3);
    for (size_t name = 0; name < 3; name++) {
        doppel_writer *writer;
        const char *path = name == 1 ? in(state, "a.gz") : in(state, names[name]);
        assert_int_equal(doppel_writer_open(&writer, path, 3, NULL), DOPPEL_OK);
        assert_int_equal(doppel_writer_write(writer, (doppel_slice){lines.data, lines.size}, NULL), DOPPEL_OK);
        assert_int_equal(doppel_writer_finish(writer, false, NULL), DOPPEL_OK);
    }
    assert_int_equal(entries(*state, false), 1);
    dp_buffer old = slurp(in(state, "a.gz"));
    assert_memory_equal(old.data, "old", 3);
    dp_buffer_free(&old);
    dp_buffer_free(&lines);
}

/* Writes until it fails; gives the status of the end. */
static doppel_status write_too_much(const char *path, const dp_buffer *lines, doppel_error *error) {
    doppel_writer *writer;
    assert_int_equal(doppel_writer_open(&writer, path, 2, error), DOPPEL_OK);
    doppel_status written = DOPPEL_OK;
    for (int i = 0; i < 4 && written == DOPPEL_OK; i++)
        written = doppel_writer_write(writer, (doppel_slice){lines->data, lines->size}, error);
    doppel_status finished = doppel_writer_finish(writer, written == DOPPEL_OK, error);
    return written != DOPPEL_OK ? written : finished;
}

static void a_full_disk_is_reported_and_leaves_nothing(void **state) {
    dp_buffer lines = make_lines(5 << 20);
    doppel_error error;
    signal(SIGXFSZ, SIG_IGN);
    limit_files(100000);
    for (size_t name = 0; name < 3; name++) {
        const char *path = in(state, names[name]);
        assert_int_equal(write_too_much(path, &lines, &error), DOPPEL_ERROR_IO);
        assert_string_equal(error.message, "cannot be written: File too large");
        assert_string_equal(error.file, path);
    }
    limit_files(RLIM_INFINITY);
    assert_int_equal(entries(*state, false), 0);
    assert_int_equal(write_too_much("/dev/full", &lines, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.message, "cannot be written: No space left on device");
    dp_buffer_free(&lines);
}

static void a_full_disk_at_the_very_end_is_reported(void **state) {
    doppel_writer *writer;
    doppel_error error;
    signal(SIGXFSZ, SIG_IGN);
    for (size_t name = 0; name < 3; name++) {
        assert_int_equal(doppel_writer_open(&writer, in(state, names[name]), 2, &error), DOPPEL_OK);
        assert_int_equal(doppel_writer_write(writer, doppel_slice_of("some text"), &error), DOPPEL_OK);
        limit_files(4);
        assert_int_equal(doppel_writer_finish(writer, true, &error), DOPPEL_ERROR_IO);
        limit_files(RLIM_INFINITY);
    }
    assert_int_equal(entries(*state, false), 0);
}

static void a_place_that_cannot_be_is_reported(void **state) {
    doppel_writer *writer;
    doppel_error error;
    assert_int_equal(doppel_writer_open(&writer, in(state, "no/such/a.gz"), 2, &error), DOPPEL_ERROR_IO);
    assert_null(writer);
    assert_memory_equal(error.message, "cannot be written: the folder ", 30);
    assert_non_null(strstr(error.message, "no/such does not exist"));
    assert_int_equal(doppel_writer_open(&writer, *state, 2, &error), DOPPEL_ERROR_IO);
    assert_string_equal(error.message, "cannot be written: Is a directory");
}

static void devices_are_written_and_stay(void **state) {
    (void)state;
    struct stat status;
    dp_buffer lines = make_lines(100000);
    write_file("/dev/null", &lines, 2);
    assert_int_equal(stat("/dev/null", &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    dp_buffer_free(&lines);
}

static void stdout_is_written_as_it_is(void **state) {
    dp_buffer lines = make_lines(100000);
    fflush(stdout);
    int before = dup(STDOUT_FILENO);
    FILE *file = fopen(in(state, "out"), "wb");
    assert_non_null(file);
    dup2(fileno(file), STDOUT_FILENO);
    write_file("-", &lines, 2);
    write_file(NULL, &lines, 2);
    dup2(before, STDOUT_FILENO);
    close(before);
    fclose(file);
    dp_buffer out = slurp(in(state, "out"));
    assert_int_equal(out.size, 2 * lines.size);
    assert_memory_equal(out.data + lines.size, lines.data, lines.size);
    dp_buffer_free(&out);
    dp_buffer_free(&lines);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(what_was_written_is_read_back),
        TEST(names_tell_the_compression),
        TEST(threads_do_not_change_the_bytes),
        TEST(pieces_of_many_threads_make_the_same_file),
        TEST(a_failure_ends_all_threads_that_put_pieces),
        TEST(a_missing_or_doubled_piece_is_reported),
        TEST(a_reader_of_stdout_that_has_gone_away_is_told_apart),
        TEST(a_file_that_is_given_up_is_not_there),
        TEST(a_full_disk_is_reported_and_leaves_nothing),
        TEST(a_full_disk_at_the_very_end_is_reported),
        TEST(a_place_that_cannot_be_is_reported),
        TEST(devices_are_written_and_stay),
        TEST(stdout_is_written_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_store_lmdb.c - index folders: in every state, with other processes, growing, compacted, copied, read-only. */
#include "folders.h"

#include "store/lmdb.h"

#include <pthread.h>
#include <sys/select.h>

#define INDEX_TEXT "doppel index\nformat 1\ngeneration 1\n"

static dp_store *no_store(void) {
    return (dp_store *)(uintptr_t)8;
}

#define OPEN_REFUSED(path, options, status, reason)                              \
    do {                                                                         \
        dp_store *store_ = no_store();                                           \
        dp_store_options options_ = options;                                     \
        REFUSED(dp_store_open(path, &options_, &store_, error), status, reason); \
        assert_null(store_);                                                     \
    } while (0)

#define WRITING ((dp_store_options){0})
#define READING ((dp_store_options){.read_only = true})
#define EXISTING ((dp_store_options){.must_exist = true})

/* ---- the states of a folder ---- */

static void a_folder_is_made_and_opened_again(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 20, 50);
    dp_buffer text = slurp(name_in(path, "doppel.index"));
    assert_int_equal(text.size, strlen(INDEX_TEXT));
    assert_memory_equal(text.data, INDEX_TEXT, text.size);
    dp_buffer_free(&text);
    assert_int_equal(entries(path, false), 4);
    dp_store *store = open_store(path, (dp_store_options){.settings = "other=1\n", .must_exist = true});
    assert_string_equal(dp_store_settings(store), "x=1\n");
    write_numbers(store, 21, 30, 50);
    dp_store_close(store);
    check_folder(path, 30, 50);
    verified_clean(path, 30);
}

static void what_is_not_an_index_is_refused(void **state) {
    const char *path = in(state, "index");
    OPEN_REFUSED(path, EXISTING, DOPPEL_ERROR_IO, "no such folder");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_IO, "no such folder");
    OPEN_REFUSED(in(state, "no/index"), WRITING, DOPPEL_ERROR_IO, "No such file");
    spit(path, "x", 1);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "is not a folder");
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "no doppel.index");
    spit(name_in(path, "letters.txt"), "x", 1);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "letters.txt");
    assert_int_equal(entries(path, false), 1);
}

static void what_doppel_index_says_counts(void **state) {
    const char *path = in(state, "index"), *index = name_in(path, "doppel.index");
    const char *bad[] = {"",
                         "hello",
                         "doppel index\n",
                         "doppel index\nformat 1\n",
                         "doppel index\nformat 1\ngeneration 0\n",
                         "doppel index\nformat 1\ngeneration 1\nand more\n"};
    make_folder(path, 3, 1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        spit(index, bad[i], strlen(bad[i]));
        OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "damaged");
        OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "damaged");
    }
    spit(index, "doppel index\nformat 2\nwhatever\n", 31);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "format 2; this program reads format 1");
    spit(index, "doppel index\nformat 1\ngeneration 8\n", 35);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_IO, "No such file");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_IO, "No such file");
    spit(index, INDEX_TEXT, strlen(INDEX_TEXT));
    check_folder(path, 3, 1);
}

static void a_file_that_is_not_lmdbs_is_refused(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 3, 1);
    dp_buffer good = slurp(file), text = {0};
    for (int i = 0; i < 5000; i++)
        assert_true(dp_buffer_printf(&text, "not a database\n"));
    spit(file, text.data, text.size);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "not a file of LMDB");
    spit(file, "", 0);
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "not a file of LMDB");
    good.data[20] = good.data[4096 + 20] = 9;
    spit(file, good.data, good.size);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "version 9");
    good.data[20] = good.data[4096 + 20] = 1;
    spit(file, good.data, good.size);
    check_folder(path, 3, 1);
    dp_buffer_free(&good);
    dp_buffer_free(&text);
}

static void a_half_made_folder_is_made_anew(void **state) {
    for (size_t length = 0; length <= 8192; length += 1024) {
        const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
        make_folder(path, 0, 0);
        dp_buffer good = slurp(file);
        unlink(name_in(path, "doppel.index"));
        spit(file, good.data, length);
        spit(name_in(path, "doppel.index.77.tmp"), "doppel", 6);
        OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "no doppel.index");
        make_folder(path, 4, 2);
        check_folder(path, 4, 2);
        assert_int_equal(entries(path, true), 4);
        dp_buffer_free(&good);
    }
    const char *path = in(state, "index");
    spit(name_in(path, "writer.lock"), "", 0);
    make_folder(path, 4, 2);
    check_folder(path, 4, 2);
}

static void documents_are_not_forgotten_without_doppel_index(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 9, 3);
    unlink(name_in(path, "doppel.index"));
    dp_store_close(open_store(path, WRITING));
    check_folder(path, 9, 3);
    unlink(name_in(path, "doppel.index"));
    spit(name_in(path, "documents-2.mdb"), "", 0);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "several");
}

static void leftovers_are_cleared_by_the_writer(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 9, 3);
    const char *left[] = {"documents-2.mdb", "documents-2.mdb-lock", "documents-1.mdb.9.tmp", "doppel.index.9.tmp"};
    for (size_t i = 0; i < 4; i++)
        spit(name_in(path, left[i]), "x", 1);
    spit(name_in(path, "notes"), "x", 1);
    check_folder(path, 9, 3);
    assert_int_equal(entries(path, false), 9);
    dp_store_close(open_store(path, WRITING));
    assert_int_equal(entries(path, false), 5);
    check_folder(path, 9, 3);
}

/* ---- files that are cut, or altered ---- */

static void a_file_that_is_cut_short_is_refused(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 30, 700);
    dp_buffer good = slurp(file);
    size_t refused = 0, tried = 0;
    for (size_t length = 0; length < good.size; length += length % 4096 ? 2595 : 1501, tried++) {
        dp_store *store;
        doppel_error error;
        findings f;
        doppel_verified verified;
        spit(file, good.data, length);
        doppel_status status = dp_store_open(path, &READING, &store, &error);
        assert_int_equal(verify_folder(path, &f, &verified), status);
        assert_int_equal(f.count, status ? 1 : 0);
        refused += status == DOPPEL_ERROR_STORE;
        assert_true(!status || strstr(error.message, "cut short") || strstr(error.message, "not a file of LMDB"));
        dp_store_close(store);
        dp_buffer_free(&f.text);
    }
    assert_true(refused + 8 > tried);
    spit(file, good.data, good.size);
    check_folder(path, 30, 700);
    dp_buffer_free(&good);
}

/* LMDB takes pages at the end of the file, gives them back in the same transaction and never writes them. */
static void a_file_may_lack_pages_that_are_free(void **state) {
    const char *path = in(state, "index");
    dp_store *store = open_store(path, WRITING);
    const dp_env *env = &dp_lmdb_of(store)->env;
    uint64_t seed = 3;
    size_t shorter = 0;
    for (uint64_t number = 0; number < 20000 && shorter < 5;) {
        parts all[8];
        dp_change changes[8];
        size_t count = 1 + random_below(&seed, 8);
        for (size_t i = 0; i < count; i++) {
            all[i] = make_parts(++number, 0, random_below(&seed, random_below(&seed, 4) ? 250 : 7500));
            changes[i] = all[i].change;
            changes[i].remove = number > 50 && random_below(&seed, 2) ? number - 1 - random_below(&seed, 40) : 0;
        }
        OK(dp_store_write(store, changes, count, 1, error));
        while (count)
            free_parts(&all[--count]);
        struct stat known;
        MDB_envinfo info;
        assert_int_equal(stat(env->path, &known), 0);
        assert_int_equal(mdb_env_info(env->env, &info), 0);
        if ((off_t)(info.me_last_pgno + 1) * 4096 <= known.st_size)
            continue;
        OK(dp_file_check(env->path, error));
        shorter++;
    }
    assert_true(shorter > 0);
    dp_store_close(store);
}

/* Where the bytes of a part stand in the file. */
static size_t find_part(const dp_buffer *file, const dp_buffer *part) {
    char *at = memmem(file->data, file->size, part->data, part->size);
    assert_non_null(at);
    return (size_t)(at - file->data);
}

static void note_damaged(uint64_t number, void *user) {
    *(uint64_t *)user = *(uint64_t *)user * 100 + number;
}

static doppel_status count_value(uint64_t number, doppel_slice bytes, void *user) {
    (void)number, (void)bytes, (void)user;
    return DOPPEL_OK;
}

static void an_altered_value_is_reported_and_the_others_are_fine(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 9, 10);
    parts p = make_parts(5, 0, 10);
    dp_buffer good = slurp(file);
    for (int part = 0; part < DP_PARTS - 1; part++) {
        size_t at = find_part(&good, &p.bytes[part]) + 3;
        good.data[at] ^= 16;
        spit(file, good.data, good.size);
        good.data[at] ^= 16;
        dp_store *store = open_store(path, READING);
        dp_view *view = open_view(store);
        doppel_slice bytes;
        uint64_t damaged = 0;
        const char *names[] = {"the trace of number 5 is damaged", "the record of number 5", "the set of number 5"};
        OK(dp_view_begin(view, error));
        REFUSED(dp_view_get(view, (dp_part)part, 5, &bytes, error), DOPPEL_ERROR_STORE, names[part]);
        assert_null(bytes.data);
        check_number(view, 4, 0, 10);
        check_number(view, 6, 0, 10);
        dp_each each = {(dp_part)part, 0, UINT64_MAX, count_value, note_damaged, &damaged};
        OK(dp_view_each(view, &each, error));
        assert_int_equal(damaged, 5);
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
        findings f;
        doppel_verified verified;
        assert_int_equal(verify_folder(path, &f, &verified), DOPPEL_ERROR_STORE);
        assert_int_equal(f.count, 1);
        assert_non_null(strstr(f.text.data, "number 5: its "));
        assert_int_equal(verified.documents, 8);
        assert_int_equal(verified.damaged, 1);
        dp_buffer_free(&f.text);
    }
    free_parts(&p);
    dp_buffer_free(&good);
}

static void verify_survives_any_page(void **state) {
    const char *path = in(state, "index"), *file = name_in(path, "documents-1.mdb");
    make_folder(path, 40, 300);
    dp_store *store = open_store(path, WRITING);
    for (uint64_t number = 41; number < 60; number++)
        write_one(store, make_parts(number, 7, 0));
    dp_store_close(store);
    dp_buffer good = slurp(file);
    uint64_t seed = 3;
    size_t clean = 0, pages = good.size / 4096;
    for (size_t page = 2; page < pages; page++) {
        findings f;
        doppel_verified verified;
        char *bytes = malloc(good.size);
        memcpy(bytes, good.data, good.size);
        bool all = random_below(&seed, 2);
        for (size_t i = 0; i < 4096; i++)
            if (all || !random_below(&seed, 100))
                bytes[page * 4096 + i] = (char)random_next(&seed);
        spit(file, bytes, good.size);
        doppel_status status = verify_folder(path, &f, &verified);
        assert_true(status == DOPPEL_OK || status == DOPPEL_ERROR_STORE);
        assert_int_equal(f.count > 0, status == DOPPEL_ERROR_STORE);
        clean += status == DOPPEL_OK;
        dp_buffer_free(&f.text);
        free(bytes);
    }
    /* Pages that are free may hold anything. */
    assert_true(clean < pages / 3);
    spit(file, good.data, good.size);
    findings f;
    doppel_verified verified;
    assert_int_equal(verify_folder(path, &f, &verified), DOPPEL_OK);
    assert_int_equal(verified.documents, 40);
    assert_int_equal(verified.copies, 19);
    dp_buffer_free(&f.text);
    dp_buffer_free(&good);
}

/* ---- other processes ---- */

static void hold_open(int from, int to, const char *path) {
    dp_store *store;
    CHILD_NEEDS(!dp_store_open(path, &WRITING, &store, NULL));
    tell_byte(to);
    wait_byte(from);
}

static void another_writer_is_named(void **state) {
    const char *path = in(state, "index");
    char name[40];
    make_folder(path, 5, 5);
    other writer = start_other(hold_open, path);
    assert_true(wait_byte(writer.from));
    snprintf(name, sizeof name, "process %d (", (int)writer.process);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, name);
    check_folder(path, 5, 5);
    end_other(&writer, SIGKILL);
    dp_store *store = open_store(path, WRITING);
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "this process has it open");
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "this process has it open");
    dp_store_close(store);
}

/* Says a byte for each number that is there. */
static void follow(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view;
    dp_moment moment;
    uint64_t last = 0, generation = 0;
    CHILD_NEEDS(!dp_store_open(path, &READING, &store, NULL) && !dp_view_create(store, &view, NULL));
    tell_byte(to);
    while (wait_byte(from)) {
        CHILD_NEEDS(!dp_view_begin(view, NULL));
        dp_view_moment(view, &moment);
        CHILD_NEEDS(moment.last >= last && moment.generation >= generation);
        last = moment.last;
        generation = moment.generation;
        doppel_slice bytes;
        CHILD_NEEDS(!dp_view_get(view, DP_PART_RECORD, last, &bytes, NULL) && bytes.data);
        dp_view_end(view);
        uint64_t said[2] = {last, generation};
        CHILD_NEEDS(write(to, said, sizeof said) == sizeof said);
    }
    dp_view_free(view);
    dp_store_close(store);
}

static void follower_is_at(other *reader, uint64_t last, uint64_t generation) {
    uint64_t said[2] = {0, 0};
    tell_byte(reader->to);
    assert_int_equal(read(reader->from, said, sizeof said), sizeof said);
    assert_int_equal(said[0], last);
    assert_int_equal(said[1], generation);
}

static bool keep_all(const dp_trace *trace, void *user) {
    (void)trace, (void)user;
    return true;
}

static void a_reader_process_follows(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 5, 5);
    other reader = start_other(follow, path);
    assert_true(wait_byte(reader.from));
    dp_store *store = open_store(path, (dp_store_options){.map = 1 << 20});
    follower_is_at(&reader, 5, 1);
    write_numbers(store, 6, 10, 5);
    follower_is_at(&reader, 10, 1);
    OK(dp_store_compact(store, keep_all, NULL, error));
    follower_is_at(&reader, 10, 2);
    write_numbers(store, 11, 20, 20000);
    follower_is_at(&reader, 20, 2);
    OK(dp_store_compact(store, keep_all, NULL, error));
    OK(dp_store_compact(store, keep_all, NULL, error));
    follower_is_at(&reader, 20, 4);
    assert_int_equal(entries(path, false), 4);
    assert_int_equal(end_other(&reader, 0), 0);
    dp_store_close(store);
    verified_clean(path, 20);
}

/* Opens and closes, while another writes. */
static void open_often(int from, int to, const char *path) {
    (void)from;
    for (int i = 0; i < 300; i++) {
        dp_store *store;
        dp_view *view;
        dp_moment moment;
        doppel_slice bytes;
        doppel_error error;
        if (dp_store_open(path, &READING, &store, &error)) {
            fprintf(stderr, "%s: %s\n", error.file, error.message);
            _exit(4);
        }
        CHILD_NEEDS(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
        dp_view_moment(view, &moment);
        CHILD_NEEDS(!dp_view_get(view, DP_PART_SET, moment.last, &bytes, NULL) && bytes.data);
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
    }
    tell_byte(to);
}

static void a_folder_can_be_opened_while_it_is_written(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 1, 10);
    dp_store *store = open_store(path, WRITING);
    other reader = start_other(open_often, path);
    uint64_t seed = 9, number = 2;
    struct timeval none = {0, 0};
    fd_set wanted;
    do {
        parts p = make_parts(number, 0, 1 + random_below(&seed, random_below(&seed, 4) ? 250 : 7500));
        p.change.remove = number > 50 && random_below(&seed, 3) ? number - 1 - random_below(&seed, 40) : 0;
        write_one(store, p);
        if (number++ % 100 == 0)
            OK(dp_store_compact(store, keep_all, NULL, error));
        FD_ZERO(&wanted);
        FD_SET(reader.from, &wanted);
    } while (!select(reader.from + 1, &wanted, NULL, NULL, &none));
    assert_int_equal(end_other(&reader, 0), 0);
    dp_store_close(store);
}

/* A reader with a small map meets a file that has outgrown it. */
static void follow_small(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view;
    CHILD_NEEDS(!dp_store_open(path, &(dp_store_options){.read_only = true, .map = 1 << 20}, &store, NULL));
    CHILD_NEEDS(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
    dp_view_end(view);
    tell_byte(to);
    wait_byte(from);
    for (int i = 0; i < 3; i++) {
        doppel_slice bytes;
        CHILD_NEEDS(!dp_view_begin(view, NULL) && !dp_view_get(view, DP_PART_SET, 200, &bytes, NULL));
        CHILD_NEEDS(bytes.length == 8 * 3000);
        dp_view_end(view);
    }
    dp_view_free(view);
    dp_store_close(store);
}

static void read_on(dp_store *store, dp_view *view, uint64_t *last) {
    dp_moment moment;
    (void)store;
    OK(dp_view_begin(view, error));
    dp_view_moment(view, &moment);
    assert_true(moment.last >= *last);
    *last = moment.last;
    if (*last)
        check_number(view, *last, 0, 3000);
    dp_view_end(view);
}

typedef struct reading {
    dp_store *store;
    _Atomic bool stop;
} reading;

static void *keep_reading(void *given) {
    reading *r = given;
    dp_view *view = open_view(r->store);
    uint64_t last = 0;
    while (!atomic_load(&r->stop))
        read_on(r->store, view, &last);
    dp_view_free(view);
    return NULL;
}

static void the_map_grows_under_views(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 1, 3000);
    other small = start_other(follow_small, path);
    assert_true(wait_byte(small.from));
    reading r = {.store = open_store(path, (dp_store_options){.map = 1 << 20})};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_reading, &r), 0);
    for (uint64_t first = 2; first < 400; first += 20)
        write_numbers(r.store, first, first + 19, 3000);
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tell_byte(small.to);
    assert_int_equal(end_other(&small, 0), 0);
    dp_store_close(r.store);
    check_folder(path, 401, 3000);
}

static void write_on(int from, int to, const char *path) {
    dp_store *store;
    (void)from;
    CHILD_NEEDS(!dp_store_open(path, &WRITING, &store, NULL));
    dp_view *view;
    dp_moment moment;
    CHILD_NEEDS(!dp_view_create(store, &view, NULL) && !dp_view_begin(view, NULL));
    dp_view_moment(view, &moment);
    dp_view_end(view);
    for (uint64_t number = moment.last + 1;; number++) {
        parts p = make_parts(number, 0, 100);
        CHILD_NEEDS(!dp_store_write(store, &p.change, 1, number, NULL));
        if (number % 16 == 0)
            CHILD_NEEDS(!dp_store_compact(store, keep_all, NULL, NULL));
        if (write(to, &number, sizeof number) != sizeof number)
            _exit(0);
        free_parts(&p);
    }
}

static void what_was_written_survives_a_kill(void **state) {
    const char *path = in(state, "index");
    uint64_t last = 0, said, seed = 5;
    for (int round = 0; round < 10; round++) {
        other writer = start_other(write_on, path);
        uint64_t until = last + 1 + random_below(&seed, 40);
        for (said = 0; said < until;)
            assert_int_equal(read(writer.from, &said, sizeof said), sizeof said);
        usleep((useconds_t)random_below(&seed, 2000));
        kill(writer.process, SIGKILL);
        while (read(writer.from, &said, sizeof said) == sizeof said)
            ;
        end_other(&writer, SIGKILL);
        dp_store *store = open_store(path, WRITING);
        dp_view *view = open_view(store);
        dp_moment moment;
        OK(dp_view_begin(view, error));
        dp_view_moment(view, &moment);
        assert_true(moment.last == said || moment.last == said + 1);
        for (uint64_t number = 1; number <= moment.last; number++)
            check_number(view, number, 0, 100);
        last = moment.last;
        dp_view_end(view);
        dp_view_free(view);
        dp_store_close(store);
        verified_clean(path, last);
    }
}

/* ---- copies ---- */

static void a_backup_is_made_while_writes_go_on(void **state) {
    const char *path = in(state, "index"), *copy = in(state, "copy");
    make_folder(path, 60, 400);
    reading r = {.store = open_store(path, WRITING)};
    write_numbers(r.store, 61, 70, 400);
    OK(dp_store_backup(r.store, copy, error));
    write_numbers(r.store, 71, 80, 400);
    REFUSED(dp_store_backup(r.store, copy, error), DOPPEL_ERROR_USAGE, "not empty");
    REFUSED(dp_store_backup(r.store, in(state, "no/copy"), error), DOPPEL_ERROR_IO, "No such file");
    dp_store_close(r.store);
    verified_clean(copy, 70);
    check_folder(copy, 70, 400);
    check_folder(path, 80, 400);
    assert_int_equal(entries(in(state, ""), false), 2);
}

static void compacting_shrinks_the_file(void **state) {
    const char *path = in(state, "index");
    dp_store *store = open_store(path, WRITING);
    dp_view *view = open_view(store);
    dp_store_info before, after;
    write_numbers(store, 1, 100, 1000);
    for (uint64_t number = 101; number < 191; number++)
        write_one(store, make_removal(number, number - 100));
    OK(dp_view_begin(view, error));
    dp_view_info(view, &before);
    dp_view_end(view);
    assert_true(before.free_bytes > 100000);
    assert_true(before.disk_bytes > 800000);
    OK(dp_store_compact(store, keep_all, NULL, error));
    OK(dp_view_begin(view, error));
    dp_view_info(view, &after);
    assert_int_equal(after.entries[DP_PART_TRACE], 10);
    assert_int_equal(after.generation, before.generation + 1);
    assert_int_equal(after.last, before.last);
    assert_true(after.disk_bytes < before.disk_bytes / 4);
    dp_view_end(view);
    dp_view_free(view);
    dp_store_close(store);
    verified_clean(path, 10);
}

/* ---- read-only ---- */

/* Root may write everywhere: another user tries. */
static void try_as_nobody(int from, int to, const char *path) {
    dp_store *store;
    dp_view *view;
    doppel_error error;
    doppel_slice bytes;
    (void)from, (void)to;
    if (!getuid())
        CHILD_NEEDS(!setgid(65534) && !setuid(65534));
    CHILD_NEEDS(dp_store_open(path, &WRITING, &store, &error) == DOPPEL_ERROR_IO);
    CHILD_NEEDS(strstr(error.message, "reading only") != NULL);
    CHILD_NEEDS(!dp_store_open(path, &READING, &store, NULL) && !dp_view_create(store, &view, NULL));
    CHILD_NEEDS(!dp_view_begin(view, NULL) && !dp_view_get(view, DP_PART_SET, 7, &bytes, NULL));
    CHILD_NEEDS(bytes.length == 80);
    dp_view_end(view);
    CHILD_NEEDS(dp_store_write(store, NULL, 0, 1, &error) == DOPPEL_ERROR_USAGE);
    CHILD_NEEDS(dp_store_compact(store, keep_all, NULL, &error) == DOPPEL_ERROR_USAGE);
    dp_view_free(view);
    dp_store_close(store);
    doppel_verified verified;
    CHILD_NEEDS(!dp_store_verify(path, NULL, NULL, &verified, NULL) && verified.documents == 8);
}

static void a_folder_that_cannot_be_written_can_be_read(void **state) {
    const char *path = in(state, "index");
    make_folder(path, 8, 10);
    const char *names[] = {"doppel.index", "documents-1.mdb", "documents-1.mdb-lock", "writer.lock"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(chmod(name_in(path, names[i]), 0444), 0);
    assert_int_equal(chmod(path, 0555), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    other nobody = start_other(try_as_nobody, path);
    assert_int_equal(end_other(&nobody, 0), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        TEST(a_folder_is_made_and_opened_again),
        TEST(what_is_not_an_index_is_refused),
        TEST(what_doppel_index_says_counts),
        TEST(a_file_that_is_not_lmdbs_is_refused),
        TEST(a_half_made_folder_is_made_anew),
        TEST(documents_are_not_forgotten_without_doppel_index),
        TEST(leftovers_are_cleared_by_the_writer),
        TEST(a_file_that_is_cut_short_is_refused),
        TEST(a_file_may_lack_pages_that_are_free),
        TEST(an_altered_value_is_reported_and_the_others_are_fine),
        TEST(verify_survives_any_page),
        TEST(another_writer_is_named),
        TEST(a_reader_process_follows),
        TEST(a_folder_can_be_opened_while_it_is_written),
        TEST(the_map_grows_under_views),
        TEST(what_was_written_survives_a_kill),
        TEST(a_backup_is_made_while_writes_go_on),
        TEST(compacting_shrinks_the_file),
        TEST(a_folder_that_cannot_be_written_can_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

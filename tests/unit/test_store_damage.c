/* Folders whose bytes were altered: nothing is forgotten without a word, nothing ends the process, and nothing is
 * written over what is left. */
#include "folders.h"

enum { NUMBERS = 300, PAGE = 4096 };

/* ---- a folder, and what can be read of it ---- */

/* Short and long values, links in the page of their original and in pages of their own, removals, several commits. */
static void make_varied(const char *path) {
    make_folder(path, NUMBERS, 40);
    dp_store *store = open_store(path, WRITING);
    for (uint64_t number = NUMBERS + 1; number <= NUMBERS + 40; number++)
        write_one(store, make_parts(number, 0, number % 4 ? 30 : 2000));
    for (uint64_t number = NUMBERS + 41; number <= NUMBERS + 60; number++)
        write_one(store, make_parts(number, number % 2 ? 7 : 8, 0));
    for (uint64_t number = 11; number <= 30; number++) {
        const dp_change gone = {.remove = number};
        OK(dp_store_write(store, &gone, 1, AT(1), error));
    }
    dp_store_close(store);
}

enum { LAST = NUMBERS + 60, THERE = LAST - 20 };

typedef struct reading {
    uint64_t whole, damaged;
    bool seen[LAST + 1];
} reading;

static doppel_status on_value(uint64_t number, doppel_slice bytes, void *user) {
    reading *r = user;
    (void)bytes;
    assert_true(number && number <= LAST && !r->seen[number]);
    r->seen[number] = true;
    r->whole++;
    return DOPPEL_OK;
}

static void on_damaged(uint64_t number, void *user) {
    reading *r = user;
    (void)number;
    r->damaged++;
}

/* Every part, by walking and by number: what a walk leaves out is told, or the count says so, and what a walk gives is
 * found by its number, too. */
static void read_all(dp_view *view, bool *told) {
    dp_moment moment;
    size_t found;
    uint64_t links[64];
    doppel_slice bytes;
    dp_counts counts;
    dp_view_moment(view, &moment);
    for (int part = 0; part < DP_PARTS; part++) {
        reading r = {0};
        const dp_each each = {(dp_part)part, 1, UINT64_MAX, on_value, on_damaged, &r};
        doppel_status status = dp_view_each(view, &each, NULL);
        *told = *told || status || r.damaged;
        if (part == DP_PART_TRACE)
            *told = *told || moment.traces != r.whole;
        bool complete = part > DP_PART_RECORD || r.whole == THERE;
        assert_true(complete || *told);
        for (uint64_t number = 1; number <= LAST; number++) {
            doppel_status got = dp_view_get(view, (dp_part)part, number, &bytes, NULL);
            *told = *told || got;
            assert_true(got || !r.seen[number] || bytes.data);
            assert_true(got || r.seen[number] || !bytes.data || r.damaged || status);
        }
    }
    for (uint64_t number = 1; number <= LAST; number++) {
        doppel_status status = dp_view_links(view, number, links, 64, &found, NULL);
        *told = *told || status || dp_view_counts(view, number, &counts, NULL);
        assert_true(status || *told || found == (number == 7 || number == 8 ? 10 : 0));
    }
}

/* Opens a folder that may be damaged; whether that was told. */
static bool look_at(const char *path) {
    dp_store *store = NULL;
    dp_view *view = NULL;
    bool told = false;
    if (dp_store_open(path, &READING, &store, NULL))
        return true;
    OK(dp_view_create(store, &view, error));
    if (dp_view_begin(view, NULL)) {
        told = true;
    } else {
        read_all(view, &told);
        dp_view_end(view);
    }
    dp_view_free(view);
    dp_store_close(store);
    return told;
}

/* The folder of a test and its file, kept apart from the names that others ask for. */
static void name_files(void **state, char path[200], char file[400]) {
    snprintf(path, 200, "%s", in(state, "index"));
    snprintf(file, 400, "%s", name_in(path, "documents-1.mdb"));
}

/* ---- bits ---- */

static void flip(dp_buffer *bytes, const char *file, size_t at, unsigned bit) {
    bytes->data[at] = (char)(bytes->data[at] ^ 1 << bit);
    spit(file, bytes->data, bytes->size);
}

/* Anywhere, in headers and in pointers: a walk never says less than there is without saying so. */
static void a_flipped_bit_is_told_or_does_no_harm(void **state) {
    char path[200], file[400];
    name_files(state, path, file);
    make_varied(path);
    assert_false(look_at(path));
    dp_buffer bytes = slurp(file);
    uint64_t seed = 5;
    size_t told = 0, times = full_suite() ? 20000 : 1500 / SMALLER;
    for (size_t i = 0; i < times; i++) {
        size_t page = random_below(&seed, bytes.size / PAGE) * PAGE;
        size_t at = i % 3 == 0   ? random_below(&seed, bytes.size)
                    : i % 3 == 1 ? page + random_below(&seed, 16)
                                 : page + 16 + random_below(&seed, 100);
        unsigned bit = (unsigned)random_below(&seed, 8);
        flip(&bytes, file, at, bit);
        told += look_at(path);
        flip(&bytes, file, at, bit);
    }
    assert_true(told > times / 4);
    assert_false(look_at(path));
    dp_buffer_free(&bytes);
}

/* Writes either leave all that could be read, or are refused. */
static void a_write_keeps_what_can_be_read(void **state) {
    char path[200], file[400];
    name_files(state, path, file);
    make_varied(path);
    dp_buffer bytes = slurp(file);
    dp_buffer note = slurp(name_in(path, "documents-1.mdb-commit"));
    uint64_t seed = 9;
    size_t refused = 0, written = 0;
    for (size_t i = 0; i < 400; i++) {
        size_t page = random_below(&seed, bytes.size / PAGE) * PAGE;
        size_t at = page + random_below(&seed, i % 2 ? 200 : PAGE);
        unsigned bit = (unsigned)random_below(&seed, 8);
        dp_store *store = NULL;
        flip(&bytes, file, at, bit);
        spit(name_in(path, "documents-1.mdb-commit"), note.data, note.size);
        if (dp_store_open(path, &WRITING, &store, NULL)) {
            refused++;
        } else {
            parts p = make_parts(LAST + 1, 0, 500);
            dp_change changes[3] = {p.change, {.remove = 5}, {.remove = NUMBERS + 4}};
            bool done = !dp_store_write(store, changes, 3, AT(1), NULL);
            free_parts(&p);
            dp_store_close(store);
            refused += !done;
            written += done;
            findings f;
            doppel_verified verified;
            doppel_status status = verify_folder(path, &f, &verified);
            assert_true(status || !done || verified.documents + verified.copies == THERE - 1);
            dp_buffer_free(&f.text);
        }
        bytes.data[at] = (char)(bytes.data[at] ^ 1 << bit);
        spit(file, bytes.data, bytes.size);
    }
    assert_true(refused > 20 && written > 20);
    dp_buffer_free(&bytes);
    dp_buffer_free(&note);
}

/* ---- whole files ---- */

/* The commit before the last is whole, too: only the note tells that there was another. */
static void an_older_commit_is_not_taken_for_the_last(void **state) {
    char path[200], file[400];
    name_files(state, path, file);
    make_varied(path);
    dp_buffer before = slurp(file);
    dp_store *store = open_store(path, WRITING);
    write_one(store, make_parts(LAST + 1, 0, 10));
    dp_store_close(store);
    dp_buffer after = slurp(file);
    for (size_t meta = 0; meta < 2; meta++)
        memcpy(after.data + meta * PAGE, before.data + meta * PAGE, PAGE);
    spit(file, after.data, after.size);
    OPEN_REFUSED(path, READING, DOPPEL_ERROR_STORE, "the last commit, number");
    OPEN_REFUSED(path, WRITING, DOPPEL_ERROR_STORE, "doppel verify --index");
    unlink(name_in(path, "documents-1.mdb-commit"));
    dp_store_close(open_store(path, READING));
    dp_buffer_free(&before);
    dp_buffer_free(&after);
}

/* A file that is cut short while it is open: SIGBUS, were it not handled. */
/* The thread sanitizer keeps SIGBUS to itself. What LMDB has allocated for a write that is interrupted stays allocated,
 * which the address sanitizer reports. */
#if defined(__SANITIZE_THREAD__)
enum { SIGNALS_ARE_SEEN = false, LEAKS_ARE_SEEN = false };
#elif defined(__SANITIZE_ADDRESS__)
enum { SIGNALS_ARE_SEEN = true, LEAKS_ARE_SEEN = true };
#else
enum { SIGNALS_ARE_SEEN = true, LEAKS_ARE_SEEN = false };
#endif

static void a_file_cut_short_while_it_is_open_is_an_error(void **state) {
    char path[200], file[400];
    if (!SIGNALS_ARE_SEEN)
        skip();
    name_files(state, path, file);
    make_varied(path);
    dp_buffer bytes = slurp(file);
    for (size_t length = 0; length < bytes.size; length += PAGE * 3 * SMALLER) {
        spit(file, bytes.data, bytes.size);
        dp_store *store = open_store(path, READING);
        dp_view *view = open_view(store);
        bool told = false;
        OK(dp_view_begin(view, error));
        assert_int_equal(truncate(file, (off_t)length), 0);
        read_all(view, &told);
        dp_view_end(view);
        told = told || dp_view_begin(view, NULL);
        assert_true(told || length > bytes.size / 2);
        dp_view_free(view);
        dp_store_close(store);
    }
    dp_buffer_free(&bytes);
}

/* And the same under a writer: an error, and no more writes. */
static void a_writer_survives_a_file_cut_short(void **state) {
    char path[200], file[400];
    if (!SIGNALS_ARE_SEEN || LEAKS_ARE_SEEN)
        skip();
    name_files(state, path, file);
    make_varied(path);
    dp_buffer bytes = slurp(file);
    for (size_t length = 0; length < bytes.size; length += PAGE * 5 * SMALLER) {
        spit(file, bytes.data, bytes.size);
        unlink(name_in(path, "documents-1.mdb-commit"));
        dp_store *store = open_store(path, WRITING);
        parts p = make_parts(LAST + 1, 0, 3000);
        assert_int_equal(truncate(file, (off_t)length), 0);
        const dp_change changes[2] = {p.change, {.remove = 3}};
        (void)dp_store_write(store, changes, 2, AT(1), NULL);
        (void)dp_store_compact(store, keep_all, NULL, NULL);
        dp_store_close(store);
        free_parts(&p);
        entries(path, true);
        rmdir(path);
        make_varied(path);
    }
    dp_buffer_free(&bytes);
}

/* ---- copies ---- */

static void copies_of_damaged_folders_are_refused(void **state) {
    char path[200], file[400];
    name_files(state, path, file);
    make_varied(path);
    dp_buffer bytes = slurp(file);
    uint64_t seed = 21;
    size_t refused = 0, copied = 0;
    for (size_t i = 0; i < 150 / SMALLER; i++) {
        size_t at = random_below(&seed, bytes.size);
        unsigned bit = (unsigned)random_below(&seed, 8);
        dp_store *store = NULL;
        const char *copy = in(state, "copy");
        flip(&bytes, file, at, bit);
        if (dp_store_open(path, &READING, &store, NULL) || dp_store_backup(store, copy, NULL)) {
            refused++;
        } else {
            copied++;
            verified_clean(copy, THERE - 20);
        }
        dp_store_close(store);
        if (!access(copy, F_OK))
            entries(copy, true);
        rmdir(copy);
        flip(&bytes, file, at, bit);
    }
    assert_true(refused > 10 / SMALLER && copied > 10 / SMALLER);
    dp_buffer_free(&bytes);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
    const struct CMUnitTest tests[] = {
        TEST(a_flipped_bit_is_told_or_does_no_harm),     TEST(a_write_keeps_what_can_be_read),
        TEST(an_older_commit_is_not_taken_for_the_last), TEST(a_file_cut_short_while_it_is_open_is_an_error),
        TEST(a_writer_survives_a_file_cut_short),        TEST(copies_of_damaged_folders_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

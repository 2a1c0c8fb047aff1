/* test_index_damage.c - files that are no index, are cut, altered, or made to deceive: refused with the reason where it
 * is noticed, and never a crash. */
#include "index_files.h"
#include "seal.h"

/* ---- files in memory ---- */

/* The parts of a file in memory: one run of layout "3x4". */
typedef struct forged {
    dp_buffer bytes;
    dp_file_header *header;
    dp_file_run *run;
    dp_file_section *section;
    char *data;
} forged;

static forged take_apart(const dp_buffer *bytes) {
    forged f = {.bytes = *bytes};
    f.header = (void *)f.bytes.data;
    assert_int_equal(f.header->runs, 1);
    f.run = (void *)(f.bytes.data + sizeof *f.header);
    f.section = (void *)(f.run + 1);
    f.data = f.bytes.data + sizeof *f.header + f.header->directory_size;
    return f;
}

/* ---- files that were cut or altered ---- */

/* A file of little more than a block's directory. */
static dp_buffer small_file(const char *path, int bits) {
    doppel_index *index = make(bits, "3x4");
    add_many(index, bits, 0, 20);
    compact(index);
    add_one(index, bits, 30, 7);
    remove_one(index, bits, 4);
    save(index, path);
    doppel_index_free(index);
    return slurp(path);
}

static void every_length_but_the_right_one_is_refused(void **state) {
    const char *path = in(state, "index");
    dp_buffer bytes = small_file(path, 64);
    for (size_t length = 0; length < bytes.size; length++) {
        spit(path, bytes.data, length);
        refused(path, DOPPEL_ERROR_STORE, length < sizeof(dp_file_header) ? "is not an index" : "cut short");
    }
    assert_true(dp_buffer_add(&bytes, "\0\0\0\0\0\0\0\0", 8));
    spit(path, bytes.data, bytes.size);
    refused(path, DOPPEL_ERROR_STORE, "too long");
    dp_buffer_free(&bytes);
}

/* Whether an altered file is noticed: when it is opened, or by validate. Every answer it gives is right. */
static bool noticed(const char *path, const doppel_matches *truth) {
    doppel_index *index;
    doppel_error error;
    if (doppel_index_open(path, &index, &error))
        return true;
    doppel_matches all = {0}, near = {0};
    doppel_status status = all_entries(index, &all);
    assert_true(status ? status == DOPPEL_ERROR_STORE : same_entries(&all, truth));
    const doppel_match *entry = &truth->match[truth->count / 2];
    status = doppel_index_find(index, entry->fingerprint, 0, NULL, &near, &error);
    assert_true(status ? status == DOPPEL_ERROR_STORE : near.count > 0);
    if (status)
        assert_string_equal(error.file, path);
    bool found = doppel_index_validate(index, &error) == DOPPEL_ERROR_STORE;
    doppel_matches_free(&all);
    doppel_matches_free(&near);
    doppel_index_free(index);
    return found;
}

static void every_altered_byte_is_noticed(void **state) {
    const char *path = in(state, "index");
    for (int bits = 64; bits <= 128; bits += 64) {
        dp_buffer bytes = small_file(path, bits);
        doppel_index *index = open_index(path);
        doppel_matches truth = {0};
        assert_int_equal(all_entries(index, &truth), DOPPEL_OK);
        doppel_index_free(index);
        for (size_t i = 0; i < bytes.size; i++) {
            bytes.data[i] ^= (char)(1 << i % 8);
            spit(path, bytes.data, bytes.size);
            if (!noticed(path, &truth)) {
                print_error("byte %zu of %zu\n", i, bytes.size);
                fail();
            }
            bytes.data[i] ^= (char)(1 << i % 8);
        }
        dp_buffer_free(&bytes);
        doppel_matches_free(&truth);
    }
}

/* Damage in one block does not keep one from using the others. */
static void a_damaged_block_is_named_when_it_is_touched(void **state) {
    const char *path = in(state, "index");
    doppel_index *index = make(64, NULL);
    add_many(index, 64, 0, 30000);
    save(index, path);
    dp_buffer bytes = slurp(path);
    dp_file_header header;
    memcpy(&header, bytes.data, sizeof header);
    uint64_t data = sizeof header + header.directory_size, blocks = dp_file_blocks(header.data_size);
    assert_true(blocks > 4);
    uint64_t at = data + 2 * DP_FILE_BLOCK + 100;
    bytes.data[at] ^= 4;
    spit(path, bytes.data, bytes.size);
    doppel_index *opened = open_index(path);
    doppel_error error;
    assert_int_equal(doppel_index_validate(opened, &error), DOPPEL_ERROR_STORE);
    char want[200];
    snprintf(want, sizeof want, "block 3 of %llu, from byte %llu", (unsigned long long)blocks,
             (unsigned long long)(data + 2 * DP_FILE_BLOCK));
    assert_string_equal(error.file, path);
    assert_non_null(strstr(error.message, want));
    size_t good = 0, bad = 0;
    doppel_matches x = {0}, y = {0};
    for (uint64_t i = 0; i < 30000; i += 17) {
        uint64_t query[2];
        fingerprint(64, i, query);
        doppel_status status = doppel_index_find(opened, query, 0, NULL, &x, &error);
        if (status) {
            assert_int_equal(status, DOPPEL_ERROR_STORE);
            assert_string_equal(error.file, path);
            assert_non_null(strstr(error.message, want));
            bad++;
            continue;
        }
        assert_int_equal(doppel_index_find(index, query, 0, NULL, &y, NULL), DOPPEL_OK);
        assert_true(same_entries(&x, &y));
        good++;
    }
    assert_true(good > 0 && bad > 0);
    assert_int_equal(doppel_index_save(opened, in(state, "copy"), &error), DOPPEL_ERROR_STORE);
    assert_int_equal(entries(*state, false), 1);
    doppel_matches_free(&x);
    doppel_matches_free(&y);
    doppel_index_free(index);
    doppel_index_free(opened);
    dp_buffer_free(&bytes);
}

/* Times lie apart from what is compared, and are checked as well. */
static void a_damaged_time_is_noticed_where_it_is_read(void **state) {
    const char *path = in(state, "index");
    doppel_index *index = make(64, "3x4");
    add_many(index, 64, 0, 30000);
    compact(index);
    for (uint64_t i = 0; i < 30000; i++)
        add_one(index, 64, i, 1000 + i);
    save(index, path);
    dp_buffer bytes = slurp(path);
    forged f = take_apart(&bytes);
    f.data[f.section[9 + DP_FILE_EXPIRES].offset + f.section[9 + DP_FILE_EXPIRES].length / 2] ^= 1;
    spit(path, bytes.data, bytes.size);
    doppel_index *opened = open_index(path);
    size_t good = 0, bad = 0;
    doppel_matches x = {0};
    for (uint64_t i = 0; i < 30000; i += 41) {
        uint64_t query[2];
        fingerprint(64, i, query);
        doppel_error error;
        doppel_status status = doppel_index_find(opened, query, 0, NULL, &x, &error);
        assert_true(!status || (status == DOPPEL_ERROR_STORE && strstr(error.message, "block")));
        for (size_t k = 0; !status && k < x.count; k++)
            assert_int_equal(x.match[k].expires, 1000 + x.match[k].owner);
        *(status ? &bad : &good) += 1;
    }
    assert_true(good > 0 && bad > 0);
    /* To change one time, all are read. */
    uint64_t first[2];
    fingerprint(64, 0, first);
    assert_int_equal(doppel_index_add(opened, first, 0, 7), DOPPEL_ERROR_STORE);
    assert_int_equal(doppel_index_add_batch(opened, first, NULL, (uint64_t[]){7}, 1), DOPPEL_ERROR_STORE);
    doppel_matches_free(&x);
    doppel_index_free(index);
    doppel_index_free(opened);
    dp_buffer_free(&bytes);
}

static void what_is_no_index_at_all(void **state) {
    const char *path = in(state, "text");
    refused(path, DOPPEL_ERROR_IO, "No such file or directory");
    char text[500];
    memset(text, 'x', sizeof text);
    spit(path, text, sizeof text);
    refused(path, DOPPEL_ERROR_STORE, "is not an index");
    refused(*state, DOPPEL_ERROR_STORE, "is not an index");
}

/* ---- files that were made to deceive: every checksum is right ---- */

/* Of a `plain` one, without lists of owners and dead bits, opening reads nothing but the header and the directory. */
static forged begin_forgery(const char *path, bool plain) {
    doppel_index *index = make(64, "3x4");
    if (plain)
        for (uint64_t i = 0; i < 40; i++)
            add_one(index, 64, 4 * i, 0);
    else
        add_many(index, 64, 0, 40);
    compact(index);
    if (!plain)
        remove_one(index, 64, 9);
    save(index, path);
    doppel_index_free(index);
    dp_buffer bytes = slurp(path);
    return take_apart(&bytes);
}
static void end_forgery(forged *f, const char *path) {
    seal((uint8_t *)f->bytes.data, f->bytes.size);
    spit(path, f->bytes.data, f->bytes.size);
    dp_buffer_free(&f->bytes);
}

static uint64_t *numbers_of(const forged *f, int section) {
    return (void *)(f->data + f->section[9 + section].offset);
}

static uint32_t *directory_of(const forged *f, int table) {
    return (void *)(f->data + f->section[3 * table].offset);
}

static void next_version(forged *f) {
    f->header->version++;
}
static void no_such_width(forged *f) {
    f->header->bits = 65;
}
static void no_distance(forged *f) {
    f->header->distance = 0;
}
static void many_runs(forged *f) {
    f->header->runs = 2;
}
static void no_such_layout(forged *f) {
    strcpy(f->run->layout, "9y9");
}
static void another_layout(forged *f) {
    strcpy(f->run->layout, "3x5");
}
static void no_end_of_name(forged *f) {
    memset(f->run->layout, '3', sizeof f->run->layout);
}
static void a_billion(forged *f) {
    f->run->count = 1000000000;
}
static void too_many_to_count(forged *f) {
    f->run->count = UINT64_MAX - 3;
}
static void many_in_lists(forged *f) {
    f->run->list_count = UINT64_MAX / 8 + 1;
}
static void nothing(forged *f) {
    f->run->count = 0;
}
static void many_sections(forged *f) {
    f->run->sections = UINT64_MAX / 16;
}
static void a_section_outside(forged *f) {
    f->section[1].offset = f->header->data_size;
}
static void a_section_far_outside(forged *f) {
    f->section[1].offset = UINT64_MAX - 63;
}
static void a_crooked_section(forged *f) {
    f->section[1].offset += 4;
}
static void a_short_section(forged *f) {
    f->section[9 + DP_FILE_IDS].length -= 8;
}
static void no_filter(forged *f) {
    f->section[1] = (dp_file_section){0, 0};
}
static void no_bits_for_lists(forged *f) {
    f->section[9 + DP_FILE_SHARED] = (dp_file_section){0, 0};
}
static void a_small_directory(forged *f) {
    f->header->directory_size -= 64;
    f->header->data_size += 64;
}

static void too_many_dead(forged *f) {
    numbers_of(f, DP_FILE_DEAD)[0] = UINT64_MAX;
}
static void too_many_lists(forged *f) {
    numbers_of(f, DP_FILE_SHARED)[0] |= (uint64_t)1 << 63;
}

static void a_checksum_does_not_make_an_index(void **state) {
    static const struct {
        void (*change)(forged *f);
        const char *reason;
    } cases[] = {{next_version, "version 2"},
                 {no_such_width, "invalid"},
                 {no_distance, "invalid"},
                 {many_runs, "invalid"},
                 {no_such_layout, "layout"},
                 {another_layout, "length"},
                 {no_end_of_name, "layout"},
                 {a_billion, "length"},
                 {too_many_to_count, "length"},
                 {many_in_lists, "length"},
                 {nothing, "length"},
                 {many_sections, "invalid"},
                 {a_section_outside, "outside"},
                 {a_section_far_outside, "outside"},
                 {a_crooked_section, "outside"},
                 {a_short_section, "length"},
                 {no_filter, "length"},
                 {no_bits_for_lists, "length"},
                 {a_small_directory, "invalid"},
                 {too_many_dead, "counts"},
                 {too_many_lists, "counts"}};
    const char *path = in(state, "index");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forged f = begin_forgery(path, false);
        cases[i].change(&f);
        end_forgery(&f, path);
        refused(path, DOPPEL_ERROR_STORE, cases[i].reason);
    }
}

static void a_descending_directory(forged *f) {
    directory_of(f, 0)[3] = 39;
    directory_of(f, 0)[4] = 1;
}
static void a_directory_beyond_the_end(forged *f) {
    for (int key = 1; key <= 16; key++)
        directory_of(f, 1)[key] = 1000000;
}
static void a_directory_that_begins_late(forged *f) {
    directory_of(f, 2)[0] = 1;
}
static void a_list_outside(forged *f) {
    uint64_t *shared = numbers_of(f, DP_FILE_SHARED);
    numbers_of(f, DP_FILE_IDS)[__builtin_ctzll(*shared)] = UINT64_MAX - 1;
}
static void a_list_without_end(forged *f) {
    numbers_of(f, DP_FILE_LISTS)[0] = UINT64_MAX / 2;
}
static void a_list_of_none(forged *f) {
    numbers_of(f, DP_FILE_LISTS)[0] = 0;
}
static void owners_out_of_order(forged *f) {
    numbers_of(f, DP_FILE_LISTS)[1] = numbers_of(f, DP_FILE_LISTS)[2];
}
static void one_list_for_all(forged *f) {
    for (uint64_t i = 0; i < f->run->count; i++)
        if (numbers_of(f, DP_FILE_SHARED)[0] >> i & 1)
            numbers_of(f, DP_FILE_IDS)[i] = 0;
}
static void lists_beyond_the_end(forged *f) {
    uint64_t *shared = numbers_of(f, DP_FILE_SHARED);
    *shared = (*shared & (*shared - 1)) | (uint64_t)1 << 63;
}
static void a_dead_list(forged *f) {
    numbers_of(f, DP_FILE_DEAD)[0] = numbers_of(f, DP_FILE_SHARED)[0];
}
static void numbers_out_of_order(forged *f) {
    memset(f->data + f->section[2].offset, 0, f->section[2].length);
}
static void other_numbers_in_a_table(forged *f) {
    uint32_t *filter = (void *)(f->data + f->section[4].offset);
    filter[7] ^= 1;
}
static void bits_beside_the_rest(forged *f) {
    char *rest = f->data + f->section[2].offset;
    rest[3] |= (char)0xF0;
}

/* Nothing crashes: each call works, or says that the file is bad. */
static void use(doppel_index *index) {
    doppel_matches all = {0};
    doppel_error error;
    for (uint64_t i = 0; i < 60; i++)
        for (int distance = 0; distance <= 64; distance += 8) {
            uint64_t query[2];
            fingerprint(64, i, query);
            doppel_status status = doppel_index_find(index, query, distance, NULL, &all, &error);
            assert_true(!status || status == DOPPEL_ERROR_STORE);
            bool contains;
            status = doppel_index_contains(index, query, i, &contains);
            assert_true(!status || status == DOPPEL_ERROR_STORE);
        }
    all.count = 0;
    doppel_status status = doppel_index_each(index, collect, &all);
    assert_true(!status || status == DOPPEL_ERROR_STORE);
    for (uint64_t i = 0; i < 80; i++) {
        uint64_t one[2];
        fingerprint(64, i, one);
        status = doppel_index_add(index, one, i * 3, i);
        assert_true(!status || status == DOPPEL_ERROR_STORE);
        status = doppel_index_remove(index, one, i, NULL);
        assert_true(!status || status == DOPPEL_ERROR_STORE);
    }
    status = doppel_index_compact(index, &error);
    assert_true(!status || status == DOPPEL_ERROR_STORE);
    status = doppel_index_expire(index, 20, NULL);
    assert_true(!status || status == DOPPEL_ERROR_STORE);
    doppel_matches_free(&all);
}

static void deceit_is_found_and_harmless(void **state) {
    static const struct {
        void (*change)(forged *f);
        const char *reason;
        bool plain;
    } cases[] = {{a_descending_directory, "damaged", true},
                 {a_directory_beyond_the_end, "damaged", true},
                 {a_directory_that_begins_late, "damaged", true},
                 {a_list_outside, "list of owners", false},
                 {a_list_without_end, "list of owners", false},
                 {a_list_of_none, "not in order", false},
                 {owners_out_of_order, "not in order", false},
                 {one_list_for_all, "out of place", false},
                 {lists_beyond_the_end, "beyond the last", false},
                 {a_dead_list, "out of place", false},
                 {numbers_out_of_order, "not in order", false},
                 {other_numbers_in_a_table, "table 2 holds other numbers", false},
                 {bits_beside_the_rest, "wrong bucket", false}};
    const char *path = in(state, "index");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        forged f = begin_forgery(path, cases[i].plain);
        cases[i].change(&f);
        end_forgery(&f, path);
        doppel_index *index = open_index(path);
        doppel_error error;
        assert_int_equal(doppel_index_validate(index, &error), DOPPEL_ERROR_STORE);
        if (!strstr(error.message, cases[i].reason)) {
            print_error("`%s` lacks `%s`\n", error.message, cases[i].reason);
            fail();
        }
        doppel_index_free(index);
        index = open_index(path);
        use(index);
        doppel_index_free(index);
    }
}

/* A merge of numbers out of order, into tables with other keys than those they came from. */
static void disorder_does_not_lead_a_merge_astray(void **state) {
    const char *path = in(state, "index");
    doppel_index *index = make(64, "3x4");
    for (uint64_t i = 0; i < 5000; i++)
        add_one(index, 64, 4 * i, 0);
    compact(index);
    save(index, path);
    doppel_index_free(index);
    dp_buffer bytes = slurp(path);
    forged f = take_apart(&bytes);
    memset(f.header->layout, 0, sizeof f.header->layout);
    numbers_out_of_order(&f);
    end_forgery(&f, path);
    index = open_index(path);
    add_one(index, 64, 1, 0);
    doppel_error error;
    assert_int_equal(doppel_index_compact(index, &error), DOPPEL_ERROR_STORE);
    assert_string_equal(error.file, path);
    use(index);
    doppel_index_free(index);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_length_but_the_right_one_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(every_altered_byte_is_noticed, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_block_is_named_when_it_is_touched, setup, teardown),
        cmocka_unit_test_setup_teardown(a_damaged_time_is_noticed_where_it_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_index_at_all, setup, teardown),
        cmocka_unit_test_setup_teardown(a_checksum_does_not_make_an_index, setup, teardown),
        cmocka_unit_test_setup_teardown(deceit_is_found_and_harmless, setup, teardown),
        cmocka_unit_test_setup_teardown(disorder_does_not_lead_a_merge_astray, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_index_faults.c - the index and the joins without memory, files or threads: a clear error, no leak, no half
 * state, no part of a file, and the same call works afterwards. */
#include "faults.h"

#include "hamming/index.h"

#include <dirent.h>

/* ---- an index, and what is in it ---- */

enum { COUNT = 5000, BEFORE = 500, WIDE = 1200 };

static uint64_t prints[2 * COUNT]; /* random, one in eight near another, some equal */

static void fill_prints(void) {
    uint64_t seed = 3;
    for (size_t i = 0; i < 2 * COUNT; i++) {
        prints[i] = random_next(&seed);
        if (i && i % 8 == 0)
            prints[i] = prints[random_below(&seed, i)] ^ (i % 16 ? (uint64_t)1 << random_below(&seed, 64) : 0);
    }
}

static bool add_entry(const doppel_match *entry, void *user) {
    uint64_t sum = mixed(mixed(mixed(entry->owner, entry->fingerprint[0]), entry->fingerprint[1]), entry->expires);
    ((uint64_t *)user)[0] += sum * (sum | 1);
    ((uint64_t *)user)[1]++;
    return true;
}

/* A number for all that is in an index, which is looked at without faults. */
static uint64_t content(const doppel_index *index) {
    int kinds = pause_faults();
    uint64_t sum[2] = {0};
    doppel_index_stats stats;
    doppel_error reason = {0};
    assert_int_equal(doppel_index_each(index, add_entry, sum), DOPPEL_OK);
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.entries, sum[1]);
    if (doppel_index_validate(index, &reason))
        fail_msg("%s", reason.message);
    resume_faults(kinds);
    return mixed(sum[0], sum[1]);
}

static doppel_status create_index(int bits, doppel_index **index) {
    doppel_error error = {0};
    doppel_index_options options = {.size = sizeof options, .bits = bits, .secret = 5};
    doppel_status status = doppel_index_create(&options, index, &error);
    assert_true(!status == !error.message[0]);
    return status;
}

static bool timed_run; /* the run has times, too */

/* An index with `count` entries, half of them in a run, half in the head; made without faults. */
static doppel_index *make_index(int bits, size_t count, uint64_t first_owner) {
    int kinds = pause_faults();
    doppel_index *index;
    uint64_t owners[COUNT], times[COUNT];
    size_t words = bits > 64 ? 2 : 1;
    assert_int_equal(create_index(bits, &index), DOPPEL_OK);
    for (size_t i = 0; i < count; i++)
        owners[i] = first_owner + i, times[i] = i % 3 ? 0 : i;
    assert_int_equal(doppel_index_add_batch(index, prints, owners, timed_run ? times : NULL, count / 2), DOPPEL_OK);
    assert_int_equal(doppel_index_compact(index, NULL), DOPPEL_OK);
    for (size_t i = count / 2; i < count; i++)
        assert_int_equal(doppel_index_add(index, prints + i * words, owners[i], times[i]), DOPPEL_OK);
    resume_faults(kinds);
    return index;
}

/* A call that failed has changed nothing, and works when it is done again. */
typedef doppel_status (*change)(doppel_index *index);

static doppel_status try_change(int bits, size_t count, change make, uint64_t *result) {
    doppel_index *index = make_index(bits, count, 0);
    uint64_t before = content(index);
    doppel_status status = make(index);
    if (status) {
        assert_int_equal(content(index), before);
        int kinds = pause_faults();
        assert_int_equal(make(index), DOPPEL_OK);
        resume_faults(kinds);
    }
    *result = content(index);
    doppel_index_free(index);
    return status;
}

/* ---- changes ---- */

static doppel_status create_and_free(uint64_t *result) {
    doppel_index *index = NULL;
    doppel_status status = create_index(64, &index);
    *result = 1;
    doppel_index_free(status ? NULL : index);
    return status;
}

/* An add that failed has changed nothing, and works afterwards. */
static void add_again(doppel_index *index, uint64_t i) {
    int kinds = pause_faults();
    doppel_index_stats stats;
    doppel_index_get_stats(index, &stats);
    assert_int_equal(stats.entries, i);
    content(index);
    assert_int_equal(doppel_index_add(index, &prints[i], i, i % 5), DOPPEL_OK);
    resume_faults(kinds);
}

/* From nothing to several runs. */
static doppel_status insert_one_by_one(uint64_t *result) {
    doppel_index *index = NULL;
    doppel_status status = create_index(64, &index);
    if (status)
        return status;
    for (uint64_t i = 0; i < COUNT && !status; i++)
        if ((status = doppel_index_add(index, &prints[i], i, i % 5)))
            add_again(index, i);
    *result = content(index);
    doppel_index_free(index);
    return status;
}

/* The same with growing levels, which a thread merges: what it cannot do, the next add does, or reports. */
static doppel_status insert_into_levels(uint64_t *result) {
    doppel_index *index = NULL;
    doppel_status status = create_index(64, &index);
    if (status)
        return status;
    index->merger.writer_most = index->merger.growing_from = 0;
    index->merger.growing_least = index->merger.growing_most = 1024;
    int kinds = pause_faults();
    assert_int_equal(doppel_index_add_batch(index, prints, NULL, NULL, 1100), DOPPEL_OK);
    resume_faults(kinds);
    for (uint64_t i = 1100; i < COUNT; i++) {
        doppel_status failed = doppel_index_add(index, &prints[i], i, i % 5);
        status = status ? status : failed;
        if (failed)
            add_again(index, i);
    }
    *result = content(index);
    doppel_index_free(index);
    return status;
}

static doppel_status add_many(doppel_index *index) {
    return doppel_index_add_batch(index, prints, NULL, NULL, 2000);
}

static doppel_status insert_many(uint64_t *result) {
    return try_change(64, BEFORE, add_many, result);
}

static doppel_status insert_many_wide(uint64_t *result) {
    return try_change(128, BEFORE, add_many, result);
}

static doppel_status add_with_times(doppel_index *index) {
    return doppel_index_add_batch(index, prints + 1000, NULL, prints, 2000);
}

static doppel_status insert_many_with_times(uint64_t *result) {
    return try_change(64, BEFORE, add_with_times, result);
}

/* The first entry lies in a run. */
static doppel_status give_time(doppel_index *index) {
    return doppel_index_add(index, prints, 0, 77);
}

static doppel_status insert_again(uint64_t *result) {
    return try_change(64, BEFORE, give_time, result);
}

static doppel_status take_first(doppel_index *index) {
    bool removed = false;
    doppel_status status = doppel_index_remove(index, prints, 0, &removed);
    assert_true(status || removed);
    return status;
}

static doppel_status remove_entry(uint64_t *result) {
    return try_change(64, BEFORE, take_first, result);
}

/* What has expired goes at once or in two goes: nobody can tell. */
static doppel_status purge(uint64_t *result) {
    timed_run = true;
    doppel_index *index = make_index(64, BEFORE, 0);
    timed_run = false;
    doppel_status status = doppel_index_expire(index, BEFORE / 4 * 3, NULL);
    content(index); /* is valid */
    if (status) {
        int kinds = pause_faults();
        assert_int_equal(doppel_index_expire(index, BEFORE / 4 * 3, NULL), DOPPEL_OK);
        resume_faults(kinds);
    }
    *result = content(index);
    doppel_index_free(index);
    return status;
}

static doppel_status compact_all(doppel_index *index) {
    doppel_error error = {0};
    doppel_status status = doppel_index_compact(index, &error);
    assert_true(!status || error.message[0]);
    return status;
}

static doppel_status compact(uint64_t *result) {
    return try_change(64, BEFORE, compact_all, result);
}

static doppel_status compact_wide(uint64_t *result) {
    return try_change(128, WIDE, compact_all, result);
}

static doppel_index *merged_from; /* has a secret and owners of its own */

static doppel_status merge_other(doppel_index *index) {
    doppel_error error = {0};
    doppel_status status = doppel_index_merge(index, merged_from, &error);
    assert_true(!status || error.message[0]);
    return status;
}

static doppel_status merge(uint64_t *result) {
    merged_from = make_index(64, WIDE, 10000);
    doppel_status status = try_change(64, BEFORE, merge_other, result);
    doppel_index_free(merged_from);
    return status;
}

/* ---- looking ---- */

static doppel_status find_with(const doppel_index *index, const doppel_find_options *options, uint64_t *result) {
    doppel_matches found = {0};
    doppel_status status = DOPPEL_OK;
    for (int k = 0; k <= 24 && !status; k += 3) {
        doppel_error error = {0};
        status = doppel_index_find(index, &prints[4 * (size_t)k], k, options, &found, &error);
        assert_true(!status || error.message[0]);
        *result = mixed(*result, found.count);
        if (!status && !options)
            *result = mixed(*result, found.count ? found.match[found.count - 1].owner : 0);
    }
    doppel_matches_free(&found);
    return status;
}

static doppel_status find_wide(const doppel_index *index, uint64_t *result) {
    const doppel_find_options limited = {.size = sizeof limited, .limit = 2};
    const doppel_find_options counted = {.size = sizeof counted, .count_only = true};
    doppel_status status = find_with(index, NULL, result);
    if (!status)
        status = find_with(index, &limited, result);
    return status ? status : find_with(index, &counted, result);
}

static doppel_status find(uint64_t *result) {
    doppel_index *index = make_index(64, WIDE, 0);
    doppel_status status = find_wide(index, result);
    if (status) { /* finds again what there is */
        int kinds = pause_faults();
        uint64_t again = 0, once_more = 0;
        assert_int_equal(find_wide(index, &again), DOPPEL_OK);
        assert_int_equal(find_wide(index, &once_more), DOPPEL_OK);
        assert_int_equal(again, once_more);
        resume_faults(kinds);
    }
    doppel_index_free(index);
    return status;
}

/* ---- files ---- */

static char folder[] = "/tmp/doppel-test.XXXXXX";
static char path[60];

static size_t files_there(void) {
    DIR *open_folder = opendir(folder);
    size_t count = 0;
    assert_non_null(open_folder);
    for (struct dirent *entry; (entry = readdir(open_folder));)
        count += entry->d_name[0] != '.';
    closedir(open_folder);
    return count;
}

static uint64_t content_of_file(void) {
    doppel_index *index;
    assert_int_equal(doppel_index_open(path, &index, NULL), DOPPEL_OK);
    uint64_t found = content(index);
    doppel_index_free(index);
    return found;
}

/* The old file stays as it is until the new one is whole. */
static doppel_status save(uint64_t *result) {
    doppel_index *old = make_index(64, 100, 0), *index = make_index(64, WIDE, 0);
    int kinds = pause_faults();
    uint64_t before = content(old), after = content(index);
    assert_int_equal(doppel_index_save(old, path, NULL), DOPPEL_OK);
    resume_faults(kinds);
    doppel_error error = {0};
    doppel_status status = doppel_index_save(index, path, &error);
    assert_true(!status || error.message[0]);
    kinds = pause_faults();
    assert_int_equal(files_there(), 1);
    uint64_t now = content_of_file();
    assert_true(now == after || (status && now == before));
    unlink(path);
    resume_faults(kinds);
    *result = after;
    doppel_index_free(old);
    doppel_index_free(index);
    return status;
}

/* Opened, looked at and changed: what is read is checked at first touch. */
static doppel_status use_file(uint64_t *result) {
    doppel_index *index = NULL;
    doppel_error error = {0};
    doppel_status status = doppel_index_open(path, &index, &error);
    assert_true(!status || error.message[0]);
    if (status)
        return status;
    status = find_wide(index, result);
    if (!status)
        status = doppel_index_add(index, &prints[COUNT], 5, 9);
    if (!status)
        status = doppel_index_remove(index, &prints[0], 0, NULL);
    if (!status)
        status = doppel_index_compact(index, NULL);
    if (!status)
        *result = mixed(*result, content(index));
    doppel_index_free(index);
    return status;
}

static doppel_status open_saved(uint64_t *result) {
    int kinds = pause_faults();
    doppel_index *index = make_index(64, WIDE, 0);
    assert_int_equal(doppel_index_save(index, path, NULL), DOPPEL_OK);
    doppel_index_free(index);
    resume_faults(kinds);
    doppel_status status = use_file(result);
    kinds = pause_faults();
    unlink(path);
    resume_faults(kinds);
    return status;
}

/* ---- joins ---- */

typedef struct join_case {
    const uint64_t *prints;
    int bits, threads, distance;
    size_t count;
    bool from_callback, all;
    uint64_t memory;
} join_case;

static join_case joined;

static doppel_status count_pairs(const doppel_pair *pairs, size_t count, void *user) {
    uint64_t *sum = user;
    for (size_t i = 0; i < count; i++)
        *sum = mixed(mixed(*sum, pairs[i].a), pairs[i].b + (uint64_t)pairs[i].distance);
    return DOPPEL_OK;
}

static doppel_status read_prints(void *user, uint64_t *to, size_t room, size_t *count) {
    size_t *at = user, words = joined.bits > 64 ? 2 : 1, left = joined.count - *at;
    *count = room < left ? room : left;
    memcpy(to, joined.prints + *at * words, *count * words * sizeof *to);
    *at += *count;
    return DOPPEL_OK;
}

static doppel_join_options join_options(uint64_t *sum) {
    return (doppel_join_options){.size = sizeof(doppel_join_options),
                                 .bits = joined.bits,
                                 .threads = joined.threads,
                                 .memory = joined.memory,
                                 .tmp = folder,
                                 .all = joined.all,
                                 .pairs = count_pairs,
                                 .user = sum,
                                 .secret = 1};
}

/* Of what a callback gives, or of an array. */
static doppel_source join_source(size_t *at) {
    doppel_source source = {.size = sizeof source};
    *at = 0;
    if (joined.from_callback) {
        source.read = read_prints;
        source.user = at;
    } else {
        source.array = joined.prints;
        source.count = joined.count;
    }
    return source;
}

static doppel_status join(uint64_t *result) {
    size_t at;
    doppel_source source = join_source(&at);
    doppel_join_options options = join_options(result);
    doppel_error error = {0};
    doppel_join_counts counts = {0};
    doppel_status status = doppel_join(&source, joined.distance, &options, &counts, &error);
    assert_true(!status || error.message[0]);
    assert_true(status || !joined.memory || counts.spilled_bytes);
    return status;
}

static doppel_status join_two(uint64_t *result) {
    size_t at;
    doppel_source held = {.size = sizeof held, .array = prints + COUNT, .count = 500}, source = join_source(&at);
    doppel_join_options options = join_options(result);
    doppel_error error = {0};
    doppel_status status = doppel_join_sets(&held, &source, joined.distance, &options, NULL, &error);
    assert_true(!status || error.message[0]);
    return status;
}

static doppel_status rotate(uint64_t *result) {
    size_t at;
    doppel_source source = join_source(&at);
    doppel_join_options options = join_options(result);
    doppel_rotation rotation = {.size = sizeof rotation, .count = 4};
    doppel_error error = {0};
    double recall = 0;
    doppel_status status = doppel_join_rotate(&source, joined.distance, &rotation, &options, &recall, NULL, &error);
    assert_true(!status || error.message[0]);
    return status;
}

/* ---- the tests ---- */

/* The number the next file would get. */
static int next_descriptor(void) {
    int next = dup(0);
    close(next);
    return next;
}

/* No file stays open, and none stays. */
static void without(int kinds, scenario run, doppel_status expected) {
    int next = next_descriptor();
    for (int go_on = 0; go_on < 2; go_on++)
        run_with(run, (fault_plan){kinds, go_on, expected, .may_pass = true, .sparse = true});
    assert_int_equal(next_descriptor(), next);
    assert_int_equal(files_there(), 0);
}

static void without_memory(scenario run) {
    without(MEMORY, run, DOPPEL_ERROR_MEMORY);
}

static void inserts(void **state) {
    (void)state;
    without_memory(create_and_free);
    without_memory(insert_one_by_one);
    without_memory(insert_into_levels);
    without(THREADS, insert_into_levels, DOPPEL_OK);
    without_memory(insert_many);
    without_memory(insert_many_wide);
    without_memory(insert_many_with_times);
    without_memory(insert_again);
}

static void removals(void **state) {
    (void)state;
    without_memory(remove_entry);
    without_memory(purge);
}

static void merges(void **state) {
    (void)state;
    without_memory(compact);
    without_memory(compact_wide);
    without_memory(merge);
}

static void finds(void **state) {
    (void)state;
    without_memory(find);
}

static void saved_indexes(void **state) {
    (void)state;
    without_memory(save);
    without_memory(open_saved);
    without(SYSTEM, save, DOPPEL_ERROR_IO);
    without(SYSTEM, open_saved, DOPPEL_ERROR_IO);
    without(FILES, save, DOPPEL_ERROR_IO);
    without(FILES, open_saved, DOPPEL_ERROR_IO);
}

static void check_joins(void) {
    without_memory(join);
    without(SYSTEM | FILES, join, DOPPEL_ERROR_IO);
    without(THREADS, join, DOPPEL_ERROR_MEMORY);
    without_memory(join_two);
    without(SYSTEM | FILES, join_two, DOPPEL_ERROR_IO);
    without(THREADS, join_two, DOPPEL_ERROR_MEMORY);
    without_memory(rotate);
    without(SYSTEM | FILES, rotate, DOPPEL_ERROR_IO);
}

static void joins_by_one_thread(void **state) {
    (void)state;
    joined = (join_case){.prints = prints, .bits = 64, .threads = 1, .distance = 3, .count = COUNT};
    check_joins();
}

static void joins_by_three_threads(void **state) {
    (void)state;
    joined = (join_case){.prints = prints, .bits = 64, .threads = 3, .distance = 3, .count = 2 * COUNT};
    joined.from_callback = true;
    check_joins();
}

static void joins_at_wide_distances(void **state) {
    (void)state;
    joined = (join_case){.prints = prints, .bits = 128, .threads = 2, .distance = 20, .count = 1000};
    joined.from_callback = true;
    check_joins();
}

/* What the message asks for when there is too little. */
static uint64_t least_memory(void) {
    const doppel_source source = {.size = sizeof source, .array = joined.prints, .count = joined.count};
    uint64_t sum;
    doppel_join_options options = join_options(&sum);
    doppel_error error = {0};
    options.memory = 1;
    assert_int_equal(doppel_join(&source, joined.distance, &options, NULL, &error), DOPPEL_ERROR_USAGE);
    return strtoull(strpbrk(error.message, "0123456789"), NULL, 10) << 20;
}

/* So many pairs that they are written to files. */
static void joins_with_little_memory(void **state) {
    (void)state;
    static uint64_t equal[800];
    joined = (join_case){.prints = equal, .bits = 64, .threads = 2, .distance = 1, .count = 800, .all = true};
    joined.memory = least_memory();
    without_memory(join);
    without(SYSTEM | FILES, join, DOPPEL_ERROR_IO);
}

static int setup(void **state) {
    (void)state;
    fill_prints();
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/index", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inserts),
        cmocka_unit_test(removals),
        cmocka_unit_test(merges),
        cmocka_unit_test(finds),
        cmocka_unit_test(saved_indexes),
        cmocka_unit_test(joins_by_one_thread),
        cmocka_unit_test(joins_by_three_threads),
        cmocka_unit_test(joins_at_wide_distances),
        cmocka_unit_test(joins_with_little_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

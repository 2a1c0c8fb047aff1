/* test_batch_against.c - batches against index folders: what is found there and by which evidence, which settings are
 * incompatible, and that a batch and the engine come to the same answer. */
#include "batches.h"
#include "work_folder.h"

#include "against.h"

#include <unistd.h>

static const doppel_engine_options by_distance = {.near = DOPPEL_NEAR_DISTANCE};
static const doppel_engine_options by_similarity = {.near = DOPPEL_NEAR_SIMILARITY, .title_veto = DOPPEL_SWITCH_OFF};
static const doppel_engine_options without_titles = {.titles = DOPPEL_SWITCH_OFF};

/* ---- documents ---- */

/* A text of 200 words, of which some are others. */
static const char *text_of(uint64_t seed, size_t changed) {
    static dp_buffer text;
    char *word;
    text.size = 0;
    add_words(&text, &seed, 200);
    assert_true(dp_buffer_add(&text, "", 1));
    word = text.data;
    for (size_t i = 0; i < changed; i++, word = strchr(word + 150, ' '))
        *strchr(word, 'w') = 'x';
    return text.data;
}

#define TITLE "The harbour bridge is open to traffic"

/* Three documents that are known, and nine that are not: five of them by one kind of evidence each, one by none, and
 * two that are near each other. */
static void save_documents(void) {
    dp_buffer old = {0}, new = {0};
    add_record(&old, "o1", text_of(1, 0), ",\"url\":\"http://www.example.com/a?utm_source=x\",\"title\":\"" TITLE "\"");
    add_record(&old, "o2", text_of(2, 0), "");
    add_record(&old, "o3", text_of(3, 0), "");
    save_records(&old, "old.jsonl");
    add_record(&new, "url", text_of(4, 0), ",\"url\":\"https://example.com/a\"");
    add_record(&new, "same", text_of(2, 0), "");
    add_record(&new, "near", text_of(3, 1), "");
    add_record(&new, "nearer", text_of(3, 4), "");
    add_record(&new, "title", text_of(5, 0), ",\"title\":\"" TITLE "?!\"");
    add_record(&new, "other", text_of(6, 0), ",\"url\":\"https://example.com/b\",\"title\":\"Ferries still run\"");
    add_record(&new, "copy", text_of(6, 2), "");
    add_record(&new, "few", "two words", "");
    add_record(&new, "empty", "", "");
    save_records(&new, "new.jsonl");
}

/* ---- batches ---- */

static doppel_batch *read_against(doppel_batch_options options, const char *index) {
    const char *paths[] = {index, "new.jsonl"};
    return read_batch(options, paths, 2, 1);
}

/* Ids, originals, reasons, and whether they were verified: what is removed, a line each. */
static dp_buffer removed_lines(const doppel_batch *batch) {
    dp_buffer lines = {0};
    for (uint64_t i = 0; i < doppel_batch_count(batch); i++) {
        doppel_near near;
        doppel_batch_get(batch, i, &near);
        if (near.a == i)
            continue;
        add_id(&lines, batch, i);
        assert_true(dp_buffer_add(&lines, " ", 1));
        add_id(&lines, batch, near.a);
        assert_true(dp_buffer_printf(&lines, " %s%s%s\n", doppel_reason_name(near.reason),
                                     isnan(near.similarity) ? " ?" : "", near.verified ? "" : " unverified"));
    }
    assert_true(dp_buffer_add(&lines, "", 1));
    return lines;
}

static void check_against(doppel_batch_options options, const char *index, const char *expected) {
    doppel_batch *batch = read_against(options, index);
    decide(batch);
    dp_buffer lines = removed_lines(batch);
    assert_string_equal(lines.data, expected);
    dp_buffer_free(&lines);
    doppel_batch_free(batch);
}

/* ---- what is found ---- */

static void each_kind_of_evidence_counts(void **state) {
    (void)state;
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    check_against((doppel_batch_options){.by = 7}, "index",
                  "url o1 exact_url\nsame o2 content_hash\nnear o3 content_hash\nnearer o3 content_hash\n"
                  "title o1 title_similarity\ncopy other content_hash\n");
}

static void only_what_is_asked_for_counts(void **state) {
    (void)state;
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    check_against((doppel_batch_options){0}, "index",
                  "same o2 content_hash\nnear o3 content_hash\nnearer o3 content_hash\ncopy other content_hash\n");
    check_against((doppel_batch_options){.by = DOPPEL_BY_URL}, "index", "url o1 exact_url ?\n");
    check_against((doppel_batch_options){.by = DOPPEL_BY_TITLE}, "index", "title o1 title_similarity\n");
    check_against((doppel_batch_options){.method = DOPPEL_METHOD_EXACT}, "index", "same o2 content_hash\n");
    check_against((doppel_batch_options){.similarity = 0.97}, "index", "same o2 content_hash\nnear o3 content_hash\n");
}

static void by_distance_nothing_is_verified_but_the_words(void **state) {
    (void)state;
    save_documents();
    make_index("index", by_distance, "old.jsonl");
    check_against((doppel_batch_options){.by = 7}, "index",
                  "url o1 exact_url ? unverified\nsame o2 content_hash\nnear o3 content_hash ? unverified\n"
                  "title o1 title_similarity unverified\ncopy other content_hash\n");
    check_against((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH, .distance_zero = true}, "index",
                  "same o2 content_hash\n");
}

/* A document that is not near enough for the batch may have the title of one that is. */
static void what_is_not_near_enough_may_have_the_title(void **state) {
    (void)state;
    dp_buffer old = {0}, new = {0};
    add_record(&old, "o1", text_of(1, 0), "");
    add_record(&old, "o2", text_of(2, 0), ",\"title\":\"" TITLE "\"");
    save_records(&old, "old.jsonl");
    add_record(&new, "n", text_of(1, 4), ",\"title\":\"" TITLE "\"");
    save_records(&new, "new.jsonl");
    make_index("index", by_similarity, "old.jsonl");
    check_against((doppel_batch_options){.by = 5}, "index", "n o1 content_hash\n");
    check_against((doppel_batch_options){.by = 5, .similarity = 0.97}, "index", "n o2 title_similarity\n");
}

/* An index with a veto has it here, too, as far as contents are compared. */
static void unlike_contents_outweigh_a_title(void **state) {
    (void)state;
    dp_buffer old = {0}, new = {0};
    add_record(&old, "o1", text_of(1, 0), "");
    add_record(&old, "o2", text_of(2, 0), ",\"title\":\"" TITLE "\"");
    save_records(&old, "old.jsonl");
    add_record(&new, "n", text_of(1, 4), ",\"title\":\"" TITLE "\"");
    add_record(&new, "m", text_of(4, 0), ",\"title\":\"" TITLE "\"");
    save_records(&new, "new.jsonl");
    make_index("index", (doppel_engine_options){.title_veto = DOPPEL_SWITCH_ON}, "old.jsonl");
    check_against((doppel_batch_options){.by = DOPPEL_BY_CONTENT}, "index", "n o1 content_hash\n");
    check_against((doppel_batch_options){.by = DOPPEL_BY_TITLE}, "index",
                  "n o2 title_similarity\nm o2 title_similarity\n");
    check_against((doppel_batch_options){.by = 5}, "index", "n o1 content_hash\n");
    check_against((doppel_batch_options){.by = 5, .similarity = 0.97}, "index", "m n title_similarity\n");
}

static void figures_count_what_the_index_has(void **state) {
    (void)state;
    doppel_batch_stats stats;
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    doppel_batch *batch = read_against((doppel_batch_options){.by = 7}, "index");
    decide(batch);
    doppel_batch_get_stats(batch, &stats);
    assert_int_equal(stats.documents, 9);
    assert_int_equal(stats.known, 0);
    assert_int_equal(stats.in_index, 5);
    assert_int_equal(stats.kept, 3);
    assert_int_equal(stats.groups, 4);
    doppel_batch_reading reading;
    assert_true(doppel_batch_get_reading(batch, 0, &reading));
    assert_int_equal(reading.indexes, 1);
    doppel_batch_free(batch);
}

/* Ids and URLs that no index takes are not found, and do no harm. */
static void names_that_are_too_long_are_not_found(void **state) {
    (void)state;
    dp_buffer new = {0}, url = {0};
    for (int i = 0; i < 7000; i++)
        assert_true(dp_buffer_printf(&url, "0123456789"));
    assert_true(dp_buffer_add(&url, "", 1));
    assert_true(dp_buffer_printf(&new, "{\"id\":\"%s\",\"url\":\"http://a.com/%s\",\"title\":\"%s\",\"text\":\"\"}\n",
                                 url.data, url.data, url.data));
    save_documents();
    save_records(&new, "new.jsonl");
    make_index("index", by_similarity, "old.jsonl");
    check_against((doppel_batch_options){.by = 7}, "index", "");
    dp_buffer_free(&url);
}

/* ---- the engine and the batch agree ---- */

static void note_verdict(const doppel_verdict *verdict, void *user) {
    dp_buffer *lines = user;
    if (!verdict->is_duplicate)
        return;
    assert_true(dp_buffer_printf(lines, "%.*s %.*s %s %.4f\n", (int)verdict->id.length, verdict->id.data,
                                 (int)verdict->original_id.length, verdict->original_id.data,
                                 doppel_reason_name(verdict->reason), verdict->evidence.similarity));
}

/* Texts of one family are edited again and again, so that there are pairs of every similarity, and chains. */
static void save_families(const char *path, uint64_t seed) {
    dp_buffer file = {0}, text = {0};
    for (size_t i = 0; i < 400; i++) {
        char id[32];
        if (!text.size || random_below(&seed, 8) == 0) {
            text.size = 0;
            add_words(&text, &seed, 3 + random_below(&seed, 120));
            assert_true(dp_buffer_add(&text, "", 1));
        }
        for (size_t edits = random_below(&seed, 4); edits; edits--) {
            char *at = &text.data[random_below(&seed, text.size - 1)];
            *at = *at == ' ' ? ' ' : (char)('a' + random_below(&seed, 26));
        }
        snprintf(id, sizeof id, "d%zu", i);
        add_record(&file, id, text.data, "");
    }
    save_records(&file, path);
    dp_buffer_free(&text);
}

static void one_by_one_the_same_documents_stay(void **state) {
    (void)state;
    static const double similarities[] = {0.5, 0.8, 0.95};
    for (uint64_t seed = 1; seed <= 6; seed++) {
        dp_buffer lines = {0};
        adding a = {.verdict_of = note_verdict, .user = &lines};
        doppel_engine_options engine = without_titles;
        doppel_batch_options batch = {.similarity = similarities[seed % 3], .keep = "first"};
        engine.similarity = batch.similarity;
        save_families("families.jsonl", seed);
        add_one_by_one(NULL, engine, "families.jsonl", &a);
        assert_true(dp_buffer_add(&lines, "", 1));
        assert_true(lines.size > 1000);
        check_decisions(batch, "families.jsonl", lines.data);
        dp_buffer_free(&lines);
    }
}

/* doppel_batch_write */
static doppel_status take_kept(doppel_slice record, const doppel_near *near, void *user) {
    bool taken =
        near->a != near->b || (dp_buffer_add(user, record.data, record.length) && dp_buffer_add(user, "\n", 1));
    return taken ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The records of new.jsonl that stay against `known`. */
static dp_buffer kept_records(const char *known, int threads) {
    const char *paths[] = {known, "new.jsonl"};
    doppel_input_options input = {.size = sizeof input, .threads = threads};
    dp_buffer kept = {0};
    doppel_batch *batch = read_batch((doppel_batch_options){.input = &input}, paths, 2, 1);
    decide(batch);
    assert_int_equal(doppel_batch_write(batch, take_kept, &kept, NULL), DOPPEL_OK);
    assert_true(dp_buffer_add(&kept, "", 1));
    doppel_batch_free(batch);
    return kept;
}

/* An index stands for the documents it was made of, whatever the threads. */
static void an_index_is_like_its_documents(void **state) {
    (void)state;
    spit("none.jsonl", "", 0);
    save_families("new.jsonl", 1);
    dp_buffer old = kept_records("none.jsonl", 2);
    old.size--;
    save_records(&old, "old.jsonl");
    dp_buffer new = slurp("new.jsonl"), more;
    save_families("new.jsonl", 2);
    more = slurp("new.jsonl");
    assert_true(dp_buffer_add(&new, more.data, more.size));
    save_records(&new, "new.jsonl");
    make_index("index", without_titles, "old.jsonl");
    dp_buffer expected = kept_records("old.jsonl", 2);
    for (int threads = 1; threads < 6; threads += 2) {
        dp_buffer kept = kept_records("index", threads);
        assert_string_equal(kept.data, expected.data);
        dp_buffer_free(&kept);
    }
    dp_buffer_free(&expected);
    dp_buffer_free(&more);
}

/* ---- what is kept of a run ---- */

static dp_buffer run(bool resume) {
    doppel_batch *batch = read_against((doppel_batch_options){.by = 7, .work = "work", .resume = resume}, "index");
    decide(batch);
    dp_buffer lines = removed_lines(batch);
    doppel_batch_free(batch);
    return lines;
}

static doppel_status try_to_go_on(doppel_error *error) {
    const char *paths[] = {"index", "new.jsonl"};
    doppel_batch *batch = NULL;
    doppel_batch_options options = {.size = sizeof options, .by = 7, .work = "work", .resume = true};
    assert_int_equal(doppel_batch_create(&options, &batch, error), DOPPEL_OK);
    doppel_status status = doppel_batch_read(batch, paths, 1, true, NULL, error);
    if (status == DOPPEL_OK)
        status = doppel_batch_read(batch, paths + 1, 1, false, NULL, error);
    doppel_batch_free(batch);
    return status;
}

/* What was found stands in the journal: a finished run needs the index no more, a stopped one does. */
static void a_run_goes_on(void **state) {
    (void)state;
    doppel_error error = {0};
    struct stat known;
    doppel_batch *batch = NULL;
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    dp_buffer whole = run(false);
    assert_int_equal(stat("work/sketches", &known), 0);
    for (off_t cut = 0; cut <= known.st_size; cut += 331) {
        assert_int_equal(truncate("work/sketches", cut), 0);
        dp_buffer again = run(true);
        assert_string_equal(again.data, whole.data);
        dp_buffer_free(&again);
    }
    assert_int_equal(rename("index", "gone"), 0);
    assert_int_equal(try_to_go_on(&error), DOPPEL_OK);
    assert_int_equal(doppel_batch_open("work", NULL, &batch, &error), DOPPEL_OK);
    decide(batch);
    dp_buffer opened = removed_lines(batch);
    assert_string_equal(opened.data, whole.data);
    doppel_batch_free(batch);
    assert_int_equal(truncate("work/sketches", known.st_size / 2), 0);
    assert_int_equal(try_to_go_on(&error), DOPPEL_ERROR_STORE);
    assert_non_null(strstr(error.message, "no longer exists"));
    dp_buffer_free(&opened);
    dp_buffer_free(&whole);
}

/* Saved sketches are of all documents, those too that the index had. */
static void saved_sketches_have_all_documents(void **state) {
    (void)state;
    const char *paths[] = {"sketches", "new.jsonl"};
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    doppel_batch *batch = read_against((doppel_batch_options){0}, "index");
    assert_int_equal(doppel_batch_save(batch, "sketches", NULL), DOPPEL_OK);
    doppel_batch_free(batch);
    dp_buffer more = {0};
    add_record(&more, "n1", text_of(2, 1), "");
    add_record(&more, "n2", text_of(3, 3), "");
    save_records(&more, "new.jsonl");
    batch = read_batch((doppel_batch_options){0}, paths, 2, 1);
    decide(batch);
    dp_buffer lines = removed_lines(batch);
    assert_string_equal(lines.data, "n1 same content_hash\nn2 nearer content_hash\n");
    dp_buffer_free(&lines);
    doppel_batch_free(batch);
}

/* ---- what does not go together, or is damaged ---- */

static void check_refused(doppel_batch_options options, const char *index, const char *because) {
    doppel_batch *batch = NULL;
    doppel_error error = {0};
    options.size = sizeof options;
    assert_int_equal(doppel_batch_create(&options, &batch, &error), DOPPEL_OK);
    assert_int_not_equal(doppel_batch_read(batch, &index, 1, true, NULL, &error), DOPPEL_OK);
    if (!strstr(error.message, because) || !strstr(error.file, index))
        fail_msg("%s: %s", error.file, error.message);
    doppel_batch_free(batch);
}

static void what_does_not_go_together_is_refused(void **state) {
    (void)state;
    doppel_recipe *article;
    assert_int_equal(doppel_recipe_parse("article", NULL, &article, NULL), DOPPEL_OK);
    save_documents();
    make_index("similarity", without_titles, "old.jsonl");
    make_index("distance", by_distance, "old.jsonl");
    make_index("titles", (doppel_engine_options){.title_similarity = 0.95}, "old.jsonl");
    check_refused((doppel_batch_options){.similarity = 0.7}, "similarity", "at least 0.8, and this run asks for 0.7");
    check_refused((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH}, "similarity", "not by distance");
    check_refused((doppel_batch_options){.method = DOPPEL_METHOD_SIMHASH, .distance = 4}, "distance",
                  "up to 3, and this run asks for 4");
    check_refused((doppel_batch_options){.min_words = 4}, "distance", "min_words 5, and this run has 4");
    check_refused((doppel_batch_options){.by = DOPPEL_BY_TITLE}, "similarity", "does not compare titles");
    check_refused((doppel_batch_options){.by = DOPPEL_BY_TITLE}, "titles", "title_similarity 0.95");
    check_refused((doppel_batch_options){.by = DOPPEL_BY_URL, .url_without = 1}, "distance", "URL rules");
    check_refused((doppel_batch_options){.content = DOPPEL_CONTENT_ALL}, "distance", "content main of pages");
    check_refused((doppel_batch_options){.recipe = article}, "distance", "cannot be used with recipe");
    check_refused((doppel_batch_options){.within = "host"}, "distance", "within cannot be combined");
    check_refused((doppel_batch_options){.across = "host"}, "distance", "across cannot be combined");
    check_refused((doppel_batch_options){.link_any = true}, "distance", "link any");
    check_refused((doppel_batch_options){.boilerplate = 0.1}, "similarity", "boilerplate cannot be combined");
    spit("distance/doppel.index", "something", 9);
    check_refused((doppel_batch_options){0}, "distance", "");
    doppel_recipe_free(article);
}

static void what_is_damaged_is_refused(void **state) {
    (void)state;
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    dp_buffer file = slurp("index/documents-1.mdb");
    char *at = memmem(file.data, file.size, "http://www.example.com/a", 24);
    assert_non_null(at);
    *at = 'x';
    spit("index/documents-1.mdb", file.data, file.size);
    dp_buffer_free(&file);
    const doppel_batch_options options = {.size = sizeof options, .by = DOPPEL_BY_URL};
    const char *paths[] = {"index", "new.jsonl"};
    doppel_batch *batch;
    doppel_error error = {0};
    assert_int_equal(doppel_batch_create(&options, &batch, &error), DOPPEL_OK);
    assert_int_equal(doppel_batch_read(batch, paths, 1, true, NULL, &error), DOPPEL_OK);
    assert_int_equal(doppel_batch_read(batch, paths + 1, 1, false, NULL, &error), DOPPEL_ERROR_STORE);
    assert_string_equal(error.file, "index");
    assert_non_null(strstr(error.message, "doppel verify --index index"));
    doppel_batch_free(batch);
}

static doppel_status no_pairs(const doppel_near *pairs, size_t count, void *user) {
    (void)pairs, (void)count, (void)user;
    return DOPPEL_OK;
}

static void pairs_are_refused(void **state) {
    (void)state;
    doppel_error error = {0};
    save_documents();
    make_index("index", by_similarity, "old.jsonl");
    doppel_batch *batch = read_against((doppel_batch_options){0}, "index");
    assert_int_equal(doppel_batch_find_pairs(batch, false, no_pairs, NULL, &error), DOPPEL_ERROR_USAGE);
    assert_non_null(strstr(error.message, "not all pairs"));
    doppel_batch_free(batch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(each_kind_of_evidence_counts),
        TEST(only_what_is_asked_for_counts),
        TEST(by_distance_nothing_is_verified_but_the_words),
        TEST(what_is_not_near_enough_may_have_the_title),
        TEST(unlike_contents_outweigh_a_title),
        TEST(figures_count_what_the_index_has),
        TEST(names_that_are_too_long_are_not_found),
        TEST(one_by_one_the_same_documents_stay),
        TEST(an_index_is_like_its_documents),
        TEST(a_run_goes_on),
        TEST(saved_sketches_have_all_documents),
        TEST(what_does_not_go_together_is_refused),
        TEST(what_is_damaged_is_refused),
        TEST(pairs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

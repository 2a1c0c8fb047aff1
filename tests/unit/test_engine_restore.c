/* test_engine_restore.c - what one engine remembers, put back into another: it is there as it was, and decides alike.
 */
#include "engine_places.h"

/* An engine that links, at a time that is so. */
static doppel_engine *open_linking(void **state, const char *name) {
    const doppel_engine_options options = {.on_duplicate = DOPPEL_DUPLICATE_LINK, .title_veto = DOPPEL_SWITCH_OFF};
    return open_at(state, name, options);
}

static doppel_item titled(const char *id, const char *title, const char *text) {
    doppel_item item = item_of(id, NULL, text);
    item.document.title.data = title;
    item.document.title.length = title ? strlen(title) : 0;
    return item;
}

static doppel_verdict add(doppel_engine *engine, const doppel_item *item) {
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    assert_int_equal(doppel_engine_add(engine, item, &verdict, &error), DOPPEL_OK);
    return verdict;
}

static void add_text(doppel_engine *engine, const char *id, const char *title, const char *text) {
    doppel_item item = titled(id, title, text);
    doppel_verdict verdict = add(engine, &item);
    doppel_verdict_free(&verdict);
}

/* For doppel_engine_each: `user` is the engine that gets it. */
static bool put_back(const doppel_stored *stored, void *user) {
    doppel_item item = {.size = sizeof item, .restore = stored, .words = stored->words};
    item.document = (doppel_document){.id.data = stored->id.data, .id.length = stored->id.length, .text.data = ""};
    item.document.title.data = stored->title.data;
    item.document.title.length = stored->title.length;
    item.fingerprint = stored->fingerprint;
    item.digest = stored->digest;
    item.set = stored->set;
    item.set_count = stored->set_count;
    doppel_verdict verdict = add(user, &item);
    assert_int_equal(verdict.is_duplicate, stored->original_id.data != NULL);
    doppel_verdict_free(&verdict);
    return true;
}

static void copy_all(doppel_engine *from, doppel_engine *to) {
    doppel_error error = {0};
    assert_int_equal(doppel_engine_each(from, put_back, to, NULL, &error), DOPPEL_OK);
}

#define THEN 1700000000
#define TEXT "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"

static void it_is_there_as_it_was(void **state) {
    now = THEN + 1000;
    doppel_engine *old = open_linking(state, "old");
    doppel_stored_list list = {0};
    doppel_error error = {0};
    add_text(old, "a", "A title that counts", TEXT);
    now = THEN + 2000;
    add_text(old, "b", "Another title", TEXT);
    add_text(old, "c", "A title that count", "quite other words under a title that is alike");
    now = THEN + 9000;
    doppel_engine *new = open_linking(state, "new");
    copy_all(old, new);
    assert_int_equal(doppel_engine_get(new, doppel_slice_of("a"), &list, &error), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.stored[0].added, THEN + 1000);
    assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_CONTENT], 1);
    assert_int_equal(list.stored[0].duplicates_by[DOPPEL_REASON_TITLE], 1);
    assert_int_equal(list.stored[0].last_duplicate, THEN + 2000);
    doppel_stored_list_free(&list);
    assert_int_equal(doppel_engine_get(new, doppel_slice_of("c"), &list, &error), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_memory_equal(list.stored[0].original_id.data, "a", 1);
    assert_int_equal(list.stored[0].reason, DOPPEL_REASON_TITLE);
    assert_true(fabs(list.stored[0].evidence.title_similarity - 18.0 / 19) < 1e-9);
    doppel_stored_list_free(&list);
    doppel_engine_close(old);
    doppel_engine_close(new);
}

static void nothing_is_decided_anew(void **state) {
    doppel_engine *engine = open_linking(state, "index");
    doppel_stored stored = {.added = THEN};
    doppel_item first = titled("a", NULL, TEXT), second = titled("b", NULL, TEXT);
    doppel_verdict verdict = add(engine, &first);
    doppel_verdict_free(&verdict);
    second.restore = &stored;
    verdict = add(engine, &second);
    assert_false(verdict.is_duplicate);
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

static void a_copy_needs_its_original(void **state) {
    doppel_engine *engine = open_linking(state, "index");
    doppel_stored stored = {.added = THEN, .original_id = {"a", 1}, .reason = DOPPEL_REASON_CONTENT};
    doppel_item item = titled("b", NULL, TEXT);
    doppel_verdict verdict = {0};
    doppel_error error = {0};
    item.restore = &stored;
    assert_int_equal(doppel_engine_add(engine, &item, &verdict, &error), DOPPEL_ERROR_INPUT);
    assert_string_equal(error.message, "a copy whose original is not there");
    doppel_verdict_free(&verdict);
    doppel_engine_close(engine);
}

/* In one call, two copies that are refused for different reasons: each has its own message. */
static void refused_copies_say_why_each(void **state) {
    doppel_engine *engine = open_linking(state, "index");
    const doppel_stored lost = {.added = THEN, .original_id = {"nowhere", 7}, .reason = DOPPEL_REASON_CONTENT};
    const doppel_stored odd = {.added = THEN, .original_id = {"a", 1}, .reason = DOPPEL_REASONS};
    doppel_item items[] = {titled("a", NULL, TEXT), titled("b", NULL, TEXT), titled("c", NULL, TEXT)};
    doppel_verdict verdicts[3] = {0};
    doppel_error errors[3], error = {0};
    items[1].restore = &lost;
    items[2].restore = &odd;
    assert_int_equal(doppel_engine_add_batch(engine, items, 3, verdicts, errors, &error), DOPPEL_OK);
    assert_int_equal(errors[0].code, DOPPEL_OK);
    assert_int_equal(errors[1].code, DOPPEL_ERROR_INPUT);
    assert_string_equal(errors[1].message, "a copy whose original is not there");
    assert_int_equal(errors[2].code, DOPPEL_ERROR_INPUT);
    assert_string_equal(errors[2].message, "a copy for a reason that is not known");
    for (int i = 0; i < 3; i++)
        doppel_verdict_free(&verdicts[i]);
    doppel_engine_close(engine);
}

/* Put into an engine that has other documents: an original may be a duplicate there, its copies go with it to the
 * document it is a copy of, and each is counted there once. */
static bool merge(const doppel_stored *stored, void *user) {
    doppel_item item = {.size = sizeof item, .restore = stored, .words = stored->words, .merge = true};
    item.document = (doppel_document){.id.data = stored->id.data, .id.length = stored->id.length, .text.data = ""};
    item.fingerprint = stored->fingerprint;
    item.digest = stored->digest;
    item.set = stored->set;
    item.set_count = stored->set_count;
    doppel_verdict verdict = add(user, &item);
    doppel_verdict_free(&verdict);
    return true;
}

static void expect(doppel_engine *engine, const char *id, const char *original, uint64_t duplicates, uint64_t copies) {
    doppel_stored_list list = {0};
    assert_int_equal(doppel_engine_get(engine, doppel_slice_of(id), &list, NULL), DOPPEL_OK);
    assert_int_equal(list.count, 1);
    assert_int_equal(list.stored[0].original_id.length, strlen(original));
    assert_memory_equal(list.stored[0].original_id.data, original, strlen(original));
    assert_int_equal(list.stored[0].duplicates, duplicates);
    assert_int_equal(list.stored[0].copies, copies);
    doppel_stored_list_free(&list);
}

static void copies_follow_what_is_a_duplicate_there(void **state) {
    doppel_engine *from = open_linking(state, "from"), *to = open_linking(state, "to");
    doppel_error error = {0};
    add_text(from, "a", NULL, TEXT);
    add_text(from, "b", NULL, TEXT);
    add_text(from, "c", NULL, TEXT " seventeen");
    add_text(from, "d", NULL, "quite other words that nobody else has");
    add_text(from, "e", NULL, "quite other words that nobody else has");
    assert_int_equal(doppel_engine_remove(from, doppel_slice_of("e"), NULL, NULL), DOPPEL_OK);
    add_text(to, "x", NULL, TEXT);
    add_text(to, "d", NULL, "quite other words that nobody else has");
    for (int round = 0; round < 2; round++) {
        assert_int_equal(doppel_engine_each(from, merge, to, NULL, &error), DOPPEL_OK);
        expect(to, "x", "", 3, 3);
        expect(to, "c", "x", 0, 0);
        expect(to, "d", "", 0, 0); /* known: nothing is added */
    }
    doppel_engine *third = open_linking(state, "third");
    add_text(third, "y", NULL, "words of a document that is like none of them");
    assert_int_equal(doppel_engine_each(from, merge, third, NULL, &error), DOPPEL_OK);
    expect(third, "a", "", 2, 2);
    expect(third, "d", "", 1, 0);
    doppel_engine_close(from);
    doppel_engine_close(to);
    doppel_engine_close(third);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(it_is_there_as_it_was),
        EVERYWHERE(nothing_is_decided_anew),
        EVERYWHERE(a_copy_needs_its_original),
        EVERYWHERE(refused_copies_say_why_each),
        EVERYWHERE(copies_follow_what_is_a_duplicate_there),
    };
    return run_everywhere("restore", tests, sizeof tests / sizeof *tests);
}

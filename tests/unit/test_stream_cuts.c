/* test_stream_cuts.c - where a batch of the stream is cut (programs/stream/parts.c): whatever makes the index forget
 * begins a new part, and nothing else does. */
#include "support.h"

#include "stream/parts.h"

enum { MOST = 8 };

/* A stream with an index in memory, and a batch of records that are not Kafka's. */
typedef struct line {
    doppel_engine *engine;
    stream_job job;
    stream s;
    batch *b;
    rd_kafka_message_t messages[MOST];
    doppel_document pages[MOST];
} line;

static void start(line *l) {
    const doppel_engine_options options = {.size = sizeof options, .preset = "crawl"};
    *l = (line){0};
    assert_int_equal(doppel_engine_open(NULL, &options, &l->engine, NULL), DOPPEL_OK);
    l->job.engine = l->engine;
    l->job.place = "memory";
    assert_int_equal(doppel_engine_get_needs(NULL, &l->job.needs, NULL), DOPPEL_OK);
    l->s.job = &l->job;
    assert_non_null(l->b = stream_batch_create(MOST));
}

static void end(line *l) {
    l->b->count = 0; /* nothing of it is the batch's own */
    stream_batch_free(l->b);
    doppel_engine_close(l->engine);
}

/* A page; id NULL: it has none. The text stands for a place on the way, too. */
static void add_page(line *l, const char *id, const char *url, const char *words) {
    size_t i = l->b->count++;
    doppel_document *page = &l->pages[i];
    *page = (doppel_document){.text.data = words, .text.length = strlen(words)};
    if (id) {
        page->id.data = id;
        page->id.length = strlen(id);
    }
    if (url) {
        page->url.data = url;
        page->url.length = strlen(url);
    }
    record *r = &l->b->records[i];
    *r = (record){.kind = RECORD_PAGE, .document = page, .item = i, .message = &l->messages[i]};
    snprintf(r->origin, sizeof r->origin, "pages/0/%zu", i);
    l->b->items[i] =
        (doppel_item){.size = sizeof(doppel_item), .document = *page, .origin = {r->origin, strlen(r->origin)}};
}

static void add_tombstone(line *l, const char *key) {
    size_t i = l->b->count++;
    l->messages[i] = (rd_kafka_message_t){.key = (void *)(uintptr_t)key, .key_len = strlen(key)};
    l->b->records[i] = (record){.kind = RECORD_TOMBSTONE, .message = &l->messages[i]};
}

/* Puts a page into the index, as an earlier batch would have. */
static void put(line *l, const char *id, const char *words) {
    const doppel_item item = {
        .size = sizeof item,
        .document = {.id.data = id, .id.length = strlen(id), .text.data = words, .text.length = strlen(words)},
        .origin = {"before", 6}};
    doppel_verdict verdict = {0};
    assert_int_equal(doppel_engine_add(l->engine, &item, &verdict, NULL), DOPPEL_OK);
    doppel_verdict_free(&verdict);
}

/* Cuts the batch, as the worker does, with what each part adds; the ends of the parts in digits. */
static void check_cuts(line *l, const char *expected) {
    part p = {0};
    char found[64] = "";
    assert_true(id_set_open(&p.ids, l->b->count));
    while (p.from < l->b->count) {
        p.adds = p.unnamed = false;
        id_set_clear(&p.ids);
        assert_int_equal(find_part(&l->s, l->b, &p), OUTCOME_DONE);
        assert_true(p.to > p.from);
        assert_int_equal(add_pages(&l->s, l->b, p.from, p.to), OUTCOME_DONE);
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%zu", p.from ? " " : "", p.to);
        p.from = p.to;
    }
    assert_string_equal(found, expected);
    id_set_free(&p.ids);
}

static bool has(line *l, const char *id) {
    doppel_stored_list list = {0};
    assert_int_equal(doppel_engine_get(l->engine, doppel_slice_of(id), &list, NULL), DOPPEL_OK);
    bool there = list.count > 0;
    doppel_stored_list_free(&list);
    return there;
}

static const char *const texts[] = {
    "a story of ships that came to the harbour late in the year and stayed over the winter with all their men",
    "how to bake bread in an oven of stone with flour from the mill behind the house and water from the well",
    "reports on the weather of the coming week say rain in the north and sun on all the islands of the south"};

static void pages_alone_are_one_part(void **state) {
    (void)state;
    line l;
    start(&l);
    add_page(&l, "a", NULL, texts[0]);
    add_page(&l, NULL, "https://a.example/1", texts[1]);
    add_page(&l, "a", NULL, texts[0]);
    check_cuts(&l, "3");
    end(&l);
}

static void tombstones_of_nobody_cut_nothing(void **state) {
    (void)state;
    line l;
    start(&l);
    add_tombstone(&l, "x");
    add_page(&l, "a", NULL, texts[0]);
    add_tombstone(&l, "x");
    add_page(&l, "b", NULL, texts[1]);
    check_cuts(&l, "4");
    end(&l);
}

static void tombstones_at_the_start_are_carried_out(void **state) {
    (void)state;
    line l;
    start(&l);
    put(&l, "x", texts[0]);
    put(&l, "y", texts[1]);
    add_tombstone(&l, "x");
    add_tombstone(&l, "y");
    add_page(&l, "a", NULL, texts[0]);
    check_cuts(&l, "3");
    assert_false(has(&l, "x") || has(&l, "y"));
    assert_false(l.b->verdicts[2].is_duplicate);
    end(&l);
}

static void a_tombstone_of_who_is_there_begins_a_part(void **state) {
    (void)state;
    line l;
    start(&l);
    put(&l, "x", texts[0]);
    add_page(&l, "a", NULL, texts[0]);
    add_tombstone(&l, "x");
    add_page(&l, "b", NULL, texts[1]);
    check_cuts(&l, "1 3");
    assert_true(l.b->verdicts[0].is_duplicate);
    assert_false(has(&l, "x"));
    end(&l);
}

static void a_tombstone_of_who_comes_in_the_part_begins_one(void **state) {
    (void)state;
    line l;
    start(&l);
    add_page(&l, "a", NULL, texts[0]);
    add_tombstone(&l, "a");
    check_cuts(&l, "1 2");
    assert_false(has(&l, "a"));
    end(&l);
}

/* The engine makes the id of a page without one: it may be the tombstone's. */
static void a_tombstone_behind_a_page_without_an_id_begins_one(void **state) {
    (void)state;
    line l;
    start(&l);
    add_page(&l, NULL, "https://a.example/1", texts[0]);
    add_tombstone(&l, "https://a.example/1");
    check_cuts(&l, "1 2");
    assert_false(has(&l, "https://a.example/1"));
    end(&l);
}

static void other_words_under_an_id_begin_a_part(void **state) {
    (void)state;
    line l;
    start(&l);
    put(&l, "x", texts[0]);
    put(&l, "y", texts[1]);
    add_page(&l, "a", NULL, texts[2]);
    add_page(&l, "x", NULL, texts[0]); /* the same words as before */
    add_page(&l, "y", NULL, texts[0]); /* others */
    add_page(&l, "a", NULL, texts[1]); /* others than in this batch */
    check_cuts(&l, "2 3 4");
    end(&l);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_alone_are_one_part),
        cmocka_unit_test(tombstones_of_nobody_cut_nothing),
        cmocka_unit_test(tombstones_at_the_start_are_carried_out),
        cmocka_unit_test(a_tombstone_of_who_is_there_begins_a_part),
        cmocka_unit_test(a_tombstone_of_who_comes_in_the_part_begins_one),
        cmocka_unit_test(a_tombstone_behind_a_page_without_an_id_begins_one),
        cmocka_unit_test(other_words_under_an_id_begin_a_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

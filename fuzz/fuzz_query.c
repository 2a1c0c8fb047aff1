/* fuzz_query.c - any bytes as an item. The first byte chooses what is given; the rest is cut at zero bytes into id,
 * URL, title, two fields and a text, page or set of numbers.
 *
 * A query is within its limits; the same text gives the same query twice; sketches made from a text give the query of
 * the text; its verdict can be printed into a buffer of any size. */
#include "fuzz.h"

#include "decide/decide.h"
#include "engine/query.h"
#include "sketch/sketch.h"

enum { BY_SIMILARITY = 1, PAGE = 2, NUMBERS = 4, REDIRECT = 8, NARROW = 16 };

static doppel_slice cut(const char **at, const char *end) {
    const char *start = *at, *zero = end > start ? memchr(start, 0, (size_t)(end - start)) : NULL;
    const char *stop = zero ? zero : end;
    *at = zero ? zero + 1 : end;
    return (doppel_slice){stop > start ? start : NULL, (size_t)(stop - start)};
}

static void check_query(const dp_query *q, const dp_query_settings *asking) {
    CHECK(q->id.length <= DP_NAME_LIMIT && q->canonical.length <= DP_NAME_LIMIT && q->title.length <= DP_NAME_LIMIT);
    CHECK(q->id.length || !(q->has_digest || q->canonical.length));
    CHECK(!q->fields.data || (q->fields.data[0] == '{' && q->fields.data[q->fields.length - 1] == '}'));
    if (q->content && asking->by_similarity)
        CHECK(q->set_count && q->key_count == (size_t)asking->bands);
    else
        CHECK(!q->set_count && !q->key_count);
}

static void check_same(const dp_query *a, const dp_query *b) {
    CHECK(a->content == b->content && a->has_digest == b->has_digest && a->words == b->words);
    CHECK(!memcmp(a->digest, b->digest, 32) && !memcmp(a->fingerprint, b->fingerprint, 16));
    CHECK(a->set_count == b->set_count && a->key_count == b->key_count);
    CHECK(!a->set_count || !memcmp(a->set, b->set, a->set_count * sizeof *a->set));
    CHECK(!a->key_count || !memcmp(a->keys, b->keys, a->key_count * sizeof *a->keys));
    CHECK(a->id.length == b->id.length && a->canonical.length == b->canonical.length);
}

/* The same item again, and by the sketches that were made of it. */
static void ask_again(dp_query_maker *asker, doppel_item item, const dp_query *first) {
    dp_query again;
    CHECK(!dp_query_make(asker, &item, &again, NULL));
    check_same(first, &again);
    if (!first->words || item.fingerprint)
        return;
    item.document.text.length = 0;
    item.fingerprint = first->fingerprint;
    item.digest = first->digest;
    item.set = first->set;
    item.set_count = first->set_count;
    item.words = first->words;
    CHECK(!dp_query_make(asker, &item, &again, NULL));
    check_same(first, &again);
}

static void print_verdict(const dp_query *q, size_t room) {
    doppel_verdict v = {0};
    const dp_rules rules = {.bits = 64};
    CHECK(!dp_verdict_set(&v, &rules, DOPPEL_REASON_URL, NULL, (doppel_slice[]){q->id, q->canonical}));
    char *to = malloc(room + 1);
    CHECK(to);
    size_t length = doppel_verdict_json(&v, true, to, room);
    CHECK(!room || strlen(to) == (length < room ? length : room - 1));
    free(to);
    doppel_verdict_free(&v);
}

static void ask(const dp_query_settings *asking, const doppel_item *item, size_t room) {
    dp_query_maker *asker;
    dp_query query;
    doppel_error error = {0};
    CHECK(!dp_query_maker_create(asking, &asker, NULL));
    doppel_status status = dp_query_make(asker, item, &query, &error);
    CHECK(status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT || status == DOPPEL_ERROR_USAGE);
    CHECK((status == DOPPEL_OK) == !error.message[0]);
    if (status == DOPPEL_OK) {
        dp_query *copy = dp_query_copy(&query);
        CHECK(copy);
        check_query(copy, asking);
        if (!item->document.html.data)
            ask_again(asker, *item, copy);
        print_verdict(copy, room);
        free(copy);
    }
    dp_query_maker_free(asker);
}

/* Names and fields, cut from the bytes; what is left is in *rest. */
static doppel_item make_item(const char *at, const char *end, doppel_slice extra[2], doppel_slice *rest) {
    doppel_slice id = cut(&at, end), url = cut(&at, end), title = cut(&at, end);
    doppel_item item = {.size = sizeof item};
    extra[0] = cut(&at, end);
    extra[1] = cut(&at, end);
    *rest = (doppel_slice){at, (size_t)(end - at)};
    item.document = (doppel_document){.id.data = id.data,
                                      .id.length = id.length,
                                      .url.data = url.data,
                                      .url.length = url.length,
                                      .title.data = title.data,
                                      .title.length = title.length,
                                      .extra = extra};
    return item;
}

/* What the item says. */
static void give_content(doppel_item *item, uint8_t how, doppel_slice rest) {
    static uint64_t numbers[512];
    doppel_document *d = &item->document;
    if (how & REDIRECT)
        d->alias.data = d->id.data, d->alias.length = d->id.length;
    if (how & NUMBERS) {
        item->set_count = rest.length / 8 < 512 ? rest.length / 8 : 512;
        memcpy(numbers, rest.data, item->set_count * 8);
        item->fingerprint = item->set = numbers;
    } else if (how & PAGE) {
        d->html.data = rest.data, d->html.length = rest.length;
    } else {
        d->text.data = rest.data, d->text.length = rest.length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static doppel_recipe *narrow;
    char source[] = "source", date[] = "date", *fields[] = {source, date};
    doppel_slice extra[2], rest;
    if (size < 1 || (!narrow && doppel_recipe_parse("simhash32:words=2", NULL, &narrow, NULL)))
        return 0;
    uint8_t how = data[0];
    doppel_item item = make_item((const char *)data + 1, (const char *)data + size, extra, &rest);
    give_content(&item, how, rest);
    dp_query_settings asking = {.recipe = how & NARROW ? narrow : dp_recipe_default(),
                                .by_similarity = how & BY_SIMILARITY,
                                .min_words = 5,
                                .titles = true,
                                .fields = fields,
                                .field_count = 2};
    CHECK(dp_bands_plan(0.8, &asking.bands, &asking.rows));
    ask(&asking, &item, rest.length % 300);
    return 0;
}

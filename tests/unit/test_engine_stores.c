/* test_engine_stores.c - one long sequence of calls on an engine in memory, one in a folder and one in Redis: each
 * gives the same of each document, and remembers the same in the end. */
#include "engine_places.h"
#include "engine_steps.h"

/* ---- what is said of it ---- */

typedef struct said {
    char text[600];
} said;

static void say_verdict(const doppel_verdict *v, doppel_status status, said *to) {
    if (status != DOPPEL_OK) {
        snprintf(to->text, sizeof to->text, "%s", doppel_status_name(status));
        return;
    }
    size_t length = doppel_verdict_json(v, true, to->text, sizeof to->text);
    if (length < sizeof to->text)
        snprintf(to->text + length, sizeof to->text - length, "%s%s", v->known ? " known" : "",
                 v->replaced ? " replaced" : "");
}

/* Steps of one kind that follow each other are one batch. */
enum { MOST = 40 };

static size_t run_batch(doppel_engine *engine, const step *steps, size_t count, said *says) {
    doppel_item items[MOST];
    static doppel_verdict verdicts[MOST];
    doppel_error errors[MOST];
    size_t n = 0;
    for (; n < count && n < MOST && steps[n].deed == steps[0].deed; n++)
        items[n] = steps[n].item;
    if (steps[0].deed == ADD)
        OK(doppel_engine_add_batch(engine, items, n, verdicts, errors, error));
    else
        OK(doppel_engine_check_batch(engine, items, n, verdicts, errors, error));
    for (size_t i = 0; i < n; i++) {
        say_verdict(&verdicts[i], errors[i].code, &says[i]);
        doppel_verdict_free(&verdicts[i]);
    }
    return n;
}

static void run_one(doppel_engine *engine, const step *s, said *says) {
    doppel_verdict verdict = {0};
    bool removed = false;
    if (s->deed == ADD)
        say_verdict(&verdict, doppel_engine_add(engine, &s->item, &verdict, NULL), says);
    else if (s->deed == CHECK)
        say_verdict(&verdict, doppel_engine_check(engine, &s->item, &verdict, NULL), says);
    else if (s->deed == REMOVE)
        OK(doppel_engine_remove(engine, doppel_slice_of(s->id), &removed, error));
    else
        now += s->seconds;
    if (s->deed >= REMOVE)
        snprintf(says->text, sizeof says->text, "removed %d", removed);
    doppel_verdict_free(&verdict);
}

/* Half of it one by one, half in batches. */
static void run_steps(doppel_engine *engine, const step *steps, size_t count, said *says) {
    for (size_t i = 0; i < count;) {
        if (i % 1000 < 500 || steps[i].deed >= REMOVE) {
            run_one(engine, &steps[i], &says[i]);
            i++;
        } else {
            i += run_batch(engine, &steps[i], count - i, &says[i]);
        }
    }
}

/* ---- what is remembered ---- */

typedef struct memory {
    said *says;
    size_t count, room;
} memory;

/* For doppel_engine_each. Numbers are the store's own affair, their order is not. */
static bool note_document(const doppel_stored *d, void *user) {
    memory *m = user;
    assert_true(dp_reserve(&m->says, &m->room, m->count + 1, sizeof *m->says));
    snprintf(m->says[m->count++].text, sizeof m->says->text,
             "%.*s url %.*s title %.*s of %.*s %s origin %.*s added %llu expires %llu by %llu %llu %llu last "
             "%llu aliases %zu words %llu evidence %d %.6g %.6g",
             (int)d->id.length, d->id.data, (int)d->canonical.length, d->canonical.data ? d->canonical.data : "",
             (int)d->title.length, d->title.data ? d->title.data : "", (int)d->original_id.length,
             d->original_id.data ? d->original_id.data : "", d->reason ? doppel_reason_name(d->reason) : "",
             (int)d->origin.length, d->origin.data ? d->origin.data : "", (unsigned long long)d->added,
             (unsigned long long)d->expires, (unsigned long long)d->duplicates_by[1],
             (unsigned long long)d->duplicates_by[2], (unsigned long long)d->duplicates_by[3],
             (unsigned long long)d->last_duplicate, d->alias_count, (unsigned long long)d->words, d->evidence.distance,
             d->evidence.similarity, d->evidence.title_similarity);
    return true;
}

/* ---- all of it, everywhere ---- */

/* A life: what an engine is like, and what is told to it. */
typedef struct life {
    const char *name;
    doppel_engine_options options;
    const char *recipe; /* NULL: the preset's */
    bool like_words;    /* copies have the words of their original, or nearly: no titles, and URLs are refreshed */
} life;

static const life lives[] = {
    {"skip", {.preset = "article", .near = DOPPEL_NEAR_DISTANCE, .ttl = 1000}, NULL, false},
    {"link",
     {.preset = "article", .near = DOPPEL_NEAR_DISTANCE, .on_duplicate = DOPPEL_DUPLICATE_LINK, .ttl = 2000},
     NULL,
     false},
    {"store",
     {.preset = "article", .near = DOPPEL_NEAR_DISTANCE, .on_duplicate = DOPPEL_DUPLICATE_STORE, .ttl = DOPPEL_NEVER},
     NULL,
     false},
    {"refresh",
     {.preset = "crawl",
      .near = DOPPEL_NEAR_DISTANCE,
      .on_duplicate = DOPPEL_DUPLICATE_LINK,
      .on_same_url = DOPPEL_SAME_URL_REFRESH,
      .ttl = 1500},
     NULL,
     true},
    {"wide",
     {.preset = "crawl", .near = DOPPEL_NEAR_DISTANCE, .distance = 6, .titles = DOPPEL_SWITCH_ON, .ttl = 1000},
     NULL,
     false},
    {"long",
     {.preset = "crawl", .near = DOPPEL_NEAR_DISTANCE, .distance = 7, .title_share = 0.1, .ttl = 1000},
     "simhash128:words=2",
     false},
    {"short",
     {.preset = "article",
      .near = DOPPEL_NEAR_DISTANCE,
      .distance = 2,
      .title_similarity = 0.75,
      .on_duplicate = DOPPEL_DUPLICATE_LINK,
      .ttl = 500},
     "simhash30:words=1",
     false},
    {"equal",
     {.preset = "article",
      .near = DOPPEL_NEAR_DISTANCE,
      .distance_zero = true,
      .keep_text = DOPPEL_SWITCH_ON,
      .min_words = 60,
      .ttl = 3000},
     NULL,
     false},
};

static void live(void **state, const life *l, const step *steps, size_t count, said *says, memory *m) {
    now = 1700000000;
    doppel_engine_options options = l->options;
    doppel_recipe *recipe = NULL;
    options.durability = DOPPEL_DURABLE_NONE;
    if (l->recipe)
        OK(doppel_recipe_parse(l->recipe, NULL, &recipe, error));
    options.recipe = recipe;
    doppel_engine *engine = open_at(state, l->name, options);
    run_steps(engine, steps, count, says);
    OK(doppel_engine_each(engine, note_document, m, NULL, error));
    doppel_engine_close(engine);
    doppel_recipe_free(recipe);
}

static void same_life(const life *l, const step *steps, const said *expected, const said *says, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(says[i].text, expected[i].text) != 0)
            fail_msg("%s, %s, step %zu (%d, id %s, url %s, title %s, origin %s, text %.60s):\n`%s` in place of\n`%s`",
                     here->name, l->name, i, steps[i].deed, steps[i].id, steps[i].url, steps[i].title, steps[i].origin,
                     steps[i].text, says[i].text, expected[i].text);
}

static void same_memory(const life *l, const memory *expected, const memory *m) {
    for (size_t i = 0; i < m->count && i < expected->count; i++)
        if (strcmp(m->says[i].text, expected->says[i].text) != 0)
            fail_msg("%s, %s: `%s` in place of\n`%s`", here->name, l->name, m->says[i].text, expected->says[i].text);
    assert_int_equal(m->count, expected->count);
}

static void one_life(void **state, const life *l, size_t count) {
    uint64_t seed = (uint64_t)(l - lives) + 1;
    step *steps = calloc(count, sizeof *steps);
    said *expected = calloc(count, sizeof *expected), *says = calloc(count, sizeof *says);
    memory first = {0}, m = {0};
    const home *home_of_test = here;
    assert_true(steps && expected && says);
    for (size_t i = 0; i < count; i++)
        write_step(&seed, !l->recipe ? 64 : strstr(l->recipe, "128") ? 128 : 30, steps, i);
    here = &homes[0];
    live(state, l, steps, count, expected, &first);
    here = home_of_test;
    live(state, l, steps, count, says, &m);
    same_life(l, steps, expected, says, count);
    same_memory(l, &first, &m);
    free(steps);
    free(expected);
    free(says);
    free(first.says);
    free(m.says);
}

static void all_stores_say_the_same(void **state) {
    size_t each = full_suite() ? 10000 : 500;
    if (here->place == IN_MEMORY || strcmp(here->preset, "article") != 0)
        return;
    for (size_t i = 0; i < sizeof lives / sizeof *lives; i++)
        one_life(state, &lives[i], each);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        EVERYWHERE(all_stores_say_the_same),
    };
    return run_everywhere("stores", tests, sizeof tests / sizeof *tests);
}

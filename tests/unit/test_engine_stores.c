/* test_engine_stores.c - one long life, told to an engine in memory, one in a folder and one in Redis: each says the
 * same of each document, and remembers the same in the end.
 *
 * Documents come from a few ids, URLs, titles and texts, so that all of them meet again: near-copies, copies by URL and
 * by title, new versions, places they come from, removals, and time that passes. */
#include "engine_places.h"

#include <math.h>

enum { WORDS = 400, TEXTS = 60, TEXT_WORDS = 50, NAMES = 1000, URLS = 300, RECENT = 100, MOST = 40 };

typedef enum deed { ADD, CHECK, REMOVE, WAIT } deed;

/* One step, with all that its item points to. */
typedef struct step {
    deed deed;
    uint64_t seconds; /* WAIT */
    doppel_item item;
    char id[16], url[64], title[80], origin[24], text[TEXT_WORDS * 8];
    uint64_t fingerprint[2];
    uint8_t digest[32];
} step;

/* ---- what happens ---- */

static void write_text(uint64_t *seed, char *to) {
    uint64_t base = random_below(seed, TEXTS) + 1;
    size_t changed = random_below(seed, 4), length = 0;
    size_t which[3] = {random_below(seed, TEXT_WORDS), random_below(seed, TEXT_WORDS), random_below(seed, TEXT_WORDS)};
    for (size_t i = 0; i < TEXT_WORDS; i++) {
        uint64_t word = random_below(&base, WORDS);
        for (size_t c = 0; c < changed && c < 3; c++)
            if (which[c] == i)
                word = WORDS + random_below(seed, 8);
        length += (size_t)sprintf(to + length, "%sw%u", i ? " " : "", (unsigned)word);
    }
}

/* A title of a few, sometimes with another letter. */
static void write_title(uint64_t *seed, char to[80]) {
    static const char *const titles[] = {"The harbour bridge was opened at last",
                                         "Potters in the hill villages",
                                         "Ferries will run until the end of the month",
                                         "A toll of two coins is due",
                                         "Trams are expected to follow",
                                         "Editor's note of the day",
                                         "Short"};
    snprintf(to, 80, "%s", titles[random_below(seed, sizeof titles / sizeof *titles)]);
    if (random_below(seed, 3) == 0)
        to[random_below(seed, strlen(to))] = (char)('a' + random_below(seed, 26));
}

/* Fingerprints that lie near each other in piles, with or without a digest. */
static void write_sketches(uint64_t *seed, size_t bits, step *s) {
    uint64_t pile = random_below(seed, TEXTS) + 1;
    s->fingerprint[0] = random_next(&pile) >> (bits < 64 ? 64 - bits : 0);
    s->fingerprint[1] = bits > 64 ? random_next(&pile) : 0;
    for (size_t flips = random_below(seed, 8); flips; flips--) {
        size_t bit = random_below(seed, bits);
        s->fingerprint[bit / 64] ^= 1ULL << bit % 64;
    }
    s->item.fingerprint = s->fingerprint;
    if (random_below(seed, 2)) {
        for (size_t i = 0; i < 16; i++)
            s->digest[i] = (uint8_t)(s->fingerprint[i / 8] >> 8 * (i % 8));
        s->digest[31] = 1;
        s->item.digest = s->digest;
    }
}

static void write_item(uint64_t *seed, size_t bits, step *s) {
    doppel_document *d = &s->item.document;
    s->item.size = sizeof s->item;
    snprintf(s->id, sizeof s->id, "d%zu", random_below(seed, NAMES));
    if (random_below(seed, 5))
        d->id = s->id, d->id_length = strlen(s->id);
    if (random_below(seed, 3)) {
        snprintf(s->url, sizeof s->url, "http://%zu.example/%zu", random_below(seed, 2), random_below(seed, URLS));
        d->url = s->url, d->url_length = strlen(s->url);
    }
    if (random_below(seed, 4) == 0) {
        write_title(seed, s->title);
        d->title = s->title, d->title_length = strlen(s->title);
    }
    if (random_below(seed, 4) == 0) {
        snprintf(s->origin, sizeof s->origin, "pages/0/%zu", random_below(seed, NAMES));
        s->item.origin = (doppel_slice){s->origin, strlen(s->origin)};
    }
    if (random_below(seed, 3) == 0) {
        write_sketches(seed, bits, s);
    } else if (random_below(seed, 20)) {
        write_text(seed, s->text);
        d->text = s->text, d->text_length = strlen(s->text);
    }
    if (random_below(seed, 10) == 0)
        s->item.ttl = 1 + random_below(seed, 200);
}

/* An earlier one again: the same, from elsewhere, at another URL, or by another name. */
static void write_again(uint64_t *seed, const step *from, step *s) {
    const doppel_document *had = &from->item.document;
    doppel_document *d = &s->item.document;
    size_t dice = random_below(seed, 6);
    *s = *from;
    d->id = had->id && dice != 3 ? s->id : NULL;
    d->id_length = d->id ? had->id_length : 0;
    d->url = had->url ? s->url : NULL;
    d->title = had->title ? s->title : NULL;
    d->text = had->text ? s->text : NULL;
    s->item.fingerprint = from->item.fingerprint ? s->fingerprint : NULL;
    s->item.digest = from->item.digest ? s->digest : NULL;
    s->item.origin.data = from->item.origin.data ? s->origin : NULL;
    if (dice == 4 && d->url)
        s->url[7] ^= 1;
    if (dice == 5) {
        snprintf(s->origin, sizeof s->origin, "pages/1/%zu", random_below(seed, NAMES));
        s->item.origin = (doppel_slice){s->origin, strlen(s->origin)};
    }
}

/* The next of `count` steps. */
static void write_step(uint64_t *seed, size_t bits, step *steps, size_t count) {
    step *s = &steps[count];
    size_t dice = random_below(seed, 100);
    *s = (step){.seconds = 0};
    if (count && random_below(seed, 4) == 0)
        write_again(seed, s - 1 - random_below(seed, count < RECENT ? count : RECENT), s);
    else
        write_item(seed, bits, s);
    s->deed = dice < 70 ? ADD : dice < 88 ? CHECK : dice < 94 ? REMOVE : WAIT;
    s->seconds = random_below(seed, 20);
}

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
static size_t run_batch(doppel_engine *engine, const step *steps, size_t count, said *says) {
    doppel_item items[MOST];
    static doppel_verdict verdicts[MOST];
    doppel_status status[MOST];
    size_t n = 0;
    for (; n < count && n < MOST && steps[n].deed == steps[0].deed; n++)
        items[n] = steps[n].item;
    if (steps[0].deed == ADD)
        OK(doppel_engine_add_batch(engine, items, n, verdicts, status, error));
    else
        OK(doppel_engine_check_batch(engine, items, n, verdicts, status, error));
    for (size_t i = 0; i < n; i++) {
        say_verdict(&verdicts[i], status[i], &says[i]);
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
        OK(doppel_engine_remove(engine, s->id, strlen(s->id), &removed, error));
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
             "%.*s url %.*s title %.*s of %.*s %s gone %d origin %.*s added %llu expires %llu by %llu %llu %llu last "
             "%llu aliases %zu words %llu evidence %d %.6g %.6g",
             (int)d->id.length, d->id.data, (int)d->canonical.length, d->canonical.data ? d->canonical.data : "",
             (int)d->title.length, d->title.data ? d->title.data : "", (int)d->original_id.length,
             d->original_id.data ? d->original_id.data : "", d->reason ? d->reason : "", d->original_gone,
             (int)d->origin.length, d->origin.data ? d->origin.data : "", (unsigned long long)d->added,
             (unsigned long long)d->expires, (unsigned long long)d->duplicates_by[0],
             (unsigned long long)d->duplicates_by[1], (unsigned long long)d->duplicates_by[2],
             (unsigned long long)d->last_duplicate, d->alias_count, (unsigned long long)d->words,
             d->original_gone ? 0 : d->evidence.distance, d->original_gone ? 0 : d->evidence.similarity,
             d->original_gone ? 0 : d->evidence.title_similarity);
    return true;
}

/* ---- all of it, everywhere ---- */

/* A life: what an engine is like, and what is told to it. */
typedef struct life {
    const char *name;
    doppel_engine_options options;
    const char *recipe; /* NULL: the preset's */
} life;

static const life lives[] = {
    {"skip", {.preset = "article", .ttl = 1000}, NULL},
    {"link", {.preset = "article", .on_duplicate = DOPPEL_DUPLICATE_LINK, .ttl = 2000}, NULL},
    {"store", {.preset = "article", .on_duplicate = DOPPEL_DUPLICATE_STORE, .ttl = DOPPEL_NEVER}, NULL},
    {"refresh",
     {.preset = "crawl", .on_duplicate = DOPPEL_DUPLICATE_LINK, .on_same_url = DOPPEL_SAME_URL_REFRESH, .ttl = 1500},
     NULL},
    {"wide", {.preset = "crawl", .distance = 6, .titles = DOPPEL_SWITCH_ON, .ttl = 1000}, NULL},
    {"long", {.preset = "crawl", .distance = 7, .title_share = 0.1, .ttl = 1000}, "simhash128:words=2"},
    {"short",
     {.preset = "article", .distance = 2, .title_similarity = 0.75, .on_duplicate = DOPPEL_DUPLICATE_LINK, .ttl = 500},
     "simhash30:words=1"},
    {"equal", {.preset = "article", .distance = -1, .keep_text = DOPPEL_SWITCH_ON, .min_words = 60, .ttl = 3000}, NULL},
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

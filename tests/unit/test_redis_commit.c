/* test_redis_commit.c - commits to a memory in Redis while others commit, too: what was decided stands only if what it
 * rests on is still there, whatever that is; who has lost gets a turn, in which the others wait; numbers are given
 * once. */
#include "redis_looks.h"

#include <stdatomic.h>

static const dp_rules by_bits = {.distance = 3, .bits = 64, .titles = true, .title_similarity = 0.9};
static const dp_rules by_sets = {
    .by_similarity = true, .similarity = 0.8, .bits = 64, .titles = true, .title_similarity = 0.9};

/* A new memory. Processes that have met others ask for a turn before they commit; those that have not do so only when
 * their commit was refused. */
static void begin_memory(const dp_rules *rules, bool has_met) {
    redis_do(&server, "FLUSHALL");
    known = open_known(rules);
    redis_of(known)->alone = has_met ? 0 : 1000;
}

static int start_with(const dp_rules *rules) {
    begin_memory(rules, true);
    return 0;
}

static int start_by_bits(void **state) {
    (void)state;
    return start_with(&by_bits);
}

static int start_by_sets(void **state) {
    (void)state;
    return start_with(&by_sets);
}

static int stop_known(void **state) {
    (void)state;
    dp_known_close(known);
    return 0;
}

/* ---- what is found ---- */

typedef enum by { BY_ID, BY_URL, BY_DIGEST, BY_BAND, BY_FINGERPRINT, BY_TITLE } by;

static bool has(const dp_numbers *numbers, uint64_t number) {
    for (size_t i = 0; i < numbers->count; i++)
        if (numbers->number[i] == number)
            return true;
    return false;
}

static bool name_leads(adding *a, dp_key key, doppel_slice name, uint64_t number) {
    dp_numbers found = {0};
    MUST(a->look->kind->find_name(a->look, key, name, &found, error));
    bool leads = has(&found, number);
    dp_numbers_free(&found);
    return leads;
}

static bool band_leads(adding *a, uint64_t number) {
    dp_numbers found = {0};
    MUST(a->look->kind->find_bands(a->look, &a->query, &found, error));
    bool leads = has(&found, number);
    dp_numbers_free(&found);
    return leads;
}

static bool fingerprint_leads(adding *a, uint64_t number) {
    doppel_matches found = {0};
    bool leads = false;
    MUST(a->look->kind->find_near(a->look, a->query.fingerprint, 3, &found, error));
    for (size_t i = 0; i < found.count; i++)
        leads = leads || found.match[i].owner == number;
    free(found.match);
    return leads;
}

static bool title_leads(adding *a, uint64_t number) {
    dp_title_hits found = {0};
    const dp_title_query query = {.title = a->query.title_key, .share = 0.001};
    bool leads = false;
    MUST(a->look->kind->find_titles(a->look, &query, &found, error));
    for (size_t i = 0; i < found.count; i++)
        leads = leads || found.hit[i].number == number;
    free(found.hit);
    return leads;
}

/* Whether the page of a look leads to a number. */
static bool leads(adding *a, by what, uint64_t number) {
    const dp_query *q = &a->query;
    switch (what) {
    case BY_ID: return name_leads(a, DP_KEY_ID, q->id, number);
    case BY_URL: return name_leads(a, DP_KEY_URL, q->canonical, number);
    case BY_DIGEST: return name_leads(a, DP_KEY_DIGEST, (doppel_slice){(const char *)q->digest, 32}, number);
    case BY_BAND: return band_leads(a, number);
    case BY_FINGERPRINT: return fingerprint_leads(a, number);
    case BY_TITLE: return title_leads(a, number);
    }
    return false;
}

static const page first = {.id = "first",
                           .url = "https://a.example/1",
                           .title = "the harbour bridge was opened on monday",
                           .digest = 1,
                           .fingerprint = 0x0123456789ABCDEF,
                           .keys = {11, 12, 13, 14}};

/* A page that has one thing in common with the first one. */
static page like_first(by what) {
    page p = {.id = "second",
              .url = "https://a.example/2",
              .title = "potters in the hill villages still fire",
              .digest = 2,
              .fingerprint = 0xFEDCBA9876543210,
              .keys = {21, 22, 23, 24}};
    switch (what) {
    case BY_ID: p.id = first.id; break;
    case BY_URL: p.url = first.url; break;
    case BY_DIGEST: p.digest = first.digest; break;
    case BY_BAND: p.keys[2] = first.keys[2]; break;
    case BY_FINGERPRINT: p.fingerprint = first.fingerprint ^ 0x8000010000000001; break;
    case BY_TITLE: p.title = "the harbor bridge was opened on mondays"; break;
    }
    return p;
}

/* ---- one that comes in between ---- */

/* The first is decided; then the second is committed; then the first is to be committed. */
static void check_race(by what, const page *before) {
    adding a;
    uint64_t numbers[2] = {0};
    const page second = like_first(what);
    if (before)
        numbers[0] = add_now(before);
    begin_adding(&a, &first);
    for (by each = BY_ID; each <= BY_TITLE; each++)
        if (each != (by_similarity(a.look) ? BY_FINGERPRINT : BY_BAND))
            assert_false(leads(&a, each, numbers[0] ? numbers[0] + 1 : 1));
    queue_page(&a);
    numbers[1] = add_now(&second);
    uint64_t retries = redis_of(known)->retries;
    if (commit(&a))
        fail_msg("what rests on %d stands though it has changed", (int)what);
    assert_int_equal(redis_of(known)->retries, retries + 1);
    if (!leads(&a, what, numbers[1]))
        fail_msg("what came in between is not found by %d", (int)what);
    assert_true(!before || leads(&a, what, numbers[0]));
    /* Decided anew, it stands. */
    queue_count(&a, numbers[1]);
    assert_true(commit(&a));
    end_adding(&a);
    assert_int_equal(redis_number(&server, "HGET {t}m w"), 1);
}

static void check_races(by what) {
    page before = like_first(what);
    before.id = what == BY_ID ? before.id : "before";
    before.url = what == BY_URL ? before.url : "https://a.example/before";
    for (int way = 0; way < 4; way++) {
        dp_known_close(known);
        begin_memory(what == BY_BAND ? &by_sets : &by_bits, way % 2);
        check_race(what, way / 2 ? &before : NULL);
    }
}

static void an_id_that_came_in_between_is_found(void **state) {
    (void)state;
    check_races(BY_ID);
}

static void a_url_that_came_in_between_is_found(void **state) {
    (void)state;
    check_races(BY_URL);
}

static void words_that_came_in_between_are_found(void **state) {
    (void)state;
    check_races(BY_DIGEST);
}

static void a_band_that_came_in_between_is_found(void **state) {
    (void)state;
    check_races(BY_BAND);
}

static void a_near_fingerprint_that_came_in_between_is_found(void **state) {
    (void)state;
    check_races(BY_FINGERPRINT);
}

static void a_similar_title_that_came_in_between_is_found(void **state) {
    (void)state;
    check_races(BY_TITLE);
}

/* ---- what does not matter ---- */

static const page other = {.id = "other",
                           .url = "https://b.example/",
                           .title = "trams are expected to follow within years",
                           .digest = 9,
                           .fingerprint = 0xFEDCBA9876543210,
                           .keys = {91, 92, 93, 94}};

/* Once it is clear that nobody else commits, a commit is one call. */
static void one_that_is_alone_asks_for_no_turn(void **state) {
    (void)state;
    adding a;
    for (int i = 0; i < 20; i++) {
        char id[16];
        snprintf(id, sizeof id, "%d", i);
        add_now(&(page){.id = id});
    }
    begin_adding(&a, &first);
    queue_page(&a);
    long long before = calls();
    assert_true(commit(&a));
    assert_int_equal(calls() - before, 1);
    end_adding(&a);
}

static void others_that_have_nothing_to_do_with_it_do_not_matter(void **state) {
    (void)state;
    adding a;
    add_now(&(page){.id = "before"});
    begin_adding(&a, &first);
    queue_page(&a);
    uint64_t mine = a.number, number = add_now(&other);
    assert_true(commit(&a));
    end_adding(&a);
    assert_int_equal(redis_of(known)->retries, 0);
    assert_true(mine != number);
    begin_adding(&a, &first);
    assert_true(leads(&a, BY_ID, mine) && leads(&a, BY_URL, mine) && !leads(&a, BY_URL, number));
    assert_true(commit(&a));
    end_adding(&a);
    begin_adding(&a, &other);
    assert_true(leads(&a, BY_ID, number) && leads(&a, BY_URL, number));
    assert_true(commit(&a));
    end_adding(&a);
}

/* Of many commits that came in between, all are looked at; where nobody knows any more what they were, it is decided
 * again. */
static void many_that_came_in_between_are_looked_at(void **state) {
    (void)state;
    for (int between = 1; between <= 200; between += between < 10 ? 3 : 63) {
        adding a;
        char id[16];
        const page second = like_first(BY_URL);
        add_now(&(page){.id = "before"});
        begin_adding(&a, &first);
        queue_page(&a);
        uint64_t number = add_now(&second);
        for (int i = 1; i < between; i++) {
            snprintf(id, sizeof id, "%d", i);
            add_now(&(page){.id = id});
        }
        assert_false(commit(&a));
        assert_true(leads(&a, BY_URL, number));
        assert_true(commit(&a));
        end_adding(&a);
        dp_known_close(known);
        begin_memory(&by_bits, between % 2);
    }
}

/* Commits are logged while somebody asks for turns. One that was not, as nobody did, is not passed over. */
static void check_gap(bool more) {
    adding a;
    dp_known *mine = known, *another = open_known(&by_bits);
    const page second = like_first(BY_URL);
    redis_of(another)->alone = 1000; /* it asks for no turns */
    add_now(&(page){.id = "logged"});
    begin_adding(&a, &first);
    queue_page(&a);
    redis_do(&server, "DEL {t}w"); /* its time has come */
    known = another;
    uint64_t number = add_now(&second);
    known = mine;
    if (more)
        add_now(&(page){.id = "logged as well"});
    assert_false(commit(&a));
    assert_true(leads(&a, BY_URL, number));
    assert_true(commit(&a));
    end_adding(&a);
    dp_known_close(another);
}

static void what_was_not_logged_is_not_missed(void **state) {
    (void)state;
    check_gap(false);
}

static void what_was_not_logged_before_others_is_not_missed(void **state) {
    (void)state;
    check_gap(true);
}

/* A fingerprint that shares a place with the first one's, and is far from it. */
static uint64_t pick_far(void) {
    const dp_redis_memory memory = dp_redis_get_memory(redis_of(known));
    dp_redis_places near = {0}, own = {0};
    uint64_t seed = 5, found = 0;
    dp_redis_add_fingerprint(&memory, (const uint64_t[2]){first.fingerprint, 0}, true, &near);
    while (!found) {
        uint64_t one[2] = {first.fingerprint, 0};
        for (int i = 0; i < 9; i++)
            one[0] ^= (uint64_t)1 << random_below(&seed, 64);
        own.count = 0;
        dp_redis_add_fingerprint(&memory, one, false, &own);
        for (size_t i = 0; i < own.count * near.count; i++)
            if (own.place[i % own.count] == near.place[i / own.count] &&
                __builtin_popcountll(one[0] ^ first.fingerprint) > 3)
                found = one[0];
    }
    free(near.place);
    free(own.place);
    return found;
}

static void far_fingerprints_in_the_same_place_do_not_matter(void **state) {
    (void)state;
    adding a;
    page far = other;
    far.fingerprint = pick_far();
    add_now(&(page){.id = "before"});
    for (int round = 0; round < 2; round++) { /* in an empty place, and in one that has some */
        page mine = first;
        mine.id = round ? "a" : "b";
        mine.url = mine.title = NULL;
        mine.digest = 0;
        begin_adding(&a, &mine);
        assert_int_equal(leads(&a, BY_FINGERPRINT, 2), round == 1);
        queue_page(&a);
        far.id = round ? "c" : "d";
        uint64_t number = add_now(&far), retries = redis_of(known)->retries;
        assert_true(commit(&a));
        assert_int_equal(redis_of(known)->retries, retries);
        end_adding(&a);
        /* Both are there. */
        begin_adding(&a, &mine);
        assert_true(leads(&a, BY_FINGERPRINT, number - 1) && leads(&a, BY_ID, number - 1));
        assert_true(commit(&a));
        end_adding(&a);
        begin_adding(&a, &far);
        assert_true(leads(&a, BY_FINGERPRINT, number) && leads(&a, BY_ID, number));
        assert_true(commit(&a));
        end_adding(&a);
    }
}

/* ---- what goes in between ---- */

static void an_original_that_goes_in_between_is_missed(void **state) {
    (void)state;
    adding a;
    uint64_t number = add_now(&first);
    add_now(&other);
    const page again = like_first(BY_URL);
    begin_adding(&a, &again);
    assert_true(leads(&a, BY_URL, number));
    queue_count(&a, number);
    remove_now(number);
    assert_false(commit(&a));
    assert_false(leads(&a, BY_URL, number));
    queue_page(&a);
    assert_true(commit(&a));
    end_adding(&a);
    assert_int_equal(redis_number(&server, "HGET {t}m u"), -1);
}

/* Also where no place that was read has led to it. */
static void a_number_that_is_counted_at_must_be_there(void **state) {
    (void)state;
    adding a;
    bool alive;
    uint64_t number = add_now(&first);
    add_now(&other);
    begin_adding(&a, &(page){.id = "x"});
    MUST(a.look->kind->alive(a.look, number, &alive, error));
    assert_true(alive);
    queue_count(&a, number);
    remove_now(number);
    assert_false(commit(&a));
    MUST(a.look->kind->alive(a.look, number, &alive, error));
    assert_false(alive);
    assert_true(commit(&a));
    end_adding(&a);
}

/* The last document goes, and the memory with it; or somebody deletes everything. */
static void a_memory_that_goes_in_between_is_made_anew(void **state) {
    (void)state;
    for (int round = 0; round < 2; round++) {
        adding a;
        uint64_t number = add_now(&other);
        begin_adding(&a, &first);
        queue_page(&a);
        if (round)
            redis_do(&server, "FLUSHALL");
        else
            remove_now(number);
        assert_int_equal(redis_number(&server, "EXISTS {t}m"), 0);
        assert_false(commit(&a));
        queue_page(&a);
        assert_true(commit(&a));
        end_adding(&a);
        assert_int_equal(redis_number(&server, "HGET {t}m n"), a.number);
        remove_now(a.number);
    }
}

/* ---- what is queued ---- */

static void what_is_queued_is_found_until_it_is_taken_back(void **state) {
    (void)state;
    adding a;
    begin_adding(&a, &first);
    size_t mark = a.look->kind->mark(a.look);
    queue_page(&a);
    const by what[] = {BY_ID, BY_URL, BY_DIGEST, by_similarity(a.look) ? BY_BAND : BY_FINGERPRINT, BY_TITLE};
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        assert_true(leads(&a, what[i], a.number));
    a.look->kind->back(a.look, mark);
    for (size_t i = 0; i < sizeof what / sizeof *what; i++)
        assert_false(leads(&a, what[i], a.number));
    uint64_t unused = a.number;
    queue_page(&a);
    assert_true(a.number > unused);
    assert_true(commit(&a));
    end_adding(&a);
    assert_int_equal(redis_number(&server, "HGET {t}m n"), a.number);
}

/* Two ids whose places are one field of one bucket: few buckets, and a field has 22 bits of the place. */
static void find_meeting(const dp_redis_memory *memory, char ids[2][16]) {
    enum { IDS = 200000 };
    const uint64_t mask = ~(uint64_t)0 << (64 - memory->plan.bucket_bits) | 0xFFFFFF;
    uint64_t *places = malloc(IDS * sizeof *places);
    bool found = false;
    for (size_t i = 0; i < IDS && !found; i++) {
        snprintf(ids[1], sizeof *ids, "%zu", i);
        places[i] = dp_redis_name_place(memory, 'i', text_of(ids[1])) & mask;
        for (size_t k = 0; k < i && !found; k++) {
            found = places[k] == places[i];
            if (found)
                snprintf(ids[0], sizeof *ids, "%zu", k);
        }
    }
    assert_true(found);
    free(places);
}

static void names_that_meet_in_a_field_are_both_found(void **state) {
    (void)state;
    char ids[2][16];
    adding a, b;
    dp_known_close(known);
    redis_do(&server, "FLUSHALL");
    known = open_known_for(&by_bits, 1); /* few buckets */
    const dp_redis_memory memory = dp_redis_get_memory(redis_of(known));
    find_meeting(&memory, ids);
    const page pages[2] = {{.id = ids[0]}, {.id = ids[1]}};
    /* Both in one commit. */
    begin_adding(&a, &pages[0]);
    queue_page(&a);
    uint64_t first_number = a.number;
    a.query = query_of(a.look, &pages[1]);
    queue_page(&a);
    assert_true(commit(&a));
    end_adding(&a);
    begin_adding(&b, &pages[0]);
    assert_true(leads(&b, BY_ID, first_number));
    assert_true(commit(&b));
    end_adding(&b);
    begin_adding(&b, &pages[1]);
    assert_true(leads(&b, BY_ID, a.number));
    assert_true(commit(&b));
    end_adding(&b);
}

/* ---- turns ---- */

/* The first page is decided, and lost to the second one at its URL: it has a turn then. */
static void lose(adding *a) {
    const page second = like_first(BY_URL);
    add_now(&other); /* so that the memory stays */
    begin_adding(a, &first);
    queue_page(a);
    add_now(&second);
    assert_false(commit(a));
    assert_int_equal(redis_number(&server, "EXISTS {t}h"), 1);
    assert_in_range(redis_number(&server, "PTTL {t}h"), 1, 1000);
}

/* Somebody else who adds at the same time. */
typedef struct rival {
    pthread_t thread;
    page page;
    _Atomic bool done;
} rival;

static void *add_aside(void *given) {
    rival *r = given;
    add_now(&r->page);
    r->done = true;
    return NULL;
}

static double seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void others_wait_for_whose_turn_it_is(void **state) {
    (void)state;
    adding a;
    rival r = {.page = {.id = "rival", .url = first.url}};
    lose(&a);
    queue_page(&a);
    assert_int_equal(pthread_create(&r.thread, NULL, add_aside, &r), 0);
    pause_for(0.2);
    assert_false(r.done);
    double before = seconds();
    assert_true(commit(&a));
    pthread_join(r.thread, NULL);
    assert_true(r.done && seconds() - before < 0.5);
    end_adding(&a);
    assert_int_equal(redis_number(&server, "EXISTS {t}h"), 0);
}

static void a_turn_ends_by_itself(void **state) {
    (void)state;
    adding a;
    lose(&a);
    double before = seconds();
    add_now(&(page){.id = "another"});
    assert_true(seconds() - before > 0.5 && seconds() - before < 2);
    queue_page(&a);
    assert_true(commit(&a)); /* that one has nothing to do with it */
    end_adding(&a);
}

/* One that was so slow that its turn was over, and lost again, gets another one. */
static void whose_turn_was_over_gets_another_one(void **state) {
    (void)state;
    adding a;
    lose(&a);
    queue_page(&a);
    add_now(&(page){.id = "x", .url = first.url}); /* waits until the turn is over */
    assert_false(commit(&a));
    assert_int_equal(redis_number(&server, "EXISTS {t}h"), 1);
    queue_page(&a);
    assert_true(commit(&a));
    end_adding(&a);
}

/* Nobody waits for one that has nothing to commit in the end, or that gives up. */
static void a_turn_that_is_not_needed_is_given_back(void **state) {
    (void)state;
    dp_known *mine = known, *another = open_known(&by_bits);
    for (int round = 0; round < 2; round++) {
        adding a;
        lose(&a);
        if (!round)
            assert_true(commit(&a));
        end_adding(&a);
        known = another; /* another process */
        double before = seconds();
        add_now(&(page){.id = "another"});
        if (seconds() - before > 0.5)
            fail_msg("%s: others wait for nothing", round ? "given up" : "nothing to commit");
        known = mine;
    }
    dp_known_close(another);
}

/* Many processes at once: each add is one of the same few pages, and each page is unique once. */
enum { RIVALS = 4, PAGES = 25 };

static _Atomic int uniques[PAGES];

static void *add_pages(void *given) {
    uint64_t seed = (uint64_t)(uintptr_t)given;
    size_t order[PAGES];
    for (size_t i = 0; i < PAGES; i++)
        order[i] = i;
    for (size_t i = PAGES - 1; i; i--) {
        size_t k = random_below(&seed, i + 1), swapped = order[i];
        order[i] = order[k];
        order[k] = swapped;
    }
    for (size_t i = 0; i < PAGES; i++) {
        adding a;
        char id[32], url[64];
        dp_numbers found = {0};
        snprintf(id, sizeof id, "%zu of %p", order[i], given);
        snprintf(url, sizeof url, "https://a.example/%zu", order[i]);
        const page p = {.id = id, .url = url};
        bool unique;
        begin_adding(&a, &p);
        do {
            MUST(a.look->kind->find_name(a.look, DP_KEY_URL, a.query.canonical, &found, error));
            unique = !found.count;
            if (unique)
                queue_page(&a);
            else
                queue_count(&a, found.number[0]);
        } while (!commit(&a));
        end_adding(&a);
        dp_numbers_free(&found);
        uniques[order[i]] += unique;
    }
    return NULL;
}

static void of_many_at_once_one_is_the_first(void **state) {
    (void)state;
    pthread_t threads[RIVALS];
    for (uintptr_t i = 0; i < RIVALS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_pages, (void *)(i + 1)), 0);
    for (size_t i = 0; i < RIVALS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < PAGES; i++)
        if (uniques[i] != 1)
            fail_msg("page %zu was unique %d times", i, uniques[i]);
    assert_int_equal(redis_number(&server, "HGET {t}m w"), (RIVALS - 1) * PAGES);
}

/* ---- numbers ---- */

/* A failover has lost that numbers were given out: another process gets them, too, and is the first to use them. */
static void numbers_are_used_once_after_a_failover(void **state) {
    (void)state;
    adding a;
    uint64_t last = add_now(&other);
    begin_adding(&a, &first);
    queue_page(&a);
    assert_int_equal(a.number, last + 1);
    freeReplyObject(redis_say(&server, "HSET {t}m n %llu", (unsigned long long)last));
    const page second = {.id = "second", .url = "https://c.example/"};
    assert_int_equal(add_now(&second), last + 1);
    assert_false(commit(&a));
    queue_page(&a);
    assert_int_equal(a.number, last + 2);
    assert_true(commit(&a));
    end_adding(&a);
    begin_adding(&a, &second);
    assert_true(leads(&a, BY_ID, last + 1) && leads(&a, BY_URL, last + 1));
    assert_true(commit(&a));
    end_adding(&a);
}

/* The one that had them is the first: the counter follows. */
static void numbers_that_were_used_are_not_given_out_again(void **state) {
    (void)state;
    adding a;
    uint64_t last = add_now(&other);
    begin_adding(&a, &first);
    queue_page(&a);
    freeReplyObject(redis_say(&server, "HSET {t}m n %llu", (unsigned long long)last));
    assert_true(commit(&a));
    end_adding(&a);
    assert_int_equal(a.number, last + 1);
    assert_int_equal(redis_number(&server, "HGET {t}m n"), last + 1);
    assert_int_equal(add_now(&(page){.id = "second"}), last + 2);
}

/* Numbers go back by hand, below documents that are there: these stay what they are. */
static void numbers_below_what_is_there_are_not_used(void **state) {
    (void)state;
    adding a;
    uint64_t number = add_now(&first);
    redis_do(&server, "HSET {t}m n 0");
    uint64_t next = add_now(&other);
    assert_true(next != number);
    begin_adding(&a, &first);
    assert_true(leads(&a, BY_ID, number) && leads(&a, BY_URL, number));
    assert_true(commit(&a));
    end_adding(&a);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, start_by_bits, stop_known)
#define CASE_OF_SETS(test) cmocka_unit_test_setup_teardown(test, start_by_sets, stop_known)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(an_id_that_came_in_between_is_found),
        CASE(a_url_that_came_in_between_is_found),
        CASE(words_that_came_in_between_are_found),
        CASE_OF_SETS(a_band_that_came_in_between_is_found),
        CASE(a_near_fingerprint_that_came_in_between_is_found),
        CASE(a_similar_title_that_came_in_between_is_found),
        CASE(one_that_is_alone_asks_for_no_turn),
        CASE(others_that_have_nothing_to_do_with_it_do_not_matter),
        CASE_OF_SETS(others_that_have_nothing_to_do_with_it_do_not_matter),
        CASE(many_that_came_in_between_are_looked_at),
        CASE(what_was_not_logged_is_not_missed),
        CASE(what_was_not_logged_before_others_is_not_missed),
        CASE(far_fingerprints_in_the_same_place_do_not_matter),
        CASE(an_original_that_goes_in_between_is_missed),
        CASE(a_number_that_is_counted_at_must_be_there),
        CASE(a_memory_that_goes_in_between_is_made_anew),
        CASE(what_is_queued_is_found_until_it_is_taken_back),
        CASE_OF_SETS(what_is_queued_is_found_until_it_is_taken_back),
        CASE(names_that_meet_in_a_field_are_both_found),
        CASE(others_wait_for_whose_turn_it_is),
        CASE(a_turn_ends_by_itself),
        CASE(whose_turn_was_over_gets_another_one),
        CASE(a_turn_that_is_not_needed_is_given_back),
        CASE(of_many_at_once_one_is_the_first),
        CASE(numbers_are_used_once_after_a_failover),
        CASE(numbers_that_were_used_are_not_given_out_again),
        CASE(numbers_below_what_is_there_are_not_used),
    };
    static const char *const settings[] = {"--save", "", "--appendonly", "no", NULL};
    if (!redis_installed())
        return 1;
    server = redis_start(settings);
    int failed = cmocka_run_group_tests_name("redis_commit", tests, NULL, NULL);
    redis_remove(&server);
    return failed;
}

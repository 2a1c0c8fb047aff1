/* test_recipe.c - recipes from and to their text form (docs/FORMAT.md section 6). */
#include "support.h"

#include "doppel.h"

#include <stdio.h>
#include <stdlib.h>

#define PAGE "simhash64:words=5:hash=fast:weight=tf"

static doppel_recipe *parse(const char *text, const doppel_recipe_parts *parts) {
    doppel_recipe *recipe;
    doppel_error error;
    if (doppel_recipe_parse(text, parts, &recipe, &error)) {
        print_error("%s: %s\n", text, error.message);
        fail();
    }
    return recipe;
}

static void prints(const char *text, const doppel_recipe_parts *parts, const char *want) {
    doppel_recipe *recipe = parse(text, parts), *again;
    assert_string_equal(doppel_recipe_text(recipe), want);
    again = parse(doppel_recipe_text(recipe), parts);
    assert_string_equal(doppel_recipe_text(again), want);
    assert_int_equal(doppel_recipe_bits(again), doppel_recipe_bits(recipe));
    doppel_recipe_free(recipe);
    doppel_recipe_free(again);
}

/* The recipe is refused; the message has each of the words, the place is where the part begins, from 1. */
static void refused(const char *text, const doppel_recipe_parts *parts, const char *part, const char *allowed) {
    doppel_recipe *recipe = (void *)&recipe;
    doppel_error error = {.code = DOPPEL_OK};
    assert_int_equal(doppel_recipe_parse(text, parts, &recipe, &error), DOPPEL_ERROR_USAGE);
    assert_null(recipe);
    assert_int_equal(error.code, DOPPEL_ERROR_USAGE);
    if (!strstr(error.message, part) || !strstr(error.message, allowed)) {
        print_error("%s: `%s` lacks `%s` or `%s`\n", text, error.message, part, allowed);
        fail();
    }
    const char *stands = strstr(text, part);
    assert_non_null(stands);
    assert_int_equal(error.position, stands - text + 1);
    /* Nobody has to ask why. */
    assert_int_equal(doppel_recipe_parse(text, parts, &recipe, NULL), DOPPEL_ERROR_USAGE);
}

/* ---- what is right ---- */

static void names_stand_for_recipes(void **state) {
    (void)state;
    prints("page", NULL, PAGE);
    prints("article", NULL, "simhash64:words=1:hash=fast:weight=tf:first=5000");
    prints("literal", NULL, "simhash64:words=5:hash=murmur3:weight=tf");
}

static void parts_have_defaults_and_one_order(void **state) {
    (void)state;
    prints("simhash64", NULL, PAGE);
    prints("simhash64:weight=tf:hash=fast:words=5", NULL, PAGE);
    prints("simhash64:case=fold:punct=drop:space=keep", NULL, PAGE);
    prints("simhash7:sample=4:minhash=16:first=9:punct=keep:case=keep:weight=sqrt:hash=md5:words=2", NULL,
           "simhash7:words=2:hash=md5:weight=sqrt:case=keep:punct=keep:first=9:minhash=16:sample=4");
    prints("simhash128:space=drop:chars=3", NULL, "simhash128:chars=3:hash=fast:weight=tf:space=drop");
    prints("simhash64:hash=SHA256", NULL, "simhash64:words=5:hash=sha256:weight=tf");
    prints("simhash64:hash=blake2b512:weight=tf2", NULL, "simhash64:words=5:hash=blake2b512:weight=tf2");
    prints("simhash064:words=0005", NULL, PAGE);
}

static void every_limit_of_a_number(void **state) {
    (void)state;
    prints("simhash1:words=1:first=1:minhash=1:sample=1", NULL,
           "simhash1:words=1:hash=fast:weight=tf:first=1:minhash=1:sample=1");
    prints("simhash128:chars=1000:first=9223372036854775807:minhash=65536:sample=4294967295", NULL,
           "simhash128:chars=1000:hash=fast:weight=tf:first=9223372036854775807:minhash=65536:sample=4294967295");
}

static void every_width(void **state) {
    (void)state;
    char text[40];
    for (int bits = 1; bits <= 128; bits++) {
        snprintf(text, sizeof text, "simhash%d", bits);
        if (bits <= 64 || bits == 128) {
            doppel_recipe *recipe = parse(text, NULL);
            assert_int_equal(doppel_recipe_bits(recipe), bits);
            doppel_recipe_free(recipe);
        } else {
            refused(text, NULL, text, "1 to 64 or 128");
        }
    }
}

static void every_weight_but_tfidf_needs_nothing(void **state) {
    (void)state;
    static const char *const weights[] = {"tf", "set", "sqrt", "tf2"};
    for (size_t i = 0; i < 4; i++) {
        char text[80];
        snprintf(text, sizeof text, "simhash64:words=5:hash=fast:weight=%s", weights[i]);
        prints(text, NULL, text);
    }
}

/* ---- what is wrong ---- */

static void a_head_that_is_no_recipe(void **state) {
    (void)state;
    static const char *const heads[] = {"simhash",     "simhash0",   "simhash65",  "simhash129",
                                        "simhash-1",   "simhash6 4", "simhash64 ", "Simhash64",
                                        "simhash64x:", "pages",      "PAGE",       "simhash99999999999999999999",
                                        "minhash64"};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        char head[40];
        snprintf(head, sizeof head, "%.*s", (int)strcspn(heads[i], ":"), heads[i]);
        refused(heads[i], NULL, head, "page, article, literal");
    }
    refused("", NULL, "", "1 to 64 or 128");
}

static void a_name_takes_no_parts(void **state) {
    (void)state;
    refused("page:minhash=128", NULL, "page", "simhash64:words=5:hash=fast:weight=tf");
}

static void an_unknown_part_is_named_with_those_there_are(void **state) {
    (void)state;
    static const char *const parts[] = {"word=5", "words", "Words=5", "=5", "", "words =5", "wordss=1"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char text[80];
        snprintf(text, sizeof text, "simhash64:hash=fast:%s", parts[i]);
        doppel_error error;
        doppel_recipe *recipe;
        assert_int_equal(doppel_recipe_parse(text, NULL, &recipe, &error), DOPPEL_ERROR_USAGE);
        assert_int_equal(error.position, 21);
        assert_non_null(strstr(error.message, parts[i]));
        assert_non_null(strstr(error.message, "words=, chars=, hash=, weight=, case=, punct=, space=, first=, stop=, "
                                              "df=, minhash=, sample=, unicode="));
    }
}

static void a_value_that_makes_no_sense_is_named_with_what_does(void **state) {
    (void)state;
    static const struct {
        const char *part, *allowed;
    } cases[] = {
        {"words=0", "words= takes a number of words from 1 to 1000"},
        {"words=1001", "from 1 to 1000"},
        {"words=", "from 1 to 1000"},
        {"words=five", "from 1 to 1000"},
        {"words=5x", "from 1 to 1000"},
        {"words= 5", "from 1 to 1000"},
        {"words=+5", "from 1 to 1000"},
        {"words=-5", "from 1 to 1000"},
        {"words=5.0", "from 1 to 1000"},
        {"words=18446744073709551621", "from 1 to 1000"},
        {"chars=0", "chars= takes a number of code points from 1 to 1000"},
        {"hash=nonsense", "fast, xxh3, murmur3, jenkins, djb2, md5, sha1, sha256"},
        {"hash=", "fast, xxh3"},
        {"weight=idf", "tf, set, sqrt, tf2 or tfidf"},
        {"weight=TF", "tf, set, sqrt, tf2 or tfidf"},
        {"case=lower", "fold or keep"},
        {"punct=", "drop or keep"},
        {"space=none", "keep or drop"},
        {"first=0", "at least 1"},
        {"first=9223372036854775808", "at least 1"},
        {"stop=12", "16 lower-case hexadecimal digits"},
        {"stop=0123456789ABCDEF", "16 lower-case hexadecimal digits"},
        {"df=0123456789abcdefa", "16 lower-case hexadecimal digits"},
        {"minhash=0", "1 to 65536"},
        {"minhash=65537", "1 to 65536"},
        {"sample=0", "1 to 4294967295"},
        {"sample=4294967296", "1 to 4294967295"},
        {"unicode=", "such as 15.0.0"},
        {"unicode=new", "such as 15.0.0"},
        {"unicode=1.1.1.1.1.1.1.1.1.1.1.1.1", "such as 15.0.0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[120];
        snprintf(text, sizeof text, "simhash64:%s:punct=drop", cases[i].part);
        refused(strncmp(cases[i].part, "punct", 5) ? text : "simhash64:punct=", NULL, cases[i].part, cases[i].allowed);
    }
}

static void a_part_that_is_given_twice(void **state) {
    (void)state;
    refused("simhash64:hash=fast:hash=xxh3", NULL, "hash=xxh3", "given once");
    refused("simhash64:words=5:chars=3", NULL, "chars=3", "given once");
    refused("simhash64:chars=3:words=5", NULL, "words=5", "given once");
    refused("simhash64:words=4:words=5", NULL, "words=5", "given once");
}

static void a_long_part_leaves_room_for_what_is_allowed(void **state) {
    (void)state;
    char text[3000] = "simhash64:hash=";
    memset(text + strlen(text), 'x', 2000);
    doppel_recipe *recipe;
    doppel_error error;
    assert_int_equal(doppel_recipe_parse(text, NULL, &recipe, &error), DOPPEL_ERROR_USAGE);
    assert_int_equal(error.position, 11);
    assert_non_null(strstr(error.message, "fast, xxh3"));
}

/* Parts that are right by themselves. */
static void unlike(const char *text, const doppel_recipe_parts *parts, const char *message) {
    doppel_recipe *recipe;
    doppel_error error;
    assert_int_equal(doppel_recipe_parse(text, parts, &recipe, &error), DOPPEL_ERROR_USAGE);
    assert_null(recipe);
    if (!strstr(error.message, message)) {
        print_error("%s: `%s` lacks `%s`\n", text, error.message, message);
        fail();
    }
}

static void parts_that_do_not_go_together(void **state) {
    (void)state;
    const doppel_recipe_parts stop = {.size = sizeof stop, .stop_words.data = "the", .stop_words.length = 3};
    unlike("simhash64:words=5:space=drop", NULL, "space=drop goes with chars=");
    unlike("simhash64:chars=5", &stop, "stop words go with words=");
    unlike("simhash64:chars=5:stop=0123456789abcdef", NULL, "stop words go with words=");
    unlike("simhash64:df=0123456789abcdef", NULL, "df= goes with weight=tfidf");
    unlike("simhash64:weight=tfidf", NULL, "needs a document-frequency table");
    unlike("simhash64:weight=tfidf:df=0123456789abcdef", NULL, "needs a document-frequency table");
}

static void a_digest_of_several_names_prints_one(void **state) {
    (void)state;
    prints("simhash64:hash=sha2-256", NULL, "simhash64:words=5:hash=sha256:weight=tf");
    prints("simhash64:hash=SHA-512", NULL, "simhash64:words=5:hash=sha512:weight=tf");
    prints("simhash64:hash=blake2b-512", NULL, "simhash64:words=5:hash=blake2b512:weight=tf");
    prints("simhash64:hash=Fast", NULL, PAGE);
    /* A digest of any length has no first 8 bytes of its own. */
    refused("simhash64:hash=shake128", NULL, "hash=shake128", "hash= takes fast");
}

/* ---- stop words ---- */

static void a_stop_list_without_words_is_none(void **state) {
    (void)state;
    const doppel_recipe_parts parts = {.size = sizeof parts, .stop_words.data = " ...\n", .stop_words.length = 5};
    prints("page", &parts, PAGE);
}

static void stop_words_are_named_by_their_hash(void **state) {
    (void)state;
    const doppel_recipe_parts one = {.size = sizeof one, .stop_words.data = "the of", .stop_words.length = 6};
    const doppel_recipe_parts same = {.size = sizeof one, .stop_words.data = " OF\nthe, of", .stop_words.length = 11};
    const doppel_recipe_parts other = {.size = sizeof one, .stop_words.data = "the", .stop_words.length = 3};
    doppel_recipe *recipe = parse("page", &one);
    const char *text = doppel_recipe_text(recipe);
    /* XXH3 of "of the" */
    uint64_t hash;
    char want[100];
    assert_int_equal(doppel_hash("xxh3", doppel_slice_of("of the"), 0, &hash), DOPPEL_OK);
    snprintf(want, sizeof want, PAGE ":stop=%016llx", (unsigned long long)hash);
    assert_string_equal(text, want);
    prints(text, &one, text);
    prints("page", &same, text);
    prints(text, &same, text);
    unlike(text, &other, "but the stop words given are stop=");
    unlike(text, NULL, "needs its list of stop words");
    doppel_recipe_free(recipe);
}

static void stop_words_are_copied(void **state) {
    (void)state;
    char list[] = "rose is";
    const doppel_recipe_parts parts = {.size = sizeof parts, .stop_words.data = list, .stop_words.length = 7};
    doppel_recipe *recipe = parse("simhash64:words=1", &parts);
    memset(list, 'x', sizeof list);
    doppel_sketcher *sketcher;
    doppel_sketch sketch;
    assert_int_equal(doppel_sketcher_create(recipe, DOPPEL_WANT_TEXT, &sketcher, NULL), DOPPEL_OK);
    assert_int_equal(doppel_sketcher_run(sketcher, doppel_slice_of("A rose is a rose"), &sketch), DOPPEL_OK);
    assert_int_equal(sketch.text.length, 3);
    assert_memory_equal(sketch.text.data, "a a", 3);
    doppel_sketcher_free(sketcher);
    doppel_recipe_free(recipe);
}

/* ---- Unicode ---- */

static void another_unicode_version_warns_with_both(void **state) {
    (void)state;
    doppel_recipe *recipe = parse(PAGE ":unicode=9.1.0", NULL);
    const char *warning = doppel_recipe_warning(recipe);
    assert_non_null(warning);
    assert_non_null(strstr(warning, "9.1.0"));
    assert_non_null(strstr(warning, doppel_unicode_version()));
    assert_string_equal(doppel_recipe_text(recipe), PAGE ":unicode=9.1.0");
    doppel_recipe_free(recipe);
}

static void the_same_unicode_version_does_not_warn(void **state) {
    (void)state;
    char text[100];
    snprintf(text, sizeof text, PAGE ":unicode=%s", doppel_unicode_version());
    doppel_recipe *recipe = parse(text, NULL);
    assert_null(doppel_recipe_warning(recipe));
    assert_string_equal(doppel_recipe_text(recipe), PAGE);
    doppel_recipe_free(recipe);
}

static void free_takes_null(void **state) {
    (void)state;
    doppel_recipe_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_stand_for_recipes),
        cmocka_unit_test(parts_have_defaults_and_one_order),
        cmocka_unit_test(every_limit_of_a_number),
        cmocka_unit_test(every_width),
        cmocka_unit_test(every_weight_but_tfidf_needs_nothing),
        cmocka_unit_test(a_head_that_is_no_recipe),
        cmocka_unit_test(a_name_takes_no_parts),
        cmocka_unit_test(an_unknown_part_is_named_with_those_there_are),
        cmocka_unit_test(a_value_that_makes_no_sense_is_named_with_what_does),
        cmocka_unit_test(a_part_that_is_given_twice),
        cmocka_unit_test(a_long_part_leaves_room_for_what_is_allowed),
        cmocka_unit_test(parts_that_do_not_go_together),
        cmocka_unit_test(stop_words_are_named_by_their_hash),
        cmocka_unit_test(stop_words_are_copied),
        cmocka_unit_test(a_stop_list_without_words_is_none),
        cmocka_unit_test(a_digest_of_several_names_prints_one),
        cmocka_unit_test(another_unicode_version_warns_with_both),
        cmocka_unit_test(the_same_unicode_version_does_not_warn),
        cmocka_unit_test(free_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

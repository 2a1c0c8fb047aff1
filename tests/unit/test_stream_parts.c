/* test_stream_parts.c - parts of the stream by themselves: a member added to an object, properties, options, ids,
 * times. */
#include "support.h"

#include "stream/figures.h"
#include "stream/parts.h"
#include "stream/settings.h"
#include "stream/verdict_member.h"

#include <stdio.h>

static void check_object(const char *object, const char *expected) {
    text_buffer to = {0};
    const doppel_slice value = {"{\"a\":1}", 7};
    bool made = object_with(&to, (doppel_slice){object, strlen(object)}, "k", value);
    assert_int_equal(made, expected != NULL);
    if (expected) {
        assert_int_equal(to.length, strlen(expected));
        assert_memory_equal(to.data, expected, to.length);
    } else {
        assert_int_equal(to.length, 0);
    }
    text_free(&to);
}

static void test_member_is_added_at_the_end(void **state) {
    (void)state;
    check_object("{}", "{\"k\":{\"a\":1}}");
    check_object(" \n{ \t}\r\n", " \n{\"k\":{\"a\":1} \t}\r\n");
    check_object("{\"x\":1}", "{\"x\":1,\"k\":{\"a\":1}}");
    check_object(" {\"x\" : {\"y\":[]} }\n", " {\"x\" : {\"y\":[]},\"k\":{\"a\":1} }\n");
    check_object("{\"x\":\"}\"}", "{\"x\":\"}\",\"k\":{\"a\":1}}");
    check_object("{\"k\":0}", "{\"k\":0,\"k\":{\"a\":1}}");
}

static void test_what_is_no_object_stays_out(void **state) {
    (void)state;
    static const char *const none[] = {"", " ", "{", "}", "[]", "17", "{ ", "}{"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        check_object(none[i], NULL);
}

static void test_member_with_a_strange_name(void **state) {
    (void)state;
    text_buffer to = {0};
    assert_true(object_with(&to, (doppel_slice){"{}", 2}, "a\"b\n", (doppel_slice){"1", 1}));
    assert_memory_equal(to.data, "{\"a\\\"b\\n\":1}", to.length);
    text_free(&to);
}

static void test_properties_are_read(void **state) {
    (void)state;
    property p;
    char why[200];
    assert_true(property_read(&p, "linger.ms=5", why, sizeof why));
    assert_true(p.consumer && p.producer);
    assert_string_equal(p.name, "linger.ms");
    assert_string_equal(p.value, "5");
    assert_true(property_read(&p, "consumer.fetch.min.bytes=", why, sizeof why));
    assert_true(p.consumer && !p.producer);
    assert_string_equal(p.value, "");
    assert_true(property_read(&p, "producer.sasl.password=a=b", why, sizeof why));
    assert_true(!p.consumer && p.producer);
    assert_string_equal(p.value, "a=b");
    assert_true(property_read(&p, "client.id = some one", why, sizeof why));
    assert_string_equal(p.name, "client.id");
    assert_string_equal(p.value, "some one");
}

static void test_properties_that_break_promises_are_refused(void **state) {
    (void)state;
    static const char *const refused[] = {"enable.auto.commit=true",
                                          "consumer.isolation.level=read_uncommitted",
                                          "producer.enable.idempotence=false",
                                          "acks=1",
                                          "transactional.id=x",
                                          "group.id=x",
                                          "bootstrap.servers=x",
                                          "partition.assignment.strategy=cooperative-sticky"};
    property p;
    char why[200];
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_false(property_read(&p, refused[i], why, sizeof why));
        assert_non_null(strstr(why, "cannot be set: "));
    }
    static const char *const wrong[] = {"", "=", "=x", "linger.ms", "consumer.=1", "consumer."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(property_read(&p, wrong[i], why, sizeof why));
    char longest[400];
    memset(longest, 'a', sizeof longest);
    memcpy(longest + sizeof longest - 3, "=1", 3);
    assert_false(property_read(&p, longest, why, sizeof why));
}

static void test_ids_come_once(void **state) {
    (void)state;
    id_set set;
    doppel_document pages[200];
    char names[200][8];
    assert_true(id_set_open(&set, 200));
    for (int i = 0; i < 200; i++) {
        int length = snprintf(names[i], sizeof names[i], "%d", i);
        pages[i] = (doppel_document){.id.data = names[i], .id.length = (size_t)length};
        assert_false(id_set_has(&set, names[i], (size_t)length));
        assert_null(id_set_add(&set, &pages[i]));
    }
    for (int i = 0; i < 200; i++) {
        doppel_document again = {.id.data = names[i], .id.length = strlen(names[i])};
        assert_ptr_equal(id_set_add(&set, &again), &pages[i]);
        assert_true(id_set_has(&set, names[i], strlen(names[i])));
    }
    id_set_clear(&set);
    assert_false(id_set_has(&set, "1", 1));
    id_set_free(&set);
}

static void test_times_fall_into_buckets(void **state) {
    (void)state;
    times t = {0};
    assert_true(times_share(&t, 0.5) == 0);
    for (int i = 0; i < 90; i++)
        times_add(&t, 1500);
    for (int i = 0; i < 10; i++)
        times_add(&t, 3000000000);
    assert_true(times_share(&t, 0.5) == 2e-3);
    assert_true(times_share(&t, 0.99) > 100);
    text_buffer out = {0};
    times_write(&out, &t, "x", "What.");
    text_add(&out, "", 1);
    assert_non_null(strstr(out.data, "doppel_x_bucket{le=\"0.002\"} 90\n"));
    assert_non_null(strstr(out.data, "doppel_x_bucket{le=\"+Inf\"} 100\n"));
    assert_non_null(strstr(out.data, "doppel_x_count 100\n"));
    text_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_member_is_added_at_the_end),
        cmocka_unit_test(test_what_is_no_object_stays_out),
        cmocka_unit_test(test_member_with_a_strange_name),
        cmocka_unit_test(test_properties_are_read),
        cmocka_unit_test(test_properties_that_break_promises_are_refused),
        cmocka_unit_test(test_ids_come_once),
        cmocka_unit_test(test_times_fall_into_buckets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_against.c - what an index said of documents: reasons as files number them. */
#include "support.h"

#include "batch/batch.h"

/* docs/FORMAT.md section 12. */
static void kinds_are_those_of_files(void **state) {
    (void)state;
    assert_int_equal(dp_match_kind(DOPPEL_REASON_NONE, false), 0);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_URL, false), 1);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_URL, true), 1);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_CONTENT, true), 2);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_CONTENT, false), 3);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_TITLE, false), 4);
    assert_int_equal(dp_match_kind(DOPPEL_REASON_TITLE, true), 4);
}

static void kinds_have_reasons(void **state) {
    (void)state;
    static const doppel_reason reasons[DP_MATCH_KINDS] = {DOPPEL_REASON_NONE, DOPPEL_REASON_URL, DOPPEL_REASON_CONTENT,
                                                          DOPPEL_REASON_CONTENT, DOPPEL_REASON_TITLE};
    for (uint8_t kind = 0; kind < DP_MATCH_KINDS; kind++)
        assert_int_equal(dp_match_reason(kind), reasons[kind]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_are_those_of_files),
        cmocka_unit_test(kinds_have_reasons),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* test_page_faults.c - pages without memory: a clear error, no leak, and the same call works afterwards. */
#include "faults.h"

#include <libxml/xmlmemory.h>

/* ---- the parser's own allocations ---- */

/* The parser leaks some of what it has when it gets no more. What the library has is counted by faults.h. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}

static void *parser_malloc(size_t size) {
    return fails(CRYPTO) ? NULL : __real_malloc(size);
}

static void *parser_realloc(void *old, size_t size) {
    return fails(CRYPTO) ? NULL : __real_realloc(old, size);
}

static char *parser_strdup(const char *text) {
    return fails(CRYPTO) ? NULL : __real_strdup(text);
}

static void parser_free(void *given) {
    __real_free(given);
}

/* ---- pages ---- */

static const char page_utf8[] =
    "<html lang=en><title>On whales</title><link rel=canonical href=c><nav>a\1b</nav><noscript><p></noscript>"
    "<main><p class=x>Whales breathe air.<p>They have lungs.<ul><li><a href=x>and</a></ul></main><footer>f</footer>";
static const char page_latin1[] = "<meta charset=latin1><p>caf\xE9 \x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80";

static doppel_status read_page(const char *html, size_t length, uint64_t *result) {
    doppel_page_reader *reader = NULL;
    doppel_page page;
    doppel_status status = doppel_page_reader_create(&reader);
    if (status == DOPPEL_OK)
        status = doppel_page_read(reader, (doppel_slice){html, length}, NULL, DOPPEL_CONTENT_MAIN, &page);
    int kinds = pause_faults();
    if (status == DOPPEL_OK)
        *result = mixed(mixed(page.text.length, page.title.length), page.canonical.length + page.language.length);
    resume_faults(kinds);
    doppel_page_reader_free(reader);
    return status;
}

static doppel_status read_utf8(uint64_t *result) {
    return read_page(page_utf8, sizeof page_utf8 - 1, result);
}

static doppel_status read_latin1(uint64_t *result) {
    return read_page(page_latin1, sizeof page_latin1 - 1, result);
}

static void pages(void **state) {
    (void)state;
    static const scenario scenarios[] = {read_utf8, read_latin1};
    for (size_t i = 0; i < 2; i++) {
        run_with(scenarios[i], (fault_plan){.kinds = MEMORY, .expected = DOPPEL_ERROR_MEMORY});
        run_with(scenarios[i], (fault_plan){.kinds = MEMORY, .go_on = true, .expected = DOPPEL_ERROR_MEMORY});
    }
}

/* The parser goes without what it has no memory for; the library says so. */
static void a_parser_without_memory(void **state) {
    (void)state;
    uint64_t truth = 0, result = 0;
    assert_int_equal(read_utf8(&truth), DOPPEL_OK);
    for (size_t n = 1; n == 1 || faults.calls >= n - 1; n++)
        for (int go_on = 0; go_on < 2; go_on++) {
            fault_plan plan = {.kinds = CRYPTO, .go_on = go_on};
            doppel_status status = run_into(read_utf8, &plan, n, &result);
            assert_true(status == DOPPEL_ERROR_MEMORY || (status == DOPPEL_OK && result == truth));
        }
}

static int use_parser(void **state) {
    (void)state;
    return xmlMemSetup(parser_free, parser_malloc, parser_realloc, parser_strdup);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages),
        cmocka_unit_test(a_parser_without_memory),
    };
    return cmocka_run_group_tests(tests, use_parser, NULL);
}

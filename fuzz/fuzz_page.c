/* fuzz_page.c - any bytes as a page. The first byte chooses the content and the carrier's charset; the rest is the
 * page.
 *
 * Text, title and links are valid UTF-8 without control characters; white space is only between words; every word of
 * the main content is a word of the whole page; and a reader gives the same for the same page again. */
#include "fuzz.h"

#include "base/base.h"

#include <string.h>

static const char *const carriers[] = {NULL,     "utf-8",   "latin1",  "shift_jis",
                                       "utf-16", "gb18030", "nothing", "iso-2022-jp"};

static bool is_space(uint8_t c) {
    return c == ' ' || c == '\n';
}

/* What the reader guarantees of a text. `lines`: line feeds may separate words, too. */
static void check_text(const char *text, size_t length, bool lines) {
    const uint8_t *p = (const uint8_t *)(text ? text : ""), *end = p + length;
    for (bool space = true; p < end;) {
        int32_t code_point;
        bool now = is_space(*p);
        CHECK(!now || (!space && p + 1 < end && (lines || *p == ' ')));
        CHECK(now || *p >= 0x20);
        space = now;
        p += dp_utf8_decode(p, end, &code_point);
        CHECK(code_point >= 0);
    }
}

static void check_page(const doppel_page *page) {
    CHECK(page->text.data && page->charset);
    CHECK(!page->title.data == !page->title.length && !page->canonical.data == !page->canonical.length &&
          !page->language.data == !page->language.length);
    check_text(page->text.data, page->text.length, true);
    check_text(page->title.data, page->title.length, false);
    check_text(page->canonical.data, page->canonical.length, false);
    check_text(page->language.data, page->language.length, false);
}

/* The number of bytes of a text that are not white space. */
static size_t inked(const doppel_page *page) {
    size_t count = 0;
    for (size_t i = 0; i < page->text.length; i++)
        count += !is_space((uint8_t)page->text.data[i]);
    return count;
}

/* A sum that differs with any byte. */
static uint64_t sum_of(const doppel_page *page) {
    uint64_t sum = page->text.length + page->title.length * 3 + page->canonical.length * 5 + page->language.length * 7;
    for (size_t i = 0; i < page->text.length; i++)
        sum = sum * 0x9E3779B97F4A7C15u + (uint8_t)page->text.data[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    const char *html = (const char *)data + 1, *carrier = carriers[data[0] % 8];
    doppel_page_reader *reader;
    doppel_page page;
    CHECK(!doppel_page_reader_create(&reader));
    CHECK(!doppel_page_read(reader, (doppel_slice){html, size - 1}, carrier, DOPPEL_CONTENT_ALL, &page));
    check_page(&page);
    size_t all = inked(&page);
    CHECK(!doppel_page_read(reader, (doppel_slice){html, size - 1}, carrier, DOPPEL_CONTENT_MAIN, &page));
    check_page(&page);
    CHECK(inked(&page) <= all);
    uint64_t sum = sum_of(&page);
    CHECK(!doppel_page_read(reader, (doppel_slice){html, size - 1}, carrier, DOPPEL_CONTENT_MAIN, &page));
    CHECK(sum == sum_of(&page));
    doppel_page_reader_free(reader);
    return 0;
}

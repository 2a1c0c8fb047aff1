/* test_page.c - HTML to content: what is text, what parts words, what the page says of itself; main content. */
#include "support.h"

#include "doppel.h"

#include <stdio.h>

/* ---- reading ---- */

static doppel_page_reader *reader;

static int open_reader(void **state) {
    (void)state;
    return doppel_page_reader_create(&reader) != DOPPEL_OK;
}

static int close_reader(void **state) {
    (void)state;
    doppel_page_reader_free(reader);
    return 0;
}

/* Reads a page from memory that ends at a guard. */
static doppel_page read_page(const char *html, size_t length, doppel_content content) {
    guarded memory = guarded_create(length + 1);
    doppel_page page;
    assert_int_equal(
        doppel_page_read(reader, (doppel_slice){guarded_copy(memory, html, length), length}, NULL, content, &page),
        DOPPEL_OK);
    /* Nothing but the charset's name may be borrowed from the bytes: they go away. */
    guarded_free(memory);
    return page;
}

static void check_slice(const char *data, size_t length, const char *expected) {
    if (!expected) {
        assert_null(data);
        return;
    }
    assert_non_null(data);
    if (length != strlen(expected) || memcmp(data, expected, length) != 0)
        fail_msg("\"%.*s\" is not \"%s\"", (int)length, data, expected);
}

static void check(const char *html, doppel_content content, const char *expected) {
    doppel_page page = read_page(html, strlen(html), content);
    check_slice(page.text.data, page.text.length, expected);
}

static void all(const char *html, const char *expected) {
    check(html, DOPPEL_CONTENT_ALL, expected);
}

static void main_part(const char *html, const char *expected) {
    check(html, DOPPEL_CONTENT_MAIN, expected);
}

/* ---- what parts words ---- */

static void inline_elements_join(void **state) {
    (void)state;
    all("<p>one<b>two</b><i>three</i> <span>four</span>five", "onetwothree fourfive");
    all("<a href=x>one</a><a href=y>two</a>", "onetwo");
    all("un<wbr>break<unknown>able</unknown>", "unbreakable");
}

static void blocks_part(void **state) {
    (void)state;
    all("<p>one<p>two<div>three</div>four", "one\ntwo\nthree\nfour");
    all("one<br>two<br/>three<hr>four", "one\ntwo\nthree\nfour");
    all("<ul><li>one<li>two</ul><ol><li>three</ol>", "one\ntwo\nthree");
    all("<h1>one</h1>two<pre>three\nfour</pre>", "one\ntwo\nthree four");
    all("<my-card>one</my-card><my-card>two</my-card>", "one\ntwo");
    all("<dl><dt>one<dd>two</dl><blockquote>three</blockquote>", "one\ntwo\nthree");
}

static void cells_part(void **state) {
    (void)state;
    all("<table><tr><td>a</td><td>b</td></tr><tr><th>c<td>d</table>", "a b\nc d");
    all("<select><option>a<option>b</select>c", "a b c");
}

static void white_space_is_one_space(void **state) {
    (void)state;
    all(" \n one \t\r\n two <b> three</b>\n<p>\n\n four \n", "one two three\nfour");
    all("one\ftwo", "one two");
    all("", "");
    all(" \n", "");
    all("<p></p><div> </div>", "");
}

/* ---- what is text ---- */

static void scripts_and_their_like_are_no_text(void **state) {
    (void)state;
    all("a<script>b</script>c<style>d</style>e", "ace");
    all("a<script>document.write('<p>x</p></div>')</script>b", "ab");
    all("a<template><p>b</p></template>c", "ac");
    all("a<noscript>b</noscript>c<iframe>d</iframe>e<object>f</object>g", "aceg");
    all("a<svg><title>b</title><text>c</text></svg>d<canvas>e</canvas>f", "adf");
    all("a<textarea>b</textarea>c<audio>d</audio><video>e</video>f", "acf");
    all("a<img src=x alt='b'>c<input value=d>e", "ac e");
    all("<ruby>a<rp>(</rp><rt>b</rt><rp>)</rp></ruby>", "ab");
}

static void hidden_parts_are_no_text(void **state) {
    (void)state;
    all("a<p hidden>b</p>c", "a\nc");
    all("a<p hidden=until-found>b</p>c", "a\nb\nc");
    all("a<span aria-hidden=true>b</span>c<span aria-hidden=false>d</span>", "acd");
    all("a<span style='display:none'>b</span>c", "ac");
    all("a<span style='color: red; DISPLAY : None !important'>b</span>c", "ac");
    all("a<span style='visibility:hidden'>b</span>c", "ac");
    all("a<span style='x-display:none'>b</span><span style='display:block'>c</span>", "abc");
    all("a<dialog>b</dialog><dialog open>c</dialog>", "a\nc");
    all("<div hidden>a<p>b<span>c</div>d", "d");
}

static void comments_and_marks_are_no_text(void **state) {
    (void)state;
    all("a<!-- b > c -->d<!---->e", "ade");
    all("a<!--[if IE]>b<![endif]-->c<![if !IE]>d<![endif]>e", "acde");
    all("<?xml version='1.0'?><!DOCTYPE html>a<?php b ?>c", "ac");
    all("a<!b>c<!>d", "acd");
    all("a<!-- never closed", "a");
}

static void cdata_is_text(void **state) {
    (void)state;
    all("a<![CDATA[b]]>", "ab]]>");
    all("<script>//<![CDATA[\na\n//]]></script>b", "b");
}

static void entities_are_characters(void **state) {
    (void)state;
    all("AT&amp;T &lt;b&gt; &quot;x&quot; &apos;", "AT&T <b> \"x\" '");
    all("&eacute;&#233;&#xE9;&#Xe9;", "\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9");
    all("a&nbsp;b", "a\xC2\xA0"
                    "b");
    all("a & b &unknown; &#0; &#x110000; &#xD800;", "a & b &unknown;");
    all("&#128512;", "\xF0\x9F\x98\x80");
    all("<p title='&lt;p&gt;a'>b", "b");
}

static void control_characters_vanish(void **state) {
    (void)state;
    doppel_page page = read_page("a\0b\1c<p\0>d\0", 12, DOPPEL_CONTENT_ALL);
    check_slice(page.text.data, page.text.length, "abc\nd");
}

/* ---- broken pages ---- */

static void broken_nesting(void **state) {
    (void)state;
    all("<b>a<i>b</b>c</i>d", "abcd");
    all("</p></div>a</table><td>b", "a\nb");
    all("<p>a<table><tr>b<td>c", "a\nb c");
    all("<title>t<body>", "");
    all("<head><title>t</title><main>a</main>", "a");
    all("a</body>b</html>c<p>d", "a\nb\nc\nd");
    all("<html><body>a<html><body>b", "ab");
}

static void unfinished_tags(void **state) {
    (void)state;
    static const char *const ends[] = {"<",         "</",      "<!",  "<!-",      "<p",        "<p a",
                                       "<p a=",     "<p a='",  "</p", "<script>", "<![CDATA[", "<!DOCTYPE",
                                       "<noscript", "<style>", "&",   "&#"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char html[32];
        snprintf(html, sizeof html, "<p>word %s", ends[i]);
        doppel_page page = read_page(html, strlen(html), DOPPEL_CONTENT_ALL);
        assert_true(page.text.length >= 4 && !memcmp(page.text.data, "word", 4));
    }
}

static void sections_end_where_they_end(void **state) {
    (void)state;
    all("<noscript><div>a</noscript><p>b", "b");
    all("<object><div>a</object><p>b", "b");
    all("<textarea><div></textarea>b", "b");
    all("<template><section><div>a</template><p>b", "b");
    main_part("<nav><div>menu</nav><p>what there is to say", "what there is to say");
    main_part("<header><section><div>menu</header><p>what there is to say", "what there is to say");
    all("<noscript>a", "");
}

/* A page of `count` times `part`, and some more. */
static doppel_page repeated(const char *part, size_t count, const char *tail) {
    size_t length = strlen(part);
    char *html = malloc(length * count + strlen(tail) + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(html + i * length, part, length);
    strcpy(html + length * count, tail);
    doppel_page page = read_page(html, strlen(html), DOPPEL_CONTENT_MAIN);
    free(html);
    return page;
}

/* Each of these would take minutes if its cost grew with its square. */
static void bombs_are_harmless(void **state) {
    (void)state;
    static const struct {
        const char *part, *tail;
    } bombs[] = {{"<div>", "word"},         {"<b>", "</i></i>word"},     {"<p>", "word"},           {"<nav>", "word"},
                 {"<a ", ">word"},          {"<textarea>", "word"},      {"<![CDATA[", "word"},     {"<![", ">word"},
                 {"<!", ">word"},           {"<table><tr><td>", "word"}, {"<a href=x><p>", "word"}, {"&amp", ";word"},
                 {"<font size=1>", "word"}, {"</div>", "word"},          {"<ul><li>", "word"},      {"<xx>", "word"}};
    for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++) {
        doppel_page page = repeated(bombs[i].part, 50000, bombs[i].tail);
        assert_true(page.text.length >= 4 || !strcmp(bombs[i].part, "<textarea>"));
    }
}

static void a_tag_of_many_attributes(void **state) {
    (void)state;
    size_t count = 200000, length = 2;
    char *html = malloc(count * 16 + 64);
    memcpy(html, "<p", 2);
    for (size_t i = 0; i < count; i++)
        length += (size_t)sprintf(html + length, " a%zu='>'", i);
    length += (size_t)sprintf(html + length, ">word");
    doppel_page page = read_page(html, length, DOPPEL_CONTENT_ALL);
    check_slice(page.text.data, page.text.length, "word");
    free(html);
}

/* ---- what the page says of itself ---- */

static void title_language_canonical(void **state) {
    (void)state;
    const char *html = "<html lang=' de-CH '><head><title>\n On &amp; <b>on</b> </title>"
                       "<link rel=stylesheet href=s.css><link href=' http://example.org/a?b&amp;c ' rel='X Canonical'>"
                       "<link rel=canonical href=second></head><title>other</title>text";
    doppel_page page = read_page(html, strlen(html), DOPPEL_CONTENT_MAIN);
    check_slice(page.title.data, page.title.length, "On & on");
    check_slice(page.language.data, page.language.length, "de-CH");
    check_slice(page.canonical.data, page.canonical.length, "http://example.org/a?b&c");
    check_slice(page.text.data, page.text.length, "text");
}

static void what_is_not_said_is_not_there(void **state) {
    (void)state;
    doppel_page page = read_page("<title> </title><svg><title>icon</title></svg>a", 47, DOPPEL_CONTENT_ALL);
    check_slice(page.title.data, page.title.length, NULL);
    check_slice(page.language.data, page.language.length, NULL);
    check_slice(page.canonical.data, page.canonical.length, NULL);
    check_slice(page.text.data, page.text.length, "a");
}

/* ---- main content ---- */

#define LONG_TEXT "Whales are mammals of the sea, and they breathe air with lungs, as all mammals do."

static void frames_drop_out(void **state) {
    (void)state;
    main_part("<header>a</header><nav>b</nav>" LONG_TEXT "<aside>c</aside><footer>d</footer>", LONG_TEXT);
    main_part("<div role=navigation>a</div><div role='Banner x'>b</div>" LONG_TEXT "<p role=contentinfo>c", LONG_TEXT);
    main_part("<div role=search>a</div>" LONG_TEXT "<div role=complementary>b</div>", LONG_TEXT);
    all("<header>a</header><nav>b</nav>c<footer>d</footer>", "a\nb\nc\nd");
}

static void headers_of_articles_stay(void **state) {
    (void)state;
    main_part("<header>a</header><article><header>b</header>" LONG_TEXT "</article>", "b\n" LONG_TEXT);
    main_part("<header>a</header><main><header>b</header>" LONG_TEXT "</main>", "b\n" LONG_TEXT);
    main_part("<div role=main><header>b</header>" LONG_TEXT "</div>", "b\n" LONG_TEXT);
}

static void names_of_frames_drop_out(void **state) {
    (void)state;
    static const char *const names[] = {"class=menu",         "id=sidebar",       "class='x main-menu'",
                                        "id=mainMenu",        "class=cookie-bar", "class=site_footer",
                                        "class=breadcrumbs",  "id=nav2",          "class='share-buttons'",
                                        "class=RelatedPosts", "class=navbar-top"};
    static const char *const others[] = {"class=menus-of-italyx", "class=navigate",   "id=shared",
                                         "class=has-sidebar",     "class='with-nav'", "class=footers",
                                         "class=content",         "class=''",         "id='12'"};
    char html[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(html, sizeof html, "<div %s>frame</div><p>%s", names[i], LONG_TEXT);
        main_part(html, LONG_TEXT);
    }
    for (size_t i = 1; i < sizeof others / sizeof *others; i++) {
        snprintf(html, sizeof html, "<div %s>frame</div><p>%s", others[i], LONG_TEXT);
        main_part(html, "frame\n" LONG_TEXT);
    }
}

static void a_name_is_no_reason_to_drop_the_page(void **state) {
    (void)state;
    main_part("<body class=nav-open>" LONG_TEXT, LONG_TEXT);
    main_part("<div class=sidebar>" LONG_TEXT "</div><p>more", LONG_TEXT "\nmore");
    main_part("<div class=menu><article>" LONG_TEXT "</article></div>", LONG_TEXT);
    main_part("<main class=related>" LONG_TEXT "</main>", LONG_TEXT);
}

#define LINK(text) "<li><a href=x>" text "</a>"

static void blocks_of_links_drop_out(void **state) {
    (void)state;
    main_part("<ul>" LINK("one") LINK("two") LINK("three") "</ul><p>" LONG_TEXT, LONG_TEXT);
    main_part("<p><a href=x>back</a> | <a href=x>up</a> | <a href=x>onwards</a><p>" LONG_TEXT, LONG_TEXT);
    main_part("<p>" LONG_TEXT "<ul>" LINK("one") LINK("two") "</ul>", LONG_TEXT "\none\ntwo");
    main_part("<ul><li><a>one</a><li><a>two</a><li><a>three</a></ul><p>" LONG_TEXT, "one\ntwo\nthree\n" LONG_TEXT);
    main_part("<ul>" LINK(LONG_TEXT) LINK(LONG_TEXT) LINK(LONG_TEXT) "</ul>", LONG_TEXT "\n" LONG_TEXT "\n" LONG_TEXT);
}

static void a_list_that_is_introduced_stays(void **state) {
    (void)state;
    main_part("<p>" LONG_TEXT " See:<ul>" LINK("one") LINK("two") LINK("three") "</ul>",
              LONG_TEXT " See:\none\ntwo\nthree");
}

static void a_page_that_is_all_frame_stays(void **state) {
    (void)state;
    main_part("<h1>Index</h1><ul>" LINK("one two three") LINK("four five six") LINK("seven eight nine") "</ul>",
              "Index\none two three\nfour five six\nseven eight nine");
    main_part("<nav>all there is</nav>", "all there is");
    main_part("<nav>all there is on this page</nav><p>x", "all there is on this page\nx");
}

static void few_words_in_a_large_frame(void **state) {
    (void)state;
    main_part("<div class=menu>" LONG_TEXT LONG_TEXT
              "</div><main>It is closed.</main><div class=footer>" LONG_TEXT LONG_TEXT LONG_TEXT "</div>",
              "It is closed.");
}

static void forms_drop_out(void **state) {
    (void)state;
    main_part(LONG_TEXT " <button>Send</button> <select><option>a<option>b</select> end", LONG_TEXT " end");
    all("a <button>Send</button>", "a Send");
}

static void white_space_stays_where_something_drops_out(void **state) {
    (void)state;
    main_part(LONG_TEXT " <span class=share>x</span>end", LONG_TEXT " end");
    main_part(LONG_TEXT "<span class=share>x</span>end", LONG_TEXT "end");
    main_part(LONG_TEXT "<div class=share>x</div>end", LONG_TEXT "\nend");
    main_part("<nav>x</nav> " LONG_TEXT "<nav>x</nav>", LONG_TEXT);
}

/* ---- documents ---- */

static void documents_of_either_form(void **state) {
    (void)state;
    const char *html = "<title>of the page</title><nav>x</nav>" LONG_TEXT;
    doppel_document document = {.text.data = "", .html.data = html, .html.length = strlen(html)};
    doppel_page page;
    assert_int_equal(doppel_document_text(reader, &document, DOPPEL_CONTENT_MAIN, &page), DOPPEL_OK);
    check_slice(page.text.data, page.text.length, LONG_TEXT);
    check_slice(page.title.data, page.title.length, "of the page");
    document.title.data = "of the record";
    document.title.length = 13;
    assert_int_equal(doppel_document_text(reader, &document, DOPPEL_CONTENT_ALL, &page), DOPPEL_OK);
    check_slice(page.text.data, page.text.length, "x\n" LONG_TEXT);
    check_slice(page.title.data, page.title.length, "of the record");
    document.text.data = "a <b> c";
    document.text.length = 7;
    assert_int_equal(doppel_document_text(reader, &document, DOPPEL_CONTENT_ALL, &page), DOPPEL_OK);
    assert_ptr_equal(page.text.data, document.text.data);
    assert_int_equal(page.text.length, 7);
}

/* A reader gives for each page what a new one gives. */
static void a_reader_remembers_nothing(void **state) {
    (void)state;
    all("<html lang=en><title>t</title><link rel=canonical href=c><nav>a", "a");
    doppel_page page = read_page("b", 1, DOPPEL_CONTENT_MAIN);
    check_slice(page.text.data, page.text.length, "b");
    assert_true(!page.title.data && !page.language.data && !page.canonical.data);
    doppel_page_reader_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inline_elements_join),
        cmocka_unit_test(blocks_part),
        cmocka_unit_test(cells_part),
        cmocka_unit_test(white_space_is_one_space),
        cmocka_unit_test(scripts_and_their_like_are_no_text),
        cmocka_unit_test(hidden_parts_are_no_text),
        cmocka_unit_test(comments_and_marks_are_no_text),
        cmocka_unit_test(cdata_is_text),
        cmocka_unit_test(entities_are_characters),
        cmocka_unit_test(control_characters_vanish),
        cmocka_unit_test(broken_nesting),
        cmocka_unit_test(unfinished_tags),
        cmocka_unit_test(sections_end_where_they_end),
        cmocka_unit_test(bombs_are_harmless),
        cmocka_unit_test(a_tag_of_many_attributes),
        cmocka_unit_test(title_language_canonical),
        cmocka_unit_test(what_is_not_said_is_not_there),
        cmocka_unit_test(frames_drop_out),
        cmocka_unit_test(headers_of_articles_stay),
        cmocka_unit_test(names_of_frames_drop_out),
        cmocka_unit_test(a_name_is_no_reason_to_drop_the_page),
        cmocka_unit_test(blocks_of_links_drop_out),
        cmocka_unit_test(a_list_that_is_introduced_stays),
        cmocka_unit_test(a_page_that_is_all_frame_stays),
        cmocka_unit_test(few_words_in_a_large_frame),
        cmocka_unit_test(forms_drop_out),
        cmocka_unit_test(white_space_stays_where_something_drops_out),
        cmocka_unit_test(documents_of_either_form),
        cmocka_unit_test(a_reader_remembers_nothing),
    };
    return cmocka_run_group_tests(tests, open_reader, close_reader);
}

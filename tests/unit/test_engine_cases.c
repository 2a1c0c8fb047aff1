/* test_engine_cases.c - a table of cases and their verdicts, for each preset, wherever an engine lives. docs/ENGINE.md
 * shows the same table: `test_engine_cases --table` prints it. An engine commits in a thread of its own. */
#include "engine_cases.h"
#include "engine_places.h"

enum { PRESETS = 3, SPELLINGS = 10 };
static const char *const presets[PRESETS] = {"general", "crawl", "article"};

typedef struct page {
    const char *url, *title, *text, *html;
} page;

typedef enum event { NOTHING, EXPIRES, REMOVED } event;

typedef struct engine_case {
    const char *name;
    page first;
    event then;
    page second;
    const char *spellings[SPELLINGS]; /* of the second's URL, in its place */
    const char *verdict[PRESETS];
} engine_case;

#define UNIQUE "unique"
#define SAME_URL "exact_url, 1.00"
#define SAME_WORDS "content_hash, 1.00"

static const engine_case cases[] = {
    {.name = "the same URL in ten spellings, each with another text",
     .first = {.url = "https://example.com/news/bridge?id=7&page=2", .text = ARTICLE},
     .second = {.text = OTHER_ARTICLE},
     .spellings = {"https://example.com/news/bridge?id=7&page=2", "http://example.com/news/bridge?id=7&page=2",
                   "https://www.example.com/news/bridge?id=7&page=2", "HTTPS://EXAMPLE.COM/news/bridge?id=7&page=2",
                   "https://example.com:443/news/bridge?id=7&page=2", "https://example.com/news/bridge?page=2&id=7",
                   "https://example.com/news/bridge/?id=7&page=2", "https://example.com/news/bridge?id=7&page=2#top",
                   "https://example.com/news/x/../%62ridge?id=7&page=2",
                   "https://example.com/news/bridge?utm_source=mail&id=7&page=2"},
     .verdict = {SAME_URL, SAME_URL, SAME_URL}},
    {.name = "the same text under another URL",
     .first = {.url = "https://example.com/bridge", .text = ARTICLE},
     .second = {.url = "https://mirror.example/a/4711", .text = ARTICLE},
     .verdict = {SAME_WORDS, SAME_WORDS, SAME_WORDS}},
    {.name = "one word of 249 changed",
     .first = {.text = ARTICLE},
     .second = {.text = ARTICLE_CHANGED},
     .verdict = {"content_hash, 0.96", "content_hash, 0.97", "content_hash, 0.98"}},
    {.name = "a paragraph moved",
     .first = {.text = ARTICLE},
     .second = {.text = ARTICLE_MOVED},
     .verdict = {"content_hash, 0.91", "content_hash, 0.91", "content_hash, 0.98"}},
    {.name = "a wire story without its dateline, with a footer",
     .first = {.text = "HARBOUR CITY, May 6 (Coast Wire) - " ARTICLE "(Reporting by A. Miller; editing by B. Stone)"},
     .second = {.text = ARTICLE FOOTER},
     .verdict = {"content_hash, 0.87", "content_hash, 0.87", "content_hash, 0.87"}},
    {.name = "other ads around the same article",
     .first = {.url = "https://example.com/bridge", .html = FRAMED("", ADS_OF_MAY, ARTICLE)},
     .second = {.url = "https://example.com/print/bridge", .html = FRAMED("", ADS_OF_JUNE, ARTICLE)},
     .verdict = {SAME_WORDS, SAME_WORDS, SAME_WORDS}},
    {.name = "the same title with a typo, and another text",
     .first = {.title = "Harbour bridge opens after nine years", .text = ARTICLE},
     .second = {.title = "Harbor bridge opens after nine years", .text = OTHER_ARTICLE},
     .verdict = {UNIQUE, UNIQUE, "title_similarity, 0.49"}},
    {.name = "the same title over half of the same text",
     .first = {.title = "Harbour bridge opens after nine years", .text = ARTICLE},
     .second = {.title = "Harbour bridge opens after nine years", .text = ARTICLE_HALF},
     .verdict = {"title_similarity, 0.76", UNIQUE, "title_similarity, 0.76"}},
    {.name = "the same title over four words",
     .first = {.title = "Harbour bridge opens after nine years", .text = ARTICLE},
     .second = {.title = "Harbour bridge opens after nine years", .text = "Read the full story"},
     .verdict = {"title_similarity, 1.00", UNIQUE, "title_similarity, 1.00"}},
    {.name = "\"Breaking News\" over two texts",
     .first = {.title = "Breaking News", .text = ARTICLE},
     .second = {.title = "Breaking News", .text = OTHER_ARTICLE},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
    {.name = "an empty page, twice",
     .first = {.url = "https://example.com/empty", .html = "<html><body></body></html>"},
     .second = {.url = "https://example.com/void", .html = "<html><body></body></html>"},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
    {.name = "a page that has expired, again",
     .first = {.url = "https://example.com/bridge", .text = ARTICLE},
     .then = EXPIRES,
     .second = {.url = "https://example.com/bridge", .text = ARTICLE},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
    {.name = "a page that was removed, again",
     .first = {.url = "https://example.com/bridge", .text = ARTICLE},
     .then = REMOVED,
     .second = {.url = "https://example.com/bridge", .text = ARTICLE},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
    {.name = "a translated page",
     .first = {.url = "https://example.com/en/bridge", .title = "Harbour bridge opened", .text = ARTICLE},
     .second = {.url = "https://example.com/de/bridge", .title = "Hafenbruecke freigegeben", .text = TRANSLATED},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
    {.name = "two pages of one template",
     .first = {.url = "https://example.com/1", .html = FRAMED("Bridge opened", ADS_OF_MAY, ARTICLE)},
     .second = {.url = "https://example.com/2", .html = FRAMED("Kilns of the hills", ADS_OF_MAY, OTHER_ARTICLE)},
     .verdict = {UNIQUE, UNIQUE, UNIQUE}},
};
enum { CASES = sizeof cases / sizeof *cases };

/* ---- running a case ---- */

static size_t length_of(const char *text) {
    return text ? strlen(text) : 0;
}

static doppel_item page_item(const char *id, const page *p) {
    doppel_item item = {.size = sizeof item};
    item.document = (doppel_document){.id.data = id,
                                      .id.length = strlen(id),
                                      .url.data = p->url,
                                      .url.length = length_of(p->url),
                                      .title.data = p->title,
                                      .title.length = length_of(p->title),
                                      .text.data = p->text,
                                      .text.length = length_of(p->text),
                                      .html.data = p->html,
                                      .html.length = length_of(p->html)};
    return item;
}

/* The verdict as the table shows it. */
static void say_short(const doppel_verdict *v, char to[64]) {
    if (v->is_duplicate)
        snprintf(to, 64, "%s, %.2f", doppel_reason_name(v->reason), v->confidence);
    else
        snprintf(to, 64, UNIQUE);
}

/* Checks and adds the second page: both say the same. */
static void ask_second(doppel_engine *engine, const page *second, char verdict[64]) {
    doppel_verdict v = {0};
    doppel_item item = page_item("second", second);
    char added[64];
    assert_int_equal(doppel_engine_check(engine, &item, &v, NULL), DOPPEL_OK);
    say_short(&v, verdict);
    if (v.is_duplicate) {
        assert_int_equal(v.original_id.length, 5);
        assert_memory_equal(v.original_id.data, "first", 5);
    }
    assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
    say_short(&v, added);
    assert_string_equal(added, verdict);
    doppel_verdict_free(&v);
}

static void begin_case(doppel_engine *engine, const engine_case *c) {
    doppel_verdict v = {0};
    doppel_item item = page_item("first", &c->first);
    bool removed = false;
    item.ttl = c->then == EXPIRES ? 3600 : 0;
    assert_int_equal(doppel_engine_add(engine, &item, &v, NULL), DOPPEL_OK);
    assert_false(v.is_duplicate);
    doppel_verdict_free(&v);
    if (c->then == EXPIRES)
        now += 3601;
    if (c->then == REMOVED) {
        assert_int_equal(doppel_engine_remove(engine, doppel_slice_of("first"), &removed, NULL), DOPPEL_OK);
        assert_true(removed);
    }
}

/* An engine that can be is closed and opened again in between. */
static void run_second(void **state, const engine_case *c, const page *second, size_t preset, char verdict[64]) {
    static int number;
    char name[32];
    const doppel_engine_options options = {.preset = presets[preset]};
    snprintf(name, sizeof name, "case-%d", number++);
    now = 1700000000;
    doppel_engine *engine = open_at(state, name, options);
    begin_case(engine, c);
    if (here->place != IN_MEMORY) {
        doppel_engine_close(engine);
        engine = open_at(state, name, options);
    }
    ask_second(engine, second, verdict);
    doppel_engine_close(engine);
}

static void run_case(void **state, const engine_case *c, size_t preset, char verdict[64]) {
    page second = c->second;
    if (!c->spellings[0])
        run_second(state, c, &second, preset, verdict);
    for (size_t i = 0; i < SPELLINGS && c->spellings[i]; i++) {
        char said[64];
        second.url = c->spellings[i];
        run_second(state, c, &second, preset, said);
        if (i)
            assert_string_equal(said, verdict);
        memcpy(verdict, said, sizeof said);
    }
}

/* ---- the table ---- */

/* A line of the document: the name of a case and its verdict by each preset. */
static void make_line(const engine_case *c, char *line, size_t room) {
    size_t length = (size_t)snprintf(line, room, "| %s |", c->name);
    for (size_t p = 0; p < PRESETS; p++) {
        char verdict[64];
        run_case(NULL, c, p, verdict);
        length += (size_t)snprintf(line + length, room - length, " %s |", verdict);
    }
    snprintf(line + length, room - length, "\n");
}

static void each_case_has_its_verdict(void **state) {
    if (strcmp(here->preset, "article") != 0)
        return; /* all presets are tried in each place, once */
    for (size_t i = 0; i < CASES; i++)
        for (size_t p = 0; p < PRESETS; p++) {
            char verdict[64];
            const char *expected = cases[i].verdict[p];
            run_case(state, &cases[i], p, verdict);
            if (strcmp(verdict, expected))
                fail_msg("%s, %s: `%s` in place of `%s`", cases[i].name, presets[p], verdict, expected);
        }
}

/* All lines, one after the other. */
static const char *make_table(void) {
    static char table[CASES * 512];
    size_t length = (size_t)snprintf(table, sizeof table, "| case | general | crawl | article |\n|---|---|---|---|\n");
    for (size_t i = 0; i < CASES; i++) {
        make_line(&cases[i], table + length, sizeof table - length);
        length += strlen(table + length);
    }
    return table;
}

static void the_document_shows_the_table(void **state) {
    if (here->place != IN_MEMORY)
        return;
    (void)state;
    static char document[1 << 16];
    FILE *file = fopen("docs/ENGINE.md", "r");
    assert_non_null(file);
    document[fread(document, 1, sizeof document - 1, file)] = 0;
    fclose(file);
    const char *table = make_table(), *found = strstr(document, table);
    if (!found || found[strlen(table)] != '\n')
        fail_msg("docs/ENGINE.md has another table than this: test_engine_cases --table prints it");
}

int main(int count, char **arguments) {
    if (count > 1 && !strcmp(arguments[1], "--table"))
        return fputs(make_table(), stdout) < 0;
    const struct CMUnitTest tests[] = {
        EVERYWHERE(each_case_has_its_verdict),
        EVERYWHERE(the_document_shows_the_table),
    };
    return run_everywhere("cases", tests, sizeof tests / sizeof *tests);
}

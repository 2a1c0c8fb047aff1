/* bench_page.c - HTML to content, compared with the bare parser that it uses: MB/s of one thread over pages given as
 * files.
 *
 *   find DIR -name '*.html' | xargs bench_page
 *
 * The bare parser calls handlers that only count, on the same bytes in the same run. */
#include "doppel.h"
#include "measure.h"

#include <libxml/HTMLparser.h>
#include <stdio.h>
#include <stdlib.h>

#define RUNS 5

typedef struct page_bytes {
    char *data;
    size_t length;
} page_bytes;

typedef struct pages {
    page_bytes *page;
    size_t count;
    double bytes;
    doppel_page_reader *reader;
    doppel_content content;
} pages;

/* ---- the bare parser ---- */

static void count_start(void *user, const xmlChar *name, const xmlChar **list) {
    (void)name;
    *(uint64_t *)user += list != NULL;
}

static void count_end(void *user, const xmlChar *name) {
    (void)name;
    *(uint64_t *)user += 1;
}

static void count_text(void *user, const xmlChar *text, int length) {
    (void)text;
    *(uint64_t *)user += (uint64_t)length;
}

static uint64_t run_parser(void *user) {
    const pages *all = user;
    uint64_t sum = 0;
    for (size_t i = 0; i < all->count; i++) {
        htmlParserCtxtPtr parser = htmlCreateMemoryParserCtxt(all->page[i].data, (int)all->page[i].length);
        if (!parser)
            bench_fail("no memory", "");
        htmlCtxtUseOptions(parser, HTML_PARSE_RECOVER | HTML_PARSE_IGNORE_ENC);
        *parser->sax = (htmlSAXHandler){.startElement = count_start,
                                        .endElement = count_end,
                                        .characters = count_text,
                                        .ignorableWhitespace = count_text};
        parser->userData = &sum;
        parser->charset = XML_CHAR_ENCODING_UTF8;
        htmlParseDocument(parser);
        htmlFreeParserCtxt(parser);
    }
    return sum;
}

/* ---- doppel ---- */

static uint64_t run_reader(void *user) {
    const pages *all = user;
    uint64_t sum = 0;
    for (size_t i = 0; i < all->count; i++) {
        doppel_page page;
        doppel_slice html = {all->page[i].data, all->page[i].length};
        if (doppel_page_read(all->reader, html, NULL, all->content, &page))
            bench_fail("cannot read a page", "");
        sum += page.text.length + page.title.length;
    }
    return sum;
}

static void load(pages *all, const char *path) {
    page_bytes *page = &all->page[all->count];
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        bench_fail("cannot read", path);
    long size = ftell(file);
    rewind(file);
    if (size <= 0 || !(page->data = malloc((size_t)size)))
        size = 0;
    page->length = size ? fread(page->data, 1, (size_t)size, file) : 0;
    fclose(file);
    all->count += page->length != 0;
    all->bytes += (double)page->length;
}

int main(int count, char **paths) {
    pages all = {.page = calloc((size_t)count, sizeof *all.page)};
    if (count < 2 || !all.page || doppel_page_reader_create(&all.reader) != DOPPEL_OK)
        bench_fail("usage: bench_page FILE...", "");
    for (int i = 1; i < count; i++)
        load(&all, paths[i]);
    bench_measure(&(bench_case){"html-bare-parser", run_parser, &all, all.bytes, RUNS});
    bench_measure(&(bench_case){"html-content-main", run_reader, &all, all.bytes, RUNS});
    all.content = DOPPEL_CONTENT_ALL;
    bench_measure(&(bench_case){"html-content-all", run_reader, &all, all.bytes, RUNS});
    for (size_t i = 0; i < all.count; i++)
        free(all.page[i].data);
    free(all.page);
    doppel_page_reader_free(all.reader);
    return 0;
}

/* page.c - pages: doppel_page_reader_create, then doppel_page_read or doppel_document_text for each. */
#include "text/page.h"

#include <libxml/parser.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>

struct doppel_page_reader {
    dp_decoder decoder;
    dp_buffer tame;
    dp_page_parts parts;
};

/* The parser's own tables, which all threads share and none writes. */
static pthread_once_t parser_once = PTHREAD_ONCE_INIT;

doppel_status doppel_page_reader_create(doppel_page_reader **reader) {
    pthread_once(&parser_once, xmlInitParser);
    *reader = calloc(1, sizeof **reader);
    return *reader ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void doppel_page_reader_free(doppel_page_reader *reader) {
    if (!reader)
        return;
    dp_decoder_close(&reader->decoder);
    dp_buffer_free(&reader->tame);
    dp_content_free(&reader->parts.content);
    dp_buffer_free(&reader->parts.title);
    dp_buffer_free(&reader->parts.canonical);
    dp_buffer_free(&reader->parts.language);
    free(reader);
}

static void give(const dp_buffer *from, bool has, const char **data, size_t *length) {
    *data = has ? from->data : NULL;
    *length = has ? from->size : 0;
}

static void give_parts(const dp_page_parts *parts, doppel_page *page) {
    page->text = parts->content.text.size ? parts->content.text.data : "";
    page->text_length = parts->content.text.size;
    give(&parts->title, parts->has_title, &page->title, &page->title_length);
    give(&parts->canonical, parts->has_canonical, &page->canonical, &page->canonical_length);
    give(&parts->language, parts->has_language, &page->language, &page->language_length);
}

doppel_status doppel_page_read(doppel_page_reader *reader, const char *html, size_t length, const char *charset,
                               doppel_content content, doppel_page *page) {
    size_t mark;
    doppel_slice text;
    *page = (doppel_page){.text = ""};
    const dp_charset *found = dp_charset_of(html, length, charset, &mark);
    if (!found)
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = dp_decoder_run(&reader->decoder, found, html + mark, length - mark, &text);
    if (status != DOPPEL_OK)
        return status;
    status = dp_page_tame(&reader->tame, &text);
    if (status == DOPPEL_OK && text.length > INT_MAX)
        status = DOPPEL_ERROR_INPUT;
    if (status == DOPPEL_OK)
        status = dp_page_parse(&reader->parts, text.data, text.length);
    if (status != DOPPEL_OK)
        return status;
    dp_content_finish(&reader->parts.content, content);
    give_parts(&reader->parts, page);
    page->charset = found->name;
    return DOPPEL_OK;
}

doppel_status doppel_document_text(doppel_page_reader *reader, const doppel_document *document, doppel_content content,
                                   doppel_page *page) {
    doppel_status status = DOPPEL_OK;
    *page = (doppel_page){.text = document->text ? document->text : "", .text_length = document->text_length};
    if (document->html && !document->text_length)
        status = doppel_page_read(reader, document->html, document->html_length, document->charset, content, page);
    if (document->title) {
        page->title = document->title;
        page->title_length = document->title_length;
    }
    return status;
}

/* report_html.h - writing a page: markup as it stands, and text from documents, which is made harmless.
 *
 * The first failure stays in `status`; calls after it do nothing. */
#ifndef REPORT_HTML_H
#define REPORT_HTML_H

#include "writing.h"

typedef struct html {
    writer *out;
    doppel_status status;
} html;

/* Markup. html_format is for numbers and fixed words: what comes from documents goes through html_text. */
void html_put(html *page, const char *markup);
void html_format(html *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text for the content of any element (not for attributes): < > & and quotes are escaped, invalid UTF-8 becomes U+FFFD,
 * and characters that control (C0, C1, those that turn the direction of writing) become visible: [U+202E]. */
void html_text(html *page, const char *text, size_t length);
void html_string(html *page, const char *text);

/* 1234567 as 1,234,567. */
void html_number(html *page, uint64_t number);
/* Bytes in the unit that suits: 3.4 MB. */
void html_bytes(html *page, uint64_t bytes);
/* A number and its noun: 1 group, 2,000 groups. */
void html_count(html *page, uint64_t number, const char *one, const char *many);

/* The style sheet (report_style.c). */
extern const char report_style[];

#endif

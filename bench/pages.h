/* pages.h - pages of 2 KB that have nothing in common, any number of them. */
#ifndef BENCH_PAGES_H
#define BENCH_PAGES_H

#include "doppel.h"

enum { BENCH_PAGE_WORDS = 300, BENCH_LONGEST_WORD = 10 };

/* `item` points into the rest. */
typedef struct bench_page {
    char id[24], url[80], title[80], text[BENCH_PAGE_WORDS * (BENCH_LONGEST_WORD + 1)];
    doppel_item item;
} bench_page;

/* Makes page `number`, always the same one; without `title` it has none. One thread at a time makes the first. */
void bench_page_make(bench_page *page, uint64_t number, bool title);

/* A number that looks random. */
uint64_t bench_mix(uint64_t number);

#endif

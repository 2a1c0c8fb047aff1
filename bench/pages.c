/* pages.c - pages of random words. */
#include "pages.h"

#include <stdio.h>
#include <string.h>

enum { LIST = 4096, LIST_BITS = 12, AT_ONCE = 64 / LIST_BITS, TITLE_WORDS = 7 };

static struct {
    char letters[LIST][BENCH_LONGEST_WORD];
    uint8_t length[LIST]; /* 0: not made yet */
} words;

uint64_t bench_mix(uint64_t x) {
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static void make_words(void) {
    for (uint64_t i = 0; i < LIST; i++) {
        uint64_t random = bench_mix(i + 1);
        words.length[i] = (uint8_t)(2 + random % (BENCH_LONGEST_WORD - 1));
        for (uint64_t k = 0; k < BENCH_LONGEST_WORD; k++)
            words.letters[i][k] = (char)('a' + bench_mix(random + k) % 26);
    }
}

/* `count` words of the list; gives their length. */
static size_t put_words(char *to, uint64_t seed, int count) {
    size_t at = 0;
    uint64_t random = 0;
    for (int i = 0; i < count; i++, random >>= LIST_BITS) {
        if (i % AT_ONCE == 0)
            random = bench_mix(seed * BENCH_PAGE_WORDS + (uint64_t)i);
        memcpy(to + at, words.letters[random % LIST], BENCH_LONGEST_WORD);
        at += words.length[random % LIST];
        to[at++] = ' ';
    }
    return at - 1;
}

void bench_page_make(bench_page *p, uint64_t number, bool title) {
    unsigned long long n = number;
    doppel_document *d = &p->item.document;
    if (!words.length[0])
        make_words();
    p->item = (doppel_item){.size = sizeof p->item};
    d->id.data = p->id;
    d->id.length = (size_t)snprintf(p->id, sizeof p->id, "document-%012llu", n);
    d->url.data = p->url;
    d->url.length = (size_t)snprintf(p->url, sizeof p->url, "https://www.site-%u.example/news/%u/page-%012llu.html",
                                     (unsigned)(bench_mix(number) % 5000), (unsigned)(bench_mix(~number) % 100), n);
    d->text.data = p->text;
    d->text.length = put_words(p->text, number + 1, BENCH_PAGE_WORDS);
    if (title) {
        d->title.data = p->title;
        d->title.length = put_words(p->title, number + (1ULL << 40), TITLE_WORDS);
    }
}

/* engine_steps.h - a long life of documents, made by chance: they come from a few ids, URLs, titles and texts, so that
 * all of them meet again: near-copies, copies by URL and by title, new versions, places they come from, removals, and
 * time that passes. */
#ifndef TESTS_ENGINE_STEPS_H
#define TESTS_ENGINE_STEPS_H

#include "support.h"

#include "doppel.h"

#include <stdio.h>

enum { WORDS = 400, TEXTS = 60, TEXT_WORDS = 50, NAMES = 1000, URLS = 300, RECENT = 100 };

typedef enum deed { ADD, CHECK, REMOVE, WAIT } deed;

/* One step, with all that its item points to. */
typedef struct step {
    deed deed;
    uint64_t seconds; /* WAIT */
    doppel_item item;
    char id[16], url[64], title[80], origin[24], text[TEXT_WORDS * 8];
    uint64_t fingerprint[2];
    uint8_t digest[32];
} step;

static inline void write_text(uint64_t *seed, char *to) {
    uint64_t base = random_below(seed, TEXTS) + 1;
    size_t changed = random_below(seed, 4), length = 0;
    size_t which[3] = {random_below(seed, TEXT_WORDS), random_below(seed, TEXT_WORDS), random_below(seed, TEXT_WORDS)};
    for (size_t i = 0; i < TEXT_WORDS; i++) {
        uint64_t word = random_below(&base, WORDS);
        for (size_t c = 0; c < changed && c < 3; c++)
            if (which[c] == i)
                word = WORDS + random_below(seed, 8);
        length += (size_t)sprintf(to + length, "%sw%u", i ? " " : "", (unsigned)word);
    }
}

/* A title of a few, sometimes with another letter. */
static inline void write_title(uint64_t *seed, char to[80]) {
    static const char *const titles[] = {"The harbour bridge was opened at last",
                                         "Potters in the hill villages",
                                         "Ferries will run until the end of the month",
                                         "A toll of two coins is due",
                                         "Trams are expected to follow",
                                         "Editor's note of the day",
                                         "Short"};
    snprintf(to, 80, "%s", titles[random_below(seed, sizeof titles / sizeof *titles)]);
    if (random_below(seed, 3) == 0)
        to[random_below(seed, strlen(to))] = (char)('a' + random_below(seed, 26));
}

/* Fingerprints that lie near each other in piles, with or without a digest. */
static inline void write_sketches(uint64_t *seed, size_t bits, step *s) {
    uint64_t pile = random_below(seed, TEXTS) + 1;
    s->fingerprint[0] = random_next(&pile) >> (bits < 64 ? 64 - bits : 0);
    s->fingerprint[1] = bits > 64 ? random_next(&pile) : 0;
    for (size_t flips = random_below(seed, 8); flips; flips--) {
        size_t bit = random_below(seed, bits);
        s->fingerprint[bit / 64] ^= 1ULL << bit % 64;
    }
    s->item.fingerprint = s->fingerprint;
    if (random_below(seed, 2)) {
        for (size_t i = 0; i < 16; i++)
            s->digest[i] = (uint8_t)(s->fingerprint[i / 8] >> 8 * (i % 8));
        s->digest[31] = 1;
        s->item.digest = s->digest;
    }
}

static inline void write_item(uint64_t *seed, size_t bits, step *s) {
    doppel_document *d = &s->item.document;
    s->item.size = sizeof s->item;
    snprintf(s->id, sizeof s->id, "d%zu", random_below(seed, NAMES));
    if (random_below(seed, 5))
        d->id.data = s->id, d->id.length = strlen(s->id);
    if (random_below(seed, 3)) {
        snprintf(s->url, sizeof s->url, "http://%zu.example/%zu", random_below(seed, 2), random_below(seed, URLS));
        d->url.data = s->url, d->url.length = strlen(s->url);
    }
    if (random_below(seed, 4) == 0) {
        write_title(seed, s->title);
        d->title.data = s->title, d->title.length = strlen(s->title);
    }
    if (random_below(seed, 4) == 0) {
        snprintf(s->origin, sizeof s->origin, "pages/0/%zu", random_below(seed, NAMES));
        s->item.origin = (doppel_slice){s->origin, strlen(s->origin)};
    }
    if (random_below(seed, 3) == 0) {
        write_sketches(seed, bits, s);
    } else if (random_below(seed, 20)) {
        write_text(seed, s->text);
        d->text.data = s->text, d->text.length = strlen(s->text);
    }
    if (random_below(seed, 10) == 0)
        s->item.ttl = 1 + random_below(seed, 200);
}

/* An earlier one again: the same, from elsewhere, at another URL, or by another name. */
static inline void write_again(uint64_t *seed, const step *from, step *s) {
    const doppel_document *had = &from->item.document;
    doppel_document *d = &s->item.document;
    size_t dice = random_below(seed, 6);
    *s = *from;
    d->id.data = had->id.data && dice != 3 ? s->id : NULL;
    d->id.length = d->id.data ? had->id.length : 0;
    d->url.data = had->url.data ? s->url : NULL;
    d->title.data = had->title.data ? s->title : NULL;
    d->text.data = had->text.data ? s->text : NULL;
    s->item.fingerprint = from->item.fingerprint ? s->fingerprint : NULL;
    s->item.digest = from->item.digest ? s->digest : NULL;
    s->item.origin.data = from->item.origin.data ? s->origin : NULL;
    if (dice == 4 && d->url.data)
        s->url[7] ^= 1;
    if (dice == 5) {
        snprintf(s->origin, sizeof s->origin, "pages/1/%zu", random_below(seed, NAMES));
        s->item.origin = (doppel_slice){s->origin, strlen(s->origin)};
    }
}

/* The next of `count` steps. */
static inline void write_step(uint64_t *seed, size_t bits, step *steps, size_t count) {
    step *s = &steps[count];
    size_t dice = random_below(seed, 100);
    *s = (step){.seconds = 0};
    if (count && random_below(seed, 4) == 0)
        write_again(seed, s - 1 - random_below(seed, count < RECENT ? count : RECENT), s);
    else
        write_item(seed, bits, s);
    s->deed = dice < 70 ? ADD : dice < 88 ? CHECK : dice < 94 ? REMOVE : WAIT;
    s->seconds = random_below(seed, 20);
}

#endif

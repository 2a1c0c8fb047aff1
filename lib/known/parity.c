/* parity.c - parities of sets, by number: pages that are found through a directory. Numbers are sifted ascending, so
 * that what is looked at stands together; a page has the parities folded to 512 bits, which drop most of what is far,
 * and leads to the whole ones. */
#include "known/parity.h"
#include "kernel/kernel.h"
#include "known/lock.h"

#include <stdlib.h>

/* Small pages: where one in 32 numbers is in a crowd, the others cost 77 bytes each. */
enum { PAGE_BITS = 5, PAGE = 1 << PAGE_BITS };
/* Words of a folded parity, and the least of a whole one. Which bit a hash falls on is told by 40 bits: no parity needs
 * more than 2^32 bits, that of a set of 8 GiB. */
enum { FOLDED = 8, MOST_BITS = 32, PLACE_SHIFT = 24 };

typedef struct parity {
    uint64_t words;        /* a power of two */
    uint64_t coarser_size; /* of a sample: its values one scale up; 0: it is a whole set */
    uint64_t bits[];       /* `words` of them; of a sample as many follow, one scale up */
} parity;

typedef struct parity_page {
    uint64_t folded[PAGE][FOLDED];
    parity *parity[PAGE]; /* NULL: it has none */
    uint32_t size[PAGE];  /* of the set; a part of a document has less than 4 GiB */
    uint8_t scale[PAGE];  /* of a sample */
    size_t count;
} parity_page;

struct dp_parities {
    pthread_rwlock_t lock;
    parity_page **page; /* by number / PAGE; NULL: it has none */
    size_t room, pages; /* of the directory; pages that are there */
    uint64_t bytes;     /* of all parities */
    uint64_t secret;    /* odd */
};

dp_parities *dp_parities_create(void) {
    dp_parities *made = calloc(1, sizeof *made);
    if (!made || !dp_lock_init(&made->lock)) {
        free(made);
        return NULL;
    }
    made->secret = dp_order_random() | 1;
    return made;
}

void dp_parities_free(dp_parities *p) {
    if (!p)
        return;
    for (size_t i = 0; i < p->room; i++) {
        for (size_t j = 0; p->page[i] && j < PAGE; j++)
            free(p->page[i]->parity[j]);
        free(p->page[i]);
    }
    free(p->page);
    pthread_rwlock_destroy(&p->lock);
    free(p);
}

uint64_t dp_parities_bytes(dp_parities *p) {
    pthread_rwlock_rdlock(&p->lock);
    uint64_t bytes = sizeof *p + p->room * sizeof *p->page + p->pages * sizeof **p->page + p->bytes;
    pthread_rwlock_unlock(&p->lock);
    return bytes;
}

/* ---- bits ---- */

/* Words for the parity of `count` hashes, 2 to 4 bits each. */
static size_t words_for(double count) {
    size_t words = FOLDED;
    while ((double)words * 64 < 2 * count && words < ((size_t)1 << MOST_BITS) / 64)
        words *= 2;
    return words;
}

static void fill(uint64_t secret, const uint64_t *set, size_t count, uint64_t *bits, size_t words) {
    memset(bits, 0, words * sizeof *bits);
    for (size_t i = 0; i < count; i++) {
        uint64_t place = (set[i] * secret >> PLACE_SHIFT) & (64 * words - 1);
        bits[place / 64] ^= (uint64_t)1 << place % 64;
    }
}

/* Halves, XORed: the parity of half as many bits. `to` may be `from`. */
static void fold(const uint64_t *from, size_t words, uint64_t *to) {
    for (size_t i = 0; i < words / 2; i++)
        to[i] = from[i] ^ from[words / 2 + i];
}

static size_t bytes_of(size_t words, bool sample) {
    return sizeof(parity) + (sample ? 2 : 1) * words * sizeof(uint64_t);
}

/* Values of a sample count twice: 4 to 8 bits each. */
static double counted(const dp_features *features) {
    return (double)features->count * (features->coarser ? 2 : 1);
}

/* ---- pages ---- */

static parity_page *find_page(const dp_parities *p, uint64_t number) {
    return number >> PAGE_BITS < p->room ? p->page[number >> PAGE_BITS] : NULL;
}

static bool is_there(const dp_parities *p, uint64_t number) {
    const parity_page *page = find_page(p, number);
    return page && page->parity[number % PAGE];
}

/* The page of a number, made if it is not there; NULL: no memory. */
static parity_page *page_of(dp_parities *p, uint64_t number) {
    size_t at = (size_t)(number >> PAGE_BITS), before = p->room;
    if (at >= p->room) {
        if (!dp_reserve(&p->page, &p->room, at + 1, sizeof *p->page))
            return NULL;
        memset(p->page + before, 0, (p->room - before) * sizeof *p->page);
    }
    if (!p->page[at] && (p->page[at] = calloc(1, sizeof **p->page)))
        p->pages++;
    return p->page[at];
}

static parity *make(const dp_parities *p, const dp_features *features) {
    size_t words = words_for(counted(features));
    parity *made = malloc(bytes_of(words, features->coarser));
    if (!made)
        return NULL;
    made->words = words;
    made->coarser_size = features->coarser_count;
    fill(p->secret, features->set, features->count, made->bits, words);
    if (features->coarser)
        fill(p->secret, features->coarser, features->coarser_count, made->bits + words, words);
    return made;
}

static void put(parity_page *page, uint64_t number, const dp_features *features, parity *made) {
    size_t at = number % PAGE;
    page->parity[at] = made;
    page->size[at] = (uint32_t)features->count;
    page->scale[at] = (uint8_t)features->scale;
    memset(page->folded[at], 0, sizeof page->folded[at]);
    for (size_t i = 0; i < made->words; i++)
        page->folded[at][i % FOLDED] ^= made->bits[i];
    page->count++;
}

bool dp_parities_add(dp_parities *p, uint64_t number, const dp_features *features, dp_alive *alive) {
    pthread_rwlock_rdlock(&p->lock);
    bool there = is_there(p, number);
    pthread_rwlock_unlock(&p->lock);
    if (there)
        return true;
    parity *made = make(p, features);
    if (!made)
        return false;
    pthread_rwlock_wrlock(&p->lock);
    parity_page *page = page_of(p, number);
    /* A number that goes meanwhile is not alive before it is removed here. */
    if (page && dp_alive_has(alive, number) && !page->parity[number % PAGE]) {
        put(page, number, features, made);
        p->bytes += bytes_of(made->words, made->coarser_size);
        made = NULL;
    }
    pthread_rwlock_unlock(&p->lock);
    free(made);
    return page;
}

void dp_parities_remove(dp_parities *p, uint64_t number) {
    pthread_rwlock_rdlock(&p->lock);
    bool there = is_there(p, number);
    pthread_rwlock_unlock(&p->lock);
    if (!there)
        return;
    pthread_rwlock_wrlock(&p->lock);
    parity_page *page = find_page(p, number);
    parity *gone = page ? page->parity[number % PAGE] : NULL;
    if (gone) {
        p->bytes -= bytes_of(gone->words, gone->coarser_size);
        page->parity[number % PAGE] = NULL;
        page->count--;
    }
    if (gone && !page->count) {
        p->page[number >> PAGE_BITS] = NULL;
        p->pages--;
        free(page);
    }
    pthread_rwlock_unlock(&p->lock);
    free(gone);
}

/* ---- sifting ---- */

/* The parities of a set in all sizes up to asked.words; that of w words stands at bits + w. */
typedef struct sizes {
    const uint64_t *bits;
    uint64_t count; /* hashes of the set */
} sizes;

/* What is asked about; of a sample at its own scale and one scale up. */
typedef struct asked {
    sizes own, coarser;
    uint64_t words;
    int scale;
    double least;
    bool sample;
    dp_differing_fn differing;
} asked;

/* The largest that a set of a similarity of `least` can need, but no more than 8 times what this one needs. */
static size_t words_asked(double count, double least) {
    size_t own = words_for(count), most = words_for(count / (least > 0.125 ? least : 0.125));
    return most < 8 * own ? most : 8 * own;
}

static sizes make_sizes(const dp_parities *p, const uint64_t *set, size_t count, uint64_t *bits, size_t words) {
    fill(p->secret, set, count, bits + words, words);
    for (; words > 1; words /= 2)
        fold(bits + words, words, bits + words / 2);
    return (sizes){bits, count};
}

static bool ask(const dp_parities *p, const dp_sift *sift, asked *a) {
    const dp_features *f = &sift->features;
    if (!dp_reserve(&sift->scratch->bits, &sift->scratch->room, 4 * a->words, sizeof *sift->scratch->bits))
        return false;
    uint64_t *bits = sift->scratch->bits;
    a->own = make_sizes(p, f->set, f->count, bits, a->words);
    if (a->sample)
        a->coarser = make_sizes(p, f->coarser, f->coarser_count, bits + 2 * a->words, a->words);
    return true;
}

/* Whether sets of these sizes whose parities differ in `ones` bits can be similar enough. The similarity is counted as
 * find.c counts it, and rises with the number that is shared, so that rounding makes no difference. */
static bool can_be(const asked *a, uint64_t mine, uint64_t theirs, uint64_t ones) {
    uint64_t both = mine + theirs, smaller = mine < theirs ? mine : theirs, shared = (both - ones) / 2;
    shared = shared < smaller ? shared : smaller;
    return (double)shared / (double)(a->sample ? smaller : both - shared) >= a->least;
}

/* The same by the whole parity, at the scale of the coarser one. */
static bool may_be_by_whole(const asked *a, const parity *whole, uint64_t size, int scale) {
    bool one_up = scale < a->scale; /* theirs is the finer one */
    const sizes *mine = scale > a->scale ? &a->coarser : &a->own;
    const uint64_t *bits = one_up ? whole->bits + whole->words : whole->bits;
    return whole->words > a->words || can_be(a, mine->count, one_up ? whole->coarser_size : size,
                                             a->differing(mine->bits + whole->words, bits, whole->words));
}

static bool may_be_near(const asked *a, const parity_page *page, size_t at) {
    int scale = page->scale[at];
    if (scale > a->scale + 1 || scale < a->scale - 1)
        return true;
    if (scale == a->scale &&
        !can_be(a, a->own.count, page->size[at], a->differing(a->own.bits + FOLDED, page->folded[at], FOLDED)))
        return false;
    return may_be_by_whole(a, page->parity[at], page->size[at], scale);
}

/* So many are asked for ahead of being looked at. */
enum { AHEAD = 8 };

void dp_parities_sift(dp_parities *p, const dp_sift *sift, dp_numbers *numbers) {
    asked a = {.words = words_asked(counted(&sift->features), sift->least),
               .scale = sift->features.scale,
               .least = sift->least,
               .sample = sift->features.coarser,
               .differing = dp_differing_kernel()};
    if (!ask(p, sift, &a))
        return;
    size_t kept = 0;
    pthread_rwlock_rdlock(&p->lock);
    for (size_t i = 0; i < numbers->count; i++) {
        uint64_t number = numbers->number[i], ahead = i + AHEAD < numbers->count ? numbers->number[i + AHEAD] : number;
        const parity_page *page = find_page(p, number), *next = find_page(p, ahead);
        if (next)
            __builtin_prefetch(next->folded[ahead % PAGE]);
        if (!page || !page->parity[number % PAGE] || may_be_near(&a, page, number % PAGE))
            numbers->number[kept++] = number;
    }
    pthread_rwlock_unlock(&p->lock);
    numbers->count = kept;
}

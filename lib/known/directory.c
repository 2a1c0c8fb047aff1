/* directory.c - what a process keeps in memory about its documents: adding, removing and finding; titles; loading many
 * at once.
 *
 * A number becomes alive as the last step of adding it: until then finding it has no effect.
 *
 * Titles are in shards by their length. Titles found there count only if their owners are alive, and not if too many
 * documents have had them.
 *
 * Loading: each thread fills its own loader: keys in stages (keys.h), fingerprints and titles as read. At the end keys,
 * titles and the index of the fingerprints are built on all threads. Copies and texts whose originals another thread
 * has not read yet are added last: they expire with their originals, and those without one at once. */
#include "known/directory.h"
#include "decide/decide.h"
#include "kernel/kernel.h"
#include "known/keys.h"
#include "text/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- numbers: which exist, and when each expires: 4 bytes per number, in pages of 65,536 numbers ----
 *
 * Pages are found through a directory. A page without numbers is reused for others; a thread that still reads it by its
 * old place sees no number there, or that it is another page by now.
 *
 * Threads: any number may read at any time, and any number may reserve and set, each its own numbers, while none
 * clears. */

enum { ALIVE_PAGE = 1 << 16 };

typedef struct alive_page {
    _Atomic uint64_t place;    /* which page of numbers it is; UINT64_MAX: none */
    _Atomic uint32_t count;    /* numbers present */
    _Atomic uint64_t earliest; /* lower half: none of them expires before it; upper half: how many were set */
    struct alive_page *next;   /* in the list of free pages */
    _Atomic uint32_t end[ALIVE_PAGE];
} alive_page;

typedef struct alive_pages {
    size_t count;
    struct alive_pages *before; /* smaller ones, which other threads may still read */
    _Atomic(alive_page *) page[];
} alive_pages;

typedef struct alive_numbers {
    pthread_mutex_t lock; /* for adding and removing pages */
    _Atomic(alive_pages *) directory;
    alive_page *idle;
    _Atomic uint64_t pages;
} alive_numbers;

/* The value of a number: 0, absent; NEVER, it does not expire; else the second it expires. */
#define NEVER UINT32_MAX
#define NO_PLACE UINT64_MAX

static uint32_t end_of(uint64_t expires) {
    return !expires ? NEVER : expires < NEVER ? (uint32_t)expires : NEVER - 1;
}

static bool alive_init(alive_numbers *alive) {
    *alive = (alive_numbers){0};
    return !pthread_mutex_init(&alive->lock, NULL);
}

static void alive_free(alive_numbers *alive) {
    alive_pages *directory = atomic_load(&alive->directory), *before;
    for (size_t i = 0; directory && i < directory->count; i++)
        free(atomic_load(&directory->page[i]));
    for (; directory; directory = before) {
        before = directory->before;
        free(directory);
    }
    for (alive_page *page = alive->idle, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    pthread_mutex_destroy(&alive->lock);
}

/* ---- numbers: pages ---- */

static alive_page *page_at(alive_numbers *alive, uint64_t place) {
    alive_pages *directory = atomic_load_explicit(&alive->directory, memory_order_acquire);
    return directory && place < directory->count ? atomic_load_explicit(&directory->page[place], memory_order_acquire)
                                                 : NULL;
}

/* A directory with room for a place, under the lock. Smaller ones are kept: together they are no larger. */
static bool grow(alive_numbers *alive, uint64_t place) {
    alive_pages *old = atomic_load(&alive->directory);
    size_t count = old ? old->count : 0, need = count ? count : 8;
    if (place < count)
        return true;
    while (need <= place)
        need *= 2;
    alive_pages *directory = calloc(1, sizeof *directory + need * sizeof *directory->page);
    if (!directory)
        return false;
    *directory = (alive_pages){.count = need, .before = old};
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&directory->page[i], atomic_load(&old->page[i]), memory_order_relaxed);
    atomic_store_explicit(&alive->directory, directory, memory_order_release);
    return true;
}

/* The earliest expiry of a page, after one more number was set. */
static uint64_t set_earliest(uint64_t before, uint32_t earliest) {
    return ((before >> 32) + 1) << 32 | earliest;
}

static alive_page *take_page(alive_numbers *alive) {
    alive_page *page = alive->idle;
    if (page) {
        alive->idle = page->next;
    } else if ((page = calloc(1, sizeof *page))) {
        atomic_fetch_add(&alive->pages, 1);
    }
    return page;
}

/* Makes sure that a number can be set; false: out of memory. */
static bool alive_reserve(alive_numbers *alive, uint64_t number) {
    uint64_t place = number / ALIVE_PAGE;
    if (page_at(alive, place))
        return true;
    pthread_mutex_lock(&alive->lock);
    bool there = grow(alive, place);
    if (there && !page_at(alive, place)) {
        alive_page *page = take_page(alive);
        if (page) {
            atomic_store(&page->earliest, set_earliest(atomic_load(&page->earliest), NEVER));
            atomic_store(&page->place, place);
            atomic_store_explicit(&atomic_load(&alive->directory)->page[place], page, memory_order_release);
        }
        there = page;
    }
    pthread_mutex_unlock(&alive->lock);
    return there;
}

/* ---- numbers: one at a time ---- */

/* Makes a number present until `expires` (0: forever). It must be reserved and absent. */
static void alive_set(alive_numbers *alive, uint64_t number, uint64_t expires) {
    alive_page *page = page_at(alive, number / ALIVE_PAGE);
    uint32_t end = end_of(expires);
    atomic_fetch_add_explicit(&page->count, 1, memory_order_relaxed);
    atomic_store_explicit(&page->end[number % ALIVE_PAGE], end, memory_order_release);
    uint64_t before = atomic_load_explicit(&page->earliest, memory_order_relaxed);
    uint32_t earliest;
    do
        earliest = (uint32_t)before < end ? (uint32_t)before : end;
    while (!atomic_compare_exchange_weak(&page->earliest, &before, set_earliest(before, earliest)));
}

/* Frees a page without numbers. */
static void retire(alive_numbers *alive, alive_page *page) {
    pthread_mutex_lock(&alive->lock);
    alive_pages *directory = atomic_load(&alive->directory);
    atomic_store(&directory->page[atomic_load(&page->place)], NULL);
    atomic_store(&page->place, NO_PLACE);
    page->next = alive->idle;
    alive->idle = page;
    pthread_mutex_unlock(&alive->lock);
}

/* False: it was absent. */
static bool alive_clear(alive_numbers *alive, uint64_t number) {
    alive_page *page = page_at(alive, number / ALIVE_PAGE);
    if (!page || !atomic_exchange(&page->end[number % ALIVE_PAGE], 0))
        return false;
    if (atomic_fetch_sub(&page->count, 1) == 1)
        retire(alive, page);
    return true;
}

/* The page may be moved to another place while it is read: its place is set before its numbers, so that a thread that
 * reads a number of the new place also sees the new place. */
static uint32_t end_at(alive_numbers *alive, uint64_t number) {
    alive_page *page = page_at(alive, number / ALIVE_PAGE);
    if (!page)
        return 0;
    uint32_t end = atomic_load_explicit(&page->end[number % ALIVE_PAGE], memory_order_acquire);
    return atomic_load_explicit(&page->place, memory_order_relaxed) == number / ALIVE_PAGE ? end : 0;
}

static bool alive_has(alive_numbers *alive, uint64_t number) {
    return end_at(alive, number) != 0;
}

/* Whether it is present and has not expired by `now`. */
static bool alive_at(alive_numbers *alive, uint64_t number, uint64_t now) {
    uint32_t end = end_at(alive, number);
    return end == NEVER || end > now;
}

/* ---- numbers: which have expired ---- */

/* A fully scanned page gets its exact earliest expiry, unless a number was set during the scan: so the next call skips
 * it. Numbers returned now count until they are cleared. */
static size_t page_ended(alive_numbers *alive, uint64_t place, uint64_t now, uint64_t *numbers, size_t room) {
    alive_page *page = page_at(alive, place);
    uint64_t before = page ? atomic_load(&page->earliest) : 0;
    uint32_t earliest = NEVER;
    size_t found = 0, i = 0;
    if (!page || (uint32_t)before > now)
        return 0;
    for (; i < ALIVE_PAGE && found < room; i++) {
        uint32_t end = atomic_load_explicit(&page->end[i], memory_order_acquire);
        if (end && end <= now && end != NEVER)
            numbers[found++] = place * ALIVE_PAGE + i;
        if (end && end < earliest)
            earliest = end;
    }
    if (i == ALIVE_PAGE)
        (void)atomic_compare_exchange_strong(&page->earliest, &before, before >> 32 << 32 | earliest);
    return atomic_load_explicit(&page->place, memory_order_relaxed) == place ? found : 0;
}

/* Those that have expired by `now`: up to `room` are written, ascending; returns how many. */
static size_t alive_ended(alive_numbers *alive, uint64_t now, uint64_t *numbers, size_t room) {
    alive_pages *directory = atomic_load_explicit(&alive->directory, memory_order_acquire);
    size_t found = 0;
    for (size_t i = 0; directory && i < directory->count && found < room; i++)
        found += page_ended(alive, i, now, numbers + found, room - found);
    return found;
}

static uint64_t alive_bytes(const alive_numbers *alive) {
    const alive_pages *directory = atomic_load(&alive->directory);
    return atomic_load(&alive->pages) * sizeof(alive_page) +
           2 * (directory ? directory->count * sizeof *directory->page : 0);
}

/* ---- parities: which sets are too different to be near, by a few bits of each ----
 *
 * For documents that share a band with very many others (the pages of one template), so that their sets need not be
 * read.
 *
 * The parity of a set is a bitmap of m bits, of which bit i is 1 when an odd number of the set's hashes fall on i. In
 * the XOR of two parities the common hashes cancel out; so it has at most as many ones as there are hashes in only one
 * of the sets. Hence A and B share at most (|A| + |B| - ones) / 2 hashes. If even that is too few for the similarity,
 * they are not near; else they have to be compared. Nothing near is dropped.
 *
 * Of samples (the k smallest hashes of each set) similarity is estimated as the share of the k smallest of both that
 * both have. It is at most the number of values the samples share, divided by the size of the smaller sample. Samples
 * are compared at the coarser of their scales; a parity is kept at a sample's own scale and at the next coarser one,
 * and samples whose scales are farther apart are never dropped here.
 *
 * m is a power of two, 2 to 4 bits per hash: at a threshold of 0.8, sets of a similarity of 0.7 are dropped 99 times in
 * 100, and of 0.5 always. Of samples, which the bound fits less tightly, it is 4 to 8 bits a value, and those of a
 * similarity of 0.5 are dropped 99 times in 100. Halves of a parity, XORed, are that of m / 2 bits: so any two can be
 * compared. Which bit a hash falls on is decided by a secret, so that nobody can choose hashes that all fall on one.
 *
 * create; add what was read; sift (drop what cannot be near); remove what is gone. Threads: any number at a time. */

/* Small pages: if one in 32 numbers has a parity, the others cost 77 bytes each. */
enum { PAGE_BITS = 5, PAGE = 1 << PAGE_BITS };
/* Words of a folded parity, and the least of a whole one. A hash's bit is given by 40 of its bits: no parity needs more
 * than 2^32 bits, that of a set of 8 GiB. */
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

typedef struct parity_pages {
    pthread_rwlock_t lock;
    parity_page **page; /* by number / PAGE; NULL: it has none */
    size_t room, pages; /* of the directory; existing pages */
    uint64_t bytes;     /* of all parity_pages */
    uint64_t secret;    /* odd */
} parity_pages;

static parity_pages *parities_create(void) {
    parity_pages *made = calloc(1, sizeof *made);
    if (!made || !dp_lock_init(&made->lock)) {
        free(made);
        return NULL;
    }
    made->secret = dp_random_number() | 1;
    return made;
}

static void parities_free(parity_pages *p) {
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

static uint64_t parities_bytes(parity_pages *p) {
    pthread_rwlock_rdlock(&p->lock);
    uint64_t bytes = sizeof *p + p->room * sizeof *p->page + p->pages * sizeof **p->page + p->bytes;
    pthread_rwlock_unlock(&p->lock);
    return bytes;
}

/* ---- parities: bits ---- */

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

/* ---- parities: pages ---- */

static parity_page *find_page(const parity_pages *p, uint64_t number) {
    return number >> PAGE_BITS < p->room ? p->page[number >> PAGE_BITS] : NULL;
}

static bool is_there(const parity_pages *p, uint64_t number) {
    const parity_page *page = find_page(p, number);
    return page && page->parity[number % PAGE];
}

/* The page of a number, created if missing; NULL: out of memory. */
static parity_page *page_of(parity_pages *p, uint64_t number) {
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

static parity *make(const parity_pages *p, const dp_features *features) {
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

static void put_parity(parity_page *page, uint64_t number, const dp_features *features, parity *made) {
    size_t at = number % PAGE;
    page->parity[at] = made;
    page->size[at] = (uint32_t)features->count;
    page->scale[at] = (uint8_t)features->scale;
    memset(page->folded[at], 0, sizeof page->folded[at]);
    for (size_t i = 0; i < made->words; i++)
        page->folded[at][i % FOLDED] ^= made->bits[i];
    page->count++;
}

/* Adds the features of a number, unless it has some, or `alive` says that the number is gone. Without memory it is not
 * kept. */
static void parities_add(parity_pages *p, uint64_t number, const dp_features *features, alive_numbers *alive) {
    pthread_rwlock_rdlock(&p->lock);
    bool there = is_there(p, number);
    pthread_rwlock_unlock(&p->lock);
    parity *made = there ? NULL : make(p, features);
    if (!made)
        return;
    pthread_rwlock_wrlock(&p->lock);
    parity_page *page = page_of(p, number);
    /* A number removed in the meantime is no longer alive when it is removed here. */
    if (page && alive_has(alive, number) && !page->parity[number % PAGE]) {
        put_parity(page, number, features, made);
        p->bytes += bytes_of(made->words, made->coarser_size);
        made = NULL;
    }
    pthread_rwlock_unlock(&p->lock);
    free(made);
}

/* Removes that of a number no longer in `alive`. */
static void parities_remove(parity_pages *p, uint64_t number) {
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

/* ---- parities: sifting ---- */

/* The parities of a set in all sizes up to asked.words; that of w words is at bits + w. */
typedef struct sizes {
    const uint64_t *bits;
    uint64_t count; /* hashes of the set */
} sizes;

/* The query; a sample at its own scale and one scale up. */
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

static sizes make_sizes(const parity_pages *p, const uint64_t *set, size_t count, uint64_t *bits, size_t words) {
    fill(p->secret, set, count, bits + words, words);
    for (; words > 1; words /= 2)
        fold(bits + words, words, bits + words / 2);
    return (sizes){bits, count};
}

static bool ask(const parity_pages *p, const dp_sift *sift, asked *a) {
    const dp_features *f = &sift->features;
    if (!dp_reserve(&sift->scratch->bits, &sift->scratch->room, 4 * a->words, sizeof *sift->scratch->bits))
        return false;
    uint64_t *bits = sift->scratch->bits;
    a->own = make_sizes(p, f->set, f->count, bits, a->words);
    if (a->sample)
        a->coarser = make_sizes(p, f->coarser, f->coarser_count, bits + 2 * a->words, a->words);
    return true;
}

/* Whether sets of these sizes whose parities differ in `ones` bits can be similar enough. The similarity is computed as
 * in find.c, and rises with the number of shared hashes, so that rounding makes no difference. */
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

/* How many are prefetched ahead. */
enum { AHEAD = 8 };

static void parities_sift(parity_pages *p, const dp_sift *sift, dp_numbers *numbers) {
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

/* ---- titles, and the directory itself ---- */

/* Titles are distributed by their length, so that several threads can load them, and only some of them wait for a
 * change: every TITLE_LENGTHS lengths go to the next shard. */
enum { TITLE_SHARDS = 16, TITLE_LENGTHS = 8 };
typedef struct title_shard {
    pthread_rwlock_t lock; /* writers have priority */
    bool has_lock;
    dp_titles_index *index;
} title_shard;

/* How often the title of each document was seen on duplicates. */
typedef struct seen_titles {
    pthread_rwlock_t lock;
    bool has_lock;
    dp_hashmap map; /* by its number */
} seen_titles;

typedef struct title_shards {
    double similarity; /* the lowest that is found */
    title_shard shard[TITLE_SHARDS];
    seen_titles seen;
} title_shards;

struct dp_directory {
    dp_directory_options options;
    dp_keys *keys;          /* ids, URLs, digests */
    dp_keys *bands;         /* NULL: by distance */
    parity_pages *parities; /* of documents in crowded bands; NULL: by distance */
    doppel_index *near;     /* NULL: by similarity */
    title_shards *titles;   /* NULL: none */
    alive_numbers alive;
    _Atomic uint64_t documents, copies;
    _Atomic uint64_t highest; /* highest number ever added */
};

/* Whether a trace has a fingerprint to find, and a title. */
static inline bool has_near(const dp_directory *directory, const dp_trace *trace) {
    return directory->near && trace->kind == DP_TRACE_DOCUMENT && trace->content;
}
static inline bool has_title(const dp_directory *directory, const dp_trace *trace) {
    return directory->titles && trace->kind == DP_TRACE_DOCUMENT && trace->title.length;
}

/* ---- titles: how often each was seen on duplicates ---- */

doppel_status dp_directory_title_seen(dp_directory *directory, uint64_t number, uint64_t times) {
    if (!directory->titles || !times)
        return DOPPEL_OK;
    seen_titles *seen = &directory->titles->seen;
    pthread_rwlock_wrlock(&seen->lock);
    uint64_t *value = dp_hashmap_add(&seen->map, number);
    if (value)
        *value += times;
    pthread_rwlock_unlock(&seen->lock);
    return value ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void dp_directory_title_unseen(dp_directory *directory, uint64_t number, uint64_t times) {
    if (!directory->titles || !times)
        return;
    seen_titles *seen = &directory->titles->seen;
    pthread_rwlock_wrlock(&seen->lock);
    if (dp_hashmap_find(&seen->map, number) <= times)
        dp_hashmap_remove(&seen->map, number);
    else
        *dp_hashmap_add(&seen->map, number) -= times;
    pthread_rwlock_unlock(&seen->lock);
}

static uint64_t times_seen(seen_titles *seen, uint64_t number) {
    pthread_rwlock_rdlock(&seen->lock);
    uint64_t times = dp_hashmap_find(&seen->map, number);
    pthread_rwlock_unlock(&seen->lock);
    return times;
}

/* ---- titles: shards ---- */

static void titles_free(title_shards *titles) {
    if (!titles)
        return;
    for (size_t i = 0; i < TITLE_SHARDS; i++) {
        dp_titles_index_free(titles->shard[i].index);
        if (titles->shard[i].has_lock)
            pthread_rwlock_destroy(&titles->shard[i].lock);
    }
    if (titles->seen.has_lock)
        pthread_rwlock_destroy(&titles->seen.lock);
    dp_hashmap_free(&titles->seen.map);
    free(titles);
}

static doppel_status titles_create(double similarity, title_shards **titles) {
    title_shards *made = calloc(1, sizeof *made);
    *titles = NULL;
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->similarity = similarity;
    doppel_status status = (made->seen.has_lock = dp_lock_init(&made->seen.lock)) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < TITLE_SHARDS && status == DOPPEL_OK; i++) {
        status = dp_titles_index_create(similarity, &made->shard[i].index);
        if (status == DOPPEL_OK && !(made->shard[i].has_lock = dp_lock_init(&made->shard[i].lock)))
            status = DOPPEL_ERROR_MEMORY;
    }
    if (status == DOPPEL_OK)
        *titles = made;
    else
        titles_free(made);
    return status;
}

/* How many code points a title has, as the index counts them. */
static size_t length_of(doppel_slice title) {
    const uint8_t *at = (const uint8_t *)title.data, *end = at + title.length;
    size_t count = 0;
    for (int32_t point; at < end; count++)
        at += dp_utf8_decode(at, end, &point);
    return count;
}

static size_t shard_of(doppel_slice title) {
    return length_of(title) / TITLE_LENGTHS % TITLE_SHARDS;
}

static doppel_status titles_add(title_shards *titles, doppel_slice title, uint64_t number) {
    title_shard *shard = &titles->shard[shard_of(title)];
    pthread_rwlock_wrlock(&shard->lock);
    doppel_status status = dp_titles_index_add(shard->index, title.data, title.length, number);
    pthread_rwlock_unlock(&shard->lock);
    return status;
}

static void titles_remove(title_shards *titles, doppel_slice title, uint64_t number) {
    title_shard *shard = &titles->shard[shard_of(title)];
    pthread_rwlock_wrlock(&shard->lock);
    (void)dp_titles_index_remove(shard->index, title.data, title.length, number, NULL);
    pthread_rwlock_unlock(&shard->lock);
}

static void titles_stats(title_shards *titles, dp_directory_stats *stats) {
    for (size_t i = 0; i < TITLE_SHARDS; i++) {
        dp_titles_stats found;
        pthread_rwlock_rdlock(&titles->shard[i].lock);
        dp_titles_index_get_stats(titles->shard[i].index, &found);
        pthread_rwlock_unlock(&titles->shard[i].lock);
        stats->titles += found.titles;
        stats->title_bytes += found.bytes;
    }
    pthread_rwlock_rdlock(&titles->seen.lock);
    stats->title_bytes += sizeof *titles + titles->seen.map.room * sizeof *titles->seen.map.places;
    pthread_rwlock_unlock(&titles->seen.lock);
}

/* ---- titles: finding ---- */

typedef struct finding {
    dp_directory *directory;
    const dp_title_search *query;
    dp_title_matches *matches;
    bool frequent;       /* the queried title itself is: then nothing like it counts */
    dp_title_hit hit;    /* the best; number 0: none */
    dp_title_hits *hits; /* unless only the best is wanted */
} finding;

/* Whether an owner counts: the index still lists owners that have expired or are about to be removed. */
static bool owner_is_there(const finding *f, uint64_t owner) {
    const dp_title_search *query = f->query;
    return !(query->removing && dp_hashmap_find(query->removing, owner)) &&
           alive_at(&f->directory->alive, owner, query->now);
}

/* Whether a title is frequent: each living owner counts, and each duplicate that was found by its title. */
static bool is_frequent(const finding *f, const dp_title_match *match) {
    const dp_title_search *query = f->query;
    uint64_t documents = atomic_load_explicit(&f->directory->documents, memory_order_relaxed) + query->seen, times = 0;
    if (!dp_title_is_frequent(match->owner_count + query->seen, documents, query->share))
        return false;
    for (uint64_t i = 0; i < match->owner_count && !dp_title_is_frequent(times, documents, query->share); i++)
        if (owner_is_there(f, match->owners[i]))
            times += 1 + (query->times ? query->times(query->user, match->owners[i])
                                       : times_seen(&f->directory->titles->seen, match->owners[i]));
    return dp_title_is_frequent(times, documents, query->share);
}

static bool owner_counts(const finding *f, uint64_t owner) {
    const dp_title_search *query = f->query;
    return owner < query->below && owner != query->except[0] && owner != query->except[1] && owner_is_there(f, owner);
}

/* The lowest number that counts; 0: none. */
static uint64_t first_owner(const finding *f, const dp_title_match *match) {
    for (size_t i = 0; i < match->owner_count; i++)
        if (owner_counts(f, match->owners[i]))
            return match->owners[i];
    return 0;
}

/* The best of what was found in a shard. */
static void choose(finding *f) {
    for (size_t i = 0; i < f->matches->count; i++) {
        const dp_title_match *match = &f->matches->match[i];
        if (match->similarity < f->hit.similarity)
            break;
        if (is_frequent(f, match))
            continue;
        uint64_t owner = first_owner(f, match);
        if (owner && (match->similarity > f->hit.similarity || owner < f->hit.number))
            f->hit = (dp_title_hit){owner, match->similarity};
    }
}

/* Everything found in a shard. */
static doppel_status collect(finding *f) {
    dp_title_hits *hits = f->hits;
    for (size_t i = 0; i < f->matches->count; i++) {
        const dp_title_match *match = &f->matches->match[i];
        if (is_frequent(f, match))
            continue;
        if (!dp_reserve(&hits->hit, &hits->room, hits->count + match->owner_count, sizeof *hits->hit))
            return DOPPEL_ERROR_MEMORY;
        for (size_t k = 0; k < match->owner_count; k++)
            if (owner_counts(f, match->owners[k]))
                hits->hit[hits->count++] = (dp_title_hit){match->owners[k], match->similarity};
    }
    return DOPPEL_OK;
}

static doppel_status find_in(finding *f, title_shard *shard, const dp_titles_ahead *ahead, bool own) {
    doppel_slice title = f->query->title;
    pthread_rwlock_rdlock(&shard->lock);
    doppel_status status = dp_titles_index_find_after(shard->index, title.data, title.length, ahead, f->matches);
    const dp_title_match *match = f->matches->match;
    if (status == DOPPEL_OK && own && f->matches->count && match->similarity >= 1)
        f->frequent = is_frequent(f, match);
    if (status == DOPPEL_OK && !f->frequent && !f->query->best)
        status = collect(f);
    else if (status == DOPPEL_OK && !f->frequent)
        choose(f);
    pthread_rwlock_unlock(&shard->lock);
    return status;
}

/* The shards of titles that may be similar to one: its own first, then those with lengths near enough: l >= t * L and L
 * >= t * l, with one length more for rounding. Returns how many shards. */
static size_t shards_near(const title_shards *titles, doppel_slice title, size_t shard[TITLE_SHARDS]) {
    double length = (double)length_of(title), t = titles->similarity;
    double least = (t * length - 1) / TITLE_LENGTHS, most = ((t > 0 ? length / t : INFINITY) + 1) / TITLE_LENGTHS;
    size_t from = 0, count = TITLE_SHARDS, found = 0;
    if (most - least < TITLE_SHARDS - 1) {
        from = least > 0 ? (size_t)least : 0;
        count = (size_t)most - from + 1;
    }
    shard[found++] = (size_t)length / TITLE_LENGTHS % TITLE_SHARDS;
    for (size_t i = from; i < from + count; i++)
        if (i % TITLE_SHARDS != shard[0])
            shard[found++] = i % TITLE_SHARDS;
    return found;
}

static doppel_status find(finding *f) {
    title_shards *titles = f->directory->titles;
    size_t shard[TITLE_SHARDS], count = shards_near(titles, f->query->title, shard);
    for (size_t i = 0; i < count && !f->frequent; i++) {
        const dp_titles_ahead *ahead = f->query->ahead && i < DP_AHEAD_SHARDS ? &f->query->ahead->shard[i] : NULL;
        DP_TRY(find_in(f, &titles->shard[shard[i]], ahead, !i));
    }
    return DOPPEL_OK;
}

/* The lock is released between steps. */
static void look_ahead_in(title_shard *shard, doppel_slice title, dp_title_matches *matches, dp_titles_ahead *ahead) {
    pthread_rwlock_rdlock(&shard->lock);
    doppel_status status = dp_titles_ahead_begin(shard->index, title.data, title.length, matches, ahead);
    bool more = status == DOPPEL_OK;
    while (more) {
        more = dp_titles_ahead_step(shard->index, matches, ahead);
        pthread_rwlock_unlock(&shard->lock);
        if (more)
            pthread_rwlock_rdlock(&shard->lock);
    }
    if (status == DOPPEL_OK)
        dp_titles_ahead_end(matches, ahead);
    else
        pthread_rwlock_unlock(&shard->lock);
}

void dp_directory_look_ahead(dp_directory *directory, doppel_slice title, dp_title_matches *matches,
                             dp_title_ahead *ahead) {
    size_t shard[TITLE_SHARDS];
    if (!directory->titles || !title.length)
        return;
    size_t count = shards_near(directory->titles, title, shard);
    for (size_t i = 0; i < count && i < DP_AHEAD_SHARDS; i++)
        look_ahead_in(&directory->titles->shard[shard[i]], title, matches, &ahead->shard[i]);
}

static int compare_title_hits(const void *left, const void *right) {
    const dp_title_hit *a = left, *b = right;
    if (a->similarity != b->similarity)
        return a->similarity > b->similarity ? -1 : 1;
    return a->number < b->number ? -1 : a->number > b->number;
}

doppel_status dp_directory_find_titles(dp_directory *directory, const dp_title_search *search,
                                       dp_title_matches *matches, dp_title_hits *hits) {
    finding f = {.directory = directory, .query = search, .matches = matches, .hits = hits};
    hits->count = 0;
    hits->candidates = 0;
    if (!directory->titles || !search->title.length)
        return DOPPEL_OK;
    doppel_status status = find(&f);
    hits->candidates = matches->candidates;
    if (f.frequent)
        hits->count = 0;
    if (status == DOPPEL_OK && f.hit.number) {
        if (!dp_reserve(&hits->hit, &hits->room, 1, sizeof *hits->hit))
            return DOPPEL_ERROR_MEMORY;
        hits->hit[hits->count++] = f.hit;
    }
    if (hits->count > 1)
        qsort(hits->hit, hits->count, sizeof *hits->hit, compare_title_hits);
    return status;
}

/* 1,024 segments of keys: at ten million documents with three keys each a key meets another's number once in 280
 * lookups. Bands are looked up many at a time, and have more. */
enum { KEY_SEGMENTS = 10, BAND_SEGMENTS = 12 };

/* ---- creating ---- */

static doppel_status create_near(dp_directory *directory, doppel_error *error) {
    const dp_directory_options *o = &directory->options;
    doppel_index_options options = {
        .size = sizeof options, .bits = o->bits, .distance = o->distance, .count = o->count, .memory = o->memory};
    if (!o->by_similarity)
        return doppel_index_create(&options, &directory->near, error);
    if (!(directory->bands = dp_keys_create(BAND_SEGMENTS)) || !(directory->parities = parities_create()))
        return dp_no_memory(error);
    return DOPPEL_OK;
}

doppel_status dp_directory_create(const dp_directory_options *options, dp_directory **directory, doppel_error *error) {
    dp_directory *k = calloc(1, sizeof *k);
    *directory = NULL;
    if (!k || !alive_init(&k->alive)) {
        free(k);
        return dp_no_memory(error);
    }
    k->options = *options;
    doppel_status status = DOPPEL_OK;
    if (!(k->keys = dp_keys_create(KEY_SEGMENTS)))
        status = dp_no_memory(error);
    DP_THEN(status, create_near(k, error));
    if (status == DOPPEL_OK && options->titles &&
        (status = titles_create(options->title_similarity, &k->titles)) != DOPPEL_OK)
        dp_fail(error, status, "titles of a similarity of %g: %s", options->title_similarity,
                doppel_status_name(status));
    if (status == DOPPEL_OK)
        *directory = k;
    else
        dp_directory_free(k);
    return status;
}

void dp_directory_free(dp_directory *directory) {
    if (!directory)
        return;
    dp_keys_free(directory->keys);
    dp_keys_free(directory->bands);
    parities_free(directory->parities);
    doppel_index_free(directory->near);
    titles_free(directory->titles);
    alive_free(&directory->alive);
    free(directory);
}

/* ---- keys ---- */

/* Keys of one kind must not collide with those of another. */
static uint64_t key_hash(dp_key key, uint64_t hash) {
    return hash + (uint64_t)key * 0x9E3779B97F4A7C15u;
}

static uint64_t band_hash(size_t band, uint32_t key) {
    return (uint64_t)band << 32 | key;
}

/* The hashes under which a trace is among the keys; returns how many. */
enum { KEY_KINDS = 3 };
static size_t keys_of(const dp_trace *trace, uint64_t hashes[KEY_KINDS]) {
    static const uint8_t none[sizeof trace->digest];
    bool by_words = trace->kind != DP_TRACE_COPY || trace->own_words;
    size_t count = 0;
    if (trace->kind != DP_TRACE_TEXT)
        hashes[count++] = key_hash(DP_KEY_ID, trace->id_hash);
    if (trace->url_hash)
        hashes[count++] = key_hash(DP_KEY_URL, trace->url_hash);
    if (by_words && memcmp(trace->digest, none, sizeof none))
        hashes[count++] = key_hash(DP_KEY_DIGEST, dp_digest_hash(trace->digest));
    return count;
}

/* The same for the bands. */
static size_t bands_of(const dp_directory *directory, const dp_trace *trace, uint64_t hashes[DP_MOST_BANDS]) {
    if (!directory->bands || trace->kind != DP_TRACE_DOCUMENT || !trace->content)
        return 0;
    uint32_t keys[DP_MOST_BANDS];
    if (trace->key_count)
        memcpy(keys, trace->keys, trace->key_count * sizeof *keys); /* they may be unaligned */
    for (size_t i = 0; i < trace->key_count; i++)
        hashes[i] = band_hash(i, keys[i]);
    return trace->key_count;
}

/* Memory is slow: many places are prefetched faster together than one after the other. */
static void fetch_all(dp_keys *keys, const uint64_t *hashes, size_t count) {
    for (size_t i = 0; i < count; i++)
        dp_keys_prefetch(keys, hashes[i]);
}

/* All or none. */
static bool add_all(dp_keys *keys, const uint64_t *hashes, size_t count, uint64_t number) {
    for (size_t i = 0; i < count; i++) {
        if (!dp_keys_add(keys, hashes[i], number)) {
            while (i--)
                dp_keys_remove(keys, hashes[i], number);
            return false;
        }
    }
    return true;
}

static void remove_all(dp_keys *keys, const uint64_t *hashes, size_t count, uint64_t number) {
    for (size_t i = 0; i < count; i++)
        dp_keys_remove(keys, hashes[i], number);
}

/* ---- changing ---- */

/* Whether a trace can be added at all. */
static doppel_status check_trace(const dp_trace *trace) {
    if (trace->number > DP_DIRECTORY_NUMBERS)
        return DOPPEL_ERROR_STORE;
    return trace->number && trace->key_count <= DP_MOST_BANDS ? DOPPEL_OK : DOPPEL_ERROR_USAGE;
}

/* Title and fingerprint. */
static doppel_status add_content(dp_directory *directory, const dp_trace *trace) {
    bool titled = has_title(directory, trace);
    if (titled)
        DP_TRY(titles_add(directory->titles, trace->title, trace->number));
    if (!has_near(directory, trace))
        return DOPPEL_OK;
    doppel_status status = doppel_index_add(directory->near, trace->fingerprint, trace->number, 0);
    if (status != DOPPEL_OK && titled)
        titles_remove(directory->titles, trace->title, trace->number);
    return status;
}

/* Texts are neither documents nor copies. */
static void count_trace(dp_directory *directory, const dp_trace *trace, int change) {
    if (dp_trace_is_kept(trace))
        atomic_fetch_add(trace->kind == DP_TRACE_DOCUMENT ? &directory->documents : &directory->copies,
                         (uint64_t)change);
}

doppel_status dp_directory_add(dp_directory *directory, const dp_trace *trace) {
    doppel_status status = check_trace(trace);
    uint64_t keys[KEY_KINDS], bands[DP_MOST_BANDS];
    if (status != DOPPEL_OK || dp_trace_is_removal(trace) || alive_has(&directory->alive, trace->number))
        return status;
    size_t key_count = keys_of(trace, keys), band_count = bands_of(directory, trace, bands);
    fetch_all(directory->keys, keys, key_count);
    fetch_all(directory->bands, bands, band_count);
    dp_latest(&directory->highest, trace->number); /* before its keys: a thread that finds them sees it, too */
    if (!alive_reserve(&directory->alive, trace->number) || !add_all(directory->keys, keys, key_count, trace->number))
        return DOPPEL_ERROR_MEMORY;
    if (!add_all(directory->bands, bands, band_count, trace->number))
        status = DOPPEL_ERROR_MEMORY;
    else if ((status = add_content(directory, trace)) != DOPPEL_OK)
        remove_all(directory->bands, bands, band_count, trace->number);
    if (status != DOPPEL_OK) {
        remove_all(directory->keys, keys, key_count, trace->number);
        return status;
    }
    alive_set(&directory->alive, trace->number, trace->expires);
    count_trace(directory, trace, 1);
    return DOPPEL_OK;
}

/* What can fail comes first. */
doppel_status dp_directory_remove(dp_directory *directory, const dp_trace *trace) {
    uint64_t keys[KEY_KINDS], bands[DP_MOST_BANDS];
    doppel_status status = check_trace(trace);
    if (status != DOPPEL_OK || dp_trace_is_removal(trace) || !alive_has(&directory->alive, trace->number))
        return status;
    if (has_near(directory, trace))
        DP_TRY(doppel_index_remove(directory->near, trace->fingerprint, trace->number, NULL));
    alive_clear(&directory->alive, trace->number);
    if (directory->parities)
        parities_remove(directory->parities, trace->number);
    size_t key_count = keys_of(trace, keys), band_count = bands_of(directory, trace, bands);
    fetch_all(directory->keys, keys, key_count);
    fetch_all(directory->bands, bands, band_count);
    remove_all(directory->keys, keys, key_count, trace->number);
    remove_all(directory->bands, bands, band_count, trace->number);
    if (has_title(directory, trace))
        titles_remove(directory->titles, trace->title, trace->number);
    dp_directory_title_unseen(directory, trace->number, UINT64_MAX);
    count_trace(directory, trace, -1);
    return DOPPEL_OK;
}

/* ---- finding ---- */

/* Replaces found numbers, which are cut to 32 bits, by all existing numbers they may mean. */
static doppel_status widen(dp_directory *directory, dp_numbers *numbers) {
    size_t cut = numbers->count;
    uint64_t highest = atomic_load(&directory->highest);
    if (highest <= UINT32_MAX)
        return DOPPEL_OK;
    for (size_t i = 0; i < cut; i++) {
        for (uint64_t number = numbers->number[i]; number <= highest; number += (uint64_t)1 << 32) {
            if (!alive_has(&directory->alive, number))
                continue;
            if (!dp_reserve(&numbers->number, &numbers->room, numbers->count + 1, sizeof *numbers->number))
                return DOPPEL_ERROR_MEMORY;
            numbers->number[numbers->count++] = number;
        }
    }
    numbers->count -= cut;
    if (numbers->count)
        memmove(numbers->number, numbers->number + cut, numbers->count * sizeof *numbers->number);
    return dp_numbers_arrange(numbers);
}

/* Finishes a result. */
static doppel_status give(dp_directory *directory, dp_numbers *numbers) {
    DP_TRY(dp_numbers_arrange(numbers));
    return widen(directory, numbers);
}

doppel_status dp_directory_find_key(dp_directory *directory, dp_key key, uint64_t hash, dp_numbers *numbers) {
    numbers->count = 0;
    return dp_keys_find(directory->keys, key_hash(key, hash), numbers) ? give(directory, numbers) : DOPPEL_ERROR_MEMORY;
}

doppel_status dp_directory_find_bands(dp_directory *directory, const uint32_t *keys, size_t count,
                                      dp_numbers *numbers) {
    numbers->count = 0;
    for (size_t i = 0; i < count; i++)
        dp_keys_prefetch(directory->bands, band_hash(i, keys[i]));
    for (size_t i = 0; i < count; i++)
        if (!dp_keys_find(directory->bands, band_hash(i, keys[i]), numbers))
            return DOPPEL_ERROR_MEMORY;
    return give(directory, numbers);
}

void dp_directory_sift(dp_directory *directory, const dp_sift *sift, dp_numbers *numbers) {
    parities_sift(directory->parities, sift, numbers);
}

void dp_directory_keep_parity(dp_directory *directory, uint64_t number, const dp_features *features) {
    parities_add(directory->parities, number, features, &directory->alive);
}

doppel_status dp_directory_find_near(dp_directory *directory, const uint64_t *fingerprint, int distance,
                                     doppel_matches *matches, doppel_error *error) {
    return doppel_index_find(directory->near, fingerprint, distance, NULL, matches, error);
}

bool dp_directory_alive(dp_directory *directory, uint64_t number, uint64_t now) {
    return alive_at(&directory->alive, number, now);
}

size_t dp_directory_expired(dp_directory *directory, uint64_t now, uint64_t *numbers, size_t room) {
    return alive_ended(&directory->alive, now, numbers, room);
}

void dp_directory_get_stats(dp_directory *directory, dp_directory_stats *stats) {
    *stats = (dp_directory_stats){.documents = atomic_load(&directory->documents),
                                  .copies = atomic_load(&directory->copies)};
    stats->keys_bytes = dp_keys_bytes(directory->keys) + alive_bytes(&directory->alive);
    if (directory->bands) {
        stats->parity_bytes = parities_bytes(directory->parities);
        stats->near_bytes = dp_keys_bytes(directory->bands) + stats->parity_bytes;
    }
    if (directory->near) {
        doppel_index_stats near;
        doppel_index_get_stats(directory->near, &near);
        stats->near_bytes = near.bytes;
        snprintf(stats->plan, sizeof stats->plan, "%s", near.layout);
    }
    if (directory->titles)
        titles_stats(directory->titles, stats);
}

/* ---- loading: pending titles ----
 *
 * Owners of a title are best added in the order of their numbers. Titles are read in that order, but on several
 * threads: so titles of one loader whose numbers differ only in the lowest bits form a run, and the runs of all loaders
 * are sorted. */

/* Titles of adjacent numbers. */
typedef struct title_run {
    uint64_t number; /* of the first */
    size_t start, end;
    const char *titles; /* what both count in */
} title_run;

typedef struct waiting_titles {
    dp_buffer titles; /* each: number, length, bytes */
    title_run *run;
    size_t count, room;
} waiting_titles;

enum { RUN_BITS = 12 };

static void waiting_free(waiting_titles *waiting) {
    dp_buffer_free(&waiting->titles);
    free(waiting->run);
    *waiting = (waiting_titles){0};
}

static bool waiting_add(waiting_titles *waiting, doppel_slice title, uint64_t number) {
    title_run *last = waiting->count ? &waiting->run[waiting->count - 1] : NULL;
    if (!last || last->number >> RUN_BITS != number >> RUN_BITS) {
        if (!dp_reserve(&waiting->run, &waiting->room, waiting->count + 1, sizeof *waiting->run))
            return false;
        last = &waiting->run[waiting->count++];
        *last = (title_run){.number = number, .start = waiting->titles.size, .end = waiting->titles.size};
    }
    uint64_t head[2] = {number, title.length};
    bool added =
        dp_buffer_add(&waiting->titles, head, sizeof head) && dp_buffer_add(&waiting->titles, title.data, title.length);
    if (added)
        last->end = waiting->titles.size;
    return added;
}

static int compare_runs(const void *first, const void *second) {
    const title_run *a = first, *b = second;
    return a->number < b->number ? -1 : a->number > b->number;
}

static doppel_status add_run(dp_titles_index *index, const title_run *s) {
    for (const char *at = s->titles + s->start, *end = s->titles + s->end; at < end;) {
        uint64_t head[2];
        memcpy(head, at, sizeof head);
        at += sizeof head;
        DP_TRY(dp_titles_index_add(index, at, (size_t)head[1], head[0]));
        at += (size_t)head[1];
    }
    return DOPPEL_OK;
}

static doppel_status load_waiting(dp_titles_index *index, waiting_titles *const *waiting, size_t count) {
    size_t runs = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        runs += waiting[i]->count;
    title_run *all = malloc((runs + 1) * sizeof *all);
    if (!all)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < waiting[i]->count; j++) {
            all[at] = waiting[i]->run[j];
            all[at++].titles = waiting[i]->titles.data;
        }
    qsort(all, runs, sizeof *all, compare_runs);
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < runs && status == DOPPEL_OK; i++)
        status = add_run(index, &all[i]);
    free(all);
    return status;
}

/* ---- loading: all ---- */

typedef struct loader {
    pthread_mutex_t lock;
    dp_keys_stage *keys, *bands;
    uint64_t *fingerprints, *owners;
    size_t count, fingerprint_room, owner_room;
    uint64_t documents, copies, highest;
    waiting_titles titles[TITLE_SHARDS];
    dp_trace *early; /* copies and texts whose original is not there yet */
    size_t early_count, early_room;
} loader;

struct dp_directory_load {
    dp_directory *directory;
    size_t loaders, threads;
    _Atomic doppel_status status; /* the first that went wrong */
    _Atomic size_t next;          /* task of the end */
    loader loader[];
};

static doppel_status fail(dp_directory_load *load, doppel_status status) {
    doppel_status none = DOPPEL_OK;
    atomic_compare_exchange_strong(&load->status, &none, status);
    return status;
}

/* ---- loading: a thread's own ---- */

static void clear_loader(loader *d) {
    dp_keys_stage_free(d->keys);
    dp_keys_stage_free(d->bands);
    free(d->fingerprints);
    free(d->owners);
    free(d->early);
    for (size_t i = 0; i < TITLE_SHARDS; i++)
        waiting_free(&d->titles[i]);
    pthread_mutex_destroy(&d->lock);
}

doppel_status dp_directory_load_begin(dp_directory *directory, dp_directory_load **load) {
    size_t threads = dp_thread_count(directory->options.threads);
    dp_directory_load *l = calloc(1, sizeof *l + threads * sizeof *l->loader);
    *load = NULL;
    if (!l)
        return DOPPEL_ERROR_MEMORY;
    l->directory = directory;
    l->threads = threads;
    for (; l->loaders < threads && !pthread_mutex_init(&l->loader[l->loaders].lock, NULL); l->loaders++)
        ;
    if (!l->loaders) {
        free(l);
        return DOPPEL_ERROR_MEMORY;
    }
    *load = l;
    return DOPPEL_OK;
}

/* A free loader, the same for the same thread if possible. */
static loader *take_loader(dp_directory_load *load) {
    static _Atomic size_t threads;
    static _Thread_local size_t mine;
    if (!mine)
        mine = atomic_fetch_add(&threads, 1) + 1;
    for (size_t i = 0; i < load->loaders; i++) {
        loader *d = &load->loader[(mine + i) % load->loaders];
        if (!pthread_mutex_trylock(&d->lock))
            return d;
    }
    loader *d = &load->loader[mine % load->loaders];
    pthread_mutex_lock(&d->lock);
    return d;
}

/* Stages are made when they are needed: a loader may have no thread. */
static bool stage_all(dp_keys_stage **stage, dp_keys *keys, const uint64_t *hashes, size_t count, uint64_t number) {
    if (count && !*stage && !(*stage = dp_keys_stage_create(keys)))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!dp_keys_stage_add(*stage, hashes[i], number))
            return false;
    return true;
}

static bool put_fingerprint(loader *d, const dp_trace *trace, size_t words) {
    if (!dp_reserve(&d->owners, &d->owner_room, d->count + 1, sizeof *d->owners) ||
        !dp_reserve(&d->fingerprints, &d->fingerprint_room, (d->count + 1) * words, sizeof *d->fingerprints))
        return false;
    memcpy(d->fingerprints + d->count * words, trace->fingerprint, words * sizeof *d->fingerprints);
    d->owners[d->count++] = trace->number;
    return true;
}

/* The end of the original of a copy or text: NEVER for a document; 0: it is not there. */
static uint32_t original_end(dp_directory *directory, const dp_trace *trace) {
    return trace->kind == DP_TRACE_DOCUMENT ? NEVER : end_at(&directory->alive, trace->of);
}

static uint64_t earlier(uint64_t expires, uint32_t end) {
    uint32_t own = end_of(expires);
    return own <= end ? expires : end;
}

static bool put_early(loader *d, const dp_trace *trace) {
    if (!dp_reserve(&d->early, &d->early_room, d->early_count + 1, sizeof *d->early))
        return false;
    d->early[d->early_count] = *trace;
    d->early[d->early_count].key_count = 0;
    d->early[d->early_count++].title.length = 0;
    return true;
}

static bool put(dp_directory_load *load, loader *d, const dp_trace *trace) {
    dp_directory *directory = load->directory;
    uint64_t keys[KEY_KINDS], bands[DP_MOST_BANDS];
    uint32_t end = original_end(directory, trace);
    if (!end)
        return put_early(d, trace);
    if (!alive_reserve(&directory->alive, trace->number) ||
        !stage_all(&d->keys, directory->keys, keys, keys_of(trace, keys), trace->number) ||
        !stage_all(&d->bands, directory->bands, bands, bands_of(directory, trace, bands), trace->number) ||
        (has_near(directory, trace) && !put_fingerprint(d, trace, directory->options.bits > 64 ? 2 : 1)) ||
        (has_title(directory, trace) && !waiting_add(&d->titles[shard_of(trace->title)], trace->title, trace->number)))
        return false;
    alive_set(&directory->alive, trace->number, earlier(trace->expires, end));
    d->documents += trace->kind == DP_TRACE_DOCUMENT;
    d->copies += trace->kind == DP_TRACE_COPY;
    d->highest = trace->number > d->highest ? trace->number : d->highest;
    return true;
}

doppel_status dp_directory_load_add(dp_directory_load *load, const dp_trace *trace) {
    doppel_status status = check_trace(trace);
    if (status != DOPPEL_OK)
        return fail(load, status);
    if (dp_trace_is_removal(trace))
        return DOPPEL_OK;
    loader *d = take_loader(load);
    bool taken = put(load, d, trace);
    pthread_mutex_unlock(&d->lock);
    return taken ? DOPPEL_OK : fail(load, DOPPEL_ERROR_MEMORY);
}

/* ---- loading: the end ---- */

/* Moves all fingerprints to the first loader: inserted together they form one run, the fastest to search. */
static bool gather(dp_directory_load *load) {
    loader *first = &load->loader[0];
    size_t words = load->directory->options.bits > 64 ? 2 : 1;
    for (loader *d = first + 1; d < load->loader + load->loaders; d++) {
        if (!dp_reserve(&first->owners, &first->owner_room, first->count + d->count, sizeof *first->owners) ||
            !dp_reserve(&first->fingerprints, &first->fingerprint_room, (first->count + d->count) * words,
                        sizeof *first->fingerprints))
            return false;
        if (d->count) {
            memcpy(first->owners + first->count, d->owners, d->count * sizeof *d->owners);
            memcpy(first->fingerprints + first->count * words, d->fingerprints,
                   d->count * words * sizeof *d->fingerprints);
        }
        first->count += d->count;
        free(d->owners);
        free(d->fingerprints);
        d->owners = d->fingerprints = NULL;
    }
    return true;
}

static doppel_status insert_fingerprints(dp_directory_load *load) {
    loader *first = &load->loader[0];
    if (!load->directory->near)
        return DOPPEL_OK;
    if (!gather(load))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = DOPPEL_OK;
    if (first->count)
        status = doppel_index_add_batch(load->directory->near, first->fingerprints, first->owners, NULL, first->count);
    free(first->owners);
    free(first->fingerprints);
    first->owners = first->fingerprints = NULL;
    return status;
}

/* The titles of all loaders for a shard. */
static doppel_status add_titles(dp_directory_load *load, size_t shard) {
    doppel_status status = DOPPEL_OK;
    if (!load->directory->titles)
        return status;
    waiting_titles *waiting[DP_MAX_THREADS];
    for (size_t i = 0; i < load->loaders; i++)
        waiting[i] = &load->loader[i].titles[shard];
    status = load_waiting(load->directory->titles->shard[shard].index, waiting, load->loaders);
    for (size_t i = 0; i < load->loaders; i++)
        waiting_free(waiting[i]);
    return status;
}

/* The keys of a part, or the bands, of all loaders. */
static bool build_keys(dp_directory_load *load, bool bands, size_t part, dp_keys_scratch *scratch) {
    dp_keys_stage *stages[DP_MAX_THREADS];
    dp_keys *keys = bands ? load->directory->bands : load->directory->keys;
    for (size_t i = 0; i < load->loaders; i++)
        stages[i] = bands ? load->loader[i].bands : load->loader[i].keys;
    return !keys || dp_keys_build(keys, stages, load->loaders, part, scratch);
}

/* The longest tasks come first. */
enum { FINGERPRINTS = 0, FIRST_TITLES = 1, FIRST_BANDS = FIRST_TITLES + TITLE_SHARDS };
enum { FIRST_KEYS = FIRST_BANDS + DP_KEY_PARTS, TASKS = FIRST_KEYS + DP_KEY_PARTS };

static doppel_status run_task(dp_directory_load *load, size_t task, dp_keys_scratch *scratch) {
    if (task == FINGERPRINTS)
        return insert_fingerprints(load);
    if (task < FIRST_BANDS)
        return add_titles(load, task - FIRST_TITLES);
    bool bands = task < FIRST_KEYS;
    return build_keys(load, bands, task - (bands ? FIRST_BANDS : FIRST_KEYS), scratch) ? DOPPEL_OK
                                                                                       : DOPPEL_ERROR_MEMORY;
}

static void run_tasks(void *user, size_t thread) {
    dp_directory_load *load = user;
    dp_keys_scratch scratch = {0};
    (void)thread;
    for (size_t task; (task = atomic_fetch_add(&load->next, 1)) < TASKS;) {
        doppel_status status = atomic_load(&load->status) == DOPPEL_OK ? run_task(load, task, &scratch) : DOPPEL_OK;
        if (status != DOPPEL_OK)
            fail(load, status);
    }
    dp_keys_scratch_free(&scratch);
}

static void count_loader(dp_directory *directory, const loader *d) {
    atomic_fetch_add(&directory->documents, d->documents);
    atomic_fetch_add(&directory->copies, d->copies);
    dp_latest(&directory->highest, d->highest);
}

/* Those whose originals came later. What has none expires at once, so that a writer purges it. */
static doppel_status add_early(dp_directory *directory, const loader *d) {
    for (size_t i = 0; i < d->early_count; i++) {
        dp_trace trace = d->early[i];
        uint32_t end = original_end(directory, &trace);
        trace.expires = end ? earlier(trace.expires, end) : 1;
        if (end || !directory->options.read_only)
            DP_TRY(dp_directory_add(directory, &trace));
    }
    return DOPPEL_OK;
}

doppel_status dp_directory_load_end(dp_directory_load *load) {
    for (size_t i = 0; i < load->loaders; i++)
        count_loader(load->directory, &load->loader[i]);
    if (atomic_load(&load->status) == DOPPEL_OK)
        dp_run_threads(load->threads, run_tasks, load);
    doppel_status status = atomic_load(&load->status);
    for (size_t i = 0; i < load->loaders && status == DOPPEL_OK; i++)
        status = add_early(load->directory, &load->loader[i]);
    for (size_t i = 0; i < load->loaders; i++)
        clear_loader(&load->loader[i]);
    free(load);
    return status;
}

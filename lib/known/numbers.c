/* numbers.c - numbers of documents: lists and sets of them, which of them are there and until when, and parities of
 * their sets.
 *
 * Parities stand in pages that are found through a directory. Numbers are sifted ascending, so that what is looked at
 * stands together; a page has the parities folded to 512 bits, which drop most of what is far, and leads to the whole
 * ones. */
#include "known/numbers.h"
#include "kernel/kernel.h"

#include <stdlib.h>

bool dp_lock_init(pthread_rwlock_t *lock) {
    pthread_rwlockattr_t attributes;
    if (pthread_rwlockattr_init(&attributes))
        return false;
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    bool made = !pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
    return made;
}

/* ---- lists ---- */

void dp_numbers_free(dp_numbers *numbers) {
    free(numbers->number);
    *numbers = (dp_numbers){0};
}

/* From so many on a bitmap is tried, and used where a number has 64 bits of it or less. */
enum { MANY_NUMBERS = 256 };

/* Numbers that stand close together are sorted by setting a bit for each, and reading the bits. False: they do not, or
 * there is no memory. */
static bool arrange_dense(dp_numbers *numbers) {
    uint64_t *number = numbers->number, lowest = number[0], highest = number[0];
    for (size_t i = 1; i < numbers->count; i++) {
        lowest = number[i] < lowest ? number[i] : lowest;
        highest = number[i] > highest ? number[i] : highest;
    }
    uint64_t words = (highest - lowest) / 64 + 1;
    uint64_t *bits = words <= numbers->count ? calloc(words, sizeof *bits) : NULL;
    if (!bits)
        return false;
    for (size_t i = 0; i < numbers->count; i++)
        bits[(number[i] - lowest) / 64] |= (uint64_t)1 << (number[i] - lowest) % 64;
    numbers->count = 0;
    for (uint64_t i = 0; i < words; i++)
        for (uint64_t left = bits[i]; left; left &= left - 1)
            number[numbers->count++] = lowest + 64 * i + (uint64_t)__builtin_ctzll(left);
    free(bits);
    return true;
}

doppel_status dp_numbers_arrange(dp_numbers *numbers) {
    uint64_t few[64], *scratch = few, *number = numbers->number;
    size_t sorted = 1, count = numbers->count;
    while (sorted < count && number[sorted - 1] < number[sorted])
        sorted++;
    if (sorted >= count || (count >= MANY_NUMBERS && arrange_dense(numbers)))
        return DOPPEL_OK;
    if (count > sizeof few / sizeof *few && !(scratch = malloc(count * sizeof *scratch)))
        return DOPPEL_ERROR_MEMORY;
    dp_sort64(number, count, scratch);
    numbers->count = dp_unique64(number, count);
    if (scratch != few)
        free(scratch);
    return DOPPEL_OK;
}

/* ---- sets: at most half full, with linear probing ---- */

enum { LEAST_ROOM = 64 };

/* Where a number stands, or would stand. */
static size_t slot_of(const dp_number_set *set, uint64_t number) {
    size_t at = (size_t)(number * 0x9E3779B97F4A7C15u >> 20) & (set->room - 1);
    while (set->slot[at] && set->slot[at] != number)
        at = (at + 1) & (set->room - 1);
    return at;
}

bool dp_number_set_reserve(dp_number_set *set) {
    if (set->count < set->room / 2)
        return true;
    dp_number_set larger = {.room = set->room ? 2 * set->room : LEAST_ROOM};
    if (!(larger.slot = calloc(larger.room, sizeof *larger.slot)))
        return false;
    for (size_t i = 0; i < set->room; i++)
        if (set->slot[i])
            dp_number_set_add(&larger, set->slot[i]);
    free(set->slot);
    *set = larger;
    return true;
}

void dp_number_set_add(dp_number_set *set, uint64_t number) {
    size_t at = slot_of(set, number);
    set->count += !set->slot[at];
    set->slot[at] = number;
}

bool dp_number_set_has(const dp_number_set *set, uint64_t number) {
    return set->count && set->slot[slot_of(set, number)];
}

void dp_number_set_clear(dp_number_set *set) {
    if (set->count)
        memset(set->slot, 0, set->room * sizeof *set->slot);
    set->count = 0;
}

void dp_number_set_free(dp_number_set *set) {
    free(set->slot);
    *set = (dp_number_set){0};
}

/* ---- which numbers there are ---- */

/* What stands for a number: 0, it is not there; NEVER, it does not end; else the second it ends. */
#define NEVER UINT32_MAX
#define NO_PLACE UINT64_MAX

static uint32_t end_of(uint64_t expires) {
    return !expires ? NEVER : expires < NEVER ? (uint32_t)expires : NEVER - 1;
}

bool dp_alive_init(dp_alive *alive) {
    *alive = (dp_alive){0};
    return !pthread_mutex_init(&alive->lock, NULL);
}

void dp_alive_free(dp_alive *alive) {
    dp_alive_directory *directory = atomic_load(&alive->directory), *before;
    for (size_t i = 0; directory && i < directory->count; i++)
        free(atomic_load(&directory->page[i]));
    for (; directory; directory = before) {
        before = directory->before;
        free(directory);
    }
    for (dp_alive_page *page = alive->idle, *next; page; page = next) {
        next = page->next;
        free(page);
    }
    pthread_mutex_destroy(&alive->lock);
}

/* ---- pages ---- */

static dp_alive_page *page_at(dp_alive *alive, uint64_t place) {
    dp_alive_directory *directory = atomic_load_explicit(&alive->directory, memory_order_acquire);
    return directory && place < directory->count ? atomic_load_explicit(&directory->page[place], memory_order_acquire)
                                                 : NULL;
}

/* A directory with room for a place, under the lock. Smaller ones stay: all of them together are no larger. */
static bool grow(dp_alive *alive, uint64_t place) {
    dp_alive_directory *old = atomic_load(&alive->directory);
    size_t count = old ? old->count : 0, need = count ? count : 8;
    if (place < count)
        return true;
    while (need <= place)
        need *= 2;
    dp_alive_directory *directory = calloc(1, sizeof *directory + need * sizeof *directory->page);
    if (!directory)
        return false;
    *directory = (dp_alive_directory){.count = need, .before = old};
    for (size_t i = 0; i < count; i++)
        atomic_store_explicit(&directory->page[i], atomic_load(&old->page[i]), memory_order_relaxed);
    atomic_store_explicit(&alive->directory, directory, memory_order_release);
    return true;
}

static dp_alive_page *take_page(dp_alive *alive) {
    dp_alive_page *page = alive->idle;
    if (page) {
        alive->idle = page->next;
    } else if ((page = calloc(1, sizeof *page))) {
        atomic_fetch_add(&alive->pages, 1);
    }
    return page;
}

bool dp_alive_reserve(dp_alive *alive, uint64_t number) {
    uint64_t place = number / DP_ALIVE_PAGE;
    if (page_at(alive, place))
        return true;
    pthread_mutex_lock(&alive->lock);
    bool there = grow(alive, place);
    if (there && !page_at(alive, place)) {
        dp_alive_page *page = take_page(alive);
        if (page) {
            atomic_store(&page->earliest, NEVER);
            atomic_store(&page->place, place);
            atomic_store_explicit(&atomic_load(&alive->directory)->page[place], page, memory_order_release);
        }
        there = page;
    }
    pthread_mutex_unlock(&alive->lock);
    return there;
}

/* ---- numbers ---- */

void dp_alive_set(dp_alive *alive, uint64_t number, uint64_t expires) {
    dp_alive_page *page = page_at(alive, number / DP_ALIVE_PAGE);
    uint32_t end = end_of(expires), earliest = atomic_load_explicit(&page->earliest, memory_order_relaxed);
    while (end < earliest && !atomic_compare_exchange_weak(&page->earliest, &earliest, end))
        ;
    atomic_fetch_add_explicit(&page->count, 1, memory_order_relaxed);
    atomic_store_explicit(&page->end[number % DP_ALIVE_PAGE], end, memory_order_release);
}

/* A page without numbers leaves its place. */
static void retire(dp_alive *alive, dp_alive_page *page) {
    pthread_mutex_lock(&alive->lock);
    dp_alive_directory *directory = atomic_load(&alive->directory);
    atomic_store(&directory->page[atomic_load(&page->place)], NULL);
    atomic_store(&page->place, NO_PLACE);
    page->next = alive->idle;
    alive->idle = page;
    pthread_mutex_unlock(&alive->lock);
}

bool dp_alive_clear(dp_alive *alive, uint64_t number) {
    dp_alive_page *page = page_at(alive, number / DP_ALIVE_PAGE);
    if (!page || !atomic_exchange(&page->end[number % DP_ALIVE_PAGE], 0))
        return false;
    if (atomic_fetch_sub(&page->count, 1) == 1)
        retire(alive, page);
    return true;
}

/* The page may get another place while it is read: it gets that before it gets numbers, so that whoever reads a number
 * of the new place sees the new place too. */
static uint32_t end_at(dp_alive *alive, uint64_t number) {
    dp_alive_page *page = page_at(alive, number / DP_ALIVE_PAGE);
    if (!page)
        return 0;
    uint32_t end = atomic_load_explicit(&page->end[number % DP_ALIVE_PAGE], memory_order_acquire);
    return atomic_load_explicit(&page->place, memory_order_relaxed) == number / DP_ALIVE_PAGE ? end : 0;
}

bool dp_alive_has(dp_alive *alive, uint64_t number) {
    return end_at(alive, number) != 0;
}

bool dp_alive_at(dp_alive *alive, uint64_t number, uint64_t now) {
    uint32_t end = end_at(alive, number);
    return end == NEVER || end > now;
}

/* ---- the end ---- */

static size_t page_ended(dp_alive *alive, uint64_t place, uint64_t now, uint64_t *numbers, size_t room) {
    dp_alive_page *page = page_at(alive, place);
    size_t found = 0;
    if (!page || atomic_load_explicit(&page->earliest, memory_order_relaxed) > now)
        return 0;
    for (size_t i = 0; i < DP_ALIVE_PAGE && found < room; i++) {
        uint32_t end = atomic_load_explicit(&page->end[i], memory_order_acquire);
        if (end && end <= now && end != NEVER)
            numbers[found++] = place * DP_ALIVE_PAGE + i;
    }
    return atomic_load_explicit(&page->place, memory_order_relaxed) == place ? found : 0;
}

size_t dp_alive_ended(dp_alive *alive, uint64_t now, uint64_t *numbers, size_t room) {
    dp_alive_directory *directory = atomic_load_explicit(&alive->directory, memory_order_acquire);
    size_t found = 0;
    for (size_t i = 0; directory && i < directory->count && found < room; i++)
        found += page_ended(alive, i, now, numbers + found, room - found);
    return found;
}

uint64_t dp_alive_bytes(const dp_alive *alive) {
    const dp_alive_directory *directory = atomic_load(&alive->directory);
    return atomic_load(&alive->pages) * sizeof(dp_alive_page) +
           2 * (directory ? directory->count * sizeof *directory->page : 0);
}

/* ---- parities ---- */

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
    made->secret = dp_random_number() | 1;
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

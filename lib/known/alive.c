/* alive.c - which numbers there are, and when each of them ends. */
#include "known/alive.h"

#include <stdlib.h>

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

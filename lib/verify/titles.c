/* titles.c - one text against many: doppel_titles_add() keeps texts ready, doppel_titles_scan() compares one with all.
 *
 * Two filters stand before the edit distance d. Both are lower bounds of it, so that no text is lost:
 * - lengths: d is at least their difference;
 * - letter bags (kernel.h): 31 counters of code points by class, and the length as the 32nd. A substitution changes two
 *   of the 31 by one, an insertion or deletion one of them and the length, and cutting a counter off at 255 can only
 *   bring two of them nearer to each other. So the sum of absolute differences is at most 2 d.
 * What passes is measured by banded.c.
 *
 * Texts are kept in chunks, each with the bags in groups of eight as the kernel reads them; their code points stand in
 * one array, each in 1, 2 or 4 bytes as the largest of the text needs. */
#include "kernel/kernel.h"
#include "verify/banded.h"

#include <stdlib.h>

/* 4096 texts: bags of 128 KiB, which with their masks stay in the second-level cache between filter and measure. */
enum { CHUNK = 4096, CHUNK_GROUPS = CHUNK / DP_BAG_GROUP };

struct chunk {
    uint8_t bags[CHUNK_GROUPS][DP_BAG_SIZE / 8][DP_BAG_GROUP][8];
    struct title {
        uint64_t start; /* in bytes of doppel_titles.points */
        uint64_t length : 61, width : 3;
    } titles[CHUNK];
};

struct doppel_titles {
    struct chunk **chunks;
    size_t chunk_capacity, count;
    dp_buffer points;
    uint32_t *room; /* for decoding */
    size_t room_capacity;
};

doppel_status doppel_titles_create(doppel_titles **titles) {
    *titles = calloc(1, sizeof **titles);
    return *titles ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

void doppel_titles_free(doppel_titles *titles) {
    if (!titles)
        return;
    for (size_t i = 0; i * CHUNK < titles->count; i++)
        free(titles->chunks[i]);
    free(titles->chunks);
    dp_buffer_free(&titles->points);
    free(titles->room);
    free(titles);
}

size_t doppel_titles_count(const doppel_titles *titles) {
    return titles->count;
}

/* ---- adding ---- */

/* Latin letters get a counter each, small and capital together; other ASCII shares five; the rest is spread over all by
 * the high bits of a product with 2^32 divided by the golden ratio. */
static unsigned counter_of(uint32_t point) {
    if (point >= 128)
        return (unsigned)((uint64_t)(point * 0x9E3779B1u) * 31 >> 32);
    uint32_t letter = (point | 32) - 'a';
    return letter < 26 ? letter : 26 + point % 5;
}

void dp_title_bag(dp_points text, uint8_t bag[32]) {
    memset(bag, 0, 32);
    for (size_t i = 0; i < text.count; i++) {
        uint8_t *counter = &bag[counter_of(text.data[i])];
        *counter = (uint8_t)(*counter + (*counter < 255));
    }
    bag[31] = (uint8_t)(text.count < 255 ? text.count : 255);
}

static unsigned width_of(dp_points text) {
    uint32_t all = 0;
    for (size_t i = 0; i < text.count; i++)
        all |= text.data[i];
    return all < 256 ? 1 : all < 65536 ? 2 : 4;
}

/* Makes room for the points of a text, aligned to their width; a chunk for it if the last one is full. */
static bool make_room(doppel_titles *titles, size_t bytes) {
    dp_buffer *points = &titles->points;
    if (!dp_reserve(&points->data, &points->capacity, points->size + bytes + 4, 1))
        return false;
    if (titles->count % CHUNK)
        return true;
    size_t at = titles->count / CHUNK;
    if (!dp_reserve(&titles->chunks, &titles->chunk_capacity, at + 1, sizeof *titles->chunks))
        return false;
    titles->chunks[at] = aligned_alloc(64, (sizeof(struct chunk) + 63) / 64 * 64);
    return titles->chunks[at] != NULL;
}

static void put_points(char *at, dp_points text, unsigned width) {
    for (size_t i = 0; i < text.count; i++) {
        uint16_t half = (uint16_t)text.data[i];
        if (width == 1)
            at[i] = (char)text.data[i];
        else if (width == 2)
            memcpy(at + 2 * i, &half, 2);
        else
            memcpy(at + 4 * i, &text.data[i], 4);
    }
}

static doppel_status add_points(doppel_titles *titles, dp_points text) {
    unsigned width = width_of(text);
    if (!make_room(titles, text.count * width))
        return DOPPEL_ERROR_MEMORY;
    struct chunk *chunk = titles->chunks[titles->count / CHUNK];
    size_t at = titles->count % CHUNK, start = (titles->points.size + width - 1) / width * width;
    put_points(titles->points.data + start, text, width);
    titles->points.size = start + text.count * width;
    chunk->titles[at] = (struct title){.start = start, .length = text.count & (UINT64_MAX >> 3), .width = width & 7};
    uint8_t bag[DP_BAG_SIZE];
    dp_title_bag(text, bag);
    for (size_t row = 0; row < DP_BAG_SIZE / 8; row++)
        memcpy(chunk->bags[at / DP_BAG_GROUP][row][at % DP_BAG_GROUP], bag + 8 * row, 8);
    titles->count++;
    return DOPPEL_OK;
}

doppel_status doppel_titles_add(doppel_titles *titles, const char *text, size_t length) {
    if (!dp_reserve(&titles->room, &titles->room_capacity, length, sizeof *titles->room))
        return DOPPEL_ERROR_MEMORY;
    return add_points(titles, (dp_points){titles->room, dp_points_decode(text, length, titles->room)});
}

/* ---- scanning ---- */

typedef bool (*found_function)(size_t number, double similarity, void *user);

struct scan {
    const doppel_titles *titles;
    dp_banded banded;
    uint8_t bag[DP_BAG_SIZE];
    unsigned bag_limit;
    found_function found;
    void *user;
};

/* The largest sum of differences of bags that a text similar enough can have: 2 d for the largest d that any length
 * allows. The similarity 1 - d / length grows with the length, which is at most count + d, and at that length it does
 * not grow with d, so the first d that fails is the end. */
static unsigned find_bag_limit(size_t count, double min) {
    size_t most = DP_BAG_SIZE * 255 / 2, distance = 0;
    while (distance < most && dp_edit_similarity(distance + 1, count + distance + 1) >= min)
        distance++;
    return (unsigned)(2 * distance);
}

/* Measures up to DP_WALKS texts and reports those that are similar enough. */
static doppel_status measure(struct scan *scan, size_t first, const uint16_t *picked, size_t count) {
    const struct title *titles = scan->titles->chunks[first / CHUNK]->titles;
    dp_packed texts[DP_WALKS];
    double similarities[DP_WALKS];
    for (size_t i = 0; i < count; i++) {
        const struct title *title = &titles[picked[i]];
        texts[i] = (dp_packed){scan->titles->points.data + title->start, title->length, title->width};
    }
    doppel_status status = dp_banded_measure(&scan->banded, texts, count, similarities);
    for (size_t i = 0; i < count && !status; i++)
        if (similarities[i] >= 0 && !scan->found(first + picked[i], similarities[i], scan->user))
            status = DOPPEL_ERROR_INTERRUPTED;
    return status;
}

/* The numbers, inside the chunk, of the texts that pass the filters. */
static size_t pick(const struct scan *scan, const struct chunk *chunk, size_t texts, uint16_t *picked) {
    uint8_t near[CHUNK_GROUPS + 8] = {0};
    dp_bags_kernel()(&chunk->bags[0][0][0][0], (texts + DP_BAG_GROUP - 1) / DP_BAG_GROUP, scan->bag, scan->bag_limit,
                     near);
    /* Texts that are not there have any bag. */
    if (texts % DP_BAG_GROUP)
        near[texts / DP_BAG_GROUP] &= (uint8_t)((1u << texts % DP_BAG_GROUP) - 1);
    size_t count = 0;
    for (size_t eight = 0; eight * 64 < texts; eight++) {
        for (uint64_t hits = dp_load64(near + 8 * eight); hits; hits &= hits - 1) {
            size_t at = eight * 64 + (size_t)__builtin_ctzll(hits);
            if (!dp_banded_fits(&scan->banded, chunk->titles[at].length))
                continue;
            __builtin_prefetch(scan->titles->points.data + chunk->titles[at].start);
            picked[count++] = (uint16_t)at;
        }
    }
    return count;
}

static doppel_status scan_all(struct scan *scan) {
    uint16_t picked[CHUNK];
    for (size_t first = 0; first < scan->titles->count; first += CHUNK) {
        size_t texts = scan->titles->count - first;
        size_t count = pick(scan, scan->titles->chunks[first / CHUNK], texts < CHUNK ? texts : CHUNK, picked);
        for (size_t i = 0; i < count; i += DP_WALKS) {
            size_t left = count - i;
            doppel_status status = measure(scan, first, picked + i, left < DP_WALKS ? left : DP_WALKS);
            if (status)
                return status;
        }
    }
    return DOPPEL_OK;
}

doppel_status doppel_titles_scan(const doppel_titles *titles, const char *text, size_t length, double min,
                                 found_function found, void *user) {
    /* Even an equal text is not similar enough (or min is not a number). */
    if (!(1 >= min))
        return DOPPEL_OK;
    uint32_t *points = length < SIZE_MAX / sizeof *points ? malloc((length + 1) * sizeof *points) : NULL;
    if (!points)
        return DOPPEL_ERROR_MEMORY;
    size_t count = dp_points_decode(text, length, points);
    struct scan scan = {.titles = titles, .bag_limit = find_bag_limit(count, min), .found = found, .user = user};
    dp_title_bag((dp_points){points, count}, scan.bag);
    doppel_status status = dp_banded_init(&scan.banded, (dp_points){points, count}, min);
    if (!status)
        status = scan_all(&scan);
    dp_banded_free(&scan.banded);
    free(points);
    return status;
}

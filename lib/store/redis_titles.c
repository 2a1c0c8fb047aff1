/* redis_titles.c - what is looked up in Redis for a title: its own place, the segments that lead to it, and the
 * segments of titles that may be similar. lib/index/titles_find.c has the reasons; here every length may be there, and
 * is cut evenly. lib/store/redis/ has the same arithmetic.
 *
 * A segment is hashed by two sums modulo primes below 2^26, so that products are exact in the numbers of Lua: one says
 * the bucket, the other stands in it. */
#include "store/redis_memory.h"
#include "verify/verify.h"

#include <openssl/sha.h>
#include <stdlib.h>

enum { MOST_SEGMENTS = 57, SHORTEST = 2, PLACE = 7, TITLE_PLACE = 8 };
static const uint64_t primes[2] = {67108859, 67108837};

/* A title, and the sums of its beginnings. */
typedef struct asked {
    const dp_redis_memory *memory;
    uint64_t base[2], factor[2];
    size_t length;
    uint64_t *sums[2];
    dp_buffer places;
    bool failed;
} asked;

static uint64_t power(uint64_t base, size_t exponent, uint64_t prime) {
    uint64_t result = 1;
    for (; exponent; exponent >>= 1, base = base * base % prime)
        if (exponent & 1)
            result = result * base % prime;
    return result;
}

static void read_secrets(asked *a) {
    uint8_t text[9], hash[SHA_DIGEST_LENGTH];
    memcpy(text, a->memory->seed, 8);
    text[8] = 's';
    SHA1(text, sizeof text, hash);
    for (int i = 0; i < 4; i++) {
        uint64_t number = ((uint64_t)hash[3 * i] << 16 | (uint64_t)hash[3 * i + 1] << 8 | hash[3 * i + 2]) + 1024;
        *(i < 2 ? &a->base[i] : &a->factor[i - 2]) = number;
    }
}

static bool read_title(asked *a, doppel_slice title) {
    uint32_t *points = malloc((title.length + 1) * sizeof *points);
    a->sums[0] = malloc(2 * (title.length + 1) * sizeof **a->sums);
    bool there = points && a->sums[0];
    if (there) {
        a->sums[1] = a->sums[0] + title.length + 1;
        a->length = dp_points_decode(title.data, title.length, points);
    }
    for (int h = 0; h < 2 && there; h++) {
        a->sums[h][0] = 0;
        for (size_t i = 0; i < a->length; i++)
            a->sums[h][i + 1] = (a->sums[h][i] * a->base[h] + points[i] + 1) % primes[h];
    }
    free(points);
    return there;
}

/* The part from `start` on, `size` code points, as segment `number` of titles of some kind. */
static void add_place(asked *a, size_t kind, size_t number, size_t start, size_t size) {
    uint64_t hash[2];
    for (int h = 0; h < 2; h++) {
        uint64_t p = primes[h], shift = power(a->base[h], size, p);
        uint64_t part = (a->sums[h][start + size] + p - a->sums[h][start] * shift % p) % p;
        hash[h] = ((kind * 64 + number + 1) * a->factor[h] % p * shift + part) % p;
    }
    uint64_t bucket = (hash[0] << a->memory->plan.title_bits) / primes[0];
    const uint8_t place[PLACE] = {(uint8_t)(bucket >> 16),  (uint8_t)(bucket >> 8),   (uint8_t)bucket,
                                  (uint8_t)(hash[1] >> 24), (uint8_t)(hash[1] >> 16), (uint8_t)(hash[1] >> 8),
                                  (uint8_t)hash[1]};
    a->failed = a->failed || !dp_buffer_add(&a->places, place, sizeof place);
}

/* As titles_groups.c counts them; 0: all titles of the length are compared. */
static size_t segments_for(size_t length, double least) {
    size_t most = 0, allowed;
    for (size_t longer = length; dp_edit_allowed(longer, least, &allowed) && longer - length <= allowed; longer++) {
        most = allowed > most ? allowed : most;
        if (most + 1 > MOST_SEGMENTS || (most + 1) * SHORTEST > length)
            return 0;
    }
    return most + 1;
}

/* Segments have one of a few sizes, so that titles of nearly the same length mostly have the same; and titles that are
 * not cut are told apart by their length. */
enum { SIZES = 11, NOT_CUT = 128 };
static const size_t sizes[SIZES] = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

/* Which of the sizes so many segments of a title have. */
static size_t size_for(size_t length, size_t count) {
    size_t size = 0;
    while (size + 1 < SIZES && sizes[size + 1] * count <= length)
        size++;
    return size;
}

static void add_homes(asked *a) {
    size_t count = segments_for(a->length, a->memory->plan.title_similarity);
    size_t size = count ? sizes[size_for(a->length, count)] : 0;
    if (!count)
        add_place(a, NOT_CUT + a->length, 0, 0, 0);
    for (size_t i = 0; i < count; i++)
        add_place(a, size, i, i * size, size);
}

/* Of a title within distance d some segment i of the first d + 1 is untouched, with at most i edits before it: it
 * stands at most i code points aside. */
static void add_shifts(asked *a, size_t size, size_t d) {
    for (size_t i = 0; i <= d; i++)
        for (size_t at = i * size > i ? i * size - i : 0; at <= i * size + i && at + size <= a->length; at++)
            add_place(a, size, i, at, size);
}

/* No title is longer than a title may be. */
enum { LONGEST = 65536 };

/* Notes that titles of a length may be within distance d. */
static void note_length(asked *a, size_t length, size_t d, size_t most[SIZES]) {
    size_t count = segments_for(length, a->memory->plan.title_similarity);
    if (!count) {
        add_place(a, NOT_CUT + length, 0, 0, 0);
        return;
    }
    size_t *noted = &most[size_for(length, count)];
    *noted = d + 1 > *noted ? d + 1 : *noted;
}

static void add_probes(asked *a) {
    double least = a->memory->plan.title_similarity;
    size_t allowed, most[SIZES] = {0};
    if (!dp_edit_allowed(a->length, least, &allowed))
        return;
    for (size_t length = a->length - allowed; length <= a->length; length++)
        note_length(a, length, allowed, most);
    for (size_t length = a->length + 1; length <= LONGEST && !a->failed; length++) {
        if (!dp_edit_allowed(length, least, &allowed) || length - a->length > allowed)
            break;
        note_length(a, length, allowed, most);
    }
    for (size_t i = 0; i < SIZES; i++)
        if (most[i])
            add_shifts(a, sizes[i], most[i] - 1);
}

/* Gives what has been added, as an argument. */
static void put_places(dp_redis_writer *w, asked *a) {
    void *bytes = dp_arena_take(w->arena, a->places.size);
    w->failed = w->failed || a->failed || !bytes;
    if (bytes && a->places.size)
        memcpy(bytes, a->places.data, a->places.size);
    dp_redis_put(w, bytes, a->places.size);
    a->places.size = 0;
}

static void put_own_place(dp_redis_writer *w, doppel_slice title) {
    uint8_t *hash = dp_arena_take(w->arena, SHA_DIGEST_LENGTH);
    uint8_t *text = dp_arena_take(w->arena, title.length + 9);
    w->failed = w->failed || !hash || !text;
    if (w->failed)
        return;
    memcpy(text, w->memory->seed, 8);
    text[8] = 't';
    memcpy(text + 9, title.data, title.length);
    SHA1(text, title.length + 9, hash);
    dp_redis_put(w, hash, TITLE_PLACE);
}

void dp_redis_put_title(dp_redis_writer *w, doppel_slice title) {
    asked a = {.memory = w->memory};
    if (!title.length || !w->memory->plan.title_bits) {
        for (int i = 0; i < 3; i++)
            dp_redis_put(w, NULL, 0);
        return;
    }
    put_own_place(w, title);
    read_secrets(&a);
    a.failed = !read_title(&a, title);
    if (!a.failed)
        add_homes(&a);
    put_places(w, &a);
    if (!a.failed)
        add_probes(&a);
    put_places(w, &a);
    dp_buffer_free(&a.places);
    free(a.sums[0]);
}

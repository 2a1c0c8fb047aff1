/* directory.c - what the engine has in memory: adding, removing and finding.
 *
 * A number comes alive last when it is added: what is found of it before does not count. */
#include "known/directory_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* 1,024 segments of keys: at ten million documents with three keys each a key meets another's number once in 280
 * look-ups. Bands are looked up many at a time, and have more. */
enum { KEY_SEGMENTS = 10, BAND_SEGMENTS = 12 };

/* ---- creating ---- */

static doppel_status create_near(dp_directory *directory, doppel_error *error) {
    const dp_directory_options *o = &directory->options;
    doppel_index_options options = {
        .size = sizeof options, .bits = o->bits, .distance = o->distance, .count = o->count, .memory = o->memory};
    if (!o->by_similarity)
        return doppel_index_create(&options, &directory->near, error);
    if (!(directory->bands = dp_keys_create(BAND_SEGMENTS)) || !(directory->parities = dp_parities_create()))
        return dp_no_memory(error);
    return DOPPEL_OK;
}

doppel_status dp_directory_create(const dp_directory_options *options, dp_directory **directory, doppel_error *error) {
    dp_directory *k = calloc(1, sizeof *k);
    *directory = NULL;
    if (!k || !dp_alive_init(&k->alive)) {
        free(k);
        return dp_no_memory(error);
    }
    k->options = *options;
    doppel_status status = DOPPEL_OK;
    if (!(k->keys = dp_keys_create(KEY_SEGMENTS)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK)
        status = create_near(k, error);
    if (status == DOPPEL_OK && options->titles &&
        (status = dp_directory_titles_create(options->title_similarity, &k->titles)) != DOPPEL_OK)
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
    dp_parities_free(directory->parities);
    doppel_index_free(directory->near);
    dp_directory_titles_free(directory->titles);
    dp_alive_free(&directory->alive);
    free(directory);
}

/* ---- keys ---- */

/* Keys of one kind shall not meet those of another. */
static uint64_t key_hash(dp_key key, uint64_t hash) {
    return hash + (uint64_t)key * 0x9E3779B97F4A7C15u;
}

static uint64_t band_hash(size_t band, uint32_t key) {
    return (uint64_t)band << 32 | key;
}

size_t dp_directory_keys(const dp_trace *trace, uint64_t hashes[DP_KEY_KINDS]) {
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

size_t dp_directory_bands(const dp_directory *directory, const dp_trace *trace, uint64_t hashes[DP_MOST_BANDS]) {
    if (!directory->bands || trace->kind != DP_TRACE_DOCUMENT || !trace->content)
        return 0;
    uint32_t keys[DP_MOST_BANDS];
    if (trace->key_count)
        memcpy(keys, trace->keys, trace->key_count * sizeof *keys); /* they may be unaligned */
    for (size_t i = 0; i < trace->key_count; i++)
        hashes[i] = band_hash(i, keys[i]);
    return trace->key_count;
}

/* Memory is slow, and many places are asked for at once faster than one after the other. */
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

doppel_status dp_directory_check(const dp_trace *trace) {
    if (trace->number > DP_DIRECTORY_NUMBERS)
        return DOPPEL_ERROR_STORE;
    return trace->number && trace->key_count <= DP_MOST_BANDS ? DOPPEL_OK : DOPPEL_ERROR_USAGE;
}

/* Before the keys of the number are there, so that who finds them knows it too. */
void dp_directory_raise(dp_directory *directory, uint64_t number) {
    uint64_t highest = atomic_load(&directory->highest);
    while (highest < number && !atomic_compare_exchange_weak(&directory->highest, &highest, number))
        ;
}

/* Title and fingerprint. */
static doppel_status add_content(dp_directory *directory, const dp_trace *trace) {
    bool titled = dp_directory_titled(directory, trace);
    doppel_status status = DOPPEL_OK;
    if (titled)
        status = dp_directory_titles_add(directory->titles, trace->title, trace->number);
    if (status != DOPPEL_OK || !dp_directory_near(directory, trace))
        return status;
    status = doppel_index_insert(directory->near, trace->fingerprint, trace->number, 0);
    if (status != DOPPEL_OK && titled)
        dp_directory_titles_remove(directory->titles, trace->title, trace->number);
    return status;
}

/* Texts are neither documents nor copies. */
static void count_trace(dp_directory *directory, const dp_trace *trace, int change) {
    if (dp_trace_is_kept(trace))
        atomic_fetch_add(trace->kind == DP_TRACE_DOCUMENT ? &directory->documents : &directory->copies,
                         (uint64_t)change);
}

doppel_status dp_directory_add(dp_directory *directory, const dp_trace *trace) {
    doppel_status status = dp_directory_check(trace);
    uint64_t keys[DP_KEY_KINDS], bands[DP_MOST_BANDS];
    if (status != DOPPEL_OK || dp_trace_is_removal(trace) || dp_alive_has(&directory->alive, trace->number))
        return status;
    size_t key_count = dp_directory_keys(trace, keys), band_count = dp_directory_bands(directory, trace, bands);
    fetch_all(directory->keys, keys, key_count);
    fetch_all(directory->bands, bands, band_count);
    dp_directory_raise(directory, trace->number);
    if (!dp_alive_reserve(&directory->alive, trace->number) ||
        !add_all(directory->keys, keys, key_count, trace->number))
        return DOPPEL_ERROR_MEMORY;
    if (!add_all(directory->bands, bands, band_count, trace->number))
        status = DOPPEL_ERROR_MEMORY;
    else if ((status = add_content(directory, trace)) != DOPPEL_OK)
        remove_all(directory->bands, bands, band_count, trace->number);
    if (status != DOPPEL_OK) {
        remove_all(directory->keys, keys, key_count, trace->number);
        return status;
    }
    dp_alive_set(&directory->alive, trace->number, trace->expires);
    count_trace(directory, trace, 1);
    return DOPPEL_OK;
}

/* What can fail comes first. */
doppel_status dp_directory_remove(dp_directory *directory, const dp_trace *trace) {
    uint64_t keys[DP_KEY_KINDS], bands[DP_MOST_BANDS];
    doppel_status status = dp_directory_check(trace);
    if (status != DOPPEL_OK || dp_trace_is_removal(trace) || !dp_alive_has(&directory->alive, trace->number))
        return status;
    if (dp_directory_near(directory, trace))
        status = doppel_index_remove(directory->near, trace->fingerprint, trace->number, NULL);
    if (status != DOPPEL_OK)
        return status;
    dp_alive_clear(&directory->alive, trace->number);
    if (directory->parities)
        dp_parities_remove(directory->parities, trace->number);
    size_t key_count = dp_directory_keys(trace, keys), band_count = dp_directory_bands(directory, trace, bands);
    fetch_all(directory->keys, keys, key_count);
    fetch_all(directory->bands, bands, band_count);
    remove_all(directory->keys, keys, key_count, trace->number);
    remove_all(directory->bands, bands, band_count, trace->number);
    if (dp_directory_titled(directory, trace))
        dp_directory_titles_remove(directory->titles, trace->title, trace->number);
    count_trace(directory, trace, -1);
    return DOPPEL_OK;
}

/* ---- finding ---- */

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

/* Puts in the place of numbers that were found, which are cut to 32 bits, all those that are there and may be meant. */
static doppel_status widen(dp_directory *directory, dp_numbers *numbers) {
    size_t cut = numbers->count;
    uint64_t highest = atomic_load(&directory->highest);
    if (highest <= UINT32_MAX)
        return DOPPEL_OK;
    for (size_t i = 0; i < cut; i++) {
        for (uint64_t number = numbers->number[i]; number <= highest; number += (uint64_t)1 << 32) {
            if (!dp_alive_has(&directory->alive, number))
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

/* What was found, as it is given. */
static doppel_status give(dp_directory *directory, dp_numbers *numbers) {
    doppel_status status = dp_numbers_arrange(numbers);
    return status == DOPPEL_OK ? widen(directory, numbers) : status;
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
    dp_parities_sift(directory->parities, sift, numbers);
}

void dp_directory_keep_parity(dp_directory *directory, uint64_t number, const dp_features *features) {
    (void)dp_parities_add(directory->parities, number, features, &directory->alive);
}

doppel_status dp_directory_find_near(dp_directory *directory, const uint64_t *fingerprint, int distance,
                                     doppel_matches *matches, doppel_error *error) {
    return doppel_index_find(directory->near, fingerprint, distance, NULL, matches, error);
}

bool dp_directory_alive(dp_directory *directory, uint64_t number, uint64_t now) {
    return dp_alive_at(&directory->alive, number, now);
}

size_t dp_directory_expired(dp_directory *directory, uint64_t now, uint64_t *numbers, size_t room) {
    return dp_alive_ended(&directory->alive, now, numbers, room);
}

void dp_directory_get_stats(dp_directory *directory, dp_directory_stats *stats) {
    *stats = (dp_directory_stats){.documents = atomic_load(&directory->documents),
                                  .copies = atomic_load(&directory->copies)};
    stats->keys_bytes = dp_keys_bytes(directory->keys) + dp_alive_bytes(&directory->alive);
    if (directory->bands)
        stats->near_bytes = dp_keys_bytes(directory->bands) + dp_parities_bytes(directory->parities);
    if (directory->near) {
        doppel_index_stats near;
        doppel_index_get_stats(directory->near, &near);
        stats->near_bytes = near.bytes;
        snprintf(stats->plan, sizeof stats->plan, "%s", near.layout);
    }
    if (directory->titles)
        dp_directory_titles_stats(directory->titles, stats);
}

/* titles_hash.c - a hash that stands for a title, whether it is in the index or not. */
#include "index/titles_store.h"

/* From the sum over all of its code points (titles_store.h). */
static uint64_t finish(const dp_titles_index *index, uint64_t sum, size_t length) {
    uint64_t x = sum ^ dp_titles_seed(index, length, 0, DP_TITLES_WHOLE);
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    x ^= x >> 32;
    return x ? x : 1;
}

doppel_status dp_titles_index_hash(const dp_titles_index *index, const char *title, size_t length, uint64_t *hash) {
    dp_titles_text text;
    doppel_status status = dp_titles_text_init(&text, index, title, length);
    if (status != DOPPEL_OK)
        return status;
    *hash = finish(index, text.sums[text.points.count], text.points.count);
    dp_titles_text_free(&text);
    return DOPPEL_OK;
}

uint64_t dp_titles_index_hash_of(const dp_titles_index *index, const dp_title_match *match) {
    const dp_titles_entry *entry = &index->entries[match->entry];
    uint64_t sum = 0;
    for (size_t i = 0; i < entry->length; i++) {
        uint32_t point = 0;
        memcpy(&point, entry->points + i * entry->width, entry->width);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        point >>= 32 - 8 * entry->width;
#endif
        sum = dp_titles_next(index->base, sum, point);
    }
    return finish(index, sum, entry->length);
}

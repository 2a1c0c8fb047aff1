/* fuzz_pages.c - any bytes as LMDB's pages: every way to read them ends, gives a value inside of them, or says that
 * they are damaged. The bytes end where their memory does, so that a read beyond them is seen. */
#include "fuzz.h"

#include "store/pages.h"

#include <stdlib.h>

/* Forged trees may lead to one page many times: at most this many entries are walked. */
enum { MOST = 2000 };

static const dp_pages *pages;

static void check_value(const dp_page_value *found) {
    const uint8_t *at = found->value.mv_data;
    if (at)
        CHECK(at >= pages->map && found->value.mv_size <= (uint64_t)(pages->map + pages->count * pages->size - at));
}

static void check_status(int status) {
    CHECK(!status || status == MDB_NOTFOUND || status == MDB_CORRUPTED);
}

static int one_of_few(uint64_t number, void *user) {
    (void)number;
    return ++*(size_t *)user > MOST ? MDB_NOTFOUND : 0;
}

static void walk(const dp_btree *tree, uint64_t from) {
    dp_cursor cursor = {.used = NULL};
    dp_page_value found;
    uint64_t number;
    int status = 0;
    dp_cursor_seek(&cursor, pages, tree, from);
    for (int i = 0; i < MOST && status != MDB_NOTFOUND; i++) {
        status = dp_cursor_next(&cursor, &number, &found);
        check_status(status);
        if (status)
            continue;
        check_value(&found);
        size_t count = 0;
        if (tree->flags & MDB_DUPSORT && found.value.mv_data)
            (void)dp_dups_each(pages, &found, one_of_few, &count, NULL);
        status = dp_btree_get(pages, tree, number, &found);
        check_status(status);
        if (!status)
            check_value(&found);
    }
}

static void read_database(const char *name, unsigned flags, dp_hashmap *checked) {
    dp_btree tree;
    int status = dp_btree_named(pages, name, flags, &tree);
    check_status(status);
    if (status)
        return;
    for (uint64_t number = 0; number < 8; number++) {
        check_status(dp_btree_check(pages, &tree, number, 0, checked));
        walk(&tree, number);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dp_meta meta;
    if (size < DP_META_BYTES || !dp_meta_decode(data, &meta) || !meta.sound)
        return 0;
    uint64_t count = size / meta.page_size, checksum, free_count;
    dp_pages all = {.size = meta.page_size, .meta = meta, .count = count < meta.last + 1 ? count : meta.last + 1};
    if (!all.count)
        return 0;
    uint8_t *copy = malloc(all.count * all.size);
    CHECK(copy);
    memcpy(copy, data, all.count * all.size);
    all.map = copy;
    pages = &all;
    dp_hashmap checked = {0};
    read_database("traces", MDB_INTEGERKEY, &checked);
    read_database("links", MDB_INTEGERKEY | MDB_DUPSORT | MDB_DUPFIXED | MDB_INTEGERDUP, &checked);
    dp_hashmap_free(&checked);
    dp_btree texts;
    dp_page_value found;
    if (!dp_btree_named(pages, "meta", 0, &texts)) {
        check_status(dp_btree_check_text(pages, &texts));
        int status = dp_btree_get_text(pages, &texts, "state", &found);
        check_status(status);
        if (!status)
            check_value(&found);
    }
    check_status(dp_free_check(pages, &checksum, &free_count, NULL));
    free(copy);
    return 0;
}

/* 02_index_and_query.c - which fingerprints are near? Add, find, find near-duplicates, remove.
 *
 * Build it with: cc 02_index_and_query.c $(pkg-config --cflags --libs doppel) */
#include <doppel.h>
#include <stdio.h>

/* Prints every entry within 3 bits of a fingerprint, nearest first; returns their number. */
static size_t print_near(const doppel_index *index, uint64_t fingerprint) {
    doppel_matches near = {0};
    doppel_error error;
    if (doppel_index_find(index, &fingerprint, 3, NULL, &near, &error) != DOPPEL_OK)
        fprintf(stderr, "%s\n", error.message);
    printf("near 0x%llx:", (unsigned long long)fingerprint);
    for (size_t i = 0; i < near.count; i++)
        printf(" 0x%llx (document %llu, distance %d)", (unsigned long long)near.match[i].fingerprint[0],
               (unsigned long long)near.match[i].owner, near.match[i].distance);
    printf("\n");
    size_t count = near.count;
    doppel_matches_free(&near);
    return count;
}

int main(void) {
    doppel_index *index;
    if (doppel_index_create(NULL, &index, NULL) != DOPPEL_OK)
        return 1;

    /* An entry is a fingerprint and its owner, any number: here that of a document. 0 stands for "never expires". */
    doppel_index_add(index, &(uint64_t){0x0}, 1, 0);
    doppel_index_add(index, &(uint64_t){0x78}, 2, 0);

    /* 0x70 differs from 0x0 in three bits and from 0x78 in one; 0x0 and 0x78 differ in four. */
    bool as_expected = print_near(index, 0x70) == 2 && print_near(index, 0x0) == 1;

    bool there;
    doppel_index_remove(index, &(uint64_t){0x78}, 2, &there);
    as_expected = as_expected && there && print_near(index, 0x70) == 1;
    doppel_index_free(index);
    return as_expected ? 0 : 1;
}

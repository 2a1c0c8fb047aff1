/* 01_compare_two.c - how similar are two texts?
 *
 *     01_compare_two FILE_A FILE_B     two files
 *     01_compare_two                   two texts of its own
 *
 * Build it with: cc 01_compare_two.c $(pkg-config --cflags --libs doppel) */
#include <doppel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char fox_a[] = "The quick brown fox jumps over the lazy dog, and then it sleeps in the sun all day.";
static const char fox_b[] = "The QUICK brown fox jumps over the lazy dog - and then it sleeps in the shade all day!";

/* The bytes of a file, malloc'ed; NULL when it cannot be read. */
static char *read_file(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    size_t room = 1 << 16;
    char *text = NULL, *grown;
    for (*length = 0; (grown = realloc(text, room)); room *= 2) {
        text = grown;
        *length += fread(text + *length, 1, room - *length, file);
        if (*length < room)
            break;
    }
    fclose(file);
    return text;
}

static void compare(doppel_slice a, doppel_slice b) {
    /* The short way: a number for each text, and how many of its 64 bits differ. Few do when the texts are similar. */
    uint64_t fingerprint_a, fingerprint_b;
    doppel_fingerprint(a, &fingerprint_a);
    doppel_fingerprint(b, &fingerprint_b);
    printf("fingerprints %016llx %016llx, distance %d\n", (unsigned long long)fingerprint_a,
           (unsigned long long)fingerprint_b, doppel_distance(fingerprint_a, fingerprint_b));

    /* The long way: every measure. NULL stands for the default recipe, 5-word shingles. */
    doppel_comparison measures;
    if (doppel_compare(NULL, a, b, &measures) != DOPPEL_OK)
        return;
    printf("similarity   %.3f, containment %.3f and %.3f, edit similarity %.3f\n", measures.similarity,
           measures.containment_ab, measures.containment_ba, measures.edit_similarity);

    /* What they share, word for word: runs of at least 4 words, as byte ranges of the texts. */
    doppel_passages shared = {0};
    if (doppel_passages_find(NULL, a, b, 4, &shared) != DOPPEL_OK)
        return;
    for (size_t i = 0; i < shared.count; i++) {
        const doppel_passage *passage = &shared.passage[i];
        printf("both have    %.*s\n", (int)(passage->a_end - passage->a_start), a.data + passage->a_start);
    }
    doppel_passages_free(&shared);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        compare(doppel_slice_of(fox_a), doppel_slice_of(fox_b));
        return 0;
    }
    size_t a_length = 0, b_length = 0;
    char *a = read_file(argv[1], &a_length), *b = read_file(argv[2], &b_length);
    bool read = a && b;
    if (read)
        compare((doppel_slice){a, a_length}, (doppel_slice){b, b_length});
    else
        fprintf(stderr, "cannot read %s\n", argv[a ? 2 : 1]);
    free(a);
    free(b);
    return read ? 0 : 1;
}

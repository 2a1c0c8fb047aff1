/* 01_compare_two.c - how alike are two texts?
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

static void compare(const char *a, size_t a_length, const char *b, size_t b_length) {
    /* The short way: a number for each text, and how many of its 64 bits differ. Few do when the texts are alike. */
    uint64_t fingerprint_a, fingerprint_b;
    doppel_fingerprint(a, a_length, &fingerprint_a);
    doppel_fingerprint(b, b_length, &fingerprint_b);
    printf("fingerprints %016llx %016llx, distance %d\n", (unsigned long long)fingerprint_a,
           (unsigned long long)fingerprint_b, doppel_distance(fingerprint_a, fingerprint_b));

    /* The long way: every measure. NULL stands for the default recipe, 5-word shingles. */
    doppel_comparison measures;
    if (doppel_compare(NULL, a, a_length, b, b_length, &measures) != DOPPEL_OK)
        return;
    printf("similarity   %.3f, containment %.3f and %.3f, edit similarity %.3f\n", measures.similarity,
           measures.containment_ab, measures.containment_ba, measures.edit_similarity);

    /* What they share, word for word: runs of at least 4 words, as byte ranges of the texts. */
    doppel_passage *passages;
    size_t count;
    if (doppel_passages(NULL, a, a_length, b, b_length, 4, &passages, &count) != DOPPEL_OK)
        return;
    for (size_t i = 0; i < count; i++)
        printf("both have    %.*s\n", (int)(passages[i].a_end - passages[i].a_start), a + passages[i].a_start);
    free(passages);
}

int main(int argc, char **argv) {
    if (argc != 3) {
        compare(fox_a, strlen(fox_a), fox_b, strlen(fox_b));
        return 0;
    }
    size_t a_length = 0, b_length = 0;
    char *a = read_file(argv[1], &a_length), *b = read_file(argv[2], &b_length);
    bool read = a && b;
    if (read)
        compare(a, a_length, b, b_length);
    else
        fprintf(stderr, "cannot read %s\n", argv[a ? 2 : 1]);
    free(a);
    free(b);
    return read ? 0 : 1;
}

/* bench_documents.c - makes the files that bench/cores measures on. Needs nothing but a C library:
 *
 *   cc -O2 -pthread bench_documents.c planted.c process.c -lm -o bench_documents
 *
 *   bench_documents documents FOLDER COUNT FILES   FOLDER/00.jsonl, 01.jsonl, ...: records {"id","url","text"}
 *   bench_documents fingerprints FILE COUNT        a raw file of random ones (bench/planted.h)
 *   bench_documents queries FILE COUNT OF          and one of queries against the first OF of them
 *
 * A text has 400 invented words, drawn by Zipf's law. One document in ten is a near-copy of an earlier one of its file:
 * up to 18 in 1000 words are others, and one is its own id, so that no two documents have the same words. Everything is
 * a function of a document's number, so the same arguments give the same bytes. */
#include "planted.h"
#include "process.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 400, VOCABULARY = 65536, LONGEST = 16, MOST_FILES = 256 };
enum { COPY_EVERY = 10, MOST_EDITS = 18 /* in 1000 words */ };

/* A well mixed number for each (stream, position): the finaliser of SplitMix64. */
static uint64_t mixed(uint64_t stream, uint64_t position) {
    uint64_t x = (stream << 32) + position * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* ---- words ---- */

static char vocabulary[VOCABULARY][LONGEST];

/* Syllables, more of them in rare words: at most four of three letters. */
static void make_word(char *to, unsigned rank) {
    uint64_t random = mixed(1, rank);
    int syllables = 1 + (rank > 30) + (rank > 500) + (int)(random & 1);
    for (int i = 0; i < syllables; i++) {
        random = mixed(2, random);
        *to++ = "bcdfghklmnprstvw"[random & 15];
        *to++ = "aeiou"[(random >> 8) % 5];
        if ((random >> 16) % 3 == 0)
            *to++ = "bcdfghklmnprstvw"[random >> 20 & 15];
    }
}

/* Zipf's law with exponent 1, by its integral. */
static unsigned draw_word(uint64_t random) {
    return (unsigned)exp((double)(random >> 11) * 0x1p-53 * log(VOCABULARY));
}

/* ---- documents ---- */

typedef struct file_job {
    const char *folder;
    int number;
    uint64_t first, end;
} file_job;

/* Adds word i of document `number`, a copy of `of` except for the edits: `edits` in 1000 words, and word 200 of a copy.
 */
static char *put_word(char *to, uint64_t number, uint64_t of, unsigned edits, unsigned i) {
    uint64_t edit = mixed(3, number * WORDS + i);
    if (of != number && i == WORDS / 2)
        return to + sprintf(to, "d%llu", (unsigned long long)number);
    const char *word = vocabulary[draw_word(edit % 1000 < edits ? mixed(4, edit) : mixed(5, of * WORDS + i))];
    size_t length = strlen(word);
    memcpy(to, word, length);
    return to + length;
}

static size_t make_record(char *line, const file_job *job, uint64_t number) {
    uint64_t random = mixed(6, number), of = number;
    unsigned edits = 0;
    if (number > job->first && random % COPY_EVERY == 0) {
        of = job->first + (random >> 16) % (number - job->first);
        edits = (unsigned)(random >> 8) % MOST_EDITS;
    }
    char *to = line + sprintf(line, "{\"id\":\"d%llu\",\"url\":\"http://h%u.example/p/%llu\",\"text\":\"",
                              (unsigned long long)number, (unsigned)(number % 997), (unsigned long long)number);
    for (unsigned i = 0; i < WORDS; i++) {
        to = put_word(to, number, of, edits, i);
        if (i % 13 == 12)
            *to++ = '.';
        *to++ = ' ';
    }
    memcpy(to, "\"}\n", 3);
    return (size_t)(to + 3 - line);
}

/* A thread: writes one file. */
static void *write_file(void *user) {
    const file_job *job = user;
    char path[4096], line[WORDS * (LONGEST + 8) + 200];
    snprintf(path, sizeof path, "%s/%02d.jsonl", job->folder, job->number);
    FILE *file = fopen(path, "wb");
    if (!file)
        bench_fail("cannot be written", path);
    for (uint64_t i = job->first; i < job->end; i++) {
        size_t size = make_record(line, job, i);
        if (fwrite(line, 1, size, file) != size)
            bench_fail("cannot be written", path);
    }
    if (fclose(file) != 0)
        bench_fail("cannot be written", path);
    return NULL;
}

static void write_documents(const char *folder, uint64_t count, uint64_t files) {
    pthread_t thread[MOST_FILES];
    file_job job[MOST_FILES];
    if (!files || files > MOST_FILES)
        bench_fail("1 to 256 files", "usage");
    for (unsigned i = 1; i < VOCABULARY; i++)
        make_word(vocabulary[i], i);
    for (uint64_t i = 0; i < files; i++) {
        job[i] = (file_job){folder, (int)i, count * i / files, count * (i + 1) / files};
        if (pthread_create(&thread[i], NULL, write_file, &job[i]) != 0)
            bench_fail("cannot be started", "thread");
    }
    for (uint64_t i = 0; i < files; i++)
        pthread_join(thread[i], NULL);
}

int main(int count, char **argument) {
    const char *command = count > 1 ? argument[1] : "";
    if (strcmp(command, "documents") == 0 && count == 5)
        write_documents(argument[2], process_number(argument[3]), process_number(argument[4]));
    else if (strcmp(command, "fingerprints") == 0 && count == 4)
        planted_write(argument[2], process_number(argument[3]));
    else if (strcmp(command, "queries") == 0 && count == 5)
        planted_write_queries(argument[2], process_number(argument[3]), process_number(argument[4]));
    else
        bench_fail("COMMAND ARGUMENTS: see the head of bench/bench_documents.c", "usage");
    return 0;
}

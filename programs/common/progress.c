/* progress.c - one line on the terminal, written over and over. */
#include "common/progress.h"

#include "common/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Between two lines, in seconds: readable, and too rare to cost anything. */
#define INTERVAL 0.2

/* The state of the one progress line a terminal has. One thread shows it, any may have something to say in between. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *what;
    bool active, shown;
    double begun, last;
} line;

static double now(void) {
    return (double)now_microseconds() * 1e-6;
}

static void begin(const char *what) {
    line.what = what;
    line.begun = line.last = line.active ? now() : 0;
}

void progress_begin(const char *what) {
    pthread_mutex_lock(&lock);
    line.active = isatty(STDERR_FILENO);
    begin(what);
    pthread_mutex_unlock(&lock);
}

void progress_change(const char *what) {
    pthread_mutex_lock(&lock);
    if (line.active && strcmp(line.what, what) != 0)
        begin(what);
    pthread_mutex_unlock(&lock);
}

static void clear_line(void) {
    if (line.shown)
        fputs("\r\033[K", stderr);
    line.shown = false;
}

void progress_clear(void) {
    pthread_mutex_lock(&lock);
    clear_line();
    pthread_mutex_unlock(&lock);
}

void progress_end(void) {
    pthread_mutex_lock(&lock);
    clear_line();
    line.active = false;
    pthread_mutex_unlock(&lock);
}

static void print_left(double seconds) {
    unsigned long left = (unsigned long)seconds;
    if (left >= 3600)
        fprintf(stderr, ", %lu h %02lu min left", left / 3600, left / 60 % 60);
    else if (left >= 60)
        fprintf(stderr, ", %lu min %02lu s left", left / 60, left % 60);
    else
        fprintf(stderr, ", %lu s left", left);
}

static void show_documents(uint64_t bytes, uint64_t total, uint64_t documents) {
    double time = line.active ? now() : 0;
    if (!line.active || time - line.last < INTERVAL)
        return;
    clear_line();
    double seconds = time - line.begun, megabytes = (double)bytes * 1e-6;
    fprintf(stderr, "%s: %llu documents, %.0f MB, %.0f MB/s", line.what, (unsigned long long)documents, megabytes,
            megabytes / seconds);
    if (total > bytes && bytes)
        print_left((double)(total - bytes) / ((double)bytes / seconds));
    fflush(stderr);
    line.shown = true;
    line.last = time;
}

static void show_part(uint64_t done, uint64_t total) {
    double time = line.active ? now() : 0, seconds = time - line.begun;
    if (!line.active || time - line.last < INTERVAL)
        return;
    clear_line();
    double share = total && done < total ? (double)done / (double)total : 1;
    if (total)
        fprintf(stderr, "%s: %.0f %%", line.what, 100 * share);
    else
        fprintf(stderr, "%s: %.1f million, %.1f million/s", line.what, (double)done * 1e-6,
                (double)done * 1e-6 / seconds);
    if (total && share > 0)
        print_left(seconds * (1 - share) / share);
    fflush(stderr);
    line.shown = true;
    line.last = time;
}

void progress_show(uint64_t bytes, uint64_t total, uint64_t documents, void *user) {
    (void)user;
    pthread_mutex_lock(&lock);
    show_documents(bytes, total, documents);
    pthread_mutex_unlock(&lock);
}

void progress_part(uint64_t done, uint64_t total, void *user) {
    (void)user;
    pthread_mutex_lock(&lock);
    show_part(done, total);
    pthread_mutex_unlock(&lock);
}

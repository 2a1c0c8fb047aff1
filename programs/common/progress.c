/* progress.c - how far the work is: on a terminal one line, redrawn in place; elsewhere a line every 30 s. */
#include "common/progress.h"

#include "common/clock.h"
#include "common/message.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds between two lines: on a terminal slow enough to read; in a log, where every line stays, far fewer. */
#define INTERVAL 0.2
#define LOG_INTERVAL 30

/* The state of the progress line. One thread shows it; any thread may print a message, which clears it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    const char *what;
    unsigned step, steps; /* 0: there are no others */
    bool active, shown, terminal;
    double begun, last;
    uint64_t limit; /* at most this many documents are read; 0: all */
} line;

static double now(void) {
    return (double)now_microseconds() * 1e-6;
}

static void begin(const char *what) {
    /* In a log the interval continues from one step to the next, so that many short steps do not make many lines. */
    double time = line.active ? now() : 0;
    if (line.terminal || line.last == 0)
        line.last = time;
    line.what = what;
    line.begun = time;
}

void progress_begin(const char *what) {
    progress_begin_step(what, 0, 0);
}

void progress_begin_step(const char *what, unsigned number, unsigned steps) {
    pthread_mutex_lock(&lock);
    line.step = number;
    line.steps = steps;
    line.active = !message_quiet;
    line.terminal = isatty(STDERR_FILENO);
    begin(what);
    pthread_mutex_unlock(&lock);
}

void progress_limit(uint64_t documents) {
    pthread_mutex_lock(&lock);
    line.limit = documents;
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

/* The text of a line. */
typedef struct line_text {
    char text[200];
    size_t length;
} line_text;

__attribute__((format(printf, 2, 3))) static void put(line_text *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to->text + to->length, sizeof to->text - to->length, format, args);
    va_end(args);
    to->length += length > 0 ? (size_t)length : 0;
    if (to->length >= sizeof to->text)
        to->length = sizeof to->text - 1;
}

/* "reading", or "reading (1 of 3)" */
static void put_what(line_text *to) {
    put(to, "%s", line.what);
    if (line.steps)
        put(to, " (%u of %u)", line.step, line.steps);
}

static void put_left(line_text *to, double seconds) {
    unsigned long left = (unsigned long)seconds;
    if (!left)
        return;
    if (left >= 3600)
        put(to, ", %lu h %02lu min left", left / 3600, left / 60 % 60);
    else if (left >= 60)
        put(to, ", %lu min %02lu s left", left / 60, left % 60);
    else
        put(to, ", %lu s left", left);
}

/* Whether it is time for a line. */
static bool is_due(double time) {
    return line.active && time - line.last >= (line.terminal ? INTERVAL : LOG_INTERVAL);
}

/* On a terminal that is too narrow for the text, shows `brief`, cut to its width: a line broken into two rows could not
 * be redrawn in place. */
static void show(const line_text *text, const line_text *brief, double time) {
    int columns = line.terminal ? terminal_columns(stderr) : 0;
    size_t room = columns > 1 ? (size_t)columns - 1 : SIZE_MAX;
    text = text->length > room ? brief : text;
    size_t length = text->length > room ? room : text->length;
    clear_line();
    fprintf(stderr, line.terminal ? "%.*s" : "doppel: %.*s\n", (int)length, text->text);
    fflush(stderr);
    line.shown = line.terminal;
    line.last = time;
}

/* Seconds until the end of the input or the limit, whichever comes first; negative: unknown. */
static double seconds_left(double seconds, uint64_t bytes, uint64_t total, uint64_t documents) {
    double by_bytes = -1, by_limit = -1;
    if (total > bytes && bytes)
        by_bytes = seconds * (double)(total - bytes) / (double)bytes;
    if (line.limit > documents && documents)
        by_limit = seconds * (double)(line.limit - documents) / (double)documents;
    return by_bytes < 0 || (by_limit >= 0 && by_limit < by_bytes) ? by_limit : by_bytes;
}

static void show_documents(uint64_t bytes, uint64_t total, uint64_t documents) {
    double time = line.active ? now() : 0, seconds = time - line.begun, megabytes = (double)bytes * 1e-6;
    line_text text = {.length = 0};
    if (!is_due(time))
        return;
    put_what(&text);
    put(&text, ": %llu documents", (unsigned long long)documents);
    line_text brief = text;
    put(&text, ", %.0f MB, %.0f MB/s", megabytes, megabytes / seconds);
    double left = seconds_left(seconds, bytes, total, documents);
    if (left >= 0) {
        put_left(&text, left);
        put_left(&brief, left);
    }
    show(&text, &brief, time);
}

static void show_part(uint64_t done, uint64_t total) {
    double time = line.active ? now() : 0, seconds = time - line.begun;
    line_text text = {.length = 0};
    if (!is_due(time))
        return;
    double share = total && done < total ? (double)done / (double)total : 1;
    put_what(&text);
    if (total)
        put(&text, ": %.0f %%", 100 * share);
    else
        put(&text, ": %.1f million, %.1f million/s", (double)done * 1e-6, (double)done * 1e-6 / seconds);
    if (total && share > 0)
        put_left(&text, seconds * (1 - share) / share);
    show(&text, &text, time);
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

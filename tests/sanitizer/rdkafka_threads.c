/* rdkafka_threads.c - lets the thread sanitizer run programs that use librdkafka; part of them in that build alone.
 *
 * librdkafka starts its threads with thrd_create of C11, which the sanitizer does not know: such a thread crashes in
 * its first allocation. These stand in for the C library's calls, and go by pthread_create, which it knows. What
 * librdkafka does inside is not looked at: it is not built with the sanitizer, and its locks are not seen. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

#define SHOWN __attribute__((visibility("default")))

SHOWN const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void) {
    return "called_from_lib:librdkafka.so\nrace:librdkafka.so\n";
}

typedef struct start {
    thrd_start_t function;
    void *argument;
} start;

static void *run(void *user) {
    start s = *(start *)user;
    free(user);
    return (void *)(intptr_t)s.function(s.argument);
}

SHOWN int thrd_create(thrd_t *thread, thrd_start_t function, void *argument) {
    start *s = malloc(sizeof *s);
    if (!s)
        return thrd_nomem;
    *s = (start){function, argument};
    if (!pthread_create(thread, NULL, run, s))
        return thrd_success;
    free(s);
    return thrd_error;
}

SHOWN int thrd_join(thrd_t thread, int *result) {
    void *ended;
    if (pthread_join(thread, &ended))
        return thrd_error;
    if (result)
        *result = (int)(intptr_t)ended;
    return thrd_success;
}

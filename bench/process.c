/* process.c - clock, memory and figures of a benchmark program, and its end. */
#include "process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

_Noreturn void bench_fail(const char *message, const char *what) {
    fprintf(stderr, "bench: %s: %s\n", what, message);
    exit(1);
}

double process_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A line `name: 123 kB` of /proc/self/status; 0: there is none. */
static uint64_t kilobytes(const char *name) {
    char line[128];
    unsigned long long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtoull(line + strlen(name) + 1, NULL, 10);
    }
    fclose(file);
    return value;
}

uint64_t process_memory(void) {
    return 1024 * kilobytes("VmRSS");
}

uint64_t process_peak(void) {
    return 1024 * kilobytes("VmHWM");
}

void process_forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file); /* sets the peak back to what there is now */
        fclose(file);
    }
}

void process_print(const char *name, double value) {
    printf("%s\t%.9g\n", name, value);
    fflush(stdout);
}

uint64_t process_number(const char *argument) {
    char *end;
    double value = strtod(argument, &end);
    double unit = *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
    end += unit > 1;
    if (end == argument || *end || value < 0)
        bench_fail("not a number", argument);
    return (uint64_t)(value * unit + 0.5);
}

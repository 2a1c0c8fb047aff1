/* process.h - what a benchmark program knows of its own process, and how it prints a figure. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdint.h>

/* Seconds of a clock that never goes back, whatever BENCH_CLOCK says: work of several threads is measured by it. */
double process_now(void);

/* Bytes of memory this process has now, and the most it had since the start or since process_forget_peak. */
uint64_t process_memory(void);
uint64_t process_peak(void);
void process_forget_peak(void);

/* Prints `name`, a tab and the number. */
void process_print(const char *name, double value);

/* A number of an argument: 40, 1e6, 20G (powers of 1000: k, M, G). Ends the program for anything else. */
uint64_t process_number(const char *argument);

/* Prints the message and the program's name, and exits with 1. */
_Noreturn void bench_fail(const char *message, const char *what);

#endif

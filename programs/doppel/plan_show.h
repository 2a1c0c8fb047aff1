/* plan_show.h - plans for people and as JSON. */
#ifndef PLAN_SHOW_H
#define PLAN_SHOW_H

#include "doppel.h"

#include <stdio.h>

/* What was asked, and what came of it. */
typedef struct plan_answer {
    doppel_purpose purpose;
    uint64_t memory; /* 0: no limit */
    doppel_costs costs;
    const doppel_plan *plans; /* the chosen one first */
    size_t count;
    const doppel_plan *wider; /* the chosen layout for greater distances */
    size_t wider_count;
} plan_answer;

/* The choice in words, a table of it and its alternatives, and what greater distances cost. */
void show_plans(FILE *file, const plan_answer *answer);

/* The same, and every plan there is, as one JSON object on a line. */
void print_plans(FILE *file, const plan_answer *answer);

/* The constants of the cost model, a line each. */
void show_costs(FILE *file, const doppel_costs *costs);

/* A number of bytes as options take them, rounded up: 309M, 1.3G. */
const char *show_bytes(double bytes, char text[32]);

#endif

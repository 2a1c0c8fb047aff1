/* plan_show.c - plans for people: the choice in words, then a row for each way to cut the bits. */
#include "plan_show.h"

#include "common/message.h"

#include <math.h>
#include <string.h>

enum { TEXT = 32 };

/* ---- numbers ---- */

const char *show_bytes(double bytes, char text[32]) {
    static const char units[] = " KMGTP";
    size_t unit = 0;
    while (bytes >= 1000 && unit + 2 < sizeof units) {
        bytes /= 1024;
        unit++;
    }
    double shown = bytes < 10 && unit ? ceil(bytes * 10) / 10 : ceil(bytes);
    snprintf(text, TEXT, "%.*f%.*s", shown > floor(shown) ? 1 : 0, shown, unit ? 1 : 0, units + unit);
    return text;
}

static const char *show_time(double microseconds, char text[TEXT]) {
    static const struct {
        double least, each;
        const char *unit;
    } units[] = {{5400e6, 3600e6, "h"}, {90e6, 60e6, "min"}, {1e6, 1e6, "s"}, {1e3, 1e3, "ms"}, {0, 1, "us"}};
    size_t i = 0;
    while (microseconds < units[i].least)
        i++;
    double shown = microseconds / units[i].each;
    snprintf(text, TEXT, "%.*f %s", shown < 10 ? 2 : shown < 100 ? 1 : 0, shown, units[i].unit);
    return text;
}

/* A count with commas: 87,381. Beyond what a double counts exactly it is written as a power. */
static const char *show_count(double count, char text[TEXT]) {
    char digits[TEXT];
    if (count >= 1e15) {
        snprintf(text, TEXT, "%.1e", count);
        return text;
    }
    int length = snprintf(digits, sizeof digits, "%.0f", count);
    char *to = text;
    for (int i = 0; i < length; i++) {
        if (i && (length - i) % 3 == 0)
            *to++ = ',';
        *to++ = digits[i];
    }
    *to = 0;
    return text;
}

/* As show_count, with a fraction where the number is small. */
static const char *show_few(double number, char text[TEXT]) {
    if (number >= 100 || fabs(number - round(number)) < 1e-9)
        return show_count(round(number), text);
    snprintf(text, TEXT, "%.*f", number < 10 ? 2 : 1, number);
    return text;
}

static const char *show_reduction(double reduction, char text[TEXT]) {
    if (!(reduction > 0))
        return "-";
    show_count(floor(reduction), text);
    double part = reduction - floor(reduction);
    if (part >= 0.005)
        snprintf(text + strlen(text), (size_t)TEXT - strlen(text), ".%02.0f", fmin(99, round(part * 100)));
    return text;
}

/* The least and the most of the keys' bits: 16, or 25-26. */
static const char *show_keys(const doppel_plan *plan, char text[TEXT]) {
    int least = plan->key_bits[0], most = least;
    for (int t = 1; t < plan->tables && t < DOPPEL_PLAN_TABLES; t++) {
        least = plan->key_bits[t] < least ? plan->key_bits[t] : least;
        most = plan->key_bits[t] > most ? plan->key_bits[t] : most;
    }
    snprintf(text, TEXT, least < most ? "%d-%d" : "%d", least, most);
    return text;
}

/* Radii with how many tables have each: 0 0 0 0, or 0 x20; - where there is no probe. */
static const char *show_radii(const doppel_plan *plan, char text[TEXT]) {
    enum { SPELT_OUT = 6 };
    size_t used = 0;
    int tables = plan->tables < DOPPEL_PLAN_TABLES ? plan->tables : DOPPEL_PLAN_TABLES, same;
    text[0] = 0;
    for (int t = 0; t < tables && used + 12 < TEXT; t += same) {
        same = 1;
        while (tables > SPELT_OUT && t + same < tables && plan->radius[t + same] == plan->radius[t])
            same++;
        used += (size_t)snprintf(text + used, TEXT - used, plan->radius[t] < 0 ? "%s-" : "%s%d", t ? " " : "",
                                 plan->radius[t]);
        if (same > 1)
            used += (size_t)snprintf(text + used, TEXT - used, " x%d", same);
    }
    return text;
}

/* ---- words ---- */

static bool is_scan(const doppel_plan *plan) {
    return plan->tables == 1 && plan->key_bits[0] == 0;
}

/* Tables, but none are used: comparing all is cheaper. */
static bool is_unused(const doppel_plan *plan) {
    for (int t = 0; t < plan->tables && t < DOPPEL_PLAN_TABLES; t++)
        if (plan->radius[t] >= 0)
            return false;
    return true;
}

static void say_find(FILE *file, const doppel_plan *plan) {
    char a[TEXT], b[TEXT], c[TEXT];
    if (is_scan(plan)) {
        fprintf(file, "A find compares all %s.", show_count((double)plan->count, a));
    } else if (is_unused(plan)) {
        fprintf(file, "%d table%s with keys of %s bits; for so few, a find compares all %s.", plan->tables,
                plan->tables == 1 ? "" : "s", show_keys(plan, b), show_count((double)plan->count, a));
    } else {
        fprintf(file, "%d table%s with keys of %s bits. A find looks at %s buckets and compares about %s fingerprints.",
                plan->tables, plan->tables == 1 ? "" : "s", show_keys(plan, c), show_count(plan->probes, a),
                show_few(plan->candidates, b));
    }
    fprintf(file, "\nAbout %s a find on one thread; ", show_time(plan->microseconds, a));
    fprintf(file, "%s bytes of memory, %.1f a fingerprint with its owner.\n", show_bytes(plan->memory, b),
            plan->bytes_per_entry);
}

static void say_join(FILE *file, const doppel_plan *plan) {
    char a[TEXT], b[TEXT];
    if (is_scan(plan))
        fprintf(file, "All are compared with all: %s pairs.", show_count(plan->candidates, a));
    else
        fprintf(file,
                "Any such pair agrees in %d of %d blocks: %d passes over memory, then tables; about %s comparisons.",
                plan->blocks - plan->distance, plan->blocks, plan->distance + 1, show_count(plan->candidates, a));
    fprintf(file, "\nAbout %s on one thread; %s bytes of memory.\n", show_time(plan->microseconds, a),
            show_bytes(plan->memory, b));
}

static void say_choice(FILE *file, const plan_answer *answer) {
    const doppel_plan *plan = answer->plans;
    char count[TEXT], memory[TEXT];
    fprintf(file, "%s %s fingerprints of %d bits within %d",
            answer->purpose == DOPPEL_FOR_JOIN ? "Joining" : "Finding among", show_count((double)plan->count, count),
            plan->bits, plan->distance);
    if (answer->memory)
        fprintf(file, ", in %s", show_bytes((double)answer->memory, memory));
    fprintf(file, ": %s%s\n", plan->layout, plan->fits ? "" : " is the smallest, and does not fit");
    if (answer->purpose == DOPPEL_FOR_JOIN)
        say_join(file, plan);
    else
        say_find(file, plan);
}

/* ---- the table ---- */

/* Whether two plans cut the bits alike, with keys of other lengths: the names agree up to the x. */
static bool same_cut(const doppel_plan *a, const doppel_plan *b) {
    size_t length = strcspn(a->layout, "x") + 1;
    return !strncmp(a->layout, b->layout, length) && a->tables == b->tables;
}

/* Rows are the best plan of each cut, and the classics: whole blocks as keys, a table each. */
static bool has_row(const plan_answer *answer, size_t i) {
    const doppel_plan *plan = &answer->plans[i];
    if (plan->reduction > 0 && plan->key_bits[0] == plan->bits / plan->blocks)
        return true;
    if (answer->purpose == DOPPEL_FOR_JOIN)
        return true;
    for (size_t j = 0; j < i; j++)
        if (same_cut(&answer->plans[j], plan))
            return false;
    return true;
}

static void show_head(FILE *file, const plan_answer *answer) {
    if (answer->purpose == DOPPEL_FOR_JOIN)
        fprintf(file, "\n  %-10s %6s %5s %16s %10s %7s %9s  %s\n", "layout", "tables", "key", "candidates",
                "bytes each", "memory", "time", "fits");
    else
        fprintf(file, "\n  %-10s %6s %5s %-11s %7s %11s %10s %7s %9s %10s  %s\n", "layout", "tables", "key", "radii",
                "probes", "candidates", "bytes each", "memory", "time", "reduction", "fits");
}

static void show_row(FILE *file, const plan_answer *answer, const doppel_plan *plan, bool chosen) {
    char text[6][TEXT];
    fprintf(file, "%c %-10s %6d %5s ", chosen ? '*' : ' ', plan->layout, plan->tables, show_keys(plan, text[0]));
    if (answer->purpose == DOPPEL_FOR_FIND)
        fprintf(file, "%-11s %7s %11s ", show_radii(plan, text[0]), show_count(plan->probes, text[1]),
                show_few(plan->candidates, text[2]));
    else
        fprintf(file, "%16s ", show_count(plan->candidates, text[2]));
    fprintf(file, "%10.1f %7s %9s ", plan->bytes_per_entry, show_bytes(plan->memory, text[3]),
            show_time(plan->microseconds, text[4]));
    if (answer->purpose == DOPPEL_FOR_FIND)
        fprintf(file, "%10s ", show_reduction(plan->reduction, text[5]));
    fprintf(file, " %s\n", plan->fits ? "yes" : "no");
}

static void show_wider(FILE *file, const plan_answer *answer) {
    char text[3][TEXT];
    bool join = answer->purpose == DOPPEL_FOR_JOIN;
    if (answer->wider_count)
        fprintf(file, "\n%s\n", join ? "Wider joins:" : "The same tables asked for more:");
    for (size_t i = 0; i < answer->wider_count; i++) {
        const doppel_plan *plan = &answer->wider[i];
        fprintf(file, "  within %-3d", plan->distance);
        if (join)
            fprintf(file, " %s,", plan->layout);
        else if (is_scan(plan) || is_unused(plan))
            fprintf(file, " all are compared,");
        else
            fprintf(file, " radii %s, %s probes,", show_radii(plan, text[0]), show_count(plan->probes, text[1]));
        fprintf(file, " %s candidates, %s\n", show_few(plan->candidates, text[1]),
                show_time(plan->microseconds, text[2]));
    }
}

void show_plans(FILE *file, const plan_answer *answer) {
    say_choice(file, answer);
    show_head(file, answer);
    for (size_t i = 0; i < answer->count; i++)
        if (has_row(answer, i))
            show_row(file, answer, &answer->plans[i], i == 0);
    show_wider(file, answer);
}

/* ---- constants and JSON ---- */

typedef struct cost_line {
    const char *name;
    double value;
    const char *what;
} cost_line;

enum { COSTS = 7 };

static void list_costs(const doppel_costs *costs, cost_line lines[COSTS]) {
    const cost_line all[COSTS] = {
        {"probeCached", costs->probe_cached, "a look at a bucket that the caches hold"},
        {"probe", costs->probe, "a look at a bucket in memory"},
        {"candidate", costs->candidate, "a comparison in a bucket"},
        {"query", costs->query, "a query besides"},
        {"move", costs->move, "join: a fingerprint through a pass over memory"},
        {"place", costs->place, "join: a fingerprint into a table inside the cache"},
        {"pair", costs->pair, "join: a candidate more"},
    };
    memcpy(lines, all, sizeof all);
}

void show_costs(FILE *file, const doppel_costs *costs) {
    cost_line lines[COSTS];
    list_costs(costs, lines);
    fprintf(file, "Measured here, in nanoseconds:\n");
    for (int i = 0; i < COSTS; i++)
        fprintf(file, "  %-12s %8.3f  %s\n", lines[i].name, lines[i].value, lines[i].what);
    fprintf(file, "\n");
}

static void print_list(FILE *file, const char *name, const int *numbers, int count) {
    fprintf(file, ",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%d", i ? "," : "", numbers[i]);
    fprintf(file, "]");
}

static void print_plan(FILE *file, const doppel_plan *plan) {
    int tables = plan->tables < DOPPEL_PLAN_TABLES ? plan->tables : DOPPEL_PLAN_TABLES;
    fprintf(file, "{\"layout\":\"%s\",\"distance\":%d,\"tables\":%d", plan->layout, plan->distance, plan->tables);
    print_list(file, "keyBits", plan->key_bits, tables);
    print_list(file, "radii", plan->radius, tables);
    fprintf(file, ",\"probes\":%.0f,\"candidates\":%.2f,\"bytesPerEntry\":%.2f,\"memory\":%.0f,\"microseconds\":%.4f",
            plan->probes, plan->candidates, plan->bytes_per_entry, plan->memory, plan->microseconds);
    if (plan->reduction > 0)
        fprintf(file, ",\"reduction\":%.2f", plan->reduction);
    fprintf(file, ",\"fits\":%s}", plan->fits ? "true" : "false");
}

static void print_array(FILE *file, const char *name, const doppel_plan *plans, size_t count) {
    fprintf(file, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            fprintf(file, ",");
        print_plan(file, &plans[i]);
    }
    fprintf(file, "]");
}

void print_plans(FILE *file, const plan_answer *answer) {
    const doppel_plan *chosen = answer->plans;
    cost_line lines[COSTS];
    fprintf(file, "{\"for\":\"%s\",\"count\":%llu,\"distance\":%d,\"bits\":%d",
            answer->purpose == DOPPEL_FOR_JOIN ? "join" : "find", (unsigned long long)chosen->count, chosen->distance,
            chosen->bits);
    if (answer->memory)
        fprintf(file, ",\"memory\":%llu", (unsigned long long)answer->memory);
    fprintf(file, ",\"fits\":%s,\"layout\":\"%s\"", chosen->fits ? "true" : "false", chosen->layout);
    print_array(file, "plans", answer->plans, answer->count);
    print_array(file, "wider", answer->wider, answer->wider_count);
    list_costs(&answer->costs, lines);
    fprintf(file, ",\"costs\":{");
    for (int i = 0; i < COSTS; i++)
        fprintf(file, "%s\"%s\":%.4f", i ? "," : "", lines[i].name, lines[i].value);
    fprintf(file, "}}\n");
}

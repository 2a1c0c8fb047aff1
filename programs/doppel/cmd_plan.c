/* cmd_plan.c - doppel plan: what an index or a join costs, before it is built. */
#include "commands.h"
#include "common/message.h"
#include "doppel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const cli_option plan_options[] = {
    {"for", 0, OPTION_TEXT, "PURPOSE", "find (the default): queries of an index; join: all pairs of a set"},
    {"count", 0, OPTION_MANY, "N", "how many fingerprints: 1000000, or 10M or 1G (times 1000 each)"},
    {"distance", 0, OPTION_COUNT, "K", "find fingerprints that differ in at most K bits"},
    {"bits", 0, OPTION_COUNT, "F", "bits of a fingerprint: 1 to 64 (the default), or 128"},
    {"memory", 0, OPTION_MEMORY, "BYTES", "use at most this much memory (default: no limit)"},
    {"layout", 0, OPTION_TEXT, "LAYOUT", "only this layout: 4x16, 5c2x26, 4x16+4x12, scan"},
    {"calibrate", 0, OPTION_FLAG, NULL,
     "measure the costs on this machine first; takes a few seconds and 1G of memory"},
    {"json", 0, OPTION_FLAG, NULL, "print one JSON object"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* The most layouts that are listed, and the most greater distances. */
enum { MOST_PLANS = 400, MOST_WIDER = 3 };

/* A request and its plans. */
typedef struct plan_answer {
    doppel_purpose purpose;
    uint64_t memory; /* 0: no limit */
    doppel_costs costs;
    const doppel_plan *plans; /* the chosen one first */
    size_t count;
    const doppel_plan *wider; /* the chosen layout for greater distances */
    size_t wider_count;
} plan_answer;

enum { TEXT = 32 };

/* ---- numbers ---- */

static const char *show_bytes(double bytes, char text[32]) {
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

/* A count with commas: 87,381. Beyond what a double counts exactly it is written with an exponent. */
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

/* The fewest and the most bits of the keys: 16, or 25-26. */
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

/* There are tables, but none is used: comparing all is cheaper. */
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
        fprintf(file, "%d table%s with keys of %s bits; with so few fingerprints, a find compares all %s.",
                plan->tables, plan->tables == 1 ? "" : "s", show_keys(plan, b), show_count((double)plan->count, a));
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
        fprintf(file, "\n%s\n", join ? "Wider joins:" : "The same tables at greater distances:");
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

static void show_plans(FILE *file, const plan_answer *answer) {
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
        {"probeCached", costs->probe_cached, "a probe of a bucket in the CPU caches"},
        {"probe", costs->probe, "a probe of a bucket in memory"},
        {"candidate", costs->candidate, "a comparison in a bucket"},
        {"query", costs->query, "fixed cost of a query"},
        {"move", costs->move, "join: a fingerprint through a pass over memory"},
        {"place", costs->place, "join: a fingerprint into a table inside the cache"},
        {"pair", costs->pair, "join: each candidate"},
    };
    memcpy(lines, all, sizeof all);
}

static void show_costs(FILE *file, const doppel_costs *costs) {
    cost_line lines[COSTS];
    list_costs(costs, lines);
    fprintf(file, "Measured here, in nanoseconds:\n");
    for (int i = 0; i < COSTS; i++)
        fprintf(file, "  %-12s %8.3f  %s\n", lines[i].name, lines[i].value, lines[i].what);
    fprintf(file, "\n");
}

static void put_list(text_buffer *out, const char *name, const int *numbers, int count) {
    text_format(out, ",\"%s\":[", name);
    for (int i = 0; i < count; i++)
        text_format(out, "%s%d", i ? "," : "", numbers[i]);
    text_format(out, "]");
}

static void put_plan(text_buffer *out, const doppel_plan *plan) {
    int tables = plan->tables < DOPPEL_PLAN_TABLES ? plan->tables : DOPPEL_PLAN_TABLES;
    text_format(out, "{\"layout\":\"%s\",\"distance\":%d,\"tables\":%d", plan->layout, plan->distance, plan->tables);
    put_list(out, "keyBits", plan->key_bits, tables);
    put_list(out, "radii", plan->radius, tables);
    text_format(out,
                ",\"probes\":%.0f,\"candidates\":%.2f,\"bytesPerEntry\":%.2f,\"memory\":%.0f,\"microseconds\":%.4f",
                plan->probes, plan->candidates, plan->bytes_per_entry, plan->memory, plan->microseconds);
    if (plan->reduction > 0)
        text_format(out, ",\"reduction\":%.2f", plan->reduction);
    text_format(out, ",\"fits\":%s}", plan->fits ? "true" : "false");
}

static void put_array(text_buffer *out, const char *name, const doppel_plan *plans, size_t count) {
    text_format(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            text_format(out, ",");
        put_plan(out, &plans[i]);
    }
    text_format(out, "]");
}

static void put_plans(text_buffer *out, const plan_answer *answer) {
    const doppel_plan *chosen = answer->plans;
    cost_line lines[COSTS];
    text_format(out, "{\"for\":\"%s\",\"count\":%llu,\"distance\":%d,\"bits\":%d",
                answer->purpose == DOPPEL_FOR_JOIN ? "join" : "find", (unsigned long long)chosen->count,
                chosen->distance, chosen->bits);
    if (answer->memory)
        text_format(out, ",\"memory\":%llu", (unsigned long long)answer->memory);
    text_format(out, ",\"fits\":%s,\"layout\":\"%s\"", chosen->fits ? "true" : "false", chosen->layout);
    put_array(out, "plans", answer->plans, answer->count);
    put_array(out, "wider", answer->wider, answer->wider_count);
    list_costs(&answer->costs, lines);
    text_format(out, ",\"costs\":{");
    for (int i = 0; i < COSTS; i++)
        text_format(out, "%s\"%s\":%.4f", i ? "," : "", lines[i].name, lines[i].value);
    text_format(out, "}}\n");
}

/* ---- the command ---- */

typedef struct plan_request {
    uint64_t count;
    int distance;
    doppel_plan_options options;
    doppel_costs costs;
} plan_request;

static bool read_purpose(const cli_args *args, plan_request *request) {
    const char *purpose = args_text(args, "for");
    request->options.purpose = purpose && !strcmp(purpose, "join") ? DOPPEL_FOR_JOIN : DOPPEL_FOR_FIND;
    if (!purpose || !strcmp(purpose, "join") || !strcmp(purpose, "find"))
        return true;
    message("--for takes find or join, not \"%s\"", purpose);
    return false;
}

static bool read_request(const cli_args *args, plan_request *request) {
    uint64_t distance = args_number(args, "distance", 0), bits = args_number(args, "bits", 64);
    *request = (plan_request){.options = {.size = sizeof request->options}};
    if (!args_text(args, "count") || !args_text(args, "distance")) {
        message("plan needs --count and --distance: doppel plan --count 10M --distance 3");
        return false;
    }
    if (!bits || bits > 128 || (bits > 64 && bits < 128)) {
        message("--bits takes 1 to 64, or 128, not %llu", (unsigned long long)bits);
        return false;
    }
    if (distance > bits) {
        message("--distance %llu is more than the %llu bits of a fingerprint", (unsigned long long)distance,
                (unsigned long long)bits);
        return false;
    }
    request->count = args_number(args, "count", 0);
    request->distance = (int)distance;
    request->options.bits = (int)bits;
    request->options.memory = args_number(args, "memory", 0);
    request->options.layout = args_text(args, "layout");
    return read_purpose(args, request);
}

/* The chosen layout for greater distances; a join is planned again for each. */
static size_t widen(const plan_request *request, const doppel_plan *chosen, doppel_plan wider[MOST_WIDER]) {
    static const int distances[] = {3, 6, 9, 12, 16, 24, 32};
    doppel_plan_options options = request->options;
    size_t count = 0;
    options.layout = NULL;
    for (size_t i = 0; i < sizeof distances / sizeof *distances && count < MOST_WIDER; i++) {
        size_t found = 1;
        doppel_status status;
        if (distances[i] <= chosen->distance || distances[i] > chosen->bits)
            continue;
        if (options.purpose == DOPPEL_FOR_JOIN)
            status = doppel_plan_list(request->count, distances[i], &options, &wider[count], 1, &found, NULL);
        else
            status = doppel_plan_widen(chosen, distances[i], &request->costs, &wider[count], NULL);
        count += status == DOPPEL_OK && found;
    }
    return count;
}

static int answer_with(const cli_args *args, const plan_request *request, const doppel_plan *plans, size_t count) {
    doppel_plan wider[MOST_WIDER];
    plan_answer answer = {.purpose = request->options.purpose, .memory = request->options.memory};
    answer.costs = request->costs;
    answer.plans = plans;
    answer.count = count;
    answer.wider = wider;
    answer.wider_count = widen(request, plans, wider);
    text_buffer out = {0};
    if (args_flag(args, "json"))
        put_plans(&out, &answer);
    else
        show_plans(stdout, &answer);
    int code = finish_text(&out, EXIT_DONE);
    if (plans[0].fits || code != EXIT_DONE)
        return code;
    char given[32], needed[32];
    message("no plan fits in %s: the smallest, %s, needs %s", show_bytes((double)answer.memory, given), plans[0].layout,
            show_bytes(plans[0].memory, needed));
    return EXIT_USAGE;
}

static int fail(const doppel_error *error, doppel_status status) {
    message_error(error);
    return exit_code(status);
}

int cmd_plan(const cli_args *args) {
    plan_request request;
    doppel_error error;
    size_t found;
    if (!read_request(args, &request))
        return EXIT_USAGE;
    doppel_costs_get(&request.costs);
    if (args_flag(args, "calibrate")) {
        doppel_status status = doppel_costs_measure(0, &request.costs, &error);
        if (status != DOPPEL_OK)
            return fail(&error, status);
        if (!args_flag(args, "json"))
            show_costs(stdout, &request.costs);
    }
    request.options.costs = &request.costs;
    doppel_plan *plans = calloc(MOST_PLANS, sizeof *plans);
    if (!plans) {
        message("no memory");
        return EXIT_STORE;
    }
    doppel_status status =
        doppel_plan_list(request.count, request.distance, &request.options, plans, MOST_PLANS, &found, &error);
    int code = status == DOPPEL_OK ? answer_with(args, &request, plans, found < MOST_PLANS ? found : MOST_PLANS)
                                   : fail(&error, status);
    free(plans);
    return code;
}

/* cmd_plan.c - doppel plan: what an index or a join costs, before it is made. */
#include "commands.h"
#include "common/message.h"
#include "plan_show.h"

#include <stdlib.h>
#include <string.h>

const cli_option plan_options[] = {
    {"for", 0, OPTION_TEXT, "PURPOSE", "find (the default): an index that is asked; join: all pairs of a set"},
    {"count", 0, OPTION_MANY, "N", "how many fingerprints: 1000000, or 10M or 1G (times 1000 each)"},
    {"distance", 0, OPTION_COUNT, "K", "find what differs in at most K bits"},
    {"bits", 0, OPTION_COUNT, "F", "bits of a fingerprint: 1 to 64 (the default), or 128"},
    {"memory", 0, OPTION_SIZE, "BYTES", "use at most this much (default: no limit)"},
    {"layout", 0, OPTION_TEXT, "LAYOUT", "only this layout: 4x16, 5c2x26, 4x16+4x12, scan"},
    {"calibrate", 0, OPTION_FLAG, NULL, "measure what things cost on this machine first; takes some seconds and 1G"},
    {"json", 0, OPTION_FLAG, NULL, "print one JSON object"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* No more layouts than these are worth a row or a place in the JSON. */
enum { MOST_PLANS = 400, MOST_WIDER = 3 };

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
        message("--distance %llu is more than the %llu bits there are", (unsigned long long)distance,
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

/* The chosen layout for greater distances; a join is planned anew for each. */
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
    if (args_flag(args, "json"))
        print_plans(stdout, &answer);
    else
        show_plans(stdout, &answer);
    int code = finish_stdout(EXIT_DONE);
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

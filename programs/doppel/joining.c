/* joining.c - what the commands that join fingerprints share. */
#include "joining.h"

#include "common/message.h"
#include "common/progress.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

bool joining_distance(const cli_args *args, int bits, int *distance) {
    uint64_t asked = args_number(args, "distance", 3);
    if (asked > (uint64_t)bits)
        message("--distance %llu is more than the %d bit%s of a fingerprint", (unsigned long long)asked, bits,
                bits == 1 ? "" : "s");
    *distance = asked > (uint64_t)bits ? 0 : (int)asked;
    return asked <= (uint64_t)bits;
}

doppel_join_options joining_options(const cli_args *args, int bits) {
    uint64_t threads = args_number(args, "threads", 0);
    return (doppel_join_options){
        .size = sizeof(doppel_join_options),
        .bits = bits,
        .threads = threads < INT_MAX ? (int)threads : INT_MAX,
        .memory = args_number(args, "memory", 0),
        .tmp = args_text(args, "tmp"),
        .progress = isatty(STDERR_FILENO) ? progress_part : NULL,
        .stop = &stop_asked,
    };
}

int end_join(doppel_status status, const doppel_error *error) {
    if (output_closed())
        return EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_told && error && error->message[0])
        message_error(error);
    else if (status != DOPPEL_OK && !failure_told)
        message("%s", doppel_status_name(status));
    return exit_code(status);
}

char *put_number(char *to, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

void print_join_counts(FILE *file, const doppel_join_counts *counts, bool one_set) {
    fprintf(file, ",\"fingerprints\":%llu", (unsigned long long)counts->fingerprints);
    if (one_set)
        fprintf(file, ",\"copies\":%llu,\"groups\":%llu", (unsigned long long)counts->copies,
                (unsigned long long)counts->groups);
    fprintf(file, ",\"pairs\":%llu", (unsigned long long)counts->pairs);
    if (one_set)
        fprintf(file, ",\"allPairs\":%llu", (unsigned long long)counts->all_pairs);
    fprintf(file, ",\"candidates\":%llu,\"spilledBytes\":%llu", (unsigned long long)counts->candidates,
            (unsigned long long)counts->spilled_bytes);
}

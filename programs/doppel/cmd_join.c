/* cmd_join.c - doppel join A [B]: pairs of fingerprints within k bits, in one set or between two. */
#include "commands.h"
#include "common/message.h"
#include "common/progress.h"
#include "fingerprint_file.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

const cli_option join_options[] = {
    {"distance", 'd', OPTION_COUNT, "K", "pairs that differ in at most K bits (default 3)"},
    {"bits", 'b', OPTION_COUNT, "N",
     "the width of a fingerprint, 1 to 64 or 128 (default: 128 for a name that ends in .u128 or more than 16 digits, "
     "else 64)"},
    {"from", 0, OPTION_TEXT, "FORMAT", "raw, hex or jsonl (default: detected by name, else by content)"},
    {"all", 'a', OPTION_FLAG, NULL, "list every pair of equal fingerprints, not only each copy with the first"},
    {"names", 0, OPTION_FLAG, NULL,
     "print names instead of positions, separated by tabs: the text after the digits and a tab, or a record's id"},
    {"count", 'c', OPTION_FLAG, NULL, "print only the number of pairs"},
    {"rotate", 0, OPTION_COUNT, "N",
     "the classic approximate method: sort N rotations (0: one per bit), compare neighbours; reports its recall"},
    {"window", 0, OPTION_COUNT, "W", "with --rotate: compare each with the W that follow it (default 1)"},
    {"output", 'o', OPTION_OUTPUT, "FILE", "write to this file instead of stdout; it appears once it is complete"},
    {"memory", 0, OPTION_MEMORY, "BYTES",
     "use about this much memory to join, then temporary files (default: half of the free memory)"},
    TMP_OPTION,
    {"json", 0, OPTION_FLAG, NULL, "with --count or --output: print a summary as one JSON object"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static const cli_row format_rows[] = {
    {"raw", "little-endian numbers of 8 bytes, or 16 for 128 bits: .u64, .u128, .bin, .raw"},
    {"hex", "one per line: up to 32 digits, and after a tab a name; what doppel fingerprint prints: .hex, .txt, .tsv"},
    {"jsonl", "records with the digits in \"fingerprint\" (or --text-key); may be .gz or .zst: .jsonl, .ndjson, .json"},
    {NULL, NULL},
};

const cli_topic join_topic = {
    "Files of fingerprints",
    "Files with other names are recognised by content. Positions are counted from 0 and must not shift: a line that is "
    "not a fingerprint ends the command.",
    format_rows,
};

typedef struct join_job {
    const cli_args *args;
    fingerprint_file a, b;
    id_list names_a, names_b;
    const id_list *first, *second; /* the names of each column; NULL: positions */
    int distance;
    bool two;
    writer out;
    doppel_join_counts counts;
    double recall; /* -1: exact */
} join_job;

/* ---- what joins need ---- */

static bool joining_distance(const cli_args *args, int bits, int *distance) {
    uint64_t asked = args_number(args, "distance", 3);
    if (asked > (uint64_t)bits)
        message("--distance %llu is more than the %d bit%s of a fingerprint", (unsigned long long)asked, bits,
                bits == 1 ? "" : "s");
    *distance = asked > (uint64_t)bits ? 0 : (int)asked;
    return asked <= (uint64_t)bits;
}

static doppel_join_options joining_options(const cli_args *args, int bits) {
    uint64_t threads = args_number(args, "threads", 0);
    return (doppel_join_options){
        .size = sizeof(doppel_join_options),
        .bits = bits,
        .threads = threads < INT_MAX ? (int)threads : INT_MAX,
        .memory = args_number(args, "memory", 0),
        .tmp = args_text(args, "tmp"),
        .progress = message_quiet ? NULL : progress_part,
        .stop = &stop_asked,
    };
}

static int end_join(doppel_status status, const doppel_error *error) {
    if (output_closed())
        return EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && !failure_reported && error && error->message[0])
        message_error(error);
    else if (status != DOPPEL_OK && !failure_reported)
        message("%s", doppel_status_name(status));
    return exit_code(status);
}

static char *put_number(char *to, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do
        digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

/* ---- pairs out ---- */

static doppel_status write_position(const doppel_pair *pair, writer *out) {
    char *line = writer_line(out), *end = line;
    if (!line)
        return output_closed() ? DOPPEL_ERROR_INTERRUPTED : DOPPEL_ERROR_STORE;
    end = put_number(end, pair->a);
    *end++ = ' ';
    end = put_number(end, pair->b);
    *end++ = ' ';
    end = put_number(end, (uint64_t)pair->distance);
    *end++ = '\n';
    writer_take(out, (size_t)(end - line));
    return DOPPEL_OK;
}

static doppel_status write_name(const id_list *names, uint64_t i, writer *out) {
    size_t length;
    const char *name = ids_get(names, i, &length);
    doppel_status status = writer_add(out, name, length);
    return status == DOPPEL_OK ? writer_add(out, "\t", 1) : status;
}

static doppel_status write_names(const join_job *job, const doppel_pair *pair, writer *out) {
    char digits[24], *end;
    doppel_status status = write_name(job->first, pair->a, out);
    if (status == DOPPEL_OK)
        status = write_name(job->second, pair->b, out);
    end = put_number(digits, (uint64_t)pair->distance);
    *end++ = '\n';
    return status == DOPPEL_OK ? writer_add(out, digits, (size_t)(end - digits)) : status;
}

/* doppel_join_options.pairs */
static doppel_status write_pairs(const doppel_pair *pairs, size_t count, void *user) {
    join_job *job = user;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++)
        status = job->first ? write_names(job, &pairs[i], &job->out) : write_position(&pairs[i], &job->out);
    return status;
}

/* ---- the join ---- */

static doppel_status run_join(join_job *job, const doppel_join_options *options, doppel_error *error) {
    const doppel_source *a = &job->a.source, *b = &job->b.source;
    uint64_t window = args_number(job->args, "window", 0), rotations = args_number(job->args, "rotate", 0);
    if (job->two)
        return doppel_join_sets(a, b, job->distance, options, &job->counts, error);
    if (!args_flag(job->args, "rotate"))
        return doppel_join(a, job->distance, options, &job->counts, error);
    doppel_rotation rotation = {.size = sizeof rotation,
                                .count = rotations < INT_MAX ? (int)rotations : INT_MAX,
                                .window = window < INT_MAX ? (int)window : INT_MAX};
    return doppel_join_rotate(a, job->distance, &rotation, options, &job->recall, &job->counts, error);
}

/* Messages on what the list of pairs does not show. */
static void print_notes(const join_job *job) {
    unsigned long long copies = job->counts.copies, all = job->counts.all_pairs;
    if (job->recall >= 0)
        message("recall %.4f: the share of the exact join's pairs that were found", job->recall);
    else if (copies && all > job->counts.pairs)
        message("%llu fingerprint%s an earlier one, and %s paired with the first of %s kind only; --all lists all "
                "%llu pairs",
                copies, copies == 1 ? " equals" : "s equal", copies == 1 ? "is" : "are", copies == 1 ? "its" : "their",
                all);
}

static int print_summary(const join_job *job) {
    const doppel_join_counts *counts = &job->counts;
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_count(&out, "bits", (uint64_t)job->a.bits);
    text_member_count(&out, "distance", (uint64_t)job->distance);
    text_member_count(&out, "fingerprints", counts->fingerprints);
    if (!job->two) {
        text_member_count(&out, "copies", counts->copies);
        text_member_count(&out, "groups", counts->groups);
    }
    text_member_count(&out, "pairs", counts->pairs);
    if (!job->two)
        text_member_count(&out, "allPairs", counts->all_pairs);
    text_member_count(&out, "candidates", counts->candidates);
    text_member_count(&out, "spilledBytes", counts->spilled_bytes);
    if (job->recall >= 0)
        text_member_share(&out, "recall", job->recall);
    text_put(&out, "}\n");
    return finish_text(&out, EXIT_DONE);
}

static int join(join_job *job) {
    doppel_join_options options = joining_options(job->args, job->a.bits);
    doppel_error error = {0};
    options.all = args_flag(job->args, "all");
    options.count_only = args_flag(job->args, "count");
    options.pairs = write_pairs;
    options.user = job;
    progress_begin("comparing");
    doppel_status status = run_join(job, &options, &error);
    progress_end();
    int code = writer_close(&job->out, end_join(status, &error));
    if (code != EXIT_DONE || output_closed())
        return code;
    print_notes(job);
    if (args_flag(job->args, "json"))
        return print_summary(job);
    if (options.count_only)
        printf("%llu\n", (unsigned long long)job->counts.pairs);
    return finish_stdout(EXIT_DONE);
}

/* ---- the command ---- */

/* Options that cannot be combined. */
static bool check(const cli_args *args) {
    bool two = args->operand_count == 2, rotate = args_flag(args, "rotate");
    uint64_t bits = args_number(args, "bits", 64);
    const char *wrong = NULL;
    if (two && !strcmp(args->operands[0], "-") && !strcmp(args->operands[1], "-"))
        wrong = "only one of the two can be stdin";
    else if (two && rotate)
        wrong = "--rotate takes one set, not two";
    else if (two && args_flag(args, "all"))
        wrong = "--all is for one set; between two, every pair is listed anyway";
    else if (args_flag(args, "window") && !rotate)
        wrong = "--window needs --rotate";
    else if (args_flag(args, "window") && !args_number(args, "window", 0))
        wrong = "--window takes a number of at least 1";
    else if (args_flag(args, "json") && !args_flag(args, "count") && !args_flag(args, "output"))
        wrong = "--json prints a summary: it needs --count or --output";
    else if (args_flag(args, "count") && args_flag(args, "output"))
        wrong = "--count writes no pairs: it cannot be combined with --output";
    else if (!bits || (bits > 64 && bits != 128))
        wrong = "--bits takes a width from 1 to 64, or 128";
    if (wrong)
        message("%s", wrong);
    return !wrong;
}

static int open_sides(join_job *job) {
    const cli_args *args = job->args;
    if (args_flag(args, "names")) {
        job->a.names = &job->names_a;
        job->b.names = &job->names_b;
    }
    job->a.args = job->b.args = args;
    job->a.bits = (int)args_number(args, "bits", 0);
    int code = fingerprints_open(&job->a, args->operands[0]);
    job->b.bits = job->a.bits;
    if (code == EXIT_DONE && job->two)
        code = fingerprints_open(&job->b, args->operands[1]);
    return code;
}

/* Sets the names of both columns; raw files have none. */
static int set_names(join_job *job) {
    if (!job->a.names)
        return EXIT_DONE;
    if (job->a.format == FORMAT_RAW || (job->two && job->b.format == FORMAT_RAW)) {
        message("--names: raw fingerprints have no names");
        return EXIT_USAGE;
    }
    job->first = &job->names_a;
    job->second = job->two ? &job->names_b : &job->names_a;
    return EXIT_DONE;
}

int cmd_join(const cli_args *args) {
    join_job job = {.args = args, .two = args->operand_count == 2, .recall = -1};
    if (!check(args))
        return EXIT_USAGE;
    int code = open_sides(&job);
    if (code == EXIT_DONE)
        code = set_names(&job);
    if (code == EXIT_DONE && !joining_distance(args, job.a.bits, &job.distance))
        code = EXIT_USAGE;
    if (code == EXIT_DONE) {
        code = writer_open(&job.out, args_text(args, "output"), output_threads(args));
        code = code == EXIT_DONE ? join(&job) : writer_close(&job.out, code);
    }
    fingerprints_close(&job.a);
    fingerprints_close(&job.b);
    ids_free(&job.names_a);
    ids_free(&job.names_b);
    return code;
}

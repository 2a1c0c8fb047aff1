/* cmd_fingerprint.c - doppel fingerprint: a line for each document, HEX<TAB>id or JSON. */
#include "commands.h"
#include "common/message.h"
#include "shared/choices.h"

#include <stdlib.h>
#include <string.h>

const cli_option fingerprint_options[] = {
    RECIPE_OPTIONS,
    {"bits", 'b', OPTION_COUNT, "N", "the width of the fingerprint, 1 to 64 or 128, overriding the recipe"},
    {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"},
    CONTENT_OPTION,
    {"json", 0, OPTION_FLAG, NULL,
     "print a JSON line for each document: id, fingerprint, words, digest; and signature and sample if the recipe "
     "has them"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with a record's title (default title)"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct fingerprint_job {
    sketch_job sketch;
    bool json;
    bool signatures, samples; /* the recipe has them */
    doppel_content content;
} fingerprint_job;

/* A thread's own. */
typedef struct fingerprint_worker {
    void *sketch; /* a sketch_worker */
    doppel_page_reader *reader;
} fingerprint_worker;

static void end(void *user, void *state) {
    fingerprint_worker *worker = state;
    if (worker->sketch)
        end_sketching(user, worker->sketch);
    doppel_page_reader_free(worker->reader);
    free(worker);
}

static doppel_status begin(void *user, void **state) {
    fingerprint_worker *made = calloc(1, sizeof *made);
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = doppel_page_reader_create(&made->reader);
    if (status == DOPPEL_OK)
        status = begin_sketching(user, &made->sketch);
    if (status == DOPPEL_OK)
        *state = made;
    else
        end(user, made);
    return status;
}

/* ceil(bits / 4) digits, the most significant first; returns how many. */
static size_t hex_of(const uint64_t fingerprint[2], int bits, char *to) {
    size_t digits = (size_t)(bits + 3) / 4;
    for (size_t i = 0; i < digits; i++) {
        size_t place = 4 * (digits - 1 - i);
        to[i] = "0123456789abcdef"[fingerprint[place / 64] >> place % 64 & 15];
    }
    return digits;
}

static doppel_status write_line(const fingerprint_job *job, const doppel_document *document,
                                const doppel_sketch *sketch, doppel_output *output) {
    char head[64];
    size_t length = hex_of(sketch->fingerprint, doppel_recipe_bits(job->sketch.recipe), head);
    head[length++] = '\t';
    doppel_status status = doppel_output_write(output, (doppel_slice){head, length});
    if (status == DOPPEL_OK)
        status = write_id(document, output);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("\n")) : status;
}

/* Prints number i of a list. */
typedef int (*list_item)(const doppel_sketch *sketch, size_t i, char *text, size_t room);

static int print_slot(const doppel_sketch *sketch, size_t i, char *text, size_t room) {
    return snprintf(text, room, "%s%u", i ? "," : "", sketch->signature[i]);
}

/* 64-bit numbers are beyond what JSON readers keep exactly, so samples are hexadecimal strings. */
static int print_sample(const doppel_sketch *sketch, size_t i, char *text, size_t room) {
    return snprintf(text, room, "%s\"%016llx\"", i ? "," : "", (unsigned long long)sketch->sample[i]);
}

static doppel_status write_list(doppel_output *output, const doppel_sketch *sketch, size_t count, list_item print) {
    doppel_status status = doppel_output_write(output, doppel_slice_of("["));
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        char text[32];
        status = doppel_output_write(output, (doppel_slice){text, (size_t)print(sketch, i, text, sizeof text)});
    }
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("]")) : status;
}

/* ,"fingerprint":"...","words":N,"digest":"..." */
static doppel_status write_values(const fingerprint_job *job, const doppel_sketch *sketch, doppel_output *output) {
    char text[256];
    size_t length = (size_t)snprintf(text, sizeof text, ",\"fingerprint\":\"");
    length += hex_of(sketch->fingerprint, doppel_recipe_bits(job->sketch.recipe), text + length);
    length += (size_t)snprintf(text + length, sizeof text - length,
                               "\",\"words\":%llu,\"digest\":", (unsigned long long)sketch->words);
    if (!sketch->words) {
        length += (size_t)snprintf(text + length, sizeof text - length, "null");
    } else {
        text[length++] = '"';
        for (size_t i = 0; i < sizeof sketch->digest; i++)
            length += (size_t)snprintf(text + length, sizeof text - length, "%02x", sketch->digest[i]);
        text[length++] = '"';
    }
    return doppel_output_write(output, (doppel_slice){text, length});
}

static doppel_status write_json(const fingerprint_job *job, const doppel_document *document,
                                const doppel_sketch *sketch, doppel_output *output) {
    doppel_status status = doppel_output_write(output, doppel_slice_of("{\"id\":"));
    if (status == DOPPEL_OK)
        status = doppel_output_json(output, document->id);
    if (status == DOPPEL_OK)
        status = write_values(job, sketch, output);
    if (status == DOPPEL_OK && job->signatures)
        status = doppel_output_write(output, doppel_slice_of(",\"signature\":"));
    if (status == DOPPEL_OK && job->signatures)
        status = sketch->signature ? write_list(output, sketch, sketch->slots, print_slot)
                                   : doppel_output_write(output, doppel_slice_of("null"));
    if (status == DOPPEL_OK && job->samples)
        status = doppel_output_write(output, doppel_slice_of(",\"sample\":"));
    if (status == DOPPEL_OK && job->samples)
        status = write_list(output, sketch, sketch->sample_count, print_sample);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("}\n")) : status;
}

static doppel_status document(void *state, const doppel_document *document, doppel_output *output) {
    const fingerprint_worker *worker = state;
    const sketch_worker *sketcher = worker->sketch;
    const fingerprint_job *job = sketcher->job;
    doppel_page page;
    doppel_sketch sketch;
    doppel_status status = doppel_document_text(worker->reader, document, job->content, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(sketcher->sketcher, page.text, &sketch);
    if (status != DOPPEL_OK)
        return status;
    return job->json ? write_json(job, document, &sketch, output) : write_line(job, document, &sketch, output);
}

int cmd_fingerprint(const cli_args *args) {
    loaded_recipe loaded;
    doppel_content content;
    if (!content_option(args, &content))
        return EXIT_USAGE;
    int code = load_recipe(args, args_text(args, "recipe"), &loaded);
    if (code == EXIT_DONE) {
        const char *text = doppel_recipe_text(loaded.recipe);
        bool json = args_flag(args, "json");
        fingerprint_job job = {{loaded.recipe, json ? DOPPEL_WANT_DIGEST : 0},
                               json,
                               strstr(text, ":minhash=") != NULL,
                               strstr(text, ":sample=") != NULL,
                               content};
        doppel_work work = {.user = &job, .begin = begin, .document = document, .end = end, .emit = write_stdout};
        code = run_inputs(args, &work, NULL);
    }
    free_recipe(&loaded);
    return code;
}

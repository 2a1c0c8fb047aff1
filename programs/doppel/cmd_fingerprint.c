/* cmd_fingerprint.c - doppel fingerprint: a line for each document, HEX<TAB>id or JSON. */
#include "commands.h"
#include "common/message.h"

#include <stdlib.h>
#include <string.h>

const cli_option fingerprint_options[] = {
    RECIPE_OPTIONS,
    {"bits", 'b', OPTION_COUNT, "N", "the width of the fingerprint, 1 to 64 or 128, whatever the recipe says"},
    {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"},
    {"json", 0, OPTION_FLAG, NULL,
     "print a JSON line for each document: id, fingerprint, words, digest; and signature and sample if the recipe "
     "has them"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

typedef struct fingerprint_job {
    const doppel_recipe *recipe;
    bool json;
    bool signatures, samples; /* the recipe has them */
} fingerprint_job;

typedef struct fingerprint_worker {
    const fingerprint_job *job;
    doppel_sketcher *sketcher;
} fingerprint_worker;

/* Each thread has a worker of its own. */
static doppel_status begin(void *user, void **state) {
    const fingerprint_job *job = user;
    fingerprint_worker *made = calloc(1, sizeof *made);
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->job = job;
    doppel_status status =
        doppel_sketcher_create(job->recipe, job->json ? DOPPEL_WANT_DIGEST : 0, &made->sketcher, NULL);
    if (status == DOPPEL_OK)
        *state = made;
    else
        free(made);
    return status;
}

static void end(void *user, void *state) {
    (void)user;
    fingerprint_worker *worker = state;
    doppel_sketcher_free(worker->sketcher);
    free(worker);
}

/* ceil(bits / 4) digits, the most significant first; gives how many. */
static size_t hex_of(const uint64_t fingerprint[2], int bits, char *to) {
    size_t digits = (size_t)(bits + 3) / 4;
    for (size_t i = 0; i < digits; i++) {
        size_t place = 4 * (digits - 1 - i);
        to[i] = "0123456789abcdef"[fingerprint[place / 64] >> place % 64 & 15];
    }
    return digits;
}

/* The id, with what would break the line escaped. */
static doppel_status write_id(const doppel_document *document, doppel_output *output) {
    const char *p = document->id;
    size_t left = document->id_length;
    doppel_status status = DOPPEL_OK;
    while (left && status == DOPPEL_OK) {
        safe_escape escape;
        size_t run = safe_run(p, left, true, &escape), taken = run ? run : escape.taken;
        status =
            run ? doppel_output_write(output, p, run) : doppel_output_write(output, escape.text, strlen(escape.text));
        p += taken;
        left -= taken;
    }
    return status;
}

static doppel_status write_line(const fingerprint_worker *worker, const doppel_document *document,
                                const doppel_sketch *sketch, doppel_output *output) {
    char head[64];
    size_t length = hex_of(sketch->fingerprint, doppel_recipe_bits(worker->job->recipe), head);
    head[length++] = '\t';
    doppel_status status = doppel_output_write(output, head, length);
    if (status == DOPPEL_OK)
        status = write_id(document, output);
    return status == DOPPEL_OK ? doppel_output_write(output, "\n", 1) : status;
}

static doppel_status write_list(doppel_output *output, const char *name, const doppel_sketch *sketch, size_t count) {
    char text[64];
    int length = snprintf(text, sizeof text, ",\"%s\":[", name);
    doppel_status status = doppel_output_write(output, text, (size_t)length);
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        /* 64-bit numbers are beyond what JSON readers keep exactly, so samples are hexadecimal strings. */
        if (name[1] == 'a')
            length = snprintf(text, sizeof text, "%s\"%016llx\"", i ? "," : "", (unsigned long long)sketch->sample[i]);
        else
            length = snprintf(text, sizeof text, "%s%u", i ? "," : "", sketch->signature[i]);
        status = doppel_output_write(output, text, (size_t)length);
    }
    return status == DOPPEL_OK ? doppel_output_write(output, "]", 1) : status;
}

/* ,"fingerprint":"...","words":N,"digest":"..." */
static doppel_status write_values(const fingerprint_worker *worker, const doppel_sketch *sketch,
                                  doppel_output *output) {
    char text[256];
    size_t length = (size_t)snprintf(text, sizeof text, ",\"fingerprint\":\"");
    length += hex_of(sketch->fingerprint, doppel_recipe_bits(worker->job->recipe), text + length);
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
    return doppel_output_write(output, text, length);
}

static doppel_status write_json(const fingerprint_worker *worker, const doppel_document *document,
                                const doppel_sketch *sketch, doppel_output *output) {
    doppel_status status = doppel_output_write(output, "{\"id\":", 6);
    if (status == DOPPEL_OK)
        status = doppel_output_json(output, document->id, document->id_length);
    if (status == DOPPEL_OK)
        status = write_values(worker, sketch, output);
    if (status == DOPPEL_OK && worker->job->signatures)
        status = sketch->signature ? write_list(output, "signature", sketch, sketch->slots)
                                   : doppel_output_write(output, ",\"signature\":null", 17);
    if (status == DOPPEL_OK && worker->job->samples)
        status = write_list(output, "sample", sketch, sketch->sample_count);
    return status == DOPPEL_OK ? doppel_output_write(output, "}\n", 2) : status;
}

static doppel_status document(void *state, const doppel_document *document, doppel_output *output) {
    const fingerprint_worker *worker = state;
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_run(worker->sketcher, document->text, document->text_length, &sketch);
    if (status != DOPPEL_OK)
        return status;
    return worker->job->json ? write_json(worker, document, &sketch, output)
                             : write_line(worker, document, &sketch, output);
}

int cmd_fingerprint(const cli_args *args) {
    loaded_recipe loaded;
    int code = load_recipe(args, args_text(args, "recipe"), &loaded);
    if (code == EXIT_DONE) {
        const char *text = doppel_recipe_text(loaded.recipe);
        fingerprint_job job = {loaded.recipe, args_flag(args, "json"), strstr(text, ":minhash=") != NULL,
                               strstr(text, ":sample=") != NULL};
        doppel_work work = {.user = &job, .begin = begin, .document = document, .end = end, .emit = write_stdout};
        code = run_inputs(args, &work, NULL);
    }
    free_recipe(&loaded);
    return code;
}

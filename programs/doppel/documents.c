/* documents.c - the documents of a command as fingerprints. */
#include "documents.h"

#include "common/message.h"
#include "common/progress.h"

#include <stdlib.h>
#include <string.h>

/* ---- sketching, on many threads ---- */

/* What a thread writes for a document: this, its id as a JSON string, and a line end. */
typedef struct written_document {
    uint64_t fingerprint[2];
    uint64_t words;
    uint8_t digest[16];
} written_document;

/* A thread's own: one sketcher for all documents, and one for the digests of the few that need one. */
typedef struct collect_worker {
    void *sketching;
    doppel_sketcher *digester;
} collect_worker;

static void end_worker(void *job, void *state) {
    collect_worker *worker = state;
    if (worker->sketching)
        end_sketching(job, worker->sketching);
    doppel_sketcher_free(worker->digester);
    free(worker);
}

static doppel_status begin_worker(void *job, void **state) {
    const collection *c = job;
    collect_worker *worker = calloc(1, sizeof *worker);
    doppel_status status = worker ? begin_sketching(job, &worker->sketching) : DOPPEL_ERROR_MEMORY;
    if (status == DOPPEL_OK)
        status = doppel_sketcher_create(c->loaded.recipe, DOPPEL_WANT_DIGEST, &worker->digester, NULL);
    if (status != DOPPEL_OK && worker)
        end_worker(job, worker);
    else
        *state = worker;
    return status;
}

static doppel_status write_document(void *state, const doppel_document *document, doppel_output *output) {
    const collect_worker *worker = state;
    const sketch_worker *sketching = worker->sketching;
    const collection *c = sketching->job;
    doppel_sketch sketch;
    doppel_status status = doppel_sketcher_run(sketching->sketcher, document->text, document->text_length, &sketch);
    if (status == DOPPEL_OK && sketch.words < c->min_words && !c->collapse)
        status = doppel_sketcher_run(worker->digester, document->text, document->text_length, &sketch);
    if (status != DOPPEL_OK)
        return status;
    written_document written = {{sketch.fingerprint[0], sketch.fingerprint[1]}, sketch.words, {0}};
    if (sketch.words < c->min_words || c->collapse)
        memcpy(written.digest, sketch.digest, sizeof written.digest);
    status = doppel_output_write(output, &written, sizeof written);
    if (status == DOPPEL_OK)
        status = doppel_output_json(output, document->id, document->id_length);
    return status == DOPPEL_OK ? doppel_output_write(output, "\n", 1) : status;
}

/* ---- collecting, in input order ---- */

/* From the first document on that is not joined, positions have to be kept. */
static bool start_places(collection *c) {
    if (c->places)
        return true;
    if (!make_room(&c->places, &c->place_room, c->joined + 1, sizeof *c->places))
        return false;
    for (size_t i = 0; i < c->joined; i++)
        c->places[i] = i;
    return true;
}

static bool add_joined(collection *c, const written_document *document) {
    size_t words = doppel_recipe_bits(c->loaded.recipe) > 64 ? 2 : 1;
    if (!make_room(&c->fingerprints, &c->fingerprint_room, (c->joined + 1) * words, sizeof *c->fingerprints))
        return false;
    memcpy(c->fingerprints + c->joined * words, document->fingerprint, words * sizeof *c->fingerprints);
    if (c->places && !make_room(&c->places, &c->place_room, c->joined + 1, sizeof *c->places))
        return false;
    if (c->places)
        c->places[c->joined] = c->ids.count;
    c->joined++;
    return true;
}

static bool add_twin(collection *c, const written_document *document) {
    if (!make_room(&c->twins, &c->twin_room, c->twin_count + 1, sizeof *c->twins))
        return false;
    twin *added = &c->twins[c->twin_count++];
    *added = (twin){.position = c->ids.count, .next = NO_TWIN};
    memcpy(added->digest, document->digest, sizeof added->digest);
    return true;
}

static bool add_document(collection *c, const written_document *document, const char *id, size_t length) {
    bool join = document->words && document->words >= c->min_words;
    bool digest = document->words && (!join || c->collapse);
    return (!digest || add_twin(c, document)) && (join ? add_joined(c, document) : start_places(c)) &&
           ids_add(&c->ids, id, length);
}

/* Takes documents, whole ones: doppel_work.emit. */
static doppel_status add_documents(void *user, const char *bytes, size_t length) {
    const char *end = bytes + length;
    while (bytes < end) {
        written_document document;
        memcpy(&document, bytes, sizeof document);
        const char *id = bytes + sizeof document, *id_end = memchr(id, '\n', (size_t)(end - id));
        if (!add_document(user, &document, id, (size_t)(id_end - id)))
            return DOPPEL_ERROR_MEMORY;
        bytes = id_end + 1;
    }
    return DOPPEL_OK;
}

/* ---- twins ---- */

/* The first and the last so far of those with the same words, as numbers from 1; 0: an empty slot. */
typedef struct twin_slot {
    uint64_t first, last;
} twin_slot;

static twin_slot *find_slot(const collection *c, twin_slot *slots, size_t mask, const twin *wanted) {
    uint64_t at;
    memcpy(&at, wanted->digest, sizeof at);
    for (;; at++) {
        twin_slot *slot = &slots[at & mask];
        if (!slot->first || !memcmp(c->twins[slot->first - 1].digest, wanted->digest, sizeof wanted->digest))
            return slot;
    }
}

/* Chains the twins with the same words. Digests are as good as random: a table half full has no long runs. */
static bool chain_twins(collection *c) {
    size_t size = 2;
    while (size < 2 * c->twin_count)
        size *= 2;
    twin_slot *slots = calloc(size, sizeof *slots);
    for (size_t i = 0; slots && i < c->twin_count; i++) {
        twin_slot *slot = find_slot(c, slots, size - 1, &c->twins[i]);
        c->twins[i].copy = slot->first;
        if (slot->first)
            c->twins[slot->last - 1].next = i;
        else
            slot->first = i + 1;
        slot->last = i + 1;
    }
    free(slots);
    return slots;
}

/* Takes the copies out of the joined documents. */
static bool drop_copies(collection *c) {
    size_t words = doppel_recipe_bits(c->loaded.recipe) > 64 ? 2 : 1, kept = 0, t = 0;
    if (!start_places(c))
        return false;
    for (size_t i = 0; i < c->joined; i++) {
        while (c->twins[t].position != c->places[i])
            t++;
        if (c->twins[t].copy)
            continue;
        c->places[kept] = c->places[i];
        memmove(c->fingerprints + kept * words, c->fingerprints + i * words, words * sizeof *c->fingerprints);
        kept++;
    }
    c->joined = kept;
    return true;
}

/* ---- the whole ---- */

static int check_options(const cli_args *args) {
    const char *method = args_text(args, "method");
    if (method && strcmp(method, "simhash") != 0) {
        message("--method takes simhash, not %s", method);
        return EXIT_USAGE;
    }
    if (args_flag(args, "json") && !args_flag(args, "output")) {
        message("--json prints a summary, and goes with --output");
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int collect(collection *c, const cli_args *args, bool collapse, bool *usable) {
    *c = (collection){.args = args, .collapse = collapse, .min_words = args_number(args, "min-words", 5)};
    *usable = false;
    int code = check_options(args);
    if (code == EXIT_DONE)
        code = load_recipe(args, args_text(args, "recipe"), &c->loaded);
    if (code == EXIT_DONE && !joining_distance(args, doppel_recipe_bits(c->loaded.recipe), &c->distance))
        code = EXIT_USAGE;
    if (code != EXIT_DONE)
        return code;
    c->sketch = (sketch_job){c->loaded.recipe, collapse ? DOPPEL_WANT_DIGEST : 0};
    doppel_work work = {
        .user = c, .begin = begin_worker, .document = write_document, .end = end_worker, .emit = add_documents};
    code = run_inputs(args, &work, &c->counts);
    *usable = code == EXIT_DONE || (code == EXIT_INPUT && !args_flag(args, "strict"));
    if (*usable && (!chain_twins(c) || (collapse && !drop_copies(c)))) {
        message("no memory");
        *usable = false;
        return EXIT_STORE;
    }
    return code;
}

void free_collection(collection *c) {
    free_recipe(&c->loaded);
    ids_free(&c->ids);
    free(c->fingerprints);
    free(c->places);
    free(c->twins);
}

int join_documents(collection *c, doppel_join_options *options) {
    doppel_source source = {.size = sizeof source, .array = c->fingerprints, .count = c->joined};
    doppel_join_options common = joining_options(c->args, doppel_recipe_bits(c->loaded.recipe));
    doppel_error error = {0};
    common.all = options->all;
    common.pairs = options->pairs;
    common.user = options->user;
    progress_begin();
    doppel_status status =
        c->joined ? doppel_join(&source, c->distance, &common, &c->joined_counts, &error) : DOPPEL_OK;
    progress_end();
    return end_join(status, &error);
}

void print_collection(const collection *c) {
    printf("{\"method\":\"simhash\",\"recipe\":\"%s\",\"distance\":%d", doppel_recipe_text(c->loaded.recipe),
           c->distance);
    print_counts(stdout, &c->counts);
}

/* similar_scan.c - doppel similar --in: the inputs are read twice, first for the document with the given id or URL,
 * then to compare each document with it, on all threads. Only the most similar are in memory. */
#include "similar_scan.h"

#include "common/message.h"
#include "common/progress.h"
#include "shared/address.h"
#include "shared/inputs.h"
#include "shared/recipes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct scan {
    const cli_args *args;
    const doppel_similar_options *options, *wider;
    const char **paths; /* of --in */
    size_t path_count;
    loaded_recipe loaded;

    const char *id;   /* of the document, if it is one of the inputs; NULL: it has no such id, */
    char *address;    /* or it is the one with this canonical URL; both NULL: it is a file of its own */
    text_buffer text; /* of the document */
    size_t found;     /* documents with that id or URL, or of that file */
    doppel_sketch query;
    scan_result *result;
} scan;

/* A thread's own. */
typedef struct scanner {
    const scan *scan;
    doppel_page_reader *reader;
    doppel_sketcher *sketcher;
} scanner;

static void end(void *user, void *state) {
    (void)user;
    scanner *s = state;
    doppel_sketcher_free(s->sketcher);
    doppel_page_reader_free(s->reader);
    free(s);
}

static doppel_status begin(void *user, void **state) {
    scanner *s = calloc(1, sizeof *s);
    if (!s)
        return DOPPEL_ERROR_MEMORY;
    s->scan = user;
    doppel_status status = doppel_page_reader_create(&s->reader);
    if (status == DOPPEL_OK)
        status =
            doppel_sketcher_create(s->scan->loaded.recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, &s->sketcher, NULL);
    if (status == DOPPEL_OK)
        *state = s;
    else
        end(user, s);
    return status;
}

static bool has_id(const doppel_document *document, const char *id) {
    return strlen(id) == document->id.length && !memcmp(id, document->id.data, document->id.length);
}

/* Whether it is the document that the others are compared with, or may be. */
static bool is_query(const scan *s, const doppel_document *document) {
    return s->id ? has_id(document, s->id) : has_address(document, s->address);
}

/* ---- the document ---- */

/* doppel_work.document: writes the text of each that is meant, after its length. */
static doppel_status find_text(void *state, const doppel_document *document, doppel_output *output) {
    const scanner *s = state;
    doppel_page page = {0};
    if ((s->scan->id || s->scan->address) && !is_query(s->scan, document))
        return DOPPEL_OK;
    doppel_status status = doppel_document_text(s->reader, document, DOPPEL_CONTENT_MAIN, &page);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, (doppel_slice){(const char *)&page.text.length, sizeof page.text.length});
    return status == DOPPEL_OK ? doppel_output_write(output, page.text) : status;
}

/* doppel_work.emit: keeps the first text and counts all. */
static doppel_status take_text(void *user, doppel_slice bytes) {
    scan *s = user;
    for (size_t length, at = 0; at < bytes.length; at += sizeof length + length) {
        memcpy(&length, bytes.data + at, sizeof length);
        if (!s->found++)
            text_add(&s->text, bytes.data + at + sizeof length, length);
    }
    return s->text.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* doppel_input_options.bad of the first reading: bad records are reported by the second. */
static void report_unopened(const doppel_error *what, void *user) {
    (void)user;
    if (!what->line && what->code != DOPPEL_OK)
        message_error(what);
}

/* Looks for the document by s->id or, without one, by s->address. */
static int find_in_inputs(scan *s) {
    doppel_work work = {.user = s, .begin = begin, .document = find_text, .end = end, .emit = take_text};
    doppel_input_options options = reading_options(s->args);
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    options.bad = report_unopened;
    options.unseen = NULL;
    progress_begin("reading");
    doppel_status status = doppel_input_run(s->paths, s->path_count, &options, &work, &counts, &error);
    int code = reading_ended(status, &options, &error, &(doppel_input_counts){0});
    if (code == EXIT_DONE && counts.unopened)
        code = EXIT_INPUT;
    if (code == EXIT_DONE && s->found > 1) {
        message("%s: --in has more than one document with this %s", s->args->operands[0], s->id ? "id" : "URL");
        code = EXIT_INPUT;
    }
    return code;
}

/* Looks for the document by its id and, if there is none, by its URL: so the inputs are read once more for an address.
 */
static int find_by_name(scan *s) {
    s->id = s->args->operands[0];
    int code = find_in_inputs(s);
    if (code != EXIT_DONE || s->found)
        return code;
    s->address = canonical_address(s->id);
    s->id = NULL;
    code = s->address ? find_in_inputs(s) : EXIT_DONE;
    if (code == EXIT_DONE && !s->found) {
        free(s->address);
        s->address = NULL;
    }
    return code;
}

/* Reads the one document of a file, which has a format of its own. */
static int read_file(scan *s) {
    const char *path = s->args->operands[0];
    doppel_work work = {.user = s, .begin = begin, .document = find_text, .end = end, .emit = take_text};
    doppel_input_options options = reading_options(s->args);
    options.refuse_plain = false; /* the keys are those of --in */
    options.unseen = NULL;
    options.format = NULL;
    if (strcmp(path, "-") != 0 && access(path, R_OK)) {
        message("%s: --in has no document with this id or URL, and there is no such file%s", path, address_hint(path));
        return EXIT_INPUT;
    }
    int code = run_paths(&path, 1, &options, &work, NULL);
    if (code == EXIT_DONE && s->found != 1) {
        message("%s: has %zu documents; similar takes one", path, s->found);
        code = EXIT_INPUT;
    }
    return code;
}

static bool reads_stdin(const scan *s) {
    for (size_t i = 0; i < s->path_count; i++)
        if (!strcmp(s->paths[i], "-"))
            return true;
    return false;
}

/* Stdin is read once, so that the document can only be a file then. */
static int find_document(scan *s) {
    const char *operand = s->args->operands[0];
    bool from_stdin = !strcmp(operand, "-");
    if (reads_stdin(s) && (from_stdin || access(operand, F_OK))) {
        message("--in - reads stdin, which can be read only once: compare it with a file, or give --in a file");
        return EXIT_USAGE;
    }
    int code = reads_stdin(s) || from_stdin ? EXIT_DONE : find_by_name(s);
    return code == EXIT_DONE && !s->id && !s->address ? read_file(s) : code;
}

/* ---- comparing ---- */

/* What a thread writes of a document; its id, URL and title follow. */
typedef struct packed_hit {
    double similarity, containment;
    int distance;
    size_t length[3]; /* SIZE_MAX: there is none */
} packed_hit;

/* Measures a document against the query; those without words are like nothing. */
static void measure(const scan *s, const doppel_sketch *sketch, packed_hit *hit) {
    const doppel_sketch *q = &s->query;
    *hit = (packed_hit){.similarity = NAN, .containment = NAN, .distance = -1};
    if (!q->words || !sketch->words)
        return;
    if (s->options->distance || s->options->distance_zero) {
        hit->distance = doppel_distance128(q->fingerprint, sketch->fingerprint);
    } else if (!memcmp(q->digest, sketch->digest, sizeof q->digest)) {
        hit->similarity = hit->containment = 1;
    } else {
        hit->similarity = doppel_jaccard(q->set, q->set_count, sketch->set, sketch->set_count);
        hit->containment = doppel_containment(q->set, q->set_count, sketch->set, sketch->set_count);
    }
}

static bool is_near(double similarity, int distance, const doppel_similar_options *options) {
    if (options->distance || options->distance_zero)
        return distance >= 0 && distance <= options->distance;
    return similarity >= options->similarity;
}

/* doppel_work.document */
static doppel_status compare(void *state, const doppel_document *document, doppel_output *output) {
    const scanner *s = state;
    doppel_page page = {0};
    doppel_sketch sketch;
    packed_hit hit;
    const doppel_slice strings[3] = {document->id, document->url, document->title};
    if (is_query(s->scan, document))
        return DOPPEL_OK;
    doppel_status status = doppel_document_text(s->reader, document, DOPPEL_CONTENT_MAIN, &page);
    if (status == DOPPEL_OK)
        status = doppel_sketcher_run(s->sketcher, page.text, &sketch);
    if (status != DOPPEL_OK)
        return status;
    measure(s->scan, &sketch, &hit);
    if (!is_near(hit.similarity, hit.distance, s->scan->options) &&
        !is_near(hit.similarity, hit.distance, s->scan->wider))
        return DOPPEL_OK;
    for (size_t i = 0; i < 3; i++)
        hit.length[i] = strings[i].data ? strings[i].length : SIZE_MAX;
    status = doppel_output_write(output, (doppel_slice){(const char *)&hit, sizeof hit});
    for (size_t i = 0; i < 3 && status == DOPPEL_OK; i++)
        if (strings[i].data)
            status = doppel_output_write(output, strings[i]);
    return status;
}

/* Unpacks what compare wrote; returns how many bytes it takes. `hit` has no memory of its own yet. */
static size_t unpack(const char *bytes, scan_hit *hit) {
    packed_hit packed;
    const char *p = bytes + sizeof packed;
    doppel_slice strings[3] = {{0}};
    memcpy(&packed, bytes, sizeof packed);
    for (size_t i = 0; i < 3; i++)
        if (packed.length[i] != SIZE_MAX) {
            strings[i] = (doppel_slice){p, packed.length[i]};
            p += packed.length[i];
        }
    *hit = (scan_hit){.stored = {.similarity = packed.similarity,
                                 .containment = packed.containment,
                                 .distance = packed.distance,
                                 .id = strings[0],
                                 .url = strings[1],
                                 .title = strings[2]}};
    return (size_t)(p - bytes);
}

/* Copies the strings of a hit; false: no memory. */
static bool own(scan_hit *hit) {
    doppel_slice *strings[3] = {&hit->stored.id, &hit->stored.url, &hit->stored.title};
    size_t room = 1;
    for (size_t i = 0; i < 3; i++)
        room += strings[i]->length;
    char *to = hit->memory = malloc(room);
    for (size_t i = 0; to && i < 3; i++)
        if (strings[i]->data) {
            memcpy(to, strings[i]->data, strings[i]->length);
            strings[i]->data = to;
            to += strings[i]->length;
        }
    return hit->memory;
}

static bool is_nearer(const doppel_stored *a, const doppel_stored *b) {
    return a->distance >= 0 ? a->distance < b->distance : a->similarity > b->similarity;
}

/* Puts a hit in its place, unless there are `limit` nearer ones; false: no memory. */
static bool keep_hit(scan_result *result, size_t limit, scan_hit hit) {
    size_t place = result->count;
    while (place && is_nearer(&hit.stored, &result->hits[place - 1].stored))
        place--;
    if (place == limit)
        return true;
    if (!own(&hit))
        return false;
    if (result->count == limit)
        free(result->hits[--result->count].memory);
    scan_hit *more = realloc(result->hits, (result->count + 1) * sizeof *more);
    if (!more) {
        free(hit.memory);
        return false;
    }
    result->hits = more;
    memmove(more + place + 1, more + place, (result->count - place) * sizeof *more);
    more[place] = hit;
    result->count++;
    return true;
}

/* doppel_work.emit */
static doppel_status take_hits(void *user, doppel_slice bytes) {
    scan *s = user;
    scan_result *r = s->result;
    for (size_t at = 0; at < bytes.length;) {
        scan_hit hit;
        at += unpack(bytes.data + at, &hit);
        bool kept = true;
        if (is_near(hit.stored.similarity, hit.stored.distance, s->options)) {
            kept = keep_hit(r, s->options->limit, hit);
        } else if (!r->nearest.memory || is_nearer(&hit.stored, &r->nearest.stored)) {
            free(r->nearest.memory);
            r->nearest = hit;
            kept = own(&r->nearest);
        }
        if (!kept)
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* Sketches the document, and compares all others with it. */
static int compare_all(scan *s) {
    doppel_work work = {.user = s, .begin = begin, .document = compare, .end = end, .emit = take_hits};
    doppel_input_options options = reading_options(s->args);
    doppel_input_counts counts = {0};
    doppel_sketcher *sketcher = NULL;
    doppel_error error = {0};
    doppel_status status =
        doppel_sketcher_create(s->loaded.recipe, DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET, &sketcher, &error);
    if (status == DOPPEL_OK)
        status =
            doppel_sketcher_run(sketcher, (doppel_slice){s->text.data ? s->text.data : "", s->text.length}, &s->query);
    if (status != DOPPEL_OK)
        message("%s", error.message[0] ? error.message : doppel_status_name(status));
    int code = status == DOPPEL_OK ? run_paths(s->paths, s->path_count, &options, &work, &counts) : exit_code(status);
    s->result->documents = counts.documents > (s->id || s->address);
    doppel_sketcher_free(sketcher);
    return code;
}

int scan_inputs(const cli_args *args, const doppel_similar_options *options, const doppel_similar_options *wider,
                scan_result *result) {
    scan s = {.args = args, .options = options, .wider = wider, .result = result};
    *result = (scan_result){0};
    s.paths = args_all(args, "in", &s.path_count);
    if (!s.paths) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = load_recipe(args, args_text(args, "recipe"), &s.loaded);
    if (code == EXIT_DONE)
        code = find_document(&s);
    if (code == EXIT_DONE)
        code = compare_all(&s);
    text_free(&s.text);
    free(s.address);
    free_recipe(&s.loaded);
    free(s.paths);
    return code;
}

void scan_free(scan_result *result) {
    for (size_t i = 0; i < result->count; i++)
        free(result->hits[i].memory);
    free(result->hits);
    free(result->nearest.memory);
    *result = (scan_result){0};
}

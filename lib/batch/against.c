/* against.c - index folders of the engine that a batch is compared with: whether they go with it, what they have of a
 * document, and what is kept of that.
 *
 * An index finds what is at least as similar (or as near) as it was made for, so it must have been made for no more
 * than the batch asks. One that goes by distance keeps no features: its own distance counts for `auto`. */
#include "batch/batch.h"
#include "engine/engine.h"
#include "hamming/hamming.h"
#include "sketch/sketch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct dp_index_folder {
    char *path;
    doppel_engine *engine;
} dp_index_folder;

struct dp_against {
    dp_index_folder *folder;
    size_t count, room;
    pthread_mutex_t lock; /* of what follows */
    doppel_error failed;  /* what ended a search */
    char complaint[512];  /* the first line of the log since one was told; empty: none */
};

/* ---- documents that an index has, and the originals it named: a list by document, a table of ids ---- */

void dp_finds_free(dp_finds *finds) {
    free(finds->document);
    free(finds->original);
    free(finds->table);
    *finds = (dp_finds){0};
}

/* ---- kinds ---- */

static const struct {
    doppel_reason reason;
    bool same_digest;
} kinds[DP_FOUND_KINDS] = {
    {DOPPEL_REASON_NONE, false},    {DOPPEL_REASON_URL, false},   {DOPPEL_REASON_CONTENT, true},
    {DOPPEL_REASON_CONTENT, false}, {DOPPEL_REASON_TITLE, false},
};

uint8_t dp_found_kind(doppel_reason reason, bool same_digest) {
    uint8_t kind = 0;
    while (kinds[kind].reason != reason || (reason == DOPPEL_REASON_CONTENT && kinds[kind].same_digest != same_digest))
        kind++;
    return kind;
}

doppel_reason dp_found_reason(uint8_t kind) {
    return kinds[kind].reason;
}

/* ---- originals ---- */

static size_t place_of(const dp_finds *finds, const uint64_t hash[2]) {
    size_t at = (size_t)hash[0] & (finds->table_room - 1);
    while (finds->table[at] && memcmp(finds->original[finds->table[at] - 1].hash, hash, 2 * sizeof *hash) != 0)
        at = (at + 1) & (finds->table_room - 1);
    return at;
}

/* Room for one original more; the table is never more than half full. */
static bool make_room(dp_finds *finds) {
    size_t count = finds->original_count;
    if (!dp_reserve(&finds->original, &finds->original_room, count + 1, sizeof *finds->original))
        return false;
    if (2 * (count + 1) <= finds->table_room)
        return true;
    if (!finds->table_room)
        finds->key[0] = dp_random_number(), finds->key[1] = dp_random_number();
    size_t room = finds->table_room ? 2 * finds->table_room : 1024;
    uint32_t *table = calloc(room, sizeof *table);
    if (!table)
        return false;
    free(finds->table);
    finds->table = table;
    finds->table_room = room;
    for (size_t i = 0; i < count; i++)
        table[place_of(finds, finds->original[i].hash)] = (uint32_t)i + 1;
    return true;
}

/* The number of the original with this id. Ids are told by 128 bits of their hash. */
static bool number_of(dp_finds *finds, doppel_slice id, uint64_t id_at, uint32_t *number) {
    if (!make_room(finds))
        return false;
    const uint64_t other_key[2] = {finds->key[1], finds->key[0]};
    dp_found_original original = {
        .hash = {dp_siphash(id.data, id.length, finds->key), dp_siphash(id.data, id.length, other_key)},
        .id_at = id_at,
        .id_length = (uint32_t)id.length};
    uint32_t *place = &finds->table[place_of(finds, original.hash)];
    if (!*place) {
        finds->original[finds->original_count++] = original;
        *place = (uint32_t)finds->original_count;
    }
    *number = *place - 1;
    return true;
}

/* ---- documents ---- */

bool dp_finds_add(dp_finds *finds, const dp_found_document *document, doppel_slice id, uint64_t id_at) {
    if (!dp_reserve(&finds->document, &finds->room, finds->count + 1, sizeof *finds->document))
        return false;
    dp_found_document *added = &finds->document[finds->count];
    *added = *document;
    if (!number_of(finds, id, id_at, &added->found.original))
        return false;
    finds->count++;
    return true;
}

static int compare(const void *key, const void *element) {
    uint32_t a = *(const uint32_t *)key, b = ((const dp_found_document *)element)->document;
    return a < b ? -1 : a > b;
}

const dp_found *dp_finds_get(const dp_finds *finds, uint32_t document) {
    if (!finds->count)
        return NULL;
    const dp_found_document *found =
        bsearch(&document, finds->document, finds->count, sizeof *finds->document, compare);
    return found ? &found->found : NULL;
}

/* ---- a document of a batch, asked for in index folders with the sketches that the batch has made.
 *
 * What counts is what `by` says, by the thresholds of the batch where the index can tell; one that goes by distance
 * keeps no features, and there nothing is verified but that the words are the same. */

/* The rules of the batch where the index can tell; one by distance has its own, unless the batch goes by distance. */
static dp_rules rules_for(const doppel_batch *batch, const doppel_engine *engine) {
    dp_rules rules = dp_batch_rules(batch);
    rules.by_similarity = dp_engine_rules(engine)->by_similarity;
    if (batch->options.method != DOPPEL_METHOD_SIMHASH)
        rules.distance = dp_engine_rules(engine)->distance;
    return rules;
}

static doppel_status ask(const doppel_batch *batch, doppel_engine *engine, const dp_asked *asked,
                         doppel_verdict *verdict, doppel_error *error) {
    const doppel_sketch *sketch = asked->sketch;
    const dp_engine_document document = {.url = asked->url,
                                         .title = asked->title,
                                         .sketch = sketch,
                                         .near = sketch && batch->options.method != DOPPEL_METHOD_EXACT &&
                                                 sketch->words && sketch->words >= batch->options.min_words,
                                         .rules = rules_for(batch, engine)};
    return dp_engine_check_sketched(engine, &document, verdict, error);
}

static void note(const doppel_engine *engine, const doppel_verdict *verdict, dp_found *found) {
    const doppel_evidence *e = &verdict->evidence;
    doppel_reason reason = verdict->reason;
    double similarity = dp_decide_similarity(reason, e);
    found->id_length = (uint32_t)verdict->original_id.length;
    found->similarity = similarity >= 0 ? (float)similarity : -1;
    found->distance = (int16_t)e->distance;
    found->verified = e->verified || (dp_engine_rules(engine)->by_similarity &&
                                      doppel_engine_get_options(engine)->sample == DOPPEL_SAMPLE_ALL);
    found->kind = dp_found_kind(reason, e->same_digest);
}

doppel_status dp_against_find(const doppel_batch *batch, const dp_asked *asked, doppel_verdict *verdict,
                              dp_found *found) {
    dp_against *against = batch->against;
    doppel_error why = {0};
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < against->count && status == DOPPEL_OK && !found->id_length; i++) {
        status = ask(batch, against->folder[i].engine, asked, verdict, &why);
        if (status == DOPPEL_OK && verdict->is_duplicate)
            note(against->folder[i].engine, verdict, found);
        if (status == DOPPEL_OK)
            continue;
        pthread_mutex_lock(&against->lock);
        if (against->failed.code == DOPPEL_OK)
            dp_fail_at(&against->failed, status, why.file[0] ? why.file : against->folder[i].path, why.line, "%s",
                       why.message);
        pthread_mutex_unlock(&against->lock);
    }
    return status;
}

bool dp_is_index(const char *path) {
    char name[4096];
    struct stat found;
    int length = snprintf(name, sizeof name, "%s/doppel.index", path);
    return length > 0 && (size_t)length < sizeof name && !stat(name, &found) && S_ISREG(found.st_mode);
}

/* ---- what does not go together ---- */

/* "the index was made with similarity 0.9, and this run asks for 0.8" */
static doppel_status differ(const char *path, const char *what, double has, double asked, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index was made with %s %g, and this run has %g", what,
                      has, asked);
}

/* What no index can tell. */
static doppel_status check_batch(const doppel_batch *batch, const char *path, doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    const char *what = o->within            ? "within"
                       : o->across          ? "across"
                       : o->link_any        ? "chains (link any)"
                       : o->boilerplate > 0 ? "boilerplate"
                                            : NULL;
    if (!what)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                      "%s cannot be asked for against an index: leave it out, or give the documents themselves", what);
}

static doppel_status check_content(const doppel_batch *batch, const doppel_engine *engine, const char *path,
                                   doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    const dp_rules *rules = dp_engine_rules(engine);
    uint64_t min_words = doppel_engine_get_options(engine)->min_words;
    if (!(batch->by & DOPPEL_BY_CONTENT) || o->method == DOPPEL_METHOD_EXACT)
        return DOPPEL_OK;
    if (o->min_words != min_words)
        return differ(path, "min_words", (double)min_words, (double)o->min_words, error);
    if (rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds by similarity, not by distance: use another method than simhash");
    if (rules->by_similarity && o->similarity < rules->similarity)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds similarities of %g and more, and this run asks for %g: ask for no less",
                          rules->similarity, o->similarity);
    if (!rules->by_similarity && o->method == DOPPEL_METHOD_SIMHASH && batch->distance > rules->distance)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index finds distances of up to %d, and this run asks for %d: ask for no more",
                          rules->distance, batch->distance);
    return DOPPEL_OK;
}

static doppel_status check_names(const doppel_batch *batch, const doppel_engine *engine, const char *path,
                                 doppel_error *error) {
    static const char *const content[] = {"main", "all"};
    const doppel_batch_options *o = &batch->options;
    const doppel_engine_options *has = doppel_engine_get_options(engine);
    const dp_rules *rules = dp_engine_rules(engine);
    if (o->content != has->content)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index was made with content %s of pages, and this run has %s",
                          content[has->content == DOPPEL_CONTENT_ALL], content[o->content == DOPPEL_CONTENT_ALL]);
    if (batch->by & DOPPEL_BY_URL && o->url_without != has->url_without)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                          "the index was made with other rules of URLs left out (%#x) than this run has (%#x)",
                          has->url_without, o->url_without);
    if (!(batch->by & DOPPEL_BY_TITLE))
        return DOPPEL_OK;
    if (!rules->titles)
        return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "the index does not go by titles: leave them out");
    if (rules->title_similarity > DP_TITLE_SIMILARITY)
        return differ(path, "title_similarity", rules->title_similarity, DP_TITLE_SIMILARITY, error);
    return DOPPEL_OK;
}

/* ---- opening ---- */

/* doppel_engine_options.log: keeps the first line, for whoever may tell it. */
static void on_line(doppel_log_level level, const char *line, void *user) {
    dp_against *against = user;
    (void)level;
    pthread_mutex_lock(&against->lock);
    if (!against->complaint[0])
        snprintf(against->complaint, sizeof against->complaint, "%s", line);
    pthread_mutex_unlock(&against->lock);
}

/* Gives the line to the caller, as what is left out of an input is told. */
static void tell_complaint(const doppel_batch *batch, const char *path) {
    dp_against *against = batch->against;
    doppel_error what;
    if (!against->complaint[0])
        return;
    dp_fail_at(&what, DOPPEL_ERROR_STORE, path, 0, "%s", against->complaint);
    against->complaint[0] = 0;
    if (batch->input.bad)
        batch->input.bad(&what, batch->input.user);
}

static doppel_status open_engine(const doppel_batch *batch, const char *path, doppel_engine **engine,
                                 doppel_error *error) {
    doppel_error why = {0};
    const doppel_engine_options options = {.size = sizeof options,
                                           .recipe =
                                               batch->options.recipe ? batch->options.recipe : dp_recipe_default(),
                                           .read_only = true,
                                           .must_exist = true,
                                           .threads = batch->input.threads,
                                           .log = on_line,
                                           .log_level = DOPPEL_LOG_WARNING,
                                           .user = batch->against};
    doppel_status status = doppel_engine_open(path, &options, engine, &why);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    return dp_fail_at(error, status, why.file[0] ? why.file : path, why.line, "%s", why.message);
}

static doppel_status open_folder(doppel_batch *batch, const char *path, doppel_error *error) {
    dp_against *a = batch->against;
    for (size_t i = 0; i < a->count; i++)
        if (!strcmp(a->folder[i].path, path))
            return DOPPEL_OK;
    doppel_status status = check_batch(batch, path, error);
    if (status != DOPPEL_OK)
        return status;
    if (!dp_reserve(&a->folder, &a->room, a->count + 1, sizeof *a->folder))
        return dp_no_memory(error);
    dp_index_folder *f = &a->folder[a->count];
    *f = (dp_index_folder){.path = strdup(path)};
    if (!f->path)
        return dp_no_memory(error);
    a->count++;
    status = open_engine(batch, path, &f->engine, error);
    tell_complaint(batch, path);
    if (status == DOPPEL_OK)
        status = check_names(batch, f->engine, path, error);
    return status == DOPPEL_OK ? check_content(batch, f->engine, path, error) : status;
}

static doppel_status open_reading(doppel_batch *batch, const dp_reading *reading, doppel_error *error) {
    uint64_t found = 0;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < reading->count && status == DOPPEL_OK; i++)
        if (dp_is_index(reading->paths[i])) {
            found++;
            status = open_folder(batch, reading->paths[i], error);
        }
    if (status == DOPPEL_OK && found != reading->indexes)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, reading->paths[0], 0,
                            "the run was begun against an index that is not there any more");
    return status;
}

doppel_status dp_against_open(doppel_batch *batch, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i <= batch->reading_at && i < batch->reading_count && status == DOPPEL_OK; i++) {
        const dp_reading *reading = &batch->readings[i];
        if (!reading->indexes)
            continue;
        if (!batch->against) {
            if (!(batch->against = calloc(1, sizeof *batch->against)))
                return dp_no_memory(error);
            pthread_mutex_init(&batch->against->lock, NULL);
        }
        status = open_reading(batch, reading, error);
    }
    return status;
}

void dp_against_close(dp_against *against) {
    if (!against)
        return;
    for (size_t i = 0; i < against->count; i++) {
        doppel_engine_close(against->folder[i].engine);
        free(against->folder[i].path);
    }
    pthread_mutex_destroy(&against->lock);
    free(against->folder);
    free(against);
}

void dp_against_end(const doppel_batch *batch, doppel_status status, doppel_error *error) {
    dp_against *against = batch->against;
    if (!against)
        return;
    if (against->count)
        tell_complaint(batch, against->folder[0].path);
    if (status != DOPPEL_OK && against->failed.code == status && error)
        *error = against->failed;
    against->failed = (doppel_error){0};
}

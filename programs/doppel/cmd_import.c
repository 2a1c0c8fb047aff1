/* cmd_import.c - doppel import: what doppel export wrote, or plain records, into an index. */
#include "commands.h"
#include "common/message.h"
#include "engine/export_format.h"
#include "engine/feed.h"
#include "engine/index_settings.h"
#include "engine/verdicts.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

const cli_option import_options[] = {
    INDEX_OPTION,
    {"batch", 0, OPTION_COUNT, "N", "give the engine N documents at once (default 1000)"},
    {"json", 0, OPTION_FLAG, NULL, "print a summary as one JSON object"},
    {"url-key", 0, OPTION_TEXT, "KEY", "the field with a record's URL (default url)"},
    {"title-key", 0, OPTION_TEXT, "KEY", "the field with its title (default title)"},
    {"on-duplicate", 0, OPTION_TEXT, "DO",
     "as for doppel add; an export is linked by default in an index that has documents"},
    DECIDE_OPTIONS,
    WRITE_OPTIONS,
    MAKE_OPTIONS,
    LOG_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* What an item of a batch points to, until the batch ends. */
typedef struct import_buffers {
    doppel_document *fields;
    uint64_t fingerprint[2];
    uint8_t digest[32];
    uint64_t *set;
    char *sample;
    doppel_stored stored; /* as it was exported */
} import_buffers;

typedef struct import_job {
    feed feed; /* must be first: the callbacks of the feed get it */
    engine_command cli;
    settings settings;       /* of the first export */
    name_list fields;        /* that the index keeps */
    import_buffers *buffers; /* feed.batch of them */
    bool merge;              /* the index had documents, or an earlier export came first */
    uint64_t now;
    uint64_t documents, copies; /* imported */
    uint64_t known;             /* that the index already had, with the same id and words */
    uint64_t duplicates;        /* of what the index had */
    uint64_t expired;           /* left out */
} import_job;

/* ---- from a line of an export to an item of the engine ----
 *
 * A document of an export is restored as it was, with its sketches and with its text where that was kept. In an index
 * that already had documents, it is checked again, and linked if it is a duplicate there; plain records are always
 * checked. */

static bool export_is(const doppel_document *from, int which, const char *text) {
    doppel_slice value = from->extra[which];
    return value.data && value.length == strlen(text) && !memcmp(value.data, text, value.length);
}

static feed_answer bad(doppel_error *why, const char *text) {
    snprintf(why->message, sizeof why->message, "%s", text);
    return FEED_BAD;
}

static void free_buffers(import_buffers *buffers) {
    doppel_document_free(buffers->fields);
    free(buffers->set);
    free(buffers->sample);
    *buffers = (import_buffers){0};
}

static doppel_status end_batch(feed *f) {
    import_job *job = (import_job *)f;
    for (size_t i = 0; i < f->batch; i++)
        free_buffers(&job->buffers[i]);
    return DOPPEL_OK;
}

/* ---- values ---- */

/* Some hexadecimal digits, up to 16. */
static bool read_hex(const char *digits, size_t length, uint64_t *value) {
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        char c = digits[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return false;
        *value = *value << 4 | (uint64_t)digit;
    }
    return length && length <= 16;
}

/* A whole number, or 0. */
static uint64_t read_count(const doppel_document *from, int which) {
    doppel_slice value = from->extra[which];
    char text[24] = "";
    uint64_t number;
    if (value.data && value.length < sizeof text)
        memcpy(text, value.data, value.length);
    return parse_number(text, &number) ? number : 0;
}

static bool read_fingerprint(const doppel_document *from, import_buffers *buffers) {
    doppel_slice value = from->extra[EXPORT_FINGERPRINT];
    size_t high = value.length > 16 ? value.length - 16 : 0;
    return (!high || read_hex(value.data, high, &buffers->fingerprint[1])) &&
           read_hex(value.data + high, value.length - high, &buffers->fingerprint[0]);
}

static bool read_digest(const doppel_document *from, import_buffers *buffers) {
    doppel_slice value = from->extra[EXPORT_DIGEST];
    uint64_t byte;
    bool good = value.length == 64;
    for (size_t i = 0; i < 32 && good; i++) {
        good = read_hex(value.data + 2 * i, 2, &byte);
        buffers->digest[i] = (uint8_t)byte;
    }
    return good;
}

/* Checks that they ascend, as the engine relies on it. */
static bool read_set(const doppel_document *from, import_buffers *buffers, size_t *count) {
    doppel_slice value = from->extra[EXPORT_SET];
    bool good = value.length % 16 == 0;
    *count = value.length / 16;
    buffers->set = malloc(*count * sizeof *buffers->set + 1);
    for (size_t i = 0; buffers->set && i < *count && good; i++)
        good = read_hex(value.data + 16 * i, 16, &buffers->set[i]) && (!i || buffers->set[i] > buffers->set[i - 1]);
    return good && buffers->set;
}

static bool read_sample(const doppel_document *from, import_buffers *buffers, doppel_slice *sample) {
    doppel_slice value = from->extra[EXPORT_SAMPLE];
    uint64_t byte = 0;
    bool good = value.length && value.length % 2 == 0;
    buffers->sample = malloc(value.length / 2 + 1);
    for (size_t i = 0; buffers->sample && i < value.length / 2 && good; i++) {
        good = read_hex(value.data + 2 * i, 2, &byte);
        buffers->sample[i] = (char)byte;
    }
    *sample = (doppel_slice){buffers->sample, value.length / 2};
    return good && buffers->sample;
}

/* ---- items ---- */

/* The fields that the index keeps, of a JSON object. */
static feed_answer take_fields(const import_job *job, doppel_slice object, import_buffers *buffers, doppel_item *item,
                               doppel_error *why) {
    doppel_input_options options = {
        .size = sizeof options, .extra_keys = job->fields.names, .extra_count = job->fields.count};
    item->document.extra = NULL;
    if (!object.data)
        return FEED_TAKE;
    if (doppel_document_parse(object, &options, &buffers->fields, why) != DOPPEL_OK)
        return FEED_BAD;
    item->document.extra = buffers->fields->extra;
    return FEED_TAKE;
}

static feed_answer take_sketches(const doppel_document *from, import_buffers *buffers, doppel_item *item,
                                 doppel_error *why) {
    item->words = read_count(from, EXPORT_WORDS);
    if (!read_fingerprint(from, buffers))
        return bad(why, "field \"fingerprint\" is not hexadecimal");
    if (from->extra[EXPORT_DIGEST].data && !read_digest(from, buffers))
        return bad(why, "field \"digest\" is not 64 hexadecimal digits");
    if (from->extra[EXPORT_SET].data && !read_set(from, buffers, &item->set_count))
        return bad(why, "field \"set\" is not 16 hexadecimal digits for each hash, ascending");
    if (from->extra[EXPORT_SAMPLE].data && !read_sample(from, buffers, &item->sample))
        return bad(why, "field \"sample\" is not two hexadecimal digits for each byte");
    item->fingerprint = buffers->fingerprint;
    item->digest = from->extra[EXPORT_DIGEST].data || !item->words ? buffers->digest : NULL; /* all 0: no words */
    item->set = buffers->set;
    return FEED_TAKE;
}

/* "[1,2,3]" */
static void read_counts(doppel_slice value, uint64_t by[DOPPEL_REASONS]) {
    size_t which = DOPPEL_REASON_URL;
    for (size_t i = 0; value.data && i < value.length && which < DOPPEL_REASONS; i++) {
        char c = value.data[i];
        if (c == ',')
            which++;
        else if (c >= '0' && c <= '9' && by[which] < UINT32_MAX)
            by[which] = by[which] * 10 + (uint64_t)(c - '0');
    }
}

/* A share of the evidence; NaN where there is none. */
static double read_share(doppel_slice value) {
    char text[40] = "nan";
    if (value.data && value.length < sizeof text) {
        memcpy(text, value.data, value.length);
        text[value.length] = 0;
    }
    return strtod(text, NULL);
}

static bool is_true(doppel_slice value) {
    return value.length == 4 && !memcmp(value.data, "true", 4);
}

static feed_answer read_evidence(const doppel_document *from, doppel_evidence *evidence, doppel_error *why) {
    static const char *const keys[] = {"distance", "similarity", "containment", "titleSimilarity",
                                       "sameUrl",  "sameDigest", "verified"};
    doppel_slice object = from->extra[EXPORT_EVIDENCE];
    doppel_input_options options = {.size = sizeof options, .extra_keys = keys, .extra_count = 7};
    doppel_document *parsed;
    if (!object.data)
        return bad(why, "a copy without its evidence");
    if (doppel_document_parse(object, &options, &parsed, why) != DOPPEL_OK)
        return FEED_BAD;
    const doppel_slice *value = parsed->extra;
    double distance = read_share(value[0]);
    *evidence = (doppel_evidence){.distance = distance >= 0 && distance <= 128 ? (int)distance : -1,
                                  .similarity = read_share(value[1]),
                                  .containment = read_share(value[2]),
                                  .title_similarity = read_share(value[3]),
                                  .same_url = is_true(value[4]),
                                  .same_digest = is_true(value[5]),
                                  .verified = is_true(value[6])};
    doppel_document_free(parsed);
    return FEED_TAKE;
}

/* What the export says of a document, to restore it. */
static feed_answer take_stored(const doppel_document *from, doppel_stored *stored, doppel_error *why) {
    stored->added = read_count(from, EXPORT_ADDED);
    stored->expires = read_count(from, EXPORT_EXPIRES);
    stored->original_id = from->extra[EXPORT_ORIGINAL];
    read_counts(from->extra[EXPORT_DUPLICATES], stored->duplicates_by);
    /* Earlier exports do not say which of the duplicates are copies: then all may be. */
    read_counts(from->extra[from->extra[EXPORT_COPIES].data ? EXPORT_COPIES : EXPORT_DUPLICATES], stored->copies_by);
    stored->last_duplicate = read_count(from, EXPORT_LAST);
    for (doppel_reason i = DOPPEL_REASON_URL; i < DOPPEL_REASONS; i++)
        if (export_is(from, EXPORT_REASON, doppel_reason_name(i)))
            stored->reason = i;
    return stored->original_id.data ? read_evidence(from, &stored->evidence, why) : FEED_TAKE;
}

static feed_answer import_item(import_job *job, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_buffers *buffers = &job->buffers[job->feed.place];
    free_buffers(buffers); /* of an earlier document that was left out */
    if (!from->record.data)
        return bad(why, "not a JSONL record; doppel add takes other formats");
    if (!from->extra[EXPORT_FINGERPRINT].data && !from->extra[EXPORT_ORIGINAL].data)
        return take_fields(job, from->record, buffers, item, why);
    feed_answer answer = take_stored(from, &buffers->stored, why);
    if (buffers->stored.expires && buffers->stored.expires <= job->now) {
        job->expired++;
        return FEED_SKIP;
    }
    if (answer == FEED_TAKE && export_is(from, EXPORT_GONE, "true"))
        return FEED_SKIP;
    if (answer == FEED_TAKE)
        answer = take_fields(job, from->extra[EXPORT_FIELDS], buffers, item, why);
    if (answer == FEED_TAKE)
        answer = take_sketches(from, buffers, item, why);
    item->ttl = buffers->stored.expires ? buffers->stored.expires - job->now : DOPPEL_NEVER;
    item->restore = &buffers->stored;
    item->merge = job->merge;
    /* The canonical URL may be one that the page gave, which its own URL does not show. */
    item->document.alias.data = from->extra[EXPORT_CANONICAL].data;
    item->document.alias.length = from->extra[EXPORT_CANONICAL].length;
    item->origin = from->extra[EXPORT_ORIGIN];
    return answer;
}

/* ---- opening ---- */

/* Whether the index exists, with settings of its own, damaged or not; *holds: and documents. Anything else that is
 * wrong with it is found when it is opened to write. */
static bool is_there(const char *path, bool *holds) {
    const doppel_engine_options options = {
        .size = sizeof options, .read_only = true, .must_exist = true, .salvage = true};
    doppel_engine *engine = NULL;
    doppel_engine_stats stats = {0};
    doppel_error error = {0};
    bool there = doppel_engine_open(path, &options, &engine, &error) == DOPPEL_OK;
    if (there)
        doppel_engine_get_stats(engine, &stats);
    *holds = stats.documents > 0;
    doppel_engine_close(engine);
    return there;
}

/* Ends the command. */
static feed_answer end_with(import_job *job, int code) {
    job->feed.code = code;
    return FEED_END;
}

static feed_answer start(import_job *job) {
    int code = engine_start(&job->cli);
    if (code != EXIT_DONE)
        return end_with(job, code);
    doppel_engine_stats stats;
    doppel_engine_get_stats(job->cli.engine, &stats);
    job->merge = stats.documents > 0;
    if (split_names(&job->fields, doppel_engine_get_options(job->cli.engine)->fields))
        return FEED_SKIP;
    message("no memory");
    return end_with(job, EXIT_STORE);
}

/* Whether the sketches of an export are of the kind of an index with these options. */
static bool fits(const import_job *job, const doppel_engine_options *o, const settings *exported) {
    const doppel_engine_options *from = &exported->options;
    if (strcmp(doppel_recipe_text(o->recipe), exported->recipe) != 0) {
        message("the export has recipe %s and %s has %s; sketches of different recipes are never mixed",
                exported->recipe, job->cli.path, doppel_recipe_text(o->recipe));
        return false;
    }
    if (o->near == DOPPEL_NEAR_SIMILARITY && from->near == DOPPEL_NEAR_DISTANCE &&
        from->keep_text != DOPPEL_SWITCH_ON) {
        message("the export is of an index with near=distance, and has neither texts nor shingles; %s has "
                "near=similarity, and needs them",
                job->cli.path);
        return false;
    }
    return true;
}

/* Before a new index is created: whether the export would fit, tried with an index in memory that has the same options.
 */
static int try_new(const import_job *job, const settings *exported) {
    doppel_engine_options options = job->cli.options;
    doppel_engine *engine = NULL;
    doppel_error error = {0};
    options.log = NULL;
    options.count = options.memory = 0;
    int code = engine_ended(doppel_engine_open(NULL, &options, &engine, &error), &error);
    if (code == EXIT_DONE && !fits(job, doppel_engine_get_options(engine), exported))
        code = EXIT_STORE;
    doppel_engine_close(engine);
    return code;
}

/* Whether the first line of an export has the version that this doppel reads; prints a message if not.
 */
static bool is_our_version(const doppel_document *from) {
    static const char *const keys[] = {"version"};
    doppel_input_options options = {.size = sizeof options, .extra_keys = keys, .extra_count = 1};
    doppel_document *parsed = NULL;
    doppel_error error = {0};
    if (doppel_document_parse(from->record, &options, &parsed, &error) != DOPPEL_OK) {
        message_error(&error);
        return false;
    }
    bool ours = export_is(parsed, 0, EXPORT_VERSION);
    doppel_slice version = parsed->extra[0];
    if (!ours)
        message("%s:%llu: an export of version %.*s; this doppel reads version %s", from->file,
                (unsigned long long)from->line, (int)(version.length < 20 ? version.length : 20),
                version.data ? version.data : "", EXPORT_VERSION);
    doppel_document_free(parsed);
    return ours;
}

/* Whether the first line of an export is one that can be read. */
static feed_answer check_head(import_job *job, const doppel_document *from, doppel_error *why) {
    if (!export_is(from, EXPORT_DOPPEL, EXPORT_KIND)) {
        snprintf(why->message, sizeof why->message, "field \"doppel\" is not \"%s\"", EXPORT_KIND);
        return FEED_BAD;
    }
    return is_our_version(from) ? FEED_SKIP : end_with(job, EXIT_STORE);
}

/* The first line of an export: a new index is created with its settings. */
static feed_answer take_head(import_job *job, const doppel_document *from, doppel_error *why) {
    settings exported;
    feed_answer answer = check_head(job, from, why);
    if (answer != FEED_SKIP)
        return answer;
    bool good = read_settings(&exported, from->record.data, from->record.length), holds;
    job->merge = true; /* of a second one */
    if (good && !job->cli.engine) {
        bool is_new = !is_there(job->cli.place.path, &holds);
        int code = is_new ? use_settings(&exported, &job->cli) : EXIT_DONE;
        if (holds && !job->cli.options.on_duplicate)
            job->cli.options.on_duplicate = DOPPEL_DUPLICATE_LINK;
        if (is_new && code == EXIT_DONE)
            code = try_new(job, &exported);
        answer = code == EXIT_DONE ? start(job) : end_with(job, code);
    }
    if (!good)
        answer = end_with(job, EXIT_INPUT);
    else if (answer == FEED_SKIP && !fits(job, doppel_engine_get_options(job->cli.engine), &exported))
        answer = end_with(job, EXIT_STORE);
    if (job->settings.recipe)
        settings_free(&exported);
    else
        job->settings = exported;
    return answer;
}

static feed_answer make_item(feed *f, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_job *job = (import_job *)f;
    if (from->extra[EXPORT_DOPPEL].data && from->record.data)
        return take_head(job, from, why);
    if (!job->cli.engine) {
        feed_answer answer = start(job);
        if (answer != FEED_SKIP)
            return answer;
    }
    return import_item(job, from, item, why);
}

/* ---- the end ---- */

static doppel_status count_verdict(feed *f, const doppel_item *item, const doppel_verdict *verdict) {
    import_job *job = (import_job *)f;
    bool is = verdict->is_duplicate, copy = item->restore && item->restore->original_id.data;
    job->known += verdict->known;
    job->documents += !verdict->known && !is;
    job->copies += !verdict->known && is && copy;
    job->duplicates += !verdict->known && is && !copy;
    return DOPPEL_OK;
}

static int print_summary(const import_job *job, int code) {
    unsigned long long documents = job->documents, copies = job->copies, duplicates = job->duplicates,
                       expired = job->expired, known = job->known;
    message_summary("%llu document%s and %llu cop%s imported", documents, documents == 1 ? "" : "s", copies,
                    copies == 1 ? "y" : "ies");
    if (known)
        message("%llu %s already in the index", known, known == 1 ? "was" : "were");
    if (duplicates)
        message("%llu %s in the index", duplicates,
                duplicates == 1 ? "is a duplicate of a document" : "are duplicates of documents");
    if (expired)
        message("%llu %s expired and left out", expired, expired == 1 ? "is" : "are");
    if (!args_flag(job->cli.args, "json"))
        return code;
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "index", doppel_slice_of(job->cli.path));
    text_member_count(&out, "documents", documents);
    text_member_count(&out, "copies", copies);
    text_member_count(&out, "known", known);
    text_member_count(&out, "duplicates", duplicates);
    text_member_count(&out, "expired", expired);
    text_member_count(&out, "bad", job->feed.counts.bad);
    text_member_count(&out, "unopened", job->feed.counts.unopened);
    text_put(&out, "}\n");
    return finish_text(&out, code);
}

static int run(import_job *job) {
    static const char *const keys[EXPORT_KEYS] = EXPORT_NAMES;
    job->feed.keys = keys;
    job->feed.key_count = EXPORT_KEYS;
    job->buffers = calloc(job->feed.batch, sizeof *job->buffers);
    if (!job->buffers) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = feed_run(&job->feed);
    end_batch(&job->feed);
    return job->feed.code ? code : print_summary(job, code);
}

int cmd_import(const cli_args *args) {
    import_job job = {
        .feed = {.record = true, .make_item = make_item, .on_verdict = count_verdict, .on_batch_end = end_batch},
        .now = (uint64_t)time(NULL)};
    job.feed.cli = &job.cli;
    job.feed.batch = batch_option(args);
    if (!job.feed.batch)
        return EXIT_USAGE;
    int code = engine_prepare(&job.cli, args, ENGINE_MAKE);
    if (code == EXIT_DONE)
        code = run(&job);
    feed_free(&job.feed);
    free(job.buffers);
    free(job.fields.text);
    code = engine_close(&job.cli, code);
    settings_free(&job.settings);
    return code;
}

/* import_item.c - from a line of an export to an item of the engine.
 *
 * What an export tells is put back as it was, with its sketches, or its text where that was kept. In an index that had
 * documents before, its documents are decided about anew; plain records are in any case. */
#include "importing.h"

#include <stdlib.h>
#include <string.h>

bool export_is(const doppel_document *from, int which, const char *text) {
    doppel_slice value = from->extra[which];
    return value.data && value.length == strlen(text) && !memcmp(value.data, text, value.length);
}

static feed_answer bad(doppel_error *why, const char *text) {
    snprintf(why->message, sizeof why->message, "%s", text);
    return FEED_BAD;
}

static void release(import_held *held) {
    doppel_document_free(held->fields);
    free(held->set);
    free(held->sample);
    *held = (import_held){0};
}

doppel_status import_over(feed *f) {
    import_job *job = (import_job *)f;
    for (size_t i = 0; i < f->batch; i++)
        release(&job->held[i]);
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
    return parse_number(text, false, &number) ? number : 0;
}

static bool read_fingerprint(const doppel_document *from, import_held *held) {
    doppel_slice value = from->extra[EXPORT_FINGERPRINT];
    size_t high = value.length > 16 ? value.length - 16 : 0;
    return (!high || read_hex(value.data, high, &held->fingerprint[1])) &&
           read_hex(value.data + high, value.length - high, &held->fingerprint[0]);
}

static bool read_digest(const doppel_document *from, import_held *held) {
    doppel_slice value = from->extra[EXPORT_DIGEST];
    uint64_t byte;
    bool good = value.length == 64;
    for (size_t i = 0; i < 32 && good; i++) {
        good = read_hex(value.data + 2 * i, 2, &byte);
        held->digest[i] = (uint8_t)byte;
    }
    return good;
}

/* Ascending, as they are used without looking again. */
static bool read_set(const doppel_document *from, import_held *held, size_t *count) {
    doppel_slice value = from->extra[EXPORT_SET];
    bool good = value.length % 16 == 0;
    *count = value.length / 16;
    held->set = malloc(*count * sizeof *held->set + 1);
    for (size_t i = 0; held->set && i < *count && good; i++)
        good = read_hex(value.data + 16 * i, 16, &held->set[i]) && (!i || held->set[i] > held->set[i - 1]);
    return good && held->set;
}

static bool read_sample(const doppel_document *from, import_held *held, doppel_slice *sample) {
    doppel_slice value = from->extra[EXPORT_SAMPLE];
    uint64_t byte = 0;
    bool good = value.length && value.length % 2 == 0;
    held->sample = malloc(value.length / 2 + 1);
    for (size_t i = 0; held->sample && i < value.length / 2 && good; i++) {
        good = read_hex(value.data + 2 * i, 2, &byte);
        held->sample[i] = (char)byte;
    }
    *sample = (doppel_slice){held->sample, value.length / 2};
    return good && held->sample;
}

/* ---- items ---- */

/* The fields that the index keeps, of a JSON object. */
static feed_answer take_fields(const import_job *job, doppel_slice object, import_held *held, doppel_item *item,
                               doppel_error *why) {
    doppel_input_options options = {
        .size = sizeof options, .extra_keys = job->fields.names, .extra_count = job->fields.count};
    item->document.extra = NULL;
    if (!object.data)
        return FEED_TAKE;
    if (doppel_document_parse(object.data, object.length, &options, &held->fields, why) != DOPPEL_OK)
        return FEED_BAD;
    item->document.extra = held->fields->extra;
    return FEED_TAKE;
}

static feed_answer take_sketches(const doppel_document *from, import_held *held, doppel_item *item, doppel_error *why) {
    item->words = read_count(from, EXPORT_WORDS);
    if (from->text_length || !item->words)
        return FEED_TAKE;
    if (!read_fingerprint(from, held))
        return bad(why, "field \"fingerprint\" is not hexadecimal");
    if (from->extra[EXPORT_DIGEST].data && !read_digest(from, held))
        return bad(why, "field \"digest\" is not 64 hexadecimal digits");
    if (from->extra[EXPORT_SET].data && !read_set(from, held, &item->set_count))
        return bad(why, "field \"set\" is not 16 hexadecimal digits for each hash, ascending");
    if (from->extra[EXPORT_SAMPLE].data && !read_sample(from, held, &item->sample))
        return bad(why, "field \"sample\" is not two hexadecimal digits for each byte");
    item->fingerprint = held->fingerprint;
    item->digest = from->extra[EXPORT_DIGEST].data ? held->digest : NULL;
    item->set = held->set;
    return FEED_TAKE;
}

/* "[1,2,3]" */
static void read_duplicates(const doppel_document *from, doppel_stored *stored) {
    doppel_slice value = from->extra[EXPORT_DUPLICATES];
    size_t which = 0;
    for (size_t i = 0; value.data && i < value.length && which < 3; i++) {
        char c = value.data[i];
        if (c == ',')
            which++;
        else if (c >= '0' && c <= '9' && stored->duplicates_by[which] < UINT32_MAX)
            stored->duplicates_by[which] = stored->duplicates_by[which] * 10 + (uint64_t)(c - '0');
    }
    stored->last_duplicate = read_count(from, EXPORT_LAST);
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
    if (doppel_document_parse(object.data, object.length, &options, &parsed, why) != DOPPEL_OK)
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

/* What it was, so that it is put back. */
static feed_answer take_stored(const doppel_document *from, doppel_stored *stored, doppel_error *why) {
    static const char *const reasons[] = {"exact_url", "content_hash", "title_similarity"};
    stored->added = read_count(from, EXPORT_ADDED);
    stored->expires = read_count(from, EXPORT_EXPIRES);
    stored->original_id = from->extra[EXPORT_ORIGINAL];
    read_duplicates(from, stored);
    for (size_t i = 0; i < 3; i++)
        if (export_is(from, EXPORT_REASON, reasons[i]))
            stored->reason = reasons[i];
    return stored->original_id.data ? read_evidence(from, &stored->evidence, why) : FEED_TAKE;
}

feed_answer import_item(import_job *job, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_held *held = &job->held[job->feed.count];
    release(held); /* of one before that was left out */
    if (!from->record)
        return bad(why, "not a record of JSONL; doppel add takes other formats");
    if (!from->extra[EXPORT_FINGERPRINT].data && !from->extra[EXPORT_ORIGINAL].data)
        return take_fields(job, (doppel_slice){from->record, from->record_length}, held, item, why);
    feed_answer answer = take_stored(from, &held->stored, why);
    if (held->stored.expires && held->stored.expires <= job->now) {
        job->expired++;
        return FEED_SKIP;
    }
    if (answer == FEED_TAKE && export_is(from, EXPORT_GONE, "true")) {
        job->orphans++;
        return FEED_SKIP;
    }
    if (answer == FEED_TAKE)
        answer = take_fields(job, from->extra[EXPORT_FIELDS], held, item, why);
    if (answer == FEED_TAKE)
        answer = take_sketches(from, held, item, why);
    item->ttl = held->stored.expires ? held->stored.expires - job->now : DOPPEL_NEVER;
    if (job->fresh || held->stored.original_id.data)
        item->restore = &held->stored;
    /* A page may have named another address for its own, which is not to be seen in its URL. */
    item->document.alias = from->extra[EXPORT_CANONICAL].data;
    item->document.alias_length = from->extra[EXPORT_CANONICAL].length;
    item->origin = from->extra[EXPORT_ORIGIN];
    return answer;
}

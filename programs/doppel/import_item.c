/* import_item.c - from a line of an export to an item of the engine.
 *
 * A document whose text was kept is added by its text; one without by its sketches. A copy is added as what made it
 * one: by its URL or title alone, or, where content made it one, with the sketches of its original, which says the
 * same. */
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
    doppel_stored_list_free(&held->original);
    *held = (import_held){0};
}

doppel_status import_over(feed *f) {
    import_job *job = (import_job *)f;
    for (size_t i = 0; i < f->batch; i++)
        release(&job->held[i]);
    job->originals = 0;
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
    item->fingerprint = held->fingerprint;
    item->digest = from->extra[EXPORT_DIGEST].data ? held->digest : NULL;
    item->set = held->set;
    return FEED_TAKE;
}

/* Content made it a copy, but its own sketches are not all there. */
static void take_original_sketches(const doppel_stored *original, doppel_item *item) {
    item->fingerprint = original->fingerprint;
    item->digest = original->digest;
    item->set = original->set;
    item->set_count = original->set_count;
    item->words = original->words;
}

static feed_answer take_copy(import_job *job, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_held *held = &job->held[job->feed.count];
    doppel_slice original = from->extra[EXPORT_ORIGINAL];
    bool sets = doppel_engine_get_options(job->cli.engine)->near == DOPPEL_NEAR_SIMILARITY;
    if (doppel_engine_get(job->cli.engine, original.data, original.length, &held->original, why) != DOPPEL_OK)
        return FEED_BAD;
    if (!held->original.count) {
        job->orphans++;
        return FEED_SKIP;
    }
    held->copy = true;
    if (from->extra[EXPORT_FINGERPRINT].data && (!sets || from->extra[EXPORT_SET].data || from->text_length))
        return take_sketches(from, held, item, why);
    if (export_is(from, EXPORT_REASON, "content_hash") && held->original.stored[0].words)
        take_original_sketches(&held->original.stored[0], item);
    return FEED_TAKE;
}

feed_answer import_item(import_job *job, const doppel_document *from, doppel_item *item, doppel_error *why) {
    import_held *held = &job->held[job->feed.count];
    bool copy = from->extra[EXPORT_ORIGINAL].data, sketched = from->extra[EXPORT_FINGERPRINT].data;
    release(held); /* of one before that was left out */
    if (!from->record)
        return bad(why, "not a record of JSONL; doppel add takes other formats");
    if (copy && job->originals)
        return FEED_WAIT;
    if (!copy && !sketched) {
        job->originals++;
        return take_fields(job, (doppel_slice){from->record, from->record_length}, held, item, why);
    }
    uint64_t expires = read_count(from, EXPORT_EXPIRES);
    if (expires && expires <= job->now) {
        job->expired++;
        return FEED_SKIP;
    }
    item->ttl = expires ? expires - job->now : DOPPEL_NEVER;
    /* A page may have named another address for its own, which is not to be seen in its URL. */
    item->document.alias = from->extra[EXPORT_CANONICAL].data;
    item->document.alias_length = from->extra[EXPORT_CANONICAL].length;
    feed_answer answer = take_fields(job, from->extra[EXPORT_FIELDS], held, item, why);
    if (answer == FEED_TAKE)
        answer = copy ? take_copy(job, from, item, why) : take_sketches(from, held, item, why);
    job->originals += answer == FEED_TAKE && !copy;
    return answer;
}

/* plants.c - invented documents. All of a document follows from a few numbers, so that a later check can tell
 * what it must be. */
#include "torture.h"

#include <inttypes.h>

/* A word of three to eight letters: over 10^11 of them, so that two texts share none but by chance, and no run of five.
 */
static size_t put_word(char *to, uint64_t seed) {
    size_t length = 3 + (size_t)(seed % 6);
    seed /= 6;
    for (size_t i = 0; i < length; i++, seed /= 26)
        to[i] = (char)('a' + seed % 26);
    return length;
}

/* Word `i` of a text; the changed one is another. */
static uint64_t word_of(const tt_plant *plant, uint32_t i) {
    uint64_t state = plant->text * 1000003 + i;
    if (plant->change && plant->change % PLANT_WORDS == i)
        state += (uint64_t)plant->change << 40;
    return next_random(&state);
}

static size_t put_words(char *to, const tt_plant *plant, uint32_t from, uint32_t count) {
    size_t at = 0;
    for (uint32_t i = from; i < from + count; i++) {
        at += put_word(to + at, word_of(plant, i));
        to[at++] = ' ';
    }
    to[--at] = 0;
    return at;
}

doppel_item plant_item(const tt_plant *plant, plant_room *room) {
    doppel_document document = {
        .id.data = room->id, .url.data = room->url, .title.data = room->title, .text.data = room->text};
    document.id.length = (size_t)snprintf(room->id, sizeof room->id, "plant-%" PRIu64, plant->id);
    document.url.length = (size_t)snprintf(room->url, sizeof room->url, "https://site%" PRIu64 ".example/page/%" PRIu64,
                                           plant->id % 97, plant->id);
    document.text.length = put_words(room->text, plant, 0, PLANT_WORDS);
    /* Words that stand behind the text, so that no change meets them. */
    document.title.length = put_words(room->title, plant, PLANT_WORDS, 6);
    room->fields[0] = (doppel_slice){room->title, 3};
    room->fields[1] = (doppel_slice){"2026-01-01", 10};
    document.extra = room->fields;
    return (doppel_item){.size = sizeof(doppel_item), .document = document, .ttl = plant->ttl};
}

bool plant_number(doppel_slice id, uint64_t *number) {
    char text[32], again[32];
    if (id.length >= sizeof text)
        return false;
    memcpy(text, id.data, id.length);
    text[id.length] = 0;
    if (sscanf(text, "plant-%" SCNu64, number) != 1)
        return false;
    snprintf(again, sizeof again, "plant-%" PRIu64, *number);
    return !strcmp(text, again);
}

static bool same(doppel_slice a, const char *data, size_t length) {
    return a.length == length && (!length || !memcmp(a.data, data, length));
}

const char *plant_differs(const tt_plant *plant, const doppel_stored *stored) {
    plant_room room;
    doppel_item item = plant_item(plant, &room);
    const doppel_document *document = &item.document;
    bool copy = stored->original_id.data != NULL;
    if (!same(stored->id, document->id.data, document->id.length))
        return "id";
    if (!same(stored->url, document->url.data, document->url.length))
        return "URL";
    if (!same(stored->title, document->title.data, document->title.length))
        return "title";
    if (!stored->fields.data || !memmem(stored->fields.data, stored->fields.length, "2026-01-01", 10))
        return "fields";
    /* A copy that is linked keeps no text. */
    if ((stored->text.data || !copy) && !same(stored->text, document->text.data, document->text.length))
        return "text";
    if (!copy && stored->words != PLANT_WORDS)
        return "number of words";
    if (stored->added != plant->at)
        return "time of adding";
    if (stored->expires != (plant->ttl ? plant->at + plant->ttl : 0))
        return "time of ending";
    return NULL;
}

/* ---- by an engine ---- */

bool plant_add(doppel_engine *engine, const tt_plant *plant) {
    plant_room room;
    doppel_item item = plant_item(plant, &room);
    doppel_verdict verdict = {0};
    doppel_error error;
    must(doppel_engine_add(engine, &item, &verdict, &error), &error, "add");
    bool duplicate = verdict.is_duplicate;
    doppel_verdict_free(&verdict);
    return duplicate;
}

void plant_remove(doppel_engine *engine, const tt_plant *plant) {
    plant_room room;
    doppel_error error;
    doppel_slice id = plant_item(plant, &room).document.id;
    must(doppel_engine_remove(engine, id, NULL, &error), &error, "remove");
}

void plant_get(doppel_engine *engine, const tt_plant *plant, doppel_stored_list *list) {
    plant_room room;
    doppel_error error;
    doppel_slice id = plant_item(plant, &room).document.id;
    must(doppel_engine_get(engine, id, list, &error), &error, "get");
}

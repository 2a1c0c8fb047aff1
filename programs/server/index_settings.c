/* index_settings.c - what an index is made with, from JSON. */
#include "server/indexes.h"

#include "server/service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of a name in a list of choices, divided by |, counted from 1; 0: it is not there. */
static int choice_of(const char *choices, doppel_slice name) {
    int number = 1;
    for (const char *at = choices; at; number++) {
        size_t length = strcspn(at, "|");
        if (length == name.length && !memcmp(at, name.data, length))
            return number;
        at = at[length] ? at + length + 1 : NULL;
    }
    return 0;
}

static int choice_member(const json *j, const json_value *object, const char *key, const char *choices) {
    const json_value *value = json_member(j, object, key);
    return value && value->kind == JSON_STRING ? choice_of(choices, value->text) : 0;
}

static double number_member(const json *j, const json_value *object, const char *key, double otherwise) {
    const json_value *value = json_member(j, object, key);
    return value && value->kind == JSON_NUMBER ? strtod(value->text.data, NULL) : otherwise;
}

static doppel_switch switch_member(const json *j, const json_value *object, const char *key) {
    const json_value *value = json_member(j, object, key);
    if (!value || (value->kind != JSON_TRUE && value->kind != JSON_FALSE))
        return DOPPEL_SWITCH_PRESET;
    return value->kind == JSON_TRUE ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF;
}

/* A string of an object, copied to *place, which moves on; NULL: it has none. */
static const char *string_member(const json *j, const json_value *object, const char *key, char **place) {
    const json_value *value = json_member(j, object, key);
    if (!value || value->kind != JSON_STRING)
        return NULL;
    char *copy = *place;
    memcpy(copy, value->text.data, value->text.length);
    copy[value->text.length] = 0;
    *place += value->text.length + 1;
    return copy;
}

static bool set_recipe(index_entry *entry, const char *recipe, doppel_error *error) {
    if (recipe && doppel_recipe_parse(recipe, NULL, &entry->recipe, error) != DOPPEL_OK)
        return false;
    entry->options.recipe = entry->recipe;
    return true;
}

static void set_numbers(doppel_engine_options *o, const json *j) {
    const json_value *object = j->values;
    o->similarity = number_member(j, object, "similarity", 0);
    o->title_similarity = number_member(j, object, "titleSimilarity", 0);
    o->min_words = (uint64_t)number_member(j, object, "minWords", 0);
    o->ttl = (uint64_t)number_member(j, object, "ttl", 0);
    o->sample = (uint64_t)number_member(j, object, "sample", 0);
    const json_value *distance = json_member(j, object, "distance");
    o->distance = distance && distance->kind == JSON_NUMBER ? (int)strtod(distance->text.data, NULL) : 0;
    if (distance && distance->kind == JSON_NUMBER && !o->distance)
        o->distance = -1; /* the header's word for 0 */
}

bool index_settings(index_entry *entry, doppel_slice bytes, doppel_error *error) {
    json j = {0};
    doppel_engine_options *o = &entry->options;
    *error = (doppel_error){.code = DOPPEL_ERROR_MEMORY, .message = "no memory"};
    *o = (doppel_engine_options){.size = sizeof *o};
    bool fine = json_read(&j, bytes.data, bytes.length) && j.values->kind == JSON_OBJECT;
    if (!fine && !j.no_memory) {
        error->code = DOPPEL_ERROR_STORE;
        snprintf(error->message, sizeof error->message, "the settings of the index are damaged: %s", j.why);
    }
    /* Strings are never longer than they stand in the JSON, and each has quotes: place for its NUL. */
    char *place = entry->settings = fine ? malloc(bytes.length + 1) : NULL;
    if (fine && place) {
        const json_value *object = j.values;
        o->preset = string_member(&j, object, "preset", &place);
        o->fields = string_member(&j, object, "fields", &place);
        o->near = (doppel_near_by)choice_member(&j, object, "near", "distance|similarity");
        o->on_duplicate = (doppel_on_duplicate)choice_member(&j, object, "onDuplicate", "skip|link|store");
        o->on_same_url = (doppel_on_same_url)choice_member(&j, object, "onSameUrl", "duplicate|refresh");
        o->durability = (doppel_durability)choice_member(&j, object, "durability", "none|batch|each");
        o->titles = switch_member(&j, object, "titles");
        o->title_veto = switch_member(&j, object, "titleVeto");
        o->keep_text = switch_member(&j, object, "keepText");
        set_numbers(o, &j);
        fine = set_recipe(entry, string_member(&j, object, "recipe", &place), error);
    }
    fine = fine && entry->settings;
    json_free(&j);
    return fine;
}

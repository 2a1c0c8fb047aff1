/* settings.c - the table of settings, and their values as text. */
#include "engine/settings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const near_names[] = {"preset", "distance", "similarity", NULL};
static const char *const switch_names[] = {"preset", "on", "off", NULL};
static const char *const content_names[] = {"main", "all", NULL};
static const char *const duplicate_names[] = {"preset", "skip", "link", "store", NULL};
static const char *const url_names[] = {"preset", "duplicate", "refresh", NULL};

#define AT(member) offsetof(doppel_engine_options, member)
const dp_setting dp_settings[DP_SETTINGS] = {
    {"near", DP_SETTING_CHOICE, AT(near), near_names, true, NULL},
    {"similarity", DP_SETTING_REAL, AT(similarity), NULL, true, NULL},
    {"distance", DP_SETTING_INTEGER, AT(distance), NULL, true, NULL},
    {"min_words", DP_SETTING_COUNT, AT(min_words), NULL, true, NULL},
    {"titles", DP_SETTING_CHOICE, AT(titles), switch_names, true, NULL},
    {"title_similarity", DP_SETTING_REAL, AT(title_similarity), NULL, true, NULL},
    {"keep_text", DP_SETTING_CHOICE, AT(keep_text), switch_names, true, NULL},
    {"content", DP_SETTING_CHOICE, AT(content), content_names, true, NULL},
    {"url_without", DP_SETTING_BITS, AT(url_without), NULL, true, NULL},
    {"on_duplicate", DP_SETTING_CHOICE, AT(on_duplicate), duplicate_names, false, NULL},
    {"on_same_url", DP_SETTING_CHOICE, AT(on_same_url), url_names, false, NULL},
    {"ttl", DP_SETTING_COUNT, AT(ttl), NULL, false, NULL},
    {"title_share", DP_SETTING_REAL, AT(title_share), NULL, false, NULL},
    {"title_veto", DP_SETTING_CHOICE, AT(title_veto), switch_names, false, "off"},
    {"sample", DP_SETTING_COUNT, AT(sample), NULL, true, "18446744073709551615"},
};

bool dp_setting_is_given(const dp_setting *s, const doppel_engine_options *options) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case DP_SETTING_CHOICE:
    case DP_SETTING_INTEGER:
    case DP_SETTING_BITS: return *(const int *)(const void *)at != 0;
    case DP_SETTING_COUNT: return *(const uint64_t *)(const void *)at != 0;
    case DP_SETTING_REAL: return *(const double *)(const void *)at != 0;
    }
    return false;
}

/* Real numbers from 0 to 1 with twelve digits, whatever the locale says of points. */
#define REAL_DIGITS 12
#define REAL_UNIT 1000000000000ULL

static void print_real(double real, char value[DP_SETTING_VALUE]) {
    unsigned long long units = (unsigned long long)(real * (double)REAL_UNIT + 0.5);
    snprintf(value, DP_SETTING_VALUE, "%llu.%0*llu", units / REAL_UNIT, REAL_DIGITS, units % REAL_UNIT);
}

static double parse_real(const char *value, char **end) {
    unsigned long long whole = strtoull(value, end, 10);
    if (**end != '.' || strlen(*end) != REAL_DIGITS + 1)
        return 0;
    return (double)(whole * REAL_UNIT + strtoull(*end + 1, end, 10)) / (double)REAL_UNIT;
}

void dp_setting_print(const dp_setting *s, const doppel_engine_options *options, char value[DP_SETTING_VALUE]) {
    const char *at = (const char *)options + s->offset;
    switch (s->kind) {
    case DP_SETTING_CHOICE:
        snprintf(value, DP_SETTING_VALUE, "%s", s->names[*(const unsigned *)(const void *)at]);
        break;
    case DP_SETTING_INTEGER: snprintf(value, DP_SETTING_VALUE, "%d", *(const int *)(const void *)at); break;
    case DP_SETTING_BITS: snprintf(value, DP_SETTING_VALUE, "%u", *(const unsigned *)(const void *)at); break;
    case DP_SETTING_COUNT: snprintf(value, DP_SETTING_VALUE, "%" PRIu64, *(const uint64_t *)(const void *)at); break;
    case DP_SETTING_REAL: print_real(*(const double *)(const void *)at, value); break;
    }
}

bool dp_setting_parse(const dp_setting *s, const char *value, doppel_engine_options *options) {
    char *at = (char *)options + s->offset, *end = NULL;
    switch (s->kind) {
    case DP_SETTING_CHOICE:
        for (unsigned i = 0; s->names[i]; i++)
            if (!strcmp(s->names[i], value)) {
                *(unsigned *)(void *)at = i;
                return true;
            }
        return false;
    case DP_SETTING_INTEGER: *(int *)(void *)at = (int)strtol(value, &end, 10); break;
    case DP_SETTING_BITS: *(unsigned *)(void *)at = (unsigned)strtoul(value, &end, 10); break;
    case DP_SETTING_COUNT: *(uint64_t *)(void *)at = strtoull(value, &end, 10); break;
    case DP_SETTING_REAL: *(double *)(void *)at = parse_real(value, &end); break;
    }
    return end && end != value && !*end;
}

bool dp_settings_line(const char *text, const char *name, char *value, size_t room) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        size_t size = strcspn(line + length + 1, "\n");
        if (size >= room)
            return false;
        memcpy(value, line + length + 1, size);
        value[size] = 0;
        return true;
    }
    return false;
}

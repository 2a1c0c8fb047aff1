/* keep.c - which document of a group is kept: rules, in order, each giving a number; less is better. Ties are decided
 * by the order of reading. */
#include "decide/decide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const struct {
    const char *name;
    dp_keep_kind kind;
    bool field;
} names[] = {
    {"first", DP_KEEP_FIRST, false},     {"last", DP_KEEP_LAST, false},
    {"longest", DP_KEEP_LONGEST, false}, {"shortest", DP_KEEP_SHORTEST, false},
    {"https", DP_KEEP_HTTPS, false},     {"shortest-url", DP_KEEP_SHORTEST_URL, false},
    {"newest", DP_KEEP_NEWEST, true},    {"oldest", DP_KEEP_OLDEST, true},
    {"largest", DP_KEEP_LARGEST, true},  {"smallest", DP_KEEP_SMALLEST, true},
    {"id", DP_KEEP_ID, false},
};

size_t dp_fields_add(dp_fields *fields, const char *name, size_t length) {
    for (size_t i = 0; i < fields->count; i++)
        if (strlen(fields->name[i]) == length && !memcmp(fields->name[i], name, length))
            return i;
    if (fields->count == DP_MOST_FIELDS || length >= DP_FIELD_NAME || !length)
        return DP_MOST_FIELDS;
    memcpy(fields->name[fields->count], name, length);
    fields->name[fields->count][length] = 0;
    fields->key[fields->count] = fields->name[fields->count];
    return fields->count++;
}

static doppel_status parse_rule(const char *text, size_t length, dp_keep_policy *policy, dp_fields *fields,
                                doppel_error *error) {
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i].name) != name || strncmp(names[i].name, text, name) != 0)
            continue;
        if (names[i].field != (colon != NULL) || (names[i].kind == DP_KEEP_ID && !policy->ids))
            break;
        dp_keep_rule rule = {.kind = names[i].kind};
        if (colon && (rule.field = dp_fields_add(fields, colon + 1, length - name - 1)) == DP_MOST_FIELDS)
            return dp_fail(error, DOPPEL_ERROR_USAGE,
                           "keep: the field of \"%.*s\" cannot be used: its name is empty or "
                           "too long, or there are too many",
                           (int)length, text);
        policy->rule[policy->count++] = rule;
        return DOPPEL_OK;
    }
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "keep: \"%.*s\" is none of first, last, longest, shortest, https, shortest-url, %snewest:FIELD, "
                   "oldest:FIELD, largest:FIELD, smallest:FIELD",
                   (int)(length < 60 ? length : 60), text, policy->ids ? "id, " : "");
}

doppel_status dp_keep_parse(const char *text, dp_keep_policy *policy, dp_fields *fields, doppel_error *error) {
    policy->count = 0;
    for (doppel_status status; text; text = *text ? text + 1 : NULL) {
        size_t length = strcspn(text, ",");
        if (policy->count == DP_KEEP_RULES)
            return dp_fail(error, DOPPEL_ERROR_USAGE, "keep: more than %d rules", DP_KEEP_RULES);
        if ((status = parse_rule(text, length, policy, fields, error)) != DOPPEL_OK)
            return status;
        text += length;
    }
    /* Rules after `first` have nothing left to decide, and alone it needs no numbers. */
    if (policy->count == 1 && policy->rule[0].kind == DP_KEEP_FIRST)
        policy->count = 0;
    return DOPPEL_OK;
}

/* ---- fields as numbers ---- */

/* Days from 1970-01-01 of a date of the Gregorian calendar. */
static double days(int year, int month, int day) {
    year -= month <= 2;
    int era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097.0 + (of_era * 365 + of_era / 4 - of_era / 100 + of_year) - 719468;
}

/* The offset of a time zone in seconds: Z, +hh:mm, -hhmm, perhaps after a space; 0 for anything else. */
static double zone(const char *text) {
    int hours = 0, minutes = 0;
    text += *text == ' ';
    if ((*text != '+' && *text != '-') || sscanf(text + 1, "%2d%*[:]%2d", &hours, &minutes) < 1)
        return 0;
    if (!minutes)
        sscanf(text + 1, "%2d%2d", &hours, &minutes);
    return (*text == '-' ? -1 : 1) * (hours * 3600.0 + minutes * 60.0);
}

/* Seconds since 1970 of an ISO 8601 date, with or without a time. */
static bool parse_date(const char *text, double *seconds) {
    int year, month, day, hour = 0, minute = 0, used = 0;
    double second = 0;
    if (sscanf(text, "%4d-%2d-%2d%n", &year, &month, &day, &used) < 3 || used < 8)
        return false;
    const char *rest = text + used;
    if (*rest == 'T' || *rest == 't' || *rest == ' ') {
        used = 0;
        if (sscanf(rest + 1, "%2d:%2d%n", &hour, &minute, &used) < 2)
            return false;
        rest += 1 + used;
        used = 0;
        if (*rest == ':' && sscanf(rest + 1, "%lf%n", &second, &used) == 1)
            rest += 1 + used;
    }
    if (month < 1 || month > 12 || day < 1 || day > 31 || hour < 0 || hour > 24 || minute < 0 || minute > 59)
        return false;
    *seconds = days(year, month, day) * 86400 + hour * 3600.0 + minute * 60.0 + second - zone(rest);
    return true;
}

/* A date or a number; NaN for anything else. */
static double field_number(doppel_slice field) {
    char text[64], *end;
    double number;
    if (!field.data || !field.length || field.length >= sizeof text)
        return NAN;
    memcpy(text, field.data, field.length);
    text[field.length] = 0;
    if (parse_date(text, &number))
        return number;
    number = strtod(text, &end);
    return end == text || *end ? NAN : number;
}

/* ---- ranks ---- */

static double rank_of(const dp_keep_rule *rule, const dp_keep_document *document) {
    double number;
    switch (rule->kind) {
    case DP_KEEP_LONGEST: return -(double)document->text_length;
    case DP_KEEP_SHORTEST: return (double)document->text_length;
    case DP_KEEP_HTTPS: return document->url.length < 6 || strncasecmp(document->url.data, "https:", 6) != 0;
    case DP_KEEP_SHORTEST_URL: return document->url.data ? (double)document->url.length : INFINITY;
    case DP_KEEP_NEWEST:
    case DP_KEEP_LARGEST: number = -field_number(document->field[rule->field]); break;
    case DP_KEEP_OLDEST:
    case DP_KEEP_SMALLEST: number = field_number(document->field[rule->field]); break;
    default: return 0; /* the order of reading, which dp_keep_compare knows; ids, which the caller ranks */
    }
    return isnan(number) ? INFINITY : number;
}

void dp_keep_rank(const dp_keep_policy *policy, const dp_keep_document *document, double *rank) {
    for (size_t i = 0; i < policy->count; i++)
        rank[i] = rank_of(&policy->rule[i], document);
}

int dp_keep_compare(const dp_keep_policy *policy, const dp_keep_place *a, const dp_keep_place *b) {
    for (size_t i = 0; i < policy->count; i++) {
        if (a->rank[i] != b->rank[i])
            return a->rank[i] < b->rank[i] ? -1 : 1;
        if (policy->rule[i].kind == DP_KEEP_FIRST)
            break;
        if (policy->rule[i].kind == DP_KEEP_LAST)
            return a->position > b->position ? -1 : 1;
    }
    return a->position < b->position ? -1 : 1;
}

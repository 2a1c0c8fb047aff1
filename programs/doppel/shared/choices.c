/* choices.c - options that take words of a list. */
#include "shared/choices.h"

#include "common/message.h"
#include "doppel.h"

#include <string.h>

const choice content_choices[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
const choice duplicate_choices[] = {
    {"skip", DOPPEL_DUPLICATE_SKIP}, {"link", DOPPEL_DUPLICATE_LINK}, {"store", DOPPEL_DUPLICATE_STORE}, {NULL, 0}};
const choice same_url_choices[] = {
    {"duplicate", DOPPEL_SAME_URL_DUPLICATE}, {"refresh", DOPPEL_SAME_URL_REFRESH}, {NULL, 0}};
const choice url_rule_choices[] = {
    {"scheme", DOPPEL_URL_SCHEME},     {"www", DOPPEL_URL_WWW},         {"port", DOPPEL_URL_PORT},
    {"dots", DOPPEL_URL_DOTS},         {"escapes", DOPPEL_URL_ESCAPES}, {"index", DOPPEL_URL_INDEX},
    {"fragment", DOPPEL_URL_FRAGMENT}, {"query", DOPPEL_URL_QUERY},     {"tracking", DOPPEL_URL_TRACKING},
    {"idn", DOPPEL_URL_IDN},           {"slash", DOPPEL_URL_SLASH},     {NULL, 0}};

const char *choice_name(const choice *choices, unsigned value) {
    for (; choices->name; choices++)
        if (choices->value == value)
            return choices->name;
    return "";
}

static const choice *find_choice(const choice *choices, const char *name, size_t length) {
    for (; choices->name; choices++)
        if (strlen(choices->name) == length && !memcmp(choices->name, name, length))
            return choices;
    return NULL;
}

static bool refuse(const char *option, const choice *choices, const char *name, size_t length) {
    char list[200];
    size_t used = 0;
    for (const choice *c = choices; c->name && used < sizeof list; c++) {
        const char *before = c == choices ? "" : c[1].name ? ", " : " or ";
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", before, c->name);
    }
    message("--%s takes %s, not %.*s", option, list, (int)length, name);
    return false;
}

bool choose_one(const cli_args *args, const char *option, const choice *choices, unsigned *value) {
    const char *given = args_text(args, option);
    const choice *found = given ? find_choice(choices, given, strlen(given)) : NULL;
    if (given && !found)
        return refuse(option, choices, given, strlen(given));
    *value = found ? found->value : *value;
    return true;
}

bool choose_some(const cli_args *args, const char *option, const choice *choices, unsigned *value) {
    for (const char *at = args_text(args, option); at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        const choice *found = find_choice(choices, at, length);
        if (!found)
            return refuse(option, choices, at, length);
        *value |= found->value;
        at += length;
    }
    return true;
}

bool content_option(const cli_args *args, doppel_content *content) {
    unsigned value = DOPPEL_CONTENT_MAIN;
    bool good = choose_one(args, "content", content_choices, &value);
    *content = (doppel_content)value;
    return good;
}

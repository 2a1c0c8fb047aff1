/* batching_options.c - the options that say what is near and which document stays, as the batch takes them. */
#include "batching.h"
#include "common/message.h"

#include <limits.h>
#include <string.h>

typedef struct word {
    const char *name;
    unsigned value;
} word;

static const word methods[] = {{"auto", DOPPEL_METHOD_AUTO},
                               {"simhash", DOPPEL_METHOD_SIMHASH},
                               {"minhash", DOPPEL_METHOD_MINHASH},
                               {"exact", DOPPEL_METHOD_EXACT},
                               {NULL, 0}};
static const word evidence[] = {
    {"content", DOPPEL_BY_CONTENT}, {"url", DOPPEL_BY_URL}, {"title", DOPPEL_BY_TITLE}, {NULL, 0}};
static const word contents[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
static const word links[] = {{"kept", false}, {"any", true}, {NULL, 0}};
static const word url_rules[] = {
    {"scheme", DOPPEL_URL_SCHEME},     {"www", DOPPEL_URL_WWW},         {"port", DOPPEL_URL_PORT},
    {"dots", DOPPEL_URL_DOTS},         {"escapes", DOPPEL_URL_ESCAPES}, {"index", DOPPEL_URL_INDEX},
    {"fragment", DOPPEL_URL_FRAGMENT}, {"query", DOPPEL_URL_QUERY},     {"tracking", DOPPEL_URL_TRACKING},
    {"idn", DOPPEL_URL_IDN},           {"slash", DOPPEL_URL_SLASH},     {NULL, 0}};

const char *method_name(doppel_method method) {
    for (const word *w = methods; w->name; w++)
        if (w->value == (unsigned)method)
            return w->name;
    return "";
}

static const word *find_word(const word *words, const char *name, size_t length) {
    for (; words->name; words++)
        if (strlen(words->name) == length && !memcmp(words->name, name, length))
            return words;
    return NULL;
}

static bool refuse(const char *option, const word *words, const char *name, size_t length) {
    char list[200];
    size_t used = 0;
    for (const word *w = words; w->name && used < sizeof list; w++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                 w == words  ? ""
                                 : w[1].name ? ", "
                                             : " or ",
                                 w->name);
    message("--%s takes %s, not %.*s", option, list, (int)length, name);
    return false;
}

/* The value of an option that takes one of some words; *value stays where it is not given. */
static bool one_of(const cli_args *args, const char *option, const word *words, unsigned *value) {
    const char *given = args_text(args, option);
    const word *found = given ? find_word(words, given, strlen(given)) : NULL;
    if (given && !found)
        return refuse(option, words, given, strlen(given));
    *value = found ? found->value : *value;
    return true;
}

/* The same for several, divided by commas. */
static bool some_of(const cli_args *args, const char *option, const word *words, unsigned *value) {
    for (const char *at = args_text(args, option); at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        const word *found = find_word(words, at, length);
        if (!found)
            return refuse(option, words, at, length);
        *value |= found->value;
        at += length;
    }
    return true;
}

static bool number_of(const cli_args *args, const char *option, int *value) {
    uint64_t given = args_number(args, option, 0);
    *value = given < INT_MAX ? (int)given : INT_MAX;
    return true;
}

/* Whether the options that say what is near are of the method. */
static bool fits_method(const cli_args *args, doppel_method method) {
    static const struct {
        const char *option;
        unsigned methods;
    } rules[] = {{"similarity", 1U << DOPPEL_METHOD_AUTO | 1U << DOPPEL_METHOD_MINHASH},
                 {"distance", 1U << DOPPEL_METHOD_SIMHASH},
                 {"bands", 1U << DOPPEL_METHOD_MINHASH},
                 {"rows", 1U << DOPPEL_METHOD_MINHASH}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (args_text(args, rules[i].option) && !(rules[i].methods >> method & 1)) {
            message("--%s does not go with --method %s%s", rules[i].option, method_name(method),
                    args_text(args, "method") ? "" : ", which is what --distance means");
            return false;
        }
    return true;
}

bool batching_options(batching *b) {
    const cli_args *args = b->args;
    doppel_batch_options *o = &b->options;
    unsigned method = DOPPEL_METHOD_AUTO, content = DOPPEL_CONTENT_MAIN, any = false;
    bool good = one_of(args, "method", methods, &method) && one_of(args, "content", contents, &content) &&
                one_of(args, "link", links, &any) && some_of(args, "by", evidence, &o->by) &&
                some_of(args, "url-keep", url_rules, &o->url_without) &&
                args_share(args, "similarity", &o->similarity) && args_share(args, "boilerplate", &o->boilerplate) &&
                number_of(args, "bands", &o->bands) && number_of(args, "rows", &o->rows) &&
                number_of(args, "distance", &o->distance);
    if (args_text(args, "distance") && !o->distance)
        o->distance = -1;
    o->method = (doppel_method)method;
    /* Who names a distance means fingerprints, who names bands means those. */
    if (!args_text(args, "method"))
        o->method = args_text(args, "distance") ? DOPPEL_METHOD_SIMHASH
                    : o->bands || o->rows       ? DOPPEL_METHOD_MINHASH
                                                : DOPPEL_METHOD_AUTO;
    o->content = (doppel_content)content;
    o->link_any = any;
    o->min_words = args_number(args, "min-words", 5);
    o->min_words = o->min_words ? o->min_words : 1;
    o->keep = args_text(args, "keep");
    o->within = args_text(args, "within");
    o->across = args_text(args, "across");
    o->tmp = args_text(args, "tmp");
    o->memory = args_number(args, "memory", 0);
    o->limit = args_number(args, "limit", 0);
    o->work = args_text(args, "work");
    o->resume = args_flag(args, "resume");
    return good && fits_method(args, o->method);
}

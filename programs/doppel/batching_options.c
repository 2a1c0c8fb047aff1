/* batching_options.c - the options that say what is near and which document stays, as the batch takes them. */
#include "batching.h"
#include "choices.h"
#include "common/message.h"

#include <limits.h>

static const choice methods[] = {{"auto", DOPPEL_METHOD_AUTO},
                                 {"simhash", DOPPEL_METHOD_SIMHASH},
                                 {"minhash", DOPPEL_METHOD_MINHASH},
                                 {"exact", DOPPEL_METHOD_EXACT},
                                 {NULL, 0}};
static const choice evidence[] = {
    {"content", DOPPEL_BY_CONTENT}, {"url", DOPPEL_BY_URL}, {"title", DOPPEL_BY_TITLE}, {NULL, 0}};
static const choice links[] = {{"kept", false}, {"any", true}, {NULL, 0}};

const char *method_name(doppel_method method) {
    return choice_name(methods, (unsigned)method);
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
    bool good = choose_one(args, "method", methods, &method) &&
                choose_one(args, "content", content_choices, &content) && choose_one(args, "link", links, &any) &&
                choose_some(args, "by", evidence, &o->by) &&
                choose_some(args, "url-keep", url_rule_choices, &o->url_without) &&
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

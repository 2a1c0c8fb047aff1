/* choices.c - options that take words of a list. */
#include "shared/choices.h"

#include "common/message.h"
#include "doppel.h"

#include <string.h>

const cli_choice content_choices[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
const cli_choice duplicate_choices[] = {
    {"skip", DOPPEL_DUPLICATE_SKIP}, {"link", DOPPEL_DUPLICATE_LINK}, {"store", DOPPEL_DUPLICATE_STORE}, {NULL, 0}};
const cli_choice same_url_choices[] = {
    {"duplicate", DOPPEL_SAME_URL_DUPLICATE}, {"refresh", DOPPEL_SAME_URL_REFRESH}, {NULL, 0}};
const cli_choice url_rule_choices[] = {
    {"scheme", DOPPEL_URL_SCHEME},     {"www", DOPPEL_URL_WWW},         {"port", DOPPEL_URL_PORT},
    {"dots", DOPPEL_URL_DOTS},         {"escapes", DOPPEL_URL_ESCAPES}, {"index", DOPPEL_URL_INDEX},
    {"fragment", DOPPEL_URL_FRAGMENT}, {"query", DOPPEL_URL_QUERY},     {"tracking", DOPPEL_URL_TRACKING},
    {"idn", DOPPEL_URL_IDN},           {"slash", DOPPEL_URL_SLASH},     {NULL, 0}};

const cli_choice method_choices[] = {{"auto", DOPPEL_METHOD_AUTO},
                                     {"simhash", DOPPEL_METHOD_SIMHASH},
                                     {"minhash", DOPPEL_METHOD_MINHASH},
                                     {"exact", DOPPEL_METHOD_EXACT},
                                     {NULL, 0}};
const cli_choice unit_choices[] = {{"line", DOPPEL_UNIT_LINE},
                                   {"sentence", DOPPEL_UNIT_SENTENCE},
                                   {"paragraph", DOPPEL_UNIT_PARAGRAPH},
                                   {"passage", DOPPEL_UNIT_PASSAGE},
                                   {NULL, 0}};
static const cli_choice nears[] = {
    {"similarity", DOPPEL_NEAR_SIMILARITY}, {"distance", DOPPEL_NEAR_DISTANCE}, {NULL, 0}};
static const cli_choice switches[] = {{"on", DOPPEL_SWITCH_ON}, {"off", DOPPEL_SWITCH_OFF}, {NULL, 0}};
static const cli_choice durabilities[] = {
    {"none", DOPPEL_DURABLE_NONE}, {"batch", DOPPEL_DURABLE_BATCH}, {"each", DOPPEL_DURABLE_EACH}, {NULL, 0}};
static const cli_choice levels[] = {
    {"error", DOPPEL_LOG_ERROR}, {"warning", DOPPEL_LOG_WARNING}, {"info", DOPPEL_LOG_INFO}, {NULL, 0}};
static const cli_choice log_forms[] = {{"text", false}, {"json", true}, {NULL, 0}};
static const cli_choice evidence[] = {
    {"content", DOPPEL_BY_CONTENT}, {"url", DOPPEL_BY_URL}, {"title", DOPPEL_BY_TITLE}, {NULL, 0}};
static const cli_choice links[] = {{"kept", false}, {"any", true}, {NULL, 0}};
static const cli_choice cuts_first[] = {{"on", false}, {"off", true}, {NULL, 0}};
static const cli_choice views[] = {{"text", true}, {"jsonl", false}, {NULL, 0}};

/* Options that take more than these words: the library checks them, and these are for shell completion only. */
static const cli_choice recipes[] = {{"page", 0}, {"article", 0}, {"literal", 0}, {NULL, 0}};
static const cli_choice index_presets[] = {{"general", 0}, {"crawl", 0}, {"article", 0}, {NULL, 0}};
static const cli_choice keep_rules[] = {{"first", 0},   {"last", 0},     {"longest", 0},      {"shortest", 0},
                                        {"https", 0},   {"id", 0},       {"shortest-url", 0}, {"newest:", 0},
                                        {"oldest:", 0}, {"largest:", 0}, {"smallest:", 0},    {NULL, 0}};
static const cli_choice trim_keep_rules[] = {{"first", 0},    {"last", 0},         {"longest", 0}, {"shortest", 0},
                                             {"https", 0},    {"shortest-url", 0}, {"newest:", 0}, {"oldest:", 0},
                                             {"largest:", 0}, {"smallest:", 0},    {NULL, 0}};
static const cli_choice formats[] = {{"jsonl", 0}, {"json", 0}, {"csv", 0},  {"tsv", 0},   {"warc", 0},
                                     {"mbox", 0},  {"html", 0}, {"text", 0}, {"lines", 0}, {NULL, 0}};
static const cli_choice purposes[] = {{"find", 0}, {"join", 0}, {NULL, 0}};
static const cli_choice fingerprint_formats[] = {{"raw", 0}, {"hex", 0}, {"jsonl", 0}, {NULL, 0}};
static const cli_choice scopes[] = {{"host", 0}, {"domain", 0}, {NULL, 0}};

/* The names of doppel_pipelines, each with its number. */
static const cli_choice *pipeline_choices(void) {
    enum { MOST = 32 };
    static cli_choice made[MOST + 1];
    size_t count;
    const doppel_pipeline *pipelines = doppel_pipelines(&count);
    for (size_t i = 0; i < count && i < MOST; i++)
        made[i] = (cli_choice){pipelines[i].name, (unsigned)i};
    return made;
}

const cli_choice *choices_of(const char *command, const char *option) {
    static const struct {
        const char *command, *option; /* command NULL: any */
        const cli_choice *choices;
    } table[] = {{NULL, "across", scopes},
                 {NULL, "by", evidence},
                 {NULL, "content", content_choices},
                 {NULL, "durability", durabilities},
                 {NULL, "against-format", formats},
                 {"plan", "for", purposes},
                 {NULL, "format", formats},
                 {"join", "from", fingerprint_formats},
                 {"trim", "keep", trim_keep_rules},
                 {NULL, "keep", keep_rules},
                 {NULL, "keep-first", cuts_first},
                 {NULL, "link", links},
                 {NULL, "log-format", log_forms},
                 {NULL, "log-level", levels},
                 {NULL, "method", method_choices},
                 {NULL, "near", nears},
                 {NULL, "on-duplicate", duplicate_choices},
                 {NULL, "on-same-url", same_url_choices},
                 {NULL, "preset", index_presets},
                 {NULL, "print", views},
                 {NULL, "recipe", recipes},
                 {NULL, "sandbox", switches},
                 {NULL, "title-veto", switches},
                 {NULL, "titles", switches},
                 {NULL, "unit", unit_choices},
                 {NULL, "url-keep", url_rule_choices},
                 {NULL, "within", scopes}};
    static const char *const batches[] = {"dedup", "pairs", "cluster"};
    for (size_t i = 0; i < sizeof batches / sizeof *batches; i++)
        if (!strcmp(option, "preset") && !strcmp(command, batches[i]))
            return pipeline_choices();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].option, option) && (!table[i].command || !strcmp(table[i].command, command)))
            return table[i].choices;
    return NULL;
}

const char *choice_name(const cli_choice *choices, unsigned value) {
    for (; choices->name; choices++)
        if (choices->value == value)
            return choices->name;
    return "";
}

static const cli_choice *find_choice(const cli_choice *choices, const char *name, size_t length) {
    for (; choices->name; choices++)
        if (strlen(choices->name) == length && !memcmp(choices->name, name, length))
            return choices;
    return NULL;
}

static bool refuse(const char *option, const cli_choice *choices, const char *name, size_t length) {
    char list[200];
    size_t used = 0;
    for (const cli_choice *c = choices; c->name && used < sizeof list; c++) {
        const char *before = c == choices ? "" : c[1].name ? ", " : " or ";
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", before, c->name);
    }
    message("--%s takes %s, not %.*s", option, list, (int)length, name);
    return false;
}

bool choose_one(const cli_args *args, const char *option, unsigned *value) {
    const char *given = args_text(args, option);
    const cli_choice *choices = choices_of(args->command->name, option);
    const cli_choice *found = given ? find_choice(choices, given, strlen(given)) : NULL;
    if (given && !found)
        return refuse(option, choices, given, strlen(given));
    *value = found ? found->value : *value;
    return true;
}

bool choose_some(const cli_args *args, const char *option, unsigned *value) {
    const cli_choice *choices = choices_of(args->command->name, option);
    for (const char *at = args_text(args, option); at; at = *at ? at + 1 : NULL) {
        size_t length = strcspn(at, ",");
        const cli_choice *found = find_choice(choices, at, length);
        if (!found)
            return refuse(option, choices, at, length);
        *value |= found->value;
        at += length;
    }
    return true;
}

bool content_option(const cli_args *args, doppel_content *content) {
    unsigned value = DOPPEL_CONTENT_MAIN;
    bool good = choose_one(args, "content", &value);
    *content = (doppel_content)value;
    return good;
}

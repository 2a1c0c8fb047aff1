/* options.c - the options of a batch as text, a line each: what a journal is made with. */
#include "batch/batch.h"
#include "sketch/sketch.h"

#include <stdlib.h>

/* What shapes sketches. */
static bool print_shaping(const doppel_batch *batch, dp_buffer *text) {
    const doppel_batch_options *o = &batch->options;
    const doppel_recipe *recipe = o->recipe ? o->recipe : dp_recipe_default();
    return dp_buffer_printf(text, "recipe=%s\n", doppel_recipe_text(recipe)) &&
           dp_buffer_printf(text, "unicode=%s\n", doppel_unicode_version()) &&
           dp_buffer_printf(text, "sets=%d\nbands=%d\nrows=%d\n", batch->has_sets, batch->stats.bands,
                            batch->stats.rows) &&
           dp_buffer_printf(text, "min_words=%llu\n", (unsigned long long)o->min_words) &&
           dp_buffer_printf(text, "content=%s\n", o->content == DOPPEL_CONTENT_ALL ? "all" : "main") &&
           dp_buffer_printf(text, "by=%u\nurl_without=%u\n", batch->by, o->url_without) &&
           dp_buffer_printf(text, "within=%s\nacross=%s\n", o->within ? o->within : "", o->across ? o->across : "");
}

/* The fields of records; `of` stands ahead of each name. */
static bool print_keys(const doppel_input_options *i, const char *of, dp_buffer *text) {
    const struct {
        const char *name, *key;
    } keys[] = {
        {"id", i->id_key}, {"url", i->url_key}, {"title", i->title_key}, {"text", i->text_key}, {"html", i->html_key}};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        if (!dp_buffer_printf(text, "%s%s_key=%s\n", of, keys[k].name, keys[k].key ? keys[k].key : ""))
            return false;
    return true;
}

static bool is_same(const char *a, const char *b) {
    return a && b ? !strcmp(a, b) : a == b;
}

/* Whether known documents have the fields that the others have. */
static bool have_same_keys(const doppel_input_options *a, const doppel_input_options *b) {
    return is_same(a->id_key, b->id_key) && is_same(a->url_key, b->url_key) && is_same(a->title_key, b->title_key) &&
           is_same(a->text_key, b->text_key) && is_same(a->html_key, b->html_key);
}

/* How documents are read. */
static bool print_reading(const doppel_batch *batch, dp_buffer *text) {
    return dp_buffer_printf(text, "max_record=%zu\n", batch->input.max_record) && print_keys(&batch->input, "", text) &&
           (have_same_keys(&batch->input, &batch->known_input) || print_keys(&batch->known_input, "known_", text));
}

bool dp_options_print(const doppel_batch *batch, dp_buffer *text, size_t *shaping) {
    const doppel_batch_options *o = &batch->options;
    if (!print_shaping(batch, text))
        return false;
    *shaping = text->size;
    return dp_buffer_printf(text, "method=%d\nsimilarity=%.17g\ndistance=%d\n", (int)o->method, o->similarity,
                            batch->distance) &&
           dp_buffer_printf(text, "boilerplate=%.17g\nkeep=%s\nlink_any=%d\n", o->boilerplate, o->keep ? o->keep : "",
                            o->link_any) &&
           dp_buffer_printf(text, "limit=%llu\n", (unsigned long long)o->limit) && print_reading(batch, text);
}

/* The value of a line `name=value`, which ends with a NUL from now on; empty when there is none. */
static char *value_of(char *text, const char *name) {
    size_t length = strlen(name);
    for (char *line = text; *line;) {
        size_t whole = strcspn(line, "\n");
        if (!strncmp(line, name, length) && line[length] == '=')
            return line + length + 1;
        line += whole + (line[whole] == '\n');
    }
    return text + strlen(text);
}

static const char *given(char *value) {
    return *value ? value : NULL;
}

static void set_keys(doppel_input_options *input, char *const *keys) {
    input->id_key = given(keys[0]);
    input->url_key = given(keys[1]);
    input->title_key = given(keys[2]);
    input->text_key = given(keys[3]);
    input->html_key = given(keys[4]);
}

bool dp_options_parse(char *text, doppel_batch_options *o, const char **recipe, doppel_input_options *input,
                      doppel_input_options *known) {
    /* All values are found before any line is ended. */
    char *recipe_text = value_of(text, "recipe"), *keep = value_of(text, "keep");
    char *within = value_of(text, "within"), *across = value_of(text, "across");
    unsigned bands = (unsigned)strtoul(value_of(text, "bands"), NULL, 10);
    unsigned rows = (unsigned)strtoul(value_of(text, "rows"), NULL, 10);
    o->method = (doppel_method)strtol(value_of(text, "method"), NULL, 10);
    o->similarity = strtod(value_of(text, "similarity"), NULL);
    o->distance = (int)strtol(value_of(text, "distance"), NULL, 10);
    o->distance_zero = o->distance == 0;
    o->bands = (int)bands;
    o->rows = (int)rows;
    o->min_words = strtoull(value_of(text, "min_words"), NULL, 10);
    o->boilerplate = strtod(value_of(text, "boilerplate"), NULL);
    o->by = (unsigned)strtoul(value_of(text, "by"), NULL, 10);
    o->url_without = (unsigned)strtoul(value_of(text, "url_without"), NULL, 10);
    o->content = !strncmp(value_of(text, "content"), "all", 3) ? DOPPEL_CONTENT_ALL : DOPPEL_CONTENT_MAIN;
    o->link_any = *value_of(text, "link_any") == '1';
    o->limit = strtoull(value_of(text, "limit"), NULL, 10);
    input->max_record = (size_t)strtoull(value_of(text, "max_record"), NULL, 10);
    char *keys[] = {value_of(text, "id_key"), value_of(text, "url_key"), value_of(text, "title_key"),
                    value_of(text, "text_key"), value_of(text, "html_key")};
    char *known_keys[] = {value_of(text, "known_id_key"), value_of(text, "known_url_key"),
                          value_of(text, "known_title_key"), value_of(text, "known_text_key"),
                          value_of(text, "known_html_key")};
    bool has_known = strstr(text, "\nknown_id_key=");
    for (size_t i = 0, length = strlen(text); i < length; i++)
        if (text[i] == '\n')
            text[i] = 0;
    *recipe = recipe_text;
    set_keys(input, keys);
    set_keys(known, has_known ? known_keys : keys);
    o->keep = given(keep);
    o->within = given(within);
    o->across = given(across);
    return has_known;
}

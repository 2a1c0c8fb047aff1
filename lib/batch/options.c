/* options.c - the options of a batch as text, a line each: what a journal is made with. */
#include "batch/batch.h"
#include "sketch/sketch.h"

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

bool dp_options_print(const doppel_batch *batch, dp_buffer *text, size_t *shaping) {
    const doppel_batch_options *o = &batch->options;
    if (!print_shaping(batch, text))
        return false;
    *shaping = text->size;
    return dp_buffer_printf(text, "method=%d\nsimilarity=%.17g\ndistance=%d\n", (int)o->method, o->similarity,
                            batch->distance) &&
           dp_buffer_printf(text, "boilerplate=%.17g\nkeep=%s\nlink_any=%d\n", o->boilerplate, o->keep ? o->keep : "",
                            o->link_any) &&
           dp_buffer_printf(text, "limit=%llu\nmax_record=%zu\n", (unsigned long long)o->limit,
                            batch->input.max_record);
}

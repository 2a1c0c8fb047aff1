/* fuzz_recipe.c - any text as a recipe: one that parses prints a form that parses to the same, and makes sketches; any
 * other is refused with a message and a position. The first byte chooses what is given with it. */
#include "fuzz.h"

#include "sketch/df.h"

#include <stdlib.h>

/* A table of nothing, for the usual features: enough for weight=tfidf. */
static const doppel_df *small_table(void) {
    static const dp_df_header header = {.magic = DP_DF_MAGIC, .version = DP_DF_VERSION, .documents = 100};
    static char recipe[] = "words=5:hash=fast";
    static const doppel_df table = {.header = &header, .recipe = recipe, .digest = "0123456789abcdef"};
    return &table;
}

static void check_error(const char *text, doppel_status status, const doppel_error *error) {
    CHECK(status == DOPPEL_ERROR_USAGE && error->code == status && error->message[0]);
    CHECK(error->position <= strlen(text) + 1);
}

/* In one piece and in two: the same. */
static void check_sketches(const doppel_recipe *recipe) {
    static const char text[] = "One two THREE, four. \xE6\x9D\xB1\xE4\xBA\xAC \xC3\x89t\xC3\xA9 a rose is a rose";
    doppel_sketcher *sketcher;
    doppel_sketch whole, cut;
    const unsigned wants = DOPPEL_WANT_DIGEST | DOPPEL_WANT_SET;
    CHECK(!doppel_sketcher_create(recipe, wants, &sketcher, NULL));
    CHECK(!doppel_sketcher_run(sketcher, (doppel_slice){text, sizeof text - 1}, &whole));
    doppel_sketcher_reset(sketcher);
    CHECK(!doppel_sketcher_add(sketcher, (doppel_slice){text, 22}) &&
          !doppel_sketcher_add(sketcher, (doppel_slice){text + 22, sizeof text - 23}));
    CHECK(!doppel_sketcher_finish(sketcher, &cut));
    CHECK(!memcmp(whole.fingerprint, cut.fingerprint, sizeof cut.fingerprint));
    CHECK(!memcmp(whole.digest, cut.digest, sizeof cut.digest));
    CHECK(whole.set_count == cut.set_count && whole.words == cut.words && whole.features == cut.features);
    int bits = doppel_recipe_bits(recipe);
    CHECK(bits == 128 || (bits >= 1 && bits <= 64));
    CHECK(bits >= 64 || !(whole.fingerprint[0] >> bits));
    doppel_sketcher_free(sketcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (!size)
        return 0;
    char *text = calloc(size, 1);
    CHECK(text);
    memcpy(text, data + 1, size - 1);
    doppel_recipe_parts parts = {.size = sizeof parts, .df = data[0] & 1 ? small_table() : NULL};
    if (data[0] & 2) {
        parts.stop_words.data = "a the";
        parts.stop_words.length = 5;
    }
    doppel_recipe *recipe, *again;
    doppel_error error;
    doppel_status status = doppel_recipe_parse(text, &parts, &recipe, &error);
    if (status) {
        check_error(text, status, &error);
    } else {
        const char *printed = doppel_recipe_text(recipe);
        CHECK(!doppel_recipe_parse(printed, &parts, &again, &error));
        CHECK(!strcmp(printed, doppel_recipe_text(again)));
        CHECK(!doppel_recipe_warning(recipe) == !doppel_recipe_warning(again));
        check_sketches(again);
        doppel_recipe_free(again);
    }
    doppel_recipe_free(recipe);
    free(text);
    return 0;
}

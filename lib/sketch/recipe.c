/* recipe.c - recipes, from and to their text form: `simhash64:words=5:hash=fast:weight=tf`.
 *
 * One table names the parts in canonical order, with how each is read, printed and explained (docs/FORMAT.md section
 * 6). */
#include "sketch/sketch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

static const char *const weight_names[] = {"tf", "set", "sqrt", "tf2", "tfidf", NULL};

/* ---- reading values ---- */

static bool read_number(const char *value, uint64_t low, uint64_t high, uint64_t *number) {
    char *end;
    errno = 0;
    if (value[0] < '0' || value[0] > '9')
        return false;
    uint64_t read = strtoull(value, &end, 10);
    if (errno || *end || read < low || read > high)
        return false;
    *number = read;
    return true;
}

static bool read_choice(const char *value, const char *off, const char *on, bool *flag) {
    *flag = !strcmp(value, on);
    return *flag || !strcmp(value, off);
}

static bool read_hex(const char *value, char *out) {
    if (strlen(value) != 16 || strspn(value, "0123456789abcdef") != 16)
        return false;
    memcpy(out, value, 17);
    return true;
}

static bool read_units(doppel_recipe *r, const char *value, bool chars) {
    uint64_t n;
    if (!read_number(value, 1, 1000, &n))
        return false;
    r->n = (size_t)n;
    r->text.chars = chars;
    return true;
}

static bool read_words(doppel_recipe *r, const char *value) {
    return read_units(r, value, false);
}

static bool read_chars(doppel_recipe *r, const char *value) {
    return read_units(r, value, true);
}

static bool read_hash(doppel_recipe *r, const char *value) {
    dp_hasher hasher;
    if (dp_hasher_open(value, &hasher))
        return false;
    strcpy(r->hash, hasher.name);
    dp_hasher_close(&hasher);
    return true;
}

static bool read_weight(doppel_recipe *r, const char *value) {
    for (int i = 0; weight_names[i]; i++)
        if (!strcmp(value, weight_names[i])) {
            r->weight = (dp_weight)i;
            return true;
        }
    return false;
}

static bool read_case(doppel_recipe *r, const char *value) {
    return read_choice(value, "fold", "keep", &r->text.keep_case);
}

static bool read_punct(doppel_recipe *r, const char *value) {
    return read_choice(value, "drop", "keep", &r->text.keep_punct);
}

static bool read_space(doppel_recipe *r, const char *value) {
    return read_choice(value, "keep", "drop", &r->text.drop_space);
}

static bool read_first(doppel_recipe *r, const char *value) {
    return read_number(value, 1, INT64_MAX, &r->text.first);
}

static bool read_stop(doppel_recipe *r, const char *value) {
    return read_hex(value, r->stop);
}

static bool read_df(doppel_recipe *r, const char *value) {
    return read_hex(value, r->df_digest);
}

static bool read_minhash(doppel_recipe *r, const char *value) {
    return read_number(value, 1, 65536, &r->slots);
}

static bool read_sample(doppel_recipe *r, const char *value) {
    return read_number(value, 1, UINT32_MAX, &r->sample);
}

static bool read_unicode(doppel_recipe *r, const char *value) {
    if (!*value || strlen(value) >= sizeof r->unicode || strspn(value, "0123456789.") != strlen(value))
        return false;
    strcpy(r->unicode, value);
    return true;
}

static const struct part {
    const char *name, *allowed;
    bool (*read)(doppel_recipe *r, const char *value);
} parts_list[] = {
    {"words", "a number of words from 1 to 1000", read_words},
    {"chars", "a number of code points from 1 to 1000", read_chars},
    {"hash", dp_hash_names, read_hash},
    {"weight", "tf, set, sqrt, tf2 or tfidf", read_weight},
    {"case", "fold or keep", read_case},
    {"punct", "drop or keep", read_punct},
    {"space", "keep or drop", read_space},
    {"first", "a number of code points, at least 1", read_first},
    {"stop", "16 lower-case hexadecimal digits, the hash of the stop words", read_stop},
    {"df", "16 lower-case hexadecimal digits, the digest of the frequency table", read_df},
    {"minhash", "a number of slots from 1 to 65536", read_minhash},
    {"sample", "a divisor from 1 to 4294967295", read_sample},
    {"unicode", "a Unicode version such as 15.0.0", read_unicode},
};

#define PARTS (sizeof parts_list / sizeof *parts_list)

static const struct {
    const char *name, *text;
} named[] = {
    {"page", "simhash64:words=5:hash=fast:weight=tf"},
    {"article", "simhash64:words=1:hash=fast:weight=tf:first=5000"},
    {"literal", "simhash64:words=5:hash=murmur3:weight=tf"},
};

/* ---- parsing ---- */

/* A part this long is shown by its beginning, so that the message has room for what is allowed. */
#define SHOWN 100

static doppel_status fail_part(doppel_error *error, size_t position, const char *fault, const char *part,
                               const char *allowed) {
    dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: %s `%.*s%s`: %s", fault, SHOWN, part, strlen(part) > SHOWN ? "..." : "",
            allowed);
    if (error)
        error->position = position + 1;
    return DOPPEL_ERROR_USAGE;
}

static doppel_status parse_head(doppel_recipe *r, const char *head, doppel_error *error) {
    uint64_t bits;
    const char *digits = head + strlen("simhash");
    if (!strncmp(head, "simhash", strlen("simhash")) && read_number(digits, 1, 128, &bits) &&
        (bits <= 64 || bits == 128)) {
        r->bits = (int)bits;
        return DOPPEL_OK;
    }
    return fail_part(error, 0, "unknown recipe", head,
                     "a recipe is page, article, literal, or begins with simhash and a width of 1 to 64 or 128 bits, "
                     "as in simhash64:words=5:hash=fast:weight=tf");
}

static doppel_status fail_unknown(doppel_error *error, size_t position, const char *part) {
    dp_buffer names = {0};
    for (size_t i = 0; i < PARTS; i++)
        dp_buffer_printf(&names, "%s%s=", i ? ", " : "parts are ", parts_list[i].name);
    doppel_status status = fail_part(error, position, "unknown part", part, names.data ? names.data : "");
    dp_buffer_free(&names);
    return status;
}

/* One `name=value`; `given` marks the parts that came before. */
static doppel_status parse_part(doppel_recipe *r, char *part, size_t position, unsigned *given, doppel_error *error) {
    char *equals = strchr(part, '=');
    size_t length = equals ? (size_t)(equals - part) : strlen(part), i = 0;
    while (i < PARTS && (strlen(parts_list[i].name) != length || memcmp(parts_list[i].name, part, length)))
        i++;
    if (i == PARTS || !equals)
        return fail_unknown(error, position, part);
    if (*given & 1u << i || (i == 1 && *given & 1u) || (i == 0 && *given & 2u))
        return fail_part(error, position, "repeated part", part,
                         i < 2 ? "words= or chars= is given once" : "each is given once");
    *given |= 1u << i;
    if (parts_list[i].read(r, equals + 1))
        return DOPPEL_OK;
    dp_buffer allowed = {0};
    dp_buffer_printf(&allowed, "%s= takes %s", parts_list[i].name, parts_list[i].allowed);
    doppel_status status = fail_part(error, position, "invalid value in", part, allowed.data ? allowed.data : "");
    dp_buffer_free(&allowed);
    return status;
}

static doppel_status parse_parts(doppel_recipe *r, char *text, doppel_error *error) {
    unsigned given = 0;
    for (char *part = text; part;) {
        char *colon = strchr(part, ':');
        if (colon)
            *colon = 0;
        doppel_status status =
            part == text ? parse_head(r, part, error) : parse_part(r, part, (size_t)(part - text), &given, error);
        if (status)
            return status;
        part = colon ? colon + 1 : NULL;
    }
    return DOPPEL_OK;
}

/* ---- what the parts have to do with each other ---- */

static doppel_status check(const doppel_recipe *r, doppel_error *error) {
    if (r->text.drop_space && !r->text.chars)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: space=drop goes with chars=, as words need spaces");
    if (r->text.chars && (r->stop[0] || r->text.stop_words_length))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: stop words go with words=, not with chars=");
    if (r->weight != DP_WEIGHT_TFIDF && r->df_digest[0])
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: df= goes with weight=tfidf");
    if (r->weight == DP_WEIGHT_TFIDF && !r->df)
        return dp_fail(error, DOPPEL_ERROR_USAGE,
                       "recipe: weight=tfidf needs a document-frequency table; make one with `doppel df INPUT... -o "
                       "TABLE` and give it with --df TABLE");
    return DOPPEL_OK;
}

/* The hash of the stop list goes into the recipe; one that was given must be the same. */
static doppel_status settle_stop(doppel_recipe *r, doppel_error *error) {
    if (!r->text.stop_words_length) {
        if (!r->stop[0])
            return DOPPEL_OK;
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: stop=%s needs its list of stop words beside it", r->stop);
    }
    dp_words *words;
    char hash[17];
    DP_TRY(dp_words_create(&r->text, &words, error));
    const dp_buffer *list = dp_words_stop_list(words);
    bool empty = !list->size;
    snprintf(hash, sizeof hash, "%016" PRIx64, (uint64_t)XXH3_64bits(list->data, list->size));
    dp_words_free(words);
    if (empty && !r->stop[0]) {
        /* A list without words is none. */
        r->text.stop_words_length = 0;
        return DOPPEL_OK;
    }
    if (r->stop[0] && strcmp(r->stop, hash))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: stop=%s, but the stop words given are stop=%s", r->stop,
                       hash);
    strcpy(r->stop, hash);
    return DOPPEL_OK;
}

static doppel_status settle_df(doppel_recipe *r, doppel_error *error) {
    if (r->weight != DP_WEIGHT_TFIDF)
        return DOPPEL_OK;
    const char *digest = doppel_df_digest(r->df), *made = doppel_df_recipe(r->df);
    if (r->df_digest[0] && strcmp(r->df_digest, digest))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: df=%s, but the table given is df=%s", r->df_digest, digest);
    if (strcmp(made, r->features.data))
        return dp_fail(error, DOPPEL_ERROR_USAGE, "recipe: the frequency table counts %s, but this recipe makes %s",
                       made, r->features.data);
    strcpy(r->df_digest, digest);
    if (strcmp(dp_df_unicode(r->df), doppel_unicode_version()))
        snprintf(r->warning, sizeof r->warning,
                 "the frequency table was made with Unicode %s, this library has %s: new code points may be read "
                 "differently",
                 dp_df_unicode(r->df), doppel_unicode_version());
    return DOPPEL_OK;
}

static bool print_features(doppel_recipe *r) {
    dp_buffer *b = &r->features;
    bool done = dp_buffer_printf(b, "%s=%zu:hash=%s", r->text.chars ? "chars" : "words", r->n, r->hash);
    done = done && (!r->text.keep_case || dp_buffer_printf(b, ":case=keep"));
    done = done && (!r->text.keep_punct || dp_buffer_printf(b, ":punct=keep"));
    done = done && (!r->text.drop_space || dp_buffer_printf(b, ":space=drop"));
    done = done && (!r->text.first || dp_buffer_printf(b, ":first=%" PRIu64, r->text.first));
    return done && (!r->stop[0] || dp_buffer_printf(b, ":stop=%s", r->stop));
}

/* The canonical form: as the features, with the width first, the weight after the hash, and the rest at the end. */
static bool print(doppel_recipe *r) {
    dp_buffer *b = &r->printed;
    const char *behind_hash = strstr(r->features.data, "hash=");
    behind_hash += strcspn(behind_hash, ":");
    bool done = dp_buffer_printf(b, "simhash%d:%.*s:weight=%s%s", r->bits, (int)(behind_hash - r->features.data),
                                 r->features.data, weight_names[r->weight], behind_hash);
    done = done && (!r->df_digest[0] || dp_buffer_printf(b, ":df=%s", r->df_digest));
    done = done && (!r->slots || dp_buffer_printf(b, ":minhash=%" PRIu64, r->slots));
    done = done && (!r->sample || dp_buffer_printf(b, ":sample=%" PRIu64, r->sample));
    if (!r->unicode[0] || !strcmp(r->unicode, doppel_unicode_version()))
        return done;
    snprintf(r->warning, sizeof r->warning,
             "the recipe was made with Unicode %s, this library has %s: new code points "
             "may be read differently",
             r->unicode, doppel_unicode_version());
    return done && dp_buffer_printf(b, ":unicode=%s", r->unicode);
}

static doppel_status settle(doppel_recipe *r, doppel_error *error) {
    doppel_status status = check(r, error);
    if (status || (status = settle_stop(r, error)))
        return status;
    if (!print_features(r))
        return dp_no_memory(error);
    status = settle_df(r, error);
    if (!status && !print(r))
        status = dp_no_memory(error);
    return status;
}

/* ---- the public calls ---- */

static bool copy_parts(doppel_recipe *r, const doppel_recipe_parts *given) {
    doppel_recipe_parts parts = {0};
    if (given)
        dp_copy_options(&parts, given, sizeof parts);
    r->df = parts.df;
    if (!parts.stop_words.length)
        return true;
    if (!(r->stop_copy = malloc(parts.stop_words.length)))
        return false;
    memcpy(r->stop_copy, parts.stop_words.data, parts.stop_words.length);
    r->text.stop_words = r->stop_copy;
    r->text.stop_words_length = parts.stop_words.length;
    return true;
}

doppel_status doppel_recipe_parse(const char *text, const doppel_recipe_parts *parts, doppel_recipe **recipe,
                                  doppel_error *error) {
    *recipe = NULL;
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strcmp(text, named[i].name))
            text = named[i].text;
    doppel_recipe *r = calloc(1, sizeof *r);
    char *copy = strdup(text);
    doppel_status status = DOPPEL_ERROR_MEMORY;
    if (r && copy) {
        r->n = 5;
        strcpy(r->hash, "fast");
        status = copy_parts(r, parts) ? parse_parts(r, copy, error) : dp_no_memory(error);
        DP_THEN(status, settle(r, error));
    } else {
        dp_no_memory(error);
    }
    free(copy);
    if (status) {
        doppel_recipe_free(r);
        return status;
    }
    *recipe = r;
    return DOPPEL_OK;
}

void doppel_recipe_free(doppel_recipe *recipe) {
    if (!recipe)
        return;
    free(recipe->stop_copy);
    dp_buffer_free(&recipe->printed);
    dp_buffer_free(&recipe->features);
    free(recipe);
}

const char *doppel_recipe_text(const doppel_recipe *recipe) {
    return recipe->printed.data;
}

int doppel_recipe_bits(const doppel_recipe *recipe) {
    return recipe->bits;
}

const char *doppel_recipe_warning(const doppel_recipe *recipe) {
    return recipe->warning[0] ? recipe->warning : NULL;
}

const doppel_recipe *dp_recipe_default(void) {
    static char printed[] = "simhash64:words=5:hash=fast:weight=tf", features[] = "words=5:hash=fast";
    static const doppel_recipe page = {.bits = 64,
                                       .n = 5,
                                       .hash = "fast",
                                       .printed = {printed, sizeof printed - 1, sizeof printed},
                                       .features = {features, sizeof features - 1, sizeof features}};
    return &page;
}

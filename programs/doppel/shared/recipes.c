/* recipes.c - the recipe of the command line, with the list and the table that go with it. */
#include "shared/recipes.h"

#include "common/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const cli_row recipe_rows[] = {
    {"page", "runs of 5 words, for web pages and whole documents: simhash64:words=5:hash=fast:weight=tf"},
    {"article",
     "single words of the first 5000 characters, for news: simhash64:words=1:hash=fast:weight=tf:first=5000"},
    {"literal", "as page, but by MurmurHash3 of the joined words: simhash64:words=5:hash=murmur3:weight=tf"},
    {"simhashB", "a fingerprint of B bits, 1 to 64 or 128; it comes first"},
    {"words=n, chars=n", "features are runs of n words (5 if not given) or n characters, n up to 1000"},
    {"hash=", "fast (if not given), xxh3, murmur3, jenkins, djb2, md5, sha1, sha256, or a digest of libcrypto"},
    {"weight=",
     "how a feature counts that occurs c times: tf (c; if not given), set (1), sqrt (root of c), tf2 (c * c), "
     "tfidf (c times how rare it is by the table --df)"},
    {"case=", "fold (if not given): upper and lower case are the same; keep: they are not"},
    {"punct=", "drop (if not given) or keep punctuation and symbols"},
    {"space=", "with chars=: keep (if not given) or drop the spaces between words"},
    {"first=n", "use only the first n characters of a text"},
    {"minhash=n", "also a signature of n slots, 1 to 65536, in --json"},
    {"sample=p", "also a sample: the shingle hashes that are 0 mod p, about one of p, in --json"},
    {NULL, NULL},
};

const cli_topic recipe_topic = {
    "Recipes",
    "A recipe is a name, or simhashB and then any of the parts below, with colons between them. Only fingerprints of "
    "one recipe can be compared. docs/FORMAT.md defines each part.",
    recipe_rows,
};

/* Reads a whole file; the caller frees it. NULL, with a message, when it cannot be read. */
static char *read_whole(const char *path, size_t *length) {
    FILE *file = fopen(path, "rb");
    size_t room = 0, got = 0;
    char *text = NULL;
    *length = 0;
    while (file && !ferror(file) && !feof(file)) {
        room = room ? room * 2 : 4096;
        char *grown = realloc(text, room);
        if (!grown)
            break;
        text = grown;
        got = fread(text + *length, 1, room - *length, file);
        *length += got;
    }
    bool whole = file && feof(file) && !ferror(file);
    if (!whole)
        message("%s: cannot read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    if (whole)
        return text;
    free(text);
    return NULL;
}

/* Fetches what the recipe refers to. */
static int load_parts(const cli_args *args, loaded_recipe *loaded, doppel_recipe_parts *parts) {
    const char *stop_words = args_text(args, "stop-words"), *table = args_text(args, "df");
    doppel_error error;
    *parts = (doppel_recipe_parts){.size = sizeof *parts};
    if (stop_words && !(loaded->stop_words = read_whole(stop_words, &parts->stop_words.length)))
        return EXIT_INPUT;
    parts->stop_words.data = loaded->stop_words;
    if (table && doppel_df_open(table, &loaded->df, &error) != DOPPEL_OK) {
        message_error(&error);
        return EXIT_STORE;
    }
    parts->df = loaded->df;
    return EXIT_DONE;
}

static int parse(const char *text, const doppel_recipe_parts *parts, loaded_recipe *loaded) {
    doppel_error error;
    doppel_recipe *recipe = NULL;
    doppel_status status = doppel_recipe_parse(text, parts, &recipe, &error);
    if (status != DOPPEL_OK) {
        message_error(&error);
        return exit_code(status);
    }
    doppel_recipe_free(loaded->recipe);
    loaded->recipe = recipe;
    return EXIT_DONE;
}

/* Parses the recipe again with another width: its canonical text leads with simhashB. */
static int set_bits(const char *bits, const doppel_recipe_parts *parts, loaded_recipe *loaded) {
    const char *text = doppel_recipe_text(loaded->recipe);
    const char *rest = text + strcspn(text, ":");
    uint64_t width;
    if (!parse_number(bits, &width) || !width || (width > 64 && width != 128)) {
        message("--bits takes a width from 1 to 64, or 128, not %s", bits);
        return EXIT_USAGE;
    }
    size_t room = strlen(rest) + strlen(bits) + sizeof "simhash";
    char *changed = malloc(room);
    if (!changed) {
        message("no memory");
        return EXIT_STORE;
    }
    snprintf(changed, room, "simhash%s%s", bits, rest);
    int code = parse(changed, parts, loaded);
    free(changed);
    return code;
}

/* A table that nothing uses is a mistake in the recipe. */
static int check_df(const loaded_recipe *loaded) {
    const char *text = doppel_recipe_text(loaded->recipe);
    if (!loaded->df || strstr(text, ":weight=tfidf"))
        return EXIT_DONE;
    message("--df needs a recipe with weight=tfidf; this one is %s", text);
    return EXIT_USAGE;
}

int load_recipe(const cli_args *args, const char *text, loaded_recipe *loaded) {
    const char *bits = args_text(args, "bits");
    doppel_recipe_parts parts;
    *loaded = (loaded_recipe){0};
    int code = load_parts(args, loaded, &parts);
    if (code == EXIT_DONE)
        code = parse(text ? text : "page", &parts, loaded);
    if (code == EXIT_DONE)
        code = check_df(loaded);
    if (code == EXIT_DONE && bits)
        code = set_bits(bits, &parts, loaded);
    if (code == EXIT_DONE && doppel_recipe_warning(loaded->recipe))
        message("warning: %s", doppel_recipe_warning(loaded->recipe));
    return code;
}

void free_recipe(loaded_recipe *loaded) {
    doppel_recipe_free(loaded->recipe);
    doppel_df_close(loaded->df);
    free(loaded->stop_words);
}

doppel_status begin_sketching(void *user, void **state) {
    const sketch_job *job = user;
    sketch_worker *made = calloc(1, sizeof *made);
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->job = user;
    doppel_status status = doppel_sketcher_create(job->recipe, job->wants, &made->sketcher, NULL);
    if (status == DOPPEL_OK)
        *state = made;
    else
        free(made);
    return status;
}

void end_sketching(void *user, void *state) {
    (void)user;
    sketch_worker *worker = state;
    doppel_sketcher_free(worker->sketcher);
    free(worker);
}

/* args.c - parsing the command line by its table; operands from files, one path per line, for more than a command line
 * holds. */
#include "common/args.h"

#include "common/embed.h"
#include "common/message.h"
#include "doppel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- operands from a file ---- */

/* Reads all of a file, or of stdin for "-", NUL-ended. NULL, with errno, on failure. */
static char *read_text(const char *path, size_t *length) {
    FILE *file = strcmp(path, "-") ? fopen(path, "rb") : stdin;
    char *text = NULL;
    size_t room = 0;
    ssize_t got = file ? getdelim(&text, &room, 0, file) : -1;
    bool failed = !file || ferror(file) || (got < 0 && !feof(file));
    bool more = !failed && !feof(file);
    int trouble = errno;
    if (file && file != stdin)
        fclose(file);
    if (!text)
        text = calloc(1, 1); /* an empty file */
    if (failed || more || !text) {
        free(text);
        errno = more ? EILSEQ : trouble;
        return NULL;
    }
    *length = got < 0 ? 0 : (size_t)got;
    return text;
}

/* Turns the lines into operands, in place; blank lines are skipped. */
static bool add_lines(cli_args *args, char *text, size_t length) {
    size_t lines = 1;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    const char **grown = realloc(args->operands, (args->operand_count + lines) * sizeof *grown);
    if (!grown)
        return false;
    args->operands = grown;
    for (char *line = text, *end = text + length; line < end;) {
        char *stop = memchr(line, '\n', (size_t)(end - line)), *next = stop ? stop + 1 : end;
        if (!stop)
            stop = end;
        if (stop > line && stop[-1] == '\r')
            stop--;
        *stop = 0;
        if (line[strspn(line, " \t")])
            args->operands[args->operand_count++] = line;
        line = next;
    }
    return true;
}

/* Adds the lines of a file, without blank ones. Prints a message and returns false when it cannot. */
static bool args_add_operands(cli_args *args, const char *path) {
    size_t length;
    char *text = read_text(path, &length);
    char **grown = text ? realloc(args->listed, (args->listed_count + 1) * sizeof *grown) : NULL;
    args->failure = EXIT_INPUT;
    if (grown) {
        args->listed = grown;
        args->listed[args->listed_count++] = text;
    } else {
        free(text);
    }
    if (!text)
        message("%s: %s", path, errno == EILSEQ ? "has a NUL byte, so it is not a list of paths" : strerror(errno));
    else if (!grown || !add_lines(args, text, length))
        message("no memory");
    else if (!args->operand_count)
        message("%s: lists no files", path);
    else {
        args->failure = EXIT_USAGE;
        return true;
    }
    return false;
}

/* ---- numbers and names ---- */

static const char units[] = "KMGT";

bool parse_number(const char *text, uint64_t *number) {
    char *end;
    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return !errno && !*end;
}

/* The value of a unit of bytes, 0 if unknown: K or KiB is 1024, KB 1000, and so on. */
static uint64_t unit_of(const char *name) {
    const char *unit = *name ? strchr(units, *name & ~32) : NULL;
    bool decimal = unit && !strcasecmp(name + 1, "B");
    uint64_t factor = 1;
    if (!*name || !strcasecmp(name, "B"))
        return 1;
    if (!unit || (name[1] && !decimal && strcasecmp(name + 1, "iB") != 0))
        return 0;
    for (const char *step = units; step <= unit; step++)
        factor *= decimal ? 1000 : 1024;
    return factor;
}

bool parse_size(const char *text, uint64_t *number) {
    size_t digits = strspn(text, "0123456789");
    uint64_t unit = unit_of(text + digits);
    char value[32];
    if (digits >= sizeof value || !unit)
        return false;
    snprintf(value, sizeof value, "%.*s", (int)digits, text);
    if (!parse_number(value, number) || *number > UINT64_MAX / unit)
        return false;
    *number *= unit;
    return true;
}

bool parse_many(const char *text, uint64_t *number) {
    size_t length = strlen(text);
    const char *unit = length > 1 ? strchr(units, text[length - 1] & ~32) : NULL;
    char digits[32];
    uint64_t factor = 1;
    if (!unit)
        return parse_number(text, number);
    if (length > sizeof digits)
        return false;
    memcpy(digits, text, length - 1);
    digits[length - 1] = 0;
    for (const char *step = units; step <= unit; step++)
        factor *= 1000;
    if (!parse_number(digits, number) || *number > UINT64_MAX / factor)
        return false;
    *number *= factor;
    return true;
}

/* Whether two words have the same letters, in any order. */
static bool same_letters(const char *a, const char *b) {
    int counts[256] = {0};
    for (; *a; a++)
        counts[(unsigned char)*a]++;
    for (; *b; b++)
        counts[(unsigned char)*b]--;
    for (size_t i = 0; i < 256; i++)
        if (counts[i])
            return false;
    return true;
}

const char *nearest_name(const char *word, const char *const *names, size_t count) {
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]), distance;
        if (doppel_levenshtein(doppel_slice_of(word), (doppel_slice){names[i], length}, SIZE_MAX, &distance) !=
            DOPPEL_OK)
            return NULL;
        /* One edit in four letters, or two of them swapped: more makes another word of short ones. */
        bool near = distance * 4 <= length + 1 || (distance == 2 && same_letters(word, names[i]));
        if (distance < least && near) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

static size_t count_options(const cli_option *options) {
    size_t count = 0;
    while (options[count].name)
        count++;
    return count;
}

/* The option at a place in args->values. */
static const cli_option *option_at(const cli_args *args, size_t i) {
    size_t own = count_options(args->command->options);
    return i < own ? &args->command->options[i] : &args->common[i - own];
}

static size_t option_total(const cli_args *args) {
    return count_options(args->command->options) + count_options(args->common);
}

/* The place of an option by name (of `length` bytes) or letter; SIZE_MAX: there is none. */
static size_t find_option(const cli_args *args, const char *name, size_t length, char letter) {
    for (size_t i = 0; i < option_total(args); i++) {
        const cli_option *option = option_at(args, i);
        if (letter ? option->letter == letter : strlen(option->name) == length && !memcmp(option->name, name, length))
            return i;
    }
    return SIZE_MAX;
}

/* Names that other tools use. Of several rows with one name, the first whose option the command has is suggested. */
static const struct {
    const char *name, *ours;
} other_names[] = {{"threshold", "similarity"},
                   {"threshold", "containment"},
                   {"jaccard", "similarity"},
                   {"jaccard-threshold", "similarity"},
                   {"similarity-threshold", "similarity"},
                   {"min-similarity", "similarity"},
                   {"min-similarity", "containment"},
                   {"bit-diff", "distance"},
                   {"hamming", "distance"},
                   {"hamming-distance", "distance"},
                   {"max-distance", "distance"},
                   {"num-bands", "bands"},
                   {"num-buckets", "bands"},
                   {"num-perm", "bands"},
                   {"num-hashes", "bands"},
                   {"num-rows", "rows"},
                   {"hashes-per-bucket", "rows"},
                   {"ngram", "recipe"},
                   {"ngrams", "recipe"},
                   {"ngram-size", "recipe"},
                   {"n-grams", "recipe"},
                   {"shingle-size", "recipe"},
                   {"char-ngrams", "recipe"},
                   {"min-length", "min-words"},
                   {"min-tokens", "min-words"},
                   {"algorithm", "method"},
                   {"sim", "similarity"},
                   {"tresh", "similarity"},
                   {"treshold", "similarity"},
                   {"mark", "annotate"},
                   {"explain", "removed"},
                   {"columns", "text-key"},
                   {"text-field", "text-key"},
                   {"text-column", "text-key"},
                   {"text", "text-key"},
                   {"column", "text-key"},
                   {"field", "text-key"},
                   {"key", "text-key"},
                   {"content-key", "text-key"},
                   {"id-field", "id-key"},
                   {"id-column", "id-key"},
                   {"url-field", "url-key"},
                   {"url-column", "url-key"},
                   {"title-field", "title-key"},
                   {"title-column", "title-key"},
                   {"out", "output"},
                   {"outfile", "output"},
                   {"output-file", "output"},
                   {"output-path", "output"},
                   {"output-folder", "output-dir"},
                   {"out-dir", "output-dir"},
                   {"duplicates", "removed"},
                   {"reference", "against"},
                   {"exclude", "against"},
                   {"jobs", "threads"},
                   {"workers", "threads"},
                   {"num-workers", "threads"},
                   {"num-proc", "threads"},
                   {"cores", "threads"},
                   {"ram", "memory"},
                   {"mem", "memory"},
                   {"cache-dir", "tmp"},
                   {"tmp-dir", "tmp"},
                   {"temp-dir", "tmp"},
                   {"tmpdir", "tmp"},
                   {"memory-limit", "memory"},
                   {"max-memory", "memory"},
                   {"no-progress", "quiet"},
                   {"text-col", "text-key"},
                   {"id-col", "id-key"},
                   {"keep-first", "keep"},
                   {"keep-last", "keep"},
                   {"top-k", "limit"},
                   {"max-results", "limit"},
                   {"db", "index"},
                   {"database", "index"},
                   {"port", "listen"},
                   {"host", "listen"},
                   {"bind", "listen"},
                   {"debug", "verbose"},
                   {"silent", "quiet"}};

/* The option that was probably meant; NULL: none is similar. */
static const char *option_meant(const cli_args *args, const char *word) {
    const char *names[128];
    size_t count = 0, total = option_total(args);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (!strcmp(other_names[i].name, word) &&
            find_option(args, other_names[i].ours, strlen(other_names[i].ours), 0) != SIZE_MAX)
            return other_names[i].ours;
    for (; count < total && count < sizeof names / sizeof *names; count++)
        names[count] = option_at(args, count)->name;
    return nearest_name(word, names, count);
}

/* Options that people try but that a command (NULL: any) does not have, and what to do instead. */
static const struct {
    const char *command, *option, *instead;
} alternatives[] = {
    {NULL, "csv", "the name of the output sets its format: -o out.csv"},
    {NULL, "in-place", "inputs are never changed: write to another file with -o OUT, and move it"},
    {NULL, "overwrite", "an output file is replaced once the new one is complete; leave the option out"},
    {NULL, "j", "--threads N uses N threads"},
    {"dedup", "upsample", "--annotate --annotate-kept writes what is kept, each with the size of its group"},
    {"trim", "removed", "--dropped FILE lists the documents that are dropped or left empty, --spans FILE every cut"},
    {"check", "similarity",
     "the threshold is a setting of the index (doppel stats shows it); doppel similar --similarity T lists documents "
     "above T"},
    {"check", "titles", "whether titles count is a setting of the index (doppel stats shows it)"},
};

static const char *find_alternative(const char *command, const char *option) {
    for (size_t i = 0; i < sizeof alternatives / sizeof *alternatives; i++)
        if (!strcmp(alternatives[i].option, option) &&
            (!alternatives[i].command || !strcmp(alternatives[i].command, command)))
            return alternatives[i].instead;
    return NULL;
}

static void complain_unknown(const cli_args *args, const char *given) {
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(given + strspn(given, "-"), "="), given + strspn(given, "-"));
    for (char *p = word; *p; p++)
        if (*p == '_')
            *p = '-';
    const char *meant = given[1] == '-' ? option_meant(args, word) : NULL;
    const char *instead = find_alternative(args->command->name, word);
    if (instead)
        message("unknown option %s: %s", given, instead);
    else if (meant)
        message("unknown option %s; did you mean --%s?", given, meant);
    else
        message("unknown option %s; `doppel %s --help` lists the options", given, args->command->name);
}

/* Whether a name implies a format or a compression that cannot be written: prints a message. */
static bool promises_other(const cli_option *option, const char *path) {
    static const struct {
        const char *ending, *what;
    } others[] = {{".parquet", "Parquet"}, {".orc", "ORC"},    {".avro", "Avro"},     {".arrow", "Arrow files"},
                  {".feather", "Feather"}, {".xlsx", "Excel"}, {".bz2", "bzip2"},     {".xz", "xz"},
                  {".lz4", "LZ4"},         {".lzma", "LZMA"},  {".snappy", "Snappy"}, {".sz", "Snappy"},
                  {".br", "Brotli"},       {".lzo", "LZO"},    {".zip", "ZIP"},       {".7z", "7z"},
                  {".z", "compress"}};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool is_parquet = i == 0;
        size_t size = strlen(others[i].ending);
        if (length <= size || strcasecmp(path + length - size, others[i].ending) != 0)
            continue;
        if (is_parquet && option->kind == OPTION_TABLE) {
            if (!get_tables())
                message("--%s %s: Parquet: " WHERE_PARQUET_IS, option->name, path);
            return !get_tables();
        }
        message("--%s %s: doppel does not write %s; choose a name such as %.*s%s", option->name, path, others[i].what,
                (int)(length - size), path, i < 6 ? ".jsonl" : "");
        return true;
    }
    return false;
}

bool name_ends_in(const char *path, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(path + length - size, ending, size);
}

bool check_jsonl_name(const cli_args *args, const char *option, const char *path) {
    const char *format = doppel_input_format(path);
    if (!format || !strcmp(format, "JSONL"))
        return true;
    size_t length = strlen(path);
    const char *packed = name_ends_in(path, length, ".gz") ? ".gz" : name_ends_in(path, length, ".zst") ? ".zst" : "";
    length -= strlen(packed);
    const char *ending = memrchr(path, '.', length);
    bool is_page = !strcmp(format, "HTML") && find_option(args, "html", 4, 0) != SIZE_MAX;
    if (is_page)
        message("--%s %s: JSONL is written; did you mean --html %s?", option, path, path);
    else
        message("--%s %s: JSONL is written; choose a name such as %.*s.jsonl%s", option, path, (int)(ending - path),
                path, packed);
    return false;
}

static bool check_value(const cli_args *args, const cli_option *option, const char *value) {
    uint64_t number;
    if (option->kind == OPTION_COUNT && !parse_number(value, &number)) {
        message("--%s takes a whole number, not \"%s\"", option->name, value);
        return false;
    }
    if (option->kind == OPTION_MANY && !parse_many(value, &number)) {
        message("--%s takes a whole number such as 1000000, 10M or 1G, not \"%s\"", option->name, value);
        return false;
    }
    if ((option->kind == OPTION_SIZE || option->kind == OPTION_MEMORY) && !parse_size(value, &number)) {
        message("--%s takes a number of bytes such as 500MB, 64M or 2GiB, not \"%s\"", option->name, value);
        return false;
    }
    /* Fewer bytes than this are a mistake. */
    if (option->kind == OPTION_MEMORY && number < 65536 && strspn(value, "0123456789") == strlen(value)) {
        message("--%s %s would be %s bytes; did you mean %s%c?", option->name, value, value, value,
                number < 64 ? 'G' : 'M');
        return false;
    }
    bool lines = option->kind == OPTION_LINES;
    bool written = lines || option->kind == OPTION_OUTPUT || option->kind == OPTION_TABLE;
    /* A script's variable that is not set; with a name after it, the path would begin in the root folder. */
    if (!*value && (written || option->kind == OPTION_FILE || option->kind == OPTION_FILES)) {
        message("--%s takes the name of a file or folder, which is empty here", option->name);
        return false;
    }
    return !written || (!promises_other(option, value) && (!lines || check_jsonl_name(args, option->name, value)));
}

/* Adds names to those that were given before; false: out of memory. */
static bool join_names(cli_args *args, size_t i, const char *value) {
    char *joined;
    if (asprintf(&joined, "%s,%s", args->values[i], value) < 0)
        return false;
    free(args->joined[i]);
    args->values[i] = args->joined[i] = joined;
    return true;
}

/* Stores the value of an option. An option that takes one value may be given once only: which of two counts would be a
 * guess. */
static bool note_value(cli_args *args, size_t i, const char *value) {
    const cli_option *option = option_at(args, i);
    if (!check_value(args, option, value))
        return false;
    if (option->kind == OPTION_LIST || option->kind == OPTION_FILES) {
        args->again[args->again_count++] = option->name;
        args->again[args->again_count++] = value;
    } else if (args->values[i] && option->kind == OPTION_NAMES) {
        if (join_names(args, i, value))
            return true;
        message("no memory");
        return false;
    } else if (args->values[i]) {
        size_t length = strlen(option->name);
        bool keys = length > 4 && !strcmp(option->name + length - 4, "-key") && strcmp(args->values[i], value) != 0 &&
                    strcmp(option->name, "verdict-key") != 0;
        if (keys)
            message("--%s is given twice; give it once: --%s %s,%s", option->name, option->name, args->values[i],
                    value);
        else
            message("--%s is given twice; give it once", option->name);
        return false;
    }
    args->values[i] = value;
    return true;
}

/* Whether an argument is an option of the command, not a value that begins with a dash. */
static bool is_option(const cli_args *args, const char *given) {
    if (given[0] != '-' || !given[1])
        return false;
    if (given[1] != '-')
        return !given[2] && find_option(args, NULL, 0, given[1]) != SIZE_MAX;
    return find_option(args, given + 2, strcspn(given + 2, "="), 0) != SIZE_MAX;
}

/* Takes the option at argv[*at], and its value, which may be the next argument. */
static bool take_option(cli_args *args, int argc, char **argv, int *at) {
    const char *given = argv[*at], *value = NULL;
    bool is_long = given[1] == '-';
    size_t length = is_long ? strcspn(given + 2, "=") : 0;
    size_t i = is_long ? find_option(args, given + 2, length, 0) : find_option(args, NULL, 0, given[1]);
    if (i == SIZE_MAX) {
        complain_unknown(args, given);
        return false;
    }
    const cli_option *option = option_at(args, i);
    if (is_long && given[2 + length])
        value = given + 2 + length + 1;
    else if (!is_long && given[2])
        value = given + 2;
    if (option->kind == OPTION_FLAG) {
        if (value)
            message("--%s takes no value", option->name);
        args->values[i] = "";
        return !value;
    }
    const char *next = *at + 1 < argc ? argv[*at + 1] : NULL;
    bool missing = next && is_option(args, next);
    if (!value && next && !missing) {
        value = next;
        ++*at;
    }
    if (!value) {
        message("--%s needs a value%s%s: --%s %s", option->name, missing ? ", before " : "", missing ? next : "",
                option->name, option->value);
        return false;
    }
    return note_value(args, i, value);
}

static bool check_operands(const cli_args *args) {
    const cli_command *command = args->command;
    if (args_flag(args, "help"))
        return true;
    if (args->operand_count >= command->min_operands && args->operand_count <= command->max_operands)
        return true;
    if (args->operand_count && command->max_operands)
        message("%s %s, not %zu", command->name, command->wants, args->operand_count);
    else
        message("%s %s", command->name, command->wants);
    return false;
}

bool args_parse(cli_args *args, const cli_command *command, const cli_option *common, int argc, char **argv) {
    *args = (struct cli_args){.command = command, .common = common, .failure = EXIT_USAGE};
    args->option_count = option_total(args);
    args->values = calloc(args->option_count, sizeof *args->values);
    args->joined = calloc(args->option_count, sizeof *args->joined);
    args->operands = calloc((size_t)argc + 1, sizeof *args->operands);
    args->again = calloc(2 * (size_t)argc + 1, sizeof *args->again);
    if (!args->values || !args->joined || !args->operands || !args->again) {
        message("no memory");
        return false;
    }
    bool only_operands = false;
    for (int i = 0; i < argc; i++) {
        if (only_operands || argv[i][0] != '-' || !argv[i][1])
            args->operands[args->operand_count++] = argv[i];
        else if (!strcmp(argv[i], "--"))
            only_operands = true;
        else if (!take_option(args, argc, argv, &i))
            return false;
    }
    const char *list;
    for (size_t i = 0; !args_flag(args, "help") && (list = args_again(args, "files-from", i)); i++)
        if (!args_add_operands(args, list))
            return false;
    return check_operands(args);
}

void args_free(cli_args *args) {
    free(args->values);
    free(args->operands);
    free(args->again);
    for (size_t i = 0; args->joined && i < args->option_count; i++)
        free(args->joined[i]);
    free(args->joined);
    for (size_t i = 0; i < args->listed_count; i++)
        free(args->listed[i]);
    free(args->listed);
}

const char *args_text(const cli_args *args, const char *name) {
    size_t i = find_option(args, name, strlen(name), 0);
    return i == SIZE_MAX ? NULL : args->values[i];
}

bool args_flag(const cli_args *args, const char *name) {
    return args_text(args, name) != NULL;
}

const char *args_again(const cli_args *args, const char *name, size_t n) {
    for (size_t i = 0; i < args->again_count; i += 2)
        if (!strcmp(args->again[i], name) && !n--)
            return args->again[i + 1];
    return NULL;
}

const char **args_all(const cli_args *args, const char *name, size_t *count) {
    const char **all = malloc((args->again_count + 1) * sizeof *all);
    *count = 0;
    for (const char *value; all && (value = args_again(args, name, *count)); ++*count)
        all[*count] = value;
    return all;
}

uint64_t args_number(const cli_args *args, const char *name, uint64_t otherwise) {
    size_t i = find_option(args, name, strlen(name), 0);
    const char *text = i == SIZE_MAX ? NULL : args->values[i];
    uint64_t number;
    bool many = text && option_at(args, i)->kind == OPTION_MANY;
    return text && (many ? parse_many(text, &number) : parse_size(text, &number)) ? number : otherwise;
}

bool args_positive(const cli_args *args, const char *name) {
    if (args_number(args, name, 1))
        return true;
    message("--%s takes a number of at least 1", name);
    return false;
}

bool args_share(const cli_args *args, const char *name, double *share) {
    const char *given = args_text(args, name);
    char *end;
    if (!given)
        return true;
    *share = strtod(given, &end);
    if (end != given && !*end && *share > 0 && *share <= 1)
        return true;
    message("--%s takes a share above 0 and up to 1, e.g. 0.8, not %s", name, given);
    return false;
}

/* inputs.c - the inputs of a command: options, signals, messages about bad records, the exit code. */
#include "shared/inputs.h"

#include "common/embed.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/address.h"
#include "shared/outputs.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

volatile int stop_asked;

static void on_signal(int signal) {
    (void)signal;
    int kept = errno;
    __atomic_store_n(&stop_asked, 1, __ATOMIC_RELAXED);
    errno = kept;
}

void catch_signals(void) {
    /* A second signal ends the command at once. */
    struct sigaction stop = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file over the size limit is like a full disk */
}

/* At most this many records of a file are reported of each kind, left out and repaired, and this many plain files with
 * invalid UTF-8; the rest are counted. */
#define MOST_REPORTED 10

/* What was reported so far. Files come in input order, so one is reported at a time. */
static struct {
    char file[sizeof((doppel_error *)NULL)->file];
    uint64_t bad, repaired;  /* records of this file */
    uint64_t repaired_files; /* plain ones */
    uint64_t closed_files;   /* could not even be opened */
    bool operand_left_out;   /* a file that the command line names was not used */
    bool left_out;           /* a record or file was reported that was not used */
    bool failed;             /* the last run was not completed */
    doppel_error whole_file; /* the last report on a whole file */
    /* The first records of a file, all bad for the same reason: they are held back, as a refusal of the file says it in
     * one line. */
    doppel_error first[MOST_REPORTED];
    size_t first_count;
} reported;

/* Reports the first records, which were held back. */
static void report_first(void) {
    for (size_t i = 0; i < reported.first_count; i++)
        message_error(&reported.first[i]);
    reported.first_count = 0;
}

/* Holds a record back if it is one of the first that are all bad for the same reason; false: it is not. */
static bool hold_back(const doppel_error *what) {
    size_t count = reported.first_count;
    if (what->line != reported.bad + 1 || count != reported.bad || count == MOST_REPORTED ||
        (count && strcmp(what->message, reported.first[0].message) != 0))
        return false;
    reported.first[reported.first_count++] = *what;
    return true;
}

/* Ends the reports on a file. */
static void end_file(void) {
    report_first();
    if (reported.bad > MOST_REPORTED)
        message("%s: and %llu more like these", reported.file, (unsigned long long)(reported.bad - MOST_REPORTED));
    if (reported.repaired > MOST_REPORTED)
        message("%s: and %llu more repaired like these", reported.file,
                (unsigned long long)(reported.repaired - MOST_REPORTED));
    reported.bad = reported.repaired = 0;
}

void report_unnamed(void) {
    end_file();
    if (reported.repaired_files > MOST_REPORTED)
        message("and %llu more file%s with invalid UTF-8",
                (unsigned long long)(reported.repaired_files - MOST_REPORTED),
                reported.repaired_files == MOST_REPORTED + 1 ? "" : "s");
    reported.repaired_files = 0;
}

/* Whether the file of an error, shortened to its end if it is long, is one of the operands. */
static bool is_operand(const cli_args *args, const doppel_error *what) {
    for (size_t i = 0; i < args->operand_count; i++) {
        const char *path = args->operands[i], *named = what->file;
        size_t length = strlen(path);
        if (length >= sizeof what->file && !strncmp(named, "...", 3)) {
            named += 3;
            path += length - strlen(named);
        }
        if (!strcmp(named, path))
            return true;
    }
    return false;
}

/* The option of a key that was given; NULL: none was. */
static const char *given_key(const cli_args *args) {
    static const char *const options[] = {"text-key", "html-key", "title-key", "url-key", "id-key"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (args_text(args, options[i]))
            return options[i];
    return NULL;
}

/* Whether the first line of a file has a name as a column, or as a member of a record. What is read of a pipe would be
 * missing later. */
static bool has_name(const char *path, const char *name) {
    char line[4096];
    size_t length = strlen(name);
    struct stat there;
    FILE *file = !stat(path, &there) && S_ISREG(there.st_mode) ? fopen(path, "re") : NULL;
    bool found = false;
    if (!file || !fgets(line, sizeof line, file))
        *line = 0;
    for (const char *p = line; !found && (p = strstr(p, name)); p += length) {
        const char *after = p + length;
        found = (p == line || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)*after);
        if (*line == '{')
            found = p > line && p[-1] == '"' && *after == '"' && after[1 + strspn(after + 1, " ")] == ':';
    }
    if (file)
        fclose(file);
    return found;
}

bool check_split_keys(const cli_args *args) {
    const char *option = given_key(args);
    for (size_t i = 0; option && i < args->operand_count; i++) {
        const char *missing = args->operands[i];
        if (!*missing || !strcmp(missing, "-") || !access(missing, F_OK))
            continue;
        for (size_t j = 0; j < args->operand_count; j++)
            if (has_name(args->operands[j], missing)) {
                message("%s: no such file; did you mean --%s %s,%s? Several keys are separated by commas", missing,
                        option, args_text(args, option), missing);
                return false;
            }
    }
    return true;
}

/* Whether the name of a file may be a slip for another one; two with the same ending are compared without it. */
static bool is_near_name(const char *word, const char *name) {
    const char *ends[] = {strrchr(word, '.'), strrchr(name, '.')};
    char stems[2][256];
    bool same_ending = ends[0] && ends[1] && !strcmp(ends[0], ends[1]);
    const char *near = stems[1];
    snprintf(stems[0], sizeof stems[0], "%.*s", (int)(same_ending ? ends[0] - word : (ptrdiff_t)strlen(word)), word);
    snprintf(stems[1], sizeof stems[1], "%.*s", (int)(same_ending ? ends[1] - name : (ptrdiff_t)strlen(name)), name);
    return nearest_name(stems[0], &near, 1) != NULL || !strcasecmp(word, name);
}

/* The name in the folder of a missing file that was probably meant, put into `best`; false: none was. */
static bool find_near_file(const char *path, char best[256]) {
    const char *slash = strrchr(path, '/'), *word = slash ? slash + 1 : path;
    char folder[sizeof reported.file] = ".";
    size_t least = SIZE_MAX, apart;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s/", (int)(slash - path), path);
    DIR *open = *word ? opendir(folder) : NULL;
    for (const struct dirent *one; open && (one = readdir(open));) {
        if (*one->d_name == '.' || !is_near_name(word, one->d_name) ||
            doppel_levenshtein(doppel_slice_of(word), doppel_slice_of(one->d_name), SIZE_MAX, &apart) != DOPPEL_OK)
            continue;
        if (apart < least || (apart == least && strcmp(one->d_name, best) < 0)) {
            snprintf(best, 256, "%s", one->d_name);
            least = apart;
        }
    }
    if (open)
        closedir(open);
    return least != SIZE_MAX;
}

/* Says that a file could not be opened and, if it is not there, what may have been meant. */
static void report_closed(const doppel_error *what, const cli_args *args) {
    const char *hint = strcmp(args->command->name, "check") != 0 ? "" : address_hint(what->file);
    const char *slash = strrchr(what->file, '/');
    char near[256];
    if (!access(what->file, F_OK) || errno != ENOENT)
        message_error(what);
    else if (find_near_file(what->file, near))
        message("%s: %s; did you mean %.*s%s?", what->file, what->message, slash ? (int)(slash + 1 - what->file) : 0,
                what->file, near);
    else
        message("%s: %s%s", what->file, what->message, hint);
}

/* Something about a whole file. */
static void on_bad_file(const doppel_error *what, const cli_args *args) {
    bool is_path = strcmp(what->file, "-") != 0 && strncmp(what->file, "...", 3) != 0 && !strstr(what->file, "://");
    bool closed = what->code != DOPPEL_OK && is_path && access(what->file, R_OK);
    if (closed)
        report_closed(what, args);
    else if (what->code != DOPPEL_OK || reported.repaired_files++ < MOST_REPORTED)
        message_error(what);
    if (what->code != DOPPEL_OK)
        reported.whole_file = *what;
    reported.closed_files += closed;
    if (what->code != DOPPEL_OK && !reported.operand_left_out)
        reported.operand_left_out = is_operand(args, what);
}

/* doppel_input_options.bad; `user` is the cli_args. A repair is counted, and reported at the end. */
static void on_bad(const doppel_error *what, void *user) {
    reported.left_out = reported.left_out || what->code != DOPPEL_OK;
    if (!what->line || strcmp(reported.file, what->file) != 0) {
        end_file();
        memcpy(reported.file, what->file, sizeof reported.file);
    }
    if (!what->line) {
        on_bad_file(what, user);
    } else if (what->code != DOPPEL_OK) {
        if (!args_flag(user, "strict") && !args_flag(user, "allow-bad") && hold_back(what)) {
            reported.bad++;
            return;
        }
        /* More of the same only count. */
        if (!reported.first_count || reported.bad < MOST_REPORTED ||
            strcmp(what->message, reported.first[0].message) != 0)
            report_first();
        if (reported.bad++ < MOST_REPORTED)
            message_error(what);
    }
    if (what->line && what->code == DOPPEL_OK && reported.repaired++ < MOST_REPORTED)
        message("%s:%llu: repaired: %s", what->file, (unsigned long long)what->line, what->message);
}

/* In the order of doppel_input_options. */
static const char *const against_keys[] = {"against-id-key", "against-url-key", "against-title-key", "against-text-key",
                                           "against-html-key"};

/* The option that gives a key; NULL: none does. */
static const char *option_of(const cli_args *args, const char *key) {
    static const char *const options[] = {"id-key", "url-key", "title-key", "text-key", "html-key"};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (args_text(args, options[i]) == key)
            return options[i];
    return NULL;
}

void warn_unseen_option(const char *key, void *user) {
    const char *option = option_of(user, key);
    if (option)
        message("warning: no record has a field \"%s\", which --%s names", key, option);
}

/* doppel_input_options.unseen */
static void on_unseen(const char *key, void *user) {
    if (option_of(user, key))
        warn_unseen_option(key, user);
    else
        message("warning: no record has a field \"%s\"", key);
}

doppel_input_options reading_options(const cli_args *args) {
    uint64_t threads = args_number(args, "threads", 0);
    return (doppel_input_options){
        .size = sizeof(doppel_input_options),
        .threads = threads < INT_MAX ? (int)threads : INT_MAX,
        .max_record = (size_t)args_number(args, "max-record", 0),
        .strict = args_flag(args, "strict"),
        .id_key = args_text(args, "id-key"),
        .url_key = args_text(args, "url-key"),
        .title_key = args_text(args, "title-key"),
        .text_key = args_text(args, "text-key"),
        .html_key = args_text(args, "html-key"),
        .format = args_text(args, "format"),
        .bad = on_bad,
        .user = (void *)args,
        .progress = message_quiet ? NULL : progress_show,
        .stop = &stop_asked,
        .refuse_bad = !args_flag(args, "allow-bad"),
        .refuse_plain = true,
        .unseen = on_unseen,
        .tables = get_tables() ? get_tables()->read : NULL,
        .run_programs = true,
    };
}

/* doppel_input_options.unseen of --against. Documents of --against need not have the fields of --keep. */
static void on_unseen_known(const char *key, void *user) {
    const cli_args *args = user;
    const char *within = args_text(args, "within"), *across = args_text(args, "across");
    const char *field = within ? within : across;
    for (size_t i = 0; i < sizeof against_keys / sizeof *against_keys; i++)
        if (key == args_text(args, against_keys[i]) || key == args_text(args, against_keys[i] + strlen("against-"))) {
            message("warning: no record of --against has a field \"%s\", which --%s names", key, against_keys[i]);
            return;
        }
    if (field && !strcmp(field, key))
        message("warning: no record of --against has a field \"%s\"", key);
}

doppel_input_options against_options(const cli_args *args) {
    doppel_input_options o = reading_options(args);
    const char **const keys[] = {&o.id_key, &o.url_key, &o.title_key, &o.text_key, &o.html_key};
    o.refuse_plain = false; /* the keys of the other side need not be those of this one */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (args_text(args, against_keys[i])) {
            *keys[i] = args_text(args, against_keys[i]);
            o.refuse_plain = true;
        }
    if (args_text(args, "against-format"))
        o.format = args_text(args, "against-format");
    o.option_prefix = "against-";
    o.unseen = on_unseen_known;
    return o;
}

bool check_against(const cli_args *args) {
    const char *alone = args_text(args, "against-format") ? "against-format" : NULL;
    for (size_t i = 0; i < sizeof against_keys / sizeof *against_keys; i++)
        if (args_text(args, against_keys[i]))
            alone = against_keys[i];
    if (!alone || args_text(args, "against"))
        return true;
    message("--%s needs --against", alone);
    return false;
}

bool is_store_url(const char *text) {
    doppel_engine_needs needs;
    return doppel_engine_get_needs(text, &needs, NULL) == DOPPEL_OK && needs.connects;
}

int against_paths(const cli_args *args, const char ***paths, size_t *count) {
    *paths = args_all(args, "against", count);
    if (!*paths) {
        message("no memory");
        return EXIT_STORE;
    }
    for (size_t i = 0; i < *count; i++)
        if (is_store_url((*paths)[i])) {
            message("--against takes files, folders and index folders; copy a shared store to a folder first: doppel "
                    "export --store URL | doppel import --index DIR -");
            return EXIT_USAGE;
        }
    return EXIT_DONE;
}

/* "3 records left out, 1 record repaired, 2 files could not be read to their end" */
static void report_counts(const doppel_input_counts *counts) {
    char text[240];
    uint64_t closed = reported.closed_files < counts->unopened ? reported.closed_files : counts->unopened;
    size_t used = 0;
    const struct {
        uint64_t count;
        const char *one, *many;
    } parts[] = {
        {counts->bad, "record left out", "records left out"},
        {counts->repaired, "record repaired", "records repaired"},
        {closed, "file could not be opened", "files could not be opened"},
        {counts->unopened - closed, "file could not be read to its end", "files could not be read to their end"}};
    reported.closed_files = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].count)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%llu %s", used ? ", " : "",
                                     (unsigned long long)parts[i].count,
                                     parts[i].count == 1 ? parts[i].one : parts[i].many);
    if (used)
        message("%s", text);
}

/* Whether the error that ended a run, if one did, has been reported already: what `strict` stopped at, or the one file
 * that there is. */
static bool is_reported(doppel_status status, bool strict, const doppel_error *error) {
    return status == DOPPEL_ERROR_INPUT &&
           ((strict && reported.left_out) ||
            (!strcmp(error->file, reported.whole_file.file) && !strcmp(error->message, reported.whole_file.message)));
}

/* The exit code of a run. */
static int end_run(doppel_status status, bool named, const doppel_error *error, const doppel_input_counts *counts) {
    if (status == DOPPEL_ERROR_INTERRUPTED && output_closed() && !stop_asked)
        return EXIT_DONE;
    if (status == DOPPEL_OK)
        return counts->unopened || reported.operand_left_out ? EXIT_INPUT : EXIT_DONE;
    if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (!named && !failure_reported)
        message_error(error);
    return exit_code(status);
}

int reading_ended(doppel_status status, const doppel_input_options *options, const doppel_error *error,
                  const doppel_input_counts *counts) {
    progress_end();
    reported.failed = status != DOPPEL_OK;
    if (status == DOPPEL_ERROR_INPUT && reported.first_count && !strcmp(reported.file, error->file))
        reported.first_count = reported.bad = 0;
    bool named = is_reported(status, options->strict, error);
    if (status != DOPPEL_ERROR_INTERRUPTED || !output_closed()) {
        report_unnamed();
        if (!named || options->strict)
            report_counts(counts);
    }
    return end_run(status, named, error, counts);
}

bool reading_failed(void) {
    return reported.failed;
}

doppel_input_counts add_counts(const doppel_input_counts *a, const doppel_input_counts *b) {
    return (doppel_input_counts){a->documents + b->documents, a->bytes + b->bytes, a->bad + b->bad,
                                 a->repaired + b->repaired, a->unopened + b->unopened};
}

int run_paths(const char *const *paths, size_t count, const doppel_input_options *options, const doppel_work *work,
              doppel_input_counts *counts) {
    doppel_input_counts counted = {0};
    doppel_error error;
    progress_begin("reading");
    doppel_status status = doppel_input_run(paths, count, options, work, &counted, &error);
    if (counts)
        *counts = counted;
    return reading_ended(status, options, &error, &counted);
}

int run_inputs(const cli_args *args, const doppel_work *work, doppel_input_counts *counts) {
    doppel_input_options options = reading_options(args);
    return run_paths(args->operands, args->operand_count, &options, work, counts);
}

void text_counts(text_buffer *out, const doppel_input_counts *counts) {
    text_member_count(out, "documents", counts->documents);
    text_member_count(out, "bytes", counts->bytes);
    text_member_count(out, "bad", counts->bad);
    text_member_count(out, "repaired", counts->repaired);
    text_member_count(out, "unopened", counts->unopened);
}

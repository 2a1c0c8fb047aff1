/* outputs.c - where the output of a command goes: stdout, or a file that is whole or absent.
 *
 * Refused are an output that is read too; one in a folder that is read, where it would be found when the folder is read
 * again; one with the name of another format; one that cannot be written. */
#include "shared/outputs.h"

#include "common/embed.h"
#include "common/message.h"
#include "common/progress.h"
#include "shared/inputs.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes per write: filling this takes far longer than a system call. */
#define ROOM ((size_t)256 << 10)

static atomic_bool closed;

bool output_closed(void) {
    return closed;
}

/* Writes all of it; `name` is the file's name in messages. */
static doppel_status write_all(int file, const char *name, const char *bytes, size_t length) {
    while (length) {
        ssize_t written = write(file, bytes, length);
        if (written >= 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (errno == EPIPE) {
            closed = true;
            return DOPPEL_ERROR_INTERRUPTED;
        } else if (errno != EINTR) {
            message("cannot write to %s: %s", name, strerror(errno));
            failure_reported = true;
            return DOPPEL_ERROR_STORE;
        }
    }
    return DOPPEL_OK;
}

doppel_status write_stdout(void *user, doppel_slice bytes) {
    (void)user;
    if (isatty(STDOUT_FILENO))
        progress_clear();
    return write_all(STDOUT_FILENO, "stdout", bytes.data, bytes.length);
}

int finish_stdout(int code) {
    errno = 0;
    if (!fflush(stdout) && !ferror(stdout))
        return code;
    if (errno == EPIPE)
        return code;
    message("cannot write to stdout: %s", strerror(errno));
    return code ? code : EXIT_STORE;
}

int print_text(text_buffer *t, int code) {
    if (t->failed) {
        message("no memory");
        code = code ? code : EXIT_STORE;
    } else if (t->length) {
        fwrite(t->data, 1, t->length, stdout);
    }
    text_free(t);
    return code;
}

int finish_text(text_buffer *t, int code) {
    return finish_stdout(print_text(t, code));
}

doppel_status write_id(const doppel_document *document, doppel_output *output) {
    const char *p = document->id.data;
    size_t left = document->id.length;
    doppel_status status = DOPPEL_OK;
    while (left && status == DOPPEL_OK) {
        safe_escape escape;
        size_t run = safe_run(p, left, true, &escape), taken = run ? run : escape.taken;
        status = run ? doppel_output_write(output, (doppel_slice){p, run})
                     : doppel_output_write(output, doppel_slice_of(escape.text));
        p += taken;
        left -= taken;
    }
    return status;
}

/* ---- writers ---- */

bool is_stdout(const char *path) {
    static const char *const names[] = {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"};
    for (size_t i = 0; path && i < sizeof names / sizeof *names; i++)
        if (!strcmp(path, names[i]))
            return true;
    return !path;
}

int output_threads(const cli_args *args) {
    uint64_t threads = args_number(args, "threads", 0);
    return threads < INT_MAX ? (int)threads : INT_MAX;
}

int writer_open(writer *w, const char *path, int threads) {
    doppel_error error = {0};
    *w = (writer){.bytes = malloc(ROOM)};
    if (!w->bytes) {
        message("no memory");
        return EXIT_STORE;
    }
    if (is_stdout(path) || doppel_writer_open(&w->file, path, threads, &error) == DOPPEL_OK)
        return EXIT_DONE;
    message_error(&error);
    return EXIT_STORE;
}

doppel_status writer_flush(writer *w) {
    doppel_error error = {0};
    size_t length = w->used;
    w->used = 0;
    if (!length)
        return DOPPEL_OK;
    if (!w->file)
        return write_stdout(NULL, (doppel_slice){w->bytes, length});
    doppel_status status = doppel_writer_write(w->file, (doppel_slice){w->bytes, length}, &error);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    message_error(&error);
    failure_reported = true;
    return DOPPEL_ERROR_STORE;
}

doppel_status writer_add(writer *w, const void *bytes, size_t length) {
    doppel_status status = DOPPEL_OK;
    while (length && status == DOPPEL_OK) {
        size_t part = length < ROOM - w->used ? length : ROOM - w->used;
        memcpy(w->bytes + w->used, bytes, part);
        w->used += part;
        bytes = (const char *)bytes + part;
        length -= part;
        if (w->used == ROOM)
            status = writer_flush(w);
    }
    return status;
}

doppel_status writer_add_text(writer *w, text_buffer *text) {
    doppel_status status = text->failed ? DOPPEL_ERROR_MEMORY : writer_add(w, text->data, text->length);
    text->length = 0;
    return status;
}

char *writer_line(writer *w) {
    if (ROOM - w->used < WRITER_LINE && writer_flush(w) != DOPPEL_OK)
        return NULL;
    return w->bytes + w->used;
}

int writer_open_pieces(writer *w, const char *path, int threads) {
    doppel_error error = {0};
    bool to_stdout = is_stdout(path);
    *w = (writer){.terminal = to_stdout && isatty(STDOUT_FILENO)};
    if (doppel_writer_open(&w->file, to_stdout ? NULL : path, threads, &error) == DOPPEL_OK)
        return EXIT_DONE;
    message_error(&error);
    return EXIT_STORE;
}

doppel_status writer_put(writer *w, uint64_t number, doppel_slice bytes) {
    doppel_error error = {0};
    if (w->terminal)
        progress_clear();
    doppel_status status = doppel_writer_put(w->file, number, bytes, &error);
    if (status == DOPPEL_OK)
        return DOPPEL_OK;
    if (status == DOPPEL_ERROR_INTERRUPTED) {
        closed = true;
        return status;
    }
    /* All threads see it; one reports it. */
    if (!atomic_exchange(&w->reported, true)) {
        message_error(&error);
        failure_reported = true;
    }
    return DOPPEL_ERROR_STORE;
}

doppel_status writer_result(doppel_status status) {
    if (status == DOPPEL_ERROR_INTERRUPTED && !stop_asked)
        closed = true;
    return status;
}

int writer_close(writer *w, int code) {
    doppel_error error = {0};
    if (code == EXIT_DONE && w->bytes) {
        doppel_status status = writer_flush(w);
        if (status != DOPPEL_OK && !closed)
            code = exit_code(status);
    }
    doppel_status finished = doppel_writer_finish(w->file, code == EXIT_DONE, &error);
    if (finished == DOPPEL_ERROR_INTERRUPTED) {
        closed = true;
    } else if (finished != DOPPEL_OK && code == EXIT_DONE) {
        message_error(&error);
        code = EXIT_STORE;
    }
    free(w->bytes);
    *w = (writer){0};
    return code;
}

/* ---- which outputs are refused ---- */

/* The options whose values are written. */
static const char *const written[] = {"output",  "removed", "removed-documents", "save-sketches", "spans",
                                      "dropped", "html"};
enum { WRITTEN = sizeof written / sizeof *written };

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    if (!strcmp(a, b))
        return true;
    return !stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder of a file, or the file itself if it exists, with links resolved; NULL if the folder does not exist. To be
 * freed. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
    char *there = realpath(path, NULL);
    if (there)
        return there;
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char *whole = folder ? realpath(folder, NULL) : NULL;
    free(folder);
    return whole;
}

/* The path of an output that does not exist yet, with links resolved as the writer of files does; NULL if it cannot be
 * determined. To be freed. */
static char *new_place(const char *path) {
    enum { MOST_LINKS = 40 };
    char at[PATH_MAX], target[PATH_MAX], *place = NULL;
    if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
        return NULL;
    for (int links = 0; links < MOST_LINKS; links++) {
        ssize_t length = readlink(at, target, sizeof target - 1);
        if (length < 0)
            break;
        target[length] = 0;
        char *slash = strrchr(at, '/');
        size_t folder = slash && *target != '/' ? (size_t)(slash - at) + 1 : 0;
        if (folder + (size_t)length >= sizeof at)
            return NULL;
        memcpy(at + folder, target, (size_t)length + 1);
    }
    const char *slash = strrchr(at, '/');
    char *folder = folder_of(at);
    if (folder && asprintf(&place, "%s/%s", folder, slash ? slash + 1 : at) < 0)
        place = NULL;
    free(folder);
    return place;
}

/* Whether two outputs are the same file, which need not exist yet. */
static bool same_output(const char *a, const char *b) {
    struct stat there;
    if (same_file(a, b) || (is_stdout(a) && is_stdout(b)))
        return true;
    if (!stat(a, &there) || !stat(b, &there))
        return false;
    char *x = new_place(a), *y = new_place(b);
    bool same = x && y && !strcmp(x, y);
    free(x);
    free(y);
    return same;
}

/* Whether a file is below a folder. */
static bool is_below(const char *path, const char *folder) {
    struct stat found;
    if (stat(folder, &found) || !S_ISDIR(found.st_mode))
        return false;
    char *top = realpath(folder, NULL), *place = folder_of(path);
    size_t length = top ? strlen(top) : 0;
    bool below = top && place && !strncmp(place, top, length) &&
                 (!place[length] || place[length] == '/' || top[length - 1] == '/');
    free(top);
    free(place);
    return below;
}

/* Whether a file matches a pattern. */
static bool is_matched(const char *path, const char *pattern) {
    glob_t found = {0};
    bool matched = false;
    struct stat there;
    if (!stat(path, &there) && !glob(pattern, GLOB_NOSORT, NULL, &found))
        for (size_t i = 0; i < found.gl_pathc && !matched; i++)
            matched = same_file(path, found.gl_pathv[i]);
    globfree(&found);
    return matched;
}

bool check_output(const char *option, const char *path, const char *input) {
    struct stat there;
    if (is_stdout(path) || !input || !strcmp(input, "-") || (!stat(path, &there) && !S_ISREG(there.st_mode)))
        return true;
    if (same_file(path, input) || (strpbrk(input, "*?[") && is_matched(path, input)))
        message("%s is an input: choose another %s for --%s", path, strcmp(option, "output-dir") ? "file" : "folder",
                option);
    else if (is_below(path, input))
        message("%s is inside %s, which is an input: choose another folder for --%s", path, input, option);
    else
        return true;
    return false;
}

bool check_outputs(const cli_args *args) {
    for (size_t i = 0; i < WRITTEN; i++) {
        const char *path = args_text(args, written[i]), *input;
        for (size_t j = 0; path && j < i; j++)
            if (args_text(args, written[j]) && same_output(args_text(args, written[j]), path)) {
                message("--%s and --%s name the same file: choose another for one of them", written[j], written[i]);
                return false;
            }
        if (i && path && is_stdout(path) && args_flag(args, "json")) {
            message("--json prints to stdout, where --%s goes: give it the name of a file", written[i]);
            return false;
        }
        for (size_t j = 0; j < args->operand_count; j++)
            if (!check_output(written[i], path, args->operands[j]))
                return false;
        static const char *const read[] = {"against", "in"};
        for (size_t k = 0; k < sizeof read / sizeof *read; k++)
            for (size_t j = 0; (input = args_again(args, read[k], j)); j++)
                if (!check_output(written[i], path, input))
                    return false;
    }
    return true;
}

static bool ends_in(const char *path, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(path + length - size, ending, size);
}

/* Whether a command that writes documents has only --removed or --removed-documents as output. */
static bool wants_removed_alone(const cli_args *args) {
    return !args_text(args, "output") && !args_text(args, "output-dir") &&
           (args_text(args, "removed") || args_text(args, "removed-documents"));
}

bool check_json(const cli_args *args) {
    if (!args_flag(args, "json") || !is_stdout(args_text(args, "output")) || args_text(args, "output-dir") ||
        wants_removed_alone(args))
        return true;
    message("--json prints a summary: it needs --output FILE");
    return false;
}

bool is_table_name(const char *path) {
    const embedded_tables *tables = get_tables();
    return tables && tables->read->claims(path, tables->read->user);
}

bool check_jsonl_name(const char *path) {
    const char *format = doppel_input_format(path);
    if (!format || !strcmp(format, "JSONL"))
        return true;
    size_t length = strlen(path);
    const char *packed = ends_in(path, length, ".gz") ? ".gz" : ends_in(path, length, ".zst") ? ".zst" : "";
    length -= strlen(packed);
    const char *ending = memrchr(path, '.', length);
    message("%s: documents are written as JSONL: choose a name such as %.*s.jsonl%s", path, (int)(ending - path), path,
            packed);
    return false;
}

/* Whether an input is a table, or a folder with one in it. */
static bool has_tables(const char *input) {
    DIR *folder = opendir(input);
    bool found = !folder && is_table_name(input);
    for (const struct dirent *entry; folder && !found && (entry = readdir(folder));) {
        char path[PATH_MAX];
        bool inside = entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
                      snprintf(path, sizeof path, "%s/%s", input, entry->d_name) < (int)sizeof path;
        found = inside ? has_tables(path) : entry->d_type != DT_DIR && is_table_name(entry->d_name);
    }
    if (folder)
        closedir(folder);
    return found;
}

/* Whether one of the inputs is a table, or a folder with one in it. */
static bool reads_tables(const cli_args *args) {
    for (size_t i = 0; get_tables() && i < args->operand_count; i++)
        if (has_tables(args->operands[i]))
            return true;
    return false;
}

bool writes_tables(const cli_args *args) {
    const char *out = args_text(args, "output");
    return (out && is_table_name(out)) || (args_text(args, "output-dir") && reads_tables(args));
}

/* Whether a name ends in .json, compressed or not. */
static bool is_json_name(const char *path) {
    size_t length = strlen(path);
    const char *const packed[] = {".gz", ".zst", ".bz2", ".xz"};
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (ends_in(path, length, packed[i])) {
            length -= strlen(packed[i]);
            break;
        }
    return ends_in(path, length, ".json");
}

void tell_jsonl(const cli_args *args) {
    const char *out = args_text(args, "output");
    if (!out || args_flag(args, "dry-run"))
        return;
    if (!is_stdout(out) && is_json_name(out))
        message_summary("%s is JSONL: an object on each line, not one array", out);
    if (!is_table_name(out) && reads_tables(args))
        message_summary("rows of Parquet become JSONL with id, url, title and text only; -o NAME.parquet keeps all "
                        "columns");
}

/* The name of a format that has rows or lines; NULL for others, and for NULL. */
static const char *rows_format(const char *name) {
    static const char *const with_rows[] = {"CSV", "TSV", "lines"};
    for (size_t i = 0; name && i < sizeof with_rows / sizeof *with_rows; i++)
        if (!strcasecmp(name, with_rows[i]))
            return with_rows[i];
    return NULL;
}

/* Whether rows go to an output of this name. */
static bool rows_go_to(const cli_args *args, const char *out) {
    const char *asked = args_text(args, "format");
    if (!out)
        return false;
    const char *named = is_stdout(out) ? NULL : doppel_input_format(out);
    if (args_flag(args, "annotate")) /* to other names and to stdout go records, with members added */
        return named && (!strcmp(named, "CSV") || !strcmp(named, "TSV"));
    if (named || asked)
        return rows_format(named ? named : asked);
    for (size_t i = 0; i < args->operand_count; i++)
        if (!rows_format(doppel_input_format(args->operands[i])))
            return false;
    return args->operand_count;
}

bool writes_rows(const cli_args *args) {
    const char *out = args_text(args, "output");
    return rows_go_to(args, out ? out : args_text(args, "removed-documents"));
}

/* Prints a message and returns false when rows would go under the name of another format. */
static bool check_rows_name(const cli_args *args, const char *out) {
    const char *asked = args_text(args, "format");
    const char *named = is_stdout(out) ? NULL : doppel_input_format(out);
    for (size_t i = 0; named && i < args->operand_count; i++) {
        const char *format = asked ? asked : doppel_input_format(args->operands[i]);
        if (!format || !strcasecmp(format, named))
            continue;
        message("%s: %s is read as %s: choose another name, such as one that ends in %s", out, args->operands[i],
                !asked && is_json_name(args->operands[i]) ? "JSON" : format,
                !strcasecmp(format, "TSV")   ? ".tsv"
                : !strcasecmp(format, "CSV") ? ".csv"
                : rows_format(format)        ? ".txt"
                                             : ".jsonl");
        return false;
    }
    return true;
}

/* Prints a message and returns false when documents would go to a folder, or under the name of another format. */
static bool check_documents_name(const cli_args *args, const char *option, const char *out, bool rows) {
    struct stat there;
    size_t length = strlen(out);
    bool exists = !is_stdout(out) && !stat(out, &there) && S_ISDIR(there.st_mode);
    if (exists || (length && out[length - 1] == '/')) {
        const char *is = exists ? "is a folder" : "is the name of a folder";
        if (!strcmp(option, "output") && (rows || get_tables()))
            message("%s %s: --output-dir %s writes one file for each input there; or give -o the name of a file", out,
                    is, out);
        else
            message("%s %s: give --%s the name of a file", out, is, option);
        return false;
    }
    return rows && rows_go_to(args, out) ? check_rows_name(args, out) : check_jsonl_name(out);
}

/* Prints a message and returns false when --removed-documents cannot be combined with the other options. */
static bool check_removed_documents(const cli_args *args) {
    const char *out = args_text(args, "output"), *removed = args_text(args, "removed-documents");
    if (!removed)
        return true;
    if (args_flag(args, "dry-run"))
        message("--dry-run writes no documents: leave out --removed-documents, or --dry-run and --output");
    else if (args_flag(args, "annotate"))
        message("--annotate writes one file: leave out --removed-documents");
    else if (args_text(args, "output-dir"))
        message("--removed-documents writes one file: give --output OUT instead of --output-dir");
    else if (writes_tables(args))
        message("--removed-documents does not write Parquet: --annotate writes all rows, and marks the removed ones");
    else if (out && rows_go_to(args, out) != rows_go_to(args, removed))
        message("--output %s and --removed-documents %s: give both the name of one format", out, removed);
    else
        return check_documents_name(args, "removed-documents", removed, true);
    return false;
}

bool check_documents_output(const cli_args *args, bool rows) {
    const char *out = args_text(args, "output"), *folder = args_text(args, "output-dir");
    bool dry = args_flag(args, "dry-run"), alone = wants_removed_alone(args);
    if (alone && args_flag(args, "annotate") && !dry)
        message("--annotate needs an output: -o OUT (- for stdout)");
    else if (!out && !folder && !dry && !alone)
        message("%s needs an output: -o OUT (- for stdout), %s--dry-run", args->command->name,
                rows ? "--removed FILE for a list of the removed documents, or " : "or ");
    else if (out && folder)
        message("--output and --output-dir: give one of them");
    else if (folder && !rows && !get_tables())
        message("--output-dir writes Parquet: " WHERE_PARQUET_IS);
    else if (rows && args_flag(args, "annotate") && folder && !writes_tables(args))
        message("--annotate writes one file: give --output OUT instead of --output-dir");
    else if (rows && args_text(args, "format") && writes_tables(args))
        message("--format cannot be used with Parquet inputs: leave it out");
    else
        return check_removed_documents(args) &&
               (dry || !out || writes_tables(args) || check_documents_name(args, "output", out, rows));
    return false;
}

int try_outputs(const cli_args *args) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < WRITTEN && code == EXIT_DONE; i++) {
        const char *path = args_text(args, written[i]);
        struct stat there;
        writer w;
        bool dry = !i && args_flag(args, "dry-run");
        /* Tables have a writer of their own. A pipe is not tried: its reader would see the close as the end. */
        if (dry || is_stdout(path) || is_table_name(path) ||
            (!stat(path, &there) && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)))
            continue;
        code = writer_open(&w, path, 1);
        writer_close(&w, EXIT_STORE);
    }
    return code;
}

bool nothing_read(const cli_args *args, const doppel_input_counts *counts) {
    if (!counts->unopened || counts->documents || args_flag(args, "resume"))
        return false;
    if (!is_stdout(args_text(args, "output")))
        message("no document was read; %s is not written", args_text(args, "output"));
    return true;
}

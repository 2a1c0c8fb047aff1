/* outputs.c - which outputs are refused: one that is read too; one that stands in a folder which is read, for it would
 * be found there when the folder is read again; one with the name of another format; one that cannot be written. */
#include "outputs.h"

#include "common/message.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The options whose values are written. */
static const char *const written[] = {"output", "removed", "save-sketches"};
enum { WRITTEN = sizeof written / sizeof *written };

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    if (!strcmp(a, b))
        return true;
    return !stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder a file stands in, or the file itself if it is there, with links resolved; NULL where there is none. To be
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

/* Whether a file stands below a folder. */
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

/* Whether a file is one of those that a pattern stands for. */
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
        message("%s is read and would be written: choose another name for --%s", path, option);
    else if (is_below(path, input))
        message("%s stands in %s, which is read: choose another folder for --%s", path, input, option);
    else
        return true;
    return false;
}

bool check_outputs(const cli_args *args) {
    for (size_t i = 0; i < WRITTEN; i++) {
        const char *path = args_text(args, written[i]), *against;
        for (size_t j = 0; path && j < i; j++)
            if (args_text(args, written[j]) && same_file(args_text(args, written[j]), path)) {
                message("--%s and --%s are the same: choose another name for one of them", written[j], written[i]);
                return false;
            }
        for (size_t j = 0; j < args->operand_count; j++)
            if (!check_output(written[i], path, args->operands[j]))
                return false;
        for (size_t j = 0; (against = args_again(args, "against", j)); j++)
            if (!check_output(written[i], path, against))
                return false;
    }
    return true;
}

static bool ends_in(const char *path, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length > size && !strncasecmp(path + length - size, ending, size);
}

bool check_jsonl_name(const char *path) {
    static const char *const others[] = {".csv", ".tsv", ".warc", ".wet", ".arc", ".mbox", ".html", ".htm", ".xhtml"};
    size_t length = strlen(path);
    const char *packed = ends_in(path, length, ".gz") ? ".gz" : ends_in(path, length, ".zst") ? ".zst" : "";
    length -= strlen(packed);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (ends_in(path, length, others[i])) {
            message("%s: documents are written as JSONL: choose a name such as %.*s.jsonl%s", path,
                    (int)(length - strlen(others[i])), path, packed);
            return false;
        }
    return true;
}

int try_outputs(const cli_args *args) {
    int code = EXIT_DONE;
    for (size_t i = 0; i < WRITTEN && code == EXIT_DONE; i++) {
        const char *path = args_text(args, written[i]);
        struct stat there;
        writer w;
        /* Who reads from a pipe takes its closing for the end. */
        if (is_stdout(path) || (!stat(path, &there) && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode)))
            continue;
        code = writer_open(&w, path);
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

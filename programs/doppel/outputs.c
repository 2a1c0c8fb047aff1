/* outputs.c - which outputs are refused: one that is read too, and one that stands in a folder which is read, for it
 * would be found there when the folder is read again. */
#include "outputs.h"

#include "common/message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool is_file(const char *path) {
    return path && strcmp(path, "-") != 0;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    if (!strcmp(a, b))
        return true;
    return !stat(a, &x) && !stat(b, &y) && S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The folder a file stands in, with links resolved; NULL where there is none. To be freed. */
static char *folder_of(const char *path) {
    const char *slash = strrchr(path, '/');
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

bool check_output(const char *option, const char *path, const char *input) {
    struct stat there;
    if (!is_file(path) || !is_file(input) || (!stat(path, &there) && !S_ISREG(there.st_mode)))
        return true;
    if (same_file(path, input))
        message("%s is read and would be written: choose another name for --%s", path, option);
    else if (is_below(path, input))
        message("%s stands in %s, which is read: choose another folder for --%s", path, input, option);
    else
        return true;
    return false;
}

bool check_outputs(const cli_args *args) {
    static const char *const options[] = {"output", "removed"};
    const char *output = args_text(args, "output"), *removed = args_text(args, "removed");
    if (output && removed && same_file(output, removed)) {
        message("--output and --removed are the same: choose another name for one of them");
        return false;
    }
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *path = args_text(args, options[i]);
        for (size_t j = 0; j < args->operand_count; j++)
            if (!check_output(options[i], path, args->operands[j]))
                return false;
        if (!check_output(options[i], path, args_text(args, "against")))
            return false;
    }
    return true;
}

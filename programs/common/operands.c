/* operands.c - operands from a file: a path a line, for more of them than a command line holds. */
#include "args.h"
#include "message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads all of a file, or of stdin for "-", NUL-ended. NULL, and errno, when that cannot be. */
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

/* Makes operands of the lines, in place; those of white space alone are none. */
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

bool args_add_operands(cli_args *args, const char *path) {
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
        message("%s: %s", path, errno == EILSEQ ? "has a NUL byte, so it is no list of paths" : strerror(errno));
    else if (!grown || !add_lines(args, text, length))
        message("no memory");
    else if (!args->operand_count)
        message("%s: names no file", path);
    else {
        args->failure = EXIT_USAGE;
        return true;
    }
    return false;
}

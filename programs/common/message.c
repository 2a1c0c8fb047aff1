/* message.c - messages on stderr, and text that is safe to print. */
#include "common/message.h"

#include "common/progress.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

bool failure_reported, message_quiet;

/* Whether the bytes at p control something: ASCII controls, DEL, and U+0080 to U+009F in UTF-8. */
static bool is_control(const char *p, size_t length) {
    unsigned char c = (unsigned char)*p;
    if (c < 0x20 || c == 0x7F)
        return true;
    return c == 0xC2 && length > 1 && (unsigned char)p[1] >= 0x80 && (unsigned char)p[1] < 0xA0;
}

static void set_escape(safe_escape *escape, const char *p) {
    static const char plain[] = "\t\n\r\\", letters[] = "tnr\\";
    const char *found = *p ? strchr(plain, *p) : NULL;
    escape->taken = (unsigned char)*p == 0xC2 ? 2 : 1;
    if (found)
        snprintf(escape->text, sizeof escape->text, "\\%c", letters[found - plain]);
    else if (escape->taken == 2)
        snprintf(escape->text, sizeof escape->text, "\\xc2\\x%02x", (unsigned char)p[1]);
    else
        snprintf(escape->text, sizeof escape->text, "\\x%02x", (unsigned char)*p);
}

size_t safe_run(const char *p, size_t length, bool backslash, safe_escape *escape) {
    size_t run = 0;
    while (run < length && !is_control(p + run, length - run) && !(backslash && p[run] == '\\'))
        run++;
    if (!run)
        set_escape(escape, p);
    return run;
}

static void print_escaped(FILE *file, const char *text, size_t length, bool backslash) {
    safe_escape escape;
    while (length) {
        size_t run = safe_run(text, length, backslash, &escape), taken = run ? run : escape.taken;
        if (run)
            fwrite(text, 1, run, file);
        else
            fputs(escape.text, file);
        text += taken;
        length -= taken;
    }
}

void print_safe(FILE *file, const char *text, size_t length) {
    print_escaped(file, text, length, true);
}

static void print_message(const char *format, va_list args) {
    char text[2048];
    vsnprintf(text, sizeof text, format, args);
    progress_clear();
    flockfile(stderr);
    fputs("doppel: ", stderr);
    print_escaped(stderr, text, strlen(text), false);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void message(const char *format, ...) {
    va_list args;
    va_start(args, format);
    print_message(format, args);
    va_end(args);
}

void message_summary(const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!message_quiet)
        print_message(format, args);
    va_end(args);
}

void message_error(const doppel_error *error) {
    if (error->file[0] && error->line)
        message("%s:%llu: %s", error->file, (unsigned long long)error->line, error->message);
    else if (error->file[0])
        message("%s: %s", error->file, error->message);
    else
        message("%s", error->message);
}

int terminal_columns(FILE *file) {
    struct winsize size;
    return ioctl(fileno(file), TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

int exit_code(doppel_status status) {
    return (int)status <= DOPPEL_ERROR_INTERRUPTED ? (int)status : DOPPEL_ERROR_STORE;
}

/* message.c - messages on stderr, and text that is safe to print. */
#include "common/message.h"

#include "common/progress.h"

#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

bool failure_told;

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

void message(const char *format, ...) {
    char text[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    progress_clear();
    fputs("doppel: ", stderr);
    print_escaped(stderr, text, strlen(text), false);
    fputc('\n', stderr);
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

/* The size of the valid UTF-8 sequence at p, or 0. Code points beyond ASCII only. */
static size_t valid_sequence(const unsigned char *p, size_t length) {
    static const unsigned char lead_low[] = {0xC2, 0xE0, 0xF0}, lead_high[] = {0xDF, 0xEF, 0xF4};
    for (size_t size = 2; size <= 4 && size <= length; size++) {
        if (*p < lead_low[size - 2] || *p > lead_high[size - 2])
            continue;
        unsigned char low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80;
        unsigned char high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF;
        if (p[1] < low || p[1] > high)
            return 0;
        for (size_t i = 2; i < size; i++)
            if ((p[i] & 0xC0) != 0x80)
                return 0;
        return size;
    }
    return 0;
}

/* How many bytes at p a JSON string holds as they are. */
static size_t plain_run(const unsigned char *p, const unsigned char *end) {
    const unsigned char *start = p;
    while (p < end && *p >= 0x20 && *p < 0x7F && *p != '"' && *p != '\\')
        p++;
    return (size_t)(p - start);
}

void print_json(FILE *file, const char *text, size_t length) {
    const unsigned char *p = (const unsigned char *)text, *end = p + length;
    fputc('"', file);
    while (p < end) {
        size_t run = plain_run(p, end);
        fwrite(p, 1, run, file);
        p += run;
        if (p == end)
            break;
        size_t size = *p >= 0x80 ? valid_sequence(p, (size_t)(end - p)) : 1;
        const char *letter = *p >= 0x08 && *p <= 0x0D && *p != 0x0B ? &"btn?fr"[*p - 0x08] : NULL;
        if (!size)
            fputs("\xEF\xBF\xBD", file);
        else if (letter)
            fprintf(file, "\\%c", *letter);
        else if (*p < 0x20 || *p == 0x7F)
            fprintf(file, "\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            fprintf(file, "\\%c", *p);
        else
            fwrite(p, 1, size, file);
        p += size ? size : 1;
    }
    fputc('"', file);
}

void print_hex(FILE *file, const uint8_t *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        fprintf(file, "%02x", bytes[i]);
}

/* fingerprints.c - files of fingerprints: what they are, and opening them. */
#include "fingerprints.h"

#include "common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Text is told from numbers by so many bytes: that 64 random numbers are all text happens to nobody. */
#define LOOKED_AT 512

/* ---- what a file is ---- */

static const struct {
    const char *ending;
    file_format format;
} endings[] = {
    {".u64", FORMAT_RAW},    {".u128", FORMAT_RAW},     {".bin", FORMAT_RAW}, {".raw", FORMAT_RAW},
    {".hex", FORMAT_HEX},    {".txt", FORMAT_HEX},      {".tsv", FORMAT_HEX}, {".jsonl", FORMAT_JSONL},
    {".json", FORMAT_JSONL}, {".ndjson", FORMAT_JSONL},
};

static bool ends_with(const char *text, size_t length, const char *ending) {
    size_t size = strlen(ending);
    return length >= size && !memcmp(text + length - size, ending, size);
}

/* By its name; *packed: it is compressed. */
static file_format format_of_name(const char *path, bool *packed) {
    size_t length = strlen(path);
    *packed = ends_with(path, length, ".gz") || ends_with(path, length, ".zst");
    if (*packed)
        length = (size_t)(strrchr(path, '.') - path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_with(path, length, endings[i].ending))
            return endings[i].format;
    return FORMAT_UNKNOWN;
}

/* Whether there are no control characters, and up to the first tab or line end nothing beyond ASCII: names may be in
 * any script, but digits are not. */
static bool is_text(const char *bytes, size_t length) {
    bool name = false;
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        bool space = byte == '\t' || byte == '\n' || byte == '\r';
        if (!space && (byte < 0x20 || (byte > 0x7E && !name)))
            return false;
        name = name || space;
    }
    return true;
}

/* By its first bytes: text, or numbers. */
static file_format format_of_content(const char *bytes, size_t length) {
    if (!length || !is_text(bytes, length < LOOKED_AT ? length : LOOKED_AT))
        return FORMAT_RAW;
    return bytes[0] == '{' ? FORMAT_JSONL : FORMAT_HEX;
}

static bool looks_packed(const char *bytes, size_t length) {
    return length > 4 && (!memcmp(bytes, "\x1f\x8b\x08", 3) || !memcmp(bytes, "\x28\xb5\x2f\xfd", 4));
}

/* What --from says; false when that is nothing. */
static bool format_of_option(const cli_args *args, file_format *format) {
    static const char *const names[] = {"", "raw", "hex", "jsonl"};
    const char *from = args_text(args, "from");
    *format = FORMAT_UNKNOWN;
    for (int i = FORMAT_RAW; from && i <= FORMAT_JSONL; i++)
        if (!strcmp(from, names[i]))
            *format = (file_format)i;
    if (!from || *format != FORMAT_UNKNOWN)
        return true;
    message("--from takes raw, hex or jsonl, not %s", from);
    return false;
}

/* ---- opening ---- */

/* *plain: a file that can be opened again, and read as often as one likes. */
static int open_file(fingerprint_file *f, bool *plain) {
    struct stat about;
    bool is_stdin = !strcmp(f->path, "-");
    f->file = is_stdin ? dup(STDIN_FILENO) : open(f->path, O_RDONLY | O_CLOEXEC);
    if (f->file < 0 || fstat(f->file, &about)) {
        message("%s: cannot open: %s", f->path, strerror(errno));
        return EXIT_INPUT;
    }
    if (S_ISDIR(about.st_mode)) {
        message("%s: is a folder; %s takes files of fingerprints", f->path, f->args->command->name);
        return EXIT_INPUT;
    }
    *plain = S_ISREG(about.st_mode) && !is_stdin;
    return EXIT_DONE;
}

/* Tells the format from the content, where neither --from nor the name does. */
static int look_inside(fingerprint_file *f, bool plain) {
    doppel_status status = fingerprints_fill(f, LOOKED_AT);
    if (status != DOPPEL_OK)
        return exit_code(status);
    if (looks_packed(f->bytes, f->filled)) {
        message("%s: is compressed, and only JSONL is read so: say --from jsonl, or unpack it to stdin", f->path);
        return EXIT_INPUT;
    }
    f->format = format_of_content(f->bytes, f->filled);
    if (f->format != FORMAT_JSONL || plain)
        return EXIT_DONE;
    message("%s: looks like JSONL: say --from jsonl", f->path);
    return EXIT_USAGE;
}

/* The width where nobody says it: that of the first line, or as the name says. */
static int tell_bits(fingerprint_file *f) {
    if (f->bits)
        return EXIT_DONE;
    if (f->format == FORMAT_RAW) {
        f->bits = ends_with(f->path, strlen(f->path), ".u128") ? 128 : 64;
        return EXIT_DONE;
    }
    doppel_status status = fingerprints_fill(f, LOOKED_AT);
    f->bits = status == DOPPEL_OK && count_digits(f->bytes, f->filled) > 16 ? 128 : 64;
    return exit_code(status);
}

/* What the join reads: the file itself where it can, else what a callback gives. */
static int set_source(fingerprint_file *f, bool plain) {
    f->source = (doppel_source){.size = sizeof f->source};
    if (f->format == FORMAT_JSONL) {
        int code = read_jsonl(f);
        f->source.array = f->held;
        f->source.count = f->held_words / (f->bits > 64 ? 2 : 1);
        return code;
    }
    int code = tell_bits(f);
    if (f->format == FORMAT_RAW && plain) {
        f->source.path = f->path;
    } else {
        f->source.read = f->format == FORMAT_RAW ? read_raw : read_lines;
        f->source.user = f;
    }
    return code;
}

int fingerprints_open(fingerprint_file *f, const char *path) {
    bool packed = false, plain = false;
    f->path = path;
    f->file = -1;
    if (!format_of_option(f->args, &f->format))
        return EXIT_USAGE;
    if (f->format == FORMAT_UNKNOWN)
        f->format = format_of_name(path, &packed);
    if (packed && f->format != FORMAT_UNKNOWN && f->format != FORMAT_JSONL) {
        message("%s: is compressed, and only JSONL is read so: unpack it to stdin", path);
        return EXIT_INPUT;
    }
    int code = f->format == FORMAT_JSONL ? EXIT_DONE : open_file(f, &plain);
    if (code == EXIT_DONE && f->format == FORMAT_UNKNOWN)
        code = look_inside(f, plain);
    return code == EXIT_DONE ? set_source(f, plain) : code;
}

void fingerprints_close(fingerprint_file *f) {
    if (f->path && f->file >= 0)
        close(f->file);
    free(f->bytes);
    free(f->held);
}

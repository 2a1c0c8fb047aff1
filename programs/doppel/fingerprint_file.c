/* fingerprint_file.c - files of fingerprints: what they are, opening and reading them. */
#include "fingerprint_file.h"

#include "common/message.h"
#include "shared/inputs.h"
#include "shared/outputs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes read at once; and the longest line. */
#define ROOM ((size_t)256 << 10)
#define LONGEST ((size_t)64 << 20)

/* ---- bytes ---- */

static doppel_status refuse(const fingerprint_file *f, uint64_t line, const char *why) {
    if (line)
        message("%s:%llu: %s", f->path, (unsigned long long)line, why);
    else
        message("%s: %s", f->path, why);
    failure_reported = true;
    return DOPPEL_ERROR_INPUT;
}

/* Moves unused bytes to the front, and enlarges the buffer when it is full. */
static bool make_buffer_room(fingerprint_file *f) {
    if (f->from) {
        memmove(f->bytes, f->bytes + f->from, f->filled - f->from);
        f->filled -= f->from;
        f->from = 0;
    }
    if (f->filled < f->room)
        return true;
    size_t room = f->room ? 2 * f->room : ROOM;
    char *bytes = realloc(f->bytes, room);
    if (!bytes)
        return false;
    f->bytes = bytes;
    f->room = room;
    return true;
}

/* Reads until there are `least` bytes that are not yet used, or the file has ended. Errors are reported. */
static doppel_status fingerprints_fill(fingerprint_file *f, size_t least) {
    while (!f->ended && f->filled - f->from < least) {
        if (!make_buffer_room(f))
            return DOPPEL_ERROR_MEMORY;
        ssize_t got = read(f->file, f->bytes + f->filled, f->room - f->filled);
        if (got < 0 && stop_asked)
            return DOPPEL_ERROR_INTERRUPTED;
        if (got < 0 && errno != EINTR)
            return refuse(f, 0, strerror(errno));
        f->ended = got == 0;
        f->filled += got > 0 ? (size_t)got : 0;
    }
    return DOPPEL_OK;
}

/* doppel_source.read for raw numbers; `user` is the file. */
static doppel_status read_raw(void *user, uint64_t *to, size_t room, size_t *count) {
    fingerprint_file *f = user;
    size_t words = f->bits > 64 ? 2 : 1, size = 8 * words;
    *count = 0;
    doppel_status status = fingerprints_fill(f, size);
    if (status != DOPPEL_OK)
        return status;
    size_t there = (f->filled - f->from) / size;
    if (!there && f->filled > f->from)
        return refuse(f, 0,
                      words == 1 ? "ends within a fingerprint of 8 bytes" : "ends within a fingerprint of 16 bytes");
    *count = there < room ? there : room;
    if (*count)
        memcpy(to, f->bytes + f->from, *count * size);
    for (size_t i = 0; i < *count * words; i++)
        to[i] = le64toh(to[i]);
    f->from += *count * size;
    f->count += *count;
    return DOPPEL_OK;
}

/* ---- digits ---- */

static bool is_digit(char c) {
    unsigned byte = (unsigned char)c;
    return (byte - '0' < 10) | ((byte | 32) - 'a' < 6); /* without a branch, which random digits would mispredict */
}

/* How many hexadecimal digits `text` begins with. */
static size_t count_digits(const char *text, size_t length) {
    size_t count = 0;
    while (count < length && is_digit(text[count]))
        count++;
    return count;
}

/* Up to 16 digits as a number; false when one of them is not a digit. */
static bool parse_word(const char *text, size_t length, uint64_t *value) {
    bool all = true;
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned byte = (unsigned char)text[i];
        all &= is_digit(text[i]);
        *value = *value << 4 | ((byte & 15) + 9 * (byte >> 6 & 1)); /* a letter has bit 6, and counts from 1 */
    }
    return all;
}

/* The number; false when there are no digits, too many of them, or something else. */
static bool parse_digits(const char *text, size_t length, uint64_t value[2]) {
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        text += 2;
        length -= 2;
    }
    size_t low = length < 16 ? length : 16, high = length - low;
    return length && length <= 32 && parse_word(text, high, &value[1]) && parse_word(text + high, low, &value[0]);
}

/* One fingerprint as text: its digits, and its name, which may be empty. */
typedef struct fingerprint_text {
    uint64_t line;
    const char *digits;
    size_t length;
    const char *name;
    size_t name_length;
} fingerprint_text;

static bool add_name(const fingerprint_file *f, const fingerprint_text *text) {
    char position[24];
    if (text->name_length)
        return ids_add(f->names, text->name, text->name_length);
    int length = snprintf(position, sizeof position, "%llu", (unsigned long long)f->count);
    return ids_add(f->names, position, (size_t)length);
}

/* Takes a fingerprint, by its width one word or two, and its name. Errors are reported. */
static doppel_status fingerprints_take(fingerprint_file *f, const fingerprint_text *text, uint64_t *to) {
    uint64_t value[2];
    if (!parse_digits(text->digits, text->length, value))
        return refuse(f, text->line, "not a fingerprint, which has 1 to 32 hexadecimal digits");
    if (!f->bits)
        f->bits = text->length > 16 ? 128 : 64;
    if (f->bits <= 64 && (value[1] || (f->bits < 64 && value[0] >> f->bits))) {
        char why[80];
        snprintf(why, sizeof why, "the fingerprint has bits beyond a width of %d: see --bits", f->bits);
        return refuse(f, text->line, why);
    }
    memcpy(to, value, f->bits > 64 ? 16 : 8);
    if (f->names && !add_name(f, text))
        return DOPPEL_ERROR_MEMORY;
    f->count++;
    return DOPPEL_OK;
}

/* ---- lines ---- */

/* The next line without its end; NULL at the end of the file, or when *status says why. */
static const char *next_line(fingerprint_file *f, size_t *length, doppel_status *status) {
    size_t looked = 0;
    for (*status = DOPPEL_OK; *status == DOPPEL_OK;) {
        const char *start = f->bytes + f->from;
        size_t there = f->filled - f->from;
        const char *end = there > looked ? memchr(start + looked, '\n', there - looked) : NULL;
        if (end || f->ended) {
            *length = end ? (size_t)(end - start) : there;
            f->from += *length + (end != NULL);
            f->line++;
            return end || there ? start : NULL;
        }
        looked = there;
        *status = there < LONGEST ? fingerprints_fill(f, there + 1) : refuse(f, f->line + 1, "the line is too long");
    }
    return NULL;
}

/* doppel_source.read for lines; `user` is the file. */
static doppel_status read_lines(void *user, uint64_t *to, size_t room, size_t *count) {
    fingerprint_file *f = user;
    size_t length, words = f->bits > 64 ? 2 : 1;
    doppel_status status = fingerprints_fill(f, 1);
    const char *line;
    for (*count = 0; status == DOPPEL_OK && *count < room && (line = next_line(f, &length, &status));) {
        while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
            length--;
        const char *tab = memchr(line, '\t', length);
        fingerprint_text text = {f->line, line, tab ? (size_t)(tab - line) : length, NULL, 0};
        if (tab) {
            text.name = tab + 1;
            text.name_length = length - text.length - 1;
        }
        status = fingerprints_take(f, &text, to + *count * words);
        *count += status == DOPPEL_OK;
    }
    return status;
}

/* ---- JSONL: the digits are read as the text of a document ---- */

/* What a thread writes for a record: this, the digits, then the name if it is wanted, and a line end. */
typedef struct written_record {
    uint64_t line; /* 0: not a record, but a plain file */
    size_t length;
} written_record;

static doppel_status write_record(void *state, const doppel_document *document, doppel_output *output) {
    const fingerprint_file *f = state;
    written_record record = {document->line, document->text.length};
    doppel_status status = doppel_output_write(output, (doppel_slice){(const char *)&record, sizeof record});
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, document->text);
    if (status == DOPPEL_OK && f->names)
        status = write_id(document, output);
    return status == DOPPEL_OK ? doppel_output_write(output, doppel_slice_of("\n")) : status;
}

static doppel_status add_value(fingerprint_file *f, const fingerprint_text *text) {
    if (!text->line) {
        message("%s: is not JSONL", f->path);
        failure_reported = true;
        return DOPPEL_ERROR_INPUT;
    }
    if (!make_room(&f->values, &f->values_room, f->value_words + 2, sizeof *f->values))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = fingerprints_take(f, text, f->values + f->value_words);
    f->value_words += f->bits > 64 ? 2 : 1;
    return status;
}

/* Takes records in the order of the file, whole ones: doppel_work.emit. */
static doppel_status add_values(void *user, doppel_slice bytes) {
    fingerprint_file *f = user;
    const char *end = bytes.data + bytes.length;
    doppel_status status = DOPPEL_OK;
    while (bytes.data < end && status == DOPPEL_OK) {
        written_record record;
        memcpy(&record, bytes.data, sizeof record);
        const char *digits = bytes.data + sizeof record, *name = digits + record.length;
        const char *name_end = memchr(name, '\n', (size_t)(end - name));
        fingerprint_text text = {record.line, digits, record.length, name, (size_t)(name_end - name)};
        status = add_value(f, &text);
        bytes.data = name_end + 1;
    }
    return status;
}

/* Reads all records into `values`; returns the exit code. */
static int read_jsonl(fingerprint_file *f) {
    doppel_input_options options = reading_options(f->args);
    doppel_work work = {.user = f, .document = write_record, .emit = add_values};
    if (!options.text_key)
        options.text_key = "fingerprint";
    options.html_key = options.text_key; /* no pages here */
    options.strict = true;               /* a record that is left out would shift the positions of those after it */
    int code = run_paths(&f->path, 1, &options, &work, NULL);
    if (!f->bits)
        f->bits = 64;
    return code;
}

/* Text is distinguished from numbers by this many bytes: 64 random numbers are never all text. */
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

/* The format of --from; false when it is unknown. */
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

/* *plain: a regular file, which can be opened and read again. */
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

/* Recognises the format by the content, where neither --from nor the name gives it. */
static int detect_format(fingerprint_file *f, bool plain) {
    doppel_status status = fingerprints_fill(f, LOOKED_AT);
    if (status != DOPPEL_OK)
        return exit_code(status);
    if (looks_packed(f->bytes, f->filled)) {
        message("%s: is compressed, which only JSONL may be: give --from jsonl, or decompress it to stdin", f->path);
        return EXIT_INPUT;
    }
    f->format = format_of_content(f->bytes, f->filled);
    if (f->format != FORMAT_JSONL || plain)
        return EXIT_DONE;
    message("%s: looks like JSONL: give --from jsonl", f->path);
    return EXIT_USAGE;
}

/* The width where no option gives it: that of the first line, or as the name says. */
static int find_width(fingerprint_file *f) {
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
        f->source.array = f->values;
        f->source.count = f->value_words / (f->bits > 64 ? 2 : 1);
        return code;
    }
    int code = find_width(f);
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
        message("%s: is compressed, which only JSONL may be: decompress it to stdin", path);
        return EXIT_INPUT;
    }
    int code = f->format == FORMAT_JSONL ? EXIT_DONE : open_file(f, &plain);
    if (code == EXIT_DONE && f->format == FORMAT_UNKNOWN)
        code = detect_format(f, plain);
    return code == EXIT_DONE ? set_source(f, plain) : code;
}

void fingerprints_close(fingerprint_file *f) {
    if (f->path && f->file >= 0)
        close(f->file);
    free(f->bytes);
    free(f->values);
}

/* run_archive.c - several files that come as a tar archive: each is stored below the folder `input` of the run, under
 * its own name, so that they are read as `doppel dedup` reads them, and ids are those of the command.
 *
 *     archive_create, archive_take ..., archive_end, archive_free
 *
 * Archives of the formats ustar, pax and GNU are read: regular files, with long names. A file is decompressed here,
 * where its size has limits. A file that cannot be taken is left out and listed with the reason; the others go on. A
 * Word document, which the library unpacks, is read once here: what it unpacks to has limits, and its text counts as
 * the bytes of a file do.
 *
 * Bounded by --max-run: all bytes after decompression, ENTRY_BYTES for each file and folder, and texts of Word
 * documents; the archive itself by twice as much. */
#include "server/files.h"
#include "server/runs.h"
#include "server/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BLOCK = 512,        /* bytes of a header; files are filled up to whole ones */
    ENTRY_BYTES = 4096, /* that a file or folder takes on a disk, at least */
    NAME_MOST = RUN_ID_SHOWN,
    EXTRA_MOST = 64 << 10, /* bytes of a long name, or of pax records */
    INPUTS_MOST = 1000     /* files and folders at the top */
};

/* What an entry of the archive is. */
typedef enum entry_kind { ENTRY_SKIPPED, ENTRY_FILE, ENTRY_NAME, ENTRY_PAX } entry_kind;

/* The file that is arriving. */
typedef struct arriving_file {
    char *path;
    int file;       /* -1: none is open */
    bool is_word;   /* a Word document, by its name */
    uint64_t bytes; /* written */
    body body;
    bool coding_known;
    char packed[BODY_BEGINNING]; /* how it begins, as it arrives */
    char plain[BODY_BEGINNING];  /* and decompressed */
    size_t packed_length, plain_length;
    char refusal[256];     /* why it is left out; empty: it is not */
    bool command_may_read; /* the command may be able to read it */
} arriving_file;

struct archive {
    request *request;
    file_run *run;
    char block[BLOCK];
    size_t have;          /* bytes of the header */
    uint64_t left;        /* bytes of the entry that have not arrived */
    size_t padding;       /* and after it, up to a whole block */
    bool in_entry, ended; /* ended: what follows is padding */
    entry_kind kind;
    text_buffer extra;                  /* of ENTRY_NAME, ENTRY_PAX */
    text_buffer name;                   /* of the current file */
    bool has_name, has_size, is_sparse; /* what earlier entries say of the next file */
    uint64_t size;
    arriving_file arriving;
    uint64_t charged; /* of --max-run */
    uint64_t arrived; /* bytes of the archive */
};

archive *archive_create(request *r, file_run *run) {
    archive *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    *a = (archive){.request = r, .run = run, .arriving.file = -1};
    return a;
}

static void close_file(archive *a) {
    arriving_file *p = &a->arriving;
    if (p->file >= 0)
        close(p->file);
    body_free(&p->body);
    free(p->path);
    *p = (arriving_file){.file = -1};
}

void archive_free(archive *a) {
    if (!a)
        return;
    close_file(a);
    text_free(&a->extra);
    text_free(&a->name);
    free(a);
}

/* ---- problems; each returns false ---- */

static bool no_memory(archive *a) {
    request_problem(a->request, PROBLEM_NO_MEMORY, NULL, "no memory");
    return false;
}

static bool no_disk(archive *a) {
    run_no_room(a->request, "the disk of the server has no room for these files");
    return false;
}

static bool damaged(archive *a, const char *why) {
    request_problem(a->request, PROBLEM_BAD_REQUEST, NULL, "the body is not a tar archive: %s", why);
    return false;
}

/* Counts against --max-run. */
static bool charge(archive *a, uint64_t bytes) {
    uint64_t most = a->request->service->options.max_run;
    if (bytes <= most - a->charged) {
        a->charged += bytes;
        return true;
    }
    request_problem(a->request, PROBLEM_TOO_LARGE, NULL,
                    "all files may have at most %llu bytes, decompressed, and each file and folder counts as %d more",
                    (unsigned long long)most, ENTRY_BYTES);
    return false;
}

/* Counts bytes of the archive. With names and padding it is at most a little larger than what is charged; what is left
 * out may be as much again. */
static bool count_arrived(archive *a, size_t bytes) {
    uint64_t most = a->request->service->options.max_run;
    a->arrived += bytes;
    if (a->arrived / 2 <= most)
        return true;
    request_problem(a->request, PROBLEM_TOO_LARGE, NULL, "the archive is more than twice as large as its files may be");
    return false;
}

/* Adds to the bytes that the run has received; false: it was deleted. */
static bool count_received(archive *a, int64_t bytes) {
    file_run *run = a->run;
    pthread_mutex_lock(&run->all->lock);
    run->received = (uint64_t)((int64_t)run->received + bytes);
    bool deleted = run->deleted;
    pthread_cond_broadcast(&run->all->change);
    pthread_mutex_unlock(&run->all->lock);
    return !deleted || upload_was_deleted(a->request);
}

/* Lists a file that is left out. */
static bool leave_out(archive *a, const char *why, bool command_may_read) {
    file_run *run = a->run;
    run_unread item = {.file = a->name.data, .why = (char *)(uintptr_t)why, .command_may_read = command_may_read};
    pthread_mutex_lock(&run->all->lock);
    run_unread_add(&run->left_out, &item);
    bool failed = run->left_out.failed;
    pthread_mutex_unlock(&run->all->lock);
    return !failed || no_memory(a);
}

/* ---- names ---- */

/* Why a name cannot be used below the folder of the run; NULL: it can. */
static const char *refusal_of_name(const text_buffer *name) {
    if (!name->length || name->data[0] == '/')
        return "its name is empty, or begins with /";
    if (name->length > NAME_MOST)
        return "its name is too long";
    if (memchr(name->data, 0, name->length))
        return "its name has a NUL";
    for (const char *at = name->data;; at++) {
        size_t length = strcspn(at, "/");
        if (!length || (length == 1 && *at == '.') || (length == 2 && !memcmp(at, "..", 2)))
            return "its name has an empty part, or a part . or ..";
        at += length;
        if (!*at)
            return NULL;
    }
}

static void set_name(archive *a, const char *name, size_t length) {
    while (length >= 2 && !memcmp(name, "./", 2)) {
        name += 2;
        length -= 2;
    }
    a->name.length = 0;
    text_add(&a->name, name, length);
    if (text_reserve(&a->name, 1))
        a->name.data[a->name.length] = 0;
}

/* The name that a header has, in one or two parts. */
static void set_header_name(archive *a) {
    char joined[155 + 1 + 100 + 1];
    const char *prefix = a->block + 345;
    bool ustar = !memcmp(a->block + 257, "ustar\0", 6) && *prefix;
    int length = snprintf(joined, sizeof joined, "%.*s%s%.100s", ustar ? 155 : 0, prefix, ustar ? "/" : "", a->block);
    set_name(a, joined, (size_t)length);
}

/* ---- a file as it arrives ---- */

__attribute__((format(printf, 3, 4))) static void refuse(archive *a, bool command_may_read, const char *format, ...) {
    arriving_file *p = &a->arriving;
    va_list list;
    if (*p->refusal)
        return;
    va_start(list, format);
    vsnprintf(p->refusal, sizeof p->refusal, format, list);
    va_end(list);
    p->command_may_read = command_may_read;
}

static void refuse_body(archive *a, body_result result) {
    if (result == BODY_BROKEN)
        refuse(a, true, "it cannot be decompressed");
    else if (result == BODY_TOO_DENSE)
        refuse(a, true, "it decompresses to more than %llu times its size, which the server does not allow",
               (unsigned long long)a->arriving.body.max_ratio);
    else if (result == BODY_LARGE_WINDOW)
        refuse(a, true, "it takes more memory to decompress than the server allows");
}

/* Refuses a file that cannot be made; where its name is not the reason, a problem is the answer. */
static bool refuse_path(archive *a, int why) {
    if (why == ENAMETOOLONG)
        refuse(a, false, "its name is too long");
    else if (why == EISDIR || why == ENOTDIR)
        refuse(a, false, "a file and a folder of the archive have the same name");
    else
        return no_disk(a);
    return true;
}

/* Makes the folders that the file is in, below that of the run. */
static bool make_folders(archive *a) {
    char *path = a->arriving.path;
    for (char *at = strchr(path + strlen(a->run->path), '/'); at; at = strchr(at + 1, '/')) {
        *at = 0;
        int why = mkdir(path, 0700) ? errno : 0;
        *at = '/';
        if (!why && !charge(a, ENTRY_BYTES))
            return false;
        if (why && why != EEXIST)
            return refuse_path(a, why);
    }
    return true;
}

static bool begin_file(archive *a) {
    arriving_file *p = &a->arriving;
    const char *format = doppel_input_format(a->name.data);
    p->is_word = format && !strcmp(format, "Word");
    if (!charge(a, ENTRY_BYTES))
        return false;
    if (asprintf(&p->path, "%s%s", a->run->path, a->name.data) < 0) {
        p->path = NULL;
        return no_memory(a);
    }
    if (!make_folders(a) || *p->refusal)
        return !a->request->done;
    p->file = open(p->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    return p->file >= 0 || refuse_path(a, errno);
}

/* Takes decompressed bytes of a file. */
static bool take_plain(void *user, const char *bytes, size_t length) {
    archive *a = user;
    arriving_file *p = &a->arriving;
    for (size_t i = 0; i < length && p->plain_length < sizeof p->plain; i++)
        p->plain[p->plain_length++] = bytes[i];
    /* The library would decompress it once more, to any size. */
    if (p->body.coding != CODING_PLAIN && body_coding_at(p->plain, p->plain_length) != CODING_PLAIN)
        refuse(a, true, "it is compressed twice: decompress it once");
    if (*p->refusal || !charge(a, length))
        return false;
    if (!file_write(p->file, bytes, length))
        return no_disk(a);
    p->bytes += length;
    return count_received(a, (int64_t)length);
}

static bool add_packed(archive *a, const char *bytes, size_t length) {
    body_result result = body_add(&a->arriving.body, bytes, length, take_plain, a);
    refuse_body(a, result);
    return result == BODY_NO_MEMORY ? no_memory(a) : !a->request->done;
}

/* Finds out how a file is compressed, whatever its name is. */
static bool begin_decompressing(archive *a) {
    arriving_file *p = &a->arriving;
    p->coding_known = true;
    if (body_begin(&p->body, body_coding_at(p->packed, p->packed_length)) != BODY_FINE)
        return no_memory(a);
    p->body.max_ratio = a->request->service->options.max_ratio;
    return add_packed(a, p->packed, p->packed_length);
}

static bool add_to_file(archive *a, const char *bytes, size_t length) {
    arriving_file *p = &a->arriving;
    while (!p->coding_known && length && !*p->refusal) {
        p->packed[p->packed_length++] = *bytes++;
        length--;
        if (p->packed_length == sizeof p->packed && !begin_decompressing(a))
            return false;
    }
    return !length || *p->refusal || add_packed(a, bytes, length);
}

/* ---- a file that is whole ---- */

/* doppel_work.document */
static doppel_status count_text(void *user, const doppel_document *document, doppel_output *output) {
    (void)output;
    *(uint64_t *)user += document->text.length;
    return DOPPEL_OK;
}

/* doppel_input_options.bad: whether it is the limit of what a document unpacks to, which has an option. */
static void note_limit(const doppel_error *what, void *user) {
    *(bool *)user = strstr(what->message, "--max-record");
}

/* Reads a Word document as the analysis will. */
static bool check_word(archive *a) {
    arriving_file *p = &a->arriving;
    uint64_t ratio = a->request->service->options.max_ratio, text = 0;
    bool too_long = false;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = 1,
                                        .max_record = run_max_record(p->bytes, ratio),
                                        .bad = note_limit,
                                        .user = &too_long};
    const doppel_work work = {.user = &text, .document = count_text};
    const char *path = p->path;
    if (doppel_input_run(&path, 1, &reads, &work, NULL, NULL) == DOPPEL_ERROR_MEMORY)
        return no_memory(a);
    if (too_long && reads.max_record < RUN_RECORD)
        refuse(a, true, "it unpacks to more than %llu times its size, which the server does not allow",
               (unsigned long long)ratio);
    return charge(a, text);
}

/* Whether a format has fields. */
static bool has_fields(const char *path) {
    const char *format = doppel_input_format(path);
    return format && (!strcmp(format, "JSONL") || !strcmp(format, "CSV") || !strcmp(format, "TSV"));
}

/* Adds the file, or the folder at the top of its path, to what is read. */
static bool add_input(archive *a) {
    file_run *run = a->run;
    char *path = a->arriving.path;
    size_t length = strlen(run->path) + strcspn(path + strlen(run->path), "/");
    if (!run->fields_path && has_fields(path))
        run->fields_path = strdup(path);
    path[length] = 0;
    for (size_t i = run->input_count; i-- > 0;) /* most often it is the last one */
        if (!strcmp(run->inputs[i], path))
            return true;
    if (run->input_count == INPUTS_MOST) {
        request_problem(a->request, PROBLEM_TOO_LARGE, NULL,
                        "at most %d files and folders at the top of the archive: put them into a folder", INPUTS_MOST);
        return false;
    }
    pthread_mutex_lock(&run->all->lock);
    char **grown = realloc(run->inputs, (run->input_count + 1) * sizeof *grown);
    if (grown) {
        run->inputs = grown;
        run->inputs[run->input_count++] = path;
        a->arriving.path = NULL;
    }
    pthread_mutex_unlock(&run->all->lock);
    return grown || no_memory(a);
}

/* Lists the file that has arrived as one that is left out. */
static bool give_up(archive *a) {
    arriving_file *p = &a->arriving;
    unlink(p->path);
    a->charged -= p->bytes;
    return leave_out(a, p->refusal, p->command_may_read) && count_received(a, -(int64_t)p->bytes);
}

static bool end_file(archive *a) {
    arriving_file *p = &a->arriving;
    bool fine = *p->refusal || p->coding_known || begin_decompressing(a);
    if (fine && !*p->refusal && !body_whole(&p->body))
        refuse(a, true, "the compressed data is cut short");
    if (p->file >= 0)
        close(p->file);
    p->file = -1;
    if (fine && p->is_word && !*p->refusal)
        fine = check_word(a);
    if (fine && !*p->refusal)
        fine = add_input(a);
    if (fine && *p->refusal)
        fine = give_up(a);
    close_file(a);
    return fine;
}

/* ---- headers ---- */

/* A number in octal digits or, where the first bit is set, in binary; UINT64_MAX: it is none. */
static uint64_t number_of(const char *digits, size_t length) {
    uint64_t number = 0;
    if (*digits & 0x80) {
        for (size_t i = 1; i < length; i++) {
            if (number >> 55)
                return UINT64_MAX;
            number = number << 8 | (unsigned char)digits[i];
        }
        return number;
    }
    while (length && *digits == ' ') {
        digits++;
        length--;
    }
    for (; length && *digits >= '0' && *digits <= '7'; length--)
        number = number << 3 | (uint64_t)(*digits++ - '0');
    return length && *digits && *digits != ' ' ? UINT64_MAX : number;
}

static bool is_header(const char *block) {
    enum { CHECKSUM = 148, CHECKSUM_END = 156 };
    uint64_t sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= CHECKSUM && i < CHECKSUM_END ? ' ' : (unsigned char)block[i];
    return number_of(block + CHECKSUM, CHECKSUM_END - CHECKSUM) == sum;
}

static bool is_zero(const char *block) {
    for (int i = 0; i < BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

/* One pax record, KEY=VALUE. */
static void take_pax(archive *a, const char *record, size_t length) {
    if (length >= 5 && !memcmp(record, "path=", 5)) {
        set_name(a, record + 5, length - 5);
        a->has_name = true;
    } else if (length >= 5 && !memcmp(record, "size=", 5)) {
        a->size = 0;
        for (size_t i = 5; i < length && record[i] >= '0' && record[i] <= '9' && a->size < UINT64_MAX / 16; i++)
            a->size = 10 * a->size + (uint64_t)(record[i] - '0');
        a->has_size = true;
    } else if (length >= 11 && !memcmp(record, "GNU.sparse.", 11)) {
        a->is_sparse = true;
    }
}

/* The records of an entry, each "LENGTH KEY=VALUE\n". */
static bool take_pax_records(archive *a) {
    const char *at = a->extra.data, *end = at + a->extra.length;
    while (at < end) {
        size_t length = 0;
        const char *digits = at;
        for (; digits < end && *digits >= '0' && *digits <= '9' && length < EXTRA_MOST; digits++)
            length = 10 * length + (size_t)(*digits - '0');
        size_t head = (size_t)(digits - at) + 1;
        if (digits == end || *digits != ' ' || length <= head || length > (size_t)(end - at) || at[length - 1] != '\n')
            return damaged(a, "a pax record is invalid");
        take_pax(a, at + head, length - head - 1);
        at += length;
    }
    return true;
}

static const char sparse_refused[] = "a sparse file, which the server does not read";

/* A file whose content is in the archive; one with a name that cannot be used is left out. */
static bool begin_entry_file(archive *a) {
    const char *why = refusal_of_name(&a->name);
    bool folder = a->name.length && a->name.data[a->name.length - 1] == '/';
    a->kind = ENTRY_SKIPPED;
    if (folder)
        return true;
    if (why || a->is_sparse)
        return leave_out(a, why ? why : sparse_refused, true);
    a->kind = ENTRY_FILE;
    return begin_file(a);
}

/* A sparse file of GNU tar. A long list of its parts goes on after the header, where no size says so. */
static bool begin_sparse_file(archive *a) {
    enum { GOES_ON = 482 };
    if (!a->block[GOES_ON])
        return leave_out(a, sparse_refused, true);
    request_problem(a->request, PROBLEM_TYPE, NULL,
                    "the archive has a sparse file, which the server does not read: make it without --sparse");
    return false;
}

static bool begin_entry(archive *a) {
    char type = a->block[156];
    a->kind = ENTRY_SKIPPED;
    if (type == 'L' || type == 'x') {
        a->kind = type == 'L' ? ENTRY_NAME : ENTRY_PAX;
        a->extra.length = 0;
        text_reserve(&a->extra, 1); /* it may stay empty */
        return a->left <= EXTRA_MOST || damaged(a, "a name or a pax record is too long");
    }
    if (type == 'g' || type == 'K' || type == 'V')
        return true;
    if (!a->has_name)
        set_header_name(a);
    if (a->name.failed)
        return no_memory(a);
    if (!type || type == '0' || type == '7')
        return begin_entry_file(a);
    if (type == 'S')
        return begin_sparse_file(a);
    /* Folders are made as files need them; devices and pipes below a folder are left out by the command, too. */
    return (type >= '3' && type <= '6') || leave_out(a, "a link, or an entry that is no file", true);
}

static bool take_header(archive *a) {
    a->have = 0;
    if (is_zero(a->block)) {
        a->ended = true;
        return true;
    }
    if (!is_header(a->block))
        return damaged(a, "a header is invalid");
    bool extra = a->block[156] == 'L' || a->block[156] == 'x' || a->block[156] == 'g' || a->block[156] == 'K';
    a->left = a->has_size && !extra ? a->size : number_of(a->block + 124, 12);
    if (a->left > INT64_MAX)
        return damaged(a, "the size of a file is invalid");
    a->padding = (size_t)(-a->left % BLOCK);
    a->in_entry = true;
    return begin_entry(a);
}

static bool end_entry(archive *a) {
    bool fine = true;
    a->in_entry = false;
    if (a->extra.failed)
        return no_memory(a);
    if (a->kind == ENTRY_NAME) {
        set_name(a, a->extra.data, strnlen(a->extra.data, a->extra.length));
        a->has_name = true;
        return !a->name.failed || no_memory(a);
    }
    if (a->kind == ENTRY_PAX)
        return take_pax_records(a) && (!a->name.failed || no_memory(a));
    if (a->kind == ENTRY_FILE)
        fine = end_file(a);
    if (a->block[156] != 'g' && a->block[156] != 'K')
        a->has_name = a->has_size = a->is_sparse = false;
    return fine;
}

/* ---- the archive ---- */

static bool take_data(archive *a, const char *bytes, size_t length) {
    if (a->kind == ENTRY_NAME || a->kind == ENTRY_PAX)
        text_add(&a->extra, bytes, length);
    return a->kind != ENTRY_FILE || add_to_file(a, bytes, length);
}

bool archive_take(archive *a, const char *bytes, size_t length) {
    if (!count_arrived(a, length))
        return false;
    while (length && !a->ended) {
        uint64_t wanted = a->in_entry ? a->left : a->padding ? a->padding : BLOCK - a->have;
        size_t taken = wanted < length ? (size_t)wanted : length;
        if (a->in_entry) {
            if (taken && !take_data(a, bytes, taken))
                return false;
            a->left -= taken;
        } else if (a->padding) {
            a->padding -= taken;
        } else {
            memcpy(a->block + a->have, bytes, taken);
            a->have += taken;
            if (a->have == BLOCK && !take_header(a))
                return false;
        }
        bytes += taken;
        length -= taken;
        if (a->in_entry && !a->left && !end_entry(a))
            return false;
    }
    return true;
}

bool archive_end(archive *a) {
    const file_run *run = a->run;
    if (!a->ended && (a->in_entry || a->padding || a->have)) {
        request_problem(a->request, PROBLEM_BAD_ENCODING, NULL, "the archive is truncated");
        return false;
    }
    if (run->input_count)
        return true;
    if (run->left_out.count)
        request_problem(a->request, PROBLEM_TYPE, NULL, "no file of the archive can be read; the first one: %s",
                        run->left_out.item[0].why);
    else
        request_problem(a->request, PROBLEM_TYPE, NULL, "the archive has no files");
    return false;
}

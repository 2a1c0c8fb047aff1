/* pdf.c - PDF by pdftotext, in a process of its own: a PDF parser is large, and a crafted file must not be parsed in a
 * process that has other data.
 *
 * The program is started without a shell, and its arguments are constants: it reads the file as its stdin, a file
 * without a name that has a copy of the bytes, and writes to a pipe. It has SECONDS of time, SECONDS of a CPU and
 * MEMORY of address space; past them, or past the limit of text, it is killed. */
#include "input/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Books of a thousand pages take a few seconds, and less than 500 MB. */
#define SECONDS 60
#define MEMORY ((rlim_t)2 << 30)

/* How often the stop flag is checked, in milliseconds. */
#define LOOK_MS 200

extern char **environ;

static bool fail(char why[160], const char *what) {
    snprintf(why, 160, "PDF: %s", what);
    return false;
}

/* A file without a name that has these bytes, at its start; -1: errno says why not. */
static int copy_to_file(doppel_slice bytes) {
    int file = memfd_create("pdf", MFD_CLOEXEC);
    while (file >= 0 && bytes.length) {
        ssize_t written = write(file, bytes.data, bytes.length);
        if (written < 0 && errno != EINTR) {
            close(file);
            return -1;
        }
        bytes.data += written > 0 ? written : 0;
        bytes.length -= written > 0 ? (size_t)written : 0;
    }
    if (file >= 0)
        lseek(file, 0, SEEK_SET);
    return file;
}

/* Starts the program with these as its stdin and stdout; an errno, 0 when it runs. Its stderr is dropped: its messages
 * on damaged files would mix with ours. */
static int start(int in, int out, pid_t *child) {
    static const char *const arguments[] = {"pdftotext", "-q", "-nopgbrk", "-enc", "UTF-8", "-", "-", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t usual;
    if (posix_spawn_file_actions_init(&actions))
        return ENOMEM;
    int trouble = posix_spawnattr_init(&attributes);
    if (!trouble) {
        sigemptyset(&usual);
        sigaddset(&usual, SIGPIPE); /* a caller may ignore them */
        sigaddset(&usual, SIGXFSZ);
        posix_spawnattr_setsigdefault(&attributes, &usual);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
        trouble = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
        trouble = trouble ? trouble : posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
        trouble =
            trouble ? trouble : posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        /* posix_spawnp wants arguments it could write to, and does not. */
        trouble = trouble ? trouble
                          : posix_spawnp(child, arguments[0], &actions, &attributes, (char *const *)arguments, environ);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&actions);
    return trouble;
}

static void limit_program(pid_t child) {
    const struct rlimit cpu = {SECONDS, SECONDS}, memory = {MEMORY, MEMORY}, none = {0, 0};
    prlimit(child, RLIMIT_CPU, &cpu, NULL);
    prlimit(child, RLIMIT_AS, &memory, NULL);
    prlimit(child, RLIMIT_CORE, &none, NULL);
}

static uint64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

typedef enum reading_end { READ_ALL, READ_TOO_LONG, READ_TIMED_OUT, READ_STOPPED, READ_NO_MEMORY } reading_end;

/* Reads what the program writes, to its end. */
static reading_end read_pipe(int pipe, size_t limit, const volatile int *stop, dp_buffer *out) {
    enum { STEP = 64 << 10 };
    uint64_t last = now_ms() + SECONDS * 1000;
    while (out->size <= limit) {
        struct pollfd wait = {.fd = pipe, .events = POLLIN};
        if (dp_stopped(stop))
            return READ_STOPPED;
        if (now_ms() > last)
            return READ_TIMED_OUT;
        if (poll(&wait, 1, LOOK_MS) <= 0)
            continue;
        if (!dp_reserve(&out->data, &out->capacity, out->size + STEP, 1))
            return READ_NO_MEMORY;
        ssize_t got = read(pipe, out->data + out->size, STEP);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return READ_ALL;
        out->size += got > 0 ? (size_t)got : 0;
    }
    return READ_TOO_LONG;
}

/* Ends the program, if it has not ended, and says how it went; false: `why` says what was wrong. */
static bool end(pid_t child, reading_end reading, char why[160]) {
    int status = 0;
    if (reading != READ_ALL)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    if (reading == READ_TIMED_OUT)
        return fail(why, "pdftotext took more than a minute");
    if (reading == READ_NO_MEMORY) {
        *why = 0;
        return false;
    }
    if (reading != READ_ALL)
        return true; /* the caller sees that it is too long, or stops */
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return fail(why, "pdftotext cannot be started");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
        return fail(why, "it does not allow its text to be copied");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        return fail(why, "pdftotext cannot read it: it is damaged, or has a password");
    return true;
}

static bool is_blank(const dp_buffer *text) {
    for (size_t i = 0; i < text->size; i++)
        if (!strchr(" \t\r\n\f", text->data[i]) || !text->data[i])
            return false;
    return true;
}

/* Writes the text to `out`, at most `limit` bytes and a pipe's worth more. False: `why` says why not; an empty text
 * means that there is no memory. Once *stop (NULL: there is none) is not 0, the program is ended. */
static bool read_pdf(doppel_slice pdf, size_t limit, const volatile int *stop, dp_buffer *out, char why[160]) {
    int ends[2], file = copy_to_file(pdf);
    pid_t child;
    out->size = 0;
    if (file < 0)
        return fail(why, strerror(errno));
    if (pipe2(ends, O_CLOEXEC)) {
        close(file);
        return fail(why, strerror(errno));
    }
    int trouble = start(file, ends[1], &child);
    close(ends[1]);
    close(file);
    if (trouble) {
        close(ends[0]);
        return fail(why,
                    trouble == ENOENT ? "to read it, install pdftotext (Debian: poppler-utils)" : strerror(trouble));
    }
    limit_program(child);
    reading_end reading = read_pipe(ends[0], limit, stop, out);
    close(ends[0]);
    if (!end(child, reading, why))
        return false;
    return reading != READ_ALL || !is_blank(out) ||
           fail(why, "it has no text; its pages may be images: a program such as ocrmypdf can read them");
}

static void pdf_read(dp_reader *reader, dp_unit *unit, const char *file) {
    const doppel_input_options *options = reader->options;
    const dp_raw_record at = {.file = file, .bytes = unit->block.data, .length = unit->block.size};
    dp_buffer *text = &reader->spare[0];
    char why[160] = "";
    if (!options->run_programs) {
        dp_reader_bad_record(reader, unit, &at,
                             "PDF, which is not read here; pdftotext (poppler-utils) converts it to text");
    } else if (read_pdf((doppel_slice){at.bytes, at.length}, options->max_record, options->stop, text, why)) {
        if (!dp_stopped(options->stop))
            dp_reader_give_made(reader, unit, &at, text);
    } else if (*why) {
        dp_reader_bad_record(reader, unit, &at, "%s", why);
    } else {
        dp_unit_no_memory(unit);
    }
}

static bool pdf_matches(const char *head, size_t length) {
    return length >= 5 && !memcmp(head, "%PDF-", 5);
}

static const char *const endings[] = {".pdf", NULL};

const dp_format dp_format_pdf = {.name = "PDF", .endings = endings, .matches = pdf_matches, .read = pdf_read};

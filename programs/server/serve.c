/* serve.c - doppel serve from its options to its end. */
#include "server/serve.h"

#include "common/listen.h"
#include "common/message.h"
#include "server/security.h"
#include "server/server.h"

#include <errno.h>
#include <libgen.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct serving {
    const cli_args *args;
    listening listening;
    service_options options;
    server_options server_options;
    char *certificate, *key;
    char folders[6][4096];
    service service;
    server server;
} serving;

/* ---- options ---- */

static char *read_file(const char *path) {
    enum { LARGEST = 1 << 20 };
    char *bytes = calloc(1, LARGEST + 1);
    FILE *file = fopen(path, "re");
    if (!file || !bytes || !fread(bytes, 1, LARGEST, file)) {
        message("%s: cannot read: %s", path, strerror(errno));
        free(bytes);
        bytes = NULL;
    }
    if (file)
        fclose(file);
    return bytes;
}

static bool read_certificate(serving *s) {
    const char *certificate = args_text(s->args, "certificate"), *key = args_text(s->args, "key");
    if (!certificate && !key)
        return true;
    if (!certificate || !key) {
        message("--certificate and --key go together");
        return false;
    }
    s->certificate = read_file(certificate);
    s->key = read_file(key);
    s->server_options.certificate = s->certificate;
    s->server_options.key = s->key;
    return s->certificate && s->key;
}

static int processors(void) {
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 1;
}

static void read_options(serving *s, const served_index *index) {
    const cli_args *args = s->args;
    const char *tmp = args_text(args, "tmp");
    int threads = (int)args_number(args, "threads", (uint64_t)processors());
    unsigned most = (unsigned)args_number(args, "max-connections", 4096);
    s->options = (service_options){
        .first = *index,
        .indexes = args_text(args, "indexes"),
        .backups = args_text(args, "backups"),
        .tokens = args_text(args, "tokens"),
        .access_log = args_text(args, "access-log"),
        .origins = args_text(args, "origins"),
        .tls = args_text(args, "certificate"),
        .tmp = tmp                ? tmp
               : getenv("TMPDIR") ? getenv("TMPDIR")
                                  : "/tmp",
        .max_body = args_number(args, "max-body", 16 << 20),
        .max_buffered = args_number(args, "max-buffered", 1 << 30),
        .max_ratio = args_number(args, "max-ratio", 100),
        .max_answer = args_number(args, "max-answer", 256 << 20),
        .max_spooled = args_number(args, "max-spooled", 1 << 30),
        .rate = args_number(args, "rate", 0),
        .threads = threads,
    };
    s->server_options = (server_options){
        .threads = (unsigned)threads,
        .connections = most,
        .per_client = (unsigned)args_number(args, "max-per-client", most > 4 ? most / 4 : 1),
        .timeout = (unsigned)args_number(args, "timeout", 30),
        .receive_timeout = (unsigned)args_number(args, "receive-timeout", 60),
        .stop_timeout = (unsigned)args_number(args, "stop-timeout", 30),
        .max_head = (size_t)args_number(args, "max-head", 1 << 15),
    };
}

/* ---- what is given up ---- */

/* A folder as it is from the root; one that is not there yet is made by the engine, in its parent. */
static const char *folder_of(char to[4096], const char *path, bool parent) {
    char copy[4096];
    struct stat is;
    if (!path || snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return NULL;
    const char *from = parent || stat(path, &is) || !S_ISDIR(is.st_mode) ? dirname(copy) : copy;
    snprintf(to, 4096, "%s", from);
    return to;
}

static bool give_up(serving *s) {
    const char *log = s->options.access_log, *missing = NULL, *sandbox = args_text(s->args, "sandbox");
    const served_index *index = &s->options.first;
    doppel_engine_needs needs;
    doppel_error error = {0};
    if (doppel_engine_get_needs(index->path, &needs, &error) != DOPPEL_OK) {
        message_error(&error);
        return false;
    }
    char *names = needs.connects ? realpath("/etc/resolv.conf", NULL) : NULL; /* often a link to elsewhere */
    const needed_folders folders = {
        .to_write = {folder_of(s->folders[0], needs.folder ? index->path : NULL, false),
                     folder_of(s->folders[1], s->options.indexes, false),
                     folder_of(s->folders[2], s->options.backups, false),
                     folder_of(s->folders[3], log && strcmp(log, "-") != 0 ? log : NULL, true), s->options.tmp},
        .to_read = {folder_of(s->folders[4], s->options.tokens, true), folder_of(s->folders[5], names, true)},
        .connects = needs.connects,
    };
    free(names);
    if (!become_user(args_text(s->args, "user")))
        return false;
    if (sandbox && !strcmp(sandbox, "off"))
        return true;
    if (!confine(&folders, &missing))
        return false;
    if (missing)
        message("this kernel has no %s: going on without", missing);
    return true;
}

static void allow_many_files(unsigned count) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    rlim_t want = count + 1024;
    limit.rlim_cur = limit.rlim_max == RLIM_INFINITY || want < limit.rlim_max ? want : limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- running ---- */

static sigset_t signals(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

static void wait_for_end(serving *s) {
    sigset_t set = signals();
    int got = SIGHUP;
    while (got == SIGHUP) {
        if (sigwait(&set, &got))
            return;
        if (got == SIGHUP)
            service_reload(&s->service);
    }
}

static bool check_origins(const serving *s) {
    doppel_slice wrong;
    if (origins_allowed(s->options.origins, &wrong))
        return true;
    message("--origins takes addresses such as https://doppel.example or http://localhost:8080, separated by commas, "
            "not %.*s",
            (int)wrong.length, wrong.data);
    return false;
}

static bool is_safe(const serving *s) {
    if (s->listening.local || s->options.tokens)
        return true;
    message("%s can be reached from elsewhere: give --tokens FILE, so that not everybody may write to the index",
            s->listening.where);
    return false;
}

static int run(serving *s) {
    int code = service_open(&s->service, &s->options);
    if (code == EXIT_DONE && !server_start(&s->server, &s->service, &s->server_options))
        code = EXIT_USAGE;
    if (code == EXIT_DONE) {
        message("listening on %s://%s", s->certificate ? "https" : "http", s->listening.where);
        wait_for_end(s);
        message("stopping");
        indexes_stop_waiting(&s->service.indexes);
    }
    if (s->server.service)
        server_stop(&s->server);
    service_close(&s->service);
    return code;
}

int serve(const cli_args *args, const served_index *index) {
    serving *s = calloc(1, sizeof *s);
    int code = EXIT_USAGE;
    if (!s) {
        message("no memory");
        return EXIT_STORE;
    }
    s->args = args;
    sigset_t set = signals();
    pthread_sigmask(SIG_BLOCK, &set, NULL); /* in all threads: this one waits for them */
    const char *address = args_text(args, "listen");
    read_options(s, index);
    if (read_certificate(s) && check_origins(s))
        code = listen_open(&s->listening, address ? address : "127.0.0.1:7700");
    if (code == EXIT_DONE && !is_safe(s))
        code = EXIT_USAGE;
    if (code == EXIT_DONE) {
        s->server_options.socket = s->listening.socket;
        s->options.local_only = s->listening.local && !s->options.tokens;
        allow_many_files(s->server_options.connections);
        code = give_up(s) ? run(s) : EXIT_USAGE;
    }
    free(s->certificate);
    free(s->key);
    free(s);
    return code;
}

int serve_generate(const char *what) {
    text out = {0};
    if (!strcmp(what, "openapi"))
        openapi_write(&out);
    else
        manual_write(&out);
    bool fine = !out.failed && fwrite(out.data, 1, out.length, stdout) == out.length;
    text_free(&out);
    return fine ? EXIT_DONE : EXIT_STORE;
}

/* serve.c - doppel serve from its options to its end: options from the environment and from an INI file, the sandbox,
 * serving until a signal ends it. */
#include "server/serve.h"

#include "common/listen.h"
#include "common/message.h"
#include "server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <ini.h>
#include <libgen.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- options from the environment and from a file ---- */

/* The option of a name in the table, or NULL; *place is that of its value. */
static const cli_option *find(const cli_args *args, const char *name, const char ***place) {
    size_t number = 0;
    for (const cli_option *o = args->command->options; o->name; o++, number++)
        if (!strcmp(o->name, name)) {
            *place = &args->values[number];
            return o;
        }
    return NULL;
}

static const char *const yes[] = {"on", "yes", "true", "1", NULL}, *const no[] = {"off", "no", "false", "0", NULL};

static bool is_word(const char *value, const char *const *words) {
    for (; *words; words++)
        if (!strcmp(value, *words))
            return true;
    return false;
}

/* A copy that the configuration owns. */
static const char *copy_value(serve_config *config, const char *value) {
    char **grown = realloc(config->values, (config->count + 1) * sizeof *grown);
    char *copy = grown ? strdup(value) : NULL;
    if (grown)
        config->values = grown;
    if (copy)
        grown[config->count++] = copy;
    else
        message("no memory");
    return copy;
}

void serve_config_free(serve_config *config) {
    for (size_t i = 0; i < config->count; i++)
        free(config->values[i]);
    free(config->values);
    *config = (serve_config){0};
}

/* Whether an option can have this value; prints a message when it cannot. */
static bool fits(const cli_option *option, const char *value, const char *where) {
    uint64_t number;
    if ((option->kind == OPTION_COUNT && !parse_number(value, &number)) ||
        (option->kind == OPTION_SIZE && !parse_size(value, &number)) ||
        (option->kind == OPTION_MANY && !parse_many(value, &number))) {
        message("%s: %s is a number, not %s", where, option->name, value);
        return false;
    }
    if (option->kind == OPTION_FLAG && !is_word(value, yes) && !is_word(value, no)) {
        message("%s: %s is on or off, not %s", where, option->name, value);
        return false;
    }
    return true;
}

/* Sets an option that was not set yet; false, with a message: the value is invalid. */
static bool set(serve_config *config, const cli_option *option, const char **place, const char *value,
                const char *where) {
    if (!fits(option, value, where))
        return false;
    if (*place || (option->kind == OPTION_FLAG && is_word(value, no)))
        return true;
    *place = copy_value(config, value);
    return *place;
}

/* Whether the place of the index is already given, by a source that takes precedence. */
static bool has_place(const cli_args *args) {
    return args_text(args, "index") || args_text(args, "store");
}

static bool is_place(const char *name) {
    return !strcmp(name, "index") || !strcmp(name, "store");
}

/* ---- the environment ---- */

static bool from_environment(serve_config *config, const cli_args *args) {
    size_t number = 0;
    bool placed = has_place(args);
    for (const cli_option *o = args->command->options; o->name; o++, number++) {
        char name[64];
        snprintf(name, sizeof name, "DOPPEL_%s", o->name);
        for (char *p = name; *p; p++)
            *p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 32) : *p;
        const char *value = getenv(name);
        if (value && !(placed && is_place(o->name)) && !set(config, o, &args->values[number], value, name))
            return false;
    }
    return true;
}

/* ---- the file ---- */

typedef struct reading {
    serve_config *config;
    const cli_args *args;
    const char *path;
    bool reported, placed;
    bool *named; /* by option: the file already has it */
} reading;

/* Returns 0 for what is invalid; the parser reports the line. */
static int take(void *user, const char *section, const char *name, const char *value) {
    reading *r = user;
    const char **place;
    const cli_option *option = find(r->args, name, &place);
    r->reported = true;
    if (*section && strcmp(section, "serve") != 0)
        message("%s: unknown section [%s]; options belong in [serve]", r->path, section);
    else if (!option || !strcmp(name, "config"))
        message("%s: unknown option %s; `doppel serve --help` lists the options", r->path, name);
    else if (r->named[place - r->args->values])
        message("%s: %s is given twice; give it once", r->path, name);
    else {
        r->named[place - r->args->values] = true;
        r->reported = !((r->placed && is_place(name)) || set(r->config, option, place, value, r->path));
    }
    return !r->reported;
}

static int from_file(serve_config *config, const cli_args *args, const char *path) {
    reading r = {config, args, path, false, has_place(args), calloc(args->option_count, sizeof(bool))};
    if (!r.named) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = ini_parse(path, take, &r);
    free(r.named);
    if (code > 0)
        message("%s:%d: %s", path, code, r.reported ? "this line" : "this is not NAME = VALUE");
    else if (code < 0)
        message("%s: cannot read it", path);
    return code ? EXIT_USAGE : EXIT_DONE;
}

int serve_configure(serve_config *config, const cli_args *args) {
    const char **place;
    if (!from_environment(config, args))
        return EXIT_USAGE;
    return find(args, "config", &place) && *place ? from_file(config, args, *place) : EXIT_DONE;
}

/* ---- its user ---- */

/* Becomes another user, permanently; NULL: no change. Prints a message and returns false when it cannot. */
static bool become_user(const char *name) {
    const struct passwd *user = name ? getpwnam(name) : NULL;
    if (!name)
        return true;
    if (!user) {
        message("unknown user %s", name);
        return false;
    }
    if (user->pw_uid == geteuid())
        return true;
    if (initgroups(name, user->pw_gid) || setgid(user->pw_gid) || setuid(user->pw_uid)) {
        message("cannot become user %s: %s", name, strerror(errno));
        return false;
    }
    return true;
}

/* ---- the sandbox: files ---- */

/* The folders that are still needed; NULL ones are left out. */
typedef struct needed_folders {
    const char *to_write[8], *to_read[2];
    bool connects; /* to a store */
} needed_folders;

enum {
    READ_FILES = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    WRITE_FILES = READ_FILES | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                  LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR,
    ALL_ACCESS = WRITE_FILES | LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                 LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
                 LANDLOCK_ACCESS_FS_MAKE_SYM
};

static bool allow(int rules, const char *path, unsigned access) {
    struct landlock_path_beneath_attr rule = {.allowed_access = access,
                                              .parent_fd = open(path, O_PATH | O_CLOEXEC | O_DIRECTORY)};
    if (rule.parent_fd < 0)
        return errno == ENOENT || errno == ENOTDIR;
    long code = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);
    return !code;
}

/* Charset converters are loaded when a page needs one, hence /usr and /lib; the rest is read by the C library. */
static bool allow_all(int rules, const needed_folders *folders) {
    static const char *const system_folders[] = {"/usr", "/lib", "/lib64", "/etc", "/proc", "/sys/devices/system/cpu"};
    for (size_t i = 0; i < sizeof system_folders / sizeof *system_folders; i++)
        if (!allow(rules, system_folders[i], READ_FILES))
            return false;
    for (size_t i = 0; i < sizeof folders->to_write / sizeof *folders->to_write; i++)
        if (folders->to_write[i] && !allow(rules, folders->to_write[i], WRITE_FILES))
            return false;
    for (size_t i = 0; i < sizeof folders->to_read / sizeof *folders->to_read; i++)
        if (folders->to_read[i] && !allow(rules, folders->to_read[i], READ_FILES))
            return false;
    return true;
}

static bool confine_files(const needed_folders *folders, bool *there) {
    const struct landlock_ruleset_attr handled = {.handled_access_fs = ALL_ACCESS};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    *there = rules >= 0;
    if (rules < 0)
        return true;
    bool fine = allow_all(rules, folders) && !syscall(SYS_landlock_restrict_self, rules, 0);
    if (!fine)
        message("cannot restrict access to files: %s", strerror(errno));
    close(rules);
    return fine;
}

/* ---- the sandbox: system calls ---- */

static const char *const forbidden[] = {
    "execve",
    "execveat",
    "connect",
    "ptrace",
    "process_vm_readv",
    "process_vm_writev",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "kexec_load",
    "kexec_file_load",
    "init_module",
    "finit_module",
    "delete_module",
    "bpf",
    "perf_event_open",
    "userfaultfd",
    "keyctl",
    "add_key",
    "request_key",
    "reboot",
    "swapon",
    "swapoff",
    "unshare",
    "setns",
    "acct",
    "settimeofday",
    "clock_settime",
    "adjtimex",
    "clock_adjtime",
    "sethostname",
    "setdomainname",
    "ioperm",
    "iopl",
    "quotactl",
    "io_uring_setup",
    "io_uring_enter",
    "setuid",
    "setgid",
    "setresuid",
    "setresgid",
    "open_by_handle_at",
    "name_to_handle_at",
    "personality",
    "move_pages",
    "migrate_pages",
};

static bool confine_calls(bool connects, bool *there) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    *there = filter;
    if (!filter)
        return true;
    for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
        int number = seccomp_syscall_resolve_name(forbidden[i]);
        if (number >= 0 && !(connects && !strcmp(forbidden[i], "connect")))
            seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
    }
    int code = seccomp_load(filter);
    seccomp_release(filter);
    *there = code != -EINVAL && code != -ENOSYS && code != -EOPNOTSUPP;
    if (code && *there)
        message("cannot restrict system calls: %s", strerror(-code));
    return !code || !*there;
}

/* Confines this thread, and those it starts, to reading system files, to these folders, and to system calls that a
 * server of documents needs: no other program, no outgoing connection (unless it has a store), nothing that changes the
 * system. What the kernel does not support (Landlock, seccomp) is skipped; *missing names it, or is NULL. False, with a
 * message: it failed. */
static bool confine(const needed_folders *folders, const char **missing) {
    bool landlock, calls;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        message("cannot drop privileges: %s", strerror(errno));
        return false;
    }
    if (!confine_files(folders, &landlock) || !confine_calls(folders->connects, &calls))
        return false;
    *missing = landlock && calls ? NULL : landlock ? "seccomp" : calls ? "Landlock" : "Landlock and seccomp";
    return true;
}

/* ---- the server and its options ---- */

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
        message("--certificate and --key must be given together");
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
        .max_run = args_number(args, "max-run", 512 << 20),
        .max_runs = args_number(args, "max-runs", 8),
        .run_ttl = args_number(args, "run-ttl", 3600),
        .run_idle = args_number(args, "run-idle", 60),
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

/* ---- dropping privileges ---- */

/* The folder itself, or its parent: a folder that does not exist yet is created there by the engine. */
static const char *folder_of(char to[4096], const char *path, bool parent) {
    char copy[4096];
    struct stat is;
    if (!path || snprintf(copy, sizeof copy, "%s", path) >= (int)sizeof copy)
        return NULL;
    const char *from = parent || stat(path, &is) || !S_ISDIR(is.st_mode) ? dirname(copy) : copy;
    snprintf(to, 4096, "%s", from);
    return to;
}

static bool drop_privileges(serving *s) {
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
        message("this kernel has no %s: continuing without it", missing);
    return true;
}

/* Allows for a descriptor of each connection, three of each run (its file, its pairs, its documents), and others. */
static void allow_many_files(const serving *s) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    rlim_t want = (rlim_t)s->server_options.connections + 3 * s->options.max_runs + 1024;
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
    message("%s can be reached from other machines: give --tokens FILE, so that not everyone can write to the index",
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
        allow_many_files(s);
        code = drop_privileges(s) ? run(s) : EXIT_USAGE;
    }
    free(s->certificate);
    free(s->key);
    free(s);
    return code;
}

int serve_generate(const char *what) {
    text_buffer out = {0};
    if (!strcmp(what, "openapi"))
        openapi_write(&out, NULL);
    else
        manual_write(&out);
    bool fine = !out.failed && fwrite(out.data, 1, out.length, stdout) == out.length;
    text_free(&out);
    return fine ? EXIT_DONE : EXIT_STORE;
}

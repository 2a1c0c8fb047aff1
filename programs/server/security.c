/* security.c - what the process gives up once it knows what it needs: its user, most files (Landlock), system calls
 * (seccomp). */
#include "server/security.h"

#include "common/message.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/landlock.h>
#include <pwd.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool become_user(const char *name) {
    const struct passwd *user = name ? getpwnam(name) : NULL;
    if (!name)
        return true;
    if (!user) {
        message("there is no user %s", name);
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

/* ---- files ---- */

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
        message("cannot give up files: %s", strerror(errno));
    close(rules);
    return fine;
}

/* ---- system calls ---- */

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
        message("cannot give up system calls: %s", strerror(-code));
    return !code || !*there;
}

bool confine(const needed_folders *folders, const char **missing) {
    bool landlock, calls;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        message("cannot give up privileges: %s", strerror(errno));
        return false;
    }
    if (!confine_files(folders, &landlock) || !confine_calls(folders->connects, &calls))
        return false;
    *missing = landlock && calls ? NULL : landlock ? "seccomp" : calls ? "Landlock" : "Landlock and seccomp";
    return true;
}

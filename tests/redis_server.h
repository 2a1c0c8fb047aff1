/* redis_server.h - real Redis servers for tests: each a process of its own on loopback and a unix socket, with its data
 * in a temporary folder. It ends with the test at the latest, whatever becomes of the test.
 *
 *   redis_server server = redis_start(NULL);
 *   ... server.url, redis_say(&server, "INCR x"), redis_end(&server, SIGKILL), redis_again(&server) ...
 *   redis_remove(&server); */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include "unit/support.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { REDIS_MOST_ARGUMENTS = 40 };

typedef struct redis_server {
    pid_t pid; /* 0: it does not run */
    int port;
    char folder[48], socket[64];
    char url[96];  /* redis+unix://... */
    char host[32]; /* 127.0.0.1:PORT */
    const char *const *settings;
} redis_server;

static inline void pause_for(double seconds) {
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

/* A port that nobody listens at. */
static inline int free_port(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&address, size));
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* A reply, to be freed. Commands are written as for redisCommand, and arguments follow. */
static inline redisReply *redis_say(const redis_server *server, const char *format, ...) {
    redisContext *context = redisConnectUnix(server->socket);
    assert_true(context && !context->err);
    va_list arguments;
    va_start(arguments, format);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    redisFree(context);
    return reply;
}

/* The number a command answers, or the one its answer begins with; -1: an error, or nothing. */
static inline long long redis_number(const redis_server *server, const char *command) {
    redisReply *reply = redis_say(server, command);
    long long number = -1;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        number = reply->integer;
    else if (reply && reply->type == REDIS_REPLY_STRING)
        number = atoll(reply->str);
    freeReplyObject(reply);
    return number;
}

/* Does a command that must not fail. */
static inline void redis_do(const redis_server *server, const char *command) {
    redisReply *reply = redis_say(server, command);
    assert_non_null(reply);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", command, reply->str);
    freeReplyObject(reply);
}

/* Whether the answer to a command has these words. */
static inline bool redis_tells(const redis_server *server, const char *command, const char *words) {
    redisReply *reply = redis_say(server, command);
    bool has = reply && reply->str && strstr(reply->str, words);
    freeReplyObject(reply);
    return has;
}

/* Whether it answers within some seconds. */
static inline bool redis_answers(const redis_server *server, double seconds) {
    for (double waited = 0; waited < seconds; waited += 0.01, pause_for(0.01)) {
        redisContext *context = redisConnectUnix(server->socket);
        redisReply *reply = context && !context->err ? redisCommand(context, "PING") : NULL;
        bool up = reply && (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "LOADING", 7) != 0);
        freeReplyObject(reply);
        if (context)
            redisFree(context);
        if (up)
            return true;
    }
    return false;
}

/* The process: in `program` the server or the Sentinel. Its output goes to a file of its folder. */
static inline void redis_run(redis_server *server, const char *const *words) {
    fflush(NULL);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char log[96];
    snprintf(log, sizeof log, "%s/log", server->folder);
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(out, 1);
    dup2(out, 2);
    execvp(words[0], (char *const *)words);
    _exit(127);
}

/* Starts it (again), with its data as it left them. Settings are words of the command line, up to NULL. */
static inline void redis_again(redis_server *server) {
    char port[16];
    snprintf(port, sizeof port, "%d", server->port);
    const char *words[REDIS_MOST_ARGUMENTS] = {
        "redis-server", "--port",      port, "--unixsocket", server->socket, "--dir", server->folder, "--bind",
        "127.0.0.1",    "--daemonize", "no"};
    size_t count = 11;
    for (size_t i = 0; server->settings && server->settings[i]; i++) {
        assert_true(count + 1 < REDIS_MOST_ARGUMENTS);
        words[count++] = server->settings[i];
    }
    redis_run(server, words);
    assert_true(redis_answers(server, 20));
}

/* `settings` must outlive it; NULL: none. */
static inline redis_server redis_start(const char *const *settings) {
    redis_server server = {.settings = settings, .port = free_port()};
    strcpy(server.folder, "/tmp/doppel-redis-XXXXXX");
    assert_non_null(mkdtemp(server.folder));
    snprintf(server.socket, sizeof server.socket, "%s/socket", server.folder);
    snprintf(server.url, sizeof server.url, "redis+unix://%s", server.socket);
    snprintf(server.host, sizeof server.host, "127.0.0.1:%d", server.port);
    redis_again(&server);
    return server;
}

static inline void redis_end(redis_server *server, int signal) {
    if (!server->pid)
        return;
    kill(server->pid, signal);
    waitpid(server->pid, NULL, 0);
    server->pid = 0;
}

static inline void redis_remove(redis_server *server) {
    redis_end(server, SIGKILL);
    pid_t pid = fork();
    if (!pid) {
        execlp("rm", "rm", "-rf", server->folder, NULL);
        _exit(127);
    }
    waitpid(pid, NULL, 0);
}

/* Says so where there is no server to test with. */
static inline bool redis_installed(void) {
    bool installed = !system("redis-server --version >/dev/null 2>&1");
    if (!installed)
        fprintf(stderr, "redis-server is not installed: `make deps` installs it\n");
    return installed;
}

#endif

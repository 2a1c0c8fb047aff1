/* Answers that a real Redis gives seldom, and some that it never gives, from a server with scripted answers:
 * its n-th answer is the n-th line of its script, whatever it was asked. */
#include "redis_links.h"

#include <poll.h>

typedef struct scripted {
    const char *const *answers; /* up to NULL; "" closes the connection */
    size_t given;
    int listener, port;
    pthread_t thread;
} scripted;

/* What a Redis 7 says at first, and what the functions answer. */
#define HELLO "*6\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
#define HELLO_CLUSTER "*6\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$2\r\nid\r\n:7\r\n$4\r\nmode\r\n$7\r\ncluster\r\n"
#define FUNCTIONS "*1\r\n*2\r\n$12\r\nlibrary_code\r\n" /* and the code, which is added when it is sent */
#define OTHER_FUNCTIONS "*1\r\n*2\r\n$12\r\nlibrary_code\r\n$5\r\nother\r\n"
#define CONFIG "*0\r\n"
#define COUNTED(number) "*2\r\n:" number "\r\n$7\r\ncounted\r\n"

static void answer(scripted *server, int fd) {
    char bytes[4096];
    while (server->answers[server->given]) {
        struct pollfd what = {fd, POLLIN, 0};
        if (poll(&what, 1, 3000) <= 0 || recv(fd, bytes, sizeof bytes, 0) <= 0)
            return;
        const char *words = server->answers[server->given++];
        if (!*words)
            return;
        int length = !strcmp(words, FUNCTIONS)
                         ? snprintf(bytes, sizeof bytes, FUNCTIONS "$%zu\r\n%s\r\n", strlen(test_library), test_library)
                         : snprintf(bytes, sizeof bytes, "%s", words);
        (void)!send(fd, bytes, (size_t)length, MSG_NOSIGNAL);
    }
    /* Nothing more to say: the other side ends it. */
    while (recv(fd, bytes, sizeof bytes, 0) > 0)
        continue;
}

static void *serve(void *given) {
    scripted *server = given;
    struct pollfd what = {server->listener, POLLIN, 0};
    while (server->answers[server->given] && poll(&what, 1, 3000) > 0) {
        int fd = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0)
            return NULL;
        answer(server, fd);
        close(fd);
    }
    return NULL;
}

static scripted listen_with(const char *const *answers) {
    scripted server = {.answers = answers};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(server.listener >= 0 && !bind(server.listener, (struct sockaddr *)&address, size));
    assert_int_equal(listen(server.listener, 10), 0);
    assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &size), 0);
    server.port = ntohs(address.sin_port);
    return server;
}

static void end(scripted *server) {
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

/* That opening fails on these answers. */
static void refused(doppel_status status, const char *words, const char *const *answers) {
    scripted server = listen_with(answers);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    char url[96];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=2&retry=0.05", server.port);
    links_refuse(url, status, words);
    end(&server);
}
#define REFUSED(status, words, ...) refused(status, words, (const char *const[]){__VA_ARGS__, NULL})

/* That calls work, or fail, on these answers: soon where they fail, and on a loaded machine where they work. */
static void called(doppel_status status, const char *words, size_t count, const char *const *answers) {
    scripted server = listen_with(answers);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
    char url[96];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d?timeout=2&retry=%s", server.port, status ? "0.05" : "5");
    redis_links links;
    links_open(&links, url);
    dp_redis_link *link = take_link(&links);
    if (status)
        call_fails(link, count, status, words);
    else
        assert_int_equal(call_counts(link, count, false), 0);
    dp_redis_give(links.pool, link);
    links_close(&links);
    end(&server);
}
#define CALLED(status, words, count, ...) \
    called(status, words, count, (const char *const[]){HELLO, FUNCTIONS, CONFIG, __VA_ARGS__, NULL})

static void servers_that_are_too_old(void **state) {
    (void)state;
    REFUSED(DOPPEL_ERROR_STORE, "version 7 or later is needed", "-ERR unknown command 'HELLO'\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "it is Redis 6.2.1", "*2\r\n$7\r\nversion\r\n$5\r\n6.2.1\r\n");
}

static void servers_that_are_none(void **state) {
    (void)state;
    REFUSED(DOPPEL_ERROR_AWAY, "Protocol error", "HTTP/1.1 400 Bad Request\r\n\r\n");
    REFUSED(DOPPEL_ERROR_AWAY, "closed the connection", "");
    REFUSED(DOPPEL_ERROR_STORE, "version 7", "*0\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "version 7", "+OK\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "version 7", "*3\r\n$7\r\nversion\r\n*1\r\n$1\r\n7\r\n:1\r\n");
}

static void servers_that_refuse(void **state) {
    (void)state;
    REFUSED(DOPPEL_ERROR_STORE, "protected mode", "-DENIED Redis is running in protected mode because\r\n");
    REFUSED(DOPPEL_ERROR_AWAY, "all the clients it takes", "-ERR max number of clients reached\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "cannot be loaded: 127.0.0.1", HELLO, "*0\r\n", "-ERR Function f already exists\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "an administrator runs `doppel prepare", HELLO, "*0\r\n", "-NOPERM no\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "other code than this doppel's", HELLO, OTHER_FUNCTIONS);
    REFUSED(DOPPEL_ERROR_STORE, "other code than this doppel's", HELLO, "*0\r\n", "-ERR Library 'x' already exists\r\n",
            OTHER_FUNCTIONS);
}

static void quicker_loaders_do_not_matter(void **state) {
    (void)state;
    static const char *const answers[] = {
        HELLO, "*0\r\n", "-ERR Library 'doppel_test' already exists\r\n", FUNCTIONS, CONFIG, COUNTED("1"), NULL};
    called(DOPPEL_OK, "", 1, answers);
}

/* Who may not look takes what is there, and loads it only when a call has not found it. */
static void functions_that_are_hidden(void **state) {
    (void)state;
    static const char *const there[] = {HELLO, "-NOPERM list\r\n", CONFIG, COUNTED("1"), NULL};
    called(DOPPEL_OK, "", 1, there);
    static const char *const loaded[] = {
        HELLO,         "-NOPERM list\r\n", CONFIG, "-ERR Function not found\r\n", "-NOPERM list\r\n",
        "$1\r\nx\r\n", COUNTED("1"),       NULL};
    called(DOPPEL_OK, "", 1, loaded);
    static const char *const refused[] = {
        HELLO, "-NOPERM list\r\n", CONFIG, "-ERR Function not found\r\n", "-NOPERM list\r\n", "-NOPERM load\r\n", NULL};
    called(DOPPEL_ERROR_STORE, "an administrator runs `doppel prepare", 1, refused);
}

/* Each is met once, and then it works. */
static void refusals_that_pass(void **state) {
    (void)state;
    CALLED(DOPPEL_OK, "", 1, "-TRYAGAIN Multiple keys\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-ASK 1 127.0.0.1:1\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-ERR Script attempted to access a non local key in a cluster node\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-LOADING Redis is loading\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-BUSY Redis is busy\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-NOREPLICAS Not enough\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-ERR Function not found\r\n", "*0\r\n", "$1\r\nx\r\n", COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-READONLY You can't write\r\n", HELLO, FUNCTIONS, COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-MASTERDOWN Link\r\n", HELLO, FUNCTIONS, COUNTED("1"));
    CALLED(DOPPEL_OK, "", 1, "-CLUSTERDOWN The cluster is down\r\n", HELLO, FUNCTIONS, COUNTED("1"));
    /* Several at once: those behind the first are sent after it. */
    CALLED(DOPPEL_OK, "", 3, "-LOADING 1\r\n-LOADING 2\r\n-LOADING 3\r\n", COUNTED("1"), COUNTED("2") COUNTED("3"));
    CALLED(DOPPEL_OK, "", 3, COUNTED("1") "-LOADING 2\r\n-LOADING 3\r\n", COUNTED("2"), COUNTED("3"));
}

static void refusals_that_stay(void **state) {
    (void)state;
    CALLED(DOPPEL_ERROR_AWAY, "it cannot save to its disk", 1,
           "-MISCONF Redis is configured to save RDB snapshots\r\n");
    CALLED(DOPPEL_ERROR_AWAY, "it is full", 2, "-OOM command not allowed\r\n-OOM command not allowed\r\n");
    CALLED(DOPPEL_ERROR_STORE, "it asks for a password", 1, "-NOAUTH Authentication required.\r\n");
    CALLED(DOPPEL_ERROR_AWAY, "being moved to another node", 1, "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n",
           "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n", "-ASK 1 h:1\r\n");
}

static void answers_to_nothing_end_the_connection(void **state) {
    (void)state;
    CALLED(DOPPEL_OK, "", 1, COUNTED("1") ":1\r\n", HELLO, FUNCTIONS);
}

static void nodes_with_odd_views(void **state) {
    (void)state;
    /* Slots that nobody has, hosts that are not known, ranges that are none. */
    REFUSED(DOPPEL_ERROR_STORE, "not answer as Redis", HELLO_CLUSTER, ":5\r\n", "*1\r\n:1\r\n");
    REFUSED(DOPPEL_ERROR_STORE, "not answer as Redis", HELLO_CLUSTER, "+x\r\n", "*0\r\n");
    static const char *const nobody[] = {HELLO_CLUSTER, ":5\r\n", "*0\r\n", FUNCTIONS, CONFIG, COUNTED("1"), NULL};
    called(DOPPEL_OK, "", 1, nobody);
    static const char *const unknown[] = {
        HELLO_CLUSTER, ":5\r\n", "*1\r\n*4\r\n:0\r\n:9\r\n*2\r\n$1\r\n?\r\n:1\r\n:3\r\n", FUNCTIONS, CONFIG,
        COUNTED("1"),  NULL};
    called(DOPPEL_OK, "", 1, unknown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_that_are_too_old),  cmocka_unit_test(servers_that_are_none),
        cmocka_unit_test(servers_that_refuse),       cmocka_unit_test(quicker_loaders_do_not_matter),
        cmocka_unit_test(functions_that_are_hidden), cmocka_unit_test(refusals_that_pass),
        cmocka_unit_test(refusals_that_stay),        cmocka_unit_test(answers_to_nothing_end_the_connection),
        cmocka_unit_test(nodes_with_odd_views),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

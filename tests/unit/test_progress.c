/* test_progress.c - the progress line: on a terminal it is redrawn in place and never wider than the terminal;
 * elsewhere a line comes every 30 seconds; and a limit ends the time left. The file under test belongs to the command,
 * so it is taken in whole; time, and how wide the terminal is, are the test's. */
#include "../../programs/common/progress.c"

#include "support.h"

#include <fcntl.h>
#include <stdlib.h>

bool message_quiet;
static uint64_t microseconds;
static int columns;

uint64_t now_microseconds(void) {
    return microseconds;
}

int terminal_columns(FILE *file) {
    (void)file;
    return columns;
}

/* ---- what is written to stderr ---- */

static int real_stderr, reading;

/* stderr becomes a pipe, or the end of a terminal whose other end is read. */
static void begin_stderr(bool terminal) {
    int ends[2];
    real_stderr = dup(STDERR_FILENO);
    if (terminal) {
        ends[0] = posix_openpt(O_RDWR | O_NOCTTY);
        assert_true(ends[0] >= 0 && !grantpt(ends[0]) && !unlockpt(ends[0]));
        ends[1] = open(ptsname(ends[0]), O_RDWR | O_NOCTTY);
    } else {
        assert_int_equal(pipe(ends), 0);
    }
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    reading = ends[0];
    microseconds = 1000000;
    line.last = 0;
    message_quiet = false;
}

/* What was written since; then stderr is what it was. */
static const char *end_stderr(void) {
    static char text[4096];
    fflush(stderr);
    assert_int_equal(write(STDERR_FILENO, "~", 1), 1);
    size_t length = 0;
    while (!length || text[length - 1] != '~')
        length += (size_t)read(reading, text + length, 1);
    text[length - 1] = 0;
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    close(reading);
    return text;
}

static void at(double seconds) {
    microseconds = 1000000 + (uint64_t)(seconds * 1e6);
}

/* ---- tests ---- */

static void a_log_gets_a_line_every_30_seconds(void **state) {
    (void)state;
    begin_stderr(false);
    progress_begin("reading");
    at(29);
    progress_show(10000000, 100000000, 500, NULL);
    at(30);
    progress_show(20000000, 100000000, 1000, NULL);
    at(45);
    progress_show(30000000, 100000000, 1500, NULL);
    progress_end();
    progress_begin("comparing"); /* the interval goes on */
    at(59);
    progress_part(1, 4, NULL);
    at(60);
    progress_part(1, 4, NULL);
    progress_end();
    assert_string_equal(end_stderr(), "doppel: reading: 1000 documents, 20 MB, 1 MB/s, 2 min 00 s left\n"
                                      "doppel: comparing: 25 %, 45 s left\n");
}

static void a_terminal_gets_one_line_that_fits(void **state) {
    (void)state;
    begin_stderr(true);
    columns = 21;
    progress_begin("reading");
    at(0.1);
    progress_show(1000000, 4000000, 7, NULL);
    at(1);
    progress_show(2000000, 4000000, 8, NULL);
    columns = 80;
    at(2);
    progress_show(3000000, 4000000, 9, NULL);
    progress_end();
    assert_string_equal(end_stderr(), "reading: 8 documents"
                                      "\r\033[Kreading: 9 documents, 3 MB, 2 MB/s"
                                      "\r\033[K");
}

static void a_narrow_terminal_keeps_the_time_left(void **state) {
    (void)state;
    begin_stderr(true);
    columns = 40;
    progress_begin("reading");
    at(1);
    progress_show(2000000, 4000000, 8, NULL);
    at(2);
    progress_show(2000000000, 4000000000, 100000, NULL);
    progress_end();
    assert_string_equal(end_stderr(), "reading: 8 documents, 1 s left"
                                      "\r\033[Kreading: 100000 documents, 2 s left"
                                      "\r\033[K");
}

static void a_limit_ends_the_time_left(void **state) {
    (void)state;
    begin_stderr(false);
    progress_begin("reading");
    progress_limit(1500);
    at(40);
    progress_show(40000000, 4000000000, 1000, NULL);
    at(80);
    progress_show(40000000, 0, 1200, NULL); /* from a pipe */
    progress_limit(1000000000);
    at(120);
    progress_show(60000000, 120000000, 1300, NULL);
    progress_limit(0);
    progress_end();
    assert_string_equal(end_stderr(), "doppel: reading: 1000 documents, 40 MB, 1 MB/s, 20 s left\n"
                                      "doppel: reading: 1200 documents, 40 MB, 0 MB/s, 20 s left\n"
                                      "doppel: reading: 1300 documents, 60 MB, 0 MB/s, 2 min 00 s left\n");
}

static void there_is_none_when_it_is_quiet(void **state) {
    (void)state;
    begin_stderr(false);
    message_quiet = true;
    progress_begin("reading");
    at(100);
    progress_show(1000, 2000, 1, NULL);
    progress_part(1, 2, NULL);
    progress_end();
    assert_string_equal(end_stderr(), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_gets_a_line_every_30_seconds),    cmocka_unit_test(a_terminal_gets_one_line_that_fits),
        cmocka_unit_test(a_narrow_terminal_keeps_the_time_left), cmocka_unit_test(a_limit_ends_the_time_left),
        cmocka_unit_test(there_is_none_when_it_is_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

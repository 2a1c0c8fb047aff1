/* work_folder.h - for tests that work in a folder of their own: it is made and entered before each test, and goes with
 * all that is in it afterwards. */
#ifndef TESTS_WORK_FOLDER_H
#define TESTS_WORK_FOLDER_H

#include "support.h"

#include <stdio.h>

static char work_folder[] = "/tmp/doppel-test-XXXXXX";

static inline int enter_folder(void **state) {
    (void)state;
    strcpy(work_folder, "/tmp/doppel-test-XXXXXX");
    return !mkdtemp(work_folder) || chdir(work_folder);
}

static inline int leave_folder(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "chmod -R u+rwx %s && rm -rf %s", work_folder, work_folder);
    return chdir("/") || system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

#endif

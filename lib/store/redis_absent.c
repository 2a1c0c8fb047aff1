/* redis_absent.c - shared stores where hiredis was not found at build time: there is none, and opening one says so. */
#include "store/shared.h"

static doppel_status absent(doppel_error *error) {
    return dp_fail(error, DOPPEL_ERROR_USAGE,
                   "this doppel was built without Redis: hiredis is needed to build it (-DDOPPEL_REDIS=ON)");
}

doppel_status dp_shared_open(const char *url, const dp_shared_options *options, dp_shared **shared,
                             doppel_error *error) {
    (void)url;
    (void)options;
    *shared = NULL;
    return absent(error);
}

doppel_status dp_shared_prepare(const char *url,
                                void (*server)(const char *server, const char *library, const char *state, void *user),
                                void *user, doppel_error *error) {
    (void)url;
    (void)server;
    (void)user;
    return absent(error);
}

/* What follows takes an open one, which cannot be had here. */

void dp_shared_close(dp_shared *shared) {
    (void)shared;
}

void dp_shared_stop_waiting(dp_shared *shared) {
    (void)shared;
}

const char *dp_shared_settings(const dp_shared *shared) {
    (void)shared;
    return "";
}

const char *dp_shared_name(const dp_shared *shared) {
    (void)shared;
    return "";
}

void dp_shared_answers_free(dp_shared_answers *answers) {
    *answers = (dp_shared_answers){0};
}

void dp_shared_documents_free(dp_shared_documents *documents) {
    *documents = (dp_shared_documents){0};
}

doppel_status dp_shared_ask(dp_shared *shared, const dp_shared_request *requests, size_t count,
                            dp_shared_answers *answers, doppel_error *error) {
    (void)shared;
    (void)requests;
    (void)count;
    (void)answers;
    return absent(error);
}

doppel_status dp_shared_get(dp_shared *shared, doppel_slice id, doppel_slice canonical, uint64_t now,
                            dp_shared_documents *documents, doppel_error *error) {
    (void)shared;
    (void)id;
    (void)canonical;
    (void)now;
    (void)documents;
    return absent(error);
}

doppel_status dp_shared_get_numbers(dp_shared *shared, const uint64_t *numbers, size_t count, uint64_t now,
                                    dp_shared_documents *documents, doppel_error *error) {
    (void)shared;
    (void)numbers;
    (void)count;
    (void)now;
    (void)documents;
    return absent(error);
}

doppel_status dp_shared_near(dp_shared *shared, const uint64_t fingerprint[2], int distance, size_t limit, uint64_t now,
                             dp_shared_documents *documents, doppel_error *error) {
    (void)shared;
    (void)fingerprint;
    (void)distance;
    (void)limit;
    (void)now;
    (void)documents;
    return absent(error);
}

doppel_status dp_shared_each(dp_shared *shared, uint64_t *from, uint64_t now, dp_shared_documents *documents,
                             doppel_error *error) {
    (void)shared;
    (void)from;
    (void)now;
    (void)documents;
    return absent(error);
}

doppel_status dp_shared_get_info(dp_shared *shared, uint64_t now, dp_shared_info *info, doppel_error *error) {
    (void)now;
    (void)shared;
    (void)info;
    return absent(error);
}

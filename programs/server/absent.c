/* absent.c - doppel serve where its libraries were not found at build time. */
#include "server/serve.h"

#include "common/message.h"

int serve_configure(serve_config *config, const cli_args *args) {
    (void)config;
    (void)args;
    return EXIT_DONE;
}

void serve_config_free(serve_config *config) {
    (void)config;
}

static int absent(void) {
    message("this doppel was built without the server: libmicrohttpd, inih and libseccomp are needed to build it");
    return EXIT_USAGE;
}

int serve(const cli_args *args, const served_index *index) {
    (void)args;
    (void)index;
    return absent();
}

int serve_generate(const char *what) {
    (void)what;
    return absent();
}

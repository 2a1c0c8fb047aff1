/* cmd_prepare.c - doppel prepare: loads the functions that a shared store needs, as an administrator of its Redis. */
#include "commands.h"
#include "common/message.h"
#include "engine/engine_command.h"

#include <string.h>

const cli_option prepare_options[] = {
    {"store", 0, OPTION_TEXT, "URL",
     "the Redis: redis://HOST:PORT, or Sentinels, or a Cluster (docs/ENGINE.md has all forms)"},
    STORE_PASSWORD_OPTION,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static void print_server(const char *server, const char *library, const char *state, void *user) {
    text_buffer out = {0};
    (void)user;
    text_put(&out, "{");
    text_member_string(&out, "server", doppel_slice_of(server));
    text_member_string(&out, "library", doppel_slice_of(library));
    text_member_string(&out, "state", doppel_slice_of(state));
    text_put(&out, "}\n");
    print_text(&out, EXIT_DONE);
}

int cmd_prepare(const cli_args *args) {
    index_place place = {0};
    doppel_error error = {0};
    int code = EXIT_USAGE;
    if (!args_text(args, "store"))
        message("prepare needs --store URL: the Redis whose users may not load functions themselves");
    else if (place_find(&place, args))
        code = engine_ended(doppel_store_prepare(place.path, print_server, NULL, &error), &error);
    place_free(&place);
    return finish_stdout(code);
}

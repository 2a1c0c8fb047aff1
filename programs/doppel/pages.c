/* pages.c - HTML among a command's documents. */
#include "pages.h"

#include "common/message.h"

#include <string.h>

bool content_option(const cli_args *args, doppel_content *content) {
    const char *part = args_text(args, "content");
    *content = part && !strcmp(part, "all") ? DOPPEL_CONTENT_ALL : DOPPEL_CONTENT_MAIN;
    if (!part || !strcmp(part, "main") || !strcmp(part, "all"))
        return true;
    message("--content takes main or all, not %s", part);
    return false;
}

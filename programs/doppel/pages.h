/* pages.h - HTML among a command's documents: the option that says which part of it counts. */
#ifndef PAGES_H
#define PAGES_H

#include "common/args.h"
#include "doppel.h"

#define CONTENT_OPTION                                                                                  \
    {                                                                                                   \
        "content", 0, OPTION_TEXT, "PART",                                                              \
            "of HTML: main (the default), without menus, headers and banners; all: all that is visible" \
    }

/* The value of --content. Complains and gives false when it is neither. */
bool content_option(const cli_args *args, doppel_content *content);

#endif

/* choices.h - options that take words of a list: one of them, or several separated by commas. */
#ifndef SHARED_CHOICES_H
#define SHARED_CHOICES_H

#include "common/args.h"
#include "doppel.h"

typedef struct choice {
    const char *name; /* NULL ends a list */
    unsigned value;
} choice;

extern const choice content_choices[];  /* of --content: doppel_content */
extern const choice url_rule_choices[]; /* of --url-keep: rules that are not applied to URLs */

/* Of --on-duplicate: doppel_on_duplicate; of --on-same-url: doppel_on_same_url. */
extern const choice duplicate_choices[], same_url_choices[];

/* The value of an option that takes one of some words; *value stays where it is not given. Prints a message and returns
 * false for anything else. */
bool choose_one(const cli_args *args, const char *option, const choice *choices, unsigned *value);

/* The same for several, separated by commas, which are or'ed to *value. */
bool choose_some(const cli_args *args, const char *option, const choice *choices, unsigned *value);

/* The word for a value; "" when there is none. */
const char *choice_name(const choice *choices, unsigned value);

#define CONTENT_OPTION                                                                                  \
    {                                                                                                   \
        "content", 0, OPTION_TEXT, "PART",                                                              \
            "of HTML: main (the default), without menus, headers and banners; all: all that is visible" \
    }

/* The value of --content. Prints a message and returns false when it is neither. */
bool content_option(const cli_args *args, doppel_content *content);

#endif

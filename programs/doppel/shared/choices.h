/* choices.h - options that take words of a list: one of them, or several separated by commas. */
#ifndef SHARED_CHOICES_H
#define SHARED_CHOICES_H

#include "common/args.h"
#include "doppel.h"

/* Those of which the words are needed elsewhere: --content (doppel_content), --url-keep (rules that are not applied to
 * URLs), --on-duplicate, --on-same-url, --method, --unit. */
extern const cli_choice content_choices[], url_rule_choices[], duplicate_choices[], same_url_choices[],
    method_choices[], unit_choices[];

/* The words that an option of a command takes, for checking and for shell completion; NULL: it takes anything. */
const cli_choice *choices_of(const char *command, const char *option);

/* The value of an option that takes one of its choices; *value is unchanged where it is not given. Prints a message and
 * returns false for anything else. */
bool choose_one(const cli_args *args, const char *option, unsigned *value);

/* The same for several, separated by commas, which are or'ed to *value. */
bool choose_some(const cli_args *args, const char *option, unsigned *value);

/* The word for a value; "" when there is none. */
const char *choice_name(const cli_choice *choices, unsigned value);

#define CONTENT_OPTION                                                                                            \
    {                                                                                                             \
        "content", 0, OPTION_TEXT, "PART",                                                                        \
            "which part of HTML counts: main (the default), without menus, headers and banners; all: everything " \
            "visible"                                                                                             \
    }

/* Of commands that print lines, in JSON or in words. */
#define PRINT_OPTION \
    { "print", 0, OPTION_TEXT, "FORM", "text: in words; jsonl (default: text on a terminal, else jsonl)" }

/* The value of --content. Prints a message and returns false when it is neither. */
bool content_option(const cli_args *args, doppel_content *content);

#endif

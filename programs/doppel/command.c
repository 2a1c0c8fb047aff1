/* command.c - doppel COMMAND [options] INPUT... The table of commands is in commands.c; each command is a file
 * cmd_NAME.c. */
#include "commands.h"
#include "common/embed.h"
#include "common/help.h"
#include "common/message.h"
#include "server/serve.h"

#include <stdlib.h>
#include <string.h>

static int print_version(void) {
    printf("doppel %s (CPU level %s, Unicode %s)\n", doppel_version(), doppel_cpu_level(), doppel_unicode_version());
    return finish_stdout(EXIT_DONE);
}

static const cli_command *find_command(const char *name) {
    for (const cli_command *command = doppel_manual.commands; command->name; command++)
        if (!strcmp(command->name, name))
            return command;
    return NULL;
}

/* What people and other tools call commands. */
static const struct {
    const char *name, *ours;
} other_names[] = {
    {"deduplicate", "dedup"},  {"deduplication", "dedup"}, {"unique", "dedup"},        {"duplicates", "pairs"},
    {"decontaminate", "trim"}, {"groups", "cluster"},      {"simhash", "fingerprint"}, {"hash", "fingerprint"},
    {"diff", "compare"},       {"search", "similar"},      {"find", "similar"},        {"insert", "add"},
    {"show", "get"},           {"delete", "remove"},       {"rm", "remove"},           {"del", "remove"},
    {"ls", "export"},          {"forget", "remove"},       {"info", "stats"},          {"status", "stats"},
    {"http", "serve"},         {"kafka", "stream"},        {"uniq", "dedup"},          {"group", "cluster"},
    {"members", "cluster"},    {"plagiarism", "overlap"},  {"query", "similar"}};

/* Names that people try and that are not commands. */
static const struct {
    const char *name, *hint;
} hints[] = {
    {"why", "compare --in FILE --removed LIST ID says why dedup removed a document"},
    {"explain", "compare --in FILE --removed LIST ID says why dedup removed a document"},
    {"undo", "remove --index DIR --files-from FILE undoes an add that wrote FILE; dedup leaves its input unchanged; "
             "--removed-documents FILE has what was removed"},
    {"restore", "dedup leaves its input unchanged; --removed-documents FILE has what was removed"},
    {"init", "add --index DIR makes the index when it adds the first documents"},
    {"index", "add --index DIR INPUT puts documents into an index"},
    {"ui", "serve has a page for the browser; report and overlap --html write pages"},
    {"web", "serve has a page for the browser; report and overlap --html write pages"},
    {"mark", "dedup --annotate marks duplicates and removes nothing"},
    {"list", "cluster lists groups of documents; export lists what an index holds"},
    {"clean", "dedup removes copies of whole documents, trim what repeats inside them"},
    {"minhash", "dedup, pairs and cluster have --method minhash; fingerprint --json prints the measures of a document"},
    {"lookup",
     "check --index DIR says whether an index has a document, get shows one by its id, similar finds near ones"},
    {"copies", "cluster lists the copies of each document of a file, similar those of one"},
    {"console", "serve has the console, a page for the browser"},
    {"upsample", "dedup --annotate --annotate-kept writes what is kept, each with the size of its group"},
    {"merge", "dedup takes several INPUTs and writes one output"},
};

/* The command that was probably meant by a name; NULL: none is near. */
static const char *command_meant(const char *name) {
    enum { OTHER_NAMES = sizeof other_names / sizeof *other_names };
    const char *names[64 + OTHER_NAMES];
    size_t count = 0;
    for (const cli_command *command = doppel_manual.commands; command->name && count < 64; command++)
        names[count++] = command->name;
    for (size_t i = 0; i < OTHER_NAMES; i++)
        names[count++] = other_names[i].name;
    const char *nearest = nearest_name(name, names, count);
    for (size_t i = 0; nearest && i < OTHER_NAMES; i++)
        if (nearest == other_names[i].name)
            return other_names[i].ours;
    return nearest;
}

static int unknown_command(const char *name) {
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (!strcmp(hints[i].name, name)) {
            message("there is no command %s: %s", name, hints[i].hint);
            return EXIT_USAGE;
        }
    const char *meant = command_meant(name);
    if (meant)
        message("unknown command %s; did you mean %s?", name, meant);
    else
        message("unknown command %s; `doppel --help` lists the commands", name);
    return EXIT_USAGE;
}

/* An option of doppel itself, given instead of a command. */
static int run_option(int argc, char **argv) {
    const char *option = argv[1];
    if (!strcmp(option, "--version") || !strcmp(option, "-V") || !strcmp(option, "-v") || !strcmp(option, "version"))
        return print_version();
    if (!strcmp(option, "--generate") && argc == 3 && help_generate(stdout, &doppel_manual, argv[2]))
        return finish_stdout(EXIT_DONE);
    if (!strcmp(option, "--generate") && argc == 3 && (!strcmp(argv[2], "http") || !strcmp(argv[2], "openapi")))
        return finish_stdout(serve_generate(argv[2]));
    if (!strcmp(option, "--help") || !strcmp(option, "-h") || !strcmp(option, "help")) {
        const cli_command *command = argc > 2 ? find_command(argv[2]) : NULL;
        if (argc > 2 && !command)
            return unknown_command(argv[2]);
        if (command)
            help_command(stdout, &doppel_manual, command);
        else
            help_overview(stdout, &doppel_manual);
        return finish_stdout(EXIT_DONE);
    }
    return unknown_command(option);
}

static int run_command(const cli_command *command, int argc, char **argv) {
    cli_args args;
    int code;
    if (!args_parse(&args, command, doppel_manual.common, argc, argv)) {
        code = args.failure;
    } else if (args_flag(&args, "help")) {
        help_command(stdout, &doppel_manual, command);
        code = finish_stdout(EXIT_DONE);
    } else {
        message_quiet = args_flag(&args, "quiet");
        code = command->run(&args);
    }
    args_free(&args);
    return code;
}

int doppel_main(int argc, char **argv) {
    catch_signals();
    if (argc < 2) {
        help_short(stderr, &doppel_manual);
        return EXIT_USAGE;
    }
    const cli_command *command = find_command(argv[1]);
    return command ? run_command(command, argc - 2, argv + 2) : run_option(argc, argv);
}

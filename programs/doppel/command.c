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

static int unknown_command(const char *name) {
    const char *names[64];
    size_t count = 0;
    for (const cli_command *command = doppel_manual.commands; command->name && count < 64; command++)
        names[count++] = command->name;
    const char *meant = nearest_name(name, names, count);
    if (meant)
        message("unknown command %s; did you mean %s?", name, meant);
    else
        message("unknown command %s; `doppel --help` lists the commands", name);
    return EXIT_USAGE;
}

/* An option of doppel itself, in the place of a command. */
static int run_option(int argc, char **argv) {
    const char *option = argv[1];
    if (!strcmp(option, "--version") || !strcmp(option, "-V"))
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
        help_overview(stderr, &doppel_manual);
        return EXIT_USAGE;
    }
    const cli_command *command = find_command(argv[1]);
    return command ? run_command(command, argc - 2, argv + 2) : run_option(argc, argv);
}

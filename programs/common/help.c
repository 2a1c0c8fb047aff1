/* help.c - help, man page and shell completion, from the table of commands. */
#include "common/help.h"

#include "common/message.h"
#include "doppel.h"

#include <ctype.h>
#include <string.h>

/* ---- help ---- */

/* Where the text beside options starts, and where lines end: at the terminal's edge, in between these. */
#define INDENT 26
#define ROW_INDENT 20 /* beside the words of a topic */
#define MOST 80
#define LEAST (INDENT + 20)

static int line_width(FILE *file) {
    int columns = terminal_columns(file);
    return !columns || columns > MOST ? MOST : columns < LEAST ? LEAST : columns;
}

/* Prints words, broken into lines that start at column `indent`; the first line has reached `column`. */
static void print_wrapped(FILE *file, const char *text, int indent, int column) {
    bool first = true;
    int width = line_width(file);
    while (*text) {
        int length = (int)strcspn(text, " ");
        if (!first && column + 1 + length > width) {
            fprintf(file, "\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', file);
            column++;
        }
        fprintf(file, "%.*s", length, text);
        column += length;
        text += length + (text[length] == ' ');
        first = false;
    }
    fputc('\n', file);
}

/* Calls print_wrapped for each line of `text`. */
static void print_paragraphs(FILE *file, const char *text) {
    while (text && *text) {
        char line[1024];
        int length = (int)strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", length, text);
        print_wrapped(file, line, 0, 0);
        text += length + (text[length] == '\n');
    }
}

/* Whether a list of names, separated by spaces, has this one. */
static bool is_among(const char *names, const char *name) {
    size_t length = strlen(name);
    for (; *names; names += strcspn(names, " "), names += *names == ' ')
        if (strcspn(names, " ") == length && !memcmp(names, name, length))
            return true;
    return false;
}

static void print_option(FILE *file, const cli_option *option) {
    char left[64], letter[8] = "    ";
    if (option->letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    int length = snprintf(left, sizeof left, "  %s--%s%s%s", letter, option->name, option->value ? " " : "",
                          option->value ? option->value : "");
    fputs(left, file);
    if (length < INDENT)
        fprintf(file, "%*s", INDENT - length, "");
    else
        fprintf(file, "\n%*s", INDENT, "");
    print_wrapped(file, option->help, INDENT, INDENT);
}

static void print_options(FILE *file, const cli_option *options) {
    for (; options->name; options++)
        print_option(file, options);
}

/* The usual options of a command with many, in the order in which it names them; then the others. */
static void print_own_options(FILE *file, const cli_command *command) {
    if (!command->usual) {
        fputs("\nOptions:\n", file);
        print_options(file, command->options);
        return;
    }
    fputs("\nUsual options:\n", file);
    for (const char *name = command->usual; *name; name += strcspn(name, " "), name += *name == ' ')
        for (const cli_option *option = command->options; option->name; option++)
            if (strlen(option->name) == strcspn(name, " ") && !strncmp(option->name, name, strcspn(name, " ")))
                print_option(file, option);
    fputs("\nMore options:\n", file);
    for (const cli_option *option = command->options; option->name; option++)
        if (!is_among(command->usual, option->name))
            print_option(file, option);
}

static void print_topic(FILE *file, const cli_topic *topic) {
    fprintf(file, "\n%s:\n", topic->title);
    print_paragraphs(file, topic->notes);
    for (const cli_row *row = topic->rows; row->left; row++) {
        fprintf(file, "  %-*s", ROW_INDENT - 2, row->left);
        print_wrapped(file, row->right, ROW_INDENT, ROW_INDENT);
    }
}

static void print_examples(FILE *file, const char *examples) {
    while (*examples) {
        size_t length = strcspn(examples, "\n");
        fprintf(file, "  %.*s\n", (int)length, examples);
        examples += length + (examples[length] == '\n');
    }
}

void help_command(FILE *file, const cli_manual *manual, const cli_command *command) {
    fprintf(file, "Usage: doppel %s [options]%s%s\n\n", command->name, *command->arguments ? " " : "",
            command->arguments);
    print_wrapped(file, command->summary, 0, 0);
    if (command->description)
        fputc('\n', file);
    print_paragraphs(file, command->description);
    print_own_options(file, command);
    fputs("\nCommon options:\n", file);
    print_options(file, manual->common + command->common_from);
    if (command->topic)
        print_topic(file, command->topic);
    fputs("\nExamples:\n", file);
    print_examples(file, command->examples);
}

void help_short(FILE *file, const cli_manual *manual) {
    fprintf(file, "doppel: %s\n\nUsage: doppel COMMAND [options] INPUT...\n\nWhich command:\n", manual->summary);
    print_examples(file, manual->tasks);
    fputs("\nTo begin:\n", file);
    print_examples(file, manual->first);
    fputs("\ndoppel --help lists everything; doppel COMMAND --help has the options and examples of one.\n", file);
}

void help_overview(FILE *file, const cli_manual *manual) {
    fprintf(file, "doppel: %s\n\nUsage: doppel COMMAND [options] INPUT...\n\nCommands:\n", manual->summary);
    for (const cli_command *command = manual->commands; command->name; command++) {
        fprintf(file, "  %-13s", command->name);
        print_wrapped(file, command->summary, 15, 15);
        fprintf(file, "%*s", 17, "");
        fprintf(file, "%.*s\n", (int)strcspn(command->examples, "\n"), command->examples);
    }
    fputs("\n  doppel COMMAND --help   options and examples of a command\n", file);
    fputs("  doppel --version        the version, the CPU level, the Unicode version\n\n", file);
    fputs("Which command:\n", file);
    print_examples(file, manual->tasks);
    fputc('\n', file);
    print_paragraphs(file, manual->notes);
}

/* ---- roff ---- */

/* Prints text for roff: backslashes and dashes are escaped, and a line never starts with a control character. */
static void roff(FILE *file, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if ((text[i] == '.' || text[i] == '\'') && (i == 0 || text[i - 1] == '\n'))
            fputs("\\&", file);
        if (text[i] == '\\')
            fputs("\\e", file);
        else if (text[i] == '-')
            fputs("\\-", file);
        else
            fputc(text[i], file);
    }
}

static void roff_line(FILE *file, const char *text) {
    roff(file, text, strlen(text));
    fputc('\n', file);
}

/* Each line of `text` as a paragraph (`macro` is .PP), or as it stands (.nf). */
static void roff_paragraphs(FILE *file, const char *text, const char *macro) {
    while (text && *text) {
        size_t length = strcspn(text, "\n");
        fprintf(file, "%s\n", macro);
        roff(file, text, length);
        fputc('\n', file);
        text += length + (text[length] == '\n');
    }
}

static void roff_options(FILE *file, const cli_option *options) {
    for (; options->name; options++) {
        fputs(".TP\n", file);
        if (options->letter)
            fprintf(file, "\\fB\\-%c\\fR, ", options->letter);
        fputs("\\fB\\-\\-", file);
        roff(file, options->name, strlen(options->name));
        fprintf(file, "\\fR%s", options->value ? " \\fI" : "");
        if (options->value)
            roff(file, options->value, strlen(options->value));
        fprintf(file, "%s\n", options->value ? "\\fR" : "");
        roff_line(file, options->help);
    }
}

static void roff_command(FILE *file, const cli_command *command) {
    fprintf(file, ".SS doppel %s [options]%s%s\n", command->name, *command->arguments ? " " : "", command->arguments);
    roff_line(file, command->summary);
    roff_paragraphs(file, command->description, ".PP");
    roff_options(file, command->options);
    fputs(".PP\nExamples:\n.nf\n", file);
    roff_line(file, command->examples);
    fputs(".fi\n", file);
}

static void roff_topic(FILE *file, const cli_topic *topic) {
    fputs(".SH ", file);
    for (const char *p = topic->title; *p; p++)
        fputc(toupper((unsigned char)*p), file);
    fputc('\n', file);
    roff_paragraphs(file, topic->notes, ".PP");
    for (const cli_row *row = topic->rows; row->left; row++) {
        fputs(".TP\n", file);
        roff_line(file, row->left);
        roff_line(file, row->right);
    }
}

static void generate_man(FILE *file, const cli_manual *manual) {
    fprintf(file, ".TH DOPPEL 1 \"\" \"doppel %s\" \"User Commands\"\n", doppel_version());
    fputs(".SH NAME\ndoppel \\- ", file);
    roff_line(file, manual->summary);
    fputs(".SH SYNOPSIS\n\\fBdoppel\\fR \\fICOMMAND\\fR [options] \\fIINPUT\\fR...\n.SH DESCRIPTION\n", file);
    roff_paragraphs(file, manual->notes, ".PP");
    fputs(".SH WHICH COMMAND\n.nf\n", file);
    roff_line(file, manual->tasks);
    fputs(".fi\n.SH COMMANDS\n", file);
    for (const cli_command *command = manual->commands; command->name; command++)
        roff_command(file, command);
    fputs(".SH COMMON OPTIONS\n", file);
    roff_options(file, manual->common);
    for (const cli_command *command = manual->commands; command->name; command++)
        if (command->topic)
            roff_topic(file, command->topic);
}

/* ---- completion ---- */

static void bash_options(FILE *file, const cli_option *options) {
    for (; options->name; options++)
        fprintf(file, " --%s", options->name);
}

static bool takes_file(const cli_option *option) {
    return option->kind == OPTION_FILE || option->kind == OPTION_OUTPUT || option->kind == OPTION_TABLE ||
           option->kind == OPTION_FILES;
}

/* Options that take a value other than a file. */
static void bash_no_file(FILE *file, const cli_option *options) {
    for (; options->name; options++)
        if (options->kind != OPTION_FLAG && !takes_file(options))
            fprintf(file, "--%s|", options->name);
}

/* Prints the words of an option, with what is special to the shell escaped. */
static void print_choices(FILE *file, const cli_choice *choices, const char *escaped) {
    for (const cli_choice *c = choices; c->name; c++) {
        fputs(c == choices ? "" : " ", file);
        for (const char *p = c->name; *p; p++)
            fprintf(file, strchr(escaped, *p) ? "\\%c" : "%c", *p);
    }
}

/* A line for each option of a command that takes one of several words. */
static void bash_choices(FILE *file, const cli_manual *manual, const cli_command *command, const cli_option *option) {
    for (; option->name; option++) {
        const cli_choice *choices = manual->choices(command->name, option->name);
        if (!choices)
            continue;
        fprintf(file, "    %s:--%s", command->name, option->name);
        if (option->letter)
            fprintf(file, "|%s:-%c", command->name, option->letter);
        fputs(") values=\"", file);
        print_choices(file, choices, "");
        fputs("\" ;;\n", file);
    }
}

static void generate_bash(FILE *file, const cli_manual *manual) {
    fputs("# bash completion for doppel; made by `doppel --generate bash`\n_doppel() {\n", file);
    /* In --option=value, = is a word by itself. */
    fputs("    local at=$((COMP_CWORD - 1)) word=${COMP_WORDS[COMP_CWORD]} option options values before\n"
          "    if [ \"$word\" = = ]; then\n        word=\n"
          "    elif [ \"${COMP_WORDS[at]}\" = = ]; then\n        at=$((at - 1))\n    fi\n"
          "    option=${COMP_WORDS[at]}\n    case ${COMP_WORDS[1]} in\n",
          file);
    for (const cli_command *command = manual->commands; command->name; command++) {
        fprintf(file, "    %s) options=\"", command->name);
        bash_options(file, command->options);
        bash_options(file, manual->common + command->common_from);
        fputs("\" ;;\n", file);
    }
    fputs("    esac\n    if [ \"$COMP_CWORD\" -eq 1 ] || [ \"${COMP_WORDS[1]}\" = help ]; then\n"
          "        COMPREPLY=($(compgen -W \"",
          file);
    for (const cli_command *command = manual->commands; command->name; command++)
        fprintf(file, "%s ", command->name);
    fputs("help --help --version\" -- \"$word\"))\n        return\n    fi\n", file);
    fputs("    case ${COMP_WORDS[1]}:$option in\n", file);
    for (const cli_command *command = manual->commands; command->name; command++) {
        bash_choices(file, manual, command, command->options);
        bash_choices(file, manual, command, manual->common + command->common_from);
    }
    /* The words of a list follow commas; one that ends in a colon wants a field after it. */
    fputs("    esac\n    if [ -n \"$values\" ]; then\n"
          "        case $word in *,*) before=${word%,*}, ;; esac\n"
          "        COMPREPLY=($(compgen -P \"$before\" -W \"$values\" -- \"${word##*,}\"))\n"
          "        case ${COMPREPLY[0]} in *:) compopt -o nospace 2>/dev/null ;; esac\n"
          "        return\n    fi\n",
          file);
    fputs("    case $option in\n    ", file);
    for (const cli_command *command = manual->commands; command->name; command++)
        bash_no_file(file, command->options);
    bash_no_file(file, manual->common);
    fputs("--no-value) return ;;\n    esac\n    case $word in\n", file);
    fputs("    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n", file);
    fputs("    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}\n", file);
    fputs("complete -o filenames -F _doppel doppel\n", file);
}

/* Prints inside single quotes of zsh; brackets and colons are special to _arguments. */
static void zsh_text(FILE *file, const char *text) {
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", file);
        else if (strchr("[]:\\", *text))
            fputc('\\', file);
        fputc(*text, file);
    }
}

/* What completes the value of an option. */
static void zsh_value(FILE *file, const cli_option *option, const cli_choice *choices) {
    if (!choices) {
        fputs(takes_file(option) ? "_files" : "", file);
        return;
    }
    fputs(option->kind == OPTION_NAMES ? "_sequence compadd - " : "(", file);
    print_choices(file, choices, ":");
    fputs(option->kind == OPTION_NAMES ? "" : ")", file);
}

static void zsh_options(FILE *file, const cli_manual *manual, const char *command, const cli_option *options) {
    for (; options->name; options++) {
        fprintf(file, " \\\n            '--%s%s[", options->name, options->kind == OPTION_FLAG ? "" : "=");
        zsh_text(file, options->help);
        fputc(']', file);
        if (options->kind != OPTION_FLAG) {
            fputc(':', file);
            zsh_text(file, options->value);
            fputc(':', file);
            zsh_value(file, options, manual->choices(command, options->name));
        }
        fputc('\'', file);
    }
}

static void generate_zsh(FILE *file, const cli_manual *manual) {
    fputs("#compdef doppel\n# made by `doppel --generate zsh`\n_doppel() {\n    if ((CURRENT == 2)); then\n", file);
    fputs("        local -a commands=(\n", file);
    for (const cli_command *command = manual->commands; command->name; command++) {
        fprintf(file, "            '%s:", command->name);
        zsh_text(file, command->summary);
        fputs("'\n", file);
    }
    fputs("        )\n        _describe command commands\n        return\n    fi\n    case $words[2] in\n", file);
    for (const cli_command *command = manual->commands; command->name; command++) {
        fprintf(file, "    %s)\n        _arguments", command->name);
        zsh_options(file, manual, command->name, command->options);
        zsh_options(file, manual, command->name, manual->common + command->common_from);
        fputs(" \\\n            '*:input:_files' ;;\n", file);
    }
    fputs("    esac\n}\n_doppel \"$@\"\n", file);
}

bool help_generate(FILE *file, const cli_manual *manual, const char *what) {
    if (!strcmp(what, "man"))
        generate_man(file, manual);
    else if (!strcmp(what, "bash"))
        generate_bash(file, manual);
    else if (!strcmp(what, "zsh"))
        generate_zsh(file, manual);
    else
        return false;
    return true;
}

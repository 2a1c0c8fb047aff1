/* help.c - the help of the command. */
#include "common/help.h"

#include "common/message.h"
#include "doppel.h"

#include <string.h>

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

static void print_options(FILE *file, const cli_option *options) {
    for (; options->name; options++) {
        char left[64], letter[8] = "    ";
        if (options->letter)
            snprintf(letter, sizeof letter, "-%c, ", options->letter);
        int length = snprintf(left, sizeof left, "  %s--%s%s%s", letter, options->name, options->value ? " " : "",
                              options->value ? options->value : "");
        fputs(left, file);
        if (length < INDENT)
            fprintf(file, "%*s", INDENT - length, "");
        else
            fprintf(file, "\n%*s", INDENT, "");
        print_wrapped(file, options->help, INDENT, INDENT);
    }
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
    fputs("\nOptions:\n", file);
    print_options(file, command->options);
    fputs("\nCommon options:\n", file);
    print_options(file, manual->common + command->common_from);
    if (command->topic)
        print_topic(file, command->topic);
    fputs("\nExamples:\n", file);
    print_examples(file, command->examples);
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
    print_paragraphs(file, manual->notes);
}

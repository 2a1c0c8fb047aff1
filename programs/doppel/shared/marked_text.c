/* marked_text.c - a text on a terminal, with the passages that another text has, too. */
#include "shared/marked_text.h"

#include "common/message.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A piece longer than LONG bytes is shown by its first and last KEEP, about a line and a half each. */
#define LONG 280
#define KEEP 120

/* Terminals narrower than this count as this wide: a few words still fit after the indent. */
#define LEAST 20

/* The state of writing. */
typedef struct text_writer {
    FILE *file;
    int column, width;
    bool colour;
    bool glue; /* no space before the next word: the text has none there */
} text_writer;

bool use_colour(FILE *file) {
    const char *no = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(fileno(file)) && !(no && *no) && terminal && strcmp(terminal, "dumb") != 0;
}

static int line_width(FILE *file) {
    int columns = terminal_columns(file);
    return !columns ? 80 : columns < LEAST ? LEAST : columns;
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool inside_character(char c) {
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Counts characters; each is assumed to take one column. */
static int count_columns(const char *word, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++)
        count += !inside_character(word[i]);
    return count;
}

/* Writes a word, on a new line if it does not fit. */
static void put_word(text_writer *pen, const char *word, size_t length) {
    int wide = count_columns(word, length);
    if (pen->column > MARKED_INDENT && pen->column + 1 + wide > pen->width && !pen->glue) {
        fprintf(pen->file, "\n%*s", MARKED_INDENT, "");
        pen->column = MARKED_INDENT;
    } else if (pen->column > MARKED_INDENT && !pen->glue) {
        fputc(' ', pen->file);
        pen->column++;
    }
    print_safe(pen->file, word, length);
    pen->column += wide;
    pen->glue = false;
}

static void put_words(text_writer *pen, const char *p, const char *end) {
    while (p < end) {
        while (p < end && is_space(*p))
            p++;
        const char *start = p;
        while (p < end && !is_space(*p))
            p++;
        if (p > start)
            put_word(pen, start, (size_t)(p - start));
    }
}

/* Writes a piece, without its middle if it is long. The cuts are between words where there are some nearby. */
static void put_piece(text_writer *pen, const char *text, size_t length) {
    if (length <= LONG) {
        put_words(pen, text, text + length);
        return;
    }
    size_t head = KEEP, tail = length - KEEP;
    while (head > KEEP / 2 && !is_space(text[head]))
        head--;
    if (!is_space(text[head]))
        for (head = KEEP; head && inside_character(text[head]);)
            head--;
    while (tail < length - KEEP / 2 && !is_space(text[tail]))
        tail++;
    if (!is_space(text[tail]))
        for (tail = length - KEEP; tail < length && inside_character(text[tail]);)
            tail++;
    put_words(pen, text, text + head);
    put_word(pen, "[...]", 5);
    put_words(pen, text + tail, text + length);
}

/* A passage that both texts have: where there are colours, what only one of them has stands out instead. */
static void put_shared(text_writer *pen, const char *text, size_t length, size_t number) {
    char mark[32];
    if (pen->colour) {
        put_piece(pen, text, length);
    } else {
        put_word(pen, mark, (size_t)snprintf(mark, sizeof mark, "[%zu:", number + 1));
        put_piece(pen, text, length);
        fputc(']', pen->file);
        pen->column++;
    }
}

/* What is in no passage, in the colour of its side, as among the differences. */
static void put_other(text_writer *pen, const char *text, size_t length, bool is_b) {
    if (!length)
        return;
    if (pen->colour)
        fputs(is_b ? "\033[1;32m" : "\033[1;31m", pen->file);
    put_piece(pen, text, length);
    if (pen->colour)
        fputs("\033[0m", pen->file);
}

static size_t start_of(const marked_text *marked, size_t i) {
    return (size_t)(marked->is_b ? marked->passages[i].b_start : marked->passages[i].a_start);
}

static size_t end_of(const marked_text *marked, size_t i) {
    return (size_t)(marked->is_b ? marked->passages[i].b_end : marked->passages[i].a_end);
}

/* The first of the passages that starts at `from` or after it; SIZE_MAX: none. */
static size_t next_passage(const marked_text *marked, size_t from) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < marked->count; i++)
        if (start_of(marked, i) >= from && (best == SIZE_MAX || start_of(marked, i) < start_of(marked, best)))
            best = i;
    return best;
}

void marked_text_print(FILE *file, const marked_text *marked, bool colour) {
    text_writer pen = {file, MARKED_INDENT, line_width(file), colour, false};
    size_t at = 0, next;
    fprintf(file, "%*s", MARKED_INDENT, "");
    while ((next = next_passage(marked, at)) != SIZE_MAX) {
        put_other(&pen, marked->text + at, start_of(marked, next) - at, marked->is_b);
        pen.glue = start_of(marked, next) && !is_space(marked->text[start_of(marked, next) - 1]);
        put_shared(&pen, marked->text + start_of(marked, next), end_of(marked, next) - start_of(marked, next), next);
        at = end_of(marked, next);
        pen.glue = at < marked->length && !is_space(marked->text[at]);
    }
    put_other(&pen, marked->text + at, marked->length - at, marked->is_b);
    fputc('\n', file);
}

void marked_text_print_piece(FILE *file, const char *text, size_t length) {
    text_writer pen = {.file = file, .column = MARKED_INDENT, .width = line_width(file)};
    put_piece(&pen, text, length);
}

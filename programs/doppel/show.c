/* show.c - a text with the passages it shares with another: in colour on a terminal, else numbered in brackets. Long
 * pieces are shortened in their middle, white space becomes one space, and lines are broken between words. */
#include "commands.h"
#include "common/message.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A piece longer than LONG bytes is shown by its first and last KEEP, about a line and a half each. */
#define LONG 280
#define KEEP 120

#define INDENT 4

/* No terminal is taken to be narrower: a few words still fit beside the indent. */
#define LEAST 20

/* Where the writing stands. */
typedef struct text_pen {
    FILE *file;
    int column, width;
    bool colour;
    bool glue; /* no space ahead of the next word: the text has none there */
} text_pen;

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

/* Characters, taken as a column each. */
static int count_columns(const char *word, size_t length) {
    int count = 0;
    for (size_t i = 0; i < length; i++)
        count += !inside_character(word[i]);
    return count;
}

/* Writes a word, on a new line if it does not fit. */
static void put_word(text_pen *pen, const char *word, size_t length) {
    int wide = count_columns(word, length);
    if (pen->column > INDENT && pen->column + 1 + wide > pen->width && !pen->glue) {
        fprintf(pen->file, "\n%*s", INDENT, "");
        pen->column = INDENT;
    } else if (pen->column > INDENT && !pen->glue) {
        fputc(' ', pen->file);
        pen->column++;
    }
    print_safe(pen->file, word, length);
    pen->column += wide;
    pen->glue = false;
}

static void put_words(text_pen *pen, const char *p, const char *end) {
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

/* Writes a piece, without its middle if it is long. The cuts fall between words where there are any near. */
static void put_piece(text_pen *pen, const char *text, size_t length) {
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

/* A passage that both texts have. Colours 1 to 6 take turns. */
static void put_passage(text_pen *pen, const char *text, size_t length, size_t number) {
    char mark[32];
    if (pen->colour) {
        fprintf(pen->file, "\033[1;3%dm", (int)(number % 6 + 1));
        put_piece(pen, text, length);
        fputs("\033[0m", pen->file);
    } else {
        put_word(pen, mark, (size_t)snprintf(mark, sizeof mark, "[%zu:", number + 1));
        put_piece(pen, text, length);
        fputc(']', pen->file);
        pen->column++;
    }
}

static void put_other(text_pen *pen, const char *text, size_t length) {
    if (!length)
        return;
    if (pen->colour)
        fputs("\033[2m", pen->file);
    put_piece(pen, text, length);
    if (pen->colour)
        fputs("\033[0m", pen->file);
}

static size_t start_of(const shown_text *shown, size_t i) {
    return (size_t)(shown->is_b ? shown->passages[i].b_start : shown->passages[i].a_start);
}

static size_t end_of(const shown_text *shown, size_t i) {
    return (size_t)(shown->is_b ? shown->passages[i].b_end : shown->passages[i].a_end);
}

/* The first of the shown passages that starts at `from` or behind it; SIZE_MAX: none. */
static size_t next_passage(const shown_text *shown, size_t from) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < shown->count; i++)
        if (start_of(shown, i) >= from && (best == SIZE_MAX || start_of(shown, i) < start_of(shown, best)))
            best = i;
    return best;
}

void show_text(FILE *file, const shown_text *shown, bool colour) {
    text_pen pen = {file, INDENT, line_width(file), colour, false};
    size_t at = 0, next;
    fprintf(file, "%*s", INDENT, "");
    while ((next = next_passage(shown, at)) != SIZE_MAX) {
        put_other(&pen, shown->text + at, start_of(shown, next) - at);
        pen.glue = start_of(shown, next) && !is_space(shown->text[start_of(shown, next) - 1]);
        put_passage(&pen, shown->text + start_of(shown, next), end_of(shown, next) - start_of(shown, next), next);
        at = end_of(shown, next);
        pen.glue = at < shown->length && !is_space(shown->text[at]);
    }
    put_other(&pen, shown->text + at, shown->length - at);
    fputc('\n', file);
}

/* marked_text.h - a text on a terminal, with the passages that another text has, too: all else in colour, or the
 * passages numbered in brackets. Long pieces are shortened in their middle, white space becomes one space, and lines
 * are broken between words. */
#ifndef SHARED_MARKED_TEXT_H
#define SHARED_MARKED_TEXT_H

#include "doppel.h"

#include <stdio.h>

/* Columns before each line of a text. */
enum { MARKED_INDENT = 4 };

/* One side of a comparison: a text, and the passages of it that the other side has too. */
typedef struct marked_text {
    const char *text;
    size_t length;
    const doppel_passage *passages; /* numbered in this order */
    size_t count;
    bool is_b;
} marked_text;

/* Whether colours are wanted: the file is a terminal that has them, and NO_COLOR is not set. */
bool use_colour(FILE *file);

/* Prints the text. */
void marked_text_print(FILE *file, const marked_text *marked, bool colour);

/* Prints a piece of a text without marks, after MARKED_INDENT columns that are printed already. */
void marked_text_print_piece(FILE *file, const char *text, size_t length);

#endif

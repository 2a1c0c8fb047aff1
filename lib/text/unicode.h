/* unicode.h - code points: normalising, classes, and the table that makes most of them one lookup.
 *
 * lib/text/generate_unicode.c writes the table at build time, with the functions of unicode.c, so that the table and
 * the plain way cannot disagree. */
#ifndef DP_UNICODE_H
#define DP_UNICODE_H

#include "kernel/kernel.h"

/* A piece of text holds a base and at most this many code points that join it (docs/FORMAT.md section 1). */
#define DP_PIECE_JOINS 32
#define DP_PIECE (DP_PIECE_JOINS + 1)

/* The longest normalised piece: NFKD makes at most 18 code points of one (U+FDFA), folding at most 3 of one. */
#define DP_PIECE_NORMALISED (DP_PIECE * 18 * 3)

/* Normalises a piece: NFKC, and unless the case is kept, full case folding and NFKC again. Returns the number of code
 * points. */
size_t dp_normalise(const int32_t *piece, size_t count, bool keep_case, int32_t *out);

/* DP_CLASS_* of a normalised code point. */
int dp_code_point_class(int32_t code_point);

/* Canonical combining class. */
int dp_combining_class(int32_t code_point);

#endif

/* unicode.h - code points: normalising, classes, and the table that makes most of them one look-up.
 *
 * lib/text/generate_unicode.c writes the table at build time, with the functions of unicode.c, so that the table and
 * the plain way cannot disagree. */
#ifndef DP_UNICODE_H
#define DP_UNICODE_H

#include "base/base.h"

/* What a code point of normalised text is to words. */
enum {
    DP_CLASS_VANISH,    /* leaves no trace */
    DP_CLASS_SPACE,     /* separates words */
    DP_CLASS_LETTER,    /* stays: categories L and N */
    DP_CLASS_ALONE,     /* a letter or number of a script written without spaces */
    DP_CLASS_MARK,      /* stays: category M */
    DP_CLASS_PUNCT,     /* categories P and S: stay with punct=keep, else vanish */
    DP_CLASS_PLAIN = 7, /* bits of an entry that are the class */
};

/* An entry of the table: the class in the low 3 bits, these flags, and in the high 24 bits the normalised code point
 * less the code point itself. */
enum {
    DP_ENTRY_SLOW = 8,   /* becomes none or several code points: ask dp_normalise */
    DP_ENTRY_JOINS = 16, /* may combine with what stands before it */
    DP_ENTRY_INERT = 32, /* joins only in order: is never changed and composes with nothing */
};
#define DP_ENTRY_SHIFT 8

/* A second table has code points below U+0800 ready to write: the UTF-8 of what they become in the low 16 bits, its
 * length, the class on top. */
enum {
    DP_SHORT_LENGTH = 16,     /* 2 bits */
    DP_SHORT_OTHER = 1 << 18, /* joins, or becomes something longer: look at the first table */
    DP_SHORT_CLASS = 24,
    DP_SHORTS = 0x800,
};

/* A piece of text holds a base and at most this many code points that join it (docs/FORMAT.md section 1). */
#define DP_PIECE_JOINS 32
#define DP_PIECE (DP_PIECE_JOINS + 1)

/* The longest normalised piece: NFKD makes at most 18 code points of one (U+FDFA), folding at most 3 of one. */
#define DP_PIECE_NORMALISED (DP_PIECE * 18 * 3)

/* Normalises a piece: NFKC, and unless the case is kept, full case folding and NFKC again. Gives the number of code
 * points. */
size_t dp_normalise(const int32_t *piece, size_t count, bool keep_case, int32_t *out);

/* DP_CLASS_* of a normalised code point. */
int dp_code_point_class(int32_t code_point);

/* Canonical combining class. */
int dp_combining_class(int32_t code_point);

/* Writes a code point as UTF-8, 1 to 4 bytes; gives how many. */
static inline size_t dp_encode(uint32_t c, uint8_t *out) {
    if (c < 0x80) {
        out[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (uint8_t)(0xC0 | c >> 6);
        out[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (uint8_t)(0xE0 | c >> 12);
        out[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        out[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    out[0] = (uint8_t)(0xF0 | c >> 18);
    out[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    out[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    out[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

#endif

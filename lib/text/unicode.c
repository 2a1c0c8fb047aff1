/* unicode.c - the plain way from code points to normalised code points and their classes, by utf8proc. */
#include "text/unicode.h"

#include <utf8proc.h>

#define COMPOSE (UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT)

int dp_combining_class(int32_t code_point) {
    return utf8proc_get_property(code_point)->combining_class;
}

/* One NFKC. utf8proc reorders marks only on the way from UTF-8, so the piece goes there first. */
static size_t compose(const int32_t *piece, size_t count, int32_t *out) {
    uint8_t bytes[DP_PIECE_NORMALISED * 4];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += dp_utf8_encode((uint32_t)piece[i], bytes + length);
    utf8proc_ssize_t made =
        utf8proc_decompose(bytes, (utf8proc_ssize_t)length, out, DP_PIECE_NORMALISED, (utf8proc_option_t)COMPOSE);
    made = utf8proc_normalize_utf32(out, made, (utf8proc_option_t)COMPOSE);
    return made < 0 ? 0 : (size_t)made;
}

static size_t fold(const int32_t *text, size_t count, int32_t *out) {
    size_t made = 0;
    int boundary = 0;
    for (size_t i = 0; i < count; i++)
        made += (size_t)utf8proc_decompose_char(text[i], out + made, (utf8proc_ssize_t)(DP_PIECE_NORMALISED - made),
                                                UTF8PROC_CASEFOLD, &boundary);
    return made;
}

size_t dp_normalise(const int32_t *piece, size_t count, bool keep_case, int32_t *out) {
    size_t made = compose(piece, count, out);
    if (keep_case)
        return made;
    int32_t folded[DP_PIECE_NORMALISED];
    made = fold(out, made, folded);
    return compose(folded, made, out);
}

/* Scripts written without spaces (docs/FORMAT.md section 1, step 4). */
static bool stands_alone(int32_t c) {
    static const struct {
        int32_t first, last;
    } ranges[] = {{0x0E00, 0x0EFF}, {0x1000, 0x109F}, {0x1780, 0x17FF}, {0x3005, 0x3007},
                  {0x3040, 0x30FF}, {0x31F0, 0x31FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF},
                  {0xA9E0, 0xA9FF}, {0xAA60, 0xAA7F}, {0xF900, 0xFAFF}, {0x20000, 0x323AF}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* White_Space of Unicode's PropList, and the word separators of Tibetan and Ethiopic. */
static bool separates(int32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000 ||
           c == 0x0F0B || c == 0x0F0C || c == 0x1361;
}

int dp_code_point_class(int32_t code_point) {
    if (separates(code_point))
        return DP_CLASS_SPACE;
    utf8proc_category_t category = utf8proc_category(code_point);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
        return stands_alone(code_point) ? DP_CLASS_ALONE : DP_CLASS_LETTER;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return stands_alone(code_point) ? DP_CLASS_ALONE : DP_CLASS_LETTER;
    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME)
        return DP_CLASS_MARK;
    if (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO)
        return DP_CLASS_PUNCT;
    return DP_CLASS_VANISH;
}

const char *doppel_unicode_version(void) {
    return utf8proc_unicode_version();
}

/* utf8.h - repairing UTF-8. */
#ifndef DP_UTF8_H
#define DP_UTF8_H

#include "base/base.h"

/* How many bytes the sequence at p has: the whole of a valid one (*valid is set), or the longest start of one, at
 * least 1, which Unicode (section 3.9) counts as one error. There is at least one byte. */
size_t dp_utf8_sequence(const char *p, const char *end, bool *valid);

/* Appends the text to `out`, each invalid sequence as one U+FFFD; false when there is no memory. */
bool dp_utf8_repair(const char *text, size_t length, dp_buffer *out);

#endif

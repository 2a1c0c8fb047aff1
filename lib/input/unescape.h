/* unescape.h - the inner loop of making text of JSON strings. */
#ifndef DP_UNESCAPE_H
#define DP_UNESCAPE_H

#include "kernel/kernel.h"

/* Copies raw bytes to `to` and resolves the escapes of one letter on the way. Stops at the end, at \u, and at an escape
 * that JSON does not have. Gives how many bytes it took; *written is how many it made of them, never more. */
DP_KERNEL(unescape, size_t, (const char *raw, size_t length, char *to, size_t *written))

#endif

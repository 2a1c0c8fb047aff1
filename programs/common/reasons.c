/* reasons.c - why a document is a duplicate. */
#include "common/reasons.h"

#include <string.h>

const char *const reason_names[REASON_KINDS] = {NULL, "exact_url", "content_hash", "title_similarity"};

reason_kind reason_of(const char *name) {
    for (int i = REASON_URL; name && i < REASON_KINDS; i++)
        if (!strcmp(name, reason_names[i]))
            return (reason_kind)i;
    return REASON_NONE;
}

/* shared.c - which paths are URLs of a shared store; true of a build without Redis, too. */
#include "store/store.h"

bool dp_shared_takes(const char *path) {
    static const char *const schemes[] = {"redis://", "redis+unix://", "redis+sentinel://", "redis+cluster://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (!strncmp(path, schemes[i], strlen(schemes[i])))
            return true;
    return false;
}

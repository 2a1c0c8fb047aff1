/* needs.c - what an engine needs of the process and the machine that it runs in, by its path. */
#include "engine/engine.h"

doppel_status doppel_engine_get_needs(const char *path, doppel_engine_needs *needs, doppel_error *error) {
    *needs = (doppel_engine_needs){0};
    if (path && !*path)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the path of the index is empty");
    needs->connects = path && dp_known_is_shared_path(path);
    needs->folder = path && !needs->connects;
    needs->one_writer = !needs->connects;
    return DOPPEL_OK;
}

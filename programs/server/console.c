/* console.c - GET / and /console/NAME: the files of the console, which are part of the program. No path reaches the
 * file system.
 */
#include "server/console.h"

#include "server/service.h"

#include <string.h>

const char *console_type(const char *name) {
    static const struct {
        const char *ending, *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".css", "text/css; charset=utf-8"},
        {".js", "text/javascript; charset=utf-8"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".ico", "image/x-icon"},
        {".json", "application/json"},
        {".webmanifest", "application/manifest+json"},
        {".woff2", "font/woff2"},
        {".txt", "text/plain; charset=utf-8"},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        size_t length = strlen(name), ending = strlen(types[i].ending);
        if (length > ending && !strcmp(name + length - ending, types[i].ending))
            return types[i].type;
    }
    return "application/octet-stream";
}

void handle_console(request *r) {
    doppel_slice name = r->id ? (doppel_slice){r->id, r->id_length} : doppel_slice_of("index.html");
    for (const console_file *file = console_files; file->name; file++)
        if (strlen(file->name) == name.length && !memcmp(file->name, name.data, name.length)) {
            r->file = file;
            request_answer(r, 200);
            r->type = console_type(file->name);
            return;
        }
    request_problem(r, PROBLEM_NO_ROUTE, NULL, "the console has no such file");
}

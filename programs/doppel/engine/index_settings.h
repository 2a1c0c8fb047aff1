/* index_settings.h - the settings of an index, as members of a JSON object and back: in doppel stats, and in the
 * first line of an export. */
#ifndef ENGINE_INDEX_SETTINGS_H
#define ENGINE_INDEX_SETTINGS_H

#include "engine/engine_command.h"

/* `"preset":...,"recipe":...` and so on, with `between` after each comma. */
void text_settings(text_buffer *out, const doppel_engine_options *options, const char *between);

/* Settings that were read. */
typedef struct settings {
    doppel_engine_options options; /* but for the recipe */
    char *preset, *fields, *recipe;
} settings;

/* Reads a record with settings. Prints a message and returns false when it has none. Free it in any case. */
bool read_settings(settings *s, const char *record, size_t length);

/* Sets those of e->options that the command line does not; the settings must live as long as the engine. Returns an
 * exit code, with a message unless it is EXIT_DONE. */
int use_settings(const settings *s, engine_command *e);

void settings_free(settings *s);

#endif

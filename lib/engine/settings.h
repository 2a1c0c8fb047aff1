/* settings.h - options of an engine that are kept with its index: one table, and each value as text. */
#ifndef DP_SETTINGS_H
#define DP_SETTINGS_H

#include "doppel.h"

typedef enum dp_setting_kind {
    DP_SETTING_CHOICE,
    DP_SETTING_COUNT,
    DP_SETTING_INTEGER,
    DP_SETTING_REAL,
    DP_SETTING_BITS
} dp_setting_kind;

typedef struct dp_setting {
    const char *name;
    dp_setting_kind kind;
    size_t offset;            /* in the options */
    const char *const *names; /* of choices, from 0 on; NULL ends them */
    bool fixed;               /* it shapes what is stored */
    const char *absent;       /* the value of an index that has no line of it; NULL: every index has one */
} dp_setting;

enum { DP_SETTINGS = 15, DP_SETTING_VALUE = 64 };
extern const dp_setting dp_settings[DP_SETTINGS];

/* Whether the caller says anything about it. */
bool dp_setting_is_given(const dp_setting *s, const doppel_engine_options *options);
void dp_setting_print(const dp_setting *s, const doppel_engine_options *options, char value[DP_SETTING_VALUE]);
/* False: the text is no value of it. */
bool dp_setting_parse(const dp_setting *s, const char *value, doppel_engine_options *options);
/* The value of a line "name=value", copied; false: there is none, or it is too long. */
bool dp_settings_line(const char *text, const char *name, char *value, size_t room);

#endif

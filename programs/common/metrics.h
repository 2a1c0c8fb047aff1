/* metrics.h - what is counted, in the text form of Prometheus: what every program that shows metrics has. All names
 * begin with doppel_, which is not given. */
#ifndef COMMON_METRICS_H
#define COMMON_METRICS_H

#include "common/text.h"

/* The lines before the values of one name. */
void metrics_head(text_buffer *out, const char *name, const char *type, const char *help);

/* A name with one value. */
void metrics_single(text_buffer *out, const char *name, const char *type, const char *help, double value);

/* The version that runs, and its memory. */
void metrics_process(text_buffer *out);

typedef struct engine_figures {
    const char *name; /* of the index, in plain letters */
    doppel_engine_stats stats;
} engine_figures;

/* What engines hold and have done. */
void metrics_engines(text_buffer *out, const engine_figures *engines, size_t count);

#endif

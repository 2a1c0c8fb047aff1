/* stop.h - a list of words to leave out. */
#ifndef DP_STOP_H
#define DP_STOP_H

#include "text/text.h"

typedef struct dp_stop dp_stop;

/* Reads options->stop_words as words, by the same options. */
doppel_status dp_stop_create(const dp_words_options *options, dp_stop **stop);
void dp_stop_free(dp_stop *stop);

bool dp_stop_has(const dp_stop *stop, const uint8_t *word, size_t length);

/* The words, sorted by bytes, distinct, joined by one space. */
const dp_buffer *dp_stop_list(const dp_stop *stop);

#endif

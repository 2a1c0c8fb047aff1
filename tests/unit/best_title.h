/* best_title.h - the first of the titles that a directory finds, alone. */
#ifndef TESTS_BEST_TITLE_H
#define TESTS_BEST_TITLE_H

#include "known/directory.h"

#include <stdlib.h>

/* *hit has number 0 when there is none. */
static inline doppel_status find_best_title(dp_directory *directory, const dp_title_search *search,
                                            dp_title_matches *matches, dp_title_hit *hit) {
    dp_title_hits hits = {0};
    dp_title_search best = *search;
    best.best = true;
    doppel_status status = dp_directory_find_titles(directory, &best, matches, &hits);
    *hit = hits.count ? hits.hit[0] : (dp_title_hit){0};
    free(hits.hit);
    return status;
}

#endif

/* engine.h - an engine's call besides those of doppel.h: whether it has an already sketched document, by the caller's
 * thresholds. lib/batch compares its documents with index folders by it. */
#ifndef DP_ENGINE_H
#define DP_ENGINE_H

#include "decide/decide.h"

/* What an index was made to find: it cannot be queried for less. */
const dp_rules *dp_engine_rules(const doppel_engine *engine);

typedef struct dp_engine_document {
    doppel_slice url;            /* canonical; empty: it has none, or it does not count */
    doppel_slice title;          /* normalised; the same */
    const doppel_sketch *sketch; /* by the recipe of the index, with its set; NULL: the content does not count */
    bool near;                   /* the content has enough words to be near others, not only the same */
    dp_rules rules;              /* the caller's: a duplicate by the index has to be one by these, too */
} dp_engine_document;

/* doppel_engine_check of a sketched document. Also looks for a similar title if the content found is not near enough
 * for the caller. */
doppel_status dp_engine_check_sketched(doppel_engine *engine, const dp_engine_document *document,
                                       doppel_verdict *verdict, doppel_error *error);

#endif

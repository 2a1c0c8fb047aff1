/* restore.c - what an engine remembered, put back as it was: nothing is decided anew. */
#include "engine/engine.h"

doppel_status dp_restore_find(dp_worker *worker, const dp_query *query, dp_finding *finding, doppel_error *error) {
    const doppel_stored *stored = query->restore;
    uint64_t number;
    dp_trace trace;
    bool found = false;
    *finding = (dp_finding){.reason = DP_UNIQUE, .best.evidence = dp_evidence_none()};
    if (!stored->original_id.data)
        return DOPPEL_OK;
    doppel_status status = dp_find_id(worker, stored->original_id, &number, error);
    if (status == DOPPEL_OK && number)
        status = dp_look_trace(worker->look, number, &trace, &found, error);
    if (status != DOPPEL_OK)
        return status;
    if (!found || trace.kind != DP_TRACE_DOCUMENT)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "a copy whose original is not there");
    *finding = (dp_finding){.reason = dp_reason_of(stored->reason),
                            .best = {.number = number, .evidence = stored->evidence},
                            .original_id = stored->original_id};
    if (finding->reason == DP_UNIQUE)
        return dp_fail(error, DOPPEL_ERROR_INPUT, "a copy for a reason that is not known");
    return DOPPEL_OK;
}

doppel_status dp_restore_counts(dp_look *look, const dp_query *query, const dp_trace *trace, doppel_error *error) {
    const doppel_stored *stored = query->restore;
    doppel_status status = DOPPEL_OK;
    for (int i = 0; i < DP_REASONS - 1 && status == DOPPEL_OK; i++) {
        dp_pending p = {.change = {.count = trace->number,
                                   .count_at = stored->last_duplicate,
                                   .count_reason = (uint8_t)(i + 1),
                                   .count_times = stored->duplicates_by[i]}};
        if (stored->duplicates_by[i])
            status = dp_look_queue(look, &p, error);
    }
    uint64_t titles = stored->duplicates_by[DP_SAME_TITLE - 1];
    if (status == DOPPEL_OK && titles && trace->title.length)
        status = dp_look_title_seen(look, trace->title, titles, error);
    return status;
}

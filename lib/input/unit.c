/* unit.c - a unit of work and its results. */
#include "input/unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Output buffers above this are given back after use, so that one huge record does not stay in memory. */
#define KEEP_OUTPUT ((size_t)16 << 20)

static void free_tallies(dp_unit *unit) {
    for (size_t i = 0; i < unit->tally_count; i++)
        free(unit->tallies[i].hint);
    unit->tally_count = 0;
}

void dp_unit_reset(dp_unit *unit, size_t block_size) {
    dp_stream_close(&unit->stream);
    dp_block_reset(&unit->block, block_size);
    unit->names.size = unit->files = unit->header.size = 0;
    unit->failure[0] = 0;
    if (unit->output.bytes.capacity > KEEP_OUTPUT)
        dp_buffer_free(&unit->output.bytes);
    unit->output.bytes.size = 0;
    unit->report_count = 0;
    memset(&unit->counts, 0, sizeof unit->counts);
    free_tallies(unit);
    unit->first.count = 0;
    unit->raw_bytes = 0;
    unit->status = DOPPEL_OK;
}

void dp_unit_free(dp_unit *unit) {
    dp_stream_free(&unit->stream);
    dp_block_free(&unit->block);
    dp_buffer_free(&unit->names);
    dp_buffer_free(&unit->header);
    dp_buffer_free(&unit->output.bytes);
    free(unit->reports);
    free_tallies(unit);
    free(unit->tallies);
}

bool dp_unit_add_file(dp_unit *unit, const char *path) {
    unit->files++;
    return dp_buffer_add(&unit->names, path, strlen(path) + 1);
}

bool dp_unit_begin_file(dp_unit *unit, uint64_t number) {
    if (!dp_reserve(&unit->tallies, &unit->tally_room, unit->tally_count + 1, sizeof *unit->tallies)) {
        dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
        return false;
    }
    unit->tallies[unit->tally_count++] = (dp_tally){.file = number};
    return true;
}

bool dp_unit_set_header(dp_unit *unit, const dp_buffer *header) {
    unit->header.size = 0;
    return dp_buffer_add(&unit->header, header->data, header->size);
}

void dp_unit_report(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *format, ...) {
    if (!dp_reserve(&unit->reports, &unit->report_capacity, unit->report_count + 1, sizeof *unit->reports)) {
        dp_unit_fail(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
        return;
    }
    char message[sizeof unit->reports->message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    dp_fail_at(&unit->reports[unit->report_count++], code, file, line, "%s", message);
}

void dp_unit_fail(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *message) {
    if (unit->status == DOPPEL_OK)
        unit->status = dp_fail_at(&unit->error, code, file, line, "%s", message);
}

/* fingerprints_jsonl.c - fingerprints out of JSONL: the digits are read as the text of a document. */
#include "common/message.h"
#include "fingerprints.h"

#include <string.h>

/* What a thread writes for a record: this, the digits, then the name if it is wanted, and a line end. */
typedef struct written_record {
    uint64_t line; /* 0: no record, but a plain file */
    size_t length;
} written_record;

static doppel_status write_record(void *state, const doppel_document *document, doppel_output *output) {
    const fingerprint_file *f = state;
    written_record record = {document->line, document->text_length};
    doppel_status status = doppel_output_write(output, &record, sizeof record);
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, document->text, document->text_length);
    if (status == DOPPEL_OK && f->names)
        status = write_id(document, output);
    return status == DOPPEL_OK ? doppel_output_write(output, "\n", 1) : status;
}

static doppel_status hold_record(fingerprint_file *f, const fingerprint_text *text) {
    if (!text->line) {
        message("%s: is not JSONL", f->path);
        failure_told = true;
        return DOPPEL_ERROR_INPUT;
    }
    if (!make_room(&f->held, &f->held_room, f->held_words + 2, sizeof *f->held))
        return DOPPEL_ERROR_MEMORY;
    doppel_status status = fingerprints_take(f, text, f->held + f->held_words);
    f->held_words += f->bits > 64 ? 2 : 1;
    return status;
}

/* Takes records in the order of the file, whole ones: doppel_work.emit. */
static doppel_status hold_records(void *user, const char *bytes, size_t length) {
    fingerprint_file *f = user;
    const char *end = bytes + length;
    doppel_status status = DOPPEL_OK;
    while (bytes < end && status == DOPPEL_OK) {
        written_record record;
        memcpy(&record, bytes, sizeof record);
        const char *digits = bytes + sizeof record, *name = digits + record.length;
        const char *name_end = memchr(name, '\n', (size_t)(end - name));
        fingerprint_text text = {record.line, digits, record.length, name, (size_t)(name_end - name)};
        status = hold_record(f, &text);
        bytes = name_end + 1;
    }
    return status;
}

int read_jsonl(fingerprint_file *f) {
    doppel_input_options options = reading_options(f->args);
    doppel_work work = {.user = f, .document = write_record, .emit = hold_records};
    if (!options.text_key)
        options.text_key = "fingerprint";
    options.html_key = options.text_key; /* no pages here */
    options.strict = true;               /* a record that is left out would shift the positions of those behind it */
    int code = run_paths(&f->path, 1, &options, &work, NULL);
    if (!f->bits)
        f->bits = 64;
    return code;
}

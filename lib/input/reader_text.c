/* reader_text.c - the text of a document: as it stands, or out of the charset that it is said to be in. */
#include "input/mime.h"
#include "input/reader.h"

#include <stdio.h>

/* A NUL in the first bytes of a text says that it is not text. */
#define BINARY_LOOK ((size_t)8 << 10)

bool dp_reader_is_binary(const dp_reader *reader, dp_unit *unit, const dp_place *at) {
    char why[160];
    size_t look = at->length < BINARY_LOOK ? at->length : BINARY_LOOK;
    const char *nul = memchr(at->bytes, 0, look);
    if (dp_is_parquet(at->bytes, at->length)) {
        snprintf(why, sizeof why, "%s", DP_WHY_PARQUET);
        dp_unit_tally(unit)->records = true;
    } else if (dp_is_utf16(at->bytes, at->length))
        snprintf(why, sizeof why, "%s", DP_WHY_UTF16);
    else if (nul)
        snprintf(why, sizeof why, "binary, not text: byte %zu is NUL", (size_t)(nul - at->bytes) + 1);
    else
        return false;
    dp_reader_bad_record(reader, unit, at, why);
    return true;
}

void dp_reader_plain_text(dp_unit *unit, const dp_place *at, doppel_document *document) {
    document->text = at->bytes;
    document->text_length = at->length;
    if (dp_json_is_utf8(at->bytes, at->length))
        return;
    unit->counts.repaired++;
    dp_unit_report(unit, DOPPEL_OK, at->file, at->line,
                   "invalid UTF-8 separates words; is it Latin-1? iconv -f latin1 -t utf8");
}

bool dp_reader_charset_text(dp_unit *unit, const dp_place *at, const char *charset, dp_buffer *out,
                            doppel_document *document) {
    out->size = 0;
    dp_mime_result result = dp_mime_utf8((doppel_slice){at->bytes, at->length}, charset, out);
    if (result == DP_MIME_NO_MEMORY)
        return dp_reader_no_memory(unit);
    document->text = out->data ? out->data : "";
    document->text_length = out->size;
    if (result == DP_MIME_CLEAN)
        return true;
    unit->counts.repaired++;
    if (result == DP_MIME_UNKNOWN)
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line,
                       "charset \"%s\" is not known; read as UTF-8, or else windows-1252", charset);
    else
        dp_unit_report(unit, DOPPEL_OK, at->file, at->line, "bytes that are not %s became U+FFFD",
                       *charset ? charset : "windows-1252");
    return true;
}

/* reader.c - what the formats call: they give documents, whose text may have to be repaired or converted from a
 * charset, and report what is bad; the results are kept in the unit of work until its turn. */
#include "input/reader.h"

#include <errno.h>
#include <iconv.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

/* ---- units of work ---- */

static void fail_unit(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *message) {
    if (unit->status == DOPPEL_OK)
        unit->status = dp_fail_at(&unit->error, code, file, line, "%s", message);
}

bool dp_unit_no_memory(dp_unit *unit) {
    fail_unit(unit, DOPPEL_ERROR_MEMORY, "", 0, "no memory");
    return false;
}

void dp_unit_changed(dp_unit *unit) {
    fail_unit(unit, DOPPEL_ERROR_INPUT, "", 0, DP_WHY_CHANGED);
}

/* Notes something for `bad`: code DOPPEL_OK is a repair. */
static void report(dp_unit *unit, doppel_status code, const char *file, uint64_t line, const char *format,
                   va_list args) {
    if (!dp_reserve(&unit->reports, &unit->report_capacity, unit->report_count + 1, sizeof *unit->reports)) {
        dp_unit_no_memory(unit);
        return;
    }
    char message[sizeof unit->reports->message];
    vsnprintf(message, sizeof message, format, args);
    dp_fail_at(&unit->reports[unit->report_count++], code, file, line, "%s", message);
}

/* ---- what the work writes ---- */

doppel_status doppel_output_write(doppel_output *output, doppel_slice bytes) {
    return dp_buffer_add(&output->bytes, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

doppel_status doppel_output_json(doppel_output *output, doppel_slice bytes) {
    return dp_json_add(&output->bytes, bytes.data, bytes.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* ---- for the formats ---- */

/* With `strict`, what was reported last ends the run. */
static void end_if_strict(const dp_reader *reader, dp_unit *unit) {
    if (!reader->options->strict || !unit->report_count)
        return;
    const doppel_error *last = &unit->reports[unit->report_count - 1];
    fail_unit(unit, DOPPEL_ERROR_INPUT, last->file, last->line, last->message);
}

/* A unit that holds much waits for its turn and emits it. */
static void flush_if_full(const dp_reader *reader, dp_unit *unit) {
    size_t pending = reader->sizes->pending;
    if (unit->output.bytes.size > pending || unit->report_count > pending / 1000)
        reader->flush(reader->run, unit);
}

static void note_first(dp_first *first, bool bad) {
    if (first->count == DP_FIRST)
        return;
    if (first->count % 64 == 0)
        first->bad[first->count / 64] = 0;
    first->bad[first->count / 64] |= (uint64_t)bad << first->count % 64;
    first->count++;
}

bool dp_reader_bad_record(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(unit, DOPPEL_ERROR_INPUT, at->file, at->line, format, args);
    va_end(args);
    unit->counts.bad++;
    if (unit->report_count)
        dp_counts_bad(dp_unit_counts(unit), &unit->reports[unit->report_count - 1]);
    note_first(&unit->first, true);
    end_if_strict(reader, unit);
    flush_if_full(reader, unit);
    return false;
}

void dp_reader_repaired(dp_unit *unit, const dp_raw_record *at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(unit, DOPPEL_OK, at->file, at->line, format, args);
    va_end(args);
    unit->counts.repaired++;
}

void dp_reader_bad_file(const dp_reader *reader, dp_unit *unit, const char *file, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(unit, DOPPEL_ERROR_IO, file, 0, format, args);
    va_end(args);
    unit->counts.unopened++;
    end_if_strict(reader, unit);
}

bool dp_reader_too_long(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    return dp_reader_bad_record(reader, unit, at, "longer than the limit of %zu bytes; --max-record sets it",
                                reader->options->max_record);
}

bool dp_reader_stopped(const dp_reader *reader, const dp_unit *unit) {
    return unit->status != DOPPEL_OK || dp_stopped(reader->options->stop);
}

/* Adds a path to an id. A path that is not UTF-8 has each % and each byte that is not part of UTF-8 as %HH. */
static bool add_path(dp_buffer *id, const char *path) {
    const char *p = path, *end = path + strlen(path);
    bool added = true, whole;
    if (dp_json_is_utf8(path, (size_t)(end - path)))
        return dp_buffer_add(id, path, (size_t)(end - path));
    for (size_t size; p < end && added; p += size) {
        size = dp_utf8_extent((const uint8_t *)p, (size_t)(end - p), &whole);
        if (whole && *p != '%')
            added = dp_buffer_add(id, p, size);
        for (size_t i = 0; i < size && (!whole || *p == '%') && added; i++)
            added = dp_buffer_printf(id, "%%%02X", (uint8_t)p[i]);
    }
    return added;
}

bool dp_reader_make_id(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    reader->id.size = 0;
    document->id = (doppel_slice){"", 0};
    if (reader->options->no_made_ids)
        return true;
    if (!add_path(&reader->id, at->file) || !dp_buffer_printf(&reader->id, ":%llu", (unsigned long long)at->line))
        return dp_unit_no_memory(unit);
    document->id = (doppel_slice){reader->id.data, reader->id.size};
    return true;
}

doppel_document dp_reader_document(dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    /* What comes on stdin has no name. Records get ids of their own. */
    const char *path = reader->options->no_made_ids && !strcmp(at->file, "-") ? "" : at->file;
    memset(reader->extra, 0, sizeof reader->extra);
    reader->id.size = 0;
    if (!at->line && (!add_path(&reader->id, path) || !dp_buffer_add(&reader->id, "", 1)))
        dp_unit_no_memory(unit);
    return (doppel_document){.id = {reader->id.size ? reader->id.data : "", reader->id.size ? reader->id.size - 1 : 0},
                             .text = {"", 0},
                             .file = at->file,
                             .line = at->line,
                             .extra = reader->extra,
                             .record_at = DOPPEL_NO_POSITION};
}

/* The work on a document; on one whose number is known, only if it is wanted. */
static doppel_status do_work(dp_reader *reader, dp_unit *unit, const doppel_document *document) {
    const dp_input_numbered *numbered = reader->numbered;
    if (!numbered)
        return reader->work->document(reader->state, document, &unit->output);
    if (unit->next_document == unit->after_document) {
        dp_unit_changed(unit);
        return DOPPEL_OK;
    }
    uint64_t number = unit->next_document++;
    bool wanted = !numbered->wanted || numbered->wanted(reader->state, number);
    return wanted ? numbered->document(reader->state, number, document, &unit->output) : DOPPEL_OK;
}

void dp_reader_give(dp_reader *reader, dp_unit *unit, doppel_document *document) {
    size_t before = unit->output.bytes.size;
    unit->counts.documents++;
    dp_unit_counts(unit)->documents++;
    note_first(&unit->first, false);
    document->file_number = dp_unit_counts(unit)->file - 1;
    doppel_status status = do_work(reader, unit, document);
    if (status != DOPPEL_OK) {
        unit->output.bytes.size = before; /* an incomplete document is not emitted */
        fail_unit(unit, status, document->file, document->line, doppel_status_name(status));
    }
    flush_if_full(reader, unit);
}

/* ---- UTF-8 and other charsets ---- */

/* What stands for bytes that cannot be read. */
#define REPLACEMENT "\xEF\xBF\xBD"

bool dp_utf8_repair(const char *text, size_t length, dp_buffer *out) {
    const char *p = text, *end = text + length, *start = text;
    while (p < end) {
        bool whole;
        size_t size = dp_utf8_extent((const uint8_t *)p, (size_t)(end - p), &whole);
        if (!whole) {
            if (!dp_buffer_add(out, start, (size_t)(p - start)) || !dp_buffer_add(out, REPLACEMENT, 3))
                return false;
            start = p + size;
        }
        p += size;
    }
    return dp_buffer_add(out, start, (size_t)(end - start));
}

/* What iconv calls a charset that mail is written in, and the names it goes by there, in small letters. Where mail says
 * one charset and means a larger one that contains it, as Latin-1 for windows-1252, it is the larger. */
static const struct {
    const char *converter, *names;
} charsets[] = {
    {"UTF-8", "utf-8 utf8 unicode-1-1-utf-8"},
    {"WINDOWS-1252",
     "us-ascii ascii ansi_x3.4-1968 iso-8859-1 iso8859-1 iso_8859-1 latin1 latin-1 cp1252 windows-1252"},
    {"WINDOWS-1250", "cp1250 windows-1250"},
    {"WINDOWS-1251", "cp1251 x-cp1251 windows-1251"},
    {"WINDOWS-1253", "cp1253 windows-1253"},
    {"WINDOWS-1254", "cp1254 iso-8859-9 latin5 windows-1254"},
    {"WINDOWS-1255", "cp1255 windows-1255"},
    {"WINDOWS-1256", "cp1256 windows-1256"},
    {"WINDOWS-1257", "cp1257 windows-1257"},
    {"WINDOWS-1258", "cp1258 windows-1258"},
    {"ISO-8859-2", "latin2 iso8859-2 iso-8859-2"},
    {"ISO-8859-15", "latin9 iso8859-15 iso-8859-15"},
    {"ISO-8859-8", "iso-8859-8-i iso-8859-8"},
    {"KOI8-R", "koi8-r"},
    {"KOI8-U", "koi8-u"},
    {"GB18030", "gb2312 gbk x-gbk cp936 eucgb2312_cn gb18030"},
    {"BIG5-HKSCS", "big5 big5-hkscs"},
    {"EUC-JP", "euc-jp"},
    {"CP932", "shift_jis shift-jis sjis x-sjis cp932 windows-31j"},
    {"ISO-2022-JP", "iso-2022-jp"},
    {"CP949", "euc-kr ks_c_5601-1987 cp949"},
    {"ISO-2022-KR", "iso-2022-kr"},
    {"WINDOWS-874", "tis-620 iso-8859-11 windows-874"},
    {"UTF-7", "utf-7 unicode-1-1-utf-7"},
    {"UTF-16", "utf-16"},
    {"UTF-16LE", "utf-16le"},
    {"UTF-16BE", "utf-16be"},
    {"MACINTOSH", "macintosh"},
    {"CP850", "cp850 ibm850"},
    {"CP437", "cp437 ibm437"},
    {"CP866", "cp866 ibm866"},
    {"ISO-8859-3", "iso-8859-3"},
    {"ISO-8859-4", "iso-8859-4"},
    {"ISO-8859-5", "iso-8859-5"},
    {"ISO-8859-6", "iso-8859-6"},
    {"ISO-8859-7", "iso-8859-7"},
    {"ISO-8859-10", "iso-8859-10"},
    {"ISO-8859-13", "iso-8859-13"},
    {"ISO-8859-14", "iso-8859-14"},
    {"ISO-8859-16", "iso-8859-16"},
};

/* Whether one of the words in a list with a space between them is this one, in any case. */
static bool is_listed(const char *words, const char *word) {
    for (size_t size, length = strlen(word); *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        if (size == length && !strncasecmp(words, word, length))
            return true;
    }
    return false;
}

/* What iconv calls a charset; NULL for one that is not known. Only names of this list reach iconv. */
static const char *converter_of(const char *name) {
    for (size_t i = 0; i < sizeof charsets / sizeof *charsets; i++)
        if (is_listed(charsets[i].names, name))
            return charsets[i].converter;
    return NULL;
}

/* Whether a charset is known, and another than UTF-8. */
static bool needs_converter(const char *charset) {
    const char *converter = converter_of(charset);
    return converter && strcmp(converter, "UTF-8") != 0;
}

/* Goes over what iconv stopped at, which is invalid, or cut off at the end; or makes room for more output. */
static bool step_over(doppel_slice *left, size_t unit, int reason, dp_buffer *out) {
    if (reason == E2BIG)
        return dp_reserve(&out->data, &out->capacity, out->capacity + left->length + 64, 1);
    size_t skipped = reason == EINVAL || left->length < unit ? left->length : unit;
    left->data += skipped;
    left->length -= skipped;
    return dp_buffer_add(out, REPLACEMENT, 3);
}

doppel_status dp_iconv_utf8(void *converter, size_t unit, doppel_slice bytes, dp_buffer *out, bool *lost) {
    doppel_slice left = bytes;
    if (!dp_reserve(&out->data, &out->capacity, out->size + bytes.length + bytes.length / 2 + 64, 1))
        return DOPPEL_ERROR_MEMORY;
    for (bool done = false; !done;) {
        char *in = (char *)(uintptr_t)left.data, *to = out->data + out->size;
        size_t room = out->capacity - out->size;
        bool last = !left.length; /* what the converter still holds */
        size_t failed = iconv(converter, last ? NULL : &in, last ? NULL : &left.length, &to, &room);
        int reason = failed == (size_t)-1 ? errno : 0;
        left.data = in;
        out->size = (size_t)(to - out->data);
        done = last && reason != E2BIG;
        *lost |= reason && reason != E2BIG;
        if (reason && !done && !step_over(&left, unit, reason, out))
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

static dp_text_result convert(doppel_slice text, const char *charset, dp_buffer *out) {
    iconv_t converter = iconv_open("UTF-8", charset);
    bool lost = false;
    if (converter == (iconv_t)-1)
        return errno == ENOMEM ? DP_TEXT_NO_MEMORY : DP_TEXT_UNKNOWN;
    doppel_status status = dp_iconv_utf8(converter, 1, text, out, &lost);
    iconv_close(converter);
    return status != DOPPEL_OK ? DP_TEXT_NO_MEMORY : lost ? DP_TEXT_LOST : DP_TEXT_CLEAN;
}

dp_text_result dp_text_convert(doppel_slice text, const char *charset, dp_buffer *out) {
    const char *known = *charset ? converter_of(charset) : "WINDOWS-1252";
    bool utf8 = known && !strcmp(known, "UTF-8"), ascii = known && !strcmp(known, "WINDOWS-1252");
    if ((utf8 || ascii || !known) && dp_json_is_utf8(text.data, text.length))
        return dp_buffer_add(out, text.data, text.length) ? known ? DP_TEXT_CLEAN : DP_TEXT_UNKNOWN : DP_TEXT_NO_MEMORY;
    if (utf8)
        return dp_utf8_repair(text.data, text.length, out) ? DP_TEXT_LOST : DP_TEXT_NO_MEMORY;
    dp_text_result result = convert(text, known ? known : "WINDOWS-1252", out);
    if (result != DP_TEXT_UNKNOWN)
        return known || result == DP_TEXT_NO_MEMORY ? result : DP_TEXT_UNKNOWN;
    /* iconv of this system does not have it. */
    return dp_utf8_repair(text.data, text.length, out) ? DP_TEXT_UNKNOWN : DP_TEXT_NO_MEMORY;
}

/* ---- the text of a document ---- */

/* A text has no NUL in its first bytes. */
#define BINARY_LOOK ((size_t)8 << 10)

bool dp_is_spreadsheet(const char *bytes, size_t length) {
    static const char excel[] = "xl/w", document[] = "opendocument.spreadsheet", workbook[] = "W\0o\0r\0k\0b\0o\0o\0k";
    if (length < 8)
        return false;
    if (!memcmp(bytes, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", 8))
        return memmem(bytes, length, workbook, sizeof workbook - 1);
    return !memcmp(bytes, "PK\3\4", 4) &&
           (memmem(bytes, length, excel, sizeof excel - 1) || memmem(bytes, length, document, sizeof document - 1));
}

/* What an archive of files is called, by how it begins; NULL: it is none. */
static const char *archive_name(const char *bytes, size_t length) {
    static const struct {
        size_t at;
        const char *magic, *name;
    } archives[] = {
        {0, "PK\3\4", "ZIP"}, {257, "ustar", "tar"}, {0, "7z\xBC\xAF\x27\x1C", "7z"}, {0, "Rar!\x1A\x07", "RAR"}};
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        size_t size = strlen(archives[i].magic);
        if (length >= archives[i].at + size && !memcmp(bytes + archives[i].at, archives[i].magic, size))
            return archives[i].name;
    }
    return NULL;
}

/* Whether the bytes are no text: says so, and leaves them out. */
static bool is_binary(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at) {
    const char *nul = memchr(at->bytes, 0, at->length < BINARY_LOOK ? at->length : BINARY_LOOK);
    const char *archive = nul ? archive_name(at->bytes, at->length) : NULL;
    bool parquet = dp_is_parquet(at->bytes, at->length);
    if (parquet || dp_is_utf16(at->bytes, at->length)) {
        dp_unit_counts(unit)->records |= parquet;
        dp_reader_bad_record(reader, unit, at, "%s", parquet ? DP_WHY_PARQUET : DP_WHY_UTF16);
    } else if (nul && dp_is_spreadsheet(at->bytes, at->length)) {
        dp_reader_bad_record(reader, unit, at, "%s", DP_WHY_SPREADSHEET);
    } else if (archive) {
        dp_reader_bad_record(reader, unit, at, "a %s archive; unpack it, and give the folder with its files", archive);
    } else if (nul) {
        dp_reader_bad_record(reader, unit, at, "binary, not text: byte %zu is NUL", (size_t)(nul - at->bytes) + 1);
    } else {
        return false;
    }
    return true;
}

/* Sets the text to the bytes as they are; that they are not valid UTF-8 is counted and reported. */
static void set_plain_text(dp_unit *unit, const dp_raw_record *at, doppel_document *document) {
    document->text = (doppel_slice){at->bytes, at->length};
    if (!dp_json_is_utf8(at->bytes, at->length))
        dp_reader_repaired(unit, at, "invalid UTF-8 separates words; is it Latin-1? iconv -f latin1 -t utf8");
}

bool dp_reader_charset_text(dp_unit *unit, const dp_raw_record *at, const char *charset, dp_buffer *out,
                            doppel_document *document) {
    out->size = 0;
    dp_text_result result = dp_text_convert((doppel_slice){at->bytes, at->length}, charset, out);
    if (result == DP_TEXT_NO_MEMORY)
        return dp_unit_no_memory(unit);
    document->text = (doppel_slice){out->data ? out->data : "", out->size};
    if (result == DP_TEXT_UNKNOWN)
        dp_reader_repaired(unit, at, "charset \"%s\" is not known; read as UTF-8, or else windows-1252", charset);
    else if (result == DP_TEXT_LOST)
        dp_reader_repaired(unit, at, "bytes that are not %s became U+FFFD", *charset ? charset : "windows-1252");
    return true;
}

bool dp_reader_text(const dp_reader *reader, dp_unit *unit, const dp_raw_record *at, dp_buffer *out,
                    doppel_document *document) {
    const char *charset = document->charset;
    document->charset = NULL;
    if (charset && needs_converter(charset))
        return dp_reader_charset_text(unit, at, charset, out, document);
    if (is_binary(reader, unit, at))
        return false;
    set_plain_text(unit, at, document);
    return true;
}

void dp_reader_give_made(dp_reader *reader, dp_unit *unit, const dp_raw_record *at, const dp_buffer *text) {
    doppel_document document = dp_reader_document(reader, unit, at);
    if (text->size > reader->options->max_record) {
        dp_reader_too_long(reader, unit, at);
        return;
    }
    document.text = (doppel_slice){text->data ? text->data : "", text->size};
    if (!dp_json_is_utf8(document.text.data, document.text.length))
        dp_reader_repaired(unit, at, "invalid UTF-8 separates words");
    dp_reader_give(reader, unit, &document);
}

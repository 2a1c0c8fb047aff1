/* format.c - the list of formats, detecting one by name and content, and the two formats of files that are one document
 * each: HTML, and plain text, which is what no other format claims. */
#include "input/reader.h"

#include <strings.h>

/* The current file as one record. */
static dp_raw_record record_of(const dp_unit *unit, const char *file) {
    return (dp_raw_record){.file = file, .bytes = unit->block.data, .length = unit->block.size};
}

/* ---- HTML ---- */

static const char *const html_endings[] = {".html", ".htm", ".xhtml", NULL};

static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

/* Where `ending` ends after p; NULL: it is not there. */
static const char *after(const char *p, const char *end, const char *ending) {
    const char *found = memmem(p, (size_t)(end - p), ending, strlen(ending));
    return found ? found + strlen(ending) : NULL;
}

/* Whether `word` stands at p, in letters of any case, and no letter after it. */
static bool at_word(const char *p, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - p) > length && !strncasecmp(p, word, length) && (is_space(p[length]) || p[length] == '>');
}

/* A byte-order mark, white space, comments and processing instructions may come before a page. */
bool dp_html_matches(const char *head, size_t length) {
    dp_skip_mark(&head, &length);
    for (const char *p = head, *end = p + length; p && p < end;) {
        if (is_space(*p))
            p++;
        else if (end - p >= 4 && !memcmp(p, "<!--", 4))
            p = after(p, end, "-->");
        else if (end - p >= 2 && !memcmp(p, "<?", 2))
            p = after(p, end, "?>");
        else
            return at_word(p, end, "<!doctype html") || at_word(p, end, "<html");
    }
    return false;
}

static void html_read(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_raw_record at = record_of(unit, file);
    doppel_document document = dp_reader_document(reader, unit, &at);
    document.html = (doppel_slice){at.bytes, at.length};
    dp_reader_give(reader, unit, &document);
}

static const dp_format html = {.name = "HTML", .endings = html_endings, .matches = dp_html_matches, .read = html_read};

/* ---- plain ---- */

/* Whether a file was given by itself, not found in a folder or by a pattern. */
static bool is_given(const dp_input_paths *paths, const char *file) {
    for (size_t i = 0; i < paths->count; i++)
        if (!strcmp(paths->path[i], file))
            return true;
    return false;
}

/* Refuses a file that was given with a key (options.refuse_plain), which would have no effect on it. */
static bool refuse_plain(const dp_reader *reader, dp_unit *unit, const char *file) {
    const doppel_input_options *o = reader->options;
    const struct {
        const char *key, *name;
    } keys[] = {
        {o->text_key, "text"}, {o->html_key, "html"}, {o->id_key, "id"}, {o->url_key, "url"}, {o->title_key, "title"}};
    const char *prefix = o->option_prefix ? o->option_prefix : "";
    doppel_error why = {0};
    size_t i = 0;
    while (i < sizeof keys / sizeof *keys && !keys[i].key)
        i++;
    if (!o->refuse_plain || !o->refuse_bad || reader->format || i == sizeof keys / sizeof *keys ||
        !is_given(&reader->paths, file))
        return false;
    dp_fail(&why, DOPPEL_ERROR_INPUT,
            "has no fields, so --%s%s-key has no effect: it looks like plain text, which is one document. Give its "
            "format, such as --%sformat csv or tsv, or leave out --%s%s-key",
            prefix, keys[i].name, prefix, prefix, keys[i].name);
    if (o->strict) {
        dp_reader_bad_file(reader, unit, file, "%s", why.message);
    } else {
        dp_unit_counts(unit)->records = true;
        dp_counts_bad_file(dp_unit_counts(unit), file, why.message, false);
    }
    return true;
}

static void plain_read(dp_reader *reader, dp_unit *unit, const char *file) {
    dp_raw_record at = record_of(unit, file);
    doppel_document document = dp_reader_document(reader, unit, &at);
    if (dp_reader_text(reader, unit, &at, &reader->spare[0], &document) &&
        !(at.length && refuse_plain(reader, unit, file)))
        dp_reader_give(reader, unit, &document);
}

static const dp_format plain = {.name = "text", .read = plain_read};

/* ---- which format ---- */

/* In the order in which they are asked. Plain files are what no other format claims. */
static const dp_format *const formats[] = {&dp_format_jsonl, &dp_format_json, &dp_format_warc, &dp_format_arc,
                                           &dp_format_csv,   &dp_format_tsv,  &dp_format_mbox, &html,
                                           &dp_format_docx,  &dp_format_pdf};

/* As options name them. */
static const struct {
    const char *name;
    const dp_format *format;
} names[] = {{"jsonl", &dp_format_jsonl}, {"json", &dp_format_json}, {"csv", &dp_format_csv}, {"tsv", &dp_format_tsv},
             {"warc", &dp_format_warc},   {"mbox", &dp_format_mbox}, {"html", &html},         {"text", &plain},
             {"lines", &dp_format_lines}};

doppel_status dp_format_find(const doppel_input_options *options, const dp_format **format, doppel_error *error) {
    *format = NULL;
    for (size_t i = 0; options->format && i < sizeof names / sizeof *names; i++)
        if (!strcmp(options->format, names[i].name))
            *format = names[i].format;
    if (options->format && !*format)
        return dp_fail(
            error, DOPPEL_ERROR_USAGE,
            "unknown format \"%.40s\"; the formats are jsonl, json, csv, tsv, warc, mbox, html, text and lines",
            options->format);
    return DOPPEL_OK;
}

/* What is read of a file at a time, and at most, to detect its format. */
#define HEAD ((size_t)8 << 10)

/* Bytes needed before the first check, if the file has them: a byte-order mark and a byte. */
#define FIRST_LOOK 4

/* And to recognise ARC, "filedesc://". */
#define ARC_LOOK 11

/* Whether the path ends so, without regard to case; if so, *length loses the ending. */
static bool ends_in(const char *path, size_t *length, const char *ending) {
    size_t size = strlen(ending);
    if (*length <= size || strncasecmp(path + *length - size, ending, size))
        return false;
    *length -= size;
    return true;
}

/* The length of a path without the ending of a compressed file. */
static size_t plain_length(const char *path) {
    static const char *const endings[] = {".gz", ".zst", ".bz2", ".xz"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(path, &length, endings[i]))
            break;
    return length;
}

static const dp_format *by_name(const char *path) {
    size_t length = plain_length(path);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (const char *const *ending = formats[i]->endings; ending && *ending; ending++)
            if (ends_in(path, &length, *ending))
                return formats[i];
    return NULL;
}

const char *doppel_input_format(const char *path) {
    size_t length = strlen(path);
    const dp_format *format = by_name(path);
    return format ? format->name : ends_in(path, &length, ".parquet") ? "Parquet" : NULL;
}

static const dp_format *by_content(const doppel_input_options *options, const char *head, size_t length) {
    dp_skip_mark(&head, &length);
    for (size_t i = 0; length && i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->matches && formats[i]->matches(head, length))
            return formats[i];
    return dp_csv_has_keys(head, length, options) ? &dp_format_csv : NULL;
}

/* The first byte that is no white space; 0: there is none. */
static char first_byte(const dp_buffer *head) {
    const char *bytes = head->data;
    size_t length = head->size;
    dp_skip_mark(&bytes, &length);
    while (length && is_space(*bytes)) {
        bytes++;
        length--;
    }
    return (char)(length ? *bytes : 0);
}

/* The format of a file, by its name or else by how it begins; NULL: more bytes are needed. `ended`: there is
 * no more of it; then it is plain at least. Under the name of .json there are records in lines, and arrays of them. */
static const dp_format *detect(const doppel_input_options *options, const char *path, const dp_buffer *head,
                               bool ended) {
    const dp_format *format = by_name(path);
    size_t length = plain_length(path);
    if (!format)
        format = by_content(options, head->data, head->size);
    else if (ends_in(path, &length, ".json"))
        format = first_byte(head) == '[' ? &dp_format_json : first_byte(head) || ended ? format : NULL;
    return format || !ended ? format : &plain;
}

/* The same where a format was given. ARC, the predecessor of WARC, goes by the same name. */
static const dp_format *asked_or_arc(const dp_format *asked, const dp_buffer *head) {
    return asked == &dp_format_warc && dp_format_arc.matches(head->data, head->size) ? &dp_format_arc : asked;
}

const dp_format *dp_format_read(dp_stream *stream, const char *path, const dp_format *asked,
                                const doppel_input_options *options, dp_buffer *head) {
    if (!dp_reserve(&head->data, &head->capacity, HEAD, 1))
        return NULL;
    const dp_format *format = NULL;
    for (head->size = 0; !format;) {
        size_t got = dp_stream_read(stream, head->data + head->size, HEAD - head->size);
        head->size += got;
        bool ended = !got || head->size == HEAD;
        if (asked)
            format = asked != &dp_format_warc || head->size >= ARC_LOOK || ended ? asked_or_arc(asked, head) : NULL;
        else if (head->size >= FIRST_LOOK || ended)
            format = detect(options, path, head, ended);
    }
    return format;
}

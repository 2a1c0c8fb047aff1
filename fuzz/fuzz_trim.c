/* fuzz_trim.c - any texts to units, cuts and records. The first three bytes choose the options; the rest is a file of
 * JSON lines or, cut at bytes 0xFE, texts of which one is made.
 *
 * Cuts are ascending, within the text, disjoint, and never split a code point or separate a mark from its base; the
 * text is what is between them; the record is JSON and has that text; spans fill the cuts. All that is the same with
 * several threads or with hardly any memory. */
#include "fuzz.h"

#include "trim/trim.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- one document ---- */

typedef struct outcome {
    dp_buffer lines;
    dp_record_parser *parser;
    bool passages;
} outcome;

static bool ends_line(const uint8_t *text, uint64_t at) {
    if (text[at - 1] == '\n' || text[at - 1] == '\r')
        return true;
    return at >= 3 && text[at - 3] == 0xE2 && text[at - 2] == 0x80 && (text[at - 1] & 0xFE) == 0xA8;
}

static void check_bound(const outcome *o, doppel_slice text, uint64_t at) {
    const uint8_t *bytes = (const uint8_t *)text.data;
    int32_t c;
    if (!at || at == text.length)
        return;
    CHECK((bytes[at] & 0xC0) != 0x80);
    dp_utf8_decode(bytes + at, bytes + text.length, &c);
    CHECK(c >= 0);
    CHECK(!dp_code_point_is_mark(c) || (!o->passages && ends_line(bytes, at)));
}

static void check_cuts(const outcome *o, const doppel_trimmed *d) {
    uint64_t at = 0, left = 0;
    for (size_t i = 0; i < d->cut_count; i++) {
        const doppel_range *cut = &d->cuts[i];
        /* Words that come of one code point have one start: between them, nothing is cut. */
        CHECK(cut->start < cut->end + o->passages && cut->end <= d->original.length && (!i || cut->start > at));
        check_bound(o, d->original, cut->start);
        check_bound(o, d->original, cut->end);
        CHECK(left + cut->start - at <= d->text.length);
        CHECK(!memcmp(d->text.data + left, d->original.data + at, cut->start - at));
        left += cut->start - at;
        at = cut->end;
    }
    CHECK(left + d->original.length - at == d->text.length);
    CHECK(!memcmp(d->text.data + left, d->original.data + at, d->original.length - at));
    CHECK(d->words_cut <= d->words && !d->words_cut == !d->cut_count);
    CHECK(!d->emptied || (d->words_cut == d->words && !d->dropped));
}

static bool is_cut(const doppel_trimmed *d, const doppel_span *span) {
    for (size_t i = 0; i < d->cut_count; i++)
        if (d->cuts[i].start <= span->start && span->end <= d->cuts[i].end)
            return true;
    return false;
}

static void check_spans(const outcome *o, const doppel_trimmed *d) {
    CHECK(!d->span_count == !d->cut_count);
    for (size_t i = 0; i < d->span_count; i++) {
        const doppel_span *span = &d->spans[i];
        CHECK(span->words && (!i || span->start >= span[-1].start) && is_cut(d, span));
        CHECK(span->start < span->end + o->passages);
    }
}

static void check_record(const outcome *o, const doppel_trimmed *d) {
    doppel_document read;
    dp_buffer padded = {0};
    CHECK(!memchr(d->record.data, '\n', d->record.length));
    CHECK(dp_buffer_add(&padded, d->record.data, d->record.length) && dp_buffer_add(&padded, "\n", 1));
    CHECK(!dp_record_parser_run(o->parser, (doppel_slice){padded.data, padded.size - 1}, &read));
    CHECK(read.text.length == d->text.length);
    CHECK(!read.text.length || !memcmp(read.text.data, d->text.data, d->text.length));
    dp_buffer_free(&padded);
}

static void add_bytes(dp_buffer *lines, doppel_slice bytes) {
    CHECK(dp_buffer_printf(lines, "%zu ", bytes.length) && dp_buffer_add(lines, bytes.data, bytes.length));
}

/* doppel_trim_write */
static doppel_status take(const doppel_trimmed *d, void *user) {
    outcome *o = user;
    check_cuts(o, d);
    check_spans(o, d);
    check_record(o, d);
    CHECK(dp_buffer_printf(&o->lines, "%llu %llu %llu %d %d ", (unsigned long long)d->position,
                           (unsigned long long)d->words, (unsigned long long)d->words_cut, (int)d->dropped,
                           d->emptied));
    add_bytes(&o->lines, d->id);
    add_bytes(&o->lines, d->record);
    for (size_t i = 0; i < d->cut_count; i++)
        CHECK(dp_buffer_printf(&o->lines, "%llu-%llu ", (unsigned long long)d->cuts[i].start,
                               (unsigned long long)d->cuts[i].end));
    for (size_t i = 0; i < d->span_count; i++) {
        const doppel_span *s = &d->spans[i];
        CHECK(dp_buffer_printf(&o->lines, "[%llu %llu %llu %llu %llu]", (unsigned long long)s->start,
                               (unsigned long long)s->end, (unsigned long long)s->words,
                               (unsigned long long)s->original, (unsigned long long)s->original_start));
        add_bytes(&o->lines, s->original_id);
    }
    return DOPPEL_OK;
}

/* ---- one run ---- */

typedef struct files {
    const char *path, *against; /* against: NULL, or what else to read */
} files;

static void add_repeats(outcome *o, doppel_trim *trim) {
    const doppel_repeat *repeats;
    size_t count;
    CHECK(!doppel_trim_get_repeats(trim, &repeats, &count, NULL) && count <= 100);
    for (size_t i = 0; i < count; i++) {
        CHECK(repeats[i].text.length <= 200 && (!i || repeats[i].count <= repeats[i - 1].count));
        CHECK(dp_buffer_printf(&o->lines, "*%llu %llu ", (unsigned long long)repeats[i].count,
                               (unsigned long long)repeats[i].start));
        add_bytes(&o->lines, repeats[i].text);
    }
}

static dp_buffer run(files f, doppel_trim_options options, int threads, uint64_t memory) {
    doppel_input_options input = {.size = sizeof input, .threads = threads};
    outcome o = {.passages = options.unit == DOPPEL_UNIT_PASSAGE};
    doppel_trim *trim;
    doppel_error error;
    options.size = sizeof options;
    options.input = &input;
    options.memory = memory;
    options.against = &f.against;
    options.against_count = f.against != NULL;
    CHECK(!dp_record_parser_create(&input, &o.parser));
    CHECK(!doppel_trim_find(&f.path, 1, &options, &trim, &error));
    CHECK(!doppel_trim_write(trim, DOPPEL_TRIM_RECORDS | DOPPEL_TRIM_SPANS | DOPPEL_TRIM_TEXTS | DOPPEL_TRIM_ORIGINALS,
                             take, &o, &error));
    add_repeats(&o, trim);
    doppel_trim_free(trim);
    dp_record_parser_free(o.parser);
    return o.lines;
}

/* ---- options and files ---- */

static doppel_trim_options choose(const uint8_t *byte, bool against) {
    static const char *const scopes[] = {NULL, NULL, "document", "host", NULL, "document", "domain", "id"};
    static const char *const keeps[] = {NULL, "last", "longest", "shortest,last"};
    doppel_trim_options o = {.unit = (doppel_unit)(byte[0] & 3), .min_words = 1 + (byte[0] >> 2 & 3)};
    if (o.unit == DOPPEL_UNIT_PASSAGE)
        o.words = 1 + (byte[0] >> 4);
    else
        o.run = 1 + (byte[0] >> 4 & 3);
    o.drop_below = byte[2] >> 4 & 3;
    o.drop_share = byte[2] & 64 ? 0.5 : 0;
    if (against)
        return o;
    o.keep = keeps[byte[1] & 3];
    o.min_count = byte[1] & 4 ? 3 : 0;
    o.cut_first = byte[1] & 8;
    const char *scope = scopes[byte[1] >> 4 & 7];
    o.within = byte[1] & 128 ? scope : NULL;
    o.across = byte[1] & 128 ? NULL : scope;
    return o;
}

/* Texts, cut at bytes 0xFE, as records. */
static void make_records(const uint8_t *data, size_t size, dp_buffer *file) {
    size_t number = 0;
    for (const uint8_t *p = data, *end = data + size, *next; p <= end; p = next + 1, number++) {
        next = p < end ? memchr(p, 0xFE, (size_t)(end - p)) : NULL;
        next = next ? next : end;
        CHECK(dp_buffer_printf(file, "{\"id\":\"%zu\",\"url\":\"http://h%zu.com/\",\"text\":", number, number % 2));
        CHECK(dp_json_add(file, (const char *)p, (size_t)(next - p)) && dp_buffer_printf(file, "}\n"));
    }
}

/* Files in memory, and links to them whose names give the format. */
static char paths[2][64];
static int numbers[2];

static void remove_links(void) {
    unlink(paths[0]);
    unlink(paths[1]);
}

static void open_files(void) {
    for (int i = 0; i < 2; i++) {
        char target[40];
        numbers[i] = memfd_create("records", 0);
        CHECK(numbers[i] >= 0);
        snprintf(target, sizeof target, "/proc/self/fd/%d", numbers[i]);
        snprintf(paths[i], sizeof paths[i], "/tmp/doppel-fuzz.%ld.%d.jsonl", (long)getpid(), i);
        unlink(paths[i]);
        CHECK(!symlink(target, paths[i]));
    }
    atexit(remove_links);
}

static void fill(int number, const char *bytes, size_t size) {
    CHECK(!ftruncate(number, 0) && pwrite(number, bytes, size, 0) == (ssize_t)size);
}

static void same(const dp_buffer *a, dp_buffer b) {
    CHECK(a->size == b.size && (!b.size || !memcmp(a->data, b.data, b.size)));
    dp_buffer_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    dp_buffer file = {0};
    if (size < 4)
        return 0;
    if (!paths[0][0])
        open_files();
    /* Bits of the third byte: records as they are; the first half of them is what the others are compared with. */
    bool raw = data[2] & 1, against = data[2] & 2;
    if (raw)
        CHECK(dp_buffer_add(&file, data + 3, size - 3));
    else
        make_records(data + 3, size - 3, &file);
    const char *middle = against ? memchr(file.data + file.size / 2, '\n', file.size - file.size / 2) : NULL;
    size_t first = middle ? (size_t)(middle + 1 - file.data) : 0;
    fill(numbers[0], file.data + first, file.size - first);
    fill(numbers[1], file.data, first);
    files f = {paths[0], against ? paths[1] : NULL};
    doppel_trim_options options = choose(data, against);
    dp_buffer truth = run(f, options, 1, 0);
    /* With several threads, or in so little memory that passages take up to five rounds. */
    same(&truth, data[2] & 4 ? run(f, options, 3, 0) : run(f, options, 1, file.size * 12));
    dp_buffer_free(&truth);
    dp_buffer_free(&file);
    return 0;
}

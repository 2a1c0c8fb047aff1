/* write.c - documents out: doppel_trim_write reads the inputs once more and gives each document without what is cut.
 *
 * Threads make what is wanted of a document; take_documents gives it out in order. If spans are wanted, the documents
 * that they repeat are looked up first, in a separate reading: a span has a document and a unit as its original, and an
 * id and a byte offset are given. */
#include "trim/trim.h"

#include <stdlib.h>

/* ---- the originals of spans ---- */

/* What the file of originals has of a document: this, then the id, then `count` pairs of a unit and where it starts. */
typedef struct original_head {
    uint64_t id_length, count;
} original_head;

typedef struct original_units {
    dp_append_file file; /* of each document: the number of units, and the units, ascending */
    uint64_t *at;        /* by document, + 1; 0: none */
} original_units;

void dp_trim_originals_free(dp_trim_originals *originals) {
    dp_append_file_close(&originals->file);
    free(originals->at);
    *originals = (dp_trim_originals){.made = false};
}

/* Bytes of the file of spans that are read at a time: documents are processed nearly in the order of their
 * spans. */
enum { AHEAD = 64 << 10 };

static void free_spans(dp_span_list *list) {
    free(list->span);
    free(list->ahead);
}

/* Reads of the file of spans, from what was read ahead if that has it. */
static doppel_status read_ahead(const dp_append_file *file, dp_span_list *list, uint64_t at, void *to, size_t length,
                                doppel_error *error) {
    if (at < list->ahead_at || at + length > list->ahead_at + list->ahead_size) {
        uint64_t size = dp_append_file_size(file), left = at < size ? size - at : 0;
        if (length > AHEAD || length > left)
            return dp_append_file_read(file, at, to, length, error);
        if (!dp_reserve(&list->ahead, &list->ahead_room, AHEAD, 1))
            return dp_no_memory(error);
        list->ahead_size = 0;
        DP_TRY(dp_append_file_read(file, at, list->ahead, left < AHEAD ? (size_t)left : AHEAD, error));
        list->ahead_at = at;
        list->ahead_size = left < AHEAD ? left : AHEAD;
    }
    if (length)
        memcpy(to, list->ahead + (at - list->ahead_at), length);
    return DOPPEL_OK;
}

/* The spans of a document, which has some. */
static doppel_status read_spans(const doppel_trim *trim, uint64_t document, dp_span_list *list, doppel_error *error) {
    uint64_t at = trim->documents.cuts_at[document] - 1, size = dp_append_file_size(&trim->spans), count;
    DP_TRY(read_ahead(&trim->spans, list, at, &count, sizeof count, error));
    if (count > (size - at) / sizeof *list->span)
        return dp_fail(error, DOPPEL_ERROR_STORE, "the spans of the work folder are damaged: start again");
    if (!dp_reserve(&list->span, &list->room, (size_t)count, sizeof *list->span))
        return dp_no_memory(error);
    list->count = (size_t)count;
    return read_ahead(&trim->spans, list, at + sizeof count, list->span, list->count * sizeof *list->span, error);
}

static doppel_status sort_originals(const doppel_trim *trim, dp_sorter *sorter, doppel_error *error) {
    dp_span_list list = {0};
    doppel_status status = DOPPEL_OK;
    for (uint64_t d = trim->documents.against; d < trim->documents.count && status == DOPPEL_OK; d++) {
        if (!trim->documents.cuts_at[d])
            continue;
        status = read_spans(trim, d, &list, error);
        for (size_t i = 0; i < list.count && status == DOPPEL_OK; i++) {
            const uint64_t place = (uint64_t)list.span[i].document << 32 | list.span[i].unit;
            status = dp_sorter_add(sorter, &place, error);
        }
    }
    free_spans(&list);
    DP_THEN(status, dp_sorter_finish(sorter, error));
    return status;
}

/* Appends the units of one document. */
static doppel_status add_units(original_units *units, uint32_t document, const uint64_t *unit, uint64_t count,
                               doppel_error *error) {
    if (!count)
        return DOPPEL_OK;
    units->at[document] = dp_append_file_size(&units->file) + 1;
    DP_TRY(dp_append_file_add(&units->file, &count, sizeof count, error));
    return dp_append_file_add(&units->file, unit, (size_t)count * sizeof *unit, error);
}

static doppel_status list_originals(original_units *units, dp_sorter *sorter, doppel_error *error) {
    const uint64_t *place;
    uint64_t *unit = NULL;
    size_t count = 0, room = 0;
    uint32_t document = 0;
    doppel_status status = DOPPEL_OK;
    for (;;) {
        DP_THEN(status, dp_sorter_next(sorter, &place, error));
        if (status != DOPPEL_OK)
            break;
        if (!place || *place >> 32 != document) {
            status = add_units(units, document, unit, count, error);
            count = 0;
        }
        if (!place)
            break;
        document = (uint32_t)(*place >> 32);
        if (!dp_reserve(&unit, &room, count + 1, sizeof *unit))
            status = dp_no_memory(error);
        else
            unit[count++] = (uint32_t)*place;
    }
    free(unit);
    DP_THEN(status, dp_append_file_flush(&units->file, error));
    return status;
}

/* What a thread looks originals up with. */
typedef struct original_reader {
    doppel_trim *trim;
    const original_units *units;
    uint64_t first;
    dp_trim_text text;
    uint64_t *unit;
    size_t room;
    dp_buffer block;
    doppel_error error;
} original_reader;

typedef struct original_reading {
    doppel_trim *trim;
    const original_units *units;
    uint64_t first;
} original_reading;

static doppel_status make_block(original_reader *r, const doppel_document *document, uint64_t count) {
    const original_head head = {document->id.length, count};
    r->block.size = 0;
    bool made = dp_buffer_add(&r->block, &head, sizeof head) &&
                dp_buffer_add(&r->block, document->id.data, document->id.length);
    for (uint64_t i = 0; i < count && made; i++) {
        if (r->unit[i] >= r->text.count)
            return dp_inputs_changed(&r->error);
        made = dp_buffer_add(&r->block, (uint64_t[2]){r->unit[i], r->text.bounds[r->unit[i]]}, 2 * sizeof(uint64_t));
    }
    return made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

static doppel_status look_up(original_reader *r, uint64_t number, const doppel_document *document) {
    dp_trim_originals *originals = &r->trim->originals;
    uint64_t at = r->units->at[number] - 1, count;
    doppel_page page;
    bool is_page;
    DP_TRY(dp_append_file_read(&r->units->file, at, &count, sizeof count, &r->error));
    if (!dp_reserve(&r->unit, &r->room, (size_t)count, sizeof *r->unit))
        return DOPPEL_ERROR_MEMORY;
    DP_TRY(
        dp_append_file_read(&r->units->file, at + sizeof count, r->unit, (size_t)count * sizeof *r->unit, &r->error));
    DP_TRY(dp_trim_text_of(&r->text, document, &page, &is_page));
    if (dp_trim_text_check(page.text) != r->trim->documents.check[number])
        return dp_inputs_changed(&r->error);
    DP_TRY(dp_trim_text_bounds(&r->text, page.text, is_page));
    DP_TRY(make_block(r, document, count));
    pthread_mutex_lock(&r->trim->lock);
    originals->at[number] = dp_append_file_size(&originals->file) + 1;
    doppel_status status = dp_append_file_add(&originals->file, r->block.data, r->block.size, &r->error);
    pthread_mutex_unlock(&r->trim->lock);
    return status;
}

/* dp_input_numbered.wanted */
static bool is_original(void *state, uint64_t number) {
    const original_reader *r = state;
    return r->units->at[number + r->first];
}

/* dp_input_numbered.document */
static doppel_status look_up_numbered(void *state, uint64_t number, const doppel_document *document,
                                      doppel_output *output) {
    original_reader *r = state;
    (void)output;
    doppel_status status = look_up(r, number + r->first, document);
    dp_trim_fail(r->trim, status, &r->error);
    return status;
}

static void end_originals(void *user, void *state) {
    original_reader *r = state;
    (void)user;
    dp_trim_text_free(&r->text);
    dp_buffer_free(&r->block);
    free(r->unit);
    free(r);
}

static doppel_status begin_originals(void *user, void **state) {
    const original_reading *reading = user;
    original_reader *r = calloc(1, sizeof *r);
    if (!r)
        return DOPPEL_ERROR_MEMORY;
    r->trim = reading->trim;
    r->units = reading->units;
    r->first = reading->first;
    doppel_status status = dp_trim_text_init(&r->text, &r->trim->settings);
    if (status == DOPPEL_OK)
        *state = r;
    else
        end_originals(NULL, r);
    return status;
}

static doppel_status read_originals(doppel_trim *trim, const original_units *units, doppel_error *error) {
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < 2; i++) {
        const dp_trim_reading *reading = &trim->reading[i];
        original_reading user = {trim, units, reading->first};
        const dp_input_numbered numbered = {
            .units = &reading->units, .wanted = is_original, .document = look_up_numbered};
        const doppel_work work = {.user = &user, .begin = begin_originals, .end = end_originals};
        if (reading->count)
            DP_THEN(status, dp_trim_read_again(trim, reading, &numbered, &work, error));
    }
    DP_THEN(status, dp_append_file_flush(&trim->originals.file, error));
    return status;
}

/* Looks up the ids of the documents that spans repeat, and where; once. */
static doppel_status make_originals(doppel_trim *trim, doppel_error *error) {
    const dp_trim_settings *s = &trim->settings;
    dp_trim_originals *originals = &trim->originals;
    original_units units = {.at = calloc((size_t)trim->documents.count + 1, sizeof *units.at)};
    dp_sorter sorter;
    if (originals->made) {
        free(units.at);
        return DOPPEL_OK;
    }
    dp_trim_originals_free(originals);
    dp_sorter_init(&sorter, &(dp_sorter_options){.words = 1,
                                                 .keys = 1,
                                                 .unique = true,
                                                 .memory = s->memory / 2,
                                                 .tmp = s->options.tmp,
                                                 .stop = s->input.stop});
    originals->at = calloc((size_t)trim->documents.count + 1, sizeof *originals->at);
    doppel_status status = units.at && originals->at ? DOPPEL_OK : dp_no_memory(error);
    DP_THEN(status, dp_append_file_open(&units.file, NULL, NULL, s->options.tmp, error));
    DP_THEN(status, dp_append_file_open(&originals->file, NULL, NULL, s->options.tmp, error));
    DP_THEN(status, sort_originals(trim, &sorter, error));
    DP_THEN(status, list_originals(&units, &sorter, error));
    DP_THEN(status, read_originals(trim, &units, error));
    originals->made = status == DOPPEL_OK;
    trim->stats.spilled_bytes += dp_sorter_spilled(&sorter) + dp_append_file_size(&units.file);
    dp_sorter_free(&sorter);
    dp_append_file_close(&units.file);
    free(units.at);
    return status;
}

/* ---- a document, cut ---- */

/* What a thread makes documents with. */
typedef struct trim_writer {
    doppel_trim *trim;
    unsigned wanted;
    uint64_t first;
    dp_trim_text text;
    dp_record_parser *parser;
    dp_span_list spans;
    doppel_span *given; /* the same, in bytes */
    doppel_range *cuts;
    size_t given_room, cut_count, cut_room;
    dp_buffer ids; /* of their originals, one after the other */
    /* The original that was looked at last: which document that is, + 1, its head, and the first bytes of what the file
     * has of it, the id among them. */
    uint64_t original_of;
    original_head original_head;
    dp_buffer original;
    dp_buffer record, cut_text;
    doppel_error error;
} trim_writer;

/* What take_documents gets of a document; then come the cuts, the spans, their ids, and the parts of the document. */
typedef struct trimmed_head {
    uint64_t position, line, words, words_cut, bytes_cut;
    uint64_t cut_count, span_count, ids_length;
    uint64_t length[6]; /* of the parts */
    uint32_t dropped, emptied;
} trimmed_head;

enum { PART_ID, PART_FILE, PART_RECORD, PART_TEXT, PART_ORIGINAL, PART_URL, PARTS };

/* Reads the head and the id of an original, and as many pairs as come with them, unless it was the last. */
static doppel_status load_original(trim_writer *w, uint32_t document) {
    enum { LOADED = 4096 };
    const dp_trim_originals *originals = &w->trim->originals;
    if (w->original_of == (uint64_t)document + 1)
        return DOPPEL_OK;
    uint64_t at = originals->at[document], size = dp_append_file_size(&originals->file);
    if (!at--)
        return dp_inputs_changed(&w->error);
    uint64_t wanted = LOADED < size - at ? LOADED : size - at;
    w->original_of = 0;
    for (w->original.size = 0; w->original.size < wanted;) {
        if (!dp_reserve(&w->original.data, &w->original.capacity, (size_t)wanted, 1))
            return DOPPEL_ERROR_MEMORY;
        DP_TRY(dp_append_file_read(&originals->file, at, w->original.data, (size_t)wanted, &w->error));
        w->original.size = (size_t)wanted;
        memcpy(&w->original_head, w->original.data, sizeof w->original_head);
        if (wanted < sizeof w->original_head + w->original_head.id_length)
            wanted = sizeof w->original_head + w->original_head.id_length;
    }
    w->original_of = (uint64_t)document + 1;
    return DOPPEL_OK;
}

/* A pair of the loaded original: a unit, and where it starts. */
static doppel_status read_pair(trim_writer *w, uint64_t number, uint64_t pair[2]) {
    const dp_trim_originals *originals = &w->trim->originals;
    enum { PAIR = 2 * sizeof *pair };
    uint64_t from = sizeof w->original_head + w->original_head.id_length + number * PAIR;
    if (from + PAIR > w->original.size)
        return dp_append_file_read(&originals->file, originals->at[w->original_of - 1] - 1 + from, pair, PAIR,
                                   &w->error);
    memcpy(pair, w->original.data + from, PAIR);
    return DOPPEL_OK;
}

/* Where a unit of the loaded original starts. */
static doppel_status find_start(trim_writer *w, uint32_t unit, uint64_t *start) {
    uint64_t low = 0, high = w->original_head.count, pair[2] = {0};
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        DP_TRY(read_pair(w, middle, pair));
        if (pair[0] == unit)
            break;
        if (pair[0] < unit)
            low = middle + 1;
        else
            high = middle;
    }
    *start = pair[1];
    return DOPPEL_OK;
}

static doppel_status name_original(trim_writer *w, const dp_trim_span *span, doppel_span *given) {
    DP_TRY(load_original(w, span->document));
    DP_TRY(find_start(w, span->unit, &given->original_start));
    given->original_id.length = (size_t)w->original_head.id_length;
    const char *id = w->original.data + sizeof w->original_head;
    return dp_buffer_add(&w->ids, id, given->original_id.length) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The spans in bytes, and their unions. */
static doppel_status make_cuts(trim_writer *w, trimmed_head *head) {
    uint32_t end = 0; /* unit where the last cut ends */
    if (!dp_reserve(&w->given, &w->given_room, w->spans.count, sizeof *w->given) ||
        !dp_reserve(&w->cuts, &w->cut_room, w->spans.count, sizeof *w->cuts))
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < w->spans.count; i++) {
        const dp_trim_span *span = &w->spans.span[i];
        if (span->end > w->text.count || span->first >= span->end || span->document >= w->trim->documents.count)
            return dp_inputs_changed(&w->error);
        const uint64_t *bounds = w->text.bounds;
        w->given[i] = (doppel_span){.start = bounds[span->first],
                                    .end = bounds[span->end],
                                    .words = dp_trim_text_words(&w->text, span->first, span->end),
                                    .original = span->document};
        if (w->wanted & (DOPPEL_TRIM_SPANS | DOPPEL_TRIM_ANNOTATE))
            DP_TRY(name_original(w, span, &w->given[i]));
        uint32_t from = span->first > end ? span->first : end;
        /* Words made from one code point have the same start: cuts can adjoin where spans do not. */
        if (!w->cut_count || bounds[span->first] > w->cuts[w->cut_count - 1].end)
            w->cuts[w->cut_count++] = (doppel_range){bounds[span->first], bounds[span->first]};
        if (span->end > end) {
            head->words_cut += dp_trim_text_words(&w->text, from, span->end);
            w->cuts[w->cut_count - 1].end = bounds[span->end];
            end = span->end;
        }
    }
    for (size_t i = 0; i < w->cut_count; i++)
        head->bytes_cut += w->cuts[i].end - w->cuts[i].start;
    return DOPPEL_OK;
}

static doppel_dropped judge(const doppel_trim_options *o, const trimmed_head *head) {
    if (!head->words_cut)
        return DOPPEL_DROPPED_NOT;
    if (o->drop)
        return DOPPEL_DROPPED_REPEATS;
    if (head->words - head->words_cut < o->drop_below)
        return DOPPEL_DROPPED_BELOW;
    bool much = o->drop_share > 0 && (double)head->words_cut / (double)head->words > o->drop_share;
    return much ? DOPPEL_DROPPED_SHARE : DOPPEL_DROPPED_NOT;
}

/* ---- records ---- */

static bool add_without(dp_buffer *to, doppel_slice bytes, const doppel_range *cuts, size_t count) {
    uint64_t at = 0;
    bool added = true;
    for (size_t i = 0; i < count && added; at = cuts[i++].end)
        added = dp_buffer_add(to, bytes.data + at, (size_t)(cuts[i].start - at));
    return added && dp_buffer_add(to, bytes.data + at, (size_t)(bytes.length - at));
}

static void put_spans(const trim_writer *w, dp_json_writer *json) {
    const char *id = w->ids.data;
    dp_json_key(json, "spans");
    dp_json_text(json, "[");
    for (size_t i = 0; i < w->spans.count; i++) {
        const doppel_span *span = &w->given[i];
        dp_json_text(json, i ? ",{" : "{");
        dp_json_key(json, "start");
        dp_json_count(json, span->start);
        dp_json_key(json, "end");
        dp_json_count(json, span->end);
        dp_json_key(json, "words");
        dp_json_count(json, span->words);
        dp_json_key(json, "originalId");
        dp_json_string(json, (doppel_slice){id ? id : "", span->original_id.length});
        dp_json_key(json, "originalStart");
        dp_json_count(json, span->original_start);
        dp_json_text(json, "}");
        id += id ? span->original_id.length : 0;
    }
    dp_json_text(json, "]");
}

/* Appends a record up to its closing brace, without its member `name`. */
static bool add_members(dp_buffer *to, doppel_slice record, const char *name) {
    if (!dp_reserve(&to->data, &to->capacity, to->size + record.length, 1))
        return false;
    to->size += doppel_record_strip(record, &name, 1, to->data + to->size, NULL);
    return true;
}

/* What is left of the text. */
static doppel_slice cut_text(const trim_writer *w) {
    return (doppel_slice){w->cut_text.size ? w->cut_text.data : "", w->cut_text.size};
}

/* The record with another text. */
static doppel_status set_text(trim_writer *w, const doppel_document *d, doppel_slice text) {
    const char *key = w->trim->settings.input.text_key ? w->trim->settings.input.text_key : "text";
    bool made = add_members(&w->record, d->record, key);
    dp_json_writer json = {.buffer = &w->record, .last = w->record.size ? w->record.data[w->record.size - 1] : 0};
    if (json.last != '{')
        dp_json_text(&json, ",");
    dp_json_string(&json, doppel_slice_of(key));
    dp_json_text(&json, ":");
    dp_json_string(&json, text);
    dp_json_text(&json, "}");
    return made && !json.failed ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* The record with cuts in its text, in place. One that had invalid UTF-8 is repaired first. */
static doppel_status cut_record(trim_writer *w, const doppel_document *given) {
    doppel_document repaired, *d = &repaired;
    repaired = *given;
    if (!d->text_value.data) {
        if (!w->parser)
            DP_TRY(dp_record_parser_create(&w->trim->settings.input, &w->parser));
        DP_TRY(dp_record_parser_run(w->parser, given->record, d));
    }
    const char *record = d->record.data, *value = d->text_value.data;
    if (!value)
        return dp_inputs_changed(&w->error);
    size_t before = (size_t)(value - record) + 1, after = before + d->text_value.length - 2;
    bool made =
        dp_buffer_add(&w->record, record, before) &&
        dp_json_string_cut((doppel_slice){value + 1, d->text_value.length - 2}, w->cuts, w->cut_count, &w->record) &&
        dp_buffer_add(&w->record, record + after, d->record.length - after);
    return made ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Makes w->record: cut, or whole with its spans. */
static doppel_status write_record(trim_writer *w, const doppel_document *d, const doppel_page *page, bool is_page) {
    bool annotate = w->wanted & DOPPEL_TRIM_ANNOTATE, cut = w->cut_count && !annotate;
    doppel_slice text = cut ? cut_text(w) : page->text;
    doppel_status status = DOPPEL_OK;
    if (!d->record.data)
        status = dp_record_make(d, page->title, text, &w->record) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    else if (is_page)
        status = set_text(w, d, text);
    else if (cut)
        status = cut_record(w, d);
    else if (!dp_buffer_add(&w->record, d->record.data, d->record.length))
        status = DOPPEL_ERROR_MEMORY;
    if (annotate && status == DOPPEL_OK) {
        dp_buffer whole = w->record;
        w->record = (dp_buffer){0};
        bool made = add_members(&w->record, (doppel_slice){whole.data, whole.size}, "spans");
        dp_json_writer json = {.buffer = &w->record, .last = w->record.size ? w->record.data[w->record.size - 1] : 0};
        put_spans(w, &json);
        dp_json_text(&json, "}");
        dp_buffer_free(&whole);
        status = made && !json.failed ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    }
    /* Where lines end in CR LF, they do so in the output. */
    if (status == DOPPEL_OK && d->record.data && d->record.data[d->record.length] == '\r')
        status = dp_buffer_add(&w->record, "\r", 1) ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
    return status;
}

/* ---- a document, on a thread ---- */

static doppel_status put_document(trim_writer *w, const doppel_document *d, const doppel_page *page, trimmed_head *head,
                                  doppel_output *output) {
    bool texts = w->wanted & DOPPEL_TRIM_TEXTS, originals = w->wanted & DOPPEL_TRIM_ORIGINALS;
    const doppel_slice none = {"", 0};
    const doppel_slice part[PARTS] = {d->id,
                                      doppel_slice_of(d->file),
                                      (doppel_slice){w->record.data, w->record.size},
                                      !texts         ? none
                                      : w->cut_count ? cut_text(w)
                                                     : page->text,
                                      originals ? page->text : none,
                                      d->url};
    bool spans = w->wanted & DOPPEL_TRIM_SPANS;
    head->cut_count = w->cut_count;
    head->span_count = w->spans.count;
    head->ids_length = spans ? w->ids.size : 0;
    for (size_t i = 0; i < PARTS; i++)
        head->length[i] = part[i].length;
    DP_TRY(doppel_output_write(output, dp_bytes(head, sizeof *head)));
    DP_TRY(doppel_output_write(output, dp_bytes(w->cuts, w->cut_count * sizeof *w->cuts)));
    if (spans)
        DP_TRY(doppel_output_write(output, dp_bytes(w->given, w->spans.count * sizeof *w->given)));
    if (spans)
        DP_TRY(doppel_output_write(output, (doppel_slice){w->ids.data, w->ids.size}));
    for (size_t i = 0; i < PARTS; i++)
        DP_TRY(doppel_output_write(output, part[i]));
    /* So that a name ends with a NUL. */
    return doppel_output_write(output, (doppel_slice){"", 1});
}

static doppel_status trim_document(trim_writer *w, uint64_t number, const doppel_document *d, doppel_output *output) {
    doppel_trim *trim = w->trim;
    doppel_page page;
    bool is_page, records = w->wanted & (DOPPEL_TRIM_RECORDS | DOPPEL_TRIM_ANNOTATE);
    trimmed_head head;
    memset(&head, 0, sizeof head);
    head.position = number;
    head.line = d->line;
    head.words = trim->documents.words[number];
    w->spans.count = w->cut_count = w->ids.size = w->record.size = w->cut_text.size = 0;
    DP_TRY(dp_trim_text_of(&w->text, d, &page, &is_page));
    if (trim->documents.cuts_at[number]) {
        DP_TRY(read_spans(trim, number, &w->spans, &w->error));
        DP_TRY(dp_trim_text_bounds(&w->text, page.text, is_page));
        if (dp_trim_text_check(page.text) != trim->documents.check[number])
            return dp_inputs_changed(&w->error);
        head.words = w->text.word_count;
        DP_TRY(make_cuts(w, &head));
        if (!add_without(&w->cut_text, page.text, w->cuts, w->cut_count))
            return DOPPEL_ERROR_MEMORY;
    }
    head.dropped = judge(&trim->settings.options, &head);
    head.emptied = head.words_cut && head.words_cut == head.words && !head.dropped;
    if (records)
        DP_TRY(write_record(w, d, &page, is_page));
    return put_document(w, d, &page, &head, output);
}

/* dp_input_numbered.document */
static doppel_status trim_numbered(void *state, uint64_t number, const doppel_document *document,
                                   doppel_output *output) {
    trim_writer *w = state;
    doppel_status status = trim_document(w, number + w->first, document, output);
    dp_trim_fail(w->trim, status, &w->error);
    return status;
}

/* ---- in order ---- */

typedef struct trim_writing {
    doppel_trim *trim;
    unsigned wanted;
    doppel_status (*document)(const doppel_trimmed *document, void *user);
    void *user;
    doppel_range *cuts;
    doppel_span *spans;
    size_t cut_room, span_room;
    dp_buffer file; /* its name, with a NUL */
} trim_writing;

static void count_document(doppel_trim_stats *stats, const trimmed_head *head) {
    stats->documents_cut += head->cut_count > 0;
    stats->spans += head->span_count;
    stats->words_cut += head->words_cut;
    stats->bytes_cut += head->bytes_cut;
    stats->dropped += head->dropped != DOPPEL_DROPPED_NOT;
    stats->emptied += head->emptied;
}

/* Copies what must be aligned; returns the bytes after it. NULL: out of memory. */
static const char *take_arrays(trim_writing *w, const trimmed_head *head, const char *bytes) {
    bool spans = w->wanted & DOPPEL_TRIM_SPANS;
    size_t cut_bytes = (size_t)head->cut_count * sizeof *w->cuts;
    size_t span_bytes = spans ? (size_t)head->span_count * sizeof *w->spans : 0;
    if (!dp_reserve(&w->cuts, &w->cut_room, (size_t)head->cut_count + 1, sizeof *w->cuts) ||
        !dp_reserve(&w->spans, &w->span_room, (size_t)head->span_count + 1, sizeof *w->spans))
        return NULL;
    memcpy(w->cuts, bytes, cut_bytes);
    memcpy(w->spans, bytes + cut_bytes, span_bytes);
    const char *id = bytes + cut_bytes + span_bytes;
    for (size_t i = 0; i < head->span_count && spans; i++) {
        w->spans[i].original_id.data = id;
        id += w->spans[i].original_id.length;
    }
    return bytes + cut_bytes + span_bytes + head->ids_length;
}

static doppel_status take_document(trim_writing *w, const char **bytes) {
    trimmed_head head;
    memcpy(&head, *bytes, sizeof head);
    const char *at = take_arrays(w, &head, *bytes + sizeof head);
    doppel_slice part[PARTS];
    w->file.size = 0;
    if (!at)
        return DOPPEL_ERROR_MEMORY;
    for (size_t i = 0; i < PARTS; at += part[i++].length)
        part[i] = (doppel_slice){at, (size_t)head.length[i]};
    if (!dp_buffer_add(&w->file, part[PART_FILE].data, part[PART_FILE].length) || !dp_buffer_add(&w->file, "", 1))
        return DOPPEL_ERROR_MEMORY;
    *bytes = at + 1;
    count_document(&w->trim->stats, &head);
    const doppel_trimmed document = {.position = head.position,
                                     .id = part[PART_ID],
                                     .file = w->file.data,
                                     .line = head.line,
                                     .words = head.words,
                                     .words_cut = head.words_cut,
                                     .cuts = w->cuts,
                                     .cut_count = (size_t)head.cut_count,
                                     .spans = w->spans,
                                     .span_count = w->wanted & DOPPEL_TRIM_SPANS ? (size_t)head.span_count : 0,
                                     .dropped = (doppel_dropped)head.dropped,
                                     .emptied = head.emptied,
                                     .record = part[PART_RECORD],
                                     .text = part[PART_TEXT],
                                     .original = part[PART_ORIGINAL],
                                     .url = part[PART_URL]};
    return w->document ? w->document(&document, w->user) : DOPPEL_OK;
}

/* doppel_work.emit */
static doppel_status take_documents(void *user, doppel_slice bytes) {
    for (const char *at = bytes.data, *end = at + bytes.length; at < end;)
        DP_TRY(take_document(user, &at));
    return DOPPEL_OK;
}

/* ---- the call ---- */

static void end_writer(void *user, void *state) {
    trim_writer *w = state;
    (void)user;
    dp_trim_text_free(&w->text);
    dp_record_parser_free(w->parser);
    free_spans(&w->spans);
    free(w->given);
    free(w->cuts);
    dp_buffer_free(&w->ids);
    dp_buffer_free(&w->original);
    dp_buffer_free(&w->record);
    dp_buffer_free(&w->cut_text);
    free(w);
}

static doppel_status begin_writer(void *user, void **state) {
    const trim_writing *writing = user;
    trim_writer *w = calloc(1, sizeof *w);
    if (!w)
        return DOPPEL_ERROR_MEMORY;
    w->trim = writing->trim;
    w->wanted = writing->wanted;
    w->first = w->trim->reading[1].first;
    doppel_status status = dp_trim_text_init(&w->text, &w->trim->settings);
    if (status == DOPPEL_OK)
        *state = w;
    else
        end_writer(NULL, w);
    return status;
}

static void clear_counts(doppel_trim_stats *stats) {
    stats->documents_cut = stats->spans = stats->words_cut = stats->bytes_cut = stats->dropped = stats->emptied = 0;
}

doppel_status doppel_trim_write(doppel_trim *trim, unsigned wanted,
                                doppel_status (*document)(const doppel_trimmed *document, void *user), void *user,
                                doppel_error *error) {
    trim_writing w = {.trim = trim, .wanted = wanted, .document = document, .user = user};
    const dp_trim_reading *reading = &trim->reading[1];
    const dp_input_numbered numbered = {.units = &reading->units, .document = trim_numbered};
    const doppel_work work = {.user = &w, .begin = begin_writer, .end = end_writer, .emit = take_documents};
    clear_counts(&trim->stats);
    if (wanted & (DOPPEL_TRIM_SPANS | DOPPEL_TRIM_ANNOTATE))
        DP_TRY(make_originals(trim, error));
    doppel_status status = dp_trim_read_again(trim, reading, &numbered, &work, error);
    free(w.cuts);
    free(w.spans);
    dp_buffer_free(&w.file);
    return status;
}

const char *doppel_dropped_name(doppel_dropped dropped) {
    static const char *const names[] = {
        [DOPPEL_DROPPED_REPEATS] = "repeats", [DOPPEL_DROPPED_BELOW] = "below", [DOPPEL_DROPPED_SHARE] = "share"};
    return dropped < sizeof names / sizeof *names ? names[dropped] : NULL;
}

/* journal.c - the journal: begun, appended to, read back; saved as a file of sketches, and taken from one; the batch of
 * a finished run, opened from it.
 *
 * Its header has the settings of the batch as text. An entry is packed once, by the thread that sketches the document,
 * with its check. Read back after the process was killed, the journal is good up to the first incomplete entry; the
 * rest is truncated, and reading resumes after the last document. */
#include "batch/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "DOPPELSK"
#define VERSION 2

/* Bytes copied at a time. */
#define PIECE ((size_t)4 << 20)

typedef struct journal_header {
    char magic[8];
    uint32_t version, text_length;
    uint64_t shaping; /* bytes of the text that shape sketches */
    uint64_t check;   /* XXH3 of the text */
} journal_header;

/* ---- settings as text, a line each ---- */

/* What shapes sketches. */
static bool print_shaping(const dp_batch_settings *s, dp_buffer *text) {
    const doppel_batch_options *o = &s->options;
    return dp_buffer_printf(text, "recipe=%s\n", doppel_recipe_text(s->recipe)) &&
           dp_buffer_printf(text, "unicode=%s\n", doppel_unicode_version()) &&
           dp_buffer_printf(text, "sets=%d\nbands=%d\nrows=%d\n", s->has_sets, s->bands, s->rows) &&
           dp_buffer_printf(text, "min_words=%llu\n", (unsigned long long)o->min_words) &&
           dp_buffer_printf(text, "content=%s\n", o->content == DOPPEL_CONTENT_ALL ? "all" : "main") &&
           dp_buffer_printf(text, "by=%u\nurl_without=%u\n", s->by, o->url_without) &&
           dp_buffer_printf(text, "within=%s\nacross=%s\n", o->within ? o->within : "", o->across ? o->across : "") &&
           (!o->keys_for_sets || dp_buffer_printf(text, "keys_for_sets=1\n"));
}

/* The members of doppel_input_options that name the fields of records; and the format, which is written only if one was
 * given, as files of earlier versions have none. */
static const struct {
    const char *name;
    size_t at;
} key_names[] = {
    {"id_key", offsetof(doppel_input_options, id_key)},       {"url_key", offsetof(doppel_input_options, url_key)},
    {"title_key", offsetof(doppel_input_options, title_key)}, {"text_key", offsetof(doppel_input_options, text_key)},
    {"html_key", offsetof(doppel_input_options, html_key)},   {"format", offsetof(doppel_input_options, format)}};
enum { KEYS = sizeof key_names / sizeof *key_names, FORMAT = KEYS - 1 };

static const char **key_of(const doppel_input_options *input, size_t key) {
    return (const char **)((uintptr_t)input + key_names[key].at);
}

/* `of` is a prefix of each name. */
static bool print_keys(const doppel_input_options *input, const char *of, dp_buffer *text) {
    for (size_t k = 0; k < KEYS; k++) {
        const char *key = *key_of(input, k);
        if ((key || k != FORMAT) && !dp_buffer_printf(text, "%s%s=%s\n", of, key_names[k].name, key ? key : ""))
            return false;
    }
    return true;
}

/* Whether known documents have the fields that the others have. */
static bool have_same_keys(const doppel_input_options *x, const doppel_input_options *y) {
    for (size_t k = 0; k < KEYS; k++) {
        const char *a = *key_of(x, k), *b = *key_of(y, k);
        if (a && b ? strcmp(a, b) != 0 : a != b)
            return false;
    }
    return true;
}

/* The settings: those that shape sketches first, then (*shaping bytes on) the others. */
static bool print_settings(const dp_batch_settings *s, dp_buffer *text, size_t *shaping) {
    const doppel_batch_options *o = &s->options;
    if (!print_shaping(s, text))
        return false;
    *shaping = text->size;
    return dp_buffer_printf(text, "method=%d\nsimilarity=%.17g\ndistance=%d\n", (int)o->method, o->similarity,
                            s->distance) &&
           dp_buffer_printf(text, "boilerplate=%.17g\nkeep=%s\nlink_any=%d\n", o->boilerplate, o->keep ? o->keep : "",
                            o->link_any) &&
           dp_buffer_printf(text, "limit=%llu\nmax_record=%zu\n", (unsigned long long)o->limit, s->input.max_record) &&
           (o->only_contained <= 0 || dp_buffer_printf(text, "only_contained=%.17g\n", o->only_contained)) &&
           (o->keep_copies < 2 || dp_buffer_printf(text, "keep_copies=%llu\n", (unsigned long long)o->keep_copies)) &&
           print_keys(&s->input, "", text) &&
           (have_same_keys(&s->input, &s->known_input) || print_keys(&s->known_input, "known_", text));
}

/* ---- entries ---- */

static uint64_t check_of(uint64_t kind, const char *body, size_t head, size_t length) {
    uint64_t first = XXH3_64bits_withSeed(body, head, kind);
    return length > head ? XXH3_64bits_withSeed(body + head, length - head, first) : first;
}

bool dp_entry_pack(dp_buffer *to, dp_entry_kind kind, doppel_slice head, const doppel_slice *rest, size_t parts,
                   bool check) {
    size_t from = to->size;
    dp_entry_prefix prefix = {.kind = kind};
    bool packed = dp_buffer_add(to, &prefix, sizeof prefix) && dp_buffer_add(to, head.data, head.length);
    for (size_t i = 0; i < parts && packed; i++)
        packed = dp_buffer_add(to, rest[i].data, rest[i].length);
    if (!packed)
        return false;
    prefix.size = to->size - from;
    if (check)
        prefix.check =
            check_of(prefix.kind, to->data + from + sizeof prefix, head.length, (size_t)prefix.size - sizeof prefix);
    memcpy(to->data + from, &prefix, sizeof prefix);
    return true;
}

doppel_status dp_journal_add(dp_journal *journal, dp_entry_kind kind, doppel_slice head, doppel_slice rest,
                             doppel_error *error) {
    journal->entry.size = 0;
    if (!dp_entry_pack(&journal->entry, kind, head, &rest, 1, true))
        return dp_no_memory(error);
    return dp_append_file_add(&journal->file, journal->entry.data, journal->entry.size, error);
}

/* How long the head of an entry is. */
static size_t head_length(const dp_entry_prefix *entry) {
    size_t body = (size_t)entry->size - sizeof *entry;
    size_t head = entry->kind == DP_ENTRY_DOCUMENT ? sizeof(dp_document_head)
                  : entry->kind == DP_ENTRY_FILE   ? sizeof(dp_file_state)
                                                   : body;
    return head < body ? head : body;
}

/* Whether the parts that a document says it has make up the entry. */
static bool is_document(const dp_entry_prefix *entry, const char *body) {
    dp_document_head h;
    if (entry->size < sizeof *entry + sizeof h)
        return false;
    memcpy(&h, body, sizeof h);
    uint64_t named = (uint64_t)h.id_length + h.title_length + h.match.id_length;
    return h.keys <= DP_MOST_BANDS && !h.record_at && !h.record_length && h.match.kind < DP_MATCH_KINDS &&
           !h.match.id_length == !h.match.kind &&
           entry->size ==
               sizeof *entry + sizeof h + named + h.keys * sizeof(uint32_t) + (uint64_t)h.set_count * sizeof(uint64_t);
}

static bool is_sound(const dp_entry_prefix *entry, const char *body) {
    size_t length = (size_t)entry->size - sizeof *entry;
    if (entry->kind < DP_ENTRY_READING || entry->kind > DP_ENTRY_END ||
        (entry->kind == DP_ENTRY_DOCUMENT && !is_document(entry, body)) ||
        (entry->kind == DP_ENTRY_FILE && length < sizeof(dp_file_state)) ||
        (entry->kind == DP_ENTRY_END && length != sizeof(doppel_input_counts)) ||
        (entry->kind == DP_ENTRY_READING && (length < 9 || body[length - 1])))
        return false;
    return entry->check == check_of(entry->kind, body, head_length(entry), length);
}

bool dp_entry_is_document(doppel_slice bytes, size_t *length) {
    dp_entry_prefix entry;
    if (bytes.length < sizeof entry)
        return false;
    memcpy(&entry, bytes.data, sizeof entry);
    *length = (size_t)entry.size;
    return entry.kind == DP_ENTRY_DOCUMENT && entry.size >= sizeof entry && entry.size <= bytes.length &&
           is_sound(&entry, bytes.data + sizeof entry);
}

/* ---- reading back ---- */

/* A journal that is read back: check_settings, then replay. */
typedef struct journal_replay {
    doppel_batch *batch;
    const dp_append_file *file;
    uint64_t at, end; /* of the entries that are left */
    dp_buffer bytes;
    /* What to do with a whole entry. */
    doppel_status (*take)(doppel_batch *batch, const char *entry, size_t length, uint64_t at);
} journal_replay;

/* Reads the next entry into `bytes`; false at the end, or where there is none that is sound. */
static bool next_entry(journal_replay *r, dp_entry_prefix *entry, doppel_status *status) {
    doppel_error *error = r->batch->readings.error;
    if (r->end - r->at < sizeof *entry)
        return false;
    if ((*status = dp_append_file_read(r->file, r->at, entry, sizeof *entry, error)) != DOPPEL_OK)
        return false;
    if (entry->size < sizeof *entry || entry->size > r->end - r->at)
        return false;
    if (!dp_reserve(&r->bytes.data, &r->bytes.capacity, (size_t)entry->size, 1)) {
        *status = dp_no_memory(error);
        return false;
    }
    *status = dp_append_file_read(r->file, r->at, r->bytes.data, (size_t)entry->size, error);
    return *status == DOPPEL_OK && is_sound(entry, r->bytes.data + sizeof *entry);
}

/* Takes entries up to the first that is not whole and sound: `at` is where that stands. */
static doppel_status replay(journal_replay *r) {
    doppel_status status = DOPPEL_OK;
    dp_entry_prefix entry;
    while (status == DOPPEL_OK && next_entry(r, &entry, &status)) {
        status = r->take(r->batch, r->bytes.data, (size_t)entry.size, r->at);
        r->at += entry.size;
        if (status == DOPPEL_OK && dp_stopped(r->batch->settings.input.stop))
            status = dp_fail(r->batch->readings.error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    dp_buffer_free(&r->bytes);
    return status;
}

/* Reads the header; the text goes to `text`, with a NUL. */
static doppel_status read_header(const dp_append_file *file, const char *path, journal_header *h, dp_buffer *text,
                                 doppel_error *error) {
    uint64_t size = file->scratch.size;
    if (size < sizeof *h || dp_append_file_read(file, 0, h, sizeof *h, NULL) != DOPPEL_OK ||
        memcmp(h->magic, MAGIC, sizeof h->magic) != 0)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is not a file of sketches");
    if (h->version != VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "has version %u of sketches; this is version %u",
                          h->version, VERSION);
    if (h->text_length > size - sizeof *h || h->shaping > h->text_length ||
        !dp_reserve(&text->data, &text->capacity, h->text_length + 1U, 1) ||
        dp_append_file_read(file, sizeof *h, text->data, h->text_length, NULL) != DOPPEL_OK ||
        XXH3_64bits(text->data, h->text_length) != h->check)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is damaged: its header has been altered");
    text->size = h->text_length;
    text->data[text->size] = 0;
    return DOPPEL_OK;
}

/* Names the first line in which two texts differ. */
static doppel_status fail_by_difference(const char *path, const char *theirs, const char *ours, doppel_error *error) {
    while (*theirs && *ours) {
        size_t a = strcspn(theirs, "\n"), b = strcspn(ours, "\n");
        bool planned = !strncmp(ours, "bands=", 6) || !strncmp(ours, "rows=", 5);
        if (a != b || memcmp(theirs, ours, a) != 0)
            return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                              "was made with %.*s, and this run has %.*s%s: give the same options",
                              (int)(a < 150 ? a : 150), theirs, (int)(b < 150 ? b : 150), ours,
                              planned ? ", which follow from the similarity" : "");
        theirs += a + (theirs[a] == '\n');
        ours += b + (ours[b] == '\n');
    }
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "was made with other options");
}

/* Whether the journal was made with settings like those of the batch: `all`, or those that shape sketches. Sets `at`.
 */
static doppel_status check_settings(journal_replay *r, const char *path, bool all, doppel_error *error) {
    journal_header h;
    dp_buffer theirs = {0}, ours = {0};
    size_t shaping;
    doppel_status status = read_header(r->file, path, &h, &theirs, error);
    if (status == DOPPEL_OK && (!print_settings(&r->batch->settings, &ours, &shaping) || !dp_buffer_add(&ours, "", 1)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        size_t length = all ? h.text_length : (size_t)h.shaping, own = all ? ours.size - 1 : shaping;
        if (length != own || memcmp(theirs.data, ours.data, own) != 0)
            status = fail_by_difference(path, theirs.data, ours.data, error);
        r->at = sizeof h + h.text_length;
    }
    dp_buffer_free(&theirs);
    dp_buffer_free(&ours);
    return status;
}

/* ---- the batch's own ---- */

static doppel_status write_header(doppel_batch *batch, doppel_error *error) {
    dp_buffer text = {0};
    size_t shaping;
    journal_header h = {.magic = MAGIC, .version = VERSION};
    doppel_status status = print_settings(&batch->settings, &text, &shaping) ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK) {
        h.text_length = (uint32_t)text.size;
        h.shaping = shaping;
        h.check = XXH3_64bits(text.data, text.size);
    }
    DP_THEN(status, dp_append_file_add(&batch->journal.file, &h, sizeof h, error));
    DP_THEN(status, dp_append_file_add(&batch->journal.file, text.data, text.size, error));
    dp_buffer_free(&text);
    return status;
}

/* Takes what the journal has, and truncates an incomplete entry. */
static doppel_status resume(doppel_batch *batch, doppel_error *error) {
    dp_journal *journal = &batch->journal;
    char path[4096];
    snprintf(path, sizeof path, "%s/sketches", batch->settings.options.work);
    journal_replay r = {
        .batch = batch, .file = &journal->file, .end = journal->file.scratch.size, .take = dp_readings_take};
    DP_TRY(check_settings(&r, path, true, error));
    batch->readings.error = error;
    journal->replaying = true;
    doppel_status status = replay(&r);
    journal->replaying = false;
    if (status == DOPPEL_OK && ftruncate(journal->file.scratch.fd, (off_t)r.at))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be truncated: %s", strerror(errno));
    journal->file.scratch.size = r.at;
    return status;
}

/* Whether the journal of a run that was stopped at its very beginning has not even a header. */
static bool has_no_header(const dp_journal *journal) {
    journal_header h;
    uint64_t size = journal->file.scratch.size;
    if (size < sizeof h)
        return true;
    return dp_append_file_read(&journal->file, 0, &h, sizeof h, NULL) == DOPPEL_OK &&
           !memcmp(h.magic, MAGIC, sizeof h.magic) && size - sizeof h < h.text_length;
}

doppel_status dp_journal_open(doppel_batch *batch, doppel_error *error) {
    const doppel_batch_options *o = &batch->settings.options;
    dp_append_file *file = &batch->journal.file;
    if (o->work && mkdir(o->work, 0777) && errno != EEXIST)
        return dp_fail_at(error, DOPPEL_ERROR_IO, o->work, 0, "cannot be created: %s", strerror(errno));
    DP_TRY(dp_append_file_open(file, o->work, "sketches", o->tmp, error));
    batch->journal.kept = o->work || o->keep_sketches;
    if (!batch->journal.kept)
        return DOPPEL_OK;
    if (o->resume && !has_no_header(&batch->journal))
        return resume(batch, error);
    if (o->resume)
        file->scratch.size = 0;
    if (!file->scratch.size)
        return write_header(batch, error);
    return dp_fail_at(
        error, DOPPEL_ERROR_USAGE, o->work, 0,
        "already contains a run: resume it (--resume), choose another folder, or remove this one to start again");
}

/* ---- files of sketches ---- */

bool dp_is_journal(const char *path) {
    char magic[8] = {0};
    struct stat known;
    if (stat(path, &known) || !S_ISREG(known.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic && !memcmp(magic, MAGIC, sizeof magic);
    if (fd >= 0)
        close(fd);
    return is;
}

bool dp_is_work(const char *path, char *file) {
    return snprintf(file, 4096, "%s/sketches", path) < 4096 && dp_is_journal(file);
}

/* Documents alone: they are this batch's own from now on. */
static doppel_status take_foreign(doppel_batch *batch, const char *entry, size_t length, uint64_t at) {
    dp_entry_prefix prefix;
    (void)at;
    memcpy(&prefix, entry, sizeof prefix);
    if (prefix.kind == DP_ENTRY_READING || prefix.kind == DP_ENTRY_END)
        batch->readings.foreign_open = prefix.kind == DP_ENTRY_READING;
    return prefix.kind == DP_ENTRY_DOCUMENT ? dp_readings_take(batch, entry, length, 0) : DOPPEL_OK;
}

static doppel_status import_all(doppel_batch *batch, const dp_append_file *file, const char *path,
                                doppel_error *error) {
    journal_replay r = {.batch = batch, .file = file, .end = file->scratch.size, .take = take_foreign};
    batch->readings.foreign_open = false;
    DP_TRY(check_settings(&r, path, false, error));
    DP_TRY(replay(&r));
    if (r.at != r.end)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is truncated or damaged at byte %llu",
                          (unsigned long long)r.at);
    if (batch->readings.foreign_open)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                          "belongs to an unfinished run: resume it first (--resume)");
    return DOPPEL_OK;
}

doppel_status dp_journal_import(doppel_batch *batch, const char *path, doppel_error *error) {
    dp_append_file file = {.scratch = {.open = true, .fd = open(path, O_RDONLY | O_CLOEXEC)}};
    struct stat known;
    if (file.scratch.fd < 0)
        return dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
    doppel_status status = DOPPEL_OK;
    if (fstat(file.scratch.fd, &known))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
    file.scratch.size = status == DOPPEL_OK ? (uint64_t)known.st_size : 0;
    snprintf(file.scratch.folder, sizeof file.scratch.folder, "%.200s", path);
    DP_THEN(status, import_all(batch, &file, path, error));
    dp_append_file_close(&file);
    return status;
}

static doppel_status save(doppel_batch *batch, const char *path, doppel_error *error) {
    const dp_append_file *from = &batch->journal.file;
    dp_newfile to;
    DP_TRY(dp_append_file_flush(&batch->journal.file, error));
    char *piece = malloc(PIECE);
    doppel_status status = piece ? dp_newfile_create(&to, path, error) : dp_no_memory(error);
    if (status != DOPPEL_OK) {
        free(piece);
        return status;
    }
    int reason = 0;
    for (uint64_t at = 0; at < from->scratch.size && !reason && status == DOPPEL_OK;) {
        uint64_t left = from->scratch.size - at;
        size_t length = left < PIECE ? (size_t)left : PIECE;
        status = dp_append_file_read(from, at, piece, length, error);
        ssize_t done = status == DOPPEL_OK ? write(to.number, piece, length) : 0;
        if (done < 0 && errno != EINTR)
            reason = errno;
        at += done > 0 ? (uint64_t)done : 0;
    }
    free(piece);
    doppel_status finished = dp_newfile_finish(&to, status == DOPPEL_OK ? reason : EIO, error);
    return status == DOPPEL_OK ? finished : status;
}

/* Reads once more what a batch has read. */
static doppel_status read_again(const doppel_batch *batch, doppel_batch *to, doppel_error *error) {
    to->readings.stdin_copy.kept = batch->readings.stdin_copy.kept;
    to->readings.stdin_copy.start = batch->readings.stdin_copy.start;
    for (size_t i = 0; i < batch->readings.count; i++) {
        const dp_reading *r = &batch->readings.reading[i];
        doppel_input_counts counts;
        DP_TRY(doppel_batch_read(to, (const char *const *)r->paths, r->count, r->known, &counts, error));
        if (counts.documents != r->counts.documents || counts.bytes != r->counts.bytes)
            return dp_inputs_changed(error);
    }
    return DOPPEL_OK;
}

/* A batch that did not keep its sketches makes them again. */
static doppel_status save_again(doppel_batch *batch, const char *path, doppel_error *error) {
    doppel_batch_options options = batch->settings.options;
    doppel_input_options input = batch->settings.input, known = batch->settings.known_input;
    doppel_batch *again;
    input.bad = known.bad = NULL; /* they were reported */
    input.unseen = known.unseen = NULL;
    input.strict = input.refuse_bad = known.strict = known.refuse_bad = false;
    options.keep_sketches = true;
    options.input = &input;
    options.known_input = &known;
    DP_TRY(doppel_batch_create(&options, &again, error));
    again->against = batch->against; /* a process opens an index folder once */
    doppel_status status = read_again(batch, again, error);
    DP_THEN(status, save(again, path, error));
    if (again->against == batch->against)
        again->against = NULL;
    doppel_batch_free(again);
    return status;
}

doppel_status doppel_batch_save(doppel_batch *batch, const char *path, doppel_error *error) {
    return batch->journal.kept ? save(batch, path, error) : save_again(batch, path, error);
}

/* ---- sketches as bytes ---- */

size_t doppel_batch_settings(const doppel_batch *batch, char *buffer, size_t room) {
    dp_buffer text = {0};
    size_t length = print_shaping(&batch->settings, &text) ? text.size : 0;
    if (length && room)
        memcpy(buffer, text.data, length < room ? length : room);
    dp_buffer_free(&text);
    return length;
}

doppel_status doppel_batch_get_sketches(doppel_batch *batch, doppel_status (*take)(doppel_slice entry, void *user),
                                        void *user, doppel_error *error) {
    const dp_append_file *file = &batch->journal.file;
    if (!batch->journal.kept)
        return dp_fail(error, DOPPEL_ERROR_USAGE, "the batch has kept no sketches: ask for keep_sketches");
    DP_TRY(dp_append_file_flush(&batch->journal.file, error));
    batch->readings.error = error;
    journal_replay r = {.batch = batch, .file = file, .end = file->scratch.size};
    dp_entry_prefix entry;
    doppel_status status = check_settings(&r, "sketches", false, error);
    for (doppel_status read = DOPPEL_OK; status == DOPPEL_OK && next_entry(&r, &entry, &read); r.at += entry.size) {
        if (entry.kind == DP_ENTRY_DOCUMENT)
            status = take((doppel_slice){r.bytes.data, (size_t)entry.size}, user);
        status = read == DOPPEL_OK ? status : read;
    }
    dp_buffer_free(&r.bytes);
    if (status == DOPPEL_OK && r.at != r.end)
        status = dp_fail(error, DOPPEL_ERROR_IO, "the sketches could not be read back");
    return status;
}

/* ---- the batch of a finished run ---- */

/* The value of a line `name=value`, which ends at a NUL once the lines are ended; empty when there is none. */
static char *value_of(char *text, const char *name) {
    size_t length = strlen(name);
    for (char *line = text; *line;) {
        size_t whole = strcspn(line, "\n");
        if (!strncmp(line, name, length) && line[length] == '=')
            return line + length + 1;
        line += whole + (line[whole] == '\n');
    }
    return text + strlen(text);
}

static uint64_t number_of(char *text, const char *name) {
    return strtoull(value_of(text, name), NULL, 10);
}

static void parse_keys(char *text, const char *of, doppel_input_options *input) {
    for (size_t k = 0; k < KEYS; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", of, key_names[k].name);
        *key_of(input, k) = value_of(text, name);
    }
}

/* A string of a text whose lines are ended; empty is none. */
static void end_string(const char **string) {
    *string = *string && **string ? *string : NULL;
}

/* Options from the text of settings, which they borrow from and which is changed; o->known_input is `known` when known
 * documents are read in a way of their own. */
static const char *parse(char *text, doppel_batch_options *o, doppel_input_options *input,
                         doppel_input_options *known) {
    /* All values are found before any line is ended. */
    const char *recipe = value_of(text, "recipe");
    o->keep = value_of(text, "keep");
    o->within = value_of(text, "within");
    o->across = value_of(text, "across");
    o->method = (doppel_method)number_of(text, "method");
    o->similarity = strtod(value_of(text, "similarity"), NULL);
    o->distance = (int)number_of(text, "distance");
    o->distance_zero = o->distance == 0;
    o->bands = (int)number_of(text, "bands");
    o->rows = (int)number_of(text, "rows");
    o->min_words = number_of(text, "min_words");
    o->boilerplate = strtod(value_of(text, "boilerplate"), NULL);
    o->by = (unsigned)number_of(text, "by");
    o->url_without = (unsigned)number_of(text, "url_without");
    o->content = !strncmp(value_of(text, "content"), "all", 3) ? DOPPEL_CONTENT_ALL : DOPPEL_CONTENT_MAIN;
    o->link_any = *value_of(text, "link_any") == '1';
    o->limit = number_of(text, "limit");
    o->only_contained = strtod(value_of(text, "only_contained"), NULL);
    o->keep_copies = number_of(text, "keep_copies");
    input->max_record = (size_t)number_of(text, "max_record");
    parse_keys(text, "", input);
    bool has_known = strstr(text, "\nknown_id_key=");
    parse_keys(text, has_known ? "known_" : "", known);
    for (size_t i = 0, length = strlen(text); i < length; i++)
        if (text[i] == '\n')
            text[i] = 0;
    for (size_t k = 0; k < KEYS; k++) {
        end_string(key_of(input, k));
        end_string(key_of(known, k));
    }
    end_string(&o->keep);
    end_string(&o->within);
    end_string(&o->across);
    o->known_input = has_known ? known : NULL;
    return recipe;
}

/* The settings of the journal in the folder of `work`. */
static doppel_status read_settings(const char *work, dp_buffer *text, doppel_error *error) {
    dp_append_file file;
    journal_header h;
    char path[4096];
    if (!dp_is_work(work, path))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, work, 0,
                          "contains no run: make one with doppel dedup --work, or cluster --work");
    doppel_status status = dp_append_file_open(&file, work, "sketches", NULL, error);
    DP_THEN(status, read_header(&file, path, &h, text, error));
    dp_append_file_close(&file);
    return status;
}

/* Whether everything was read; moves past it. */
static doppel_status check_complete(doppel_batch *batch, doppel_error *error) {
    dp_readings *r = &batch->readings;
    while (r->at < r->count && r->reading[r->at].complete)
        r->at++;
    if (r->at && r->at == r->count)
        return DOPPEL_OK;
    return dp_fail_at(error, DOPPEL_ERROR_STORE, batch->settings.options.work, 0,
                      "the run was not finished: resume it first (--resume)");
}

doppel_status doppel_batch_open(const char *work, const doppel_input_options *input, doppel_batch **opened,
                                doppel_error *error) {
    dp_buffer text = {0};
    doppel_input_options reading = {0}, known;
    doppel_batch_options options = {.size = sizeof options, .work = work, .resume = true, .input = &reading};
    doppel_recipe *recipe = NULL;
    *opened = NULL;
    if (input)
        dp_copy_options(&reading, input, sizeof reading);
    reading.size = sizeof reading;
    known = reading;
    doppel_status status = read_settings(work, &text, error);
    if (status == DOPPEL_OK)
        status = doppel_recipe_parse(parse(text.data, &options, &reading, &known), NULL, &recipe, error);
    options.recipe = recipe;
    DP_THEN(status, doppel_batch_create(&options, opened, error));
    if (status != DOPPEL_OK) {
        doppel_recipe_free(recipe);
        dp_buffer_free(&text);
        return status;
    }
    (*opened)->own_recipe = recipe;
    (*opened)->own_text = text;
    if ((status = check_complete(*opened, error)) != DOPPEL_OK) {
        doppel_batch_free(*opened);
        *opened = NULL;
    }
    return status;
}

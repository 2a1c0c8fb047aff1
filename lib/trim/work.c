/* work.c - the result of a run, kept in its work folder: `trim`, which is complete or absent, and `trim-spans`, the
 * spans. dp_trim_work_open says whether there is such a run; dp_trim_work_save keeps one; doppel_trim_open reopens one.
 *
 * `trim` is a head, the texts of the options, words, check and cuts_at of each document, the most repeated windows, and
 * a checksum of all that. How the inputs were cut into work is not kept: they are counted again. */
#include "trim/trim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static const char magic[8] = "DPLTRIM";
enum { VERSION = 2 };

/* Numbers of the options, in the order of the list in `numbers`. */
enum { NUMBERS = 10 };
/* Texts of the options, then the paths of `against`, then the others; each ends with a NUL, "" is NULL. Those from
 * TEXT_KEYS on are the keys and the format of the inputs, then those of `against`. */
enum { TEXT_RECIPE, TEXT_STOP, TEXT_KEEP, TEXT_WITHIN, TEXT_ACROSS, TEXT_KEYS };
enum { KEY_ID, KEY_URL, KEY_TITLE, KEY_TEXT, KEY_HTML, KEY_FORMAT, KEYS };
enum { TEXTS = TEXT_KEYS + 2 * KEYS };

typedef struct trim_head {
    char magic[8];
    uint64_t version;
    uint64_t number[NUMBERS];
    double drop_share;
    uint64_t path_count[2], text_length;
    doppel_input_counts counts[2];
    uint64_t top_count, spans_length, spans_check;
    uint64_t units, repeated, values, words, short_against;
} trim_head;

static void get_numbers(const dp_trim_settings *s, uint64_t number[NUMBERS]) {
    const doppel_trim_options *o = &s->options;
    const uint64_t numbers[NUMBERS] = {
        o->unit,      o->run,        o->words, o->min_words,         o->min_count,
        o->cut_first, o->drop_below, o->drop,  (uint64_t)o->content, s->input.max_record};
    memcpy(number, numbers, sizeof numbers);
}

static bool add_text(dp_buffer *to, doppel_slice text) {
    return dp_buffer_add(to, text.data, text.length) && dp_buffer_add(to, "", 1);
}

static doppel_slice text_or_empty(const char *text) {
    return doppel_slice_of(text ? text : "");
}

static bool add_keys(dp_buffer *to, const doppel_input_options *input) {
    const char *const keys[KEYS] = {
        [KEY_ID] = input->id_key,     [KEY_URL] = input->url_key,   [KEY_TITLE] = input->title_key,
        [KEY_TEXT] = input->text_key, [KEY_HTML] = input->html_key, [KEY_FORMAT] = input->format};
    bool added = true;
    for (size_t i = 0; i < KEYS && added; i++)
        added = add_text(to, text_or_empty(keys[i]));
    return added;
}

static bool add_texts(const doppel_trim *trim, dp_buffer *to) {
    const dp_trim_settings *s = &trim->settings;
    const doppel_trim_options *o = &s->options;
    const dp_words_options *words = &s->recipe->text;
    bool added = add_text(to, doppel_slice_of(doppel_recipe_text(s->recipe))) &&
                 add_text(to, (doppel_slice){words->stop_words, words->stop_words_length}) &&
                 add_text(to, text_or_empty(o->keep)) && add_text(to, text_or_empty(o->within)) &&
                 add_text(to, text_or_empty(o->across)) && add_keys(to, &s->input) && add_keys(to, &s->against_input);
    for (size_t r = 0; r < 2; r++)
        for (size_t i = 0; i < trim->reading[r].count && added; i++)
            added = dp_buffer_add(to, trim->reading[r].paths[i], strlen(trim->reading[r].paths[i]) + 1);
    return added;
}

static void path_of(const char *work, const char *name, char path[4096]) {
    snprintf(path, 4096, "%s/%s", work, name);
}

/* ---- saving ---- */

static doppel_status check_spans(const doppel_trim *trim, uint64_t length, uint64_t *check, doppel_error *error) {
    enum { PIECE = 1 << 20 };
    XXH3_state_t *state = XXH3_createState();
    char *piece = malloc(PIECE);
    doppel_status status = state && piece ? DOPPEL_OK : dp_no_memory(error);
    if (status == DOPPEL_OK)
        XXH3_64bits_reset(state);
    for (uint64_t at = 0; at < length && status == DOPPEL_OK; at += PIECE) {
        size_t size = length - at < PIECE ? (size_t)(length - at) : PIECE;
        status = dp_append_file_read(&trim->spans, at, piece, size, error);
        if (status == DOPPEL_OK)
            XXH3_64bits_update(state, piece, size);
    }
    *check = status == DOPPEL_OK ? XXH3_64bits_digest(state) : 0;
    XXH3_freeState(state);
    free(piece);
    return status;
}

static bool make_file(const doppel_trim *trim, trim_head *head, dp_buffer *to) {
    const dp_trim_documents *d = &trim->documents;
    dp_buffer texts = {0};
    bool made = add_texts(trim, &texts);
    head->text_length = texts.size;
    made = made && dp_buffer_add(to, head, sizeof *head) && dp_buffer_add(to, texts.data, texts.size) &&
           dp_buffer_add(to, d->words, (size_t)d->count * sizeof *d->words) &&
           dp_buffer_add(to, d->check, (size_t)d->count * sizeof *d->check) &&
           dp_buffer_add(to, d->cuts_at, (size_t)d->count * sizeof *d->cuts_at) &&
           dp_buffer_add(to, trim->tops.top, trim->tops.count * sizeof *trim->tops.top);
    uint64_t check = made ? XXH3_64bits(to->data, to->size) : 0;
    dp_buffer_free(&texts);
    return made && dp_buffer_add(to, &check, sizeof check);
}

static doppel_status write_file(const char *path, const dp_buffer *bytes, doppel_error *error) {
    dp_newfile file;
    int reason = 0;
    DP_TRY(dp_newfile_create(&file, path, error));
    for (size_t at = 0; at < bytes->size && !reason;) {
        ssize_t done = write(file.number, bytes->data + at, bytes->size - at);
        if (done < 0 && errno != EINTR)
            reason = errno;
        at += done > 0 ? (size_t)done : 0;
    }
    return dp_newfile_finish(&file, reason, error);
}

doppel_status dp_trim_work_save(doppel_trim *trim, doppel_error *error) {
    const doppel_trim_stats *stats = &trim->stats;
    trim_head head;
    dp_buffer bytes = {0};
    char path[4096];
    if (!trim->settings.options.work)
        return DOPPEL_OK;
    memset(&head, 0, sizeof head);
    memcpy(head.magic, magic, sizeof head.magic);
    head.version = VERSION;
    get_numbers(&trim->settings, head.number);
    head.drop_share = trim->settings.options.drop_share;
    for (size_t i = 0; i < 2; i++) {
        head.path_count[i] = trim->reading[i].count;
        head.counts[i] = trim->reading[i].counts;
    }
    head.top_count = trim->tops.count;
    head.spans_length = dp_append_file_size(&trim->spans);
    head.units = stats->units;
    head.repeated = stats->repeated;
    head.values = stats->values;
    head.words = stats->words;
    head.short_against = stats->short_against;
    DP_TRY(check_spans(trim, head.spans_length, &head.spans_check, error));
    path_of(trim->settings.options.work, "trim", path);
    doppel_status status = make_file(trim, &head, &bytes) ? DOPPEL_OK : dp_no_memory(error);
    DP_THEN(status, write_file(path, &bytes, error));
    dp_buffer_free(&bytes);
    return status;
}

/* ---- loading ---- */

static doppel_status damaged(const char *path, doppel_error *error) {
    return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is damaged, or was made by another version: start again");
}

static doppel_status read_file(const char *path, dp_buffer *bytes, doppel_error *error) {
    struct stat known;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    doppel_status status = DOPPEL_OK;
    if (fd < 0 || fstat(fd, &known))
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "cannot be opened: %s", strerror(errno));
    else if (!dp_reserve(&bytes->data, &bytes->capacity, (size_t)known.st_size + 1, 1))
        status = dp_no_memory(error);
    while (status == DOPPEL_OK && bytes->size < (size_t)known.st_size) {
        ssize_t got = read(fd, bytes->data + bytes->size, (size_t)known.st_size - bytes->size);
        if (got <= 0)
            break;
        bytes->size += (size_t)got;
    }
    if (fd >= 0)
        close(fd);
    return status;
}

/* Reads `trim`, and checks that it is whole. */
static doppel_status read_trim(const char *path, dp_buffer *bytes, trim_head *head, doppel_error *error) {
    uint64_t check;
    DP_TRY(read_file(path, bytes, error));
    if (bytes->size < sizeof *head + sizeof check)
        return damaged(path, error);
    size_t size = bytes->size - sizeof check;
    memcpy(head, bytes->data, sizeof *head);
    memcpy(&check, bytes->data + size, sizeof check);
    bool fits = !memcmp(head->magic, magic, sizeof magic) && head->version == VERSION &&
                check == XXH3_64bits(bytes->data, size);
    uint64_t documents = head->counts[0].documents + head->counts[1].documents, texts = 0;
    if (!fits || documents >= UINT32_MAX || head->top_count > DP_TRIM_TOPS || head->text_length > size ||
        size != sizeof *head + head->text_length + documents * 16 + head->top_count * sizeof(dp_trim_top))
        return damaged(path, error);
    for (size_t i = 0; i < head->text_length; i++)
        texts += !bytes->data[sizeof *head + i];
    return texts == TEXTS + head->path_count[0] + head->path_count[1] ? DOPPEL_OK : damaged(path, error);
}

/* Takes the columns of the documents, which have been counted, and the spans. */
static doppel_status take_columns(doppel_trim *trim, const dp_buffer *bytes, const trim_head *head, const char *path,
                                  doppel_error *error) {
    dp_trim_documents *d = &trim->documents;
    uint64_t check;
    for (size_t i = 0; i < 2; i++)
        if (head->counts[i].documents != trim->reading[i].counts.documents ||
            head->counts[i].bytes != trim->reading[i].counts.bytes)
            return dp_inputs_changed(error);
    const char *at = bytes->data + sizeof *head + head->text_length;
    size_t words = (size_t)d->count * sizeof *d->words, cuts = (size_t)d->count * sizeof *d->cuts_at;
    memcpy(d->words, at, words);
    memcpy(d->check, at + words, words);
    memcpy(d->cuts_at, at + 2 * words, cuts);
    memcpy(trim->tops.top, at + 2 * words + cuts, (size_t)head->top_count * sizeof *trim->tops.top);
    trim->tops.count = (size_t)head->top_count;
    trim->stats.units = head->units;
    trim->stats.repeated = head->repeated;
    trim->stats.values = head->values;
    trim->stats.words = head->words;
    trim->stats.short_against = head->short_against;
    if (dp_append_file_size(&trim->spans) != head->spans_length)
        return damaged(path, error);
    DP_TRY(check_spans(trim, head->spans_length, &check, error));
    return check == head->spans_check ? DOPPEL_OK : damaged(path, error);
}

/* Reads `trim`, and checks that it is of a run with the same options and paths. */
static doppel_status read_same(const doppel_trim *trim, const char *path, dp_buffer *bytes, trim_head *head,
                               doppel_error *error) {
    const doppel_trim_options *o = &trim->settings.options;
    dp_buffer texts = {0};
    uint64_t number[NUMBERS];
    get_numbers(&trim->settings, number);
    doppel_status status = read_trim(path, bytes, head, error);
    if (status == DOPPEL_OK && !add_texts(trim, &texts))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK &&
        (memcmp(number, head->number, sizeof number) || head->drop_share != o->drop_share ||
         texts.size != head->text_length || memcmp(texts.data, bytes->data + sizeof *head, texts.size) ||
         head->path_count[0] != trim->reading[0].count))
        status = dp_fail_at(error, DOPPEL_ERROR_USAGE, o->work, 0,
                            "contains a run with other options or inputs: give the same, or choose another folder");
    dp_buffer_free(&texts);
    return status;
}

doppel_status dp_trim_work_load(doppel_trim *trim, doppel_error *error) {
    char path[4096];
    dp_buffer bytes = {0};
    trim_head head;
    path_of(trim->settings.options.work, "trim", path);
    doppel_status status = read_same(trim, path, &bytes, &head, error);
    DP_THEN(status, take_columns(trim, &bytes, &head, path, error));
    dp_buffer_free(&bytes);
    return status;
}

doppel_status dp_trim_work_open(doppel_trim *trim, bool *found, doppel_error *error) {
    const doppel_trim_options *o = &trim->settings.options;
    char path[4096];
    struct stat known;
    *found = false;
    if (!o->work)
        return dp_append_file_open(&trim->spans, NULL, NULL, o->tmp, error);
    for (size_t i = 0; i < 2; i++)
        if (dp_has_stdin(&(dp_input_paths){(const char *const *)trim->reading[i].paths, trim->reading[i].count}))
            return dp_fail(error, DOPPEL_ERROR_USAGE,
                           "a run that reads stdin cannot be resumed: write it to a file, or do without a work folder");
    if (mkdir(o->work, 0777) && errno != EEXIST)
        return dp_fail_at(error, DOPPEL_ERROR_IO, o->work, 0, "cannot be created: %s", strerror(errno));
    path_of(o->work, "trim", path);
    *found = !stat(path, &known);
    if (*found && !o->resume)
        return dp_fail_at(
            error, DOPPEL_ERROR_USAGE, o->work, 0,
            "already contains a run: resume it (--resume), choose another folder, or remove this one to start again");
    if (*found) { /* before anything is read for it */
        dp_buffer bytes = {0};
        trim_head head;
        doppel_status status = read_same(trim, path, &bytes, &head, error);
        dp_buffer_free(&bytes);
        DP_TRY(status);
    }
    DP_TRY(dp_append_file_open(&trim->spans, o->work, "trim-spans", NULL, error));
    /* The output of a stopped run is written again. */
    if (!*found)
        trim->spans.scratch.size = 0;
    return DOPPEL_OK;
}

/* ---- a run that is opened again ---- */

/* The texts of the options; the paths follow. */
static const char *take_texts(const dp_buffer *own, const char *text[TEXTS]) {
    const char *at = own->data;
    for (size_t i = 0; i < TEXTS; i++, at += strlen(at) + 1)
        text[i] = *at ? at : NULL;
    return at;
}

static void set_reading(doppel_input_options *input, const doppel_input_options *given, uint64_t max_record,
                        const char *const key[KEYS]) {
    if (given)
        dp_copy_options(input, given, sizeof *input);
    input->max_record = (size_t)max_record;
    input->id_key = key[KEY_ID];
    input->url_key = key[KEY_URL];
    input->title_key = key[KEY_TITLE];
    input->text_key = key[KEY_TEXT];
    input->html_key = key[KEY_HTML];
    input->format = key[KEY_FORMAT];
}

/* input[0] is how to read the documents, input[1] those of `against`. */
static doppel_status open_run(doppel_trim *trim, const trim_head *head, const doppel_input_options *given,
                              doppel_trim_options *options, doppel_input_options input[2], doppel_error *error) {
    const char *text[TEXTS];
    take_texts(&trim->own_text, text);
    const uint64_t *n = head->number;
    const doppel_recipe_parts parts = {.size = sizeof parts, .stop_words = text_or_empty(text[TEXT_STOP])};
    for (size_t i = 0; i < 2; i++)
        set_reading(&input[i], given, n[9], text + TEXT_KEYS + i * KEYS);
    DP_TRY(doppel_recipe_parse(text[TEXT_RECIPE], &parts, &trim->own_recipe, error));
    *options = (doppel_trim_options){.size = sizeof *options,
                                     .recipe = trim->own_recipe,
                                     .unit = (doppel_unit)n[0],
                                     .run = n[1],
                                     .words = n[2],
                                     .min_words = n[3],
                                     .min_count = n[4],
                                     .cut_first = n[5],
                                     .drop_below = n[6],
                                     .drop = n[7],
                                     .content = (doppel_content)n[8],
                                     .drop_share = head->drop_share,
                                     .keep = text[TEXT_KEEP],
                                     .within = text[TEXT_WITHIN],
                                     .across = text[TEXT_ACROSS],
                                     .input = &input[0],
                                     .against_input = &input[1]};
    return DOPPEL_OK;
}

static const char **list_paths(const char *at, size_t count) {
    const char **paths = malloc((count + 1) * sizeof *paths);
    for (size_t i = 0; paths && i < count; i++, at += strlen(at) + 1)
        paths[i] = at;
    return paths;
}

doppel_status doppel_trim_open(const char *work, const doppel_input_options *given, doppel_trim **made,
                               doppel_error *error) {
    char path[4096];
    dp_buffer bytes = {0};
    trim_head head;
    doppel_trim_options options = {.size = sizeof options};
    doppel_input_options input[2] = {{.size = sizeof *input}, {.size = sizeof *input}};
    const char *text[TEXTS], **paths = NULL;
    doppel_trim *trim = calloc(1, sizeof *trim);
    *made = NULL;
    if (!trim)
        return dp_no_memory(error);
    pthread_mutex_init(&trim->lock, NULL);
    path_of(work, "trim", path);
    doppel_status status = read_trim(path, &bytes, &head, error);
    /* A last NUL, and one for each text and path that should be there. */
    if (status == DOPPEL_OK && (!dp_buffer_add(&trim->own_text, bytes.data + sizeof head, (size_t)head.text_length) ||
                                !dp_buffer_add(&trim->own_text, work, strlen(work) + 1)))
        status = dp_no_memory(error);
    DP_THEN(status, open_run(trim, &head, given, &options, input, error));
    if (status == DOPPEL_OK &&
        !(paths = list_paths(take_texts(&trim->own_text, text), (size_t)(head.path_count[0] + head.path_count[1]))))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        options.against = paths;
        options.against_count = (size_t)head.path_count[0];
        if (options.against_count)
            options.min_count = 0;
        options.work = trim->own_text.data + head.text_length;
        options.resume = true;
    }
    DP_THEN(status, dp_trim_start(trim, paths + head.path_count[0], (size_t)head.path_count[1], &options, error));
    free(paths);
    dp_buffer_free(&bytes);
    if (status == DOPPEL_OK)
        *made = trim;
    else
        doppel_trim_free(trim);
    return status;
}

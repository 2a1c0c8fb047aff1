/* journal.c - the journal: begun, appended to, read back; saved as a file of sketches, and taken from one.
 *
 * Read back after the process was killed, it is good up to the first entry that is not whole; what follows is cut off,
 * and reading goes on behind the last document. */
#include "batch/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define DP_JOURNAL_MAGIC "DOPPELSK"
#define DP_JOURNAL_VERSION 2

typedef struct dp_journal_header {
    char magic[8];
    uint32_t version, text_length;
    uint64_t shaping; /* bytes of the text that shape sketches */
    uint64_t check;   /* XXH3 of the text */
} dp_journal_header;

/* A journal that is read back: check, then run. */
typedef struct dp_replay {
    doppel_batch *batch;
    const dp_spill *file;
    uint64_t at, end; /* of the entries that are left */
    dp_buffer bytes;
    /* What to do with a whole entry. */
    doppel_status (*take)(doppel_batch *batch, const char *entry, size_t length, uint64_t at);
} dp_replay;

uint64_t dp_entry_check(dp_entry_kind kind, const char *head, size_t head_length, const char *rest,
                        size_t rest_length) {
    uint64_t first = XXH3_64bits_withSeed(head, head_length, (uint64_t)kind);
    return rest_length ? XXH3_64bits_withSeed(rest, rest_length, first) : first;
}

doppel_status dp_journal_add(doppel_batch *batch, dp_entry_kind kind, const doppel_slice *part, size_t parts) {
    dp_entry entry = {.size = sizeof entry, .kind = kind};
    for (size_t i = 0; i < parts; i++)
        entry.size += part[i].length;
    entry.check = dp_entry_check(kind, part[0].data, part[0].length, parts > 1 ? part[1].data : NULL,
                                 parts > 1 ? part[1].length : 0);
    doppel_status status = dp_spill_add(&batch->journal, &entry, sizeof entry, batch->last_error);
    for (size_t i = 0; i < parts && status == DOPPEL_OK; i++)
        status = dp_spill_add(&batch->journal, part[i].data, part[i].length, batch->last_error);
    return status;
}

/* ---- reading back ---- */

bool dp_is_journal(const char *path) {
    char magic[8] = {0};
    struct stat known;
    if (stat(path, &known) || !S_ISREG(known.st_mode))
        return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
              !memcmp(magic, DP_JOURNAL_MAGIC, sizeof magic);
    if (fd >= 0)
        close(fd);
    return is;
}

bool dp_is_work(const char *path, char *file) {
    return snprintf(file, 4096, "%s/sketches", path) < 4096 && dp_is_journal(file);
}

/* How the parts of an entry are cut for its check. */
static size_t head_length(const dp_entry *entry) {
    size_t body = (size_t)entry->size - sizeof *entry;
    size_t head = entry->kind == DP_ENTRY_DOCUMENT ? sizeof(dp_sketched)
                  : entry->kind == DP_ENTRY_FILE   ? sizeof(dp_seen_file)
                                                   : body;
    return head < body ? head : body;
}

/* Whether the parts that a document says it has make up the entry. */
static bool is_document(const dp_entry *entry, const char *bytes) {
    dp_sketched s;
    if (entry->size < sizeof *entry + sizeof s)
        return false;
    memcpy(&s, bytes + sizeof *entry, sizeof s);
    uint64_t named = (uint64_t)s.doc.id_length + s.title_length + s.found.id_length;
    return s.keys <= DP_MOST_BANDS && s.found.kind < DP_FOUND_KINDS && !s.found.id_length == !s.found.kind &&
           entry->size == sizeof *entry + sizeof s + named + s.keys * sizeof(uint32_t) +
                              (uint64_t)s.doc.set_count * sizeof(uint64_t);
}

/* Whether a whole and sound entry stands at the beginning of the bytes. */
static bool is_sound(const char *bytes, const dp_entry *entry) {
    const char *body = bytes + sizeof *entry;
    size_t length = (size_t)entry->size - sizeof *entry, head = head_length(entry);
    if (entry->kind < DP_ENTRY_READING || entry->kind > DP_ENTRY_END ||
        (entry->kind == DP_ENTRY_DOCUMENT && !is_document(entry, bytes)) ||
        (entry->kind == DP_ENTRY_FILE && length < sizeof(dp_seen_file)) ||
        (entry->kind == DP_ENTRY_END && length != sizeof(doppel_input_counts)) ||
        (entry->kind == DP_ENTRY_READING && (length < 9 || body[length - 1])))
        return false;
    return entry->check == dp_entry_check((dp_entry_kind)entry->kind, body, head, body + head, length - head);
}

/* Reads the next entry into `bytes`; false at the end, or where there is none that is sound. */
static bool next_entry(dp_replay *r, dp_entry *entry, doppel_status *status) {
    if (r->end - r->at < sizeof *entry)
        return false;
    if ((*status = dp_spill_read(r->file, r->at, entry, sizeof *entry, r->batch->last_error)) != DOPPEL_OK)
        return false;
    if (entry->size < sizeof *entry || entry->size > r->end - r->at)
        return false;
    if (!dp_reserve(&r->bytes.data, &r->bytes.capacity, (size_t)entry->size, 1)) {
        *status = dp_no_memory(r->batch->last_error);
        return false;
    }
    *status = dp_spill_read(r->file, r->at, r->bytes.data, (size_t)entry->size, r->batch->last_error);
    return *status == DOPPEL_OK && is_sound(r->bytes.data, entry);
}

/* Takes entries up to the first that is not whole and sound: `at` is where that stands. */
static doppel_status replay_run(dp_replay *r) {
    doppel_status status = DOPPEL_OK;
    dp_entry entry;
    while (status == DOPPEL_OK && next_entry(r, &entry, &status)) {
        status = r->take(r->batch, r->bytes.data, (size_t)entry.size, r->at);
        r->at += entry.size;
        if (status == DOPPEL_OK && dp_stopped(r->batch->input.stop))
            status = dp_fail(r->batch->last_error, DOPPEL_ERROR_INTERRUPTED, "interrupted");
    }
    dp_buffer_free(&r->bytes);
    return status;
}

/* Reads the header; the text, without its check, goes to `text`. */
static doppel_status read_header(const dp_spill *file, const char *path, dp_journal_header *h, dp_buffer *text,
                                 doppel_error *error) {
    if (file->file.size < sizeof *h || dp_spill_read(file, 0, h, sizeof *h, NULL) != DOPPEL_OK ||
        memcmp(h->magic, DP_JOURNAL_MAGIC, sizeof h->magic) != 0)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is no file of sketches");
    if (h->version != DP_JOURNAL_VERSION)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "has version %u of sketches; this is version %u",
                          h->version, DP_JOURNAL_VERSION);
    if (h->text_length > file->file.size - sizeof *h || h->shaping > h->text_length ||
        !dp_reserve(&text->data, &text->capacity, h->text_length + 1U, 1) ||
        dp_spill_read(file, sizeof *h, text->data, h->text_length, NULL) != DOPPEL_OK ||
        XXH3_64bits(text->data, h->text_length) != h->check)
        return dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is damaged: its header is not what was written");
    text->size = h->text_length;
    text->data[text->size] = 0;
    return DOPPEL_OK;
}

/* The first line in which two texts differ, for a message. */
static void tell_difference(const char *path, const char *theirs, const char *ours, doppel_error *error) {
    while (*theirs && *ours) {
        size_t a = strcspn(theirs, "\n"), b = strcspn(ours, "\n");
        if (a != b || memcmp(theirs, ours, a) != 0) {
            dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0,
                       "was made with %.*s, and this run has %.*s%s: give the same options", (int)(a < 150 ? a : 150),
                       theirs, (int)(b < 150 ? b : 150), ours,
                       strncmp(ours, "bands=", 6) && strncmp(ours, "rows=", 5) ? ""
                                                                               : ", which follow from the similarity");
            return;
        }
        theirs += a + (theirs[a] == '\n');
        ours += b + (ours[b] == '\n');
    }
    dp_fail_at(error, DOPPEL_ERROR_USAGE, path, 0, "was made with other options");
}

/* Whether a journal was made with options like those of the batch; `all`, or those that shape sketches. */
static doppel_status replay_check(dp_replay *r, const char *path, bool all, doppel_error *error) {
    dp_journal_header h;
    dp_buffer theirs = {0}, ours = {0};
    size_t shaping;
    doppel_status status = read_header(r->file, path, &h, &theirs, error);
    if (status == DOPPEL_OK && (!dp_options_print(r->batch, &ours, &shaping) || !dp_buffer_add(&ours, "", 1)))
        status = dp_no_memory(error);
    if (status == DOPPEL_OK) {
        size_t length = all ? h.text_length : (size_t)h.shaping, own = all ? ours.size - 1 : shaping;
        if (length != own || memcmp(theirs.data, ours.data, own) != 0) {
            tell_difference(path, theirs.data, ours.data, error);
            status = DOPPEL_ERROR_USAGE;
        }
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
    if (!dp_options_print(batch, &text, &shaping)) {
        dp_buffer_free(&text);
        return dp_no_memory(error);
    }
    dp_journal_header h = {.version = DP_JOURNAL_VERSION, .text_length = (uint32_t)text.size, .shaping = shaping};
    memcpy(h.magic, DP_JOURNAL_MAGIC, sizeof h.magic);
    h.check = XXH3_64bits(text.data, text.size);
    doppel_status status = dp_spill_add(&batch->journal, &h, sizeof h, error);
    if (status == DOPPEL_OK)
        status = dp_spill_add(&batch->journal, text.data, text.size, error);
    batch->header = sizeof h + text.size;
    dp_buffer_free(&text);
    return status;
}

/* Takes what the journal has, and cuts off what is not whole. */
static doppel_status go_on(doppel_batch *batch, doppel_error *error) {
    char path[4096];
    snprintf(path, sizeof path, "%s/sketches", batch->options.work);
    dp_replay r = {.batch = batch, .file = &batch->journal, .end = batch->journal.file.size, .take = dp_note_entries};
    doppel_status status = replay_check(&r, path, true, error);
    if (status != DOPPEL_OK)
        return status;
    batch->header = r.at;
    batch->replaying = true;
    batch->last_error = error;
    status = replay_run(&r);
    batch->replaying = false;
    if (status == DOPPEL_OK && ftruncate(batch->journal.file.fd, (off_t)r.at))
        status = dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be cut: %s", strerror(errno));
    batch->journal.file.size = r.at;
    return status;
}

/* Whether the journal of a run that was stopped at its very beginning has not even a header. */
static bool is_stub(const doppel_batch *batch) {
    dp_journal_header h;
    uint64_t size = batch->journal.file.size;
    if (size < sizeof h)
        return true;
    return dp_spill_read(&batch->journal, 0, &h, sizeof h, NULL) == DOPPEL_OK &&
           !memcmp(h.magic, DP_JOURNAL_MAGIC, sizeof h.magic) && size - sizeof h < h.text_length;
}

doppel_status dp_journal_open(doppel_batch *batch, doppel_error *error) {
    const doppel_batch_options *o = &batch->options;
    if (o->work && mkdir(o->work, 0777) && errno != EEXIST)
        return dp_fail_at(error, DOPPEL_ERROR_IO, o->work, 0, "cannot be made: %s", strerror(errno));
    doppel_status status = dp_spill_open(&batch->journal, o->work, "sketches", o->tmp, error);
    if (status != DOPPEL_OK)
        return status;
    if (o->resume && !is_stub(batch))
        return go_on(batch, error);
    if (o->resume)
        batch->journal.file.size = 0;
    if (!batch->journal.file.size)
        return write_header(batch, error);
    return dp_fail_at(error, DOPPEL_ERROR_USAGE, o->work, 0,
                      "holds a run already: go on with it (--resume), or choose another folder");
}

doppel_status dp_journal_options(const char *work, dp_buffer *text, doppel_error *error) {
    dp_spill file;
    dp_journal_header h;
    char path[4096];
    snprintf(path, sizeof path, "%s/sketches", work);
    if (!dp_is_journal(path))
        return dp_fail_at(error, DOPPEL_ERROR_STORE, work, 0,
                          "holds no run: make one with doppel dedup --work, or cluster --work");
    doppel_status status = dp_spill_open(&file, work, "sketches", NULL, error);
    if (status == DOPPEL_OK)
        status = read_header(&file, path, &h, text, error);
    dp_spill_close(&file);
    return status;
}

/* ---- files of sketches: saved by one batch, taken by another ---- */

/* Documents alone: they are this batch's own from now on. */
static doppel_status take_foreign(doppel_batch *batch, const char *entry, size_t length, uint64_t at) {
    dp_entry head;
    (void)at;
    memcpy(&head, entry, sizeof head);
    if (head.kind == DP_ENTRY_READING || head.kind == DP_ENTRY_END)
        batch->foreign_open = head.kind == DP_ENTRY_READING;
    return head.kind == DP_ENTRY_DOCUMENT ? dp_note_entries(batch, entry, length, 0) : DOPPEL_OK;
}

doppel_status dp_journal_take(doppel_batch *batch, const char *path, doppel_error *error) {
    batch->foreign_open = false;
    dp_spill file = {.file = {.open = true, .fd = open(path, O_RDONLY | O_CLOEXEC)}};
    struct stat known;
    if (file.file.fd < 0 || fstat(file.file.fd, &known)) {
        doppel_status failed = dp_fail_at(error, DOPPEL_ERROR_IO, path, 0, "cannot be opened: %s", strerror(errno));
        if (file.file.fd >= 0)
            close(file.file.fd);
        return failed;
    }
    file.file.size = (uint64_t)known.st_size;
    snprintf(file.file.folder, sizeof file.file.folder, "%.200s", path);
    dp_replay r = {.batch = batch, .file = &file, .end = file.file.size, .take = take_foreign};
    doppel_status status = replay_check(&r, path, false, error);
    if (status == DOPPEL_OK && (status = replay_run(&r)) == DOPPEL_OK && r.at != r.end)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0, "is cut short or was altered at byte %llu",
                            (unsigned long long)r.at);
    if (status == DOPPEL_OK && batch->foreign_open)
        status = dp_fail_at(error, DOPPEL_ERROR_STORE, path, 0,
                            "is of a run that was not finished: go on with it first (--resume)");
    dp_spill_close(&file);
    return status;
}

/* Copied at once. */
#define PIECE ((size_t)4 << 20)

doppel_status doppel_batch_save(doppel_batch *batch, const char *path, doppel_error *error) {
    dp_newfile to;
    char *piece = malloc(PIECE);
    doppel_status status = dp_spill_flush(&batch->journal, error);
    if (status != DOPPEL_OK || !piece || (status = dp_newfile_create(&to, path, error)) != DOPPEL_OK) {
        free(piece);
        return status == DOPPEL_OK ? dp_no_memory(error) : status;
    }
    int reason = 0;
    for (uint64_t at = 0; at < batch->journal.file.size && !reason && status == DOPPEL_OK;) {
        uint64_t left = batch->journal.file.size - at;
        size_t length = left < PIECE ? (size_t)left : PIECE;
        status = dp_spill_read(&batch->journal, at, piece, length, error);
        ssize_t done = status == DOPPEL_OK ? write(to.number, piece, length) : 0;
        if (done < 0 && errno != EINTR)
            reason = errno;
        at += done > 0 ? (uint64_t)done : 0;
    }
    free(piece);
    doppel_status finished = dp_newfile_finish(&to, status == DOPPEL_OK ? reason : EIO, error);
    return status == DOPPEL_OK ? finished : status;
}

/* read_file.c - POST /v1/records: the documents of a file, read as `doppel dedup` and `doppel compare` read it. Nothing
 * is stored: the file is in a folder of its own below that of temporary files while it is read.
 *
 * It is held in memory first, like any body (--max-body), then decompressed (--max-ratio) to at most as many bytes.
 * What a Word document or an archived page unpacks to has the same limits, and so have all texts of the answer
 * together. */
#include "server/files.h"
#include "server/runs.h"
#include "server/service.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_reading {
    request *request;
    const char *name; /* in place of the path */
    char *folder, *path;
    int file;
    uint64_t bytes; /* of the file, decompressed */
    char beginning[BODY_BEGINNING];
    size_t beginning_length;
    uint64_t limit, documents;
    bool more, too_large;
    run_unread_list unread;
    text_buffer id;
} file_reading;

/* ---- the file ---- */

/* Takes decompressed bytes. */
static bool take(void *user, const char *bytes, size_t length) {
    file_reading *f = user;
    uint64_t most = f->request->service->options.max_body;
    for (size_t i = 0; i < length && f->beginning_length < sizeof f->beginning; i++)
        f->beginning[f->beginning_length++] = bytes[i];
    if (length > most - f->bytes)
        request_problem(f->request, PROBLEM_TOO_LARGE, NULL, "a file may have at most %llu bytes, decompressed",
                        (unsigned long long)most);
    else if (!file_write(f->file, bytes, length))
        run_no_room(f->request, "the disk of the server has no room for this file");
    f->bytes += length;
    return !f->request->done;
}

/* Makes the file, of the extension that its name has; false: a problem is the answer. */
static bool make_file(file_reading *f) {
    request *r = f->request;
    char ending[RUN_ENDING];
    run_find_ending(request_choice(r, "name"), "", ending);
    f->folder = run_folder_path(&r->service->runs, r);
    if (!f->folder)
        return false;
    if (asprintf(&f->path, "%s/input%s", f->folder, ending) < 0) {
        f->path = NULL;
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    } else if (mkdir(f->folder, 0700) || (f->file = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0) {
        run_no_room(r, "the server cannot create a temporary file");
    }
    return !r->done;
}

/* Writes the file, decompressed; false: a problem is the answer. */
static bool write_file(file_reading *f) {
    request *r = f->request;
    body packed;
    body_result result = body_begin(&packed, body_coding_at(r->content.data, r->content.length));
    packed.max_ratio = r->service->options.max_ratio;
    if (result == BODY_FINE && r->content.length)
        result = body_add(&packed, r->content.data, r->content.length, take, f);
    if (!r->done)
        request_body_result(r, result, "file");
    if (!r->done && !body_whole(&packed))
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the compressed file is truncated");
    if (!r->done && packed.coding != CODING_PLAIN && body_coding_at(f->beginning, f->beginning_length) != CODING_PLAIN)
        request_problem(r, PROBLEM_TYPE, NULL, "the file is compressed twice: decompress it once");
    body_free(&packed);
    return !r->done;
}

/* ---- its documents ---- */

/* doppel_work.document */
static doppel_status take_document(void *user, const doppel_document *document, doppel_output *output) {
    file_reading *f = user;
    text_buffer *out = &f->request->answer;
    (void)output;
    f->more = f->documents == f->limit;
    f->too_large = out->length + document->text.length + document->html.length > f->request->service->options.max_body;
    if (f->more || f->too_large)
        return DOPPEL_ERROR_INTERRUPTED;
    text_put(out, f->documents++ ? ",{" : "{");
    text_member_string(out, "id",
                       run_replace_path(document->id, doppel_slice_of(f->path), doppel_slice_of(f->name), &f->id));
    text_member_string(out, "url", document->url);
    text_member_string(out, "title", document->title);
    text_member_string(out, "text", document->html.length ? doppel_slice_of(NULL) : document->text);
    text_member_string(out, "html", document->html.length ? document->html : doppel_slice_of(NULL));
    text_put(out, "}");
    return out->failed || f->id.failed ? DOPPEL_ERROR_MEMORY : DOPPEL_OK;
}

/* doppel_input_options.bad */
static void note_unread(const doppel_error *what, void *user) {
    file_reading *f = user;
    run_unread_take(&f->unread, what, f->path, f->name);
}

static void fail(file_reading *f, doppel_status status, doppel_error *error) {
    request *r = f->request;
    run_rewrite_error(error, f->path, f->name);
    if (status == DOPPEL_ERROR_IO)
        run_no_room(r, "the disk of the server is full or cannot be read");
    else
        request_error(r, status, error);
}

static void answer(file_reading *f) {
    text_buffer *out = &f->request->answer;
    text_put(out, "]");
    text_member_bool(out, "more", f->more);
    text_member(out, "unread");
    text_put(out, "[");
    run_unread_write(out, &f->unread);
    text_put(out, "]}");
    request_answer(f->request, 200);
}

/* The file could not be opened, or read to its end: it is damaged, or there is no memory for it. */
static void refuse_unopened(file_reading *f) {
    const char *why = f->unread.count ? f->unread.item[0].why : "no memory";
    request_problem(f->request, strstr(why, "no memory") ? PROBLEM_NO_MEMORY : PROBLEM_BAD_DOCUMENT, NULL, "%s", why);
}

static void read_documents(file_reading *f) {
    request *r = f->request;
    const doppel_input_options reads = {.size = sizeof reads,
                                        .threads = 1,
                                        .max_record = run_max_record(f->bytes, r->service->options.max_ratio),
                                        .text_key = request_choice(r, "textKey"),
                                        .id_key = request_choice(r, "idKey"),
                                        .bad = note_unread,
                                        .user = f,
                                        .refuse_bad = true};
    const doppel_work work = {.user = f, .document = take_document};
    const char *path = f->path;
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    text_put(&r->answer, "{\"documents\":[");
    doppel_status status = doppel_input_run(&path, 1, &reads, &work, &counts, &error);
    if (f->too_large)
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "its texts have more than %llu bytes",
                        (unsigned long long)r->service->options.max_body);
    else if (status == DOPPEL_OK && counts.unopened && !f->documents)
        refuse_unopened(f);
    else if (status == DOPPEL_OK || f->more)
        answer(f);
    else
        fail(f, status, &error);
}

void handle_read_file(request *r) {
    file_reading f = {.request = r, .file = -1, .limit = (uint64_t)request_number(r, "limit")};
    const char *name = request_choice(r, "name");
    f.name = name ? name : "file";
    if (make_file(&f) && write_file(&f))
        read_documents(&f);
    if (f.file >= 0)
        close(f.file);
    if (f.folder)
        run_folder_remove(f.folder);
    run_unread_free(&f.unread);
    text_free(&f.id);
    free(f.folder);
    free(f.path);
}

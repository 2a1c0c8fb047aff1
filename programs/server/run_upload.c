/* run_upload.c - the file of a run as it arrives: decompressed here, where its size has limits, and written to the
 * folder of the run. What is compressed twice is refused, as the library would decompress it to any size. An archive of
 * several files is taken apart by run_archive.c. */
#include "server/files.h"
#include "server/runs.h"
#include "server/service.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    WORK_BYTES = 1 << 18 /* received before a worker is called */
};

typedef struct upload {
    file_run *run;
    text_buffer received;           /* not processed yet, compressed or not */
    bool coding_known;              /* its first bytes were examined */
    char beginning[BODY_BEGINNING]; /* of the file, decompressed */
    size_t beginning_length;
    archive *archive; /* NULL: it is one file */
} upload;

static void work(request *r);

bool upload_begin(request *r) {
    r->upload = calloc(1, sizeof *r->upload);
    if (!r->upload) {
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
        return false;
    }
    file_run *run = r->upload->run = runs_add(&r->service->runs, r);
    r->work = work;
    if (run && run->several && !(r->upload->archive = archive_create(r, run)))
        request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return run && !r->done;
}

/* Deletes the run of an upload that failed. */
static void give_up_run(upload *u) {
    runs *all = u->run->all;
    archive_free(u->archive); /* it has a file in the folder of the run */
    u->archive = NULL;
    pthread_mutex_lock(&all->lock);
    u->run->users--;
    run_delete(u->run);
    pthread_mutex_unlock(&all->lock);
    u->run = NULL;
}

void upload_free(request *r) {
    upload *u = r->upload;
    if (!u)
        return;
    if (u->run)
        give_up_run(u);
    archive_free(u->archive);
    text_free(&u->received);
    free(u);
    r->upload = NULL;
}

bool upload_receive(request *r, const char *bytes, size_t length) {
    text_add(&r->upload->received, bytes, length);
    return r->upload->received.failed || r->upload->received.length >= WORK_BYTES || run_is_stopped(r->upload->run);
}

/* Finds out how the file is compressed, whatever its name is. False: no memory. */
static bool begin_decompressing(request *r) {
    upload *u = r->upload;
    if (u->coding_known || !u->received.length)
        return true;
    u->coding_known = true;
    body_coding coding = body_coding_at(u->received.data, u->received.length);
    if (r->body.coding != CODING_PLAIN || coding == CODING_PLAIN)
        return true;
    body_free(&r->body);
    bool fine = body_begin(&r->body, coding) == BODY_FINE;
    r->body.max_ratio = r->service->options.max_ratio;
    return fine;
}

/* Why a file that begins like an archive of several files is refused; NULL: it does not begin so, or it has the name of
 * a Word document. */
static const char *refusal_of_archive(const file_run *run, const char *bytes, size_t length) {
    const char *name = strrchr(run->path, '.');
    if (name && !strcmp(name, ".docx"))
        return NULL;
    if (length >= 8 && !memcmp(bytes, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 8))
        return "the file is an old Office file: save a spreadsheet as CSV, and a text as .docx";
    if (length < 4 || memcmp(bytes, "PK\x03\x04", 4) != 0)
        return NULL;
    return "the file is a spreadsheet (.xlsx) or a ZIP archive: save the spreadsheet as CSV; unpack the archive, and "
           "send its files one by one; give a Word document a name that ends in .docx";
}

/* Whether the decompressed file is neither compressed itself nor an archive; else a problem is the answer. */
static bool is_plain(request *r, const char *bytes, size_t length) {
    upload *u = r->upload;
    while (u->beginning_length < sizeof u->beginning && length) {
        u->beginning[u->beginning_length++] = *bytes++;
        length--;
    }
    bool plain = body_coding_at(u->beginning, u->beginning_length) == CODING_PLAIN;
    const char *refusal = plain ? refusal_of_archive(u->run, u->beginning, u->beginning_length) : NULL;
    if (!plain)
        request_problem(r, PROBLEM_TYPE, NULL, "the file is compressed twice: decompress it once");
    else if (refusal)
        request_problem(r, PROBLEM_TYPE, NULL, "%s", refusal);
    return plain && !refusal;
}

bool upload_was_deleted(request *r) {
    request_problem(r, PROBLEM_NO_RUN, NULL, "the run was deleted while its file arrived");
    return false;
}

/* Takes decompressed bytes. */
static bool take(void *user, const char *bytes, size_t length) {
    request *r = user;
    file_run *run = r->upload->run;
    uint64_t most = r->service->options.max_run;
    if (r->upload->archive)
        return archive_take(r->upload->archive, bytes, length);
    if (!is_plain(r, bytes, length))
        return false;
    if (length > most - run->received) {
        request_problem(r, PROBLEM_TOO_LARGE, NULL, "a file may have at most %llu bytes, decompressed",
                        (unsigned long long)most);
        return false;
    }
    if (!file_write(run->file, bytes, length)) {
        run_no_room(r, "the disk of the server has no room for this file");
        return false;
    }
    pthread_mutex_lock(&run->all->lock);
    run->received += length;
    bool deleted = run->deleted;
    pthread_cond_broadcast(&run->all->change);
    pthread_mutex_unlock(&run->all->lock);
    return !deleted || upload_was_deleted(r);
}

static void work(request *r) {
    upload *u = r->upload;
    body_result result = BODY_NO_MEMORY;
    if (!u->received.failed && begin_decompressing(r))
        result = body_add(&r->body, u->received.data, u->received.length, take, r);
    u->received.length = 0;
    if (!r->done && run_is_stopped(u->run))
        upload_was_deleted(r);
    if (!r->done)
        request_body_result(r, result, "file");
    if (r->done)
        give_up_run(u); /* now: the rest of the file may take long to arrive */
}

void upload_wait(request *r) {
    runs_wait_for_end(r->upload->run, r);
}

/* Answers with the requested file of a run that has ended, and deletes the run. */
static void answer_file(request *r) {
    file_run *run = r->upload->run;
    runs *all = run->all;
    pthread_mutex_lock(&all->lock);
    run_state state = run->state;
    bool deleted = run->deleted;
    pthread_mutex_unlock(&all->lock);
    if (deleted)
        request_problem(r, PROBLEM_NO_RUN, NULL, "the run was deleted before it was done");
    else if (state == RUN_FAILED)
        request_problem(r, PROBLEM_RUN_FAILED, NULL, "%s", run->why);
    else if (state != RUN_DONE)
        run_no_room(r, "the server is stopping: try again later");
    else
        run_answer_file(r, run, !strcmp(request_choice(r, "answer"), "kept"));
    pthread_mutex_lock(&all->lock);
    run_delete(run);
    pthread_mutex_unlock(&all->lock);
}

/* The file has arrived: answers with its run, or makes the request wait for the end of the run. */
static void answer(request *r) {
    file_run *made = r->upload->run;
    pthread_mutex_lock(&made->all->lock);
    made->received_all = true;
    made->state = made->state == RUN_RECEIVING ? RUN_ANALYSING : made->state;
    run_touch(made);
    run_change(made);
    r->waits = request_choice(r, "answer");
    if (r->waits) {
        r->work = answer_file;
    } else {
        made->users--; /* from here on the request does not need it */
        r->upload->run = NULL;
        snprintf(r->location, sizeof r->location, "/v1/runs/%s", made->id);
        run_answer(r, made, 201);
    }
    pthread_mutex_unlock(&made->all->lock);
}

void handle_create_run(request *r) {
    file_run *made = r->upload->run;
    work(r);
    if (!r->done && !body_whole(&r->body))
        request_problem(r, PROBLEM_BAD_ENCODING, NULL, "the compressed file is truncated");
    if (!r->done && made->several)
        archive_end(r->upload->archive);
    if (r->done)
        return; /* upload_free ends the run, where it has not ended */
    if (made->file >= 0)
        close(made->file);
    made->file = -1;
    answer(r);
}

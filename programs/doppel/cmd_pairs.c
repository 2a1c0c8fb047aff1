/* cmd_pairs.c - doppel pairs: the pairs of near documents, in input order. */
#include "common/message.h"
#include "documents.h"

#include <string.h>

const cli_option pairs_options[] = {
    {"collapse", 'c', OPTION_FLAG, NULL,
     "pair documents whose words equal an earlier one's with the first of their kind only"},
    DOCUMENT_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* Pairs come from two places, each in order: the join, and the twins. */
typedef struct pairs_job {
    collection documents;
    writer out;
    uint64_t pairs;
    size_t first;  /* the twin that pairs are made of now */
    uint64_t next; /* and the one it is to be paired with; NO_TWIN: none is left */
} pairs_job;

static doppel_status write_pair(pairs_job *job, const doppel_pair *pair) {
    const id_list *ids = &job->documents.ids;
    size_t a_length, b_length;
    const char *a = ids_get(ids, pair->a, &a_length), *b = ids_get(ids, pair->b, &b_length);
    char tail[64];
    int tail_length = snprintf(tail, sizeof tail, ",\"distance\":%d,\"similarity\":null}\n", pair->distance);
    job->pairs++;
    doppel_status status = writer_add(&job->out, "{\"a\":", 5);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, a, a_length);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, ",\"b\":", 5);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, b, b_length);
    return status == DOPPEL_OK ? writer_add(&job->out, tail, (size_t)tail_length) : status;
}

/* ---- twins: those with the same words, by number ---- */

/* Goes on to the next twin that pairs are made of. With --collapse that is the first of its words only. */
static void find_first(pairs_job *job) {
    const collection *c = &job->documents;
    while (job->first < c->twin_count &&
           (c->twins[job->first].next == NO_TWIN || (c->collapse && c->twins[job->first].copy)))
        job->first++;
    job->next = job->first < c->twin_count ? c->twins[job->first].next : NO_TWIN;
}

/* Writes the pairs of twins that come before `pair`; NULL: all. */
static doppel_status write_twins(pairs_job *job, const doppel_pair *pair) {
    const twin *twins = job->documents.twins;
    doppel_status status = DOPPEL_OK;
    while (job->next != NO_TWIN && status == DOPPEL_OK) {
        doppel_pair equal = {twins[job->first].position, twins[job->next].position, 0};
        if (pair && (equal.a > pair->a || (equal.a == pair->a && equal.b > pair->b)))
            break;
        status = write_pair(job, &equal);
        job->next = twins[job->next].next;
        if (job->next == NO_TWIN) {
            job->first++;
            find_first(job);
        }
    }
    return status;
}

/* doppel_join_options.pairs */
static doppel_status write_pairs(const doppel_pair *pairs, size_t count, void *user) {
    pairs_job *job = user;
    doppel_status status = DOPPEL_OK;
    for (size_t i = 0; i < count && status == DOPPEL_OK; i++) {
        doppel_pair pair = {place_of(&job->documents, pairs[i].a), place_of(&job->documents, pairs[i].b),
                            pairs[i].distance};
        status = write_twins(job, &pair);
        if (status == DOPPEL_OK)
            status = write_pair(job, &pair);
    }
    return status;
}

static int pair_up(pairs_job *job) {
    doppel_join_options options = {.size = sizeof options, .all = true, .pairs = write_pairs, .user = job};
    find_first(job);
    int code = join_documents(&job->documents, &options);
    if (code == EXIT_DONE && !output_closed())
        code = end_join(write_twins(job, NULL), NULL);
    return code;
}

int cmd_pairs(const cli_args *args) {
    pairs_job job = {.pairs = 0};
    bool usable;
    int code = collect(&job.documents, args, args_flag(args, "collapse"), &usable);
    if (usable) {
        int written = writer_open(&job.out, args_text(args, "output"));
        if (written == EXIT_DONE)
            written = pair_up(&job);
        written = writer_close(&job.out, written);
        code = written ? written : code;
        if (!written && args_flag(args, "json")) {
            print_collection(&job.documents);
            printf(",\"pairs\":%llu}\n", (unsigned long long)job.pairs);
            code = finish_stdout(code);
        }
    }
    free_collection(&job.documents);
    return code;
}

/* cmd_cluster.c - doppel cluster: which documents are copies of which, and which one of them is kept.
 *
 * In input order, a document is kept unless it is near an earlier one that is kept; its original is the nearest of
 * those, the earliest if there are several. Pairs come in order of their first document, so when those of `a` come, all
 * that came before `a` have been seen and it is known whether `a` is kept: nothing but the nearest kept one has to be
 * remembered.
 *
 * The join pairs a copy of a fingerprint with the first of its kind alone. If that one is kept, it is the original. If
 * not, the copy is near all that the first is near, so the pairs of such a first are put aside until it is known who is
 * kept. */
#include "common/message.h"
#include "documents.h"

#include <stdlib.h>
#include <string.h>

const cli_option cluster_options[] = {
    {"link", 0, OPTION_TEXT, "HOW",
     "kept (the default): near a document that is kept; any: near any of the group, so that chains are one group"},
    {"keep", 0, OPTION_TEXT, "POLICY", "which document of a group is kept: first (the default, and the only one yet)"},
    DOCUMENT_OPTIONS,
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* Farther than any fingerprint is from another. */
#define FAR UINT8_MAX

typedef struct cluster_job {
    collection documents;
    writer out;
    uint64_t *original; /* of each document; itself: it is kept */
    uint8_t *distance;  /* from it */
    doppel_pair *aside; /* the pairs of firsts that are not kept and have copies */
    size_t aside_count, aside_room;
    size_t block; /* where the pairs of the document at hand begin in them */
    bool block_has_copies;
    uint64_t kept, groups;
} cluster_job;

/* ---- near a document that is kept ---- */

/* The pairs of one document are all there: those without copies need not be put aside. */
static void end_block(cluster_job *job) {
    if (!job->block_has_copies)
        job->aside_count = job->block;
    job->block = job->aside_count;
    job->block_has_copies = false;
}

static bool put_aside(cluster_job *job, const doppel_pair *pair) {
    if (job->aside_count > job->block && job->aside[job->block].a != pair->a)
        end_block(job);
    if (!make_room(&job->aside, &job->aside_room, job->aside_count + 1, sizeof *job->aside))
        return false;
    job->aside[job->aside_count++] = *pair;
    job->block_has_copies = job->block_has_copies || !pair->distance;
    return true;
}

/* doppel_join_options.pairs */
static doppel_status take_pairs(const doppel_pair *pairs, size_t count, void *user) {
    cluster_job *job = user;
    for (size_t i = 0; i < count; i++) {
        doppel_pair pair = {place_of(&job->documents, pairs[i].a), place_of(&job->documents, pairs[i].b),
                            pairs[i].distance};
        if (job->original[pair.a] != pair.a) {
            if (!put_aside(job, &pair))
                return DOPPEL_ERROR_MEMORY;
        } else if (pair.distance < job->distance[pair.b]) {
            job->original[pair.b] = pair.a;
            job->distance[pair.b] = (uint8_t)pair.distance;
        }
    }
    return DOPPEL_OK;
}

/* Gives the copies of firsts that are not kept their originals. */
static void settle_copies(cluster_job *job) {
    uint64_t first = UINT64_MAX, nearest = 0;
    int distance = 0;
    end_block(job);
    for (size_t i = 0; i < job->aside_count; i++) {
        const doppel_pair *pair = &job->aside[i];
        if (pair->a != first) {
            first = pair->a;
            nearest = job->original[first];
            distance = job->distance[first];
        }
        if (!pair->distance) {
            job->original[pair->b] = nearest;
        } else if (job->original[pair->b] == pair->b && pair->distance < distance) {
            nearest = pair->b;
            distance = pair->distance;
        }
    }
}

/* ---- near any of the group: `original` leads to the first one of it, step by step ---- */

static uint64_t first_of(cluster_job *job, uint64_t i) {
    uint64_t *original = job->original;
    while (original[i] != i)
        i = original[i] = original[original[i]];
    return i;
}

static doppel_status link_pairs(const doppel_pair *pairs, size_t count, void *user) {
    cluster_job *job = user;
    for (size_t i = 0; i < count; i++) {
        uint64_t a = first_of(job, place_of(&job->documents, pairs[i].a));
        uint64_t b = first_of(job, place_of(&job->documents, pairs[i].b));
        job->original[a < b ? b : a] = a < b ? a : b;
    }
    return DOPPEL_OK;
}

/* ---- groups ---- */

static bool start(cluster_job *job) {
    size_t count = job->documents.ids.count;
    job->original = malloc((count + 1) * sizeof *job->original);
    job->distance = malloc(count + 1);
    if (!job->original || !job->distance)
        return false;
    memset(job->distance, FAR, count);
    for (size_t i = 0; i < count; i++)
        job->original[i] = i;
    return true;
}

/* Twins are copies of the first with their words. */
static void take_twins(cluster_job *job) {
    const twin *twins = job->documents.twins;
    for (size_t i = 0; i < job->documents.twin_count; i++)
        for (uint64_t next = twins[i].next; !twins[i].copy && next != NO_TWIN; next = twins[next].next)
            job->original[twins[next].position] = twins[i].position;
}

static int group(cluster_job *job, bool any) {
    doppel_join_options options = {.size = sizeof options, .pairs = any ? link_pairs : take_pairs, .user = job};
    if (!start(job)) {
        message("no memory");
        return EXIT_STORE;
    }
    int code = join_documents(&job->documents, &options);
    if (code != EXIT_DONE)
        return code;
    if (!any)
        settle_copies(job);
    for (size_t i = 0; any && i < job->documents.ids.count; i++)
        job->original[i] = first_of(job, i);
    take_twins(job);
    return EXIT_DONE;
}

/* ---- lines out ---- */

static doppel_status write_document(cluster_job *job, uint64_t i) {
    static const char kept[] = ",\"kept\":true,\"reason\":null,\"similarity\":null}\n";
    static const char copy[] = ",\"kept\":false,\"reason\":\"content_hash\",\"similarity\":null}\n";
    uint64_t original = job->original[i];
    size_t id_length, group_length;
    const char *id = ids_get(&job->documents.ids, i, &id_length);
    const char *group_id = ids_get(&job->documents.ids, original, &group_length);
    doppel_status status = writer_add(&job->out, "{\"id\":", 6);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, id, id_length);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, ",\"group\":", 9);
    if (status == DOPPEL_OK)
        status = writer_add(&job->out, group_id, group_length);
    if (status != DOPPEL_OK)
        return status;
    return original == i ? writer_add(&job->out, kept, sizeof kept - 1) : writer_add(&job->out, copy, sizeof copy - 1);
}

/* Counts what is kept, and the groups of more than one; `distance` serves to mark those. */
static void count_groups(cluster_job *job) {
    size_t count = job->documents.ids.count;
    memset(job->distance, 0, count);
    for (size_t i = 0; i < count; i++) {
        uint64_t original = job->original[i];
        job->kept += original == i;
        job->groups += original != i && !job->distance[original];
        job->distance[original] = job->distance[original] || original != i;
    }
}

static int write_groups(cluster_job *job) {
    doppel_status status = DOPPEL_OK;
    for (uint64_t i = 0; i < job->documents.ids.count && status == DOPPEL_OK; i++)
        status = stop_asked ? DOPPEL_ERROR_INTERRUPTED : write_document(job, i);
    return end_join(status, NULL);
}

static void print_summary(cluster_job *job) {
    count_groups(job);
    print_collection(&job->documents);
    printf(",\"kept\":%llu,\"groups\":%llu}\n", (unsigned long long)job->kept, (unsigned long long)job->groups);
}

/* ---- the command ---- */

static bool check(const cli_args *args) {
    const char *link = args_text(args, "link"), *keep = args_text(args, "keep");
    if (link && strcmp(link, "any") != 0 && strcmp(link, "kept") != 0)
        message("--link takes kept or any, not %s", link);
    else if (keep && strcmp(keep, "first") != 0)
        message("--keep takes first, not %s", keep);
    else
        return true;
    return false;
}

int cmd_cluster(const cli_args *args) {
    cluster_job job = {.kept = 0};
    const char *link = args_text(args, "link");
    bool usable;
    if (!check(args))
        return EXIT_USAGE;
    int code = collect(&job.documents, args, false, &usable);
    if (usable) {
        int written = writer_open(&job.out, args_text(args, "output"));
        if (written == EXIT_DONE)
            written = group(&job, link && !strcmp(link, "any"));
        if (written == EXIT_DONE)
            written = write_groups(&job);
        written = writer_close(&job.out, written);
        code = written ? written : code;
        if (!written && args_flag(args, "json")) {
            print_summary(&job);
            code = finish_stdout(code);
        }
    }
    free(job.original);
    free(job.distance);
    free(job.aside);
    free_collection(&job.documents);
    return code;
}

/* stored_json.c - what an index remembers of a document, as JSON. */
#include "engine/stored_json.h"

#include "common/message.h"

#include <math.h>
#include <time.h>

void print_slice(FILE *file, const char *before, doppel_slice text) {
    fputs(before, file);
    if (text.data)
        print_json(file, text.data, text.length);
    else
        fputs("null", file);
}

/* The same with a number, null for NaN; with seconds since 1970 as ISO 8601, null for 0; with a fingerprint of so many
 * bits in hexadecimal. */
static void print_share(FILE *file, const char *before, double share) {
    if (isnan(share))
        fprintf(file, "%snull", before);
    else
        fprintf(file, "%s%.6g", before, share);
}

void print_time(FILE *file, const char *before, uint64_t seconds) {
    char text[40];
    time_t when = (time_t)seconds;
    struct tm utc;
    if (seconds && gmtime_r(&when, &utc) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        fprintf(file, "%s\"%s\"", before, text);
    else
        fprintf(file, "%snull", before);
}

void print_fingerprint(FILE *file, const char *before, const uint64_t fingerprint[2], int bits) {
    unsigned long long low = fingerprint[0], high = fingerprint[1];
    if (bits > 64)
        fprintf(file, "%s\"%016llx%016llx\"", before, high, low);
    else
        fprintf(file, "%s\"%0*llx\"", before, (bits + 3) / 4, low);
}

void print_digest(FILE *file, const char *before, const uint8_t digest[32]) {
    uint8_t any = 0;
    for (size_t i = 0; i < 32; i++)
        any |= digest[i];
    fprintf(file, any ? "%s\"" : "%snull", before);
    if (!any)
        return;
    print_hex(file, digest, 32);
    fputc('"', file);
}

/* The URLs that are linked to a document, as an array. */
static void print_aliases(FILE *file, const char *before, const doppel_stored *stored) {
    fprintf(file, "%s[", before);
    for (size_t i = 0; i < stored->alias_count; i++)
        print_slice(file, i ? "," : "", stored->aliases[i]);
    fputc(']', file);
}

static void print_distance(FILE *file, const char *before, int distance) {
    if (distance < 0)
        fprintf(file, "%snull", before);
    else
        fprintf(file, "%s%d", before, distance);
}

static const char *truth(bool is) {
    return is ? "true" : "false";
}

void print_evidence(FILE *file, const doppel_stored *stored) {
    const doppel_evidence *e = &stored->evidence;
    fprintf(file, ",\"reason\":\"%s\"", stored->reason ? stored->reason : "");
    print_distance(file, ",\"evidence\":{\"distance\":", e->distance);
    print_share(file, ",\"similarity\":", e->similarity);
    print_share(file, ",\"containment\":", e->containment);
    print_share(file, ",\"titleSimilarity\":", e->title_similarity);
    fprintf(file, ",\"sameUrl\":%s,\"sameDigest\":%s,\"verified\":%s}", truth(e->same_url), truth(e->same_digest),
            truth(e->verified));
}

static void print_duplicates(FILE *file, const doppel_stored *stored) {
    fprintf(file, ",\"duplicates\":%llu,\"duplicatesBy\":{\"url\":%llu,\"content\":%llu,\"title\":%llu}",
            (unsigned long long)stored->duplicates, (unsigned long long)stored->duplicates_by[0],
            (unsigned long long)stored->duplicates_by[1], (unsigned long long)stored->duplicates_by[2]);
    print_time(file, ",\"lastDuplicate\":", stored->last_duplicate);
    print_aliases(file, ",\"aliases\":", stored);
}

/* The document that stands for its group: a copy's original while that is there, else itself. */
static doppel_slice group_of(const doppel_stored *stored) {
    return stored->original_id.data && !stored->original_gone ? stored->original_id : stored->id;
}

void print_stored(FILE *file, const doppel_stored *stored, int bits) {
    print_slice(file, "{\"id\":", stored->id);
    fprintf(file, ",\"number\":%llu", (unsigned long long)stored->number);
    print_slice(file, ",\"url\":", stored->url);
    print_slice(file, ",\"canonicalUrl\":", stored->canonical);
    print_slice(file, ",\"title\":", stored->title);
    if (stored->fields.data)
        fprintf(file, ",\"fields\":%.*s", (int)stored->fields.length, stored->fields.data);
    else
        fprintf(file, ",\"fields\":{}");
    print_slice(file, ",\"canonical\":", group_of(stored));
    print_slice(file, ",\"originalId\":", stored->original_id);
    if (stored->original_id.data)
        print_evidence(file, stored);
    print_time(file, ",\"added\":", stored->added);
    print_time(file, ",\"expires\":", stored->expires);
    fprintf(file, ",\"words\":%llu", (unsigned long long)stored->words);
    print_fingerprint(file, ",\"fingerprint\":", stored->fingerprint, bits);
    print_digest(file, ",\"digest\":", stored->digest);
    fprintf(file, ",\"shingles\":");
    if (stored->set_count)
        fprintf(file, "%zu", stored->set_count);
    else
        fprintf(file, "null");
    print_duplicates(file, stored);
    print_slice(file, ",\"text\":", stored->text);
    fputc('}', file);
}

void print_similar(FILE *file, const doppel_stored *stored) {
    print_slice(file, "{\"id\":", stored->id);
    print_share(file, ",\"similarity\":", stored->similarity);
    print_distance(file, ",\"distance\":", stored->distance);
    print_share(file, ",\"containment\":", stored->containment);
    print_slice(file, ",\"url\":", stored->url);
    print_slice(file, ",\"title\":", stored->title);
    print_slice(file, ",\"canonical\":", group_of(stored));
    print_aliases(file, ",\"aliases\":", stored);
    fputc('}', file);
}

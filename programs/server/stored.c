/* stored.c - documents that are remembered, as JSON: the members that the commands get and similar print, too. */
#include "server/service.h"

static void write_distance(text *out, int distance) {
    text_member(out, "distance");
    if (distance < 0)
        text_put(out, "null");
    else
        text_format(out, "%d", distance);
}

static void write_share(text *out, const char *name, double share) {
    text_member(out, name);
    if (share != share)
        text_put(out, "null");
    else
        text_format(out, "%.6g", share);
}

static void write_aliases(text *out, const doppel_stored *stored) {
    text_member(out, "aliases");
    text_put(out, "[");
    for (size_t i = 0; i < stored->alias_count; i++) {
        text_put(out, i ? "," : "");
        text_json(out, stored->aliases[i].data, stored->aliases[i].length);
    }
    text_put(out, "]");
}

/* Of a copy: whose, and why. */
static void write_original(text *out, const doppel_stored *stored) {
    const doppel_evidence *e = &stored->evidence;
    text_member_string(out, "originalId", stored->original_id);
    if (!stored->original_id.data)
        return;
    text_member_string(out, "reason", slice_of(stored->reason));
    text_member(out, "evidence");
    text_put(out, "{");
    write_distance(out, e->distance);
    write_share(out, "similarity", e->similarity);
    write_share(out, "containment", e->containment);
    write_share(out, "titleSimilarity", e->title_similarity);
    text_member_bool(out, "sameUrl", e->same_url);
    text_member_bool(out, "sameDigest", e->same_digest);
    text_member_bool(out, "verified", e->verified);
    text_put(out, "}");
}

static void write_sketches(text *out, const doppel_stored *stored, int bits) {
    uint8_t any = 0;
    for (size_t i = 0; i < 32; i++)
        any |= stored->digest[i];
    text_member_count(out, "words", stored->words);
    text_member(out, "fingerprint");
    if (bits > 64)
        text_format(out, "\"%016llx%016llx\"", (unsigned long long)stored->fingerprint[1],
                    (unsigned long long)stored->fingerprint[0]);
    else
        text_format(out, "\"%0*llx\"", (bits + 3) / 4, (unsigned long long)stored->fingerprint[0]);
    text_member(out, "digest");
    text_put(out, any ? "\"" : "null");
    if (any) {
        text_hex(out, stored->digest, 32);
        text_put(out, "\"");
    }
    text_member(out, "shingles");
    if (stored->set_count)
        text_format(out, "%zu", stored->set_count);
    else
        text_put(out, "null");
}

static void write_duplicates(text *out, const doppel_stored *stored) {
    text_member_count(out, "duplicates", stored->duplicates);
    text_member(out, "duplicatesBy");
    text_format(out, "{\"url\":%llu,\"content\":%llu,\"title\":%llu}", (unsigned long long)stored->duplicates_by[0],
                (unsigned long long)stored->duplicates_by[1], (unsigned long long)stored->duplicates_by[2]);
    text_member_time(out, "lastDuplicate", stored->last_duplicate);
    write_aliases(out, stored);
}

static doppel_slice group_of(const doppel_stored *stored) {
    return stored->original_id.data && !stored->original_gone ? stored->original_id : stored->id;
}

static void write_ranked(text *out, const doppel_stored *stored) {
    write_share(out, "similarity", stored->similarity);
    write_distance(out, stored->distance);
    write_share(out, "containment", stored->containment);
    text_member_string(out, "url", stored->url);
    text_member_string(out, "title", stored->title);
    text_member_string(out, "canonical", group_of(stored));
    write_aliases(out, stored);
}

static void write_whole(text *out, const doppel_stored *stored, int bits) {
    text_member_count(out, "number", stored->number);
    text_member_string(out, "url", stored->url);
    text_member_string(out, "canonicalUrl", stored->canonical);
    text_member_string(out, "title", stored->title);
    text_member(out, "fields");
    text_add(out, stored->fields.data ? stored->fields.data : "{}", stored->fields.data ? stored->fields.length : 2);
    text_member_string(out, "canonical", group_of(stored));
    write_original(out, stored);
    text_member_time(out, "added", stored->added);
    text_member_time(out, "expires", stored->expires);
    write_sketches(out, stored, bits);
    write_duplicates(out, stored);
    text_member_string(out, "text", stored->text);
}

void stored_write(text *out, const doppel_stored *stored, int bits, bool ranked) {
    text_put(out, "{");
    text_member_string(out, "id", stored->id);
    if (ranked)
        write_ranked(out, stored);
    else
        write_whole(out, stored, bits);
    text_put(out, "}");
}

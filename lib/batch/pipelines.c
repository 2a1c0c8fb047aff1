/* pipelines.c - the shingles, bands and threshold of published pipelines, under names that people know. docs/BATCH.md
 * has their sources, and what they find. */
#include "doppel.h"

static const doppel_pipeline pipelines[] = {
    /* datatrove, as FineWeb was made; it calls (1 / 14)^(1 / 8), 0.72, its threshold, and verifies no candidate. */
    {"fineweb", "simhash64:words=5", 0.72, 14, 8},
    /* 13-grams at 0.8; the bands that datasketch chooses for 0.8 and 128 slots. */
    {"slimpajama", "simhash64:words=13", 0.8, 9, 13},
    {"nemo-curator", "simhash64:chars=24", 0.8, 20, 13},
    {"duplodocus", "simhash64:words=5", 0.8, 26, 11},
};

const doppel_pipeline *doppel_pipelines(size_t *count) {
    *count = sizeof pipelines / sizeof *pipelines;
    return pipelines;
}

/* shapes_answers.c - the shapes of answers, field by field. */
#include "server/routes.h"

#define END \
    { .name = NULL }

enum { STRING_OR_NULL = ANY_STRING | OR_NULL, NUMBER_OR_NULL = ANY_NUMBER | OR_NULL };

static const field evidence_fields[] = {
    {"distance", NUMBER_OR_NULL, .required = true, .help = "differing bits of the fingerprints", .whole = true},
    {"similarity", NUMBER_OR_NULL, .required = true, .help = "Jaccard of the shingle sets"},
    {"containment", NUMBER_OR_NULL, .required = true, .help = "the share of its shingles that the original has"},
    {"titleSimilarity", NUMBER_OR_NULL, .required = true, .help = "1 - edits / length of the titles"},
    {"sameUrl", ANY_BOOL, .required = true, .help = "the canonical URLs are the same"},
    {"sameDigest", ANY_BOOL, .required = true, .help = "the words are the same"},
    {"verified", ANY_BOOL, .required = true, .help = "measured on the very shingles"},
    END,
};
static const shape_info shape_evidence = {"Evidence", "What was measured on a pair.", evidence_fields, false, false};

#define REASONS "exact_url|content_hash|title_similarity"

static const field verdict_fields[] = {
    {"id", STRING_OR_NULL, .required = true, .help = "of the document, as given or made"},
    {"isDuplicate", ANY_BOOL, .required = true, .help = "whether it was seen"},
    {"known", ANY_BOOL, .help = "this id was there with the same words: its first verdict again"},
    {"replaced", ANY_BOOL, .help = "it took the place of an earlier version"},
    {"confidence", ANY_NUMBER, .required = true, .help = "how sure that is, 0 to 1"},
    {"reason", STRING_OR_NULL, .required = true, .help = "why", .choices = REASONS},
    {"originalId", STRING_OR_NULL, .required = true, .help = "of what it is a copy"},
    {"evidence", ANY_OBJECT, .required = true, .help = "what was measured", .shape = &shape_evidence},
    END,
};
const shape_info shape_verdict = {"Verdict", "Whether a document was seen.", verdict_fields, false, false};

static const field by_fields[] = {
    {"url", ANY_NUMBER, .required = true, .help = "by URL", .whole = true},
    {"content", ANY_NUMBER, .required = true, .help = "by content", .whole = true},
    {"title", ANY_NUMBER, .required = true, .help = "by title", .whole = true},
    {"unique", ANY_NUMBER, .help = "not duplicates", .whole = true},
    END,
};
static const shape_info shape_by = {"ByReason", "Counts by reason.", by_fields, false, false};

static const field stored_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"number", ANY_NUMBER, .required = true, .help = "in the order of adding", .whole = true},
    {"url", STRING_OR_NULL, .required = true, .help = "as given"},
    {"canonicalUrl", STRING_OR_NULL, .required = true, .help = "its canonical form"},
    {"title", STRING_OR_NULL, .required = true, .help = "its title"},
    {"fields", ANY_OBJECT, .required = true, .help = "what was kept beside"},
    {"canonical", ANY_STRING, .required = true, .help = "the id of the document that stands for its group"},
    {"originalId", STRING_OR_NULL, .required = true, .help = "of a copy: its original"},
    {"reason", STRING_OR_NULL, .help = "of a copy: why", .choices = REASONS},
    {"evidence", ANY_OBJECT, .help = "of a copy: what was measured", .shape = &shape_evidence},
    {"added", STRING_OR_NULL, .required = true, .help = "when"},
    {"expires", STRING_OR_NULL, .required = true, .help = "when; null: never"},
    {"words", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"fingerprint", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digest", STRING_OR_NULL, .required = true, .help = "SHA-256 of its words"},
    {"shingles", NUMBER_OR_NULL, .required = true, .help = "how many are kept", .whole = true},
    {"duplicates", ANY_NUMBER, .required = true, .help = "copies that were seen", .whole = true},
    {"duplicatesBy", ANY_OBJECT, .required = true, .help = "the same by reason", .shape = &shape_by},
    {"lastDuplicate", STRING_OR_NULL, .required = true, .help = "when the last came"},
    {"aliases", ANY_ARRAY, .required = true, .help = "URLs that are linked to it"},
    {"text", STRING_OR_NULL, .required = true, .help = "its text, where the index keeps it"},
    END,
};
const shape_info shape_stored = {"Stored", "A document as it is remembered.", stored_fields, false, false};

static const field near_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"similarity", NUMBER_OR_NULL, .required = true, .help = "Jaccard of the shingle sets"},
    {"distance", NUMBER_OR_NULL, .required = true, .help = "differing bits", .whole = true},
    {"containment", NUMBER_OR_NULL, .required = true, .help = "the share of the asked one's shingles that it has"},
    {"url", STRING_OR_NULL, .required = true, .help = "as given"},
    {"title", STRING_OR_NULL, .required = true, .help = "its title"},
    {"canonical", ANY_STRING, .required = true, .help = "the id of the document that stands for its group"},
    {"aliases", ANY_ARRAY, .required = true, .help = "URLs that are linked to it"},
    END,
};
static const shape_info shape_near = {"Near", "A similar document.", near_fields, false, false};
static const field similar_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "the most similar first", .shape = &shape_near}, END};
const shape_info shape_similar = {"Similar", "Similar documents.", similar_fields, false, false};

static const field shown_fields[] = {
    {"folded", ANY_ARRAY, .required = true, .help = "near-copies of it, as they were given"},
    END,
};
static const shape_info shape_shown = {"Shown", "A result to show: as it was given, and", shown_fields, true, false};
static const field folded_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "those to show, in order", .shape = &shape_shown}, END};
const shape_info shape_folded = {"Folded", "Search results without their near-copies.", folded_fields, false, false};

static const field passage_fields[] = {
    {"aStart", ANY_NUMBER, .required = true, .help = "bytes of A", .whole = true},
    {"aEnd", ANY_NUMBER, .required = true, .help = "", .whole = true},
    {"bStart", ANY_NUMBER, .required = true, .help = "bytes of B", .whole = true},
    {"bEnd", ANY_NUMBER, .required = true, .help = "", .whole = true},
    {"aFrom", ANY_NUMBER, .required = true, .help = "the same in UTF-16 units", .whole = true},
    {"aTo", ANY_NUMBER, .required = true, .help = "", .whole = true},
    {"bFrom", ANY_NUMBER, .required = true, .help = "", .whole = true},
    {"bTo", ANY_NUMBER, .required = true, .help = "", .whole = true},
    {"words", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    END,
};
static const shape_info shape_passage = {"Passage", "A run of words that both have.", passage_fields, false, false};

static const field compared_fields[] = {
    {"wordsA", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"shinglesA", ANY_NUMBER, .required = true, .help = "distinct ones", .whole = true},
    {"fingerprintA", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digestA", STRING_OR_NULL, .required = true, .help = "SHA-256 of the words"},
    {"wordsB", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"shinglesB", ANY_NUMBER, .required = true, .help = "distinct ones", .whole = true},
    {"fingerprintB", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digestB", STRING_OR_NULL, .required = true, .help = "SHA-256 of the words"},
    {"recipe", ANY_STRING, .required = true, .help = "by which they were compared"},
    {"bits", ANY_NUMBER, .required = true, .help = "of the fingerprints", .whole = true},
    {"distance", NUMBER_OR_NULL, .required = true, .help = "differing bits", .whole = true},
    {"shinglesShared", ANY_NUMBER, .required = true, .help = "distinct ones", .whole = true},
    {"similarity", NUMBER_OR_NULL, .required = true, .help = "Jaccard of the shingle sets"},
    {"containmentAB", NUMBER_OR_NULL, .required = true, .help = "the share of A's shingles that are in B"},
    {"containmentBA", NUMBER_OR_NULL, .required = true, .help = "the other way round"},
    {"signatureSimilarity", NUMBER_OR_NULL, .required = true, .help = "as estimated from signatures"},
    {"cosine", NUMBER_OR_NULL, .required = true, .help = "of the word counts"},
    {"angle", NUMBER_OR_NULL, .required = true, .help = "in degrees"},
    {"euclidean", NUMBER_OR_NULL, .required = true, .help = "between the word counts"},
    {"editDistance", NUMBER_OR_NULL, .required = true, .help = "in characters; null: too long", .whole = true},
    {"indelDistance", NUMBER_OR_NULL, .required = true, .help = "without replacing", .whole = true},
    {"editSimilarity", NUMBER_OR_NULL, .required = true, .help = "1 - edits / length"},
    {"sameDigest", ANY_BOOL, .required = true, .help = "the words are the same"},
    {"textA", STRING_OR_NULL, .required = true, .help = "what a page says, where A is one"},
    {"textB", STRING_OR_NULL, .required = true, .help = "what a page says, where B is one"},
    {"passages", ANY_ARRAY, .required = true, .help = "in the order of A", .shape = &shape_passage},
    END,
};
const shape_info shape_compared = {"Compared", "Every measure on two texts.", compared_fields, false, false};

static const field groups_fields[] = {
    {"groups", ANY_ARRAY, .required = true, .help = "the largest first", .shape = &shape_stored}, END};
const shape_info shape_groups = {"Groups", "Originals with the most copies.", groups_fields, false, false};

static const field histogram_fields[] = {
    {"count", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"sum", ANY_NUMBER, .required = true, .help = "of all", .whole = true},
    {"buckets", ANY_ARRAY, .required = true, .help = "the i-th counts those below 2^i, the last all others"},
    END,
};
static const shape_info shape_histogram = {"Histogram", "How often which size occurs.", histogram_fields, false, false};

#define COUNT(name_, help_) \
    { .name = name_, .kinds = ANY_NUMBER, .required = true, .help = help_, .whole = true }

static const field stats_fields[] = {
    {"index", ANY_STRING, .required = true, .help = "its name"},
    {"recipe", ANY_STRING, .required = true, .help = "how text becomes a fingerprint"},
    {"preset", STRING_OR_NULL, .required = true, .help = "what it was made with"},
    {"near", ANY_STRING, .required = true, .help = "what near content is", .choices = "distance|similarity"},
    {"similarity", ANY_NUMBER, .required = true, .help = "of at least"},
    {"sample", NUMBER_OR_NULL, .required = true, .help = "hashes that are kept of a document; null: all",
     .whole = true},
    COUNT("distance", "of at most so many bits"),
    COUNT("minWords", "documents with fewer are near only if their words are the same"),
    {"titles", ANY_BOOL, .required = true, .help = "whether titles count"},
    {"titleSimilarity", ANY_NUMBER, .required = true, .help = "of at least"},
    {"titleVeto", ANY_BOOL, .required = true, .help = "whether very unlike contents outweigh a title"},
    {"keepText", ANY_BOOL, .required = true, .help = "whether texts are kept"},
    {"fields", ANY_ARRAY, .required = true, .help = "that are kept"},
    {"onDuplicate", ANY_STRING, .required = true, .help = "what is done with copies", .choices = "skip|link|store"},
    {"onSameUrl", ANY_STRING, .required = true, .help = "what other text at a known URL is",
     .choices = "duplicate|refresh"},
    {"ttl", NUMBER_OR_NULL, .required = true, .help = "seconds; null: for ever", .whole = true},
    {"durability", ANY_STRING, .required = true, .help = "when an add is acknowledged", .choices = "none|batch|each"},
    COUNT("documents", "originals"),
    COUNT("copies", "linked or stored"),
    COUNT("titlesKnown", "titles that are indexed"),
    {"duplicatesBy", ANY_OBJECT, .required = true, .help = "ever counted", .shape = &shape_by},
    {"oldest", STRING_OR_NULL, .required = true, .help = "when it was added"},
    {"newest", STRING_OR_NULL, .required = true, .help = "when it was added"},
    COUNT("diskBytes", "the file"),
    COUNT("freeBytes", "of it, what can be used again"),
    COUNT("memoryBytes", "all of the next three"),
    COUNT("keysBytes", "ids, URLs and digests"),
    COUNT("nearBytes", "fingerprints or signatures"),
    COUNT("titleBytes", "titles"),
    {"plan", ANY_STRING, .required = true, .help = "the layout of the index"},
    COUNT("last", "the last number that was given"),
    COUNT("checks", "since it was opened, as all that follow"),
    COUNT("adds", ""),
    COUNT("removes", ""),
    COUNT("expired", ""),
    COUNT("damaged", "records that could not be read"),
    COUNT("commits", ""),
    COUNT("failedCommits", ""),
    {"verdictsBy", ANY_OBJECT, .required = true, .help = "of checks and adds", .shape = &shape_by},
    {"checkTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"addTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"commitTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"candidates", ANY_OBJECT, .required = true, .help = "a check or add", .shape = &shape_histogram},
    {"distances", ANY_OBJECT, .required = true, .help = "of duplicates by content", .shape = &shape_histogram},
    {"openSeconds", ANY_NUMBER, .required = true, .help = "that opening took"},
    {"uptimeSeconds", ANY_NUMBER, .required = true, .help = "of the server"},
    {"version", ANY_STRING, .required = true, .help = "of the server"},
    END,
};
const shape_info shape_stats = {"Stats", "What an index holds, and what it has done.", stats_fields, false, false};

static const field index_fields[] = {
    {"name", ANY_STRING, .required = true, .help = "its name"},
    COUNT("documents", "originals"),
    COUNT("copies", "linked or stored"),
    {"recipe", ANY_STRING, .required = true, .help = "how text becomes a fingerprint"},
    {"preset", STRING_OR_NULL, .required = true, .help = "what it was made with"},
    COUNT("diskBytes", "the file"),
    COUNT("memoryBytes", "what it holds in memory"),
    {"available", ANY_BOOL, .required = true,
     .help = "false: it is damaged or cannot be opened; requests for it get 503"},
    END,
};
const shape_info shape_index = {"Index", "An index.", index_fields, false, false};
static const field indexes_fields[] = {
    {"indexes", ANY_ARRAY, .required = true, .help = "the default one first", .shape = &shape_index}, END};
const shape_info shape_indexes = {"Indexes", "All indexes.", indexes_fields, false, false};

static const field backup_fields[] = {
    {"name", ANY_STRING, .required = true, .help = "the folder, below that of backups"},
    COUNT("bytes", "of the file"),
    END,
};
const shape_info shape_backup = {"Backup", "A whole copy of an index.", backup_fields, false, false};

static const field health_fields[] = {
    {"status", ANY_STRING, .required = true, .help = "a word", .choices = "ok|ready|stopping"}, END};
const shape_info shape_health = {"Health", "How the server is.", health_fields, false, false};

static const field removed_fields[] = {
    {"id", ANY_STRING, .help = "of the document"},
    {"name", ANY_STRING, .help = "of the index"},
    {"removed", ANY_BOOL, .required = true, .help = "always true"},
    END,
};
const shape_info shape_removed = {"Removed", "What was removed.", removed_fields, false, false};

static const field done_fields[] = {
    {"expired", ANY_NUMBER, .help = "documents that were removed", .whole = true},
    {"compacted", ANY_BOOL, .help = "always true"},
    END,
};
const shape_info shape_done = {"Done", "What was done.", done_fields, false, false};

static const field problem_fields[] = {
    {"type", ANY_STRING, .required = true, .help = "urn:doppel:problem:NAME"},
    {"title", ANY_STRING, .required = true, .help = "what kind of problem"},
    COUNT("status", "of the answer"),
    {"detail", ANY_STRING, .required = true, .help = "what is wrong"},
    {"pointer", ANY_STRING, .help = "where in the body, as RFC 6901 has it"},
    {"line", ANY_NUMBER, .help = "of a batch, from 1", .whole = true},
    {"position", ANY_NUMBER, .help = "in the body or line, in bytes, from 1", .whole = true},
    END,
};
const shape_info shape_problem = {"Problem", "What went wrong.", problem_fields, false, false};

static const field line_fields[] = {
    {"line", ANY_NUMBER, .help = "of the body, from 1, with a problem", .whole = true},
    {"lastLine", ANY_NUMBER, .help = "the problem is that of all lines up to this one", .whole = true},
    {"problem", ANY_OBJECT, .help = "why there is no verdict", .shape = &shape_problem},
    END,
};
const shape_info shape_line = {"Line", "A verdict, or a line with its problem.", line_fields, true, false};

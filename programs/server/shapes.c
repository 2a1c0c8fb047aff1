/* shapes.c - the shapes of bodies and answers, field by field. */
#include "server/routes.h"

#include "server/runs.h"

/* ---- bodies ---- */

/* A similarity from which on something counts; 0 would stand for the default (doppel_engine_options). */
#define LEAST_SHARE .least = 0.01, .most = 1
#define END \
    { .name = NULL }

/* Recipes, as far as a pattern can describe them (lib/sketch/recipe.c). It does not say that each part is given once,
 * that space=drop needs chars=, that libcrypto knows the hash, or that first= and sample= fit into 63 and 32 bits. Stop
 * words and frequencies cannot be given here. */
#define RECIPE                                                                                                \
    "^(page|article|literal|simhash0*([1-9]|[1-5][0-9]|6[0-4]|128)(:((words|chars)=0*([1-9][0-9]{0,2}|1000)|" \
    "hash=[A-Za-z0-9][A-Za-z0-9/._-]*|weight=(tf|set|sqrt|tf2)|case=(fold|keep)|(punct|space)=(drop|keep)|"   \
    "first=0*[1-9][0-9]{0,18}|minhash=0*([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|"       \
    "655[0-2][0-9]|6553[0-6])|sample=0*[1-9][0-9]{0,9}|unicode=[0-9.]{1,23}))*)$"

/* At most 16 names. */
#define FIELD_NAMES "^,*([^,\\n\\u0000]+(,+|$)){0,16}$"

/* Settings that exclude each other. Near content is defined by a similarity, unless a distance is named. */
#define EXCLUDED                                                                                                \
    "{\"anyOf\":[{\"required\":[\"similarity\",\"distance\"]},"                                                 \
    "{\"required\":[\"near\",\"similarity\"],\"properties\":{\"near\":{\"enum\":[\"distance\"]}}},"             \
    "{\"required\":[\"near\",\"distance\"],\"properties\":{\"near\":{\"enum\":[\"similarity\"]}}},"             \
    "{\"required\":[\"near\",\"sample\"],\"properties\":{\"near\":{\"enum\":[\"distance\"]}}},"                 \
    "{\"required\":[\"distance\",\"sample\"]},"                                                                 \
    "{\"required\":[\"near\",\"titleVeto\"],\"properties\":{\"near\":{\"enum\":[\"distance\"]},\"titleVeto\":{" \
    "\"enum\":[true]}}},"                                                                                       \
    "{\"required\":[\"distance\",\"titleVeto\"],\"properties\":{\"titleVeto\":{\"enum\":[true]}}}]}"

enum { STRING_OR_NULL = ANY_STRING | OR_NULL, NUMBER_OR_NULL = ANY_NUMBER | OR_NULL };

static const field document_fields[] = {
    {"id", ANY_STRING | ANY_NUMBER | OR_NULL, .help = "its id; without one, an add makes one from the URL or the text"},
    {"url", STRING_OR_NULL, .help = "its address"},
    {"title", STRING_OR_NULL, .help = "its title"},
    {"text", STRING_OR_NULL, .help = "its text"},
    {"html", STRING_OR_NULL, .help = "its HTML page, if there is no text"},
    {"ttl", NUMBER_OR_NULL, .help = "how many seconds it is remembered; 0: as set for the index", .most = 1e11,
     .whole = true},
    END,
};
const shape_info shape_document = {
    "Document",
    "A document: at least one of url, title, text and html; and the fields that the index keeps.",
    document_fields,
    false,
    true,
    "url|title|text|html"};

/* Files of records have fields for other programs; doppel add ignores them, too. */
const shape_info shape_record = {
    "Record",
    "A document as a line of a batch: at least one of url, title, text and html, and the fields that the index keeps; "
    "other fields are ignored.",
    document_fields,
    true,
    true,
    "url|title|text|html"};

static const field side_fields[] = {
    {"text", STRING_OR_NULL, .help = "a text"},
    {"html", STRING_OR_NULL, .help = "an HTML page, if there is no text"},
    END,
};
static const shape_info shape_side = {
    "Side", "One side of a comparison: a text or a page.", side_fields, false, false, "text|html"};

static const field comparison_fields[] = {
    {"a", ANY_OBJECT, .required = true, .help = "the first", .shape = &shape_side},
    {"b", ANY_OBJECT, .required = true, .help = "the second", .shape = &shape_side},
    {"recipe", ANY_STRING, .help = "page (the default), article, literal or a text form", .pattern = RECIPE},
    {"minWords", ANY_NUMBER, .help = "the fewest words of a shared passage (default 5)", .least = 1, .most = 1e6,
     .whole = true},
    END,
};
const shape_info shape_comparison = {"Comparison", "Two texts or pages.", comparison_fields, false, false, NULL};

static const field result_fields[] = {
    {"id", ANY_STRING | ANY_NUMBER | OR_NULL, .help = "its id"},
    {"url", STRING_OR_NULL, .help = "its address"},
    {"title", STRING_OR_NULL, .help = "its title"},
    {"text", STRING_OR_NULL, .help = "its text, or a snippet"},
    {"html", STRING_OR_NULL, .help = "its HTML page, if there is no text"},
    END,
};
static const shape_info shape_result = {
    "Result", "A search result; other fields are returned unchanged.", result_fields, true, false, NULL};

static const field results_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "in the order they would be shown", .shape = &shape_result},
    END,
};
const shape_info shape_results = {"Results", "Search results.", results_fields, false, false, NULL};

static const field index_options_fields[] = {
    {"preset", ANY_STRING, .help = "the preset that the other settings follow (default general)",
     .choices = "general|crawl|article"},
    {"recipe", ANY_STRING, .help = "how text becomes a fingerprint", .pattern = RECIPE},
    {"near", ANY_STRING, .help = "how near content is defined", .choices = "distance|similarity"},
    {"similarity", ANY_NUMBER, .help = "near: of at least this similarity; implies near similarity", LEAST_SHARE},
    {"distance", ANY_NUMBER, .help = "near: fingerprints differ in at most this many bits; implies near distance",
     .most = 64, .whole = true},
    {"sample", ANY_NUMBER,
     .help = "near similarity: keep this many hashes of a document, 16 to 4096, and estimate the similarity from them",
     .least = 16, .most = 4096, .whole = true},
    {"minWords", ANY_NUMBER, .help = "documents with fewer words are near only if their words are the same", .least = 1,
     .most = 1e6, .whole = true},
    {"titles", ANY_BOOL, .help = "whether a similar title makes a duplicate"},
    {"titleSimilarity", ANY_NUMBER, .help = "how similar", LEAST_SHARE},
    {"titleVeto", ANY_BOOL,
     .help = "whether contents with less than half of `similarity` in common outweigh a title; near by similarity "
             "only"},
    {"keepText", ANY_BOOL, .help = "whether texts are kept"},
    {"fields", ANY_STRING, .help = "fields of documents that are kept, separated by commas (default source,date)",
     .pattern = FIELD_NAMES},
    {"onDuplicate", ANY_STRING, .help = "what is done with copies", .choices = "skip|link|store"},
    {"onSameUrl", ANY_STRING, .help = "how other text at a known URL is treated", .choices = "duplicate|refresh"},
    {"durability", ANY_STRING, .help = "when an add is acknowledged", .choices = "none|batch|each"},
    {"ttl", ANY_NUMBER, .help = "seconds that a document is remembered (default: that of the preset)", .least = 1,
     .most = 1e11, .whole = true},
    END,
};
const shape_info shape_index_options = {
    "IndexOptions", "The settings of an index.", index_options_fields, false, false, NULL, EXCLUDED};

static const field no_fields[] = {END};
const shape_info shape_backup_options = {"Nothing", "An empty object.", no_fields, false, false, NULL};

/* ---- answers ---- */

static const field evidence_fields[] = {
    {"distance", NUMBER_OR_NULL, .required = true, .help = "differing bits of the fingerprints", .whole = true},
    {"similarity", NUMBER_OR_NULL, .required = true, .help = "Jaccard of the shingle sets"},
    {"containment", NUMBER_OR_NULL, .required = true, .help = "the share of its shingles that the original has"},
    {"titleSimilarity", NUMBER_OR_NULL, .required = true, .help = "1 - edits / length of the titles"},
    {"sameUrl", ANY_BOOL, .required = true, .help = "the canonical URLs are the same"},
    {"sameDigest", ANY_BOOL, .required = true, .help = "the words are the same"},
    {"verified", ANY_BOOL, .required = true, .help = "measured on the shingles themselves"},
    END,
};
static const shape_info shape_evidence = {"Evidence", "What was measured on a pair.", evidence_fields, false, false,
                                          NULL};

#define REASONS "exact_url|content_hash|title_similarity"

static const field verdict_fields[] = {
    {"id", STRING_OR_NULL, .required = true, .help = "of the document, as given or made"},
    {"isDuplicate", ANY_BOOL, .required = true, .help = "whether it was seen before"},
    {"known", ANY_BOOL, .help = "it was added before, with this id and the same words: its first verdict again"},
    {"replaced", ANY_BOOL, .help = "it replaced an earlier version"},
    {"idKnown", ANY_BOOL, .help = "its id was that of another copy already: nothing was stored under it"},
    {"confidence", ANY_NUMBER, .required = true, .help = "how sure that is, 0 to 1"},
    {"reason", STRING_OR_NULL, .required = true, .help = "why", .choices = REASONS},
    {"originalId", STRING_OR_NULL, .required = true, .help = "the id of its original"},
    {"evidence", ANY_OBJECT, .required = true, .help = "what was measured", .shape = &shape_evidence},
    END,
};
const shape_info shape_verdict = {"Verdict", "Whether a document was seen before.", verdict_fields, false, false, NULL};

static const field by_fields[] = {
    {"url", ANY_NUMBER, .required = true, .help = "by URL", .whole = true},
    {"content", ANY_NUMBER, .required = true, .help = "by content", .whole = true},
    {"title", ANY_NUMBER, .required = true, .help = "by title", .whole = true},
    {"unique", ANY_NUMBER, .help = "not duplicates", .whole = true},
    END,
};
static const shape_info shape_by = {"ByReason", "Counts by reason.", by_fields, false, false, NULL};

static const field stored_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"number", ANY_NUMBER, .required = true, .help = "its number, in the order of adding", .whole = true},
    {"url", STRING_OR_NULL, .required = true, .help = "as given"},
    {"canonicalUrl", STRING_OR_NULL, .required = true, .help = "its canonical form"},
    {"title", STRING_OR_NULL, .required = true, .help = "its title"},
    {"fields", ANY_OBJECT, .required = true, .help = "the fields that the index keeps"},
    {"canonical", ANY_STRING, .required = true, .help = "the id of the document that represents its group"},
    {"originalId", STRING_OR_NULL, .required = true, .help = "of a copy: its original"},
    {"reason", STRING_OR_NULL, .help = "of a copy: why", .choices = REASONS},
    {"evidence", ANY_OBJECT, .help = "of a copy: what was measured", .shape = &shape_evidence},
    {"added", STRING_OR_NULL, .required = true, .help = "when"},
    {"expires", STRING_OR_NULL, .required = true, .help = "when; null: never"},
    {"words", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"fingerprint", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digest", STRING_OR_NULL, .required = true, .help = "SHA-256 of its words"},
    {"shingles", NUMBER_OR_NULL, .required = true, .help = "how many are kept", .whole = true},
    {"duplicates", ANY_NUMBER, .required = true, .help = "copies seen so far, removed ones too", .whole = true},
    {"duplicatesBy", ANY_OBJECT, .required = true, .help = "the same by reason", .shape = &shape_by},
    {"lastDuplicate", STRING_OR_NULL, .required = true, .help = "when the last was seen"},
    {"copies", ANY_NUMBER, .required = true, .help = "copies that are remembered under it now", .whole = true},
    {"aliases", ANY_ARRAY, .required = true, .help = "URLs that are linked to it", .items = ANY_STRING},
    {"text", STRING_OR_NULL, .required = true, .help = "its text, where the index keeps it"},
    {"titleSimilarity", ANY_NUMBER, .help = "in a list by title: how similar its title is"},
    END,
};
const shape_info shape_stored = {"Stored", "A document as it is remembered.", stored_fields, false, false, NULL};

static const field near_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"similarity", NUMBER_OR_NULL, .required = true, .help = "Jaccard of the shingle sets"},
    {"distance", NUMBER_OR_NULL, .required = true, .help = "differing bits", .whole = true},
    {"containment", NUMBER_OR_NULL, .required = true, .help = "the share of the query's shingles that it has"},
    {"url", STRING_OR_NULL, .required = true, .help = "as given"},
    {"title", STRING_OR_NULL, .required = true, .help = "its title"},
    {"canonical", ANY_STRING, .required = true, .help = "the id of the document that represents its group"},
    {"duplicates", ANY_NUMBER, .required = true, .help = "copies seen so far, removed ones too", .whole = true},
    {"copies", ANY_NUMBER, .required = true, .help = "copies that are remembered under it now", .whole = true},
    {"aliases", ANY_ARRAY, .required = true, .help = "URLs that are linked to it", .items = ANY_STRING},
    END,
};
static const shape_info shape_near = {"Near", "A similar document.", near_fields, false, false, NULL};
static const field similar_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "the most similar first", .shape = &shape_near}, END};
const shape_info shape_similar = {"Similar", "Similar documents.", similar_fields, false, false, NULL};

static const field shown_fields[] = {
    {"folded", ANY_ARRAY, .required = true, .help = "near-copies of it, as they were given", .items = ANY_OBJECT},
    END,
};
static const shape_info shape_shown = {
    "Shown", "A result to show, as it was given, with the results that are folded under it.", shown_fields, true, false,
    NULL};
static const field folded_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "those to show, in order", .shape = &shape_shown}, END};
const shape_info shape_folded = {"Folded", "Search results without their near-copies.", folded_fields, false, false,
                                 NULL};

static const field passage_fields[] = {
    {"aStart", ANY_NUMBER, .required = true, .help = "where it begins in A, in bytes", .whole = true},
    {"aEnd", ANY_NUMBER, .required = true, .help = "where it ends", .whole = true},
    {"bStart", ANY_NUMBER, .required = true, .help = "where it begins in B, in bytes", .whole = true},
    {"bEnd", ANY_NUMBER, .required = true, .help = "where it ends", .whole = true},
    {"aFrom", ANY_NUMBER, .required = true, .help = "aStart in UTF-16 units", .whole = true},
    {"aTo", ANY_NUMBER, .required = true, .help = "aEnd in UTF-16 units", .whole = true},
    {"bFrom", ANY_NUMBER, .required = true, .help = "bStart in UTF-16 units", .whole = true},
    {"bTo", ANY_NUMBER, .required = true, .help = "bEnd in UTF-16 units", .whole = true},
    {"words", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    END,
};
static const shape_info shape_passage = {"Passage", "A run of words that both have.", passage_fields, false, false,
                                         NULL};

static const field compared_fields[] = {
    {"wordsA", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"shinglesA", ANY_NUMBER, .required = true, .help = "distinct ones", .whole = true},
    {"fingerprintA", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digestA", STRING_OR_NULL, .required = true, .help = "SHA-256 of the words"},
    {"wordsB", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"shinglesB", ANY_NUMBER, .required = true, .help = "distinct ones", .whole = true},
    {"fingerprintB", ANY_STRING, .required = true, .help = "in hexadecimal"},
    {"digestB", STRING_OR_NULL, .required = true, .help = "SHA-256 of the words"},
    {"recipe", ANY_STRING, .required = true, .help = "with which they were compared"},
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
    {"editDistance", NUMBER_OR_NULL, .required = true, .help = "in characters; null: too long and too different",
     .whole = true},
    {"indelDistance", NUMBER_OR_NULL, .required = true, .help = "without replacing", .whole = true},
    {"editSimilarity", NUMBER_OR_NULL, .required = true, .help = "1 - edits / length"},
    {"sameDigest", ANY_BOOL, .required = true, .help = "the words are the same"},
    {"textA", STRING_OR_NULL, .required = true, .help = "the text of the page, if A is one"},
    {"textB", STRING_OR_NULL, .required = true, .help = "the text of the page, if B is one"},
    {"passages", ANY_ARRAY, .required = true, .help = "in the order of A", .shape = &shape_passage},
    END,
};
const shape_info shape_compared = {"Compared", "Every measure on two texts.", compared_fields, false, false, NULL};

static const field groups_fields[] = {
    {"groups", ANY_ARRAY, .required = true, .help = "the largest first", .shape = &shape_stored}, END};
const shape_info shape_groups = {"Groups", "Originals with the most copies.", groups_fields, false, false, NULL};

static const field listed_fields[] = {
    {"documents", ANY_ARRAY, .required = true, .help = "without their texts", .shape = &shape_stored},
    {"next", NUMBER_OR_NULL, .required = true, .help = "the cursor of the next page; null: this is the last",
     .whole = true},
    END,
};
const shape_info shape_listed = {"Listed", "A page of documents.", listed_fields, false, false, NULL};

static const field copies_fields[] = {
    {"original", ANY_STRING, .required = true,
     .help = "the id of the document whose copies these are; for a copy, its original, which may no longer be there"},
    {"documents", ANY_ARRAY, .required = true, .help = "its copies, without their texts", .shape = &shape_stored},
    {"next", NUMBER_OR_NULL, .required = true, .help = "the cursor of the next page; null: this is the last",
     .whole = true},
    END,
};
const shape_info shape_copies = {"Copies", "A page of the copies of a document.", copies_fields, false, false, NULL};

static const field histogram_fields[] = {
    {"count", ANY_NUMBER, .required = true, .help = "how many", .whole = true},
    {"sum", ANY_NUMBER, .required = true, .help = "of all values", .whole = true},
    {"buckets", ANY_ARRAY, .required = true, .help = "the i-th counts those below 2^i, the last all others",
     .items = ANY_NUMBER},
    END,
};
static const shape_info shape_histogram = {"Histogram", "How often each size occurs.", histogram_fields, false, false,
                                           NULL};

#define COUNT(name_, help_) \
    { .name = name_, .kinds = ANY_NUMBER, .required = true, .help = help_, .whole = true }

static const field stats_fields[] = {
    {"index", ANY_STRING, .required = true, .help = "its name"},
    {"recipe", ANY_STRING, .required = true, .help = "how text becomes a fingerprint"},
    {"preset", STRING_OR_NULL, .required = true, .help = "what it was made with"},
    {"near", ANY_STRING, .required = true, .help = "how near content is defined", .choices = "distance|similarity"},
    {"similarity", ANY_NUMBER, .required = true, .help = "of at least"},
    {"sample", NUMBER_OR_NULL, .required = true, .help = "hashes that are kept of a document; null: all",
     .whole = true},
    COUNT("distance", "of at most this many bits"),
    COUNT("minWords", "documents with fewer are near only if their words are the same"),
    {"titles", ANY_BOOL, .required = true, .help = "whether titles count"},
    {"titleSimilarity", ANY_NUMBER, .required = true, .help = "of at least"},
    {"titleVeto", ANY_BOOL, .required = true, .help = "whether very unlike contents outweigh a title"},
    {"keepText", ANY_BOOL, .required = true, .help = "whether texts are kept"},
    {"fields", ANY_ARRAY, .required = true, .help = "that are kept", .items = ANY_STRING},
    {"onDuplicate", ANY_STRING, .required = true, .help = "what is done with copies", .choices = "skip|link|store"},
    {"onSameUrl", ANY_STRING, .required = true, .help = "how other text at a known URL is treated",
     .choices = "duplicate|refresh"},
    {"ttl", NUMBER_OR_NULL, .required = true, .help = "seconds; null: for ever", .whole = true},
    {"durability", ANY_STRING, .required = true, .help = "when an add is acknowledged", .choices = "none|batch|each"},
    COUNT("documents", "originals"),
    COUNT("copies", "linked or stored"),
    COUNT("titlesKnown", "titles that are indexed"),
    {"duplicatesBy", ANY_OBJECT, .required = true, .help = "all copies that were counted", .shape = &shape_by},
    {"oldest", STRING_OR_NULL, .required = true, .help = "when it was added"},
    {"newest", STRING_OR_NULL, .required = true, .help = "when it was added"},
    COUNT("diskBytes", "the file"),
    COUNT("freeBytes", "of it, free for reuse"),
    COUNT("memoryBytes", "the sum of the next three"),
    COUNT("keysBytes", "ids, URLs and digests"),
    COUNT("nearBytes", "fingerprints or signatures"),
    COUNT("titleBytes", "titles"),
    {"plan", ANY_STRING, .required = true, .help = "the layout of the index"},
    COUNT("last", "the last number that was given"),
    COUNT("checks", "since the index was opened, as are all figures below"),
    COUNT("adds", "documents that were sent to be added"),
    COUNT("removes", "documents that were removed by request"),
    COUNT("expired", "documents that were removed because they had expired"),
    COUNT("damaged", "records that could not be read"),
    COUNT("commits", "writes to disk"),
    COUNT("failedCommits", "writes that failed"),
    {"verdictsBy", ANY_OBJECT, .required = true, .help = "of checks and adds", .shape = &shape_by},
    {"checkTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"addTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"commitTime", ANY_OBJECT, .required = true, .help = "microseconds", .shape = &shape_histogram},
    {"candidates", ANY_OBJECT, .required = true, .help = "per check or add", .shape = &shape_histogram},
    {"distances", ANY_OBJECT, .required = true, .help = "of duplicates by content", .shape = &shape_histogram},
    {"openSeconds", ANY_NUMBER, .required = true, .help = "that opening took"},
    {"uptimeSeconds", ANY_NUMBER, .required = true, .help = "of the server"},
    {"version", ANY_STRING, .required = true, .help = "of the server"},
    END,
};
const shape_info shape_stats = {"Stats", "What an index holds, and what it has done.", stats_fields, false, false,
                                NULL};

static const field history_point_fields[] = {
    {"time", ANY_STRING, .required = true, .help = "when it begins"},
    COUNT("seconds", "how many of its seconds the index was open"),
    COUNT("checks", "in this time"),
    COUNT("adds", "in this time"),
    {"verdictsBy", ANY_OBJECT, .required = true, .help = "of checks and adds", .shape = &shape_by},
    COUNT("documents", "originals, at its end"),
    COUNT("copies", "linked or stored, at its end"),
    END,
};
static const shape_info shape_history_point = {
    "HistoryPoint", "What an index did in one step.", history_point_fields, false, false, NULL};

static const field history_fields[] = {
    {"index", ANY_STRING, .required = true, .help = "its name"},
    {"stored", ANY_BOOL, .required = true, .help = "whether it survives a restart of the server"},
    COUNT("step", "minutes per point"),
    {"points", ANY_ARRAY, .required = true, .help = "the oldest first", .shape = &shape_history_point},
    END,
};
const shape_info shape_history = {"History", "What an index did in the last day.", history_fields, false, false, NULL};

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
const shape_info shape_index = {"Index", "An index.", index_fields, false, false, NULL};
static const field indexes_fields[] = {
    {"indexes", ANY_ARRAY, .required = true, .help = "the default one first", .shape = &shape_index}, END};
const shape_info shape_indexes = {"Indexes", "All indexes.", indexes_fields, false, false, NULL};

static const field backup_fields[] = {
    {"name", ANY_STRING, .required = true, .help = "the folder, below that of backups"},
    COUNT("bytes", "of the file"),
    END,
};
const shape_info shape_backup = {"Backup", "A whole copy of an index.", backup_fields, false, false, NULL};

static const field health_fields[] = {
    {"status", ANY_STRING, .required = true, .help = "its state", .choices = "ok|ready|stopping"}, END};
const shape_info shape_health = {"Health", "The state of the server.", health_fields, false, false, NULL};

static const field removed_fields[] = {
    {"id", ANY_STRING, .help = "of the document"},
    {"name", ANY_STRING, .help = "of the index"},
    {"removed", ANY_BOOL, .required = true, .help = "always true"},
    END,
};
const shape_info shape_removed = {"Removed", "What was removed.", removed_fields, false, false, NULL};

static const field done_fields[] = {
    {"expired", ANY_NUMBER, .help = "documents that were removed", .whole = true},
    {"compacted", ANY_BOOL, .help = "always true"},
    END,
};
const shape_info shape_done = {"Done", "What was done.", done_fields, false, false, NULL};

static const field session_fields[] = {
    {"tokens", ANY_BOOL, .required = true, .help = "whether requests need a token"},
    {"name", STRING_OR_NULL, .required = true, .help = "of the token; null: none is required"},
    {"right", ANY_STRING, .required = true, .help = "what it may do; each right includes those before it",
     .choices = "read|write|admin"},
    END,
};
const shape_info shape_session = {"Session", "The rights of the caller.", session_fields, false, false, NULL};

#define RUN_NUMBER COUNT("number", "its place among the documents of the file, from 0")

static const field run_copy_fields[] = {
    RUN_NUMBER,
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"title", ANY_STRING, .required = true, .help = "its title, or how its text begins"},
    {"similarity", ANY_NUMBER, .required = true, .help = "to the kept document"},
    END,
};
static const shape_info shape_run_copy = {"RunCopy", "A removed document.", run_copy_fields, false, false, NULL};

static const field run_group_fields[] = {
    RUN_NUMBER,
    {"id", ANY_STRING, .required = true, .help = "of the kept document"},
    {"title", ANY_STRING, .required = true, .help = "its title, or how its text begins"},
    COUNT("size", "documents, including the kept one"),
    {"copies", ANY_ARRAY, .required = true, .help = "the first of the removed ones, 6 unless asked otherwise",
     .shape = &shape_run_copy},
    END,
};
static const shape_info shape_run_group = {
    "RunGroup", "Near documents, of which one is kept.", run_group_fields, false, false, NULL};

static const field run_threshold_fields[] = {
    {"similarity", ANY_NUMBER, .required = true, .help = "the threshold"},
    COUNT("removed", "documents that are not kept"),
    END,
};
static const shape_info shape_run_threshold = {
    "RunThreshold", "What a threshold would remove.", run_threshold_fields, false, false, NULL};

static const field run_field_fields[] = {
    {"name", ANY_STRING, .required = true, .help = "its name"},
    COUNT("meanBytes", "the mean length of its values that are strings, in the first records"),
    END,
};
static const shape_info shape_run_field = {
    "RunField", "A field of the records of a file.", run_field_fields, false, false, NULL};

static const field run_unread_fields[] = {
    {"file", ANY_STRING, .required = true, .help = "its name, as in ids; a long one is cut"},
    {"line", NUMBER_OR_NULL, .required = true, .help = "of a record: its line or number; null: the file",
     .whole = true},
    {"why", ANY_STRING, .required = true, .help = "the reason"},
    {"commandMayRead", ANY_BOOL, .required = true,
     .help = "whether doppel dedup may be able to read it: the server has limits, and runs no programs for PDF"},
    END,
};
static const shape_info shape_run_unread = {
    "RunUnread", "A file or record that could not be read.", run_unread_fields, false, false, NULL};

#define RUN_COUNTS                                                                                   \
    COUNT("kept", "documents that are kept"), COUNT("removed", "documents that are removed"),        \
        COUNT("identical", "removed documents whose words are the same as those of their original"), \
        COUNT("groups", "of two or more documents")

static const field run_members[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"name", ANY_STRING, .required = true, .help = "of the file"},
    {"state", ANY_STRING, .required = true, .help = "what the server is doing with it",
     .choices = "receiving|analysing|done|failed"},
    {"why", STRING_OR_NULL, .required = true, .help = "it failed"},
    {"archive", ANY_BOOL, .required = true, .help = "whether it was sent as an archive of several files"},
    {"inputs", ANY_ARRAY, .required = true,
     .help = "what is read: the name of the file, or the files and folders at the top of the archive, as doppel dedup "
             "would be given them",
     .items = ANY_STRING},
    {"keptFormat", ANY_STRING, .required = true,
     .help = "of the file of kept documents: rows of CSV or TSV, or a record per line", .choices = "jsonl|csv|tsv"},
    COUNT("version", "grows with every change"),
    COUNT("received", "bytes of the file or files so far, decompressed"),
    {"similarity", ANY_NUMBER, .required = true, .help = "near: of at least this similarity"},
    {"textKey", STRING_OR_NULL, .required = true, .help = "the field that has the text; null: text or html"},
    {"idKey", STRING_OR_NULL, .required = true, .help = "the field that has the id; null: id"},
    {"fields", ANY_ARRAY, .required = true,
     .help = "of the first records of JSON, CSV and TSV; names with escapes are left out", .shape = &shape_run_field},
    {"longestField", STRING_OR_NULL, .required = true,
     .help = "the one of these with the longest values, often the text; null: none has long values"},
    {"expires", STRING_OR_NULL, .required = true, .help = "when it is deleted"},
    COUNT("documents", "that were analysed so far"),
    COUNT("empty", "of these, those without words, which are never copies"),
    COUNT("bad", "records and files that could not be read"),
    {"whole", ANY_BOOL, .required = true, .help = "whether these are all documents of the file"},
    RUN_COUNTS,
    {"thresholds", ANY_ARRAY, .required = true,
     .help = "in steps of 0.01, from 0.5 or the run's own similarity on; lower ones are left out where very many pairs "
             "of documents are that similar, except the run's own",
     .shape = &shape_run_threshold},
    {"largest", ANY_ARRAY, .required = true, .help = "the largest groups", .shape = &shape_run_group},
    {"unread", ANY_ARRAY, .required = true,
     .help = "files and records that could not be read: up to 100 that were not stored, and the first 100 others",
     .shape = &shape_run_unread},
    END,
};
const shape_info shape_run = {"Run", "A file that is deduplicated.", run_members, false, false, NULL};

static const field run_groups_fields[] = {
    {"similarity", ANY_NUMBER, .required = true, .help = "the threshold"},
    COUNT("documents", "that were analysed so far"),
    RUN_COUNTS,
    {"largest", ANY_ARRAY, .required = true,
     .help = "the groups, the largest first; those of the same size in the order of their kept documents",
     .shape = &shape_run_group},
    {"next", NUMBER_OR_NULL, .required = true, .help = "the cursor of the next page; null: this is the last",
     .whole = true},
    END,
};
const shape_info shape_run_groups = {
    "RunGroups", "The groups of a run at a threshold.", run_groups_fields, false, false, NULL};

static const field run_document_fields[] = {
    {"similarity", ANY_NUMBER, .required = true, .help = "the threshold"},
    RUN_NUMBER,
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"title", STRING_OR_NULL, .required = true,
     .help = "its title, or how its text begins; null: it is near no other document, so its title was not kept"},
    {"kept", ANY_BOOL, .required = true, .help = "whether it is kept"},
    {"originalId", STRING_OR_NULL, .required = true, .help = "of a removed one: the kept document it is a copy of"},
    {"originalNumber", NUMBER_OR_NULL, .required = true, .help = "of a removed one: the number of that document",
     .whole = true},
    {"reason", STRING_OR_NULL, .required = true, .help = "of a removed one: why", .choices = REASONS},
    {"originalSimilarity", NUMBER_OR_NULL, .required = true, .help = "of a removed one: to that document"},
    {"group", ANY_OBJECT, .help = "its group, if it is in one", .shape = &shape_run_group},
    END,
};
const shape_info shape_run_document = {
    "RunDocument", "What is decided about a document of a run.", run_document_fields, false, false, NULL};

static const field listed_run_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"name", ANY_STRING, .required = true, .help = "of the file"},
    {"state", ANY_STRING, .required = true, .help = "what the server is doing with it",
     .choices = "receiving|analysing|done|failed"},
    COUNT("received", "bytes of the file, decompressed"),
    COUNT("documents", "that were analysed so far"),
    COUNT("removed", "of these, those that are removed"),
    {"created", STRING_OR_NULL, .required = true, .help = "when its upload began"},
    {"expires", STRING_OR_NULL, .required = true, .help = "when it is deleted"},
    END,
};
static const shape_info shape_listed_run = {"ListedRun", "A run, in brief.", listed_run_fields, false, false, NULL};

static const field runs_fields[] = {
    {"runs", ANY_ARRAY, .required = true, .help = "the latest first", .shape = &shape_listed_run},
    COUNT("most", "runs that the server holds at most (--max-runs)"),
    END,
};
static const field read_document_fields[] = {
    {"id", ANY_STRING, .required = true, .help = "its id; without one, the name of the file, or NAME:LINE of a record"},
    {"url", STRING_OR_NULL, .required = true, .help = "its URL"},
    {"title", STRING_OR_NULL, .required = true, .help = "its title"},
    {"text", STRING_OR_NULL, .required = true, .help = "its text; null: it is a page"},
    {"html", STRING_OR_NULL, .required = true, .help = "its page; null: it is a text"},
    END,
};
static const shape_info shape_read_document = {
    "ReadDocument", "A document of a file.", read_document_fields, false, false, NULL};

static const field records_fields[] = {
    {"documents", ANY_ARRAY, .required = true, .help = "the first ones", .shape = &shape_read_document},
    {"more", ANY_BOOL, .required = true, .help = "whether the file has more of them"},
    {"unread", ANY_ARRAY, .required = true, .help = "up to 100 records that could not be read",
     .shape = &shape_run_unread},
    END,
};
const shape_info shape_records = {"Records", "The documents of a file.", records_fields, false, false, NULL};

const shape_info shape_runs = {"Runs", "All runs.", runs_fields, false, false, NULL};

static const field run_text_fields[] = {
    RUN_NUMBER,
    {"id", ANY_STRING, .required = true, .help = "its id"},
    {"title", ANY_STRING, .required = true, .help = "its title, or how its text begins"},
    {"text", ANY_STRING, .required = true, .help = "its text, up to 16 KiB"},
    {"cut", ANY_BOOL, .required = true, .help = "whether the text is longer"},
    END,
};
static const shape_info shape_run_text = {"RunText", "A document of a run.", run_text_fields, false, false, NULL};

static const field run_example_fields[] = {
    {"similarity", ANY_NUMBER, .required = true, .help = "of the two"},
    {"a", ANY_OBJECT, .required = true, .help = "the earlier one", .shape = &shape_run_text},
    {"b", ANY_OBJECT, .required = true, .help = "the later one", .shape = &shape_run_text},
    END,
};
static const shape_info shape_run_example = {"RunExample", "Two near documents.", run_example_fields, false, false,
                                             NULL};

static const field run_pair_fields[] = {
    {"a", ANY_OBJECT, .required = true, .help = "one document", .shape = &shape_run_text},
    {"b", ANY_OBJECT, .required = true, .help = "the other", .shape = &shape_run_text},
    END,
};
const shape_info shape_run_pair = {"RunPair", "Two documents of a run.", run_pair_fields, false, false, NULL};

static const field run_examples_fields[] = {
    {"examples", ANY_ARRAY, .required = true, .help = "the least similar first", .shape = &shape_run_example}, END};
const shape_info shape_run_examples = {"RunExamples", "Pairs at a threshold.", run_examples_fields, false, false, NULL};

static const field problem_fields[] = {
    {"type", ANY_STRING, .required = true, .help = "urn:doppel:problem:NAME"},
    {"title", ANY_STRING, .required = true, .help = "what kind of problem"},
    COUNT("status", "of the answer"),
    {"detail", ANY_STRING, .required = true, .help = "what is wrong"},
    {"pointer", ANY_STRING, .help = "where in the body (RFC 6901)"},
    {"line", ANY_NUMBER, .help = "of a batch, from 1", .whole = true},
    {"position", ANY_NUMBER, .help = "in the body or line, in bytes, from 1", .whole = true},
    END,
};
const shape_info shape_problem = {"Problem", "What went wrong.", problem_fields, false, false, NULL};

static const field line_fields[] = {
    {"line", ANY_NUMBER, .help = "of the body, from 1, with a problem", .whole = true},
    {"lastLine", ANY_NUMBER, .help = "the problem applies to all lines up to this one", .whole = true},
    {"problem", ANY_OBJECT, .help = "why there is no verdict", .shape = &shape_problem},
    END,
};
const shape_info shape_line = {"Line", "A verdict, or a line with its problem.", line_fields, true, false, NULL};

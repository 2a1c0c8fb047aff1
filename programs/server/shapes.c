/* shapes.c - the shapes of bodies, field by field. */
#include "server/routes.h"

#define SHARE .most = 1
#define END \
    { .name = NULL }

enum { STRING_OR_NULL = ANY_STRING | OR_NULL, NUMBER_OR_NULL = ANY_NUMBER | OR_NULL };

static const field document_fields[] = {
    {"id", ANY_STRING | ANY_NUMBER | OR_NULL,
     .help = "its id; if there is none, an add makes one of the URL or the text"},
    {"url", STRING_OR_NULL, .help = "its address"},
    {"title", STRING_OR_NULL, .help = "its title"},
    {"text", STRING_OR_NULL, .help = "its text"},
    {"html", STRING_OR_NULL, .help = "its page, where there is no text"},
    {"ttl", NUMBER_OR_NULL, .help = "seconds that it is remembered; 0: as the index has it", .most = 1e11,
     .whole = true},
    END,
};
const shape_info shape_document = {
    "Document", "A document: at least one of url, title, text and html; and the fields that the index keeps.",
    document_fields, false, true};

static const field side_fields[] = {
    {"text", STRING_OR_NULL, .help = "a text"},
    {"html", STRING_OR_NULL, .help = "a page, where there is no text"},
    END,
};
static const shape_info shape_side = {"Side", "One side of a comparison.", side_fields, false, false};

static const field comparison_fields[] = {
    {"a", ANY_OBJECT, .required = true, .help = "the one", .shape = &shape_side},
    {"b", ANY_OBJECT, .required = true, .help = "the other", .shape = &shape_side},
    {"recipe", ANY_STRING, .help = "page (the default), article, literal or a text form"},
    {"minWords", ANY_NUMBER, .help = "shared passages have at least so many words (5)", .least = 1, .most = 1e6,
     .whole = true},
    END,
};
const shape_info shape_comparison = {"Comparison", "Two texts or pages.", comparison_fields, false, false};

static const field result_fields[] = {
    {"id", ANY_STRING | ANY_NUMBER | OR_NULL, .help = "its id"},
    {"url", STRING_OR_NULL, .help = "its address"},
    {"title", STRING_OR_NULL, .help = "its title"},
    {"text", STRING_OR_NULL, .help = "its text, or a snippet"},
    {"html", STRING_OR_NULL, .help = "its page, where there is no text"},
    END,
};
static const shape_info shape_result = {"Result", "A search result; other fields travel along.", result_fields, true,
                                        false};

static const field results_fields[] = {
    {"results", ANY_ARRAY, .required = true, .help = "in the order they would be shown", .shape = &shape_result},
    END,
};
const shape_info shape_results = {"Results", "Search results.", results_fields, false, false};

static const field index_options_fields[] = {
    {"preset", ANY_STRING, .help = "what the rest follows from (general)", .choices = "general|crawl|article"},
    {"recipe", ANY_STRING, .help = "how text becomes a fingerprint"},
    {"near", ANY_STRING, .help = "what near content is", .choices = "distance|similarity"},
    {"similarity", ANY_NUMBER, .help = "of at least this similarity; means near similarity", SHARE},
    {"distance", ANY_NUMBER, .help = "fingerprints differ in at most so many bits; means near distance", .most = 64,
     .whole = true},
    {"sample", ANY_NUMBER,
     .help = "near similarity: of a document's hashes so many are kept, 16 to 4096, and the similarity is estimated by "
             "them",
     .most = 4096, .whole = true},
    {"minWords", ANY_NUMBER, .help = "documents with fewer words are near only if their words are the same",
     .most = 1e6, .whole = true},
    {"titles", ANY_BOOL, .help = "whether a similar title makes a duplicate"},
    {"titleSimilarity", ANY_NUMBER, .help = "how similar", SHARE},
    {"titleVeto", ANY_BOOL,
     .help = "whether contents with less than half of `similarity` in common outweigh a title; near by similarity "
             "only"},
    {"keepText", ANY_BOOL, .help = "whether texts are kept"},
    {"fields", ANY_STRING, .help = "fields of documents that are kept, divided by commas (source,date)"},
    {"onDuplicate", ANY_STRING, .help = "what is done with copies", .choices = "skip|link|store"},
    {"onSameUrl", ANY_STRING, .help = "what other text at a known URL is", .choices = "duplicate|refresh"},
    {"durability", ANY_STRING, .help = "when an add is acknowledged", .choices = "none|batch|each"},
    {"ttl", ANY_NUMBER, .help = "seconds that a document is remembered", .most = 1e11, .whole = true},
    END,
};
const shape_info shape_index_options = {"IndexOptions", "What an index is made with.", index_options_fields, false,
                                        false};

static const field no_fields[] = {END};
const shape_info shape_backup_options = {"Nothing", "An empty object.", no_fields, false, false};

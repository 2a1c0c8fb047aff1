/* routes.c - the table of routes, and how the route of a path is found. */
#include "server/routes.h"

#include "server/service.h"

#include <string.h>

const char *const right_names[] = {"", "read", "write", "admin"};
const char *const method_names[] = {"GET", "POST", "PUT", "DELETE", NULL};

#define LIMIT(otherwise_, most_) \
    { .name = "limit", .help = "at most this many", .otherwise = otherwise_, .least = 1, .most = most_, .whole = true }
#define SIMILARITY \
    { .name = "similarity", .help = "more similar than this", .otherwise = "0.85", .most = 1 }
#define DISTANCE                                                                                                 \
    {                                                                                                            \
        .name = "distance", .help = "instead of similarity: fingerprints that differ in at most this many bits", \
        .most = 128, .whole = true                                                                               \
    }
#define CURSOR \
    { .name = "cursor", .help = "`next` of the previous page", .least = 1, .most = NUMBER_MOST, .whole = true }
#define NO_DOCUMENT \
    { 404, &shape_problem, "there is no such document" }
#define NO_RUN \
    { 404, &shape_problem, "there is no such run" }
#define RUN_NOT_DONE \
    { 409, &shape_problem, "it is not done yet, or it failed" }
#define RUN_SIMILARITY \
    { .name = "similarity", .help = "the threshold (default: that of the run)", .least = 0.1, .most = 1 }
#define TEXT_KEY                                                                                                       \
    {                                                                                                                  \
        .name = "textKey", .help = "the field with the text (default text); several, separated by commas, are joined", \
        .example = "body", .least = 1, .most = 255                                                                     \
    }
#define COPIES                                                                                                         \
    {                                                                                                                  \
        .name = "copies", .help = "at most this many copies of each group", .otherwise = "6", .most = RUN_COPIES_MOST, \
        .whole = true                                                                                                  \
    }
#define ID_KEY \
    { .name = "idKey", .help = "the field with the id (default id)", .example = "key", .least = 1, .most = 255 }
#define NO_INDEXES \
    { 501, &shape_problem, "the server has no folder of indexes" }

const route_info routes[] = {
    {"POST", "/v1/check", "Check a document", "Says whether it was seen before; changes nothing.", RIGHT_READ,
     BODY_JSON, &shape_document, true, DISPATCH_HERE, handle_check, .operation = "checkDocument", .tag = "documents",
     .example = {"/v1/check", "{\"text\":\"After eleven years the ferry is back in the old harbour.\"}",
                 "{\"id\":\"bac5d1305fb8ecd1\",\"isDuplicate\":false,\"confidence\":0,\"reason\":null,\"originalId\":"
                 "null,...}"},
     .answers = {{200, &shape_verdict, "the verdict"}}},
    {"POST", "/v1/documents", "Add a document",
     "Checks and adds in one step: of any number of copies sent at the same time, exactly one is new. Answered once "
     "the "
     "document is on disk. With the header Idempotency-Key an add can be repeated: it gets the first answer again.",
     RIGHT_WRITE, BODY_JSON, &shape_document, true, DISPATCH_ADD, handle_add, .operation = "addDocument",
     .tag = "documents",
     .example = {"/v1/documents",
                 "{\"id\":\"ferry\",\"url\":\"https://paper.example/ferry\",\"title\":\"The ferry "
                 "returns\",\"text\":\"After eleven years the ferry is back in the old harbour.\"}",
                 "{\"id\":\"ferry\",\"isDuplicate\":false,...}"},
     .answers = {{201, &shape_verdict, "it is new"},
                 {200, &shape_verdict, "it is a duplicate, or known by this id"},
                 {409, &shape_problem, "an add with the same Idempotency-Key is in progress"},
                 {422, &shape_problem, "the Idempotency-Key was used with another body"}}},
    {"GET", "/v1/documents", "List the documents",
     "In the order they were added, a page at a time: repeat with cursor=next until next is null. A page has "
     "fewer documents than limit, or none, when few match or when they are large. With title, lists the originals with "
     "a similar title instead, most similar first.",
     RIGHT_READ, BODY_NONE, NULL, true, DISPATCH_WORKER, handle_list,
     .parameters = {LIMIT("100", 1000),
                    CURSOR,
                    {.name = "kind",
                     .help = "originals, copies that are linked or stored, or both",
                     .choices = "all|originals|copies",
                     .otherwise = "all"},
                    {.name = "host",
                     .help = "those whose URL has this host, or one below it",
                     .example = "example.org",
                     .least = 1,
                     .most = 255},
                    {.name = "title",
                     .help = "those with a similar title, as a check compares titles; nothing is counted",
                     .example = "The ferry returns to the harbour",
                     .least = 1,
                     .most = 4096}},
     .operation = "listDocuments", .tag = "documents",
     .example = {"/v1/documents?kind=originals&limit=2", NULL,
                 "{\"documents\":[{\"id\":\"ferry\",...}],\"next\":null}"},
     .answers = {{200, &shape_listed, "a page of them"}}},
    {"GET", "/v1/documents/{id}", "Get a document", "By its id or, if no document has this id, by its URL.", RIGHT_READ,
     BODY_NONE, NULL, true, DISPATCH_HERE, handle_get, .operation = "getDocument", .tag = "documents",
     .example = {"/v1/documents/https%3A%2F%2Fpaper.example%2Fferry", NULL,
                 "{\"id\":\"ferry\",...,\"text\":\"After eleven years the ferry is back in the old harbour.\"}"},
     .answers = {{200, &shape_stored, "the document"}, NO_DOCUMENT}},
    {"POST", "/v1/batch", "Check or add many documents",
     "One document per line (NDJSON), processed as they arrive; one verdict or problem per line, in order. Unknown "
     "fields are ignored, as by doppel add. A bad line does not stop the others; after 1,000 of them, consecutive bad "
     "lines are answered by one line, with lastLine. "
     "Added documents are durable when they are answered. An answer that gets too long ends with a problem of type "
     "cut, and one for which the server has no room with a problem of type no-memory; its line is the first that was "
     "not processed: send the rest in another batch.",
     RIGHT_READ, BODY_LINES, &shape_record, true, DISPATCH_WORKER, handle_batch, "application/x-ndjson",
     .parameters =
         {{.name = "op", .help = "what to do; add needs the right write", .choices = "check|add", .required = true}},
     .operation = "processBatch", .tag = "documents",
     .example = {"/v1/batch?op=add",
                 "{\"id\":\"again\",\"text\":\"After eleven years the ferry is back in the old "
                 "harbour!\"}\n{\"id\":\"bridge\",\"text\":\"The bridge over the river is closed for a week from "
                 "Monday on.\"}\n",
                 "{\"id\":\"again\",\"isDuplicate\":true,\"confidence\":1,\"reason\":\"content_hash\",\"originalId\":"
                 "\"ferry\",...}\n{\"id\":\"bridge\",\"isDuplicate\":false,...}"},
     .answers = {{200, &shape_line, "one line each"}}},
    {"GET", "/v1/documents/{id}/copies", "List the copies of a document",
     "Those that the index remembers (onDuplicate link or store), in the order they were added, with or without a URL; "
     "of a copy, those of its original. `duplicates` of the document counts every copy, remembered or not.",
     RIGHT_READ, BODY_NONE, NULL, true, DISPATCH_WORKER, handle_copies, .parameters = {LIMIT("100", 1000), CURSOR},
     .operation = "listCopies", .tag = "documents",
     .example = {"/v1/documents/ferry/copies", NULL,
                 "{\"original\":\"ferry\",\"documents\":[{\"id\":\"again\",...,\"originalId\":\"ferry\",...}],\"next\":"
                 "null}"},
     .answers = {{200, &shape_copies, "a page of them"}, NO_DOCUMENT}},
    {"GET", "/v1/documents/{id}/similar", "Find documents similar to a stored one", "Originals only.", RIGHT_READ,
     BODY_NONE, NULL, true, DISPATCH_WORKER, handle_similar, .parameters = {LIMIT("10", 1000), SIMILARITY, DISTANCE},
     .operation = "findSimilarToDocument", .tag = "documents",
     .example = {"/v1/documents/bridge/similar?similarity=0.5", NULL, "{\"results\":[]}"},
     .answers = {{200, &shape_similar, "what was found"}, NO_DOCUMENT}},
    {"POST", "/v1/similar", "Find documents similar to a text or page",
     "Originals only. A url without text or html stands for the stored document with this URL.", RIGHT_READ, BODY_JSON,
     &shape_document, true, DISPATCH_WORKER, handle_similar_to, .parameters = {LIMIT("10", 1000), SIMILARITY, DISTANCE},
     .operation = "findSimilar", .tag = "documents",
     .example = {"/v1/similar?similarity=0.5&limit=3",
                 "{\"text\":\"After eleven years the ferry is back in the old harbour today.\"}",
                 "{\"results\":[{\"id\":\"ferry\",\"similarity\":0.875,...}]}"},
     .answers = {{200, &shape_similar, "what was found"}, NO_DOCUMENT}},
    {"DELETE", "/v1/documents/{id}", "Remove a document",
     "Its copies are removed with it. Removing a copy leaves the duplicates of its original as they are.", RIGHT_WRITE,
     BODY_NONE, NULL, true, DISPATCH_WORKER, handle_remove, .operation = "removeDocument", .tag = "documents",
     .example = {"/v1/documents/bridge", NULL, "{\"id\":\"bridge\",\"removed\":true}"},
     .answers = {{200, &shape_removed, "it is deleted"}, NO_DOCUMENT}},
    {"POST", "/v1/dedupe", "Fold near-copies among search results",
     "In the order given, a result is shown unless it is near an earlier shown one. Nothing is stored.", RIGHT_READ,
     BODY_JSON, &shape_results, false, DISPATCH_WORKER, handle_dedupe,
     .parameters = {{.name = "similarity",
                     .help = "near: of at least this similarity",
                     .otherwise = "0.8",
                     .least = 0.01,
                     .most = 1}},
     .operation = "foldResults", .tag = "comparing",
     .example = {"/v1/dedupe?similarity=0.8",
                 "{\"results\":[{\"id\":1,\"text\":\"The ferry is back in the old harbour.\"},{\"id\":2,\"text\":\"The "
                 "ferry is back in the old harbour!\"}]}",
                 "{\"results\":[{\"id\":1,...,\"folded\":[{\"id\":2,...}]}]}"},
     .answers = {{200, &shape_folded, "those to show"}}},
    {"POST", "/v1/compare", "Compare two texts or pages", "Every measure, and the passages they share.", RIGHT_READ,
     BODY_JSON, &shape_comparison, false, DISPATCH_WORKER, handle_compare, .operation = "compareTexts",
     .tag = "comparing",
     .example = {"/v1/compare",
                 "{\"a\":{\"text\":\"The ferry is back in the old harbour.\"},\"b\":{\"text\":\"The ferry is back in "
                 "the new harbour.\"}}",
                 "{...,\"similarity\":0.3333333333333333,...,\"passages\":[{...,\"words\":6}]}"},
     .answers = {{200, &shape_compared, "the measures"}}},
    {"POST", "/v1/records", "Read the documents of a file",
     "As doppel dedup reads them: text, HTML, .docx, JSONL, JSON, CSV, TSV, WARC, mbox, detected by the extension of "
     "name or the first bytes; gzip, zstd, bzip2 and xz are decompressed. Nothing is stored. A file that cannot be "
     "read is a problem that says why. A page has html in place of text; /v1/compare and /v1/check take either.",
     RIGHT_READ, BODY_SMALL_FILE, NULL, false, DISPATCH_WORKER, handle_read_file,
     .parameters = {{.name = "name", .help = "of the file", .example = "note.txt", .least = 1, .most = 255},
                    {.name = "limit",
                     .help = "at most this many documents",
                     .otherwise = "10",
                     .least = 1,
                     .most = 1000,
                     .whole = true},
                    TEXT_KEY,
                    ID_KEY},
     .operation = "readFile", .tag = "comparing",
     .example = {"/v1/records?name=note.txt", "The ferry is back in the old harbour.\n",
                 "{\"documents\":[{\"id\":\"note.txt\",...,\"text\":\"The ferry is back in the old "
                 "harbour.\\n\",\"html\":null}],\"more\":false,\"unread\":[]}"},
     .answers = {{200, &shape_records, "the documents"}}},
    {"GET", "/v1/groups", "List the largest groups", "Originals with the most copies.", RIGHT_READ, BODY_NONE, NULL,
     true, DISPATCH_WORKER, handle_groups, .parameters = {LIMIT("20", 1000)}, .operation = "listGroups",
     .tag = "documents",
     .example = {"/v1/groups?limit=1", NULL, "{\"groups\":[{\"id\":\"ferry\",...,\"duplicates\":1,...}]}"},
     .answers = {{200, &shape_groups, "the groups"}}},
    {"GET", "/v1/stats", "What an index holds and has done", "", RIGHT_READ, BODY_NONE, NULL, true, DISPATCH_HERE,
     handle_stats, .operation = "getStats", .tag = "indexes",
     .example = {"/v1/stats", NULL, "{\"index\":\"default\",...,\"documents\":1,\"copies\":1,...}"},
     .answers = {{200, &shape_stats, "figures"}}},
    {"GET", "/v1/history", "What an index did in the last day",
     "By the minute, or in steps of several minutes, the oldest first. Each point says for how many of its seconds the "
     "index was open; a step in which it was not has no point. The history of an index folder is written to the "
     "folder every minute in which something was done, every ten minutes otherwise, and when the server ends: it "
     "survives restarts. That of a shared store covers this server only, and is lost when the server ends.",
     RIGHT_READ, BODY_NONE, NULL, true, DISPATCH_HERE, handle_history,
     .parameters = {{.name = "step",
                     .help = "minutes per point; points begin at multiples of this, counted from 1970",
                     .otherwise = "1",
                     .least = 1,
                     .most = HISTORY_MINUTES,
                     .whole = true},
                    {.name = "minutes",
                     .help = "how many minutes to go back",
                     .otherwise = "1440",
                     .least = 1,
                     .most = HISTORY_MINUTES,
                     .whole = true}},
     .operation = "getHistory", .tag = "indexes",
     .example = {"/v1/history?step=60", NULL,
                 "{\"index\":\"default\",\"stored\":true,\"step\":60,\"points\":[{\"time\":...}]}"},
     .answers = {{200, &shape_history, "the points"}}},
    {"POST", "/v1/expire", "Remove expired documents", "Happens automatically every minute while documents are added.",
     RIGHT_WRITE, BODY_JSON_OPTIONAL, &shape_backup_options, true, DISPATCH_WORKER, handle_expire,
     .operation = "removeExpired", .tag = "indexes", .example = {"/v1/expire", NULL, "{\"expired\":0}"},
     .answers = {{200, &shape_done, "how many"}}},
    {"POST", "/v1/compact", "Compact an index", "Makes its file as small as possible; the index stays in use.",
     RIGHT_ADMIN, BODY_JSON_OPTIONAL, &shape_backup_options, true, DISPATCH_WORKER, handle_compact,
     .operation = "compactIndex", .tag = "indexes", .example = {"/v1/compact", NULL, "{\"compacted\":true}"},
     .answers = {{200, &shape_done, "done"}}},
    {"POST", "/v1/backups", "Back up an index",
     "Writes a complete copy to a new folder below that of --backups; the index stays in use.", RIGHT_ADMIN,
     BODY_JSON_OPTIONAL, &shape_backup_options, true, DISPATCH_WORKER, handle_backup, .operation = "backUpIndex",
     .tag = "indexes", .example = {"/v1/backups", NULL, "{\"name\":\"default-...\",\"bytes\":...}"},
     .answers = {{201, &shape_backup, "where it is"},
                 {501, &shape_problem,
                  "the server was started without a folder for backups, or the index does not support them"}}},
    {"POST", "/v1/runs", "Deduplicate a file or a folder",
     "The file is analysed while it arrives, and nothing is added to an index. Takes any format that doppel dedup "
     "reads, "
     "detected by the extension of name, by a Content-Type of CSV or TSV, or by the first bytes; gzip, zstd, bzip2 and "
     "xz are decompressed. A document without an id is NAME:LINE. Several files, or a folder, are sent as a tar "
     "archive "
     "(Content-Type: application/x-tar): each is read as in a folder, ids have the names in the archive, and what "
     "cannot "
     "be read is in `unread`; tar -cf - essays | curl -f -T - -X POST -H 'Content-Type: application/x-tar' "
     "'localhost:7700/v1/runs?answer=kept' gives what doppel dedup essays writes. The run is deleted after an hour "
     "(--run-ttl), when "
     "its "
     "upload breaks off, and, where another file needs its place, once it is finished and has not been requested for a "
     "minute (--run-idle). To watch a run while its file is sent, choose its id. With answer, one request does it all: "
     "it waits for the analysis, answers with the file that GET /v1/runs/{id}/kept or /removed gives, and deletes the "
     "run: curl -f -T "
     "pages.jsonl -X POST -H 'Content-Type: application/octet-stream' "
     "'localhost:7700/v1/runs?name=pages.jsonl&answer=kept' -o kept.jsonl",
     RIGHT_WRITE, BODY_FILE, NULL, false, DISPATCH_WORKER, handle_create_run,
     .parameters = {{.name = "id",
                     .help = "of the run, 16 to 64 characters of a-z, 0-9 and - (default: a random one)",
                     .example = "5d1f8a0c6e2b4f97",
                     .pattern = "^[a-z0-9-]*$",
                     .least = RUN_ID_LEAST,
                     .most = RUN_ID},
                    {.name = "name", .help = "of the file", .example = "pages.jsonl", .least = 1, .most = 255},
                    {.name = "similarity",
                     .help = "near: of at least this similarity",
                     .otherwise = "0.8",
                     .least = 0.1,
                     .most = 1},
                    TEXT_KEY,
                    ID_KEY,
                    {.name = "answer",
                     .help = "wait for the analysis, and answer with the kept documents or the list of removed ones",
                     .choices = "kept|removed"}},
     .operation = "createRun", .tag = "runs",
     .example = {"/v1/runs?id=5d1f8a0c6e2b4f97&name=pages.jsonl&similarity=0.8",
                 "{\"id\":\"a\",\"text\":\"After eleven years the ferry is back in the old "
                 "harbour.\"}\n{\"id\":\"b\",\"text\":\"After eleven years the ferry is back in the old harbour!\"}\n",
                 "{\"id\":\"5d1f8a0c6e2b4f97\",\"name\":\"pages.jsonl\",...}"},
     .answers = {{201, &shape_run, "the file has arrived and is being analysed"},
                 {200, NULL, "with answer: the file", RUN_FILE_TYPES},
                 {404, &shape_problem, "it was deleted while its file arrived"},
                 {409, &shape_problem, "there is a run with this id; with answer: it failed"}}},
    {"GET", "/v1/runs", "List the runs", "The latest first.", RIGHT_WRITE, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_list_runs, .operation = "listRuns", .tag = "runs",
     .example = {"/v1/runs", NULL,
                 "{\"runs\":[{\"id\":\"5d1f8a0c6e2b4f97\",\"name\":\"pages.jsonl\",...}],\"most\":8}"},
     .answers = {{200, &shape_runs, "all runs"}}},
    {"GET", "/v1/runs/{id}/events", "Wait for a change of a run",
     "Answered as soon as the run has a higher version than after, at once when it is done or failed, and after 20 "
     "seconds in any case.",
     RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_WAIT, handle_run_events,
     .parameters =
         {{.name = "after", .help = "the version that is known", .otherwise = "0", .most = NUMBER_MOST, .whole = true}},
     .operation = "waitForRun", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/events?after=9", NULL,
                 "{\"id\":\"5d1f8a0c6e2b4f97\",...,\"state\":\"done\",...}"},
     .answers = {{200, &shape_run, "the run"}, NO_RUN}},
    {"GET", "/v1/runs/{id}", "Get a run", "What has been found so far; the beginning of the file is analysed first.",
     RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_HERE, handle_show_run, .operation = "getRun", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97", NULL,
                 "{...,\"documents\":2,\"empty\":0,\"bad\":0,\"whole\":true,\"kept\":1,\"removed\":1,...}"},
     .answers = {{200, &shape_run, "the run"}, NO_RUN}},
    {"GET", "/v1/runs/{id}/groups", "List the groups of a run at a threshold",
     "Largest first, a page at a time: repeat with cursor=next until next is null; `groups` counts all of them. "
     "A page has fewer groups than limit when they are large. Thresholds are hundredths, from the first of "
     "`thresholds` on; `similarity` of the answer is the one it is for.",
     RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_WORKER, handle_run_groups,
     .parameters = {RUN_SIMILARITY, LIMIT("24", RUN_GROUPS_MOST), CURSOR, COPIES}, .operation = "listRunGroups",
     .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/groups?similarity=0.9&limit=5", NULL, "{\"similarity\":0.9,...}"},
     .answers = {{200, &shape_run_groups, "the groups"}, NO_RUN}},
    {"GET", "/v1/runs/{id}/document", "Explain why a document of a run is removed",
     "Whether it is kept or removed at a threshold, which document it is a copy of, and its group. If several "
     "documents "
     "have this id, the first removed one.",
     RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_WORKER, handle_run_document,
     .parameters = {{.name = "id",
                     .help = "of the document; one without an id is NAME:LINE",
                     .example = "b",
                     .least = 1,
                     .most = 4096,
                     .required = true},
                    RUN_SIMILARITY,
                    COPIES},
     .operation = "getRunDocument", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/document?id=b", NULL,
                 "{...,\"id\":\"b\",...,\"kept\":false,\"originalId\":\"a\",\"originalNumber\":0,\"reason\":"
                 "\"content_hash\",\"originalSimilarity\":1,\"group\":{...,\"size\":2,...}}"},
     .answers = {{200, &shape_run_document, "what is decided"},
                 {404, &shape_problem, "there is no such run or document"}}},
    {"GET", "/v1/runs/{id}/examples", "Show pairs of documents near a threshold",
     "The pairs just below and just above it, with their texts.", RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_run_examples,
     .parameters = {RUN_SIMILARITY,
                    {.name = "limit",
                     .help = "at most this many on either side",
                     .otherwise = "2",
                     .least = 1,
                     .most = 10,
                     .whole = true}},
     .operation = "listRunExamples", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/examples?similarity=0.8", NULL, "{\"examples\":[]}"},
     .answers = {{200, &shape_run_examples, "the pairs"}, NO_RUN}},
    {"GET", "/v1/runs/{id}/pair", "Show two documents of a run",
     "With their texts, to compare them: documents of groups or of examples.", RIGHT_READ, BODY_NONE, NULL, false,
     DISPATCH_HERE, handle_run_pair,
     .parameters =
         {{.name = "a", .help = "`number` of one document", .otherwise = "0", .most = UINT32_MAX, .whole = true},
          {.name = "b", .help = "`number` of the other", .otherwise = "0", .most = UINT32_MAX, .whole = true}},
     .operation = "showRunPair", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/pair?a=0&b=1", NULL, "{\"a\":{\"number\":0,\"id\":\"a\",...},\"b\":{...}}"},
     .answers = {{200, &shape_run_pair, "both documents"}, {404, &shape_problem, "there is no such run or document"}}},
    {"GET", "/v1/runs/{id}/kept", "Get the kept documents",
     "As doppel dedup writes them: rows of CSV and TSV (by the name of the file) unchanged, under their header; other "
     "documents as one JSON record per line. Content-Disposition names the file.",
     RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_FILE, handle_run_kept, "application/x-ndjson",
     .parameters = {RUN_SIMILARITY}, .operation = "getKept", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/kept", NULL,
                 "{\"id\":\"a\",\"text\":\"After eleven years the ferry is back in the old harbour.\"}"},
     .answers = {{200, NULL, "the rows or records", RUN_FILE_TYPES}, NO_RUN, RUN_NOT_DONE}},
    {"GET", "/v1/runs/{id}/removed", "List the removed documents",
     "As doppel dedup --removed writes it: one line per document, with the id of its original.", RIGHT_READ, BODY_NONE,
     NULL, false, DISPATCH_FILE, handle_run_removed, "application/x-ndjson", .parameters = {RUN_SIMILARITY},
     .operation = "getRemoved", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97/removed", NULL,
                 "{\"id\":\"b\",\"originalId\":\"a\",\"reason\":\"content_hash\",\"similarity\":1,\"distance\":0}"},
     .answers = {{200, NULL, "the list"}, NO_RUN, RUN_NOT_DONE}},
    {"POST", "/v1/runs/{id}", "Analyse the file of a run again",
     "For example, with another field for the text: `fields` of the run lists the fields of the file. The run keeps "
     "its id, its file and the time when it expires.",
     RIGHT_WRITE, BODY_NONE, NULL, false, DISPATCH_HERE, handle_repeat_run,
     .parameters = {TEXT_KEY, ID_KEY, RUN_SIMILARITY}, .operation = "repeatRun", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97?similarity=0.9", NULL, "{\"id\":\"5d1f8a0c6e2b4f97\",...}"},
     .answers = {{200, &shape_run, "it is being analysed"},
                 NO_RUN,
                 {409, &shape_problem,
                  "it is being received or analysed, or its kept or removed documents are being written"}}},
    {"DELETE", "/v1/runs/{id}", "Delete a run", "With its file, whatever state it is in.", RIGHT_WRITE, BODY_NONE, NULL,
     false, DISPATCH_HERE, handle_delete_run, .operation = "deleteRun", .tag = "runs",
     .example = {"/v1/runs/5d1f8a0c6e2b4f97", NULL, "{\"id\":\"5d1f8a0c6e2b4f97\",\"removed\":true}"},
     .answers = {{200, &shape_removed, "it is deleted"}, NO_RUN}},
    {"PUT", "/v1/indexes/{name}", "Create an index", "Names have 1 to 64 characters of a-z, 0-9, _ and -.", RIGHT_ADMIN,
     BODY_JSON_OPTIONAL, &shape_index_options, false, DISPATCH_WORKER, handle_create_index, .operation = "createIndex",
     .tag = "indexes",
     .example = {"/v1/indexes/news", "{\"preset\":\"article\",\"keepText\":true}", "{\"name\":\"news\",...}"},
     .answers = {{201, &shape_index, "it is created"},
                 {409, &shape_problem, "it already exists, or another change is in progress"},
                 NO_INDEXES}},
    {"GET", "/v1/indexes", "List the indexes", "", RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_list_indexes, .operation = "listIndexes", .tag = "indexes",
     .example = {"/v1/indexes", NULL, "{\"indexes\":[{\"name\":\"default\",...},{\"name\":\"news\",...}]}"},
     .answers = {{200, &shape_indexes, "all indexes"}}},
    {"GET", "/v1/indexes/{name}", "Describe an index", "", RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_show_index, .operation = "getIndex", .tag = "indexes",
     .example = {"/v1/indexes/news", NULL, "{\"name\":\"news\",\"documents\":0,...}"},
     .answers = {{200, &shape_index, "the index"}, {404, &shape_problem, "there is no such index"}}},
    {"DELETE", "/v1/indexes/{name}", "Drop an index",
     "With everything it remembers. The default index cannot be dropped.", RIGHT_ADMIN, BODY_NONE, NULL, false,
     DISPATCH_WORKER, handle_drop_index, .operation = "dropIndex", .tag = "indexes",
     .example = {"/v1/indexes/news", NULL, "{\"name\":\"news\",\"removed\":true}"},
     .answers = {{200, &shape_removed, "it is deleted"},
                 {404, &shape_problem, "there is no such index"},
                 {409, &shape_problem, "it is the default index, or another change is in progress"},
                 NO_INDEXES}},
    {"GET", "/v1/session", "What the caller may do", "The right of the request's token.", RIGHT_READ, BODY_NONE, NULL,
     false, DISPATCH_HERE, handle_session, .operation = "getSession", .tag = "server",
     .example = {"/v1/session", NULL, "{\"tokens\":false,\"name\":null,\"right\":\"admin\"}"},
     .answers = {{200, &shape_session, "the right"}}},
    {"GET", "/metrics", "Figures for Prometheus", "", RIGHT_READ, BODY_NONE, NULL, false, DISPATCH_HERE, handle_metrics,
     "text/plain; version=0.0.4; charset=utf-8", .operation = "getMetrics", .tag = "server",
     .example = {"/metrics", NULL, "...\ndoppel_uptime_seconds ...\n..."}, .answers = {{200, NULL, "text"}}},
    {"GET", "/healthz", "Whether the server runs", "", RIGHT_NONE, BODY_NONE, NULL, false, DISPATCH_HERE, handle_health,
     .operation = "getHealth", .tag = "server", .example = {"/healthz", NULL, "{\"status\":\"ok\"}"},
     .answers = {{200, &shape_health, "it does"}}},
    {"GET", "/readyz", "Whether the server accepts requests", "", RIGHT_NONE, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_ready, .operation = "getReadiness", .tag = "server", .example = {"/readyz", NULL, "{\"status\":\"ready\"}"},
     .answers = {{200, &shape_health, "it does"},
                 {503, &shape_health, "it is stopping (a problem if its store does not answer)"}}},
    {"GET", "/openapi.json", "This description",
     "OpenAPI 3.0, generated from the table that requests are checked against.", RIGHT_NONE, BODY_NONE, NULL, false,
     DISPATCH_HERE, handle_openapi, .operation = "getDescription", .tag = "server",
     .example = {"/openapi.json", NULL, "{\"openapi\":\"3.0.3\",\"info\":{\"title\":\"doppel\",...}"},
     .answers = {{200, NULL, "the description"}}},
    {"GET", "/", "The console", "", RIGHT_NONE, BODY_NONE, NULL, false, DISPATCH_HERE, handle_console, "text/html",
     .any_query = true, .operation = "openConsole", .tag = "server", .example = {"/", NULL, "<!doctype html>\n..."},
     .answers = {{200, NULL, "a page"}}},
    {"GET", "/console/{name}", "Files of the console", "", RIGHT_NONE, BODY_NONE, NULL, false, DISPATCH_HERE,
     handle_console, "application/octet-stream", .operation = "getConsoleFile", .tag = "server",
     .example = {"/console/icon.svg", NULL, "<svg ..."},
     .answers = {{200, NULL, "a file"}, {404, &shape_problem, "there is no such file"}}},
    {.method = NULL},
};

/* Requests that have no route are counted in the last place of METRIC_ROUTES. */
_Static_assert(sizeof routes / sizeof *routes <= METRIC_ROUTES, "each route has a place in the metrics");

size_t route_count(void) {
    return sizeof routes / sizeof *routes - 1;
}

/* Takes the next part off a path, from its slash on. */
static doppel_slice next_part(doppel_slice *path) {
    const char *slash = path->length > 1 ? memchr(path->data + 1, '/', path->length - 1) : NULL;
    doppel_slice part = {path->data, slash ? (size_t)(slash - path->data) : path->length};
    path->data += part.length;
    path->length -= part.length;
    return part;
}

static bool same_part(doppel_slice a, doppel_slice b) {
    return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

/* Whether a path is that of a template; *open gets what is in the place of {...}. */
static bool matches(const char *template, doppel_slice path, doppel_slice *open) {
    doppel_slice rest = {template, strlen(template)};
    while (rest.length && path.length) {
        doppel_slice want = next_part(&rest), part = next_part(&path);
        if (want.length > 1 && want.data[1] == '{') {
            *open = (doppel_slice){part.data + 1, part.length - 1};
            if (part.length < 2)
                return false;
        } else if (!same_part(want, part)) {
            return false;
        }
    }
    return !rest.length && !path.length;
}

static unsigned method_bit(const char *method) {
    for (unsigned i = 0; method_names[i]; i++)
        if (!strcmp(method_names[i], method))
            return 1u << i;
    return 0;
}

/* Looks for the route of a path; `below`: the path is what follows /v1/indexes/NAME, which matches what follows /v1. */
static bool search(const char *method, doppel_slice path, bool below, route_match *match) {
    for (const route_info *r = routes; r->method; r++) {
        doppel_slice open = {NULL, 0};
        if ((below && !r->of_index) || !matches(r->path + (below ? 3 : 0), path, &open))
            continue;
        if (!strcmp(r->method, method) || (!strcmp(method, "HEAD") && !strcmp(r->method, "GET"))) {
            match->route = r;
            match->id = open;
            return true;
        }
        match->other_methods |= method_bit(r->method);
    }
    return false;
}

route_match route_find(const char *method, doppel_slice path) {
    static const char prefix[] = "/v1/indexes";
    size_t length = sizeof prefix - 1;
    route_match match = {NULL, {NULL, 0}, {NULL, 0}, 0};
    if (search(method, path, false, &match) || match.other_methods)
        return match;
    if (path.length <= length + 1 || memcmp(path.data, prefix, length) != 0 || path.data[length] != '/')
        return match;
    doppel_slice rest = {path.data + length, path.length - length};
    doppel_slice name = next_part(&rest);
    match.index = (doppel_slice){name.data + 1, name.length - 1};
    search(method, rest, true, &match);
    return match;
}

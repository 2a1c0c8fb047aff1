/* commands.c - the table of commands and common options: parsing, help, man page and completion come from it. */
#include "commands.h"
#include "common/help.h"
#include "shared/choices.h"

#define PLACE "(--index DIR | --store URL)"
#define ONLY_PLACE "takes no arguments; the index is given with --index DIR"
#define NEEDS_INPUT "needs an INPUT: a file, a folder, or - for stdin"

/* The first common option of a command. */
enum { READS_DOCUMENTS = 0, TAKES_NOTHING = 8 };

static const cli_option common_options[] = {
    {"format", 0, OPTION_TEXT, "FORMAT",
     "read every INPUT as jsonl, json (one array of objects), csv, tsv, warc, mbox, html, text (a file is a document) "
     "or lines (a line is a document); default: detected by name, else by content: JSON by its first byte, CSV by a "
     "header that has text, html or all that --text-key names"},
    {"max-record", 0, OPTION_SIZE, "BYTES", "leave out longer records (default 64M)"},
    {"allow-bad", 0, OPTION_FLAG, NULL,
     "continue when no document of an INPUT can be read, or more than half of its records are bad; without it the "
     "command ends with exit code 3, before anything is written"},
    {"strict", 0, OPTION_FLAG, NULL, "stop at the first bad record or file, with exit code 3"},
    {"id-key", 0, OPTION_TEXT, "KEY",
     "the field with a record's id (default id; a record without one gets FILE:LINE, in an index its URL or a digest)"},
    {"text-key", 0, OPTION_TEXT, "KEY",
     "the field with its text (default text). Each of these keys may be a path, meta.text, or several keys, "
     "question,answer, whose values are joined by a newline"},
    {"html-key", 0, OPTION_TEXT, "KEY", "the field with its page, for records without a text (default html)"},
    {"files-from", 0, OPTION_FILES, "FILE", "read more INPUTs from FILE, one path per line; - is stdin"},
    /* TAKES_NOTHING */
    {"threads", 0, OPTION_COUNT, "N", "use N threads (default: one for each CPU)"},
    {"quiet", 'q', OPTION_FLAG, NULL, "no progress and no summary on stderr; errors and warnings are still reported"},
    {"help", 'h', OPTION_FLAG, NULL, "show this help"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

static const cli_command commands[] = {
    {"dedup", "INPUT... -o OUT", "Keep one of each: write the documents without their copies.",
     "Documents are copies when their similarity, the Jaccard similarity of their 5-word shingles, is at least "
     "--similarity; those with fewer than --min-words words when their words are the same, those without words when "
     "their bytes are. Every pair that is reported is verified. In the order of --keep, a document is kept unless it "
     "is near one that is kept already.\n"
     "Kept JSONL records are written unchanged, and so are rows of CSV and TSV if OUT has such a name, or is stdout "
     "and all INPUTs have that format, and lines of --format lines. Other rows become JSONL with all their columns; "
     "documents of other formats become JSONL with id, url, title and text. --removed lists the removed documents, "
     "each with its original; --removed-documents writes the documents themselves.\n"
     "--annotate writes one file, so it cannot be combined with --output-dir, except for Parquet.\n"
     "The inputs are never changed. To undo: delete OUT, or add the documents of --removed-documents to it.",
     "doppel dedup news.jsonl.gz -o unique.jsonl.gz\n"
     "doppel dedup crawl/ -o unique.jsonl --removed copies.jsonl --by content,url --keep https,shortest-url\n"
     "doppel dedup new.jsonl --against corpus.jsonl.zst -o fresh.jsonl\n"
     "doppel dedup crawl.jsonl -o unique.jsonl --removed-documents copies.jsonl\n"
     "doppel dedup shards/ --output-dir unique --only-contained 0.95\n"
     "doppel dedup --text-key question,answer table.csv -o unique.csv\n"
     "doppel dedup web.jsonl news.jsonl --annotate --count-by source -o counted.jsonl",
     dedup_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_dedup, READS_DOCUMENTS,
     "output similarity keep removed against by dry-run preset output-dir quiet"},
    {"trim", "INPUT... -o OUT", "Cut repeated lines and passages out of documents.",
     "A line, sentence, paragraph or passage that occurs in another document, or earlier in the same one, is cut; the "
     "first occurrence, in the order of --keep, is kept. Words are compared: case, punctuation and spaces do not "
     "count, nor do line breaks in passages. Nothing is estimated, and no repeat is missed. docs/TRIM.md is the "
     "manual, and docs/FORMAT.md, section 15, has the exact definition.\n"
     "JSONL records are written with their text cut and everything else unchanged; records that have only HTML get a "
     "text field. Lines of --format lines stay lines. Rows of CSV and TSV become JSONL with all their columns; "
     "documents of other formats become JSONL with id, url, title and text. A document with nothing left is written "
     "empty; --drop-below 1 drops it. OUT does "
     "not have what was cut: keep the inputs. To preview: --dry-run --spans -, or --work DIR and then doppel report.",
     "doppel trim crawl.jsonl.zst -o clean.jsonl.zst --spans cut.jsonl\n"
     "doppel trim --min-count 6 --keep-first off --min-words 2 crawl.jsonl -o without-notices.jsonl\n"
     "doppel trim --unit sentence --run 3 news.jsonl.gz -o clean.jsonl.gz\n"
     "doppel trim --unit passage --words 13 --against eval.jsonl --drop train.jsonl.zst -o clean.jsonl.zst\n"
     "doppel trim --within document mail.mbox -o clean.jsonl",
     trim_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_trim, READS_DOCUMENTS,
     "output unit words min-count keep against spans dry-run"},
    {"pairs", "INPUT...", "Find the pairs of near documents: one JSON line each.",
     "Each line has the ids a and b, in input order, the distance of their fingerprints and their similarity. Near "
     "means the same as in doppel dedup; with --method simhash only the distance counts, the search is exact, and "
     "similarity is null, as it is not measured.\n"
     "Documents with fewer than --min-words words are near only if their words are the same; those without words only "
     "if their bytes are.",
     "doppel pairs news.jsonl.gz\ndoppel pairs --method simhash --distance 6 --collapse docs/ -o pairs.jsonl",
     pairs_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_pairs, READS_DOCUMENTS,
     "similarity against output method preset"},
    {"cluster", "INPUT...", "Group near documents, and say which one of each group is kept: one JSON line each.",
     "In the order of --keep, a document is kept unless it is near one that is kept already; then its group is the "
     "most similar of those. Each line has the document's id, the id of the kept document as group, kept, the reason "
     "why it is not kept, and their similarity.\n"
     "Near means the same as in doppel dedup.",
     "doppel cluster news.jsonl.gz\ndoppel cluster --link any --similarity 0.5 docs/\ndoppel cluster --top 10 "
     "spam.mbox",
     cluster_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_cluster, READS_DOCUMENTS,
     "similarity keep top output by preset"},
    {"report", "--work DIR -o FILE", "Write an HTML page about a finished run: figures, charts, largest groups.",
     "The run is one of doppel dedup, cluster or trim with --work DIR. Its inputs are read again, from the folder "
     "where it was started, and must be unchanged. The work folder remembers how they were read (--text-key and the "
     "like).\n"
     "The page is a single HTML file that needs no script and no network.",
     "doppel report --work run -o report.html\ndoppel report --work run --groups 100 -o report.html.gz", report_options,
     0, 0, "takes no arguments; --work DIR names the folder of the run", NULL, cmd_report, READS_DOCUMENTS},
    {"overlap", "INPUT...", "Find documents that contain much of another, or a passage of it.",
     "On a terminal the pairs that share the most come first, with how much of each is in the other and how the "
     "longest passage begins; --html FILE writes a page with all passages side by side. Otherwise, one JSON line for "
     "each pair, in input order (--print jsonl).\n"
     "Without --words and --containment, pairs are shown that share 30 words in a row, or of which one has a fifth of "
     "the other.\n"
     "Each JSON line has the ids a and b, in input order, the share of each one's shingles that the other has, and the "
     "passages they share: byte ranges of both texts (of HTML: of its content), words, and how each begins. Nothing is "
     "estimated: candidates found by sampled hashes are compared word for word.\n"
     "Of documents with the same words, those after the first are paired only with the first. A hash that occurs in "
     "more than 128 documents pairs each of them only with the first: a quote that all of them have is shown once for "
     "each.",
     "doppel overlap essays/\ndoppel overlap essays/ --html page.html\ndoppel overlap --words 13 --against "
     "evaluation.jsonl corpus.jsonl.zst\n"
     "doppel overlap --containment 0.3 --words 40 news.jsonl.gz -o overlap.jsonl",
     overlap_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_overlap, READS_DOCUMENTS,
     "words containment against html top output"},
    {"mirrors", "INPUT...", "Find hosts, or prefixes of them, that mirror each other: one JSON line each.",
     "Two hosts, or a host and a path prefix, are mirrors when their pages at equal paths are near-identical. Each "
     "line has both as a and b, how many paths both have, how many of those match, and the share that does, the score. "
     "Documents need a URL; of several with one URL the first counts.\n"
     "The longest prefixes that contain all matching paths are given. Where more than 64 pages with the same path "
     "ending have the same content, as on parked hosts, each is compared only with the first.",
     "doppel mirrors crawl.warc.gz\ndoppel mirrors --min-paths 10 --min-score 0.9 pages.jsonl.zst\n"
     "doppel mirrors --page https://example.org/docs/intro crawl/",
     mirrors_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_mirrors, READS_DOCUMENTS},
    {"add", PLACE " INPUT...", "Put documents into an index that remembers them, and say which were seen before.",
     "Prints a verdict for each document, one JSON line, in input order and once the document is on disk: whether it "
     "is a duplicate, the confidence, the reason (exact_url, content_hash or title_similarity), the original, and the "
     "measurements: content_hash is near content as well as the same words, and similarity and sameDigest say which. "
     "On a terminal, a sentence is printed instead of the JSON line (--print), and a summary counts the duplicates by "
     "reason. doppel dedup goes by content alone unless told otherwise, an index also by URLs and titles; --titles off "
     "ignores titles. Evidence counts in this order: the same URL, the same words, near content, a similar title. "
     "Documents are compared with originals, never with copies, so a copy of a copy may be new.\n"
     "The folder is created if it does not exist, with --preset and the options below it; later runs need not repeat "
     "them, and cannot change them once a document was added. --on-duplicate, --on-same-url, --title-share, "
     "--title-veto and --ttl are stored with the folder, too, and can be overridden for one run. One process writes to "
     "a folder at a time; any number may read it. Any number of processes, on any machines, share a store in Redis "
     "(--store): preset crawl unless another is named, and a line is printed once Redis has the document.\n"
     "A record needs a text, a page (html), a URL or a title. One without a text is left out if it has a string longer "
     "than its URL and title that is not one of --fields: that may be its text under another name (--text-key).\n"
     "A record without an id, or text from stdin, gets its canonical URL as its id, else 16 digits of the digest of "
     "its words; a plain file has its path. --id names a single document. When the id already exists: with the same "
     "words, the first verdict is printed again (\"known\":true); with other words, the new version replaces the old "
     "one (\"replaced\":true). A duplicate whose id another copy has is not stored (\"idKnown\":true).\n"
     "To undo: doppel remove --index DIR --files-from FILE, with the output of add (-o FILE).",
     "doppel add --index seen news.jsonl\ndoppel add --index seen --on-duplicate store --keep-text news.jsonl\n"
     "doppel add --index pages --preset crawl --on-duplicate link crawl.warc.gz\n"
     "doppel add --store 'redis://127.0.0.1:6379/0?prefix=pages' crawl.warc.gz\n"
     "crawler | doppel add --index seen - | grep '\"isDuplicate\":false'",
     add_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_add, READS_DOCUMENTS, "index preset on-duplicate output format"},
    {"check", PLACE " INPUT...", "Say whether an index has seen documents, without changing it.",
     "Prints verdicts as doppel add does. Exit code 1 when any document is a duplicate; a record that is left out has "
     "no "
     "verdict, and is counted on stderr. In place of INPUTs addresses may be given, by themselves (https://...) or one "
     "per line with --files-from: each is looked up, nothing is fetched. Records may also have a URL or a title only, "
     "as with doppel add. Documents are compared with "
     "everything in the index, including a document with the same id. A sentence about a new document names the "
     "nearest one, if their similarity is above 0.5 and the folder is small (100,000 comparisons in a run); doppel "
     "similar finds the nearest in any index. The threshold for copies is a setting of the index: doppel stats shows "
     "it.",
     "doppel check --index seen new.jsonl\ndoppel check --index seen https://example.org/news\n"
     "doppel check --store 'redis://127.0.0.1?prefix=pages' new.jsonl\n"
     "echo 'Some text' | doppel check --index seen - >/dev/null && echo new",
     check_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_check, READS_DOCUMENTS},
    {"similar", "(--index DIR | --store URL | --in FILE) ID|URL|FILE",
     "Find the documents of an index or a file that are most similar to one.",
     "The document is the one in the index with this id or URL, else the one in this file; - is stdin. The most "
     "similar come first, one JSON line each. canonical is the id of the document that represents its group, aliases "
     "are the URLs of copies that are linked to it; the copies have no lines of their own, but are counted, those of "
     "the document itself on stderr: doppel get --copies lists them. On a terminal a line in words takes the place of "
     "the JSON line (--print).\n"
     "If nothing is that similar, a line on stderr says so and, in a folder of up to 100,000 documents, names the "
     "nearest one; the exit code is 0.\n"
     "With --in FILE the document is the one in that file (or folder, or several files) with this id, else with this "
     "URL, else the one in "
     "the file of this name; --format and the keys are those of --in. Every document of --in is compared with it, so "
     "that nothing is missed, and copies have lines of their own: by default those that doppel dedup takes for copies. "
     "For repeated queries an index is faster: doppel "
     "add --index DIR FILE.\n"
     "In an index with near=distance, --similarity means 1 - distance / bits, and similarity is null.",
     "doppel similar --in corpus.jsonl page.html\ndoppel similar --index seen article-17\ndoppel similar --index seen "
     "--limit 3 --similarity 0.5 draft.txt",
     similar_options, 1, 1, "takes one id, URL or file", NULL, cmd_similar, READS_DOCUMENTS},
    {"get", PLACE " ID...", "Show what an index remembers of documents: one line each.",
     "An id may also be a URL. Missing documents are reported on stderr, with exit code 3. A line is JSON or, on a "
     "terminal, words (--print). duplicates counts the copies that were seen, also those that were removed since; "
     "copies counts those that are remembered now, and aliases are their URLs. A copy goes with its original: when "
     "that "
     "is removed or replaced, or expires.\n"
     "With --copies the lines are those of the copies that are remembered under each document, with or without a URL, "
     "in the order of adding; given a copy, those of its original. If there are none, a line on stderr says why, and "
     "the exit code is 0. Copies are remembered by an index made with --on-duplicate link or store.",
     "doppel get --index seen article-17\ndoppel get --index seen https://example.org/news\n"
     "doppel get --index seen --copies article-17",
     get_options, 1, SIZE_MAX, "needs an ID", NULL, cmd_get, TAKES_NOTHING},
    {"remove", PLACE " ID|URL...", "Remove documents from an index: one JSON line each.",
     "A document is named by its id or, where there is no such id, by its URL; then the line has both. A line that "
     "doppel add printed is taken, too: what that add put into the index is removed, and nothing that was there "
     "before. "
     "So remove --files-from FILE undoes an add whose output is FILE; versions that it replaced do not come back.\n"
     "\"removed\":false means that there was no such document, which is reported on stderr, with exit code 3. The "
     "copies "
     "of a document are removed with it; \"copies\" says how many there were. "
     "The count of duplicates of a document stays the same when one of its copies is removed.",
     "doppel remove --index seen article-17\ndoppel remove --index seen https://example.org/news\n"
     "doppel add --index seen -o added.jsonl news.jsonl\ndoppel remove --index seen --files-from added.jsonl",
     remove_options, 1, SIZE_MAX, "needs an ID or a URL", NULL, cmd_remove, TAKES_NOTHING},
    {"stats", PLACE, "Show what an index contains and costs: one JSON object.",
     "Counts, duplicates by reason, times, bytes on disk and in memory, the plan, and the settings.",
     "doppel stats --index seen\ndoppel stats --store redis+unix:///run/redis/redis-server.sock", stats_options, 0, 0,
     ONLY_PLACE, NULL, cmd_stats, TAKES_NOTHING},
    {"export", PLACE, "Write an index as JSONL, with everything that doppel import needs.",
     "The first line has the settings of the index. Then come the documents, with their sketches (and texts, if they "
     "are kept), and the copies that are linked to them. Exit code 4 when records are damaged: the readable ones are "
     "written.",
     "doppel export --index seen -o seen.jsonl.zst\ndoppel export --index old | doppel import --index new -",
     export_options, 0, 0, ONLY_PLACE, NULL, cmd_export, TAKES_NOTHING},
    {"import", PLACE " INPUT...", "Read what doppel export wrote, or plain records, into an index.",
     "A new index is created with the settings of the export, unless options say otherwise, and is equal to the old "
     "one. In an index that already has documents, those of the export are checked like new ones. Expired documents "
     "are left out, and so are copies whose original no longer exists.\n"
     "Records without sketches are added as doppel add does.",
     "doppel import --index seen seen.jsonl.zst\n"
     "doppel import --store 'redis://127.0.0.1?prefix=pages' seen.jsonl.zst",
     import_options, 1, SIZE_MAX, NEEDS_INPUT, NULL, cmd_import, READS_DOCUMENTS, "index store preset on-duplicate"},
    {"backup", "--index DIR TO", "Write a whole copy of an index to a new folder, while it is in use.",
     "The copy is an index like any other. TO must be new or empty; its parent folder must exist.",
     "doppel backup --index seen backups/seen-monday", backup_options, 1, 1, "takes one folder, which is created", NULL,
     cmd_backup, TAKES_NOTHING},
    {"compact", PLACE, "Shrink an index to its smallest size.",
     "Removed and expired documents are erased, and the file is rewritten. A folder needs free disk space for the new "
     "file.",
     "doppel compact --index seen", compact_options, 0, 0, ONLY_PLACE, NULL, cmd_compact, TAKES_NOTHING},
    {"verify", PLACE, "Check every record of an index, and report what is wrong.",
     "Each finding is a line on stderr; exit code 4 when there are any. Changes nothing. When records are damaged, "
     "restore a backup, or save the intact ones: doppel export --index DIR | doppel import --index NEW -",
     "doppel verify --index seen", verify_options, 0, 0, ONLY_PLACE, NULL, cmd_verify, TAKES_NOTHING},
    {"prepare", "--store URL", "Load the functions of a shared store into its Redis, as an administrator.",
     "Workers whose Redis users may load functions (FUNCTION LOAD) do so themselves and do not need this command. "
     "Where several users share a Redis and do not trust each other, none of them may: then an administrator runs this "
     "once, and again with each new version of doppel before its workers start. The functions of earlier versions are "
     "kept. docs/ENGINE.md lists the permissions that such users need.\n"
     "Prints a JSON line for each server (in a Cluster, for each master): the name of the library, and its state: "
     "loaded, present, or replaced, if its name had other code.",
     "doppel prepare --store redis://admin@10.0.0.5:6379 --store-password-file admin.password", prepare_options, 0, 0,
     "takes no arguments", NULL, cmd_prepare, TAKES_NOTHING},
    {"serve", PLACE, "Serve an index over HTTP, with a console in the browser.",
     "Answers check, add, get, similar, batch, compare and more, as described in docs/HTTP.md and GET /openapi.json; "
     "GET / is the console, GET /metrics is for Prometheus. The folder is created if it does not exist, as with doppel "
     "add.\n"
     "Listens on loopback by default. On SIGTERM it finishes accepted requests and stops; SIGHUP reloads the tokens. A "
     "socket passed by systemd is used instead of --listen.\n"
     "Several servers on one store (--store) give the same answers; while Redis does not answer, they return 503, and "
     "so does GET /readyz.",
     "doppel serve --index seen\ndoppel serve --index pages --preset crawl --indexes more --listen 127.0.0.1:8080\n"
     "doppel serve --store redis://10.0.0.5:6379/0 --store-password-file /etc/doppel.password\n"
     "doppel serve --config doppel.ini --listen 0.0.0.0:443 --tokens tokens --certificate cert.pem --key key.pem",
     serve_options, 0, 0, ONLY_PLACE, NULL, cmd_serve, TAKES_NOTHING, "index listen tokens preset config indexes"},
    {"stream", "--brokers B --in T --unique T --duplicates T " PLACE,
     "Split a stream of pages in Kafka into new pages and pages seen before.",
     "Records of --in are JSON objects as doppel add takes them. A new page goes to --unique unchanged, with its key, "
     "headers and time; a duplicate goes to --duplicates with its verdict as the last member, and its original's id in "
     "the header doppel-original; anything that is not a page goes to --dead-letter, with the reason in the header "
     "doppel-error. A record without a value makes the index forget the document that its key names, and goes to "
     "--unique. A page without an id gets its record's key as its id.\n"
     "Each record has exactly one outcome, whatever crashes: offsets and output are one Kafka transaction, and the "
     "index knows where its documents come from, so that no page is a duplicate of itself. Consumers of the topics "
     "must set isolation.level=read_committed.\n"
     "One worker has an index of its own (--index); several share one with --store, and divide the partitions. On the "
     "first SIGINT or SIGTERM it finishes its current transaction and stops; a second one ends it at once. "
     "docs/STREAM.md describes the guarantees and their cost.",
     "doppel stream --brokers localhost:9092 --in pages --unique new --duplicates known --dead-letter bad --index "
     "seen\n"
     "doppel stream --brokers kafka:9093 -X security.protocol=ssl --in pages --unique new --duplicates known --store "
     "'redis://redis:6379/0?prefix=seen' --group crawl --instance worker-1 --listen :9100\n"
     "doppel stream --brokers localhost:9092 --in pages --unique new --duplicates known --index seen --until-end "
     "--json",
     stream_options, 0, 0, "takes no arguments", NULL, cmd_stream, READS_DOCUMENTS,
     "brokers in unique duplicates dead-letter index store group"},
    {"compare", "A B", "Compare two documents: every measure, what they share, and how they differ.",
     "A and B are files with one document each; with --in FILE they are ids or URLs of its documents, with --index DIR "
     "those of an index that keeps texts. On a terminal, what is in no shared passage is in colour (NO_COLOR=1 "
     "turns this "
     "off); --html FILE writes a page with the passages side by side.\n"
     "Why was a document removed? --removed LIST compares it with its original, and says for what reason.",
     "doppel compare old.txt new.txt\ndoppel compare old.txt new.txt --html page.html\n"
     "doppel compare --in news.jsonl article-17 article-23\n"
     "doppel compare --in news.jsonl --removed removed.jsonl article-23\n"
     "doppel compare --json --recipe article a.html.txt b.html.txt",
     compare_options, 1, 2, "takes two documents", NULL, cmd_compare, READS_DOCUMENTS},
    {"fingerprint", "INPUT...", "Print the fingerprint of each document: HEX<TAB>id.",
     "Similar documents get fingerprints with few differing bits. A document without words has fingerprint 0.",
     "doppel fingerprint news.jsonl.gz\ndoppel fingerprint --recipe article --json docs/ notes.txt\n"
     "zstdcat crawl.jsonl.zst | doppel fingerprint --bits 128 -",
     fingerprint_options, 1, SIZE_MAX, NEEDS_INPUT, &recipe_topic, cmd_fingerprint, READS_DOCUMENTS},
    {"join", "A [B]", "Find the pairs of near fingerprints, in one file or between two: i j distance.",
     "Exact: no pair within --distance bits is missed. In one file, i < j are positions from 0, in order; of equal "
     "fingerprints each is paired with the first only, and with nothing else, unless --all is given.\n"
     "Between two, every i of A that is near a j of B, in order of j. A is kept in memory; B may be of any size.",
     "doppel join --distance 3 prints.u64\ndoppel join queries.hex huge.u64 --count\n"
     "doppel fingerprint docs/ | doppel join --names -",
     join_options, 1, 2, "takes one or two files of fingerprints", &join_topic, cmd_join, READS_DOCUMENTS},
    {"plan", "", "Estimate what an index or a join of N fingerprints costs.",
     "Nothing is built: the plans are arithmetic over a cost model. A layout names how the bits are cut: 4x16 is 4 "
     "blocks with a table each, its key 16 bits; 5c2x26 is 5 blocks with a table for every 2 of them; 4x16+4x12 has "
     "two levels; scan has no table. Every plan is exact: radii say how many bits of a key may differ.",
     "doppel plan --count 10M --distance 3\ndoppel plan --for join --count 1000000000 --distance 3 --memory 20G\n"
     "doppel plan --count 1M --distance 9 --bits 128 --calibrate",
     plan_options, 0, 0, "takes no arguments", NULL, cmd_plan, TAKES_NOTHING},
    {"df", "INPUT...", "Count in how many documents each feature occurs: a table for weight=tfidf.",
     "With --merge the inputs are tables of one recipe, and are added up. With --show the input is one table, and is "
     "described.",
     "doppel df corpus.jsonl.gz -o corpus.df\n"
     "doppel fingerprint -r simhash64:words=1:weight=tfidf --df corpus.df new.jsonl\n"
     "doppel df --merge monday.df tuesday.df -o week.df\ndoppel df --show corpus.df",
     df_options, 1, SIZE_MAX, "needs an INPUT: a file, a folder, or - for stdin; or a table", NULL, cmd_df,
     READS_DOCUMENTS},
    {NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, 0},
};

const cli_manual doppel_manual = {
    "find the documents you have already seen",
    commands,
    common_options,
    "whole documents that are near-copies of others   dedup\n"
    "  or of documents of another corpus              dedup --against corpus.jsonl\n"
    "  marked, not removed                            dedup --annotate\n"
    "  in groups, with the one that is kept           cluster\n"
    "lines and passages that documents repeat         trim\n"
    "test questions inside training texts             trim --unit passage --words 13 --against eval.jsonl --drop\n"
    "  whose text is in another field                 ... --against-text-key question\n"
    "who borrowed which passages from whom            overlap\n"
    "why two documents are alike, or one was removed  compare\n"
    "documents that arrive one at a time              add and check; serve, stream\n"
    "  the copies of one page among them              similar; check\n"
    "the copies of one page in a file                 similar --in corpus.jsonl page.html",
    "doppel dedup news.jsonl -o unique.jsonl --removed removed.jsonl\n"
    "doppel dedup --text-key title,body table.csv -o unique.csv\n"
    "doppel overlap essays/ --html page.html",
    "INPUT is a file, a folder (everything below it, in byte order of names), a pattern with *, ? or [ (the files that "
    "match it, in byte order) or - for stdin. Formats are recognised by the name, else by how a file begins: JSONL "
    "(.jsonl, .ndjson, .json, or a first byte {), an array of JSON objects (.json, or a first byte [), CSV and TSV "
    "with a header (.csv, .tsv; CSV may be separated by semicolons or | as well, by its header), WARC and WET (.warc, "
    ".wet), ARC (.arc), mail (.mbox), HTML (.html, .htm, .xhtml), "
    "Word documents (.docx) and PDF (.pdf; needs pdftotext, of Debian's poppler-utils); gzip, zstd, bzip2 and xz by "
    "their content. Any other file is one document, and so is one of HTML, Word or PDF; its id is the path as given "
    "(if that is not UTF-8, with each % and each byte that is not as %HH).\n"
    "Below a folder, hidden files are read too and links to files are followed; links to folders are not.\n"
    "A bad record is reported on stderr with file and line (in a JSON array: the number of the element), left out and "
    "counted. When no document of a file of records can be read, or more than half of them are bad, a field probably "
    "has another name: that is exit code 3, "
    "and output files are left unchanged (--allow-bad continues). An empty input is not an error. When a key appears "
    "twice in a record, the last one counts. Invalid UTF-8 in a record becomes U+FFFD; in a plain file it separates "
    "words. A file with a NUL byte in its first 8 KiB is taken to be binary and left out.\n"
    "An output file appears only once it is complete. Links are followed: the target of a link is replaced, and the "
    "link is kept. Devices, pipes and descriptors (/dev/stdout, /dev/fd/3) are written to directly. Names that end in "
    ".gz and .zst are compressed.\n"
    "Options that take a list (--against, --by, --keep, --fields, --files-from, ...) may be given several times, and "
    "add up; any other option is given once.\n"
    "In lines of output, control characters and backslashes in an id are written as \\t, \\n, \\r, \\\\ or \\xHH.\n"
    "The manuals are the files in docs/, which `make install` copies to share/doc/doppel.\n"
    "Exit codes: 0 done, 1 found (doppel check: a document is a duplicate), 2 wrong usage, 3 an input could not be "
    "read, or less than half of it, a named file was left out, or --strict found a bad record, 4 a table, an index or "
    "the output could not be read or written, 5 interrupted.",
    choices_of,
};

/* cmd_compare.c - doppel compare A B: every measure on two documents, the passages they share, and how they differ.
 *
 * A and B are files, or the ids of documents of other files (--in) or of an index that keeps texts (--index). With a
 * list of removed documents (--removed), B is the one that A was removed for. */
#include "commands.h"
#include "common/message.h"
#include "common/progress.h"
#include "common/stored_json.h"
#include "engine/engine_command.h"
#include "report/diff.h"
#include "report/pairs.h"
#include "shared/address.h"
#include "shared/choices.h"
#include "shared/marked_text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const cli_option compare_options[] = {
    {"in", 0, OPTION_FILES, "FILE", "A and B are ids or URLs of documents in this file or folder"},
    {"removed", 0, OPTION_FILE, "LIST",
     "with --in or --index and A alone: why was it removed? Compare it with its original, which this list names, "
     "written by doppel dedup --removed LIST"},
    {"index", 'i', OPTION_FILE, "DIR",
     "A and B are ids or URLs of documents in this index, which was made with --keep-text; they are measured by its "
     "recipe, unless --recipe names another"},
    STORE_OPTION,
    STORE_PASSWORD_OPTION,
    {"title-key", 0, OPTION_TEXT, "KEY",
     "with --removed: the field with a record's title (default title), shown where titles are the reason"},
    {"html", 0, OPTION_OUTPUT, "FILE",
     "also write an HTML page with the measures and the shared passages side by side; it needs no script and no "
     "network"},
    RECIPE_OPTIONS,
    {"df", 0, OPTION_FILE, "TABLE", "the table for weight=tfidf, made by doppel df"},
    CONTENT_OPTION,
    {"min-words", 0, OPTION_COUNT, "N", "show passages of at least N words (default 5)"},
    {"json", 0, OPTION_FLAG, NULL, "print one JSON object; passages are given by byte offsets"},
    {NULL, 0, OPTION_FLAG, NULL, NULL},
};

/* At most this many passages are shown, the longest. */
#define SHOWN 12

/* ---- the two documents ---- */

typedef struct compared_side {
    char *id, *text, *title; /* title NULL: there is none */
    size_t id_length, length;
    bool more; /* the file has another document */
    doppel_content content;
    doppel_page_reader *reader;
} compared_side;

typedef struct comparison {
    compared_side a, b;
    const char *given[2]; /* A and B: paths, or ids. B is `original` with --removed */
    char *original;       /* with --removed: the id of B */
    char *reason;         /* with --removed: why A was removed for B, as the list has it, */
    double similarity;    /* and how similar their texts are, or their titles if these are the reason; NAN: unknown */
    loaded_recipe loaded;
    engine_command index;        /* with --index: open until the end */
    const doppel_recipe *recipe; /* of `loaded`, or of the index */
    doppel_comparison measures;
    doppel_passages passages;
    size_t min_words;
    writer html; /* with --html */
} comparison;

static char *copy(const char *bytes, size_t length) {
    char *made = malloc(length + 1);
    if (made)
        memcpy(made, bytes, length);
    return made;
}

static doppel_status keep(void *state, const doppel_document *document, doppel_output *output) {
    (void)output;
    compared_side *side = state;
    if (side->text) {
        side->more = true;
        return DOPPEL_ERROR_INPUT;
    }
    doppel_page page;
    doppel_status status = doppel_document_text(side->reader, document, side->content, &page);
    if (status != DOPPEL_OK)
        return status;
    side->text = copy(page.text.data, page.text.length);
    side->id = copy(document->id.data, document->id.length);
    side->length = page.text.length;
    side->id_length = document->id.length;
    return side->text && side->id ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* Whether a file certainly does not exist: then it may be meant as an id. */
static bool is_missing(const char *path) {
    return !strpbrk(path, "*?[:") && strcmp(path, "-") != 0 && access(path, F_OK) && errno == ENOENT;
}

static int read_side(const cli_args *args, const char *path, compared_side *side) {
    if (is_missing(path)) {
        message("%s: cannot open: %s; for ids of records give --in FILE or --index DIR", path, strerror(ENOENT));
        return EXIT_INPUT;
    }
    doppel_work work = {.user = side, .document = keep};
    doppel_input_options options = reading_options(args);
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    options.threads = 1;
    options.progress = NULL;
    options.refuse_plain = false; /* a record may be compared with a text */
    doppel_status status = doppel_page_reader_create(&side->reader);
    if (status == DOPPEL_OK)
        status = doppel_input_run(&path, 1, &options, &work, &counts, &error);
    doppel_page_reader_free(side->reader);
    report_unnamed();
    if (side->more)
        message("%s: contains more than one document; compare takes one on each side", path);
    else if (status == DOPPEL_ERROR_INTERRUPTED)
        message("interrupted");
    else if (status != DOPPEL_OK && status != DOPPEL_ERROR_INPUT)
        message_error(&error);
    else if (status == DOPPEL_OK && side->text)
        return EXIT_DONE;
    else if (!counts.bad && !counts.unopened)
        message("%s: no document to compare", path);
    return status == DOPPEL_OK ? EXIT_INPUT : exit_code(status);
}

/* ---- by their ids, in files ---- */

/* A search for documents by their ids. What is found goes from the threads to take_found in input order. */
typedef struct id_search {
    compared_side *side[2];
    const char *id[2];
    char *address[2]; /* its canonical URL, which counts where no document has the id; NULL: it is no address */
    bool by_url[2];   /* what was found has the URL only */
    bool twice[2];    /* more than one document has the id, or the URL */
    /* For messages where no document has the id: */
    char *first;      /* the id of the first document */
    char *nearest[2]; /* the most similar id; NULL: none is similar, */
    size_t apart[2];  /* and by how much it differs */
} id_search;

/* What a piece of output is. */
typedef struct found_piece {
    enum { FOUND_DOCUMENT, FOUND_NEAR_ID, FOUND_FIRST_ID } kind;
    size_t which;         /* A or B */
    bool by_url;          /* DOCUMENT */
    size_t apart;         /* NEAR_ID */
    size_t title, length; /* the bytes after it: a title, which may be empty, and a text or id */
} found_piece;

typedef struct id_searcher {
    const id_search *search;
    doppel_page_reader *reader;
    bool first_given;
} id_searcher;

static doppel_status begin_search(void *user, void **state) {
    id_searcher *made = calloc(1, sizeof *made);
    if (!made)
        return DOPPEL_ERROR_MEMORY;
    made->search = user;
    doppel_status status = doppel_page_reader_create(&made->reader);
    if (status == DOPPEL_OK)
        *state = made;
    else
        free(made);
    return status;
}

static void end_search(void *user, void *state) {
    (void)user;
    doppel_page_reader_free(((id_searcher *)state)->reader);
    free(state);
}

static doppel_status write_piece(doppel_output *output, found_piece piece, doppel_slice title, doppel_slice text) {
    piece.title = title.length;
    piece.length = text.length;
    doppel_status status = doppel_output_write(output, (doppel_slice){(const char *)&piece, sizeof piece});
    if (status == DOPPEL_OK)
        status = doppel_output_write(output, title);
    return status == DOPPEL_OK ? doppel_output_write(output, text) : status;
}

/* Whether one of two paths ends in the other one, by whole names. */
static bool same_end(doppel_slice a, doppel_slice b) {
    doppel_slice longer = a.length > b.length ? a : b, shorter = a.length > b.length ? b : a;
    size_t before = longer.length - shorter.length;
    return shorter.length && before && longer.data[before - 1] == '/' &&
           !memcmp(longer.data + before, shorter.data, shorter.length);
}

/* Whether an id is a path that ends in this name, with or without the ending of the file. */
static bool has_file_name(doppel_slice id, doppel_slice name) {
    const char *slash = memrchr(id.data, '/', id.length);
    size_t rest = slash ? (size_t)(id.data + id.length - slash - 1) : 0;
    return name.length && rest >= name.length && !memcmp(slash + 1, name.data, name.length) &&
           (rest == name.length ||
            (slash[1 + name.length] == '.' && !memchr(slash + 2 + name.length, '.', rest - name.length - 1)));
}

/* By how much an id differs from the one that is searched; SIZE_MAX: too much for a typing error. */
static doppel_status measure_id(doppel_slice id, doppel_slice sought, size_t *apart) {
    size_t most = sought.length / 4 + 1, longer = id.length > sought.length ? id.length : sought.length;
    bool same_letters = id.length == sought.length && !strncasecmp(id.data, sought.data, id.length);
    *apart = same_letters || same_end(id, sought) || has_file_name(id, sought) ? 0 : SIZE_MAX;
    if (!*apart || longer - (id.length + sought.length - longer) > most)
        return DOPPEL_OK;
    doppel_status status = doppel_levenshtein(id, sought, most, apart);
    *apart = status == DOPPEL_OK && *apart <= most && *apart < longer ? *apart : SIZE_MAX;
    return status;
}

/* doppel_work.document */
static doppel_status find_id(void *state, const doppel_document *document, doppel_output *output) {
    id_searcher *s = state;
    doppel_status status = DOPPEL_OK;
    const doppel_slice none = {"", 0};
    if (!s->first_given)
        status = write_piece(output, (found_piece){.kind = FOUND_FIRST_ID}, none, document->id);
    s->first_given = true;
    for (size_t i = 0; i < 2 && status == DOPPEL_OK; i++) {
        const doppel_slice sought = doppel_slice_of(s->search->id[i]);
        found_piece piece = {.which = i};
        doppel_page page = {0};
        bool same = sought.length == document->id.length && !memcmp(sought.data, document->id.data, sought.length);
        piece.by_url = !same && has_address(document, s->search->address[i]);
        if (same || piece.by_url) {
            status = doppel_document_text(s->reader, document, s->search->side[i]->content, &page);
            if (status == DOPPEL_OK)
                status = write_piece(output, piece, document->title.data ? document->title : none, page.text);
            continue;
        }
        piece.kind = FOUND_NEAR_ID;
        status = measure_id(document->id, sought, &piece.apart);
        if (status == DOPPEL_OK && piece.apart != SIZE_MAX)
            status = write_piece(output, piece, none, document->id);
    }
    return status;
}

static bool keep_text(compared_side *side, const char *id, doppel_slice title, doppel_slice text) {
    free(side->text);
    free(side->id);
    free(side->title);
    side->text = copy(text.data, text.length);
    side->id = copy(id, strlen(id));
    side->title = title.length ? strndup(title.data, title.length) : NULL;
    side->length = text.length;
    side->id_length = strlen(id);
    return side->text && side->id && (side->title || !title.length);
}

/* Keeps an id for messages; false: no memory. */
static bool keep_near_id(id_search *search, const found_piece *piece, doppel_slice id) {
    size_t i = piece->which;
    char **kept = piece->kind == FOUND_FIRST_ID ? &search->first : &search->nearest[i];
    if (*kept && (piece->kind == FOUND_FIRST_ID || piece->apart >= search->apart[i]))
        return true;
    free(*kept);
    search->apart[i] = piece->kind == FOUND_FIRST_ID ? search->apart[i] : piece->apart;
    return (*kept = strndup(id.data, id.length)) != NULL;
}

/* Keeps a document; one with the id takes the place of those with the URL. False: no memory. */
static bool keep_found(id_search *search, const found_piece *piece, doppel_slice title, doppel_slice text) {
    size_t i = piece->which;
    compared_side *side = search->side[i];
    if (side->text && piece->by_url == search->by_url[i])
        search->twice[i] = true;
    if (side->text && (piece->by_url || !search->by_url[i]))
        return true;
    search->twice[i] = false;
    search->by_url[i] = piece->by_url;
    return keep_text(side, search->id[i], title, text);
}

/* doppel_work.emit */
static doppel_status take_found(void *user, doppel_slice bytes) {
    id_search *search = user;
    found_piece piece;
    for (const char *at = bytes.data, *end = at + bytes.length; at < end; at += piece.title + piece.length) {
        memcpy(&piece, at, sizeof piece);
        at += sizeof piece;
        doppel_slice title = {at, piece.title}, text = {at + piece.title, piece.length};
        bool fine = true;
        if (piece.kind != FOUND_DOCUMENT)
            fine = keep_near_id(search, &piece, text);
        else
            fine = keep_found(search, &piece, title, text);
        if (!fine)
            return DOPPEL_ERROR_MEMORY;
    }
    return DOPPEL_OK;
}

/* Whether an id is FILE:LINE, as records without one get. */
static bool is_made(const char *id) {
    const char *line = strrchr(id, ':');
    return line && line[1] && !line[1 + strspn(line + 1, "0123456789")];
}

/* Says that no document has an id, and what may have been meant. */
static void report_no_id(const cli_args *args, const comparison *c, const id_search *search, size_t i) {
    const char *id = search->id[i], *near = search->nearest[i], *name = search->address[i] ? "id or URL" : "id";
    if (c->original && i == 1)
        message("%s: --in has no document with this id; it is the original: if it came from --against, give that file "
                "with a second --in",
                id);
    else if (c->original)
        message("%s: --in has no document with this id, but %s lists it: --in must be what dedup read, with the same "
                "--id-key",
                id, args_text(args, "removed"));
    else if (near)
        message("%s: --in has no document with this %s; did you mean %s?", id, name, near);
    else if (search->first)
        message("%s: --in has no document with this %s%s; the first id there is %s%s", id, name, address_hint(id),
                search->first,
                is_made(search->first) && !args_text(args, "id-key") ? "; --id-key KEY names the field with the ids"
                                                                     : "");
    else
        message("%s: --in has no documents", id);
}

static int read_by_id(const cli_args *args, comparison *c) {
    id_search search = {.side = {&c->a, &c->b}, .id = {c->given[0], c->given[1]}};
    doppel_work work = {
        .user = &search, .begin = begin_search, .document = find_id, .end = end_search, .emit = take_found};
    doppel_input_options options = reading_options(args);
    size_t count;
    const char **paths = args_all(args, "in", &count);
    if (!paths) {
        message("no memory");
        return EXIT_STORE;
    }
    for (size_t i = 0; i < 2; i++)
        search.address[i] = canonical_address(search.id[i]);
    int code = run_paths(paths, count, &options, &work, NULL), read = code;
    free(paths);
    for (size_t i = 0; i < 2 && read == EXIT_DONE; i++) {
        if (i && !strcmp(search.id[0], search.id[1]))
            break;
        if (!search.side[i]->text)
            report_no_id(args, c, &search, i);
        else if (search.twice[i])
            message("%s: --in has more than one document with this %s", search.id[i], search.by_url[i] ? "URL" : "id");
        else
            continue;
        code = EXIT_INPUT;
    }
    free(search.address[0]);
    free(search.address[1]);
    free(search.first);
    free(search.nearest[0]);
    free(search.nearest[1]);
    return code;
}

/* ---- the original, in a list of removed documents ---- */

/* The reading of the list. */
typedef struct list_search {
    comparison *c;
    bool is_list;       /* a line names an original, or there is no line */
    doppel_error first; /* the first bad line */
} list_search;

/* doppel_work.document: a line of the list. What doppel add printed of an original has none. */
static doppel_status find_removed(void *state, const doppel_document *d, doppel_output *output) {
    (void)output;
    list_search *search = state;
    comparison *c = search->c;
    const char *id = c->given[0];
    doppel_slice original = d->extra[0], reason = d->extra[1], similarity = d->extra[2];
    search->is_list = search->is_list || original.data;
    if (c->original || !original.data || d->id.length != strlen(id) || memcmp(d->id.data, id, d->id.length) != 0)
        return DOPPEL_OK;
    c->original = strndup(original.data, original.length);
    c->reason = strndup(reason.data ? reason.data : "", reason.data ? reason.length : 0);
    char digits[32] = "";
    if (similarity.data && similarity.length && similarity.length < sizeof digits) {
        memcpy(digits, similarity.data, similarity.length);
        c->similarity = strtod(digits, NULL);
    }
    return c->original && c->reason ? DOPPEL_OK : DOPPEL_ERROR_MEMORY;
}

/* doppel_input_options.bad */
static void note_bad_line(const doppel_error *what, void *user) {
    list_search *search = user;
    if (!what->line && what->code != DOPPEL_OK)
        message_error(what);
    else if (what->code != DOPPEL_OK && search->first.code == DOPPEL_OK)
        search->first = *what;
}

/* Reads the list. Its only text are ids. */
static int read_list(const cli_args *args, list_search *search, const char *path) {
    static const char *const extra[] = {"originalId", "reason", "similarity"};
    doppel_work work = {.user = search, .document = find_removed};
    doppel_input_options options = reading_options(args);
    doppel_input_counts counts = {0};
    doppel_error error = {0};
    options.threads = 1;
    options.format = "jsonl";
    options.id_key = options.text_key = "id";
    options.html_key = NULL;
    options.extra_keys = extra;
    options.extra_count = sizeof extra / sizeof *extra;
    options.unseen = NULL;
    options.strict = options.refuse_bad = false;
    options.bad = note_bad_line;
    options.user = search;
    progress_begin("reading");
    doppel_status status = doppel_input_run(&path, 1, &options, &work, &counts, &error);
    int code = reading_ended(status, &options, &error, &(doppel_input_counts){0});
    search->is_list = search->is_list || !(counts.documents + counts.bad);
    return code == EXIT_DONE && counts.unopened ? EXIT_INPUT : code;
}

/* Finds out what A was removed for. */
static int read_removed(const cli_args *args, comparison *c) {
    const char *path = args_text(args, "removed");
    list_search search = {.c = c};
    int code = read_list(args, &search, path);
    if (code == EXIT_DONE && !search.is_list) {
        message("%s: not a list that doppel dedup --removed wrote", path);
        code = EXIT_INPUT;
    } else if (code == EXIT_DONE && !c->original) {
        if (search.first.code != DOPPEL_OK)
            message_error(&search.first);
        /* It may be misspelt. */
        c->given[1] = c->given[0];
        if (args_text(args, "in"))
            code = read_by_id(args, c);
        if (code == EXIT_DONE)
            message("%s: %s does not list it, so it was not removed", c->given[0], path);
        code = code == EXIT_DONE ? EXIT_INPUT : code;
    }
    c->given[1] = c->original;
    return code;
}

/* ---- by their ids, in an index ---- */

/* Says why a document of an index has no text. */
static void explain_no_text(const engine_command *e, const char *id, const doppel_stored *stored) {
    if (!stored->words)
        message("%s: it was added without a text", id);
    else if (stored->original_id.data && doppel_engine_get_options(e->engine)->keep_text == DOPPEL_SWITCH_ON)
        message(
            "%s: it is a copy of %.*s, and an index keeps the texts of copies only with --on-duplicate store; doppel "
            "get shows what was measured when it was added",
            id, (int)stored->original_id.length, stored->original_id.data);
    else
        message("%s: the index does not keep texts; make one that does with doppel add --keep-text, or name the "
                "documents with --in FILE",
                id);
}

static int get_side(const engine_command *e, const char *id, compared_side *side) {
    doppel_stored_list list = {0};
    doppel_error error = {0};
    int code = engine_ended(doppel_engine_get(e->engine, doppel_slice_of(id), &list, &error), &error);
    if (code == EXIT_DONE && !list.count) {
        message("%s: the index has no document with this id or URL%s", id, address_hint(id));
        code = EXIT_INPUT;
    } else if (code == EXIT_DONE && !list.stored[0].text.data) {
        explain_no_text(e, id, &list.stored[0]);
        code = EXIT_INPUT;
    } else if (code == EXIT_DONE && !keep_text(side, id, list.stored[0].title, list.stored[0].text)) {
        message("no memory");
        code = EXIT_STORE;
    }
    doppel_stored_list_free(&list);
    return code;
}

/* Leaves the index open, for its recipe. --recipe is only that of the measures, so it need not be that of the index. */
static int read_from_index(const cli_args *args, comparison *c) {
    engine_command *e = &c->index;
    int code = engine_prepare(e, args, ENGINE_READ);
    e->options.recipe = NULL;
    if (code == EXIT_DONE)
        code = engine_start(e);
    if (code == EXIT_DONE)
        code = get_side(e, c->given[0], &c->a);
    if (code == EXIT_DONE)
        code = get_side(e, c->given[1], &c->b);
    if (code == EXIT_DONE && !c->recipe)
        c->recipe = doppel_engine_get_options(e->engine)->recipe;
    return code;
}

/* ---- lines for people ---- */

static void print_number(const char *name, double value, const char *unit) {
    if (isnan(value))
        printf("  %-13s       -\n", name);
    else
        printf("  %-13s %8.4f  %s\n", name, value, unit);
}

/* The id of a side, and its size. */
static void print_side(const comparison *c, bool is_b) {
    const char *units = strstr(doppel_recipe_text(c->recipe), ":chars=") ? "character" : "word";
    const compared_side *side = is_b ? &c->b : &c->a;
    uint64_t count = is_b ? c->measures.words_b : c->measures.words_a;
    uint64_t shingles = is_b ? c->measures.shingles_b : c->measures.shingles_a;
    printf("%c  ", is_b ? 'B' : 'A');
    print_safe(stdout, side->id, side->id_length);
    printf("\n   %llu %s%s, %llu distinct shingle%s\n", (unsigned long long)count, units, count == 1 ? "" : "s",
           (unsigned long long)shingles, shingles == 1 ? "" : "s");
}

/* A fingerprint is printed with as many digits as its width needs. */
static void print_fingerprint(const uint64_t fingerprint[2], int bits) {
    if (bits > 64)
        printf("%016llx", (unsigned long long)fingerprint[1]);
    printf("%0*llx", bits > 64 ? 16 : (bits + 3) / 4, (unsigned long long)fingerprint[0]);
}

static void print_fingerprints(const doppel_comparison *m) {
    printf("  fingerprints  ");
    print_fingerprint(m->fingerprint_a, m->bits);
    printf("\n                ");
    print_fingerprint(m->fingerprint_b, m->bits);
    if (m->distance < 0)
        printf("\n  distance            -\n");
    else
        printf("\n  distance      %8d  of %d bits differ\n", m->distance, m->bits);
}

static void print_edits(const doppel_comparison *m) {
    if (m->edit_distance < 0) {
        printf("  edit                -  not measured: the texts are too long and too different\n");
        return;
    }
    printf("  edit          %8.4f  %lld edit%s of characters; %lld without replacing\n", m->edit_similarity,
           (long long)m->edit_distance, m->edit_distance == 1 ? "" : "s", (long long)m->indel_distance);
}

static void print_measures(const doppel_comparison *m) {
    char shared[80];
    uint64_t all = m->shingles_a + m->shingles_b - m->shingles_shared;
    snprintf(shared, sizeof shared, "%llu of %llu distinct shingle%s %s in both",
             (unsigned long long)m->shingles_shared, (unsigned long long)all, all == 1 ? "" : "s",
             m->shingles_shared == 1 ? "is" : "are");
    print_fingerprints(m);
    print_number("similarity", m->similarity, shared);
    print_number("containment", m->containment_ab, "of A is in B");
    print_number("", m->containment_ba, "of B is in A");
    print_number("signature", m->signature_similarity, "similarity as estimated from 128 slots");
    print_number("cosine", m->cosine, "of the word counts");
    print_number("angle", m->angle, "degrees");
    print_number("euclidean", m->euclidean, "between the word counts");
    print_edits(m);
    printf("  digest        %s\n", m->same_digest             ? "same: the normalised words are equal"
                                   : m->words_a || m->words_b ? "differs"
                                                              : "none: there are no words");
}

static int by_words(const void *a, const void *b) {
    uint64_t left = ((const doppel_passage *)a)->words, right = ((const doppel_passage *)b)->words;
    return (left < right) - (left > right);
}

static int by_place(const void *a, const void *b) {
    uint64_t left = ((const doppel_passage *)a)->a_start, right = ((const doppel_passage *)b)->a_start;
    return (left > right) - (left < right);
}

/* Keeps the longest passages, in the order of A. */
static size_t keep_longest(doppel_passage *passages, size_t count) {
    qsort(passages, count, sizeof *passages, by_words);
    count = count < SHOWN ? count : SHOWN;
    qsort(passages, count, sizeof *passages, by_place);
    return count;
}

static void print_passages(const comparison *c) {
    bool colour = use_colour(stdout);
    uint64_t words = 0;
    for (size_t i = 0; i < c->passages.count; i++)
        words += c->passages.passage[i].words;
    const shared_pair pair = {.side = {{.words = c->measures.words_a}, {.words = c->measures.words_b}}, .words = words};
    printf("\n%zu shared passage%s of at least %zu word%s, %llu word%s in all", c->passages.count,
           c->passages.count == 1 ? "" : "s", c->min_words, c->min_words == 1 ? "" : "s", (unsigned long long)words,
           words == 1 ? "" : "s");
    if (c->passages.count) {
        char of_a[16], of_b[16];
        pair_percent(of_a, pair_share(&pair, 0));
        pair_percent(of_b, pair_share(&pair, 1));
        printf(": %s of A, %s of B%s", of_a, of_b, colour ? "; what is in none is in colour" : "");
    }
    printf("\n");
    if (!c->passages.count)
        return;
    size_t count = keep_longest(c->passages.passage, c->passages.count);
    if (count < c->passages.count)
        printf("(the longest %zu are marked below; --json lists all)\n", count);
    marked_text marked = {c->a.text, c->a.length, c->passages.passage, count, false};
    printf("\nA\n");
    marked_text_print(stdout, &marked, colour);
    marked = (marked_text){c->b.text, c->b.length, c->passages.passage, count, true};
    printf("\nB\n");
    marked_text_print(stdout, &marked, colour);
}

/* ---- how they differ ---- */

/* The text of a run of words, with what stands between them. */
static doppel_slice run_text(const diff_text *t, const diff_run *run) {
    size_t start = (size_t)t->ranges.range[run->first].start;
    return (doppel_slice){t->text + start, (size_t)t->ranges.range[run->first + run->count - 1].end - start};
}

static void print_run(const diff_text *t, const diff_run *run, bool colour) {
    doppel_slice text = run_text(t, run);
    bool is_new = run->kind == DIFF_ADDED;
    printf("%s  %c ", colour ? is_new ? "\033[32m" : "\033[31m" : "", is_new ? 'B' : 'A');
    marked_text_print_piece(stdout, text.data, text.length);
    printf("%s\n", colour ? "\033[0m" : "");
}

/* Says how many words only one of them has, and which, the first ones. */
static void print_runs(const diff_text *a, const diff_text *b, const diff *d) {
    size_t words[3] = {0}, shown = 0, all = 0;
    bool colour = use_colour(stdout);
    for (size_t i = 0; i < d->count; i++) {
        words[d->run[i].kind] += d->run[i].count;
        all += d->run[i].kind != DIFF_SAME;
    }
    if (!all || !words[DIFF_SAME])
        return;
    printf("\nDifferences: %zu word%s only in A, %zu only in B%s\n", words[DIFF_REMOVED],
           words[DIFF_REMOVED] == 1 ? "" : "s", words[DIFF_ADDED],
           d->unaligned ? "; the texts differ too much to show them" : "");
    for (size_t i = 0; i < d->count && shown < SHOWN && !d->unaligned; i++)
        if (d->run[i].kind != DIFF_SAME) {
            print_run(d->run[i].kind == DIFF_REMOVED ? a : b, &d->run[i], colour);
            shown++;
        }
    if (shown < all && !d->unaligned)
        printf("  and %zu more\n", all - shown);
}

static int print_differences(const comparison *c) {
    diff_text a = {0}, b = {0};
    diff d = {0};
    doppel_status status = diff_split(&a, c->a.text, c->a.length);
    if (status == DOPPEL_OK)
        status = diff_split(&b, c->b.text, c->b.length);
    if (status == DOPPEL_OK)
        status = diff_words(&a, &b, &d);
    if (status == DOPPEL_OK)
        print_runs(&a, &b, &d);
    else
        message("%s", doppel_status_name(status));
    diff_free(&d);
    diff_text_free(&a);
    diff_text_free(&b);
    return exit_code(status);
}

/* By which recipe an index measures, what decides there, and how these two are. */
static void print_basis(const comparison *c) {
    const doppel_engine_options *o = doppel_engine_get_options(c->index.engine);
    const doppel_comparison *m = &c->measures;
    if (c->loaded.recipe) {
        printf("Measured by --recipe %s; %s measures by %s\n\n", doppel_recipe_text(c->recipe), c->index.path,
               doppel_recipe_text(o->recipe));
        return;
    }
    printf("Measured by the recipe of %s, %s:\n", c->index.path, doppel_recipe_text(c->recipe));
    if (m->same_digest)
        printf("the words are the same");
    else if (o->near == DOPPEL_NEAR_DISTANCE)
        printf("the fingerprints differ in %d bit%s; copies differ in at most %d", m->distance,
               m->distance == 1 ? "" : "s", o->distance);
    else
        printf("similarity %.4f; copies have at least %g%s", m->similarity, o->similarity,
               o->sample == DOPPEL_SAMPLE_ALL ? "" : ", which the index estimates");
    printf("\n\n");
}

/* "the titles are 100 % alike: "Storm at sea" / "Storm at sea!"; the texts are 51 % alike" */
static void put_reason(text_buffer *out, const comparison *c) {
    char alike[2][16];
    bool by_title = !strcmp(c->reason, doppel_reason_name(DOPPEL_REASON_TITLE));
    bool by_url = !strcmp(c->reason, doppel_reason_name(DOPPEL_REASON_URL));
    pair_percent(alike[0], c->similarity);
    pair_percent(alike[1], c->measures.similarity);
    if (by_title) {
        text_format(out, "the titles are %s%salike", isnan(c->similarity) ? "" : alike[0],
                    isnan(c->similarity) ? "" : " ");
        for (size_t i = 0; i < 2 && c->a.title && c->b.title; i++) {
            const char *title = i ? c->b.title : c->a.title;
            text_put(out, i ? " / \"" : ": \"");
            text_safe(out, title, strlen(title));
            text_put(out, "\"");
        }
    } else if (by_url) {
        text_put(out, "the URLs are the same");
    } else if (strcmp(c->reason, doppel_reason_name(DOPPEL_REASON_CONTENT)) != 0) {
        text_safe(out, c->reason, strlen(c->reason));
    } else if (c->measures.same_digest) {
        text_put(out, "the words are the same");
    } else {
        text_put(out, "similar content");
        if (!isnan(c->similarity))
            text_format(out, ", similarity %.6g", c->similarity);
    }
    if ((by_title || by_url) && !isnan(c->measures.similarity))
        text_format(out, "; the texts are %s alike", alike[1]);
}

static int print_lines(const comparison *c) {
    text_buffer reason = {0};
    if (c->reason) {
        text_put(&reason, "A was removed for B: ");
        put_reason(&reason, c);
        text_put(&reason, "\n\n");
    }
    print_text(&reason, EXIT_DONE);
    if (c->index.engine)
        print_basis(c);
    print_side(c, false);
    print_side(c, true);
    printf("\n");
    print_measures(&c->measures);
    print_passages(c);
    return print_differences(c);
}

/* ---- JSON ---- */

static void put_passages(text_buffer *out, const comparison *c) {
    text_member(out, "passages");
    text_put(out, "[");
    for (size_t i = 0; i < c->passages.count; i++) {
        const doppel_passage *p = &c->passages.passage[i];
        text_put(out, i ? ",{" : "{");
        text_member_count(out, "aStart", p->a_start);
        text_member_count(out, "aEnd", p->a_end);
        text_member_count(out, "bStart", p->b_start);
        text_member_count(out, "bEnd", p->b_end);
        text_member_count(out, "words", p->words);
        text_member_string(out, "text", (doppel_slice){c->a.text + p->a_start, (size_t)(p->a_end - p->a_start)});
        text_put(out, "}");
    }
    text_put(out, "]");
}

static int print_object(const comparison *c) {
    text_buffer out = {0};
    text_put(&out, "{");
    text_member_string(&out, "idA", (doppel_slice){c->a.id, c->a.id_length});
    text_compared_side(&out, &c->measures, false);
    text_member_string(&out, "idB", (doppel_slice){c->b.id, c->b.id_length});
    text_compared_side(&out, &c->measures, true);
    text_member_string(&out, "recipe", doppel_slice_of(doppel_recipe_text(c->recipe)));
    text_measures(&out, &c->measures);
    put_passages(&out, c);
    text_put(&out, "}\n");
    return finish_text(&out, EXIT_DONE);
}

/* ---- a page ---- */

static void write_measure(html *page, const char *name, double value) {
    if (isnan(value))
        return;
    html_row_begin(page, name);
    html_format(page, "%.4f", value);
    html_row_end(page);
}

static void write_words(html *page, const shared_side *side, uint64_t words) {
    html_put(page, "<tr><th scope=\"row\">Words of ");
    html_id(page, side->id, side->id_length, SHORT_ID);
    html_put(page, "</th><td>");
    html_number(page, words);
    html_row_end(page);
}

static void write_measures(html *page, const comparison *c, const shared_pair *pair) {
    const doppel_comparison *m = &c->measures;
    html_put(page, "<section><h2>Measures</h2>");
    html_table_begin(page,
                     "1 means equal, 0 nothing in common. Shingles are short pieces of a text, usually 5 words in "
                     "a row, and overlap each other");
    write_words(page, &pair->side[0], m->words_a);
    write_words(page, &pair->side[1], m->words_b);
    write_measure(page, "Similarity (Jaccard): shared shingles, of all shingles of both", m->similarity);
    write_measure(page, "Containment: shingles of the first that are in the second", m->containment_ab);
    write_measure(page, "Containment: shingles of the second that are in the first", m->containment_ba);
    write_measure(page, "Cosine of the word counts", m->cosine);
    write_measure(page, "Edit similarity of characters", m->edit_distance < 0 ? NAN : m->edit_similarity);
    if (m->distance >= 0) {
        html_row_begin(page, "Fingerprints");
        html_format(page, "%d of %d bits differ; of unrelated texts about half", m->distance, m->bits);
        html_row_end(page);
    }
    html_row_text(page, "Recipe", doppel_recipe_text(c->recipe));
    html_table_end(page);
    html_put(page, "</section>");
}

static shared_side page_side(const compared_side *side, uint64_t words) {
    return (shared_side){
        .id = side->id, .text = side->text, .id_length = side->id_length, .length = side->length, .words = words};
}

/* Where A and B come from, and the day. */
static void write_sources(html *page, const cli_args *args, const char *folder, size_t folder_length) {
    size_t count = 0;
    const char **in = args_text(args, "in") ? args_all(args, "in", &count) : NULL;
    const char *index = args_text(args, "index"); /* the address of a store may have a password */
    if (in)
        html_corpus(page, in[0], count);
    else
        html_corpus(page, index, index ? 1 : 0);
    if (folder_length) {
        html_put(page, ", both in <bdi>");
        html_text(page, folder, folder_length);
        html_put(page, "</bdi>");
    }
    free(in);
}

static int write_page(const cli_args *args, comparison *c) {
    html page = {.out = &c->html};
    shared_pair pair = {.side = {page_side(&c->a, c->measures.words_a), page_side(&c->b, c->measures.words_b)},
                        .passages = c->passages.passage,
                        .count = c->passages.count};
    pair_sum(&pair);
    size_t folder = pair_same_folder(&pair, c->a.id, c->a.id_length);
    pair_shorten_names(&pair, folder);
    pair_page_begin(&page);
    write_sources(&page, args, c->a.id, folder);
    html_result(&page);
    pair_page_sentence(&page, &pair);
    html_format(&page, "</p><p class=\"soft\">Passages of at least %zu %s that both have are <mark>shaded</mark>.",
                c->min_words, c->min_words == 1 ? "word" : "words");
    html_contents(&page, NULL, 0);
    html_put(&page, "<h2>Shared passages</h2>");
    pair_page_pair(&page, &pair, 0);
    write_measures(&page, c, &pair);
    pair_page_end(&page, false);
    if (page.status != DOPPEL_OK)
        message("%s", doppel_status_name(page.status));
    return exit_code(page.status);
}

/* ---- the command ---- */

static int measure(comparison *c) {
    const doppel_recipe *recipe = c->recipe;
    doppel_status status = doppel_compare(recipe, (doppel_slice){c->a.text, c->a.length},
                                          (doppel_slice){c->b.text, c->b.length}, &c->measures);
    if (status == DOPPEL_OK)
        status = doppel_passages_find(recipe, (doppel_slice){c->a.text, c->a.length},
                                      (doppel_slice){c->b.text, c->b.length}, c->min_words, &c->passages);
    if (status != DOPPEL_OK)
        message("%s", doppel_status_name(status));
    return exit_code(status);
}

static int read_both(const cli_args *args, comparison *c) {
    int code = args_text(args, "removed") ? read_removed(args, c) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    if (args_text(args, "in"))
        return read_by_id(args, c);
    if (args_text(args, "index") || args_text(args, "store"))
        return read_from_index(args, c);
    code = read_side(args, c->given[0], &c->a);
    return code == EXIT_DONE ? read_side(args, c->given[1], &c->b) : code;
}

static int compare(const cli_args *args, comparison *c) {
    const char *path = args_text(args, "html");
    bool of_index = !args_text(args, "recipe") && (args_text(args, "index") || args_text(args, "store"));
    int code = of_index ? EXIT_DONE : load_recipe(args, args_text(args, "recipe"), &c->loaded);
    c->recipe = c->loaded.recipe;
    if (code == EXIT_DONE && path)
        code = writer_open(&c->html, path, output_threads(args));
    if (code == EXIT_DONE)
        code = read_both(args, c);
    if (code == EXIT_DONE)
        code = measure(c);
    if (code == EXIT_DONE && path)
        code = write_page(args, c);
    if (path)
        code = writer_close(&c->html, code);
    if (code != EXIT_DONE || (path && is_stdout(path)))
        return code;
    if (args_flag(args, "json"))
        return print_object(c);
    return finish_stdout(print_lines(c));
}

/* Prints a message and returns false unless A and B are given in one of the ways that cmd_compare accepts. */
static bool check_given(const cli_args *args) {
    bool from_index = args_text(args, "index") || args_text(args, "store"), in = args_text(args, "in");
    bool removed = args_text(args, "removed");
    if (in && from_index)
        message("give --in or --%s, not both", args_text(args, "index") ? "index" : "store");
    else if (removed && !in && !from_index)
        message("--removed needs --in FILE, the input that it was made of");
    else if (removed && args->operand_count != 1)
        message("compare with --removed takes one id, that of a removed document");
    else if (!removed && args->operand_count != 2)
        message("compare takes two documents, not 1; with --in FILE --removed LIST, the id of a removed one");
    else if (!in && !from_index && !strcmp(args->operands[0], "-") && !strcmp(args->operands[1], "-"))
        message("only one of the two can be stdin");
    else
        return true;
    return false;
}

int cmd_compare(const cli_args *args) {
    comparison c = {.similarity = NAN, .min_words = (size_t)args_number(args, "min-words", 5)};
    if (!c.min_words) {
        message("--min-words takes a number of at least 1");
        return EXIT_USAGE;
    }
    if (!check_given(args) || !check_outputs(args))
        return EXIT_USAGE;
    c.given[0] = args->operands[0];
    if (args->operand_count == 2)
        c.given[1] = args->operands[1];
    if (!content_option(args, &c.a.content))
        return EXIT_USAGE;
    c.b.content = c.a.content;
    int code = compare(args, &c);
    if (c.index.args)
        code = engine_close(&c.index, code);
    free_recipe(&c.loaded);
    free(c.a.id);
    free(c.a.text);
    free(c.a.title);
    free(c.b.id);
    free(c.b.text);
    free(c.b.title);
    free(c.original);
    free(c.reason);
    doppel_passages_free(&c.passages);
    return code;
}

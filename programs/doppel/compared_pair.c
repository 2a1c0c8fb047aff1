/* compared_pair.c - the two documents of doppel compare: read_side for files, read_by_id for documents of the files of
 * --in, read_from_index for those of an index. With --removed, read_removed finds first what A was removed for. Where
 * an id is unknown, the message names the most similar one. */
#include "compared_pair.h"

#include "common/message.h"
#include "common/progress.h"
#include "shared/address.h"
#include "shared/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- each in a file of its own ---- */

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
static void report_no_id(const cli_args *args, const compared_pair *c, const id_search *search, size_t i) {
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

static int read_by_id(const cli_args *args, compared_pair *c) {
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
    compared_pair *c;
    bool is_list;       /* a line names an original, or there is no line */
    doppel_error first; /* the first bad line */
} list_search;

/* doppel_work.document: a line of the list. What doppel add printed of an original has none. */
static doppel_status find_removed(void *state, const doppel_document *d, doppel_output *output) {
    (void)output;
    list_search *search = state;
    compared_pair *c = search->c;
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
static int read_removed(const cli_args *args, compared_pair *c) {
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
static int read_from_index(const cli_args *args, compared_pair *c) {
    engine_command *e = &c->index;
    int code = engine_prepare(e, args, ENGINE_READ);
    e->options.recipe = NULL;
    if (code == EXIT_DONE)
        code = engine_start(e);
    if (code == EXIT_DONE)
        code = get_side(e, c->given[0], &c->a);
    if (code == EXIT_DONE)
        code = get_side(e, c->given[1], &c->b);
    return code;
}

/* ---- both ---- */

int compared_pair_read(const cli_args *args, compared_pair *c) {
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

int compared_pair_free(compared_pair *c, int code) {
    if (c->index.args)
        code = engine_close(&c->index, code);
    free(c->a.id);
    free(c->a.text);
    free(c->a.title);
    free(c->b.id);
    free(c->b.text);
    free(c->b.title);
    free(c->original);
    free(c->reason);
    return code;
}

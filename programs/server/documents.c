/* documents.c - documents from JSON, as the engine takes them, and the requests about them: check, add, get, remove,
 * list, similar. */
#include "common/stored_json.h"
#include "server/service.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- documents from JSON ---- */

static doppel_slice text_member_of(const json *j, const json_value *object, const char *key) {
    const json_value *value = json_member(j, object, key);
    bool fits = value && (value->kind == JSON_STRING || value->kind == JSON_NUMBER);
    return fits ? value->text : (doppel_slice){NULL, 0};
}

static doppel_slice *kept_fields(const json *j, const json_value *object, const index_entry *index) {
    doppel_slice *extra = calloc(index->fields.count, sizeof *extra);
    for (size_t i = 0; extra && i < index->fields.count; i++)
        extra[i] = text_member_of(j, object, index->fields.names[i]);
    return extra;
}

bool item_make(const json *j, const json_value *object, const index_entry *index, doppel_item *item,
               doppel_slice **extra) {
    doppel_slice id = text_member_of(j, object, "id"), url = text_member_of(j, object, "url"),
                 title = text_member_of(j, object, "title"), content = text_member_of(j, object, "text"),
                 html = text_member_of(j, object, "html");
    const json_value *ttl = json_member(j, object, "ttl");
    *item = (doppel_item){.size = sizeof *item};
    *extra = NULL;
    item->document = (doppel_document){
        .id.data = id.data ? id.data : "",
        .id.length = id.length,
        .text.data = content.data ? content.data : "",
        .text.length = content.length,
        .url.data = url.data,
        .url.length = url.length,
        .title.data = title.data,
        .title.length = title.length,
        .html.data = html.data,
        .html.length = html.length,
        .charset = html.data ? "utf-8" : NULL,
    };
    if (ttl && ttl->kind == JSON_NUMBER)
        item->ttl = (uint64_t)strtod(ttl->text.data, NULL);
    if (!index || !index->fields.count)
        return true;
    *extra = kept_fields(j, object, index);
    item->document.extra = *extra;
    return *extra;
}

bool item_has_content(const json *j, const json_value *object) {
    static const char *const names[] = {"url", "title", "text", "html"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_value *value = json_member(j, object, names[i]);
        if (value && value->kind == JSON_STRING)
            return true;
    }
    return false;
}

/* ---- check and add ---- */

/* The document of the body; false: a problem is the answer. */
static bool take_item(request *r) {
    if (!request_json(r))
        return false;
    if (!item_has_content(&r->json, r->json.values)) {
        request_problem(r, PROBLEM_WRONG_SHAPE, "", "a document needs at least one of url, title, text and html");
        return false;
    }
    if (item_make(&r->json, r->json.values, r->index, &r->item, &r->extra))
        return true;
    request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory");
    return false;
}

static void answer_verdict(request *r, int status) {
    text_verdict(&r->answer, &r->verdict, true);
    request_answer(r, status);
}

void handle_check(request *r) {
    doppel_error error = {0};
    if (!take_item(r))
        return;
    doppel_status status = doppel_engine_check(r->index->engine, &r->item, &r->verdict, &error);
    if (status != DOPPEL_OK)
        request_error(r, status, &error);
    else
        answer_verdict(r, 200);
}

/* Whether an add needs no work: it was sent before, and gets the same answer, or a problem. */
static bool answered_before(request *r) {
    service *s = r->service;
    if (!r->key_name)
        return false;
    const char *const parts[] = {r->key_name, r->token, r->index->name};
    const doppel_slice content = {r->content.data, r->content.length};
    idempotency_make(&s->idempotency, parts, content, &r->key);
    int status = 0;
    switch (idempotency_begin(&s->idempotency, &r->key, &status, &r->answer)) {
    case KEY_NEW: r->has_key = true; return false;
    case KEY_ANSWERED: request_answer(r, status); break;
    case KEY_UNDER_WAY:
        request_problem(r, PROBLEM_IN_PROGRESS, NULL, "the add with this key is still in progress");
        break;
    case KEY_OTHER_BODY: request_problem(r, PROBLEM_KEY_REUSED, NULL, "use another key for another document"); break;
    case KEY_NO_MEMORY: request_problem(r, PROBLEM_NO_MEMORY, NULL, "no memory"); break;
    }
    return true;
}

/* Prepares an add; add_together does it. */
void handle_add(request *r) {
    if (!take_item(r))
        return;
    r->adds = !answered_before(r);
}

static void end_add(request *r, doppel_status status, const doppel_error *error) {
    r->adds = false;
    if (status != DOPPEL_OK) {
        request_error(r, status, error);
        return;
    }
    answer_verdict(r, r->verdict.is_duplicate || r->verdict.known ? 200 : 201);
    if (r->has_key && !r->answer.failed) {
        idempotency_end(&r->service->idempotency, &r->key, r->status, &r->answer);
        r->has_key = false;
    }
}

static void add_alone(request *r) {
    doppel_error error = {0};
    doppel_status status = doppel_engine_add(r->index->engine, &r->item, &r->verdict, &error);
    end_add(r, status, &error);
}

void add_together(request **list, size_t count) {
    doppel_item items[WORKERS_MOST] = {0};
    doppel_verdict verdicts[WORKERS_MOST];
    doppel_error errors[WORKERS_MOST];
    doppel_error error = {0};
    if (count <= 1) {
        if (count)
            add_alone(list[0]);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        items[i] = list[i]->item;
        verdicts[i] = list[i]->verdict;
        errors[i] = (doppel_error){0};
    }
    doppel_status status = doppel_engine_add_batch(list[0]->index->engine, items, count, verdicts, errors, &error);
    for (size_t i = 0; i < count; i++) {
        list[i]->verdict = verdicts[i];
        if (errors[i].code != DOPPEL_OK)
            end_add(list[i], errors[i].code, &errors[i]);
        else
            end_add(list[i], status, &error);
    }
}

/* ---- get and remove ---- */

static void no_document(request *r) {
    request_problem(r, PROBLEM_NO_DOCUMENT, NULL, "no document has this id or URL");
}

/* The document of the path, by its id or URL; false: a problem is the answer. Free the list in any case. */
static bool get_stored(request *r, doppel_stored_list *list) {
    doppel_error error = {0};
    *list = (doppel_stored_list){0};
    doppel_status status = doppel_engine_get(r->index->engine, (doppel_slice){r->id, r->id_length}, list, &error);
    if (status == DOPPEL_OK && list->count)
        return true;
    if (status == DOPPEL_OK || status == DOPPEL_ERROR_INPUT)
        no_document(r);
    else
        request_error(r, status, &error);
    return false;
}

void handle_get(request *r) {
    doppel_stored_list list;
    if (get_stored(r, &list)) {
        text_stored(&r->answer, list.stored, r->index->bits);
        request_answer(r, 200);
    }
    doppel_stored_list_free(&list);
}

void handle_remove(request *r) {
    bool removed = false;
    doppel_error error = {0};
    doppel_status status =
        doppel_engine_remove(r->index->engine, (doppel_slice){r->id, r->id_length}, &removed, &error);
    if (status != DOPPEL_OK && status != DOPPEL_ERROR_INPUT) {
        request_error(r, status, &error);
    } else if (!removed) {
        no_document(r);
    } else {
        text_put(&r->answer, "{");
        text_member_string(&r->answer, "id", (doppel_slice){r->id, r->id_length});
        text_member_bool(&r->answer, "removed", true);
        text_put(&r->answer, "}");
        request_answer(r, 200);
    }
}

/* ---- lists, a page at a time ---- */

/* `original` (data NULL: none) is the document whose copies these are. */
static void begin_page(request *r, doppel_slice original) {
    text_put(&r->answer, "{");
    if (original.data)
        text_member_string(&r->answer, "original", original);
    text_member(&r->answer, "documents");
    text_put(&r->answer, "[");
}

static void write_page(request *r, const doppel_stored_list *list, bool by_title, bool first) {
    for (size_t i = 0; i < list->count; i++) {
        text_put(&r->answer, first && !i ? "" : ",");
        text_stored(&r->answer, &list->stored[i], r->index->bits);
        if (by_title && !r->answer.failed) {
            r->answer.length--; /* its last brace */
            text_member_share(&r->answer, "titleSimilarity", list->stored[i].similarity);
            text_put(&r->answer, "}");
        }
    }
}

static void end_page(request *r, uint64_t next) {
    text_put(&r->answer, "]");
    text_member_distance(&r->answer, "next", next ? (int64_t)next : -1);
    text_put(&r->answer, "}");
    request_answer(r, 200);
}

/* Documents may have about a MiB each, so a page is made in steps, and ends early once it is large. */
enum { PAGE_STEP = 32, PAGE_BYTES = 16 << 20 };

static void list_documents(request *r, doppel_list_options *options) {
    uint64_t limit = (uint64_t)request_number(r, "limit"), count = 0, next = (uint64_t)request_number(r, "cursor");
    doppel_error error = {0};
    doppel_status status;
    bool more;
    options->size = sizeof *options;
    begin_page(r, options->copies_of);
    do {
        doppel_stored_list list = {0};
        bool by_title = options->title.data; /* then there are no pages */
        options->after = next;
        options->limit = by_title || limit - count < PAGE_STEP ? limit - count : PAGE_STEP;
        next = 0;
        status = doppel_engine_list(r->index->engine, options, &list, &next, &error);
        write_page(r, &list, by_title, !count);
        count += list.count;
        more = status == DOPPEL_OK && next && list.count == options->limit && count < limit;
        doppel_stored_list_free(&list);
    } while (more && r->answer.length < PAGE_BYTES);
    if (status == DOPPEL_OK)
        end_page(r, next);
    else if (status == DOPPEL_ERROR_INPUT && options->copies_of.data)
        no_document(r);
    else
        request_error(r, status, &error);
}

/* Whether a document's URL has the host `user`, or one below it. */
static bool has_host(const doppel_stored *stored, void *user) {
    const char *host = user;
    host += strncasecmp(host, "www.", 4) ? 0 : 4; /* which canonical URLs do not have */
    size_t length = strlen(host);
    doppel_url_parts parts;
    if (!stored->canonical.data)
        return false;
    doppel_url_split(stored->canonical, &parts);
    if (parts.host.length < length)
        return false;
    const char *end = parts.host.data + parts.host.length - length;
    return !strncasecmp(end, host, length) && (end == parts.host.data || end[-1] == '.');
}

void handle_list(request *r) {
    static const char *const kinds[] = {"all", "originals", "copies"};
    const char *kind = request_choice(r, "kind"), *host = request_choice(r, "host");
    doppel_list_options options = {.title = doppel_slice_of(request_choice(r, "title"))};
    while (strcmp(kind, kinds[options.kind]) != 0)
        options.kind++;
    if (host) {
        options.wanted = has_host;
        options.user = (void *)(uintptr_t)host;
    }
    list_documents(r, &options);
}

/* The copies of a document; of one that is itself a copy, those of its original. */
void handle_copies(request *r) {
    doppel_stored_list list;
    if (get_stored(r, &list)) {
        const doppel_stored *one = list.stored;
        doppel_list_options options = {.copies_of = one->original_id.data ? one->original_id : one->id};
        list_documents(r, &options);
    }
    doppel_stored_list_free(&list);
}

/* ---- similar ---- */

void answer_list(request *r, const char *name, const doppel_stored_list *list, bool ranked) {
    text_format(&r->answer, "{\"%s\":[", name);
    for (size_t i = 0; i < list->count; i++) {
        text_put(&r->answer, i ? "," : "");
        if (ranked)
            text_similar(&r->answer, &list->stored[i]);
        else
            text_stored(&r->answer, &list->stored[i], r->index->bits);
    }
    text_put(&r->answer, "]}");
    request_answer(r, 200);
}

/* Whether a document only names a stored one, by its id or URL, and has no content itself. */
static bool is_name(const doppel_item *item) {
    return !item->document.text.length && !item->document.html.data;
}

static void answer_similar(request *r, const doppel_item *item) {
    const char *distance = request_choice(r, "distance");
    doppel_stored_list list = {0};
    doppel_error error = {0};
    doppel_similar_options options = {.size = sizeof options, .limit = (uint64_t)request_number(r, "limit")};
    options.similarity = request_number(r, "similarity");
    options.similarity = options.similarity > 0 ? options.similarity : 1e-9; /* 0 would be the default */
    if (distance)
        options.distance = (int)request_number(r, "distance");
    if (options.distance > r->index->bits)
        options.distance = r->index->bits; /* all of them */
    options.distance_zero = distance && !options.distance;
    doppel_status status = doppel_engine_find_similar(r->index->engine, item, &options, &list, &error);
    if (status == DOPPEL_OK)
        answer_list(r, "results", &list, true);
    else if (status == DOPPEL_ERROR_INPUT && is_name(item))
        no_document(r);
    else
        request_error(r, status, &error);
    doppel_stored_list_free(&list);
}

void handle_similar(request *r) {
    doppel_stored_list list;
    if (get_stored(r, &list)) {
        doppel_item item = {.size = sizeof item};
        item.document.id.data = list.stored->id.data;
        item.document.id.length = list.stored->id.length;
        item.document.text.data = "";
        answer_similar(r, &item);
    }
    doppel_stored_list_free(&list);
}

void handle_similar_to(request *r) {
    if (!take_item(r))
        return;
    r->item.document.id.data = "";
    r->item.document.id.length = 0;
    if (is_name(&r->item) && !r->item.document.url.length)
        answer_list(r, "results", &(doppel_stored_list){0},
                    true); /* nothing is similar to a document without content */
    else
        answer_similar(r, &r->item);
}

/* engine_values.c - what an engine says as Python values: verdicts and stored documents as named tuples, verdicts as
 * columns, figures as dicts. */
#include "engine.h"

#include <math.h>
#include <string.h>

/* ---- verdicts and stored documents as named tuples ---- */

static newfunc new_tuple;     /* tuple.__new__ */
static PyObject *no_evidence; /* of every document that is new */
static PyObject *reason_names[DOPPEL_REASONS];

int init_engine_values(void) {
    for (int i = 1; i < DOPPEL_REASONS; i++)
        if (!(reason_names[i] = PyUnicode_InternFromString(doppel_reason_name((doppel_reason)i))))
            return -1;
    new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    no_evidence = PyObject_CallNoArgs(doppel_module.evidence);
    return no_evidence ? 0 : -1;
}

/* A named tuple of values, whose references it takes; NULL among them is an exception that was raised. */
static PyObject *make_tuple(PyObject *type, PyObject **values, Py_ssize_t count) {
    PyObject *fields = PyTuple_New(count), *arguments = PyTuple_New(1), *made = NULL;
    bool whole = fields && arguments;
    for (Py_ssize_t i = 0; i < count; i++) {
        whole = whole && values[i];
        if (fields && values[i])
            PyTuple_SetItem(fields, i, values[i]);
        else
            Py_XDECREF(values[i]);
    }
    if (whole) {
        PyTuple_SetItem(arguments, 0, fields);
        fields = NULL;
        made = new_tuple((PyTypeObject *)type, arguments, NULL);
    }
    Py_XDECREF(fields);
    Py_XDECREF(arguments);
    return made;
}

PyObject *string_or_none(doppel_slice slice) {
    return slice.data ? PyUnicode_DecodeUTF8(slice.data, (Py_ssize_t)slice.length, "replace") : none();
}

static PyObject *distance_or_none(int64_t distance) {
    return distance < 0 ? none() : PyLong_FromLongLong(distance);
}

static PyObject *reason_or_none(doppel_reason reason) {
    PyObject *name = (unsigned)reason < DOPPEL_REASONS ? reason_names[reason] : NULL;
    Py_XINCREF(name);
    return name ? name : none();
}

static bool says_nothing(const doppel_evidence *e) {
    return e->distance < 0 && isnan(e->similarity) && isnan(e->containment) && isnan(e->title_similarity) &&
           !e->same_url && !e->same_digest && !e->verified;
}

static PyObject *make_evidence(const doppel_evidence *e) {
    if (says_nothing(e)) {
        Py_INCREF(no_evidence);
        return no_evidence;
    }
    PyObject *values[] = {distance_or_none(e->distance),  number_or_none(e->similarity),
                          number_or_none(e->containment), number_or_none(e->title_similarity),
                          PyBool_FromLong(e->same_url),   PyBool_FromLong(e->same_digest),
                          PyBool_FromLong(e->verified)};
    return make_tuple(doppel_module.evidence, values, sizeof values / sizeof *values);
}

PyObject *make_verdict(const doppel_verdict *v) {
    PyObject *values[] = {
        string_or_none(v->id),     PyBool_FromLong(v->is_duplicate), PyFloat_FromDouble(v->confidence),
        reason_or_none(v->reason), string_or_none(v->original_id),   make_evidence(&v->evidence)};
    return make_tuple(doppel_module.verdict, values, sizeof values / sizeof *values);
}

/* The fields that were kept, a JSON object, as a dict. */
static PyObject *make_fields(doppel_slice fields) {
    if (!fields.data)
        return PyDict_New();
    PyObject *json = PyImport_ImportModule("json"), *text = string_or_none(fields);
    PyObject *made = json && text ? PyObject_CallMethod(json, "loads", "O", text) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(json);
    return made;
}

static PyObject *make_aliases(const doppel_stored *s) {
    PyObject *made = PyList_New((Py_ssize_t)s->alias_count);
    for (size_t i = 0; made && i < s->alias_count; i++) {
        PyObject *alias = string_or_none(s->aliases[i]);
        if (!alias || PyList_SetItem(made, (Py_ssize_t)i, alias))
            Py_CLEAR(made);
    }
    return made;
}

static PyObject *count_or_none(uint64_t count) {
    return count ? PyLong_FromUnsignedLongLong(count) : none();
}

static PyObject *make_digest(const uint8_t digest[32]) {
    static const uint8_t zero[32];
    return memcmp(digest, zero, sizeof zero) ? PyBytes_FromStringAndSize((const char *)digest, 32) : none();
}

static PyObject *make_counts(const uint64_t by[DOPPEL_REASONS]) {
    return Py_BuildValue("{sKsKsK}", "url", (unsigned long long)by[DOPPEL_REASON_URL], "content",
                         (unsigned long long)by[DOPPEL_REASON_CONTENT], "title",
                         (unsigned long long)by[DOPPEL_REASON_TITLE]);
}

/* The document that represents its group: of a copy its original, else the document itself. */
static doppel_slice group_of(const doppel_stored *s) {
    return s->original_id.data ? s->original_id : s->id;
}

PyObject *make_stored(const doppel_stored *s, int bits, bool similar) {
    bool copy = s->original_id.data;
    PyObject *values[] = {string_or_none(s->id),
                          PyLong_FromUnsignedLongLong(s->number),
                          string_or_none(s->url),
                          string_or_none(s->canonical),
                          string_or_none(s->title),
                          make_fields(s->fields),
                          string_or_none(group_of(s)),
                          string_or_none(s->original_id),
                          copy ? reason_or_none(s->reason) : none(),
                          copy ? make_evidence(&s->evidence) : none(),
                          PyLong_FromUnsignedLongLong(s->added),
                          count_or_none(s->expires),
                          PyLong_FromUnsignedLongLong(s->words),
                          fingerprint_object(s->fingerprint, bits),
                          make_digest(s->digest),
                          count_or_none(s->set_count),
                          PyLong_FromUnsignedLongLong(s->duplicates),
                          make_counts(s->duplicates_by),
                          count_or_none(s->last_duplicate),
                          PyLong_FromUnsignedLongLong(s->copies),
                          make_aliases(s),
                          string_or_none(s->text),
                          similar ? number_or_none(s->similarity) : none(),
                          similar ? distance_or_none(s->distance) : none(),
                          similar ? number_or_none(s->containment) : none()};
    return make_tuple(doppel_module.stored, values, sizeof values / sizeof *values);
}

/* ---- figures ---- */

typedef unsigned long long count_number; /* as Py_BuildValue takes it for K */

/* The quantile of a histogram, rounded up to a power of two. */
static unsigned long long quantile(const doppel_histogram *h, double share) {
    uint64_t seen = 0;
    for (int i = 0; i < DOPPEL_BUCKETS; i++) {
        seen += h->bucket[i];
        if ((double)seen >= share * (double)h->count)
            return 1ULL << i;
    }
    return 1ULL << DOPPEL_BUCKETS;
}

static PyObject *make_histogram(const doppel_histogram *h) {
    if (!h->count)
        return Py_BuildValue("{sK}", "count", 0ULL);
    return Py_BuildValue("{sKsdsKsK}", "count", (unsigned long long)h->count, "mean", (double)h->sum / (double)h->count,
                         "p50Below", quantile(h, 0.5), "p99Below", quantile(h, 0.99));
}

/* What is counted since the engine was opened. */
static PyObject *make_since_opened(const doppel_engine_stats *s) {
    PyObject *verdicts = make_counts(s->verdicts_by), *unique = PyLong_FromUnsignedLongLong(s->verdicts_by[0]);
    int failed = !verdicts || !unique || PyDict_SetItemString(verdicts, "unique", unique);
    Py_XDECREF(unique);
    if (failed) {
        Py_XDECREF(verdicts);
        return NULL;
    }
    return Py_BuildValue("{sd sK sK sK sK sK sK sK sN sN sN sN sN}", "openSeconds", s->open_seconds, "checks",
                         (count_number)s->checks, "adds", (count_number)s->adds, "removes", (count_number)s->removes,
                         "expired", (count_number)s->expired, "damaged", (count_number)s->damaged, "commits",
                         (count_number)s->commits, "failedCommits", (count_number)s->failed_commits, "verdicts",
                         verdicts, "checkMicroseconds", make_histogram(&s->check_time), "addMicroseconds",
                         make_histogram(&s->add_time), "commitMicroseconds", make_histogram(&s->commit_time),
                         "candidates", make_histogram(&s->candidates));
}

PyObject *make_stats(const doppel_engine_stats *s) {
    PyObject *memory = Py_BuildValue("{sK sK sK}", "keys", (count_number)s->keys_bytes, "near",
                                     (count_number)s->near_bytes, "titles", (count_number)s->title_bytes);
    return Py_BuildValue(
        "{sK sK sK sN sN sN sK sK sK sK sN ss sN}", "documents", (count_number)s->documents, "copies",
        (count_number)s->copies, "titles", (count_number)s->titles, "duplicates", make_counts(s->duplicates_by),
        "oldest", count_or_none(s->oldest), "newest", count_or_none(s->newest), "lastNumber", (count_number)s->last,
        "diskBytes", (count_number)s->disk_bytes, "freeBytes", (count_number)s->free_bytes, "memoryBytes",
        (count_number)s->memory_bytes, "memory", memory, "plan", s->plan, "sinceOpened", make_since_opened(s));
}

/* ---- verdicts as columns ---- */

/* The columns that verdicts on Arrow data become. */
enum {
    COLUMN_ID,
    COLUMN_IS_DUPLICATE,
    COLUMN_CONFIDENCE,
    COLUMN_REASON,
    COLUMN_ORIGINAL_ID,
    COLUMN_DISTANCE,
    COLUMN_SIMILARITY,
    COLUMN_CONTAINMENT,
    COLUMN_TITLE_SIMILARITY,
    COLUMN_SAME_URL,
    COLUMN_SAME_DIGEST,
    COLUMN_VERIFIED
};

static const struct {
    const char *name;
    value_kind kind;
} verdict_columns[VERDICT_COLUMNS] = {
    {"id", VALUE_STRING},         {"isDuplicate", VALUE_BOOL},   {"confidence", VALUE_DOUBLE},
    {"reason", VALUE_STRING},     {"originalId", VALUE_STRING},  {"distance", VALUE_INT32},
    {"similarity", VALUE_DOUBLE}, {"containment", VALUE_DOUBLE}, {"titleSimilarity", VALUE_DOUBLE},
    {"sameUrl", VALUE_BOOL},      {"sameDigest", VALUE_BOOL},    {"verified", VALUE_BOOL},
};

static bool set_null(array_builder *builder, size_t row) {
    if (!builder->valid && !builder_make_valid(builder))
        return false;
    builder->valid[row] = 0;
    return true;
}

static void put_evidence(array_builder *to, size_t row, const doppel_evidence *e) {
    ((int32_t *)to[COLUMN_DISTANCE].values)[row] = e->distance;
    ((double *)to[COLUMN_SIMILARITY].values)[row] = e->similarity;
    ((double *)to[COLUMN_CONTAINMENT].values)[row] = e->containment;
    ((double *)to[COLUMN_TITLE_SIMILARITY].values)[row] = e->title_similarity;
    ((uint8_t *)to[COLUMN_SAME_URL].values)[row] = e->same_url;
    ((uint8_t *)to[COLUMN_SAME_DIGEST].values)[row] = e->same_digest;
    ((uint8_t *)to[COLUMN_VERIFIED].values)[row] = e->verified;
}

bool verdict_table_init(verdict_table *table, size_t rows) {
    bool good = true;
    for (int i = 0; i < VERDICT_COLUMNS && good; i++)
        good = builder_init(&table->column[i], verdict_columns[i].kind, 0, rows);
    return good;
}

bool verdict_table_put(verdict_table *table, size_t row, const doppel_verdict *v) {
    array_builder *to = table->column;
    static const doppel_verdict empty = {
        .confidence = NAN,
        .evidence = {.distance = -1, .similarity = NAN, .containment = NAN, .title_similarity = NAN}};
    bool good = true;
    if (!v)
        for (int i = 0; i < VERDICT_COLUMNS && good; i++)
            good = verdict_columns[i].kind != VALUE_BOOL || set_null(&to[i], row);
    v = v ? v : &empty;
    ((uint8_t *)to[COLUMN_IS_DUPLICATE].values)[row] = v->is_duplicate;
    ((double *)to[COLUMN_CONFIDENCE].values)[row] = v->confidence;
    put_evidence(to, row, &v->evidence);
    return good && builder_add_string(&to[COLUMN_ID], v->id) &&
           builder_add_string(&to[COLUMN_REASON], doppel_slice_of(doppel_reason_name(v->reason))) &&
           builder_add_string(&to[COLUMN_ORIGINAL_ID], v->original_id) &&
           (v->evidence.distance >= 0 || set_null(&to[COLUMN_DISTANCE], row));
}

PyObject *verdict_table_finish(verdict_table *table) {
    PyObject *made = PyDict_New();
    for (int i = 0; i < VERDICT_COLUMNS; i++) {
        PyObject *column = builder_finish(&table->column[i], false);
        if (made && (!column || PyDict_SetItemString(made, verdict_columns[i].name, column)))
            Py_CLEAR(made);
        Py_XDECREF(column);
    }
    return made;
}

void verdict_table_free(verdict_table *table) {
    for (int i = 0; i < VERDICT_COLUMNS; i++)
        builder_free(&table->column[i]);
}

/* engine_options.c - the options of an engine: from a dict of Python to doppel_engine_options, and back. One table has
 * their names and kinds; None stands for the default. */
#include "engine.h"

#include <string.h>

typedef struct option_choice {
    const char *name; /* NULL ends them */
    unsigned value;
} option_choice;

static const option_choice preset_choices[] = {{"general", 0}, {"crawl", 0}, {"article", 0}, {NULL, 0}};
static const option_choice near_choices[] = {
    {"similarity", DOPPEL_NEAR_SIMILARITY}, {"distance", DOPPEL_NEAR_DISTANCE}, {NULL, 0}};
static const option_choice content_choices[] = {{"main", DOPPEL_CONTENT_MAIN}, {"all", DOPPEL_CONTENT_ALL}, {NULL, 0}};
static const option_choice duplicate_choices[] = {
    {"skip", DOPPEL_DUPLICATE_SKIP}, {"link", DOPPEL_DUPLICATE_LINK}, {"store", DOPPEL_DUPLICATE_STORE}, {NULL, 0}};
static const option_choice same_url_choices[] = {
    {"duplicate", DOPPEL_SAME_URL_DUPLICATE}, {"refresh", DOPPEL_SAME_URL_REFRESH}, {NULL, 0}};
static const option_choice durability_choices[] = {
    {"none", DOPPEL_DURABLE_NONE}, {"batch", DOPPEL_DURABLE_BATCH}, {"each", DOPPEL_DURABLE_EACH}, {NULL, 0}};

typedef enum option_kind {
    OPTION_CHOICE, /* of names, for an enum */
    OPTION_PRESET, /* of names, as it is */
    OPTION_SWITCH, /* bool, for doppel_switch */
    OPTION_FLAG,   /* bool */
    OPTION_SHARE,  /* above 0 and up to 1 */
    OPTION_COUNT,  /* uint64_t */
    OPTION_INT,
    OPTION_TEXT,
    OPTION_TTL
} option_kind;

#define AT(member) offsetof(doppel_engine_options, member)
static const struct engine_option {
    const char *name;
    option_kind kind;
    size_t offset;
    const option_choice *choices;
} engine_options[] = {
    {"preset", OPTION_PRESET, AT(preset), preset_choices},
    {"near", OPTION_CHOICE, AT(near), near_choices},
    {"similarity", OPTION_SHARE, AT(similarity), NULL},
    {"distance", OPTION_INT, AT(distance), NULL},
    {"min_words", OPTION_COUNT, AT(min_words), NULL},
    {"titles", OPTION_SWITCH, AT(titles), NULL},
    {"title_similarity", OPTION_SHARE, AT(title_similarity), NULL},
    {"title_veto", OPTION_SWITCH, AT(title_veto), NULL},
    {"keep_text", OPTION_SWITCH, AT(keep_text), NULL},
    {"content", OPTION_CHOICE, AT(content), content_choices},
    {"fields", OPTION_TEXT, AT(fields), NULL},
    {"on_duplicate", OPTION_CHOICE, AT(on_duplicate), duplicate_choices},
    {"on_same_url", OPTION_CHOICE, AT(on_same_url), same_url_choices},
    {"ttl", OPTION_TTL, AT(ttl), NULL},
    {"durability", OPTION_CHOICE, AT(durability), durability_choices},
    {"read_only", OPTION_FLAG, AT(read_only), NULL},
    {"must_exist", OPTION_FLAG, AT(must_exist), NULL},
    {"threads", OPTION_INT, AT(threads), NULL},
    {"count", OPTION_COUNT, AT(count), NULL},
    {"memory", OPTION_COUNT, AT(memory), NULL},
};

static int refuse_choice(value_place place, const option_choice *choices, PyObject *value) {
    PyObject *names = PyUnicode_FromFormat("\"%s\"", choices->name);
    for (const option_choice *c = choices + 1; names && c->name; c++) {
        PyObject *longer = PyUnicode_FromFormat("%U%s\"%s\"", names, c[1].name ? ", " : " or ", c->name);
        Py_DECREF(names);
        names = longer;
    }
    PyObject *what = names ? PyUnicode_FromFormat("expected %U, not %R", names, value) : NULL;
    Py_XDECREF(names);
    return refuse_value(PyExc_ValueError, place, NULL, what);
}

static int set_choice(value_place place, const struct engine_option *option, void *at, PyObject *value) {
    if (!PyUnicode_Check(value))
        return refuse_type(place, NULL, "str", value);
    for (const option_choice *c = option->choices; c->name; c++)
        if (!PyUnicode_CompareWithASCIIString(value, c->name)) {
            if (option->kind == OPTION_PRESET)
                *(const char **)at = c->name;
            else
                *(unsigned *)at = c->value;
            return 0;
        }
    return refuse_choice(place, option->choices, value);
}

static int set_share(value_place place, double *at, PyObject *value) {
    if (PyBool_Check(value) || !(PyFloat_Check(value) || PyObject_HasAttrString(value, "__float__")))
        return refuse_type(place, NULL, "a number", value);
    *at = PyFloat_AsDouble(value);
    if (PyErr_Occurred())
        return -1;
    if (*at > 0 && *at <= 1)
        return 0;
    return refuse_value(PyExc_ValueError, place, NULL,
                        PyUnicode_FromFormat("expected a number above 0 and up to 1, such as 0.8; not %R", value));
}

/* A whole number of at least 0. */
static int set_number(value_place place, uint64_t most, PyObject *value, uint64_t *number) {
    if (PyBool_Check(value) || !PyIndex_Check(value))
        return refuse_type(place, NULL, "int", value);
    PyObject *whole = PyNumber_Index(value);
    if (!whole)
        return -1;
    *number = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    if (!PyErr_Occurred() && *number <= most)
        return 0;
    PyErr_Clear();
    return refuse_value(
        PyExc_ValueError, place, NULL,
        PyUnicode_FromFormat("expected a number from 0 to %llu, not %R", (unsigned long long)most, value));
}

static int set_text(value_place place, const char **at, PyObject *value) {
    Py_ssize_t length;
    if (!PyUnicode_Check(value))
        return refuse_type(place, NULL, "str", value);
    *at = PyUnicode_AsUTF8AndSize(value, &length);
    if (*at && strlen(*at) != (size_t)length)
        return refuse_value(PyExc_ValueError, place, NULL, PyUnicode_FromString("has a NUL character"));
    return *at ? 0 : -1;
}

static int set_option(doppel_engine_options *options, const struct engine_option *option, PyObject *value) {
    void *at = (char *)options + option->offset;
    const value_place place = {option->name, -1};
    uint64_t number = 0;
    switch (option->kind) {
    case OPTION_CHOICE:
    case OPTION_PRESET: return set_choice(place, option, at, value);
    case OPTION_SHARE: return set_share(place, at, value);
    case OPTION_COUNT: return set_number(place, UINT64_MAX, value, at);
    case OPTION_TEXT: return set_text(place, at, value);
    case OPTION_TTL: return ttl_of_object(value, at) == 1 ? 0 : refuse_ttl(place, NULL, value);
    case OPTION_INT:
        if (set_number(place, INT32_MAX, value, &number))
            return -1;
        *(int *)at = (int)number;
        return 0;
    default: break;
    }
    if (!PyBool_Check(value))
        return refuse_type(place, NULL, "bool", value);
    if (option->kind == OPTION_FLAG)
        *(bool *)at = value == Py_True;
    else
        *(doppel_switch *)at = value == Py_True ? DOPPEL_SWITCH_ON : DOPPEL_SWITCH_OFF;
    return 0;
}

int read_engine_options(PyObject *dict, doppel_engine_options *options) {
    for (size_t i = 0; i < sizeof engine_options / sizeof *engine_options; i++) {
        PyObject *value = PyDict_GetItemString(dict, engine_options[i].name);
        if (!value || value == Py_None)
            continue;
        if (set_option(options, &engine_options[i], value))
            return -1;
        /* Where 0 is a value, and not the default. */
        if (!strcmp(engine_options[i].name, "distance"))
            options->distance_zero = !options->distance;
        if (!strcmp(engine_options[i].name, "min_words") && !options->min_words)
            options->min_words = 1;
    }
    return 0;
}

static PyObject *make_option(const struct engine_option *option, const doppel_engine_options *options) {
    const void *at = (const char *)options + option->offset;
    uint64_t ttl;
    switch (option->kind) {
    case OPTION_CHOICE:
        for (const option_choice *c = option->choices; c->name; c++)
            if (c->value == *(const unsigned *)at)
                return PyUnicode_FromString(c->name);
        return none();
    case OPTION_PRESET:
    case OPTION_TEXT: return string_or_none(doppel_slice_of(*(const char *const *)at));
    case OPTION_SWITCH: return PyBool_FromLong(*(const doppel_switch *)at == DOPPEL_SWITCH_ON);
    case OPTION_FLAG: return PyBool_FromLong(*(const bool *)at);
    case OPTION_SHARE: return PyFloat_FromDouble(*(const double *)at);
    case OPTION_INT: return PyLong_FromLong(*(const int *)at);
    case OPTION_TTL:
        ttl = *(const uint64_t *)at;
        return ttl == DOPPEL_NEVER ? PyUnicode_FromString("never") : PyLong_FromUnsignedLongLong(ttl);
    default: return PyLong_FromUnsignedLongLong(*(const uint64_t *)at);
    }
}

static int put_option(PyObject *dict, const char *name, PyObject *value) {
    int code = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return code;
}

PyObject *make_engine_options(const doppel_engine_options *options) {
    PyObject *made = PyDict_New();
    for (size_t i = 0; made && i < sizeof engine_options / sizeof *engine_options; i++)
        if (put_option(made, engine_options[i].name, make_option(&engine_options[i], options)))
            Py_CLEAR(made);
    if (made && put_option(made, "recipe", PyUnicode_FromString(doppel_recipe_text(options->recipe))))
        Py_CLEAR(made);
    return made;
}

/* recipe.c - Recipe: how text becomes sketches, made once, never changed, and compared by its canonical text. The text
 * holds digests of the stop words and the table that belong to the recipe; pickling carries the words themselves and
 * the path of the table. */
#include "module.h"

#include <string.h>

typedef struct recipe_object {
    PyObject_HEAD;
    doppel_recipe *recipe;
    doppel_df *df;
    PyObject *stop_words, *df_path; /* str, or None */
} recipe_object;

static void recipe_dealloc(PyObject *self) {
    recipe_object *made = (recipe_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    doppel_recipe_free(made->recipe);
    doppel_df_close(made->df);
    Py_XDECREF(made->stop_words);
    Py_XDECREF(made->df_path);
    PyObject_Free(self);
    Py_DECREF(type);
}

/* Words as one str, a space between: a str stays as it is, of an iterable each item must be one. */
static PyObject *join_words(PyObject *words) {
    if (words == Py_None || PyUnicode_Check(words))
        return Py_NewRef(words);
    PyObject *space = PyUnicode_FromString(" ");
    PyObject *list = space ? PySequence_List(words) : NULL;
    PyObject *joined = list ? PyUnicode_Join(space, list) : NULL;
    if (space && !joined && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError, "stop_words: expected str or a list of str");
    }
    Py_XDECREF(list);
    Py_XDECREF(space);
    return joined;
}

static PyObject *path_text(PyObject *path) {
    if (path == Py_None)
        return Py_NewRef(path);
    PyObject *text = NULL;
    return PyUnicode_FSDecoder(path, &text) ? text : NULL;
}

static int open_df(recipe_object *made) {
    doppel_error error;
    PyObject *path = NULL;
    if (made->df_path == Py_None)
        return 0;
    if (!PyUnicode_FSConverter(made->df_path, &path))
        return -1;
    doppel_status status = doppel_df_open(PyBytes_AsString(path), &made->df, &error);
    Py_DECREF(path);
    return status == DOPPEL_OK ? 0 : (raise_error(status, &error, "df"), -1);
}

static int warn(const doppel_recipe *recipe) {
    const char *warning = doppel_recipe_warning(recipe);
    return warning ? PyErr_WarnEx(PyExc_UserWarning, warning, 1) : 0;
}

/* Parses `text`; NULL: an exception. */
static doppel_recipe *parse(PyObject *text, const doppel_recipe_parts *parts) {
    doppel_recipe *recipe = NULL;
    doppel_error error;
    Py_ssize_t length;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &length);
    if (!utf8)
        return NULL;
    if (strlen(utf8) != (size_t)length) {
        PyErr_SetString(PyExc_ValueError, "recipe: it has a NUL character");
        return NULL;
    }
    doppel_status status = doppel_recipe_parse(utf8, parts, &recipe, &error);
    if (status != DOPPEL_OK) {
        raise_error(status, &error, NULL); /* which begins with "recipe: " */
        return NULL;
    }
    if (warn(recipe) == 0)
        return recipe;
    doppel_recipe_free(recipe);
    return NULL;
}

static int fill(recipe_object *made, PyObject *text) {
    doppel_recipe_parts parts = {.size = sizeof parts};
    if (made->stop_words != Py_None) {
        Py_ssize_t length;
        parts.stop_words.data = PyUnicode_AsUTF8AndSize(made->stop_words, &length);
        if (!parts.stop_words.data)
            return -1;
        parts.stop_words.length = (size_t)length;
    }
    if (open_df(made) < 0)
        return -1;
    parts.df = made->df;
    if (!(made->recipe = parse(text, &parts)))
        return -1;
    if (made->df && !strstr(doppel_recipe_text(made->recipe), ":weight=tfidf")) {
        PyErr_Format(PyExc_ValueError, "df: only a recipe with weight=tfidf has a table; this one is %s",
                     doppel_recipe_text(made->recipe));
        return -1;
    }
    return 0;
}

static PyObject *recipe_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static char *names[] = {"text", "stop_words", "df", NULL};
    PyObject *text = NULL, *stop_words = Py_None, *df = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:Recipe", names, &text, &stop_words, &df))
        return NULL;
    if (text && Py_TYPE(text) == type && stop_words == Py_None && df == Py_None)
        return Py_NewRef(text);
    if (text && !PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "text: expected str, such as \"page\"");
        return NULL;
    }
    PyObject *self = PyType_GenericAlloc(type, 0);
    PyObject *recipe = text ? Py_NewRef(text) : PyUnicode_FromString("page");
    recipe_object *made = (recipe_object *)self;
    if (!self || !recipe || !(made->stop_words = join_words(stop_words)) || !(made->df_path = path_text(df)) ||
        fill(made, recipe) < 0)
        Py_CLEAR(self);
    Py_XDECREF(recipe);
    return self;
}

static const char *text_of(PyObject *self) {
    return doppel_recipe_text(((recipe_object *)self)->recipe);
}

static PyObject *recipe_text(PyObject *self, void *unused) {
    (void)unused;
    return PyUnicode_FromString(text_of(self));
}

static PyObject *recipe_bits(PyObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(doppel_recipe_bits(((recipe_object *)self)->recipe));
}

static PyObject *recipe_stop_words(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((recipe_object *)self)->stop_words);
}

static PyObject *recipe_df(PyObject *self, void *unused) {
    (void)unused;
    return Py_NewRef(((recipe_object *)self)->df_path);
}

static PyObject *recipe_repr(PyObject *self) {
    recipe_object *made = (recipe_object *)self;
    if (made->df_path != Py_None)
        return PyUnicode_FromFormat("doppel.Recipe('%s', df=%R)", text_of(self), made->df_path);
    return PyUnicode_FromFormat(
        made->stop_words == Py_None ? "doppel.Recipe('%s')" : "doppel.Recipe('%s', stop_words=...)", text_of(self));
}

static Py_hash_t recipe_hash(PyObject *self) {
    PyObject *text = recipe_text(self, NULL);
    Py_hash_t hash = text ? PyObject_Hash(text) : -1;
    Py_XDECREF(text);
    return hash;
}

static PyObject *recipe_compare(PyObject *self, PyObject *other, int operation) {
    if (Py_TYPE(self) != Py_TYPE(other) || (operation != Py_EQ && operation != Py_NE))
        return Py_NewRef(Py_NotImplemented);
    bool equal = strcmp(text_of(self), text_of(other)) == 0;
    return PyBool_FromLong(equal == (operation == Py_EQ));
}

static PyObject *recipe_reduce(PyObject *self, PyObject *unused) {
    (void)unused;
    recipe_object *made = (recipe_object *)self;
    return Py_BuildValue("O(sOO)", Py_TYPE(self), text_of(self), made->stop_words, made->df_path);
}

static PyMethodDef recipe_methods[] = {
    {"__reduce__", recipe_reduce, METH_NOARGS, "For pickling."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef recipe_members[] = {
    {"text", recipe_text, NULL, "The canonical text: the same recipe always has the same.", NULL},
    {"bits", recipe_bits, NULL, "Bits of the fingerprint: 1 to 64, or 128.", NULL},
    {"stop_words", recipe_stop_words, NULL, "The stop words, separated by white space, or None.", NULL},
    {"df", recipe_df, NULL, "The path of the document-frequency table, or None.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static const char recipe_doc[] =
    "Recipe(text='page', stop_words=None, df=None)\n--\n\n"
    "How text becomes sketches: exactly, so that equal recipes give equal sketches everywhere.\n\n"
    "text: a name (page, article, literal), or parts such as \"simhash64:words=3:weight=sqrt\".\n"
    "stop_words: words to leave out, a str that has white space between them or a list of str.\n"
    "df: the path of a document-frequency table, for weight=tfidf.\n\n"
    "Recipes do not change, can be compared, hashed and pickled, and may be shared by threads.\n\n"
    ">>> import doppel\n"
    ">>> doppel.Recipe('simhash128:words=3').bits\n"
    "128\n"
    ">>> doppel.Recipe('page') == doppel.Recipe('simhash64:words=5')\n"
    "True\n";

static PyType_Slot recipe_slots[] = {
    {Py_tp_doc, (void *)recipe_doc}, {Py_tp_new, recipe_new},        {Py_tp_dealloc, recipe_dealloc},
    {Py_tp_repr, recipe_repr},       {Py_tp_hash, recipe_hash},      {Py_tp_richcompare, recipe_compare},
    {Py_tp_methods, recipe_methods}, {Py_tp_getset, recipe_members}, {0, NULL},
};

static PyType_Spec recipe_spec = {"doppel.Recipe", sizeof(recipe_object), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, recipe_slots};

int get_recipe(PyObject *object, const doppel_recipe **recipe, doppel_recipe **made) {
    *recipe = *made = NULL;
    if (!object || object == Py_None)
        return 0;
    if (Py_TYPE(object) == doppel_module.recipe) {
        *recipe = ((recipe_object *)object)->recipe;
        return 0;
    }
    if (PyUnicode_Check(object))
        return (*recipe = *made = parse(object, NULL)) ? 0 : -1;
    PyErr_SetString(PyExc_TypeError, "recipe: expected str or Recipe");
    return -1;
}

int init_recipe(PyObject *module) {
    doppel_module.recipe = add_type(module, &recipe_spec);
    return doppel_module.recipe ? 0 : -1;
}

"""library.py - what the tests need of libdoppel, by ctypes. DOPPEL_LIB names the shared library."""
import ctypes
import os
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint8, c_uint32
from ctypes import c_uint64, c_void_p

WANT_DIGEST, WANT_FEATURES, WANT_SET, WANT_TEXT = 1, 2, 4, 8
WANT_ALL = 15


class Slice(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]

    def bytes(self):
        """The bytes, copied; None: it is missing."""
        return None if self.data is None else ctypes.string_at(self.data, self.length)


def slice_of(data):
    """A slice of bytes (or of a buffer of ctypes), which must live as long as it is used."""
    if data is None:
        return Slice()
    return Slice(ctypes.cast(data, c_void_p), len(data))


class Error(ctypes.Structure):
    _fields_ = [("code", c_int), ("line", c_uint64), ("position", c_uint64), ("file", c_char * 256),
                ("message", c_char * 512)]


class Failure(Exception):
    """A status other than DOPPEL_OK."""

    def __init__(self, status, error=None):
        super().__init__(f"status {status}: {error.message.decode('utf-8', 'replace') if error else ''}")
        self.status, self.error = status, error


class Parts(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("stop_words", Slice), ("df", c_void_p)]


class SketchOut(ctypes.Structure):
    _fields_ = [("fingerprint", c_uint64 * 2), ("words", c_uint64), ("features", c_uint64), ("digest", c_uint8 * 32),
                ("signature", POINTER(c_uint32)), ("slots", c_size_t), ("sample", POINTER(c_uint64)),
                ("sample_count", c_size_t), ("feature_hashes", POINTER(c_uint64)), ("set", POINTER(c_uint64)),
                ("set_count", c_size_t), ("text", Slice)]


class Feature(ctypes.Structure):
    _fields_ = [("bytes", Slice), ("weight", c_double)]


class Range(ctypes.Structure):
    _fields_ = [("start", c_uint64), ("end", c_uint64)]


class Ranges(ctypes.Structure):
    _fields_ = [("range", POINTER(Range)), ("count", c_size_t)]


class SimhashOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("bits", c_int), ("hash", c_char_p), ("function", c_void_p), ("user", c_void_p),
                ("sums", POINTER(c_int64))]


lib = ctypes.CDLL(os.environ["DOPPEL_LIB"])
for _name, _arguments in {
    "recipe_parse": [c_char_p, POINTER(Parts), POINTER(c_void_p), POINTER(Error)],
    "recipe_free": [c_void_p],
    "sketcher_create": [c_void_p, c_uint, POINTER(c_void_p), POINTER(Error)],
    "sketcher_free": [c_void_p],
    "sketcher_run": [c_void_p, Slice, POINTER(SketchOut)],
    "sketcher_reset": [c_void_p],
    "sketcher_add": [c_void_p, Slice],
    "sketcher_finish": [c_void_p, POINTER(SketchOut)],
    "ranges_find": [c_void_p, Slice, POINTER(Ranges)],
    "ranges_free": [POINTER(Ranges)],
    "hash": [c_char_p, Slice, c_uint64, POINTER(c_uint64)],
    "simhash": [POINTER(Feature), c_size_t, POINTER(SimhashOptions), POINTER(c_uint64 * 2), POINTER(Error)],
    "minhash": [POINTER(c_uint64), c_size_t, c_size_t, POINTER(c_uint32)],
    "sample": [POINTER(c_uint64), c_size_t, c_uint64],
    "df_builder_create": [c_void_p, c_size_t, c_char_p, POINTER(c_void_p), POINTER(Error)],
    "df_builder_free": [c_void_p],
    "df_builder_add": [c_void_p, POINTER(c_uint64), c_size_t, POINTER(Error)],
    "df_builder_save": [c_void_p, c_char_p, c_uint32, POINTER(Error)],
    "df_open": [c_char_p, POINTER(c_void_p), POINTER(Error)],
    "df_close": [c_void_p],
    "df_merge": [POINTER(c_char_p), c_size_t, c_char_p, POINTER(Error)],
}.items():
    getattr(lib, "doppel_" + _name).argtypes = _arguments
for _name, _arguments, _result in [("recipe_text", [c_void_p], c_char_p), ("recipe_warning", [c_void_p], c_char_p),
                                   ("unicode_version", [], c_char_p), ("cpu_level", [], c_char_p),
                                   ("sample", lib.doppel_sample.argtypes, c_size_t),
                                   ("df_documents", [c_void_p], c_uint64), ("df_features", [c_void_p], c_uint64),
                                   ("df_get", [c_void_p, c_uint64], c_uint64),
                                   ("df_idf", [c_void_p, c_uint64], c_double), ("df_recipe", [c_void_p], c_char_p),
                                   ("df_digest", [c_void_p], c_char_p)]:
    getattr(lib, "doppel_" + _name).argtypes = _arguments
    getattr(lib, "doppel_" + _name).restype = _result


def check(status, error=None):
    if status:
        raise Failure(status, error)


class Recipe:
    def __init__(self, text, stop=None, df=None):
        self.handle, error, self.df = c_void_p(), Error(), df
        parts = Parts(ctypes.sizeof(Parts), slice_of(stop), df.handle if df else None)
        check(lib.doppel_recipe_parse(text.encode(), byref(parts), byref(self.handle), byref(error)), error)

    def __del__(self):
        lib.doppel_recipe_free(self.handle)

    def text(self):
        return lib.doppel_recipe_text(self.handle).decode()

    def warning(self):
        return lib.doppel_recipe_warning(self.handle)

    def word_ranges(self, data):
        ranges = Ranges()
        check(lib.doppel_ranges_find(self.handle, slice_of(data), byref(ranges)))
        found = [(each.start, each.end) for each in ranges.range[:ranges.count]]
        lib.doppel_ranges_free(byref(ranges))
        return found


class Sketcher:
    def __init__(self, recipe, wants=WANT_ALL):
        self.handle, self.recipe, self.wants, self.out, error = c_void_p(), recipe, wants, SketchOut(), Error()
        check(lib.doppel_sketcher_create(recipe.handle, wants, byref(self.handle), byref(error)), error)

    def __del__(self):
        lib.doppel_sketcher_free(self.handle)

    def result(self):
        out = self.out
        return {"fingerprint": out.fingerprint[0] | out.fingerprint[1] << 64, "words": out.words,
                "features": out.features, "digest": bytes(out.digest),
                "signature": out.signature[:out.slots] if out.signature else None,
                "sample": out.sample[:out.sample_count] if out.sample_count else [],
                "hashes": out.feature_hashes[:out.features] if self.wants & WANT_FEATURES and out.features else [],
                "set": out.set[:out.set_count] if out.set_count else [],
                "text": out.text.bytes() or b""}

    def run(self, data):
        check(lib.doppel_sketcher_run(self.handle, slice_of(data), byref(self.out)))
        return self.result()

    def text(self, data):
        """The normalised text alone."""
        check(lib.doppel_sketcher_run(self.handle, slice_of(data), byref(self.out)))
        return self.out.text.bytes() or b""

    def pieces(self, data, cuts):
        """The document in pieces; each is a buffer of its own, so that reading past it can be caught."""
        lib.doppel_sketcher_reset(self.handle)
        for start, end in zip([0, *cuts], [*cuts, len(data)]):
            piece = ctypes.create_string_buffer(data[start:end], end - start)
            check(lib.doppel_sketcher_add(self.handle, slice_of(piece)))
        check(lib.doppel_sketcher_finish(self.handle, byref(self.out)))
        return self.result()


def hash_bytes(name, data, seed=0):
    out = c_uint64()
    check(lib.doppel_hash(name.encode(), slice_of(data), seed, byref(out)))
    return out.value


def simhash(features, bits, name=None):
    """Fingerprint and sums of pairs (bytes, weight)."""
    array = (Feature * len(features))(*[Feature(slice_of(data), weight) for data, weight in features])
    sums, fingerprint, error = (c_int64 * bits)(), (c_uint64 * 2)(), Error()
    options = SimhashOptions(ctypes.sizeof(SimhashOptions), bits, name.encode() if name else None, None, None, sums)
    check(lib.doppel_simhash(array, len(features), byref(options), byref(fingerprint), byref(error)), error)
    return fingerprint[0] | fingerprint[1] << 64, list(sums)


def minhash(hashes, slots):
    out = (c_uint32 * slots)()
    check(lib.doppel_minhash((c_uint64 * len(hashes))(*hashes), len(hashes), slots, out))
    return list(out)


class Table:
    """A document-frequency table that was saved."""

    def __init__(self, path):
        self.handle, error = c_void_p(), Error()
        check(lib.doppel_df_open(str(path).encode(), byref(self.handle), byref(error)), error)

    def __del__(self):
        lib.doppel_df_close(self.handle)

    def documents(self):
        return lib.doppel_df_documents(self.handle)

    def features(self):
        return lib.doppel_df_features(self.handle)

    def get(self, feature):
        return lib.doppel_df_get(self.handle, feature)

    def idf(self, feature):
        return lib.doppel_df_idf(self.handle, feature)

    def recipe(self):
        return lib.doppel_df_recipe(self.handle).decode()

    def digest(self):
        return lib.doppel_df_digest(self.handle).decode()


def build_table(recipe, sets, path, memory=0, min_df=0):
    builder, error = c_void_p(), Error()
    check(lib.doppel_df_builder_create(recipe.handle, memory, None, byref(builder), byref(error)), error)
    try:
        for hashes in sets:
            array = (c_uint64 * len(hashes))(*hashes)
            check(lib.doppel_df_builder_add(builder, array, len(hashes), byref(error)), error)
        check(lib.doppel_df_builder_save(builder, str(path).encode(), min_df, byref(error)), error)
    finally:
        lib.doppel_df_builder_free(builder)


def merge_tables(paths, path):
    array, error = (c_char_p * len(paths))(*[str(p).encode() for p in paths]), Error()
    check(lib.doppel_df_merge(array, len(paths), str(path).encode(), byref(error)), error)

"""inputs.py - the documents that the library reads from files, by ctypes."""
import ctypes
import pickle
import struct
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint64, c_void_p

import library


class Slice(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t)]


class Document(ctypes.Structure):
    _fields_ = [("id", c_void_p), ("id_length", c_size_t), ("text", c_void_p), ("text_length", c_size_t),
                ("url", c_void_p), ("title", c_void_p), ("url_length", c_size_t), ("title_length", c_size_t),
                ("record", c_void_p), ("record_length", c_size_t), ("file", c_char_p), ("line", c_uint64),
                ("html", c_void_p), ("html_length", c_size_t), ("charset", c_char_p), ("alias", c_void_p),
                ("alias_length", c_size_t), ("extra", POINTER(Slice))]


BAD = CFUNCTYPE(None, POINTER(library.Error), c_void_p)
WORK = CFUNCTYPE(c_int, c_void_p, POINTER(Document), c_void_p)
EMIT = CFUNCTYPE(c_int, c_void_p, POINTER(c_char), c_size_t)


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("threads", c_int), ("max_record", c_size_t), ("strict", c_bool),
                ("id_key", c_char_p), ("url_key", c_char_p), ("title_key", c_char_p), ("text_key", c_char_p),
                ("bad", BAD), ("progress", c_void_p), ("user", c_void_p), ("stop", c_void_p), ("html_key", c_char_p),
                ("extra_keys", POINTER(c_char_p)), ("extra_count", c_size_t)]


class Counts(ctypes.Structure):
    _fields_ = [(name, c_uint64) for name in ("documents", "bytes", "bad", "repaired", "unopened")]


class Work(ctypes.Structure):
    _fields_ = [("user", c_void_p), ("begin", c_void_p), ("document", WORK), ("end", c_void_p), ("emit", EMIT)]


library.lib.doppel_input_run.argtypes = [POINTER(c_char_p), c_size_t, POINTER(Options), POINTER(Work), POINTER(Counts),
                                         POINTER(library.Error)]
library.lib.doppel_output_write.argtypes = [c_void_p, c_char_p, c_size_t]


def _bytes(data, length):
    return None if data is None else ctypes.string_at(data, length)


def _unpack(document, extra_count):
    values = {name: _bytes(getattr(document, name), getattr(document, name + "_length"))
              for name in ("id", "text", "url", "title", "record", "html", "alias")}
    extra = [_bytes(document.extra[i].data, document.extra[i].length) for i in range(extra_count)]
    return {**values, "file": document.file, "line": document.line, "charset": document.charset, "extra": extra}


def read(paths, threads=1, max_record=0, extra=()):
    """Gives the documents as dicts, in input order, the reports as (code, line, message), and the counts."""
    documents, reports, failures = [], [], []

    def document(_state, given, output):
        try:
            packed = pickle.dumps(_unpack(given.contents, len(extra)))
            return library.lib.doppel_output_write(output, struct.pack("<Q", len(packed)) + packed, len(packed) + 8)
        except Exception as failure:  # it cannot pass through the library
            failures.append(failure)
            return 5

    def emit(_user, data, length):
        data, at = data[:length], 0
        while at < length:
            size, = struct.unpack_from("<Q", data, at)
            documents.append(pickle.loads(data[at + 8:at + 8 + size]))
            at += 8 + size
        return 0

    def bad(error, _user):
        reports.append((error.contents.code, error.contents.line, error.contents.message.decode("utf-8", "replace")))

    keys = (c_char_p * max(len(extra), 1))(*extra)
    options = Options(size=ctypes.sizeof(Options), threads=threads, max_record=max_record, bad=BAD(bad),
                      extra_keys=keys, extra_count=len(extra))
    work = Work(document=WORK(document), emit=EMIT(emit))
    counts, error = Counts(), library.Error()
    status = library.lib.doppel_input_run((c_char_p * len(paths))(*paths), len(paths), byref(options), byref(work),
                                          byref(counts), byref(error))
    if failures:
        raise failures[0]
    library.check(status, error)
    return documents, reports, counts

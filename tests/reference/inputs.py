"""inputs.py - the documents that the library reads from files, by ctypes."""
import ctypes
import pickle
import struct
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_int, c_int64, c_size_t, c_uint64, c_void_p

import library
from library import Slice, slice_of


class Document(ctypes.Structure):
    _fields_ = [("id", Slice), ("text", Slice), ("url", Slice), ("title", Slice), ("record", Slice), ("file", c_char_p),
                ("line", c_uint64), ("html", Slice), ("charset", c_char_p), ("alias", Slice), ("extra", POINTER(Slice)),
                ("record_at", c_uint64), ("file_number", c_uint64), ("file_bytes", c_uint64), ("file_changed", c_int64),
                ("stays", c_bool), ("from_table", c_bool), ("text_value", Slice), ("row", Slice), ("header", Slice)]


BAD = CFUNCTYPE(None, POINTER(library.Error), c_void_p)
WORK = CFUNCTYPE(c_int, c_void_p, POINTER(Document), c_void_p)
EMIT = CFUNCTYPE(c_int, c_void_p, Slice)


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
library.lib.doppel_output_write.argtypes = [c_void_p, Slice]


def _unpack(document, extra_count):
    values = {name: getattr(document, name).bytes() for name in ("id", "text", "url", "title", "record", "html", "alias")}
    extra = [document.extra[i].bytes() for i in range(extra_count)]
    return {**values, "file": document.file, "line": document.line, "charset": document.charset, "extra": extra}


def read(paths, threads=1, max_record=0, extra=()):
    """Gives the documents as dicts, in input order, the reports as (code, line, message), and the counts."""
    documents, reports, failures = [], [], []

    def document(_state, given, output):
        try:
            packed = pickle.dumps(_unpack(given.contents, len(extra)))
            framed = struct.pack("<Q", len(packed)) + packed
            return library.lib.doppel_output_write(output, slice_of(framed))
        except Exception as failure:  # it cannot pass through the library
            failures.append(failure)
            return 5

    def emit(_user, given):
        data, at = given.bytes(), 0
        while at < len(data):
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

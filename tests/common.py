"""What the tests of the server, of Redis and of the stream share: the build, waiting, and the library by its public header.

Their programs get the folder of the build as the first argument; it holds the command `doppel`.
"""
import ctypes
import json
import os
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FULL = os.environ.get("DOPPEL_SUITE") == "full"
BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
DOPPEL = os.path.join(BUILD, "doppel")
SANITIZED = os.path.basename(BUILD).endswith(("asan", "tsan"))


def wait_until(what, ready, patience, every):
    """What ready gives once it is true."""
    limit = time.monotonic() + patience
    while True:
        found = ready()
        if found:
            return found
        if time.monotonic() > limit:
            raise AssertionError(f"{what}: not within {patience} s")
        time.sleep(every)


def wait_for_end(process, command, said, patience):
    """The exit code of a process; one that does not end says so, with what it said, and is ended."""
    try:
        return process.wait(patience)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        process.wait()
        raise AssertionError(f"{' '.join(command)} does not end; it said:\n{said()}") from None


# ---- the library, by its public header


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("preset", ctypes.c_char_p), ("recipe", ctypes.c_void_p), ("near", ctypes.c_int)]


class Slice(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class Document(ctypes.Structure):
    _fields_ = [(name, kind) for name, kind in (
        ("id", Slice), ("text", Slice), ("url", Slice), ("title", Slice), ("record", Slice), ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint64), ("html", Slice), ("charset", ctypes.c_char_p), ("alias", Slice), ("extra", ctypes.c_void_p),
        ("record_at", ctypes.c_uint64), ("file_number", ctypes.c_uint64), ("file_bytes", ctypes.c_uint64),
        ("file_changed", ctypes.c_int64), ("stays", ctypes.c_bool), ("from_table", ctypes.c_bool), ("text_value", Slice),
        ("row", Slice), ("header", Slice))]


class Item(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("document", Document)]


def add_by_library(records, preset=None, near=0):
    """The verdicts of an engine in memory that adds records, which have some of id, url, title and text; near is a number
    of doppel_near_by."""
    doppel = ctypes.CDLL(os.path.join(BUILD, "libdoppel.so"))
    doppel.doppel_verdict_json.restype = ctypes.c_size_t
    engine, error = ctypes.c_void_p(), ctypes.create_string_buffer(2048)
    verdict, out, answers = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(4096), []
    options = Options(ctypes.sizeof(Options), preset and preset.encode(), None, near)
    assert doppel.doppel_engine_open(None, ctypes.byref(options), ctypes.byref(engine), error) == 0, error.raw
    for record in records:
        item = Item(size=ctypes.sizeof(Item))
        for name in {"id", "url", "title", "text"} & set(record):
            value = record[name].encode()
            setattr(item.document, name, Slice(value, len(value)))
        assert doppel.doppel_engine_add(engine, ctypes.byref(item), verdict, error) == 0, error.raw
        doppel.doppel_verdict_json(verdict, True, out, ctypes.c_size_t(4096))
        answers.append(json.loads(out.value))
    doppel.doppel_verdict_free(verdict)
    doppel.doppel_engine_close(engine)
    return answers

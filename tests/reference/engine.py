"""engine.py - the engine by ctypes: opened at a path or a URL or in memory, with a clock of the caller's."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint8
from ctypes import c_uint64, c_void_p

from library import Error, Slice, check, lib, slice_of

NEVER = 2**64 - 1
REASONS = (None, "exact_url", "content_hash", "title_similarity")


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("preset", c_char_p), ("recipe", c_void_p), ("near", c_int),
                ("similarity", c_double), ("distance", c_int), ("distance_zero", c_bool), ("min_words", c_uint64),
                ("titles", c_int), ("title_similarity", c_double), ("keep_text", c_int), ("content", c_int),
                ("url_without", c_uint), ("fields", c_char_p), ("on_duplicate", c_int), ("on_same_url", c_int),
                ("ttl", c_uint64), ("title_share", c_double), ("durability", c_int), ("read_only", c_bool),
                ("must_exist", c_bool), ("threads", c_int), ("count", c_uint64), ("memory", c_uint64),
                ("map", c_uint64), ("now", c_void_p), ("log", c_void_p), ("log_level", c_int), ("log_json", c_bool),
                ("user", c_void_p), ("title_veto", c_int), ("group_readable", c_bool), ("clock_settle", c_uint64),
                ("salvage", c_bool), ("sample", c_uint64)]


class Document(ctypes.Structure):
    _fields_ = [("id", Slice), ("text", Slice), ("url", Slice), ("title", Slice), ("record", Slice),
                ("file", c_char_p), ("line", c_uint64), ("html", Slice), ("charset", c_char_p), ("alias", Slice),
                ("extra", c_void_p), ("record_at", c_uint64), ("file_number", c_uint64), ("file_bytes", c_uint64),
                ("file_changed", c_int64), ("stays", c_bool), ("from_table", c_bool), ("text_value", Slice),
                ("row", Slice), ("header", Slice)]


class Evidence(ctypes.Structure):
    _fields_ = [("distance", c_int), ("similarity", c_double), ("containment", c_double),
                ("title_similarity", c_double), ("same_url", c_bool), ("same_digest", c_bool), ("verified", c_bool)]


class Stored(ctypes.Structure):
    _fields_ = [("number", c_uint64), ("id", Slice), ("url", Slice), ("title", Slice), ("fields", Slice),
                ("canonical", Slice), ("text", Slice), ("original_id", Slice), ("reason", c_int),
                ("evidence", Evidence), ("added", c_uint64), ("expires", c_uint64), ("words", c_uint64),
                ("fingerprint", c_uint64 * 2), ("digest", c_uint8 * 32), ("set", POINTER(c_uint64)),
                ("set_count", c_size_t), ("duplicates", c_uint64), ("duplicates_by", c_uint64 * 4),
                ("last_duplicate", c_uint64), ("aliases", c_void_p), ("alias_count", c_size_t),
                ("similarity", c_double), ("containment", c_double), ("distance", c_int), ("origin", Slice),
                ("sample", Slice), ("copies", c_uint64), ("copies_by", c_uint64 * 4)]


class Item(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("document", Document), ("fingerprint", c_void_p), ("digest", c_void_p),
                ("set", c_void_p), ("set_count", c_size_t), ("words", c_uint64), ("ttl", c_uint64),
                ("restore", POINTER(Stored)), ("origin", Slice), ("sample", Slice), ("merge", c_bool)]


class Verdict(ctypes.Structure):
    _fields_ = [("is_duplicate", c_bool), ("known", c_bool), ("replaced", c_bool), ("confidence", c_double),
                ("reason", c_int), ("evidence", Evidence), ("id", Slice), ("original_id", Slice),
                ("memory", c_void_p), ("memory_size", c_size_t), ("id_known", c_bool)]


class List(ctypes.Structure):
    _fields_ = [("stored", POINTER(Stored)), ("count", c_size_t), ("memory", c_void_p)]


class Stats(ctypes.Structure):
    _fields_ = [("documents", c_uint64), ("copies", c_uint64), ("rest", c_uint8 * 8192)]


NOW = CFUNCTYPE(c_uint64, c_void_p)
EACH = CFUNCTYPE(c_bool, POINTER(Stored), c_void_p)
for _name, _arguments in {
    "engine_open": [c_char_p, POINTER(Options), POINTER(c_void_p), POINTER(Error)],
    "engine_check_batch": [c_void_p, POINTER(Item), c_size_t, POINTER(Verdict), c_void_p, POINTER(Error)],
    "engine_add_batch": [c_void_p, POINTER(Item), c_size_t, POINTER(Verdict), c_void_p, POINTER(Error)],
    "engine_remove": [c_void_p, Slice, POINTER(c_bool), POINTER(Error)],
    "engine_get": [c_void_p, Slice, POINTER(List), POINTER(Error)],
    "engine_each": [c_void_p, EACH, c_void_p, POINTER(c_uint64), POINTER(Error)],
    "engine_expire": [c_void_p, POINTER(c_uint64), POINTER(Error)],
    "engine_compact": [c_void_p, POINTER(Error)],
    "engine_get_stats": [c_void_p, POINTER(Stats)],
    "engine_close": [c_void_p],
    "verdict_free": [POINTER(Verdict)],
    "stored_list_free": [POINTER(List)],
}.items():
    getattr(lib, "doppel_" + _name).argtypes = _arguments


def text_of(given):
    data = given.bytes()
    return None if data is None else data.decode()


def read_stored(s):
    """What a list or a walk gives of a document, as far as the tests compare it."""
    return {"id": text_of(s.id), "original": text_of(s.original_id), "reason": REASONS[s.reason],
            "url": text_of(s.canonical), "title": text_of(s.title), "added": s.added, "expires": s.expires,
            "counts": list(s.duplicates_by)[1:], "copies": s.copies, "copies_by": list(s.copies_by)[1:]}


class Engine:
    def __init__(self, path, clock, **options):
        self.handle, self.now, error = c_void_p(), NOW(lambda user: clock[0]), Error()
        self.options = Options(size=ctypes.sizeof(Options), now=ctypes.cast(self.now, c_void_p), clock_settle=NEVER,
                               threads=1, **options)
        check(lib.doppel_engine_open(path.encode() if path else None, byref(self.options), byref(self.handle),
                                     byref(error)), error)

    def close(self):
        lib.doppel_engine_close(self.handle)

    def _ask(self, call, items):
        count, error = len(items), Error()
        verdicts = (Verdict * count)()
        check(call(self.handle, (Item * count)(*items), count, verdicts, None, byref(error)), error)
        found = [{"id": text_of(verdict.id), "original": text_of(verdict.original_id),
                  "reason": REASONS[verdict.reason], "known": verdict.known, "replaced": verdict.replaced,
                  "id_known": verdict.id_known} for verdict in verdicts]
        for verdict in verdicts:
            lib.doppel_verdict_free(byref(verdict))
        return found

    def ask(self, adds, *given):
        """The verdicts on some documents, in one call."""
        items, kept = [], []
        for values in given:
            names = [values.get(key) for key in ("id", "url", "title", "text")]
            names = [None if name is None else name.encode() for name in names]
            item = Item(size=ctypes.sizeof(Item), ttl=values.get("ttl", 0))
            document = item.document
            document.id, document.url, document.title, document.text = map(slice_of, names)
            items.append(item)
            kept.append(names)
        return self._ask(lib.doppel_engine_add_batch if adds else lib.doppel_engine_check_batch, items)

    def remove(self, id):
        removed, error, name = c_bool(), Error(), id.encode()
        check(lib.doppel_engine_remove(self.handle, slice_of(name), byref(removed), byref(error)), error)
        return removed.value

    def get(self, name):
        found, error, data = List(), Error(), name.encode()
        check(lib.doppel_engine_get(self.handle, slice_of(data), byref(found), byref(error)), error)
        stored = read_stored(found.stored[0]) if found.count else None
        lib.doppel_stored_list_free(byref(found))
        return stored

    def each(self, work=read_stored):
        """What `work` makes of each document, in the order of adding."""
        made, failed, error = [], [], Error()

        def take(stored, user):
            try:
                made.append(work(stored.contents))
            except Exception as failure:
                failed.append(failure)
            return not failed

        status = lib.doppel_engine_each(self.handle, EACH(take), None, None, byref(error))
        if failed:
            raise failed[0]
        check(status, error)
        return made

    def restore(self, stored, merge):
        """What another engine's walk gives, as doppel import does it."""
        item = Item(size=ctypes.sizeof(Item), words=stored.words, restore=ctypes.pointer(stored), merge=merge)
        document = item.document
        document.id, document.url, document.title, document.alias = (stored.id, stored.url, stored.title,
                                                                     stored.canonical)
        document.text = slice_of(b"")
        item.fingerprint = ctypes.addressof(stored) + Stored.fingerprint.offset
        item.digest = ctypes.addressof(stored) + Stored.digest.offset
        item.set, item.set_count = ctypes.cast(stored.set, c_void_p), stored.set_count
        return self._ask(lib.doppel_engine_add_batch, [item])[0]

    def expire(self):
        error = Error()
        check(lib.doppel_engine_expire(self.handle, None, byref(error)), error)

    def compact(self):
        error = Error()
        check(lib.doppel_engine_compact(self.handle, byref(error)), error)

    def stats(self):
        stats = Stats()
        lib.doppel_engine_get_stats(self.handle, byref(stats))
        return stats.documents, stats.copies

"""near.py - the index and the joins of libdoppel, by ctypes. Fingerprints are plain numbers."""
import ctypes
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_int, c_size_t, c_uint64, c_void_p

from library import Error, check, lib


class IndexOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("bits", c_int), ("distance", c_int), ("count", c_uint64), ("memory", c_uint64),
                ("layout", c_char_p), ("secret", c_uint64)]


class Match(ctypes.Structure):
    _fields_ = [("owner", c_uint64), ("fingerprint", c_uint64 * 2), ("expires", c_uint64), ("distance", c_int)]


class Matches(ctypes.Structure):
    _fields_ = [("match", POINTER(Match)), ("count", c_size_t), ("capacity", c_size_t), ("candidates", c_uint64)]


class FindOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("now", c_uint64), ("limit", c_uint64), ("any", c_bool), ("count_only", c_bool)]


class Source(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("array", POINTER(c_uint64)), ("count", c_uint64), ("path", c_char_p),
                ("read", c_void_p), ("user", c_void_p)]


class Pair(ctypes.Structure):
    _fields_ = [("a", c_uint64), ("b", c_uint64), ("distance", c_int)]


PAIRS = CFUNCTYPE(c_int, POINTER(Pair), c_size_t, c_void_p)


class JoinOptions(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("bits", c_int), ("threads", c_int), ("memory", c_uint64), ("tmp", c_char_p),
                ("all", c_bool), ("count_only", c_bool), ("pairs", PAIRS), ("progress", c_void_p), ("user", c_void_p),
                ("stop", c_void_p), ("secret", c_uint64)]


for _name, _arguments in {
    "index_create": [POINTER(IndexOptions), POINTER(c_void_p), POINTER(Error)],
    "index_free": [c_void_p],
    "index_add": [c_void_p, POINTER(c_uint64), c_uint64, c_uint64],
    "index_add_batch": [c_void_p, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64), c_uint64],
    "index_find": [c_void_p, POINTER(c_uint64), c_int, POINTER(FindOptions), POINTER(Matches), POINTER(Error)],
    "index_validate": [c_void_p, POINTER(Error)],
    "matches_free": [POINTER(Matches)],
    "join": [POINTER(Source), c_int, POINTER(JoinOptions), c_void_p, POINTER(Error)],
    "join_sets": [POINTER(Source), POINTER(Source), c_int, POINTER(JoinOptions), c_void_p, POINTER(Error)],
}.items():
    getattr(lib, "doppel_" + _name).argtypes = _arguments


def words(fingerprints, bits):
    """The numbers as the library takes them: one uint64_t each, two beyond 64 bits."""
    if bits > 64:
        fingerprints = [half for number in fingerprints for half in (number % 2**64, number >> 64)]
    return (c_uint64 * max(len(fingerprints), 1))(*fingerprints)


class Index:
    def __init__(self, bits, distance=0, layout=None):
        self.handle, self.bits, error = c_void_p(), bits, Error()
        options = IndexOptions(ctypes.sizeof(IndexOptions), bits, distance, 0, 0, layout and layout.encode(), 0)
        check(lib.doppel_index_create(byref(options), byref(self.handle), byref(error)), error)

    def __del__(self):
        lib.doppel_index_free(self.handle)

    def insert(self, fingerprint, owner, expires=0):
        check(lib.doppel_index_add(self.handle, words([fingerprint], self.bits), owner, expires))

    def insert_many(self, fingerprints):
        """Owners are 0, 1, 2, ..."""
        check(lib.doppel_index_add_batch(self.handle, words(fingerprints, self.bits), None, None, len(fingerprints)))

    def find(self, fingerprint, distance, **options):
        """A list of (distance, fingerprint, owner)."""
        found, error = Matches(), Error()
        given = FindOptions(ctypes.sizeof(FindOptions), **options)
        status = lib.doppel_index_find(self.handle, words([fingerprint], self.bits), distance, byref(given),
                                       byref(found), byref(error))
        check(status, error)
        matches = [(m.distance, m.fingerprint[0] | m.fingerprint[1] << 64, m.owner) for m in found.match[:found.count]]
        lib.doppel_matches_free(byref(found))
        return matches

    def validate(self):
        error = Error()
        check(lib.doppel_index_validate(self.handle, byref(error)), error)


def _source(fingerprints, bits):
    return Source(ctypes.sizeof(Source), words(fingerprints, bits), len(fingerprints), None, None, None)


def join(sets, distance, bits, **options):
    """The pairs (a, b, distance) of one set, or between two, in the order in which they come."""
    found, error = [], Error()

    def keep(pairs, count, _):
        found.extend((pair.a, pair.b, pair.distance) for pair in pairs[:count])
        return 0

    given = JoinOptions(ctypes.sizeof(JoinOptions), bits, pairs=PAIRS(keep), **options)
    sources = [byref(_source(fingerprints, bits)) for fingerprints in sets]
    call = lib.doppel_join if len(sets) == 1 else lib.doppel_join_sets
    check(call(*sources, distance, byref(given), None, byref(error)), error)
    return found

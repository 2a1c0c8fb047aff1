"""test_index_file.py - what the library saves of an index is what docs/FORMAT.md section 9 says, to the last byte."""
import ctypes
import os
import random
import tempfile
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint64, c_void_p

import check
import index_file
import library


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("bits", c_int), ("distance", c_int), ("count", c_uint64), ("memory", c_uint64),
                ("layout", c_char_p), ("secret", c_uint64)]


for _name, _arguments in {
    "create": [POINTER(Options), POINTER(c_void_p), POINTER(library.Error)],
    "free": [c_void_p],
    "add": [c_void_p, POINTER(c_uint64), c_uint64, c_uint64],
    "add_batch": [c_void_p, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64), c_uint64],
    "remove": [c_void_p, POINTER(c_uint64), c_uint64, c_void_p],
    "save": [c_void_p, c_char_p, POINTER(library.Error)],
}.items():
    getattr(library.lib, "doppel_index_" + _name).argtypes = _arguments


def words(fingerprint):
    return (c_uint64 * 2)(fingerprint % 2**64, fingerprint >> 64)


class Index:
    """An index, and beside it what it must hold."""

    def __init__(self, bits, layout=None, secret=0):
        self.bits, self.handle, self.entries, error = bits, c_void_p(), {}, library.Error()
        options = Options(ctypes.sizeof(Options), bits, 0, 0, 0, layout and layout.encode(), secret)
        library.check(library.lib.doppel_index_create(byref(options), byref(self.handle), byref(error)), error)

    def __del__(self):
        library.lib.doppel_index_free(self.handle)

    def insert(self, fingerprint, owner, expires):
        library.check(library.lib.doppel_index_add(self.handle, words(fingerprint), owner, expires))
        self.entries[fingerprint, owner] = expires

    def insert_many(self, entries):
        flat = [half for fingerprint, _, _ in entries for half in list(words(fingerprint))[:1 + (self.bits > 64)]]
        arrays = [(c_uint64 * len(column))(*column)
                  for column in [flat, [owner for _, owner, _ in entries], [time for _, _, time in entries]]]
        library.check(library.lib.doppel_index_add_batch(self.handle, *arrays, len(entries)))
        self.entries.update({(fingerprint, owner): time for fingerprint, owner, time in entries})

    def remove(self, fingerprint, owner):
        library.check(library.lib.doppel_index_remove(self.handle, words(fingerprint), owner, None))
        del self.entries[fingerprint, owner]

    def saved(self):
        with tempfile.TemporaryDirectory() as folder:
            path, error = os.path.join(folder, "index"), library.Error()
            library.check(library.lib.doppel_index_save(self.handle, path.encode(), byref(error)), error)
            with open(path, "rb") as file:
                return file.read()


def random_entries(rng, bits, count, timed):
    """Fingerprints that come several times, in a few owners."""
    pool = [rng.getrandbits(bits) for _ in range(max(1, count * 3 // 4))]
    return [(rng.choice(pool), rng.getrandbits(64), rng.randrange(100) if timed else 0) for _ in range(count)]


def compare(index):
    file = index_file.IndexFile(index.saved())
    assert file.bits == index.bits and file.entries() == index.entries
    return file


def test_every_width_and_layout():
    rng = random.Random(90)
    layouts = ["scan", "1x5", "2x9", "4x16", "3x4", "5c2x9", "4c3x6", "2x3+3x2", "4x2+4x3", None]
    for bits in [1, 7, 20, 33, 63, 64, 128]:
        for layout in layouts:
            for timed in [False, True]:
                try:
                    index = Index(bits, layout)
                except library.Failure:
                    assert bits < 7, (bits, layout)
                    continue
                index.insert_many(random_entries(rng, bits, 700, timed))
                file = compare(index)
                assert file.layout == (layout or "")


def test_runs_a_head_and_what_was_removed():
    rng = random.Random(91)
    for bits in [16, 64, 128]:
        index = Index(bits, secret=rng.getrandbits(64))
        for count in [9000, 3000, 700]:
            index.insert_many(random_entries(rng, bits, count, count < 9000))
        for entry in random_entries(rng, bits, 300, True):
            index.insert(*entry)
        for fingerprint, owner in rng.sample(sorted(index.entries), 2000):
            index.remove(fingerprint, owner)
        file = compare(index)
        assert len(file.runs) > 1 and any(run.dead for run in file.runs)


def test_nothing_and_one():
    index = Index(64)
    assert len(index.saved()) == 192
    compare(index)
    index.insert(2**64 - 1, 7, 0)
    compare(index)


def test_a_secret_is_kept():
    for secret in [1, 2**64 - 1, 0x1234567890ABCDEF]:
        index = Index(64, secret=secret)
        index.insert(0xF0F0, 1, 0)
        assert compare(index).secret == secret


if __name__ == "__main__":
    check.main(globals())

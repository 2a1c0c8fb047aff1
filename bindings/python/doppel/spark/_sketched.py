"""Sketches of documents as bytes (docs/FORMAT.md section 12, kind 3), many at a time, with numpy.

An entry has a head of fixed length, then the id, the title, the id of an original, the keys of bands, and the set.
"""

from __future__ import annotations

import numpy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NODE = 12  # bytes of a digest that stand for a text: 96 bits
_REST = 208  # where the head ends: the id
_HEAD = numpy.dtype({
    "names": ["digest", "fingerprint", "id_length", "set_count", "words", "url", "keys", "title_length", "original_length"],
    "formats": ["V16", "V16", "<u4", "<u4", "<u4", "<u8", "<u4", "<u4", "<u4"],
    "offsets": [24, 40, 72, 76, 84, 96, 184, 188, 192],
    "itemsize": _REST,
})


class Entries:
    """Entries one after the other, and the heads of all of them."""

    def __init__(self, data: Any, ends: Any, keys_for_sets: bool = False) -> None:
        self._keys_for_sets = keys_for_sets
        self.bytes = numpy.frombuffer(data, numpy.uint8)
        self.ends = ends.astype(numpy.int64)
        self.starts = numpy.concatenate(([0], self.ends[:-1])).astype(numpy.int64)
        self.head = self._gather(self.starts, _REST).view(_HEAD).reshape(-1)

    def _gather(self, starts: Any, width: int) -> Any:
        """`width` bytes from each start, a row each."""
        if not len(starts) or not width:
            return numpy.zeros((len(starts), width), numpy.uint8)
        return self.bytes[starts[:, None] + numpy.arange(width)]

    def nodes(self) -> Any:
        """The text of each, 12 bytes: documents with equal ones have the same words."""
        digests = numpy.ascontiguousarray(self.head["digest"]).view(numpy.uint8).reshape(-1, 16)
        return numpy.ascontiguousarray(digests[:, :NODE])

    def wide_keys(self, which: Any, bands: int, rows: int) -> Any:
        """48 bits of the keys of the bands of some entries, a row each: they stand where the sets do, or are made of these."""
        if self._keys_for_sets:
            made = self._gather(self.ends[which] - 8 * bands, 8 * bands)
        else:
            from .. import _doppel

            counts = self.head["set_count"][which]
            ends = self.ends[which]
            sets = b"".join(self.bytes[end - 8 * count:end].tobytes() for end, count in zip(ends.tolist(), counts.tolist()))
            made = numpy.frombuffer(_doppel.wide_keys(sets, numpy.ascontiguousarray(counts).tobytes(), bands, rows), numpy.uint8)
        return numpy.ascontiguousarray(made.reshape(-1, bands, 8)[:, :, :6]).reshape(-1, 6 * bands)

    def fingerprints(self) -> Any:
        return numpy.ascontiguousarray(self.head["fingerprint"]).view(numpy.uint8).reshape(-1, 16)


def of_column(column: Any) -> Entries:
    """Entries of an Arrow binary array without nulls."""
    import pyarrow

    column = column.cast(pyarrow.large_binary())
    _, offsets, data = column.buffers()
    places = numpy.frombuffer(offsets, numpy.int64)[column.offset:column.offset + len(column) + 1]
    if not len(column):
        return Entries(b"", places[:0])
    return Entries(memoryview(data)[places[0]:places[-1]], places[1:] - places[0])

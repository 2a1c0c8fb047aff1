"""HammingIndex: every fingerprint within k bits."""

from __future__ import annotations

from . import _doppel
from ._inputs import reporter
from ._sketches import checked_threads
from ._types import Match, Table

TYPE_CHECKING = False  # typing takes longer to import than doppel
if TYPE_CHECKING:
    import os
    from typing import Any

    from ._sketches import Progress


class HammingIndex(_doppel.HammingIndex):
    """A set of (fingerprint, owner) entries that finds every fingerprint within k bits of a query: it misses none, and
    gives none that is farther.

    bits: the width of the fingerprints, 1 to 64, or 128.
    distance: the distance that it is planned for. Others can be asked for, and larger ones take longer.
    count: how many entries to plan for; 0: not known.
    memory: bytes that `count` entries may take; 0: about 40 an entry.

    A fingerprint is an int, or 16 bytes for 128 bits; an owner is any number from 0 to 2**64 - 1. A fingerprint can
    have many owners, and an owner many fingerprints. Times are the caller's: any clock that only grows, in any unit; 0
    stands for "never" and "no time".

    Any number of threads may use an index at the same time; finds do not wait for each other, nor for what changes the
    index. It belongs to the process that made it: to use it after a fork, save() it and open() the file there. close()
    frees it, and so does a `with` statement.

    >>> import doppel
    >>> with doppel.HammingIndex() as index:
    ...     index.add(0b10110, owner=7)
    ...     index.find(0b10111)
    [Match(owner=7, distance=1, fingerprint=22, expires=0)]
    """

    __slots__ = ()

    def __init__(self, bits: int = 64, distance: int = 3, count: int = 0, memory: int = 0) -> None:
        if not isinstance(bits, int) or not (1 <= bits <= 64 or bits == 128):
            raise ValueError(f"bits: expected a width from 1 to 64, or 128, not {bits!r}")
        if not isinstance(distance, int) or not 1 <= distance <= bits:
            raise ValueError(f"distance: expected 1 to {bits}, not {distance!r}")
        self._create(bits, distance, count, memory)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> HammingIndex:
        """Opens a saved index. It can be changed, in memory: the file stays as it is until save() replaces it.

        Blocks of the file are read, and checked, when they are first needed. While it is open the file must not be
        written to; removing it, or renaming another one into its place, does no harm.

        Raises OSError when there is no such file, StoreError when it is no index or is damaged.

        >>> import doppel, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "seen.index")
        >>> index = doppel.HammingIndex()
        >>> index.add_batch([1, 2, 3])
        >>> index.save(path)
        >>> len(doppel.HammingIndex.open(path))
        3
        """
        index = cls.__new__(cls)
        index._open(path)
        return index

    def add(self, fingerprint: int | bytes, owner: int, expires: int = 0) -> None:
        """Adds an entry, until the time `expires` (0: for ever). An entry that is there already gets the new time.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add(0xFF, owner=1)
        >>> index.add(0xFF, owner=2, expires=1000)
        >>> len(index)
        2
        """
        self._add(fingerprint, owner, expires)

    def add_batch(self, fingerprints: Any, owners: Any = None, expires: Any = None) -> None:
        """Adds many entries at once, much faster than one at a time: all of them or, when it raises, none.

        fingerprints: a list, a NumPy array, or a column of Arrow data, as fingerprint() gives it. Nulls are refused.
        owners: a number for each, or one for all; None: 0, 1, 2, ...
        expires: a time for each, or one for all; None: never.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add_batch([0x0F, 0xF0], owners=[10, 11])
        >>> [match.owner for match in index.find(0x1F, distance=1)]
        [10]
        """
        self._add_batch(fingerprints, owners, expires)

    def find(self, fingerprint: int | bytes, distance: int | None = None, limit: int = 0, now: int = 0) -> list[Match]:
        """Every entry within `distance` bits, the nearest first, then by fingerprint, then by owner.

        distance: 0 to the width; None: the one that the index was planned for.
        limit: at most this many, the nearest; 0: all.
        now: entries that expire at this time or before do not match; 0: all match.

        Gives a list of Match(owner, distance, fingerprint, expires).

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add_batch([0, 1, 3, 7])
        >>> [(match.owner, match.distance) for match in index.find(1, distance=1)]
        [(1, 0), (0, 1), (2, 1)]
        """
        return self._find(fingerprint, self.distance if distance is None else distance, limit, now)

    def find_batch(self, fingerprints: Any, distance: int | None = None, *, limit: int = 0, now: int = 0,
                   threads: int = 0, progress: Progress = None) -> Table:
        """find() for many, on several threads.

        fingerprints: a list, a NumPy array, or a column of Arrow data. A null finds nothing.
        threads, progress: as of doppel.fingerprint().

        Gives a Table with a row for each match: `query`, the row of the fingerprint that was asked for, `owner` and
        `distance`; in the order of the queries and, for each, of find().

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add_batch([0x00, 0xFF], owners=[5, 6])
        >>> index.find_batch([0x01, 0x0F, 0xFE]).to_list()
        [{'query': 0, 'owner': 5, 'distance': 1}, {'query': 2, 'owner': 6, 'distance': 1}]
        """
        return Table(self._find_batch(fingerprints, self.distance if distance is None else distance, limit, now,
                                      checked_threads(threads), reporter(progress, "queries")))

    def remove(self, fingerprint: int | bytes, owner: int) -> bool:
        """Removes an entry; gives whether it was there.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add(1, owner=7)
        >>> index.remove(1, owner=7), index.remove(1, owner=7)
        (True, False)
        """
        return self._remove(fingerprint, owner)

    def contains(self, fingerprint: int | bytes, owner: int) -> bool:
        """Whether this very entry is there, expired or not; the same as `(fingerprint, owner) in index`.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add(1, owner=7)
        >>> index.contains(1, 7), (1, 8) in index
        (True, False)
        """
        return self._contains(fingerprint, owner)

    def expire(self, now: int) -> int:
        """Removes what expires at the time `now` or before; gives how many entries that were.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add_batch([1, 2, 3], expires=[100, 200, 0])
        >>> index.expire(150), len(index)
        (1, 2)
        """
        return self._expire(now)

    def merge(self, other: HammingIndex) -> None:
        """Adds every entry of another index, of the same width; that one stays as it is.

        >>> import doppel
        >>> a, b = doppel.HammingIndex(), doppel.HammingIndex()
        >>> a.add(1, owner=1)
        >>> b.add(2, owner=2)
        >>> a.merge(b)
        >>> len(a)
        2
        """
        self._merge(other)

    def compact(self) -> None:
        """Brings the index to its smallest and fastest form, planned for the entries that there are.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.add_batch(range(1000))
        >>> index.compact()
        >>> index.stats()["runs"]
        1
        """
        self._compact()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the index to a file, which is there whole or not at all; open() reads it. Other threads may go on
        using the index.

        The file holds the index's secret order of bits: anyone who can read it can choose fingerprints that make finds
        slow.

        >>> import doppel, os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "seen.index")
        >>> doppel.HammingIndex().save(path)
        >>> os.path.exists(path)
        True
        """
        self._save(path)

    def stats(self) -> dict[str, Any]:
        """What there is, a dict: entries, fingerprints, bytes, runs, bits, distance, layout.

        entries: expired ones included, until expire() removes them.
        fingerprints: distinct ones, counted once a run.
        runs: immutable parts; fewer are faster, compact() leaves one.
        layout: how the bits of the largest run are cut.

        >>> import doppel
        >>> index = doppel.HammingIndex(bits=32)
        >>> index.add_batch([1, 1, 2])
        >>> stats = index.stats()
        >>> stats["entries"], stats["bits"]
        (3, 32)
        """
        return self._stats()

    def validate(self) -> None:
        """Checks the whole index, each block of its file included. Raises StoreError with the reason if something is
        wrong.

        >>> import doppel
        >>> doppel.HammingIndex().validate()
        """
        self._validate()

    def close(self) -> None:
        """Frees the index. Calls of other threads that are under way finish; later ones raise ValueError. Closing it
        twice does no harm.

        >>> import doppel
        >>> index = doppel.HammingIndex()
        >>> index.close()
        >>> index.closed
        True
        """
        self._close()

    def __enter__(self) -> HammingIndex:
        if self.closed:
            raise ValueError("this HammingIndex is closed")
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<doppel.HammingIndex, closed>"
        return f"<doppel.HammingIndex of {len(self)} entries, {self.bits} bits>"

    def __reduce__(self):
        raise TypeError("a HammingIndex cannot be pickled: save() it, and open() the file")

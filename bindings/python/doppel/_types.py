"""What calls of doppel give: named tuples, and Table.

Names of fields are those of the command's JSON. A field that has no value is None.
"""

from __future__ import annotations

from collections import namedtuple

try:
    from . import _distribution as _distribution
except ImportError:
    raise ImportError(
        'the package doppel is not that of libdoppel: the distribution "doppel", which is another one, has overwritten it. '
        "Run `pip uninstall doppel libdoppel`, then `pip install libdoppel`") from None

# Rows that repr() of a Table shows.
_SHOWN_ROWS = 10
# Characters of a value that repr() of a Table shows.
_SHOWN_WIDTH = 32


def _json_value(value):
    """A value as the command writes it: at most six digits of a number."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return f"{value:.6g}"
    import json

    return json.dumps(value, ensure_ascii=False)


def _json_members(pairs):
    return "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"


class Evidence(
    namedtuple("Evidence", "distance similarity containment titleSimilarity sameUrl sameDigest verified",
               defaults=(None, None, None, None, False, False, False))
):
    """What was measured on a document and its original.

    distance: differing bits of the fingerprints.
    similarity: the Jaccard similarity of the two sets of shingles.
    containment: the share of the new document's shingles that the original has.
    titleSimilarity: the similarity of the titles.
    sameUrl, sameDigest: whether the canonical URL, and the normalised words, are the same.
    verified: whether `similarity` is exact rather than an estimate.

    >>> import doppel
    >>> doppel.Evidence(distance=2, similarity=0.99).distance
    2
    """

    __slots__ = ()


class Verdict(
    namedtuple("Verdict", "id isDuplicate confidence reason originalId evidence",
               defaults=(0.0, None, None, Evidence()))
):
    """Whether a document was seen before. It is true in an `if` when it was.

    id: of the document, as given or derived.
    confidence: 0 to 1.
    reason: "exact_url", "content_hash" or "title_similarity"; None for a document that is new.
    originalId: the id of the document that it is a copy of.
    evidence: Evidence.

    >>> import doppel
    >>> verdict = doppel.Verdict("b", True, 1.0, "content_hash", "a")
    >>> "seen" if verdict else "new"
    'seen'
    >>> verdict.json()[:36]
    '{"id":"b","isDuplicate":true,"confid'
    """

    __slots__ = ()

    def __bool__(self):
        return bool(self.isDuplicate)

    def json(self):
        """The verdict as a JSON object, as the command and the server write it."""
        members = [(name, _json_value(value)) for name, value in zip(self._fields[:-1], self)]
        evidence = _json_members((name, _json_value(value)) for name, value in zip(Evidence._fields, self.evidence))
        return _json_members(members + [("evidence", evidence)])


class Stored(
    namedtuple("Stored",
               "id number url canonicalUrl title fields canonical originalId reason evidence added expires words"
               " fingerprint digest shingles duplicates duplicatesBy lastDuplicate copies aliases text"
               " similarity distance containment",
               defaults=(None,) * 24)
):
    """A document as an Engine remembers it.

    number: in the order of adding, from 1.
    url, canonicalUrl, title: as given, and the URL's canonical form.
    fields: a dict, what was kept of the engine's `fields`.
    canonical: the id of the document that represents the group: the original of a copy, else the document itself.
    originalId, reason, evidence: of a copy; None for an original.
    added, expires, lastDuplicate: seconds since 1970; expires is None for never.
    words, shingles: how many the text has.
    fingerprint, digest: an int (bytes for 128 bits), and bytes.
    duplicates, duplicatesBy: copies seen so far, also those removed since, and a dict of them by "url", "content" and
        "title".
    copies: those that are remembered under it (on_duplicate "link" and "store") and were not removed since.
    aliases: URLs that are linked to it.
    text: with keep_text.
    similarity, distance, containment: from similar() only.

    >>> import doppel
    >>> doppel.Stored("a", number=1).number
    1
    """

    __slots__ = ()


class Match(namedtuple("Match", "owner distance fingerprint expires", defaults=(0,))):
    """A fingerprint that HammingIndex.find() found: whose it is, and in how many bits it differs.

    >>> import doppel
    >>> doppel.Match(owner=7, distance=2, fingerprint=0x1F).distance
    2
    """

    __slots__ = ()


class Pair(namedtuple("Pair", "a b distance similarity", defaults=(None, None))):
    """Two near documents, by their ids.

    >>> import doppel
    >>> a, b, distance, similarity = doppel.Pair("x", "y", 1, 0.98)
    """

    __slots__ = ()


class Cluster(namedtuple("Cluster", "id group kept reason similarity", defaults=(None, None))):
    """Which group a document is in.

    id: of the document.
    group: the id of the document that is kept of its group.
    kept: whether that is this one.
    reason, similarity: why it is in the group, and its similarity to the one that is kept; None for that one.

    >>> import doppel
    >>> doppel.Cluster("b", "a", False, "near", 0.91).group
    'a'
    """

    __slots__ = ()


class Passage(namedtuple("Passage", "a_start a_end b_start b_end words")):
    """A run of words that two texts share: where it begins and ends in each, and its length in words.

    >>> import doppel
    >>> doppel.Passage(0, 11, 4, 15, 2).words
    2
    """

    __slots__ = ()


class Overlap(namedtuple("Overlap", "a b containmentAB containmentBA passages")):
    """Two documents of which one contains much of the other: the share of A that is in B and of B that is in A.

    >>> import doppel
    >>> doppel.Overlap("x", "y", 0.5, 1.0, []).containmentBA
    1.0
    """

    __slots__ = ()


class Comparison(
    namedtuple("Comparison",
               "fingerprint_a fingerprint_b bits distance words_a words_b shingles_a shingles_b shingles_shared"
               " similarity containment_ab containment_ba signature_similarity cosine angle euclidean"
               " edit_distance indel_distance edit_similarity same_digest digest_a digest_b passages",
               defaults=((),))
):
    """Every measure on two texts, from compare().

    fingerprint_a, fingerprint_b, bits, distance: the fingerprints, their width, and the number of differing bits.
    words_a, words_b: words of each text; shingles_a, shingles_b, shingles_shared: distinct shingles.
    similarity: the Jaccard similarity of the shingles.
    containment_ab, containment_ba: the share of A's shingles that are in B, and the other way round.
    signature_similarity: the similarity as two signatures of 128 slots estimate it.
    cosine, angle, euclidean: of the vectors of word counts; the angle is in degrees.
    edit_distance, indel_distance, edit_similarity: in characters of the normalised texts.
    same_digest, digest_a, digest_b: of the normalised words.
    passages: a list of Passage, when it was asked for.

    >>> import doppel
    >>> doppel.compare("one two three", "One, two: three!").same_digest
    True
    """

    __slots__ = ()


class Table:
    """Columns of the same length: an Arrow table that is also a sequence of rows.

    Any library that takes Arrow data takes it without copying: `pyarrow.table(t)`, `polars.DataFrame(t)`,
    `duckdb.sql("from t")`, `pandas.DataFrame.from_arrow(t)`.

    >>> import doppel
    >>> table = doppel.sketch(["one two three", "four"], columns=["words", "fingerprint"])
    >>> len(table), table["words"].to_list(), table[1]["words"]
    (2, [3, 1], 1)
    >>> table
    doppel.Table, 2 rows
    words  fingerprint
    3      ...
    1      ...
    """

    __slots__ = ("_columns", "_rows")

    def __init__(self, columns):
        self._columns = dict(columns)
        lengths = {len(column) for column in self._columns.values()}
        if len(lengths) > 1:
            raise ValueError("columns: the lengths differ: " +
                             ", ".join(f"{name} has {len(column)}" for name, column in self._columns.items()))
        self._rows = lengths.pop() if lengths else 0

    @property
    def column_names(self):
        """The names of the columns, a list."""
        return list(self._columns)

    def keys(self):
        """The names of the columns, so that dict(table) is a dict of columns."""
        return self._columns.keys()

    def __len__(self):
        return self._rows

    def __getitem__(self, key):
        if isinstance(key, str):
            if key not in self._columns:
                raise KeyError(f'no column "{key}"; the columns are {", ".join(self._columns)}')
            return self._columns[key]
        if isinstance(key, slice):
            return Table({name: column[key] for name, column in self._columns.items()})
        if not -self._rows <= key < self._rows:
            raise IndexError(f"row {key} of {self._rows}")
        return {name: column[key] for name, column in self._columns.items()}

    def __iter__(self):
        names = tuple(self._columns)
        for values in zip(*self._columns.values()):
            yield dict(zip(names, values))

    def to_list(self):
        """The rows as a list of dicts."""
        names = tuple(self._columns)
        return [dict(zip(names, values)) for values in zip(*(c.to_list() for c in self._columns.values()))]

    def to_dict(self):
        """The columns as a dict of lists."""
        return {name: column.to_list() for name, column in self._columns.items()}

    def __eq__(self, other):
        if isinstance(other, Table):
            return list(self._columns) == list(other._columns) and all(
                column == other._columns[name] for name, column in self._columns.items())
        if isinstance(other, list):
            return self.to_list() == other
        return NotImplemented

    __hash__ = None

    def __reduce__(self):
        return Table, (self._columns,)

    def __arrow_c_schema__(self):
        from . import _doppel

        return _doppel.schema_of_columns(self._columns)

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _doppel

        return _doppel.stream_of_columns(self._columns)

    def __repr__(self):
        rows = [[_shown(value) for value in row.values()] for row in self[:_SHOWN_ROWS]]
        lines = [list(self._columns)] + rows
        widths = [max(map(len, column)) for column in zip(*lines)]
        text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        more = [f"... {self._rows - _SHOWN_ROWS} more"] if self._rows > _SHOWN_ROWS else []
        head = f"doppel.Table, {self._rows} row{'' if self._rows == 1 else 's'}"
        return "\n".join([head] + text + more)


def _shown(value):
    text = value.hex() if isinstance(value, bytes) else f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN_WIDTH else text[: _SHOWN_WIDTH - 3] + "..."


def array_to_numpy(array, dtype=None, copy=None):
    """Array.__array__: numbers and bools without nulls as they are, doubles with NaN for null, bytes of a fixed size as
    void; everything else as objects."""
    import numpy

    kind, _, size = array.type.partition("[")
    types = {"bool": "?", "int32": "<i4", "uint32": "<u4", "int64": "<i8", "uint64": "<u8", "double": "<f8",
             "fixed_size_list<uint32>": "<u4", "fixed_size_binary": "V" + size[:-1]}
    if kind not in types or (array.null_count and kind != "double"):
        made = numpy.empty(len(array), dtype=object)
        for row, value in enumerate(array):
            made[row] = value
    else:
        made = numpy.frombuffer(array.to_bytes(), dtype=types[kind])
        if kind == "fixed_size_list<uint32>":
            made = made.reshape(len(array), int(size[:-1]))
    if copy is False:
        raise ValueError("a doppel.Array becomes a numpy array only by copying")
    return made.astype(dtype or made.dtype, copy=bool(copy))

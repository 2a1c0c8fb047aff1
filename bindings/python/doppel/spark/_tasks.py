"""What executors do, each a function of settings and an iterator of Arrow batches, called by the one remote() makes:

    keys             documents -> the text each stands for (node), and blocks of what finds candidates
    pack             rows of a table of sketches -> such blocks
    link             blocks -> links between the texts that share a key, or whose fingerprints are near
    connect          links -> the component of each linked text, in one task
    sketch, store    documents -> a sketch each; with what a table of sketches has besides
    decide, pair     the sketches of whole components -> what the C library decides of them

The C library reads documents and decides; in between there are only numbers, in numpy arrays. A block has many entries in
one binary value, which costs Spark one row: 18 bytes for a key of a band and a node. All of it is a function of the rows
of a partition, whatever their order, so that tasks can be repeated anywhere.
"""

from __future__ import annotations

import gc
import itertools

import numpy
import pyarrow
import pyarrow.compute

from .. import _doppel
from ._remote import WRITE_IT, Refused
from ._sketched import NODE, Entries, of_column
from ._settings import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

KEY = 6  # bytes of a key of a band in an entry
NARROW = slice(2, 6)  # those of them that the command goes by
URLS, TEXTS, IDS = range(3)  # tables after those of content
_PACKED = 1 << 17  # documents whose keys are packed together
_SKETCHED = 1000  # documents that are sketched together
_EXACT = 1 << 53  # whole numbers up to here are doubles
_SHOWN = 5  # ids that a message names

# Spark's worker collects garbage after each task; without what was imported, that takes no time.
gc.collect()
gc.freeze()


def _batch(settings: dict[str, Any], **changes: Any) -> Any:
    from .._batch import _options

    return _doppel.Batch({**_options(**settings["options"], threads=1), **changes}, None)


def _node_array(nodes: Any) -> Any:
    """Rows of 12 bytes, as an Arrow array."""
    fixed = pyarrow.FixedSizeBinaryArray.from_buffers(
        pyarrow.binary(nodes.shape[1]), len(nodes), [None, pyarrow.py_buffer(numpy.ascontiguousarray(nodes).tobytes())])
    return fixed.cast(pyarrow.binary())


def _rows_of(column: Any, width: int) -> Any:
    """A binary array whose values all have this many bytes, as rows of bytes."""
    column = column.cast(pyarrow.large_binary())
    _, offsets, data = column.buffers()
    if not len(column):
        return numpy.zeros((0, width), numpy.uint8)
    places = numpy.frombuffer(offsets, numpy.int64)[column.offset:column.offset + len(column) + 1]
    return numpy.frombuffer(data, numpy.uint8)[places[0]:places[-1]].reshape(-1, width)


# ---- documents to sketches ----


def _named(ids: Any, which: Any) -> str:
    """The ids of some rows, for a message."""
    some = [repr(ids[int(row)].as_py()) for row in numpy.flatnonzero(which)[:_SHOWN]]
    count = int(numpy.count_nonzero(which))
    return f"{count} {'rows' if count > 1 else 'row'}: id {', '.join(some)}{', ...' if count > _SHOWN else ''}"


def _check(settings: dict[str, Any], table: Any) -> None:
    """Refuses rows that cannot be taken, by name."""
    named, ids = settings["named"], table.column("id")
    if ids.null_count:
        raise Refused(f'column "{named["id"]}" is null in {ids.null_count} of {len(ids)} rows of a batch: '
                      "every document needs an id")
    if settings["order"] is not None:
        order = table.column(ORDER).to_numpy(zero_copy_only=False)
        if table.column(ORDER).null_count or numpy.isnan(order).any():
            raise Refused(f'column "{settings["order"]}", which order= names, is null in '
                          f"{_named(ids, numpy.isnan(order))}: every document needs its place")
        if (abs(order) > _EXACT).any():
            raise Refused(f'column "{settings["order"]}", which order= names, is beyond 2^53 in '
                          f"{_named(ids, abs(order) > _EXACT)}: such numbers cannot be told apart as doubles")
    for option in ("text", "html"):
        if named[option] is None:
            continue
        column = table.column(option)
        lengths = pyarrow.compute.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        if (lengths > settings["max_record"]).any():
            raise Refused(f'column "{named[option]}" has more than {settings["max_record"]} bytes in '
                          f"{_named(ids, lengths > settings['max_record'])}: leave them out, or raise max_record")
    _check_texts(settings, table, ids)


def _check_texts(settings: dict[str, Any], table: Any, ids: Any) -> None:
    named = settings["named"]
    if settings["options"].get("missing", "error") == "skip":
        return
    missing = table.column("text").is_null()
    if named["html"] is not None:
        missing = pyarrow.compute.and_(missing, table.column("html").is_null())
    if missing.true_count:
        raise Refused(f'column "{named["text"]}" is null in {_named(ids, missing.to_numpy(zero_copy_only=False))}: '
                      'fill it, leave the rows out, or use missing="skip", which keeps them')


def _present(settings: dict[str, Any], table: Any) -> Any:
    """Without the rows that have no text, with missing="skip": they are no documents."""
    there = table.column("text").is_valid()
    if settings["named"]["html"] is not None:
        there = pyarrow.compute.or_(there, table.column("html").is_valid())
    return table if there.false_count == 0 else table.filter(there)


def _documents(settings: dict[str, Any], batches: Iterator[Any], ids: Any = None) -> Iterator[Any]:
    """The rows that are documents, a batch at a time, once they are found to be good; `ids` is called with those of all."""
    for batch in batches:
        _check(settings, batch)
        if ids is not None:
            ids(batch.column("id"))
        batch = _present(settings, batch)
        if batch.num_rows:
            yield batch


def keys(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives id and node of each document, then part and block of what finds candidates. Twins within a batch have one
    entry of keys."""
    settings = _with_options(settings)
    packer = _Packer(settings)
    for batch in _documents(settings, batches, packer.add_ids):
        entries = _read(settings, batch, keys_for_sets=True)
        ids = batch.column("id")
        nodes = _nodes(settings, entries, ids)
        packer.add(nodes, *_found_by(settings, entries, nodes), entries.head["url"])
        count = batch.num_rows
        yield _row_batch([ids.cast(pyarrow.string()), _node_array(nodes), pyarrow.nulls(count, pyarrow.int32()),
                          pyarrow.nulls(count, pyarrow.binary())])
        if packer.count >= _PACKED:
            yield packer.blocks()
    yield packer.blocks()


def _row_batch(columns: list[Any]) -> Any:
    return pyarrow.RecordBatch.from_arrays(columns, ["id", "node", "part", "block"])


def sketch(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives component, which is passed on, id and sketch. Some rows at a time: what they need stays in the cache. Refuses
    documents whose text is not the one that was read for keys, their node."""
    settings = _with_options(settings)
    for batch in _documents(settings, batches):
        for at in range(0, batch.num_rows, _SKETCHED):
            some = batch.slice(at, _SKETCHED)
            entries = _read(settings, some)
            _check_nodes(settings, some, entries)
            yield pyarrow.RecordBatch.from_arrays(
                [some.column("component"), some.column("id").cast(pyarrow.string()),
                 _sketch_column(entries)], ["component", "id", "sketch"])


def _check_nodes(settings: dict[str, Any], table: Any, entries: Entries) -> None:
    ids = table.column("id")
    other = (_nodes(settings, entries, ids) != _rows_of(table.column("node"), NODE)).any(axis=1)
    if other.any():
        raise Refused("the DataFrame does not give the same rows each time it is read: another text came in "
                      f"{_named(ids, other)}; {WRITE_IT}")


def store(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives id, place (by `order`; 0: by id alone), node, url (a hash), keys (wide ones of bands, or a fingerprint) and sketch."""
    settings = _with_options(settings)
    for batch in _documents(settings, batches):
        entries = _read(settings, batch)
        ids = batch.column("id")
        nodes = _nodes(settings, entries, ids)
        url = entries.head["url"].view(numpy.int64)
        place = pyarrow.array(numpy.zeros(len(ids))) if settings["order"] is None else batch.column(ORDER)
        yield pyarrow.RecordBatch.from_arrays(
            [ids.cast(pyarrow.string()), place, _node_array(nodes), pyarrow.array(url, mask=url == 0),
             _key_column(*_found_by(settings, entries, nodes)), _sketch_column(entries)],
            ["id", "place", "node", "url", "keys", "sketch"])


def _with_options(settings: dict[str, Any]) -> dict[str, Any]:
    """With the options as a batch of the C library takes them."""
    from .._batch import _options

    return {**settings, "checked": _options(**settings["options"], threads=1)}


def _read(settings: dict[str, Any], table: Any, keys_for_sets: bool = False) -> Entries:
    from .._options import needed_columns

    documents = _batch(settings, keep_sketches=True, keys_for_sets=keys_for_sets)
    names = [name for name in table.schema.names]
    try:
        documents.read_data(pyarrow.Table.from_batches([table]), False, "data",
                            [each for each in needed_columns(settings["checked"], False) if each[1] in names])
    except ValueError as error:
        raise Refused(str(error)) from error
    data, ends = documents.sketches()
    return Entries(data, numpy.array(pyarrow.array(ends)), keys_for_sets)


def _nodes(settings: dict[str, Any], entries: Entries, ids: Any) -> Any:
    return entries.nodes() if settings["content"] else _nodes_of_ids(ids)


def _nodes_of_ids(ids: Any) -> Any:
    """Where content does not count, each document is a text of its own."""
    from hashlib import blake2b

    made = b"".join(blake2b(id.as_buffer(), digest_size=NODE).digest() for id in ids.cast(pyarrow.binary()))
    return numpy.frombuffer(made, numpy.uint8).reshape(-1, NODE)


def _first_of_each(nodes: Any) -> Any:
    """Whether each row is the first with its node."""
    order, starts = _order_nodes(nodes)
    first = numpy.zeros(len(nodes), bool)
    first[order[starts]] = True  # the sort is stable
    return first


def _found_by(settings: dict[str, Any], entries: Entries, nodes: Any) -> tuple[Any, Any]:
    """Which documents can be candidates, and by what: keys of bands, or the fingerprint, a row each."""
    if settings["has_keys"] and settings["method"] == "simhash":
        has = (entries.head["words"] >= settings["checked"]["min_words"]) & _first_of_each(nodes)
        return has, entries.fingerprints()[has]
    has = (entries.head["keys"] > 0) & settings["has_keys"]
    return has, entries.wide_keys(has, *settings["bands"]) if has.any() else numpy.zeros((0, 0), numpy.uint8)


def _key_column(has: Any, rows: Any) -> Any:
    """These rows, and null where there is none."""
    values = numpy.zeros(len(has) + 1, numpy.int64)
    numpy.cumsum(has * rows.shape[1], out=values[1:])
    valid = numpy.packbits(has, bitorder="little").tobytes()
    return pyarrow.LargeBinaryArray.from_buffers(
        pyarrow.large_binary(), len(has),
        [pyarrow.py_buffer(valid), pyarrow.py_buffer(values.tobytes()), pyarrow.py_buffer(rows.tobytes())],
        null_count=int(len(has) - has.sum())).cast(pyarrow.binary())


def _sketch_column(entries: Entries) -> Any:
    places = numpy.concatenate(([0], entries.ends)).astype(numpy.int64)
    return pyarrow.LargeBinaryArray.from_buffers(
        pyarrow.large_binary(), len(entries.ends),
        [None, pyarrow.py_buffer(places.tobytes()), pyarrow.py_buffer(entries.bytes)]).cast(pyarrow.binary())


# ---- blocks: keys by the part of the key space they belong to ----


def _order_nodes(nodes: Any) -> tuple[Any, Any]:
    """A stable order of nodes, and where in it each distinct node begins."""
    high, low = _numbers(nodes)
    order = numpy.lexsort((low, high))
    if not len(order):
        return order, order
    new = numpy.concatenate(([True], (high[order][1:] != high[order][:-1]) | (low[order][1:] != low[order][:-1])))
    return order, numpy.flatnonzero(new)


def _numbers(nodes: Any) -> tuple[Any, Any]:
    """Nodes as numbers that compare as their bytes do."""
    nodes = numpy.ascontiguousarray(nodes)
    high = numpy.ascontiguousarray(nodes[:, :8]).view(">u8").reshape(-1).astype(numpy.uint64)
    low = numpy.ascontiguousarray(nodes[:, 8:]).view(">u4").reshape(-1).astype(numpy.uint32)
    return high, low


def _block(keys: Any, nodes: Any) -> bytes:
    """Entries: the bytes of a key, then the node."""
    return numpy.concatenate([keys, nodes], axis=1).tobytes()


def _mix(keys: Any) -> Any:
    """64 bits from the bytes of a key (4 to 16), evenly spread."""
    padded = numpy.zeros((len(keys), 16), numpy.uint8)
    padded[:, :keys.shape[1]] = keys
    words = padded.view("<u8")
    mixed = (words[:, 0] ^ (words[:, 1] * numpy.uint64(0x9E3779B97F4A7C15))) * numpy.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> numpy.uint64(32)
    return mixed * numpy.uint64(0x9E3779B97F4A7C15)


class _Packer:
    """Entries of tables, each by a part of its key space, in blocks. A table is a band, or some bits of the fingerprint;
    then come URLS, TEXTS and IDS, which are told by their hashes."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._found: list[tuple[Any, Any]] = []
        self._urls: list[tuple[Any, Any]] = []
        self._nodes: list[Any] = []
        self._ids: list[Any] = []

    def add(self, nodes: Any, has: Any, rows: Any, urls: Any) -> None:
        """Documents: their texts; which of them have keys or a fingerprint, and these; the hashes of their URLs, or 0."""
        self.count += len(nodes)
        if has.any():
            self._found.append((rows, nodes[has]))
        if self._settings["urls"] and (urls != 0).any():
            known = numpy.ascontiguousarray(urls[urls != 0]).view(numpy.uint8).reshape(-1, 8)
            self._urls.append((known, nodes[urls != 0]))
        if self._settings["content"]:
            self._nodes.append(nodes)

    def add_ids(self, ids: Any) -> None:
        """Ids, to find those that come twice: by 64 bits, as each that is found is looked at."""
        from pandas.util import hash_array

        hashes = numpy.zeros((len(ids), NODE), numpy.uint8)
        made = hash_array(ids.cast(pyarrow.string()).to_numpy(zero_copy_only=False), categorize=False)
        hashes[:, :8] = made.astype("<u8").view(numpy.uint8).reshape(-1, 8)
        self._ids.append(hashes)

    def blocks(self) -> Any:
        """The blocks of what was added since the last call."""
        blocks = list(self._all_blocks())
        self._clear()
        count = len(blocks)
        ends = numpy.cumsum([0] + [len(block) for _, block in blocks], dtype=numpy.int32)
        values = [None, pyarrow.py_buffer(ends.tobytes()), pyarrow.py_buffer(b"".join(block for _, block in blocks))]
        return _row_batch([pyarrow.nulls(count, pyarrow.string()), pyarrow.nulls(count, pyarrow.binary()),
                           pyarrow.array([part for part, _ in blocks], pyarrow.int32()),
                           pyarrow.BinaryArray.from_buffers(pyarrow.binary(), count, values)])

    def _all_blocks(self) -> Iterator[tuple[int, bytes]]:
        tables = self._settings["tables"]
        if self._found:
            rows, nodes = (numpy.concatenate(each) for each in zip(*self._found))
            first = _first_of_each(nodes)
            yield from self._of_content(rows[first], nodes[first])
        if self._urls:
            yield from self._split(tables + URLS, *(numpy.concatenate(each) for each in zip(*self._urls)))
        for table, held in ((TEXTS, self._nodes), (IDS, self._ids)):
            if held:
                nodes = _once_or_twice(numpy.concatenate(held))
                yield from self._split(tables + table, nodes[:, :KEY], nodes)

    def _of_content(self, rows: Any, nodes: Any) -> Iterator[tuple[int, bytes]]:
        if self._settings["method"] == "simhash":
            for table, mask in enumerate(self._settings["masks"]):
                yield from self._split(table, rows, nodes, rows & numpy.frombuffer(bytes(mask), numpy.uint8))
            return
        for band in range(rows.shape[1] // KEY):
            keys = numpy.ascontiguousarray(rows[:, KEY * band:KEY * (band + 1)])
            yield from self._split(band, keys, nodes, keys[:, NARROW])

    def _split(self, table: int, keys: Any, nodes: Any, selected: Any = None) -> Iterator[tuple[int, bytes]]:
        """The entries of one table, by part; `selected` is what decides which, if it is not the key."""
        parts = self._settings["parts"]
        if parts == 1:
            yield table, _block(keys, nodes)
            return
        part = (_mix(keys if selected is None else selected) >> numpy.uint64(32)) * numpy.uint64(parts) >> numpy.uint64(32)
        ordered = numpy.sort(part << numpy.uint64(32) | numpy.arange(len(part), dtype=numpy.uint64))
        order = (ordered & numpy.uint64(0xFFFFFFFF)).astype(numpy.int64)
        bounds = numpy.searchsorted(ordered, numpy.arange(parts + 1, dtype=numpy.uint64) << numpy.uint64(32)) * (NODE + keys.shape[1])
        block = _block(keys[order], nodes[order])
        for number in range(parts):
            if bounds[number] < bounds[number + 1]:
                yield table * parts + number, block[bounds[number]:bounds[number + 1]]


def _once_or_twice(nodes: Any) -> Any:
    """Each distinct node, and once more if it came more than once."""
    order, starts = _order_nodes(nodes)
    counts = numpy.diff(numpy.append(starts, len(nodes)))
    first = order[starts]
    return nodes[numpy.concatenate([first, first[counts > 1]])]


def pack(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives part and block, of node, url and keys of a table of sketches."""
    packer = _Packer(settings)
    for batch in batches:
        nodes = _rows_of(batch.column("node"), NODE)
        has = batch.column("keys").is_valid()
        rows = batch.column("keys").filter(has)
        width = len(rows[0].as_py()) if len(rows) else 0
        urls = batch.column("url").fill_null(0).to_numpy(zero_copy_only=False)
        packer.add(nodes, has.to_numpy(zero_copy_only=False), _rows_of(rows, width), urls)
        if packer.count >= _PACKED:
            yield packer.blocks().select(["part", "block"])
    yield packer.blocks().select(["part", "block"])


# ---- links ----


class _Links:
    """Links between nodes, without those that come again."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._count = 0

    def add(self, a: Any, b: Any) -> None:
        if len(a):
            self._parts.append(numpy.concatenate([a, b], axis=1))
            self._count += len(a)
        if self._count > 1 << 22:
            self._parts = [self._distinct()]
            self._count = len(self._parts[0])

    def _distinct(self) -> Any:
        links = numpy.concatenate(self._parts)
        numbers = [numpy.ascontiguousarray(links[:, at:at + 8]).view("<u8").reshape(-1) for at in (0, 8, 16)]
        order = numpy.lexsort(numbers)
        same = numpy.ones(max(len(order) - 1, 0), bool)
        for each in numbers:
            same &= each[order][1:] == each[order][:-1]
        return links[order[numpy.concatenate(([True], ~same))[:len(order)]]]

    def batches(self) -> Iterator[Any]:
        if not self._parts:
            return
        links = self._distinct()
        for at in range(0, len(links), 1 << 16):
            some = links[at:at + (1 << 16)]
            yield pyarrow.RecordBatch.from_arrays([_node_array(some[:, :NODE]), _node_array(some[:, NODE:])], ["a", "b"])


def link(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives links a, b: each text with the first (by its bytes) of those that have the same key; of fingerprints, with
    one that is near; with itself, if documents have it that are nothing else's candidates. An id that comes twice is
    linked with nothing."""
    blocks: dict[int, list[Any]] = {}
    links = _Links()
    for batch in batches:
        for part, block in zip(batch.column("part").to_pylist(), batch.column("block")):
            blocks.setdefault(part, []).append(numpy.frombuffer(block.as_buffer(), numpy.uint8))
    twice = 0
    for part in sorted(blocks):
        kind = part // settings["parts"] - settings["tables"]
        width = 8 if kind == URLS else KEY if kind >= 0 else settings["key_bytes"]
        entries = numpy.concatenate(blocks.pop(part)).reshape(-1, width + NODE)
        keys, nodes = entries[:, :width], entries[:, width:]
        if kind == TEXTS:
            shared = _come_twice(nodes)
            links.add(shared, shared)
        elif kind == IDS:
            twice += len(_come_twice(nodes))
        elif kind < 0 and settings["method"] == "simhash":
            _link_near(settings, keys, nodes, links)
        else:
            _link_equal(keys[:, NARROW] if kind < 0 and not settings["wide"] else keys, nodes, links)
    yield from links.batches()
    if twice:
        none = pyarrow.nulls(twice, pyarrow.binary())
        yield pyarrow.RecordBatch.from_arrays([none, none], ["a", "b"])


def _come_twice(nodes: Any) -> Any:
    """The nodes that come more than once, each once."""
    order, starts = _order_nodes(nodes)
    return nodes[order[starts[numpy.diff(numpy.append(starts, len(nodes))) > 1]]]


def _link_equal(keys: Any, nodes: Any, links: _Links) -> None:
    numbers = _mix(keys)  # what falls together by chance is linked for nothing
    which = _shared(numbers)
    high, low = _numbers(nodes[which])
    order = which[numpy.lexsort((low, high, numbers[which]))]
    ordered = numbers[order]
    new = numpy.concatenate(([True], ordered[1:] != ordered[:-1]))[:len(order)]
    leader = order[numpy.flatnonzero(new)[numpy.cumsum(new) - 1]] if len(order) else order
    others = (nodes[order] != nodes[leader]).any(axis=1)
    links.add(nodes[leader[others]], nodes[order[others]])


def _shared(numbers: Any) -> Any:
    """The rows whose number (or its upper half) another row has: the halves are sorted together with their rows."""
    rows = numpy.arange(len(numbers), dtype=numpy.uint64)
    ordered = numpy.sort((numbers & numpy.uint64(0xFFFFFFFF00000000)) | rows)
    equal = ordered[1:] >> numpy.uint64(32) == ordered[:-1] >> numpy.uint64(32)
    shared = numpy.concatenate((equal, [False])) | numpy.concatenate(([False], equal))
    return (ordered[shared] & numpy.uint64(0xFFFFFFFF)).astype(numpy.int64)


def _link_near(settings: dict[str, Any], keys: Any, nodes: Any, links: _Links) -> None:
    """Fingerprints that are equal, then those within the distance, by the exact index of the C library."""
    from .. import HammingIndex

    _link_equal(keys, nodes, links)
    distance, bits = settings["distance"], settings["bits"]
    rows = numpy.unique(numpy.ascontiguousarray(keys).view("V16").reshape(-1), return_index=True)[1]
    if not distance or len(rows) < 2:
        return
    if bits > 64:
        prints: Any = [keys[row].tobytes() for row in rows]
    else:
        prints = numpy.ascontiguousarray(keys[rows][:, :8]).view("<u8").reshape(-1)
    with HammingIndex(bits=bits, distance=distance, count=len(rows)) as index:
        index.add_batch(prints)
        found = index.find_batch(prints, threads=1)
    a, b = (rows[numpy.array(pyarrow.array(found[name])).astype(numpy.int64)] for name in ("query", "owner"))
    links.add(nodes[a[a < b]], nodes[b[a < b]])


# ---- components ----


def connect(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives node and component, the smallest node of it, for all links, which are in this one task."""
    sides: list[list[Any]] = [[], []]
    for batch in batches:
        for side, name in zip(sides, ("a", "b")):
            side.append(_rows_of(batch.column(name), NODE))
    if not sides[0]:
        return
    nodes = numpy.concatenate(sides[0] + sides[1])
    order, starts = _order_nodes(nodes)
    number = numpy.empty(len(nodes), numpy.int64)
    number[order] = numpy.repeat(numpy.arange(len(starts)), numpy.diff(numpy.append(starts, len(nodes))))
    count = len(nodes) // 2
    different = number[:count] != number[count:]
    edges = pyarrow.table({"a": number[:count][different], "b": number[count:][different],
                           "similarity": numpy.zeros(int(different.sum()))})
    decided = _doppel.decide_edges(edges, "a", "b", "similarity", len(starts), True)
    distinct = nodes[order[starts]]
    component = distinct[numpy.array(pyarrow.array(decided["original"])).astype(numpy.int64)]
    for at in range(0, len(distinct), 1 << 16):
        yield pyarrow.RecordBatch.from_arrays(
            [_node_array(distinct[at:at + (1 << 16)]), _node_array(component[at:at + (1 << 16)])], ["node", "component"])


# ---- decisions ----


class _Documents:
    """A batch of the C library that gets the sketches of whole components: of known documents, then of others, each with
    those last that have their set from a twin."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.batch = _batch(settings)
        self.known = self.count = 0
        self._sets = settings["content"] and settings["method"] in ("auto", "minhash")
        self._least = settings["options"].get("min_words") or 5
        self._ids: list[Any] = []
        self._later: list[tuple[Any, Any, bool]] = []

    def add(self, ids: Any, sketches: Any, known: bool) -> None:
        if not known and self._later and self._later[0][2]:
            self._add_later()
        head = of_column(sketches).head
        whole = (head["set_count"] > 0) | (head["words"] < self._least) if self._sets else numpy.ones(len(head), bool)
        if not whole.all():
            rest = pyarrow.array(~whole)
            self._later.append((ids.filter(rest), sketches.filter(rest), known))
            ids, sketches = ids.filter(pyarrow.array(whole)), sketches.filter(pyarrow.array(whole))
        self._add(ids, sketches, known)

    def _add_later(self) -> None:
        for each in self._later:
            self._add(*each)
        self._later = []

    def _add(self, ids: Any, sketches: Any, known: bool) -> None:
        if len(ids):
            self._ids.append(ids.cast(pyarrow.string()))
            self.count += len(ids)
            self.known += len(ids) if known else 0
            self.batch.add_sketches(of_column(sketches).bytes.tobytes(), known)

    def finish(self) -> Any:
        """The ids of all, by position."""
        self._add_later()
        return pyarrow.chunked_array(self._ids, pyarrow.string()).combine_chunks()


def _documents_of(settings: dict[str, Any], batches: Iterator[Any]) -> tuple[_Documents, Any] | None:
    """The documents of a task, known ones first, and their ids; None: there are none."""
    documents = _Documents(settings)
    for batch in batches:
        flags = (batch.column("known").to_numpy(zero_copy_only=False) if "known" in batch.schema.names
                 else numpy.zeros(batch.num_rows, bool))
        for is_known in (True, False):
            some = batch.filter(pyarrow.array(flags == is_known))
            if some.num_rows:
                documents.add(some.column("id"), some.column("sketch"), is_known)
    ids = documents.finish()
    return (documents, ids) if documents.count else None


_DECISIONS = pyarrow.schema([("id", pyarrow.string()), ("originalId", pyarrow.string()), ("reason", pyarrow.string()),
                             ("similarity", pyarrow.float64()), ("distance", pyarrow.int32())])
_PAIRS = pyarrow.schema([("a", pyarrow.string()), ("b", pyarrow.string()), ("distance", pyarrow.int32()),
                         ("similarity", pyarrow.float64())])


def decide(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives id, originalId, reason, similarity and distance of each document that is a copy; and first, without an id, how
    many documents there are, as `distance`."""
    given = _documents_of(settings, batches)
    if given is None:
        return
    documents, ids = given
    documents.batch.decide()
    found = pyarrow.table({name: pyarrow.array(column) for name, column in documents.batch.originals().items()})
    own = numpy.arange(documents.known, len(ids))
    yield pyarrow.RecordBatch.from_pylist([{"distance": len(own)}], _DECISIONS)
    original = found.column("original").to_numpy().astype(numpy.int64)
    copies = numpy.flatnonzero(original != own)
    for at in range(0, len(copies), 1 << 16):
        some = copies[at:at + (1 << 16)]
        rows = found.take(pyarrow.array(some))
        yield pyarrow.RecordBatch.from_arrays(
            [ids.take(pyarrow.array(own[some])), ids.take(pyarrow.array(original[some])),
             rows.column("reason").combine_chunks().cast(pyarrow.string()),
             rows.column("similarity").combine_chunks(), rows.column("distance").combine_chunks()], schema=_DECISIONS)


def pair(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives a, b, distance and similarity of each pair of near documents; a is the smaller id. First comes the number of
    documents, as above."""
    given = _documents_of(settings, batches)
    if given is None:
        return
    documents, ids = given
    yield pyarrow.RecordBatch.from_pylist([{"distance": len(ids)}], _PAIRS)
    found = {name: pyarrow.array(column) for name, column in documents.batch.pairs(None, settings["collapse"]).items()}
    a, b = ids.take(found["a"]), ids.take(found["b"])
    swapped = pyarrow.compute.greater(a.cast(pyarrow.binary()), b.cast(pyarrow.binary()))
    table = pyarrow.table({"a": pyarrow.compute.if_else(swapped, b, a), "b": pyarrow.compute.if_else(swapped, a, b),
                           "distance": found["distance"], "similarity": found["similarity"]})
    yield from table.to_batches(max_chunksize=1 << 16)


def masks_of(bits: int, distance: int) -> list[list[int]]:
    """Bits of a fingerprint, as 16 bytes each, so that two within the distance agree on all bits of one of these: of
    distance + r blocks, distance at most differ, and r agree. With r = 2 there are few tables up to a distance of 6."""
    chosen = 2 if 0 < distance <= 6 and bits >= 16 else 1
    blocks = distance + chosen
    bounds = [bits * block // blocks for block in range(blocks + 1)]
    found = []
    for some in itertools.combinations(range(blocks), chosen):
        mask = sum(((1 << bounds[block + 1]) - 1) ^ ((1 << bounds[block]) - 1) for block in some)
        found.append(list(mask.to_bytes(16, "little")))
    return found

"""What executors do, each a function of settings and an iterator of Arrow batches, called by the one remote() makes:

    sketch           documents -> a sketch each, the text it stands for (node), and what finds candidates
    pack             keys and fingerprints -> blocks, by the part of the key space they belong to
    link             blocks -> links between the texts that share a key, or whose fingerprints are near
    connect          links -> the component of each linked text, in one task
    decide, pair     the sketches of whole components -> what the C library decides of them

The C library reads documents and decides; in between there are only numbers, in numpy arrays. A block has many entries in
one binary value, which costs Spark one row: 16 bytes for a key of a band and a node. All of it is a function of
the rows of a partition, whatever their order, so that tasks can be repeated anywhere.
"""

from __future__ import annotations

import itertools

import numpy
import pyarrow
import pyarrow.compute

from .. import _doppel
from ._remote import Refused
from ._sketched import NODE, Entries, of_column
from ._settings import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_PACKED = 1 << 18  # documents whose keys are packed together
_EXACT = 1 << 53  # whole numbers up to here are doubles
_SHOWN = 5  # ids that a message names


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
    named = settings["named"]
    ids = table.column(named["id"])
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
        if named[option] is None or named[option] not in table.schema.names:
            continue
        column = table.column(named[option])
        lengths = pyarrow.compute.binary_length(column).fill_null(0).to_numpy(zero_copy_only=False)
        if (lengths > settings["max_record"]).any():
            raise Refused(f'column "{named[option]}" has more than {settings["max_record"]} bytes in '
                          f"{_named(ids, lengths > settings['max_record'])}: leave them out, or raise max_record")
    _check_texts(settings, table, ids)


def _check_texts(settings: dict[str, Any], table: Any, ids: Any) -> None:
    named = settings["named"]
    if settings["options"].get("missing", "error") == "skip":
        return
    missing = table.column(named["text"]).is_null()
    if named["html"] is not None:
        missing = pyarrow.compute.and_(missing, table.column(named["html"]).is_null())
    if missing.true_count:
        raise Refused(f'column "{named["text"]}" is null in {_named(ids, missing.to_numpy(zero_copy_only=False))}: '
                      'fill it, leave the rows out, or use missing="skip", which keeps them')


def _present(settings: dict[str, Any], table: Any) -> Any:
    """Without the rows that have no text, with missing="skip": they are no documents."""
    named = settings["named"]
    there = table.column(named["text"]).is_valid()
    if named["html"] is not None:
        there = pyarrow.compute.or_(there, table.column(named["html"]).is_valid())
    return table if there.false_count == 0 else table.filter(there)


def sketch(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives id, node, url (a hash), keys (of bands, or a fingerprint) and sketch. Twins within a batch have no keys, and
    no set in their sketch: one of them is enough."""
    for batch in batches:
        _check(settings, batch)
        batch = _present(settings, batch)
        if batch.num_rows:
            yield _sketch_batch(settings, batch)


def _read(settings: dict[str, Any], table: Any) -> Entries:
    from .._options import needed_columns

    documents = _batch(settings, keep_sketches=True)
    names = [name for name in table.schema.names]
    try:
        documents.read_data(pyarrow.Table.from_batches([table]), False, "data",
                            [each for each in needed_columns(settings["checked"], False) if each[1] in names])
    except ValueError as error:
        raise Refused(str(error)) from error
    data, ends = documents.sketches()
    return Entries(data, numpy.array(pyarrow.array(ends)))


def _sketch_batch(settings: dict[str, Any], table: Any) -> Any:
    from .._batch import _options

    settings = {**settings, "checked": _options(**settings["options"], threads=1)}
    entries = _read(settings, table)
    ids = table.column(settings["named"]["id"])
    nodes = entries.nodes() if settings["content"] else _nodes_of_ids(ids)
    url = entries.head["url"].view(numpy.int64)
    columns = [ids.cast(pyarrow.string()), _node_array(nodes), pyarrow.array(url, mask=url == 0),
               _key_column(settings, entries, nodes), _sketch_column(entries)]
    return pyarrow.RecordBatch.from_arrays(columns, ["id", "node", "url", "keys", "sketch"])


def _nodes_of_ids(ids: Any) -> Any:
    """Where content does not count, each document is a text of its own."""
    from hashlib import blake2b

    made = b"".join(blake2b(str(id).encode(), digest_size=NODE).digest() for id in ids.to_pylist())
    return numpy.frombuffer(made, numpy.uint8).reshape(-1, NODE)


def _first_of_each(nodes: Any) -> Any:
    """Whether each row is the first with its node."""
    order, starts = _order_nodes(nodes)
    first = numpy.zeros(len(nodes), bool)
    first[order[starts]] = True  # the sort is stable
    return first


def _key_column(settings: dict[str, Any], entries: Entries, nodes: Any) -> Any:
    """What finds candidates: keys of bands, or the fingerprint; null where there are none."""
    if settings["method"] == "simhash":
        least = settings["checked"]["min_words"]
        has = (entries.head["words"] >= least) & _first_of_each(nodes)
        rows = entries.fingerprints()[has]
    else:
        has = entries.head["keys"] > 0
        rows = entries.keys(has)
    values = numpy.zeros(len(nodes) + 1, numpy.int64)
    numpy.cumsum(has * rows.shape[1], out=values[1:])
    valid = numpy.packbits(has, bitorder="little").tobytes()
    return pyarrow.LargeBinaryArray.from_buffers(
        pyarrow.large_binary(), len(nodes),
        [pyarrow.py_buffer(valid), pyarrow.py_buffer(values.tobytes()), pyarrow.py_buffer(rows.tobytes())],
        null_count=int(len(nodes) - has.sum())).cast(pyarrow.binary())


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


def _split(parts: int, table: int, keys: Any, nodes: Any, selected: Any = None) -> Iterator[tuple[int, bytes]]:
    """The entries of one table (a band, or some bits of the fingerprint), by part; `selected` is what decides which, if
    it is not the key."""
    part = (_mix(keys if selected is None else selected) >> numpy.uint64(32)) * numpy.uint64(parts) >> numpy.uint64(32)
    order = numpy.argsort(part, kind="stable")
    bounds = numpy.searchsorted(part[order], numpy.arange(parts + 1))
    for number in range(parts):
        which = order[bounds[number]:bounds[number + 1]]
        if len(which):
            yield table * parts + number, _block(keys[which], nodes[which])


def _tables(settings: dict[str, Any], keys: Any, nodes: Any) -> Iterator[tuple[int, bytes]]:
    parts = settings["parts"]
    if settings["method"] == "simhash":
        for table, mask in enumerate(settings["masks"]):
            bits = numpy.frombuffer(bytes(mask), numpy.uint8)
            yield from _split(parts, table, keys, nodes, keys & bits)
        return
    width = settings["key_bytes"]
    for band in range(keys.shape[1] // width):
        yield from _split(parts, band, numpy.ascontiguousarray(keys[:, width * band:width * (band + 1)]), nodes)


def pack(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives part and block, of `keys` and of `url`, which is a table of its own, -1."""
    for held in _gathered(batches, _PACKED >> 4 if settings.get("wide") else _PACKED):
        blocks = []
        keyed = held.filter(held.column("keys").is_valid())
        if keyed.num_rows:
            nodes = _rows_of(keyed.column("node").combine_chunks(), NODE)
            order, starts = _order_nodes(nodes)
            first = order[starts]
            blocks += _tables(settings, _keys_of(settings, keyed, first), nodes[first])
        addressed = held.filter(held.column("url").is_valid())
        if settings["urls"] and addressed.num_rows:
            nodes = _rows_of(addressed.column("node").combine_chunks(), NODE)
            urls = addressed.column("url").combine_chunks().to_numpy(zero_copy_only=False).astype("<i8")
            keys = numpy.ascontiguousarray(urls).view(numpy.uint8).reshape(-1, 8)
            blocks += ((-1 - part, block) for part, block in _split(settings["parts"], 0, keys, nodes))
        if blocks:
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array([part for part, _ in blocks], pyarrow.int32()),
                 pyarrow.array([block for _, block in blocks], pyarrow.binary())], ["part", "block"])


def _keys_of(settings: dict[str, Any], keyed: Any, first: Any) -> Any:
    """The keys of some rows; wide ones are made of the sets in the sketches."""
    if settings.get("wide"):
        return of_column(keyed.column("sketch").combine_chunks()).wide_keys(first, *settings["wide"])
    width = len(keyed.column("keys")[0].as_py())
    return _rows_of(keyed.column("keys").combine_chunks(), width)[first]


def _gathered(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Tables of about this many rows."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(each.num_rows for each in held) >= rows:
            yield pyarrow.Table.from_batches(held)
            held = []
    if held:
        yield pyarrow.Table.from_batches(held)


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
    one that is near."""
    blocks: dict[int, list[Any]] = {}
    links = _Links()
    for batch in batches:
        for part, block in zip(batch.column("part").to_pylist(), batch.column("block")):
            blocks.setdefault(part, []).append(numpy.frombuffer(block.as_buffer(), numpy.uint8))
    for part in sorted(blocks):
        width = 8 if part < 0 else settings["key_bytes"]
        entries = numpy.concatenate(blocks.pop(part)).reshape(-1, width + NODE)
        if part >= 0 and settings["method"] == "simhash":
            _link_near(settings, entries[:, :width], entries[:, width:], links)
        else:
            _link_equal(entries[:, :width], entries[:, width:], links)
    yield from links.batches()


def _link_equal(keys: Any, nodes: Any, links: _Links) -> None:
    if keys.shape[1] == 4:
        numbers = numpy.ascontiguousarray(keys).view("<u4").reshape(-1)
    else:
        numbers = _mix(keys)  # what falls together by chance is linked for nothing
    order = numpy.argsort(numbers, kind="stable")
    ordered = numbers[order]
    equal = ordered[1:] == ordered[:-1]
    shared = numpy.concatenate((equal, [False])) | numpy.concatenate(([False], equal))
    which = order[shared]  # only keys that came more than once
    high, low = _numbers(nodes[which])
    order = which[numpy.lexsort((low, high, numbers[which]))]
    ordered = numbers[order]
    new = numpy.concatenate(([True], ordered[1:] != ordered[:-1]))[:len(order)]
    leader = order[numpy.flatnonzero(new)[numpy.cumsum(new) - 1]] if len(order) else order
    others = (nodes[order] != nodes[leader]).any(axis=1)
    links.add(nodes[leader[others]], nodes[order[others]])


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
    """A batch of the C library that gets the sketches of whole components. Twins without a set come last."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.batch = _batch(settings)
        self._sets = settings["content"] and settings["method"] in ("auto", "minhash")
        self._least = settings["options"].get("min_words") or 5
        self._ids: list[Any] = []
        self._later: list[tuple[Any, Any]] = []

    def add(self, ids: Any, sketches: Any, known: bool) -> None:
        head = of_column(sketches).head
        whole = (head["set_count"] > 0) | (head["words"] < self._least) if self._sets else numpy.ones(len(head), bool)
        if not whole.all():
            rest = pyarrow.array(~whole)
            self._later.append((ids.filter(rest), sketches.filter(rest)))
            ids, sketches = ids.filter(pyarrow.array(whole)), sketches.filter(pyarrow.array(whole))
        self._add(ids, sketches, known)

    def _add(self, ids: Any, sketches: Any, known: bool) -> None:
        if len(ids):
            self._ids.append(ids)
            self.batch.add_sketches(of_column(sketches).bytes.tobytes(), known)

    def finish(self) -> Any:
        """The ids of all, by position."""
        for ids, sketches in self._later:
            self._add(ids, sketches, False)
        self._later = []
        return pyarrow.chunked_array(self._ids, pyarrow.string()).combine_chunks()


def _documents_of(settings: dict[str, Any], batches: Iterator[Any]) -> tuple[Any, Any] | None:
    documents, any_rows, known = _Documents(settings), False, 0
    for batch in batches:
        any_rows = any_rows or batch.num_rows > 0
        flags = (batch.column("known").to_numpy(zero_copy_only=False) if "known" in batch.schema.names
                 else numpy.zeros(batch.num_rows, bool))
        for is_known in (True, False):
            some = batch.filter(pyarrow.array(flags == is_known))
            known += some.num_rows if is_known else 0
            if some.num_rows:
                documents.add(some.column("id"), some.column("sketch"), is_known)
    settings["known"] = known
    return (documents.batch, documents.finish()) if any_rows else None


def decide(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives id, originalId, reason, similarity and distance of each document that is a copy."""
    given = _documents_of(settings, batches)
    if given is None:
        return
    documents, ids = given
    documents.decide()
    found = pyarrow.table({name: pyarrow.array(column) for name, column in documents.originals().items()})
    own = numpy.arange(settings["known"], len(ids))
    original = found.column("original").to_numpy().astype(numpy.int64)
    copies = numpy.flatnonzero(original != own)
    for at in range(0, len(copies), 1 << 16):
        some = copies[at:at + (1 << 16)]
        rows = found.take(pyarrow.array(some))
        yield pyarrow.RecordBatch.from_arrays(
            [ids.take(pyarrow.array(own[some])), ids.take(pyarrow.array(original[some])),
             rows.column("reason").combine_chunks().cast(pyarrow.string()),
             rows.column("similarity").combine_chunks(), rows.column("distance").combine_chunks()],
            ["id", "originalId", "reason", "similarity", "distance"])


def pair(settings: dict[str, Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Gives a, b, distance and similarity of each pair of near documents; a is the smaller id."""
    given = _documents_of(settings, batches)
    if given is None:
        return
    documents, ids = given
    found = {name: pyarrow.array(column) for name, column in documents.pairs(None, settings["collapse"]).items()}
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

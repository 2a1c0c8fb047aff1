"""Joins whole Parquet files into one without encoding anything again.

Joined takes the parts one after the other (add) and ends the file (finish). A Parquet file is a magic, the pages of its
row groups, a footer with the positions of pages, the length of the footer and the magic again. Pages contain no
positions, so they are appended as they are. The joined footer lists the row groups of all parts, each position in it
moved by the bytes that were written before. Page indexes contain positions, too, and encrypted pages are bound to their
file: parts with either are refused.

The footer is Thrift in its compact protocol. It is read into plain values, and fields that are not known here are
written as they were read: a struct is {field number: (type, value)}, a list or set is ((type,), values), a map is
((type of keys, type of values), [key, value, key, value, ...]), integers are int, all else is bytes.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Struct = dict[int, tuple[int, Any]]

# ---- Thrift ----

# The types of the compact protocol. The value of a boolean field is its type; in lists and maps it takes a byte.
_TRUE, _FALSE, _I8, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = range(1, 14)
_WIDTH = {_TRUE: 1, _FALSE: 1, _I8: 1, _DOUBLE: 8, _UUID: 16}


def _read_unsigned(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    byte = data[at]
    value, shift = byte & 127, 0
    while byte > 127:
        at, shift = at + 1, shift + 7
        byte = data[at]
        value |= (byte & 127) << shift
        if value >> 64 or shift > 63:
            raise ValueError("a number has more than 64 bits")
    return value, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    """A value and where it ends. That may be after the data: then the byte that ends the outer struct is missing."""
    if _I16 <= kind <= _I64:
        value, at = _read_unsigned(data, at)
        return value >> 1 ^ -(value & 1), at
    if kind == _BINARY:
        size, at = _read_unsigned(data, at)
        return data[at:at + size], at + size
    if kind == _STRUCT:
        return _read_struct(data, at)
    if kind == _LIST or kind == _SET:
        size, kinds, at = data[at] >> 4, (data[at] & 15,), at + 1
        if size == 15:
            size, at = _read_unsigned(data, at)
        return _read_values(data, at, kinds, size)
    if kind == _MAP:
        size, at = _read_unsigned(data, at)
        return _read_values(data, at + 1, (data[at] >> 4, data[at] & 15), size) if size else (((), []), at)
    if kind not in _WIDTH:
        raise ValueError(f"there is no type {kind}")
    return data[at:at + _WIDTH[kind]], at + _WIDTH[kind]


def _read_values(data: bytes, at: int, kinds: tuple[int, ...], size: int) -> tuple[tuple[tuple[int, ...], list], int]:
    if size > len(data) - at:  # each takes a byte or more
        raise ValueError("a list is longer than the footer")
    values = []
    for kind in kinds * size:
        value, at = _read(data, at, kind)
        values.append(value)
    return (kinds, values), at


def _read_struct(data: bytes, at: int) -> tuple[Struct, int]:
    fields: Struct = {}
    number = 0
    while head := data[at]:
        at, kind, value = at + 1, head & 15, None
        if head > 15:
            number += head >> 4
        else:
            number, at = _read(data, at, _I16)
        if kind > _FALSE:
            value, at = _read(data, at, kind)
        fields[number] = kind, value
    return fields, at + 1


def _write_unsigned(out: bytearray, value: int) -> None:
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if _I16 <= kind <= _I64:
        _write_unsigned(out, value << 1 ^ value >> 63)
    elif kind == _BINARY:
        _write_unsigned(out, len(value))
        out += value
    elif isinstance(value, bytes):  # fixed width, or a struct that has been written already
        out += value
    elif kind == _STRUCT:
        _write_struct(out, value)
    else:
        kinds, values = value
        size = len(values) // max(1, len(kinds))
        if kind != _MAP:
            out.append(min(size, 15) << 4 | kinds[0])
        if kind == _MAP or size > 14:
            _write_unsigned(out, size)
        if kind == _MAP and size:
            out.append(kinds[0] << 4 | kinds[1])
        for each, item in zip(kinds * size, values):
            _write(out, each, item)


def _write_struct(out: bytearray, fields: Struct) -> None:
    last = 0
    for number, (kind, value) in fields.items():
        if 0 < number - last < 16:
            out.append(number - last << 4 | kind)
        else:
            out.append(kind)
            _write(out, _I16, number)
        if kind > _FALSE:
            _write(out, kind, value)
        last = number
    out.append(0)


# ---- Parquet ----

_MAGIC = b"PAR1"
_MAX_ORDINAL = (1 << 15) - 1  # it has 16 bits
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData in the specification, parquet.thrift.
_SCHEMA, _NUM_ROWS, _ROW_GROUPS, _COLUMN_ORDERS = 2, 3, 4, 7
_COLUMNS, _GROUP_ROWS, _GROUP_OFFSET, _ORDINAL = 1, 3, 5, 7
_CHUNK_OFFSET, _META_DATA = 2, 3
_COMPRESSED_SIZE, _PAGE_OFFSETS = 7, (9, 10, 11, 14)  # of data, index, dictionary, Bloom filter
_REFUSED_OF_FILE = dict.fromkeys((8, 9), "it is encrypted")
_REFUSED_OF_CHUNK = {1: "its pages are in another file", **dict.fromkeys((4, 5, 6, 7), "it has a page index"),
                     **dict.fromkeys((8, 9), "it is encrypted")}


def _get(fields: Struct, number: int, kind: int) -> Any:
    found, value = fields.get(number, (0, None))
    if found != kind:
        raise ValueError(f"field {number} of its footer is missing or of another type")
    return value


def _get_structs(fields: Struct, number: int) -> list[Struct]:
    kinds, values = _get(fields, number, _LIST)
    if values and kinds != (_STRUCT,):
        raise ValueError(f"field {number} of its footer is a list of another type")
    return values


def _refuse(fields: Struct, refused: dict[int, str]) -> None:
    for number in fields.keys() & refused.keys():
        raise ValueError(refused[number])


def _read_footer(part: memoryview) -> tuple[Struct, int]:
    """The footer of a part, and where its pages end."""
    if part[-4:] == b"PARE":
        raise ValueError("it is encrypted")
    if len(part) < 12 or part[:4] != _MAGIC or part[-4:] != _MAGIC:
        raise ValueError("it is not a whole Parquet file")
    end = len(part) - 8 - int.from_bytes(part[-8:-4], "little")
    if end < len(_MAGIC):
        raise ValueError("its footer is longer than the part")
    footer = bytes(part[end:-8])
    metadata, footer_end = _read_struct(footer, 0)
    _refuse(metadata, _REFUSED_OF_FILE)
    if footer_end != len(footer):
        raise ValueError("its footer has another length than it says")
    return metadata, end


def _move(fields: Struct, numbers: tuple[int, ...], end: int, by: int) -> int:
    """Moves those offsets that are set: what is not set is left out, or 0. The first of them, as it was."""
    first = end
    for number in numbers:
        if number in fields and (offset := _get(fields, number, _I64)):
            if not len(_MAGIC) <= offset <= end:
                raise ValueError(f"offset {offset} is not in its pages")
            fields[number] = _I64, offset + by
            first = min(first, offset)
    return first


def _move_group(group: Struct, end: int, by: int, ordinal: int) -> bytes:
    """A row group for the joined footer."""
    for chunk in _get_structs(group, _COLUMNS):
        _refuse(chunk, _REFUSED_OF_CHUNK)
        column = _get(chunk, _META_DATA, _STRUCT)
        if not 0 <= _get(column, _COMPRESSED_SIZE, _I64) <= end - _move(column, _PAGE_OFFSETS, end, by):
            raise ValueError("a column is longer than its pages")
        _move(chunk, (_CHUNK_OFFSET,), end, by)
    _move(group, (_GROUP_OFFSET,), end, by)
    if ordinal > _MAX_ORDINAL:
        group.pop(_ORDINAL, None)
    elif _ORDINAL in group:
        group[_ORDINAL] = _I16, ordinal
    out = bytearray()
    _write_struct(out, group)
    return bytes(out)


class Joined:
    """A Parquet file made of parts, each a whole Parquet file in memory, all with the same schema.

    The sink's write takes all bytes that it is given, and keeps none of them. Not for several threads at once.
    """

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._written = self._rows = 0
        self._metadata: Struct = {}  # of the first part
        self._groups: list[bytes] = []

    def add(self, part: Any) -> None:
        """Appends the row groups of a part. ValueError if it cannot be joined; then nothing was written."""
        view = memoryview(part)
        start = len(_MAGIC) if self._written else 0  # the magic of the first part becomes that of the file
        try:
            metadata, end = _read_footer(view)
            if self._written and any(metadata.get(n) != self._metadata.get(n) for n in (_SCHEMA, _COLUMN_ORDERS)):
                raise ValueError("its schema is not that of the first part")
            groups = _get_structs(metadata, _ROW_GROUPS)
            rows = sum(_get(group, _GROUP_ROWS, _I64) for group in groups)
            if rows != _get(metadata, _NUM_ROWS, _I64):
                raise ValueError("its number of rows is not that of its row groups")
            moved = [_move_group(group, end, self._written - start, ordinal)
                     for ordinal, group in enumerate(groups, len(self._groups))]
        except (ValueError, IndexError, RecursionError) as error:
            why = error if isinstance(error, ValueError) else "its footer is damaged"
            raise ValueError(f"a part cannot be joined into a Parquet file: {why}") from error
        self._sink.write(view[start:end])
        self._written += end - start
        self._rows += rows
        self._metadata = self._metadata or metadata
        self._groups += moved

    def finish(self) -> None:
        """Writes the footer, in which all but rows and row groups is that of the first part. The sink stays open."""
        if not self._written:
            raise ValueError("a Parquet file needs a part or more, for its schema")
        out = bytearray()
        _write_struct(out, self._metadata | {_NUM_ROWS: (_I64, self._rows),
                                             _ROW_GROUPS: (_LIST, ((_STRUCT,), self._groups))})
        self._sink.write(bytes(out) + len(out).to_bytes(4, "little") + _MAGIC)

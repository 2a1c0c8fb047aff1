"""Parquet in and out, through pyarrow, which is imported when the first Parquet file comes.

Parquet is what the extension calls (tables.c): claims, list and open for reading, create for writing. A table is read a
row group at a time, each by a thread of its own, and only the columns that are wanted. It is written row group by row
group as well: the rows that stay, all columns, the schema with its metadata, and the same compression and encodings.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Bytes of a batch that is read to be sketched: threads get some of them, and buffers stay in the cache.
_BATCH_BYTES = 4 << 20
# Bytes of rows that are written at a time: memory is a few times this, however large row groups are.
_CHUNK_BYTES = 64 << 20
# What pyarrow reads by itself; other schemes need fsspec.
_OWN_SCHEMES = ("file", "s3", "gs", "gcs", "hdfs", "viewfs", "abfs", "abfss")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install pyarrow") from error
    return pyarrow


def _filesystem(path: str) -> tuple[Any, str]:
    """The file system of a path or URL, and the path in it."""
    fs = _pyarrow() and __import__("pyarrow.fs").fs
    scheme, found, _ = path.partition("://")
    if not found:
        return fs.LocalFileSystem(), path
    if scheme in _OWN_SCHEMES:
        return fs.FileSystem.from_uri(path)
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"{scheme}:// needs fsspec: pip install fsspec") from error
    other, inside = url_to_fs(path)
    return fs.PyFileSystem(fs.FSSpecHandler(other)), inside


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(("_", "."))


def _listed(path: str) -> list[str]:
    """The Parquet files that a URL stands for, a folder or a pattern, in order of their names; none: it is a file."""
    from fnmatch import fnmatchcase
    from pyarrow.fs import FileSelector, FileType

    scheme = path.partition("://")[0]
    wild = min((path.find(sign) for sign in "*?[" if sign in path), default=-1)
    base = path if wild < 0 else path[:wild].rpartition("/")[0]
    system, inside = _filesystem(base)
    if wild < 0 and system.get_file_info(inside).type != FileType.Directory:
        return []
    pattern = None if wild < 0 else inside.rstrip("/") + path[len(base):]
    found = [each.path for each in system.get_file_info(FileSelector(inside, recursive=True, allow_not_found=True))
             if each.type == FileType.File and _is_parquet(each.path) and not _is_hidden(each.path)]
    return [f"{scheme}://{each}" for each in sorted(found, key=str.encode)
            if pattern is None or fnmatchcase(each, pattern)]


def _expanded(path: str) -> Iterator[tuple[str, str]]:
    """The files that an input stands for, each with the name that it has below that input."""
    if "://" in path:
        below = _listed(path)
        start = len(path.rstrip("/")) + 1
        wild = any(sign in path for sign in "*?[")
        for each in below or [path]:
            yield each, each[start:] if below and not wild else each.rpartition("/")[2]
    elif os.path.isdir(path):
        for folder, folders, names in os.walk(path):
            folders.sort(key=os.fsencode)
            for name in sorted(names, key=os.fsencode):
                whole = os.path.join(folder, name)
                if _is_parquet(name) and not _is_hidden(name):
                    yield whole, os.path.relpath(whole, path)
    elif any(sign in path for sign in "*?[") and not os.path.lexists(path):
        from glob import glob

        for each in sorted(glob(path), key=os.fsencode):
            yield from _expanded(each)
    else:
        yield path, os.path.basename(path)


class _Table:
    """A Parquet file that is open: a part is a row group.

    When it is held, all columns are read, and what was read stays in memory: texts are compared where they stand, and
    nothing is decoded again to be written.
    """

    def __init__(self, path: str, wanted: list[str], held: dict[int, list[list[Any]]] | None) -> None:
        self._parquet = _pyarrow().parquet
        self._system, self._path = _filesystem(path)
        self._held = held
        self.in_memory = held is not None
        file = self._file()
        self._metadata = file.metadata
        names = file.schema_arrow.names
        self._names = [name for name in names if self.in_memory or name in wanted]
        self.columns = ", ".join(names)
        self.rows, self.bytes = [], []
        paths = [self._metadata.schema.column(c).path for c in range(self._metadata.num_columns)]
        read = [c for c, name in enumerate(paths) if name.partition(".")[0] in self._names]
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            self.rows.append(group.num_rows)
            self.bytes.append(sum(group.column(c).total_uncompressed_size for c in read))

    def _file(self, metadata: Any = None) -> Any:
        if type(self._system).__name__ == "LocalFileSystem":
            return self._parquet.ParquetFile(self._path, metadata=metadata, memory_map=True)
        return self._parquet.ParquetFile(self._system.open_input_file(self._path), metadata=metadata, pre_buffer=True)

    def read(self, part: int) -> Any:
        """The row group as a stream of batches."""
        pyarrow = _pyarrow()
        row = max(1, self.bytes[part] // max(1, self.rows[part]))
        batches = self._file(self._metadata).iter_batches(batch_size=max(64, min(1 << 16, _BATCH_BYTES // row)),
                                                          row_groups=[part], columns=self._names, use_threads=False)
        first = next(batches, None)
        if first is None:
            return pyarrow.table({})
        return pyarrow.RecordBatchReader.from_batches(first.schema, self._given(part, first, batches))

    def _given(self, part: int, first: Any, rest: Iterator[Any]) -> Iterator[Any]:
        from itertools import chain

        batches: list[Any] = []
        if self._held is not None:  # a part that is read again has another list: what was given must stay
            self._held.setdefault(part, []).append(batches)
        for batch in chain((first,), rest):
            if self._held is not None:
                batches.append(batch)
            yield batch

    def close(self) -> None:
        pass


def _free_memory() -> int:
    """Bytes that this machine has free."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            return next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return 0


class Parquet:
    """Who reads and writes Parquet for the extension."""

    def __init__(self) -> None:
        self._held: dict[str, dict[int, list[list[Any]]]] = {}

    def claims(self, path: str) -> bool:
        return _is_parquet(path) or "://" in path

    def list(self, path: str) -> list[str]:
        return _listed(path)

    def open(self, path: str, columns: list[str]) -> _Table:
        if not _is_parquet(path):
            raise ValueError("only Parquet is read from URLs: a name that ends in .parquet")
        return _Table(path, columns, self._held.get(path))

    def create(self, output: str | None, folder: str | None, inputs: list[str], memory: int = 0,
               threads: int = 0) -> _Writer:
        """Before the inputs are read: what stays of them will be written. They are held in memory if they take at most
        half of `memory`, or an eighth of what the machine has free."""
        writer = _Writer(output, folder, inputs, threads)
        if writer.bytes <= (memory // 2 if memory else _free_memory() // 8):
            self._held = writer.held = {path: {} for path in writer.inputs}
        return writer


# ---- writing ----

# From so many bytes a value on, dictionaries do not pay; of what has one, the size is counted with it.
_LONG_VALUE = 64


def _writer_options(metadata: Any) -> dict[str, Any]:
    """What makes the output like its input: compression and dictionaries by column, the format's version, INT96."""
    options: dict[str, Any] = {"version": metadata.format_version, "use_dictionary": False}
    if not metadata.num_row_groups:
        return options
    group, schema = metadata.row_group(0), metadata.schema
    columns = [group.column(c) for c in range(metadata.num_columns)]
    options["compression"] = {c.path_in_schema: _codec(c.compression) for c in columns}
    short = [c for c in columns if c.total_uncompressed_size < _LONG_VALUE * max(1, c.num_values)]
    options["use_dictionary"] = [c.path_in_schema for c in short if any("DICTIONARY" in e for e in c.encodings)] or False
    if any(schema.column(c).physical_type == "INT96" for c in range(metadata.num_columns)):
        options["use_deprecated_int96_timestamps"] = True
    return options


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none"}.get(name, name.lower())


class _Output:
    """One file that is being written: under another name until it is whole. Its row groups are encoded elsewhere."""

    def __init__(self, path: str, schema: Any, options: dict[str, Any]) -> None:
        from ._parquet_join import Joined

        self.path, self._schema, self._options = path, schema, options
        self._system, self._inside = _filesystem(path)
        self._beside = f"{self._inside}.{os.getpid()}.tmp"
        if "://" not in path and os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self._sink = self._system.open_output_stream(self._beside)
        self._joined: Any = Joined(self._sink)
        self._buffers: list[Any] = []
        self._empty = True

    def encode(self, table: Any) -> tuple[Any, Any]:
        """Rows as a Parquet file of its own, of one row group; from any thread. Gives it, and the buffer it stands in,
        which is used again: touching new memory takes as long as encoding."""
        pyarrow = _pyarrow()
        room = table.nbytes + table.nbytes // 8 + (1 << 20)
        buffer = self._buffers.pop() if self._buffers else None
        if buffer is None or buffer.size < room:
            buffer = pyarrow.allocate_buffer(room)
        try:
            to = pyarrow.FixedSizeBufferWriter(buffer)
            self._encode_to(to, table)
            return buffer.slice(0, to.tell()), buffer
        except (OSError, ValueError):  # what compression cannot make smaller, it makes larger
            to = pyarrow.BufferOutputStream()
            self._encode_to(to, table)
            return to.getvalue(), None

    def _encode_to(self, to: Any, table: Any) -> None:
        with _pyarrow().parquet.ParquetWriter(to, self._schema, **self._options) as writer:
            if table.num_rows:
                writer.write_table(table, row_group_size=table.num_rows)

    def add(self, encoded: tuple[Any, Any]) -> None:
        self._joined.add(encoded[0])
        if encoded[1] is not None:
            self._buffers.append(encoded[1])
        self._empty = False

    def close(self) -> None:
        if self._joined is None:
            return
        if self._empty:
            self.add(self.encode(self._schema.empty_table()))
        self._joined.finish()
        self._joined = None
        self._sink.close()

    def place(self) -> None:
        self._system.move(self._beside, self._inside)

    def remove(self) -> None:
        from pyarrow.fs import FileType

        self._joined = None
        self._sink.close()
        if self._system.get_file_info(self._beside).type != FileType.NotFound:
            self._system.delete_file(self._beside)


class _Writer:
    """Writes what stays of each input: to one file, or for each input to its own below a folder."""

    def __init__(self, output: str | None, folder: str | None, inputs: list[str], threads: int) -> None:
        _pyarrow()
        if output is not None and not _is_parquet(output):
            raise ValueError(f"{output}: to a URL only Parquet is written: choose a name that ends in .parquet")
        self._output, self._folder = output, folder
        self._threads = threads or len(os.sched_getaffinity(0))
        self._files: list[_Output] = []
        self._first: tuple[str, Any] | None = None
        self.bytes = 0  # of all inputs, decoded
        self.inputs: dict[str, str] = {}  # where each goes
        self.held: dict[str, dict[int, list[list[Any]]]] = {}
        self._plan(inputs)

    def _plan(self, inputs: list[str]) -> None:
        """Where each input goes. What cannot be is refused before anything is read."""
        taken: dict[str, str] = {}
        for given in inputs:
            for path, below in _expanded(given):
                if _is_parquet(path):
                    self._take(path, below, taken)
                elif "://" not in path and os.path.isfile(path) or path == "-":
                    raise ValueError(f"{path} is no Parquet: Parquet is written of Parquet alone")

    def _take(self, path: str, below: str, taken: dict[str, str]) -> None:
        place = self._output or self._folder.rstrip("/") + "/" + below
        if self._folder is not None and taken.setdefault(place, path) != path:
            raise ValueError(f"{taken[place]} and {path} would both be written to {place}")
        if "://" not in place and os.path.exists(place) and os.path.exists(path) and os.path.samefile(place, path):
            raise ValueError(f"{place} is an input: choose another {'folder' if self._folder else 'name'}")
        self.inputs[path] = place
        self._look(path)

    def _look(self, path: str) -> None:
        """One output has one schema. A file that cannot be opened is named when it is read."""
        try:
            system, inside = _filesystem(path)
            with _pyarrow().parquet.ParquetFile(system.open_input_file(inside)) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except (OSError, ValueError):
            return
        self.bytes += sum(metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups))
        self._first = self._first or (path, schema)
        if self._folder is None and not schema.equals(self._first[1]):
            raise ValueError(f"{path}: its schema is not that of {self._first[0]}: "
                             f"{_difference(schema, self._first[1])}; an output folder gets one file for each input")

    def _open(self, path: str, schema: Any, metadata: Any) -> _Output:
        if self._files and self._folder is None:
            return self._files[0]
        if self._files:
            self._files[-1].close()
        self._files.append(_Output(self.inputs[path], schema, _writer_options(metadata)))
        return self._files[-1]

    def write(self, path: str, keep: Any) -> Iterator[int]:
        """Writes the rows that stay, a step at a time."""
        keep = _pyarrow().array(keep)
        yield from self._write(path, None, lambda rows, at: rows.filter(keep.slice(at, rows.num_rows)))

    def annotate(self, path: str, copies: Any, group: Any, original: Any) -> Iterator[int]:
        """Writes all rows with three columns more; those that are no documents are left out."""
        pyarrow = _pyarrow()
        columns = {"group": pyarrow.array(group), "isDuplicate": pyarrow.array(copies),
                   "originalId": pyarrow.array(original)}

        def annotated(rows: Any, at: int) -> Any:
            for name, column in columns.items():
                rows = rows.append_column(name, column.slice(at, rows.num_rows))
            return rows.filter(rows["isDuplicate"].is_valid())

        yield from self._write(path, columns, annotated)

    def _write(self, path: str, added: dict[str, Any] | None, change: Any) -> Iterator[int]:
        """Threads change and encode some rows at a time; what they made is appended in order."""
        source = _Source(path, self.held.get(path, {}), added or {})
        output = self._open(path, source.schema, source.metadata)

        def make(rows: Any, at: int) -> Any:
            changed = change(rows(), at)
            return output.encode(changed) if changed.num_rows else None

        for done, encoded in _in_order(self._threads, make, source.chunks()):
            if encoded is not None:
                output.add(encoded)
            yield done

    def finish(self, ok: bool) -> None:
        """All files take their places, or none appears."""
        files, self._files = self._files, []
        closed = False
        try:
            if ok:
                for file in files:
                    file.close()
                closed = True
        finally:
            for file in files:
                file.place() if closed else file.remove()


class _Source:
    """The rows of an input, some at a time: a row group, or a part of one that is large."""

    def __init__(self, path: str, held: dict[int, list[list[Any]]], added: dict[str, Any]) -> None:
        import pyarrow

        self._system, self._inside = _filesystem(path)
        self._held = held
        with pyarrow.parquet.ParquetFile(self._system.open_input_file(self._inside)) as file:
            self.metadata, schema = file.metadata, file.schema_arrow
        self._names = [name for name in schema.names if name not in added]
        fields = [schema.field(name) for name in self._names]
        fields += [pyarrow.field(name, column.type) for name, column in added.items()]
        self.schema = pyarrow.schema(fields, metadata=schema.metadata)

    def _file(self) -> Any:
        return _pyarrow().parquet.ParquetFile(self._system.open_input_file(self._inside), metadata=self.metadata)

    def chunks(self) -> Iterator[tuple[Any, int, int]]:
        """Calls that give rows, each with the number of its first row in the file and of the one after its last."""
        at = 0
        for number in range(self.metadata.num_row_groups):
            group = self.metadata.row_group(number)
            for rows, count in self._chunks_of(number, group):
                yield rows, at, at + count
                at += count

    def _chunks_of(self, number: int, group: Any) -> Iterator[tuple[Any, int]]:
        import pyarrow

        for batches in self._held.pop(number, []):
            if sum(batch.num_rows for batch in batches) == group.num_rows:  # reading may have ended at a limit
                for some in _grouped(batches):
                    yield (lambda some=some: pyarrow.Table.from_batches(some).select(self._names),
                           sum(batch.num_rows for batch in some))
                return
        if group.total_byte_size <= _CHUNK_BYTES:
            yield lambda: self._file().read_row_group(number, columns=self._names, use_threads=False), group.num_rows
            return
        rows = max(1, group.num_rows * _CHUNK_BYTES // group.total_byte_size)
        for batch in self._file().iter_batches(batch_size=rows, row_groups=[number], columns=self._names):
            yield lambda batch=batch: pyarrow.Table.from_batches([batch]), batch.num_rows


def _grouped(batches: list[Any]) -> Iterator[list[Any]]:
    """Batches that are written together: as much as a chunk."""
    some: list[Any] = []
    size = 0
    for batch in batches:
        some.append(batch)
        size += batch.nbytes
        if size >= _CHUNK_BYTES:
            yield some
            some, size = [], 0
    if some:
        yield some


def _in_order(threads: int, make: Any, chunks: Iterator[tuple[Any, int, int]]) -> Iterator[tuple[int, Any]]:
    """make(rows, at) of each chunk, on threads, and what they give in order; some are under way at a time."""
    from collections import deque
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        under_way: deque[Any] = deque()
        try:
            for rows, at, end in chunks:
                under_way.append((end, pool.submit(make, rows, at)))
                if len(under_way) > threads:
                    done, coming = under_way.popleft()
                    yield done, coming.result()
            while under_way:
                done, coming = under_way.popleft()
                yield done, coming.result()
        finally:
            for _, coming in under_way:
                coming.cancel()


def _difference(a: Any, b: Any) -> str:
    """In what two schemas differ, in a few words."""
    for name in b.names:
        if name not in a.names:
            return f'it has no column "{name}"'
        if a.field(name).type != b.field(name).type:
            return f'its column "{name}" is {a.field(name).type}, not {b.field(name).type}'
    more = [name for name in a.names if name not in b.names]
    return f'it has a column "{more[0]}" more' if more else "the columns are in another order or may be null"

"""Parquet in and out, through pyarrow, which is imported when the first Parquet file comes.

Parquet is what the extension calls (tables.c): claims, list and open for reading, create for writing. A table is read a
row group at a time, each by a thread of its own, and only the columns that are wanted. It is written row group by row
group as well: the rows that stay, all columns, the schema with its metadata, and the same compression and encodings.
What dedup decided is known of whole files (write, annotate); what trim cuts comes row by row (trim).
"""

from __future__ import annotations

import itertools
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Held = dict[int, list[list[Any]]]  # batches by row group: a list of them for each time it was read

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


# ---- paths and URLs ----


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
    try:
        other, inside = url_to_fs(path)
    except (ValueError, ImportError) as error:
        raise type(error)(f"{path}: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(other)), inside


def _local_path(path: str) -> str | None:
    """A path of this machine, also of a file:// URL; None: it is elsewhere."""
    scheme, found, _ = path.partition("://")
    if not found:
        return path
    return _filesystem(path)[1] if scheme == "file" else None


def _file(system: Any, inside: str, metadata: Any = None) -> Any:
    """A Parquet file that is open. Checksums of pages are verified, where it has them. It is not mapped: if a mapped file
    is cut short while it is read, the process gets SIGBUS."""
    far = type(system).__name__ != "LocalFileSystem"
    return _pyarrow().parquet.ParquetFile(system.open_input_file(inside), metadata=metadata, pre_buffer=far,
                                          page_checksum_verification=True)


def _joined(folder: str, below: str) -> str:
    """A name below a folder; in URLs that pyarrow reads, characters are escaped."""
    if folder.partition("://")[0] in _OWN_SCHEMES and "://" in folder:
        from urllib.parse import quote

        below = quote(below)
    return folder + below if folder.endswith("://") else folder.rstrip("/") + "/" + below


def _is_parquet(path: str) -> bool:
    return path.lower().endswith(".parquet")


def _is_hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _is_wild(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def is_same(a: str, b: str) -> bool:
    """Whether two paths, or URLs, are one file."""
    here, there = _local_path(a), _local_path(b)
    if here is None or there is None:
        return here is there and _elsewhere(a) == _elsewhere(b)
    try:
        return os.path.samefile(here, there)
    except OSError:
        return os.path.realpath(here) == os.path.realpath(there)


def _elsewhere(path: str) -> tuple[str, str]:
    """The scheme of a URL, and the place."""
    scheme, _, place = path.partition("://")
    return scheme, os.path.normpath("/" + place)


def check_place(option: str, place: str, source: str) -> None:
    """Refuses an output that is an input, matches its pattern, or is below its folder, where it would be read the next
    time."""
    here, there = _local_path(place), _local_path(source)
    if there == source and _is_wild(source) and not os.path.lexists(source):
        from glob import glob

        for each in glob(source):
            check_place(option, place, each)
        return
    message = f"{option}: {place} is an input: choose another"
    if source == "-" or place == "-" and option != "output_dir" or (here is None) != (there is None):
        return
    if here is None or there is None:
        scheme, inside = _elsewhere(place)
        other, folder = _elsewhere(source)
        below = scheme == other and inside.startswith(folder + "/") and not _is_parquet(folder)
        if option != "output_dir" and (scheme, inside) == (other, folder):
            raise ValueError(message)
    else:
        if option != "output_dir" and not os.path.isdir(there) and is_same(here, there):
            raise ValueError(message)
        inside, folder = os.path.realpath(here), os.path.realpath(there)
        below = os.path.isdir(folder) and inside.startswith(folder.rstrip("/") + "/")
    if below:
        raise ValueError(f"{option}: {place} is inside {source}, which is an input: choose another folder")


def _listed(path: str) -> list[tuple[str, str]]:
    """The Parquet files that a URL stands for, a folder or a pattern, in order of their names, each with its name below
    it; none: it is a file."""
    from pyarrow.fs import FileSelector, FileType

    rest = ""
    base = path.rstrip("/")
    if _is_wild(path):
        wild = min(path.find(sign) for sign in "*?[" if sign in path)
        base, _, rest = path[:wild].rpartition("/")
        base, rest = base + "/" if base.endswith(":/") else base, rest + path[wild:]
    system, inside = _filesystem(base)
    if not rest and system.get_file_info(inside).type != FileType.Directory:
        return []
    selector = FileSelector(inside, recursive=not rest or "/" in rest, allow_not_found=True)
    names = [each.path[len(inside.rstrip("/")):].lstrip("/") for each in system.get_file_info(selector)
             if each.type == FileType.File and _is_parquet(each.path)]
    names = [name for name in names if not any(map(_is_hidden, name.split("/"))) and (not rest or _matches(name, rest))]
    names.sort(key=lambda name: [part.encode() for part in name.split("/")])
    return [(_joined(base, name), name.rpartition("/")[2] if rest else name) for name in names]


def _matches(name: str, pattern: str) -> bool:
    """Whether a name matches, folder by folder."""
    from fnmatch import fnmatchcase

    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def _expanded(path: str) -> Iterator[tuple[str, str]]:
    """The files that an input stands for, as the extension lists them, each with the name that it has below it."""
    if "://" in path:
        yield from _listed(path) or [(path, path.rpartition("/")[2])]
    elif os.path.isdir(path):
        yield from _below(path, "")
    elif _is_wild(path) and not os.path.lexists(path):
        from glob import glob

        for each in sorted(glob(path), key=os.fsencode):
            yield from _expanded(each)
    else:
        yield path, os.path.basename(path)


def _below(folder: str, name: str) -> Iterator[tuple[str, str]]:
    """The files of a folder, but for those beside tables that are none of the data (_SUCCESS, ._part.crc)."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError:  # reading says why
        return
    has_tables = any(_is_parquet(entry.name) and not entry.is_dir(follow_symlinks=False) for entry in entries)
    for entry in entries:
        if has_tables and _is_hidden(entry.name):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, name + entry.name + "/")
        elif entry.is_file():
            yield entry.path, name + entry.name


# ---- reading ----


def _state(system: Any, inside: str) -> tuple[int, int]:
    """What changes when a file does."""
    info = system.get_file_info(inside)
    return info.size, info.mtime_ns


def _is_text(kind: Any) -> bool:
    """Whether libdoppel reads a column of this type: strings, and what can be written out as one."""
    types = _pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    kind = getattr(kind, "storage_type", kind)
    return _is_string(kind) or any(getattr(types, "is_" + name)(kind) for name in (
        "integer", "float32", "float64", "boolean", "date", "timestamp", "null"))


def _is_string(kind: Any) -> bool:
    types = _pyarrow().types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    kind = getattr(kind, "storage_type", kind)
    return any(getattr(types, "is_" + name)(kind) for name in (
        "string", "large_string", "string_view", "binary", "large_binary", "binary_view"))


class _Table:
    """A Parquet file that is open: a part is a row group.

    When it is held, all columns are read, and what was read stays in memory: texts are compared where they stand, and
    nothing is decoded again to be written, or when it is read once more.
    """

    def __init__(self, path: str, wanted: list[str], held: Held | None, failed: set[str]) -> None:
        self._failed = failed
        self.held_bytes = 0
        self._path, self._held = path, held
        self._system, self._inside = _filesystem(path)
        self.state = _state(self._system, self._inside)
        file = self._file()
        self._metadata, schema = file.metadata, file.schema_arrow
        text, *others = wanted[3:]  # after id, url and title: html, what options name, and what paths lead into
        optional = {*wanted[:3]} - {text, *others}
        self._given = [name for name in dict.fromkeys(wanted) if self._is_given(schema, name, name in optional)]
        self._read = self._leaves(schema, wanted)
        read = None if held is not None else self._read
        self.columns = ", ".join(schema.names)
        # Texts that are no strings are written out by libdoppel, and do not stay.
        self.in_memory = held is not None and (text not in schema.names or _is_string(schema.field(text).type))
        self.rows, self.bytes = self._sizes(read)

    def _is_given(self, schema: Any, name: str, optional: bool) -> bool:
        if name not in schema.names:
            return False
        if len(schema.get_all_field_indices(name)) > 1:
            raise ValueError(f'two columns are called "{name}"')
        if not optional or _is_text(schema.field(name).type):
            return True
        from warnings import warn

        warn(f'{self._path}: the column "{name}" is {schema.field(name).type}, which is not text: it is not used',
             RuntimeWarning, stacklevel=2)
        return False

    def _leaves(self, schema: Any, wanted: list[str]) -> list[str]:
        """What is read of the columns that are given: all of them, but of structs only what paths lead to."""
        is_struct = _pyarrow().types.is_struct
        paths = [self._metadata.schema.column(c).path for c in range(self._metadata.num_columns)]
        leaves = []
        for name in self._given:
            inside = [key for key in wanted if key.startswith(name + ".") and is_struct(schema.field(name).type)
                      and any(path == key or path.startswith(key + ".") for path in paths)]
            leaves += inside or [name]
        return leaves

    def _sizes(self, read: list[str] | None) -> tuple[list[int], list[int]]:
        """Of each row group, the rows and the bytes of what is read."""
        metadata = self._metadata
        paths = [metadata.schema.column(c).path for c in range(metadata.num_columns)]
        chosen = [c for c, name in enumerate(paths)
                  if read is None or any(name == each or name.startswith(each + ".") for each in read)]
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return ([group.num_rows for group in groups],
                [sum(group.column(c).total_uncompressed_size for c in chosen) for group in groups])

    def _file(self, metadata: Any = None) -> Any:
        try:
            return _file(self._system, self._inside, metadata)
        except FileNotFoundError:
            said = "no file matches this pattern" if _is_wild(self._path) else "No such file or directory"
            raise FileNotFoundError(said) from None

    def read(self, part: int) -> Any:
        """The row group as a stream of batches."""
        pyarrow = _pyarrow()
        batches = self._each_given(self._read_before(part) or self._batches(part))
        first = next(batches, None)
        if first is None:
            return pyarrow.table({})
        return pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain((first,), batches))

    def _each_given(self, batches: Iterator[Any]) -> Iterator[Any]:
        try:
            for batch in batches:
                yield batch.select(self._given)
        except GeneratorExit:
            raise
        except BaseException:
            self._failed.add(self._path)
            raise

    def _read_before(self, part: int) -> Iterator[Any] | None:
        """What is held of the row group, if that is all of it."""
        for batches in (self._held or {}).get(part, []):
            if sum(batch.num_rows for batch in batches) == self.rows[part]:
                return iter(batches)
        return None

    def _batches(self, part: int) -> Iterator[Any]:
        row = max(1, self.bytes[part] // max(1, self.rows[part]))
        size = max(1, min(1 << 16, _BATCH_BYTES // row))
        file = self._file(self._metadata)
        held: list[Any] = []
        if self._held is not None:
            self._held.setdefault(part, []).append(held)
        for batch in file.iter_batches(batch_size=size, row_groups=[part], use_threads=False,
                                       columns=self._read if self._held is None else None):
            if self._held is not None:
                held.append(batch)
                self.held_bytes += batch.nbytes
            yield batch

    def close(self) -> None:
        pass


def _free_memory() -> int:
    """Bytes that this process may still take: what the machine has free, or less in a container."""
    free = []
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = [int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable")]
        with open("/sys/fs/cgroup/memory.max") as most, open("/sys/fs/cgroup/memory.current") as current:
            free.append(int(most.read()) - int(current.read()))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return max(0, min(free, default=0))


class Parquet:
    """Who reads and writes Parquet for the extension."""

    def __init__(self, allow_bad: bool = False) -> None:
        self._allow_bad = allow_bad
        self._held: dict[str, Held] = {}
        self._most = 0  # bytes that may be held
        self._tables: list[_Table] = []  # of which something is held
        self._states: dict[str, tuple[int, int]] = {}
        self._failed: set[str] = set()  # files that could not be read to their end

    def claims(self, path: str) -> bool:
        return _is_parquet(path) or "://" in path

    def list(self, path: str) -> list[str]:
        return [each for each, _ in _listed(path)]

    def open(self, path: str, columns: list[str]) -> _Table:
        if not _is_parquet(path):
            raise ValueError("only Parquet is read from URLs: a name that ends in .parquet")
        try:
            table = _Table(path, columns, self._held_of(path), self._failed)
            if table.in_memory:
                self._tables.append(table)
            if self._states.setdefault(path, table.state) != table.state:
                raise ValueError("it has changed since it was read: start again")
        except BaseException:
            self._failed.add(path)
            raise
        return table

    def _held_of(self, path: str) -> Held | None:
        """Nothing more is held when decoding made much more of the files than they said."""
        held = self._held.get(path)
        return held if held or sum(table.held_bytes for table in self._tables) <= self._most else None

    def create(self, output: str | None, folder: str | None, inputs: list[str], memory: int = 0, threads: int = 0,
               text: str | None = None, spans: bool = False, prefix: str | None = None) -> _Writer:
        """Before the inputs are read: what stays of them will be written. They are held in memory if they take at most
        half of `memory`, or an eighth of what the machine has free. `prefix` is that of columns that are added. For trim: `text` is the column that is cut; with
        `spans` nothing is, and all rows get a column spans."""
        writer = _Writer(output, folder, inputs, threads, text, spans, prefix or "")
        writer.states, writer.failed, writer.allow_bad = self._states, self._failed, self._allow_bad
        self._most = memory // 2 if memory else _free_memory() // 8
        if writer.bytes <= self._most:
            self._held = writer.held = {path: {} for path in writer.inputs}
        return writer


# ---- writing ----

# Columns whose values take at least this many bytes on average (as stored) get no dictionary: it would not pay.
_LONG_VALUE = 64
# Encodings that the writer chooses by itself. The others must be asked for.
_USUAL_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "PLAIN_DICTIONARY", "RLE_DICTIONARY"}


def _writer_options(metadata: Any) -> dict[str, Any]:
    """What makes the output like its input: compression and encodings by column, the names in nested columns, the
    format's version, and how numbers are stored."""
    options: dict[str, Any] = {"version": _version(metadata), "use_dictionary": False, "write_page_checksum": True,
                               "use_compliant_nested_type": False}  # the names are there, and stay
    for column in (metadata.schema.column(c) for c in range(metadata.num_columns)):
        if column.physical_type == "INT96":
            options["use_deprecated_int96_timestamps"] = True
        if column.converted_type == "DECIMAL" and column.physical_type in ("INT32", "INT64"):
            options["store_decimal_as_integer"] = True
    if not metadata.num_row_groups or not metadata.num_columns:
        return options
    group = metadata.row_group(0)
    columns = [group.column(c) for c in range(metadata.num_columns)]
    codecs = {c.path_in_schema: _codec(c.compression) for c in columns}
    options["compression"] = codecs if len({*codecs.values()}) > 1 else next(iter(codecs.values()))
    short = [c for c in columns if c.total_uncompressed_size < _LONG_VALUE * max(1, c.num_values)]
    dictionaries = [c.path_in_schema for c in short if any("DICTIONARY" in e for e in c.encodings)]
    options["use_dictionary"] = dictionaries or False
    unusual = {c.path_in_schema: {*c.encodings} - _USUAL_ENCODINGS for c in columns}
    options["column_encoding"] = {path: encodings.pop() for path, encodings in unusual.items()
                                  if len(encodings) == 1 and path not in dictionaries} or None
    return options


def _version(metadata: Any) -> str:
    """Files of version 1 have neither nanoseconds nor 32-bit numbers without sign, but other writers have both in
    them."""
    schema = metadata.schema
    for column in (schema.column(c) for c in range(metadata.num_columns)):
        kind = str(column.logical_type)
        is_unsigned = column.physical_type == "INT32" and "bitWidth=32, isSigned=false" in kind
        if is_unsigned or kind.startswith("Timestamp") and "nanoseconds" in kind:
            return "2.6"
    return metadata.format_version


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none"}.get(name, name.lower())


def _named(error: OSError, path: str) -> OSError:
    """An error of writing, with the name of the file."""
    if error.errno:
        return OSError(error.errno, "cannot be written: " + os.strerror(error.errno), path)
    return OSError(f"{path}: cannot be written: {error}")


_numbers = itertools.count()  # of outputs of this process, whatever threads write them


class _Output:
    """One file that is being written: under another name until it is whole. Its row groups are encoded elsewhere."""

    def __init__(self, path: str, schema: Any, options: dict[str, Any]) -> None:
        from ._parquet_join import Joined

        self.path, self._schema, self._options = path, schema, options
        self._system, self._inside = _filesystem(path)
        self._beside = f"{self._inside}.{os.getpid()}-{next(_numbers)}.tmp"
        try:
            self._sink = self._system.open_output_stream(self._beside)
        except OSError as error:
            raise _named(error, path) from error
        self._joined: Any = Joined(self._sink)
        self._buffers: list[Any] = []
        self._empty = True

    def encode(self, table: Any) -> tuple[Any, Any]:
        """Rows as a Parquet file of its own, of one row group; from any thread. Gives it, and the buffer it stands in,
        which is used again: touching new memory takes as long as encoding."""
        pyarrow = _pyarrow()
        room = table.nbytes + table.nbytes // 8 + (1 << 20)
        try:
            buffer = self._buffers.pop()
        except IndexError:
            buffer = None
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
        try:
            self._joined.add(encoded[0])
        except OSError as error:
            raise _named(error, self.path) from error
        if encoded[1] is not None:
            self._buffers.append(encoded[1])
        self._empty = False

    def close(self) -> None:
        if self._joined is None:
            return
        if self._empty:
            self.add(self.encode(self._schema.empty_table()))
        try:
            self._joined.finish()
            self._joined = None
            self._sink.close()
        except OSError as error:
            raise _named(error, self.path) from error

    def place(self) -> None:
        try:
            self._system.move(self._beside, self._inside)
        except OSError as error:
            raise _named(error, self.path) from error

    def remove(self) -> None:
        """After what went wrong already: what cannot be removed stays."""
        for undo in (self._sink.close, lambda: self._system.delete_file(self._beside)):
            try:
                undo()
            except OSError:
                pass


class _Writer:
    """Writes what stays of each input: to one file, or for each input to its own below a folder."""

    def __init__(self, output: str | None, folder: str | None, inputs: list[str], threads: int, text: str | None,
                 spans: bool, prefix: str) -> None:
        _pyarrow()
        if output is not None and not _is_parquet(output):
            raise ValueError(f"{output}: to a URL only Parquet is written: choose a name that ends in .parquet")
        self._output, self._folder, self._text, self._prefix = output, folder, text, prefix
        self._spans = {"spans": _spans_type()} if spans else {}
        self._begun: set[str] = set()  # inputs of which rows were written
        self._threads = threads or len(os.sched_getaffinity(0))
        self._files: list[_Output] = []
        self._made: list[str] = []  # folders that were not there
        self._first: tuple[str, Any] | None = None
        self.bytes = 0  # of all inputs, decoded
        self.inputs: dict[str, str] = {}  # where each goes
        self.held: dict[str, Held] = {}
        self.states: dict[str, tuple[int, int]] = {}
        self.failed: set[str] = set()
        self.allow_bad = False
        self.failure: BaseException | None = None  # of `write`
        self._plan(inputs)
        try:
            for place in dict.fromkeys(self.inputs.values()):
                self._prepare(place)
        except BaseException:
            self.finish(False)
            raise

    def _plan(self, inputs: list[str]) -> None:
        """Where each input goes. What cannot be is refused before anything is read."""
        taken: dict[str, str] = {}
        for given in inputs:
            if self._folder is not None:
                check_place("output_dir", self._folder, given)
            for path, below in _expanded(given):
                if _is_parquet(path):
                    self._take(path, below, taken)
                elif "://" not in path and os.path.isfile(path) or path == "-":
                    raise ValueError(f"{path} is not Parquet, and Parquet output needs Parquet inputs")
        if not self.inputs:
            raise ValueError(f"{', '.join(inputs)}: there is no Parquet file")

    def _take(self, path: str, below: str, taken: dict[str, str]) -> None:
        place = self._output or _joined(self._folder or "", below)
        if self._folder is not None and place in taken:
            raise ValueError(f"{path} is given twice" if taken[place] == path else
                             f"{taken[place]} and {path} would both be written to {place}")
        if is_same(place, path):
            raise ValueError(f"{place} is an input: choose another {'folder' if self._folder else 'name'}")
        taken[place] = path
        self.inputs[path] = place
        self._look(path)

    def _look(self, path: str) -> None:
        """One output has one schema. A file that cannot be opened is named when it is read."""
        try:
            system, inside = _filesystem(path)
            with _file(system, inside) as file:
                schema, metadata = file.schema_arrow, file.metadata
        except (OSError, ValueError):
            return
        self.bytes += sum(metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups))
        self._first = self._first or (path, schema)
        kind = _type_at(schema, self._text) if self._text is not None else None
        if kind is not None and not _is_string(kind):
            raise ValueError(f'{path}: the column "{self._text}" is {kind}: only strings can be cut')
        if self._folder is None and not schema.equals(self._first[1]):
            raise ValueError(f"{path}: its schema is not that of {self._first[0]}: "
                             f"{_difference(schema, self._first[1])}; an output folder gets one file for each input")

    def _prepare(self, place: str) -> None:
        """Makes the folder of an output. One that cannot be written to is refused before anything is read."""
        local = _local_path(place)
        if local is None:
            return
        folder = os.path.dirname(local) or "."
        try:
            self._make(folder)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, os.strerror(13))
            if os.path.isdir(local):
                raise IsADirectoryError(21, os.strerror(21))
        except OSError as error:
            raise _named(error, place) from error

    def _make(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        self._make(os.path.dirname(folder) or ".")
        os.mkdir(folder)
        self._made.append(folder)

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
        yield from self._write(path, {}, len(keep), lambda rows, at: _filtered(rows, keep.slice(at, rows.num_rows)))

    def annotate(self, path: str, stays: Any, group: Any, copies: Any, original: Any, sizes: Any, counts: Any = None,
                 values: Any = None) -> Iterator[int]:
        """Writes all rows with what was decided of them; those that are no documents are left out. `counts` has a list
        for each row, of how many of its group have each of the values, which stand one after the other."""
        pyarrow = _pyarrow()
        documents = pyarrow.array(stays)
        columns = {"group": pyarrow.array(group), "isDuplicate": pyarrow.array(copies),
                   "originalId": pyarrow.array(original), "kept": documents, "groupSize": pyarrow.array(sizes)}
        if counts is not None:
            columns["groupCounts"] = _maps(pyarrow.array(counts), pyarrow.array(values))
        columns = {self._prefix + name: column for name, column in columns.items()}

        def annotated(rows: Any, at: int) -> Any:
            for name, column in columns.items():
                rows = rows.append_column(name, column.slice(at, rows.num_rows))
            return _filtered(rows, documents.slice(at, rows.num_rows).is_valid())

        yield from self._write(path, {name: column.type for name, column in columns.items()}, len(stays), annotated)

    def _write(self, path: str, added: dict[str, Any], count: int,
               change: Callable[[Any, int], Any]) -> Iterator[int]:
        """The first `count` rows of an input. Threads change and encode some at a time; what they made is appended in
        order."""
        with self._noting_failure():
            self._check_failed()
            if path in self.failed and not count:
                return
            source, output = self._begin(path, added, count)
            with _InOrder(self._threads) as order:
                for rows, at, end in source.chunks():
                    order.submit(end, _encoded, output, rows, change, at)
                    yield from _appended(output, order.results(self._threads))
                yield from _appended(output, order.results(0))

    def trim(self, path: str) -> Iterator[int | None]:
        """Writes rows as they come: yields the number of the row up to which it wants to know what becomes of them, and
        is sent that of the rows since the last one, an Array each: whether they stay, whether they are cut, the text;
        for spans also lists of start, end and words, originalId of all spans one after the other, and lists of
        originalStart. () ends them: the rows that follow are left out. Yields None while it waits for its threads."""
        change = _with_spans if self._spans else _cut
        with self._noting_failure():
            self._check_failed()
            if path not in self.inputs:
                raise ValueError(f"{path} is not Parquet, and Parquet output needs Parquet inputs")
            source, output = self._begin(path, self._spans, None)
            with _InOrder(self._threads) as order:
                for rows, _, end in source.chunks():
                    piece = yield end
                    if not piece:
                        break
                    order.submit(end, _encoded, output, rows, change, self._text, source.schema, piece)
                    for _ in _appended(output, order.results(self._threads)):
                        yield None
                for _ in _appended(output, order.results(0)):
                    yield None

    def _begin(self, path: str, added: dict[str, Any], count: int | None) -> tuple[_Source, _Output]:
        """An input and its output; `added` are the types of columns that are added."""
        from ._doppel import InputError

        held = self.held.get(path, {})
        # While trim writes, the extension still reads what is held.
        source = _Source(path, held if self._text is None else dict(held), added, count, self._text)
        if self.states.get(path, source.state) != source.state or source.rows < (count or 0):
            raise InputError(f"{path}: it has changed since it was read: start again")
        self._begun.add(path)
        return source, self._open(path, source.schema, source.metadata)

    def _noting_failure(self) -> Any:
        """What goes wrong is kept, to be raised as it is."""
        from contextlib import contextmanager

        @contextmanager
        def noting() -> Iterator[None]:
            try:
                yield
            except GeneratorExit:
                raise
            except BaseException as error:
                self.failure = error
                raise

        return noting()

    def _add_empty(self) -> None:
        """What trim has read and found no document in, gets an output, too: of its own, or the only one."""
        for path in self.inputs if self._text is not None else ():
            if path in self.states and path not in self.failed and path not in self._begun and (
                    self._folder is not None or not self._files):
                self._begin(path, self._spans, None)

    def _check_failed(self) -> None:
        """A file that could not be read to its end is an error, unless that is allowed."""
        for path in () if self.allow_bad else sorted(self.failed & self.inputs.keys()):
            from ._doppel import InputError

            raise InputError(f"{path}: it could not be read to its end, and so nothing is written")

    def finish(self, ok: bool) -> None:
        """All files take their places, or none appears."""
        files = self._files
        try:
            if ok:
                self._check_failed()
                self._add_empty()
                for file in files:
                    file.close()
                while files:
                    files[0].place()
                    del files[0]
                self._made = []
        finally:
            self._files = []
            for file in files:
                file.remove()
            for folder in reversed(self._made):
                try:
                    os.rmdir(folder)
                except OSError:  # it has something by now
                    pass


class _Source:
    """The first `count` rows of an input (None: all), some at a time: a row group, or a part of one that is large. Its
    schema is that of the output: with the columns that are added, and with a column `text`, if there is such a name."""

    def __init__(self, path: str, held: Held, added: dict[str, Any], count: int | None, text: str | None) -> None:
        pyarrow = _pyarrow()
        self._path, self._held = path, held
        self._system, self._inside = _filesystem(path)
        self.state = _state(self._system, self._inside)
        with self._named(), _file(self._system, self._inside) as file:
            self.metadata, schema = file.metadata, file.schema_arrow
        self.rows = self.metadata.num_rows
        self._count = self.rows if count is None else count
        self._columns = [c for c, name in enumerate(schema.names) if name not in added]
        fields = [schema.field(c) for c in self._columns]
        if text is not None and not _steps(schema, text):  # it has pages
            fields.append(pyarrow.field(text, pyarrow.string()))
        fields += [pyarrow.field(name, kind) for name, kind in added.items()]
        self.schema = pyarrow.schema(fields, metadata=schema.metadata)

    def _named(self) -> Any:
        """Errors of reading, as InputError with the name of the file."""
        from contextlib import contextmanager

        @contextmanager
        def named() -> Iterator[None]:
            try:
                yield
            except (OSError, ValueError) as error:
                from ._doppel import InputError

                raise InputError(f"{self._path}: cannot be read: {error}") from error

        return named()

    def _file(self) -> Any:
        return _file(self._system, self._inside, self.metadata)

    def chunks(self) -> Iterator[tuple[Callable[[], Any], int, int]]:
        """Calls that give rows, each with the number of its first row in the file and of the one after its last."""
        at = 0
        for number in range(self.metadata.num_row_groups):
            for rows, count in self._chunks_of(number) if at < self._count else ():
                if at < self._count:
                    yield self._call(rows, self._count - at), at, min(at + count, self._count)
                at += count

    def _call(self, rows: Callable[[], Any], most: int) -> Callable[[], Any]:
        def call() -> Any:
            with self._named():
                return rows().slice(0, most).select(self._columns)

        return call

    def _chunks_of(self, number: int) -> Iterator[tuple[Callable[[], Any], int]]:
        pyarrow = _pyarrow()
        group = self.metadata.row_group(number)
        for batches in self._held.pop(number, []):
            if sum(batch.num_rows for batch in batches) == group.num_rows:  # reading may have ended at a limit
                for some in _grouped(batches):
                    yield lambda some=some: pyarrow.Table.from_batches(some), sum(batch.num_rows for batch in some)
                return
        if group.total_byte_size <= _CHUNK_BYTES:
            yield lambda: self._file().read_row_group(number, use_threads=False), group.num_rows
            return
        rows = max(1, group.num_rows * _CHUNK_BYTES // group.total_byte_size)
        with self._named():
            for batch in self._file().iter_batches(batch_size=rows, row_groups=[number]):
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


class _InOrder:
    """Work on threads, of which some is under way at a time, and its results in order."""

    def __init__(self, threads: int) -> None:
        from collections import deque
        from concurrent.futures import ThreadPoolExecutor

        self._pool = ThreadPoolExecutor(threads)
        self._under_way: deque[Any] = deque()
        self._at = 0

    def __enter__(self) -> _InOrder:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def submit(self, end: int, work: Callable[..., Any], *arguments: Any) -> None:
        """Work on rows up to `end`."""
        self._under_way.append((end, self._pool.submit(work, *arguments)))

    def results(self, most: int) -> Iterator[tuple[int, Any]]:
        """Results, each with the row that it goes up to, until at most `most` are under way. While there is none, gives
        None every tenth of a second, so that the caller can stop."""
        from concurrent.futures import wait

        while len(self._under_way) > most:
            end, coming = self._under_way.popleft()
            while not wait((coming,), 0.1).done:
                yield self._at, None
            self._at = end
            yield end, coming.result()


def _encoded(output: _Output, rows: Callable[[], Any], change: Callable[..., Any], *arguments: Any) -> Any:
    """Rows, changed, as a part of the output; None: there are none."""
    changed = change(rows(), *arguments)
    return output.encode(changed) if changed.num_rows else None


def _appended(output: _Output, results: Iterator[tuple[int, Any]]) -> Iterator[int]:
    for done, encoded in results:
        if encoded is not None:
            output.add(encoded)
        yield done


def _filtered(rows: Any, keep: Any) -> Any:
    """The rows that stay of a table."""
    pyarrow = _pyarrow()
    try:
        return rows.filter(keep)
    except pyarrow.ArrowNotImplementedError:  # of string_view and binary_view, in structs and lists, too
        parts, at = [rows.slice(0, 0)], 0
        for stays, run in itertools.groupby(keep.to_pylist()):
            length = sum(1 for _ in run)
            if stays:
                parts.append(rows.slice(at, length))
            at += length
        return pyarrow.concat_tables(parts).combine_chunks()


def _maps(counts: Any, values: Any) -> Any:
    """Lists of numbers, and what they are of, as maps; null stays null."""
    from pyarrow import compute

    pyarrow = _pyarrow()
    there = pyarrow.concat_arrays([counts.is_valid(), pyarrow.array([True])])
    offsets = compute.if_else(there, counts.offsets.cast(pyarrow.int32()), pyarrow.scalar(None, pyarrow.int32()))
    return pyarrow.MapArray.from_arrays(offsets, values.cast(pyarrow.string()), counts.values.cast(pyarrow.int64()))


# ---- what trim makes of rows ----


def _cut(rows: Any, name: str, schema: Any, piece: tuple[Any, ...]) -> Any:
    keep, cut, texts = map(_pyarrow().array, piece)
    return _filtered(_with_texts(rows, name, schema, cut, texts), keep)


def _with_spans(rows: Any, name: str, schema: Any, piece: tuple[Any, ...]) -> Any:
    pyarrow = _pyarrow()
    keep, cut, texts, *numbers = map(pyarrow.array, piece)
    kind = _spans_type()
    columns = [(part if pyarrow.types.is_large_string(part.type) else part.flatten()).cast(field.type)
               for part, field in zip(numbers, kind.value_type)]
    spans = pyarrow.ListArray.from_arrays(numbers[0].offsets.cast(pyarrow.int32()),
                                          pyarrow.StructArray.from_arrays(columns, fields=[*kind.value_type]))
    return _filtered(_with_texts(rows, name, schema, cut, texts).append_column(schema.field("spans"), spans), keep)


def _spans_type() -> Any:
    pyarrow = _pyarrow()
    return pyarrow.list_(pyarrow.struct([("start", pyarrow.int64()), ("end", pyarrow.int64()),
                                         ("words", pyarrow.int64()), ("originalId", pyarrow.string()),
                                         ("originalStart", pyarrow.int64())]))


def _with_texts(rows: Any, name: str, schema: Any, cut: Any, texts: Any) -> Any:
    """Rows with the texts that were cut; a page that has no text gets its own. All other texts stay byte for byte."""
    steps = _steps(rows.schema, name)
    if not steps:
        return rows.append_column(schema.field(name), texts.cast(schema.field(name).type))
    field = schema.field(steps[0])
    changed = _changed(rows[steps[0]].combine_chunks(), steps[1:], cut, texts)
    return rows if changed is None else rows.set_column(rows.schema.get_field_index(steps[0]), field, changed)


def _steps(fields: Any, path: str) -> tuple[str, ...]:
    """The names that a path leads through, of columns and of structs in them; none: it leads nowhere."""
    names = [field.name for field in fields]
    head, _, rest = path.partition(".")
    if path in names:
        return (path,)
    if not rest or head not in names or not _pyarrow().types.is_struct(fields.field(head).type):
        return ()
    below = _steps(fields.field(head).type, rest)
    return (head, *below) if below else ()


def _type_at(schema: Any, path: str) -> Any:
    """The type of what a path leads to; None: nothing, or two columns are called so."""
    steps = _steps(schema, path)
    if not steps or schema.names.count(steps[0]) > 1:
        return None
    kind = schema.field(steps[0]).type
    for step in steps[1:]:
        kind = kind.field(step).type
    return kind


def _changed(column: Any, steps: tuple[str, ...], cut: Any, texts: Any) -> Any:
    """A column with other texts, in itself or where the steps lead to; None: it stays as it is."""
    pyarrow = _pyarrow()
    if not steps:
        return _merged(column, cut, texts)
    fields = [*column.type]
    number = [field.name for field in fields].index(steps[0])
    children = [column.field(each) for each in range(len(fields))]
    children[number] = _changed(children[number], steps[1:], cut, texts)
    if children[number] is None:
        return None
    return pyarrow.StructArray.from_arrays(children, fields=fields, mask=column.is_null())


def _merged(column: Any, cut: Any, texts: Any) -> Any:
    from pyarrow import compute

    pyarrow = _pyarrow()
    before = column.storage if isinstance(column, pyarrow.ExtensionArray) else column
    other = compute.or_(cut, compute.and_(before.is_null(), texts.is_valid()))
    if not compute.any(other).as_py():
        return None
    # As bytes, since not all that stands in a file as a string is UTF-8.
    merged = compute.if_else(other, texts.view(pyarrow.large_binary()), before.cast(pyarrow.large_binary()))
    values = before.type.value_type if pyarrow.types.is_dictionary(before.type) else before.type
    if "binary" not in str(values):
        merged = merged.view(pyarrow.large_string())
    merged = merged.cast(before.type)
    return merged if before is column else pyarrow.ExtensionArray.from_storage(column.type, merged)


def _difference(a: Any, b: Any) -> str:
    """In what two schemas differ, in a few words."""
    for name in b.names:
        if name not in a.names:
            return f'it has no column "{name}"'
        if a.field(name).type != b.field(name).type:
            return f'its column "{name}" is {a.field(name).type}, not {b.field(name).type}'
    more = [name for name in a.names if name not in b.names]
    return f'it has a column "{more[0]}" more' if more else "the columns are in another order or may be null"

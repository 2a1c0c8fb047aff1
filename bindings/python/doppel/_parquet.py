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
    """A Parquet file that is open: a part is a row group."""

    def __init__(self, path: str, wanted: list[str]) -> None:
        self._parquet = _pyarrow().parquet
        self._system, self._path = _filesystem(path)
        file = self._file()
        self._metadata = file.metadata
        self._names = [name for name in file.schema_arrow.names if name in wanted]
        self.columns = ", ".join(file.schema_arrow.names)
        self.rows, self.bytes = [], []
        paths = [self._metadata.schema.column(c).path for c in range(self._metadata.num_columns)]
        read = [c for c, name in enumerate(paths) if name.partition(".")[0] in self._names]
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            self.rows.append(group.num_rows)
            self.bytes.append(sum(group.column(c).total_uncompressed_size for c in read))

    def _file(self, metadata: Any = None) -> Any:
        if "://" not in self._path and type(self._system).__name__ == "LocalFileSystem":
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
        return pyarrow.RecordBatchReader.from_batches(first.schema, _again(first, batches))

    def close(self) -> None:
        pass


def _again(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


class Parquet:
    """Who reads and writes Parquet for the extension."""

    def __init__(self, memory: int = 0) -> None:
        self._memory = memory

    def claims(self, path: str) -> bool:
        return _is_parquet(path) or "://" in path

    def list(self, path: str) -> list[str]:
        return _listed(path)

    def open(self, path: str, columns: list[str]) -> _Table:
        if not _is_parquet(path):
            raise ValueError("only Parquet is read from URLs: a name that ends in .parquet")
        return _Table(path, columns)

    def create(self, output: str | None, folder: str | None, inputs: list[str]) -> _Writer:
        return _Writer(output, folder, inputs)


# ---- writing ----


def _writer_options(file: Any) -> dict[str, Any]:
    """What makes the output like its input: compression and dictionaries by column, the format's version, INT96."""
    metadata = file.metadata
    options: dict[str, Any] = {"version": metadata.format_version if metadata.format_version != "1.0" else "1.0"}
    if not metadata.num_row_groups:
        return options
    group, schema = metadata.row_group(0), metadata.schema
    columns = [group.column(c) for c in range(metadata.num_columns)]
    options["compression"] = {c.path_in_schema: _codec(c.compression) for c in columns}
    options["use_dictionary"] = [c.path_in_schema for c in columns if any("DICTIONARY" in e for e in c.encodings)]
    if not options["use_dictionary"]:
        options["use_dictionary"] = False
    if any(schema.column(c).physical_type == "INT96" for c in range(metadata.num_columns)):
        options["use_deprecated_int96_timestamps"] = True
    return options


def _codec(name: str) -> str:
    return {"UNCOMPRESSED": "none"}.get(name, name.lower())


class _Output:
    """One file that is being written: under another name until it is whole."""

    def __init__(self, path: str, schema: Any, options: dict[str, Any]) -> None:
        self.path = path
        self.schema = schema
        self._system, self._inside = _filesystem(path)
        self._beside = f"{self._inside}.{os.getpid()}.tmp"
        if "://" not in path and os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self._writer = _pyarrow().parquet.ParquetWriter(self._beside, schema, filesystem=self._system, **options)

    def write(self, table: Any) -> None:
        if table.num_rows:
            self._writer.write_table(table, row_group_size=table.num_rows)

    def close(self) -> None:
        self._writer.close()

    def place(self) -> None:
        self._system.move(self._beside, self._inside)

    def remove(self) -> None:
        try:
            self._writer.close()
        finally:
            from pyarrow.fs import FileType

            if self._system.get_file_info(self._beside).type != FileType.NotFound:
                self._system.delete_file(self._beside)


class _Writer:
    """Writes what stays of each input: to one file, or for each input to its own below a folder."""

    def __init__(self, output: str | None, folder: str | None, inputs: list[str]) -> None:
        _pyarrow()
        if output is not None and not _is_parquet(output):
            raise ValueError(f"{output}: to a URL only Parquet is written: choose a name that ends in .parquet")
        self._output, self._folder = output, folder
        self._files: list[_Output] = []
        self._first: str | None = None
        self._names = self._plan(inputs)

    def _plan(self, inputs: list[str]) -> dict[str, str]:
        """Where each input goes. What cannot be is refused before anything is read."""
        names: dict[str, str] = {}
        taken: dict[str, str] = {}
        for given in inputs:
            for path, below in _expanded(given):
                if not _is_parquet(path):
                    if "://" not in path and os.path.isfile(path) or path == "-":
                        raise ValueError(f"{path} is no Parquet: Parquet is written of Parquet alone")
                    continue
                if self._folder is None:
                    self._check_schema(path)
                    continue
                place = self._folder.rstrip("/") + "/" + below
                if taken.get(place, path) != path:
                    raise ValueError(f"{taken[place]} and {path} would both be written to {place}")
                if "://" not in path and os.path.exists(place) and os.path.samefile(place, path):
                    raise ValueError(f"{place} is an input: choose another folder")
                taken[place], names[path] = path, place
        return names

    def _check_schema(self, path: str) -> None:
        """One output has one schema. A file that cannot be opened is named when it is read."""
        try:
            system, inside = _filesystem(path)
            schema = _pyarrow().parquet.read_schema(system.open_input_file(inside))
        except (OSError, ValueError):
            return
        if self._first is None:
            self._first, self._schema = path, schema
        elif not schema.equals(self._schema):
            raise ValueError(f"{path}: its schema is not that of {self._first}: {_difference(schema, self._schema)}; "
                             "an output folder gets one file for each input")

    def _open(self, path: str, schema: Any, file: Any) -> _Output:
        if self._folder is None and self._files:
            return self._files[0]
        place = self._output if self._folder is None else self._names.get(path)
        if place is None:
            place = self._folder.rstrip("/") + "/" + path.rpartition("/")[2]
        if self._folder is not None and self._files:
            self._files[-1].close()
        self._files.append(_Output(place, schema, _writer_options(file)))
        return self._files[-1]

    def write(self, path: str, keep: Any) -> Iterator[int]:
        """Writes the rows that stay, a step at a time."""
        pyarrow = _pyarrow()
        keep = pyarrow.array(keep)
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
        parquet = _pyarrow().parquet
        system, inside = _filesystem(path)
        with parquet.ParquetFile(system.open_input_file(inside)) as file:
            schema, names = file.schema_arrow, file.schema_arrow.names
            if added is not None:
                names = [name for name in names if name not in added]
                schema = _with_columns(schema, names, added)
            output = self._open(path, schema, file)
            at = 0
            for rows in _ahead(_chunks(file, names)):
                output.write(change(rows, at))
                at += rows.num_rows
                yield at

    def finish(self, ok: bool) -> None:
        """All files take their places, or none appears."""
        if ok:
            if self._files:
                self._files[-1].close()
            for file in self._files:
                file.place()
        else:
            for file in self._files:
                file.remove()
        self._files = []


def _with_columns(schema: Any, names: list[str], added: dict[str, Any]) -> Any:
    import pyarrow

    fields = [schema.field(name) for name in names] + [pyarrow.field(name, a.type) for name, a in added.items()]
    return pyarrow.schema(fields, metadata=schema.metadata)


def _difference(a: Any, b: Any) -> str:
    """In what two schemas differ, in a few words."""
    for name in b.names:
        if name not in a.names:
            return f'it has no column "{name}"'
        if a.field(name).type != b.field(name).type:
            return f'its column "{name}" is {a.field(name).type}, not {b.field(name).type}'
    more = [name for name in a.names if name not in b.names]
    return f'it has a column "{more[0]}" more' if more else "the columns are in another order or may be null"


def _chunks(file: Any, names: list[str]) -> Iterator[Any]:
    """The rows of a file as tables: a row group each, or parts of one that is large."""
    import pyarrow

    for number in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(number)
        if group.total_byte_size <= _CHUNK_BYTES:
            yield file.read_row_group(number, columns=names, use_threads=True)
            continue
        rows = max(1, group.num_rows * _CHUNK_BYTES // group.total_byte_size)
        for batch in file.iter_batches(batch_size=rows, row_groups=[number], columns=names, use_threads=True):
            yield pyarrow.Table.from_batches([batch])


def _ahead(items: Iterator[Any]) -> Iterator[Any]:
    """The same items, the next of which is made by another thread meanwhile."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item

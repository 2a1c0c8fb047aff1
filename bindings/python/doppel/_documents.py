"""Documents of a call, in and out: what dedup and its like (_batch.py) share with trim (_trim.py).

Data in memory is read by a Reading, and the rows that stay are Rows. Files are read and written by the extension, or as
Parquet by _parquet.py: Outputs says where to, and refuses what cannot be.
"""

from __future__ import annotations

from . import _doppel
from ._inputs import arrow
from ._options import OR_PAGES, REQUIRED, needed_columns, path_of, wanted_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# ---- data in memory ----


def library_of(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _is_table(data: Any) -> bool:
    """Whether all columns of the data can be had as Arrow. Those of pandas and of Python may have any values."""
    if isinstance(data, dict):
        return any(_is_arrow(column) for column in data.values())
    return library_of(data) != "pandas" and not isinstance(data, (list, tuple))


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


class Reading:
    """The caller's data, after that of `against`, given to a Batch or a Trim by its method `read`."""

    def __init__(self, documents: Any, data: Any, against: Any, options: dict[str, Any], all_columns: bool = False,
                 read: str = "read_data") -> None:
        self.options, self.documents = options, documents
        wanted = wanted_columns(options)
        take = getattr(documents, read)
        if against is not None:
            take(arrow(against, "against", wanted), True, "against", needed_columns(options, True))
        self.taken = arrow(data, "data", None if all_columns and _is_table(data) else wanted)
        self.is_list = take(self.taken, False, "data", needed_columns(options, False))
        self.id = options["id_key"]
        if self.id is not None:
            documents.check_ids(self.id)


def lasting(data: Any) -> Any:
    """Data whose rows are looked at twice, to decide and to give them out: what can be iterated over becomes a list."""
    if type(data).__name__ == "IterableDataset" and library_of(data) == "datasets":
        import pyarrow

        return pyarrow.concat_tables(data.with_format("arrow").iter(1000))
    if library_of(data) in ("pyarrow", "polars", "pandas", "datasets", "duckdb", "_duckdb") or _is_arrow(data):
        return data
    if isinstance(data, dict):
        return {name: column if hasattr(column, "__getitem__") else list(column) for name, column in data.items()}
    if isinstance(data, (list, tuple, str, bytes, bytearray)) or not hasattr(data, "__iter__"):
        return data
    return list(data)


def items_of(data: Any) -> Any:
    """The rows of a dict of columns are dicts; all other lists have items."""
    if isinstance(data, dict):
        return (dict(zip(data, row)) for row in zip(*data.values()))
    return data


_ROWS = 1 << 12  # that iteration makes of Arrow data at a time


class Rows:
    """The rows that stay of Arrow data and tables, as Arrow, and as a sequence."""

    #: An Array of bool, by row: whether it stays. Rows without a text stay.
    mask: _doppel.Array

    def _hold(self, data: Any, documents: Any) -> None:
        self._data, self._documents = data, documents
        self._is_table = documents.is_table()
        self._count = sum(self.mask)

    @property
    def kept(self) -> Any:
        """The rows that stay, as the library of the data filters them: a pyarrow Table, a polars or pandas DataFrame, a
        Dataset of Hugging Face. Data of another kind is given as a pyarrow Table."""
        filtered = _filtered(self._data, self.mask)
        return _shaped(self._arrow(), self._data) if filtered is None else filtered

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if library_of(self._data) != "pandas":
            return self._documents.kept_stream()
        import pyarrow

        kept = self.kept
        if not self._is_table:
            return pyarrow.chunked_array([pyarrow.array(kept)]).__arrow_c_stream__(requested_schema)
        index = self._data.index  # it becomes a column, unless it is the numbers of rows
        numbers = type(index).__name__ == "RangeIndex" and index.name is None
        return pyarrow.Table.from_pandas(kept, preserve_index=not numbers).__arrow_c_stream__(requested_schema)

    def _arrow(self) -> Any:
        import pyarrow

        return pyarrow.table(self) if self._is_table else pyarrow.chunked_array(self)

    def _rows(self, rows: slice) -> list[Any]:
        if library_of(self._data) != "pandas":
            kept = self._arrow().slice(rows.start, rows.stop - rows.start)
            return kept.to_pylist()
        kept = getattr(self.kept, "iloc", self.kept)[rows]
        return kept.to_dict("records") if self._is_table else kept.tolist()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, self._count, _ROWS):
            yield from self._rows(slice(start, min(start + _ROWS, self._count)))

    def __getitem__(self, row: Any) -> Any:
        if isinstance(row, slice):
            rows = range(self._count)[row]
            first = min(rows, default=0)
            between = self._rows(slice(first, max(rows, default=-1) + 1))
            return [between[number - first] for number in rows]
        number = range(self._count)[row]  # IndexError
        return self._rows(slice(number, number + 1))[0]

    def __repr__(self) -> str:
        return f"<doppel.{type(self).__name__}: {self._count:,} of {len(self.mask):,} rows>"


def _filtered(data: Any, mask: _doppel.Array) -> Any:
    """None: data of another library, or of a type that pyarrow does not filter."""
    library, kind = library_of(data), type(data).__name__
    if library == "polars" and kind in ("DataFrame", "Series"):
        import polars

        return data.filter(polars.Series(values=mask.to_list(), dtype=polars.Boolean))
    if library == "pandas":
        return getattr(data, "iloc", data)[mask.to_list()]  # by position: data[[]] would choose columns
    if library == "datasets" and kind == "Dataset":
        return data.select([row for row, stays in enumerate(mask) if stays])
    import pyarrow

    if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.Array, pyarrow.ChunkedArray)):
        try:
            return data.filter(pyarrow.array(mask))
        except pyarrow.ArrowNotImplementedError:  # string_view, binary_view and run_end_encoded, in structs and lists, too
            return None
    return None


def _shaped(rows: Any, data: Any) -> Any:
    """Rows, a pyarrow Table or ChunkedArray, as a RecordBatch or an Array where the data is one."""
    import pyarrow

    if isinstance(data, pyarrow.RecordBatch):
        return pyarrow.RecordBatch.from_arrays([column.combine_chunks() for column in rows.columns], schema=rows.schema)
    return rows.combine_chunks() if isinstance(data, pyarrow.Array) else rows


# ---- files ----


class Outputs:
    """Where a call on files writes to: documents to `output` or below `output_dir`, lines of JSON to others. What cannot
    be is refused before anything is read: an output that is read, too, or stands in a folder that is read; two with one
    name; JSONL under the name of another format."""

    def __init__(self, call: str, output: Any, output_dir: Any, allow_bad: bool, **lines: Any) -> None:
        from ._parquet import Parquet

        self._call = call
        self.tables = Parquet(allow_bad)
        self.places = {name: None if value is None else path_of(name, value)
                       for name, value in {"output": output, "output_dir": output_dir, **lines}.items()}
        self.output, self.folder, *self.lines = self.places.values()
        self.is_table = self.folder is not None or self.output is not None and self.tables.claims(self.output)

    def check(self, documents: Any, inputs: list[str], against: list[str], dry_run: bool = False) -> None:
        from ._parquet import check_place, is_same

        if (self.output is None) == (self.folder is None) and not dry_run:
            raise ValueError(f"{self._call} needs either output or output_dir, or dry_run=True")
        if self.output is not None and not self.is_table and documents.format_of(self.output) not in (None, "JSONL"):
            raise ValueError(f"output: {self.output}: documents are written as JSONL: choose a name with .jsonl")
        files = {name: place for name, place in self.places.items() if place is not None and name != "output_dir"}
        for first, second in ((a, b) for a in files for b in files if a < b):
            if is_same(files[first], files[second]):
                raise ValueError(f"{first} and {second}: both are {files[first]}")
        for name, place in self.places.items():
            for path in inputs + against if place is not None else ():
                check_place(name, place, path)

    def create(self, inputs: list[str], options: dict[str, Any], **how: Any) -> Any:
        """What writes Parquet; None: JSONL is written. For trim: `text`, the column that is cut, and whether `spans` are
        added; else the `prefix` of columns that are added."""
        if not self.is_table:
            return None
        return self.tables.create(self.output, self.folder, inputs, options["memory"], options["threads"], **how)


def written(writer: Any, write: Any, *arguments: Any) -> None:
    """Writes; what the writer of Parquet raises is raised as it was."""
    try:
        write(*arguments)
    except Exception:
        if writer is None or writer.failure is None:
            raise
        raise writer.failure from None


def finish(documents: Any, writer: Any, done: bool) -> None:
    """All outputs take their places, or none appears."""
    try:
        if writer is not None:
            writer.finish(done)
    except BaseException:
        done = False
        raise
    finally:
        documents.finish_outputs(done)


def report_left_out(left_out: Any, argument: str, options: dict[str, Any]) -> None:
    """A file that could not be read is an error, unless that is allowed; a row that was left out is reported by a
    warning, and so is a column that is not there."""
    from warnings import warn

    bad, unseen = left_out
    if bad is not None and not bad[1] and not options["allow_bad"]:
        raise _doppel.InputError(f"{argument}: {bad[0]}: {bad[2]}")
    if bad is not None:
        place, what = (f"{bad[0]}:{bad[1]}", "rows") if bad[1] else (bad[0], "files")
        warn(f"{argument}: {what} were left out; the first: {place}: {bad[2]}", RuntimeWarning, stacklevel=3)
    pages = (options["html_key"] or "html") not in unseen
    for option, name, required in needed_columns(options, argument == "against"):
        if name in unseen and (required == REQUIRED or required == OR_PAGES and not pages):
            warn(f'{argument}: no record has a field "{name}", which {option} names', RuntimeWarning, stacklevel=3)

"""The caller's data as something that the extension takes: Arrow data (`__arrow_c_stream__`, `__arrow_c_array__`), or an
iterable of str.

arrow(data) knows pandas, Hugging Face datasets, DuckDB, pyarrow datasets, polars, and rows that are dicts. None of these
packages is imported unless the data is one of theirs, which is known from the module of its type.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

class Columns:
    """Columns that were made of Python values, by name. With `_doppel_is_list` the extension gives lists, as it does for
    lists."""

    __slots__ = ("columns", "_doppel_is_list")

    def __init__(self, columns, is_list):
        self.columns = columns
        self._doppel_is_list = is_list

    def __arrow_c_stream__(self, requested_schema=None):
        from . import _doppel

        return _doppel.stream_of_columns(self.columns)


def arrow(data: Any, argument: str = "data", columns: Iterable[str] | None = None) -> Any:
    """Turns the caller's data into something that the extension takes; what it takes already is returned as it is.

    `columns` are the names of the columns that are wanted, of data whose columns must be made (rows that are dicts,
    pandas) or read (a dataset); None: all. Names that the data does not have are ignored here: the extension checks
    that required columns are there. `argument` is what messages call the data.

    >>> from doppel._inputs import arrow
    >>> arrow(["a", "b"])
    ['a', 'b']
    >>> sorted(arrow([{"text": "a", "id": 1}]).columns)
    ['id', 'text']
    """
    maker = _makers.get(type(data).__module__.partition(".")[0])
    made = maker(data, argument, columns) if maker else None
    if made is not None:
        return made
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    if isinstance(data, dict):
        return _of_columns(data, argument, columns)
    return _of_iterable(data, argument, columns)


# ---- keys: a name, a path (meta.text), or several (question,answer), as docs/FORMAT.md section 16 says ----


def columns_of(keys, have):
    """The columns that keys name or lead into, of those there are."""
    parts = [part for key in keys for part in ([key] if key in have else key.split(","))]
    names = (part if part in have else part.partition(".")[0] for part in parts)
    return [name for name in dict.fromkeys(names) if name in have]


def value_at(row, path):
    """What a path leads to in a row; None: nothing."""
    while isinstance(row, dict):
        if path in row:
            return row[path]
        head, _, path = path.partition(".")
        row = row.get(head) if path else None
    return None


def _value(row, key):
    """What a row has of a key."""
    if key in row:
        return row[key]
    found = [value for value in (value_at(row, part) for part in key.split(",")) if value is not None]
    odd = [value for value in found if not isinstance(value, (str, bytes, int, float))]
    if odd or len(found) < 2:  # what is odd is refused by itself
        return (odd or found or [None])[0]
    return "\n".join(value.decode() if isinstance(value, bytes) else str(value) for value in found)


def with_value(row, path, value):
    """A copy of a row in which something else stands where a path leads to."""
    head, _, rest = path.partition(".")
    if path in row or not isinstance(row.get(head), dict):
        return {**row, path: value}
    return {**row, head: with_value(row[head], rest, value)}


# ---- dicts and lists ----


def _of_columns(data, argument, wanted):
    """A dict of columns: lists, or Arrow data of one library, which then makes a table of them."""
    from . import _doppel

    names = list(data) if wanted is None else columns_of(wanted, data)
    libraries = {type(data[name]).__module__.partition(".")[0] for name in names}
    for library, maker in (("pyarrow", "table"), ("polars", "DataFrame")):
        if library in libraries:
            return getattr(__import__(library), maker)({name: data[name] for name in names})
    is_list = not any(_is_arrow(data[name]) for name in names)
    if is_list and not {*names} <= {*(wanted or names)}:  # paths lead into them, or several are joined
        lists = {name: list(data[name]) for name in names}
        _check_lengths(lists, argument)
        return _of_rows([dict(zip(lists, row)) for row in zip(*lists.values())], argument, wanted)
    made = {str(name): _column(data[name], f"{argument}[{name!r}]") for name in names}
    _check_lengths(made, argument)
    if not made:  # no wanted column is there: the extension says so, and names those that are
        made = {str(name): _doppel.array("string", []) for name in data}
    return Columns(made, is_list)


def _check_lengths(columns, argument):
    lengths = {name: len(column) for name, column in columns.items()}
    if len({*lengths.values()}) > 1:
        said = ", ".join(f'"{name}" has {length}' for name, length in lengths.items())
        raise ValueError(f"{argument}: the columns differ in length: {said}")


def _of_iterable(data, argument, wanted):
    """A list, a tuple or a generator: of rows that are dicts, or of texts, which the extension takes."""
    if isinstance(data, (str, bytes, bytearray)):
        raise TypeError(f"{argument}: expected a list of str or Arrow data, not {type(data).__name__}")
    if isinstance(data, (list, tuple)):
        first = next((row for row in data if row is not None), None)
        return _of_rows(data, argument, wanted) if isinstance(first, dict) else data
    try:
        rows = iter(data)
    except TypeError:
        raise TypeError(f"{argument}: expected a list of str or Arrow data, not {type(data).__name__}") from None
    for first in rows:
        from itertools import chain

        rows = chain((first,), rows)
        return _of_rows(list(rows), argument, wanted) if isinstance(first, dict) else rows
    return []


def _of_rows(rows, argument, wanted, is_list=True):
    """Rows that are dicts, as columns; a key that a row does not have is null there."""
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise TypeError(f"{argument}[{number}]: expected dict, not {type(row).__name__}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    made = {}
    for name in names if wanted is None else [key for key in wanted if columns_of([key], names)]:
        values = [_value(row, name) for row in rows] if wanted else [row.get(name) for row in rows]
        if wanted is not None or _kind(values) is not None:
            made[str(name)] = _column(values, f"{argument}[{name!r}]")
    if not made:  # no wanted column is there: the extension says so, and names those that are
        made = {str(name): _column([None] * len(rows), argument) for name in names}
    return Columns(made, is_list)


def _is_arrow(data):
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def _column(values, argument):
    """One column as a doppel.Array: Arrow data as strings, Python values by their type."""
    from . import _doppel

    if isinstance(values, _doppel.Array):
        return values
    if _is_arrow(values):
        return _doppel.array("string", _doppel.texts(values, "text", argument), argument)
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{argument}: expected a list, not {type(values).__name__}")
    values = list(values)
    return _doppel.array(_kind(values) or "string", values, argument)


def _kind(values):
    """The type of column that fits Python values; None: there is none. NaN among strings is null."""
    types = {*map(type, values)} - {type(None)}
    if not types or all(issubclass(t, (str, bytes)) for t in types - {float}) and types != {float}:
        return "string"
    if types == {bool}:
        return "bool"
    if bool in types:
        return None
    if all(hasattr(t, "__index__") for t in types):
        return "uint64" if max(v for v in values if v is not None) >= 1 << 63 else "int64"
    if all(hasattr(t, "__index__") or issubclass(t, float) for t in types):
        return "double"
    return None


# ---- pandas ----


def _of_pandas(data, argument, wanted):
    kind = type(data).__name__
    if hasattr(data, "columns"):
        names = list(data.columns) if wanted is None else [name for name in wanted if name in data.columns]
        twice = next((name for name in names if list(data.columns).count(name) > 1), None)
        if twice is not None:
            raise ValueError(f'{argument}: the column "{twice}" is there twice')
        series = {str(name): _of_series(data[name], f"{argument}[{name!r}]") for name in names}
        for key in (key for key in wanted or () if key not in names and columns_of([key], data.columns)):
            series[key] = _of_parts(data, key, argument)
        if not series:  # no wanted column is there: the extension says so, and names those that are
            from . import _doppel

            series = {str(name): _doppel.array("string", []) for name in data.columns}
        return _joined(series)
    if kind.endswith("Series") or kind.endswith("Index"):
        return _of_series(data, argument)
    return None


def _of_series(series, argument):
    """A pandas Series: its Arrow data, if it has some; else its values."""
    if hasattr(series.array, "__arrow_array__") and type(series.dtype).__name__ in ("ArrowDtype", "StringDtype"):
        if getattr(series.dtype, "storage", "pyarrow").startswith("pyarrow"):
            return series.array.__arrow_array__()
    if type(series.dtype).__name__ == "CategoricalDtype":
        series = series.astype(object)
    values = series.tolist()
    if series.dtype.kind in "mM":
        values = [None if value != value else str(value) for value in values]
    return _column([None if _is_missing(value) else value for value in values], argument)


def _of_parts(data, key, argument):
    """The column of a key that leads into others, or joins them."""
    parts = {name: [None if _is_missing(value) else value for value in data[name].tolist()]
             for name in columns_of([key], data.columns)}
    return _column([_value(dict(zip(parts, row)), key) for row in zip(*parts.values())], f"{argument}[{key!r}]")


def _is_missing(value):
    return value is None or type(value).__name__ in ("NAType", "NaTType") or isinstance(value, float) and value != value


def _joined(columns):
    """Arrow columns as one table. pyarrow is needed only if one of them is not a doppel.Array."""
    from . import _doppel

    if all(isinstance(column, _doppel.Array) for column in columns.values()):
        return Columns(columns, False)
    import pyarrow

    return pyarrow.table({name: column if isinstance(column, pyarrow.ChunkedArray) else pyarrow.array(column)
                          for name, column in columns.items()})


# ---- others ----


def _of_datasets(data, argument, wanted):
    kind = type(data).__name__
    if kind in ("DatasetDict", "IterableDatasetDict"):
        raise TypeError(f"{argument}: a {kind} has several datasets: choose one, such as {argument}[{next(iter(data))!r}]")
    if kind == "Dataset":
        have = data.column_names
        names = columns_of(wanted or (), have)
        return (data.select_columns(names) if names else data).with_format("arrow")[:]
    if kind == "IterableDataset":
        rows = [{name: row[name] for name in columns_of(wanted or row, row)} or dict(row) for row in data]
        return _of_rows(rows, argument, wanted, False)
    return None


def _of_pyarrow(data, argument, wanted):
    if hasattr(data, "scanner"):  # a Dataset
        names = columns_of(wanted or (), data.schema.names)
        return data.scanner(columns=names or None).to_reader()
    if hasattr(data, "to_reader") and not _is_arrow(data):  # a Scanner
        return data.to_reader()
    return None


def _of_polars(data, argument, wanted):
    return data.collect() if hasattr(data, "collect") else None


def _of_duckdb(data, argument, wanted):
    if _is_arrow(data):
        return data
    return data.fetch_record_batch() if hasattr(data, "fetch_record_batch") else None


_makers = {
    "pandas": _of_pandas,
    "datasets": _of_datasets,
    "pyarrow": _of_pyarrow,
    "polars": _of_polars,
    "duckdb": _of_duckdb,
    "_duckdb": _of_duckdb,
}


# ---- progress ----


def reporter(progress: Any, unit: str = "docs") -> Callable[[int, int], Any] | None:
    """What the extension calls as progress(done, total): None; the caller's own; or, for True, a bar of tqdm if that is
    installed, else lines on stderr.

    >>> from doppel._inputs import reporter
    >>> reporter(None) is None
    True
    """
    if progress is None or progress is False:
        return None
    if progress is not True:
        if not callable(progress):
            raise TypeError(f"progress: expected True or a callable, not {type(progress).__name__}")
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Lines(unit)
    return _Bar(tqdm(unit=" " + unit))


class _Bar:
    def __init__(self, bar):
        self._bar = bar

    def __call__(self, done, total):
        self._bar.total = total
        self._bar.update(done - self._bar.n)
        if done >= total:
            self._bar.close()


class _Lines:
    """A line a second, and one at the end."""

    def __init__(self, unit):
        self._unit = unit
        self._next = 0.0

    def __call__(self, done, total):
        from sys import stderr
        from time import monotonic

        if monotonic() >= self._next or done >= total:
            self._next = monotonic() + 1
            print(f"doppel: {done:,} of {total:,} {self._unit}", file=stderr, flush=True)

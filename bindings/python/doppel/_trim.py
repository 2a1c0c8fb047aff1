"""Documents without what they repeat of each other: lines, sentences, paragraphs, passages; from data in memory, or files.

Options have the names and defaults of the command's. They become a dict that the extension's Trim reads; what it finds
comes back as Arrays, by row, by span and by document that was dropped.
"""

from __future__ import annotations

from . import _doppel
from ._documents import Outputs, Reading, Rows, finish, items_of, lasting, library_of, report_left_out, written
from ._inputs import columns_of, value_at, with_value
from ._options import count_of, one_of, paths_of, share_of, shared_options
from ._types import Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._sketches import Progress

_UNITS = ("line", "sentence", "paragraph", "passage")
_LEAST = {"run": 1, "words": 1, "min_count": 2}


# ---- options ----


def _number(name: str, value: Any) -> int:
    """A number that may be left to its default, which is 0 for the extension."""
    if value is None:
        return 0
    number = count_of(name, value)
    if number < _LEAST.get(name, 0):
        raise ValueError(f"{name}: expected a number of at least {_LEAST[name]}, not {value!r}")
    return number


def _flag(name: str, value: Any) -> bool:
    """Names such as "off" are true in Python."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{name}: expected bool, not {type(value).__name__}")
    return bool(value)


def _options(*, unit="line", run=None, words=None, min_count=None, keep_first=True, drop_below=None, drop_share=None,
             drop=False, **shared) -> dict[str, Any]:
    options = shared_options(scopes=("document",), **shared)
    if "," in (options["text_key"] or ""):
        raise ValueError("text: one column is cut, not several")
    return {
        **options,
        "unit": one_of("unit", unit, _UNITS),
        "run": _number("run", run),
        "words": _number("words", words),
        "min_count": _number("min_count", min_count),
        "cut_first": not _flag("keep_first", keep_first),
        "drop_below": _number("drop_below", drop_below),
        "drop_share": None if drop_share is None else share_of("drop_share", drop_share),
        "drop": _flag("drop", drop),
    }


_NAMES = ("unit run words min_words keep min_count keep_first within across drop_below drop_share drop recipe text id url "
          "html content tmp memory threads progress").split()


# ---- data in memory ----


class _Cut:
    """What trim() found, beside the rows."""

    #: An Array of bool, by row: whether it stays. Rows without a text stay.
    mask: _doppel.Array
    #: An Array of str: what is left of the text of each row that stays.
    texts: _doppel.Array
    #: A Table with id, start, end, words, originalId and originalStart of each span that was cut.
    spans: Table
    #: A Table with id, reason, words, wordsCut and originalId of each document that was dropped, or of which nothing is left.
    dropped: Table
    #: What was done, in figures.
    summary: dict[str, Any]

    def _find(self, reading: Reading) -> None:
        found = reading.documents.find_data(reading.id)
        self.spans, self.dropped = Table(found["spans"]), Table(found["dropped"])
        self.mask, self.texts = reading.documents.mask(), reading.documents.texts()
        figures = reading.documents.stats()
        for name in ("bad", "repaired", "unopened"):  # these are of files
            del figures[name]
        self.summary = {"unit": _UNITS[reading.options["unit"]], **figures}
        reading.documents.finish()


class TrimmedList(list, _Cut):
    """What trim() gives for a list: the items that stay, their texts cut; and in `mask`, `texts`, `spans`, `dropped` and
    `summary` what became of all."""


class Trimmed(Rows, _Cut):
    """What trim() gives for Arrow data and tables: the rows that stay, as Arrow (`pyarrow.table(result)`,
    `polars.DataFrame(result)`), with all their columns. The column with texts is a new one of the same type, but that
    dictionaries become plain strings; the others share the caller's memory.

    mask: an Array of bool, by row: whether it stays. Rows without a text stay.
    texts: an Array of str: what is left of the text of each row that stays.
    spans: a Table with id, start, end, words, originalId and originalStart of each span that was cut, in bytes of the
        UTF-8 of the texts as they were.
    dropped: a Table with id, reason, words, wordsCut and originalId (that of the first span) of each document that was
        dropped ("repeats", "below", "share"), or of which nothing is left ("empty").
    summary: a dict of figures.
    len(result), result[0] and iteration give rows as dicts where pyarrow is installed; of data that is one column, its
    values.
    """

    def __init__(self, data: Any, reading: Reading) -> None:
        self._name = reading.options["text_key"] or "text"
        self._find(reading)
        self._hold(data, reading.documents)

    @property
    def kept(self) -> Any:
        """The rows that stay, their texts cut, as the library of the data has them: a pyarrow Table, a polars or pandas
        DataFrame, a Dataset of Hugging Face. Data of another kind is given as a pyarrow Table."""
        rows = super().kept
        replace = _REPLACE.get(library_of(self._data))
        # What is no data of that library has come through Arrow, and is cut already.
        return replace(rows, self._name, self.texts) if replace and type(rows) is type(self._data) else rows


def _in_pyarrow(rows: Any, name: str, texts: Any) -> Any:
    import pyarrow

    if isinstance(rows, pyarrow.Array):
        return _typed(texts, rows.type)
    if isinstance(rows, pyarrow.ChunkedArray):
        return pyarrow.chunked_array([_typed(texts, rows.type)])
    if name not in rows.schema.names:
        return rows.append_column(name, pyarrow.array(texts))
    number = rows.schema.get_field_index(name)
    field = rows.schema.field(number)
    column = _typed(texts, field.type)
    return rows.set_column(number, field.with_type(column.type), column)


def _typed(texts: Any, kind: Any) -> Any:
    """Texts as an array of the type that they had."""
    import pyarrow

    column = pyarrow.array(texts)
    if isinstance(kind, pyarrow.BaseExtensionType):
        return pyarrow.ExtensionArray.from_storage(kind, _typed(texts, kind.storage_type))
    if pyarrow.types.is_null(kind):
        return column
    return column.cast(kind.value_type if pyarrow.types.is_dictionary(kind) else kind)


def _in_polars(rows: Any, name: str, texts: Any) -> Any:
    import polars

    column = polars.Series(texts)
    is_series = isinstance(rows, polars.Series)
    name = rows.name if is_series else name
    before = rows if is_series else rows.get_column(name) if name in rows.columns else column
    column = column.cast(polars.Binary) if before.dtype == polars.Binary else column
    return column.alias(name) if is_series else rows.with_columns(column.alias(name))


def _in_pandas(rows: Any, name: str, texts: Any) -> Any:
    import pandas

    before = rows.get(name) if isinstance(rows, pandas.DataFrame) else rows
    kind = object if before is None or isinstance(before.dtype, pandas.CategoricalDtype) else before.dtype
    values = texts.to_list()
    if "binary" in str(kind):
        values = [None if value is None else value.encode() for value in values]
    if isinstance(rows, pandas.Index):
        return pandas.Index(values, dtype=kind, name=rows.name)
    column = pandas.Series(values, index=rows.index, dtype=kind)
    if isinstance(rows, pandas.Series):
        return column.rename(rows.name)
    rows = rows.copy(deep=False)
    rows[name] = column
    return rows


def _in_datasets(rows: Any, name: str, texts: Any) -> Any:
    table, before = rows.with_format("arrow")[:], rows.format
    info = rows.info.copy() if name in rows.column_names else None
    changed = type(rows)(_in_pyarrow(table, name, texts), info=info, split=rows.split)
    columns = None if {*before["columns"]} == {*rows.column_names} else before["columns"]
    return changed.with_format(before["type"], columns, before["output_all_columns"], **before["format_kwargs"])


_REPLACE = {"pyarrow": _in_pyarrow, "polars": _in_polars, "pandas": _in_pandas, "datasets": _in_datasets}


def trim(data: Any, *, unit: str = "line", run: int | None = None, words: int | None = None, min_words: int = 5,
         keep: Any = "first", min_count: int | None = None, keep_first: bool = True, within: str | None = None,
         across: str | None = None, drop_below: int | None = None, drop_share: float | None = None, drop: bool = False,
         against: Any = None, recipe: Any = "page", text: Any = "text", id: str | None = "id", url: str = "url",
         html: str = "html", content: str = "main", missing: str = "error", tmp: Any = None, memory: int = 0,
         threads: int = 0, progress: Progress = None) -> Any:
    """The documents without what they repeat of each other, or of an earlier part of themselves: all but the first of
    lines, sentences, paragraphs or passages with the same words.

    data: Arrow data with a column `text`, rows that are dicts, or a list of str.
    unit: "line", "sentence", "paragraph" (between blank lines), or "passage": any run of `words` (50) words.
    run: cut only this many units in a row that repeat together (1); 3 sentences are usual.
    min_words: units with fewer words are cut only in a run with a longer one.
    keep: in which document a repeat stays, by the rules of cluster().
    min_count: cut only what occurs at least this often (2).
    keep_first: False cuts every occurrence, the first as well.
    within, across: only repeats in one "document", "host", "domain" or value of a column count, or only those in
        different ones.
    drop_below, drop_share, drop: leave out documents that are cut and have fewer words left than this; that lose more
        than this share of their words; that are cut at all.
    against: other data; cut what that contains, and nothing else: e.g. evaluation texts.
    text: the column with the texts: a name, or a path into dicts ("meta.text"), in Parquet into structs.
    id: the column with their ids; where there is none, and with None, documents are called by their rows, from 0.
    Other options are those of `doppel trim`.

    Gives a Trimmed, which is Arrow data and has the rows of the caller's own library in `kept`; for a list, a list.
    Either has `mask`, `texts`, `spans` (with the original of each), `dropped` and `summary`. A row that has a page and no
    text gets a text.

    >>> import doppel
    >>> footer = "All rights reserved by the publisher."
    >>> pages = doppel.trim(["First page.\\n" + footer, "Second page.\\n" + footer])
    >>> pages
    ['First page.\\nAll rights reserved by the publisher.', 'Second page.\\n']
    >>> pages.spans[0]
    {'id': 1, 'start': 13, 'end': 50, 'words': 6, 'originalId': 0, 'originalStart': 12}
    """
    given = locals()
    options = _options(missing=missing, **{name: given[name] for name in _NAMES})
    data = lasting(data)
    if library_of(data) == "pandas" and hasattr(data, "columns") and columns_of([options["text_key"]], data.columns) not in (
            [], [options["text_key"]]):
        raise ValueError(f'text: "{options["text_key"]}" is in a struct, where tables cannot be cut: '
                         "make it a column of its own")
    reading = Reading(_doppel.Trim(options, None), data, against, options, all_columns=True, read="hold_data")
    if not reading.is_list:
        return Trimmed(data, reading)
    result = TrimmedList()
    result._find(reading)
    texts = iter(result.texts)
    result.extend(_cut_item(item, next(texts), options["text_key"]) for item, stays in zip(items_of(data), result.mask) if stays)
    return result


def _cut_item(item: Any, left: str | None, name: str) -> Any:
    """An item of a list with what is left of its text: the caller's own, where that is all."""
    if isinstance(item, dict):
        before = value_at(item, name)
        after = _cut_item(before, left, name)
        return item if after is before else with_value(item, name, after)
    if isinstance(item, bytes) and left is not None:
        return item if item == left.encode() else left.encode()
    return item if left is None or item == left else left


# ---- files ----


def trim_files(inputs: Any, output: Any = None, *, output_dir: Any = None, spans: Any = None, dropped: Any = None,
               against: Any = None, annotate: bool = False, dry_run: bool = False, unit: str = "line",
               run: int | None = None, words: int | None = None, min_words: int = 5, keep: Any = "first",
               min_count: int | None = None, keep_first: bool = True, within: str | None = None,
               across: str | None = None, drop_below: int | None = None, drop_share: float | None = None,
               drop: bool = False, recipe: Any = "page", text: Any = "text", id: str = "id", url: str = "url",
               title: str = "title", html: str = "html", content: str = "main", allow_bad: bool = False,
               max_record: int = 0, tmp: Any = None, memory: int = 0, threads: int = 0,
               progress: Progress = None) -> dict[str, Any]:
    """The documents without what they repeat of each other, from files to files: what `doppel trim` does, in bounded
    memory.

    inputs, output, output_dir: as of dedup_files().
    spans: a file that gets a line of JSON for each span that is cut: its document, bytes and words, and the original.
    dropped: a file that gets a line of JSON for each document that is dropped or left empty: why, and the original.
    against: paths; what their documents contain is cut, and nothing else.
    annotate: cut nothing: write all documents, with a field (in Parquet a column) spans added.
    dry_run: find, but write no documents.
    Other options are those of trim().

    Gives a dict of figures; what is left out and what is raised is as of dedup_files().

    >>> import doppel, tempfile, os
    >>> folder = tempfile.TemporaryDirectory()
    >>> source, target = (os.path.join(folder.name, name) for name in ("pages.jsonl", "cut.jsonl"))
    >>> with open(source, "w") as file:
    ...     _ = file.write('{"text": "the same five words here"}\\n' * 2)
    >>> doppel.trim_files(source, target)["wordsCut"]
    5
    """
    given = locals()
    options = _options(counted="bytes", **{name: given[name] for name in [*_NAMES, "title", "max_record", "allow_bad"]})
    paths, known = paths_of("inputs", inputs), [] if against is None else paths_of("against", against)
    outputs = Outputs("trim_files", output, output_dir, allow_bad, spans=spans, dropped=dropped)
    documents = _doppel.Trim(options, outputs.tables)
    outputs.check(documents, paths, known, dry_run)
    writer = None
    done = False
    try:
        documents.open_outputs(None if outputs.is_table or dry_run else outputs.output, *outputs.lines)
        if not dry_run:
            writer = outputs.create(paths, options, text=options["text_key"] or "text", spans=annotate)
        known_out, left_out = _find_paths(documents, paths, known)
        if known:
            report_left_out(known_out, "against", options)
        report_left_out(left_out, "inputs", options)
        written(writer, documents.write, writer, annotate)
        summary = {"unit": _UNITS[options["unit"]], **documents.stats()}
        done = True
    finally:
        finish(documents, writer, done)
    return summary


def _find_paths(documents: Any, paths: list[str], known: list[str]) -> Any:
    """Both are read by one call: which of them an error is about, the file that it names says."""
    try:
        return documents.find_paths(paths, known)
    except _doppel.InputError as error:
        for argument, some, others in (("against", known, paths), ("inputs", paths, known)):
            if str(error).startswith((*some,)) and not str(error).startswith((*others,)):
                raise _doppel.InputError(f"{argument}: {error}") from None
        raise

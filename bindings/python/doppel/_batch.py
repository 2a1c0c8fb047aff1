"""Documents by the million: near pairs, groups, the documents without their copies; from data in memory, or files.

Options have the names and defaults of the command's. They become a dict that the extension's Batch reads; what it finds
comes back as Arrays, by document or by pair.
"""

from __future__ import annotations

import os

from . import _doppel
from ._inputs import arrow, reporter
from ._sketches import changed_recipe, checked_threads
from ._types import Cluster, Overlap, Pair, Passage, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ._sketches import Progress

_METHODS = ("auto", "simhash", "minhash", "exact")
_EVIDENCE = {"content": 1, "url": 2, "title": 4}
_URL_RULES = ("scheme", "www", "port", "dots", "escapes", "index", "fragment", "query", "tracking", "idn", "slash")
_LINKS = ("kept", "any")
_CONTENTS = ("main", "all")
_HOSTS = ("host", "domain")  # of within and across: parts of the URL
_URL_KEEPS = ("https", "shortest-url")
_MOST = {"distance": 1 << 31, "bands": 1 << 31, "rows": 1 << 31}  # the extension takes 32 bits of them, 64 of others


# ---- options ----


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> int:
    if value not in allowed:
        raise ValueError(f"{name}: expected one of {', '.join(allowed)}, not {value!r}")
    return allowed.index(value)


def _names(name: str, value: Any) -> list[str]:
    """A list of names, or one text with commas."""
    if isinstance(value, str):
        return value.split(",")
    try:
        names = list(value)
    except TypeError:
        raise TypeError(f"{name}: expected str or a list of str, not {type(value).__name__}") from None
    for each in names:
        if not isinstance(each, str):
            raise TypeError(f"{name}: expected str or a list of str, not {each!r} in it")
    return names


def _bits_of(name: str, value: Any, allowed: dict[str, int]) -> int:
    """Names as bits."""
    names = _names(name, value)
    wrong = [each for each in names if each not in allowed]
    if wrong or not names:
        raise ValueError(f"{name}: expected some of {', '.join(allowed)}, not {(wrong or [value])[0]!r}")
    return sum({allowed[each] for each in names})


def _share(name: str, value: Any, zero: bool = False) -> float:
    """A share, also of numpy; with `zero` there may be none."""
    try:
        share = -1.0 if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not (0 < share <= 1 or zero and share == 0):
        raise ValueError(f"{name}: expected a share above 0 and up to 1, not {value!r}")
    return share


def _count(name: str, value: Any) -> int:
    """A whole number, also of numpy."""
    from operator import index

    try:
        count = index(value) if not isinstance(value, bool) else -1
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(f"{name}: expected a whole number, not {value!r}")
    if count >= _MOST.get(name, 1 << 64):
        raise ValueError(f"{name}: {value!r} is too large")
    return count


def _text(name: str, value: Any) -> str | None:
    """A name, e.g. of a column."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, not {type(value).__name__}")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{name}: {value!r} is no name")
    return value


def _path(name: str, value: Any) -> str:
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name}: expected a path, not {type(value).__name__}") from None
    if not path or "\0" in path:
        raise ValueError(f"{name}: {path!r} is no path")
    return path


def _method(method: str | None, distance: Any, bands: Any, rows: Any, similarity: Any) -> str:
    """A distance means fingerprints, bands or rows mean signatures; what does not fit is refused."""
    if method is None:
        method = "simhash" if distance is not None else "minhash" if bands or rows else "auto"
    _one_of("method", method, _METHODS)
    fits = {"similarity": ("auto", "minhash"), "distance": ("simhash",), "bands": ("minhash",), "rows": ("minhash",)}
    given = {"similarity": similarity, "distance": distance, "bands": bands, "rows": rows}
    for name, methods in fits.items():
        if given[name] is not None and method not in methods:
            raise ValueError(f'{name} cannot be used with method="{method}"')
    return method


def _options(*, method=None, similarity=None, distance=None, bands=None, rows=None, recipe="page", bits=None,
             min_words=5, boilerplate=0, by="content", keep="first", link="kept", within=None, across=None,
             content="main", url_keep=(), limit=0, tmp=None, memory=0, threads=0, missing="error", progress=None,
             text="text", id="id", url="url", title="title", html="html", max_record=0,
             unit="docs") -> dict[str, Any]:
    """The options that all of these calls share, checked, as the extension takes them."""
    method = _method(method, distance, bands, rows, similarity)
    keep = _text("keep", ",".join(_names("keep", keep)))
    rules = dict(zip(_URL_RULES, (1 << i for i in range(len(_URL_RULES)))))
    return {
        "method": _one_of("method", method, _METHODS),
        "similarity": None if similarity is None else _share("similarity", similarity),
        "distance": _count("distance", distance or 0),
        "distance_zero": distance == 0 and distance is not None,
        "bands": _count("bands", bands or 0),
        "rows": _count("rows", rows or 0),
        "recipe": changed_recipe(recipe, bits),
        "min_words": _count("min_words", min_words) or 1,
        "boilerplate": _share("boilerplate", boilerplate, zero=True),
        "by": _bits_of("by", by, _EVIDENCE),
        "keep": None if keep == "first" else keep,
        "link_any": bool(_one_of("link", link, _LINKS)),
        "within": _text("within", within),
        "across": _text("across", across),
        "content": _one_of("content", content, _CONTENTS),
        "url_without": _bits_of("url_keep", url_keep, rules) if url_keep else 0,
        "limit": _count("limit", limit),
        "tmp": None if tmp is None else _path("tmp", tmp),
        "memory": _count("memory", memory),
        "threads": checked_threads(threads),
        "skip_missing": bool(_one_of("missing", missing, ("error", "skip"))),
        "progress": reporter(progress, unit),
        "text_key": _text("text", text), "url_key": _text("url", url), "title_key": _text("title", title),
        "html_key": _text("html", html), "id_key": _text("id", id),
        "max_record": _count("max_record", max_record),
    }


def _rules(options: dict[str, Any]) -> list[tuple[str, str]]:
    """The rules of keep, each with the column that it names, if any."""
    return [(rule.partition(":")[0], rule.partition(":")[2]) for rule in (options["keep"] or "").split(",")]


def _fields(options: dict[str, Any]) -> list[str]:
    """The columns that a call may need: those of a document, and those that keep, within and across name."""
    names = [options[key] for key in ("text_key", "html_key", "id_key", "url_key", "title_key")]
    names += [column for _, column in _rules(options)] + [options["within"], options["across"]]
    return [name for name in dict.fromkeys(names) if name]


_OPTIONAL, _REQUIRED, _OR_PAGES = range(3)  # of a column: whether it must be there, if there is none with pages


def _needed(options: dict[str, Any], known: bool) -> list[tuple[str, str, int]]:
    """The columns that options name: the option, the column, and whether it must be there. What has the usual name need
    not be; pages have titles and addresses themselves; and what decides which document is kept, known documents need
    not have."""
    needed = [("id", options["id_key"], _OPTIONAL if options["id_key"] == "id" else _REQUIRED)]
    needed += [(name, options[name + "_key"], _REQUIRED) for name in ("url", "title", "html")
               if options[name + "_key"] != name]
    url = options["url_key"] or "url"
    needed += [(name, url if options[name] in _HOSTS else options[name], _REQUIRED) for name in ("within", "across")]
    needed += [("by", options[name + "_key"] or name, _OR_PAGES) for name in ("url", "title")
               if options["by"] & _EVIDENCE[name]]
    if not known:
        needed += [("keep", url if rule in _URL_KEEPS else column, _REQUIRED) for rule, column in _rules(options)]
    return [each for each in needed if each[1]]


# ---- a batch in memory ----


class _Reading:
    """A batch that has read the caller's data, after that of `against`."""

    def __init__(self, data: Any, against: Any, options: dict[str, Any], all_columns: bool = False,
                 read: str = "read_data") -> None:
        self.options = options
        self.batch = _doppel.Batch(options, None)
        wanted = _fields(options)
        take = getattr(self.batch, read)
        if against is not None:
            take(arrow(against, "against", wanted), True, "against", _needed(options, True))
        self.taken = arrow(data, "data", None if all_columns and _is_table(data) else wanted)
        self.is_list = take(self.taken, False, "data", _needed(options, False))
        self.id = options["id_key"]
        if self.id is not None:
            self.batch.check_ids(self.id)

    def summary(self) -> dict[str, Any]:
        figures = self.batch.stats()
        for name in ("bad", "repaired", "unopened", "sameIds", "inIndex"):  # these are of files
            del figures[name]
        return {"method": _METHODS[self.options["method"]], **figures}


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]


def _is_table(data: Any) -> bool:
    """Whether all columns of the data can be had as Arrow. Those of pandas and of Python may have any values."""
    if isinstance(data, dict):
        return any(_is_arrow(column) for column in data.values())
    return _library(data) != "pandas" and not isinstance(data, (list, tuple))


def _is_arrow(data: Any) -> bool:
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def pairs(data: Any, *, against: Any = None, method: str | None = None, similarity: float | None = None,
          distance: int | None = None, bands: int | None = None, rows: int | None = None, collapse: bool = False,
          recipe: Any = "page", bits: int | None = None, min_words: int = 5, boilerplate: float = 0,
          by: Any = "content", within: str | None = None, across: str | None = None, text: str = "text",
          id: str | None = "id", url: str = "url", title: str = "title", html: str = "html", content: str = "main",
          url_keep: Any = (), missing: str = "error", tmp: Any = None, memory: int = 0, threads: int = 0,
          progress: Progress = None) -> Any:
    """Every pair of near documents: those whose similarity, the Jaccard similarity of their 5-word shingles, is at least
    `similarity` (0.8). Each is verified on the shingles themselves.

    data: Arrow data with a column `text`, rows that are dicts, or a list of str.
    against: other data; then pairs of it with `data` are given as well, but none within it.
    method: "auto"; "minhash" with `bands` and `rows`; "simhash" with `distance` bits; "exact", the same words.
    collapse: pair documents that have the same words only with the first of them.
    id: the column with their ids; where there is none, and with None, documents are called by their rows, from 0.
    Other options are those of `doppel pairs`.

    Gives a Table with a, b, distance and similarity; for a list, a list of Pair. In order of (a, b).

    >>> import doppel
    >>> fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
    >>> doppel.pairs([fox, "nothing of this was ever said before", fox.upper() + "!"])
    [Pair(a=0, b=2, distance=0, similarity=1.0)]
    """
    given = locals()
    reading = _Reading(data, against, _options(**{name: given[name] for name in _SHARED}))
    found = Table(reading.batch.pairs(reading.id, bool(collapse)))
    return [Pair(**row) for row in found] if reading.is_list else found


_SHARED = ("method similarity distance bands rows recipe bits min_words boilerplate by within across text id url title "
           "html content url_keep missing tmp memory threads progress").split()
_GROUPING = [*_SHARED, "keep", "link"]


def cluster(data: Any, *, against: Any = None, method: str | None = None, similarity: float | None = None,
            distance: int | None = None, bands: int | None = None, rows: int | None = None, keep: Any = "first",
            link: str = "kept", recipe: Any = "page", bits: int | None = None, min_words: int = 5,
            boilerplate: float = 0, by: Any = "content", within: str | None = None, across: str | None = None,
            text: str = "text", id: str | None = "id", url: str = "url", title: str = "title", html: str = "html",
            content: str = "main", url_keep: Any = (), missing: str = "error", tmp: Any = None, memory: int = 0,
            threads: int = 0, progress: Progress = None) -> Any:
    """Which group each document is in, and which document of the group is kept.

    In the order of `keep` ("first"; "longest", "newest:date", "https,shortest-url,first", ...) a document is kept unless
    it is near one that is kept already; link="any" puts whatever is near any document of a group into it. Other options
    are those of pairs().

    Gives a Table with id, group (the id of the kept document), kept, reason and similarity, a row for each document; for
    a list, a list of Cluster.

    >>> import doppel
    >>> fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
    >>> [(c.id, c.group, c.kept) for c in doppel.cluster([fox, "quite another text", fox.title()])]
    [(0, 0, True), (1, 1, True), (2, 0, False)]
    """
    given = locals()
    reading = _Reading(data, against, _options(**{name: given[name] for name in _GROUPING}))
    reading.batch.decide()
    columns = reading.batch.columns(reading.id, False)
    found = Table({"id": columns["id"], "group": columns["originalId"], "kept": columns["kept"],
                   "reason": columns["reason"], "similarity": columns["similarity"]})
    return [Cluster(**row) for row in found] if reading.is_list else found


class _Decided:
    """What dedup() decided, beside the rows."""

    #: An Array of bool, by row: whether it stays. Rows without a text stay.
    mask: _doppel.Array
    #: A Table with id, originalId, reason, similarity and distance of each document that goes.
    removed: Table
    #: What was done, in figures.
    summary: dict[str, Any]

    def _decide(self, reading: _Reading) -> None:
        reading.batch.decide()
        columns = reading.batch.columns(reading.id, True)
        self.mask = reading.batch.mask()
        self.removed = Table({name: columns[name] for name in
                              ("id", "originalId", "reason", "similarity", "distance")})
        self.summary = {**reading.summary(), "removed": len(self.removed)}
        reading.batch.finish()


_ROWS = 1 << 12  # that iteration makes of Arrow data at a time


class DeduplicatedList(list, _Decided):
    """What dedup() gives for a list: the items that stay, and in `mask`, `removed` and `summary` what became of all."""


class Deduplicated(_Decided):
    """What dedup() gives for Arrow data and tables: the rows that stay, as Arrow that shares the caller's memory
    (`pyarrow.table(result)`, `polars.DataFrame(result)`), with all their columns.

    len(result), result[0] and iteration give rows as dicts where pyarrow is installed; of data that is one column, its
    values.
    """

    def __init__(self, data: Any, reading: _Reading) -> None:
        self._data, self._batch = data, reading.batch
        self._is_table = reading.batch.is_table()
        self._decide(reading)
        self._count = sum(self.mask)

    @property
    def kept(self) -> Any:
        """The rows that stay, as the library of the data filters them: a pyarrow Table, a polars or pandas DataFrame, a
        Dataset of Hugging Face. Data of another kind is given as a pyarrow Table."""
        return _filtered(self._data, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if _library(self._data) != "pandas":
            return self._batch.kept_stream()
        import pyarrow

        kept = self.kept
        made = pyarrow.Table.from_pandas(kept) if self._is_table else pyarrow.chunked_array([pyarrow.array(kept)])
        return made.__arrow_c_stream__(requested_schema)

    def _arrow(self) -> Any:
        import pyarrow

        return pyarrow.table(self) if self._is_table else pyarrow.chunked_array(self)

    def _rows(self, rows: slice) -> list[Any]:
        if _library(self._data) != "pandas":
            kept = self._arrow().slice(rows.start, rows.stop - rows.start)
            return kept.to_pylist()
        kept = self.kept.iloc[rows]
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
        return f"<doppel.Deduplicated: {self._count:,} of {len(self.mask):,} rows>"


def _filtered(data: Any, result: Deduplicated) -> Any:
    library, kind = _library(data), type(data).__name__
    if library == "polars" and kind in ("DataFrame", "Series"):
        import polars

        return data.filter(polars.Series(values=result.mask.to_list(), dtype=polars.Boolean))
    if library == "pandas":
        return data[result.mask.to_list()]
    if library == "datasets" and kind == "Dataset":
        return data.select([row for row, stays in enumerate(result.mask) if stays])
    import pyarrow

    if isinstance(data, (pyarrow.Table, pyarrow.RecordBatch, pyarrow.Array, pyarrow.ChunkedArray)):
        return data.filter(pyarrow.array(result.mask))
    return result._arrow()


def dedup(data: Any, *, against: Any = None, method: str | None = None, similarity: float | None = None,
          distance: int | None = None, bands: int | None = None, rows: int | None = None, keep: Any = "first",
          link: str = "kept", recipe: Any = "page", bits: int | None = None, min_words: int = 5,
          boilerplate: float = 0, by: Any = "content", within: str | None = None, across: str | None = None,
          text: str = "text", id: str | None = "id", url: str = "url", title: str = "title", html: str = "html",
          content: str = "main", url_keep: Any = (), missing: str = "error", tmp: Any = None, memory: int = 0,
          threads: int = 0, progress: Progress = None) -> Any:
    """One of each: the data without copies and near-copies, and without what `against` has.

    Options are those of cluster(). The data is held while it is worked on, but its strings are not copied.

    Gives a Deduplicated, which is Arrow data and has the rows of the caller's own library in `kept`; for a list, a list.
    Either has `mask`, `removed` (with the original of each removed document, and why) and `summary`.

    >>> import doppel
    >>> fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
    >>> unique = doppel.dedup([fox, "nothing of this was ever said before", fox.upper() + "!"])
    >>> len(unique), unique.mask.to_list()
    (2, [True, True, False])
    >>> unique.removed[0]["originalId"], unique.removed[0]["reason"]
    (0, 'content_hash')
    """
    given = locals()
    options = _options(**{name: given[name] for name in _GROUPING})
    data = _lasting(data)
    reading = _Reading(data, against, options, all_columns=True)
    if not reading.is_list:
        return Deduplicated(data, reading)
    result = DeduplicatedList()
    result._decide(reading)
    result.extend(item for item, stays in zip(_items(data), result.mask) if stays)
    return result


def _lasting(data: Any) -> Any:
    """Data whose rows are looked at twice, to decide and to give them out: what can be iterated over becomes a list."""
    if type(data).__name__ == "IterableDataset" and _library(data) == "datasets":
        import pyarrow

        return pyarrow.concat_tables(data.with_format("arrow").iter(1000))
    if _library(data) in ("pyarrow", "polars", "pandas", "datasets", "duckdb", "_duckdb") or _is_arrow(data):
        return data
    if isinstance(data, dict):
        return {name: column if hasattr(column, "__getitem__") else list(column) for name, column in data.items()}
    if isinstance(data, (list, tuple, str, bytes, bytearray)) or not hasattr(data, "__iter__"):
        return data
    return list(data)


def _items(data: Any) -> Any:
    """The rows of a dict of columns are dicts; all other lists have items."""
    if isinstance(data, dict):
        return (dict(zip(data, row)) for row in zip(*data.values()))
    return data


def overlap(data: Any, *, against: Any = None, containment: float | None = None, words: int | None = None,
            sample: int | None = None, recipe: Any = "page", text: str = "text", id: str | None = "id",
            html: str = "html", content: str = "main", missing: str = "error", tmp: Any = None, memory: int = 0,
            threads: int = 0, progress: Progress = None) -> Any:
    """Documents of which one contains much of another, or a long run of it, with the passages they share.

    containment: one has at least this share of the other's shingles (0.5, unless `words` is given).
    words: they share a run of at least this many words; none is missed.
    against: only pairs of a document of `data`, a, and one of this, b: e.g. evaluation texts.
    sample: for containment, pairs are looked up by one shingle in this many (4).

    Gives a Table with a, b, containmentAB, containmentBA, and lists aStarts, aEnds, bStarts, bEnds (bytes of the texts)
    and words, an entry for each passage; for a list, a list of Overlap, whose passages are Passage.

    >>> import doppel
    >>> found = doppel.overlap(["one two three four five six seven", "so: two three four five six seven eight nine ten"])
    >>> found[0].a, found[0].b, found[0].passages[0].words
    (0, 1, 6)
    """
    options = _options(recipe=recipe, text=text, id=id, html=html, content=content, missing=missing, tmp=tmp,
                       memory=memory, threads=threads, progress=progress)
    options["containment"] = None if containment is None else _share("containment", containment)
    options["words"] = None if words is None else _count("words", words)
    options["sample"] = None if sample is None else _count("sample", sample)
    reading = _Reading(data, against, options, read="hold_data")
    found = Table(reading.batch.overlap(reading.id))
    return [_overlap(row) for row in found] if reading.is_list else found


def _overlap(row: dict[str, Any]) -> Overlap:
    places = zip(row["aStarts"], row["aEnds"], row["bStarts"], row["bEnds"], row["words"])
    return Overlap(row["a"], row["b"], row["containmentAB"], row["containmentBA"], [Passage(*each) for each in places])


def decide(edges: Any, *, count: int | None = None, a: str = "a", b: str = "b", similarity: str = "similarity",
           link: str = "kept") -> Table:
    """Which documents stay, given all near pairs: a building block for engines that spread the work over machines.

    edges: Arrow data (or dicts) with two columns of positions, 0 to count - 1 in the order of keeping, and their
        similarity.
    count: of documents; default: one more than the greatest position.

    A document stays unless it is near an earlier one that stays; its original is the most similar of those, then the
    first. link="any": everything that is connected is one group.

    Gives a Table with position, original, kept and similarity, a row for each document.

    >>> import doppel
    >>> doppel.decide([{"a": 0, "b": 1, "similarity": 0.9}, {"a": 1, "b": 2, "similarity": 0.9}])["original"].to_list()
    [0, 0, 2]
    """
    link_any = bool(_one_of("link", link, _LINKS))
    return Table(_doppel.decide_edges(arrow(edges, "edges", [a, b, similarity]), a, b, similarity,
                                      None if count is None else _count("count", count), link_any))


# ---- files ----


def _paths(name: str, given: Any) -> list[str]:
    if isinstance(given, (str, bytes, os.PathLike)):
        return [_path(name, given)]
    try:
        paths = [_path(name, path) for path in given]
    except TypeError as error:
        raise error if str(error).startswith(name) else TypeError(
            f"{name}: expected a path or a list of paths, not {type(given).__name__}") from None
    if not paths:
        raise ValueError(f"{name}: there are none")
    return paths


class _Outputs:
    """Where dedup_files writes to. What cannot be is refused before anything is read: an output that is read, too, or
    stands in a folder that is read; two with one name; JSONL under the name of another format."""

    def __init__(self, output: Any, folder: Any, removed: Any, allow_bad: bool) -> None:
        from ._parquet import Parquet

        self.tables = Parquet(allow_bad)
        self.output, self.folder, self.removed = (
            None if value is None else _path(name, value)
            for name, value in (("output", output), ("output_dir", folder), ("removed", removed)))
        self.is_table = self.folder is not None or self.output is not None and self.tables.claims(self.output)

    def check(self, batch: Any, inputs: list[str], against: list[str], annotate: bool) -> None:
        from ._parquet import check_place, is_same

        if (self.output is None) == (self.folder is None):
            raise ValueError("dedup_files needs either output or output_dir, or dry_run=True")
        if annotate and not self.is_table:
            raise ValueError("annotate: only Parquet can be annotated here; doppel dedup --annotate writes JSONL")
        if not self.is_table and batch.format_of(self.output) not in (None, "JSONL"):
            raise ValueError(f"output: {self.output}: documents are written as JSONL: choose a name with .jsonl")
        if self.removed is not None and self.output is not None and is_same(self.removed, self.output):
            raise ValueError(f"output and removed: both are {self.output}")
        for name, place in (("output", self.output), ("output_dir", self.folder), ("removed", self.removed)):
            for path in inputs + against if place is not None else ():
                check_place(name, place, path)


def dedup_files(inputs: Any, output: Any = None, *, output_dir: Any = None, removed: Any = None, against: Any = None,
                annotate: bool = False, dry_run: bool = False, method: str | None = None,
                similarity: float | None = None, distance: int | None = None, bands: int | None = None,
                rows: int | None = None, keep: Any = "first", link: str = "kept", recipe: Any = "page",
                bits: int | None = None, min_words: int = 5, boilerplate: float = 0, by: Any = "content",
                within: str | None = None, across: str | None = None, text: str = "text", id: str = "id",
                url: str = "url", title: str = "title", html: str = "html", content: str = "main", url_keep: Any = (),
                allow_bad: bool = False, max_record: int = 0, limit: int = 0, tmp: Any = None, memory: int = 0,
                threads: int = 0, progress: Progress = None) -> dict[str, Any]:
    """One of each, from files to files: what `doppel dedup` does, in bounded memory.

    inputs: a path or several: Parquet (files, folders, patterns, and with pyarrow URLs such as s3:// and memory://), and
        all that the command reads: JSONL, CSV, WARC, mail boxes, HTML, text.
    output: .parquet takes Parquet inputs, of which it keeps the schema, the metadata and all other columns; any other
        name gets JSONL (.gz and .zst are compressed).
    output_dir: in place of output: one Parquet file for each input, under its own name below this folder.
    removed: a file that gets a line of JSON for each document that goes: its id, its original's, and why.
    against: paths; documents that they have go, too. An index folder, too.
    annotate: write all rows, with the columns group, isDuplicate and originalId added (Parquet).
    dry_run: decide, but write nothing.
    Other options are those of dedup().

    Gives a dict of figures. Outputs are complete or absent. Rows without a text are left out, counted in "bad", and named
    by a warning.

    Raises InputError for an input that cannot be read; nothing is written then.

    >>> import doppel, tempfile, os, json
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "pages.jsonl")
    >>> with open(path, "w") as file:
    ...     for id in "ab":
    ...         _ = file.write(json.dumps({"id": id, "text": "the same five words here"}) + "\\n")
    >>> doppel.dedup_files(path, os.path.join(folder.name, "unique.jsonl"))["kept"]
    1
    """
    given = locals()
    options = _options(unit="bytes", **{name: given[name] for name in [*_GROUPING, "max_record", "limit"]
                                        if name != "missing"})
    options["allow_bad"] = allow_bad
    paths, known = _paths("inputs", inputs), [] if against is None else _paths("against", against)
    outputs = _Outputs(output, output_dir, removed, allow_bad)
    batch = _doppel.Batch(options, outputs.tables)
    if not dry_run:
        outputs.check(batch, paths, known, annotate)
    writer = None
    done = False
    try:
        if not dry_run:
            batch.open_outputs(None if outputs.is_table else outputs.output, outputs.removed)
        if outputs.is_table and not dry_run:
            writer = outputs.tables.create(outputs.output, outputs.folder, paths, options["memory"], options["threads"])
        if known:
            _read(batch, known, "against", options)
        _read(batch, paths, "inputs", options)
        batch.decide()
        summary = {"method": _METHODS[options["method"]], **batch.stats()}
        summary["removed"] = summary["documents"] - summary["kept"]
        if not dry_run:
            _write(batch, writer, annotate)
        done = True
    finally:
        _finish(batch, writer, done)
    return summary


def _write(batch: Any, writer: Any, annotate: bool) -> None:
    batch.write_removed()
    if writer is None:
        batch.write_records()
        return
    try:
        batch.write(writer, annotate)
    except Exception:
        if writer.failure is None:
            raise
        raise writer.failure from None  # as it was raised


def _finish(batch: Any, writer: Any, done: bool) -> None:
    """All outputs take their places, or none appears."""
    try:
        if writer is not None:
            writer.finish(done)
    except BaseException:
        done = False
        raise
    finally:
        batch.finish_outputs(done)


def _read(batch: Any, paths: list[str], argument: str, options: dict[str, Any]) -> None:
    """A file that cannot be read is an error, unless that is allowed; a row that is left out is reported by a warning,
    and so is a column that is not there."""
    from warnings import warn

    known = argument == "against"
    try:
        bad, unseen = batch.read_paths(paths, known)
    except _doppel.InputError as error:
        raise _doppel.InputError(f"{argument}: {error}") from None
    if bad is not None and not bad[1] and not options["allow_bad"]:
        raise _doppel.InputError(f"{argument}: {bad[0]}: {bad[2]}")
    if bad is not None:
        place, what = (f"{bad[0]}:{bad[1]}", "rows") if bad[1] else (bad[0], "files")
        warn(f"{argument}: {what} were left out; the first: {place}: {bad[2]}", RuntimeWarning, stacklevel=3)
    pages = (options["html_key"] or "html") not in unseen
    for option, name, required in _needed(options, known):
        if name in unseen and (required == _REQUIRED or required == _OR_PAGES and not pages):
            warn(f'{argument}: no record has a field "{name}", which {option} names', RuntimeWarning, stacklevel=3)

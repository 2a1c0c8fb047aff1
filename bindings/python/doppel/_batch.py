"""Documents by the million: near pairs, groups, the documents without their copies; from data in memory, or files.

Options have the names and defaults of the command's. They become a dict that the extension's Batch reads; what it finds
comes back as Arrays, by document or by pair.
"""

from __future__ import annotations

from . import _doppel
from ._documents import Outputs, Reading, Rows, finish, items_of, lasting, report_left_out, written
from ._inputs import arrow
from ._options import (CONTENT, TITLE, URL, bits_of, count_of, key_of, name_of, one_of, paths_of, share_of,
                       shared_options)
from ._types import Cluster, Overlap, Pair, Passage, Table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._sketches import Progress

_METHODS = ("auto", "simhash", "minhash", "exact")
_EVIDENCE = {"content": CONTENT, "url": URL, "title": TITLE}
_URL_RULES = ("scheme", "www", "port", "dots", "escapes", "index", "fragment", "query", "tracking", "idn", "slash")
_LINKS = ("kept", "any")


# ---- options ----


def _method(method: str | None, distance: Any, bands: Any, rows: Any, similarity: Any) -> str:
    """A distance means fingerprints, bands or rows mean signatures; what does not fit is refused."""
    if method is None:
        method = "simhash" if distance is not None else "minhash" if bands or rows else "auto"
    one_of("method", method, _METHODS)
    fits = {"similarity": ("auto", "minhash"), "distance": ("simhash",), "bands": ("minhash",), "rows": ("minhash",)}
    given = {"similarity": similarity, "distance": distance, "bands": bands, "rows": rows}
    for name, methods in fits.items():
        if given[name] is not None and method not in methods:
            raise ValueError(f'{name} cannot be used with method="{method}"')
    return method


def _preset(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """What a preset stands for, but for what is given."""
    presets = {each["name"]: each for each in _doppel.pipelines()}
    one_of("preset", name, tuple(presets))
    if given["distance"] is not None or given["method"] not in (None, "minhash"):
        raise ValueError("preset is for signatures: it cannot be used with "
                         + ("distance" if given["distance"] is not None else "another method than minhash"))
    chosen = dict(presets[name], method="minhash")
    if given["bands"] or given["rows"]:  # bands of another number of rows are another plan
        del chosen["bands"], chosen["rows"]
    return {option: chosen.get(option) if value is None else value for option, value in given.items()}


def _options(*, preset=None, recipe=None, method=None, similarity=None, distance=None, bands=None, rows=None,
             boilerplate=0, by="content", link="kept", url_keep=(), limit=0, only_contained=None, keep_copies=1,
             **shared) -> dict[str, Any]:
    """The options that all of these calls share, checked, as the extension takes them."""
    if preset is not None:
        near = {"recipe": recipe, "method": method, "similarity": similarity, "distance": distance, "bands": bands,
                "rows": rows}
        recipe, method, similarity, distance, bands, rows = _preset(preset, near).values()
    shared["recipe"] = "page" if recipe is None else recipe
    method = _method(method, distance, bands, rows, similarity)
    rules = dict(zip(_URL_RULES, (1 << i for i in range(len(_URL_RULES)))))
    return {
        **shared_options(**shared),
        "method": one_of("method", method, _METHODS),
        "similarity": None if similarity is None else share_of("similarity", similarity),
        "distance": count_of("distance", distance or 0),
        "distance_zero": distance == 0 and distance is not None,
        "bands": count_of("bands", bands or 0),
        "rows": count_of("rows", rows or 0),
        "boilerplate": share_of("boilerplate", boilerplate, zero=True),
        "by": bits_of("by", by, _EVIDENCE),
        "link_any": bool(one_of("link", link, _LINKS)),
        "url_without": bits_of("url_keep", url_keep, rules) if url_keep else 0,
        "limit": count_of("limit", limit),
        "only_contained": None if only_contained is None else share_of("only_contained", only_contained),
        "keep_copies": _copies_of(keep_copies),
    }


def _copies_of(keep_copies: Any) -> int:
    if count_of("keep_copies", keep_copies) == 0:
        raise ValueError("keep_copies: 1, the default, keeps one document of each group; 0 would keep nothing")
    return count_of("keep_copies", keep_copies)


# ---- a batch in memory ----


def _read(data: Any, against: Any, options: dict[str, Any], **how: Any) -> Reading:
    return Reading(_doppel.Batch(options, None), data, against, options, **how)


def _summary(reading: Reading) -> dict[str, Any]:
    figures = reading.documents.stats()
    for name in ("bad", "repaired", "unopened", "sameIds", "inIndex"):  # these are of files
        del figures[name]
    return {"method": _METHODS[reading.options["method"]], **figures}


def pairs(data: Any, *, against: Any = None, preset: str | None = None, method: str | None = None,
          similarity: float | None = None, distance: int | None = None, bands: int | None = None,
          rows: int | None = None, collapse: bool = False,
          recipe: Any = None, bits: int | None = None, min_words: int = 5, boilerplate: float = 0,
          by: Any = "content", within: str | None = None, across: str | None = None, text: Any = "text",
          id: str | None = "id", url: str = "url", title: str = "title", html: str = "html", content: str = "main",
          url_keep: Any = (), missing: str = "error", tmp: Any = None, memory: int = 0, threads: int = 0,
          progress: Progress = None) -> Any:
    """Every pair of near documents: those whose similarity, the Jaccard similarity of their 5-word shingles, is at least
    `similarity` (0.8). Each is verified on the shingles themselves.

    data: Arrow data with a column `text`, rows that are dicts, or a list of str.
    against: other data; then pairs of it with `data` are given as well, but none within it.
    method: "auto"; "minhash" with `bands` and `rows`; "simhash" with `distance` bits; "exact", the same words.
    preset: search as a published pipeline does: "fineweb", "slimpajama", "nemo-curator" or "duplodocus"; what else is
        given counts instead of what it stands for. docs/BATCH.md has them all.
    recipe: how text becomes shingles ("page", unless the preset says otherwise).
    collapse: pair documents that have the same words only with the first of them.
    text: the column with the texts: a name, a path into structs or dicts ("meta.text"), or several, whose values are
        joined with a line end (["question", "answer"], or "question,answer").
    id: the column with their ids; where there is none, and with None, documents are called by their rows, from 0.
    Other options are those of `doppel pairs`.

    Gives a Table with a, b, distance and similarity; for a list, a list of Pair. In order of (a, b).

    >>> import doppel
    >>> fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
    >>> doppel.pairs([fox, "nothing of this was ever said before", fox.upper() + "!"])
    [Pair(a=0, b=2, distance=0, similarity=1.0)]
    """
    given = locals()
    reading = _read(data, against, _options(**{name: given[name] for name in _SHARED}))
    found = Table(reading.documents.pairs(reading.id, bool(collapse)))
    return [Pair(**row) for row in found] if reading.is_list else found


_SHARED = ("preset method similarity distance bands rows recipe bits min_words boilerplate by within across text id url "
           "title html content url_keep missing tmp memory threads progress").split()
_GROUPING = [*_SHARED, "keep", "link", "only_contained"]


def cluster(data: Any, *, against: Any = None, preset: str | None = None, method: str | None = None,
            similarity: float | None = None, distance: int | None = None, bands: int | None = None,
            rows: int | None = None, keep: Any = "first",
            link: str = "kept", recipe: Any = None, bits: int | None = None, min_words: int = 5,
            boilerplate: float = 0, by: Any = "content", within: str | None = None, across: str | None = None,
            text: Any = "text", id: str | None = "id", url: str = "url", title: str = "title", html: str = "html",
            content: str = "main", url_keep: Any = (), only_contained: float | None = None, missing: str = "error",
            tmp: Any = None, memory: int = 0, threads: int = 0, progress: Progress = None) -> Any:
    """Which group each document is in, and which document of the group is kept.

    In the order of `keep` ("first"; "longest,id", "newest:date", "https,shortest-url,first", ...) a document is kept unless
    it is near one that is kept already; link="any" puts whatever is near any document of a group into it. Other options
    are those of pairs().
    only_contained: a document is a copy only if the kept one has at least this share of its shingles; 1 loses none.

    Gives a Table with id, group (the id of the kept document), kept, reason and similarity, a row for each document; for
    a list, a list of Cluster.

    >>> import doppel
    >>> fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
    >>> [(c.id, c.group, c.kept) for c in doppel.cluster([fox, "quite another text", fox.title()])]
    [(0, 0, True), (1, 1, True), (2, 0, False)]
    """
    given = locals()
    reading = _read(data, against, _options(**{name: given[name] for name in _GROUPING}))
    reading.documents.decide()
    columns = reading.documents.columns(reading.id, False)
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

    def _decide(self, reading: Reading) -> None:
        reading.documents.decide()
        columns = reading.documents.columns(reading.id, True)
        self.mask = reading.documents.mask()
        self.removed = Table({name: columns[name] for name in
                              ("id", "originalId", "reason", "similarity", "distance")})
        self.summary = {**_summary(reading), "removed": len(self.removed)}
        reading.documents.finish()


class DeduplicatedList(list, _Decided):
    """What dedup() gives for a list: the items that stay, and in `mask`, `removed` and `summary` what became of all."""


class Deduplicated(Rows, _Decided):
    """What dedup() gives for Arrow data and tables: the rows that stay, as Arrow that shares the caller's memory
    (`pyarrow.table(result)`, `polars.DataFrame(result)`), with all their columns.

    len(result), result[0] and iteration give rows as dicts where pyarrow is installed; of data that is one column, its
    values.
    """

    def __init__(self, data: Any, reading: Reading) -> None:
        self._decide(reading)
        self._hold(data, reading.documents)


def dedup(data: Any, *, against: Any = None, preset: str | None = None, method: str | None = None,
          similarity: float | None = None, distance: int | None = None, bands: int | None = None,
          rows: int | None = None, keep: Any = "first",
          link: str = "kept", recipe: Any = None, bits: int | None = None, min_words: int = 5,
          boilerplate: float = 0, by: Any = "content", within: str | None = None, across: str | None = None,
          text: Any = "text", id: str | None = "id", url: str = "url", title: str = "title", html: str = "html",
          content: str = "main", url_keep: Any = (), only_contained: float | None = None, keep_copies: int = 1,
          missing: str = "error", tmp: Any = None, memory: int = 0, threads: int = 0,
          progress: Progress = None) -> Any:
    """One of each: the data without copies and near-copies, and without what `against` has.

    Options are those of cluster(), and keep_copies: at most this many documents of each group stay, in the order of `keep`;
    copies of what `against` has all go. The data is held while it is worked on, but its strings are not copied.

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
    options = _options(**{name: given[name] for name in [*_GROUPING, "keep_copies"]})
    data = lasting(data)
    reading = _read(data, against, options, all_columns=True)
    if not reading.is_list:
        return Deduplicated(data, reading)
    result = DeduplicatedList()
    result._decide(reading)
    result.extend(item for item, stays in zip(items_of(data), result.mask) if stays)
    return result


def overlap(data: Any, *, against: Any = None, containment: float | None = None, words: int | None = None,
            sample: int | None = None, recipe: Any = "page", text: Any = "text", id: str | None = "id",
            html: str = "html", content: str = "main", missing: str = "error", tmp: Any = None, memory: int = 0,
            threads: int = 0, progress: Progress = None) -> Any:
    """Documents of which one contains much of another, or a long run of it, with the passages they share.

    containment: one has at least this share of the other's shingles (0.2, if `words` is not given either).
    words: they share a run of at least this many words; none is missed (30, if `containment` is not given either).
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
    options["containment"] = None if containment is None else share_of("containment", containment)
    options["words"] = None if words is None else count_of("words", words)
    options["sample"] = None if sample is None else count_of("sample", sample)
    reading = _read(data, against, options, read="hold_data")
    found = Table(reading.documents.overlap(reading.id))
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
    link_any = bool(one_of("link", link, _LINKS))
    return Table(_doppel.decide_edges(arrow(edges, "edges", [a, b, similarity]), a, b, similarity,
                                      None if count is None else count_of("count", count), link_any))


# ---- files ----


def dedup_files(inputs: Any, output: Any = None, *, output_dir: Any = None, removed: Any = None, against: Any = None,
                annotate: bool = False, count_by: str | None = None, annotate_prefix: str = "", dry_run: bool = False,
                preset: str | None = None, method: str | None = None, similarity: float | None = None,
                distance: int | None = None, bands: int | None = None, rows: int | None = None, keep: Any = "first",
                link: str = "kept", recipe: Any = None,
                bits: int | None = None, min_words: int = 5, boilerplate: float = 0, by: Any = "content",
                within: str | None = None, across: str | None = None, text: Any = "text", id: str = "id",
                url: str = "url", title: str = "title", html: str = "html", content: str = "main", url_keep: Any = (),
                only_contained: float | None = None, keep_copies: int = 1, allow_bad: bool = False,
                max_record: int = 0, limit: int = 0, tmp: Any = None, memory: int = 0, threads: int = 0,
                progress: Progress = None) -> dict[str, Any]:
    """One of each, from files to files: what `doppel dedup` does, in bounded memory.

    inputs: a path or several: Parquet (files, folders, patterns, and with pyarrow URLs such as s3:// and memory://), and
        all that the command reads: JSONL, CSV, WARC, mail boxes, HTML, text.
    output: .parquet takes Parquet inputs, of which it keeps the schema, the metadata and all other columns; any other
        name gets JSONL (.gz and .zst are compressed).
    output_dir: in place of output: one Parquet file for each input, under its own name below this folder.
    removed: a file that gets a line of JSON for each document that goes: its id, its original's, and why.
    against: paths; documents that they have go, too. An index folder, too.
    annotate: write all rows, with the columns group, isDuplicate, originalId, kept and groupSize added (Parquet).
    count_by: with annotate: a column, or key; adds groupCounts, a map, to each row that is no copy: how many of its group
        have each value of that column.
    annotate_prefix: what stands ahead of the names of the added columns.
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
    options = _options(counted="bytes", **{name: given[name] for name in [*_GROUPING, "keep_copies", "max_record", "limit",
                                                                    "allow_bad"] if name != "missing"})
    options["count_by"] = key_of("count_by", count_by)
    prefix = name_of("annotate_prefix", annotate_prefix)
    paths, known = paths_of("inputs", inputs), [] if against is None else paths_of("against", against)
    outputs = Outputs("dedup_files", output, output_dir, allow_bad, removed=removed)
    batch = _doppel.Batch(options, outputs.tables)
    if not dry_run:
        outputs.check(batch, paths, known)
    for name, value in (("count_by", count_by), ("annotate_prefix", annotate_prefix)):
        if value and not annotate:
            raise ValueError(f"{name} needs annotate=True")
    if annotate and not outputs.is_table and not dry_run:
        raise ValueError("annotate: only Parquet can be annotated here; doppel dedup --annotate writes JSONL")
    writer = None
    done = False
    try:
        if not dry_run:
            batch.open_outputs(None if outputs.is_table else outputs.output, *outputs.lines)
            writer = outputs.create(paths, options, prefix=prefix)
        for argument, some in (("against", known), ("inputs", paths)):
            if some:
                report_left_out(_read_paths(batch, some, argument), argument, options)
        batch.decide()
        summary = {"method": _METHODS[options["method"]], **batch.stats()}
        summary["removed"] = summary["documents"] - summary["kept"]
        if not dry_run:
            batch.write_removed()
            written(writer, *((batch.write, writer, annotate) if writer is not None else (batch.write_records,)))
        done = True
    finally:
        finish(batch, writer, done)
    return summary


def _read_paths(batch: Any, paths: list[str], argument: str) -> Any:
    try:
        return batch.read_paths(paths, argument == "against")
    except _doppel.InputError as error:
        raise _doppel.InputError(f"{argument}: {error}") from None

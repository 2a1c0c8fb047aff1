"""The stages on DataFrames (docs/SPARK.md draws them and proves that they give the command's answer):

    documents -> keys -> links -> components -> the documents that are not alone -> decisions -> documents

Documents are read three times: for keys, for the sketches of those that are not alone, and for the output. Each stage is run once, kept, and logged with its counts: on disk of the executors, or as Parquet in a work folder, from
which a stopped run is resumed. The driver sees counts alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import time

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, functions as f

from ._remote import WRITE_IT, refusals, remote
from ._settings import ORDER, Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

log = logging.getLogger("doppel.spark")

KEYS = "id string, node binary, part int, block binary"
BLOCKS = "part int, block binary"
SKETCHES = "component binary, id string, sketch binary"
STORED = "id string, node binary, url bigint, keys binary, sketch binary"
LINKS = "a binary, b binary"
COMPONENTS = "node binary, component binary"
DECISIONS = "id string, originalId string, reason string, similarity double, distance int"
PAIRS = "a string, b string, distance int, similarity double"

_ONE_TASK = 1 << 22  # links that one task connects; more are contracted by all
_WIDE = 1 << 24  # documents from which on keys of bands have 48 bits: 32 are too often equal by chance
_BROADCAST_BYTES = 128 << 20  # what is sent to all executors at most
_ROW_BYTES = 64  # of an id or a node with another, as Spark holds it
_DOCUMENT_BYTES = 256  # of a short document, to say how many there may be
# Parts of a table of keys: those of a part fit into a cache, but there are not too many, unless one needs much memory.
_PART_ENTRIES, _MOST_ENTRIES = 1 << 16, 1 << 26
_USUAL_PARTS, _MOST_PARTS = 32, 1024
# Rows of an Arrow batch: some megabytes, whatever a row has.
_BATCH_SETTING = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_ROWS = {"keys": 2000, "link": 32, "decide": 1000, "pairs": 1000}


class Run:
    """A run: its session, its settings, what it keeps, and where."""

    def __init__(self, frame: DataFrame, settings: Settings, partitions: int | None = None,
                 work: str | None = None, label: str = "") -> None:
        self.spark = frame.sparkSession
        self.settings = settings
        self.work = None if work is None else work.rstrip("/")
        self.label = label
        self.kept: dict[str, DataFrame] = {}
        self.partitions = partitions or self._default_partitions()
        if self.partitions < 1:
            raise ValueError(f"partitions: expected at least 1, not {partitions}")

    def _default_partitions(self) -> int:
        configured = int(self.spark.conf.get("spark.sql.shuffle.partitions"))
        return max(configured, 1)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, failed: Any, *_: object) -> None:
        """What a run that failed has kept is freed: Spark would take it for what another run on the same DataFrame asks
        for."""
        if failed is not None:
            self.release()

    # ---- stages ----

    def stage(self, name: str, frame: DataFrame, given: Observation | None = None,
              **figures: Any) -> tuple[DataFrame, dict[str, Any]]:
        """Runs a stage, once, and logs it. `figures` are aggregates, which are counted on the way; `given` has what was
        counted of the rows that it works on."""
        figures = {"rows": f.count(f.lit(1)), **figures}
        found = self._resumed(name)
        if found is not None:
            return found
        began = time.monotonic()
        seen = Observation(f"doppel {self.label}{name}")
        observed = frame.observe(seen, *[figure.alias(each) for each, figure in figures.items()])
        context = self.spark.sparkContext
        context.setJobDescription(f"doppel: {self.label}{name}")
        try:
            with refusals(), self._batches(_BATCH_ROWS.get(name)):
                made = self._write(name, observed) if self.work else self._keep(name, observed)
        finally:
            context.setJobDescription(None)
        counts = {each: value or 0 for each, value in {**seen.get, **(given.get if given else {})}.items()}
        self._note(name, counts)
        _log(self.label + name, counts, time.monotonic() - began)
        return made, counts

    def _keep(self, name: str, frame: DataFrame) -> DataFrame:
        """Keeps the rows on the executors' disks. The plan that made them is cut off, or it would be repeated in each
        that follows; what made the rows is still known, so that those of a lost executor are made again. Of keys the plan
        stays, as each stage reads a few of their columns."""
        kept = frame.persist(StorageLevel.DISK_ONLY)
        self.kept[name] = kept
        kept.write.format("noop").mode("overwrite").save()
        if name == "keys":
            return kept
        rows = kept._jdf.queryExecution().toRdd()
        made = self.spark._jsparkSession.internalCreateDataFrame(rows, kept._jdf.schema(), False)
        return DataFrame(made, self.spark)

    @contextlib.contextmanager
    def _batches(self, rows: int | None) -> Iterator[None]:
        """Arrow batches of this many rows, for what is planned inside the `with`."""
        before = self.spark.conf.get(_BATCH_SETTING)
        self.spark.conf.set(_BATCH_SETTING, str(rows or before))
        try:
            yield
        finally:
            self.spark.conf.set(_BATCH_SETTING, before)

    def release(self, besides: str = "") -> None:
        """Frees what executors keep, but for one stage."""
        for name in [each for each in self.kept if each != besides]:
            self.kept.pop(name).unpersist()

    # ---- the work folder ----

    def _path(self, name: str) -> str:
        return f"{self.work}/{self.label}{name}".replace(" ", "_")

    def _write(self, name: str, frame: DataFrame) -> DataFrame:
        frame.write.mode("overwrite").parquet(self._path(name))
        return self.spark.read.parquet(self._path(name))

    def _file(self, name: str) -> Any:
        """A path of the work folder, in the file system that it is in."""
        jvm = self.spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(name)
        return path.getFileSystem(self.spark._jsc.hadoopConfiguration()), path

    def _put(self, name: str, text: str) -> None:
        """A small file of the work folder: it is there with all of its text, or not at all."""
        system, path = self._file(name)
        _, unfinished = self._file(name + ".unfinished")
        stream = system.create(unfinished, True)
        stream.write(bytearray(text.encode()))
        stream.close()
        system.delete(path, False)
        if not system.rename(unfinished, path):
            raise OSError(f"work: {name} cannot be written")

    def _get(self, name: str) -> str | None:
        """The text of such a file; None: it is not there."""
        system, path = self._file(name)
        if not system.exists(path):
            return None
        stream = system.open(path)
        text = self.spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
        stream.close()
        return text

    def _note(self, name: str, counts: dict[str, Any]) -> None:
        """What a stage has counted, beside its files: it is there once they are complete."""
        if self.work:
            self._put(self._path(name) + ".counts", json.dumps(counts))

    def _resumed(self, name: str) -> tuple[DataFrame, dict[str, Any]] | None:
        counts = self._get(self._path(name) + ".counts") if self.work else None
        if counts is None:
            return None
        log.info("%s: taken from %s", self.label + name, self._path(name))
        return self.spark.read.parquet(self._path(name)), json.loads(counts)

    def remembered(self, name: str, value: int) -> int:
        """A number that stays as it was when the run began, however often it is resumed."""
        counts = self._get(self._path(name) + ".counts") if self.work else None
        if counts is None:
            self._note(name, {name: value})
            return value
        return json.loads(counts)[name]

    def check_work(self, about: dict[str, Any]) -> None:
        """A work folder belongs to one run: its options and its input."""
        ours, theirs = json.dumps(about, sort_keys=True), self._get(f"{self.work}/run")
        if theirs is None:
            self._put(f"{self.work}/run", ours)
        elif theirs != ours:
            old, new = json.loads(theirs), json.loads(ours)
            name = next(key for key in {**old, **new} if old.get(key) != new.get(key))
            raise ValueError(f"work: {self.work} is of a run with {name}={old.get(name)!r}, and this run has "
                             f"{new.get(name)!r}: give the same options, or another folder")

    def figures(self) -> dict[str, Any]:
        """What is known of candidates: how many of the pairs at the threshold are found."""
        settings = self.settings
        if not settings.has_keys or settings.method == "simhash":
            return {"expectedRecall": 1.0}
        bands, rows, recall = settings.bands()
        return {"bands": bands, "rows": rows, "expectedRecall": recall}

    def mapped(self, frame: DataFrame, task: str, schema: str, **more: Any) -> DataFrame:
        return frame.mapInArrow(remote(task, {**self.settings.tasks(), **more}), schema)


def _log(name: str, counts: dict[str, Any], seconds: float) -> None:
    said = ", ".join(f"{value:,} {each}" if isinstance(value, int) else f"{each} {value}" for each, value in counts.items())
    log.info("%s: %s, %.1f s", name, said, seconds)


# ---- documents ----


def check_columns(frame: DataFrame, settings: Settings) -> None:
    """Refuses columns that are missing or of the wrong type, before anything runs."""
    types = dict(frame.dtypes)

    def need(option: str, column: str | None, *kinds: str) -> None:
        if column is None:
            raise ValueError(f'{option} needs the URLs: name their column (url="...")')
        if column not in types:
            raise ValueError(f'{option}: there is no column "{column}"; there are {", ".join(types)}')
        if kinds and not types[column].startswith(kinds):
            raise ValueError(f'{option}: column "{column}" is {types[column]}, not {" or ".join(kinds)}')

    need("text", settings.named["text"], "string", "varchar", "char")
    need("id", settings.named["id"], "string", "varchar", "char", "bigint", "int", "smallint", "tinyint")
    for option in ("url", "html"):
        if settings.named[option] is not None:
            need(option, settings.named[option], "string", "varchar", "char")
    for option in settings.needs_url():
        need(option, settings.named["url"], "string", "varchar", "char")
    for column in settings.fields():
        need("keep, within or across", column)
    if settings.order is not None:
        need("order", settings.order, "bigint", "int", "smallint", "tinyint", "double", "float", "date", "timestamp")


def documents(frame: DataFrame, settings: Settings) -> DataFrame:
    """The columns that sketches are made of. Moments become text, which the rules of `keep` read."""
    types = dict(frame.dtypes)
    named = [settings.named[option] for option in ("text", "html", "url") if settings.named[option]]
    columns = [f.col(f"`{settings.named['id']}`").cast("string").alias(settings.named["id"])]
    columns += [f.col(f"`{column}`") for column in named]
    for column in settings.fields():
        value = f.col(f"`{column}`")
        if types[column].startswith("timestamp"):
            value = f.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
        elif types[column] in ("date", "boolean"):
            value = value.cast("string")
        if column not in named and column != settings.named["id"]:
            columns.append(value.alias(column))
    if settings.order is not None:
        order = f.col(f"`{settings.order}`")
        order = f.unix_date(order) if types[settings.order] == "date" else order
        columns.append(order.cast("double").alias(ORDER))
    return frame.select(*columns)


class Found:
    """What finds candidates: `documents` (id, node), `blocks` of keys, and how the keys are divided."""

    def __init__(self, documents: DataFrame, blocks: DataFrame, count: int, tables: dict[str, Any]) -> None:
        self.documents, self.blocks, self.count, self.tables = documents, blocks, count, tables


def find_keys(run: Run, frame: DataFrame) -> Found:
    """The keys of all documents."""
    check_columns(frame, run.settings)
    tables = _tables(run, frame)
    made = run.mapped(documents(frame, run.settings), "keys", KEYS, **tables)
    rows, counts = run.stage("keys", made, rows=f.count("id"), bytes=f.sum(f.length("block")))
    return Found(rows.where("id is not null").select("id", "node"), rows.where("part is not null").select("part", "block"),
                 counts["rows"], tables)


def _tables(run: Run, frame: DataFrame) -> dict[str, Any]:
    """Tables of keys: a band each, or some bits of fingerprints; and parts of each, so that one is never large."""
    settings = run.settings
    found: dict[str, Any] = {"urls": settings.by_url, "tables": 0, "key_bytes": 6}
    if settings.has_keys and settings.method == "simhash":
        from ._tasks import masks_of

        masks = masks_of(settings.bits, settings.distance())
        found.update(masks=masks, distance=settings.distance(), bits=settings.bits, key_bytes=16, tables=len(masks))
    elif settings.has_keys:
        found.update(bands=settings.bands()[:2], tables=settings.bands()[0])
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    documents = min(size, 1 << 60) // _DOCUMENT_BYTES  # at most; the size of what is not known is beyond all numbers
    parts = max(min(documents // _PART_ENTRIES, _USUAL_PARTS), min(documents // _MOST_ENTRIES, _MOST_PARTS))
    return {**found, "parts": max(1, -(-2 * run.partitions // max(found["tables"], 1)), parts)}


def refuse_twice(run: Run, ids: DataFrame) -> None:
    """Names ids that come more than once, as their hashes do."""
    context = run.spark.sparkContext
    context.setJobDescription(f"doppel: {run.label}ids")
    twice = ids.groupBy("id").count().where("count > 1").limit(5).collect()
    context.setJobDescription(None)
    if twice:
        raise ValueError(f'id: column "{run.settings.named["id"]}" has ids more than once: '
                         + ", ".join(f"{row.id!r} ({row['count']} rows)" for row in twice)
                         + ": ids must be unique; make them so, or drop what repeats")


# ---- candidates ----


def make_links(run: Run, found: Found, known: DataFrame | None) -> tuple[DataFrame, int]:
    """Links between texts that share a band, a near fingerprint or a URL, and of texts that come twice with themselves: all
    that may be near each other are connected by them."""
    blocks, count = found.blocks, found.count
    if known is not None:
        blocks = blocks.union(run.mapped(known.select("node", "url", "keys"), "pack", BLOCKS, **found.tables))
        count += known.count()
    linked = run.mapped(blocks.repartition(run.partitions, "part"), "link", LINKS, wide=count > _WIDE, **found.tables)
    links, counts = run.stage("link", linked.distinct(), twice=f.count(f.when(f.col("a").isNull(), 1)))
    if counts["twice"]:
        refuse_twice(run, found.documents)
    return links.where("a is not null"), counts["rows"]


# ---- components ----


def make_components(run: Run, links: DataFrame, count: int) -> tuple[DataFrame, int]:
    """The component of each linked text, and their number."""
    if count <= _ONE_TASK:
        made = run.mapped(links.repartition(1), "connect", COMPONENTS)
    else:
        made = contract(run, links)
    components, counts = run.stage("connect", made)
    return components, counts["rows"]


def contract(run: Run, links: DataFrame) -> DataFrame:
    """Components by stars, larger and smaller in turn (Kiveris et al., Connected components in MapReduce and beyond, 2014):
    each text is linked with the smallest of its neighbours, until all of a component are linked with its smallest."""
    edges, before, rounds = _directed(links), None, 0
    while True:
        small = _small_star(_large_star(edges))
        rounds += 1
        edges, counts = run.stage(f"contract {rounds}", small, sum=f.sum(f.hash("a", "b").cast("decimal(38,0)")).cast("string"))
        if f"contract {rounds - 2}" in run.kept:
            run.kept.pop(f"contract {rounds - 2}").unpersist()
        if (counts["rows"], counts["sum"]) == before:
            break
        before = (counts["rows"], counts["sum"])
    leaders = edges.select(f.col("b").alias("node"), f.col("b").alias("component"))
    linked = edges.select(f.col("a").alias("node"), f.col("b").alias("component")).union(leaders).distinct()
    alone = links.where("a = b").select(f.col("a").alias("node"), f.col("b").alias("component"))
    return linked.union(alone.join(linked, "node", "left_anti"))


def _directed(edges: DataFrame) -> DataFrame:
    """From the larger to the smaller."""
    return edges.select(f.greatest("a", "b").alias("a"), f.least("a", "b").alias("b")).where("a <> b").distinct()


def _large_star(edges: DataFrame) -> DataFrame:
    """The larger neighbours of each, with the smallest of its neighbours or itself."""
    both = edges.union(edges.select(f.col("b").alias("a"), f.col("a").alias("b")))
    least = both.groupBy("a").agg(f.min("b").alias("m")).select("a", f.least("a", "m").alias("m"))
    return _directed(both.join(least, "a").where("b > a").select(f.col("b").alias("a"), f.col("m").alias("b")))


def _small_star(edges: DataFrame) -> DataFrame:
    """The smaller neighbours of each, and itself, with the smallest of them."""
    least = edges.groupBy("a").agg(f.min("b").alias("m"))
    others = edges.join(least, "a").where("b <> m").select(f.col("b").alias("a"), f.col("m").alias("b"))
    return _directed(others.union(least.select("a", f.col("m").alias("b"))))


# ---- decisions ----


def beside(frame: DataFrame, rows: int) -> DataFrame:
    """The smaller side of a join: sent to all executors where it is as small as what Spark itself sends so, since the larger
    side is then not shuffled; else joined by hash, so that the larger side is not sorted."""
    return f.broadcast(frame) if rows * _ROW_BYTES <= _BROADCAST_BYTES else frame.hint("shuffle_hash")


def together(run: Run, frame: DataFrame, found: Found, known: DataFrame | None) -> tuple[DataFrame, Observation, int]:
    """The sketches of all documents that are not alone, those of a component in one partition; what counts those of them
    that are read again, and how many they must be."""
    links, link_count = make_links(run, found, known)
    components, nodes = make_components(run, links, link_count)
    linked = beside(components, nodes)
    members, counts = run.stage("gather", found.documents.join(linked, "node").select("id", "component", "node"))
    id = run.settings.named["id"]
    chosen = documents(frame, run.settings).join(beside(members, counts["rows"]).withColumnRenamed("id", id), id)
    seen = Observation(f"doppel {run.label}read again")
    sketches = run.mapped(chosen.observe(seen, f.count(f.lit(1)).alias("read")), "sketch", SKETCHES)
    if known is None:
        return sketches.repartition(run.partitions, "component"), seen, counts["rows"]
    place = f.struct(f.lit(None).cast("bigint").alias("step"), f.lit(None).cast("double").alias("place"))
    old = known.join(linked, "node").select("component", "id", "sketch", f.lit(True).alias("known"), "place")
    both = old.union(sketches.select("component", "id", "sketch", f.lit(False).alias("known"), place.alias("place")))
    ordered = both.repartition(run.partitions, "component").sortWithinPartitions(f.desc("known"), "place", "id")
    return ordered.drop("place"), seen, counts["rows"]


def _decided(run: Run, name: str, task: str, schema: str, frame: DataFrame, found: Found, known: DataFrame | None,
             **more: Any) -> tuple[DataFrame, int]:
    sketches, seen, expected = together(run, frame, found, known)
    made, counts = run.stage(name, run.mapped(sketches, task, schema, **more), given=seen)
    if counts["read"] < expected:
        raise ValueError(f"the DataFrame does not give the same rows each time it is read: of {expected} that are not alone "
                         f"{counts['read']} came again; {WRITE_IT}")
    return made, counts["rows"]


def make_decisions(run: Run, frame: DataFrame, found: Found, known: DataFrame | None = None) -> tuple[DataFrame, int]:
    """The documents that are copies, and of what; and their number."""
    return _decided(run, "decide", "decide", DECISIONS, frame, found, known)


def make_pairs(run: Run, frame: DataFrame, found: Found) -> DataFrame:
    return _decided(run, "pairs", "pair", PAIRS, frame, found, None, collapse=False)[0]

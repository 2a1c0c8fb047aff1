"""The stages on DataFrames (docs/SPARK.md draws them and proves that they give the command's answer):

    documents -> keys -> links -> components -> the documents that are not alone -> decisions -> documents

Documents are read three times: for keys, for the sketches of those that are not alone, and for the output. Each stage is run once, kept, and logged with its counts: on disk of the executors, or as Parquet in a work folder, from
which a stopped run is resumed. The driver sees counts alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import time
import weakref

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
STORED = "id string, place double, node binary, url bigint, keys binary, sketch binary"
LINKS = "a binary, b binary"
COMPONENTS = "node binary, component binary"
DECISIONS = "id string, originalId string, reason string, similarity double, distance int"
PAIRS = "a string, b string, distance int, similarity double"

# Of Parquet that is read: Spark writes checksums of pages, but does not verify them unless it is told to.
VERIFIED = {"parquet.page.verify-checksum.enabled": "true"}
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
_lock, _before = threading.Lock(), weakref.WeakKeyDictionary()  # what was set, by session
_BATCH_ROWS = {"keys": 2000, "link": 32, "decide": 1000, "pairs": 1000}


def check_session(given: Any) -> None:
    """Refuses what is no DataFrame of a session with a JVM, or no such session."""
    kind = type(given)
    if kind.__module__.startswith("pyspark.sql.connect"):
        raise ValueError("Spark Connect cannot be used: doppel.spark keeps stages on executors and reads folders through the "
                         "driver's JVM, which a client does not have; run it where the driver runs (spark-submit)")
    if not hasattr(given, "_jdf") and not hasattr(given, "_jsparkSession"):
        raise TypeError(f"df: expected a DataFrame of Spark, not {kind.__module__}.{kind.__qualname__}")


class Run:
    """A run: its session, its settings, what it keeps, and where."""

    def __init__(self, frame: DataFrame, settings: Settings, partitions: int | None = None,
                 work: str | None = None, label: str = "") -> None:
        check_session(frame)
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
        with refusals(), self.described(name), self._batches(_BATCH_ROWS.get(name)):
            made = self._write(name, observed) if self.work else self._keep(name, observed)
        counts = {**dict.fromkeys(figures, 0), **_metrics(seen), **(_metrics(given) if given else {})}
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
        """Arrow batches of this many rows, for what is planned inside the `with`. Of several runs in a session, each on its
        own thread, the last to end puts back what was set (None: nothing) before the first."""
        conf = self.spark.conf
        with _lock:
            before = _before.setdefault(self.spark, [])
            before.append(before[0] if before else conf.get(_BATCH_SETTING, None))
            if rows:
                conf.set(_BATCH_SETTING, str(rows))
        try:
            yield
        finally:
            with _lock:
                setting = before.pop()
                if not before and setting is None:
                    conf.unset(_BATCH_SETTING)
                elif not before:
                    conf.set(_BATCH_SETTING, setting)

    @contextlib.contextmanager
    def described(self, name: str) -> Iterator[None]:
        """Jobs with this name in Spark's UI."""
        context = self.spark.sparkContext
        before = context.getLocalProperty("spark.job.description")
        context.setJobDescription(f"doppel: {self.label}{name}")
        try:
            yield
        finally:
            context.setJobDescription(before)

    def release(self, besides: str = "") -> None:
        """Frees what executors keep, but for one stage."""
        for name in [each for each in self.kept if each != besides]:
            self.kept.pop(name).unpersist()

    # ---- the work folder ----

    def _path(self, name: str) -> str:
        return f"{self.work}/" + f"{self.label}{name}".replace(" ", "_")

    def read(self, *paths: str, **options: str) -> DataFrame:
        return self.spark.read.options(**VERIFIED, **options).parquet(*paths)

    def _write(self, name: str, frame: DataFrame) -> DataFrame:
        frame.write.mode("overwrite").parquet(self._path(name))
        return self.read(self._path(name))

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

    def counted(self, name: str) -> dict[str, Any] | None:
        """What a stage has counted, if it is complete in the work folder."""
        counts = self._get(self._path(name) + ".counts") if self.work else None
        return None if counts is None else json.loads(counts)

    def _resumed(self, name: str) -> tuple[DataFrame, dict[str, Any]] | None:
        counts = self.counted(name)
        if counts is None:
            return None
        log.info("%s: taken from %s", self.label + name, self._path(name))
        return self.read(self._path(name)), counts

    def remembered(self, name: str, value: Any) -> Any:
        """A value that stays as it was when the run began, however often it is resumed."""
        counts = self.counted(name)
        if counts is None:
            self._note(name, {name: value})
            return value
        return counts[name]

    def check_work(self, about: dict[str, Any]) -> None:
        """A work folder belongs to one run, with its options; check_rows() looks at the rows."""
        ours, theirs = json.dumps(about, sort_keys=True), self._get(f"{self.work}/run")
        if theirs is None:
            system, folder = self._file(str(self.work))
            names = [each.getPath().getName() for each in system.listStatus(folder)] if system.exists(folder) else []
            if any(not name.startswith("run") for name in names):
                raise ValueError(f"work: {self.work} has files that are not of a run: choose another folder")
            self._put(f"{self.work}/run", ours)
        elif theirs != ours:
            old, new = json.loads(theirs), json.loads(ours)
            name = next(key for key in {**old, **new} if old.get(key) != new.get(key))
            raise ValueError(f"work: {self.work} is of a run with {name}={old.get(name)!r}, and this run has "
                             f"{new.get(name)!r}: give the same options, or another folder")

    def check_rows(self, rows: DataFrame) -> dict[str, Any]:
        """Refuses to resume on other rows than those that the keys in the work folder were made of: fewer or more, or with
        another text, id, URL or field. Gives what the keys' stage counts for that."""
        columns = [each for name in rows.columns for each in (f.col(name), f.col(name).isNull())]
        figures = {"read": f.count(f.lit(1)), "checksum": f.sum(f.xxhash64(*columns).cast("decimal(38,0)")).cast("string")}
        before = self.counted("keys")
        if before is not None:
            with self.described("check of the rows"):
                now = rows.agg(*[figure.alias(name) for name, figure in figures.items()]).first().asDict()
            if any((value or 0) != before.get(name) for name, value in now.items()):  # a sum of no rows is null
                raise ValueError(f"work: {self.work} is of a run on other rows ({before.get('read')} then, {now['read']} "
                                 "now): give the same rows, or another folder")
        return figures

    def figures(self) -> dict[str, Any]:
        """What is known of candidates: how many of the pairs at the threshold are found."""
        settings = self.settings
        if not settings.has_keys or settings.method == "simhash":
            return {"expectedRecall": 1.0}
        bands, rows, recall = settings.bands()
        return {"bands": bands, "rows": rows, "expectedRecall": recall}

    def mapped(self, frame: DataFrame, task: str, schema: str, **more: Any) -> DataFrame:
        return frame.mapInArrow(remote(task, {**self.settings.tasks(), **more}), schema)


def _metrics(seen: Observation) -> dict[str, Any]:
    """What was counted. Nothing is there where adaptive execution has found that no rows come, and left out what counts them:
    Spark 3.5 then gives no figures, Spark 4 fails to convert them."""
    try:
        return {name: value or 0 for name, value in seen.get.items()}
    except Exception as error:
        if "java.lang.AssertionError" not in str(error):
            raise
        return {}


def _log(name: str, counts: dict[str, Any], seconds: float) -> None:
    said = ", ".join(f"{value:,} {each}" if isinstance(value, int) else f"{each} {value}" for each, value in counts.items())
    log.info("%s: %s, %.1f s", name, said, seconds)


# ---- documents ----


# What can be text: of these, the last ones become it here, as the rules of `keep` read it.
_STRINGS = ("string", "varchar", "char")
_NUMBERS = ("bigint", "int", "smallint", "tinyint")
_MOMENTS = ("timestamp", "timestamp_ntz")
_AS_STRINGS = ("date", "boolean", "decimal", "void")


def quoted(name: str) -> str:
    """A name of a column as Spark reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def _kind(types: dict[str, str], column: str) -> str:
    return types[column].partition("(")[0].partition(" ")[0]


def check_columns(frame: DataFrame, settings: Settings) -> None:
    """Refuses columns that are missing, ambiguous or of the wrong type, before anything runs."""
    types = dict(frame.dtypes)
    by_case = frame.sparkSession.conf.get("spark.sql.caseSensitive") == "true"

    def need(option: str, column: str | None, *kinds: str) -> None:
        if column is None:
            said = f"{option}: name its column" if option in settings.named else f"{option} needs the URLs: name their column"
            raise ValueError(f'{said} ({option if option in settings.named else "url"}="...")')
        if column not in types:
            raise ValueError(f'{option}: there is no column "{column}"; there are {", ".join(types)}')
        same = [name for name in frame.columns if name == column or not by_case and name.lower() == column.lower()]
        if len(same) > 1:
            raise ValueError(f'{option}: "{column}" is ambiguous, there are the columns {", ".join(same)}: rename all but one')
        if _kind(types, column) not in kinds:
            raise ValueError(f'{option}: column "{column}" is {types[column]}, not {" or ".join(kinds)}')

    need("text", settings.named["text"], *_STRINGS)
    need("id", settings.named["id"], *_STRINGS, *_NUMBERS)
    for option in ("url", "html"):
        if settings.named[option] is not None:
            need(option, settings.named[option], *_STRINGS)
    for option in settings.needs_url():
        need(option, settings.named["url"], *_STRINGS)
    for column in settings.fields:
        need("keep, within or across", column, *_STRINGS, *_NUMBERS, "double", "float", *_MOMENTS, *_AS_STRINGS)
    if settings.order is not None:
        need("order", settings.order, *_NUMBERS, "double", "float", "date", *_MOMENTS)


def documents(frame: DataFrame, settings: Settings) -> DataFrame:
    """The columns that sketches are made of, by the names that tasks have for them. Moments become text, which the rules of
    `keep` read."""
    types = dict(frame.dtypes)
    columns = [f.col(quoted(name)).alias(option) for option, name in settings.named.items() if name is not None]
    columns[1] = f.col(quoted(settings.named["id"])).cast("string").alias("id")
    for name, own in settings.fields.items():
        value, kind = f.col(quoted(name)), _kind(types, name)
        if kind in _MOMENTS:
            value = f.date_format(value, "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX")
        columns.append((value.cast("string") if kind in _AS_STRINGS else value).alias(own))
    if settings.order is not None:
        order, kind = f.col(quoted(settings.order)), _kind(types, settings.order)
        order = f.unix_date(order) if kind == "date" else order.cast("timestamp") if kind in _MOMENTS else order
        columns.append(order.cast("double").alias(ORDER))
    return frame.select(*columns)


class Found:
    """What finds candidates: `documents` (id, node), `blocks` of keys, and how the keys are divided. `ids` are those of all
    rows."""

    def __init__(self, documents: DataFrame, blocks: DataFrame, ids: DataFrame, count: int, tables: dict[str, Any]) -> None:
        self.documents, self.blocks, self.ids, self.count, self.tables = documents, blocks, ids, count, tables


def find_keys(run: Run, frame: DataFrame) -> Found:
    """The keys of all documents."""
    check_columns(frame, run.settings)
    given = documents(frame, run.settings)
    figures, seen = run.check_rows(given), None
    if run.work:
        seen = Observation(f"doppel {run.label}rows")
        given = given.observe(seen, *[figure.alias(name) for name, figure in figures.items()])
    tables = _tables(run, frame)
    made = run.mapped(given, "keys", KEYS, **tables)
    rows, counts = run.stage("keys", made, given=seen, rows=f.count("id"), bytes=f.sum(f.length("block")))
    return Found(rows.where("id is not null").select("id", "node"), rows.where("part is not null").select("part", "block"),
                 given.select("id"), counts["rows"], tables)


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
    parts = max(1, -(-2 * run.partitions // max(found["tables"], 1)), parts)
    return {**found, "parts": run.remembered("parts", parts)}


def refuse_twice(run: Run, ids: DataFrame) -> None:
    """Names ids that come more than once, as their hashes do."""
    with run.described("ids"):
        twice = ids.groupBy("id").count().where("count > 1").limit(5).collect()
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
        refuse_twice(run, found.ids)
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


def together(run: Run, frame: DataFrame, found: Found, known: DataFrame | None) -> tuple[DataFrame, int]:
    """The sketches of all documents that are not alone, those of a component in one partition; and the number of those that
    are read again."""
    links, link_count = make_links(run, found, known)
    components, nodes = make_components(run, links, link_count)
    linked = beside(components, nodes)
    members, counts = run.stage("gather", found.documents.join(linked, "node").select("id", "component", "node"))
    chosen = documents(frame, run.settings).join(beside(members, counts["rows"]), "id")
    sketches = run.mapped(chosen, "sketch", SKETCHES)
    if known is None:
        return sketches.repartition(run.partitions, "component"), counts["rows"]
    place = f.struct(f.lit(None).cast("bigint").alias("step"), f.lit(None).cast("double").alias("place"))
    old = known.join(linked, "node").select("component", "id", "sketch", f.lit(True).alias("known"), "place")
    both = old.union(sketches.select("component", "id", "sketch", f.lit(False).alias("known"), place.alias("place")))
    ordered = both.repartition(run.partitions, "component").sortWithinPartitions(f.desc("known"), "place", "id")
    return ordered.drop("place"), counts["rows"]


def _decided(run: Run, name: str, task: str, schema: str, frame: DataFrame, found: Found, known: DataFrame | None,
             **more: Any) -> tuple[DataFrame, int]:
    """What a task decides. Its rows without an id count the documents that it was given: of what has no rows at all, Spark
    leaves out what would count them on the way."""
    sketches, expected = together(run, frame, found, known)
    id = schema.split()[0]
    rows, counts = run.stage(name, run.mapped(sketches, task, schema, **more), rows=f.count(id),
                             read=f.sum(f.when(f.col(id).isNull(), f.col("distance"))))
    if counts["read"] != expected:
        raise ValueError(f"the DataFrame does not give the same rows each time it is read: of {expected} that are not alone "
                         f"{counts['read']} came again; {WRITE_IT}")
    return rows.where(f.col(id).isNotNull()), counts["rows"]


def make_decisions(run: Run, frame: DataFrame, found: Found, known: DataFrame | None = None) -> tuple[DataFrame, int]:
    """The documents that are copies, and of what; and their number."""
    return _decided(run, "decide", "decide", DECISIONS, frame, found, known)


def make_pairs(run: Run, frame: DataFrame, found: Found) -> DataFrame:
    return _decided(run, "pairs", "pair", PAIRS, frame, found, None, collapse=False)[0]

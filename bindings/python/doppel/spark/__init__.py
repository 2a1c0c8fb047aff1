"""Near-duplicates on Spark: the answer of `doppel dedup`, document for document, on any number of machines.

    from doppel import spark as doppel_spark

    unique = doppel_spark.dedup(pages, text="text", id="id")          # the kept rows
    marked = doppel_spark.dedup(pages, annotate=True)                  # all rows, with what was decided of each

Texts go through the C library on the executors, by mapInArrow. Needs pyspark 3.5 or 4 with pyarrow, pandas and numpy, and
the same libdoppel on the driver and on every executor. docs/SPARK.md says how it works, and why it gives the same answer.

Options have the names of the command's. `keep` is "longest,id" unless said otherwise: a DataFrame has no order, so that
"first" and "last" need `order`, the column that has it. Titles and boilerplate are refused.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from ._plan import Run, beside, check_columns, documents, find_keys, make_decisions, make_pairs, quoted
from ._settings import Settings
from ._store import VERSION, append_sketches, known_sketches, sketches_of

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import DataFrame

__all__ = ["VERSION", "cluster", "dedup", "dedup_against", "pairs", "release", "sketch"]


def sketch(df: DataFrame, *, partitions: int | None = None, work: str | None = None, **options: Any) -> DataFrame:
    """What near-duplicate detection needs of each document, in place of its text: the table that dedup_against() reads.

    df: a DataFrame with a row for each document.
    options: those of dedup().

    Gives a DataFrame with version, settings (the options that shape sketches, as text), id, place (by `order`, if given),
    node (12 bytes of the digest of the words), url (a hash), keys (of bands, or the fingerprint) and sketch (with the
    shingle hashes; docs/FORMAT.md section 12, kind 3).
    """
    settings = Settings(**options)
    with Run(df, settings, partitions, work) as run:
        check_columns(df, settings)
        return _held(sketches_of(run, documents(df, settings)), run)


def dedup(df: DataFrame, *, annotate: bool = False, partitions: int | None = None, work: str | None = None,
          **options: Any) -> DataFrame:
    """One of each: the rows without copies and near-copies.

    df: a DataFrame with a row for each document.
    annotate: give all rows, with group (the id of the kept document), isDuplicate, originalId and similarity added.
    text, id, url, html: the names of columns ("text", "id"; url and html only where named).
    keep: rules in order: longest, shortest, https, shortest-url, id, newest:COLUMN, oldest:COLUMN, largest:COLUMN,
        smallest:COLUMN, and first or last with `order` ("longest,id").
    order: a column of numbers, dates or moments, for first and last.
    method, similarity, distance, bands, rows, link, recipe, bits, min_words, by, within, across, content, url_keep,
        missing, max_record: as of `doppel dedup`. task_memory: bytes for the C library in each task.
    partitions: of what is shuffled (spark.sql.shuffle.partitions).
    work: a folder that all executors reach: stages are kept there as Parquet, and a stopped run is resumed from it, if
        options and rows are the same.

    The result is computed when this returns, but for the rows themselves: their decisions are kept on the executors' disks
    (release() frees them) or in `work`.
    """
    settings = Settings(**options)
    with Run(df, settings, partitions, work) as run:
        _check_run(run, "dedup")
        _check_added(df, settings, annotate)
        found = find_keys(run, df)
        decisions, copies = make_decisions(run, df, found)
        run.release(besides="decide")
        return _held(_joined(df, beside(decisions, copies), settings, annotate), run, decisions, found.count, copies)


def cluster(df: DataFrame, *, partitions: int | None = None, work: str | None = None, **options: Any) -> DataFrame:
    """Which group each document is in, and which document of the group is kept. Options are those of dedup().

    Gives a DataFrame with id, group (the id of the kept document), kept, reason and similarity, a row for each document.
    """
    settings = Settings(**options)
    with Run(df, settings, partitions, work) as run:
        _check_run(run, "cluster")
        found = find_keys(run, df)
        decisions, copies = make_decisions(run, df, found)
        ids = documents(df, settings).select("id")
        groups = ids.join(beside(decisions, copies), "id", "left").select(
            "id", f.coalesce("originalId", "id").alias("group"), f.col("originalId").isNull().alias("kept"), "reason",
            "similarity")
        run.release(besides="decide")
        return _held(groups, run, decisions, found.count, copies)


def pairs(df: DataFrame, *, partitions: int | None = None, work: str | None = None, **options: Any) -> DataFrame:
    """Every pair of near documents, each verified. Options are those of dedup(); keep and link do not matter.

    Gives a DataFrame with a, b (the greater id, as bytes), distance and similarity, in no order.
    """
    settings = Settings(**options)
    with Run(df, settings, partitions, work) as run:
        _check_run(run, "pairs")
        made = make_pairs(run, df, find_keys(run, df))
        run.release(besides="pairs")
        return _held(made, run)


def dedup_against(df: DataFrame, old: str, *, annotate: bool = False, append: bool = True,
                  partitions: int | None = None, work: str | None = None, **options: Any) -> DataFrame:
    """The rows without copies of each other, and without copies of the documents that earlier runs have kept.

    old: a Parquet table of their sketches, made by this call: their texts are not read again. It need not be there yet.
    append: add the sketches of the documents that are kept now, for the next run.

    A document of an earlier run comes before all of this one; among those of one run `order` decides, then the id. Other
    options are those of dedup(), and those that shape sketches must be those of the table.
    """
    settings = Settings(**options)
    with Run(df, settings, partitions, work) as run:
        _check_run(run, "dedup_against", old=old.rstrip("/"))
        _check_added(df, settings, annotate)
        known, step = known_sketches(run, old)
        found = find_keys(run, df)
        decisions, copies = make_decisions(run, df, found, known)
        if append:
            kept = documents(df, settings).join(beside(decisions, copies), "id", "left_anti")
            append_sketches(run, kept, old, step)
        run.release(besides="decide")
        return _held(_joined(df, beside(decisions, copies), settings, annotate), run, decisions, found.count, copies)


def release(result: DataFrame) -> None:
    """Frees what executors keep for a result of these calls; its rows cannot be had cheaply any more."""
    run = getattr(result, "_doppel_run", None)
    if run is not None:
        run.release()


def _held(result: DataFrame, run: Run, decisions: Any = None, count: int = 0, copies: int = 0) -> DataFrame:
    """The result, with what it depends on: the run, for release(), and what the job reports."""
    held: Any = result
    held._doppel_run, held._doppel_decisions = run, decisions
    held._doppel_counts = {"documents": count, "kept": count - copies, "removed": copies, **run.figures()}
    return result


def _check_run(run: Run, call: str, **more: str) -> None:
    from .. import __version__

    if not run.work:
        return
    settings = run.settings
    shape = dict(line.partition("=")[::2] for line in settings.shape.splitlines())
    about = {"call": call, "version": __version__, **settings.given, **shape, **settings.named, "order": settings.order,
             "max_record": settings.max_record, "partitions": run.partitions, **more}
    run.check_work(json.loads(json.dumps(about, default=str)))


_ADDED = ("group", "isDuplicate", "originalId", "similarity")


def _check_added(df: DataFrame, settings: Settings, annotate: bool) -> None:
    """Refuses columns that options name and that annotate replaces."""
    for name in [*settings.named.values(), *settings.fields, settings.order] if annotate else ():
        if name is not None and name.lower() in [each.lower() for each in _ADDED]:
            raise ValueError(f'annotate: it replaces the column "{name}", which an option names: rename it')


def _joined(df: DataFrame, decisions: DataFrame, settings: Settings, annotate: bool) -> DataFrame:
    """The rows, with what was decided of them."""
    id = quoted(settings.named["id"])
    found = decisions.select(*[f.col(name).alias(f"__doppel_{name}") for name in ("id", "originalId", "similarity")])
    rows = df.drop(*_ADDED) if annotate else df
    own, other, original, similarity = rows[id], *[found[name] for name in found.columns]
    if not annotate:
        return rows.join(found, own.cast("string") == other, "left_anti")
    original = original.cast(dict(df.dtypes)[settings.named["id"]])
    return rows.join(found, own.cast("string") == other, "left").select(
        "*", f.coalesce(original, own).alias("group"), original.isNotNull().alias("isDuplicate"),
        original.alias("originalId"), similarity.alias("similarity")).drop(*[found[name] for name in found.columns])

"""Tables of sketches, as Parquet: what earlier runs have kept, in place of their texts.

A table has a folder for each run that was appended, step=1, 2, ..., and in each row the version of this format and the
settings that its sketches were made with. A run appends the sketches of the documents that it keeps; the next one takes
them as known: before all others, in the order of steps, and in each by `place` and id.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, functions as f

from ._plan import STORED, Run, check_columns, documents
from ._settings import ORDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 2
_COLUMNS = ("version", "settings", "id", "place", "node", "url", "keys", "sketch")


def settings_text(run: Run) -> str:
    """The options that shape sketches; they go together where this is the same."""
    from .. import _doppel

    return _doppel.Batch({**run.settings.checked}, None).settings()


def _places(run: Run, df: DataFrame) -> DataFrame:
    """The place of each document in its run, by `order`; 0: by id alone."""
    settings = run.settings
    if settings.order is None:
        return df.select(f.col(f"`{settings.named['id']}`").cast("string").alias("id"), f.lit(0.0).alias("place"))
    return documents(df, settings).select(f.col(f"`{settings.named['id']}`").alias("id"), f.col(ORDER).alias("place"))


def sketches_of(run: Run, df: DataFrame, rows: DataFrame | None = None) -> DataFrame:
    """The table of the sketches of these documents (`rows`, or all)."""
    check_columns(df, run.settings)
    sketches = run.mapped(documents(df if rows is None else rows, run.settings), "store", STORED, bands=run.settings.bands()[:2])
    placed = sketches.join(_places(run, df), "id")
    return placed.withColumn("version", f.lit(VERSION)).withColumn("settings", f.lit(settings_text(run))).select(*_COLUMNS)


def append_sketches(run: Run, df: DataFrame, copies: DataFrame, path: str, step: int) -> None:
    """Writes the sketches of the documents that are no copies as a step of a table."""
    id = f.col(f"`{run.settings.named['id']}`").cast("string")
    kept = df.withColumn("__doppel_id", id).join(copies.select(f.col("id").alias("__doppel_id")), "__doppel_id", "left_anti")
    run.spark.sparkContext.setJobDescription(f"doppel: {run.label}append")
    sketches_of(run, df, kept).write.mode("overwrite").parquet(f"{path.rstrip('/')}/step={step}")
    run.spark.sparkContext.setJobDescription(None)


def _steps(run: Run, path: str) -> list[int]:
    """The steps that are complete."""
    system, folder = run._file(path)
    if not system.exists(folder):
        return []
    found = []
    for status in system.listStatus(folder):
        name = status.getPath().getName()
        done = run._file(f"{path}/{name}/_SUCCESS")
        if name.startswith("step=") and done[0].exists(done[1]):
            found.append(int(name[5:]))
    return sorted(found)


def known_sketches(run: Run, path: str) -> tuple[DataFrame | None, int]:
    """The sketches of all steps, as known documents, and the number of the next step."""
    path = path.rstrip("/")
    steps = _steps(run, path)
    step = run.remembered("step", steps[-1] + 1 if steps else 1)
    steps = [each for each in steps if each < step]  # a run that is resumed may have added its own already
    if not steps:
        return None, step
    table = run.spark.read.option("basePath", path).parquet(*[f"{path}/step={step}" for step in steps])
    _check(run, table, path)
    place = f.struct(f.col("step").alias("step"), f.col("place").alias("place"))
    return table.select("id", "node", "url", "keys", "sketch", f.lit(True).alias("known"), place.alias("place")), step


def _check(run: Run, table: DataFrame, path: str) -> None:
    """Refuses a table that was made otherwise, and says in what it differs."""
    missing = [name for name in _COLUMNS if name not in table.columns]
    if missing:
        raise ValueError(f'old: {path} is no table of sketches: it has no column "{missing[0]}"')
    ours = settings_text(run)
    for row in table.select("version", "settings").distinct().limit(10).collect():
        if row.version != VERSION:
            raise ValueError(f"old: {path} has version {row.version} of sketches; this is version {VERSION}: "
                             "make the table again from the documents")
        if row.settings != ours:
            theirs, own = _difference(row.settings, ours)
            raise ValueError(f"old: {path} was made with {theirs}, and this run has {own}: give the same options, "
                             "or make the table again from the documents")


def _difference(theirs: str, ours: str) -> tuple[Any, Any]:
    lines = zip(theirs.splitlines(), ours.splitlines())
    return next(((a, b) for a, b in lines if a != b), (theirs, ours))

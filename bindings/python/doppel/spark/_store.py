"""Tables of sketches, as Parquet: what earlier runs have kept, in place of their texts.

A table has a folder for each run that was appended, step=1, 2, ..., and in each row the version of this format and the
settings that its sketches were made with. A run appends the sketches of the documents that it keeps; the next one takes
them as known: before all others, in the order of steps, and in each by `place` and id.
"""

from __future__ import annotations

import zlib

from pyspark.sql import DataFrame, functions as f

from ._plan import STORED, Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 2
_COLUMNS = ("version", "settings", "id", "place", "node", "url", "keys", "sketch")


def sketches_of(run: Run, rows: DataFrame) -> DataFrame:
    """The table of the sketches of these documents."""
    sketches = run.mapped(rows, "store", STORED, bands=run.settings.bands()[:2])
    return sketches.withColumns({"version": f.lit(VERSION), "settings": f.lit(run.settings.shape)}).select(*_COLUMNS)


def append_sketches(run: Run, rows: DataFrame, path: str, step: int) -> None:
    """Writes the sketches of documents that are no copies as a step of a table: once, however often a run is resumed."""
    path = path.rstrip("/")
    begun, there = run.counted("append") is not None, step in _steps(run, path)
    if there and not begun:
        raise ValueError(f"old: another run has added step {step} to {path} since this one began: start again, with another "
                         "work folder")
    if run.work:
        run.remembered("append", step)
    if not there:
        with run.described("append"):
            sketches_of(run, rows).write.mode("overwrite").parquet(f"{path}/step={step}")


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
    table = run.read(*[f"{path}/step={step}" for step in steps], basePath=path) if steps else None
    files = zlib.crc32("\n".join(sorted(table.inputFiles()) if table else ()).encode())
    if run.remembered("known", files) != files:
        raise ValueError(f"old: {path} has other files than when the run in {run.work} began: start again, with another folder")
    if table is None:
        return None, step
    _check(run, table, path)
    place = f.struct(f.col("step").alias("step"), f.col("place").alias("place"))
    return table.select("id", "node", "url", "keys", "sketch", f.lit(True).alias("known"), place.alias("place")), step


def _check(run: Run, table: DataFrame, path: str) -> None:
    """Refuses a table that was made otherwise, and says in what it differs."""
    missing = [name for name in _COLUMNS if name not in table.columns]
    if missing:
        raise ValueError(f'old: {path} is no table of sketches: it has no column "{missing[0]}"')
    ours = run.settings.shape
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

"""The job: python -m doppel.spark, or spark-submit with this file.

    spark-submit --master ... $(python -c "import doppel.spark.__main__ as m; print(m.__file__)") \\
        --input s3a://crawl/pages/ --output s3a://crawl/unique/ --work s3a://crawl/work/

Reads and writes Parquet and JSONL. Lines of JSONL are written as they were read. The output appears when it is complete, or
not at all. docs/SPARK.md describes it.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_JSONL = re.compile(r"\.(jsonl|ndjson|json)(\.(gz|zst|bz2))?/?$")
_UNFINISHED = ".unfinished"

# The options of a run by their names here and in Python: those of `doppel dedup` that go with Spark.
_TEXTS = {"method": "method", "keep": "keep", "order": "order", "link": "link", "recipe": "recipe", "by": "by",
          "within": "within", "across": "across", "content": "content", "url-keep": "url_keep", "missing": "missing",
          "text-key": "text", "id-key": "id", "url-key": "url", "html-key": "html"}
_COUNTS = {"distance": "distance", "bands": "bands", "rows": "rows", "bits": "bits", "min-words": "min_words",
           "max-record": "max_record", "task-memory": "task_memory"}


def _parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="python -m doppel.spark", description="Deduplicate documents on Spark.")
    words.add_argument("--input", nargs="+", default=[], metavar="PATH", help="Parquet or JSONL: files, folders, patterns")
    words.add_argument("--output", metavar="PATH", help="a folder that is not there yet, for the kept documents")
    words.add_argument("--format", choices=("parquet", "jsonl"), help="of input and output (default: by name)")
    words.add_argument("--removed", metavar="PATH", help="a folder for JSONL on the documents that are removed")
    words.add_argument("--annotate", action="store_true",
                       help="all documents, with group, isDuplicate, originalId and similarity")
    words.add_argument("--against", metavar="TABLE", help="sketches of what earlier runs kept; those of this run are added")
    words.add_argument("--no-append", action="store_true", help="add nothing to the table of --against")
    words.add_argument("--work", metavar="PATH", help="keep stages in this folder, and resume a stopped run from it")
    words.add_argument("--partitions", type=int, help="of what is shuffled (default: spark.sql.shuffle.partitions)")
    words.add_argument("--similarity", type=float, help="near: this Jaccard similarity of shingles (default 0.8)")
    for name in _TEXTS:
        words.add_argument(f"--{name}", help="as of doppel dedup" if name != "order" else
                           "the column of numbers or times that first and last of --keep go by")
    for name in _COUNTS:
        words.add_argument(f"--{name}", type=int, help="as of doppel dedup")
    words.add_argument("--boilerplate", type=float, default=0, help=argparse.SUPPRESS)
    words.add_argument("--json", action="store_true", help="print a summary as one JSON object")
    words.add_argument("--explain", action="store_true", help="print stages, bytes and core-hours; run nothing")
    words.add_argument("--documents", type=int, default=1_000_000, help="for --explain: their number (default 1,000,000)")
    words.add_argument("--document-bytes", type=int, default=3000, help="for --explain: their length (default 3000)")
    words.add_argument("--together", type=float, default=0.3, help="for --explain: the share not alone (default 0.3)")
    words.add_argument("--cores", type=int, default=2, help="for --explain: of all executors (default 2)")
    return words


def _options(asked: Any) -> dict[str, Any]:
    names = {**_TEXTS, **_COUNTS, "similarity": "similarity"}
    given = {option: getattr(asked, name.replace("-", "_")) for name, option in names.items()}
    options = {option: value for option, value in given.items() if value is not None}
    return {**options, "boilerplate": asked.boilerplate}


class Files:
    """Paths in whatever file system they are in."""

    def __init__(self, spark: Any) -> None:
        self._paths = spark._jvm.org.apache.hadoop.fs.Path
        self._settings = spark._jsc.hadoopConfiguration()

    def _at(self, name: str) -> tuple[Any, Any]:
        path = self._paths(name)
        return path.getFileSystem(self._settings), path

    def exists(self, name: str) -> bool:
        system, path = self._at(name)
        return system.exists(path)

    def remove(self, name: str) -> None:
        system, path = self._at(name)
        system.delete(path, True)

    def rename(self, name: str, to: str) -> None:
        system, path = self._at(name)
        if not system.rename(path, self._paths(to)):
            raise OSError(f"{name} cannot be renamed to {to}")


def _read(spark: Any, asked: Any, settings: Any) -> tuple[Any, str]:
    """The documents, and their format. Lines of JSONL are kept as they are, with the fields that are needed beside them."""
    from pyspark.sql import functions as f

    from ._plan import VERIFIED, quoted

    kind = asked.format or ("jsonl" if any(_JSONL.search(path) for path in asked.input) else "parquet")
    if kind == "parquet":
        return spark.read.options(**VERIFIED).parquet(*asked.input), kind
    if asked.annotate:
        return spark.read.json(asked.input), kind
    names = [name for name in settings.named.values() if name] + [*settings.fields]
    kinds = {name: "string" for name in names}
    if settings.order:
        kinds[settings.order] = "double"
    schema = ", ".join(f"{quoted(name)} {each}" for name, each in kinds.items())
    lines = spark.read.option("lineSep", "\n").text(asked.input).withColumnRenamed("value", "__line")
    return lines.select("__line", f.from_json("__line", schema).alias("d")).select(
        "__line", *[f.col(f"d.{quoted(name)}").alias(name) for name in kinds]), kind


def _write(frame: Any, kind: str, path: str, annotate: bool) -> None:
    if kind == "parquet":
        frame.write.parquet(path)
    elif annotate:
        frame.write.json(path)
    else:
        frame.select("__line").write.text(path)


def _run(spark: Any, asked: Any, settings: Any) -> dict[str, Any]:
    from . import dedup, dedup_against, release
    from ._plan import check_session

    check_session(spark)
    files, places = Files(spark), [path.rstrip("/") for path in (asked.output, asked.removed) if path]
    others = [path.rstrip("/") for path in (*asked.input, asked.work, asked.against) if path]
    for number, place in enumerate(places):
        if place in (*others, *places[:number]) or any(place.startswith(path.rstrip("/") + "/") for path in asked.input):
            raise ValueError(f"output: {place} is an input, in one, or given twice: choose another folder")
        if files.exists(place):
            raise ValueError(f"output: {place} is there already: choose another folder, or remove it")
    began = time.monotonic()
    frame, kind = _read(spark, asked, settings)
    options = {**_options(asked), "annotate": asked.annotate, "partitions": asked.partitions, "work": asked.work}
    made = [place + _UNFINISHED for place in places]
    for place in made:
        files.remove(place)
    try:
        if asked.against:
            result = dedup_against(frame, asked.against, append=not asked.no_append, **options)
        else:
            result = dedup(frame, **options)
        context = spark.sparkContext
        context.setJobDescription("doppel: output")
        _write(result, kind, made[0], asked.annotate)
        decisions = result._doppel_decisions
        if asked.removed:
            context.setJobDescription("doppel: removed")
            decisions.write.json(made[1])
        for place, unfinished in zip(places, made):
            files.rename(unfinished, place)
    except BaseException:
        for place in made:
            files.remove(place)
        raise
    counts = result._doppel_counts
    release(result)
    return {**counts, "seconds": round(time.monotonic() - began, 1)}


def _log_to_stderr() -> None:
    log = logging.getLogger("doppel.spark")
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
        log.addHandler(handler)
        log.propagate = False
    log.setLevel(logging.INFO)


def main(arguments: list[str] | None = None) -> int:
    words = _parser()
    asked = words.parse_args(arguments)
    _log_to_stderr()
    from ._settings import Settings

    try:
        settings = Settings(**_options(asked))
    except (ValueError, TypeError) as error:
        words.error(str(error))
    if asked.explain:
        from ._cost import explain

        print(explain(settings, asked.documents, asked.document_bytes, asked.together, asked.cores))
        return 0
    if not asked.input or not asked.output:
        words.error("--input and --output are needed")
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("doppel").getOrCreate()
    try:
        counts = _run(spark, asked, settings)
    except ValueError as error:
        print(f"doppel.spark: {error}", file=sys.stderr)
        return 3
    finally:
        spark.stop()
    if asked.json:
        print(json.dumps(counts))
    return 0


if __name__ == "__main__":
    # Run as a file (spark-submit), its package is not known yet.
    from doppel.spark.__main__ import main as job

    sys.exit(job())

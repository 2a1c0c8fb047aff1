"""Input and options that cannot be taken are refused on the driver, by name, and leave nothing behind."""
import uuid

import pyarrow
import pytest
from pyspark.sql import functions as f

from doppel import spark as doppel_spark
from doppel.spark._remote import refusals, remote
from doppel.spark._settings import ORDER, Settings

GOOD = "id string, text string, n int, url string"


def refused(frame, message, **options):
    with pytest.raises(ValueError, match=message):
        doppel_spark.dedup(frame, **options)


def test_options(spark):
    frame = spark.createDataFrame([("a", "b", 1, None)], GOOD)
    refused(frame, 'keep="first": .*order=', keep="first")
    refused(frame, "titles cannot be compared in Spark", by="content,title")
    refused(frame, "titles cannot be compared in Spark", title="n")
    refused(frame, "keep_copies: Spark does not have it", keep_copies=2)
    refused(frame, "only_contained: Spark does not have it", only_contained=0.9)
    refused(frame, "count_by: Spark does not have it", count_by="site")
    refused(frame, "boilerplate: .* in Spark", boilerplate=0.1)
    refused(frame, "similarity: expected a share", similarity=2)
    refused(frame, 'text: there is no column "words"; there are id, text, n, url', text="words")
    refused(frame, 'text: column "n" is int, not string', text="n")
    refused(frame, 'by needs the URLs: name their column', by="url")
    refused(frame, 'within: there is no column|there is no column "host_name"', within="host_name")
    refused(frame, 'order: column "text" is string', keep="first", order="text")
    refused(frame, "partitions: expected at least 1", partitions=-1)
    with pytest.raises(TypeError, match="unknown option 'similarty'"):
        doppel_spark.dedup(frame, similarty=0.5)


def test_rows(spark):
    """What tasks refuse comes back from the executors by its own message; ids are compared by all."""
    refused(spark.createDataFrame([("a", "x", 1, None), ("b", None, 2, None)], GOOD).coalesce(1),
            "column \"text\" is null in 1 row: id 'b'")
    refused(spark.createDataFrame([("a", "x", 1, None), ("a", "y", 2, None)], GOOD).coalesce(1),
            "ids more than once: 'a' \\(2 rows\\)")


ROWS = [([(None, "x")], "column \"id\" is null in 1 of 1 rows", {}),
        ([("a", "x" * 100)], "more than 50 bytes in 1 row: id 'a'", {"max_record": 50}),
        ([("a", "x", None)], "column \"n\", which order= names, is null", {"keep": "first", "order": "n"}),
        ([("a", "x", 2.0 ** 60)], "column \"n\", which order= names, is beyond 2\\^53", {"keep": "first", "order": "n"})]


@pytest.mark.parametrize("rows, message, options", ROWS, ids=[message for _, message, _ in ROWS])
def test_rows_that_tasks_refuse(rows, message, options):
    """As an executor runs the task, on batches of Arrow."""
    names = ["id", "text", ORDER][:len(rows[0])]
    columns = [pyarrow.array(column, kind) for column, kind in
               zip(zip(*rows), (pyarrow.string(), pyarrow.string(), pyarrow.float64()))]
    batch = pyarrow.RecordBatch.from_arrays(columns, names)
    task = remote("keys", {**Settings(**options).tasks(), "bands": (30, 5), "parts": 1, "tables": 30, "urls": False,
                           "key_bytes": 6})
    with pytest.raises(ValueError, match=message), refusals():
        list(task(iter([batch])))


def test_rows_that_are_others_when_they_are_read_again(spark):
    """Ids that do not come again, and ids that come with another text."""
    ids = f.udf(lambda: uuid.uuid4().hex, "string").asNondeterministic()
    ends = f.udf(lambda: uuid.uuid4().hex, "string").asNondeterministic()
    rows = spark.range(0, 8, 1, 1)
    same = f.lit("the same seven words in all of them")
    said = "the DataFrame does not give the same rows each time it is read: {}; write it, or persist\\(\\) it"
    refused(rows.select(ids().alias("id"), same.alias("text")), said.format("of 8 that are not alone 0 came again"),
            partitions=1)
    changed = rows.select(f.col("id").cast("string"), f.concat(same, f.lit(" "), ends()).alias("text"))
    refused(changed, said.format("another text came in 8 rows: id '0', '1', '2', '3', '4', ..."), partitions=1,
            similarity=0.1)
    kept = changed.persist()
    result = doppel_spark.dedup(kept, partitions=1, similarity=0.1)
    assert result.count() == 1
    doppel_spark.release(result)
    kept.unpersist()

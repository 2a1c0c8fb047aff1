"""Input and options that cannot be taken are refused on the driver, by name, and leave nothing behind."""
import uuid

import pyarrow
import pytest
from pyspark.sql import functions as f

from doppel import spark as doppel_spark
from doppel.spark._plan import Run, check_columns, documents
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
    refused(frame, 'keep: "newst:n" is none of first', keep="newst:n")
    refused(frame.select("*", f.lit("b").alias("Text")), '"text" is ambiguous, there are the columns text, Text: rename all but one')
    for value in ("array(n)", "struct(n)", "map(n, n)", "cast(text as binary)", "interval 1 day"):
        odd = frame.withColumn("x", f.expr(value))
        for options in ({"keep": "largest:x"}, {"within": "x"}, {"across": "x"}):
            refused(odd, 'keep, within or across: column "x" is .*, not string or', **options)
        refused(odd, 'order: column "x" is .*, not bigint', keep="first", order="x")
    for name in ("group", "Similarity"):
        refused(frame.withColumn(name, f.lit("x")), f'annotate: it replaces the column "{name}"', annotate=True, across=name)
    with pytest.raises(TypeError, match="unknown option 'similarty'"):
        doppel_spark.dedup(frame, similarty=0.5)
    for text in (["text", "url"], 5):
        with pytest.raises(TypeError, match="text: expected str"):
            doppel_spark.dedup(frame, text=text)


def test_columns_become_what_tasks_read(spark):
    """Decimals, dates and moments become text; an order becomes a number, whatever its type."""
    frame = spark.sql("select 'a' id, 'b' text, cast(1.50 as decimal(10,2)) d, date'2024-02-03' day, "
                      "timestamp_ntz'2024-02-03 04:05:06' at, true yes, null nothing")
    settings = Settings(keep="largest:d,newest:day,newest:at,largest:nothing,first", within="yes", order="at")
    check_columns(frame, settings)
    row = documents(frame, settings).first()
    assert row[:3] == ("b", "a", "1.50") and row[3] == "2024-02-03" and row[4].startswith("2024-02-03T04:05:06.000000")
    assert row[5:7] == (None, "true") and isinstance(row[7], float)


def test_what_is_no_frame():
    """A DataFrame of Spark Connect, whose package is not needed to say so; and none of Spark's."""
    connected = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(ValueError, match="Spark Connect cannot be used: .* run it where the driver runs"):
        doppel_spark.dedup(connected)
    with pytest.raises(TypeError, match="df: expected a DataFrame of Spark, not pyarrow.lib.Table"):
        doppel_spark.pairs(pyarrow.table({"text": ["a"]}))


def test_rows(spark):
    """What tasks refuse comes back from the executors by its own message; ids are compared by all. The session stays as it
    was."""
    spark.sparkContext.setJobDescription("mine")
    before = session_state(spark)
    refused(spark.createDataFrame([("a", "x", 1, None), ("b", None, 2, None)], GOOD).coalesce(1),
            "column \"text\" is null in 1 row: id 'b'")
    refused(spark.createDataFrame([("a", "x", 1, None), ("a", "y", 2, None), ("b", "z", 3, None), ("b", None, 4, None)],
                                  GOOD).coalesce(1),
            "ids more than once: '[ab]' \\(2 rows\\), '[ab]' \\(2 rows\\)", missing="skip")
    run = Run(spark.range(1), Settings())
    first, second = run._batches(5), run._batches(6)  # of two threads
    for step in (first.__enter__, second.__enter__, lambda: first.__exit__(None, None, None)):
        step()
        assert session_state(spark) != before
    second.__exit__(None, None, None)
    assert session_state(spark) == before
    spark.sparkContext.setJobDescription(None)


def session_state(spark):
    return ({(row.key, row.value) for row in spark.sql("set").collect()},
            spark.sparkContext.getLocalProperty("spark.job.description"))


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


@pytest.mark.parametrize("method", ["auto", "simhash", "minhash", "exact"])
def test_keys_by_url_alone(method):
    """Whatever the method, there are URLs, no keys of content, and ids."""
    batch = pyarrow.RecordBatch.from_pydict({"id": ["a", "b"], "text": ["one two three four five"] * 2, "url": ["http://x.org/"] * 2})
    task = remote("keys", {**Settings(by="url", url="url", method=method, across="host").tasks(), "parts": 1, "tables": 0, "urls": True,
                           "key_bytes": 6})
    rows, blocks = task(iter([batch]))
    assert rows.num_rows == 2 and blocks.column("part").to_pylist() == [0, 2]


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

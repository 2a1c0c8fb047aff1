"""Input and options that cannot be taken are refused on the driver, by name, and leave nothing behind."""
import pytest

from doppel import spark as doppel_spark

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
    refused(spark.createDataFrame([("a", "x", 1, None), ("b", None, 2, None)], GOOD),
            "column \"text\" is null in 1 row: id 'b'")
    refused(spark.createDataFrame([(None, "x", 1, None)], GOOD), 'column "id" is null in 1 of 1 rows')
    refused(spark.createDataFrame([("a", "x", 1, None), ("a", "y", 2, None)], GOOD), "ids more than once: 'a' \\(2 rows\\)")
    refused(spark.createDataFrame([("a", "x" * 100, 1, None)], GOOD), "more than 50 bytes in 1 row: id 'a'", max_record=50)
    refused(spark.createDataFrame([("a", "x", None, None)], GOOD), "column \"n\", which order= names, is null",
            keep="first", order="n")


def test_rows_without_a_text_stay(spark):
    frame = spark.createDataFrame([("a", "one two three", 1, None), ("b", None, 2, None), ("c", "one two three", 3, None)], GOOD)
    result = doppel_spark.dedup(frame, missing="skip", keep="id")
    assert sorted(row.id for row in result.collect()) == ["a", "b"]
    doppel_spark.release(result)

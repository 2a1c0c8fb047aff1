"""A work folder belongs to one run: its options, its rows, and the table that it compares with. Nothing is resumed over
others."""
import glob
import os
import shutil

import pyarrow.parquet
import pytest
from pyspark.sql import functions as f

from doppel import spark as doppel_spark
from doppel.spark._plan import Run, documents, find_keys
from doppel.spark._settings import Settings
from doppel.spark._store import append_sketches, known_sketches

ROWS = [(str(number), f"some words of document {number} and no other one", "en", number, "rest") for number in range(4)]
SCHEMA = "id string, text string, lang string, size int, rest string"


def keys(frame, work):
    settings = Settings(keep="largest:size", within="lang")
    with Run(frame, settings, 1, work) as run:
        return find_keys(run, frame).count


def test_other_rows(spark, tmp_path):
    """Fewer or other ones, of the same DataFrame or of an overwritten file, with another text or field; but what does not
    decide may be another, and so may the plan."""
    work, path = str(tmp_path / "my work"), str(tmp_path / "in")
    spark.createDataFrame(ROWS, SCHEMA).coalesce(1).write.parquet(path)
    frame = spark.read.parquet(path)
    assert keys(frame.where("false"), work + "2") == keys(frame.where("false"), work + "2") == 0
    assert keys(frame, work) == 4 and keys(frame, work) == 4
    assert keys(frame.repartition(2).drop("rest"), work) == 4
    changed = [("0", None, "en"), ("0", "another text", "en"), ("0", ROWS[0][1], None), ("9", ROWS[0][1], "en")]
    others = [frame.where("id <> '3'")] + [
        spark.createDataFrame([(*row, 0, "rest"), *ROWS[1:]], SCHEMA) for row in changed]
    for other in others:
        with pytest.raises(ValueError, match=f"work: .* is of a run on other rows \\(4 then, {other.count()} now\\)"):
            keys(other, work)
    spark.createDataFrame([*ROWS[1:], ROWS[0][:4] + ("more",), ("4", *ROWS[0][1:])], SCHEMA).write.mode("overwrite").parquet(path)
    with pytest.raises(ValueError, match="other rows \\(4 then, 5 now"):
        keys(spark.read.parquet(path), work)
    assert sorted(os.listdir(tmp_path)) == ["in", "my work", "my work2"]


def test_other_options(spark, tmp_path):
    """Each is refused by name, before anything runs, and so is a folder of something else."""
    frame, work = spark.createDataFrame(ROWS, SCHEMA), str(tmp_path / "work")
    run = Run(frame, Settings(keep="first", order="size"), 2, work)
    doppel_spark._check_run(run, "dedup")
    for options, said in (({"order": "id"}, "order='size', and this run has 'id'"), ({"by": "content,url", "url": "rest"}, "by="),
                          ({"keep": "last"}, "keep="), ({"similarity": 0.5}, "bands="), ({"partitions": 3}, "partitions="),
                          ({"text": "rest"}, "text="), ({"recipe": "article"}, "recipe=")):
        with pytest.raises(ValueError, match=f"work: .* is of a run with .*{said}"):
            doppel_spark.dedup(frame, work=work, **{"keep": "first", "order": "size", "partitions": 2, **options})
    with pytest.raises(ValueError, match="call='dedup'"):
        doppel_spark.dedup_against(frame, "old", work=work, keep="first", order="size", partitions=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "keys").write_text("mine")
    with pytest.raises(ValueError, match="work: .* has files that are not of a run"):
        doppel_spark.dedup(frame, work=str(tmp_path / "other"))


def test_another_table(spark, tmp_path):
    """What the table has when the run begins is what it compares with, and the step that follows is its own."""
    frame, old = spark.createDataFrame(ROWS, SCHEMA).coalesce(1), str(tmp_path / "old")
    doppel_spark.sketch(frame).write.parquet(old + "/step=1")
    run = Run(frame, Settings(), 1, str(tmp_path / "work"))
    assert known_sketches(run, old)[1] == 2
    shutil.copytree(old + "/step=1", old + "/step=2")
    assert known_sketches(run, old)[1] == 2
    with pytest.raises(ValueError, match="old: another run has added step 2"):
        append_sketches(run, documents(frame, run.settings), old, 2)
    shutil.rmtree(old + "/step=2")
    for _ in range(2):  # the second time it is there
        append_sketches(run, documents(frame, run.settings), old, 2)
    assert spark.read.parquet(old + "/step=2").count() == 4 and known_sketches(run, old)[1] == 2
    part = glob.glob(old + "/step=1/part-*")[0]
    column = pyarrow.parquet.read_metadata(part).row_group(0).column(7)
    os.remove(os.path.join(os.path.dirname(part), f".{os.path.basename(part)}.crc"))
    with open(part, "r+b") as file:  # a flipped bit in a page of sketches
        file.seek(column.data_page_offset + column.total_compressed_size - 9)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))
    with pytest.raises(Exception, match="[Ee]ncountered error while reading"):
        known_sketches(run, old)[0].agg(f.max("sketch")).collect()
    os.rename(part, part.replace("part-", "part-x"))
    with pytest.raises(ValueError, match="old: .* has other files than when the run in .* began"):
        known_sketches(run, old)

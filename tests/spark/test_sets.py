"""Spark decides what the library decides, at full size: on labelled sets (DOPPEL_DATA, a folder of JSONL files, gzipped), on
a million documents with planted copies, and where much is alike. Runs at full size only."""
import glob
import gzip
import json
import os

import doppel
import numpy
import pyarrow
import pyarrow.parquet
import pytest
from conftest import FULL

from doppel import spark as doppel_spark

pytestmark = pytest.mark.skipif(not FULL, reason="at full size")

RULES = [
    dict(keep="longest,id"),
    dict(keep="first", order="place", similarity=0.5),
    dict(keep="shortest,id", distance=3),
    dict(keep="id", distance=10, bits=128),
    dict(keep="longest,id", method="exact"),
    dict(keep="first", order="place", by="content,url"),
    dict(keep="id", by="url"),
    dict(keep="longest,id", within="lang", similarity=0.7),
    dict(keep="id", link="any", similarity=0.6),
]
PARTITIONS = (2, 7, 64)
SETS = sorted(glob.glob(os.path.join(os.environ.get("DOPPEL_DATA", ""), "*.jsonl.gz"))) if os.environ.get("DOPPEL_DATA") else []
COLUMNS = pyarrow.schema([("id", pyarrow.string()), ("text", pyarrow.string()), ("url", pyarrow.string()),
                          ("lang", pyarrow.string()), ("place", pyarrow.int64())])


def read_set(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return pyarrow.Table.from_pylist([{"id": str(row["id"]), "text": row["text"], "url": row.get("url"),
                                       "lang": row.get("lang"), "place": place} for place, row in enumerate(rows)], COLUMNS)


def same(spark, table, folder, partitions, rules):
    """Compares all that is decided; gives how many documents are copies."""
    path = str(folder / "in.parquet")
    pyarrow.parquet.write_table(table, path, row_group_size=max(1, table.num_rows // 5))
    found = doppel_spark.cluster(spark.read.parquet(path), url="url", partitions=partitions, **rules)
    out = str(folder / "out")
    found.write.mode("overwrite").parquet(out)
    doppel_spark.release(found)
    names = ["id", "group", "kept", "reason", "similarity"]
    ours = pyarrow.parquet.read_table(out).select(names).sort_by("id")
    options = {name: value for name, value in rules.items() if name != "order"}
    wanted = pyarrow.table(doppel.cluster(table, **options)).select(names).sort_by("id")
    for name in names:
        assert ours.column(name).to_pylist() == wanted.column(name).to_pylist(), name
    return table.num_rows - sum(ours.column("kept").to_pylist())


@pytest.mark.parametrize("number", range(len(SETS)), ids=[os.path.basename(path).split(".")[0] for path in SETS])
def test_labelled(spark, tmp_path, number):
    """Each set with each rule; each rule with each number of partitions, over the sets."""
    table = read_set(SETS[number])
    removed = [same(spark, table, tmp_path, PARTITIONS[(number + which) % 3], rules) for which, rules in enumerate(RULES)]
    print(os.path.basename(SETS[number]), removed)


def planted(count, hot, template, chain):
    """A table of invented documents of 60 words: a tenth near copies; one text `hot` times, pages of a template, and a
    chain in which each is near the next."""
    rng = numpy.random.default_rng(count)
    words = numpy.array([f"w{number}" for number in range(30000)], dtype=object)
    numbers = rng.integers(len(words), size=(count, 60))
    copies = numpy.arange(10, count, 10)
    numbers[copies] = numbers[copies - rng.integers(1, 10, size=len(copies))]
    numbers[copies, rng.integers(60, size=len(copies))] = rng.integers(len(words), size=len(copies))
    numbers[:hot] = numbers[0]
    numbers[hot:hot + template, :50] = numbers[hot, :50]
    link = rng.integers(len(words), size=chain * 3 + 60)
    for step in range(chain):
        numbers[hot + template + step] = link[3 * step:3 * step + 60]
    order = rng.permutation(count)
    texts = [" ".join(words[row].tolist()) for row in numbers[order]]
    return pyarrow.table({"id": [f"doc-{number}" for number in rng.permutation(count)], "text": texts,
                          "url": pyarrow.nulls(count, pyarrow.string()), "lang": pyarrow.nulls(count, pyarrow.string()),
                          "place": numpy.arange(count)})


@pytest.mark.parametrize("rules", [dict(keep="longest,id"), dict(keep="first", order="place", distance=3)], ids=str)
def test_a_million(spark, tmp_path, rules):
    assert same(spark, planted(1000000, 20000, 20000, 5000), tmp_path, 16, rules) > 100000


@pytest.mark.parametrize("hot, template, chain", [(150000, 0, 0), (0, 100000, 0), (0, 0, 100000)])
@pytest.mark.parametrize("rules", [dict(keep="longest,id", similarity=0.7), dict(keep="id", link="any", similarity=0.6)], ids=str)
def test_skewed(spark, tmp_path, hot, template, chain, rules):
    same(spark, planted(200000, hot, template, chain), tmp_path, 7, rules)

"""Spark decides what the library on one machine decides, of the same documents: group, kept, reason and similarity."""
import decimal

import doppel
import pyarrow
import pytest
from conftest import FULL
from invented import SCHEMA, documents

from doppel import spark as doppel_spark

# test_job.py has the rule that there is without an option, longest,id.
RULES = [
    dict(keep="first", order="place", by="content,url"),
    dict(keep="newest:date,id", distance=6, within="host"),
]
MORE = [
    dict(keep="longest,id"),
    dict(keep="id", across="lang", similarity=0.6),
    dict(keep="largest:size,last", order="place", link="any", by=["content", "url"]),
    dict(keep="longest,id", method="exact"),
    dict(keep="id", by="url"),
    dict(keep="id", by="url", method="simhash"),
    dict(keep="https,shortest-url", within="domain"),
    dict(keep="shortest,oldest:date", distance=0),
    dict(keep="last", order="place", distance=12, link="any"),
    dict(keep="smallest:size", similarity=0.3),
    dict(keep="id", across="host", by="content,url"),
    dict(keep="longest", method="minhash", bands=20, rows=5, min_words=1),
    dict(keep="first", order="place", bits=128, distance=3),
    dict(keep="longest,id", recipe="article", similarity=0.9),
]
CASES = [(rules, partitions) for rules in RULES + MORE for partitions in (2, 7, 64)] if FULL else [
    (rules, 2 + number) for number, rules in enumerate(RULES)]


def expected(made, **options):
    """What the library decides. Without `keep`, or where rules leave ties, ids decide in Spark."""
    options.pop("order", None)
    rules = options["keep"].split(",")
    if not {"id", "first", "last"} & {*rules}:
        options["keep"] += ",id"
    table = pyarrow.Table.from_pylist(made, pyarrow.schema([
        ("id", pyarrow.string()), ("text", pyarrow.string()), ("url", pyarrow.string()), ("lang", pyarrow.string()),
        ("date", pyarrow.string()), ("size", pyarrow.int32()), ("place", pyarrow.int64())]))
    return {row["id"]: (row["group"], row["kept"], row["reason"], row["similarity"])
            for row in doppel.cluster(table, **options)}


@pytest.fixture(scope="module")
def made():
    return documents(1, *((600, 2000, 600) if FULL else ()))


@pytest.fixture(scope="module")
def frame(spark, made):
    return spark.createDataFrame(made, SCHEMA).repartition(3)


@pytest.mark.parametrize("rules, partitions", CASES, ids=str)
def test_groups(made, frame, rules, partitions):
    result = doppel_spark.cluster(frame, url="url", partitions=partitions, **rules)
    found = {row.id: (row.group, row.kept, row.reason, row.similarity) for row in result.collect()}
    doppel_spark.release(result)
    assert found == expected(made, **rules)


def test_pairs(made, frame):
    result = doppel_spark.pairs(frame, similarity=0.7)
    found = {(row.a, row.b): (row.distance, row.similarity) for row in result.collect()}
    doppel_spark.release(result)
    table = pyarrow.Table.from_pylist(made)
    wanted = {tuple(sorted((row["a"], row["b"]))): (row["distance"], row["similarity"])
              for row in doppel.pairs(table, similarity=0.7)}
    assert found == wanted


def test_stars_find_the_same_components(spark, monkeypatch):
    """Contraction, for more links than one task takes, gives what that task gives; and so do wide keys."""
    from doppel.spark import _plan

    made = documents(1, *((600, 2000, 600, 30) if FULL else (10, 5, 5, 6)))
    frame = spark.createDataFrame(made, SCHEMA).repartition(2)

    monkeypatch.setattr(_plan, "_ONE_TASK", 0)
    monkeypatch.setattr(_plan, "_WIDE", 0)
    result = doppel_spark.cluster(frame, keep="id", link="any", similarity=0.7)
    found = {row.id: (row.group, row.kept, row.reason, row.similarity) for row in result.collect()}
    doppel_spark.release(result)
    assert found == expected(made, keep="id", link="any", similarity=0.7)


def test_steps_are_one_run(spark, tmp_path):
    """dedup_against, of three thirds (or two halves) one after the other, keeps what one run with `first` keeps of all, also
    where copies are kept (across) and one column has id and URL. Then come documents that are all alone."""
    made = documents(2, *((300, 200, 200) if FULL else (30, 10, 10)))
    for row in made:
        row.update(id=f"http://{row['id']}.org/", lang=row["lang"] or "fr")
    options = dict(keep="first", order="place", across="lang", by="content,url", url="id")
    steps = 3 if FULL else 2
    length = len(made) // steps + 1
    kept, removed = set(), {}
    for step in range(steps):
        some = made[step * length:(step + 1) * length][::-1]
        result = doppel_spark.dedup_against(spark.createDataFrame(some, SCHEMA), str(tmp_path / "old"), annotate=True, **options)
        for row in result.collect():
            kept |= {row.id} if not row.isDuplicate else set()
            removed.update({row.id: (row.originalId, row.similarity)} if row.isDuplicate else {})
        doppel_spark.release(result)
    wanted = expected(made, **options)
    assert kept == {id for id, row in wanted.items() if row[1]}
    assert removed == {id: (row[0], row[3]) for id, row in wanted.items() if not row[1]}
    alone = [{"id": f"http://new.org/{n}", "text": " ".join(f"n{n}w{m}" for m in range(9)), "lang": "de", "place": n} for n in (1, 2)]
    result = doppel_spark.dedup_against(spark.createDataFrame(alone, SCHEMA), str(tmp_path / "old"), append=False, **options)
    assert result.count() == 2
    doppel_spark.release(result)
    with pytest.raises(ValueError, match="old: .*bands=30.*bands=.*follow|was made with"):
        doppel_spark.dedup_against(spark.createDataFrame(made[:5], SCHEMA), str(tmp_path / "old"), similarity=0.5)


NAMES = ["node", "a.b", "list", "originalId", "component", "it`s", "place", "SIMILARITY", "same", "same"]


def test_rows_keep_their_columns(made, spark):
    """All columns stay, whatever their names, a column of ids keeps its type, what is there by the names of ours is
    replaced, and rows without a text stay with missing="skip". So it is with large types of Arrow."""
    some = [(number, document["text"], [1, 2], "was here", "x", decimal.Decimal("1.5"), number, 0, 1, 2)
            for number, document in enumerate(made[:150])]
    schema = "a bigint, b string, c array<int>, d string, e string, f decimal(9,2), g int, h int, i int, j int"
    frame = spark.createDataFrame([*some, (150, None, [], None, "x", None, 150, 0, 1, 2)], schema).toDF(*NAMES)
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", "true")
    try:
        result = doppel_spark.dedup(frame, annotate=True, id="node", text="a.b", within="component", order="place",
                                    keep=["largest:it`s", "first"], missing="skip")
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert result.columns == ["node", "a.b", "list", "component", "it`s", "place", "same", "same", "group", "isDuplicate",
                              "originalId", "similarity"]
    rows = {row.node: row for row in result.collect()}
    assert len(rows) == 151 and dict(result.dtypes)["originalId"] == "bigint" and not rows[150].isDuplicate
    wanted = doppel.cluster([text for _, text, *_ in some])
    assert [(rows[n].group, rows[n].isDuplicate) for n in range(150)] == [(each.group, not each.kept) for each in wanted]
    doppel_spark.release(result)

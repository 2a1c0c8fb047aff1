"""dedup, cluster, pairs, overlap and decide on data in memory: every kind of data gives what a list gives, and that is
what the doppel command gives; bad input; threads, signals, forks and memory.

DOPPEL_COMMAND names the doppel command, whose answers are compared.
"""
import gc
import os
import random
import signal
import sys
import threading
import time
import weakref

import pytest

import doppel
from doppel import _batch, _doppel
from documents import (SANITIZED, changed, check_interrupt, make_documents, make_text, many_texts, needs_command,
                       read_jsonl, resident, run_command, run_python, run_threads, write_jsonl)

try:
    from hypothesis import given, strategies as st
except ImportError:
    st = None

FOX = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
TEXTS = [FOX, "nothing of this was ever said before by anyone here", FOX.upper()]
DOCUMENTS = make_documents(160)


def library(name):
    return pytest.importorskip(name)


# ---- every kind of data gives what a list gives ----


def as_arrays(texts, ids):
    pa = library("pyarrow")
    half = len(texts) // 2
    sliced = pa.array(["before", None, *texts, "after"]).slice(2, len(texts))
    yield "sliced", sliced
    yield "chunks", pa.chunked_array([texts[:half], [], texts[half:]], pa.string())
    yield "large", pa.array(texts, pa.large_string())
    yield "views", pa.array(texts, pa.string_view())
    yield "binary", pa.array([text if text is None else text.encode() for text in texts], pa.binary())
    yield "dictionary", pa.array(texts).dictionary_encode()
    yield "sliced dictionary", pa.array(["x", *texts]).dictionary_encode().slice(1)


def arrow_table(texts, ids):
    pa = library("pyarrow")
    return pa.table({"n": range(len(texts)), "text": pa.array(texts, pa.string()), "id": ids,
                     "nested": [{"a": [1]}] * len(texts)})


def sliced_table(texts, ids):
    table = arrow_table(["before", *texts, "after"], ["x", *ids, "y"])
    return library("pyarrow").Table.from_batches(table.to_batches(max_chunksize=3), table.schema).slice(1, len(texts))


def polars_lazy(texts, ids):
    polars = library("polars")
    return polars.LazyFrame({"text": texts, "id": ids}, schema={"text": polars.String, "id": polars.String})


def pandas_frame(texts, ids):
    pandas = library("pandas")
    return pandas.DataFrame({"id": ids, "text": pandas.Series(texts, dtype=object), "odd": [object()] * len(texts)})


def pandas_arrow(texts, ids):
    pandas = library("pandas")
    return arrow_table(texts, ids).drop(["nested"]).to_pandas(types_mapper=pandas.ArrowDtype)


def duckdb_relation(texts, ids):
    table = arrow_table(texts, ids)
    return library("duckdb").from_arrow(table)


def dataset(texts, ids):
    return library("datasets").Dataset(arrow_table(texts, ids))


TABLES = {
    "table": arrow_table, "slice": sliced_table,
    "batch": lambda texts, ids: arrow_table(texts, ids).to_batches()[0],
    "reader": lambda texts, ids: sliced_table(texts, ids).to_reader(),
    "dicts": lambda texts, ids: [{"text": text, "id": id} for text, id in zip(texts, ids)],
    "columns": lambda texts, ids: {"id": ids, "text": texts},
    "arrow columns": lambda texts, ids: {"id": library("pyarrow").array(ids), "text": library("pyarrow").array(texts)},
    "polars": lambda texts, ids: library("polars").DataFrame(arrow_table(texts, ids)),
    "lazy": polars_lazy, "pandas": pandas_frame, "pandas arrow": pandas_arrow, "duckdb": duckdb_relation,
    "dataset": dataset,
}


def answers(data, **options):
    """All calls, as plain values."""
    unique = doppel.dedup(data(), **options)
    rows = [tuple(row.values()) for row in unique.removed]
    return {
        "mask": unique.mask.to_list(), "removed": rows, "summary": {**unique.summary, "bytes": 0},
        "cluster": [tuple(row) if isinstance(row, tuple) else tuple(row.values())
                    for row in doppel.cluster(data(), **options)],
        "pairs": [tuple(row) if isinstance(row, tuple) else tuple(row.values()) for row in doppel.pairs(
            data(), **{name: value for name, value in options.items() if name != "keep"})],
    }


def overlaps(data, **options):
    found = doppel.overlap(data(), **options)
    if isinstance(found, list):
        return [(o.a, o.b, o.containmentAB, o.containmentBA, [tuple(p)[:5] for p in o.passages]) for o in found]
    return [(o["a"], o["b"], o["containmentAB"], o["containmentBA"],
             [*zip(o["aStarts"], o["aEnds"], o["bStarts"], o["bEnds"], o["words"])]) for o in found]


def texts_of(seed, count=40, nulls=False):
    random_ = random.Random(seed)
    texts = [document["text"] for document in make_documents(count, seed)]
    return [None if nulls and random_.random() < 0.2 else text for text in texts]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("nulls", [False, True])
def test_arrays_give_what_lists_give(seed, nulls):
    texts = texts_of(seed, nulls=nulls)
    options = {"missing": "skip"} if nulls else {}
    expected, shared = answers(lambda: texts, **options), overlaps(lambda: texts, **options)
    assert expected["pairs"] and any(not stays for stays in expected["mask"])
    for name, data in as_arrays(texts, None):
        assert answers(lambda: data, **options) == expected, name
        assert overlaps(lambda: data, **options) == shared, name


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_of_all_libraries_give_what_lists_give(make, nulls):
    texts = texts_of(7, nulls=nulls)
    ids = [f"id {number}" for number in range(len(texts))]
    options = {"missing": "skip"} if nulls else {}
    by_row, shared = answers(lambda: texts, **options), overlaps(lambda: texts, **options)
    named = {key: [(ids[row[0]], ids[row[1]], *row[2:]) for row in by_row[key]]
             for key in ("removed", "cluster", "pairs")}
    assert answers(lambda: make(texts, ids), **options) == {**by_row, **named}
    assert overlaps(lambda: make(texts, ids), **options) == [(ids[a], ids[b], *rest) for a, b, *rest in shared]
    unique = doppel.dedup(make(texts, ids), id=None, **options)
    assert unique.mask.to_list() == by_row["mask"] and [tuple(r.values()) for r in unique.removed] == by_row["removed"]
    kept = [id for id, stays in zip(ids, by_row["mask"]) if stays]
    assert [row["id"] for row in unique] == kept


def test_datasets_give_what_lists_give():
    datasets = library("datasets")
    texts = texts_of(3)
    expected = answers(lambda: texts)
    dataset = datasets.Dataset.from_dict({"text": ["first"] + texts, "tags": [["a"]] * (len(texts) + 1)})
    chosen = dataset.select(range(1, len(texts) + 1))
    assert answers(lambda: chosen) == expected
    kept = doppel.dedup(chosen).kept
    assert isinstance(kept, datasets.Dataset)
    assert kept["text"][:] == [text for text, stays in zip(texts, expected["mask"]) if stays]
    streamed = chosen.to_iterable_dataset()
    unique = doppel.dedup(streamed)
    assert unique.mask.to_list() == expected["mask"]
    assert unique.kept["tags"].to_pylist() == [["a"]] * len(unique)  # nested columns, too
    assert answers(lambda: streamed)["pairs"] == expected["pairs"]
    with pytest.raises(TypeError, match="data: a DatasetDict has several datasets"):
        doppel.dedup(datasets.DatasetDict({"train": dataset}))


if st:
    words = st.lists(st.sampled_from(["ka", "lo", "mi", "nu", "Pé"]), min_size=0, max_size=14).map(" ".join)
    texts_or_null = st.lists(st.one_of(words, words.map(str.upper), st.none()), max_size=14)

    @given(texts_or_null, st.integers(0, 5), st.integers(0, 5), st.sampled_from(["auto", "exact", "simhash"]))
    def test_any_texts_give_the_same_in_every_layout(texts, before, cut, method):
        pa = library("pyarrow")
        options = {"missing": "skip", "method": method, "min_words": 1}
        expected = answers(lambda: texts, **options)
        column = pa.array(["x"] * before + texts + ["y"], pa.string()).slice(before, len(texts))
        chunks = pa.chunked_array([column.slice(0, cut), column.slice(cut)])
        ids = pa.array(range(100, 101 + before + len(texts))).slice(1 + before)
        for data in (column, chunks, chunks.cast(pa.string_view()), chunks.dictionary_encode(),
                     pa.table({"text": chunks, "other": ids})):
            assert answers(lambda data=data: data, **options) == expected
        named = pa.table({"text": chunks.cast(pa.large_string()), "id": ids})
        removed = doppel.dedup(named, **options).removed
        assert removed["id"].to_list() == [100 + before + 1 + row[0] for row in expected["removed"]]


def test_against_gives_the_same_in_every_layout():
    pa = library("pyarrow")
    texts, other = texts_of(1), texts_of(1)[:15] + texts_of(2)
    expected = answers(lambda: texts, against=other)
    assert expected["mask"] != answers(lambda: texts)["mask"]
    assert expected["summary"]["known"] == len(other)
    table = pa.table({"text": other, "extra": [[1]] * len(other)})
    assert answers(lambda: pa.chunked_array([texts]), against=table) == expected
    assert overlaps(lambda: pa.array(texts), against=table) == overlaps(lambda: texts, against=other)
    nulls = [None, *other[:9], None, *other[9:]]
    skipped = doppel.dedup(texts, against=nulls, missing="skip")
    assert skipped.mask.to_list() == expected["mask"]
    assert [row["originalId"] for row in skipped.removed] != [row[1] for row in expected["removed"]]  # rows of `nulls`
    for row, (_, original, *_) in zip(skipped.removed, expected["removed"]):
        assert row["originalId"] == original or nulls[row["originalId"]] == other[original]
    with pytest.raises(ValueError, match="against: row 0 is null"):
        doppel.dedup(texts, against=nulls)


def test_ids_of_any_kind():
    pa = library("pyarrow")
    for ids, kind in ((pa.array([5, 6, 7], pa.int8()), int), (pa.array([5, 6, 2**64 - 1], pa.uint64()), int),
                      (pa.array(["a", "b", "é"]), str), (pa.array([1.5, 2.5, 3.5]), str),
                      (pa.array(["a", None, "é"]).dictionary_encode(), str), (pa.array([-1, None, -3]), int)):
        removed = doppel.dedup(pa.table({"text": TEXTS, "id": ids})).removed
        assert removed["id"].to_list() == [kind(ids[2].as_py())]
        assert removed["originalId"].to_list() == [kind(ids[0].as_py())]
    both = doppel.dedup(pa.table({"text": TEXTS, "id": [1, 2, 3]}), against={"text": [FOX], "id": ["old"]})
    assert both.removed["originalId"].to_list() == ["old", "old"] and both.removed["id"].to_list() == ["1", "3"]
    unnamed = doppel.dedup({"text": TEXTS, "key": ["x", "y", "z"]}, id="key")
    assert unnamed.removed["id"].to_list() == ["z"]


def test_kept_is_of_the_library_of_the_data():
    pa, pandas, polars = library("pyarrow"), library("pandas"), library("polars")
    kept = [0, 1]
    table = pa.table({"text": TEXTS, "n": [0, 1, 2], "nested": [[{"a": 1}], None, []]})
    for data in (table, table.to_batches()[0]):
        unique = doppel.dedup(data)
        assert isinstance(unique.kept, type(data)) and unique.kept["n"].to_pylist() == kept
    for data in (pa.array(TEXTS), pa.chunked_array([TEXTS])):
        unique = doppel.dedup(data)
        assert isinstance(unique.kept, type(data)) and unique.kept.to_pylist() == TEXTS[:2] == list(unique)
        assert unique[-1] == TEXTS[1] and unique[:1] == TEXTS[:1]
    frame = polars.DataFrame(table)
    assert doppel.dedup(frame).kept.equals(frame[:2])
    assert doppel.dedup(polars.Series(TEXTS)).kept.to_list() == TEXTS[:2]
    frame = pandas.DataFrame({"text": TEXTS, "odd": [object, 5, None]}, index=["x", "y", "y"])
    assert doppel.dedup(frame).kept.equals(frame[:2])
    assert pa.table(doppel.dedup(frame[["text"]]))["text"].to_pylist() == TEXTS[:2]
    for column in (pandas.Series(TEXTS), pandas.Index(TEXTS)):
        unique = doppel.dedup(column)
        assert unique.kept.equals(column[:2]) and TEXTS[:2] == pa.chunked_array(unique).to_pylist() == list(unique)
    frame = pandas.DataFrame({"text": [FOX, FOX, "one two", "three four"]})
    assert pa.table(doppel.dedup(frame)).column_names == ["text"]  # the numbers of rows are no column; another index is
    named = doppel.dedup(frame.set_index(pandas.Index([1.5, 0.5, 2.5, 3.5], name="at")))
    assert pa.table(named).column_names == ["text", "at"] and named[1]["text"] == "one two"
    reader = doppel.dedup(table.to_reader())
    assert isinstance(reader.kept, pa.Table) and reader.kept.equals(table[:2])


def test_kept_has_columns_of_any_type():
    """Also of those that pyarrow has no filter for, sliced and in chunks; two columns may have one name."""
    pa = library("pyarrow")
    columns = [pa.array([None, *TEXTS], kind) for kind in (pa.string_view(), pa.binary_view(), pa.large_string())]
    columns += [pa.array([[], ["a"], None, ["b"]], pa.list_(pa.string_view())), pa.array([None, {"a": "x"}, None, {"a": "y"}],
                pa.struct([("a", pa.string_view())])), pa.array([None, [1], [2, 3], []], pa.list_view(pa.int8())),
                pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int16()), pa.array(["a", "b"]))]
    for column in columns:
        table = pa.Table.from_arrays([columns[0], column, column], ["text", "x", "x"]).slice(1)
        chunks = pa.concat_tables([table[:1], table[1:]])
        for data in (table, chunks, table.to_batches()[0], table[:0]):
            unique = doppel.dedup(data)
            assert unique.kept.equals(data[:2]) and isinstance(unique.kept, type(data)), column.type
            assert pa.table(unique).to_pylist() == list(unique) == data[:2].to_pylist()
    for data in (columns[0].slice(1), pa.chunked_array([columns[0].slice(1)]), columns[0].slice(4)):
        assert doppel.dedup(data).kept.equals(data[:2]) and isinstance(doppel.dedup(data).kept, type(data))
    twice = pa.Table.from_arrays([columns[0], columns[0]], ["text", "text"])
    for data in (twice, twice.cast(pa.schema([("text", pa.string())] * 2)).to_pandas()):
        with pytest.raises((TypeError, ValueError), match='the column "text" is there twice'):
            doppel.dedup(data)


def test_the_rows_that_stay_share_the_callers_memory_and_have_all_columns():
    pa = library("pyarrow")
    table = pa.table({"text": TEXTS, "n": [0, 1, 2], "nested": [[{"a": 1}], None, []]})
    unique = doppel.dedup(table)
    shared = pa.table(unique)
    assert shared.equals(table[:2]) and shared.schema.equals(table.schema)
    assert shared["text"].chunk(0).buffers()[2].address == table["text"].chunk(0).buffers()[2].address
    assert len(unique) == 2 and unique[0] == table[:1].to_pylist()[0] and unique[-1] == list(unique)[-1]
    assert unique[::-1] == table[:2].to_pylist()[::-1] and unique[5:] == []
    for row in (2, -3):
        with pytest.raises(IndexError):
            unique[row]


def test_lists_and_other_iterables_give_lists():
    assert doppel.dedup(tuple(TEXTS)) == TEXTS[:2]
    assert doppel.dedup(text for text in TEXTS) == TEXTS[:2]
    assert doppel.dedup(dict.fromkeys(TEXTS).keys()) == TEXTS[:2]
    rows = [{"text": text, "anything": object()} for text in TEXTS]
    assert doppel.dedup(rows) == rows[:2]
    assert doppel.dedup(iter(rows)) == rows[:2]
    assert doppel.dedup({"text": TEXTS, "anything": [{}, set(), object]}) == [
        {"text": TEXTS[0], "anything": {}}, {"text": TEXTS[1], "anything": set()}]
    assert doppel.dedup({"text": iter(TEXTS)}) == [{"text": text} for text in TEXTS[:2]]
    numpy = library("numpy")
    assert doppel.dedup(numpy.array(TEXTS)) == TEXTS[:2]

    class Once:
        """Says how long it is, and gives something else each time."""
        given = 0

        def __len__(self):
            return 3

        def __iter__(self):
            self.given += 1
            return iter(TEXTS if self.given == 1 else ["x", "y", "z"])
    assert doppel.dedup(Once()) == TEXTS[:2]


def test_numbers_and_times_as_texts_are_written_out():
    """They are no strings, which stay where they are until near ones are compared."""
    pa = library("pyarrow")
    random_ = random.Random(1)
    times = [1_700_000_000 + 86_400 * random_.randint(0, 3) + 60 * random_.randint(0, 50) for _ in range(600)]
    options = {"min_words": 1, "recipe": "simhash64:chars=3", "similarity": 0.7}
    moments = pa.array(times, pa.timestamp("s"))
    for column in (moments, pa.array(times), moments.dictionary_encode()):
        texts = [time.isoformat() if hasattr(time, "isoformat") else str(time) for time in column.to_pylist()]
        expected = answers(lambda: texts, **options)
        assert any(row[3] < 1 for row in expected["pairs"])
        assert answers(lambda: pa.table({"text": column}), **options) == expected
        single = {"recipe": "simhash64:words=1"}
        assert overlaps(lambda: column, **single) == overlaps(lambda: texts, **single)


def test_pages_are_read_from_a_column_with_html():
    pa = library("pyarrow")
    pages = [f"<html><nav>menu</nav><title>t</title><p>{text}" if text else None for text in [*TEXTS, None]]
    table = pa.table({"html": pages, "text": [None, None, None, FOX], "id": [*"abcd"]})
    unique = doppel.dedup(table)
    assert unique.removed["originalId"].to_list() == ["a", "a"] and unique.mask.to_list() == [True, True, False, False]
    titles = [{"html": f"<title>A title that is the same, {n}</title><p>text {n}"} for n in "ab"]
    assert doppel.dedup(titles, by="title") == titles[:1]  # which pages have themselves
    near = [f"<p>{text}" for text in texts_of(5, 60)]  # these are read a second time, to be compared
    expected = answers(lambda: texts_of(5, 60))
    assert answers(lambda: pa.table({"html": near}))["pairs"] == expected["pairs"]
    assert answers(lambda: [{"html": page} for page in near])["mask"] == expected["mask"]


# ---- what the command gives ----

OPTIONS = [
    {}, {"similarity": 0.5}, {"method": "minhash", "bands": 20, "rows": 4}, {"method": "simhash"},
    {"distance": 8}, {"distance": 0}, {"method": "exact"}, {"by": "url"}, {"by": "title"},
    {"by": ["content", "url", "title"]}, {"keep": "last"}, {"keep": "longest"}, {"keep": "newest:date"},
    {"keep": "https,shortest-url,first", "by": "content,url"}, {"keep": "largest:score,shortest"}, {"keep": "longest,id"},
    {"within": "lang"}, {"across": "lang"}, {"within": "host"}, {"link": "any", "similarity": 0.6},
    {"boilerplate": 0.02}, {"min_words": 1}, {"recipe": "article"}, {"bits": 32, "distance": 3},
    {"url_keep": "query,slash", "by": "url"}, {"by": "url,content", "across": "domain"},
    {"only_contained": 0.9}, {"only_contained": 1, "keep": "longest", "similarity": 0.5},
]


@pytest.fixture(scope="module")
def jsonl(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("documents") / "documents.jsonl", DOCUMENTS)


def rounded(number):
    return None if number is None else float(f"{number:.6g}")


@needs_command
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_command_gives_the_same(options, jsonl, tmp_path):
    removed = tmp_path / "removed.jsonl"
    kept = run_command("dedup", jsonl, "-o", "-", "--removed", removed, **options)
    unique = doppel.dedup(DOCUMENTS, **options)
    assert [row["id"] for row in unique] == [row["id"] for row in kept]
    assert [dict(row, similarity=rounded(row["similarity"])) for row in unique.removed] == [
        {name: row[name] for name in ("id", "originalId", "reason", "similarity", "distance")}
        for row in read_jsonl(removed)]
    groups, found = run_command("cluster", jsonl, **options), doppel.cluster(DOCUMENTS, **options)
    assert [dict(row._asdict(), similarity=rounded(row.similarity)) for row in found] == [
        {name: row[name] for name in ("id", "group", "kept", "reason", "similarity")} for row in groups]
    options = {name: value for name, value in options.items() if name not in ("keep", "link", "only_contained")}
    found = run_command("pairs", jsonl, **options)
    assert [dict(row._asdict(), similarity=rounded(row.similarity)) for row in doppel.pairs(DOCUMENTS, **options)] == [
        {name: row[name] for name in ("a", "b", "distance", "similarity")} for row in found]


@needs_command
@pytest.mark.parametrize("keep", ("first", "longest"))
def test_the_command_keeps_the_same_copies(keep, jsonl, tmp_path):
    removed = tmp_path / "removed.jsonl"
    kept = run_command("dedup", jsonl, "-o", "-", "--removed", removed, keep=keep, keep_copies=2, similarity=0.5)
    unique = doppel.dedup(DOCUMENTS, keep=keep, keep_copies=2, similarity=0.5)
    fewer = doppel.dedup(DOCUMENTS, keep=keep, similarity=0.5)
    assert len(fewer) < len(unique) < len(DOCUMENTS)
    assert [row["id"] for row in unique] == [row["id"] for row in kept]
    assert [row["id"] for row in unique.removed] == [row["id"] for row in read_jsonl(removed)]
    assert unique.summary["kept"] == len(unique) == sum(unique.mask)
    out = tmp_path / "out.jsonl"
    assert doppel.dedup_files(jsonl, out, keep=keep, keep_copies=2, similarity=0.5)["kept"] == len(unique)
    assert [row["id"] for row in read_jsonl(out)] == [row["id"] for row in kept]


@needs_command
def test_the_command_gives_the_same_against_others(jsonl, tmp_path):
    other = make_documents(60, seed=1) + make_documents(60, seed=9)
    other = [dict(document, id=f"o{number}") for number, document in enumerate(other)]
    path = write_jsonl(tmp_path / "other.jsonl", other)
    for options in ({}, {"by": "url"}, {"method": "simhash"}, {"keep": "longest"}):
        kept = run_command("dedup", jsonl, "-o", "-", against=path, **options)
        assert [row["id"] for row in doppel.dedup(DOCUMENTS, against=other, **options)] == [row["id"] for row in kept]
    expected = run_command("pairs", jsonl, against=path, collapse=True)
    pairs = doppel.pairs(DOCUMENTS, against=other, collapse=True)
    assert [(pair.a, pair.b) for pair in pairs] == [(pair["a"], pair["b"]) for pair in expected]


@needs_command
@pytest.mark.parametrize("options", [{}, {"containment": 0.3}, {"words": 8}, {"sample": 1}], ids=str)
def test_the_command_finds_the_same_overlaps(options, jsonl):
    found = run_command("overlap", jsonl, **options)
    expected = [(o["a"], o["b"], o["containmentAB"], o["containmentBA"],
                 [(p["a"][0], p["a"][1], p["b"][0], p["b"][1], p["words"]) for p in o["passages"]]) for o in found]
    assert expected
    assert [(o.a, o.b, rounded(o.containmentAB), rounded(o.containmentBA), [tuple(p)[:5] for p in o.passages])
            for o in doppel.overlap(DOCUMENTS, **options)] == expected


@pytest.mark.parametrize("options", [{}, {"by": "url,title,content", "keep": "newest:date"}, {"boilerplate": 0.02}],
                         ids=str)
def test_threads_do_not_matter(options):
    documents = make_documents(2100, seed=4)  # several parts of 1024 rows
    expected = answers(lambda: documents, threads=1, **options)
    for threads in (2, 7):
        assert answers(lambda: documents, threads=threads, **options) == expected
    texts = [document["text"] for document in documents[:300]]
    assert overlaps(lambda: texts, threads=1) == overlaps(lambda: texts, threads=7)


# ---- bad input ----

DATA = {"text": TEXTS, "id": ["a", "b", "c"]}
BAD_DATA = [
    ([FOX, None], ValueError, "data: row 1 is null; missing=\"skip\" passes over nulls"),
    ([FOX, float("nan")], ValueError, "data: row 1 is null"),
    ([{"text": FOX}, {"id": 1}], ValueError, "data: row 1 is null"),
    ([FOX, 5], TypeError, r"data\[1\]: expected str, not int"),
    ([FOX, [FOX]], TypeError, r"data\[1\]: expected str, not list"),
    ([FOX, {"text": FOX}], TypeError, r"data\[1\]: expected str, not dict"),
    ([{"text": FOX}, FOX], TypeError, r"data\[1\]: expected dict, not str"),
    ([FOX, b"\xff"], doppel.InputError, r"data\[1\]: not valid UTF-8"),
    ([FOX, "a\ud800"], doppel.InputError, r"data\[1\]: not valid UTF-8: a lone surrogate at position 1"),
    ([{"text": "\ud800"}], doppel.InputError, r"data\['text'\]\[0\]: not valid UTF-8"),
    ("text", TypeError, "data: expected a list of str or Arrow data, not str"),
    (None, TypeError, "data: expected a list of str or Arrow data, not NoneType"),
    (5, TypeError, "data: expected a list of str or Arrow data, not int"),
    ({"text": TEXTS, "id": [1]}, ValueError, 'data: the columns differ in length: "text" has 3, "id" has 1'),
    ({"body": TEXTS}, KeyError, 'no column "text"; the columns are body'),
    ({"text": TEXTS, "id": ["a", "b", "a"]}, ValueError, 'id: row 2 repeats "a" of row 0; id=None numbers the rows'),
    ({"text": TEXTS, "id": [1, 2, 2]}, ValueError, 'id: row 2 repeats "2" of row 1'),
]


@pytest.mark.parametrize("call", [doppel.dedup, doppel.cluster, doppel.pairs, doppel.overlap])
@pytest.mark.parametrize("data, kind, message", BAD_DATA)
def test_bad_data_is_named(call, data, kind, message):
    with pytest.raises(kind, match=message):
        call(data)
    if data is not None:
        with pytest.raises(kind, match=message.replace("data", "against", 1)):
            call(DATA, against=data)


def test_bad_arrow_data_is_named():
    pa = library("pyarrow")
    for data, kind, message in [
            (pa.array([FOX, None]), ValueError, "data: row 1 is null"),
            (pa.table({"text": [[FOX]]}), TypeError, 'data: the column "text" is of the Arrow type'),
            (pa.array([[1]]), TypeError, "data: the column is of the Arrow type"),
            (pa.array([FOX.encode(), b"\xe9"]), doppel.InputError, r"data\[1\]: not valid UTF-8"),
            (pa.table({"body": TEXTS}), KeyError, 'no column "text"; the columns are body'),
            (pa.table({"body": pa.array([], pa.string())}), KeyError, 'no column "text"; the columns are body'),
            (pa.table({}), KeyError, 'no column "text"; there are no columns'),
            (pa.table({"text": TEXTS, "id": [[1]] * 3}), TypeError, 'id: the column "id" is of the Arrow type'),
            (pa.table({"text": TEXTS, "id": pa.array([1, 1, 2])}), ValueError, 'id: row 1 repeats "1" of row 0')]:
        for call in (doppel.dedup, doppel.cluster, doppel.pairs, doppel.overlap):
            with pytest.raises(kind, match=message):
                call(data)


def test_columns_that_are_not_asked_for_may_be_anything():
    pa = library("pyarrow")
    odd = pa.table({"text": TEXTS, "id": [{"a": 1}] * 3, "url": [["x"]] * 3,
                    "title": pa.array([1, 2, 3], pa.decimal128(5))})
    assert doppel.dedup(odd, id=None).mask.to_list() == [True, True, False]
    for option in ({"by": "url"}, {"by": "title"}, {"within": "url"}, {"within": "host"}, {"keep": "newest:url"},
                   {"keep": "https,first"}):
        with pytest.raises(TypeError, match=f'{[*option][0]}: the column "(url|title)" is of the Arrow type'):
            doppel.dedup(odd, id=None, **option)


@pytest.mark.parametrize("options, message", [
    ({"id": "nope"}, 'id: no column "nope"; the columns are text'), ({"url": "link"}, 'url: no column "link"'),
    ({"title": "heading"}, 'title: no column "heading"'), ({"html": "page"}, 'html: no column "page"'),
    ({"within": "lang"}, 'within: no column "lang"'), ({"across": "domain"}, 'across: no column "url"'),
    ({"by": "url"}, 'by: no column "url"'), ({"by": ["title"]}, 'by: no column "title"'),
    ({"keep": "newest:date"}, 'keep: no column "date"'), ({"keep": "https"}, 'keep: no column "url"'),
])
def test_columns_that_options_name_must_be_there(options, message):
    with pytest.raises(KeyError, match=message):
        doppel.dedup(DATA, **options)
    if "id" not in options and "keep" not in options:
        with pytest.raises(KeyError, match=message.partition(";")[0]):
            doppel.dedup([{**row, "date": "x", "lang": "x"} for row in
                          ({"text": FOX, **{key: "x" for key in ("link", "heading", "page", "url", "title")}},)],
                         against=TEXTS, **options)


BAD_OPTIONS = [
    ({"method": "best"}, ValueError, "method: expected one of auto, simhash, minhash, exact, not 'best'"),
    ({"method": "exact", "similarity": 0.5}, ValueError, "similarity cannot be used with method"),
    ({"distance": 3, "similarity": 0.5}, ValueError, "similarity cannot be used with method"),
    ({"similarity": 0}, ValueError, "similarity: expected a share"), ({"similarity": 1.1}, ValueError, "similarity"),
    ({"similarity": float("nan")}, ValueError, "similarity"), ({"similarity": "0.5"}, ValueError, "similarity"),
    ({"distance": -1}, ValueError, "distance: expected a whole number, not -1"),
    ({"distance": 65}, ValueError, "distance"),
    ({"distance": 1 << 32}, ValueError, "distance: 4294967296 is too large"),
    ({"distance": 1.5}, ValueError, "distance"),
    ({"bands": 1 << 32, "rows": 2}, ValueError, "bands"), ({"bands": 1 << 20, "rows": 1 << 20}, ValueError, "bands"),
    ({"min_words": -1}, ValueError, "min_words"), ({"min_words": 1 << 64}, ValueError, "min_words"),
    ({"boilerplate": 2}, ValueError, "boilerplate"), ({"boilerplate": 1}, ValueError, "boilerplate"),
    ({"boilerplate": "x"}, ValueError, "boilerplate"), ({"boilerplate": None}, ValueError, "boilerplate"),
    ({"by": "colour"}, ValueError, "by: expected some of content, url, title, not 'colour'"),
    ({"by": None}, TypeError, "by: expected"), ({"by": [5]}, TypeError, "by: expected"), ({"by": []}, ValueError, "by"),
    ({"keep": "best"}, ValueError, 'keep: "best" is none of first'), ({"keep": None}, TypeError, "keep"),
    ({"keep": ["first", 5]}, TypeError, "keep"), ({"keep": "newest"}, ValueError, "keep"),
    ({"keep": ""}, ValueError, "keep"),
    ({"link": "all"}, ValueError, "link: expected one of kept, any"), ({"missing": "drop"}, ValueError, "missing"),
    ({"within": 5}, TypeError, "within: expected str, not int"),
    ({"within": "id", "across": "id"}, ValueError, "within and across"),
    ({"recipe": "fast"}, ValueError, "recipe: unknown recipe"), ({"recipe": 5}, TypeError, "recipe"),
    ({"bits": 99}, ValueError, "bits"), ({"text": 5}, TypeError, "text: expected str"),
    ({"text": "a\0b"}, ValueError, "text"),
    ({"text": "\ud800"}, ValueError, "text"), ({"id": 5}, TypeError, "id: expected str"),
    ({"content": "x"}, ValueError, "content"),
    ({"url_keep": "x"}, ValueError, "url_keep"), ({"threads": -1}, ValueError, "threads"),
    ({"threads": "x"}, ValueError, "threads"),
    ({"memory": -1}, ValueError, "memory"), ({"tmp": 5}, TypeError, "tmp: expected a path"),
    ({"tmp": "/no/where"}, OSError, "/no/where"),
    ({"progress": 5}, TypeError, "progress"), ({"colour": 1}, TypeError, "colour"),
    ({"keep_copies": 0}, ValueError, "keep_copies: 1, the default"), ({"keep_copies": -1}, ValueError, "keep_copies"),
    ({"only_contained": 2}, ValueError, "only_contained: expected a share"),
    ({"only_contained": 0.5, "by": "url"}, ValueError, "only_contained cannot be combined with by url or title"),
    ({"only_contained": 0.5, "link": "any"}, ValueError, "only_contained cannot be combined with chains"),
]


@pytest.mark.parametrize("options, kind, message", BAD_OPTIONS)
def test_bad_options_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        doppel.dedup(DATA, **options)


def test_numbers_of_numpy_are_numbers():
    numpy = library("numpy")
    assert doppel.dedup(TEXTS, similarity=numpy.float32(0.5), min_words=numpy.int64(3)) == TEXTS[:2]
    assert doppel.dedup(TEXTS, distance=numpy.uint8(0)).mask.to_list() == [True, True, False]


def test_no_documents_at_all():
    pa, pandas, polars = library("pyarrow"), library("pandas"), library("polars")
    empty = pa.table({"text": pa.array([], pa.string()), "n": pa.array([], pa.int32())})
    for frame in (empty.to_pandas(), empty.to_pandas()["text"], pandas.Index([], str), polars.DataFrame(empty)):
        for unique in (doppel.dedup(frame), doppel.trim(frame)):
            assert isinstance(unique.kept, type(frame)) and unique.kept.equals(frame) and len(unique) == 0
    assert pa.table(doppel.dedup(empty.to_pandas())).column_names == ["text", "n"]
    assert doppel.dedup([]) == [] and doppel.pairs([]) == doppel.cluster([]) == doppel.overlap([]) == []
    unique = doppel.dedup(empty)
    assert len(unique) == 0 and unique.kept.equals(empty) and pa.table(unique).equals(empty) and list(unique) == []
    assert len(doppel.pairs(empty)) == len(doppel.cluster(empty)) == len(doppel.overlap(empty)) == 0
    assert doppel.dedup(TEXTS, against=[]) == doppel.dedup(TEXTS, against=empty) == TEXTS[:2]
    assert doppel.dedup([], against=TEXTS) == []
    nulls = doppel.dedup([None, None], missing="skip")
    assert nulls == [None, None] and len(nulls.removed) == 0 and nulls.summary["documents"] == 0
    assert doppel.dedup(iter(())) == [] and doppel.dedup({"text": []}) == []


def test_texts_of_any_length():
    long = "word " * 15_000_000  # more than the 64 MiB that a record of a file may have
    assert doppel.dedup([long, FOX, long[:-1]]).mask.to_list() == [True, True, False]


def test_a_generator_that_fails_half_way_ends_the_call():
    def failing():
        yield FOX
        raise RuntimeError("no more")
    for call in (doppel.dedup, doppel.cluster, doppel.pairs, doppel.overlap):
        with pytest.raises(RuntimeError, match="no more"):
            call(failing())
        with pytest.raises(RuntimeError, match="no more"):
            call(TEXTS, against=failing())


def test_a_stream_that_fails_half_way_is_named():
    pa = library("pyarrow")

    def failing():
        yield pa.record_batch({"text": TEXTS})
        raise OSError("the disk is gone")
    schema = pa.schema({"text": pa.string()})
    with pytest.raises(doppel.InputError, match="data: .*the disk is gone"):
        doppel.dedup(pa.RecordBatchReader.from_batches(schema, failing()))
    reader = pa.table({"text": TEXTS}).to_reader()
    assert len(doppel.dedup(reader)) == 2
    assert len(doppel.dedup(reader)) == 0  # it is read to its end


@pytest.fixture(scope="module")
def large():
    return many_texts(10_000)


@pytest.mark.parametrize("call", [doppel.dedup, doppel.cluster, doppel.pairs, doppel.overlap])
def test_a_progress_that_raises_ends_the_call(call, large):
    large = large[:1000] if call is doppel.overlap else large

    def at_once(done, total):
        raise LookupError("at once")
    with pytest.raises(LookupError, match="at once"):
        call(large, progress=at_once)
    calls = []

    def in_the_middle(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise LookupError("in the middle")
    with pytest.raises(LookupError, match="in the middle"):
        for _ in range(3):
            call(large, progress=in_the_middle)
    assert len(calls) == 3 and all(isinstance(done, int) and isinstance(total, int) for done, total in calls)
    assert len(doppel.dedup(TEXTS)) == 2


def test_progress_comes_to_its_end(large):
    calls = []
    doppel.dedup(large, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0
    inner = []
    doppel.dedup(large[:5000], progress=lambda done, total: inner.append(doppel.dedup(TEXTS)))  # from within
    assert inner and all(each == TEXTS[:2] for each in inner)


def test_decide_takes_positions_and_shares():
    table = doppel.decide({"a": [0, 1], "b": [1, 2], "similarity": [0.9, 0.9]}, count=4)
    assert table["original"].to_list() == [0, 0, 2, 3]
    assert doppel.decide([], count=2)["kept"].to_list() == [True, True] and len(doppel.decide([])) == 0
    any_link = doppel.decide([{"a": 0, "b": 1, "similarity": None}, {"a": 1, "b": 2, "similarity": 1}], link="any")
    assert any_link["original"].to_list() == [0, 0, 0]
    for edges, message in (({"a": [0], "b": [-1], "similarity": [1.0]}, 'edges: row 0: "b" is no position'),
                           ({"a": [0, 0.5], "b": [1, 1], "similarity": [1.0, 1.0]}, 'edges: row 1: "a" is no position'),
                           ({"a": [0], "b": [None], "similarity": [1.0]}, 'edges: row 0: "b" is no position'),
                           ({"a": ["x"], "b": [1], "similarity": [1.0]}, 'edges: row 0: "a" is no position'),
                           ({"a": [0], "b": [1 << 40], "similarity": [1.0]}, 'edges: row 0: "b" is no position'),
                           ({"a": [0], "b": [1], "similarity": ["much"]}, 'row 0: "similarity" is no similarity'),
                           ({"a": [0], "b": [1], "similarity": [float("inf")]}, "no similarity")):
        with pytest.raises(ValueError, match=message):
            doppel.decide(edges)
    with pytest.raises(ValueError, match="no document 5 among 3"):
        doppel.decide({"a": [0], "b": [5], "similarity": [1.0]}, count=3)
    with pytest.raises(ValueError, match="count"):
        doppel.decide({"a": [0], "b": [5], "similarity": [1.0]}, count=1 << 33)
    with pytest.raises(KeyError, match='no column "similarity"'):
        doppel.decide({"a": [0], "b": [5]})


def test_pairs_and_decide_are_dedup():
    texts = texts_of(11, 200)
    pairs = doppel.pairs(library("pyarrow").array(texts))
    assert doppel.decide(pairs, count=len(texts))["kept"].to_list() == doppel.dedup(texts).mask.to_list()


# ---- threads, signals, processes, memory ----


def test_many_threads_at_the_same_time():
    documents = [make_documents(300, seed) for seed in range(10)]
    expected = [doppel.dedup(each).mask.to_list() for each in documents]
    found = [None] * 10

    def work(number):
        for _ in range(3):
            found[number] = doppel.dedup(documents[number], threads=2).mask.to_list()
    run_threads(work, 10)
    assert found == expected


@pytest.mark.parametrize("call, after", [("dedup", 0.05), ("dedup", 0.3), ("overlap", 0.2)])
def test_ctrl_c_ends_a_call_within_a_second(call, after, full):
    check_interrupt(call, 100_000 if full else 8_000, after)


def test_a_signal_handler_that_returns_does_not_end_the_call(large):
    seen = []
    before = signal.signal(signal.SIGALRM, lambda *_: seen.append(time.monotonic()))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        expected = doppel.dedup(large, similarity=0.7).mask.to_list()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen and expected == doppel.dedup(large, similarity=0.7).mask.to_list()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_in_the_middle_of_a_call(large):
    expected = doppel.dedup(TEXTS).mask.to_list()
    results, children = [], []
    thread = threading.Thread(target=lambda: results.append(len(doppel.dedup(large))))
    thread.start()
    for _ in range(3):
        time.sleep(0.05)
        child = os.fork()
        if child == 0:
            os._exit(0 if doppel.dedup(TEXTS).mask.to_list() == expected else 1)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    thread.join()
    assert results == [len(doppel.dedup(large))]


def test_subinterpreters_are_refused_or_work():
    code = """
import sys
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        sys.exit()
import doppel
other = interpreters.create()
script = ("try:\\n    import doppel\\nexcept ImportError:\\n    pass\\n"
          "else:\\n    assert doppel.dedup(['a', 'a']) == ['a']")
try:
    interpreters.run_string(other, script)
except Exception as error:
    print(error, file=sys.stderr)
interpreters.destroy(other)
assert doppel.dedup(["a", "a"]) == ["a"]
"""
    run_python(code)


def test_a_thousand_calls_do_not_grow_memory(full):
    pa = library("pyarrow")
    documents = make_documents(50)
    table = pa.Table.from_pylist(documents)

    def each():
        unique = doppel.dedup(table, by="url,title,content", threads=1)
        pa.table(unique)
        doppel.pairs(documents[:20], threads=1)
        doppel.cluster(table, against=documents[:10], threads=1)
        doppel.overlap(documents[:10], threads=1)
        for bad in ([None], {"text": ["a", "b"], "id": [1, 1]}):
            with pytest.raises(ValueError):
                doppel.dedup(bad)
    for _ in range(20):
        each()
    before = resident()
    for _ in range(1000 if full else 60):
        each()
    assert resident() - before < 20 << 20


def test_results_outlive_the_data_and_each_other():
    pa = library("pyarrow")
    table = pa.table({"text": ["é" + text for text in TEXTS] * 100, "n": range(300),
                      "id": [f"id {n}" for n in range(300)]})
    expected = table[:2].to_pylist()
    unique = doppel.dedup(table)
    del table
    gc.collect()
    stream = pa.RecordBatchReader.from_stream(unique)
    mask, removed = unique.mask, unique.removed
    del unique
    gc.collect()
    batch = stream.read_next_batch()
    del stream
    gc.collect()
    junk = [bytearray(1000) for _ in range(2000)]  # what was freed would be used again
    assert batch.to_pylist() == expected
    assert mask.to_list() == [True, True] + [False] * 298 and len(junk) == 2000
    column = batch.column(0)
    del batch
    gc.collect()
    assert column.to_pylist() == [row["text"] for row in expected]
    assert removed["originalId"].to_list()[:2] == ["id 0", "id 0"]


def test_a_callers_list_may_change_during_the_call(large):
    """Its texts were taken before."""
    texts = list(large)
    expected = doppel.dedup(large).mask.to_list()
    cleared = threading.Timer(0.05, texts.clear)
    cleared.start()
    unique = doppel.dedup(texts)
    cleared.join()
    assert unique.mask.to_list() == expected


def test_a_result_is_freed_though_the_progress_refers_to_it():
    pa = library("pyarrow")

    class Owner:
        def report(self, done, total):
            pass

        def run(self):
            self.unique = doppel.dedup(pa.table({"text": TEXTS}), progress=self.report)
    owner = Owner()
    owner.run()
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None


def test_a_batch_is_refused_when_it_is_in_use_or_finished():
    from doppel import _batch, _doppel

    options = _batch._options()
    batch = _doppel.Batch(options, None)
    for method in ("mask", "finish", "kept_stream", "write_records"):
        with pytest.raises(RuntimeError):
            getattr(batch, method)()
    with pytest.raises(RuntimeError):
        batch.overlap(None)
    batch.read_data(TEXTS, False, "data", [])
    batch.decide()
    batch.finish()
    for method, arguments in (("mask", ()), ("finish", ()), ("stats", ()), ("decide", ()), ("columns", (None, False)),
                              ("pairs", (None, False)), ("read_data", (TEXTS, False, "data", [])),
                              ("check_ids", ("id",)),
                              ("finish_outputs", (True,)), ("open_outputs", (None, None)), ("overlap", (None,))):
        with pytest.raises(RuntimeError, match="finished"):
            getattr(batch, method)(*arguments)


def test_near_copies_that_were_changed_by_hand():
    random_ = random.Random(5)
    text = make_text(random_, 200)
    near, far = changed(random_, text, 0.005), make_text(random_, 200)
    unique = doppel.dedup([text, far, near])
    assert unique.mask.to_list() == [True, True, False]
    assert 0.8 <= unique.removed[0]["similarity"] < 1 and unique.removed[0]["reason"] == "content_hash"
    assert sys.getrefcount(near) < 10


def test_batches_that_threads_share_are_read_from_end_to_end():
    """A batch of many rows is cut into parts: each row is read once, at its own place."""
    texts = [f"text number {row} is like no other text of these, {row * row} and {row + 7} times" for row in range(5000)]
    texts[4999] = texts[1500].upper()
    found = doppel.dedup(texts)
    assert [(row["id"], row["originalId"]) for row in found.removed] == [(4999, 1500)]


def test_a_preset_is_what_it_stands_for():
    for preset in _doppel.pipelines():
        found = doppel.cluster(DOCUMENTS, preset=preset["name"])
        near = {name: preset[name] for name in ("recipe", "similarity", "bands", "rows")}
        assert found == doppel.cluster(DOCUMENTS, method="minhash", **near)
    options = _batch._options(preset="slimpajama", similarity=0.9, rows=5)
    assert options["recipe"] == "simhash64:words=13"
    assert (options["similarity"], options["bands"], options["rows"]) == (0.9, 0, 5)
    assert _batch._options(preset="fineweb", recipe="article")["recipe"] == "article"
    with pytest.raises(ValueError, match="preset"):
        doppel.pairs(DOCUMENTS, preset="other")
    with pytest.raises(ValueError, match="distance"):
        doppel.pairs(DOCUMENTS, preset="fineweb", distance=3)
    with pytest.raises(ValueError, match="another method"):
        doppel.pairs(DOCUMENTS, preset="fineweb", method="exact")

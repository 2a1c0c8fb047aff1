"""dedup_files on Parquet: the same documents go as from JSONL, and all else stays: every type, the schema and its
metadata, compression, row groups; files, folders, patterns and URLs; what is refused, and that nothing is left behind.

DOPPEL_COMMAND names the doppel command, whose answers on JSONL are compared.
"""
import datetime
import decimal
import gzip
import json
import os
import tempfile
import threading
import time
import warnings

import pytest

import doppel
from conftest import FULL
from documents import (LATEST, as_options, make_documents, many_texts, needs_command, read_jsonl, resident,
                       run_command, run_python, write_jsonl)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
from doppel import _parquet  # noqa: E402

FOX = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
TEXTS = [FOX, "nothing of this was ever said before by anyone here", FOX.upper()]
TABLE = pa.table({"id": ["a", "b", "c"], "text": TEXTS, "score": [1.5, 2.5, 3.5]})
DOCUMENTS = make_documents(120)
HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture(autouse=True)
def nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    left = [name for _, _, names in os.walk(tmp_path) for name in names if ".tmp" in name]
    assert not left


@pytest.fixture(params=["held", "small chunks", "again", "held small chunks"][:None if FULL else 2])
def way(request, monkeypatch):
    """Both ways of writing, and row groups that are divided."""
    if "small" in request.param:
        monkeypatch.setattr(_parquet, "_CHUNK_BYTES", 700)
        monkeypatch.setattr(_parquet, "_BATCH_BYTES", 300)
    if "held" not in request.param:
        monkeypatch.setattr(_parquet, "_free_memory", lambda: 0)
    return {}


def write(path, table=TABLE, **options):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def ids(path):
    return pq.read_table(path)["id"].to_pylist()


def files(folder="."):
    return sorted(os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names)


# ---- the rows that stay ----

OPTIONS = [{}, {"method": "minhash", "bands": 20, "rows": 4}, {"method": "simhash"}, {"method": "exact"},
           {"by": "url,title", "keep": "newest:date"}, {"within": "lang", "keep": "longest"},
           {"across": "host"}, {"link": "any", "similarity": 0.6}, {"boilerplate": 0.02, "keep": "largest:score"}]


@needs_command
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_same_rows_go_as_from_jsonl(options, way):
    path = write_jsonl("documents.jsonl", DOCUMENTS)
    kept = run_command("dedup", path, "-o", "-", "--removed", "expected.jsonl", **options)
    table = pa.Table.from_pylist(DOCUMENTS)
    write("documents.parquet", table, row_group_size=37)
    summary = doppel.dedup_files("documents.parquet", "unique.parquet", removed="removed.jsonl", **options, **way)
    assert pq.read_table("unique.parquet").to_pylist() == kept
    assert read_jsonl("removed.jsonl") == read_jsonl("expected.jsonl")
    assert summary["kept"] == len(kept) and summary["documents"] == 120 and summary["removed"] == 120 - len(kept)
    for threads in (1, 7) if FULL or not options else ():
        doppel.dedup_files("documents.parquet", "threads.parquet", threads=threads, **options, **way)
        assert pq.read_table("threads.parquet").equals(pq.read_table("unique.parquet"))


# Texts in a struct in a struct, and in two columns, of which some are null; a column with the name of a path.
NESTED = [{"meta": {"id": d["id"], "lang": d["lang"], "page": {"text": d["text"], "url": d["url"]}} if n % 29 else None, "n.x": str(n),
           "question": d["text"][:40] if n % 7 else None, "answer": d["text"][40:] if n % 5 else None, "number": n % 3,
           "n": {"x": "not this one"}}
          for n, d in enumerate(DOCUMENTS)]
KEYS = [{"text": "meta.page.text", "id": "meta.id"}, {"text": "question,answer", "id": "n.x"},
        {"text": "answer,nothing,question", "id": "meta.id,number,n.x", "url": "meta.page.url", "by": "content,url"},
        {"text": "nothing,meta.page.text", "id": "n.x", "keep": "largest:number", "within": "meta.lang"}]


@needs_command
@pytest.mark.filterwarnings("ignore:.*(rows were left out|no record has):RuntimeWarning")
@pytest.mark.parametrize("keys", KEYS, ids=str)
def test_keys_mean_what_they_mean_in_jsonl(keys, way):
    options = {**keys, "allow_bad": True}
    run_command("dedup", write_jsonl("nested.jsonl", NESTED), "-o", "kept.jsonl", "--removed", "expected.jsonl", **options)
    table = write("nested.parquet", pa.Table.from_pylist(NESTED), row_group_size=37)
    doppel.dedup_files(table, "kept.parquet", removed="removed.jsonl", **options)
    assert pq.read_table("kept.parquet")["n.x"].to_pylist() == [row["n.x"] for row in read_jsonl("kept.jsonl")]
    found = [[(row["id"], row["originalId"]) for row in read_jsonl(name)] for name in ("removed.jsonl", "expected.jsonl")]
    places = [[tuple(str(id).replace("nested.jsonl", "nested.parquet") for id in pair) for pair in each] for each in found]
    assert places[0] == places[1] and found[0]


def test_keys_of_data_in_memory():
    rows = [row for row in NESTED if row["meta"] and (row["question"], row["answer"]) != (None, None)]
    table = pa.Table.from_pylist(rows)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for given in (["question", "answer"], "question,answer", "meta.page.text"):
        expected = doppel.dedup([{"id": row["n.x"], "text": row["meta"]["page"]["text"] if given == "meta.page.text" else
                                  "\n".join(part for part in (row["question"], row["answer"]) if part is not None)} for row in rows]).removed
        assert len(expected)
        for data in (rows, table, columns, table.to_batches()[0], [dict(row) for row in rows].__iter__()):
            assert doppel.dedup(data, text=given, id="n.x").removed.to_list() == expected.to_list()
        for library, make in (("polars", "DataFrame"), ("pandas", "DataFrame")):
            frame = getattr(pytest.importorskip(library), make)(rows)
            assert doppel.dedup(frame, text=given, id="n.x").removed.to_list() == expected.to_list()
    assert doppel.dedup(table, text="meta.page.text", id="meta.id").removed[0]["id"] in {r["meta"]["id"] for r in rows}


def test_keys_that_name_nothing_are_told_with_what_there_is():
    table = pa.Table.from_pylist(NESTED[1:3])
    write("nested.parquet", table)
    said = "the columns are meta, n.x, question, answer, number, n"
    for key in ("meta.none", "none,nothing", "question.x"):
        with pytest.raises(KeyError, match=f'data: no column "{key}"; {said}'):
            doppel.dedup(table, text=key)
        with pytest.raises(doppel.InputError, match=f'inputs: nested.parquet: has no column "{key}" or "html".*its {said[4:]}'):
            doppel.dedup_files("nested.parquet", "kept.parquet", text=key)
    with pytest.raises(doppel.InputError, match='the column "meta" is of the Arrow type "\\+s", which is not text'):
        doppel.dedup_files("nested.parquet", "kept.parquet", text="meta")
    with pytest.raises(ValueError, match='id: "question,n.x" names 2 columns: name one'):
        doppel.dedup(table, text="answer,question", id="question,n.x")


def test_only_what_is_asked_for_is_read_of_a_struct(monkeypatch):
    """Other columns, and other parts of a struct, may be large."""
    asked = []
    plain = pq.ParquetFile.iter_batches
    monkeypatch.setattr(pq.ParquetFile, "iter_batches",
                        lambda self, **how: asked.append(how["columns"]) or plain(self, **how))
    monkeypatch.setattr(_parquet, "_free_memory", lambda: 0)
    write("nested.parquet", pa.Table.from_pylist(NESTED[1:20]))
    doppel.dedup_files("nested.parquet", dry_run=True, text="meta.page.text", id="n.x")
    assert asked and all({*columns} == {"n.x", "meta.page.text"} for columns in asked)


@needs_command
def test_jsonl_is_written_of_parquet_as_the_command_writes_it():
    write("documents.parquet", pa.Table.from_pylist(DOCUMENTS))
    doppel.dedup_files("documents.parquet", "unique.jsonl.gz", removed="removed.jsonl.zst")
    write_jsonl("documents.jsonl", DOCUMENTS)
    kept = run_command("dedup", "documents.jsonl", "-o", "-")
    with gzip.open("unique.jsonl.gz", "rt", encoding="utf-8") as file:
        assert [json.loads(line) for line in file] == [
            {name: row[name] for name in ("id", "url", "title", "text")} for row in kept]
    doppel.dedup_files("documents.jsonl", "from.jsonl", removed="removed.jsonl")
    assert read_jsonl("from.jsonl") == kept
    with open("removed.jsonl.zst", "rb") as file:
        assert file.read(4) == b"\x28\xb5\x2f\xfd"


RICH = {
    "id": ["a", "b", "c", "d", "e"], "text": [*TEXTS, "something else that stands here alone", FOX.title()],
    "large": pa.array([*TEXTS, None, ""], pa.large_string()), "bytes": [b"\xff\0", b"", None, b"x", b"y"],
    "large bytes": pa.array([b"x", None, b"y", b"", b"z"], pa.large_binary()),
    "fixed": pa.array([b"abcd"] * 5, pa.binary(4)),
    "decimal": pa.array([decimal.Decimal("1.23"), None, *[decimal.Decimal("-9.99")] * 3], pa.decimal128(10, 2)),
    "large decimal": pa.array([decimal.Decimal("1.23")] * 5, pa.decimal256(60, 2)),
    "micros": pa.array([datetime.datetime(2020, 1, 2, 3, 4, 5, 678901)] * 5, pa.timestamp("us")),
    "nanos": pa.array([1, None, 1577934245678901234, -1, 0], pa.timestamp("ns")),
    "zoned": pa.array([0, 1, 2, 3, None], pa.timestamp("ms", "Europe/Berlin")),
    "day": pa.array([1, 2, 3, 4, None], pa.date32()),
    "time": pa.array([1, 2, 3, 4, None], pa.time64("ns")), "duration": pa.array([1, 2, 3, 4, None], pa.duration("us")),
    "byte": pa.array([1, 2, 3, 4, None], pa.uint8()), "unsigned": pa.array([1, 2**32 - 1, 3, 4, None], pa.uint32()),
    "unsigned 64": pa.array([1, 2**64 - 1, 3, 4, None], pa.uint64()),
    "half": pa.array([1.5, 2, 3, 4, None], pa.float16()),
    "list": pa.array([[1, 2], None, [], [3], [None]], pa.list_(pa.int32())),
    "large list": pa.array([["a"], [None], [], None, ["b", "c"]], pa.large_list(pa.string())),
    "fixed list": pa.array([[1, 2], [0, 0], [3, 4], [5, 6], [7, 8]], pa.list_(pa.float32(), 2)),
    "struct": [{"a": 1, "b": {"c": ["x"]}}, None, {"a": None, "b": None}, {"a": 2, "b": {"c": []}},
               {"a": 3, "b": None}],
    "map": pa.array([[("k", 1)], [], None, [("l", None)], [("m", 2), ("n", 3)]], pa.map_(pa.string(), pa.int64())),
    "dictionary": pa.array(["x", "y", None, "x", "z"]).dictionary_encode(), "bool": [True, None, False, True, False],
    "null": pa.nulls(5), "structs": pa.array([[{"a": 1}], [], None, [{"a": None}], [None]]), "a.b": [1, 2, 3, 4, 5],
    "a": [6, 7, 8, 9, 10],
}


def rich_table():
    table = pa.table(RICH).replace_schema_metadata({"origin": "tests", "huggingface": '{"info": 1}'})
    field = pa.field("id", pa.string(), nullable=False, metadata={"of": "each"})
    return table.set_column(0, field, table["id"])


def shape(path):
    """What must be as it was."""
    file = pq.ParquetFile(path)
    metadata = file.metadata
    group = metadata.row_group(0)
    return {"schema": file.schema_arrow, "physical": str(file.schema).split("\n", 1)[1],
            "metadata": {key: value for key, value in (metadata.metadata or {}).items() if key != b"ARROW:schema"},
            "compression": [group.column(c).compression for c in range(metadata.num_columns)]}


def rows_of(table):
    """Its rows, as values that compare without pandas."""
    columns = {}
    for name, column in zip(table.column_names, table.columns):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        is_long = pa.types.is_temporal(column.type) and column.type.bit_width == 64
        columns[name] = column.cast(pa.int64()) if is_long else column
    return pa.table(columns).to_pylist()


def check_shape(before, after, rows):
    before_shape, after_shape = shape(before), shape(after)
    assert after_shape["schema"].equals(before_shape["schema"], check_metadata=True)
    del before_shape["schema"], after_shape["schema"]
    assert after_shape == before_shape
    assert rows_of(pq.read_table(after)) == rows_of(pq.read_table(before).take(rows))


@pytest.mark.parametrize("options", [
    {}, {"compression": "zstd"}, {"compression": "gzip"}, {"compression": "brotli"}, {"compression": "lz4"},
    {"compression": "none"}, {"compression": {"text": "zstd", "list.list.element": "gzip", "id": "none"}},
    {"use_compliant_nested_type": False, "compression": "zstd"}, {"store_schema": False},
    {"data_page_version": "2.0", "write_page_index": True}, {"version": "2.4"}, {"use_dictionary": False},
], ids=str)
def test_everything_else_stays_as_it_was(options, way):
    table = rich_table()
    if options.get("version"):
        table = table.drop(["nanos"])
    write("rich.parquet", table, row_group_size=2, **options)
    doppel.dedup_files("rich.parquet", "unique.parquet", **way)
    check_shape("rich.parquet", "unique.parquet", [0, 1, 3])


def test_how_numbers_are_stored_stays(way):
    table = pa.table({name: RICH[name] for name in ("id", "text", "unsigned", "micros", "decimal", "nanos")})
    for name, options in (("one", {"version": "1.0"}), ("int96", {"use_deprecated_int96_timestamps": True}),
                          ("integers", {"store_decimal_as_integer": True}),
                          ("deltas", {"use_dictionary": False, "column_encoding": {
                              "unsigned": "DELTA_BINARY_PACKED", "text": "DELTA_LENGTH_BYTE_ARRAY"}})):
        write(name + ".parquet", table.drop(["nanos"]) if name == "one" else table, **options)
        doppel.dedup_files(name + ".parquet", "unique.parquet", **way)
        check_shape(name + ".parquet", "unique.parquet", [0, 1, 3])
        encodings = [pq.ParquetFile(path).metadata.row_group(0).column(1).encodings
                     for path in (name + ".parquet", "unique.parquet")]
        assert name != "deltas" or encodings[0] == encodings[1]


def test_views_stay_views(way):
    """Columns of views, which pyarrow does not filter by itself, as texts and beside them."""
    view = pa.string_view()
    table = pa.table({"text": pa.array(TEXTS, view), "bytes": pa.array(TEXTS, pa.binary_view()), "n": [1, 2, 3],
                      "list": pa.array([["a"], None, ["b", FOX]], pa.list_(view))})
    write("in.parquet", table, row_group_size=2)
    doppel.dedup_files("in.parquet", "out.parquet")
    assert pq.read_table("out.parquet").equals(table[:2])
    doppel.dedup_files("in.parquet", "out.parquet", annotate=True)
    assert pq.read_table("out.parquet").select(table.column_names).equals(table)
    doppel.trim_files("in.parquet", "out.parquet", drop_share=0.5)
    assert pq.read_table("out.parquet").equals(table[:2])


def test_files_of_other_writers(way):
    """Their version is 1, but they have nanoseconds and unsigned numbers."""
    polars, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    table = pa.table({name: RICH[name] for name in ("id", "text", "nanos", "unsigned", "list", "struct", "dictionary")})
    polars.DataFrame(table).write_parquet("polars.parquet")
    duckdb.from_arrow(table).write_parquet("duckdb.parquet")
    for path in ("polars.parquet", "duckdb.parquet"):
        doppel.dedup_files(path, "unique.parquet", **way)
        assert rows_of(pq.read_table("unique.parquet")) == rows_of(table.take([0, 1, 3]))
        assert pq.read_schema("unique.parquet").equals(pq.read_schema(path), check_metadata=True)


def test_pandas_reads_what_it_wrote():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "n": [1, 2, 3]}, index=pandas.Index(["x", "y", "z"], name="key"))
    frame.to_parquet("frame.parquet")
    doppel.dedup_files("frame.parquet", "unique.parquet")
    assert pandas.read_parquet("unique.parquet").equals(frame[:2])
    frame.reset_index(drop=True).to_parquet("frame.parquet")
    doppel.dedup_files("frame.parquet", "unique.parquet")
    assert pandas.read_parquet("unique.parquet").equals(frame[:2].reset_index(drop=True))


def test_row_groups_stay(monkeypatch):
    texts = many_texts(60)
    table = pa.table({"id": range(120), "text": texts + texts})
    write("groups.parquet", table, row_group_size=25)
    for memory in (0, 1):
        doppel.dedup_files("groups.parquet", "unique.parquet", memory=memory)
        metadata = pq.ParquetFile("unique.parquet").metadata
        assert [metadata.row_group(g).num_rows for g in range(metadata.num_row_groups)] == [25, 25, 10]
        with monkeypatch.context() as patch:
            patch.setattr(_parquet, "_CHUNK_BYTES", 20_000)
            patch.setattr(_parquet, "_BATCH_BYTES", 5_000)
            doppel.dedup_files("groups.parquet", "divided.parquet", memory=memory)
        assert pq.ParquetFile("divided.parquet").metadata.num_row_groups > 3
        assert pq.read_table("divided.parquet").equals(pq.read_table("unique.parquet"))


def test_large_row_groups_are_read_batch_by_batch(full):
    texts = many_texts(40_000 if full else 4000)
    copies = 2 if full else 10  # more than 64 MiB, so that several threads read one row group
    table = pa.table({"id": range(len(texts) * copies), "text": pa.array(texts * copies)})
    write("large.parquet", table, row_group_size=len(table), use_dictionary=False, compression="none")
    assert pq.ParquetFile("large.parquet").metadata.row_group(0).total_byte_size > 64 << 20
    for memory in (1 << 30, 200 << 20) if full else (200 << 20,):
        summary = doppel.dedup_files("large.parquet", "unique.parquet", memory=memory)
        assert summary["kept"] == len(texts) and ids("unique.parquet") == [*range(len(texts))]


def test_what_decoding_makes_too_large_is_not_held(monkeypatch):
    texts = many_texts(40)
    for number in range(6):  # dictionaries make them small
        write(f"in/{number}.parquet", pa.table({"id": range(2000), "text": texts * 50}), row_group_size=500)
    opened = []
    before = _parquet._Table.__init__

    def noted(self, *rest):
        before(self, *rest)
        opened.append(self.in_memory)
    monkeypatch.setattr(_parquet._Table, "__init__", noted)
    summary = doppel.dedup_files("in", output_dir="each", memory=6 << 20, threads=1)
    assert summary["documents"] == 12_000 and summary["kept"] == 40
    assert opened[0] and not opened[-1]
    assert len(pq.read_table("each/0.parquet")) == 40 and len(pq.read_table("each/5.parquet")) == 0


def test_annotate_adds_what_was_decided(way):
    write("a.parquet", TABLE.append_column("group", pa.array([7, 8, 9])).append_column("x", pa.array([[1], [], None])))
    doppel.dedup_files("a.parquet", "all.parquet", annotate=True, **way)
    table = pq.read_table("all.parquet")
    assert table.column_names == ["id", "text", "score", "x", "group", "isDuplicate", "originalId", "kept", "groupSize"]
    assert table.drop(["text", "score", "x"]).to_pylist() == [
        {"id": "a", "group": "a", "isDuplicate": False, "originalId": None, "kept": True, "groupSize": 2},
        {"id": "b", "group": "b", "isDuplicate": False, "originalId": None, "kept": True, "groupSize": 1},
        {"id": "c", "group": "a", "isDuplicate": True, "originalId": "a", "kept": False, "groupSize": 2}]
    assert table["x"].to_pylist() == [[1], [], None]
    with pytest.raises(ValueError, match="annotate: only Parquet"):
        doppel.dedup_files("a.parquet", "all.jsonl", annotate=True)


@needs_command
@pytest.mark.parametrize("how", ["module", "command"])
def test_groups_are_counted_as_in_jsonl(how, way):
    rows = [{**row, "text": None if n % 31 == 30 else row["text"], "of": {"lang": row["lang"]} if n % 9 else None}
            for n, row in enumerate(DOCUMENTS)]
    options = {"annotate": True, "count_by": "of.lang", "annotate_prefix": "d_", "keep_copies": 2, "allow_bad": True}
    run_command("dedup", write_jsonl("a.jsonl", rows), "-o", "all.jsonl", **options)
    write("a.parquet", pa.Table.from_pylist(rows), row_group_size=37)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of rows without a text
        if how == "module":
            doppel.dedup_files("a.parquet", "all.parquet", **options, **way)
        else:
            run_python("import sys; from doppel._command import main; sys.exit(main() > 1)", "dedup", "a.parquet", "-o",
                       "all.parquet", *as_options(options))
    table, expected = pq.read_table("all.parquet"), read_jsonl("all.jsonl")
    assert table.schema.field("d_groupCounts").type == pa.map_(pa.string(), pa.int64())
    assert table.schema.field("d_groupSize").type == pa.int64() and table.schema.field("d_kept").type == pa.bool_()
    added = ["d_group", "d_isDuplicate", "d_originalId", "d_groupSize", "d_groupCounts"]
    found = [{**row, "d_groupCounts": None if row["d_groupCounts"] is None else dict(row["d_groupCounts"])}
             for row in table.select(["id", *added]).to_pylist()]
    assert found == [{name: row[name] for name in ["id", *added]} for row in expected]
    assert max(row["d_groupSize"] for row in found) > 2 and any(len(row["d_groupCounts"] or ()) > 1 for row in found)
    kept = doppel.dedup_files("a.jsonl", "kept.jsonl", keep_copies=2, allow_bad=True)["kept"]
    assert table["d_kept"].to_pylist().count(True) == kept > sum(not row["d_isDuplicate"] for row in found)
    for name in ("count_by", "annotate_prefix"):
        with pytest.raises(ValueError, match=f"{name} needs annotate=True"):
            doppel.dedup_files("a.parquet", "all.parquet", **{name: "lang"})


def test_rows_without_a_text_are_left_out_and_counted(way):
    table = pa.table({"id": [*"abcdef"], "text": [None, *TEXTS, None, "five words are here, indeed"]})
    write("nulls.parquet", table, row_group_size=2)
    with pytest.warns(RuntimeWarning, match=r'inputs: rows were left out; the first: nulls.parquet:1: "text" is null'):
        summary = doppel.dedup_files("nulls.parquet", "unique.parquet", **way)
    assert summary["bad"] == 2 and ids("unique.parquet") == ["b", "c", "f"]
    with pytest.warns(RuntimeWarning):
        doppel.dedup_files("nulls.parquet", "all.parquet", annotate=True, **way)
    assert ids("all.parquet") == ["b", "c", "d", "f"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            doppel.dedup_files("nulls.parquet", "error.parquet", **way)
    assert not os.path.exists("error.parquet")


def test_rows_without_ids_are_named_by_their_place(way):
    write("a.parquet", TABLE.drop(["id"]))
    doppel.dedup_files("a.parquet", "unique.parquet", removed="removed.jsonl", **way)
    assert [(row["id"], row["originalId"]) for row in read_jsonl("removed.jsonl")] == [("a.parquet:3", "a.parquet:1")]


def test_texts_that_are_no_strings(way):
    times = [1_700_000_000 + 86_400 * (n % 3) + 60 * (n * 7 % 40) for n in range(300)]
    options = {"min_words": 1, "recipe": "simhash64:chars=3", "similarity": 0.7}
    for column in (pa.array(times, pa.timestamp("us")), pa.array(times)):
        write("times.parquet", pa.table({"text": column, "id": range(300)}), row_group_size=40)
        texts = [time.isoformat() if hasattr(time, "isoformat") else str(time) for time in column.to_pylist()]
        doppel.dedup_files("times.parquet", "unique.parquet", **options, **way)
        expected = doppel.dedup(texts, **options).mask.to_list()
        assert ids("unique.parquet") == [number for number, stays in enumerate(expected) if stays]
    table = pa.table({"id": ["a", "b", "c"], "text": pa.array([text.encode() for text in TEXTS]).dictionary_encode()})
    write("bytes.parquet", table)
    assert doppel.dedup_files("bytes.parquet", "unique.parquet", **way)["kept"] == 2


def test_bytes_that_are_no_utf8_are_repaired_the_same_way_each_time(way):
    near = [FOX.encode() + b" \xff\xe9 more", (FOX + " \ufffd\ufffd more").encode(), FOX.encode() + b" \xe9 \xc3 more"]
    write("bytes.parquet", pa.table({"id": ["a", "b", "c"], "text": near}))
    summary = doppel.dedup_files("bytes.parquet", "unique.parquet", similarity=0.9, **way)
    assert summary["kept"] == 1
    assert pq.read_table("unique.parquet")["text"].to_pylist() == near[:1]  # as it was


def test_pages_are_read_from_a_column_with_html(way):
    pages = [f"<p>{document['text']}</p>" for document in DOCUMENTS]
    write("pages.parquet", pa.table({"id": range(len(pages)), "html": pages, "other": [[1]] * len(pages)}),
          row_group_size=30)
    doppel.dedup_files("pages.parquet", "unique.parquet", **way)
    expected = doppel.dedup([document["text"] for document in DOCUMENTS]).mask.to_list()
    assert ids("unique.parquet") == [row for row, stays in enumerate(expected) if stays]


@pytest.mark.filterwarnings("ignore:.*which is not text:RuntimeWarning")
def test_columns_that_are_not_asked_for_may_be_anything(way):
    odd = TABLE.append_column("url", pa.array([["x"]] * 3)).append_column("title", pa.array([{"a": 1}] * 3))
    write("odd.parquet", odd)
    with pytest.warns(RuntimeWarning, match=r'odd.parquet: the column "url" is list<.*>, which is not text: it is not'):
        warnings.simplefilter("always")
        assert doppel.dedup_files("odd.parquet", "unique.parquet", **way)["kept"] == 2
    assert pq.read_table("unique.parquet").column_names == ["id", "text", "score", "url", "title"]
    for column, options in (("url", {"text": "url"}), ("title", {"within": "title"})):
        with pytest.raises(doppel.InputError, match=f'odd.parquet: the column "{column}" is of the Arrow type'):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                doppel.dedup_files("odd.parquet", "none.parquet", **options, **way)
    assert not os.path.exists("none.parquet")


def test_a_limit_ends_reading_and_writing(way):
    write("a.parquet", TABLE, row_group_size=2)
    write("b.parquet", TABLE, row_group_size=2)
    for limit, expected in ((1, ["a"]), (2, ["a", "b"]), (3, ["a", "b"]), (5, ["a", "b"])):
        summary = doppel.dedup_files(["a.parquet", "b.parquet"], "unique.parquet", limit=limit, **way)
        assert summary["documents"] == limit and ids("unique.parquet") == expected
        doppel.dedup_files(["a.parquet", "b.parquet"], "all.parquet", annotate=True, limit=limit, **way)
        assert len(ids("all.parquet")) == limit


def test_files_without_rows_and_without_row_groups(way):
    write("none.parquet", TABLE[:0])
    with pq.ParquetWriter("groups.parquet", TABLE.schema) as writer:
        writer.write_table(TABLE[:0])
        writer.write_table(TABLE)
    with pq.ParquetWriter("no groups.parquet", TABLE.schema):
        pass
    paths = ["none.parquet", "groups.parquet", "no groups.parquet"]
    assert doppel.dedup_files(paths, "unique.parquet", **way)["kept"] == 2
    assert pq.read_table("unique.parquet").equals(TABLE[:2])
    doppel.dedup_files(paths, output_dir="each", **way)
    assert [len(pq.read_table(os.path.join("each", path))) for path in paths] == [0, 2, 0]
    assert doppel.dedup_files("none.parquet", "nothing.parquet", **way)["documents"] == 0
    assert pq.read_table("nothing.parquet").equals(TABLE[:0])


def test_an_output_that_is_there_is_replaced(way):
    write("a.parquet")
    for path in ("unique.parquet", "unique.jsonl", "removed.jsonl"):
        with open(path, "w", encoding="ascii") as file:
            file.write("old")
    doppel.dedup_files("a.parquet", "unique.parquet", removed="removed.jsonl", **way)
    doppel.dedup_files("a.parquet", "unique.jsonl", **way)
    assert ids("unique.parquet") == [row["id"] for row in read_jsonl("unique.jsonl")] == ["a", "b"]
    assert len(read_jsonl("removed.jsonl")) == 1


def test_nothing_stays(way):
    write("a.parquet")
    summary = doppel.dedup_files("a.parquet", "unique.parquet", against="a.parquet", **way)
    assert summary["kept"] == 0 and pq.read_table("unique.parquet").equals(TABLE[:0])
    check_schema = pq.read_schema("unique.parquet")
    assert check_schema.equals(TABLE.schema, check_metadata=True)


def test_dry_run_writes_nothing():
    write("a.parquet")
    for options in ({}, {"output": "unique.parquet"}, {"output_dir": "each"}, {"removed": "removed.jsonl"},
                    {"output": "unique.jsonl", "removed": "removed.jsonl"}):
        assert doppel.dedup_files("a.parquet", dry_run=True, **options)["kept"] == 2
    assert files() == ["a.parquet"] and os.listdir() == ["a.parquet"]


# ---- files, folders, patterns, URLs ----


@pytest.fixture
def corpus():
    for name in ("b.parquet", "a.parquet", "sub/deep/c.PARQUET", "sub/a.parquet"):
        write("corpus/" + name)
    for name in ("_SUCCESS", ".part.crc", "sub/_SUCCESS", "sub/deep/_metadata"):
        with open("corpus/" + name, "w", encoding="ascii") as file:
            file.write("no table")
    write("corpus/_hidden.parquet")
    return "corpus"


@pytest.mark.parametrize("form", ["corpus", "corpus/", "./corpus", "corpus//", "corpus/."])
def test_a_folder_becomes_a_folder_with_the_same_files(corpus, form, way):
    summary = doppel.dedup_files(form, output_dir="unique", removed="removed.jsonl", **way)
    assert summary["documents"] == 12 and summary["kept"] == 2
    assert files("unique") == ["a.parquet", "b.parquet", "sub/a.parquet", "sub/deep/c.PARQUET"]
    assert ids("unique/a.parquet") == ["a", "b"] and ids("unique/sub/deep/c.PARQUET") == []


def test_patterns_and_lists_of_files(corpus, way):
    doppel.dedup_files("corpus/*.parquet", output_dir="one", **way)
    assert files("one") == ["_hidden.parquet", "a.parquet", "b.parquet"]  # a pattern takes what it matches
    doppel.dedup_files(["corpus/[ab].parquet", "corpus/sub/deep"], "two.parquet", **way)
    assert ids("two.parquet") == ["a", "b"]
    doppel.dedup_files("corpus/*/a.parquet", output_dir="three/", **way)
    assert files("three") == ["a.parquet"]
    os.rename("corpus/a.parquet", "corpus/a[1].parquet")
    doppel.dedup_files("corpus/a[1].parquet", output_dir="four", **way)
    assert files("four") == ["a[1].parquet"]


def test_a_folder_may_have_the_name_of_a_file(way):
    write("spark.parquet/part-0.parquet")
    with open("spark.parquet/_SUCCESS", "w", encoding="ascii"):
        pass
    doppel.dedup_files("spark.parquet", "unique.parquet", **way)
    assert ids("unique.parquet") == ["a", "b"]


def test_an_input_that_is_given_twice(way):
    write("a.parquet")
    assert doppel.dedup_files(["a.parquet", "a.parquet"], "unique.parquet", **way)["documents"] == 6
    assert ids("unique.parquet") == ["a", "b"]
    assert doppel.dedup_files(["a.parquet", "./a.parquet"], "unique.parquet", **way)["kept"] == 2
    with pytest.raises(ValueError, match="a.parquet is given twice"):
        doppel.dedup_files(["a.parquet", "a.parquet"], output_dir="each", **way)
    with pytest.raises(ValueError, match="a.parquet and ./a.parquet would both be written to each/a.parquet"):
        doppel.dedup_files(["a.parquet", "./a.parquet"], output_dir="each", **way)
    assert files() == ["a.parquet", "unique.parquet"]


def test_paths_of_every_kind(tmp_path, way):
    write("a b%20é.parquet")
    assert doppel.dedup_files(tmp_path / "a b%20é.parquet", tmp_path / "unique é.parquet", **way)["kept"] == 2
    assert doppel.dedup_files(os.fsencode("a b%20é.parquet"), b"unique.parquet", **way)["kept"] == 2
    assert doppel.dedup_files(iter(["a b%20é.parquet"]), output_dir="x/y/z", **way)["kept"] == 2
    assert files() == ["a b%20é.parquet", "unique é.parquet", "unique.parquet", "x/y/z/a b%20é.parquet"]


def test_a_name_that_is_no_utf8_is_an_error_or_works():
    name = os.fsdecode(b"a\xff.parquet")
    write("a.parquet")
    os.rename("a.parquet", name)
    try:
        doppel.dedup_files(name, "unique.parquet")
    except (doppel.InputError, ValueError) as error:
        assert "parquet" in str(error)
    os.rename(name, "a.parquet")
    write_jsonl(name + ".jsonl", [{"id": "a", "text": FOX}])
    assert doppel.dedup_files(name + ".jsonl", name + ".out.jsonl")["kept"] == 1
    assert len(read_jsonl(name + ".out.jsonl")) == 1


@pytest.fixture
def memory():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for path in ("a.parquet", "sub/b.parquet", "_hidden.parquet", "_temporary/x.parquet"):
        with system.open("/corpus/" + path, "wb") as file:
            pq.write_table(TABLE, file)
    with system.open("/corpus/_SUCCESS", "wb"):
        pass
    yield system
    assert not [path for path in system.find("/") if ".tmp" in path]
    system.rm("/", recursive=True)


def test_urls_of_fsspec(memory, way):
    def found(folder):
        return sorted(path[len(folder):] for path in memory.find(folder))
    assert doppel.dedup_files("memory://corpus/a.parquet", "memory://one/x.parquet", **way)["kept"] == 2
    assert found("/one") == ["/x.parquet"]
    assert doppel.dedup_files("memory://corpus", output_dir="memory://two", **way)["documents"] == 6
    assert found("/two") == ["/a.parquet", "/sub/b.parquet"]
    assert doppel.dedup_files("memory://corpus/", output_dir="memory://three/", **way)["documents"] == 6
    assert found("/three") == ["/a.parquet", "/sub/b.parquet"]
    assert doppel.dedup_files("memory://corpus/*.parquet", output_dir="memory://four", **way)["documents"] == 3
    assert found("/four") == ["/a.parquet"]
    assert doppel.dedup_files("memory://corpus/*/*.parquet", output_dir="local", **way)["documents"] == 3
    assert files("local") == ["b.parquet"]
    assert doppel.dedup_files("memory://corpus/sub/b.parquet", "unique.jsonl", **way)["kept"] == 2
    with memory.open("/five.parquet", "wb") as file:
        pq.write_table(TABLE, file)
    assert doppel.dedup_files("memory://*.parquet", output_dir="root", **way)["documents"] == 3
    assert files("root") == ["five.parquet"]


def test_urls_of_files(tmp_path, way):
    write("sp ace/a b.parquet")
    write("sp ace/sub/c%20.parquet")
    url = "file://" + str(tmp_path)
    assert doppel.dedup_files(url + "/sp%20ace", output_dir=url + "/new%20one/sub", **way)["documents"] == 6
    assert files("new one") == ["sub/a b.parquet", "sub/sub/c%20.parquet"]
    assert doppel.dedup_files(url + "/sp%20ace/*.parquet", url + "/two/x.parquet", **way)["kept"] == 2
    assert ids("two/x.parquet") == ["a", "b"]


# ---- against ----


def test_against_files_of_every_kind(tmp_path, way):
    write("a.parquet")
    write("known.parquet", pa.table({"id": ["k"], "text": [FOX + " !"]}))
    write_jsonl("known.jsonl", [{"id": "k", "text": FOX + " !"}])
    with doppel.Engine("seen") as engine:
        engine.add({"id": "k", "text": FOX + " !"})
    for known in ("known.parquet", "known.jsonl", ["known.jsonl", "known.parquet"], tmp_path / "seen"):
        summary = doppel.dedup_files("a.parquet", "unique.parquet", against=known, removed="removed.jsonl", **way)
        assert ids("unique.parquet") == ["b"] and summary["kept"] == 1
        assert {row["originalId"] for row in read_jsonl("removed.jsonl")} == {"k"}
    for known, message in (("nope.parquet", "against: nope.parquet: No such file"),
                           ("empty", "against: empty: is an empty folder"), ("nope.jsonl", "against: nope.jsonl: cannot open")):
        os.makedirs("empty", exist_ok=True)
        with pytest.raises(doppel.InputError, match=message):
            doppel.dedup_files("a.parquet", "none.parquet", against=known, **way)
    assert not os.path.exists("none.parquet")


# ---- what is refused, with nothing written ----

REFUSED = [
    ({"inputs": []}, ValueError, "inputs: there are none"), ({"inputs": None}, TypeError, "inputs: expected a path"),
    ({"inputs": [5]}, TypeError, "inputs: expected a path, not int"),
    ({"inputs": ""}, ValueError, "inputs: '' is no path"),
    ({"inputs": "a.parquet\0b"}, ValueError, "inputs: .* is no path"),
    ({"against": []}, ValueError, "against: there are none"),
    ({"inputs": "nope.parquet"}, doppel.InputError, "inputs: nope.parquet: No such file or directory"),
    ({"inputs": ["a.parquet", "nope.parquet"]}, doppel.InputError, "inputs: nope.parquet: No such file or directory"),
    ({"inputs": "nope*.parquet"}, ValueError, r"nope\*.parquet: there is no Parquet file"),
    ({"inputs": "empty"}, ValueError, "empty: there is no Parquet file"),
    ({"inputs": "text.parquet"}, doppel.InputError, "inputs: text.parquet: "),
    ({"inputs": "zero.parquet"}, doppel.InputError, "inputs: zero.parquet: "),
    ({"inputs": "a.jsonl"}, ValueError, "a.jsonl is not Parquet, and Parquet output needs Parquet inputs"),
    ({"inputs": ["a.parquet", "a.jsonl"]}, ValueError, "a.jsonl is not Parquet"),
    ({"inputs": "mixed"}, ValueError, "mixed/README.md is not Parquet"),
    ({"inputs": "-"}, ValueError, "- is not Parquet"),
    ({"inputs": "zzz://a.parquet"}, ValueError, "zzz://a.parquet: "),
    ({"output": None}, ValueError, "dedup_files needs either output or output_dir"),
    ({"output_dir": "each"}, ValueError, "dedup_files needs either output or output_dir"),
    ({"output": 5}, TypeError, "output: expected a path"),
    ({"output": "a.csv"}, ValueError, "output: a.csv: documents are written as JSONL"),
    ({"output": "a.parquet"}, ValueError, "output: a.parquet is an input"),
    ({"output": "./mixed/../a.parquet"}, ValueError, "is an input"),
    ({"output": "link.parquet"}, ValueError, "is an input"),
    ({"output": "hard.parquet"}, ValueError, "is an input"), ({"inputs": "*.parquet",
    "output": "a.parquet"}, ValueError, "a.parquet is an input"),
    ({"output": "known.parquet", "against": "known.parquet"}, ValueError, "output: known.parquet is an input"),
    ({"removed": "a.parquet"}, ValueError, "removed: a.parquet is an input"),
    ({"removed": "new.parquet"}, ValueError, "output and removed: both are new.parquet"),
    ({"inputs": "a.jsonl", "output": "a.jsonl"}, ValueError, "output: a.jsonl is an input"),
    ({"inputs": "*.jsonl", "output": "a.jsonl"}, ValueError, "output: a.jsonl is an input"),
    ({"inputs": "su*",
    "output": "sub/new.jsonl"}, ValueError, "output: sub/new.jsonl is inside sub, which is an input"),
    ({"inputs": "sub",
    "output": "sub/new.parquet"}, ValueError, "output: sub/new.parquet is inside sub, which is an input"),
    ({"inputs": "sub", "output": None, "output_dir": "sub"}, ValueError, "is an input: choose another folder"),
    ({"inputs": "sub", "output": None, "output_dir": "sub/new"}, ValueError, "output_dir: sub/new is inside sub"),
    ({"inputs": "sub", "removed": "sub/removed.jsonl"}, ValueError, "removed: sub/removed.jsonl is inside sub"),
    ({"output": "mixed"}, OSError, "mixed: cannot be written: Is a directory"),
    ({"output": "folder.parquet"}, IsADirectoryError, "cannot be written: Is a directory: 'folder.parquet'"),
    ({"output": None, "output_dir": "a.jsonl"}, OSError, "a.jsonl"),
    ({"removed": "no/where.jsonl"}, OSError, "no/where.jsonl: cannot be written"),
    ({"output": "no/where.jsonl"}, OSError, "no/where.jsonl: cannot be written"),
    ({"inputs": ["a.parquet", "other.parquet"]}, ValueError,
     'other.parquet: its schema is not that of a.parquet: its column "score" is string, not double; an output folder'),
    ({"inputs": ["a.parquet", "fewer.parquet"]}, ValueError, 'fewer.parquet: .* it has no column "score"'),
    ({"text": "body"}, doppel.InputError,
     'inputs: a.parquet: has no column "body" or "html".*its columns are id, text, score'),
    ({"method": "best"}, ValueError, "method"), ({"similarity": 7}, ValueError, "similarity"),
    ({"id": 5}, TypeError, "id"),
    ({"limit": -1}, ValueError, "limit"), ({"max_record": "x"}, ValueError, "max_record"),
    ({"threads": -1}, ValueError, "threads"),
    ({"colour": 1}, TypeError, "colour"),
    ({"max_record": 5}, doppel.InputError, "a.parquet.*longer than the limit of 5 bytes; max_record"),
]


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused")
    os.chdir(folder)
    for path in ("a.parquet", "sub/a.parquet", "mixed/a.parquet", "folder.parquet/x.parquet", "known.parquet"):
        write(path)
    write("other.parquet", TABLE.set_column(2, "score", pa.array(["x", "y", "z"])))
    write("fewer.parquet", TABLE.drop(["score"]))
    write_jsonl("a.jsonl", [{"id": "a", "text": FOX}])
    os.makedirs("empty")
    for path, text in (("mixed/README.md", "read me"), ("text.parquet", FOX), ("zero.parquet", "")):
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    os.symlink("a.parquet", "link.parquet")
    os.link("a.parquet", "hard.parquet")
    return folder


def contents(folder):
    found = {}
    for at, folders, names in os.walk(folder):
        for name in names:
            with open(os.path.join(at, name), "rb") as file:
                found[os.path.join(at, name)] = file.read()
        found.update((os.path.join(at, name), None) for name in folders)
    return found


@pytest.mark.parametrize("given, kind, message", REFUSED, ids=[str(given) for given, _, _ in REFUSED])
def test_what_cannot_be_is_refused(refused, monkeypatch, given, kind, message):
    monkeypatch.chdir(refused)
    before = contents(refused)
    given = {"inputs": "a.parquet", "output": "new.parquet", **given}
    if "removed" not in given and given["output"] != "a.parquet":
        given["removed"] = "new-removed.jsonl"
    if "output_dir" in given and given["output"] is None and "removed" in given:
        del given["removed"]
    with pytest.raises(kind, match=message):
        doppel.dedup_files(given.pop("inputs"), given.pop("output"), **given)
    assert contents(refused) == before


def test_an_output_that_is_an_input_by_another_name(tmp_path, memory):
    write("a.parquet")
    url = "file://" + str(tmp_path / "a.parquet")
    for source, target in ((url, "a.parquet"), ("a.parquet", url), (url, url),
                           ("memory://corpus/a.parquet", "memory://corpus/a.parquet"),
                           ("memory://corpus/a.parquet", "memory://corpus//a.parquet"),
                           ("memory://corpus", "memory://corpus/new.parquet")):
        with pytest.raises(ValueError, match="is an input"):
            doppel.dedup_files(source, target)
    with pytest.raises(ValueError, match="which is an input"):
        doppel.dedup_files("memory://corpus", output_dir="memory://corpus/new")
    assert len(ids("a.parquet")) == 3 and files() == ["a.parquet"]


def test_a_folder_that_cannot_be_written_to():
    code = """
import os, sys
import pyarrow.fs, pyarrow.parquet
import doppel, doppel._parquet, doppel._parquet_join
os.chdir(sys.argv[1])
if os.geteuid() == 0:  # who may write everywhere
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
for options in ({"output": "locked/x.parquet"}, {"output_dir": "locked"}, {"output_dir": "locked/new"},
                {"output": "locked/x.jsonl"}, {"output": "x.parquet", "removed": "locked/x.jsonl"}):
    try:
        doppel.dedup_files("a.parquet", **options)
    except OSError as error:
        assert "locked" in str(error) and "ermission denied" in str(error), error
    else:
        raise AssertionError(options)
print("refused")
"""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        write(folder + "/a.parquet")
        os.mkdir(folder + "/locked", 0o555)
        assert run_python(code, folder) == "refused\n"
        assert files(folder) == ["a.parquet"]


# ---- files that are damaged, or change ----


def damaged(path, change):
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data = change(data)
    with open(path, "wb") as file:
        file.write(data)


def flip(at):
    def change(data):
        for place in range(at(len(data)), at(len(data)) + 40):
            data[place] ^= 0x5A
        return data
    return change


DAMAGE = {
    "no footer": lambda data: data[:-8], "half a footer": lambda data: data[:-200],
    "half": lambda data: data[:len(data) // 2],
    "two bytes": lambda data: data[:2], "wrong length": lambda data: data[:-8] + b"\xff\xff\xff\x7fPAR1",
    "footer": flip(lambda size: size - 120), "first page": flip(lambda size: 30),
    "middle page": flip(lambda size: size // 2),
    "a hole": lambda data: data[:200] + bytes(len(data) // 3) + data[200 + len(data) // 3:],
}


@pytest.mark.parametrize("change", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("compression", ["zstd", "none", "checksums", "snappy"][:None if FULL else 3])
def test_a_damaged_file_is_named_and_nothing_is_written(change, compression, way):
    table = pa.table({"id": range(400), "text": many_texts(20) * 20, "n": range(400), "more": ["x"] * 400})
    write("good.parquet", table)
    checksums = compression == "checksums"
    write("bad.parquet", table, row_group_size=100, compression="none" if checksums else compression,
          use_dictionary=False, write_page_checksum=checksums)
    damaged("bad.parquet", change)
    before = contents(".")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            doppel.dedup_files(["good.parquet", "bad.parquet"], output_dir="each", removed="removed.jsonl", **way)
    except (doppel.Error, OSError, ValueError) as error:
        assert "bad.parquet" in str(error)
        assert contents(".") == before
    else:  # without compression and checksums, what was flipped may be a text like any other
        assert compression == "none"


@pytest.mark.parametrize("version, free", [("1.0", 1 << 40), ("2.0", 0)])
def test_a_flipped_bit_is_noticed_where_pages_have_checksums(version, free, monkeypatch):
    """As those have that we write. In the head of a page it may change nothing."""
    monkeypatch.setattr(_parquet, "_free_memory", lambda: free)
    table = pa.table({"id": [str(n) for n in range(60)], "text": many_texts(60), "lang": ["en", None, "de"] * 20})
    write("in.parquet", table, data_page_version=version, compression="none")
    doppel.dedup_files("in.parquet", "good.parquet")
    good = pq.read_table("good.parquet")
    write("others.parquet", good, data_page_version=version, compression="none", write_page_checksum=True)
    refused = 0
    for name in ("good.parquet", "others.parquet"):
        with open(name, "rb") as file:
            whole = file.read()
        for at in range(100, len(whole) - 1000 - int.from_bytes(whole[-8:-4], "little"), len(whole) // 15):
            with open("bad.parquet", "wb") as file:
                file.write(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1:])
            try:
                doppel.dedup_files("bad.parquet", "out.parquet")
                assert pq.read_table("out.parquet").equals(good)
            except doppel.InputError as error:
                assert "bad.parquet" in str(error)
                refused += 1
    assert refused > 20


def test_a_file_that_cannot_be_read_is_an_error_after_rows_that_were_left_out(way):
    """The first thing that is wrong is not the worst one."""
    write("nulls.parquet", pa.table({"id": ["x", *"abc"], "text": [None, *TEXTS], "score": [0.5, 1.5, 2.5, 3.5]}))
    with pytest.raises(doppel.InputError, match="inputs: nope.parquet: No such file"):
        doppel.dedup_files(["nulls.parquet", "nope.parquet"], output_dir="each", **way)
    write_jsonl("bad.jsonl", [{"id": "a"}, {"id": "b", "text": FOX}])
    with pytest.raises(doppel.InputError, match="inputs: nope.jsonl"):
        doppel.dedup_files(["bad.jsonl", "nope.jsonl"], "unique.jsonl")
    assert files() == ["bad.jsonl", "nulls.parquet"]
    with pytest.warns(RuntimeWarning, match="inputs: files were left out; the first: nope.jsonl"):
        assert doppel.dedup_files(["bad.jsonl", "nope.jsonl"], "unique.jsonl", allow_bad=True)["kept"] == 1


def test_a_field_that_no_record_has_is_told(way):
    write("a.parquet")
    with pytest.warns(RuntimeWarning, match='inputs: no record has a field "lang", which within names'):
        doppel.dedup_files("a.parquet", "unique.parquet", within="lang", **way)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doppel.dedup_files("a.parquet", "unique.parquet", **way)


@pytest.mark.parametrize("memory", [0, 1])
def test_a_file_that_changes_meanwhile_is_an_error(memory, monkeypatch):
    write("a.parquet")
    before = _parquet._Writer.write

    def changes(self, path, keep):
        time.sleep(0.01)
        write("a.parquet", pa.concat_tables([TABLE, TABLE]))
        yield from before(self, path, keep)
    monkeypatch.setattr(_parquet._Writer, "write", changes)
    with pytest.raises(doppel.InputError, match="a.parquet: it has changed since it was read: start again"):
        doppel.dedup_files("a.parquet", "unique.parquet", memory=memory)

    def vanishes(self, path, keep):
        os.unlink("a.parquet")
        yield from before(self, path, keep)
    monkeypatch.setattr(_parquet._Writer, "write", vanishes)
    with pytest.raises(doppel.InputError, match="a.parquet"):
        doppel.dedup_files("a.parquet", "unique.parquet", memory=memory)
    assert files() == []


def test_a_file_that_is_cut_short_while_it_is_read_does_not_end_the_process():
    code = """
import sys, threading, time, warnings
sys.path.insert(0, sys.argv[1])
import pyarrow as pa, pyarrow.parquet as pq, doppel
from documents import many_texts
warnings.simplefilter("ignore")
texts = many_texts(3000)
pq.write_table(pa.table({"text": texts * 2}), "a.parquet", row_group_size=300, compression="none")
def cut():
    time.sleep(0.02)
    with open("a.parquet", "r+b") as file:
        file.truncate(1000)
threading.Thread(target=cut).start()
try:
    while True:
        doppel.dedup_files("a.parquet", "unique.parquet", memory=1)
except (doppel.Error, OSError, ValueError) as error:
    assert "a.parquet" in str(error), error
    print("error")
"""
    assert run_python(code, HERE) == "error\n"


# ---- what goes wrong while it is written ----


def test_a_full_disk_leaves_nothing(tmp_path):
    texts = many_texts(300)
    write("a.parquet", pa.table({"id": range(300), "text": texts}), compression="none", use_dictionary=False)
    write_jsonl("a.jsonl", [{"id": str(number), "text": text} for number, text in enumerate(texts)])
    code = """
import resource, sys, doppel
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
for source, memory in (("a.parquet", 0), ("a.parquet", 1), ("a.jsonl", 0)):
    for options in ({"output": "unique" + source[1:]}, {"output_dir": "each"}):
        if "output_dir" in options and source == "a.jsonl":
            continue
        try:
            doppel.dedup_files(source, memory=memory, removed="removed.jsonl", tmp="/dev/shm", **options)
        except OSError as error:
            assert "unique" in str(error) or "each/a.parquet" in str(error), error
            assert "oo large" in str(error), error
        else:
            raise AssertionError(source)
print("full")
"""
    assert run_python(code) == "full\n"
    assert files() == ["a.jsonl", "a.parquet"] and not os.path.exists("each")


def test_an_output_that_cannot_take_its_place(monkeypatch):
    write("in/a.parquet")
    write("in/b.parquet")

    def fails(self):
        raise OSError(5, "Input/output error")
    before = _parquet._Output.place
    monkeypatch.setattr(_parquet._Output, "place",
                        lambda self: fails(self) if "b.parquet" in self.path else before(self))
    with pytest.raises(OSError, match="Input/output error"):
        doppel.dedup_files("in", output_dir="each", removed="removed.jsonl")
    assert files() == ["each/a.parquet", "in/a.parquet", "in/b.parquet"]  # what has its place stays
    monkeypatch.setattr(_parquet._Output, "close", fails)
    with pytest.raises(OSError, match="Input/output error"):
        doppel.dedup_files("in", output_dir="other", removed="removed.jsonl")
    assert not os.path.exists("other") and not os.path.exists("removed.jsonl")


def test_what_goes_wrong_in_a_thread_that_writes_is_raised(way, monkeypatch):
    write("a.parquet")

    def fails(self, table):
        raise LookupError("of the encoder")
    monkeypatch.setattr(_parquet._Output, "encode", fails)
    with pytest.raises(LookupError, match="of the encoder"):
        doppel.dedup_files("a.parquet", "unique.parquet", removed="removed.jsonl", **way)
    assert files() == ["a.parquet"]


def test_what_cannot_be_made_smaller_has_room(way):
    noise = [os.urandom(3000) for _ in range(300)]
    write("noise.parquet", pa.table({"id": range(300), "text": many_texts(300), "noise": noise}), compression="lz4")
    doppel.dedup_files("noise.parquet", "unique.parquet", **way)
    assert pq.read_table("unique.parquet")["noise"].to_pylist() == noise


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    texts = many_texts(8_000)
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), path, row_group_size=500)
    return str(path)


def test_a_progress_that_raises_leaves_nothing(large):
    for when in (1, 2, 4):
        calls = []

        def progress(done, total):
            calls.append((done, total))
            if len(calls) == when:
                raise LookupError("stop")
        with pytest.raises(LookupError, match="stop"):
            while True:
                doppel.dedup_files(large, "unique.parquet", removed="removed.jsonl", progress=progress)
                os.unlink("unique.parquet")
                os.unlink("removed.jsonl")
        assert len(calls) == when and files() == []


INTERRUPTED = """
import os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import doppel
from doppel import _parquet
if sys.argv[4] == "writing":  # it takes long
    encode = _parquet._Output.encode
    _parquet._Output.encode = lambda self, table: (started.set(), time.sleep(0.7), encode(self, table))[2]
started, sent = threading.Event(), []
def send():
    started.wait() if sys.argv[4] == "writing" else time.sleep(float(sys.argv[4]))
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
    while True:
        doppel.dedup_files(sys.argv[2], "unique.parquet", removed="removed.jsonl", memory=int(sys.argv[3]))
        os.unlink("unique.parquet")
        os.unlink("removed.jsonl")
except KeyboardInterrupt:
    took = time.monotonic() - sent[0]
    assert took < float(sys.argv[5]), took
    assert not os.path.exists("unique.parquet") and not os.path.exists("removed.jsonl")
    print("interrupted")
"""


@pytest.mark.parametrize("memory, after", [(0, 0.1), (1, 0.3), (1, "writing")])
def test_ctrl_c_leaves_nothing(large, memory, after):
    assert run_python(INTERRUPTED, HERE, large, memory, after, LATEST) == "interrupted\n"
    assert files() == []


def test_several_threads_write_at_the_same_time(large):
    write("a.parquet")
    results = []

    def work(number):
        for _ in range(5):
            results.append(doppel.dedup_files("a.parquet", f"unique{number % 3}.parquet", memory=number % 2)["kept"])
    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2] * 50
    assert all(ids(f"unique{number}.parquet") == ["a", "b"] for number in range(3))


def test_calls_do_not_grow_memory(full):
    write("a.parquet", pa.Table.from_pylist(DOCUMENTS), row_group_size=50)
    write("bad.parquet")
    damaged("bad.parquet", lambda data: data[:-8])

    def each():
        for memory in (0, 1):
            doppel.dedup_files("a.parquet", "unique.parquet", removed="removed.jsonl", memory=memory, threads=1)
        with pytest.raises(doppel.InputError):
            doppel.dedup_files(["a.parquet", "bad.parquet"], output_dir="each", threads=1)
    for _ in range(6):
        each()
    before = resident()
    for _ in range(500 if full else 12):
        each()
    assert resident() - before < 30 << 20


def test_without_pyarrow_parquet_is_refused_and_jsonl_works():
    write("a.parquet")
    write_jsonl("a.jsonl", [{"id": "a", "text": FOX}, {"id": "b", "text": FOX}])
    code = """
import sys
sys.modules["pyarrow"] = None
import doppel
assert doppel.dedup_files("a.jsonl", "unique.jsonl")["kept"] == 1
for output in ("unique.parquet", "x.jsonl"):
    try:
        doppel.dedup_files("a.parquet", output)
    except (ImportError, doppel.InputError) as error:
        assert "Parquet needs pyarrow: pip install pyarrow" in str(error), error
    else:
        raise AssertionError
print("refused")
"""
    assert run_python(code) == "refused\n"
    assert files() == ["a.jsonl", "a.parquet", "unique.jsonl"]

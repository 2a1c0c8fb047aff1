"""Data in and out: Array, Table, streams of rows, and every kind of input that becomes texts; long calls.

What is read is compared with what a list gives. Packages that are not installed are passed over.
"""
import ctypes
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import pytest

import doppel
from doppel import _doppel, _inputs

# Under the address sanitizer, memory is given back late, and all is slow.
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")

TEXTS = ["a", None, "b" * 30, "äö🙂", "", "c" * 20, None, "the end"]

KINDS = {
    "bool": [True, None, False] * 7,
    "int32": [1, -(2**31), 2**31 - 1, None],
    "uint32": [0, 2**32 - 1, 7],
    "int64": [-(2**63), None, 2**63 - 1],
    "uint64": [2**64 - 1, None, 0, 5],
    "double": [1.5, None, -0.0, 1e300],
    "fixed_size_binary[3]": [b"abc", None, b"\0\0\0", b"xyz"],
    "fixed_size_list<uint32>[2]": [[1, 2], None, [3, 2**32 - 1], [0, 0]],
    "large_list<uint64>": [[1], None, [], [2**64 - 1, 5], [7, 8, 9]],
    "large_string": TEXTS,
}
SLICES = [slice(None), slice(1, None), slice(1, 3), slice(2, 2), slice(-2, None), slice(None, None, -1), slice(0, None, 2)]


def texts_of(data, name="text", columns=("text",)):
    return _doppel.texts(_inputs.arrow(data, "texts", columns), name)


class Capsules:
    """Arrow data of another library, without its other methods."""

    def __init__(self, data):
        name = "__arrow_c_stream__" if hasattr(data, "__arrow_c_stream__") else "__arrow_c_array__"
        setattr(self, name, getattr(data, name))


# ---- Array ----


@pytest.mark.parametrize("kind", KINDS)
def test_array_is_a_sequence(kind):
    values = KINDS[kind]
    array = _doppel.array(kind, values)
    assert array.type == kind
    assert len(array) == len(values) and list(array) == values == array.to_list() == array.tolist()
    assert array.null_count == values.count(None)
    assert [array[i] for i in range(-len(values), len(values))] == values + values
    for part in SLICES:
        assert array[part] == values[part] and array[part].to_list() == values[part]
        assert array[part].null_count == values[part].count(None)
        assert array[part][1:].to_list() == values[part][1:]
    assert array == tuple(values) and array != values[1:] and array != "abc" and not array == None  # noqa: E711
    assert values[0] in array and array.index(values[0]) == 0 and array.count(None) == values.count(None)
    assert list(reversed(array)) == values[::-1]
    assert repr(array).startswith(f"doppel.Array({kind}, ")
    assert pickle.loads(pickle.dumps(array[1:])) == values[1:]


def test_array_refuses_other_keys():
    array = _doppel.array("int64", [1, 2])
    with pytest.raises(IndexError, match="row 2 of 2"):
        array[2]
    with pytest.raises(IndexError):
        array[-3]
    with pytest.raises(TypeError, match="index: expected int or slice, not str"):
        array["a"]
    with pytest.raises(TypeError):
        hash(array)
    with pytest.raises(TypeError):
        doppel.Array()


@pytest.mark.parametrize("kind, value, message", [
    ("int32", 2**31, r"values\[1\]: out of the range of int32"),
    ("uint64", -1, r"values\[1\]: out of the range of uint64"),
    ("uint32", 2**32, r"values\[1\]: out of the range of uint32"),
    ("int64", "1", r"values\[1\]: expected int, not str"),
    ("int64", 1.0, r"values\[1\]: expected int, not float"),
    ("bool", 1, r"values\[1\]: expected bool, not int"),
    ("double", "x", r"values\[1\]: expected float, not str"),
    ("string", 1, r"values\[1\]: expected str, not int"),
    ("fixed_size_binary[3]", b"ab", r"values\[1\]: expected bytes"),
    ("fixed_size_list<uint32>[2]", [1], r"values\[1\]: expected a list"),
    ("large_list<uint64>", [-1], r"values\[1\]: out of the range"),
    ("float16", None, "unknown type"),
    ("fixed_size_binary[0]", None, "unknown type"),
    ("fixed_size_binary[x]", None, "unknown type"),
    ("int64[3]", None, "unknown type"),
])
def test_array_of_wrong_values(kind, value, message):
    with pytest.raises((TypeError, ValueError), match=message):
        _doppel.array(kind, [None, value])


def test_nan_is_null():
    assert _doppel.array("double", [1.0, float("nan")]).to_list() == [1.0, None]
    assert _doppel.array("string", ["a", float("nan")]).to_list() == ["a", None]


@pytest.mark.parametrize("kind", KINDS)
def test_array_to_pyarrow(kind):
    pa = pytest.importorskip("pyarrow")
    for part in SLICES:
        view = _doppel.array(kind, KINDS[kind])[part]
        made = pa.array(view)
        made.validate(full=True)
        assert made.null_count == view.null_count and made.to_pylist() == KINDS[kind][part]
        assert pa.array(Capsules(view)).equals(made)
        del view
        gc.collect()
        assert made.to_pylist() == KINDS[kind][part]
        assert pa.DataType._import_from_c_capsule(_doppel.array(kind, []).__arrow_c_schema__()) == made.type


@pytest.mark.parametrize("kind", KINDS)
def test_array_to_polars(kind):
    pl = pytest.importorskip("polars")
    if kind.startswith("fixed_size_binary"):
        pytest.skip("polars has no binary data of a fixed size")
    for part in SLICES:
        assert pl.Series(_doppel.array(kind, KINDS[kind])[part]).to_list() == KINDS[kind][part]


@pytest.mark.parametrize("kind", KINDS)
def test_array_to_numpy(kind):
    numpy = pytest.importorskip("numpy")
    values = [value for value in KINDS[kind] if value is not None]
    array = _doppel.array(kind, values)
    made = numpy.asarray(array[1:])
    types = {"bool": "bool", "double": "float64", "fixed_size_binary[3]": "V3", "large_list<uint64>": "object",
             "large_string": "object", "fixed_size_list<uint32>[2]": "uint32"}
    assert made.dtype == types.get(kind, kind)
    assert [v.tolist() if hasattr(v, "tolist") else v for v in made] == values[1:]
    made = numpy.array(_doppel.array(kind, KINDS[kind]))
    assert len(made) == len(KINDS[kind])
    if kind == "double":
        assert numpy.isnan(made[1])
    elif None in KINDS[kind]:
        assert made.dtype == object and made[KINDS[kind].index(None)] is None
    with pytest.raises(ValueError):
        numpy.array(array, copy=False)


# ---- Table ----


def make_table():
    return doppel.Table({kind: _doppel.array(kind, (values * 3)[:4]) for kind, values in KINDS.items()})


def test_table_is_a_sequence_of_rows():
    table = doppel.Table({"a": _doppel.array("int64", [1, None, 3]), "b": _doppel.array("string", ["x", "y", "z"])})
    rows = [{"a": 1, "b": "x"}, {"a": None, "b": "y"}, {"a": 3, "b": "z"}]
    assert len(table) == 3 and table.column_names == ["a", "b"]
    assert list(table) == rows == table.to_list() and table == rows
    assert table[1] == rows[1] and table[-1] == rows[-1] and table["b"] == ["x", "y", "z"]
    assert table[1:].to_list() == rows[1:] and table[::-1].to_list() == rows[::-1]
    assert dict(table).keys() == {"a", "b"} and table.to_dict() == {"a": [1, None, 3], "b": ["x", "y", "z"]}
    assert pickle.loads(pickle.dumps(table)) == table and table != table[1:]
    assert repr(table).splitlines() == ["doppel.Table, 3 rows", "a     b", "1     x", "None  y", "3     z"]
    with pytest.raises(KeyError, match='no column "c"; the columns are a, b'):
        table["c"]
    with pytest.raises(IndexError):
        table[3]
    with pytest.raises(ValueError, match="the lengths differ: a has 1, b has 2"):
        doppel.Table({"a": _doppel.array("int64", [1]), "b": _doppel.array("int64", [1, 2])})


def test_empty_tables():
    assert len(doppel.Table({})) == 0 and doppel.Table({}).to_list() == []
    assert list(doppel.Table({"a": _doppel.array("int64", [])})) == []
    assert repr(doppel.Table({"a": _doppel.array("int64", [1])})).startswith("doppel.Table, 1 row\n")


def test_table_to_pyarrow():
    pa = pytest.importorskip("pyarrow")
    table = make_table()
    made = pa.table(table)
    made.validate(full=True)
    assert made.to_pylist() == table.to_list() and pa.schema(table) == made.schema
    assert pa.table(table[1:3]).to_pylist() == table.to_list()[1:3]
    assert pa.table(table[:0]).num_rows == 0 and pa.table(table[:0]).schema == made.schema
    reader = pa.RecordBatchReader.from_stream(table)
    rows = table.to_list()
    del table
    gc.collect()
    assert reader.read_all().to_pylist() == rows


def test_table_to_others():
    columns = {kind: column for kind, column in dict(make_table()).items() if "binary" not in kind}
    table = doppel.Table(columns)
    tried = 0
    try:
        import polars
    except ImportError:
        pass
    else:
        assert polars.DataFrame(table).to_dicts() == table.to_list()
        tried += 1
    try:
        import duckdb
    except ImportError:
        pass
    else:
        plain = doppel.Table({"n": columns["uint64"], "s": columns["large_string"]})
        assert duckdb.sql("select n, s from plain").fetchall() == [tuple(row.values()) for row in plain]
        tried += 1
    try:
        import pandas
    except ImportError:
        pass
    else:
        frame = pandas.DataFrame(dict(doppel.Table({"n": _doppel.array("int64", [1, 2])})))
        assert frame["n"].tolist() == [1, 2]
        tried += 1
    if not tried:
        pytest.skip("neither polars nor DuckDB nor pandas is installed")


# ---- texts: every form gives what a list gives ----


def pyarrow_forms(pa, texts):
    plain = [None if text is None else text.encode() for text in texts]
    words = sorted({text for text in texts if text is not None}) + ["not used"]
    index = [None if text is None else words.index(text) for text in texts]
    padded = ["no", *texts, "nor this"]
    half = len(texts) // 2
    yield "string", pa.array(texts, pa.string())
    yield "large_string", pa.array(texts, pa.large_string())
    yield "binary", pa.array(plain, pa.binary())
    yield "large_binary", pa.array(plain, pa.large_binary())
    if hasattr(pa, "string_view"):
        yield "string_view", pa.array(texts, pa.string_view())
        yield "binary_view", pa.array(plain, pa.binary_view())
        yield "sliced view", pa.array(padded, pa.string_view()).slice(1, len(texts))
    for kind in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64()):
        yield f"dictionary {kind}", pa.DictionaryArray.from_arrays(pa.array(index, kind), pa.array(words))
    sliced = pa.DictionaryArray.from_arrays(pa.array([0, *index], pa.int32()), pa.array(["x", *words]).slice(1))
    yield "sliced dictionary", sliced.slice(1)
    yield "sliced", pa.array(padded).slice(1, len(texts))
    yield "chunked", pa.chunked_array([texts[:half], [], texts[half:]], pa.string())
    yield "sliced chunks", pa.chunked_array([padded[:half], padded[half:]], pa.string()).slice(1, len(texts))
    table = pa.table({"id": list(range(len(padded))), "text": pa.array(padded, pa.string())}).slice(1, len(texts))
    yield "table", table
    yield "reader", table.to_reader(max_chunksize=3)
    for batch in table.to_batches():
        yield "batch", batch
    rows = pa.StructArray.from_arrays([pa.array(padded, pa.string()), pa.array(range(len(padded)))], ["text", "n"])
    yield "struct with offset", rows.slice(1, len(texts))
    hidden = pa.StructArray.from_arrays([pa.array(["?" if t is None else t for t in texts], pa.string())], ["text"],
                                        mask=pa.array([t is None for t in texts]))
    yield "null structs", hidden
    yield "null structs with offset", pa.concat_arrays([hidden.slice(0, 1), hidden]).slice(1)


def test_pyarrow_gives_what_lists_give():
    pa = pytest.importorskip("pyarrow")
    for texts in (TEXTS, TEXTS[3:4], ["x"] * 9, [None, None]):
        for name, data in pyarrow_forms(pa, texts):
            if not hasattr(data, "read_next_batch"):
                assert texts_of(Capsules(data)) == texts, name
            assert texts_of(data) == texts, name


def test_empty_data():
    assert texts_of([]) == [] and texts_of(iter(())) == [] and texts_of(()) == []
    pa = pytest.importorskip("pyarrow")
    assert texts_of(pa.array([], pa.string())) == []
    assert texts_of(pa.chunked_array([], pa.string())) == []
    assert texts_of(pa.table({"text": pa.array([], pa.string())})) == []
    assert texts_of(pa.array([None, None])) == [None, None]
    with pytest.raises(KeyError, match='no column "text"; the columns are id'):
        texts_of(pa.table({"id": pa.array([], pa.string())}))


def test_other_types_are_written_out():
    pa = pytest.importorskip("pyarrow")
    import datetime

    assert texts_of(pa.array([1, None, -3])) == ["1", None, "-3"]
    assert texts_of(pa.array([True, False, None]).slice(1)) == ["false", None]
    assert texts_of(pa.array([datetime.date(2024, 5, 6)])) == ["2024-05-06"]
    with pytest.raises(TypeError, match='texts: the column "text" is of the Arrow type'):
        texts_of(pa.table({"text": [[1]]}))


def test_slices_by_hypothesis():
    pa = pytest.importorskip("pyarrow")
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    lists = strategies.lists(strategies.none() | strategies.text(max_size=20), max_size=40)

    @hypothesis.given(lists, strategies.integers(0, 40), strategies.integers(0, 40), strategies.integers(0, 2**40 - 1))
    def check(texts, offset, length, bits):
        part = texts[offset:offset + length]
        wanted = bytes(bits >> row & 1 for row in range(len(part)))
        kept = [text for text, is_wanted in zip(part, wanted) if is_wanted]
        for _, data in pyarrow_forms(pa, texts or ["x"]):
            if not texts or hasattr(data, "read_next_batch"):
                continue
            sliced = data.slice(offset, length)
            assert texts_of(sliced) == part
            assert texts_of(Rows(sliced, wanted)) == kept

    check()


@pytest.mark.parametrize("texts", [TEXTS, ["x", "y"]])
def test_python_iterables(texts):
    assert texts_of(texts) == texts and texts_of(tuple(texts)) == texts
    assert texts_of(text for text in texts) == texts
    assert texts_of([None if text is None else text.encode() for text in texts]) == texts
    assert texts_of([float("nan") if text is None else text for text in texts]) == texts
    assert texts_of([{"id": i, "text": text} for i, text in enumerate(texts)]) == texts
    assert texts_of({"id": i, "text": text} for i, text in enumerate(texts)) == texts
    assert texts_of({"text": texts, "other": [[1]] * len(texts)}) == texts


def test_columns_of_rows():
    rows = [{"text": "a", "n": 1, "x": 0.5, "on": True, "big": 2**63, "deep": [1]}, {"text": "b", "n": None, "more": b"m"}]
    columns = _inputs.arrow(rows).columns
    assert {name: column.type for name, column in columns.items()} == {
        "text": "large_string", "n": "int64", "x": "double", "on": "bool", "big": "uint64", "more": "large_string"}
    assert columns["n"] == [1, None] and columns["more"] == [None, "m"]
    assert list(_inputs.arrow(rows, columns=["text", "absent"]).columns) == ["text"]
    with pytest.raises(TypeError, match=r"data\['deep'\]\[0\]: expected str, not list"):
        _inputs.arrow(rows, columns=["deep"])


def test_pandas():
    pandas = pytest.importorskip("pandas")
    assert texts_of(pandas.Series(TEXTS)) == TEXTS
    assert texts_of(pandas.Series(TEXTS, dtype=object)) == TEXTS
    assert texts_of(pandas.Series(TEXTS, dtype="string[python]")) == TEXTS
    assert texts_of(pandas.Series(TEXTS, dtype="category")) == TEXTS
    assert texts_of(["a", pandas.NA, pandas.NaT]) == ["a", None, None]
    frame = pandas.DataFrame({"text": pandas.Series(TEXTS, dtype=object), "odd": [{1}] * 8, "n": range(8)})
    assert texts_of(frame) == TEXTS
    assert texts_of(frame[2:5]) == TEXTS[2:5] and texts_of(frame[frame.n % 2 == 1]) == TEXTS[1::2]
    assert texts_of(frame, "n", ["n"]) == [str(n) for n in range(8)]
    dates = pandas.DataFrame({"text": ["a", "b"], "when": pandas.to_datetime(["2024-05-06", None])})
    assert texts_of(dates, "when", None) == ["2024-05-06 00:00:00", None]
    with pytest.raises(TypeError, match=r"texts\['odd'\]\[0\]: expected str, not set"):
        texts_of(frame, "odd", ["odd"])
    with pytest.raises(KeyError, match='no column "text"; the columns are n'):
        texts_of(frame[["n"]])
    with pytest.raises(ValueError, match='the column "text" is there twice'):
        texts_of(frame[["text", "text"]], "text", None)


def test_pandas_with_pyarrow():
    pandas = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    for dtype in ("string[pyarrow]", pandas.ArrowDtype(pa.string()), pandas.ArrowDtype(pa.large_string())):
        series = pandas.Series(TEXTS, dtype=dtype)
        assert texts_of(series) == TEXTS and texts_of(series[2:]) == TEXTS[2:]
        assert texts_of(pandas.DataFrame({"text": series, "n": range(8)}), "text", None) == TEXTS


def test_polars():
    pl = pytest.importorskip("polars")
    for dtype in (pl.String, pl.Categorical, pl.Enum(sorted({text for text in TEXTS if text is not None}))):
        assert texts_of(pl.Series(TEXTS, dtype=dtype)) == TEXTS
    frame = pl.DataFrame({"text": TEXTS, "n": range(8)})
    assert texts_of(frame) == TEXTS and texts_of(frame[2:5]) == TEXTS[2:5] and texts_of(frame.lazy()) == TEXTS
    assert texts_of(pl.concat([frame, frame], rechunk=False)) == TEXTS + TEXTS
    assert texts_of({"text": pl.Series(TEXTS)}) == TEXTS


def test_duckdb():
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.sql("select range as id, 'text ' || range as text from range(5000) order by id")
    assert texts_of(relation) == [f"text {i}" for i in range(5000)]


def test_pyarrow_datasets(tmp_path):
    pa = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"text": TEXTS, "n": range(8)}), tmp_path / "a.parquet", row_group_size=3)
    data = dataset.dataset(tmp_path)
    assert texts_of(data) == TEXTS and texts_of(data, "text", None) == TEXTS and texts_of(data.scanner()) == TEXTS
    assert texts_of({"text": pa.array(TEXTS)}) == TEXTS


def test_hugging_face_datasets():
    datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_dict({"text": TEXTS, "n": list(range(8))})
    assert texts_of(data) == TEXTS
    assert texts_of(data.select([7, 0, 2])) == [TEXTS[7], TEXTS[0], TEXTS[2]]
    assert texts_of(data.filter(lambda row: row["n"] > 4)) == TEXTS[5:]
    assert texts_of(data.to_iterable_dataset()) == TEXTS
    with pytest.raises(TypeError, match=r"a DatasetDict has several datasets: choose one, such as texts\['train'\]"):
        texts_of(datasets.DatasetDict(train=data))
    with pytest.raises(KeyError, match='no column "text"; the columns are n'):
        texts_of(data.select_columns(["n"]))


# ---- what cannot be read ----


@pytest.mark.parametrize("data, error, message", [
    (None, TypeError, "texts: expected a list of str or Arrow data, not NoneType"),
    (3, TypeError, "texts: expected a list of str or Arrow data, not int"),
    ("abc", TypeError, "texts: expected a list of str or Arrow data, not str"),
    (b"abc", TypeError, "texts: expected a list of str or Arrow data, not bytes"),
    (["a", 1], TypeError, r"texts\[1\]: expected str, not int"),
    (["a", 1.5], TypeError, r"texts\[1\]: expected str, not float"),
    ([["a"]], TypeError, r"texts\[0\]: expected str, not list"),
    (["a", bytearray(b"a")], TypeError, r"texts\[1\]: expected str, not bytearray"),
    (["a", "b\ud800"], doppel.InputError, r"texts\[1\]: not valid UTF-8: a lone surrogate at position 1"),
    (["a", b"ab\xff"], doppel.InputError, r"texts\[1\]: not valid UTF-8: bytes at position 2"),
    ([{"text": "a"}, "b"], TypeError, r"texts\[1\]: expected dict, not str"),
    ([{"body": "a"}], KeyError, 'no column "text"; the columns are body'),
    ({"text": "abc"}, TypeError, r"texts\['text'\]: expected a list, not str"),
    ([{"text": "a"}, {"text": 3}], TypeError, r"texts\['text'\]\[1\]: expected str, not int"),
])
def test_wrong_data(data, error, message):
    with pytest.raises(error, match=message):
        texts_of(data)


def test_columns_of_different_lengths():
    with pytest.raises(ValueError, match='texts: the columns differ in length: "a" has 1, "b" has 2'):
        texts_of({"a": ["x"], "b": ["y", "z"]}, "a", None)


@pytest.mark.parametrize("bad", [b"\x80", b"\xc0\xaf", b"\xc1\xbf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf0\x80\x80\xaf",
                                 b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\xf0\x9f\x99", b"\xc3("])
@pytest.mark.parametrize("before", [0, 3, 8, 21])
def test_bytes_that_are_no_utf8(bad, before):
    with pytest.raises(doppel.InputError, match=f"bytes at position {before}"):
        texts_of([b"x" * before + bad])
    good = "x" * before + "\x7fé€\U0010ffff\ud7ff" + "y" * before
    assert texts_of([good.encode()]) == [good]


def test_binary_columns_must_be_utf8():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(doppel.InputError, match=r"texts\[2\]: not valid UTF-8: bytes at position 1"):
        texts_of(pa.chunked_array([pa.array([b"a"]), pa.array([None, b"a\xff"])]))


def test_generators_that_raise():
    def texts():
        yield "a"
        raise ZeroDivisionError("half-way")

    with pytest.raises(ZeroDivisionError, match="half-way"):
        texts_of(texts())
    pa = pytest.importorskip("pyarrow")

    def batches():
        yield pa.record_batch({"text": ["a"]})
        raise ZeroDivisionError("half-way")

    with pytest.raises(doppel.InputError, match="half-way"):
        texts_of(pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches()))


def test_producers_that_raise():
    class Broken:
        def __arrow_c_stream__(self, requested_schema=None):
            raise ZeroDivisionError("broken")

    class Wrong:
        def __arrow_c_stream__(self, requested_schema=None):
            return "no capsule"

    class Pair:
        def __arrow_c_array__(self, requested_schema=None):
            return 1, 2

    with pytest.raises(ZeroDivisionError):
        texts_of(Broken())
    with pytest.raises(TypeError, match='texts: expected a PyCapsule "arrow_array_stream"'):
        texts_of(Wrong())
    with pytest.raises(TypeError, match='texts: expected a PyCapsule "arrow_schema"'):
        texts_of(Pair())


def test_capsules_are_read_once():
    capsule = make_table().__arrow_c_stream__()

    class Given:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule

    assert len(texts_of(Given(), "int64")) == 4
    with pytest.raises(doppel.InputError, match="the Arrow data was read already"):
        texts_of(Given(), "int64")


# Arrow structures as a careless library would fill them.


class ArrowSchema(ctypes.Structure):
    pass


class ArrowArray(ctypes.Structure):
    pass


SchemaRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowSchema))
ArrayRelease = ctypes.CFUNCTYPE(None, ctypes.POINTER(ArrowArray))
ArrowSchema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                        ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                        ("dictionary", ctypes.c_void_p), ("release", SchemaRelease), ("private_data", ctypes.c_void_p)]
ArrowArray._fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
                       ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64),
                       ("buffers", ctypes.POINTER(ctypes.c_void_p)), ("children", ctypes.c_void_p),
                       ("dictionary", ctypes.c_void_p), ("release", ArrayRelease), ("private_data", ctypes.c_void_p)]


class Careless:
    """A column of two strings, "ab" and "c", but for the fields that are given."""

    def __init__(self, format=b"u", n_schema_children=0, **fields):
        self.released = []
        self.offsets = (ctypes.c_int32 * 3)(0, 2, 3)
        self.data = ctypes.create_string_buffer(b"abc")
        self.buffers = (ctypes.c_void_p * 3)(None, ctypes.addressof(self.offsets), ctypes.addressof(self.data))
        self.releases = SchemaRelease(self._release_schema), ArrayRelease(self._release_array)
        self.schema = ArrowSchema(format=format, name=b"", n_children=n_schema_children, release=self.releases[0])
        values = dict(length=2, n_buffers=3, buffers=ctypes.cast(self.buffers, ctypes.POINTER(ctypes.c_void_p)),
                      release=self.releases[1])
        self.array = ArrowArray(**{**values, **fields})

    def _release_schema(self, schema):
        self.released.append("schema")
        schema.contents.release = SchemaRelease()

    def _release_array(self, array):
        self.released.append("array")
        array.contents.release = ArrayRelease()

    def __arrow_c_array__(self, requested_schema=None):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return (make(ctypes.addressof(self.schema), b"arrow_schema", None),
                make(ctypes.addressof(self.array), b"arrow_array", None))


def test_foreign_data_is_released_once():
    careless = Careless()
    assert texts_of(careless) == ["ab", "c"]
    assert sorted(careless.released) == ["array", "schema"]


@pytest.mark.parametrize("fields, message", [
    (dict(length=-1), "a negative length or offset"),
    (dict(offset=-1), "a negative length or offset"),
    (dict(offset=2**63 - 1), "a negative length or offset"),
    (dict(null_count=-2), "a negative length or offset"),
    (dict(n_buffers=2), "a wrong number of buffers"),
    (dict(n_buffers=-1), "a wrong number of buffers"),
    (dict(buffers=None), "without buffers"),
    (dict(n_children=1), "other children than its type"),
    (dict(n_children=-1), "other children than its type"),
    (dict(n_schema_children=1), "a wrong number of children"),
    (dict(format=b"+s", n_schema_children=-3), "a wrong number of children"),
    (dict(format=b"+s", n_schema_children=3), "a wrong number of children"),
    (dict(format=b"+l"), "a wrong number of children"),
    (dict(format=None), "a schema without a format"),
    (dict(format=b"vu", n_buffers=2), "a wrong number of buffers"),
    (dict(buffers=(ctypes.c_void_p * 3)(None, None, None)), "without values"),
    (dict(dictionary=1), "a dictionary"),
])
def test_malformed_arrays(fields, message):
    careless = Careless(**fields)
    with pytest.raises(doppel.InputError, match=f"texts: malformed Arrow data: .*{message}"):
        texts_of(careless)
    assert sorted(careless.released) == ["array", "schema"]


# ---- rows of the caller's data ----


class Rows:
    """The wanted rows of some data."""

    def __init__(self, data, wanted):
        self.data, self.wanted = data, bytes(wanted)

    def __arrow_c_stream__(self, requested_schema=None):
        return _doppel.rows(self.data, self.wanted)


def rich_table(pa):
    rows = [{"n": i, "s": None if i % 7 == 0 else f"text {i}", "list": [i] * (i % 3), "deep": {"a": i, "b": [{"c": str(i)}]},
             "map": [(str(i), i)], "fixed": None if i % 5 == 0 else [i, i + 1]} for i in range(40)]
    schema = pa.schema({"n": pa.int16(), "s": pa.string(), "list": pa.list_(pa.int8()),
                        "deep": pa.struct({"a": pa.int64(), "b": pa.list_(pa.struct({"c": pa.string()}))}),
                        "map": pa.map_(pa.string(), pa.int64()), "fixed": pa.list_(pa.int32(), 2)})
    schema = schema.with_metadata({"key": "value"}).set(0, schema.field("n").with_metadata({"unit": "m"}))
    table = pa.Table.from_pylist(rows, schema)
    import decimal

    return table.append_column("dict", table["s"].combine_chunks().dictionary_encode()).append_column(
        "none", pa.nulls(40)).append_column("flag", pa.array([i % 3 == 0 for i in range(40)])).append_column(
        "money", pa.array([decimal.Decimal(i) for i in range(40)], pa.decimal128(10, 2))).append_column(
        "time", pa.array(range(40), pa.timestamp("us", "UTC")))


def test_rows_share_the_callers_memory():
    pa = pytest.importorskip("pyarrow")
    table = pa.concat_tables([rich_table(pa), rich_table(pa).slice(3, 20)])
    for wanted in ([1] * 60, [0] * 60, [i % 2 for i in range(60)], [1] + [0] * 58 + [1], [i // 9 % 2 for i in range(60)]):
        made = pa.table(Rows(table, wanted))
        made.validate(full=True)
        assert made.schema.equals(table.schema, check_metadata=True)
        assert made.equals(table.filter(pa.array(wanted, pa.int8()).cast(pa.bool_())))
    made = pa.table(Rows(table, [1] * 60))
    assert made["s"].chunk(0).buffers()[2].address == table["s"].chunk(0).buffers()[2].address


def test_rows_outlive_everything_else():
    pa = pytest.importorskip("pyarrow")
    before = pa.total_allocated_bytes()
    table = rich_table(pa)
    expected = table.slice(10, 5).to_pylist()
    reader = pa.RecordBatchReader.from_stream(Rows(table, [10 <= i < 15 for i in range(40)]))
    del table
    gc.collect()
    batch = reader.read_next_batch()
    del reader
    gc.collect()
    column = batch.column("deep").field("b")
    assert batch.to_pylist() == expected
    del batch, expected
    gc.collect()
    assert column.to_pylist() == [[{"c": str(i)}] for i in range(10, 15)]
    freed = []
    thread = threading.Thread(target=lambda: freed.append(column.validate()))
    thread.start()
    thread.join()
    del column, freed
    gc.collect()
    assert pa.total_allocated_bytes() == before


def test_rows_of_one_column_and_of_null_structs():
    pa = pytest.importorskip("pyarrow")
    array = pa.array(TEXTS).slice(1)
    assert pa.chunked_array(Rows(array, [1, 0, 1, 1, 0, 0, 1])).to_pylist() == [None, "äö🙂", "", "the end"]
    structs = pa.array([{"a": 1}, None, {"a": 3}, {"a": None}, {"a": 5}]).slice(1)
    assert pa.chunked_array(Rows(structs, [1, 1, 0, 1])).to_pylist() == [None, {"a": 3}, {"a": 5}]


def test_rows_to_polars_and_duckdb():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"n": range(40), "s": [None if i % 7 == 0 else "long text " * i for i in range(40)],
                          "list": [[i] * (i % 3) for i in range(40)], "deep": [{"a": i, "b": str(i)} for i in range(40)]},
                         schema_overrides={"n": pl.UInt16})
    frame = frame.with_columns(fixed=pl.Series([None if i % 5 == 0 else [i, 2] for i in range(40)],
                                               dtype=pl.Array(pl.Int32, 2)),
                               kind=pl.Series(["ab"[i % 2] for i in range(40)], dtype=pl.Categorical))
    wanted = [i % 3 > 0 for i in range(40)]
    made = pl.DataFrame(Rows(frame, wanted))
    assert made.to_dicts() == frame.filter(pl.Series(wanted)).to_dicts()
    duckdb = pytest.importorskip("duckdb")
    rows = Rows(frame.select("n", "s"), wanted)
    assert duckdb.sql("select * from rows").fetchall() == frame.select("n", "s").filter(pl.Series(wanted)).rows()


def test_wrong_number_of_rows():
    with pytest.raises(ValueError, match="wanted: 1 values for 2 rows"):
        _doppel.rows(["a", "b"], b"\1")


# ---- long calls ----


def slow_texts(pa, rows=400_000):
    """Texts that take minutes, and little memory."""
    words = " ".join(f"word{i}" for i in range(20_000))
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), pa.array([words]))


INTERRUPTED = """
import doppel, signal, sys, threading, time
sys.path.insert(0, {folder!r})
import pyarrow as pa
from test_arrow import slow_texts
texts = slow_texts(pa)
threading.Timer(0.5, lambda: (print(time.monotonic(), flush=True), signal.raise_signal(signal.SIGINT))).start()
try:
    doppel.fingerprint(texts, threads=1)
except KeyboardInterrupt:
    print(time.monotonic())
"""


def test_ctrl_c_ends_a_call():
    pytest.importorskip("pyarrow")
    script = INTERRUPTED.format(folder=os.path.dirname(os.path.abspath(__file__)))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    sent, ended = map(float, done.stdout.split())
    assert ended - sent < 1


def test_handlers_run_during_a_call():
    pa = pytest.importorskip("pyarrow")

    class Enough(Exception):
        pass

    def handle(number, frame):
        raise Enough

    before = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Enough):
            doppel.fingerprint(slow_texts(pa), threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_progress_that_raises_ends_a_call():
    pa = pytest.importorskip("pyarrow")
    calls = []

    def progress(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise ZeroDivisionError("enough")

    with pytest.raises(ZeroDivisionError, match="enough"):
        doppel.fingerprint(slow_texts(pa), threads=1, progress=progress)
    assert calls[-1][0] < 400_000
    assert len(calls) == 3 and all(total == 400_000 and 0 <= done <= total for done, total in calls)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_progress_tells_the_end():
    calls = []
    doppel.fingerprint(["some text"] * 3000, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (3000, 3000)
    with pytest.raises(TypeError, match="progress: expected True or a callable, not int"):
        doppel.fingerprint(["some text"], progress=3)


def test_progress_lines(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    doppel.fingerprint(["some text"] * 3000, progress=True)
    assert "3,000 of 3,000" in capsys.readouterr().err


def test_other_threads_run_during_a_call():
    pa = pytest.importorskip("pyarrow")
    texts = slow_texts(pa, 2000)
    ticks = []
    thread = threading.Thread(target=lambda: doppel.fingerprint(texts, threads=1))
    thread.start()
    while thread.is_alive():
        ticks.append(time.monotonic())
        time.sleep(0.001)
    thread.join()
    assert len(ticks) > 5


def test_fork_during_calls():
    pa = pytest.importorskip("pyarrow")
    texts = slow_texts(pa, 2000)
    thread = threading.Thread(target=lambda: doppel.fingerprint(texts, threads=1))
    thread.start()
    time.sleep(0.02)
    child = os.fork()
    if not child:
        os._exit(0 if doppel.fingerprint(["some text"] * 2000)[0] == doppel.fingerprint("some text") else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


# ---- recipes ----


def test_recipes():
    recipe = doppel.Recipe()
    assert recipe.text == doppel.Recipe("page").text and recipe.bits == 64
    assert recipe == doppel.Recipe("simhash64:words=5") and hash(recipe) == hash(doppel.Recipe("page"))
    assert recipe != doppel.Recipe("article") and recipe != "page" and len({recipe, doppel.Recipe("page")}) == 1
    assert doppel.Recipe(recipe) is recipe and pickle.loads(pickle.dumps(recipe)) == recipe
    assert eval(repr(recipe), {"doppel": doppel}) == recipe
    with pytest.raises(AttributeError):
        recipe.text = "article"
    with pytest.raises(ValueError, match="recipe: unknown recipe `nope`"):
        doppel.Recipe("nope")
    with pytest.raises(TypeError, match="text: expected str"):
        doppel.Recipe(3)
    with pytest.raises(ValueError):
        doppel.Recipe("pa\0ge")


def test_recipes_with_stop_words():
    recipe = doppel.Recipe("page", stop_words=["the", "a"])
    assert recipe == doppel.Recipe("page", stop_words="a the\nthe") != doppel.Recipe("page")
    copy = pickle.loads(pickle.dumps(recipe))
    assert copy == recipe and copy.stop_words == "the a"
    assert doppel.fingerprint("the fox", recipe=copy) == doppel.fingerprint("fox", recipe=recipe)
    with pytest.raises(TypeError, match="stop_words: expected str or a list of str"):
        doppel.Recipe(stop_words=[1])
    with pytest.raises(ValueError):
        doppel.Recipe(recipe.text)


def test_recipes_with_a_table(tmp_path):
    with pytest.raises(OSError, match="df: .*none"):
        doppel.Recipe("page", df=tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"no table" * 100)
    with pytest.raises(doppel.StoreError, match="df: "):
        doppel.Recipe("simhash64:weight=tfidf", df=tmp_path / "bad")


def test_recipes_of_another_unicode():
    with pytest.warns(UserWarning, match="[Uu]nicode"):
        doppel.Recipe("simhash64:unicode=9.0.0")


# ---- the module ----


def test_errors():
    assert issubclass(doppel.InputError, (doppel.Error, ValueError)) and issubclass(doppel.InputError, ValueError)
    assert issubclass(doppel.StoreError, doppel.Error) and issubclass(doppel.StoreError, OSError)
    assert issubclass(doppel.AwayError, doppel.StoreError) and issubclass(doppel.AwayError, ConnectionError)
    assert str(doppel.StoreError("broken")) == "broken"
    assert pickle.loads(pickle.dumps(doppel.InputError("x"))).args == ("x",)


def test_verdicts():
    new, seen = doppel.Verdict("a", False), doppel.Verdict("b", True, 0.9933070000001, "content_hash", 'a"ö')
    assert seen and not new and new.evidence == doppel.Evidence()
    assert new.json() == ('{"id":"a","isDuplicate":false,"confidence":0,"reason":null,"originalId":null,"evidence":'
                          '{"distance":null,"similarity":null,"containment":null,"titleSimilarity":null,"sameUrl":false,'
                          '"sameDigest":false,"verified":false}}')
    assert '"confidence":0.993307,"reason":"content_hash","originalId":"a\\"ö"' in seen.json()
    assert pickle.loads(pickle.dumps(seen)) == seen


@pytest.mark.skipif(SANITIZED, reason="the address sanitizer is slow")
def test_import_takes_little(tmp_path):
    """Of the processor, so that it does not matter what else the machine does."""
    code = ("import sys, time; before = set(sys.modules); begun = time.process_time(); import doppel; "
            "print(time.process_time() - begun, *(set(sys.modules) - before))")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    env["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
            for _ in range(6)]
    assert min(float(run.split()[0]) for run in runs) < 0.05
    modules = runs[0].split()[1:]
    heavy = {"pyarrow", "polars", "pandas", "numpy", "duckdb", "datasets", "tqdm", "asyncio", "dataclasses", "inspect"}
    assert not heavy & set(modules)


def test_the_other_doppel(tmp_path):
    """The unrelated distribution of that name, before or after this one."""
    import shutil

    folder = tmp_path / "doppel"
    installed = os.path.dirname(doppel.__file__)
    shutil.copytree(installed, folder, symlinks=False)
    if os.path.exists(os.path.join(os.path.dirname(installed), "libdoppel.libs")):  # what the wheel bundles
        os.symlink(os.path.join(os.path.dirname(installed), "libdoppel.libs"), tmp_path / "libdoppel.libs")

    def try_import(statement):
        done = subprocess.run([sys.executable, "-c", statement], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": str(tmp_path)}, cwd=tmp_path)
        return done.stderr

    assert try_import("import doppel") == ""
    init = (folder / "__init__.py").read_text()
    (folder / "driver.py").write_text("")
    assert '"libdoppel" and "doppel" have both installed' in try_import("import doppel")
    (folder / "__init__.py").write_text("")
    assert 'the distribution "doppel", which is another one' in try_import("import doppel._doppel")
    (folder / "driver.py").unlink()
    (folder / "__init__.py").write_text(init)
    for module in folder.glob("_doppel*.so"):
        module.unlink()
    assert "pip install libdoppel" in try_import("import doppel")


# ---- leaks ----


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(SANITIZED or not os.path.exists("/proc/self/statm"), reason="no measure of memory")
def test_memory_does_not_grow(full):
    pa = pytest.importorskip("pyarrow")
    table = rich_table(pa)
    rounds = 20_000 if full else 1500
    wanted = bytes(i % 2 for i in range(40))

    def use():
        for name in ("s", "n", "dict"):
            _doppel.texts(table, name)
        texts_of(["a", None, "b" * 100])
        texts_of([{"text": "a", "n": 1}])
        for bad in (["a", 1], ["\ud800"], [b"\xff"], 3):
            try:
                texts_of(bad)
            except (TypeError, ValueError):
                pass
        _doppel.rows(table, wanted)
        pa.table(Rows(table, wanted))
        results = make_table()
        pa.table(results[1:])
        results.__arrow_c_stream__()
        results["bool"].__arrow_c_array__()
        results["large_list<uint64>"].__arrow_c_array__()
        repr(results)
        pickle.loads(pickle.dumps(doppel.Recipe("page", stop_words="a")))
        try:
            doppel.Recipe("nope")
        except ValueError:
            pass

    for _ in range(rounds // 10):
        use()
    gc.collect()
    before, allocated = resident(), pa.total_allocated_bytes()
    for _ in range(rounds):
        use()
    gc.collect()
    assert pa.total_allocated_bytes() <= allocated
    assert resident() - before < 4 << 20


def test_references_are_given_back():
    class Text(str):
        pass

    text, values = Text("some text"), [Text("x"), Text("y")]
    before = sys.getrefcount(text), sys.getrefcount(values), sys.getrefcount(doppel.Array), sys.getrefcount(None)
    for _ in range(1000):
        texts_of([text, None, text])
        _doppel.array("string", values)
        with pytest.raises(TypeError):
            texts_of([text, 3])
        _doppel.array("int64", [1, None])[0:1].to_list()
        doppel.Table({"a": _doppel.array("int64", [1])}).__arrow_c_schema__()
    after = sys.getrefcount(text), sys.getrefcount(values), sys.getrefcount(doppel.Array), sys.getrefcount(None)
    assert all(abs(a - b) < 500 for a, b in zip(after, before)), (before, after)

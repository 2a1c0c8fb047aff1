"""fingerprint, signature, digest, sketch, verify, compare, hamming: what a list gives is right (the vectors of
docs/FORMAT.md, the definitions written out here), and every form of Arrow data gives what a list gives.
"""
import _thread
import functools
import hashlib
import os
import pickle
import re
import threading
import time

import doppel
import pytest
from properties import given, st


ROOT = os.path.join(os.path.dirname(__file__), "..", "..")
FOX = "The quick brown fox jumps over the lazy dog"
TEXTS = [FOX, "", "...", "one two three four five six seven", "敏捷的棕色狐狸跳过了懒狗", FOX.upper(), "Straße ÉCOLE", FOX]
MASK = 2**64 - 1


def unescape(cell):
    return re.sub(rb"\\x(..)", lambda escape: bytes.fromhex(escape[1].decode()), cell.encode())


def vectors(heading):
    """The rows of a table of test vectors in docs/FORMAT.md whose text is UTF-8."""
    with open(os.path.join(ROOT, "docs", "FORMAT.md"), encoding="utf-8") as file:
        section = file.read().partition("## 8. Test vectors")[2].partition(f"### {heading}\n")[2].partition("###")[0]
    found = [line[3:-3].split("` | `") for line in section.splitlines() if line.startswith("| `")]
    assert len(found) >= 6, heading
    return [[recipe, unescape(text).decode(), *rest] for recipe, text, *rest in found]


# ---- what a list gives ----


@pytest.mark.parametrize("recipe, text, expected, digest", vectors("Fingerprints and digests"))
def test_vectors_of_fingerprints_and_digests(recipe, text, expected, digest):
    bits = doppel.Recipe(recipe).bits
    found = doppel.fingerprint([text], recipe=recipe)[0]
    if bits > 64:
        assert isinstance(found, bytes) and len(found) == 16
        found = int.from_bytes(found, "little")
    assert f"{found:0{(bits + 3) // 4}x}" == expected
    found = doppel.digest([text], recipe=recipe)[0]
    assert (found.hex() if found else "0" * 64) == digest


@pytest.mark.parametrize("recipe, text, expected", [v for v in vectors("Signatures and samples") if "minhash" in v[0]])
def test_vectors_of_signatures(recipe, text, expected):
    slots = int(recipe.rpartition("=")[2])
    found = doppel.signature(text, recipe=recipe.rpartition(":")[0], slots=slots)
    assert " ".join(f"{slot:08x}" for slot in found) == expected
    assert doppel.signature(text, recipe=recipe, slots=slots) == found  # its own minhash= is replaced


def test_a_text_is_one_value_and_a_list_a_list():
    assert doppel.fingerprint(FOX) == 0xDF60EDC4AA97A4AB
    assert doppel.fingerprint([FOX]) == doppel.fingerprint((FOX,)) == [0xDF60EDC4AA97A4AB]
    assert doppel.fingerprint(text for text in [FOX]) == [0xDF60EDC4AA97A4AB]
    assert doppel.fingerprint([FOX.encode()]) == [0xDF60EDC4AA97A4AB]
    assert doppel.digest(FOX) == hashlib.sha256(FOX.lower().encode()).digest()
    assert len(doppel.signature(FOX)) == 128
    assert doppel.fingerprint([]) == doppel.signature([]) == doppel.digest([]) == []


def test_a_text_without_words():
    for text in ("", "...", " \t\n"):
        assert doppel.fingerprint(text) == 0
        assert doppel.signature(text) is None
        assert doppel.digest(text) is None


def test_bits_replace_the_width():
    wide = doppel.fingerprint(FOX)
    assert doppel.fingerprint(FOX, bits=16) == wide & 0xFFFF
    assert doppel.fingerprint(FOX, bits=128)[:8] == wide.to_bytes(8, "little")
    assert doppel.fingerprint(FOX, recipe=doppel.Recipe("page"), bits=8) == wide & 0xFF
    stop = doppel.Recipe("page", stop_words="the")
    assert doppel.fingerprint(FOX, recipe=stop, bits=16) == doppel.fingerprint(FOX, recipe=stop) & 0xFFFF
    for bits in (0, 65, 129, "64"):
        with pytest.raises(ValueError, match="bits: expected a width from 1 to 64, or 128"):
            doppel.fingerprint(FOX, bits=bits)


@pytest.mark.parametrize("options, error, message", [
    ({"recipe": "simhash64:word=5"}, ValueError, "word"),
    ({"recipe": 5}, TypeError, "recipe: expected str or Recipe"),
    ({"missing": "drop"}, ValueError, 'missing: expected "error" or "skip"'),
    ({"threads": -1}, ValueError, "threads: expected a number"),
    ({"progress": 1.5}, TypeError, "progress: expected True or a callable"),
])
def test_options_that_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        doppel.fingerprint([FOX], **options)
    with pytest.raises(ValueError, match="slots: expected 1 to 65536"):
        doppel.signature([FOX], slots=0)


def test_missing_texts():
    for null in (None, float("nan")):
        for call in (doppel.fingerprint, doppel.signature, doppel.digest):
            with pytest.raises(ValueError, match='texts: row 1 is null; missing="skip" passes over nulls'):
                call([FOX, null, FOX])
            assert call([FOX, null], missing="skip") == [call(FOX), None]
    assert doppel.fingerprint([None], missing="skip", bits=128) == [None]


@pytest.mark.parametrize("texts, error, message", [
    ([FOX, 3.5], TypeError, r"texts\[1\]: expected str, not float"),
    ([FOX, "\ud800"], ValueError, r"texts\[1\]"),
    ([FOX, b"caf\xe9"], ValueError, r"texts\[1\].*3"),
    (17, TypeError, "texts: expected"),
    (None, TypeError, "texts: expected"),
    (FOX.encode("utf-16"), ValueError, "UTF-8"),
])
def test_texts_that_are_refused(texts, error, message):
    with pytest.raises(error, match=message):
        doppel.fingerprint(texts)


def test_a_generator_that_fails():
    def generate():
        yield FOX
        raise OSError("half-way")

    with pytest.raises(OSError, match="half-way"):
        doppel.fingerprint(generate())


def test_the_first_bad_row_is_reported_whatever_the_threads():
    texts = [FOX * 20] * 20000
    texts[9000] = texts[9001] = texts[17000] = None
    for threads in (1, 2, 7):
        with pytest.raises(ValueError, match="row 9000 is null"):
            doppel.fingerprint(texts, threads=threads)


def test_threads_give_the_same():
    texts = [f"{FOX} {number} " * (number % 50) for number in range(3000)]
    columns = ["digest", "fingerprint", "signature", "bands", "words", "set"]
    one = doppel.sketch(texts, columns=columns, threads=1)
    assert len(one) == 3000 and one == doppel.sketch(texts, columns=columns, threads=5)
    assert one["fingerprint"].to_list() == doppel.fingerprint(texts)
    assert one["words"].to_list() == [10 * (number % 50) for number in range(3000)]


# ---- progress and interruption ----


@functools.lru_cache
def endless():
    """A column that takes minutes, and no memory: one long text, many times."""
    pyarrow = pytest.importorskip("pyarrow")
    long = " ".join(map(str, range(100_000)))
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 1_000_000, "int32"), [long])


def test_progress_of_little_and_much():
    seen = []
    doppel.fingerprint(TEXTS, progress=lambda *counts: seen.append(counts))
    assert seen == [(len(TEXTS), len(TEXTS))]
    seen.clear()
    doppel.fingerprint([FOX * 100] * 5000, progress=lambda *counts: seen.append(counts))
    assert seen[-1] == (5000, 5000) and all(total == 5000 for _, total in seen)


def test_progress_that_raises_ends_the_call():
    def progress(done, total):
        raise LookupError(f"{total} are too many")

    with pytest.raises(LookupError, match="1000000 are too many"):
        doppel.fingerprint(endless(), progress=progress)
    with pytest.raises(LookupError):
        doppel.fingerprint([FOX], progress=progress)


@pytest.mark.parametrize("call", [doppel.fingerprint, lambda texts: doppel.sketch(texts, columns=["set"])])
def test_an_interrupt_ends_the_call(call):
    texts = endless()
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        call(texts)
        time.sleep(5)
    timer.join()


def test_other_threads_run_meanwhile():
    texts = endless()
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.01)

    def stop(so_far, total):
        if len(ticks) > 10:
            raise StopIteration

    thread = threading.Thread(target=tick)
    thread.start()
    with pytest.raises(StopIteration):
        doppel.fingerprint(texts, progress=stop)
    done.set()
    thread.join()


# ---- Arrow data: what it gives is what a list gives ----


def arrow_forms(values):
    """The same texts in every form that pyarrow has for them; `values` may have None."""
    pa = pytest.importorskip("pyarrow")
    plain = pa.array(values, pa.string())
    around = pa.array(["before", None, *values, "after"], pa.string())
    halves = len(values) // 2
    forms = {
        "string": plain,
        "large": plain.cast(pa.large_string()),
        "binary": plain.cast(pa.binary()),
        "large binary": plain.cast(pa.large_binary()),
        "dictionary": plain.dictionary_encode(),
        "sliced": around.slice(2, len(values)),
        "sliced large": around.cast(pa.large_string()).slice(2, len(values)),
        "sliced dictionary": around.dictionary_encode().slice(2, len(values)),
        "chunked": pa.chunked_array([plain[:halves], plain[:0], plain[halves:], plain[:0]]),
        "sliced chunks": pa.chunked_array([around[:3], around[3:]]).slice(2, len(values)),
        "table": pa.table({"id": range(len(values)), "text": plain}),
        "sliced table": pa.table({"text": around, "id": range(len(values) + 3)}).slice(2, len(values)),
        "batch": pa.record_batch({"text": around}).slice(2, len(values)),
        "struct": pa.StructArray.from_arrays([around], ["text"]).slice(2, len(values)),
    }
    if hasattr(pa, "string_view"):
        forms["view"] = plain.cast(pa.string_view())
        forms["sliced view"] = around.cast(pa.string_view()).slice(2, len(values))
        forms["binary view"] = plain.cast(pa.binary()).cast(pa.binary_view())
    return forms


def polars_forms(values):
    polars = pytest.importorskip("polars")
    around = polars.Series("text", ["before", *values, None], dtype=polars.String)
    return {
        "series": polars.Series(values, dtype=polars.String),
        "slice": around.slice(1, len(values)),
        "frame": polars.DataFrame({"text": polars.Series(values, dtype=polars.String)}),
        "category": polars.Series(values, dtype=polars.String).cast(polars.Categorical),
    }


def assert_all_forms_give(values, forms, **options):
    for call in (doppel.fingerprint, doppel.signature, doppel.digest):
        expected = call(values, missing="skip", **options)
        for name, data in forms.items():
            found = call(data, missing="skip", **options)
            assert isinstance(found, doppel.Array), name
            assert found.to_list() == expected, (name, call)


WITH_NULLS = [None, *TEXTS, None, "a text of more than twelve bytes", "short", None]


def test_every_form_of_pyarrow_gives_what_a_list_gives():
    assert_all_forms_give(TEXTS, arrow_forms(TEXTS))
    assert_all_forms_give(WITH_NULLS, arrow_forms(WITH_NULLS))


def test_every_form_of_polars_gives_what_a_list_gives():
    assert_all_forms_give(TEXTS, polars_forms(TEXTS))
    assert_all_forms_give(WITH_NULLS, polars_forms(WITH_NULLS), recipe="article")


@given(st.lists(st.one_of(st.none(), st.text(max_size=30), st.sampled_from(TEXTS))))
def test_any_texts_give_what_a_list_gives(values):
    values = [value and value.encode("utf-8", "replace").decode() for value in values]
    expected = doppel.fingerprint(values, missing="skip")
    for name, data in arrow_forms(values).items():
        assert doppel.fingerprint(data, missing="skip").to_list() == expected, name


def test_a_null_struct_is_a_null_text():
    pa = pytest.importorskip("pyarrow")
    structs = pa.StructArray.from_arrays([pa.array(TEXTS)], ["text"], mask=pa.array([i == 2 for i in range(8)]))
    expected = [None if i == 2 else doppel.fingerprint(text) for i, text in enumerate(TEXTS)]
    assert doppel.fingerprint(structs, missing="skip").to_list() == expected
    assert doppel.fingerprint(structs.slice(1), missing="skip").to_list() == expected[1:]


def test_nulls_in_a_dictionary_are_null():
    pa = pytest.importorskip("pyarrow")
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1, None]), pa.array([None, FOX]))
    found = doppel.fingerprint(column, missing="skip")
    assert found.to_list() == [doppel.fingerprint(FOX), None, doppel.fingerprint(FOX), None]


def test_types_of_results():
    pa = pytest.importorskip("pyarrow")
    column = pa.array(TEXTS)
    assert pa.array(doppel.fingerprint(column)).type == pa.uint64()
    assert pa.array(doppel.fingerprint(column, bits=128)).type == pa.binary(16)
    assert pa.array(doppel.digest(column)).type == pa.binary(32)
    assert pa.array(doppel.signature(column, slots=7)).type == pa.list_(pa.uint32(), 7)
    assert pa.array(doppel.signature(column, slots=7)).null_count == 2
    assert pa.array(doppel.fingerprint(column)).null_count == 0


def test_arrow_data_that_is_refused():
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(TypeError, match="texts: expected a column of strings"):
        doppel.fingerprint(pa.array([1, 2]))
    with pytest.raises(TypeError, match="texts"):
        doppel.fingerprint(pa.array([["a"], []]))
    with pytest.raises(KeyError, match='no column "body"; the columns are id, text'):
        doppel.fingerprint(pa.table({"id": [1], "text": [FOX]}), text="body")
    with pytest.raises(KeyError, match='no column "text"'):
        doppel.fingerprint(pa.table({"id": pa.array([], pa.int64())}))
    with pytest.raises(ValueError, match="texts: row 1 is null"):
        doppel.fingerprint(pa.chunked_array([[FOX], [None]]))
    with pytest.raises(ValueError, match=r"texts.*4.*UTF-8.*2"):
        doppel.fingerprint(pa.chunked_array([[b"a", b"b", b"c"], [b"d", b"ab\xff"]]))
    with pytest.raises(ValueError, match="texts: row 0 is null"):
        doppel.fingerprint(pa.nulls(3))


def test_empty_and_null_arrow_data():
    pa = pytest.importorskip("pyarrow")
    assert doppel.fingerprint(pa.array([], pa.string())).to_list() == []
    assert doppel.signature(pa.table({"text": pa.array([], pa.string())})).to_list() == []
    assert doppel.fingerprint(pa.chunked_array([], pa.string())).to_list() == []
    assert doppel.fingerprint(pa.nulls(3), missing="skip").to_list() == [None] * 3


def test_a_result_outlives_what_it_was_made_of():
    pa = pytest.importorskip("pyarrow")
    column = pa.array(TEXTS)
    found = doppel.fingerprint(column)
    del column
    again = pa.array(found)
    del found
    assert again.to_pylist() == doppel.fingerprint(TEXTS)


# ---- sketch ----


def band_keys(signature, bands, rows):
    """docs/FORMAT.md, section 11."""
    keys = []
    for band in range(bands):
        key = band
        for slot in signature[band * rows:(band + 1) * rows]:
            key = (key ^ slot) * 0x9E3779B97F4A7C15 & MASK
            key ^= key >> 32
        keys.append(key >> 16 & 0xFFFFFFFF)
    return keys


def test_sketch_has_what_single_calls_give():
    t = doppel.sketch(TEXTS, bands=20, rows=5)
    assert isinstance(t, doppel.Table) and t.column_names == ["digest", "fingerprint", "signature", "bands"]
    assert t["digest"].to_list() == doppel.digest(TEXTS)
    assert t["fingerprint"].to_list() == doppel.fingerprint(TEXTS)
    assert t["signature"].to_list() == doppel.signature(TEXTS, slots=100)
    for text, signature, keys in zip(TEXTS, t["signature"], t["bands"]):
        assert keys == (band_keys(signature, 20, 5) if len(text) > 12 or text == TEXTS[4] else None), text


def test_sets_are_what_signatures_are_made_of():
    t = doppel.sketch(TEXTS, columns=("words", "set"))
    assert t["words"].to_list() == [9, 0, 0, 7, 12, 9, 2, 9]
    assert [len(s) for s in t["set"]] == [5, 0, 0, 3, 8, 5, 1, 5]
    for numbers in t["set"]:
        assert numbers == sorted(set(numbers))
    assert t["set"][0] == t["set"][5] == t["set"][7]


def test_bands_need_min_words():
    texts = ["one two three", "one two three four", "one two three four five"]
    assert [keys is None for keys in doppel.sketch(texts)["bands"]] == [True, True, False]
    assert [keys is None for keys in doppel.sketch(texts, min_words=4)["bands"]] == [True, False, False]
    assert [keys is None for keys in doppel.sketch([*texts, ""], min_words=0)["bands"]] == [False] * 3 + [True]


def test_bands_are_planned_for_a_similarity():
    t = doppel.sketch([FOX])
    share = 1 - (1 - 0.8 ** (len(t["signature"][0]) // len(t["bands"][0]))) ** len(t["bands"][0])
    assert share >= 0.999
    more = doppel.sketch([FOX], similarity=0.6)
    assert len(more["bands"][0]) > len(t["bands"][0])
    assert len(doppel.sketch([FOX], rows=4)["signature"][0]) == 4 * len(doppel.sketch([FOX], rows=4)["bands"][0])


@pytest.mark.parametrize("options, message", [
    ({"similarity": 0}, "similarity: expected more than 0"),
    ({"similarity": 1.5}, "similarity: expected more than 0"),
    ({"bands": 0}, "bands: expected a number"),
    ({"rows": -1}, "rows: expected a number"),
    ({"bands": 100_000, "rows": 1000}, "bands: there are none"),
    ({"columns": ["digests"]}, "columns: no column 'digests'; the columns are digest, fingerprint"),
    ({"columns": []}, "columns: expected some of digest"),
    ({"min_words": -1}, "min_words: expected a number"),
    ({"missing": None}, "missing"),
])
def test_sketch_options_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        doppel.sketch([FOX], **options)


def test_sketch_passes_over_nulls():
    columns = ["digest", "fingerprint", "signature", "bands", "words", "set"]
    t = doppel.sketch([FOX, None, FOX], columns=columns, missing="skip")
    assert t[1] == dict.fromkeys(columns)
    assert t[0] == t[2]
    with pytest.raises(ValueError, match="data: row 1 is null"):
        doppel.sketch([FOX, None])


@pytest.mark.parametrize("forms", [arrow_forms, polars_forms])
def test_sketch_of_every_form_gives_what_a_list_gives(forms):
    columns = ["set", "bands", "words", "fingerprint"]
    expected = doppel.sketch(WITH_NULLS, columns=columns, missing="skip")
    for name, data in forms(WITH_NULLS).items():
        assert doppel.sketch(data, columns=columns, missing="skip") == expected, name


def test_a_table_of_sketches_is_an_arrow_table():
    pa = pytest.importorskip("pyarrow")
    t = pa.table(doppel.sketch(pa.table({"body": TEXTS}), text="body", columns=["set", "bands", "digest"]))
    assert t.schema.field("set").type == pa.large_list(pa.uint64())
    assert t.schema.field("digest").type == pa.binary(32)
    assert t.num_rows == len(TEXTS) and t.column("digest").null_count == 2


# ---- verify ----


def jaccard(a, b):
    return len({*a} & {*b}) / len({*a} | {*b}) if a or b else 1.0


def expected_pairs(pairs):
    """What verify gives, of the sets and fingerprints of single calls."""
    found = []
    for a, b in pairs:
        x, y = doppel.sketch([a, b], columns="set")["set"]
        shared = len({*x} & {*y})
        found.append({
            "similarity": jaccard(x, y),
            "containmentAB": shared / len(x) if x else None,
            "containmentBA": shared / len(y) if y else None,
            "distance": doppel.hamming(*doppel.fingerprint([a, b])) if x and y else None,
        })
    return found


PAIRS = [(a, b) for a in TEXTS for b in (FOX, "", "a quick brown fox jumps over the lazy dog")]


def test_verify_measures_pairs_of_texts():
    t = doppel.verify(PAIRS)
    assert t.column_names == ["similarity", "containmentAB", "containmentBA", "distance"]
    assert t.to_list() == expected_pairs(PAIRS)
    assert doppel.verify(iter(PAIRS)) == t
    wide = doppel.verify(PAIRS, recipe="simhash128:words=2")
    assert wide[2]["distance"] == doppel.compare(*PAIRS[2], recipe="simhash128:words=2").distance > 0


def test_verify_takes_columns_of_texts_and_of_sets():
    pa = pytest.importorskip("pyarrow")
    expected = doppel.verify(PAIRS)
    a, b = zip(*PAIRS)
    table = pa.table({"b": b, "a": a, "other": range(len(a))})
    assert doppel.verify(table) == expected
    chunks = pa.concat_tables([table[:5], table[5:5], table[5:]])
    assert doppel.verify(chunks.slice(3)) == expected[3:]
    assert doppel.verify(table.rename_columns(["y", "x", "other"]), a="x", b="y", threads=2) == expected
    sets = {name: doppel.sketch(list(side), columns="set")["set"] for name, side in (("a", a), ("b", b))}
    known = [row | {"distance": None} for row in expected.to_list()]
    assert doppel.verify(doppel.Table(sets)) == known
    assert doppel.verify(sets) == known
    for kind in (pa.list_(pa.uint64()), pa.large_list(pa.uint64())):
        table = pa.table({name: pa.array(side.to_list(), kind) for name, side in sets.items()})
        assert doppel.verify(table) == known
        assert doppel.verify(table.slice(7, 9)) == known[7:16]
        assert doppel.verify(pa.table({"a": table["a"], "b": b})) == known  # sets beside texts


@given(st.lists(st.tuples(st.lists(st.integers(0, 2**64 - 1), max_size=6), st.lists(st.integers(0, 9), max_size=6))),
       st.integers(0, 3))
def test_verify_of_any_sets(pairs, start):
    pa = pytest.importorskip("pyarrow")
    pairs = [(sorted(set(a)), sorted(set(b))) for a, b in pairs]
    shapes = [pa.list_(pa.uint64()), pa.large_list(pa.uint64())]
    if hasattr(pa, "list_view"):
        shapes += [pa.list_view(pa.uint64()), pa.large_list_view(pa.uint64())]
    expected = [jaccard(a, b) for a, b in pairs][start:]
    for shape in shapes:
        table = pa.table({"a": pa.array([a for a, b in pairs], shape), "b": pa.array([b for a, b in pairs], shape)})
        assert doppel.verify(table.slice(start))["similarity"].to_list() == expected, shape
        structs = pa.StructArray.from_arrays([table["a"].combine_chunks(), table["b"].combine_chunks()], ["a", "b"])
        assert doppel.verify(structs.slice(start))["similarity"].to_list() == expected, shape


def test_verify_of_fixed_size_lists():
    pa = pytest.importorskip("pyarrow")
    a = pa.array([[0, 1], [2, 3], [4, 5]], pa.list_(pa.uint64(), 2))
    b = pa.array([[1, 2], [2, 3], [5, 9]], pa.list_(pa.uint64(), 2))
    table = pa.table({"a": a, "b": b})
    assert doppel.verify(table)["similarity"].to_list() == [1 / 3, 1, 1 / 3]
    assert doppel.verify(table.slice(1))["similarity"].to_list() == [1, 1 / 3]


def test_pairs_that_are_refused():
    with pytest.raises(TypeError, match=r"pairs\[1\]: expected a tuple of two texts"):
        doppel.verify([(FOX, FOX), (FOX,)])
    with pytest.raises(TypeError, match=r"pairs\[0\]: expected a tuple of two texts"):
        doppel.verify([FOX])
    with pytest.raises(TypeError, match=r"b\[0\]: expected str, not int"):
        doppel.verify([(FOX, 3)])
    with pytest.raises(ValueError, match="b: row 1 is null"):
        doppel.verify([(FOX, FOX), (FOX, None)])
    assert doppel.verify([]).to_list() == []
    pa = pytest.importorskip("pyarrow")
    with pytest.raises(KeyError, match='no column "b"; the columns are a, c'):
        doppel.verify(pa.table({"a": [FOX], "c": [FOX]}))
    sets = pa.array([[1, 2], [2, 1], None, [1, None]], pa.list_(pa.uint64()))
    for start, message in ((0, "a: row 1 is no set"), (2, "a: row 0 is null"), (3, "a: row 0 has a null in its set")):
        with pytest.raises(ValueError, match=message):
            doppel.verify(pa.table({"a": sets[start:], "b": sets[start:]}))
    with pytest.raises(TypeError, match="a: expected a column of strings"):
        doppel.verify(pa.table({"a": [[1]], "b": [[1]]}))


# ---- compare ----


def test_compare_has_every_measure():
    other = "a quick brown fox jumps over the lazy dog"
    c = doppel.compare(FOX, other)
    assert [c.fingerprint_a, c.fingerprint_b] == doppel.fingerprint([FOX, other])
    assert (c.bits, c.distance) == (64, doppel.hamming(c.fingerprint_a, c.fingerprint_b))
    assert (c.words_a, c.words_b, c.shingles_a, c.shingles_b, c.shingles_shared) == (9, 9, 5, 5, 4)
    assert (c.similarity, c.containment_ab, c.containment_ba) == (4 / 6, 4 / 5, 4 / 5)
    equal = sum(x == y for x, y in zip(doppel.signature(FOX), doppel.signature(other)))
    assert c.signature_similarity == equal / 128
    assert (c.edit_distance, c.indel_distance) == (3, 4)
    assert 0.9 < c.edit_similarity < 1 and 0 < c.cosine < 1 and 0 < c.angle < 90 and c.euclidean > 0
    assert not c.same_digest and c.digest_a == doppel.digest(FOX) and c.digest_b == doppel.digest(other)
    assert c.passages == []
    assert pickle.loads(pickle.dumps(c)) == c


def test_compare_without_words():
    c = doppel.compare("", FOX)
    assert c.distance is None and c.containment_ab is None and c.signature_similarity is None and c.digest_a is None
    assert c.similarity == 0 and c.containment_ba == 0 and c.digest_b
    assert doppel.compare("", "...").similarity == 1


def test_compare_of_128_bits():
    c = doppel.compare(FOX, FOX, recipe="simhash128:words=2")
    assert c.fingerprint_a == doppel.fingerprint(FOX, recipe="simhash128:words=2") and c.bits == 128 and c.distance == 0


def test_passages_are_places_in_the_texts():
    a = "Überschrift 🦊: der schnelle braune Fuchs rennt, springt über den faulen Hund. Ende"
    b = "Und: Der schnelle braune Fuchs springt, dann springt über den faulen Hund auch er"
    found = doppel.compare(a, b, passages=3).passages
    assert [a[p.a_start:p.a_end] for p in found] == ["der schnelle braune Fuchs", "springt über den faulen Hund"]
    assert [b[p.b_start:p.b_end] for p in found] == ["Der schnelle braune Fuchs", "springt über den faulen Hund"]
    assert [p.words for p in found] == [4, 5]
    ascii_text = "x y z " + FOX
    found = doppel.compare(ascii_text, FOX, passages=5).passages
    assert [ascii_text[p.a_start:p.a_end] for p in found] == [FOX]


def test_compare_of_long_texts():
    a = " ".join(map(str, range(20_000)))
    c = doppel.compare(a, a + " more", passages=100)
    assert c.words_b == 20_001 and c.passages[0].words == 20_000


def test_comparisons_that_are_refused():
    with pytest.raises(TypeError, match="b: expected str, not NoneType"):
        doppel.compare(FOX, None)
    with pytest.raises(TypeError, match="a: expected str, not bytes"):
        doppel.compare(b"x", FOX)
    with pytest.raises(ValueError):
        doppel.compare(FOX, "\udc80")
    with pytest.raises(ValueError, match="passages: expected a number"):
        doppel.compare(FOX, FOX, passages=-1)
    with pytest.raises(ValueError, match="recipe"):
        doppel.compare(FOX, FOX, recipe="pages")


# ---- hamming ----


def differing(a, b):
    return None if a is None or b is None else bin(a ^ b).count("1")


def test_hamming_of_numbers():
    assert doppel.hamming(0, MASK) == 64
    assert doppel.hamming(5, 5) == 0
    assert doppel.hamming(bytes(16), b"\xff" * 16) == 128
    assert doppel.hamming(1 << 100, 1) == 2
    assert doppel.hamming(b"\1" + bytes(15), 1) == 0


NUMBERS = st.lists(st.one_of(st.none(), st.integers(0, MASK)), max_size=40)


@given(NUMBERS, st.randoms(use_true_random=False))
def test_hamming_of_lists_and_columns(a, random):
    b = [random.choice([None, random.getrandbits(64)]) for _ in a]
    expected = [differing(x, y) for x, y in zip(a, b)]
    assert doppel.hamming(a, b) == doppel.hamming(tuple(a), iter(b)) == expected
    assert doppel.hamming(a, 7) == doppel.hamming(7, a) == [differing(x, 7) for x in a]
    pa = pytest.importorskip("pyarrow")
    column = pa.array([1, None, *a, 3], pa.uint64()).slice(2, len(a))
    chunks = pa.chunked_array([column[:3], column[3:]], pa.uint64())
    for left, right in ((column, b), (chunks, pa.array(b, pa.uint64())), (a, pa.array(b, pa.uint64()))):
        found = doppel.hamming(left, right)
        assert isinstance(found, doppel.Array) and found.to_list() == expected
    assert doppel.hamming(column, 7).to_list() == [differing(x, 7) for x in a]


@given(st.lists(st.one_of(st.none(), st.binary(min_size=16, max_size=16)), max_size=40), st.integers(0, 2**128 - 1))
def test_hamming_of_128_bits(values, other):
    numbers = [value and int.from_bytes(value, "little") for value in values]
    expected = [differing(number, other) for number in numbers]
    assert doppel.hamming(values, other) == doppel.hamming(numbers, other.to_bytes(16, "little")) == expected
    pa = pytest.importorskip("pyarrow")
    column = pa.array([None, *values], pa.binary(16)).slice(1)
    assert doppel.hamming(column, other).to_list() == expected
    assert doppel.hamming(column, numbers).to_list() == [number if number is None else 0 for number in numbers]


def test_hamming_of_other_forms():
    numpy = pytest.importorskip("numpy")
    numbers = numpy.array([0, 1, 2**64 - 1], numpy.uint64)
    assert doppel.hamming(numbers, 0) == [0, 1, 64]
    assert doppel.hamming(numbers[::-1], numbers) == [64, 0, 64]
    assert doppel.hamming(numbers.astype(numpy.int64), 0) == [0, 1, 64]
    assert doppel.hamming(numpy.uint64(3), 0) == 2
    assert doppel.hamming(numpy.array([3, 4], numpy.uint8), 0) == [2, 1]
    polars = pytest.importorskip("polars")
    assert doppel.hamming(polars.Series([0, None, 3], dtype=polars.UInt64), 0).to_list() == [0, None, 2]
    assert doppel.hamming(doppel.fingerprint(polars.Series(TEXTS)), doppel.fingerprint(TEXTS)).to_list() == [0] * 8


@pytest.mark.parametrize("a, b, error, message", [
    ([1, 2, 3], [1, 2], ValueError, "a has 3 fingerprints, b has 2"),
    ([1], [], ValueError, "a has 1 fingerprints, b has 0"),
    (-1, 0, ValueError, "a: expected an int from 0"),
    ([0, 1 << 128], 0, ValueError, r"a\[1\]: expected an int from 0"),
    ([0, 1.5], 0, TypeError, r"a\[1\]: expected int or 16 bytes, not float"),
    (bytes(8), 0, ValueError, "a: expected an int"),
    (0, "ff", TypeError, "b: expected fingerprints, not str"),
    (0, None, TypeError, "b: expected fingerprints, not NoneType"),
])
def test_fingerprints_that_are_refused(a, b, error, message):
    with pytest.raises(error, match=message):
        doppel.hamming(a, b)


def test_columns_that_are_no_fingerprints():
    pa = pytest.importorskip("pyarrow")
    for column in (pa.array([1.5]), pa.array(["x"]), pa.array([b"12345678"], pa.binary(8)), pa.array([1], pa.int32()),
                   pa.table({"fingerprint": pa.array([1], pa.uint64())})):
        with pytest.raises(TypeError, match="a: expected a column of fingerprints"):
            doppel.hamming(column, 0)
    with pytest.raises(ValueError, match="a has fingerprints of 64 bits, b of 128"):
        doppel.hamming(pa.array([1], pa.uint64()), pa.array([bytes(16)], pa.binary(16)))


# ---- the documentation ----


def test_the_examples_of_the_documentation():
    import doctest

    import doppel._sketches

    assert doctest.testmod(doppel._sketches).failed == 0

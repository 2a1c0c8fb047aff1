"""trim on data in memory, and trim_files on JSONL: every kind of data gives what a list gives, and that is what the doppel
command gives; what is left is what the spans leave; bad input; threads, signals and memory.

DOPPEL_COMMAND names the doppel command, whose answers are compared.
"""
import gc
import json
import os
import random
import re

import pytest

import doppel
from documents import (PLAIN, WORDS, check_interrupt, make_text, needs_command, read_jsonl, resident, run_command,
                       run_threads, write_jsonl)
from test_batch import TABLES, as_arrays, library

FOOTER = "All rights reserved by the publisher."
TEXTS = [f"First page.\n{FOOTER}", f"Second page.\n{FOOTER}", FOOTER]
CUT = [TEXTS[0], "Second page.\n", ""]
UNITS = ["line", "sentence", "paragraph", "passage"]


def make_pages(count, seed=1):
    """Pages that repeat each other's sentences, lines and paragraphs, and their own."""
    random_ = random.Random(seed)
    sentences = [make_text(random_, random_.randint(2, 9)).capitalize() + random_.choice([".", "!", "。", "?"])
                 for _ in range(count)]
    lines = [" ".join(random_.choices(sentences, k=random_.randint(1, 3))) for _ in range(count // 2 + 1)]
    pages = []
    for number in range(count):
        text = pages[-1]["text"] if number % 5 > 2 else ""
        for _ in range(random_.randint(0, 6)):
            line = random_.choice(lines) if random_.random() < 0.6 else make_text(random_, random_.randint(3, 14))
            text += (line.upper() if random_.random() < 0.2 else line) + random_.choice(["\n", "\n", "\n\n", "\r\n", " "])
        pages.append({
            "id": f"d{number}", "text": text, "url": f"https://site{random_.randint(0, 3)}.org/{number}",
            "title": f"Page {number}", "date": f"2024-0{random_.randint(1, 9)}-11", "lang": random_.choice(["en", "de"]),
            "score": random_.randint(0, 50)})
    return pages


PAGES = make_pages(120)


def texts_of(seed, nulls=False):
    random_ = random.Random(seed)
    return [None if nulls and random_.random() < 0.2 else page["text"] for page in make_pages(40, seed)]


def answers(data, **options):
    """What trim gives, as plain values."""
    cut = doppel.trim(data, **options)
    return {"texts": cut.texts.to_list(), "mask": cut.mask.to_list(), "spans": cut.spans.to_list(),
            "dropped": cut.dropped.to_list(), "summary": {**cut.summary, "bytes": 0}}


def left_of(text, spans):
    """A text without its spans."""
    data = text.encode()
    gone = {at for span in spans for at in range(span["start"], span["end"])}
    return bytes(byte for at, byte in enumerate(data) if at not in gone).decode()


# ---- what is cut ----


def test_repeated_lines_go():
    cut = doppel.trim(TEXTS)
    assert cut == CUT and cut.texts.to_list() == CUT and cut.mask.to_list() == [True] * 3
    assert cut.spans.to_list() == [
        {"id": 1, "start": 13, "end": 50, "words": 6, "originalId": 0, "originalStart": 12},
        {"id": 2, "start": 0, "end": 37, "words": 6, "originalId": 0, "originalStart": 12}]
    assert cut.dropped.to_list() == [{"id": 2, "reason": "empty", "words": 6, "wordsCut": 6, "originalId": 0}]
    assert cut.summary == {
        "unit": "line", "documents": 3, "bytes": cut.summary["bytes"], "against": 0, "shortAgainst": 0, "documentsCut": 2,
        "spans": 2, "words": 22, "wordsCut": 12, "bytesCut": 74, "dropped": 0, "emptied": 1, "repeated": 2, "values": 1}


def test_documents_are_dropped():
    for options, reason in (({"drop": True}, "repeats"), ({"drop_below": 3}, "below"), ({"drop_share": 0.5}, "share")):
        cut = doppel.trim(TEXTS, **options)
        assert cut == cut.texts.to_list() == TEXTS[:1] and cut.mask.to_list() == [True, False, False]
        assert cut.dropped["reason"].to_list() == [reason] * 2 and cut.dropped["id"].to_list() == [1, 2]
        assert cut.summary["dropped"] == 2 and cut.summary["emptied"] == 0 and len(cut.spans) == 2
    assert doppel.trim(TEXTS, drop_share=0.8) == CUT[:2]


def test_other_options():
    assert doppel.trim(TEXTS, keep="last") == ["First page.\n", "Second page.\n", FOOTER]
    assert doppel.trim(TEXTS, keep_first=False) == ["First page.\n", "Second page.\n", ""]
    assert doppel.trim(TEXTS, min_count=4) == doppel.trim(TEXTS, min_words=7) == TEXTS
    assert doppel.trim(TEXTS, within="document") == TEXTS
    assert doppel.trim([FOOTER + "\n" + FOOTER], within="document") == [FOOTER + "\n"]
    assert doppel.trim([FOOTER + "\n" + FOOTER], across="document") == [FOOTER + "\n" + FOOTER]
    passages = doppel.trim(["one two three four five six", "so: ONE two, three four\nfive. And?"], unit="passage", words=5)
    assert passages[1] == "so: And?"
    three = ["A b c d e. F g h i j. K l m n o.", "x. A b c d e. F g h i j. K l m n o. y", "A b c d e. F g h i j. z"]
    assert doppel.trim(three, unit="sentence", run=3) == [three[0], "x. y", three[2]]


def test_against_others():
    cut = doppel.trim(TEXTS, against=["nothing", FOOTER])
    assert cut == ["First page.\n", "Second page.\n", ""]
    assert cut.spans["originalId"].to_list() == [1, 1, 1] and cut.spans["originalStart"].to_list() == [0, 0, 0]
    assert cut.summary["against"] == 2 and cut.summary["documents"] == 3
    named = doppel.trim({"id": [*"abc"], "text": TEXTS}, against={"id": ["x", "y", "z"], "text": [None, "other", FOOTER]},
                        missing="skip")
    assert named.spans["id"].to_list() == [*"abc"] and named.spans["originalId"].to_list() == ["z"] * 3
    questions = doppel.trim(["Is it the answer to\nthe question of life? Yes."], unit="passage", words=8, drop=True,
                            against=["it the ANSWER to the question, of life"])
    assert questions == [] and questions.dropped[0]["reason"] == "repeats"
    with pytest.raises(ValueError, match="against"):
        doppel.trim(TEXTS, against=[FOOTER], min_count=3)
    with pytest.raises(ValueError, match="against: row 0 is null"):
        doppel.trim(TEXTS, against=[None, FOOTER])


OPTIONS = [
    *({"unit": unit, **options} for unit in UNITS[:3] for options in
      ({}, {"run": 2}, {"min_words": 1}, {"min_count": 3}, {"keep_first": False}, {"keep": "longest"})),
    {"unit": "passage", "words": 5}, {"unit": "passage", "words": 12}, {"unit": "passage", "words": 6, "keep": "last"},
    {"unit": "passage", "words": 7, "keep_first": False, "min_count": 3}, {"within": "host"}, {"across": "lang"},
    {"within": "document", "min_words": 1}, {"keep": "newest:date"}, {"keep": "largest:score,shortest", "unit": "sentence"},
    {"drop_below": 10}, {"drop_share": 0.3, "unit": "sentence"}, {"drop": True, "unit": "paragraph"},
    {"recipe": "simhash64:words=1:case=keep"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_what_is_left_is_what_the_spans_leave(options):
    cut = doppel.trim(PAGES, **options)
    spans = {}
    for span in cut.spans:
        spans.setdefault(span["id"], []).append(span)
    dropped = {row["id"] for row in cut.dropped if row["reason"] != "empty"}
    expected = [{**page, "text": left_of(page["text"], spans.get(page["id"], ()))} for page in PAGES]
    assert cut == [page for page in expected if page["id"] not in dropped]
    assert cut.mask.to_list() == [page["id"] not in dropped for page in PAGES]
    assert cut.texts.to_list() == [page["text"] for page in cut]
    assert cut.summary["documentsCut"] == len(spans) and cut.summary["spans"] == len(cut.spans) > 0
    texts = {page["id"]: page["text"].encode() for page in PAGES}
    for span in cut.spans:  # originals begin with the same words
        here, there = (texts[id][at:].decode().lower() for id, at in
                       ((span["id"], span["start"]), (span["originalId"], span["originalStart"])))
        assert re.findall(r"\w+", here)[:2] == re.findall(r"\w+", there)[:2]


@needs_command
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_command_gives_the_same(options, tmp_path, monkeypatch):
    path = write_jsonl(tmp_path / "pages.jsonl", PAGES)
    given = {name: "off" if value is False else value for name, value in options.items()}
    lines = run_command("trim", path, "-o", tmp_path / "cut.jsonl", "--spans", tmp_path / "spans.jsonl", "--dropped",
                        tmp_path / "dropped.jsonl", "--json", **given)
    cut = doppel.trim(PAGES, **options)
    assert cut == read_jsonl(tmp_path / "cut.jsonl")
    assert cut.spans.to_list() == read_jsonl(tmp_path / "spans.jsonl")
    assert cut.dropped.to_list() == read_jsonl(tmp_path / "dropped.jsonl")
    figures = {name: lines[0][name] for name in cut.summary if name in lines[0]}
    assert len(figures) > 10 and figures == {**{name: cut.summary[name] for name in figures}, "bytes": figures["bytes"]}
    monkeypatch.chdir(tmp_path)
    summary = doppel.trim_files(path, "files.jsonl", spans="files spans.jsonl", dropped="files dropped.jsonl", **options)
    assert {name: summary[name] for name in figures} == figures
    for one, other in (("cut", "files"), ("spans", "files spans"), ("dropped", "files dropped")):
        assert (tmp_path / f"{one}.jsonl").read_bytes() == (tmp_path / f"{other}.jsonl").read_bytes()


@pytest.mark.parametrize("options", [{}, {"unit": "passage", "words": 6}, {"unit": "sentence", "keep": "longest"}], ids=str)
def test_threads_do_not_matter(options):
    expected = answers(PAGES, **options, threads=1)
    assert all(answers(PAGES, **options, threads=threads) == expected for threads in (2, 7))
    assert answers(PAGES, **options, memory=1 << 20) == expected


# ---- every kind of data gives what a list gives ----


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("nulls", [False, True])
def test_arrays_give_what_lists_give(unit, nulls):
    texts = texts_of(3, nulls)
    options = {"unit": unit, "drop_share": 0.9, **({"words": 6} if unit == "passage" else {}),
               **({"missing": "skip"} if nulls else {})}
    expected = answers(texts, **options)
    assert expected["spans"] and doppel.trim(texts, **options) == expected["texts"]
    for name, data in as_arrays(texts, None):
        assert answers(data, **options) == expected, name
        pa = library("pyarrow")
        cut = doppel.trim(data, **options)
        made = pa.chunked_array(cut)
        plain = made.cast(pa.large_binary()).cast(pa.large_string()).to_pylist()
        assert plain == expected["texts"], name
        assert made.type == (data.type.value_type if pa.types.is_dictionary(data.type) else data.type), name
        made.validate(full=True)
        if "view" not in str(data.type):  # pyarrow has no filter for them
            assert cut.kept.type == made.type and cut.kept.to_pylist() == made.to_pylist(), name
            assert isinstance(cut.kept, type(made) if name == "chunks" else pa.Array)


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_tables_of_all_libraries_give_what_lists_give(make, nulls):
    texts = texts_of(7, nulls)
    ids = [f"id {number}" for number in range(len(texts))]
    options = {"drop_share": 0.9, **({"missing": "skip"} if nulls else {})}
    by_row = answers(texts, **options)
    named = {name: [{**row, "id": ids[row["id"]], "originalId": ids[row["originalId"]]} for row in by_row[name]] for name in ("spans", "dropped")}
    assert named["dropped"] and answers(make(texts, ids), **options) == {**by_row, **named}
    cut = doppel.trim(make(texts, ids), id=None, **options)
    assert cut.spans.to_list() == by_row["spans"]
    kept = [id for id, stays in zip(ids, by_row["mask"]) if stays]
    assert [(row["id"], row["text"]) for row in cut] == [*zip(kept, by_row["texts"])]


def test_the_rest_of_a_table_stays_as_it_is():
    pa = library("pyarrow")
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view()):
        column = pa.field("text", kind, metadata={"of": "pages"})
        table = pa.table({"n": [1, None, 3], "text": pa.array(TEXTS).cast(kind), "list": [[1], None, []],
                          "struct": [{"a": None}, {"a": "x"}, None]})
        table = table.set_column(1, column, table["text"]).replace_schema_metadata({"origin": "tests"})
        for data in (table, pa.concat_tables([table[2:], table])[1:], table.to_batches()[0]):
            cut = doppel.trim(data)
            made = pa.table(cut)
            assert made.schema.equals(table.schema, check_metadata=True)
            assert made.drop(["text"]).to_pylist() == table.drop(["text"]).to_pylist()
            made.validate(full=True)
            assert [text if isinstance(text, str) else text.decode() for text in made["text"].to_pylist()] == CUT
            assert len(cut) == 3 and cut[0]["n"] == 1 and cut[-1]["text"] == made["text"][-1].as_py()
            assert repr(cut) == "<doppel.Trimmed: 3 of 3 rows>"
    shared, before = made["n"].chunk(0).buffers()[1], table["n"].chunk(0).buffers()[1]
    assert shared.address == before.address


def test_rows_that_are_null_as_a_whole():
    """A batch that is an array of structs, with an offset."""
    pa = library("pyarrow")
    rows = [{"text": text, "n": n} for n, text in enumerate(["x", *TEXTS])]
    array = pa.array([*rows[:2], None, *rows[2:]]).slice(1)
    cut = doppel.trim(array, missing="skip")
    assert cut.texts.to_list() == [CUT[0], None, *CUT[1:]]
    assert cut.spans["id"].to_list() == [2, 3]
    assert doppel.dedup(array, missing="skip").mask.to_list() == [True] * 4


def test_kept_is_of_the_library_of_the_data():
    pa, pandas, polars = library("pyarrow"), library("pandas"), library("polars")
    table = pa.table({"text": TEXTS, "n": [0, 1, 2], "nested": [[{"a": 1}], None, []]})
    expected = table.set_column(0, "text", pa.array(CUT))[:2]
    options = {"drop_share": 0.9}
    for data in (table, table.to_batches()[0]):
        kept = doppel.trim(data, **options).kept
        assert isinstance(kept, type(data)) and pa.table(kept).equals(expected)
    reader = doppel.trim(table.to_reader(), **options)
    assert isinstance(reader.kept, pa.Table) and reader.kept.equals(expected)
    frame = polars.DataFrame(table)
    assert doppel.trim(frame, **options).kept.equals(polars.DataFrame(expected))
    assert polars.DataFrame(doppel.trim(frame, **options)).equals(polars.DataFrame(expected))
    series = polars.Series("body", [text.encode() for text in TEXTS])
    assert doppel.trim(series, **options).kept.equals(polars.Series("body", [text.encode() for text in CUT[:2]]))
    assert doppel.trim(frame.lazy(), **options).kept["n"].to_pylist() == [0, 1]
    for kind in (object, "string", "string[pyarrow]", pandas.ArrowDtype(pa.string()), pandas.ArrowDtype(pa.binary())):
        values = [text.encode() if "binary" in str(kind) else text for text in TEXTS]
        left = [text.encode() if "binary" in str(kind) else text for text in CUT]
        frame = pandas.DataFrame({"odd": [object, 5, None], "text": pandas.Series(values, dtype=kind, index=[*"xyy"])},
                                 index=[*"xyy"])
        cut = doppel.trim(frame, **options)
        assert cut.kept["text"].tolist() == left[:2] and cut.kept["text"].dtype == frame["text"].dtype
        assert cut.kept[["odd"]].equals(frame[["odd"]][:2]) and frame["text"].tolist() == values
        assert pa.table(doppel.trim(frame[["text"]], **options))["text"].to_pylist() == left[:2]
        assert cut[1]["text"] == left[1]
    column = pandas.Series(TEXTS, name="body", index=[3, 2, 1])
    assert doppel.trim(column).kept.equals(pandas.Series(CUT, name="body", index=[3, 2, 1], dtype=column.dtype))
    category = doppel.trim(pandas.DataFrame({"text": pandas.Series(TEXTS, dtype="category")}))
    assert category.kept["text"].tolist() == CUT
    assert doppel.trim(pa.table({"text": pa.array(TEXTS).dictionary_encode()})).kept.schema.field("text").type == pa.string()


def test_datasets_are_datasets():
    datasets = library("datasets")
    dataset = datasets.Dataset.from_dict({"text": TEXTS, "tags": [["a"], ["b"], []], "n": [1, 2, 3]}, split="train")
    for data in (dataset, dataset.with_format("numpy", columns=["n"]), dataset.select([2, 0, 1]).select([1, 2, 0])):
        kept = doppel.trim(data, drop_share=0.9).kept
        assert isinstance(kept, datasets.Dataset) and kept.features == data.features and kept.split == "train"
        assert kept.with_format(None)["text"][:] == CUT[:2] and kept.with_format(None)["tags"][:] == [["a"], ["b"]]
        assert kept.format["type"] == data.format["type"] and kept.format["columns"] == data.format["columns"]
    assert doppel.trim(dataset.to_iterable_dataset()).kept["text"].to_pylist() == CUT


def test_lists_and_other_iterables_give_lists():
    for data in (tuple(TEXTS), iter(TEXTS), dict.fromkeys(TEXTS).keys()):
        assert doppel.trim(data) == CUT
    rows = [{"text": text, "anything": object()} for text in TEXTS]
    for data in (rows, iter(rows), tuple(rows)):
        cut = doppel.trim(data)
        assert cut == [{**row, "text": text} for row, text in zip(rows, CUT)]
        assert cut[0] is rows[0] and rows[1]["text"] == TEXTS[1]
    columns = doppel.trim({"body": TEXTS, "anything": [{}, set(), object]}, text="body", drop_share=0.9)
    assert columns == [{"body": CUT[0], "anything": {}}, {"body": CUT[1], "anything": set()}]
    assert doppel.trim([text.encode() for text in TEXTS]) == [text.encode() for text in CUT]
    assert doppel.trim([None, *TEXTS], missing="skip") == [None, *CUT]
    same = doppel.trim(TEXTS)
    assert same[0] is TEXTS[0]
    assert doppel.trim([]) == [] and doppel.trim([""]) == [""] and doppel.trim([{"text": ""}]) == [{"text": ""}]


def test_pages_get_texts():
    pa, pandas, polars, datasets = map(library, ("pyarrow", "pandas", "polars", "datasets"))
    pages = [f"<html><nav>menu</nav><p>Page {n} itself</p><p>{FOOTER}</p>" for n in "ab"]
    expected = [f"Page a itself\n{FOOTER}", "Page b itself\n"]
    table = pa.table({"html": pages, "n": [1, 2]})
    cut = doppel.trim(table)
    assert [text.rstrip("\n") for text in cut.texts] == [text.rstrip("\n") for text in expected]
    expected = cut.texts.to_list()
    assert pa.table(cut).column_names == ["html", "n", "text"] and pa.table(cut)["text"].to_pylist() == expected
    assert pa.table(cut).drop(["text"]).equals(table) and cut.kept["text"].to_pylist() == expected
    rows = [{"html": page} for page in pages]
    assert doppel.trim(rows) == [{**row, "text": text} for row, text in zip(rows, expected)]
    assert doppel.trim(polars.DataFrame(table)).kept["text"].to_list() == expected
    assert doppel.trim(pandas.DataFrame({"html": pages})).kept["text"].tolist() == expected
    assert doppel.trim(datasets.Dataset(table)).kept["text"][:] == expected
    both = pa.table({"text": pa.array([None, FOOTER], pa.string()), "html": [pages[0], "<p>unused"]})
    assert pa.table(doppel.trim(both))["text"].to_pylist() == [expected[0], ""]


def test_ids_of_any_kind():
    pa = library("pyarrow")
    for ids, kind in ((pa.array([5, 6, 7], pa.int8()), int), (pa.array(["a", "b", "é"]), str),
                      (pa.array(["a", None, "é"]).dictionary_encode(), str)):
        cut = doppel.trim(pa.table({"text": TEXTS, "key": ids}), id="key")
        assert cut.spans["id"].to_list() == [None if id is None else kind(id) for id in ids.to_pylist()[1:]]
        assert cut.dropped["id"].to_list() == [kind(ids[2].as_py())]


# ---- what is refused ----


@pytest.mark.parametrize("options, kind, message", [
    ({"unit": "word"}, ValueError, "unit: expected one of line, sentence, paragraph, passage, not 'word'"),
    ({"run": 0}, ValueError, "run: expected a number of at least 1, not 0"),
    ({"words": 0, "unit": "passage"}, ValueError, "words: expected a number of at least 1"),
    ({"min_count": 1}, ValueError, "min_count: expected a number of at least 2, not 1"),
    ({"min_words": -1}, ValueError, "min_words: expected a whole number, not -1"),
    ({"drop_below": 1.5}, ValueError, "drop_below: expected a whole number"),
    ({"drop_share": 0}, ValueError, "drop_share: expected a share above 0"),
    ({"drop_share": 2}, ValueError, "drop_share"),
    ({"keep_first": "off"}, TypeError, "keep_first: expected bool, not str"),
    ({"drop": "no"}, TypeError, "drop: expected bool, not str"),
    ({"keep": "best"}, ValueError, "keep"),
    ({"keep": "newest:date"}, KeyError, 'keep: no column "date"'),
    ({"within": "lang"}, KeyError, 'within: no column "lang"'),
    ({"across": "host"}, KeyError, 'across: no column "url"'),
    ({"within": "id", "across": "id"}, ValueError, "within"),
    ({"run": 2, "unit": "passage"}, ValueError, "run"),
    ({"words": 20}, ValueError, "words"),
    ({"recipe": "simhash64:chars=3"}, ValueError, "chars"),
    ({"recipe": "none"}, ValueError, "recipe"),
    ({"text": "body"}, KeyError, 'no column "body"'),
    ({"text": 5}, TypeError, "text: expected str or a list of str, not int"),
    ({"id": "key"}, KeyError, 'id: no column "key"'),
    ({"threads": -1}, ValueError, "threads"),
    ({"missing": "no"}, ValueError, "missing"),
    ({"content": "most"}, ValueError, "content"),
    ({"tmp": "/nowhere/at/all", "memory": 1 << 20}, (OSError, ValueError), "nowhere"),
    ({"progress": 5}, TypeError, "progress: expected True or a callable"),
], ids=str)
def test_bad_options_are_named(options, kind, message):
    with pytest.raises(kind, match=message):
        doppel.trim([{"id": "a", "text": text} for text in TEXTS[:1]], **options)


@pytest.mark.parametrize("data, kind, message", [
    (["a", None], ValueError, 'data: row 1 is null; missing="skip" passes over nulls'),
    (["a", 5], TypeError, r"data\[1\]: expected str, not int"),
    ("a text", TypeError, "data: expected a list of str or Arrow data, not str"),
    (5, TypeError, "data: expected a list of str or Arrow data, not int"),
    (["\ud800"], doppel.InputError, r"data\[0\]: not valid UTF-8"),
    ({"text": ["a", "b"], "id": [1, 1]}, ValueError, "id: row 1 repeats"),
    ({"text": [1, 2]}, TypeError, 'text: the column "text" is of the Arrow type "l": only strings can be cut'),
    ({"body": ["a"]}, KeyError, 'no column "text"; the columns are body'),
], ids=str)
def test_bad_data_is_named(data, kind, message):
    with pytest.raises(kind, match=message):
        doppel.trim(data)


def test_an_object_is_refused_when_it_is_finished_or_not_ready():
    from doppel import _doppel
    from doppel._trim import _options

    options = _options()
    trim = _doppel.Trim(options, None)
    for call in (trim.mask, trim.texts, trim.kept_stream, trim.finish, lambda: trim.find_data(None),
                 lambda: trim.write(None, False)):
        with pytest.raises(RuntimeError):
            call()
    trim.hold_data(TEXTS, False, "data", [])
    trim.find_data(None)
    with pytest.raises(RuntimeError, match="found already"):
        trim.find_data(None)
    trim.finish()
    for call in (lambda: trim.find_data(None), lambda: trim.hold_data(TEXTS, False, "data", []), trim.finish):
        with pytest.raises(RuntimeError, match="finished"):
            call()
    assert trim.texts().to_list() == CUT


# ---- threads, signals, memory ----


@pytest.fixture(scope="module")
def large():
    random_ = random.Random(1)
    lines = [" ".join(random_.choices(WORDS, k=12)) for _ in range(3000)]
    return ["\n".join(random_.choices(lines, k=40)) for _ in range(8000)]


def test_a_progress_that_raises_ends_the_call(large):
    for when in (1, 3):
        calls = []

        def progress(done, total):
            calls.append((done, total))
            if len(calls) == when:
                raise LookupError("stop")
        with pytest.raises(LookupError, match="stop"):
            for _ in range(9):
                doppel.trim(large, progress=progress)
        assert len(calls) == when and all(0 <= done <= total for done, total in calls)
    doppel.trim(large[:500], progress=lambda *counts: calls.append(counts))
    assert calls[-1][0] == calls[-1][1] > 0


@pytest.mark.parametrize("unit, after", [("line", 0.05), ("line", 0.2), ("passage", 0.4)])
def test_ctrl_c_ends_a_call_within_a_second(unit, after, full):
    check_interrupt("trim", 60_000 if full else 8_000, after, unit=unit)


def test_many_threads_at_the_same_time():
    expected = [answers(texts_of(seed)) for seed in range(6)]
    found = [None] * 6

    def work(seed):
        for _ in range(3):
            found[seed] = answers(texts_of(seed), threads=2)
    run_threads(work, 6)
    assert found == expected


def test_results_outlive_the_data_and_each_other():
    pa = library("pyarrow")
    table = pa.table({"text": [f"é{n}\n{FOOTER}" for n in range(300)], "n": range(300), "list": [[n] for n in range(300)]})
    cut = doppel.trim(table)
    del table
    gc.collect()
    stream = pa.RecordBatchReader.from_stream(cut)
    texts, spans = cut.texts, cut.spans
    del cut
    gc.collect()
    batch = stream.read_next_batch()
    del stream
    gc.collect()
    junk = [bytearray(1000) for _ in range(2000)]  # what was freed would be used again
    expected = [f"é0\n{FOOTER}"] + [f"é{n}\n" for n in range(1, 300)]
    assert batch["text"].to_pylist() == expected == texts.to_list() and len(junk) == 2000
    column, other = batch["text"], batch["list"]
    del batch, texts
    gc.collect()
    assert column.to_pylist() == expected and other.to_pylist()[-1] == [299] and spans["id"].to_list()[-1] == 299


def test_many_calls_do_not_grow_memory(full):
    pa = library("pyarrow")
    table = pa.Table.from_pylist(PAGES)

    def each():
        cut = doppel.trim(table, threads=1, drop_share=0.9)
        pa.table(cut)
        pa.table(doppel.trim(table.drop(["text"]).append_column("html", table["text"]), threads=1))
        doppel.trim(PAGES[:20], unit="passage", words=6, against=PAGES[20:30], threads=1)
        for bad in ([None], {"text": ["a", "b"], "id": [1, 1]}, {"text": [1]}):
            with pytest.raises((ValueError, TypeError)):
                doppel.trim(bad)
    for _ in range(20):
        each()
    before = resident()
    for _ in range(1000 if full else 60):
        each()
    assert resident() - before < 20 << 20


# ---- files ----


@pytest.fixture
def pages(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_jsonl("pages.jsonl", PAGES)


def test_files_of_lines(pages):
    expected = doppel.trim(PAGES, drop_share=0.8)
    summary = doppel.trim_files(pages, "cut.jsonl", spans="spans.jsonl", dropped="dropped.jsonl.gz", drop_share=0.8)
    assert read_jsonl("cut.jsonl") == expected and read_jsonl("spans.jsonl") == expected.spans.to_list()
    assert summary["documents"] == 120 and summary["dropped"] == 120 - len(expected) and summary["unit"] == "line"
    doppel.trim_files([pages], "all.jsonl", annotate=True)
    spans = {}
    for span in doppel.trim(PAGES).spans:
        spans.setdefault(span.pop("id"), []).append(span)
    assert read_jsonl("all.jsonl") == [{**page, "spans": spans.get(page["id"], [])} for page in PAGES]
    assert sorted(os.listdir()) == ["all.jsonl", "cut.jsonl", "dropped.jsonl.gz", "pages.jsonl", "spans.jsonl"]


@pytest.mark.parametrize("memory", [0, 1])  # held, and read again
def test_parquet_gives_what_lists_give(pages, memory):
    pa, pq = library("pyarrow"), library("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(PAGES), "pages.parquet", row_group_size=37)
    expected = doppel.trim(PAGES, drop_share=0.8)
    doppel.trim_files("pages.parquet", "cut.parquet", spans="spans.jsonl", drop_share=0.8, memory=memory)
    assert pq.read_table("cut.parquet").to_pylist() == expected and read_jsonl("spans.jsonl") == expected.spans.to_list()
    doppel.trim_files("pages.parquet", "all.parquet", annotate=True, memory=memory)
    doppel.trim_files(pages, "all.jsonl", annotate=True)
    assert pq.read_table("all.parquet").to_pylist() == read_jsonl("all.jsonl")


@pytest.mark.parametrize("memory", [0, 1])
def test_a_text_in_a_struct_is_cut_there(pages, memory):
    pa, pq = library("pyarrow"), library("pyarrow.parquet")
    rows = [{"id": page["id"], "meta": {"n": n, "page": {"text": page["text"], "x.y": "as it is"}}}
            for n, page in enumerate(PAGES)]
    expected = doppel.trim(rows, text="meta.page.text")
    assert [row["meta"]["page"]["text"] for row in expected] == [page["text"] for page in doppel.trim(PAGES)]
    assert expected[0]["meta"]["page"]["x.y"] == "as it is" and rows[-1]["meta"]["page"]["text"] == PAGES[-1]["text"]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, "nested.parquet", row_group_size=37)
    doppel.trim_files("nested.parquet", "cut.parquet", text="meta.page.text", memory=memory)
    assert pq.read_table("cut.parquet").to_pylist() == expected and pq.read_schema("cut.parquet").equals(table.schema)
    doppel.trim_files(write_jsonl("nested.jsonl", rows), "cut.jsonl", text="meta.page.text")
    assert read_jsonl("cut.jsonl") == expected
    for data in (table, table.to_pandas()):
        with pytest.raises(ValueError, match='text: "meta.page.text" is in a struct, where tables cannot be cut: make it'):
            doppel.trim(data, text="meta.page.text")
    for data in (rows, table):
        with pytest.raises(ValueError, match="text: one column is cut, not several"):
            doppel.trim(data, text=["meta.page.text", "id"])


def test_a_dry_run_writes_no_documents(pages):
    summary = doppel.trim_files(pages, "cut.jsonl", spans="spans.jsonl", dry_run=True)
    assert summary == {**doppel.trim_files(pages, "other.jsonl"), "spans": summary["spans"]}
    assert not os.path.exists("cut.jsonl") and len(read_jsonl("spans.jsonl")) == summary["spans"] > 0
    assert doppel.trim_files(pages, dry_run=True)["wordsCut"] == summary["wordsCut"]


def test_against_files(pages):
    write_jsonl("others.jsonl", PAGES[:30])
    expected = doppel.trim(PAGES, against=PAGES[:30])
    summary = doppel.trim_files(pages, "cut.jsonl", spans="spans.jsonl", against="others.jsonl")
    assert read_jsonl("cut.jsonl") == expected and read_jsonl("spans.jsonl") == expected.spans.to_list()
    assert summary["against"] == 30
    with pytest.raises(doppel.InputError, match="against: .*none.jsonl"):
        doppel.trim_files(pages, "none of it.jsonl", against=["others.jsonl", "none.jsonl"])
    assert not os.path.exists("none of it.jsonl")


@pytest.mark.parametrize("given, kind, message", [
    ({}, ValueError, "trim_files needs either output or output_dir, or dry_run=True"),
    ({"output": "a.jsonl", "output_dir": "b"}, ValueError, "trim_files needs either output or output_dir"),
    ({"output": "pages.jsonl"}, ValueError, "output: pages.jsonl is an input: choose another"),
    ({"output": "a.jsonl", "spans": "a.jsonl"}, ValueError, "output and spans: both are a.jsonl"),
    ({"output": "a.jsonl", "dropped": "b.jsonl", "spans": "b.jsonl"}, ValueError, "dropped and spans: both are b.jsonl"),
    ({"output": "a.jsonl", "spans": "pages.jsonl"}, ValueError, "spans: pages.jsonl is an input"),
    ({"dry_run": True, "dropped": "pages.jsonl"}, ValueError, "dropped: pages.jsonl is an input"),
    ({"output": "a.csv"}, ValueError, "output: a.csv: documents are written as JSONL"),
    ({"output": "no/a.jsonl"}, OSError, "no/a.jsonl"),
    ({"output": 5}, TypeError, "output: expected a path, not int"),
    ({"inputs": [], "output": "a.jsonl"}, ValueError, "inputs: there are none"),
    ({"inputs": "none.jsonl", "output": "a.jsonl"}, doppel.InputError, "inputs: none.jsonl"),
    ({"inputs": ["pages.jsonl", "none.jsonl"], "output": "a.jsonl"}, doppel.InputError, "inputs: none.jsonl"),
    ({"output": "a.jsonl", "unit": "word"}, ValueError, "unit: expected one of"),
    ({"output": "a.jsonl", "text": "body"}, doppel.InputError, "text"),
], ids=str)
def test_what_cannot_be_is_refused(pages, given, kind, message):
    with pytest.raises(kind, match=message):
        doppel.trim_files(**{"inputs": pages, **given})
    assert os.listdir() == ["pages.jsonl"]


def test_records_that_cannot_be_read_are_left_out(pages):
    with open(pages, "a", encoding="utf-8") as file:
        file.write('{"id": "no text"}\n{broken\n')
    with pytest.warns(RuntimeWarning, match=r"inputs: rows were left out; the first: pages.jsonl:121: "):
        summary = doppel.trim_files(pages, "cut.jsonl")
    assert summary["bad"] == 2 and read_jsonl("cut.jsonl") == doppel.trim(PAGES)
    with pytest.warns(RuntimeWarning):
        doppel.trim_files([pages, "none.jsonl"], "cut.jsonl", allow_bad=True)
    assert read_jsonl("cut.jsonl") == doppel.trim(PAGES)
    with pytest.warns(RuntimeWarning) as told:
        doppel.trim_files(pages, "cut.jsonl", within="language")
    assert 'inputs: no record has a field "language", which within names' in str(told[-1].message)
    assert {warning.filename for warning in told} == {__file__}


def test_a_progress_of_files(pages):
    calls = []
    doppel.trim_files(pages, "cut.jsonl", progress=lambda *counts: calls.append(counts))
    assert calls[-1][0] == calls[-1][1] > 0

    def stop(done, total):
        raise LookupError("stop")
    with pytest.raises(LookupError, match="stop"):
        doppel.trim_files(pages, "other.jsonl", spans="spans.jsonl", progress=stop)
    assert sorted(os.listdir()) == ["cut.jsonl", "pages.jsonl"]

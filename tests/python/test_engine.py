"""Engine: verdicts, documents of every form, options, folders and Redis, threads, forks and closing.

DOPPEL_COMMAND names the doppel command, whose verdicts are compared; DOPPEL_REDIS_URL a Redis to be used.
"""
import datetime
import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections import ChainMap, OrderedDict

import pytest

import doppel

TEXT = "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm afternoon sun until evening comes."
NEAR = TEXT.replace("evening comes", "the evening")
OTHER = "Completely different words about ships, harbours, cargo and the price of tea in distant lands beyond the sea."


def texts(count, start=0):
    """Texts that are not near each other."""
    return [f"number {i} alpha{i} beta{i * 7} gamma{i * 13} delta{i * 17} epsilon{i * 23} zeta{i * 29}"
            for i in range(start, start + count)]


def run_python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.fixture(params=["memory", "folder"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "seen"


# ---- verdicts ----


def test_a_copy_is_found_by_its_words_and_by_nearness(place):
    with doppel.Engine(place, similarity=0.6) as engine:
        first = engine.add({"id": "a", "text": TEXT})
        assert first == ("a", False, 0.0, None, None, doppel.Evidence())
        same = engine.check(TEXT.upper())
        assert (same.isDuplicate, same.originalId, same.reason, same.confidence) == (True, "a", "content_hash", 1.0)
        assert same.evidence == doppel.Evidence(0, 1.0, 1.0, None, False, True, True)
        near = engine.add({"id": "b", "text": NEAR})
        assert near.originalId == "a" and 0.6 <= near.confidence < 1 and not near.evidence.sameDigest
        assert not engine.check(OTHER)


def test_a_verdict_is_true_when_it_is_a_duplicate():
    engine = doppel.Engine()
    assert not engine.add(TEXT)
    assert engine.add(TEXT)


def test_url_title_and_page():
    engine = doppel.Engine()
    page = f"<title>A headline that is long enough</title><nav>Home News Sport</nav><main><p>{TEXT}</p></main>"
    engine.add({"id": "p", "url": "https://www.example.com/a?utm_source=x", "html": page})
    assert engine.check({"url": "http://example.com/a", "text": OTHER}).reason == "exact_url"
    assert engine.check(TEXT).evidence.sameDigest
    assert engine.check({"title": "A headline that is long enough"}).reason == "title_similarity"


def test_a_page_of_bytes_is_read_in_its_own_charset():
    engine = doppel.Engine()
    engine.add({"id": "latin", "html": "<meta charset=latin1><p>café crème brûlée à la française".encode("latin-1")})
    assert engine.check("café crème brûlée à la française").originalId == "latin"


def test_content_all_takes_the_navigation_too():
    page = f"<nav><a href=x>Home and much more of it</a></nav><main><p>{TEXT}</p></main>"
    assert doppel.Engine().add({"html": page}).id != doppel.Engine(content="all").add({"html": page}).id


def test_ids_replace_and_repeat():
    engine = doppel.Engine()
    engine.add({"id": 7, "text": TEXT})
    assert not engine.add({"id": "7", "text": TEXT})
    assert engine.get(7).words == 21
    engine.add({"id": 7, "text": OTHER})
    assert engine.get(7).words != 21 and not engine.check(TEXT)


@pytest.mark.skipif("DOPPEL_COMMAND" not in os.environ, reason="DOPPEL_COMMAND names no command")
def test_verdicts_are_those_of_the_command(tmp_path):
    documents = [{"id": f"d{i}", "url": f"https://example.com/{i}", "title": f"Headline of the document number {i}",
                  "text": text} for i, text in enumerate(texts(50) + [TEXT, TEXT, NEAR, OTHER] + texts(20))]
    documents += [{"id": "u", "url": "http://www.example.com/3", "text": "short"}, {"text": OTHER + " “Ünïcödé”"}]
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
    printed = subprocess.run([os.environ["DOPPEL_COMMAND"], "add", "--index", str(tmp_path / "a"), str(path)],
                             capture_output=True, text=True, check=True).stdout.splitlines()
    with doppel.Engine(tmp_path / "b") as engine:
        assert [verdict.json() for verdict in engine.add_batch(documents)] == printed
    with doppel.Engine() as engine:
        assert [engine.add(document).json() for document in documents] == printed
    with doppel.Engine(tmp_path / "a") as engine:
        for document, verdict in zip(documents, engine.check_batch(documents)):
            assert verdict.isDuplicate and engine.get(verdict.originalId)


# ---- documents ----


def test_documents_may_be_any_mapping_or_iterable(place):
    with doppel.Engine(place) as engine:
        chained = ChainMap({"id": "c"}, {"text": texts(1)[0]})
        documents = [TEXT, OrderedDict(text=OTHER), chained, {"text": TEXT.encode()}]
        assert [verdict.isDuplicate for verdict in engine.add_batch(iter(documents))] == [False, False, False, True]
        assert engine.add_batch([]) == [] == engine.check_batch(())
        assert [bool(v) for v in engine.check_batch(d for d in documents)] == [True] * 4
        assert engine.add(ChainMap({"text": OTHER})).isDuplicate


def test_fields_are_kept_as_the_command_keeps_them():
    engine = doppel.Engine(fields=["a", "b", "c", "d", "e", "f", "g"])
    engine.add({"id": 1, "text": TEXT, "a": "straße", "b": 3, "c": 0.5, "d": True, "e": datetime.date(2026, 1, 2),
                "f": None, "g": ["ü", 1], "unknown": object()})
    assert engine.get(1).fields == {"a": "straße", "b": "3", "c": "0.5", "d": "true", "e": "2026-01-02",
                                    "g": '["ü", 1]'}


WRONG = [
    (3, TypeError, "document: expected str or a mapping, not int"),
    (None, TypeError, "document: expected str or a mapping, not NoneType"),
    ([TEXT], TypeError, "document: expected str or a mapping, not list"),
    ({}, ValueError, "document: has none of url, title, text and html"),
    ({"id": "x", "text": None}, ValueError, "document: has none of url, title, text and html"),
    ({"text": 3}, TypeError, 'document["text"]: expected str, not int'),
    ({"text": float("nan")}, TypeError, 'document["text"]: expected str, not float'),
    ({"text": "x", "title": 3}, TypeError, 'document["title"]: expected str, not int'),
    ({"text": "x", "url": b"\xff"}, doppel.InputError, 'document["url"]: not valid UTF-8: a byte at position 0'),
    ({"text": "ab\ud800c"}, doppel.InputError, 'document["text"]: not valid UTF-8: a lone surrogate at position 2'),
    ("ab\udfffc", doppel.InputError, "document: not valid UTF-8: a lone surrogate at position 2"),
    ({"text": "x", "id": 1.5}, TypeError, 'document["id"]: expected str or int, not float'),
    ({"text": "x", "id": True}, TypeError, 'document["id"]: expected str or int, not bool'),
    ({"text": "x", "ttl": "soon"}, ValueError, 'document["ttl"]: expected a time such as "30d"'),
    ({"text": "x", "ttl": -1}, ValueError, 'document["ttl"]: expected a time'),
    ({"text": "x", "ttl": 10**400}, ValueError, 'document["ttl"]: expected a time'),
    ({"text": "x", "source": object()}, TypeError, 'document["source"]: expected str or a number, not object'),
]


@pytest.mark.parametrize("document, kind, message", WRONG, ids=range(len(WRONG)))
def test_a_wrong_document_is_named_and_nothing_is_added(document, kind, message):
    with doppel.Engine() as engine:
        for call in engine.check, engine.add:
            with pytest.raises(kind) as raised:
                call(document)
            assert str(raised.value).startswith(message)
        many = texts(2500)
        for number in 3, 2400:  # in the first piece, and in a later one
            with pytest.raises(kind) as raised:
                engine.add_batch(many[:number] + [document] + many[number:])
            assert str(raised.value).startswith(message.replace("document", f"documents[{number}]", 1))
        assert engine.stats()["documents"] == 0


def test_what_the_index_refuses_leaves_the_others_alone(place):
    with doppel.Engine(place) as engine:
        documents = [{"id": f"d{i}", "text": text} for i, text in enumerate(texts(1500))]
        documents[3] = {"id": "x" * 70000, "text": TEXT}
        documents[1200] = ""
        with pytest.raises(doppel.InputError) as raised:
            engine.add_batch(documents)
        assert str(raised.value).startswith("documents[3]: an id of 70000 bytes")
        assert str(raised.value).endswith("(1498 of 1500 documents were added)")
        verdicts = raised.value.verdicts
        assert [i for i, verdict in enumerate(verdicts) if verdict is None] == [3, 1200]
        assert engine.stats()["documents"] == 1498


@pytest.mark.parametrize("documents", [TEXT, {"text": TEXT}, b"x", 3, None])
def test_a_batch_is_a_list(documents):
    with pytest.raises(TypeError, match="documents: expected a list of documents, or Arrow data, not "):
        doppel.Engine().add_batch(documents)


def test_a_generator_that_fails_adds_nothing():
    def failing():
        yield from texts(1500)
        raise OSError("no more")

    engine = doppel.Engine()
    with pytest.raises(OSError, match="no more"):
        engine.add_batch(failing())
    assert engine.stats()["documents"] == 0


def test_documents_that_change_meanwhile_are_safe():
    engine = doppel.Engine()
    documents = [{"text": text} for text in texts(3000)]
    over = threading.Event()

    def change():
        while not over.is_set():
            for document in documents:
                document["text"] = "short " * 5

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(3):
        engine.check_batch(documents)
    over.set()
    thread.join()


# ---- Arrow ----


def test_arrow_tables_give_tables():
    pyarrow = pytest.importorskip("pyarrow")
    rows = [{"id": i, "text": text, "url": None if i % 2 else f"https://example.com/{i}", "source": "s"}
            for i, text in enumerate(texts(1200) + [TEXT, TEXT.upper()])]
    table = pyarrow.Table.from_pylist(rows)
    chunked = pyarrow.concat_tables([table.slice(0, 5), table.slice(5, 0), table.slice(5)])
    expected = doppel.Engine().add_batch(rows)
    for data in table, chunked, table.to_reader(max_chunksize=7), table.cast(pyarrow.schema(
            [("id", pyarrow.string()), ("text", pyarrow.large_string()), ("url", pyarrow.string_view()),
             ("source", pyarrow.dictionary(pyarrow.int8(), pyarrow.string()))])):
        engine = doppel.Engine()
        verdicts = engine.add_batch(data)
        assert verdicts["id"].to_list() == [verdict.id for verdict in expected]
        assert verdicts["isDuplicate"].to_list() == [verdict.isDuplicate for verdict in expected]
        assert verdicts["reason"].to_list() == [verdict.reason for verdict in expected]
        assert verdicts["originalId"].to_list() == [verdict.originalId for verdict in expected]
        for name in "distance", "similarity", "titleSimilarity", "sameDigest", "verified":
            assert verdicts[name].to_list() == [getattr(verdict.evidence, name) for verdict in expected]
        assert engine.get(0).fields == {"source": "s"}
        assert pyarrow.table(verdicts).num_rows == len(rows)
        assert engine.check_batch(table)["isDuplicate"].to_list() == [True] * len(rows)


def test_arrow_columns_of_text_pages_and_times():
    pyarrow = pytest.importorskip("pyarrow")
    engine = doppel.Engine()
    assert engine.add_batch(pyarrow.array([TEXT, OTHER]))["isDuplicate"].to_list() == [False, False]
    assert engine.check_batch(pyarrow.chunked_array([[TEXT], [OTHER]]))["originalId"].to_list()[0]
    page = "<meta charset=latin1><p>café crème brûlée".encode("latin-1")
    engine.add_batch(pyarrow.table({"id": [5], "html": [page], "ttl": [3600]}))
    assert engine.check("café crème brûlée").originalId == "5"
    stored = engine.get(5)
    assert stored.expires == stored.added + 3600


def test_arrow_data_that_is_wrong_is_named():
    pyarrow = pytest.importorskip("pyarrow")
    engine = doppel.Engine()
    with pytest.raises(KeyError, match='no column \\\\?"text\\\\?"; the columns are body'):
        engine.add_batch(pyarrow.table({"body": [TEXT]}))
    with pytest.raises(ValueError, match=r"documents\[1\]: has none of url, title, text and html"):
        engine.add_batch(pyarrow.table({"text": [TEXT, None]}))
    with pytest.raises(ValueError, match=r'documents\[1\]\["ttl"\]: expected a time'):
        engine.add_batch(pyarrow.table({"text": [TEXT, TEXT], "ttl": ["1d", "x"]}))
    with pytest.raises(TypeError):
        engine.add_batch(pyarrow.table({"text": [[TEXT]]}))
    with pytest.raises(doppel.InputError) as raised:
        engine.add_batch(pyarrow.table({"text": [OTHER, ""]}))
    assert raised.value.verdicts["isDuplicate"].to_list() == [False, None]
    assert engine.stats()["documents"] == 1


def test_frames():
    rows = [{"id": "a", "text": TEXT}, {"id": "b", "text": TEXT}, {"id": "c", "text": OTHER}]
    for package in "pandas", "polars":
        try:
            frame = __import__(package).DataFrame(rows)
        except ImportError:
            continue
        assert doppel.Engine().add_batch(frame)["originalId"].to_list() == [None, "a", None]


# ---- options ----


def test_options_are_those_in_use_and_make_the_same_engine_again(tmp_path):
    engine = doppel.Engine(preset="crawl", min_words=0, titles=True, keep_text=True, fields="a,b", on_duplicate="link",
                           ttl="90m", distance=0)
    options = engine.options
    assert options["near"] == "distance" and options["distance"] == 0 and options["similarity"] is None
    assert options["fields"] == ["a", "b"] and options["ttl"] == 5400 and options["min_words"] == 1
    assert options["recipe"].startswith("simhash64")
    assert doppel.Engine(**options).options == options
    assert doppel.Engine(tmp_path / "x", **options).options == options


TIMES = [(3600, 3600), (0.5, 1), ("45", 45), ("45s", 45), ("90m", 5400), ("12h", 43200), ("30d", 2592000),
         ("2w", 1209600), ("never", "never"), (datetime.timedelta(days=1), 86400)]


@pytest.mark.parametrize("ttl, seconds", TIMES)
def test_times_to_live(ttl, seconds):
    engine = doppel.Engine(ttl=ttl)
    assert engine.options["ttl"] == seconds
    engine = doppel.Engine()
    engine.add({"id": 1, "text": TEXT, "ttl": ttl})
    stored = engine.get(1)
    assert stored.expires == (None if ttl == "never" else stored.added + seconds)


INVALID = [
    (dict(preset="news"), ValueError, "preset: expected \"general\", \"crawl\" or \"article\", not 'news'"),
    (dict(near="both"), ValueError, "near: expected \"similarity\" or \"distance\", not 'both'"),
    (dict(near=3), TypeError, "near: expected str, not int"),
    (dict(similarity=1.5), ValueError, "similarity: expected a number above 0 and up to 1"),
    (dict(similarity="0.8"), TypeError, "similarity: expected a number, not str"),
    (dict(similarity=0.8, distance=3), ValueError, "give similarity or distance, not both"),
    (dict(near="distance", similarity=0.8), ValueError, 'similarity cannot be used with near="distance"'),
    (dict(distance=-1), ValueError, "distance: expected a number from 0 to"),
    (dict(distance=65), ValueError, "a distance of 65 bits, in fingerprints of 64"),
    (dict(titles="yes"), TypeError, "titles: expected bool, not str"),
    (dict(read_only=1), TypeError, "read_only: expected bool, not int"),
    (dict(ttl="tomorrow"), ValueError, "ttl: expected a time such as"),
    (dict(ttl=0), ValueError, "ttl: expected a time such as"),
    (dict(on_duplicate="drop"), ValueError, "on_duplicate: expected \"skip\", \"link\" or \"store\", not 'drop'"),
    (dict(on_same_url="x"), ValueError, "on_same_url: expected \"duplicate\" or \"refresh\", not 'x'"),
    (dict(durability="x"), ValueError, "durability: expected \"none\", \"batch\" or \"each\", not 'x'"),
    (dict(content="x"), ValueError, "content: expected \"main\" or \"all\", not 'x'"),
    (dict(fields=["a,b"]), ValueError, "fields[0]: expected a name without a comma, not 'a,b'"),
    (dict(fields=[3]), TypeError, "fields[0]: expected str, not int"),
    (dict(fields=3), TypeError, "fields: expected a list, not int"),
    (dict(recipe=3), TypeError, ""),
    (dict(recipe="simhash64:wieght=tf"), ValueError, ""),
    (dict(threads=-1), ValueError, "threads: expected a number from 0"),
    (dict(memory=1 << 20), ValueError, "memory needs count"),
    (dict(colour="red"), TypeError, ""),
]


@pytest.mark.parametrize("options, kind, message", INVALID, ids=range(len(INVALID)))
def test_invalid_options_say_what_is_allowed(options, kind, message):
    with pytest.raises(kind) as raised:
        doppel.Engine(**options)
    assert message in str(raised.value)


def test_a_recipe_outlives_its_caller():
    engine = doppel.Engine(recipe=doppel.Recipe("simhash128:words=2"), near="distance")
    gc.collect()
    engine.add({"id": 1, "text": TEXT})
    assert len(engine.get(1).fingerprint) == 16
    assert doppel.Engine(recipe="literal").options["recipe"] == doppel.Recipe("literal").text


# ---- get, similar, remove ----


def test_what_is_stored():
    engine = doppel.Engine(keep_text=True, on_duplicate="link")
    before = int(time.time()) - 1  # the clock of doppel may be some milliseconds behind
    url = "https://www.example.com/a#x"
    engine.add({"id": "a", "url": url, "title": "A title", "text": TEXT, "date": "2026-01-02"})
    engine.add({"id": "b", "url": "https://example.com/b", "text": TEXT})
    a, b = engine.get_batch(["a", "b"])
    assert (a.id, a.number, a.url, a.canonicalUrl, a.title) == ("a", 1, url, "https://example.com/a", "A title")
    assert a.fields == {"date": "2026-01-02"} and a.text == TEXT and a.words == 21 and a.shingles == 17
    assert before <= a.added <= time.time() and a.expires is None and a.similarity is None
    assert a.fingerprint == doppel.fingerprint(TEXT) and a.digest == doppel.digest(TEXT)
    assert (a.duplicates, a.duplicatesBy, a.copies) == (1, {"url": 0, "content": 1, "title": 0}, 1)
    assert a.aliases == ["https://example.com/b"]
    assert (a.canonical, a.originalId, a.reason, a.evidence) == ("a", None, None, None)
    assert (b.canonical, b.originalId, b.reason, b.evidence.sameDigest) == ("a", "a", "content_hash", True)
    assert engine.get("https://example.com/b").id == "b"
    assert engine.get("c") is None
    assert engine.remove("b")
    assert (engine.get("a").duplicates, engine.get("a").copies) == (1, 0)
    for wrong in 1.5, None, b"\xff":
        with pytest.raises((TypeError, ValueError), match="^id: "):
            engine.get(wrong)


def test_similar(place):
    with doppel.Engine(place, similarity=0.6) as engine:
        engine.add_batch([{"id": "a", "text": TEXT}, {"id": "c", "text": OTHER}, {"id": 3, "url": "http://x.org/3",
                                                                                 "text": texts(1)[0]}])
        assert [(s.id, round(s.similarity, 2)) for s in engine.similar({"text": NEAR, "id": "c"}, similarity=0.5)] == [
            ("a", 0.79)]
        assert engine.similar("a") == [] == engine.similar({"id": "a"}) == engine.similar("http://x.org/3")
        assert [s.id for s in engine.similar({"text": TEXT}, distance=0)] == ["a"]
        assert [s.id for s in engine.similar({"text": TEXT}, limit=1, distance=64)] == ["a"]
        assert [[s.id for s in found] for found in engine.similar_batch(["a", {"text": OTHER}, 3])] == [[], ["c"], []]
        with pytest.raises(doppel.InputError, match="z: no document has this id or URL"):
            engine.similar("z")
        for wrong in dict(limit=0), dict(similarity=0), dict(similarity=2), dict(distance=-1):
            with pytest.raises(ValueError, match=next(iter(wrong))):
                engine.similar("a", **wrong)


def test_remove(place):
    with doppel.Engine(place) as engine:
        engine.add_batch([{"id": i, "text": text} for i, text in enumerate(texts(3))])
        assert engine.remove(0) and not engine.remove(0)
        with pytest.raises(TypeError, match=r"ids\[1\]: expected str or int, not float"):
            engine.remove_batch([1, 2.0])
        assert engine.remove_batch([1, 1, "2"]) == [True, False, True]
        assert engine.stats()["documents"] == 0 and not engine.check(texts(1)[0])


# ---- folders ----


def test_a_folder_keeps_documents_and_options(tmp_path):
    with doppel.Engine(tmp_path / "seen", preset="article") as engine:
        engine.add({"id": "a", "text": TEXT})
    with doppel.Engine(str(tmp_path / "seen")) as engine:
        assert engine.options["preset"] == "article" and engine.check(TEXT).originalId == "a"
    with pytest.raises(doppel.StoreError, match="made with preset article and cannot be used with preset crawl"):
        doppel.Engine(tmp_path / "seen", preset="crawl")
    with doppel.Engine(tmp_path / "seen", read_only=True) as engine:
        with pytest.raises(ValueError, match="read only"):
            engine.add(OTHER)


def test_a_folder_has_one_writer(tmp_path):
    with doppel.Engine(tmp_path / "seen") as engine:
        with pytest.raises(doppel.StoreError, match="this process has it open already"):
            doppel.Engine(tmp_path / "seen")
        ran = run_python("import doppel, sys; doppel.Engine(sys.argv[1])", tmp_path / "seen")
        assert "StoreError" in ran.stderr and str(os.getpid()) in ran.stderr
        engine.add(TEXT)
    with doppel.Engine(tmp_path / "seen") as engine:
        assert engine.check(TEXT)


def test_folders_that_cannot_be_opened(tmp_path):
    with pytest.raises((doppel.StoreError, OSError), match="seen"):
        doppel.Engine(tmp_path / "seen", must_exist=True)
    with pytest.raises((doppel.StoreError, OSError)):
        doppel.Engine(tmp_path / "no" / "such" / "parent")
    (tmp_path / "file").write_text("x")
    with pytest.raises((doppel.StoreError, OSError), match="file"):
        doppel.Engine(tmp_path / "file")
    with pytest.raises(doppel.AwayError):
        doppel.Engine("redis://127.0.0.1:1/0")
    with pytest.raises(TypeError):
        doppel.Engine(3)


def test_backup_compact_expire_and_verify(tmp_path):
    with doppel.Engine(tmp_path / "seen") as engine:
        engine.add_batch(texts(100))
        engine.backup(tmp_path / "copy")
        engine.compact()
        assert engine.expire() == 0
        assert engine.stats()["diskBytes"] > 0
    found = doppel.Engine.verify(tmp_path / "copy")
    assert found["documents"] == 100 and found["findings"] == [] and found["damaged"] == 0
    with doppel.Engine(tmp_path / "copy") as engine:
        assert all(engine.check_batch(texts(100)))
    data = next(file for file in (tmp_path / "copy").iterdir() if file.suffix == ".mdb")
    data.write_bytes(data.read_bytes()[:20000])
    assert doppel.Engine.verify(tmp_path / "copy")["findings"]
    with pytest.raises(ValueError):
        doppel.Engine().backup(tmp_path / "memory")


def test_stats_have_the_names_of_the_command():
    engine = doppel.Engine()
    engine.add_batch(texts(10) + texts(3))
    stats = engine.stats()
    assert stats["documents"] == 10 and stats["duplicates"] == {"url": 0, "content": 3, "title": 0}
    assert stats["sinceOpened"]["adds"] == 13 and stats["sinceOpened"]["verdicts"]["unique"] == 10
    assert json.loads(json.dumps(stats)) == stats


# ---- progress and interruption ----


def test_progress_is_told_and_may_raise():
    told = []
    doppel.Engine().add_batch(texts(2500), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (2500, 2500) and told == sorted(told)

    def failing(done, total):
        raise KeyError("enough")

    engine = doppel.Engine()
    with pytest.raises(KeyError, match="enough"):
        engine.add_batch(texts(5000), progress=failing)
    assert engine.stats()["documents"] < 5000
    with pytest.raises(TypeError, match="progress: expected"):
        engine.add_batch([], progress=3)


def test_close_within_a_call_of_the_same_thread_is_refused():
    engine = doppel.Engine()
    with pytest.raises(RuntimeError, match="during another call"):
        engine.add_batch(texts(10), progress=lambda done, total: engine.close())
    engine.close()


@pytest.fixture
def interruptible():
    """Ctrl-C raises, though a process that runs in the background may be told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_ends_a_batch(interruptible):
    engine = doppel.Engine()
    documents = texts(20000) * 20
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        engine.add_batch(documents)
        time.sleep(30)
    assert time.monotonic() - began < 25
    timer.join()
    assert engine.add(OTHER).isDuplicate is False


# ---- threads, forks, closing ----


def test_ten_threads_share_an_engine(place):
    with doppel.Engine(place, durability="none" if place else None) as engine:
        documents = texts(300)
        verdicts = [None] * 10
        barrier = threading.Barrier(10)

        def work(number):
            barrier.wait()
            mine = documents[number * 30:] + documents[: number * 30]
            verdicts[number] = [engine.add(text) for text in mine] if number % 2 else engine.add_batch(mine)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        unique = [verdict.id for each in verdicts for verdict in each if not verdict]
        assert len(unique) == len(set(unique)) == len(documents) == engine.stats()["documents"]


def test_closing_waits_for_the_calls_of_other_threads(place):
    engine = doppel.Engine(place, durability="none" if place else None)
    ended = []

    def work(number):
        try:
            for start in range(0, 100000, 50):
                engine.add_batch(texts(50, number * 100000 + start))
                engine.check(TEXT)
        except ValueError as error:
            ended.append(str(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    engine.close()
    for thread in threads:
        thread.join()
    assert ended == ["this Engine is closed"] * 10


def test_a_closed_engine_says_so(place):
    engine = doppel.Engine(place)
    engine.close()
    engine.close()
    assert engine.closed and "closed" in repr(engine)
    calls = [lambda: engine.check(TEXT), lambda: engine.add(TEXT), lambda: engine.add_batch([TEXT]), engine.stats,
             lambda: engine.get("a"), lambda: engine.remove("a"), lambda: engine.similar("a"), engine.expire,
             engine.compact, lambda: engine.backup("x"), lambda: engine.options]
    for call in calls:
        with pytest.raises(ValueError, match="^this Engine is closed$"):
            call()


def test_collecting_closes(tmp_path):
    engine = doppel.Engine(tmp_path / "seen")
    engine.add(TEXT)
    del engine
    gc.collect()
    with doppel.Engine(tmp_path / "seen") as engine:
        assert engine.check(TEXT)


def test_engines_cannot_be_pickled_or_copied():
    import copy

    engine = doppel.Engine()
    for call in pickle.dumps, copy.copy, copy.deepcopy:
        with pytest.raises(TypeError, match="cannot be pickled"):
            call(engine)


FORK = """
import gc, os, sys
import doppel
engine = doppel.Engine(sys.argv[1])
engine.add("some words to be found again")
child = os.fork()
if not child:
    try:
        engine.check("x")
    except RuntimeError as error:
        assert str(error) == ("this Engine was opened by another process (%d): open it again in this one"
                              % os.getppid()), error
    else:
        os._exit(1)
    engine.close()
    del engine
    gc.collect()
    try:
        doppel.Engine(sys.argv[1])
    except doppel.StoreError:
        pass
    other = doppel.Engine(sys.argv[1], read_only=True)
    assert other.check("some words to be found again")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
engine.add("more words, after the child has ended")
engine.close()
print(sorted(doppel.Engine.verify(sys.argv[1]).items())[2:5])
with doppel.Engine(sys.argv[1]) as engine:
    assert engine.check("more words, after the child has ended")
"""


def test_a_forked_process_is_refused_and_harms_nothing(tmp_path):
    ran = run_python(FORK, tmp_path / "seen")
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "[('damaged', 0), ('documents', 2), ('findings', [])]\n", ran.stdout


def memory_pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="there is no /proc/self/statm")
@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the address sanitizer keeps what was freed")
def test_memory_does_not_grow(full):
    engine = doppel.Engine()
    engine.add_batch([{"id": i, "text": text, "source": "s", "date": i} for i, text in enumerate(texts(100))])
    known, unknown = texts(100), texts(100, 1000)
    documents = [{"text": text, "id": i, "date": i, "ttl": "1d"} for i, text in enumerate(known)]

    def calls(count):
        for i in range(count // 100):
            for text in known[:40] + unknown[:40]:
                engine.check(text)
            engine.check_batch(documents[:16])
            engine.add(documents[i % 100])
            engine.get(i % 100)
            engine.similar({"text": unknown[i % 100]})
            for wrong in 3, {"text": 3}:
                try:
                    engine.check_batch([wrong])
                except TypeError:
                    pass

    calls(20_000)
    before = memory_pages()
    calls(1_000_000 if full else 200_000)
    gc.collect()
    assert (memory_pages() - before) * os.sysconf("SC_PAGE_SIZE") < 4 << 20


# ---- Redis ----


@pytest.fixture
def redis():
    if "DOPPEL_REDIS_URL" not in os.environ:
        pytest.skip("DOPPEL_REDIS_URL names no Redis")
    url = os.environ["DOPPEL_REDIS_URL"]
    return f"{url}{'&' if '?' in url else '?'}prefix=python{os.getpid()}-{time.monotonic_ns()}"


def test_redis_is_shared(redis):
    with doppel.Engine(redis, ttl="10m") as one, doppel.Engine(redis) as two:
        assert one.options["preset"] == "crawl"
        assert not one.add({"id": "a", "text": TEXT})
        assert two.check(TEXT).originalId == "a"
        verdicts = two.add_batch([{"id": i, "text": text} for i, text in enumerate(texts(100))] + [TEXT])
        assert sum(map(bool, verdicts)) == 1
        assert one.get("a").words == 21
        assert one.stats()["documents"] == 101
        assert [found.id for found in one.similar({"text": TEXT})] == ["a"]
        assert all(two.remove_batch(["a", *range(100)]))
        with pytest.raises(ValueError):
            one.backup("x")


def test_a_password_is_not_shown():
    assert doppel._engine._without_password("redis://me:secret@host:1/0?prefix=x") == "redis://host:1/0?prefix=x"
    assert doppel._engine._without_password("redis+unix://:p@/run/r.sock") == "redis+unix:///run/r.sock"


SILENT = """
import os, signal, socket, sys, threading, time
from urllib.parse import urlsplit
import doppel
to = urlsplit(sys.argv[1])
server = socket.create_server(("127.0.0.1", 0))
dead = threading.Event()

def pump(source, sink):
    while data := source.recv(65536):
        while dead.is_set():
            time.sleep(1)
        sink.sendall(data)

def serve():
    while True:
        client = server.accept()[0]
        upstream = socket.create_connection((to.hostname, to.port or 6379))
        for pair in (client, upstream), (upstream, client):
            threading.Thread(target=pump, args=pair, daemon=True).start()

threading.Thread(target=serve, daemon=True).start()
url = "redis://127.0.0.1:%d%s?%s&timeout=60" % (server.getsockname()[1], to.path, to.query)
engine = doppel.Engine(url)
engine.add("a text before it falls silent")
dead.set()
signal.signal(signal.SIGINT, signal.default_int_handler)
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
began = time.monotonic()
try:
    engine.add("a text that gets no answer") if sys.argv[2] == "add" else engine.add_batch(["one", "two"])
except KeyboardInterrupt:
    print("interrupted" if time.monotonic() - began < 10 else "late")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize("call", ["add", "add_batch"])
def test_an_interrupt_ends_the_wait_for_a_silent_redis(redis, call):
    ran = run_python(SILENT, redis, call)
    assert ran.stdout == "interrupted\n", ran.stderr

"""HammingIndex, beside a list that is searched from end to end."""
import gc
import os
import pickle
import random
import threading
import warnings

import doppel
import pytest
from properties import given, st


MASK = 2**64 - 1


def differing(a, b):
    return bin(a ^ b).count("1")


def near(entries, query, distance):
    """(distance, fingerprint, owner) of all that match, in the order of find."""
    found = [(differing(value, query), value, owner) for value, owner in entries]
    return sorted(row for row in found if row[0] <= distance)


def rows(matches):
    return [(match.distance, match.fingerprint, match.owner) for match in matches]


def some_fingerprints(count, seed=1, flips=4):
    """Fingerprints of which many are near each other."""
    numbers = random.Random(seed)
    found = []
    for _ in range(count):
        value = numbers.getrandbits(64) if not found or numbers.random() < 0.4 else numbers.choice(found)
        for _ in range(numbers.randrange(flips)):
            value ^= 1 << numbers.randrange(64)
        found.append(value)
    return found


# ---- adding and finding ----


def test_find_gives_everything_near_the_nearest_first():
    values = some_fingerprints(3000)
    index = doppel.HammingIndex()
    index.add_batch(values)
    entries = [(value, owner) for owner, value in enumerate(values)]
    for query in values[:20] + some_fingerprints(20, seed=2):
        for distance in (0, 3, 7):
            assert rows(index.find(query, distance)) == near(entries, query, distance)
    assert rows(index.find(values[0])) == near(entries, values[0], 3)
    assert rows(index.find(values[0], limit=1)) == near(entries, values[0], 3)[:1]


def test_a_match():
    index = doppel.HammingIndex(bits=8)
    index.add(0x0F, 2**64 - 1, expires=100)
    match = index.find(0x0E)[0]
    assert match == doppel.Match(owner=2**64 - 1, distance=1, fingerprint=0x0F, expires=100)
    assert index.find(0x0E, now=99) and not index.find(0x0E, now=100)


def test_the_default_distance_is_the_planned_one():
    index = doppel.HammingIndex(distance=6)
    index.add(0b111111, 1)
    assert index.distance == 6 and len(index.find(0)) == 1 and not index.find(0, 3)


@given(st.lists(st.tuples(st.sampled_from("+-e?"), st.integers(0, 255), st.integers(0, 3), st.integers(0, 9))))
def test_any_changes_leave_what_a_dict_has(changes):
    index, known = doppel.HammingIndex(bits=8, distance=2), {}
    for kind, value, owner, time in changes:
        if kind == "+":
            index.add(value, owner, expires=time)
            known[value, owner] = time
        elif kind == "-":
            assert index.remove(value, owner) == (known.pop((value, owner), None) is not None)
        elif kind == "e" and time:
            gone = [entry for entry, expires in known.items() if 0 < expires <= time]
            assert index.expire(time) == len(gone)
            for entry in gone:
                del known[entry]
        else:
            found = [row for row in near(known, value, 2) if not time or not 0 < known[row[1:]] <= time]
            assert rows(index.find(value, now=time)) == found
            assert ((value, owner) in index) == index.contains(value, owner) == ((value, owner) in known)
    assert len(index) == len(known)


def test_128_bits():
    index = doppel.HammingIndex(bits=128)
    values = [bytes([number]) + bytes(14) + b"\x80" for number in range(16)]
    index.add(values[0], 0)
    index.add(int.from_bytes(values[1], "little"), 1)
    index.add_batch(values[2:8], owners=range(2, 8))
    index.add_batch([int.from_bytes(value, "little") for value in values[8:]], owners=range(8, 16))
    found = index.find(values[5], 1)
    assert [(match.owner, match.fingerprint) for match in found] == [(n, values[n]) for n in (5, 1, 4, 7, 13)]
    assert index.find(1 << 127, 0)[0].owner == 0
    assert index.remove(values[3], 3) and (values[3], 3) not in index
    index.add(7, 99)
    assert index.find(7, 0)[0].fingerprint == b"\7" + bytes(15)


# ---- batches ----


def as_table(entries, queries, distance):
    return [{"query": number, "owner": owner, "distance": far}
            for number, query in enumerate(queries) if query is not None
            for far, _, owner in near(entries, query, distance)]


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_find_batch_gives_what_find_gives(threads):
    values = some_fingerprints(1500)
    queries = [*values[:150], None, *some_fingerprints(20, seed=3)]
    index = doppel.HammingIndex()
    index.add_batch(values, owners=[number * 10 for number in range(1500)])
    entries = [(value, number * 10) for number, value in enumerate(values)]
    seen = []
    found = index.find_batch(queries, threads=threads, progress=lambda *counts: seen.append(counts))
    assert found.column_names == ["query", "owner", "distance"]
    assert found.to_list() == as_table(entries, queries, 3) and len(found) > 200
    assert seen[-1] == (171, 171)
    assert index.find_batch(queries[:9], 0).to_list() == as_table(entries, queries[:9], 0)
    assert len(index.find_batch(queries, 64, limit=2)) == 2 * 170
    assert index.find_batch([]).to_list() == []


def test_columns_of_arrow_data():
    pa = pytest.importorskip("pyarrow")
    values = some_fingerprints(500)
    expected = doppel.HammingIndex()
    expected.add_batch(values, owners=range(7, 507))
    expected = expected.find_batch(values)
    column = pa.array([1, 2, *values], pa.uint64()).slice(2)
    chunks = pa.chunked_array([column[:100], column[:0], column[100:]])
    owners = pa.array(range(7, 507), pa.uint64())
    for fingerprints, queries in ((column, chunks), (chunks, column)):
        index = doppel.HammingIndex()
        index.add_batch(fingerprints, owners=owners)
        assert index.find_batch(queries) == expected
    with pytest.raises(TypeError, match="fingerprints: expected a column of fingerprints"):
        index.add_batch(doppel.hamming(column, 0))
    assert len(index.find_batch(pa.array([None, values[0]], pa.uint64()))) == len(index.find(values[0]))
    index = doppel.HammingIndex(bits=128)
    index.add_batch(doppel.fingerprint(pa.array(["one text", "another text"]), bits=128))
    assert index.find(doppel.fingerprint("another text", bits=128), 0)[0].owner == 1
    with pytest.raises(ValueError, match="fingerprints: expected 128 bits each"):
        index.add_batch(column)


def test_numpy_arrays():
    numpy = pytest.importorskip("numpy")
    values = numpy.array(some_fingerprints(100), numpy.uint64)
    index = doppel.HammingIndex()
    index.add_batch(values, owners=numpy.arange(100))
    assert [match.owner for match in index.find(values[7], 0)] == [
        number for number in range(100) if values[number] == values[7]]
    assert len(index.find_batch(values, 0)) >= 100


def test_a_batch_is_added_whole_or_not_at_all():
    index = doppel.HammingIndex(bits=8)
    for values, message in (([1, 2, 256], "row 2 has more than the 8 bits"), ([1, None], "row 1 is null"),
                            ([1, 2**100], "expected 8 bits each"), ([1, -1], r"\[1\]: expected an int")):
        with pytest.raises(ValueError, match="fingerprints.*" + message):
            index.add_batch(values)
    for owners in ([1], [1, None], [1, 2**64]):
        with pytest.raises(ValueError, match="owners"):
            index.add_batch([1, 2], owners=owners)
    with pytest.raises(TypeError, match="fingerprints: expected a list"):
        index.add_batch(5)
    assert len(index) == 0
    index.add_batch([1, 2], expires=5)
    index.add_batch([3, 4], owners=[8, 9], expires=[5, 6])
    assert index.expire(5) == 3 and len(index) == 1
    index.add_batch([])


@pytest.mark.parametrize("call, error, message", [
    (lambda index: index.add(256, 1), ValueError, "fingerprint: 256 has more than the 8 bits"),
    (lambda index: index.add(b"x" * 16, 1), ValueError, "fingerprint: .* has more than the 8 bits"),
    (lambda index: index.add("1", 1), TypeError, "fingerprint: expected int or 16 bytes, not str"),
    (lambda index: index.add(1, -1), ValueError, "owner: expected an int from 0"),
    (lambda index: index.add(1, 2**64), ValueError, "owner: expected an int from 0"),
    (lambda index: index.add(1, "me"), TypeError, "owner: expected int"),
    (lambda index: index.find(1, 9), ValueError, "distance"),
    (lambda index: index.find(1, -1), ValueError, "distance"),
    (lambda index: index.find(1, limit=-1), ValueError, "limit"),
    (lambda index: index.find_batch([1, 2], 9), ValueError, "distance"),
    (lambda index: index.find_batch([1], threads=-1), ValueError, "threads"),
    (lambda index: 5 in index, TypeError, "expected .fingerprint, owner."),
    (lambda index: index.merge(index), ValueError, "other: is this HammingIndex itself"),
    (lambda index: index.merge(doppel.HammingIndex()), ValueError, "8 bits cannot take one of 64"),
    (lambda index: index.merge([]), TypeError, "other: expected HammingIndex, not list"),
    (lambda index: doppel.HammingIndex(bits=65), ValueError, "bits: expected a width"),
    (lambda index: doppel.HammingIndex(bits=8, distance=9), ValueError, "distance: expected 1 to 8"),
    (lambda index: doppel.HammingIndex(distance=0), ValueError, "distance: expected 1 to 64"),
    (lambda index: doppel.HammingIndex(count=10**9, memory=1), ValueError, "need at least"),
    (lambda index: pickle.dumps(index), TypeError, "cannot be pickled"),
])
def test_what_is_refused(call, error, message):
    index = doppel.HammingIndex(bits=8)
    with pytest.raises(error, match=message):
        call(index)
    assert len(index) == 0


# ---- as a whole ----


def test_merge_and_compact():
    values = some_fingerprints(4000)
    a, b = doppel.HammingIndex(), doppel.HammingIndex()
    a.add_batch(values[:2000])
    b.add_batch(values[2000:], owners=range(2000, 4000))
    a.merge(b)
    a.compact()
    a.validate()
    assert len(a) == 4000 and len(b) == 2000 and a.stats()["runs"] == 1
    assert rows(a.find(values[0])) == near([(v, n) for n, v in enumerate(values)], values[0], 3)


def test_save_and_open(tmp_path):
    values = some_fingerprints(500)
    index = doppel.HammingIndex(distance=4)
    index.add_batch(values, expires=9)
    index.save(tmp_path / "index")
    again = doppel.HammingIndex.open(str(tmp_path / "index"))
    assert isinstance(again, doppel.HammingIndex) and again.bits == 64 and again.distance == 4
    assert again.find_batch(values) == index.find_batch(values)
    again.add(values[0], 10_000)
    again.save(os.fsencode(tmp_path / "index"))  # in the place of the file it was opened from
    assert len(doppel.HammingIndex.open(tmp_path / "index")) == 501


def test_files_that_are_refused(tmp_path):
    with pytest.raises(OSError, match="absent"):
        doppel.HammingIndex.open(tmp_path / "absent")
    (tmp_path / "text").write_text("no index" * 100)
    with pytest.raises(doppel.StoreError, match="text"):
        doppel.HammingIndex.open(tmp_path / "text")
    with pytest.raises(OSError):
        doppel.HammingIndex().save(tmp_path / "absent" / "index")
    with pytest.raises(TypeError):
        doppel.HammingIndex.open(5)
    index = doppel.HammingIndex()
    index.add_batch(some_fingerprints(1000))
    index.save(tmp_path / "damaged")
    data = bytearray((tmp_path / "damaged").read_bytes())
    data[-2000] ^= 1
    (tmp_path / "damaged").write_bytes(data)
    with pytest.raises(doppel.StoreError):
        doppel.HammingIndex.open(tmp_path / "damaged").validate()


def test_stats_and_repr():
    index = doppel.HammingIndex(bits=32, distance=2, count=1000)
    index.add_batch([1, 1, 2])
    stats = index.stats()
    assert stats["entries"] == len(index) == 3
    assert (stats["bits"], stats["distance"]) == (32, 2) and stats["bytes"] > 0
    assert {*stats} == {"entries", "fingerprints", "bytes", "runs", "bits", "distance", "layout"}
    assert repr(index) == "<doppel.HammingIndex of 3 entries, 32 bits>"
    index.close()
    assert repr(index) == "<doppel.HammingIndex, closed>"


def test_a_closed_index():
    with doppel.HammingIndex() as index:
        index.add(1, 1)
    index.close()
    assert index.closed
    for call in (lambda: index.add(1, 1), lambda: index.find(1), lambda: index.find_batch([1]), lambda: len(index),
                 lambda: (1, 1) in index, lambda: index.stats(), lambda: index.save("x"), lambda: index.compact(),
                 lambda: index.validate(), lambda: index.expire(1), lambda: doppel.HammingIndex().merge(index),
                 index.__enter__):
        with pytest.raises(ValueError, match="this HammingIndex is closed"):
            call()
    with pytest.raises(ValueError):
        index.__init__()


def test_an_index_that_was_never_opened():
    index = doppel.HammingIndex.__new__(doppel.HammingIndex)
    with pytest.raises(ValueError, match="closed"):
        index.find(1)


def test_a_subclass():
    class Named(doppel.HammingIndex):
        def __init__(self, name):
            super().__init__(bits=16)
            self.name = name

    index = Named("mine")
    index.add(1, 1)
    assert index.name == "mine" and len(index) == 1
    del index
    gc.collect()


# ---- threads and processes ----


def test_threads_add_and_find_at_the_same_time():
    index = doppel.HammingIndex()
    values = some_fingerprints(4000, flips=2)
    errors = []

    def work(number):
        try:
            mine = values[number::8]
            index.add_batch(mine[:250], owners=range(number, 2000, 8))
            for at, value in enumerate(mine[250:], 250):
                index.add(value, at * 8 + number)
                assert any(match.owner == at * 8 + number for match in index.find(value))
            assert len(index.find_batch(mine, 0, threads=2)) >= 500
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors and len(index) == 4000
    index.validate()
    assert rows(index.find(values[9])) == near([(v, n) for n, v in enumerate(values)], values[9], 3)


def test_two_merges_cross():
    a, b = doppel.HammingIndex(), doppel.HammingIndex()
    a.add_batch(range(1000))
    b.add_batch(range(5000, 6000), owners=range(5000, 6000))
    threads = [threading.Thread(target=lambda x=x, y=y: [x.merge(y) for _ in range(20)]) for x, y in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(a) == len(b) == 2000


def test_closing_while_others_use_it():
    index = doppel.HammingIndex()
    index.add_batch(some_fingerprints(5000))
    started, outcomes = threading.Barrier(5), []

    def ask():
        started.wait()
        try:
            while True:
                index.find_batch(range(200))
                index.find(5)
        except ValueError as error:
            outcomes.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    started.wait()
    threading.Event().wait(0.05)
    index.close()
    for thread in threads:
        thread.join()
    assert outcomes == ["this HammingIndex is closed"] * 4


def test_a_generator_that_uses_the_index_it_is_added_to():
    index = doppel.HammingIndex()

    def generate():
        for number in range(10):
            index.add(number, 1000 + number)
            yield number

    index.add_batch(generate())
    assert len(index) == 20


def test_after_a_fork_the_index_is_refused():
    index = doppel.HammingIndex()
    index.add(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of other tests
        child = os.fork()
    if not child:
        outcome = 1
        try:
            index.find(1)
        except RuntimeError as error:
            expected = f"this HammingIndex was opened by another process ({os.getppid()}): open it again in this one"
            outcome = 0 if str(error) == expected else 2
        finally:
            index.close()
            del index
            with doppel.HammingIndex() as own:
                own.add(2, 2)
                outcome = outcome if len(own) == 1 else 3
            os._exit(outcome)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(index.find(1)) == 1


def test_an_interrupt_ends_a_batch():
    import _thread

    numbers = random.Random(4)
    index = doppel.HammingIndex()
    index.add_batch([numbers.getrandbits(64) for _ in range(50_000)])
    queries = [numbers.getrandbits(64) for _ in range(100)] * 5000
    timer = threading.Timer(0.1, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        index.find_batch(queries, 32, limit=1)
        threading.Event().wait(5)
    timer.join()
    assert len(index) == 50_000


def test_the_examples_of_the_documentation():
    import doctest

    import doppel._index

    assert doctest.testmod(doppel._index).failed == 0

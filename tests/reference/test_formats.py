"""test_formats.py - what is not text: hashes, the caller's features, signatures, recipes as text, tables on disk."""
import os
import random
import struct
import tempfile
from collections import Counter

import check
import documents
import hashes
import library
import recipes
import reference

NAMES = recipes.PARTS["hash"] + ["sha512", "ripemd160", "sha512-256"]


def same(got, expected, what):
    assert got == expected, f"{what}:\n  library   {got!r}\n  reference {expected!r}"


# ---- hashes


def test_every_hash_of_every_length():
    rng = random.Random(10)
    for name in NAMES:
        for length in [*range(70), 127, 128, 129, 240, 241, 256, 300, 1000, 5000]:
            data = rng.randbytes(length)
            for seed in [0, 1, rng.getrandbits(32), rng.getrandbits(64)]:
                same(library.hash_bytes(name, data, seed), hashes.hash_bytes(name, data, seed), (name, data, seed))


def test_the_reference_murmur3_has_the_verification_value_of_smhasher():
    keys = [bytes(range(i)) for i in range(256)]
    results = [struct.pack("<2Q", *hashes.murmur3_128(key, 256 - i)) for i, key in enumerate(keys)]
    assert hashes.murmur3_128(b"".join(results))[0] % 2**32 == 0x6384BA69


# ---- the caller's features


def test_simhash_of_weighted_features():
    rng = random.Random(11)
    for i in range(600):
        name = NAMES[i % len(NAMES)]
        bits = [64, 128, 1, 4, 32, 63][i // len(NAMES) % 6]
        count = rng.choice([0, 1, 2, 5, 40])
        weights = [lambda: rng.uniform(-5, 5), lambda: rng.randrange(-3, 4) / 131072, lambda: rng.uniform(0, 2**31),
                   lambda: rng.randrange(1, 9), lambda: rng.randrange(9) / 65536 + 1 / 131072]
        features = [(rng.randbytes(rng.randrange(12)), weights[i % len(weights)]()) for _ in range(count)]
        fixed = [(data, reference.fixed(weight)) for data, weight in features]
        halves = [[(hashes.hash_bytes(name, data, seed), weight) for data, weight in fixed] for seed in (0, 1)]
        sums = reference.sums(halves[0], min(bits, 64)) + (reference.sums(halves[1], 64) if bits == 128 else [])
        fingerprint = sum((s > 0) << bit for bit, s in enumerate(sums))
        same(library.simhash(features, bits, name), (fingerprint, sums), (name, bits, features))


def test_simhash_refuses_what_it_cannot_sum():
    for weight in [float("nan"), float("inf"), float("-inf"), 2.0**31 * 1.001, -(2.0**40)]:
        refused(lambda: library.simhash([(b"a", weight)], 64), 2, weight)
    for bits in [65, 127, 129]:
        refused(lambda: library.simhash([(b"a", 1.0)], bits), 2, bits)
    refused(lambda: library.simhash([(b"a", 1.0)], 64, "no-such-hash"), 2, "hash")


def refused(call, status, what):
    try:
        got = call()
    except library.Failure as failure:
        assert failure.status == status, (what, failure)
        return failure
    raise AssertionError(f"{what!r} is accepted: {got!r}")


# ---- signatures


def test_signatures():
    rng = random.Random(12)
    for count in [0, 1, 2, 3, 10, 100, 1000, 5000]:
        for slots in [1, 2, 3, 7, 16, 64, 127, 128, 256, 1000]:
            if count * slots < 200000 or count <= 2:
                numbers = [rng.getrandbits(64) for _ in range(count)]
                expected = reference.signature(set(numbers), slots)
                same(library.minhash(numbers, slots), expected, (count, slots))
                same(library.minhash(numbers[::-1] + numbers, slots), expected, "repeats")
    one = [0x123456789ABCDEF]
    same(library.minhash(one, 65536), reference.signature(one, 65536), "65536 slots")


def test_signatures_of_hashes_that_fall_in_one_slot():
    """Rounds from t on fill the slots that no hash has reached."""
    for numbers in [[0], [1, 2, 3], [2**64 - 1], [0xFFFFFFFF, 0xFFFFFFFE], list(range(50))]:
        for slots in [1, 2, 5, 33, 300]:
            same(library.minhash(numbers, slots), reference.signature(numbers, slots), (numbers, slots))


# ---- recipes as text

GOOD = """page article literal simhash64 simhash1 simhash128 simhash64:words=1 simhash64:words=1000
simhash64:hash=sha512 simhash32:weight=set:hash=md5:words=2 simhash64:chars=3:space=drop simhash64:space=keep:chars=3
simhash64:sample=4294967295 simhash64:minhash=65536:words=3 simhash64:first=9223372036854775807
simhash64:unicode=15.0.0 simhash64:unicode=14.0.0:words=4 simhash64:case=fold:punct=drop
simhash64:punct=keep:case=keep simhash64:sample=1:minhash=1:first=1""".split()
BAD = """pages simhash simhash0 simhash65 simhash127 simhash129 simhash-1 simhash64x minhash64 SIMHASH64 simhash64:
simhash64::words=5 simhash18446744073709551617 simhash64:words=5:chars=5 simhash64:words=5:words=5
simhash64:words=3:space=drop""".split() + ["", "simhash64 :words=5", "simhash64:words= 5"]
BAD_PARTS = """words words= words=0 words=1001 words=-1 words=five words=5x words=18446744073709551617
chars=0 chars=1001 hash= hash=nothing weight=idf weight= case=lower punct=yes space=drop first=0 first=9223372036854775808
first=99999999999999999999 minhash=0 minhash=65537 sample=0 sample=4294967296 stop=123 stop=zzzzzzzzzzzzzzzz
stop=0123456789abcdef df=123 weight=tfidf colour=red""".split()


def test_recipes_have_one_canonical_form():
    for text in GOOD:
        made = library.Recipe(text)
        same(made.text(), reference.canonical(reference.parse(text)), text)
        same(library.Recipe(made.text()).text(), made.text(), "canonical form of " + text)
        assert bool(made.warning()) == ("14.0.0" in text), text


def test_the_order_of_parts_does_not_matter():
    rng = random.Random(13)
    for chosen in recipes.all_recipes():
        if chosen["weight"] != "tfidf":
            text = recipes.text_of(chosen)
            first, *parts = text.split(":")
            rng.shuffle(parts)
            same(library.Recipe(":".join([first, *parts])).text(), reference.canonical(reference.parse(text)), parts)


def test_recipes_that_make_no_sense_are_refused():
    for text in BAD + [f"simhash64:{part}" for part in BAD_PARTS]:
        failure = refused(lambda: library.Recipe(text).text(), 2, text)
        assert failure.error.message and failure.error.code == 2, text


STOPPED = [("words=1", "the of"), ("words=1", " the\nOF, the "), ("words=1:case=keep", "The THE the"),
           ("words=2", "的 中文 É é"), ("words=1:punct=keep", "don't -- dont"),
           ("words=1:first=3", "alpha beta gamma")]


def test_stop_words_have_a_digest():
    for parts, stop in STOPPED:
        text, stop = "simhash64:" + parts, stop.encode()
        recipe = reference.parse(text)
        words, recipe["stop"] = reference.stop_words(stop, recipe)
        made = library.Recipe(text, stop)
        same(made.text(), reference.canonical(recipe), (text, stop))
        library.Recipe(made.text(), stop)
        refused(lambda: library.Recipe(made.text(), stop + b" more").text(), 2, "another list")
        sketcher = library.Sketcher(made)
        for data in [b"The cat, the dog and the bird of don't dont alpha", "的中文 中文 é".encode(), stop]:
            same(sketcher.run(data)["text"].decode(), reference.sketch(data, recipe, words)["text"], (text, stop, data))


# ---- tables


def read(path):
    with open(path, "rb") as file:
        return file.read()


def check_table(mapped, table, counts):
    """A table as the library maps it and as the reference reads it, against what was counted."""
    same(table.df, dict(counts), "counts")
    same(mapped.documents(), table.documents, "documents")
    same((mapped.features(), mapped.recipe(), mapped.digest()), (len(counts), table.recipe, table.digest), "header")
    for feature in [*list(counts)[:500], 0, 1, 2**64 - 1]:
        same(mapped.get(feature), counts.get(feature, 0), feature)
        same(mapped.idf(feature), reference.fixed(table.idf(feature)) / 65536, feature)


def test_tables():
    """Counted, saved, read by both; the same bytes when spilled or merged."""
    real, _ = documents.real(300)
    for text in ["simhash64:words=2", "simhash32:chars=4:hash=xxh3:case=keep:space=drop:weight=set", "article"]:
        made, recipe = library.Recipe(text), reference.parse(text)
        sets = [reference.sketch(data, recipe)["set"] for data in real]
        counts = Counter(h for found in sets for h in found)
        with tempfile.TemporaryDirectory() as folder:
            whole, spilled, a, b, merged, rare = (os.path.join(folder, name) for name in "wsabmr")
            library.build_table(made, sets, whole)
            table = reference.Table(read(whole))
            check_table(library.Table(whole), table, counts)
            same((table.documents, table.recipe), (len(real), reference.feature_parts(recipe)), "documents, recipe")
            library.build_table(made, sets, spilled, memory=4096)
            assert read(spilled) == read(whole), "spilled"
            library.build_table(made, sets[:100], a)
            library.build_table(made, sets[100:], b)
            library.merge_tables([a, b], merged)
            assert read(merged) == read(whole), "merged"
            library.build_table(made, sets, rare, min_df=3)
            same(reference.Table(read(rare)).df, {h: c for h, c in counts.items() if c >= 3}, "min_df")


def test_a_recipe_takes_only_the_table_of_its_features():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        library.build_table(library.Recipe("simhash64:words=2"), [[1, 2], [2, 3]], path)
        df = library.Table(path)
        made = library.Recipe("simhash32:words=2:weight=tfidf", df=df)
        same(made.text(), f"simhash32:words=2:hash=fast:weight=tfidf:df={df.digest()}", "text")
        library.Recipe(made.text(), df=df)
        for parts in ["words=3", "words=2:hash=xxh3", "chars=2", "words=2:case=keep", "words=2:first=9",
                      "words=2:df=0123456789abcdef"]:
            refused(lambda: library.Recipe(f"simhash64:weight=tfidf:{parts}", df=df).text(), 2, parts)
        refused(lambda: library.Recipe(made.text()).text(), 2, "no table")


def test_altered_tables_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        library.build_table(library.Recipe("page"), [[1, 2, 3], [2, 3, 4]], path)
        data = read(path)
        for i in range(len(data)):
            with open(path, "wb") as file:
                file.write(data[:i] + bytes([data[i] ^ 1]) + data[i + 1:])
            refused(lambda: library.Table(path).digest(), 4, f"byte {i} altered")
            with open(path, "wb") as file:
                file.write(data[:i])
            refused(lambda: library.Table(path).digest(), 4, f"cut to {i} bytes")
        with open(path, "wb") as file:
            file.write(data + b"\0" * 8)
        refused(lambda: library.Table(path).digest(), 4, "8 bytes more")


if __name__ == "__main__":
    check.main(globals())

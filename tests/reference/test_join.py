"""test_join.py - near fingerprints, by the library and by the command, against two plain loops.

The loops below know nothing of blocks, tables or orders of bits: a pair is near when few of its bits differ."""
import os
import random
import subprocess
import tempfile

import check
import library
import near

DOPPEL = os.path.join(os.environ["DOPPEL_BUILD"], "doppel")
FULL = os.environ.get("DOPPEL_SUITE") == "full"
COUNT = 800 if FULL else 100
WIDTHS = [64, 128, 1, 7, 16, 33, 63]


# ---- what is near


def apart(a, b):
    return bin(a ^ b).count("1")


def pairs_in(fingerprints, distance, every=True):
    """Without `every`, a copy is paired with the first of its kind alone, and that one stands for all."""
    first = {}
    for position, number in enumerate(fingerprints):
        first.setdefault(number, position)
    for a, left in enumerate(fingerprints):
        for b in range(a + 1, len(fingerprints)):
            between = apart(left, fingerprints[b])
            if between > distance:
                continue
            copy = first[fingerprints[b]] != b
            if every or (first[left] == a and (not copy or between == 0)):
                yield a, b, between


def pairs_between(left, right, distance):
    for b, number in enumerate(right):
        for a, other in enumerate(left):
            if apart(number, other) <= distance:
                yield a, b, apart(number, other)


def found_by(fingerprints, query, distance):
    near_ones = [(apart(number, query), number, owner) for owner, number in enumerate(fingerprints)]
    return sorted(match for match in near_ones if match[0] <= distance)


# ---- sets


def flipped(rng, number, bits, flips):
    for _ in range(flips):
        number ^= 1 << rng.randrange(bits)
    return number


def sets_of(bits, count):
    """Every shape of set, by name."""
    rng = random.Random(bits)
    random_set = [rng.getrandbits(bits) for _ in range(count)]
    planted = list(random_set)
    for i in range(count // 2, count):
        planted[i] = flipped(rng, planted[rng.randrange(i)], bits, rng.randrange(1 + bits // 3))
    centre = rng.getrandbits(bits)
    few = count // 4
    return {"random": random_set, "planted": planted,
            "skewed": [flipped(rng, random_set[i % 3], bits, rng.choice([0, 0, 1, 2, 5])) for i in range(few)],
            "equal": [centre] * few, "sequence": [i % 2**bits for i in range(few)],
            "one bit": [centre ^ 1 << i % bits for i in range(few)],
            "one band": [centre ^ rng.getrandbits(min(bits, 16)) for _ in range(few)],
            "one": [centre], "none": []}


def distances_of(bits):
    return sorted({k for k in [0, 1, 2, 3, 4, 6, 8, 11, 16, *([24, 32] if bits == 128 else [])] if k <= bits})


def same(got, expected, *what):
    got, expected = list(got), list(expected)
    assert got == expected, (f"{what}: {len(got)} found, not {len(expected)}; missing "
                             f"{sorted(set(expected) - set(got))[:5]}, wrong {sorted(set(got) - set(expected))[:5]}")


# ---- the library


def test_the_library_joins_one_set():
    done = 0
    for bits in WIDTHS:
        for name, numbers in sets_of(bits, COUNT).items():
            for k in distances_of(bits):
                for every in (False, True):
                    expected = list(pairs_in(numbers, k, every))
                    for threads in (1, 2, 3):
                        same(near.join([numbers], k, bits, threads=threads, all=every), expected, bits, name, k, every)
                    done += 1
    return f"{done} joins"


def test_the_library_joins_two_sets():
    for bits in WIDTHS:
        shapes = sets_of(bits, COUNT)
        for name, numbers in shapes.items():
            for other in (shapes["planted"][::2], numbers[: COUNT // 2], []):
                for k in distances_of(bits)[::2]:
                    expected = list(pairs_between(other, numbers, k))
                    for threads in (1, 2):
                        same(near.join([other, numbers], k, bits, threads=threads), expected, bits, name, k)


def test_the_index_finds():
    rng = random.Random(3)
    for bits in WIDTHS:
        for name, numbers in sets_of(bits, 2 * COUNT).items():
            for layout in (None, "scan", *(["4x16", "5c2x12"] if bits >= 64 else [])):
                index = near.Index(bits, min(3, bits), layout)
                index.insert_many(numbers[: len(numbers) // 2])
                for owner in range(len(numbers) // 2, len(numbers)):
                    index.insert(numbers[owner], owner)
                index.validate()
                for k in distances_of(bits):
                    query = flipped(rng, rng.choice(numbers or [0]), bits, rng.randrange(4))
                    expected = found_by(numbers, query, k)
                    same(index.find(query, k), expected, bits, name, layout, k)
                    same(index.find(query, k, limit=2), expected[:2], bits, name, layout, k, "limit")


def test_published_examples():
    index = near.Index(64)
    index.insert(0x0, 1)
    index.insert(0x78, 2)
    same(index.find(0x70, 3), [(1, 0x78, 2), (3, 0x0, 1)])
    same(index.find(0x0, 3), [(0, 0x0, 1)])
    eight = [37586, 50086, 2648, 934, 40957, 2650, 64475, 40955]
    same(near.join([eight], 2, 16), [(1, 3, 2), (2, 5, 1), (4, 7, 2)])


def test_what_makes_no_sense_is_refused():
    for bits, k in [(64, 65), (16, 17), (128, 129), (64, -1), (65, 3), (129, 3)]:
        try:
            near.join([[1, 2, 3]], k, bits)
        except library.Failure as failure:
            assert failure.status == 2 and failure.error.message, (bits, k)
        else:
            raise AssertionError(f"{bits} bits, within {k}: not refused")


# ---- the command


def write_set(path, numbers, bits):
    with open(path, "wb") as file:
        for number in numbers:
            file.write(number.to_bytes(16 if bits > 64 else 8, "little"))


def command(*arguments):
    done = subprocess.run([DOPPEL, "join", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return done.stdout


def lines(pairs):
    return "".join(f"{a} {b} {distance}\n" for a, b, distance in pairs)


def test_the_command_joins_one_set():
    with tempfile.TemporaryDirectory() as folder:
        for bits in WIDTHS:
            path = os.path.join(folder, f"a{bits}")
            for name, numbers in sets_of(bits, COUNT // 2).items():
                write_set(path, numbers, bits)
                for k in distances_of(bits)[::3 if FULL else 5]:
                    given = ["--from", "raw", "--bits", bits, "--distance", k, path]
                    for every in (False, True):
                        expected = list(pairs_in(numbers, k, every))
                        options = given + ["--all"] * every
                        for threads in (1, 2, 3) if FULL else (1, 3):
                            assert command("--threads", threads, *options) == lines(expected), (bits, name, k, every)
                        assert command("--count", *options) == f"{len(expected)}\n", (bits, name, k, every)


def test_the_command_joins_two_sets():
    with tempfile.TemporaryDirectory() as folder:
        for bits in (64, 128, 33):
            a, b = os.path.join(folder, "a"), os.path.join(folder, "b")
            shapes = sets_of(bits, COUNT // 2)
            write_set(a, shapes["planted"][::2], bits)
            for name, numbers in shapes.items():
                write_set(b, numbers, bits)
                for k in distances_of(bits)[1::3]:
                    expected = lines(pairs_between(shapes["planted"][::2], numbers, k))
                    for threads in (1, 2):
                        got = command("--from", "raw", "--bits", bits, "--distance", k, "--threads", threads, a, b)
                        assert got == expected, (bits, name, k, threads)


if __name__ == "__main__":
    check.main(globals())

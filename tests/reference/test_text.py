"""test_text.py - text becomes the same words in the library as in the reference: every code point, hard sequences,
damaged bytes, however the text is cut."""
import os
import random

import unicodedata2 as unicode

import check
import documents
import library
import reference

FULL = os.environ.get("DOPPEL_SUITE") == "full"
OPTIONS = ["", ":case=keep", ":punct=keep", ":case=keep:punct=keep"]
CONTEXTS = ["X", "aX", "aXb", "Xb", "X\u0301", "\u0301X", "e\u0301X", "eX\u0301", "中X", "中X\u0301", "X中", "αX\u0345",
            "α\u0345X", "\u1100X", "가X", "XX", "ก\u0e33X", "\u102dX"]


class Pair:
    """A recipe in both."""

    def __init__(self, text, wants=library.WANT_ALL):
        self.recipe = reference.parse(text)
        self.library_recipe = library.Recipe(text)
        self.sketcher = library.Sketcher(self.library_recipe, wants)

    def expected(self, data):
        found = reference.words(data, self.recipe)
        return reference.normalised_text(found, self.recipe).encode()

    def differs(self, data):
        return self.sketcher.text(data) != self.expected(data)

    def require(self, data):
        if self.differs(data):
            raise AssertionError(f"{reference.canonical(self.recipe)} of {data!r}:\n  library   "
                                 f"{self.sketcher.text(data)!r}\n  reference {self.expected(data)!r}")


def encode(text):
    return text.encode("utf-8", "surrogatepass")


def compare_contexts(pair, context, points):
    """Many code points in one context a document, a space between; looks closer when they differ."""
    for start in range(0, len(points), 512):
        strings = [context.replace("X", chr(c)) for c in points[start:start + 512]]
        if pair.differs(encode(" ".join(strings))):
            for string in strings:
                pair.require(encode(string))
            pair.require(encode(" ".join(strings)))


def plain(c):
    """Whether a code point is one of many like it: ideographs, syllables, private or unassigned."""
    name = unicode.name(chr(c), "")
    return not name or name.startswith(("CJK UNIFIED", "CJK COMPAT", "HANGUL SYLLABLE", "TANGUT IDEOGRAPH", "NUSHU CHAR"))


PLAIN = [c for c in range(0x110000) if plain(c)]
SPECIAL = [c for c in range(0x110000) if not plain(c)]


def test_every_code_point_in_every_context():
    for number, option in enumerate(OPTIONS):
        pair = Pair("simhash64:words=1" + option, library.WANT_TEXT)
        contexts = CONTEXTS if "punct" not in option else CONTEXTS[:3]
        for context in contexts if FULL else contexts[number::8]:
            compare_contexts(pair, context, SPECIAL + PLAIN[::97])
    for option, context in [("", "X"), ("", "aX\u0301"), (":case=keep:punct=keep", "X")] if FULL else [("", "aX\u0301")]:
        compare_contexts(Pair("simhash64:words=1" + option, library.WANT_TEXT), context, PLAIN)
    return f"{len(SPECIAL) + len(PLAIN)} code points"


def test_every_code_point_as_a_document():
    for option in ["", ":case=keep:punct=keep"]:
        pair = Pair("simhash64:words=1" + option, library.WANT_TEXT)
        for c in SPECIAL + PLAIN[::97]:
            pair.require(encode(chr(c)))


def test_every_code_point_by_characters():
    pair = Pair("simhash64:chars=3", library.WANT_TEXT)
    for context in ["X", "中X\u0301"]:
        compare_contexts(pair, context, SPECIAL + PLAIN[::97])


def test_every_pair_of_hard_code_points():
    atoms = sorted({c for kind in documents.ATOMS.values() for c in kind})
    for option in ["", ":case=keep"]:
        pair = Pair("simhash64:words=1" + option, library.WANT_TEXT)
        for a in atoms:
            if pair.differs(encode(" ".join(a + b for b in atoms))):
                for b in atoms:
                    pair.require(encode(a + b))
    return f"{len(atoms)} by {len(atoms)}"


def test_runs_of_joining_code_points():
    """Every joining code point, more than 32 times, and after 31 to 33 others."""
    joining = [c for c in range(0x110000) if reference.joins(chr(c), True) or reference.joins(chr(c), False)]
    for option in ["", ":case=keep"]:
        pair = Pair("simhash64:words=1" + option, library.WANT_TEXT)
        for c in joining:
            mixed = [f"a{chr(0x323) * n}{chr(c) * 2}{chr(0x301)}b" for n in (30, 31, 32, 33)]
            pair.require(encode(" ".join(["a" + chr(c) * 70, chr(c) * 67, *mixed])))
    return f"{len(joining)} code points"


def test_random_sequences():
    rng = random.Random(3)
    pairs = [Pair("simhash64:words=1" + option, library.WANT_TEXT) for option in OPTIONS]
    pairs.append(Pair("simhash64:chars=2:space=drop", library.WANT_TEXT))
    count = 200000 if FULL else 5000
    for i in range(count):
        pairs[i % len(pairs)].require(documents.KINDS[i % len(documents.KINDS) - i % 3](rng))
    return f"{count} documents"


def test_damage_between_letters_and_marks():
    pair = Pair("simhash64:words=1", library.WANT_TEXT)
    for damage in documents.DAMAGE:
        for before in [b"", b"a", "中".encode(), "\u0301".encode(), b"x" * 61]:
            for after in [b"", b"b", "\u0301".encode(), b"\x80", "中".encode(), b" c"]:
                for again in [b"", damage]:
                    pair.require(before + damage + again + after)


def test_short_sequences_of_bytes():
    """Every pair of bytes, and triples and quadruples of those at the edges of ranges."""
    pair = Pair("simhash64:words=1:punct=keep", library.WANT_TEXT)
    for a in range(256):
        pair.require(b"|".join(bytes([a, b]) for b in range(256)))
    edge = bytes.fromhex("28 7f 80 8f 90 9f a0 bf c0 c1 c2 df e0 e1 ec ed ee ef f0 f1 f3 f4 f5 f8 ff")
    for a in edge:
        for b in edge:
            pair.require(b"|".join(bytes([a, b, c]) for c in edge))
            if a >= 0xF0:
                for c in edge:
                    pair.require(b"|".join(bytes([a, b, c, d]) for d in edge))


def test_the_first_code_points():
    rng = random.Random(4)
    for n in [1, 2, 3, 7, 31, 33, 64, 100]:
        for option in ["", ":case=keep"]:
            pair = Pair(f"simhash64:words=1:first={n}{option}", library.WANT_TEXT)
            for _ in range(300):
                pair.require(documents.KINDS[rng.randrange(len(documents.KINDS))](rng))
            pair.require(b"\xef\xbb\xbf" + b"x" * 200)
            pair.require(b"x" * (n - 1) + "e\u0301".encode())
            pair.require(b"x" * (n - 1) + b"\xe2\x82" + b"y" * 9)


def test_words_at_every_offset():
    """A word, a gap and something that is not ASCII at each place of the blocks the vector code reads."""
    pair = Pair("simhash64:words=1", library.WANT_TEXT)
    for offset in range(200):
        for middle in [b"Word", b" ", b"--", "\u00e9".encode(), "中".encode(), b"\xff", "e\u0301".encode(), b"\0"]:
            for filler in [b"a", b" ", b"."]:
                pair.require(filler * offset + middle + b"end")


def test_every_cut():
    """In pieces, cut at each byte, at every byte and at random: the same as at once."""
    rng = random.Random(5)
    recipes = ["simhash64:words=1:weight=set", "simhash64:words=5", "simhash128:chars=3:hash=xxh3",
               "simhash64:words=2:first=20", "simhash64:words=3:case=keep:punct=keep:minhash=16",
               "simhash64:words=2:hash=murmur3"]
    pairs = [Pair(recipe, wants) for recipe in recipes for wants in (0, library.WANT_ALL)]
    cuts = 0
    for i in range(900 if FULL else 240):
        pair = pairs[i % len(pairs)]
        data = documents.KINDS[i // len(pairs) % len(documents.KINDS)](rng)[:400]
        whole = pair.sketcher.run(data)
        ways = [[at] for at in range(len(data) + 1)] + [list(range(1, len(data)))]
        ways += [sorted(rng.choices(range(len(data) + 1), k=3)) for _ in range(5)]
        for way in ways:
            got = pair.sketcher.pieces(data, way)
            assert got == whole, (reference.canonical(pair.recipe), data, way, got, whole)
        cuts += len(ways)
    return f"{cuts} ways to cut"


def test_long_documents():
    """Larger than any buffer, with words that are, too."""
    rng = random.Random(6)
    pair = Pair("simhash64:words=1", library.WANT_TEXT)
    for length in [10**5, 10**6] if FULL else [10**5]:
        pair.require(b"x" * length)
        pair.require("\u4e2d".encode() * (length // 3))
        pair.require(b"a " * (length // 2))
        pair.require(("a" + "\u0301" * 40).encode() * (length // 100))
        pair.require(b"\xff" * length)
        pair.require(b"." * length + b"end")
        pair.require(b" ".join(documents.mixture(rng) for _ in range(length // 100)))
        data = b"".join(documents.KINDS[i % len(documents.KINDS)](rng) for i in range(length // 200))
        pair.require(data)
        cuts = list(range(4096, len(data), 4096))
        assert pair.sketcher.pieces(data, cuts)["text"] == pair.expected(data)


def test_word_ranges():
    """Each word comes from its range: the range, read by itself, has it in its text. (Not always as a word: whether a mark
    begins one depends on what stands before it.)"""
    real, _ = documents.real(600 if FULL else 200)
    for text in ["simhash64:words=1", "simhash64:words=1:case=keep:punct=keep"]:
        pair = Pair(text)
        for data in real + documents.invented(3000 if FULL else 800):
            found = reference.words(data, pair.recipe)
            ranges = pair.library_recipe.word_ranges(data)
            assert len(ranges) == len(found), (data, ranges, found)
            assert ranges == sorted(ranges), (data, ranges)
            for (start, end), word in zip(ranges, found):
                assert 0 <= start < end <= len(data), (data, start, end)
                assert word in "".join(reference.words(data[start:end], pair.recipe)), (data, start, end, word)


if __name__ == "__main__":
    assert library.lib.doppel_unicode_version().decode() == unicode.unidata_version
    check.main(globals())

"""reference.py - doppel's definitions once more, in plain Python.

Written from docs/FORMAT.md alone, section by section, and slow. The tests compare the library with it. Case folding is
Python's str.casefold: CaseFolding.txt has the same C and F lines in Unicode 14 (Python 3.11) and 15.
"""
import codecs
import hashlib
import math
import re
import struct
from collections import Counter
from functools import lru_cache

import unicodedata2 as unicode
import xxhash

from hashes import GOLDEN, fast, finalise, hash_bytes

# ---- 1. Text to words

INVALID = "\ud800"  # stands for an invalid sequence: no valid UTF-8 decodes to a surrogate
codecs.register_error("doppel", lambda error: (INVALID, error.end))

WHITE_SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
               0x3000}
SEPARATORS = WHITE_SPACE | {0x0F0B, 0x0F0C, 0x1361}
NO_SPACES = [(0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3040, 0x30FF),
             (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
             (0xF900, 0xFAFF), (0x20000, 0x323AF)]


def decode(data, first=None):
    """Code points, each invalid sequence one INVALID."""
    text = data.decode("utf-8", "doppel")
    if data.startswith(codecs.BOM_UTF8):
        text = text[1:]
    return text[:first]


def second_halves():
    halves = {chr(c) for c in [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]}
    for c in range(0x110000):
        parts = unicode.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = "".join(chr(int(part, 16)) for part in parts)
            if unicode.normalize("NFC", pair) == chr(c):
                halves.add(pair[1])
    return halves


SECOND_HALVES = second_halves()


@lru_cache(None)
def joins(char, fold):
    """Whether a code point may act on those before it when text is normalised."""
    whole = unicode.normalize("NFKD", char)
    if fold:
        whole = unicode.normalize("NFKD", unicode.normalize("NFKD", char.casefold()).casefold())
    return any(unicode.combining(c) or c in SECOND_HALVES for c in (whole[0], char))


def pieces(text, fold):
    """The text, cut where more than 32 joining code points follow each other."""
    start = run = 0
    for at, char in enumerate(text):
        run = run + 1 if joins(char, fold) else 0
        if run > 32:
            yield text[start:at]
            start, run = at, 1
    yield text[start:]


def normalise(text, fold):
    text = unicode.normalize("NFKC", text)
    return unicode.normalize("NFKC", text.casefold()) if fold else text


class Classes(dict):
    """For str.translate: a code point becomes itself, a space or nothing."""

    def __init__(self, keep):
        self.keep = keep

    def __missing__(self, c):
        stays = unicode.category(chr(c))[0] in self.keep
        self[c] = " " if c in SEPARATORS else c if stays else None
        return self[c]


CLASSES = {"drop": Classes("LMN"), "keep": Classes("LMNPS")}


@lru_cache(None)
def stands_alone(char):
    return unicode.category(char)[0] in "LN" and any(low <= ord(char) <= high for low, high in NO_SPACES)


def split_alone(word):
    """Step 4: cuts a run of code points at those of scripts written without spaces."""
    alone = False
    begin = 0
    for at, char in enumerate(word):
        if stands_alone(char) or (alone and unicode.category(char)[0] != "M"):
            if at > begin:
                yield word[begin:at]
            begin, alone = at, stands_alone(char)
    yield word[begin:]


def words(data, recipe, stop=frozenset()):
    """The words of a text (bytes), steps 1 to 5."""
    fold = recipe["case"] == "fold"
    found = []
    for part in decode(data, recipe["first"]).split(INVALID):
        text = "".join(normalise(piece, fold) for piece in pieces(part, fold))
        for word in text.translate(CLASSES[recipe["punct"]]).split(" "):
            if word:
                found += split_alone(word) if recipe["words"] else [word]
    return [word for word in found if word not in stop]


def normalised_text(found, recipe):
    return ("" if recipe["space"] == "drop" else " ").join(found)


def digest(text):
    return hashlib.sha256(text.encode()).digest() if text else bytes(32)


# ---- 2. Features


def features(found, recipe):
    """Every feature as the list of its units (words or code points), in order."""
    units = found if recipe["words"] else list(normalised_text(found, recipe))
    n = min(recipe["words"] or recipe["chars"], len(units))
    return [units[i:i + n] for i in range(len(units) - n + 1)] if units else []


# ---- 3. Hashes: those of features; hashes.py has those of bytes


def hash_feature(units, recipe, seed=0):
    if recipe["hash"] == "fast":
        return fast([unit.encode() for unit in units], seed)
    return hash_bytes(recipe["hash"], (" " if recipe["words"] else "").join(units).encode(), seed)


# ---- 4. SimHash


def fixed(weight):
    """A real weight in units of 1/65536, ties to even."""
    return round(weight * 65536)


def weigh(counts, recipe, df):
    """Weight of each feature hash, in units of 1/65536."""
    weight = {
        "tf": lambda h, c: c * 65536,
        "set": lambda h, c: 65536,
        "sqrt": lambda h, c: fixed(math.sqrt(c)),
        "tf2": lambda h, c: c * c * 65536,
        "tfidf": lambda h, c: c * fixed(df.idf(h)),
    }[recipe["weight"]]
    return {h: weight(h, c) for h, c in counts.items()}


def sums(weighted, bits):
    """The sum for each bit, bit 0 first, over pairs (hash, weight)."""
    total = sum(w for _, w in weighted)
    return [2 * sum(w for h, w in weighted if h >> i & 1) - total for i in range(bits)]


def simhash(weighted, bits):
    return sum((s > 0) << i for i, s in enumerate(sums(weighted, bits)))


def hexadecimal(fingerprint, bits):
    return f"{fingerprint:0{(bits + 3) // 4}x}"


# ---- 5. Signatures and samples


def signature(hashes, slots):
    if not hashes:
        return [2**32 - 1] * slots
    best, r = {}, 0  # slot -> the round that filled it, and its value
    while len(best) < slots:
        for x in hashes:
            y = finalise(x + r * GOLDEN) if r else x
            slot = (y >> 32) * slots >> 32 if r < slots else r - slots
            best[slot] = min(best.get(slot, (r, y % 2**32)), (r, y % 2**32))
        r += 1
    return [(value + r * 0x9E3779B1) % 2**32 for _, (r, value) in sorted(best.items())]


def sample(hashes, p):
    return sorted(h for h in set(hashes) if h % p == 0)


# ---- 6. Recipes

NAMES = {"page": "simhash64:words=5:hash=fast:weight=tf",
         "article": "simhash64:words=1:hash=fast:weight=tf:first=5000",
         "literal": "simhash64:words=5:hash=murmur3:weight=tf"}
WORDS_OF = {"weight": ["tf", "set", "sqrt", "tf2", "tfidf"], "case": ["fold", "keep"], "punct": ["drop", "keep"],
            "space": ["keep", "drop"]}
NUMBERS_OF = {"words": 1000, "chars": 1000, "first": 2**63 - 1, "minhash": 65536, "sample": 2**32 - 1}
ORDER = ["words", "chars", "hash", "weight", "case", "punct", "space", "first", "stop", "df", "minhash", "sample",
         "unicode"]
HASHES = ["fast", "xxh3", "murmur3", "jenkins", "djb2"]


def parse_part(name, value):
    if name in WORDS_OF and value in WORDS_OF[name]:
        return value
    if name in NUMBERS_OF and re.fullmatch("[1-9][0-9]*", value) and int(value) <= NUMBERS_OF[name]:
        return int(value)
    if name == "hash" and (value in HASHES or hashlib.new(value)):
        return value
    if name in ("stop", "df") and re.fullmatch("[0-9a-f]{16}", value):
        return value
    if name == "unicode" and re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", value):
        return value
    raise ValueError(f"{name}={value}")


def parse(text):
    """A recipe as a dict of its parts; ValueError when it makes no sense."""
    width, *parts = NAMES.get(text, text).split(":")
    bits = re.fullmatch("simhash([1-9][0-9]*)", width)
    if not bits or not (int(bits[1]) <= 64 or int(bits[1]) == 128):
        raise ValueError(width)
    given = {}
    for part in parts:
        name, _, value = part.partition("=")
        if name in given:
            raise ValueError(part)
        given[name] = parse_part(name, value)
    if ("words" in given and "chars" in given) or ("space" in given and "chars" not in given):
        raise ValueError(text)
    recipe = dict.fromkeys(ORDER) | {name: values[0] for name, values in WORDS_OF.items()}
    recipe |= {"bits": int(bits[1]), "hash": "fast", "words": None if "chars" in given else 5}
    return recipe | given


def feature_parts(recipe):
    """The parts that make features, as they stand in a document-frequency table."""
    names = ["words", "chars", "hash", "case", "punct", "space", "first", "stop"]
    return ":".join(part for part in canonical(recipe).split(":") if part.partition("=")[0] in names)


def canonical(recipe):
    text = f"simhash{recipe['bits']}"
    for name in ORDER:
        default = WORDS_OF.get(name, [None])[0]
        if name == "weight" or recipe[name] not in (default, None):
            text += f":{name}={recipe[name]}"
    return text if recipe["unicode"] != unicode.unidata_version else text.rpartition(":")[0]


def stop_words(data, recipe):
    """The set of stop words in a list, and the value of `stop=`."""
    found = set(words(data, recipe | {"first": None}))
    return found, f"{xxhash.xxh3_64_intdigest(' '.join(sorted(found, key=str.encode)).encode()):016x}"


# ---- 7. Document-frequency tables


class Table:
    def __init__(self, data):
        magic, version, length, self.documents, count, check = struct.unpack_from("<8s2I3Q", data)
        assert (magic, version) == (b"DOPPELDF", 1) and data[40:64].rstrip(b"\0") == b"15.0.0"
        assert check == xxhash.xxh3_64_intdigest(data[:32] + bytes(8) + data[40:])
        at = 64 + (length + 7) // 8 * 8
        assert len(data) == at + 8 * count + (4 * count + 7) // 8 * 8
        self.digest = f"{check:016x}"
        self.recipe = data[64:64 + length].decode()
        hashes = struct.unpack_from(f"<{count}Q", data, at)
        assert list(hashes) == sorted(set(hashes))
        self.df = dict(zip(hashes, struct.unpack_from(f"<{count}I", data, at + 8 * count)))

    def idf(self, feature):
        return max(0.0, math.log(self.documents / (self.df.get(feature, 0) + 1)))


# ---- All of it


def sketch(data, recipe, stop=frozenset(), df=None):
    """Everything about one document (bytes) by a parsed recipe."""
    found = words(data, recipe, stop)
    text = normalised_text(found, recipe)
    made = features(found, recipe)
    low = [hash_feature(units, recipe) for units in made]
    weights = weigh(Counter(low), recipe, df)
    fingerprint = simhash([(h, w) for h, w in weights.items()], min(recipe["bits"], 64))
    if recipe["bits"] == 128:
        high = {h: hash_feature(units, recipe, 1) for h, units in zip(low, made)}
        fingerprint |= simhash([(high[h], w) for h, w in weights.items()], 64) << 64
    return {"fingerprint": fingerprint, "words": len(found) if recipe["words"] else len(text), "hashes": low,
            "set": sorted(weights), "text": text, "digest": digest(text),
            "signature": signature(weights, recipe["minhash"]) if recipe["minhash"] and low else None,
            "sample": sample(low, recipe["sample"]) if recipe["sample"] else []}

"""Makes the documents that bench/python measures on, the same ones each time, and keeps them.

    documents.py COUNT FOLDER

Writes into FOLDER, which is left alone if it is complete:

    documents.parquet  id (int64, the row number), url, text; row groups of 10,000; compressed by snappy, as is usual
    plain.parquet      the same, not compressed
    documents.jsonl    the same rows
    planted.parquet    every near-copy: copy, original (ids), similarity

A document has 1 to 3 KB: invented words, as often as words are in real texts, the frequent ones short. Single spaces
and line ends stand between the words and there is no punctuation, so that every tool cuts the same words out of a text
and sees the similarity that was planted.

A tenth of the documents are near-copies. A near-copy has an original anywhere before it, of its own, with words
replaced, left out and put in for a similarity drawn evenly from 0.7 to 1. The similarity in planted.parquet is exact:
Jaccard of the two sets of 5-word shingles. Two documents that are not such a pair share next to nothing.
"""
import json
import os
import sys

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.parquet

WORDS = 20000
FEWEST, MOST = 180, 500  # words of a document: about 1 to 3 KB
COPIES = 0.1
LEAST = 0.7  # similarity of near-copies
SHINGLE = 5
CHUNK = 10000  # documents that are made at a time: a row group
SEED = 16
SCHEMA = pyarrow.schema({"id": pyarrow.int64(), "url": pyarrow.string(), "text": pyarrow.string()})


def vocabulary(chance):
    """WORDS distinct words of two to ten letters, shorter ones first, and of each: followed by a space, followed by a
    line end, with a capital and a space."""
    starts, vowels = "b c d f g h l m n p r s t v w st tr pl ch sh".split(), "a e i o u ea ou".split()
    syllables = [start + vowel for start in starts for vowel in vowels]
    ends = ["", "n", "r", "s", "t", "l", "d", "ng"]
    found = {}
    while len(found) < WORDS:
        count = 1 + min(3, int(chance.exponential(0.4 + 1.3 * len(found) / WORDS)))
        word = "".join(chance.choice(syllables, count)) + chance.choice(ends)
        if len(word) <= 10:
            found.setdefault(str(word))
    plain = list(found)
    return pyarrow.array([word + " " for word in plain] + [word + "\n" for word in plain] +
                         [word.capitalize() + " " for word in plain])


class Words:
    """Draws words: the n-th most frequent one about 1/n as often as the first, as in real texts."""

    def __init__(self, chance):
        weight = 1 / (numpy.arange(WORDS) + 2.7)
        self.sums = numpy.cumsum(weight / weight.sum())
        self.chance = chance

    def draw(self, count):
        return numpy.minimum(numpy.searchsorted(self.sums, self.chance.random(count)), WORDS - 1).astype("int32")


def shingles(words):
    """The distinct 5-word shingles, as 64-bit hashes."""
    count = len(words) - SHINGLE + 1
    sums = numpy.zeros(count, "uint64")
    for i in range(SHINGLE):
        sums = sums * numpy.uint64(0x9E3779B97F4A7C15) + words[i:count + i].astype("uint64") + numpy.uint64(1)
        sums ^= sums >> numpy.uint64(29)
    return numpy.unique(sums)


def similarity(a, b):
    a, b = shingles(a), shingles(b)
    shared = len(numpy.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)


def edited(words, source, chance):
    """A near-copy. An edit that stands alone takes SHINGLE shingles from one side and puts as many on the other."""
    wanted = chance.uniform(LEAST, 1)
    count = max(1, round(len(words) * (1 - wanted) / (1 + wanted) / SHINGLE))
    places = numpy.sort(chance.choice(len(words), count, replace=False))
    kinds, others = chance.integers(3, size=count), source.draw(count)
    copy = words.copy()
    copy[places[kinds == 0]] = others[kinds == 0]
    put = places[kinds == 1]
    out = numpy.insert(copy, put, others[kinds == 1])
    gone = places[kinds == 2]
    return numpy.delete(out, gone + numpy.searchsorted(put, gone, "right"))


def choose_originals(count, chance):
    """{copy: original}: for a tenth of the documents one of their own before them, which is no copy."""
    is_copy = chance.random(count) < COPIES
    is_copy[:min(100, count)] = False
    used, found = set(), {}
    for copy in numpy.flatnonzero(is_copy):
        original = int(chance.integers(copy))
        while is_copy[original] or original in used:
            original = int(chance.integers(copy))
        used.add(original)
        found[int(copy)] = original
    return found


def texts_of(documents, forms, chance):
    """The texts of arrays of word numbers. One word in 12 begins a sentence, one in 60 ends a line."""
    words = numpy.concatenate(documents)
    luck = chance.random(len(words))
    words = words + WORDS * ((luck < 1 / 60).astype("int32") + 2 * (luck > 11 / 12))
    ends = numpy.cumsum([0] + [len(document) for document in documents], dtype="int32")
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(ends), forms.take(pyarrow.array(words)))
    return pyarrow.compute.utf8_rtrim_whitespace(pyarrow.compute.binary_join(lists, ""))


class Maker:
    """Makes documents chunk by chunk; remembers those that are copied later."""

    def __init__(self, count):
        self.chance = numpy.random.default_rng(SEED)
        self.forms, self.words = vocabulary(self.chance), Words(self.chance)
        self.originals = choose_originals(count, self.chance)
        self.copied = set(self.originals.values())
        self.kept, self.planted = {}, []

    def document(self, number):
        original = self.originals.get(number)
        if original is None:
            words = self.words.draw(int(self.chance.integers(FEWEST, MOST)))
            if number in self.copied:
                self.kept[number] = words.astype("int16")
            return words
        source = self.kept.pop(original).astype("int32")
        words = edited(source, self.words, self.chance)
        self.planted.append((number, original, similarity(source, words)))
        return words

    def chunk(self, first, count):
        texts = texts_of([self.document(first + i) for i in range(count)], self.forms, self.chance)
        ids = numpy.arange(first, first + count)
        urls = [f"https://site{number % 997}.example/page/{number}" for number in ids.tolist()]
        return pyarrow.table({"id": ids, "url": urls, "text": texts}, SCHEMA)


def write(count, folder):
    maker = Maker(count)
    paths = [os.path.join(folder, name) for name in ("documents.parquet", "plain.parquet", "documents.jsonl")]
    with pyarrow.parquet.ParquetWriter(paths[0], SCHEMA, compression="snappy") as parquet, \
            pyarrow.parquet.ParquetWriter(paths[1], SCHEMA, compression="none") as plain, \
            open(paths[2], "w", encoding="ascii") as lines:
        for first in range(0, count, CHUNK):
            table = maker.chunk(first, min(CHUNK, count - first))
            parquet.write_table(table)
            plain.write_table(table)
            lines.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    copy, original, similar = zip(*maker.planted)
    pyarrow.parquet.write_table(pyarrow.table({"copy": copy, "original": original, "similarity": similar}),
                                os.path.join(folder, "planted.parquet"))


def make(count, folder):
    """Makes the files, once; gives the folder."""
    done = os.path.join(folder, "complete")
    if not os.path.exists(done):
        os.makedirs(folder, exist_ok=True)
        write(count, folder)
        with open(done, "w", encoding="ascii"):
            pass
    return folder


if __name__ == "__main__":
    make(int(sys.argv[1]), sys.argv[2])

"""test_groups.py - doppel pairs and doppel cluster by fingerprints against their definitions, on random collections.

test_dedup.py has the other methods."""
import json
import os
import random
import subprocess
import tempfile

import check

DOPPEL = os.path.join(os.environ.get("DOPPEL_BUILD", "build"), "doppel")
MIN_WORDS = 5
ROUNDS = 60


def run(*arguments):
    done = subprocess.run([DOPPEL, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.returncode, done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


# ---- collections


def random_text(rng, vocabulary, originals):
    """An original, copied or edited; now and then a text of a few words, or of none."""
    words = list(rng.choice(originals))
    for _ in range(rng.choice([0, 0, 1, 2, 5])):
        words[rng.randrange(len(words))] = rng.choice(vocabulary)
    if rng.random() < 0.15:
        words = rng.sample(vocabulary[:6], rng.randrange(4))
    text = " ".join(words)
    return text if rng.random() < 0.7 else text.upper() + "!"


class Collection:
    """Random documents, their sketches as `doppel fingerprint` gives them, and what is near by definition."""

    def __init__(self, seed, folder):
        rng = random.Random(seed)
        vocabulary = [f"w{i}" for i in range(300)]
        originals = [rng.choices(vocabulary, k=rng.choice([3, 8, 20, 60])) for _ in range(rng.choice([3, 10, 30]))]
        bits = rng.choice([64, 64, 8, 16, 24, 128])
        self.distance = min(bits, rng.choice([0, 1, 3, 3, 6, 8]))
        self.path = os.path.join(folder, f"{seed}.jsonl")
        self.ids = [f'd"{i}' for i in range(rng.choice([0, 1, 30, 150]))]
        texts = [random_text(rng, vocabulary, originals) for _ in self.ids]
        with open(self.path, "w", encoding="utf-8") as file:
            for name, text in zip(self.ids, texts):
                file.write(json.dumps({"id": name, "text": text}) + "\n")
        self.options = ["--method", "simhash", "--bits", bits, "--distance", self.distance, "--threads", rng.choice([1, 2, 3]), self.path]
        self.sketches = run("fingerprint", "--json", "--bits", bits, self.path)
        for sketch, text in zip(self.sketches, texts):
            if not sketch["words"]:
                sketch["digest"] = "wordless " + text
        self.pairs = [(a, b) for a in range(len(self.ids)) for b in range(a + 1, len(self.ids)) if self.near(a, b)]

    def apart(self, a, b):
        """The distance of two documents; None: one has no words."""
        a, b = self.sketches[a], self.sketches[b]
        if not a["words"] or not b["words"]:
            return None
        return (int(a["fingerprint"], 16) ^ int(b["fingerprint"], 16)).bit_count()

    def near(self, a, b):
        if self.sketches[a]["digest"] == self.sketches[b]["digest"]:
            return True
        enough = min(self.sketches[a]["words"], self.sketches[b]["words"]) >= MIN_WORDS
        return enough and self.apart(a, b) <= self.distance


def collections():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(ROUNDS):
            yield Collection(seed, folder)


# ---- tests


def similarity(c, a, b):
    """It is not measured, and known only where the words (or, without words, the texts) are the same."""
    return 1 if a != b and c.sketches[a]["digest"] == c.sketches[b]["digest"] else None


def lines_of(c, pairs):
    return [{"a": c.ids[a], "b": c.ids[b], "distance": c.apart(a, b), "similarity": similarity(c, a, b)} for a, b in pairs]


def test_pairs_are_all_near_pairs():
    for c in collections():
        assert run("pairs", *c.options) == lines_of(c, c.pairs), c.options


def test_collapsed_copies_are_paired_with_the_first_of_their_kind_only():
    for c in collections():
        first = {}
        for i, sketch in enumerate(c.sketches):
            first.setdefault(sketch["digest"], i)
        first_of = [first[sketch["digest"]] for sketch in c.sketches]
        expected = [(a, b) for a, b in c.pairs if first_of[a] == a and first_of[b] in (a, b)]
        assert run("pairs", "--collapse", *c.options) == lines_of(c, expected), c.options


def test_a_document_belongs_to_the_nearest_kept_one():
    for c in collections():
        original = []
        for b in range(len(c.ids)):
            near = [(not similarity(c, a, b), c.apart(a, b) or 0, a) for a in range(b) if original[a] == a and c.near(a, b)]
            original.append(min(near)[2] if near else b)
        expected = [{"id": c.ids[i], "group": c.ids[o], "kept": o == i, "reason": None if o == i else "content_hash",
                     "similarity": similarity(c, o, i)} for i, o in enumerate(original)]
        assert run("cluster", *c.options) == expected, c.options


def test_linked_groups_are_connected_components():
    for c in collections():
        group = list(range(len(c.ids)))
        for a, b in c.pairs:
            low, high = sorted((group[a], group[b]))
            group = [low if g == high else g for g in group]
        got = run("cluster", "--link", "any", *c.options)
        assert [line["group"] for line in got] == [c.ids[g] for g in group], c.options


if __name__ == "__main__":
    check.main(globals())

"""measure.py - what the accuracy scripts share: a labelled set, its truth, the commands, and how answers are scored.

The truth of a set is by origin and by content: a pair is true when both records have the same `cluster`, or when their
exact similarity (Jaccard of 5-word shingles of the record's text, each compared with each) is at least 0.8. Precision
is the share of the reported pairs that are true, recall the share of the true ones that are reported; recall is also
given by band of similarity: at least 0.9, 0.8 to 0.9, 0.5 to 0.8 (there, of those with the same cluster).
"""
import gzip
import json
import os
import re
import subprocess

MIN_WORDS = 5
NO_TEXT = "no-such-field"  # in place of `text`: then the page is read
BANDS = {"recall90": (0.9, 1.1), "recall80": (0.8, 0.9), "recall50": (0.5, 0.8)}


class Failed(Exception):
    """A command that did not do its work."""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def records(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Truth:
    """Every pair with similarity of at least `least`, by comparing each with each (all_pairs.c)."""

    def __init__(self, build, path, recipe="page", content="main", text_key="text", least=0.1, share=0, near=1):
        self.words, self.shingles, self.fingerprints, self.digests, self.ids = [], [], [], [], []
        self.similarity, self.distance = {}, {}
        program = os.path.join(build, "tests", "all_pairs")
        for line in run(program, recipe, content, text_key, least, share, near, path).splitlines():
            kind, *parts = line.split("\t")
            if kind == "d":
                self.words.append(int(parts[0]))
                self.shingles.append(int(parts[1]))
                self.fingerprints.append(int(parts[2], 16))
                self.digests.append(parts[3])
                self.ids.append(json.loads(parts[4]))
            else:
                a, b, shared, both, distance = map(int, parts)
                self.similarity[a, b] = shared / both
                self.distance[a, b] = distance
        if 0 in self.words:
            self.pair_wordless([record.get(text_key) for record in records(path)])

    def pair_wordless(self, texts):
        """Documents without words are near when their texts are the same; their digest is that of their text."""
        first = {}
        for b, text in enumerate(texts):
            if self.words[b]:
                continue
            self.digests[b] = "wordless " + repr(text)
            for a in first.setdefault(text, []):
                self.similarity[a, b] = 1
            first[text].append(b)

    def near(self, threshold):
        """What a perfect search reports: {pair: similarity}. Texts of few words are near if they are equal."""
        return {(a, b): s for (a, b), s in self.similarity.items() if s >= threshold and self.may_be_near(a, b)}

    def may_be_near(self, a, b):
        return min(self.words[a], self.words[b]) >= MIN_WORDS or self.digests[a] == self.digests[b]


class Answer:
    """What `doppel pairs` reports: {pair: similarity} by position, and its summary."""

    def __init__(self, build, path, positions, options, folder):
        output = os.path.join(folder, "pairs.jsonl")
        program = os.path.join(build, "doppel")
        self.command = " ".join(["doppel pairs", *map(str, options), os.path.basename(path)])
        self.summary = json.loads(run(program, "pairs", *options, "--json", "--output", output, path))
        self.pairs, self.distance = {}, {}
        with open(output, encoding="utf-8") as file:
            for line in map(json.loads, file):
                pair = positions[line["a"]], positions[line["b"]]
                self.pairs[pair], self.distance[pair] = line["similarity"], line["distance"]


class Set:
    """A labelled set: NAME.jsonl or NAME.jsonl.gz, records with `id`, `text` (and perhaps `html`) and `cluster`."""

    def __init__(self, build, path, folder):
        self.build, self.path, self.folder = build, path, folder
        self.name = re.sub(r"\.jsonl(\.gz)?$", "", os.path.basename(path))
        found = records(path)
        self.positions = {record["id"]: at for at, record in enumerate(found)}
        if len(self.positions) != len(found):
            raise Failed(f"{path}: two records have the same id")
        self.count = len(found)
        self.has_html = all(record.get("html") for record in found)
        clusters = [record.get("cluster") for record in found]
        self.labelled = {(a, b) for b in range(self.count) for a in range(b)
                         if clusters[a] is not None and clusters[a] == clusters[b]}
        self.truths = {}
        self.similarity = self.truth().similarity
        self.true = self.labelled | {pair for pair, s in self.similarity.items() if s >= 0.8}

    def truth(self, recipe="page", content="main", text_key="text", share=0, near=1):
        key = recipe, content, text_key, share, near
        if key not in self.truths:
            self.truths[key] = Truth(self.build, self.path, recipe, content, text_key, share=share, near=near)
        return self.truths[key]

    def answer(self, *options):
        return Answer(self.build, self.path, self.positions, options, self.folder)

    def reduced(self, change):
        """The same set with other texts."""
        path = os.path.join(self.folder, self.name + ".reduced.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            for record in records(self.path):
                file.write(json.dumps({"id": record["id"], "text": change(record["text"])}) + "\n")
        return Set(self.build, path, self.folder)

    def score(self, reported, true=None):
        """Figures of a set of pairs; None where there is nothing to count. Without `true`, all the true pairs count."""
        true = self.true if true is None else true
        right = len(true & reported)
        precision = right / len(reported) if reported else None
        recall = right / len(true) if true else None
        figures = {"pairs": len(reported), "precision": precision, "recall": recall,
                   "f1": 2 * right / (len(reported) + len(true)) if true else None}
        for name, (low, high) in BANDS.items():
            band = {pair for pair in true if low <= self.similarity.get(pair, 0) < high}
            figures[name] = len(band & reported) / len(band) if band else None
        return figures

    def best(self, truth):
        """The threshold with the best F1 of exact similarity (of several, the middle one), and its figures."""
        scored = {step / 100: self.score(set(truth.near(step / 100))) for step in range(10, 100)}
        most = max(figures["f1"] or 0 for figures in scored.values())
        best = [threshold for threshold, figures in scored.items() if (figures["f1"] or 0) == most]
        return best[len(best) // 2], scored[best[len(best) // 2]]


def wrong(truth, answer, threshold):
    """How an answer by similarity differs from the truth: pairs missed, pairs not there, wrong similarities."""
    near = truth.near(threshold)
    missed = near.keys() - answer.pairs.keys()
    extra = answer.pairs.keys() - near.keys()
    unequal = [pair for pair, s in answer.pairs.items() if pair in near and abs(s - near[pair]) > 1e-6]
    return len(near), missed, extra, unequal

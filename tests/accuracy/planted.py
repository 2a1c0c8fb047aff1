"""planted.py - invented documents with planted copies (planted.c): recall at any size, and the S-curves.

Two sets. `planted`: COUNT documents, a tenth of them in groups with similarities from 0.8 to 1; nothing but the
search itself compares them, and the truth is what was planted. `curves`: copies at all similarities, to see with which
probability a method finds a pair of a given similarity, beside what arithmetic expects.
"""
import math
import os

import claims
from measure import Answer, run

CURVE_COLUMNS = ["date", "set", "curve", "from", "to", "pairs", "expected", "measured"]
CURVE_DOCUMENTS = 20000
PLANS = [(30, 7), (20, 5), (9, 13)]  # bands, rows: method auto at 0.8, and two that are often used
NARROW = [0.8, 0.81, 0.82, 0.85, 0.9, 0.95, 1]
SEED = 4


class Everything(dict):
    """Ids are numbers already."""

    def __missing__(self, name):
        return int(name)


class Planted:
    """A set that was made: its path, and {pair: (similarity, distance)} of all that was planted."""

    def __init__(self, build, folder, count, grouped, low):
        self.build, self.folder, self.count = build, folder, count
        self.path = os.path.join(folder, f"planted-{count}.jsonl")
        truth = os.path.join(folder, "truth.tsv")
        run(os.path.join(build, "tests", "planted"), count, grouped, low, SEED, self.path, truth)
        self.pairs = {}
        with open(truth, encoding="ascii") as file:
            for a, b, shared, both, distance in (map(int, line.split()) for line in file):
                self.pairs[a, b] = shared / both, distance

    def answer(self, *options):
        """What doppel reports, each pair in the order of the numbers."""
        answer = Answer(self.build, self.path, Everything(), options, self.folder)
        answer.pairs = {(min(pair), max(pair)): similarity for pair, similarity in answer.pairs.items()}
        return answer

    def found(self, reported, low, high):
        """How many of the pairs in a band were reported, and how many there are."""
        band = [pair for pair, (similarity, _) in self.pairs.items() if low <= similarity < high]
        return sum(pair in reported for pair in band), len(band)


def share(part):
    return part[0] / part[1] if part[1] else None


def planted_row(p, method, settings, answer):
    true = sum(similarity >= 0.8 for similarity, _ in p.pairs.values())
    right = sum(p.pairs.get(pair, (0,))[0] >= 0.8 for pair in answer.pairs)
    return {"method": method, "settings": settings, "documents": p.count, "pairs": len(answer.pairs),
            "precision": right / len(answer.pairs) if answer.pairs else None, "recall": right / true,
            "f1": 2 * right / (true + len(answer.pairs)), "recall90": share(p.found(answer.pairs, 0.9, 2)),
            "recall80": share(p.found(answer.pairs, 0.8, 0.9)), "recall50": share(p.found(answer.pairs, 0.5, 0.8)),
            "candidates": answer.summary["candidates"], "command": answer.command}


def check_auto(p, answer, report):
    """Method auto at 0.8 finds at least 99 %, none below, with the similarity itself."""
    found, there = p.found(answer.pairs, 0.8, 2)
    if found < 0.99 * there:
        report(f"planted: {answer.command}: found {found} of {there}")
    for pair, similarity in answer.pairs.items():
        planted = p.pairs.get(pair, (0,))[0]
        if planted < 0.8 or abs(planted - similarity) > 1e-6:
            report(f"planted: {answer.command}: {pair} is given as {similarity}, but is {planted}")
            return


def narrow_bands(p, answer):
    """The recall right above the threshold, where it is least."""
    expected = band_curve(answer.summary["bands"], answer.summary["rows"])
    for low, high in zip(NARROW, NARROW[1:] + [2]):
        inside = [s for s, _ in p.pairs.values() if low <= s < high]
        yield {"curve": "auto 0.8", "from": low, "to": min(high, 1.0), "pairs": len(inside),
               "expected": sum(map(expected, inside)) / max(1, len(inside)),
               "measured": share(p.found(answer.pairs, low, high))}


def planted_figures(given, folder, report):
    p = Planted(given.build, folder, given.planted, given.planted // 10, 0.8)
    auto = p.answer("--similarity", 0.8)
    check_auto(p, auto, report)
    rows = [planted_row(p, "auto", "words=5 similarity=0.8", auto)]
    for distance in (3, 6):
        answer = p.answer("--method", "simhash", "--distance", distance)
        rows.append(planted_row(p, "simhash", f"page distance={distance}", answer))
    os.remove(p.path)
    return rows, list(narrow_bands(p, auto))


# ---- curves


def band_curve(bands, rows):
    """The probability that two documents share one of the bands, by their similarity."""
    return lambda similarity: 1 - (1 - similarity ** rows) ** bands


def bit_curve(distance, bits=64):
    """The probability of at most so many differing bits, by similarity, for sets of equal size whose shingles each
    count once: a bit differs with probability angle / pi, and the cosine is 2 J / (1 + J)."""

    def probability(similarity):
        p = math.acos(min(1, 2 * similarity / (1 + similarity))) / math.pi
        return sum(math.comb(bits, k) * p ** k * (1 - p) ** (bits - k) for k in range(distance + 1))

    return probability


def curve(name, pairs, expected, is_found):
    """Steps of 0.025 from 0.1 to 1: what is expected and measured of the pairs in each."""
    for step in range(4, 40):
        low, high = step / 40, (step + 1) / 40
        inside = [(pair, s) for pair, (s, _) in pairs.items() if low <= s < high]
        if len(inside) >= 30:
            yield {"curve": name, "from": low, "to": high, "pairs": len(inside),
                   "expected": sum(expected(s) for _, s in inside) / len(inside),
                   "measured": sum(is_found(pair) for pair, _ in inside) / len(inside)}


def curve_figures(given, folder, report):
    p = Planted(given.build, folder, CURVE_DOCUMENTS, CURVE_DOCUMENTS, 0.1)
    rows, curves = [], []
    for bands, each in PLANS:
        answer = p.answer("--method", "minhash", "--bands", bands, "--rows", each, "--similarity", 0.05)
        rows.append(planted_row(p, "minhash", f"words=5 similarity=0.05 bands={bands} rows={each}", answer))
        curves += curve(f"{bands} bands of {each} rows", p.pairs, band_curve(bands, each), answer.pairs.__contains__)
    for distance in (3, 6, 9):
        curves += curve(f"simhash within {distance}", p.pairs, bit_curve(distance),
                        lambda pair, k=distance: p.pairs[pair][1] <= k)
    curves += claims.figures(p, report)
    os.remove(p.path)
    return rows, curves


def figures(given, folder, report):
    yield "planted", *planted_figures(given, folder, report)
    yield "curves", *curve_figures(given, folder, report)

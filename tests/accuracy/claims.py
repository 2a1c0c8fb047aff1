"""claims.py - what is often said of SimHash, measured on the fingerprints of a planted set.

Each function gives rows for curves.csv: what is expected by arithmetic, and what was measured.
"""
import math
import os
from collections import defaultdict

from measure import run

BLOCKS, BLOCK = 4, 16
MASK = (1 << BLOCK) - 1


def fingerprints(p):
    lines = run(os.path.join(p.build, "doppel"), "fingerprint", p.path).splitlines()
    return {int(name): int(value, 16) for value, name in (line.split("\t") for line in lines)}


def blocks(fingerprint):
    return [fingerprint >> BLOCK * block & MASK for block in range(BLOCKS)]


def misses(distance):
    """The probability that so many differing bits leave none of the blocks whole."""
    ways = sum((-1) ** i * math.comb(BLOCKS, i) * math.comb(64 - BLOCK * i, distance) for i in range(BLOCKS + 1))
    return ways / math.comb(64, distance)


def missed_by_blocks(p, prints):
    """`4 bands of 16 bits miss a pair with probability 10^-10`: the share of the pairs at each distance that share no
    block."""
    lost = defaultdict(list)
    for (a, b), (_, distance) in p.pairs.items():
        lost[distance].append(not any(x == y for x, y in zip(blocks(prints[a]), blocks(prints[b]))))
    for distance in range(13):
        found = lost[distance]
        yield {"curve": "no block of 4 x 16 bits in common", "from": distance, "to": distance, "pairs": len(found),
               "expected": misses(distance), "measured": sum(found) / len(found) if found else None}


def bits_of_similarity(p):
    """`95 % similar is 3 bits`: the mean distance of pairs by similarity."""
    for low in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99):
        inside = [(s, d) for s, d in p.pairs.values() if low <= s < low + 0.01]
        angles = [math.acos(2 * s / (1 + s)) / math.pi for s, _ in inside]
        if inside:
            yield {"curve": "mean distance", "from": low, "to": low + 0.01, "pairs": len(inside),
                   "expected": 64 * sum(angles) / len(inside), "measured": sum(d for _, d in inside) / len(inside)}


def candidates(prints, key):
    """Pairs that stand in a bucket together: all of them, and those within 3 bits."""
    buckets = defaultdict(set)
    for name, value in prints.items():
        for at, block in enumerate(blocks(value)):
            buckets[key(at, block)].add(name)
    found = {(a, b) for names in buckets.values() for a in names for b in names if a < b}
    return len(found), {pair for pair in found if (prints[pair[0]] ^ prints[pair[1]]).bit_count() <= 3}


def buckets_without_band(prints, report):
    """`buckets keyed by the bits of a band alone`: how many candidates that makes, for the same pairs."""
    count, near = candidates(prints, lambda at, block: (at, block))
    mixed_count, mixed_near = candidates(prints, lambda at, block: block)
    if near != mixed_near:
        report("claims: buckets without their band find other pairs within 3 bits")
    random_pairs = math.comb(len(prints), 2) / 2 ** BLOCK
    for name, times, found in (("with", BLOCKS, count), ("without", BLOCKS ** 2, mixed_count)):
        yield {"curve": f"candidates of buckets keyed {name} their band", "from": 0, "to": 3, "pairs": len(near),
               "expected": times * random_pairs, "measured": float(found)}


def figures(p, report):
    prints = fingerprints(p)
    return [*missed_by_blocks(p, prints), *bits_of_similarity(p), *buckets_without_band(prints, report)]

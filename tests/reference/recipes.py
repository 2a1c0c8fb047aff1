"""recipes.py - a list of recipes in which every value of every part occurs, and every two values of different parts."""
import itertools
import random

STOP_WORDS = "The of And a der die das и в 的 คำ Straße É the".encode()

PARTS = {
    "bits": [64, 128, 1, 32, 33, 63],
    "unit": [*(f"words={n}" for n in (1, 2, 3, 5, 9, 1000)), *(f"chars={n}" for n in (1, 2, 5, 40))],
    "hash": ["fast", "xxh3", "murmur3", "jenkins", "djb2", "md5", "sha1", "sha256", "sha3-256", "blake2b512"],
    "weight": ["tf", "set", "sqrt", "tf2", "tfidf"],
    "case": ["fold", "keep"],
    "punct": ["drop", "keep"],
    "space": ["keep", "drop"],
    "first": [None, 1, 10, 100, 5000],
    "stop": [False, True],
    "minhash": [None, 1, 7, 64, 200],
    "sample": [None, 1, 4, 30],
}


def possible(chosen):
    """space=drop goes with characters only, stop words with words only."""
    unit = str(dict(chosen).get("unit", ""))
    chosen = set(chosen)
    return not (("space", "drop") in chosen and unit.startswith("words")
                or ("stop", True) in chosen and (unit.startswith("chars") or ("space", "drop") in chosen))


def pairs_of(chosen):
    return set(itertools.combinations(sorted(chosen.items(), key=lambda part: part[0]), 2))


def all_recipes():
    """Greedy: of some random recipes, the one with the most new pairs, until no pair is left."""
    rng = random.Random(8)
    names = sorted(PARTS)
    left = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in PARTS[a] for y in PARTS[b]}
    left = {pair for pair in left if possible(pair)}
    made = []
    while left:
        target = dict(min(left, key=str))
        tries = []
        while len(tries) < 30:
            chosen = {name: rng.choice(values) for name, values in PARTS.items()} | target
            if possible(chosen.items()):
                tries.append(chosen)
        best = max(tries, key=lambda chosen: len(pairs_of(chosen) & left))
        left -= pairs_of(best)
        made.append(best)
    # Every width, on recipes that are there already.
    for bits in range(1, 65):
        made.append(made[bits % len(made)] | {"bits": bits, "stop": False})
    return made


def text_of(chosen):
    """The recipe as a user may write it; the stop words and the table come beside it."""
    parts = [f"simhash{chosen['bits']}", chosen["unit"], f"hash={chosen['hash']}", f"weight={chosen['weight']}"]
    for name in ("case", "punct", "space", "first", "minhash", "sample"):
        if chosen[name] not in (None, PARTS[name][0]):
            parts.append(f"{name}={chosen[name]}")
    return ":".join(parts)

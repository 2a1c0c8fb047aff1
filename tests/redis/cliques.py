"""Invented documents in cliques: each is a copy of every other of its clique, whichever comes first, and of nothing else."""
import json
import os
import random
import subprocess
from collections import defaultdict
from itertools import combinations

from support import DOPPEL, FOLDER

WORDS = [a + b for a in ("ba", "ko", "mi", "ru", "ze", "fo", "ta", "li", "nu", "sha", "de", "wo") for b in
         ("lan", "ri", "mos", "tek", "du", "vor", "pel", "gan", "sil", "ta", "neb", "fur", "cor", "hin", "wes")]
DISTANCE = 3
ALONE, SAME_WORDS, SAME_URL, NEAR = range(4)


def text_of(rng, words=40):
    return " ".join(rng.choices(WORDS, k=words))


def edited(rng, text):
    parts = text.split(" ")
    parts[rng.randrange(len(parts))] = "edited" + rng.choice(WORDS)
    return " ".join(parts)


def write_lines(path, documents):
    with open(path, "w") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    return path


def fingerprints(documents):
    path = write_lines(os.path.join(FOLDER, "drafts.jsonl"), documents)
    said = subprocess.run([DOPPEL, "fingerprint", path], capture_output=True, text=True, check=True).stdout
    os.remove(path)
    return [int(line.split("\t")[0], 16) for line in said.splitlines()]


def within(a, b):
    return (a ^ b).bit_count() <= DISTANCE


def near_pairs(prints):
    """All pairs within the distance: of four parts of 16 bits one is equal."""
    tables = [defaultdict(list) for _ in range(4)]
    for i, one in enumerate(prints):
        found = {j for part, table in enumerate(tables) for j in table[one >> 16 * part & 0xFFFF] if within(one, prints[j])}
        yield from ((j, i) for j in found)
        for part, table in enumerate(tables):
            table[one >> 16 * part & 0xFFFF].append(i)


def draft(rng, count, name):
    """(clique, kind, document) of about `count` documents, of which not all near copies are near enough."""
    drafts, clique = [], 0
    while len(drafts) < count:
        kind = rng.choice((ALONE, ALONE, SAME_WORDS, SAME_URL, NEAR))
        size = 1 if kind == ALONE else rng.randrange(2, 8)
        text = text_of(rng, 500 if kind == NEAR else 40)
        for i in range(size):
            own = edited(rng, text) if kind == NEAR and i else text_of(rng) if kind == SAME_URL else text
            url = f"http://www.{name}.example/{clique}?utm_source={i}" if kind == SAME_URL else f"https://{name}.example/{clique}/{i}"
            drafts.append((clique, kind, {"id": f"{name}-{clique}.{i}", "url": url, "text": own.upper() if i % 2 else own}))
        clique += 1
    return drafts


class Cliques:
    """`documents`, each with an id; `of`, the clique of each id; `kind` of each clique."""

    def __init__(self, count, seed="seed"):
        rng = random.Random(f"{seed}/{count}")
        drafts = draft(rng, count * 5 // 4, seed)
        kept, self.of, self.kind, self.documents = defaultdict(list), {}, {}, []
        prints = {}
        for (clique, kind, document), own in zip(drafts, fingerprints(document for _, _, document in drafts)):
            if kind == NEAR and not all(within(own, other) for other in kept[clique]):
                continue
            kept[clique].append(own)
            prints[document["id"]] = own
            self.of[document["id"]], self.kind[clique] = clique, kind
            self.documents.append(document)
        rng.shuffle(self.documents)
        self.check(prints)

    def check(self, prints):
        """Who is near whom is as planted: cliques of near copies are whole, and far from each other."""
        ids = [document["id"] for document in self.documents]
        planted = defaultdict(list)
        for name in ids:
            if self.kind[self.of[name]] in (NEAR, SAME_WORDS):
                planted[self.of[name]].append(name)
        wanted = {frozenset(pair) for names in planted.values() for pair in combinations(names, 2)}
        found = {frozenset((ids[i], ids[j])) for i, j in near_pairs([prints[name] for name in ids])}
        assert found == wanted, (found ^ wanted)

    def write(self, name, order=None):
        """A file of the documents, perhaps in another order, by chance."""
        documents = list(self.documents)
        if order is not None:
            random.Random(order).shuffle(documents)
        return write_lines(os.path.join(FOLDER, name + ".jsonl"), documents)


def check_verdicts(case, cliques, verdicts, stored=None):
    """Of each clique one document is unique, and the others name it. `verdicts` may be of several who add the same. `stored` (of
    get_all) has exactly the uniques, with as many duplicates as were told. Gives the unique of each clique."""
    unique, told = {}, defaultdict(int)
    for verdict in verdicts:
        clique = cliques.of[verdict["id"]]
        if not verdict["isDuplicate"] and not verdict.get("known"):
            case.assertNotIn(clique, unique, f"{verdict['id']} is unique beside {unique.get(clique)}")
            unique[clique] = verdict["id"]
    for verdict in verdicts:
        first = unique.get(cliques.of[verdict["id"]])
        if verdict["isDuplicate"]:
            case.assertEqual(verdict["originalId"], first, verdict)
            told[first] += 1
        else:
            case.assertEqual(verdict["id"], first, verdict)
    case.assertEqual(len(unique), len({cliques.of[verdict["id"]] for verdict in verdicts}))
    if stored is not None:
        case.assertEqual({name: one["duplicates"] for name, one in stored.items()}, {name: told[name] for name in unique.values()})
    return unique

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


def edited(rng, text, words=1):
    """With so many other words."""
    parts = text.split(" ")
    for at in rng.sample(range(len(parts)), words):
        parts[at] = "edited" + rng.choice(WORDS)
    return " ".join(parts)


def write_lines(path, documents):
    with open(path, "w") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
    return path


def ask_doppel(command, documents, *options):
    """What a command says of documents, line by line."""
    path = write_lines(os.path.join(FOLDER, "drafts.jsonl"), documents)
    said = subprocess.run([DOPPEL, command, *options, path], capture_output=True, text=True, check=True).stdout
    os.remove(path)
    return said.splitlines()


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


def shingles(text, words=5):
    parts = text.lower().split(" ")
    return {tuple(parts[i:i + words]) for i in range(len(parts) - words + 1)}


def similarity(a, b):
    return len(a & b) / len(a | b)


class Cliques:
    """`documents`, each with an id; `of`, the clique of each id; `kind` of each clique. Near copies have one other word: they are near by
    distance and by similarity, an estimated one, too."""

    options = ()  # of a memory whose verdicts they are for

    def __init__(self, count, seed="seed"):
        rng = random.Random(f"{seed}/{count}")
        drafts = self.draft(rng, count * 5 // 4, seed)
        near = self.near([document for _, _, document in drafts])
        kept, self.of, self.kind, self.documents = defaultdict(list), {}, {}, []
        for clique, kind, document in drafts:
            if kind == NEAR and not all(frozenset((document["id"], other)) in near for other in kept[clique]):
                continue
            kept[clique].append(document["id"])
            self.of[document["id"]], self.kind[clique] = clique, kind
            self.documents.append(document)
        rng.shuffle(self.documents)
        self.check(near, kept)

    def draft(self, rng, count, name):
        """(clique, kind, document) of about `count` documents, of which not all near copies are near enough."""
        drafts, clique = [], 0
        while len(drafts) < count:
            kind = rng.choice((ALONE, ALONE, SAME_WORDS, SAME_URL, NEAR))
            size = 1 if kind == ALONE else rng.randrange(2, 8)
            text = self.text(rng) if kind == NEAR else text_of(rng)
            for i in range(size):
                own = self.copy(rng, text) if kind == NEAR and i else text_of(rng) if kind == SAME_URL else text
                url = f"http://www.{name}.example/{clique}?utm_source={i}" if kind == SAME_URL else f"https://{name}.example/{clique}/{i}"
                drafts.append((clique, kind, {"id": f"{name}-{clique}.{i}", "url": url, "text": own.upper() if i % 2 else own}))
            clique += 1
        return drafts

    def text(self, rng):
        return text_of(rng, 500)

    def copy(self, rng, text):
        return edited(rng, text)

    def near(self, documents):
        """All pairs of documents that are near by their content: sets of two ids."""
        prints = [int(line.split("\t")[0], 16) for line in ask_doppel("fingerprint", documents)]
        return {frozenset((documents[i]["id"], documents[j]["id"])) for i, j in near_pairs(prints)}

    def check(self, near, kept):
        """Who is near whom is as planted: cliques of near copies are whole, and far from each other."""
        wanted = {frozenset(pair) for clique, names in kept.items() if self.kind[clique] in (NEAR, SAME_WORDS)
                  for pair in combinations(names, 2)}
        found = {pair for pair in near if all(name in self.of for name in pair)}
        assert found == wanted, (found ^ wanted)

    def write(self, name, order=None):
        """A file of the documents, perhaps in another order, by chance."""
        documents = list(self.documents)
        if order is not None:
            random.Random(order).shuffle(documents)
        return write_lines(os.path.join(FOLDER, name + ".jsonl"), documents)


class EditedCliques(Cliques):
    """The same where near copies have a similarity of 0.8 to 1, and most of them are far by distance."""

    options = ("--preset", "general")

    def text(self, rng):
        return text_of(rng, rng.randrange(60, 400))

    def copy(self, rng, text):
        """Five shingles a word of both copies may be others, up to a ninth of all."""
        most = (text.count(" ") + 1) // 90
        return edited(rng, text, rng.randrange(most + 1) or 1)

    def near(self, documents):
        """As `doppel pairs` finds them by their bands: of a thousand pairs as far apart as these may be, one is not found."""
        pairs = map(json.loads, ask_doppel("pairs", documents, "--similarity", "0.8"))
        return {frozenset((pair["a"], pair["b"])) for pair in pairs}

    def check(self, near, kept):
        super().check(near, kept)
        sets = {document["id"]: shingles(document["text"]) for document in self.documents if self.kind[self.of[document["id"]]] == NEAR}
        found = [similarity(sets[a], sets[b]) for clique, names in kept.items() if self.kind[clique] == NEAR for a, b in combinations(names, 2)]
        assert found and all(0.8 <= one <= 1 for one in found), min(found)
        assert len(self.of) < 1000 or (min(found) < 0.82 and sum(one < 0.9 for one in found) > len(found) / 4), (len(found), min(found))


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

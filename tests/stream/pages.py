"""Invented pages in cliques: each page is a copy of every other of its clique, whichever comes first, and of nothing else."""
import json
import os
import random
import subprocess
import tempfile

from support import DOPPEL

WORDS = [a + b for a in ("ba", "ko", "mi", "ru", "ze", "fo", "ta", "li", "nu", "sha", "de", "wo") for b in
         ("lan", "ri", "mos", "tek", "du", "vor", "pel", "gan", "sil", "ta", "neb", "fur", "cor", "hin", "wes")]
DISTANCE = 3
NOT_PAGES = [b"", b"not JSON", b"{\"text\":", b"[1,2,3]", b"\xff\xfe\x00", b"{\"id\":\"x\",\"text\":\"\xc3\x28 is no UTF-8\"}", b"{}",
             b"{\"id\":\"nothing else\"}", b"17"]


def text_of(rng, words=80):
    return " ".join(rng.choices(WORDS, k=words))


def edited(rng, text):
    parts = text.split(" ")
    parts[rng.randrange(len(parts))] = "edited" + rng.choice(WORDS)
    return " ".join(parts)


def loud(rng, text):
    """Other letters, the same words."""
    return "  ".join(word.upper() if rng.random() < 0.3 else word for word in text.split(" ")) + "!"


def near_cliques(rng, count):
    """Texts of which each is within the distance of each other, as their fingerprints say."""
    drafts = []
    for _ in range(count):
        base = text_of(rng, 400)
        drafts.append([base, *(edited(rng, base) for _ in range(5))])
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "drafts.jsonl")
        with open(path, "w") as file:
            file.writelines(json.dumps({"id": f"{i}", "text": text}) + "\n" for i, texts in enumerate(drafts) for text in texts)
        said = subprocess.run([DOPPEL, "fingerprint", path], capture_output=True, text=True, check=True).stdout
    prints = [int(line.split("\t")[0], 16) for line in said.splitlines()]
    cliques = []
    for i, texts in enumerate(drafts):
        kept = []
        for text, own in zip(texts, prints[i * 6:i * 6 + 6]):
            if all((own ^ other).bit_count() <= DISTANCE for _, other in kept):
                kept.append((text, own))
        cliques.append([text for text, _ in kept])
    return cliques


def texts_and_urls(rng, count):
    """Cliques of (text, url), of about `count` pages in all."""
    cliques, pages = [], 0
    near = near_cliques(rng, count // 25)
    while pages < count:
        number, kind, size = len(cliques), rng.randrange(6), rng.randrange(2, 6)
        own = f"https://example.org/{number}/"
        if kind < 3:
            clique = [(text_of(rng), own)]
        elif kind == 3:
            text = text_of(rng)
            clique = [(loud(rng, text) if i else text, f"{own}{i}") for i in range(size)]
        elif kind == 4:
            clique = [(text_of(rng), f"http://www.example.org/{number}/?utm_source=x{i}" if i else own) for i in range(size)]
        elif near:
            clique = [(text, f"{own}{i}") for i, text in enumerate(near.pop())]
        else:
            continue
        cliques.append(clique)
        pages += len(clique)
    return cliques


class Planted:
    """Records for a topic. Each has its number in the header "n"; clique[n] is its clique, None of one that is no page. With `any_id`
    tombstones and new versions are of any earlier page, and later copies of what was there are unique again; otherwise there are
    no new versions, and tombstones only of pages without copies, so that the verdicts of the others do not depend on when they come."""

    def __init__(self, count, partitions=1, seed=0, any_id=False):
        rng = random.Random(f"{seed}/{count}")
        cliques = texts_and_urls(rng, count)
        pages = [(number, *page) for number, clique in enumerate(cliques) for page in clique]
        rng.shuffle(pages)
        self.records, self.clique, self.ids, self.kinds = [], [], [], {"page": 0, "dead": 0, "tombstone": 0}
        self.rng, self.partitions = rng, partitions
        sizes = [len(clique) for clique in cliques]
        earlier = []
        for clique, text, url in pages:
            name = f"page{len(self.records)}"
            if any_id and earlier and rng.random() < 0.01:
                name = rng.choice(earlier)  # a new version of a page
            self.put("page", clique, name, json.dumps({"id": name, "url": url, "text": text, "more": [len(self.records), None]}).encode())
            if any_id or sizes[clique] == 1:
                earlier.append(name)
            if rng.random() < 0.004:
                self.put("dead", None, "dead", rng.choice(NOT_PAGES))
            if earlier and rng.random() < 0.006:
                self.put("tombstone", None, rng.choice(earlier), None)
        self.cliques = len(cliques)

    def put(self, kind, clique, key, value):
        number = len(self.records)
        self.kinds[kind] += 1
        self.records.append({"value": value, "key": key, "headers": [("n", str(number).encode())],
                             "partition": self.rng.randrange(self.partitions)})
        self.clique.append(clique)
        self.ids.append(key)

    def __len__(self):
        return len(self.records)

"""test_engine_model.py - the engine against a plain model of docs/ENGINE.md: lists, and comparing everything with
everything, over the library's own words and shingles.

Random sequences of calls: documents with few ids, URLs, titles and texts are added, checked and removed, in engines
that skip, link or store duplicates; time passes; the index is compacted, opened again with another setting, and copied
into a new one or merged into one with documents. After each call the verdict, and then all that is stored, is the same.
In memory, in a folder, which a second process reads all the time, and in Redis.

DOPPEL_SEQUENCES: how many; DOPPEL_SEED: the first seed.
"""
import multiprocessing
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time

import check
from engine import NEVER, Engine
from library import Failure, Recipe, Sketcher

FULL = os.environ.get("DOPPEL_SUITE") == "full"
SEQUENCES = int(os.environ.get("DOPPEL_SEQUENCES", 20000 if FULL else 100))
SEED = int(os.environ.get("DOPPEL_SEED", 1))
STEPS, HOUR = 40, 3600
SKIP, LINK, STORE = 1, 2, 3
DUPLICATE, REFRESH = 1, 2
ON, OFF = 1, 2
BY_DISTANCE, BY_SIMILARITY = 1, 2
LEAST, BITS, TITLES_LEAST, MIN_WORDS, FEW = 0.8, 6, 0.9, 5, 8
URL, CONTENT, TITLE = REASONS = ("exact_url", "content_hash", "title_similarity")
PAGE = Recipe("simhash64:words=5:hash=fast:weight=tf")


# ---- what is compared

class Text:
    made = {}

    def __init__(self, text):
        sketch = Sketcher(PAGE).run(text.encode())
        self.words = sketch["words"]
        self.digest = sketch["digest"] if self.words else None
        self.set, self.fingerprint = frozenset(sketch["set"]), sketch["fingerprint"]
        self.content = self.words >= MIN_WORDS

    @classmethod
    def of(cls, text):
        if text not in cls.made:
            cls.made[text] = cls(text)
        return cls.made[text]


def jaccard(a, b):
    return len(a & b) / len(a | b)


def edits(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def alike(a, b):
    return 1 - edits(a, b) / max(len(a), len(b))


def key_of(title):
    """A title as it is compared; None: it does not count."""
    key = " ".join("".join(c for c in (title or "").lower() if c.isalnum() or c == " ").split())
    return key if len(key) >= 10 else None


# ---- the model

class Entry:
    """A document, a copy, or (id None) the words of a copy that was not kept."""

    def __init__(self, **values):
        self.of = self.reason = None
        self.counts = dict.fromkeys(REASONS, 0)
        self.__dict__.update(values)


class Model:
    def __init__(self, clock, near, titles, title_veto, ttl, **rest):
        self.clock, self.ttl = clock, ttl
        self.by_distance, self.titles, self.veto = near == BY_DISTANCE, titles == ON, title_veto == ON
        self.on_duplicate, self.on_same_url, self.entries, self.number = SKIP, DUPLICATE, [], 0

    def lives(self, entry, without=()):
        """It exists, and so does its original."""
        there = entry in self.entries and entry not in without
        fresh = not entry.expires or entry.expires > self.clock[0]
        return there and fresh and (not entry.of or self.lives(entry.of, without))

    def living(self, without=()):
        return [entry for entry in self.entries if self.lives(entry, without)]

    def named(self, id, without=()):
        return next((e for e in self.living(without) if e.id == id), None) if id else None

    def at(self, url, without=()):
        return next((e for e in self.living(without) if url and e.url == url), None)

    def get(self, name):
        return self.named(name) or self.at(name)

    def far(self, a, b):
        return (a.fingerprint ^ b.fingerprint).bit_count() if self.by_distance else -jaccard(a.set, b.set)

    def frequent(self, title):
        owners = [e for e in self.living() if e.id and not e.of and key_of(e.title) == title]
        return sum(1 + e.counts[TITLE] for e in owners) > FEW

    def find(self, q, without=()):
        """The original and the reason; (None, None): there is none."""
        living = self.living(without)
        documents = [e for e in living if e.id and not e.of]
        found = self.at(q.url, without)
        if found:
            return found.of or found, URL
        if q.text.digest:
            same = [e for e in living if e.text.digest == q.text.digest]
            for entry in [e for e in same if not e.of] + [e for e in same if e.of and e.own_words]:
                return entry.of or entry, CONTENT
        near = [(self.far(q.text, e.text), e.number, e) for e in documents if q.text.content and e.text.content]
        near = [found for found in near if found[0] <= (BITS if self.by_distance else -LEAST)]
        if near:
            return min(near)[2], CONTENT
        title = key_of(q.title)
        if not self.titles or not title or self.frequent(title):
            return None, None
        titled = [(-alike(title, key_of(e.title)), e.number, e) for e in documents
                  if key_of(e.title) and alike(title, key_of(e.title)) >= TITLES_LEAST
                  and not self.frequent(key_of(e.title))]
        for _, _, entry in sorted(titled):
            both = q.text.content and entry.text.content
            if not (self.veto and both and jaccard(q.text.set, entry.text.set) < LEAST / 2):
                return entry, TITLE
        return None, None

    def same(self, q, entry):
        if q.text.digest or entry.text.digest:
            return q.text.digest == entry.text.digest
        return (q.url, q.title) == (entry.url, entry.title)

    def find_refreshed(self, q, gone):
        original, reason = self.find(q, gone)
        if reason == URL and self.on_same_url == REFRESH:
            holder = self.at(q.url, gone)
            if holder and not self.same(q, holder):
                gone.append(holder)
                original, reason = self.find(q, gone)
        return original, reason

    def check(self, q):
        original, reason = self.find_refreshed(q, [])
        return {"id": q.name(), "original": original and original.id, "reason": reason, "known": False,
                "replaced": False, "id_known": False}

    def drop(self, entry):
        self.entries = [e for e in self.entries if e is not entry and e.of is not entry]

    def store(self, q, original, reason, whole, **values):
        self.number += 1
        own = reason in (URL, TITLE) and q.text.digest and original.text.digest != q.text.digest
        ttl = q.ttl or self.ttl
        life = {"added": self.clock[0], "expires": 0 if ttl == NEVER else self.clock[0] + ttl} | values
        if original and original.expires:
            life["expires"] = min(life["expires"] or NEVER, original.expires)
        if whole:
            self.entries.append(Entry(number=self.number, id=q.name(), url=q.url, title=q.title, text=q.text,
                                      of=original, reason=reason, own_words=own, **life))
        elif own and not any(e.text.digest == q.text.digest and (not e.of or e.own_words)
                             for e in self.living(q.gone)):
            self.entries.append(Entry(number=self.number, id=None, url=None, title=None, text=q.text, of=original,
                                      reason=None, own_words=True, **life))

    def add(self, q, restored=None, merge=False):
        """`restored`: an entry of another model, which is put back."""
        holder, gone, known = self.named(q.name()), [], {}
        keeps = None
        if holder and not q.id and (q.url == holder.url if q.url else q.text.digest == holder.text.digest):
            keeps = holder  # found by what the id was made from
        elif holder and not self.same(q, holder):
            gone.append(holder)
        elif holder:
            return {"id": holder.id, "original": holder.of and holder.of.id, "reason": holder.reason, "known": True,
                    "replaced": False, "id_known": False}
        as_it_was = restored and (restored.of or not merge)
        if as_it_was:
            original = restored.of and self.named(restored.of.id, gone)
            if restored.of and not original:
                return None
            original, reason = original and (original.of or original), restored.reason
        else:
            original, reason = self.find_refreshed(q, gone)
        keeps = keeps if keeps and self.lives(keeps, gone) else None
        if keeps and not original:
            gone.append(keeps)  # only its id is the same
        q.gone = gone
        if original and (not restored or merge):
            original.counts[reason] += 1
        kept = not original or ((as_it_was or self.on_duplicate != SKIP) and not keeps)
        if kept or original and not restored:
            self.store(q, original, reason, kept,
                       **({"added": restored.added, "expires": restored.expires} if restored else {}))
        elif original:
            self.store(q, original, reason, False, added=restored.added, expires=restored.expires)
        if restored and not (merge and restored.of):
            to = original if original and not as_it_was else self.entries[-1]
            copies = restored.copies if merge else dict.fromkeys(REASONS, 0)
            for each in REASONS:
                to.counts[each] += max(restored.counts[each] - copies[each], 0)
        for entry in gone:
            self.drop(entry)
        return {"id": q.name(), "original": original and original.id, "reason": reason if original else None,
                "known": False, "replaced": bool(gone),
                "id_known": bool(original and keeps and original.id != q.name())}

    def remove(self, id):
        entry = self.named(id)
        if entry:
            self.drop(entry)
        return bool(entry)

    def shown(self, entry):
        copies = [e.reason for e in self.living() if e.of is entry and e.id]
        return {"id": entry.id, "original": entry.of and entry.of.id, "reason": entry.reason, "url": entry.url,
                "title": entry.title, "added": entry.added, "expires": entry.expires,
                "counts": list(entry.counts.values()), "copies": len(copies),
                "copies_by": [copies.count(reason) for reason in REASONS]}

    def all(self):
        return [self.shown(e) for e in self.living() if e.id]

    def exported(self):
        """Entries as they are now, for another model."""
        whole = [e for e in self.living() if e.id]
        for entry in whole:
            entry.copies = {reason: sum(e.of is entry and e.reason == reason for e in whole) for reason in REASONS}
        return whole


class Query:
    def __init__(self, text, id=None, url=None, title=None, ttl=0):
        self.id, self.url, self.title, self.ttl, self.gone = id, url, title or None, ttl, []
        self.text = text if isinstance(text, Text) else Text.of(text)

    def name(self):
        return self.id or self.url or (self.text.digest.hex()[:16] if self.text.digest else None)


# ---- random calls

DEEDS = {"add": 50, "batch": 5, "check": 10, "crowd": 2, "remove": 8, "wait": 6, "reopen": 3, "compact": 2, "copy": 1,
         "merge": 1}


def texts(random):
    """A text, near ones (0.93), one that is half as similar, and short ones."""
    words = [f"w{random.randrange(5)}x{i}" for i in range(30)]
    kind = random.randrange(8)
    if kind == 1:
        words[-1] = "another"
    elif kind == 2:
        words[0] = "another"
    elif kind == 3:
        words = words[:15] + [f"other{i}" for i in range(15)]
    elif kind == 4:
        words = words[:random.randrange(7)]
    elif kind == 5:
        words.append("more")
    return " ".join(words)


class Life:
    """What there is to choose from in one sequence."""

    def __init__(self, random):
        self.random = random
        base = random.getrandbits(32)
        seeds = [base + i for i in range(4)]
        self.texts = [texts(self.seeded(seeds[i % 4], i)) for i in range(14)]
        self.urls = [None] + [f"https://example.org/{i}" for i in range(6)]
        self.titles = [None, "Short", "The harbour bridge was opened", "The harbour bridge was opened!",
                       "The harbor bridge was opened", "Potters in the hill villages", "Daily column of the editor"]
        self.ids = [None, None] + [f"d{i}" for i in range(8)] + self.urls[1:4] + \
                   [Query(text).name() for text in self.texts[:2]]

    def seeded(self, seed, i):
        class Same:
            """The base words follow from the seed, what is done to them from i."""
            first, rest = random.Random(seed), random.Random(i * 7919 + seed)

            def randrange(self, n):
                return (self.first if n == 5 else self.rest).randrange(n)
        return Same()

    def crowd(self):
        """Pages of one title, more than are evidence."""
        title = self.random.choice(self.titles[2:])
        return [{"text": f"page {i} of column {self.random.randrange(100)} has {i} words", "title": title}
                for i in range(self.random.randrange(FEW, FEW + 4))]

    def item(self):
        pick = self.random.choice
        item = {"text": pick(self.texts), "id": pick(self.ids), "url": pick(self.urls), "title": pick(self.titles)}
        if self.random.random() < 0.08:
            item["text"] = ""
        if self.random.random() < 0.3:
            item["ttl"] = pick([100, HOUR, 30 * HOUR, NEVER])
        return item if Query(**item).name() else self.item()


class Place:
    """An engine in a place, and the model of it."""

    def __init__(self, where, name, clock, settings, on_duplicate, on_same_url):
        self.path, self.clock, self.settings = where(name), clock, settings
        self.model = Model(clock, **settings)
        self.engine = self.open(on_duplicate, on_same_url)

    def open(self, on_duplicate, on_same_url):
        self.model.on_duplicate, self.model.on_same_url = on_duplicate, on_same_url
        if not self.model.number:
            self.stored_same_url = on_same_url  # what nothing was added to takes other settings
        return Engine(self.path, self.clock, preset=b"general", on_duplicate=on_duplicate, on_same_url=on_same_url,
                      **self.settings)

    def reopen(self, on_duplicate, on_same_url):
        if self.path:
            self.engine.close()
            self.engine = self.open(on_duplicate, on_same_url)

    def compare(self, names):
        found, expected = self.engine.each(), self.model.all()
        for one, other in zip(found, expected):
            assert one == other, f"stored: {one}\n{other}"
        assert len(found) == len(expected), f"stored: {[e['id'] for e in found]}\n{[e['id'] for e in expected]}"
        for name in names:
            entry = self.model.get(name)
            expected = entry and self.model.shown(entry)
            assert self.engine.get(name) == expected, f"get {name}: {self.engine.get(name)}\n{expected}"

    def compare_stats(self):
        """In Redis what has expired counts a little longer: a 256th of its life."""
        self.engine.expire()
        kept = [e for e in self.model.entries if e.id]
        for is_copy, found in enumerate(self.engine.stats()):
            fewest = sum(self.model.lives(e) for e in kept if bool(e.of) == is_copy)
            late = "://" in (self.path or "") and sum(
                not self.model.lives(e) and e.expires + (e.expires - e.added) // 256 + 1 >= self.clock[0]
                for e in kept if bool(e.of) == is_copy)
            assert fewest <= found <= fewest + late, (found, fewest, late, self.model.all())

    def take_all(self, other, merge):
        """All of another place is imported."""
        entries = iter(other.model.exported())

        def put(stored):
            entry = next(entries)
            query = Query(entry.text, entry.id, entry.url, entry.title)
            expected = self.model.add(query, entry, merge)
            try:
                said = self.engine.restore(stored, merge)
            except Failure as failure:
                said = None if "a copy whose original is not there" in str(failure) else str(failure)
            assert said == expected, f"{entry.id}: {said}\n{expected}"

        other.engine.each(put)


def read_on(questions):
    """The second process: has an index open for reading, and answers."""
    clock, engine = [0], None
    while (asked := questions.recv()) is not None:
        path, clock[0], item = asked
        if path:
            if engine:
                engine.close()
            engine = Engine(path, clock, read_only=True, must_exist=True)
        questions.send(engine.ask(False, item)[0] if item else None)


class Reader:
    def __init__(self):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("fork").Process(target=read_on, args=(theirs,))
        self.process.start()

    def ask(self, path, clock, item):
        self.pipe.send((path, clock[0], item))
        return self.pipe.recv()

    def close(self):
        self.pipe.send(None)
        self.process.join()


def sequence(seed, where, reader):
    rand, clock, log = random.Random(seed), [1_700_000_000], []
    life = Life(rand)
    settings = {"near": rand.choice([BY_DISTANCE, BY_SIMILARITY]), "titles": rand.choice([ON, OFF]),
                "title_veto": rand.choice([ON, OFF]), "ttl": rand.choice([NEVER, NEVER, 10 * HOUR])}
    if settings["near"] == BY_DISTANCE:
        settings |= {"title_veto": OFF, "distance": BITS}
    place = Place(where, f"{seed}", clock, settings, rand.choice([SKIP, LINK, STORE]),
                  rand.choice([DUPLICATE, REFRESH]))
    names = [name for name in life.ids + life.urls if name]
    others = 0
    try:
        for _ in range(rand.randrange(STEPS // 2, STEPS)):
            deed = rand.choices(*zip(*DEEDS.items()))[0]
            items = (life.crowd() if deed == "crowd" else [life.item()] if deed in ("add", "check") else
                     [life.item() for _ in range(rand.randrange(2, 12))] if deed == "batch" else [])
            log.extend((deed, item) for item in items or [None])
            if items and reader and not place.model.number:
                reader.ask(place.path, clock, None)
            if items and deed != "check":
                expected = [place.model.add(Query(**item)) for item in items]
                said = place.engine.ask(True, *items)
                differ = [f"{one}\n{other}" for one, other in zip(said, expected) if one != other]
                assert not differ, "\n".join(differ)
            elif deed == "check":
                expected = place.model.check(Query(**items[0]))
                said = place.engine.ask(False, *items)[0]
                assert said == expected, f"{said}\n{expected}"
                if reader and place.model.on_same_url == place.stored_same_url:
                    said = reader.ask(None, clock, items[0])
                    assert said == expected, f"the reader: {said}\n{expected}"
            elif deed == "remove":
                name = rand.choice(names)
                log[-1] = (deed, name)
                assert place.engine.remove(name) == place.model.remove(name)
            elif deed == "wait":
                clock[0] += rand.choice([1, 99, 100, HOUR, 9 * HOUR])
            elif deed == "reopen":
                place.reopen(rand.choice([SKIP, LINK, STORE]), rand.choice([DUPLICATE, REFRESH]))
            elif deed == "compact":
                place.engine.compact()
            elif deed in ("copy", "merge"):
                others += 1
                other = Place(where, f"{seed}-{others}", clock, settings, rand.choice([SKIP, LINK, STORE]),
                              rand.choice([DUPLICATE, REFRESH]))
                for _ in range(rand.randrange(8) if deed == "merge" else 0):
                    item = life.item()
                    log.append(("other", item))
                    said, expected = other.engine.ask(True, item), other.model.add(Query(**item))
                    assert said == [expected], f"other: {said}\n{expected}"
                other.take_all(place, deed == "merge")
                other.compare(names)
                other.compare_stats()
                other.engine.close()
            place.compare(rand.sample(names, 3))
            if rand.random() < 0.2:
                place.compare_stats()
        place.compare(names)
        place.compare_stats()
    except AssertionError as error:
        calls = "\n".join(f"{deed} {item}" for deed, item in log)
        raise AssertionError(f"seed {seed}, {place.path}, {settings}:\n{calls}\n{error}") from None
    finally:
        place.engine.close()


def run(where, share, reader=None):
    count = max(SEQUENCES // share, 1)
    for seed in range(SEED, SEED + count):
        sequence(seed, where, reader)
    return f"{count} sequences"


# ---- the places

def test_in_memory():
    return run(lambda name: None, 1)


def test_in_a_folder():
    reader = Reader()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return run(lambda name: os.path.join(folder, name), 4, reader)
    finally:
        reader.close()


def test_in_redis():
    if not shutil.which("redis-server"):
        return "no redis-server"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "redis.sock")
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            with socket.socket(socket.AF_UNIX) as one:
                while one.connect_ex(path):
                    time.sleep(0.01)
            return run(lambda name: f"redis+unix://{path}?prefix={name}", 4)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    check.main(globals())

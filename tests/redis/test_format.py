"""test_format.py - what the command and the server put into Redis is what docs/FORMAT.md section 14 says, byte for byte and nothing else."""
import json
import os
import random
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.parse
import urllib.request

from cliques import WORDS, edited, text_of, write_lines
from memory_reader import COPY, DOCUMENT, NUMBERS, SEGMENTS, TEXT, Memory, index_folder, read_keys
from reference import parse, sketch
from support import DOPPEL, FOLDER, FULL, Case, Doppel, Feeding, Server, run, stats, wait_for

REASONS = ("exact_url", "content_hash", "title_similarity")
COUNTED = dict(zip(REASONS, (b"1", b"2", b"3")))
FLIPS = 400 if FULL else 12
SECONDS = {"h": 3600, "d": 86400}
CYRILLIC = "Однажды весною в час небывало жаркого заката в Москве на Патриарших прудах появились два гражданина"
CHINESE = "敏捷的棕色狐狸跳过了懒狗而懒狗并不在意因为天气很热"


def names():
    """Ids, short and long, of one byte a letter and of more."""
    yield from ("a", "an id", "id/with?signs&=%", "идентификатор", "身份" * 50, "0")
    for length in (254, 255, 256, 257, 1000, 65536):
        yield "x" * (length - len(str(length))) + str(length)


def titles():
    """Titles that count and that do not, that have few segments, many, and none."""
    yield from ("Page not found", "Too short", "Ten points", CYRILLIC, CYRILLIC * 3, CHINESE, "The Same Title of Several")
    rng = random.Random("titles")
    for length in (12, 19, 20, 21, 40, 63, 100, 254, 255, 256, 257, 300, 506, 507, 508, 509, 510, 511, 560, 700, 5000, 65535, 65536):
        yield (" ".join(rng.choices(WORDS, k=length)))[:length - 1].strip().ljust(length, "x")


def urls():
    """(as given, canonical)"""
    yield "https://example.org/", "https://example.org/"
    yield "HTTP://WWW.Example.org:80/a/../b/index.html?utm_source=x&z=1&a=2#top", "https://example.org/b?a=2&z=1"
    yield "https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"
    for length in (254, 255, 256, 257, 3000):
        url = f"https://example.org/{length}/".ljust(length, "u")
        yield url, url


def documents(rng):
    """[document, ...]: each kind of name, title and URL, and copies by each reason; `canonical` is beside the URL."""
    made = []

    def make(**fields):
        made.append({"id": f"document {len(made)}", "text": text_of(rng, rng.choice((30, 60, 120))), **fields})
        return made[-1]

    for name in names():
        make(id=name)
    for title in titles():
        make(title=title)
    for url, canonical in urls():
        make(url=url, canonical=canonical)
    first = [dict(one) for one in made]
    make(text=CYRILLIC + " " + text_of(rng, 20), source="новости", date="7", kind="lost")
    make(text=CHINESE)
    make(text="four words are few")
    make(text="one")
    make(text="", url="https://example.org/empty", canonical="https://example.org/empty")
    make(text="", title="A title without any words below it")
    del make(url="https://example.org/unnamed", canonical="https://example.org/unnamed")["id"]
    del make()["id"]
    for number, one in enumerate(rng.sample(first, 8)):  # the same words
        make(text=one["text"].upper(), title=f"The upper case of number {number} in this series")
    for one in rng.sample(first, 8):  # nearly the same
        long = make(text=text_of(rng, 300))
        make(text=edited(rng, long["text"]))
        make(text=edited(rng, one["text"]))
    for one in [one for one in first if "url" in one]:  # the same URL, with other words and with the same
        make(url=one["url"], canonical=one["canonical"])
        make(url=one["url"], canonical=one["canonical"], text=one["text"])
    again = [one for one in first if len(one.get("title", "")) >= 12]
    for one in again:  # the same title, and one that is nearly the same
        make(title=one["title"])
        make(title=one["title"][:5] + "Q" + one["title"][5:-1], text=one["text"][:len(one["text"]) * 3 // 4] + text_of(rng, 4))
    return made


def kind_of(name, field):
    """Of a field: those of the meta key and of counts differ, of a bucket its time from all others."""
    return name[:1] + (field[:1] if name[:1] in (b"m", b"c") or field == b"x" else b"")


class Format(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = cls.server.client()
        cls.sketches = {}

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.close()

    def setUp(self):
        self.client.ask("FLUSHALL")
        self.began = int(time.time())
        self.there = {}    # by id: the document, its verdict, and how long it is to live
        self.told = []     # all verdicts that were not known before
        self.options = ()  # of every command
        self.addTypeEqualityFunc(str, self.assert_same_text)

    def assert_same_text(self, one, other, msg=None):
        """In place of unittest's, which takes half a minute to show how two long titles differ."""
        if one != other:
            self.fail(f"{one[:500]!r} is not {other[:500]!r}")

    # ---- what is done

    def add(self, some):
        path = write_lines(os.path.join(FOLDER, "format.jsonl"), [{name: value for name, value in one.items() if name != "canonical"} for one in some])
        verdicts = run("add", self.server.url(), *self.options, path)
        self.assertEqual(len(verdicts), len(some))
        for document, verdict in zip(some, verdicts):
            self.note(document, verdict)
        return verdicts

    def note(self, document, verdict):
        if verdict.get("known"):
            return
        self.told.append(verdict)
        if verdict.get("replaced"):
            self.forget(verdict["id"])
        if verdict.get("idKnown"):
            return
        if verdict["isDuplicate"] and not {"link", "store"} & set(self.options):
            self.there.pop(verdict["id"], None)
        else:
            self.there[verdict["id"]] = document, verdict, self.life()

    def life(self):
        """The seconds that --ttl says, 0: never; None: it says nothing."""
        if "--ttl" not in self.options:
            return None
        ttl = self.options[self.options.index("--ttl") + 1]
        return 0 if ttl == "never" else int(ttl[:-1]) * SECONDS[ttl[-1]]

    def forget(self, name):
        """It goes, and its copies with it."""
        self.there.pop(name, None)
        self.there = {own: one for own, one in self.there.items() if one[1]["originalId"] != name}

    def remove(self, ids):
        ids = sorted(ids, key=lambda name: not self.there[name][1]["isDuplicate"])  # copies first: all are there
        for at in range(0, len(ids), 3):  # ids are long
            self.assertTrue(all(one["removed"] for one in run("remove", self.server.url(), *ids[at:at + 3])))
        for name in ids:
            self.forget(name)

    # ---- what is there

    def read(self):
        return Memory(read_keys(self.client, "test"))

    def sketch(self, memory, text):
        recipe = memory.settings["recipe"]
        if (recipe, text) not in self.sketches:
            self.sketches[recipe, text] = sketch(text.encode(), parse(recipe))
        return self.sketches[recipe, text]

    def check(self, memory, removed=False):
        """All that is in Redis is explained, and is what was added."""
        memory.check(removed)
        kept = {one.record["id"].decode(): one for one in memory.documents.values() if one.record}
        self.assertEqual(set(kept), set(self.there))
        self.assertEqual(len(kept), sum(one.kind != TEXT for one in memory.documents.values()))
        for name, (document, verdict, life) in self.there.items():
            original = kept[verdict["originalId"]].trace["expires"] if verdict["isDuplicate"] else 0
            self.check_times(memory, kept[name].trace, life, original)
            self.check_one(memory, kept[name], document, verdict)
        by = [sum(one["isDuplicate"] and one["reason"] == reason for one in self.told) for reason in REASONS]
        self.assertEqual([int(memory.meta.get(field, 0)) for field in (b"u", b"w", b"t")], by)
        if not removed:
            self.check_counts(memory)

    def check_times(self, memory, trace, life, original):
        default = int(memory.settings["ttl"])
        life = life if life is not None else default if default < 2**64 - 1 else 0
        self.assertTrue(self.began <= trace["added"] <= time.time())
        expires = [time for time in (life and trace["added"] + life, original) if time]
        self.assertEqual(trace["expires"], min(expires, default=0))

    def check_counts(self, memory):
        expected = {}
        for verdict in self.told:
            if verdict["isDuplicate"]:
                count = expected.setdefault(verdict["originalId"], {})
                count[COUNTED[verdict["reason"]]] = count.get(COUNTED[verdict["reason"]], 0) + 1
        found = {memory.documents[own].record["id"].decode(): {field: int(value) for field, value in count.items() if field != b"t"}
                 for own, count in memory.counts.items()}
        self.assertEqual(found, expected)

    def check_one(self, memory, found, document, verdict):
        """A document or copy has what was given, and stands where it must."""
        trace, record = found.trace, found.record
        made = self.sketch(memory, document["text"])
        self.assertEqual(found.kind, COPY if verdict["isDuplicate"] else DOCUMENT)
        self.assertEqual((record["url"] or b"").decode(), document.get("url", ""))
        self.assertEqual((record["canonical"] or b"").decode(), document.get("canonical", ""))
        self.assertEqual((record["title"] or b"").decode(), document.get("title", ""))
        names = self.options[self.options.index("--fields") + 1].split(",") if "--fields" in self.options else ("source", "date")
        fields = {name: document[name] for name in names if name in document}
        self.assertEqual(json.loads(record["fields"] or b"{}"), fields)
        self.assertEqual(record["words"], made["words"])
        self.check_verdict(record, verdict)
        if found.kind == DOCUMENT:
            self.check_sketches(memory, found, made)
            self.assertEqual(record["text_length"] > 0, "--keep-text" in self.options and document["text"] != "")
        if record["text_length"]:
            self.assertEqual(memory.text_of(found.number).decode(), document["text"])
        self.assertEqual(memory.find("i", record["id"]).count(found.number), 1)
        if trace["url_hash"]:  # which of them have one: memory_reader.py
            self.assertIn(found.number, memory.find("u", record["canonical"]))
        if found.kind == DOCUMENT and made["text"]:
            self.assertIn(found.number, memory.find("g", made["digest"]))
        if found.kind == DOCUMENT:
            self.check_title(memory, found, document)
            self.check_near(memory, found, made)

    def check_sketches(self, memory, found, made):
        trace, record = found.trace, found.record
        self.assertEqual(trace["digest"], made["digest"])
        self.assertEqual(trace["fingerprint"], made["fingerprint"])
        enough = made["words"] >= int(memory.settings["min_words"])
        self.assertEqual(trace["content"], enough)
        if memory.plan.bands and enough:
            self.assertEqual(record["set_count"], len(made["set"]))
            if record["sampled"]:
                self.assertEqual(found.set, index_folder.sample(made["set"], int(memory.settings["sample"])))
            else:
                self.assertEqual(found.features(), made["set"])
            self.assertEqual(record["sampled"], int(memory.settings.get("sample", 2**64 - 1)) < 2**64 - 1)

    def check_title(self, memory, found, document):
        """A title leads to all who have it, and each of its segments to the title."""
        title = self.sketch(memory, "")["text"] if "title" not in document else sketch(document["title"].encode(), parse("page"))["text"]
        counts = memory.least and len(title) >= 10 and title != "page not found"
        self.assertEqual(found.trace["title"].decode(), title if counts else "")
        if counts:
            self.assertIn(found.number, memory.find("t", title.encode()))
            place = memory.place_of_name("t", title.encode())
            self.assertEqual(place & 3, NUMBERS)
            for segment in memory.segment_places(title.encode()):
                self.assertEqual(segment & 3, SEGMENTS)
                self.assertEqual([int.from_bytes(entry[:8], "big") for entry in memory.entries_at(segment)].count(place), 1)

    def check_near(self, memory, found, made):
        places = list(memory.near_places(found))
        enough = made["words"] >= int(memory.settings["min_words"])
        self.assertEqual(len(places), enough * (memory.plan.bands or len(memory.plan.tables)))
        for place in places:
            self.assertEqual([int.from_bytes(entry[:5], "big") for entry in memory.entries_at(place)].count(found.number), 1)

    def check_verdict(self, record, verdict):
        if not verdict["isDuplicate"]:
            self.assertEqual((record["reason"], record["original_id"]), (0, None))
            return
        evidence, said = record["evidence"], verdict["evidence"]
        self.assertEqual(REASONS[record["reason"] - 1], verdict["reason"])
        self.assertEqual(record["original_id"].decode(), verdict["originalId"])
        self.assertEqual((evidence["same_url"], evidence["same_digest"], evidence["verified"], evidence["distance"]),
                         (said["sameUrl"], said["sameDigest"], said["verified"], said["distance"]))

    # ---- set-ups

    def settings(self):
        """Those of a folder that is made with the same options, and whose documents expire as those of a store do."""
        ttl = () if "--ttl" in self.options else ("--ttl", "30d")
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            path = write_lines(os.path.join(folder, "one.jsonl"), [{"id": "one", "text": "one"}])
            subprocess.run([DOPPEL, "add", "--index", os.path.join(folder, "index"), *ttl, *map(str, self.options), path], check=True, capture_output=True)
            return index_folder.Folder(os.path.join(folder, "index")).settings

    def go_through(self, *options):
        """Adds all; adds some again, with the same words and with others; removes some; adds those again."""
        rng = random.Random(str(options))
        self.options = options
        every = documents(rng)
        verdicts = self.add(every)
        memory = self.read()
        self.check(memory)
        self.assertEqual(memory.settings, self.settings())
        reasons = {verdict["reason"] for verdict in verdicts}
        self.assertLessEqual({None, "exact_url", "content_hash"}, reasons)
        self.assertEqual("title_similarity" in reasons, memory.least is not None)
        with_id = [one for one in every if "id" in one]
        self.add(rng.sample(with_id, 10))
        self.add([{**one, "text": text_of(rng, 50)} for one in rng.sample(with_id, 10)])
        self.check(self.read(), removed=True)
        kept = list(self.there)
        self.remove(rng.sample(kept, len(kept) // 3))
        memory = self.read()
        self.check(memory, removed=True)
        self.assertEqual(stats(self.server.url())["documents"], sum(one.kind == DOCUMENT for one in memory.documents.values()))
        self.add(rng.sample(with_id, len(every) // 2))
        memory = self.read()
        self.check(memory, removed=True)
        self.remove(list(self.there))
        keys = read_keys(self.client, "test")
        self.assertLessEqual({name[:1] for name in keys}, {b"r"}, sorted(keys))
        return memory

    @unittest.skipUnless(FULL, "part of another test here")
    def test_distance(self):
        memory = self.go_through("--preset", "crawl", "--near", "distance", "--ttl", "never")
        self.assertGreater(len(memory.plan.tables), 0)

    def test_distance_with_titles_and_links(self):
        memory = self.go_through("--preset", "crawl", "--near", "distance", "--distance", 6, "--titles", "on", "--on-duplicate", "link",
                                 "--fields", "source,date", "--recipe", "simhash128:words=3")
        self.assertTrue(any(one.kind == COPY for one in memory.documents.values()))

    def test_odd_width(self):
        self.go_through("--preset", "crawl", "--near", "distance", "--distance", 2, "--recipe", "simhash33:words=2", "--keep-text", "--ttl", "1h")

    @unittest.skipUnless(FULL, "part of another test here")
    def test_similarity(self):
        memory = self.go_through("--preset", "general")
        self.assertEqual(memory.settings["near"], "similarity")

    def test_similarity_with_links(self):
        memory = self.go_through("--preset", "general", "--on-duplicate", "link", "--keep-text", "--title-veto", "off", "--ttl", "12h")
        self.assertTrue(any(one.kind == COPY for one in memory.documents.values()))

    def test_article(self):
        self.go_through("--preset", "article", "--on-duplicate", "store", "--fields", "source", "--ttl", "never")

    @unittest.skipUnless(FULL, "part of another test here")
    def test_crawl(self):
        memory = self.go_through("--preset", "crawl", "--on-duplicate", "link")
        self.assertEqual(memory.settings["sample"], "192")

    def test_crawl_with_titles(self):
        self.go_through("--preset", "crawl", "--sample", "16", "--titles", "on", "--on-duplicate", "store", "--keep-text")

    def test_times(self):
        """Documents of one bucket that live for different times: the bucket and the memory stay for the last of them."""
        rng = random.Random("times")
        for ttl in ("2h", "40d", "3h"):
            self.options = ("--preset", "general", "--ttl", ttl)
            self.add([{"id": f"{ttl} {i}", "text": text_of(rng, 40), "title": f"The very same title of everything that is number {i % 3}"}
                      for i in range(30)])
        memory = self.read()
        self.check(memory)
        self.assertEqual(len({one.hours() for one in memory.documents.values()}), 3)
        forever = ("--preset", "general", "--ttl", "never")
        self.options = forever
        self.add([{"id": f"forever {i}", "text": text_of(rng, 40)} for i in range(3)])
        memory = self.read()
        self.check(memory)
        self.assertEqual(memory.meta[b"x"], b"0")

    def test_requests(self):
        """A process that is killed leaves the answer to its last commit, for two minutes."""
        feeding = Feeding(self.server.url(), "--preset", "general")
        one = {"id": "one", "text": text_of(random.Random("requests"))}
        self.note(one, feeding.add(one))
        feeding.kill()
        memory = self.read()
        self.check(memory)
        link, = memory.names[b"r"]
        self.assertEqual(memory.meta[b"o"], link + memory.value[b"r" + link][:8])

    def test_server(self):
        """Documents that came by HTTP."""
        rng = random.Random("server")
        self.options = ("--preset", "general")
        serving = Serving(self.server.url(), *self.options)
        for i in range(30):
            one = {"id": f"served {i}/ü", "url": f"https://example.org/{i % 20}", "canonical": f"https://example.org/{i % 20}", "text": text_of(rng),
                   "title": f"What is served under the number {i * 7919}"}
            self.note(one, serving.ask("POST", "/v1/documents", {name: value for name, value in one.items() if name != "canonical"}))
        self.check(self.read())
        for name in list(self.there)[::2]:
            serving.ask("DELETE", "/v1/documents/" + urllib.parse.quote(name, safe=""))
            del self.there[name]
        self.check(self.read(), removed=True)
        serving.close()
        self.check(self.read(), removed=True)

    # ---- the reader itself

    def test_other_bytes_are_noticed(self):
        """One byte that is changed anywhere, but in what is left to chance, does not pass."""
        rng = random.Random("noticed")
        for options in (("--preset", "general", "--on-duplicate", "link", "--keep-text", "--ttl", "2d"),
                        ("--preset", "crawl", "--near", "distance", "--titles", "on")):
            self.setUp()
            self.options = options
            self.add(documents(rng)[::5])
            keys, settings = read_keys(self.client, "test"), self.settings()
            self.check(Memory(keys))
            # Not of texts: some bits of a frame of zstd mean nothing.
            spots = [(name, field) for name, (kind, value, _) in sorted(keys.items()) for field in (sorted(value) if kind == b"hash" else [b""])
                     if name[:1] != b"t" and (name, field) not in ((b"m", b"e"), (b"m", b"o"), (b"m", b"n"), (b"m", b"b")) and (name[:1], field) != (b"c", b"t")]
            kinds = sorted({kind_of(*spot) for spot in spots})
            first = rng.randrange(len(kinds))
            for flip in range(FLIPS):
                kind = kinds[(first + flip) % len(kinds)]
                self.check_noticed(rng, keys, settings, *rng.choice([spot for spot in spots if kind_of(*spot) == kind]))

    def check_noticed(self, rng, keys, settings, name, field):
        kind, value, ends = keys[name]
        old = value[field] if field else value
        at = rng.randrange(len(old) - (field == b"x" and len(old) > 1))  # a time may be off by a second
        new = old[:at] + bytes([old[at] ^ 1 << rng.randrange(8)]) + old[at + 1:]
        other = {**keys, name: (kind, {**value, field: new} if field else new, ends)}
        with self.subTest(name=name, field=field, at=at, old=old, new=new):
            noticed = False
            try:
                memory = Memory(other)
                self.check(memory)
                self.assertEqual(memory.settings, settings)
            except Exception:  # whatever reading it meets
                noticed = True
            self.assertTrue(noticed)


class Serving(Doppel):
    """A `doppel serve` over a store."""

    def __init__(self, url, *options):
        Doppel.made += 1
        self.output = self.errors = os.path.join(FOLDER, f"errors{Doppel.made}")
        sandbox = ["--sandbox", "off"] if os.path.basename(os.path.dirname(DOPPEL)).endswith(("asan", "tsan")) else []
        self.command = [DOPPEL, "serve", "--store", url, "--listen", "127.0.0.1:0", *sandbox, *map(str, options)]
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        Doppel.running.add(self)
        wait_for("the server", lambda: re.search(r"listening on \w+://.*:(\d+)", self.said()) or not self.alive())
        self.port = int(re.search(r"listening on \w+://.*:(\d+)", self.said())[1])

    def ask(self, method, path, body=None):
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method, data=json.dumps(body).encode() if body else None,
                                       headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return json.loads(answer.read() or b"null")

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.ended() == 0, self.said()

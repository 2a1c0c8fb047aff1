"""test_same.py - a folder and a memory in Redis give the same verdicts, line for line, on the same sequence of adds, checks and removals."""
import os
import random
import shutil
import subprocess

from cliques import WORDS, text_of, write_lines
from support import DOPPEL, FOLDER, FULL, PATIENCE, Case, Server, json

COUNT = 10000 if FULL else 300   # documents of the settings that matter most
FEWER = 2000 if FULL else 300    # and of each other one
STEP = 1000 if FULL else 60      # documents between removals
APART = ("added", "expires", "lastDuplicate", "number")  # of what is stored; removals have numbers in a folder
HOT = "The weather of today and of tomorrow"
SAYS_NOTHING = "Page not found"


def change_words(rng, text, count):
    """So many words are others."""
    words = text.split(" ")
    for at in rng.sample(range(len(words)), min(count, len(words))):
        words[at] = "new" + rng.choice(WORDS)
    return " ".join(words)


def change_title(rng, title):
    """One letter is another one, is gone, or is new."""
    at = rng.randrange(len(title))
    return title[:at] + rng.choice(("", "x", "xy")) + title[at + 1:]


def new_document(rng, number):
    one = {"id": f"d{number}", "url": f"https://example.org/{number}", "text": text_of(rng, rng.choice((0, 2, 4, 5, 20, 80, 300, 800, 1500))),
           "title": " ".join(rng.choices(WORDS, k=rng.choice((1, 3, 6, 12))))}
    if rng.random() < 0.1:
        one["title"] = rng.choice((HOT, HOT, change_title(rng, HOT), SAYS_NOTHING))
    for name in ("url", "title", "id"):
        if rng.random() < (0.3, 0.3, 0.03)[("url", "title", "id").index(name)]:
            del one[name]
    return one


def copy_of(rng, one, other):
    """Makes a document like an earlier one in some respects."""
    for kind in rng.sample(("words", "edited", "half", "url", "title", "like title", "id", "all"), rng.choice((1, 1, 1, 2, 3))):
        if kind == "words":
            one["text"] = other["text"].upper()
        elif kind in ("edited", "half"):
            one["text"] = change_words(rng, other["text"], rng.choice((1, 1, 1, 2, 5, 9)) if kind == "edited" else len(other["text"]) // 60)
        elif kind == "url" and "url" in other:
            one["url"] = other["url"].replace("https://", "http://www.") + "?utm_source=x"
        elif kind in ("title", "like title") and "title" in other:
            one["title"] = other["title"] if kind == "title" else change_title(rng, other["title"])
        elif kind == "id" and "id" in other:
            one["id"] = other["id"]
        elif kind == "all" and "id" in other:
            one = dict(other)
    return one


def documents(rng, count):
    made = []
    for number in range(count):
        one = new_document(rng, number)
        if made and rng.random() < 0.5:
            one = copy_of(rng, one, rng.choice(made[-200:] if rng.random() < 0.7 else made))
        made.append(one)
    return made


def sequence(rng, count):
    """[(command, documents or ids), ...]: what comes next is checked, added and, some of it, removed; then comes some of it again."""
    every = documents(rng, count)
    for at in range(0, count, STEP):
        some = every[at:at + STEP]
        yield "check", some
        yield "add", some
        ids = [one["id"] for one in every[:at + STEP] if "id" in one]
        yield "remove", rng.sample(sorted(set(ids)), min(len(set(ids)), STEP // 10)) + ["nobody"]
        yield "check", rng.sample(every[:at + STEP], STEP // 5)
        yield "add", rng.sample(every[:at + STEP], STEP // 5)


class Same(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def run_one(self, place, command, *operands):
        done = subprocess.run([DOPPEL, command, *place, *map(str, operands)], capture_output=True, text=True, timeout=PATIENCE)
        self.assertIn(done.returncode, (0, 1, 3), (command, done.stderr))  # 3: an id is not there
        return json.loads(done.stdout) if command == "stats" else [json.loads(line) for line in done.stdout.splitlines()]

    def run_both(self, command, *operands):
        """Both say the same; gives what they say."""
        folder, store = (self.run_one(place, command, *operands) for place in self.places)
        for at, (expected, found) in enumerate(zip(folder, store)):
            self.assertEqual(found, expected, f"{command}, line {at + 1} of {operands[-1]}, after {self.done}")
        self.assertEqual(len(store), len(folder), command)
        return folder

    def go_through(self, name, count, *options):
        folder = os.path.join(FOLDER, "same-" + name)
        self.places = ("--index", folder), ("--store", self.server.url("prefix=" + name))
        self.done, verdicts, ids = [], [], set()
        for step, (command, what) in enumerate(sequence(random.Random(name if FULL else "same"), count)):
            if command == "remove":
                self.run_both(command, *what)
            else:
                path = write_lines(os.path.join(FOLDER, f"same-{step}.jsonl"), what)
                if step or command == "add":
                    said = self.run_both(command, *(options if command == "add" else ()), path)
                    verdicts += said
                    ids.update(verdict["id"] for verdict in said)
                os.remove(path)
            self.done.append((command, len(what)))
        self.check_stored(sorted(ids - {None}))  # a check of what has no name has none either
        shutil.rmtree(folder)
        self.server.ask("FLUSHALL")
        return verdicts

    def check_stored(self, ids):
        """What is there is the same, too."""
        stored = []
        for place in self.places:
            found = []
            for at in range(0, len(ids), 1000):
                found += self.run_one(place, "get", *ids[at:at + 1000])
            stored.append([{key: value for key, value in one.items() if key not in APART} for one in found])
            numbers = self.run_one(place, "stats")
            stored[-1].append({key: numbers[key] for key in ("documents", "copies", "duplicates")})
        for expected, found in zip(*stored):
            self.assertEqual(found, expected)
        self.assertEqual(len(stored[0]), len(stored[1]))

    def check_reasons(self, verdicts, *reasons):
        """The sequence meets what it is for."""
        found = {verdict["reason"] for verdict in verdicts}
        self.assertEqual(found, {None, "exact_url", "content_hash", *reasons})
        self.assertGreater(sum(verdict["isDuplicate"] for verdict in verdicts), len(verdicts) / 10)
        self.assertTrue(any(verdict.get("known") for verdict in verdicts))
        self.assertTrue(any(verdict.get("replaced") for verdict in verdicts))

    # ---- near by distance

    def test_distance(self):
        verdicts = self.go_through("distance", COUNT, "--near", "distance", "--titles", "off")
        self.check_reasons(verdicts)
        self.assertTrue(any(verdict["evidence"]["distance"] in (1, 2, 3) for verdict in verdicts if verdict["isDuplicate"]))

    def test_distance_and_titles(self):
        self.check_reasons(self.go_through("distance-titles", COUNT, "--near", "distance", "--titles", "on"), "title_similarity")

    def test_distances(self):
        for distance in range(3) if FULL else (1,):
            with self.subTest(distance=distance):
                self.go_through(f"distance{distance}", FEWER, "--near", "distance", "--distance", distance, "--titles", "off", "--on-duplicate", "link")

    # ---- near by similarity

    def test_general(self):
        verdicts = self.go_through("general", COUNT, "--preset", "general")
        self.check_reasons(verdicts, "title_similarity")
        self.assertTrue(any(verdict["evidence"]["verified"] and 0.8 <= verdict["evidence"]["similarity"] < 1 for verdict in verdicts
                            if verdict["isDuplicate"] and verdict["evidence"]["similarity"]))

    def test_similarity_without_titles(self):
        self.check_reasons(self.go_through("similarity", COUNT if FULL else FEWER, "--preset", "general", "--titles", "off"))

    def test_crawl(self):
        self.check_reasons(self.go_through("crawl", FEWER, "--preset", "crawl", "--on-duplicate", "store"))

    def test_article(self):
        verdicts = self.go_through("article", FEWER, "--preset", "article", "--on-duplicate", "link", "--on-same-url", "refresh")
        self.check_reasons(verdicts, "title_similarity")

    def test_more(self):
        """Other settings, each with another policy."""
        every = (("veto-off", ("--preset", "general", "--title-veto", "off", "--on-duplicate", "link")),
                 ("veto-on", ("--preset", "article", "--title-veto", "on", "--on-duplicate", "store")),
                 ("refresh", ("--preset", "general", "--on-same-url", "refresh")),
                 ("crawl-titles", ("--preset", "crawl", "--titles", "on", "--sample", 16)),
                 ("text", ("--preset", "general", "--keep-text", "--on-duplicate", "store", "--on-same-url", "refresh")),
                 ("distance-store", ("--near", "distance", "--titles", "on", "--on-duplicate", "store")),
                 ("half", ("--preset", "general", "--similarity", "0.5", "--title-similarity", "0.8")))
        for name, options in every if FULL else every[:1]:
            with self.subTest(name):
                self.go_through(name, FEWER, *options)

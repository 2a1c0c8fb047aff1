"""A network that cuts connections at any byte: nothing is lost, nothing is done twice, and the answers are those of a good one."""
import os
import random

from cliques import ALONE, WORDS, Cliques, check_verdicts, write_lines
from proxy import CARRY, LATE, SWALLOW, WAYS, Proxy
from support import FOLDER, FULL, Case, Doppel, Server, get_all, run, stats, wait_for

COUNT = 5000 if FULL else 300
# What a connection lives for, about; many are long enough for a commit of 20 documents, of 2 KB each with what was fetched before.
BAD = {"bytes": 100000, "seconds": 0.3}
# Of what is stored. Numbers that a request was given, which then had to be decided again, are not given again.
APART = ("added", "expires", "lastDuplicate", "number")


def to_compare(stored):
    return {name: {key: value for key, value in one.items() if key not in APART} for name, one in stored.items()}


class Cuts(Case):
    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(COUNT, seed="cuts")
        cls.path = cls.cliques.write("cuts")
        cls.server = Server()
        cls.good = {}

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.server.ask("FLUSHALL")
        self.proxies = []

    def tearDown(self):
        for proxy in self.proxies:
            proxy.close()

    def proxy(self, **settings):
        self.proxies.append(Proxy(self.server.port, seed=len(self.proxies), **settings))
        return self.proxies[-1]

    def ids(self):
        return [document["id"] for document in self.cliques.documents]

    def undisturbed(self, command, *options):
        return run(command, self.server.url("prefix=good"), *options)

    def disturbed(self, proxy, command, *options):
        proxy.first = True
        return run(command, self.server.url("prefix=bad&timeout=2", port=proxy.port), *options)

    def check_same(self, names=None):
        """What is there is the same as without cuts."""
        bad, good = (stats(self.server.url("prefix=" + prefix)) for prefix in ("bad", "good"))
        for key in ("documents", "copies", "duplicates"):
            self.assertEqual(bad[key], good[key], key)
        stored, good = (get_all(self.server.url("prefix=" + prefix), names) for prefix in ("bad", "good"))
        self.assertEqual(to_compare(stored), to_compare(good))

    def check_adding(self, proxy, *options):
        """Adds all, then all once more, and removes every other one: each time as without cuts."""
        good = self.undisturbed("add", *options, self.path)
        self.assertEqual(self.disturbed(proxy, "add", *options, self.path), good)
        kept = [verdict["id"] for verdict in good if not verdict["isDuplicate"] or "--on-duplicate" in options]
        self.check_same(kept)
        self.assertEqual(self.disturbed(proxy, "add", *options, self.path), self.undisturbed("add", *options, self.path))
        self.check_same(kept)
        self.assertEqual(self.disturbed(proxy, "remove", *kept[::2]), self.undisturbed("remove", *kept[::2]))
        removed = set(kept[::2])
        gone = removed | {verdict["id"] for verdict in good if verdict["originalId"] in removed}
        self.check_same([name for name in kept if name not in gone])
        self.assertGreater(proxy.cuts, 3)

    def test_all_ways(self):
        self.check_adding(self.proxy(**BAD), "--batch", "20")

    def test_links(self):
        """Copies that are remembered, in batches that are sent whole."""
        self.check_adding(self.proxy(bytes=1500000 if FULL else 400000, seconds=0.3), "--on-duplicate", "link", "--batch", "5000")

    def test_versions(self):
        """Ids that come again with other words, documents without ids, titles: each request is carried out once, in its order."""
        rng = random.Random("versions")
        documents = [dict(document) for document in self.cliques.documents]
        alone = [document for document in documents if self.cliques.kind[self.cliques.of[document["id"]]] == ALONE]
        for number, document in enumerate(alone):  # of what has no copies: they would be copies of what is gone
            document["id"] = alone[rng.randrange(number + 1)]["id"]
        for document in documents:
            if document not in alone and rng.random() < 0.3:
                document["title"] = f"The story of {rng.choice(WORDS)} and of {rng.choice(WORDS)} in {rng.randrange(5)} parts"
            if document not in alone and rng.random() < 0.2:
                del document["id"]
        path = write_lines(os.path.join(FOLDER, "versions.jsonl"), documents)
        proxy = self.proxy(**BAD)
        for options in (("--titles", "on"), ("--on-duplicate", "link", "--on-same-url", "refresh")):
            self.server.ask("FLUSHALL")
            for _ in range(2):
                good, bad = self.undisturbed("add", *options, "--batch", "20", path), self.disturbed(proxy, "add", *options, "--batch", "20", path)
                self.assertEqual(bad, good)
                kept = [one["id"] for one in self.undisturbed("export") if "id" in one]
                self.check_same(kept)

    def test_each_way(self):
        for way in WAYS if FULL else (LATE,):
            with self.subTest(way):
                self.setUp()
                self.check_adding(self.proxy(**BAD, ways=[way]), "--batch", "20")

    def test_answers_are_swallowed(self):
        """The server carries out all that it is asked, and nobody hears of it."""
        good = self.undisturbed("add", self.path)
        proxy = self.proxy(hold=0.02)
        adding = Doppel("add", self.server.url("prefix=bad&timeout=0.3", port=proxy.port), "--batch", "20", self.path)
        for _ in range(10 if FULL else 2):
            lines = len(adding.lines())
            wait_for("verdicts", lambda: len(adding.lines()) > lines or not adding.alive())
            proxy.cut(SWALLOW)
        self.assertEqual(adding.finish(), good)
        self.assertGreater(proxy.cuts, 0)
        self.check_same([verdict["id"] for verdict in good if not verdict["isDuplicate"]])

    def test_several_processes(self):
        """Each behind a bad network of its own."""
        adding = [Doppel("add", self.server.url("prefix=bad&timeout=2", port=self.proxy(**BAD).port), "--batch", 20,
                         self.cliques.write(f"cuts{i}", order=i)) for i in range(4)]
        verdicts = [verdict for one in adding for verdict in one.finish()]
        stored = get_all(self.server.url("prefix=bad"), {verdict["originalId"] or verdict["id"] for verdict in verdicts})
        check_verdicts(self, self.cliques, verdicts, stored)
        self.assertEqual(len(verdicts), 4 * len(self.cliques.documents))

    def test_away_for_good(self):
        """What the network does not bring back ends with a message, and what was told is there."""
        proxy = self.proxy(hold=0.02)
        adding = Doppel("add", self.server.url("prefix=bad&timeout=0.5&retry=1", port=proxy.port), "--batch", "20", self.path)
        wait_for("verdicts", adding.lines)
        proxy.closes = True
        proxy.cut(CARRY)
        self.assertEqual(adding.ended(), 4, adding.said())
        self.assertRegex(adding.said(), r"given up after 1 s")
        told = adding.lines()
        self.assertLess(len(told), len(self.cliques.documents))
        stored = get_all(self.server.url("prefix=bad"), [verdict["id"] for verdict in told if not verdict["isDuplicate"]])
        self.assertEqual(set(stored), {verdict["id"] for verdict in told if not verdict["isDuplicate"]})
        # The rest is added by whoever runs it again; what has been added and not told is known, as unique as it was.
        again = run("add", self.server.url("prefix=bad"), self.path)
        good = self.undisturbed("add", self.path)
        self.assertEqual([(one["id"], one["isDuplicate"], one["originalId"]) for one in again],
                         [(one["id"], one["isDuplicate"], one["originalId"]) for one in good])

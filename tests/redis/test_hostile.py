"""Somebody else writes into the keys of an index: clear errors, nothing half done, and all is well once the keys are."""
import random
import re
from contextlib import contextmanager

from cliques import Cliques, write_lines
from support import FOLDER, FULL, Case, Feeding, Server, run, run_failing

EVERYTHING = ("--on-duplicate", "link", "--keep-text", "--titles", "on")
# Words of the inside of a script that failed unforeseen.
INSIDE = re.compile(r"attempt to|bad argument|user_function|@user|\.lua|stack|nil value|script:", re.IGNORECASE)


def garbage(rng, value):
    """What may be found in place of a string: (name, value)."""
    yield "empty", b""
    yield "short", b"x"
    yield "cut off", value[:-1]
    yield "half", value[:len(value) // 2]
    yield "longer", value + b"\0"
    yield "noise", rng.randbytes(len(value))
    yield "other noise", rng.randbytes(300)
    yield "highest", b"\xff" * len(value)
    yield "zeros", bytes(len(value))
    yield "one byte", value[:7] + bytes([value[7] ^ 0xFF]) + value[8:] if len(value) > 8 else b"\xff"


class Hostile(Case):
    @classmethod
    def setUpClass(cls):
        cls.rng = random.Random("hostile")
        cls.cliques = Cliques(60 if FULL else 30, seed="hostile")
        for number, document in enumerate(cls.cliques.documents):
            document["title"] = f"What is to be said about the matter of number {number * 7919}"
        cls.path = cls.cliques.write("hostile")
        cls.server = Server()
        cls.url = cls.server.url("prefix=p&retry=2")
        cls.client = cls.server.client()
        cls.first = run("add", cls.url, *EVERYTHING, cls.path)
        cls.again = run("add", cls.url, *EVERYTHING, cls.path)
        # A process that does not end by itself leaves its answers.
        killed = Feeding(cls.url, *EVERYTHING)
        killed.add({"id": "of a process that was killed", "text": "words that nobody else has added to this index before"})
        killed.kill()
        cls.ids = [verdict["id"] for verdict in cls.first]
        # New ones that meet what is there: copies of all, under other names.
        cls.more = write_lines(FOLDER + "/more.jsonl", [{**one, "id": "more " + one["id"], "url": one["url"] + "/more"}
                                                        for one in cls.cliques.documents])

    @classmethod
    def tearDownClass(cls):
        cls.client.close()
        cls.server.close()

    def snapshot(self):
        """All keys as Redis dumps them."""
        return {key: self.client.ask("DUMP", key) for key in self.client.ask("KEYS", "*")}

    def contents(self):
        """The same, to be compared: the order of a hash is nobody's."""
        found = self.snapshot()
        for key in found:
            if self.is_hash(key):
                fields = self.client.ask("HGETALL", key)
                found[key] = dict(zip(fields[::2], fields[1::2]))
        return found

    def is_hash(self, key):
        return self.client.ask("TYPE", key) == b"hash"

    def spoil(self, key, change):
        """Puts other values in place of what a key holds: change(value) gives each."""
        if self.is_hash(key):
            fields = self.client.ask("HGETALL", key)
            for field, value in zip(fields[::2], fields[1::2]):
                self.client.ask("HSET", key, field, change(value))
        else:
            self.client.ask("SET", key, change(self.client.ask("GET", key)))

    def put_back(self, whole):
        self.client.ask("FLUSHALL")
        for key, dump in whole.items():
            self.client.ask("RESTORE", key, "0", dump)

    @contextmanager
    def damage(self, whole, **what):
        """A test of its own, after which all is as it was."""
        try:
            with self.subTest(**what):
                yield
        finally:
            self.put_back(whole)

    def check_one(self, what):
        """No command breaks; one that fails says why, in our words."""
        failed = 0
        commands = (("add", ["--batch", "1", self.more]), ("check", [self.more]), ("get", self.ids[:20]), ("stats", []), ("remove", self.ids))
        for command, operands in commands if FULL else (commands[0], self.rng.choice(commands[1:])):
            code, said = run_failing(command, self.url, *operands)
            self.assertIn(code, (0, 1, 3, 4), (what, command, said))
            if code == 4:
                failed += 1
                self.assertIn("prefix=p", said, (what, command))
            self.assertIsNone(INSIDE.search(said), (what, command, said))
            self.assertTrue(said.isprintable() or "\n" in said, (what, said))
        return failed

    def letters(self, whole):
        """The keys of each kind."""
        kinds = {}
        for key in whole:
            kinds.setdefault(key[3:4], []).append(key)
        self.assertEqual(b"".join(sorted(kinds)), b"abcdmrst")
        return {letter: keys for letter, keys in kinds.items() if letter != b"m"}

    def test_other_bytes(self):
        """Of every kind of key, all keys at once are damaged in one way."""
        whole = self.snapshot()
        for letter, keys in self.letters(whole).items():
            ways = [name for name, _ in garbage(self.rng, b"0123456789")]
            for way in ways if FULL else self.rng.sample(ways, 1):
                with self.damage(whole, letter=letter, way=way):
                    for key in keys:
                        self.spoil(key, lambda value, way=way: dict(garbage(self.rng, value))[way])
                    self.check_one((letter, way))
        self.assertEqual(run("add", self.url, *EVERYTHING, self.path), self.again)

    def test_other_kinds(self):
        """A list in place of a string or a hash; nothing in place of something."""
        whole = self.snapshot()
        for letter, keys in self.letters(whole).items():
            with self.damage(whole, letter=letter):
                for key in keys:
                    self.client.ask("DEL", key)
                    self.client.ask("RPUSH", key, "x")
                failed = self.check_one((letter, "list"))
                # MGET takes a document of another kind for one that is gone; nobody reads the requests of a link that is.
                self.assertTrue(failed or not FULL or letter in (b"d", b"r"))
                for key in keys:
                    self.client.ask("DEL", key)
                self.check_one((letter, "gone"))
        self.assertEqual(run("add", self.url, *EVERYTHING, self.path), self.again)

    def test_a_failed_add_changes_nothing(self):
        whole = self.snapshot()
        document = next(one for one in self.cliques.documents if one["id"] == self.first[0]["id"])
        path = write_lines(FOLDER + "/one.jsonl", [{**document, "id": "new"}])
        for letter in (b"b", b"d"):
            with self.damage(whole, letter=letter):
                for key in self.letters(whole)[letter]:
                    self.spoil(key, lambda value: b"xyz")
                before = self.contents()
                if letter == b"b":  # nothing may be found by name before
                    write_lines(path, [{"id": "new", "url": "https://new.example/", "text": document["text"] + " and more"}])
                self.assertFails(run_failing("add", self.url, *EVERYTHING, path), "is not what doppel wrote")
                self.assertEqual(self.contents(), before)

    # ---- the meta key

    def test_versions(self):
        whole = self.snapshot()
        with self.damage(whole):
            self.check_versions()

    def check_versions(self):
        commands = (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x"))
        for i, version in enumerate(("1", "3", "99", "0", "-1", "", "one", "2x", "4294967298")):
            self.client.ask("HSET", "{p}m", "v", version)
            for command, operand in commands if FULL else commands[i % 4:i % 4 + 1]:
                self.assertFails(run_failing(command, self.url, operand), "prefix=p")
        self.client.ask("HSET", "{p}m", "v", "3")
        self.assertFails(run_failing("add", self.url, self.path), "format 3.*knows format 2")

    def test_the_previous_layout(self):
        """A memory of the previous version is refused with a message that says how to move it, and stays as it is."""
        whole = self.snapshot()
        with self.damage(whole):
            self.client.ask("FLUSHALL")
            self.client.ask("HSET", "{p}m", "v", "1", "s", "preset=crawl\n", "e", b"\x01" * 8, "k", b"\x02" * 16, "p", "4x16", "n", "1")
            self.client.ask("SET", b"{p}d\0\0\0\0\x01", "what was a document")
            before = self.contents()
            for command, operand in (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x"), ("stats", None), ("export", None),
                                     ("verify", None), ("compact", None), ("similar", "x"), ("import", self.path)):
                with self.subTest(command):
                    ended = run_failing(command, self.url, *([operand] if operand else []))
                    self.assertFails(ended, "(?s)prefix=p.*format 1.*doppel export --store.*import.*prefix=")
            self.assertEqual(self.contents(), before)

    def test_fields(self):
        """Every field of the meta key with other values, before a process starts and while it runs."""
        whole = self.snapshot()
        fields = self.client.ask("HGETALL", "{p}m")
        for field, value in zip(fields[::2], fields[1::2]):
            ways = [b"", b"-5", b"nan", b"1e300", b"99999999999999999999", b"x", value[:-1], self.rng.randbytes(len(value)), None]
            for other in ways if FULL else self.rng.sample(ways, 1):
                with self.damage(whole, field=field, value=other):
                    if other is None:
                        self.client.ask("HDEL", "{p}m", field)
                    else:
                        self.client.ask("HSET", "{p}m", field, other)
                    self.check_one((field, other))

    def test_another_kind_of_meta(self):
        whole = self.snapshot()
        for words in (("SET", "{p}m", "text"), ("RPUSH", "{p}m", "text"), ("HSET", "{p}m", "field", "value")):
            self.client.ask("DEL", "{p}m")
            self.client.ask(*words)
            for command, operand in (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x")):
                code, said = run_failing(command, self.url, operand)
                self.assertFails((code, said), "prefix=p")
                self.assertIsNone(INSIDE.search(said), said)
        self.put_back(whole)

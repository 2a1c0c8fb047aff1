"""Records of every kind: what is passed on unchanged, what is called a duplicate, what cannot be read, and what is removed."""
import json
import os
import random
import subprocess
import tempfile
import unittest

from pages import text_of
from support import DOPPEL, Line, Worker, brokers, header, services, verdict

MEGABYTE = 1 << 20


def page(name=None, **fields):
    return json.dumps({**({"id": name} if name else {}), **fields}).encode()


class Records(unittest.TestCase):
    def run_through(self, records, *options):
        """Gives {number: (kind, record)}, each number once."""
        line = Line()
        line.fill({**record, "headers": [("n", str(number).encode()), *record.get("headers", [])]} for number, record in
                  enumerate(records))
        with tempfile.TemporaryDirectory(dir=services.folder) as folder:
            worker = Worker(line, "--index", os.path.join(folder, "seen"), "--preset", "crawl", "--until-end", *options)
            self.said = worker.finish().said()
        found = [(int(header(record, "n")), kind, record) for kind, records in line.read_all(len(records)).items() for record in records]
        self.assertEqual(sorted(number for number, _, _ in found), list(range(len(records))))
        self.line = line
        return {number: (kind, record) for number, kind, record in found}

    def kinds(self, found):
        return [found[number][0] for number in sorted(found)]

    def test_passed_through(self):
        """Value, key, headers and time of a page are as they were; a duplicate has its verdict, too."""
        text = text_of(random.Random("through"))
        value = b' {"more": {"z": [1e400, "\\u00e9"], "a": null},\t"text": ' + json.dumps(text).encode() + b' , "id":"one"}\n'
        headers = [("empty", b""), ("none", None), ("twice", b"1"), ("twice", b"2"), ("binary", bytes(range(256)))]
        sent = [{"value": value, "key": b"\x00key\xff", "headers": headers, "timestamp": 1234567890123},
                {"value": page("two", text=text.upper(), more={"verdict": 1}), "key": "k", "headers": headers, "timestamp": 1234567890124},
                {"value": page("three", text=text), "key": b""}]
        found = self.run_through(sent)
        self.assertEqual(self.kinds(found), ["unique", "duplicates", "duplicates"])
        one, two, three = (found[number][1] for number in range(3))
        self.assertEqual((one.value(), one.key(), one.timestamp()[1]), (value, b"\x00key\xff", 1234567890123))
        self.assertEqual(one.headers()[1:], headers)
        self.assertEqual(two.headers()[1:6], headers)
        self.assertEqual((two.key(), two.timestamp()[1]), (b"k", 1234567890124))
        self.assertEqual(header(two, "doppel-original"), b"one")
        self.assertTrue(two.value().startswith(sent[1]["value"][:-1]))
        verdict_of_two = verdict(two)
        self.assertEqual((verdict_of_two["isDuplicate"], verdict_of_two["reason"], verdict_of_two["originalId"]), (True, "content_hash", "one"))
        self.assertEqual(three.key(), b"")

    def test_large(self):
        """Records of ten megabytes, and keys and headers of one."""
        rng = random.Random("large")
        text = " ".join(text_of(rng, 10000) for _ in range(180))
        large = page("large", text=text)
        self.assertGreater(len(large), 10 * MEGABYTE)
        sent = [{"value": large}, {"value": page("again", text=text)}, {"value": large[:-1]}, {"value": b"\xff" * (10 * MEGABYTE)},
                {"value": page("key", text=text_of(rng)), "key": b"k" * MEGABYTE},
                {"value": page("header", text=text_of(rng)), "headers": [("large", b"h" * MEGABYTE)]},
                {"value": page(None, text=text_of(rng)), "key": b"i" * 1000}]
        found = self.run_through(sent)
        self.assertEqual(self.kinds(found), ["unique", "duplicates", "dead", "dead", "unique", "unique", "unique"])
        for number in (0, 2, 3, 4, 5):
            self.assertEqual(found[number][1].value(), sent[number]["value"])
        self.assertEqual(found[4][1].key(), sent[4]["key"])
        self.assertEqual(header(found[5][1], "large"), b"h" * MEGABYTE)
        found = self.run_through(sent[:1] + sent[4:5], "--max-record", "1M")
        self.assertEqual(self.kinds(found), ["dead", "unique"])

    def test_dead_letters(self):
        """What is no page goes to its own topic as it is, with the reason, and where it came from."""
        bad = [b"", b" ", b"not JSON", b'{"id":"x"', b'{"id":"x"}}', b"[]", b"17", b'"text"', b"null", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf",
               b'{"id":"x","text":"\xc3\x28"}', b'{"id":"x","text":"\\ud800"}', b'{"id":"x","text":17}', b'{"id":["x"],"text":"a b c"}',
               b"[" * 100000, b'{"a":' * 100000, b"{}", b'{"id":"only"}']
        sent = [{"value": value, "key": f"k{number}", "headers": [("h", b"v")]} for number, value in enumerate(bad)]
        sent.append({"value": None})
        good = {"value": page("good", text=text_of(random.Random("good")))}
        found = self.run_through([good, *sent, good], "--allow-bad")
        self.assertEqual(self.kinds(found), ["unique", *["dead"] * len(sent), "duplicates"])
        reasons = set()
        for number, one in enumerate(sent, 1):
            record = found[number][1]
            self.assertEqual((record.value(), header(record, "h")), (one["value"], b"v" if one["value"] is not None else None))
            self.assertEqual((header(record, "doppel-topic"), header(record, "doppel-partition"), header(record, "doppel-offset")),
                             (self.line.source.encode(), b"0", str(number).encode()))
            reasons.add(header(record, "doppel-error").decode())
        self.assertGreater(len(reasons), 5)

    def test_wrong_field(self):
        """Where most of the first records have their text elsewhere, nothing is done with any, and the worker says so."""
        rng = random.Random("wrong")
        for count in (3, 1200):
            line = Line()
            line.fill({"value": page(str(number), url=f"https://example.org/{number}", content=text_of(rng))} for number in range(count))
            with tempfile.TemporaryDirectory(dir=services.folder) as folder:
                worker = Worker(line, "--index", os.path.join(folder, "seen"), "--until-end")
                self.assertEqual(worker.ended(), 3, worker.said())
                self.assertIn('"content"', worker.said())
                self.assertIn("--text-key", worker.said())
                self.assertEqual(line.consumed(), 0)
                self.assertEqual(sum(map(len, line.read().values())), 0)
                Worker(line, "--index", os.path.join(folder, "seen"), "--until-end", "--text-key", "content").finish()
                self.assertEqual(len(line.read_all(count)["unique"]), count)

    def test_ids_and_tombstones(self):
        """A page without an id has its key; a tombstone removes what its key names, and is passed on."""
        rng = random.Random("ids")
        one, two = text_of(rng), text_of(rng)
        sent = [({"value": page(None, text=one), "key": "k1"}, "unique"),
                ({"value": page("copy", text=one)}, "duplicates"),
                ({"value": None, "key": "k1"}, "unique"),
                ({"value": page("again", text=one)}, "unique"),
                ({"value": None, "key": "nobody"}, "unique"),
                ({"value": page(None, url="https://example.org/a", text=two)}, "unique"),
                ({"value": page(None, url="http://www.example.org/a#b", text="something else by now")}, "duplicates"),
                ({"value": page("both", text=two), "key": "another"}, "duplicates"),
                ({"value": page("again", text=one)}, "duplicates"),
                ({"value": page("title", title="A title and nothing else")}, "unique"),
                ({"value": page("html", html=f"<html><body><p>{one}</p></body></html>")}, "duplicates")]
        found = self.run_through([record for record, _ in sent], "--batch", 3)
        self.assertEqual(self.kinds(found), [kind for _, kind in sent])
        self.assertEqual(verdict(found[1][1])["originalId"], "k1")
        self.assertEqual(found[2][1].value(), None)
        self.assertEqual(verdict(found[10][1])["originalId"], "again")

    def test_topics_are_made(self):
        """Topics that nobody has made are waited for, where the brokers make them; a name that cannot be one is refused."""
        Line()  # so that the brokers have begun, and answer at once
        for source, code, said in (("unheard-of", 0, "0 records"), ("no topic", 4, "topic no topic at")):
            with tempfile.TemporaryDirectory(dir=services.folder) as folder:
                done = subprocess.run([DOPPEL, "stream", "--brokers", brokers(), "--in", source, "--unique", "made-new", "--duplicates",
                                       "made-known", "--index", os.path.join(folder, "seen"), "--until-end"], capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(said, done.stderr)

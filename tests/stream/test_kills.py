"""Workers that are killed at any moment, brokers that restart, workers that come and go: each page comes out exactly once."""
import os
import random
import signal
import tempfile
import time
import unittest

from pages import Planted
from support import FULL, Line, Worker, header, redis_url, services, verdict, wait_for

PAGES = 200000 if FULL else 3000
BATCH = ["--batch", "500" if FULL else "50"]


def number_of(record):
    return int(header(record, "n"))


class Kept(unittest.TestCase):
    """What every run must keep to."""

    def check_whole(self, planted, found):
        """unique + duplicates + dead letters + tombstones = consumed, and each record is there once."""
        numbers = sorted(number_of(record) for records in found.values() for record in records)
        self.assertEqual(numbers, list(range(len(planted))))
        tombstones = [record for record in found["unique"] if record.value() is None]
        self.assertEqual(len(tombstones), planted.kinds["tombstone"])
        self.assertEqual(len(found["dead"]), planted.kinds["dead"])
        for record in found["unique"]:
            sent = planted.records[number_of(record)]
            self.assertEqual((record.value(), record.key()), (sent["value"], sent["key"].encode()))
        for record in found["dead"]:
            self.assertEqual(record.value(), planted.records[number_of(record)]["value"])
            self.assertTrue(header(record, "doppel-error"))

    def check_cliques(self, planted, found):
        """One unique a clique; each duplicate names it."""
        unique = [number_of(record) for record in found["unique"] if record.value() is not None]
        first = {planted.clique[number]: planted.ids[number] for number in unique}
        self.assertEqual(len(unique), planted.cliques)
        self.assertEqual(len(first), planted.cliques)
        for record in found["duplicates"]:
            self.assertEqual(verdict(record)["originalId"], first[planted.clique[number_of(record)]])

    def folder(self):
        made = tempfile.TemporaryDirectory(dir=services.folder)
        self.addCleanup(made.cleanup)
        return os.path.join(made.name, "seen")


class OnePartition(Kept):
    """One worker with LMDB."""

    def setUp(self):
        self.planted = Planted(PAGES, seed=self.id(), any_id=True)
        self.line = Line()
        self.line.fill(self.planted.records)
        self.rng = random.Random(self.id())

    def undisturbed(self):
        line = Line(source=self.line)
        Worker(line, "--index", self.folder(), "--preset", "crawl", "--until-end").finish()
        return line.read_all(len(self.planted))

    def check(self):
        found = self.line.read_all(len(self.planted))
        self.check_whole(self.planted, found)
        calm = self.undisturbed()
        for kind in found:
            self.assertEqual([(number_of(record), record.value()) for record in found[kind]],
                             [(number_of(record), record.value()) for record in calm[kind]])
        self.assertGreater(len(found["duplicates"]), PAGES / 10)

    def test_kills(self):
        """Killed at a random moment after some progress, again and again; with and without a name of its own."""
        index, kills, aim = self.folder(), 0, 0
        while aim < len(self.planted):
            worker = Worker(self.line, "--index", index, "--preset", "crawl", *BATCH, "--instance", "only")
            start = self.line.consumed()
            aim = start + self.rng.randrange(1, len(self.planted) // (40 if FULL else 4))
            wait_for("progress", lambda: self.line.consumed() >= min(aim, len(self.planted)) or not worker.alive(), 0.01)
            self.assertTrue(worker.alive(), worker.said())
            time.sleep(self.rng.random() * 0.03)
            worker.kill()
            kills += 1
        Worker(self.line, "--index", index, "--preset", "crawl", *BATCH, "--instance", "only", "--until-end").finish()
        self.assertGreater(kills, 3)
        self.check()

    def test_broker_restarts(self):
        """The broker is killed and started again while a worker is at work; the worker waits, and goes on."""
        worker = Worker(self.line, "--index", self.folder(), "--preset", "crawl", *BATCH)
        for share in (0.3, 0.6) if FULL else (0.3,):
            wait_for("progress", lambda: self.line.consumed() >= share * len(self.planted) or not worker.alive(), 0.01)
            os.kill(services.pid("kafka", "broker"), signal.SIGKILL)
            services.call("start", "kafka")
        wait_for("the rest", lambda: self.line.consumed() >= len(self.planted) or not worker.alive())
        worker.stop()
        self.check()

    def test_graceful_stop(self):
        """SIGTERM: what was begun is finished and committed, nothing stays open, and the exit code is 0."""
        index = self.folder()
        for share in (0.1, 0.3, 0.5):
            worker = Worker(self.line, "--index", index, "--preset", "crawl", *BATCH)
            wait_for("progress", lambda: self.line.consumed() >= share * len(self.planted) or not worker.alive(), 0.01)
            worker.stop()
            consumed = self.line.consumed()
            found = [record for kind in self.line.outputs for record in self.line.read(kind)]
            self.assertEqual(len(found), consumed)
            self.assertEqual(sorted(map(number_of, found)), list(range(consumed)))
        Worker(self.line, "--index", index, "--preset", "crawl", "--until-end").finish()
        self.check()


class ManyPartitions(Kept):
    """Several workers that share a Redis."""

    PARTITIONS = 8

    def setUp(self):
        self.planted = Planted(PAGES, self.PARTITIONS, seed=self.id())
        self.line = Line(self.PARTITIONS)
        self.line.fill(self.planted.records)
        self.rng = random.Random(self.id())
        self.workers = {}

    def start(self, name):
        self.workers[name] = Worker(self.line, "--store", redis_url(self.line.name), *BATCH, "--instance", name)

    def finish(self):
        wait_for("the rest", lambda: self.line.consumed() >= len(self.planted) or not any(w.alive() for w in self.workers.values()))
        for worker in self.workers.values():
            worker.stop()
        found = self.line.read_all(len(self.planted))
        self.check_whole(self.planted, found)
        self.check_cliques(self.planted, found)

    def test_kills(self):
        """One of three is killed after some progress, and started again, again and again."""
        for name in "abc":
            self.start(name)
        steps = 30 if FULL else 4
        for step in range(1, steps + 1):
            aim = step * len(self.planted) // (steps + 2)
            wait_for("progress", lambda: self.line.consumed() >= aim or not all(w.alive() for w in self.workers.values()), 0.01)
            name = self.rng.choice("abc")
            self.assertTrue(self.workers[name].alive(), self.workers[name].said())
            self.workers[name].kill()
            self.start(name)
        self.finish()

    def test_rebalance_storm(self):
        """Workers join and leave all the time, some by signal, some by death."""
        ends = time.monotonic() + (60 if FULL else 5)
        started = 0
        self.start("0")
        while time.monotonic() < ends:
            started += 1
            self.start(f"{started}")
            time.sleep(1 if FULL else 0.7)
            name = self.rng.choice(sorted(self.workers))
            worker = self.workers.pop(name)
            self.assertTrue(worker.alive(), worker.said())
            if self.rng.random() < 0.3:
                worker.kill()
            else:
                worker.stop()
        self.start("last")
        self.finish()

"""Workers that are killed at any moment, brokers that restart, workers that come and go: each page comes out exactly once."""
import os
import random
import signal
import tempfile
import time
import unittest

from pages import Planted
from support import FULL, Line, Worker, header, redis_url, services, verdict, wait_for

PAGES = 200000 if FULL else 2000
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
    """One worker with LMDB, over the same records as one that nothing happens to."""

    @classmethod
    def setUpClass(cls):
        cls.planted = Planted(PAGES, any_id=True)
        cls.source = Line()
        cls.source.fill(cls.planted.records)
        Worker(cls.source, "--index", os.path.join(services.folder, "calm"), "--preset", "crawl", "--until-end").finish()
        cls.calm = cls.source.read_all(len(cls.planted))

    def setUp(self):
        self.line = Line(source=self.source)
        self.index = self.folder()
        self.rng = random.Random(self.id())

    def start(self, *options):
        return Worker(self.line, "--index", self.index, "--preset", "crawl", *BATCH, *options)

    def wait(self, worker, count):
        """Until so many records are done."""
        wait_for("progress", lambda: self.line.consumed() >= count or not worker.alive(), 0.01)
        self.assertTrue(worker.alive(), worker.said())

    def check(self):
        found = self.line.read_all(len(self.planted))
        self.check_whole(self.planted, found)
        for kind in found:
            self.assertEqual([(number_of(record), record.value()) for record in found[kind]],
                             [(number_of(record), record.value()) for record in self.calm[kind]])
        self.assertGreater(len(found["duplicates"]), PAGES / 10)

    def test_kills(self):
        """Killed at a random moment after some progress, again and again; it comes back under its name, or under none."""
        kills, aim = 0, 0
        while aim < len(self.planted) - 200:
            worker = self.start(*(["-X", "group.instance.id=only"] if kills % 4 else []))
            aim = self.line.consumed() + self.rng.randrange(1, len(self.planted) // (20 if FULL else 5))
            self.wait(worker, min(aim, len(self.planted)))
            time.sleep(self.rng.random() * 0.03)
            worker.kill()
            kills += 1
        self.start("--until-end").finish()
        self.assertGreaterEqual(kills, 2)
        self.check()

    def test_broker_restarts(self):
        """The broker goes and comes back while a worker is at work; the worker waits, and goes on."""
        worker = self.start()
        # By signal, by death, and for longer than a transaction may live.
        blows = ((0.3, signal.SIGTERM, 0), (0.5, signal.SIGKILL, 0), (0.7, signal.SIGTERM, 15))
        for share, how, away in blows[:None if FULL else 1]:
            self.wait(worker, share * len(self.planted))
            os.kill(services.pid("kafka", "broker"), how)
            services.call("stop", "kafka", "--keep")
            time.sleep(away)
            services.call("start", "kafka")
        self.wait(worker, len(self.planted))
        worker.stop()
        self.check()

    def test_graceful_stop(self):
        """SIGTERM: what was begun is finished and committed, nothing stays open, and the exit code is 0."""
        for _ in range(2):
            before = self.line.consumed()
            if before == len(self.planted):
                break
            worker = self.start()
            self.wait(worker, before + 1)
            worker.stop()
            consumed = self.line.consumed()
            found = [number_of(record) for records in self.line.read().values() for record in records]
            self.assertEqual(sorted(found), list(range(consumed)))
        self.start("--until-end").finish()
        self.check()


class ManyPartitions(Kept):
    """Several workers that share a Redis."""

    PARTITIONS = 8

    @classmethod
    def setUpClass(cls):
        cls.planted = Planted(PAGES, cls.PARTITIONS)
        cls.source = Line(cls.PARTITIONS)
        cls.source.fill(cls.planted.records)

    def setUp(self):
        self.line = Line(source=self.source)
        self.rng = random.Random(self.id())
        self.workers = {}

    def start(self, name):
        self.workers[name] = Worker(self.line, "--store", redis_url(self.line.name), *BATCH, "--instance", name)

    def all_alive(self):
        return all(worker.alive() for worker in self.workers.values())

    def check_alive(self):
        for worker in self.workers.values():
            self.assertTrue(worker.alive(), worker.said())

    def finish(self):
        wait_for("the rest", lambda: self.line.consumed() >= len(self.planted) or not self.all_alive())
        self.check_alive()
        for worker in self.workers.values():
            worker.stop()
        found = self.line.read_all(len(self.planted))
        self.check_whole(self.planted, found)
        self.check_cliques(self.planted, found)

    def test_kills(self):
        """One of three is killed after some progress, and started again, again and again."""
        for name in "abc":
            self.start(name)
        steps = 30 if FULL else 3
        for step in range(1, steps + 1):
            aim = step * len(self.planted) // (steps + 2)
            wait_for("progress", lambda: self.line.consumed() >= aim or not self.all_alive(), 0.01)
            self.check_alive()
            name = self.rng.choice("abc")
            self.workers[name].kill()
            self.start(name)
        self.finish()

    def test_frozen(self):
        """One of three stands still for longer than its session, wherever it is; when it goes on, others have its work."""
        for _ in range(5 if FULL else 1):
            for name in "ab":
                self.start(name)
            frozen = Worker(self.line, "--store", redis_url(self.line.name), *BATCH)
            aim = self.line.consumed() + len(self.planted) // 8
            wait_for("progress", lambda: self.line.consumed() >= aim or not self.all_alive(), 0.01)
            time.sleep(self.rng.random() * 0.05)
            frozen.process.send_signal(signal.SIGSTOP)
            time.sleep(4)
            frozen.process.send_signal(signal.SIGCONT)
            time.sleep(1)
            self.check_alive()
            self.assertTrue(frozen.alive(), frozen.said())
            frozen.stop()
            for name in "ab":
                self.workers[name].stop()
        for name in "ab":
            self.start(name)
        self.finish()

    def test_rebalance_storm(self):
        """Workers join and leave all the time, some by signal, some by death."""
        self.start("0")
        for number in range(1, 60 if FULL else 4):
            self.start(f"{number}")
            time.sleep(1 if FULL else 0.5)
            self.check_alive()
            worker = self.workers.pop(self.rng.choice(sorted(self.workers)))
            if self.rng.random() < 0.3:
                worker.kill()
            else:
                worker.stop()
        self.start("last")
        self.finish()

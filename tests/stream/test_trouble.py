"""What a worker meets besides crashes: records that compaction takes away, a damaged index, a store that is away, workers of one name."""
import json
import os
import random
import signal
import subprocess
import tempfile
import time
import unittest

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from pages import text_of
from support import Line, Worker, brokers, header, redis_url, services, verdict, wait_for


def page(name, text, **fields):
    return json.dumps({"id": name, "text": text, **fields}).encode()


def set_topic(topic, **settings):
    entries = [ConfigEntry(key.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": brokers()})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def offsets(topic):
    """The offsets of the records that are in partition 0 of a topic."""
    reader = Consumer({"bootstrap.servers": brokers(), "group.id": "offsets", "enable.auto.commit": False, "log_level": 2,
                       "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, 0, 0)])
    found = []
    while True:
        record = reader.poll(10)
        if record is None or record.error():
            reader.close()
            return found
        found.append(record.offset())


class Trouble(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(self.id())
        made = tempfile.TemporaryDirectory(dir=services.folder)
        self.addCleanup(made.cleanup)
        self.folder = made.name

    def run_through(self, line, *options):
        return Worker(line, *options, "--until-end").finish()

    def keys(self, found):
        return {kind: [record.key().decode() for record in records] for kind, records in found.items()}


class Compacted(Trouble):
    """A page is indexed, its transaction is not committed, and compaction puts the same page at a new offset: it comes out as unique."""

    def fail_to_commit(self, line, place):
        """A worker that indexes all, and may write none of it."""
        for kind in ("unique", "dead"):
            set_topic(line.outputs[kind], max_message_bytes=100)
        worker = Worker(line, *place, "--until-end", "-X", "producer.batch.size=1")
        self.assertEqual(worker.ended(), 4, worker.said())
        self.assertIn("max.message.bytes", worker.said())
        for kind in ("unique", "dead"):
            set_topic(line.outputs[kind], max_message_bytes=1000000)

    def check(self, place):
        one, two, three = (text_of(self.rng) for _ in range(3))
        line = Line(config={"cleanup.policy": "compact", "segment.ms": 50, "min.cleanable.dirty.ratio": 0.001, "max.compaction.lag.ms": 100})
        line.fill([{"key": "k1", "value": page("one", one)}, {"key": "k2", "value": page("two", two)}, {"key": "k0", "value": page("zero", three)}])
        self.fail_to_commit(line, place)
        time.sleep(0.2)
        # The same page at a new offset, and another page with the words of one that is replaced by other words.
        line.fill([{"key": "k1", "value": page("one", one, again=True)}, {"key": "k2", "value": page("two", "quite other words than before, and few")},
                   {"key": "k3", "value": page("three", two)}, {"key": "k4", "value": page("four", one)}, {"key": "k5", "value": page("five", three)}])
        count = 9
        for _ in range(3):
            time.sleep(0.2)
            line.fill([{"key": "roll", "value": page("roll", "a page so that there is one more segment")}])
        wait_for("compaction", lambda: not {0, 1} & set(offsets(line.source)), 0.3)
        left = len(offsets(line.source))
        worker = self.run_through(line, *place)
        found = line.read_all(left)
        keys = self.keys(found)
        self.assertEqual(sorted(keys["unique"]), ["k0", "k1", "k2", "k3", "roll"], worker.said())
        self.assertEqual([key for key in keys["duplicates"] if key != "roll"], ["k4", "k5"])
        self.assertEqual([verdict(record)["originalId"] for record in found["duplicates"]][:2], ["one", "zero"])
        self.assertLessEqual(left, count)
        # What was committed stays what it was: the page is a duplicate when it comes once more.
        line.fill([{"key": "k1", "value": page("one", one, again=2)}])
        self.run_through(line, *place)
        self.assertEqual(self.keys(line.read_all(left + 1))["duplicates"][-1], "k1")

    def test_folder(self):
        self.check(["--index", os.path.join(self.folder, "seen"), "--preset", "crawl"])

    def test_store(self):
        self.check(["--store", redis_url("compacted")])


class Damaged(Trouble):
    """One damaged key of the index: the pages that meet it are dead letters that say so, the others go on."""

    def redis(self, *words):
        url = services.get("redis", "REDIS_URL")
        port = url.split(":")[2].split("/")[0]
        return subprocess.run(["redis-cli", "-p", port, *words], capture_output=True, check=True).stdout

    def damage(self, prefix, name):
        """Overwrites the document of this id; gives its key."""
        script = "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do if string.find(redis.call('GET', k), ARGV[2], 1, true) then " \
                 "redis.call('COPY', k, 'kept', 'REPLACE') redis.call('SET', k, 'noise') end end"
        self.redis("EVAL", script, "0", "{%s}d*" % prefix, name)

    def mend(self, prefix):
        script = "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do if redis.call('GET', k) == 'noise' then redis.call('COPY', 'kept', k, " \
                 "'REPLACE') end end redis.call('DEL', 'kept')"
        self.redis("EVAL", script, "0", "{%s}d*" % prefix)

    def test_one_key(self):
        line, prefix = Line(), "damaged"
        texts = [text_of(self.rng) for _ in range(6)]
        store = ["--store", redis_url(prefix)]
        line.fill([{"key": f"k{i}", "value": page(f"page-{i}-here", text)} for i, text in enumerate(texts)])
        self.run_through(line, *store)
        self.damage(prefix, "page-3-here")
        line.fill([{"key": "copy", "value": page("copy", texts[3])}, {"key": "new", "value": page("new", text_of(self.rng))},
                   {"key": "page-3-here", "value": None}, {"key": "last", "value": page("last", texts[2])}])
        worker = self.run_through(line, *store)
        found = line.read_all(10)
        keys = self.keys(found)
        self.assertEqual(sorted(keys["dead"]), ["copy", "page-3-here"], worker.said())
        self.assertIn("new", keys["unique"])
        self.assertEqual(keys["duplicates"], ["last"])
        for record in found["dead"]:
            self.assertIn(b"the index is damaged where it belongs", header(record, "doppel-error"))
        self.assertRegex(worker.said(), f"{line.source}/0/6: the index is damaged where it belongs: .*document of number 4 is not what doppel wrote")
        # Without a topic for dead letters it ends, and says what to do; once the key is whole, nothing is lost.
        line.fill([{"key": "again", "value": page("again", texts[3])}])
        options = line.options()
        at = options.index("--dead-letter")
        without = Line(source=line)
        without.options = lambda: options[:at] + options[at + 2:]
        worker = Worker(without, *store, "--until-end")
        self.assertEqual(worker.ended(), 4, worker.said())
        self.assertRegex(worker.said(), "damaged where this record belongs[^\n]*\n[^\n]*give --dead-letter TOPIC for such records")
        self.mend(prefix)
        Worker(without, *store, "--until-end").finish()
        self.assertEqual(self.keys(line.read_all(11))["duplicates"], ["last", "again"])


class Away(Trouble):
    """A store that is away for longer than anybody waits: SIGTERM ends a worker all the same, and nothing is lost or doubled."""

    def test_stopped(self):
        line = Line()
        store = ["--store", redis_url("away") + "&retry=900&timeout=900"]
        line.fill([{"key": "k0", "value": page("zero", text_of(self.rng))}])
        worker = Worker(line, *store)
        wait_for("a page", lambda: line.consumed() == 1)
        redis = services.pid("redis", "redis")
        os.kill(redis, signal.SIGSTOP)
        try:
            line.fill([{"key": f"k{i}", "value": page(f"page{i}", text_of(self.rng))} for i in range(1, 9)])
            time.sleep(1)
            worker.stop()
        finally:
            os.kill(redis, signal.SIGCONT)
        self.run_through(line, *store)
        keys = self.keys(line.read_all(9))
        self.assertEqual(keys, {"unique": [f"k{i}" for i in range(9)], "duplicates": [], "dead": []})

    def test_refused(self):
        """The same when nobody listens: the worker is between two attempts."""
        line = Line()
        folder = os.path.join(self.folder, "redis")
        own = services.call_in(folder, "start", "redis")["REDIS_URL"]
        worker = Worker(line, "--store", own + "?prefix=away&retry=900")
        line.fill([{"key": "k0", "value": page("zero", text_of(self.rng))}])
        wait_for("a page", lambda: line.consumed() == 1)
        services.call_in(folder, "stop", "redis")
        line.fill([{"key": "k1", "value": page("one", text_of(self.rng))}])
        time.sleep(1)
        worker.stop()
        self.assertEqual(line.consumed(), 1)


class SameName(Trouble):
    """Two workers whose folders are called alike, as in containers with one host name: each has its own transactions."""

    def test_paths(self):
        line = Line(partitions=2)
        folder, elsewhere = os.path.join(self.folder, "data"), os.path.join(self.folder, "elsewhere")
        os.mkdir(folder)
        index = ["--index", os.path.join(folder, "seen"), "--preset", "crawl", "--batch", "5"]
        first = Worker(line, *index)
        wait_for("the first", lambda: "partitions assigned" in first.said())
        os.rename(folder, elsewhere)  # it has its files open
        os.mkdir(folder)
        second = Worker(line, *index)
        wait_for("both", lambda: "1 partition assigned" in first.said() and "1 partition assigned" in second.said())
        for round_ in range(10):
            line.fill([{"key": f"{round_}-{i}", "partition": i % 2, "value": page(f"page{round_}-{i}", text_of(self.rng))} for i in range(10)])
            time.sleep(0.1)
        wait_for("all pages", lambda: line.consumed() == 100)
        for worker in (first, second):
            self.assertNotIn("failed fatally", worker.said())
            worker.stop()
        self.assertEqual(len(self.keys(line.read_all(100))["unique"]), 100)

    def test_given_names(self):
        """A given name is given up to whoever came later: the older worker ends with exit code 4."""
        line = Line(partitions=2)
        workers = []
        for name in "ab":
            workers.append(Worker(line, "--index", os.path.join(self.folder, name), "--preset", "crawl", "--instance", "one"))
            wait_for("partitions", lambda: "assigned" in workers[-1].said())
        for i in range(40):
            line.fill([{"key": f"{i}-{k}", "partition": k, "value": page(f"page{i}-{k}", text_of(self.rng))} for k in range(2)])
            time.sleep(0.05)
        wait_for("all pages", lambda: line.consumed() == 80)
        self.assertEqual(workers[0].ended(), 4, workers[0].said())
        self.assertIn("is there another worker with --instance one", workers[0].said())
        workers[1].stop()
        self.assertEqual(len(self.keys(line.read_all(80))["unique"]), 80)

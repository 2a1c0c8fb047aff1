"""What the tests of the stream share: a real Kafka, a real Redis, topics, and workers as processes of their own.

All of tests/stream is run by `python run.py BUILD`, so that Kafka starts once; BUILD holds the command `doppel`.
"""
import atexit
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import DOPPEL, FULL, ROOT, SANITIZED, add_by_library, wait_for_end, wait_until  # noqa: E402,F401

PATIENCE = 600 if FULL else 180  # seconds for anything that is waited for: far more than it takes
# A dead worker is missed after two seconds, and a broker that is back is found within half a second, in place of ten.
SESSION = ["-X", "session.timeout.ms=2000", "-X", "heartbeat.interval.ms=200", "-X", "reconnect.backoff.max.ms=500"]


def wait_for(what, ready, every=0.05):
    return wait_until(what, ready, PATIENCE, every)


# ---- services


class Services:
    """Those of scripts/services, in a folder of their own, started when they are first asked for."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="doppel-stream-")
        self.found = {}
        atexit.register(self.stop)
        # Waits for the end of this process, however it ends, and stops what is left.
        self.guard = subprocess.Popen(["sh", "-c", 'read -r never; "$0" "$1" stop redis kafka --dir "$2/services"; rm -rf "$2"', sys.executable,
                                       os.path.join(ROOT, "scripts", "services"), self.folder], stdin=subprocess.PIPE, start_new_session=True)

    def call(self, *words):
        return self.call_in(os.path.join(self.folder, "services"), *words)

    def call_in(self, folder, *words):
        """Of services of a test's own, which it ends itself."""
        command = [sys.executable, os.path.join(ROOT, "scripts", "services"), *words, "--dir", folder]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def get(self, service, name):
        if name not in self.found:
            self.found.update(self.call("start", service))
        return self.found[name]

    def pid(self, service, node):
        with open(os.path.join(self.folder, "services", service, node, "pid")) as file:
            return int(file.read().split()[0])

    def stop(self):
        for worker in list(Worker.running):
            worker.kill()
        self.guard.stdin.close()
        self.guard.wait()


services = Services()


def brokers():
    return services.get("kafka", "KAFKA_BROKERS")


def redis_url(prefix):
    return services.get("redis", "REDIS_URL") + "?prefix=" + prefix


# ---- topics


class Line:
    """An input topic, and what a group of workers makes of it: three output topics."""

    made = 0

    def __init__(self, partitions=1, source=None, config=None):
        Line.made += 1
        self.name = f"line{Line.made}"
        self.partitions = source.partitions if source else partitions
        self.source = source.source if source else self.name + "-in"
        self.outputs = {kind: f"{self.name}-{kind}" for kind in ("unique", "duplicates", "dead")}
        self.group = self.name
        admin = AdminClient({"bootstrap.servers": brokers()})
        topics = [NewTopic(topic, self.partitions, 1) for topic in self.outputs.values()]
        if not source:
            topics.append(NewTopic(self.source, self.partitions, 1, config=config or {}))
        for future in admin.create_topics(topics).values():
            future.result()
        self.watcher = None

    def options(self):
        return ["--brokers", brokers(), "--in", self.source, "--unique", self.outputs["unique"], "--duplicates",
                self.outputs["duplicates"], "--dead-letter", self.outputs["dead"], "--group", self.group]

    def fill(self, records):
        """Sends records: dicts with value, and perhaps key, headers, partition."""
        producer = Producer({"bootstrap.servers": brokers(), "linger.ms": 5, "message.max.bytes": 32 << 20, "enable.idempotence": True,
                             "queue.buffering.max.kbytes": 1 << 20, "queue.buffering.max.messages": 1000000, "log_level": 2})
        for record in records:
            producer.produce(self.source, **{"partition": 0, **record})
        assert producer.flush(PATIENCE) == 0

    def places(self, topic):
        return [TopicPartition(topic, partition) for partition in range(self.partitions)]

    def consumed(self):
        """How many records of the input the group is past."""
        if not self.watcher:
            self.watcher = Consumer({"bootstrap.servers": brokers(), "group.id": self.group, "log_level": 2,
                                     "reconnect.backoff.max.ms": 200})
        try:
            return sum(max(place.offset, 0) for place in self.watcher.committed(self.places(self.source), timeout=2))
        except KafkaException:  # a broker that restarts, or a transaction that is just ending
            return 0

    def read(self):
        """All records of the outputs that are there for good, up to the first open transaction: {kind: records}."""
        kinds = {topic: kind for kind, topic in self.outputs.items()}
        reader = Consumer({"bootstrap.servers": brokers(), "group.id": "reader", "enable.auto.commit": False, "log_level": 2,
                           "isolation.level": "read_committed", "enable.partition.eof": True, "fetch.wait.max.ms": 10,
                           "fetch.message.max.bytes": 32 << 20})
        left = {(topic, partition) for topic in kinds for partition in range(self.partitions)}
        reader.assign([TopicPartition(topic, partition, 0) for topic, partition in left])
        found, limit = {kind: [] for kind in self.outputs}, time.monotonic() + PATIENCE
        while left:
            assert time.monotonic() < limit, f"the outputs of {self.name} have no end"
            for record in reader.consume(10000 if FULL else 100, timeout=0.05):
                if not record.error():
                    found[kinds[record.topic()]].append(record)
                elif record.error().code() == KafkaError._PARTITION_EOF:
                    left.discard((record.topic(), record.partition()))
        reader.close()
        return found

    def read_all(self, count):
        """The same, once there are as many records as were sent."""
        def whole():
            found = self.read()
            return found if sum(map(len, found.values())) >= count else None

        return wait_for(f"{count} records on the outputs of {self.name}", whole)


def header(record, name):
    """The last header of that name, None if there is none."""
    values = [value for key, value in record.headers() or [] if key == name]
    return values[-1] if values else None


def verdict(record):
    return json.loads(record.value())["verdict"]


# ---- workers


def die_with_parent(kill=9, set_death_signal=1):
    ctypes.CDLL(None).prctl(set_death_signal, kill)


class Worker:
    """A `doppel stream` of its own."""

    running = set()

    def __init__(self, line, *options):
        self.log = tempfile.TemporaryFile(mode="w+", errors="replace", dir=services.folder)
        self.command = [DOPPEL, "stream", *line.options(), *SESSION, *map(str, options)]
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
                                        preexec_fn=die_with_parent)
        Worker.running.add(self)

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def alive(self):
        return self.process.poll() is None

    def ended(self):
        """Waits for its end; gives its exit code."""
        code = wait_for_end(self.process, self.command, self.said, PATIENCE)
        Worker.running.discard(self)
        assert "Sanitizer" not in self.said(), self.said()
        return code

    def finish(self):
        """Waits for the end of a worker that ends by itself, and well."""
        code = self.ended()
        assert code == 0, f"{' '.join(self.command)}: exit code {code}:\n{self.said()}"
        return self

    def stop(self):
        """Ends it by signal; well, unless it had not even begun."""
        if self.alive():
            self.process.terminate()
        if self.ended() == -signal.SIGTERM and not self.said():
            return self
        return self.finish()

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        Worker.running.discard(self)
        assert "Sanitizer" not in self.said(), self.said()

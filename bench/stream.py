"""Measures doppel stream for bench/run: pages a second from topic to topics, with an index folder and with a Redis, one
worker and two; the time from a page being sent to its verdict being readable; and the same loop in Python without doppel.

BENCH_STREAMED=500000 in the environment is how many pages there are; BENCH_STREAM_RATE=7500 how many a second are sent when
latency is measured.
"""
import json
import os
import shutil
import subprocess
import sys
import time

from near import figures
from shared import Services

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CLIENT = os.path.join(ROOT, "bench", "stream_client.py")
ASKED = 15000  # pages a second
# Kafka as it is run where speed counts: its Java compiles all it can, and has more memory.
JAVA = "-XX:TieredStopAtLevel=4 -Xms1g -Xmx1g"


class Streaming:
    """A Kafka with pages in it, and workers over them. Each run has a group and topics of its own."""

    def __init__(self, bench, venv):
        quick = bench.options.quick
        self.bench = bench
        self.count = int(os.environ.get("BENCH_STREAMED", 20000 if quick else 500000))
        self.rate = int(os.environ.get("BENCH_STREAM_RATE", ASKED // 2))
        self.seconds = 5 if quick else 30
        self.folder = os.path.join(bench.options.build, "bench-stream")
        self.doppel = os.path.join(bench.options.build, "doppel")
        self.python = os.path.join(venv, "bin", "python")
        self.services = Services(os.path.join(self.folder, "services"))
        self.runs = 0
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def start(self):
        os.environ["KAFKA_OPTS"] = JAVA
        self.brokers = self.services.start("kafka")
        del os.environ["KAFKA_OPTS"]
        self.call("topics", "pages")
        self.call("fill", "pages", str(self.count))

    def call(self, what, *words):
        return figures([self.python, CLIENT, what, self.brokers, *words])

    def outputs(self):
        """New topics for what comes out; those of the run before are gone."""
        if self.runs:
            self.call("remove", f"unique{self.runs}", f"duplicates{self.runs}")
        self.runs += 1
        self.call("topics", f"unique{self.runs}", f"duplicates{self.runs}")

    def workers(self, place, number=1, topic="pages", *more):
        command = [self.doppel, "stream", "--brokers", self.brokers, "--in", topic, "--unique", f"unique{self.runs}",
                   "--duplicates", f"duplicates{self.runs}", "--group", f"group{self.runs}",
                   "--preset", "crawl", "--near", "distance", *place, *more]
        with open(os.path.join(self.folder, "log"), "w") as log:
            return [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) for _ in range(number)]

    def wait_for_partitions(self, workers):
        """Until a worker says that it has some."""
        while True:
            if any(worker.poll() for worker in workers):
                sys.exit(f"bench: doppel stream failed; see {self.folder}/log")
            with open(os.path.join(self.folder, "log")) as log:
                if "to work on" in log.read():
                    return time.perf_counter()
            time.sleep(0.005)

    def broker_time(self):
        """Seconds that Kafka was on a CPU."""
        with open(os.path.join(self.services.folder, "kafka", "broker", "pid")) as file:
            pid = file.read().split()[0]
        with open(f"/proc/{pid}/stat") as file:
            return sum(map(int, file.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK")

    def pass_through(self, place, number=1):
        """Pages a second, from the time that a worker has partitions to its end; pages of a transaction; seconds of a page on
        a CPU in doppel and in Kafka."""
        self.outputs()
        broker, own = self.broker_time(), os.times()
        workers = self.workers(place, number, "pages", "--until-end", "--json")
        began = self.wait_for_partitions(workers)
        summaries = [json.loads(worker.communicate()[0] or "null") for worker in workers]
        seconds, after = time.perf_counter() - began, os.times()
        if any(worker.returncode for worker in workers):
            sys.exit(f"bench: doppel stream failed; see {self.folder}/log")
        check(self, summaries)
        own = after.children_user + after.children_system - own.children_user - own.children_system
        return {"rate": self.count / seconds, "batch": self.count / sum(one["transactions"] for one in summaries),
                "doppel": own / self.count, "kafka": (self.broker_time() - broker) / self.count}


def check(streaming, summaries):
    """A tenth of the pages are copies, which are found wherever they are."""
    unique, duplicates = (sum(one[name] for one in summaries) for name in ("unique", "duplicates"))
    if (unique, duplicates) != (streaming.count - streaming.count // 10, streaming.count // 10):
        sys.exit(f"bench: doppel stream found {unique} unique pages and {duplicates} duplicates of {streaming.count}")


def measure_throughput(streaming):
    table, of = streaming.bench.table, f"{streaming.count:,} pages of 2 KB"
    folder = os.path.join(streaming.folder, "index")

    def add(what, found, command, **more):
        table.add(what, found["rate"] / 1e3, "K/s", command=command, **more)
        table.add("    pages of a transaction", found["batch"], "", command=command)
        table.add("    a page, on a CPU in doppel", found["doppel"] * 1e6, "us", command=command)
        table.add("    a page, on a CPU in Kafka", found["kafka"] * 1e6, "us", command=command)
    found = streaming.pass_through(["--index", folder])
    shutil.rmtree(folder)
    add(f"doppel stream, {of}, LMDB", found, "doppel stream --until-end --index DIR", budget=ASKED / 1e3)
    streaming.bench.results["stream"] = found["rate"]
    url = streaming.services.start("redis")
    for workers in (1, 2):
        found = streaming.pass_through(["--store", f"{url}?prefix=w{workers}&count={streaming.count}"], workers)
        name = f"{workers} worker{'s' * (workers > 1)}"
        add(f"the same, Redis, {name}", found, f"doppel stream --until-end --store URL, {name}")
    streaming.services.call("stop", "redis")


def measure_latency(streaming):
    """From a page being sent to the verdict being there for a reader of what is committed."""
    table = streaming.bench.table
    streaming.outputs()
    streaming.call("topics", "steady")
    folder = os.path.join(streaming.folder, "index")
    worker, = streaming.workers(["--index", folder], 1, "steady")
    try:
        found = streaming.call("steady", "steady", f"unique{streaming.runs}", f"duplicates{streaming.runs}", str(streaming.rate),
                               str(streaming.seconds))
    finally:
        worker.terminate()
        worker.communicate()
    command = f"doppel stream --index DIR, {streaming.rate:,} pages/s for {streaming.seconds} s"
    table.add(f"from sent to readable, {streaming.rate:,} pages/s, median", found["median"] * 1e3, "ms", budget=100.0,
              command=command)
    table.add("    one in a hundred takes more than", found["p99"] * 1e3, "ms", command=command)
    table.add("    the longest", found["longest"] * 1e3, "ms", command=command)
    table.add("    sent a second", found["rate"] / 1e3, "K/s", command=command)


def measure_loop(streaming):
    """The peer: reads, takes the JSON apart, writes to the topic of the uniques, in transactions, and knows nothing."""
    table, mine = streaming.bench.table, streaming.bench.results["stream"]
    for batch in (500, 4000):
        streaming.outputs()
        found = streaming.call("loop", "pages", f"unique{streaming.runs}", str(streaming.count), str(batch))
        table.add(f"peer: confluent-kafka in Python, no doppel, transactions of {batch}", found["rate"] / 1e3, "K/s",
                  command=f"bench/stream_client.py loop {batch}", peer="confluent-kafka", ratio=mine / found["rate"])


def measure_stream(bench, venv):
    if not venv:
        print("no Python client for Kafka: the stream is left out")
        return
    streaming = Streaming(bench, venv)
    try:
        streaming.start()
        measure_throughput(streaming)
        measure_latency(streaming)
        if not bench.options.no_peers:
            measure_loop(streaming)
    finally:
        streaming.services.stop()
    shutil.rmtree(streaming.folder)

"""Measures doppel serve for bench/run: checks, durable adds and batches over HTTP, many connections, and a small FastAPI
service with the index of PyPI's simhash, all under the load of wrk on the same machine.

BENCH_SERVED=1000000 in the environment is how many documents the index has; BENCH_BUSY=600 for how many seconds many
connections are held.
"""
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORDS = 300  # a document, about 2 KB
PEER_DOCUMENTS = 100000


class Serving:
    """The documents, the folder of the index, a server and its load."""

    def __init__(self, bench):
        quick = bench.options.quick
        self.bench = bench
        self.count = int(os.environ.get("BENCH_SERVED", 20000 if quick else 1000000))
        self.busy = int(os.environ.get("BENCH_BUSY", 5 if quick else 600))
        self.seconds = 3 if quick else 20
        self.folder = os.path.join(bench.options.build, "bench-serve")
        self.doppel = os.path.join(bench.options.build, "doppel")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        rng = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(30000)]

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, count, seed):
        rng = random.Random(seed)
        with open(self.path(name), "w") as file:
            for number in range(count):
                file.write('{"id":"%s%d","url":"https://example.org/%s/%d","text":"%s"}\n'
                           % (name, number, name, number, " ".join(rng.choices(self.words, k=WORDS))))
        return self.path(name)

    def start(self, command, ready, **environment):
        self.log = open(self.path("log"), "w")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log, env=dict(os.environ, **environment))
        for _ in range(3000):
            try:
                urllib.request.urlopen(ready).read()
                return
            except OSError:
                time.sleep(0.1)
        sys.exit(f"bench: {command[0]} does not answer; see {self.path('log')}")

    def serve(self, index):
        self.port = free_port()
        # One client has all connections here.
        self.start([self.doppel, "serve", "--index", index, "--listen", f"127.0.0.1:{self.port}", "--max-per-client", "0"],
                   f"http://127.0.0.1:{self.port}/readyz")

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def load(self, path, source, connections, seconds=None):
        """Requests a second, median and 99th percentile in ms, and errors."""
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds or self.seconds}s", "-s", os.path.join(ROOT, "bench", "serve.lua"),
                   f"http://127.0.0.1:{self.port}", "--", path, source]
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        figures = re.search(r"figures (\S+) (\S+) (\S+) (\S+)", output)
        return (float(figures[1]), float(figures[2]), float(figures[3]), int(figures[4])), \
            f"wrk -t1 -c{connections} -s bench/serve.lua -- {path}"

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def measure_batch(serving, queries, count):
    table = serving.bench.table
    started = time.perf_counter()
    subprocess.run([serving.doppel, "check", "--index", serving.path("index"), queries], stdout=subprocess.DEVNULL)
    taken = time.perf_counter() - started
    with open(queries, "rb") as file:
        body = file.read()
    address = f"http://127.0.0.1:{serving.port}/v1/batch?op=check"
    started = time.perf_counter()
    answer = urllib.request.urlopen(urllib.request.Request(address, body, {"Content-Type": "application/x-ndjson"})).read()
    batch = time.perf_counter() - started
    if answer.count(b"\n") != count:
        sys.exit("bench: the batch was not answered line by line")
    table.add("checks in one /v1/batch", count / batch / 1000, "K/s", command="POST /v1/batch?op=check", peer="doppel check",
              ratio=taken / batch)


def measure_connections(serving, queries):
    """Idle and busy connections together: memory must not grow."""
    idle = [socket.create_connection(("127.0.0.1", serving.port)) for _ in range(1000)]
    serving.load("/v1/check", queries, 200, 5)
    before = serving.resident()
    figures, command = serving.load("/v1/check", queries, 200, serving.busy)
    after = serving.resident()
    for link in idle:
        link.close()
    name = f"1,000 idle and 200 busy connections for {serving.busy} s"
    serving.bench.table.add(name, figures[0] / 1000, "K checks/s", command=command)
    serving.bench.table.add("the same, errors", figures[3], "", budget=0, command=command)
    serving.bench.table.add("the same, memory at its end", after / 1e6, "MB", command=command, peer="at its beginning",
                            ratio=after / before)


def measure_serve(bench):
    serving = Serving(bench)
    table, count = bench.table, 20000
    documents, queries = serving.write("documents", serving.count, 1), serving.write("queries", count, 2)
    new = serving.write("new", 200000 if not bench.options.quick else 40000, 3)
    subprocess.run([serving.doppel, "add", "--index", serving.path("index"), documents], stdout=subprocess.DEVNULL, check=True)
    os.remove(documents)
    serving.serve(serving.path("index"))
    of = f"{serving.count:,} documents"
    figures, command = serving.load("/v1/check", queries, 16)
    table.add(f"checks of 2 KB by HTTP, {of}", figures[0] / 1000, "K/s", budget=20, command=command)
    table.add("the same, 99th percentile", figures[2], "ms", budget=10, command=command)
    figures, command = serving.load("/v1/documents", new, 64)
    table.add("durable adds by HTTP, 64 connections", figures[0] / 1000, "K/s", budget=5, command=command)
    table.add("the same, 99th percentile", figures[2], "ms", command=command)
    measure_batch(serving, queries, count)
    measure_connections(serving, queries)
    serving.stop()
    bench.results["serving"] = serving


def measure_serve_peers(bench, venv):
    """The peer and doppel with as many documents each, one after the other."""
    serving = bench.results["serving"]
    count = min(PEER_DOCUMENTS, serving.count)
    documents = serving.write("peer", count, 4)
    queries = serving.path("queries")
    subprocess.run([serving.doppel, "add", "--index", serving.path("peers-index"), "--preset", "crawl",
                    "--near", "distance", documents],
                   stdout=subprocess.DEVNULL, check=True)
    serving.serve(serving.path("peers-index"))
    own, command = serving.load("/v1/check", queries, 16)
    serving.stop()
    serving.port = free_port()
    simhash = [name for name in os.listdir(os.path.join(venv, "apart")) if name.startswith("simhash==")]
    serving.start([os.path.join(venv, "bin", "python"), os.path.join(ROOT, "bench", "peer_serve.py"), documents, str(serving.port)],
                  f"http://127.0.0.1:{serving.port}/ready", PYTHONPATH=os.path.join(venv, "apart", simhash[0]))
    peer, _ = serving.load("/check", queries, 16)
    serving.stop()
    bench.table.add(f"checks by HTTP, {count:,} documents, near distance", own[0] / 1000, "K/s", command=command,
                    peer="FastAPI with simhash", ratio=own[0] / peer[0])
    shutil.rmtree(serving.folder)

"""Measures the engine over a Redis that is shared, for bench/run (part redis): adds, checks, memory a document, by distance,
by similarity and with titles, from one process and from four, and eight that add copies of the same pages; beside plain SET
and GET, and beside datasketch's MinHashLSH in the same Redis, on the same cores.

BENCH_SHARED=1 in the environment is how many million documents there are by distance; otherwise it is a tenth of them.
"""
import os
import shutil
import subprocess
import sys

from near import figures

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEYS = 8  # that an add reads and writes: the document, three names, four tables
# Modes of bench_redis: what they are called, K adds a second, bytes a document and, of these, without its shingle hashes.
MODES = {"distance": ("near by distance", 20, 700, None), "similarity": ("by similarity, all hashes kept", 7, None, 1000),
         "crawl": ("preset crawl", 7, 1600, None), "titles": ("by distance, with titles", 4, None, None),
         "general": ("preset general, with titles", None, None, None)}


class Services:
    """Those of scripts/services, in a folder of their own."""

    def __init__(self, folder):
        self.folder = folder
        self.names = []

    def call(self, what, *words):
        done = subprocess.run([os.path.join(ROOT, "scripts", "services"), what, *words, "--dir", self.folder],
                              capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"bench: scripts/services {what}: {done.stdout}{done.stderr}")
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def start(self, name, *settings):
        """Where it is, as scripts/services says it."""
        self.names.append(name)
        found = self.call("start", name, *(word for setting in settings for word in ("--set", setting)))
        return next(iter(found.values()))

    def stop(self):
        if self.names:
            self.call("stop", *self.names)
        self.names = []
        shutil.rmtree(self.folder, ignore_errors=True)


def budget(limit):
    return {} if limit is None else {"budget": float(limit)}


def measure_mode(bench, program, port, millions, mode):
    """The lines of one mode; gives what was found."""
    name, adds, size, bare = MODES[mode]
    found = figures([program, "shared", port, f"{millions}M", mode])
    command = f"bench_redis shared {millions:g}M {mode}"

    def add(what, value, unit, limit=None):
        bench.table.add(what, value, unit, command=command, **budget(limit))
    add(f"adds to a Redis, batches of 1,000, {millions:g} M documents, {name}", found["adds"] / 1e3, "K/s", adds)
    add("    four processes", found["adds of some"] / 1e3, "K/s", found["adds"] / 1e3)
    add("    from nothing", found["adds from nothing"] / 1e3, "K/s")
    add("    commits decided again, a thousand adds, one process", found["retries"] * 1e3, "")
    add("    commits decided again, a thousand adds, four processes", found["retries of some"] * 1e3, "")
    add("    one add, on a CPU in Redis", found["seconds of adds in Redis"] * 1e6, "us")
    add("    one add, on a CPU in the client", found["seconds of adds in the client"] * 1e6, "us")
    add("    single adds, median", found["p50 of a single add"] * 1e6, "us")
    add("    single adds, one in a hundred takes more than", found["p99 of a single add"] * 1e6, "us")
    add("    checks, one in five a duplicate", found["checks"] / 1e3, "K/s")
    add("    checks, four processes", found["checks of some"] / 1e3, "K/s")
    add("    one check, on a CPU in Redis", found["seconds of checks in Redis"] * 1e6, "us")
    add("    memory a document", found["bytes"], "B", size)
    if found["bytes without sets"] < found["bytes"]:
        add("    memory a document, without its shingle hashes", found["bytes without sets"], "B", bare)
    return found


def measure_cliques(bench, program, port, millions, mode):
    found = figures([program, "cliques", port, f"{millions}M", mode])
    command = f"bench_redis cliques {millions:g}M {mode}"
    bench.table.add(f"eight processes add the same cliques, {millions:g} M documents, {MODES[mode][0]}",
                    found["adds of cliques"] / 1e3, "K/s", command=command)
    bench.table.add("    commits decided again, a thousand adds", found["retries of cliques"] * 1e3, "", command=command)
    bench.table.add("    turns asked for, a thousand adds", found["turns of cliques"] / millions / 1e3, "", command=command)


def measure_shared(bench):
    millions = float(os.environ.get("BENCH_SHARED", 0.03 if bench.options.quick else 1))
    services = Services(os.path.join(bench.options.build, "bench-redis"))
    port = services.start("redis").split(":")[-1].split("/")[0]
    program = os.path.join(bench.options.build, "bench", "bench_redis")
    try:
        found = {mode: measure_mode(bench, program, port, millions if mode == "distance" else millions / 10, mode)
                 for mode in MODES}
        for mode in ("similarity", "crawl", "general"):
            measure_cliques(bench, program, port, millions / 20, mode)
        plain = figures([program, "plain", port, f"{millions}M"])
        pair = 1 / (1 / plain["sets"] + 1 / plain["gets"])
        bench.table.add("plain SET and GET of 200 bytes, pipelined", pair / 1e3, "K/s", command=f"bench_redis plain {millions:g}M")
        bench.table.add("    eight of each, as many keys as an add has", pair / KEYS / 1e3, "K/s",
                        command=f"bench_redis plain {millions:g}M", peer="adds", ratio=pair / KEYS / found["distance"]["adds"])
        # The peer finds by similarity, too.
        bench.results["shared"] = found["similarity"]["adds"]
    finally:
        services.stop()


def measure_shared_peers(bench, venv):
    if not venv:
        return
    services = Services(os.path.join(bench.options.build, "bench-redis"))
    port = services.start("redis").split(":")[-1].split("/")[0]
    seconds = 5 if bench.options.quick else 30
    best = {"text": 0, "ready": 0}
    try:
        for how, what, name in (("single", "text", "one by one"), ("session", "text", "its insertion session"),
                                ("single", "ready", "one by one, signatures given"),
                                ("session", "ready", "its insertion session, signatures given")):
            found = figures([os.path.join(venv, "bin", "python"), os.path.join(ROOT, "bench", "peer_redis.py"), port,
                             str(seconds), how, what])
            command = f"bench/peer_redis.py {seconds} {how} {what}"
            bench.table.add(f"peer: datasketch on Redis, query and insertion, {name}", found["rate"] / 1e3, "K/s",
                            command=command, peer="datasketch", ratio=bench.results["shared"] / found["rate"])
            bench.table.add("    memory a document", found["bytes"], "B", command=command)
            best[what] = max(best[what], found["rate"])
    finally:
        services.stop()
    ratio = {what: bench.results["shared"] / rate for what, rate in best.items()}
    bench.table.add("doppel to datasketch on Redis, both from text", ratio["text"], "x", budget=10, command="bench/run",
                    peer="datasketch", ratio=ratio["text"])
    bench.table.add("    doppel from text, datasketch with signatures given", ratio["ready"], "x", command="bench/run",
                    peer="datasketch", ratio=ratio["ready"])

"""Measures the engine over a Redis that is shared, for bench/run (part redis): adds, checks, memory a document, with
titles apart, beside plain SET and GET, and beside datasketch's MinHashLSH in the same Redis, on the same cores.

BENCH_SHARED=1 in the environment is how many million documents there are; with titles it is a tenth of them.
"""
import os
import shutil
import subprocess
import sys

from near import figures

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEYS = 8  # that an add reads and writes: the document, three names, four bands


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


def add_lines(bench, found, command, of, titles):
    """The lines of one run; budgets are those of documents without titles."""
    table = bench.table

    def asked(budget):
        return {} if titles else {"budget": budget}
    table.add(f"adds to a Redis, batches of 1,000, {of}", found["adds"] / 1e3, "K/s", command=command, **asked(10.0))
    table.add("    four processes", found["adds of four"] / 1e3, "K/s", command=command)
    table.add("    from nothing", found["adds from nothing"] / 1e3, "K/s", command=command)
    table.add("    one add, on a CPU in Redis", found["seconds of adds in Redis"] * 1e6, "us", command=command)
    table.add("    one add, on a CPU in the client", found["seconds of adds in the client"] * 1e6, "us", command=command)
    table.add("    single adds, median", found["p50 of a single add"] * 1e6, "us", command=command)
    table.add("    single adds, one in a hundred takes more than", found["p99 of a single add"] * 1e6, "us", command=command)
    table.add("    checks, one in five a duplicate", found["checks"] / 1e3, "K/s", command=command)
    table.add("    checks, four processes", found["checks of four"] / 1e3, "K/s", command=command)
    table.add("    one check, on a CPU in Redis", found["seconds of checks in Redis"] * 1e6, "us", command=command)
    table.add("    memory a document", found["bytes"], "B", command=command, **asked(700.0))


def measure_shared(bench):
    millions = float(os.environ.get("BENCH_SHARED", 0.03 if bench.options.quick else 1))
    services = Services(os.path.join(bench.options.build, "bench-redis"))
    port = services.start("redis").split(":")[-1].split("/")[0]
    program = os.path.join(bench.options.build, "bench", "bench_redis")
    try:
        found = figures([program, "shared", port, f"{millions}M"])
        add_lines(bench, found, f"bench_redis shared {millions:g}M", f"{millions:g} M documents", False)
        some = millions / 10
        titled = figures([program, "shared", port, f"{some}M", "titles"])
        add_lines(bench, titled, f"bench_redis shared {some:g}M titles", f"{some:g} M documents with titles", True)
        plain = figures([program, "plain", port, f"{millions}M"])
        pair = 1 / (1 / plain["sets"] + 1 / plain["gets"])
        bench.table.add("plain SET and GET of 200 bytes, pipelined", pair / 1e3, "K/s", command=f"bench_redis plain {millions:g}M")
        bench.table.add("    eight of each, as many keys as an add has", pair / KEYS / 1e3, "K/s",
                        command=f"bench_redis plain {millions:g}M", peer="adds", ratio=pair / KEYS / found["adds"])
        bench.results["shared"] = found["adds"]
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

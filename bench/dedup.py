"""Measures the batch line for bench/run: doppel dedup from file to file, its memory, how it grows, pages and archives,
and the peers on the same file in the same run. bench/dedup_data.py makes the files.

BENCH_DEDUP_MB=1000 in the environment is the size of the large file, BENCH_DEDUP_SHORT=100,1000,10000 names the numbers
of short documents in thousands. Everything goes by the time of day, on two threads unless said.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import dedup_data as data
from table import CPU_CLOCK

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
METHODS = (("auto, similarity 0.8", ("--similarity", "0.8"), 100),
           ("simhash, distance 3", ("--method", "simhash", "--distance", "3"), 300))
PEERS = (("text-dedup", "apart", 20), ("datatrove", "apart", 20), ("rensa", "near", 5), ("rensa-alone", "near", 5))


class FromFileToFile:
    """The command, the folder of its files, and the table of its figures."""

    def __init__(self, bench, name):
        self.bench, self.quick = bench, bench.options.quick
        self.corpus = bench.options.corpus
        self.doppel = os.path.join(bench.options.build, "doppel")
        self.runs = 1 if self.quick else 3
        self.folder = os.path.join(self.corpus, name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def add(self, what, value, unit, command, **more):
        shown = " ".join(map(str, command)) if isinstance(command, list) else command
        for folder in (self.folder, self.corpus, self.bench.options.build):
            shown = shown.replace(folder + os.sep, "")
        self.bench.table.add(what, value, unit, command=shown, **more)


class Dedup(FromFileToFile):
    """Its sizes."""

    def __init__(self, bench):
        super().__init__(bench, "dedup")
        self.megabytes = int(os.environ.get("BENCH_DEDUP_MB", "50" if self.quick else "1000"))
        numbers = os.environ.get("BENCH_DEDUP_SHORT", "100" if self.quick else "100,1000,10000")
        self.short = [int(number) * 1000 for number in numbers.split(",")]
        self.slice = 5 if self.quick else 100  # MB the peers get
        self.pages = 10 if self.quick else 50  # MB of HTML


def into_cache(path):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def run(command, threads=None):
    """(seconds, peak memory in bytes) of a command. The peak is asked for while it runs: what the system tells
    afterwards counts the memory of this script too, from before it became the command. With the number of its threads,
    seconds go by the CPU where BENCH_CLOCK says so."""
    with tempfile.TemporaryFile() as said:
        started, memory, done = time.perf_counter(), 0, 0
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        while not done:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                memory = max([memory] + [int(line.split()[1]) for line in file if line.startswith("VmHWM")])
            time.sleep(0.005)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
        taken = time.perf_counter() - started
        if CPU_CLOCK and threads:
            taken = (usage.ru_utime + usage.ru_stime) / threads
        said.seek(0)
        if status:
            sys.exit(f"bench: {' '.join(command)} failed: {said.read().decode()}")
    return taken, memory * 1024


def dedup(dedup_, path, options, runs):
    """The command, its median and best seconds and its most memory; the kept documents are in out.jsonl."""
    command = [dedup_.doppel, "dedup", "--threads", "2", *options, path, "-o", dedup_.path("out.jsonl")]
    into_cache(path)
    seconds, memory = zip(*(run(command) for _ in range(runs)))
    return command, statistics.median(seconds), min(seconds), max(memory)


# ---- doppel ----

def measure_large(dedup_):
    path = data.near_copies(dedup_.corpus, dedup_.megabytes)
    size = os.path.getsize(path)
    for name, options, budget in METHODS:
        command, median, best, memory = dedup(dedup_, path, options, dedup_.runs)
        dedup_.add(f"doppel dedup, {dedup_.megabytes} MB, {name}", size / median / 1e6, "MB/s", command,
                   best=size / best / 1e6, budget=budget)
        dedup_.add("    peak memory", memory / 2**20, "MiB", command)
    os.remove(dedup_.path("out.jsonl"))


def measure_growth(dedup_):
    """Short documents: seconds and memory by their number."""
    for count in dedup_.short:
        path = data.short(dedup_.corpus, count)
        command, median, best, memory = dedup(dedup_, path, (), 1)
        size = f"{count // 1000} K" if count < 1000000 else f"{count // 1000000} M"
        dedup_.add(f"doppel dedup, {size} documents of 100 to 300 bytes", median, "s", command, best=best)
        dedup_.add("    a document", median / count * 1e6, "us", command)
        dedup_.add("    peak memory", memory / 2**20, "MiB", command, budget=512 + 200 * count / 2**20)
        dedup_.add("    peak memory a document", memory / count, "B", command)
        os.remove(dedup_.path("out.jsonl"))
        if count >= 10000000:
            os.remove(path)


def measure_pages(dedup_):
    """HTML to content beside the bare parser, one thread."""
    folder = data.pages(dedup_.corpus, dedup_.pages)
    program = os.path.abspath(os.path.join(dedup_.bench.options.build, "bench", "bench_page"))
    lines = subprocess.run([program, *sorted(os.listdir(folder))], cwd=folder, stdout=subprocess.PIPE,
                           check=True).stdout.decode().splitlines()
    found = {what: (float(median) / 1e6, float(best) / 1e6)
             for what, _, best, median, *_ in (line.split("\t") for line in lines)}
    command = f"bench_page {os.path.basename(folder)}/*"
    parser = found["html-bare-parser"][0]
    dedup_.add("HTML, the bare parser", parser, "MB/s", command, best=found["html-bare-parser"][1])
    for what, name in (("html-content-main", "HTML to main content"), ("html-content-all", "HTML to all content")):
        median, best = found[what]
        dedup_.add(name, median, "MB/s", command, best=best, budget=50)
        dedup_.add("    to the bare parser", 100 * median / parser, "%", command, budget=60)


def measure_archives(dedup_):
    """doppel fingerprint on compressed archives beside decompression alone."""
    texts = data.beginning(data.near_copies(dedup_.corpus, dedup_.megabytes), dedup_.slice)
    for name, path in (("WARC.gz of pages", data.warc(data.pages(dedup_.corpus, dedup_.pages))),
                       ("WET.gz of texts", data.wet(texts))):
        into_cache(path)
        size = int(subprocess.run(f"gzip -dc '{path}' | wc -c", shell=True, stdout=subprocess.PIPE,
                                  check=True).stdout)
        gzip = size / statistics.median(run(["gzip", "-dc", path])[0] for _ in range(dedup_.runs)) / 1e6
        dedup_.add(f"gzip -dc, {name}", gzip, "MB/s", ["gzip", "-dc", path])
        for threads in (1, 2):
            command = [dedup_.doppel, "fingerprint", "--threads", str(threads), path]
            seconds = [run(command)[0] for _ in range(dedup_.runs)]
            mine = size / statistics.median(seconds) / 1e6
            dedup_.add(f"doppel fingerprint, {name}, {threads} thread{'s' * (threads > 1)}", mine, "MB/s", command,
                       best=size / min(seconds) / 1e6, peer="gzip -dc", ratio=mine / gzip)


# ---- peers ----

def prepare(venv):
    """build/bench-dedup-venv, for peers with many packages of their own; None when that cannot be. Those of
    requirements-bare.txt come without what they ask for, most of which (a Java engine) this does not use."""
    folder = "build/bench-dedup-venv"
    script = os.path.join(ROOT, "scripts", "venv")
    if subprocess.run([script, folder, "bench/requirements-dedup.txt"], cwd=ROOT, check=False).returncode:
        return None
    pip = [os.path.join(ROOT, folder, "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", "--no-deps",
           "-r", "bench/requirements-bare.txt"]
    if subprocess.run(pip, cwd=ROOT, check=False).returncode:
        return None
    return {"near": venv, "apart": os.path.join(ROOT, folder)}


def truth(venv, path):
    """The near pairs by comparing all."""
    command = [os.path.join(venv, "bin", "python"), os.path.join(ROOT, "bench", "dedup_truth.py"), path, "0.8"]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    return [tuple(line.split("\t")) for line in lines[1:]]


def ids(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line)["id"] for line in file]


def quality(everything, kept, pairs):
    """Recall: the share of the near pairs of which not both are kept. Precision: the share of what was removed that is
    near some other document."""
    kept, near = set(kept), {name for pair in pairs for name in pair}
    removed = [name for name in everything if name not in kept]
    undone = sum(not (first in kept and second in kept) for first, second in pairs)
    return (100 * undone / max(1, len(pairs)), 100 * sum(name in near for name in removed) / max(1, len(removed)))


def figures_of_peer(venv, script, name, path, folder):
    """The fields of the last line that a peer prints, or None when it does not run. It works in the folder."""
    command = [os.path.join(venv, "bin", "python"), os.path.join(ROOT, "bench", script), name, path, folder]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        print(f"the peer {name} does not run here, left out: {done.stderr.decode().splitlines()[-1:]}")
        return None
    return done.stdout.decode().splitlines()[-1].split("\t")


def run_peer(dedup_, venvs, peer, path):
    """(seconds, the ids it kept) or None when it does not run."""
    name, where, _ = peer
    folder = dedup_.path(name)
    figures = figures_of_peer(venvs[where], "peers_dedup.py", name, path, folder)
    if not figures:
        return None
    with open(os.path.join(folder, "kept"), encoding="utf-8") as file:
        kept = file.read().split("\n")[:-1]
    shutil.rmtree(folder)
    return float(figures[1]), kept


def add_quality(dedup_, command, found, least=(None, None)):
    for name, value, budget in zip(("of the near pairs, undone", "of the removed, near another"), found, least):
        dedup_.add("    " + name, value, "%", command, **({"budget": budget} if budget is not None else {}))


def compare(dedup_, venvs, path):
    """Each peer, then doppel, on one file."""
    size, everything, pairs = os.path.getsize(path), ids(path), truth(venvs["near"], path)
    what = f"dedup of {size // 1000000} MB"
    command, seconds, best, _ = dedup(dedup_, path, (), dedup_.runs)
    mine, good = size / seconds / 1e6, quality(everything, ids(dedup_.path("out.jsonl")), pairs)
    least = [0, 0]
    for peer in PEERS:
        found = run_peer(dedup_, venvs, peer, path)
        if not found:
            continue
        rate, shown = size / found[0] / 1e6, f"bench/peers_dedup.py {peer[0]} {os.path.basename(path)}"
        dedup_.add(f"peer: {peer[0]}, {what}", rate, "MB/s", shown, peer=peer[0], ratio=mine / rate)
        theirs = quality(everything, found[1], pairs)
        add_quality(dedup_, shown, theirs)
        least = [max(ours, other) for ours, other in zip(least, theirs)]
        dedup_.add(f"doppel to {peer[0]}", mine / rate, "x", "bench/run", budget=peer[2], peer=peer[0],
                   ratio=mine / rate)
    dedup_.add(f"doppel dedup, {what}", mine, "MB/s", command, best=size / best / 1e6)
    add_quality(dedup_, command, good, least)


def measure_dedup(bench):
    bench.dedup = Dedup(bench)
    for measure in (measure_large, measure_growth, measure_pages, measure_archives):
        measure(bench.dedup)


def measure_dedup_peers(bench, venv):
    dedup_ = bench.dedup
    venvs = venv and prepare(venv)
    if not venvs:
        print("the peers of dedup could not be installed: left out")
        return
    compare(dedup_, venvs, data.beginning(data.near_copies(dedup_.corpus, dedup_.megabytes), dedup_.slice))
    shutil.rmtree(dedup_.folder)

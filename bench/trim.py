"""Measures doppel trim for bench/run: from file to file by unit, its temporary files and memory, what a hot line costs,
and the peers on the same files in the same run, with what they find of the truth. bench/trim_data.py makes the files.

BENCH_TRIM_MB=1000 in the environment is the size of the large files. All run on two threads; with BENCH_CLOCK=cpu seconds
are half of those on the CPU, for the peers too, though not all of them use both cores all the time.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys

import trim_data as data
import trim_truth as truth
from dedup import FromFileToFile, figures_of_peer, into_cache, prepare, run

UNITS = (("line", (), 150, 40), ("paragraph", (), 150, 40), ("sentence", ("--run", "3"), None, None),
         ("passage", (), 60, 100))  # unit, options, MB/s and percent of the input that temporary files may take
PEERS = (("dolma", "line", 100), ("datatrove", "sentence", 5), ("suffix-array", "passage", 100))  # and MB
MEMORY = (("256M", 256), ("1G", 1024))  # and MiB
FIXED = 64  # MiB that a run may have beside --memory: code, and what threads read into


class Trim(FromFileToFile):
    """Its sizes."""

    def __init__(self, bench):
        super().__init__(bench, "trim")
        self.megabytes = int(os.environ.get("BENCH_TRIM_MB", "20" if self.quick else "1000"))
        self.slice = 20 if self.quick else 100  # MB at which what is found is counted
        self.footers = 100000 if self.quick else 1000000


def command_of(trim, unit, options, path):
    return [trim.doppel, "trim", "--threads", "2", "--unit", unit, *options, path, "-o", trim.path("out.jsonl")]


def timed(command, path, runs):
    """The median and the best seconds, and the most memory."""
    into_cache(path)
    seconds, memory = zip(*(run(command, 2) for _ in range(runs)))
    return statistics.median(seconds), min(seconds), max(memory)


def summary(command):
    done = subprocess.run([*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"bench: {' '.join(command)} failed: {done.stderr.decode()}")
    return json.loads(done.stdout)


# ---- doppel ----

def limit(budget):
    return {} if budget is None else {"budget": budget}


def measure_units(trim):
    """Speed; temporary files and memory when what is sorted does not fit into it."""
    for unit, options, rate, share in UNITS:
        path = data.make(trim.corpus, unit, trim.megabytes)
        size, what = os.path.getsize(path), f"doppel trim, {trim.megabytes} MB, {unit}s"
        command = command_of(trim, unit, options, path)
        median, best, _ = timed(command, path, trim.runs)
        trim.add(what, size / median / 1e6, "MB/s", command, best=size / best / 1e6, **limit(rate))
        trim.bench.results["trim", unit] = size / median / 1e6
        for name, mebibytes in MEMORY:
            limited = command + ["--memory", name]
            median, best, memory = timed(limited, path, 1)
            trim.add(f"    in {name}", size / median / 1e6, "MB/s", limited, best=size / best / 1e6, **limit(rate))
            trim.add("    peak memory", memory / 2**20, "MiB", limited, budget=mebibytes + FIXED)
            used = 100 * summary(limited)["temporaryBytes"] / size
            trim.add("    temporary files, of the input", used, "% of", limited, **limit(share))
    os.remove(trim.path("out.jsonl"))


def measure_hot(trim):
    """A line, or a passage, that stands in all of a million documents, beside a million different ones."""
    for unit, name in (("line", "lines"), ("passage", "passages of 60 words")):
        seconds = {}
        for same in (False, True):
            path = data.footers(trim.corpus, unit, same, trim.footers)
            command = command_of(trim, unit, (), path)
            median, best, _ = timed(command, path, trim.runs)
            seconds[same] = median / os.path.getsize(path)
            kind = "copies of one" if same else "different"
            trim.add(f"doppel trim, {trim.footers // 1000} K {kind}, {name}", median, "s", command, best=best)
        trim.add("    copies to different ones, a byte", seconds[True] / seconds[False], "x", "bench/run")


def measure_found(trim):
    for unit, options, _, _ in UNITS:
        path = data.make(trim.corpus, unit, trim.slice)
        command = command_of(trim, unit, options, path) + ["--spans", trim.path("spans")]
        summary(command)
        found = truth.score(data.truth_of(path), truth.of_doppel(trim.path("spans")))
        add_found(trim, f"{unit}s of {trim.slice} MB, ", found, command)


def add_found(trim, what, found, command):
    for name, value in zip(("of the repeats, cut", "of those undisguised, cut", "of what is cut, repeats"), found):
        trim.add(f"    {what}{name}", value, "%", command)


# ---- peers ----

def run_peer(trim, venv, name, path):
    """(seconds, memory, bytes of temporary files, cuts), or None when it does not run."""
    folder = trim.path(name)
    figures = figures_of_peer(venv, "peers_trim.py", name, path, folder)
    if not figures:
        return None
    cuts = truth.of_peer(os.path.join(folder, "spans"))
    shutil.rmtree(folder)
    return float(figures[1]), int(figures[2]), int(figures[3]), cuts


def compare(trim, venv, peer):
    """A peer, then doppel, on one file."""
    name, unit, megabytes = peer
    options = {row[0]: row[1] for row in UNITS}[unit]
    path = data.make(trim.corpus, unit, 5 if trim.quick else megabytes)
    size, into = os.path.getsize(path), f"{unit}s of {os.path.getsize(path) // 1000000} MB"
    found = run_peer(trim, venv, name, path)
    if not found:
        return
    seconds, memory, temporary, cuts = found
    command = command_of(trim, unit, options, path)
    mine, best, used = timed(command, path, trim.runs)
    shown = f"bench/peers_trim.py {name} {os.path.basename(path)}"
    trim.add(f"peer: {name}, {into}", size / seconds / 1e6, "MB/s", shown, peer=name, ratio=seconds / mine)
    trim.add("    peak memory, of the input", 100 * memory / size, "% of", shown)
    trim.add("    temporary files, of the input", 100 * temporary / size, "% of", shown)
    add_found(trim, "", truth.score(data.truth_of(path), cuts), shown)
    trim.add(f"doppel trim, {into}", size / mine / 1e6, "MB/s", command, best=size / best / 1e6)
    trim.add("    peak memory, of the input", 100 * used / size, "% of", command)
    trim.add("    temporary files, of the input", 100 * summary(command)["temporaryBytes"] / size, "% of", command)
    with_spans = command + ["--spans", trim.path("spans")]
    summary(with_spans)
    add_found(trim, "", truth.score(data.truth_of(path), truth.of_doppel(trim.path("spans"))), with_spans)
    trim.add(f"doppel to {name}", seconds / mine, "x", "bench/run", peer=name, ratio=seconds / mine)


def measure_trim(bench):
    bench.trim = Trim(bench)
    for measure in (measure_units, measure_hot, measure_found):
        measure(bench.trim)


def measure_trim_peers(bench, venv):
    venvs = venv and prepare(venv)
    if not venvs:
        print("the peers of trim could not be installed: left out")
        return
    for peer in PEERS:
        compare(bench.trim, venvs["apart"], peer)
    shutil.rmtree(bench.trim.folder)

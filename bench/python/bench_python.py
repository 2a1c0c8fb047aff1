#!/usr/bin/env python3
"""Measures doppel for Python beside the C library and beside its peers, all in one run, and prints a table.

    bench_python.py [--documents 100000] [--runs 5] [--seconds 5] [--part sketches|dedup|engine] [--no-peers]
                    [--build build] [--folder build/bench-python] [--module DIR] [--apart VENV]
                    [--csv FILE | --rows FILE]

`bench/run --part python` makes the Python it runs in (requirements.txt and doppel itself) and calls it. Figures are
ratios of medians, taken in turn, on the documents of documents.py.

    sketches  doppel.fingerprint and doppel.signature on an Arrow column, one thread, beside doppel_sketch_batch on the
              same bytes (native.c); beside simhash, datasketch and rensa on some of the texts, each with the 5-word
              shingles that Python code makes of a text, and simhash with its own features (4 characters), too
    dedup     Parquet to Parquet, whole processes (contestants.py), with recall and precision; beside the doppel
              command on the same documents as JSONL
    engine    Engine.add_batch of a thousand and Engine.check one at a time, in memory, beside the same calls in C

Recall is the share of the planted copies with a similarity of 0.8 or more that were removed, precision the share of
such copies among all that was removed. --csv replaces lines of bench/results.csv, --rows writes them as JSON.
With BENCH_CLOCK=cpu in the environment time is that of the process on all CPUs, for a machine that has other work.
"""
import argparse
import ctypes
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))

import numpy  # noqa: E402
import pyarrow  # noqa: E402
import pyarrow.parquet  # noqa: E402

import documents  # noqa: E402
from contestants import SEED, SIMILARITY, SLOTS, shingles  # noqa: E402
from table import CPU_CLOCK, Table  # noqa: E402

PARTS = ("sketches", "dedup", "engine")
MINHASH = f"simhash64:words=5:hash=fast:weight=tf:minhash={SLOTS}"
BATCH = 1000
COMMAND = "bench/python/bench_python.py"
# How many times as fast doppel is asked to be; text-dedup runs in a Python of its own.
PEERS = (("text-dedup", 30), ("polars-rensa", 7), ("polars-rensa-processes", None))


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=100000, help="the other parts take up to 100,000")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="that each peer sketches")
    parser.add_argument("--part", choices=PARTS, action="append", help="these parts alone")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help="where libdoppel.so and doppel are")
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench-python"), help="for files")
    parser.add_argument("--module", help="where the module doppel is, if it is not installed")
    parser.add_argument("--apart", help="the Python environment that has text-dedup")
    parser.add_argument("--csv", help="replaces the lines of this run in the file")
    parser.add_argument("--rows", help="writes the lines of this run as JSON, one each")
    return parser.parse_args()


class Bench:
    """The options, the documents, the table."""

    def __init__(self, given):
        self.given, self.table = given, Table()

    def folder(self, count):
        return documents.make(count, os.path.join(self.given.folder, f"documents-{count}"))

    def column(self):
        """The texts of some documents as one Arrow column, and their bytes."""
        count = min(self.given.documents, 100000)
        texts = pyarrow.parquet.read_table(os.path.join(self.folder(count), "documents.parquet"))["text"]
        return texts.combine_chunks() if texts.num_chunks > 1 else texts.chunk(0)

    def add(self, what, value, unit, **more):
        self.table.add(what, value, unit, **{"command": COMMAND, **more})

    def add_ratio(self, what, ratio, budget, peer):
        self.add(what, ratio, "x", peer=peer, ratio=ratio, **({"budget": budget} if budget else {}))


clock = time.process_time if CPU_CLOCK else time.perf_counter


def seconds_of(call, *arguments):
    started = clock()
    result = call(*arguments)
    return clock() - started, result


def in_turn(runs, **calls):
    """{name: median seconds} of calls that take turns, so that all meet the same machine; each is run once before."""
    taken = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(runs):
        for name, call in calls.items():
            taken[name].append(seconds_of(call)[0])
    return {name: statistics.median(found) for name, found in taken.items()}


# ---- the C library ----

class Native:
    """native.c, compiled against the library that was built."""

    def __init__(self, build):
        self.folder = tempfile.TemporaryDirectory()
        path, build = os.path.join(self.folder.name, "native.so"), os.path.abspath(build)
        subprocess.run(["cc", "-std=c17", "-O2", "-shared", "-fPIC", "-I", os.path.join(ROOT, "include"),
                        os.path.join(HERE, "native.c"), "-o", path, os.path.join(build, "libdoppel.so"),
                        f"-Wl,-rpath,{build}"], check=True)
        self.library = ctypes.CDLL(path)

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            sys.exit(f"bench: {name} gave status {status}")

    def sketch(self, recipe, slices, fingerprints, signatures=None):
        self.call("native_sketch", recipe.encode(), pointer(slices), ctypes.c_size_t(len(slices)),
                  pointer(fingerprints), pointer(signatures))

    def open(self):
        engine = ctypes.c_void_p()
        self.call("native_open", ctypes.byref(engine))
        return engine

    def close(self, engine):
        self.library.native_close(engine)

    def add(self, engine, ids, texts):
        found = ctypes.c_uint64()
        self.call("native_add", engine, pointer(ids), pointer(texts), ctypes.c_size_t(len(texts)),
                  ctypes.c_size_t(BATCH), ctypes.byref(found))
        return found.value

    def check(self, engine, texts):
        found = ctypes.c_uint64()
        self.call("native_check", engine, pointer(texts), ctypes.c_size_t(len(texts)), ctypes.byref(found))
        return found.value


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data if array is not None else None)


def slices_of(column):
    """An array of doppel_slice over the bytes of an Arrow column of strings (without offset and nulls)."""
    _, offsets, data = column.buffers()
    ends = numpy.frombuffer(offsets, "int32", len(column) + 1).astype("uint64")
    slices = numpy.empty((len(column), 2), "uint64")
    slices[:, 0], slices[:, 1] = ends[:-1] + numpy.uint64(data.address), ends[1:] - ends[:-1]
    return slices


# ---- text to sketches ----

def measure_sketches(bench, native):
    import doppel
    column = bench.column()
    slices = slices_of(column)
    size, runs = int(slices[:, 1].sum()), bench.given.runs
    fingerprints = numpy.empty(len(column), "uint64")
    signatures = numpy.empty((len(column), SLOTS), "uint32")
    found = in_turn(runs, c=lambda: native.sketch("page", slices, fingerprints),
                    python=lambda: doppel.fingerprint(column, threads=1))
    if not numpy.array_equal(numpy.asarray(pyarrow.array(doppel.fingerprint(column))), fingerprints):
        sys.exit("bench: the fingerprints of Python and C differ")
    print_sketches(bench, "doppel.fingerprint, an Arrow column, one thread", size, found, 0.9)
    print_lists(bench, column, size, found)
    both = in_turn(runs, c=lambda: native.sketch(MINHASH, slices, fingerprints, signatures),
                   python=lambda: doppel.signature(column, slots=SLOTS, threads=1))
    same = pyarrow.array(doppel.signature(column, slots=SLOTS)).flatten()
    if not numpy.array_equal(numpy.asarray(same), signatures.ravel()):
        sys.exit("bench: the signatures of Python and C differ")
    print_sketches(bench, f"doppel.signature of {SLOTS} slots, an Arrow column, one thread", size, both, None)
    if not bench.given.no_peers:
        texts = column[:20000].to_pylist()
        measure_simhash(bench, texts, size / found["python"])
        measure_minhash(bench, texts, size / both["python"])


def print_sketches(bench, what, size, found, budget):
    bench.add(what, size / found["python"] / 1e6, "MB/s")
    bench.add("    to doppel_sketch_batch", found["c"] / found["python"], "x", peer="C",
              ratio=found["c"] / found["python"], **({"budget": budget} if budget else {}))


def print_lists(bench, column, size, found):
    """A list of str in, a list of int out: what the objects of Python cost."""
    import doppel
    texts = column.to_pylist()
    taken = in_turn(bench.given.runs, python=lambda: doppel.fingerprint(texts, threads=1))["python"]
    bench.add("    the same with lists", size / taken / 1e6, "MB/s", peer="an Arrow column",
              ratio=found["python"] / taken)


def rate(bench, work, texts):
    """Bytes of text a second of a peer, which gets some seconds."""
    done, started = 0, clock()
    for text in texts:
        work(text)
        done += len(text)  # they are ASCII
        if clock() - started > bench.given.seconds:
            break
    return done / (clock() - started)


def add_peers(bench, mine, budget, found):
    """A line for each way of calling a peer, and one for the budget: doppel to the fastest of them."""
    for name, theirs in found.items():
        bench.add(f"peer: {name}", theirs / 1e6, "MB/s", peer=name, ratio=mine / theirs)
    name = max(found, key=found.get)
    bench.add_ratio(f"doppel to {name}", mine / found[name], budget, name)


def measure_simhash(bench, texts, mine):
    from simhash import Simhash
    add_peers(bench, mine, 200, {
        "simhash, 5-word shingles": rate(bench, lambda text: Simhash(shingles(text)).value, texts),
        "simhash, its own features": rate(bench, lambda text: Simhash(text).value, texts)})


def measure_minhash(bench, texts, mine):
    from datasketch import MinHash
    from rensa import CMinHash, RMinHash

    def datasketch(text):
        made = MinHash(num_perm=SLOTS)
        made.update_batch([shingle.encode() for shingle in shingles(text)])
        return made.hashvalues

    def rensa(text, kind):
        made = kind(SLOTS, SEED)
        made.update(shingles(text))
        return made.digest()
    add_peers(bench, mine, 50, {"datasketch MinHash": rate(bench, datasketch, texts)})
    add_peers(bench, mine, 10, {
        "rensa RMinHash": rate(bench, lambda text: rensa(text, RMinHash), texts),
        "rensa CMinHash": rate(bench, lambda text: rensa(text, CMinHash), texts),
        "rensa rho": rate(bench, lambda text: RMinHash.digest_matrix_from_token_sets_rho([shingles(text)], SLOTS, SEED),
                          texts)})


# ---- Parquet to Parquet ----

# Name: the contestant, its input, and what the line is called.
OWN = {"command": (None, "documents.jsonl", "doppel dedup of the same as JSONL"),
       "files": ("doppel-files", "documents.parquet", "doppel.dedup_files, {:,} documents, Parquet to Parquet"),
       "plain": ("doppel-files", "plain.parquet", "    the same, Parquet that is not compressed"),
       "table": ("doppel-table", "documents.parquet", "doppel.dedup of the same, the table in memory")}


def measure_dedup(bench, _native):
    folder, target = bench.folder(bench.given.documents), os.path.join(bench.given.folder, "out")
    for _, source, _ in OWN.values():
        into_cache(os.path.join(folder, source))
    runs, good = {name: [] for name in OWN}, set()
    for _ in range(min(3, bench.given.runs)):
        for name, (contestant, source, _) in OWN.items():
            runs[name].append(run_contestant(bench, contestant, os.path.join(folder, source), target))
            good.add(quality(folder, kept(target)))
    if len(good) != 1:
        sys.exit(f"bench: dedup, dedup_files and the command differ: {good}")
    seconds = {name: statistics.median(taken for taken, _ in found) for name, found in runs.items()}
    print_dedup(bench, runs, seconds, *good)
    if not bench.given.no_peers:
        measure_dedup_peers(bench, os.path.join(folder, "documents.parquet"), target, seconds["files"], *good)
    remove(target)


def print_dedup(bench, runs, seconds, good):
    add_run(bench, OWN["files"][2].format(bench.given.documents), "doppel-files", runs["files"], good)
    for name in ("plain", "table", "command"):
        contestant = OWN[name][0]
        add_run(bench, OWN[name][2], contestant or "doppel dedup documents.jsonl", runs[name])
    for name, what in (("files", "dedup_files"), ("plain", "dedup_files of Parquet that is not compressed")):
        ratio = seconds["command"] / seconds[name]
        bench.add(f"{what} to the command on JSONL", ratio, "x", budget=1 / 1.3, peer="doppel dedup", ratio=ratio)


def add_run(bench, what, command, runs, good=None, **more):
    """The lines of something that was run: seconds, memory and, if wanted, recall and precision."""
    command = command if " " in command else f"bench/python/contestants.py {command}"
    bench.add(what, statistics.median(taken for taken, _ in runs), "s", command=command,
              best=min(taken for taken, _ in runs), **more)
    bench.add("    peak memory", max(memory for _, memory in runs) / 2**20, "MiB", command=command)
    for name, value in zip(("of the planted copies, removed", "of the removed, planted copies"), good or ()):
        bench.add("    " + name, 100 * value, "%", command=command)


def measure_dedup_peers(bench, source, target, seconds, mine):
    best = [0, 0]
    for name, budget in PEERS:
        try:
            found = run_contestant(bench, name, source, target)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"the peer {name} does not run here, left out: {error}")
            continue
        good = quality(os.path.dirname(source), kept(target))
        add_run(bench, f"peer: {name}", name, [found], good, peer=name, ratio=found[0] / seconds)
        bench.add_ratio(f"doppel.dedup_files to {name}", found[0] / seconds, budget, name)
        best = [max(pair) for pair in zip(best, good)]
    for name, value, least in zip(("planted copies, removed", "removed, planted copies"), mine, best):
        bench.add(f"doppel.dedup_files, of the {name}, to the best peer", 100 * value, "%", budget=100 * least)


def into_cache(path):
    with open(path, "rb") as file:
        while file.read(1 << 24):
            pass


def remove(path):
    for found in glob.glob(glob.escape(path) + "*"):
        shutil.rmtree(found) if os.path.isdir(found) else os.remove(found)


def run(command, environment=None):
    """(seconds, peak bytes of memory) of a process. The peak is asked for while it runs, and is that of the process
    alone: what the system tells afterwards counts the memory of this script too, from before it became the command."""
    with tempfile.TemporaryFile() as said:
        started, memory, done = time.perf_counter(), 0, 0
        process = subprocess.Popen(command, env=environment, stdout=said, stderr=said)
        while not done:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
                memory = max([memory] + [int(line.split()[1]) for line in file if line.startswith("VmHWM")])
            time.sleep(0.005)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)
        taken = usage.ru_utime + usage.ru_stime if CPU_CLOCK else time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            print(said.read().decode(errors="replace")[-2000:], file=sys.stderr)
            raise subprocess.CalledProcessError(process.returncode, command[:3])
    return taken, memory * 1024


def run_contestant(bench, name, source, target):
    """(seconds, bytes) of one of contestants.py; None is the command of the C library."""
    remove(target)
    if not name:
        return run([os.path.join(bench.given.build, "doppel"), "dedup", "--threads", "2", "--similarity",
                    str(SIMILARITY), source, "-o", target + ".jsonl"])
    python = os.path.join(bench.given.apart or "", "bin", "python") if name == "text-dedup" else sys.executable
    environment = dict(os.environ, HF_HUB_OFFLINE="1")
    if bench.given.module:
        environment["PYTHONPATH"] = os.path.abspath(bench.given.module)
    ending = "" if name == "text-dedup" else ".parquet"
    return run([python, os.path.join(HERE, "contestants.py"), name, source, target + ending], environment)


def kept(target):
    """The ids that a contestant left: in Parquet, JSONL, or a folder of Arrow files."""
    if os.path.exists(target + ".parquet"):
        return pyarrow.parquet.read_table(target + ".parquet", columns=["id"])["id"].to_numpy()
    if os.path.exists(target + ".jsonl"):
        with open(target + ".jsonl", encoding="ascii") as file:
            return numpy.array([json.loads(line)["id"] for line in file])
    return numpy.concatenate([pyarrow.ipc.open_stream(path).read_all()["id"].to_numpy()
                              for path in glob.glob(f"{target}/*.arrow")])


def quality(folder, ids):
    """(recall, precision) of what was removed."""
    everything = pyarrow.parquet.read_metadata(os.path.join(folder, "documents.parquet")).num_rows
    removed = numpy.setdiff1d(numpy.arange(everything), ids)
    planted = pyarrow.parquet.read_table(os.path.join(folder, "planted.parquet"))
    near = planted["similarity"].to_numpy() >= SIMILARITY - 1e-9
    copies, originals = planted["copy"].to_numpy()[near], planted["original"].to_numpy()[near]
    # Whichever of the two was removed: text-dedup and rensa keep the first, too, but need not.
    found = numpy.isin(copies, removed) | numpy.isin(originals, removed)
    right = numpy.isin(removed, copies) | numpy.isin(removed, originals)
    return float(found.mean()), float(right.mean()) if len(removed) else 1.0


# ---- the engine ----

def measure_engine(bench, native):
    column = bench.column()
    texts, names = slices_of(column), pyarrow.array([f"document-{i}" for i in range(len(column))])
    ids = slices_of(names)
    batches = make_batches(names, column)
    tables = [pyarrow.table({"id": names[i:i + BATCH], "text": column[i:i + BATCH]})
              for i in range(0, len(column), BATCH)]
    taken = {"c": [], "python": [], "arrow": []}
    for _ in range(min(3, bench.given.runs)):
        seconds, expected = add_native(native, ids, texts)
        taken["c"].append(seconds)
        for name, data in (("python", batches), ("arrow", tables)):
            seconds, duplicates = add_python(data)
            taken[name].append(seconds)
            if duplicates != expected:
                sys.exit(f"bench: Engine.add_batch found {duplicates} duplicates, C {expected}")
    median = {name: statistics.median(found) for name, found in taken.items()}
    bench.add(f"Engine.add_batch of {BATCH:,} dicts, up to {len(column):,} documents in memory",
              len(column) / median["python"] / 1e3, "K/s")
    bench.add("    to C", median["c"] / median["python"], "x", peer="C", ratio=median["c"] / median["python"],
              budget=0.8)
    bench.add("    the same with Arrow tables, to C", median["c"] / median["arrow"], "x", peer="C",
              ratio=median["c"] / median["arrow"], budget=0.8)
    measure_checks(bench, native, column, texts)


def make_batches(names, column):
    rows = [{"id": name, "text": text} for name, text in zip(names.to_pylist(), column.to_pylist())]
    return [rows[i:i + BATCH] for i in range(0, len(rows), BATCH)]


def add_native(native, ids, texts):
    engine = native.open()
    result = seconds_of(native.add, engine, ids, texts)
    native.close(engine)
    return result


def add_python(batches):
    """Seconds and the number of duplicates; they are counted after the clock has stopped."""
    import doppel
    with doppel.Engine() as engine:
        seconds, verdicts = seconds_of(lambda: [engine.add_batch(batch) for batch in batches])
    return seconds, sum(map(count_duplicates, verdicts))


def count_duplicates(verdicts):
    """Of a list of Verdict, or of a table."""
    return sum(verdicts["isDuplicate"] if hasattr(verdicts, "column_names") else map(bool, verdicts))


def measure_checks(bench, native, column, slices):
    """Half of the documents are there; all are asked for, one at a time: those of 1 to 3 KB, and their beginnings."""
    import doppel
    half = len(column) // 2
    for what, limit, budget in (("1 to 3 KB", None, 100), ("200 bytes", 200, None)):
        texts = [text[:limit] for text in column.to_pylist()]
        short = pyarrow.array(texts)
        given, ids = slices_of(short), slices_of(pyarrow.array([str(i) for i in range(half)]))
        engine = native.open()
        native.add(engine, ids, given[:half])
        with doppel.Engine() as mine:
            mine.add_batch([{"id": str(i), "text": text} for i, text in enumerate(texts[:half])])
            found = in_turn(bench.given.runs, c=lambda: native.check(engine, given),
                            python=lambda: [mine.check(text) for text in texts])
        native.close(engine)
        bench.add(f"Engine.check one at a time, {half:,} documents of {what} in memory",
                  len(texts) / found["python"] / 1e3, "K/s", peer="C", ratio=found["c"] / found["python"],
                  **({"budget": budget} if budget else {}))


def finish(bench):
    if not bench.given.rows:
        bench.table.show()
    else:
        with open(bench.given.rows, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in bench.table.rows)
    if bench.given.csv:
        if os.path.exists(bench.given.csv):
            bench.table.keep(bench.given.csv)
        bench.table.write(bench.given.csv)


def main():
    given = options()
    if given.module:
        sys.path.insert(0, given.module)
    bench, native = Bench(given), Native(given.build)
    for part in given.part or PARTS:
        {"sketches": measure_sketches, "dedup": measure_dedup, "engine": measure_engine}[part](bench, native)
    finish(bench)


if __name__ == "__main__":
    main()

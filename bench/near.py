"""Measures the index and the joins for bench/run: what the budgets ask for, the plain version, the plan's prediction
and the peers, all on the same fingerprints (bench/planted.h).

BENCH_SIZES=1,10,100 in the environment names the sizes in millions; BENCH_HUGE=1 adds the join of a thousand million,
which takes some minutes, 20 GB of memory and 8 GB of disk.
"""
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MILLION = 1000000
STREAMED = (256, 1000)  # million
FIND_BUDGET = {10: 1.0, 100: 0.2}  # million queries a second, at 40 bytes an entry
JOIN_BUDGET = {10: (0.8, None, 400), 100: (8, 5, 4000)}  # seconds with one and two threads, MB


class Near:
    """The programs, the sizes and the files."""

    def __init__(self, bench):
        self.bench = bench
        self.quick = bench.options.quick
        sizes = os.environ.get("BENCH_SIZES", "1" if self.quick else "1,10,100")
        self.sizes = [int(size) for size in sizes.split(",")]
        self.folder = os.path.join(bench.options.build, "bench-near")
        self.found = {}  # by (program, its arguments)
        self.venv, self.rust = None, None  # where the peers are
        os.makedirs(self.folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, program, *arguments):
        """{figure: number} of a benchmark program, and the command as one would type it. It runs once."""
        shown = " ".join([program, *map(str, arguments)]).replace(self.folder + os.sep, "")
        if shown not in self.found:
            path = os.path.join(self.bench.options.build, "bench", program)
            self.found[shown] = figures([path, *map(str, arguments)])
        return self.found[shown], shown

    def add(self, what, value, unit, command, **more):
        self.bench.table.add(what, value, unit, command=command, **{key: value for key, value in more.items()
                                                                     if value is not None})


def figures(command, environment=None):
    output = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True).stdout.decode()
    found = {}
    for line in output.splitlines():
        name, value = line.split("\t")
        found[name] = value if name == "layout" else float(value)
    return found


def amount(millions):
    return f"{millions} M" if millions < 1000 else f"{millions / 1000:g} G"


# ---- finding ----

def measure_memory(near):
    """What the machine's memory gives: the floor under all that follows."""
    found, command = near.run("bench_index", "memory")
    near.add("memory, 1 GB read in order", found["in order"] / 1e9, "GB/s", command)
    near.add("memory, lines of 64 bytes anywhere, asked for ahead", found["anywhere"] * 1e9, "ns", command)


def add_find(near, what, found, command, budget=None, memory=None, latency=None):
    """The lines of one index: speed, two threads, time of single queries, memory."""
    unit, scale = ("M/s", 1e6) if found["rate"] > 3e5 else ("K/s", 1e3)
    predicted = found["predicted"] / scale if "predicted" in found else None
    near.add(what, found["rate"] / scale, unit, command, best=found["best rate"] / scale, predicted=predicted,
             budget=budget and budget / scale)
    near.add("    two threads to one", found["rate of two"] / found["rate"], "x", command, budget=1.7)
    near.add("    one query in a hundred takes more than", found["p99"] * 1e6, "us", command, budget=latency)
    near.add("    memory an entry", found["bytes"], "B", command, budget=memory)


def queries_for(near, millions):
    return 20000 if near.quick else 300000 if millions >= 100 else 1000000


def find_in(near, size):
    """Within 3 at 40 bytes an entry; the largest index is saved, for measure_saved."""
    save = [near.path("saved.index")] if size == near.sizes[-1] else []
    return near.run("bench_index", "find", size * MILLION, queries_for(near, size), 3, 3, 40, *save)


def measure_find(near):
    """Within 3, at about 40 bytes an entry and, for the largest, at 110."""
    for size in near.sizes:
        found, command = find_in(near, size)
        budget = FIND_BUDGET.get(size)
        add_find(near, f"find within 3 in {amount(size)}, {found['layout']}", found, command,
                 budget and budget * 1e6, 40 if size >= 10 else None, 5 if size == 10 else None)
        if size >= 100:
            found, command = near.run("bench_index", "find", size * MILLION, queries_for(near, size), 3, 3, 110)
            add_find(near, f"the same with 110 bytes an entry, {found['layout']}", found, command, 1e6, 110)


def measure_wider(near):
    size = 10 if 10 in near.sizes else near.sizes[0]
    for distance, budget in ((6, 150e3), (8, 50e3), (10, 20e3)):
        count = 2000 if near.quick else {6: 200000, 8: 60000, 10: 30000}[distance]
        found, command = near.run("bench_index", "find", size * MILLION, count, distance, distance, 40)
        add_find(near, f"find within {distance} in {amount(size)}, {found['layout']}", found, command,
                 budget if size == 10 else None)
    found, command = near.run("bench_index", "find", size * MILLION, 2000 if near.quick else 60000, 3, 9, 40)
    add_find(near, f"find within 9 in {amount(size)}, planned for 3, {found['layout']}", found, command)


def measure_saved(near):
    """The largest, saved, then opened and asked by another process."""
    size = near.sizes[-1]
    count, path = queries_for(near, size), near.path("saved.index")
    built, _ = find_in(near, size)
    found, command = near.run("bench_index", "open", path, size * MILLION, count, 3)
    near.add(f"save an index of {amount(size)}", built["save"], "s", command)
    near.add("    open it", found["open"], "s", command, budget=1 if size == 100 else None)
    near.add("    the first query", found["first query"] * 1e3, "ms", command)
    near.add("    check every byte of it", found["validate"], "s", command)
    add_find(near, f"find within 3 in {amount(size)}, opened from a file", found, command,
             memory=40 if size >= 10 else None)
    os.remove(path)


def measure_growing(near):
    size = 10 if 10 in near.sizes else near.sizes[0]
    found, command = near.run("bench_index", "grow", size * MILLION)
    near.add(f"insert and find within 3 in turn, up to {amount(size)}", found["rate"] / 1e6, "M/s", command,
             budget=0.9 if size == 10 else None)
    near.add("    memory an entry", found["bytes"], "B", command)
    waits, command = near.run("bench_index", "waits", size * MILLION)
    near.add("    the longest insert", waits["longest adds"] * 1e3, "ms", command, budget=20 if size == 10 else None)
    near.add("    the longest find", waits["longest finds"] * 1e3, "ms", command, budget=20 if size == 10 else None)


def measure_scan(near):
    size = 10 if 10 in near.sizes else near.sizes[0]
    mine, _ = find_in(near, size)
    found, command = near.run("bench_index", "scan", size * MILLION, 20, 3)
    near.add(f"plain C: find within 3 in {amount(size)} by comparing all", found["rate"] / 1e3, "K/s", command)
    near.add("index to plain C", mine["rate"] / found["rate"], "x", command)


# ---- joins ----

def add_join(near, what, found, command, budget=None, memory=None, **more):
    near.add(what, found["seconds"], "s", command, best=found.get("best seconds"), budget=budget, **more)
    near.add("    peak memory", found["peak"] / 1e6, "MB", command, budget=memory)


def measure_join(near):
    for size in near.sizes:
        budgets = JOIN_BUDGET.get(size, (None, None, None))
        runs = 1 if size >= 100 else 3
        for threads in (1, 2):
            found, command = near.run("bench_join", "self", size * MILLION, "few", threads, runs)
            what = f"all pairs within 3 of {amount(size)}, {threads} thread{'s' * (threads > 1)}"
            add_join(near, what, found, command, budgets[threads - 1], budgets[2],
                     predicted=found["predicted"] if threads == 1 else None)


def measure_plain_join(near):
    size = 10 if 10 in near.sizes else near.sizes[0]
    mine, _ = near.run("bench_join", "self", size * MILLION, "few", 1, 3)
    found, command = near.run("bench_join", "plain", size * MILLION, "few")
    near.add(f"plain C: all pairs within 3 of {amount(size)}, 4 bands of 16", found["seconds"], "s", command)
    near.add("join to plain C", found["seconds"] / mine["seconds"], "x", command)
    if found["all pairs"] != mine["all pairs"]:
        sys.exit("bench: the join and the plain version differ in their pairs")


def measure_groups(near):
    size = 10 if 10 in near.sizes else near.sizes[0]
    for kind, what in (("same", "identical"), ("near", "near")):
        found, command = near.run("bench_join", "self", size * MILLION, kind, 1, 1 if near.quick else 3)
        add_join(near, f"all pairs of {amount(size)}, 5 % in 3000 groups of {what} ones", found, command,
                 2.5 if size == 10 else None)
        near.add("    pairs given", found["pairs"] / 1e6, "M", command)


def measure_stream(near):
    """Nanoseconds a streamed fingerprint, from a callback and from a file; two lengths show what the set-up takes."""
    short, long = (4, 16) if near.quick else STREAMED
    first, _ = near.run("bench_join", "stream", short * MILLION, 2, 1)
    found, command = near.run("bench_join", "stream", long * MILLION, 2, 1)
    each = 1000 / long
    near.add(f"1 M queries against a stream of {amount(long)}, 2 threads", found["seconds"] * each, "ns", command,
             budget=12.5)
    more = (found["seconds"] - first["seconds"]) * 1000 / (long - short)
    near.add(f"    each of those behind the first {amount(short)}", more, "ns", command)
    near.add("    making the stream alone", found["making"] * each, "ns", command)
    near.add("    peak memory", found["peak"] / 1e6, "MB", command)
    path = near.path("stream.u64")
    near.run("bench_join", "make", path, short * MILLION)
    found, command = near.run("bench_join", "stream-file", path, 2, 1)
    near.add(f"the same against a raw file of {amount(short)}", found["seconds"] * 1000 / short, "ns", command)
    os.remove(path)


def measure_huge(near):
    if os.environ.get("BENCH_HUGE") != "1":
        print("BENCH_HUGE=1 adds the join of 1 G (8 GB of disk, 20 GB of memory): left out")
        return
    path = near.path("huge.u64")
    near.run("bench_join", "make", path, 1000 * MILLION)
    found, command = near.run("bench_join", "file", path, 2, "20G")
    add_join(near, "all pairs within 3 of 1 G from a raw file, 2 threads", found, command, 180, 20000)
    near.add("    written to disk meanwhile", found["spilled"] / 1e9, "GB", command)
    os.remove(path)


# ---- peers ----

# name, where it runs, entries in thousands, queries, exact
FINDERS = (("faiss-multihash", "python", 10000, 100000, True), ("faiss-bands", "python", 10000, 10000, True),
           ("faiss-hash", "python", 10000, 100000, False), ("faiss-flat", "python", 10000, 100, True),
           ("mih-rs", "rust", 10000, 100000, True), ("gaoya", "rust", 1000, 100000, True),
           ("bk-tree", "rust", 1000, 1000, True), ("pybktree", "python", 100, 100, True),
           ("simhash", "python", 100, 1000, True))
JOINERS = (("all-pairs-hamming", "rust", 10000), ("simhash-pybind", "python", 1000))


def peer_command(near, peer, where):
    """The command of a peer and its environment; None when it is not installed."""
    environment = dict(os.environ, RAYON_NUM_THREADS="1")
    if where == "rust":
        return near.rust and ([os.path.join(near.rust, "near_peer"), peer], environment)
    if not near.venv:
        return None
    apart = os.path.join(near.venv, "apart")
    for name in os.listdir(apart):
        if name.split("==")[0] == peer:
            environment["PYTHONPATH"] = os.path.join(apart, name)
    return [os.path.join(near.venv, "bin", "python"), os.path.join(ROOT, "bench", "peers_near.py"), peer], environment


def peer_figures(near, peer, where, thousands, queries):
    """{figure: number} of a peer; None when it is not there or fails."""
    found = peer_command(near, peer, where)
    if not found:
        return None
    command, environment = found
    numbers, asked = near.path(f"{thousands}k.u64"), near.path(f"{thousands}k-{queries}.u64")
    near.run("bench_join", "make", numbers, thousands * 1000)
    near.run("bench_join", "make-queries", asked, queries, thousands * 1000)
    try:
        return figures([*command, numbers, asked, str(queries)], environment)
    except (OSError, subprocess.CalledProcessError):
        print(f"the peer {peer} does not run here: left out")
        return None


def compare_finder(near, peer, where, thousands, queries, exact):
    found = peer_figures(near, peer, where, thousands, queries)
    if not found:
        return
    mine, _ = near.run("bench_index", "find", thousands * 1000, queries, 3, 3, 40)
    recall = found["matches"] / mine["matches"]
    if exact and recall != 1:
        sys.exit(f"bench: {peer} finds {found['matches']:.0f} matches, doppel {mine['matches']:.0f}")
    size = f"{thousands // 1000} M" if thousands >= 1000 else f"{thousands} K"
    command = f"peer {peer}, {thousands} K entries, {queries} queries"
    near.add(f"peer: {peer}, find within 3 in {size}", found["rate"] / 1e3, "K/s", command, peer=peer,
             ratio=mine["rate"] / found["rate"])
    near.add("    memory an entry", found["bytes"], "B", command, peer=peer, ratio=mine["bytes"] / found["bytes"])
    if not exact:
        near.add("    of the matches it finds", recall * 100, "%", command)


def compare_joiner(near, peer, where, thousands):
    found = peer_figures(near, peer, where, thousands, 1000)
    if not found:
        return
    mine, _ = near.run("bench_join", "self", thousands * 1000, "few", 1, 3)
    same = {"all pairs": mine["all pairs"], "pairs of distinct ones": mine["pairs"] - mine["copies"]}
    for name, count in same.items():
        if found.get(name, count) != count:
            sys.exit(f"bench: {peer} finds {found[name]:.0f} pairs, doppel {count:.0f}")
    command = f"peer {peer}, {thousands} K entries"
    near.add(f"peer: {peer}, all pairs within 3 of {thousands // 1000} M", found["seconds"], "s", command, peer=peer,
             ratio=found["seconds"] / mine["seconds"])
    near.add("    peak memory", found["peak"] / 1e6, "MB", command, peer=peer, ratio=mine["peak"] / found["peak"])


def measure_near(bench):
    near = Near(bench)
    for measure in (measure_memory, measure_find, measure_scan, measure_wider, measure_saved, measure_growing,
                    measure_join, measure_plain_join, measure_groups, measure_stream, measure_huge):
        measure(near)
    bench.near = near


def measure_near_peers(bench, venv, rust):
    near, most = bench.near, 1000 * (1 if bench.options.quick else 10)
    near.venv, near.rust = venv, rust
    for peer, where, thousands, queries, exact in FINDERS:
        compare_finder(near, peer, where, min(thousands, most), queries, exact)
    for peer, where, thousands in JOINERS:
        compare_joiner(near, peer, where, min(thousands, most))
    shutil.rmtree(near.folder)

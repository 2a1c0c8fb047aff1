"""Measures the engine that remembers for bench/run: durable adds, checks, memory and opening with sketches given, and
checks of texts compared with the cost of their parts alone.

BENCH_REMEMBERED=10 in the environment is how many million documents the index has.
"""
import os
import shutil

from near import figures

BYTES = {"distance": 100, "similarity": 300}


def measure_given(bench, near, millions):
    """Documents with an id, a URL, a digest and sketches of their own."""
    folder = os.path.join(bench.options.build, "bench-engine")
    shutil.rmtree(folder, ignore_errors=True)
    arguments = ["given", near, f"{millions}M"]
    found = figures([os.path.join(bench.options.build, "bench", "bench_engine"), *arguments, folder])
    shutil.rmtree(folder, ignore_errors=True)
    command = " ".join(["bench_engine", *arguments])
    table, of = bench.table, f"{millions:g} M documents, near by {near}"
    table.add(f"durable adds, batches of 1,000, up to {of}", found["adds"] / 1e3, "K/s", command=command, budget=50.0)
    table.add("    a commit", found["seconds of a commit"] * 1e3, "ms", command=command)
    table.add("    opening", found["seconds to open"], "s", command=command, budget=10.0)
    table.add("    memory a document", found["bytes"], "B", command=command, budget=BYTES[near])
    table.add("    as the engine counts it", found["bytes as counted"], "B", command=command)
    table.add("    disk a document", found["disk bytes"], "B", command=command)
    table.add("    checks, one thread, one in five a duplicate", found["checks"] / 1e3, "K/s", command=command,
              **({"budget": 150.0} if near == "distance" else {}))
    table.add("    the same while another thread adds", found["checks while adding"] / 1e3, "K/s", command=command)
    table.add("    of these, one in a hundred takes more than", found["p99 while adding"] * 1e6, "us", command=command,
              budget=1000.0)
    table.add("    adds meanwhile", found["adds meanwhile"] / 1e3, "K/s", command=command)


def measure_text(bench, millions):
    """Texts of 5 KB: the whole check beside fingerprint and digest, and the look-up, each alone."""
    folder = os.path.join(bench.options.build, "bench-engine")
    shutil.rmtree(folder, ignore_errors=True)
    texts = bench.corpus("english.bin")
    found = figures([os.path.join(bench.options.build, "bench", "bench_engine"), "text", f"{millions}M", folder, texts])
    shutil.rmtree(folder, ignore_errors=True)
    command = f"bench_engine text {millions}M"
    bench.table.add(f"checks of 5 KB texts, one thread, {millions:g} M documents", found["text checks"] / 1e3, "K/s", command=command,
                    peer="fingerprint, digest and look-up alone", ratio=found["share of the parts' speed"])
    bench.table.add("    of the speed of its parts", 100 * found["share of the parts' speed"], "%", command=command, budget=60.0)


def measure_engine(bench):
    millions = float(os.environ.get("BENCH_REMEMBERED", 0.1 if bench.options.quick else 10))
    measure_given(bench, "distance", millions)
    measure_given(bench, "similarity", millions)
    measure_text(bench, millions)

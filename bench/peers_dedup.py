"""One peer a call that takes the near-copies out of a JSONL file, from the file to a file, on two cores.

    peers_dedup.py PEER INPUT FOLDER

Prints the seconds it took; FOLDER, which must not exist, gets its files, and `kept`, the ids it kept, a line each.
All are asked for a Jaccard similarity of 0.8 of 5-word shingles and have 128 slots, or the nearest setting they have.
Python's start counts where the peer is a command, as it does for doppel; fetching ids afterwards does not.
"""
import glob
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time

SLOTS, SIMILARITY, CORES = 128, 0.8, 2
BANDS = 16  # for rensa, whose own choice finds three quarters of the near pairs where 16 find nearly all it can
OTHER = re.compile(r"[^a-z0-9\s]")


def shingles(text):
    words = OTHER.sub("", text.lower()).split()
    return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:])))


def text_dedup(source, folder):
    """Its command; it writes a dataset of Arrow files."""
    out = os.path.join(folder, "out")
    command = [sys.executable, "-m", "text_dedup.minhash", "--path", "json", "--data_files", source, "--split", "train",
               "--cache_dir", os.path.join(folder, "cache"), "--output", out, "--column", "text", "--ngram", "5",
               "--num_perm", str(SLOTS), "--threshold", str(SIMILARITY), "--hash_func", "xxh3", "--num_proc",
               str(CORES), "--batch_size", "10000"]
    started = time.perf_counter()
    subprocess.run(command, env=dict(os.environ, HF_HUB_OFFLINE="1"), stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True)
    taken = time.perf_counter() - started
    from datasets import load_from_disk
    return taken, list(load_from_disk(out)["id"])


def halves(source, folder):
    """The lines of a file in two, as a pipeline's tasks take whole files."""
    os.makedirs(folder)
    with open(source, "rb") as file:
        lines = file.readlines()
    middle = (len(lines) + 1) // 2
    for name, part in (("0.jsonl", lines[:middle]), ("1.jsonl", lines[middle:])):
        with open(os.path.join(folder, name), "wb") as file:
            file.writelines(part)


def datatrove(source, folder):
    """Its four stages, as in its own example: signatures, buckets, clusters, filter."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import minhash
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    halves(source, os.path.join(folder, "in"))
    config = minhash.MinhashConfig(n_grams=5)  # 14 buckets of 8 hashes
    paths = {name: os.path.join(folder, name) for name in ("in", "signatures", "buckets", "removed", "out", "logs")}

    def run(tasks, *steps):
        LocalPipelineExecutor(list(steps), tasks=tasks, workers=CORES, skip_completed=False, start_method="fork",
                              logging_dir=os.path.join(paths["logs"], type(steps[0]).__name__ + str(len(steps)))).run()
    started = time.perf_counter()
    reader = JsonlReader(paths["in"], compression=None)
    run(CORES, reader, minhash.MinhashDedupSignature(paths["signatures"], config))
    run(config.num_buckets, minhash.MinhashDedupBuckets(paths["signatures"], paths["buckets"], config=config))
    run(1, minhash.MinhashDedupCluster(paths["buckets"], paths["removed"], config=config))
    run(CORES, reader, minhash.MinhashDedupFilter(paths["removed"]),
        JsonlWriter(paths["out"], compression=None))
    taken = time.perf_counter() - started
    kept = []
    for path in glob.glob(os.path.join(paths["out"], "*.jsonl")):
        with open(path, encoding="utf-8") as file:
            kept += [json.loads(line)["id"] for line in file]
    return taken, kept


def sketch(line):
    from rensa import RMinHash
    record = json.loads(line)
    made = RMinHash(SLOTS, 42)
    made.update(shingles(record["text"]))
    return record["id"], made


def rensa(source, folder):
    """Two processes read JSON and sketch, this one asks rensa which are new, and writes."""
    from rensa import RMinHashDeduplicator
    kept, number, started = [], 0, time.perf_counter()
    deduplicator = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=SLOTS, use_lsh=True, num_bands=BANDS)
    with multiprocessing.Pool(CORES) as pool, open(source, "rb") as file, \
            open(source, "rb") as again, open(os.path.join(folder, "out.jsonl"), "wb") as out:
        for name, made in pool.imap(sketch, file, 64):
            line = again.readline()
            if deduplicator.add(str(number), made):
                out.write(line)
                kept.append(name)
            number += 1
    return time.perf_counter() - started, kept


def rensa_alone(source, folder):
    """The same in one process, a batch at a time, as its own example does it."""
    from rensa import RMinHashDeduplicator
    kept, number, started = [], 0, time.perf_counter()
    deduplicator = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=SLOTS, use_lsh=True, num_bands=BANDS)
    with open(source, "rb") as file, open(os.path.join(folder, "out.jsonl"), "wb") as out:
        while lines := file.readlines(1 << 20):
            records = [json.loads(line) for line in lines]
            new = deduplicator.add_pairs((str(number + i), shingles(record["text"]))
                                         for i, record in enumerate(records))
            number += len(lines)
            out.writelines(line for line, is_new in zip(lines, new) if is_new)
            kept += [record["id"] for record, is_new in zip(records, new) if is_new]
    return time.perf_counter() - started, kept


def main(peer, source, folder):
    os.makedirs(folder)
    seconds, kept = globals()[peer.replace("-", "_")](os.path.abspath(source), folder)
    with open(os.path.join(folder, "kept"), "w", encoding="utf-8") as file:
        file.writelines(name + "\n" for name in kept)
    print(f"seconds\t{seconds:.6g}")


if __name__ == "__main__":
    main(*sys.argv[1:])

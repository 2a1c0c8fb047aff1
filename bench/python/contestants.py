"""One way a process to take the near-copies out of a Parquet file, from the file to a file, on two cores.

    contestants.py NAME INPUT OUTPUT

All are asked for a Jaccard similarity of 0.8 of 5-word shingles; the peers have 128 slots. bench_python.py takes the
time of the whole process, the start of Python and all imports included.
"""
import re
import sys

SLOTS, SIMILARITY, CORES, SEED = 128, 0.8, 2, 42
BANDS = 16  # for rensa: with the number it chooses itself it finds fewer of the near pairs
OTHER = re.compile(r"[^\w\s]")


def doppel_files(source, target):
    """From file to file, in bounded memory."""
    import doppel
    doppel.dedup_files(source, target, similarity=SIMILARITY, threads=CORES)


def doppel_table(source, target):
    """The same with the whole table in memory."""
    import doppel
    import pyarrow.parquet
    table = pyarrow.parquet.read_table(source)
    unique = doppel.dedup(table, similarity=SIMILARITY, threads=CORES)
    pyarrow.parquet.write_table(pyarrow.table(unique), target)


def shingles(text):
    words = OTHER.sub("", text.lower()).split()
    return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:])))


def polars_rensa(source, target):
    """As its own example does it: token lists to a deduplicator, which asks its LSH index and compares signatures."""
    import polars
    from rensa import RMinHashDeduplicator
    frame = polars.read_parquet(source)
    seen = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=SLOTS, use_lsh=True, num_bands=BANDS, seed=SEED)
    keep = seen.add_pairs((str(row), shingles(text)) for row, text in enumerate(frame["text"]))
    frame.filter(polars.Series(keep)).write_parquet(target)


def sketch(text):
    from rensa import RMinHash
    made = RMinHash(SLOTS, SEED)
    made.update(shingles(text))
    return made


def polars_rensa_processes(source, target):
    """The same; two more processes cut shingles and sketch."""
    import multiprocessing
    import polars
    from rensa import RMinHashDeduplicator
    frame = polars.read_parquet(source)
    seen = RMinHashDeduplicator(threshold=SIMILARITY, num_perm=SLOTS, use_lsh=True, num_bands=BANDS, seed=SEED)
    with multiprocessing.get_context("spawn").Pool(CORES) as pool:
        keep = [seen.add(str(row), made) for row, made in enumerate(pool.imap(sketch, frame["text"], 256))]
    frame.filter(polars.Series(keep)).write_parquet(target)


def text_dedup(source, target):
    """Its command, `python -m text_dedup.minhash`. It writes a folder of Arrow files, not Parquet."""
    from text_dedup.minhash import main
    main(["--path", "parquet", "--data_files", source, "--split", "train", "--cache_dir", target + ".cache", "--output",
          target, "--column", "text", "--ngram", "5", "--num_perm", str(SLOTS), "--threshold", str(SIMILARITY),
          "--hash_func", "xxh3", "--num_proc", str(CORES), "--batch_size", "10000"])


if __name__ == "__main__":
    globals()[sys.argv[1].replace("-", "_")](*sys.argv[2:])

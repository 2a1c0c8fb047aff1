"""One peer a call, on the benchmark corpus: documents or titles a second, in one thread.

    peers.py PEER FOLDER SECONDS

Prints a line for each way of calling the peer: name, amount a second (bytes of text, or comparisons). Each gets the
same documents from the start of english.jsonl until the time is over, and starts from the text: lower case, no
punctuation, shingles of 5 words, unless it has its own way of doing that, which is then used too. Lines that end in
`ready` have the shingles made before the clock starts.
"""
import json
import os
import re
import sys
import time

SLOTS = 128
clock = time.process_time if os.environ.get("BENCH_CLOCK") == "cpu" else time.perf_counter  # as in measure.h
OTHER = re.compile(r"[^a-z0-9\s]")


def shingles(text):
    words = OTHER.sub("", text.lower()).split()
    return list(map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:])))


def texts(folder):
    with open(os.path.join(folder, "english.jsonl"), encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)["text"]


def run(name, work, documents, seconds):
    """Calls work(document) on (document, bytes of text) in turn for some seconds."""
    done, started = 0, clock()
    for document, size in documents:
        work(document)
        done += size
        if clock() - started > seconds:
            break
    print(f"{name}\t{done / (clock() - started):.6g}", flush=True)


def run_text(name, work, folder, seconds, ready=None):
    """On texts; and with `ready`, on the shingles of some of them."""
    sample = []
    for text in texts(folder):
        sample.append((text, len(text.encode())))
        if len(sample) == 20000:
            break
    run(name, work, sample, seconds)
    if ready:
        made = [(shingles(text), size) for text, size in sample[:1000]]
        run(name + ", shingles ready", ready, made, seconds)


def simhash(folder, seconds):
    from simhash import Simhash
    run_text("simhash, its own features", lambda text: Simhash(text).value, folder, seconds)
    run_text("simhash", lambda text: Simhash(shingles(text)).value, folder, seconds,
             lambda ready: Simhash(ready).value)


def simhash_pybind(folder, seconds):
    import simhash as peer
    mask = 2**64 - 1

    def sketch(ready):
        return peer.compute([hash(shingle) & mask for shingle in ready])
    run_text("simhash-pybind", lambda text: sketch(shingles(text)), folder, seconds, sketch)


def python_simhash(folder, seconds):
    from simhash import simhash as peer
    run_text("python-simhash", lambda text: peer(shingles(text), hasher="xxh3"), folder, seconds,
             lambda ready: peer(ready, hasher="xxh3"))
    run_text("python-simhash, single words", lambda text: peer(text.split(), hasher="xxh3"), folder, seconds)


def gaoya(folder, seconds):
    from gaoya.simhash import SimHashStringIndex
    for name, words in (("gaoya", (5, 5)), ("gaoya, single words", (1, 1))):
        index = SimHashStringIndex(64, 4, 3, "word", True, words)
        run_text(name, lambda text, to=index: to.insert_document(0, text), folder, seconds)


def datasketch(folder, seconds):
    from datasketch import MinHash

    def sketch(ready):
        peer = MinHash(num_perm=SLOTS)
        peer.update_batch([shingle.encode() for shingle in ready])
        return peer.hashvalues
    run_text("datasketch", lambda text: sketch(shingles(text)), folder, seconds, sketch)


def rensa(folder, seconds):
    from rensa import CMinHash, RMinHash

    def sketch(ready, kind):
        peer = kind(SLOTS, 42)
        peer.update(ready)
        return peer.digest()
    for name, kind in (("rensa RMinHash", RMinHash), ("rensa CMinHash", CMinHash)):
        run_text(name, lambda text, kind=kind: sketch(shingles(text), kind), folder, seconds,
                 lambda ready, kind=kind: sketch(ready, kind))
    for name, call in (("rensa matrix", RMinHash.digest_matrix_from_token_sets),
                       ("rensa rho", RMinHash.digest_matrix_from_token_sets_rho)):
        run_text(name, lambda text, call=call: call([shingles(text)], SLOTS, 42), folder, seconds,
                 lambda ready, call=call: call([ready], SLOTS, 42))


def lines(folder, name, least, most):
    with open(os.path.join(folder, name), encoding="ascii") as file:
        return [line[:-1] for line in file if least <= len(line) - 1 <= most]


def rapidfuzz(folder, seconds):
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    def matrix(queries, choices):
        return cdist(queries, choices, scorer=Levenshtein.normalized_similarity, score_cutoff=0.9, workers=1)
    middle = lines(folder, "titles.txt", 76, 84)
    blocks = [middle[i:i + 50] for i in range(0, len(middle) - 50, 50)]
    run("rapidfuzz middle", lambda queries: matrix(queries, middle),
        [(queries, len(queries) * len(middle)) for queries in blocks], seconds)
    near = lines(folder, "near.txt", 1, 200)
    run("rapidfuzz near", lambda block: matrix(block[:1], block),
        [(near[i:i + 100], 100) for i in range(0, len(near) - 99, 100)], seconds)
    pairs = [((a, b), 1) for a, b in zip(middle, middle[1:])]
    run("rapidfuzz pairs", lambda pair: Levenshtein.distance(*pair, score_cutoff=8), pairs, seconds)


if __name__ == "__main__":
    os.environ["RAYON_NUM_THREADS"] = "1"
    globals()[sys.argv[1].replace("-", "_")](sys.argv[2], float(sys.argv[3]))

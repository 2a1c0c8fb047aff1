"""One peer a call that finds 64-bit fingerprints within 3 bits, in one thread.

    peers_near.py PEER SET.u64 QUERIES.u64 HOW_MANY_QUERIES

The files hold raw little-endian numbers. Prints a line a figure: name, tab, number. Finding: build (seconds), rate
(queries a second), matches, bytes (an entry). All pairs: seconds, all pairs, peak (bytes). Memory is the peak of the
process, less what it had with the numbers read.
"""
import sys
import time

DISTANCE = 3


def memory(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return 1024 * int(next(line for line in file if line.startswith(name)).split()[1])


def tell(name, value):
    print(f"{name}\t{value:.9g}", flush=True)


def find(count, queries, build, ask):
    """ask(index, queries) gives the number of matches of all of them."""
    before, started = memory("VmRSS"), time.perf_counter()
    index = build()
    tell("build", time.perf_counter() - started)
    started = time.perf_counter()
    matches = ask(index, queries)
    tell("rate", len(queries) / (time.perf_counter() - started))
    tell("matches", matches)
    tell("bytes", (memory("VmHWM") - before) / count)


def one_by_one(ask):
    return lambda index, queries: sum(len(ask(index, query)) for query in queries)


def faiss(numbers, queries, index):
    """Numbers as rows of 8 bytes; a match is nearer than the radius."""
    import faiss as peer
    peer.omp_set_num_threads(1)
    numbers, queries = (array.view("uint8").reshape(-1, 8) for array in (numbers, queries))

    def build():
        made = index(peer)
        for start in range(0, len(numbers), 1 << 20):
            made.add(numbers[start:start + (1 << 20)])
        return made

    def ask(made, queries):
        return int(made.range_search(queries, DISTANCE + 1)[0][-1])
    find(len(numbers), queries, build, ask)


def faiss_multihash(numbers, queries):
    """Two hashes of 32 bits, each looked up with up to one bit flipped: exact within 3."""
    def index(peer):
        made = peer.IndexBinaryMultiHash(64, 2, 32)
        made.nflip = 1
        return made
    faiss(numbers, queries, index)


def faiss_bands(numbers, queries):
    """Four hashes of 16 bits: exact within 3."""
    faiss(numbers, queries, lambda peer: peer.IndexBinaryMultiHash(64, 4, 16))


def faiss_hash(numbers, queries):
    """One hash of 20 bits, looked up with up to one bit flipped: approximate."""
    def index(peer):
        made = peer.IndexBinaryHash(64, 20)
        made.nflip = 1
        return made
    faiss(numbers, queries, index)


def faiss_flat(numbers, queries):
    """Compares with all."""
    faiss(numbers, queries, lambda peer: peer.IndexBinaryFlat(64))


def pybktree(numbers, queries):
    from pybktree import BKTree, hamming_distance
    values = numbers.tolist()
    find(len(values), queries.tolist(), lambda: BKTree(hamming_distance, values),
         one_by_one(lambda tree, query: tree.find(query, DISTANCE)))


def simhash(numbers, queries):
    """What it logs of big buckets would take the most time: switched off."""
    import logging
    from simhash import Simhash, SimhashIndex
    logging.getLogger("simhash").setLevel(logging.ERROR)
    values = numbers.tolist()
    find(len(values), [Simhash(query) for query in queries.tolist()],
         lambda: SimhashIndex([(str(owner), Simhash(value)) for owner, value in enumerate(values)], k=DISTANCE),
         one_by_one(lambda index, query: index.get_near_dups(query)))


def simhash_pybind(numbers, _):
    """All pairs. It takes a set and gives pairs of values: identical ones do not count."""
    from simhash import find_all
    values = set(numbers.tolist())
    before, started = memory("VmRSS"), time.perf_counter()
    pairs = find_all(values, DISTANCE + 2, DISTANCE)
    tell("seconds", time.perf_counter() - started)
    tell("pairs of distinct ones", len(pairs))
    tell("peak", memory("VmHWM") - before)


if __name__ == "__main__":
    import numpy
    globals()[sys.argv[1].replace("-", "_")](numpy.fromfile(sys.argv[2], "<u8"),
                                             numpy.fromfile(sys.argv[3], "<u8", int(sys.argv[4])))

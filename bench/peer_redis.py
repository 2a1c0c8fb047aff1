"""datasketch's MinHashLSH in a Redis: for each document, a query for near ones, then its insertion.

    peer_redis.py PORT SECONDS single|session text|ready

128 permutations, threshold 0.8. `session` inserts through datasketch's own buffer, `single` one by one. `text`: signatures
are made of 5-word shingles of pages of 300 words, as doppel has to; `ready`: random ones, made before the clock
starts. Prints documents a second, and bytes of Redis a document. Deletes everything in the Redis.
"""
import random
import sys
import time

import numpy
import redis
from datasketch import MinHash, MinHashLSH

SLOTS, WORDS, READY = 128, 300, 100000


def from_texts():
    """Texts are made beforehand; what is done with them counts."""
    rng, letters = random.Random(1), "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(30000)]
    texts = [" ".join(rng.choices(words, k=WORDS)) for _ in range(READY // 2)]

    def signatures():
        for text in texts:
            found = text.lower().split()
            signature = MinHash(num_perm=SLOTS)
            signature.update_batch([" ".join(found[i:i + 5]).encode() for i in range(WORDS - 4)])
            yield signature
    return signatures()


def from_chance():
    values = numpy.random.default_rng(1).integers(0, 1 << 32, (READY, SLOTS), dtype=numpy.uint64)
    first = MinHash(num_perm=SLOTS)
    return [MinHash(num_perm=SLOTS, hashvalues=row, permutations=first.permutations, scheme=first.scheme) for row in values]


def work(index, signatures, insert, seconds):
    done, started = 0, time.perf_counter()
    for signature in signatures:
        if index.query(signature):
            sys.exit("peer_redis: near where nothing is")
        insert(b"document-%012d" % done, signature)
        done += 1
        if time.perf_counter() - started > seconds:
            break
    return done, started


def main():
    port, seconds, how, what = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
    server = redis.Redis(port=port)
    server.flushall()
    before = server.info("memory")["used_memory"]
    signatures = from_texts() if what == "text" else from_chance()
    index = MinHashLSH(threshold=0.8, num_perm=SLOTS, prepickle=False, storage_config={
        "type": "redis", "basename": b"peer", "redis": {"host": "127.0.0.1", "port": port}})
    if how == "session":
        with index.insertion_session() as session:
            done, started = work(index, signatures, session.insert, seconds)
    else:
        done, started = work(index, signatures, index.insert, seconds)
    print(f"rate\t{done / (time.perf_counter() - started):.6g}")
    print(f"documents\t{done}")
    print(f"bytes\t{(server.info('memory')['used_memory'] - before) / done:.6g}")
    server.flushall()


if __name__ == "__main__":
    main()

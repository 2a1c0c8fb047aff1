"""datasketch's MinHashLSH in a Redis: for each document, who is near it, then its insertion.

    peer_redis.py PORT SECONDS single|session

128 permutations, threshold 0.8, signatures by chance that are made before the clock starts. `session` inserts through
datasketch's own buffer, `single` one by one. Prints documents a second, and bytes of Redis a document. All the Redis
had is lost.
"""
import sys
import time

import numpy
import redis
from datasketch import MinHash, MinHashLSH

SLOTS, READY = 128, 200000


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
    port, seconds, how = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    server = redis.Redis(port=port)
    server.flushall()
    before = server.info("memory")["used_memory"]
    values = numpy.random.default_rng(1).integers(0, 1 << 32, (READY, SLOTS), dtype=numpy.uint64)
    first = MinHash(num_perm=SLOTS)
    signatures = [MinHash(num_perm=SLOTS, hashvalues=row, permutations=first.permutations, scheme=first.scheme)
                  for row in values]
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

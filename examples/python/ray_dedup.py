"""Near-duplicates with Ray: sketch and verify run in parallel by map_batches, and decide keeps one of each group.

    pip install libdoppel 'ray[data]' pyarrow
    python ray_dedup.py

The parts are doppel.sketch (text -> digest, band keys, set), doppel.verify (two sets -> similarity) and doppel.decide (near
pairs -> which one is kept). Texts that share a band key are candidates; each pair is verified once.
"""
import collections
import itertools

import pyarrow
import ray

import doppel

SIMILARITY = 0.8


def sketch(batch: pyarrow.Table) -> pyarrow.Table:
    made = pyarrow.table(doppel.sketch(batch, similarity=SIMILARITY, columns=["bands", "set"], min_words=1, threads=1))
    return made.append_column("position", batch["position"])


def verify(batch: pyarrow.Table) -> pyarrow.Table:
    measured = pyarrow.table(doppel.verify(batch, a="set_a", b="set_b", threads=1))
    near = pyarrow.compute.greater_equal(measured["similarity"], SIMILARITY)
    return pyarrow.table({"a": batch["a"], "b": batch["b"], "similarity": measured["similarity"]}).filter(near)


def candidates(sketches):
    """Every pair of positions that share a key in some band, once."""
    buckets = collections.defaultdict(list)
    for row in sketches:
        for band, key in enumerate(row["bands"]):
            buckets[band, key].append(row["position"])
    return sorted({pair for bucket in buckets.values() for pair in itertools.combinations(sorted(bucket), 2)})


def main():
    fox = "the quick brown fox jumps over the lazy dog and then sleeps in the sun until the evening comes"
    texts = [fox, "nothing of this was ever said before, by anyone at all", fox.upper() + "!", fox + " again", fox[::-1]]
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    documents = ray.data.from_arrow(pyarrow.table({"position": range(len(texts)), "text": texts}))
    sketches = sorted(documents.map_batches(sketch, batch_format="pyarrow").take_all(), key=lambda row: row["position"])
    sets = [row["set"] for row in sketches]
    pairs = candidates(sketches)
    hashes = pyarrow.list_(pyarrow.uint64())
    found = ray.data.from_arrow(pyarrow.table({
        "a": [a for a, _ in pairs], "b": [b for _, b in pairs],
        "set_a": pyarrow.array([sets[a] for a, _ in pairs], hashes),
        "set_b": pyarrow.array([sets[b] for _, b in pairs], hashes)}))
    near = found.map_batches(verify, batch_format="pyarrow").take_all()
    decided = doppel.decide(near, count=len(texts))
    kept = [text for text, stays in zip(texts, decided["kept"]) if stays]
    assert kept == list(doppel.dedup(texts, similarity=SIMILARITY, min_words=1)), kept
    print(f"{len(texts)} texts, {len(pairs)} candidates, {len(near)} near pairs, {len(kept)} kept")
    ray.shutdown()


if __name__ == "__main__":
    main()

"""Remove near-duplicates from Hugging Face datasets: one in memory, and one that is streamed.

    pip install libdoppel datasets
    python examples/python/huggingface_datasets.py
"""
import random

import doppel
from datasets import Dataset, IterableDataset


def make_rows():
    """40 rows; from the 31st on they are earlier ones with a new first word."""
    words = "river stone lamp winter paper garden engine signal quiet morning letter window copper field voice".split()
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=80)) for _ in range(30)]
    texts += ["Again " + text.split(" ", 1)[1] for text in texts[:10]]
    return [{"text": text, "source": f"shard {i % 3}"} for i, text in enumerate(texts)]


def whole(ds: Dataset) -> Dataset:
    """All of it at once. The rows of a Dataset are Arrow memory already, which doppel reads where it is.

    doppel.dedup(ds).kept is the same in fewer words; the mask goes with other conditions in one filter."""
    mask = doppel.dedup(ds).mask.to_list()  # a bool for each row: is it kept?
    return ds.filter(lambda row, number: mask[number] and row["source"] != "spam", with_indices=True)


def streaming(stream: IterableDataset, engine: doppel.Engine) -> IterableDataset:
    """Row by row, as they come: the engine remembers the rows that have gone by, not their texts."""
    return stream.filter(lambda texts: [not verdict for verdict in engine.add_batch(texts)], input_columns="text",
                         batched=True, batch_size=1000)


def main():
    rows = make_rows()
    ds = Dataset.from_list(rows)

    unique = whole(ds)
    print(unique)
    assert unique.num_rows == 30 and unique.column_names == ["text", "source"]
    assert unique[:]["text"] == [row["text"] for row in rows[:30]]
    assert doppel.dedup(ds).kept[:] == unique[:]

    # Shards may come from anywhere; to_iterable_dataset stands for load_dataset(..., streaming=True). After one pass
    # the engine has seen everything: a second pass over the stream needs a new engine.
    with doppel.Engine() as engine:
        streamed = list(streaming(ds.to_iterable_dataset(num_shards=4), engine))
    print(len(streamed), "rows of the stream are new")
    assert [row["text"] for row in streamed] == unique[:]["text"]

    # Remove rows of the training set that are in the test set: the same with `against`.
    test = ds.select(range(5))
    clean = doppel.dedup(ds, against=test).mask.to_list()
    assert sum(clean) == 25 and not any(clean[:5])


if __name__ == "__main__":
    main()

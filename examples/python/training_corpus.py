"""Deduplicate a training corpus, from Parquet to Parquet.

    pip install libdoppel pyarrow
    python examples/python/training_corpus.py [FOLDER]

Shards in, shards out: the same columns, types and metadata, fewer rows. Memory does not grow with the texts. The last
step is decontamination: no document of the corpus may be a near-copy of one in the benchmark that the model will be
tested with. Without FOLDER it works in a temporary one.
"""
import json
import random
import sys
import tempfile
from pathlib import Path

import doppel
import pyarrow
import pyarrow.parquet

SHARDS, ROWS = 4, 500


def make_text(chance: random.Random) -> str:
    words = "river stone lamp winter paper garden engine signal quiet morning letter window copper field voice".split()
    return " ".join(chance.choices(words, k=chance.randint(60, 200)))


def edit(text: str, chance: random.Random) -> str:
    """Another word in one place: of 60 words and more, at least 0.83 of the shingles stay the same."""
    words = text.split()
    words[chance.randrange(len(words))] = "elsewhere"
    return " ".join(words)


def make_corpus(folder: Path) -> int:
    """Shards in which one document in ten is a near-copy of an earlier one, maybe of another shard; how many those are.
    Beside the text there are columns as one has them: a date, a list of tags, a nested source."""
    chance, texts, copies = random.Random(16), [], 0
    for shard in range(SHARDS):
        rows = []
        for _ in range(ROWS):
            is_copy = bool(texts) and chance.random() < 0.1
            copies += is_copy
            text = edit(chance.choice(texts), chance) if is_copy else make_text(chance)
            if not is_copy:
                texts.append(text)
            number = shard * ROWS + len(rows)
            rows.append({"id": f"doc-{number}", "text": text, "tags": ["web"] * (number % 3),
                         "source": {"url": f"https://example.org/{number}", "status": 200}})
        table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"crawl": "2026-01"})
        pyarrow.parquet.write_table(table, folder / f"shard-{shard}.parquet", row_group_size=100)
    return copies


def read_list(path: Path) -> list[dict]:
    """What dedup_files wrote for each removed document: a line of JSON."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def count(folder: Path) -> int:
    return sum(pyarrow.parquet.read_metadata(path).num_rows for path in folder.glob("*.parquet"))


def main(folder: Path) -> None:
    raw, clean, final = (folder / name for name in ("raw", "clean", "final"))
    raw.mkdir(parents=True)
    copies = make_corpus(raw)

    # 1. What would be removed? Nothing is written.
    plan = doppel.dedup_files(raw, dry_run=True, similarity=0.8)
    print("dry run:", plan)

    # 2. Keep one of each, across all shards. Each shard of `raw` has one of the same name in `clean`.
    summary = doppel.dedup_files(raw, output_dir=clean, removed=folder / "removed.jsonl", similarity=0.8)
    print("dedup:  ", summary)

    # 3. What was removed, and why: look at the list before the originals are deleted.
    removed = read_list(folder / "removed.jsonl")
    print("removed:", removed[0])
    assert count(raw) == SHARDS * ROWS == count(clean) + len(removed)
    assert len(removed) == copies == summary["removed"] == plan["removed"]

    # 4. Nothing else has changed: columns, types, metadata, the order of rows.
    before = pyarrow.parquet.read_table(raw / "shard-1.parquet")
    after = pyarrow.parquet.read_table(clean / "shard-1.parquet")
    gone = {row["id"] for row in removed}
    assert after.equals(before.filter(pyarrow.array([name not in gone for name in before["id"].to_pylist()])))
    assert after.schema.equals(before.schema, check_metadata=True)

    # 5. Decontamination: remove all documents that are near one of the benchmark, which is not written itself.
    benchmark = folder / "benchmark.parquet"
    chance = random.Random(5)
    questions = [edit(text, chance) for text in after["text"].to_pylist()[:20]]
    names = [f"question-{i}" for i in range(len(questions))]
    pyarrow.parquet.write_table(pyarrow.table({"id": names, "text": questions}), benchmark)
    summary = doppel.dedup_files(clean, output_dir=final, removed=folder / "leaked.jsonl", against=benchmark)
    print("against:", summary)
    leaked = read_list(folder / "leaked.jsonl")
    assert {row["originalId"] for row in leaked} == set(names)
    assert count(final) == count(clean) - 20

    # 6. Check: there is nothing left to remove.
    assert doppel.dedup_files(final, dry_run=True)["removed"] == 0


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))

"""Remove near-duplicates in a datatrove pipeline, in one step.

    pip install libdoppel datatrove orjson
    python examples/python/datatrove_step.py

datatrove's own MinHash deduplication takes four pipelines in a row: signatures, buckets, clusters, filter. An Engine
decides on each document as it arrives, so it is one step of an existing pipeline. It compares shingles, not signatures:
a document is dropped only if it really is that similar to an earlier one.
"""
import contextlib
import itertools
import json
import random
import tempfile
from pathlib import Path

import doppel
from datatrove.data import DocumentsPipeline
from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.writers import JsonlWriter
from datatrove.pipeline.writers.disk_base import DiskWriter
from datatrove.utils.typeshelper import StatHints


class DoppelDedup(PipelineStep):
    """Drops documents that were seen before, in this pipeline or in what the index remembers.

    store: None keeps what was seen in memory, for one task; a folder keeps it for the next run, for one task at a time;
    a URL such as redis://host/0?prefix=corpus is shared by all tasks on all machines.
    removed: a writer for what is dropped; the id of the original is in its metadata.
    options: those of doppel.Engine, such as similarity=0.7.
    """

    type = "🫂 - DEDUP"
    name = "doppel"

    def __init__(self, store: str | None = None, removed: DiskWriter | None = None, **options):
        super().__init__()
        self.store, self.removed, self.options = store, removed, options

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        # The engine is opened here and not in __init__: datatrove sends steps to other processes, and an engine belongs
        # to the process that opened it.
        with doppel.Engine(self.store, **self.options) as engine, self.removed or contextlib.nullcontext():
            documents = iter(data)
            while batch := list(itertools.islice(documents, 1000)):
                with self.track_time("batch"):
                    verdicts = engine.add_batch([{"id": document.id, "text": document.text} for document in batch])
                for document, verdict in zip(batch, verdicts):
                    self.stat_update(StatHints.total)
                    if not verdict:
                        self.stat_update(StatHints.forwarded)
                        self.update_doc_stats(document)
                        yield document
                        continue
                    self.stat_update(StatHints.dropped)
                    if self.removed:
                        document.metadata["original"] = verdict.originalId
                        self.removed.write(document, rank)


def make_documents(path: Path) -> None:
    """40 documents; from the 31st on they are earlier ones with a new first word."""
    words = "river stone lamp winter paper garden engine signal quiet morning letter window copper field voice".split()
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=80)) for _ in range(30)]
    texts += ["Again " + text.split(" ", 1)[1] for text in texts[:10]]
    path.write_text("".join(json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(texts)))


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        make_documents(folder / "in" / "documents.jsonl")
        removed = JsonlWriter(str(folder / "removed"), compression=None)
        LocalPipelineExecutor(
            [
                JsonlReader(str(folder / "in")),
                DoppelDedup(removed=removed),
                JsonlWriter(str(folder / "out"), compression=None),
            ],
            logging_dir=str(folder / "logs"),
        ).run()
        kept = [json.loads(line)["id"] for line in (folder / "out" / "00000.jsonl").open()]
        dropped = {row["id"]: row["metadata"]["original"] for row in
                   map(json.loads, (folder / "removed" / "00000.jsonl").open())}
    print("kept", len(kept), "and dropped", dropped)
    assert kept == [f"d{i}" for i in range(30)]
    assert dropped == {f"d{30 + i}": f"d{i}" for i in range(10)}


if __name__ == "__main__":
    main()

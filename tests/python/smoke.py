"""A little of everything, as a program for a Python that has no pytest; fails with an exception.

    python smoke.py COMMAND...    COMMAND is how to run the `doppel` command
"""
import json
import os
import subprocess
import sys
import tempfile

import doppel

WORDS = "alder birch cedar elm fir hazel juniper larch maple oak pine rowan spruce willow yew".split()
TEXTS = [" ".join(WORDS), " ".join(reversed(WORDS)), " ".join(WORDS).upper(), "a text of its own that no other one is like at all"]
PAGE = "<html><head><title>Trees</title></head><body><p>{}</p></body></html>"


def check_calls():
    prints = doppel.fingerprint(TEXTS)
    assert prints[0] == prints[2] and doppel.hamming(prints[0], prints[3]) > 3, prints
    kept = doppel.dedup(TEXTS)
    assert list(kept) == [TEXTS[0], TEXTS[1], TEXTS[3]], kept


def check_engine(path):
    """Pages in an index folder, which another engine opens again."""
    with doppel.Engine(path) as engine:
        assert not engine.add({"id": "1", "url": "https://example.org/trees", "html": PAGE.format(TEXTS[0])}).isDuplicate
    with doppel.Engine(path) as engine:
        verdict = engine.check({"id": "2", "url": "https://example.com/", "html": PAGE.format(TEXTS[2])})
        assert verdict.isDuplicate and verdict.originalId == "1", verdict


def check_files(folder):
    """Files in and out, with each compression."""
    path = os.path.join(folder, "documents.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for number, text in enumerate(TEXTS):
            file.write(json.dumps({"id": str(number), "text": text}) + "\n")
    for ending in ("jsonl", "jsonl.gz", "jsonl.zst"):
        kept, again = (os.path.join(folder, f"{name}.{ending}") for name in ("kept", "again"))
        doppel.dedup_files([path], kept)
        doppel.dedup_files([kept], again)
        with open(kept, "rb") as one, open(again, "rb") as other:
            assert one.read() == other.read()
    return path


def check_command(command, path, folder):
    kept = os.path.join(folder, "command.jsonl")
    subprocess.run([*command, "dedup", path, "-o", kept], check=True)
    with open(kept, encoding="utf-8") as file:
        assert [json.loads(line)["id"] for line in file] == ["0", "1", "3"]


def main():
    check_calls()
    with tempfile.TemporaryDirectory() as folder:
        check_engine(os.path.join(folder, "index"))
        check_command(sys.argv[1:], check_files(folder), folder)
    print("smoke: all is well")


if __name__ == "__main__":
    main()

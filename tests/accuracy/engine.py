#!/usr/bin/env python3
"""Whether adding documents one by one, near by similarity, keeps those that `dedup --keep first` keeps.

    tests/accuracy/engine.py BUILD

Of every labelled set in the folder $DOPPEL_DATA: the same documents must be unique, and the others must have the same
original and similarity. Titles and URLs do not count, and by --batch 1 no document is given with another. Documents
without words are left out: an index keeps each of them, a batch one of each kind.
"""
import glob
import json
import os
import shutil
import sys
import tempfile

from measure import NO_TEXT, records, run

THRESHOLDS = [0.5, 0.8, 0.9]


def added(build, path, folder, threshold, *options):
    """{id: None or (original, similarity)} by `doppel add`."""
    index = os.path.join(folder, "index")
    shutil.rmtree(index, ignore_errors=True)
    lines = run(os.path.join(build, "doppel"), "add", "--index", index, "--near", "similarity", "--similarity",
                threshold, "--titles", "off", "--url-key", NO_TEXT, "--batch", 1, "--durability", "none", *options,
                path)
    found = {}
    for verdict in map(json.loads, lines.splitlines()):
        similarity = verdict["evidence"]["similarity"]
        found[verdict["id"]] = (verdict["originalId"], similarity) if verdict["isDuplicate"] else None
    return found


def deduplicated(build, path, folder, threshold, *options):
    """The same by `doppel dedup`."""
    kept, removed = (os.path.join(folder, name) for name in ("kept.jsonl", "removed.jsonl"))
    run(os.path.join(build, "doppel"), "dedup", "--keep", "first", "--similarity", threshold, "--output", kept,
        "--removed", removed, *options, path)
    with open(kept, encoding="utf-8") as file:
        found = {json.loads(line)["id"]: None for line in file}
    with open(removed, encoding="utf-8") as file:
        for line in map(json.loads, file):
            found[line["id"]] = line["originalId"], line["similarity"]
    return found


def same(a, b):
    """Similarities are printed in six digits."""
    return a == b or (a and b and a[0] == b[0] and abs(a[1] - b[1]) < 1e-5)


def without_words(build, path, *options):
    lines = run(os.path.join(build, "doppel"), "fingerprint", "--json", *options, path).splitlines()
    return {sketch["id"] for sketch in map(json.loads, lines) if not sketch["words"]}


def check(build, path, folder, report, thresholds=THRESHOLDS, options=()):
    """Calls report(text) where the two differ."""
    name = " ".join([os.path.basename(path).split(".")[0], *map(str, options)])
    wordless = without_words(build, path, *options)
    for threshold in thresholds:
        one_by_one = added(build, path, folder, threshold, *options)
        at_once = deduplicated(build, path, folder, threshold, *options)
        differ = [i for i in {**at_once, **one_by_one}
                  if i not in wordless and not same(one_by_one.get(i, ()), at_once.get(i, ()))]
        for document in differ[:5]:
            report(f"{name}: at {threshold}, {document} is a copy of {at_once.get(document, '-')} by dedup, of "
                   f"{one_by_one.get(document, '-')} by add ({len(differ)} differ)")
        copies = sum(found is not None for found in at_once.values())
        print(f"{name}: at {threshold}, of {len(at_once)} documents {copies} are copies, one by one "
              f"{'as' if not differ else 'NOT as'} at once", flush=True)


def main():
    failures = []
    data = os.environ.get("DOPPEL_DATA")
    if len(sys.argv) != 2 or not data:
        sys.exit(__doc__.split("\n\n")[1].strip() + ", with DOPPEL_DATA set")
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(glob.glob(os.path.join(data, "*.jsonl")) + glob.glob(os.path.join(data, "*.jsonl.gz"))):
            check(sys.argv[1], path, folder, failures.append)
            if all(record.get("html") for record in records(path)):
                check(sys.argv[1], path, folder, failures.append, options=("--text-key", NO_TEXT))
    print("\n".join(failures) if failures else "every set is the same one by one and at once")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

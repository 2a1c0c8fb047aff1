#!/usr/bin/env python3
"""What the presets find of edited texts, and which of their verdicts are wrong.

    tests/accuracy/presets.py BUILD [PRESET...]

Edited texts: of each text of the set udhr_multilingual the sentences up to 1500 characters are added; then they come
again, once without the middle one, once with another sentence of the text in front: 56 questions. Wrong: every labelled
set of the folder $DOPPEL_DATA is added to an index; a duplicate is wrong when it and its original have neither the same
`cluster` nor a 5-word Jaccard similarity of at least 0.5 (NAME.jaccard05.tsv has those pairs).
"""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

from measure import Failed, records

PART = 1500
SENTENCE = re.compile(r"(?<=[.。।။։؟?!།])\s+|\n")


def edited(data):
    """(documents, questions), each a list of (id, text); a question's id begins with its document's."""
    documents, questions = [], []
    for record in records(glob.glob(os.path.join(data, "udhr_multilingual.jsonl*"))[0]):
        sentences = [text for text in SENTENCE.split(record["text"]) if text.strip()]
        part = []
        while sum(map(len, part)) < PART:
            part.append(sentences[len(part)])
        rest, middle = sentences[len(part):], len(part) // 2
        documents.append((record["id"], "\n".join(part)))
        questions.append((record["id"] + "|dropped", "\n".join(part[:middle] + part[middle + 1:])))
        questions.append((record["id"] + "|in front", "\n".join([rest[len(rest) // 2], *part])))
    return documents, questions


def save(path, documents):
    with open(path, "w", encoding="utf-8") as file:
        for name, text in documents:
            file.write(json.dumps({"id": name, "text": text}) + "\n")


def verdicts(build, command, index, *arguments):
    """Of add, or of check, which ends with 1 when there are duplicates."""
    command = [os.path.join(build, "doppel"), command, "--index", index, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise Failed(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def missed(build, data, folder, options):
    """Ids of the edited texts that are not found."""
    documents, questions = edited(data)
    old, new, index = (os.path.join(folder, name) for name in ("old.jsonl", "new.jsonl", "edited"))
    save(old, documents)
    save(new, questions)
    verdicts(build, "add", index, *options, old)
    answers = verdicts(build, "check", index, new)
    return [v["id"] for v in answers if v["originalId"] != v["id"].split("|")[0]]


def similar_pairs(path):
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as file:
        return {frozenset(line.split("\t")[:2]) for line in file}


def wrong(build, data, folder, options):
    """(duplicates, those that are wrong) over all labelled sets."""
    duplicates, bad = 0, []
    for path in sorted(glob.glob(os.path.join(data, "*.jsonl*"))):
        name = os.path.basename(path).split(".")[0]
        cluster = {record["id"]: record.get("cluster") for record in records(path)}
        similar = similar_pairs(os.path.join(data, name + ".jaccard05.tsv"))
        for v in verdicts(build, "add", os.path.join(folder, name), "--durability", "none", *options, path):
            if not v["isDuplicate"]:
                continue
            duplicates += 1
            a, b = v["id"], v["originalId"]
            if (cluster[a] is None or cluster[a] != cluster[b]) and frozenset((a, b)) not in similar:
                bad.append((a, b, v["reason"], v["confidence"]))
    return duplicates, bad


def main():
    data = os.environ.get("DOPPEL_DATA")
    if len(sys.argv) < 2 or not data:
        sys.exit(__doc__.split("\n\n")[1].strip() + ", with DOPPEL_DATA set")
    for preset in sys.argv[2:] or ["general", "crawl", "article"]:
        for more in ([], ["--near", "distance"]):
            options = ["--preset", preset, *more]
            with tempfile.TemporaryDirectory() as folder:
                lost = missed(sys.argv[1], data, folder, options)
                duplicates, bad = wrong(sys.argv[1], data, folder, options)
            print(f"{' '.join(options[1:])}: {56 - len(lost)} of 56 edited texts found; {len(bad)} of {duplicates} duplicates wrong",
                  flush=True)
            for line in bad[:5]:
                print("   ", *line)


if __name__ == "__main__":
    main()

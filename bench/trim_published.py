"""doppel trim compared with published methods on the same texts: what one cuts and the other does not.

    build/bench-dedup-venv/bin/python bench/trim_published.py [--build build] [--data $DOPPEL_DATA] [RULE...]

RULE is one of ccnet, llama, dolma, dolma-in-order (on one thread), dolma-small (a filter made for a fiftieth of the
lines), c4 and suffix-array; all without one. Dolma, datatrove (for c4) and the suffix array are those of
bench/peers_trim.py, which bench/run --part trim installs; the rules of CCNet and Llama 3 are written down here. --data
is any folder of JSONL sets (NAME.jsonl.gz). Of c4, which is slow, and of the suffix array only sets in English are read.
Lines are compared where units are lines, else words; those without a letter or digit do not count.
"""
import argparse
import collections
import glob
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unicodedata

import peers_trim
import trim_truth

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENGLISH = ("pgdocs", "spdx_licences")
LINE, WORD = re.compile(r"[^\n]+"), re.compile(r"\S+")


# ---- rules ----

def is_left_out(letter):
    return ord(letter) < 32 or 127 <= ord(letter) < 160 or (ord(letter) > 127 and unicodedata.category(letter)[0] == "P")


def ccnet_key(line):
    """Lower case, each digit a 0, no control characters and no punctuation beyond ASCII; 64 bits of its SHA-1."""
    line = re.sub(r"\d", "0", line.strip().lower())
    return hashlib.sha1("".join(letter for letter in line if not is_left_out(letter)).encode()).digest()[:8]


def often(records, least):
    """The lines that occur so often, all of them."""
    count = collections.Counter(ccnet_key(line) for _, text in records for line in text.split("\n"))
    for name, text in records:
        for match in LINE.finditer(text):
            if count[ccnet_key(match.group())] >= least:
                yield name, match.start(), match.end()


def by_peer(name, path, **settings):
    folder = tempfile.mkdtemp()
    for key, value in settings.items():
        setattr(peers_trim, key, value)
    for part in ("in", "out"):
        os.makedirs(os.path.join(folder, "temporary", part))
    _, rows = getattr(peers_trim, name)(path, folder, os.path.join(folder, "temporary"))
    shutil.rmtree(folder)
    return [(name, int(start), int(end)) for name, start, end in rows]


EVERY = ["--keep-first", "off"]
# what is compared, doppel's options, the rule
RULES = {
    "ccnet": (LINE, ["--min-words", "1", *EVERY], lambda records, path: often(records, 2)),
    "llama": (LINE, ["--min-words", "1", "--min-count", "7", *EVERY], lambda records, path: often(records, 7)),
    "dolma": (LINE, ["--min-words", "1"], lambda records, path: by_peer("dolma", path, CORES=2)),
    "dolma-in-order": (LINE, ["--min-words", "1"], lambda records, path: by_peer("dolma", path, CORES=1)),
    "dolma-small": (LINE, ["--min-words", "1"],
                    lambda records, path: by_peer("dolma", path, CORES=1, EXPECTED=0.02)),
    "c4": (WORD, ["--unit", "sentence", "--run", "3", "--min-words", "1"],
           lambda records, path: by_peer("datatrove", path)),
    "suffix-array": (WORD, ["--unit", "passage"], lambda records, path: by_peer("suffix_array", path)),
}


# ---- doppel ----

def in_characters(text, ranges):
    """Ranges of bytes as ranges of characters; they are in order."""
    found, before, at, data = [], 0, 0, text.encode()
    for start, end in ranges:
        first = at + len(data[before:start].decode())
        before, at = end, first + len(data[start:end].decode())
        found.append([first, at])
    return found


def by_doppel(options, arguments, records, path):
    with tempfile.NamedTemporaryFile() as spans:
        command = [os.path.join(options.build, "doppel"), "trim", *arguments, path, "-o", "/dev/null", "--spans",
                   spans.name]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        cuts = trim_truth.of_doppel(spans.name)
    return {name: in_characters(text, cuts[name]) for name, text in records if name in cuts}


# ---- what both cut ----

def is_cut(ranges, start, end):
    return trim_truth.covered(ranges, start, end) * 2 > end - start


def kind_of(unit):
    """What may be why only one of them cuts it."""
    if any(letter.isdigit() for letter in unit):
        return "with digits"
    if any(unicodedata.category(letter)[0] in "PS" for letter in unit):
        return "with punctuation"
    return "other"


def compare(rule, unit, records, mine, theirs):
    figures, kinds = collections.Counter(), collections.Counter()
    for name, text in records:
        for match in unit.finditer(text):
            if not any(letter.isalnum() for letter in match.group()):
                continue
            found = is_cut(mine.get(name, []), *match.span()), is_cut(theirs.get(name, []), *match.span())
            figures[found] += 1
            if found[0] != found[1]:
                kinds[("doppel" if found[0] else rule) + " only, " + kind_of(match.group())] += 1
    print(f"{rule}: {sum(figures.values())} {'lines' if unit is LINE else 'words'}; both cut {figures[True, True]}, "
          f"doppel only {figures[True, False]}, {rule} only {figures[False, True]}")
    for kind, count in kinds.most_common():
        print(f"    {kind}: {count}")


def read_sets(data, names):
    for path in sorted(glob.glob(os.path.join(data, "*.jsonl.gz"))):
        name = os.path.basename(path)[:-len(".jsonl.gz")]
        if names and name not in names:
            continue
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for number, record in enumerate(map(json.loads, file)):
                yield f"{name}-{number}", record["text"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("rules", nargs="*", metavar="RULE", default=list(RULES))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--data", default=os.environ.get("DOPPEL_DATA", ""))
    options = parser.parse_args()
    if not options.data:
        sys.exit("trim_published.py: --data or DOPPEL_DATA must name a folder of JSONL sets")
    for rule in options.rules:
        unit, arguments, published = RULES[rule]
        records = list(read_sets(options.data, ENGLISH if unit is WORD else ()))
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": name, "text": text}) + "\n" for name, text in records)
            file.flush()
            theirs = trim_truth.join_all(published(records, file.name))
            compare(rule, unit, records, by_doppel(options, arguments, records, file.name), theirs)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Plants passages into real text, and test questions into real sets, and counts what doppel trim finds of them.

    bench/trim_planted.py [--megabytes 1000] [--build build] [--folder build/bench-corpus] [--data $DOPPEL_DATA]

Passages: the texts of --data (any folder of JSONL sets), of /usr/share/doc and of the man pages, as often as it takes
for the size. In them a word that occurs nowhere else follows after at most 45 words, so that whatever repeats by nature
is shorter than 50 words: there is much of it, and none of it may be cut. Passages of exactly 49, 50, 51, 100, 400 and
1,000 words are planted twice or three times each; half of the later copies have other case, punctuation and line
breaks. What is to be cut is thus known to the byte, and is compared with --spans.

Questions: invented ones of 8 to 30 words that occur in the sets, broken over lines, with other case and punctuation, are
planted into every fifth document of each set. In others one word of a question is wrong, so that no 13 words in a row
are the same: these are not to be found, nor is anything else. --unit passage --words 13 --against questions --drop.
"""
import argparse
import glob
import gzip
import json
import os
import random
import re
import subprocess
import sys
import unicodedata

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LENGTHS, PASSAGES = (49, 50, 51, 100, 400, 1000), 300
LONGEST_RUN = 45
TEXTS = ("/usr/share/doc/**/*", "/usr/share/man/**/*")
WORD, PLAIN = re.compile(rb"[A-Za-z0-9]+|[\x80-\xff]"), re.compile(r"[a-z]{2,12}")


# ---- real text ----

def files(data):
    for path in sorted(glob.glob(os.path.join(data, "*.jsonl.gz"))) if data else []:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from (record.get("text") or "" for record in map(json.loads, file))
    for pattern in TEXTS:
        for path in sorted(glob.glob(pattern, recursive=True)):
            if os.path.isfile(path) and not path.endswith((".png", ".jpg", ".gif", ".pdf", ".svg", ".svgz", ".ico")):
                with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
                    text = file.read(1 << 20)
                if b"\0" not in text[:1000]:
                    yield text.decode("utf-8", "ignore")


def cut_into_runs(text):
    """Pieces of a text with at most 45 words, however words are told apart: as JSON, and their length in bytes."""
    runs, run, words = [], [], 0
    for piece in re.findall(r"\S+\s*", text):
        count = len(WORD.findall(piece.encode()))
        if count > LONGEST_RUN:
            continue
        if words + count > LONGEST_RUN:
            runs.append("".join(run))
            run, words = [], 0
        run.append(piece)
        words += count
    runs.append("".join(run))
    return [(json.dumps(run, ensure_ascii=False)[1:-1], len(run.encode())) for run in runs]


def read_texts(data, most):
    texts, size = [], 0
    for text in files(data):
        if len(text) > 500:
            texts.append(text)
            size += len(text)
        if size > most:
            break
    return texts, size


# ---- passages ----

def choose_passages(texts, chance):
    """Runs of plain words of the texts, no eight of which in a row stand in two."""
    seen, found, order = set(), {length: [] for length in LENGTHS}, list(range(len(texts)))
    chance.shuffle(order)
    for number in order:
        words = PLAIN.findall(texts[number])
        missing = [length for length in LENGTHS if len(found[length]) < PASSAGES and length + 50 < len(words)]
        if not missing:
            continue
        length = min(missing, key=lambda length: (len(found[length]), -length))
        first = chance.randrange(len(words) - length)
        passage = words[first:first + length]
        grams = {tuple(passage[at:at + 8]) for at in range(length - 7)}
        if len(grams) == length - 7 and not grams & seen:
            seen |= grams
            found[length].append(passage)
    return found


def disguise(words, chance):
    case = chance.choice((str.upper, str.title, str.lower))
    return "".join(case(word) + chance.choice((" ", " ", " ", ", ", "\n", "; ", " (", "... ")) for word in words[:-1]) + \
        case(words[-1])


class Maker:
    """Writes documents, each with its planted passages, and what is to be cut of them."""

    def __init__(self, chance):
        self.chance, self.salt, self.expected, self.planted = chance, 0, set(), 0

    def unique(self):
        self.salt += 1
        return f"zz{self.salt}qq "

    def document(self, name, runs, copies):
        """Each of `copies`: (words, whether it is the first one)."""
        parts, at = [], 0
        places = sorted(self.chance.randrange(len(runs)) for _ in copies)
        for number, (run, length) in enumerate(runs):
            salt = self.unique()
            parts += [salt, run]
            at += len(salt) + length
            while places and places[0] == number:
                places.pop(0)
                at = self.plant(name, parts, at, *copies.pop())
        return '{"id":"%s","text":"%s"}\n' % (name, "".join(parts))

    def plant(self, name, parts, at, words, first):
        before, after = " " + self.unique(), " " + self.unique()
        text = " ".join(words) if first or self.chance.random() < 0.5 else disguise(words, self.chance)
        start = at + len(before)
        if len(words) >= 50 and not first:
            self.expected.add((name, start, start + len(text) + 1, len(words)))
        self.planted += 1
        parts += [before, json.dumps(text)[1:-1], after]
        return start + len(text) + len(after)


def make_passages(options, path):
    """The file, and what is to be cut: {(id, start, end, words)}."""
    chance = random.Random(17)
    texts, size = read_texts(options.data, options.megabytes * 1000000)
    passages = choose_passages(texts, chance)
    runs = [run for text in texts for run in cut_into_runs(text)]
    plan = [(words, number == 0) for group in passages.values() for words in group
            for number in range(chance.choice((2, 3)))]
    documents = max(1, options.megabytes * 1000000 // 6000)
    queue, maker, done, number, at = {}, Maker(chance), 0, 0, 0
    # The first copy of a passage goes into an early document, the others into later ones.
    for words, first in plan:
        half = documents // 2
        place = chance.randrange(half) if first else half + chance.randrange(half * 3 // 4)
        queue.setdefault(place, []).append((words, first))
    with open(path, "w", encoding="utf-8") as file:
        while done < options.megabytes * 1000000 or queue:
            share = [runs[(at + i) % len(runs)] for i in range(20)]
            at += 20
            line = maker.document(f"d{number}", share, queue.pop(number, []))
            done += len(line.encode())
            file.write(line)
            number += 1
    return maker, {"texts": len(texts), "bytes": size, "documents": number, "written": os.path.getsize(path),
                   "passages": {length: len(group) for length, group in passages.items()}}


def run_doppel(options, *arguments):
    command = [os.path.join(options.build, "doppel"), "trim", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr.decode()}")
    return json.loads(done.stdout)


def measure_passages(options):
    path, spans = os.path.join(options.folder, "planted.jsonl"), os.path.join(options.folder, "planted.spans")
    maker, made = make_passages(options, path)
    summary = run_doppel(options, "--unit", "passage", "--words", "50", path, "-o", "/dev/null", "--spans", spans)
    with open(spans, encoding="utf-8") as file:
        found = {(row["id"], row["start"], row["end"], row["words"]) for row in map(json.loads, file)}
    print(f"{made['bytes'] / 1e6:.0f} MB of {made['texts']} texts became {made['written'] / 1e6:.0f} MB of "
          f"{made['documents']} documents, {summary['words']} words; {maker.planted} copies of "
          f"{sum(made['passages'].values())} passages planted")
    print(f"to be cut: {len(maker.expected)}; found to the byte: {len(maker.expected & found)}; "
          f"missed: {len(maker.expected - found)}; others: {len(found - maker.expected)}; "
          f"the shortest found: {min((row[3] for row in found), default=0)} words")
    for row in sorted(found - maker.expected)[:5] + sorted(maker.expected - found)[:5]:
        print("   ", "others" if row in found else "missed", row)
    os.remove(path)
    os.remove(spans)
    return found == maker.expected


# ---- questions ----

WORDS, LETTERS = ("LATIN", "GREEK", "CYRILLIC", "HEBREW", "ARABIC"), ("CJK", "HIRAGANA")


def vocabulary_of(records):
    """Words of the texts; of scripts written without spaces, single characters, each of which counts as a word."""
    found = set()
    for record in records:
        for word in re.findall(r"[^\W\d_]+", record["text"][:20000]):
            if all(unicodedata.name(letter, "").startswith(WORDS) for letter in word):
                found.add(word)
            found.update(letter for letter in word if unicodedata.name(letter, "").startswith(LETTERS))
    return sorted(found)


def plant_question(text, words, chance):
    places = [match.end() for match in re.finditer(r"\s", text)] or [len(text)]
    at = chance.choice(places)
    return text[:at] + " \n" + disguise(words, chance) + "? \n" + text[at:]


def spoil(words, chance):
    """One word wrong, the one in the middle: no 13 in a row are left of at most 25."""
    return words[:len(words) // 2] + [f"wrong{chance.randrange(10**6)}"] + words[len(words) // 2 + 1:]


def measure_questions(options):
    chance, good = random.Random(23), True
    for path in sorted(glob.glob(os.path.join(options.data, "*.jsonl.gz"))):
        name = os.path.basename(path)[:-len(".jsonl.gz")]
        with gzip.open(path, "rt", encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
        vocabulary = vocabulary_of(records)
        planted, spoilt, questions = {}, set(), []
        for number, record in enumerate(records):
            if number % 5 > 1:
                continue
            words = chance.choices(vocabulary, k=chance.randint(8, 30 if number % 5 == 0 else 25))
            questions.append({"id": f"q{number}", "text": " ".join(words) + "?"})
            if number % 5 == 0:
                planted[record["id"]] = f"q{number}"
            else:
                spoilt.add(record["id"])
                words = spoil(words, chance)
            record["text"] = plant_question(record["text"], words, chance)
        good &= ask(options, name, records, questions, planted, spoilt)
    return good


def ask(options, name, records, questions, planted, spoilt):
    paths = [os.path.join(options.folder, "planted-" + part) for part in ("set.jsonl", "questions.jsonl", "dropped",
                                                                          "spans")]
    for path, rows in zip(paths, (records, questions)):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    run_doppel(options, "--unit", "passage", "--words", "13", "--against", paths[1], "--drop", paths[0], "-o", "/dev/null",
               "--dropped", paths[2], "--spans", paths[3])
    with open(paths[2], encoding="utf-8") as file:
        dropped = {json.loads(line)["id"] for line in file}
    with open(paths[3], encoding="utf-8") as file:
        found = {(row["id"], row["originalId"]) for row in map(json.loads, file)}
    for path in paths:
        os.remove(path)
    print(f"{name}: {len(records)} documents, {len(planted)} with a question, {len(spoilt)} with a spoilt one; found "
          f"{len(dropped & set(planted))}, others {len(dropped - set(planted))}")
    return dropped == set(planted) and found == set(planted.items())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--folder", default=os.path.join(ROOT, "build", "bench-corpus"))
    parser.add_argument("--data", default=os.environ.get("DOPPEL_DATA", ""))
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    good = measure_passages(options)
    if options.data:
        good &= measure_questions(options)
    else:
        print("DOPPEL_DATA is not set: no questions")
    print("all found, nothing else" if good else "NOT what was planted")
    sys.exit(not good)


if __name__ == "__main__":
    main()

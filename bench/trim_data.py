"""Makes the files that bench/trim.py measures on: invented text with planted repeats, and the truth about them.

    trim_data.make(folder, unit, megabytes)     -> the path of a JSONL file (id, text) for a unit of doppel trim
    trim_data.footers(folder, kind)             -> that of a million documents of one line or passage

Words come from a list of 50,000, the frequent ones more often (Zipf); 8 to 18 of them make a sentence, 80 bytes on
average. What repeats, by unit:

line        a line is a sentence: one in ten comes from 5,000 footers, some far more often than others, and one in
            twenty is any line of an earlier document
paragraph   3 to 8 lines; one in ten is that of an earlier document
sentence    paragraphs of 4 to 12 sentences; in one of four there are 3 to 8 sentences of an earlier document in a row
passage     the same paragraphs; every document copies 50 to 400 words of an earlier one, from the middle of a sentence
            to the middle of another; every second copies 20 to 49 words, which are too few to be cut

A fifth of the repeats are disguised: other case, punctuation and line breaks. All else is new: eight words in a row
practically never come twice by chance. Where a copied passage ends, a word stands that stands nowhere else.

The truth of FILE.jsonl is FILE.truth, a line of JSON for each occurrence of what repeats, the first one as well:
[group, id, start, end, disguised]. Those of a group are the same; all but one of them are to be cut.
"""
import itertools
import json
import os
import random

WORDS, ENTRIES = 50000, 1 << 20
FOOTERS = 5000
KEPT = 20000  # documents that may be copied from
DISGUISED = 0.2
SHARES = {"line": (0.1, 0.05), "paragraph": 0.1, "sentence": 0.25, "passage": (1, 0.5)}


class Source:
    """Invented words and sentences."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.table = self.words()

    def words(self):
        """50,000 words, each as often as its rank gives it; the frequent ones are short."""
        letters, weights = "etaoinshrdlucmfwypvbgkjqxz", [12, 9, 8, 8, 7, 7, 6, 6, 6, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1,
                                                         1, 1, 1, 1, 1]
        found = {}
        while len(found) < WORDS:
            longest = 2 + min(9, len(found).bit_length() * 3 // 5)
            found["".join(self.chance.choices(letters, weights, k=self.chance.randint(2, longest)))] = None
        whole = sum(1 / rank for rank in range(1, WORDS + 1))
        table = []
        for rank, word in enumerate(found, 1):
            table += [word] * max(1, round(ENTRIES / rank / whole))
        return table

    def sentence(self):
        words = " ".join(self.chance.choices(self.table, k=self.chance.randint(8, 18)))
        return words[0].upper() + words[1:] + "."

    def sentences(self, low, high):
        return [self.sentence() for _ in range(self.chance.randint(low, high))]


def disguise(text, chance):
    """The same words with other case, punctuation and line breaks."""
    words = text.replace(".", "").replace("\n", " ").split(" ")
    case = chance.choice((str.upper, str.title, str.lower))
    return "".join(case(word) + chance.choice((" ", " ", " ", " ", ", ", "\n", "; ")) for word in words).rstrip(" \n,;") + "!"


class Plan:
    """A document in the making: its text, piece by piece, and where what repeats stands in it."""

    def __init__(self, number):
        self.name, self.pieces, self.size, self.repeats = f"d{number}", [], 0, []

    def add(self, text, group=None, disguised=False):
        if group is not None:
            self.repeats.append((group, self.size, self.size + len(text), disguised))
        self.pieces.append(text)
        self.size += len(text)

    def text(self):
        return "".join(self.pieces)


class Maker:
    """Documents of one kind. `kept` has what later ones may copy."""

    def __init__(self, unit, seed):
        self.source = Source(seed)
        self.chance = self.source.chance
        self.kept, self.groups, self.unit = [], itertools.count(), unit
        self.originals = []  # (group, id, start, end, disguised) of what was copied from an earlier document
        if unit == "line":
            self.footers = self.source.sentences(FOOTERS, FOOTERS)
            self.disguised = [self.chance.random() < DISGUISED for _ in self.footers]
            for _ in self.footers:
                next(self.groups)

    def keep(self, entry):
        if len(self.kept) < KEPT:
            self.kept.append(entry)
        else:
            self.kept[self.chance.randrange(KEPT)] = entry

    def copy(self, plan, where, text):
        """Adds a copy of `text`, which stands at where = (id, start)."""
        group, disguised = next(self.groups), self.chance.random() < DISGUISED
        self.originals.append((group, where[0], where[1], where[1] + len(text), disguised))
        plan.add(disguise(text, self.chance) if disguised else text, group, disguised)

    def document(self, number):
        plan = Plan(number)
        getattr(self, self.unit)(plan, self.chance.randint(2000, 6000))
        return plan

    def line(self, plan, size):
        footer, earlier = SHARES["line"]
        fresh = []
        while plan.size < size:
            draw = self.chance.random()
            if draw < footer:
                which = int(FOOTERS * self.chance.random() ** 3)
                text, disguised = self.footers[which], self.disguised[which]
                if disguised and self.chance.random() < 0.5:
                    text = disguise(text, self.chance).replace("\n", " ")
                plan.add(text, which, disguised)
            elif draw < footer + earlier and self.kept:
                name, start, text = self.chance.choice(self.kept)
                self.copy_line(plan, name, start, text)
            else:
                text = self.source.sentence()
                fresh.append((plan.name, plan.size, text))
                plan.add(text)
            plan.add("\n")
        self.keep(self.chance.choice(fresh))

    def copy_line(self, plan, name, start, text):
        """A kept line is copied once, so that a group has two."""
        self.kept.remove((name, start, text))
        group, disguised = next(self.groups), self.chance.random() < DISGUISED
        self.originals.append((group, name, start, start + len(text), disguised))
        plan.add(disguise(text, self.chance).replace("\n", " ") if disguised else text, group, disguised)

    def paragraph(self, plan, size):
        fresh = []
        while plan.size < size:
            if self.kept and self.chance.random() < SHARES["paragraph"]:
                name, start, text = self.kept.pop(self.chance.randrange(len(self.kept)))
                self.copy(plan, (name, start), text)
            else:
                text = "\n".join(self.source.sentences(3, 8))
                fresh.append((plan.name, plan.size, text))
                plan.add(text)
            plan.add("\n\n")
        for entry in self.chance.sample(fresh, min(2, len(fresh))):
            self.keep(entry)

    def sentence(self, plan, size):
        fresh = []
        while plan.size < size:
            before = self.source.sentences(2, 6)
            if self.kept and self.chance.random() < SHARES["sentence"]:
                name, start, run = self.kept.pop(self.chance.randrange(len(self.kept)))
                plan.add(" ".join(before) + " ")
                self.copy(plan, (name, start), run)
                plan.add(" " + " ".join(self.source.sentences(2, 6)))
            else:
                run, first = self.source.sentences(3, 8), " ".join(before) + " "
                text = " ".join(run)
                fresh.append((plan.name, plan.size + len(first), text))
                plan.add(first + text + " " + " ".join(self.source.sentences(1, 3)))
            plan.add("\n\n")
        for entry in fresh[:2]:
            self.keep(entry)

    def passage(self, plan, size):
        runs = [self.chance.randint(50, 400)] * (self.chance.random() < SHARES["passage"][0])
        runs += [self.chance.randint(20, 49)] * (self.chance.random() < SHARES["passage"][1])
        places = sorted(self.chance.sample(range(0, size, 400), len(runs))) if self.kept else []
        longest = (0, "")
        while plan.size < size or places:
            text = " ".join(self.source.sentences(4, 12))
            longest = max(longest, (len(text), plan.size, text)) if len(text) > longest[0] else longest
            plan.add(text)
            while places and plan.size >= places[0]:
                places.pop(0)
                self.copy_words(plan, runs.pop())
            plan.add("\n\n")
        self.keep((plan.name, plan.text()))

    def copy_words(self, plan, count):
        """A run of words of an earlier document, between two words that stand nowhere else."""
        name, text = self.chance.choice(self.kept)
        bounds = word_bounds(text)
        first = self.chance.randrange(max(1, len(bounds) - count))
        run = bounds[first:first + count]
        start, end = run[0][0], run[-1][1]
        plan.add(f" start{next(self.groups)} ")
        if count >= 50 and len(run) >= 50:
            self.copy(plan, (name, start), text[start:end])
        else:
            plan.add(text[start:end])
        plan.add(f" end{next(self.groups)} ")


def word_bounds(text):
    found, at = [], 0
    for piece in text.replace("\n", " ").split(" "):
        if piece:
            found.append((at, at + len(piece)))
        at += len(piece) + 1
    return found


def make(folder, unit, megabytes):
    """The path of the file, made unless it is there. Files of more than 100 MB have no truth."""
    path = os.path.join(folder, f"{unit}s-{megabytes}MB.jsonl")
    if os.path.exists(path):
        return path
    maker, done = Maker(unit, 7), 0
    with open(path + ".part", "w", encoding="ascii") as file, open(truth_of(path), "w", encoding="ascii") as truth:
        for number in itertools.count():
            plan = maker.document(number)
            done += file.write('{"id":"%s","text":%s}\n' % (plan.name, json.dumps(plan.text())))
            if megabytes <= 100:
                rows = maker.originals + [(row[0], plan.name, *row[1:]) for row in plan.repeats]
                truth.writelines(json.dumps(row) + "\n" for row in rows)
            maker.originals.clear()
            if done >= megabytes * 1000000:
                break
    os.replace(path + ".part", path)
    return path


def truth_of(path):
    return path[:-len(".jsonl")] + ".truth"


# ---- a million documents of one line, or of one passage ----

def footers(folder, unit, same, count):
    """One text in all of them, or another in each; lines of 80 bytes, passages of 60 words."""
    path = os.path.join(folder, f"{unit}-{'same' if same else 'different'}-{count}.jsonl")
    if os.path.exists(path):
        return path
    source = Source(8)
    sentence = source.sentence if unit == "line" else lambda: " ".join(source.chance.choices(source.table, k=60)) + "."
    text = sentence()
    with open(path + ".part", "w", encoding="ascii") as file:
        for number in range(count):
            file.write('{"id":"%d","text":"%s"}\n' % (number, text if same else sentence()))
    os.replace(path + ".part", path)
    return path

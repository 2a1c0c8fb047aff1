"""trim.py - repeated parts of documents, by definition: docs/FORMAT.md section 15 once more, in plain Python.

    documents = [Document(text, scope), ...]      those of `against` first
    for result in find(documents, Rules(unit="line"), order): result.spans, result.cuts, result.rest, ...
"""
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction

import unicodedata2 as unicode

import reference

SENTENCE_TERMINAL = """
    21 2E 3F 589 61D-61F 6D4 700-702 7F9 837 839 83D-83E 964-965 104A-104B 1362 1367-1368 166E 1735-1736 1803 1809
    1944-1945 1AA8-1AAB 1B5A-1B5B 1B5E-1B5F 1B7D-1B7E 1C3B-1C3C 1C7E-1C7F 203C-203D 2047-2049 2E2E 2E3C 2E53-2E54 3002
    A4FF A60E-A60F A6F3 A6F7 A876-A877 A8CE-A8CF A92F A9C8-A9C9 AA5D-AA5F AAF0-AAF1 ABEB FE52 FE56-FE57 FF01 FF0E FF1F
    FF61 10A56-10A57 10F55-10F59 10F86-10F89 11047-11048 110BE-110C1 11141-11143 111C5-111C6 111CD 111DE-111DF
    11238-11239 1123B-1123C 112A9 1144B-1144C 115C2-115C3 115C9-115D7 11641-11642 1173C-1173E 11944 11946 11A42-11A43
    11A9B-11A9C 11C41-11C42 11EF7-11EF8 11F43-11F44 16A6E-16A6F 16AF5 16B37-16B38 16B44 16E98 1BC9F 1DA88"""
TERMINALS = {chr(c) for part in SENTENCE_TERMINAL.split() for low, _, high in [part.partition("-")]
             for c in range(int(low, 16), int(high or low, 16) + 1)}  # Sentence_Terminal of Unicode 15.0
FULL_WIDTH = set("\u3002\uff01\uff0e\uff1f\uff61")
WHITE_SPACE = {chr(c) for c in reference.WHITE_SPACE}
LINE_ENDS = set("\n\r\u2028\u2029")


@dataclass
class Document:
    text: bytes
    scope: str = ""  # by what `within` or `across` names; for "document" one of its own
    page: bool = False  # the text was made of a page
    against: bool = False


@dataclass
class Rules:
    """The options of a run. Document.scope has what `within` and `across` compare."""
    unit: str
    run: int = 1
    words: int = 50
    min_words: int = 5
    min_count: int = 2
    keep_first: bool = True
    within: bool = False
    across: bool = False
    drop_below: int = 0
    drop_share: Fraction | None = None
    drop: bool = False
    recipe: str = "page"

    def length(self):
        """N: the units of a window."""
        return self.words if self.unit == "passage" else self.run


# ---- code points, each with its bytes


def invalid(error):
    """An invalid sequence becomes one surrogate, which says how many bytes it has."""
    return chr(ord(reference.INVALID) + error.end - error.start), error.end


reference.codecs.register_error("doppel-length", invalid)


def code_points(data):
    """(code point, start, end) of a text; an invalid sequence is a surrogate."""
    found, at = [], 0
    for char in data.decode("utf-8", "doppel-length"):
        size = ord(char) - ord(reference.INVALID) if is_invalid(char) else len(char.encode())
        found.append((char, at, at + size))
        at += size
    return found


def is_invalid(char):
    return unicode.category(char) == "Cs"


def is_mark(char):
    return unicode.category(char)[0] == "M"


# ---- words, each with its bytes: section 1


def normalising_pieces(data, fold):
    """(text, start, end): a code point and those that join it. Without text: an invalid sequence."""
    points = code_points(data)
    if points and points[0][0] == "\ufeff":
        points = points[1:]
    found, joined = [], 0
    for char, start, end in points:
        if is_invalid(char):
            found.append(("", start, end))
            joined = 0
            continue
        joins = reference.joins(char, fold)
        joined = joined + 1 if joins else 0
        if joined > 32:
            joined = 1
        elif joins and found and found[-1][0]:
            text, start, _ = found.pop()
            char = text + char
        found.append((char, start, end))
    return found


def located_words(data, recipe, stop=frozenset()):
    """(word, start, end) of each word: from the first to the last byte of the pieces that it comes from."""
    fold = recipe["case"] == "fold"
    runs = [[]]  # of (code point, start, end), split at separators
    for text, start, end in normalising_pieces(data, fold):
        made = reference.normalise(text, fold).translate(reference.CLASSES[recipe["punct"]]) if text else " "
        for char in made:
            if char == " ":
                runs.append([])
            else:
                runs[-1].append((char, start, end))
    found = []
    for run in filter(None, runs):
        at = 0
        for word in reference.split_alone("".join(char for char, _, _ in run)):
            found.append((word, run[at][1], run[at + len(word) - 1][2]))
            at += len(word)
    return [each for each in found if each[0] not in stop]


# ---- pieces: runs of code points, whose ends are given as indexes


def line_ends(chars):
    """Where lines end, the end of the text included."""
    ends = [at + 1 for at, char in enumerate(chars)
            if char in LINE_ENDS and not (char == "\r" and chars[at + 1:at + 2] == ["\n"])]
    return sorted({*ends, len(chars)})


def paragraph_ends(chars):
    """A paragraph ends before a blank line and after it."""
    ends, start, was_blank = {len(chars)}, 0, False
    for end in line_ends(chars):
        blank = all(char in WHITE_SPACE for char in chars[start:end])
        if blank or was_blank:
            ends.add(start)
        start, was_blank = end, blank
    return sorted(ends)


def continues_terminal(char):
    return char in TERMINALS or unicode.category(char) in ("Pe", "Pf", "Pi") or is_mark(char) or char in "\"'"


def sentence_ends(chars):
    ends, at = set(line_ends(chars)), 0
    while at < len(chars):
        start = at
        at += 1
        if chars[start] not in TERMINALS:
            continue
        while at < len(chars) and continues_terminal(chars[at]):
            at += 1
        if at < len(chars) and chars[at] not in WHITE_SPACE and not FULL_WIDTH & set(chars[start:at]):
            continue
        while at < len(chars) and chars[at] in WHITE_SPACE - LINE_ENDS and not any(map(is_mark, chars[at + 1:at + 2])):
            at += 1
        if at == len(chars) or chars[at] not in LINE_ENDS:
            ends.add(at)
    return sorted(ends)


ENDS = {"line": line_ends, "paragraph": paragraph_ends, "sentence": sentence_ends}


def pieces(document, unit):
    """(start, end) in bytes of each piece of a text."""
    points = code_points(document.text)
    if unit == "paragraph" and document.page:
        unit = "line"
    start = 0
    for end in ENDS[unit]([char for char, _, _ in points]):
        if end > start:
            yield points[start][1], points[end - 1][2]
        start = end


# ---- units


@dataclass
class Unit:
    words: tuple
    start: int
    end: int = 0


def passage_starts(data, starts):
    """Where words start; if with a mark, before the marks that end there and the code point before these."""
    points = code_points(data)
    number = {start: at for at, (_, start, _) in enumerate(points)}
    for start in starts:
        at = number[start]
        if is_mark(points[at][0]):
            at -= 1
            while at > 0 and is_mark(points[at][0]):
                at -= 1
        yield points[max(at, 0)][1]


def units(document, rules, stop=frozenset()):
    """The units of a text; each ends where the next one starts, the last where the text ends."""
    recipe, data = reference.parse(rules.recipe), document.text
    if rules.unit == "passage":
        located = located_words(data, recipe, stop)
        starts = passage_starts(data, [start for _, start, _ in located])
        found = [Unit((word,), start) for (word, _, _), start in zip(located, starts)]
    else:
        made = [Unit(tuple(reference.words(data[start:end], recipe, stop)), start)
                for start, end in pieces(document, rules.unit)]
        found = [unit for unit in made if unit.words]
    for unit, following in zip(found, [*found[1:], None]):
        unit.end = following.start if following else len(data)
    return found


# ---- what is cut


@dataclass(frozen=True)
class Window:
    document: int
    at: int  # its first unit
    length: int


def windows(number, found, rules):
    """(value, window) of each window that counts in a text."""
    n = rules.length()
    for at in range(len(found) - n + 1):
        inside = found[at:at + n]
        if rules.unit == "passage" or any(len(unit.words) >= rules.min_words for unit in inside):
            yield tuple(unit.words for unit in inside), Window(number, at, n)


def repeats(x, y, documents, rules):
    """Whether x repeats y, their values being the same."""
    if x.document == y.document and y.at + rules.length() > x.at:
        return False
    same_scope = documents[x.document].scope == documents[y.document].scope
    return (same_scope or not rules.within) and not (same_scope and rules.across)


def occurrences(same, rules):
    """How often a value occurs: windows that overlap the last one that counted in their text do not count."""
    count, last = 0, {}
    for window in same:
        if window.document not in last or window.at - last[window.document] >= rules.length():
            last[window.document] = window.at
            count += 1
    return count


def cut_among(same, documents, rules):
    """(window, original) of what is cut of the windows of one value, which are in order."""
    if occurrences(same, rules) < rules.min_count:
        return
    for i, x in enumerate(same):
        original = next((y for y in same[:i] if repeats(x, y, documents, rules)), None)
        if original is None and not rules.keep_first:
            original = next((y for y in same[i + 1:] if repeats(y, x, documents, rules)), None)
        if original is not None:
            yield x, original


def cut_repeats(documents, found, rules, order):
    """(window, original) of all that is cut."""
    by_value = defaultdict(list)
    for number in order:
        scope = documents[number].scope if rules.within else None
        for value, window in windows(number, found[number], rules):
            by_value[value, scope].append(window)
    for same in by_value.values():
        yield from cut_among(same, documents, rules)


def cut_against(documents, found, rules):
    """The same with documents of `against`."""
    originals, short = {}, {}
    for number, document in enumerate(documents):
        if document.against:
            for value, window in windows(number, found[number], rules):
                originals.setdefault(value, window)
            count = len(found[number])
            if rules.unit == "passage" and rules.min_words <= count < rules.length():
                short.setdefault(tuple(unit.words for unit in found[number]), Window(number, 0, count))
    for number, document in enumerate(documents):
        if document.against:
            continue
        for value, window in windows(number, found[number], rules):
            if value in originals:
                yield window, originals[value]
        for value, original in short.items():
            for at in range(len(found[number]) - len(value) + 1):
                if value == tuple(unit.words for unit in found[number][at:at + len(value)]):
                    yield Window(number, at, len(value)), original


# ---- spans and cuts


@dataclass
class Span:
    start: int
    end: int
    words: int
    original: int  # the number of the document
    original_start: int


def runs_of_windows(cut, rules):
    """[first unit, unit after the last, original] of each span of one text."""
    runs, last = [], {}
    for window, original in sorted(cut, key=lambda pair: (pair[0].at, pair[0].length)):
        key = original.document, window.at - original.at
        if window.length < rules.length():
            runs.append([window.at, window.at + window.length, original])
        elif key in last and window.at <= last[key][1]:
            last[key][1] = window.at + window.length
        else:
            last[key] = [window.at, window.at + window.length, original]
            runs.append(last[key])
    return sorted(runs, key=lambda run: (run[0], run[1], run[2].document, run[2].at))


class Result:
    """What is cut of a document, and what is left."""

    def __init__(self, document, found, cut, all_units, rules):
        self.spans, self.cuts, covered = [], [], set()
        for first, after, original in runs_of_windows(cut, rules):
            covered |= set(range(first, after))
            self.spans.append(Span(found[first].start, found[after - 1].end,
                                   sum(len(unit.words) for unit in found[first:after]), original.document,
                                   all_units[original.document][original.at].start))
        for span in self.spans:
            if self.cuts and span.start <= self.cuts[-1][1]:
                self.cuts[-1][1] = max(self.cuts[-1][1], span.end)
            else:
                self.cuts.append([span.start, span.end])
        self.words = sum(len(unit.words) for unit in found)
        self.words_cut = sum(len(found[at].words) for at in covered)
        self.bytes_cut = sum(end - start for start, end in self.cuts)
        kept = zip([0, *(end for _, end in self.cuts)], [*(start for start, _ in self.cuts), len(document.text)])
        self.rest = b"".join(document.text[start:end] for start, end in kept)
        self.dropped = self.reason(rules)
        self.emptied = 0 < self.words_cut == self.words and not self.dropped

    def reason(self, rules):
        """Why the document is dropped; None: it is not."""
        if not self.words_cut:
            return None
        if rules.drop:
            return "repeats"
        if self.words - self.words_cut < rules.drop_below:
            return "below"
        if rules.drop_share is not None and Fraction(self.words_cut, self.words) > rules.drop_share:
            return "share"
        return None


def find(documents, rules, order=None, stop=frozenset()):
    """The result for each document. `order` has the numbers of the documents in the order of `keep`."""
    found = [units(document, rules, stop) for document in documents]
    if any(document.against for document in documents):
        pairs = cut_against(documents, found, rules)
    else:
        pairs = cut_repeats(documents, found, rules, order if order is not None else range(len(documents)))
    cut = defaultdict(list)
    for window, original in pairs:
        cut[window.document].append((window, original))
    return [Result(document, found[number], cut[number], found, rules) for number, document in enumerate(documents)]

"""test_trim.py - doppel trim against trim.py, on small random corpora in which nearly everything repeats.

    test_trim.py            all tests
    test_trim.py SEED...    these corpora only; their files and commands are kept in a folder that is printed
"""
import ctypes
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from ctypes import POINTER, byref, c_char_p, c_int, c_void_p
from fractions import Fraction

import check
import documents
import grouping
import library
import reference
import trim

DOPPEL = os.path.join(os.environ.get("DOPPEL_BUILD", "build"), "doppel")
FULL = os.environ.get("DOPPEL_SUITE") == "full"
CORPORA = 1000 if FULL else 40
UNITS = ["line", "sentence", "paragraph", "passage"]

# ---- texts

SCRIPTS = [  # words of one writing system or kind; some differ only in case or form
    "a b", "a A b B c", "the The cat sat on x1 it's don-t",
    "e\u0301 \u00e9 E\u0301 \u1e9b\u0323 \ufb03 \u0130 stra\u00dfe STRASSE o\u0323\u0308",
    "\u043c\u0438\u0440 \u041c\u0418\u0420 \u0439 \u0438\u0306 \u0451", "\u03b1\u0345 \u1fb3 \u0391\u0399 \u03c3\u03c2",
    "\u0627\u0644\u0633\u0644\u0627\u0645 \u0639\u0644\u064a\u0643\u0645 \u0633\u064e\u0644\u064e \ufdfa",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0915\u094d\u0937 \u0915\u093c \u093e \u0940\u0902",
    "\u0e01\u0e33\u0e1b\u0e31\u0e19 \u0e44\u0e17\u0e22 \u0e01\u0e4d\u0e32",
    "\u1797\u17b6\u179f\u17b6\u1781\u17d2\u1798\u17c2\u179a \u17c1",
    "\u4e2d\u6587 \u4e2d \u6587\u4e2d\u6587 \uf900 \U00020000",
    "\u304b\u3099 \u304c \u30ab\uff9e \u30d1\u30fc \u3042\u3042",
    "\ud55c\uad6d \u1112\u1161\u11ab \uac00\u11a8",
    "\U0001f468\u200d\U0001f469 \u2764\ufe0f 1\ufe0f\u20e3 \U0001f1e9\U0001f1ea ok",
    "\u0301 a\u0301\u0301 \u20dd \xb4 \xa8b \ufffd \u200d", "\uff41\uff42 \uff21 \u2460 \xbd x\xb2", "0 1 00 \u0660",
]
GAPS = {
    "spaces": [" ", " ", " ", "  ", "\t", "\u3000", "\xa0", ", ", " - ", "\u0f0b", "\u1361", "\x0b", "\x85", "\x00 "],
    "sentences": [". ", ". ", "! ", "?\" ", ".) ", "... ", ".\u0301 ", ".\u201d\u3000", "\u3002", "\uff01",
                  "\uff1f\u300d", "\uff61", "\u0964 ", "\u061f ", "\u1362", ".", ".x ", "?!\u3002", "\u203d\t\n",
                  ".\u2028", ". \r\n", "\uff0e\x85 ", "!'\xab", ".\x1c", ".\u200b "],
    "lines": ["\n", "\n", "\n", "\r\n", "\r", "\u2028", "\u2029", "\n\r", " \n", "\n ", "\n--\n", "\n\u0301", "\r\r\n"],
    "blank": ["\n\n", "\n\n", "\r\n\r\n", "\n \t\n", "\r\r", "\u2029\u2029", "\n\u3000\n\n", "\n\ufeff\n", "\n.\n",
              "\n\x00\n"],
    "none": ["", "-", "\u200b", "\u093e", "\u0301", "!\u093e", " \u093e", " !\u0301", "\u0345"],
}
EDGES = ["", "", "", " ", "\n", "\r\n\r\n", "! ", "\ufeff", "\u0301", "\u2028", "--\n", "\u3002", "\ufdfa"]
WHOLE = ["", "", "!", " \n", "...\n\n?", "\u0301", "\ufeff", "\u3002\u3002", "a", "a. a. a. a.", "a a a a a",
         "a\na\na\na\na\na\na", "\ufdfa \ufdfa\ufdfa", "\x00", "a\u3002b\u3002a\u3002b", "\u093e\n\u093e\n"]


class Language:
    """Words, gaps and phrases of a corpus. Phrases are made of words or of each other: repeats nest and overlap."""

    def __init__(self, rng):
        self.rng = rng
        scripts = rng.sample(SCRIPTS, rng.choice([1, 1, 2, 3]))
        words = [word for script in scripts for word in script.split(" ")]
        self.words = rng.sample(words, min(len(words), rng.choice([1, 2, 3, 5, 12])))
        self.inner = ["spaces"] * rng.choice([0, 3, 9]) + rng.sample(sorted(GAPS), rng.choice([1, 1, 2, 3]))
        self.outer = ["lines", "blank", "blank"] * rng.choice([0, 1, 2]) + ["sentences"] * rng.choice([0, 1, 3])
        self.outer += rng.sample(sorted(GAPS), rng.choice([1, 1, 2]))
        self.phrases = [[rng.choice(self.words) for _ in range(rng.choice([1, 2, 3, 5, 8]))] for _ in range(3)]
        for _ in range(rng.choice([0, 2, 4])):
            self.phrases.append(sum(rng.choices(self.phrases, k=2), [])[:24])
        self.fixed = {}  # a phrase, now and then, has the same gaps wherever it stands

    def gap(self, kinds):
        return self.rng.choice(GAPS[self.rng.choice(kinds)])

    def join(self, words):
        """Words with gaps between them, and one after the last."""
        before_last = "".join(word + self.gap(self.inner) for word in words[:-1])
        return before_last + "".join(words[-1:]) + self.gap(self.outer)

    def phrase(self):
        rng, number = self.rng, self.rng.randrange(len(self.phrases))
        words = self.phrases[number]
        if rng.random() < 0.5:
            return self.fixed.setdefault(number, self.join(words))
        if rng.random() < 0.3:
            cut = sorted(rng.choices(range(len(words) + 1), k=2))
            words = words[cut[0]:cut[1]]
        text = self.join(words)
        return text.upper() if rng.random() < 0.1 else text

    def text(self, earlier):
        """Phrases in a row; or something short; or an earlier text, whole, cut or twice."""
        rng, kind = self.rng, self.rng.random()
        if kind < 0.1:
            return rng.choice(WHOLE)
        if kind < 0.15:
            return (rng.choice(self.words) + self.gap(self.inner + self.outer)) * rng.randrange(1, 16)
        if kind < 0.3 and earlier:
            text = rng.choice(earlier)[:400]
            start, end = sorted(rng.choices(range(len(text) + 1), k=2))
            return rng.choice([text, text + text, text[start:], text[:end], text[:start] + self.phrase() + text[end:]])
        phrases = [self.phrase() for _ in range(rng.choice([1, 3, 6, 12]))]
        return rng.choice(EDGES) + "".join(phrases) + rng.choice(EDGES)


# ---- records

HOSTS = ["one.com", "www.one.com", "WWW.One.com", "a.one.com", "two.org", "b.two.org"]
DATES = ["2024-01-02", "2024-01-02T10:00:00+02:00", "2024-01-02T09:30:00-01:00", "2024-01-02T08:00:00", "2023-12-31",
         "soon", None]
OTHER = [b'"a":1.50', b'"b":"\\u00e9\\/\\n\\u000a"', b'"c" : {"text":"in\\u006eer", "id":[ ]}',
         b'"d":[-0,1E5,null , true]', b'"e":"\\ud83d\\ude00"', '"\u00e9":"\u00e9\U0001f600\x7f"'.encode(),
         b'"spans":[{"start":1}]', b'"f":""',
         b'"text" :"not this: a later one counts"', b'"g":"\\ud800"', b'"words":7', b'"texts":"x"']
SHORT_ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape(char, how):
    """A code point as JSON may have it: itself, a short escape or \\u, which takes two beyond U+FFFF."""
    if char in SHORT_ESCAPES and how < 0.7 and not (char == "/" and how < 0.4):
        return SHORT_ESCAPES[char]
    if how < 0.9 and char not in '"\\' and ord(char) >= 0x20:
        return char
    units = char.encode("utf-16-be")
    halves = [units[i:i + 2].hex() for i in range(0, len(units), 2)]
    return "".join("\\u" + (half if how < 0.95 else half.upper()) for half in halves)


def json_string(rng, text):
    plain = rng.random() < 0.3
    return ('"' + "".join(escape(char, 0.5 if plain else rng.random()) for char in text) + '"').encode()


class Record:
    """A line of JSONL: what is before the value of its text, the value, and what is after it."""

    def __init__(self, rng, number, text):
        self.text = text
        self.id = f'd"{number}\u00e9' if rng.random() < 0.9 else "twice"
        host = rng.choice([*HOSTS, None])
        self.host = (host or "").lower().removeprefix("www.")
        self.fields = {"url": f"{rng.choice(['http', 'HTTPS'])}://{host}/p{rng.randrange(9)}" if host else None,
                       "date": rng.choice(DATES), "site": rng.choice(["x", "y", "x/", "", None])}
        members = [b'"id":' + json_string(rng, self.id)]
        members += [f'"{key}" :'.encode() + json_string(rng, value)
                    for key, value in self.fields.items() if value is not None]
        members += rng.sample(OTHER, rng.choice([0, 1, 3]))
        rng.shuffle(members)
        key = rng.choice([b'"text"', b'"text"', b'"text"', b'"\\u0074ext"'])
        at = len(members) if any(b"not this" in member for member in members) else rng.randrange(len(members) + 1)
        members[at:at] = [b"@"]
        blank = rng.choice([b"", b" "])
        before, _, after = (rng.choice([b"", b" "]) + b"{" + (b"," + blank).join(members) + b"}").partition(b"@")
        self.before, self.after = before + key + b":" + blank, blank + after + rng.choice([b"", b"", b"  "])
        self.line = self.before + json_string(rng, text) + self.after

    def scope(self, name):
        if name == "document":
            return self
        if name in ("host", "domain"):
            return self.host if name == "host" else ".".join(self.host.split(".")[-2:])
        return self.fields[name] or ""

    def differs(self, line, rest):
        """Why a line is not this record with `rest` as its text; None: it is."""
        if rest == self.text.encode():
            return None if line == self.line else "not as it was"
        value = line[len(self.before):len(line) - len(self.after)]
        if not line.startswith(self.before) or not line.endswith(self.after) or value[:1] != b'"':
            return "other parts are not as they were"
        return None if json.loads(value).encode() == rest else f"text is {json.loads(value)!r}"


# ---- settings


def arguments_of(chosen):
    """The options that set these rules."""
    given = []
    for name, value in chosen.items():
        given += ["--" + name.replace("_", "-"), ("on" if value else "off") if name == "keep_first" else value]
    return given


class Settings:
    """Random options of a run for one unit. What is None is not given, and has its default."""

    def __init__(self, rng, unit, against):
        chosen = {"min_words": rng.choice([1, 1, 1, 1, 2, 2, 3, 4, 6, None]),
                  "drop_below": rng.choice([None, None, None, 1, 3, 10]),
                  "drop_share": rng.choice([None, None, None, "0.5", "0.3", "0.25", "0.6", "0.99"]),
                  "recipe": rng.choice([None] * 4 + ["simhash64:case=keep", "simhash64:words=1:punct=keep"])}
        if unit == "passage":
            chosen["words"] = rng.choice([2, 2, 3, 4, 5, 6, 7, 8, 12, None if rng.random() < 0.2 else 3])
            if not against:
                chosen["min_words"] = None
        else:
            chosen["run"] = rng.choice([1, 1, 1, 2, 3, None])
        self.keep = scope = None
        if not against:
            self.keep = rng.choice([None, "first", "last", "longest", "shortest", "newest:date", "oldest:date,last",
                                    "longest,newest:date"])
            chosen["min_count"] = rng.choice([None, None, 2, 2, 3, 5])
            chosen["keep_first"] = rng.choice([None, True, False])
            scope = rng.choice([None, None, None, "document", "host", "domain", "site"])
        self.scope, inside = scope, rng.random() < 0.6
        self.within, self.across = scope if inside else None, None if inside else scope
        self.drop = rng.random() < 0.15
        self.stop = rng.random() < 0.1
        self.threads, self.memory = rng.choice([1, 3]), rng.choice([None, "1M", "16M"])
        self.mode = rng.choice(["write", "write", "write", "annotate", "dry-run"])
        self.chosen = {name: value for name, value in chosen.items() if value is not None}
        self.rules = trim.Rules(unit=unit, within=bool(self.within), across=bool(self.across), drop=self.drop,
                                **{name: Fraction(value) if name == "drop_share" else value
                                   for name, value in self.chosen.items()})

    def arguments(self):
        given = ["--unit", self.rules.unit, *arguments_of(self.chosen)]
        for name in ("keep", "within", "across", "threads", "memory"):
            value = getattr(self, name)
            given += ["--" + name, value] if value is not None else []
        return given + ["--drop"] * self.drop + ([] if self.mode == "write" else ["--" + self.mode])


# ---- corpora


def run(*arguments):
    """stdout of the command."""
    done = subprocess.run([DOPPEL, "trim", *map(str, arguments)], capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(f"exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return done.stdout


def read_lines(path):
    with open(path, "rb") as file:
        return file.read().split(b"\n")[:-1]


def write_lines(path, lines):
    with open(path, "wb") as file:
        file.writelines(line + b"\n" for line in lines)
    return path


def require(what, got, expected):
    """Fails with the first difference of two lists, or of two values."""
    if got == expected:
        return
    if isinstance(got, list):
        at = next((i for i, (g, e) in enumerate(zip(got, expected)) if g != e), min(len(got), len(expected)))
        what += f" {at} of {len(got)}, by definition of {len(expected)}"
        got, expected = got[at:at + 3], expected[at:at + 3]
    raise AssertionError(f"{what}:\n  found         {got}\n  by definition {expected}")


class Corpus:
    """Random records in files, and now and then records that they are compared with."""

    def __init__(self, seed, folder):
        self.seed, self.folder = seed, folder
        self.rng = rng = random.Random(seed)
        language, texts = Language(rng), []
        for _ in range(rng.choice([1, 2, 4, 8, 12, 16])):
            texts.append(language.text(texts))
        made = [Record(rng, number, text) for number, text in enumerate(texts)]
        known = rng.randrange(len(made)) if rng.random() < 0.35 else 0
        self.against, self.records = made[:known], made[known:]
        cuts = sorted(rng.randrange(len(self.records) + 1) for _ in range(rng.randrange(3)))
        parts = [self.records[a:b] for a, b in zip([0, *cuts], [*cuts, None])]
        self.paths = [self.write(f"input{i}.jsonl", part) for i, part in enumerate(parts) if part]
        at = rng.randrange(known + 1) if known > 1 else known
        parts = [part for part in (self.against[:at], self.against[at:]) if part]
        self.against_options = [option for i, part in enumerate(parts)
                                for option in ("--against", self.write(f"against{i}.jsonl", part))]
        self.stop = "\n".join(rng.choices(language.words, k=2)).encode()
        self.stop_path = write_lines(os.path.join(folder, f"{seed}-stop.txt"), [self.stop])
        self.settings = [Settings(rng, unit, known > 0) for unit in UNITS]

    def write(self, name, records):
        return write_lines(os.path.join(self.folder, f"{self.seed}-{name}"), [record.line for record in records])

    def path(self, name):
        return os.path.join(self.folder, f"{self.seed}-{name}.jsonl")

    def order(self, settings):
        """The numbers of the documents in the order of `keep`."""
        keep = (settings.keep or "first").split(",")
        rules, ranked = grouping.Rules(keep=[tuple((rule + ":").split(":")[:2]) for rule in keep]), []
        for number, record in enumerate(self.against + self.records):
            fields = {key: value for key, value in record.fields.items() if value is not None}
            document = grouping.Document({"id": record.id, "text": record.text, **fields}, None, None)
            document.position = number
            ranked.append((grouping.rank(document, rules), number))
        return [number for _, number in sorted(ranked)]

    def expected(self, settings):
        """The results for the records, without those of `against`."""
        texts = [trim.Document(record.text.encode(), record.scope(settings.scope) if settings.scope else "",
                               against=number < len(self.against))
                 for number, record in enumerate(self.against + self.records)]
        stop = frozenset()
        if settings.stop:
            stop, _ = reference.stop_words(self.stop, reference.parse(settings.rules.recipe))
        return trim.find(texts, settings.rules, self.order(settings), stop)[len(self.against):]

    def command(self, settings):
        stop = ["--stop-words", self.stop_path] if settings.stop else []
        return [*self.paths, *settings.arguments(), *self.against_options, *stop, "-o", self.path("out"),
                "--spans", self.path("spans"), "--dropped", self.path("dropped"), "--json"]

    def spans(self, result):
        ids = [record.id for record in self.against + self.records]
        return [{"start": span.start, "end": span.end, "words": span.words, "originalId": ids[span.original],
                 "originalStart": span.original_start} for span in result.spans]

    def check(self, settings):
        """Runs the command and compares all that it writes."""
        if os.path.exists(self.path("out")):
            os.remove(self.path("out"))
        summary = json.loads(run(*self.command(settings)))
        results = self.expected(settings)
        pairs = list(zip(self.records, results))
        spans = [{"id": record.id, **span} for record, result in pairs for span in self.spans(result)]
        require("span", [json.loads(line) for line in read_lines(self.path("spans"))], spans)
        dropped = [{"id": record.id, "reason": result.dropped or "empty", "words": result.words,
                    "wordsCut": result.words_cut, "originalId": self.spans(result)[0]["originalId"]}
                   for record, result in pairs if result.dropped or result.emptied]
        require("dropped", [json.loads(line) for line in read_lines(self.path("dropped"))], dropped)
        if settings.mode == "dry-run":
            require("documents are written", os.path.exists(self.path("out")), False)
        elif settings.mode == "annotate":
            self.check_annotated(pairs)
        else:
            self.check_written(pairs)
        counts = {"documents": len(results), "documentsCut": sum(result.words_cut > 0 for result in results),
                  "spans": len(spans), "words": sum(result.words for result in results),
                  "wordsCut": sum(result.words_cut for result in results),
                  "bytesCut": sum(result.bytes_cut for result in results),
                  "dropped": sum(result.dropped is not None for result in results),
                  "emptied": sum(result.emptied for result in results)}
        require("summary", {name: summary.get(name) for name in counts}, counts)
        return len(spans)

    def check_written(self, pairs):
        written = [(record, result) for record, result in pairs if not result.dropped]
        lines = read_lines(self.path("out"))
        require("number of records", len(lines), len(written))
        for line, (record, result) in zip(lines, written):
            wrong = record.differs(line, result.rest)
            if wrong:
                raise AssertionError(f"record: {wrong}\n  found         {line}\n  it was        {record.line}\n"
                                     f"  by definition {result.rest.decode()!r} is left of its text")

    def check_annotated(self, pairs):
        lines = read_lines(self.path("out"))
        require("number of records", len(lines), len(pairs))
        for line, (record, result) in zip(lines, pairs):
            expected = {**json.loads(record.line), "spans": self.spans(result)}
            require("annotated record", json.loads(line), expected)

    def describe(self, settings):
        texts = [f"  {word} {record.id!r}: {record.text.encode()!r} {record.fields}"
                 for word, records in (("against", self.against), ("document", self.records)) for record in records]
        texts += [f"  stop words: {self.stop!r}"] * settings.stop
        command = [DOPPEL, "trim", *map(str, self.command(settings))]
        return (f"corpus {self.seed}, {settings.rules}, keep {settings.keep}, scope {settings.scope}\n"
                f"again: {sys.argv[0]} {self.seed}\n{shlex.join(command)}\n" + "\n".join(texts))


def check_corpora(seeds, folder):
    """Compares these corpora; raises the first differences, and says which others differ. Gives the number of spans."""
    failures, spans = [], 0
    for seed in seeds:
        corpus = Corpus(seed, folder)
        for settings in corpus.settings:
            try:
                spans += corpus.check(settings)
            except (AssertionError, OSError, ValueError) as failure:
                failures.append((seed, settings.rules.unit, f"{corpus.describe(settings)}\n{failure}"))
    if failures:
        which = ", ".join(f"{seed} ({unit})" for seed, unit, _ in failures)
        details = "\n\n".join(text for _, _, text in failures[:3])
        raise AssertionError(f"{len(failures)} of {len(seeds) * len(UNITS)} runs differ: {which}\n\n{details}")
    return spans


# ---- tests


def test_words_come_from_the_bytes_that_the_library_says():
    real, _ = documents.real(100)
    rng = random.Random(1)
    made = [Language(rng).text([]).encode() for _ in range(300)]
    stop = "the a \u0301 \u4e2d".encode()
    for parts, list_ in [("", None), (":case=keep:punct=keep", None), ("", stop)]:
        recipe, stop_words = reference.parse("simhash64:words=1" + parts), frozenset()
        if list_:
            stop_words, _ = reference.stop_words(list_, recipe)
        library_recipe = library.Recipe("simhash64:words=1" + parts, list_)
        for data in real + made + documents.invented(20000 if FULL else 400):
            found = trim.located_words(data, recipe, stop_words)
            assert [word for word, _, _ in found] == reference.words(data, recipe, stop_words), data
            assert [place[1:] for place in found] == library_recipe.word_ranges(data), (data, found)


UNITS_BY_HAND = [  # unit, the text cut into units; the first part belongs to none
    ("line", ["\n", " a\r\n\r", " b\u2028!\n"]),
    ("line", ["", "a\x0bb\x85c\r\r\n\n", "d"]),
    ("sentence", ["!\n", "a. ", "b.c \"d!\" ", "e\u3002", "f?\n! ", "!g.\u0301)\u2019\t\r\n", " h.\u200bi"]),
    ("sentence", ["", "a?!\uff01", "b... ", "c.\x85\u2029\u3002", "d.'x"]),
    ("sentence", ["", "a. ", " \u0301b.", "\t\u0301c.\n", "\u0301d\u3002", " \u0301e. \n", "f"]),
    ("paragraph", ["\n", "a\nb\n \t\n\n!\n\n", "\ufeff\n c\r\r", "d"]),
    ("passage", ["\xab", "ab\xbb ", "!\u093e ", "c", "", "", "\ufdfa. "]),
    ("passage", ["", " \u0301", "\u4e2d!", "\u6587\u0301 "]),
]
CUTS_BY_HAND = [  # rules, texts, then (start, end, original, original start) of the spans of the last one, what is left
    ({"words": 2}, ["a a a a a"], [(4, 8, 0, 0), (6, 9, 0, 0)], "a a "),
    ({"words": 2}, ["a a a"], [], "a a a"),
    ({"words": 2, "min_count": 3}, ["a a a a a"], [], "a a a a a"),
    ({"words": 2, "keep_first": False}, ["a a a a"], [(0, 4, 0, 4), (4, 7, 0, 0)], ""),
    ({"words": 2}, ["x a b c d", "!a b c y c d"], [(1, 7, 0, 2), (9, 12, 0, 6)], "!y "),
    ({"words": 2}, ["a b", "b c", "a b c"], [(0, 4, 0, 0), (2, 5, 1, 0)], ""),
    ({"words": 2, "across": True}, ["a b a b"], [], "a b a b"),
]


def test_examples_worked_by_hand():
    for unit, parts in UNITS_BY_HAND:
        data = "".join(parts).encode()
        found = trim.units(trim.Document(data), trim.Rules(unit=unit))
        require(f"{unit} of {data!r}", [data[each.start:each.end].decode() for each in found], parts[1:])
    for rules, texts, spans, left in CUTS_BY_HAND:
        result = trim.find([trim.Document(text.encode()) for text in texts], trim.Rules(unit="passage", **rules))[-1]
        got = [(span.start, span.end, span.original, span.original_start) for span in result.spans]
        require(f"{rules} of {texts}", (got, result.rest.decode()), (spans, left))


def test_random_corpora():
    with tempfile.TemporaryDirectory() as folder:
        return f"{CORPORA} corpora, {check_corpora(range(CORPORA), folder)} spans"


def test_threads_and_memory_make_no_difference():
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(100000, 100000 + CORPORA // 10):
            corpus = Corpus(seed, folder)
            for settings in corpus.settings:
                settings.mode, written = "write", set()
                for settings.threads, settings.memory in [(1, None), (3, "1M"), (2, "64M")]:
                    summary = json.loads(run(*corpus.command(settings)))
                    counts = [summary.get(name) for name in ("documents", "spans", "wordsCut", "bytesCut", "dropped")]
                    written.add((*read_lines(corpus.path("out")), *read_lines(corpus.path("spans")), *counts))
                assert len(written) == 1, corpus.describe(settings)


def check_texts(texts, ids, paths, folder, *more, words=2, **chosen):
    """By each unit, the spans of these documents and the texts that are written; `paths` are their files. Gives the
    summaries."""
    summaries = []
    out, spans = os.path.join(folder, "out.jsonl"), os.path.join(folder, "spans.jsonl")
    for unit in UNITS:
        rules = {**chosen, "words": words} if unit == "passage" else {**chosen, "min_words": 1}
        given = ["--unit", unit, *arguments_of(rules), *more]
        summaries.append(json.loads(run(*given, *paths, "-o", out, "--spans", spans, "--json")))
        results = trim.find(texts, trim.Rules(unit=unit, **rules))
        expected = [{"id": name, "start": span.start, "end": span.end, "words": span.words,
                     "originalId": ids[span.original], "originalStart": span.original_start}
                    for name, result in zip(ids, results) for span in result.spans]
        what = f"{given} of {texts if len(texts) < 10 else len(texts)}"
        require(f"{what}: span", [json.loads(line) for line in read_lines(spans)], expected)
        left = [result.rest.decode("utf-8", "replace") for result in results]
        require(f"{what}: text", [json.loads(line).get("text") for line in read_lines(out)], left)
    return summaries


def sentences(rng, vocabulary, count):
    return [" ".join(rng.choices(vocabulary, k=rng.randrange(3, 12))) + rng.choice([". ", ".\n", "\n\n"])
            for _ in range(count)]


def larger_texts(rng, count, share):
    """Texts of some 200 words; this share of them is cut out of a few long ones."""
    vocabulary = [f"w{i}" for i in range(rng.choice([30, 3000]))]
    sources = [sentences(rng, vocabulary, 60) for _ in range(max(2, count // 20))]
    texts = []
    for _ in range(count):
        text = []
        while len(text) < 25:
            source, start = rng.choice(sources), rng.randrange(60)
            if rng.random() < share:
                text += source[start:start + rng.randrange(1, 20)]
            else:
                text += sentences(rng, vocabulary, 3)
        texts.append("".join(text).encode())
    return texts


def test_more_than_fits_into_memory():
    """Of passages only some words are looked up, and in rounds if memory is short: nothing is missed."""
    rng, spilled = random.Random(5), 0
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.jsonl")
        for words, share in [(6, 0.3), (20, 0.8), (50, 1)] * (8 if FULL else 1):
            texts = larger_texts(rng, 300 if FULL else 60, share)
            ids = [str(i) for i in range(len(texts))]
            write_lines(path, [json.dumps({"id": i, "text": text.decode()}).encode() for i, text in zip(ids, texts)])
            chosen = rng.choice([{}, {"min_count": 3}, {"keep_first": False}, {"min_count": 4, "keep_first": False}])
            summaries = check_texts([trim.Document(text) for text in texts], ids, [path], folder, "--memory", "64K",
                                    "--threads", 3, words=words, **chosen)
            spilled += sum(summary["spilledBytes"] for summary in summaries)
    return f"{spilled} bytes in files"


def test_texts_with_damaged_bytes():
    """Files of text. Invalid sequences are U+FFFD in what is written."""
    rng = random.Random(3)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(CORPORA // 4):
            atoms = [rng.choice(documents.KINDS)(rng)[:60].replace(b"\0", b"") for _ in range(3)]  # NUL is no text
            atoms += [b"a", b"\xff", b"b c", b"\xe4\xb8\n", "\u093e".encode(), b". "]
            paths, texts = [], []
            for i in range(4):
                count = rng.choice([1, 5, 15])
                text = b"".join(rng.choice(atoms) + rng.choice([b" ", b"\n", b""]) for _ in range(count))
                texts.append(b"a " + text)  # so that no text looks like JSON or a page
                paths.append(os.path.join(folder, f"{number}-{i}.txt"))
                with open(paths[-1], "wb") as file:
                    file.write(texts[-1])
            check_texts([trim.Document(text) for text in texts], paths, paths, folder)


class Page(ctypes.Structure):
    _fields_ = [("text", library.Slice), ("title", library.Slice), ("canonical", library.Slice),
                ("language", library.Slice), ("charset", c_char_p)]


def page_text(html):
    """All visible text of a page, as the library makes it."""
    reader, page = c_void_p(), Page()
    library.lib.doppel_page_reader_create.argtypes = [POINTER(c_void_p)]
    library.lib.doppel_page_reader_free.argtypes = [c_void_p]
    library.lib.doppel_page_read.argtypes = [c_void_p, library.Slice, c_char_p, c_int, POINTER(Page)]
    library.check(library.lib.doppel_page_reader_create(byref(reader)))
    library.check(library.lib.doppel_page_read(reader, library.slice_of(html), b"utf-8", 1, byref(page)))
    text = page.text.bytes()
    library.lib.doppel_page_reader_free(reader)
    return text or b""


def test_blocks_of_pages_are_paragraphs():
    rng = random.Random(4)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "pages.jsonl")
        for _ in range(CORPORA // 4):
            pages = []
            for _ in range(4):
                tags = rng.choices(["p", "div", "li", "span"], k=rng.randrange(7))
                words = [" ".join(rng.choices(["one", "two", "three."], k=rng.randrange(4))) for _ in tags]
                pages.append("".join(f"<{tag}>{text}</{tag}>" for tag, text in zip(tags, words)))
            write_lines(path, [json.dumps({"id": str(i), "html": html}).encode() for i, html in enumerate(pages)])
            texts = [trim.Document(page_text(html.encode()), page=True) for html in pages]
            check_texts(texts, list(map(str, range(4))), [path], folder, "--content", "all")


def test_what_does_not_go_together_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "a.jsonl"), os.path.join(folder, "out.jsonl")
        write_lines(path, [b'{"id":"a","text":"a b"}'])
        for given in [["--recipe", "article"], ["--recipe", "simhash64:chars=3"],
                      ["--recipe", "simhash64:words=1:first=9"], ["--against", path, "--keep", "last"],
                      ["--against", path, "--min-count", "3"],
                      ["--against", path, "--keep-first", "off"], ["--against", path, "--within", "host"],
                      ["--against", path, "--across", "host"], ["--unit", "word"], ["--keep", "best"],
                      ["--min-count", "1"], ["--keep-first", "maybe"]]:
            done = subprocess.run([DOPPEL, "trim", *given, path, "-o", out], capture_output=True, check=False)
            assert done.returncode == 2 and done.stderr and not os.path.exists(out), (given, done)


def keep_corpora(seeds):
    """Runs these corpora, and says where their files are."""
    folder = tempfile.mkdtemp(prefix="trim.")
    print(f"files are in {folder}")
    for seed in seeds:
        corpus = Corpus(seed, folder)
        for settings in corpus.settings:
            print(shlex.join([DOPPEL, "trim", *map(str, corpus.command(settings))]))
    print(f"{check_corpora(seeds, folder)} spans, all as defined")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        keep_corpora([int(seed) for seed in sys.argv[1:]])
    else:
        check.main(globals())

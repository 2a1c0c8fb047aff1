"""grouping.py - which documents are kept, by definition: every two documents are compared, one after the other.

Documents are near by the similarity of their shingles as reference.py makes them (and a shared band of their
signatures, for that is how they are looked for), by the distance of their fingerprints, by their words or by their URL.
"""
import hashlib
import math
from datetime import datetime, timezone
from fractions import Fraction

import reference

# ---- documents


class Document:
    """A record (a dict), and what the recipe makes of its text. `canonical` is what its URL comes to."""

    def __init__(self, record, line, canonical, known=False):
        self.record, self.line, self.canonical, self.known = record, line, canonical, known
        self.id = record["id"]
        self.position = None

    def sketch(self, recipe, slots):
        made = reference.sketch(self.record["text"].encode(), recipe)
        self.words, self.fingerprint = made["words"], made["fingerprint"]
        self.digest = made["digest"] if made["words"] else hashlib.sha256(self.record["text"].encode()).digest()
        self.set = set(made["set"])
        self.signature = reference.signature(made["set"], slots) if slots and self.set else None


class Rules:
    """The options of a run, by their names on the command line; bands and rows as the run has chosen them."""

    def __init__(self, **given):
        self.method, self.similarity, self.distance, self.min_words = "auto", "0.8", 3, 5
        self.bands = self.rows = 0
        self.by, self.keep, self.link = ["content"], [("first", None)], "kept"
        self.within = self.across = None
        self.recipe = "page"
        self.only_contained = None
        self.__dict__.update(given)

    def measures(self):
        return self.method in ("auto", "minhash")


# ---- what is near


def scope_of(document, field):
    if field in ("host", "domain"):
        host = (document.canonical or "").partition("://")[2].partition("/")[0]
        return host if field == "host" else ".".join(host.split(".")[-2:])
    return document.record.get(field) or ""


def allowed(a, b, rules):
    field = rules.within or rules.across
    return not field or (scope_of(a, field) == scope_of(b, field)) == bool(rules.within)


def jaccard(a, b):
    return Fraction(len(a.set & b.set), len(a.set | b.set))


def shares_band(a, b, rules):
    slots = range(0, rules.bands * rules.rows, rules.rows)
    return any(a.signature[i:i + rules.rows] == b.signature[i:i + rules.rows] for i in slots)


def apart(a, b):
    return (a.fingerprint ^ b.fingerprint).bit_count() if a.words and b.words else None


def near(a, b, rules):
    """(reason, similarity or None) of two near documents, the strongest; None: they are not near."""
    if not allowed(a, b, rules):
        return None
    by_content = near_by_content(a, b, rules) if "content" in rules.by else None
    if "url" in rules.by and a.canonical and a.canonical == b.canonical:
        return ("exact_url", 1 if by_content and a.digest == b.digest else None)
    return by_content and ("content_hash", by_content[0])


def near_by_content(a, b, rules):
    if a.digest == b.digest and bool(a.words) == bool(b.words):
        return (1,)
    if not a.words or not b.words:
        return None
    if rules.method == "exact" or min(a.words, b.words) < rules.min_words:
        return None
    if rules.method == "simhash":
        return (None,) if apart(a, b) <= rules.distance else None
    if not a.set or not b.set or jaccard(a, b) < Fraction(rules.similarity) or not shares_band(a, b, rules):
        return None
    return (jaccard(a, b),)


def contained(copy, kept, rules):
    """Whether a document that stays has enough of what would be its copy."""
    if rules.only_contained is None or copy.digest == kept.digest:
        return True
    return Fraction(len(copy.set & kept.set), len(copy.set)) >= Fraction(rules.only_contained)


# ---- which one stays


def number_of(value):
    """A date or a number; None for anything else."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
        return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return None


def rank(document, rules):
    """What documents are sorted by: known ones first, then by the rules, then by position."""
    if document.known:
        return (0, document.position)
    ranks = [1]
    for rule, field in rules.keep:
        url, number = document.record.get("url"), number_of(document.record.get(field)) if field else None
        length = len(document.record["text"].encode())
        ranks.append({"first": document.position, "last": -document.position, "longest": -length, "shortest": length,
                      "https": not (url or "").lower().startswith("https:"),
                      "id": str(document.record.get("id", "")).encode(),
                      "shortest-url": len(url.encode()) if url is not None else math.inf,
                      "newest": math.inf if number is None else -number,
                      "largest": math.inf if number is None else -number,
                      "oldest": math.inf if number is None else number,
                      "smallest": math.inf if number is None else number}[rule])
    return (*ranks, document.position)


def strength(d, other, evidence, rules, order):
    """The most similar first, then the order of keeping."""
    reason, similarity = evidence
    same_words = reason == "content_hash" and d.digest == other.digest
    level = 0 if reason == "exact_url" else 1 if same_words else 2
    similar = 0 if level < 2 else apart(d, other) if similarity is None else -similarity
    return (level, similar, order[other.position])


def linked(documents, rules, order):
    """Groups of everything near, step by step; the first in the order of keeping leads."""
    leader = {d.position: d.position for d in documents}
    for b in documents:
        for a in documents[:b.position]:
            if near(a, b, rules) and leader[a.position] != leader[b.position]:
                keep, drop = sorted((leader[a.position], leader[b.position]), key=order.get)
                leader = {p: keep if of == drop else of for p, of in leader.items()}
    return leader


def evidence_of_group(d, leader, rules):
    if "url" in rules.by and d.canonical and d.canonical == leader.canonical:
        reason = "exact_url"
    else:
        reason = "content_hash"
    if d.digest and d.digest == leader.digest and "content" in rules.by:
        return (reason, 1)
    measured = rules.measures() and "content" in rules.by and min(d.words, leader.words) >= rules.min_words
    return (reason, jaccard(d, leader) if measured and d.set and leader.set else None)


def decide(documents, rules):
    """For each document its original (itself: it stays) and the evidence."""
    by_rank = sorted(documents, key=lambda d: rank(d, rules))
    order = {d.position: i for i, d in enumerate(by_rank)}
    decided = {}
    if rules.link == "any":
        leader = linked(documents, rules, order)
        for d in documents:
            other = documents[leader[d.position]]
            stays = d.known or other is d
            decided[d.position] = (d, None) if stays else (other, evidence_of_group(d, other, rules))
        return decided
    kept = []
    for d in by_rank:
        found = [(k, e) for k in kept if not d.known and (e := near(k, d, rules)) and contained(d, k, rules)]
        if found:
            decided[d.position] = min(found, key=lambda pair: strength(d, *pair, rules, order))
        else:
            decided[d.position] = (d, None)
            kept.append(d)
    return decided


def groups(documents, decided):
    """By the position of the original, the documents of its group that are not known, in order."""
    found = {}
    for d in documents:
        if not d.known:
            found.setdefault(decided[d.position][0].position, []).append(d)
    return found


def spared(documents, decided, rules, copies):
    """The positions of copies that stay, where so many documents of each group do: the first in the order of keeping,
    but none of a known document."""
    stay = set()
    for original, members in groups(documents, decided).items():
        if not documents[original].known:
            others = sorted((d for d in members if d.position != original), key=lambda d: rank(d, rules))
            stay.update(d.position for d in others[:copies - 1])
    return stay


def pairs(documents, rules):
    """Every near pair but those of two known documents: (a, b, similarity or None)."""
    for a in documents:
        for b in documents[a.position + 1:]:
            if not b.known and (evidence := near(a, b, rules)):
                content = near_by_content(a, b, rules) if "content" in rules.by else None
                yield a, b, content[0] if content else evidence[1]

"""memory_reader.py - reads a memory in Redis by docs/FORMAT.md section 14 alone, with sections 5, 9, 11 and 13 as tests/reference has them.

    keys = read_keys(client, "test")     every key of the prefix: its type, its value, and when it goes
    memory = Memory(keys)
    memory.check()                       each key, field and entry is what the documents ask for, and nothing else is there
    memory.find("i", b"an id")           the numbers of documents that stand at a place
"""
import math
import os
import re
import struct
import sys
import time
from collections import defaultdict
from functools import lru_cache

import xxhash
import zstandard

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "reference"))
import index_folder  # noqa: E402
from index_file import Order  # noqa: E402
from reference import parse, signature  # noqa: E402

siphash = lru_cache(200000)(index_folder.siphash)  # the same bytes are read again and again

GOLDEN = 0x9E3779B97F4A7C15
NEVER, NEVER_HOURS = 2**40 - 1, 2**24 - 1
DOCUMENT, COPY, TEXT = 1, 2, 5
NUMBERS, FINGERPRINTS, SEGMENTS = range(3)
LETTERS = (b"b", b"f", b"s")  # of buckets, by class
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
MOST_SEGMENTS, LONG_NAME = 57, 256
LATE = 30  # seconds that Redis may drop a key after its time: it counts from when it was told, and a busy machine is slow to tell it


def number(data):
    return int.from_bytes(data, "big")


def same(found, expected, what):
    """Gives what was found. A program run with -O checks, too."""
    if found != expected:
        raise AssertionError(f"{what}: {found!r} is there, not {expected!r}")
    return found


def holds(right, what):
    if not right:
        raise AssertionError(what)


# ---- titles


def allowed_edits(length, least):
    """The largest distance of two titles, the longer of this length, that are similar enough."""
    edits = int((1 - least) * length) + 2
    while edits and 1 - edits / length < least:
        edits -= 1
    return edits


def count_segments(length, least):
    """How many segments a title has; 0: it is not cut."""
    most, longer = 0, length
    while longer - length <= allowed_edits(longer, least):
        most = max(most, allowed_edits(longer, least))
        longer += 1
        if most >= MOST_SEGMENTS:
            return 0
    return most + 1 if (most + 1) * SIZES[0] <= length else 0


def bag_of(points):
    bag = 0
    for point in points:
        bag ^= 1 << (point * 0x9E3779B1 % 2**32 >> 26)
    return bag


# ---- bands


@lru_cache(10000)
def band_keys(features, bands, rows):
    """Bits 16 to 47 of the key of each band of a set."""
    slots, found = signature(features, bands * rows), []
    for band in range(bands):
        key = band
        for slot in slots[band * rows:(band + 1) * rows]:
            key = (key ^ slot) * GOLDEN % 2**64
            key ^= key >> 32
        found.append(key >> 16 & 0xFFFFFFFF)
    return found


def bands_for(similarity):
    """How many bands of how many rows find pairs of a similarity: section 11."""
    for rows in range(16, 0, -1):
        for bands in range(1, (64 if rows <= 4 else 32) + 1):
            if 1 - (1 - similarity**rows)**bands >= 0.999:
                return bands, rows
    raise AssertionError(similarity)


# ---- what there is


class Plan:
    """Tables by distance, as (bits from the top, bits of the key); bands and rows by similarity; the bits of a bucket's number."""

    def __init__(self, name, settings, bits):
        many, each, self.bucket_bits = map(int, re.fullmatch(rb"(\d+)x(\d+)/(\d+)", name).groups())
        self.tables, self.bands, self.rows = [], 0, 0
        if settings["near"] == "similarity":
            self.bands, self.rows = same((many, each), bands_for(float(settings["similarity"])), "the plan's bands")
            return
        start = 0
        for table in range(many):
            block = bits // many + (table < bits % many)
            self.tables.append((start, min(block, each)))
            start += block
        same((start, self.tables[0][1]), (bits, each), "bits that tables share, and those of a key")


class Document:
    """One of the keys `d`. A text of a copy has no record."""

    def __init__(self, data, own):
        same(data[0], 2, "the format of a document")
        flags, trace, record = data[1], number(data[2:5]), number(data[5:8])
        holds(len(data) >= 8 + trace + record, "a document that is cut off")
        self.trace = index_folder.trace(data[8:8 + trace])
        self.set = data[8 + trace + record:]
        self.number, self.kind = same(self.trace["number"], own, "the number of a document"), self.trace["kind"]
        holds(self.kind in (DOCUMENT, COPY, TEXT), f"a trace of kind {self.kind}")
        self.record = index_folder.record(data[8 + trace:8 + trace + record]) if self.kind != TEXT else None
        same(record == 0, self.kind == TEXT, "a document without a record")
        self.expires = self.trace["expires"]
        holds(self.record or not (self.set or flags), "the text of a copy has a set, or flags")
        self.put_back(flags)

    def put_back(self, flags):
        """What the record leaves out, since it is the canonical URL."""
        holds(flags < 4, f"flags {flags} of a document")
        for flag, name in ((1, "id"), (2, "url")):
            if flags & flag:
                same(self.record[name], None, f"the {name} of a record that leaves it out")
                self.record[name] = self.record["canonical"]
            elif self.record:
                holds(self.record[name] is None or self.record[name] != self.record["canonical"], f"the {name} is the canonical URL")

    def features(self):
        """The hashes of a whole set."""
        values = list(struct.unpack(f"<{len(self.set) // 8}Q", self.set))
        same(len(values), self.record["set_count"], "the hashes of a set")
        same(values, sorted(set(values)), "the order of a set")
        return values

    def keys(self, plan):
        """Of its bands: kept with a sample, and made of a set that is whole."""
        if self.record["sampled"]:
            same(len(self.trace["keys"]), plan.bands, "keys of bands beside a sample")
            return self.trace["keys"]
        same(self.trace["keys"], [], "keys of bands beside a whole set")
        return band_keys(tuple(self.features()), plan.bands, plan.rows)

    def hours(self):
        return min(self.expires // 3600 + 1, NEVER_HOURS - 1) if self.expires else NEVER_HOURS

    def count_field(self):
        """The field of the meta key in which it is counted."""
        step = max(0, self.expires - self.trace["added"]) // 256 + 1
        return b"%s%d" % (b"d" if self.kind == DOCUMENT else b"c", math.ceil(self.expires / step) * step)


TYPES = {b"m": (b"hash", 0), b"d": (b"string", 5), b"t": (b"string", 5), b"b": (b"hash", 4), b"f": (b"hash", 4), b"s": (b"hash", 4),
         b"c": (b"hash", 5), b"a": (b"string", 5), b"r": (b"string", 8), b"h": (b"string", 0),
         b"w": (b"string", 0), b"l": (b"list", 0)}  # and how many bytes follow the letter


def read_keys(client, prefix):
    """{key without its prefix: (type, value, when it goes in milliseconds since 1970 or -1)}."""
    start = b"{%s}" % prefix.encode()
    keys = [key for key in client.ask("KEYS", "*") if key.startswith(start)]
    kinds = client.ask_all(("TYPE", key) for key in keys)
    ways = {b"string": ("GET",), b"hash": ("HGETALL",), b"list": ("LRANGE", "0", "-1")}
    values = client.ask_all((way[0], key, *way[1:]) for key, way in zip(keys, (ways.get(kind, ("TYPE",)) for kind in kinds)))
    ends = client.ask_all(("PEXPIRETIME", key) for key in keys)
    return {key[len(start):]: (kind, dict(zip(value[::2], value[1::2])) if kind == b"hash" else value, end)
            for key, kind, value, end in zip(keys, kinds, values, ends)}


class Memory:
    def __init__(self, keys):
        self.names, self.value, self.ends = defaultdict(list), {}, {}
        for name, (kind, value, ends) in sorted(keys.items()):
            holds(name[:1] in TYPES, f"a key {name!r}")
            same((kind, len(name) - 1), TYPES[name[:1]], f"type and length of {name!r}")
            self.names[name[:1]].append(name[1:])
            self.value[name], self.ends[name] = value, ends
        self.read_meta()
        self.documents = {number(name): Document(self.value[b"d" + name], number(name)) for name in self.names[b"d"]}
        self.texts = {number(name): self.value[b"t" + name] for name in self.names[b"t"]}
        self.counts = {number(name): self.value[b"c" + name] for name in self.names[b"c"]}
        self.links = {number(name): self.read_numbers(self.value[b"a" + name]) for name in self.names[b"a"]}
        self.buckets = {letter + name: self.value[letter + name] for letter in LETTERS for name in self.names[letter]}

    def read_meta(self):
        self.meta = self.value[b"m"]
        same(self.meta[b"v"], b"2", "the format")
        lines = self.meta[b"s"].decode().splitlines()
        holds(self.meta[b"s"].endswith(b"\n") and all("=" in line for line in lines), "settings that are no lines")
        self.settings = dict(line.split("=", 1) for line in lines)
        self.recipe = parse(self.settings["recipe"])
        self.bits = self.recipe["bits"]
        same((len(self.meta[b"e"]), len(self.meta[b"k"])), (8, 16), "the length of the epoch and the secret")
        keys = struct.unpack(">2Q", self.meta[b"k"])
        self.secret = struct.pack("<2Q", *keys)
        self.order = Order(self.bits, keys[0])
        self.plan = Plan(self.meta[b"p"], self.settings, self.bits)
        self.least = float(self.settings["title_similarity"]) if self.settings["titles"] == "on" else None

    def read_numbers(self, data):
        holds(data and len(data) % 5 == 0, "a list of copies that is cut off")
        return [number(data[at:at + 5]) for at in range(0, len(data), 5)]

    # ---- places

    def place(self, data, kind):
        bucket = 2**64 - 2**(64 - self.plan.bucket_bits)
        found = siphash(self.secret, data) & (bucket | 2**24 - 1) & ~3
        return (found or 4) | kind

    def place_of_name(self, letter, name):
        if len(name) >= LONG_NAME:
            name = struct.pack(">2Q", siphash(self.secret, name), len(name))
        return self.place(letter.encode() + name, NUMBERS)

    def where(self, place):
        """The key of its bucket, and the field."""
        return LETTERS[place & 3] + struct.pack(">I", place >> 64 - self.plan.bucket_bits), struct.pack(">I", place % 2**24)[1:]

    def entries_at(self, place):
        """The entries that stand at a place."""
        bucket, field = self.where(place)
        return self.cut(bucket, self.buckets.get(bucket, {}).get(field, b""))

    def cut(self, bucket, value):
        """The entries of a value."""
        size = (8, 8 + (self.bits + 7) // 8, 21)[LETTERS.index(bucket[:1])]
        holds(len(value) % size == 0, f"an entry of {bucket} that is cut off")
        return [value[at:at + size] for at in range(0, len(value), size)]

    def find(self, letter, name):
        """The numbers that stand at the place of a name or digest."""
        return [number(entry[:5]) for entry in self.entries_at(self.place_of_name(letter, name))]

    def name_places(self, document):
        trace, record = document.trace, document.record
        if record:
            yield self.place_of_name("i", record["id"])
        if trace["url_hash"]:
            yield self.place_of_name("u", record["canonical"])
        if any(trace["digest"]) and (document.kind != COPY or trace["own_words"]):
            yield self.place_of_name("g", trace["digest"])
        if document.kind == DOCUMENT and self.least and trace["title"]:
            yield self.place_of_name("t", trace["title"])

    def near_places(self, document):
        """By what is near it: bands, or tables of fingerprints."""
        if document.kind != DOCUMENT or not document.trace["content"]:
            return
        if self.plan.bands:
            for band, key in enumerate(document.keys(self.plan)):
                yield self.place(b"b" + struct.pack(">BI", band, key), NUMBERS)
        ordered = self.order.apply(document.trace["fingerprint"])
        for table, (start, width) in enumerate(self.plan.tables):
            key = ordered >> self.bits - start - width & (1 << width) - 1
            yield self.place(b"f" + struct.pack(">BI", table, key), FINGERPRINTS)

    def segment_places(self, title):
        points = [ord(char) for char in title.decode()]
        count = count_segments(len(points), self.least)
        if not count:
            yield self.place(b"s\0" + struct.pack(">I", len(points)), SEGMENTS)
            return
        size = max(size for size in SIZES if size * count <= len(points))
        for i in range(count):
            part = struct.pack(f">{size}I", *points[i * size:(i + 1) * size])
            yield self.place(b"s" + bytes([size, i]) + part, SEGMENTS)

    def places_of(self, document):
        return [*self.name_places(document), *self.near_places(document)]

    def entry_of(self, document, place):
        """What stands for a document at a place."""
        entry = struct.pack(">Q", document.number)[3:] + struct.pack(">I", document.hours())[1:]
        if place & 3 == FINGERPRINTS:
            entry += self.order.apply(document.trace["fingerprint"]).to_bytes((self.bits + 7) // 8, "big")
        return entry

    def entry_of_title(self, title, hours):
        points = [ord(char) for char in title.decode()]
        return struct.pack(">Q", self.place_of_name("t", title)) + struct.pack(">I", hours)[1:] + struct.pack(
            ">HQ", min(len(points), 65535), bag_of(points))

    # ---- all of it

    def expected(self):
        """{(bucket, field): entries} of all documents, and when the last document of each bucket expires."""
        entries, lives, titles = defaultdict(set), defaultdict(int), defaultdict(list)

        def put(place, entry, owner):
            where = self.where(place)
            entries[where].add(entry)
            lives[where[0]] = max(lives[where[0]], owner.expires or NEVER)

        for document in self.documents.values():
            for place in self.places_of(document):
                put(place, self.entry_of(document, place), document)
            if document.kind == DOCUMENT and self.least and document.trace["title"]:
                titles[document.trace["title"]].append(document)
        for title, owners in titles.items():
            last = max(owners, key=Document.hours)
            for place in self.segment_places(title):
                put(place, self.entry_of_title(title, last.hours()), last)
        return entries, lives

    def check(self, removed=False):
        """`removed`: something was removed, so that times may be those of what is gone, and lists may have numbers that are."""
        self.check_meta()
        self.check_requests()
        self.check_documents(removed)
        expected, lives = self.expected()
        found = {(bucket, field): value for bucket, fields in self.buckets.items() for field, value in fields.items() if field != b"x"}
        holds(set(found) == set(expected), f"fields that no document explains: {sorted(set(found) - set(expected))}; "
                                           f"that are missing: {sorted(set(expected) - set(found))}")
        for where, value in found.items():
            self.check_field(where, value, expected[where], removed)
        for bucket, fields in self.buckets.items():
            self.check_life(bucket, fields, lives[bucket], removed)

    def check_field(self, where, value, expected, removed):
        same((len(where[1]), LETTERS[where[1][2] & 3]), (3, where[0][:1]), f"the field {where}")
        entries = self.cut(where[0], value)
        if where[0][:1] == LETTERS[SEGMENTS] and removed:  # the time of a title is that of its last owner, who may be gone
            hours = {entry[:8]: entry[8:11] for entry in entries}
            holds(all(entry[8:11] <= hours.get(entry[:8], b"") for entry in expected), f"hours of titles at {where}")
            entries, expected = ([entry[:8] + entry[11:] for entry in some] for some in (entries, expected))
        same(sorted(entries), sorted(expected), f"entries at {where}")

    def check_life(self, bucket, fields, last, removed):
        same(len(fields[b"x"]), 5, "the length of a bucket's time")
        goes = number(fields[b"x"])
        longest = max((document.expires - document.trace["added"] for document in self.documents.values() if document.expires), default=0)
        holds(last <= goes, f"bucket {bucket} goes at {goes}, before {last}")
        holds(removed or goes <= last + longest // 16 + 1, f"bucket {bucket} goes at {goes}, long after {last}")
        self.check_end(bucket, goes)

    def check_end(self, name, expires):
        """Redis drops a key at its time, and keeps one that never expires."""
        if expires in (0, NEVER):
            same(self.ends[name], -1, f"when {name} goes")
        else:
            holds(0 <= self.ends[name] - expires * 1000 <= LATE * 1000, f"{name} goes at {self.ends[name]}, not at {expires}")

    def check_meta(self):
        totals = defaultdict(int)
        for document in self.documents.values():
            if document.kind != TEXT:
                totals[document.count_field()] += 1
        fields = {field: value for field, value in self.meta.items() if field[:1] in b"dc" and len(field) > 1}
        same(fields, {field: b"%d" % count for field, count in totals.items()}, "documents and copies by their time")
        same(set(self.meta) - set(fields) - {b"u", b"w", b"t"}, {b"v", b"s", b"e", b"k", b"p", b"b", b"n", b"o", b"x"}, "fields of the meta key")
        same(len(self.meta[b"o"]), 16, "the length of the stamp")
        holds(self.meta[b"b"].isdigit() and len(self.meta[b"b"]) == 10, "when the memory was made")
        holds(int(self.meta[b"n"]) >= max(self.documents, default=0), "a number that was not given")
        ends = [document.expires or NEVER for document in self.documents.values()]
        holds((int(self.meta[b"x"]) or NEVER) >= max(ends, default=0), "the memory goes before a document")
        self.check_end(b"m", int(self.meta[b"x"]))

    def check_requests(self):
        """The last commit of each connection that is open or was cut off; a turn lasts for a second at most, and that some ask for
        turns, with what was written since, is known for ten."""
        for link in self.names[b"r"]:
            request, answer = self.value[b"r" + link][:8], self.value[b"r" + link][8:]
            holds(len(request) == 8 and answer in (b"done", b"emptied"), f"an answer {answer!r}")
            holds(0 < self.ends[b"r" + link] <= (time.time() + 120) * 1000, "an answer that stays too long")
        last, request = self.meta[b"o"][:8], self.meta[b"o"][8:]
        same(self.value.get(b"r" + last, request)[:8], request, "the last commit")
        for name, most in ((b"h", 1), (b"w", 10), (b"l", 10)):
            holds(name not in self.value or 0 < self.ends[name] <= (time.time() + most) * 1000, f"{name} stays too long")
        holds(len(self.value.get(b"h", bytes(8))) == 8, "whose turn it is")
        same(self.value.get(b"w", b""), b"", "that turns are asked for")
        logged = self.value.get(b"l", [])
        holds(len(logged) % 2 == 0 and len(logged) <= 128, f"{len(logged)} parts of logged commits")
        for stamp, places in zip(logged[::2], logged[1::2]):
            holds(len(stamp) == 16 and len(places) % 8 == 0, "a logged commit")
            for place in struct.unpack(f">{len(places) // 8}Q", places):
                same(place & ~(2**64 - 2**(64 - self.plan.bucket_bits) | 2**24 - 1), 0, "bits between a bucket and a field")

    def check_documents(self, removed):
        copies = defaultdict(list)
        for own, document in self.documents.items():
            self.check_end(b"d" + struct.pack(">Q", own)[3:], document.expires)
            self.check_document(document)
            if document.kind in (COPY, TEXT) and document.trace["of"] in self.documents:
                copies[document.trace["of"]].append(own)
        for own in (*self.texts, *self.counts, *self.links):
            holds(own in self.documents, f"something is kept of {own}, which is gone")
        for own, linked in self.links.items():
            self.check_end(b"a" + struct.pack(">Q", own)[3:], self.documents[own].expires)
            same([copy for copy in linked if copy in self.documents or not removed], sorted(copies.pop(own, [])), f"copies of {own}")
        same(dict(copies), {}, "copies that no list has")
        for own, count in self.counts.items():
            self.check_end(b"c" + struct.pack(">Q", own)[3:], self.documents[own].expires)
            holds(set(count) - {b"t"} <= {b"1", b"2", b"3"} and int(count[b"t"]) > 0, f"counts of {own}: {count}")

    def check_document(self, document):
        trace, record = document.trace, document.record
        if not record:
            holds(any(trace["digest"]) and not (trace["id_hash"] or trace["url_hash"] or trace["title"]), "the text of a copy has a name")
            return
        same(trace["id_hash"], 0, "the hash of an id")
        if trace["url_hash"]:
            same(trace["url_hash"], xxhash.xxh3_64_intdigest(record["canonical"]), "the hash of a URL")
        of = self.documents.get(trace["of"]) if document.kind == COPY else None
        by_original = of and of.record["canonical"] == record["canonical"]
        same(bool(trace["url_hash"]), bool(record["canonical"]) and not by_original, "whether a document is known by its URL")
        same(document.number in self.texts, record["text_length"] > 0, "whether a text is kept")
        if record["text_length"]:
            self.check_end(b"t" + struct.pack(">Q", document.number)[3:], document.expires)
            same(len(self.text_of(document.number)), record["text_length"], "the length of a text")
        if record["sampled"]:
            same(len(document.set) % 2, 1, "the length of a sample")
        elif document.set or record["set_count"]:
            document.features()

    def text_of(self, own):
        return zstandard.ZstdDecompressor().decompress(self.texts[own])

"""index_folder.py - reads an index folder by docs/FORMAT.md section 13 alone, with the package lmdb."""
import re
import struct

import lmdb
import xxhash

FORMAT = re.compile(r"doppel index\nformat 2\ngeneration (\d+)\n")
PARTS = ["traces", "records", "sets", "texts"]
CODES = {"traces": 0, "records": 1, "sets": 2, "texts": 3, "counts": 4, b"settings": 5, b"state": 6, b"successor": 7,
         b"secret": 8, b"clock": 9}
SLICES = ["id", "url", "canonical", "title", "fields", "original_id", "origin"]
MEASURES = ["similarity", "containment", "title_similarity"]


class Bytes:
    """Bytes that are taken from the front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, length):
        assert self.at + length <= len(self.data), "cut short"
        self.at += length
        return self.data[self.at - length:self.at]

    def fixed(self, length):
        return int.from_bytes(self.take(length), "little")

    def varint(self):
        number = shift = 0
        while True:
            byte = self.fixed(1)
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                assert number < 2**64 and (byte or shift == 7), "not the shortest form"
                return number

    def slice(self):
        return self.take(self.varint())

    def double(self):
        return struct.unpack("<d", self.take(8))[0]

    def end(self):
        assert self.at == len(self.data), "bytes behind the end"


def siphash(key, data):
    """SipHash-2-4 (Aumasson, Bernstein 2012)."""
    low, high = struct.unpack("<2Q", key)
    v = [low ^ 0x736F6D6570736575, high ^ 0x646F72616E646F6D, low ^ 0x6C7967656E657261, high ^ 0x7465646279746573]

    def add_and_rotate(a, b, left, own):
        v[a] = (v[a] + v[b]) % 2**64
        v[b] = (v[b] << left | v[b] >> (64 - left)) % 2**64 ^ v[a]
        v[a] = (v[a] << own | v[a] >> (64 - own)) % 2**64

    def rounds(count):
        for _ in range(count):
            add_and_rotate(0, 1, 13, 32)
            add_and_rotate(2, 3, 16, 0)
            add_and_rotate(0, 3, 21, 0)
            add_and_rotate(2, 1, 17, 32)

    last = len(data) // 8 * 8
    for word in [*struct.unpack(f"<{last // 8}Q", data[:last]), (len(data) << 56 | int.from_bytes(data[last:], "little")) % 2**64]:
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 255
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def trace(data):
    b = Bytes(data)
    kind, flags = b.fixed(1), b.fixed(2)
    assert kind in (1, 2, 3, 4, 5) and flags < 1024 and (kind != 5 or not flags & ~66)
    found = {"kind": kind, "content": bool(flags & 1), "own_words": bool(flags & 512), "number": b.varint(), "of": b.varint() if kind > 1 else 0,
             "added": b.varint()}
    found["expires"] = b.varint() if flags & 64 else 0
    found["id_hash"] = b.fixed(8) if flags & 16 else 0
    found["url_hash"] = b.fixed(8) if flags & 32 else 0
    found["digest"] = b.take(32) if flags & 2 else bytes(32)
    low = b.fixed(8) if flags & 4 else 0
    found["fingerprint"] = low + ((b.fixed(8) if flags & 8 else 0) << 64)
    found["keys"] = [b.fixed(4) for _ in range(b.varint())] if flags & 128 else []
    found["title"] = b.slice() if flags & 256 else b""
    b.end()
    return found


def record(data):
    b = Bytes(data)
    flags, found = b.fixed(1), {"reason": b.fixed(1)}
    assert found["reason"] < 4
    found["sampled"] = bool(flags & 128)
    for name in ("words", "set_count", "text_length"):
        found[name] = b.varint()
    for i, name in enumerate(SLICES):
        found[name] = b.slice() if flags & 1 << i else None
    if found["reason"]:
        known, distance = b.fixed(1), b.varint()
        assert known < 64
        found["evidence"] = {"same_url": bool(known & 1), "same_digest": bool(known & 2), "verified": bool(known & 4),
                             "distance": distance - 1 if distance else None}
        for i, name in enumerate(MEASURES):
            found["evidence"][name] = b.double() if known & 8 << i else None
    b.end()
    return found


def sample(features, most):
    """The sample of a set of feature hashes."""
    def mix(x):
        x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        return x ^ x >> 31

    kept = sorted(map(mix, features))[:most]
    shift = max(0, kept[-1].bit_length() - 16)
    return bytes([shift]) + struct.pack("<I", len(features)) + b"".join(
        struct.pack("<H", value) for value in sorted({value >> shift for value in kept}))


def counts(data):
    assert len(data) == 32
    url, content, title, last = struct.unpack("<4Q", data)
    return {"by": [url, content, title], "last": last}


def checked(value, number, code):
    """The bytes behind the checksum."""
    assert xxhash.xxh3_64_intdigest(value[8:], (8 * number + code) % 2**64) == int.from_bytes(value[:8], "little")
    return value[8:]


class Folder:
    """Everything a folder holds: dictionaries by number."""

    def __init__(self, path):
        with open(f"{path}/doppel.index", encoding="ascii") as file:
            self.generation = int(FORMAT.fullmatch(file.read())[1])
        with lmdb.open(f"{path}/documents-{self.generation}.mdb", subdir=False, readonly=True, lock=False, max_dbs=8) as env:
            databases = {name: env.open_db(name.encode(), create=False) for name in [*PARTS, "links", "counts", "meta"]}
            with env.begin() as txn:
                self.read(txn, databases)

    def read(self, txn, databases):
        values = {}
        for name in [*PARTS, "counts"]:
            pairs = [(int.from_bytes(key, "little"), value) for key, value in txn.cursor(databases[name])]
            assert [number for number, _ in pairs] == sorted({number for number, _ in pairs})
            values[name] = {number: checked(value, number, CODES[name]) for number, value in pairs}
        self.traces = {number: trace(value) for number, value in values["traces"].items()}
        self.records = {number: record(value) for number, value in values["records"].items()}
        self.samples = {number: value for number, value in values["sets"].items() if self.records[number]["sampled"]}
        self.sets = {number: list(struct.unpack(f"<{len(value) // 8}Q", value)) for number, value in values["sets"].items()
                     if number not in self.samples}
        self.texts = values["texts"]
        self.counts = {number: counts(value) for number, value in values["counts"].items()}
        self.links = [(int.from_bytes(key, "little"), int.from_bytes(value, "little"))
                      for key, value in txn.cursor(databases["links"])]
        meta = {key: checked(value, 0, CODES[key]) for key, value in txn.cursor(databases["meta"])}
        self.settings = dict(line.split("=", 1) for line in meta[b"settings"].decode().splitlines())
        self.last, self.clock = struct.unpack("<2Q", meta[b"state"][:16])
        # boot, uptime, what is doubted, and for how long; older folders have none of it
        known = struct.unpack("<5Q", meta[b"clock"]) if b"clock" in meta else (0,)
        self.known_of_clock = known[1:] if known[0] == self.clock else None
        self.total = counts(meta[b"state"][16:])
        self.successor = meta.get(b"successor")
        self.secret = meta[b"secret"]

    def name_hash(self, name):
        return siphash(self.secret, name) or 1

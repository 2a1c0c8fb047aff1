"""hashes.py - the named hashes of docs/FORMAT.md, section 3, in plain Python. Part of reference.py."""
import hashlib
import struct
from functools import lru_cache

import xxhash

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def rotl(x, r, bits=64):
    return (x << r | x >> (bits - r)) % 2**bits


def finalise(x):
    x &= MASK
    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 29) * 0x94D049BB133111EB & MASK
    return x ^ x >> 32


@lru_cache(100000)
def fast_word(data):
    w = 0
    for i in range(0, len(data), 8):
        w = (w ^ int.from_bytes(data[i:i + 8], "little")) * GOLDEN & MASK
        w ^= w >> 32
    return w + len(data) & MASK


def fast(units, seed=0):
    s = 0
    for unit in units:
        s = rotl(s, 23) + fast_word(unit) & MASK
    return finalise(s + seed * GOLDEN)


def murmur3_128(data, seed=0):
    """MurmurHash3 x64_128: h1, h2."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed % 2**32
    blocks = len(data) // 16
    for i in range(blocks):
        k1, k2 = struct.unpack_from("<2Q", data, 16 * i)
        h1 ^= rotl(k1 * c1 & MASK, 31) * c2 & MASK
        h1 = (rotl(h1, 27) + h2) * 5 + 0x52DCE729 & MASK
        h2 ^= rotl(k2 * c2 & MASK, 33) * c1 & MASK
        h2 = (rotl(h2, 31) + h1) * 5 + 0x38495AB5 & MASK
    k1, k2 = struct.unpack("<2Q", data[16 * blocks:].ljust(16, b"\0"))
    h1 ^= rotl(k1 * c1 & MASK, 31) * c2 & MASK ^ len(data)
    h2 ^= rotl(k2 * c2 & MASK, 33) * c1 & MASK ^ len(data)

    def mix(k):
        k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & MASK
        k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        return k ^ k >> 33

    h1 = h1 + h2 & MASK
    h2 = h2 + h1 & MASK
    h1, h2 = mix(h1), mix(h2)
    h1 = h1 + h2 & MASK
    return h1, h2 + h1 & MASK


def jenkins(data, seed=0):
    """lookup3's hashlittle2: c + b * 2^32."""
    word = 2**32
    a = b = c = (0xDEADBEEF + len(data) + seed) % word
    c = (c + (seed >> 32)) % word
    for i in range(0, len(data), 12):
        k = struct.unpack("<3I", data[i:i + 12].ljust(12, b"\0"))
        a, b, c = (a + k[0]) % word, (b + k[1]) % word, (c + k[2]) % word
        if len(data) - i > 12:
            for r in (4, 6, 8, 16, 19, 4):  # mix(): first a from c, then b from a, then c from b, and again
                a, c = ((a - c) % word) ^ rotl(c, r, 32), (c + b) % word
                a, b, c = b, c, a
        else:
            for r in (14, 11, 25, 16, 4, 14, 24):  # final(): c from b, a from c, b from a, and again
                c = ((c ^ b) - rotl(b, r, 32)) % word
                a, b, c = b, c, a
            a, b, c = c, a, b
    return c + b * word


def djb2(data, seed=0):
    h = 5381 + seed
    for byte in data:
        h = 33 * h + byte & MASK
    return h & MASK


def crypto(name, data, seed=0):
    salt = seed.to_bytes(8, "little") if seed else b""
    return int.from_bytes(hashlib.new(name, salt + data).digest()[:8], "big")


def hash_bytes(name, data, seed=0):
    """A named hash of any bytes."""
    if name == "fast":
        return fast([data], seed)
    if name == "xxh3":
        return xxhash.xxh3_64_intdigest(data, seed)
    if name == "murmur3":
        return murmur3_128(data, seed)[0]
    if name in ("jenkins", "djb2"):
        return {"jenkins": jenkins, "djb2": djb2}[name](data, seed)
    return crypto(name, data, seed)

"""index_file.py - reads the file of an index, written from docs/FORMAT.md section 9 alone."""
import itertools
import struct

import xxhash

BLOCK = 65536


def align(size):
    return (size + 63) // 64 * 64


def check(right, what):
    if not right:
        raise ValueError(what)


# ---- the order of bits


def masks(bits, secret):
    def draw():
        nonlocal secret
        secret = (secret + 0x9E3779B97F4A7C15) % 2**64
        x = ((secret ^ (secret >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
        return x ^ (x >> 31)

    stages = []
    for s in range(6):
        places = sum(1 << i for i in range(min(bits, 64) - 2**s) if not i >> s & 1)
        stages.append((draw() & places, draw() & places if bits > 64 else 0))
    return stages, draw() if bits > 64 else 0


def swap(x, s, mask):
    t = (x ^ (x >> 2**s)) & mask
    return x ^ t ^ (t << 2**s)


class Order:
    def __init__(self, bits, secret):
        self.stages, self.halves = masks(bits, secret)

    def apply(self, fingerprint):
        x = swap(fingerprint, 6, self.halves)
        low, high = x % 2**64, x >> 64
        for s in reversed(range(6)):
            low, high = swap(low, s, self.stages[s][0]), swap(high, s, self.stages[s][1])
        return low | high << 64

    def undo(self, number):
        low, high = number % 2**64, number >> 64
        for s in range(6):
            low, high = swap(low, s, self.stages[s][0]), swap(high, s, self.stages[s][1])
        return swap(low | high << 64, 6, self.halves)


# ---- layouts: the bits of each table's key, most significant first


def cut(places, blocks):
    """Cuts a list of bits, the highest first, into blocks."""
    small, wide = divmod(len(places), blocks)
    sizes = [small + (i < wide) for i in range(blocks)]
    starts = itertools.accumulate([0, *sizes])
    return [places[start:start + size] for start, size in zip(starts, sizes)]


def keys_of(name, bits):
    places = list(range(bits - 1, -1, -1))
    if name == "scan":
        return [[]]
    first, _, second = name.partition("+")
    blocks, key = first.split("x")
    if "c" in blocks:
        count, choose = map(int, blocks.split("c"))
        return [sorted(itertools.chain(*chosen), reverse=True)[:int(key)]
                for chosen in itertools.combinations(cut(places, count), choose)]
    keys = [block[:int(key)] for block in cut(places, int(blocks))]
    if not second:
        return keys
    count, more = map(int, second.split("x"))
    return [key + block[:more] for key in keys for block in cut([p for p in places if p not in key], count)]


# ---- tables


class Table:
    """The numbers of a table, in its order, put together from its three sections."""

    def __init__(self, key, bits, count, sections):
        directory, filters, rests = sections
        width = 64 if bits > 64 else 32
        rest_bytes = (max(0, bits - len(key) - width) + 7) // 8
        check(len(directory) == 4 * (2**len(key) + 1), "length of a directory")
        check(len(filters) == count * width // 8, "length of a filter")
        check(len(rests) == count * rest_bytes + 8 and not any(rests[-8:]), "length of a rest")
        starts = struct.unpack(f"<{len(directory) // 4}I", directory)
        check(starts[0] == 0 and starts[-1] == count and list(starts) == sorted(starts), "order of a directory")
        filters = struct.unpack(f"<{count}{'Q' if width == 64 else 'I'}", filters)
        self.order = key + [p for p in range(bits - 1, -1, -1) if p not in key]
        self.numbers = []
        for bucket in range(2**len(key)):
            for place in range(starts[bucket], starts[bucket + 1]):
                rest = int.from_bytes(rests[place * rest_bytes:(place + 1) * rest_bytes], "little")
                arranged = bucket << (bits - len(key)) | rest << width | filters[place]
                check(arranged >> (bits - len(key)) == bucket, "a number in the wrong bucket")
                self.numbers.append(self.restore(arranged))

    def restore(self, arranged):
        last = len(self.order) - 1
        return sum((arranged >> (last - i) & 1) << place for i, place in enumerate(self.order))


# ---- a file


class IndexFile:
    def __init__(self, data):
        check(data[:8] == b"DOPPELIX" and len(data) >= 192, "not an index")
        (version, self.bits, self.distance, runs, self.secret, self.bytes_per_entry, layout, directory_size, data_size,
         directory_check, reserved, header_check) = struct.unpack("<4IQd64s3Q56sQ", data[8:192])
        check(version == 1, "version")
        check(header_check == xxhash.xxh3_64_intdigest(data[:184]), "checksum of the header")
        check(not any(reserved) and self.secret and 1 <= self.distance <= self.bits and runs <= 64, "header")
        check(len(data) == 192 + directory_size + data_size and directory_size % 64 == 0, "size")
        directory, self.data = data[192:192 + directory_size], data[192 + directory_size:]
        check(directory_check == xxhash.xxh3_64_intdigest(directory), "checksum of the directory")
        self.layout = layout.rstrip(b"\0").decode()
        self.order = Order(self.bits, self.secret)
        self.end = 0
        at, self.runs = 0, []
        for _ in range(runs):
            at = self.read_run(directory, at)
        check(self.end == len(self.data), "data behind the last section")
        blocks = [self.data[i:i + BLOCK] for i in range(0, len(self.data), BLOCK)]
        checks = struct.unpack_from(f"<{len(blocks)}Q", directory, at)
        check(list(checks) == [xxhash.xxh3_64_intdigest(block) for block in blocks], "checksum of a block")
        at += 8 * len(blocks)
        check(align(at) == len(directory) and not any(directory[at:]), "end of the directory")

    def take(self, offset, length):
        """A section; they follow one another."""
        if not length:
            check(offset == 0, "a section that is not there")
            return b""
        check(offset == self.end, "a section out of place")
        self.end = align(offset + length)
        check(not any(self.data[offset + length:self.end]), "zeros behind a section")
        return self.data[offset:offset + length]

    def read_run(self, directory, at):
        layout, count, list_count, lists, sections = struct.unpack_from("<64s4Q", directory, at)
        keys = keys_of(layout.rstrip(b"\0").decode(), self.bits)
        check(sections == 3 * len(keys) + 5, "number of sections")
        places = struct.unpack_from(f"<{2 * sections}Q", directory, at + 96)
        parts = [self.take(*place) for place in zip(places[::2], places[1::2])]
        tables = [Table(key, self.bits, count, parts[3 * t:3 * t + 3]) for t, key in enumerate(keys)]
        check(tables[0].numbers == sorted(set(tables[0].numbers)), "order of table 0")
        for table in tables:
            check(sorted(table.numbers) == tables[0].numbers, "another table's numbers")
        self.runs.append(Run(tables[0].numbers, (list_count, lists), parts[-5:]))
        return at + 96 + 16 * sections

    def entries(self):
        """(fingerprint, owner) -> time, of all that are alive."""
        found = {}
        for run in self.runs:
            for number, owner, expires in run.entries():
                check((self.order.undo(number), owner) not in found, "an entry twice")
                found[self.order.undo(number), owner] = expires
        return found


class Run:
    def __init__(self, numbers, counts, parts):
        self.numbers, count, (list_count, lists) = numbers, len(numbers), counts
        slots = count + list_count
        lengths = [8 * count, 8 * list_count, 8 * ((count + 63) // 64), 8 * slots, 8 * ((slots + 63) // 64)]
        for i, (part, length) in enumerate(zip(parts, lengths)):
            check(len(part) == length or (i > 1 and not part), "length of a section")
        check(bool(parts[2]) == (lists > 0), "bits of lists")
        self.ids, self.lists, _, self.expires, _ = [struct.unpack(f"<{len(part) // 8}Q", part) for part in parts]
        self.shared, self.dead = int.from_bytes(parts[2], "little"), int.from_bytes(parts[4], "little")
        check(self.shared.bit_count() == lists and not self.shared >> count, "number of lists")

    def owners(self):
        """(position, slot, owner) of all, dead or not."""
        count, listed = len(self.numbers), 0
        for position in range(count):
            if not self.shared >> position & 1:
                yield position, position, self.ids[position]
                continue
            check(self.ids[position] == listed, "place of a list")
            several = self.lists[listed + 1:listed + 1 + self.lists[listed]]
            check(len(several) > 1 and list(several) == sorted(set(several)), "owners of a list")
            for i, owner in enumerate(several):
                yield position, count + listed + 1 + i, owner
            listed += 1 + len(several)
        check(listed == len(self.lists), "lists behind the last")

    def entries(self):
        used = 0
        for position, slot, owner in self.owners():
            used |= 1 << slot
            if not self.dead >> slot & 1:
                yield self.numbers[position], owner, self.expires[slot] if self.expires else 0
        check(not self.dead & ~used, "dead bits of no entry")
        check(not any(time for slot, time in enumerate(self.expires) if not used >> slot & 1), "times of no entry")

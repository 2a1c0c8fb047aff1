"""test_rows.py - rows of CSV and TSV as JSON records, by dedup, against docs/FORMAT.md section 16 (Rows as records): random
tables with names that are missing or the same, cells of any bytes, rows of any length; all columns, in their order."""
import csv
import gzip
import itertools
import json
import os
import random
import subprocess
import tempfile

import check

DOPPEL = os.path.join(os.environ.get("DOPPEL_BUILD", "build"), "doppel")
ROUNDS = 200 if os.environ.get("DOPPEL_SUITE") == "full" else 12
TAB = "\t"
TABLES = 25  # of a round
csv.field_size_limit(1 << 30)

NAMES = [b"", b" ", b"text", b"id", b"a", b" a\t", b"a_1", b"a_2", b"a_1_1", b"id_1", b"_1", b"column_1", b"column_2",
         b"column_3", b"column_1_1", b"column_2_1", b"column_01", b"group", b"kept", "é".encode(), b"\xff", b"\xfe",
         "\ufffd".encode(), b'say "so"', b"b,c", b"d\te", b"f;g", b"h|i", b"back\\slash", b"two\nlines", b"nul\0", b"column_", b"html"]
PIECES = [b"", b"one two three four five six seven", b",", b"\t", b";", b"|", b'"', b'""', b"\n", b"\r\n", b"\r", b"\\", b"\0", b"\x1f",
          b"\x7f", b"\xef\xbb\xbf", b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", "é".encode(),
          "\U0001f98a".encode(), "\u2028".encode(), b"</script>", b" ", b"{}"]


# ---- making tables


def random_cell(rng):
    cell = b"".join(rng.choices(PIECES, k=rng.choice([0, 1, 1, 2, 5])))
    return cell * 3000 if rng.random() < 0.01 else cell


def write_cell(rng, cell):
    """As it stands where that means the same, else quoted; so are all delimiters, which count in a header."""
    needs = cell[:1] == b'"' or any(byte in cell for byte in (b",", b"\t", b";", b"|", b"\n", b"\r"))
    if needs or rng.random() < 0.2:
        return b'"' + cell.replace(b'"', b'""') + b'"'
    return cell


def write_row(rng, cells, delimiter):
    row = delimiter.join(write_cell(rng, cell) for cell in cells)
    return row or b'""'  # of one column, a blank line being none


def random_table(rng, delimiter):
    """The bytes of a file. Line ends are mixed; the last row may have none; rows may have a cell more or less."""
    names = rng.choices(NAMES, k=rng.choice([1, 2, 3, 8, 20])) + [b"text"]
    rng.shuffle(names)
    lines = [write_row(rng, names, delimiter)]
    for _ in range(rng.choice([0, 1, 5, 30])):
        wrong = rng.choice([-1, 1]) if rng.random() < 0.05 else 0
        lines.append(write_row(rng, [random_cell(rng) for _ in range(max(len(names) + wrong, 1))], delimiter))
        lines += [b""] * (rng.random() < 0.05)
    table = b"".join(line + rng.choice([b"\n", b"\r\n"]) for line in lines)
    mark = b"\xef\xbb\xbf" if rng.random() < 0.2 else b""
    return mark + (table[:-1] if rng.random() < 0.1 and table.endswith(b'"\n') else table)


# ---- the reference


def read_rows(data, delimiter):
    """Each row that is not blank, and the line that it begins in."""
    lines = data.removeprefix(b"\xef\xbb\xbf").decode(errors="replace").split("\n")
    lines = [line + "\n" for line in lines[:-1]] + lines[-1:]
    reader = csv.reader(lines, delimiter=delimiter)
    begun = 1
    for row in reader:
        if row:
            yield begun, row
        begun = reader.line_num + 1


def member_names(header):
    """The last of the columns with one name keeps it, those before it get suffixes; a column without a name is numbered,
    and is the first of that name."""
    given = [name.strip(" \t\n\v\f\r") for name in header]
    wanted = [name or f"column_{i + 1}" for i, name in enumerate(given)]
    made = list(wanted)
    for name in set(wanted):
        same = sorted((i for i, other in enumerate(wanted) if other == name), key=lambda i: (given[i] != "", i))
        suffixed = (f"{name}_{n}" for n in itertools.count(1))
        for i in same[:-1]:
            made[i] = next(made for made in suffixed if made not in wanted)
    return made


def records_of(path, data, delimiter):
    """The records of a file, as lists of names and values."""
    rows = read_rows(data, delimiter)
    names = member_names(next(rows)[1])
    for line, row in rows:
        if len(row) != len(names):
            continue
        record = list(zip(names, row, strict=True))
        if "id" not in names:
            record.insert(0, ("id", f"{path}:{line}"))
        yield [(name, value or f"{path}:{line}") if name == "id" else (name, value) for name, value in record]


# ---- comparing


def run(*arguments, stdin=None):
    done = subprocess.run([DOPPEL, "dedup", "-q", "--allow-bad", *arguments], capture_output=True, check=False, input=stdin)
    assert done.returncode == 0, (arguments[-8:], done.returncode, done.stderr[-300:])
    lines = done.stdout.split(b"\n")
    assert lines.pop() == b"", "the last line has no end"
    return [json.loads(line, object_pairs_hook=list) for line in lines]


def compare(got, expected, what):
    for i, (g, e) in enumerate(zip(got, expected)):
        assert g == e, f"{what}, record {i}:\n  doppel    {g!r}\n  reference {e!r}"
    assert len(got) == len(expected), (what, len(got), len(expected))


def write_tables(rng, folder):
    """Paths and what their records should be; some files are compressed."""
    expected, paths = [], []
    for i in range(TABLES):
        delimiter = rng.choice([",", "\t", ";", "|"])
        data = random_table(rng, delimiter.encode())
        packed = rng.random() < 0.3
        path = os.path.join(folder, f"{i:02d}.{'tsv' if delimiter == TAB and rng.random() < 0.5 else 'csv'}{'.gz' if packed else ''}")
        with open(path, "wb") as file:
            file.write(gzip.compress(data) if packed else data)
        paths.append(path)
        expected += records_of(path, data, delimiter)
    return paths, expected


def test_rows_become_records():
    for seed in range(ROUNDS):
        rng = random.Random(seed)
        with tempfile.TemporaryDirectory() as folder:
            paths, expected = write_tables(rng, folder)
            out = os.path.join(folder, "out.jsonl")
            run(*paths, "--keep-copies", "1000000", "-o", out, "--threads", rng.choice("1247"))
            with open(out, "rb") as file:
                got = [json.loads(line, object_pairs_hook=list) for line in file]
        compare(got, expected, f"seed {seed}")


def test_annotated_rows_lose_only_what_is_replaced():
    added = ["group", "isDuplicate", "originalId", "kept", "groupSize"]
    for seed in range(ROUNDS // 4):
        rng = random.Random(1000 + seed)
        with tempfile.TemporaryDirectory() as folder:
            paths, expected = write_tables(rng, folder)
            got = run(*paths, "--annotate", "-o", "-", "--threads", rng.choice("14"))
        compare([[name for name, _ in record[-5:]] for record in got], [added] * len(expected), f"seed {seed}")
        left = [[member for member in record if member[0] not in added] for record in expected]
        compare([record[:-5] for record in got], left, f"seed {seed}")


if __name__ == "__main__":
    check.main(globals())

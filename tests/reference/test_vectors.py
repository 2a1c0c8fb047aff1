"""test_vectors.py - the test vectors in docs/FORMAT.md, section 8, are what the library and the reference give."""
import os
import re

import check
import hashes
import library
import reference

FORMAT = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "FORMAT.md")


def unescape(cell):
    """The bytes of a text in the table: \\xNN is one."""
    return re.sub(rb"\\x(..)", lambda escape: bytes.fromhex(escape[1].decode()), cell.encode())


def rows(heading):
    """The cells of each row of a table, without their backquotes."""
    with open(FORMAT, encoding="utf-8") as file:
        vectors = file.read().partition("## 8. Test vectors")[2].partition("\n## ")[0]
    section = vectors.partition(f"### {heading}\n")[2].partition("###")[0]
    found = [line[3:-3].split("` | `") for line in section.splitlines() if line.startswith("| `")]
    assert len(found) >= 6, heading
    return found


def sketches(recipe, text):
    """The sketch of a text by the library and by the reference."""
    data = unescape(text)
    mine = library.Sketcher(library.Recipe(recipe)).run(data)
    other = reference.sketch(data, reference.parse(recipe))
    return mine, other | {"text": other["text"].encode()}


def test_words():
    for recipe, text, expected in rows("Words"):
        for found in sketches(recipe, text):
            assert found["text"] == unescape(expected), (recipe, text, found)


def test_fingerprints_and_digests():
    for recipe, text, fingerprint, digest in rows("Fingerprints and digests"):
        bits = reference.parse(recipe)["bits"]
        for found in sketches(recipe, text):
            assert reference.hexadecimal(found["fingerprint"], bits) == fingerprint, (recipe, text, found)
            assert found["digest"].hex() == digest, (recipe, text, found)


def test_signatures_and_samples():
    for recipe, text, expected in rows("Signatures and samples"):
        for found in sketches(recipe, text):
            slots = [f"{slot:08x}" for slot in found["signature"] or []]
            assert " ".join(slots + [f"{h:016x}" for h in found["sample"]]) == expected, (recipe, text, found)


def test_hashes():
    for name, text, seed, expected in rows("Hashes"):
        for hash_bytes in (library.hash_bytes, hashes.hash_bytes):
            assert f"{hash_bytes(name, unescape(text), int(seed)):016x}" == expected, (name, text, seed)


if __name__ == "__main__":
    check.main(globals())

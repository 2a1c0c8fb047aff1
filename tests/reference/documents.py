"""documents.py - what the library and the reference are compared on: real texts in many languages, random ones rich in
what is hard about Unicode, and damaged bytes. The same every time."""
import gettext
import glob
import gzip
import json
import os
import random

LOCALES = "/usr/share/locale/*/LC_MESSAGES/iso_*.mo"  # the Debian package iso-codes

# ---- real


def catalogs():
    """Language -> the translated names of languages, countries, currencies and scripts."""
    names = {}
    for path in sorted(glob.glob(LOCALES)):
        if not os.path.islink(path):
            with open(path, "rb") as file:
                catalog = gettext.GNUTranslations(file)._catalog
            found = [text for key, text in sorted(catalog.items(), key=str) if key and text]
            names.setdefault(path.split("/")[4], []).extend(found)
    return {language: found for language, found in names.items() if len(found) >= 50}


def real(count):
    """Documents (bytes) from every language in turn: lists of names, put together as text is."""
    rng = random.Random(1)
    languages = catalogs()
    documents = []
    while len(documents) < count and languages:
        for names in languages.values():
            start = rng.randrange(len(names))
            chosen = names[start:start + rng.choice([1, 3, 10, 20, 40])]
            documents.append(rng.choice([" ", ", ", "\n", "; ", "", ".\u00a0", "、"]).join(chosen).encode())
    return documents[:count], len(languages)


def given(folder, count):
    """Texts of the JSONL files in a folder, evenly taken."""
    texts = []
    for path in sorted(glob.glob(os.path.join(folder, "**", "*.jsonl.gz"), recursive=True)):
        with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
            for line in file:
                text = json.loads(line).get("text")
                if isinstance(text, str):
                    texts.append(text.encode("utf-8", "replace")[:20000])
    return texts[::max(1, len(texts) // count)][:count]


# ---- random

ATOMS = {
    "marks": list("\u0301\u0327\u0345\u0308\u0323\u05b0\u064b\u0e31\u0e4d\u0f71\u0f72\u0f74\u3099\u309a\u20dd\U0001d165"
        "\u093c\u0b3e\u09be\u0fb7\U0001133e\u0340\u0343\u0344\u0f73\u0f75\u0f81\U000e0100\ufe0f\u200d\uff9e"),
    "jamo": list("\u1100\u1161\u11a8\uac00\uac01\ud7a3\u1112\u1175\u11c2\u1160\u11a7\u1176\u3131\u314f\u3164\uffa1"
        "\uffc2\u115f\ua960\ud7b0\ud7cb"),
    "greek": list("\u03b1\u0391\u1fb3\u1fbc\u1fbe\u0345\u1f80\u1fb4\u0390\u1fd3\u03c2\u03a3\u1fd2\u1fee\u0385\u1f82"
        "\u1fc3\u0301\u0313\u037a\u03f4"),
    "folds": list("\xdf\u1e9e\u0130I\u0131\ufb03\u01f0\u0149\u1e97\u0587\u2126\u212b\u212a\u01c4\u13a0\uab70\U00010400"
        "\U0001e900\u1c80\u0345\u017f"),
    "scripts": list("\u0e01\u0e33\u0eb3\u0e40\u4e2d\u6587\u3042\u30ac\u30d1\u3005\u3007\u3006\u30fc\u31f0\u1000\u102d"
        "\u1025\u102e\u1780\u17d2\u17c1\uaa60\ua9e0\uf900\ufa0e\U00020000\U0002f800\U000323af\u3400\u0f40"
        "\u0e50\u1040\u3021\u3220\u32d0\u3300\uff76\uff9e"),
    "spaces": list(" \x09\x0a\xa0\x85\u1680\u2003\u2028\u202f\u3000\u0f0b\u0f0c\u1361\u200b\ufeff\u180e\x1c\x1f\u2060"
        "\xb4\xa8\ufdfa")
        + ["\r\n"],
    "symbols": list("-'\u2019!\xad\u200d\u200c\xbd\u2460\xb2\u2122\u2026\uff01$+\x00\x7f\ufffd\U0010ffff\ue000\u0378")
        + ["\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f1e9\U0001f1ea", "1\ufe0f\u20e3"]
        + ["\U0001f44d\U0001f3fd"],
    "ascii": list("aZ9e")
        + ["the", "Cat", "x1", "HELLO", "longwordlongwordlongword", "q" * 70, "The quick brown "],
    "wide": list("\uff21\uff41\uff10\uff0d\uffe5\U0001d400\u2102\u3392\u33a1\ufe41"),
}
DAMAGE = [bytes.fromhex(damage) for damage in (
    "80 bfbf c080 c1bf c2 e08080 e09fbf e0a0 e282 eda080 edbfbf eda080edb080 efbf f0808080 f08fbfbf f090 "
    "f09080 f48fbf f4908080 f5808080 f888808080 fe ff f09f98 e4b8 c328 e228a1 f0288cbc efbbbf ").split()]


def mixture(rng):
    """Atoms of a few kinds, one of them dominant."""
    kinds = rng.sample(sorted(ATOMS), 3)
    pick = [kinds[0]] * rng.randrange(1, 10) + kinds[1:] + ["ascii", "spaces"][:rng.randrange(3)]
    return "".join(rng.choice(ATOMS[rng.choice(pick)]) for _ in range(rng.choice([1, 2, 4, 8, 16, 40, 100]))).encode()


def damaged(rng):
    """A mixture with damage in it, or cut short."""
    data = bytearray(mixture(rng))
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(data) + 1)
        data[at:at] = rng.choice(DAMAGE)
    return bytes(data[:rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data)


def long_run(rng):
    """A letter and more marks than are joined."""
    marks = rng.choices(ATOMS[rng.choice(["marks", "jamo", "greek"])], k=rng.randrange(1, 6))
    length = rng.choice([31, 32, 33, 34, 64, 65, 66, 97, 150])
    run = "".join(rng.choices(marks, k=length))
    return (rng.choice("a\u03b1\u4e2d\u1100 ") + run + rng.choice(["", "b", "\u4e2d", " "])).encode()


def code_points(rng):
    """Any code points, and ASCII around them."""
    limits = rng.choices([0x80, 0x3000, 0x20000, 0x110000], k=rng.choice([1, 5, 30, 120]))
    text = "".join(chr(rng.randrange(limit)) for limit in limits)
    return text.encode("utf-8", "surrogatepass")


def ascii_text(rng):
    """Words and white space of any length: what the vector code reads in blocks of 64 bytes."""
    gaps = [" ", " ", " ", "  ", "\n", ", ", "-", "\t" * 70, ". " * 40, "'", "\x0b\x0c", "\x1c", "\0"]
    letters = "abcdefghijklmnopqrstuvwxyzABCXYZ0129"
    parts = []
    for _ in range(rng.choice([1, 3, 10, 60, 300])):
        parts.append("".join(rng.choices(letters, k=rng.choice([1, 2, 3, 5, 8, 9, 16, 17, 63, 64, 65, 130]))))
        parts.append(rng.choice(gaps))
    return "".join(parts).encode()


def poem(rng):
    """Few words, many times: weights differ."""
    vocabulary = rng.choices(["a", "rose", "is", "the", "中", "Straße", "กำ", "and", "мир"], k=4)
    return " ".join(rng.choices(vocabulary, k=rng.choice([0, 1, 4, 5, 30, 200]))).encode()


def noise(rng):
    return rng.randbytes(rng.choice([0, 1, 4, 16, 100]))


def marked(rng):
    """A byte-order mark at the start, and perhaps another."""
    return b"\xef\xbb\xbf" * rng.choice([1, 1, 2]) + mixture(rng)


KINDS = [mixture, mixture, damaged, damaged, long_run, code_points, ascii_text, poem, noise, marked]


def invented(count):
    rng = random.Random(2)
    return [KINDS[i % len(KINDS)](rng) for i in range(count)]

"""Invented documents: texts that have nothing in common, and near-copies of them."""
import random
import subprocess

WORDS = [a + b for a in ("ba", "ko", "mi", "ru", "ze", "fo", "ta", "li", "nu", "sha") for b in
         ("lan", "ri", "mos", "tek", "du", "vor", "pel", "gan", "sil", "ta", "neb", "fur", "cor", "hin", "wes")]


def text(seed, words=120):
    rng = random.Random(seed)
    return " ".join(rng.choice(WORDS) for _ in range(words))


def near(seed, words=120, edits=1):
    """The text of a seed with a few words replaced."""
    rng = random.Random(f"edit {seed}")
    parts = text(seed, words).split()
    for _ in range(edits):
        parts[rng.randrange(len(parts))] = "changed"
    return " ".join(parts)


def documents(count, share=0.3, seed=0):
    """Documents with ids and URLs, a share of which are copies or near-copies of earlier ones."""
    rng = random.Random(seed)
    for number in range(count):
        other = rng.randrange(number) if number and rng.random() < share else None
        kind = rng.randrange(3)
        record = {"id": f"d{number}", "url": f"https://example.org/{number}"}
        if other is None:
            record["text"] = text(f"{seed}/{number}")
        elif kind == 0:
            record["text"] = text(f"{seed}/{other}")
        elif kind == 1:
            record["text"] = near(f"{seed}/{other}")
        else:
            record["url"] = f"http://www.example.org/{other}?utm_source=x"
            record["text"] = text(f"{seed}/{number}")
        yield record


def zstd(data):
    return subprocess.run(["zstd", "-c"], input=data, capture_output=True, check=True).stdout

"""Invented documents in which everything happens: near copies, chains, copies by the hundred, pages of one template, texts
without words, short ones; with URLs, hosts, dates and sizes."""
import random

SCHEMA = "id string, text string, url string, lang string, date string, size int, place bigint"


def words(rng, count, vocabulary=4000):
    return [f"w{rng.randrange(vocabulary)}" for _ in range(count)]


def edited(rng, text, edits):
    changed = list(text)
    for _ in range(edits):
        changed[rng.randrange(len(changed))] = f"e{rng.randrange(10 ** 6)}"
    return changed


def texts(rng, groups, hot, template, chain):
    """Groups of near copies; one text `hot` times; `template` pages that share a long frame; a chain of so many."""
    for _ in range(groups):
        base = words(rng, rng.choice((3, 5, 8, 40, 80, 150)))
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            yield edited(rng, base, rng.choice((0, 0, 1, 2, 4)))
    base = words(rng, 60)
    yield from (base for _ in range(hot))
    frame = words(rng, 120)
    yield from (frame + words(rng, rng.choice((4, 12, 20, 40))) for _ in range(template))
    link = words(rng, 200)
    for _ in range(chain):  # each near the one before it, not the one before that
        yield link
        link = link[12:] + words(rng, 12)
    for text in ("", "!!!", "!!!", "...", "one", "one"):
        yield [text]


def documents(seed, groups=60, hot=40, template=40, chain=30):
    """A list of dicts, in an order that has nothing to do with their ids."""
    rng = random.Random(seed)
    made = [{"id": f"doc-{number * 7919 % 1000003}", "text": " ".join(text)}
            for number, text in enumerate(texts(rng, groups, hot, template, chain))]
    rng.shuffle(made)
    for place, document in enumerate(made):
        host = f"h{rng.randrange(4)}.site{rng.randrange(3)}.org"
        document.update(url=rng.choice((None, f"http://{host}/{rng.randrange(80)}", f"https://{host}/{rng.randrange(80)}?utm_source=x")),
                        lang=rng.choice(("en", "de", None)), date=rng.choice((None, f"2024-{rng.randrange(1, 13):02}-03", "soon")),
                        size=rng.choice((None, rng.randrange(9))), place=place)
    return made

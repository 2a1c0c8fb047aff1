"""The first five minutes: which of these texts are copies of each other?

    pip install libdoppel
    python examples/python/quickstart.py
"""
import doppel

texts = [
    "The quick brown fox jumps over the lazy dog, and the dog sleeps on.",
    "Nothing of this was ever said before, by anyone.",
    "THE QUICK BROWN FOX jumps over the lazy dog -- and the dog sleeps on!",
]

# One of each. The third text has the words of the first: case and punctuation do not count.
unique = doppel.dedup(texts)
print(list(unique))
for row in unique.removed:
    print(row)  # which one, what it is a copy of, and why

# How alike are two texts?
comparison = doppel.compare(texts[0], "The fast brown fox jumps over the lazy dog, and the dog sleeps on.")
print(f"similarity {comparison.similarity:.2f}, {comparison.distance} of 64 bits differ")

# Documents that arrive one by one: has this one been seen?
with doppel.Engine() as engine:
    for text in texts:
        verdict = engine.add(text)
        print("seen before" if verdict else "new", "-", text)

assert list(unique) == texts[:2]
assert round(comparison.similarity, 4) == 0.6667

"""test_reference.py - the library gives what the reference gives: real and random documents, each by several of all
recipes, at every CPU level: 3,000 documents, 10,000 with DOPPEL_SUITE=full.

DOPPEL_DATA may name a folder with JSONL files (.jsonl.gz) whose texts are compared, too."""
import multiprocessing
import os
import random
import tempfile

import check
import documents
import recipes
import reference

LEVELS = ["avx512", "avx2", "portable"]
FULL = os.environ.get("DOPPEL_SUITE") == "full"
DOCUMENTS = 10000 if FULL else 3000
RECIPES_EACH = 20 if FULL else 2  # recipes a document is run with
ALWAYS = ["fingerprint", "words", "features", "signature", "sample"]
WANTED = {"digest": 1, "hashes": 2, "set": 4, "text": 8}


class Compared:
    """One recipe in both, with its stop words and table."""

    def __init__(self, chosen, sample_documents, folder):
        import library  # here, once DOPPEL_CPU is set: each process has its own level

        text = recipes.text_of(chosen)
        recipe = reference.parse(text)
        stop, self.stop, self.table = None, frozenset(), None
        if chosen["stop"]:
            stop = recipes.STOP_WORDS
            self.stop, recipe["stop"] = reference.stop_words(stop, recipe)
        if chosen["weight"] == "tfidf":
            path = os.path.join(folder, f"table-{os.getpid()}-{id(self)}")
            counting = library.Recipe(text.replace("tfidf", "tf"), stop)
            sketcher = library.Sketcher(counting, library.WANT_SET)
            library.build_table(counting, [sketcher.run(data)["set"] for data in sample_documents], path)
            df = library.Table(path)
            with open(path, "rb") as file:
                self.table = reference.Table(file.read())
            recipe["df"] = self.table.digest
        self.recipe = recipe
        made = library.Recipe(text, stop, df if self.table else None)
        assert made.text() == reference.canonical(recipe), (made.text(), reference.canonical(recipe))
        # All there is, the fingerprint alone, and one more thing: what is wanted decides how it is worked out.
        self.sketchers = [library.Sketcher(made, wants) for wants in (library.WANT_ALL, 0, 1 << chosen["bits"] % 4)]

    def compare(self, data):
        expected = reference.sketch(data, self.recipe, self.stop, self.table)
        expected |= {"text": expected["text"].encode(), "features": len(expected["hashes"])}
        for sketcher in self.sketchers:
            got = sketcher.run(data)
            for name in ALWAYS + [name for name, want in WANTED.items() if sketcher.wants & want]:
                assert got[name] == expected[name], (
                    f"{name} of {data!r} by {reference.canonical(self.recipe)}, wants {sketcher.wants}:\n"
                    f"  library   {got[name]!r}\n  reference {expected[name]!r}")


def large():
    """Texts of more than 100 KB, of more words than any shingle has."""
    rng = random.Random(9)
    real, _ = documents.real(450)
    mixed = [documents.KINDS[i % len(documents.KINDS)](rng) for i in range(300)]
    return [b" ".join(real), b" ".join(mixed), "".join(rng.choices("天地玄黃宇宙洪荒 ", k=40000)).encode()]


def compare_large(number):
    os.environ["DOPPEL_CPU"] = LEVELS[number]
    plain = dict.fromkeys(recipes.PARTS) | {name: recipes.PARTS[name][0] for name in ("case", "punct", "space")}
    for data in large() if FULL else large()[number:number + 1]:
        kinds = [("words=1", "fast", "sqrt"), ("words=5", "fast", "tf"), ("words=1000", "xxh3", "tf"),
                 ("chars=5", "fast", "tf2"), ("words=3", "sha1", "set"), ("chars=40", "xxh3", "tf")]
        for unit, name, weight in kinds if FULL else kinds[number::3]:
            chosen = plain | {"bits": 128, "unit": unit, "hash": name, "weight": weight, "sample": 16}
            Compared(chosen, [], None).compare(data)


def all_documents():
    real, languages = documents.real(DOCUMENTS // 2)
    found = real + documents.invented(DOCUMENTS - len(real))
    if os.environ.get("DOPPEL_DATA"):
        found += documents.given(os.environ["DOPPEL_DATA"], 500)
    return found, languages


def compare_share(number):
    """The share of one process: each so many-th document, by recipes that go round."""
    os.environ["DOPPEL_CPU"] = LEVELS[number]
    found, languages = all_documents()
    chosen = recipes.all_recipes()
    compared, failures, done = {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(number, len(found), len(LEVELS)):
            for k in range(RECIPES_EACH):
                # The step visits all recipes, and not the same ones for every kind of document.
                which = (i // len(LEVELS) * RECIPES_EACH + k + i // len(chosen)) % len(chosen)
                if which not in compared:
                    compared[which] = Compared(chosen[which], found[:4000:97], folder)
                try:
                    compared[which].compare(found[i])
                except AssertionError as failure:
                    failures.append(str(failure))
                done += 1
    return {"failures": failures, "done": done, "recipes": len(compared), "all": len(chosen), "languages": languages,
            "documents": len(found)}


def at_every_level(compare):
    """What `compare` gives in a process for each CPU level, two at a time."""
    with multiprocessing.get_context("spawn").Pool(min(2, os.cpu_count() or 1), maxtasksperchild=1) as pool:
        return pool.map(compare, range(len(LEVELS)), chunksize=1)


def test_large_documents():
    at_every_level(compare_large)


def test_the_library_equals_the_reference():
    shares = at_every_level(compare_share)
    failures = [failure for share in shares for failure in share["failures"]]
    for failure in failures[:10]:
        print(failure[:3000])
    assert not failures, f"{len(failures)} of {sum(share['done'] for share in shares)} differ"
    assert all(share["recipes"] == share["all"] for share in shares)
    assert shares[0]["languages"] >= 20, "the translations of the Debian package iso-codes are needed"
    return (f"{shares[0]['documents']} documents, {shares[0]['languages']} languages, {shares[0]['all']} recipes, "
            f"{sum(share['done'] for share in shares)} comparisons")


if __name__ == "__main__":
    check.main(globals())

"""test_reference.py - the library gives what the reference gives: 10,000 real and random documents, each by several of
all recipes, at every CPU level.

DOPPEL_DATA may name a folder with JSONL files (.jsonl.gz) whose texts are compared, too."""
import multiprocessing
import os
import tempfile

import check
import documents
import recipes
import reference

LEVELS = ["avx512", "avx2", "portable"]
DOCUMENTS = 10000
RECIPES_EACH = 3  # recipes a document is run with


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
        self.everything = library.Sketcher(made, library.WANT_ALL)
        self.little = library.Sketcher(made, 0)

    def compare(self, data):
        expected = reference.sketch(data, self.recipe, self.stop, self.table)
        expected |= {"text": expected["text"].encode(), "features": len(expected["hashes"])}
        for sketcher in (self.everything, self.little):
            got = sketcher.run(data)
            names = expected if sketcher.wants else ["fingerprint", "words", "features", "signature", "sample"]
            for name in names:
                assert got[name] == expected[name], (
                    f"{name} of {data!r} by {reference.canonical(self.recipe)}, wants {sketcher.wants}:\n"
                    f"  library   {got[name]!r}\n  reference {expected[name]!r}")


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


def test_the_library_equals_the_reference():
    with multiprocessing.get_context("spawn").Pool(min(2, os.cpu_count() or 1)) as pool:
        shares = pool.map(compare_share, range(len(LEVELS)), chunksize=1)
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

"""doppel in polars: fingerprints and near-duplicates as expressions.

    pip install libdoppel polars
    python examples/python/polars_expression.py
"""
import random

import doppel
import polars as pl


def fingerprint(text: str | pl.Expr) -> pl.Expr:
    """The 64-bit fingerprint of each text; null stays null. It does not depend on the batch a text is in."""
    column = pl.col(text) if isinstance(text, str) else text
    return column.map_batches(lambda texts: pl.Series(doppel.fingerprint(texts, missing="skip")),
                              return_dtype=pl.UInt64, is_elementwise=True)


def distance(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """The number of bits in which two fingerprints differ: polars needs no help with that."""
    return a.xor(b).bitwise_count_ones()


def is_unique(text: str | pl.Expr, similarity: float = 0.8) -> pl.Expr:
    """Whether a row stays when near-duplicates of earlier rows are dropped. It has to see the whole column at once."""
    column = pl.col(text) if isinstance(text, str) else text
    return column.map_batches(lambda texts: pl.Series(doppel.dedup(texts, similarity=similarity).mask),
                              return_dtype=pl.Boolean)


def make_frame() -> pl.DataFrame:
    """40 rows; from the 31st on they are earlier ones with a new first word."""
    words = "river stone lamp winter paper garden engine signal quiet morning letter window copper field voice".split()
    chance = random.Random(1)
    texts = [" ".join(chance.choices(words, k=80)) for _ in range(30)]
    texts += ["Again " + text.split(" ", 1)[1] for text in texts[:10]]
    return pl.DataFrame({"page": range(40), "language": ["en"] * 30 + ["de"] * 10, "text": texts})


def main() -> None:
    frame = make_frame()

    # In eager and lazy frames, alongside any other expression.
    unique = frame.lazy().filter(is_unique("text")).select("page", "language").collect()
    print(unique)
    assert unique["page"].to_list() == list(range(30))

    # In groups: copies count only within a language. Here the pages of a pair are in different ones, so all are kept.
    within = frame.filter(is_unique("text").over("language"))
    assert within["page"].to_list() == list(range(40))

    # Fingerprints, and the distance of each from the first page's.
    marked = frame.with_columns(fingerprint=fingerprint("text"))
    marked = marked.with_columns(bits=distance(pl.col("fingerprint"), pl.col("fingerprint").first()))
    print(marked.select("page", "fingerprint", "bits").sort("bits").head(3))
    assert marked["fingerprint"].to_list() == doppel.fingerprint(frame["text"].to_list())
    assert marked.sort("bits")["page"][:2].to_list() == [0, 30]

    # The list of what was removed is Arrow, so it becomes a frame without conversion.
    removed = pl.DataFrame(doppel.dedup(frame, id="page").removed)
    print(removed)
    assert removed["originalId"].to_list() == list(range(10))


if __name__ == "__main__":
    main()

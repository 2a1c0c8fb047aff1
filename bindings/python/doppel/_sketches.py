"""Texts to fingerprints, signatures, digests and whole sketches, and measures on two of them.

The work is done by the extension: here options are checked, and recipes made of them.
"""

from __future__ import annotations

from functools import lru_cache

from . import _doppel
from ._inputs import arrow, reporter
from ._types import Comparison, Passage, Table

TYPE_CHECKING = False  # typing takes longer to import than doppel
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any, Union

    Progress = Union[None, bool, Callable[[int, int], Any]]

SKETCH_COLUMNS = ("digest", "fingerprint", "signature", "bands", "words", "set")


# ---- options ----


def changed_recipe(recipe: Any, bits: int | None = None, slots: int | None = None) -> Any:
    """A recipe with another width of the fingerprint, or with signatures of `slots` slots; None: unchanged.

    >>> changed_recipe("page", bits=32).text
    'simhash32:words=5:hash=fast:weight=tf'
    >>> changed_recipe("page", slots=64).text
    'simhash64:words=5:hash=fast:weight=tf:minhash=64'
    """
    if bits is None and slots is None:
        return recipe
    if bits is not None and not (isinstance(bits, int) and (1 <= bits <= 64 or bits == 128)):
        raise ValueError(f"bits: expected a width from 1 to 64, or 128, not {bits!r}")
    if slots is not None and not (isinstance(slots, int) and 1 <= slots <= 65536):
        raise ValueError(f"slots: expected 1 to 65536, not {slots!r}")
    if isinstance(recipe, _doppel.Recipe):
        return _changed(recipe, bits, slots)
    if recipe is not None and not isinstance(recipe, str):
        raise TypeError(f"recipe: expected str or Recipe, not {type(recipe).__name__}")
    return _changed_text(recipe or "page", bits, slots)


@lru_cache(64)
def _changed_text(text: str, bits: int | None, slots: int | None) -> _doppel.Recipe:
    return _changed(_doppel.Recipe(text), bits, slots)


def _changed(recipe: _doppel.Recipe, bits: int | None, slots: int | None) -> _doppel.Recipe:
    """The canonical text begins with simhashB."""
    head, *parts = recipe.text.split(":")
    if bits is not None:
        head = f"simhash{bits}"
    if slots is not None:
        parts = [part for part in parts if not part.startswith("minhash=")] + [f"minhash={slots}"]
    return _doppel.Recipe(":".join([head, *parts]), recipe.stop_words, recipe.df)


def _skips(missing: str) -> bool:
    if missing not in ("error", "skip"):
        raise ValueError(f'missing: expected "error" or "skip", not {missing!r}')
    return missing == "skip"


def checked_threads(threads: int) -> int:
    if not isinstance(threads, int) or not 0 <= threads < 1 << 31:
        raise ValueError(f"threads: expected a number, 0 for one for each CPU, not {threads!r}")
    return threads


def _one_column(name: str, texts: Any, recipe: Any, text: str, missing: str, threads: int, progress: Progress) -> Any:
    """One column of sketches: a list for a list, an Array for Arrow data, one value for one text."""
    one = isinstance(texts, (str, bytes))
    data = [texts] if one else arrow(texts, "texts", [text])
    made = _doppel.sketch(data, "texts", text, recipe, (name,), 0, 0, 0, _skips(missing), True,
                          checked_threads(threads), reporter(progress))[name]
    return made[0] if one else made


# ---- sketches ----


def fingerprint(texts: Any, *, recipe: Any = "page", bits: int | None = None, text: str = "text",
                missing: str = "error", threads: int = 0, progress: Progress = None) -> Any:
    """The SimHash fingerprint of each text: texts that are nearly the same have fingerprints that differ in few bits.

    texts: a str; a list, tuple or generator of str; or Arrow data: a column of strings, or a table with one.
    recipe: a Recipe or its text; only fingerprints of one recipe can be compared.
    bits: another width than the recipe's, 1 to 64, or 128.
    text: the name of the column, of a table.
    missing: "error" refuses nulls; with "skip" the result is null there.
    threads: how many to use; 0 is one for each CPU of this process.
    progress: called as progress(done, total) now and then; True shows a bar.

    Gives an int for a str, a list of them for a list, and an Array of uint64 for Arrow data. Fingerprints of 128 bits
    are bytes (fixed-size binary), the low half first. A text without words has fingerprint 0.

    Raises ValueError for a null, or for bytes that are not UTF-8; the message names the row.

    >>> import doppel
    >>> hex(doppel.fingerprint("The quick brown fox jumps over the lazy dog"))
    '0xdf60edc4aa97a4ab'
    >>> doppel.fingerprint(["one text", None], missing="skip")
    [13631791134605386634, None]
    """
    return _one_column("fingerprint", texts, changed_recipe(recipe, bits), text, missing, threads, progress)


def signature(texts: Any, *, slots: int = 128, recipe: Any = "page", text: str = "text", missing: str = "error",
              threads: int = 0, progress: Progress = None) -> Any:
    """The MinHash signature of each text: the share of equal slots of two signatures estimates the Jaccard similarity
    of the texts, with a standard deviation of sqrt(J * (1 - J) / slots).

    slots: numbers of 32 bits in a signature, 1 to 65536.
    The other arguments are those of fingerprint().

    Gives a list of ints for a str, a list of lists for a list, and an Array of fixed-size lists of uint32 for Arrow
    data. A text without words has none: None, or null.

    >>> import doppel
    >>> a = doppel.signature("The quick brown fox jumps over the lazy dog")
    >>> b = doppel.signature("A quick brown fox jumps over the lazy dog")
    >>> sum(x == y for x, y in zip(a, b)) / 128
    0.625
    """
    return _one_column("signature", texts, changed_recipe(recipe, slots=slots), text, missing, threads, progress)


def digest(texts: Any, *, recipe: Any = "page", text: str = "text", missing: str = "error", threads: int = 0,
           progress: Progress = None) -> Any:
    """The SHA-256 digest of each text's normalised words: texts that differ in case, punctuation or white space alone
    have the same.

    The arguments are those of fingerprint().

    Gives bytes for a str, a list of them for a list, and an Array of fixed-size binary for Arrow data. A text without
    words has none: None, or null.

    >>> import doppel
    >>> doppel.digest("It is  THE same.") == doppel.digest("it is the same")
    True
    """
    return _one_column("digest", texts, recipe, text, missing, threads, progress)


def _planned_bands(similarity: float, bands: int | None, rows: int | None) -> tuple[int, int]:
    """Bands and rows for a similarity; a number that is given stays."""
    for name, value in (("bands", bands), ("rows", rows)):
        if value is not None and (not isinstance(value, int) or not 0 < value < 1 << 31):
            raise ValueError(f"{name}: expected a number from 1 on, not {value!r}")
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity: expected more than 0, and 1 at most, not {similarity!r}")
    planned = _doppel.bands_plan(similarity, bands or 0, rows or 0)
    if not planned[2]:
        raise ValueError(f"bands: there are none with bands={bands}, rows={rows} for similarity={similarity}")
    return planned[0], planned[1]


def sketch(data: Any, *, text: str = "text", recipe: Any = "page", similarity: float = 0.8, bands: int | None = None,
           rows: int | None = None, columns: Iterable[str] = ("digest", "fingerprint", "signature", "bands"),
           min_words: int = 5, missing: str = "error", threads: int = 0, progress: Progress = None) -> Table:
    """What near-duplicate detection needs of each text: a building block for engines that spread the work over many
    machines. Texts are candidates when they have the same key in one of the bands; verify() measures candidates,
    and decide() keeps one of each group.

    data: as `texts` of fingerprint().
    similarity, bands, rows: bands and rows are planned to find 999 of 1,000 pairs of this similarity; one or both
        can be given.
    columns: the columns that are wanted, of
        digest: SHA-256 of the normalised words; null without words
        fingerprint: uint64, or 16 bytes
        signature: bands * rows slots, a fixed-size list of uint32; null without words
        bands: a key for each band, a fixed-size list of uint32; null below min_words words
        words: their number, uint64
        set: the distinct hashes of the shingles, ascending, a list of uint64
    min_words: texts with fewer words have no band keys, as they would be similar to too many others.
    missing, threads, progress: as of fingerprint(). With missing="skip" all columns are null for a null.

    Gives a Table with a row for each text.

    >>> import doppel
    >>> t = doppel.sketch(["The quick brown fox jumps over the lazy dog", "..."], columns=["words", "digest", "set"])
    >>> t["words"].to_list(), len(t["set"][0]), t["digest"][1]
    ([9, 0], 5, None)
    """
    columns = (columns,) if isinstance(columns, str) else tuple(columns)
    if not columns:
        raise ValueError(f"columns: expected some of {', '.join(SKETCH_COLUMNS)}")
    if not isinstance(min_words, int) or min_words < 0:
        raise ValueError(f"min_words: expected a number of words, not {min_words!r}")
    if {"signature", "bands"} & {*columns}:
        bands, rows = _planned_bands(similarity, bands, rows)
    if "signature" in columns:
        recipe = changed_recipe(recipe, slots=bands * rows)
    return Table(_doppel.sketch(arrow(data, "data", [text]), "data", text, recipe, columns, bands or 0, rows or 0,
                                min_words, _skips(missing), False, checked_threads(threads), reporter(progress)))


# ---- measures ----


def _split_pairs(pairs: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    sides: tuple[list[Any], list[Any]] = ([], [])
    for number, pair in enumerate(pairs):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(f"pairs[{number}]: expected a tuple of two texts, not {pair!r:.80}")
        for side, text in zip(sides, pair):
            side.append(text)
    return sides


def verify(pairs: Any, *, a: str = "a", b: str = "b", recipe: Any = "page", threads: int = 0,
           progress: Progress = None) -> Table:
    """How similar the two texts of each pair are, exactly: a building block for engines that find candidates by the
    bands of sketch().

    pairs: Arrow data with two columns, of texts or of sets (lists of uint64, as sketch() gives them); or a list of
        tuples of two str.
    a, b: the names of the two columns.
    recipe: of texts. It does not matter for sets, which must have been made with one recipe.
    threads, progress: as of fingerprint().

    Gives a Table with a row for each pair:
        similarity: the Jaccard similarity of the two sets of shingles; 1 for two texts without words
        containmentAB, containmentBA: the share of A's shingles that are in B, and the other way round; null when A (or
            B) has none
        distance: differing bits of the fingerprints; null for sets, and when a text has no words

    Raises ValueError for a null, and for lists that are no sets: their numbers are distinct and ascending.

    >>> import doppel
    >>> doppel.verify([("one two three four five six", "one two three four five")])[0]
    {'similarity': 0.5, 'containmentAB': 0.5, 'containmentBA': 1.0, 'distance': 11}
    """
    data = arrow(pairs, "pairs", [a, b])
    both = (data, None)
    if not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"):
        both = _split_pairs(data)
    return Table(_doppel.verify(both[0], a, both[1], b, recipe, checked_threads(threads), reporter(progress, "pairs")))


def _characters(text: str, places: Sequence[int]) -> dict[int, int]:
    """Positions in the UTF-8 of a str, as positions in the str."""
    if text.isascii():
        return {place: place for place in places}
    data, last, count, found = text.encode(), 0, 0, {}
    for place in sorted({*places}):
        count += len(data[last:place].decode("utf-8", "replace"))
        last = place
        found[place] = count
    return found


def _passages(a: str, b: str, found: list[tuple[int, int, int, int, int]]) -> list[Passage]:
    in_a = _characters(a, [place for passage in found for place in passage[0:2]])
    in_b = _characters(b, [place for passage in found for place in passage[2:4]])
    return [Passage(in_a[p[0]], in_a[p[1]], in_b[p[2]], in_b[p[3]], p[4]) for p in found]


def compare(a: str, b: str, *, recipe: Any = "page", passages: int = 0) -> Comparison:
    """Every measure on two texts, and the passages they share.

    recipe: a Recipe or its text.
    passages: also find the runs of at least this many words that are in both texts; 0: do not. For a Passage p,
        a[p.a_start:p.a_end] and b[p.b_start:p.b_end] are the run in each text.

    Gives a Comparison; a measure that has no value, such as the distance to a text without words, is None.

    >>> import doppel
    >>> a = "Spring: The quick brown fox jumps over the lazy dog"
    >>> b = "the quick brown fox jumps over a fence"
    >>> c = doppel.compare(a, b, passages=3)
    >>> c.words_a, c.words_b, c.shingles_shared, c.edit_distance
    (10, 8, 2, 18)
    >>> [a[p.a_start:p.a_end] for p in c.passages]
    ['The quick brown fox jumps over']
    """
    if not isinstance(passages, int) or not 0 <= passages < 1 << 62:
        raise ValueError(f"passages: expected a number of words, not {passages!r}")
    *fields, found = _doppel.compare(a, b, recipe, passages)
    return Comparison(*fields, _passages(a, b, found))


def hamming(a: Any, b: Any) -> Any:
    """In how many bits fingerprints differ.

    a, b: an int, or 16 bytes for 128 bits; a list of those; or a column of Arrow data (uint64, int64, or fixed-size
        binary of 16 bytes) or a NumPy array. One fingerprint is compared with each of the other side.

    Gives an int for two fingerprints, a list for lists, and an Array of int32 where there is Arrow data. Where a side
    is null, so is the result.

    Raises ValueError for two sides of different lengths.

    >>> import doppel
    >>> doppel.hamming(0b1011, 0b0010)
    2
    >>> doppel.hamming([0, 1, 3, None], 0)
    [0, 1, 2, None]
    """
    return _doppel.hamming(a, b)

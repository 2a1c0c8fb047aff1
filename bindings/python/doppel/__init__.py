"""Find the documents you have already seen: near-duplicates of texts, from a handful to millions.

>>> import doppel
>>> kept = doppel.dedup(["A quick brown fox jumps over the lazy dog.", "Something else.",
...                      "a quick brown fox jumps over the lazy dog"])
>>> list(kept)
['A quick brown fox jumps over the lazy dog.', 'Something else.']

Texts are lists or generators of str, or Arrow data of any library (pyarrow, polars, pandas, DuckDB, Hugging Face
datasets), which is not copied. Lists give lists; Arrow data gives Array and Table, which those libraries take.

    dedup, cluster, pairs, overlap, dedup_files    whole collections
    trim, trim_files                               what documents repeat of each other
    Engine, HammingIndex                           what remembers documents, and fingerprints
    fingerprint, signature, digest, sketch         texts as numbers
    compare, hamming, verify, decide               two texts, or many pairs of them
    Recipe                                         how text becomes numbers
"""

_distribution = "libdoppel"  # of which this package is; _types.py checks it


def _check_package() -> None:
    """The unrelated distribution "doppel" has a package of this name, too, with files of its own."""
    from os.path import dirname, exists, join

    if exists(join(dirname(__file__), "driver.py")):
        raise ImportError(
            'the distributions "libdoppel" and "doppel" have both installed a package named doppel, and cannot be used '
            "together: run `pip uninstall doppel libdoppel`, then `pip install libdoppel`")


_check_package()

try:
    from . import _load as _load
except ImportError as error:
    if "cannot import name '_doppel'" not in str(error):
        raise
    raise ImportError(
        f"doppel._doppel, the extension module of libdoppel, is not in {__path__[0]}: install libdoppel "
        '(`pip install libdoppel`; the distribution "doppel" is another package, and cannot be installed beside it)'
    ) from None

from ._batch import Deduplicated, cluster, decide, dedup, dedup_files, overlap, pairs  # noqa: E402
from ._doppel import Array, AwayError, Error, InputError, Recipe, StoreError, cpu_level, unicode_version  # noqa: E402
from ._doppel import version as __version__  # noqa: E402
from ._engine import Engine  # noqa: E402
from ._index import HammingIndex  # noqa: E402
from ._sketches import compare, digest, fingerprint, hamming, signature, sketch, verify  # noqa: E402
from ._trim import Trimmed, trim, trim_files  # noqa: E402
from ._types import (  # noqa: E402
    Cluster, Comparison, Evidence, Match, Overlap, Pair, Passage, Stored, Table, Verdict)

__all__ = [
    "Array", "AwayError", "Cluster", "Comparison", "Deduplicated", "Engine", "Error", "Evidence", "HammingIndex",
    "InputError", "Match", "Overlap", "Pair", "Passage", "Recipe", "StoreError", "Stored", "Table", "Trimmed",
    "Verdict", "__version__", "cluster", "compare", "cpu_level", "decide", "dedup", "dedup_files", "digest", "fingerprint",
    "hamming", "overlap", "pairs", "signature", "sketch", "trim", "trim_files", "unicode_version",
    "verify",
]

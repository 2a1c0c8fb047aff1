from collections.abc import Iterator, KeysView, Mapping, Sequence
from typing import Any, NamedTuple, overload

from ._doppel import Array

class Evidence(NamedTuple):
    distance: int | None = None
    similarity: float | None = None
    containment: float | None = None
    titleSimilarity: float | None = None
    sameUrl: bool = False
    sameDigest: bool = False
    verified: bool = False

class Verdict(NamedTuple):
    id: str
    isDuplicate: bool
    confidence: float = 0.0
    reason: str | None = None
    originalId: str | None = None
    evidence: Evidence = ...
    def __bool__(self) -> bool: ...
    def json(self) -> str: ...

class Stored(NamedTuple):
    id: str
    number: int | None = None
    url: str | None = None
    canonicalUrl: str | None = None
    title: str | None = None
    fields: dict[str, Any] | None = None
    canonical: str | None = None
    originalId: str | None = None
    reason: str | None = None
    evidence: Evidence | None = None
    added: int | None = None
    expires: int | None = None
    words: int | None = None
    fingerprint: int | bytes | None = None
    digest: bytes | None = None
    shingles: int | None = None
    duplicates: int | None = None
    duplicatesBy: dict[str, int] | None = None
    lastDuplicate: int | None = None
    copies: int | None = None
    aliases: list[str] | None = None
    text: str | None = None
    similarity: float | None = None
    distance: int | None = None
    containment: float | None = None

class Match(NamedTuple):
    owner: int
    distance: int
    fingerprint: int | bytes
    expires: int = 0

class Pair(NamedTuple):
    a: Any
    b: Any
    distance: int | None = None
    similarity: float | None = None

class Cluster(NamedTuple):
    id: Any
    group: Any
    kept: bool
    reason: str | None = None
    similarity: float | None = None

class Passage(NamedTuple):
    a_start: int
    a_end: int
    b_start: int
    b_end: int
    words: int

class Overlap(NamedTuple):
    a: Any
    b: Any
    containmentAB: float | None
    containmentBA: float | None
    passages: list[Passage]

class Comparison(NamedTuple):
    fingerprint_a: int | bytes
    fingerprint_b: int | bytes
    bits: int
    distance: int | None
    words_a: int
    words_b: int
    shingles_a: int
    shingles_b: int
    shingles_shared: int
    similarity: float
    containment_ab: float | None
    containment_ba: float | None
    signature_similarity: float | None
    cosine: float
    angle: float
    euclidean: float
    edit_distance: int | None
    indel_distance: int | None
    edit_similarity: float | None
    same_digest: bool
    digest_a: bytes | None
    digest_b: bytes | None
    passages: Sequence[Passage] = ()

class Table:
    def __init__(self, columns: Mapping[str, Array]) -> None: ...
    @property
    def column_names(self) -> list[str]: ...
    def keys(self) -> KeysView[str]: ...
    def to_list(self) -> list[dict[str, Any]]: ...
    def to_dict(self) -> dict[str, list[Any]]: ...
    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, key: str) -> Array: ...
    @overload
    def __getitem__(self, key: slice) -> Table: ...
    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
    def __eq__(self, other: object) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def array_to_numpy(array: Array, dtype: Any = None, copy: bool | None = None) -> Any: ...
def _json_value(value: Any) -> str: ...

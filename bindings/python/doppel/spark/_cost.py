"""What a run will cost, before anything runs: stages, bytes that are shuffled, and hours of a core.

The model is linear in documents, with constants that `bench/run --part spark` measures (docs/SCALE.md has them, with the
machine, and checks them at several sizes). Seconds are those of one core of that machine.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Measured: docs/SCALE.md, "The constants".
SECONDS_A_BYTE_OF_KEYS = 1.3e-8  # text read, through Arrow, and made into keys
SECONDS_A_KEY = 5.5e-7  # packed, shuffled, sorted
SECONDS_A_ROW = 6.0e-6  # an id with its component, found and joined
SECONDS_A_BYTE_AGAIN = 4.0e-9  # text read again, to find what is not alone
SECONDS_A_MEMBER = 8.0e-5  # a document that is not alone: sketched, shuffled, decided
SECONDS_A_BYTE_OF_OUTPUT = 8.5e-9  # read once more, and written
BYTES_A_KEY = 18  # 6 of the key, 12 of the text it belongs to
BYTES_A_FINGERPRINT = 28  # 16, and 12 of the text
BYTES_A_HEAD = 236  # of a sketch, with an id of 28 bytes, but for keys and set
BYTES_A_ID = 48  # an id or a node as Spark shuffles it
BYTES_A_WORD = 6  # of text, with the space
BROADCAST = 2 << 20  # documents that are not alone, or copies, up to which their ids are sent to all executors


def stages(settings: Any, documents: int, document_bytes: int, together: float) -> list[dict[str, Any]]:
    """The stages, with the bytes that each shuffles and the seconds that it takes one core. `together` is the share of
    documents that are not alone: copies, and what shares a band with another."""
    bands = settings.bands()[0] if settings.has_keys and settings.method != "simhash" else 0
    prints, members = _tables(settings), documents * together
    sketch = BYTES_A_HEAD + (4 * bands + 8 * document_bytes / BYTES_A_WORD if bands else 0)
    entries = (bands + 2) * BYTES_A_KEY + prints * BYTES_A_FINGERPRINT  # two: the text, and the id
    moved = document_bytes + BYTES_A_ID if members > BROADCAST else 0
    text = documents * document_bytes
    return [
        _stage("keys", 0, text * SECONDS_A_BYTE_OF_KEYS),
        _stage("link", documents * entries, documents * (bands + 4 * prints + 2) * SECONDS_A_KEY),
        _stage("connect", members * 24, members * SECONDS_A_ROW),
        _stage("gather", documents * BYTES_A_ID if members > BROADCAST else 0, documents * SECONDS_A_ROW),
        _stage("decide", documents * moved + members * sketch, text * SECONDS_A_BYTE_AGAIN + members * SECONDS_A_MEMBER),
        _stage("output", documents * moved, text * SECONDS_A_BYTE_OF_OUTPUT),
    ]


def _tables(settings: Any) -> int:
    """How often a fingerprint is shuffled."""
    if settings.method != "simhash" or not settings.by_content:
        return 0
    from ._tasks import masks_of

    return len(masks_of(settings.bits, settings.distance()))


def _stage(name: str, shuffled: float, seconds: float) -> dict[str, Any]:
    return {"stage": name, "shuffled": int(shuffled), "seconds": seconds}


def explain(settings: Any, documents: int, document_bytes: int, together: float, cores: int) -> str:
    """The stages as a table, and what they come to."""
    found = stages(settings, documents, document_bytes, together)
    lines = [f"{documents:,} documents of {document_bytes:,} bytes, {together:.0%} of them not alone, {cores} cores",
             f"{'stage':10} {'shuffled':>12} {'a document':>12} {'core-hours':>12}"]
    for each in found:
        lines.append(f"{each['stage']:10} {_bytes(each['shuffled']):>12} {_bytes(each['shuffled'] / documents):>12} "
                     f"{each['seconds'] / 3600:12.3f}")
    shuffled, seconds = sum(each["shuffled"] for each in found), sum(each["seconds"] for each in found)
    lines.append(f"{'in all':10} {_bytes(shuffled):>12} {_bytes(shuffled / documents):>12} {seconds / 3600:12.3f}")
    lines.append(f"about {seconds / cores / 60:.1f} minutes on {cores} cores, and the time of the largest component "
                 "besides, which one task decides")
    if settings.has_keys and settings.method != "simhash":
        bands, rows, recall = settings.bands()
        lines.append(f"{bands} bands of {rows} rows find {recall:.4f} of the pairs at the threshold")
    return "\n".join(lines)


def _bytes(count: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} PB"

"""Engine: remembers documents, and says of a new one whether it was seen, how sure that is and why."""

from __future__ import annotations

import os

from . import _doppel, _inputs
from ._types import Stored, Table, Verdict

TYPE_CHECKING = False  # typing takes longer to import than doppel
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, Union

    from ._sketches import Progress

    # Its text, or a mapping with id, url, title, text, html, ttl and the fields that the engine keeps.
    Document = Union[str, Mapping[str, Any]]
    Id = Union[str, int]
    Path = Union[str, os.PathLike[str]]

# What documents of a table are made of, beside the fields that the engine keeps.
_COLUMNS = ("id", "url", "title", "text", "html", "ttl")


class Engine:
    """Documents that were seen: in memory, in a folder, or in Redis.

    >>> import doppel
    >>> engine = doppel.Engine()
    >>> engine.add({"id": "a", "text": "The quick brown fox jumps over the lazy dog."}).isDuplicate
    False
    >>> verdict = engine.check("the quick brown fox jumps over the lazy dog")
    >>> verdict.isDuplicate, verdict.originalId, verdict.reason
    (True, 'a', 'content_hash')

    A document is a str, which is its text, or a mapping with any of `id`, `url`, `title`, `text`, `html` (str, or bytes
    in any charset), `ttl`, and the engine's `fields`; other keys are ignored. It has at least one of url, title,
    text and html. A missing id is the canonical URL, else 16 hex digits of the digest.

    Any number of threads may use an Engine at a time; calls release the GIL. It belongs to the process that
    opened it: after a fork, open another one in the child; it cannot be pickled. It is a context manager, and closed
    when it is collected.

    path_or_url: None is a new one in memory. A path is a folder, which is made if it is not there; one process at a
        time may write to it, any number may read. `redis://HOST:PORT/DB?prefix=NAME` is shared by any number of
        processes.
    preset: "general", "crawl" or "article"; by default general, in Redis crawl.

    Of the following, None means: as the preset has it, or the folder that is there. What it was made with cannot be
    changed: another value is refused.

    recipe: a Recipe, or its text.
    near: "similarity" or "distance".
    similarity, distance: how near is near: a share of common shingles (0.8), or differing bits (3). A distance implies
        near="distance".
    min_words: documents with fewer words are near only if their words are the same (5).
    titles: whether similar titles are evidence. title_similarity: how similar (0.9).
    keep_text: whether texts are kept, compressed.
    content: of HTML, "main" leaves out navigation, headers, footers and the like; "all" takes all visible text.
    fields: the names of members that are kept with a document: a list, or a str with commas ("source,date").

    These can be different each time it is opened:

    title_veto: whether quite different contents outweigh a similar title.
    on_duplicate: "skip" counts a copy at its original, "link" remembers its id, URL, title and fields there, "store"
        stores it like any other.
    on_same_url: "duplicate", or "refresh": other text at the same URL takes the place of what was there.
    ttl: how long a document is remembered: seconds, a timedelta, a str such as "30d", "12h" or "90m", or "never".
    durability: "batch" (an add returns when it is on the disk; adds at the same time share a commit), "each" or "none".
    read_only, must_exist: do not write; do not make a folder.
    threads: for batches and opening; 0 is one for each CPU of this process.
    count, memory: documents to expect, and bytes of memory for their fingerprints.

    Raises ValueError and TypeError for invalid options, StoreError for an index that another process writes to, that
    was made with other options or is damaged, OSError for a folder that cannot be opened, AwayError for a server
    that does not answer.
    """

    __slots__ = ("_engine", "_path", "__weakref__")

    def __init__(
        self,
        path_or_url: Path | None = None,
        *,
        preset: str | None = None,
        recipe: _doppel.Recipe | str | None = None,
        near: str | None = None,
        similarity: float | None = None,
        distance: int | None = None,
        min_words: int | None = None,
        titles: bool | None = None,
        title_similarity: float | None = None,
        title_veto: bool | None = None,
        keep_text: bool | None = None,
        content: str | None = "main",
        fields: Iterable[str] | str | None = None,
        on_duplicate: str | None = None,
        on_same_url: str | None = None,
        ttl: Any = None,
        durability: str | None = None,
        read_only: bool = False,
        must_exist: bool = False,
        threads: int = 0,
        count: int = 0,
        memory: int = 0,
    ) -> None:
        if similarity is not None and distance is not None and near is None:
            raise ValueError("give similarity or distance, not both")
        if similarity is not None and near == "distance" or distance is not None and near == "similarity":
            given = "similarity" if near == "distance" else "distance"
            raise ValueError(f'{given} cannot be used with near="{near}"')
        if memory and not count:
            raise ValueError("memory needs count, the number of documents to expect")
        path = None if path_or_url is None else os.fspath(path_or_url)
        options = {
            "preset": preset, "recipe": recipe, "near": near, "similarity": similarity, "distance": distance,
            "min_words": min_words, "titles": titles, "title_similarity": title_similarity, "title_veto": title_veto,
            "keep_text": keep_text, "content": content, "fields": _field_names(fields), "on_duplicate": on_duplicate,
            "on_same_url": on_same_url, "ttl": ttl, "durability": durability, "read_only": read_only,
            "must_exist": must_exist, "threads": threads, "count": count, "memory": memory,
        }
        self._path = None if path is None else _without_password(os.fsdecode(path))
        self._engine = _doppel.Engine(path, options)

    # ---- one document ----

    def check(self, document: Document) -> Verdict:
        """Whether a document was seen; changes nothing.

        >>> Engine().check("a text that nobody has seen").isDuplicate
        False
        """
        return self._engine.check(document)

    def add(self, document: Document) -> Verdict:
        """Checks and adds, in one step; it is durable when this returns. Of copies that are added at the same time
        exactly one is new. An id that is there: with the same words it is the same document, and has its first verdict;
        with others it replaces the earlier version.

        >>> engine = Engine()
        >>> bool(engine.add("one and the same text, twice")), bool(engine.add("One and the same text, twice!"))
        (False, True)
        """
        return self._engine.add(document)

    def get(self, id: Id) -> Stored | None:
        """The document with this id or, if there is none, with this URL; None: it is not there.

        >>> engine = Engine()
        >>> _ = engine.add({"url": "https://example.com/a?utm_source=x", "title": "An example", "text": "Some words"})
        >>> engine.get("https://example.com/a").title
        'An example'
        """
        return self._engine.get(id)

    def remove(self, id: Id) -> bool:
        """Forgets a document; gives whether it was there.

        >>> Engine().remove("a")
        False
        """
        return self._engine.remove(id)

    def similar(
        self,
        id_or_document: int | Document,
        limit: int = 10,
        similarity: float = 0.85,
        distance: int | None = None,
    ) -> list[Stored]:
        """The documents most similar to one, the most similar first: to that with an id or a URL (a str or an int), or
        to a document (a mapping). Those with more than `similarity` are given or, with a `distance`, those whose
        fingerprints differ in at most that many bits. Raises InputError for an id that is not there.

        >>> engine = Engine()
        >>> words = "to be or not to be that is the question whether it is nobler in the mind to suffer"
        >>> _ = engine.add({"id": "hamlet", "text": words})
        >>> [(found.id, found.similarity) for found in engine.similar({"text": words.upper()})]
        [('hamlet', 1.0)]
        """
        return self._engine.similar(id_or_document, *_similar_options(limit, similarity, distance))

    # ---- many documents ----

    def check_batch(self, documents: Any, *, progress: Progress = None) -> list[Verdict] | Table:
        """check() for many documents, on several threads: a list of Verdict for a list (or any iterable) of documents,
        and a Table, with the evidence in columns of its own, for Arrow data.

        >>> engine = Engine()
        >>> _ = engine.add("the first of two texts")
        >>> [verdict.isDuplicate for verdict in engine.check_batch(["the first of two texts", "another one"])]
        [True, False]
        """
        return self._batch(self._engine.check_batch, documents, progress)

    def add_batch(self, documents: Any, *, progress: Progress = None) -> list[Verdict] | Table:
        """add() for many documents, sketched on several threads: verdicts are as if they had been added one after the
        other. A thousand at a time are committed together.

        Documents are a list (or any iterable), or Arrow data with columns named as the keys of a document. All are
        checked before any is added, so that one of a wrong type is refused with nothing done. What the index itself
        refuses, such as an id of over 64 KiB, leaves the others alone: they are added, and then the first one is
        reported by an InputError, whose `verdicts` are those on all documents (None: not added). After Ctrl-C, or when
        `progress` raises, the thousands before are added.

        progress: True shows a bar (tqdm) or lines; a callable is called as progress(done, total).

        >>> [bool(verdict) for verdict in Engine().add_batch(["a text", {"id": 7, "text": "A text."}, "no text"])]
        [False, True, False]
        """
        return self._batch(self._engine.add_batch, documents, progress)

    def get_batch(self, ids: Iterable[Id]) -> list[Stored | None]:
        """get() for many ids.

        >>> Engine().get_batch(["a", "b"])
        [None, None]
        """
        return [self._engine.get(id) for id in _ids(ids)]

    def remove_batch(self, ids: Iterable[Id]) -> list[bool]:
        """remove() for many ids.

        >>> engine = Engine()
        >>> _ = engine.add({"id": "a", "text": "to be forgotten"})
        >>> engine.remove_batch(["a", "b"])
        [True, False]
        """
        return [self._engine.remove(id) for id in _ids(ids)]

    def similar_batch(
        self,
        ids_or_documents: Iterable[int | Document],
        limit: int = 10,
        similarity: float = 0.85,
        distance: int | None = None,
    ) -> list[list[Stored]]:
        """similar() for many ids or documents.

        >>> Engine().similar_batch([{"text": "the only one"}])
        [[]]
        """
        options = _similar_options(limit, similarity, distance)
        return [self._engine.similar(asked, *options) for asked in _listed(ids_or_documents, "ids_or_documents")]

    def _batch(self, call: Any, documents: Any, progress: Progress) -> list[Verdict] | Table:
        if type(documents).__module__.partition(".")[0] in _inputs._makers:
            documents = _inputs.arrow(documents, "documents", [*_COLUMNS, *self.options["fields"]])
        try:
            made = call(documents, _inputs.reporter(progress))
        except _doppel.Error as error:
            if isinstance(getattr(error, "verdicts", None), dict):
                error.verdicts = Table(error.verdicts)  # type: ignore[attr-defined]
            raise
        return Table(made) if isinstance(made, dict) else made

    # ---- the index as a whole ----

    @property
    def options(self) -> dict[str, Any]:
        """The options in use, defaults filled in, by the names that Engine takes them by.

        >>> Engine(preset="crawl").options["ttl"]
        2592000
        """
        made = self._engine.options()
        made["fields"] = [name for name in made["fields"].split(",") if name]
        made["similarity" if made["near"] == "distance" else "distance"] = None
        del made["must_exist"]
        return made

    @property
    def path(self) -> str | None:
        """The folder, or the URL without its password; None: in memory.

        >>> Engine().path is None
        True
        """
        return self._path

    @property
    def closed(self) -> bool:
        """Whether close() was called.

        >>> with Engine() as engine:
        ...     pass
        >>> engine.closed
        True
        """
        return self._engine.closed

    def stats(self) -> dict[str, Any]:
        """What the index holds and costs, by the names of `doppel stats`. Times are seconds since 1970.

        >>> Engine().stats()["documents"]
        0
        """
        return self._engine.stats()

    def expire(self) -> int:
        """Removes expired documents; gives their number. Adding documents does this, too.

        >>> Engine().expire()
        0
        """
        return self._engine.expire()

    def compact(self) -> None:
        """Brings the index to its smallest form, without blocking other calls.

        >>> Engine().compact()
        """
        self._engine.compact()

    def backup(self, path: Path) -> None:
        """Writes a whole copy of a folder, as it is at this moment, to a new folder, without blocking other
        calls.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, Engine(folder + "/seen") as engine:
        ...     engine.backup(folder + "/copy")
        ...     Engine.verify(folder + "/copy")["findings"]
        []
        """
        self._engine.backup(os.fspath(path))

    @staticmethod
    def verify(path_or_url: Path) -> dict[str, Any]:
        """Checks every record of an index: a dict with the numbers of `documents`, `copies` and `removed` ones that are
        right, of those that are `damaged`, the `bytes`, and `findings`, a list of sentences, which is empty when all is
        well. Raises OSError when there is no index.

        >>> Engine.verify("/there/is/none")
        Traceback (most recent call last):
        OSError: /there/is/none: ...
        """
        return _doppel.engine_verify(os.fspath(path_or_url))

    def close(self) -> None:
        """Waits for the calls that are under way, and closes the index. More calls are refused; closing twice is fine.

        >>> Engine().close()
        """
        self._engine.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("an Engine cannot be pickled or copied: open the index again where it is needed")

    def __repr__(self) -> str:
        where = "in memory" if self._path is None else repr(self._path)
        return f"<doppel.Engine {where}{', closed' if self.closed else ''}>"


def _field_names(fields: Any) -> str | None:
    """The names of fields as the extension takes them, separated by commas."""
    if fields is None or isinstance(fields, str):
        return fields
    names = _listed(fields, "fields")
    for number, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"fields[{number}]: expected str, not {type(name).__name__}")
        if not name or "," in name:
            raise ValueError(f"fields[{number}]: expected a name without a comma, not {name!r}")
    return ",".join(names)


def _without_password(path: str) -> str:
    """A URL without the user and the password, which come before the first @ of its server part."""
    scheme, mark, rest = path.partition("://")
    server, slash, place = rest.partition("/")
    return scheme + mark + server.rpartition("@")[2] + slash + place if mark else path


def _listed(values: Any, argument: str) -> list[Any]:
    """The values of a list, an iterable or an Arrow column."""
    if isinstance(values, (str, bytes)) or hasattr(values, "keys"):
        raise TypeError(f"{argument}: expected a list, not {type(values).__name__}")
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    try:
        return list(values)
    except TypeError:
        if hasattr(values, "__iter__"):
            raise
        raise TypeError(f"{argument}: expected a list, not {type(values).__name__}") from None


def _ids(ids: Any) -> list[Id]:
    """A list of ids, all checked before any is used."""
    listed = _listed(ids, "ids")
    for number, id in enumerate(listed):
        if isinstance(id, bool) or not (isinstance(id, (str, bytes)) or hasattr(id, "__index__")):
            raise TypeError(f"ids[{number}]: expected str or int, not {type(id).__name__}")
    return listed


def _similar_options(limit: int, similarity: float, distance: int | None) -> tuple[int, float, int]:
    for name, value in (("limit", limit), ("distance", 0 if distance is None else distance)):
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name}: expected int, not {type(value).__name__}")
    if limit < 1:
        raise ValueError(f"limit: expected at least 1, not {limit}")
    if distance is not None and not 0 <= distance <= 128:
        raise ValueError(f"distance: expected a number of bits, 0 to 128, not {distance}")
    if isinstance(similarity, bool) or not hasattr(similarity, "__float__"):
        raise TypeError(f"similarity: expected a number, not {type(similarity).__name__}")
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity: expected a number above 0 and up to 1, not {similarity}")
    return limit, similarity, -1 if distance is None else distance

"""Options of the calls, checked on the driver: a dict that tasks get, and the columns that they need.

They have the names and defaults of the command's, but for `keep`: there is no order of files, so that "first" and "last"
need a column (`order`), and the default is "longest,id". Every list of rules ends with the id, which makes the order
total, whatever the order in which rows arrive.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ORDER = "__doppel_order"  # the column that `order` names, as tasks get it
DEFAULT_KEEP = "longest,id"
MAX_RECORD = 64 << 20

_CONTENT_OPTIONS = ("method similarity distance bands rows recipe bits min_words by link within across content "
                    "url_keep missing").split()
# Those that `doppel dedup` has beside them.
_OF_ONE_MACHINE = ("keep_copies", "only_contained", "count_by", "annotate_prefix", "format")


class Settings:
    """What a run was asked for.

    named: {option: column} of text, id, url, html.
    fields: {column: its name in tasks} of those that keep, within and across name. Tasks get columns by names of their own
        (text, id, url, html, f0, f1, ...): those of the DataFrame may be anything.
    given: the options of a batch (doppel._batch), with the names of the DataFrame's columns.
    options: the same with those that tasks use.
    shape: the options that shape sketches, as text; tables of sketches go together where this is the same.
    """

    def __init__(self, *, text: str = "text", id: str = "id", url: str | None = None, html: str | None = None,
                 keep: Any = DEFAULT_KEEP, order: str | None = None, boilerplate: float = 0, title: Any = None,
                 max_record: int = MAX_RECORD, task_memory: int = 0, **options: Any) -> None:
        from .. import _doppel
        from .._batch import _options
        from .._options import name_of

        _refuse_titles(options.get("by", "content"), title)
        if boilerplate:
            raise ValueError("boilerplate: what many documents share cannot be left out in Spark; "
                             "use `doppel dedup --boilerplate`, or cut it beforehand with `doppel trim`")
        _refuse_of_one_machine(options)
        unknown = [name for name in options if name not in _CONTENT_OPTIONS]
        if unknown:
            raise TypeError(f"unknown option {unknown[0]!r}")
        self.named = {option: name_of(option, name) for option, name in
                      {"text": text, "id": id, "url": url, "html": html}.items()}
        self.order = name_of("order", order)
        self.rules = _rules(keep, order)
        self.max_record = max_record
        self.given = {**{name: value for name, value in options.items() if value is not None},
                      "keep": ",".join(self.rules), "text": text, "id": id, "html": html or "html",
                      "url": url or "url", "memory": task_memory}
        checked = _options(**self.given, threads=1)
        self.shape = _doppel.Batch(checked, None).settings()  # raises what it refuses
        names = [rule.partition(":")[2] for rule in self.rules]
        scopes = {scope: checked[scope] for scope in ("within", "across") if checked[scope] not in (None, "host", "domain")}
        names = [name for name in dict.fromkeys([*names, *scopes.values()]) if name and name != ORDER]
        self.fields = {name: f"f{number}" for number, name in enumerate(names)}
        own = [f"{rule}:{self.fields.get(name, name)}" if name else rule
               for rule, _, name in (rule.partition(":") for rule in self.rules)]
        self.options = {**self.given, "keep": ",".join(own), **{option: option for option in self.named},
                        **{scope: self.fields[name] for scope, name in scopes.items()}}
        self.checked = _options(**self.options, threads=1)

    @property
    def method(self) -> str:
        return ("auto", "simhash", "minhash", "exact")[self.checked["method"]]

    @property
    def by_content(self) -> bool:
        return bool(self.checked["by"] & 1)

    @property
    def by_url(self) -> bool:
        return bool(self.checked["by"] & 2)

    @property
    def has_keys(self) -> bool:
        """Whether content makes candidates: bands of signatures, or fingerprints."""
        return self.by_content and self.method != "exact"

    @property
    def bits(self) -> int:
        from .. import Recipe

        recipe = self.checked["recipe"]
        return (Recipe(recipe) if isinstance(recipe, str) else recipe).bits

    def bands(self) -> tuple[int, int, float]:
        """Bands, rows, and the share of pairs at the threshold that they find."""
        from .. import _doppel

        return _doppel.bands_plan(self.checked["similarity"] or 0.8, self.checked["bands"], self.checked["rows"])

    def distance(self) -> int:
        return 0 if self.checked["distance_zero"] else self.checked["distance"] or 3

    def tasks(self) -> dict[str, Any]:
        """What tasks get."""
        return {"options": self.options, "max_record": self.max_record, "content": self.by_content,
                "has_keys": self.has_keys, "order": self.order, "named": self.named, "method": self.method}

    def needs_url(self) -> list[str]:
        """The options that need a URL column."""
        names = ["by"] if self.by_url else []
        names += [scope for scope in ("within", "across") if self.checked[scope] in ("host", "domain")]
        return names + (["keep"] if {"https", "shortest-url"} & {*self.rules} else [])


def _refuse_titles(by: Any, title: Any) -> None:
    from .._options import names_of

    if title is not None or "title" in names_of("by", by):
        raise ValueError("title: titles cannot be compared in Spark; use `doppel dedup --by title` on one machine")


def _refuse_of_one_machine(options: dict[str, Any]) -> None:
    for name in _OF_ONE_MACHINE:
        if name in options:
            raise ValueError(f"{name}: Spark does not have it; use `doppel dedup --{name.replace('_', '-')}` on one machine")


def _rules(keep: Any, order: str | None) -> list[str]:
    from .._options import names_of

    rules: list[str] = []
    for rule in names_of("keep", keep):
        if rule in ("first", "last"):
            if order is None:
                raise ValueError(f'keep="{rule}": rows of a DataFrame have no order: name the column that has it '
                                 f'(order="..."), or use another rule, such as the default, "{DEFAULT_KEEP}"')
            rules.append(f"{'smallest' if rule == 'first' else 'largest'}:{ORDER}")
            break  # it leaves nothing open but equal numbers
        rules.append(rule)
    return rules if "id" in rules else [*rules, "id"]

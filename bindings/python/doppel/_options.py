"""Options of the calls on many documents (_batch.py, _trim.py), checked, as the extension takes them: a dict.

They have the names and defaults of the command's. Messages name the option and say what is allowed.
"""

from __future__ import annotations

import os

from ._inputs import reporter
from ._sketches import changed_recipe, checked_threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CONTENT, URL, TITLE = 1, 2, 4  # what makes copies: bits of "by"
_CONTENTS = ("main", "all")
_PARTS = ("host", "domain")  # of within and across: parts of the URL
_URL_KEEPS = ("https", "shortest-url")
_MOST = {"distance": 1 << 31, "bands": 1 << 31, "rows": 1 << 31}  # the extension takes 32 bits of them, 64 of others


# ---- values ----


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> int:
    if value not in allowed:
        raise ValueError(f"{name}: expected one of {', '.join(allowed)}, not {value!r}")
    return allowed.index(value)


def names_of(name: str, value: Any) -> list[str]:
    """A list of names, or one text with commas."""
    if isinstance(value, str):
        return value.split(",")
    try:
        names = list(value)
    except TypeError:
        raise TypeError(f"{name}: expected str or a list of str, not {type(value).__name__}") from None
    for each in names:
        if not isinstance(each, str):
            raise TypeError(f"{name}: expected str or a list of str, not {each!r} in it")
    return names


def bits_of(name: str, value: Any, allowed: dict[str, int]) -> int:
    """Names as bits."""
    names = names_of(name, value)
    wrong = [each for each in names if each not in allowed]
    if wrong or not names:
        raise ValueError(f"{name}: expected some of {', '.join(allowed)}, not {(wrong or [value])[0]!r}")
    return sum({allowed[each] for each in names})


def share_of(name: str, value: Any, zero: bool = False) -> float:
    """A share, also of numpy; with `zero` there may be none."""
    try:
        share = -1.0 if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        share = -1.0
    if not (0 < share <= 1 or zero and share == 0):
        raise ValueError(f"{name}: expected a share above 0 and up to 1, not {value!r}")
    return share


def count_of(name: str, value: Any) -> int:
    """A whole number, also of numpy."""
    from operator import index

    try:
        count = index(value) if not isinstance(value, bool) else -1
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(f"{name}: expected a whole number, not {value!r}")
    if count >= _MOST.get(name, 1 << 64):
        raise ValueError(f"{name}: {value!r} is too large")
    return count


def name_of(name: str, value: Any) -> str | None:
    """A name, e.g. of a column."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, not {type(value).__name__}")
    if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
        raise ValueError(f"{name}: {value!r} is no name")
    return value


def key_of(name: str, value: Any) -> str | None:
    """The name of a column, a path to one (meta.text), or several: a list of them, or one text with commas."""
    if value is None or isinstance(value, str):
        return name_of(name, value)
    return name_of(name, ",".join(names_of(name, value)))


def path_of(name: str, value: Any) -> str:
    try:
        path = os.fsdecode(value)
    except TypeError:
        raise TypeError(f"{name}: expected a path, not {type(value).__name__}") from None
    if not path or "\0" in path:
        raise ValueError(f"{name}: {path!r} is no path")
    return path


def paths_of(name: str, given: Any) -> list[str]:
    """One path, or several."""
    if isinstance(given, (str, bytes, os.PathLike)):
        return [path_of(name, given)]
    try:
        paths = [path_of(name, path) for path in given]
    except TypeError as error:
        raise error if str(error).startswith(name) else TypeError(
            f"{name}: expected a path or a list of paths, not {type(given).__name__}") from None
    if not paths:
        raise ValueError(f"{name}: there are none")
    return paths


# ---- what all calls share ----


def shared_options(*, recipe="page", bits=None, min_words=5, keep="first", within=None, across=None, content="main",
                   tmp=None, memory=0, threads=0, missing="error", progress=None, text="text", id="id", url="url",
                   title="title", html="html", max_record=0, allow_bad=False, counted="docs",
                   scopes=()) -> dict[str, Any]:
    """Those on documents and how they are read; progress counts `counted`. `scopes` are values of within and across that
    are no columns, beside host and domain."""
    keep = name_of("keep", ",".join(names_of("keep", keep)))
    return {
        "recipe": changed_recipe(recipe, bits),
        "min_words": count_of("min_words", min_words) or 1,
        "keep": None if keep == "first" else keep,
        "within": name_of("within", within),
        "across": name_of("across", across),
        "content": one_of("content", content, _CONTENTS),
        "tmp": None if tmp is None else path_of("tmp", tmp),
        "memory": count_of("memory", memory),
        "threads": checked_threads(threads),
        "skip_missing": bool(one_of("missing", missing, ("error", "skip"))),
        "progress": reporter(progress, counted),
        "text_key": key_of("text", text), "url_key": key_of("url", url), "title_key": key_of("title", title),
        "html_key": key_of("html", html), "id_key": key_of("id", id),
        "max_record": count_of("max_record", max_record),
        "allow_bad": allow_bad,
        "scopes": scopes,
    }


def _rules(options: dict[str, Any]) -> list[tuple[str, str]]:
    """The rules of keep, each with the column that it names, if any."""
    return [(rule.partition(":")[0], rule.partition(":")[2]) for rule in (options["keep"] or "").split(",")]


def _scope(options: dict[str, Any], name: str) -> str | None:
    """The column that within or across needs."""
    value = options[name]
    return None if value in options["scopes"] else (options["url_key"] or "url") if value in _PARTS else value


def wanted_columns(options: dict[str, Any]) -> list[str]:
    """The columns that a call may need: those of a document, and those that keep, within and across name."""
    names = [options[key] for key in ("text_key", "html_key", "id_key", "url_key", "title_key")]
    names += [column for _, column in _rules(options)] + [_scope(options, "within"), _scope(options, "across")]
    return [name for name in dict.fromkeys(names) if name]


OPTIONAL, REQUIRED, OR_PAGES = range(3)  # of a column: whether it must be there, if there is none with pages


def needed_columns(options: dict[str, Any], known: bool) -> list[tuple[str, str, int]]:
    """The columns that options name: the option, the column, and whether it must be there. What has the usual name need
    not be; pages have titles and addresses themselves; and what decides which document is kept, known documents need
    not have."""
    needed = [("id", options["id_key"], OPTIONAL if options["id_key"] == "id" else REQUIRED)]
    needed += [(name, options[name + "_key"], REQUIRED) for name in ("url", "title", "html")
               if options[name + "_key"] != name]
    needed += [(name, _scope(options, name), REQUIRED) for name in ("within", "across")]
    needed += [("by", options[name + "_key"] or name, OR_PAGES) for name, bit in (("url", URL), ("title", TITLE))
               if options.get("by", CONTENT) & bit]
    url = options["url_key"] or "url"
    if not known:
        needed += [("keep", url if rule in _URL_KEEPS else column, REQUIRED) for rule, column in _rules(options)]
    return [each for each in needed if each[1]]

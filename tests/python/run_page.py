"""Runs the Python examples of Markdown pages, those of a page one after the other in one namespace.

    run_page.py PAGE.md...

A ```python block is run; a ```pycon block is a session, which must print what stands there. An example that imports a
package that is not installed is left out, and named, and so is what follows it on the page if it is a session. The first
that fails ends the run; line numbers are those of the page.
"""
import doctest
import importlib.util
import sys
from pathlib import Path

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def examples(page):
    """(kind, first line, code) of each block."""
    kind, start, lines = "", 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line in ("```python", "```pycon"):
            kind, start, lines = line[3:], number, []
        elif line.startswith("```") and kind:
            yield kind, start, "\n" * start + "\n".join(lines) + "\n"
            kind = ""
        elif kind:
            lines.append(line)


def missing(test):
    """The packages that a session imports and that are not installed."""
    lines = [line for example in test.examples for line in example.source.splitlines()]
    names = [name.split()[0].split(".")[0] for line in lines if line.startswith("import ") for name in line[7:].split(",")]
    return [name for name in names if importlib.util.find_spec(name) is None]


def run_session(page, line, code, names):
    """Whether it could be run."""
    test = doctest.DocTestParser().get_doctest(code, names, str(page), str(page), 0)
    if missing(test):
        raise ModuleNotFoundError(name=missing(test)[0])
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    if runner.run(test, clear_globs=False).failed:
        sys.exit(f"{page}:{line}: this session prints something else")
    names.update(test.globs)


def run(page):
    names, count = {"__name__": "__main__"}, 0
    for kind, line, code in examples(page):
        try:
            if kind == "python":
                exec(compile(code, str(page), "exec"), names)
            else:
                run_session(page, line, code, names)
            count += 1
        except ModuleNotFoundError as error:
            if error.name == "doppel" or error.name.startswith("doppel."):
                raise
            print(f"{page}:{line}: left out, {error.name} is not installed")
            if kind == "pycon":
                break
    print(f"{page}: {count} examples ran")
    return names


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run(Path(argument))

"""Runs the Python examples of Markdown pages, those of a page one after the other in one namespace.

    run_page.py PAGE.md...

An example that imports a package that is not installed is left out, and named. The first that fails ends the run, with
its traceback; line numbers are those of the page.
"""
import sys
from pathlib import Path


def examples(page):
    """(first line, code) of each ```python block."""
    start, lines = 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line == "```python":
            start, lines = number, []
        elif line.startswith("```") and start:
            yield start, "\n" * start + "\n".join(lines) + "\n"
            start = 0
        elif start:
            lines.append(line)


def run(page):
    names, count = {"__name__": "__main__"}, 0
    for line, code in examples(page):
        try:
            exec(compile(code, str(page), "exec"), names)
            count += 1
        except ModuleNotFoundError as error:
            if error.name == "doppel" or error.name.startswith("doppel."):
                raise
            print(f"{page}:{line}: left out, {error.name} is not installed")
    print(f"{page}: {count} examples ran")
    return names


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run(Path(argument))

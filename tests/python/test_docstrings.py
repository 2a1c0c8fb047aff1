"""The examples in the docstrings print what is written there, and every public name has a docstring with an example."""
import doctest
import importlib.util
import inspect
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import doppel

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = ["doppel", *(f"doppel.{module.name}" for module in pkgutil.iter_modules(doppel.__path__)
                       if module.name != "spark")]  # needs pyspark: tests/spark
PUBLIC = [name for name in doppel.__all__ if callable(getattr(doppel, name))]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    """In a folder of its own; an example that needs a package which is not there is left out."""
    monkeypatch.chdir(tmp_path)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in doctest.DocTestFinder().find(module, extraglobs={"doppel": doppel}):
        if not missing_packages(test):
            runner.run(test)
    assert runner.summarize(verbose=False).failed == 0


def missing_packages(test):
    """The packages that an example imports and that are not installed."""
    names = [line.split()[1].split(".")[0] for example in test.examples for line in example.source.splitlines()
             if line.startswith(("import ", "from "))]
    return [name for name in names if importlib.util.find_spec(name) is None]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented(name):
    thing = getattr(doppel, name)
    assert inspect.getdoc(thing), f"doppel.{name} has no docstring"
    if inspect.isfunction(thing):
        assert ">>>" in thing.__doc__, f"the docstring of doppel.{name} has no example"


def test_the_reference_is_made_of_these_docstrings():
    root = pathlib.Path(__file__).resolve().parents[2]
    made = subprocess.run([sys.executable, root / "scripts" / "python-reference"], capture_output=True, text=True, check=True)
    assert made.stdout == (root / "docs" / "PYTHON_API.md").read_text(encoding="utf-8"), (
        "docs/PYTHON_API.md is out of date: scripts/python-reference > docs/PYTHON_API.md")

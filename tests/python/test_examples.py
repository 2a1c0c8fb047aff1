"""The examples, the notebook and the examples of pages run, where the packages they show are installed."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDED = {
    "quickstart": (),
    "training_corpus": ("pyarrow",),
    "huggingface_datasets": ("datasets",),
    "polars_expression": ("polars",),
    "duckdb_function": ("duckdb", "pyarrow"),
    "datatrove_step": ("datatrove", "orjson"),
    "ray_dedup": ("ray", "pyarrow"),
}


def run(*command):
    done = subprocess.run([sys.executable, *map(str, command)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(*packages):
    for package in packages:
        if not importlib.util.find_spec(package):
            pytest.skip(f"{package} is not installed")


def test_every_example_is_known():
    assert {path.stem for path in (ROOT / "examples" / "python").glob("*.py")} == set(NEEDED)


@pytest.mark.parametrize("name", NEEDED)
def test_example(name):
    need(*NEEDED[name])
    run(ROOT / "examples" / "python" / f"{name}.py")


def test_notebook_gives_the_outputs_that_are_kept():
    need("nbclient", "nbformat", "ipykernel", "matplotlib", "pyarrow")
    run(ROOT / "tests" / "python" / "run_notebook.py", ROOT / "docs" / "python" / "quickstart.ipynb")


@pytest.mark.parametrize("page", ["README.md", "docs/PYTHON.md", "docs/MIGRATE.md"])
def test_page(page):
    assert "examples ran" in run(ROOT / "tests" / "python" / "run_page.py", ROOT / page)

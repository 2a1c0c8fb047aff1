"""Runs every cell of a notebook and compares what it prints with the outputs that are kept in it.

    run_notebook.py [--update] NOTEBOOK.ipynb...

A cell that raises, or that prints another text, ends the run with exit code 1. Pictures are not compared. --update
writes the new outputs into the notebook instead. Needs nbclient, nbformat and ipykernel.
"""
import argparse
import difflib
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

SECONDS = 300  # that a cell may take


def text_of(cell):
    """All that a cell printed or gave, as text."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            parts.append(output.text)
        elif "image/png" not in output.get("data", {}) and "image/svg+xml" not in output.get("data", {}):
            parts.append(output.get("data", {}).get("text/plain", "") + "\n")
    return "".join(parts)


def execute(path):
    """The notebook with fresh outputs, without what differs from run to run."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
                            resources={"metadata": {"path": str(path.parent)}})
    client.execute()
    notebook.metadata.pop("widgets", None)
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


def differences(path, new):
    old = nbformat.read(path, as_version=4)
    for number, (before, after) in enumerate(zip(old.cells, new.cells), 1):
        if before.cell_type == "code" and text_of(before) != text_of(after):
            yield f"{path}: cell {number} gives another output:"
            yield from difflib.unified_diff(text_of(before).splitlines(), text_of(after).splitlines(), "kept", "now",
                                            lineterm="", n=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the outputs into the notebook")
    parser.add_argument("notebooks", nargs="+", type=Path)
    given = parser.parse_args()
    wrong = []
    for path in given.notebooks:
        try:
            new = execute(path)
        except CellExecutionError as error:
            wrong.append(f"{path}: a cell failed:\n{error}")
            continue
        if given.update:
            nbformat.write(new, path)
        else:
            wrong += differences(path, new)
    if wrong:
        sys.exit("\n".join(wrong))
    print("all cells ran" if given.update else "all cells ran, with the outputs that are kept")


if __name__ == "__main__":
    main()

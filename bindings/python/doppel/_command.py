"""The command `doppel`, as the package installs it: the C command's own main, which reads and writes Parquet here."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Runs the command with the arguments of this process, and gives its exit code."""
    from . import _doppel
    from ._parquet import Parquet

    arguments = [b"doppel", *map(os.fsencode, sys.argv[1:])]
    return _doppel.command(arguments, Parquet())


if __name__ == "__main__":
    sys.exit(main())

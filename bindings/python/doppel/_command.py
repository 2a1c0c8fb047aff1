"""The command `doppel`, as the package installs it: the C command's own main, which reads and writes Parquet here."""

from __future__ import annotations

import os
import sys

_INTERRUPTED = 5  # the command's exit code


def _show(message: object, *_: object) -> None:
    """A warning, as the command says it."""
    print(f"doppel: warning: {message}", file=sys.stderr)


def main() -> int:
    """Runs the command with the arguments of this process, and gives its exit code."""
    try:
        import warnings

        from . import _doppel
        from ._parquet import Parquet

        warnings.showwarning = _show
        arguments = [b"doppel", *map(os.fsencode, sys.argv[1:])]
        return _doppel.command(arguments, Parquet(allow_bad=b"--allow-bad" in arguments))
    except KeyboardInterrupt:  # before the command looks after it, or after
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())

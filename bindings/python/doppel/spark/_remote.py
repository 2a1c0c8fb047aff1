"""Functions that executors run, and errors that come back from them.

remote() makes the function that mapInArrow takes. It is sent by value, so that an executor without this package can say
so itself, with the name of its host, instead of failing while it unpickles. What a task refuses (Refused) is marked in its
message; refusals() finds the mark in what Spark raises on the driver and raises the message as a ValueError.
"""

from __future__ import annotations

import contextlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_MARK, _END = "[doppel] ", " [/doppel]"

# What to do with a DataFrame that gives other rows when it is read again.
WRITE_IT = "write it, or persist() it, and give that"


class Refused(Exception):
    """Input or options that a task cannot work with. The message is for the user."""

    def __str__(self) -> str:
        return f"{_MARK}{self.args[0]}{_END}"


def remote(task: str, settings: dict[str, Any]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """The function of a task: `task` names a function of _tasks.py, which gets the settings and the Arrow batches."""
    from .. import __version__ as version

    def run(batches):  # its names are all local: it is pickled without its module
        import socket
        import sys

        host = socket.gethostname()
        advice = "install the same libdoppel on every executor (docs/SPARK.md: by image, by --archives, or by pip)"
        try:
            import doppel
            from doppel.spark import _tasks
        except ImportError as error:
            raise RuntimeError(f"[doppel] host {host}: {sys.executable} cannot import doppel ({error}): "
                               f"{advice} [/doppel]") from error
        if doppel.__version__ != version:
            raise RuntimeError(f"[doppel] host {host}: libdoppel {doppel.__version__}, but the driver has {version}: "
                               f"{advice} [/doppel]")
        return getattr(_tasks, task)(settings, batches)

    return run


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """Raises what a task has refused as a ValueError with the task's own message."""
    try:
        yield
    except Exception as error:
        said = str(error)
        end = said.rfind(_END)
        start = said.rfind(_MARK, 0, max(end, 0))  # the last: lines of source in a traceback may have the mark, too
        if start < 0:
            raise
        raise ValueError(said[start + len(_MARK):end]) from None

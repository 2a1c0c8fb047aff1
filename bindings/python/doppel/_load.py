"""Loads the extension module before all else.

The wheel has nearly every library inside that the module needs. By the rules of manylinux wheels it takes libz, libstdc++
and libgcc_s from the machine; where one is not there, as in images with little more than Python, the wheel's copy stands in.
The machine's own come first: other packages in the same process may need them newer than the copies are.
"""

import os


def _load_base() -> None:
    import ctypes

    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "libdoppel.libs", "base")
    for name in ("libz.so.1", "libgcc_s.so.1", "libstdc++.so.6"):
        try:
            ctypes.CDLL(name)
        except OSError:
            ctypes.CDLL(os.path.join(folder, name))


try:
    from . import _doppel  # noqa: F401
except ImportError as error:
    if "cannot open shared object file" not in str(error):
        raise
    _load_base()
    from . import _doppel  # noqa: F401

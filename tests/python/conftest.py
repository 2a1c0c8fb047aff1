"""What all tests of the Python binding share: their size, by DOPPEL_SUITE as everywhere, and the settings of hypothesis.

    PYTHONPATH=build/python build/python-venv/bin/python -m pytest tests/python

runs them on the module of the build folder (`scripts/build release doppel_python -DDOPPEL_PYTHON=bindings/python`).
"""
import gc
import os

import pytest

FULL = os.environ.get("DOPPEL_SUITE") == "full"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", os.path.join(ROOT, "build", "hypothesis"))

try:
    import hypothesis
except ImportError:
    pass  # the tests that need it say so themselves
else:
    # The same examples in every run of `make test`, fewer with the sanitizers; others each time at full size.
    count = 500 if FULL else 5 if "libasan" in os.environ.get("LD_PRELOAD", "") else 25
    hypothesis.settings.register_profile("doppel", deadline=None, database=None, derandomize=not FULL, max_examples=count)
    hypothesis.settings.load_profile("doppel")


@pytest.fixture(autouse=True)
def no_callbacks_of_the_garbage_collector():
    """hypothesis has one, and a KeyboardInterrupt that falls into it is lost: Ctrl-C would end no call then."""
    callbacks, gc.callbacks[:] = gc.callbacks[:], []
    yield
    gc.callbacks[:] = callbacks


@pytest.fixture(scope="session")
def full():
    """Whether the tests run at full size (`make test-full`)."""
    return FULL

"""The example for Ray runs, where Ray is installed."""
import importlib.util
import os
import subprocess
import sys

import pytest
from conftest import FULL, ROOT


@pytest.mark.skipif(not FULL or not importlib.util.find_spec("ray"), reason="at full size, with Ray")
def test_example():
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "python", "ray_dedup.py")], capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].endswith("3 kept")

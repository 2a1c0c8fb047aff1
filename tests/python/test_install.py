"""pip in a fresh virtual environment, on the source folder or, at reduced size, on the wheel that was built from the sdist:
the examples of the README run, and the command is there. DOPPEL_WHEEL is the folder of that wheel."""
import glob
import os
import subprocess
import venv

import pytest

from conftest import FULL

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

pytestmark = pytest.mark.skipif("DOPPEL_WHEEL" not in os.environ, reason="there is no wheel; `make test` makes one")


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of the programs of a new environment."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    source = f"{ROOT}/bindings/python" if FULL else glob.glob(f"{os.environ['DOPPEL_WHEEL']}/*.whl")[0]
    run(f"{folder}/bin/pip", "install", "--disable-pip-version-check", source)
    return f"{folder}/bin"


@pytest.mark.parametrize("page", ["README.md", "bindings/python/README.md"])
def test_examples_of_the_readme_run(programs, page, tmp_path):
    run(f"{programs}/python", f"{HERE}/run_page.py", f"{ROOT}/{page}", cwd=tmp_path)


def test_a_little_of_everything_runs(programs):
    assert "all is well" in run(f"{programs}/python", f"{HERE}/smoke.py", f"{programs}/doppel")


def test_nothing_is_left_beside_the_sources(programs):
    assert not [name for name in os.listdir(f"{ROOT}/bindings/python") if name in ("build", "dist", "_skbuild")]

"""The wheel and the sdist that scripts/wheel made: what is in them, the versions of Python they run on, and a root folder
that has nothing but Python. DOPPEL_WHEEL names their folder; without it these tests are skipped."""
import glob
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest

FOLDER = os.environ.get("DOPPEL_WHEEL")
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
C_LIBRARY = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libresolv.so.2")
BASE = {"libgcc_s.so.1", "libstdc++.so.6", "libz.so.1"}  # of scripts/wheel

pytestmark = pytest.mark.skipif(not FOLDER, reason="DOPPEL_WHEEL does not name a folder with the wheel")


@pytest.fixture(scope="module")
def wheel():
    (path,) = glob.glob(f"{FOLDER}/libdoppel-*.whl")
    return path


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture(scope="module")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def needed_by(path):
    """The paths of the libraries a program or library needs, the loader among them, as this machine has them."""
    done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return set(re.findall(r"(/\S+) \(0x", done.stdout))


def bundled_libraries(names):
    """The names of the wheel's libraries, as their Debian packages call them."""
    files = [os.path.basename(name) for name in names if ".libs/" in name and ".so" in name]
    return {re.sub(r"-[0-9a-f]{8}(?=\.so)", "", name) for name in files}


# ---- what is in them


def test_wheel_is_for_all_versions_and_linux(wheel):
    assert re.fullmatch(r"libdoppel-[\d.]+-cp310-abi3-manylinux_2_\d+_\w+\.whl", os.path.basename(wheel))


def test_wheel_is_typed(names):
    assert {"doppel/__init__.py", "doppel/py.typed", "doppel/_doppel.pyi"} <= set(names)


def test_wheel_has_only_the_package(names):
    assert {name.split("/")[0] for name in names} == {"doppel", "libdoppel.libs"} | {
        name.split("/")[0] for name in names if ".dist-info/" in name}
    assert not [name for name in names if name.endswith((".c", ".h", ".a", ".pyc"))]


def test_module_exports_its_entry_alone(unpacked):
    (module,) = glob.glob(f"{unpacked}/doppel/_doppel*.so")
    symbols = output_of("nm", "-D", "--defined-only", module).split("\n")
    assert [line.split()[-1] for line in symbols if line] == ["PyInit__doppel"]


def test_debug_information_is_left_out(unpacked):
    for path in glob.glob(f"{unpacked}/**/*.so*", recursive=True):
        assert ".debug_info" not in output_of("readelf", "-SW", path), path


def test_licences_travel(names):
    """One for doppel, one for the package of each library, and the common ones these refer to."""
    licences = {os.path.basename(name) for name in names if ".dist-info/licenses/" in name}
    assert "LICENSE" in licences
    for package in ("libxml2", "liblmdb0", "libgnutls30", "libstdc++6", "LGPL-3", "GPL-3", "Apache-2.0"):
        assert f"{package}.txt" in licences
    assert BASE <= bundled_libraries(names) and len(bundled_libraries(names)) > 20


def test_sdist_has_the_c_sources_and_no_links():
    (path,) = glob.glob(f"{FOLDER}/libdoppel-*.tar.gz")
    with tarfile.open(path) as archive:
        members = {member.name.partition("/")[2]: member for member in archive.getmembers()}
    for name in ("PKG-INFO", "LICENSE", "README.md", "libdoppel/include/doppel.h", "libdoppel/CMakeLists.txt",
                 "libdoppel/lib/engine/engine.c", "libdoppel/programs/doppel/commands.c", "src/module.c"):
        assert members[name].isfile(), name
    assert not [name for name, member in members.items() if not member.isfile() or "__pycache__" in name]


# ---- other versions of Python


def pythons():
    """Other Pythons of this machine that the wheel is for: {version: path}."""
    places = [shutil.which(f"python3.{minor}") for minor in range(10, 30)]
    places += glob.glob(os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions/3.*/bin/python3"))
    about = "import sys, sysconfig; print(*sys.version_info[:2], bool(sysconfig.get_config_var('Py_GIL_DISABLED')))"
    found = {}
    for path in filter(None, places):
        done = subprocess.run([path, "-c", about], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            major, minor, free_threaded = done.stdout.split()
            if (int(major), int(minor)) >= (3, 10) and free_threaded == "False":
                found.setdefault(f"{major}.{minor}", path)
    return found


def test_other_versions_of_python(unpacked):
    found = pythons()
    if not found:
        pytest.skip("there is no other Python")
    for version, python in found.items():
        command = [python, "-c", "from doppel._command import main; main()"]
        settings = dict(os.environ, PYTHONPATH=str(unpacked))
        done = subprocess.run([python, f"{HERE}/smoke.py", *command], env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"Python {version}: {done.stderr}"


def test_free_threaded_python_builds_from_the_sdist(tmp_path):
    """Without the limited API, which it does not have; and without switching the GIL on."""
    python = next(filter(None, (shutil.which(f"python3.{minor}t") for minor in range(13, 30))), None)
    if not python:
        pytest.skip("there is no free-threaded Python")
    (source,) = glob.glob(f"{FOLDER}/libdoppel-*.tar.gz")
    output_of(python, "-m", "venv", tmp_path)
    output_of(f"{tmp_path}/bin/pip", "install", "--quiet", "--disable-pip-version-check", "-Ccmake.build-type=Debug", source)
    assert "all is well" in output_of(f"{tmp_path}/bin/python", f"{HERE}/smoke.py", f"{tmp_path}/bin/doppel")
    about = "import doppel._doppel, sys; print(doppel._doppel.__file__, sys._is_gil_enabled())"
    assert re.search(r"cpython-3\d+t-.*\.so False$", output_of(f"{tmp_path}/bin/python", "-c", about).strip())


# ---- a root folder with nothing but Python


def soname(name):
    """Up to the first number of its version."""
    return re.sub(r"(\.so\.\d+).*", r"\1", name)


class Root:
    """A folder with the C library, this Python, its standard library and what these need, at the same paths as here.
    Modules of the standard library that need a library which the wheel brings, too, are left out, but for ctypes."""

    def __init__(self, folder, names):
        self.folder = str(folder)
        self.python = os.path.realpath(sys.executable)
        modules = sysconfig.get_config_var("DESTSHARED")
        kept = needed_by(self.python) | self.needed_by_module(modules, "_ctypes")
        self.allowed = {os.path.basename(path) for path in kept}
        forbidden = {soname(name) for name in bundled_libraries(names)} - self.allowed
        self.copy_tree(sysconfig.get_path("stdlib"))
        self.copy_tree(modules)
        for path in glob.glob(f"{self.folder}{modules}/*.so"):
            needed = needed_by(path)
            if forbidden & {soname(os.path.basename(name)) for name in needed}:
                os.remove(path)
            else:
                kept |= needed
        (c_library,) = (path for path in kept if os.path.basename(path) == C_LIBRARY[0])
        for path in {self.python, *kept, *(os.path.join(os.path.dirname(c_library), name) for name in C_LIBRARY)}:
            self.copy(path)
        os.makedirs(f"{self.folder}/tmp")

    def needed_by_module(self, modules, name):
        return set().union(*(needed_by(path) for path in glob.glob(f"{modules}/{name}.*")))

    def copy(self, path):
        os.makedirs(os.path.dirname(self.folder + path), exist_ok=True)
        shutil.copy(path, self.folder + path)

    def copy_tree(self, path):
        ignored = shutil.ignore_patterns("site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib", "tkinter",
                                         "ensurepip", "config-*", "lib-dynload" if not path.endswith("lib-dynload") else "")
        shutil.copytree(path, self.folder + path, ignore=ignored, dirs_exist_ok=True)

    def libraries(self):
        """The names of all shared libraries in it, as their sonames begin."""
        found = glob.glob(f"{self.folder}/**/*.so*", recursive=True)
        return {os.path.basename(path) for path in found if "/site-packages/" not in path and "/lib-dynload/" not in path}

    def run(self, *command):
        """As root by chroot itself, otherwise in a user namespace, where the system allows one."""
        how = ["chroot"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "chroot"]
        settings = {"PATH": os.environ["PATH"], "PYTHONPATH": "/packages"}
        done = subprocess.run([*how, self.folder, *command], env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(how)}: {done.stdout}{done.stderr}"
        return done.stdout


def test_runs_in_a_root_folder_with_nothing_but_python(wheel, names, tmp_path):
    root = Root(tmp_path, names)
    bundled = {soname(name) for name in bundled_libraries(names)}
    there = {soname(name) for name in root.libraries()}
    assert not bundled & there - root.allowed, "the folder is to have none of the wheel's libraries"
    assert {"libxml2.so.2", "liblmdb.so.0", "libcrypto.so.3", "libstdc++.so.6"} <= bundled - there
    output_of(sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-compile",
              f"--target={root.folder}/packages", wheel)
    shutil.copy(f"{HERE}/smoke.py", f"{root.folder}/smoke.py")
    command = [root.python, "/packages/bin/doppel"]
    assert "all is well" in root.run(root.python, "/smoke.py", *command)
    assert "doppel" in root.run(*command, "--version")

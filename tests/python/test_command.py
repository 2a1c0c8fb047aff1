"""The doppel command of the module: on Parquet it does what the C command does on JSONL; exit codes, messages, signals.

DOPPEL_COMMAND names the C command, whose answers are compared.
"""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

import doppel
from documents import (COMMAND, PLAIN, as_options, make_documents, many_texts, needs_command, read_jsonl,
                       run_python, write_jsonl)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FOX = "the quick brown fox jumps over the lazy dog and then sleeps in the sun"
TEXTS = [FOX, "nothing of this was ever said before by anyone here", FOX.upper()]
TABLE = pa.table({"id": ["a", "b", "c"], "text": TEXTS, "score": [1.5, 2.5, 3.5]})
DOCUMENTS = make_documents(120)
MODULE = [sys.executable, "-m", "doppel._command"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "a.parquet")
    return tmp_path


# Imports everything once, then runs the command in a child of its own for each line that it reads.
FORKS = """
import json, os, sys
import pyarrow.dataset, pyarrow.fs, pyarrow.parquet
from doppel import _command
for line in sys.stdin:
    folder, arguments = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(os.path.join(sys.argv[1], name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.argv = ["doppel", *arguments]
        code = _command.main()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def forks(tmp_path_factory):
    place = tmp_path_factory.mktemp("forks")
    process = subprocess.Popen([sys.executable, "-c", FORKS, place], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)

    def call(arguments):
        process.stdin.write(json.dumps([os.getcwd(), arguments]) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        printed, told = ((place / name).read_text() for name in ("stdout", "stderr"))
        return subprocess.CompletedProcess(arguments, code, printed, told)
    run.forks = call
    yield
    process.stdin.close()
    process.wait()
    process.stdout.close()


def run(*arguments, command=None, code=0, **options):
    """The command of the module; gives what it prints."""
    arguments = [*map(str, arguments), *as_options(options)]
    done = run.forks(arguments) if command is None else subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, env=PLAIN if command == [COMMAND] else None)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    return done


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def ids(path):
    return pq.read_table(path)["id"].to_pylist()


def both(name, *arguments, **options):
    """What the module's command prints of Parquet, and the C command of JSONL."""
    pq.write_table(pa.Table.from_pylist(DOCUMENTS), "documents.parquet", row_group_size=50)
    write_jsonl("documents.jsonl", DOCUMENTS)
    found = run(name, "documents.parquet", *arguments, **options)
    expected = run(name, "documents.jsonl", *arguments, command=[COMMAND], **options)
    return found.stdout, expected.stdout


# ---- the same answers ----


@needs_command
@pytest.mark.parametrize("name, options", [
    ("pairs", {}), ("pairs", {"method": "simhash", "by": "url,content"}), ("cluster", {"keep": "newest:date"}),
    ("fingerprint", {}), ("overlap", {"words": 8}), ("mirrors", {})], ids=str)
def test_parquet_gives_what_jsonl_gives(name, options):
    found, expected = both(name, **options)
    assert found == expected and (found or name == "mirrors")


@needs_command
@pytest.mark.parametrize("options", [{}, {"by": "url,title", "keep": "longest"}, {"within": "lang"}], ids=str)
def test_dedup_writes_parquet(options):
    pq.write_table(pa.Table.from_pylist(DOCUMENTS), "documents.parquet", row_group_size=50)
    write_jsonl("documents.jsonl", DOCUMENTS)
    told = run("dedup", "documents.parquet", "-o", "unique.parquet", "--removed", "removed.jsonl", "--json", **options)
    expected = run("dedup", "documents.jsonl", "-o", "unique.jsonl", "--removed", "expected.jsonl", "--json",
                   command=[COMMAND], **options)
    assert pq.read_table("unique.parquet").to_pylist() == read_jsonl("unique.jsonl")
    assert read_jsonl("removed.jsonl") == read_jsonl("expected.jsonl")
    summaries = [json.loads(each.stdout) for each in (told, expected)]
    assert {**summaries[0], "bytes": 0, "spilledBytes": 0} == {**summaries[1], "bytes": 0, "spilledBytes": 0}
    assert told.stderr == expected.stderr
    run("dedup", "documents.parquet", "-o", "kept.jsonl", **options)
    assert [row["id"] for row in read_jsonl("kept.jsonl")] == ids("unique.parquet")
    summary = doppel.dedup_files("documents.parquet", "api.parquet", **options)
    assert pq.read_table("api.parquet").equals(pq.read_table("unique.parquet"))
    assert summary["kept"] == summaries[0]["kept"]


def test_folders_annotations_and_dry_runs():
    os.makedirs("corpus/sub")
    for path in ("corpus/a.parquet", "corpus/sub/b.parquet"):
        pq.write_table(TABLE, path)
    with open("corpus/_SUCCESS", "w", encoding="ascii"):
        pass
    told = run("dedup", "corpus", "--output-dir", "unique").stderr
    assert "6 documents: 2 kept, 4 removed (66.7 %) in 2 groups" in told
    assert ids("unique/a.parquet") == ["a", "b"] and ids("unique/sub/b.parquet") == []
    run("dedup", "corpus/*.parquet", "-o", "all.parquet", "--annotate")
    assert pq.read_table("all.parquet")["originalId"].to_pylist() == [None, None, "a"]
    run("dedup", "corpus", "--dry-run", "--output-dir", "none")
    assert not os.path.exists("none")
    run("dedup", "corpus", "-o", "one.parquet", "--memory", "64M", "--threads", "1", "--against", "a.parquet")
    assert ids("one.parquet") == []


@needs_command
def test_an_index_takes_parquet():
    write_jsonl("documents.jsonl", DOCUMENTS)
    pq.write_table(pa.Table.from_pylist(DOCUMENTS), "documents.parquet")
    found = run("add", "--index", "seen", "documents.parquet")
    expected = run("add", "--index", "expected", "documents.jsonl", command=[COMMAND])
    assert lines(found.stdout) == lines(expected.stdout)
    again = run("check", "--index", "seen", "a.parquet", "documents.parquet", code=1)
    assert [each["isDuplicate"] for each in lines(again.stdout)] == [False] * 3 + [True] * 120
    run("dedup", "a.parquet", "documents.parquet", "--output-dir", "new", "--against", "seen")
    kept = run("dedup", "documents.jsonl", "-o", "-", "--against", "expected", command=[COMMAND]).stdout
    assert ids("new/a.parquet") == ["a", "b"] and ids("new/documents.parquet") == [row["id"] for row in lines(kept)]


def test_a_work_folder_can_be_resumed():
    run("dedup", "a.parquet", "-o", "unique.parquet", "--work", "work")
    run("dedup", "a.parquet", "-o", "again.parquet", "--work", "work", "--resume")
    assert ids("again.parquet") == ids("unique.parquet") == ["a", "b"]


def test_what_the_c_command_says_of_parquet():
    if not COMMAND:
        pytest.skip("DOPPEL_COMMAND names no doppel command")
    assert "pip install libdoppel pyarrow" in run("pairs", "a.parquet", command=[COMMAND], code=3).stderr


def test_other_commands_are_there():
    assert run("--version", command=MODULE).stdout.startswith("doppel ")
    assert "Usage: doppel dedup" in run("dedup", "--help", command=MODULE).stdout
    write_jsonl("a.jsonl", [{"id": "a", "text": FOX}])
    assert run("fingerprint", "a.jsonl", command=MODULE).stdout
    run("dedup", "a.parquet", "-o", "unique.parquet", command=MODULE)
    assert ids("unique.parquet") == ["a", "b"]


# ---- exit codes and messages ----

REFUSED = [
    (["dedup", "a.parquet"], 2, "dedup needs an output"),
    (["dedup", "a.parquet", "-o", "new.parquet", "--output-dir",
    "each"], 2, "--output and --output-dir: give one of them"),
    (["dedup", "a.parquet", "-o", "a.parquet"], 2, "a.parquet is an input: choose another file for --output"),
    (["dedup", ".", "-o", "new.parquet"], 2, "new.parquet is inside ., which is an input"),
    (["dedup", ".", "--output-dir", "each"], 2, "each is inside ., which is an input"),
    (["dedup", "a.parquet", "a.parquet", "--output-dir", "each"], 2, "a.parquet is given twice"),
    (["dedup", "a.parquet", "sub/a.parquet", "--output-dir", "each"], 2, "would both be written to each/a.parquet"),
    (["dedup", "a.parquet", "other.parquet", "-o",
    "new.parquet"], 2, "other.parquet: its schema is not that of a.parquet"),
    (["dedup", "a.jsonl", "-o", "new.parquet"], 2, "a.jsonl is not Parquet, and Parquet output needs Parquet inputs"),
    (["dedup", "-", "-o", "new.parquet"], 2, "- is not Parquet"),
    (["dedup", "a.parquet", "--output-dir", "sub/../"], 2, "is an input"),
    (["dedup", "a.parquet", "-o", "new.parquet", "--method", "best"], 2, "best"),
    (["dedup", "a.parquet", "-o", "new.parquet", "--colour"], 2, "--colour"),
    (["dedup", "nope.parquet", "-o", "new.parquet"], 3, "nope.parquet: No such file or directory"),
    (["dedup", "text.parquet", "-o", "new.parquet"], 3, "text.parquet: "),
    (["dedup", "bad.parquet", "-o", "new.parquet"], 3, "bad.parquet: "),
    (["dedup", "a.parquet", "-o", "new.parquet", "--text-key", "body"], 3, 'has no column "body" or "html"'),
    (["dedup", "a.parquet", "-o", "new.parquet", "--against",
    "nope.parquet"], 3, "nope.parquet: No such file or directory"),
    (["dedup", "memory://nope.parquet", "-o", "new.parquet"], 3, "memory://nope.parquet: No such file or directory"),
    (["dedup", "zzz://nope.parquet", "-o", "new.parquet"], 2, "zzz://nope.parquet: Protocol not known: zzz"),
    (["dedup", "a.parquet", "-o", "memory://x.jsonl"], 2, "memory://x.jsonl: to a URL only Parquet is written"),
    (["dedup", "a.parquet", "-o", "folder.parquet"], 4, "folder.parquet"),
    (["dedup", "a.parquet", "-o", "text.parquet/x.parquet"], 4, "text.parquet"),
    (["pairs", "nope.parquet"], 3, "nope.parquet: No such file or directory"),
    (["pairs", "bad.parquet"], 3, "bad.parquet: "),
    (["fingerprint", "text.parquet"], 3, "text.parquet: "),
]


def everything():
    return sorted(os.path.join(at, name) for at, folders, names in os.walk(".") for name in folders + names)


@pytest.mark.parametrize("arguments, code, message", REFUSED, ids=[" ".join(each[0]) for each in REFUSED])
def test_exit_codes_and_messages(arguments, code, message):
    if "memory" in message or "zzz" in message:
        pytest.importorskip("fsspec")
    os.makedirs("sub")
    os.makedirs("folder.parquet/x")
    pq.write_table(TABLE, "sub/a.parquet")
    pq.write_table(TABLE.drop(["score"]), "other.parquet")
    write_jsonl("a.jsonl", [{"id": "a", "text": FOX}])
    with open("text.parquet", "w", encoding="ascii") as file:
        file.write(FOX)
    with open("a.parquet", "rb") as good, open("bad.parquet", "wb") as file:
        file.write(good.read()[:-8])
    before = everything()
    done = run(*arguments, code=code)
    assert message in done.stderr and "Traceback" not in done.stderr
    assert all(line.startswith("doppel: ") or "usage" in line.lower() or "help" in line
               for line in done.stderr.splitlines())
    assert everything() == before


def test_rows_and_columns_that_are_passed_over_are_told():
    pq.write_table(pa.table({"id": [*"abcd"], "text": [None, *TEXTS], "url": [["x"]] * 4}), "odd.parquet")
    told = run("dedup", "odd.parquet", "-o", "unique.parquet").stderr
    assert 'doppel: odd.parquet:1: "text" is null' in told and "1 record left out" in told
    assert 'doppel: warning: odd.parquet: the column "url" is list<element: string>, which is not text' in told
    assert ids("unique.parquet") == ["b", "c"]


@pytest.mark.parametrize("change", [lambda data: data[:-8], lambda data: data[:40] + bytes(40) + data[80:],
                                    lambda data: None], ids=["footer", "page", "missing"])
def test_a_file_that_cannot_be_read_to_its_end_among_good_ones(change):
    with open("a.parquet", "rb") as good:
        data = change(good.read())
    if data is not None:
        with open("bad.parquet", "wb") as file:
            file.write(data)
    for output in (["-o", "new.parquet"], ["--output-dir", "each"]):
        done = run("dedup", "a.parquet", "bad.parquet", *output, code=3)
        assert "bad.parquet: " in done.stderr
        assert not os.path.exists(output[1])
        run("dedup", "a.parquet", "bad.parquet", *output, "--allow-bad", code=3)
    assert ids("new.parquet") == ids("each/a.parquet") == ["a", "b"] and os.listdir("each") == ["a.parquet"]


def test_a_full_disk():
    texts = many_texts(300)
    pq.write_table(pa.table({"id": range(300), "text": texts}), "a.parquet", compression="none", use_dictionary=False)
    limited = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *MODULE]
    done = run("dedup", "a.parquet", "-o", "new.parquet", "--tmp", "/dev/shm", command=limited, code=4)
    assert "new.parquet" in done.stderr and "oo large" in done.stderr
    assert sorted(os.listdir()) == ["a.parquet"]


def test_a_reader_that_goes_away_is_no_error():
    write_jsonl("many.jsonl", [{"id": str(number), "text": text} for number, text in enumerate(many_texts(500))])
    done = run(command=["sh", "-c", '"$@" | head -c 10; exit 0', "sh", *MODULE, "dedup", "many.jsonl", "-o", "-"])
    assert len(done.stdout) == 10 and "Traceback" not in done.stderr and "rror" not in done.stderr


# ---- signals ----


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    texts = many_texts(15_000)
    pq.write_table(pa.table({"id": range(len(texts)), "text": texts}), path, row_group_size=500)
    return str(path)


SLOW = """
import os, sys, time
from doppel import _command, _parquet
read, encode, slow = _parquet._Table.read, _parquet._Output.encode, sys.argv.pop(1)
def later(self, *rest):
    os.write(1, b"begun\\n")
    time.sleep(0.3)
    return (read if slow == "reading" else encode)(self, *rest)
if slow == "reading":
    _parquet._Table.read = later
else:
    _parquet._Output.encode = later
sys.exit(_command.main())
"""


@pytest.mark.parametrize("when", ["reading", "writing"])
@pytest.mark.parametrize("output", [["-o", "unique.parquet"], ["--output-dir", "each"]])
def test_ctrl_c_ends_the_command_and_leaves_nothing(large, when, output):
    command = subprocess.Popen(
        [sys.executable, "-c", SLOW, when, "dedup", large, *output, "--removed", "removed.jsonl"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert command.stdout.readline() == "begun\n"
    command.send_signal(signal.SIGINT)
    _, told = command.communicate(timeout=30)
    assert command.returncode == 5 and "doppel: interrupted" in told and "Traceback" not in told
    assert os.listdir() == ["a.parquet"]


def test_python_gets_its_signals_back():
    code = """
import os, signal, sys
from doppel import _doppel
from doppel._parquet import Parquet
before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
assert _doppel.command([b"doppel", b"dedup", b"a.parquet", b"-o", b"unique.parquet"], Parquet()) == 0
assert _doppel.command([b"doppel", b"pairs", b"nope.parquet"], Parquet()) == 3
assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)]
try:
    os.kill(os.getpid(), signal.SIGINT)
    while True:
        pass
except KeyboardInterrupt:
    print("mine")
for wrong in (["doppel"], [b"a\\0b"], (b"doppel",)):
    try:
        _doppel.command(wrong, Parquet())
    except (TypeError, ValueError):
        print("refused")
"""
    assert run_python(code).splitlines()[-4:] == ["mine", "refused", "refused", "refused"]


def test_without_pyarrow_the_command_says_what_to_install():
    write_jsonl("a.jsonl", [{"id": "a", "text": FOX}, {"id": "b", "text": FOX}])
    code = "import sys; sys.modules['pyarrow'] = None; from doppel import _command; sys.exit(_command.main())"
    command = [sys.executable, "-c", code]
    assert len(lines(run("pairs", "a.jsonl", command=command).stdout)) == 1
    assert "Parquet needs pyarrow: pip install pyarrow" in run("pairs", "a.parquet", command=command, code=3).stderr
    told = run("dedup", "a.parquet", "-o", "unique.parquet", command=command, code=3).stderr
    assert "Parquet needs pyarrow: pip install pyarrow" in told

"""The job: what it writes is what the command writes, or nothing. At full size by spark-submit on the cluster, else in this
process, which saves the start of a JVM."""
import json
import logging
import os
import re
import subprocess
import sys
import time

import pyspark
import pytest
from conftest import FULL, SETTINGS
from invented import documents

import doppel.spark.__main__ as job

SUBMIT = os.path.join(os.path.dirname(pyspark.__file__), "bin", "spark-submit")


def submit(master, *arguments, conf=(), wait=True):
    settings = {**SETTINGS, **dict(conf)}
    command = [SUBMIT, "--master", master, *[each for name, value in settings.items() for each in ("--conf", f"{name}={value}")],
               job.__file__, *map(str, arguments)]
    if not wait:
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = started.communicate(timeout=900)
    return started.returncode, out, err + out  # spark-submit sends what Python writes to stderr to stdout


def command(*arguments):
    done = subprocess.run([sys.executable, "-m", "doppel._command", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def lines_of(folder):
    found = []
    for name in sorted(os.listdir(folder)):
        if name.startswith("part-"):
            with open(os.path.join(folder, name), encoding="utf-8", newline="") as file:
                found += file.read().split("\n")[:-1]
    return sorted(found)


@pytest.fixture
def corpus(tmp_path):
    path = tmp_path / "corpus.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for document in documents(3, *((2000, 3000, 2000) if FULL else ())):
            file.write(json.dumps(document) + "\n")
    return path


@pytest.fixture
def wanted(corpus, tmp_path):
    """The kept lines, and what was removed, by the command."""
    command("dedup", corpus, "-o", tmp_path / "kept.jsonl", "--removed", tmp_path / "removed.jsonl", "--keep", "longest,id")
    with open(tmp_path / "kept.jsonl", encoding="utf-8") as file:
        kept = sorted(file.read().splitlines())
    with open(tmp_path / "removed.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return kept, {row["id"]: (row["originalId"], row["similarity"]) for row in rows}


def check(tmp_path, wanted, name="unique"):
    kept, removed = wanted
    assert lines_of(tmp_path / name) == kept
    found = {row["id"]: (row["originalId"], row.get("similarity")) for row in map(json.loads, lines_of(tmp_path / "removed"))}
    assert {id: (original, pytest.approx(share, abs=1e-6)) for id, (original, share) in removed.items()} == found


@pytest.fixture
def run(request, capsys, monkeypatch):
    """Runs the job: gives its exit code, and what it said on stdout and stderr."""
    if FULL:
        return lambda *arguments: submit(request.getfixturevalue("master"), *arguments)
    monkeypatch.setattr(request.getfixturevalue("spark"), "stop", lambda: None)
    monkeypatch.setattr(logging.getLogger("doppel.spark"), "handlers", [])

    def here(*arguments):
        code = job.main([*map(str, arguments)])
        return code, *capsys.readouterr()
    return here


def test_lines_are_those_of_the_command(run, corpus, wanted, tmp_path):
    """Byte for byte, as are the ends of lines; the stages are logged; a second run takes them from the work folder, but
    not on other rows."""
    with open(corpus, encoding="utf-8", newline="") as file:
        lines = file.read().splitlines()
    with open(corpus, "w", encoding="utf-8", newline="") as file:
        file.write("".join(line + "\r\n" for line in lines))
    wanted = [line + "\r" for line in wanted[0]], wanted[1]
    arguments = ("--input", corpus, "--work", tmp_path / "work", "--json")
    code, out, err = run(*arguments, "--output", tmp_path / "unique", "--removed", tmp_path / "removed")
    assert code == 0, err[-4000:]
    check(tmp_path, wanted)
    summary = json.loads(next(line for line in out.splitlines() if line.startswith("{")))
    assert summary["kept"] == len(wanted[0]) and summary["expectedRecall"] > 0.999
    assert re.search(r"doppel\.spark keys: [\d,]+ rows, .* s\n", err) and "doppel.spark decide: " in err
    code, out, err = run(*arguments, "--output", tmp_path / "again")
    assert code == 0, err[-4000:]
    assert lines_of(tmp_path / "again") == wanted[0] and "decide: taken from" in err
    with open(corpus, "a", encoding="utf-8") as file:
        file.write('{"id": "one more", "text": "another text"}\n')
    code, out, err = run(*arguments, "--output", tmp_path / "more")
    assert code == 3 and "is of a run on other rows" in err and not os.path.exists(tmp_path / "more")
    for given in (("--output", tmp_path / "x", "--removed", tmp_path / "x"), ("--output", tmp_path / "work"),
                  ("--output", str(corpus) + "/x")):
        code, out, err = run(*arguments, *given)
        assert code == 3 and re.search("output: .* is an input, in one, or given twice", err)


@pytest.mark.skipif(not FULL, reason="at full size")
def test_an_executor_without_the_package(master, corpus, tmp_path):
    """The message names the host and what to do, and there is no output, not even a part of one."""
    (tmp_path / "path" / "doppel").mkdir(parents=True)
    (tmp_path / "path" / "doppel" / "__init__.py").write_text("raise ImportError('not installed')\n")
    code, _, err = submit(master, "--input", corpus, "--output", tmp_path / "unique",
                          conf={"spark.executorEnv.PYTHONPATH": str(tmp_path / "path")}.items())
    assert code == 3, err[-4000:]
    assert re.search(r"doppel.spark: host \S+: .* cannot import doppel .*: install the same libdoppel on every executor", err)
    assert sorted(os.listdir(tmp_path)) == ["corpus.jsonl", "path"]


@pytest.mark.skipif(not FULL, reason="at full size")
def test_an_executor_that_is_killed(master, corpus, wanted, tmp_path):
    """In the middle of a run, with speculation on: the answer is the same."""
    running = submit(master, "--input", corpus, "--output", tmp_path / "unique", "--removed", tmp_path / "removed",
                     conf={"spark.speculation": "true", "spark.speculation.multiplier": "1.2"}.items(), wait=False)
    for line in running.stdout:
        if "doppel.spark keys:" in line:
            break
    time.sleep(1)
    killed = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and is_executor(pid, master)]
    os.kill(killed[0], 9)
    err = running.communicate(timeout=900)[0]
    assert running.returncode == 0, err[-4000:]
    check(tmp_path, wanted)


def is_executor(pid, master):
    """Whether a process is an executor of a worker of this cluster."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            parent = file.read().rsplit(")", 1)[1].split()[1]
        with open(f"/proc/{pid}/cmdline", "rb") as own, open(f"/proc/{parent}/cmdline", "rb") as workers:
            return b"CoarseGrainedExecutorBackend" in own.read() and master.encode() in workers.read()
    except OSError:
        return False


@pytest.mark.skipif(not FULL, reason="at full size")
def test_parquet_keeps_all_columns(master, tmp_path):
    import pyarrow
    import pyarrow.parquet

    made = documents(4)
    table = pyarrow.Table.from_pylist(made)
    (tmp_path / "in").mkdir()
    pyarrow.parquet.write_table(table, tmp_path / "in" / "a.parquet")
    code, _, err = submit(master, "--input", tmp_path / "in", "--output", tmp_path / "out", "--keep", "first", "--order", "place")
    assert code == 0, err[-4000:]
    found = pyarrow.parquet.read_table(tmp_path / "out").sort_by("place")
    assert found.column_names == table.column_names
    kept = pyarrow.table(__import__("doppel").dedup(table))
    assert found.to_pylist() == kept.sort_by("place").to_pylist()


def test_cost_is_explained(capsys):
    """Without Spark: stages, bytes and hours, for a number of documents; bands cost at most 600 bytes a document."""
    assert job.main(["--explain", "--documents", "1000000000", "--cores", "100"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("1,000,000,000 documents of 3,000 bytes")
    link = next(line for line in said.splitlines() if line.startswith("link"))
    assert link.split()[1:5] == ["576.0", "GB", "576", "B"]
    with pytest.raises(SystemExit):
        job.main(["--explain", "--boilerplate", "0.1"])

"""Documents for the tests of batches: with exact and near copies, URLs, titles, dates and languages, the same each
time; and what the doppel command makes of them (DOPPEL_COMMAND names it)."""
import json
import os
import random
import subprocess
import sys
import threading

import pytest

COMMAND = os.environ.get("DOPPEL_COMMAND")
SANITIZED = "asan" in os.environ.get("LD_PRELOAD", "")  # then everything is slow, and memory is not given back
PLAIN = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # for the command, which is not
WORDS = [a + b for a in ("ka", "lo", "mi", "nu", "pe", "ra", "so", "ti", "vu", "zé") for b in
         ("bar", "den", "fil", "gos", "hum", "jak", "lem", "nor", "pit", "sta", "twe", "ulm", "vex", "wyn")]

needs_command = pytest.mark.skipif(not COMMAND, reason="DOPPEL_COMMAND names no doppel command")


def make_text(random_, words=40):
    return " ".join(random_.choices(WORDS, k=words))


def changed(random_, text, share=0.04):
    """A near copy: some words are others."""
    return " ".join(random_.choice(WORDS) if random_.random() < share else word for word in text.split())


def make_documents(count, seed=1):
    """Documents of which about half have copies, far and near; some are short or empty."""
    random_ = random.Random(seed)
    texts, documents = [], []
    for number in range(count):
        kind = random_.random()
        if kind < 0.15 and texts:
            text = random_.choice(texts).upper()
        elif kind < 0.45 and texts:
            text = changed(random_, random_.choice(texts))
        elif kind < 0.5:
            text = random_.choice(["", "one two", "One, TWO!", "...", "three"])
        else:
            text = make_text(random_, random_.randint(5, 60))
        texts.append(text)
        documents.append({
            "id": f"d{number}",
            "url": f"http{random_.choice(['', 's'])}://{random_.choice(['www.', ''])}site{random_.randint(0, 5)}.org/"
                   f"page{random_.randint(0, count // 2)}{random_.choice(['', '?utm_source=x', '/'])}",
            "title": f"The title of page {random_.choice(WORDS)} number {random_.randint(0, count // 3)}",
            "text": text,
            "date": f"2024-0{random_.randint(1, 9)}-1{random_.randint(0, 9)}",
            "lang": random_.choice(["en", "de"]),
            "score": random_.randint(0, 50),
        })
    return documents


def many_texts(count, seed=1):
    """Texts that take a while to compare, made in no time: of some sentences."""
    random_ = random.Random(seed)
    sentences = [make_text(random_, 12) for _ in range(400)]
    return [" ".join(random_.choices(sentences, k=25)) for _ in range(count)]


def write_jsonl(path, documents):
    with open(path, "w", encoding="utf-8") as file:
        for document in documents:
            file.write(json.dumps(document, ensure_ascii=False) + "\n")
    return str(path)


def resident():
    """Bytes of memory that this process has."""
    if SANITIZED or not os.path.exists("/proc/self/statm"):
        pytest.skip("memory is not told here")
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def read_jsonl(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def as_options(options):
    """Options of Python as those of the command."""
    given = []
    for name, value in options.items():
        name = {"id": "id_key", "text": "text_key", "url": "url_key", "title": "title_key",
                "html": "html_key"}.get(name, name)
        value = ",".join(value) if isinstance(value, (list, tuple)) else value
        given += ["--" + name.replace("_", "-")] + ([] if value is True else [str(value)])
    return given


def run_command(*arguments, **options):
    """The C command; gives its lines of JSON."""
    command = [COMMAND, *map(str, arguments), *as_options(options)]
    done = subprocess.run(command, capture_output=True, timeout=60, env=PLAIN)
    assert done.returncode in (0, 1), done.stderr.decode()
    return [json.loads(line) for line in done.stdout.decode().splitlines() if line.startswith("{")]


def run_python(code, *arguments, timeout=60, **environment):
    """A Python of its own; it must end well."""
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_threads(work, count):
    """work(number) on as many threads at the same time."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


_INTERRUPTED = """
import json, os, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import doppel
from documents import many_texts
call, options = getattr(doppel, sys.argv[2]), json.loads(sys.argv[3])
texts = [text.replace(" ka", "\\nka") for text in many_texts(int(sys.argv[4]))]
sent = []
def send():
    time.sleep(float(sys.argv[5]))
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=send, daemon=True).start()
try:
    while True:
        call(texts, threads=2, **options)
except KeyboardInterrupt:
    took = time.monotonic() - sent[0]
    assert took < float(sys.argv[6]), took
    assert len(doppel.dedup(["one text that is here", "ONE TEXT that is here"])) == 1
    assert doppel.trim(["one text that is here"] * 2) == ["one text that is here", ""]
    print("interrupted")
"""
LATEST = 30  # seconds until a call ends that was interrupted: the machine may be busy


def check_interrupt(call, count, after, **options):
    """Ctrl-C, some seconds after a call on many texts has begun, ends it, and other calls work then."""
    here = os.path.dirname(os.path.abspath(__file__))
    assert run_python(_INTERRUPTED, here, call, json.dumps(options), count, after, LATEST) == "interrupted\n"

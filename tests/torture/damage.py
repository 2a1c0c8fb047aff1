"""Damages an index of 300 documents (1,500 with DOPPEL_SUITE=full), again and again, and runs every command over it.

    python damage.py BUILD [SEED [COUNT]]

Flips bits anywhere and where they do most harm (meta pages, headers, pointers, the lists of free pages), cuts the file
short, empties and swaps pages, and alters doppel.index and the note of the last commit. Whatever was done, a command either
gives what it gives for the whole index, or ends with exit code 4 and a message that names the index. A command that ends
by a signal, or that leaves something out and does not say so, is a failure; so is a `compact`, a `backup` or an `add`
that succeeds and after which a document is missing. The server answers 503 for the index, or right, and goes on answering
for another one. 50 times by default, 2,000 times with DOPPEL_SUITE=full; the same seed does the same.
"""
import collections
import http.client
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

BUILD = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build")
DOPPEL = os.path.join(BUILD, "doppel")
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
FULL = os.environ.get("DOPPEL_SUITE") == "full"
COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 2000 if FULL else 50
DOCUMENTS = 1500 if FULL else 300
SANDBOX = ["--sandbox", "off"] if os.path.basename(BUILD).endswith(("asan", "tsan")) else []
SERVED = 4  # every so many the server, too
PAGE = 4096


def run(*command, stdin=None):
    done = subprocess.run([DOPPEL, *command], input=stdin, capture_output=True, timeout=120)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


# ---- an index


def make_documents():
    """Most are unlike each other; some are long, some short, and 80 are copies."""
    words = random.Random(7)
    lexicon = ["".join(words.choice("abcdefghijklmnoprstuvw") for _ in range(words.randint(3, 9))) for _ in range(4000)]
    documents = []
    for i in range(DOCUMENTS):
        length = 4 if i % 50 == 3 else words.randint(500, 900) if i % 15 == 0 else words.randint(20, 90)
        documents.append({"id": f"doc-{i}", "url": f"http://site{i % 40}.example/{i}",
                          "title": " ".join(words.choice(lexicon) for _ in range(6)),
                          "text": " ".join(words.choice(lexicon) for _ in range(length))})
    copies = [dict(documents[words.randrange(20, 40)], id=f"copy-{i}", url=f"http://mirror.example/{i}")
              for i in range(80)]
    return documents, copies


def lines(documents):
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


class Index:
    """The whole index, and what each command gives for it."""

    def __init__(self, folder):
        self.folder = folder
        self.path = os.path.join(folder, "whole")
        documents, copies = make_documents()
        extra = [{"id": f"gone-{i}", "text": f"to be removed {i} " + "word " * i} for i in range(60)]
        part = DOCUMENTS // 5
        for i in range(5):
            self.do("add", "--index", self.path, "--keep-text", "--on-duplicate", "link", "-",
                    stdin=lines(documents[i * part:(i + 1) * part] + extra[i * 12:(i + 1) * 12]))
        self.do("add", "--index", self.path, "--on-duplicate", "link", "-", stdin=lines(copies))
        self.do("remove", "--index", self.path, *[f"gone-{i}" for i in range(60)])
        self.queries = os.path.join(folder, "queries.jsonl")
        with open(self.queries, "wb") as file:
            file.write(lines(documents))
        self.new = lines([{"id": "new", "url": "http://new.example/", "text": "entirely new words " + "and more " * 9}])
        self.ids = [f"doc-{i}" for i in range(0, DOCUMENTS, 25)] + ["copy-3", "copy-70"]
        self.good = {name: self.do(*command) for name, command in self.reading(self.path).items()}
        self.exported = self.good["export"].splitlines()
        assert len(self.exported) == 1 + DOCUMENTS + 80, len(self.exported)
        assert self.good["check"].count(b'"isDuplicate":true') == DOCUMENTS
        self.file = os.path.join(self.path, "documents-1.mdb")
        self.pages = os.path.getsize(self.file) // PAGE

    def do(self, *command, stdin=None):
        code, out, err = run(*command, stdin=stdin)
        assert code in (0, 1) and not err, (command, code, err)
        return out

    def reading(self, path):
        return {"check": ("check", "--index", path, self.queries), "get": ("get", "--index", path, *self.ids),
                "export": ("export", "--index", path), "stats": ("stats", "--index", path),
                "similar": ("similar", "--quiet", "--index", path, "doc-60"), "verify": ("verify", "--index", path)}

    def same(self, name, out, path):
        """Whether a command gave what it gives for the whole index."""
        good = self.good[name]
        if name not in ("stats", "verify"):
            return out == good
        a, b = json.loads(out), json.loads(good)
        return all(a.get(key) == b.get(key) for key in ("documents", "copies", "damaged"))


# ---- damage


def flip(at, bit):
    def damage(file):
        file.seek(at)
        byte = file.read(1)
        if byte:
            file.seek(at)
            file.write(bytes([byte[0] ^ 1 << bit]))
    return damage


def overwrite(at, data):
    def damage(file):
        file.seek(at)
        file.write(data)
    return damage


def free_list(path):
    """Where in the file lists of free pages stand: the leaf pages and lists of LMDB's database 0."""
    with open(path, "rb") as file:
        data = file.read()
    newest = max((0, 1), key=lambda page: struct.unpack_from("<Q", data, page * PAGE + 144)[0])
    places, todo = [], [struct.unpack_from("<Q", data, newest * PAGE + 16 + 24 + 40)[0]]
    while todo:
        page = todo.pop() * PAGE
        if page >= len(data):
            continue
        flags, lower = struct.unpack_from("<HH", data, page + 10)
        for i in range(16, lower, 2):
            node = page + struct.unpack_from("<H", data, page + i)[0]
            low, how, key = struct.unpack_from("<IHH", data, node)
            if flags & 1:
                todo.append(low)
            elif how & 1:
                places.append((struct.unpack_from("<Q", data, node + 8 + key)[0] * PAGE + 16, low))
            else:
                places.append((node + 8 + key, low))
    return places


def choose(random, index):
    """A name, and what to do to which file."""
    size = index.pages * PAGE
    page = random.randrange(2, index.pages) * PAGE
    kind = random.choices(["bit", "header", "pointer", "meta", "free list", "several bits", "cut", "zeroed page",
                           "swapped pages", "copied page", "doppel.index", "note"],
                          [40, 8, 12, 6, 3, 4, 9, 5, 4, 3, 4, 2])[0]
    if kind == "bit":
        return kind, "documents-1.mdb", flip(random.randrange(size), random.randrange(8))
    if kind == "header":
        return kind, "documents-1.mdb", flip(page + random.randrange(16), random.randrange(8))
    if kind == "pointer":
        return kind, "documents-1.mdb", flip(page + 16 + random.randrange(120), random.randrange(8))
    if kind == "meta":
        return kind, "documents-1.mdb", flip(random.randrange(2) * PAGE + random.randrange(152), random.randrange(8))
    if kind == "free list":
        at, length = random.choice(index.free)
        return kind, "documents-1.mdb", flip(at + random.randrange(length), random.randrange(8))
    if kind == "several bits":
        flips = [flip(random.randrange(size), random.randrange(8)) for _ in range(20)]
        return kind, "documents-1.mdb", lambda file: [one(file) for one in flips]
    if kind == "cut":
        length = random.randrange(size)
        return kind, "documents-1.mdb", lambda file: file.truncate(length)
    if kind == "zeroed page":
        return kind, "documents-1.mdb", overwrite(page, bytes(PAGE))
    if kind in ("swapped pages", "copied page"):
        other = random.randrange(2, index.pages) * PAGE
        with open(index.file, "rb") as file:
            file.seek(page)
            one = file.read(PAGE)
            file.seek(other)
            two = file.read(PAGE)

        def damage(file):
            overwrite(other, one)(file)
            if kind == "swapped pages":
                overwrite(page, two)(file)
        return kind, "documents-1.mdb", damage
    if kind == "note":
        return kind, "documents-1.mdb-commit", flip(random.randrange(32), random.randrange(8))
    return kind, "doppel.index", flip(random.randrange(34), random.randrange(8))


# ---- the commands


class Trial:
    def __init__(self, index, number):
        self.index, self.number = index, number
        self.random = random.Random(SEED * 1000003 + number)
        self.kind, self.name, self.damage = choose(self.random, index)
        self.folder = os.path.join(index.folder, f"trial-{number}")
        self.counts, self.failures = collections.Counter(), []
        self.reported = False

    def copy(self, name):
        path = os.path.join(self.folder, name)
        shutil.copytree(self.index.path, path, ignore=shutil.ignore_patterns("*-lock", "writer.lock"))
        return path

    def hurt(self, path):
        with open(os.path.join(path, self.name), "r+b") as file:
            self.damage(file)
        return path

    def fail(self, what, said=""):
        self.failures.append(f"seed {SEED}, number {self.number} ({self.kind}): {what}\n{said[-2000:]}")

    def judge(self, name, path, code, out, err, right):
        """Whether a command ended as it may: true when it claims to have done all of its work."""
        if code < 0:
            self.counts["signals"] += 1
            self.fail(f"{name} ended by signal {-code}", err)
        elif code in (0, 1):
            if not right():
                self.counts["silent"] += 1
                self.fail(f"{name} left something out and exited with {code}", err or out.decode(errors="replace"))
            return True
        elif code != 4 or path not in err:
            self.fail(f"{name} exited with {code} and said", err)
        else:
            self.reported = True
        return False

    def export(self, path):
        code, out, err = run("export", "--index", path)
        return out.splitlines() if code == 0 else [f"exit {code}: {err}".encode()]

    def reading(self):
        path = self.hurt(self.copy("read"))
        for name, command in self.index.reading(path).items():
            code, out, err = run(*command)
            self.judge(name, path, code, out, err, lambda: self.index.same(name, out, path))
            if name == "export" and code == 4:
                known = set(self.index.exported)
                saved = [line for line in out.splitlines() if line in known]
                self.counts["exports that saved documents"] += len(saved) > 1
        copy = os.path.join(self.folder, "backup")
        code, out, err = run("backup", "--index", path, copy)
        self.judge("backup", path, code, out, err, lambda: self.export(copy) == self.index.exported)

    def writing(self):
        path = self.hurt(self.copy("compact"))
        code, out, err = run("compact", "--index", path)
        if self.judge("compact", path, code, out, err, lambda: True) and self.export(path) != self.index.exported:
            self.counts["lost by compact"] += 1
            self.fail("documents are missing after compact", err)
        path = self.hurt(self.copy("add"))
        before = set(run("export", "--index", path)[1].splitlines())
        code, out, err = run("add", "--index", path, "-", stdin=self.index.new)
        self.judge("add", path, code, out, err, lambda: self.added(path, before))

    def added(self, path, before):
        """Nothing that could be read before an add is lost by it, and what is missing is still reported."""
        code, out, _ = run("export", "--index", path)
        after = set(out.splitlines())
        return before <= after and (code == 4 or (code == 0 and set(self.index.exported) <= after))

    # ---- the server

    def ask(self, port, name, body):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", f"/v1/indexes/{name}/batch?op=check" if name else "/v1/batch?op=check", body,
                           {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.getheader("Content-Type"), data

    def check_served(self, port, name, hurt):
        status, kind, data = self.ask(port, name, lines(make_sample(self.index)))
        if status == 503:
            self.reported = True
            if not hurt or kind != "application/problem+json" or json.loads(data)["status"] != 503:
                self.fail(f"the server answered 503 for {name}: {kind} {data[:300]}")
            return
        verdicts = [json.loads(line) for line in data.splitlines()]
        wrong = [v for v in verdicts if v.get("problem", {}).get("status") == 503]
        silent = [v for v in verdicts if v not in wrong and v.get("isDuplicate") is not True]
        if status != 200 or (wrong and not hurt) or len(verdicts) != len(make_sample(self.index)):
            self.fail(f"the server answered {status} for {name}: {data[:300]}")
        elif silent:
            self.counts["silent"] += 1
            self.fail(f"the server left something out for {name}: {silent[:2]}")

    def serving(self, live):
        """Two indexes, one of them damaged: before the server starts, or while it runs."""
        folder = os.path.join(self.folder, "served")
        os.mkdir(folder)
        path = self.copy("served/hurt")
        if not live:
            self.hurt(path)
        with open(os.path.join(folder, "hurt.json"), "w") as file:
            file.write("{}")
        errors = os.path.join(self.folder, "stderr")
        with open(errors, "w") as stderr:
            process = subprocess.Popen([DOPPEL, "serve", "--index", self.copy("first"), "--indexes", folder, "--listen",
                                        "127.0.0.1:0", *SANDBOX], stderr=stderr, stdout=subprocess.DEVNULL)
        try:
            port = None
            while port is None and process.poll() is None:
                with open(errors, errors="replace") as file:
                    found = re.search(r"listening on .*:(\d+)", file.read())
                port = int(found[1]) if found else None
            if port:
                if live:
                    self.check_served(port, "hurt", False)
                    self.hurt(path)
                self.check_served(port, "hurt", True)
                self.check_served(port, None, False)
        except (OSError, http.client.HTTPException) as error:
            self.fail(f"the server did not answer: {error!r}")
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        code = process.wait(60)
        with open(errors, errors="replace") as file:
            said = file.read()
        if code:
            self.counts["signals"] += code < 0
            self.fail(f"the server ended with {code}", said)

    def run(self):
        os.mkdir(self.folder)
        try:
            self.reading()
            self.writing()
            if self.number % SERVED == 0:
                self.serving(self.number % (2 * SERVED) == 0)
        finally:
            shutil.rmtree(self.folder)
        self.counts["reported" if self.reported else "without effect"] += 1
        return self


def make_sample(index):
    if not hasattr(index, "sample"):
        index.sample = make_documents()[0][5::30]
    return index.sample


def main():
    folder = tempfile.mkdtemp(prefix="doppel-damage-")
    kinds, counts, failures = collections.Counter(), collections.Counter(), []
    try:
        index = Index(folder)
        index.free = free_list(index.file)
        assert index.free
        with ThreadPoolExecutor(max(1, min(4, len(os.sched_getaffinity(0))))) as pool:
            for trial in pool.map(lambda number: Trial(index, number).run(), range(COUNT)):
                kinds[trial.kind] += 1
                counts.update(trial.counts)
                failures += trial.failures
                for failure in trial.failures:
                    print(failure, flush=True)
    finally:
        shutil.rmtree(folder)
    print(f"seed {SEED}: {COUNT} times damaged:", ", ".join(f"{kinds[kind]} {kind}" for kind in sorted(kinds)))
    print(f"{counts['reported']} reported, {counts['without effect']} without effect, "
          f"{counts['exports that saved documents']} exports saved documents; {counts['silent']} silent, "
          f"{counts['signals']} ended by a signal, {counts['lost by compact']} lost documents by compact, "
          f"{len(failures)} failures")
    sys.exit(1 if failures or counts["silent"] or counts["signals"] or counts["lost by compact"] else 0)


if __name__ == "__main__":
    main()

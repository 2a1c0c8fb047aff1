"""What the tests of a shared memory have in common: real servers as scripts/services starts them, and the command `doppel`.

All of tests/redis is run by `python run.py BUILD`; BUILD holds the command.
"""
import atexit
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import DOPPEL, FULL, ROOT, wait_for_end, wait_until  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "scripts"))
from service import nodes  # noqa: E402
from service import redis as services  # noqa: E402

PATIENCE = 900 if FULL else 120  # seconds for anything that is waited for: far more than it takes
FOLDER = tempfile.mkdtemp(prefix="doppel-redis-")


def wait_for(what, ready, every=0.02):
    return wait_until(what, ready, PATIENCE, every)


# ---- servers


class Refused(Exception):
    """An error of Redis."""


class Client:
    """A connection to a Redis, as simple as can be."""

    def __init__(self, port, password=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        self.lines = self.socket.makefile("rb")
        if password:
            self.ask("AUTH", password)

    def ask(self, *words):
        self.socket.sendall(self.encode(words))
        return self.read()

    def ask_all(self, commands):
        """Some commands at once; gives their answers."""
        commands, answers = list(commands), []
        for at in range(0, len(commands), 500):
            some = commands[at:at + 500]
            self.socket.sendall(b"".join(map(self.encode, some)))
            answers += [self.read() for _ in some]
        return answers

    def encode(self, words):
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)

    def read(self):
        line = self.lines.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server has closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise Refused(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.lines.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return rest

    def close(self):
        self.lines.close()
        self.socket.close()


class Server:
    """One process of Redis. It is started by making it, and ended by `close` or with the test."""

    running = set()
    made = 0

    def __init__(self, **settings):
        Server.made += 1
        self.folder = os.path.join(FOLDER, f"server{Server.made}")
        self.port = nodes.free_port()
        self.settings = {key.replace("_", "-"): value for key, value in settings.items()}
        self.node = services.redis_node(self.folder, "redis", self.port, self.settings)
        self.start()

    def url(self, query="prefix=test", login="", port=None, db=0):
        return f"redis://{login}127.0.0.1:{port or self.port}/{db}?{query}"

    def start(self, wait=True, **settings):
        """Starts it, perhaps with other settings than before."""
        if settings:
            shutil.move(os.path.join(self.node, "data"), os.path.join(FOLDER, "data"))
            shutil.rmtree(self.folder)
            self.settings.update((key.replace("_", "-"), value) for key, value in settings.items())
            self.node = services.redis_node(self.folder, "redis", self.port, self.settings)
            shutil.rmtree(os.path.join(self.node, "data"))
            shutil.move(os.path.join(FOLDER, "data"), os.path.join(self.node, "data"))
        nodes.launch(self.node)
        Server.running.add(self)
        if wait:
            wait_for("Redis", self.answers)

    def answers(self):
        said = services.ask(self.node, "PING").strip()
        return said == "PONG" or said.startswith("NOAUTH")

    def client(self):
        return Client(self.port, self.settings.get("requirepass"))

    def ask(self, *words):
        client = self.client()
        try:
            return client.ask(*words)
        finally:
            client.close()

    def info(self, name):
        """A number of INFO."""
        for line in self.ask("INFO", "all").decode().splitlines():
            if line.startswith(name + ":"):
                return int(line.split(":")[1])
        raise KeyError(name)

    def keys(self):
        return sorted(self.ask("KEYS", "*"))

    def signal(self, number):
        os.kill(nodes.pid_of(self.node), number)

    def stop(self):
        """Ends it, at once, with all that it has only in memory."""
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        wait_for("the end of Redis", lambda: not nodes.pid_of(self.node))

    def close(self):
        if nodes.pid_of(self.node):
            self.stop()
        Server.running.discard(self)
        shutil.rmtree(self.folder, ignore_errors=True)


class Several:
    """Those of a Cluster or of Sentinels."""

    def __init__(self, make, run):
        Server.made += 1
        self.folder = os.path.join(FOLDER, f"server{Server.made}")
        os.makedirs(self.folder)
        make(self.folder, nodes.free_port(), {})
        self.run, self.nodes = run, nodes.nodes_of(self.folder)
        self.start()
        Server.running.add(self)

    def start(self):
        """Starts what does not run."""
        self.found, = self.run(self.nodes).values()

    def url(self, query="prefix=test"):
        return f"{self.found}?{query}"

    def node_at(self, port):
        return next(node for node in self.nodes if nodes.about(node)["port"] == port)

    def ask(self, node, *words):
        client = Client(nodes.about(node)["port"])
        try:
            return client.ask(*words)
        finally:
            client.close()

    def kill(self, node):
        os.kill(nodes.pid_of(node), signal.SIGKILL)

    def close(self):
        nodes.end(self.nodes)
        Server.running.discard(self)
        shutil.rmtree(self.folder)


def clean_up():
    for server in list(Server.running):
        server.close()
    for one in list(Doppel.running):
        one.kill()
    shutil.rmtree(FOLDER, ignore_errors=True)


atexit.register(clean_up)


# ---- the command


class Doppel:
    """A `doppel` of its own; its lines are in a file."""

    running = set()
    made = 0

    def __init__(self, command, url, *options):
        Doppel.made += 1
        self.output = os.path.join(FOLDER, f"output{Doppel.made}")
        self.errors = os.path.join(FOLDER, f"errors{Doppel.made}")
        self.command = [DOPPEL, command, "--store", url, *map(str, options)]
        with open(self.output, "wb") as output, open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        Doppel.running.add(self)

    def alive(self):
        return self.process.poll() is None

    def said(self):
        with open(self.errors, errors="replace") as file:
            return file.read()

    def lines(self):
        """What it has told so far; a line that is cut off is none."""
        with open(self.output, "rb") as file:
            return [json.loads(line) for line in file if line.endswith(b"\n")]

    def kill(self):
        if self.alive():
            self.process.kill()
        self.process.wait()
        Doppel.running.discard(self)

    def ended(self):
        """Waits for its end; gives its exit code. A crash is no end."""
        try:
            code = wait_for_end(self.process, self.command, self.said, PATIENCE)
        finally:
            Doppel.running.discard(self)
        assert code >= 0 and "Sanitizer" not in self.said(), f"{' '.join(self.command)}: {code}\n{self.said()}"
        return code

    def finish(self):
        """Waits for a good end; gives its lines. `remove` may be asked for what is not there."""
        code = self.ended()
        assert code in ((0, 3) if self.command[1] == "remove" else (0, 1)), f"{' '.join(self.command)}: exit code {code}:\n{self.said()}"
        return self.lines()


class Feeding(Doppel):
    """A `doppel add` that gets its documents one by one, and tells each one's verdict before it gets the next."""

    def __init__(self, url, *options):
        Doppel.made += 1
        self.errors = os.path.join(FOLDER, f"errors{Doppel.made}")
        self.command = [DOPPEL, "add", "--store", url, *map(str, options), "-"]
        with open(self.errors, "wb") as errors:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True)
        Doppel.running.add(self)

    def give(self, document):
        self.process.stdin.write(json.dumps(document) + "\n")
        self.process.stdin.flush()

    def add(self, document):
        self.give(document)
        line = self.process.stdout.readline()
        assert line, f"no verdict: {self.said()}"
        return json.loads(line)

    def ended(self):
        self.process.stdin.close()
        rest = self.process.stdout.read()
        self.process.stdout.close()
        assert not rest, rest
        return super().ended()


def run(command, url, *options):
    """The lines of a command that ends well."""
    return Doppel(command, url, *options).finish()


def run_failing(command, url, *options):
    """The exit code and the words of one that does not."""
    one = Doppel(command, url, *options)
    return one.ended(), one.said()


def stats(url):
    one = Doppel("stats", url)
    assert one.ended() == 0, one.said()
    with open(one.output) as file:
        return json.load(file)


def get_all(url, ids):
    """Stored documents by id."""
    found = {}
    ids = list(ids)
    for at in range(0, len(ids), 2000):
        found.update((one["id"], one) for one in run("get", url, *ids[at:at + 2000]))
    return found


class Case(unittest.TestCase):
    maxDiff = 2000

    def assertFails(self, ended, words, code=4):
        self.assertEqual(ended[0], code, ended[1])
        self.assertRegex(ended[1], words)
        self.assertLess(len(ended[1]), 2000, ended[1])

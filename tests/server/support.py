"""What the tests of the server share: a real server on a free port of loopback, and requests to it.

Each test file is run as `python test_NAME.py BUILD`; BUILD holds the command `doppel`.
"""
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from urllib.parse import quote

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from common import DOPPEL, FULL, SANITIZED, add_by_library  # noqa: E402,F401

# The leak sanitizer traces its own process, which the sandbox forbids.
SANDBOX = ["--sandbox", "off"] if SANITIZED else []


class Server:
    """A server in a folder of its own, which is kept from one start to the next."""

    def __init__(self, *options, folder=None, environment=None, store=None):
        self.own = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="doppel-server-")
        self.options = options
        self.environment = environment or {}
        self.store = store
        self.start()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def start(self):
        if not os.path.isdir(self.path("indexes")):
            os.mkdir(self.path("indexes"))
            os.mkdir(self.path("backups"))
        place = ["--store", self.store] if self.store else ["--index", self.path("seen")]
        indexes = [] if "--indexes" in self.options else ["--indexes", self.path("indexes")]
        command = [DOPPEL, "serve", *place, *indexes, "--backups", self.path("backups"), "--listen", "127.0.0.1:0", *SANDBOX,
                   *self.options]
        with open(self.path("stderr"), "w") as errors:
            self.process = subprocess.Popen(command, stderr=errors, stdout=subprocess.DEVNULL,
                                            env=dict(os.environ, **self.environment))
        where = self.wait_for(r"listening on (\w+)://(.*):(\d+)")
        self.port = int(where[3])

    def said(self):
        with open(self.path("stderr"), errors="replace") as file:
            return file.read()

    def wait_for(self, pattern, seconds=60):
        for _ in range(int(seconds * 50)):
            found = re.search(pattern, self.said())
            if found:
                return found
            if self.process.poll() is not None:
                break
            try:
                self.process.wait(0.02)
            except subprocess.TimeoutExpired:
                pass
        raise AssertionError(f"the server did not say {pattern!r} but:\n{self.said()}")

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(60)

    def close(self):
        code = self.stop()
        said = self.said()
        if self.own:
            shutil.rmtree(self.folder)
        assert code == 0, f"exit code {code}:\n{said}"
        assert "Sanitizer" not in said, said

    # ---- requests

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(self, method, path, body=None, headers=None, connection=None):
        """Gives (status, headers, body); JSON is read, a body that is a dict or list is sent as such."""
        headers = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        if body is not None and not any(name.lower() == "content-type" for name in headers):
            headers["Content-Type"] = "application/json"
        if isinstance(body, str):
            body = body.encode()
        own = connection or self.connect()
        own.request(method, path, body, headers)
        response = own.getresponse()
        data = response.read()
        if connection is None:
            own.close()
        kind = response.getheader("Content-Type") or ""
        if kind.startswith("application/") and "json" in kind and "ndjson" not in kind:
            data = json.loads(data) if data else None
        return response.status, response.headers, data

    def post(self, path, body, **headers):
        return self.ask("POST", path, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def get(self, path):
        return self.ask("GET", path)

    def lines(self, path, documents, headers=None):
        """Sends a batch; gives the answers."""
        body = "".join(document if isinstance(document, str) else json.dumps(document) + "\n" for document in documents)
        status, _, data = self.ask("POST", path, body, {"Content-Type": "application/x-ndjson", **(headers or {})})
        assert status == 200, (status, data)
        return [json.loads(line) for line in data.decode().splitlines()]

    def raw(self, data, timeout=20, half_close=False):
        """Sends bytes as they are; gives what comes back until the connection is closed or idle."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as link:
            got = b""
            try:
                link.sendall(data)
                if half_close:
                    link.shutdown(socket.SHUT_WR)
                while True:
                    piece = link.recv(65536)
                    if not piece:
                        break
                    got += piece
            except (socket.timeout, ConnectionError):
                pass
            return got


def document_path(name, *rest):
    return "/v1/documents/" + quote(name, safe="") + "".join(rest)


class ServerTest(unittest.TestCase):
    """Tests on one server, which has to be alive and well after each."""

    OPTIONS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*cls.OPTIONS)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def tearDown(self):
        self.assertEqual(self.server.get("/healthz")[0], 200)

    def assertProblem(self, answer, status, kind, **members):
        got, headers, body = answer
        self.assertEqual(got, status, body)
        self.assertEqual(headers["Content-Type"], "application/problem+json")
        self.assertEqual(body["type"], "urn:doppel:problem:" + kind)
        self.assertEqual(body["status"], status)
        self.assertTrue(body["title"] and body["detail"])
        for name, value in members.items():
            self.assertEqual(body.get(name), value, body)


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)

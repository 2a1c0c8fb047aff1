"""Starting, stopping, being killed; tokens, TLS, limits, configuration, logs."""
import http.client
import json
import os
import pathlib
import signal
import socket
import ssl
import stat
import subprocess
import threading
import time
import unittest

import support
import words
from support import DOPPEL, FULL, SANITIZED, Server, document_path


class Load(threading.Thread):
    """Adds documents one after the other, and remembers what was acknowledged."""

    def __init__(self, server, name):
        super().__init__()
        self.server, self.name, self.added, self.problems, self.stop = server, name, [], [], False
        self.start()

    def run(self):
        link, number = self.server.connect(), 0
        while not self.stop:
            name = f"{self.name}-{number}"
            number += 1
            try:
                status, headers, body = self.server.ask("POST", "/v1/documents", {"id": name, "text": words.text(name, 40)},
                                                        connection=link)
            except (http.client.RemoteDisconnected, ConnectionError, BrokenPipeError):
                self.problems.append(name)
                return
            if status != 201:
                self.problems.append((name, status, body))
            self.added.append(name)
            if headers["Connection"] == "close":
                return


class Stopping(unittest.TestCase):
    def load(self, server, threads=8, seconds=1.0):
        loads = [Load(server, f"t{i}") for i in range(threads)]
        time.sleep(seconds)
        return loads

    def check_all(self, server, names):
        checked = server.lines("/v1/batch?op=check", [{"id": name, "text": words.text(name, 40)} for name in names])
        self.assertEqual([answer["originalId"] for answer in checked], names)

    def test_sigterm_drops_nothing(self):
        """Each request that was sent is answered; the last answer says that the connection closes."""
        server = Server()
        loads = self.load(server)
        server.process.send_signal(signal.SIGTERM)
        for load in loads:
            load.join()
        self.assertEqual(server.process.wait(30), 0)
        # A connection may be closed while nothing was under way on it: then the next send fails, and nothing was added.
        unanswered = [name for load in loads for name in load.problems]
        names = [name for load in loads for name in load.added]
        self.assertGreater(len(names), 10)
        server.start()
        self.check_all(server, names)
        for name in unanswered:
            self.assertEqual(server.get(document_path(name))[0], 404)
        server.close()

    def test_sigterm_finishes_a_batch(self):
        server = Server()
        link = server.connect()
        link.putrequest("POST", "/v1/batch?op=add")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Transfer-Encoding", "chunked")
        link.endheaders()

        def send(name):
            data = json.dumps({"id": name, "text": words.text(name)}).encode() + b"\n"
            link.send(b"%x\r\n%s\r\n" % (len(data), data))

        send("first")
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        server.wait_for("stopping")
        time.sleep(0.5)
        send("second")
        link.send(b"0\r\n\r\n")
        answers = [json.loads(line)["id"] for line in link.getresponse().read().splitlines()]
        self.assertEqual(answers, ["first", "second"])
        link.close()
        self.assertEqual(server.process.wait(30), 0)
        server.start()
        self.assertEqual(server.get("/v1/documents/first")[0], 200)
        server.close()

    def test_sigkill_keeps_what_was_acknowledged(self):
        server = Server()
        names = []
        for turn in range(5 if FULL else 2):
            loads = [Load(server, f"k{turn}-{i}") for i in range(8)]
            time.sleep(0.7 + 0.3 * turn)
            server.stop(signal.SIGKILL)
            for load in loads:
                load.join()
                names += load.added
            server.start()
            self.check_all(server, names)
        self.assertGreater(len(names), 10)
        server.close()


class Access(unittest.TestCase):
    TOKENS = "# who may do what\nreader read 0123456789abcdefR\nwriter write 0123456789abcdefW\n\nboss admin 0123456789abcdefA\n"

    def setUp(self):
        self.folder = support.tempfile.mkdtemp(prefix="doppel-access-")
        self.tokens = os.path.join(self.folder, "tokens")
        self.write_tokens(self.TOKENS)

    def tearDown(self):
        support.shutil.rmtree(self.folder)

    def write_tokens(self, text, mode=0o600):
        with open(self.tokens, "w") as file:
            file.write(text)
        os.chmod(self.tokens, mode)

    def ask(self, server, token, method, path, body=None):
        headers = {"Authorization": "Bearer " + token} if token else {}
        return server.ask(method, path, body, headers)[0]

    def test_rights(self):
        server = Server("--tokens", self.tokens)
        read, write, admin = ("0123456789abcdef" + letter for letter in "RWA")
        for token, check, add, drop in ((None, 401, 401, 401), ("0123456789abcdefX", 401, 401, 401),
                                        ("0123456789abcdef", 401, 401, 401), ("x" * 500, 401, 401, 401),
                                        (read, 200, 403, 403), (write, 200, (201, 200), 403), (admin, 200, (201, 200), 404)):
            self.assertEqual(self.ask(server, token, "POST", "/v1/check", {"text": "a b c d e f"}), check)
            status = self.ask(server, token, "POST", "/v1/documents", {"text": "a b c d e f"})
            self.assertIn(status, add if isinstance(add, tuple) else (add,))
            self.assertEqual(self.ask(server, token, "DELETE", "/v1/indexes/none"), drop)
            self.assertEqual(self.ask(server, token, "GET", "/healthz"), 200)
        headers = {"Content-Type": "application/x-ndjson", "Authorization": "Bearer " + read}
        self.assertEqual(server.ask("POST", "/v1/batch?op=add", "", headers)[0], 403)
        self.assertEqual(server.ask("POST", "/v1/batch?op=check", "", headers)[0], 200)
        # One that is not known reads differently from none.
        for given, kind, challenge in ((None, "no-token", "Bearer"), ("Basic YTpi", "no-token", "Bearer"), ("Bearer ", "no-token", "Bearer"),
                                       ("Bearer 0123456789abcdefX", "wrong-token", 'Bearer error="invalid_token"'),
                                       ("bearer " + "x" * 500, "wrong-token", 'Bearer error="invalid_token"')):
            status, headers, body = server.ask("GET", "/v1/stats", headers={"Authorization": given} if given else {})
            self.assertEqual((status, body["type"], headers["WWW-Authenticate"]), (401, "urn:doppel:problem:" + kind, challenge))
        # Read again at SIGHUP; what cannot be read changes nothing.
        self.write_tokens("other read fedcba9876543210\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("1 tokens")
        self.assertEqual(self.ask(server, read, "GET", "/v1/stats"), 401)
        self.assertEqual(self.ask(server, "fedcba9876543210", "GET", "/v1/stats"), 200)
        self.write_tokens("nonsense\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("tokens:1: each line is")
        self.assertEqual(self.ask(server, "fedcba9876543210", "GET", "/v1/stats"), 200)
        server.close()

    def start(self, *options):
        """Gives the exit code and what was said of a server that should not start."""
        listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
        done = subprocess.run([DOPPEL, "serve", "--index", os.path.join(self.folder, "seen"), *listen, *support.SANDBOX, *options],
                              capture_output=True, text=True, timeout=60)
        return done.returncode, done.stderr

    def test_refuses_to_start(self):
        for options, code, word in (
            (("--listen", "0.0.0.0:0"), 2, "--tokens"), (("--listen", "nonsense"), 2, "HOST:PORT"),
            (("--listen", "127.0.0.1:99999"), 2, "--listen"), (("--tokens", "/nowhere"), 2, "cannot read"),
            (("--certificate", self.tokens), 2, "must be given together"), (("--user", "nobody-here"), 2, "unknown user"),
            (("--config", "/nowhere"), 2, "cannot read"), (("--preset", "none"), 2, "preset"),
            (("--origins", "https://a.example,b.example"), 2, "not b.example"), (("--origins", "http://a.example/x"), 2, "not http"),
            (("--certificate", self.tokens, "--key", self.tokens), 2, "certificate"), (("--indexes", "/nowhere/at/all"), 4, "nowhere"),
        ):
            with self.subTest(options):
                got, said = self.start(*options)
                self.assertEqual(got, code, said)
                self.assertIn(word, said)
        for text, word in (("a read short\n", "16 bytes"), ("a all 0123456789abcdef\n", "read, write or admin"), ("", "no token")):
            self.write_tokens(text)
            self.assertIn(word, self.start("--tokens", self.tokens)[1])
        self.write_tokens(self.TOKENS, 0o644)
        self.assertIn("chmod 600", self.start("--tokens", self.tokens)[1])
        busy = socket.socket()
        busy.bind(("127.0.0.1", 0))
        busy.listen()
        code, said = self.start("--listen", f"127.0.0.1:{busy.getsockname()[1]}")
        self.assertEqual(code, 4)
        self.assertIn("address already in use", said)
        busy.close()

    def test_tls(self):
        certificate, key = os.path.join(self.folder, "cert.pem"), os.path.join(self.folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        key, "-out", certificate, "-days", "2", "-subj", "/CN=localhost", "-addext",
                        "subjectAltName=DNS:localhost"], check=True, capture_output=True)
        server = Server("--certificate", certificate, "--key", key)
        context = ssl.create_default_context(cafile=certificate)
        link = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=20)
        for number in range(3):
            body = {"id": f"s{number}", "text": words.text(number)}
            self.assertEqual(server.ask("POST", "/v1/documents", body, connection=link)[0], 201)
        link.close()
        self.assertNotIn(b"200 OK", server.raw(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout=3))
        # A Content-Length that is none: at most one head comes back.
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as plain, \
                context.wrap_socket(plain, server_hostname="localhost") as link:
            link.sendall(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n")
            try:
                got = link.recv(10000)
            except OSError:
                got = b""
        self.assertLess(got.count(b"HTTP/1.1 "), 2)
        server.close()

    def test_configuration(self):
        """The command line goes before the environment, and that before the file."""
        path = os.path.join(self.folder, "doppel.ini")
        with open(path, "w") as file:
            file.write("; comment\n[serve]\npreset = crawl\nrate = 1000000\nmax-body = 2K\nkeep-text = on\nttl = 5d\n")
        server = Server("--config", path, "--max-body", "1K", environment={"DOPPEL_TTL": "7d", "DOPPEL_MAX_BODY": "4K"})
        stats = server.get("/v1/stats")[2]
        self.assertEqual((stats["preset"], stats["keepText"], stats["ttl"]), ("crawl", True, 7 * 86400))
        self.assertEqual(server.post("/v1/check", {"text": "x" * 1500})[0], 413)
        server.close()
        for line, word in (("colour = red", "colour"), ("rate = many", "number"), ("nonsense", ":1"), ("[other]\nrate = 1", "other"),
                           ("keep-text = perhaps", "on or off")):
            with open(path, "w") as file:
                file.write(line + "\n")
            code, said = self.start("--config", path)
            self.assertEqual(code, 2)
            self.assertIn(word, said)

    def test_rate(self):
        server = Server("--rate", "5")
        one = b"GET /v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n"
        got = server.raw(one * 29 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        self.assertEqual(got.count(b"HTTP/1.1 "), 30)
        self.assertTrue(got.startswith(b"HTTP/1.1 200 "))
        self.assertGreaterEqual(got.count(b"HTTP/1.1 429 "), 10)
        self.assertRegex(got, b"Retry-After: [1-9]")
        self.assertIn(b"urn:doppel:problem:rate", got)
        time.sleep(1.1)
        self.assertEqual(server.get("/v1/stats")[0], 200)
        server.close()

    def test_connections_of_one_client(self):
        """As many as are allowed; a quarter of all if nothing is said."""
        self.check_connections("--max-per-client", "4")
        self.check_connections("--max-connections", "16", "--threads", "1")

    def check_connections(self, *options):
        server = Server(*options)
        links = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(8)]
        answered = 0
        for link in links:
            try:
                link.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answered += b" 200 " in link.recv(1000)
            except ConnectionError:
                pass
        for link in links:
            link.close()
        self.assertEqual(answered, 4)
        server.close()

    def test_access_log(self):
        log = os.path.join(self.folder, "access.log")
        server = Server("--access-log", log, "--tokens", self.tokens)
        # A line is written once its answer has gone out: those of one connection, in the order of its requests.
        link = server.connect()
        server.ask("POST", "/v1/documents", {"id": "secret-id", "text": "secret words of a document"},
                   {"Authorization": "Bearer 0123456789abcdefW"}, connection=link)
        server.ask("GET", "/v1/documents/secret-id", connection=link)
        server.ask("GET", "/secret-path", connection=link)
        link.close()
        until = time.monotonic() + 60
        while time.monotonic() < until and pathlib.Path(log).read_text().count("\n") < 3:
            time.sleep(0.01)
        os.rename(log, log + ".1")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for("3 tokens")
        server.get("/healthz")
        server.close()
        with open(log + ".1") as file:
            text = file.read()
        lines = [json.loads(line) for line in text.splitlines()]
        self.assertNotIn("secret", text)
        self.assertEqual([(line["status"], line["route"]) for line in lines],
                         [(201, "/v1/documents"), (401, "/v1/documents/{id}"), (404, None)])
        self.assertEqual((lines[0]["token"], lines[0]["index"], lines[0]["client"]), ("writer", "default", "127.0.0.1"))
        with open(log) as file:
            self.assertEqual(json.loads(file.read())["route"], "/healthz")

    def test_socket_activation(self):
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.set_inheritable(True)
        # As systemd does: the socket is descriptor 3, and the variables name the process itself.
        command = f'LISTEN_PID=$$ LISTEN_FDS=1 exec "{DOPPEL}" serve --index seen --sandbox off'
        process = subprocess.Popen(["sh", "-c", command], cwd=self.folder, stderr=subprocess.PIPE,
                                   preexec_fn=lambda: os.dup2(listening.fileno(), 3, inheritable=True), close_fds=False)
        link = http.client.HTTPConnection("127.0.0.1", listening.getsockname()[1], timeout=30)
        link.request("GET", "/healthz")
        self.assertEqual(link.getresponse().status, 200)
        link.close()
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 0)
        listening.close()

    @unittest.skipIf(SANITIZED or os.geteuid() != 0, "needs root, and the sandbox")
    def test_user_and_sandbox(self):
        for name in ("seen", "indexes", "backups"):
            os.mkdir(os.path.join(self.folder, name))
            os.chown(os.path.join(self.folder, name), 65534, 65534)
        os.chmod(self.folder, 0o755)
        server = Server("--user", "nobody", folder=self.folder)
        with open(f"/proc/{server.process.pid}/status") as file:
            status = dict(line.split(":\t", 1) for line in file.read().splitlines())
        self.assertEqual(status["Uid"].split()[0], "65534")
        self.assertEqual((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"))
        self.assertEqual(server.post("/v1/documents", {"text": words.text("user")})[0], 201)
        self.assertEqual(server.ask("PUT", "/v1/indexes/more")[0], 201)
        self.assertEqual(server.ask("POST", "/v1/backups")[0], 201)
        latin = "<meta charset=koi8-r><p>" + words.text("page")
        self.assertEqual(server.post("/v1/check", {"html": latin})[0], 200)
        self.assertTrue(stat.S_ISREG(os.stat(server.path("indexes", "more.json")).st_mode))
        server.close()


if __name__ == "__main__":
    support.main()

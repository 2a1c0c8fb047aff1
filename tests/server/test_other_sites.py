"""Pages of other sites cannot use a server, whatever they send; its own pages, and programs, can."""
import os
import unittest

import support
from support import Server

# What the server does without a body, and what it does with one.
CHANGES = (("POST", "/v1/compact"), ("POST", "/v1/expire"), ("POST", "/v1/backups"), ("PUT", "/v1/indexes/foreign"))
FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/plain;charset=UTF-8")


class OtherSites(support.ServerTest):
    def setUp(self):
        self.own = f"http://127.0.0.1:{self.server.port}"

    def refused(self, method, path, headers, body=None, status=403, kind="cross-site"):
        self.assertProblem(self.server.ask(method, path, body, headers), status, kind)

    def tearDown(self):
        super().tearDown()
        self.assertEqual(os.listdir(self.server.path("backups")), [])
        self.assertEqual(os.listdir(self.server.path("indexes")), [])

    def test_origins(self):
        for origin in ("https://evil.example", "http://evil.example:80", "null", "", "file://", "http://localhost:1",
                       f"http://localhost:{self.server.port}", f"http://127.0.0.1:{self.server.port}0", "http://127.0.0.1",
                       f"http://127.0.0.1:{self.server.port}@evil.example", f"http://127.0.0.1.evil.example:{self.server.port}",
                       f"http://evil.example#127.0.0.1:{self.server.port}", "chrome-extension://abc", "127.0.0.1", "http://",
                       f"http://[::1]:{self.server.port}", "x" * 5000):
            with self.subTest(origin):
                for method, path in (*CHANGES, ("GET", "/v1/stats"), ("DELETE", "/v1/documents/x"), ("OPTIONS", "/v1/check")):
                    self.refused(method, path, {"Origin": origin})
                self.refused("POST", "/v1/check", {"Origin": origin, "Content-Type": "application/json"}, '{"text":"a"}')
        for method, path in (("POST", "/v1/compact"), ("POST", "/v1/expire")):
            self.assertEqual(self.server.ask(method, path, headers={"Origin": self.own})[0], 200)
            self.assertEqual(self.server.ask(method, path, {}, {"Origin": self.own.upper().replace("HTTP", "http")})[0], 200)
        local = {"Origin": f"http://LocalHost:{self.server.port}", "Host": f"localhost:{self.server.port}"}
        self.assertEqual(self.server.ask("POST", "/v1/compact", headers=local)[0], 200)

    def test_what_the_browser_says_of_a_page(self):
        for site in ("cross-site", "same-site", "nonsense"):
            for method, path in (*CHANGES, ("GET", "/v1/stats"), ("GET", "/")):
                self.refused(method, path, {"Sec-Fetch-Site": site})
                self.refused(method, path, {"Sec-Fetch-Site": site, "Origin": self.own})
                self.refused(method, path, {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"})
            form = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
            for method, path in CHANGES:
                self.refused(method, path, form)
            self.refused("GET", "/", {**form, "Sec-Fetch-Dest": "iframe"})
            # A link that somebody follows.
            self.assertEqual(self.server.ask("GET", "/", headers=form)[0], 200)
        for site in ("same-origin", "none"):
            self.assertEqual(self.server.ask("POST", "/v1/compact", headers={"Sec-Fetch-Site": site})[0], 200)
            self.assertEqual(self.server.ask("POST", "/v1/compact", {}, {"Sec-Fetch-Site": site, "Origin": self.own})[0], 200)

    def test_forms(self):
        """As old browsers send them, which say nothing of the page; with and without a field."""
        for kind in FORM_TYPES:
            for method, path in (*CHANGES, ("POST", "/v1/check"), ("POST", "/v1/documents"), ("POST", "/v1/batch?op=add")):
                for body in ('{"text":"a=b"}', ""):
                    self.refused(method, path, {"Content-Type": kind}, body, 415, "type")

    def test_bodies_without_a_type(self):
        for path in ("/v1/check", "/v1/documents", "/v1/compact", "/v1/batch?op=add"):
            got = self.server.raw(b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
                                  % path.encode())
            self.assertIn(b" 415 ", got.split(b"\r\n")[0])
            self.assertIn(b"urn:doppel:problem:type", got)

    def test_programs(self):
        """They say nothing of a page."""
        self.assertEqual(self.server.ask("POST", "/v1/compact")[0], 200)
        self.assertEqual(self.server.ask("POST", "/v1/expire", {})[0], 200)
        self.assertEqual(self.server.post("/v1/check", {"text": "a b c"})[0], 200)
        for kind in ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"):
            self.assertEqual(len(self.server.lines("/v1/batch?op=check", [{"text": "a"}], {"Content-Type": kind})), 1)

    def test_names(self):
        for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "128.0.0.1",
                     "127.0.0.1@evil.example", "[::2]", "[::1", "", "localhost:99999", "localhost:x"):
            with self.subTest(host):
                self.refused("GET", "/v1/stats", {"Host": host}, status=421, kind="host")
        for host in ("localhost", "LOCALHOST:7700", "127.0.0.1", "127.9.9.9:1", "[::1]", "[::1]:7700"):
            self.assertEqual(self.server.ask("GET", "/v1/stats", headers={"Host": host})[0], 200)

    def test_described(self):
        """Each operation says that it may answer 403; those with a body, 415, too."""
        for path, operations in self.server.get("/openapi.json")[2]["paths"].items():
            for method, operation in operations.items():
                self.assertIn("403", operation["responses"], (method, path))
                if "requestBody" in operation:
                    self.assertIn("415", operation["responses"], (method, path))


class BehindAProxy(unittest.TestCase):
    def test_origins(self):
        server = Server("--origins", "https://doppel.example, http://intern.example:8080")
        for headers in ({"Host": "doppel.example", "Origin": "https://doppel.example"}, {"Host": "doppel.example:443"},
                        {"Host": f"127.0.0.1:{server.port}", "Origin": "https://doppel.example:443", "Sec-Fetch-Site": "same-origin"},
                        {"Host": "intern.example:8080"}, {"Origin": "http://intern.example:8080"}):
            self.assertEqual(server.ask("POST", "/v1/compact", headers=headers)[0], 200, headers)
        for headers, status in (({"Origin": "http://doppel.example"}, 403), ({"Origin": "https://doppel.example:8443"}, 403),
                                ({"Origin": "http://intern.example"}, 403), ({"Host": "intern.example"}, 421),
                                ({"Host": "doppel.example:8443"}, 421)):
            self.assertEqual(server.ask("POST", "/v1/compact", headers=headers)[0], status, headers)
        server.close()

    def test_tokens_do_not_change_it(self):
        folder = support.tempfile.mkdtemp(prefix="doppel-sites-")
        tokens = os.path.join(folder, "tokens")
        with open(tokens, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("boss admin 0123456789abcdefA\n")
        server = Server("--tokens", tokens)
        own = {"Authorization": "Bearer 0123456789abcdefA"}
        self.assertEqual(server.ask("POST", "/v1/compact", headers={**own, "Origin": "https://evil.example"})[0], 403)
        self.assertEqual(server.ask("POST", "/v1/compact", headers={**own, "Sec-Fetch-Site": "same-site"})[0], 403)
        # Any name is a good one: pages elsewhere have no token.
        named = {**own, "Host": "doppel.example", "Origin": "https://doppel.example"}
        self.assertEqual(server.ask("POST", "/v1/compact", headers=named)[0], 200)
        server.close()
        support.shutil.rmtree(folder)


if __name__ == "__main__":
    support.main()

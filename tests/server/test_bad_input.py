"""What is wrong gets the right status and a problem document; the server stays alive, and others are served meanwhile."""
import gzip
import json
import os
import re
import socket
import struct
import threading
import time
import unittest

import support
import words
from support import FULL, SANITIZED

JSON = {"Content-Type": "application/json"}


class BadBodies(support.ServerTest):
    OPTIONS = ("--max-body", "1M")

    def check(self, body, status, kind, headers=None, **members):
        for path in ("/v1/check", "/v1/documents"):
            self.assertProblem(self.server.ask("POST", path, body, headers), status, kind, **members)

    def test_not_json(self):
        for body, position in (("", 1), ("{", 2), ('{"text":', 9), ('{"text":"a"} x', 14), ("{'text':1}", 2), ("nul", 1),
                               ('{"text":"a\nb"}', 11), ('{"text":"\\x"}', 11), ('{"text":01}', 11), ('{"a":1,}', 8),
                               ('{"text":"\\ud800"}', 16), ('{"text":"\\udc00\\ud800"}', 16), ('{"text":-}', 10)):
            with self.subTest(body):
                self.check(body, 400, "not-json", position=position)

    def test_invalid_utf8(self):
        for bad in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"):
            self.check(b'{"text":"' + bad + b'"}', 400, "not-json", position=10)

    def test_wrong_shape(self):
        for body, pointer, word in (
            ("[]", None, "an array"), ('"x"', None, "a string"), ("{}", None, "needs"), ('{"id":"x"}', None, "needs"),
            ('{"text":1}', "/text", "number"), ('{"url":[]}', "/url", "array"), ('{"text":"a","ttl":-1}', "/ttl", "ttl"),
            ('{"text":"a","ttl":1e999}', "/ttl", "ttl"), ('{"text":"a","ttl":1.5}', "/ttl", "whole"),
            ('{"text":"a","colour":"red"}', "/colour", "colour"), ('{"text":"a","a/b~c":1}', "/a~1b~0c", "a/b"),
            ('{"text":"a","source":{}}', "/source", "kept"), ('{"text":"a","ttl":"1"}', "/ttl", "string"),
        ):
            with self.subTest(body):
                answer = self.server.post("/v1/check", body)
                self.assertProblem(answer, 400, "wrong-shape", pointer=pointer)
                self.assertIn(word, answer[2]["detail"])

    def test_duplicate_keys(self):
        self.check('{"text":"a","text":"b"}', 400, "not-json", position=13)
        self.check('{"text":"a","t\\u0065xt":"b"}', 400, "not-json", position=13)

    def test_deep_and_huge(self):
        self.check("[" * 100000, 400, "not-json")
        self.check('{"text":"a","source":' + "9" * 500000 + "}", 400, "bad-document")
        self.check('{"text":' + "9" * 100000 + "}", 400, "wrong-shape", pointer="/text")
        self.check("[" + "1," * 500000 + "1]", 400, "wrong-shape")
        self.check("{" + ",".join(f'"k{i}":1' for i in range(300)) + "}", 400, "not-json")

    def test_long_ids_and_urls(self):
        for name in ("id", "url"):
            self.check({"text": "a b c", name: "x" * 100000}, 400, "bad-document")
        self.assertProblem(self.server.get("/v1/documents/" + "x" * 20000), 404, "no-document")

    def test_too_large(self):
        self.check({"text": "x" * (1 << 20)}, 413, "too-large")
        self.check(gzip.compress(b'{"text":"' + b"x" * (64 << 20) + b'"}'), 413, "too-large",
                   {**JSON, "Content-Encoding": "gzip"})
        answers = self.server.lines("/v1/batch?op=check", [{"text": "a"}, {"text": "x" * (3 << 20)}, {"text": "b"}])
        self.assertEqual([answer.get("line") for answer in answers], [None, 2, None])

    def test_a_gigabyte(self):
        """Refused by its head, before it is read."""
        got = self.server.raw(b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              b"Content-Length: 1073741824\r\n\r\n" + b"x" * 1000)
        self.assertIn(b" 413 ", got.split(b"\r\n")[0])
        self.assertIn(b"problem+json", got)

    def test_a_gigabyte_in_pieces(self):
        """A body without a length is read away, up to a limit, and then the connection ends."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as link:
            link.sendall(b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                         b"Transfer-Encoding: chunked\r\n\r\n")
            piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
            sent = 0
            try:
                for _ in range(1024):
                    link.sendall(piece)
                    sent += 1
            except OSError:
                pass
            self.assertLess(sent, 200)

    def test_broken_encoding(self):
        packed = gzip.compress(b'{"text":"some words to read"}')
        for body in (b"nonsense", packed[:-6], packed[:5] + b"\xff" * 20):
            self.check(body, 400, "bad-encoding", {**JSON, "Content-Encoding": "gzip"})
        self.check(b"nonsense", 400, "bad-encoding", {**JSON, "Content-Encoding": "zstd"})
        self.check(b"{}", 415, "type", {**JSON, "Content-Encoding": "br"})
        self.assertEqual(self.server.ask("POST", "/v1/check", packed, {**JSON, "Content-Encoding": "gzip"})[0], 200)

    def test_wrong_type(self):
        for kind in ("text/plain", "application/jsonx", "application/x-www-form-urlencoded", "multipart/form-data"):
            self.check("{}", 415, "type", {"Content-Type": kind})
        self.assertProblem(self.server.ask("POST", "/v1/batch?op=add", "{}", JSON), 415, "type")
        self.assertEqual(self.server.ask("POST", "/v1/check", '{"text":"a"}',
                                         {"Content-Type": "application/json; charset=utf-8"})[0], 200)

    def test_bad_results_and_sides(self):
        post = self.server.post
        self.assertProblem(post("/v1/dedupe", {}), 400, "wrong-shape")
        self.assertProblem(post("/v1/dedupe", {"results": [1]}), 400, "wrong-shape", pointer="/results/0")
        self.assertProblem(post("/v1/dedupe", {"results": [{}, {"text": 5}]}), 400, "wrong-shape", pointer="/results/1/text")
        self.assertProblem(post("/v1/dedupe", {"results": [{"folded": []}]}), 400, "wrong-shape")
        self.assertProblem(post("/v1/compare", {"a": {"text": ""}}), 400, "wrong-shape")
        self.assertProblem(post("/v1/compare", {"a": {}, "b": {"text": ""}}), 400, "wrong-shape", pointer="/a")
        self.assertProblem(post("/v1/compare", {"a": {"text": ""}, "b": {"text": ""}, "recipe": "no"}), 400, "bad-document")
        put = self.server.ask
        self.assertProblem(put("PUT", "/v1/indexes/a", {"preset": "no"}), 400, "wrong-shape", pointer="/preset")
        self.assertProblem(put("PUT", "/v1/indexes/a", {"recipe": "no"}), 400, "bad-document")
        self.assertEqual([index["name"] for index in self.server.get("/v1/indexes")[2]["indexes"]], ["default"])


class Batches(support.ServerTest):
    def batch(self, body, op="check", coding="identity"):
        """Gives the lines of the answer, and its length."""
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": coding}
        status, _, data = self.server.ask("POST", f"/v1/batch?op={op}", body, headers)
        self.assertEqual(status, 200, data)
        return [json.loads(line) for line in data.splitlines()], len(data)

    def assertLine(self, answer, line, kind, status, **members):
        problem = answer["problem"]
        self.assertEqual((answer["line"], problem["line"], problem["type"], problem["status"]),
                         (line, line, "urn:doppel:problem:" + kind, status), answer)
        for name, value in members.items():
            self.assertEqual(answer.get(name), value, answer)


class LargeAnswers(Batches):
    """What a batch makes the server hold is bounded, and the answer says where it was cut."""
    OPTIONS = ("--max-answer", "64K", "--max-spooled", "256K")

    def test_a_long_answer_is_cut(self):
        """All that was added is answered; the last line names the first that was not; what it names can be sent again."""
        documents = [{"id": f"cut{i}", "text": words.text(f"cut{i}", 30)} for i in range(3000)]
        body = "".join(json.dumps(document) + "\n" for document in documents)
        answers, length = self.batch(body, "add")
        self.assertLess(length, (64 << 10) + 512 * 400)
        done = len(answers) - 1
        self.assertLine(answers[-1], done + 1, "cut", 413)
        self.assertEqual([answer["id"] for answer in answers[:-1]], [document["id"] for document in documents[:done]])
        self.assertEqual(self.server.get(f"/v1/documents/cut{done - 1}")[0], 200)
        self.assertEqual(self.server.get(f"/v1/documents/cut{done}")[0], 404)
        again = self.batch("".join(json.dumps(document) + "\n" for document in documents[done:done + 100]), "add")[0]
        self.assertEqual([answer["id"] for answer in again], [document["id"] for document in documents[done:done + 100]])

    def test_answers_of_all(self):
        """Batches that are not read yet count together; when they are gone, others have their room."""
        body = "".join(json.dumps({"title": f"title {i}"}) + "\n" for i in range(1500)).encode()
        head = (b"POST /v1/batch?op=check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                b"Content-Length: %d\r\n\r\n" % (len(body) + (1 << 20)))
        links = []
        for _ in range(4):
            links.append(socket.create_connection(("127.0.0.1", self.server.port), timeout=20))
            links[-1].sendall(head + body + b" " * (400 << 10))  # enough for a worker to be called
        until = time.monotonic() + 60
        answers = []
        while time.monotonic() < until and "problem" not in (answers or [{}])[-1]:
            answers = self.batch('{"title":"a"}\n{"title":"b"}\n')[0]
            time.sleep(0.05)
        self.assertEqual(len(answers), 1)
        self.assertLine(answers[0], 1, "no-memory", 503)
        for link in links:
            link.close()
        while time.monotonic() < until and "problem" in answers[-1]:
            answers = self.batch('{"title":"a"}\n{"title":"b"}\n')[0]
            time.sleep(0.05)
        self.assertEqual(["problem" in answer for answer in answers], [False, False])

    def test_packed_bodies(self):
        """A few KiB that unpack to millions of bad lines."""
        bombs = (("gzip", gzip.compress(b"x\n" * (4 << 20))), ("zstd", words.zstd(b"x\n" * (4 << 20))),
                 ("gzip", gzip.compress(b"\n" * (8 << 20))), ("gzip", gzip.compress(b'{"title":"a"}\n' + b"x" * (8 << 20))))
        for coding, bomb in bombs:
            self.assertLess(len(bomb), 16 << 10)
            answers, length = self.batch(bomb, coding=coding)
            self.assertLess(length, 300 << 10)
            self.assertIn(answers[-1]["problem"]["type"], ("urn:doppel:problem:too-large", "urn:doppel:problem:cut"))
            self.assertProblem(self.server.ask("POST", "/v1/check", bomb, {**JSON, "Content-Encoding": coding}), 413, "too-large")
        # What repeats itself in a body that is small does no harm.
        answers, _ = self.batch(gzip.compress(b'{"title":"a"}\n' * 100 + b" " * (1 << 19)), coding="gzip")
        self.assertEqual((len(answers), "problem" in answers[-1]), (100, False))


class LargeLines(Batches):
    """What batches hold of their bodies is bounded, too, however slowly these arrive."""
    OPTIONS = ("--max-buffered", "56M", "--max-answer", "0")
    HEAD = b"POST /v1/batch?op=check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n"

    def begin(self, body, rest):
        """Sends what gets a worker called, but not the rest of the body."""
        link = socket.create_connection(("127.0.0.1", self.server.port), timeout=60)
        link.sendall(self.HEAD % (len(body) + rest) + body)
        return link

    def test_lines_that_do_not_end_count(self):
        links = [self.begin(b'{"title":"' + b"x" * (12 << 20), 1 << 20) for _ in range(3)]
        until = time.monotonic() + 60
        answers = [{}]
        while time.monotonic() < until and "problem" not in answers[-1]:
            answers = self.batch(b'{"title":"a"}\n{"text":"' + b"y" * (5 << 20) + b'"}\n{"title":"b"}\n')[0]
            time.sleep(0.05)
        self.assertNotIn("problem", answers[0])  # what came before is answered
        self.assertEqual(len(answers), 2)
        self.assertLine(answers[1], 2, "no-memory", 503)
        for link in links:
            link.close()
        while time.monotonic() < until and "problem" in answers[-1]:
            answers = self.batch(b'{"title":"a"}\n{"text":"' + b"y" * (5 << 20) + b'"}\n{"title":"b"}\n')[0]
            time.sleep(0.05)
        self.assertEqual(["problem" in answer for answer in answers], [False, False, False])

    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_values_of_earlier_lines_are_not_kept(self):
        """Lines of many values, each at another place among the lines that go to the engine together."""
        values = b'{"title":"t","other":[' + b"1," * 66000 + b"1]}\n"
        body = b"".join(b'{"title":"u"}\n' * (2 * number) + values for number in range(100))
        before = self.resident()
        link = self.begin(body + b" " * (300 << 10), 1 << 20)
        until = time.monotonic() + 60
        while time.monotonic() < until and self.lines_done() < 100 * 99:
            time.sleep(0.05)
        self.assertGreaterEqual(self.lines_done(), 100 * 99)
        self.assertLess(self.resident() - before, 64 << 20)
        link.close()

    @unittest.skipIf(SANITIZED, "sanitizers take memory of their own")
    def test_answers_that_are_not_read(self):
        """Once there is an answer, the server holds that, and no longer the body and its values."""
        body = b'{"results":[{"text":"' + b"x " * (2 << 20) + b'","values":[' + b"1," * 500000 + b"1]}]}"
        head = (b"POST /v1/dedupe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body))
        before = self.resident()
        links = []
        for _ in range(10):
            link = socket.socket()
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", self.server.port))
            link.settimeout(60)
            link.sendall(head + body)
            self.assertIn(b" 200 ", link.recv(100))
            links.append(link)
        self.assertLess(self.resident() - before, 260 << 20)  # 400 MB with them
        for link in links:
            link.close()

    def resident(self):
        with open(f"/proc/{self.server.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def lines_done(self):
        return int(re.search(r"\ndoppel_batch_lines_total (\d+)", self.server.get("/metrics")[2].decode())[1])


class BadLines(Batches):
    def test_many_bad_lines(self):
        """The first thousand one by one; then one line for those that follow each other, blank ones among them."""
        good = '{"title":"a good one"}\n'
        body = "x\n" * 600 + good + "[]\n" * 600 + good + "x\n\n{}\n" * 1000 + good * 2 + "{}\n" + good + "x\n" * 5
        answers, _ = self.batch(body)
        self.assertEqual([answer["line"] for answer in answers[:600]], list(range(1, 601)))
        self.assertEqual([answer["line"] for answer in answers[601:1001]], list(range(602, 1002)))
        rest = answers[1001:]
        self.assertEqual(["problem" in answer for answer in rest], [True, False, True, False, False, True, False, True])
        self.assertLine(rest[0], 1002, "wrong-shape", 400, lastLine=1201)
        self.assertLine(rest[2], 1203, "bad-lines", 400, lastLine=4202)
        self.assertLine(rest[5], 4205, "wrong-shape", 400, lastLine=4205)
        self.assertLine(rest[7], 4207, "not-json", 400, lastLine=4211)

    def test_a_broken_body_after_many_bad_lines(self):
        """What ends the body has a line of its own."""
        answers, _ = self.batch(gzip.compress(b"x\n" * 3000)[:-6], coding="gzip")
        self.assertEqual(len(answers), 1002)
        self.assertLine(answers[-2], 1001, "not-json", 400, lastLine=3000)
        self.assertLine(answers[-1], 3001, "bad-encoding", 400)

    def test_packed_lines_without_limits_of_the_answer(self):
        """Neither the ratio nor the lines let a small body become a long answer."""
        answers, length = self.batch(gzip.compress(b"x\n" * (4 << 20)), coding="gzip")
        self.assertLess(length, 300 << 10)
        self.assertLine(answers[-1], answers[-1]["line"], "too-large", 413)
        self.assertLine(answers[-2], 1001, "not-json", 400, lastLine=answers[-1]["line"] - 1)


class BadRequests(support.ServerTest):
    OPTIONS = ("--timeout", "3", "--receive-timeout", "3")

    def test_unknown_paths(self):
        for path in ("/v1", "/v1/", "/v1/nothing", "/v1/similar", "/v1/runs/", "/etc/passwd", "/v1/documents/", "//", "/v1/check/x",
                     "/v1/indexes/", "/v1/indexes/x/y/z/w", "/%2e%2e/", "/v1/indexes/default/compare"):
            with self.subTest(path):
                status, _, body = self.server.get(path)
                self.assertIn((status, body["type"].rsplit(":", 1)[1]), ((404, "no-route"), (405, "method")))

    def test_wrong_method(self):
        answer = self.server.get("/v1/check")
        self.assertProblem(answer, 405, "method")
        self.assertEqual(answer[1]["Allow"], "POST")
        for method in ("PUT", "PATCH", "OPTIONS", "BREW"):
            answer = self.server.ask(method, "/v1/documents/x")
            self.assertProblem(answer, 405, "method")
            self.assertEqual(answer[1]["Allow"], "GET, DELETE")
        self.assertEqual(self.server.ask("TRACE", "/healthz")[0], 405)

    def test_bad_parameters(self):
        for query in ("limit=0", "limit=x", "limit=1001", "limit=1.5", "limit=1&limit=2", "colour=red", "limit=%zz", "limit",
                      "similarity=2", "similarity=nan", "similarity=-1", "similarity=1e5", "distance=129", "limit=%00"):
            with self.subTest(query):
                self.assertProblem(self.server.get("/v1/documents/x/similar?" + query), 400, "bad-parameter")
        lines = {"Content-Type": "application/x-ndjson"}
        self.assertProblem(self.server.ask("POST", "/v1/batch", "", lines), 400, "bad-parameter")
        self.assertProblem(self.server.ask("POST", "/v1/batch?op=drop", "", lines), 400, "bad-parameter")
        self.assertProblem(self.server.get("/v1/documents/%zz"), 400, "bad-request")

    def test_http_1_0(self):
        got = self.server.raw(b"GET /healthz HTTP/1.0\r\n\r\n")
        self.assertIn(b"200 OK", got.split(b"\r\n")[0])
        self.assertTrue(got.endswith(b'{"status":"ok"}'))

    def test_smuggling(self):
        head = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        inner = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        for lengths in (b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"Content-Length: 4\r\nContent-Length: 60\r\n",
                        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"):
            got = self.server.raw(head + lengths + b"\r\n0\r\n\r\n" + inner)
            self.assertEqual(got.count(b"HTTP/1.1 "), 1, got)
            self.assertIn(b" 400 ", got.split(b"\r\n")[0])
            self.assertNotIn(b"doppel_uptime", got)
        for bad in (b"Content-Length: -1\r\n", b"Content-Length: 1x\r\n", b"Content-Length : 4\r\n",
                    b"Content-Length: 99999999999999999999999\r\n", b"Transfer-Encoding: gzip\r\n"):
            got = self.server.raw(head + bad + b"\r\n" + inner, timeout=5)
            self.assertNotIn(b"doppel_uptime", got)
            self.assertRegex(got.split(b"\r\n")[0], rb" (400|413|415|501) |^$")

    def test_one_head_an_answer(self):
        """What is wrong with a head is told in one answer, a problem document."""
        post = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        for data, status in ((b"GET /healthz HTTP/1.1\r\n\r\n", b"400"), (b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", b"400"),
                             (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\n\r\n", b"400"),
                             (b"GET /health z HTTP/1.1\r\nHost: localhost\r\n\r\n", b"400"),
                             (b"GET /healthz HTTP/1.0\r\nHost: localhost\r\nHost: localhost\r\n\r\n", b"400"),
                             (post + b"Content-Length: -1\r\n\r\n{}", b"400"), (post + b"Content-Length: 1x\r\n\r\n{}", b"400"),
                             (post + b"Content-Length: \r\n\r\n{}", b"400"), (post + b"Content-Length: 1 1\r\n\r\n{}", b"400"),
                             (post + b"Content-Length: 99999999999999999999999\r\n\r\n{}", b"413"),
                             (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n", b"400")):
            with self.subTest(data):
                got = self.server.raw(data, timeout=8)
                head, body = got.split(b"\r\n\r\n", 1)
                self.assertEqual(head.split(b" ")[1], status)
                self.assertNotIn(b"HTTP/1.1 4", body)
                self.assertIn(b"application/problem+json", head)
                self.assertEqual(json.loads(body)["status"], int(status))
                self.assertIn(b"Content-Length: %d" % len(body), head)

    def test_bad_lengths_beside_others(self):
        """Each gets its own answer, however the heads come, and whatever others do on the same threads."""
        bad = b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n"
        good = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        links = [socket.create_connection(("127.0.0.1", self.server.port), timeout=20) for _ in range(40)]
        for cut in (20, 45):
            for number, link in enumerate(links):
                whole = bad if number % 2 else good
                link.sendall(whole[:20] if cut == 20 else whole[20:])
        for number, link in enumerate(links):
            got = piece = link.recv(1000)
            while piece and b"}" not in got:
                piece = link.recv(1000)
                got += piece
            self.assertEqual((got.count(b"HTTP/1.1 "), got[9:12]), (1, b"400" if number % 2 else b"200"), got)
            if number % 2:
                self.assertEqual(link.recv(1000), b"")
            link.close()

    def test_not_http(self):
        for data in (b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHost\r\n\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 100000 + b"\r\n\r\n"):
            got = self.server.raw(data, timeout=8)
            self.assertNotIn(b" 200 ", got.split(b"\r\n")[0])
            self.assertEqual(self.server.get("/healthz")[0], 200)

    def test_other_host(self):
        """A page elsewhere cannot reach the server by a name that resolves to loopback."""
        self.assertProblem(self.server.ask("GET", "/v1/stats", headers={"Host": "evil.example"}), 421, "host")
        self.assertEqual(self.server.ask("GET", "/v1/stats", headers={"Host": "localhost:1"})[0], 200)

    def test_half_closed(self):
        body = json.dumps({"text": words.text("half")}).encode()
        got = self.server.raw(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body), half_close=True)
        self.assertIn(b"200 OK", got.split(b"\r\n")[0])
        got = self.server.raw(b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                              b"Content-Length: 1000\r\n\r\n{", half_close=True, timeout=8)
        self.assertNotIn(b" 200 ", got)

    def test_client_that_goes_in_the_middle_of_a_batch(self):
        data = "".join(json.dumps({"id": f"gone{i}", "text": words.text(i)}) + "\n" for i in range(2000)).encode()
        for cut in (10, 100000, 700000):
            with socket.create_connection(("127.0.0.1", self.server.port)) as link:
                link.sendall(b"POST /v1/batch?op=add HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
                             b"Content-Length: %d\r\n\r\n" % len(data) + data[:cut])
        self.assertEqual(self.server.post("/v1/check", {"text": words.text("after")})[0], 200)

    def test_clients_that_do_not_wait(self):
        """They send, and reset the connection before the answer is there, while it is worked on or is sent."""
        for number in range(200):
            body = json.dumps({"id": f"left{number}", "text": words.text(f"left{number}", 400)}).encode()
            path = (b"/v1/documents", b"/v1/check", b"/v1/similar", b"/v1/batch?op=add")[number % 4]
            kind = b"application/x-ndjson" if b"batch" in path else b"application/json"
            request = (b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
                       % (path, kind, len(body), body))
            link = socket.create_connection(("127.0.0.1", self.server.port))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.sendall(request * (1 + number % 3))
            if number % 5 == 0:
                time.sleep(0.003)
            link.close()
        self.assertEqual(self.server.post("/v1/check", {"text": words.text("after all")})[0], 200)

    def test_slow_senders(self):
        """A thousand that drip are shut in time; others are served meanwhile."""
        count = 1000 if FULL else 300
        links = []
        for number in range(count):
            link = socket.create_connection(("127.0.0.1", self.server.port))
            link.sendall((b"POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                          b"Content-Length: 1000\r\n\r\n{", b"GET /healthz HTTP/1.1\r\nHo", b"GE")[number % 3])
            links.append(link)
        deadline = time.time() + 40
        slowest = 0
        while links and time.time() < deadline:
            began = time.time()
            self.assertEqual(self.server.post("/v1/check", {"text": words.text("busy")})[0], 200)
            slowest = max(slowest, time.time() - began)
            alive = []
            for link in links:
                try:
                    link.send(b" ")
                    link.setblocking(False)
                    gone = link.recv(10) == b""
                except BlockingIOError:
                    gone = False
                except OSError:
                    gone = True
                if gone:
                    link.close()
                else:
                    link.setblocking(True)
                    alive.append(link)
            links = alive
            time.sleep(0.3)
        self.assertEqual(len(links), 0)
        self.assertLess(slowest, 10 if SANITIZED else 3)

    def test_answers_do_not_mix(self):
        """Bad requests of some do not disturb the answers of others."""
        wrong = []

        def good(number):
            link = self.server.connect()
            for i in range(30):
                name = f"mix{number}-{i}"
                body = self.server.ask("POST", "/v1/check", {"id": name, "title": name}, connection=link)[2]
                if body["id"] != name:
                    wrong.append(body)
            link.close()

        def bad():
            for _ in range(30):
                self.server.ask("POST", "/v1/check", "{")
                self.server.raw(b"nonsense\r\n\r\n", timeout=1)

        threads = [threading.Thread(target=good, args=(i,)) for i in range(8)] + [threading.Thread(target=bad) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    support.main()

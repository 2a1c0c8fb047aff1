"""Servers over a store that several processes share: a real Redis."""
import os
import re
import subprocess
import threading
import time
import unittest

import support
import words
from redis_server import Redis
from support import DOPPEL, Server, document_path

# Soon enough for a test: a call gives up after a second, and a question that has no answer by then is asked again.
QUICK = "timeout=1&retry=1"


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


class Store(support.ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.redis = Redis()
        cls.server = Server("--on-duplicate", "link", "--keep-text", store=cls.redis.url("prefix=routes"))

    @classmethod
    def tearDownClass(cls):
        try:
            cls.server.close()
        finally:
            cls.redis.close()

    def test_history_is_that_of_the_process(self):
        server = Server(store=self.redis.url("prefix=history"))
        for number in range(3):
            server.post("/v1/documents", {"id": f"h{number}", "text": words.text(f"h{number}")})
        self.assertTrue(until(lambda: sum(point["adds"] for point in server.get("/v1/history")[2]["points"]) == 3))
        body = server.get("/v1/history?step=60")[2]
        self.assertEqual((body["stored"], body["points"][-1]["documents"]), (False, 3))
        server.stop()
        server.start()
        body = server.get("/v1/history")[2]
        self.assertEqual(sum(point["adds"] for point in body["points"]), 0)
        server.close()

    def test_documents(self):
        ask = self.server
        record = {"id": "one/two ü", "url": "https://example.org/one", "title": "A title of its own", "text": words.text(1),
                  "source": "wire", "date": "2024-05-01"}
        self.assertFalse(ask.post("/v1/check", record)[2]["isDuplicate"])
        status, _, verdict = ask.post("/v1/documents", record)
        self.assertEqual((status, verdict["isDuplicate"], verdict["id"]), (201, False, "one/two ü"))
        status, _, verdict = ask.post("/v1/documents", {"id": "copy", "url": "https://example.net/", "text": words.text(1)})
        self.assertEqual((status, verdict["originalId"], verdict["reason"]), (200, "one/two ü", "content_hash"))
        status, _, again = ask.post("/v1/documents", record)
        self.assertEqual((status, again["known"]), (200, True))
        status, _, stored = ask.get(document_path("one/two ü"))
        self.assertEqual((status, stored["text"], stored["duplicates"], stored["fields"]),
                         (200, record["text"], 1, {"source": "wire", "date": "2024-05-01"}))
        self.assertEqual(stored["aliases"], ["https://example.net/"])
        self.assertEqual(ask.get(document_path("https://example.org/one"))[2]["id"], "one/two ü")
        self.assertEqual(ask.get(document_path("copy"))[2]["originalId"], "one/two ü")
        found = ask.post("/v1/similar?similarity=0.5&limit=3", {"text": words.near(1)})[2]["results"]
        self.assertEqual(found[0]["id"], "one/two ü")
        self.assertEqual(ask.get(document_path("one/two ü", "/similar?similarity=0.9"))[2]["results"], [])
        groups = ask.get("/v1/groups?limit=1000")[2]["groups"]
        self.assertIn(("one/two ü", 1), [(group["id"], group["duplicates"]) for group in groups])
        self.assertEqual(ask.ask("DELETE", document_path("one/two ü"))[2], {"id": "one/two ü", "removed": True})
        self.assertProblem(ask.get(document_path("one/two ü")), 404, "no-document")
        self.assertProblem(ask.ask("DELETE", document_path("one/two ü")), 404, "no-document")

    def test_batches_and_figures(self):
        records = list(words.documents(200, seed="store"))
        before = self.server.get("/v1/stats")[2]
        answers = self.server.lines("/v1/batch?op=add", records)
        self.assertEqual([answer["id"] for answer in answers], [record["id"] for record in records])
        new = sum(not answer["isDuplicate"] for answer in answers)
        after = self.server.get("/v1/stats")[2]
        self.assertEqual(after["documents"] - before["documents"], new)
        self.assertEqual((after["preset"], after["near"], after["ttl"]), ("crawl", "similarity", 30 * 86400))
        checked = self.server.lines("/v1/batch?op=check", records)
        self.assertTrue(all(answer["isDuplicate"] for answer in checked))
        self.assertEqual(self.server.ask("POST", "/v1/expire")[0], 200)
        self.assertTrue(until(lambda: f'doppel_index_documents{{index="default"}} {after["documents"]}\n'.encode() in
                              self.server.get("/metrics")[2]))
        figures = self.server.get("/metrics")[2].decode()
        self.assertIn('doppel_store_up{index="default"} 1', figures)
        self.assertRegex(figures, r'doppel_store_reconnects_total\{index="default"\} \d')
        self.assertEqual(self.server.get("/v1/indexes")[2]["indexes"][0]["name"], "default")

    def test_what_redis_does_itself(self):
        self.assertEqual(self.server.ask("POST", "/v1/compact")[0], 200)
        refused = self.server.ask("POST", "/v1/backups")
        self.assertProblem(refused, 501, "off")
        self.assertIn("doppel export", refused[2]["detail"])
        self.assertEqual(self.server.get("/readyz")[0], 200)

    def test_further_indexes_are_folders(self):
        self.assertEqual(self.server.ask("PUT", "/v1/indexes/more")[0], 201)
        self.assertEqual(self.server.post("/v1/indexes/more/documents", {"text": words.text("more")})[0], 201)
        self.assertEqual(self.server.get("/v1/indexes/more")[2]["documents"], 1)
        self.assertEqual(self.server.ask("DELETE", "/v1/indexes/more")[0], 200)


class Several(unittest.TestCase):
    def test_one_answer(self):
        """Copies that reach several servers at once: one of each is new, and the others name it."""
        redis = Redis()
        servers = [Server(store=redis.url()) for _ in range(3)]
        answers, threads = [], []

        def send(server, number):
            link = server.connect()
            for clique in range(60):
                record = {"id": f"{clique}/{number}", "text": words.text(f"clique {clique}")}
                answers.append((clique, *server.ask("POST", "/v1/documents", record, connection=link)))
            link.close()

        for number in range(6):
            threads.append(threading.Thread(target=send, args=(servers[number % 3], number)))
            threads[-1].start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 360)
        new = {clique: body["id"] for clique, status, _, body in answers if status == 201}
        self.assertEqual(sum(status == 201 for _, status, _, _ in answers), 60)
        for clique, status, _, body in answers:
            self.assertEqual((status, body["originalId"]), (201, None) if body["id"] == new[clique] else (200, new[clique]))
        for server in servers:
            self.assertEqual(server.get("/v1/stats")[2]["documents"], 60)
            server.close()
        redis.close()


class Away(support.ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.redis = Redis()
        cls.server = Server(store=cls.redis.url(QUICK))

    @classmethod
    def tearDownClass(cls):
        try:
            cls.server.close()
        finally:
            cls.redis.close()

    def ready(self):
        return self.server.get("/readyz")[0] == 200

    def test_away_and_back(self):
        for name, leave, come in (("paused", self.redis.pause, self.redis.go_on), ("gone", self.redis.stop, self.redis.start)):
            with self.subTest(name):
                record = {"id": name, "text": words.text(name)}
                self.assertEqual(self.server.post("/v1/documents", record)[0], 201)
                leave()
                # One that is under way finds out by itself.
                waits = self.server.post("/v1/documents", {"id": name + " too", "text": words.text(name + " too")})
                self.assertProblem(waits, 503, "away")
                self.assertEqual(waits[1]["Retry-After"], "1")
                self.assertTrue(until(lambda: not self.ready()))
                for method, path, body in (("GET", "/readyz", None), ("POST", "/v1/check", record), ("POST", "/v1/documents", record),
                                           ("GET", document_path(name), None), ("GET", "/v1/stats", None), ("GET", "/v1/groups", None)):
                    began = time.monotonic()
                    answer = self.server.ask(method, path, body)
                    self.assertProblem(answer, 503, "away")
                    self.assertEqual(answer[1]["Retry-After"], "1")
                    self.assertLess(time.monotonic() - began, 10)
                self.assertEqual(self.server.get("/healthz")[0], 200)
                self.assertIn(b'doppel_store_up{index="default"} 0', self.server.get("/metrics")[2])
                self.assertEqual(self.server.get("/v1/indexes")[0], 200)
                come()
                self.assertTrue(until(self.ready), self.server.said())
                status, _, again = self.server.post("/v1/documents", record)
                self.assertEqual((status, again["known"], again["isDuplicate"]), (200, True, False))
                self.assertIn(b'doppel_store_up{index="default"} 1', self.server.get("/metrics")[2])
        self.assertIn("does not answer", self.server.said())
        self.assertIn("answers again", self.server.said())
        reconnects = re.search(rb'store_reconnects_total\{index="default"\} (\d+)', self.server.get("/metrics")[2])
        self.assertGreater(int(reconnects[1]), 0)

    def test_full(self):
        """A Redis that is full takes no documents, but answers."""
        self.redis.ask("CONFIG", "SET", "maxmemory", "1")
        answer = self.server.post("/v1/documents", {"id": "full", "text": words.text("full")})
        self.assertProblem(answer, 503, "away")
        self.assertEqual(self.server.post("/v1/check", {"text": words.text("full")})[0], 200)
        self.redis.ask("CONFIG", "SET", "maxmemory", "0")
        self.assertEqual(self.server.post("/v1/documents", {"id": "full", "text": words.text("full")})[0], 201)

    def test_stopped(self):
        """SIGTERM ends a server whose requests wait for a store that is away for longer than anybody waits; they get 503."""
        for prefix, leave in (("paused", self.redis.pause), ("stopped", self.redis.stop)):
            server = Server(store=self.redis.url(f"prefix={prefix}&retry=900&timeout=900"))
            self.assertEqual(server.post("/v1/documents", {"id": "a", "text": words.text("a")})[0], 201)
            leave()
            answers = []
            asking = threading.Thread(target=lambda: answers.append(server.post("/v1/documents", {"id": "b", "text": words.text("b")})))
            asking.start()
            time.sleep(0.5)
            server.close()
            asking.join(60)
            self.assertProblem(answers[0], 503, "away")
            if leave == self.redis.pause:
                self.redis.go_on()
            else:
                self.redis.start()
        self.assertTrue(until(self.ready))

    def test_batch(self):
        self.redis.pause()
        lines = self.server.ask("POST", "/v1/batch?op=add", '{"id":"line","text":"some words for a line of a batch"}\n',
                                {"Content-Type": "application/x-ndjson"})
        if lines[0] == 200:
            self.assertIn(b"urn:doppel:problem:away", lines[2])
        else:
            self.assertProblem(lines, 503, "away")
        self.redis.go_on()
        self.assertTrue(until(self.ready))
        answers = self.server.lines("/v1/batch?op=add", [{"id": "line", "text": "some words for a line of a batch"}])
        self.assertFalse(answers[0]["isDuplicate"])


class Password(unittest.TestCase):
    SECRET = "s3cret:/@%?#"

    def setUp(self):
        self.redis = Redis("--requirepass", self.SECRET)
        self.file = os.path.join(self.redis.folder, "password")
        with open(os.open(self.file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(self.SECRET + "\n")

    def tearDown(self):
        self.redis.close()

    def check(self, server):
        self.assertEqual(server.post("/v1/documents", {"text": words.text("password")})[0], 201)
        with open(f"/proc/{server.process.pid}/cmdline") as file:
            self.assertNotIn("s3cret", file.read())
        self.assertNotIn("s3cret", str(server.get("/v1/stats")[2]) + server.get("/metrics")[2].decode())
        server.ask("DELETE", document_path(server.post("/v1/check", {"text": words.text("password")})[2]["originalId"]))
        server.stop()
        self.assertNotIn("s3cret", server.said())
        server.close()

    def test_ways(self):
        self.check(Server("--store-password-file", self.file, store=self.redis.url()))
        self.check(Server(store=self.redis.url(login=":s3cret%3A%2F%40%25%3F%23@")))
        self.check(Server(store=self.redis.url(login="default:s3cret%3A%2F%40%25%3F%23@")))
        self.check(Server(store=self.redis.url(), environment={"DOPPEL_REDIS_PASSWORD": self.SECRET}))

    def test_wrong(self):
        for login in (":s3cret-not@", ""):
            done = subprocess.run([DOPPEL, "serve", "--store", self.redis.url("retry=0", login), "--listen", "127.0.0.1:0",
                                   *support.SANDBOX], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 4, done.stderr)
            self.assertNotIn("s3cret", done.stderr)
            self.assertRegex(done.stderr, "(?i)password|auth")


class Configuration(unittest.TestCase):
    def test_who_goes_first(self):
        redis = Redis()
        server = Server(store=redis.url("prefix=first"), environment={"DOPPEL_INDEX": "/nowhere"})
        self.assertEqual(server.get("/readyz")[0], 200)
        server.close()
        server = Server(environment={"DOPPEL_STORE": "redis://127.0.0.1:1"})
        self.assertEqual(server.get("/v1/stats")[2]["near"], "similarity")
        server.close()
        redis.close()


if __name__ == "__main__":
    support.main()

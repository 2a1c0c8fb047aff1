"""Every route, and every status it has when things go well."""
import gzip
import json
import os
import subprocess
import tempfile
import threading
import time
import unittest

import support
import words
from support import document_path


class Routes(support.ServerTest):
    OPTIONS = ("--on-duplicate", "link", "--keep-text")

    def test_check_add_get_similar_remove(self):
        ask = self.server
        record = {"id": "one/two ü", "url": "https://example.org/one", "title": "A title of its own", "text": words.text(1),
                  "source": "wire", "date": "2024-05-01"}
        self.assertFalse(ask.post("/v1/check", record)[2]["isDuplicate"])
        status, _, verdict = ask.post("/v1/documents", record)
        self.assertEqual((status, verdict["isDuplicate"], verdict["id"]), (201, False, "one/two ü"))
        status, _, verdict = ask.post("/v1/documents", {"id": "copy", "url": "https://example.net/", "text": words.near(1)})
        self.assertEqual((status, verdict["isDuplicate"], verdict["originalId"], verdict["reason"]),
                         (200, True, "one/two ü", "content_hash"))
        self.assertTrue(0.8 <= verdict["evidence"]["similarity"] < 1 and verdict["evidence"]["verified"])
        status, _, again = ask.post("/v1/documents", record)
        self.assertEqual((status, again["known"]), (200, True))
        status, _, stored = ask.get(document_path("one/two ü"))
        self.assertEqual((status, stored["text"], stored["duplicates"], stored["fields"]),
                         (200, record["text"], 1, {"source": "wire", "date": "2024-05-01"}))
        self.assertEqual(stored["aliases"], ["https://example.net/"])
        self.assertEqual(stored["copies"], 1)
        self.assertEqual(ask.get(document_path("https://example.org/one"))[2]["id"], "one/two ü")
        self.assertEqual(ask.get(document_path("copy"))[2]["originalId"], "one/two ü")
        found = ask.post("/v1/similar?similarity=0.5&limit=3", {"text": words.near(1, edits=4)})[2]["results"]
        self.assertEqual(found[0]["id"], "one/two ü")
        self.assertEqual(ask.get(document_path("one/two ü", "/similar?similarity=0.5"))[2]["results"], [])
        groups = ask.get("/v1/groups?limit=1000")[2]["groups"]
        self.assertIn(("one/two ü", 1), [(group["id"], group["duplicates"]) for group in groups])
        counts = [group["duplicates"] for group in groups]
        self.assertEqual(counts, sorted(counts, reverse=True))
        self.assertEqual(ask.ask("DELETE", document_path("one/two ü"))[2], {"id": "one/two ü", "removed": True})
        self.assertProblem(ask.get(document_path("one/two ü")), 404, "no-document")
        self.assertProblem(ask.ask("DELETE", document_path("one/two ü")), 404, "no-document")
        self.assertProblem(ask.get(document_path("one/two ü", "/similar")), 404, "no-document")
        self.assertProblem(ask.post("/v1/similar", {"url": "https://example.org/nowhere"}), 404, "no-document")
        self.assertEqual(ask.post("/v1/similar?distance=128", {"text": ""})[2], {"results": []})
        self.assertEqual(ask.post("/v1/similar?distance=128&similarity=1e-130", {"text": words.text(1)})[0], 200)

    def test_made_ids(self):
        verdict = self.server.post("/v1/documents", {"url": "http://www.example.com/made?utm_source=x"})[2]
        self.assertEqual(verdict["id"], "https://example.com/made")
        self.assertRegex(self.server.post("/v1/documents", {"text": words.text("made")})[2]["id"], "^[0-9a-f]{16}$")

    def test_batch(self):
        records = list(words.documents(300, seed="batch"))
        bad = ["{not json\n", "[]\n", '{"id":"x"}\n', '{"id":"x","text":["y"]}\n', "\n"]
        answers = self.server.lines("/v1/batch?op=add", records[:100] + bad + records[100:])
        self.assertEqual(len(answers), 304)
        self.assertEqual([answer["line"] for answer in answers if "line" in answer], [101, 102, 103, 104])
        self.assertEqual([answer["id"] for answer in answers if "id" in answer], [record["id"] for record in records])
        details = [answer["problem"]["detail"] for answer in answers if "line" in answer]
        self.assertIn("text must be", details[3])
        checked = self.server.lines("/v1/batch?op=check", records)
        self.assertTrue(all(answer["isDuplicate"] for answer in checked))
        for packed, name in ((gzip.compress, "gzip"), (words.zstd, "zstd")):
            body = packed("".join(json.dumps(record) + "\n" for record in records).encode())
            status, _, data = self.server.ask("POST", "/v1/batch?op=check", body, {
                "Content-Type": "application/x-ndjson", "Content-Encoding": name})
            self.assertEqual([json.loads(line) for line in data.splitlines()], checked)
        status, _, data = self.server.ask("POST", "/v1/batch?op=check", body[:-9], {
            "Content-Type": "application/x-ndjson", "Content-Encoding": "zstd"})
        self.assertEqual(json.loads(data.splitlines()[-1])["problem"]["type"], "urn:doppel:problem:bad-encoding")

    def test_batches_ignore_other_fields(self):
        """A file that `doppel add` takes is taken by a batch; a single document has to name its fields correctly."""
        records = [{"id": f"o{number}", "text": words.text(f"other{number}"), "colour": "red", "tags": ["a", {"b": [1]}], "source": "wire"} for number in range(3)]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "documents.jsonl")
            with open(path, "w") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
            done = subprocess.run([support.DOPPEL, "add", "--index", os.path.join(folder, "index"), path], capture_output=True, text=True, check=True)
        for op in ("check", "add"):
            self.assertEqual(self.server.lines(f"/v1/batch?op={op}", records), [json.loads(line) for line in done.stdout.splitlines()])
        self.assertEqual(self.server.get("/v1/documents/o0")[2]["fields"], {"source": "wire"})
        self.assertIn("must be", self.server.lines("/v1/batch?op=add", [{"text": "x", "source": [1]}])[0]["problem"]["detail"])
        for path in ("/v1/check", "/v1/documents", "/v1/similar"):
            answer = self.server.post(path, {"txet": "a typing error", "title": "x"})
            self.assertProblem(answer, 400, "wrong-shape", pointer="/txet")
            for name in ("unknown field \"txet\"", "id, url, title, text, html, ttl, source, date"):
                self.assertIn(name, answer[2]["detail"])
        schemas = self.server.get("/openapi.json")[2]["components"]["schemas"]
        self.assertEqual([schemas[name]["additionalProperties"] for name in ("Document", "Record", "RecordOfIndex")], [False, True, True])

    def test_what_is_known_of_a_text(self):
        """Whether a document has no text, or the index keeps none: `words` of the document, and `keepText` of the index."""
        put = self.server.ask
        self.assertEqual(put("PUT", "/v1/indexes/without", {"keepText": False})[0], 201)
        for base, keeps in (("/v1", True), ("/v1/indexes/without", False)):
            put("POST", base + "/documents", {"id": "url", "url": "https://example.org/only"})
            put("POST", base + "/documents", {"id": "words", "url": "https://example.org/words", "text": words.text("only")})
            self.assertEqual(self.server.get(base + "/stats")[2]["keepText"], keeps)
            for name, count in (("url", 0), ("words", len(words.text("only").split()))):
                stored = self.server.get(f"{base}/documents/{name}")[2]
                verdict = put("POST", base + "/check", {"url": stored["url"]})[2]
                self.assertEqual((verdict["reason"], verdict["originalId"], stored["words"]), ("exact_url", name, count))
                self.assertEqual(bool(stored["text"]), bool(keeps and count))
        put("DELETE", "/v1/indexes/without")

    def test_slow_batch_is_worked_on_as_it_comes(self):
        """Lines are added before the body has ended, and all verdicts come in order."""
        link = self.server.connect()
        link.putrequest("POST", "/v1/batch?op=add")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Transfer-Encoding", "chunked")
        link.endheaders()
        sent = 0

        def send(count):
            nonlocal sent
            data = "".join(json.dumps({"id": f"slow{sent + i}", "text": words.text(f"slow{sent + i}")}) + "\n"
                           for i in range(count)).encode()
            sent += count
            link.send(b"%x\r\n%s\r\n" % (len(data), data))

        send(1000)
        for _ in range(600):
            if self.server.get(document_path("slow10"))[0] == 200:
                break
            time.sleep(0.05)
        else:
            self.fail("nothing was added while the body was still coming")
        for _ in range(5):
            send(3)
            time.sleep(0.1)
        link.send(b"0\r\n\r\n")
        response = link.getresponse()
        answers = [json.loads(line) for line in response.read().splitlines()]
        self.assertEqual([answer["id"] for answer in answers], [f"slow{i}" for i in range(1015)])
        link.close()

    def test_long_answers_are_spooled(self):
        records = [{"id": f"s{i}", "title": f"t{i}"} for i in range(12000)]
        answers = self.server.lines("/v1/batch?op=check", records)
        self.assertEqual([answer["id"] for answer in answers], [record["id"] for record in records])

    def test_dedupe(self):
        results = [{"id": 1, "rank": 1.50, "text": words.text("r1")}, {"id": "2", "text": words.text("r2"), "tags": ["a", {}]},
                   {"id": 3, "text": words.near("r1")}, {}, {"url": "https://example.org/x"},
                   {"url": "http://www.example.org/x#a"}]
        status, _, body = self.server.post("/v1/dedupe", {"results": results})
        self.assertEqual(status, 200)
        shown = body["results"]
        self.assertEqual(shown[0], {**results[0], "folded": [results[2]]})
        self.assertEqual(shown[1], {**results[1], "folded": []})
        self.assertEqual(shown[-1]["folded"], [results[5]])
        self.assertEqual(self.server.post("/v1/dedupe", {"results": []})[2], {"results": []})

    def test_compare(self):
        a, b = "ä𝄞 " + words.text("c", 60), words.near("c", 60) + " more"
        status, _, body = self.server.post("/v1/compare", {"a": {"text": a}, "b": {"text": b}})
        self.assertEqual(status, 200)
        self.assertTrue(0 < body["similarity"] < 1)
        self.assertEqual((body["textA"], body["textB"]), (None, None))
        for passage in body["passages"]:
            left = a.encode()[passage["aStart"]:passage["aEnd"]].decode()
            self.assertEqual(left, b.encode()[passage["bStart"]:passage["bEnd"]].decode())
            wide = a.encode("utf-16-le")[2 * passage["aFrom"]:2 * passage["aTo"]].decode("utf-16-le")
            self.assertEqual(left, wide)
        page = f"<html><title>t</title><body><article><p>{b}</p></article></body></html>"
        body = self.server.post("/v1/compare", {"a": {"text": b}, "b": {"html": page}, "recipe": "article"})[2]
        self.assertEqual((body["sameDigest"], body["textB"].strip()), (True, b))

    def test_problems_name_no_options_of_the_command(self):
        for answer in (self.server.post("/v1/compare", {"a": {"text": "x"}, "b": {"text": "y"}, "recipe": "simhash64:weight=tfidf"}),
                       self.server.ask("PUT", "/v1/indexes/weighted", {"recipe": "simhash64:weight=tfidf"})):
            self.assertProblem(answer, 400, "bad-document", detail="recipe: weight=tfidf needs a document-frequency table, which the server does not take")

    def test_indexes(self):
        ask = self.server
        status, headers, body = ask.ask("PUT", "/v1/indexes/other-1", {"preset": "crawl", "fields": "color", "ttl": 60})
        self.assertEqual((status, body["name"], body["preset"], headers["Location"]),
                         (201, "other-1", "crawl", "/v1/indexes/other-1"))
        self.assertProblem(ask.ask("PUT", "/v1/indexes/other-1"), 409, "exists")
        self.assertEqual(ask.post("/v1/indexes/other-1/documents", {"id": "x", "text": words.text("i"), "color": "red"})[0], 201)
        self.assertProblem(ask.post("/v1/indexes/other-1/documents", {"text": "y", "source": "s"}), 400, "wrong-shape",
                           pointer="/source")
        self.assertEqual(ask.get("/v1/indexes/other-1/documents/x")[2]["fields"], {"color": "red"})
        self.assertProblem(ask.get("/v1/documents/x"), 404, "no-document")
        self.assertEqual(ask.get("/v1/indexes/other-1/stats")[2]["ttl"], 60)
        self.assertEqual([index["name"] for index in ask.get("/v1/indexes")[2]["indexes"]], ["default", "other-1"])
        self.assertEqual(ask.ask("PUT", "/v1/indexes/third")[0], 201)
        self.assertEqual(ask.ask("DELETE", "/v1/indexes/third")[2], {"name": "third", "removed": True})
        ask.stop()
        ask.start()
        self.assertEqual(ask.get("/v1/indexes/other-1")[2]["documents"], 1)
        self.assertProblem(ask.get("/v1/indexes/third"), 404, "no-index")
        self.assertProblem(ask.get("/v1/indexes/third/stats"), 404, "no-index")
        self.assertProblem(ask.ask("DELETE", "/v1/indexes/third"), 404, "no-index")
        self.assertProblem(ask.ask("DELETE", "/v1/indexes/default"), 409, "default-index")
        for name in ("..", "a%2Fb", "A", "x" * 65, ".hidden", "a.b", "%00"):
            self.assertEqual(ask.ask("PUT", "/v1/indexes/" + name)[0], 400, name)
        self.assertEqual(ask.ask("DELETE", "/v1/indexes/other-1")[0], 200)
        self.assertEqual(os.listdir(ask.path("indexes")), [])

    def test_index_that_lost_its_settings_is_kept(self):
        """A folder without its settings may be half made, or an index with documents: that one is never removed."""
        ask = self.server
        self.assertEqual(ask.ask("PUT", "/v1/indexes/lost")[0], 201)
        self.assertEqual(ask.post("/v1/indexes/lost/documents", {"id": "x", "text": words.text("lost")})[0], 201)
        ask.stop()
        os.remove(ask.path("indexes", "lost.json"))
        ask.start()
        self.assertIn(ask.ask("PUT", "/v1/indexes/lost")[0], (500, 503))
        ask.stop()
        with open(ask.path("indexes", "lost.json"), "w") as file:
            file.write("{}")
        ask.start()
        self.assertEqual(ask.get("/v1/indexes/lost/documents/x")[0], 200)
        self.assertEqual(ask.ask("DELETE", "/v1/indexes/lost")[0], 200)
        self.assertEqual(ask.ask("PUT", "/v1/indexes/lost")[0], 201)
        ask.stop()
        os.remove(ask.path("indexes", "lost.json"))
        ask.start()
        self.assertEqual(ask.ask("PUT", "/v1/indexes/lost", {"preset": "crawl"})[0], 201)
        self.assertEqual(ask.ask("DELETE", "/v1/indexes/lost")[0], 200)

    def test_backup_is_an_index(self):
        self.server.post("/v1/documents", {"id": "kept", "text": words.text("kept")})
        status, _, body = self.server.ask("POST", "/v1/backups")
        self.assertEqual(status, 201)
        self.assertRegex(body["name"], "^default-[0-9TZ-]+$")
        done = subprocess.run([support.DOPPEL, "get", "--index", self.server.path("backups", body["name"]), "kept"],
                              capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["id"], "kept")

    def test_upkeep(self):
        self.server.post("/v1/documents", {"id": "short", "text": words.text("short"), "ttl": 1})
        time.sleep(2.1)
        self.assertProblem(self.server.get("/v1/documents/short"), 404, "no-document")
        self.assertEqual(self.server.ask("POST", "/v1/expire")[0], 200)
        self.assertEqual(self.server.ask("POST", "/v1/compact", {})[2], {"compacted": True})

    def test_idempotency(self):
        record = {"id": "key", "text": words.text("key")}
        first = self.server.post("/v1/documents", record, Idempotency_Key="k1")
        self.assertEqual(first[0], 201)
        again = self.server.post("/v1/documents", record, Idempotency_Key="k1")
        self.assertEqual((again[0], again[2]), (201, first[2]))
        self.assertEqual(self.server.post("/v1/documents", record, Idempotency_Key="k2")[0], 200)
        self.assertProblem(self.server.post("/v1/documents", {"text": "other"}, Idempotency_Key="k1"), 422, "key-reused")
        self.assertProblem(self.server.post("/v1/documents", record, Idempotency_Key="k" * 256), 400, "bad-request")

    def test_simultaneous_copies_have_one_original(self):
        answers = []

        def add(number):
            answers.append(self.server.post("/v1/documents", {"id": f"same{number}", "text": words.text("same")})[2])

        threads = [threading.Thread(target=add, args=(i,)) for i in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        new = [answer for answer in answers if not answer["isDuplicate"]]
        self.assertEqual((len(answers), len(new)), (40, 1))
        self.assertEqual({answer["originalId"] for answer in answers if answer["isDuplicate"]}, {new[0]["id"]})

    def test_keep_alive_and_pipelining(self):
        link = self.server.connect()
        for _ in range(3):
            self.assertEqual(self.server.ask("GET", "/healthz", connection=link)[0], 200)
        link.close()
        one = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        got = self.server.raw(one * 3 + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 4)

    def test_near(self):
        """Who names a similarity or a distance means that kind of near; what contradicts itself is refused."""
        put = self.server.ask
        for number, (options, near, value) in enumerate((
                ({"preset": "crawl", "similarity": 0.4}, "similarity", 0.4), ({"preset": "general", "distance": 7}, "distance", 7),
                ({"preset": "article", "near": "similarity", "similarity": 0.5}, "similarity", 0.5), ({"distance": 0}, "distance", 0))):
            self.assertEqual(put("PUT", f"/v1/indexes/near{number}", options)[0], 201)
            stats = self.server.get(f"/v1/indexes/near{number}/stats")[2]
            self.assertEqual((stats["near"], stats[near]), (near, value), options)
        for options, pointer in (({"near": "distance", "similarity": 0.5}, "/similarity"), ({"near": "similarity", "distance": 3}, "/distance"),
                                 ({"similarity": 0.5, "distance": 3}, "/distance"),
                                 ({"preset": "crawl", "near": "distance", "similarity": 0.5}, "/similarity")):
            self.assertProblem(put("PUT", "/v1/indexes/refused", options), 400, "wrong-shape", pointer=pointer)
        # 0 is not taken for the default.
        for name in ("similarity", "titleSimilarity", "minWords", "ttl", "sample"):
            self.assertProblem(put("PUT", "/v1/indexes/refused", {name: 0}), 400, "wrong-shape", pointer="/" + name)
        for number in range(4):
            self.assertEqual(put("DELETE", f"/v1/indexes/near{number}")[0], 200)

    def test_head(self):
        status, headers, body = self.server.ask("HEAD", "/v1/stats")
        self.assertEqual((status, body), (200, None))
        self.assertGreater(int(headers["Content-Length"]), 100)

    def test_console_and_descriptions(self):
        status, headers, body = self.server.get("/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertIn(b"doppel", body)
        self.assertEqual(self.server.get("/?utm_source=x&%zz=")[2], body)
        self.assertProblem(self.server.get("/console/none.js"), 404, "no-route")
        self.assertProblem(self.server.get("/console/..%2Findex.html"), 404, "no-route")
        described = self.server.get("/openapi.json")[2]
        self.assertIn("/v1/indexes/{index}/documents/{id}/similar", described["paths"])
        self.assertEqual(self.server.get("/readyz")[2], {"status": "ready"})

    def test_metrics_are_prometheus(self):
        self.server.post("/v1/check", {"text": words.text("m")})
        status, headers, body = self.server.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn(b'doppel_verdicts_total{index="default",reason="unique"}', body)
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, b""))


if __name__ == "__main__":
    support.main()

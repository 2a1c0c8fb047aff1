"""Files that are deduplicated by the server: the same bytes as `doppel dedup` writes, found while the file arrives; and
files, ids and moments that are not good ones."""
import bz2
import gzip
import json
import lzma
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import support
import words

LINES = {"Content-Type": "application/x-ndjson"}


def chain(count):
    """Texts of which each is near the one before, but not those before that."""
    parts = words.text("chain", 200).split()
    for number in range(count):
        for _ in range(6):
            parts[(17 * number + 31 * _) % 200] = f"new{number}x{_}"
        yield {"id": f"chain{number}", "text": " ".join(parts)}


def corpus():
    return [*words.documents(900, seed="runs"), *chain(60), *chain(3), {"id": "short", "text": "one two"}, {"id": "short2", "text": "One, two!"},
            {"id": "empty", "text": ""}, {"id": "page", "html": f"<p>{words.text('runs/3')}"}, {"id": "ü/ä", "text": words.near("runs/5", edits=4)}]


def jsonl(records):
    return "".join(json.dumps(record) + "\n" for record in records).encode()


class RunTest(support.ServerTest):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp(prefix="doppel-runs-test-")
        cls.server = support.Server(*cls.OPTIONS, "--tmp", cls.tmp)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        left = os.listdir(cls.tmp)
        shutil.rmtree(cls.tmp)
        assert not left, left

    def upload(self, body, query="", headers=LINES):
        status, answered, run = self.server.ask("POST", "/v1/runs" + query, body, headers)
        self.assertEqual(status, 201, run)
        self.assertEqual(answered["Location"], "/v1/runs/" + run["id"])
        return run

    def finish(self, run):
        while run["state"] not in ("done", "failed"):
            status, _, run = self.server.get(f"/v1/runs/{run['id']}/events?after={run['version']}")
            self.assertEqual(status, 200, run)
        return run

    def delete(self, run):
        self.assertEqual(self.server.ask("DELETE", f"/v1/runs/{run['id']}")[2], {"id": run["id"], "removed": True})

    def folders(self):
        return [name for top in os.listdir(self.tmp) for name in os.listdir(os.path.join(self.tmp, top)) if name != "lock"]

    def wait_until_gone(self):
        for _ in range(200):
            if not self.folders():
                return
            time.sleep(0.05)
        self.fail(f"still there: {self.folders()}")


class Runs(RunTest):
    def dedup(self, path, similarity, *options):
        out, removed = path + ".out", path + ".removed"
        subprocess.run([support.DOPPEL, "dedup", path, "-o", out, "--removed", removed, "--similarity", str(similarity), *options],
                       check=True, capture_output=True)
        with open(out, "rb") as kept, open(removed, "rb") as gone:
            return kept.read(), gone.read()

    def test_the_same_as_the_command(self):
        records = corpus()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pages.jsonl")
            with open(path, "wb") as file:
                file.write(jsonl(records))
            run = self.finish(self.upload(jsonl(records), "?name=pages.jsonl"))
            self.assertEqual((run["state"], run["whole"], run["documents"], run["why"]), ("done", True, len(records), None))
            removed_at = {round(step["similarity"], 2): step["removed"] for step in run["thresholds"]}
            self.assertEqual(sorted(removed_at), [step / 100 for step in range(50, 101)])
            for similarity in (0.5, 0.6, 0.8, 0.9, 1.0):
                kept, removed = self.dedup(path, similarity)
                self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept?similarity={similarity}")[2], kept)
                self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/removed?similarity={similarity}")[2], removed)
                self.assertEqual(removed_at[similarity], len(removed.splitlines()), similarity)
            kept, removed = self.dedup(path, 0.8)
            self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[2], kept)
            originals = [json.loads(line)["originalId"] for line in removed.splitlines()]
            self.assertEqual((run["kept"], run["removed"], run["groups"]),
                             (len(kept.splitlines()), len(originals), len(set(originals))))
            self.assertEqual(run["identical"], sum(json.loads(line)["similarity"] == 1 for line in removed.splitlines()))
            largest = run["largest"][0]
            self.assertEqual(largest["size"], 1 + max(originals.count(one) for one in originals))
            self.assertEqual([copy["id"] for copy in largest["copies"]],
                             [json.loads(line)["id"] for line in removed.splitlines() if json.loads(line)["originalId"] == largest["id"]][:6])
            self.delete(run)

    def test_formats(self):
        texts = [words.text("f1"), words.text("f2"), words.near("f1")]
        table = "key,body\n" + "".join(f"k{number},{text}\n" for number, text in enumerate(texts))
        run = self.finish(self.upload(table.encode(), "?name=t.csv&textKey=body&idKey=key", {"Content-Type": "text/csv"}))
        self.assertEqual((run["documents"], run["removed"], run["largest"][0]["id"]), (3, 1, "k0"))
        self.assertEqual(json.loads(self.server.get(f"/v1/runs/{run['id']}/removed")[2])["id"], "k2")
        self.delete(run)
        body = jsonl({"id": number, "text": text} for number, text in enumerate(texts))
        for packed in (gzip.compress(body), words.zstd(body)):
            run = self.finish(self.upload(packed, "?name=x.jsonl.gz", {"Content-Type": "application/octet-stream"}))
            self.assertEqual((run["removed"], run["received"]), (1, len(body)))
            self.delete(run)
        run = self.finish(self.upload(gzip.compress(body), "", {**LINES, "Content-Encoding": "gzip"}))
        self.assertEqual(run["removed"], 1)
        self.delete(run)

    def test_examples_are_at_the_threshold(self):
        run = self.finish(self.upload(jsonl(corpus())))
        for threshold in (0.6, 0.8, 0.95):
            pairs = self.server.get(f"/v1/runs/{run['id']}/examples?similarity={threshold}&limit=3")[2]["examples"]
            similarities = [pair["similarity"] for pair in pairs]
            self.assertEqual(similarities, sorted(similarities))
            self.assertTrue(0 < sum(one < threshold for one in similarities) <= 3 and len(similarities) <= 6)
            for pair in pairs:
                compared = self.server.post("/v1/compare", {"a": {"text": pair["a"]["text"]}, "b": {"text": pair["b"]["text"]}})[2]
                self.assertAlmostEqual(compared["similarity"], pair["similarity"], 5)
        self.delete(run)

    def test_watched_while_the_file_arrives(self):
        records = list(words.documents(6000, seed="watched"))
        body, name = jsonl(records), "watched-0123456789"
        link = self.server.connect()
        link.putrequest("POST", f"/v1/runs?id={name}")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Content-Length", str(len(body)))
        link.endheaders()
        link.send(body[:len(body) // 2])
        seen = {"version": 0, "documents": 0}
        for _ in range(100):
            status, _, run = self.server.get(f"/v1/runs/{name}/events?after={seen['version']}")
            seen = run if status == 200 else seen
            if seen["documents"]:
                break
            time.sleep(0.05)
        self.assertTrue(seen["state"] == "receiving" and seen["removed"] and seen["largest"] and not seen["whole"], seen)
        self.assertProblem(self.server.get(f"/v1/runs/{name}/kept"), 409, "in-progress")
        link.send(body[len(body) // 2:])
        run = json.loads(link.getresponse().read())
        link.close()
        run = self.finish(run)
        self.assertEqual((run["documents"], run["whole"]), (6000, True))
        self.assertProblem(self.server.ask("POST", f"/v1/runs?id={name}", b"", LINES), 409, "in-progress")
        self.delete(run)
        self.wait_until_gone()

    def test_two_uploads_at_once(self):
        answers = []

        def send(number):
            answers.append(self.finish(self.upload(jsonl(words.documents(2000, seed=number)), f"?name={number}")))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(run["name"] for run in answers), ["0", "1", "2", "3"])
        for run in answers:
            self.assertEqual((run["state"], run["documents"]), ("done", 2000))
            self.delete(run)
        self.wait_until_gone()

    def test_an_upload_that_breaks_off_leaves_nothing(self):
        body = jsonl(words.documents(2000, seed="broken"))
        head = f"POST /v1/runs?id=broken-0123456789 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n" \
               f"Content-Length: {len(body)}\r\n\r\n".encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as link:
            link.sendall(head + body[:len(body) // 2])
            for _ in range(100):
                if self.folders():
                    break
                time.sleep(0.02)
        self.wait_until_gone()
        self.assertProblem(self.server.get("/v1/runs/broken-0123456789"), 404, "no-run")

    def test_a_run_deleted_while_its_file_arrives(self):
        link = self.server.connect()
        link.putrequest("POST", "/v1/runs?id=deleted-0123456789")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Transfer-Encoding", "chunked")
        link.endheaders()
        piece = jsonl(words.documents(600, seed="deleted"))
        link.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        for _ in range(100):
            if self.server.ask("DELETE", "/v1/runs/deleted-0123456789")[0] == 200:
                break
            time.sleep(0.02)
        link.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(piece), piece))
        response = link.getresponse()
        self.assertEqual((response.status, json.loads(response.read())["type"]), (404, "urn:doppel:problem:no-run"))
        link.close()
        self.wait_until_gone()

    def test_files_that_cannot_be_used(self):
        run = self.finish(self.upload(b"a,b\n1,2\n", "?name=t.csv", {"Content-Type": "text/csv"}))
        self.assertEqual(run["state"], "failed")
        self.assertIn("t.csv", run["why"] + run["name"])
        self.assertNotIn(self.tmp, run["why"])
        self.assertProblem(self.server.get(f"/v1/runs/{run['id']}/kept"), 409, "run-failed")
        self.delete(run)
        run = self.finish(self.upload(b"", "?name=nothing.jsonl"))
        self.assertEqual((run["state"], run["documents"], run["largest"]), ("done", 0, []))
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[2], b"")
        self.delete(run)
        run = self.finish(self.upload(jsonl(corpus()[:50]) + b"{broken\n\xff\xfe\n[1]\n"))
        self.assertEqual((run["state"], run["documents"]), ("done", 50))
        self.assertGreaterEqual(run["bad"], 2)
        self.delete(run)

    def test_packed_files_that_are_not_whole(self):
        body = gzip.compress(jsonl(corpus()))
        for packed, status, kind in ((body[:-9], 400, "bad-encoding"), (b"\x1f\x8bnonsense", 400, "bad-encoding"),
                                     (gzip.compress(body), 415, "type"), (gzip.compress(b" " * (64 << 20)), 413, "too-large")):
            self.assertProblem(self.server.ask("POST", "/v1/runs", packed, LINES), status, kind)
        self.wait_until_gone()

    def test_files_that_the_library_would_unpack(self):
        """To any size: bzip2 and xz are refused, and zstd that begins with a skippable frame counts unpacked."""
        body = jsonl(corpus())
        for packed in (bz2.compress(body), bz2.compress(b""), lzma.compress(body), gzip.compress(lzma.compress(body))):
            self.assertProblem(self.server.ask("POST", "/v1/runs", packed, LINES), 415, "type")
        skipped = b"\x5f\x2a\x4d\x18\x03\0\0\0abc"
        run = self.finish(self.upload(skipped + words.zstd(body)))
        self.assertEqual((run["state"], run["received"]), ("done", len(body)))
        self.delete(run)
        self.assertProblem(self.server.ask("POST", "/v1/runs", gzip.compress(skipped + words.zstd(body)), LINES), 415, "type")
        run = self.finish(self.upload(b"BZh9 is how bzip2 begins\n", "?name=x.txt"))
        self.assertEqual((run["state"], run["documents"]), ("done", 1))
        self.delete(run)
        self.wait_until_gone()

    def test_an_id_is_free_once_its_run_is_deleted(self):
        body = jsonl(words.documents(4000, seed="again"))
        for _ in range(5):  # the first run may still be analysed when the next one comes
            self.delete(self.upload(body, "?id=again-0123456789"))
        run = self.finish(self.upload(body, "?id=again-0123456789"))
        self.assertEqual((run["state"], run["documents"]), ("done", 4000))
        self.delete(run)
        self.wait_until_gone()

    def test_bad_requests(self):
        post = lambda query, **headers: self.server.ask("POST", "/v1/runs" + query, b"{}\n", headers or LINES)
        for query in ("?id=short", "?id=UPPER-0123456789", "?id=..%2F..%2Fetc%2Fpasswd0", "?id=" + 70 * "a", "?similarity=0", "?similarity=2",
                      "?name=", "?name=" + 300 * "x", "?other=1", "?textKey="):
            self.assertProblem(post(query), 400, "bad-parameter")
        for kind in ("text/plain", "multipart/form-data", "application/x-www-form-urlencoded", "application/json"):
            self.assertProblem(self.server.ask("POST", "/v1/runs", b"{}\n", {"Content-Type": kind}), 415, "type")
        for path in ("none", "..", "%2e%2e%2f%2e%2e", "a%2Fkept", "%00", "x" * 3000):
            for way in ("", "/events", "/examples", "/kept", "/removed"):
                self.assertProblem(self.server.get(f"/v1/runs/{path}{way}"), 404, "no-run")
            self.assertProblem(self.server.ask("DELETE", f"/v1/runs/{path}"), 404, "no-run")
        self.assertProblem(self.server.get("/v1/runs"), 405, "method")
        for query in ("after=-1", "after=x", "after=1e9", "x=1"):
            self.assertProblem(self.server.get("/v1/runs/none/events?" + query), 400, "bad-parameter")
        for query in ("similarity=1.1", "similarity=", "limit=0", "limit=11"):
            self.assertProblem(self.server.get("/v1/runs/none/examples?" + query), 400, "bad-parameter")
        self.assertEqual(self.folders(), [])

    def test_stopping_ends_the_waiting(self):
        """A request that waits for news does not keep the server from stopping, and nothing of its runs is left."""
        link = self.server.connect()
        link.putrequest("POST", "/v1/runs?id=waiting-0123456789")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Transfer-Encoding", "chunked")
        link.endheaders()
        for _ in range(100):
            status, _, run = self.server.get("/v1/runs/waiting-0123456789")
            if status == 200:
                break
            time.sleep(0.02)
        waiter = threading.Thread(target=lambda: self.server.get("/v1/runs/waiting-0123456789/events?after=999"))
        waiter.start()
        time.sleep(0.3)
        began = time.time()
        link.close()
        self.server.stop()
        waiter.join()
        self.assertLess(time.time() - began, 10)
        self.assertEqual(os.listdir(self.tmp), [])
        self.server.start()


class Limits(RunTest):
    OPTIONS = ("--max-run", "100K", "--max-runs", "2", "--run-ttl", "2")

    def test_limits(self):
        body = jsonl(corpus())
        self.assertGreater(len(body), 100 << 10)
        self.assertProblem(self.server.ask("POST", "/v1/runs", body, LINES), 413, "too-large")
        self.assertProblem(self.server.ask("POST", "/v1/runs", iter([body]), LINES), 413, "too-large")
        self.assertProblem(self.server.ask("POST", "/v1/runs", gzip.compress(body), LINES), 413, "too-large")
        self.wait_until_gone()
        held = [self.upload(body[:1000].rsplit(b"\n", 1)[0]) for _ in range(2)]
        answer = self.server.ask("POST", "/v1/runs", b"{}\n", LINES)
        self.assertProblem(answer, 503, "full")
        self.assertTrue(answer[1]["Retry-After"])
        time.sleep(3.5)
        for run in held:
            self.assertProblem(self.server.get(f"/v1/runs/{run['id']}"), 404, "no-run")
        self.wait_until_gone()

    def test_folders_of_killed_servers_are_removed(self):
        self.upload(jsonl(corpus()[:5]))
        other = os.path.join(self.tmp, "doppel-runs-stays")
        os.mkdir(other)
        self.server.stop(9)
        self.assertEqual(len(os.listdir(self.tmp)), 2)
        self.server.start()
        self.delete(self.upload(b""))
        self.wait_until_gone()
        self.assertEqual(len(os.listdir(self.tmp)), 2)  # one of this server, and one that has no lock
        os.rmdir(other)


class Rights(unittest.TestCase):
    def test_writing_is_needed(self):
        folder = tempfile.mkdtemp(prefix="doppel-server-")
        path = os.path.join(folder, "tokens")
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("reader read 0123456789abcdef\nwriter write fedcba9876543210\n")
        server = support.Server("--tokens", path, folder=folder)
        reads, writes = ({"Authorization": "Bearer " + token} for token in ("0123456789abcdef", "fedcba9876543210"))
        try:
            self.assertEqual(server.ask("POST", "/v1/runs", b"", {**LINES, **reads})[0], 403)
            self.assertEqual(server.ask("POST", "/v1/runs", b"", LINES)[0], 401)
            run = server.ask("POST", "/v1/runs", b"", {**LINES, **writes})[2]
            self.assertEqual(server.ask("GET", f"/v1/runs/{run['id']}", headers=reads)[0], 200)
            self.assertEqual(server.ask("DELETE", f"/v1/runs/{run['id']}", headers=reads)[0], 403)
            self.assertEqual(server.ask("DELETE", f"/v1/runs/{run['id']}", headers=writes)[0], 200)
        finally:
            server.close()
            shutil.rmtree(folder)

    def test_a_full_disk(self):
        """Files cannot grow beyond a limit here, as if the disk were full: the upload is refused, and nothing is left."""
        folder = tempfile.mkdtemp(prefix="doppel-server-")
        server = support.Server("--tmp", folder, folder=folder)
        try:
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (200 << 10, resource.RLIM_INFINITY))
            status, headers, body = server.ask("POST", "/v1/runs", jsonl(corpus()), LINES)
            self.assertEqual((status, headers["Content-Type"], body["type"]), (503, "application/problem+json", "urn:doppel:problem:full"))
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.assertEqual(server.ask("POST", "/v1/runs", jsonl(corpus()), LINES)[0], 201)
        finally:
            server.close()
            left = [name for name in os.listdir(folder) if name.startswith("doppel-runs")]
            shutil.rmtree(folder)
        self.assertEqual(left, [])


if __name__ == "__main__":
    support.main()

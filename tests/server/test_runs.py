"""Files that are deduplicated by the server: the same bytes as `doppel dedup` writes, found while the file arrives; and
files, ids and moments that are not good ones."""
import bz2
import gzip
import io
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
import zipfile
import zlib
from urllib.parse import quote

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


def memory(server):
    """The most bytes of memory that a server had."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return 1024 * int(next(line.split()[1] for line in file if line.startswith("VmHWM")))


def open_bytes(server, folder):
    """The bytes of the files below a folder that a server has open, with or without a name."""
    total, files = 0, f"/proc/{server.process.pid}/fd"
    for name in os.listdir(files):
        try:
            if os.readlink(os.path.join(files, name)).startswith(folder):
                total += os.stat(os.path.join(files, name)).st_blocks * 512
        except OSError:
            pass
    return total


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
        for _ in range(1200):
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

    def test_analysed_again_at_once(self):
        """A request that analyses a file again may come while the thread that analysed it before ends."""
        run = self.finish(self.upload(b'{"id":"a","text":"some words of a page"}\n'))
        link = self.server.connect()
        answers = [self.server.ask("POST", f"/v1/runs/{run['id']}?textKey={key}", connection=link)[0] for _ in range(300) for key in ("text", "none")]
        link.close()
        self.assertEqual(set(answers) | {200, 409}, {200, 409})
        self.assertGreater(answers.count(200), 1)
        self.finish(self.server.get(f"/v1/runs/{run['id']}")[2])
        self.delete(run)

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
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[2].decode(), "".join(table.splitlines(True)[:3]))
        self.delete(run)
        body = jsonl({"id": number, "text": text} for number, text in enumerate(texts))
        for packed in (gzip.compress(body), words.zstd(body)):
            run = self.finish(self.upload(packed, "?name=x.jsonl.gz", {"Content-Type": "application/octet-stream"}))
            self.assertEqual((run["removed"], run["received"]), (1, len(body)))
            self.delete(run)
        run = self.finish(self.upload(gzip.compress(body), "", {**LINES, "Content-Encoding": "gzip"}))
        self.assertEqual(run["removed"], 1)
        self.delete(run)
        word = io.BytesIO()
        with zipfile.ZipFile(word, "w") as file:
            file.writestr("word/document.xml", f"<w:document><w:p><w:t>{texts[0]}</w:t></w:p></w:document>")
        run = self.finish(self.upload(word.getvalue(), "?name=a.b/One.DOCX", {"Content-Type": "application/octet-stream"}))
        self.assertEqual((run["state"], run["documents"], run["bad"]), ("done", 1, 0))
        self.delete(run)

    def test_tables_stay_tables(self):
        """The kept rows of CSV and TSV are those of `doppel dedup`, byte for byte, with their type and a name for the file."""
        texts = [words.text("c1"), words.text("c2"), words.near("c1"), words.text("c3")]
        csv = "id,text,\"n,\"\r\n" + "".join(f"r{number},\"{text}\r\nsecond \"\"line\"\"\",{number}\r\n" for number, text in enumerate(texts))
        tsv = "id\ttext\tn\n" + "".join(f"r{number}\t{text}\t{number}\n" for number, text in enumerate(texts))
        cases = [("pages.csv", csv, "text/csv; charset=utf-8", "pages-kept.csv"), ("bom.CSV", "\ufeff" + csv.replace("\r\n", "\n"), "text/csv; charset=utf-8", "bom-kept.csv"),
                 ("cut.csv", csv.rstrip(), "text/csv; charset=utf-8", "cut-kept.csv"), ("a/pages.tsv", tsv, "text/tab-separated-values; charset=utf-8", "pages-kept.tsv"),
                 ("x.tab", tsv, "text/tab-separated-values; charset=utf-8", "x-kept.tab"), ("none.csv", "id,text,n\n", "text/csv; charset=utf-8", "none-kept.csv"),
                 ("list.json", json.dumps([{"id": number, "text": text} for number, text in enumerate(texts)]), "application/x-ndjson", "list-kept.jsonl"),
                 ("p.jsonl", jsonl({"id": number, "text": text} for number, text in enumerate(texts)).decode(), "application/x-ndjson", "p-kept.jsonl")]
        for name, body, kind, file_name in cases:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, os.path.basename(name))
                with open(path, "wb") as file:
                    file.write(body.encode())
                done = subprocess.run([support.DOPPEL, "dedup", path, "-o", "-", "--format", name.rsplit(".")[-1].lower().replace("tab", "tsv")], capture_output=True, check=True)
            for packed, ending in ((body.encode(), ""), (gzip.compress(body.encode()), ".gz"), (words.zstd(body.encode()), ".zst")):
                run = self.finish(self.upload(packed, "?name=" + quote(name + ending), {"Content-Type": "application/octet-stream"}))
                status, headers, kept = self.server.get(f"/v1/runs/{run['id']}/kept")
                self.assertEqual((status, kept, headers["Content-Type"]), (200, done.stdout, kind), name)
                self.assertEqual(headers["Content-Disposition"], f"attachment; filename=\"{file_name}\"; filename*=UTF-8''{file_name}")
                status, headers, removed = self.server.get(f"/v1/runs/{run['id']}/removed")
                self.assertEqual((headers["Content-Type"], len(removed.splitlines())), ("application/x-ndjson", run["removed"]))
                self.assertIn(file_name.split("-kept")[0] + "-removed.jsonl", headers["Content-Disposition"])
                self.delete(run)
        # Without a name, by the type.
        for kind, body, ending in (("text/csv; charset=utf-8", csv, "csv"), ("text/tab-separated-values", tsv, "tsv")):
            run = self.finish(self.upload(body.encode(), "", {"Content-Type": kind}))
            status, headers, kept = self.server.get(f"/v1/runs/{run['id']}/kept")
            self.assertEqual((kept.splitlines()[0], run["removed"], headers["Content-Disposition"].split("=")[1]), (body.encode().splitlines()[0], 1, f'"file-kept.{ending}"; filename*'))
            self.delete(run)
        # A name may have any characters.
        run = self.finish(self.upload(csv.encode(), "?name=" + quote("ü\"\r\nX-Evil: 1;.csv"), {"Content-Type": "text/csv"}))
        status, headers, kept = self.server.get(f"/v1/runs/{run['id']}/kept")
        self.assertEqual((status, headers["X-Evil"]), (200, None))
        self.assertEqual(headers["Content-Disposition"], "attachment; filename=\"_____X-Evil__1_-kept.csv\"; filename*=UTF-8''%C3%BC%22%0D%0AX-Evil%3A%201%3B-kept.csv")
        self.delete(run)

    def test_several_columns_are_the_text(self):
        questions = [words.text("q1", 30), words.text("q2", 30), words.text("q1", 30), words.text("q1", 30)]
        answers = [words.text("a1", 30), words.text("a2", 30), words.text("a1", 30), words.text("a3", 30)]
        rows = [{"id": f"r{number}", "question": question, "answer": answer} for number, (question, answer) in enumerate(zip(questions, answers))]
        table = "id,question,answer\n" + "".join(",".join(row.values()) + "\n" for row in rows) + "r4,,\n"
        for name, body in (("qa.csv", table.encode()), ("qa.jsonl", jsonl(rows) + b'{"id":"r4","question":"","answer":""}\n')):
            run = self.finish(self.upload(body, "?name=" + name))
            self.assertEqual((run["state"], run["empty"]), ("failed", 0))
            again = self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=question,answer")[2]
            again = self.finish(again)
            self.assertEqual((again["state"], again["textKey"], again["documents"], again["empty"], again["removed"]), ("done", "question,answer", 5, 1, 1), again["why"])
            self.assertEqual(json.loads(self.server.get(f"/v1/runs/{run['id']}/removed")[2])["id"], "r2")
            self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[2], b"".join(line for line in body.splitlines(True) if b"r2" not in line))
            # Of one column alone more is removed; one that is not there is reported.
            alone = self.finish(self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=question")[2])
            self.assertEqual(alone["removed"], 2)
            self.delete(run)

    def test_documents_without_words_are_counted(self):
        run = self.finish(self.upload(jsonl([{"text": ""}, {"text": "..."}, {"text": "one word"}, {"text": " \n"}])))
        self.assertEqual((run["documents"], run["empty"], run["removed"]), (4, 3, 0))
        self.delete(run)

    def test_all_groups_a_page_at_a_time(self):
        records = [{"id": f"g{group}/{copy}", "text": words.text(f"group{group}", 120) if copy else words.near(f"group{group}", 120, 1)}
                   for group in range(60) for copy in range(2 + (group % 4) * 3)]
        run = self.finish(self.upload(jsonl(records)))
        self.assertEqual((run["groups"], len(run["largest"])), (60, 24))
        path = f"/v1/runs/{run['id']}/groups"
        whole = self.server.get(path + "?limit=1000&copies=100")[2]
        self.assertEqual((len(whole["largest"]), whole["next"], whole["groups"]), (60, None, 60))
        for similarity in (0.5, 0.8, 1):
            removed = [json.loads(line) for line in self.server.get(f"/v1/runs/{run['id']}/removed?similarity={similarity}")[2].splitlines()]
            for limit in (1, 7, 24, 25, 60):
                found, cursor = [], 0
                while cursor is not None:
                    page = self.server.get(f"{path}?similarity={similarity}&limit={limit}" + (f"&cursor={cursor}" if cursor else ""))[2]
                    self.assertLessEqual(len(page["largest"]), limit)
                    found += page["largest"]
                    cursor = page["next"]
                self.assertEqual(len(found), page["groups"])
                self.assertEqual([(-group["size"], group["number"]) for group in found], sorted((-group["size"], group["number"]) for group in found))
                for group in found:
                    copies = [(one["id"], one["similarity"]) for one in removed if one["originalId"] == group["id"]]
                    self.assertEqual([(copy["id"], copy["similarity"]) for copy in group["copies"]], copies[:6])
                    self.assertEqual(group["size"], 1 + len(copies))
            every = self.server.get(f"{path}?similarity={similarity}&limit=1000&copies=100")[2]["largest"]
            self.assertEqual(sum(len(group["copies"]) for group in every), len(removed))
        self.assertEqual(self.server.get(path + "?cursor=60")[2]["largest"], [])
        self.assertEqual(self.server.get(path + "?copies=0&limit=2")[2]["largest"][1]["copies"], [])
        # Any two documents of a group can be compared, also of one that is not among the largest.
        last = whole["largest"][-1]
        both = self.server.get(f"/v1/runs/{run['id']}/pair?a={last['number']}&b={last['copies'][0]['number']}")[2]
        self.assertEqual((both["a"]["text"], both["b"]["id"]), (records[last["number"]]["text"], last["copies"][0]["id"]))
        self.delete(run)

    def test_a_page_of_large_groups_ends_early(self):
        """Ids are shown up to a KiB, which takes six times as much where all its characters are escaped."""
        run = self.finish(self.upload(jsonl({"id": f"{number} {copy}" + 2000 * "\u0001", "text": words.text(f"g{number}")}
                                            for number in range(100) for copy in range(40))))
        found, cursor, pages = [], None, 0
        while cursor is not None or not pages:
            status, headers, body = self.server.get(f"/v1/runs/{run['id']}/groups?limit=1000&copies=100" + (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(status, 200)
            self.assertLess(int(headers["Content-Length"]), 20 << 20)
            found += [group["number"] for group in body["largest"]]
            cursor, pages = body["next"], pages + 1
        self.assertEqual((found, body["groups"]), ([40 * number for number in range(100)], 100))
        self.assertGreater(pages, 1)
        self.delete(run)

    def test_why_a_document_is_removed(self):
        records = corpus()
        run = self.finish(self.upload(jsonl(records)))
        path = f"/v1/runs/{run['id']}/document?id="
        for similarity in (0.5, 0.8, 0.95):
            removed = {one["id"]: one for one in (json.loads(line) for line in self.server.get(f"/v1/runs/{run['id']}/removed?similarity={similarity}")[2].splitlines())}
            originals = [one["originalId"] for one in removed.values()]
            for record in records[::7] + [one for one in records if one["id"] in ("short2", "page", "ü/ä", "empty")]:
                status, _, found = self.server.get(f"{path}{quote(str(record['id']), safe='')}&similarity={similarity}")
                self.assertEqual((status, found["id"], found["similarity"]), (200, str(record["id"]), similarity))
                why = removed.get(found["id"])
                # Ids that come twice are of the one that is removed.
                self.assertEqual(found["kept"], not why, found)
                original = why["originalId"] if why else found["id"]
                if why:
                    self.assertEqual((found["originalId"], found["reason"], found["originalSimilarity"]), (why["originalId"], why["reason"], why["similarity"]))
                    self.assertEqual(records[found["originalNumber"]]["id"], why["originalId"])
                else:
                    self.assertEqual((found["originalId"], found["originalNumber"], found["reason"], found["originalSimilarity"]), (None, None, None, None))
                self.assertEqual("group" in found, original in originals)
                if original in originals:
                    self.assertEqual((found["group"]["id"], found["group"]["size"]), (original, 1 + originals.count(original)))
        self.assertProblem(self.server.get(path + "nobody"), 404, "no-document")
        self.assertProblem(self.server.get("/v1/runs/none/document?id=x"), 404, "no-run")
        for query in ("id=", "id=x&copies=101", "x=1", "similarity=0.9"):
            self.assertProblem(self.server.get(f"/v1/runs/{run['id']}/document?{query}"), 400, "bad-parameter")
        self.delete(run)
        run = self.finish(self.upload(jsonl({"text": text} for text in (words.text("w1"), words.text("w2"), words.text("w1"))), "?name=pages.jsonl"))
        found = self.server.get(f"/v1/runs/{run['id']}/document?id=pages.jsonl:3&copies=1")[2]
        self.assertEqual((found["kept"], found["originalId"], found["originalSimilarity"], found["group"]["copies"][0]["id"]), (False, "pages.jsonl:1", 1, "pages.jsonl:3"))
        found = self.server.get(f"/v1/runs/{run['id']}/document?id=pages.jsonl:2")[2]
        self.assertEqual((found["kept"], found["title"]), (True, None))
        self.delete(run)

    def test_many_documents_with_one_id(self):
        """They are passed over in one reading of the list of documents."""
        run = self.finish(self.upload(jsonl({"id": "same", "text": f"{words.text(str(number), 3)} {number}"} for number in range(20000))))
        before = self.bytes_read()
        found = self.server.get(f"/v1/runs/{run['id']}/document?id=same")[2]
        self.assertEqual((found["number"], found["kept"]), (0, True))
        self.assertLess(self.bytes_read() - before, 4 << 20)
        self.delete(run)

    def bytes_read(self):
        with open(f"/proc/{self.server.process.pid}/io") as file:
            return int(file.readline().split()[1])

    def test_one_request_gives_the_file(self):
        """The curl of the documentation: the kept file is the answer, and nothing is left of the run."""
        records = corpus()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pages.jsonl")
            with open(path, "wb") as file:
                file.write(jsonl(records))
            kept, removed = self.dedup(path, 0.9)
            for answer, expected in (("kept", kept), ("removed", removed)):
                url = f"http://localhost:{self.server.port}/v1/runs?name=pages.jsonl&answer={answer}&similarity=0.9"
                subprocess.run(["curl", "-sS", "-f", "-T", "pages.jsonl", "-X", "POST", "-H", "Content-Type: application/octet-stream", url, "-o", "out.jsonl"],
                               cwd=folder, check=True, timeout=120)
                with open(os.path.join(folder, "out.jsonl"), "rb") as out:
                    self.assertEqual(out.read(), expected)
        status, headers, body = self.server.ask("POST", "/v1/runs?name=t.csv&answer=kept&textKey=body&id=oneshot-0123456789", "body\nsome words\nsome words\n", {"Content-Type": "text/csv"})
        self.assertEqual((status, headers["Content-Type"], headers["Location"], body), (200, "text/csv; charset=utf-8", None, b"body\nsome words\n"))
        self.assertIn("t-kept.csv", headers["Content-Disposition"])
        answer = self.server.ask("POST", "/v1/runs?name=t.csv&answer=kept", "body\nsome words\n", {"Content-Type": "text/csv"})
        self.assertProblem(answer, 409, "run-failed")
        self.assertIn("body", answer[2]["detail"])
        self.assertProblem(self.server.ask("POST", "/v1/runs?answer=all", b"", LINES), 400, "bad-parameter")
        self.assertEqual(self.server.get("/v1/runs")[2]["runs"], [])
        self.wait_until_gone()

    def test_many_that_wait_for_their_files(self):
        """Requests that wait for the end of a run take no thread that others need."""
        answers = []

        def send(number):
            body = jsonl(words.documents(1500, seed=f"wait{number}"))
            answers.append(self.server.ask("POST", "/v1/runs?answer=kept", body, LINES))

        threads = [threading.Thread(target=send, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        self.assertEqual(self.server.lines("/v1/batch?op=check", [{"title": "meanwhile"}])[0]["isDuplicate"], False)
        for thread in threads:
            thread.join()
        self.assertEqual([answer[0] for answer in answers], [200] * 8)
        self.wait_until_gone()

    def test_a_run_deleted_before_its_file_is_made(self):
        answers = []
        body = jsonl(words.documents(20000, seed="deleted before"))
        waiter = threading.Thread(target=lambda: answers.append(self.server.ask("POST", "/v1/runs?answer=kept&id=waiter-0123456789", body, LINES)))
        waiter.start()
        for _ in range(500):
            status, _, run = self.server.get("/v1/runs/waiter-0123456789")
            if status == 200 and run["state"] == "analysing":
                break
            time.sleep(0.01)
        self.assertEqual(self.server.ask("DELETE", "/v1/runs/waiter-0123456789")[0], 200)
        waiter.join()
        self.assertProblem(answers[0], 404, "no-run")
        self.wait_until_gone()

    def test_list_of_runs(self):
        self.assertEqual(self.server.get("/v1/runs")[2], {"runs": [], "most": 8})
        first = self.finish(self.upload(jsonl(corpus()[:50]), "?name=first.jsonl"))
        second = self.finish(self.upload(b"a,b\n1,2\n", "?name=second.csv"))
        listed = self.server.get("/v1/runs")[2]["runs"]
        self.assertEqual([(run["id"], run["name"], run["state"], run["documents"], run["expires"]) for run in listed],
                         [(second["id"], "second.csv", "failed", 0, second["expires"]), (first["id"], "first.jsonl", "done", 50, first["expires"])])
        self.assertLess(listed[1]["created"], listed[1]["expires"])
        self.assertEqual((listed[1]["removed"], listed[1]["received"]), (first["removed"], first["received"]))
        self.delete(first)
        self.assertEqual([run["id"] for run in self.server.get("/v1/runs")[2]["runs"]], [second["id"]])
        self.delete(second)
        self.assertEqual(self.server.get("/v1/runs")[2]["runs"], [])

    def test_made_ids_have_the_name_of_the_file(self):
        """A document without an id is NAME:LINE, as with `doppel dedup NAME`: nothing shows where the server keeps the file."""
        texts = [words.text("m1"), words.text("m2"), words.near("m1"), words.text("m1")]
        table = "text,other\n" + "".join(f"{text},1\n" for text in texts)
        empty = "other,id,text\n" + "".join(f"1,,{text}\n" for text in texts)
        for name, body in (("my \"pages\".jsonl", jsonl({"text": text} for text in texts).decode()), ("sub/pages.json", json.dumps([{"text": text} for text in texts])),
                           ("t.csv", table), ("empty.csv", empty), ("one.txt", texts[0]), ("page.html", "<p>" + texts[0])):
            with tempfile.TemporaryDirectory() as folder:
                os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(body)
                out = "out.csv" if name.endswith(".csv") else "out.jsonl"
                subprocess.run([support.DOPPEL, "dedup", name, "-o", out, "--removed", "gone.jsonl"], cwd=folder, check=True, capture_output=True)
                with open(os.path.join(folder, out), "rb") as kept, open(os.path.join(folder, "gone.jsonl"), "rb") as removed:
                    expected = kept.read(), removed.read()
            run = self.finish(self.upload(body.encode(), "?name=" + quote(name), {"Content-Type": "application/octet-stream"}))
            self.assertEqual(run["state"], "done", name)
            answers = [self.server.get(f"/v1/runs/{run['id']}/{way}")[2] for way in ("kept", "removed", "groups", "examples")]
            self.assertEqual(tuple(answers[:2]), expected)
            for answer in (run, *answers):
                self.assertNotIn("doppel-runs-", str(answer), name)
            for group in run["largest"]:
                self.assertEqual((group["id"], [copy["id"] for copy in group["copies"]]),
                                 (json.loads(expected[1].splitlines()[0])["originalId"], [json.loads(line)["id"] for line in expected[1].splitlines()]))
                self.assertTrue(group["id"].startswith(name + ":"), group)
            self.delete(run)

    def test_groups_at_a_threshold(self):
        run = self.finish(self.upload(jsonl(corpus())))
        at = {}
        for similarity in (0.5, 0.66, 0.8, 0.9, 0.97, 1):
            found = self.server.get(f"/v1/runs/{run['id']}/groups?similarity={similarity}")[2]
            removed = [json.loads(line) for line in self.server.get(f"/v1/runs/{run['id']}/removed?similarity={similarity}")[2].splitlines()]
            originals = [one["originalId"] for one in removed]
            self.assertEqual((found["similarity"], found["documents"], found["removed"], found["kept"], found["groups"]),
                             (similarity, len(corpus()), len(removed), len(corpus()) - len(removed), len(set(originals))))
            self.assertEqual(found["identical"], sum(one["similarity"] == 1 for one in removed))
            sizes = [group["size"] for group in found["largest"]]
            self.assertEqual(sizes, sorted((1 + originals.count(one) for one in set(originals)), reverse=True)[:24])
            for group in found["largest"]:
                copies = [(one["id"], one["similarity"]) for one in removed if one["originalId"] == group["id"]]
                self.assertEqual([(copy["id"], copy["similarity"]) for copy in group["copies"]], copies[:6])
                self.assertTrue(group["title"] or group["id"] in ("empty",))
            at[similarity] = found
        self.assertGreater(at[0.5]["removed"], at[0.97]["removed"])
        own = self.server.get(f"/v1/runs/{run['id']}/groups")[2]
        self.assertEqual(own, at[0.8])
        self.assertEqual(own["largest"], run["largest"])
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?limit=3")[2]["largest"], run["largest"][:3])
        # In hundredths, from the least threshold on.
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?similarity=0.891")[2], at[0.9])
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?similarity=0.3")[2], at[0.5])
        self.delete(run)
        run = self.finish(self.upload(jsonl(corpus()), "?similarity=0.855"))
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?similarity=0.855")[2]["similarity"], 0.855)
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?similarity=0.9")[2], at[0.9])
        self.delete(run)

    def test_another_field_for_the_text(self):
        """A file whose text has another name fails, and says which fields there are; its run is repeated with one of them."""
        texts = [words.text("f1"), words.text("f2"), words.near("f1")]
        rows = [{"key": f"k{number}", "Headline, long": f"no {number}", "body": text} for number, text in enumerate(texts)]
        table = 'key,"Headline, long",body\n' + "".join(f'{row["key"]},"{row["Headline, long"]}","{row["body"]}"\r\n' for row in rows)
        for name, body in (("t.csv", table), ("t.tsv", table.replace(",", "\t").replace('"Headline\t long"', '"Headline, long"')),
                           ("semicolons.csv", table.replace(",", ";").replace('"Headline; long"', '"Headline, long"')),
                           ("t.jsonl", jsonl(rows).decode()), ("t.json", json.dumps(rows, indent=2)), ("bom.csv", "\ufeff" + table)):
            run = self.finish(self.upload(body.encode(), f"?name={name}", {"Content-Type": "application/octet-stream"}))
            self.assertEqual((run["state"], run["textKey"]), ("failed", None), name)
            self.assertEqual([field["name"] for field in run["fields"]], ["key", "Headline, long", "body"], name)
            self.assertEqual(run["longestField"], "body")
            self.assertGreater(run["fields"][2]["meanBytes"], run["fields"][1]["meanBytes"])
            status, _, again = self.server.ask("POST", f"/v1/runs/{run['id']}?textKey={run['longestField']}&idKey=key")
            self.assertEqual((status, again["id"], again["why"], again["textKey"], again["idKey"]), (200, run["id"], None, "body", "key"))
            self.assertGreater(again["version"], run["version"])
            self.assertEqual(again["expires"], run["expires"])
            again = self.finish(again)
            self.assertEqual((again["state"], again["documents"], again["removed"], again["largest"][0]["id"]), ("done", 3, 1, "k0"), name)
            self.assertEqual(json.loads(self.server.get(f"/v1/runs/{run['id']}/removed")[2])["id"], "k2")
            # Back to a field that does not help, and to another similarity.
            failed = self.finish(self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=none")[2])
            self.assertEqual((failed["state"], failed["largest"], failed["documents"]), ("failed", [], 0))
            self.assertProblem(self.server.get(f"/v1/runs/{run['id']}/kept"), 409, "run-failed")
            again = self.finish(self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=body&similarity=1")[2])
            self.assertEqual((again["state"], again["similarity"], again["removed"]), ("done", 1, 0))
            self.delete(run)
            self.assertProblem(self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=body"), 404, "no-run")
        for body, name in ((b"", "x.jsonl"), (b"plain text", "x.txt"), (b"[[1,2],[3]]", "x.json"), (b'{"cut": "' + b"x" * 300000, "x.jsonl"), (b'{"a\\u0062":1}', "x.jsonl")):
            run = self.finish(self.upload(body, f"?name={name}"))
            self.assertEqual((run["fields"], run["longestField"]), ([], None), name)
            self.delete(run)
        run = self.finish(self.upload(jsonl({f"f{number}": "some words of a text"} for number in range(500))))
        self.assertEqual(len(run["fields"]), 64)
        self.delete(run)
        self.wait_until_gone()

    def test_a_run_in_use_is_not_repeated(self):
        body = jsonl(words.documents(12000, seed="repeated"))
        run = self.upload(body)
        answers = {self.server.ask("POST", f"/v1/runs/{run['id']}")[0] for _ in range(20)}
        self.assertLessEqual(answers, {200, 409})
        run = self.finish(self.server.get(f"/v1/runs/{run['id']}")[2])
        self.assertEqual((run["state"], run["documents"]), ("done", 12000))
        for _ in range(5):
            kept = []
            maker = threading.Thread(target=lambda: kept.append((self.server.get(f"/v1/runs/{run['id']}/kept")[0], time.monotonic())))
            maker.start()
            time.sleep(0.01)
            status, asked = self.server.ask("POST", f"/v1/runs/{run['id']}")[0], time.monotonic()
            maker.join()
            # Either the file was made, and the run was not repeated meanwhile, or it was repeated, and the file was not made.
            self.assertIn((kept[0][0], status), ((200, 409), (409, 200)) if asked < kept[0][1] else ((200, 200), (200, 409), (409, 200)))
            run = self.finish(self.server.get(f"/v1/runs/{run['id']}")[2])
        self.delete(run)
        self.wait_until_gone()

    def test_temporary_files_are_bounded(self):
        """Those of an analysis are about as large as the file, and some hundred bytes a document."""
        records, most = 100_000, 0
        body = jsonl({"text": f"{number:x} {number * 7919 % 65536:x} {number * 104729 % 65536:x} word {number % 97}"} for number in range(records))
        run = self.upload(body)
        while run["state"] not in ("done", "failed"):
            most = max(most, open_bytes(self.server, self.tmp))
            time.sleep(0.01)
            run = self.server.get(f"/v1/runs/{run['id']}")[2]
        self.assertEqual((run["state"], run["documents"]), ("done", records))
        self.assertLess(most, 2 * len(body) + 400 * records)
        self.delete(run)
        self.wait_until_gone()
        self.assertEqual(open_bytes(self.server, self.tmp), 0)

    def test_very_many_pairs(self):
        """Documents that share boilerplate: thresholds begin above the many pairs, and a run that is deleted ends soon."""
        shared = words.text("boilerplate", 150)
        body = jsonl({"text": shared + " " + words.text(f"p{number}", 40)} for number in range(1600))
        # The run's own similarity, which very many pairs have, leads, and the others begin above.
        run = self.finish(self.upload(body, "?similarity=0.505"))
        self.assertEqual((run["state"], run["documents"]), ("done", 1600))
        if len(run["thresholds"]) > 1:  # a busy machine may give up the search: test_server_analysis.c tests that
            removed = self.server.get(f"/v1/runs/{run['id']}/removed?similarity=0.7")[2]
            self.assertEqual(run["thresholds"][1]["removed"], len(removed.splitlines()))
            self.assertEqual([step["similarity"] for step in run["thresholds"][:3]], [0.505, 0.7, 0.71])
            for asked, similarity in ((0.5, 0.505), (0.505, 0.505), (0.51, 0.7), (0.7, 0.7)):
                self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/groups?similarity={asked}")[2]["similarity"], similarity)
        removed = self.server.get(f"/v1/runs/{run['id']}/removed")[2].splitlines()
        self.assertEqual((run["removed"], run["thresholds"][0]["removed"], run["largest"][0]["size"]), (len(removed), len(removed), 1 + len(removed)))
        self.server.ask("POST", f"/v1/runs/{run['id']}")
        time.sleep(0.3)
        self.delete(run)
        self.wait_until_gone()

    def test_two_documents_of_a_run(self):
        texts = [words.text("p1"), words.text("p2"), words.near("p1"), words.text("long", 5000), words.near("long", 5000)]
        run = self.finish(self.upload(jsonl({"id": f"n{number}", "title": f"T{number}", "text": text} for number, text in enumerate(texts))))
        pairs = [(group, copy) for group in run["largest"] for copy in group["copies"]]
        self.assertEqual([(kept["number"], copy["number"]) for kept, copy in pairs], [(0, 2), (3, 4)])
        for kept, copy in pairs:
            both = self.server.get(f"/v1/runs/{run['id']}/pair?a={kept['number']}&b={copy['number']}")[2]
            for shown, one in ((both["a"], kept), (both["b"], copy)):
                text = texts[one["number"]]
                self.assertEqual(shown, {"number": one["number"], "id": one["id"], "title": one["title"], "text": text[:16 << 10], "cut": len(text) > 16 << 10})
        for query in ("?a=0&b=1", "?a=0&b=99", "?a=0&b=4294967295"):  # 1 is in no group
            self.assertProblem(self.server.get(f"/v1/runs/{run['id']}/pair{query}"), 404, "no-document")
        for query in ("?a=-1", "?a=x", "?b=4294967296", "?a=0.5", "?c=1"):
            self.assertProblem(self.server.get(f"/v1/runs/{run['id']}/pair{query}"), 400, "bad-parameter")
        self.assertProblem(self.server.get("/v1/runs/none/pair?a=0&b=1"), 404, "no-run")
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

    def test_a_failed_run_has_no_result(self):
        """Not even that of the beginning of its file, which was there while the rest arrived."""
        body, bad = jsonl(words.documents(600, seed="fails")), 20000 * b"a line that is no record, and no JSON either\n"
        link = self.server.connect()
        link.putrequest("POST", "/v1/runs?id=fails-0123456789")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Content-Length", str(len(body) + len(bad)))
        link.endheaders()
        link.send(body)
        seen = {"version": 0, "documents": 0}
        for _ in range(100):
            status, _, run = self.server.get(f"/v1/runs/fails-0123456789/events?after={seen['version']}")
            seen = run if status == 200 else seen
            if seen["documents"]:
                break
            time.sleep(0.05)
        self.assertTrue(seen["largest"], seen)
        link.send(bad)
        run = self.finish(json.loads(link.getresponse().read()))
        link.close()
        self.assertEqual((run["state"], run["documents"], run["groups"], run["largest"], run["thresholds"]), ("failed", 0, 0, [], []))
        self.assertEqual(self.server.get("/v1/runs/fails-0123456789/groups?limit=100")[2]["largest"], [])
        self.delete(run)

    def test_a_version_that_never_comes(self):
        """Who waits for a version beyond the last one is answered when the run is done."""
        body, name, answers = jsonl(words.documents(300, seed="late")), "late-0123456789abc", []
        link = self.server.connect()
        link.putrequest("POST", f"/v1/runs?id={name}")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Content-Length", str(len(body)))
        link.endheaders()
        link.send(body[:1])
        for _ in range(200):
            if self.server.get(f"/v1/runs/{name}")[0] == 200:
                break
            time.sleep(0.05)
        waiting = threading.Thread(target=lambda: answers.append((self.server.get(f"/v1/runs/{name}/events?after=123456")[2], time.monotonic())))
        waiting.start()
        time.sleep(0.3)
        link.send(body[1:])
        run = self.finish(json.loads(link.getresponse().read()))
        link.close()
        done = time.monotonic()
        waiting.join()
        self.assertEqual(answers[0][0]["state"], "done")
        self.assertLess(answers[0][1] - done, 10)
        self.delete(run)

    def test_files_of_runs_keep_no_worker_waiting(self):
        """However many requests for them there are: they are made one after the other."""
        run = self.finish(self.upload(jsonl(words.documents(4000, seed="many"))))
        threads = [threading.Thread(target=self.server.get, args=(f"/v1/runs/{run['id']}/kept",)) for _ in range(40)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        began = time.monotonic()
        self.assertEqual(self.server.post("/v1/check", {"text": "large " * 30000})[0], 200)
        waited = time.monotonic() - began
        for thread in threads:
            thread.join()
        self.assertLess(waited, (time.monotonic() - began) / 2)
        self.delete(run)

    def test_a_slow_upload_of_a_deleted_run_ends(self):
        for name, first in (("slow-0123456789ab", b"{"), ("slow-0123456789gz", gzip.compress(b"{}\n")[:12])):
            with socket.create_connection(("127.0.0.1", self.server.port)) as link:
                link.sendall(f"POST /v1/runs?id={name} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\n"
                             "Content-Length: 100000\r\n\r\n".encode() + first)
                for _ in range(200):
                    if self.server.get(f"/v1/runs/{name}")[0] == 200:
                        break
                    time.sleep(0.05)
                self.assertEqual(self.server.ask("DELETE", f"/v1/runs/{name}")[0], 200)
                link.sendall(b" ")
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
        # Most of it is bad, and it is too large to be analysed in one step.
        run = self.finish(self.upload(jsonl(corpus()[:50]) + 20000 * b"a line that is no record, and no JSON either\n"))
        self.assertEqual((run["state"], run["largest"]), ("failed", []))
        self.assertIn("20000 of 20050 records are bad", run["why"])
        self.delete(run)

    def test_word_documents_and_spreadsheets(self):
        """A Word document is read by the name of the file, as the command does; what cannot be read is refused without options of the command."""
        with io.BytesIO() as made:
            with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr("word/document.xml", f"<w:document xmlns:w='w'><w:body><w:p><w:r><w:t>{words.text('docx')}</w:t></w:r></w:p></w:body></w:document>")
            body = made.getvalue()
        binary = {"Content-Type": "application/octet-stream"}
        run = self.finish(self.upload(body, "?name=Letter.DOCX", binary))
        self.assertEqual((run["state"], run["documents"], run["empty"]), ("done", 1, 0), run["why"])
        self.assertIn(words.text("docx")[:30], self.server.get(f"/v1/runs/{run['id']}/kept")[2].decode())
        self.delete(run)
        for name in ("book.xlsx", "x.bin", "pages.jsonl"):
            answer = self.server.ask("POST", "/v1/runs?name=" + name, body, binary)
            self.assertProblem(answer, 415, "type")
            self.assertIn("CSV", answer[2]["detail"])
        self.assertProblem(self.server.ask("POST", "/v1/runs?name=old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), binary), 415, "type")
        for name, body, said in (("x.bin", b"ab\0cd" * 50, "binary, not text"), ("x.pdf", b"%PDF-1.4 nonsense", "PDF"), ("t.jsonl", jsonl([{"headline": words.text("h")}]), "textKey=headline"),
                                 ("t.jsonl", jsonl([{"body_html": "<p>" + words.text("h")}]), "textKey=body_html"), ("t.csv", b"a,b\n1,2\n", ""), ("b.jsonl", b"{nonsense\n" * 3, "line 1"),
                                 ("a.jsonl", b'[{"text":"one"}]\n', "a name that ends in .json"), ("n.docx", b"nonsense", "not a Word document")):
            run = self.finish(self.upload(body, "?name=" + name, binary))
            self.assertEqual(run["state"], "failed", name)
            self.assertIn(said, run["why"])
            self.assertNotIn("--", run["why"])
            self.delete(run)
        self.wait_until_gone()

    def test_packed_files_that_are_not_whole(self):
        body = gzip.compress(jsonl(corpus()))
        for packed, status, kind in ((body[:-9], 400, "bad-encoding"), (b"\x1f\x8bnonsense", 400, "bad-encoding"),
                                     (gzip.compress(body), 415, "type"), (gzip.compress(b" " * (16 << 20)), 413, "too-large")):
            self.assertProblem(self.server.ask("POST", "/v1/runs", packed, LINES), status, kind)
        self.wait_until_gone()

    def test_compressed_files(self):
        """Every compression, in one piece and in several, whatever the file is called."""
        documents = corpus() if support.FULL else corpus()[:150]
        body = jsonl(documents)
        half = len(body) // 2
        skipped = b"\x5f\x2a\x4d\x18\x03\0\0\0abc"  # a frame of zstd that holds nothing
        for name, compress in (("gz", gzip.compress), ("zst", words.zstd), ("bz2", bz2.compress), ("xz", lzma.compress), ("zst", lambda data: skipped + words.zstd(data))):
            for packed in (compress(body), compress(body[:half]) + compress(body[half:])):
                run = self.finish(self.upload(packed, f"?name=pages.jsonl.{name}", {"Content-Type": "application/octet-stream"}))
                self.assertEqual((run["state"], run["received"], run["documents"]), ("done", len(body), len(documents)), name)
                self.delete(run)
            for broken in (compress(body)[:-9], compress(body)[:len(compress(body)) // 2], compress(body)[:100] + b"nonsense" * 100):
                self.assertProblem(self.server.ask("POST", "/v1/runs", broken, LINES), 400, "bad-encoding")
            self.assertProblem(self.server.ask("POST", "/v1/runs", gzip.compress(compress(body)), LINES), 415, "type")
            self.assertProblem(self.server.ask("POST", "/v1/runs", bz2.compress(compress(body)), LINES), 415, "type")
        run = self.finish(self.upload(bz2.compress(b"") + lzma.compress(b"")[:0], "?name=empty.jsonl.bz2"))
        self.assertEqual((run["state"], run["documents"]), ("done", 0))
        self.delete(run)
        run = self.finish(self.upload(b"BZh9 is how bzip2 begins\n", "?name=x.txt"))
        self.assertEqual((run["state"], run["documents"]), ("done", 1))
        self.delete(run)
        table = ("text\n" + "".join(words.text(f"t{number}") + "\n" for number in range(3))).encode()
        for kind in ("application/x-bzip2", "application/x-xz"):
            run = self.finish(self.upload(bz2.compress(table) if "bzip2" in kind else lzma.compress(table), "?name=T.CSV.XZ", {"Content-Type": kind}))
            self.assertEqual((run["state"], run["documents"]), ("done", 3))
            self.delete(run)
        self.wait_until_gone()

    def test_files_that_decompress_to_too_much(self):
        """By their ratio, and xz and zstd by the memory that their windows take."""
        before = memory(self.server)
        for compress in (gzip.compress, words.zstd, bz2.compress, lzma.compress):
            packed = compress(b" " * (16 << 20))
            self.assertProblem(self.server.ask("POST", "/v1/runs", packed, LINES), 413, "too-large")
        self.assertProblem(self.server.ask("POST", "/v1/runs", bz2.compress(bz2.compress(b" " * (32 << 20))), LINES), 415, "type")
        packed = bytearray(lzma.compress(jsonl(corpus())))
        at, length = packed.index(b"\x21\x01", 12), (packed[12] + 1) * 4  # the filter of the first block, and the block's head
        for size, status in ((28, 201), (30, 415), (40, 415)):  # windows of 64 MiB, 128 MiB and 4 GiB
            packed[at + 2] = size
            packed[12 + length - 4:12 + length] = zlib.crc32(packed[12:12 + length - 4]).to_bytes(4, "little")
            answer = self.server.ask("POST", "/v1/runs", bytes(packed), LINES)
            self.assertEqual(answer[0], status, size)
            if status == 201:
                self.delete(self.finish(answer[2]))
            else:
                self.assertProblem(answer, 415, "type")
        # A window of 128 MiB, in a frame with one block of one byte.
        frame = b"\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00x"
        self.assertProblem(self.server.ask("POST", "/v1/runs", frame, LINES), 415, "type")
        self.assertProblem(self.server.ask("POST", "/v1/check", frame, {"Content-Type": "application/json", "Content-Encoding": "zstd"}), 415, "type")
        self.assertLess(memory(self.server) - before, 512 << 20)
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
            self.assertProblem(self.server.ask("POST", f"/v1/runs/{path}"), 404, "no-run")
            for way in ("", "/events", "/examples", "/groups", "/document?id=x", "/pair", "/kept", "/removed"):
                self.assertProblem(self.server.get(f"/v1/runs/{path}{way}"), 404, "no-run")
            self.assertProblem(self.server.ask("DELETE", f"/v1/runs/{path}"), 404, "no-run")
        self.assertProblem(self.server.ask("PUT", "/v1/runs"), 405, "method")
        for query in ("after=-1", "after=x", "after=1e9", "x=1"):
            self.assertProblem(self.server.get("/v1/runs/none/events?" + query), 400, "bad-parameter")
        for query in ("similarity=1.1", "similarity=", "limit=0", "limit=11"):
            self.assertProblem(self.server.get("/v1/runs/none/examples?" + query), 400, "bad-parameter")
        for query in ("similarity=1.1", "similarity=0", "limit=0", "limit=1001", "copies=101", "cursor=0", "cursor=x", "x=1"):
            self.assertProblem(self.server.get("/v1/runs/none/groups?" + query), 400, "bad-parameter")
        for query in ("textKey=", "similarity=2", "name=x", "id=0123456789abcdef"):
            self.assertProblem(self.server.ask("POST", "/v1/runs/none?" + query), 400, "bad-parameter")
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

    def test_stopping_ends_an_analysis(self):
        """Nobody gets its result any more; the file of another run, which waits for its turn, is still sent."""
        run = self.finish(self.upload(jsonl(corpus())))
        shared = words.text("boilerplate", 100)
        body = jsonl({"text": shared + "".join(f" u{number}x{k}" for k in range(20 + number % 40))} for number in range(40000))
        self.upload(body, "?id=long-0123456789abc")
        time.sleep(1)  # to where it takes long
        answers = []
        getter = threading.Thread(target=lambda: answers.append(self.server.get(f"/v1/runs/{run['id']}/kept")[0]))
        getter.start()
        time.sleep(0.3)
        self.assertEqual(self.server.get("/v1/runs/long-0123456789abc")[2]["state"], "analysing")
        began = time.time()
        self.server.stop()
        getter.join()
        self.assertEqual(answers, [200])
        self.assertLess(time.time() - began, 8)
        self.assertEqual(os.listdir(self.tmp), [])
        self.server.start()


class Room(RunTest):
    OPTIONS = ("--max-runs", "2", "--run-idle", "4")  # a loaded machine takes a second or two for a request

    def test_idle_runs_make_room(self):
        """The least recently requested run goes; one that is new or in use stays."""
        body = jsonl(corpus()[:20])
        first, second = (self.finish(self.upload(body, f"?name={name}")) for name in ("first", "second"))
        self.assertProblem(self.server.ask("POST", "/v1/runs", body, LINES), 503, "full")
        time.sleep(5.1)
        self.assertEqual(self.server.get(f"/v1/runs/{first['id']}")[0], 200)  # used again: the second is idle for longer
        third = self.finish(self.upload(body, "?name=third"))
        self.assertEqual([run["name"] for run in self.server.get("/v1/runs")[2]["runs"]], ["third", "first"])
        self.assertProblem(self.server.get(f"/v1/runs/{second['id']}"), 404, "no-run")
        answer = self.server.ask("POST", "/v1/runs", body, LINES)
        self.assertProblem(answer, 503, "full")
        self.assertTrue(answer[1]["Retry-After"])
        # A run that is being received is never idle.
        self.delete(first)
        link = self.stalled("slow-0123456789ab")
        time.sleep(5.1)
        self.assertEqual(self.server.get(f"/v1/runs/{third['id']}")[0], 200)
        self.assertProblem(self.server.ask("POST", "/v1/runs", body, LINES), 503, "full")
        link.close()
        self.delete(third)
        self.wait_until_gone()

    def stalled(self, name):
        """The connection of an upload that sends nothing."""
        link = self.server.connect()
        link.putrequest("POST", f"/v1/runs?id={name}")
        link.putheader("Content-Type", "application/x-ndjson")
        link.putheader("Transfer-Encoding", "chunked")
        link.endheaders()
        for _ in range(200):
            if self.server.get(f"/v1/runs/{name}")[0] == 200:
                break
            time.sleep(0.01)
        return link

    def test_a_deleted_run_leaves_its_place_at_once(self):
        """Even if its upload has not noticed yet; there are at most as many such runs as --max-runs."""
        body, links = jsonl(corpus()[:20]), []
        for number in range(4):
            links.append(self.stalled(f"stalled-0123456789-{number}"))
            self.delete({"id": f"stalled-0123456789-{number}"})
        self.assertProblem(self.server.ask("POST", "/v1/runs", body, LINES), 503, "full")
        for link in links:
            link.close()
        self.wait_until_gone()
        self.delete(self.upload(body))
        self.wait_until_gone()


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
        self.assertProblem(self.server.ask("POST", "/v1/runs?id=Not%20An%20Id%20Of%20Ours", b"", LINES), 400, "bad-parameter")
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
        self.server.start()  # which removes it at once, whether or not it gets a run
        self.assertEqual(os.listdir(self.tmp), ["doppel-runs-stays"])  # this one has no lock
        self.delete(self.upload(b""))
        self.wait_until_gone()
        self.assertEqual(len(os.listdir(self.tmp)), 2)  # one of this server, and the one without a lock
        os.rmdir(other)


class Spooled(RunTest):
    OPTIONS = ("--max-spooled", "10M")

    def records(self, size):
        made = [json.dumps({"id": number, "text": " ".join(f"w{number * number * step % 999983}" for step in range(1, 120))}) + "\n"
                for number in range(1, size // 1000)]
        return "".join(made).encode()

    def test_files_of_runs_count(self):
        """The files that are made of runs, and answers of batches, together have at most --max-spooled bytes."""
        body = self.records(14 << 20)
        self.assertGreater(len(body), 11 << 20)
        run = self.finish(self.upload(body))
        self.assertEqual((run["state"], run["removed"]), ("done", 0))
        for _ in range(2):
            answer = self.server.get(f"/v1/runs/{run['id']}/kept")
            self.assertProblem(answer, 503, "full")
            self.assertTrue(answer[1]["Retry-After"])
            self.assertLess(open_bytes(self.server, self.tmp), 1 << 20)
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/removed")[2], b"")
        self.delete(run)
        # One that is not fetched holds its bytes until its connection is closed.
        run = self.finish(self.upload(body[:8 << 20].rsplit(b"\n", 1)[0]))
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", self.server.port))
            slow.sendall(f"GET /v1/runs/{run['id']}/kept HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            slow.recv(100)
            self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[0], 503)
            # A batch stops, too, when there is no room for its answer.
            answers = self.server.lines("/v1/batch?op=check", [{"id": f"s{number}", "title": f"t{number}"} for number in range(20000)])
            self.assertEqual(answers[-1]["problem"]["type"], "urn:doppel:problem:no-memory")
        for _ in range(100):
            status = self.server.get(f"/v1/runs/{run['id']}/kept")[0]
            if status == 200:
                break
            time.sleep(0.05)
        self.assertEqual(status, 200)
        self.delete(run)
        self.wait_until_gone()


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
            self.assertEqual(server.ask("GET", f"/v1/runs/{run['id']}/groups", headers=reads)[0], 200)
            self.assertEqual([server.ask("GET", "/v1/runs", headers=rights)[0] for rights in (None, reads, writes)], [401, 403, 200])
            self.assertEqual([server.ask("GET", "/v1/session", headers=rights)[2] for rights in (reads, writes)],
                             [{"tokens": True, "name": "reader", "right": "read"}, {"tokens": True, "name": "writer", "right": "write"}])
            self.assertEqual(server.ask("GET", "/v1/session")[0], 401)
            self.assertEqual(server.ask("DELETE", f"/v1/runs/{run['id']}", headers=reads)[0], 403)
            self.assertEqual(server.ask("POST", f"/v1/runs/{run['id']}", headers=reads)[0], 403)
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

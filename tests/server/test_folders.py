"""Several files that are deduplicated together, sent as a tar archive: the same bytes as `doppel dedup FOLDER` writes, and what
cannot be read is listed; archives, names and compressed files that are hostile; and the documents of one file (POST /v1/records)."""
import bz2
import gzip
import io
import json
import lzma
import os
import shutil
import subprocess
import tarfile
import tempfile
import zipfile

import support
import words
from test_runs import RunTest, jsonl

TAR = {"Content-Type": "application/x-tar"}
ANY = {"Content-Type": "application/octet-stream"}


def zipped(parts):
    with io.BytesIO() as made:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, text in parts.items():
                packed.writestr(name, text)
        return made.getvalue()


def docx(text):
    return zipped({"word/document.xml": f"<w:document xmlns:w='w'><w:body><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:body></w:document>"})


def tar(files, form=tarfile.PAX_FORMAT):
    """An archive of {name: bytes, or a tarfile.TarInfo without content}."""
    with io.BytesIO() as made:
        with tarfile.open(fileobj=made, mode="w", format=form) as archive:
            for name, body in files.items():
                if isinstance(body, tarfile.TarInfo):
                    archive.addfile(body)
                    continue
                info = tarfile.TarInfo(name)
                info.size = len(body)
                archive.addfile(info, io.BytesIO(body))
        return made.getvalue()


def entry(name, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def mixed():
    """A folder with a file of every kind."""
    one, other = words.text("folder/one"), words.text("folder/other")
    return {
        "mixed/alice.txt": one.encode(),
        "mixed/alice.docx": docx(one),
        "mixed/.hidden.txt": other.encode(),
        "mixed/note.txt.gz": gzip.compress(words.near("folder/other", edits=2).encode()),
        "mixed/some.jsonl": jsonl([{"text": words.text(f"j{number}")} for number in range(4)] + [{"id": "é", "text": one}]) + b"{nonsense\n",
        "mixed/catalogue.csv": ("id,text\n" + "".join(f"{number},{words.text(f'c{number % 3}')}\n" for number in range(5))).encode(),
        "mixed/sub/list.json": json.dumps([{"id": "j1", "text": words.text("l")}]).encode(),
        "mixed/sub/packed.jsonl.zst": words.zstd(jsonl([{"text": other}])),
        "mixed/sub/packed.txt.xz": lzma.compress(words.text("xz").encode()),
        "mixed/sub/mail.txt.bz2": bz2.compress(words.text("bz2").encode()),
        "mixed/page.html": f"<html><body><p>{words.text('page')}</p></body></html>".encode(),
        "mixed/empty.txt": b"",
        "mixed/bin.dat": b"ab\0cd" * 100,
        "mixed/book.xlsx": zipped({"xl/workbook.xml": "<workbook/>", "[Content_Types].xml": "<x/>"}),
        "mixed/broken.docx": b"PK\x03\x04 nonsense",
        "mixed/a b'c\n\x1b[1mü\"\\.txt": words.text("names").encode(),
    }


class Folders(RunTest):
    OPTIONS = ("--max-run", "8M")

    def send(self, files, query="", form=tarfile.PAX_FORMAT):
        body = files if isinstance(files, bytes) else tar(files, form)
        return self.finish(self.upload(body, query, TAR))

    def command(self, files, inputs, output, *options):
        """What doppel dedup writes and says of the files."""
        with tempfile.TemporaryDirectory() as folder:
            for name, body in files.items():
                os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(folder, name), "wb") as file:
                    file.write(body)
            ran = subprocess.run([support.DOPPEL, "dedup", *inputs, "-o", output, "--removed", "removed.jsonl", *options],
                                 cwd=folder, capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            with open(os.path.join(folder, output), "rb") as kept, open(os.path.join(folder, "removed.jsonl"), "rb") as removed:
                return kept.read(), removed.read(), ran.stderr

    def expect_the_same(self, files, inputs, output, options=(), query=""):
        kept, removed, said = self.command(files, inputs, output, *options)
        run = self.send(files, query)
        self.assertEqual((run["state"], run["archive"], run["inputs"]), ("done", True, inputs), run["why"])
        self.assertEqual(output, "kept." + run["keptFormat"])
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/kept")[2], kept)
        self.assertEqual(self.server.get(f"/v1/runs/{run['id']}/removed")[2], removed)
        self.assertEqual(kept.count(b"\n") - (output != "kept.jsonl"), run["kept"])
        self.delete(run)
        return run, said

    def test_the_same_as_the_command(self):
        files = mixed()
        run, said = self.expect_the_same(files, ["mixed"], "kept.jsonl")
        unread = {(one["file"], one["line"]) for one in run["unread"]}
        self.assertEqual(unread, {("mixed/bin.dat", None), ("mixed/book.xlsx", None), ("mixed/broken.docx", None), ("mixed/some.jsonl", 6)})
        self.assertEqual(run["bad"], 4)
        for one in run["unread"]:
            self.assertIn(one["why"], said)
            self.assertFalse(one["commandMayRead"])
        self.assertEqual(run["fields"][0]["name"], "text")
        # The groups show the ids of the command.
        self.assertIn("mixed/alice.docx", [one["id"] for one in run["largest"]])
        self.wait_until_gone()

    def test_an_essay_as_text_and_as_word_document(self):
        files = {f"essays/e{number}.txt": words.text(f"essay{number}").encode() for number in range(7)}
        files["essays/alice.txt"] = words.text("alice").encode()
        files["essays/alice.docx"] = docx(words.text("alice"))
        run, _ = self.expect_the_same(files, ["essays"], "kept.jsonl")
        self.assertEqual((run["documents"], run["removed"], run["unread"]), (9, 1, []))

    def test_tables_stay_tables(self):
        """Rows of several tables stay rows where their columns are the same; else all become records."""
        rows = [words.text(f"row{number}") for number in range(6)]
        files = {"a.csv": ("sku,body\n" + "".join(f"{number},{text}\n" for number, text in enumerate(rows))).encode(),
                 "b.csv": ("sku,body\n" + "".join(f"b{number},{text}\n" for number, text in enumerate(rows[:3]))).encode()}
        options = ("--text-key", "body", "--id-key", "sku")
        run, _ = self.expect_the_same(files, ["a.csv", "b.csv"], "kept.csv", options, "?textKey=body&idKey=sku")
        self.assertEqual((run["documents"], run["removed"]), (9, 3))
        files["b.csv"] = files["b.csv"].replace(b"sku", b"key")
        self.expect_the_same(files, ["a.csv", "b.csv"], "kept.jsonl", options[:2], "?textKey=body")
        # Without its key the first is refused, with the columns that it has; then the right one can be chosen.
        run = self.send(files)
        self.assertEqual(run["state"], "failed")
        self.assertRegex(run["why"], "^a.csv: .* Use textKey=body")
        self.assertEqual([one["name"] for one in run["fields"]], ["sku", "body"])
        _, _, run = self.server.ask("POST", f"/v1/runs/{run['id']}?textKey=body")
        run = self.finish(run)
        self.assertEqual((run["state"], run["documents"], run["unread"]), ("done", 9, []))
        self.delete(run)

    def test_few_long_rows_stay_rows(self):
        """More bytes than the first step of the analysis takes, in fewer documents than it reads."""
        files = {name: ("id,text\n" + "".join(f"{name}{number}," + " ".join(words.text(f"{name}{number}/{part}") for part in range(20)) + "\n"
                                              for number in range(120))).encode() for name in ("a.csv", "b.csv")}
        self.assertGreater(sum(len(body) for body in files.values()), 1 << 19)
        self.expect_the_same(files, [*files], "kept.csv")

    def test_a_key_has_no_effect_on_text(self):
        run = self.send({"a.txt": words.text("a").encode(), "b.jsonl": jsonl([{"body": words.text("b")}])}, "?textKey=body")
        self.assertEqual(run["state"], "failed")
        self.assertIn("plain text", run["why"])
        self.delete(run)

    def test_nothing_can_be_read(self):
        run = self.send({"d/bin.dat": b"ab\0cd" * 50, "d/x.pdf": b"%PDF-1.4 nonsense"})
        self.assertEqual(run["state"], "failed")
        self.assertEqual([(one["file"], one["commandMayRead"]) for one in run["unread"]], [("d/bin.dat", False), ("d/x.pdf", True)])
        self.delete(run)

    def test_one_request(self):
        files = mixed()
        kept, removed, _ = self.command(files, ["mixed"], "kept.jsonl")
        for answer, expected in (("kept", kept), ("removed", removed)):
            status, headers, body = self.server.ask("POST", f"/v1/runs?answer={answer}&name=mixed", tar(files), TAR)
            self.assertEqual((status, body), (200, expected))
            self.assertIn(f'"mixed-{answer}.jsonl"', headers["Content-Disposition"])
        self.wait_until_gone()

    def test_formats_of_archives(self):
        """Long and other names in each format; a compressed archive; folders and names that begin with ./ say nothing."""
        text = words.text("long").encode()
        long = "f" * 60 + "/" + "g" * 90 + "/" + "h" * 120 + ".txt"
        for form in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            names = ["a/" + "x" * 97, "b/" + "y" * 90 + ".txt", "ü/é.txt"] + [long] * (form != tarfile.USTAR_FORMAT)
            files = {name: text + bytes(str(at), "ascii") for at, name in enumerate(names)}
            run = self.send({"a": entry("a", tarfile.DIRTYPE), **files}, form=form)
            self.assertEqual((run["documents"], run["unread"]), (len(names), []))
            kept = self.server.get(f"/v1/runs/{run['id']}/kept")[2].decode()
            self.assertEqual({json.loads(line)["id"] for line in kept.splitlines()} - set(names), set())
            self.delete(run)
        run = self.send(gzip.compress(tar({"./a/b.txt": text, "././c.txt": text})))
        self.assertEqual((run["inputs"], run["documents"], run["unread"]), (["a", "c.txt"], 2, []))
        self.delete(run)

    def test_sparse_files(self):
        """They are left out; where the list of their parts goes on after the header, the archive is refused."""
        for goes_on in (0, 1):
            header = bytearray(entry("sparse.txt", b"S").tobuf(tarfile.GNU_FORMAT))
            header[482] = goes_on
            header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
            body = bytes(header) + tar({"a.txt": words.text("a").encode()})
            if goes_on:
                self.assertProblem(self.server.ask("POST", "/v1/runs", body, TAR), 415, "type")
                continue
            run = self.send(body)
            self.assertEqual((run["documents"], [one["why"] for one in run["unread"]]), (1, ["a sparse file, which the server does not read"]))
            self.delete(run)

    def test_in_small_pieces(self):
        body = tar(mixed())
        connection = self.server.connect()
        connection.request("POST", "/v1/runs", (body[at:at + 7] for at in range(0, len(body), 7)), TAR, encode_chunked=True)
        response = connection.getresponse()
        run = self.finish(json.loads(response.read()))
        connection.close()
        self.assertEqual((run["state"], run["bad"]), ("done", 4))
        self.delete(run)

    def test_names_that_lead_out(self):
        before = sorted(os.listdir(os.path.dirname(self.tmp)))
        text = words.text("out").encode()
        bad = {name: text for name in ("../up.txt", "/tmp/absolute.txt", "a/../../b.txt", "a//b.txt", "a/./b.txt", "..", "a/" + "n" * 300, "p/" * 600 + "x")}
        links = {"l1": entry("l1", tarfile.SYMTYPE, "/etc/passwd"), "l2": entry("l2", tarfile.LNKTYPE, "fine/a.txt"), "l1/x.txt": text,
                 "dev": entry("dev", tarfile.CHRTYPE), "pipe": entry("pipe", tarfile.FIFOTYPE)}
        clash = {"fine/a.txt": text, "fine/a.txt/b.txt": text, "fine": text}
        run = self.send({**bad, **links, **clash})
        self.assertEqual((run["state"], run["documents"]), ("done", 2), run["why"])
        self.assertEqual(run["inputs"], ["l1", "fine"])
        left_out = [one["file"] for one in run["unread"]]
        self.assertEqual(left_out[:6], [*bad][:6])
        self.assertEqual({"l1", "l2", "fine/a.txt/b.txt", "fine"} - set(left_out), set())
        self.assertEqual(run["bad"], len(bad) + 4)
        self.assertEqual(sorted(os.listdir(os.path.dirname(self.tmp))), before)
        self.delete(run)
        # Bytes that are no UTF-8, and control characters, are names.
        run = self.send(tar({"b/\udcff\udcfe\x01.txt": text}, tarfile.USTAR_FORMAT))
        self.assertEqual((run["state"], run["documents"]), ("done", 1))
        self.delete(run)
        self.wait_until_gone()

    def test_files_that_unpack_to_too_much(self):
        """They are left out, with the reason, and the command may read them; the others are kept."""
        text = words.text("fine").encode()
        wide = b"\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00x"  # zstd with a window of 128 MiB
        bombs = {"b/gz.txt.gz": gzip.compress(b" " * (6 << 20)), "b/bz2.txt": bz2.compress(b" " * (6 << 20)), "b/xz.txt": lzma.compress(b" " * (6 << 20)),
                 "b/zst.txt": words.zstd(b" " * (6 << 20)), "b/wide.txt": wide, "b/twice.txt.gz": gzip.compress(gzip.compress(text)),
                 "b/cut.txt.gz": gzip.compress(text)[:-9], "b/damaged.txt.gz": b"\x1f\x8bnonsense that is not compressed",
                 "b/bomb.docx": docx("word " * (6 << 20)), "b/tags.docx": docx("<w:x/>" * (5 << 20))}
        run = self.send({"b/fine.txt": text, **bombs})
        self.assertEqual((run["state"], run["documents"], run["bad"]), ("done", 1, len(bombs)), run["why"])
        self.assertEqual({one["file"]: one["commandMayRead"] for one in run["unread"]}, {name: True for name in bombs})
        self.assertEqual(run["received"], len(text))
        self.delete(run)
        self.wait_until_gone()
        answer = self.server.ask("POST", "/v1/runs", tar({"gz.txt.gz": bombs["b/gz.txt.gz"]}), TAR)
        self.assertProblem(answer, 415, "type")
        self.assertIn("times its size", answer[2]["detail"])
        # A Word document that is damaged in itself is left to the library, which says why, like the command.
        run = self.send({"b/fine.txt": text, "b/x.docx": b"PK\x03\x04" + bytes(40)})
        self.assertEqual([one["commandMayRead"] for one in run["unread"]], [False])
        self.delete(run)

    def test_limits(self):
        """All bytes count, those of texts in Word documents too, and each file as a block of the disk."""
        packed = docx(" ".join(words.text(f"w{number}") for number in range(4000)))
        for files in ({f"d/{number}.txt": b"x" for number in range(2100)},
                      {"/".join(f"{number}" for number in range(first, first + 30)) + "/x": b"" for first in range(100)},
                      {f"d/{number}.gz": gzip.compress(os.urandom(3 << 20)) for number in range(2)} | {"d/last": bytes(3 << 20)},
                      {f"d/{number}.docx": packed for number in range(8)}):
            body = tar(files)
            self.assertProblem(self.server.ask("POST", "/v1/runs", gzip.compress(body), TAR), 413, "too-large")
            self.wait_until_gone()
        self.assertProblem(self.server.ask("POST", "/v1/runs", tar({f"{number}": b"x" for number in range(1001)}), TAR), 413, "too-large")
        # What is left out counts, too.
        left_out = words.zstd(tar({"../out": os.urandom(1 << 20) * 17, "a": b"x"}))
        self.assertLess(len(left_out), 8 << 20)
        answer = self.server.ask("POST", "/v1/runs", left_out, TAR)
        self.assertProblem(answer, 413, "too-large")
        self.assertIn("twice", answer[2]["detail"])
        run = self.send({f"d/{number}": b"x" for number in range(1500)})
        self.assertEqual((run["state"], run["documents"]), ("done", 1500))
        self.delete(run)
        self.wait_until_gone()

    def test_no_archives(self):
        body = bytearray(tar({"a/b.txt": words.text("a").encode()}))
        size = bytearray(body)
        size[124:136] = b"\xff" * 12
        size[148:156] = b"%06o\0 " % (sum(size[:512]) - sum(size[148:156]) + 8 * 32)
        for broken, status, kind in ((b"no archive " * 100, 400, "bad-request"), (bytes(size), 400, "bad-request"), (bytes(body[:300]), 400, "bad-encoding"),
                                     (bytes(body[:600]), 400, "bad-encoding"), (b"", 415, "type"), (bytes(1024), 415, "type"),
                                     (self.pax(b"999 path=x\n"), 400, "bad-request"), (self.pax(b"nonsense"), 400, "bad-request"), (self.pax(b"0 path=x\n"), 400, "bad-request"),
                                     (tar({"a": entry("a", tarfile.DIRTYPE)}), 415, "type"), (gzip.compress(bytes(body))[:-9], 400, "bad-encoding")):
            self.assertProblem(self.server.ask("POST", "/v1/runs", broken, TAR), status, kind)
        self.wait_until_gone()

    @staticmethod
    def pax(record):
        info = entry("pax", b"x")
        info.size = len(record)
        return info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0") + tar({"a.txt": b"text"})

    def test_an_archive_that_breaks_off_leaves_nothing(self):
        body = tar(mixed())
        head = f"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-tar\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        self.server.raw(head + body[:len(body) // 2], timeout=1)
        self.wait_until_gone()


class Records(support.ServerTest):
    OPTIONS = ("--max-body", "2M")

    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.mkdtemp(prefix="doppel-records-test-")
        cls.server = support.Server(*cls.OPTIONS, "--tmp", cls.tmp)

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.tmp)

    def tearDown(self):
        super().tearDown()
        self.assertEqual([name for top in os.listdir(self.tmp) for name in os.listdir(os.path.join(self.tmp, top)) if name != "lock"], [])

    def read(self, name, body, query=""):
        return self.server.ask("POST", f"/v1/records?name={name}{query}", body, ANY)

    def documents(self, name, body, query=""):
        status, _, answer = self.read(name, body, query)
        self.assertEqual(status, 200, answer)
        return answer["documents"]

    def test_formats(self):
        text = words.text("records")
        plain = {"id": "a", "url": None, "title": None, "text": text, "html": None}
        for name, body in (("a.txt", text.encode()), ("a.txt.gz", gzip.compress(text.encode())), ("a.xz", lzma.compress(text.encode())), ("a", text.encode())):
            self.assertEqual(self.documents(name, body), [{**plain, "id": name}])
        self.assertEqual(self.documents("a.DOCX", docx(text)), [{**plain, "id": "a.DOCX", "text": text + "\n"}])
        page = f"<html><title>T</title><p>{text}"
        self.assertEqual(self.documents("a.html", page.encode()), [{**plain, "id": "a.html", "text": None, "html": page}])
        records = [{"id": "r1", "url": "https://example.org/", "title": "t", "text": text}, {"html": page}]
        self.assertEqual(self.documents("a.jsonl", jsonl(records)), [{**records[0], "html": None}, {"id": "a.jsonl:2", "url": None, "title": None, "text": None, "html": page}])
        self.assertEqual(self.documents("a.csv", f"key,body\n7,{text}\n".encode(), "&textKey=body&idKey=key"), [{**plain, "id": "7"}])
        self.assertEqual(self.documents("empty.txt", b""), [{**plain, "id": "empty.txt", "text": ""}])
        status, _, answer = self.server.ask("POST", "/v1/records", text.encode(), ANY)
        self.assertEqual((status, answer["documents"]), (200, [{**plain, "id": "file"}]))

    def test_a_limit(self):
        body = jsonl([{"text": words.text(f"l{number}")} for number in range(12)]) + b"{nonsense\n"
        for limit, count, more in (("", 10, True), ("&limit=1", 1, True), ("&limit=12", 12, False), ("&limit=1000", 12, False)):
            _, _, answer = self.read("a.jsonl", body, limit)
            self.assertEqual((len(answer["documents"]), answer["more"]), (count, more))
        self.assertEqual([(one["file"], one["line"]) for one in answer["unread"]], [("a.jsonl", 13)])

    def test_what_cannot_be_read(self):
        for name, body, said in (("bin.dat", b"ab\0cd" * 50, "binary"), ("x.pdf", b"%PDF-1.4 nonsense", "PDF"), ("book.xlsx", zipped({"xl/workbook.xml": ""}), "spreadsheet"),
                                 ("x.docx", b"nonsense", "not a Word document"), ("cut.json", b'[{"text"', ""), ("t.csv", b"a,b\n1,2\n", "text"), ("b.jsonl", b"{nonsense\n" * 3, "line 1")):
            answer = self.read(name, body)
            self.assertProblem(answer, 400, "bad-document")
            self.assertIn(said, answer[2]["detail"])
            self.assertNotIn("--", answer[2]["detail"])
            self.assertNotIn(self.tmp, answer[2]["detail"])

    def test_files_that_unpack_to_too_much(self):
        for name, body, status, kind in (("a.gz", gzip.compress(b" " * (16 << 20)), 413, "too-large"), ("a.gz", gzip.compress(os.urandom(1500000))[:-9], 400, "bad-encoding"),
                                         ("a.gz", gzip.compress(gzip.compress(b"text")), 415, "type"), ("a.zst", b"\x28\xb5\x2f\xfd\x00\x88\x09\x00\x00x", 415, "type"),
                                         ("bomb.docx", docx("word " * (30 << 20)), 400, "bad-document"), ("dense.docx", docx("word " * 400000), 400, "bad-document"),
                                         ("long.docx", docx(" ".join(words.text(f"w{number}") for number in range(3500))), 413, "too-large"),
                                         ("a.txt", b"x" * (3 << 20), 413, "too-large"), ("a.txt", words.zstd(os.urandom(1 << 20) * 3), 413, "too-large")):
            self.assertProblem(self.read(name, body), status, kind)

    def test_bad_requests(self):
        for query in ("?name=", "?name=" + 300 * "x", "?limit=0", "?limit=x", "?other=1", "?textKey="):
            self.assertProblem(self.server.ask("POST", "/v1/records" + query, b"text", ANY), 400, "bad-parameter")
        self.assertProblem(self.server.ask("POST", "/v1/records", b"text", {"Content-Type": "text/plain"}), 415, "type")
        for name in ("..%2F..%2Fetc%2Fpasswd", "%01%1B%5B1m.txt", "a%2Fb.txt", "x.docx%2F..", "%5B*%5D"):
            self.assertEqual(len(self.documents(name, b"some words")), 1)


if __name__ == "__main__":
    support.main()

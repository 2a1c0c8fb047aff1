"""test_warc.py - web archives, as the library reads them, as they were made, and as warcio reads them.

    test_warc.py [FILE...]    also compares what the library and warcio make of these archives
"""
import gzip
import os
import random
import sys
import tempfile
import zlib

import brotli
import check
import inputs
from warcio.archiveiterator import ArchiveIterator

TYPES = ["text/html", "text/html; charset=utf-8", "Text/HTML;charset=\"latin1\"", "application/xhtml+xml", "text/plain",
         "text/css", "image/png"]


# ---- making archives


def chunked(rng, body):
    parts, at = [], 0
    while at < len(body):
        size = rng.randrange(1, 200)
        part = body[at:at + size]
        parts.append(b"%x%s\r\n%s\r\n" % (len(part), rng.choice([b"", b";a=b", b" "]), part))
        at += size
    return b"".join(parts) + b"0\r\n\r\n"


def raw_deflate(body):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


CODINGS = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress}


class Page:
    """A response of HTTP, and what should become of it."""

    def __init__(self, rng):
        words = rng.choices(["word", "copy", "page", "\n", "é", "WARC/1.0", "<p>", "&amp;"], k=rng.randrange(400))
        self.body = " ".join(words).encode()
        self.status = rng.choice([200] * 8 + [301, 404, 500])
        self.type = rng.choice(TYPES)
        self.location = b"http://example.org/%d" % rng.randrange(100) if self.status == 301 else None
        self.coding = rng.choice([None, None, *CODINGS]) if self.body else None
        self.chunked = rng.random() < 0.3

    def bytes(self, rng):
        head = [f"HTTP/1.1 {self.status} Some Reason", f"{rng.choice(['Content-Type', 'content-type'])}: {self.type}"]
        body = self.body
        if self.coding:
            head.append(f"Content-Encoding: {self.coding}")
            raw = self.coding == "deflate" and rng.random() < 0.5
            body = raw_deflate(body) if raw else CODINGS[self.coding](body)
        if self.chunked:
            head.append("Transfer-Encoding: chunked")
            body = chunked(rng, body)
        if self.location:
            head.append(f"Location: {self.location.decode()}")
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body

    def expected(self):
        """The fields of the document; None: it is left out."""
        if self.location:
            return {"alias": self.location, "text": b"", "html": None}
        kind = self.type.split(";")[0].lower()
        if self.status != 200 or kind in ("text/css", "image/png"):
            return None
        if kind == "text/plain":
            return {"alias": None, "text": self.body, "html": None}
        return {"alias": None, "text": b"", "html": self.body}


def warc_record(kind, number, fields, content):
    head = [f"WARC/1.{number % 2}", f"WARC-Type: {kind}", f"WARC-Record-ID: <urn:uuid:{number}>",
            "WARC-Date: 2026-01-02T03:04:05Z", *fields, f"Content-Length: {len(content)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + content + b"\r\n\r\n"


def make_warc(rng, count):
    """Gives the records, and the documents expected by the number of their record."""
    records, expected = [], {}
    for number in range(1, count + 1):
        url = f"http://example.org/{number}"
        kind = rng.choice(["warcinfo", "request", "metadata", "resource", "conversion", "revisit"] + ["response"] * 6)
        fields, content, want = [f"WARC-Target-URI: {url}"], b"a: b\r\n", None
        if kind == "response":
            page = Page(rng)
            fields.append("Content-Type: application/http; msgtype=response")
            content, want = page.bytes(rng), page.expected()
        elif kind == "request":
            fields.append("Content-Type: application/http; msgtype=request")
            content = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"
        elif kind in ("resource", "conversion"):
            fields.append("Content-Type: text/plain")
            content = "Größe\r\nWARC/1.0\r\n".encode() * rng.randrange(5)
            want = {"alias": None, "text": content, "html": None}
        elif kind == "revisit":
            fields += ["WARC-Refers-To-Target-URI: http://example.org/0",
                       "Content-Type: application/http; msgtype=response"]
            content = b"HTTP/1.1 200 OK\r\n\r\n"
            want = {"alias": b"http://example.org/0", "text": b"", "html": None}
        records.append(warc_record(kind, number, fields, content))
        if want:
            expected[number] = {"id": b"<urn:uuid:%d>" % number, "url": url.encode(), **want}
    return records, expected


def make_arc(rng, count):
    head = b"1 0 Some Archive\nURL IP-address Archive-date Content-type Archive-length\n\n"
    records = [b"filedesc://some.arc 0.0.0.0 20260102030405 text/plain %d\n%s\n" % (len(head), head)]
    expected = {}
    for number in range(2, count + 2):
        page = Page(rng)
        url, content = b"http://example.org/%d" % number, page.bytes(rng)
        records.append(b"%s 192.0.2.1 20260102030405 text/html %d\n%s\n" % (url, len(content), content))
        if page.expected():
            expected[number] = {"url": url, **page.expected()}
    return records, expected


# ---- comparing


def write(folder, name, records):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        for record in records:
            file.write(gzip.compress(record) if name.endswith(".gz") else record)
    return path


def same(documents, expected, what):
    assert [document["line"] for document in documents] == list(expected), what
    for document in documents:
        for field, value in expected[document["line"]].items():
            assert document[field] == value, (what, document["line"], field, document[field], value)


def compare_with_warcio(path):
    """Every document has the address and the bytes that warcio finds; gives how many were compared."""
    documents, _, _ = inputs.read([path.encode()])
    by_number, compared = {document["line"]: document for document in documents}, 0
    with open(path, "rb") as file:
        for number, record in enumerate(ArchiveIterator(file), 1):
            document = by_number.pop(number, None)
            if not document:
                continue
            url = record.rec_headers.get_header("WARC-Target-URI") or record.rec_headers.get_header("uri")
            assert document["url"].decode() == url, (path, number)
            if document["alias"] is not None or coding_of(record) == "br":  # for br it needs a package that is gone
                continue
            body = document["html"] if document["html"] is not None else document["text"]
            assert body == record.content_stream().read(), (path, number)
            compared += 1
    assert not by_number, (path, list(by_number))
    return compared


def coding_of(record):
    return record.http_headers.get_header("Content-Encoding") if record.http_headers else None


# ---- tests


def test_archives_are_read_as_they_were_made():
    rng, compared = random.Random(20), 0
    with tempfile.TemporaryDirectory() as folder:
        for i in range(40):
            make, ending = [(make_warc, ".warc"), (make_arc, ".arc")][i % 2]
            records, expected = make(rng, rng.randrange(1, 60))
            path = write(folder, f"{i}{ending}{rng.choice(['', '.gz'])}", records)
            for threads in (1, 2):
                documents, reports, _ = inputs.read([path.encode()], threads)
                assert not reports, reports
                same(documents, expected, path)
            compared += compare_with_warcio(path)
    return f"{compared} bodies as warcio reads them"


def test_big_archives_are_read_in_parts():
    rng = random.Random(21)
    with tempfile.TemporaryDirectory() as folder:
        records, expected = make_warc(rng, 4000)
        for name in ("a.warc", "a.warc.gz"):
            documents, reports, _ = inputs.read([write(folder, name, records).encode()], 2)
            assert not reports, reports
            same(documents, expected, name)


def test_cut_archives_give_what_is_whole():
    rng = random.Random(22)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(60):
            make, name = [(make_warc, "a.warc"), (make_arc, "a.arc")][i % 2]
            records, expected = make(rng, 20)
            whole = rng.randrange(len(records))
            part = records[whole][:rng.randrange(1, len(records[whole]) - 4)]
            path = write(folder, name, [*records[:whole], part])
            documents, reports, counts = inputs.read([path.encode()])
            same(documents, {n: want for n, want in expected.items() if n <= whole}, (i, whole))
            assert reports[0][1:] == (whole + 1, "the file ends within this record"), (reports, whole)
            assert counts.unopened == counts.bad == 1


def test_files_of_other_tools():
    compared = [compare_with_warcio(path) for path in sys.argv[1:]]
    return f"{sum(compared)} bodies of {len(compared)} files"


if __name__ == "__main__":
    check.main(globals())

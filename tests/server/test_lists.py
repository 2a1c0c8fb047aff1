"""Lists of documents, a page at a time: all, copies of one, by host, by title; and what a list must not do."""
import os
import shutil
import tempfile
import unittest

import support
import words
from support import document_path


class Lists(support.ServerTest):
    OPTIONS = ("--on-duplicate", "link")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        post = cls.server.post
        for number in range(30):
            post("/v1/documents", {"id": f"d/{number}", "url": f"https://{'a.b.example' if number % 3 else 'c.example'}/{number}",
                                   "text": words.text(f"l{number}"), "title": f"The title of document {number} {words.text(number, 6)}"})
        for number in range(7):
            post("/v1/documents", {"id": f"copy{number}", "text": words.near("l0", edits=1 + number % 3)})

    def walk(self, path, limit):
        found, cursor, pages = [], "", 0
        while cursor is not None and pages < 1000:
            status, _, body = self.server.get(f"{path}{'&' if '?' in path else '?'}limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(status, 200, body)
            self.assertLessEqual(len(body["documents"]), limit)
            found += body["documents"]
            cursor, pages = body["next"], pages + 1
        return [document["id"] for document in found]

    def test_pages_hold_every_document_once(self):
        everything = [f"d/{number}" for number in range(30)] + [f"copy{number}" for number in range(7)]
        for limit in (1, 4, 37, 1000):
            self.assertEqual(self.walk("/v1/documents", limit), everything)
        self.assertEqual(self.walk("/v1/documents?kind=originals", 7), everything[:30])
        self.assertEqual(self.walk("/v1/documents?kind=copies", 3), everything[30:])
        self.assertEqual(self.walk("/v1/indexes/default/documents?kind=copies", 3), everything[30:])

    def test_copies_without_a_url_are_listed(self):
        self.assertEqual(self.walk(document_path("d/0", "/copies"), 2), [f"copy{number}" for number in range(7)])
        copy = self.server.get(document_path("d/0", "/copies"))[2]["documents"][0]
        self.assertEqual((copy["originalId"], copy["reason"], copy["url"]), ("d/0", "content_hash", None))
        self.assertEqual(self.walk(document_path("https://c.example/0", "/copies"), 100), [f"copy{number}" for number in range(7)])
        for name in ("none", "d%2F0", "../d/0"):
            self.assertProblem(self.server.get(document_path(name, "/copies")), 404, "no-document")
        self.assertProblem(self.server.get("/v1/documents/d/0/copies"), 404, "no-route")

    def test_copies_of_a_copy_are_those_of_its_original(self):
        """As `doppel get --copies` lists them; the answer says whose they are."""
        for limit in (2, 100):
            self.assertEqual(self.walk(document_path("copy1", "/copies"), limit), [f"copy{number}" for number in range(7)])
        for name, original in (("copy1", "d/0"), ("d/0", "d/0"), ("https://c.example/0", "d/0"), ("d/1", "d/1")):
            self.assertEqual(self.server.get(document_path(name, "/copies"))[2]["original"], original)
        # They go with their original.
        post = self.server.post
        text = words.text("goes")
        self.assertEqual([post("/v1/documents", {"id": name, "text": text})[0] for name in ("goes", "stays", "stays too")], [201, 200, 200])
        self.assertEqual(self.server.ask("DELETE", "/v1/documents/goes")[0], 200)
        for name in ("goes", "stays", "stays%20too"):
            self.assertProblem(self.server.get(f"/v1/documents/{name}/copies"), 404, "no-document")
            self.assertProblem(self.server.get("/v1/documents/" + name), 404, "no-document")

    def test_by_host(self):
        self.assertEqual(len(self.walk("/v1/documents?host=b.example", 7)), 20)
        self.assertEqual(len(self.walk("/v1/documents?host=www.C.example", 100)), 10)
        self.assertEqual(self.walk("/v1/documents?host=example.b", 100), [])
        self.assertEqual(self.walk("/v1/documents?host=.example", 100), [])

    def test_by_title_counts_nothing(self):
        before = self.server.get("/v1/stats")[2]
        title = self.server.get(document_path("d/4"))[2]["title"]
        status, _, body = self.server.get("/v1/documents?title=" + title.upper().replace(" ", "+") + "%21")
        self.assertEqual((status, body["documents"][0]["id"], body["documents"][0]["titleSimilarity"]), (200, "d/4", 1))
        self.assertEqual(self.server.get("/v1/documents?title=nothing+like+it+is+known+here")[2], {"documents": [], "next": None})
        after = self.server.get("/v1/stats")[2]
        self.assertEqual((after["checks"], after["verdictsBy"]), (before["checks"], before["verdictsBy"]))

    def test_bad_parameters(self):
        for query in ("cursor=", "cursor=0", "cursor=-1", "cursor=x", "cursor=1.5", "cursor=1e3", "cursor=99999999999999999999", "cursor=%00",
                      "limit=0", "limit=1001", "kind=none", "host=", "host=" + 300 * "x", "title=", "other=1", "cursor=1&cursor=2",
                      "title=" + 5000 * "x", "cursor=%zz"):
            self.assertProblem(self.server.get("/v1/documents?" + query), 400, "bad-parameter")
        self.assertProblem(self.server.get("/v1/documents/x/similar?threshold=0.8"), 400, "bad-parameter",
                           detail='unknown parameter "threshold"; the parameters are limit, similarity, distance')
        self.assertProblem(self.server.get("/v1/stats?x=1"), 400, "bad-parameter", detail='unknown parameter "x"')
        self.assertEqual(self.server.get("/v1/documents?cursor=9007199254740991")[2], {"documents": [], "next": None})
        self.assertProblem(self.server.get("/v1/indexes/none/documents"), 404, "no-index")


class LargeDocuments(support.ServerTest):
    def test_a_page_of_large_documents_ends_early(self):
        for number in range(100):
            large = {name: f"{number} {name} " + "\u0001" * 20000 for name in ("source", "date")}
            status = self.server.post("/v1/documents", {"id": f"large{number}", "text": words.text(f"large{number}"), **large})[0]
            self.assertEqual(status, 201)
        found, cursor = [], 0
        while cursor is not None:
            status, headers, body = self.server.get("/v1/documents?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            self.assertEqual(status, 200)
            self.assertLess(int(headers["Content-Length"]), 30 << 20)
            self.assertLess(len(body["documents"]), 100)
            found += [document["id"] for document in body["documents"]]
            cursor = body["next"]
        self.assertEqual(found, [f"large{number}" for number in range(100)])


class Folders(unittest.TestCase):
    def test_folder_of_indexes_is_made_like_that_of_the_index(self):
        folder = tempfile.mkdtemp(prefix="doppel-server-")
        server = support.Server("--indexes", os.path.join(folder, "made"), folder=folder)
        try:
            self.assertEqual(server.ask("PUT", "/v1/indexes/one")[0], 201)
            self.assertTrue(os.path.isfile(server.path("made", "one.json")))
        finally:
            server.close()
            shutil.rmtree(folder)


if __name__ == "__main__":
    support.main()

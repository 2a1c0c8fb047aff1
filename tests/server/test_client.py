"""A client that openapi-python-client makes of /openapi.json, used against a running server: what a program of a user is like."""
import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
import words


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = support.Server("--on-duplicate", "link", "--keep-text")
        cls.folder = tempfile.mkdtemp(prefix="doppel-client-")
        path = os.path.join(cls.folder, "openapi.json")
        cls.described = cls.server.get("/openapi.json")[2]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(cls.described, file)
        with open(os.path.join(cls.folder, "config.yml"), "w", encoding="utf-8") as file:
            # It knows no NDJSON by itself: as bytes.
            file.write("post_hooks: []\npackage_name_override: doppel_client\n"
                       "content_type_overrides: {application/x-ndjson: application/octet-stream}\n")
        done = subprocess.run([os.path.join(os.path.dirname(sys.executable), "openapi-python-client"), "generate", "--path", path, "--meta", "none",
                               "--config", "config.yml", "--output-path", "doppel_client"], cwd=cls.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        cls.said = done.stdout + done.stderr
        sys.path.insert(0, cls.folder)
        cls.made = importlib.import_module("doppel_client")
        cls.client = cls.made.Client(base_url=f"http://127.0.0.1:{cls.server.port}")

    @classmethod
    def tearDownClass(cls):
        sys.path.remove(cls.folder)
        shutil.rmtree(cls.folder)
        cls.server.close()

    def call(self, function, *given, **named):
        module = importlib.import_module(f"doppel_client.api.{function}")
        return module.sync(*given, client=self.client, **named)

    def test_it_is_made_without_a_warning(self):
        self.assertNotIn("WARNING", self.said.upper())

    def test_operations_have_names_and_tags(self):
        operations = [one for path in self.described["paths"].values() for one in path.values()]
        ids = [one["operationId"] for one in operations]
        self.assertEqual(len(ids), len(set(ids)))
        tags = {tag["name"] for tag in self.described["tags"]}
        self.assertTrue(all(set(one["tags"]) <= tags for one in operations))
        self.assertTrue(all(tag in {one["tags"][0] for one in operations} for tag in tags))

    def test_every_array_says_what_is_in_it(self):
        schemas = self.described["components"]["schemas"]
        arrays = {(name, field): value["items"] for name, schema in schemas.items()
                  for field, value in schema["properties"].items() if value.get("type") == "array"}
        self.assertLess({("Stored", "aliases"), ("Stats", "fields"), ("Run", "largest")}, set(arrays))
        self.assertEqual([array for array, items in arrays.items() if not items], [])

    def test_documents(self):
        models = importlib.import_module("doppel_client.models")
        document = models.Document(id="one", url="https://example.org/one", title="A title of its own", text=words.text("client"))
        verdict = self.call("documents.add_document", body=document)
        self.assertEqual((type(verdict).__name__, verdict.id, verdict.is_duplicate), ("Verdict", "one", False))
        verdict = self.call("documents.check_document", body=models.Document(text=words.near("client")))
        self.assertEqual((verdict.is_duplicate, verdict.original_id), (True, "one"))
        self.assertGreater(verdict.evidence.similarity, 0.8)
        self.call("documents.add_document", body=models.Document(id="two", text=words.near("client")))
        copies = self.call("documents.list_copies", "one")
        self.assertEqual([copy.id for copy in copies.documents], ["two"])
        self.assertIsNone(copies.next_)
        listed = self.call("documents.list_documents", limit=1)
        self.assertEqual((len(listed.documents), listed.next_), (1, listed.documents[0].number))
        self.assertEqual(self.call("documents.get_document", "one").text, words.text("client"))
        problem = self.call("documents.get_document", "none")
        self.assertEqual((type(problem).__name__, problem.status), ("Problem", 404))

    def test_compare_and_indexes(self):
        models = importlib.import_module("doppel_client.models")
        compared = self.call("comparing.compare_texts", body=models.Comparison(a=models.Side(text=words.text("a")), b=models.Side(text=words.near("a"))))
        self.assertTrue(0.8 < compared.similarity < 1 and compared.passages[0].words > 1)
        made = self.call("indexes.create_index", "client", body=models.IndexOptions(keep_text=True))
        self.assertEqual((made.name, made.documents), ("client", 0))
        document = models.DocumentOfIndex(id="x", text=words.text("x"))
        self.assertFalse(self.call("documents.add_document_of_index", "client", body=document).is_duplicate)
        self.assertEqual(self.call("indexes.get_stats_of_index", "client").documents, 1)

    def test_runs(self):
        types = importlib.import_module("doppel_client.types")
        body = "".join(json.dumps(record) + "\n" for record in words.documents(100)).encode()
        run = self.call("runs.create_run", body=types.File(payload=io.BytesIO(body)), name="pages.jsonl")
        while run.state not in ("done", "failed"):
            run = self.call("runs.wait_for_run", run.id, after=run.version)
        self.assertEqual((run.state, run.documents), ("done", 100))
        self.assertEqual(len(self.call("runs.get_removed", run.id).splitlines()), run.removed)
        self.assertTrue(self.call("runs.delete_run", run.id).removed)

    def test_what_is_refused_does_not_fit_the_schema(self):
        """The schema is as tight as the check: one of url, title, text and html, and no unknown field."""
        schema = self.described["components"]["schemas"]["Document"]
        self.assertFalse(schema["additionalProperties"])
        self.assertLessEqual({"source", "date"}, set(schema["properties"]))
        jsonschema = importlib.import_module("jsonschema_rs")
        fits = jsonschema.Draft202012Validator(strict(schema)).is_valid
        for body in ({}, {"id": "x"}, {"text": None}, {"text": 1}, {"text": "x", "colour": "red"}, {"text": "x", "ttl": -1}, {"text": "x", "ttl": 0.5},
                     {"text": "x"}, {"url": "https://example.org/"}, {"title": None, "html": "<p>x"}, {"text": "x", "source": "wire", "date": 3}):
            status = self.server.post("/v1/check", body)[0]
            self.assertEqual(fits(body), status == 200, (body, status))


def strict(schema):
    """A schema of OpenAPI 3.0 as one of JSON Schema: nullable becomes a type."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: strict(value) for key, value in schema.items() if key not in ("nullable", "example")}
    return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") is True else made


if __name__ == "__main__":
    support.main()

"""The same documents get the same verdicts by the command, the library and HTTP; what OpenAPI says is what is answered."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import support
import words
from support import DOPPEL, FULL, Server, add_by_library


class Same(unittest.TestCase):
    def test_verdicts(self):
        records = list(words.documents(10000 if FULL else 300, seed="same"))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "documents.jsonl")
            with open(path, "w") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
            index = os.path.join(folder, "index")
            done = subprocess.run([DOPPEL, "add", "--index", index, path], capture_output=True, text=True, check=True)
            command = [json.loads(line) for line in done.stdout.splitlines()]
            for preset in ("general", "crawl"):
                server = Server("--preset", preset)
                batch = server.lines("/v1/batch?op=add", records)
                server.close()
                server = Server("--preset", preset)
                link = server.connect()
                single = [server.ask("POST", "/v1/documents", record, connection=link)[2] for record in records]
                link.close()
                server.close()
                self.assertEqual(batch, single)
                if preset == "general":
                    self.assertEqual(command, single)
                    self.assertEqual(add_by_library(records), single)
        self.assertGreater(sum(verdict["isDuplicate"] for verdict in command), len(records) / 10)


class Described(unittest.TestCase):
    def test_documents_are_up_to_date(self):
        made = subprocess.run([DOPPEL, "--generate", "http"], capture_output=True, text=True, check=True).stdout
        with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "HTTP.md")) as file:
            self.assertEqual(file.read(), made, "docs/HTTP.md is old: doppel --generate http > docs/HTTP.md")

    def test_schemathesis(self):
        """Of requests made of /openapi.json the valid are accepted, the invalid refused; all get documented answers and no server error.

        One worker: the parser of CPython 3.11, which Hypothesis calls, shares its depth counter between threads (gh-106905).
        """
        checks = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance",
                  "valid_is_accepted", "invalid_is_refused")
        hooks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "schemathesis_hooks.py")
        with tempfile.TemporaryDirectory() as folder:
            server = Server("--max-body", "1M", "--max-runs", "10000")
            done = subprocess.run(
                [os.path.join(os.path.dirname(sys.executable), "schemathesis"), "run",
                 f"http://127.0.0.1:{server.port}/openapi.json", "--max-examples", "100" if FULL else "5",
                 "--checks", ",".join(checks), "--seed", "1"],
                capture_output=True, text=True, cwd=folder, env=dict(os.environ, SCHEMATHESIS_HOOKS=hooks))
            server.close()
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])


if __name__ == "__main__":
    support.main()

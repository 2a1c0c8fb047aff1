"""What a worker tells of itself: /healthz, /readyz, /metrics, and a summary at its end."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

from pages import Planted
from support import Line, Worker, redis_url, services, wait_for


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def get(port, path):
    """(status, body); (None, None) while nobody answers."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()
    except OSError:
        return None, None


class Watching(unittest.TestCase):
    def test_metrics(self):
        planted, line, port = Planted(500, 2), Line(2), free_port()
        line.fill(planted.records)
        with tempfile.TemporaryDirectory(dir=services.folder) as folder:
            worker = Worker(line, "--index", os.path.join(folder, "seen"), "--preset", "crawl", "--json", "--listen", f"127.0.0.1:{port}")
            wait_for("a worker that is ready", lambda: get(port, "/readyz")[0] == 200 or not worker.alive())
            self.assertEqual(get(port, "/healthz")[0], 200)
            self.assertEqual(get(port, "/elsewhere")[0], 404)
            wait_for("all records", lambda: line.consumed() == len(planted) or not worker.alive())
            counted = r'(?m)^doppel_stream_records_total\{outcome="(\w+)"\} (\d+)$'

            def whole():
                found = dict(re.findall(counted, get(port, "/metrics")[1]))
                return found if sum(map(int, found.values())) == len(planted) else None

            found = wait_for("all records in the metrics", whole)
            text = get(port, "/metrics")[1]
            said = worker.stop().said()
        self.assertEqual(int(found["unique"]), planted.cliques)
        self.assertEqual((int(found["dead_letter"]), int(found["tombstone"])), (planted.kinds["dead"], planted.kinds["tombstone"]))
        self.assertEqual(re.findall(r'(?m)^doppel_stream_lag\{.*partition="\d".*\} (\d+)$', text), ["0", "0"])
        done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = [json.loads(part) for part in said.splitlines() if part.startswith("{")]
        self.assertEqual(len(summary), 1, said)
        self.assertEqual(summary[0]["unique"], planted.cliques)

    def test_idle(self):
        """A worker that has nothing to do tells, too, that its store or its brokers are away, and its figures stay."""
        planted, line, port = Planted(100, 1), Line(1), free_port()
        line.fill(planted.records)
        worker = Worker(line, "--store", redis_url("idle"), "--instance", "idle", "--listen", f"127.0.0.1:{port}")

        def ready(status, said):
            found = get(port, "/readyz")
            return found[0] == status and said in found[1]

        def figure(name):
            return re.findall(rf'(?m)^doppel_{name}{{index="default"}} (\d+)$', get(port, "/metrics")[1])

        wait_for("all records", lambda: line.consumed() == len(planted) or not worker.alive())
        there = [str(planted.cliques - planted.kinds["tombstone"])]
        wait_for("all documents in the metrics", lambda: figure("index_documents") == there)
        away = (
            ("the store", "0", lambda: os.kill(services.pid("redis", "redis"), signal.SIGSTOP), lambda: os.kill(services.pid("redis", "redis"), signal.SIGCONT)),
            ("the brokers", "1", lambda: services.call("stop", "kafka", "--keep"), lambda: services.call("start", "kafka")),
        )
        for who, store_up, go, come_back in away:
            wait_for("a worker that is ready", lambda: ready(200, "ready") or not worker.alive())
            go()
            try:
                wait_for(f"word that {who} do not answer", lambda: ready(503, who + " do") or not worker.alive())
                self.assertEqual((figure("index_documents"), figure("store_up")), (there, [store_up]))
            finally:
                come_back()
        wait_for("a worker that is ready", lambda: ready(200, "ready") or not worker.alive())
        self.assertIn("the store answers again", worker.stop().said())

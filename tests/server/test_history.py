"""What an index did in the last day: counted by the server, and still there after it was stopped, killed, or found its file damaged."""
import datetime
import os
import signal
import subprocess
import time
import unittest
import zlib

import support
import words
from support import FULL, Server

NAME = "doppel.index-history"


def done(points):
    """What was done in all of the points."""
    return sum(point["checks"] for point in points), sum(point["adds"] for point in points)


class History(unittest.TestCase):
    def work(self, server, name, adds=3, checks=5, index="/v1"):
        for number in range(adds):
            server.post(f"{index}/documents", {"id": f"{name}{number}", "text": words.text(f"{name}{number}")})
        for number in range(checks):
            server.post(f"{index}/check", {"text": words.text(f"{name}{number}")})

    def points(self, server, query="", index="/v1"):
        status, _, body = server.get(f"{index}/history{query}")
        self.assertEqual(status, 200, body)
        for point in body["points"]:
            self.assertTrue(all(point[name] >= 0 for name in ("seconds", "checks", "adds", "documents", "copies")), point)
            self.assertLessEqual(point["seconds"], 60 * body["step"])
        times = [point["time"] for point in body["points"]]
        self.assertEqual(times, sorted(set(times)))
        return body["points"]

    def test_counts(self):
        server = Server("--on-duplicate", "link")
        self.assertEqual(done(self.points(server)), (0, 0))
        self.work(server, "a")
        server.post("/v1/documents", {"id": "again", "text": words.text("a0")})
        body = server.get("/v1/history")[2]
        self.assertEqual((body["index"], body["stored"], body["step"]), ("default", True, 1))
        self.assertEqual(done(body["points"]), (5, 4))
        last = body["points"][-1]
        self.assertEqual((last["documents"], last["copies"]), (3, 1))
        by = {name: sum(point["verdictsBy"][name] for point in body["points"]) for name in ("unique", "url", "content", "title")}
        self.assertEqual(by, server.get("/v1/stats")[2]["verdictsBy"])
        began = datetime.datetime.fromisoformat(last["time"].replace("Z", "+00:00"))
        self.assertTrue(0 <= time.time() - began.timestamp() < 62)
        self.assertEqual(began.second, 0)
        # In steps: the same sum, and points at multiples of the step.
        for step in (2, 60, 1440):
            points = self.points(server, f"?step={step}")
            self.assertEqual(done(points), (5, 4))
            for point in points:
                self.assertEqual(datetime.datetime.fromisoformat(point["time"].replace("Z", "+00:00")).timestamp() % (60 * step), 0)
        server.close()

    def test_each_index_has_its_own(self):
        server = Server()
        server.ask("PUT", "/v1/indexes/other", {})
        self.work(server, "a", index="/v1/indexes/other")
        self.assertEqual(done(self.points(server)), (0, 0))
        self.assertEqual(done(self.points(server, index="/v1/indexes/other")), (5, 3))
        self.assertEqual(server.get("/v1/indexes/none/history")[0], 404)
        server.stop()
        self.assertTrue(os.path.exists(server.path("indexes", "other", NAME)))
        server.start()
        self.assertEqual(done(self.points(server, index="/v1/indexes/other")), (5, 3))
        self.assertEqual(server.ask("DELETE", "/v1/indexes/other")[0], 200)
        self.assertEqual(os.listdir(server.path("indexes")), [])
        server.ask("PUT", "/v1/indexes/other", {})
        self.assertEqual(done(self.points(server, index="/v1/indexes/other")), (0, 0))
        server.close()

    def test_restarts(self):
        """Counters that begin again at 0 give neither negative figures nor figures twice."""
        server = Server()
        for turn in range(1, 4):
            self.work(server, f"turn{turn}-")
            self.assertEqual(done(self.points(server)), (5 * turn, 3 * turn))
            self.assertEqual(server.stop(), 0)
            server.start()
            self.assertEqual(done(self.points(server)), (5 * turn, 3 * turn))
        server.close()

    def test_sigkill(self):
        server = Server()
        self.work(server, "kept")
        server.stop()
        server.start()
        self.work(server, "lost")
        if FULL:  # until the minute has ended, and was written
            time.sleep(61 - time.time() % 60)
        server.stop(signal.SIGKILL)
        server.start()
        checks, adds = done(self.points(server))
        self.assertIn((checks, adds), [(10, 6)] if FULL else [(5, 3), (10, 6)])  # the other one where a minute ended
        self.assertEqual(self.points(server)[-1]["documents"], 6)
        server.close()

    def test_a_restart_leaves_a_gap(self):
        """The file says nothing of the time in which no server ran: there is no point for it."""
        server = Server()
        self.work(server, "a")
        server.stop()
        path, now = server.path("seen", NAME), int(time.time()) // 60
        self.write(path, [(now - 30, 60, 7, 2), (now - 3 * 1440, 60, 1000, 1000), (now + 30, 60, 1000, 1000)])
        server.start()
        points = self.points(server)
        self.assertEqual(done(points), (7, 2))
        minutes = [int(datetime.datetime.fromisoformat(point["time"].replace("Z", "+00:00")).timestamp()) // 60 for point in points]
        self.assertEqual(minutes[0], now - 30)
        self.assertTrue(all(minute >= now for minute in minutes[1:]), minutes)
        self.assertEqual(done(self.points(server, "?minutes=20")), (0, 0))
        server.close()

    @staticmethod
    def write(path, minutes):
        lines = "".join(f"{minute} {seconds} {checks} {adds} {checks + adds} 0 0 0 3 0\n" for minute, seconds, checks, adds in minutes)
        with open(path, "w") as file:
            file.write(f"doppel history 1 {len(minutes)} {zlib.crc32(lines.encode()):08x}\n{lines}")

    def test_damaged_files(self):
        server = Server()
        self.work(server, "a")
        server.stop()
        path = server.path("seen", NAME)
        with open(path, "rb") as file:
            whole = file.read()
        many = b"doppel history 1 4000000000 00000000\n"
        for damaged in (b"", b"\0" * 5000, whole[:-1], whole[:20], whole + b"x", whole.replace(b" 5 ", b" 6 ", 1), b"{}", many, b"\xff" * (2 << 20)):
            with open(path, "wb") as file:
                file.write(damaged)
            server.start()
            self.assertIn(f"{NAME}: the file is damaged or truncated", server.said())
            self.assertEqual(done(self.points(server)), (0, 0))
            self.assertEqual(server.post("/v1/check", {"text": words.text("a0")})[0], 200)
            self.assertEqual(server.stop(), 0)
            server.start()
            self.assertNotIn(NAME, server.said())
            self.assertEqual(done(self.points(server)), (1, 0))
            server.stop()
        os.remove(path)
        os.mkdir(path)  # neither read nor written: reported, and all else works
        server.start()
        self.assertIn(NAME, server.said())
        self.work(server, "b")
        self.assertEqual(done(self.points(server)), (5, 3))
        server.close()

    def test_commands_take_no_notice(self):
        server = Server()
        self.work(server, "a")
        self.assertEqual(server.ask("POST", "/v1/compact")[0], 200)
        self.assertEqual(server.ask("POST", "/v1/backups")[0], 201)
        server.stop()
        folder, copy = server.path("seen"), server.path("copy")
        before = os.stat(os.path.join(folder, NAME)).st_mtime_ns
        for command in (["verify"], ["stats"], ["compact"], ["backup"]):
            place = [copy] if command == ["backup"] else []
            ran = subprocess.run([support.DOPPEL, *command, "--index", folder, *place], capture_output=True, text=True)
            self.assertEqual((ran.returncode, "history" in ran.stderr), (0, False), ran.stderr)
        self.assertEqual(os.stat(os.path.join(folder, NAME)).st_mtime_ns, before)
        server.start()
        self.assertEqual(done(self.points(server)), (5, 3))
        server.close()

    def test_a_folder_that_cannot_be_written(self):
        """The file cannot be replaced, as if the disk were full: that is reported once, and the history is kept in memory."""
        server = Server()
        os.mkdir(server.path("seen", NAME + ".new"))
        self.work(server, "a")
        self.assertEqual(done(self.points(server)), (5, 3))
        self.assertEqual(server.stop(), 0)
        self.assertIn("the history of the index `default` is kept in memory", server.said())
        os.rmdir(server.path("seen", NAME + ".new"))
        server.start()
        self.assertEqual(done(self.points(server)), (0, 0))
        server.close()

    def test_bad_requests(self):
        server = Server()
        for query in ("step=0", "step=1441", "step=1.5", "step=x", "step=", "minutes=0", "minutes=1441", "minutes=-1", "hours=1", "step=1&step=2"):
            status, _, body = server.get("/v1/history?" + query)
            self.assertEqual((status, body["type"]), (400, "urn:doppel:problem:bad-parameter"), query)
        self.assertEqual(server.ask("POST", "/v1/history", {})[0], 405)
        server.close()

    def test_size_is_bounded(self):
        server = Server()
        server.stop()
        now = int(time.time()) // 60
        most = 2 ** 32 - 1
        self.write(server.path("seen", NAME), [(now - ago, 60, most // 2, most // 2) for ago in range(1439, -1, -1)])
        server.start()
        link = server.connect()
        link.request("GET", "/v1/history")
        self.assertLess(len(link.getresponse().read()), 500_000)
        link.close()
        self.assertIn(len(self.points(server)), (1440, 1439))
        self.assertEqual(len(self.points(server, "?minutes=7")), 7)
        server.close()


if __name__ == "__main__":
    support.main()

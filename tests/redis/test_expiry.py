"""Time to live: documents go at their time, and the memory comes back; what is removed leaves nothing."""
import time
from datetime import datetime, timezone

from cliques import Cliques
from support import FULL, Case, Feeding, Server, get_all, run, run_failing, wait_for

COUNT = 20000 if FULL else 1500
LEFT = 0.1 if FULL else 0.3  # of the memory that was used: Redis keeps some for what comes
EVERYTHING = ("--on-duplicate", "link", "--keep-text")


class Expiry(Case):
    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(COUNT, seed="expiry")
        cls.path = cls.cliques.write("expiry")
        cls.server = Server(hz=100)
        cls.add_and_remove()  # what Redis takes for work as such, and keeps
        cls.server.ask("FLUSHALL")
        cls.empty = cls.server.info("used_memory")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def tearDown(self):
        self.server.ask("FLUSHALL")

    @classmethod
    def add_and_remove(cls):
        """Gives the memory that is used between the two."""
        url = cls.server.url()
        verdicts = run("add", url, *EVERYTHING, cls.path)
        filled = cls.server.info("used_memory")
        ids = [one["id"] for one in verdicts][::-1]  # copies before their originals, which would take them along
        for at in range(0, len(ids), 1000):
            run("remove", url, *ids[at:at + 1000])
        return filled

    def used(self):
        """Memory above that of the beginning."""
        return self.server.info("used_memory") - self.empty

    def left(self):
        """Keys, some of them where there are many, with the milliseconds they have left."""
        client = self.server.client()
        keys = client.ask("KEYS", "*")
        found = [(key, client.ask("PTTL", key)) for key in keys[::max(1, len(keys) // 300)]]
        client.close()
        return found

    def test_they_go_at_their_time(self):
        ttl = 30 if FULL else 5
        url = self.server.url()
        options = ("--ttl", ttl, *EVERYTHING)
        began = time.time()
        first = run("add", url, *options, self.path)
        added = time.time()
        self.assertLess(added - began, ttl - 1, "too slow for this test")
        for key, left in self.left():
            self.assertTrue(0 < left <= (ttl + 1) * 1000, (key, left))
        filled = self.used()
        one = get_all(url, [[verdict["id"] for verdict in first if not verdict["isDuplicate"]][-1]])
        (name, stored), = one.items()
        expires = datetime.strptime(stored["expires"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc).timestamp()
        self.assertTrue(began + ttl - 1 <= expires <= added + ttl)
        wait_for("just before", lambda: time.time() >= expires - 0.7)
        self.assertEqual(len(run("get", url, name)), 1)
        wait_for("just after", lambda: time.time() >= expires)
        self.assertIn(run_failing("get", url, name)[0], (3, 4))
        wait_for("the end of all", lambda: self.server.ask("DBSIZE") == 0)
        self.assertLess(time.time(), expires + 30)
        wait_for("memory that comes back", lambda: self.used() < filled * LEFT)
        self.assertEqual(run("add", url, *options, self.path), first)

    def test_they_do_not_match_any_more(self):
        """A later document keeps shared buckets alive, but not what is in them."""
        url = self.server.url()
        run("add", url, "--ttl", "5" if FULL else "1", self.path)
        more = Cliques(200, seed="later").write("later")
        later = run("add", url, "--ttl", "1h", more)
        time.sleep(6 if FULL else 2)
        again = run("add", url, "--ttl", "1h", self.path)
        self.assertEqual(sum(not one["isDuplicate"] for one in again), len(self.cliques.kind))
        self.assertFalse(any(one.get("known") for one in again))
        again = run("add", url, "--ttl", "1h", more)
        self.assertTrue(all(one.get("known") or one["isDuplicate"] for one in again))
        self.assertEqual([one["originalId"] for one in again], [one["originalId"] for one in later])

    def requests(self):
        return [key for key in self.server.keys() if key[6:7] == b"r"]

    def test_processes_that_end(self):
        """What a server remembers of the requests of a process goes with the process, however many come; of one that is killed, later."""
        url = self.server.url()
        for _ in range(5):
            run("add", url, "--ttl", "1h", self.path)
            run("check", url, self.path)
        self.assertEqual(self.requests(), [])
        feeding = Feeding(url)
        feeding.add({"id": "one more", "text": "a document of a process that is killed"})
        feeding.kill()
        left, = self.requests()
        self.assertTrue(0 < self.server.ask("PTTL", left) <= 120000)

    def test_never(self):
        url = self.server.url()
        run("add", url, "--ttl", "never", self.path)
        for key, left in self.left():
            self.assertEqual(left, -1, key) if key[6:7] != b"r" else self.assertLess(left, 120001)

    def test_all_removed(self):
        url = self.server.url()
        filled = self.add_and_remove() - self.empty
        # What tells requests that come twice stays for two minutes.
        left = self.left()
        self.assertLess(len(left), 10)
        self.assertTrue(all(key[6:7] == b"r" and 0 < milliseconds <= 120000 for key, milliseconds in left), left)
        self.assertLess(self.used(), filled * LEFT)
        self.assertFails(run_failing("stats", url), "there is no such index")

"""Processes that are killed at any moment while they add: who runs them again gets what an undisturbed run gives."""
import os
import random
import time

from cliques import Cliques
from support import FULL, Case, Doppel, Server, get_all, run, stats, wait_for

COUNT = 20000 if FULL else 600
KILLS = 40 if FULL else 5


class Kills(Case):
    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(COUNT, seed="kills")
        cls.path = cls.cliques.write("kills")
        cls.server = Server()
        cls.good = run("add", cls.server.url("prefix=good"), cls.path)
        cls.rng = random.Random("kills")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def kill_some(self, url, *options):
        """Starts it again and again and kills it after a while; then lets it run to its end. Gives the lines of each."""
        told = []
        for _ in range(KILLS):
            adding = Doppel("add", url, *options, self.path)
            wanted = self.rng.random() * 270 * len(self.cliques.documents)
            wait_for("verdicts", lambda: os.path.getsize(adding.output) >= wanted or not adding.alive(), every=0.001)
            time.sleep(self.rng.random() * 0.01)
            adding.kill()
            told.append(adding.lines())
        told.append(run("add", url, *options, self.path))
        return told

    def test_run_again(self):
        """Verdicts as undisturbed, apart from "known": every process told the same of each document."""
        url = self.server.url("prefix=bad")
        good = [(one["id"], one["isDuplicate"], one["originalId"], one["reason"]) for one in self.good]
        told = self.kill_some(url, "--batch", 50)
        for lines in told:
            self.assertEqual([(one["id"], one["isDuplicate"], one["originalId"], one["reason"]) for one in lines], good[:len(lines)])
        new = [one["id"] for lines in told for one in lines if not one["isDuplicate"] and not one.get("known")]
        self.assertEqual(len(new), len(set(new)))
        self.assertEqual(stats(url)["documents"], stats(self.server.url("prefix=good"))["documents"])
        unique = {one["id"] for one in self.good if not one["isDuplicate"]}
        self.assertEqual(set(get_all(url, unique)), unique)

    def test_others_go_on(self):
        """Some add while one beside them is killed again and again."""
        url = self.server.url("prefix=all")
        adding = [Doppel("add", url, "--batch", 20, self.cliques.write(f"kills{i}", order=i)) for i in range(2)]
        told = [one for lines in self.kill_some(url, "--batch", 20) for one in lines]
        told += [one for other in adding for one in other.finish()]
        stored = get_all(url, {one["originalId"] or one["id"] for one in told})
        # A unique that was added and never told is known when it comes again.
        unique = {self.cliques.of[name]: name for name in stored}
        self.assertEqual(len(unique), len(stored))
        self.assertEqual(len(unique), len(self.cliques.kind))
        for one in told:
            self.assertEqual(one["originalId"] or one["id"], unique[self.cliques.of[one["id"]]])
        self.assertLessEqual(sum(not one["isDuplicate"] and not one.get("known") for one in told), len(unique))

    def test_killed_while_opening(self):
        for i in range(KILLS):
            url = self.server.url(f"prefix=open{i}")
            some = [Doppel("add", url, self.path) for _ in range(2)]
            time.sleep(self.rng.random() * 0.03)
            some[0].kill()
            lines = some[1].finish()
            verdicts = {one["id"]: one for one in some[0].lines() if not one.get("known")}
            verdicts.update((one["id"], one) for one in lines if not one.get("known"))
            self.assertEqual(len(lines), len(self.good))
            self.assertEqual(stats(url)["documents"], len(self.cliques.kind))
            self.assertLessEqual(sum(not one["isDuplicate"] for one in verdicts.values()), len(self.cliques.kind))

"""Eight processes that add the same documents at the same time, each in another order: one answer."""
import os
import time
from contextlib import suppress

from cliques import Cliques, EditedCliques, check_verdicts
from support import FULL, Case, Doppel, Server, Several, get_all, nodes, services, stats, wait_for

PROCESSES = 8
COUNT = 50000 if FULL else 2000


def add_all(cliques, url, *options):
    """The processes, which have begun."""
    return [Doppel("add", url, "--threads", 1, *cliques.options, *options, cliques.write(f"order{i}", order=i)) for i in range(PROCESSES)]


class Together(Case):
    """Copies that are edited, by similarity."""

    @classmethod
    def setUpClass(cls):
        cls.cliques = EditedCliques(COUNT)

    def check_whole(self, url, verdicts):
        stored = get_all(url, {verdict["originalId"] or verdict["id"] for verdict in verdicts})
        unique = check_verdicts(self, self.cliques, verdicts, stored)
        self.assertEqual(len(unique), len(self.cliques.kind))
        told = stats(url)
        self.assertEqual((told["documents"], sum(told["duplicates"].values())),
                         (len(unique), sum(verdict["isDuplicate"] for verdict in verdicts)))

    def test_one_redis(self):
        server = Server()
        adding = add_all(self.cliques, server.url())
        verdicts = [verdict for one in adding for verdict in one.finish()]
        self.assertEqual(len(verdicts), PROCESSES * len(self.cliques.documents))
        self.check_whole(server.url(), verdicts)
        server.close()

    def test_indexes_apart(self):
        """Prefixes and databases of one server are memories of their own."""
        server = Server()
        path = Cliques(300).write("some")
        urls = [server.url("prefix=a"), server.url("prefix=b"), server.url("prefix=a", db=3), server.url("")]
        adding = [Doppel("add", url, path) for url in urls]
        said = [one.finish() for one in adding]
        for one in said[1:]:
            self.assertEqual(one, said[0])
        server.close()


class ByDistance(Together):
    """Copies with nearly the same fingerprint."""

    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(COUNT // 5 if FULL else COUNT)
        cls.cliques.options = ("--near", "distance")

    test_indexes_apart = None


class Cluster(Together):
    """The same on a Cluster, while the master that has the slot is killed, and comes back as a replica."""

    def master(self, cluster):
        for node in cluster.nodes:
            with suppress(OSError):
                slot = cluster.ask(node, "CLUSTER", "KEYSLOT", "{test}m")
                for first, last, owner, *_ in cluster.ask(node, "CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return cluster.node_at(owner[1])
        raise AssertionError("nobody has the slot")

    def told(self, adding):
        """How many bytes of verdicts there are."""
        return sum(os.path.getsize(one.output) for one in adding)

    def kill_master(self, cluster, adding, seen):
        """Waits until there are more verdicts, kills the master, and starts it again when another is in charge."""
        wait_for("verdicts", lambda: self.told(adding) > seen or not any(one.alive() for one in adding))
        self.assertTrue(any(one.alive() for one in adding), "all ended too soon")
        old = self.master(cluster)
        cluster.kill(old)
        wait_for("another master", lambda: self.master(cluster) != old)
        time.sleep(0.3)
        cluster.start()

    def test_one_redis(self):
        cluster = Several(services.make_cluster, services.start_cluster)
        url = cluster.url("prefix=test&replicas=1")
        adding = add_all(self.cliques, url, "--batch", 200)
        size = 270 * len(self.cliques.documents) * PROCESSES  # of all verdicts, about
        for share in (0.1, 0.4, 0.7) if FULL else (0.1,):
            self.kill_master(cluster, adding, size * share)
        verdicts = [verdict for one in adding for verdict in one.finish()]
        self.assertEqual(len(verdicts), PROCESSES * len(self.cliques.documents))
        self.check_whole(url, verdicts)
        cluster.close()

    def test_slot_moves(self):
        """The slot goes to another master, key by key, while all add."""
        cluster = Several(services.make_cluster, services.start_cluster)
        cliques = EditedCliques(COUNT // 5, seed="slot")
        adding = [Doppel("add", cluster.url(), *cliques.options, "--batch", 50, cliques.write(f"slot{i}", order=i)) for i in range(4)]
        wait_for("verdicts", lambda: all(os.path.getsize(one.output) for one in adding))
        for _ in range(5 if FULL else 1):
            self.move_slot(cluster)
        verdicts = [verdict for one in adding for verdict in one.finish()]
        self.assertEqual(len(verdicts), 4 * len(cliques.documents))
        stored = get_all(cluster.url(), {verdict["originalId"] or verdict["id"] for verdict in verdicts})
        check_verdicts(self, cliques, verdicts, stored)
        cluster.close()

    def move_slot(self, cluster):
        source = self.master(cluster)
        ids = {node: cluster.ask(node, "CLUSTER", "MYID") for node in cluster.nodes}
        masters = [node for node in cluster.nodes if b"role:master" in cluster.ask(node, "INFO", "replication")]
        target = next(node for node in masters if node != source)
        slot, port = cluster.ask(source, "CLUSTER", "KEYSLOT", "{test}m"), str(nodes.about(target)["port"])
        cluster.ask(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
        cluster.ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
        while True:
            keys = cluster.ask(source, "CLUSTER", "GETKEYSINSLOT", slot, "200")
            if not keys:
                break
            cluster.ask(source, "MIGRATE", "127.0.0.1", port, "", "0", "5000", "KEYS", *keys)
        for node in (target, *(node for node in masters if node != target)):
            cluster.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])

    test_indexes_apart = None

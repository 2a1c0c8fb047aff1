"""A Redis that refuses, is full, fails over, restarts empty, forgets its functions, sleeps or loads: clear words, and work goes on."""
import os
import signal
import threading
import time
from contextlib import contextmanager

from cliques import Cliques, check_verdicts
from proxy import Proxy
from support import FULL, Case, Doppel, Feeding, Refused, Server, Several, get_all, nodes, run, run_failing, services, wait_for

COUNT = 10000 if FULL else 400


@contextmanager
def again_and_again(act, every):
    """Does something from time to time, in a thread of its own."""
    over = threading.Event()

    def work():
        while not over.wait(every):
            act()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class Trouble(Case):
    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(COUNT, seed="trouble")
        cls.path = cls.cliques.write("trouble")
        cls.server = Server(enable_debug_command="local")
        cls.good = run("add", cls.server.url("prefix=good"), cls.path)

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def setUp(self):
        self.server.ask("FLUSHALL")
        self.proxy = Proxy(self.server.port, hold=0.02)

    def tearDown(self):
        for one in list(Doppel.running):
            one.kill()
        self.proxy.close()

    def add_slowly(self, query="prefix=test", path=None):
        """Adds over a slow network, so that there is time for trouble."""
        return Doppel("add", self.server.url(query, port=self.proxy.port), "--batch", 20, path or self.path)

    def check_same(self, url, verdicts):
        """As undisturbed, the counts too."""
        self.assertEqual(verdicts, self.good)
        stored = get_all(url, [verdict["id"] for verdict in verdicts if not verdict["isDuplicate"]])
        check_verdicts(self, self.cliques, verdicts, stored)

    def half_way(self, adding):
        """Waits until some verdicts, and not all, are there."""
        wait_for("verdicts", lambda: os.path.getsize(adding.output) or not adding.alive())
        self.assertTrue(adding.alive(), "it ended too soon: " + adding.said())

    # ---- forgetting and sleeping

    def test_functions_are_flushed_between(self):
        url = self.server.url()
        feeding = Feeding(url)
        for i, document in enumerate(self.cliques.documents[:30]):
            if i % 3 == 1:
                self.server.ask("FUNCTION", "FLUSH", "SYNC")
            elif i % 3 == 2:
                self.server.ask("SCRIPT", "FLUSH", "SYNC")
            self.assertEqual(feeding.add(document), self.good[i])
        self.assertEqual(feeding.ended(), 0)
        self.assertEqual(len(run("get", url, self.good[0]["id"])), 1)

    def test_functions_are_flushed_meanwhile(self):
        def flush():
            client.ask("FUNCTION", "FLUSH")
            client.ask("SCRIPT", "FLUSH")

        client = self.server.client()
        with again_and_again(flush, 0.03):
            verdicts = run("add", self.server.url("prefix=one"), "--batch", 50, self.path)
            self.check_same(self.server.url("prefix=one"), verdicts)
            adding = [Doppel("add", self.server.url("prefix=all"), "--batch", 50, self.cliques.write(f"flush{i}", order=i))
                      for i in range(3)]
            verdicts = [verdict for one in adding for verdict in one.finish()]
        client.close()
        stored = get_all(self.server.url("prefix=all"), {verdict["originalId"] or verdict["id"] for verdict in verdicts})
        check_verdicts(self, self.cliques, verdicts, stored)

    def test_stopped_for_a_while(self):
        adding = self.add_slowly("prefix=test&timeout=0.4")
        self.half_way(adding)
        self.server.signal(signal.SIGSTOP)
        time.sleep(5 if FULL else 1.2)
        self.server.signal(signal.SIGCONT)
        self.check_same(self.server.url(), adding.finish())

    def test_asleep_for_a_while(self):
        adding = self.add_slowly("prefix=test&timeout=0.4")
        self.half_way(adding)
        self.server.ask("DEBUG", "SLEEP", "1.2")
        self.check_same(self.server.url(), adding.finish())

    def test_away_too_long(self):
        feeding = Feeding(self.server.url("prefix=test&timeout=0.3&retry=0.6"))
        feeding.add(self.cliques.documents[0])
        self.server.signal(signal.SIGSTOP)
        feeding.give(self.cliques.documents[1])
        self.assertEqual(feeding.ended(), 4)
        self.server.signal(signal.SIGCONT)
        self.assertRegex(feeding.said(), r"silent for 0\.\d+ s.*given up after 0.6 s")

    # ---- full

    def test_full(self):
        url = self.server.url()
        empty = self.server.info("used_memory")
        run("add", self.server.url("prefix=before"), self.path)
        filled = self.server.info("used_memory")
        self.server.ask("CONFIG", "SET", "maxmemory", filled + (filled - empty) // 2)  # room for half of them
        try:
            adding = Doppel("add", url, "--batch", 20, self.path)
            self.assertEqual(adding.ended(), 4, adding.said())
            self.assertRegex(adding.said(), "it is full: raise its maxmemory")
            told = adding.lines()
            # Batches are under way side by side: after one that was refused, another may have found room.
            places = [[good["id"] for good in self.good].index(verdict["id"]) for verdict in told]
            whole = next((at for at, place in enumerate(places) if at != place), len(told))
            self.assertEqual(places, sorted(set(places)))
            self.assertEqual(told[:whole], self.good[:whole])
            self.assertTrue(0 < whole and len(told) < len(self.good))
            new = [verdict["id"] for verdict in told if not verdict["isDuplicate"]]
            self.assertEqual(set(get_all(url, new)), set(new))
            checked = run("check", url, self.path)
            self.assertTrue(all(checked[place]["isDuplicate"] for place in places))
            self.assertFails(run_failing("add", url, self.path), "it is full")
            self.assertTrue(run("remove", url, new[0])[0]["removed"])
        finally:
            self.server.ask("CONFIG", "SET", "maxmemory", "0")
        # Of what was not told, the later may have found room and the earlier not; what was told stays, but for what was removed.
        again = run("add", url, self.path)
        unique = {self.cliques.of[one["id"]]: one["id"] for one in again if not one["isDuplicate"]}
        for one in again + [one for one in told if self.cliques.of[one["id"]] != self.cliques.of[new[0]]]:
            self.assertEqual(one["originalId"] or one["id"], unique[self.cliques.of[one["id"]]])

    # ---- empty

    def test_restarts_empty(self):
        feeding = Feeding(self.server.url())
        first, second = self.cliques.documents[:2]
        self.assertFalse(feeding.add(first)["isDuplicate"])
        self.assertTrue(feeding.add(first)["known"])
        self.server.stop()
        self.server.start()
        self.assertEqual([feeding.add(one)["isDuplicate"] for one in (second, first)], [False, False])
        self.assertTrue(feeding.add(first)["known"])
        self.assertEqual(feeding.ended(), 0)
        self.assertRegex(feeding.said(), "is gone: it starts anew")
        self.assertEqual(feeding.said().count("starts anew"), 1)

    def test_restarts_empty_meanwhile(self):
        adding = [self.add_slowly(path=self.cliques.write(f"empty{i}", order=i)) for i in range(3)]
        for one in adding:
            self.half_way(one)
        self.server.stop()
        self.server.start()
        for one in adding:
            self.assertEqual(len(one.finish()), len(self.cliques.documents))
        said = "".join(one.said() for one in adding)
        self.assertIn("is gone: it starts anew", said)
        self.assertEqual(said.count("is gone"), 3, said)

    def test_flushed(self):
        """Somebody deletes all keys: the same as a restart."""
        feeding = Feeding(self.server.url())
        for document in self.cliques.documents[:5]:
            self.assertFalse(feeding.add(document).get("known"))
            self.server.ask("FLUSHALL")
        self.assertEqual(feeding.ended(), 0)
        self.assertIn("is gone: it starts anew", feeding.said())

    def test_expired_is_not_lost(self):
        """What has expired is no reason for an alarm."""
        feeding = Feeding(self.server.url(), "--ttl", "1")
        self.assertFalse(feeding.add(self.cliques.documents[0])["isDuplicate"])
        wait_for("the end", lambda: self.server.ask("DBSIZE") == 0)
        self.assertFalse(feeding.add(self.cliques.documents[0])["isDuplicate"])
        self.assertEqual(feeding.ended(), 0)
        self.assertEqual(feeding.said(), "")


class Loading(Case):
    def test_a_large_file(self):
        """A server that reads its data is waited for, by who comes and by who was there."""
        cliques = Cliques(COUNT, seed="loading")
        path = cliques.write("loading")
        server = Server()
        first = run("add", server.url(), path)
        feeding = Feeding(server.url())
        self.assertTrue(feeding.add(next(one for one in cliques.documents if one["id"] == first[0]["id"]))["known"])
        server.ask("SAVE")
        server.stop()
        keys = 3 * len(first)
        server.start(wait=False, key_load_delay=int(1e6 / keys), loading_process_events_interval_bytes=1024)

        def loads():
            try:
                return server.info("loading") == 1
            except (OSError, Refused):
                return False

        wait_for("loading", loads)
        adding = Doppel("add", server.url(), path)
        again = feeding.add(cliques.documents[0])
        self.assertTrue(again["isDuplicate"] or again["known"])
        verdicts = adding.finish()
        self.assertTrue(all(one["isDuplicate"] or one["known"] for one in verdicts))
        self.assertEqual([one["originalId"] for one in verdicts], [one["originalId"] for one in first])
        self.assertEqual(feeding.ended(), 0)
        self.assertNotIn("gone", feeding.said())
        server.close()


class Refusing(Case):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(requirepass="right:word")
        cls.cliques = Cliques(50, seed="refusing")
        cls.path = cls.cliques.write("refusing")

    @classmethod
    def tearDownClass(cls):
        cls.server.close()

    def refused(self, url, words):
        for command, operand in (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x")):
            began = time.monotonic()
            self.assertFails(run_failing(command, url, operand), words)
            self.assertLess(time.monotonic() - began, 15)

    def test_passwords(self):
        self.refused(self.server.url(), "it asks for a password")
        self.refused(self.server.url(login=":wrong@"), "the user name or the password is wrong")
        self.refused(self.server.url(login="nobody:wrong@"), "the user name or the password is wrong")
        self.assertEqual(len(run("add", self.server.url(login=":right%3Aword@"), self.path)), len(self.cliques.documents))

    def test_no_such_db(self):
        self.refused(self.server.url(login=":right%3Aword@", db=99), "it does not have that db")

    def test_nobody_is_there(self):
        self.refused(self.server.url(query="retry=0.2", port=nodes.free_port()), "(?i)refused")

    def test_no_redis(self):
        server = Server()
        server.signal(signal.SIGSTOP)
        self.assertFails(run_failing("add", server.url("timeout=0.3&retry=0.3"), self.path), r"silent for 0\.\d+ s")
        server.close()

    def test_rights(self):
        """A user who may not call functions is told so when something has to be written, and one who may do what is needed does it."""
        run("add", self.server.url(login=":right%3Aword@"), self.path)
        self.server.ask("ACL", "SETUSER", "weak", "on", ">pw", "~*", "+@all", "-fcall", "-fcall_ro")
        for command, operand in (("add", self.path), ("remove", self.cliques.documents[0]["id"])):
            self.assertFails(run_failing(command, self.server.url(login="weak:pw@"), operand), "(?i)permissions.*fcall")
        self.assertEqual(len(run("check", self.server.url(login="weak:pw@"), self.path)), len(self.cliques.documents))
        self.server.ask("ACL", "SETUSER", "reader", "on", ">pw", "~{other}*", "+@all")
        self.refused(self.server.url(login="reader:pw@"), "(?i)permission")
        self.server.ask("ACL", "SETUSER", "own", "on", ">pw", "~{own}*", "+@all", "-@dangerous", "+function|load", "+function|list")
        run("add", self.server.url("prefix=own", login="own:pw@"), self.path)

    def test_a_password_from_now_on(self):
        server = Server()
        feeding = Feeding(server.url("prefix=test&retry=20"))
        feeding.add(self.cliques.documents[0])
        client = server.client()
        client.ask("CONFIG", "SET", "requirepass", "new")
        feeding.add(self.cliques.documents[1])  # who is in stays in
        client.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        began = time.monotonic()
        feeding.give(self.cliques.documents[2])
        self.assertEqual(feeding.ended(), 4)
        self.assertRegex(feeding.said(), "it asks for a password")
        self.assertLess(time.monotonic() - began, 15)
        client.close()
        server.settings["requirepass"] = "new"
        server.close()


class Sentinel(Case):
    def test_failover(self):
        """The master is killed in the middle of a batch; what was told is at the new one."""
        group = Several(services.make_sentinel, services.start_sentinel)
        cliques = Cliques(COUNT, seed="sentinel")
        url = group.url("prefix=test&replicas=1&timeout=1")
        adding = [Doppel("add", url, "--batch", 50, cliques.write(f"sentinel{i}", order=i)) for i in range(3)]
        wait_for("verdicts", lambda: all(os.path.getsize(one.output) for one in adding))
        old, watcher = group.nodes[0], group.nodes[2]
        group.kill(old)
        port = str(nodes.about(old)["port"]).encode()
        wait_for("another master", lambda: group.ask(watcher, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "doppel")[1] != port)
        # The old one comes back as a replica; Sentinels would make it one, too, some ten seconds later.
        nodes.launch(old)
        wait_for("the old master", lambda: services.answers(old))
        group.ask(old, "REPLICAOF", *group.ask(watcher, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "doppel"))
        verdicts = [verdict for one in adding for verdict in one.finish()]
        stored = get_all(url, {verdict["originalId"] or verdict["id"] for verdict in verdicts})
        check_verdicts(self, cliques, verdicts, stored)
        self.assertEqual(len(verdicts), 3 * len(cliques.documents))
        group.close()

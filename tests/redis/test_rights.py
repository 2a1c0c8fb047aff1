"""Users of one Redis who do not trust each other, with the rights that docs/ENGINE.md gives: each reaches its own index and nothing else."""
import os
import re
from contextlib import suppress

from cliques import Cliques, check_verdicts
from support import ROOT, Case, Client, Doppel, Refused, Server, Several, get_all, nodes, run, run_failing, services, stats, wait_for


def documented(user, prefix, *more):
    """The rights of a worker, as docs/ENGINE.md has them, for a user: words of ACL SETUSER."""
    with open(os.path.join(ROOT, "docs", "ENGINE.md")) as file:
        line, = re.findall(r"^user crawler (on .*)$", file.read(), re.MULTILINE)
    return ["ACL", "SETUSER", user, "reset", *line.replace("PASSWORD", "pw").replace("{doppel}", "{%s}" % prefix).split(), *more]


FUNCTIONS = ("make", "reserve", "enter", "commit", "remove", "sweep")


def functions_of(server, library):
    """The functions that are loaded, without the name of their library."""
    client = server.client()
    try:
        found, = client.ask("FUNCTION", "LIST", "LIBRARYNAME", library)
    finally:
        client.close()
    functions = dict(zip(found[::2], found[1::2]))[b"functions"]
    return {dict(zip(one[::2], one[1::2]))[b"name"].decode().removeprefix(library + "_") for one in functions}


class Rights(Case):
    @classmethod
    def setUpClass(cls):
        cls.cliques = Cliques(200, seed="rights")
        cls.path = cls.cliques.write("rights")

    def setUp(self):
        self.server = Server()
        for name in "ab":
            self.server.ask(*documented(name, name))
        self.addCleanup(self.server.close)

    def url(self, user, query=""):
        return self.server.url(f"prefix={user}{query}", login=f"{user}:pw@")

    def client(self, user):
        client = Client(self.server.port)
        client.ask("AUTH", user, "pw")
        self.addCleanup(client.close)
        return client

    def keys_of(self, prefix):
        return {key: self.server.ask("DUMP", key) for key in self.server.keys() if key.startswith(b"{%s}" % prefix.encode())}

    def use_all(self, url):
        """Every command that takes a store."""
        verdicts = run("add", url, "--on-duplicate", "link", "--keep-text", "--titles", "on", self.path)
        check_verdicts(self, self.cliques, verdicts, get_all(url, [one["id"] for one in verdicts if not one["isDuplicate"]]))
        self.assertTrue(all(one["isDuplicate"] for one in run("check", url, self.path)))
        self.assertEqual(stats(url)["documents"], sum(not one["isDuplicate"] for one in verdicts))
        run("similar", url, verdicts[0]["id"])
        self.assertEqual(len(run("export", url)), 1 + len(verdicts))
        self.assertTrue(run("remove", url, verdicts[0]["id"])[0]["removed"])
        return verdicts

    def race(self):
        """Some add the same at the same time. Gives whether they took turns, and one had to find out what the others wrote."""
        run("remove", self.url("b"), *self.cliques.of)
        adding = [Doppel("add", self.url("b"), "--ttl", "never", "--batch", 5, self.cliques.write(f"race{i}", order=i)) for i in range(4)]
        for one in adding:
            one.finish()
            self.assertEqual(one.said(), "")
        return "lindex" in self.used()

    def used(self):
        """The commands that the server has carried out."""
        said = self.server.ask("INFO", "commandstats").decode()
        return {name for name, calls, refused in re.findall(r"^cmdstat_(\S+):calls=(\d+).*rejected_calls=(\d+)", said, re.MULTILINE) if int(calls)}

    # ---- what a worker needs

    def test_prepared(self):
        """An administrator loads the functions; with the documented rights everything works, titles, texts and links too."""
        self.assertEqual([one["state"] for one in run("prepare", self.server.url(""))], ["loaded"])
        self.assertEqual([one["state"] for one in run("prepare", self.server.url(""))], ["present"])
        self.use_all(self.url("a"))
        one = Doppel("add", self.url("b"), "--ttl", "never", self.path)
        one.finish()
        self.assertEqual(one.said(), "")
        wait_for("processes that meet", self.race, every=0)
        rights = {word[1:] for word in documented("a", "a") if word.startswith("+")}
        self.assertEqual(rights - self.used(), set(), "rights that nothing needs")

    def test_walks(self):
        """To walk through all buckets needs the names of keys, and so those of everybody."""
        run("prepare", self.server.url(""))
        run("add", self.url("a"), self.path)
        for command in ("verify", "compact"):
            self.assertFails(run_failing(command, self.url("a")), "(?i)scan")
            self.server.ask(*documented("a", "a", "+scan"))
            self.assertEqual(run_failing(command, self.url("a"))[0], 0)
            self.server.ask(*documented("a", "a"))

    def test_not_prepared(self):
        """Without the functions, and without the right to load them, a worker says who has to do what."""
        for command, operand in (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x")):
            self.assertFails(run_failing(command, self.url("a"), operand), "may not load .*doppel prepare --store")
        self.assertFails(run_failing("prepare", self.url("a")), "may not load")
        self.assertEqual(self.server.keys(), [])

    def test_functions_vanish(self):
        """An administrator flushes them while a worker runs: it ends with the same words, and goes on once they are back."""
        run("prepare", self.server.url(""))
        run("add", self.url("a"), self.path)
        self.server.ask("FUNCTION", "FLUSH")
        self.assertFails(run_failing("add", self.url("a"), self.path), "doppel prepare --store")
        run("prepare", self.server.url(""))
        self.assertTrue(all(one["isDuplicate"] or one["known"] for one in run("add", self.url("a"), self.path)))

    def test_may_load(self):
        """A worker that may load them does so by itself; one that may not even look uses what is there."""
        self.server.ask(*documented("a", "a", "+function|load"))
        self.use_all(self.url("a"))
        self.server.ask(*documented("b", "b", "-function|list", "-info"))
        self.use_all(self.url("b"))

    def test_administrator(self):
        """Who loads the functions needs the rights to do so, and no keys."""
        self.server.ask("ACL", "SETUSER", "admin", "on", ">pw", "+function|list", "+function|load")
        self.assertEqual([one["state"] for one in run("prepare", self.server.url("", login="admin:pw@"))], ["loaded"])
        self.assertFails(run_failing("add", self.server.url("prefix=a", login="admin:pw@"), self.path), "NOPERM")
        run("add", self.url("a"), self.path)

    def test_more_rights(self):
        """The memory of the server, for who may ask; prefixes with characters that mean something in a pattern."""
        run("prepare", self.server.url(""))
        run("add", self.url("a"), self.path)
        self.assertEqual(stats(self.url("a"))["memoryBytes"], 0)
        self.server.ask(*documented("a", "a", "+info|memory"))
        self.assertGreater(stats(self.url("a"))["memoryBytes"], 100000)
        self.refused(self.client("a"), "INFO", "commandstats")
        self.server.ask(*documented("c", r"p\*\?\[x"))
        url = self.server.url("prefix=p%2a%3f%5bx", login="c:pw@")
        run("add", url, self.path)
        self.assertFails(run_failing("add", self.server.url("prefix=pa%3f%5bx", login="c:pw@"), self.path), "NOPERM")

    def test_replicas_and_databases(self):
        """`replicas=` needs WAIT, a database SELECT: with both they work, and without the message names what is missing."""
        run("prepare", self.server.url(""))
        for query, db, right in (("&replicas=1&timeout=0.2&retry=0", 0, "wait"), ("", 3, "select")):
            url = self.server.url(f"prefix=a{query}", login="a:pw@", db=db)
            self.assertFails(run_failing("add", url, self.path), right)
            self.server.ask(*documented("a", "a", f"+{right}"))
            ended = run_failing("add", url, self.path)
            self.assertNotIn("rights", ended[1])

    # ---- what it must not

    def refused(self, client, *words):
        with self.assertRaises(Refused, msg=words) as caught:
            client.ask(*words)
        self.assertRegex(str(caught.exception), "NOPERM|can't (run this command|access at least one of the keys)", words)

    def test_attack(self):
        """A tenant replaces the functions, and calls them with another's keys: refused, and the other's documents are whole."""
        name = run("prepare", self.server.url(""))[0]["library"]
        first = run("add", self.url("b"), self.path)
        run("add", self.url("a"), self.path)
        before, evil = self.keys_of("b"), self.client("a")
        code = f"#!lua name={name}\nredis.register_function('{name}_add', function(keys) redis.call('DEL', keys[1]) return {{}} end)"
        dump = self.server.ask("FUNCTION", "DUMP")
        for words in (("FUNCTION", "LOAD", "REPLACE", code), ("FUNCTION", "LOAD", code.replace(name, "other")), ("FUNCTION", "DELETE", name),
                      ("FUNCTION", "FLUSH"), ("FUNCTION", "RESTORE", dump, "REPLACE"), ("FUNCTION", "KILL"),
                      ("EVAL", "return redis.call('DEL', KEYS[1])", "1", "{b}m"), ("EVAL", "return 1", "0"), ("EVAL_RO", "return 1", "0"),
                      ("EVALSHA", "0" * 40, "0"), ("SCRIPT", "LOAD", "return 1"), ("SCRIPT", "FLUSH"),
                      ("GET", "{b}m"), ("DEL", "{b}m"), ("HGETALL", "{b}m"), ("SET", "{b}m", "x"), ("RENAME", "{a}m", "{b}m"),
                      ("KEYS", "*"), ("SCAN", "0"), ("RANDOMKEY",), ("DBSIZE",), ("FLUSHALL",), ("FLUSHDB",), ("SWAPDB", "0", "1"),
                      ("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "GET", "*"), ("ACL", "SETUSER", "a", "+@all"), ("ACL", "LIST"),
                      ("CLIENT", "LIST"), ("CLIENT", "KILL", "TYPE", "normal"), ("CLIENT", "PAUSE", "100000"), ("MONITOR",), ("SHUTDOWN",),
                      ("REPLICAOF", "127.0.0.1", "1"), ("SAVE",), ("SUBSCRIBE", "x"), ("PUBLISH", "x", "y"),
                      ("INFO", "commandstats"), ("SLOWLOG", "GET"), ("MEMORY", "USAGE", "{b}m"), ("OBJECT", "ENCODING", "{b}m"),
                      ("TYPE", "{b}m"), ("EXISTS", "{b}m"), ("PTTL", "{b}m"), ("MGET", "{a}m", "{b}m"), ("COPY", "{b}m", "{a}x")):
            with self.subTest(words=words[:2]):
                self.refused(evil, *words)
        self.assertEqual(functions_of(self.server, name), set(FUNCTIONS))
        for function in FUNCTIONS:
            with self.subTest(function=function):
                self.refused(evil, "FCALL", f"{name}_{function}", "1", "{b}m", *["x"] * 8)
                with self.assertRaises(Refused):
                    evil.ask("FCALL", f"{name}_{function}", "0", *["x"] * 8)
        for key in ("{b}", "{a", "{", ""):
            with self.subTest(key=key):
                self.refused(evil, "FCALL", f"{name}_make", "1", key, "v", "1")
        # A key of its own that makes a prefix which is not: what a function touches without declaring it is refused, too.
        self.server.ask("COPY", "{a}m", "{a}")
        for function in FUNCTIONS:
            self.refused(evil, "FCALL", f"{name}_{function}", "1", "{a}", self.server.ask("HGET", "{a}m", "e"), *["1"] * 20)
        self.assertEqual(self.keys_of("b"), before)
        self.assertEqual({key[:3] for key in self.server.keys()}, {b"{a}", b"{b}"})
        again = run("add", self.url("b"), self.path)
        self.assertEqual([one["originalId"] for one in again], [one["originalId"] for one in first])
        self.assertTrue(all(one["isDuplicate"] or one["known"] for one in again))

    def test_forged_arguments(self):
        """Functions touch keys of the prefix that they were given, whatever their arguments say: Redis checks what they touch, too."""
        name = run("prepare", self.server.url(""))[0]["library"]
        run("add", self.url("b"), self.path)
        run("add", self.url("a"), self.path)
        before, evil = self.keys_of("b"), self.client("a")
        epoch, other = (self.server.ask("HGET", "{%s}m" % prefix, "e") for prefix in "ab")
        answers, bucket = [], next(key for key in before if key[3:4] == b"b")
        field = next(one for one in self.server.ask("HKEYS", bucket) if one != b"x")
        for forged in (b"{b}m", bucket, b"\x00{b}", b"}{b}n\x00\x00", b"../{b}m"):
            for one in (epoch, other):
                for request, words in enumerate(self.commits(forged, field)):
                    with self.subTest(forged=forged, words=words), suppress(Refused):
                        answers.append(evil.ask("FCALL", f"{name}_commit", "1", "{a}m", one, b"evil%04d" % request, b"%08d" % len(answers), *words))
                with self.subTest(forged=forged), suppress(Refused):
                    evil.ask("FCALL", f"{name}_sweep", "1", "{a}m", one, "99999999999", "8", forged)
        self.assertIn([b"done"], answers)  # some are carried out, on what is its own
        self.assertEqual(self.keys_of("b"), before)
        self.assertEqual({key[:3] for key in self.server.keys()}, {b"{a}", b"{b}"})

    def commits(self, forged, field):
        """Arguments of a commit behind its request number: each section once with the forged name, all others empty."""
        stamp = self.server.ask("HGET", "{a}m", "o")
        # Time, last number, latest, its life, whether it removes, how long it is answered, places.
        head = [stamp, "1000", "1", "0", "0", "0", "1000", forged]
        sections = [[forged, "0"], [forged, "0"], [forged, field, "xyz", "", "0"], [forged, "xyz", "0"], [forged, "1", "1", "1", "0"],
                    [forged, "xyz", "0"], [forged], [forged, "1"]]
        for chosen in range(len(sections) + 1):
            words = list(head)
            for i, section in enumerate(sections):
                words += ["1", *section] if i == chosen else ["0"]
            yield [*words, "8", *(["1", forged] if chosen == len(sections) else ["0"])]

    # ---- functions that are not ours

    def test_replaced(self):
        """Other code under the name of the functions: nobody calls it, and an administrator puts it right."""
        name = run("prepare", self.server.url(""))[0]["library"]
        first = run("add", self.url("b"), self.path)
        before = self.keys_of("b")
        code = f"#!lua name={name}\nlocal function f(keys) redis.call('DEL', keys[1]) return {{}} end\n" + "".join(
            f"redis.register_function('{name}_{one}', f)\n" for one in FUNCTIONS)
        self.server.ask("FUNCTION", "LOAD", "REPLACE", code)
        for url in (self.url("b"), self.server.url("prefix=b")):
            for command, operand in (("add", self.path), ("check", self.path), ("get", "x"), ("remove", "x")):
                self.assertFails(run_failing(command, url, operand), f"{name} .*other code.*doppel prepare --store")
        self.assertEqual(self.keys_of("b"), before)
        self.assertEqual([one["state"] for one in run("prepare", self.server.url(""))], ["replaced"])
        again = run("add", self.url("b"), self.path)
        self.assertEqual([one["originalId"] for one in again], [one["originalId"] for one in first])


class Elsewhere(Case):
    """The same rights where the server is found by others."""

    def use(self, group, url, admin):
        cliques = Cliques(200, seed="elsewhere")
        states = [one["state"] for one in run("prepare", admin)]
        self.assertEqual(set(states), {"loaded"})
        self.assertEqual({one["state"] for one in run("prepare", admin)}, {"present"})
        path = cliques.write("elsewhere")
        verdicts = run("add", url, path)
        check_verdicts(self, cliques, verdicts, get_all(url, [one["id"] for one in verdicts if not one["isDuplicate"]]))
        return states

    def with_login(self, url):
        return url.replace("://", "://a:pw@")

    def test_cluster(self):
        """The functions are on every master, so that an index of any name finds them, and after a failover its replica has them."""
        cluster = Several(services.make_cluster, services.start_cluster)
        self.addCleanup(cluster.close)
        for node in cluster.nodes:
            cluster.ask(node, *documented("a", "a", "+cluster|slots", "+cluster|keyslot", "+wait"))
        states = self.use(cluster, self.with_login(cluster.url("prefix=a&replicas=1")), cluster.url(""))
        masters = [node for node in cluster.nodes if b"role:master" in cluster.ask(node, "INFO", "replication")]
        self.assertEqual(len(states), len(masters))
        for node in cluster.nodes:
            wait_for("the functions", lambda node=node: cluster.ask(node, "FUNCTION", "LIST"))

    def test_sentinel(self):
        group = Several(services.make_sentinel, services.start_sentinel)
        self.addCleanup(group.close)
        for node in group.nodes[:2]:
            group.ask(node, *documented("a", "a", "+wait"))
        states = self.use(group, self.with_login(group.url("prefix=a&replicas=1")), group.url(""))
        self.assertEqual(len(states), 1)
        old, watcher = group.nodes[0], group.nodes[2]
        port = str(nodes.about(old)["port"]).encode()
        group.kill(old)
        wait_for("another master", lambda: group.ask(watcher, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "doppel")[1] != port)
        url = self.with_login(group.url("prefix=a&timeout=1"))
        wait_for("the new master", lambda: Doppel("get", url, "nobody").ended() == 3, every=0.2)

"""test_dedup.py - doppel dedup, pairs and cluster against grouping.py, on small random collections."""
import json
import os
import random
import subprocess
import tempfile

import check
import grouping
import reference

DOPPEL = os.path.join(os.environ.get("DOPPEL_BUILD", "build"), "doppel")
ROUNDS = 400 if os.environ.get("DOPPEL_SUITE") == "full" else 25


def run(command, *arguments):
    """The lines of stdout."""
    done = subprocess.run([DOPPEL, command, *map(str, arguments)], capture_output=True, check=False)
    assert done.returncode == 0, (command, arguments, done.returncode, done.stderr)
    return done.stdout.split(b"\n")[:-1]


def read_lines(path):
    with open(path, "rb") as file:
        return file.read().split(b"\n")[:-1]


# ---- collections

HOSTS = ["one.com", "www.one.com", "a.one.com", "two.org", "b.two.org"]
DATES = ["2024-01-02", "2024-01-02T10:00:00+02:00", "2024-01-02T09:30:00-01:00", "2024-01-02T08:00:00", "2023-12-31",
         "soon", None]


def random_text(rng, vocabulary, originals):
    """An original, copied or edited; now and then a text of a few words, or of none."""
    words = list(rng.choice(originals))
    for _ in range(rng.choice([0, 0, 1, 2, 5, 9])):
        words[rng.randrange(len(words))] = rng.choice(vocabulary)
    if rng.random() < 0.1:
        words = rng.sample(vocabulary[:6], rng.randrange(7))
    if rng.random() < 0.3:
        words += rng.choices(vocabulary, k=rng.randrange(6))
    text = " ".join(words)
    return text if rng.random() < 0.7 else text.upper() + "!"


def random_url(rng):
    """A URL, and what it comes to."""
    if rng.random() < 0.2:
        return None, None
    host, path = rng.choice(HOSTS), f"/p{rng.randrange(12)}"
    scheme, tail = rng.choice(["http", "https", "HTTPS"]), rng.choice(["", "#part", "?utm_source=x"])
    return f"{scheme}://{host}{path}{tail}", f"http://{host.removeprefix('www.')}{path}"


def random_record(rng, name, text):
    url, canonical = random_url(rng)
    record = {"id": name, "text": text, "url": url, "date": rng.choice(DATES), "size": rng.choice([1, 2.5, -3, "7", None]),
              "site": rng.choice(["x", "y", "z", "", None])}
    record = {key: value for key, value in record.items() if value is not None}
    line = json.dumps(record, separators=rng.choice([(",", ":"), (", ", ": ")])).encode()
    return grouping.Document(record, line + rng.choice([b"", b"", b"  "]), canonical)


def random_rules(rng):
    method = rng.choice(["auto", "auto", "auto", "minhash", "simhash", "exact"])
    scope = rng.choice([None, None, None, "host", "domain", "site"])
    link = rng.choice(["kept", "kept", "kept", "any"])
    inside = link == "any" or rng.random() < 0.5
    keep = rng.choice(["first", "last", "longest", "shortest,last", "https,shortest-url", "newest:date,longest",
                       "oldest:date", "largest:size,first", "smallest:size,newest:date,last", "id", "longest,id"])
    return grouping.Rules(
        method=method, link=link, within=scope if inside else None, across=None if inside else scope,
        similarity=rng.choice(["0.8", "0.8", "0.5", "0.3", "0.9", "1"]), distance=rng.choice([0, 3, 3, 8]),
        min_words=rng.choice([5, 5, 1, 12]), by=rng.choice([["content"], ["content"], ["content", "url"], ["url"]]),
        keep=[tuple((rule + ":").split(":")[:2]) for rule in keep.split(",")],
        recipe=rng.choice(["page", "page", "page", "simhash64:words=1", "simhash128:words=3", "simhash64:chars=7"]),
        bands=rng.choice([4, 20]) if method == "minhash" else 0, rows=rng.choice([1, 4]) if method == "minhash" else 0)


def arguments_of(rules):
    keep = ",".join(f"{rule}:{field}" if field else rule for rule, field in rules.keep)
    given = ["--method", rules.method, "--min-words", rules.min_words, "--by", ",".join(rules.by),
             "--recipe", rules.recipe]
    if rules.method == "simhash":
        given += ["--distance", rules.distance]
    if rules.measures():
        given += ["--similarity", rules.similarity]
    if rules.method == "minhash":
        given += ["--bands", rules.bands, "--rows", rules.rows]
    given += ["--within", rules.within] if rules.within else []
    given += ["--across", rules.across] if rules.across else []
    return given, ["--keep", keep, "--link", rules.link]


class Collection:
    """Random documents in files, some of them known, the rules of a run, and what they come to."""

    def __init__(self, seed, folder, **fixed):
        self.rng = rng = random.Random(seed)
        self.folder = folder
        vocabulary = [f"w{i}" for i in range(rng.choice([12, 300]))]
        originals = [rng.choices(vocabulary, k=rng.choice([4, 8, 20, 60])) for _ in range(rng.choice([1, 5, 12]))]
        self.rules = random_rules(rng)
        self.rules.__dict__.update(fixed)
        made = [random_record(rng, f'd"{i}' if rng.random() < 0.9 else "twice", random_text(rng, vocabulary, originals))
                for i in range(rng.choice([0, 1, 2, 30, 60, 90]))]
        self.known = made[:len(made) // 3] if rng.random() < 0.25 else []
        self.new = made[len(self.known):]
        self.documents = made
        self.near_options, self.keep_options = arguments_of(self.rules)
        self.path = self.write("new.jsonl", self.new)
        self.against = ["--against", self.write("known.jsonl", self.known)] if self.known else []
        self.learn_plan()
        recipe = reference.parse(self.rules.recipe)
        for position, d in enumerate(made):
            d.position, d.known = position, d in self.known
            d.sketch(recipe, self.rules.bands * self.rules.rows if self.rules.measures() else 0)

    def write(self, name, documents):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as file:
            file.writelines(d.line + b"\n" for d in documents)
        return path

    def learn_plan(self):
        """Bands and rows as the command has chosen them."""
        out = os.path.join(self.folder, "plan.out")
        summary = json.loads(run("pairs", *self.near_options, self.path, "-o", out, "--json")[0])
        self.rules.bands, self.rules.rows = summary.get("bands", 0), summary.get("rows", 0)

    def dedup(self, *more, paths=None, name="out.jsonl"):
        """Runs it; gives kept lines, removed entries, summary."""
        out, removed = os.path.join(self.folder, name), os.path.join(self.folder, "removed.jsonl")
        summary = run("dedup", *self.near_options, *self.keep_options, *more, *(paths or [self.path]), "-o", out,
                      "--removed", removed, "--json")
        return read_lines(out), read_lines(removed), json.loads(summary[0])

    def __str__(self):
        return f"{self.near_options} {self.keep_options} {self.against}"


def collections(rounds=ROUNDS, **fixed):
    """Random ones, but for rules that are fixed."""
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(rounds):
            yield Collection(seed, folder, **fixed)


def shown(share):
    """A similarity as it is printed."""
    return None if share is None else float(f"{float(share):.6g}")


def near_enough(got, expected):
    """Equal but for the last digit of similarities."""
    if len(got) != len(expected):
        return False
    for g, e in zip(got, expected):
        if {**g, "similarity": 0} != {**e, "similarity": 0}:
            return False
        if (g["similarity"] is None) != (e["similarity"] is None):
            return False
        if e["similarity"] is not None and abs(g["similarity"] - e["similarity"]) > 2e-6:
            return False
    return True


def same(got, expected, collection):
    if not near_enough(got, expected):
        wrong = [(g, e) for g, e in zip(got, expected) if not near_enough([g], [e])][:3]
        raise AssertionError(f"{collection}: {len(got)} and {len(expected)} lines; (found, by definition): {wrong}")


# ---- tests


def test_what_stays_and_what_goes():
    for c in collections():
        kept, removed, summary = c.dedup(*c.against)
        decided = grouping.decide(c.documents, c.rules)
        expected = [{"id": d.id, "originalId": original.id, "reason": evidence[0], "similarity": shown(evidence[1]),
                     "distance": grouping.apart(d, original)}
                    for d in c.new for original, evidence in [decided[d.position]] if original is not d]
        same([json.loads(line) for line in removed], expected, c)
        assert kept == [d.line for d in c.new if decided[d.position][0] is d], str(c)
        assert summary["kept"] == len(kept) and summary["removed"] == len(removed), str(c)
        assert len(kept) + len(removed) == summary["documents"] == len(c.new), str(c)


def test_pairs_are_those_that_are_near():
    for c in collections():
        got = [json.loads(line) for line in run("pairs", *c.near_options, *c.against, c.path)]
        expected = [{"a": a.id, "b": b.id, "distance": grouping.apart(a, b), "similarity": shown(similarity)}
                    for a, b, similarity in grouping.pairs(c.documents, c.rules)]
        same(got, expected, c)


def test_collapsed_copies_are_paired_with_the_first_of_their_kind_only():
    for c in collections():
        if c.rules.by != ["content"] or c.rules.across:
            continue
        got = [json.loads(line) for line in run("pairs", "--collapse", *c.near_options, *c.against, c.path)]
        first = {}
        scope = [grouping.scope_of(d, c.rules.within) if c.rules.within else None for d in c.documents]
        first_of = [first.setdefault((d.digest or d.position, scope[d.position]), d) for d in c.documents]
        expected = [{"a": a.id, "b": b.id, "distance": grouping.apart(a, b), "similarity": shown(similarity)}
                    for a, b, similarity in grouping.pairs(c.documents, c.rules)
                    if first_of[a.position] is a and first_of[b.position] in (a, b)]
        same(got, expected, c)


def test_groups_are_those_of_dedup():
    for c in collections():
        if c.known:
            continue
        got = [json.loads(line) for line in run("cluster", *c.near_options, *c.keep_options, c.path)]
        decided = grouping.decide(c.documents, c.rules)
        expected = [{"id": d.id, "group": original.id, "kept": original is d, "reason": evidence and evidence[0],
                     "similarity": shown(evidence and evidence[1])}
                    for d in c.documents for original, evidence in [decided[d.position]]]
        same(got, expected, c)


def counts_of(members, field):
    """How many documents have each value, the most frequent first."""
    values = [d.record[field] for d in members if d.record.get(field) is not None]
    return sorted(((value, values.count(value)) for value in set(values)), key=lambda each: (-each[1], each[0].encode()))


def test_annotated_records_hold_what_they_held_and_what_was_decided():
    for c in collections(20):
        out = os.path.join(c.folder, "annotated.jsonl")
        prefix = c.rng.choice(["", "dp_"])
        run("dedup", *c.near_options, *c.keep_options, *c.against, c.path, "-o", out, "--annotate", "--count-by", "site",
            *(["--annotate-prefix", prefix] if prefix else []))
        decided = grouping.decide(c.documents, c.rules)
        groups = grouping.groups(c.documents, decided)
        lines = read_lines(out)
        assert len(lines) == len(c.new), str(c)
        for d, line in zip(c.new, lines):
            original = decided[d.position][0]
            copy, members = original is not d, groups[original.position]
            counts = None if copy else counts_of(members, "site")
            added = {"group": original.id, "isDuplicate": copy, "originalId": original.id if copy else None,
                     "kept": not copy, "groupSize": len(members), "groupCounts": counts and dict(counts) or (None if copy else {})}
            got = json.loads(line)
            assert got == {**d.record, **{prefix + name: value for name, value in added.items()}}, (str(c), line)
            assert copy or list(got[prefix + "groupCounts"].items()) == counts, (str(c), line)


def test_some_copies_of_each_group_are_kept():
    for c in collections():
        copies = c.rng.choice([1, 2, 3, 50])
        gone = os.path.join(c.folder, "gone.jsonl")
        kept, removed, summary = c.dedup(*c.against, "--keep-copies", copies, "--removed-documents", gone)
        decided = grouping.decide(c.documents, c.rules)
        spared = grouping.spared(c.documents, decided, c.rules, copies)
        stays = [decided[d.position][0] is d or d.position in spared for d in c.new]
        assert kept == [d.line for d, stay in zip(c.new, stays) if stay], (str(c), copies)
        assert read_lines(gone) == [d.line for d, stay in zip(c.new, stays) if not stay], (str(c), copies)
        assert [json.loads(line)["id"] for line in removed] == [d.id for d, stay in zip(c.new, stays) if not stay], str(c)
        assert summary["kept"] == len(kept) and summary["removed"] == len(removed), str(c)


def test_what_is_not_contained_stays():
    fewer = 0
    for c in collections(method="auto", by=["content"], link="kept", bands=0, rows=0):
        c.rules.only_contained = c.rng.choice(["0.5", "0.8", "0.9", "1"])
        kept, removed, _ = c.dedup(*c.against, "--only-contained", c.rules.only_contained)
        decided = grouping.decide(c.documents, c.rules)
        assert kept == [d.line for d in c.new if decided[d.position][0] is d], str(c)
        expected = [{"id": d.id, "originalId": original.id, "reason": evidence[0], "similarity": shown(evidence[1]),
                     "distance": grouping.apart(d, original)}
                    for d in c.new for original, evidence in [decided[d.position]] if original is not d]
        same([json.loads(line) for line in removed], expected, c)
        c.rules.only_contained = None
        near = grouping.decide(c.documents, c.rules)
        fewer += len(expected) < sum(near[d.position][0] is not d for d in c.new)
    assert fewer, "in some collections less goes than without it"
    return f"less went in {fewer} of {ROUNDS} collections"


def test_nothing_goes_from_what_stays():
    for c in collections():
        kept, _, _ = c.dedup(name="once.jsonl")
        again, removed, _ = c.dedup(paths=[os.path.join(c.folder, "once.jsonl")], name="again.jsonl")
        assert again == kept and removed == [], (str(c), removed[:3])


def test_threads_and_files_make_no_difference():
    for c in collections(25):
        once = c.dedup(*c.against, "--threads", 1)
        for threads in (2, 7):
            assert c.dedup(*c.against, "--threads", threads)[:2] == once[:2], (str(c), threads)
        for parts in (2, 5):
            cuts = sorted(c.rng.randrange(len(c.new) + 1) for _ in range(parts - 1))
            paths = [c.write(f"part{i}.jsonl", c.new[a:b]) for i, (a, b) in enumerate(zip([0, *cuts], [*cuts, None]))]
            assert c.dedup(*c.against, paths=paths)[:2] == once[:2], (str(c), cuts)


def test_the_default_finds_what_is_similar():
    """All pairs of a collection with copies at every similarity: none below the threshold, nearly all above."""
    rng = random.Random(5)
    vocabulary = [f"w{i}" for i in range(5000)]
    with tempfile.TemporaryDirectory() as folder:
        path, texts = os.path.join(folder, "a.jsonl"), []
        for _ in range(150):
            words = rng.choices(vocabulary, k=rng.choice([30, 100, 300]))
            texts.append(list(words))
            for _ in range(4):
                edited = list(words)
                for _ in range(rng.randrange(len(words) // 20 + 1)):
                    edited[rng.randrange(len(words))] = rng.choice(vocabulary)
                texts.append(edited)
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps({"id": str(i), "text": " ".join(t)}) + "\n" for i, t in enumerate(texts))
        sets = [{tuple(t[i:i + 5]) for i in range(len(t) - 4)} for t in texts]
        near = {(a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b])
                for b in range(len(sets)) for a in range(b // 5 * 5, b)}
        wanted = {pair for pair, share in near.items() if share >= 0.8}
        found = {(int(p["a"]), int(p["b"])) for p in map(json.loads, run("pairs", path))}
        assert not found - wanted, sorted(found - wanted)[:5]
        assert len(found) >= 0.99 * len(wanted), (len(found), len(wanted))
        return f"{len(found)} of {len(wanted)} pairs"


if __name__ == "__main__":
    check.main(globals())

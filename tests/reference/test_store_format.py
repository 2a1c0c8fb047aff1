"""test_store_format.py - what the command puts into an index folder is what docs/FORMAT.md section 13 says."""
import json
import os
import random
import subprocess
import tempfile

import zstandard

import check
import index_folder

DOPPEL = os.path.join(os.environ.get("DOPPEL_BUILD", "build"), "doppel")
REASONS = ["exact_url", "content_hash", "title_similarity"]


def run(*arguments, data=None, codes=(0,)):
    """What is on stdout."""
    done = subprocess.run([DOPPEL, *arguments], input=data, capture_output=True, check=False)
    assert done.returncode in codes, (arguments, done.returncode, done.stderr)
    return done.stdout


def lines(*arguments, data=None):
    return [json.loads(line) for line in run(*arguments, data=data).splitlines()]


def random_documents(rng, count):
    """Documents with copies among them, under other URLs, or with other words under the same URL."""
    vocabulary = [f"word{i}" for i in range(500)]
    documents = []
    for number in range(count):
        document = {"id": f"id {number}", "text": " ".join(rng.choices(vocabulary, k=rng.randrange(60)))}
        if rng.random() < 0.7:
            document["url"] = f"HTTP://Example.org:80/{rng.randrange(count)}?utm_source=x"
        if rng.random() < 0.5:
            document["title"] = "A title \u00e9 of " + " ".join(rng.choices(vocabulary, k=4))
        if rng.random() < 0.3:
            document["source"] = rng.choice(["news", "blog"])
        if documents and rng.random() < 0.3:
            document["text"] = rng.choice(documents)["text"]
        documents.append(document)
    return documents


def make_folder(folder, documents, *options):
    """Adds the documents and removes every fifth; gives the verdicts."""
    data = "".join(json.dumps(document) + "\n" for document in documents).encode()
    verdicts = lines("add", "--index", folder, *options, "-", data=data)
    run("remove", "--index", folder, *[document["id"] for document in documents[::5]], codes=(0, 3))  # copies are not there
    return {verdict["id"]: verdict for verdict in verdicts}


def compare_documents(found, exported, verdicts):
    """Each document that `export` names is there as it says. Beside a text it leaves out what can be made of it."""
    by_id = {record["id"].decode(): number for number, record in found.records.items()}
    assert sorted(by_id) == sorted(document["id"] for document in exported)
    for document in exported:
        number = by_id[document["id"]]
        trace, record = found.traces[number], found.records[number]
        assert trace["number"] == number <= found.last
        assert trace["id_hash"] == found.name_hash(record["id"])
        original = found.records[trace["of"]] if trace["kind"] == 2 else None
        known_by_url = record["canonical"] and not (original and original["canonical"] == record["canonical"])
        assert trace["url_hash"] == (found.name_hash(record["canonical"]) if known_by_url else 0)
        assert (record["url"] or b"").decode() == document.get("url", "")
        assert (record["title"] or b"").decode() == document.get("title", "")
        assert json.loads(record["fields"] or "{}") == document.get("fields", {})
        assert record["words"] == document["words"]
        if not document["text"]:
            assert trace["fingerprint"] == int(document.get("fingerprint", "0"), 16)
            assert trace["digest"].hex() == (document["digest"] or "00" * 32)
        assert (trace["added"], trace["expires"]) == (document["added"], document["expires"])
        assert trace["kind"] == (2 if "originalId" in document else 1)
        compare_sets(found, number, document)
        compare_verdict(found, number, verdicts[document["id"]])


def compare_sets(found, number, document):
    if number in found.samples:
        keys = b"".join(key.to_bytes(4, "little") for key in found.traces[number]["keys"])
        expected = bytes([len(keys) // 4]) + keys + found.samples[number]
        assert document["text"] or document["sample"] == expected.hex()
        return
    features = found.sets.get(number, [])
    assert features == sorted(set(features)) and len(features) == found.records[number]["set_count"]
    if not document["text"]:
        assert b"".join(feature.to_bytes(8, "big") for feature in features).hex() == document.get("set", "")
    length = found.records[number]["text_length"]
    text = zstandard.ZstdDecompressor().decompress(found.texts[number]) if number in found.texts else b""
    assert len(text) == length and text.decode() == document.get("text", "")


def compare_verdict(found, number, verdict):
    record = found.records[number]
    assert bool(record["reason"]) == verdict["isDuplicate"]
    if not record["reason"]:
        return
    evidence, said = record["evidence"], verdict["evidence"]
    assert REASONS[record["reason"] - 1] == verdict["reason"]
    assert record["original_id"].decode() == verdict["originalId"]
    assert (evidence["same_url"], evidence["same_digest"], evidence["verified"], evidence["distance"]) == \
        (said["sameUrl"], said["sameDigest"], said["verified"], said["distance"])
    for name, known in (("similarity", "similarity"), ("containment", "containment"), ("title_similarity", "titleSimilarity")):
        assert (evidence[name] is None) == (said[known] is None)
        assert evidence[name] is None or abs(evidence[name] - said[known]) < 1e-5


def compare_rest(found, folder):
    """Links, counts, removals, settings."""
    there = {number for number, trace in found.traces.items() if trace["kind"] < 3}
    assert set(found.records) == there
    copies = {(trace["of"], number) for number, trace in found.traces.items() if trace["kind"] == 2 and trace["of"] in there}
    assert found.links == sorted(copies)
    for trace in found.traces.values():
        if trace["kind"] in (3, 4):
            assert trace["of"] not in found.traces and trace["of"] < trace["number"]
        if trace["kind"] == 5:
            assert any(trace["digest"]) and trace["of"] < trace["number"]
    assert set(found.counts) <= there
    stats = json.loads(run("stats", "--index", folder))
    assert found.total["by"] == list(stats["duplicates"].values())
    assert found.last == stats["lastNumber"]
    assert found.settings["preset"] == stats["options"]["preset"]
    assert found.settings["recipe"] == stats["options"]["recipe"]


def check_folder(options):
    documents = random_documents(random.Random(str(options)), 120)
    with tempfile.TemporaryDirectory() as parent:
        folder = os.path.join(parent, "index")
        verdicts = make_folder(folder, documents, *options)
        for generation in (1, 2):
            found = index_folder.Folder(folder)
            assert found.generation == generation and found.successor is None
            compare_documents(found, lines("export", "--index", folder)[1:], verdicts)
            compare_rest(found, folder)
            assert any(trace["kind"] in (3, 4) for trace in found.traces.values()) == (generation == 1)
            run("compact", "--index", folder)
        return f"{len(found.records)} documents, {sum(found.total['by'])} duplicates"


def test_folder_with_sets():
    return check_folder(["--on-duplicate", "link"])


def test_folder_with_the_words_of_copies():
    return check_folder(["--title-veto", "off"])


def test_folder_with_texts():
    return check_folder(["--on-duplicate", "store", "--keep-text"])


def test_folder_of_a_crawl():
    return check_folder(["--preset", "crawl", "--on-duplicate", "link", "--recipe", "simhash128:words=3"])


def test_samples_are_of_the_sets():
    documents = random_documents(random.Random("samples"), 120)
    with tempfile.TemporaryDirectory() as parent:
        folders = {}
        for most in ("all", "16"):
            folder = os.path.join(parent, most)
            make_folder(folder, documents, "--preset", "crawl", "--sample", most)
            folders[most] = index_folder.Folder(folder)
        sets = {record["id"]: folders["all"].sets.get(number) for number, record in folders["all"].records.items()}
        compared = 0
        for number, sampled in folders["16"].samples.items():
            features = sets.get(folders["16"].records[number]["id"])
            if features:
                assert sampled == index_folder.sample(features, 16)
                compared += 1
        assert compared > 20
        return f"{compared} samples"


if __name__ == "__main__":
    check.main(globals())

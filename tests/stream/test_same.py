"""The same documents get the same verdicts in memory, in a folder, in Redis and through the stream."""
import ctypes
import json
import os
import random
import subprocess
import tempfile
import unittest

from pages import loud, edited, text_of
from support import BUILD, DOPPEL, FULL, SANITIZED, Line, Worker, redis_url, services, verdict

COUNT = 10000 if FULL else 1000


def documents(again=True):
    """Pages with copies of earlier ones: by URL, by words, by most of their words, by chains of them. Unless `again`,
    no page has the words of one that is a copy by its URL."""
    rng = random.Random("same")
    made, named = [], set()
    for number in range(COUNT):
        record = {"id": f"d{number}", "url": f"https://example.org/{number}", "text": text_of(rng, rng.choice((3, 20, 80, 400)))}
        other = made[rng.randrange(number)] if number and rng.random() < 0.4 else None
        kind = rng.randrange(4)
        if other and kind != 1 and not again and other["id"] in named:
            other = None
        if other and kind == 0:
            record["text"] = loud(rng, other["text"])
        elif other and kind == 1:
            record["url"] = other["url"].replace("https://", "http://www.") + "?utm_source=x"
            named.add(record["id"])
        elif other:
            record["text"] = edited(rng, other["text"])
        made.append(record)
    return made


class Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("preset", ctypes.c_char_p)]


class Document(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p if kind == "s" else ctypes.c_size_t)
                for name, kind in (("id", "s"), ("id_length", "n"), ("text", "s"), ("text_length", "n"), ("url", "s"), ("title", "s"),
                                   ("url_length", "n"), ("title_length", "n"), ("record", "s"), ("record_length", "n"), ("file", "s"),
                                   ("line", "n"), ("html", "s"), ("html_length", "n"), ("charset", "s"), ("alias", "s"),
                                   ("alias_length", "n"), ("extra", "s"))]


class Item(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("document", Document)]


def in_memory(records):
    """By the library, over its public header."""
    doppel = ctypes.CDLL(os.path.join(BUILD, "libdoppel.so"))
    doppel.doppel_verdict_json.restype = ctypes.c_size_t
    engine, error = ctypes.c_void_p(), ctypes.create_string_buffer(2048)
    found, out, answers = ctypes.create_string_buffer(1024), ctypes.create_string_buffer(4096), []
    options = Options(ctypes.sizeof(Options), b"crawl")
    assert doppel.doppel_engine_open(None, ctypes.byref(options), ctypes.byref(engine), error) == 0, error.raw
    for record in records:
        item = Item(size=ctypes.sizeof(Item))
        for name in ("id", "url", "text"):
            value = record[name].encode()
            setattr(item.document, name, value)
            setattr(item.document, name + "_length", len(value))
        assert doppel.doppel_engine_add(engine, ctypes.byref(item), found, error) == 0, error.raw
        doppel.doppel_verdict_json(found, True, out, ctypes.c_size_t(4096))
        answers.append(json.loads(out.value))
    doppel.doppel_verdict_free(found)
    doppel.doppel_engine_close(engine)
    return answers


def by_command(path, *where):
    done = subprocess.run([DOPPEL, "add", *where, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def by_stream(records, *where):
    """What the stream says of each: None of a unique page."""
    line = Line()
    line.fill({"value": json.dumps(record)} for record in records)
    Worker(line, *where, "--batch", 100, "--until-end").finish()
    found = line.read_all(len(records))
    answers = {json.loads(record.value())["id"]: verdict(record) for record in found["duplicates"]}
    answers.update((json.loads(record.value())["id"], None) for record in found["unique"])
    return [answers[record["id"]] for record in records]


def of_duplicates(answers):
    """Verdicts as the stream gives them: None for a unique page, and no id."""
    return [{name: value for name, value in answer.items() if name != "id"} if answer["isDuplicate"] else None for answer in answers]


class Same(unittest.TestCase):
    def run_command(self, folder, records, *options):
        path = os.path.join(folder, "documents.jsonl")
        with open(path, "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in records)
        command = by_command(path, "--index", os.path.join(folder, "a"), "--preset", "crawl", *options)
        self.assertGreater(sum(answer["isDuplicate"] for answer in command), COUNT / 10)
        self.assertGreater(len({answer["reason"] for answer in command}), 2)
        return path, command

    def test_verdicts(self):
        records = documents()
        with tempfile.TemporaryDirectory(dir=services.folder) as folder:
            _, command = self.run_command(folder, records)
            if not SANITIZED:
                self.assertEqual(in_memory(records), command)
            self.assertEqual(by_stream(records, "--index", os.path.join(folder, "b"), "--preset", "crawl"), of_duplicates(command))

    def test_verdicts_of_redis(self):
        """A store in Redis is near by distance, and does not know the words of copies by URL."""
        records = documents(again=False)
        with tempfile.TemporaryDirectory(dir=services.folder) as folder:
            path, command = self.run_command(folder, records, "--near", "distance")
            self.assertEqual(by_command(path, "--store", redis_url("same-a")), command)
            self.assertEqual(by_stream(records, "--store", redis_url("same-b")), of_duplicates(command))

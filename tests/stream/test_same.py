"""The same documents get the same verdicts in memory, in a folder, in Redis and through the stream."""
import json
import os
import random
import subprocess
import tempfile
import unittest

from pages import loud, edited, text_of
from support import DOPPEL, FULL, SANITIZED, Line, Worker, add_by_library, redis_url, services, verdict

COUNT = 10000 if FULL else 1000


# Near by similarity and by distance, titles off and on.
SETTINGS = (("crawl",), ("crawl", "--near", "distance"), ("general",), ("general", "--near", "distance"))
# Those that the stream has at reduced size, too.
STREAMED = SETTINGS if FULL else (SETTINGS[0], SETTINGS[3])


def documents():
    """Pages with copies of earlier ones: by URL, by words, by most of their words, by chains of them, by their title."""
    rng = random.Random("same")
    made = []
    for number in range(COUNT):
        record = {"id": f"d{number}", "url": f"https://example.org/{number}", "title": text_of(rng, 7),
                  "text": text_of(rng, rng.choice((3, 20, 80, 400)))}
        other = made[rng.randrange(number)] if number and rng.random() < 0.4 else None
        kind = rng.randrange(5)
        if other and kind == 0:
            record["text"] = loud(rng, other["text"])
        elif other and kind == 1:
            record["url"] = other["url"].replace("https://", "http://www.") + "?utm_source=x"
        elif other and kind == 2:
            record["title"] = other["title"][1:]
        elif other:
            record["text"] = edited(rng, other["text"])
        made.append(record)
    return made


def in_memory(records, preset, near="similarity"):
    return add_by_library(records, preset, {"distance": 1, "similarity": 2}[near])


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
    def check(self, records, path, preset, *options):
        """In a folder, in memory, in Redis, and through the stream to a folder and to Redis."""
        folder, name = os.path.dirname(path), "-".join((preset, *options)).replace("--", "")
        settings = ("--preset", preset, *options)
        command = by_command(path, "--index", os.path.join(folder, name), *settings)
        self.assertGreater(sum(answer["isDuplicate"] for answer in command), COUNT / 10)
        self.assertGreater(len({answer["reason"] for answer in command}), 2 if preset == "crawl" else 3)
        if not SANITIZED:
            self.assertEqual(in_memory(records, preset, *options[1:]), command)
        self.assertEqual(by_command(path, "--store", redis_url(f"same-{name}"), *settings), command)
        if (preset, *options) not in STREAMED:
            return
        streamed = of_duplicates(command)
        self.assertEqual(by_stream(records, "--index", os.path.join(folder, f"{name}-stream"), *settings), streamed)
        self.assertEqual(by_stream(records, "--store", redis_url(f"same-{name}-stream"), *settings), streamed)

    def test_verdicts(self):
        records = documents()
        with tempfile.TemporaryDirectory(dir=services.folder) as folder:
            path = os.path.join(folder, "documents.jsonl")
            with open(path, "w") as file:
                file.writelines(json.dumps(record) + "\n" for record in records)
            for settings in SETTINGS:
                with self.subTest(settings=settings):
                    self.check(records, path, *settings)

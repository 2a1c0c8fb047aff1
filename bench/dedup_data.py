"""Makes the files that bench/dedup.py measures on, from what bench/corpus made: each once, from the same seed.

near_copies   JSONL of documents of 2 to 5 KB, a tenth of them near-copies of earlier ones anywhere in the file
short         JSONL of documents of 100 to 300 bytes, a tenth of them near-copies
pages, warc   HTML files out of the packages, and the same as a WARC file, a gzip member a record
wet           texts as a WET file, a gzip member a record

A near-copy has words replaced, left out and put in, enough that its similarity is about a value drawn evenly from .8 to 1:
an isolated edit takes 5 shingles from one side and puts 5 on the other.
"""
import gzip
import json
import os
import random
import re
import subprocess
import tarfile

SMALLEST, LARGEST = 2000, 5000  # bytes of text
COPIES = 0.1
MIXED = 800  # bytes of the longest paragraph that comes again: so no two documents are near by it alone
WORD = re.compile(r"\S+\s*")


class Part:
    """A file that appears whole under its name."""

    def __init__(self, path, mode="wb", opener=open):
        self.path, self.file = path, opener(path + ".part", mode)

    def __enter__(self):
        return self.file

    def __exit__(self, kind, *_):
        self.file.close()
        if not kind:
            os.replace(self.path + ".part", self.path)


# ---- documents of 2 to 5 KB ----

def paragraphs(corpus):
    """The distinct paragraphs of the corpus, in its order."""
    with open(os.path.join(corpus, "english.jsonl"), encoding="utf-8") as file:
        for line in file:
            yield from json.loads(line)["text"].split("\n\n")


def cut(pieces, chance):
    """Documents of 2 to 5 KB: paragraphs up to a size drawn for each. One that does not fit is left out."""
    document, size, wanted = [], 0, chance.randint(SMALLEST, LARGEST - 200)
    for piece in pieces:
        if size + len(piece) > LARGEST:
            continue
        document.append(piece)
        size += len(piece) + 2
        if size >= wanted:
            yield "\n\n".join(document)
            document, size, wanted = [], 0, chance.randint(SMALLEST, LARGEST - 200)


def originals(corpus, chance):
    """Distinct text first; when that is used up, its shorter paragraphs again and again, each time in another order."""
    yield from cut(paragraphs(corpus), chance)
    again = [piece for piece in paragraphs(corpus) if len(piece) <= MIXED]
    while True:
        chance.shuffle(again)
        yield from cut(again, chance)


def edited(text, chance):
    """A near-copy of a text."""
    words = WORD.findall(text)
    similarity = chance.uniform(0.8, 1)
    edits = round(len(words) * (1 - similarity) / (1 + similarity) / 5)
    for place in chance.sample(range(len(words)), edits):
        other = chance.choice(words)
        words[place] = chance.choice((other, "", words[place] + other))
    return "".join(words)


def near_copies(corpus, megabytes):
    """The path of the file. Copies are made of texts anywhere before them, never of copies."""
    path = os.path.join(corpus, f"copies-{megabytes}MB.jsonl")
    if os.path.exists(path):
        return path
    chance, places, count, done = random.Random(1), [], 0, 0
    with Part(path, "w+b") as file:
        texts = originals(corpus, chance)
        while done < megabytes * 1000000:
            copy = places and chance.random() < COPIES
            if copy:
                file.flush()
                start, length = chance.choice(places)
                record = json.loads(os.pread(file.fileno(), length, start))
                record = {"id": f"copy-{count}", "text": edited(record["text"], chance)}
            else:
                record = {"id": f"text-{count}", "text": next(texts)}
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            if not copy:
                places.append((done, len(line)))
            done += file.write(line)
            count += 1
    return path


def beginning(path, megabytes):
    """The first lines of a file as another one."""
    name = f"{path[:-len('.jsonl')]}-first-{megabytes}MB.jsonl"
    if os.path.getsize(path) <= megabytes * 1000000:
        return path
    if not os.path.exists(name):
        with open(path, "rb") as source, Part(name) as file:
            done = 0
            while done < megabytes * 1000000:
                done += file.write(source.readline())
    return name


# ---- short documents ----

def phrases(corpus, chance):
    """Runs of 5 to 8 words of the corpus, a million of them and more."""
    found = []
    for text in paragraphs(corpus):
        words = text.split()
        while len(words) >= 8:
            length = chance.randint(5, 8)
            found.append(" ".join(words[:length]))
            words = words[length:]
        if len(found) >= 2000000:
            break
    return found


def short_text(parts, chance):
    """Phrases up to a size drawn evenly from 100 to 300 bytes."""
    text, wanted = chance.choice(parts), chance.randint(100, 250)
    while len(text) < wanted:
        text += " " + chance.choice(parts)
    return text[:300]


def short(corpus, count):
    """A near-copy has one word more at its end: of 15 to 45 words, more than .9 of the shingles are the same."""
    path = os.path.join(corpus, f"short-{count // 1000}K.jsonl")
    if os.path.exists(path):
        return path
    chance = random.Random(2)
    parts = phrases(corpus, chance)
    texts = []
    with Part(path) as file:
        for number in range(count):
            if texts and chance.random() < COPIES:
                text = chance.choice(texts) + " again"
            else:
                text = short_text(parts, chance)
                if len(texts) < 100000:  # copies are made of these
                    texts.append(text)
            file.write(b'{"id":"%d","text":%s}\n' % (number, json.dumps(text).encode()))
    return path


# ---- pages and archives ----

def html_files(corpus):
    """(name, bytes) of HTML files out of the packages, at most 5 MB of each."""
    folder = os.path.join(corpus, "packages")
    for package in sorted(os.listdir(folder)):
        done = 0
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", os.path.join(folder, package)], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as pipe:
            with tarfile.open(fileobj=pipe.stdout, mode="r|") as tar:
                for member in tar:
                    if member.isfile() and member.name.endswith((".html", ".htm")) and 2000 < member.size < 200000:
                        done += member.size
                        yield f"{package.split('_')[0]}/{member.name}", tar.extractfile(member).read()
                    if done > 5000000:
                        break
            pipe.kill()


def pages(corpus, megabytes):
    """The folder with them, numbered."""
    folder = os.path.join(corpus, f"pages-{megabytes}MB")
    if os.path.exists(folder):
        return folder
    os.makedirs(folder + ".part", exist_ok=True)
    done = 0
    for number, (_, data) in enumerate(html_files(corpus)):
        with open(os.path.join(folder + ".part", f"{number}.html"), "wb") as file:
            done += file.write(data)
        if done >= megabytes * 1000000:
            break
    os.replace(folder + ".part", folder)
    return folder


def record(kind, number, content_type, content):
    """A record of an archive, as a gzip member."""
    head = (f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://example.org/{number}\r\n"
            f"WARC-Date: 2020-01-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{number:012d}>\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(content)}\r\n\r\n").encode()
    return gzip.compress(head + content + b"\r\n\r\n", 6)


def warc(folder):
    """A WARC file of all pages of a folder."""
    path = folder + ".warc.gz"
    if os.path.exists(path):
        return path
    with Part(path) as file:
        for number, name in enumerate(sorted(os.listdir(folder))):
            with open(os.path.join(folder, name), "rb") as page:
                data = page.read()
            head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(data)}\r\n\r\n".encode()
            file.write(record("response", number, "application/http; msgtype=response", head + data))
    return path


def wet(path):
    """A WET file of the texts of a JSONL file."""
    name = path[:-len(".jsonl")] + ".warc.wet.gz"
    if os.path.exists(name):
        return name
    with open(path, encoding="utf-8") as source, Part(name) as file:
        for number, line in enumerate(source):
            file.write(record("conversion", number, "text/plain", json.loads(line)["text"].encode()))
    return name

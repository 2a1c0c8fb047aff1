"""One peer a call that cuts what repeats inside the documents of a JSONL file, from the file to a file, on two cores.

    peers_trim.py PEER INPUT FOLDER

    dolma          Dolma's dedupe and mix (Rust, from the package dolma): lines, in a Bloom filter
    datatrove      its sentence dedup in three stages, as in its own example: three sentences in a row
    suffix-array   what Lee et al. (2021) do, by a library of suffix arrays, as their own program is in no package
                   registry: runs of 50 tokens, which are here the words between white space

Prints the seconds it took, the most memory of all its processes and the most bytes of its temporary files, both sampled
every tenth of a second. FOLDER, which must not exist, gets `spans`: id, start and end of each span that was cut.
"""
import array
import functools
import glob
import importlib.util
import itertools
import json
import os
import re
import sys
import threading
import time

CORES = 2
CPU_CLOCK = os.environ.get("BENCH_CLOCK") == "cpu"
FALSE_POSITIVES, EXPECTED = 1e-5, 1.0  # of Dolma's filter: one line in so many; the share of the lines it is made for
SENTENCES, TOKENS = 3, 50


# ---- what a peer uses ----

def now():
    """Seconds; with BENCH_CLOCK=cpu those of this process and its children on a CPU, as if on all cores at once."""
    return sum(os.times()[:4]) / CORES if CPU_CLOCK else time.perf_counter()


class Watch(threading.Thread):
    """Looks at the memory of this process and its children, and at the bytes of a folder."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder, self.memory, self.bytes, self.over = folder, 0, 0, threading.Event()

    def children(self, process):
        found = [process]
        for path in glob.glob(f"/proc/{process}/task/*/children"):
            with open(path, encoding="ascii") as file:
                for child in file.read().split():
                    found += self.children(child)
        return found

    def look(self):
        pages = 0
        for process in self.children(str(os.getpid())):
            try:
                with open(f"/proc/{process}/statm", encoding="ascii") as file:
                    pages += int(file.read().split()[1])
            except OSError:
                pass
        self.memory = max(self.memory, pages * os.sysconf("SC_PAGE_SIZE"))
        self.bytes = max(self.bytes, size_of(self.folder))

    def run(self):
        while not self.over.wait(0.1):
            try:
                self.look()
            except OSError:
                pass


def size_of(folder):
    size = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += os.path.getsize(os.path.join(path, name))
            except OSError:
                pass
    return size


def halves(source, folder, names):
    """The lines of a file in two, as a peer's tasks take whole files."""
    os.makedirs(folder)
    with open(source, "rb") as file:
        lines = file.readlines()
    middle = (len(lines) + 1) // 2
    for name, part in zip(names, (lines[:middle], lines[middle:])):
        with open(os.path.join(folder, name), "wb") as file:
            file.writelines(part)


def write_spans(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{name}\t{start}\t{end}\n" for name, start, end in rows)


# ---- Dolma ----

@functools.lru_cache
def load_dolma():
    """The extension alone: the package around it asks for much that this does not use."""
    package = importlib.util.find_spec("dolma")
    path = glob.glob(os.path.join(package.submodule_search_locations[0], "dolma.*.so"))[0]
    spec = importlib.util.spec_from_file_location("dolma", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dolma(source, folder, temporary):
    module = load_dolma()
    documents, out = os.path.join(folder, "documents"), os.path.join(folder, "out")
    halves(source, documents, ("0.json", "1.json"))
    os.makedirs(out)
    with open(source, "rb") as file:
        lines = sum(line.count(b"\\n") + 1 for line in file)
    work = {"input": os.path.join(temporary, "in"), "output": os.path.join(temporary, "out")}
    mark = {"documents": [documents + "/*.json"], "work_dir": work, "processes": CORES,
            "dedupe": {"name": "repeats", "skip_empty": True, "paragraphs": {"attribute_name": "repeats"}},
            "bloom_filter": {"file": os.path.join(temporary, "filter"), "size_in_bytes": 0, "read_only": False,
                             "estimated_doc_count": int(lines * EXPECTED),
                             "desired_false_positive_rate": FALSE_POSITIVES}}
    mix = {"work_dir": work, "processes": CORES, "streams": [
        {"name": "cut", "documents": [documents + "/*.json"], "attributes": ["repeats"],
         "output": {"path": out, "max_size_in_bytes": 1 << 32}, "compression": {"output": ""},
         "span_replacement": [{"span": "$.attributes.repeats", "min_score": 0.5, "replacement": ""}]}]}
    started = now()
    module.deduper_entrypoint(json.dumps(mark))
    module.mixer_entrypoint(json.dumps(mix))
    taken = now() - started
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "attributes", "repeats", "*.json"))):
        with open(path, encoding="utf-8") as file:
            for record in map(json.loads, file):
                rows += [(record["id"], start, end) for start, end, _ in record["attributes"]["repeats"]]
    return taken, rows


# ---- datatrove ----

def datatrove(source, folder, temporary):
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.dedup import sentence_dedup as dedup
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    halves(source, os.path.join(folder, "in"), ("0.jsonl", "1.jsonl"))
    cut = os.path.join(folder, "cut")
    os.makedirs(cut)
    # It drops documents that end up short; here they stay, as they do for doppel.
    config = dedup.SentDedupConfig(n_sentences=SENTENCES, min_doc_words=0, min_num_sentences=0)

    class Filter(dedup.SentenceDedupFilter):
        """The same, which lists what it cuts."""

        def remove_dup_sentences(self, doc, du_lines):
            bounds = list(self.tokenizer.span_tokenize(doc.text))
            with open(os.path.join(cut, str(os.getpid())), "a", encoding="utf-8") as file:
                for first in du_lines:
                    # It takes the white space before a sentence with it.
                    start = bounds[first - 1][1] if first else 0
                    file.write(f"{doc.id}\t{start}\t{bounds[min(first + SENTENCES, len(bounds)) - 1][1]}\n")
            return super().remove_dup_sentences(doc, du_lines)

    def run(tasks, *steps):
        LocalPipelineExecutor(list(steps), tasks=tasks, workers=CORES, skip_completed=False, start_method="fork",
                              logging_dir=os.path.join(folder, "logs", type(steps[-1]).__name__)).run()
    found, repeats = os.path.join(temporary, "signatures"), os.path.join(temporary, "repeats")
    started = now()
    reader = JsonlReader(os.path.join(folder, "in"), compression=None)
    run(CORES, reader, dedup.SentenceDedupSignature(found, finder_workers=CORES, config=config))
    run(CORES, dedup.SentenceFindDedups(found, repeats, config=config))
    run(CORES, reader, Filter(repeats, config=config), JsonlWriter(os.path.join(folder, "out"), compression=None))
    taken = now() - started
    rows = []
    for path in glob.glob(os.path.join(cut, "*")):
        with open(path, encoding="utf-8") as file:
            rows += [line.rstrip("\n").split("\t") for line in file]
    return taken, rows


# ---- suffix array ----

WORD = re.compile(r"\S+")


def read_tokens(source):
    """Words as numbers, a number of its own between documents so that no run crosses two; and the documents."""
    numbers, tokens, documents = {}, array.array("I"), []
    with open(source, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            documents.append((record["id"], record["text"], len(tokens)))
            for word in record["text"].split():
                tokens.append(numbers.setdefault(word, len(numbers)))
            tokens.append((1 << 32) - len(documents))
    return tokens, documents


def repeated_tokens(tokens):
    """For each token, whether it is in a run of 50 that stands earlier as well."""
    import numpy
    import pydivsufsort
    text = numpy.frombuffer(tokens, dtype="<u4").astype(">u4").view(numpy.uint8)
    suffixes = pydivsufsort.divsufsort(text)
    common = pydivsufsort.kasai(text, suffixes)  # of each suffix and the next
    aligned = numpy.flatnonzero(suffixes % 4 == 0)
    shared = numpy.minimum.reduceat(common, aligned)[:-1]  # of each aligned one and the next aligned one
    places = suffixes[aligned] // 4
    del suffixes, common, aligned
    starts = numpy.concatenate(([0], numpy.flatnonzero(shared < 4 * TOKENS) + 1))
    first = numpy.repeat(numpy.minimum.reduceat(places, starts), numpy.diff(numpy.append(starts, len(places))))
    later = places[places != first]
    marks = numpy.zeros(len(tokens) + TOKENS + 1, dtype=numpy.int32)
    numpy.add.at(marks, later, 1)
    numpy.add.at(marks, later + TOKENS, -1)
    return numpy.cumsum(marks)[:len(tokens)] > 0


def spans_of(text, cut):
    """The spans of words that are cut, each up to the next word."""
    starts = [match.start() for match in WORD.finditer(text)] + [len(text)]
    at = 0
    for is_cut, group in itertools.groupby(cut):
        end = at + len(list(group))
        if is_cut:
            yield starts[at], starts[end]
        at = end


def suffix_array(source, folder, _):
    started, rows = now(), []
    tokens, documents = read_tokens(source)
    cut = repeated_tokens(tokens)
    with open(os.path.join(folder, "out.jsonl"), "w", encoding="utf-8") as out:
        for number, (name, text, first) in enumerate(documents):
            end = documents[number + 1][2] if number + 1 < len(documents) else len(tokens)
            spans = list(spans_of(text, cut[first:end - 1].tolist()))
            rows += [(name, *span) for span in spans]
            for start, stop in reversed(spans):
                text = text[:start] + text[stop:]
            out.write(json.dumps({"id": name, "text": text}) + "\n")
    return now() - started, rows


def main(peer, source, folder):
    temporary = os.path.join(folder, "temporary")
    for name in ("in", "out"):
        os.makedirs(os.path.join(temporary, name))
    watch = Watch(temporary)
    watch.start()
    seconds, rows = globals()[peer.replace("-", "_")](os.path.abspath(source), folder, temporary)
    watch.look()
    watch.over.set()
    write_spans(os.path.join(folder, "spans"), rows)
    print(f"figures\t{seconds:.6g}\t{watch.memory}\t{watch.bytes}")


if __name__ == "__main__":
    main(*sys.argv[1:])

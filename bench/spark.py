"""Spark: doppel.spark on a cluster of one master and two workers on loopback, one core each, beside a job that passes every
row through Python and writes it, and beside MinHashLSH of pyspark.ml.

    python bench/spark.py DOCUMENTS... [--skewed] [--peer N]

runs by itself, in the Python that has pyspark and libdoppel (build/spark-venv), and prints a line of JSON a measurement;
bench/run --part spark calls it and makes a table. Documents are invented, 3,000 bytes each, a tenth of them near copies
(one word in twenty replaced at most). --skewed adds one template and one text repeated, a tenth of all each.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORDS = 500
SETTINGS = {"spark.driver.host": "127.0.0.1", "spark.executor.cores": "1", "spark.executor.memory": "1500m",
            "spark.driver.memory": "1500m", "spark.sql.shuffle.partitions": "8", "spark.ui.showConsoleProgress": "false",
            "spark.ui.enabled": "true", "spark.sql.ui.retainedExecutions": "1000"}
FILE_ROWS = 20000
TEMPLATE_PAGES = 100000
PEER_ROWS = 5  # rows a band of MinHashLSH: one hash a band, so that it finds what doppel finds


def vocabulary():
    rng = random.Random(1)
    return ["".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randrange(2, 9))) for _ in range(50000)]


def make(path, count, skewed):
    """Parquet files of documents. Skewed: a tenth, at most 100,000, are pages of one template, and half are one text."""
    import numpy
    import pyarrow
    import pyarrow.parquet

    rng, words = numpy.random.default_rng(count), numpy.array(vocabulary(), dtype=object)
    os.makedirs(path)
    frame, hot, last = words[rng.integers(len(words), size=WORDS - 60)], words[rng.integers(len(words), size=WORDS)], []
    for number, first in enumerate(range(0, count, FILE_ROWS)):
        rows = min(FILE_ROWS, count - first)
        made = rng.integers(len(words), size=(rows, WORDS))
        texts = []
        for at in range(rows):
            if skewed and at % 2 == 1:
                texts.append(hot)
            elif skewed and at % 10 == 2 and first + at < 10 * TEMPLATE_PAGES:
                texts.append(numpy.concatenate([frame, words[made[at, :60]]]))
            elif at % 10 == 0 and len(last):
                copy = last.copy()
                copy[rng.integers(WORDS, size=rng.integers(5))] = words[made[at, 0]]
                texts.append(copy)
            else:
                last = words[made[at]]
                texts.append(last)
        ids = [f"doc-{first + at:09}" for at in range(rows)]
        table = pyarrow.table({"id": ids, "text": [" ".join(text.tolist()) for text in texts]})
        pyarrow.parquet.write_table(table, f"{path}/{number:05}.parquet")


def session(master):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    made = builder.config("spark.executorEnv.PYTHONPATH", os.environ.get("PYTHONPATH", "")).getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    return made


def stages_of(spark):
    """What the stages so far have shuffled, by the name of their job: from the REST interface of the UI."""
    import urllib.request

    base = f"{spark.sparkContext.uiWebUrl}/api/v1/applications/{spark.sparkContext.applicationId}"
    jobs = {}
    with urllib.request.urlopen(base + "/jobs") as answer:
        for job in json.load(answer):
            for stage in job["stageIds"]:
                jobs[stage] = job.get("description") or job["name"]
    found = {}
    with urllib.request.urlopen(base + "/stages?length=10000") as answer:
        for stage in json.load(answer):
            name = jobs.get(stage["stageId"], "")
            found[name] = found.get(name, 0) + stage["shuffleWriteBytes"]
    return found


def identity(batches):
    yield from batches


def measure(spark, path, count, out):
    """Seconds of the job that only passes rows on, and of dedup, each with reading and writing; each after a run on a few."""
    import logging

    from doppel import spark as doppel_spark

    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logging.getLogger("doppel.spark").addHandler(handler)
    logging.getLogger("doppel.spark").setLevel("INFO")
    frame = spark.read.parquet(path)
    began = time.monotonic()
    frame.mapInArrow(identity, frame.schema).write.mode("overwrite").parquet(out)
    passed = time.monotonic() - began
    before = stages_of(spark)
    began = time.monotonic()
    result = doppel_spark.dedup(frame)
    spark.sparkContext.setJobDescription("doppel: output")
    result.write.mode("overwrite").parquet(out)
    taken = time.monotonic() - began
    doppel_spark.release(result)
    after = stages_of(spark)
    shuffled = {name: round((after[name] - before.get(name, 0)) / count) for name in after
                if name.startswith("doppel") and after[name] > before.get(name, 0)}
    return {"documents": count, "identity": round(passed, 2), "dedup": round(taken, 2),
            "ratio": round(passed / taken, 3), "shuffledBytesADocument": shuffled,
            "removed": result._doppel_counts["removed"], "stages": said}


def measure_peer(spark, path, count, out):
    """MinHashLSH on the same 5-word shingles, joined with itself at a distance of 0.2, pairs written."""
    from pyspark.ml.feature import HashingTF, MinHashLSH, NGram, Tokenizer

    frame = spark.read.parquet(path)
    began = time.monotonic()
    tokens = Tokenizer(inputCol="text", outputCol="words").transform(frame)
    shingles = NGram(n=5, inputCol="words", outputCol="shingles").transform(tokens)
    features = HashingTF(inputCol="shingles", outputCol="features", numFeatures=1 << 20, binary=True).transform(shingles)
    model = MinHashLSH(inputCol="features", outputCol="hashes", numHashTables=PEER_ROWS, seed=1).fit(features)
    pairs = model.approxSimilarityJoin(features, features, 0.2, "distance").where("datasetA.id < datasetB.id")
    pairs.selectExpr("datasetA.id a", "datasetB.id b", "distance").write.mode("overwrite").parquet(out)
    taken = time.monotonic() - began
    return {"documents": count, "MinHashLSH": round(taken, 2), "pairs": spark.read.parquet(out).count()}


def measure_spark(bench):
    """The part `spark` of bench/run: in the environment of the tests of Spark, with the module of the build."""
    subprocess.run(["scripts/venv", "build/spark-venv", "tests/spark/requirements.txt"], cwd=ROOT, check=True)
    python = os.path.join(ROOT, "build", "spark-venv", "bin", "python")
    sizes = ["20000"] if bench.options.quick else ["100000", "300000", "1000000"]
    command = [python, os.path.abspath(__file__), *sizes, *(() if bench.options.quick else ("--skewed", "--peer", "20000"))]
    environment = dict(os.environ, PYTHONPATH=os.path.join(bench.options.build, "python"))
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        kind = " skewed" if found.get("skewed") else ""
        if "dedup" in found:
            bench.table.add(f"Spark, 2 executors:{kind} {found['documents']:,} documents", found["documents"] / found["dedup"] / 1e6,
                            "M/s", command="bench/spark.py", peer="a job that passes rows on", ratio=found["ratio"])
        else:
            bench.table.add(f"Spark, MinHashLSH: {found['documents']:,} documents",
                            found["documents"] / found["MinHashLSH"] / 1e6, "M/s", command="bench/spark.py")


def main(arguments):
    skewed, peer, sizes = "--skewed" in arguments, 0, []
    if "--peer" in arguments:
        at = arguments.index("--peer")
        peer = int(arguments[at + 1])
        arguments = arguments[:at] + arguments[at + 2:]
    sizes = [int(each) for each in arguments if each.isdigit()]
    os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    folder = tempfile.mkdtemp(prefix="doppel-bench-spark-")
    services = [sys.executable, os.path.join(ROOT, "scripts", "services")]
    started = subprocess.run([*services, "start", "spark", "--dir", f"{folder}/service", "--set", "memory=2g"],
                             stdout=subprocess.PIPE, text=True, check=True)
    try:
        spark = session(started.stdout.partition("SPARK_MASTER=")[2].split()[0])
        make(f"{folder}/warm", 2000, False)
        measure(spark, f"{folder}/warm", 2000, f"{folder}/out")
        for size in sizes:
            for is_skewed in (False, True) if skewed and size == sizes[0] else (False,):
                path = f"{folder}/{size}-{is_skewed}"
                make(path, size, is_skewed)
                print(json.dumps({**measure(spark, path, size, f"{folder}/out"), "skewed": is_skewed}), flush=True)
        if peer:
            make(f"{folder}/peer", peer, False)
            print(json.dumps(measure(spark, f"{folder}/peer", peer, f"{folder}/out")), flush=True)
            print(json.dumps(measure_peer(spark, f"{folder}/peer", peer, f"{folder}/out")), flush=True)
        spark.stop()
    finally:
        subprocess.run([*services, "stop", "spark", "--dir", f"{folder}/service"], check=False)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])

"""A real Spark for all tests of this folder: one session in one process; at full size one master and two workers on
loopback, one core each (scripts/services), for the job, too.

    PYTHONPATH=build/python build/spark-venv/bin/python -m pytest tests/spark

runs them on the module of the build folder; without PYTHONPATH on the libdoppel of the environment. SPARK_MASTER in the
environment names a cluster that runs already.
"""
import os
import subprocess
import sys
import tempfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FULL = os.environ.get("DOPPEL_SUITE") == "full"
sys.path.insert(0, os.path.join(ROOT, "tests", "spark"))
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = os.environ["SPARK_PYTHON"] = sys.executable
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

# Small runs end before compiled code pays.
QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xshare:auto"
SETTINGS = {
    "spark.driver.host": "127.0.0.1", "spark.executor.cores": "1", "spark.executor.memory": "768m",
    "spark.sql.shuffle.partitions": "2", "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.ui.showConsoleProgress": "false", "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    "spark.task.maxFailures": "1" if not FULL else "4", "spark.driver.memory": "768m", "spark.ui.enabled": "false", "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": QUICK_JAVA, "spark.executor.extraJavaOptions": QUICK_JAVA,
}


@pytest.fixture(scope="session")
def master():
    """The address of the cluster."""
    if os.environ.get("SPARK_MASTER"):
        yield os.environ["SPARK_MASTER"]
        return
    with tempfile.TemporaryDirectory(prefix="doppel-spark-") as folder:
        services = [sys.executable, os.path.join(ROOT, "scripts", "services")]
        started = subprocess.run([*services, "start", "spark", "--dir", folder], capture_output=True, text=True)
        assert started.returncode == 0, started.stdout + started.stderr
        try:
            yield started.stdout.partition("SPARK_MASTER=")[2].split()[0]
        finally:
            subprocess.run([*services, "stop", "spark", "--dir", folder], check=True)


@pytest.fixture(scope="session")
def spark(request, tmp_path_factory):
    """One session for all tests: in one JVM, with Python workers of its own; at full size on the cluster, whose cores it has
    from then on: test_job.py, which needs them, comes before all that ask for a session."""
    from pyspark.sql import SparkSession

    place = request.getfixturevalue("master") if FULL else "local[2]"
    builder = SparkSession.builder.master(place).appName("tests")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def full():
    """Whether the tests run at full size (`make test-full`)."""
    return FULL

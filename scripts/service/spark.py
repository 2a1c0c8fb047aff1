"""A standalone Spark: one master and two workers on loopback, one core each, from the pyspark of an environment."""
import json
import os
import subprocess
import urllib.request

from service.nodes import ROOT, about, fail, free_port, launch, make_node, need, wait_until

PYTHON = os.path.join(ROOT, "build", "spark-venv", "bin", "python")
WORKERS = 2
MEMORY = "1g"  # of a worker, for executors


def spark_home(python):
    """The folder of the pyspark that a Python has."""
    if not os.path.exists(python):
        fail(f"{python} is missing: `scripts/venv build/spark-venv tests/spark/requirements.txt` makes it; "
             "SPARK_PYTHON names another Python that has pyspark")
    found = subprocess.run([python, "-c", "import os, pyspark; print(os.path.dirname(pyspark.__file__))"],
                           capture_output=True, text=True)
    if found.returncode:
        fail(f"{python} has no pyspark: `scripts/venv build/spark-venv tests/spark/requirements.txt` makes one that has")
    return found.stdout.strip()


def make_spark(folder, port, settings):
    need("java", "default-jre-headless")
    home = spark_home(os.environ.get("SPARK_PYTHON") or PYTHON)
    memory = settings.pop("memory", MEMORY)
    if settings:
        fail(f"Spark has the setting memory, not {', '.join(settings)}")
    shared = ["env", f"SPARK_HOME={home}", "SPARK_LOCAL_IP=127.0.0.1", "SPARK_DAEMON_MEMORY=256m",
              "SPARK_DAEMON_JAVA_OPTS=-XX:+UseSerialGC -XX:TieredStopAtLevel=1", "SPARK_NO_DAEMONIZE=1"]
    run = os.path.join(home, "bin", "spark-class")
    make_node(folder, "master", lambda node: [*shared, run, "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1",
                                              "--port", str(port), "--webui-port", str(free_port())], port)
    for number in range(WORKERS):
        own = free_port()
        make_node(folder, f"worker{number + 1}", lambda node: [
            *shared, f"SPARK_LOCAL_DIRS={node}/data", run, "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1",
            "--port", str(own), "--webui-port", str(free_port()), "--cores", "1", "--memory", memory,
            "--work-dir", f"{node}/data", f"spark://127.0.0.1:{port}"], own)


def state_of(master):
    """What the master's page says of its workers."""
    command = about(master)["command"]
    page = command[command.index("--webui-port") + 1]
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return json.load(answer)
    except (OSError, ValueError):
        return {}


def start_spark(nodes):
    master, *workers = nodes
    launch(master)
    wait_until("Spark's master", [master], lambda: state_of(master).get("status") == "ALIVE")
    for worker in workers:
        launch(worker)
    wait_until("A worker of Spark", nodes, lambda: sum(
        each["state"] == "ALIVE" for each in state_of(master).get("workers", [])) >= len(workers))
    return {"SPARK_MASTER": f"spark://127.0.0.1:{about(master)['port']}"}

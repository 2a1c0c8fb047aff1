"""A Kafka of one node, and its jars."""
import fcntl
import os
import shutil
import socket
import struct
import subprocess

from service.nodes import ROOT, about, address, fail, free_port, launch, make_node, need, read, wait_until, write

JARS = os.path.join(ROOT, "build", "kafka")
POM = os.path.join(ROOT, "scripts", "kafka", "pom.xml")

# One broker that is its own controller. The topics it keeps for itself are small; a group forms at once; what a dead worker has
# left open is closed after its own timeout, not ten seconds later; a restart waits for nobody, after
# a kill for two seconds; topics are compacted soon.
PROPERTIES = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={data}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=500
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
message.max.bytes=33554432
controlled.shutdown.enable=false
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.cleaner.dedupe.buffer.size=16777216
log.cleaner.backoff.ms=200
"""
JAVA = ["java", "-Xms128m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
        "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS"]


def fetch_kafka():
    """Kafka's jars into build/kafka, unless those of this pom.xml are there."""
    need("java", "default-jre-headless")
    os.makedirs(os.path.dirname(JARS), exist_ok=True)
    with open(JARS + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(JARS, "pom.xml")
        if os.path.exists(done) and read(done) == read(POM):
            return
        need("mvn", "maven")
        print(f"Fetching Kafka's jars into {os.path.relpath(JARS)}")
        shutil.rmtree(JARS, ignore_errors=True)
        got = subprocess.run(["mvn", "-q", "-B", "-f", POM, "dependency:copy-dependencies", f"-DoutputDirectory={JARS}"],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if got.returncode:
            fail("Kafka's jars could not be fetched from Maven Central: check the network, or Maven's settings.\n"
                 + "\n".join((got.stdout + got.stderr).splitlines()[:5]))
        shutil.copy(POM, done)


def make_kafka(folder, port, settings):
    fetch_kafka()
    controller = free_port()
    java = [*JAVA, *os.environ.get("KAFKA_OPTS", "").split(), "-cp", os.path.join(JARS, "*")]
    node = make_node(folder, "broker", lambda node: [*java, "kafka.Kafka", os.path.join(node, "server.properties")], port)
    properties = PROPERTIES.format(port=port, controller=controller, data=os.path.join(node, "data"))
    write(os.path.join(node, "server.properties"), properties + "".join(f"{key}={value}\n" for key, value in settings.items()))
    done = subprocess.run([*java, "kafka.tools.StorageTool", "format", "-t", "doppel-demo-kafka-aaaaa", "-c", "server.properties"],
                          cwd=node, capture_output=True, text=True)
    if done.returncode:
        fail(f"Kafka could not format its storage:\n{done.stdout}{done.stderr}")


def serves(node):
    """Asks the broker for the versions it speaks, its simplest request."""
    try:
        with socket.create_connection(("127.0.0.1", about(node)["port"]), timeout=5) as link:
            link.sendall(struct.pack(">ihhih", 10, 18, 0, 1, -1))
            return len(link.recv(8)) == 8
    except OSError:
        return False


def start_kafka(nodes):
    launch(nodes[0])
    wait_until("Kafka", nodes, lambda: serves(nodes[0]))
    return {"KAFKA_BROKERS": address(nodes[0])}

"""Processes that outlive the command: each has a folder, with node.json (how to start it, and its port), pid (its id, and when
it began) and log."""
import errno
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PATIENCE = 120  # seconds until a service that does not answer has failed: busy machines are slow
TERMINATE = 15  # seconds a process gets to end by itself
RELEASE = 5  # seconds that the port of a process which was killed may take to be free


def fail(message):
    sys.exit(f"scripts/services: {message}")


def need(program, package):
    if not shutil.which(program):
        fail(f"{program} is missing: `scripts/install-deps services` installs it (the Debian package {package})")


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- ports


def free_port(taken=set()):
    """A port that is not in use, below those the system gives to outgoing connections; none twice."""
    for _ in range(1000):
        port = random.SystemRandom().randrange(10240, 32000)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in taken:
            taken.add(port)
            return port
    return fail("no free port below 32000")


def port_is_taken(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ports of connections that have just ended are free
        try:
            one.bind(("127.0.0.1", port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


# ---- processes


def began(pid):
    """When a process began, in the system's ticks, which distinguishes it from a later one with its id; None: it has ended."""
    try:
        fields = read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in "ZX" else fields[19]


def pid_of(node):
    """The id of a node's process, None when it does not run."""
    try:
        pid, start = read(os.path.join(node, "pid")).split()
    except (FileNotFoundError, ValueError):
        return None
    return int(pid) if began(pid) == start else None


def about(node):
    return json.loads(read(os.path.join(node, "node.json")))


def address(node):
    return f"127.0.0.1:{about(node)['port']}"


def make_node(folder, name, command, port):
    node = os.path.join(folder, name)
    os.makedirs(os.path.join(node, "data"))
    write(os.path.join(node, "node.json"), json.dumps({"command": command(node), "port": port}))
    return node


def launch(node):
    if pid_of(node):
        return
    port = about(node)["port"]
    limit = time.monotonic() + RELEASE
    while port_is_taken(port):
        if time.monotonic() > limit:
            fail(f"another process has port {port} of 127.0.0.1: end it, or stop this service and start it with another --port")
        time.sleep(0.02)
    with open(os.path.join(node, "log"), "ab") as log:
        process = subprocess.Popen(about(node)["command"], cwd=node, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   start_new_session=True)
    write(os.path.join(node, "pid"), f"{process.pid} {began(process.pid)}\n")


def end(nodes):
    ids = {node: pid_of(node) for node in nodes}
    for how, seconds in ((signal.SIGTERM, TERMINATE), (signal.SIGKILL, PATIENCE)):
        for node, pid in ids.items():
            if pid and pid_of(node):
                os.kill(pid, how)
        limit = time.monotonic() + seconds
        while any(map(pid_of, nodes)) and time.monotonic() < limit:
            time.sleep(0.01)
    for node in nodes:
        if os.path.exists(os.path.join(node, "pid")):
            os.remove(os.path.join(node, "pid"))


def wait_until(what, nodes, ready):
    limit = time.monotonic() + PATIENCE
    while not ready():
        for node in nodes:
            if not pid_of(node):
                fail(f"{what} has ended by itself; its log, {node}/log, ends with:\n{tail(node)}")
        if time.monotonic() > limit:
            fail(f"{what} does not answer after {PATIENCE} s; see {nodes[0]}/log:\n{tail(nodes[0])}")
        time.sleep(0.02)


def tail(node):
    return "\n".join(read(os.path.join(node, "log")).splitlines()[-10:])


def nodes_of(folder):
    return sorted(os.path.dirname(path) for path in glob.glob(os.path.join(glob.escape(folder), "*", "node.json")))

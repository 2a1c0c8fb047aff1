"""A real Redis of a test's own, on a socket in a temporary folder."""
import os
import shutil
import signal
import subprocess
import tempfile
import time


class Redis:
    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="doppel-redis-")
        self.socket = os.path.join(self.folder, "redis.sock")
        self.options = options
        self.start()

    def url(self, query="", login=""):
        return f"redis+unix://{login}{self.socket}" + (f"?{query}" if query else "")

    def start(self):
        with open(os.path.join(self.folder, "log"), "a") as log:
            self.process = subprocess.Popen(
                ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--appendonly",
                 "yes", "--appendfsync", "always", *self.options], stdout=log, stderr=log)
        for _ in range(500):
            if self.ask("PING").startswith(("PONG", "NOAUTH")):
                return
            time.sleep(0.02)
        raise AssertionError("Redis does not start")

    def ask(self, *words):
        done = subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True, timeout=20)
        return done.stdout.strip()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        self.process.wait(30)

    def close(self):
        self.stop()
        shutil.rmtree(self.folder)

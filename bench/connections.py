#!/usr/bin/env python3
"""Looks for stalls of doppel serve: sends requests over 1 to 512 connections, with keep-alive and without, and counts the
answers of each second. A server that stalls shows as a second with far fewer answers than the others.

    bench/connections.py [--build build] [--seconds 5] [--minutes 2] [--connections 1,2,...,512] [--route check|add|health]
                         [--url http://127.0.0.1:7700]

Every setting (a number of connections, with keep-alive or without) is held for --seconds; all settings are repeated, in
an order that changes, until --minutes have passed: it stops by itself. A server of BUILD/doppel is started on a new
index, unless --url names one (of this machine; it needs --max-per-client 0). At the end there is a line for each setting:

    connections  keep-alive  rounds  answers  lowest/s  median/s  slowest ms  errors

`lowest/s` is the fewest answers of any second of it, `slowest ms` the longest that one answer took. A second with less
than a tenth of the median of its setting is reported at once, with what the threads of the server were waiting for.
The exit code is 1 when there were such seconds, or errors, and 0 otherwise.
"""
import argparse
import json
import os
import random
import re
import select
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

STALL = 0.1  # of the median
NOTHING_FOR = 10  # seconds without an answer after which a connection has failed


class Requests:
    """The bytes of requests, one after the other."""

    def __init__(self, route, seed=1):
        rng = random.Random(seed)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self.words = ["".join(rng.choices(letters, k=rng.randint(2, 10))) for _ in range(5000)]
        self.rng, self.route, self.number = rng, route, 0
        self.bodies = [" ".join(rng.choices(self.words, k=300)) for _ in range(500)]

    def next(self, keep_alive):
        ending = "" if keep_alive else "Connection: close\r\n"
        if self.route == "health":
            return f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{ending}\r\n".encode()
        self.number += 1
        record = {"text": self.bodies[self.number % len(self.bodies)]}
        if self.route == "add":
            record = {"id": f"c{self.number}", "text": " ".join(self.rng.choices(self.words, k=40))}
        body, path = json.dumps(record), "/v1/documents" if self.route == "add" else "/v1/check"
        return (f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
                f"{ending}\r\n{body}").encode()


class Connection:
    """One connection with one request under way. Its own address of loopback keeps ports from running out."""

    def __init__(self, load, number):
        self.load, self.number, self.socket = load, number, None
        self.connect()

    def connect(self):
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        self.load.made += 1
        self.socket.bind((f"127.{1 + self.load.made // 250 % 200}.0.{1 + self.load.made % 250}", 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.connect_ex(self.load.address)
        self.load.by_file[self.socket.fileno()] = self
        self.load.epoll.register(self.socket, select.EPOLLIN | select.EPOLLOUT)
        self.begin()

    def begin(self):
        self.waiting, self.got = self.load.requests.next(self.load.keep_alive), b""
        self.since = time.monotonic()
        self.load.epoll.modify(self.socket, select.EPOLLIN | select.EPOLLOUT)

    def close(self):
        if self.socket:
            self.load.by_file.pop(self.socket.fileno(), None)
            self.load.epoll.unregister(self.socket)
            self.socket.close()
            self.socket = None

    def fail(self, why):
        self.load.errors[why] = self.load.errors.get(why, 0) + 1
        self.close()
        self.connect()

    def handle(self, event):
        try:
            if event & select.EPOLLOUT and self.waiting:
                self.waiting = self.waiting[self.socket.send(self.waiting):]
                if not self.waiting:
                    self.load.epoll.modify(self.socket, select.EPOLLIN)
            if event & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self.receive()
        except BlockingIOError:
            pass
        except OSError as error:
            self.fail(type(error).__name__)

    def receive(self):
        piece = self.socket.recv(65536)
        self.got += piece
        head = self.got.find(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", self.got[:head + 2]) if head >= 0 else None
        if not length or len(self.got) < head + 4 + int(length[1]):
            if not piece:
                self.fail("closed without an answer")
            return
        status = self.got[9:12]
        if status not in (b"200", b"201"):
            self.load.errors[status.decode()] = self.load.errors.get(status.decode(), 0) + 1
        self.load.answered(time.monotonic() - self.since)
        if self.load.keep_alive:
            self.begin()
        else:
            self.close()
            self.connect()


class Load:
    """Many connections for some seconds; `windows` has the answers of each whole second."""

    def __init__(self, address, requests, count, keep_alive):
        self.address, self.requests, self.keep_alive = address, requests, keep_alive
        self.epoll, self.by_file, self.made, self.errors = select.epoll(), {}, random.randrange(50000), {}
        self.windows, self.answers, self.slowest = [], 0, 0.0
        self.connections = [Connection(self, number) for number in range(count)]

    def answered(self, seconds):
        self.answers += 1
        self.slowest = max(self.slowest, seconds)

    def run(self, seconds, each_second):
        began, before = time.monotonic(), 0
        while len(self.windows) < seconds:
            for file, event in self.epoll.poll(0.05):
                if file in self.by_file:
                    self.by_file[file].handle(event)
            now = time.monotonic()
            if now >= began + len(self.windows) + 1:
                self.windows.append(self.answers - before)
                before = self.answers
                each_second(self)
                for one in self.connections:
                    if now - one.since > NOTHING_FOR:
                        self.fail_late(one)
        self.close()

    def fail_late(self, connection):
        self.slowest = max(self.slowest, time.monotonic() - connection.since)
        connection.fail(f"no answer for {NOTHING_FOR} s")

    def close(self):
        for one in self.connections:
            one.close()
        self.epoll.close()


class Server:
    def __init__(self, build):
        self.folder = tempfile.mkdtemp(prefix="doppel-connections-")
        self.log = os.path.join(self.folder, "log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen([os.path.join(build, "doppel"), "serve", "--index", os.path.join(self.folder, "index"), "--listen",
                                             "127.0.0.1:0", "--max-per-client", "0"], stderr=log)
        for _ in range(500):
            with open(self.log) as log:
                found = re.search(r"listening on http://127.0.0.1:(\d+)", log.read())
            if found:
                break
            time.sleep(0.02)
        else:
            sys.exit(f"connections: the server does not start; see {self.log}")
        self.address = ("127.0.0.1", int(found[1]))

    def threads(self):
        """What each thread of the server waits for."""
        for name in os.listdir(f"/proc/{self.process.pid}/task"):
            task = f"/proc/{self.process.pid}/task/{name}"
            try:
                with open(f"{task}/wchan") as wait, open(f"{task}/stat") as stat:
                    yield f"{name} {stat.read().rsplit(')', 1)[1].split()[0]} {wait.read() or '-'}"
            except OSError:
                pass

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder)


def measure(options, address, server):
    """Gives {(connections, keep alive): [loads]}, and the number of seconds that were stalls."""
    settings = [(count, keep_alive) for count in options.connections for keep_alive in (True, False)]
    loads, stalls, until = {setting: [] for setting in settings}, 0, time.monotonic() + 60 * options.minutes
    requests, rng = Requests(options.route), random.Random(1)
    while time.monotonic() < until:
        for count, keep_alive in settings:
            if time.monotonic() >= until:
                break
            known = [window for load in loads[count, keep_alive] for window in load.windows]

            def each_second(load):
                nonlocal stalls
                usual = statistics.median(known + load.windows)
                if len(known) + len(load.windows) >= 3 and load.windows[-1] < STALL * usual:
                    stalls += 1
                    print(f"{time.strftime('%H:%M:%S')} stall: {load.windows[-1]} answers in a second, usually {usual:.0f}; {count} connections, "
                          f"keep-alive {'on' if keep_alive else 'off'}", *(server.threads() if server else ()), sep="\n    ", flush=True)

            load = Load(address, requests, count, keep_alive)
            load.run(options.seconds, each_second)
            loads[count, keep_alive].append(load)
        rng.shuffle(settings)
    return loads, stalls


def report(loads):
    errors = {}
    print("connections  keep-alive  rounds   answers  lowest/s  median/s  slowest ms  errors")
    for (count, keep_alive), made in sorted(loads.items(), key=lambda one: (not one[0][1], one[0][0])):
        windows = [window for load in made for window in load.windows]
        if not windows:
            continue
        failed = sum(number for load in made for number in load.errors.values())
        for load in made:
            for why, number in load.errors.items():
                errors[why] = errors.get(why, 0) + number
        print(f"{count:11}  {'on' if keep_alive else 'off':>10}  {len(made):6}  {sum(windows):8}  {min(windows):8}  {statistics.median(windows):8.0f}  "
              f"{1000 * max(load.slowest for load in made):10.1f}  {failed:6}")
    for why, number in errors.items():
        print(f"errors: {why}: {number}")
    return errors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--build", default="build")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--connections", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--route", choices=["check", "add", "health"], default="check")
    parser.add_argument("--url")
    options = parser.parse_args()
    server = None if options.url else Server(options.build)
    try:
        if server:
            address = server.address
        else:
            found = re.fullmatch(r"http://([\w.]+):(\d+)/?", options.url)
            if not found:
                sys.exit("connections: --url is http://HOST:PORT")
            address = (found[1], int(found[2]))
        loads, stalls = measure(options, address, server)
    finally:
        if server:
            server.close()
    errors = report(loads)
    print(f"{stalls} stalls")
    return 1 if stalls or errors else 0


if __name__ == "__main__":
    sys.exit(main())

"""A bad network: a proxy in front of a Redis that cuts connections, holds bytes back, and loses them."""
import random
import selectors
import socket
import struct
import threading
import time

# What becomes of a connection when it is cut, and of the bytes that the proxy holds then.
DROP = "drop"          # closed on both sides; what it holds is lost
PART = "part"          # a part of what it holds, up to some byte, is delivered on both sides, then it is closed
CARRY = "carry"        # all that was asked is delivered; no answer comes back
LATE = "late"          # closed on the client's side; what was asked is delivered a while later, when the client may be back
SWALLOW = "swallow"    # it stays open; what is asked is delivered, answers are lost from then on
WAYS = (DROP, PART, CARRY, LATE)

HOLD = 0.004           # seconds bytes are held back, so that there are some to lose
LATER = 0.25


class Pair:
    """A connection: a socket on either side, and what is on its way to the other. side 0 is the client's."""

    def __init__(self, client, server, ends, most):
        self.sockets = [client, server]
        self.held = [bytearray(), bytearray()]  # from side i
        self.since = [None, None]
        self.ends, self.most = ends, most  # when it is cut, after how many bytes; None: it is not
        self.swallows = False
        self.late = None  # when what is held goes to the server, of one that is closed on the client's side


def shut(one, reset):
    if reset:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    one.close()


class Proxy:
    """Listens on `port`, for the server at another one. Connections live for about so many `seconds`, or until their clients have
    sent about so many `bytes`, and are cut in one of `ways`; with neither, until `cut` is called. Bytes are held back
    for `hold` seconds."""

    def __init__(self, to, seconds=None, bytes=None, ways=WAYS, seed=0, hold=None):
        self.to, self.seconds, self.bytes, self.ways = to, seconds, bytes, ways
        self.hold = hold or (HOLD if seconds or bytes else 0)
        self.rng = random.Random(seed)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.pairs, self.cuts, self.open, self.first = [], 0, True, True
        self.closes = False  # new connections are closed at once
        self.asked = []      # ways of cutting all connections, of other threads
        self.lock = threading.Lock()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, None)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def cut(self, way):
        with self.lock:
            self.asked.append(way)

    def close(self):
        self.open = False
        self.thread.join()
        for pair in self.pairs:
            for one in pair.sockets:
                if one:
                    one.close()
        self.listener.close()
        self.selector.close()

    # ---- the thread

    def run(self):
        while self.open:
            for key, _ in self.selector.select(0.002):
                if key.data is None:
                    self.accept()
                else:
                    self.take(*key.data)
            now = time.monotonic()
            with self.lock:
                asked, self.asked = self.asked, []
            for pair in list(self.pairs):
                if pair.late is not None:
                    if now >= pair.late:
                        self.deliver(pair, 0, None)
                        self.drop(pair, False)
                elif asked or (pair.ends and now >= pair.ends):
                    self.end(pair, asked[-1] if asked else self.rng.choice(self.ways))
                else:
                    for side in (0, 1):
                        if pair.held[side] and now - pair.since[side] >= self.hold:
                            self.deliver(pair, side, None)

    def accept(self):
        client, _ = self.listener.accept()
        try:
            if self.closes:
                raise OSError
            server = socket.create_connection(("127.0.0.1", self.to), timeout=5)
        except OSError:
            return shut(client, self.rng.random() < 0.5)
        pair = Pair(client, server, *self.life())
        self.pairs.append(pair)
        for side, one in enumerate(pair.sockets):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.setblocking(False)
            self.selector.register(one, selectors.EVENT_READ, (pair, side))
        return None

    def life(self):
        """When a connection is to be cut, and at which byte. Who opens a store, which is the first, has to reach it."""
        share = self.rng.uniform(0.1, 1.9)
        ends = time.monotonic() + self.seconds * share + self.first * 0.5 if self.seconds else None
        most = self.bytes * share + self.first * 4000 if self.bytes else None
        self.first = False
        return ends, most

    def take(self, pair, side):
        """Reads what has come from a side."""
        if not pair.sockets[side]:
            return
        try:
            data = pair.sockets[side].recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if pair.late is None:
                self.deliver(pair, side, None)
            self.drop(pair, False)
        elif not (side == 1 and (pair.swallows or pair.late is not None)):
            if not pair.held[side]:
                pair.since[side] = time.monotonic()
            pair.held[side] += data
            if side == 0 and pair.most is not None:
                pair.most -= len(data)
                if pair.most < 0:
                    self.end(pair, self.rng.choice(self.ways))

    def deliver(self, pair, side, most):
        """Sends bytes that came from a side on, up to `most`."""
        to = pair.sockets[1 - side]
        data = bytes(pair.held[side][:most])
        pair.held[side].clear()
        if not to or not data:
            return
        try:
            to.settimeout(10)
            to.sendall(data)
            to.setblocking(False)
        except OSError:
            self.drop(pair, False)

    def end(self, pair, way):
        self.cuts += 1
        pair.ends = pair.most = None
        if way == SWALLOW:
            pair.swallows = True
            pair.held[1].clear()
            return
        if way == LATE:
            self.forget(pair, 0)
            pair.late = time.monotonic() + LATER * self.rng.random()
            return
        if way == PART:
            for side in (0, 1):
                self.deliver(pair, side, self.rng.randrange(len(pair.held[side]) + 1))
        elif way == CARRY:
            self.deliver(pair, 0, None)
        self.drop(pair, self.rng.random() < 0.5)

    def forget(self, pair, side, reset=False):
        one, pair.sockets[side] = pair.sockets[side], None
        if one:
            self.selector.unregister(one)
            shut(one, reset)

    def drop(self, pair, reset):
        for side in (0, 1):
            self.forget(pair, side, reset)
        if pair in self.pairs:
            self.pairs.remove(pair)

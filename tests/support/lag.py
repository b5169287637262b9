#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/support/lag.py LISTEN SERVER MS LOG - a way to a server that takes MS milliseconds in each direction, between two Unix sockets. When a
connection ends, LOG gets a line: how often the client spoke after the server had. That many times it waited for the way there and back."""
import os
import queue
import socket
import sys
import threading
import time

listen, server, delay, log = sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1000, sys.argv[4]


class Way:
    def __init__(self, client):
        self.ends = client, socket.socket(socket.AF_UNIX)
        self.ends[1].connect(server)
        self.turns, self.last, self.lock = 0, 1, threading.Lock()
        self.open = 2
        for side in 0, 1:
            waiting = queue.Queue()
            threading.Thread(target=self.take, args=(side, waiting), daemon=True).start()
            threading.Thread(target=self.give, args=(1 - side, waiting), daemon=True).start()

    def take(self, side, waiting):
        while True:
            try:
                data = self.ends[side].recv(1 << 16)
            except OSError:
                data = b""
            # 'X' is the farewell of a client: nobody waits for anything then.
            if side == 0 and data and data != b"X\0\0\0\4":
                with self.lock:
                    self.turns += self.last == 1
                    self.last = 0
            waiting.put((time.monotonic() + delay, data))
            if not data:
                return

    def give(self, side, waiting):
        while True:
            at, data = waiting.get()
            time.sleep(max(0, at - time.monotonic()))
            try:
                if side == 0 and data:
                    with self.lock:
                        self.last = 1
                self.ends[side].sendall(data) if data else self.ends[side].shutdown(socket.SHUT_WR)
            except OSError:
                pass
            if not data:
                break
        with self.lock:
            self.open -= 1
            if self.open == 0:
                with open(log, "a") as out:
                    out.write("%d\n" % self.turns)


os.path.exists(listen) and os.unlink(listen)
door = socket.socket(socket.AF_UNIX)
door.bind(listen)
os.chmod(listen, 0o777)
door.listen(50)
print("ready", flush=True)
while True:
    Way(door.accept()[0])

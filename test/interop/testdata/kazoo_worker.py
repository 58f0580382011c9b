"""Runs contenders with kazoo's recipes.

usage: kazoo_worker.py SERVERS REFEREE PARTY PATH KIND SESSION_MS CONTENDERS PERMITS

It runs until the referee dismisses them all; referee_test.go has the protocol.
"""
import logging
import os
import random
import socket
import sys
import threading
import traceback

import kazoo.version
from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.retry import ForceRetryError


class Reader(ReadLock):
    """ReadLock without a bug of kazoo before 2.9.0 (kazoo#649): a reader also waits for a later writer, which waits for
    the reader. Two programs that use kazoo's own locks deadlock, too."""

    def _get_predecessor(self, node):
        children = self.client.get_children(self.path)
        if node not in children:
            raise ForceRetryError()
        writers = filter(None, map(self._contenders_re.search, children))
        ahead = [w for w in writers if w.group(1) < node[-10:]]
        return max(ahead, key=lambda w: w.group(1)).string if ahead else None


if tuple(map(int, kazoo.version.__version__.split(".")[:2])) >= (2, 9):
    Reader = ReadLock


# Kazoo with Curator's names: how a Python program shares a path with programs that it cannot change.
class AsMutex(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class AsLatch(Lock):
    _NODE_NAME = "-latch-"
    _EXCLUDE_NAMES = ["-latch-"]


class AsWriter(WriteLock):
    _NODE_NAME = "-__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class AsReader(Reader):
    _NODE_NAME = "-__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class Door:
    """The connection to the referee."""

    def __init__(self, address, party):
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._lines = self._socket.makefile("r")
        self._send("hello " + party)

    def _send(self, line):
        self._socket.sendall((line + "\n").encode())

    def visit(self, weight):
        """Enters and leaves, and returns whether to finish."""
        for line in ("enter %d" % weight, "leave"):
            self._send(line)
            answer = self._lines.readline().strip()
            if answer not in ("ok", "bye"):
                raise IOError("the referee is gone")
        return answer == "bye"


def exclusive(lock):
    def turn(door):
        with lock:
            return door.visit(1)
    return turn


writers_alone = False


def shared(writer, reader):
    def turn(door):
        weight = 0 if random.random() < 0.7 and not writers_alone else 1
        with writer if weight else reader:
            return door.visit(weight)
    return turn


def elected(election):
    def turn(door):
        end = []
        election.run(lambda: end.append(door.visit(1)))
        return end[0]
    return turn


def renamed(election, lock):
    election.lock = lock
    return election


permits = 0

KINDS = {
    "semaphore": lambda zk, path: exclusive(zk.Semaphore(path, "kazoo", max_leases=permits)),
    "lock": lambda zk, path: exclusive(zk.Lock(path, "kazoo")),
    "lock+pattern": lambda zk, path: exclusive(Lock(zk, path, "kazoo", extra_lock_patterns=["-lock-"])),
    "lock-as-mutex": lambda zk, path: exclusive(AsMutex(zk, path, "kazoo")),
    "rwlock": lambda zk, path: shared(zk.WriteLock(path, "kazoo"), Reader(zk, path, "kazoo")),
    "rwlock-as-curator": lambda zk, path: shared(AsWriter(zk, path, "kazoo"), AsReader(zk, path, "kazoo")),
    "election": lambda zk, path: elected(zk.Election(path, "kazoo")),
    "election-as-selector": lambda zk, path: elected(renamed(zk.Election(path, "kazoo"), AsMutex(zk, path, "kazoo"))),
    "election-as-latch": lambda zk, path: elected(renamed(zk.Election(path, "kazoo"), AsLatch(zk, path, "kazoo"))),
}


def contend(servers, referee, party, path, kind, session):
    zk = KazooClient(hosts=servers, timeout=session / 1000)
    zk.start(timeout=30)
    turn = KINDS[kind](zk, path)
    door = Door(referee, party)
    while not turn(door):
        pass
    zk.stop()


def main():
    logging.disable(logging.CRITICAL)
    global writers_alone, permits
    servers, referee, party, path, kind, session, contenders, limit = sys.argv[1:]
    permits = int(limit)
    kind, _, option = kind.partition(":")
    writers_alone = option == "write"
    failed = threading.Event()

    def guarded():
        try:
            contend(servers, referee, party, path, kind, int(session))
        except Exception:
            traceback.print_exc()
            failed.set()

    threads = [threading.Thread(target=guarded) for _ in range(int(contenders))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stderr.flush()
    os._exit(1 if failed.is_set() else 0)


main()

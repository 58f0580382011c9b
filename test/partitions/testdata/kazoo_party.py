"""Executes the commands of doc.go on kazoo's Lock."""
import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.protocol.states import KazooState

clients = {}
leaving = {}
writing = threading.Lock()


def report(name, event, at, why=""):
    with writing:
        sys.stdout.write("%s %s %d %s\n" % (name, event, at, why))
        sys.stdout.flush()


def client(name, servers, milliseconds):
    if name not in clients:
        clients[name] = KazooClient(hosts=servers, timeout=milliseconds / 1000, randomize_hosts=False, connection_retry={"max_tries": -1})
        clients[name].start(timeout=30)
    return clients[name]


def join(name, zk, path):
    try:
        lock = zk.Lock(path, name)
        lock.acquire()
        at = time.monotonic_ns()

        def listen(state):
            now = time.monotonic_ns()
            if state != KazooState.CONNECTED:
                report(name, "told", now, state)
            if state == KazooState.LOST:
                report(name, "lost", now, state)

        zk.add_listener(listen)
        report(name, "acquired", at)
        leaving[name].wait()
        report(name, "told", time.monotonic_ns(), "released")
        lock.release()
        report(name, "left", time.monotonic_ns(), "ok")
    except Exception as e:
        report(name, "gone", time.monotonic_ns(), repr(e))


def main():
    logging.disable(logging.CRITICAL)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "leave":
            leaving[words[1]].set()
            continue
        _, name, connection, _, first, _, path, milliseconds = words
        leaving[name] = threading.Event()
        zk = client(connection, first, int(milliseconds))
        threading.Thread(target=join, args=(name, zk, path), daemon=True).start()
    os._exit(0)


main()

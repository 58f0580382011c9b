"""Executes the commands of queue_peer_test.go on kazoo's queues.

usage: queue_peer.py SERVERS SESSION_MS
"""
import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient

PATIENCE = 20
printing = threading.Lock()


def say(line):
    with printing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class Peer:
    def __init__(self, name, kind, queue):
        self.name, self.locking, self.queue = name, kind == "locking", queue
        self.stopping = threading.Event()
        self.thread = None

    def put(self, arg, bodies):
        if len(bodies) > 1:
            self.queue.put_all([b.encode() for b in bodies], int(arg))
        else:
            self.queue.put(bodies[0].encode(), int(arg))

    def poll(self):
        if not self.locking:
            return self.queue.get()
        body = self.queue.get(0.2)
        if body is not None and not self.queue.consume():
            raise RuntimeError("the item was lost")
        return body

    def consume(self):
        def loop():
            while not self.stopping.is_set():
                body = self.poll()
                if body is None:
                    time.sleep(0.005)
                    continue
                say("got %s %s" % (self.name, body.decode()))
        self.thread = threading.Thread(target=loop, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        self.thread.join()


def item(body):
    return "none" if body is None else "item " + body.decode()


def truth(ok):
    return "yes" if ok else "no"


def done(ok):
    return "ok" if ok else "failed: the item is not ours"


def obey(zk, peers, words):
    order, name = words[0], words[1]
    if order == "open":
        kind, path = words[2], words[3]
        peers[name] = Peer(name, kind, zk.LockingQueue(path) if kind == "locking" else zk.Queue(path))
        return "ok"
    peer = peers[name]
    if order == "put":
        peer.put(words[2], words[3:])
    elif order == "consume":
        peer.consume()
    elif order == "stop":
        peer.stop()
    elif order == "poll":
        return item(peer.poll())
    elif order == "get":
        return item(peer.queue.get(PATIENCE))
    elif order == "len":
        return str(len(peer.queue))
    elif order == "holds":
        return truth(peer.queue.holds_lock())
    elif order == "done":
        return done(peer.queue.consume())
    elif order == "release":
        return done(peer.queue.release())
    else:
        raise ValueError("no order " + order)
    return "ok"


def main():
    logging.disable(logging.CRITICAL)
    zk = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[2]) / 1000)
    zk.start(timeout=30)
    peers = {}
    for line in sys.stdin:
        try:
            say(obey(zk, peers, line.split()))
        except Exception as e:
            say("failed %s: %r" % (line.strip(), e))
    os._exit(0)


main()

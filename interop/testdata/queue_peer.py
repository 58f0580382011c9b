"""Uses kazoo's queues as it is told on its input; queue_peer_test.go says how.

usage: queue_peer.py SERVERS SESSION_MS
"""
import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient

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
        priority = int(arg) if arg != "-" else 100
        if len(bodies) > 1:
            self.queue.put_all([b.encode() for b in bodies], priority)
        else:
            self.queue.put(bodies[0].encode(), priority)

    def take(self, hold=False, timeout=0.2):
        if not self.locking:
            return self.queue.get()
        body = self.queue.get(timeout)
        if body is not None and not hold and not self.queue.consume():
            raise RuntimeError("the item was lost")
        return body

    def consume(self, hold):
        def loop():
            while not self.stopping.is_set():
                body = self.take(hold)
                if body is None:
                    time.sleep(0.005)
                    continue
                say("got %s %s" % (self.name, body.decode()))
                if hold:
                    threading.Event().wait()
        self.thread = threading.Thread(target=loop, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopping.set()
        if self.thread:
            self.thread.join()


def obey(zk, peers, words):
    order, name = words[0], words[1]
    if order == "open":
        kind, path = words[2], words[3]
        peers[name] = Peer(name, kind, zk.LockingQueue(path) if kind == "locking" else zk.Queue(path))
        return "ok"
    peer = peers[name]
    if order == "put":
        peer.put(words[2], words[3:])
    elif order == "take":
        body = peer.take()
        return "none" if body is None else "item " + body.decode()
    elif order in ("consume", "hold"):
        peer.consume(order == "hold")
    elif order == "stop":
        peer.stop()
    else:
        return "failed: unknown order " + order
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

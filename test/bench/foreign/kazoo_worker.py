"""Uses kazoo as it is told on standard input; worker.go has the orders. What it says here is for Lock, kazoo_queues.py for the queues, kazoo_counters.py for the counters."""
import gc
import queue
import sys
import threading
import time

from kazoo.client import KazooClient

from kazoo_caches import Caches
from kazoo_counters import Counters
from kazoo_queues import Queues
from kazoo_threads import Threads

ADDRESS, ROOT = sys.argv[1:3]
CLIENTS, LOCKERS, LOCKS = (int(a) for a in sys.argv[3:6])
KIND = sys.argv[6]


def lock(locker, n):
    return clients[locker % len(clients)].Lock("%s/%03d" % (ROOT, n), "bench-%d" % locker)


def run(millis, trace):
    start = time.monotonic()
    end = start + millis / 1000
    counts = [0] * LOCKERS
    cycles = [[] for _ in range(LOCKERS)]

    def cycle(locker):
        m = locks[locker]
        while time.monotonic() < end:
            began = time.time_ns()
            m.acquire()
            locked = time.time_ns()
            if trace:
                cycles[locker].append((began, locked, time.time_ns()))
            m.release()
            counts[locker] += 1

    threads = Threads()
    for i in range(LOCKERS):
        threads.start(cycle, i)
    threads.join()
    took = time.monotonic() - start
    for made in cycles:
        for c in made:
            print("t %d %d %d" % c)
    return "ok %d %d" % (sum(counts), took * 1e9)


def meet(n):
    inside = threading.Barrier(len(barriers))  # who has not counted yet when the first leave would wait for ever

    # Two paths take turns: at one path, who is slow to leave would wait for those who have come again.
    def party(pair):
        for i in range(n):
            barrier = pair[i % 2]
            barrier.enter()
            if not barrier.participating:
                raise RuntimeError("did not enter")
            inside.wait()
            barrier.leave()

    start = time.monotonic()
    threads = Threads()
    for pair in barriers:
        threads.start(party, pair)
    threads.join()
    return "ok %d %d" % (n, (time.monotonic() - start) * 1e9)


class Waiters:
    """One holder and n waiters."""

    def __init__(self, n):
        self.size = n + 1
        self.held = queue.Queue()
        self.may = threading.Semaphore(0)
        self.threads = Threads()
        for i in range(self.size):
            self.threads.start(self.wait, lock(i, 0))
            if i == 0:
                self.held.get()

    def wait(self, m):
        try:
            m.acquire()
        finally:
            self.held.put(True)
        self.may.acquire()
        m.release()

    def step(self):
        start = time.monotonic()
        self.may.release()
        self.held.get()
        return "ok %d" % ((time.monotonic() - start) * 1e9)

    def drain(self):
        start = time.monotonic()
        for _ in range(self.size):
            self.may.release()
        self.threads.join()
        return "ok %d" % ((time.monotonic() - start) * 1e9)


def memory():
    gc.collect()
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmRSS:"):
                return "ok %d %d" % (int(line.split()[1]) * 1024, threading.active_count())
    raise RuntimeError("no VmRSS")


def obey(order, numbers):
    global waiters
    if caches:
        return caches.obey(order, numbers)
    if order in ("put", "batch", "take", "relay"):
        return queues.obey(order, numbers)
    if order == "count":
        return counters.obey(numbers[0])
    if order == "meet":
        return meet(numbers[0])
    if order in ("run", "trace"):
        return run(numbers[0], order == "trace")
    if order == "stand":
        waiters = Waiters(numbers[0])
        return "ok"
    if order == "step":
        return waiters.step()
    if order == "drain":
        return waiters.drain()
    if order == "memory":
        return memory()
    raise ValueError("unknown order " + order)


waiters = None
clients = []
for _ in range(CLIENTS):
    client = KazooClient(ADDRESS, timeout=30)
    client.start(timeout=30)
    clients.append(client)
locks, queues, caches, counters, barriers = [], None, None, None, []
if KIND == "kazoo":
    locks = [lock(i, i % LOCKS) for i in range(LOCKERS)]
elif KIND == "kazooCache":
    caches = Caches(clients, ROOT)
elif KIND == "kazooCounter":
    counters = Counters(clients, ROOT, LOCKERS)
elif KIND == "kazooDouble":
    barriers = [[client.DoubleBarrier("%s/%d" % (ROOT, i), LOCKS) for i in range(2)] for client in clients]
else:
    queues = Queues(KIND, clients, ROOT, LOCKERS)
print("ready", flush=True)
for line in sys.stdin:
    words = line.split()
    try:
        answer = obey(words[0], [int(w) for w in words[1:]])
    except Exception as e:
        answer = "error %s: %s" % (type(e).__name__, " ".join(str(e).split()))
    print(answer, flush=True)
for client in clients:
    client.stop()

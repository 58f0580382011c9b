"""Puts into and takes from one of kazoo's queues. The first client puts, the last one takes."""
import itertools
import queue
import threading
import time

from kazoo.exceptions import KazooException
from kazoo.retry import RetryFailedError

from kazoo_threads import Threads

ITEM_BYTES = 100
BATCH_ITEMS = 1000
POLL_SECONDS = 0.001  # between two looks at a queue whose get does not wait
PATIENCE_SECONDS = 10


class Plain:
    """Queue: an item is gone when it is taken, and get does not wait for one."""

    def __init__(self, client, root):
        self.queue = client.Queue(root)

    def put(self, bodies):
        for b in bodies:
            self.queue.put(b)

    def take(self):
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            try:
                if self.queue.get() is not None:
                    return time.time_ns()
            except RetryFailedError:
                continue  # others were quicker, several times in a row
            time.sleep(POLL_SECONDS)
        raise RuntimeError("got no item within %d s" % PATIENCE_SECONDS)

    def done(self):
        pass


class Locking:
    """LockingQueue: an item is locked when it is taken, and gone when it is consumed."""

    def __init__(self, client, root):
        self.queue = client.LockingQueue(root)

    def put(self, bodies):
        if len(bodies) == 1:
            self.queue.put(bodies[0])
        else:
            self.queue.put_all(bodies)

    def take(self):
        if self.queue.get(PATIENCE_SECONDS) is None:
            raise RuntimeError("got no item within %d s" % PATIENCE_SECONDS)
        return time.time_ns()

    def done(self):
        if not self.queue.consume():
            raise KazooException("the item was lost")


class Queues:
    def __init__(self, kind, clients, root, workers):
        make = {"kazooQueue": Plain, "kazooLocking": Locking}[kind]
        self.producer = make(clients[0], root)
        self.consumers = [make(clients[-1], root) for _ in range(workers)]
        self.made = itertools.count(1)

    def bodies(self, n):
        return [b"%0*d" % (ITEM_BYTES, i) for i in itertools.islice(self.made, n)]

    def obey(self, order, numbers):
        if order == "put":
            return self.put(numbers[0], 1)
        if order == "batch":
            return self.put(numbers[0], BATCH_ITEMS)
        if order == "take":
            return self.take(*numbers)
        return self.relay(numbers[0])

    def put(self, millis, batch):
        n, start = 0, time.monotonic()
        while time.monotonic() - start < millis / 1000:
            self.producer.put(self.bodies(batch))
            n += batch
        return "ok %d %d" % (n, (time.monotonic() - start) * 1e9)

    def take(self, n, millis):
        """Takes up to n items and acknowledges them, and no more when the time is over."""
        begun = itertools.count(1)  # one step of it is atomic
        done = [0] * len(self.consumers)
        start = time.monotonic()
        end = start + millis / 1000

        def work(i):
            while time.monotonic() < end and next(begun) <= n:
                self.consumers[i].take()
                self.consumers[i].done()
                done[i] += 1

        threads = Threads()
        for i in range(len(self.consumers)):
            threads.start(work, i)
        threads.join()
        return "ok %d %d" % (sum(done), (time.monotonic() - start) * 1e9)

    def relay(self, millis):
        """Hands one item after the other from the producer to a consumer that waits for it."""
        taken, over = queue.Queue(), threading.Event()

        def consume():
            while True:
                at = self.consumers[0].take()
                self.consumers[0].done()
                if over.is_set():
                    return
                taken.put(at)

        threads = Threads()
        threads.start(consume)
        trips = []
        start = time.monotonic()
        while time.monotonic() - start < millis / 1000:
            began = time.time_ns()
            self.producer.put(self.bodies(1))
            at = taken.get(timeout=PATIENCE_SECONDS)
            trips.append((began, at, at))
        took = time.monotonic() - start
        over.set()
        self.producer.put(self.bodies(1))
        threads.join()
        for t in trips:
            print("t %d %d %d" % t)
        return "ok %d %d" % (len(trips), took * 1e9)

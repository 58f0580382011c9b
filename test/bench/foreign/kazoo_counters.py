"""Counts with kazoo's Counter, one for each thread."""
import time

from kazoo.retry import RetryFailedError

from kazoo_threads import Threads


class Counters:
    def __init__(self, clients, root, workers):
        self.counters = [clients[i % len(clients)].Counter(root) for i in range(workers)]

    def obey(self, millis):
        done = [0] * len(self.counters)
        start = time.monotonic()
        end = start + millis / 1000

        def work(i):
            c = self.counters[i]
            while time.monotonic() < end:
                try:
                    c += 1
                except RetryFailedError:
                    continue  # others were quicker, several times in a row
                done[i] += 1

        threads = Threads()
        for i in range(len(self.counters)):
            threads.start(work, i)
        threads.join()
        return "ok %d %d" % (sum(done), (time.monotonic() - start) * 1e9)

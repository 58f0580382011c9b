"""Uses kazoo's TreeCache. The first client has the cache, the last one changes nodes."""
import queue
import time

from kazoo.recipe.cache import TreeCache, TreeEvent


class Caches:
    def __init__(self, clients, root):
        self.clients, self.path = clients, "%s/%03d" % (root, 0)

    def obey(self, order, numbers):
        if order == "follow":
            return self.follow(numbers[0])
        raise ValueError("unknown order " + order)

    def follow(self, millis):
        writer = self.clients[-1]
        writer.ensure_path(self.path)
        complete, seen = queue.Queue(), queue.Queue()
        cache = TreeCache(self.clients[0], self.path)

        def listen(event):
            if event.event_type == TreeEvent.INITIALIZED:
                complete.put(True)
            elif event.event_type == TreeEvent.NODE_UPDATED:
                seen.put(time.time_ns())

        cache.listen(listen)
        cache.start()
        complete.get(timeout=30)
        start = time.monotonic()
        end = start + millis / 1000
        made = 0
        while time.monotonic() < end:
            began = time.time_ns()
            writer.set(self.path, str(made).encode())
            at = seen.get(timeout=30)
            print("t %d %d %d" % (began, at, at))
            made += 1
        took = time.monotonic() - start
        cache.close()
        return "ok %d %d" % (made, took * 1e9)

"""Threads, for the workers that use kazoo."""
import threading


class Threads:
    """Threads whose first exception is raised by join."""

    def __init__(self):
        self.all = []
        self.errors = []

    def start(self, f, *args):
        def run():
            try:
                f(*args)
            except Exception as e:
                self.errors.append(e)

        t = threading.Thread(target=run)
        self.all.append(t)
        t.start()

    def join(self):
        for t in self.all:
            t.join()
        if self.errors:
            raise self.errors[0]

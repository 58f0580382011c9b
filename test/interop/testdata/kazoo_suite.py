"""Runs the tests of Debian's python3-kazoo on a running server.

usage: kazoo_suite.py ADDRESS CONTROL [TEST...]

CONTROL is the address of the program that can stop and start that server: it reads the lines "stop" and "start" and
answers each with a line when it is done. TEST is a module or test name below kazoo.tests; a leading "-" leaves it out.
"""
import contextlib
import faulthandler
import gc
import importlib.util
import logging
import os
import re
import socket
import sys
import threading
import types
import unittest
import unittest.mock


class RaisesInfo:
    value = None


@contextlib.contextmanager
def _raises(expected, match):
    info = RaisesInfo()
    try:
        yield info
    except expected as e:
        info.value = e
        if match is not None:
            assert re.search(match, str(e)), str(e)
    else:
        raise AssertionError("%r not raised" % (expected,))


def raises(expected, *args, match=None, **kwargs):
    if not args:
        return _raises(expected, match)
    try:
        args[0](*args[1:], **kwargs)
    except expected:
        return None
    raise AssertionError("%r not raised" % (expected,))


def skip(reason=""):
    raise unittest.SkipTest(reason)


# The tests use little of pytest and mock, which are not among the dependencies of Debian's kazoo.
pytest = types.ModuleType("pytest")
pytest.raises, pytest.skip = raises, skip
sys.modules["pytest"] = pytest
sys.modules["mock"] = unittest.mock
objgraph = types.ModuleType("objgraph")
objgraph.count = lambda name: sum(type(o).__name__ == name for o in gc.get_objects())
sys.modules["objgraph"] = objgraph
for name in "OpenSSL", "jks":  # kazoo 2.11 makes keys with them for servers that it starts itself
    sys.modules[name] = types.ModuleType(name)

os.environ.setdefault("ZOOKEEPER_VERSION", "3.8.0")
import kazoo.testing.harness as harness  # noqa: E402


class Server:
    running = True

    def __init__(self, address, control):
        self.address = address
        host, _, port = control.rpartition(":")
        self._control = socket.create_connection((host, int(port)))
        self._lines = self._control.makefile("rw")

    def _ask(self, line):
        self._lines.write(line + "\n")
        self._lines.flush()
        return self._lines.readline().strip()

    @property
    def client_port(self):
        return int(self.address.rpartition(":")[2])

    def stop(self):
        self._ask("stop")
        self.running = False

    def run(self):
        self._ask("start")
        self.running = True


class Cluster(list):
    def start(self):
        pass

    stop = terminate = reset = start


class PatientEvent(threading.Event):
    """The tests allow for parts of a second, which may not be enough on a busy machine."""

    def wait(self, timeout=None):
        return super().wait(timeout if timeout is None else 6 * timeout)


def stay_arrived(test_lock):
    """Keeps threads in the barrier of test_lock until the test ends. Without this, a thread that has not yet looked
    when the first one leaves (10 ms after all arrived) never counts enough of them, and waits for ever."""
    test_lock.SleepBarrier.__exit__ = lambda *args: None


def tests_in(suite):
    for t in suite:
        if isinstance(t, unittest.TestSuite):
            yield from tests_in(t)
        else:
            yield t


def main():
    logging.disable(logging.CRITICAL)
    address, control, names = sys.argv[1], sys.argv[2], sys.argv[3:]
    if importlib.util.find_spec("kazoo.tests.test_connection") is None:  # kazoo 2.9.0 names it differently
        names = [re.sub("^(-?)test_connection", r"\1test__connection", n) for n in names]
    cluster = Cluster([Server(address, control)])
    harness.get_global_cluster = lambda: cluster
    import kazoo.handlers.threading as handlers
    import kazoo.tests.test_lock as test_lock
    if "test_lock" not in names:  # those want that waits end in time
        handlers.SequentialThreadingHandler.event_object = staticmethod(PatientEvent)
    stay_arrived(test_lock)
    faulthandler.dump_traceback_later(590, file=sys.stdout)  # TestKazooSuite ends this program after 600 s
    left_out = {n[1:] for n in names if n.startswith("-")}
    loader = unittest.defaultTestLoader
    wanted = unittest.TestSuite()
    for name in names:
        if name.startswith("-"):
            continue
        for t in tests_in(loader.loadTestsFromName("kazoo.tests." + name)):
            if t.id().removeprefix("kazoo.tests.") not in left_out:
                wanted.addTest(t)
    result = unittest.TextTestRunner(verbosity=2, stream=sys.stdout).run(wanted)
    sys.stdout.flush()
    os._exit(0 if result.wasSuccessful() else 1)  # kazoo leaves threads running


main()

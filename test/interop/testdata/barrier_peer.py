"""Executes the commands of barrier_test.go with kazoo's barriers.

usage: barrier_peer.py SERVERS SESSION_MS PATH PARTIES

Each line on standard input is NAME and a command: enter, leave, set, remove or wait. Each name is a party with a client
of its own. Commands run at the same time; each prints NAME and the command when it is done, or NAME and an error.
"""
import logging
import sys
import threading

from kazoo.client import KazooClient

printing = threading.Lock()


def say(line):
    with printing:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


class Party:
    def __init__(self, servers, session, path, parties):
        client = KazooClient(hosts=servers, timeout=session)
        client.start(timeout=20)
        self.barrier = client.Barrier(path)
        self.double = client.DoubleBarrier(path, parties)

    def enter(self):
        self.double.enter()
        if not self.double.participating:
            raise RuntimeError("not participating")

    def leave(self):
        self.double.leave()
        if self.double.participating:
            raise RuntimeError("still participating")

    def set(self):
        self.barrier.create()

    def remove(self):
        self.barrier.remove()

    def wait(self):
        if not self.barrier.wait(60):
            raise RuntimeError("waited in vain")


def do(name, party, command):
    try:
        getattr(party, command)()
        say("%s %s" % (name, command))
    except Exception as e:
        say("%s failed to %s: %r" % (name, command, e))


def main(servers, session, path, parties):
    logging.basicConfig(level=logging.CRITICAL)
    known = {}
    for line in sys.stdin:
        name, command = line.split()
        if name not in known:
            known[name] = Party(servers, int(session) / 1000, path, int(parties))
        threading.Thread(target=do, args=(name, known[name], command), daemon=True).start()


main(*sys.argv[1:])

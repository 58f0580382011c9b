"""Executes the commands of share_test.go with kazoo's partitioner and leases: one a line, each answered by one line.

usage: share_peer.py SERVERS SESSION_MS PATH
"""
import datetime
import logging
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.recipe.lease import MultiNonBlockingLease, NonBlockingLease

logging.basicConfig(level=logging.CRITICAL)
servers, session, path = sys.argv[1:]
client = KazooClient(servers, timeout=int(session) / 1000)
client.start()


def witness(path):
    try:
        client.retry(client.create, path, ephemeral=True)
    except NodeExistsError:  # is it ours, of a creation whose reply was lost with the connection?
        stat = client.retry(client.exists, path)
        if stat is None or stat.ephemeralOwner != client.client_id[0]:
            raise


class Member(threading.Thread):
    """Owns its share of the items, each with a witness: an ephemeral node that nobody else may have."""

    def __init__(self, name, items):
        super().__init__(daemon=True)
        self.parts = client.SetPartitioner(path, set=items, identifier=name, time_boundary=1)
        self.owned, self.fault, self.leaving = [], None, False
        self.start()

    def disown(self):
        for item in self.owned:
            try:
                client.retry(client.delete, "/witness/" + item)
            except NoNodeError:  # it was deleted, and the reply lost with the connection
                pass
        self.owned = []

    def run(self):
        try:
            while not self.leaving:
                if self.parts.failed:
                    raise RuntimeError("the partitioner has failed")
                if self.parts.release:
                    self.disown()
                    self.parts.release_set()
                elif self.parts.allocating:
                    self.parts.wait_for_acquire(1)
                elif self.parts.acquired and not self.owned:
                    mine = sorted(self.parts)
                    for item in mine:
                        witness("/witness/" + item)
                    self.owned = mine
                time.sleep(0.02)
            self.disown()
            self.parts.finish()
        except Exception as e:
            self.fault = e


members = {}
for line in sys.stdin:
    order = line.split()
    answer = "ok"
    try:
        if order[0] == "join":  # NAME ITEMS
            members[order[1]] = Member(order[1], tuple(order[2].split(",")))
        elif order[0] == "leave":  # NAME
            members[order[1]].leaving = True
            members[order[1]].join()
        elif order[0] == "await":  # NAME COUNT: until the member owns so many, which are the answer
            m = members[order[1]]
            while len(m.owned) != int(order[2]) and m.fault is None:
                time.sleep(0.02)
            answer = ",".join(m.owned)
        elif order[0] == "lease":  # PATH HOLDER SECONDS COUNT
            lasts = datetime.timedelta(seconds=int(order[3]))
            if order[4] == "0":
                lease = NonBlockingLease(client, order[1], lasts, order[2])
            else:
                lease = MultiNonBlockingLease(client, int(order[4]), order[1], lasts, order[2])
            answer = "leased" if lease else "refused"
        else:
            raise ValueError(order[0])
        for m in members.values():
            if m.fault is not None:
                raise m.fault
    except Exception as e:
        answer = "failed: %r" % e
    print(answer, flush=True)

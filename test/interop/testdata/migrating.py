"""Runs the Python code of docs/migrating-kazoo.md, each function once.

usage: migrating.py SERVERS
"""
import datetime
import sys
import threading

from kazoo.client import KazooClient
from kazoo.recipe.cache import TreeCache

worked = 0
applied = threading.Event()


def work(*_):
    global worked
    worked += 1


def apply(event):
    applied.set()


def connect(servers):
    client = KazooClient(hosts=servers)
    client.start()
    return client


def lock(client):
    with client.Lock("/locks/report", "host-1"):
        work()


def read_write(client):
    with client.ReadLock("/locks/data", "host-1"):
        work()


def permits(client):
    with client.Semaphore("/pools/gpu", "host-1", max_leases=8):
        work()


def lead(client):
    client.Election("/app/leader", "host-1").run(work)


def queues(client):
    queue = client.LockingQueue("/mail")
    queue.put(b"to: ann")
    item = queue.get()
    queue.consume()
    assert item == b"to: ann", item


def meet(client):
    barrier = client.DoubleBarrier("/app/start", 1)
    barrier.enter()
    work()
    barrier.leave()


def count(client):
    visits = client.Counter("/visits")
    visits += 1
    print("visit", visits.post_value)
    assert visits.post_value == 1, visits.post_value


def follow(client):
    cache = TreeCache(client, "/config")
    cache.listen(apply)
    cache.start()
    assert applied.wait(20), "not told of the node"
    cache.close()


def join(client):
    party = client.Party("/workers", "host-1")
    party.join()
    print(len(party), "members")
    party.leave()


def share(client):
    partitioner = client.SetPartitioner("/app/shards", ["users"], identifier="host-1", time_boundary=1)
    while not partitioner.failed:
        if partitioner.release:
            partitioner.release_set()
        elif partitioner.acquired:
            for shard in partitioner:
                work(shard)
            break  # this program has enough of it
        elif partitioner.allocating:
            partitioner.wait_for_acquire()
    partitioner.finish()


def lease(client):
    lease = client.NonBlockingLease("/app/nightly", datetime.timedelta(hours=1), "host-1")
    if lease:
        work()


def main():
    root = connect(sys.argv[1])
    root.ensure_path("/python")
    root.stop()
    client = connect(sys.argv[1] + "/python")
    for f in lock, read_write, permits, lead, queues, meet, count, follow, join, share, lease:
        f(client)
    client.stop()
    assert worked == 7, worked


main()

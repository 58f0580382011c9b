"""Executes the commands of counter_test.go on kazoo's counters.

usage: counter_peer.py SERVERS SESSION_MS
"""
import logging
import os
import sys

from kazoo.client import KazooClient
from kazoo.retry import RetryFailedError


def say(line):
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def add(counter, n):
    while True:
        try:
            counter += n
            return str(counter.post_value)
        except RetryFailedError:
            continue  # others were quicker


def obey(zk, peers, words):
    order, name = words[0], words[1]
    if order == "open":
        peers[name] = zk.Counter(words[3], support_curator=words[2] == "curator")
        return "ok"
    counter = peers[name]
    if order == "get":
        return str(counter.value)
    if order == "add":
        return add(counter, int(words[2]))
    if order == "each":
        for _ in range(int(words[2])):
            say("got %s %s" % (name, add(counter, 1)))
        return "ok"
    raise ValueError("no order " + order)


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

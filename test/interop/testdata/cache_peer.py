"""Executes the commands of cache_peer_test.go with kazoo's TreeCache: one a line, each answered by one line.

usage: cache_peer.py SERVERS SESSION_MS PATH
"""
import logging
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.recipe.cache import TreeCache

logging.basicConfig(level=logging.CRITICAL)
servers, session, root = sys.argv[1:]
client = KazooClient(servers, timeout=int(session) / 1000)
client.start()
cache = TreeCache(client, root)
cache.start()


def nodes(path):
    found = cache.get_data(path)
    if found is None:
        return
    yield "%s=%s" % (path, found.data.decode())
    for name in sorted(cache.get_children(path, ())):
        yield from nodes(path + "/" + name)


for line in sys.stdin:
    order = line.split()
    answer = "ok"
    try:
        if order[0] == "set":  # PATH DATA
            try:
                client.create(order[1], order[2].encode(), makepath=True)
            except NodeExistsError:
                client.set(order[1], order[2].encode())
        elif order[0] == "mark":  # PATH DATA: an ephemeral node
            client.create(order[1], order[2].encode(), ephemeral=True)
        elif order[0] == "delete":  # PATH
            client.delete(order[1], recursive=True)
        elif order[0] == "await":  # NODES: until the cache has these, as PATH=DATA,...
            while ",".join(nodes(root)) != order[1]:
                time.sleep(0.02)
        else:
            raise ValueError(order[0])
    except Exception as e:
        answer = "failed: %r" % e
    print(answer, flush=True)

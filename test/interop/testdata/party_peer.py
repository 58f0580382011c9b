"""Executes the commands of group_test.go with kazoo's parties: one a line, each answered by one line.

usage: party_peer.py SERVERS SESSION_MS PATH KIND
"""
import logging
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.party import Party, ShallowParty

logging.basicConfig(level=logging.CRITICAL)
servers, session, path, kind = sys.argv[1:]
client = KazooClient(servers, timeout=int(session) / 1000)
client.start()
parties = {}
for line in sys.stdin:
    order = line.split()
    answer = "ok"
    try:
        if order[0] == "join":  # ID
            parties[order[1]] = (Party if kind == "Party" else ShallowParty)(client, path, order[1])
            parties[order[1]].join()
        elif order[0] == "leave":  # ID
            parties.pop(order[1]).leave()
        elif order[0] == "await":  # ID MEMBERS: until the member sees these
            while ",".join(sorted(parties[order[1]])) != order[2]:
                time.sleep(0.02)
        else:
            raise ValueError(order[0])
    except Exception as e:
        answer = "failed: %r" % e
    print(answer, flush=True)

"""Locks, groups and elections of OpenStack's tooz, by two members at the server that the argument names."""
import sys
import time

from tooz import coordination

first, second = (coordination.get_coordinator("kazoo://" + sys.argv[1], name) for name in (b"first", b"second"))
first.start(start_heart=True)
second.start(start_heart=True)

one, other = first.get_lock(b"lock"), second.get_lock(b"lock")
assert one.acquire(), "a free lock"
assert not other.acquire(blocking=False), "a lock that another member holds"
assert one.release()
assert other.acquire(blocking=True), "a lock that was released"
assert other.release()

first.create_group(b"group").get()
first.join_group(b"group", b"capable").get()
second.join_group(b"group").get()
assert set(first.get_members(b"group").get()) == {b"first", b"second"}, "members"
assert second.get_member_capabilities(b"group", b"first").get() == b"capable"

leaders = []
for member in (first, second):
    member.watch_elected_as_leader(b"group", lambda event: leaders.append(event.member_id))
while not leaders:
    first.run_watchers()
    second.run_watchers()
    time.sleep(0.01)
leader = {b"first": first, b"second": second}[leaders[0]]
successor = second if leader is first else first
leader.stop()
while len(leaders) < 2:
    successor.run_watchers()
    time.sleep(0.01)
assert leaders[0] != leaders[1], leaders
successor.stop()
print("done")

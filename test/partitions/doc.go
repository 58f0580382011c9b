// Package partitions has no code of its own. Its tests partition a ZooKeeper ensemble while locks, elections and queue
// items are held through the server that is cut off and wanted through the others. They check one promise: a holder is
// told that its hold is over before anyone else acquires. Each test starts three servers with a proxy on every link
// between them and to their clients; see peer.Links.
//
//	make partitions                     all shapes, several phases each, and the same for other projects' locks
//	make partitions PHASES=10 SEED=1    ten phases of each shape, from that seed on
//
// A shape is a way to partition the ensemble. One run of a shape has a holder of every kind (mutex, reader, writer,
// semaphore, set, election, queue claim) at session timeouts of 2, 5 and 10 ticks, twice: pinned to the server that is
// cut off, and free to connect to another one. Every holder has a session of its own and a contender on the healthy
// side, so that one partition yields 42 samples. In two shapes servers grant unequal session timeouts; there all
// holders are pinned, with sessions that were made at the other servers. Where in the servers' ticks the faults fall is
// drawn from the seed.
//
// Holders and contenders are processes of their own, called parties, so that they can be stopped and so that other
// projects' programs can take their place. A party reads commands, a line each, and reports what happens to its
// contenders with the time of CLOCK_MONOTONIC, which all processes of the machine share:
//
//	join NAME CLIENT KIND FIRST THEN PATH MS    acquire PATH in a session of MS milliseconds
//	leave NAME                                  release
//	NAME acquired NANOSECONDS
//	NAME told NANOSECONDS WHY                   the first notice that the hold may be over
//	NAME lost NANOSECONDS WHY                   of others: a later notice that it is over
//	NAME left NANOSECONDS RESULT                the release has returned; ok, or why the hold was over
//	NAME released NANOSECONDS                   the session lasts on
//	NAME failed NANOSECONDS WHY
//
// CLIENT names the connection, which contenders of one party may share. It uses the addresses of FIRST until something
// is acquired, and those of THEN from then on.
package partitions

// Package lin has no code of its own, only tests. Many clients in several processes use locks, queues, counters or
// barriers at random for a given time, while random faults hit their connections, their processes, the servers of an
// ensemble and the links between the servers. Then the tests check that what the clients saw is what such recipes may
// do, that all clients were served after the faults, and that nothing was left behind.
//
//	make lin                          every trial, one minute each, a new seed
//	make lin-locks MINUTES=30 SEED=1  locks, thirty minutes, from that seed on
//	make lin-queue MINUTES=30         queues, for as long
//	make lin-counter MINUTES=30       counters, sequences and values, for as long
//	make lin-barrier MINUTES=30       barriers, double barriers and rounds, for as long
//	make lin-member MINUTES=30        groups and shared items, for as long
//
// A run consists of epochs of a few seconds, each with new paths, new processes and a seed of its own; the first seed
// is the given one. A failure names the seed of its epoch, which is enough to repeat it, and the directory with the
// histories, as pages and as data, the faults and the workers' output.
//
// The seed decides what is tried: which faults, when, for how long and on whom; which lock a client takes next, how and
// for how long; what a producer puts, and what becomes of it. The outcome does not repeat exactly. The machine decides
// which request is in flight when a connection is cut, which of two clients gets a lock first, which server leads and
// how long it takes to start one. A bug that a seed has shown once usually shows again within a few tries.
//
// Clients do more than take locks. They change the limit of a semaphore, revoke other clients' locks with and without
// force, and acquire locks again inside their holds. Half of them give up after the loss of their connection or their
// session. Package internal/lincheck documents, with each of its checks, what it allows.
//
// Sessions expire because their clients are silent for too long. The tests never close a session behind its client's
// back: that takes a lock from a holder that cannot know, which no lock can prevent.
//
// Servers are cut off from each other, wholly or in one direction, or slowed down, while clients stay connected to
// them. A client whose requests are all answered by the server that is cut off does not notice. So one client of each
// process does little and holds locks, or items, for long. Half of these partitions outlast a session that is not
// heard, and most of those come without another fault. A hold may then end as uncertain (zk.ErrUncertain). The tests
// find clients that count their certainty from any answer (zk.Config.NoCertificates).
//
// Workers report what they are about to do before they do it, and the outcome right after it, each as a line to a pipe.
// What is in the pipe survives the worker.
package lin

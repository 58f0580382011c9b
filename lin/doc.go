// Package lin holds no code of its own. Its tests let many clients in several processes use locks, and others queues,
// at random, for as long as they are told, while random faults come over their connections, their processes, the
// servers of an ensemble and the links between these; then they judge whether what was seen is what such locks and
// queues do, whether everybody was served once the faults were over, and whether nothing was left behind.
//
//	make lin                          locks, one minute, a new seed
//	make lin MINUTES=30 SEED=1234     thirty minutes, from that seed on
//	make lin-queue MINUTES=30         queues, as long
//
// A run is a row of epochs of some seconds, each with new paths, new processes and a seed of its own, the first with the one that was
// given. A failure names the seed of its epoch, which is then enough to do it again, and the folder with the histories, as pages and
// as data, the faults and what the processes said.
//
// From the seed comes what is tried: which faults, when, how long and on whom; which lock every client takes next, how and for how long; what every
// producer puts, and what becomes of it. What comes of it does not repeat exactly: which request is on its way when a connection is cut, who of two
// gets a lock first, which server leads and how long it takes to start one are up to the machine. A bug that a seed has shown once shows again within a
// few tries, as a rule.
//
// Clients do not only take locks. They change the limit of a semaphore, revoke locks that others hold, with and without force, take locks again inside
// their holds, and half of them give up once they have lost their connection or their session. How one hold is held, and what it may be disturbed
// by, package internal/lincheck says with each rule.
//
// Sessions expire here as they do in life: because nobody has heard of their client for too long. One that is closed behind its owner's back
// takes a lock from a holder who cannot know, which no lock can do anything about.
//
// Servers are cut off from each other, wholly or in one direction, and reached late, while clients stay connected to
// them. A client whose requests are all answered by the server that is cut off does not notice, so one client of each
// process does little: it holds locks, or items, for long. Half of these partitions outlast a session that is not heard
// of, and during most of those nothing else goes wrong. A hold may then end as uncertain (zk.ErrUncertain). Clients
// that count their certainty from any answer (zk.Config.NoCertificates) are found.
//
// Workers tell what they are about to do before they do it, and what came of it right after, each in a line to a pipe: a line that was written is there
// whatever happens to its writer.
package lin

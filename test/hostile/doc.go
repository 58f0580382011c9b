// Package hostile has no code of its own. Its tests run clients against the embedded server that want to harm it or
// others, next to a client that behaves. They check what docs/limits.md promises: that the server's memory stays
// within a bound, and that the others go on being served.
//
//	make hostile                        every attack, a minute for all of them
//	make hostile MINUTES=10 SEED=1      ten minutes, with that seed: judges times, and writes results.md
//	make hostile ATTACK='huge multiReads'
//
// The server is the command "turnstile serve" with its default limits, on disk, in a process of its own, so that its
// memory and its descriptors are its own. The attackers are another process, of another address of this machine and
// of the lowest priority: what is measured is what they do to the server, not that they take processors away from it.
// The client that behaves locks, reads, writes and watches, in the test's own process. It runs alone at first. Then
// come all attacks, one after the other, and at last all at once.
//
// The tests need Linux: they read /proc.
package hostile

//go:build unix

package lin_test

import "time"

// Bugs of queues that the run must find.

// overtaking is that of a group whose next item is ready as soon as one has failed and is to come again.
var overtaking = bug{"queue/itemtxn.go", "r.final && it.rec.Group != \"\"", "it.rec.Group != \"\""}

// ungrouped is that of a put that does not find the group's list, and makes the item ready beside the group's head.
var ungrouped = bug{"queue/group.go", "if r.Group == \"\" {", "if r.Group == \"\" || len(r.Body)%8 == 0 {"}

// unpaid is that of claims that use nothing of the rate.
var unpaid = bug{"queue/rate.go", "paid := l.paid + int64(n)*int64(l.interval())", "paid := l.paid"}

// unguarded is that of processes that take themselves for the one that is elected, and put the periodic item without
// the condition that no other has done it.
var unguarded = bugs{
	{"queue/periodic.go", "if !place.First() {", "if false {"},
	{"queue/periodic.go", "encodeTime(done), version)", "encodeTime(done), min(version, -1))"},
}

// sharedClaim is that of a consumer which leaves the node of a claim that it takes over, so that the next one takes
// it over, too. Items are given back all the time, and each of them makes a claim to take over, so that the first
// moments show the bug.
var sharedClaim = bug{"queue/takeover.go", "zk.DeleteOp(path, version)", "zk.CheckOp(path, version)"}

var brokenQueues = []plant{
	{ // such a queue is never empty
		name: "shared-claim", trial: queueTrial{}, bug: sharedClaim, want: "is not that of a queue",
		length: 3 * time.Second, patience: 5 * time.Second,
	},
	brokenQueue("overtaking-group", groupQueue, overtaking, "of group"),
	brokenQueue("ungrouped-put", groupQueue, ungrouped, "of group"),
	brokenQueue("unpaid-claims", rateQueue, unpaid, "more than the rate allows"),
	brokenQueue("unguarded-periodic-item", tickQueue, unguarded, "is in the queue twice"),
}

func brokenQueue(name, place string, b builder, want string) plant {
	return plant{
		name: name, trial: queueTrial{names: []string{place, slowQueue}}, bug: b, want: want,
		length: 4 * time.Second, patience: 10 * time.Second,
	}
}

//go:build unix

package lin_test

import (
	"testing"
	"time"
)

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

func TestQueueIsFoundWhoseGroupGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	findInQueue(t, groupQueue, overtaking, "of group")
}

func TestQueueIsFoundThatPutsBesideAGroup(t *testing.T) {
	t.Parallel()
	findInQueue(t, groupQueue, ungrouped, "of group")
}

func TestQueueIsFoundThatDeliversTooFast(t *testing.T) {
	t.Parallel()
	findInQueue(t, rateQueue, unpaid, "more than the rate allows")
}

func TestQueueIsFoundThatPutsAPeriodicItemTwice(t *testing.T) {
	t.Parallel()
	findInQueue(t, tickQueue, unguarded, "is in the queue twice")
}

// builder builds the workers' program with a bug.
type builder interface{ program(t *testing.T) string }

func findInQueue(t *testing.T, place string, b builder, want string) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and runs a program")
	}
	found(t, queueTrial{names: []string{place, slowQueue}}, want, func(a *arena) {
		a.exe, a.length, a.patience = b.program(t), 4*time.Second, 10*time.Second
	})
}

//go:build unix

package lin_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/test/peer"
)

// Servers hang up on each other after this many ticks of silence: twice a session timeout. Until then a server that
// is cut off serves its clients, long after their sessions may have expired elsewhere.
const (
	tick      = timeout / 10
	syncLimit = 20
	leaves    = timeout / 2 // how long the others wait for a stopped server
)

// newEnsemble starts servers that can be cut off from each other, and stay connected to their clients.
func newEnsemble(t *testing.T) *peer.Cluster {
	t.Helper()
	return peer.Ensemble(t, servers, peer.Options{
		Links: true,
		Tick:  tick,
		Keys:  map[string]string{"syncLimit": strconv.Itoa(syncLimit)},
	})
}

// aim returns the server that f hits, and the leader, or -1 if there is none. A quiet partition waits for a new
// holder, which will hold for long.
func (e *epoch) aim(ctx context.Context, f fault) (whom, leader int) {
	if f.quiet && f.place != "" {
		e.awaitHolder(ctx, f.place)
	}
	whom, leader = f.whom, e.ensemble.Leader()
	if leader >= 0 && slices.Contains([]string{killLeader, stopLeader, zombieLeader}, f.what) {
		whom = leader
	}
	if _, session, held := e.journal.busy(f.place); held && slices.Contains(partitions, f.what) {
		if i := e.serverOf(session); i >= 0 {
			whom = i
		}
	}
	return whom, leader
}

// awaitHolder waits, for a limited time, until a place has a new holder.
func (e *epoch) awaitHolder(ctx context.Context, place string) {
	ctx, cancel := context.WithTimeout(ctx, 2*timeout)
	defer cancel()
	_, before, _ := e.journal.busy(place)
	for pause(ctx, 10*time.Millisecond) {
		if _, session, held := e.journal.busy(place); held && session != before {
			return
		}
	}
}

// partition changes the links of a server until Heal.
func (e *epoch) partition(f fault, whom, leader int) {
	links := e.ensemble.Links()
	other := (whom + f.other) % servers
	if leader >= 0 && leader != whom { // what followers send each other matters only in elections
		other = leader
	}
	switch f.what {
	case cutServer:
		links.CutOff(whom)
	case zombieLeader:
		links.Zombie(whom)
	case deafServer:
		links.Freeze(other, whom)
	case unheardServer:
		links.Freeze(whom, other)
	case slowServer:
		links.Delay(whom, other, f.late)
		links.Delay(other, whom, f.late)
	}
}

// serverOf returns the server of a session's connection, or -1 if no server has it.
func (e *epoch) serverOf(session int64) int {
	id := fmt.Sprintf("sid=%#x,", uint64(session)) //nolint:gosec // as servers print it
	for i := range e.ensemble.Len() {
		if text, err := e.ensemble.Word(i, "cons"); err == nil && strings.Contains(text, id) {
			return i
		}
	}
	return -1
}

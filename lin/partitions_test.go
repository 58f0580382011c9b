//go:build unix

package lin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/peer"
)

// Servers hang up on each other after so many ticks of silence: twice a session timeout. A server that is cut off serves its clients until then,
// long after their sessions may have expired elsewhere.
const (
	tick      = timeout / 10
	syncLimit = 20
	patience  = timeout / 2 // of servers with a leader that was stopped
)

// newEnsemble starts servers that can be cut off from each other. Clients stay connected to those that are.
func newEnsemble(t *testing.T) *peer.Cluster {
	t.Helper()
	return peer.Ensemble(t, servers, peer.Options{
		Links: true,
		Tick:  tick,
		Keys:  map[string]string{"syncLimit": fmt.Sprint(syncLimit)},
		Properties: map[string]string{
			"zookeeper.cnxTimeout":                         "500",  // else an election waits for a silent server for five seconds
			"zookeeper.fastleader.maxNotificationInterval": "1000", // else a server that was alone for long comes back late
		},
	})
}

// partition cuts links between servers. It returns what it is called and what ends it.
func (e *epoch) partition(f fault) (name string, heal func()) {
	whom, leader := f.whom, e.ensemble.Leader()
	if f.what == zombie && leader >= 0 {
		whom = leader
	}
	if _, session, held := e.journal.busy(f.place); held {
		if i := e.serverOf(session); i >= 0 {
			whom = i
		}
	}
	other := (whom + f.other) % servers
	if leader >= 0 && leader != whom { // what two followers have to say to each other matters to elections alone
		other = leader
	}
	links := e.ensemble.Links()
	name = fmt.Sprintf("%s %d, %v", f.what, whom, f.lasts)
	switch f.what {
	case cutServer:
		links.CutOff(whom)
	case zombie:
		links.Zombie(whom)
	case deafen:
		name += fmt.Sprintf(", from %d", other)
		links.Freeze(other, whom)
	case silence:
		name += fmt.Sprintf(", to %d", other)
		links.Freeze(whom, other)
	case slowServer:
		name += fmt.Sprintf(", to and from %d, by %v", other, f.late)
		links.Delay(whom, other, f.late)
		links.Delay(other, whom, f.late)
	}
	return name, links.Heal
}

// serverOf returns the server that a session is connected to, -1 if none says that.
func (e *epoch) serverOf(session int64) int {
	id := fmt.Sprintf("sid=%#x,", uint64(session)) //nolint:gosec // as servers print it
	for i := range e.ensemble.Len() {
		if text, err := e.ensemble.Word(i, "cons"); err == nil && strings.Contains(text, id) {
			return i
		}
	}
	return -1
}

package zktest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// checkTime is how long a check waits for what clients still do in the background.
const checkTime = 5 * time.Second

// NoWatches fails the test unless the servers behind the link hold no watch any more, of whatever client. It waits a few seconds
// for those that are being removed. A foreign server must allow the four-letter words mntr and wchp.
func (l *Link) NoWatches(tb testing.TB) {
	tb.Helper()
	l.eventually(tb, func() error {
		for i := range l.fronts {
			if err := l.noWatches(i); err != nil {
				return err
			}
		}
		return nil
	})
}

// NoNodes fails the test unless there is no node below path; path itself may exist. It waits a few seconds for nodes that are being
// removed. It looks with a session of its own, past all faults, and fails the test if that session may not list a node.
func (l *Link) NoNodes(tb testing.TB, path string) {
	tb.Helper()
	s, err := l.open(0, nil)
	if err != nil {
		tb.Error(err)
		return
	}
	defer func() {
		if err := s.close(); err != nil {
			tb.Error(err)
		}
	}()
	l.eventually(tb, func() error {
		found, err := s.below(path)
		if err != nil {
			return fmt.Errorf("zktest: list %s: %w", path, err)
		}
		if len(found) > 0 {
			return fmt.Errorf("zktest: nodes are left below %s: %s", path, strings.Join(found, " "))
		}
		return nil
	})
}

// eventually calls check until it returns nil, and fails the test with what it returned last.
func (l *Link) eventually(tb testing.TB, check func() error) {
	tb.Helper()
	over := time.NewTimer(checkTime)
	defer over.Stop()
	pause := time.NewTicker(10 * time.Millisecond)
	defer pause.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-pause.C:
		case <-l.closing.Done():
			tb.Error(err)
			return
		case <-over.C:
			tb.Error(err)
			return
		}
	}
}

func (l *Link) noWatches(front int) error {
	stats, err := l.word(front, "mntr")
	if err != nil {
		return fmt.Errorf("zktest: ask for the watches: %w", err)
	}
	for line := range strings.Lines(stats) {
		value, found := strings.CutPrefix(line, "zk_watch_count\t")
		if !found {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err != nil || n == 0 {
			return err
		}
		watches, err := l.word(front, "wchp")
		if err != nil {
			return fmt.Errorf("zktest: ask for the watches: %w", err)
		}
		return fmt.Errorf("zktest: %s watches are left; those that are not for children are: %s",
			strings.TrimSpace(value), strings.Join(strings.Fields(watches), " "))
	}
	return fmt.Errorf("zktest: mntr does not tell the number of watches: %q", stats)
}

// below lists the nodes below path, deepest first. Nodes that go meanwhile are not there.
func (s *rawSession) below(path string) ([]string, error) {
	var answer wire.ChildrenResponse
	code, err := s.call(wire.OpGetChildren, &wire.PathWatchRequest{Path: path}, &answer)
	switch {
	case err != nil:
		return nil, err
	case code == wire.NoNode:
		return nil, nil
	case code != wire.OK:
		return nil, fmt.Errorf("%s: %v", path, code)
	}
	var found []string
	for _, name := range answer.Children {
		child := strings.TrimSuffix(path, "/") + "/" + name
		if child == "/zookeeper" {
			continue // the server's own
		}
		more, err := s.below(child)
		if err != nil {
			return nil, err
		}
		found = append(append(found, more...), child)
	}
	return found, nil
}

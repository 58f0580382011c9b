package zktest

// Checks that clients leave nothing behind.

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/internal/wire"
)

// checkTime is how long a check waits for clients to finish in the background.
const checkTime = 30 * time.Second

// NoWatches fails the test if the servers behind the link hold a watch of any client. It waits up to 30 seconds for
// watches that are being removed. A server that is not Turnstile's must allow the four-letter words mntr and wchp.
func (l *Link) NoWatches(tb testing.TB) {
	tb.Helper()
	l.eventually(tb, func() error {
		for _, u := range l.upstreams {
			if err := l.noWatches(u); err != nil {
				return err
			}
		}
		return nil
	})
}

// NoNodes fails the test if there is a node below path; path itself may exist. It waits up to 30 seconds for nodes that
// are being removed. It uses a session of its own that no fault affects, and fails the test if that session may not
// list a node.
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
		found, err := s.descendants(path)
		if err != nil {
			return fmt.Errorf("zktest: list %s: %w", path, err)
		}
		if len(found) > 0 {
			return fmt.Errorf("zktest: got nodes below %s, want none: %s", path, strings.Join(found, " "))
		}
		return nil
	})
}

// eventually calls check until it returns nil. After checkTime it fails the test with the last error.
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

func (l *Link) noWatches(u upstream) error {
	stats, err := l.fourLetterWord(u, "mntr")
	if err != nil {
		return fmt.Errorf("zktest: count the watches: %w", err)
	}
	for line := range strings.Lines(stats) {
		value, found := strings.CutPrefix(line, "zk_watch_count\t")
		if !found {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(value)); err != nil || n == 0 {
			return err
		}
		watches, err := l.fourLetterWord(u, "wchp")
		if err != nil {
			return fmt.Errorf("zktest: list the watches: %w", err)
		}
		return fmt.Errorf("zktest: got %s watches, want none; the data watches are: %s",
			strings.TrimSpace(value), strings.Join(strings.Fields(watches), " "))
	}
	return fmt.Errorf("zktest: no zk_watch_count in the answer to mntr: %q", stats)
}

// descendants lists the nodes below path, deepest first. It ignores nodes that are deleted meanwhile.
func (s *rawSession) descendants(path string) ([]string, error) {
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
		more, err := s.descendants(child)
		if err != nil {
			return nil, err
		}
		found = append(append(found, more...), child)
	}
	return found, nil
}

package peer

import (
	"io"
	"sync"
)

// A Shared is a cluster that the tests of a package have in common. The first test that needs it starts it. TestMain
// calls Close after the tests.
type Shared struct {
	Start func(t T) *Cluster // called at most once

	once    sync.Once
	host    *Host
	cluster *Cluster
	err     error
}

// Get returns the cluster. It skips the test if a program that the cluster needs is not installed; see Need.
func (s *Shared) Get(t T) *Cluster {
	t.Helper()
	Need(t, "java", zookeeperJar)
	s.once.Do(func() {
		if s.host, s.err = NewHost("", io.Discard); s.err != nil {
			return
		}
		s.cluster, s.err = s.start()
	})
	if s.err != nil {
		t.Fatalf("%v", s.err)
	}
	return s.cluster
}

func (s *Shared) start() (c *Cluster, err error) {
	defer s.host.Recover(&err)
	return s.Start(s.host), nil
}

// Close stops the cluster if it was started.
func (s *Shared) Close() {
	if s.host != nil {
		s.host.Close()
	}
}

// Package peer starts Apache ZooKeeper, as Debian packages it, for tests and benchmarks: one server or an ensemble, with
// its own ports and directories, killed, paused and restarted at will, and gone when the test is.
package peer

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// T is what a test, or a benchmark program that plays one, gives to this package. Every testing.TB is one.
type T interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Options say how servers are configured. The zero value is a server for tests: a small heap, short ticks, every
// four-letter word, extended node types.
type Options struct {
	Keys       map[string]string // lines of zoo.cfg, beside the package's own; an empty value removes one of those
	Properties map[string]string // Java system properties, beside the package's own
	Tick       time.Duration     // tickTime; 200ms if zero
	Heap       string            // the JVM's -Xmx; 192m if empty
	Links      bool              // let servers reach each other through proxies: see Cluster.Links
	Fast       bool              // let the JVM compile as in production; else it starts sooner and stays slower
	Data       string            // a folder to copy each server's data from, with version-2 in it; servers begin empty if it is empty
	_          struct{}
}

// Files of the Debian packages zookeeper, libzookeeper-java and default-jre-headless.
const (
	zookeeperJar  = "/usr/share/java/zookeeper.jar"
	zookeeperConf = "/etc/zookeeper/conf"
	mainClass     = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
)

// Missing says which of the files that a peer needs are not there, "" if all are. java is the program to look for beside files.
func Missing(java string, files ...string) string {
	var missing []string
	if _, err := exec.LookPath(java); err != nil {
		missing = append(missing, java)
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			missing = append(missing, f)
		}
	}
	return strings.Join(missing, ", ")
}

// Need skips the test if a program or file of a peer is not installed, and says how to get it. In CI, where a silent skip
// would be a hole, it fails the test instead.
func Need(t T, program string, files ...string) {
	t.Helper()
	missing := Missing(program, files...)
	switch {
	case missing == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("peer: not installed: %s; run `make peers`", missing)
	default:
		t.Skipf("peer: not installed: %s; run `make peers` to test against it", missing)
	}
}

// ZooKeeper starts one standalone server and returns when it answers. The test's cleanup stops it.
// The test is skipped if ZooKeeper is not installed; see Need.
func ZooKeeper(t T, opts Options) *Cluster {
	t.Helper()
	return start(t, 1, opts)
}

// Ensemble starts n servers that replicate, and returns when they have a leader and every one serves.
// The test's cleanup stops them. The test is skipped if ZooKeeper is not installed; see Need.
func Ensemble(t T, n int, opts Options) *Cluster {
	t.Helper()
	return start(t, n, opts)
}

func start(t T, n int, opts Options) *Cluster {
	t.Helper()
	Need(t, "java", zookeeperJar)
	return startCluster(t, func() (*Cluster, error) { return newCluster(t, n, opts) })
}

func startCluster(t T, try func() (*Cluster, error)) *Cluster {
	t.Helper()
	var err error
	// Ports are picked before the servers bind them, so somebody else may be faster: then everything is tried again.
	for range 3 {
		var c *Cluster
		if c, err = try(); err == nil {
			t.Cleanup(c.stop)
			return c
		}
	}
	t.Fatalf("peer: servers do not start: %v", err)
	return nil
}

func newCluster(t T, n int, opts Options) (*Cluster, error) {
	ports, err := freePorts(3 * n)
	if err != nil {
		return nil, err
	}
	c := &Cluster{t: t, modeOf: zooKeeperMode}
	if opts.Links {
		c.links = newLinks(t, n)
	}
	for i := range n {
		m, err := newMember(t.TempDir(), i, n, ports, c.links, opts)
		if err != nil {
			c.stop()
			return nil, err
		}
		c.members = append(c.members, m)
	}
	return c, c.start()
}

// start runs the members and returns when all serve. If they do not it stops them.
func (c *Cluster) start() error {
	for i, m := range c.members {
		if c.links != nil {
			c.links.targets[i] = m.addr
		}
		if err := m.start(); err != nil {
			c.stop()
			return err
		}
	}
	for i := range c.members {
		if err := c.await(i); err != nil {
			c.stop()
			return fmt.Errorf("server %d: %w", i, err)
		}
	}
	return nil
}

// Installed reports whether ZooKeeper can be started here.
func Installed() bool { return Missing("java", zookeeperJar) == "" }

// Package peer starts Apache ZooKeeper, as Debian packages it, for tests and benchmarks: one server or an ensemble,
// with its own ports and directories. Tests can kill, pause and restart the servers, which end with their test.
package peer

// Starting servers.

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// T is the part of testing.TB that this package uses. A Host implements it for programs that are not tests.
type T interface {
	Helper()
	Cleanup(f func())
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// Options configure servers. The zero value means a server for tests: a small heap, short ticks, all four-letter words,
// extended node types.
type Options struct {
	Keys       map[string]string // added to zoo.cfg; an empty value removes one of the package's own keys
	Properties map[string]string // added to the Java system properties
	Tick       time.Duration     // tickTime; 200ms if zero
	Heap       string            // the JVM's -Xmx; 192m if empty
	Dynamic    bool              // an ensemble whose members may change: see zk.Session.Reconfig
	Links      bool              // connect the servers through proxies: see Cluster.Links
	Fast       bool              // compile as in production; otherwise the JVM starts sooner and stays slower
	Data       string            // a directory with version-2 to copy each server's data from; no data if empty
	_          struct{}
}

// Files of the Debian packages zookeeper, libzookeeper-java and default-jre-headless.
const (
	zookeeperJar  = "/usr/share/java/zookeeper.jar"
	zookeeperConf = "/etc/zookeeper/conf"
	mainClass     = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
)

// Missing returns which of the program and the files are not installed, separated by commas; "" if all are.
func Missing(program string, files ...string) string {
	var missing []string
	if _, err := exec.LookPath(program); err != nil {
		missing = append(missing, program)
	}
	for _, f := range files {
		if _, err := os.Stat(f); err != nil {
			missing = append(missing, f)
		}
	}
	return strings.Join(missing, ", ")
}

// short reports whether this is a short test run, with the flag -short: such a run starts nobody else's programs.
func short() bool { return testing.Testing() && testing.Short() }

// Need skips the test if the program or a file is not installed, and in a short run. In CI, what is not installed fails
// the test, because a skip would go unnoticed.
func Need(t T, program string, files ...string) {
	t.Helper()
	missing := Missing(program, files...)
	switch {
	case short():
		t.Skipf("peer: a short run does not start %s", program)
	case missing == "":
	case os.Getenv("CI") == "true":
		t.Fatalf("peer: not installed: %s; run `make peers`", missing)
	default:
		t.Skipf("peer: not installed: %s; run `make peers` to test against it", missing)
	}
}

// ZooKeeper starts one standalone server, returns when it serves, and stops it when the test ends.
// It skips the test if ZooKeeper is not installed; see Need.
func ZooKeeper(t T, opts Options) *Cluster {
	t.Helper()
	return start(t, 1, opts)
}

// Ensemble starts an ensemble of n servers, returns when all of them serve, and stops them when the test ends.
// It skips the test if ZooKeeper is not installed; see Need.
func Ensemble(t T, n int, opts Options) *Cluster {
	t.Helper()
	return start(t, n, opts)
}

func start(t T, n int, opts Options) *Cluster {
	t.Helper()
	Need(t, "java", zookeeperJar)
	c, err := newCluster(t, n, opts)
	return started(t, c, err)
}

// started stops a cluster that has started when the test ends.
func started(t T, c *Cluster, err error) *Cluster {
	t.Helper()
	if err != nil {
		t.Fatalf("peer: start the servers: %v", err)
	}
	t.Cleanup(c.stop)
	return c
}

func newCluster(t T, n int, opts Options) (*Cluster, error) {
	ports := freePorts(t, 3*n)
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

// start starts the members and returns when all of them serve. On failure it stops them.
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

// Installed reports whether ZooKeeper is installed, and may be started: see Need.
func Installed() bool { return !short() && Missing("java", zookeeperJar) == "" }

package peer

// One server, or an ensemble.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	startLimit = 3 * time.Minute  // for a server to serve
	readLimit  = 2 * time.Second  // for an answer that is asked for again
	wordLimit  = 30 * time.Second // for the answer to a four-letter word that is not
)

// A Cluster is one standalone server or the servers of one ensemble, numbered from 0. Its methods may be called
// concurrently for different servers. A method that fails fails the test.
type Cluster struct {
	t       T
	members []*member
	links   *Links                 // nil unless Options.Links
	modeOf  func(m *member) string // the server's mode in ZooKeeper's terms; empty if it does not serve
}

// Len returns the number of servers.
func (c *Cluster) Len() int { return len(c.members) }

// Addr returns the client address of server i, host and port.
func (c *Cluster) Addr(i int) string { return c.members[i].addr }

// ConnectString returns the addresses of all servers, separated by commas.
func (c *Cluster) ConnectString() string {
	var addrs []string
	for _, m := range c.members {
		addrs = append(addrs, m.addr)
	}
	return strings.Join(addrs, ",")
}

// Links returns the proxied connections of servers and clients. It is nil unless Options.Links was set.
func (c *Cluster) Links() *Links { return c.links }

// Dir returns the directory of server i with its zoo.cfg, its data and its log.
func (c *Cluster) Dir(i int) string { return c.members[i].dir }

// PID returns the process id of server i, or 0 while it is not running.
func (c *Cluster) PID(i int) int { return c.members[i].pid() }

// Kill ends server i as kill -9 does, and returns when the process is gone. It does nothing if server i is not running.
func (c *Cluster) Kill(i int) { c.members[i].kill() }

// Restart kills server i if it is running, starts it in its directory and on its ports, and returns when it serves.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.members[i].kill()
	if err := c.members[i].start(); err != nil {
		c.t.Fatalf("peer: restart server %d: %v", i, err)
		return
	}
	if err := c.await(i); err != nil {
		c.t.Fatalf("peer: server %d after its restart: %v", i, err)
	}
}

// Configure adds keys to the zoo.cfg of server i, where the last value of a key counts, for its next start.
func (c *Cluster) Configure(i int, keys map[string]string) {
	c.t.Helper()
	if err := c.members[i].configure(keys); err != nil {
		c.t.Fatalf("peer: configure server %d: %v", i, err)
	}
}

// Pause stops server i with SIGSTOP: its connections stay open, and it does not answer.
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	if err := c.members[i].pause(); err != nil {
		c.t.Fatalf("peer: pause server %d: %v", i, err)
	}
}

// Resume continues a paused server i.
func (c *Cluster) Resume(i int) {
	c.t.Helper()
	if err := c.members[i].resume(); err != nil {
		c.t.Fatalf("peer: resume server %d: %v", i, err)
	}
}

// Leader returns the number of the leader, or -1 if there is none at the moment. A standalone server is a leader.
func (c *Cluster) Leader() int {
	for i := range c.members {
		switch c.mode(i) {
		case "leader", "standalone":
			return i
		}
	}
	return -1
}

// Word sends a four-letter word to server i and returns the answer.
func (c *Cluster) Word(i int, word string) (string, error) {
	return fourLetterWord(c.members[i].addr, word, wordLimit)
}

// Version returns the version of server 0, which serves: 3.8.0. The test fails if it tells none.
func (c *Cluster) Version() string {
	c.t.Helper()
	answer, err := c.Word(0, "srvr")
	version, _, ok := strings.Cut(field(answer, versionField), "-")
	if err != nil || !ok {
		c.t.Fatalf("peer: got %q, %v from srvr, want a version", answer, err)
	}
	return version
}

// Odd returns the number of the server whose tree has a different number of nodes than the others' after the same
// transaction, and the answers of all servers. It returns -1 if there is none, or if transactions keep coming. No
// client can cause this. ZooKeeper 3.8.0 does, when a server is killed at the wrong moment (compare ZOOKEEPER-4541,
// ZOOKEEPER-4712), and clients of that server get wrong answers.
func (c *Cluster) Odd() (i int, answers string) {
	var before []string
	for range 100 {
		states := make([]string, len(c.members))
		for i, m := range c.members {
			states[i], _ = fourLetterWord(m.addr, "srvr", readLimit)
		}
		zxids, counts := each(states, zxidField), each(states, nodesField)
		now := slices.Concat(zxids, counts)
		if slices.Equal(now, before) && same(zxids) {
			return odd(counts), strings.Join(states, "\n")
		}
		before = now // there may be more transactions
		time.Sleep(50 * time.Millisecond)
	}
	return -1, ""
}

// The lines of a server's answer to srvr begin with these.
const (
	versionField = "Zookeeper version: "
	modeField    = "Mode: "
	zxidField    = "Zxid: "
	nodesField   = "Node count: "
)

func each(answers []string, name string) []string {
	values := make([]string, len(answers))
	for i, a := range answers {
		values[i] = field(a, name)
	}
	return values
}

func same(values []string) bool {
	for _, v := range values {
		if v == "" || v != values[0] {
			return false
		}
	}
	return true
}

// odd returns the index of the first value that less than half of the values equal, or -1.
func odd(values []string) int {
	count := map[string]int{}
	for _, v := range values {
		count[v]++
	}
	for i, v := range values {
		if 2*count[v] < len(values) {
			return i
		}
	}
	return -1
}

// field returns the rest of the first line that begins with name, or "".
func field(answer, name string) string {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Renew kills server i, deletes its data, restarts it so that it copies the others' data, and returns when it serves.
func (c *Cluster) Renew(i int) {
	c.t.Helper()
	c.members[i].kill()
	if err := os.RemoveAll(filepath.Join(c.members[i].dir, "data", "version-2")); err != nil {
		c.t.Fatalf("peer: delete the data of server %d: %v", i, err)
	}
	c.Restart(i)
}

// AwaitLeader waits for a leader other than server not, and returns its number. Pass -1 to wait for any leader.
func (c *Cluster) AwaitLeader(not int) int {
	c.t.Helper()
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if i := c.Leader(); i >= 0 && i != not {
			return i
		}
	}
	c.t.Fatalf("peer: got no new leader within %v:%s", startLimit, c.logTails())
	return -1
}

// AwaitAll waits until there is one leader and all other servers are its followers.
func (c *Cluster) AwaitAll() {
	c.t.Helper()
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		leaders, followers := 0, 0
		for i := range c.members {
			switch c.mode(i) {
			case "leader", "standalone":
				leaders++
			case "follower":
				followers++
			}
		}
		if leaders == 1 && leaders+followers == len(c.members) {
			return
		}
	}
	c.t.Fatalf("peer: got servers that do not serve within %v:%s", startLimit, c.logTails())
}

// logTails returns the ends of what the servers have logged.
func (c *Cluster) logTails() string {
	var tails strings.Builder
	for i, m := range c.members {
		fmt.Fprintf(&tails, "\nserver %d: %s", i, m.logTail())
	}
	return tails.String()
}

func (c *Cluster) mode(i int) string { return c.modeOf(c.members[i]) }

func zooKeeperMode(m *member) string {
	text, err := fourLetterWord(m.addr, "srvr", readLimit)
	if err != nil {
		return ""
	}
	return field(text, modeField)
}

// await waits until server i serves. It returns an error if the server exits or takes too long.
func (c *Cluster) await(i int) error {
	m := c.members[i]
	for end := time.Now().Add(startLimit); time.Now().Before(end); {
		if c.mode(i) != "" {
			return nil
		}
		select {
		case <-m.exited():
			return fmt.Errorf("exited: %s", m.logTail())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("no answer within %v: %s", startLimit, m.logTail())
}

func (c *Cluster) stop() {
	for _, m := range c.members {
		m.kill()
	}
	if c.links != nil {
		c.links.close()
	}
}

func fourLetterWord(addr, word string, limit time.Duration) (string, error) {
	dialer := net.Dialer{Timeout: limit}
	conn, err := dialer.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if errors.Is(err, syscall.ECONNRESET) { // the answer is complete; the server closes without reading to the end
		err = nil
	}
	return string(text), err
}

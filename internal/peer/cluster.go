package peer

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

// startLimit bounds the wait for a server to answer, readLimit that for an answer to a four-letter word.
const (
	startLimit = 60 * time.Second
	readLimit  = 2 * time.Second
)

// A Cluster is one standalone server or the servers of one ensemble, numbered from 0. Its methods may be called from several
// goroutines as long as they name different servers. They fail the test if they cannot do what they say.
type Cluster struct {
	t       T
	members []*member
	links   *Links                 // nil unless Options.Links
	modeOf  func(m *member) string // what the server is, in ZooKeeper's words; empty if it does not serve
}

// Len returns the number of servers.
func (c *Cluster) Len() int { return len(c.members) }

// Addr returns the client address of server i, host and port.
func (c *Cluster) Addr(i int) string { return c.members[i].addr }

// ConnectString returns the addresses of all servers, with commas between.
func (c *Cluster) ConnectString() string {
	var addrs []string
	for _, m := range c.members {
		addrs = append(addrs, m.addr)
	}
	return strings.Join(addrs, ",")
}

// Links returns the proxied connections among the servers, and lets clients have some. It is nil unless Options.Links was set.
func (c *Cluster) Links() *Links { return c.links }

// Dir returns the directory of server i: its zoo.cfg, its data and its log.
func (c *Cluster) Dir(i int) string { return c.members[i].dir }

// PID returns the process id of server i, 0 while it is not running.
func (c *Cluster) PID(i int) int { return c.members[i].pid() }

// Kill ends server i as kill -9 does, and returns when the process is gone. A server that is not running stays so.
func (c *Cluster) Kill(i int) { c.members[i].kill() }

// Restart starts server i again in its directory and on its ports, killing it first if it runs, and returns when it serves.
func (c *Cluster) Restart(i int) {
	c.t.Helper()
	c.members[i].kill()
	if err := c.members[i].start(); err != nil {
		c.t.Fatalf("peer: server %d does not restart: %v", i, err)
		return
	}
	if err := c.await(i); err != nil {
		c.t.Fatalf("peer: server %d does not serve after its restart: %v", i, err)
	}
}

// Pause stops server i as SIGSTOP does: its connections stay open and nothing answers.
func (c *Cluster) Pause(i int) {
	c.t.Helper()
	if err := c.members[i].pause(); err != nil {
		c.t.Fatalf("peer: pause server %d: %v", i, err)
	}
}

// Resume lets a paused server i go on.
func (c *Cluster) Resume(i int) {
	c.t.Helper()
	if err := c.members[i].resume(); err != nil {
		c.t.Fatalf("peer: resume server %d: %v", i, err)
	}
}

// Leader returns the number of the server that leads, -1 if none does just now. A standalone server leads.
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
func (c *Cluster) Word(i int, word string) (string, error) { return word4(c.members[i].addr, word) }

// Odd returns the number of the server whose tree has another number of nodes than those of the others after the same
// transaction, and what each of them says; -1 if there is none, or if they do not come to rest. No client can bring that
// about: ZooKeeper 3.8.0 does when a server is killed at the wrong moment (compare ZOOKEEPER-4541, ZOOKEEPER-4712), and
// its clients are served wrongly then.
func (c *Cluster) Odd() (i int, said string) {
	var before []string
	for range 100 {
		states := make([]string, len(c.members))
		for i, m := range c.members {
			states[i], _ = word4(m.addr, "srvr")
		}
		zxids, counts := each(states, zxidField), each(states, nodesField)
		now := slices.Concat(zxids, counts)
		if slices.Equal(now, before) && same(zxids) {
			return odd(counts), strings.Join(states, "\n")
		}
		before = now // they are at it, or may be
		time.Sleep(50 * time.Millisecond)
	}
	return -1, ""
}

// What a server says of itself in its answer to srvr.
const (
	modeField  = "Mode: "
	zxidField  = "Zxid: "
	nodesField = "Node count: "
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

// odd returns the first of values that less than half of all agree with, -1 if there is none.
func odd(values []string) int {
	of := map[string]int{}
	for _, v := range values {
		of[v]++
	}
	for i, v := range values {
		if 2*of[v] < len(values) {
			return i
		}
	}
	return -1
}

// field returns what follows name in the lines of an answer; "" if nothing does.
func field(answer, name string) string {
	for line := range strings.Lines(answer) {
		if value, ok := strings.CutPrefix(line, name); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Renew takes all its data from server i, which gets the others' when it is back; it returns when the server serves.
func (c *Cluster) Renew(i int) {
	c.t.Helper()
	c.members[i].kill()
	if err := os.RemoveAll(filepath.Join(c.members[i].dir, "data", "version-2")); err != nil {
		c.t.Fatalf("peer: empty server %d: %v", i, err)
	}
	c.Restart(i)
}

// AwaitLeader waits until some server leads, other than the one numbered not, and returns its number. Pass -1 for any.
func (c *Cluster) AwaitLeader(not int) int {
	c.t.Helper()
	for end := time.Now().Add(startLimit); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if i := c.Leader(); i >= 0 && i != not {
			return i
		}
	}
	c.t.Fatalf("peer: no new leader within %v", startLimit)
	return -1
}

// AwaitAll waits until every server serves as one leader or its follower.
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
	c.t.Fatalf("peer: not every server serves within %v", startLimit)
}

func (c *Cluster) mode(i int) string { return c.modeOf(c.members[i]) }

func zooKeeperMode(m *member) string {
	text, err := word4(m.addr, "srvr")
	if err != nil {
		return ""
	}
	return field(text, modeField)
}

// await waits until server i answers as a member that serves, or is dead.
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

func word4(addr, word string) (string, error) {
	dialer := net.Dialer{Timeout: readLimit}
	conn, err := dialer.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(readLimit)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	if errors.Is(err, syscall.ECONNRESET) { // the answer is whole; the server closes without reading to the end
		err = nil
	}
	return string(text), err
}

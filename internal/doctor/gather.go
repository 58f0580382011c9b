package doctor

// Finding out what the client can see.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	trips    = 20   // so many reads, and so many writes
	maxLists = 1000 // of so many paths the access list is read
	workers  = 16
)

// gather finds everything out.
func gather(ctx context.Context, client *zk.Client, cfg Config) (*facts, error) {
	f := &facts{asked: cfg.Asked, credentials: cfg.Credentials}
	stop := f.watchTimers()
	defer stop()
	sess, err := client.Session(ctx)
	if err != nil {
		return nil, err
	}
	f.granted = sess.Timeout()
	for range trips {
		began := time.Now()
		if _, _, err := client.Exists(ctx, "/"); err != nil {
			return nil, err
		}
		f.reads = append(f.reads, time.Since(began))
	}
	f.voters = voters(ctx, sess)
	f.servers = askAll(ctx, client.Servers(), cfg)
	f.ephemerals = ephemerals(ctx, f.servers, cfg)
	f.writes, f.clock = unknown[[]time.Duration](needsWrite), unknown[offset](needsWrite)
	if cfg.Write {
		f.writes, f.clock = probe(ctx, sess)
	}
	if f.tree, err = f.readTree(ctx, client, cfg); err != nil {
		return nil, err
	}
	if f.open, err = readAccess(ctx, client, f.tree); err != nil {
		return nil, err
	}
	stop() // lateness is read now
	return f, context.Cause(ctx)
}

// needsWrite is why nothing is known that needs a write.
const needsWrite = "it needs a write: give --write"

// tick is how often this process looks at its own clock.
const tick = 5 * time.Millisecond

// watchTimers notes by how much this process's timers are late, until stop is called.
func (f *facts) watchTimers() (stop func()) {
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			select {
			case <-end:
				return
			case <-time.After(tick):
			}
			f.lateness = max(f.lateness, time.Since(began)-tick)
		}
	}()
	return sync.OnceFunc(func() {
		close(end)
		<-done
	})
}

// voters reads which members of the ensemble vote.
func voters(ctx context.Context, sess *zk.Session) fact[[]string] {
	data, _, err := sess.Config(ctx)
	if err != nil {
		return unknown[[]string]("/zookeeper/config: %v", err)
	}
	var list []string
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case strings.HasPrefix(key, "group."): // other quorums than majorities
			return unknown[[]string]("the ensemble has groups, whose quorums are not majorities")
		case strings.HasPrefix(key, "server."):
			if address, _, _ := strings.Cut(value, ";"); !strings.HasSuffix(address, ":observer") {
				list = append(list, key)
			}
		}
	}
	return known(list)
}

// probe makes a node, writes to it and deletes it. It returns how long the writes took, and the leader's clock.
func probe(ctx context.Context, sess *zk.Session) (fact[[]time.Duration], fact[offset]) {
	path := fmt.Sprintf("/turnstile-doctor-%x", uint64(sess.ID()))
	began := time.Now()
	node, err := sess.CreateNode(ctx, zk.Node{Path: path, Mode: zk.Ephemeral}) // it goes with the session at the latest
	ended := time.Now()
	if err != nil {
		why := fmt.Sprintf("the probe node %s could not be made: %v", path, err)
		return unknown[[]time.Duration]("%s", why), unknown[offset]("%s", why)
	}
	writes := []time.Duration{ended.Sub(began)}
	clock := known(offset{
		least: time.UnixMilli(node.Stat.Ctime).Sub(ended.Round(0)), // by the wall clock
		most:  time.UnixMilli(node.Stat.Ctime + 1).Sub(began.Round(0)),
	})
	for len(writes) < trips && err == nil {
		began := time.Now()
		_, err = sess.Set(ctx, path, nil, -1)
		writes = append(writes, time.Since(began))
	}
	if gone := sess.Delete(ctx, path, -1); err == nil && !errors.Is(gone, zk.NoNode) {
		err = gone
	}
	if err != nil {
		return unknown[[]time.Duration]("%s: %v", path, err), clock
	}
	return known(writes), clock
}

// nodes are what the tree's nodes tell.
type nodes struct {
	mu    sync.Mutex // guards the fields below
	lists []size     // of children, the large ones
	data  []size
	empty []string // nodes that have had children, and have no use any more
}

// A size is how many bytes there are at a path.
type size struct {
	path  string
	bytes int64
}

// smallest is the size from which on nodes are noted, and noted how many of them at most.
const (
	smallest = 64 << 10
	noted    = 1000
)

// reply is what a list of children has besides the children: the frame, the header, their number and the stat.
const reply = 4 + 16 + 4 + 68

// see notes a node.
func (n *nodes) see(path string, children []string, stat zk.Stat) {
	list := int64(reply)
	for _, name := range children {
		list += 4 + int64(len(name))
	}
	unused := len(children) == 0 && stat.Cversion > 0 && stat.DataLength == 0 && stat.Version == 0 &&
		stat.EphemeralOwner == 0 && path != "/" && time.Since(time.UnixMilli(stat.Ctime)) > time.Hour
	if list < smallest && stat.DataLength < smallest && !unused {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if list >= smallest && len(n.lists) < noted {
		n.lists = append(n.lists, size{path, list})
	}
	if stat.DataLength >= smallest && len(n.data) < noted {
		n.data = append(n.data, size{path, int64(stat.DataLength)})
	}
	if unused {
		n.empty = append(n.empty, path)
	}
}

// readTree reads the tree.
func (f *facts) readTree(ctx context.Context, client *zk.Client, cfg Config) (*survey.Snapshot, error) {
	return survey.Read(ctx, client, survey.Config{Root: cfg.Root, Time: cfg.Time, See: f.nodes.see})
}

// access is who may change what.
type access struct {
	looked int      // at so many paths' lists
	more   int      // so many were not looked at
	open   []string // the paths at which every client may do more than read
}

// readAccess reads the access lists of the paths at which somebody may stand in line.
func readAccess(ctx context.Context, client *zk.Client, tree *survey.Snapshot) (access, error) {
	var a access
	var paths []string
	for _, e := range tree.Entries {
		if e.Kind != survey.Free {
			paths = append(paths, e.Path)
		}
	}
	if len(paths) > maxLists {
		paths, a.more = paths[:maxLists], len(paths)-maxLists
	}
	found := make([]struct{ looked, open bool }, len(paths))
	var group errgroup.Group
	group.SetLimit(workers)
	for i, path := range paths {
		group.Go(func() error {
			list, _, err := client.GetACL(ctx, path)
			found[i].looked, found[i].open = !errors.Is(err, zk.NoNode), anyoneMayChange(list)
			if errors.Is(err, zk.NoNode) || errors.Is(err, zk.NoAuth) { // not open, then
				return nil
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return a, err
	}
	for i, path := range paths {
		if found[i].looked {
			a.looked++
		}
		if found[i].open {
			a.open = append(a.open, path)
		}
	}
	return a, nil
}

func anyoneMayChange(list []zk.ACL) bool {
	for _, e := range list {
		if e.ID.Scheme == "world" && e.Perms&^zk.PermRead != 0 {
			return true
		}
	}
	return false
}

// times multiplies without overflow.
func times(d time.Duration, n int64) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}

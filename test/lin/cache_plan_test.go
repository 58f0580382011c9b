//go:build unix

package lin_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/cache"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// cacheJob is the job of workers that change trees and follow them with caches.
const cacheJob = "cache"

// The nodes of a tree: some, each with a few children.
const (
	treeNodes    = 8
	treeChildren = 3
)

// markName begins the names of nodes that are no part of what is compared. The test makes them at the end.
const markName = "mark-"

// cacheReport is what a worker reports of a cache.
type cacheReport struct {
	Change *lincheck.NodeChange `json:",omitempty"`
	Copy   *lincheck.NodeCopy   `json:",omitempty"`
	Mark   string               `json:",omitempty"` // goes with Copy: the mark that the reader has seen

	Session int64 `json:",omitempty"` // the reader's, if it has one now
}

// useCaches changes nodes of every tree, except as a quiet client, and follows every tree with a cache. Caches go on
// when the changes end, until the process ends.
func useCaches(ctx context.Context, w *worker, wg *sync.WaitGroup, client *zk.Client, i int) error {
	for n, place := range w.Places {
		if !quiet(i) {
			rnd := rand.New(rand.NewPCG(w.Seed, uint64(w.First+i*len(w.Places)+n)))
			wg.Go(func() { changeTree(ctx, client, w.Root+"/"+place, rnd) })
		}
		tree, err := cache.OpenTree(client, w.Root+"/"+place, cache.Config{})
		if err != nil {
			return err
		}
		f := cacheReader{
			worker: w, client: client, tree: tree, place: place, root: w.Root + "/" + place,
			number: w.First + i*goroutinesPerClient,
		}
		go f.follow(context.WithoutCancel(ctx)) // until the client is closed
	}
	return nil
}

// changeTree changes nodes at random until ctx ends. The outcome of a change does not matter.
func changeTree(ctx context.Context, client *zk.Client, root string, rnd *rand.Rand) {
	for serial := 0; ctx.Err() == nil; serial++ {
		sess, err := client.Session(ctx)
		if err != nil {
			return
		}
		node := fmt.Sprintf("%s/n%d", root, rnd.IntN(treeNodes))
		child := fmt.Sprintf("%s/c%d", node, rnd.IntN(treeChildren))
		data := fmt.Appendf(nil, "%x %d", sess.ID(), serial)
		one, cancel := context.WithTimeout(ctx, timeout)
		switch rnd.IntN(12) {
		case 0, 1:
			_, _ = sess.Create(one, node, data, zk.Persistent)
		case 2, 3:
			_, _ = sess.Create(one, child, data, zk.Persistent)
		case 4:
			_, _ = sess.Create(one, child, data, zk.Ephemeral)
		case 5, 6:
			_ = sess.Delete(one, child, -1)
		case 7:
			_ = sess.Delete(one, node, -1)
		case 8: // a new node of the same version in one transaction
			_, _ = sess.Multi(one, zk.DeleteOp(child, 0), zk.CreateOp(child, data, zk.Persistent))
		case 9:
			_, _ = sess.Multi(one, zk.SetOp(node, data, -1), zk.SetOp(child, data, -1))
		default:
			_, _ = sess.Set(one, node, data, -1)
		}
		cancel()
		pause(ctx, upTo(rnd, 40*time.Millisecond))
	}
}

// cacheReader reports what a cache tells.
type cacheReader struct {
	*worker

	client      *zk.Client
	tree        *cache.Tree
	place, root string
	number      int
}

// follow reports the changes until the cache ends.
func (r *cacheReader) follow(ctx context.Context) {
	told := make(map[string]lincheck.NodeState)
	for c, err := range r.tree.Changes(ctx) {
		if err != nil {
			return
		}
		if mark := r.mark(c.Path); mark != "" {
			if c.Kind == cache.Created {
				r.tell(cacheReport{Mark: mark, Copy: &lincheck.NodeCopy{Reader: r.number, View: r.view(), Told: told}})
			}
			continue
		}
		before, after := stateOf(c.Before), stateOf(c.After)
		r.tell(cacheReport{Session: sessionOf(r.client), Change: &lincheck.NodeChange{
			Reader: r.number, Path: c.Path[len(r.root):], Kind: c.Kind.String(), Before: before, After: after,
		}})
		if told[c.Path[len(r.root):]] = after; c.Kind == cache.Deleted {
			delete(told, c.Path[len(r.root):])
		}
	}
}

// sessionOf returns the id of a client's session, or 0 if it has none now.
func sessionOf(client *zk.Client) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	sess, err := client.Session(ctx)
	if err != nil {
		return 0
	}
	return sess.ID()
}

// mark returns the name of a node that is a mark, or "".
func (r *cacheReader) mark(path string) string {
	if prefix := r.root + "/"; len(path) > len(prefix) && isMark(path[len(prefix):]) {
		return path[len(prefix):]
	}
	return ""
}

func isMark(name string) bool { return len(name) > len(markName) && name[:len(markName)] == markName }

// view returns the nodes of the cache.
func (r *cacheReader) view() map[string]lincheck.NodeState {
	nodes := make(map[string]lincheck.NodeState)
	for e := range r.tree.All() {
		if r.mark(e.Path) == "" {
			nodes[e.Path[len(r.root):]] = stateOf(e)
		}
	}
	return nodes
}

func stateOf(e cache.Entry) lincheck.NodeState {
	return lincheck.NodeState{Czxid: e.Czxid, Mzxid: e.Mzxid, Version: e.Version, Data: string(e.Data)}
}

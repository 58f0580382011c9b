//go:build unix

package lin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// byVersion is that of a cache which compares versions, and so does not see that a node was deleted and created again.
var byVersion = bug{
	"cache/table.go", "before.czxid == r.czxid && before.mzxid == r.mzxid", "before.version == r.version",
}

var brokenCaches = []plant{
	{name: "compares-versions", trial: cacheTrial{}, bug: byVersion, want: "not a copy", length: 3 * time.Second},
}

// cacheTrial tries caches.
type cacheTrial struct{}

func (cacheTrial) places() []string { return []string{"tree-0", "tree-slow"} }

func (t cacheTrial) prepare(e *epoch, sess *zk.Session) error {
	for _, place := range t.places() {
		if _, err := sess.Create(e.t.Context(), e.root+"/"+place, nil, zk.Persistent); err != nil {
			return err
		}
	}
	return nil
}

func (t cacheTrial) instruct(o *orders) { o.Job, o.Places = cacheJob, t.places() }

func (cacheTrial) newJournal() journal {
	return &cacheJournal{
		trees: make(map[string]*lincheck.NodeHistory), marks: make(map[mark]lincheck.NodeCopy),
		last: make(map[string]reader),
	}
}

// cacheJournal is what the readers of an epoch reported, and what the server had at the end.
type cacheJournal struct {
	mu    sync.Mutex // guards what follows
	trees map[string]*lincheck.NodeHistory
	marks map[mark]lincheck.NodeCopy
	last  map[string]reader // that has told of a place
	bad   error
}

// reader is a reader and its session.
type reader struct {
	number  int
	session int64
}

// mark says that a reader has seen a mark.
type mark struct {
	place, name string
	reader      int
}

func (j *cacheJournal) note(r report) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var c cacheReport
	if err := json.Unmarshal(r.Recipe, &c); err != nil {
		j.bad = err
		return
	}
	if c.Copy != nil {
		j.marks[mark{r.Place, c.Mark, c.Copy.Reader}] = *c.Copy
	}
	if c.Change != nil {
		h := j.tree(r.Place)
		h.Changes = append(h.Changes, *c.Change)
		j.last[r.Place] = reader{c.Change.Reader, c.Session}
	}
}

// tree returns the history of a tree. The caller holds the mutex.
func (j *cacheJournal) tree(place string) *lincheck.NodeHistory {
	if j.trees[place] == nil {
		j.trees[place] = new(lincheck.NodeHistory)
	}
	return j.trees[place]
}

// busy returns the reader that was heard last.
func (j *cacheJournal) busy(place string) (number int, session int64, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.last[place]
	return last.number, last.session, last.session != 0
}

func (j *cacheJournal) count() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	changes := 0
	for _, h := range j.trees {
		changes += len(h.Changes)
	}
	return fmt.Sprintf("%d changes", changes)
}

func (j *cacheJournal) judge(dir string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := []error{j.bad}
	for place, h := range j.trees {
		if err := lincheck.CheckNodes(*h); err != nil {
			keepHistory(filepath.Join(dir, place), h)
			all = append(all, fmt.Errorf("%s: %w", place, err))
		}
	}
	return errors.Join(all...)
}

// tell reports something about the reader's tree.
func (r *cacheReader) tell(c cacheReport) {
	raw, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	r.report(report{Place: r.place, Recipe: raw})
}

// settle waits until every cache has seen two marks between which nothing has changed, and keeps what the caches had.
// The writers have finished, but a write whose reply was lost may still come.
func (t cacheTrial) settle(e *epoch, sess *zk.Session) error {
	j, ok := e.journal.(*cacheJournal)
	if !ok {
		return fmt.Errorf("journal of another trial: %T", e.journal)
	}
	ctx, cancel := context.WithTimeout(e.t.Context(), e.patience)
	defer cancel()
	for _, place := range t.places() {
		var before, after map[string]lincheck.NodeState
		var copies []lincheck.NodeCopy
		for n := 0; before == nil || !maps.Equal(before, after); n++ {
			read := func(nodes *map[string]lincheck.NodeState) error {
				return unbroken(ctx, func() (err error) {
					*nodes, err = nodesOf(ctx, sess, e.root+"/"+place, "")
					return err
				})
			}
			if err := read(&before); err != nil {
				return err
			}
			for k := range 2 {
				name := fmt.Sprintf("%s%d-%d", markName, n, k)
				err := unbroken(ctx, func() error {
					_, err := sess.Create(ctx, e.root+"/"+place+"/"+name, nil, zk.Persistent)
					return err
				})
				if err != nil && !errors.Is(err, zk.NodeExists) { // by a creation whose reply was lost
					return err
				}
				if copies, err = j.await(ctx, e, place, name); err != nil {
					return err
				}
			}
			if err := read(&after); err != nil {
				return err
			}
		}
		j.mu.Lock()
		h := j.tree(place)
		h.Copies, h.Server = copies, after
		j.mu.Unlock()
	}
	return nil
}

// await waits until the readers of all processes have seen a mark, and returns what they had.
func (j *cacheJournal) await(ctx context.Context, e *epoch, place, name string) ([]lincheck.NodeCopy, error) {
	for {
		var copies []lincheck.NodeCopy
		missing := -1
		j.mu.Lock()
		for _, first := range e.first {
			for i := range clientsPerProcess {
				if c, ok := j.marks[mark{place, name, first + i*goroutinesPerClient}]; ok {
					copies = append(copies, c)
				} else {
					missing = first + i*goroutinesPerClient
				}
			}
		}
		j.mu.Unlock()
		if missing < 0 {
			return copies, nil
		}
		pause(ctx, 5*time.Millisecond)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("not a copy: the cache of %s at reader %d does not see %s", place, missing, name)
		}
	}
}

// nodesOf returns the nodes of a tree at the server, by their paths below its root.
func nodesOf(ctx context.Context, sess *zk.Session, root, rel string) (map[string]lincheck.NodeState, error) {
	data, stat, err := sess.Get(ctx, root+rel)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, _, err := sess.Children(ctx, root+rel)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	nodes := map[string]lincheck.NodeState{
		rel: {Czxid: stat.Czxid, Mzxid: stat.Mzxid, Version: stat.Version, Data: string(data)},
	}
	for _, name := range names {
		if rel == "" && isMark(name) {
			continue
		}
		below, err := nodesOf(ctx, sess, root, rel+"/"+name)
		if err != nil {
			return nil, err
		}
		maps.Copy(nodes, below)
	}
	return nodes, nil
}

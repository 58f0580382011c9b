package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A part is a node that a bundle is to have.
type part struct {
	line   *Line
	prefix string // its name up to the number; no two parts have the same (ZOOKEEPER-4695)
}

// A Bundle is nodes of ours, under one session, that come and go together.
type Bundle struct {
	sess  *zk.Session
	nodes []zk.Created

	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	watches map[*zk.Watch]struct{}
	left    bool
}

// MakeBundle makes a node in each line, all of them or none, in one transaction that is refused with ErrGone unless the checks pass. A
// line may be given more than once. What also adds to the batch, if it is not nil, is sent in the same write.
//
// If it returns an error, no node is left behind, or the removal goes on in the background until it is done or the session has ended,
// as with Enter.
func MakeBundle(ctx context.Context, sess *zk.Session, lines []*Line, checks []zk.Op, also func(*zk.Batch)) (*Bundle, error) {
	parts := make([]part, len(lines))
	ops := slices.Clone(checks)
	for i, l := range lines {
		parts[i] = part{l, l.Prefix(NewGUID())}
		ops = append(ops, zk.CreateNodeOp(zk.Node{Path: join(l.Dir, parts[i].prefix), Data: l.Data(), Mode: zk.EphemeralSequential, ACL: l.ACL}))
	}
	for try := 0; ; {
		b := sess.Batch()
		made := b.Multi(ops...)
		if also != nil {
			also(b)
		}
		b.Send()
		results, err := made.Get(ctx)
		failed, _ := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			return newBundle(sess, results[len(checks):], len(parts))
		case ctx.Err() != nil:
			go withdrawAll(sess, parts, made)
			return nil, context.Cause(ctx)
		case sess.Context().Err() != nil:
			return nil, context.Cause(sess.Context())
		case zk.OutcomeOf(err) == zk.Unknown:
			found, err := findAll(ctx, sess, parts)
			switch {
			case err != nil:
				go withdrawAll(sess, parts, made)
				return nil, err
			case len(found) == len(parts):
				return &Bundle{sess: sess, nodes: found}, nil
			case len(found) > 0: // they came together, so somebody has deleted the others
				(&Bundle{sess: sess, nodes: found}).Leave()
				return nil, ErrGone
			}
		case failed != nil && failed.Index < len(checks):
			return nil, ErrGone
		case failed != nil && failed.Err == zk.NoNode:
			l := lines[failed.Index-len(checks)]
			if try++; try > maxTries*len(parts) {
				return nil, fmt.Errorf("line: the parents of %s vanish as often as they are made: %w", l.Dir, err)
			}
			if err := l.makeParents(ctx, sess, l.Dir); err != nil {
				return nil, err
			}
		default:
			return nil, err
		}
	}
}

func newBundle(sess *zk.Session, results []zk.Result, parts int) (*Bundle, error) {
	if len(results) != parts {
		return nil, fmt.Errorf("line: the creation of %d nodes was answered with %d results", parts, len(results))
	}
	b := &Bundle{sess: sess}
	for _, r := range results {
		b.nodes = append(b.nodes, madeBy(r, sess))
	}
	return b, nil
}

// OwnBundle is the bundle of nodes that the session has made otherwise.
func OwnBundle(sess *zk.Session, nodes ...zk.Created) *Bundle {
	return &Bundle{sess: sess, nodes: nodes}
}

// findAll looks for the nodes of parts, as find does for one.
func findAll(ctx context.Context, sess *zk.Session, parts []part) ([]zk.Created, error) {
	for {
		found, err := findAllOnce(ctx, sess, parts)
		if err == nil {
			return found, nil
		}
		if err := settle(ctx, sess, err); err != nil {
			return nil, err
		}
	}
}

func findAllOnce(ctx context.Context, sess *zk.Session, parts []part) ([]zk.Created, error) {
	b := sess.Batch()
	listed := map[string]*zk.Future[zk.Children]{}
	for _, p := range parts {
		if listed[p.line.Dir] == nil {
			b.Sync(p.line.Dir)
			listed[p.line.Dir] = b.Children(p.line.Dir)
		}
	}
	b.Send()
	var paths []string
	for _, p := range parts {
		children, err := listed[p.line.Dir].Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		for _, name := range children.Names {
			if strings.HasPrefix(name, p.prefix) {
				paths = append(paths, join(p.line.Dir, name))
			}
		}
	}
	found := make([]zk.Created, 0, len(paths))
	seen := make([]*zk.Future[zk.Existence], len(paths))
	for i, path := range paths {
		seen[i] = b.Exists(path)
	}
	b.Send()
	for i, path := range paths {
		e, err := seen[i].Get(ctx)
		if err != nil {
			return nil, err
		}
		if e.Exists && e.Stat.EphemeralOwner == sess.ID() {
			found = append(found, zk.Created{Path: path, Stat: e.Stat})
		}
	}
	return found, nil
}

// withdrawAll removes what a creation that nobody waits for any more has made, or may have made.
func withdrawAll(sess *zk.Session, parts []part, made *zk.Future[[]zk.Result]) {
	if _, err := made.Get(context.Background()); err != nil && zk.OutcomeOf(err) != zk.Unknown {
		return
	}
	if found, err := findAll(sess.Context(), sess, parts); err == nil && len(found) > 0 {
		(&Bundle{sess: sess, nodes: found}).Leave()
	}
}

// Path returns the path of the first node.
func (b *Bundle) Path() string { return b.nodes[0].Path }

// Paths returns the paths of the nodes, in the order of the lines that they were made in.
func (b *Bundle) Paths() []string {
	paths := make([]string, len(b.nodes))
	for i, n := range b.nodes {
		paths[i] = n.Path
	}
	return paths
}

// Stat returns what the server told about the first node when it was made. Its Czxid is that of all.
func (b *Bundle) Stat() zk.Stat { return b.nodes[0].Stat }

// Session returns the session that the nodes belong to.
func (b *Bundle) Session() *zk.Session { return b.sess }

// Whole reports whether all of the nodes are there.
func (b *Bundle) Whole(ctx context.Context) (bool, error) {
	for {
		whole, err := b.whole(ctx)
		if err == nil {
			return whole, nil
		}
		if err := settle(ctx, b.sess, err); err != nil {
			return false, err
		}
	}
}

func (b *Bundle) whole(ctx context.Context) (bool, error) {
	batch := b.sess.Batch()
	seen := make([]*zk.Future[zk.Existence], len(b.nodes))
	for i, n := range b.nodes {
		seen[i] = batch.Exists(n.Path)
	}
	batch.Send()
	for i, n := range b.nodes {
		e, err := seen[i].Get(ctx)
		if err != nil {
			return false, err
		}
		if !e.Exists || e.Stat.Czxid != n.Stat.Czxid {
			return false, nil
		}
	}
	return true, nil
}

// Watch blocks until one of the nodes is deleted by somebody else and then returns ErrGone; it returns the context's cause or the
// session's if that comes first.
func (b *Bundle) Watch(ctx context.Context, _ func(data []byte)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(b.nodes))
	for _, n := range b.nodes {
		go func() { first <- b.watch(ctx, n) }()
	}
	return <-first
}

func (b *Bundle) watch(ctx context.Context, n zk.Created) error {
	for {
		_, stat, w, err := b.sess.GetW(ctx, n.Path)
		switch {
		case errors.Is(err, zk.NoNode):
			return ErrGone
		case err != nil:
			if err := settle(ctx, b.sess, err); err != nil {
				return err
			}
			continue
		case stat.Czxid != n.Stat.Czxid:
			w.Close()
			return ErrGone
		case !b.keep(w):
			w.Close()
			return context.Cause(ctx)
		}
		ev, err := w.Next(ctx)
		w.Close()
		b.forget(w)
		switch {
		case err != nil:
			return err
		case ev.Type == zk.EventDeleted:
			return ErrGone
		}
	}
}

func (b *Bundle) keep(w *zk.Watch) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.watches == nil {
		b.watches = map[*zk.Watch]struct{}{}
	}
	if !b.left {
		b.watches[w] = struct{}{}
	}
	return !b.left
}

func (b *Bundle) forget(w *zk.Watch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watches, w)
}

// Retire ends the watches on the nodes, now and for good.
func (b *Bundle) Retire() {
	b.mu.Lock()
	watches := b.watches
	b.watches, b.left = nil, true
	b.mu.Unlock()
	for w := range watches {
		w.Close()
	}
}

// Leave removes the nodes, in one transaction: it leaves at once, and is repeated in the background until it is done or the session has
// ended.
func (b *Bundle) Leave() *Removal {
	b.Retire()
	return removeAll(b.sess, b.Paths())
}

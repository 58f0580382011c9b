package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/zk"
)

// A Bundle is nodes of ours, under one session, that come and go together.
type Bundle struct {
	sess  *zk.Session
	nodes []zk.Created

	mu      sync.Mutex // guards the fields below; never held while anything is waited for
	watches map[*zk.Watch]struct{}
	left    bool
}

// MakeBundle makes a contender's nodes in each line, all of them or none, in one transaction that is refused with ErrGone unless the checks pass. A
// line may be given more than once. What also adds to the batch, if it is not nil, is sent in the same write.
//
// If it returns an error, no node is left behind, or the removal goes on in the background until it is done or the session has ended,
// as with Enter. Whether the transaction fits into a request is for the caller to find out before, with CheckSize.
func MakeBundle(ctx context.Context, sess *zk.Session, lines []*Line, checks []zk.Op, also func(*zk.Batch)) (*Bundle, error) {
	parts, of, ops := attempt(lines, checks)
	for try := 0; ; {
		b := sess.Batch()
		made := b.Multi(ops...)
		if also != nil {
			also(b)
		}
		b.Send()
		created := func(ctx context.Context) ([]zk.Created, error) {
			return createdBy(ctx, sess, made, len(ops), len(checks))
		}
		nodes, err := created(ctx)
		failed, _ := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
			return OwnBundle(sess, nodes...), nil
		case ctx.Err() != nil:
			go withdraw(sess, parts, created)
			return nil, context.Cause(ctx)
		case sess.Err() != nil:
			return nil, sess.Err()
		case zk.OutcomeOf(err) == zk.Unknown:
			found, err := find(ctx, sess, parts)
			switch {
			case err != nil:
				go withdraw(sess, parts, created)
				return nil, err
			case len(found) == 0:
				go sweep(sess, parts)
				parts, of, ops = attempt(lines, checks)
			case len(found) == len(parts):
				return OwnBundle(sess, found...), nil
			case len(found) > 0: // they came together, so somebody has deleted the others
				OwnBundle(sess, found...).Leave()
				return nil, ErrGone
			}
		case failed != nil && failed.Index < len(checks) && (failed.Err == zk.NoNode || failed.Err == zk.BadVersion):
			return nil, ErrGone
		case failed != nil && failed.Index >= len(checks) && failed.Index < len(ops) && failed.Err == zk.NoNode:
			l := of[failed.Index-len(checks)]
			if try++; try > maxTries*len(parts) {
				return nil, fmt.Errorf("line: the parents of %s vanish as often as they are made: %w", l.Dir, err)
			}
			if err := l.makeParents(ctx, sess, dirs(lines)...); err != nil {
				return nil, err
			}
		default:
			if err := Settle(ctx, sess, err); err != nil {
				return nil, err
			}
		}
	}
}

// attempt returns what to create for one attempt to make a bundle: its nodes, the line of each, and the operations behind the checks.
func attempt(lines []*Line, checks []zk.Op) (parts []part, of []*Line, ops []zk.Op) {
	ops = slices.Clone(checks)
	for _, l := range lines {
		own := l.parts(NewGUID())
		parts = append(parts, own...)
		of = append(of, slices.Repeat([]*Line{l}, len(own))...)
		ops = append(ops, creations(l.nodes(own))...)
	}
	return parts, of, ops
}

// dirs are the paths of lines, each once. The lines of a bundle make their parents alike.
func dirs(lines []*Line) []string {
	list := make([]string, len(lines))
	for i, l := range lines {
		list[i] = l.Dir
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// OwnBundle is the bundle of nodes that the session has made otherwise.
func OwnBundle(sess *zk.Session, nodes ...zk.Created) *Bundle {
	return &Bundle{sess: sess, nodes: nodes}
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
		if err := Settle(ctx, b.sess, err); err != nil {
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
// session's if that comes first. The data of each node is given to changed, if that is not nil, at first and after each change; calls
// for several nodes may come at a time.
func (b *Bundle) Watch(ctx context.Context, changed func(data []byte)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, len(b.nodes))
	for _, n := range b.nodes {
		go func() { first <- b.watch(ctx, n, changed) }()
	}
	return <-first
}

func (b *Bundle) watch(ctx context.Context, n zk.Created, changed func(data []byte)) error {
	for {
		data, stat, w, err := b.sess.GetW(ctx, n.Path)
		switch {
		case errors.Is(err, zk.NoNode):
			return ErrGone
		case err != nil:
			if err := Settle(ctx, b.sess, err); err != nil {
				return err
			}
			continue
		case stat.Czxid != n.Stat.Czxid && n.Stat.Czxid != 0: // 0 where nobody was told, and the name is ours alone
			w.Close()
			return ErrGone
		case !b.keep(w):
			w.Close()
			return context.Cause(ctx)
		}
		if changed != nil {
			changed(data)
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

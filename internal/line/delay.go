package line

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// A mark is a persistent node beside the line, in a directory of marks, that says that the contender of the same name has started: it
// has what the line is for. It is made before the contender starts, and deleted in the transaction that deletes the contender's
// node. So a mark without a contender is one that was lost, whose session ended or whose node others deleted, and what it had under way
// may still arrive: who comes next lets the delay pass that the mark tells.
//
// Names of contenders never come twice. That is why marks may be deleted, and why who repeats a deletion whose answer was lost cannot hit
// the mark of the next.
type mark struct {
	Delay time.Duration `json:"delayNs"`
	// Lost is set by the first who finds that the contender has gone. The node's time of change is then when that was.
	Lost bool `json:"lost,omitempty"`
}

func (m mark) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		return []byte("{}") // cannot happen: every field marshals
	}
	return b
}

// Start marks in dir that our place, which is first, is what others wait for, after it has let the delays of those pass that were lost.
// Of those whom the line does not let block us, a reader's other readers, none counts. Rest is asked whether to wait when there is such a
// delay; if not, Start returns ErrResting. Other errors are those of Await.
// Whatever it returns, the place stays taken, and Leave takes the mark along.
func (p *Place) Start(ctx context.Context, dir string, delay time.Duration, rest func(time.Duration) bool) error {
	p.mark, p.delay = join(dir, p.seat.Name), delay
	var passed []string
	for {
		others, err := p.leaveMark(ctx, dir)
		if err != nil {
			return err
		}
		var left time.Duration
		var lost []string
		if len(others) > 0 {
			if left, lost, err = p.lost(ctx, dir, others, passed, delay); err != nil {
				return err
			}
		}
		switch {
		case left > 0 && !rest(left):
			return ErrResting
		case left > 0:
			if err := p.outwait(ctx, left); err != nil {
				return err
			}
			passed = lost
		default:
			if err := p.clear(ctx, lost); err != nil {
				return err
			}
			p.started = true
			return nil
		}
	}
}

// ErrResting says that a delay has not passed.
var ErrResting = errors.New("line: the one before was lost, and its delay has not passed")

// startLike leaves a mark like other's, if that has one: for a place of the same holder that is to take its place.
func (p *Place) startLike(ctx context.Context, other *Place) error {
	if other.mark == "" {
		return nil
	}
	dir := path.Dir(other.mark)
	p.mark, p.delay = join(dir, p.seat.Name), other.delay
	_, err := p.leaveMark(ctx, dir)
	p.started = err == nil
	return err
}

// marked is our mark.
func (p *Place) marked() zk.Node {
	return zk.Node{Path: p.mark, Data: mark{Delay: p.delay}.encode(), Mode: zk.Persistent, ACL: p.line.ACL}
}

// heeds reports whether the mark of that name is of somebody who blocked us. Whose name says nothing did.
func (p *Place) heeds(name string) bool {
	s, ok := ParseSeat(name, p.line.Markers)
	return name != p.seat.Name && (!ok || p.line.Blocks(s))
}

// leaveMark makes our mark, if our node is still there, and returns the names of the marks that count: in one round trip, as a rule.
func (p *Place) leaveMark(ctx context.Context, dir string) ([]string, error) {
	node := p.marked()
	for tries := 0; ; {
		b := p.sess.Batch()
		made := b.Multi(zk.CheckOp(p.node.Path, -1), zk.CreateNodeOp(node))
		listed := b.Children(dir)
		b.Send()
		_, err := made.Get(ctx)
		failed, _ := errors.AsType[*zk.MultiError](err)
		switch {
		case err == nil:
		case failed == nil:
			if err := Settle(ctx, p.sess, err); err != nil {
				return nil, err
			}
			continue
		case failed.Index == 0 && failed.Err == zk.NoNode:
			return nil, ErrGone
		case failed.Err == zk.NodeExists: // only the answer to an earlier attempt was lost
		case failed.Err == zk.NoNode:
			if tries++; tries > maxTries {
				return nil, fmt.Errorf("line: %s vanishes as often as it is made: %w", dir, err)
			}
			if err := p.line.makeParents(ctx, p.sess, dir); err != nil {
				return nil, err
			}
			continue
		default:
			return nil, err
		}
		children, err := listed.Get(ctx)
		if err == nil {
			var others []string
			for _, name := range children.Names {
				if p.heeds(name) {
					others = append(others, name)
				}
			}
			return others, nil
		}
		if err := Settle(ctx, p.sess, err); err != nil {
			return nil, err
		}
	}
}

// outwait lets a delay pass. Our mark is not there meanwhile: whoever is lost while it waits has not started, and must not make others wait.
func (p *Place) outwait(ctx context.Context, left time.Duration) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	for {
		err := p.sess.Delete(ctx, p.mark, -1)
		if err == nil || errors.Is(err, zk.NoNode) {
			break
		}
		if err := Settle(ctx, p.sess, err); err != nil {
			return err
		}
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.sess.Context().Done():
		return p.sess.Err()
	}
}

// lost looks which of the marks with the given names are those of contenders that were lost, and how much of their delays is left, where
// it has not passed.
func (p *Place) lost(ctx context.Context, dir string, names, passed []string, own time.Duration) (left time.Duration, lost []string, err error) {
	for {
		left, lost, err = p.lostNow(ctx, dir, names, passed, own)
		if err == nil {
			return left, lost, nil
		}
		if err := Settle(ctx, p.sess, err); err != nil {
			return 0, nil, err
		}
	}
}

func (p *Place) lostNow(ctx context.Context, dir string, names, passed []string, own time.Duration) (left time.Duration, lost []string, err error) {
	b := p.sess.Batch()
	marks, nodes := make([]*zk.Future[zk.Data], len(names)), make([]*zk.Future[zk.Existence], len(names))
	for i, name := range names {
		// A node is looked for after its mark was read: if it is not there, it will not be again.
		marks[i], nodes[i] = b.Get(join(dir, name)), b.Exists(join(p.line.Dir, name))
	}
	ours := b.Get(p.mark) // made a moment ago, by the server's clock
	b.Send()
	now, err := ours.Get(ctx)
	if err != nil {
		return 0, nil, err
	}
	for i, name := range names {
		read, err := marks[i].Get(ctx)
		if errors.Is(err, zk.NoNode) {
			continue
		}
		node, nodeErr := nodes[i].Get(ctx)
		if err := errors.Join(err, nodeErr); err != nil {
			return 0, nil, err
		}
		if node.Exists {
			continue
		}
		rests, err := p.rests(ctx, join(dir, name), read, now.Stat.Ctime, own)
		if errors.Is(err, zk.NoNode) { // it left between the two looks
			continue
		}
		if err != nil {
			return 0, nil, err
		}
		lost = append(lost, name)
		if !slices.Contains(passed, name) {
			left = max(left, rests)
		}
	}
	return left, lost, nil
}

// rests returns how much is left of the delay of a mark whose contender was lost. It says so in the mark if nobody has said it before. A
// mark that cannot be read is somebody else's doing, and counts for our own delay.
func (p *Place) rests(ctx context.Context, marked string, read zk.Data, now int64, own time.Duration) (time.Duration, error) {
	var m mark
	if json.Unmarshal(read.Data, &m) != nil || m.Delay <= 0 {
		m = mark{Delay: own}
	}
	if m.Lost {
		since := time.Duration(now-read.Stat.Mtime) * time.Millisecond
		return min(m.Delay, m.Delay-since), nil // clocks of two servers may differ
	}
	m.Lost = true
	_, err := p.sess.Set(ctx, marked, m.encode(), read.Stat.Version)
	if errors.Is(err, zk.BadVersion) { // somebody else was quicker to say it
		err = nil
	}
	return m.Delay, err
}

// clear removes marks of those whose delay has passed, and returns ErrGone if our own node has gone meanwhile.
func (p *Place) clear(ctx context.Context, names []string) error {
	for len(names) > 0 {
		err := p.clearNow(ctx, names)
		if err == nil {
			return nil
		}
		if err := Settle(ctx, p.sess, err); err != nil {
			return err
		}
	}
	return nil
}

func (p *Place) clearNow(ctx context.Context, names []string) error {
	b := p.sess.Batch()
	gone := make([]*zk.Future[struct{}], len(names))
	for i, name := range names {
		gone[i] = b.Delete(join(path.Dir(p.mark), name), -1)
	}
	node := b.Exists(p.node.Path)
	b.Send()
	for _, f := range gone {
		if _, err := f.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
			return err
		}
	}
	e, err := node.Get(ctx)
	if err == nil && !e.Exists {
		err = ErrGone
	}
	return err
}

// removeMarked deletes our nodes and our mark, in one transaction: it leaves at once, and is repeated in the background until it is done or
// the session has ended.
func (p *Place) removeMarked() *Removal {
	nodes := p.Paths()
	var ops []zk.Op
	for _, path := range append(slices.Clone(nodes), p.mark) {
		ops = append(ops, zk.DeleteOp(path, -1))
	}
	send := func() *zk.Future[[]zk.Result] {
		b := p.sess.Batch()
		defer b.Send()
		return b.Multi(ops...)
	}
	sent := send()
	return RemoveBy(func() error {
		for {
			_, err := sent.Get(context.Background())
			failed, _ := errors.AsType[*zk.MultiError](err)
			switch {
			case err == nil, p.sess.Err() != nil:
				return nil //nolint:nilerr // the node ends with the session, and the mark then says what is true
			case failed != nil:
				return p.removeApart(nodes, failed)
			case zk.OutcomeOf(err) == zk.Refused:
				_ = pause(context.Background(), p.sess)
			}
			sent = send()
		}
	})
}

// removeApart deletes our nodes after the transaction that was to delete them with the mark was refused.
//
// If it is a node that is not there, either only the answer to an earlier attempt was lost, and the mark has gone with the nodes; or others
// have deleted the node, and that is what the mark is there to tell, if there was anything to lose. If it is the mark, that was not
// made, and will not be: requests of one session are executed in their order, and one that was under way when the connection broke is
// not executed after it.
func (p *Place) removeApart(nodes []string, failed *zk.MultiError) error {
	removal := removeAll(p.sess, nodes)
	var err error
	switch {
	case failed.Err != zk.NoNode:
		err = failed
	case failed.Index < len(nodes) && !p.started:
		err = insist(p.sess, p.mark, sendDelete(p.sess, p.mark))
	}
	return errors.Join(err, removal.Wait(context.Background()))
}

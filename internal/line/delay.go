package line

// Marks, which make the next holder wait after a loss.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A delayRecord is the data of a mark: a persistent node beside the line, in a directory of marks, which says that the
// contender of the same name has started: it holds what the line is for. It is made before the contender starts, and
// deleted in the transaction that deletes the contender's nodes. So a mark without a contender belongs to one that was
// lost: its session ended, or another client deleted its node. Its writes may still arrive, so the next contender waits
// for the delay in the mark.
//
// Names of contenders never come twice. That is why marks may be deleted, and why a deletion that is repeated because
// its answer was lost cannot hit the mark of the next contender.
type delayRecord struct {
	Delay time.Duration `json:"delayNs"`
	// Lost is set by the first contender that finds this one gone. The node's time of change is then when that was.
	Lost bool `json:"lost,omitempty"`
}

func (r delayRecord) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		return []byte("{}") // cannot happen: every field marshals
	}
	return b
}

// ErrResting says that a delay has not passed.
var ErrResting = errors.New("the former holder was lost, and its delay has not passed")

// DelayPath returns the path of the directory with the marks of the line at path: a sibling, outside the line.
func DelayPath(path string) string { return path + "-__delay__" }

// Start does what a delay asks of a contender that is first: it makes our mark, and waits for the delays of lost
// holders to pass. Without a delay it does nothing. The marks of each line are in the directory at its DelayPath. Marks
// of contenders that do not block us, a reader's other readers, do not count. When a delay has not passed, Start calls
// rest, with what is left; if that returns false, Start returns ErrResting. Delays of several lines pass at once. Its
// other errors are those of Await. If it returns an error, it has released the contender, and the marks with it.
func (o *Own) Start(ctx context.Context, delay time.Duration, rest func(time.Duration) bool) error {
	if delay == 0 {
		return nil
	}
	err := o.start(ctx, delay, rest)
	if err != nil {
		o.Release()
	}
	return err
}

// TryStart is Start for a caller that does not wait for a delay.
func (o *Own) TryStart(ctx context.Context, delay time.Duration) error {
	return o.Start(ctx, delay, func(time.Duration) bool { return false })
}

func (o *Own) start(ctx context.Context, delay time.Duration, rest func(time.Duration) bool) error {
	if len(o.positions) == 1 {
		p := o.positions[0]
		return p.start(ctx, DelayPath(p.line.Dir), delay, rest)
	}
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	var mu sync.Mutex // one call of rest at a time; guards rested
	rested := false
	ask := func(left time.Duration) bool {
		mu.Lock()
		defer mu.Unlock()
		rested = true
		return rest(left)
	}
	ended := make(chan error, len(o.positions))
	for _, p := range o.positions {
		go func() { ended <- p.start(starting, DelayPath(p.line.Dir), delay, ask) }()
	}
	var err error
	for range o.positions {
		if e := <-ended; e != nil && err == nil {
			err = e
			cancel()
		}
	}
	if err == nil && rested {
		return o.check(ctx) // while a delay passed at one path, our node at another may have been deleted
	}
	return err
}

func (p *position) start(ctx context.Context, dir string, delay time.Duration, rest func(time.Duration) bool) error {
	p.mark, p.delay = attempt.Join(dir, p.self.Name), delay
	var passed []string
	for {
		others, idle, err := p.leaveMark(ctx, dir)
		if err == nil {
			err = p.line.checkOnce(ctx, p.own.sess, dir, &p.line.marks) // it is there now
		}
		if err != nil {
			return err
		}
		var left time.Duration
		var lost []string
		if len(others) > 0 {
			if left, lost, err = p.lost(ctx, others, passed); err != nil {
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
			stale, err := p.stale(ctx, idle)
			if err == nil {
				err = p.clear(ctx, append(lost, stale...))
			}
			p.started = err == nil
			return err
		}
	}
}

// Marks of lost readers are for the next writer. If none comes they would add up: so once there are maxIdle marks that
// do not count for us, we look at a few. Each lost reader came through here, and the more lost ones there are, the more
// of them a look finds. So few of them stay for each live reader.
const maxIdle, looks = 64, 8

// stale looks at some of the marks with these names, which do not count for us, and returns those of lost contenders
// whose delay has passed.
func (p *position) stale(ctx context.Context, idle []string) (names []string, err error) {
	if len(idle) < maxIdle {
		return nil, nil
	}
	rand.Shuffle(len(idle), func(i, j int) { idle[i], idle[j] = idle[j], idle[i] })
	return attempt.Ask(ctx, p.own.sess, func() (passed []string, err error) {
		_, err = p.lostNow(ctx, idle[:looks], func(name string, left time.Duration) {
			if left == 0 {
				passed = append(passed, name)
			}
		})
		return passed, err
	})
}

// startLike leaves a mark like other's, if that has one: for a contender of the same holder that is to replace it.
func (p *position) startLike(ctx context.Context, other *position) error {
	if other.mark == "" {
		return nil
	}
	dir := path.Dir(other.mark)
	p.mark, p.delay = attempt.Join(dir, p.self.Name), other.delay
	_, _, err := p.leaveMark(ctx, dir)
	p.started = err == nil
	return err
}

// marked is our mark.
func (p *position) marked() zk.Node {
	return zk.Node{Path: p.mark, Data: delayRecord{Delay: p.delay}.encode(), Mode: zk.Persistent, ACL: p.line.ACL}
}

// counts reports whether the mark of that name belongs to a contender that blocked us. A mark with a foreign name
// counts.
func (p *position) counts(name string) bool {
	c, ok := ParseContender(name, p.line.Markers)
	return name != p.self.Name && (!ok || p.line.Blocks(c))
}

// leaveMark makes our mark, if our node is still there, and returns the names of the marks that count, and of those
// that do not: in one round trip, as a rule.
func (p *position) leaveMark(ctx context.Context, dir string) (count, idle []string, err error) {
	sess, tries := p.own.sess, 0
	names, err := attempt.Ask(ctx, sess, func() ([]string, error) {
		for {
			b := sess.Batch()
			made := b.Multi(zk.CheckOp(p.nodes[0].path, -1), zk.CreateNodeOp(p.marked()))
			listed := b.Children(dir)
			b.Send()
			_, err := made.Get(ctx)
			failed, _ := errors.AsType[*zk.MultiError](err)
			switch {
			case err == nil:
			case failed == nil:
				return nil, err
			case failed.Index == 0 && failed.Err == zk.NoNode:
				return nil, ErrGone
			case failed.Err == zk.NodeExists: // only the answer to an earlier attempt was lost
			case failed.Err == zk.NoNode:
				if tries++; tries > attempt.MaxRemakes {
					return nil, fmt.Errorf("line: %s vanishes as often as it is made: %w", dir, err)
				}
				if err := p.line.makeParents(ctx, sess, dir); err != nil {
					return nil, err
				}
				continue
			default:
				return nil, err
			}
			children, err := listed.Get(ctx)
			if errors.Is(err, zk.NoNode) { // another client has deleted the directory meanwhile, and our mark
				continue
			}
			return children.Names, err
		}
	})
	for _, name := range names {
		switch {
		case p.counts(name):
			count = append(count, name)
		case name != p.self.Name:
			idle = append(idle, name)
		}
	}
	return count, idle, err
}

// outwait waits for a delay to pass. Our mark is removed meanwhile: a contender that is lost while it waits has not
// started, and must not make others wait.
func (p *position) outwait(ctx context.Context, left time.Duration) error {
	timer := time.NewTimer(left)
	defer timer.Stop()
	sess := p.own.sess
	_, err := attempt.Ask(ctx, sess, func() (none struct{}, err error) {
		if err = sess.Delete(ctx, p.mark, -1); errors.Is(err, zk.NoNode) {
			err = nil
		}
		return none, err
	})
	if err != nil {
		return err
	}
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-sess.Context().Done():
		return sess.Err()
	}
}

// lost returns which of the given marks belong to contenders that were lost, and the longest delay that is left of
// those, except the ones in passed.
func (p *position) lost(ctx context.Context, names, passed []string) (left time.Duration, lost []string, err error) {
	lost, err = attempt.Ask(ctx, p.own.sess, func() ([]string, error) {
		left = 0
		return p.lostNow(ctx, names, func(name string, rests time.Duration) {
			if !slices.Contains(passed, name) {
				left = max(left, rests)
			}
		})
	})
	return left, lost, err
}

func (p *position) lostNow(
	ctx context.Context, names []string, found func(name string, left time.Duration),
) (lost []string, err error) {
	dir, sess := path.Dir(p.mark), p.own.sess
	marks := []string{p.mark} // made a moment ago, by the server's clock
	for _, name := range names {
		marks = append(marks, attempt.Join(dir, name))
	}
	nodes := make(map[string]*zk.Future[zk.Existence], len(marks))
	ask := func(b *zk.Batch, mark string) *zk.Future[zk.Data] {
		read := b.Get(mark)
		// A node is looked for after its mark was read: if it is not there, it will not be again.
		nodes[mark] = b.Exists(attempt.Join(p.line.Dir, path.Base(mark)))
		return read
	}
	var now int64
	var noticed []string
	old := make(map[string]zk.Data) // what was noticed was like this
	for mark, f := range attempt.Each(sess, marks, ask) {
		read, err := f.Get(ctx)
		if errors.Is(err, zk.NoNode) {
			if mark == p.mark { // another client has deleted it
				return nil, ErrGone
			}
			continue
		}
		node, nodeErr := nodes[mark].Get(ctx)
		if err := errors.Join(err, nodeErr); err != nil {
			return nil, err
		}
		r := p.record(read.Data)
		switch {
		case mark == p.mark:
			now = read.Stat.Ctime
		case node.Exists:
		case r.Lost:
			lost = append(lost, path.Base(mark))
			found(path.Base(mark), r.left(now-read.Stat.Mtime))
		default:
			noticed = append(noticed, mark)
			old[mark] = read
		}
	}
	for mark, f := range attempt.Each(sess, noticed, func(b *zk.Batch, mark string) *zk.Future[zk.Stat] {
		r := p.record(old[mark].Data)
		r.Lost = true // the first contender that finds another one lost says so
		return b.Set(mark, r.encode(), old[mark].Stat.Version)
	}) {
		switch _, err := f.Get(ctx); {
		case errors.Is(err, zk.NoNode): // it left between the two reads
			continue
		case err != nil && !errors.Is(err, zk.BadVersion): // or another contender was quicker
			return nil, err
		}
		lost = append(lost, path.Base(mark))
		found(path.Base(mark), p.record(old[mark].Data).Delay)
	}
	return lost, nil
}

// record reads a mark. One that cannot be read is not one of ours, and counts with our own delay.
func (p *position) record(data []byte) delayRecord {
	var r delayRecord
	if json.Unmarshal(data, &r) != nil || r.Delay <= 0 {
		return delayRecord{Delay: p.delay}
	}
	return r
}

// left returns how much is left of the delay after so many milliseconds, which are negative if clocks of two servers
// differ.
func (r delayRecord) left(since int64) time.Duration {
	if since > r.Delay.Milliseconds() {
		return 0
	}
	return r.Delay - time.Duration(max(since, 0))*time.Millisecond
}

// clear removes marks of contenders whose delay has passed, and returns ErrGone if our own node has gone meanwhile.
func (p *position) clear(ctx context.Context, names []string) error {
	if len(names) == 0 {
		return nil
	}
	_, err := attempt.Ask(ctx, p.own.sess, func() (none struct{}, err error) {
		var node *zk.Future[zk.Existence] // asked for behind the last of them
		for _, f := range attempt.Each(p.own.sess, names, func(b *zk.Batch, name string) *zk.Future[struct{}] {
			gone := b.Delete(attempt.Join(path.Dir(p.mark), name), -1)
			if name == names[len(names)-1] {
				node = b.Exists(p.nodes[0].path)
			}
			return gone
		}) {
			if _, err := f.Get(ctx); err != nil && !errors.Is(err, zk.NoNode) {
				return none, err
			}
		}
		e, err := node.Get(ctx)
		if err == nil && !e.Exists {
			err = ErrGone
		}
		return none, err
	})
	return err
}

// releaseMarked deletes our nodes and our marks, in one transaction.
func (o *Own) releaseMarked() *attempt.Removal {
	if len(o.positions) == 1 {
		return o.positions[0].releaseMarked()
	}
	all := o.Paths()
	for _, p := range o.positions {
		all = append(all, p.mark)
	}
	b := o.sess.Batch()
	sent := b.Multi(attempt.Deletions(all)...)
	b.Send()
	return attempt.RemoveBy(func() error {
		if _, err := sent.Get(context.Background()); err == nil || o.sess.Err() != nil {
			return nil //nolint:nilerr // the nodes end with the session, and the marks then say what is true
		}
		// Something is gone already, or the answer is lost: each position by itself.
		var left []*attempt.Removal
		for _, p := range o.positions {
			left = append(left, p.releaseMarked())
		}
		return attempt.WaitAll(left)
	})
}

func (p *position) releaseMarked() *attempt.Removal {
	sess, nodes := p.own.sess, paths(p.nodes)
	ops := attempt.Deletions(append(slices.Clone(nodes), p.mark))
	send := func() *zk.Future[[]zk.Result] {
		b := sess.Batch()
		defer b.Send()
		return b.Multi(ops...)
	}
	sent := send()
	return attempt.RemoveBy(func() error {
		for {
			_, err := sent.Get(context.Background())
			failed, _ := errors.AsType[*zk.MultiError](err)
			switch {
			case err == nil, sess.Err() != nil:
				return nil //nolint:nilerr // the node ends with the session, and the mark then says what is true
			case failed != nil:
				return p.removeApart(nodes, failed)
			case zk.OutcomeOf(err) == zk.Refused:
				_ = attempt.Pause(context.Background(), sess, 0)
			}
			sent = send()
		}
	})
}

// removeApart deletes our nodes after the transaction that was to delete them with the mark was refused.
//
// If one of the nodes is missing, either only the answer to an earlier attempt was lost, and the mark has gone with the
// nodes; or another client has deleted the node, and that is what the mark is there to tell, if there was anything to
// lose. If the mark is missing, it was not made, and will not be: requests of one session are executed in their order,
// and one that was under way when the connection broke is not executed after it.
func (p *position) removeApart(nodes []string, failed *zk.MultiError) error {
	removal := attempt.Remove(p.own.sess, nodes...)
	var err error
	switch {
	case failed.Err != zk.NoNode:
		err = failed
	case failed.Index < len(nodes) && !p.started:
		err = attempt.Remove(p.own.sess, p.mark).Wait(context.Background())
	}
	return errors.Join(err, removal.Wait(context.Background()))
}

package barrier

// What a member of a double barrier asks about its round.

import (
	"context"
	"errors"
	"path"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// A question is about the ready node of a member's round.
type question struct {
	ready   *zk.Future[zk.WatchedData]
	dir     *zk.Future[zk.Existence] // the barrier's node; nil in a large barrier
	changed <-chan struct{}          // closed if the connection has changed since before it was asked
}

// ask adds the question to b.
func (m *Member) ask(b *zk.Batch) *question {
	d := m.double
	q := &question{}
	_, q.changed = m.sess.State()
	q.ready = b.GetW(d.ready())
	if d.parties <= smallBarrier {
		q.dir = b.Exists(d.path)
	}
	return q
}

func (q *question) abandon() { q.ready.Abandon() }

// failed reports whether it is known that no answer comes.
func (q *question) failed() bool {
	select {
	case <-q.ready.Done():
		_, err := q.ready.Get(context.Background())
		return err != nil && !errors.Is(err, zk.NoNode)
	default:
		return false
	}
}

// learn takes the answers, and asks again if the connection breaks first. The member's node must be there: as long as
// it is, the ready node is that of its round.
func (m *Member) learn(ctx context.Context) error {
	for {
		if m.asked == nil {
			b := m.sess.Batch()
			m.asked = m.ask(b)
			b.Send()
		}
		err := m.take(ctx)
		if err == nil {
			return nil
		}
		if err := line.AwaitRetry(ctx, m.sess, err); err != nil {
			return err
		}
	}
}

// take takes the answers to the pending question, which is none any more then. If the ready node is not that of the
// member's round there is no watch.
func (m *Member) take(ctx context.Context) error {
	q := m.asked
	m.asked = nil
	ready, err := q.ready.Get(ctx)
	if err == nil {
		if m.round == 0 {
			m.round, m.lowest = ready.Stat.Czxid, memberName(string(ready.Data))
		}
		if m.round != ready.Stat.Czxid {
			ready.Watch.Close()
			return nil
		}
		m.signal, m.changed = ready.Watch, q.changed
		return nil
	}
	q.abandon()
	if !errors.Is(err, zk.NoNode) || m.round != 0 {
		return err
	}
	// A party of kazoo's has begun to leave. What comes from now on is not of this round.
	var dir zk.Existence
	if q.dir != nil {
		dir, err = q.dir.Get(ctx)
	} else {
		dir.Stat, _, err = m.sess.Exists(ctx, m.double.path)
	}
	m.round = dir.Stat.Pzxid
	return err
}

// memberName returns the name of a member, or "" if it cannot be one: what the ready node of another project says.
func memberName(name string) string {
	if path.Base(name) != name || name == readyName || zk.ValidatePath("/"+name) != nil {
		return ""
	}
	return name
}

package barrier

// Coming again: a round of a small double barrier by parties that were in the one before.

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// The parties of a round come again with names by which the lowest member stays the lowest, see nodeName. They expect
// that: the lowest one leads. It watches the list of members and opens the barrier, and at the end it closes it, as in
// every round. The others rely on it. They write twice, to come and to leave, and read nothing: a persistent watch on
// the ready node tells them of the opening and of the end, see news. If anything is not as expected, a party does what
// it does in its first round, from where it is: it looks.

// A past is what a party knows that has left a barrier closed.
type past struct {
	version int32    // of the barrier's node
	name    nodeName // of the party's node
	leader  nodeName // of the lowest member's node; zero if that has another form
	news    *news    // or nil
}

// nodeName is the name of a party's node. A party that comes again after a round keeps the GUID. The turn makes each
// name new: a request that is done late can do something to this round's node only.
type nodeName struct {
	guid string
	turn uint32
}

func newNodeName() nodeName { return nodeName{guid: attempt.NewGUID()} }

const turnDigits = 8

func (n nodeName) String() string { return fmt.Sprintf("%s-%0*x", n.guid, turnDigits, n.turn) }

func (n nodeName) next() nodeName { return nodeName{n.guid, n.turn + 1} }

// parseNodeName returns a zero name if a name has another form.
func parseNodeName(name string) nodeName {
	at := len(name) - turnDigits
	if at < 2 || name[at-1] != '-' {
		return nodeName{}
	}
	if _, err := hex.DecodeString(name[at:]); err != nil {
		return nodeName{}
	}
	turn, err := strconv.ParseUint(name[at:], 16, 32)
	if err != nil {
		return nodeName{}
	}
	return nodeName{name[:at-1], uint32(turn)}
}

// reliance is how long a party relies on the leader before it looks whether that is there.
const reliance = 100 * time.Millisecond

// keepNews is how long a party that has left keeps its news, for when it comes again.
const keepNews = 10 * time.Second

// news tells a party of openings and closings. It belongs to one party at a time.
type news struct {
	sess  *zk.Session
	watch *zk.Watch // persistent, on the ready node
}

func (n *news) drop() {
	if n != nil {
		n.watch.Close()
	}
}

// newsOf returns the news for a party that comes again, or nil if it has to do without: in a large barrier the leader
// would list too much, and servers before 3.6 have no persistent watches.
func (d *Double) newsOf(ctx context.Context, sess *zk.Session, last *past) *news {
	n := last.news
	if n != nil && n.sess == sess {
		return n
	}
	n.drop()
	if d.parties > smallBarrier || last.leader == (nodeName{}) || d.dated.Load() {
		return nil
	}
	watch, err := sess.Watch(ctx, d.ready())
	if err != nil {
		d.dated.Store(errors.Is(err, zk.Unimplemented))
		return nil
	}
	return &news{sess, watch}
}

// leftClosed remembers that the round's last member has closed the barrier.
func (m *Member) leftClosed() {
	d := m.double
	p := &past{version: m.version, name: m.node, leader: parseNodeName(m.lowest), news: m.news}
	m.news = nil
	if earlier := d.last.Swap(p); earlier != nil {
		earlier.news.drop()
	}
	if p.news != nil {
		time.AfterFunc(keepNews, func() {
			if d.last.CompareAndSwap(p, nil) {
				p.news.drop()
			}
		})
	}
}

// attend waits for the opening as a party that comes again. It returns nothing if the party has to look by itself; then
// the news are dropped.
func (e *entrant) attend(ctx context.Context) (*Member, error) {
	m, err := e.rely(ctx)
	if m == nil {
		e.news.drop()
		e.news = nil
	}
	return m, err
}

func (e *entrant) rely(ctx context.Context) (*Member, error) {
	// What has come before the creation, and what after it, cannot be told apart.
	for {
		event, ok := e.news.watch.Poll()
		if !ok {
			break
		}
		switch event.Type {
		case zk.EventDeleted, zk.EventDataChanged: // the end of the last round
		case zk.EventCreated:
			return e.verify(ctx)
		default:
			return nil, nil
		}
	}
	if e.leader == e.name {
		return e.lead(ctx)
	}
	wait, cancel := context.WithTimeoutCause(ctx, reliance, errPatience)
	defer cancel()
	event, err := e.news.watch.Next(wait)
	switch {
	case err == nil && event.Type == zk.EventCreated:
		return e.relied(), nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	default:
		return nil, nil
	}
}

// verify makes sure that the barrier was opened after the party came.
func (e *entrant) verify(ctx context.Context) (*Member, error) {
	stat, exists, err := e.sess.Exists(ctx, e.double.ready())
	if err != nil || !exists || stat.Czxid < e.czxid {
		return nil, nil //nolint:nilerr // it looks again
	}
	m := e.relied()
	m.round = stat.Czxid
	return m, nil
}

// relied returns the membership of a party that takes the leader for the lowest member.
func (e *entrant) relied() *Member {
	m := newMember(e)
	m.lowest = e.leader.String()
	return m
}

// lead waits until all have come, and opens the barrier.
func (e *entrant) lead(ctx context.Context) (*Member, error) {
	for {
		list := e.sess.Batch()
		listed := list.ChildrenW(e.double.path)
		list.Send()
		children, err := listed.Get(ctx)
		if err != nil {
			listed.Abandon()
			return nil, nil //nolint:nilerr // it looks again
		}
		m, again, err := e.leadWith(ctx, children)
		children.Watch.Close()
		if !again {
			return m, err
		}
	}
}

// leadWith opens the barrier if all have come, and otherwise waits until it makes sense to list them again.
func (e *entrant) leadWith(ctx context.Context, children zk.WatchedChildren) (m *Member, again bool, err error) {
	if names := members(children.Names); len(names) >= e.double.parties {
		m, err = e.openBarrier(ctx, names)
		return m, false, err
	}
	event, err := next(ctx, e.changed, e.news.watch, children.Watch)
	return nil, err == nil && event.Type == zk.EventChildrenChanged, err
}

// askLeader finds out the round of a member that has come again, when there is no ready node any more. If the leader is
// gone, too, or has not opened the barrier, those that came before this member are of its round; to wait for others
// could be to wait for ever, because they may have come for the next round.
func (m *Member) askLeader(ctx context.Context) error {
	stat, exists, err := m.sess.Exists(ctx, m.path(m.lowest))
	if err != nil {
		return err
	}
	m.round, m.lowest = m.czxid, ""
	if exists && stat.Mzxid > stat.Czxid {
		m.round = stat.Mzxid
	}
	return nil
}

// listenToNews waits until the lowest member says that the round is over, or, without an error, until it makes sense to
// look. After a while it looks whether that member is there.
func (m *Member) listenToNews(ctx context.Context) (over bool, err error) {
	for limit := reliance; ; {
		wait, cancel := context.WithTimeoutCause(ctx, limit, errPatience)
		event, err := m.news.watch.Next(wait)
		cancel()
		select {
		case <-m.changed:
			return false, err
		default:
		}
		switch {
		case event.Type == zk.EventCreated: // the opening of this round
		case err == nil:
			return event.Type == zk.EventDataChanged, nil
		case errors.Is(err, errPatience) && limit == reliance:
			_, there, err := m.sess.Exists(ctx, m.path(m.lowest))
			if err != nil || !there {
				return false, nil //nolint:nilerr // it looks again
			}
			limit = patience
		case errors.Is(err, errPatience):
			return false, nil
		default:
			return false, err
		}
	}
}

// stale reports whether the news cannot tell the end of the member's round: they have a gap, or a party of kazoo's has
// begun to leave.
func (m *Member) stale() bool {
	select {
	case <-m.changed:
		return true
	default:
	}
	for {
		event, ok := m.news.watch.Poll()
		if !ok {
			return false
		}
		if event.Type != zk.EventCreated {
			return true
		}
	}
}

package barrier

// What a party that has come to a double barrier sees.

import (
	"context"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// A look asks whether the barrier is open, and how many have come.
type look struct {
	entrant *entrant
	self    *zk.Future[zk.Existence] // nil if asked together with its creation
	ready   *zk.Future[zk.WatchedExistence]

	// How many have come. At most one is not nil.
	dir     *zk.Future[zk.Existence]       // in a large barrier
	names   *zk.Future[zk.Children]        // in a small one
	watched *zk.Future[zk.WatchedChildren] // of the leader
}

// look adds the questions to b. The ready node comes before the count: if it is counted as a party, although it was not
// there, then another party has opened the barrier in between.
func (e *entrant) look(b *zk.Batch) *look {
	d := e.double
	l := &look{entrant: e}
	if e.czxid != 0 {
		l.self = b.Exists(e.path())
	}
	l.ready = b.ExistsW(d.ready())
	switch {
	case e.role == relying:
	case e.role == leading:
		l.watched = b.ChildrenW(d.path)
	case d.parties <= smallBarrier:
		l.names = b.Children(d.path)
	default:
		l.dir = b.Exists(d.path)
	}
	return l
}

func (l *look) abandon() {
	l.ready.Abandon()
	if l.watched != nil {
		l.watched.Abandon()
	}
}

// sight is what a look has found.
type sight struct {
	open    bool
	ready   zk.Stat
	watches []*zk.Watch // on the ready node, and of the leader on the list of members
	names   []string    // of the members, if there are enough
	last    bool        // with names: this party is the one to open the barrier
}

// opened reports whether the barrier was opened after the look.
func (s *sight) opened() bool {
	if len(s.watches) == 0 {
		return false
	}
	event, _ := s.watches[0].Poll()
	return event.Type == zk.EventCreated
}

func (s *sight) close() {
	for _, w := range s.watches {
		w.Close()
	}
}

// get waits for the answers. It returns line.ErrGone if another client has deleted the entrant's node.
func (l *look) get(ctx context.Context) (sight, error) {
	if l.self != nil {
		self, err := l.self.Get(ctx)
		if err == nil && !self.Exists {
			err = line.ErrGone
		}
		if err != nil {
			l.abandon()
			return sight{}, err
		}
	}
	ready, err := l.ready.Get(ctx)
	if err != nil {
		l.abandon()
		return sight{}, err
	}
	s := sight{open: ready.Exists, ready: ready.Stat, watches: []*zk.Watch{ready.Watch}}
	if l.watched != nil {
		members, err := l.watched.Get(ctx)
		if err != nil {
			l.abandon()
			return sight{}, err
		}
		s.watches = append(s.watches, members.Watch)
		s.names, s.last = l.enough(members.Names), true
		return s, nil
	}
	if s.open {
		return s, nil
	}
	if s.names, s.last, err = l.count(ctx); err != nil {
		s.close()
	}
	return s, err
}

// enough returns the names of the members among the children, or none if there are not enough.
func (l *look) enough(children []string) []string {
	if names := members(children); len(names) >= l.entrant.double.parties {
		return names
	}
	return nil
}

// count returns the names of the members, or none if there are not enough. Last says that the entrant came last.
func (l *look) count(ctx context.Context) (names []string, last bool, err error) {
	d, sess := l.entrant.double, l.entrant.sess
	var stat zk.Stat // of the barrier's node
	switch {
	case l.entrant.role == relying:
		return nil, false, nil
	case l.names != nil:
		children, err := l.names.Get(ctx)
		if err != nil {
			return nil, false, err
		}
		names, stat = children.Names, children.Stat
	default:
		dir, err := l.dir.Get(ctx)
		if err != nil || int(dir.Stat.NumChildren) < d.parties {
			return nil, false, err
		}
		if names, stat, err = sess.Children(ctx, d.path); err != nil {
			return nil, false, err
		}
	}
	return l.enough(names), stat.Pzxid == l.entrant.czxid, nil
}

// members returns the names of the members among the children of a barrier's node, sorted. Any child but the ready node
// is one: Curator and kazoo give them no common form.
func members(children []string) []string {
	names := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyName })
	slices.Sort(names)
	return names
}

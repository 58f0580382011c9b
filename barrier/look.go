package barrier

// What a party that has come to a double barrier sees.

import (
	"context"
	"errors"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A look asks whether the barrier is open, and how many have come.
type look struct {
	entrant *entrant
	self    *zk.Future[zk.Existence] // nil if asked together with its creation
	ready   *zk.Future[zk.WatchedExistence]
	dir     *zk.Future[zk.Existence] // of a large barrier; nil otherwise
	names   *zk.Future[zk.Children]  // of a small one; nil otherwise
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
	if d.parties <= smallBarrier {
		l.names = b.Children(d.path)
	} else {
		l.dir = b.Exists(d.path)
	}
	return l
}

func (l *look) abandon() { l.ready.Abandon() }

// sight is what a look has found.
type sight struct {
	open  bool
	ready zk.Stat
	watch *zk.Watch // on the ready node
	names []string  // of the members, if there are enough
	last  bool      // with names: since the entrant came no member has come or gone
}

// get waits for the answers. It returns attempt.ErrGone if another client has deleted the entrant's node.
func (l *look) get(ctx context.Context) (sight, error) {
	if l.self != nil {
		self, err := l.self.Get(ctx)
		if err == nil && !self.Exists {
			err = attempt.ErrGone
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
	s := sight{open: ready.Exists, ready: ready.Stat, watch: ready.Watch}
	if s.open {
		return s, nil
	}
	if s.names, s.last, err = l.count(ctx); err != nil {
		s.watch.Close()
	}
	if errors.Is(err, zk.NoNode) { // and so is all that was below the barrier's node
		err = attempt.ErrGone
	}
	return s, err
}

// count returns the names of the members, or none if there are not enough. Last says that the entrant came last.
func (l *look) count(ctx context.Context) (names []string, last bool, err error) {
	d, sess := l.entrant.double, l.entrant.sess
	var stat zk.Stat // of the barrier's node
	if l.names != nil {
		children, err := l.names.Get(ctx)
		if err != nil {
			return nil, false, err
		}
		names, stat = children.Names, children.Stat
	} else {
		dir, err := l.dir.Get(ctx)
		if err != nil || int(dir.Stat.NumChildren) < d.parties {
			return nil, false, err
		}
		if names, stat, err = sess.Children(ctx, d.path); err != nil {
			return nil, false, err
		}
	}
	if names = members(names); len(names) < d.parties {
		return nil, false, nil
	}
	return names, stat.Pzxid == l.entrant.czxid, nil
}

// members returns the names of the members among the children of a barrier's node, sorted. Any child but the ready node
// is one: Curator and kazoo give them no common form.
func members(children []string) []string {
	names := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return name == readyName })
	slices.Sort(names)
	return names
}

package barrier

// The double barrier: configuration and entering.

import (
	"context"
	"errors"
	"path"
	"slices"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Double is a barrier that its parties enter together and leave together. It works on the nodes of Curator's
// DistributedDoubleBarrier and kazoo's DoubleBarrier: a member node for each party, and a node named ready that opens
// the barrier. It may be used by any number of goroutines; each Enter is a party of its own.
type Double struct {
	base
	parties int
	last    atomic.Pointer[past] // what the party knows that left the barrier closed and has not come again; or nil
	dated   atomic.Bool          // the servers have no persistent watches
	mute    atomic.Bool          // we may not write to our own nodes
}

// smallBarrier is how many parties list each other when they come. With more of them, each asks for their number, and
// only the last lists them.
const smallBarrier = 64

// maxRequest bounds the transaction that opens a barrier, in bytes: servers refuse requests of more than a mebibyte.
const maxRequest = 1 << 19

// NewDouble returns the double barrier at path for that many parties, which no other recipe may use. All users must
// pass the same number. It does not contact the server: the path and missing parents are created when they are needed.
// It returns an error if the path, the number or the configuration is invalid, or if there are more parties than one
// transaction can let in: about 7,000 with a short path. The error says how many.
func NewDouble(client *zk.Client, path string, parties int, cfg Config) (*Double, error) {
	base, err := newBase(client, path, cfg.Label, cfg.ACL, cfg.AnyACL)
	if err != nil {
		return nil, err
	}
	if err := checkParties(path, parties); err != nil {
		return nil, err
	}
	return &Double{base: base, parties: parties}, nil
}

func checkParties(path string, parties int) error {
	const perCheck = 64 // a GUID, and the operation around it
	most := maxRequest / (len(path) + perCheck)
	if parties < 1 || parties > most {
		return attempt.Bad("barrier: %s: %d parties; use 1 to %d", path, parties, most)
	}
	return nil
}

func (d *Double) ready() string { return d.path + "/" + readyName }

const readyName = "ready"

// errAgain says that the barrier has changed and the party starts again.
var errAgain = errors.New("changed")

// Enter waits until as many parties have come as the barrier has, and returns the membership of this one, which must be
// ended with Leave. If more parties come while the barrier is open, they enter as well.
//
// A party that has seen the barrier open has entered, even if others are leaving already. A barrier that was left open
// by parties that all died is closed first. Enter survives lost connections. If the session ends while it waits, it
// comes again under the next session. If ctx ends first, Enter returns ctx's cause; it returns the client's error if
// the client is closed or its credentials are refused. When it returns an error, the party does not count any more, or
// its node is still being removed in the background; the barrier may have opened with it just before (CURATOR-318).
func (d *Double) Enter(ctx context.Context) (*Member, error) {
	e := &entrant{double: d}
	m, err := run(ctx, &d.base, func(sess *zk.Session) (*Member, error) {
		for {
			name, err := e.takeBack(ctx, sess)
			if err != nil {
				return nil, err
			}
			e = &entrant{double: d, sess: sess, name: name, unsure: e.unsure && name != nodeName{}}
			m, err := e.enter(ctx)
			if !errors.Is(err, errAgain) {
				return m, err
			}
		}
	})
	if err != nil {
		if e.unsure {
			e.settleLater()
		}
		return nil, d.failed(err)
	}
	return m, nil
}

// enter makes one attempt. If a party has just left the barrier closed it comes at once, with the version that the
// barrier's node had then. It loses nothing by that: if the node has another version now its own is not created, and if
// the barrier is open it finds that as it does when another party opens the barrier between its look and its coming, or
// by its news.
func (e *entrant) enter(ctx context.Context) (*Member, error) {
	d, sess := e.double, e.sess
	if last := d.last.Load(); last != nil && e.name == (nodeName{}) && d.last.CompareAndSwap(last, nil) {
		e.name, e.version, e.leader = last.name.next(), last.version, last.leader.next()
		e.news = d.newsOf(ctx, sess, last)
	} else {
		v, err := d.admission(ctx, sess)
		if err != nil {
			return nil, err
		}
		if e.version = v.stat.Version; e.name == (nodeName{}) {
			e.name = newNodeName()
		}
		if v.open {
			e.open = v.ready.Czxid
		}
	}
	if err := e.come(ctx); err != nil {
		e.news.drop()
		return nil, err
	}
	var m *Member
	var err error
	if e.news != nil {
		m, err = e.attend(ctx)
	}
	if m == nil && err == nil {
		m, err = e.wait(ctx)
	}
	if err != nil {
		e.withdraw()
	}
	return m, err
}

// wait waits until the barrier is open, and opens it when enough parties have come.
func (e *entrant) wait(ctx context.Context) (*Member, error) {
	for {
		l := e.pending
		if e.pending = nil; l == nil {
			_, e.changed = e.sess.State()
			b := e.sess.Batch()
			l = e.look(b)
			b.Send()
		}
		s, err := l.get(ctx)
		if err != nil {
			if err := attempt.Again(ctx, e.sess, err); err != nil {
				return nil, err
			}
			continue
		}
		m, err := e.act(ctx, s)
		s.watch.Close()
		if m != nil || err != nil {
			return m, err
		}
	}
}

// act does what follows from a look: it returns the membership, or nothing once it makes sense to look again.
func (e *entrant) act(ctx context.Context, s sight) (*Member, error) {
	if s.open {
		if s.ready.Czxid > e.czxid {
			return e.entered(ctx), nil
		}
		if s.ready.Czxid == e.open {
			return e.announce(ctx)
		}
		// It is older than our node, and we have not seen that parties were inside. Start again, and look closer.
		return nil, errAgain
	}
	if s.names != nil && (s.last || e.overdue) {
		return e.openBarrier(ctx, s.names)
	}
	wait := ctx
	if s.names != nil { // the one that came after us opens the barrier, if it lives
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeoutCause(ctx, patience, errPatience)
		defer cancel()
	}
	event, err := next(wait, e.changed, s.watch)
	switch {
	case event.Type == zk.EventCreated: // whatever has become of it since (regression of GH-1290)
		return e.entered(ctx), nil
	case errors.Is(err, errPatience):
		e.overdue = true
		return nil, nil
	case err != nil:
		return nil, attempt.Again(ctx, e.sess, err)
	default:
		return nil, nil
	}
}

// announce makes sure that the last member does not close the barrier over this party, which has come while the barrier
// is open: it writes to the barrier's node, provided that the barrier is open at that moment. The last member closes it
// on condition of the version that the barrier's node had when it saw no other member. So either it looks again, and
// sees this party; or the barrier was closed before, and this party starts again. Without the right to write there, a
// party that comes late enters as peers' do, unannounced.
func (e *entrant) announce(ctx context.Context) (*Member, error) {
	d := e.double
	for {
		data, stat, err := e.sess.Get(ctx, d.path)
		if err == nil {
			_, err = e.sess.Multi(ctx,
				zk.SetOp(d.path, data, stat.Version), zk.CheckOp(d.ready(), -1), zk.CheckOp(e.path(), -1))
		}
		switch {
		case errors.Is(err, zk.BadVersion): // by another late party, or our own lost request
			continue
		case err == nil, errors.Is(err, zk.NoAuth):
			return e.entered(ctx), nil
		case errors.Is(err, zk.NoNode):
			return nil, errAgain
		}
		if err := attempt.Again(ctx, e.sess, err); err != nil {
			return nil, err
		}
	}
}

// openBarrier lets all in. The transaction succeeds only if as many members are there at that moment as the barrier
// has, among them this one. So it does no harm however often it is done, and however late.
func (e *entrant) openBarrier(ctx context.Context, names []string) (*Member, error) {
	d := e.double
	lowest := slices.Min(names)
	names = slices.DeleteFunc(names, func(name string) bool { return name == e.name.String() })
	ops := []zk.Op{e.mark()}
	for _, name := range names[:d.parties-1] {
		ops = append(ops, zk.CheckOp(d.path+"/"+name, -1))
	}
	ops = append(ops, zk.CreateNodeOp(d.node(d.ready(), []byte(lowest), zk.Persistent)))
	results, err := e.sess.Multi(ctx, ops...)
	switch {
	case err == nil:
		m := newMember(e)
		m.round, m.lowest = results[0].Zxid, lowest
		return m, nil
	case errors.Is(err, zk.NodeExists), errors.Is(err, zk.NoNode):
		return nil, nil
	case errors.Is(err, zk.NoAuth) && !d.mute.Swap(true):
		return e.openBarrier(ctx, append(names, e.name.String()))
	default:
		return nil, attempt.Again(ctx, e.sess, err)
	}
}

// mark is the part of the transaction that opens the barrier which checks the party's own node. A leader writes to it
// instead. So its mzxid tells those that rely on it the czxid of the ready node, even after that is gone.
func (e *entrant) mark() zk.Op {
	if e.news == nil || e.double.mute.Load() {
		return zk.CheckOp(e.path(), -1)
	}
	return zk.SetOp(e.path(), e.double.data, -1)
}

// entered returns the membership after the barrier was seen open. It reads the ready node, once, and watches it.
func (e *entrant) entered(ctx context.Context) *Member {
	m := newMember(e)
	_ = m.learn(ctx) // or Leave does
	return m
}

// learn reads the ready node, and watches it. The member's node must be there: as long as it is, the ready node is that
// of its round.
func (m *Member) learn(ctx context.Context) error {
	d := m.double
	_, err := attempt.Ask(ctx, m.sess, func() (none struct{}, err error) {
		_, m.changed = m.sess.State()
		data, stat, watch, err := m.sess.GetW(ctx, d.ready())
		if err == nil {
			m.round, m.lowest, m.signal = stat.Czxid, memberName(string(data)), watch
			return none, nil
		}
		if !errors.Is(err, zk.NoNode) {
			return none, err
		}
		// A party of kazoo's has begun to leave.
		if m.lowest != "" {
			err = m.askLeader(ctx)
		} else {
			var dir zk.Stat
			dir, _, err = m.sess.Exists(ctx, d.path)
			m.round = dir.Pzxid // what comes from now on is not of this round
		}
		return none, err
	})
	return err
}

// memberName returns the name of a member, or "" if it cannot be one: it is what another project wrote to the ready
// node.
func memberName(name string) string {
	if path.Base(name) != name || name == readyName || zk.ValidatePath("/"+name) != nil {
		return ""
	}
	return name
}

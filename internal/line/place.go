package line

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-a3166700/turnstile/zk"
)

// ErrGone says that somebody else deleted our node: the place in the line is lost, the session is not.
var ErrGone = errors.New("line: our node was deleted by somebody else")

// A Line is a path at which contenders stand, and the rules of who waits for whom.
type Line struct {
	Dir     string                   // the recipe's path
	Prefix  func(guid string) string // a contender's name up to its sequence number
	Twin    func(guid string) string // likewise for a second node, for those who do not know the first; nil for none
	Markers []Marker                 // who is a contender; other children are ignored
	Blocks  func(Seat) bool          // which of the seats ahead must leave before we are served
	Data    func() []byte            // what a new node carries
	ACL     []zk.ACL                 // of the nodes and of the parents that are made for them; open if nil

	// Change tells of a seat ahead whether another may stand at its number, or ahead of it, when it is gone: where seats change their
	// kind (Become, Beside). Nil says that none may.
	Change func(Seat) bool

	// Unordered is a line in which it does no harm that two are first: it goes on where numbers are no order any more. See ErrWrap.
	Unordered bool

	// Lasting makes missing parents as persistent nodes. Otherwise they are containers, which servers remove when they are empty:
	// kazoo does not find out that they have gone.
	Lasting bool

	mu      sync.Mutex // guards what follows; never held while an answer is waited for
	leaving *departure // not on its way to the server yet; nil if there is none
	head    *Place     // of ours, which was first when it was last heard of; nil if there is none
	behind  map[string]*follower

	vigil vigil // of the places that are first
}

// unlooked is how many stand ahead of a place for which nobody has looked yet. It must not count as first, least of all when it is
// left: see lookAfter.
const unlooked = 1 << 30

// A Place is our own node in a line, under one session. It ends with Leave, or with its session.
//
// A Place is used by one goroutine at a time, except that Leave may interrupt Watch.
type Place struct {
	line *Line
	sess *zk.Session
	guid string
	node zk.Created
	twin *Bundle // our second node; nil if the line has none
	seat Seat

	nearest Seat   // the seat to wait for, if ahead > 0
	ahead   int    // how many seats block us, as of the last look
	waited  bool   // somebody was ahead at some look
	crowd   []Seat // who stood in the line at the last look, if they were few and we were first
	early   *early // the watch on the nearest seat, if that was asked for together with our node

	mark    string        // the path of our mark, which may be there; "" for places without one
	delay   time.Duration // what it tells
	started bool          // what the mark says is true

	mu   sync.Mutex // guards the fields below; never held while anything is waited for
	own  *zk.Watch  // on our own node; nil while not armed
	new  bool       // what was read when own was armed may be news to a holder: our node had been changed before
	left bool
}

// Path returns the path of our node.
func (p *Place) Path() string { return p.node.Path }

// Stat returns what the server told about our node when it was made.
func (p *Place) Stat() zk.Stat { return p.node.Stat }

// Session returns the session that the place belongs to.
func (p *Place) Session() *zk.Session { return p.sess }

// First reports whether nobody who blocks us was ahead at the last look.
func (p *Place) First() bool { return p.ahead == 0 }

// Ahead returns how many seats blocked us at the last look.
func (p *Place) Ahead() int { return p.ahead }

// look lists the line and works out who is ahead; listed is as for list. It returns ErrGone if our own node is not in it.
func (p *Place) look(ctx context.Context, listed *zk.Future[zk.Children]) error {
	children, err := p.list(ctx, listed)
	if err != nil {
		return err
	}
	return p.see(children)
}

// list lists the line's path. Listed has been asked for already; without it, nil, or if it has failed, another is asked for.
func (p *Place) list(ctx context.Context, listed *zk.Future[zk.Children]) ([]string, error) {
	if listed != nil {
		if children, err := listed.Get(ctx); err == nil {
			return children.Names, nil
		}
	}
	for {
		children, _, err := p.sess.Children(ctx, p.line.Dir)
		switch {
		case err == nil:
			return children, nil
		case errors.Is(err, zk.NoNode):
			return nil, ErrGone
		}
		if err := Settle(ctx, p.sess, err); err != nil {
			return nil, err
		}
	}
}

// see works out from the line's children who is ahead of us.
//
// A list that has our node is good enough, even from a server that lags: whoever is ahead was created before us, so a server that
// knows our node knows all of them, and what it misses are leavings, which only make us wait.
func (p *Place) see(children []string) error {
	seats := Seats(children, p.line.Markers)
	if !p.whole(seats) {
		return ErrGone
	}
	p.nearest, p.ahead = Ahead(seats, p.seat, p.line.Blocks)
	p.waited = p.waited || p.ahead > 0
	p.crowd = nil
	if p.ahead == 0 && len(seats) <= maxCrowd {
		p.crowd = seats
	}
	return nil
}

// whole reports whether our nodes are among the seats.
func (p *Place) whole(seats []Seat) bool {
	n := 0
	for _, s := range seats {
		if p.owns(s) {
			n++
		}
	}
	return n == p.line.width()
}

// owns reports whether the seat is ours.
func (p *Place) owns(s Seat) bool {
	return s.Name == p.seat.Name || p.twin != nil && join(p.line.Dir, s.Name) == p.twin.Path()
}

// Paths returns the paths of our nodes: one, or two where the line has a Twin.
func (p *Place) Paths() []string {
	paths := []string{p.node.Path}
	if p.twin != nil {
		paths = append(paths, p.twin.Path())
	}
	return paths
}

// armOwn adds a watch on our own node to b, unless there is one.
func (p *Place) armOwn(b *zk.Batch) *zk.Future[zk.WatchedData] {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own != nil || p.left {
		return nil
	}
	return b.GetW(p.node.Path)
}

// armed waits for the answer to armOwn and keeps its watch. It returns ErrGone if our node does not exist.
func (p *Place) armed(ctx context.Context, f *zk.Future[zk.WatchedData]) error {
	if f == nil {
		return nil
	}
	w, err := f.Get(ctx)
	switch {
	case errors.Is(err, zk.NoNode):
		return ErrGone
	case err != nil:
		f.Abandon()
		return err
	}
	p.mu.Lock()
	keep := !p.left
	if keep {
		p.own = w.Watch
	}
	p.mu.Unlock()
	if !keep {
		w.Watch.Close()
	}
	return nil
}

// ownTouched reports whether our own node was changed or deleted since its watch was set. The watch is spent then, and dropped.
func (p *Place) ownTouched() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.own == nil {
		return true
	}
	if _, fired := p.own.Poll(); !fired {
		return false
	}
	p.own, p.new = nil, true
	return true
}

// heed has f called, on a goroutine of its own, when there is news of our own node, or reports false if that is not watched. A watch that is
// there since we waited costs nothing, and tells without a moment's delay of whoever deletes our node in one transaction with the one
// ahead, whose event came first.
func (p *Place) heed(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.own == nil || p.left:
		return false
	case p.new || p.twin != nil: // there is something to read, or another node to watch
		go f()
	default:
		p.own.AfterFunc(f)
	}
	return true
}

// Watch blocks until a node of ours is deleted by somebody else and then returns ErrGone; it returns the context's cause or the
// session's if that comes first. The first node's data is given to changed, if that is not nil, at first unless it is what we wrote, and
// after each change. It is for holders.
func (p *Place) Watch(ctx context.Context, changed func(data []byte)) error {
	if p.twin == nil {
		return p.watch(ctx, changed)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := make(chan error, 2)
	go func() { first <- p.watch(ctx, changed) }()
	go func() { first <- p.twin.Watch(ctx, nil) }()
	return <-first
}

func (p *Place) watch(ctx context.Context, changed func(data []byte)) error {
	p.mu.Lock()
	var unread *zk.Watch
	if p.new { // armed while we waited, which did not look at the data
		unread, p.own = p.own, nil
	}
	p.mu.Unlock()
	if unread != nil {
		unread.Close()
	}
	for {
		b := p.sess.Batch()
		if f := p.armOwn(b); f != nil {
			b.Send()
			if err := p.armed(ctx, f); err != nil {
				if err := Settle(ctx, p.sess, err); err != nil {
					return err
				}
				continue
			}
			if w, err := f.Get(ctx); err == nil && changed != nil {
				changed(w.Data)
			}
		}
		p.mu.Lock()
		own, left := p.own, p.left
		p.mu.Unlock()
		if left || own == nil {
			return context.Cause(ctx)
		}
		ev, err := own.Next(ctx)
		if err != nil {
			return err
		}
		if ev.Type == zk.EventDeleted {
			return ErrGone
		}
		p.mu.Lock()
		p.own = nil // spent
		p.mu.Unlock()
	}
}

// Others reports whether anybody else stands in the line, ahead or behind.
func (p *Place) Others(ctx context.Context) (bool, error) {
	children, _, err := p.sess.Children(ctx, p.line.Dir)
	return p.others(children), err
}

// Any reports whether a seat of the given sort stands in the line.
func (p *Place) Any(ctx context.Context, sort func(Seat) bool) (bool, error) {
	children, _, err := p.sess.Children(ctx, p.line.Dir)
	return slices.ContainsFunc(Seats(children, p.line.Markers), sort), err
}

func (p *Place) others(children []string) bool {
	return slices.ContainsFunc(Seats(children, p.line.Markers), func(s Seat) bool { return !p.owns(s) })
}

// WatchLine tells found whether anybody else stands in the line, now and whenever somebody has come or gone, until found returns
// false: then it returns nil. Otherwise it returns why it stopped: ctx's cause, the session's, or the server's refusal. It wakes with
// every change of the line, so only who is first may use it.
func (p *Place) WatchLine(ctx context.Context, found func(others bool) bool) error {
	for {
		children, _, watch, err := p.sess.ChildrenW(ctx, p.line.Dir)
		if err != nil {
			if err := Settle(ctx, p.sess, err); err != nil {
				return err
			}
			continue
		}
		if !found(p.others(children)) {
			watch.Close()
			return nil
		}
		_, err = watch.Next(ctx)
		watch.Close()
		if err != nil {
			return err
		}
	}
}

// Leave gives the place up. The removal of our node leaves at once, or together with the creation of the next one if that comes right
// behind (see departure); it is repeated in the background until it is done or the session has ended. Leaving twice is leaving once.
func (p *Place) Leave() *Removal {
	p.abandonEarly()
	if p.mark != "" {
		p.retire() // before the removal, or the server would tell us what we do ourselves
		return p.removeMarked()
	}
	return p.line.depart(p, p.unwatch())
}

// retire ends the watches on our own nodes, now and for good.
func (p *Place) retire() {
	if own := p.unwatch(); own != nil {
		own.Close()
	}
}

// unwatch is retire, but for the watch on our first node, which it returns for the caller to close, or nil if there is none.
func (p *Place) unwatch() *zk.Watch {
	if p.twin != nil {
		p.twin.Retire()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	own := p.own
	p.own, p.left = nil, true
	return own
}

// Settle returns nil for an error after which the same session may be asked again: at once after a lost connection, in
// a while after a refusal that passes, for which it waits. The end of ctx and the end of the session come back as
// their causes, any other error as it is.
func Settle(ctx context.Context, sess *zk.Session, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case sess.Err() != nil:
		return sess.Err()
	case errors.Is(err, zk.ErrConnectionLost):
		return nil
	case Passing(err):
		return pause(ctx, sess)
	default:
		return err
	}
}

// Passing reports whether err tells nothing about what was asked, so that asking again makes sense: a lost connection;
// or the refusal of a server that the session has moved away from (by a connection that was given up, and arrived
// late), that is overloaded, or that was cut off from the others and may only read by now.
func Passing(err error) bool {
	for _, code := range []zk.Code{zk.SessionMoved, zk.ThrottledOp, zk.OperationTimeout, zk.NotReadOnly} {
		if errors.Is(err, code) {
			return true
		}
	}
	return errors.Is(err, zk.ErrConnectionLost)
}

// disarm ends the watch on our own node, for now.
func (p *Place) disarm() {
	p.mu.Lock()
	own := p.own
	p.own = nil
	p.mu.Unlock()
	if own != nil {
		own.Close()
	}
}

// Reserved reports whether a path is the server's own, or that of a node of its own.
func Reserved(path string) bool {
	return path == "/" || path == "/zookeeper" || strings.HasPrefix(path, "/zookeeper/")
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func join(dir, name string) string {
	if dir == "/" {
		return "/" + name
	}
	return dir + "/" + name
}

func (p *Place) String() string { return fmt.Sprintf("%s (%d ahead)", p.node.Path, p.ahead) }

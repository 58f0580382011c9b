// Package line is how Turnstile stands in line: ephemeral sequential nodes below one path, ordered by the number that
// the server gave them. Each waiter watches only the nearest contender ahead. Locks and elections are such lines, with
// different names and different rules about which contenders block which.
//
// A Contender is an entry in a line, of any client. "Ours" are those of this process. An Own is one of ours, and
// a Request is one that was asked for. An Ownership is the time for which ours is first.
package line

// A line and its rules.

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// A Line is a path at which contenders stand, and the rules about which contenders wait for which.
type Line struct {
	Dir     string                   // the recipe's path
	Prefix  func(guid string) string // a contender's name up to its sequence number
	Second  func(guid string) string // likewise for a second node, for clients that do not know the first; nil for none
	Markers []Marker                 // whose children are contenders; others are ignored
	Blocks  func(Contender) bool     // which of the contenders ahead must leave before we are first
	Data    func() []byte            // what a new node carries
	ACL     []zk.ACL                 // of the nodes and of the parents that are made for them; open if nil
	AnyACL  bool                     // accepts directories that exist and grant more than ACL
	Above   bool                     // Dir is only on the way to the nodes: see attempt.Dirs
	There   bool                     // Dir is not made: if it is missing, entering fails with ErrGone

	// Change reports whether, when a contender ahead is gone, another may stand at its number or ahead of it. That can
	// be so where contenders change their kind (Become, Beside). If Change is nil, none may.
	Change func(Contender) bool

	// Fixed makes nodes to whose names the server adds no number: leases of which only the count matters. Every child
	// of the line's path counts as one then, as it does for kazoo.
	Fixed bool

	// Signed puts the random part of a contender, for which its name has no room, into the ACL of its nodes, as an
	// entry for a user that cannot log in. Without it, a creation whose answer is lost could not be told from another
	// one of the session. The data is not ours to use: other programs show it.
	//
	// Such a name comes again once the path was deleted and made again. So a node is ours only if the transaction that
	// made it is (Own.shared). A contender stands in one such line alone, and has no marks.
	Signed bool

	// Unordered says that two contenders may be first without harm. Such a line goes on where numbers are no order any
	// more: see ErrWrap.
	Unordered bool

	// Strangers is told of what stands in the line and does not look for us; or nil.
	Strangers *Strangers
	// Stray is told, by the goroutine that waits, of a node with a contender's name that we wait for, and that belongs
	// to no session; or nil.
	Stray func(name string)

	// Lasting makes missing parents as persistent nodes. Otherwise they are containers, which servers remove when they
	// are empty: kazoo does not notice that they are gone.
	Lasting bool

	mu      sync.Mutex           // guards what follows; never held while an answer is waited for
	pending *pendingRelease      // not on its way to the server yet; nil if there is none
	head    *position            // of ours, which was first when the line was last listed; nil if there is none
	behind  map[string]*follower // by the name of the contender that they wait for

	watcher watcher     // of the ownerships in this line
	joins   joins       // contenders of ours that are joining
	checked atomic.Bool // the directory grants no more than ACL
	marks   atomic.Bool // neither does that of the marks
}

// A name is that of a node of a contender.
type name = attempt.Name

// names are those of one contender's nodes.
func (l *Line) names(guid string) []name {
	first := name{Dir: l.Dir, Prefix: l.Prefix(guid), Fixed: l.Fixed}
	if l.Signed {
		first.Signature = guid
	}
	names := []name{first}
	if l.Second != nil {
		names = append(names, name{Dir: l.Dir, Prefix: l.Second(guid)})
	}
	return names
}

// width is how many nodes a contender has.
func (l *Line) width() int {
	if l.Second != nil {
		return 2
	}
	return 1
}

// creations are the nodes to create for names, with that data.
func (l *Line) creations(names []name, mode zk.Mode, data []byte) []zk.Node {
	nodes := make([]zk.Node, len(names))
	for i, n := range names {
		nodes[i] = zk.Node{Path: n.Path(), Data: data, Mode: mode, ACL: n.Sign(l.ACL)}
	}
	return nodes
}

// mode is that of new nodes.
func (l *Line) mode() zk.Mode {
	if l.Fixed {
		return zk.Ephemeral
	}
	return zk.EphemeralSequential
}

// taken returns how many leases there are among the children of the line's path.
func (l *Line) taken(children []string) int {
	if l.Fixed {
		return len(children)
	}
	return len(Contenders(children, l.Markers))
}

// Empty reports whether no contender stands in any of the lines. One that stands where others may write is an error:
// anyone can have put it there.
func Empty(ctx context.Context, sess *zk.Session, lines ...*Line) (bool, error) {
	listed := make([]*listing, len(lines))
	for i, l := range lines {
		l.Flush()                   // or we would find ourselves in the line
		listed[i] = l.listing(sess) //nolint:contextcheck // others wait for it, too
	}
	for i, l := range lines {
		contenders, err := listed[i].wait(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return false, err
		}
		if slices.ContainsFunc(contenders, l.Blocks) {
			return false, l.checkACL(ctx, sess)
		}
	}
	return true, nil
}

// MakeDir makes the line's path, unless it is there.
func (l *Line) MakeDir(ctx context.Context, sess *zk.Session) error {
	return l.makeParents(ctx, sess, l.Dir)
}

// makeParents makes dirs and what is missing above them.
func (l *Line) makeParents(ctx context.Context, sess *zk.Session, dirs ...string) error {
	return l.dirs().Make(ctx, sess, dirs...)
}

func (l *Line) dirs() attempt.Dirs {
	d := attempt.Dirs{ACL: l.ACL, AnyACL: l.AnyACL, Above: l.Above}
	if l.Lasting {
		d.Keep = attempt.Forever
	}
	return d
}

// checkACL returns an error if the line's directory, or one above it, grants more than its contenders' nodes. It looks
// once, when a contender stands there. From then on only those whom ACL allows to could replace the directory.
func (l *Line) checkACL(ctx context.Context, sess *zk.Session) error {
	return l.checkOnce(ctx, sess, l.Dir, &l.checked)
}

func (l *Line) checkOnce(ctx context.Context, sess *zk.Session, dir string, checked *atomic.Bool) error {
	if l.ACL == nil || l.AnyACL || checked.Load() {
		return nil
	}
	err := l.dirs().Check(ctx, sess, dir)
	if err == nil {
		checked.Store(true)
	}
	return err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

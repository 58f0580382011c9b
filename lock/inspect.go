package lock

// Who holds and who waits.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	stdpath "path"
	"slices"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Kind is the kind of lock that a contender wants.
type Kind int

// The kinds.
const (
	// Exclusive wants the lock for itself alone: a contender of a Mutex, of a Set, of Curator's InterProcessMutex, of
	// kazoo's Lock and WriteLock. LeaderSelector's candidates, and those of kazoo's Election, have the same names.
	Exclusive Kind = iota
	Writer         // wants a read/write lock for writing, in Curator's names
	Reader         // wants a read/write lock for reading
	Candidate      // stands for election, in the names of LeaderLatch or LeaderElectionSupport
	Permit         // has permits of a semaphore, or wants some
)

// String returns the kind's name, in lower case.
func (k Kind) String() string {
	switch k {
	case Exclusive:
		return "exclusive"
	case Writer:
		return "writer"
	case Reader:
		return "reader"
	case Candidate:
		return "candidate"
	case Permit:
		return "permit"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

func kindOf(s line.Contender) Kind {
	switch {
	case isReader(s):
		return Reader
	case s.Marker == line.CuratorWrite:
		return Writer
	case elects(s.Marker):
		return Candidate
	default:
		return Exclusive
	}
}

// Contender is a holder of a lock or a waiter, as other clients see it.
type Contender struct {
	Path    string    // of its node; of the one in Curator's layout if it has two
	Second  string    // of the other one, in kazoo's layout; empty if there is none
	Kind    Kind      // what it wants
	Holder  bool      // it waits for no contender; a Set has its lock when that is so at all of its paths
	MayHold bool      // another program's, which holds unless it looks for the names of those ahead; Holder is false
	Group   int       // contenders of one group wait for each other; those of different ones may hold together
	Owner   Owner     // zero if the contender is not one of ours
	Known   bool      // Owner was there
	Data    []byte    // of the node: an address in Curator's, an identifier in kazoo's, a candidate's id
	Session int64     // whose node it is
	Since   time.Time // when the node was made, by the server's clock
	Token   Token     // of its first hold; after Upgrade and Downgrade, of the hold that it stands for

	// Behind is the path of a node ahead that belongs to no session and that the contender waits for, as a copy of a
	// tree may leave one; empty if there is none. It stays until it is deleted by hand.
	Behind string

	// Revoked is the last request to this contender to release the lock, nil if there was none.
	Revoked *Revocation

	simple bool        // it is the node of a simple lock: the next holder's has the same name
	marker line.Marker // of its name
	czxid  int64       // the transaction that made its node
}

// Inspect returns the holders and waiters of the lock at path, in the order in which they will be served; readers
// hold together. Contenders whose programs do not respect each other's nodes are in different groups. Inspect knows
// all layouts of mutexes and read/write locks, ours, Curator's and kazoo's; elections; and semaphores, each permit by
// itself. A client of Curator's that stands first for a permit makes the permit's node at once, and waits: it is shown
// as a waiter alone. Of a simple lock it shows the holder alone, and a Set at each of its paths. The list is empty if
// there is no contender, or no such path. Contenders that leave meanwhile are left out.
func Inspect(ctx context.Context, client *zk.Client, path string) ([]Contender, error) {
	if err := attempt.ReadArgs("lock", client, path); err != nil {
		return nil, err
	}
	list, err := attempt.Run(ctx, client, func(sess *zk.Session) ([]Contender, error) {
		return inspect(ctx, sess, path)
	})
	if err != nil {
		return nil, fmt.Errorf("lock: inspect %s: %w", path, err)
	}
	return list, nil
}

func inspect(ctx context.Context, sess *zk.Session, path string) ([]Contender, error) {
	children, stat, err := sess.Children(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if stat.EphemeralOwner != 0 {
		return inspectSimple(ctx, sess, path)
	}
	list, err := describe(ctx, sess, path, children, line.Every)
	var permits []Contender
	switch {
	case err != nil:
		return nil, err
	case slices.Contains(children, leasesDir):
		permits, err = inspectPermits(ctx, sess, path)
	case len(list) == 0:
		return inspectKazooPermits(ctx, sess, path, children)
	default:
		return list, nil
	}
	for i := range list { // they do not contend for the permits
		list[i].Group++
	}
	return append(permits, list...), err
}

// inspectSimple returns the holder of the simple lock at path. Its waiters leave no trace in the tree.
func inspectSimple(ctx context.Context, sess *zk.Session, path string) ([]Contender, error) {
	data, stat, err := sess.Get(ctx, path)
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c, err := contender(path, "", zk.Data{Data: data, Stat: stat})
	if errors.Is(err, errDirectory) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.Holder, c.simple = true, true
	return []Contender{c}, nil
}

// errDirectory is the error of a node that no session owns: a directory of another lock, perhaps.
var errDirectory = errors.New("lock: the node belongs to no session")

// contenderOf is contender of a node that is being read.
func contenderOf(
	ctx context.Context, path string, marker line.Marker, read *zk.Future[zk.Data],
) (Contender, error) {
	node, err := read.Get(ctx)
	if err != nil {
		return Contender{}, err
	}
	return contender(path, marker, node)
}

// contender returns what a node tells of its contender. The marker is that of its name; empty if that needs none. The
// error is errDirectory if the node belongs to no session.
func contender(path string, marker line.Marker, node zk.Data) (Contender, error) {
	if node.Stat.EphemeralOwner == 0 {
		return Contender{}, errDirectory
	}
	token, err := line.Token(node.Stat.Czxid, 0)
	if err != nil {
		return Contender{}, err
	}
	c := Contender{
		Path:    path,
		Data:    node.Data,
		Session: node.Stat.EphemeralOwner,
		Since:   time.UnixMilli(node.Stat.Ctime),
		Token:   Token(token),
		marker:  marker,
		czxid:   node.Stat.Czxid,
	}
	name := stdpath.Base(path)
	c.Owner, c.Known = parseOwner(name, marker, node.Data)
	switch {
	case c.Known:
		if r, ok := parseRevocation(node.Data, c.Token); ok {
			c.Revoked = &r
		}
		c.Token = tokenOf(node.Data, c.Token)
	case string(node.Data) == line.RevokeToken:
		c.Revoked = new(Revocation)
	case line.Ours(name):
		if record := line.DecodeCandidate(node.Data); record.Request != nil {
			r := parseRequest(record.Request)
			record.Request = nil
			c.Revoked, c.Data = &r, record.Encode()
		}
	}
	return c, nil
}

// inspectPermits returns the holders of the permits of the semaphore at path, one for each permit, and the waiters.
func inspectPermits(ctx context.Context, sess *zk.Session, path string) ([]Contender, error) {
	b := sess.Batch()
	taken, wanted := b.Children(attempt.Join(path, leasesDir)), b.Children(attempt.Join(path, queueDir))
	b.Send()
	var list []Contender
	for _, nodes := range []struct {
		dir    string
		listed *zk.Future[zk.Children]
		marker line.Marker
	}{{leasesDir, taken, line.CuratorLease}, {queueDir, wanted, line.CuratorLock}} {
		children, err := nodes.listed.Get(ctx)
		if err != nil && !errors.Is(err, zk.NoNode) {
			return nil, err
		}
		found, err := describe(ctx, sess, attempt.Join(path, nodes.dir), children.Names, []line.Marker{nodes.marker})
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Kind, found[i].Holder = Permit, nodes.dir == leasesDir
			found[i].MayHold, found[i].Group = false, 0
			if found[i].Holder {
				found[i].Behind = ""
			}
		}
		if n := len(list); n > 0 && len(found) > 0 && nodes.dir == queueDir && list[n-1].pending(found[0]) {
			list = list[:n-1]
		}
		list = append(list, found...)
	}
	return list, nil
}

// pending reports whether the newest permit of a semaphore in Curator's layout is the one that the first in line waits
// for. Curator's client makes the permit's node when it is first, and waits until there are few enough; ours makes it
// in the transaction that leaves the line. Only the first in line makes permits, so no other can be newer. For one
// round trip, before it has made its own, the last permit of another thread of its process is taken for that.
func (c *Contender) pending(first Contender) bool {
	return !line.Ours(stdpath.Base(c.Path)) && c.Session == first.Session && c.czxid > first.czxid
}

// inspectKazooPermits returns the holders of the permits of the semaphore at path in kazoo's layout, which has these
// children, and the waiters: the contenders for the lock beside it. The first of them has that lock, and waits for a
// permit.
func inspectKazooPermits(ctx context.Context, sess *zk.Session, path string, children []string) ([]Contender, error) {
	waiting, _, err := sess.Children(ctx, path+kazooQueue)
	if err != nil && !errors.Is(err, zk.NoNode) {
		return nil, err
	}
	var holders []Contender
	leases := slices.DeleteFunc(slices.Clone(children), func(name string) bool { return !line.KazooPermit(name) })
	// Names of other nodes may be hexadecimal, too: there may be many of them, and large. So nodes are looked at before
	// they are read, some at a time, and no more of them once none of some is ephemeral, as each permit is.
	for part := range slices.Chunk(leases, maxLooks) {
		found, err := readLeases(ctx, sess, path, part)
		if err != nil {
			return nil, err
		}
		if holders = append(holders, found...); len(found) == 0 {
			break
		}
	}
	slices.SortFunc(holders, func(a, b Contender) int {
		return cmp.Or(cmp.Compare(a.Token, b.Token), cmp.Compare(a.Path, b.Path))
	})
	waiters, err := describe(ctx, sess, path+kazooQueue, waiting, []line.Marker{line.KazooLock})
	for i := range waiters {
		waiters[i].Kind, waiters[i].Holder, waiters[i].MayHold, waiters[i].Group = Permit, false, false, 0
	}
	return append(holders, waiters...), err
}

// maxLooks is how many nodes that may be permits are looked at at a time.
const maxLooks = 100

// readLeases reads those of some children of path that belong to sessions.
func readLeases(ctx context.Context, sess *zk.Session, path string, names []string) (list []Contender, err error) {
	leases, err := ofSessions(ctx, sess, path, names)
	if err != nil {
		return nil, err
	}
	for node, read := range attempt.Each(sess, leases, (*zk.Batch).Get) {
		c, err := contenderOf(ctx, node, "", read)
		if errors.Is(err, zk.NoNode) || errors.Is(err, errDirectory) {
			continue
		}
		if err != nil {
			return nil, err
		}
		c.Kind, c.Holder = Permit, true
		list = append(list, c)
	}
	return list, nil
}

// ofSessions returns the paths of those of some children of path that belong to sessions. It looks at them without
// reading them.
func ofSessions(ctx context.Context, sess *zk.Session, path string, names []string) (list []string, err error) {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = attempt.Join(path, name)
	}
	for node, look := range attempt.Each(sess, paths, (*zk.Batch).Exists) {
		there, err := look.Get(ctx)
		if err != nil {
			return nil, err
		}
		if there.Exists && there.Stat.EphemeralOwner != 0 {
			list = append(list, node)
		}
	}
	return list, nil
}

// describe reads the nodes of those children of path that stand in line. Nodes of no session it leaves out, but the
// others wait for them as for contenders.
func describe(
	ctx context.Context, sess *zk.Session, path string, children []string, markers []line.Marker,
) ([]Contender, error) {
	contenders, second := line.Fold(line.Contenders(children, markers))
	line.Sort(contenders)
	paths := make([]string, len(contenders))
	for i, s := range contenders {
		paths[i] = attempt.Join(path, s.Name)
	}
	list := make([]Contender, 0, len(contenders))
	var there, strays []line.Contender
	i := -1
	for node, read := range attempt.Each(sess, paths, (*zk.Batch).Get) {
		i++
		s := contenders[i]
		c, err := contenderOf(ctx, node, s.Marker, read)
		switch {
		case errors.Is(err, zk.NoNode):
			continue
		case errors.Is(err, errDirectory):
			strays = append(strays, s)
			continue
		case err != nil:
			return nil, err
		}
		there = append(there, s)
		c.Kind = kindOf(s)
		if name, ok := second[s.Name]; ok {
			c.Second = attempt.Join(path, name)
		}
		list = append(list, c)
	}
	relate(list, there, path, strays)
	return list, nil
}

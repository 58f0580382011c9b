package lock

// Who holds and how many wait, in a few requests.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// maxSummaryHolders is how many holders a Summary describes.
const maxSummaryHolders = 8

// A Summary says who is at the front of a lock's line, and how long the line is.
type Summary struct {
	Holders []Contender // in the order of the line, the first eight of them; each permit of a semaphore by itself
	Holding int         // how many hold; how many permits of a semaphore are taken
	Waiting int         // how many do not hold: they wait, or may hold (Contender.MayHold)
	MayHold int         // how many of these may hold
	Groups  int         // of contenders that may hold together, because they do not look for each other

	// First is the first in line that does not hold: none has waited for longer. It is nil if there is none. A reader
	// of Curator's behind a writer of its own session is passed over: it most likely holds, too.
	First   *Contender
	Numbers Numbers // the sequence numbers that are left
}

// Behind is that of First; empty if there is none.
func (s *Summary) Behind() string {
	if s.First == nil {
		return ""
	}
	return s.First.Behind
}

// Apart reports whether contenders of different groups hold together, which are not all readers.
func (s *Summary) Apart() bool {
	return slices.ContainsFunc(s.Holders, func(c Contender) bool {
		first := s.Holders[0]
		return c.Group != first.Group && (c.Kind != Reader || first.Kind != Reader)
	})
}

// MayBeApart reports whether contenders of different groups hold together, or may do so.
func (s *Summary) MayBeApart() bool { return s.Groups > 1 && (s.MayHold > 0 || s.Apart()) }

// Summarize returns what Inspect does in short. Inspect reads the node of each contender; Summarize lists them and
// reads those in front alone, unless their names do not tell who waits for whom: contenders of several programs are
// read one and all. So it is for programs that show many locks. The Summary is empty if there is no contender, or no
// such path. Nodes that have a contender's name but no session, as the paths of other locks may, are left out where
// they are in front, as Inspect leaves them out; if the first hundred are such, the Summary is empty. Behind the front
// they count as waiting. It is an error if the list of the contenders is larger than zk.Config.MaxFrame.
func Summarize(ctx context.Context, client *zk.Client, path string) (Summary, error) {
	return summaryOf(ctx, client, path, nil)
}

// SummarizeListed is Summarize for programs that have just listed the children of path. It lists them again only where
// Summarize reads all contenders, and if those in front have left since.
func SummarizeListed(ctx context.Context, client *zk.Client, path string, listed zk.Children) (Summary, error) {
	return summaryOf(ctx, client, path, &listed)
}

func summaryOf(ctx context.Context, client *zk.Client, path string, listed *zk.Children) (Summary, error) {
	if err := attempt.ReadArgs("lock", client, path); err != nil {
		return Summary{}, err
	}
	s, err := attempt.Run(ctx, client, func(sess *zk.Session) (Summary, error) {
		return summarize(ctx, sess, path, listed)
	})
	if err != nil {
		return Summary{}, fmt.Errorf("lock: summarize %s: %w", path, err)
	}
	return s, nil
}

func summarize(ctx context.Context, sess *zk.Session, path string, listed *zk.Children) (Summary, error) {
	// Whoever is in front may leave between the list and the reads. At a lock that changes hands all the time, the list
	// would never do; then Inspect's, which leaves out who has left.
	const tries = 3
	for range tries {
		if listed == nil {
			names, stat, err := sess.Children(ctx, path)
			if err != nil {
				return Summary{}, ignoreNoNode(err)
			}
			listed = &zk.Children{Names: names, Stat: stat}
		}
		s, ok, err := front(ctx, sess, path, *listed)
		if ok || err != nil {
			return s, err
		}
		listed = nil
	}
	return whole(ctx, sess, path)
}

// whole summarizes what Inspect returns.
func whole(ctx context.Context, sess *zk.Session, path string) (s Summary, err error) {
	list, err := inspect(ctx, sess, path)
	if err != nil {
		return Summary{}, err
	}
	for i, c := range list {
		s.Groups = max(s.Groups, c.Group+1)
		if c.MayHold {
			s.MayHold++
		}
		switch {
		case !c.Holder:
			if s.First == nil && (len(s.Holders) == 0 || !c.inside(s.Holders[0])) {
				s.First = &list[i]
			}
			s.Waiting++
		case s.Holding < maxSummaryHolders:
			s.Holders = append(s.Holders, c)
			fallthrough
		default:
			s.Holding++
		}
	}
	if len(list) == 0 || !list[0].simple { // whose node has no children that could be numbered
		s.Numbers, err = inspectNumbers(ctx, sess, path)
	}
	if errors.Is(err, zk.NoNode) { // all have left since
		return Summary{}, nil
	}
	return s, err
}

// front summarizes the lock at path by the names of its contenders. It reports false if one of those in front has left
// meanwhile.
func front(ctx context.Context, sess *zk.Session, path string, listed zk.Children) (s Summary, ok bool, err error) {
	children, stat := listed.Names, listed.Stat
	if stat.EphemeralOwner != 0 {
		s, err = whole(ctx, sess, path)
		return s, true, err
	}
	contenders, second := line.Fold(line.Contenders(children, line.Every))
	line.Sort(contenders)
	counted := path
	holders, waiters := []place(nil), []place(nil)
	switch {
	case slices.Contains(children, leasesDir) && len(contenders) == 0:
		holders, waiters, stat, err = permitsFront(ctx, sess, path)
		if err != nil {
			return Summary{}, errors.Is(err, zk.NoNode), ignoreNoNode(err)
		}
		counted = attempt.Join(path, queueDir)
	case slices.Contains(children, leasesDir), len(contenders) == 0, !alike(contenders):
		s, err = whole(ctx, sess, path)
		return s, true, err
	default:
		n := holding(contenders)
		for i, c := range contenders {
			p := place{contender: c, path: attempt.Join(path, c.Name), kind: kindOf(c)}
			if name, ok := second[c.Name]; ok {
				p.second = attempt.Join(path, name)
			}
			if i < n {
				holders = append(holders, p)
			} else {
				waiters = append(waiters, p)
			}
		}
	}
	left := line.NumbersLeft(line.Contenders(children, line.Every), stat)
	s = Summary{
		Holding: len(holders), Waiting: len(waiters), Groups: min(1, len(holders)+len(waiters)),
		Numbers: Numbers{Path: counted, Left: left, Low: left <= line.HalfLeft},
	}
	shown := holders[:min(len(holders), maxSummaryHolders)]
	if counted != path && len(shown) < len(holders) { // the newest permit may be pending
		shown = slices.Concat(shown, holders[len(holders)-1:])
	}
	list, err := readPlaces(ctx, sess, slices.Concat(shown, waiters[:min(len(waiters), 1)]))
	switch {
	case errors.Is(err, errDirectory) && counted == path:
		s, err = behindDirectories(ctx, sess, path, contenders)
		return s, true, err
	case errors.Is(err, errDirectory): // among permits
		s, err = whole(ctx, sess, path)
		return s, true, err
	case err != nil:
		return Summary{}, false, ignoreNoNode(err)
	}
	if len(waiters) > 0 {
		s.First = &list[len(list)-1]
		list = list[:len(list)-1]
		switch {
		case len(list) == 0:
		case counted != path && list[len(list)-1].pending(*s.First):
			s.Holding--
		case s.First.inside(list[0]): // the next one may be the first that waits
			s, err = whole(ctx, sess, path)
			return s, true, err
		}
	}
	list = list[:min(len(list), maxSummaryHolders, s.Holding)]
	for i := range list {
		list[i].Holder = true
	}
	s.Holders = list
	return s, true, nil
}

// behindDirectories summarizes the lock at path when directories with names of contenders are in front: of other locks,
// perhaps. There may be very many of them. So if none of the first hundred is a contender, all are taken for
// directories.
func behindDirectories(
	ctx context.Context, sess *zk.Session, path string, contenders []line.Contender,
) (Summary, error) {
	var names []string
	for _, c := range contenders[:min(len(contenders), maxLooks)] {
		names = append(names, c.Name)
	}
	if some, err := ofSessions(ctx, sess, path, names); len(some) == 0 {
		return Summary{}, err
	}
	return whole(ctx, sess, path)
}

func ignoreNoNode(err error) error {
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	return err
}

// A place is that of a contender of which the name is known.
type place struct {
	contender    line.Contender
	path, second string
	kind         Kind
}

// readPlaces reads what the nodes of contenders tell. The error is zk.NoNode if one is gone, and errDirectory if one is
// no contender.
func readPlaces(ctx context.Context, sess *zk.Session, places []place) (list []Contender, err error) {
	b := sess.Batch()
	reads := make([]*zk.Future[zk.Data], len(places))
	for i, p := range places {
		reads[i] = b.Get(p.path)
	}
	b.Send()
	for i, p := range places {
		c, err := contenderOf(ctx, p.path, p.contender.Marker, reads[i])
		if err != nil {
			return nil, err
		}
		c.Kind, c.Second = p.kind, p.second
		list = append(list, c)
	}
	return list, nil
}

// permitsFront lists the permits that are taken and the waiters of the semaphore at path, and returns the Stat of the
// node that counts its numbers.
func permitsFront(ctx context.Context, sess *zk.Session, path string) (
	holders, waiters []place, counts zk.Stat, err error,
) {
	b := sess.Batch()
	taken, wanted := b.Children(attempt.Join(path, leasesDir)), b.Children(attempt.Join(path, queueDir))
	b.Send()
	for _, nodes := range []struct {
		dir    string
		listed *zk.Future[zk.Children]
		marker line.Marker
		places *[]place
	}{{leasesDir, taken, line.CuratorLease, &holders}, {queueDir, wanted, line.CuratorLock, &waiters}} {
		children, err := nodes.listed.Get(ctx)
		if ignoreNoNode(err) != nil {
			return nil, nil, zk.Stat{}, err
		}
		counts = children.Stat
		contenders := line.Contenders(children.Names, []line.Marker{nodes.marker})
		line.Sort(contenders)
		for _, c := range contenders {
			*nodes.places = append(*nodes.places, place{c, attempt.Join(path, nodes.dir) + "/" + c.Name, "", Permit})
		}
	}
	return holders, waiters, counts, nil
}

// alike reports whether each of the contenders waits for all those ahead of it but readers for readers, whatever their
// nodes say. See respects and waits.
func alike(contenders []line.Contender) bool {
	var kinds []line.Contender
	for _, c := range contenders {
		if !slices.ContainsFunc(kinds, func(k line.Contender) bool { return k.Marker == c.Marker }) {
			kinds = append(kinds, c)
		}
	}
	for _, c := range kinds {
		for _, other := range kinds {
			foreign := !slices.Contains(c.Marker.Family(), other.Marker)
			if foreign || c.Marker == line.KazooLock && isReader(other) {
				return false
			}
		}
	}
	return true
}

// holding returns how many of the contenders hold, which are alike and in order: the readers in front, or the first.
func holding(contenders []line.Contender) int {
	n := slices.IndexFunc(contenders, func(c line.Contender) bool { return !isReader(c) })
	switch {
	case n < 0:
		return len(contenders)
	case n == 0:
		return 1
	}
	return n
}

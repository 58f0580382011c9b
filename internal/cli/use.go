package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// place is what a path is used for, as far as its node and its children tell.
type place string

// The places. They are what "turnstile who --json" calls them.
const (
	placeAbsent       place = "absent"          // there is no such path: nobody has used it, or its last user has left
	placeFree         place = "free"            // nothing is below it
	placeLock         place = "lock"            // contenders of a lock, or of an election that has a lock's names
	placeElection     place = "election"        // candidates of a LeaderLatch
	placePermits      place = "permits"         // of our semaphore, and of Curator's
	placeQueue        place = "queue"           // of ours
	placeClassicQueue place = "classic-queue"   // of another program, or of package queue/classic
	placeKazooPermits place = "kazoo-semaphore" // which has a layout of its own
	placeOther        place = "other"           // nodes of another kind; may be paths of locks
)

// described says what a place is, for people, and what to do with it.
func (p place) described(path string) (what, hint string) {
	switch p {
	case placeLock:
		return "a lock", "turnstile who shows it"
	case placeElection:
		return "an election", "turnstile elect --observe shows who leads"
	case placePermits:
		return "a semaphore", "take one of its permits with --permits"
	case placeQueue:
		return "a queue", "turnstile queue len " + path + " shows how it is"
	case placeClassicQueue:
		return "a queue of another program", "choose a path of the lock's own"
	case placeKazooPermits:
		return "a Semaphore of kazoo's", "only kazoo can tell who has its leases"
	case placeAbsent, placeFree, placeOther:
	}
	return "not a lock's path", "choose another path"
}

// Names of children.
var (
	classicItem = regexp.MustCompile(`^(qn-|queue-|entry-\d{3}-)`)
	kazooLease  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// pathState is a path with what is there.
type pathState struct {
	place    place
	children []string // of those that are nobody's contenders
}

// lookAt returns what is at a path where these contenders are. What cannot be read, or is gone, is nothing: this is
// to find mistakes.
func lookAt(ctx context.Context, sess *zk.Session, path string, line []lock.Contender) (pathState, error) {
	b := sess.Batch()
	read, listed := b.Get(path), b.Children(path)
	b.Send()
	node, err := read.Get(ctx)
	children, cerr := listed.Get(ctx)
	if err == nil {
		err = cerr
	}
	switch {
	case errors.Is(err, zk.NoNode):
		return pathState{place: placeAbsent}, nil
	case err != nil:
		return pathState{}, err
	}
	f := pathState{children: slices.DeleteFunc(children.Names, func(name string) bool {
		return slices.ContainsFunc(line, func(c lock.Contender) bool { return strings.HasSuffix(c.Path, "/"+name) })
	})}
	f.place = f.kind(node.Data, line)
	return f, nil
}

func (f pathState) kind(data []byte, line []lock.Contender) place {
	var queue struct {
		Recipe string `json:"recipe"`
	}
	candidate := func(c lock.Contender) bool { return c.Kind == lock.Candidate }
	all := func(names *regexp.Regexp) bool {
		return !slices.ContainsFunc(f.children, func(name string) bool { return !names.MatchString(name) })
	}
	switch {
	case json.Unmarshal(data, &queue) == nil && queue.Recipe == "turnstile queue":
		return placeQueue
	case slices.Contains(f.children, "leases"): // where Curator's semaphore has its permits, and ours
		return placePermits
	case slices.ContainsFunc(line, candidate):
		return placeElection
	case len(line) > 0:
		return placeLock
	case len(f.children) == 0:
		return placeFree
	case all(classicItem):
		return placeClassicQueue
	case all(kazooLease):
		return placeKazooPermits
	}
	return placeOther
}

// instead says what is at a path where nobody holds or awaits a lock; empty if nothing is there that is not a lock's.
func (f pathState) instead(path string) string {
	switch f.place {
	case placeQueue, placeClassicQueue, placeKazooPermits:
		what, hint := f.place.described(path)
		return fmt.Sprintf("%s is no lock but %s; %s", path, what, hint)
	case placeOther:
		var below []string
		for _, name := range f.children {
			beside := strings.HasSuffix(name, "__revoked__") || strings.HasSuffix(name, "__delay__") // a lock's path
			if !beside {
				below = append(below, path+"/"+printable(name))
			}
		}
		slices.Sort(below)
		const most = 8
		more := ""
		if len(below) > most {
			more = fmt.Sprintf(" and %d more", len(below)-most)
			below = below[:most]
		}
		return fmt.Sprintf("%s has no contenders of a lock but other nodes; did you mean one of these? %s%s",
			path, strings.Join(below, " "), more)
	case placeAbsent, placeFree, placeLock, placeElection, placePermits:
	}
	return ""
}

// refuseOthers refuses paths that are used for something else, where nobody would keep anybody out. It is not for
// safety: it finds mistakes.
func refuseOthers(ctx context.Context, client *zk.Client, sess *zk.Session, paths []string, fits ...place) error {
	for _, path := range paths {
		line, err := lock.Inspect(ctx, client, path)
		if err != nil {
			return nil //nolint:nilerr // what keeps us from looking may let us stand in line; if not, that says so
		}
		f, err := lookAt(ctx, sess, path, line)
		if err != nil || slices.Contains(append(fits, placeAbsent, placeFree, placeOther), f.place) {
			continue
		}
		what, hint := f.place.described(path)
		return &exitError{code: ExitUsage, err: fmt.Errorf("%s is %s already", path, what), hint: hint}
	}
	return nil
}

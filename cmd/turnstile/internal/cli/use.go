package cli

// What a path is used for already.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	stdpath "path"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// use is what a path is used for, as far as its node and its children tell.
type use string

// The uses, as "turnstile who --json" calls them.
const (
	useAbsent       use = "absent"           // the path does not exist: it was never used, or its last user has left
	useFree         use = "free"             // nothing is below it
	useLock         use = "lock"             // contenders of a lock, or of an election that has a lock's names
	useElection     use = "election"         // candidates of a LeaderLatch
	useSupport      use = "election-support" // candidates of a LeaderElectionSupport
	usePermits      use = "permits"          // of our semaphore, and of Curator's
	useQueue        use = "queue"            // of ours
	useClassicQueue use = "classic-queue"    // of another program, or of package queue/classic
	useKazooPermits use = "kazoo-semaphore"  // which has a layout of its own
	useOther        use = "other"            // nodes of another kind; may be paths of locks
)

// describe says what a use is, for people, and what to do.
func (u use) describe(path string) (what, hint string) {
	switch u {
	case useLock:
		return "a lock", "turnstile who shows it"
	case useElection:
		return "an election", "turnstile elect --observe shows the leader"
	case useSupport:
		return "an election of LeaderElectionSupport", "stand in it with turnstile elect --layout support"
	case usePermits:
		return "a semaphore", "take one of its permits with --permits"
	case useQueue:
		return "a queue", "turnstile queue len " + path + " counts its items"
	case useClassicQueue:
		return "a queue of another program", "choose another path"
	case useKazooPermits:
		return "a kazoo Semaphore", "take one of its permits with --permits and --layout kazoo"
	case useAbsent, useFree, useOther:
	}
	return "not a lock", "choose another path"
}

// Names of children.
var (
	classicItem = regexp.MustCompile(`^(qn-|queue-|entry-\d{3}-)`)
)

// pathState is what is at a path.
type pathState struct {
	use      use
	children []string // that are not contenders
}

// readPath returns what is at a path that has these contenders.
func readPath(ctx context.Context, sess *zk.Session, path string, line []lock.Contender) (pathState, error) {
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
		return pathState{use: useAbsent}, nil
	case err != nil:
		return pathState{}, err
	}
	f := pathState{children: slices.DeleteFunc(children.Names, func(name string) bool {
		return slices.ContainsFunc(line, func(c lock.Contender) bool { return strings.HasSuffix(c.Path, "/"+name) })
	})}
	f.use = f.findUse(node.Data, line)
	return f, nil
}

func (f pathState) findUse(data []byte, line []lock.Contender) use {
	var queue struct {
		Recipe string `json:"recipe"`
	}
	candidate := func(c lock.Contender) bool { return c.Kind == lock.Candidate }
	support := func(c lock.Contender) bool { return candidate(c) && strings.HasPrefix(stdpath.Base(c.Path), "n_") }
	permit := func(c lock.Contender) bool { return c.Kind == lock.Permit }
	all := func(names *regexp.Regexp) bool {
		return !slices.ContainsFunc(f.children, func(name string) bool { return !names.MatchString(name) })
	}
	switch {
	case json.Unmarshal(data, &queue) == nil && queue.Recipe == "turnstile queue":
		return useQueue
	case slices.Contains(f.children, "leases"): // where Curator's semaphore has its permits, and ours
		return usePermits
	case slices.ContainsFunc(line, permit):
		return useKazooPermits
	case slices.ContainsFunc(line, support):
		return useSupport
	case slices.ContainsFunc(line, candidate):
		return useElection
	case len(line) > 0:
		return useLock
	case len(f.children) == 0:
		return useFree
	case all(classicItem):
		return useClassicQueue
	}
	return useOther
}

// instead says what a path without contenders is used for; empty if it may be a lock.
func (f pathState) instead(path string) string {
	switch f.use {
	case useQueue, useClassicQueue:
		what, hint := f.use.describe(path)
		return fmt.Sprintf("%s is not a lock but %s; %s", path, what, hint)
	case useOther:
		var below []string
		for _, name := range f.children {
			beside := strings.HasSuffix(name, "__revoked__") || strings.HasSuffix(name, "__delay__") // a lock's path
			if !beside {
				below = append(below, path+"/"+name)
			}
		}
		slices.Sort(below)
		const most = 8
		more := ""
		if len(below) > most {
			more = fmt.Sprintf(" and %d more", len(below)-most)
			below = below[:most]
		}
		return fmt.Sprintf("%s has no contenders but other nodes; did you mean one of these? %s%s",
			path, strings.Join(below, " "), more)
	case useAbsent, useFree, useLock, useElection, useSupport, usePermits, useKazooPermits:
	}
	return ""
}

// refuseOthers returns an error if a path is used for something else, where a lock would not exclude anything. It finds
// mistakes; safety does not depend on it.
func refuseOthers(ctx context.Context, client *zk.Client, sess *zk.Session, paths []string, fits ...use) error {
	for _, path := range paths {
		line, err := lock.Inspect(ctx, client, path)
		if errors.Is(err, zk.ErrReplyTooLarge) {
			return err // before a node is made that would stay: acquiring needs that list, too
		}
		if err != nil {
			return nil //nolint:nilerr // it may still be possible to acquire; if not, that says why
		}
		f, err := readPath(ctx, sess, path, line)
		if err != nil || slices.Contains(append(fits, useAbsent, useFree, useOther), f.use) {
			continue
		}
		what, hint := f.use.describe(path)
		return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("%s is already %s", path, what), Hint: hint}
	}
	return nil
}

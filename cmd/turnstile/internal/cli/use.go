package cli

// What a path is used for already.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/internal/survey"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// describe says what a path is used for, for people, and what to do.
func describe(kind survey.Kind, path string) (what, hint string) {
	switch kind {
	case survey.Lock:
		return "a lock, or an election of LeaderSelector or kazoo",
			"turnstile who shows it; such an election needs turnstile elect --layout selector, kazoo or both"
	case survey.Election:
		return "an election", "turnstile elect --observe shows the leader"
	case survey.Support:
		return "an election of LeaderElectionSupport", "stand in it with turnstile elect --layout support"
	case survey.Permits:
		return "a semaphore", "take one of its permits with --permits and --layout curator, the default"
	case survey.Queue:
		return "a queue", "turnstile queue len " + path + " counts its items"
	case survey.ClassicQueue:
		return "a queue of another program", "choose another path"
	case survey.KazooPermits:
		return "a kazoo Semaphore", "take one of its permits with --permits and --layout kazoo"
	case survey.Absent, survey.Free, survey.Other:
	}
	return "not a lock", "choose another path"
}

// pathState is what is at a path.
type pathState struct {
	kind     survey.Kind
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
		return pathState{kind: survey.Absent}, nil
	case err != nil:
		return pathState{}, err
	}
	f := pathState{kind: kindOf(children.Names, node.Data, line)}
	f.children = slices.DeleteFunc(children.Names, func(name string) bool {
		return slices.ContainsFunc(line, func(c lock.Contender) bool { return strings.HasSuffix(c.Path, "/"+name) })
	})
	return f, nil
}

// kindOf returns what a path is used for that has these children, this data and these contenders.
func kindOf(children []string, data []byte, line []lock.Contender) survey.Kind {
	permits := slices.ContainsFunc(line, func(c lock.Contender) bool { return c.Kind == lock.Permit })
	switch kind := survey.Recognise(children, data); {
	case permits && (kind == survey.Free || kind == survey.Other): // the line is beside it
		return survey.KazooPermits
	case kind == survey.KazooPermits && !permits: // they only have such names
		return survey.Other
	default:
		return kind
	}
}

// unlisted returns the names of contenders that are not listed.
func (f pathState) unlisted() []string {
	var names []string
	for _, name := range f.children {
		if survey.Unlisted(name) {
			names = append(names, name)
		}
	}
	return names
}

// instead says what a path without contenders is used for; empty if it may be a lock.
func (f pathState) instead(path string) string {
	switch f.kind {
	case survey.Queue, survey.ClassicQueue:
		what, hint := describe(f.kind, path)
		return fmt.Sprintf("%s is not a lock but %s; %s", path, what, hint)
	case survey.Other:
		if names := f.unlisted(); len(names) > 0 {
			return fmt.Sprintf("%s has contenders of another program, whose names no other looks for: %s "+
				"(docs/interop.md)", path, strings.Join(names, " "))
		}
		var below []string
		for _, name := range f.children {
			beside := survey.Beside(name)
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
	case survey.Absent, survey.Free, survey.Lock, survey.Election, survey.Support, survey.Permits, survey.KazooPermits:
	}
	return ""
}

// refuseOthers returns an error if a path is used for something else, where a lock would not exclude anything. It finds
// mistakes; safety does not depend on it.
func refuseOthers(ctx context.Context, client *zk.Client, sess *zk.Session, paths []string, fits ...survey.Kind) error {
	for _, path := range paths {
		line, err := lock.Inspect(ctx, client, path)
		if errors.Is(err, zk.ErrReplyTooLarge) {
			return err // before a node is made that would stay: acquiring needs that list, too
		}
		if err != nil {
			return context.Cause(ctx) // if it goes on, it may still be possible to acquire; if not, that says why
		}
		f, err := readPath(ctx, sess, path, line)
		if err != nil || slices.Contains(append(fits, survey.Absent, survey.Free, survey.Other), f.kind) {
			continue
		}
		what, hint := describe(f.kind, path)
		return &command.Error{Code: command.ExitUsage, Err: fmt.Errorf("%s is already %s", path, what), Hint: hint}
	}
	return context.Cause(ctx)
}

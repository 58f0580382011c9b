//go:build unix

package lin_test

// What must be true of barriers after the faults: they work, and nothing is left behind.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
	"github.com/seed-a3166700/turnstile/zk"
)

// settle uses every barrier once more, and then looks at its nodes.
func (barrierTrial) settle(e *epoch, sess *zk.Session) error {
	j, ok := e.journal.(*barrierJournal)
	if !ok {
		return fmt.Errorf("journal of another trial: %T", e.journal)
	}
	if err := e.noOrphans(e.root); err != nil {
		return err
	}
	ctx, moved, stop := e.unlessStuck("was done with no barrier")
	defer stop()
	var all []error
	done := func(err error) {
		all = append(all, err)
		moved()
	}
	if err := unbroken(ctx, func() error { return sess.Sync(ctx, e.root) }); err != nil {
		return err
	}
	plains, doubles, rounds := j.paths()
	for _, place := range slices.Sorted(maps.Keys(plains)) {
		for _, path := range plains[place] {
			done(e.lookAtPlain(ctx, sess, place, path))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(doubles)) {
		for _, path := range doubles[place] {
			done(e.useDouble(ctx, sess, place, path))
		}
	}
	for _, place := range slices.Sorted(maps.Keys(rounds)) {
		for _, path := range rounds[place] {
			outcomes, err := e.useRounds(ctx, sess, place, path)
			done(err)
			j.mu.Lock()
			j.page(place).outcomes[path] = outcomes
			j.mu.Unlock()
		}
	}
	return errors.Join(all...)
}

// paths returns the paths of all barriers that were used, by their places.
func (j *barrierJournal) paths() (plains, doubles, rounds map[string][]string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	plains, doubles, rounds = map[string][]string{}, map[string][]string{}, map[string][]string{}
	for place, page := range j.places {
		plains[place] = slices.Sorted(maps.Keys(page.calls))
		doubles[place] = slices.Sorted(maps.Keys(page.doubles))
		rounds[place] = slices.Sorted(maps.Keys(page.rounds))
	}
	return plains, doubles, rounds
}

// lookAtPlain reports whether a plain barrier is up, if it is.
func (e *epoch) lookAtPlain(ctx context.Context, sess *zk.Session, place, path string) error {
	c := lincheck.BarrierCall{Client: -1, Op: lincheck.BarrierUp, Asked: clock()}
	var up bool
	err := unbroken(ctx, func() (err error) {
		_, up, err = sess.Exists(ctx, e.root+"/"+place+path)
		return err
	})
	if c.Done = clock(); err == nil && up {
		e.journal.note(barrierReport(place, barrierNote{Path: path, Call: &c}))
	}
	return err
}

// useDouble enters a double barrier with as many parties as it has, and leaves it. Then its path must be empty.
func (e *epoch) useDouble(ctx context.Context, sess *zk.Session, place, path string) error {
	d, err := barrier.NewDouble(e.client, e.root+"/"+place+path, doublesOf[place], barrier.Config{})
	if err != nil {
		return err
	}
	err = atOnce(doublesOf[place], func(int) error {
		m, err := d.Enter(ctx)
		if err != nil {
			return err
		}
		return m.Leave(ctx)
	})
	if err != nil {
		return fmt.Errorf("a barrier does not work after the faults: %w", err)
	}
	names, err := e.children(ctx, sess, d.Path())
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("left behind in %s: %v", d.Path(), names)
	}
	return err
}

// useRounds passes a round with as many parties as there should be, and returns the outcomes of all rounds. Then the
// path must have no party.
func (e *epoch) useRounds(
	ctx context.Context, sess *zk.Session, place, path string,
) ([]lincheck.RoundOutcome, error) {
	r, err := barrier.NewRounds(e.client, e.root+"/"+place+path, roundsOf[place])
	if err != nil {
		return nil, err
	}
	passed := make([]int64, roundsOf[place].Parties)
	err = atOnce(len(passed), func(i int) error {
		p, err := r.Join(ctx)
		if err != nil {
			return err
		}
		for { // the dead fail a round
			passed[i], err = p.Arrive(ctx)
			if !errors.Is(err, barrier.ErrPartyLost) {
				return errors.Join(err, p.Leave(ctx))
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("rounds do not work after the faults: %w", err)
	}
	var outcomes []lincheck.RoundOutcome
	for n := range slices.Max(passed) {
		o, err := r.Outcome(ctx, n+1)
		if err != nil {
			return nil, err
		}
		outcomes = append(outcomes, lincheck.RoundOutcome{Round: n + 1, Lost: o.Lost, Failed: o.Failed})
	}
	return outcomes, e.noParties(ctx, sess, r.Path())
}

// noParties checks that rounds have no nodes but their directories, which must be empty.
func (e *epoch) noParties(ctx context.Context, sess *zk.Session, path string) error {
	var data []byte
	err := unbroken(ctx, func() (err error) {
		data, _, err = sess.Get(ctx, path)
		return err
	})
	if err != nil {
		return err
	}
	var rec struct {
		Behind  []string
		Arrived string
	}
	if err := json.Unmarshal(data, &rec); err != nil {
		return err
	}
	want := append([]string{"parties", "sentries", rec.Arrived}, rec.Behind...)
	dirs, err := e.children(ctx, sess, path)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		names, err := e.children(ctx, sess, path+"/"+dir)
		if err != nil {
			return err
		}
		if len(names) > 0 || !slices.Contains(want, dir) {
			return fmt.Errorf("left behind in %s: %s with %v", path, dir, names)
		}
	}
	return nil
}

// children returns the names of a node's children: none if the server has removed the node, a container that was empty
// for a while. None of the test's own calls are under way, and all others have finished.
func (*epoch) children(ctx context.Context, sess *zk.Session, path string) (names []string, err error) {
	err = unbroken(ctx, func() (err error) {
		if err = sess.Sync(ctx, path); err == nil {
			names, _, err = sess.Children(ctx, path)
		}
		return err
	})
	if errors.Is(err, zk.NoNode) {
		return nil, nil
	}
	return names, err
}

// atOnce runs a function so many times at once.
func atOnce(n int, run func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = run(i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

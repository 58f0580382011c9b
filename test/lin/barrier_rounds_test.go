//go:build unix

package lin_test

// Clients that are parties of rounds.

import (
	"context"
	"errors"
	"time"

	"github.com/seed-a3166700/turnstile/barrier"
	"github.com/seed-a3166700/turnstile/internal/lincheck"
)

// roundUser is a goroutine as a party of rounds.
type roundUser struct {
	*barrierUser
	place  string
	path   string // below the place
	rounds *barrier.Rounds
	party  *barrier.Party
	seen   lincheck.RoundParty
}

func (u *barrierUser) roundsAt(place, path string) *roundUser {
	r, err := barrier.NewRounds(u.client, u.Root+"/"+place+path, roundsOf[place])
	if err != nil {
		abort("open "+place, err)
	}
	return &roundUser{barrierUser: u, place: place, path: path, rounds: r}
}

func (r *roundUser) tell() { r.note(r.place, barrierNote{Path: r.path, Round: &r.seen}) }

// join makes the goroutine a party, unless ctx ends first.
func (r *roundUser) join(ctx context.Context) bool {
	before := r.session()
	r.seen = lincheck.RoundParty{Client: r.number, Asked: clock()}
	r.tell()
	var err error
	r.party, err = r.rounds.Join(ctx)
	done := clock()
	if before == nil || before != r.session() {
		// It may have joined under a session that ended. None ends before its timeout is over, except the first.
		r.seen.Ended = 2 + int((done-r.seen.Asked)/int64(timeout))
	}
	if err == nil {
		r.seen.Joined = done
	} else if ctx.Err() == nil {
		abort("join "+r.place, err)
	}
	r.tell()
	return err == nil
}

// arrive arrives at a round and waits for its end.
func (r *roundUser) arrive(ctx context.Context) (round int64, err error) {
	n := len(r.seen.Arrivals)
	if n == 0 || r.seen.Arrivals[n-1].Done != 0 {
		r.seen.Arrivals = append(r.seen.Arrivals, lincheck.RoundArrival{Asked: clock()})
		r.tell()
		n++
	}
	a := &r.seen.Arrivals[n-1]
	round, err = r.party.Arrive(ctx)
	switch {
	case err == nil, errors.Is(err, barrier.ErrPartyLost):
		a.Done, a.Round, a.Failed = clock(), round, err != nil
	case errors.Is(err, barrier.ErrNotJoined):
		select {
		case <-r.party.Context().Done():
		case <-time.After(timeout): // it would end at once
			a.Ousted = true
		}
	case ctx.Err() == nil:
		abort("arrive "+r.place, err)
	}
	r.tell()
	return round, err
}

// leave leaves the rounds.
func (r *roundUser) leave(ctx context.Context) {
	if err := r.party.Leave(ctx); err == nil {
		r.seen.Left = clock()
	}
	r.tell()
}

// rounds takes part in a few rounds.
func (u *barrierUser) rounds(ctx context.Context, place string) {
	path := ""
	if place == goOnRounds {
		path = during(clock(), roundsLength)
	}
	r := u.roundsAt(place, path)
	some, longest := 1+u.rnd.IntN(8), 10*time.Millisecond
	if isSlow(place) {
		some, longest = 1+u.rnd.IntN(3), time.Second
	}
	one, cancel := u.limited(ctx, 2*timeout)
	joined := r.join(one)
	cancel()
	if !joined {
		return
	}
	var gone error
	for ; some > 0 && !errors.Is(gone, barrier.ErrNotJoined) && ctx.Err() == nil; some-- {
		pause(ctx, upTo(u.rnd, longest))
		if place == slowRounds {
			// All others arrive, leave or die, so this comes to an end.
			_, gone = r.arrive(context.WithoutCancel(ctx))
			continue
		}
		one, cancel := u.limited(ctx, 2*timeout)
		_, gone = r.arrive(one)
		cancel()
	}
	limit := context.WithoutCancel(ctx)
	if u.rnd.IntN(8) == 0 {
		var cancel context.CancelFunc
		limit, cancel = context.WithTimeout(limit, upTo(u.rnd, 20*time.Millisecond))
		defer cancel()
	}
	r.leave(limit)
}

// passOne passes a round with all other goroutines. A party whose session ended may have arrived, and the round may be
// passed with it: then it must not join again, because all others leave.
func (u *barrierUser) passOne(ctx context.Context) {
	r := u.roundsAt(allRounds, "")
	for r.join(ctx) {
		round, err := r.arrive(ctx)
		for errors.Is(err, barrier.ErrPartyLost) {
			round, err = r.arrive(ctx)
		}
		r.leave(ctx)
		if err == nil {
			return
		}
		if o, err := r.rounds.Outcome(ctx, round); err != nil {
			abort("outcome", err)
		} else if !o.Failed {
			return
		}
	}
}

// passAlone passes rounds with those that happen to be there.
func (u *barrierUser) passAlone(ctx context.Context) {
	r := u.roundsAt(slowRounds, "")
	for left := 3; left > 0 && r.join(ctx); {
		for ; left > 0; left-- {
			if _, err := r.arrive(ctx); err != nil {
				break
			}
		}
		r.leave(ctx)
	}
}

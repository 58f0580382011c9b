package cli

// turnstile lock --permits.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/lock"
	"github.com/seed-a3166700/turnstile/zk"
)

// permits is a flag's value: N of LIMIT.
type permits struct{ n, limit int }

func (p *permits) Type() string { return "N/LIMIT" }

func (p *permits) String() string {
	if p.limit == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.n, p.limit)
}

func (p *permits) Set(s string) error {
	n, limit, ok := strings.Cut(s, "/")
	var err, lerr error
	p.n, err = strconv.Atoi(n)
	p.limit, lerr = strconv.Atoi(limit)
	switch {
	case !ok || err != nil || lerr != nil:
		return fmt.Errorf("%q must be N/LIMIT, such as 1/4", s)
	case p.n < 1 || p.limit < 1:
		return fmt.Errorf("%q: both numbers must be at least 1", s)
	case p.n > lock.MaxPermits:
		return fmt.Errorf("%q: N must be at most %d", s, lock.MaxPermits)
	case p.n > p.limit:
		return fmt.Errorf("%q: N must not exceed LIMIT", s)
	}
	return nil
}

// semaphore is permits that are taken as a lock is.
type semaphore struct {
	s *lock.Semaphore
	n int
}

func (p semaphore) Lock(ctx context.Context) (*lock.Hold, error) {
	return limited(p.s.Acquire(ctx, p.n))
}

func (p semaphore) TryLock(ctx context.Context) (*lock.Hold, error) {
	return limited(p.s.TryAcquire(ctx, p.n))
}

// limited says what to do if other clients use another limit.
func limited(h *lock.Hold, err error) (*lock.Hold, error) {
	if errors.Is(err, lock.ErrLimit) {
		hint := "use the same LIMIT in --permits everywhere; --new-limit changes it for all"
		err = &command.Error{Code: command.ExitUsage, Err: err, Hint: hint}
	}
	return h, err
}

// storeLimit writes the limit of --new-limit into the semaphore's node. If there is no such node, the first client to
// take permits writes it.
func (l *locker) storeLimit(ctx context.Context, sess *zk.Session) error {
	if !l.newLimit {
		return nil
	}
	_, err := sess.Set(ctx, l.run.Path, strconv.AppendInt(nil, int64(l.permits.limit), 10), -1)
	if errors.Is(err, zk.NoNode) {
		return nil
	}
	return err
}

// permitsTaken says who has the permits, if there are not enough left for us.
func (l *locker) permitsTaken(line []lock.Contender) string {
	list := groupPermits(line)
	taken, holders := 0, 0
	for _, c := range list {
		taken += c.permits
		if c.Holder {
			holders++
		}
	}
	if holders == 0 {
		return ""
	}
	others := ""
	if holders > 1 {
		others = fmt.Sprintf(" and %d more", holders-1)
	}
	return fmt.Sprintf("%d of %d permits are taken, by %s%s, %d in line",
		taken, l.permits.limit, owner(list[0].Contender), others, len(list)-holders)
}

// groupPermits makes one contender of the permits that were taken together, each of which is a node.
func groupPermits(line []lock.Contender) []contender {
	var list []contender
	for _, c := range line {
		permit := c.Kind == lock.Permit && c.Holder
		same := func(s contender) bool { return s.permits > 0 && s.Session == c.Session && s.Token == c.Token }
		if i := slices.IndexFunc(list, same); permit && i >= 0 {
			list[i].permits++
			continue
		}
		s := contender{Contender: c}
		if permit {
			s.permits = 1
		}
		list = append(list, s)
	}
	return list
}

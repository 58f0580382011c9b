package member

// Leases: what one of several programs has until a time of day.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// Errors of a Lease. Both are found with errors.Is.
var (
	// ErrLeased is what Take returns when other holders have all leases.
	ErrLeased = errors.New("leased by another holder")
	// ErrLeaseFormat is what Take returns when the lease was stored in a format that this version does not know, and
	// which it leaves alone.
	ErrLeaseFormat = errors.New("the lease is stored in an unknown format")
)

// errSearch says that the lock of a search for a slot is lost.
var errSearch = errors.New("the lock of a search was lost")

const (
	leaseNode    = "/lease_holder"
	leaseVersion = 1
	leaseTime    = "2006-01-02T15:04:05" // UTC
)

// LeaseConfig says how a Lease behaves. The zero LeaseConfig is ready to use.
type LeaseConfig struct {
	// Count is how many leases there are, for as many holders at a time; each holder has one at most. They are at the
	// paths 0 to Count-1 below the lease's path, as those of kazoo's MultiNonBlockingLease. If it is zero there is one,
	// at the path itself, as that of kazoo's NonBlockingLease.
	Count int
	ACL   []zk.ACL // of the nodes and of parents that are created for them; open to everyone if nil
	// AnyACL accepts nodes at path and above it that exist and grant more than ACL. Otherwise they are refused.
	AnyACL bool
	Now    func() time.Time // the clock; time.Now if nil
	_      struct{}
}

// Lease is something that a holder takes for a while: until a time of day, whatever becomes of its session meanwhile.
// Kazoo's leases at the same path are the same. It may be used by any number of goroutines.
//
// Leases trust clocks. A client whose clock is ahead takes a lease that its holder believes to have still, and one
// whose clock was set back believes to have a lease that is another's. Times are in whole seconds. There is no token.
// Where two holders would do harm, use a lock.
type Lease struct {
	client   *zk.Client
	path     string
	holder   string
	duration time.Duration
	cfg      LeaseConfig
	lock     line.Line   // makes searches for a slot by one holder exclude each other; unused with one lease
	slots    []line.Line // the locks of the leases
}

// NewLease returns the lease at path for a holder, which takes it for a duration of whole seconds. Programs with the
// same holder share the lease. NewLease does not contact the server. It returns an error if an argument is invalid.
func NewLease(
	client *zk.Client, path, holder string, duration time.Duration, cfg LeaseConfig,
) (*Lease, error) {
	if err := attempt.Args("member", client, path, cfg.ACL); err != nil {
		return nil, err
	}
	if holder == "" || !utf8.ValidString(holder) || len(holder) > 1<<10 {
		return nil, attempt.Bad("member: invalid holder %.40q; use UTF-8 of at most %d bytes", holder, 1<<10)
	}
	if duration < time.Second || duration%time.Second != 0 {
		return nil, attempt.Bad("member: a lease lasts whole seconds, not %v", duration)
	}
	if cfg.Count < 0 || cfg.Count > 1000 {
		return nil, attempt.Bad("member: Count must be from 0 to 1000: %d", cfg.Count)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Lease{client: client, path: path, holder: holder, duration: duration, cfg: cfg}
	l.stand(&l.lock, path)
	l.slots = make([]line.Line, max(cfg.Count, 1))
	for i := range l.slots {
		l.stand(&l.slots[i], l.slot(i))
	}
	return l, nil
}

// slot returns the path of a lease.
func (l *Lease) slot(i int) string {
	if l.cfg.Count == 0 {
		return l.path
	}
	return l.path + "/" + strconv.Itoa(i)
}

// stand makes a line for kazoo's lock at dir.
func (l *Lease) stand(to *line.Line, dir string) {
	to.Dir = dir
	to.Prefix = func(guid string) string { return "_c_" + guid + "-" + string(line.KazooLock) }
	to.Markers = []line.Marker{line.KazooLock}
	to.Blocks = func(line.Contender) bool { return true }
	to.Data = func() []byte { return []byte(l.holder) }
	to.ACL, to.AnyACL, to.Lasting = l.cfg.ACL, l.cfg.AnyACL, true
}

// Leased describes a lease that was taken.
type Leased struct {
	Path  string    // of the lease: with Count, it ends in the number of the slot
	Until time.Time // by the client's clock
}

// Take takes a lease, or renews it if this holder has one. It returns ErrLeased at once, apart from short waits for
// other calls of Take, if other holders have all leases. It returns ctx's cause if ctx ends first; the lease may have
// been taken then. A holder never gets a second lease by Take: what it has is renewed, also if its time is over and
// another lease is free. If it has two, because a program of kazoo's took the second, one is given up.
func (l *Lease) Take(ctx context.Context) (Leased, error) {
	if l.cfg.Count == 0 {
		leased, err := l.take(ctx, 0, nil)
		return leased, l.failed(err)
	}
	leased, err := under(ctx, l, &l.lock, func(ctx context.Context, lock *line.Own) (Leased, error) {
		leased, err := l.search(ctx, lock)
		if errors.Is(err, errSearch) {
			err = attempt.ErrGone // another search may have begun
		}
		return leased, err
	})
	return leased, l.failed(err)
}

// search takes a lease of several. The lock makes sure that no other call for this holder does so meanwhile.
func (l *Lease) search(ctx context.Context, lock *line.Own) (Leased, error) {
	var mine, free []int
	var unknown error
	b := lock.Session().Batch()
	passed := attempt.Fence(b)
	b.Send()
	if err := passed(ctx); err != nil {
		return Leased{}, err
	}
	paths := make([]string, len(l.slots))
	for i := range paths {
		paths[i] = l.slot(i) + leaseNode
	}
	i := 0
	for path, look := range attempt.Each(lock.Session(), paths, (*zk.Batch).Get) {
		d, err := look.Get(ctx)
		r, _, err := parseLease(path, d, err)
		switch {
		case errors.Is(err, ErrLeaseFormat):
			unknown = err
		case err != nil:
			return Leased{}, err
		case r.Holder == l.holder:
			mine = append(mine, i)
		case l.cfg.Now().UTC().Before(r.end):
			// Another holder has it: the server has shown that after it had given us the lock.
		default:
			free = append(free, i) // whether it is, the lease's own lock decides
		}
		i++
	}
	for n, i := range mine {
		leased, err := l.take(ctx, i, lock)
		if errors.Is(err, ErrLeased) {
			continue
		}
		for _, other := range mine[n+1:] {
			if err == nil {
				err = l.give(ctx, other, lock)
			}
		}
		return leased, err
	}
	for _, i := range free {
		if leased, err := l.take(ctx, i, lock); !errors.Is(err, ErrLeased) {
			return leased, err
		}
	}
	if unknown != nil && len(free) == 0 {
		return Leased{}, unknown
	}
	return Leased{}, ErrLeased
}

// Release gives up what this holder has. It returns nil if that is nothing. Kazoo's programs have no such call: there a
// lease lasts until its time is over.
func (l *Lease) Release(ctx context.Context) error {
	if l.cfg.Count == 0 {
		return l.failed(l.give(ctx, 0, nil))
	}
	_, err := under(ctx, l, &l.lock, func(ctx context.Context, lock *line.Own) (none struct{}, err error) {
		for i := range l.slots {
			err := l.give(ctx, i, lock)
			switch {
			case errors.Is(err, errSearch):
				return none, attempt.ErrGone
			case err != nil:
				return none, err
			}
		}
		return none, nil
	})
	return l.failed(err)
}

// under calls f while it holds a lock. If the session ends meanwhile it begins again under the next one.
func under[T any](
	ctx context.Context, l *Lease, at *line.Line, f func(context.Context, *line.Own) (T, error),
) (T, error) {
	return attempt.Run(ctx, l.client, func(sess *zk.Session) (none T, err error) {
		own, err := line.Enter(ctx, sess, at)
		if err != nil {
			return none, err
		}
		defer own.Release()
		if err := own.Await(ctx); err != nil {
			return none, err
		}
		return f(ctx, own)
	})
}

// failed says of which lease an error is.
func (l *Lease) failed(err error) error {
	if err == nil || errors.Is(err, ErrLeased) {
		return err
	}
	return fmt.Errorf("member: %s: %w", l.path, attempt.Explain(l.client, err))
}

// take takes one lease, if no other holder has it, and as long as the search's lock is held, if there is one.
func (l *Lease) take(ctx context.Context, i int, search *line.Own) (Leased, error) {
	return under(ctx, l, &l.slots[i], func(ctx context.Context, own *line.Own) (Leased, error) {
		var until time.Time
		var record []byte
		err := l.change(ctx, own, search, i, func(r leaseRecord, there bool) ([]byte, error) {
			now := l.cfg.Now()
			if there && r.Holder != l.holder && now.UTC().Before(r.end) {
				return nil, ErrLeased
			}
			if until.IsZero() { // attempts write the same, so that it does not matter which of them is done last
				until = now.Add(l.duration).Truncate(time.Second)
				record = encodeLease(l.holder, until)
			}
			return record, nil
		})
		if err != nil {
			return Leased{}, err
		}
		return Leased{Path: l.slot(i), Until: until}, nil
	})
}

// give gives up one lease, if this holder has it.
func (l *Lease) give(ctx context.Context, i int, search *line.Own) error {
	_, err := under(ctx, l, &l.slots[i], func(ctx context.Context, own *line.Own) (none struct{}, err error) {
		err = l.change(ctx, own, search, i, func(r leaseRecord, there bool) ([]byte, error) {
			if !there || r.Holder != l.holder {
				return nil, nil
			}
			return []byte{}, nil
		})
		return none, err
	})
	return err
}

// change replaces what is stored by what to returns: nothing to change if that is nil, no lease if it is empty. Each
// transaction checks that the lock's node is there, so that none is done after the lock has been released, however late
// it arrives. If a reply is lost, another look, behind a barrier, finds out.
func (l *Lease) change(
	ctx context.Context, own, search *line.Own, i int, to func(r leaseRecord, there bool) ([]byte, error),
) error {
	sess, node := own.Session(), l.slot(i)+leaseNode
	for {
		r, stat, err := l.read(ctx, sess, i)
		if err == nil {
			there := stat.Czxid != 0
			var record []byte
			if record, err = to(r, there); err != nil || record == nil || there && string(record) == r.raw {
				return err
			}
			locks := []error{attempt.ErrGone, errSearch}[:1]
			ops := []zk.Op{zk.CheckOp(own.Path(), -1)}
			if search != nil {
				ops, locks = append(ops, zk.CheckOp(search.Path(), -1)), locks[:2]
			}
			held := len(ops)
			if there { // kazoo deletes and creates, too
				ops = append(ops, zk.DeleteOp(node, stat.Version))
			}
			if len(record) > 0 {
				ops = append(ops, zk.CreateNodeOp(zk.Node{Path: node, Data: record, ACL: l.cfg.ACL}))
			}
			if len(ops) == held {
				return nil
			}
			if _, err = sess.Multi(ctx, ops...); err == nil {
				return nil
			}
			if failed, ok := errors.AsType[*zk.MultiError](err); ok && failed.Index < held && failed.Err == zk.NoNode {
				return locks[failed.Index]
			}
			if errors.Is(err, zk.NoNode) || errors.Is(err, zk.NodeExists) || errors.Is(err, zk.BadVersion) {
				continue // it has changed since it was read, perhaps by an attempt before
			}
		}
		if err := attempt.Again(ctx, sess, err); err != nil {
			return err
		}
	}
}

// leaseRecord is what is stored.
type leaseRecord struct {
	Version int    `json:"version"`
	Holder  string `json:"holder"`
	End     string `json:"end"`

	end time.Time
	raw string
}

// read returns what is stored, behind a barrier. Stat is zero if there is nothing.
func (l *Lease) read(ctx context.Context, sess *zk.Session, i int) (leaseRecord, zk.Stat, error) {
	node := l.slot(i) + leaseNode
	b := sess.Batch()
	passed := attempt.Fence(b)
	look := b.Get(node)
	b.Send()
	if err := passed(ctx); err != nil {
		return leaseRecord{}, zk.Stat{}, err
	}
	d, err := look.Get(ctx)
	return parseLease(node, d, err)
}

// parseLease returns what is in a lease's node, or nothing if there is none.
func parseLease(node string, d zk.Data, err error) (leaseRecord, zk.Stat, error) {
	if errors.Is(err, zk.NoNode) {
		return leaseRecord{}, zk.Stat{}, nil
	}
	if err != nil {
		return leaseRecord{}, zk.Stat{}, err
	}
	r := leaseRecord{raw: string(d.Data)}
	if err := json.Unmarshal(d.Data, &r); err != nil || r.Version != leaseVersion {
		return r, d.Stat, fmt.Errorf("%w: %s is %.80q; delete it if no program uses it", ErrLeaseFormat, node, d.Data)
	}
	if r.end, err = time.Parse(leaseTime, r.End); err != nil {
		return r, d.Stat, fmt.Errorf("%w: %s ends %.40q", ErrLeaseFormat, node, r.End)
	}
	return r, d.Stat, nil
}

// encodeLease returns the bytes that kazoo stores.
func encodeLease(holder string, end time.Time) []byte {
	var s strings.Builder
	for _, c := range holder {
		switch {
		case c == '"' || c == '\\':
			s.WriteString(`\` + string(c))
		case c == '\n':
			s.WriteString(`\n`)
		case c == '\r':
			s.WriteString(`\r`)
		case c == '\t':
			s.WriteString(`\t`)
		case c == '\b':
			s.WriteString(`\b`)
		case c == '\f':
			s.WriteString(`\f`)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&s, `\u%04x\u%04x`, high, low)
		case c < ' ' || c > '~':
			fmt.Fprintf(&s, `\u%04x`, c)
		default:
			s.WriteRune(c)
		}
	}
	return fmt.Appendf(nil, `{"version": %d, "holder": "%s", "end": "%s"}`,
		leaseVersion, s.String(), end.UTC().Format(leaseTime))
}

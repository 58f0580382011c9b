package lock

// The limit of a semaphore, and storing it.

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/zk"
)

// ErrLimit reports that a Semaphore's stored limit differs from its own.
var ErrLimit = errors.New("lock: semaphore limit mismatch")

// Limit is the number of permits of a Semaphore, and how its users agree on it. The zero Limit is invalid.
type Limit struct {
	permits int
	stored  bool
	path    string // of the node that says it
}

// AgreedLimit is a number that all users of the semaphore pass, as with Curator's InterProcessSemaphoreV2. Nothing
// checks that they pass the same one: a user that passes a larger number has more permits.
func AgreedLimit(permits int) Limit { return Limit{permits: permits} }

// StoredLimit is a number that the first user of the semaphore stores, as decimal digits, in the node at its path,
// which is persistent. Users with another number get ErrLimit. To change the number, write it to the node: holders
// keep their permits, and users with the old number get ErrLimit from then on. It is the limit of kazoo's Semaphore.
func StoredLimit(permits int) Limit { return Limit{permits: permits, stored: true} }

// WatchedLimit is the number in the node at path, in the form of Curator's SharedCount: four bytes, big-endian.
// SetLimit writes it. When it is raised, waiters come in; when it is lowered, holders keep their permits, and no
// waiter comes in until there are fewer. Permits are given out only under the number that the node has at that
// moment. Zero lets no one in.
func WatchedLimit(path string) Limit { return Limit{path: path} }

// check says what is wrong with the limit of a semaphore at path.
func (l Limit) check(path string) error {
	if l.path == "" {
		if l.permits < 1 {
			return fmt.Errorf("lock: %s: limit must be positive: %d", path, l.permits)
		}
		return nil
	}
	if err := ValidatePath(l.path); err != nil {
		return err
	}
	if l.path == path {
		return fmt.Errorf("lock: %s is the semaphore's own path; use another node for its limit", path)
	}
	return nil
}

// holds reports whether n permits can ever be given out. A watched limit may be raised, so it allows any number.
func (l Limit) holds(n int) bool { return l.path != "" || n <= l.permits }

// line returns how the limit of a semaphore at path is read.
func (l Limit) line(path string) line.Limit {
	switch {
	case l.stored:
		return line.Limit{Path: path, Read: func(data []byte, there bool) (int, error) {
			if !there || len(data) == 0 {
				return 0, line.ErrGone // another client has deleted it since it was stored
			}
			return l.permits, l.same(data)
		}}
	case l.path != "":
		return line.Limit{Path: l.path, Read: func(data []byte, there bool) (int, error) {
			if !there {
				return 0, fmt.Errorf("limit node %s does not exist; create it with lock.SetLimit", l.path)
			}
			return readCount(l.path, data)
		}}
	default:
		return line.Limit{Permits: l.permits}
	}
}

// same returns an error unless data is the stored limit.
func (l Limit) same(data []byte) error {
	switch n, err := strconv.Atoi(string(data)); {
	case err != nil:
		return fmt.Errorf("%w: stored %.40q, which is not a number, given %d", ErrLimit, data, l.permits)
	case n != l.permits:
		return fmt.Errorf("%w: stored %d, given %d", ErrLimit, n, l.permits)
	default:
		return nil
	}
}

// store writes the limit of a semaphore at path if it is to be stored and is not yet, and returns ErrLimit if another
// one is.
func (l Limit) store(ctx context.Context, sess *zk.Session, dir *line.Line) error {
	if !l.stored {
		return nil
	}
	for {
		data, stat, err := sess.Get(ctx, dir.Dir)
		switch {
		case errors.Is(err, zk.NoNode):
			if err := dir.MakeDir(ctx, sess); err != nil {
				return err
			}
			continue
		case err != nil:
			return err
		case len(data) > 0:
			return l.same(data)
		}
		// Our answer may be lost, or another client may be quicker. Either way, the next read has what counts.
		_, err = sess.Set(ctx, dir.Dir, strconv.AppendInt(nil, int64(l.permits), 10), stat.Version)
		if err != nil && !errors.Is(err, zk.BadVersion) && !errors.Is(err, zk.NoNode) {
			return err
		}
	}
}

// SetLimit writes the number of permits for all semaphores whose WatchedLimit names path. It creates the node,
// persistent and open to everyone, and missing parents if they do not exist; for other access rights create it first.
// If SetLimit returns an error, zk.OutcomeOf says whether the number was written.
func SetLimit(ctx context.Context, client *zk.Client, path string, permits int) error {
	if err := ValidatePath(path); err != nil {
		return err
	}
	if permits < 0 || permits > math.MaxInt32 {
		return fmt.Errorf("lock: %s: limit out of range: %d", path, permits)
	}
	sess, err := client.Session(ctx)
	if err != nil {
		return fmt.Errorf("lock: limit at %s: %w", path, err)
	}
	data := binary.BigEndian.AppendUint32(nil, uint32(permits))
	_, err = sess.Set(ctx, path, data, -1)
	if errors.Is(err, zk.NoNode) {
		node := line.Line{Dir: path, Lasting: true}
		if err = node.MakeDir(ctx, sess); err == nil {
			_, err = sess.Set(ctx, path, data, -1)
		}
	}
	if err != nil {
		return fmt.Errorf("lock: limit at %s: %w", path, err)
	}
	return nil
}

// readCount reads what SetLimit and Curator's SharedCount write.
func readCount(path string, data []byte) (int, error) {
	if len(data) != 4 {
		return 0, fmt.Errorf("limit at %s has %d bytes, want 4; write it with lock.SetLimit", path, len(data))
	}
	n := int32(binary.BigEndian.Uint32(data))
	if n < 0 {
		return 0, fmt.Errorf("limit at %s is negative: %d; write it with lock.SetLimit", path, n)
	}
	return int(n), nil
}

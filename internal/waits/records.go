package waits

// What clients tell of their waits, and what follows from it.

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
	"github.com/seed-a3166700/turnstile/internal/stuck"
	"github.com/seed-a3166700/turnstile/zk"
)

const (
	// maxRecord bounds what a record tells of its waits, in bytes, and maxConfirmed the keys, of 35 bytes each; the
	// last ones are left out. A record of more than maxData bytes is not of ours.
	maxRecord, maxConfirmed, maxData = 64 << 10, 4000, 256 << 10
	// maxClients and maxRead bound how many records are read, and how many bytes of them.
	maxClients, maxRead = 10_000, 32 << 20
)

// bellName returns the name of the node that is written with each new confirmation, so that those who wait look again.
func bellName() string { return attempt.Mark("bell") }

// recordPrefix is how names of records begin, inside of their marks. The path is the program's choice: other nodes may
// be there, and they stay as they are.
const recordPrefix = "0x"

// A Record is what a client tells of its waits.
type Record struct {
	Session int64 `json:"-"` // whose it is, as the server says

	Owner line.Owner    `json:"owner"`
	Waits []*stuck.Wait `json:"waits"`
	More  int           `json:"more,omitempty"` // waits that did not fit
	// Confirmed has the keys of deadlocks of which the client has found, after it had read all of their waits, that
	// its own waits among them still stood, inside of holds that still stood.
	//
	// If all clients of a deadlock have confirmed it, it has existed. Let t be when the first of them looked at its own
	// waits. It had read all the others' before, so each of those had begun before t. Every other client looked at or
	// after t, and its waits still stood: the same ones, because a wait with a new node, or inside of other holds, has
	// another key. A wait goes on without interruption, so at t all of them stood. No clock and no delay matters.
	Confirmed []string `json:"confirmed,omitempty"`
}

// recordName returns the name of a session's record for a list of rights.
func recordName(session int64, rights string) string {
	return attempt.Mark(recordPrefix + strconv.FormatUint(uint64(session), 16) + "-" + rights)
}

// beforeRights returns the part of a record's name that says its session.
func beforeRights(name string) string {
	session, _, _ := strings.Cut(name, "-")
	return session
}

// encode returns a record's data.
func (r Record) encode(mine map[uint64]*stuck.Wait) []byte {
	size := 0
	r.Confirmed = r.Confirmed[:min(len(r.Confirmed), maxConfirmed)]
	for _, id := range slices.Sorted(maps.Keys(mine)) {
		b, err := json.Marshal(mine[id])
		if size += len(b); err != nil || size > maxRecord {
			r.More++
			continue
		}
		r.Waits = append(r.Waits, mine[id])
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil // cannot happen: every field marshals
	}
	return data
}

// Read reads what all clients tell. It leaves out what is none of their own: a record counts only if its node is
// of the session that its name says. It stops after maxRead bytes: others may write anything there.
func Read(ctx context.Context, sess *zk.Session, path string) (map[string]*Record, error) {
	names, _, err := sess.Children(ctx, path)
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimRight(attempt.Mark(recordPrefix), "_")
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) })
	names = names[:min(len(names), maxClients)]
	records := make(map[string]*Record, len(names))
	read := 0
	for names := range slices.Chunk(names, 64) {
		b := sess.Batch()
		asked := make([]*zk.Future[zk.Data], len(names))
		for i, name := range names {
			asked[i] = b.Get(attempt.Join(path, name))
		}
		b.Send()
		for i, name := range names {
			node, err := asked[i].Get(ctx)
			switch {
			case errors.Is(err, zk.NoNode), errors.Is(err, zk.NoAuth):
				continue
			case err != nil:
				return nil, err
			}
			if read += len(node.Data); read > maxRead {
				return records, nil
			}
			r := new(Record)
			if len(node.Data) > maxData || json.Unmarshal(node.Data, r) != nil ||
				beforeRights(name) != beforeRights(recordName(node.Stat.EphemeralOwner, "")) {
				continue
			}
			r.Session = node.Stat.EphemeralOwner
			r.Waits = slices.DeleteFunc(r.Waits, malformed)
			for _, w := range r.Waits {
				w.Record = name
			}
			records[name] = r
		}
	}
	return records, nil
}

// malformed reports whether no client of ours can have written that.
func malformed(w *stuck.Wait) bool {
	wrong := func(paths []string) bool {
		bad := func(path string) bool { return zk.ValidatePath(path) != nil }
		return len(paths) == 0 || slices.ContainsFunc(paths, bad)
	}
	return w == nil || wrong(w.Paths) ||
		slices.ContainsFunc(w.Holds, func(h stuck.Hold) bool { return wrong(h.Paths) })
}

// Find returns the deadlocks in records.
func Find(records map[string]*Record) []*stuck.Deadlock {
	var waits []*stuck.Wait
	for _, name := range slices.Sorted(maps.Keys(records)) {
		waits = append(waits, records[name].Waits...)
	}
	return stuck.Find(waits)
}

// Certain reports whether all of a deadlock's clients have confirmed it.
func Certain(d *stuck.Deadlock, records map[string]*Record) bool {
	return !slices.ContainsFunc(d.Records(), func(name string) bool {
		return !slices.Contains(records[name].Confirmed, d.Key)
	})
}

// Explain makes the error of a deadlock. Package lock sets it, where users look for its type.
//
//nolint:gochecknoglobals // see above
var Explain func(found *stuck.Deadlock, owner func(record string) line.Owner) error

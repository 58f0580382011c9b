package lock

// What a contender's node says about it.

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/internal/line"
)

// Owner describes a contender to others. It is stored as JSON in the data of its node.
type Owner struct {
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Program string `json:"program"`
	Label   string `json:"label,omitempty"` // of the configuration

	// Set has all paths of a Set's contender. Where they are longer than 1,024 bytes together, only the node at the
	// first path has all of them, and the others have the first.
	Set []string `json:"set,omitempty"`

	Since time.Time `json:"since"` // when it joined the line, by its own clock; the last field: see ownerData
}

// What bounds a record: a set has as many as it has paths, in one request.
const (
	maxLabel = 1 << 10 // bytes
	maxSet   = 1 << 10 // bytes of the paths of a set that each of its nodes names
)

func checkLabel(label string) error {
	if len(label) > maxLabel || !utf8.ValidString(label) {
		return attempt.Bad("lock: invalid label; use UTF-8 of at most %d bytes", maxLabel)
	}
	return nil
}

// setRecords returns, for each of a set's paths, the paths that its node names.
func setRecords(paths []string) [][]string {
	size := 0
	for _, path := range paths {
		size += len(path)
	}
	named := slices.Repeat([][]string{paths}, len(paths))
	switch {
	case len(paths) == 1:
		return [][]string{nil}
	case size > maxSet: // all at each would be as much as the square
		for i := range named[1:] {
			named[1+i] = paths[:1]
		}
	}
	return named
}

// ownerData returns what makes the data of this process's nodes. Set is nil for a lock with one path.
func ownerData(label string, set []string) func() []byte {
	owner := line.ThisProcess(label)
	owner.Set = set
	record, err := json.Marshal(owner)
	if err != nil {
		return func() []byte { return []byte("{}") } // cannot happen: every field marshals
	}
	// Only the time differs from record to record, and it stands last. Every acquisition makes one, so this is fast.
	head := bytes.TrimSuffix(record, []byte(`"`+time.Time{}.Format(time.RFC3339Nano)+`"}`))
	return func() []byte {
		data := append(slices.Grow([]byte(nil), len(head)+len(time.RFC3339Nano)+len(`""}`)), head...)
		data = time.Now().AppendFormat(append(data, '"'), time.RFC3339Nano)
		return append(data, `"}`...)
	}
}

// parseOwner reads the record in the data of a node of that name. It reports false for a node of other programs, whose
// data may be JSON with the same fields, and for a candidate's, all of whose data is its id. Nodes of a line have names
// of ours; that of a simple lock, which has the lock's own, has an id of ours in its record.
func parseOwner(name string, marker line.Marker, data []byte) (Owner, bool) {
	var o signed
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &o) != nil {
		return Owner{}, false
	}
	ours := line.Ours(name) && !elects(marker) || attempt.IsGUID(o.ID)
	if !ours || o.Program == "" || o.PID <= 0 || o.Since.IsZero() {
		return Owner{}, false
	}
	return o.Owner, true
}

package lock

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Owner is what a contender tells about itself, as JSON in its node's data, for whoever looks at the line.
type Owner struct {
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Program string    `json:"program"`
	Label   string    `json:"label,omitempty"` // Config.Label
	Set     []string  `json:"set,omitempty"`   // of a Set's contender: all of its paths
	Since   time.Time `json:"since"`           // when it joined the line, by its own clock; the last field (ownerData)
}

// thisProcess returns the owner record of this process without a time.
func thisProcess(label string) Owner {
	host, err := os.Hostname()
	if err != nil {
		host = "?" // the record is for people; a host without a name must not keep anybody from locking
	}
	return Owner{Host: host, PID: os.Getpid(), Program: filepath.Base(os.Args[0]), Label: label}
}

// ownerData returns what makes the data of this process's nodes. The set is nil for whoever wants one path.
func ownerData(label string, set []string) func() []byte {
	owner := thisProcess(label)
	owner.Set = set
	record, err := json.Marshal(owner)
	if err != nil {
		return func() []byte { return []byte("{}") } // cannot happen: every field marshals
	}
	// Only the time is new in each record, and it stands last. It is on the way of every acquisition.
	head := bytes.TrimSuffix(record, []byte(`"`+time.Time{}.Format(time.RFC3339Nano)+`"}`))
	return func() []byte {
		data := append(slices.Grow([]byte(nil), len(head)+len(time.RFC3339Nano)+len(`""}`)), head...)
		data = time.Now().AppendFormat(append(data, '"'), time.RFC3339Nano)
		return append(data, `"}`...)
	}
}

// parseOwner reads a contender's data. It reports false for what others put there: Curator an address, kazoo an identifier.
func parseOwner(data []byte) (Owner, bool) {
	var o Owner
	if len(data) == 0 || data[0] != '{' || json.Unmarshal(data, &o) != nil {
		return Owner{}, false
	}
	return o, o.Host != "" || o.PID != 0
}

package segment

// How an item is stored.

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"time"
)

// The bounds of Record.Priority.
const (
	MostUrgent  = -100
	LeastUrgent = 100
)

// The largest values in a record, in ms, so that sums of times, and a limit in nanoseconds, do not overflow.
const (
	maxTime    = 1 << 53 // of times and delays
	maxTimeout = 1 << 42 // 139 years
)

// The first byte of a record says which fields it has. A record is written as
// the first version that has the fields it needs.
const (
	recordVersion = 1
	recordTimeout = 2 // it has a Timeout
	recordGroup   = 3 // it has a Timeout and a Group
	recordKey     = 4 // it has a Timeout, a Group and a Key
)

// maxFailures is how many failed attempts a record keeps, and MaxReason how many bytes of each reason.
const (
	maxFailures = 8
	MaxReason   = 256
)

// ID identifies an item for as long as it exists, wherever it moves.
type ID [16]byte

// NewID returns a random ID.
func NewID() ID {
	var id ID
	rand.Read(id[:]) // never fails (crypto/rand, since Go 1.24)
	return id
}

// String returns the ID in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// IsID reports whether an ID has that text.
func IsID(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == hex.EncodedLen(len(ID{}))
}

// Record is an item as it is stored: a head, followed by the body as it was given.
type Record struct {
	ID       ID
	Priority int   // of delayed items and dead letters; the path of a ready item tells its priority
	Attempts int   // that have failed, except those that the claim counts
	Enqueued int64 // when the item was first put, by the server's clock; 0: when its node was created
	Delay    int64 // ms from the creation of its node until it is due; 0 if it is ready
	Due      int64 // when it is due, instead of Delay
	Timeout  int64 // ms that an attempt may take; 0: as long as the consumer's configuration says
	Group    string
	Key      string // under which the item was put once, as the queue names it; "" if it was not
	Headers  map[string]string
	Failures []Failure
	Reason   string // of a dead letter
	Body     []byte
}

// Failure is a failed attempt.
type Failure struct {
	At     time.Time // by the server's clock
	Reason string
}

// Fail adds a failed attempt. Only the latest are kept.
func (r *Record) Fail(at int64, reason string) {
	r.Failures = append(r.Failures, Failure{time.UnixMilli(at), Shorten(reason)})
	if n := len(r.Failures); n > maxFailures {
		r.Failures = slices.Clone(r.Failures[n-maxFailures:])
	}
}

// Shorten returns the first MaxReason bytes of a reason.
func Shorten(reason string) string { return reason[:min(len(reason), MaxReason)] }

// Encode returns the record as it is stored.
func (r *Record) Encode() []byte {
	b := make([]byte, 0, len(r.Body)+64)
	version := byte(recordVersion)
	switch {
	case r.Key != "":
		version = recordKey
	case r.Group != "":
		version = recordGroup
	case r.Timeout > 0:
		version = recordTimeout
	}
	b = append(b, version)
	b = append(b, r.ID[:]...)
	b = binary.AppendVarint(b, int64(r.Priority))
	b = binary.AppendUvarint(b, uint64(r.Attempts))
	b = binary.AppendUvarint(b, uint64(r.Enqueued))
	b = binary.AppendUvarint(b, uint64(r.Delay))
	b = binary.AppendUvarint(b, uint64(r.Due))
	if version >= recordTimeout {
		b = binary.AppendUvarint(b, uint64(r.Timeout))
	}
	if version >= recordGroup {
		b = appendText(b, r.Group)
	}
	if version >= recordKey {
		b = appendText(b, r.Key)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Headers)))
	for k, v := range r.Headers {
		b = appendText(appendText(b, k), v)
	}
	b = binary.AppendUvarint(b, uint64(len(r.Failures)))
	for _, f := range r.Failures {
		b = binary.AppendUvarint(b, uint64(f.At.UnixMilli()))
		b = appendText(b, f.Reason)
	}
	b = appendText(b, r.Reason)
	return append(b, r.Body...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// ErrRecord is DecodeRecord's answer to data that is not a record.
var ErrRecord = errors.New("the node's data is not an item")

// DecodeRecord reads a stored record. It returns ErrRecord if data is not one, and never panics: other clients may
// write anything to a node.
func DecodeRecord(data []byte) (*Record, error) {
	if len(data) < 17 || data[0] < recordVersion || data[0] > recordKey {
		return nil, ErrRecord
	}
	r := &Record{}
	copy(r.ID[:], data[1:17])
	d := decoder{rest: data[17:]}
	r.Priority = int(d.signed())
	r.Attempts = int(d.unsigned())
	r.Enqueued = int64(d.unsigned())
	r.Delay = int64(d.unsigned())
	r.Due = int64(d.unsigned())
	if data[0] >= recordTimeout {
		r.Timeout = int64(d.unsigned())
	}
	if data[0] >= recordGroup {
		r.Group = d.text()
	}
	if data[0] >= recordKey {
		r.Key = d.text()
	}
	for range d.count(2) {
		if r.Headers == nil {
			r.Headers = make(map[string]string)
		}
		key := d.text()
		r.Headers[key] = d.text()
	}
	for range d.count(2) {
		at := int64(d.unsigned())
		r.Failures = append(r.Failures, Failure{time.UnixMilli(at), d.text()})
	}
	r.Reason = d.text()
	r.Body = d.rest
	if d.bad || r.Priority < MostUrgent || r.Priority > LeastUrgent || r.Attempts < 0 || r.Attempts > math.MaxInt32 ||
		min(r.Enqueued, r.Delay, r.Due, r.Timeout) < 0 || max(r.Enqueued, r.Delay, r.Due) > maxTime ||
		r.Timeout > maxTimeout {
		return nil, ErrRecord
	}
	return r, nil
}

// DueAt returns when a delayed item is due, by the server's clock, given when its node was created.
func (r *Record) DueAt(created int64) int64 {
	if r.Due > 0 {
		return r.Due
	}
	return created + r.Delay
}

// decoder reads the head of a record. After the first fault it returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) unsigned() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) signed() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.bad, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// count reads how many entries follow, each of which takes least bytes or more.
func (d *decoder) count(least int) int {
	n := d.unsigned()
	if n > uint64(len(d.rest)/least) {
		d.bad, d.rest = true, nil
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.unsigned()
	if n > uint64(len(d.rest)) {
		d.bad, d.rest = true, nil
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

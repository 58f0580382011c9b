package queue

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"time"
)

// recordVersion is the first byte of every item's data.
const recordVersion = 1

// maxFailures is how many failed attempts an item remembers, maxReason how much of each reason, in bytes.
const (
	maxFailures = 8
	maxReason   = 256
)

// record is an item as it is stored: a head, and then the body as it was given.
type record struct {
	id       [16]byte
	priority int   // for items that are not in a line: delayed and dead ones
	attempts int   // that have failed, but for those that the claim counts
	enqueued int64 // when the item was put first, by the server's clock; 0: when its node was created
	delay    int64 // ms from the creation of its node until it is due; 0 in a line
	due      int64 // when it is due, instead of delay
	headers  map[string]string
	failures []Failure
	reason   string // of a dead letter
	body     []byte
}

// Failure is an attempt that failed.
type Failure struct {
	At     time.Time // by the server's clock
	Reason string
}

func newID() [16]byte {
	var id [16]byte
	rand.Read(id[:]) // never fails (crypto/rand, since Go 1.24)
	return id
}

func (r *record) name() string { return hex.EncodeToString(r.id[:]) }

// fail remembers a failed attempt.
func (r *record) fail(at int64, reason string) {
	r.failures = append(r.failures, Failure{time.UnixMilli(at), cut(reason, maxReason)})
	if n := len(r.failures); n > maxFailures {
		r.failures = slices.Clone(r.failures[n-maxFailures:])
	}
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return s[:limit]
}

func (r *record) encode() []byte {
	b := make([]byte, 0, len(r.body)+64)
	b = append(b, recordVersion)
	b = append(b, r.id[:]...)
	b = binary.AppendVarint(b, int64(r.priority))
	b = binary.AppendUvarint(b, uint64(r.attempts))
	b = binary.AppendUvarint(b, uint64(r.enqueued))
	b = binary.AppendUvarint(b, uint64(r.delay))
	b = binary.AppendUvarint(b, uint64(r.due))
	b = binary.AppendUvarint(b, uint64(len(r.headers)))
	for k, v := range r.headers {
		b = appendText(appendText(b, k), v)
	}
	b = binary.AppendUvarint(b, uint64(len(r.failures)))
	for _, f := range r.failures {
		b = binary.AppendUvarint(b, uint64(f.At.UnixMilli()))
		b = appendText(b, f.Reason)
	}
	b = appendText(b, r.reason)
	return append(b, r.body...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

var errRecord = errors.New("queue: the node's data is no item of a queue")

// decodeRecord reads an item's data. What is not one gives errRecord, never a panic: anybody may write to a node.
func decodeRecord(data []byte) (*record, error) {
	if len(data) < 17 || data[0] != recordVersion {
		return nil, errRecord
	}
	r := &record{}
	copy(r.id[:], data[1:17])
	d := decoder{rest: data[17:]}
	r.priority = int(d.signed())
	r.attempts = int(d.unsigned())
	r.enqueued = int64(d.unsigned())
	r.delay = int64(d.unsigned())
	r.due = int64(d.unsigned())
	for range d.count(2) {
		if r.headers == nil {
			r.headers = make(map[string]string)
		}
		key := d.text()
		r.headers[key] = d.text()
	}
	for range d.count(2) {
		at := int64(d.unsigned())
		r.failures = append(r.failures, Failure{time.UnixMilli(at), d.text()})
	}
	r.reason = d.text()
	r.body = d.rest
	if d.bad || r.priority < MostUrgent || r.priority > LeastUrgent || r.attempts < 0 || r.enqueued < 0 || r.delay < 0 || r.due < 0 {
		return nil, errRecord
	}
	return r, nil
}

// decoder reads a record's head. After the first fault it gives zeros.
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

// count reads a number of entries that take least bytes each.
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

// dueAt returns when a delayed item is due, by the server's clock.
func (r *record) dueAt(created int64) int64 {
	if r.due > 0 {
		return r.due
	}
	return created + r.delay
}

package wire_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// roundTrip checks that the encoding of r decodes into empty as r, and that every prefix of it is an error.
func roundTrip(t *testing.T, name string, r wire.Record, empty func() wire.Record) {
	t.Helper()
	b := r.Append([]byte("head"))[4:]
	got := empty()
	d := jute.NewDecoder(b)
	got.Decode(d)
	if d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(got, r) {
		t.Errorf("%s: %v, %d bytes are left\ngot  %+v\nwant %+v", name, d.Err(), d.Len(), got, r)
	}
	// Decode ignores what follows a record.
	d.Reset(append(bytes.Clone(b), 1, 2, 3))
	if again := empty(); name != "*wire.ConnectRequest" && name != "*wire.ConnectResponse" {
		if again.Decode(d); d.Err() != nil || d.Len() != 3 || !reflect.DeepEqual(again, r) {
			t.Errorf("%s with a tail: %v, %d bytes are left", name, d.Err(), d.Len())
		}
	}
	for cut := range b {
		d.Reset(b[:cut])
		if short := empty(); name != "*wire.ConnectRequest" && name != "*wire.ConnectResponse" {
			if short.Decode(d); d.Err() == nil {
				t.Errorf("%s: %d of %d bytes are a record", name, cut, len(b))
			}
		}
	}
	// A used record decodes like an empty one, so that a connection can reuse records.
	d.Reset(b)
	if got.Decode(d); !reflect.DeepEqual(got, r) {
		t.Errorf("%s into a used record:\ngot  %+v\nwant %+v", name, got, r)
	}
}

func TestRequestsRoundTrip(t *testing.T) {
	t.Parallel()
	for op, samples := range requests {
		for _, r := range samples {
			roundTrip(t, op.String(), r, func() wire.Record { return wire.NewRequest(op) })
		}
	}
}

func TestResponsesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, row := range responses {
		for _, r := range row.samples {
			roundTrip(t, fmt.Sprintf("%T", r), r, row.make)
		}
	}
}

func TestEveryOperationOfTheProtocolHasItsRecordAndNames(t *testing.T) {
	t.Parallel()
	count := 0
	for op := wire.Op(-200); op < 600; op++ {
		r := wire.NewRequest(op)
		if (r != nil) != (requests[op] != nil) {
			t.Errorf("%v: record %T, samples %v", op, r, requests[op])
		}
		if r == nil {
			continue
		}
		count++
		if want := reflect.TypeOf(requests[op][0]); reflect.TypeOf(r) != want {
			t.Errorf("%v: record %T, want %v", op, r, want)
		}
		if op.String() == fmt.Sprintf("op(%d)", int32(op)) || op.Short() == "NA" {
			t.Errorf("%v has no name: %s", int32(op), op.Short())
		}
	}
	if count != 30 {
		t.Errorf("%d operations, want 30", count)
	}
	unknown := wire.Op(42)
	if unknown.String() != "op(42)" || unknown.Short() != "NA" || wire.NewRequest(unknown) != nil {
		t.Errorf("unknown operation: %v %s", unknown, unknown.Short())
	}
	if wire.OpCreateSession.String() != "createSession" || wire.NewRequest(wire.OpCreateSession) != nil {
		t.Error("clients cannot send createSession")
	}
	if got := wire.Code(-99).String(); got != "error code -99" {
		t.Errorf("unknown code: %s", got)
	}
	if got := wire.NoNode.String(); got != "node does not exist" {
		t.Errorf("NoNode: %s", got)
	}
}

func TestRecordsHaveTheBytesOfTheProtocol(t *testing.T) {
	t.Parallel()
	if b := stat.Append(nil); len(b) != wire.StatLen {
		t.Errorf("stat of %d bytes", len(b))
	}
	password := make([]byte, wire.PasswordLen)
	for _, row := range []struct {
		name string
		r    wire.Record
		len  int
	}{
		{"connect request", &wire.ConnectRequest{Password: password}, 44},
		{"connect request, read-only", &wire.ConnectRequest{Password: password, HasReadOnly: true}, 45},
		{"connect response", &wire.ConnectResponse{Password: password}, 36},
		{"connect response, read-only", &wire.ConnectResponse{Password: password, HasReadOnly: true}, 37},
		{"reply header", &wire.ReplyHeader{}, 16},
		{"request header", &wire.RequestHeader{}, 8},
	} {
		if got := len(row.r.Append(nil)); got != row.len {
			t.Errorf("%s has %d bytes, want %d", row.name, got, row.len)
		}
	}
	if b := (&wire.ErrorResponse{}).Append(nil); !bytes.Equal(b, make([]byte, 4)) {
		t.Errorf("answer of addWatch: %x", b)
	}
	// A failed multi has every code twice.
	multi := &wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpError, Err: wire.NoNode}}}
	want := []byte{
		0xff, 0xff, 0xff, 0xff, 0, 0xff, 0xff, 0xff, 0x9b, 0xff, 0xff, 0xff, 0x9b,
		0xff, 0xff, 0xff, 0xff, 1, 0xff, 0xff, 0xff, 0xff,
	}
	if b := multi.Append(nil); !bytes.Equal(b, want) {
		t.Errorf("failed multi:\ngot  %x\nwant %x", b, want)
	}
}

func TestNullVectorsAndStrings(t *testing.T) {
	t.Parallel()
	null := jute.AppendNull(nil)
	decode := func(r wire.Record, parts ...[]byte) error {
		d := jute.NewDecoder(bytes.Join(parts, nil))
		r.Decode(d)
		return d.Err()
	}
	path, zero, empty := jute.AppendString(nil, "/a"), jute.AppendInt(nil, 0), jute.AppendStrings(nil, nil)
	var c wire.CreateRequest
	if err := decode(&c, path, null, null, zero); err != nil || c.Data != nil || c.ACL != nil {
		t.Errorf("create with null data and list: %v %+v", err, c)
	}
	var s wire.SetACLRequest
	if err := decode(&s, path, null, zero); err != nil || s.ACL != nil {
		t.Errorf("setACL with a null list: %v %+v", err, s)
	}
	if err := decode(new(wire.EphemeralsRequest), null); err != nil {
		t.Errorf("getEphemerals with a null prefix: %v", err)
	}
	for op, r := range map[wire.Op][][]byte{
		wire.OpCreate: {null, null, null, zero}, wire.OpDelete: {null, zero},
		wire.OpExists: {null, {0}}, wire.OpGetData: {null, {0}},
		wire.OpGetACL: {null}, wire.OpSync: {null}, wire.OpCheck: {null, zero}, wire.OpAddWatch: {null, zero},
		wire.OpRemoveWatches: {null, zero}, wire.OpGetAllChildren: {null},
	} {
		if err := decode(wire.NewRequest(op), r...); err == nil {
			t.Errorf("%v passes with a null path", op)
		}
	}
	zxid := jute.AppendLong(nil, 1)
	for _, lists := range [][][]byte{{null, empty, empty}, {empty, null, empty}, {empty, empty, null}} {
		if err := decode(wire.NewRequest(wire.OpSetWatches), append([][]byte{zxid}, lists...)...); err == nil {
			t.Errorf("setWatches passes with a null vector: %x", lists)
		}
		err := decode(wire.NewRequest(wire.OpSetWatches2), append([][]byte{zxid, empty, empty}, lists...)...)
		if lists[0][0] == 0 && err == nil {
			t.Errorf("setWatches2 passes with a null vector: %x", lists)
		}
	}
	var who wire.WhoAmIResponse
	if err := decode(&who, null); err != nil || who.IDs != nil {
		t.Errorf("whoAmI with a null vector: %v %+v", err, who)
	}
	var names wire.ChildrenResponse
	if err := decode(&names, null); err != nil || names.Children != nil {
		t.Errorf("getChildren with a null vector: %v %+v", err, names)
	}
}

package wire_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// header is the header of each operation and each result of a multi.
func header(b []byte, op wire.Op, done bool, code wire.Code) []byte {
	return jute.AppendInt(jute.AppendBool(jute.AppendInt(b, int32(op)), done), int32(code))
}

func TestMultiRefusesOperationsThatHaveNoPlaceInIt(t *testing.T) {
	t.Parallel()
	reads := map[wire.Op]bool{wire.OpGetData: true, wire.OpGetChildren: true}
	writes := map[wire.Op]bool{
		wire.OpCreate: true, wire.OpCreate2: true, wire.OpCreateContainer: true, wire.OpCreateTTL: true,
		wire.OpDelete:  true,
		wire.OpSetData: true, wire.OpCheck: true,
	}
	for op := wire.Op(-20); op < 120; op++ {
		for _, read := range []bool{false, true} {
			b := header(nil, op, false, -1)
			if samples := requests[op]; samples != nil {
				b = samples[0].Append(b)
			}
			b = header(b, wire.OpError, true, -1)
			d := jute.NewDecoder(b)
			r := wire.MultiRequest{Read: read}
			r.Decode(d)
			want := writes[op]
			if read {
				want = reads[op]
			}
			if got := d.Err() == nil; got != want {
				t.Errorf("%v, reads %t: got %v, want ok %t", op, read, d.Err(), want)
			}
		}
	}
}

func TestMultiWithoutItsEndIsShort(t *testing.T) {
	t.Parallel()
	ops := []wire.SubRequest{{Op: wire.OpDelete, Request: &wire.DeleteRequest{Path: "/a"}}}
	full := (&wire.MultiRequest{Ops: ops}).Append(nil)
	d := jute.NewDecoder(full[:len(full)-9])
	new(wire.MultiRequest).Decode(d)
	if d.Err() == nil {
		t.Error("a multi without its end passes")
	}
}

func TestBothEncodingsOfAFailedReadAreUnderstood(t *testing.T) {
	t.Parallel()
	want := []wire.MultiResult{
		{Op: wire.OpError, Err: wire.NoNode},
		{Op: wire.OpGetChildren, Children: []string{"x"}},
		{Op: wire.OpError, Err: wire.NoAuth},
		{Op: wire.OpError, Err: wire.NoAuth},
	}
	for _, twice := range []bool{true, false} {
		var b []byte
		failure := func(code wire.Code) {
			b = header(b, wire.OpError, false, code)
			if twice {
				b = jute.AppendInt(b, int32(code))
			}
		}
		failure(wire.NoNode)
		b = jute.AppendStrings(header(b, wire.OpGetChildren, false, 0), []string{"x"})
		failure(wire.NoAuth)
		failure(wire.NoAuth)
		b = header(b, wire.OpError, true, -1)
		var r wire.MultiResponse
		d := jute.NewDecoder(b)
		r.Decode(d)
		if d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(r.Results, want) {
			t.Errorf("code twice %t: %v\ngot  %+v\nwant %+v", twice, d.Err(), r.Results, want)
		}
	}
}

func TestResultsThatNoMultiHasAreErrors(t *testing.T) {
	t.Parallel()
	for op := wire.Op(-20); op < 120; op++ {
		known := map[wire.Op]bool{
			wire.OpCreate: true, wire.OpCreate2: true, wire.OpCreateContainer: true, wire.OpCreateTTL: true,
			wire.OpDelete:  true,
			wire.OpSetData: true, wire.OpCheck: true, wire.OpGetData: true, wire.OpGetChildren: true,
			wire.OpError: true,
		}[op]
		d := jute.NewDecoder(header(header(nil, op, false, 0), wire.OpError, true, -1))
		if new(wire.MultiResponse).Decode(d); !known && (d.Err() == nil || errors.Is(d.Err(), jute.ErrShort)) {
			t.Errorf("%v: %v", op, d.Err())
		}
	}
}

func TestResultThatCannotBeSentSaysNothing(t *testing.T) {
	t.Parallel()
	r := wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpPing}}}
	if got, want := len(r.Append(nil)), 18; got != want {
		t.Errorf("%d bytes, want %d", got, want)
	}
}

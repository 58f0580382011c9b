package wire_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
	"github.com/seed-a3166700/turnstile/internal/wire"
)

// stable decodes input and checks that the encoding of the result decodes to itself.
func stable(t *testing.T, input []byte, empty func() wire.Record) {
	t.Helper()
	first := empty()
	d := jute.NewDecoder(input)
	if first.Decode(d); d.Err() != nil {
		return
	}
	b := first.Append(nil)
	second := empty()
	d.Reset(b)
	if second.Decode(d); d.Err() != nil || d.Len() != 0 {
		t.Fatalf("%+v does not decode from its own bytes %x: %v, %d are left", first, b, d.Err(), d.Len())
	}
	if again := second.Append(nil); !bytes.Equal(again, b) {
		t.Fatalf("%+v is not stable:\nfirst  %x\nsecond %x", first, b, again)
	}
}

// FuzzRequest decodes the body of a request of every operation.
//
// Promise: 9
func FuzzRequest(f *testing.F) {
	for op, samples := range requests {
		for _, r := range samples {
			f.Add(int32(op), r.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, op int32, input []byte) {
		if wire.NewRequest(wire.Op(op)) != nil {
			stable(t, input, func() wire.Record { return wire.NewRequest(wire.Op(op)) })
		}
	})
}

// FuzzResponse decodes every record that is not the body of a request.
//
// Promise: 9
func FuzzResponse(f *testing.F) {
	for i, row := range responses {
		for _, r := range row.samples {
			f.Add(i, r.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, which int, input []byte) {
		if which >= 0 && which < len(responses) {
			stable(t, input, responses[which].make)
		}
	})
}

// FuzzReadFrame reads a stream to its end.
//
// Promise: 9
func FuzzReadFrame(f *testing.F) {
	f.Add(append(frame(3), frame(0)...), uint16(16))
	f.Add(jute.AppendInt(nil, -1), uint16(16))
	f.Fuzz(func(t *testing.T, stream []byte, limit uint16) {
		r := bytes.NewReader(stream)
		var buf []byte
		for {
			left := r.Len()
			body, err := wire.ReadFrame(r, int(limit), buf)
			if err != nil {
				if !errors.Is(err, wire.ErrFrame) && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatal(err)
				}
				return
			}
			if len(body) > int(limit) || left-r.Len() != 4+len(body) {
				t.Fatalf("frame of %d bytes, limit %d", len(body), limit)
			}
			buf = body
		}
	})
}

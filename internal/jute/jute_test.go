package jute_test

import (
	"bytes"
	"errors"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/seed-a3166700/turnstile/internal/jute"
)

func TestPrimitivesAreEncodedAsTheProtocolSays(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ got, want []byte }{
		"byte":         {jute.AppendByte(nil, 0xfe), []byte{0xfe}},
		"false":        {jute.AppendBool(nil, false), []byte{0}},
		"true":         {jute.AppendBool(nil, true), []byte{1}},
		"int":          {jute.AppendInt(nil, -2), []byte{0xff, 0xff, 0xff, 0xfe}},
		"long":         {jute.AppendLong(nil, 1<<40), []byte{0, 0, 1, 0, 0, 0, 0, 0}},
		"string":       {jute.AppendString(nil, "ä"), []byte{0, 0, 0, 2, 0xc3, 0xa4}},
		"empty string": {jute.AppendString(nil, ""), []byte{0, 0, 0, 0}},
		"buffer":       {jute.AppendBuffer(nil, []byte{7}), []byte{0, 0, 0, 1, 7}},
		"empty buffer": {jute.AppendBuffer(nil, []byte{}), []byte{0, 0, 0, 0}},
		"null buffer":  {jute.AppendBuffer(nil, nil), []byte{0xff, 0xff, 0xff, 0xff}},
		"null":         {jute.AppendNull(nil), []byte{0xff, 0xff, 0xff, 0xff}},
		"strings":      {jute.AppendStrings(nil, []string{"a", ""}), []byte{0, 0, 0, 2, 0, 0, 0, 1, 'a', 0, 0, 0, 0}},
		"no strings":   {jute.AppendStrings(nil, nil), []byte{0, 0, 0, 0}},
	} {
		if !bytes.Equal(row.got, row.want) {
			t.Errorf("%s: got %x, want %x", name, row.got, row.want)
		}
	}
}

func TestPrimitivesRoundTrip(t *testing.T) {
	t.Parallel()
	ints := []int32{0, 1, -1, math.MaxInt32, math.MinInt32}
	longs := []int64{0, 1, -1, math.MaxInt64, math.MinInt64}
	texts := []string{"", "a", "/a/ä", "\x00", "\xff\xfe"}
	var b []byte
	for _, v := range ints {
		b = jute.AppendInt(b, v)
	}
	for _, v := range longs {
		b = jute.AppendLong(b, v)
	}
	for _, v := range texts {
		b = jute.AppendBuffer(jute.AppendString(b, v), []byte(v))
	}
	b = jute.AppendStrings(b, texts)
	b = jute.AppendBool(jute.AppendByte(b, 9), true)
	d := jute.NewDecoder(b)
	for _, v := range ints {
		if peek, ok := d.PeekInt(); !ok || peek != v {
			t.Errorf("peek: got %d %t, want %d", peek, ok, v)
		}
		if got := d.Int(); got != v {
			t.Errorf("int: got %d, want %d", got, v)
		}
	}
	for _, v := range longs {
		if got := d.Long(); got != v {
			t.Errorf("long: got %d, want %d", got, v)
		}
	}
	for _, v := range texts {
		if got := d.String(); got != v {
			t.Errorf("string: got %q, want %q", got, v)
		}
		if got := d.Buffer(); got == nil || string(got) != v {
			t.Errorf("buffer: got %q, want %q", got, v)
		}
	}
	if got := d.RequiredStrings(); !slices.Equal(got, texts) {
		t.Errorf("strings: got %q, want %q", got, texts)
	}
	if got := d.Byte(); got != 9 || len(d.Rest()) != 1 {
		t.Errorf("byte: got %d, %d bytes are left", got, len(d.Rest()))
	}
	if !d.Bool() || d.Err() != nil || d.Len() != 0 {
		t.Errorf("end: %v, %d bytes are left", d.Err(), d.Len())
	}
}

func TestEveryByteButZeroIsTrue(t *testing.T) {
	t.Parallel()
	for v := range 256 {
		if got := jute.NewDecoder([]byte{byte(v)}).Bool(); got != (v != 0) {
			t.Errorf("%d reads as %t", v, got)
		}
	}
}

func TestNullIsNotEmpty(t *testing.T) {
	t.Parallel()
	null, empty := jute.AppendNull(nil), jute.AppendInt(nil, 0)
	if got := jute.NewDecoder(null).Buffer(); got != nil {
		t.Errorf("null buffer reads as %q", got)
	}
	if got := jute.NewDecoder(empty).Buffer(); got == nil || len(got) != 0 {
		t.Errorf("empty buffer reads as nil: %t", got == nil)
	}
	if got := jute.NewDecoder(null).Strings(); got != nil {
		t.Errorf("null vector reads as %q", got)
	}
	if got := jute.NewDecoder(empty).Strings(); got == nil || len(got) != 0 {
		t.Errorf("empty vector reads as nil: %t", got == nil)
	}
	if d := jute.NewDecoder(null); d.String() != "" || d.Err() != nil {
		t.Errorf("null string: %v", d.Err())
	}
	if got := jute.NewDecoder(null).Count(8); got != -1 {
		t.Errorf("null vector counts %d", got)
	}
	for name, read := range map[string]func(d *jute.Decoder){
		"string": func(d *jute.Decoder) { d.Required() },
		"vector": func(d *jute.Decoder) { d.RequiredStrings() },
	} {
		d := jute.NewDecoder(null)
		if read(d); d.Err() == nil {
			t.Errorf("null passes for a required %s", name)
		}
		d.Reset(empty)
		if read(d); d.Err() != nil {
			t.Errorf("empty %s: %v", name, d.Err())
		}
	}
}

// reads has a function for each method that reads one value.
var reads = map[string]func(d *jute.Decoder){
	"byte":             func(d *jute.Decoder) { d.Byte() },
	"bool":             func(d *jute.Decoder) { d.Bool() },
	"int":              func(d *jute.Decoder) { d.Int() },
	"long":             func(d *jute.Decoder) { d.Long() },
	"string":           func(d *jute.Decoder) { _ = d.String() },
	"buffer":           func(d *jute.Decoder) { d.Buffer() },
	"required":         func(d *jute.Decoder) { d.Required() },
	"strings":          func(d *jute.Decoder) { d.Strings() },
	"required strings": func(d *jute.Decoder) { d.RequiredStrings() },
	"count":            func(d *jute.Decoder) { d.Count(12) },
}

func TestTruncatedInputIsAnError(t *testing.T) {
	t.Parallel()
	full := map[string][]byte{
		"byte":             {1},
		"bool":             {1},
		"int":              {1, 2, 3, 4},
		"long":             {1, 2, 3, 4, 5, 6, 7, 8},
		"string":           jute.AppendString(nil, "abc"),
		"buffer":           jute.AppendString(nil, "abc"),
		"required":         jute.AppendString(nil, "abc"),
		"strings":          jute.AppendStrings(nil, []string{"a", "b"}),
		"required strings": jute.AppendStrings(nil, []string{"a", "b"}),
		"count":            append(jute.AppendInt(nil, 1), make([]byte, 12)...),
	}
	for name, read := range reads {
		b := full[name]
		for cut := range b {
			d := jute.NewDecoder(b[:cut])
			if read(d); !errors.Is(d.Err(), jute.ErrShort) {
				t.Errorf("%s out of %d of %d bytes: %v", name, cut, len(b), d.Err())
			}
		}
		d := jute.NewDecoder(b)
		if read(d); d.Err() != nil {
			t.Errorf("%s: %v", name, d.Err())
		}
	}
	for _, name := range []string{"string", "buffer", "required", "strings", "required strings", "count"} {
		for _, length := range []int32{-2, -100, math.MinInt32, 100, 1 << 20, math.MaxInt32} {
			d := jute.NewDecoder(append(jute.AppendInt(nil, length), make([]byte, 16)...))
			if reads[name](d); d.Err() == nil {
				t.Errorf("%s of length %d passes", name, length)
			}
		}
	}
}

func TestFirstErrorStays(t *testing.T) {
	t.Parallel()
	d := jute.NewDecoder([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	first := errors.New("first")
	d.Fail(first)
	d.Fail(errors.New("second"))
	for name, read := range reads {
		if read(d); !errors.Is(d.Err(), first) {
			t.Errorf("after reading a %s: %v", name, d.Err())
		}
	}
	if _, ok := d.PeekInt(); ok || d.Len() != 0 {
		t.Errorf("there is something left to read")
	}
	d.Reset([]byte{1})
	if d.Err() != nil || d.Byte() != 1 {
		t.Errorf("after a reset: %v", d.Err())
	}
}

func TestBuffersCannotGrowIntoTheFrame(t *testing.T) {
	t.Parallel()
	frame := jute.AppendString(jute.AppendString(nil, "ab"), "cd")
	d := jute.NewDecoder(frame)
	_ = append(d.Buffer(), "XXXXXX"...)
	if got := d.String(); got != "cd" {
		t.Errorf("the next field reads %q", got)
	}
}

// Not parallel: it counts the allocations of the whole program.
//
// Promise: 9
func TestClaimedLengthAloneAllocatesNothing(t *testing.T) {
	frame := append(jute.AppendInt(nil, math.MaxInt32), make([]byte, 64)...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, read := range reads {
		read(jute.NewDecoder(frame))
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
		t.Errorf("%d bytes allocated for a frame of %d", got, len(frame))
	}
}

// FuzzDecoder checks that no input makes a decoder panic, return more than the input has, or go on after an error.
//
// Promise: 9
func FuzzDecoder(f *testing.F) {
	f.Add([]byte("bilsunvc"), jute.AppendStrings(jute.AppendInt(nil, 3), []string{"a", "b"}))
	f.Add([]byte("us"), jute.AppendNull(jute.AppendNull(nil)))
	f.Add([]byte("c"), jute.AppendInt(nil, math.MaxInt32))
	f.Fuzz(func(t *testing.T, plan, input []byte) {
		d := jute.NewDecoder(input)
		failed := false
		for _, what := range plan {
			before := d.Len()
			switch what {
			case 'b':
				d.Bool()
			case 'i':
				d.Int()
			case 'l':
				d.Long()
			case 's':
				if s := d.String(); len(s) > before {
					t.Fatalf("string of %d bytes out of %d", len(s), before)
				}
			case 'u':
				if p := d.Buffer(); len(p) > before {
					t.Fatalf("buffer of %d bytes out of %d", len(p), before)
				}
			case 'n':
				d.Required()
			case 'v':
				if v := d.Strings(); 4*len(v) > before || cap(v) > before {
					t.Fatalf("%d strings (room for %d) out of %d bytes", len(v), cap(v), before)
				}
			case 'c':
				if n := d.Count(8); 8*n > before {
					t.Fatalf("count %d out of %d bytes", n, before)
				}
			}
			if failed && d.Err() == nil || d.Len() > before || d.Err() != nil && d.Len() != 0 {
				t.Fatalf("went on after an error: %v", d.Err())
			}
			failed = d.Err() != nil
		}
	})
}

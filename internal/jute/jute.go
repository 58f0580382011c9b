// Package jute encodes and decodes the primitive types of ZooKeeper's wire format: big-endian integers,
// length-prefixed strings and buffers, counted vectors.
//
// Encoding appends to a byte slice and cannot fail. A Decoder remembers its first error, so a record decodes all its
// fields and checks for an error once.
package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrShort is the error for input that ends before the last field does.
var ErrShort = errors.New("jute: input ends in the middle of a record")

// AppendByte appends one byte.
func AppendByte(b []byte, v byte) []byte { return append(b, v) }

// AppendBool appends a boolean as one byte, 0 or 1.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt appends a 32-bit signed integer.
func AppendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendLong appends a 64-bit signed integer.
func AppendLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendString appends a string with its length. AppendNull appends the null string.
func AppendString(b []byte, s string) []byte { return append(AppendInt(b, int32(len(s))), s...) }

// AppendBuffer appends bytes with their length. A nil slice is the null buffer, which differs from an empty one.
func AppendBuffer(b, p []byte) []byte {
	if p == nil {
		return AppendNull(b)
	}
	return append(AppendInt(b, int32(len(p))), p...)
}

// AppendNull appends the null string, buffer or vector, which all have the same encoding.
func AppendNull(b []byte) []byte { return AppendInt(b, -1) }

// AppendStrings appends a vector of strings. A nil slice becomes the empty vector, because servers reject the null one.
func AppendStrings(b []byte, v []string) []byte {
	b = AppendInt(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}

// A Decoder reads the fields of a record. After the first error its methods return zero values, and Err returns that
// error. A length that exceeds the remaining input is an error before anything is allocated for it.
type Decoder struct {
	rest []byte
	err  error
}

// NewDecoder returns a decoder of b. The buffers that it decodes share memory with b.
func NewDecoder(b []byte) *Decoder { return &Decoder{rest: b} }

// Reset makes d a decoder of b, as NewDecoder does, without allocating.
func (d *Decoder) Reset(b []byte) { d.rest, d.err = b, nil }

// Err returns the first error, or nil.
func (d *Decoder) Err() error { return d.err }

// Len returns the number of bytes left.
func (d *Decoder) Len() int { return len(d.rest) }

// Rest returns the bytes left, without consuming them.
func (d *Decoder) Rest() []byte { return d.rest }

// Fail sets the decoder's error, unless it has one.
func (d *Decoder) Fail(err error) {
	if d.err == nil {
		d.err = err
		d.rest = nil
	}
}

func (d *Decoder) take(n int) []byte {
	if d.err != nil {
		return nil
	}
	if n > len(d.rest) {
		d.Fail(ErrShort)
		return nil
	}
	p := d.rest[:n:n]
	d.rest = d.rest[n:]
	return p
}

// Byte reads one byte.
func (d *Decoder) Byte() byte {
	if p := d.take(1); p != nil {
		return p[0]
	}
	return 0
}

// Bool reads a boolean. Every byte except 0 is true.
func (d *Decoder) Bool() bool { return d.Byte() != 0 }

// Int reads a 32-bit signed integer.
func (d *Decoder) Int() int32 {
	if p := d.take(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	return 0
}

// Long reads a 64-bit signed integer.
func (d *Decoder) Long() int64 {
	if p := d.take(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	return 0
}

// PeekInt returns the next 32-bit integer without consuming it, or false if fewer than four bytes are left.
func (d *Decoder) PeekInt() (int32, bool) {
	if d.err != nil || len(d.rest) < 4 {
		return 0, false
	}
	return int32(binary.BigEndian.Uint32(d.rest)), true
}

// Buffer reads a buffer: nil if it is null, empty but not nil if its length is 0. It shares memory with the input.
func (d *Decoder) Buffer() []byte {
	n := d.Int()
	switch {
	case d.err != nil || n == -1:
		return nil
	case n < 0:
		d.Fail(fmt.Errorf("jute: negative length %d", n))
		return nil
	}
	return d.take(int(n))
}

// String reads a string. The null string becomes "".
func (d *Decoder) String() string { return string(d.Buffer()) }

// Required reads a string that must not be null.
func (d *Decoder) Required() string {
	p := d.Buffer()
	if p == nil {
		d.Fail(errors.New("jute: required string is null"))
	}
	return string(p)
}

// Count reads the number of elements of a vector, -1 for the null vector. Each element takes at least size bytes. A
// count that exceeds the remaining input is an error, so it is safe to allocate that many elements.
func (d *Decoder) Count(size int) int {
	n := d.Int()
	switch {
	case d.err != nil:
		return 0
	case n < -1:
		d.Fail(fmt.Errorf("jute: negative count %d", n))
		return 0
	case int64(n)*int64(max(size, 1)) > int64(len(d.rest)):
		d.Fail(ErrShort)
		return 0
	}
	return int(n)
}

// Strings reads a vector of strings: nil if it is null, empty but not nil if it has no elements.
func (d *Decoder) Strings() []string {
	n := d.Count(4)
	if n < 0 || d.err != nil {
		return nil
	}
	v := make([]string, 0, n)
	for range n {
		v = append(v, d.String())
	}
	return v
}

// RequiredStrings reads a vector of strings that must not be null.
func (d *Decoder) RequiredStrings() []string {
	v := d.Strings()
	if v == nil {
		d.Fail(errors.New("jute: required vector is null"))
	}
	return v
}

package line

// The random part of names.

import (
	"crypto/rand"
	"encoding/hex"
)

// version is that of our UUIDs.
const version = 8

// NewGUID returns a random UUID in the lower-case form with dashes, as Java prints it: names that carry it are
// recognised by Curator as protected. It is of version 8, which is free for custom use, and Curator's are of version 4:
// so people can tell from a name whether Turnstile has chosen it.
func NewGUID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails (crypto/rand, since Go 1.24)
	u[6] = u[6]&0x0f | version<<4
	u[8] = u[8]&0x3f | 0x80
	var s [36]byte
	hex.Encode(s[0:8], u[0:4])
	hex.Encode(s[9:13], u[4:6])
	hex.Encode(s[14:18], u[6:8])
	hex.Encode(s[19:23], u[8:10])
	hex.Encode(s[24:36], u[10:16])
	s[8], s[13], s[18], s[23] = '-', '-', '-', '-'
	return string(s[:])
}

// Ours reports whether Turnstile has chosen a contender's name: one that begins with _c_UUID-, with a UUID of ours.
func Ours(name string) bool {
	const digit = len("_c_") + 14
	return len(name) > len("_c_")+36 && name[:3] == "_c_" && name[len("_c_")+36] == '-' && name[digit] == '0'+version
}

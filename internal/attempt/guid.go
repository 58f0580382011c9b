package attempt

// Random names.

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// GUIDVersion is that of our UUIDs. Version 8 is free for custom use, and Curator's are of version 4: so people can
// tell from a name whether Turnstile has chosen it.
const GUIDVersion = 8

// IsGUID reports whether s has the form of our UUIDs, or that without dashes.
func IsGUID(s string) bool {
	plain := strings.ReplaceAll(s, "-", "")
	_, err := hex.DecodeString(plain)
	return err == nil && len(plain) == 32 && (len(s) == 36 || s == plain) && plain[12] == '0'+GUIDVersion
}

// NewGUID returns a random UUID in the lower-case form with dashes, as Java prints it: names that carry it are
// recognised by Curator as protected.
func NewGUID() string {
	var u [16]byte
	rand.Read(u[:]) // never fails (crypto/rand, since Go 1.24)
	u[6] = u[6]&0x0f | GUIDVersion<<4
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

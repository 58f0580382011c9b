package fence

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
)

// record is what the file with the token holds: two slots, of which each new token takes the other one, so that a crash in
// the middle of a write leaves the older.
type record struct {
	token Token // the larger of the two
	slot  int   // where it is
}

const slotSize = 64

func readRecord(f *os.File) (record, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 2*slotSize+1))
	if err != nil {
		return record{}, err
	}
	if len(b) > 2*slotSize {
		return record{}, errors.New("not a fence's file: it is too long")
	}
	r := record{slot: 1}
	valid := 0
	for i := range 2 {
		from, to := min(i*slotSize, len(b)), min((i+1)*slotSize, len(b))
		token, ok := parseSlot(b[from:to])
		if ok {
			valid++
		}
		if ok && token > r.token {
			r = record{token: token, slot: i}
		}
	}
	if valid == 0 && !neverWhole(b) {
		return record{}, errors.New("not a fence's file, or damaged: no token can be read from it; if it is damaged, delete it and call Raise with the newest token")
	}
	return r, nil
}

// neverWhole reports whether b is what a crash can leave of the first token, which nobody was told had been admitted. A later
// one that a crash tears leaves the other slot as it was.
func neverWhole(b []byte) bool {
	return len(b) <= slotSize && (len(bytes.Trim(b, "\x00")) == 0 || strings.HasPrefix(string(b), slotPrefix[:min(len(b), len(slotPrefix))]))
}

// write puts the token into the slot that does not have the largest.
func (r record) write(f *os.File, token Token) error {
	if _, err := f.WriteAt(formatSlot(token), int64(1-r.slot)*slotSize); err != nil {
		return err
	}
	return f.Sync()
}

const slotPrefix = "token "

// formatSlot writes a token as a line of slotSize bytes that people can read and that tells when it was not written whole.
func formatSlot(token Token) []byte {
	s := slotPrefix + FormatToken(token)
	s = fmt.Sprintf("%s crc32 %08x", s, crc32.ChecksumIEEE([]byte(s)))
	return []byte(s + strings.Repeat(" ", slotSize-1-len(s)) + "\n")
}

// parseSlot reads what formatSlot has written, and reports false for everything else.
func parseSlot(b []byte) (Token, bool) {
	var token Token
	if n, err := fmt.Sscanf(string(b), slotPrefix+"%d", &token); n != 1 || err != nil || token <= 0 {
		return 0, false
	}
	return token, string(b) == string(formatSlot(token))
}

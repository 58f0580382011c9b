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

// record is the content of the file with the token. The file has two slots, and each new token overwrites the older
// one, so that a crash during the write leaves the newer.
type record struct {
	token Token // the larger of the two
	slot  int   // its slot
}

const slotSize = 64

func readRecord(f *os.File) (record, error) {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 2*slotSize+1))
	if err != nil {
		return record{}, err
	}
	if len(b) > 2*slotSize {
		return record{}, errors.New("not the file of a fence: too long")
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
	if valid == 0 && !tornFirstToken(b) {
		return record{}, errors.New("no token in it; " +
			"if it is a damaged file of a fence, delete it and call Raise with the newest token")
	}
	return r, nil
}

// tornFirstToken reports whether b may be what a crash has left of the first token. No caller was told that the fence
// had admitted that token. A crash during a later write leaves the other slot intact.
func tornFirstToken(b []byte) bool {
	empty := len(bytes.Trim(b, "\x00")) == 0
	return len(b) <= slotSize && (empty || strings.HasPrefix(string(b), slotPrefix[:min(len(b), len(slotPrefix))]))
}

// write stores the token in the slot that does not have the largest.
func (r record) write(f *os.File, token Token) error {
	if _, err := f.WriteAt(formatSlot(token), int64(1-r.slot)*slotSize); err != nil {
		return err
	}
	return f.Sync()
}

const slotPrefix = "token "

// formatSlot returns a token as a readable line of slotSize bytes, with a checksum that detects an incomplete write.
func formatSlot(token Token) []byte {
	s := slotPrefix + FormatToken(token)
	s = fmt.Sprintf("%s crc32 %08x", s, crc32.ChecksumIEEE([]byte(s)))
	return []byte(s + strings.Repeat(" ", slotSize-1-len(s)) + "\n")
}

// parseSlot parses the output of formatSlot. It returns false for everything else.
func parseSlot(b []byte) (Token, bool) {
	var token Token
	if n, err := fmt.Sscanf(string(b), slotPrefix+"%d", &token); n != 1 || err != nil || token <= 0 {
		return 0, false
	}
	return token, string(b) == string(formatSlot(token))
}

package fence

import (
	"fmt"
	"hash/crc32"
	"strings"
)

const slotPrefix = "token "

// formatSlot writes a token as a line of slotSize bytes that people can read and that tells when it was not written whole.
func formatSlot(token int64) []byte {
	s := slotPrefix + FormatToken(token)
	s = fmt.Sprintf("%s crc32 %08x", s, crc32.ChecksumIEEE([]byte(s)))
	return []byte(s + strings.Repeat(" ", slotSize-1-len(s)) + "\n")
}

// parseSlot reads what formatSlot has written, and reports false for everything else.
func parseSlot(b []byte) (int64, bool) {
	var token int64
	if n, err := fmt.Sscanf(string(b), slotPrefix+"%d", &token); n != 1 || err != nil || token <= 0 {
		return 0, false
	}
	return token, string(b) == string(formatSlot(token))
}

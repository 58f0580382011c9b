package doctor

// Reading answers. What makes no sense is passed over.

import (
	"net"
	"regexp"
	"strconv"
	"strings"
)

// number returns a whole number of some values, one that fits into 53 bits. It reports false if there is none.
func number(values map[string]string, name string) (int64, bool) {
	text := strings.TrimSuffix(values[name], ".0") // as Java writes some
	n, err := strconv.ParseInt(text, 10, 54)
	return n, err == nil
}

// parseLines returns the lines of a text that have a separator, as keys and values.
func parseLines(text, separator string) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), separator); ok {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

func parseColons(text string) map[string]string { return parseLines(text, ":") }

func parseEquals(text string) map[string]string { return parseLines(text, "=") }

// parseGauges reads an answer to mntr.
func parseGauges(text string) map[string]string {
	values := make(map[string]string)
	for key, value := range parseLines(text, "\t") {
		if name, ok := strings.CutPrefix(key, "zk_"); ok {
			values[name] = value
		}
	}
	return values
}

// caller is the beginning of a line of cons: /10.0.0.1:40000[1](queued=0,…).
var caller = regexp.MustCompile(`^ /(\S+)\[[0-9]+\]\(`)

// parseCallers returns how many connections each address has in an answer to cons.
func parseCallers(text string) map[string]int {
	counts := make(map[string]int)
	for line := range strings.Lines(text) {
		if m := caller.FindStringSubmatch(line); m != nil {
			if host, _, err := net.SplitHostPort(m[1]); err == nil {
				counts[host]++
			}
		}
	}
	return counts
}

// ephemeralsBegin begins the list of ephemeral nodes in an answer to dump.
const ephemeralsBegin = "Sessions with Ephemerals"

// parseEphemerals returns how many bytes the paths of each session's ephemeral nodes have in an answer to dump, as the
// transaction has them that ends the session.
func parseEphemerals(text string) map[int64]int64 {
	sums := make(map[int64]int64)
	_, text, _ = strings.Cut(text, ephemeralsBegin)
	owner, ok := int64(0), false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if path, below := strings.CutPrefix(line, "\t"); below {
			if ok {
				sums[owner] += 4 + int64(len(path))
			}
			continue
		}
		id, isID := strings.CutSuffix(line, ":")
		n, err := strconv.ParseUint(id, 0, 64)
		owner, ok = int64(n), isID && err == nil
	}
	return sums
}

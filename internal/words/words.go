// Package words reads what servers answer to four-letter words. What makes no sense is passed over.
package words

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Number returns a whole number of some values, one that fits into 53 bits. It reports false if there is none.
func Number(values map[string]string, name string) (int64, bool) {
	text := strings.TrimSuffix(values[name], ".0") // as Java writes some
	n, err := strconv.ParseInt(text, 10, 54)
	return n, err == nil
}

// values returns the lines of a text that have a separator, as keys and values.
func values(text, separator string) map[string]string {
	values := make(map[string]string)
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), separator); ok {
			values[key] = strings.TrimSpace(value)
		}
	}
	return values
}

// Stats reads an answer to srvr.
func Stats(text string) map[string]string { return values(text, ":") }

// Settings reads an answer to conf.
func Settings(text string) map[string]string { return values(text, "=") }

// Gauges reads an answer to mntr. It leaves the zk_ out.
func Gauges(text string) map[string]string {
	gauges := make(map[string]string)
	for key, value := range values(text, "\t") {
		if name, ok := strings.CutPrefix(key, "zk_"); ok {
			gauges[name] = value
		}
	}
	return gauges
}

// connection is a line of cons: /10.0.0.1:40000[1](queued=0,recved=2,sent=2,sid=0x1,…).
var connection = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^ /(\S+)\[[0-9]+\]\(([^)]*)`) })

// Connections yields the connections in an answer to cons: where each comes from, and what is told of it, as
// key=value,key=value.
func Connections(text string) iter.Seq2[string, string] {
	return func(yield func(address, told string) bool) {
		for line := range strings.Lines(text) {
			m := connection().FindStringSubmatch(line)
			if m != nil && !yield(m[1], m[2]) {
				return
			}
		}
	}
}

// ephemeralsBegin begins the list of ephemeral nodes in an answer to dump.
const ephemeralsBegin = "Sessions with Ephemerals"

// Ephemerals yields the ephemeral nodes in an answer to dump, each with the session that it belongs to. It reports
// false if the answer has no list of them.
func Ephemerals(text string) (nodes iter.Seq2[int64, string], ok bool) {
	_, list, ok := strings.Cut(text, ephemeralsBegin)
	return func(yield func(session int64, path string) bool) {
		owner, known := int64(0), false
		for line := range strings.Lines(list) {
			line = strings.TrimRight(line, "\r\n")
			if path, below := strings.CutPrefix(line, "\t"); below {
				if known && !yield(owner, path) {
					return
				}
				continue
			}
			id, isID := strings.CutSuffix(line, ":")
			n, err := strconv.ParseUint(id, 0, 64)
			owner, known = int64(n), isID && err == nil && strings.HasPrefix(id, "0x")
		}
	}, ok
}

package command

// Words and numbers in messages.

import (
	"fmt"
	"time"
)

// SessionID writes a session id as ZooKeeper's own tools do. JSON has it as text too: 64 bits do not fit into a JSON
// number everywhere.
func SessionID(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

// Timestamp writes a time for JSON and for variables.
func Timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

// Since writes a time for people, with how long ago it was.
func Since(t time.Time) string {
	return fmt.Sprintf("%s (%v)", t.Local().Format(time.DateTime), max(0, time.Since(t)).Round(time.Second))
}

// Plural writes a number of things.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

//go:build unix

package lin_test

import "time"

// Bugs of counters that the run must find.

// repeated is that of a counter that does a call again whose reply is lost, although it was done.
var repeated = bug{"internal/attempt/txn.go", "if done == 0 {", "if done >= 0 {"}

// overlapping is that of a sequence whose blocks share an id with the next.
var overlapping = bug{"counter/sequence.go", "span{end - n + 1, n}", "span{end - n + 1, n + 1}"}

// versioned is that of a value that tells by the version alone whether it was changed.
var versioned = bug{"counter/value.go", "now.stat.Mzxid != old.Mzxid", "now.stat.Version != old.Version"}

// regressing is that of a value whose watch goes by the version, which begins again in a recreated node.
var regressing = bugs{
	{"counter/value.go", "Mzxid: c.stat.Mzxid", "Mzxid: int64(c.stat.Version)"},
	{"counter/watch.go", "older := !w.fresh && ", "older := false && "},
}

var brokenCounters = []plant{
	brokenCounter("repeating-counter", repeated, "is not that of a counter"),
	brokenCounter("overlapping-sequence", overlapping, "was given out twice"),
	brokenCounter("versioned-value", versioned, "is not that of a value"),
	brokenCounter("regressing-watch", regressing, "after the one with"),
}

func brokenCounter(name string, b builder, want string) plant {
	return plant{name: name, trial: counterTrial{}, bug: b, want: want, patience: 6 * time.Second}
}

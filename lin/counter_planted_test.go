//go:build unix

package lin_test

import "time"

// Bugs of counters that the run must find.

// repeated is that of a counter that does a call again whose reply is lost, although it was done.
var repeated = bug{"counter/register.go", "case err == nil && done == 0:", "case err == nil && done >= 0:"}

// takesNothingBack is that of a process that has asked another to make its calls, and makes them itself without being
// sure that the other will not.
var takesNothingBack = bug{"counter/guest.go", "stat, err := q.resolve(ctx)", "stat, err := zk.Stat{}, errLost"}

// overlapping is that of a sequence whose blocks share an id with the next.
var overlapping = bug{"counter/sequence.go", "span{end - n + 1, n}", "span{end - n + 1, n + 1}"}

// versioned is that of a value that tells by the version alone whether it was changed.
var versioned = bug{"counter/value.go", "now.stat.Mzxid != old.Mzxid", "now.stat.Version != old.Version"}

// regressing is that of a value whose watch goes by the version, which begins again in a recreated node.
var regressing = bugs{
	{"counter/value.go", "Mzxid: c.stat.Mzxid", "Mzxid: int64(c.stat.Version)"},
	{"counter/watch.go", "now.Mzxid > w.newest", "now.Mzxid != w.newest"},
}

// unremoved is that of a process that leaves its request to another process behind.
var unremoved = bugs{
	{"counter/guest.go", "q.remove(created)\n", "_ = created\n"},
	{"counter/host.go", "b.Delete(reg.requestsDir()+\"/\"+g.name, anyVersion).Abandon()", "_ = g.name"},
}

var brokenCounters = []plant{
	brokenCounter("repeating-counter", repeated, "is not that of a counter"),
	brokenCounter("guests-that-take-nothing-back", takesNothingBack, "is not that of a counter"),
	brokenCounter("overlapping-sequence", overlapping, "was given out twice"),
	brokenCounter("versioned-value", versioned, "is not that of a value"),
	brokenCounter("regressing-watch", regressing, "after the one with"),
	brokenCounter("requests-left-behind", unremoved, "-requests/"),
}

func brokenCounter(name string, b builder, want string) plant {
	return plant{name: name, trial: counterTrial{}, bug: b, want: want, patience: 6 * time.Second}
}

package doctor

// Checks of the tree.

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// checkSizes: are there nodes or lists of children that nearly exceed what servers and clients accept?
func checkSizes(f *facts) (list []Finding) {
	limit, how := f.largest()
	find := func(sizes []size, text, remedy string) {
		severity, evidence := Warning, []string(nil)
		slices.SortFunc(sizes, func(a, b size) int {
			return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.path, b.path))
		})
		for _, s := range sizes {
			if !near(s.bytes, limit) {
				break
			}
			if s.bytes >= limit {
				severity = Error
			}
			evidence = append(evidence, fmt.Sprintf("%s: %s", s.path, kibibytes(s.bytes)))
		}
		if len(evidence) > 0 {
			list = append(list, Finding{
				Severity: severity, Evidence: evidence, Remedy: remedy, Page: pageDoctor,
				Text: fmt.Sprintf("%s near jute.maxbuffer (%s%s), or above it", text, kibibytes(limit), how),
			})
		}
	}
	find(f.nodes.data, "nodes have data", "split it, or keep it elsewhere: every write of such a node sends all of it")
	find(f.nodes.lists, "nodes have so many children that the list of their names is",
		"delete children (turnstile rm --reply-limit 64MiB), or spread them over several nodes: clients of other "+
			"libraries cannot list a node above their own jute.maxbuffer")
	if n := f.tree.TooLarge; n.Count > 0 {
		list = append(list, Finding{
			Severity: Error, Text: "nodes have more children than fit into a reply that this client accepts",
			Evidence: more(n.Paths, n.Count),
			Remedy:   "delete children, and raise --reply-limit to see what is below",
			Page:     pageDoctor,
		})
	}
	return list
}

// more is a list that is cut, with how many are missing.
func more(paths []string, all int) []string {
	list := slices.Clone(paths[:min(len(paths), maxEvidence)])
	if all > len(list) {
		list = append(list, fmt.Sprintf("and %d more", all-len(list)))
	}
	return list
}

// checkSequences: are sequence numbers being used up?
func checkSequences(f *facts) []Finding {
	var evidence []string
	for _, e := range f.tree.Entries {
		if e.Numbers.Low {
			evidence = append(evidence, fmt.Sprintf("%s: %d are left", e.Numbers.Path, e.Numbers.Left))
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Warning,
		Text:     "half of the sequence numbers of a path are used: when none is left, new contenders are refused",
		Evidence: evidence,
		Remedy:   "delete the node when it is empty (turnstile rm): its numbers begin at 0 again",
		Page:     "docs/interop.md#when-sequence-numbers-run-out",
	}}
}

// checkEmpty: are there directories that locks have left?
func checkEmpty(f *facts) []Finding {
	if len(f.nodes.empty) == 0 {
		return nil
	}
	slices.Sort(f.nodes.empty)
	return []Finding{{
		Severity: Note,
		Text: fmt.Sprintf("%d empty nodes older than an hour look like directories that other programs' locks have "+
			"left", len(f.nodes.empty)),
		Evidence: f.nodes.empty,
		Remedy:   "turnstile gc PATH lists those that may be deleted, and deletes them with --delete",
		Page:     "docs/operating.md#what-to-look-at",
	}}
}

// checkGroups: are there contenders that do not exclude each other?
func checkGroups(f *facts) []Finding {
	var apart, maybe []string
	for _, e := range f.tree.Entries {
		text := fmt.Sprintf("%s: %d groups", e.Path, e.Groups)
		switch {
		case e.Apart():
			apart = append(apart, text)
		case e.MayBeApart():
			maybe = append(maybe, text)
		}
	}
	find := func(severity Severity, text string, evidence []string) (list []Finding) {
		if len(evidence) > 0 {
			list = append(list, Finding{
				Severity: severity, Text: text, Evidence: evidence,
				Remedy: "turnstile who PATH shows the groups; let all programs use one layout, as with --layout both",
				Page:   "docs/interop.md",
			})
		}
		return list
	}
	return append(
		find(Error, "several hold the lock of one path, because their programs look for different names", apart),
		find(Warning, "contenders at one path may not all exclude each other: their programs look for different "+
			"names, unless they are configured for those of the others (kazoo's extra_lock_patterns)", maybe)...)
}

// checkStrays: are there contenders that wait for what belongs to no session?
func checkStrays(f *facts) []Finding {
	var evidence []string
	for _, e := range f.tree.Entries {
		if e.Behind() != "" {
			evidence = append(evidence, e.Behind())
		}
	}
	if len(evidence) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Error,
		Text: "contenders wait for nodes that belong to no session, as a copy of a tree leaves them, or another " +
			"lock's path: they never get the lock",
		Evidence: evidence,
		Remedy:   "delete them (turnstile rm), unless something else needs them: then move the lock to another path",
		Page:     pageDoctor,
	}}
}

// checkACL: may every client change locks?
func checkACL(f *facts) []Finding {
	if len(f.open.open) == 0 {
		return nil
	}
	severity := Note
	if f.credentials { // somebody means to protect something
		severity = Warning
	}
	unread := ""
	if f.open.more > 0 {
		unread = fmt.Sprintf(", of %d more nothing is known", f.open.more)
	}
	return []Finding{{
		Severity: severity,
		Text: fmt.Sprintf("at %d of %d paths every client that reaches a server may change and delete what others "+
			"hold%s", len(f.open.open), f.open.looked, unread),
		Evidence: f.open.open,
		Remedy:   "give locks an access list (--acl, Config.ACL), or let nobody else reach the servers",
		Page:     "docs/security.md#access-lists",
	}}
}

// checkTree: was the whole tree read?
func checkTree(f *facts) (list []Finding) {
	if f.tree.Partial != "" {
		list = append(list, Finding{
			Severity: Note, Unknown: true, Text: "a part of the tree is unknown, because reading it takes too long",
			Evidence: []string{f.tree.Partial}, Remedy: "name a PATH, or raise --read-for", Page: pageDoctor,
		})
	}
	if n := f.tree.Denied; n.Count > 0 {
		list = append(list, Finding{
			Severity: Note, Unknown: true,
			Text:     "a part of the tree is unknown, because these credentials may not read it",
			Evidence: more(n.Paths, n.Count),
			Remedy:   "give the credentials of those who may: --auth, --sasl-user, --tls-cert",
			Page:     "docs/security.md",
		})
	}
	return list
}
